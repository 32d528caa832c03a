//! Whether a request still waits for what is served.
//!
//! ```text
//! waits --begin--> is waited for to the end        waits --give up--> has gone on as it was
//! ```
//!
//! What is recorded as sent has to be what is sent. So the worker begins only while the request waits, and a request whose worker has
//! begun does not give up.

use std::sync::atomic::{AtomicU8, Ordering};

const WAITS: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// The hold on one request.
#[derive(Debug, Default)]
pub struct Hold(AtomicU8);

impl Hold {
    /// Whether what is made from now on will be sent.
    pub fn begin(&self) -> bool {
        self.step(BEGUN)
    }

    /// Whether the request may go on as it was.
    pub fn give_up(&self) -> bool {
        self.step(GIVEN_UP)
    }

    fn step(&self, to: u8) -> bool {
        self.0.compare_exchange(WAITS, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_the_two_has_its_way() {
        let hold = Hold::default();
        assert!(hold.begin() && !hold.give_up());
        let hold = Hold::default();
        assert!(hold.give_up() && !hold.begin());
    }
}
