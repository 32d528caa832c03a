//! A look at a store at a remote, without changing anything.

use acpdb_engine::ids::StoreId;

use crate::ahead::AheadRemote;
use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::names::ObjectName;
use crate::objects::{get_settled, head_of};
use crate::remote::Remote;
use crate::tail::ChainTail;

/// How often a chain is looked at again because it was packed meanwhile.
const ROUND_COUNT: u32 = 16;

/// The head of a store and the entries behind its boundary; `None`: there is no such store. Cost: one round trip for the head, one for each entry.
pub(crate) fn look(
    remote: &dyn Remote,
    store: StoreId,
) -> Result<Option<(RemoteHead, ChainTail)>, ChainError> {
    let remote = &AheadRemote::new(remote, store);
    let mut found = head_of(remote, store)?;
    for _ in 0..ROUND_COUNT {
        let Some((head, _)) = found else { return Ok(None) };
        let mut tail = ChainTail::of(&head);
        while let Some((object, _)) = get_settled(remote, &ObjectName::Entry(tail.next).key(store))? {
            tail.take(&object)?;
        }
        found = head_of(remote, store)?;
        if found.as_ref().is_some_and(|(again, _)| again.boundary == head.boundary) {
            return Ok(Some((head, tail)));
        }
    }
    Err(ChainError::Contended)
}

/// How many objects of a head's trash are there still. Cost: one round trip for each that the head names.
pub(crate) fn trash_left(remote: &dyn Remote, head: &RemoteHead) -> Result<usize, ChainError> {
    let mut left = 0_usize;
    for name in &head.trash {
        if remote.get(&name.key(head.store), Some(0..0))?.is_some() {
            left = left.saturating_add(1);
        }
    }
    Ok(left)
}
