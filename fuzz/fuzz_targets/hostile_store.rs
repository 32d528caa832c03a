//! A stranger's store: traps drawn from the bytes are set in a sound one, and the engine reads and writes it. The bait
//! beside it stays as it is.
#![no_main]

use acpdb_tests::hostile::{Sandbox, traps};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let sandbox = Sandbox::new().expect("a temporary folder");
    let traps = traps(bytes);
    for trap in &traps {
        // One may leave no place for the next.
        let _ = sandbox.set(trap);
    }
    let before = sandbox.bait().expect("the bait can be read");
    sandbox.exercise();
    assert_eq!(sandbox.bait().expect("the bait can be read"), before, "{traps:?}");
});
