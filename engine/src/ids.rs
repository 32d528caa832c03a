//! Names of things: positions in the log, streams, items, digests.
//!
//! Every type here is a newtype, so that a turn cannot be passed for a seq. They order, hash, print and serialise;
//! they do nothing else. Text forms are the ones the command line shows: `#812`, `#812.2`, `t12`, hex digests.
//!
//! Nothing in this module touches the world: identifiers that need randomness or a digest are made elsewhere and
//! come in as values.

use std::fmt;
use std::str::FromStr;

use rkyv::rancor::{Fallible, Source};
use rkyv::rend::u32_le;
use rkyv::{Archive, Deserialize, Place, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

/// Position of an event in the store: 1, 2, 3 and so on, without gaps, over all streams.
///
/// [`Seq::ZERO`] is "before the first event" and names no event.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// use acpdb_engine::{At, Seq};
///
/// let head = store.head()?;
/// assert!(Seq::ZERO < head); // no event has it
/// assert_eq!(session.view_at(&At::Seq(Seq(2)))?.at(), Seq(2));
/// # Ok(())
/// # }
/// ```
#[derive(ToJson, FromJson, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[serde(transparent)]
pub struct Seq(pub u64);

/// A seq takes half its bytes in an archive, where the last number stands for [`Seq::MAX`]. A value with a larger seq is not saved.
impl Archive for Seq {
    type Archived = u32_le;
    type Resolver = ();

    fn resolve(&self, (): (), out: Place<Self::Archived>) {
        // A seq that does not fit was refused before.
        out.write(u32_le::from_native(self.short().unwrap_or(u32::MAX)));
    }
}

impl<S: Fallible<Error: Source> + ?Sized> Serialize<S> for Seq {
    fn serialize(&self, _: &mut S) -> Result<(), S::Error> {
        self.short().map(drop).map_err(S::Error::new)
    }
}

impl<D: Fallible + ?Sized> Deserialize<Seq, D> for u32_le {
    fn deserialize(&self, _: &mut D) -> Result<Seq, D::Error> {
        let seq = self.to_native();
        Ok(if seq == u32::MAX { Seq::MAX } else { Seq(u64::from(seq)) })
    }
}

impl Seq {
    fn short(self) -> Result<u32, std::num::TryFromIntError> {
        if self == Self::MAX {
            return Ok(u32::MAX);
        }
        // The last number is taken.
        u32::try_from(self.0.saturating_add(1)).map(|next| next.saturating_sub(1))
    }

    /// Before the first event.
    pub const ZERO: Self = Self(0);
    /// After every event: reading at this seq reads the newest state.
    pub const MAX: Self = Self(u64::MAX);

    /// The seq as a number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The next seq (saturating at [`Seq::MAX`]).
    #[must_use]
    pub const fn next(self) -> Self {
        self.plus(1)
    }

    /// The seq before. Before the first event is [`Seq::ZERO`], and nothing is before that.
    #[must_use]
    pub const fn before(self) -> Self {
        // As the text above says, here and below.
        Self(self.0.saturating_sub(1))
    }

    /// The seq so many events later (saturating at [`Seq::MAX`], which is after every event).
    #[must_use]
    pub const fn plus(self, count: u64) -> Self {
        Self(self.0.saturating_add(count))
    }

    /// How many events follow `earlier`, up to this one; 0 if `earlier` is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        // As the text above says.
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// The host's step counter within one stream: one step of the model, from 1; 0 before the first step.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// use acpdb_engine::{At, Turn};
///
/// let then = session.view_at(&At::Turn(Turn(1)))?; // as it was at the end of the first request to the model
/// assert_eq!(then.at(), store.head()?);
/// # Ok(())
/// # }
/// ```
#[derive(
    Archive,
    Serialize,
    Deserialize,
    ToJson,
    FromJson,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
)]
#[serde(transparent)]
pub struct Turn(pub u32);

impl Turn {
    /// The turn as a number.
    pub const fn get(self) -> u32 {
        self.0
    }

    /// Turns from `earlier` to `self`, 0 if `earlier` is later.
    pub const fn since(self, earlier: Self) -> u32 {
        // As the text above says.
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "t{}", self.0)
    }
}

/// A moment in microseconds since 1970-01-01T00:00:00Z.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::Micros;
///
/// assert!(Micros(1_700_000_000_000_000) < store.now());
/// # Ok(())
/// # }
/// ```
#[derive(
    Archive,
    Serialize,
    Deserialize,
    ToJson,
    FromJson,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
    Default,
)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl Micros {
    /// The moment as a number.
    pub const fn get(self) -> i64 {
        self.0
    }
}

/// An item: it can be discarded, superseded or restored. Shown `#812`, or `#812.2` for a second or later part.
///
/// `seq` is the event that recorded it, `part` counts from 1 within that event.
///
/// ```
/// use acpdb_engine::ItemId;
///
/// let item: ItemId = "#7.1".parse()?; // the first item of the event with seq 7; a later one has a larger part
/// assert_eq!(item.to_string(), "#7");
/// # Ok::<(), acpdb_engine::ids::ParseIdError>(())
/// ```
#[derive(
    Archive,
    Serialize,
    Deserialize,
    ToJson,
    FromJson,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Debug,
)]
pub struct ItemId {
    /// The event that recorded the item.
    pub seq: Seq,
    /// The number of the part in that event, from 1.
    pub part: u32,
}

impl ItemId {
    /// The first (usually only) part of the event at `seq`.
    pub const fn first(seq: Seq) -> Self {
        Self { seq, part: 1 }
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.part == 1 { write!(f, "{}", self.seq) } else { write!(f, "{}.{}", self.seq, self.part) }
    }
}

/// A text that is not an id of the expected kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct ParseIdError {
    /// The given text.
    pub text: String,
    /// The expected form, with an example.
    pub expected: &'static str,
}

impl FromStr for ItemId {
    type Err = ParseIdError;

    /// Reads `#812`, `812`, `#812.2` or `812.2`.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let fail = || ParseIdError { text: text.to_owned(), expected: "an item such as #812 or #812.2" };
        let digits = text.strip_prefix('#').unwrap_or(text);
        let (seq, part) = digits.split_once('.').unwrap_or((digits, "1"));
        let seq: u64 = seq.parse().map_err(|_| fail())?;
        let part: u32 = part.parse().map_err(|_| fail())?;
        if seq == 0 || part == 0 {
            return Err(fail());
        }
        Ok(Self { seq: Seq(seq), part })
    }
}

impl FromStr for Seq {
    type Err = ParseIdError;

    /// Reads `#812` or `812`.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let digits = text.strip_prefix('#').unwrap_or(text);
        let fail = || ParseIdError { text: text.to_owned(), expected: "a seq such as #812" };
        digits.parse().map(Self).map_err(|_| fail())
    }
}

/// Declares a newtype over bytes that prints as lower-case hex.
macro_rules! bytes_id {
    ($(#[$doc:meta])* $name:ident, $len:literal) => {
        $(#[$doc])*
        #[derive(Archive, Serialize, Deserialize)]
        #[rkyv(derive(PartialEq, Eq, PartialOrd, Ord))]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        pub struct $name(pub [u8; $len]);

        impl $name {
            /// All bytes zero: stands for "none".
            pub const ZERO: Self = Self([0; $len]);

            /// The bytes.
            pub const fn as_bytes(&self) -> &[u8; $len] {
                &self.0
            }

            /// Whether all bytes are zero.
            pub fn is_zero(&self) -> bool {
                self.0 == [0; $len]
            }

            /// The value that [`Self::to_hex`] writes; `None` for any other text.
            pub fn from_hex(text: &str) -> Option<Self> {
                let mut bytes = [0; $len];
                let (pairs, rest) = text.as_bytes().as_chunks::<2>();
                if pairs.len() != $len || !rest.is_empty() {
                    return None;
                }
                let digit = |byte: u8| match byte {
                    b'0'..=b'9' => Some(byte - b'0'),
                    b'a'..=b'f' => Some(byte - b'a' + 10),
                    _ => None,
                };
                for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
                    *byte = digit(*high)? << 4 | digit(*low)?;
                }
                Some(Self(bytes))
            }

            /// Lower-case hex, all digits.
            pub fn to_hex(&self) -> String {
                use fmt::Write as _;
                self.0.iter().fold(String::with_capacity($len * 2), |mut text, byte| {
                    let _ = write!(text, "{byte:02x}");
                    text
                })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.to_hex())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.to_hex())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.to_hex())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text: std::borrow::Cow<'de, str> = serde::Deserialize::deserialize(deserializer)?;
                let wrong = || serde::de::Error::custom(concat!(stringify!($len), " bytes in lower-case hex are expected"));
                Self::from_hex(&text).ok_or_else(wrong)
            }
        }
    };
}

bytes_id!(
    /// One ordered sequence of events: a session, a project, a user, or the store itself ([`StreamId::STORE`]).
    ///
    /// Derived from the host's name for it (see [`crate::event::stream_id`]), so every feed finds the same stream.
    ///
    /// ```
    /// use acpdb_engine::{StreamId, StreamInfo};
    ///
    /// let id = StreamInfo::session("my-agent", "run-1").id();
    /// assert_eq!(StreamId::from_hex(&id.to_hex()), Some(id));
    /// ```
    StreamId, 16
);
bytes_id!(
    /// Canonical id of a fact, the same from every feed (hook, transcript, live host); zero if it has none.
    Origin, 16
);
bytes_id!(
    /// Id of an event that is the same in every store that has it: an origin before a store's secret is applied to it.
    FactId, 16
);
bytes_id!(
    /// Keyed digest by which calls, texts and values are compared without their bytes.
    Signature, 16
);
bytes_id!(
    /// Salted digest of a body, as FORMAT.md defines it.
    Digest, 32
);
bytes_id!(
    /// Digest of a frame that includes the link of the frame before: a hash chain over the log.
    Link, 32
);
bytes_id!(
    /// Random id of a store, bound into every link.
    StoreId, 16
);

impl StreamId {
    /// The store's own stream: policy for all streams, erasures, notes of damage.
    pub const STORE: Self = Self::ZERO;
}

/// Logical position in the log: `segment << 32 | offset / 16`. Rises over the whole log and stays valid for ever.
#[derive(
    Archive, Serialize, Deserialize, ToJson, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default,
)]
#[serde(transparent)]
pub struct Position(pub u64);

impl Position {
    /// Bytes that one step of the offset stands for.
    pub const GRAIN_BYTES: u64 = 16;

    /// The position of byte `offset` (a multiple of 16) in segment `segment`.
    ///
    /// `None` if the offset is not aligned or too large.
    pub fn new(segment: u32, offset: u64) -> Option<Self> {
        if !offset.is_multiple_of(Self::GRAIN_BYTES) {
            return None;
        }
        let grains = u32::try_from(offset / Self::GRAIN_BYTES).ok()?;
        Some(Self(u64::from(segment) << 32 | u64::from(grains)))
    }

    /// Number of the segment, from 1.
    pub const fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Byte offset within the segment.
    pub const fn offset(self) -> u64 {
        (self.0 & 0xffff_ffff) * Self::GRAIN_BYTES
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.segment(), self.offset())
    }
}

/// A body as an event names it: the event, and its rows in the body table.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// let view = session.view()?;
/// let call = view.history().into_iter().find(|it| it.item == item).ok_or("there")?;
/// let params = call.params.ok_or("a call has parameters")?;
/// assert_eq!(view.text(params)?, r#"{"filePath":"src/main.rs"}"#);
/// # Ok(())
/// # }
/// ```
#[derive(
    Archive, Serialize, Deserialize, ToJson, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug,
)]
pub struct BodyId {
    /// The event that names the body.
    pub seq: Seq,
    /// First of its rows, from 0, counted within the event.
    pub first: u32,
    /// How many rows (chunks); 0 for an empty body, which needs no row.
    pub chunks: u32,
}
