//! A look at a store at a remote, without changing anything.

use crate::ahead::{AheadRemote, at_a_time};
use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::objects::head_of;
use crate::remote::{Remote, RemoteError};
use crate::tail::ChainTail;

/// How often a chain is looked at again because it was packed meanwhile.
const ROUND_COUNT: u32 = 16;

/// The head of a store and the entries behind its boundary; `None`: there is no such store. Cost: two round trips, and those of the entries.
pub(crate) fn look(remote: &AheadRemote<'_>) -> Result<Option<(RemoteHead, ChainTail)>, ChainError> {
    let store = remote.store();
    let mut found = head_of(remote, store)?;
    for _ in 0..ROUND_COUNT {
        let Some((head, _)) = found else { return Ok(None) };
        let mut tail = ChainTail::of(&head);
        while let Some(object) = remote.entry(tail.next)? {
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
    let found = at_a_time(remote, &head.trash, |name| remote.get(&name.key(head.store), Some(0..0)));
    let found = found.into_iter().collect::<Result<Vec<_>, RemoteError>>()?;
    Ok(found.iter().flatten().count())
}
