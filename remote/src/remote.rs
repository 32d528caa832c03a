//! Six calls on objects under one prefix: all that the chain asks of object storage, a database or a folder.

use std::io::Read;
use std::ops::Range;

use acpdb_engine::ids::StoreId;

/// Objects under one prefix. Each call is one round trip, and blocks until the answer is there.
///
/// Keys are made by this crate: lower-case letters, digits, `.`, `-`, and `/` between parts, none of which begins with a dot.
pub trait Remote: Send + Sync {
    /// Makes an object that must not exist. Of any number of calls for one key, one makes it, and its bytes stay.
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError>;
    /// Replaces an object that is still the one that the tag names.
    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError>;
    /// Makes or replaces an object whose key no other writer uses, with the `length` bytes of a reader.
    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError>;
    /// The bytes of an object, or of a range of it, which ends with the object; `None`: there is no such object.
    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError>;
    /// Objects whose keys begin with `under` and come after `after` in the order of bytes: the next 1,000 at most, in any order. None: there are no more. `under` is
    /// empty or ends with `/`: a server was seen that leaves `c-1` out behind a page of `c/1`.
    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError>;
    /// Takes an object away; no error if there is none.
    fn delete(&self, key: &str) -> Result<(), RemoteError>;
    /// Whether an answer so far has said that old versions of objects stay there: nothing is erased there then.
    fn has_versions(&self) -> bool {
        false
    }
    /// How many objects are worth asking for at a time, from threads of their own: many where a call takes as long as the way there.
    fn calls_at_once(&self) -> usize {
        1
    }
}

/// Most objects in one answer of [`Remote::list`].
pub(crate) const LISTED_COUNT_MAX: usize = 1000;

/// Tells one content of an object from the next. Equal contents may have equal tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectTag(pub String);

impl ObjectTag {
    /// The tag of backends that keep none: a digest of the content.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }
}

/// The outcome of [`Remote::create`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Created {
    /// The object is there now, and this call made it.
    Here(ObjectTag),
    /// An object was there before.
    Taken,
}

/// The outcome of [`Remote::swap`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Swapped {
    /// The object has the new bytes.
    Here(ObjectTag),
    /// The object is another one, or gone.
    Moved,
}

/// An object of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Its key.
    pub key: String,
    /// Its length.
    pub bytes: u64,
}

/// The reason why a call did not do as asked, by what the caller can do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RemoteError {
    /// No answer came: it may have happened, or may happen later. Look.
    #[error("no answer from the remote: it is unknown whether {what} happened")]
    Doubt {
        /// The call and its key.
        what: String,
    },
    /// Credentials or permissions do not allow it.
    #[error("the remote refuses {what}")]
    Refused {
        /// The call, its key, the reason.
        what: String,
    },
    /// There is no space, or a quota is used up.
    #[error("the remote is full: {what}")]
    Full {
        /// The call and its key.
        what: String,
    },
    /// Too many requests; wait and try again.
    #[error("the remote asks to wait: {what}")]
    Slow {
        /// The call and its key.
        what: String,
    },
    /// The remote cannot do what the chain needs, such as creating only what does not exist.
    #[error("the remote cannot {what}")]
    Unable {
        /// The ability that is missing.
        what: String,
    },
    /// The store is encrypted there, and its key is not at hand, or is gone; or it is not, and was to be.
    #[error("{what}")]
    Locked {
        /// The store, and what is missing.
        what: String,
    },
    /// Any other failure.
    #[error("the remote failed: {what}")]
    Broken {
        /// The call, its key, the reason.
        what: String,
    },
}

impl RemoteError {
    /// The error where an encrypted store is met without its key.
    pub(crate) fn no_key(store: StoreId) -> Self {
        Self::Locked { what: format!("store {store} is encrypted there, and no key of it is at hand") }
    }

    /// Whether waiting may help.
    pub const fn may_pass(&self) -> bool {
        matches!(self, Self::Doubt { .. } | Self::Slow { .. } | Self::Full { .. } | Self::Broken { .. })
    }
}

/// Whether a key is one that this crate may have made.
pub(crate) fn is_key(key: &str) -> bool {
    let is_part = |part: &str| {
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'.' | b'-');
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(is_plain)
    };
    key.len() <= 512 && key.split('/').all(is_part)
}

/// Reads exactly `length` bytes.
pub(crate) fn read_exactly(from: &mut dyn Read, length: u64) -> Result<Vec<u8>, RemoteError> {
    let mut bytes = Vec::new();
    let broken = |what: String| RemoteError::Broken { what };
    // One byte more shows a reader that says too little.
    let mut limited = from.take(length.saturating_add(1));
    limited.read_to_end(&mut bytes).map_err(|error| broken(format!("reading what is to be put: {error}")))?;
    if bytes.len() as u64 != length {
        return Err(broken(format!("{} bytes were to be put, and {length} were announced", bytes.len())));
    }
    Ok(bytes)
}

/// The part of `bytes` in a range.
pub(crate) fn within(bytes: &[u8], range: Option<&Range<u64>>) -> Vec<u8> {
    let Some(range) = range else { return bytes.to_vec() };
    let at = |offset: u64| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    bytes.get(at(range.start)..at(range.end)).unwrap_or(&[]).to_vec()
}
