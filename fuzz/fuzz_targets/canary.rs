//! Must crash: a wrong claim that a fuzzer refutes at once. If this target ever runs clean, nothing that the others say counts.
#![no_main]

use acpdb_engine::fold::Policy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    // Wrong on purpose: the byte 'a' in second place is no reason to have no policy.
    assert!(data.get(1) != Some(&b'a'), "the canary sings, as it must");
    let _ = Policy::from_json(&String::from_utf8_lossy(data));
});
