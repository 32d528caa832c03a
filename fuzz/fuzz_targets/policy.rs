//! Policy files: any text is a policy or is refused with a reason; a policy that was read is written and read as itself.
#![no_main]

use acpdb_engine::fold::Policy;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for policy in [Policy::from_json(&text), Policy::from_toml(&text)].into_iter().flatten() {
        let again = Policy::from_json(&policy.to_json()).expect("what was written can be read");
        assert_eq!(again, policy, "and is the same policy");
    }
});
