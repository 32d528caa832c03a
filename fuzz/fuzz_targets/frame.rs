//! Frames of the log: any bytes are decoded or refused, and an encoded frame decodes to itself.
//!
//! The first byte chooses. Even: the rest is taken for a frame as it is. Odd: the rest is cut into events, encoded,
//! sealed and decoded again; that reaches code that random bytes cannot reach, as they never guess a checksum. One bit
//! of the sealed frame is then flipped, and must be noticed.
#![no_main]

use std::sync::Arc;

use acpdb_engine::codec::{EncodedBody, EncodedEvent, Envelope, Frame, decode_frame, encode_frame};
use acpdb_engine::ids::{Link, Micros, Origin, Position, Seq, StoreId, StreamId};
use libfuzzer_sys::fuzz_target;

const STORE: StoreId = StoreId([7; 16]);

fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    if choice % 2 == 0 {
        if let Ok(frame) = decode_frame(rest, STORE) {
            touch(&frame);
        }
    } else {
        round_trip(usize::from(*choice), rest);
    }
});

/// Reads every field that a reader reads.
fn touch(frame: &Frame) {
    let rows: usize = frame.events().map(|event| event.rows().count()).sum();
    assert_eq!(rows, frame.rows().count(), "each row belongs to one event");
}

fn round_trip(flip: usize, data: &[u8]) {
    let events: Vec<EncodedEvent> = data.chunks(48).map(event).collect();
    let Ok(mut prepared) = encode_frame(&events) else { return };
    let position = Position(1 << 32 | 256);
    let (bytes, _) = prepared.seal(Seq(1), (Micros(1), Micros(1)), position, position, STORE, Link([0; 32]));
    let frame = decode_frame(bytes, STORE).expect("what was encoded decodes");
    touch(&frame);
    let found: Vec<_> = frame.events().map(|event| (event.envelope, event.payload.to_vec())).collect();
    let given: Vec<_> = events.iter().map(|event| (event.envelope, event.payload.clone())).collect();
    assert_eq!(found, given, "events come back as they went");

    let mut damaged = bytes.to_vec();
    let at = flip * 131 % damaged.len();
    damaged[at] ^= 1 << (flip % 8);
    assert!(
        decode_frame(&damaged, STORE).is_err(),
        "a flipped bit at byte {at} of {} goes unnoticed",
        damaged.len()
    );
}

/// An event made of a few bytes: ids, a payload, and a body if there is something to put in.
fn event(bytes: &[u8]) -> EncodedEvent {
    let field = |from: usize| {
        let mut id = [0; 16];
        for (slot, byte) in id.iter_mut().zip(bytes.iter().skip(from)) {
            *slot = *byte;
        }
        id
    };
    let number = u16::from(bytes.first().copied().unwrap_or(0));
    let payload = bytes.iter().skip(2).copied().take(usize::from(number % 24)).collect();
    let body: Arc<[u8]> = bytes.iter().skip(20).copied().collect();
    let bodies =
        if body.is_empty() { Vec::new() } else { vec![EncodedBody::New { bytes: body, salt: [9; 16] }] };
    let envelope = Envelope {
        kind: number,
        version: 1,
        stream: StreamId(field(4)),
        origin: Origin(field(12)),
        host_time: bytes.get(1).map(|byte| Micros(i64::from(*byte))),
    };
    EncodedEvent { envelope, payload, bodies }
}
