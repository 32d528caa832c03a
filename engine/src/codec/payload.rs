//! Event payloads to bytes and back.
//!
//! The bytes of an event are the rkyv archive of its stamp and payload struct together. The envelope's kind and version
//! say which struct that is. Reading validates before anything is looked at. This module hands out plain Rust:
//! owned values, or for a fold the frequent kinds borrowed in place.
//!
//! To change a kind: add a struct, a version, and an arm in [`decode`] that upcasts the old one. A kind or version that is
//! not known here decodes to [`Payload::Unknown`] and encodes back to the very same bytes.

use rkyv::rancor::Failure;
use rkyv::util::AlignedVec;
use rkyv::with::Inline;
use rkyv::{Archive, Deserialize, Serialize};

use super::{EventRef, Frame};
use crate::event::{self, Event, Frequent, Payload, Recorded, Stamp};
use crate::failpoints::failpoint;

/// Version that this program writes for every kind.
pub const PAYLOAD_VERSION: u16 = 1;

/// The archived form of one event that is borrowed: the same bytes as of [`Root`].
#[derive(Archive, Serialize)]
struct BorrowedRoot<'a, P: Archive> {
    #[rkyv(with = Inline)]
    stamp: &'a Stamp,
    #[rkyv(with = Inline)]
    payload: &'a P,
}

/// The archived form of one event.
#[derive(Archive, Serialize, Deserialize)]
pub(super) struct Root<P> {
    pub(super) stamp: Stamp,
    pub(super) payload: P,
}

/// Why the bytes of an event cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// The bytes are not a valid archive of their kind.
    #[error("{kind} (kind {number}, version {version}) does not validate: {bytes} bytes")]
    Invalid {
        /// Name of the kind.
        kind: &'static str,
        /// Its number.
        number: u16,
        /// Its version.
        version: u16,
        /// How many bytes there are.
        bytes: usize,
    },
    /// The value cannot be archived (it is larger than an archive can be).
    #[error("{kind} is too large to be archived")]
    TooLarge {
        /// Name of the kind.
        kind: &'static str,
    },
}

macro_rules! encode_kinds {
    ($( $number:literal $name:ident $label:literal ),+) => {
        /// Encodes stamp and payload. The same values give the same bytes.
        ///
        /// Returns the version to put into the envelope with the bytes.
        ///
        /// # Errors
        /// [`PayloadError::TooLarge`] beyond the size of an archive.
        pub fn encode(stamp: &Stamp, payload: &Payload) -> Result<(u16, Vec<u8>), PayloadError> {
            match payload {
                $(
                    Payload::$name(value) => {
                        let root = BorrowedRoot { stamp, payload: value };
                        let bytes = rkyv::to_bytes::<Failure>(&root)
                            .map_err(|_| PayloadError::TooLarge { kind: $label })?;
                        Ok((PAYLOAD_VERSION, bytes.into_vec()))
                    }
                )+
                Payload::Unknown { version, bytes, .. } => Ok((*version, bytes.clone())),
            }
        }

        /// Decodes the bytes of [`encode`], after validating them.
        ///
        /// Costs a copy if `bytes` is not aligned to 16. Unknown kinds and versions come back as [`Payload::Unknown`]
        /// with an empty stamp.
        ///
        /// # Errors
        /// [`PayloadError::Invalid`] if the bytes are not an archive of that kind.
        pub fn decode(number: u16, version: u16, bytes: &[u8]) -> Result<(Stamp, Payload), PayloadError> {
            let is_wrong = number == 83 && failpoint!(UpcastToWrongKind);
            let number = if is_wrong { 84 } else { number };
            match (number, version) {
                $(
                    ($number, 1) => {
                        let root: Root<event::$name> = read(bytes).ok_or(PayloadError::Invalid {
                            kind: $label,
                            number,
                            version,
                            bytes: bytes.len(),
                        })?;
                        Ok((root.stamp, Payload::$name(root.payload)))
                    }
                )+
                _ => Ok((Stamp::default(), Payload::Unknown { number, version, bytes: bytes.to_vec() })),
            }
        }
    };
}
event::for_each_kind!(encode_kinds);

/// Decodes one event of a frame, with its place.
///
/// # Errors
/// [`PayloadError::Invalid`] if its bytes are not an archive of its kind.
pub fn recorded(frame: &Frame, event: &EventRef<'_>) -> Result<Recorded, PayloadError> {
    let envelope = event.envelope;
    let (stamp, payload) = decode(envelope.kind, envelope.version, event.payload)?;
    Ok(Recorded {
        seq: event.seq,
        recorded_at: frame.time(),
        event: Event {
            stream: envelope.stream,
            origin: envelope.origin,
            host_time: envelope.host_time,
            stamp,
            payload,
        },
    })
}

/// An event of a frequent kind, borrowed from its validated bytes. `None` for the other kinds and versions, and for bytes
/// that lie where an archive cannot be read in place: [`decode`] reads all of these.
///
/// # Errors
/// [`PayloadError::Invalid`] if the bytes are not an archive of that kind.
pub(crate) fn frequent(
    number: u16,
    version: u16,
    bytes: &[u8],
) -> Result<Option<Frequent<'_>>, PayloadError> {
    if version != PAYLOAD_VERSION || bytes.as_ptr().align_offset(ALIGN) != 0 {
        return Ok(None);
    }
    let (kind, found) = match number {
        TURN_STARTED => ("turn_started", lend::<event::TurnStarted>(bytes)),
        MESSAGE_RECORDED => ("message_recorded", lend::<event::MessageRecorded>(bytes)),
        MESSAGE_CONTINUED => ("message_continued", lend::<event::MessageContinued>(bytes)),
        TOOL_CALL_STARTED => ("tool_call_started", lend::<event::ToolCallStarted>(bytes)),
        TOOL_CALL_FINISHED => ("tool_call_finished", lend::<event::ToolCallFinished>(bytes)),
        _ => return Ok(None),
    };
    let invalid = || PayloadError::Invalid { kind, number, version, bytes: bytes.len() };
    found.map(Some).ok_or_else(invalid)
}

const TURN_STARTED: u16 = 4;
const MESSAGE_RECORDED: u16 = 16;
const MESSAGE_CONTINUED: u16 = 17;
const TOOL_CALL_STARTED: u16 = 32;
const TOOL_CALL_FINISHED: u16 = 33;

fn lend<'a, T>(bytes: &'a [u8]) -> Option<Frequent<'a>>
where
    T: Archive + 'a,
    T::Archived: for<'v> rkyv::bytecheck::CheckBytes<rkyv::api::high::HighValidator<'v, Failure>> + 'a,
    Frequent<'a>: From<&'a T::Archived>,
{
    // The caller decodes bytes that it cannot borrow, and reports bytes that do not decode.
    let root = rkyv::access::<ArchivedRoot<T>, Failure>(bytes).ok()?;
    Some(Frequent::from(&root.payload))
}

/// Alignment that archives need: the largest of any archived type.
const ALIGN: usize = 16;

fn read<T>(bytes: &[u8]) -> Option<T>
where
    T: Archive,
    T::Archived: for<'a> rkyv::bytecheck::CheckBytes<rkyv::api::high::HighValidator<'a, Failure>>
        + Deserialize<T, rkyv::api::high::HighDeserializer<Failure>>,
{
    if bytes.as_ptr().align_offset(ALIGN) == 0 {
        // The caller reports bytes that are no such payload, here and below.
        return rkyv::from_bytes::<T, Failure>(bytes).ok();
    }
    let mut aligned: AlignedVec<ALIGN> = AlignedVec::with_capacity(bytes.len());
    aligned.extend_from_slice(bytes);
    // As above.
    rkyv::from_bytes::<T, Failure>(&aligned).ok()
}

#[cfg(test)]
mod tests {
    use expect_test::expect_file;
    use proptest::prelude::*;

    use super::*;
    use crate::event::{KIND_LABELS, samples};
    use crate::fold::{Place, World};
    use crate::ids::{Micros, Seq, StreamId};

    /// The bytes of each kind are frozen: an existing line of this list must never change.
    #[test]
    fn every_kind_has_its_golden_bytes() {
        let mut list = String::new();
        for payload in samples::payloads() {
            let (version, bytes) = encode(&samples::stamp(), &payload).unwrap();
            let digest = blake3::hash(&bytes).to_hex();
            let line = format!(
                "{:>3} v{version} {:<20} {:>4} B {}\n",
                payload.number(),
                payload.label(),
                bytes.len(),
                &digest[..32]
            );
            list.push_str(&line);
        }
        expect_file!["../../tests/golden/payloads-v1.txt"].assert_eq(&list);
    }

    #[test]
    fn every_kind_comes_back_and_none_is_missing() {
        let payloads = samples::payloads();
        let numbers: Vec<u16> = payloads.iter().map(Payload::number).collect();
        let all: Vec<u16> = KIND_LABELS.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, all);
        for payload in payloads {
            let (version, bytes) = encode(&samples::stamp(), &payload).unwrap();
            let (stamp, back) = decode(payload.number(), version, &bytes).unwrap();
            assert_eq!((stamp, back), (samples::stamp(), payload));
        }
    }

    /// Borrowed and owned events are equal: a fold of either ends alike.
    #[test]
    fn a_frequent_kind_is_lent_as_it_is_decoded() {
        let mut lent = Vec::new();
        for payload in samples::payloads() {
            let (version, bytes) = encode(&samples::stamp(), &payload).unwrap();
            let mut aligned: AlignedVec<ALIGN> = AlignedVec::new();
            aligned.extend_from_slice(&bytes);
            let place = Place { seq: Seq(7), recorded_at: Micros(9), host_time: None };
            let [mut owned, mut borrowed] = [World::default(), World::default()];
            let Some(frequent) = frequent(payload.number(), version, &aligned).unwrap() else {
                assert!(Frequent::of(&payload).is_none(), "{}", payload.label());
                continue;
            };
            lent.push(payload.label());
            borrowed.replay(place, StreamId([1; 16]), &frequent);
            owned.replay(place, StreamId([1; 16]), &Frequent::of(&payload).unwrap());
            let state = |world: &World| format!("{:?}", world.stream(StreamId([1; 16])).unwrap());
            assert_eq!(state(&borrowed), state(&owned));
            let (cut, _) = aligned.split_at(aligned.len() - 16);
            assert!(super::frequent(payload.number(), version, cut).is_err());
        }
        assert_eq!(
            lent,
            [
                "turn_started",
                "message_recorded",
                "message_continued",
                "tool_call_started",
                "tool_call_finished"
            ]
        );
    }

    #[test]
    fn kinds_and_versions_to_come_are_kept_as_they_are() {
        for (number, version) in [(114, 1), (4, 2), (9999, 7)] {
            let (_, payload) = decode(number, version, b"whatever").unwrap();
            assert_eq!(payload.number(), number);
            assert_eq!(encode(&Stamp::default(), &payload), Ok((version, b"whatever".to_vec())));
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_decoding_panic(kind in 0_usize..37, cut in 0_usize..600, flips in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
            let payloads = samples::payloads();
            let payload = &payloads[kind % payloads.len()];
            let (version, mut bytes) = encode(&samples::stamp(), payload).unwrap();
            for (place, with) in flips {
                let place = place.index(bytes.len());
                bytes[place] ^= with;
            }
            bytes.truncate(bytes.len().saturating_sub(cut % 40));
            let _ = decode(payload.number(), version, &bytes);
        }
    }
}
