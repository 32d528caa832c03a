//! Whether a request still waits for its served form.
//!
//! ```text
//! waits --begin--> is waited for to the end        waits --give up--> has gone on as it was
//! ```
//!
//! The request that is recorded as sent has to be the sent one. So the worker begins only while the request waits, and a
//! request whose worker has begun does not give up.

use std::sync::atomic::{AtomicU8, Ordering};

const WAITS: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// The hold on one request.
#[derive(Debug, Default)]
pub struct Hold(AtomicU8);

impl Hold {
    /// Begins the work. `false`: the request has given up, and the result would not be sent.
    pub fn begin(&self) -> bool {
        self.step(BEGUN)
    }

    /// Gives up the wait. `false`: the worker has begun, and the request has to wait to the end.
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
