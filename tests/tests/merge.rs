//! Two stores that are merged hold the same: laws over generated histories, and the cases that people meet.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests: a failed step is a failed test"
)]

mod merge {
    mod cases;
    mod laws;
    mod lost;
    mod shredded;
}
