//! One file that a host adds to: read to its end, and on from there whenever it has grown.
//!
//! ```text
//! thread of a file   import::read <- Tail: bytes ... end of file: commit the gathered facts, wait for a notice
//!                                      '-> grown: more bytes   replaced, cut, still for long: the end of the input
//! ```
//!
//! The importer reads an input that is slow, and knows nothing of the rest. So its knowledge of a file stays in memory while the
//! file grows, no byte is read twice, and a record that is half written is waited for.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use acpdb_engine::Store;
use acpdb_engine::entry::StreamInfo;
use acpdb_hosts::import::{self, ImportFormat, ImportOptions, PresentMessage, Retold, Sink as _};
use acpdb_live::gather::Gather;
use acpdb_live::growing::{FileChange, GrowingFile};
use acpdb_live::recording::{beside, stem};

use super::FollowMessage;
use crate::reader::{self, FileReport, ReadError, Skipped};

/// Time without a change after which a file is closed. Its host may add to it later; then it is read anew.
const STILL_MAX: Duration = Duration::from_secs(60 * 60);

/// The reason why the reading of a file ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The file has not changed for long, or too many files are open, or the program ends.
    Still,
    /// Other bytes lie at its path: a new file, or the same one cut or written anew.
    Replaced,
    /// Nothing lies at its path any more.
    Gone,
    /// Nothing more can be recorded.
    Refused,
}

/// The work of one thread.
pub(crate) struct TailJob {
    pub(crate) store: Store,
    pub(crate) path: PathBuf,
    pub(crate) format: ImportFormat,
    pub(crate) options: ImportOptions,
    /// A message for each change; when the channel closes, the reading ends.
    pub(crate) wakes: Receiver<()>,
    pub(crate) news: Sender<FollowMessage>,
}

/// Reads a file until it ends for good, and sends the result.
pub(crate) fn run(job: TailJob) {
    let TailJob { store, path, format, options, wakes, news } = job;
    let end = Rc::new(Cell::new(None));
    let position = Rc::new(Cell::new(0));
    let result = File::open(&path).map_err(ReadError::File).and_then(|file| {
        let gather = Rc::new(RefCell::new(PendingFacts {
            gather: Gather::new(&store).in_small_commits(),
            retold: (format == ImportFormat::GeminiCli).then(Retold::default),
            stream: None,
        }));
        let tail = FileTail {
            file: GrowingFile::new(file),
            path: path.clone(),
            format,
            position: Rc::clone(&position),
            wakes,
            grown: Instant::now(),
            told: 0,
            gather: Rc::clone(&gather),
            news: news.clone(),
            end: Rc::clone(&end),
        };
        read(tail, &gather, &path, format, &options)
    });
    // A follower that has ended is not told; all that is recorded stays recorded.
    let _ = news.send(FollowMessage::Ended {
        path,
        end: end.get().unwrap_or(End::Still),
        position: position.get(),
        result: Box::new(result),
    });
}

fn read(
    tail: FileTail<'_>,
    gather: &Rc<RefCell<PendingFacts<'_>>>,
    path: &Path,
    format: ImportFormat,
    options: &ImportOptions,
) -> Result<FileReport, ReadError> {
    let position = Rc::clone(&tail.position);
    let mut shared =
        GatheredFacts { gathered: Rc::clone(gather), path: path.to_owned(), news: tail.news.clone() };
    let options = ImportOptions { beside: Some(beside(path)), grows: true, ..options.clone() };
    let input = import::decompressed(BufReader::with_capacity(64 << 10, tail), &options.limits)
        .map_err(ReadError::File)?;
    let result = import::read(format, &stem(path), input, &options, &mut shared);
    let mut gathered = gather.borrow_mut();
    gathered.pass_on();
    reader::report(&mut gathered.gather, path, position.get(), result)
}

/// The gathered facts, which both the importer and the end of the file see.
struct GatheredFacts<'s> {
    gathered: Rc<RefCell<PendingFacts<'s>>>,
    path: PathBuf,
    news: Sender<FollowMessage>,
}

impl import::Sink for GatheredFacts<'_> {
    fn batch(&mut self, batch: import::ImportBatch) -> Result<(), import::SinkStop> {
        let PendingFacts { gather, retold, stream } = &mut *self.gathered.borrow_mut();
        match retold {
            Some(retold) => {
                retold.tell(batch.entries, batch.offset);
                *stream = Some(batch.stream);
                Ok(())
            }
            None => gather.batch(batch),
        }
    }

    fn present(&mut self, stream: &Arc<StreamInfo>, messages: Vec<PresentMessage>) {
        self.gathered.borrow_mut().gather.present(stream, messages);
    }

    /// The report comes only at the end of the file, an hour after its last change.
    fn left_out(&mut self, note: &import::ImportNote) {
        let (path, reason) = (self.path.clone(), note.reason.clone());
        // A follower that has ended is not told.
        let _ = self.news.send(FollowMessage::LeftOut(Skipped { path, line: Some(note.line), reason }));
    }
}

/// Facts that were read and are not recorded yet.
struct PendingFacts<'s> {
    gather: Gather<'s>,
    /// Facts of a format whose lines tell earlier messages anew: each message is recorded as it stands at the end of the file.
    retold: Option<Retold>,
    /// The session of these facts. A file has one.
    stream: Option<Arc<StreamInfo>>,
}

impl PendingFacts<'_> {
    /// Passes on the facts as they stand now.
    fn pass_on(&mut self) {
        let (Some(retold), Some(stream)) = (&mut self.retold, &self.stream) else { return };
        for (entries, offset) in retold.take() {
            let batch = import::ImportBatch { stream: Arc::clone(stream), entries, offset };
            // `gather` keeps the error, which is looked at after each commit.
            if self.gather.batch(batch).is_err() {
                return;
            }
        }
    }
}

/// The bytes of a file that grows.
struct FileTail<'s> {
    file: GrowingFile,
    path: PathBuf,
    format: ImportFormat,
    position: Rc<Cell<u64>>,
    wakes: Receiver<()>,
    /// The time at which bytes were read last.
    grown: Instant,
    /// Events that the follower was told of.
    told: u64,
    gather: Rc<RefCell<PendingFacts<'s>>>,
    news: Sender<FollowMessage>,
    end: Rc<Cell<Option<End>>>,
}

impl Read for FileTail<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.end.get().is_none() {
            let count = self.file.read_on(buffer)?;
            if count > 0 {
                self.position.set(self.file.position());
                self.grown = Instant::now();
                return Ok(count);
            }
            self.commit();
            // Only now: bytes that were added to a file before it was replaced have been read.
            if self.end.get().is_none() {
                self.end.set(self.found());
            }
            if self.end.get().is_none() {
                self.wait();
            }
        }
        Ok(0)
    }
}

impl FileTail<'_> {
    /// Records all that was read so far, and sends the number of new events.
    fn commit(&mut self) {
        let mut gathered = self.gather.borrow_mut();
        gathered.pass_on();
        let gather = &mut gathered.gather;
        if gather.error.is_none() {
            gather.flush();
        }
        if gather.error.is_some() {
            self.end.set(Some(End::Refused));
        }
        let new = gather.events - self.told;
        self.told = gather.events;
        if new > 0 {
            let (path, format) = (self.path.clone(), self.format);
            // A follower that has ended is not told.
            let _ = self.news.send(FollowMessage::Recorded { path, format, event_count: new });
        }
    }

    /// The reason to stop reading the open file; `None`: the reading goes on.
    fn found(&self) -> Option<End> {
        self.file.change(&self.path).map(|change| match change {
            FileChange::Replaced => End::Replaced,
            FileChange::Gone => End::Gone,
        })
    }

    /// Waits for a notice that the file may have changed.
    fn wait(&mut self) {
        // After that time nothing is waited for.
        let left = STILL_MAX.saturating_sub(self.grown.elapsed());
        match self.wakes.recv_timeout(left) {
            // A file that was cut and written anew may be longer than before.
            Ok(()) => self.end.set(self.found()),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => self.end.set(Some(End::Still)),
        }
    }
}
