//! Events: any bytes of any kind and version are decoded or refused. A decoded event is encoded to the same bytes, but for keys that
//! were passed over, and decoded to itself.
//!
//! The first two bytes are the kind and version, the rest is the event. A third byte that is odd puts the bytes into a
//! real event of that kind instead, so that validation is met behind its first check.
#![no_main]

use acpdb_engine::codec::payload::{decode, encode};
use acpdb_engine::event::samples;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let [kind, version, choice, rest @ ..] = data else { return };
    let (kind, version, bytes) = if choice % 2 == 0 {
        (u16::from(*kind), u16::from(*version % 4), rest.to_vec())
    } else {
        let payloads = samples::payloads();
        let payload = &payloads[usize::from(*kind) % payloads.len()];
        let (version, mut bytes) = encode(&samples::stamp(), payload).expect("samples are within the limits");
        for pair in rest.chunks_exact(2) {
            let at = usize::from(pair[0]) % bytes.len();
            bytes[at] ^= pair[1];
        }
        (payload.number(), version, bytes)
    };
    let Ok((stamp, payload)) = decode(kind, version, &bytes) else { return };
    let Ok((version, again)) = encode(&stamp, &payload) else { return };
    assert!(again == bytes || again.len() < bytes.len(), "one value has one form");
    let second = decode(payload.number(), version, &again).expect("what was encoded decodes");
    assert_eq!(second, (stamp, payload), "and is the same");
});
