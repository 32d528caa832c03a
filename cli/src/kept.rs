//! Figures of sessions and requests, which verbs that record much keep for verbs that list.
//!
//! Lists work without the kept figures, only slower. So a failure here is not told: the next verb that records tries again.

use acpdb_engine::Store;
use acpdb_query::kept::{Keeping, NAME, is_much_new};

use crate::known::KnownFiles;
use crate::spread;

/// Keeps the knowledge of an import about its files, and the figures that lists would fold.
pub(crate) fn leave_with(known: &mut KnownFiles, store: &Store) {
    if known.save(store) {
        leave(store);
    }
}

/// As [`leave`], for verbs that run often and mostly record little: if little is new, this costs a millisecond.
pub(crate) fn leave_if_much(store: &Store) {
    if matches!(is_much_new(store), Ok(true)) {
        leave(store);
    }
}

/// Keeps the figures that lists would fold, if enough events are new.
pub(crate) fn leave(store: &Store) {
    let Ok(Some(keeping)) = Keeping::due(store) else { return };
    let made = spread::silently(spread::cores(), &keeping.wanting, |name| {
        Ok(keeping.figures(name)?.map(|row| (name.id, row)))
    });
    let Ok(made) = made else { return };
    // A verb that looks at a long session folds it too; a fold by a handle that writes is saved if it is long and much of it is
    // new.
    for (stream, _) in made.iter().flatten().filter(|(_, figures)| figures.is_long()) {
        // Nothing is shown here: a verb that looks at a session tells of an error in its fold.
        let _ = store.view(*stream);
    }
    if let Some(bytes) = keeping.bytes(made.into_iter().flatten().collect()) {
        // The next list folds again the figures that are not kept.
        let _ = store.put_aside(NAME, &bytes);
    }
}
