//! Recordings that hosts add to, for a program that lives on: each reading goes on where the one before it ended.
//!
//! ```text
//! import: unchanged    nothing
//!         read before  its thread is asked: GrowingFile: bytes .. end of file: record, answer, wait for the next one that asks
//!         else, or other bytes lie at its path    a thread that reads from the beginning
//! ```
//!
//! The importer reads an input that is slow, and knows nothing of the rest. So its knowledge of a file stays in memory, no byte is read
//! twice, and a record that is half written is waited for. A thread ends with its recording's place in the list, or on a fault: then the file
//! is read anew.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use acpdb_engine::locks::steady;
use acpdb_engine::{Store, StreamInfo};
use acpdb_hosts::import::{self, ImportFormat, ImportNote, ImportOptions};

use crate::gather::Gather;
use crate::recording::{self, RecordingError, RecordingReport, beside, left_out, stem};

/// Recordings that are kept open.
const RECORDING_COUNT_MAX: usize = 16;
/// Bytes before the end that are compared, to see whether the file still has the bytes that were read.
const MARK_BYTES: usize = 256;

/// A file's inode, length and time of its last change. A host adds to its recording, or puts another file in its place.
type FileStamp = (u64, u64, i64, i64);
type ReadOutcome = Result<RecordingReport, RecordingError>;
/// One that waits until all is read.
type Asker = Sender<ReadOutcome>;

/// Recordings that were read, the newest last.
#[derive(Debug, Default)]
pub struct GrowingRecordings(Mutex<VecDeque<GrowingRecording>>);

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
        let known = steady(&self.0).iter().find(|known| known.path == path).cloned();
        if known.as_ref().is_some_and(|known| known.stamp.is_some() && known.stamp == stamp) {
            return Ok(RecordingReport::default());
        }
        let asked = |asks: Sender<Asker>| ask(&asks).map(|read| (Some(asks), read));
        let read = known.and_then(|known| known.asks).and_then(asked);
        let read = read.or_else(|| begun(store, path, format).and_then(asked));
        // One that does not grow line by line, or of which nothing is understood yet, is read as it stands.
        let (asks, read) = read.unwrap_or_else(|| (None, recording::import(store, path, format)));
        let mut all = steady(&self.0);
        all.retain(|known| known.path != path);
        if read.is_ok() {
            all.push_back(GrowingRecording { path: path.to_owned(), stamp, asks });
        }
        while all.len() > RECORDING_COUNT_MAX {
            all.pop_front();
        }
        read
    }
}

/// The answer of a recording's thread, when all is read; `None`: it has ended, and the file is to be read anew.
fn ask(asks: &Sender<Asker>) -> Option<ReadOutcome> {
    let (tell, told) = channel();
    // A channel is closed by the end of the thread alone, here and below.
    asks.send(tell).ok()?;
    told.recv().ok() // as above
}

/// A thread that reads a recording, if it is one that grows line by line and is there.
fn begun(store: &Store, path: &Path, format: ImportFormat) -> Option<Sender<Asker>> {
    let is_lines = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("jsonl"));
    let grows = matches!(format, ImportFormat::ClaudeCode | ImportFormat::Codex | ImportFormat::Pi);
    let file = if is_lines && grows { recording::opened(path, format)? } else { return None };
    let (asks, asked) = channel();
    let (store, path) = (store.clone(), path.to_owned());
    let thread = std::thread::Builder::new().name("recording".to_owned());
    // Without a thread it is read as it stands.
    thread.spawn(move || read(&store, &path, file, format, asked)).ok()?;
    Some(asks)
}

/// Reads a recording until other bytes lie at its path, none asks any more, or something fails.
fn read(store: &Store, path: &Path, file: File, format: ImportFormat, asked: Receiver<Asker>) {
    let progress =
        ReadProgress { gather: Gather::new(store), path, asked, asker: None, told: 0, left_out: Vec::new() };
    let progress = Rc::new(RefCell::new(progress));
    let input = GrowingFile { file, position: 0, mark: Vec::new(), progress: Rc::clone(&progress) };
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
        let Some(error) = error else { return };
        // Without one that asks the fault is met again when the file is read anew.
        if let Some(asker) = self.asker.take().or_else(|| self.asked.recv().ok()) {
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

    fn present(&mut self, stream: &Arc<StreamInfo>, keys: Vec<String>) {
        self.0.borrow_mut().gather.present(stream, keys);
    }

    fn left_out(&mut self, note: &ImportNote) {
        self.0.borrow_mut().left_out.push(note.clone());
    }
}

/// The bytes of a file that grows.
struct GrowingFile<'s> {
    file: File,
    position: u64,
    /// The last bytes that were read.
    mark: Vec<u8>,
    progress: Rc<RefCell<ReadProgress<'s>>>,
}

impl Read for GrowingFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let count = self.file.read_at(buffer, self.position)?;
            if count > 0 {
                self.position = self.position.saturating_add(count as u64);
                let bytes = buffer.get(..count).unwrap_or_default();
                self.mark
                    .extend_from_slice(bytes.get(count.saturating_sub(MARK_BYTES)..).unwrap_or_default());
                // A mark that is not full yet has no surplus.
                self.mark.drain(..self.mark.len().saturating_sub(MARK_BYTES));
                return Ok(count);
            }
            let mut progress = self.progress.borrow_mut();
            if !progress.answer() {
                return Ok(0);
            }
            let Ok(asker) = progress.asked.recv() else { return Ok(0) };
            if !self.is_same(progress.path) {
                return Ok(0);
            }
            progress.asker = Some(asker);
        }
    }
}

impl GrowingFile<'_> {
    /// Whether the bytes that were read still lie at the path.
    fn is_same(&self, path: &Path) -> bool {
        let place = |it: &std::fs::Metadata| (it.dev(), it.ino());
        let (Ok(now), Ok(open)) = (std::fs::metadata(path), self.file.metadata()) else { return false };
        if place(&now) != place(&open) || now.len() < self.position {
            return false;
        }
        let mut mark = vec![0; self.mark.len()];
        // The mark holds the last bytes that were read, so it is not longer than the position.
        let before = self.position.saturating_sub(mark.len() as u64);
        self.file.read_exact_at(&mut mark, before).is_ok() && mark == self.mark
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A prompt, as Claude Code writes it.
    fn row(number: usize) -> String {
        format!(
            "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"sessionId\":\"s1\",\"cwd\":\"/p\",\"timestamp\":\"2026-01-01T00:00:00Z\",\
             \"message\":{{\"role\":\"user\",\"content\":\"Look {number}.\"}}}}\n"
        )
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
            self.recordings.import(&self.store, &self.path(), ImportFormat::ClaudeCode)
        }

        fn add(&self, text: &str) {
            let mut file = File::options().create(true).append(true).open(self.path()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn prompts(&self) -> usize {
            let view = self.store.view(self.store.find_stream("s1").unwrap().id).unwrap();
            view.current().len()
        }
    }

    /// With each request and each prompt the whole recording was read.
    #[test]
    fn only_what_is_new_is_read() {
        let desk = Desk::new();
        assert_eq!(desk.read().unwrap(), RecordingReport::default(), "it is not there yet");
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

    #[test]
    fn a_file_that_is_cut_or_replaced_is_read_anew_and_a_fault_is_told_each_time() {
        let desk = Desk::new();
        desk.add(&(row(0) + &row(1)));
        assert!(desk.read().unwrap().event_count > 0);
        std::fs::write(desk.path(), row(2)).unwrap();
        assert!(desk.read().unwrap().event_count > 0, "cut, and written anew");
        std::fs::write(desk.folder.path().join("new"), row(0) + &row(1) + &row(2) + &row(3)).unwrap();
        std::fs::rename(desk.folder.path().join("new"), desk.path()).unwrap();
        assert!(desk.read().unwrap().event_count > 0, "another file");
        assert_eq!(desk.prompts(), 4);
        std::fs::write(desk.path(), "no recording\n").unwrap();
        for _ in 0..2 {
            assert!(desk.read().is_err());
        }
        std::fs::remove_file(desk.path()).unwrap();
        assert_eq!(desk.read().unwrap(), RecordingReport::default());
        desk.add(&row(4));
        assert!(desk.read().unwrap().event_count > 0);
    }
}
