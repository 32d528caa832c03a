//! What verbs that record much leave behind for those that list: the figures of sessions and the requests that were told.
//!
//! Lists work without it, only slower. So a failure here is not told: the next verb that records tries again.

use acpdb_engine::Store;
use acpdb_query::kept::{Keeping, NAME};

use crate::known::KnownFiles;
use crate::spread;

/// Keeps what an import learnt of its files, and what lists would fold.
pub(crate) fn leave_with(known: &mut KnownFiles, store: &Store) {
    if known.save(store) {
        leave(store);
    }
}

/// Keeps what lists would fold, if so much is new that it is worth it.
pub(crate) fn leave(store: &Store) {
    let Ok(Some(keeping)) = Keeping::due(store) else { return };
    let made =
        spread::silently(&keeping.wanting, |name| Ok(keeping.figures(name)?.map(|row| (name.id, row))));
    let Ok(made) = made else { return };
    // What looks at a long session folds it too; a fold by a handle that writes is saved if it is long and much of it is new.
    for (stream, _) in made.iter().flatten().filter(|(_, figures)| figures.is_long()) {
        // Nothing is shown here: what cannot be folded is told to those who look at it.
        let _ = store.view(*stream);
    }
    if let Some(bytes) = keeping.bytes(made.into_iter().flatten().collect()) {
        // What is not kept is folded again by the next list.
        let _ = store.put_aside(NAME, &bytes);
    }
}
