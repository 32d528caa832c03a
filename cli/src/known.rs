//! Files that were imported, with their stamps: a file that has not changed since costs one look at its folder entry.
//!
//! Kept beside the store's snapshots, by path: size, times and inode of each file, and the result of its import. The list may be
//! deleted at any moment; then files are read again, which records nothing twice. A file that was not understood whole is
//! remembered for `acpdb info --hosts`, and read at each import, so that a warning is given. A file that changed while or just before it
//! was read is read again.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acpdb_engine::Store;
use acpdb_hosts::import::ImportReport;
use serde::{Deserialize, Serialize};

use crate::reader::FileReport;

/// The name of the list beside the snapshots.
const NAME: &str = "imports";
/// Most files that are remembered.
const FILE_COUNT_MAX: usize = 200_000;
/// How long a subagent's file is read again while the call that started it is in no file.
const CALL_LATE_MAX: Duration = Duration::from_secs(60 * 60);
/// Step of the clocks of file systems: two changes within one step may have the same time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// Values that change with the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileStamp {
    bytes: u64,
    modified: i128,
    changed: i128,
    inode: u64,
    device: u64,
    /// Bytes and time of a database's write-ahead log, where new data is first, or of the files that belong to this one.
    #[serde(default)]
    log: Option<(u64, i128)>,
}

impl FileStamp {
    /// The stamp of the file at `path` now.
    pub(crate) fn at(path: &Path) -> Option<Self> {
        // A file without a stamp is read.
        let mut stamp = Self::of(&std::fs::metadata(path).ok()?)?;
        if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("db")) {
            // A database may have no write-ahead log.
            let log = std::fs::metadata(crate::reader::log_of(path)).ok().and_then(|log| Self::of(&log));
            stamp.log = log.map(|log| (log.bytes, log.modified));
        } else if let Some(crate::reader::StorageFile::Session(session)) = crate::reader::stored(path) {
            stamp.log = Some(session.stamp());
        }
        Some(stamp)
    }

    /// Whether the file changed within `time` before now, or after now by its clock.
    pub(crate) fn is_within(&self, time: Duration) -> bool {
        self.is_within_at(time, now())
    }

    fn is_within_at(&self, time: Duration, now: i128) -> bool {
        let step = i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        self.modified.saturating_add(step) > now
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

    /// Whether the last change is before now by more than the step of clocks.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_settled_at(now())
    }

    fn is_settled_at(&self, now: i128) -> bool {
        let step = i128::try_from(CLOCK_STEP.as_nanos()).unwrap_or_default();
        let log = self.log.map_or(i128::MIN, |(_, modified)| modified);
        self.modified.max(self.changed).max(log).saturating_add(step) < now
    }
}

/// Nanoseconds since 1970, by the clock that people set.
fn now() -> i128 {
    crate::clock::timestamp().as_nanosecond()
}

/// The content of a file when it was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct FileContent {
    stamp: FileStamp,
    /// The options with which the file was read.
    how: String,
    /// Absent: the file has nothing to import.
    session: Option<KnownCounts>,
    /// The file was not understood whole.
    #[serde(default)]
    is_partly: bool,
    /// The file changed while it was read, or just before.
    #[serde(default)]
    is_unsettled: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct KnownCounts {
    #[serde(flatten)]
    report: ImportReport,
    facts: u64,
    /// The time of the reading, in microseconds since 1970.
    #[serde(default)]
    read: i64,
}

/// The content of one host's files when they were read.
#[derive(Debug, Default)]
pub(crate) struct HostFiles {
    pub(crate) files: u64,
    /// The time at which one of the files was read last, in microseconds since 1970.
    pub(crate) read: i64,
    pub(crate) versions: BTreeSet<String>,
    pub(crate) unknown: BTreeMap<String, u64>,
    pub(crate) tables: BTreeSet<String>,
}

/// All known files.
#[derive(Debug, Default)]
pub(crate) struct KnownFiles {
    files: BTreeMap<PathBuf, FileContent>,
    how: String,
    is_changed: bool,
}

/// A known file.
pub(crate) enum FileRecord {
    /// A session, and the report of its import.
    Session(Box<FileReport>),
    /// Of no known format.
    Other,
}

/// A file that is about to be read.
#[derive(Debug)]
pub(crate) struct PendingFile {
    /// The file's stamp, and whether every later change of the file also changes the stamp.
    stamp: Option<(bool, FileStamp)>,
}

impl KnownFiles {
    /// The list of a store. `how`: the options of this import; files that were read with other options are not known.
    pub(crate) fn of(store: &Store, how: String) -> Self {
        // A list that cannot be parsed counts as empty: all files are read again, and their facts are known by their origins.
        let files = store.aside(NAME).and_then(|bytes| serde_json::from_slice(&bytes).ok());
        Self { files: files.unwrap_or_default(), how, is_changed: false }
    }

    /// The result for a file that has not changed.
    pub(crate) fn look(&self, path: &Path) -> Option<FileRecord> {
        let held = self.files.get(&absolute(path)?)?;
        let stamp = FileStamp::at(path)?;
        if held.stamp != stamp || held.how != self.how || held.is_partly || held.is_unsettled {
            return None;
        }
        let Some(counts) = &held.session else { return Some(FileRecord::Other) };
        Some(FileRecord::Session(Box::new(FileReport {
            path: path.to_owned(),
            report: counts.report.clone(),
            event_count: 0,
            known_count: counts.facts,
            bytes: stamp.bytes,
            is_unchanged: true,
        })))
    }

    /// Whether a file has not changed since it was read, with any result.
    pub(crate) fn is_as_it_was(&self, path: &Path, stamp: &FileStamp) -> bool {
        let held = absolute(path).and_then(|path| self.files.get(&path));
        held.is_some_and(|held| held.stamp == *stamp && held.how == self.how && !held.is_unsettled)
    }

    /// Takes the stamp of a file before it is read.
    pub(crate) fn begin(path: &Path) -> PendingFile {
        PendingFile { stamp: FileStamp::at(path).map(|stamp| (stamp.is_settled(), stamp)) }
    }

    /// Remembers the result of reading a file; `None`: the file is of no known format.
    pub(crate) fn keep(&mut self, path: &Path, reading: &PendingFile, report: Option<&FileReport>) {
        let is_whole = FileStamp::at(path) == reading.stamp.as_ref().map(|(_, stamp)| stamp.clone());
        let stamp = reading.stamp.clone().map(|(settled, stamp)| (settled && is_whole, stamp));
        self.remember(path, stamp, report);
    }

    /// Remembers a file that was read up to `position` while it grew.
    pub(crate) fn keep_grown(&mut self, path: &Path, position: u64, report: &FileReport) {
        let stamp = FileStamp::at(path).map(|stamp| (stamp.is_settled() && stamp.bytes == position, stamp));
        self.remember(path, stamp, Some(report));
    }

    fn remember(&mut self, path: &Path, stamp: Option<(bool, FileStamp)>, report: Option<&FileReport>) {
        let Some(place) = absolute(path) else { return };
        let is_new = stamp.as_ref().is_some_and(|(_, stamp)| stamp.is_within(CALL_LATE_MAX));
        let is_understood = report.is_none_or(|file| {
            let report = &file.report;
            let waits = report.lacks_call && is_new;
            report.is_complete() && report.cut.is_none() && report.unknown_records.is_empty() && !waits
        });
        self.is_changed |= match stamp {
            // A file of no known format that changes is not worth keeping.
            Some((is_whole, stamp))
                if (is_whole || report.is_some()) && self.files.len() < FILE_COUNT_MAX =>
            {
                let session = report.map(KnownCounts::of);
                let (is_partly, is_unsettled) = (!is_understood, !is_whole);
                let how = self.how.clone();
                self.files.insert(place, FileContent { stamp, how, session, is_partly, is_unsettled });
                true
            }
            _ => self.files.remove(&place).is_some(),
        };
    }

    /// The content of each host's files, by the host's format.
    pub(crate) fn seen(&self) -> BTreeMap<String, HostFiles> {
        let mut all: BTreeMap<String, HostFiles> = BTreeMap::new();
        for counts in self.files.values().filter_map(|held| held.session.as_ref()) {
            let KnownCounts { report, read, .. } = counts;
            let seen = all.entry(report.format.name().to_owned()).or_default();
            seen.files = seen.files.saturating_add(1);
            seen.read = seen.read.max(*read);
            seen.versions.extend(report.versions.iter().cloned());
            seen.tables.extend(report.unknown_tables.iter().cloned());
            for (kind, count) in &report.unknown_records {
                let sum = seen.unknown.entry(kind.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        all
    }

    /// Keeps the list for the next import; the caller has made all read facts durable. Returns true if the list had changed.
    pub(crate) fn save(&mut self, store: &Store) -> bool {
        let is_changed = std::mem::take(&mut self.is_changed);
        if is_changed && let Ok(bytes) = serde_json::to_vec(&self.files) {
            // The next import reads again the files of a list that is not kept.
            let _ = store.put_aside(NAME, &bytes);
        }
        is_changed
    }
}

impl KnownCounts {
    fn of(file: &FileReport) -> Self {
        let facts = file.event_count.saturating_add(file.known_count);
        Self { report: file.report.clone(), facts, read: crate::clock::now().get() }
    }
}

fn absolute(path: &Path) -> Option<PathBuf> {
    // An empty path, or a relative path without a working folder: a file without a name is read.
    std::path::absolute(path).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After a clock was set back, a file seems to be of a time to come: it is read again until that time is past, so that no
    /// change is missed.
    #[test]
    fn a_stamp_is_trusted_once_the_clock_is_past_it() {
        const SECOND: i128 = 1_000_000_000;
        const HOUR: i128 = 3600 * SECOND;
        let written = 1_000 * HOUR;
        let stamp =
            |log| FileStamp { bytes: 1, modified: written, changed: written, inode: 1, device: 1, log };
        let later = |time| Some((1, written + time));
        for (log, now, is_settled, is_recent) in [
            (None, written, false, true),
            (None, written + SECOND / 100, false, true),
            (None, written + SECOND, true, true),
            // Set forward by hours, or asleep for them.
            (None, written + 9 * HOUR, true, false),
            // Set back by an hour, and by years.
            (None, written - HOUR, false, true),
            (None, written - 900 * HOUR, false, true),
            // New data of a database is in its log.
            (later(HOUR), written + SECOND, false, true),
            (later(HOUR), written + 2 * HOUR, true, false),
        ] {
            let stamp = stamp(log);
            assert_eq!(stamp.is_settled_at(now), is_settled, "{log:?} at {now}");
            assert_eq!(stamp.is_within_at(Duration::from_secs(3600), now), is_recent, "{log:?} at {now}");
        }
    }
}
