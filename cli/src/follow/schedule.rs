//! Times at which files are looked at: a value that is told the time, so that a sleep of the machine is a case like any other.
//!
//! Its clock only goes forward. A change of the date does not show in it. A sleep shows as no time at all or as a long step, by
//! system.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Shortest pause before a file that is read whole is read again.
const PAUSE_MIN: Duration = Duration::from_millis(200);
/// The same pause, as a multiple of the time that the reading took: this bounds its share of a core.
const PAUSE_FACTOR: u32 = 10;
/// The same factor for the look at all files: no user waits for it.
const LOOK_FACTOR: u32 = 500;
/// Pause before a new folder is looked into again: files may lie in it before it is watched.
const FOLDER_PAUSE: Duration = Duration::from_millis(500);

/// Files to look at, and the times to do so.
#[derive(Debug)]
pub(super) struct Schedule {
    /// Pause between looks at all files.
    every: Duration,
    /// When all files are to be looked at.
    look: Instant,
    /// Files and folders to look at again, and when.
    due: BTreeMap<PathBuf, Instant>,
    /// When files that are read whole may be read again.
    rest: HashMap<PathBuf, Instant>,
}

impl Schedule {
    /// Nothing is due but the look at all files.
    pub(super) fn new(every: Duration, now: Instant) -> Self {
        Self { every, look: now, due: BTreeMap::new(), rest: HashMap::new() }
    }

    /// Time until something is due.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        let due = self.due.values().min().copied().unwrap_or(self.look).min(self.look);
        due.saturating_duration_since(now)
    }

    /// Takes out all paths that are due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<PathBuf> {
        let due: Vec<PathBuf> =
            self.due.iter().filter(|(_, at)| **at <= now).map(|(path, _)| path.clone()).collect();
        for path in &due {
            self.due.remove(path);
        }
        due
    }

    /// Whether all files are to be looked at.
    pub(super) fn is_look_due(&self, now: Instant) -> bool {
        self.look <= now
    }

    /// Makes the look at all files due, as notices were lost.
    pub(super) fn look_at_once(&mut self, now: Instant) {
        self.look = now;
    }

    /// All files were looked at in the time `took`. The first look includes reading them, so that its time is no measure of the
    /// next look.
    pub(super) fn has_looked(&mut self, now: Instant, took: Duration, is_first: bool) {
        self.look = now + self.every.max(took * if is_first { 0 } else { LOOK_FACTOR });
    }

    /// Whether a file may be read now; if not, it becomes due at the time when it may be.
    pub(super) fn may_read(&mut self, path: &Path, now: Instant) -> bool {
        let Some(rest) = self.rest.get(path).filter(|rest| **rest > now) else { return true };
        self.due.insert(path.to_owned(), *rest);
        false
    }

    /// A file was read in the time `took`.
    pub(super) fn has_read(&mut self, path: &Path, now: Instant, took: Duration) {
        self.rest.insert(path.to_owned(), now + PAUSE_MIN.max(took * PAUSE_FACTOR));
    }

    /// A folder was looked into. It is due once more, when it is watched, unless this was the second look; its entry in `rest`
    /// marks the first.
    pub(super) fn has_looked_into(&mut self, folder: &Path, now: Instant) {
        let key = folder.join(".");
        if self.rest.remove(&key).is_none() {
            self.rest.insert(key, now);
            self.due.insert(folder.to_owned(), now + FOLDER_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(30);
    const HOUR: Duration = Duration::from_secs(60 * 60);

    /// One step of a follower; returns how often it read the file, and how often it looked at all files.
    fn turn(schedule: &mut Schedule, path: &Path, now: Instant, took: Duration) -> (u32, u32) {
        let mut read_count = 0;
        for due in schedule.take_due(now) {
            assert_eq!(due, path);
            assert!(schedule.may_read(path, now), "what is due may be read");
            schedule.has_read(path, now, took);
            read_count += 1;
        }
        let is_due = schedule.is_look_due(now);
        if is_due {
            schedule.has_looked(now, took, false);
        }
        (read_count, u32::from(is_due))
    }

    #[test]
    fn after_a_sleep_each_thing_is_done_once() {
        let start = Instant::now();
        let path = Path::new("session.jsonl");
        for sleep in [Duration::ZERO, HOUR, 9 * HOUR, 400 * HOUR] {
            let mut schedule = Schedule::new(EVERY, start);
            schedule.has_looked(start, Duration::from_secs(2), true);
            schedule.has_read(path, start, Duration::from_millis(30));
            // The file changed again at once, and then the machine slept.
            assert!(!schedule.may_read(path, start));
            assert_eq!(schedule.wait(start), Duration::from_millis(300));
            let mut now = start + sleep.max(schedule.wait(start));
            let slept = sleep > EVERY;
            assert_eq!(turn(&mut schedule, path, now, Duration::ZERO), (1, u32::from(slept)), "{sleep:?}");
            // Looks that fell into the sleep are not made up for.
            let mut look_count = 0;
            for _ in 0..10 {
                let wait = schedule.wait(now);
                assert!(wait + Duration::from_millis(300) >= EVERY && wait <= EVERY, "{sleep:?}: {wait:?}");
                now += wait;
                let (read_count, looked) = turn(&mut schedule, path, now, Duration::ZERO);
                assert_eq!(read_count, 0, "{sleep:?}");
                look_count += looked;
            }
            assert_eq!(look_count, 10, "{sleep:?}");
        }
    }

    #[test]
    fn a_file_that_always_changes_costs_a_tenth_of_the_time() {
        let start = Instant::now();
        let path = Path::new("opencode.db");
        for took in [Duration::from_millis(1), Duration::from_millis(70), Duration::from_secs(4)] {
            let mut schedule = Schedule::new(EVERY, start);
            let (mut now, mut spent) = (start, Duration::ZERO);
            while now < start + HOUR {
                assert!(schedule.may_read(path, now));
                now += took;
                spent += took;
                schedule.has_read(path, now, took);
                // The file has changed meanwhile.
                while !schedule.may_read(path, now) {
                    now += schedule.wait(now);
                    schedule.take_due(now);
                    if schedule.is_look_due(now) {
                        schedule.has_looked(now, Duration::ZERO, false);
                    }
                }
            }
            assert!(spent <= now.duration_since(start) / 10, "{took:?}: {spent:?}");
        }
    }

    #[test]
    fn a_look_that_takes_long_is_made_rarer() {
        let now = Instant::now();
        for (took, is_first, expected) in [
            (Duration::from_millis(10), false, EVERY),
            (Duration::from_millis(100), false, Duration::from_secs(50)),
            (Duration::from_secs(60), true, EVERY),
        ] {
            let mut schedule = Schedule::new(EVERY, now);
            assert!(schedule.is_look_due(now));
            schedule.has_looked(now, took, is_first);
            assert_eq!(schedule.wait(now), expected);
            schedule.look_at_once(now);
            assert_eq!(schedule.wait(now), Duration::ZERO);
        }
    }
}
