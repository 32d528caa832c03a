//! Calls whose outcome is known when they return: after an answer that says nothing, the object is looked at.

use acpdb_engine::ids::StoreId;
use acpdb_engine::vault::sealed_object_form;

use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::names::{ObjectName, head_key, store_keys};
use crate::remote::{Created, ListedObject, ObjectTag, Remote, RemoteError, Swapped};
use crate::run::{LogRun, LogRunKind, NoRun};

/// How often a call is made whose answer says nothing.
const CALL_COUNT: u32 = 8;

/// The outcome of a creation.
pub(crate) enum Settled {
    /// The object has these bytes.
    Mine,
    /// It has others.
    Other(Vec<u8>),
}

fn doubt(what: &str, key: &str) -> ChainError {
    RemoteError::Doubt { what: format!("{what} {key}") }.into()
}

/// Reads an object; again, if no answer comes.
pub(crate) fn get_settled(
    remote: &dyn Remote,
    key: &str,
) -> Result<Option<(Vec<u8>, ObjectTag)>, ChainError> {
    for _ in 0..CALL_COUNT {
        match remote.get(key, None) {
            Err(RemoteError::Doubt { .. }) => {}
            found => return Ok(found?),
        }
    }
    Err(doubt("reading", key))
}

/// Makes an object, or finds out which one is there.
pub(crate) fn create_settled(remote: &dyn Remote, key: &str, bytes: &[u8]) -> Result<Settled, ChainError> {
    for _ in 0..CALL_COUNT {
        match remote.create(key, bytes) {
            Ok(Created::Here(_)) => return Ok(Settled::Mine),
            Ok(Created::Taken) | Err(RemoteError::Doubt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        match get_settled(remote, key)? {
            Some((found, _)) if found == bytes => return Ok(Settled::Mine),
            Some((found, _)) => return Ok(Settled::Other(found)),
            None => {}
        }
    }
    Err(doubt("creating", key))
}

/// Replaces an object by bytes that no other call ever puts there; `None`: it is another one than `was`.
pub(crate) fn swap_settled(
    remote: &dyn Remote,
    key: &str,
    bytes: &[u8],
    was: &ObjectTag,
) -> Result<Option<ObjectTag>, ChainError> {
    for _ in 0..CALL_COUNT {
        match remote.swap(key, bytes, was) {
            Ok(Swapped::Here(tag)) => return Ok(Some(tag)),
            Ok(Swapped::Moved) | Err(RemoteError::Doubt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        match get_settled(remote, key)? {
            Some((found, tag)) if found == bytes => return Ok(Some(tag)),
            Some((_, tag)) if tag == *was => {}
            _ => return Ok(None),
        }
    }
    Err(doubt("swapping", key))
}

/// Puts an object there that no other writer makes.
pub(crate) fn put_whole(remote: &dyn Remote, key: &str, bytes: &[u8]) -> Result<(), ChainError> {
    for _ in 0..CALL_COUNT {
        match remote.put(key, &mut &*bytes, bytes.len() as u64) {
            Ok(_) => return Ok(()),
            Err(RemoteError::Doubt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(doubt("putting", key))
}

/// The head of a store as it was found.
pub(crate) enum FoundHead {
    /// It is sound.
    Sound(Box<RemoteHead>, ObjectTag),
    /// It is none: a creation was torn, or it was damaged.
    Unsound(ObjectTag),
    /// There is none.
    None,
}

/// Looks for the head of a store.
pub(crate) fn find_head(remote: &dyn Remote, store: StoreId) -> Result<FoundHead, ChainError> {
    let key = head_key(store);
    let Some((object, tag)) = get_settled(remote, &key)? else { return Ok(FoundHead::None) };
    if sealed_object_form(&object).is_some() {
        return Err(RemoteError::no_key(store).into());
    }
    match RemoteHead::decode(store, &object) {
        Ok(head) => Ok(FoundHead::Sound(Box::new(head), tag)),
        Err(NoRun::Newer) => Err(ChainError::Newer { key }),
        Err(NoRun::Unsound(_)) => Ok(FoundHead::Unsound(tag)),
    }
}

/// The head of a store, which must be sound if it is there.
pub(crate) fn head_of(
    remote: &dyn Remote,
    store: StoreId,
) -> Result<Option<(RemoteHead, ObjectTag)>, ChainError> {
    match find_head(remote, store)? {
        FoundHead::Sound(head, tag) => Ok(Some((*head, tag))),
        FoundHead::Unsound(_) => Err(ChainError::HeadLost { store: store.to_string() }),
        FoundHead::None => Ok(None),
    }
}

/// Puts a head in the place of what was found there; `None`: another one is there now.
pub(crate) fn replace_head(
    remote: &dyn Remote,
    head: &RemoteHead,
    found: &FoundHead,
) -> Result<Option<ObjectTag>, ChainError> {
    let (key, bytes) = (head_key(head.store), head.encode());
    if let FoundHead::Sound(_, was) | FoundHead::Unsound(was) = found {
        return swap_settled(remote, &key, &bytes, was);
    }
    if matches!(create_settled(remote, &key, &bytes)?, Settled::Other(_)) {
        return Ok(None);
    }
    let made = get_settled(remote, &key)?.filter(|(object, _)| *object == bytes);
    Ok(made.map(|(_, tag)| tag))
}

/// Most names that are listed.
pub(crate) const NAME_COUNT_MAX: usize = 1 << 20;

/// All keys under a prefix that `found` makes something of.
///
/// # Errors
/// [`ChainError::TooLarge`] for more than a million keys, of whatever form; [`ChainError::Remote`].
pub(crate) fn listed<T>(
    remote: &dyn Remote,
    under: &str,
    found: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, ChainError> {
    listed_objects(remote, under, |listed| found(&listed.key))
}

/// [`listed`], of keys with the lengths of their objects.
pub(crate) fn listed_objects<T>(
    remote: &dyn Remote,
    under: &str,
    found: impl Fn(&ListedObject) -> Option<T>,
) -> Result<Vec<T>, ChainError> {
    let (mut all, mut count, mut after) = (Vec::new(), 0_usize, String::new());
    loop {
        let page = remote.list(under, &after)?;
        let Some(last) = page.iter().map(|listed| &listed.key).max().filter(|last| **last > after) else {
            return Ok(all);
        };
        count = count.saturating_add(page.len());
        if count > NAME_COUNT_MAX {
            let (bytes, limit) = (count as u64, NAME_COUNT_MAX as u64);
            return Err(ChainError::TooLarge { what: format!("the list of {under}"), bytes, limit });
        }
        all.extend(page.iter().filter_map(&found));
        after.clone_from(last);
    }
}

/// Whether a store has objects beside its head.
pub(crate) fn has_objects(remote: &dyn Remote, store: StoreId) -> Result<bool, ChainError> {
    let listed = remote.list(&store_keys(store), "")?;
    Ok(listed.iter().any(|listed| ObjectName::parse(store, &listed.key).is_some()))
}

/// A run that is named, so that it must be there; `None`: it is not there.
pub(crate) fn named_run(
    remote: &dyn Remote,
    store: StoreId,
    name: ObjectName,
) -> Result<Option<LogRun>, ChainError> {
    let key = name.key(store);
    let Some((object, _)) = get_settled(remote, &key)? else { return Ok(None) };
    let run = match LogRun::decode(store, &object) {
        Ok(run) => run,
        Err(NoRun::Newer) => return Err(ChainError::Newer { key }),
        Err(NoRun::Unsound(what)) => return Err(ChainError::Unsound { key, what: what.to_owned() }),
    };
    let is_named = match name {
        ObjectName::Entry(number) => (run.kind, run.first) == (LogRunKind::Chunk, number),
        ObjectName::Pack(pack) => {
            run.kind == LogRunKind::Pack
                && (run.first, run.next, run.epoch, run.nonce)
                    == (pack.first, pack.next, pack.epoch, pack.nonce)
        }
        ObjectName::Segment(segment) => {
            run.kind == LogRunKind::Segment
                && (run.segment, run.generation, run.nonce)
                    == (segment.number, segment.generation, segment.nonce)
                && *blake3::hash(&run.bytes).as_bytes() == segment.digest
        }
    };
    if is_named {
        Ok(Some(run))
    } else {
        Err(ChainError::Unsound { key, what: "its name says another".to_owned() })
    }
}

/// As [`named_run`]; that it is not there is an error.
pub(crate) fn required_run(
    remote: &dyn Remote,
    store: StoreId,
    name: ObjectName,
) -> Result<LogRun, ChainError> {
    named_run(remote, store, name)?.ok_or_else(|| ChainError::Missing { key: name.key(store) })
}
