//! Recordings that hosts add to, for a program that lives on: each reading goes on where the one before it ended.
//!
//! ```text
//! import: unchanged    nothing
//!         read before  its thread is asked: AskedFile: bytes .. end of file: record, answer, wait for the next one that asks
//!         else, or other bytes lie at its path    a thread that reads from the beginning
//! ```
//!
//! The importer reads an input that is slow, and knows nothing of the rest. So its knowledge of a file stays in memory, no byte is read
//! twice, and a record that is half written is waited for. A thread ends with its recording's place in the list, or on a fault: then the file
//! is read anew.

mod file;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use acpdb_engine::locks::steady;
use acpdb_engine::{Store, StreamInfo};
use acpdb_hosts::import::{self, ImportFormat, ImportNote, ImportOptions, PresentMessage};

pub use self::file::{FileChange, GrowingFile};
use crate::gather::Gather;
use crate::recording::{self, RecordingError, RecordingReport, beside, left_out, stem};

/// Recordings that are kept open.
const RECORDING_COUNT_MAX: usize = 16;
/// Time without one that asks after which a recording is closed.
const STILL_MAX: Duration = Duration::from_secs(60 * 60);

/// Time between two looks at a recording that is behind.
const BEHIND_WAIT: Duration = Duration::from_millis(5);
/// Looks at a recording that is behind, at most: a tenth of a second.
const BEHIND_LOOK_COUNT: u32 = 20;

/// A file's inode, length and time of its last change. A host adds to its recording, or puts another file in its place.
type FileStamp = (u64, u64, i64, i64);
type ReadOutcome = Result<RecordingReport, RecordingError>;
/// One that waits until all is read.
type Asker = Sender<ReadOutcome>;

/// Recordings that were read, the newest last.
#[derive(Debug, Default)]
pub struct GrowingRecordings {
    open: Mutex<VecDeque<GrowingRecording>>,
    /// Recordings that were waited for in vain.
    late: Mutex<VecDeque<PathBuf>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

/// Its threads end before it does: each has the store open.
impl Drop for GrowingRecordings {
    fn drop(&mut self) {
        steady(&self.open).clear();
        for thread in steady(&self.threads).drain(..) {
            // A panic was told by the thread; what it had recorded stays recorded.
            let _ = thread.join();
        }
    }
}

#[derive(Clone, Debug)]
struct GrowingRecording {
    path: PathBuf,
    stamp: Option<FileStamp>,
    /// The way to its thread; `None`: it has none.
    asks: Option<Sender<Asker>>,
}

impl GrowingRecordings {
    /// As [`crate::recording::import`]. Cost: a pass over what is new.
    ///
    /// # Errors
    /// As [`crate::recording::import`].
    pub fn import(&self, store: &Store, path: &Path, format: ImportFormat) -> ReadOutcome {
        // Without a stamp it is read. The stamp is older than what is read: a change meanwhile is seen the next time.
        let stamp = std::fs::metadata(path).ok();
        let stamp = stamp.map(|it| (it.ino(), it.len(), it.ctime(), it.ctime_nsec()));
        let known = steady(&self.open).iter().find(|known| known.path == path).cloned();
        if known.as_ref().is_some_and(|known| known.stamp.is_some() && known.stamp == stamp) {
            return Ok(RecordingReport::default());
        }
        let asked = |asks: Sender<Asker>| ask(&asks).map(|read| (Some(asks), read));
        let read = known.and_then(|known| known.asks).and_then(asked);
        let read = read.or_else(|| self.begun(store, path, format).and_then(asked));
        // One that does not grow line by line, or of which nothing is understood yet, is read as it stands.
        let (asks, read) = read.unwrap_or_else(|| (None, recording::import(store, path, format)));
        let mut all = steady(&self.open);
        all.retain(|known| known.path != path);
        if read.is_ok() {
            all.push_back(GrowingRecording { path: path.to_owned(), stamp, asks });
        }
        while all.len() > RECORDING_COUNT_MAX {
            all.pop_front();
        }
        read
    }

    /// As [`GrowingRecordings::import`], until `is_told`: some hosts write a moment behind their requests. A recording that did not follow in time is
    /// not waited for again until it does. Cost: up to a tenth of a second more.
    ///
    /// # Errors
    /// As [`crate::recording::import`].
    pub fn import_until(
        &self,
        store: &Store,
        path: &Path,
        format: ImportFormat,
        is_told: &mut dyn FnMut() -> bool,
    ) -> ReadOutcome {
        let mut looks =
            if steady(&self.late).iter().any(|late| late == path) { 0 } else { BEHIND_LOOK_COUNT };
        loop {
            let read = self.import(store, path, format)?;
            let is_there = is_told();
            if is_there || looks == 0 {
                let mut late = steady(&self.late);
                late.retain(|late| late != path);
                if !is_there {
                    late.push_back(path.to_owned());
                }
                while late.len() > RECORDING_COUNT_MAX {
                    late.pop_front();
                }
                return Ok(read);
            }
            // It is above 0 here.
            looks = looks.saturating_sub(1);
            std::thread::sleep(BEHIND_WAIT);
        }
    }

    /// A thread that reads a recording, if it is one that grows line by line and is there.
    fn begun(&self, store: &Store, path: &Path, format: ImportFormat) -> Option<Sender<Asker>> {
        // Claude Code tells behind its rows in which words they were sent: only a reading of all gives them together.
        let is_lines = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("jsonl"));
        let grows = matches!(format, ImportFormat::Codex | ImportFormat::Pi);
        let file = if is_lines && grows { recording::opened(path, format)? } else { return None };
        let (asks, asked) = channel();
        let (store, path) = (store.clone(), path.to_owned());
        let thread = std::thread::Builder::new().name("recording".to_owned());
        // Without a thread it is read as it stands.
        let thread = thread.spawn(move || read(&store, &path, file, format, asked)).ok()?;
        let mut threads = steady(&self.threads);
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
        Some(asks)
    }
}

/// The answer of a recording's thread, when all is read; `None`: it has ended, and the file is to be read anew.
fn ask(asks: &Sender<Asker>) -> Option<ReadOutcome> {
    let (tell, told) = channel();
    // A channel is closed by the end of the thread alone, here and below.
    asks.send(tell).ok()?;
    told.recv().ok() // as above
}

/// Reads a recording until other bytes lie at its path, none asks any more, or something fails.
fn read(store: &Store, path: &Path, file: File, format: ImportFormat, asked: Receiver<Asker>) {
    // It is begun for one that asks.
    let asker = asked.recv().ok();
    let gather = Gather::new(store);
    let progress = ReadProgress { gather, path, asked, asker, told: 0, left_out: Vec::new() };
    let progress = Rc::new(RefCell::new(progress));
    let input = AskedFile { file: GrowingFile::new(file), has_ended: false, progress: Rc::clone(&progress) };
    let options = ImportOptions { beside: Some(beside(path)), grows: true, ..ImportOptions::default() };
    let mut sink = SharedProgress(Rc::clone(&progress));
    let result = import::decompressed(BufReader::with_capacity(64 << 10, input), &options.limits)
        .map_err(|source| RecordingError::File { path: path.to_owned(), source })
        .and_then(|input| {
            let read = import::read(format, &stem(path), input, &options, &mut sink);
            read.map_err(|source| RecordingError::Import { path: path.to_owned(), source })
        });
    progress.borrow_mut().end(result.err());
}

/// Facts that were read and are not recorded yet, and the one that waits for them.
struct ReadProgress<'s> {
    gather: Gather<'s>,
    path: &'s Path,
    asked: Receiver<Asker>,
    asker: Option<Asker>,
    /// Events that were told.
    told: u64,
    left_out: Vec<ImportNote>,
}

impl ReadProgress<'_> {
    /// Records what was read, and tells the one that asked. `false`: it could not be recorded, or nothing of it is understood yet.
    fn answer(&mut self) -> bool {
        if self.gather.error.is_none() {
            self.gather.flush();
        }
        let has_facts = self.gather.events > 0 || self.gather.known > 0;
        if self.gather.error.is_some() || !has_facts {
            return false;
        }
        if let Some(asker) = self.asker.take() {
            let left_out = left_out(self.path, &std::mem::take(&mut self.left_out));
            let event_count = self.gather.events - self.told;
            self.told = self.gather.events;
            // One that gave up is not told; all that is recorded stays recorded.
            let _ = asker.send(Ok(RecordingReport { event_count, left_out }));
        }
        true
    }

    /// Tells the one that asked of the fault that ended the reading, if there was one.
    fn end(&mut self, error: Option<RecordingError>) {
        let error = self.gather.error.take().map(RecordingError::Store).or(error);
        // Without one that asks the fault is met again when the file is read anew.
        if let Some((error, asker)) = error.zip(self.asker.take()) {
            // One that gave up is not told.
            let _ = asker.send(Err(error));
        }
    }
}

/// The progress as the importer's sink.
struct SharedProgress<'s>(Rc<RefCell<ReadProgress<'s>>>);

impl import::Sink for SharedProgress<'_> {
    fn batch(&mut self, batch: import::ImportBatch) -> Result<(), import::SinkStop> {
        self.0.borrow_mut().gather.batch(batch)
    }

    fn present(&mut self, stream: &Arc<StreamInfo>, messages: Vec<PresentMessage>) {
        self.0.borrow_mut().gather.present(stream, messages);
    }

    fn left_out(&mut self, note: &ImportNote) {
        self.0.borrow_mut().left_out.push(note.clone());
    }
}

/// The bytes of a recording. At their end it answers, and waits for the next one that asks.
struct AskedFile<'s> {
    file: GrowingFile,
    /// Its end was told: no more comes, though the file may have grown since.
    has_ended: bool,
    progress: Rc<RefCell<ReadProgress<'s>>>,
}

impl Read for AskedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while !self.has_ended {
            let count = self.file.read_on(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            self.has_ended = !self.goes_on();
        }
        Ok(0)
    }
}

impl AskedFile<'_> {
    /// Answers the one that asked, and takes the next one. `false`: none asks for long, or the file is to be read anew.
    fn goes_on(&self) -> bool {
        let mut progress = self.progress.borrow_mut();
        if !progress.answer() {
            return false;
        }
        // One that asks as the time is over sees the channel closed, here and below.
        let Ok(asker) = progress.asked.recv_timeout(STILL_MAX) else { return false };
        let is_same = self.file.change(progress.path).is_none();
        progress.asker = Some(asker).filter(|_| is_same);
        is_same
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::fs::FileExt as _;

    use acpdb_engine::Seq;
    use acpdb_engine::event::Payload;

    use super::*;

    /// The first row of a recording of Pi's.
    const HEAD: &str = "{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"cwd\":\"/p\"}\n";

    /// A prompt, as Pi writes it.
    fn row(number: usize) -> String {
        let parent =
            number.checked_sub(1).map_or_else(|| "null".to_owned(), |number| format!("\"u{number}\""));
        format!(
            "{{\"type\":\"message\",\"id\":\"u{number}\",\"parentId\":{parent},\"timestamp\":\"2026-01-01T00:00:00Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"Look {number}.\",\"timestamp\":1767225600000}}}}\n"
        )
    }

    /// A recording with these prompts.
    fn recording_of(numbers: std::ops::Range<usize>) -> String {
        HEAD.to_owned() + &numbers.map(row).collect::<String>()
    }

    struct Desk {
        folder: tempfile::TempDir,
        store: Store,
        recordings: GrowingRecordings,
    }

    impl Desk {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
            Self { folder, store, recordings: GrowingRecordings::default() }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("s1.jsonl")
        }

        fn read(&self) -> ReadOutcome {
            self.recordings.import(&self.store, &self.path(), ImportFormat::Pi)
        }

        fn add(&self, text: &str) {
            let mut file = File::options().create(true).append(true).open(self.path()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn prompts(&self) -> usize {
            let view = self.store.view(self.store.find_stream("s1").unwrap().id).unwrap();
            view.history().len()
        }
    }

    /// A host wrote its results a moment behind the request that has them: what acpdb took for sent was always one step behind, and hardly
    /// anything was pruned, the less the busier the machine was.
    #[test]
    fn a_recording_that_is_a_moment_late_is_waited_for_and_one_that_never_follows_once() {
        let desk = Desk::new();
        desk.add(&recording_of(0..1));
        let looks = |told_at: usize| {
            let mut looks = 0;
            let mut is_told = || {
                looks += 1;
                // The host writes between two looks.
                if looks == told_at {
                    desk.add(&row(desk.prompts()));
                }
                looks > told_at
            };
            desk.recordings.import_until(&desk.store, &desk.path(), ImportFormat::Pi, &mut is_told).unwrap();
            (looks, desk.prompts())
        };
        assert_eq!(looks(0), (1, 1), "it is there");
        assert_eq!(looks(3), (4, 2));
        let all = BEHIND_LOOK_COUNT as usize + 1;
        assert_eq!(looks(1000), (all, 2), "the tenth of a second is over");
        assert_eq!(looks(1000), (1, 2), "and not waited for again");
        assert_eq!(looks(0), (1, 2), "until it follows");
        assert_eq!(looks(2), (3, 3));
    }

    /// With each request and each prompt the whole recording was read.
    #[test]
    fn only_what_is_new_is_read() {
        let desk = Desk::new();
        assert_eq!(desk.read().unwrap(), RecordingReport::default(), "it is not there yet");
        desk.add(HEAD);
        for number in 0..40 {
            desk.add(&row(number));
            assert!(desk.read().unwrap().event_count > 0, "{number}");
            assert_eq!(desk.read().unwrap().event_count, 0, "{number}");
            assert_eq!(desk.prompts(), number + 1);
            // Bytes that were read are not read again: they could be others.
            if number == 20 {
                let file = File::options().write(true).open(desk.path()).unwrap();
                file.write_all_at(b"no recording any more", 0).unwrap();
            }
        }
        // A record that is half written is waited for.
        let row = row(40);
        let (half, rest) = row.split_at(60);
        desk.add(half);
        assert_eq!(desk.read().unwrap().event_count, 0);
        desk.add(rest);
        assert!(desk.read().unwrap().event_count > 0);
        assert_eq!(desk.prompts(), 41);
    }

    /// A row that was cut was read on from its middle, once its reading had ended and the host had written the rest: a record of half a row for ever.
    #[test]
    fn a_row_that_was_half_there_is_not_read_on_from_its_middle() {
        let desk = Desk::new();
        let row_1 = row(1);
        let (half, rest) = row_1.split_at(60);
        desk.add(&(recording_of(0..1) + half));
        assert!(desk.read().unwrap().event_count > 0);
        desk.add(rest);
        let Desk { folder, store, recordings } = desk;
        // Its thread ends: none asks any more.
        drop(recordings);
        let desk = Desk { folder, store, recordings: GrowingRecordings::default() };
        assert!(desk.read().unwrap().event_count > 0);
        let events = desk.store.events(Seq(1), Seq::MAX).unwrap();
        let kept = events
            .map(Result::unwrap)
            .filter(|it| matches!(&it.event.payload, Payload::HostRecorded(kept) if kept.record == "raw"));
        assert_eq!((kept.count(), desk.prompts()), (0, 2));
    }

    #[test]
    fn a_file_that_is_cut_or_replaced_is_read_anew_and_a_fault_is_told_each_time() {
        let desk = Desk::new();
        desk.add(&recording_of(0..2));
        assert!(desk.read().unwrap().event_count > 0);
        std::fs::write(desk.path(), recording_of(2..3)).unwrap();
        assert!(desk.read().unwrap().event_count > 0, "cut, and written anew");
        std::fs::write(desk.folder.path().join("new"), recording_of(0..4)).unwrap();
        std::fs::rename(desk.folder.path().join("new"), desk.path()).unwrap();
        assert!(desk.read().unwrap().event_count > 0, "another file");
        assert_eq!(desk.prompts(), 4);
        std::fs::write(desk.path(), "no recording\n").unwrap();
        for _ in 0..2 {
            assert!(desk.read().is_err());
        }
        std::fs::remove_file(desk.path()).unwrap();
        assert_eq!(desk.read().unwrap(), RecordingReport::default());
        desk.add(&recording_of(4..5));
        assert!(desk.read().unwrap().event_count > 0);
    }
}
