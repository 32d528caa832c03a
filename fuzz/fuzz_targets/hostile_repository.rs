//! A stranger's repository with a hook running in it: what it holds and what a host says there are drawn from the bytes. The hook ends well, tells
//! the model nothing, and changes nothing there. `ACPDB_TEST_BINARY` names the program.
#![no_main]

use acpdb_tests::repository::{judge, prepare};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (sandbox, told) = prepare(bytes).expect("a temporary folder");
    judge(&sandbox, &told).expect("the program, and files that can be read");
});
