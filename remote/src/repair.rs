//! A head that was lost is made anew from the names of the other objects.
//!
//! ```text
//! segments, packs, entries -> the best way through them (see `ways`) -> head, created
//! ```

use std::sync::Arc;

use acpdb_engine::ids::StoreId;
use acpdb_engine::storage::{Entropy, SystemEntropy};

use crate::chain::random;
use crate::error::ChainError;
use crate::head::{KeptSegment, RemoteHead};
use crate::names::{ObjectName, store_keys};
use crate::objects::{FoundHead, find_head, get_settled, listed, named_run, replace_head};
use crate::remote::Remote;
use crate::run::LogRun;
use crate::tail::entry;
use crate::ways::{FoundEntry, WayPart, WayStep, best_way, first_behind};

/// So far above all epochs that are found lies that of the new head: writers that swapped the lost head and left no other trace are below it.
const EPOCH_STEP: u64 = 1 << 16;

/// Makes the head of a store anew if it is lost. The writer before is fenced once the next one takes the store over. Says whether a head was made.
///
/// Cost: a listing of the store's objects, and all of them are read.
///
/// # Errors
/// [`ChainError::NoStore`] if there is nothing of the store; [`ChainError::TooLarge`] if there are more than a million names;
/// [`ChainError::Remote`], [`ChainError::Newer`].
pub fn repair(remote: &dyn Remote, entropy: &Arc<dyn Entropy>, store: StoreId) -> Result<bool, ChainError> {
    let found = find_head(remote, store)?;
    if matches!(found, FoundHead::Sound(..)) {
        return Ok(false);
    }
    let names = names_of(remote, store)?;
    if names.is_empty() {
        return Err(ChainError::NoStore { store: store.to_string() });
    }
    let (mut steps, mut entries, mut behind) = (Vec::new(), Vec::new(), 1);
    for name in names.iter().copied() {
        match name {
            ObjectName::Entry(number) => {
                behind = number.saturating_add(1).max(behind);
                let Some((object, _)) = get_settled(remote, &name.key(store))? else { continue };
                entries.extend(entry(store, number, &object)?.as_ref().map(FoundEntry::of));
            }
            ObjectName::Pack(_) | ObjectName::Segment(_) => steps.extend(step(remote, store, name)?),
        }
    }
    let highest = entries.iter().map(FoundEntry::epoch).max().unwrap_or(0);
    let highest_step = steps.iter().map(|step| step.epoch).max().unwrap_or(0);
    let mut head = RemoteHead::empty(store);
    for step in best_way(steps, &entries) {
        // A writer that was stopped may put its fence where an entry of the segment was: what lies before the boundary does not count.
        (head.place, (head.boundary, head.floor)) = (step.behind, step.boundary());
        match step.part {
            WayPart::Segment(kept) => head.segments.push(kept),
            WayPart::Pack(pack) => head.packs.push(pack),
        }
    }
    // The boundary is the number of the first entry that goes on; the number behind all entries if none does.
    let first = first_behind(&head.place, (head.boundary, head.floor), &entries);
    let (boundary, floor) = first.unwrap_or((behind.max(head.boundary), highest));
    (head.boundary, head.floor) = (boundary, floor.max(head.floor));
    head.epoch = highest.max(highest_step).saturating_add(EPOCH_STEP);
    (head.nonce, head.owner_nonce) = (random(&**entropy)?, random(&**entropy)?);
    "repair".clone_into(&mut head.owner);
    // If another repair was first, its head does as well.
    Ok(replace_head(remote, &head, &found)?.is_some())
}

/// Does what needs the head of a store; if that is lost, makes it anew, says so by `warn`, and does it again.
///
/// # Errors
/// Those of `act` and of [`repair`].
pub fn with_head<T>(
    remote: &dyn Remote,
    store: StoreId,
    warn: impl FnOnce(),
    mut act: impl FnMut() -> Result<T, ChainError>,
) -> Result<T, ChainError> {
    match act() {
        Err(ChainError::HeadLost { .. }) => {}
        done => return done,
    }
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    if repair(remote, &entropy, store)? {
        warn();
    }
    act()
}

/// All objects of a store that have a name, in order.
fn names_of(remote: &dyn Remote, store: StoreId) -> Result<Vec<ObjectName>, ChainError> {
    let mut names = listed(remote, &store_keys(store), |key| ObjectName::parse(store, key))?;
    names.sort_unstable();
    Ok(names)
}

/// A run that is sound and there; what is neither is passed over.
fn sound_run(remote: &dyn Remote, store: StoreId, name: ObjectName) -> Result<Option<LogRun>, ChainError> {
    match named_run(remote, store, name) {
        Err(ChainError::Unsound { .. }) => Ok(None),
        found => found,
    }
}

/// A segment or a pack that is sound and there, as a step of a way.
fn step(remote: &dyn Remote, store: StoreId, name: ObjectName) -> Result<Option<WayStep>, ChainError> {
    let Some(run) = sound_run(remote, store, name)? else { return Ok(None) };
    let part = match name {
        ObjectName::Entry(_) => return Ok(None),
        ObjectName::Pack(pack) => WayPart::Pack(pack),
        ObjectName::Segment(name) => {
            let (length, behind) = (run.bytes.len() as u64, run.behind);
            let (boundary, floor) = (run.next, run.first);
            WayPart::Segment(KeptSegment { name, length, behind, boundary, floor })
        }
    };
    Ok(Some(WayStep { part, epoch: run.epoch, before: run.before, behind: run.behind }))
}
