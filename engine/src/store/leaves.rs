//! Material of proofs: every event as bytes that never change, each with a salt that cannot be guessed.
//!
//! Hashing, trees, signatures and files of proofs are not here: they are made from these leaves.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use super::scan::LogSource;
use super::{Store, StoreInner};
use crate::codec::{Frame, SALT_BYTES, leaf_bytes};
use crate::error::Error;
use crate::ids::{Micros, Seq};
use crate::log::LogError;
use crate::storage::{list_if_there, put_file, read_file, sync, write_all};

/// Where signed checkpoints are kept, below the store's folder.
const FOLDER: &str = "checkpoints";
/// Largest signed checkpoint that is kept or read: a hundred signatures are a quarter of it. A folder may hold thousands.
const CHECKPOINT_BYTES_MAX: usize = 64 << 10;
/// How long to wait for a process or thread that keeps a checkpoint of the same seq, and between two looks.
const KEEP_WAIT: Duration = Duration::from_secs(5);
const KEEP_PAUSE: Duration = Duration::from_micros(200);

/// Where tiles of the tree are kept, below the store's folder. A cache: it may be removed at any time.
const TILES: &str = "tiles";
/// Largest tile that is read: 256 hashes.
const TILE_BYTES_MAX: usize = 256 * 32;

/// An event as a proof commits to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leaf {
    /// Its seq.
    pub seq: Seq,
    /// When it was recorded.
    pub time: Micros,
    /// Hides the event from a reader who has a digest of salt and bytes alone. Keyed with the store's secret over the bytes: the same
    /// each time, and of no use for any other event.
    pub salt: [u8; 32],
    /// See [`crate::codec::LeafEvent`].
    pub bytes: Vec<u8>,
}

/// A body with the salt that its digest has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaltedBody {
    /// Its row among those of the event, from 0.
    pub row: u32,
    /// The salt.
    pub salt: [u8; SALT_BYTES],
    /// The body.
    pub bytes: Vec<u8>,
}

/// Leaves in order. Made by [`Store::leaves`].
pub struct Leaves {
    inner: Arc<StoreInner>,
    source: LogSource,
    frame: Option<(Frame, VecDeque<Seq>)>,
    next: Seq,
    to: Seq,
}

impl std::fmt::Debug for Leaves {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Leaves").field("next", &self.next).field("to", &self.to).finish_non_exhaustive()
    }
}

impl Iterator for Leaves {
    type Item = Result<Leaf, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if self.next > self.to {
                return None;
            }
            if let Some((frame, seqs)) = &mut self.frame
                && let Some(event) = seqs.pop_front().and_then(|seq| frame.event(seq))
            {
                if event.seq != self.next {
                    let missing = self.next;
                    self.to = Seq::ZERO;
                    return Some(Err(Error::damaged_event(missing, format!("event {missing} is missing"))));
                }
                self.next = self.next.next();
                return Some(Ok(self.inner.leaf_of(frame, &event)));
            }
            match self.source.next()? {
                Ok(frame) => {
                    let seqs = frame.events().map(|event| event.seq).filter(|seq| *seq >= self.next);
                    let seqs = seqs.collect();
                    self.frame = Some((frame, seqs));
                }
                Err(error) => {
                    self.to = Seq::ZERO;
                    return Some(Err(error));
                }
            }
        }
    }
}

impl StoreInner {
    fn leaf_of(&self, frame: &Frame, event: &crate::codec::EventRef<'_>) -> Leaf {
        let bytes = leaf_bytes(self.log.store(), frame, event);
        Leaf { seq: event.seq, time: frame.time(), salt: self.log.secret().leaf(&bytes), bytes }
    }

    fn check_secret(&self) -> Result<(), Error> {
        if self.log.secret().is_known() {
            return Ok(());
        }
        let path = self.root.join("secret");
        let detail = format!(
            "{} is lost or damaged, and proofs are keyed with it; put it back from a backup",
            path.display()
        );
        Err(Error::damaged_file(Some(path), detail))
    }
}

impl Store {
    /// All events from `from` to `to`, both included, in order and without gaps, as a proof commits to them.
    ///
    /// Ends at the durable end of the log, or with the first error: a tree of events that are not all there is none. Bodies are not read.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the store's secret is lost; [`Error::Io`]. Damage comes as an item.
    #[doc(hidden)]
    pub fn leaves(&self, from: Seq, to: Seq) -> Result<Leaves, Error> {
        let inner = &self.inner;
        inner.check_secret()?;
        let until = inner.log.refresh()?;
        let source = LogSource::new(Arc::clone(inner), from, until);
        Ok(Leaves { inner: Arc::clone(inner), source, frame: None, next: from, to: to.min(until.seq) })
    }

    /// One event as a proof commits to it; `None` if there is no such event.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if it is damaged or the store's secret is lost.
    #[doc(hidden)]
    pub fn leaf(&self, seq: Seq) -> Result<Option<Leaf>, Error> {
        let inner = &self.inner;
        inner.check_secret()?;
        let Some(frame) = inner.frame_of(seq)? else { return Ok(None) };
        Ok(frame.event(seq).map(|event| inner.leaf_of(&frame, &event)))
    }

    /// The bodies of an event with the salts of their digests, each checked; those that were erased are left out.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if one is damaged.
    #[doc(hidden)]
    pub fn salted_bodies(&self, seq: Seq) -> Result<Vec<SaltedBody>, Error> {
        let Some(frame) = self.inner.frame_of(seq)? else { return Ok(Vec::new()) };
        let Some(event) = frame.event(seq) else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        for (row, place) in (0..).zip(event.rows()) {
            match self.inner.log.salted_body(&place) {
                Ok((salt, bytes)) => found.push(SaltedBody { row, salt, bytes }),
                Err(LogError::Erased { .. }) => {}
                // Half zeroed.
                Err(LogError::Corrupt(_)) if self.inner.erasure_of(seq, row)?.is_some() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(found)
    }

    /// Keeps a signed checkpoint over the events up to `seq` beside the log, in place of an earlier one of that seq. Durable when it
    /// returns.
    ///
    /// The text is not looked at: any program that may write to the folder may put any text there.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::TooLarge`], [`Error::Io`]; [`Error::Busy`] if another process is at this seq and does not end.
    #[doc(hidden)]
    pub fn keep_checkpoint(&self, seq: Seq, note: &str) -> Result<(), Error> {
        let storage = self.inner.log.storage();
        let name = checkpoint_name(seq);
        if self.inner.read_only {
            let detail = "it was opened for reading".to_owned();
            return Err(Error::ReadOnly { path: storage.path(&name), detail });
        }
        if note.len() > CHECKPOINT_BYTES_MAX {
            let (actual, limit) = (note.len() as u64, CHECKPOINT_BYTES_MAX as u64);
            return Err(Error::TooLarge { what: "bytes of a signed checkpoint", actual, limit });
        }
        let failed = |source| Error::Io { action: "write", path: storage.path(&name), source };
        storage.create_dir(FOLDER).map_err(failed)?;
        storage.sync_dir("").map_err(failed)?;
        let put = || {
            put_file(&**storage, &name, &|file| {
                write_all(file, note.as_bytes(), 0, &mut 0)?;
                sync(file)
            })
        };
        let begun = self.inner.log.clock().elapsed();
        while !put().map_err(failed)? {
            if self.inner.log.clock().since(begun) >= KEEP_WAIT {
                return Err(Error::Busy {
                    detail: format!("another process writes {}", storage.path(&name).display()),
                });
            }
            self.inner.log.clock().sleep(KEEP_PAUSE);
        }
        storage.sync_dir(FOLDER).map_err(failed)
    }

    /// The seqs of the signed checkpoints that are kept beside the log, rising.
    ///
    /// # Errors
    /// [`Error::Io`] if their folder cannot be read.
    #[doc(hidden)]
    pub fn checkpoint_seqs(&self) -> Result<Vec<Seq>, Error> {
        let storage = self.inner.log.storage();
        let failed = |source| Error::Io { action: "list", path: storage.path(FOLDER), source };
        let names = list_if_there(&**storage, FOLDER).map_err(failed)?;
        // Under any other name, such as one with a sign, there is no checkpoint of ours.
        let is_own =
            |name: &str, seq: Seq| checkpoint_name(seq).strip_prefix(FOLDER) == Some(&format!("/{name}"));
        let seqs = names.iter().filter_map(|name| {
            let seq = name.strip_suffix(".note")?.parse().ok().map(Seq)?;
            is_own(name, seq).then_some(seq)
        });
        let mut seqs: Vec<Seq> = seqs.collect();
        seqs.sort_unstable();
        Ok(seqs)
    }

    /// The signed checkpoint of `seq` as it lies beside the log, unchecked; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Corrupt`] if it is no text.
    #[doc(hidden)]
    pub fn kept_checkpoint(&self, seq: Seq) -> Result<Option<String>, Error> {
        let storage = self.inner.log.storage();
        let name = checkpoint_name(seq);
        let bytes = read_file(&**storage, &name, CHECKPOINT_BYTES_MAX).map_err(|source| Error::Io {
            action: "read",
            path: storage.path(&name),
            source,
        })?;
        let text = bytes.map(String::from_utf8).transpose();
        text.map_err(|_| {
            let path = storage.path(&name);
            let detail = format!("{} is no text", path.display());
            Error::damaged_file(Some(path), detail)
        })
    }

    /// A tile of the tree as it lies beside the log, unchecked; `None` if there is none that can be read. Its hashes have to lead to a
    /// root that was signed.
    #[doc(hidden)]
    pub fn kept_tile(&self, path: &str) -> Option<Vec<u8>> {
        let name = format!("{TILES}/{path}");
        // A tile is a cache: without it the hashes are made of the log.
        read_file(&**self.inner.log.storage(), &name, TILE_BYTES_MAX).ok().flatten()
    }

    /// Keeps a tile beside the log, in place of the one of that path. The tile is not synced: if a crash leaves only a part of it, a read
    /// finds that out.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Io`]: then there is no tile, or the one of before.
    #[doc(hidden)]
    pub fn keep_tile(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        let storage = self.inner.log.storage();
        let name = format!("{TILES}/{path}");
        if self.inner.read_only {
            let detail = "it was opened for reading".to_owned();
            return Err(Error::ReadOnly { path: storage.path(&name), detail });
        }
        let put = || put_file(&**storage, &name, &|file| write_all(file, bytes, 0, &mut 0));
        let done = put().or_else(|error| {
            if error.kind() != std::io::ErrorKind::NotFound {
                return Err(error);
            }
            for (at, _) in name.match_indices('/') {
                storage.create_dir(name.get(..at).unwrap_or_default())?;
            }
            put()
        });
        // A tile of a path is the same whichever process puts it there.
        done.map(drop).map_err(|source| Error::Io { action: "write", path: storage.path(&name), source })
    }

    /// Removes a tile that a wider one took the place of, if it is there.
    #[doc(hidden)]
    pub fn remove_tile(&self, path: &str) {
        if !self.inner.read_only {
            // A tile that stays is not read, and goes with the folder.
            let _ = self.inner.log.storage().remove(&format!("{TILES}/{path}"));
        }
    }
}

fn checkpoint_name(seq: Seq) -> String {
    format!("{FOLDER}/{:012}.note", seq.get())
}
