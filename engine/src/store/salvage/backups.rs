//! Backups of the store that is salvaged: what damage took and they still have goes back to its place.
//!
//! ```text
//! another store          -> refused: its seqs mean other events
//! another history        -> refused: a commit that both have is not the same one
//! events that are lost   -> those of the backup with these seqs
//! a text that is lost    -> the backup's bytes, if they have the digest that the damaged store names
//! ```
//!
//! A link names its commit and every one before it. So a backup with the link of a commit of the store has the same history up to there.

use std::iter::Peekable;
use std::path::PathBuf;
use std::sync::Arc;

use crate::codec::{BodyRow, Frame, FrameHeader};
use crate::error::Error;
use crate::ids::{Seq, StoreId};
use crate::log::{Frames, Head, Log, LogError, LogOptions, LogReport, Standing, Witness};
use crate::storage::{Storage, SystemClock, SystemEntropy};

/// A backup that is open for reading.
pub(super) struct Backup {
    pub(super) log: Log,
    pub(super) head: Head,
}

impl Backup {
    /// Opens it. The store that is salvaged may have lost its id: then any will do.
    pub(super) fn open(storage: Arc<dyn Storage>, store: StoreId) -> Result<Self, Error> {
        let path = storage.path("");
        let options = LogOptions { read_only: true, ..LogOptions::default() };
        let (log, _recovery) =
            Log::open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options)?;
        if store != StoreId::ZERO && log.store() != store {
            return Err(refused(path, format!("it holds store {}, not {store}", log.store())));
        }
        if log.is_encrypted() {
            return Err(refused(path, "it is encrypted, and the damaged store is not".to_owned()));
        }
        let head = log.refresh()?;
        Ok(Self { log, head })
    }

    fn path(&self) -> PathBuf {
        self.log.storage().path("")
    }

    /// Its sound frames with events from `from` on, each checked by its digest.
    pub(super) fn frames(&self, from: Seq) -> Result<Frames<'_>, LogError> {
        self.log.proven_frames(from, self.head)
    }

    /// The bytes of a body, if they are here and are those that the damaged store names.
    pub(super) fn body(&self, seq: Seq, row: usize, lost: &BodyRow) -> Result<Option<Vec<u8>>, LogError> {
        let frame = match self.log.locate(seq) {
            Ok(Some(frame)) => frame,
            Ok(None) | Err(LogError::Corrupt(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let here = frame.event(seq).and_then(|event| event.row(row));
        let Some(here) = here.filter(|here| here.digest == lost.digest) else { return Ok(None) };
        match self.log.body(&here) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(LogError::Corrupt(_) | LogError::Erased { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn refused(path: PathBuf, why: String) -> Error {
    let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
    Error::Io { action: "salvage with the backup in", path, source }
}

/// What will be lost, known before anything is copied.
pub(super) struct Shortfall {
    /// Events that neither the store nor a backup has, as ranges of seqs, in order.
    pub(super) lost: Vec<(Seq, Seq)>,
    /// Witnesses that say something else than what will be there.
    pub(super) contradicting: Vec<Witness>,
}

/// Goes through the store and its backups, side by side.
///
/// # Errors
/// If a backup has another history than the store.
pub(super) fn shortfall(
    source: &Log,
    until: Head,
    backups: &[Backup],
    found: &LogReport,
    end: Seq,
) -> Result<Shortfall, Error> {
    let mut beside = Vec::with_capacity(backups.len());
    for backup in backups {
        beside.push(Beside { backup, frames: backup.frames(Seq(1))?.peekable(), held: Held::default() });
    }
    let mut held = Held::default();
    let mut frames = source.frames_until(Seq(1), until)?;
    while let Some(frame) = frames.next() {
        match (frame, frames.damaged()) {
            (Ok(frame), _) => {
                for beside in &mut beside {
                    beside.pass(Some(frame.header()))?;
                }
                held.add(&frame);
            }
            (Err(LogError::Corrupt(_)), Some(header)) => {
                for beside in &mut beside {
                    beside.pass(Some(header))?;
                }
                source.sound_parts(header)?.iter().for_each(|part| held.add(part));
            }
            (Err(LogError::Corrupt(_)), None) => {}
            (Err(error), _) => return Err(error.into()),
        }
    }
    let mut witnesses: Vec<Witness> =
        found.witnesses.iter().filter(|witness| is_contradiction(witness)).cloned().collect();
    let mut lost = held.without(end);
    for mut beside in beside {
        beside.pass(None)?;
        let backup = beside.backup;
        let mut kept = Vec::with_capacity(witnesses.len());
        for witness in witnesses {
            if !backup.bears_out(&witness)? {
                kept.push(witness);
            }
        }
        witnesses = kept;
        lost = beside.held.taken_from(&lost);
    }
    Ok(Shortfall { lost, contradicting: witnesses })
}

/// Whether a witness that counts says something else than the log. The map of a segment is a cache.
fn is_contradiction(witness: &Witness) -> bool {
    witness.contradicts() && (witness.kind.is_of_the_log() || witness.kind.is_kept_apart())
}

/// A backup on a walk beside the store.
struct Beside<'a> {
    backup: &'a Backup,
    frames: Peekable<Frames<'a>>,
    held: Held,
}

impl Beside<'_> {
    /// Goes on to a commit of the store, and compares the two; without one, to the end.
    fn pass(&mut self, header: Option<&FrameHeader>) -> Result<(), Error> {
        let is_before = |frame: &Result<Frame, LogError>| match (frame, header) {
            (Ok(frame), Some(header)) => frame.last_seq() < header.first_seq,
            _ => true,
        };
        while let Some(frame) = self.frames.next_if(is_before) {
            match frame {
                Ok(frame) => self.held.add(&frame),
                // What a backup lacks is not asked of it.
                Err(LogError::Corrupt(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let (Some(header), Some(Ok(frame))) = (header, self.frames.peek()) else { return Ok(()) };
        if frame.first_seq() <= header.last_seq() && frame.header().link() != header.link() {
            let first = frame.first_seq().min(header.first_seq);
            let why = format!("it has another history than the store from {first} on");
            return Err(refused(self.backup.path(), why));
        }
        Ok(())
    }
}

impl Backup {
    /// Whether a witness that contradicts the store tells what is here: of what the store lacks, the place may be gone.
    fn bears_out(&self, witness: &Witness) -> Result<bool, Error> {
        let Some(seq) = witness.seq else { return Ok(false) };
        let frame = match self.log.locate(seq) {
            Ok(Some(frame)) => frame,
            Ok(None) | Err(LogError::Corrupt(_)) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        let is_ahead = witness.standing == Standing::Ahead;
        let Some(link) = witness.link else { return Ok(is_ahead) };
        let is_here = frame.header().link() == link;
        if is_ahead && !is_here {
            let why = format!("it has another history than {} tells of, up to {seq}", witness.name);
            return Err(refused(self.path(), why));
        }
        Ok(is_here)
    }
}

/// Seqs of sound events, as ranges in order.
#[derive(Default)]
struct Held {
    ranges: Vec<(Seq, Seq)>,
}

impl Held {
    /// Frames come in the order of the log.
    fn add(&mut self, frame: &Frame) {
        let (first, last) = (frame.first_seq(), frame.last_seq());
        match self.ranges.last_mut() {
            Some((_, before)) if before.next() >= first => *before = last.max(*before),
            _ => self.ranges.push((first, last)),
        }
    }

    /// The seqs up to `end` that are not here.
    fn without(&self, end: Seq) -> Vec<(Seq, Seq)> {
        self.taken_from(&[(Seq(1), end)])
    }

    /// What is left of some ranges.
    fn taken_from(&self, ranges: &[(Seq, Seq)]) -> Vec<(Seq, Seq)> {
        let mut left = Vec::new();
        for &(first, last) in ranges {
            let mut next = first;
            let begins = self.ranges.partition_point(|(_, held)| *held < first);
            for &(from, to) in self.ranges.iter().skip(begins).take_while(|(from, _)| *from <= last) {
                if from > next {
                    left.push((next, from.before()));
                }
                next = next.max(to.next());
            }
            if next <= last {
                left.push((next, last));
            }
        }
        left
    }
}
