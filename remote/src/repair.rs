//! A head that was lost is made anew from the names of the other objects.
//!
//! ```text
//! segments, the highest generation of each -> packs that continue them -> entries that continue these -> head, created
//! ```

use std::sync::Arc;

use acpdb_engine::codec::Written;
use acpdb_engine::ids::StoreId;
use acpdb_engine::storage::Entropy;

use crate::chain::random;
use crate::error::ChainError;
use crate::flaws::Flaw;
use crate::head::{KeptSegment, RemoteHead};
use crate::names::{ObjectName, PackName, SegmentName, store_keys};
use crate::objects::{FoundHead, find_head, get_settled, listed, named_run, replace_head};
use crate::remote::Remote;
use crate::run::LogRun;
use crate::tail::{ChainTail, entry};

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
    let mut head = RemoteHead::empty(store);
    let segments: Vec<SegmentName> = names
        .iter()
        .filter_map(|name| if let ObjectName::Segment(name) = name { Some(*name) } else { None })
        .collect();
    while let Some(kept) = next_segment(remote, &head, &segments)? {
        // A writer that was stopped may put its fence where an entry of the segment was: what lies before the boundary does not count.
        (head.place, head.boundary, head.floor) = (kept.behind, kept.boundary, kept.floor);
        head.segments.push(kept);
    }
    let packs: Vec<PackName> = names
        .iter()
        .filter_map(|name| if let ObjectName::Pack(name) = name { Some(*name) } else { None })
        .collect();
    while let Some((pack, behind)) = next_pack(remote, &head, &packs)? {
        head.place = behind;
        (head.boundary, head.floor) = (pack.next, head.floor.max(pack.epoch));
        head.packs.push(pack);
    }
    let entries = names
        .iter()
        .filter_map(|name| if let ObjectName::Entry(number) = name { Some(*number) } else { None });
    let entries: Vec<u64> = entries.collect();
    let mut highest = packs.iter().map(|pack| pack.epoch).max().unwrap_or(0);
    highest = highest.max(place_boundary(remote, &mut head, &entries)?);
    head.epoch = highest.saturating_add(EPOCH_STEP);
    (head.nonce, head.owner_nonce) = (random(&**entropy)?, random(&**entropy)?);
    "repair".clone_into(&mut head.owner);
    // If another repair was first, its head does as well.
    Ok(replace_head(remote, &head, &found, Flaw::None)?.is_some())
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

/// The segment behind the last one of the head.
fn next_segment(
    remote: &dyn Remote,
    head: &RemoteHead,
    segments: &[SegmentName],
) -> Result<Option<KeptSegment>, ChainError> {
    let number = head.segments.last().map_or(1, |last| last.name.number.saturating_add(1));
    let mut candidates: Vec<_> = segments.iter().filter(|name| name.number == number).collect();
    candidates.sort_unstable_by_key(|name| std::cmp::Reverse(name.generation));
    for name in candidates {
        if let Some(run) = sound_run(remote, head.store, ObjectName::Segment(*name))?
            && run.before == head.place
        {
            let (length, behind) = (run.bytes.len() as u64, run.behind);
            let (boundary, floor) = (run.next, run.first);
            return Ok(Some(KeptSegment { name: *name, length, behind, boundary, floor }));
        }
    }
    Ok(None)
}

/// The longest pack that continues the head's place.
fn next_pack(
    remote: &dyn Remote,
    head: &RemoteHead,
    packs: &[PackName],
) -> Result<Option<(PackName, Written)>, ChainError> {
    let mut candidates: Vec<_> = packs.iter().filter(|pack| pack.next > head.boundary).collect();
    candidates.sort_unstable_by_key(|pack| std::cmp::Reverse(pack.next));
    for pack in candidates {
        if let Some(run) = sound_run(remote, head.store, ObjectName::Pack(*pack))?
            && run.before == head.place
        {
            return Ok(Some((*pack, run.behind)));
        }
    }
    Ok(None)
}

/// Finds the first entry that continues the head's place, and makes its number the boundary; the number behind all entries if there is none. Returns the highest
/// epoch of an entry.
fn place_boundary(remote: &dyn Remote, head: &mut RemoteHead, entries: &[u64]) -> Result<u64, ChainError> {
    let (mut highest, mut first, mut tail) = (0, None, ChainTail::of(head));
    for number in entries {
        let Some((object, _)) = get_settled(remote, &ObjectName::Entry(*number).key(head.store))? else {
            continue;
        };
        if let Some(run) = entry(head.store, *number, &object)? {
            highest = run.epoch.max(highest);
        }
        if *number < head.boundary || first.is_some() {
            continue;
        }
        (tail.next, tail.first) = (*number, *number);
        let floor = tail.epoch;
        if tail.take(&object)?.is_some() {
            first = Some((*number, floor));
        }
    }
    let behind = entries.last().map_or(1, |last| last.saturating_add(1)).max(head.boundary);
    let (boundary, floor) = first.unwrap_or((behind, highest));
    (head.boundary, head.floor) = (boundary, floor.max(head.floor));
    Ok(highest)
}
