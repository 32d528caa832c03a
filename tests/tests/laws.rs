//! Laws that hold for every session, tried on generated ones. The judges are `acpdb_engine::verify` and a second, naive
//! implementation of the rules.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::cast_possible_truncation,
    reason = "tests: a failed step is a failed test"
)]

mod laws {
    mod differential;
    mod encryption;
    mod fold;
    mod imports;
    mod store;
}
