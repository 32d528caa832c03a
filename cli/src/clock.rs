//! The clock that users set, which may stand anywhere: a time that no calendar has is no reason to panic.

use acpdb_engine::ids::Micros;
use acpdb_engine::storage::{Clock as _, SystemClock};

/// The time, in the form that questions take. A clock outside of the calendar gives the calendar's first or last time.
pub(crate) fn now() -> Micros {
    Micros(timestamp().as_microsecond())
}

/// As [`now`], for texts.
pub(crate) fn timestamp() -> jiff::Timestamp {
    clamped(SystemClock::new().now())
}

fn clamped(now: Micros) -> jiff::Timestamp {
    let end = if now < Micros(0) { jiff::Timestamp::MIN } else { jiff::Timestamp::MAX };
    jiff::Timestamp::from_microsecond(now.get()).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock beyond the year 9999 made every command panic.
    #[test]
    fn a_clock_outside_of_the_calendar_stands_at_its_end() {
        assert_eq!(clamped(Micros(i64::MAX)), jiff::Timestamp::MAX);
        assert_eq!(clamped(Micros(i64::MIN)), jiff::Timestamp::MIN);
        assert_eq!(clamped(Micros(1)).as_microsecond(), 1);
        assert!(now().get() > 0);
    }
}
