//! Numbers the calls of a stream, since hosts' call ids are not unique.
//!
//! ```text
//! call_1 starts   -> call:call_1#1:start
//! call_1 finishes -> call:call_1#1:finish
//! call_1 starts   -> call:call_1#2:start
//! ```
//!
//! A result belongs to the nearest earlier unanswered call of its id. A result without a call is numbered after those
//! that have one, so that a feed which saw only the result names it alike.

use std::collections::HashMap;

/// Calls of one stream.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    by_id: HashMap<Box<str>, Numbers>,
    open: u64,
}

#[derive(Debug, Default)]
struct Numbers {
    started: u32,
    finished: u32,
    unanswered: Vec<u32>,
}

impl Calls {
    /// Starts a call; gives its number, from 1.
    pub(crate) fn start(&mut self, id: &str) -> u32 {
        let numbers = self.numbers(id);
        numbers.started = numbers.started.saturating_add(1);
        let number = numbers.started;
        numbers.unanswered.push(number);
        self.open = self.open.saturating_add(1);
        number
    }

    /// Ends a call; gives the number of the call that the result belongs to, and whether that call was seen.
    pub(crate) fn finish(&mut self, id: &str) -> (u32, bool) {
        let numbers = self.numbers(id);
        numbers.finished = numbers.finished.saturating_add(1);
        match numbers.unanswered.pop() {
            Some(number) => {
                // It was counted when it was put among the unanswered.
                self.open = self.open.saturating_sub(1);
                (number, true)
            }
            None => (numbers.finished, false),
        }
    }

    /// Calls without result so far.
    pub(crate) fn open(&self) -> u64 {
        self.open
    }

    fn numbers(&mut self, id: &str) -> &mut Numbers {
        self.by_id.entry(Box::from(id)).or_default()
    }
}

/// Origin of the start of a call.
pub(crate) fn start_origin(id: &str, number: u32) -> String {
    format!("call:{id}#{number}:start")
}

/// Origin of the end of a call.
pub(crate) fn finish_origin(id: &str, number: u32) -> String {
    format!("call:{id}#{number}:finish")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_belong_to_the_nearest_unanswered_call() {
        let mut calls = Calls::default();
        assert_eq!([calls.start("a"), calls.start("a"), calls.start("b")], [1, 2, 1]);
        assert_eq!(calls.finish("a"), (2, true));
        assert_eq!(calls.start("a"), 3);
        assert_eq!(calls.finish("a"), (3, true));
        assert_eq!(calls.finish("a"), (1, true));
        assert_eq!(calls.open(), 1);
        assert_eq!(calls.finish("c"), (1, false));
    }
}
