//! Files that were imported, as they were then: one that has not changed since costs a look at its folder entry.
//!
//! Kept beside the store's snapshots, by path: size, times and inode of each file, and what its import found. It may be
//! deleted at any moment; then files are read again, which records nothing twice. Only files are kept of which everything was
//! understood, so that a warning is given at each import. A file that changed while or just before it was read is read again.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acpdb_engine::Store;
use acpdb_hosts::import::{Format, ImportReport};
use serde::{Deserialize, Serialize};

use crate::reader::FileReport;

/// Its name beside the snapshots.
const NAME: &str = "imports";
/// Most files that are remembered.
const FILE_COUNT_MAX: usize = 200_000;
/// How coarse the clocks of file systems are: a change so soon after another one may bear the same time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// What tells a file from a changed one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    bytes: u64,
    modified: i128,
    changed: i128,
    inode: u64,
    device: u64,
    /// Bytes and time of a database's write-ahead log: what is new is there first.
    #[serde(default)]
    log: Option<(u64, i128)>,
}

impl Stamp {
    /// The stamp of what lies at `path` now.
    fn at(path: &Path) -> Option<Self> {
        let mut stamp = Self::of(&std::fs::metadata(path).ok()?)?;
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("db")) {
            let log = std::fs::metadata(crate::reader::log_of(path)).ok().and_then(|log| Self::of(&log));
            stamp.log = log.map(|log| (log.bytes, log.modified));
        }
        Some(stamp)
    }

    fn of(metadata: &Metadata) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let nanos = |seconds: i64, nanos: i64| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        metadata.is_file().then(|| Self {
            bytes: metadata.size(),
            modified: nanos(metadata.mtime(), metadata.mtime_nsec()),
            changed: nanos(metadata.ctime(), metadata.ctime_nsec()),
            log: None,
            inode: metadata.ino(),
            device: metadata.dev(),
        })
    }

    /// Whether it is older than this, by more than clocks can be wrong about.
    fn is_settled(&self, at: i128) -> bool {
        let step = i128::try_from(CLOCK_STEP.as_nanos()).unwrap_or_default();
        let log = self.log.map_or(i128::MIN, |(_, modified)| modified);
        self.modified.max(self.changed).max(log).saturating_add(step) < at
    }
}

/// What was in a file.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Held {
    stamp: Stamp,
    /// The options that it was read with.
    how: String,
    /// Absent: nothing to import.
    session: Option<Counts>,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Counts {
    format: String,
    sessions: u64,
    subagents: u64,
    records: u64,
    calls_main: u64,
    calls_subagent: u64,
    failed: u64,
    without_result: u64,
    todo_snapshots: u64,
    todo_deltas: u64,
    duplicates: u64,
    facts: u64,
}

/// The files that are known.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    files: BTreeMap<PathBuf, Held>,
    how: String,
    is_changed: bool,
}

/// A file that is known.
pub(crate) enum Known {
    /// A session, and what was found in it.
    Session(Box<FileReport>),
    /// Of no format.
    Other,
}

/// A file that is about to be read.
#[derive(Debug)]
pub(crate) struct Reading {
    stamp: Option<Stamp>,
}

impl KnownFiles {
    /// What the store remembers. `how`: the options of this import; files that were read with others are not known.
    pub(crate) fn of(store: &Store, how: String) -> Self {
        let files = store.aside(NAME).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { files: files.unwrap_or_default(), how, is_changed: false }
    }

    /// What is known of a file that is as it was.
    pub(crate) fn look(&self, path: &Path) -> Option<Known> {
        let held = self.files.get(&absolute(path)?)?;
        let stamp = Stamp::at(path)?;
        if held.stamp != stamp || held.how != self.how {
            return None;
        }
        let Some(counts) = &held.session else { return Some(Known::Other) };
        Some(Known::Session(Box::new(FileReport {
            path: path.to_owned(),
            report: counts.report()?,
            event_count: 0,
            known_count: counts.facts,
            bytes: stamp.bytes,
            is_unchanged: true,
        })))
    }

    /// Takes note of how a file is before it is read.
    pub(crate) fn begin(path: &Path) -> Reading {
        let now = jiff::Timestamp::now().as_nanosecond();
        let stamp = Stamp::at(path);
        Reading { stamp: stamp.filter(|stamp| stamp.is_settled(now)) }
    }

    /// Remembers a file that was read whole, unless it was changed meanwhile; `None`: of no format.
    pub(crate) fn keep(&mut self, path: &Path, reading: &Reading, report: Option<&FileReport>) {
        let Some(place) = absolute(path) else { return };
        let now = Stamp::at(path);
        let is_whole = report.is_none_or(|file| {
            file.report.is_complete() && file.report.cut.is_none() && file.report.unknown_records.is_empty()
        });
        let stamp = reading.stamp.clone().filter(|stamp| is_whole && now.as_ref() == Some(stamp));
        self.is_changed |= match stamp {
            Some(stamp) if self.files.len() < FILE_COUNT_MAX => {
                let session = report.map(Counts::of);
                self.files.insert(place, Held { stamp, how: self.how.clone(), session });
                true
            }
            _ => self.files.remove(&place).is_some(),
        };
    }

    /// Keeps it all for the next import. That what was read is durable has been seen to.
    pub(crate) fn save(&self, store: &Store) {
        if self.is_changed
            && let Ok(bytes) = serde_json::to_vec(&self.files)
        {
            let _ = store.put_aside(NAME, &bytes);
        }
    }
}

impl Counts {
    fn of(file: &FileReport) -> Self {
        let report = &file.report;
        Self {
            format: report.format.name().to_owned(),
            sessions: report.sessions,
            subagents: report.subagents,
            records: report.records,
            calls_main: report.calls_main,
            calls_subagent: report.calls_subagent,
            failed: report.failed,
            without_result: report.without_result,
            todo_snapshots: report.todo_snapshots,
            todo_deltas: report.todo_deltas,
            duplicates: report.duplicates,
            facts: file.event_count.saturating_add(file.known_count),
        }
    }

    fn report(&self) -> Option<ImportReport> {
        let mut report = ImportReport::new(Format::from_name(&self.format)?);
        report.sessions = self.sessions;
        report.subagents = self.subagents;
        report.records = self.records;
        report.calls_main = self.calls_main;
        report.calls_subagent = self.calls_subagent;
        report.failed = self.failed;
        report.without_result = self.without_result;
        report.todo_snapshots = self.todo_snapshots;
        report.todo_deltas = self.todo_deltas;
        report.duplicates = self.duplicates;
        Some(report)
    }
}

fn absolute(path: &Path) -> Option<PathBuf> {
    std::path::absolute(path).ok()
}
