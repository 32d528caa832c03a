//! Files are read in a thread of their own, a little ahead of the thread that records them.
//!
//! ```text
//! this thread:   recognise, parse -> parcels of facts -> (a few files and MB ahead, no more)
//! the caller:                        gather -> store.commit, file after file, as without the thread
//! ```
//!
//! The recorded facts and their commits do not depend on the thread: its parcels come in the order of the input.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};

use acpdb_engine::{Store, StreamInfo};
use acpdb_hosts::import::{self, ImportError, ImportOptions, ImportReport, PresentMessage, SinkStop};
use acpdb_live::gather::{GATHER_BYTES, Gather, weight};
use indicatif::ProgressBar;

use super::{FileChoice, FileReport, ImportFile, ReadError, Recognised, Skipped, report};

/// Files that wait to be read, or were read and wait to be recorded.
pub(crate) const FILE_COUNT: usize = 8;
/// Approximate bytes of facts in one parcel.
const PARCEL_BYTES: usize = 256 << 10;
/// Parcels of one file that wait to be recorded: as much as one commit takes, so that reading goes on while it is made.
const PARCEL_COUNT: usize = GATHER_BYTES / PARCEL_BYTES;

/// Messages of the thread about a file, in this order.
enum FileMessage {
    Found(Recognised),
    Facts(Vec<import::ImportBatch>),
    Present(Arc<StreamInfo>, Vec<PresentMessage>),
    End(Box<std::io::Result<(u64, Result<ImportReport, ImportError>)>>),
}

struct ReadJob {
    candidate: ImportFile,
    to: SyncSender<FileMessage>,
}

/// The thread that reads. It ends when this is dropped.
pub(crate) struct ReaderThread {
    jobs: SyncSender<ReadJob>,
}

impl ReaderThread {
    /// Begins a thread that reads the chosen files, and moves `bar` by the bytes that it read.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn start(
        choice: FileChoice,
        options: ImportOptions,
        bar: ProgressBar,
    ) -> std::io::Result<Self> {
        let (jobs, waiting) = mpsc::sync_channel(FILE_COUNT);
        let read_all = move || {
            for job in waiting {
                read(&job, choice, &options, &bar);
            }
        };
        std::thread::Builder::new().name("acpdb read".to_owned()).spawn(read_all)?;
        Ok(Self { jobs })
    }

    /// Queues a file to be read after the files before it. Waits if [`FILE_COUNT`] files are waiting.
    pub(crate) fn begin(&self, candidate: ImportFile) -> FileInProgress {
        let (to, told) = mpsc::sync_channel(PARCEL_COUNT);
        // If the thread has ended, the missing answer shows that where it is asked for.
        let _ = self.jobs.send(ReadJob { candidate, to });
        FileInProgress { told }
    }
}

/// A file that is being read.
pub(crate) struct FileInProgress {
    told: Receiver<FileMessage>,
}

impl FileInProgress {
    /// The kind of the file.
    pub(crate) fn recognised(&self, path: &Path) -> Recognised {
        match self.told.recv() {
            Ok(FileMessage::Found(found)) => found,
            _ => Recognised::Skipped(Skipped { path: path.to_owned(), line: None, reason: LOST.to_owned() }),
        }
    }

    /// Records the facts of a session's file, once the file is recognised.
    pub(crate) fn record(self, store: &Store, path: &Path) -> Result<FileReport, ReadError> {
        let mut gather = Gather::new(store);
        loop {
            match self.told.recv() {
                Ok(FileMessage::Facts(batches)) => {
                    for batch in batches {
                        if import::Sink::batch(&mut gather, batch).is_err() {
                            return report(&mut gather, path, 0, Err(ImportError::Stopped));
                        }
                    }
                }
                Ok(FileMessage::Present(stream, messages)) => {
                    import::Sink::present(&mut gather, &stream, messages);
                }
                Ok(FileMessage::End(end)) => {
                    let (bytes, result) = (*end).map_err(ReadError::File)?;
                    return report(&mut gather, path, bytes, result);
                }
                Ok(FileMessage::Found(_)) | Err(_) => {
                    return Err(ReadError::File(std::io::Error::other(LOST)));
                }
            }
        }
    }
}

/// Only a fault of the program ends the thread.
const LOST: &str = "the thread that reads has ended";

/// Reads one file. If the caller wants no more of it, sending fails.
fn read(job: &ReadJob, choice: FileChoice, options: &ImportOptions, bar: &ProgressBar) {
    let found = super::recognise(&job.candidate, choice);
    let session = if let Recognised::Session(format) = &found { Some(*format) } else { None };
    if job.to.send(FileMessage::Found(found)).is_err() {
        return;
    }
    let Some(format) = session else { return };
    let mut parcel = Parcel { to: &job.to, batches: Vec::new(), bytes: 0 };
    let mut sessions = import::ReadSessions::default();
    let path = &job.candidate.path;
    let end = super::parse(path, format, options, &mut sessions, &mut parcel, &mut |bytes| bar.inc(bytes));
    if parcel.send().is_ok() {
        // An import that was interrupted takes no more.
        let _ = job.to.send(FileMessage::End(Box::new(end)));
    }
}

/// Gathers facts until they are worth sending.
struct Parcel<'j> {
    to: &'j SyncSender<FileMessage>,
    batches: Vec<import::ImportBatch>,
    bytes: usize,
}

impl Parcel<'_> {
    fn send(&mut self) -> Result<(), SinkStop> {
        self.bytes = 0;
        let batches = std::mem::take(&mut self.batches);
        if batches.is_empty() {
            Ok(())
        } else {
            self.to.send(FileMessage::Facts(batches)).map_err(|_| SinkStop)
        }
    }
}

impl import::Sink for Parcel<'_> {
    fn present(&mut self, stream: &Arc<StreamInfo>, messages: Vec<PresentMessage>) {
        // An import that was interrupted takes no more; the next facts say so.
        if self.send().is_ok() {
            // The receiver is gone with the import.
            let _ = self.to.send(FileMessage::Present(Arc::clone(stream), messages));
        }
    }

    fn batch(&mut self, batch: import::ImportBatch) -> Result<(), SinkStop> {
        self.bytes += batch.entries.iter().map(weight).sum::<usize>();
        self.batches.push(batch);
        if self.bytes >= PARCEL_BYTES { self.send() } else { Ok(()) }
    }
}
