//! Event payloads to bytes and back: one CBOR map that holds the stamp and the fields of the kind.
//!
//! The envelope's kind says which struct that is; its keys stand beside it in [`crate::event`]. A value has one form only. Bytes in
//! any other form are no payload, and an event with something that a newer program added and that may not be passed over is one of
//! an unknown kind: [`Payload::Unknown`], which encodes back to the very same bytes.

use std::collections::BTreeMap;

use super::{EVENT_BYTES_MAX, EventRef, Frame};
use crate::event::cbor::{CborFault, CborMap, CborReader, CborRecord, put_map};
use crate::event::{self, Event, Payload, Recorded, Stamp};
use crate::failpoints::failpoint;

/// Version that this program writes for every kind.
pub const PAYLOAD_VERSION: u16 = 1;

/// Why the bytes of an event cannot be read, or a payload cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// The bytes are not in the one form of a payload of their kind.
    #[error("{kind} (kind {number}) is malformed at byte {offset} of {bytes}: {reason}")]
    Invalid {
        /// Name of the kind.
        kind: &'static str,
        /// Its number.
        number: u16,
        /// How many bytes there are.
        bytes: usize,
        /// Where the fault is, or just before.
        offset: usize,
        /// The fault.
        reason: &'static str,
    },
    /// The payload is longer than one may be.
    #[error("{kind} has {bytes} bytes, {EVENT_BYTES_MAX} are the limit")]
    TooLarge {
        /// Name of the kind.
        kind: &'static str,
        /// How many bytes it has.
        bytes: usize,
    },
}

macro_rules! code_kinds {
    ($( $number:literal $name:ident $label:literal ),+) => {
        /// Encodes stamp and payload. The same values give the same bytes. Free texts have to be settled: a text's words have no
        /// place in a payload.
        ///
        /// Returns the version to put into the envelope with the bytes.
        ///
        /// # Errors
        /// [`PayloadError::TooLarge`] beyond the longest payload.
        pub fn encode(stamp: &Stamp, payload: &Payload) -> Result<(u16, Vec<u8>), PayloadError> {
            let bytes = match payload {
                $( Payload::$name(value) => written(stamp, value), )+
                Payload::Unknown { version, bytes, .. } => return Ok((*version, bytes.clone())),
            };
            if bytes.len() > EVENT_BYTES_MAX {
                return Err(PayloadError::TooLarge { kind: payload.label(), bytes: bytes.len() });
            }
            Ok((PAYLOAD_VERSION, bytes))
        }

        /// Decodes the bytes of [`encode`]. Unknown kinds come back as [`Payload::Unknown`] with an empty stamp.
        ///
        /// # Errors
        /// [`PayloadError::Invalid`] if the bytes are not in the one form of a payload of that kind.
        pub fn decode(number: u16, version: u16, bytes: &[u8]) -> Result<(Stamp, Payload), PayloadError> {
            let mut decoded = (Stamp::default(), Payload::Unknown { number, version, bytes: Vec::new() });
            decode_into(&mut decoded.0, &mut decoded.1, (number, version), bytes).map(|()| decoded)
        }

        /// As [`decode`], in place of another event: one of the same kind lends the memory of its names and lists. After an error the
        /// place holds nothing of meaning.
        fn decode_into(
            stamp: &mut Stamp,
            payload: &mut Payload,
            (number, version): (u16, u16),
            bytes: &[u8],
        ) -> Result<(), PayloadError> {
            let is_wrong = number == 83 && failpoint!(PinsReadAsUnpins);
            let number = if is_wrong { 84 } else { number };
            let mut from = CborReader::new(bytes);
            let (kind, read) = match (number, version) {
                $(
                    ($number, PAYLOAD_VERSION) => {
                        if !matches!(payload, Payload::$name(_)) {
                            *payload = Payload::$name(CborRecord::blank());
                        }
                        let read = match payload {
                            Payload::$name(value) => read(stamp, value, &mut from),
                            // It was made just now.
                            _ => Ok(()),
                        };
                        ($label, read)
                    }
                )+
                _ => ("", Err(CborFault::Newer)),
            };
            read.or_else(|fault| match fault {
                CborFault::Newer => {
                    *stamp = Stamp::default();
                    *payload = Payload::Unknown { number, version, bytes: bytes.to_vec() };
                    Ok(())
                }
                CborFault::Malformed(reason) => {
                    // The rest of the bytes is what is left.
                    let offset = bytes.len().saturating_sub(from.left());
                    Err(PayloadError::Invalid { kind, number, bytes: bytes.len(), offset, reason })
                }
            })
        }
    };
}
event::for_each_kind!(code_kinds);

/// Room for most payloads.
const ROOM_BYTES: usize = 128;

fn written<T: CborRecord>(stamp: &Stamp, payload: &T) -> Vec<u8> {
    let mut out = Vec::with_capacity(ROOM_BYTES);
    put_map(&mut out, stamp.field_count().saturating_add(payload.field_count()));
    stamp.write_fields(&mut out);
    payload.write_fields(&mut out);
    out
}

fn read<T: CborRecord>(stamp: &mut Stamp, value: &mut T, from: &mut CborReader<'_>) -> Result<(), CborFault> {
    let mut map = CborMap::begin(from)?;
    stamp.read_fields(&mut map, from)?;
    value.read_fields(&mut map, from)?;
    map.end(from)?;
    from.end()
}

/// Decodes events one after the other, each in place of the last one of its kind.
#[derive(Default)]
pub(crate) struct Decoder {
    places: BTreeMap<u16, Recorded>,
}

/// Kinds that a [`Decoder`] keeps a place for.
const PLACE_COUNT_MAX: usize = 64;

impl Decoder {
    /// As [`recorded`]; of a malformed payload the event is one of an unknown kind.
    pub(crate) fn recorded(
        &mut self,
        frame: &Frame,
        event: &EventRef<'_>,
    ) -> (&mut Recorded, Result<(), PayloadError>) {
        let envelope = event.envelope;
        if self.places.len() >= PLACE_COUNT_MAX {
            self.places.clear();
        }
        let place = self.places.entry(envelope.kind).or_insert_with(|| unread(frame, event));
        place.seq = event.seq;
        place.recorded_at = frame.time();
        let Event { stream, origin, host_time, stamp, payload } = &mut place.event;
        (*stream, *origin, *host_time) = (envelope.stream, envelope.origin, envelope.host_time);
        let read = decode_into(stamp, payload, (envelope.kind, envelope.version), event.payload);
        if read.is_err() {
            *place = unread(frame, event);
        }
        (place, read)
    }
}

/// Decodes one event of a frame, with its place.
///
/// # Errors
/// [`PayloadError::Invalid`] if its bytes are not in the one form of a payload of its kind.
pub fn recorded(frame: &Frame, event: &EventRef<'_>) -> Result<Recorded, PayloadError> {
    let envelope = event.envelope;
    let (stamp, payload) = decode(envelope.kind, envelope.version, event.payload)?;
    Ok(at_its_place(frame, event, stamp, payload))
}

/// An event whose payload is malformed, as one of an unknown kind.
pub(crate) fn unread(frame: &Frame, event: &EventRef<'_>) -> Recorded {
    let envelope = event.envelope;
    let (number, version, bytes) = (envelope.kind, envelope.version, event.payload.to_vec());
    at_its_place(frame, event, Stamp::default(), Payload::Unknown { number, version, bytes })
}

fn at_its_place(frame: &Frame, event: &EventRef<'_>, stamp: Stamp, payload: Payload) -> Recorded {
    let envelope = event.envelope;
    Recorded {
        seq: event.seq,
        recorded_at: frame.time(),
        event: Event {
            stream: envelope.stream,
            origin: envelope.origin,
            host_time: envelope.host_time,
            stamp,
            payload,
        },
    }
}

#[cfg(test)]
#[path = "payload_tests.rs"]
mod tests;
