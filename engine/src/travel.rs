//! Events as they go from one store to another: nothing in them is keyed with a store's secret, and no seq is left.
//!
//! ```text
//! {"schema":"acpdb.jsonl/2","store":"..","head":812}                               Heading, the first line
//! {"schema":"acpdb.parcel/1","stream":"..","id":"..","event":{..},"bodies":[..]}    Parcel, one an event, in the order of the log
//! {"schema":"acpdb.gap/1","detail":".."}                                           Gap: events that were damaged
//! {"schema":"acpdb.end/1","events":790}                                            End, or the file was cut
//! ```
//!
//! A seq in a payload (of an item, of a point) is a place in `refs`, from 1: `{"seq":1,"part":2}` is the second part of the event that
//! the first ref names. Bodies are rows, as in the log, except the free texts: the payload spells these out.
//!
//! Pure: the store makes parcels and takes them in.

use serde::{Deserialize, Serialize};

use crate::entry::Bytes;
use crate::event::{Actor, Body, Payload};
use crate::ids::{FactId, Micros, Seq, Signature, StoreId, StreamId};

/// Schema of the heading that this program writes.
pub const HEADING: &str = "acpdb.jsonl/2";
/// Schema of a parcel.
pub const PARCEL: &str = "acpdb.parcel/1";
/// Schema of a gap.
pub const GAP: &str = "acpdb.gap/1";
/// Schema of the end.
pub const END: &str = "acpdb.end/1";

/// A payload alone, in the form in which it travels.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Told(#[serde(with = "crate::event::told")] pub Payload);

/// The first line of a file of parcels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Heading {
    /// The store.
    pub store: StoreId,
    /// The last seq that was looked at.
    pub head: Seq,
}

/// The last line of a file of parcels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct End {
    /// Parcels before it.
    pub events: u64,
}

/// Events that could not be read where they come from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Gap {
    /// The known facts about them, in words.
    pub detail: String,
}

/// An event that another one names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct FactRef {
    /// Its stream.
    pub stream: StreamId,
    /// Its id; zeros: before all of its stream.
    pub id: FactId,
}

/// One row of an event's bodies.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Row {
    /// Its bytes.
    Bytes(Bytes),
    /// So many bytes that were erased.
    Erased(u32),
    /// So many bytes that are damaged.
    Damaged(u32),
}

/// An event on its way.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Parcel {
    /// Its stream.
    pub stream: StreamId,
    /// Its id, the same in all stores.
    pub id: FactId,
    /// Where it stands in the store that it comes from.
    pub seq: Seq,
    /// When it was recorded there.
    pub recorded_at: Micros,
    /// The host's time. An act, or an event that was recorded as it happened, has the time of its first recording; a host's record
    /// without a time has none here either.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Micros>,
    /// The actor that made it happen.
    pub actor: Actor,
    /// Whether a host reported it, and that report was the first news of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub told: bool,
    /// The host's record, as a template over the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire: Option<Body>,
    /// The events that the payload names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refs: Vec<FactRef>,
    /// Patterns by which an act found its items, by the signature that stands for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub patterns: Vec<(Signature, String)>,
    /// The event itself.
    #[serde(with = "crate::event::told")]
    pub event: Payload,
    /// Its bodies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bodies: Vec<Row>,
    /// Its free texts, such as a title, that are on record as erased: the place of each among the event's free texts, from 0, and its
    /// length in bytes. In the event itself a word stands for each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub erased_texts: Vec<(u32, u64)>,
}

/// A piece of a file of parcels, in order.
#[derive(Clone, PartialEq, Debug)]
pub enum Piece {
    /// The store that the events come from.
    Heading(Heading),
    /// An event.
    Parcel(Box<Parcel>),
    /// Events that could not be read.
    Gap(Gap),
    /// All is told.
    End(End),
}

impl Parcel {
    /// Whether it was recorded as it happened, so that the time of its first recording is its own.
    pub(crate) fn happened_when_recorded(&self) -> bool {
        self.time == Some(self.recorded_at)
    }

    /// The event that the payload means by a seq: its place in the list of names, from 1.
    pub(crate) fn named(&self, seq: Seq) -> Option<&FactRef> {
        // A place beyond the length of any list names nothing.
        self.refs.get(usize::try_from(seq.get()).ok()?.checked_sub(1)?)
    }

    /// Whether no context depends on it: it makes no branch.
    pub fn is_beside(&self) -> bool {
        is_beside(&self.event, self.actor)
    }
}

/// Whether no context depends on an event.
pub fn is_beside(payload: &Payload, actor: Actor) -> bool {
    match payload {
        Payload::SessionOpened(_) | Payload::SessionChanged(_) | Payload::HostRecorded(_) => true,
        // A note by a merge: the policy under which its session was recorded elsewhere.
        Payload::PolicySet(_) => actor == Actor::Policy,
        _ => false,
    }
}

/// Name of a branch that a merge makes of a session: `NAME~1f2e3d4c`.
pub fn branch_name(session: &str, differs: FactId) -> String {
    let digits = differs.to_hex();
    format!("{session}~{}", digits.get(..BRANCH_DIGITS).unwrap_or_default())
}

/// The name of the session that a branch was made of, from the branch's name; other names are their own.
pub fn base_name(name: &str) -> &str {
    match name.rsplit_once('~') {
        Some((base, digits))
            if !base.is_empty()
                && digits.len() == BRANCH_DIGITS
                && digits.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f')) =>
        {
            base
        }
        _ => name,
    }
}

const BRANCH_DIGITS: usize = 8;

/// The other forms of a row.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Special {
    Hex(String),
    Erased(u32),
    Damaged(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form<'t> {
    #[serde(borrow)]
    Text(std::borrow::Cow<'t, str>),
    Special(Special),
}

impl Serialize for Row {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let special = match self {
            Self::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => return serializer.serialize_str(text),
                Err(_) => Special::Hex(hex(bytes)),
            },
            Self::Erased(bytes) => Special::Erased(*bytes),
            Self::Damaged(bytes) => Special::Damaged(*bytes),
        };
        special.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Row {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Form::deserialize(deserializer)? {
            Form::Text(text) => Self::Bytes(text.as_bytes().into()),
            Form::Special(Special::Hex(digits)) => {
                let bytes =
                    from_hex(&digits).ok_or_else(|| serde::de::Error::custom("hex digits are expected"))?;
                Self::Bytes(bytes.into())
            }
            Form::Special(Special::Erased(bytes)) => Self::Erased(bytes),
            Form::Special(Special::Damaged(bytes)) => Self::Damaged(bytes),
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| u8::try_from(char::from(byte).to_digit(16)?).ok();
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    if rest.is_empty() { bytes.collect() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::samples;

    #[test]
    fn names_of_branches_are_told_from_others() {
        let branch = branch_name("s", FactId([0x1f; 16]));
        assert_eq!((branch.as_str(), base_name(&branch)), ("s~1f1f1f1f", "s"));
        for name in ["s", "s~", "~1f1f1f1f", "s~1f1f1f1", "s~1F1F1F1F", "s~xxxxxxxx"] {
            assert_eq!(base_name(name), name);
        }
    }

    #[test]
    fn rows_come_back_whatever_their_bytes() {
        let rows = vec![
            Row::Bytes(b"a \"text\"\n".as_slice().into()),
            Row::Bytes([0, 255].as_slice().into()),
            Row::Erased(9),
            Row::Damaged(1),
        ];
        let json = serde_json::to_string(&rows).unwrap();
        assert_eq!(json, r#"["a \"text\"\n",{"hex":"00ff"},{"erased":9},{"damaged":1}]"#);
        assert_eq!(serde_json::from_str::<Vec<Row>>(&json).unwrap(), rows);
        assert!(serde_json::from_str::<Row>(r#"{"hex":"0"}"#).is_err());
    }

    #[test]
    fn a_payload_of_every_kind_comes_back_from_json() {
        for payload in samples::payloads().into_iter().filter(|it| !matches!(it, Payload::Unknown { .. })) {
            let json = serde_json::to_string(&Told(payload.clone())).unwrap();
            let Told(read) = serde_json::from_str(&json).unwrap_or_else(|error| panic!("{error}: {json}"));
            assert_eq!(read, payload, "{json}");
        }
    }
}
