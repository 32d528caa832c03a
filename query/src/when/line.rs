//! The line of a session's times, along which a moment is looked for.
//!
//! ```text
//! events, by seq   1      2      3      4      5      6
//! host's clock     9:00   -      9:05   8:59   9:07   -
//! the line         9:00   9:00   9:05   9:05   9:07   when it was recorded
//! ```
//!
//! A session is dated by its host's clock: a session that was imported today happened when its host says, not today. Order is by
//! seq, never by time, and clocks run backwards at times. So the line is a running maximum: an event without a time, or with a time
//! from before the line, counts as the moment that the line has come to. A clock that was ahead for a while would hold the line up
//! for all later events; so the line runs through the longest row of times that never falls, and times off that row move nothing.
//! An event that was recorded behind the host's last time (an act of a person, say) counts from its recording; so does every event
//! of a session whose host gives no times.

use std::sync::{Arc, Mutex};

use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::locks::steady;
use acpdb_engine::{Error, Store, store::Glimpse};

use crate::lineage::lineage;

/// The clock that a session's times are of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionClock {
    /// The host's, as it wrote them down.
    Host,
    /// The store's: the times of recording.
    Recorded,
}

impl SessionClock {
    /// Its name for people.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Host => "the host's clock",
            Self::Recorded => "when things were recorded",
        }
    }
}

/// An event on the way through time.
#[derive(Clone, Copy, Debug)]
struct TimedEvent {
    seq: Seq,
    host: Option<Micros>,
    recorded: Micros,
}

/// The last seq of a session at a moment, `None` if all of the session is older; and the clock that says so.
///
/// # Errors
/// If the log cannot be read.
pub(super) fn seq_at(
    store: &Store,
    stream: StreamId,
    moment: Micros,
) -> Result<(Option<Seq>, SessionClock), Error> {
    let mut found = (None, SessionClock::Recorded);
    for part in lineage(store, stream, Seq::MAX)?.iter().rev() {
        let (later, clock) = first_later(store, part.stream, part.to, moment)?;
        let is_own = part.stream == stream;
        // A history that a fork shares ends where it left.
        let Some(last) = later.map(Seq::before).or((!is_own).then_some(part.to)) else {
            return Ok((None, clock));
        };
        found = (Some(found.0.map_or(last, |known: Seq| known.min(last))), clock);
        // If the fork began later than the moment, the history that it shares gives the seq.
        if last >= part.forked {
            break;
        }
    }
    Ok(found)
}

/// The first event of a stream, up to a seq, that is later than a moment.
fn first_later(
    store: &Store,
    stream: StreamId,
    to: Seq,
    moment: Micros,
) -> Result<(Option<Seq>, SessionClock), Error> {
    let stamps = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&stamps);
    let look = move |glimpse: &Glimpse<'_>| {
        steady(&seen).push(TimedEvent {
            seq: glimpse.seq(),
            host: glimpse.host_time(),
            recorded: glimpse.recorded_at(),
        });
        false
    };
    for damaged in store.stream_events(stream, Seq(1), to.min(store.head()?))?.wanted(look) {
        match damaged {
            // Damage costs the time of the damaged event, not the answer.
            Ok(_) | Err(Error::Corrupt { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    let stamps = steady(&stamps);
    Ok(cut(&stamps, moment))
}

/// The first of some events, in order of their seqs, that is later than a moment.
fn cut(stamps: &[TimedEvent], moment: Micros) -> (Option<Seq>, SessionClock) {
    let dated = stamps.iter().rposition(|stamp| stamp.host.is_some()).map_or(0, |last| last + 1);
    let clock = if dated > 0 { SessionClock::Host } else { SessionClock::Recorded };
    let (by_host, behind) = stamps.split_at(dated);
    let host = by_host.iter().filter_map(|stamp| Some((stamp.seq, stamp.host?)));
    let recorded = behind.iter().map(|stamp| (stamp.seq, stamp.recorded));
    let mut is_first = true;
    for row in [rising(host.collect()), rising(recorded.collect())] {
        for (seq, time) in row {
            if time > moment {
                // Events before the first known time count as of that time.
                let first = stamps.first().map(|stamp| stamp.seq).filter(|_| is_first);
                return (first.or(Some(seq)), clock);
            }
            is_first = false;
        }
    }
    (None, clock)
}

/// The longest row of times that never falls; of equally long rows, the one through the later times.
fn rising(times: Vec<(Seq, Micros)>) -> Vec<(Seq, Micros)> {
    if times.is_sorted_by_key(|(_, time)| *time) {
        return times;
    }
    // From the end: the longest row that never rises. `tips` holds, for each length, the latest time in which such a row ends.
    let mut tips: Vec<usize> = Vec::new();
    let mut next: Vec<Option<usize>> = vec![None; times.len()];
    let time_at = |place: usize| times.get(place).map_or(Micros(i64::MIN), |(_, time)| *time);
    for (place, (_, time)) in times.iter().enumerate().rev() {
        let length = tips.partition_point(|tip| time_at(*tip) >= *time);
        if let Some(link) = next.get_mut(place) {
            *link = length.checked_sub(1).and_then(|shorter| tips.get(shorter).copied());
        }
        match tips.get_mut(length) {
            Some(tip) => *tip = place,
            None => tips.push(place),
        }
    }
    let mut row = Vec::with_capacity(tips.len());
    let mut at = tips.last().copied();
    while let Some(place) = at {
        row.extend(times.get(place).copied());
        at = next.get(place).copied().flatten();
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stamps(hosts: &[Option<i64>]) -> Vec<TimedEvent> {
        let stamp = |(place, host): (usize, &Option<i64>)| {
            let at = i64::try_from(place).unwrap();
            TimedEvent { seq: Seq(place as u64 + 1), host: host.map(Micros), recorded: Micros(1000 + at) }
        };
        hosts.iter().enumerate().map(stamp).collect()
    }

    /// A session that begins with a record from the future was empty at every moment before that, although its turns had
    /// begun. The line goes through the times that most events agree on.
    #[test]
    fn a_clock_that_runs_backwards_holds_nothing_up() {
        let some = |times: &[i64]| times.iter().map(|time| Some(*time)).collect::<Vec<_>>();
        for (times, moments, last) in [
            // In order; events of one moment stay together.
            (some(&[10, 20, 20, 30]), vec![9, 10, 20, 29, 30], vec![0, 1, 3, 3, 4]),
            // One record from the future, at first or within.
            (some(&[99, 10, 20, 30]), vec![9, 10, 25, 99], vec![0, 2, 3, 4]),
            (some(&[10, 99, 20, 30]), vec![9, 10, 25, 99], vec![0, 2, 3, 4]),
            // A record from the past counts as the event before it.
            (some(&[10, 20, 1, 30]), vec![1, 10, 20, 30], vec![0, 1, 3, 4]),
            // A little out of order: the running maximum.
            (some(&[10, 30, 29, 50, 49]), vec![29, 30, 49, 50], vec![1, 3, 3, 5]),
            // Set back for good: the longer row is the clock.
            (some(&[80, 81, 10, 11, 12, 13]), vec![9, 10, 12, 13, 50], vec![0, 3, 5, 6, 6]),
            // No time: as the event before; at the end, the time of recording (1004 here).
            (vec![None, Some(10), None, Some(30), None], vec![9, 10, 30, 1003, 1004], vec![0, 3, 4, 4, 5]),
            (vec![None, None], vec![999, 1000, 1001], vec![0, 1, 2]),
        ] {
            let stamps = stamps(&times);
            let found = moments.iter().map(|moment| {
                cut(&stamps, Micros(*moment)).0.map_or(stamps.len() as u64, |later| later.get() - 1)
            });
            assert_eq!(found.collect::<Vec<_>>(), last, "{times:?} at {moments:?}");
        }
        assert_eq!(cut(&stamps(&[None, Some(1)]), Micros(0)).1, SessionClock::Host);
        assert_eq!(cut(&stamps(&[None]), Micros(0)).1, SessionClock::Recorded);
    }

    proptest::proptest! {
        /// A later moment never shows less, and if the clock is right, each event is there from its time on.
        #[test]
        fn later_moments_show_more(hosts in proptest::collection::vec(proptest::option::of(0_i64..40), 0..24)) {
            let stamps = stamps(&hosts);
            let at = |moment| cut(&stamps, Micros(moment)).0.map_or(u64::MAX, Seq::get);
            for moment in 0..1100 {
                proptest::prop_assert!(at(moment) <= at(moment + 1));
            }
            proptest::prop_assert_eq!(at(2000), u64::MAX);
        }
    }
}
