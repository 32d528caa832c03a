//! A copy of the store beside its writers, proven sound before it is called a backup.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Error;
use crate::ids::{Seq, StoreId};
use crate::log::{CopyParts, CopyTarget, Head, LogError, note_erasures};
use crate::storage::{FileStorage, Storage};
use crate::vault::KEY;
use crate::verify::{Verdict, VerifyReport, verify_bytes, verify_storage};

use super::Store;
use super::former::{COPIED, FormerCopy};
use super::identity::{StoreIdentity, identity_of};
use super::unnamed::{Unnamed, check_outside};

const MAKE: &str = "make a backup in";
const SCHEMA: &str = "acpdb.backup/1";

/// The result of [`Store::backup`].
#[derive(Clone, Debug, serde::Serialize)]
#[must_use]
pub struct Backup {
    /// Name of this shape.
    pub schema: &'static str,
    /// Its folder.
    #[serde(serialize_with = "crate::text::paths::serialize_shown")]
    pub path: PathBuf,
    /// Its last seq: everything durable when the copy was made.
    pub head: Seq,
    /// Bytes copied; 0 if the folder held this very copy already.
    pub bytes: u64,
    /// The report of a verification of the copy. It is not sound only if the store itself is damaged.
    pub report: VerifyReport,
}

impl Store {
    /// Copies the store to a folder that is empty or does not exist, while others go on writing, and verifies the copy.
    ///
    /// The copy is the store as of one durable head; opening it is restoring it. The index is not copied: it is made
    /// anew. Cost: a read and a write of the log, then a verification. Durable when it returns. `progress` is told of
    /// every stretch copied, in bytes.
    ///
    /// The copy is made under the name `folder` with `.partial` behind it, and gets its own name once it is verified. After a kill it can be asked
    /// for again: what is left of the first copy is removed. A folder that holds a whole copy of this store, which was never written to, is no
    /// obstacle: the copy stays if it has everything, and else a newer one takes its place once that is verified. Until then writers of the older one
    /// find it busy, and later that it was moved.
    ///
    /// # Errors
    /// [`Error::Busy`] if another process writes to the older copy or replaces it;
    /// [`Error::Io`] if the folder holds anything else, if another backup is filling it, or if reading or writing fails, the copy's too; [`Error::NoSpace`].
    pub fn backup(&self, folder: &Path, progress: &mut dyn FnMut(u64)) -> Result<Backup, Error> {
        check_outside(MAKE, folder, self.root())?;
        let former = match self.former_copy(folder)? {
            Some((_, report)) if self.is_all(&report, folder)? => {
                let head = report.head_seq;
                return Ok(Backup { schema: SCHEMA, path: folder.to_owned(), head, bytes: 0, report });
            }
            former => former.map(|(former, _)| former),
        };
        let has_former = former.is_some();
        let copy = Unnamed::begin(MAKE, folder, former)?;
        let done = self.backup_storage(Arc::new(FileStorage::new(copy.path())), progress)?;
        if has_former && done.report.verdict() != Verdict::Sound {
            return Err(copy.refused("the store is damaged, and the sound copy there stays"));
        }
        copy.name()?;
        Ok(Backup { path: folder.to_owned(), ..done })
    }

    /// The copy of this store in a folder: sound, a beginning of this history, and never opened to be written. `None`: the folder holds no such copy.
    fn former_copy(&self, folder: &Path) -> Result<Option<(FormerCopy, VerifyReport)>, Error> {
        let is_same = |found: StoreIdentity| identity_of(self.root()).is_ok_and(|own| own == Some(found));
        // One that cannot be read is no copy.
        if !identity_of(folder).ok().flatten().is_some_and(is_same) {
            return Ok(None);
        }
        let Some(former) = FormerCopy::of(folder, &COPIED)? else { return Ok(None) };
        let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(folder).read_only());
        let report = verify_storage(storage, false)?;
        let here = self.head_place(Some(report.head_seq))?;
        let is_beginning = report.unconfirmed_events == 0
            && here.is_some_and(|here| (here.seq, here.link) == (report.head_seq, report.head_link));
        let is_former = report.verdict() == Verdict::Sound && is_beginning;
        Ok(is_former.then_some((former, report)))
    }

    /// Whether a copy ends where this store does, and is opened by the same key.
    fn is_all(&self, report: &VerifyReport, folder: &Path) -> Result<bool, Error> {
        let head = self.head_place(None)?;
        // A store that is not encrypted has no such file.
        let key = |folder: &Path| std::fs::read(folder.join(KEY)).ok();
        Ok(head.is_some_and(|head| head.seq == report.head_seq) && key(folder) == key(self.root()))
    }

    /// [`Store::backup`], to any storage.
    ///
    /// # Errors
    /// As [`Store::backup`].
    #[doc(hidden)]
    pub fn backup_storage(
        &self,
        target: Arc<dyn Storage>,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Backup, Error> {
        let path = target.path("");
        if target.list("").is_ok_and(|names| !names.is_empty()) {
            let source = std::io::ErrorKind::AlreadyExists.into();
            return Err(Error::Io { action: MAKE, path, source });
        }
        let mut bytes = 0_u64;
        let head = self.inner.log.copy_to(&*target, |count| {
            bytes = bytes.saturating_add(count);
            progress(count);
        })?;
        proven(verify_storage(target, false)?, path, head, bytes)
    }
}

/// Says what a copy is that was verified.
fn proven(report: VerifyReport, path: PathBuf, head: Head, bytes: u64) -> Result<Backup, Error> {
    if report.verdict() == Verdict::Unreadable {
        // Nothing is known of such a copy: it gets no name.
        let source = std::io::Error::other(report.not_proven.join("; "));
        return Err(Error::Io { action: "verify", path, source });
    }
    Ok(Backup { schema: SCHEMA, path, head: head.seq, bytes, report })
}

/// Makes a store in a folder that is empty or does not exist, out of pieces of a log and small files, and verifies it; of an encrypted store whose key
/// is not among them, the stored bytes. `fill` adds all
/// segments and says what else there is; the copy ends at the place behind the last piece. `judge` sees the report of the verification. The
/// folder gets its name once all is done: whatever fails, there is no store.
///
/// # Errors
/// Those of `fill` and of `judge`; [`Error::Io`], [`Error::NoSpace`] as [`Store::backup`].
#[doc(hidden)]
pub fn copy_from_pieces<E: From<Error>>(
    folder: &Path,
    store: StoreId,
    fill: impl FnOnce(&mut CopyTarget<'_>) -> Result<CopyParts, E>,
    judge: impl FnOnce(&VerifyReport) -> Result<(), E>,
) -> Result<Backup, E> {
    let copy = Unnamed::begin("restore to", folder, None)?;
    let target: Arc<dyn Storage> = Arc::new(FileStorage::new(copy.path()));
    let fail = |error: LogError| E::from(Error::from(error));
    let mut segments = CopyTarget::new(&*target, store).map_err(fail)?;
    let parts = fill(&mut segments)?;
    let parts = CopyParts { head: segments.place(), ..parts };
    segments.sync().map_err(fail)?;
    drop(segments);
    parts.write(&*target, None).map_err(fail)?;
    note_erasures(&target).map_err(fail)?;
    // The wrapped key of an encrypted store may be kept elsewhere: no byte of the copy needs it.
    let report = if parts.key.is_some() { verify_storage(target, false)? } else { verify_bytes(target)? };
    let done = proven(report, folder.to_owned(), parts.head, parts.head.position.offset())?;
    judge(&done.report)?;
    copy.name()?;
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::DamagedPart;
    use crate::log::{Log, LogOptions, LogPiece, follow};
    use crate::storage::{SystemClock, SystemEntropy};
    use crate::{Entry, Role, StreamInfo};

    fn store_of_segments(folder: &Path) -> Store {
        let store = Store::builder(folder).any_file_system().segment_bytes_max(16 << 10).open().unwrap();
        let session = store.session(StreamInfo::session("test", "pieces"));
        for number in 0..120 {
            let text = format!("message {number} ").repeat(20);
            let _ = session.append([Entry::message(format!("m{number}"), Role::User, text)]).unwrap();
        }
        store
    }

    fn log_of(folder: &Path) -> Log {
        let storage = Arc::new(FileStorage::new(folder).read_only());
        let options = LogOptions { read_only: true, ..LogOptions::default() };
        Log::open(storage, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options).unwrap().0
    }

    fn pieces(log: &Log, bytes_max: usize) -> Vec<LogPiece> {
        let (mut place, mut found) = (Head::default(), Vec::new());
        while let Some(piece) = log.piece(place, log.head(), bytes_max).unwrap() {
            assert_eq!(piece.before, place);
            place = piece.behind;
            found.push(piece);
        }
        assert_eq!(place, log.head());
        found
    }

    fn restore(folder: &Path, from: &Path, log: &Log, pieces: &[LogPiece]) -> Result<Backup, Error> {
        let fill = |target: &mut CopyTarget<'_>| {
            for piece in pieces {
                target.add(piece.behind.position.segment(), &piece.bytes)?;
            }
            let read = |name: &str| std::fs::read(from.join(name)).unwrap();
            let (store, head, secret) = (log.store(), Head::default(), Some(read("secret")));
            Ok(CopyParts { store, head, store_file: read("acpdb.json"), key: None, secret })
        };
        copy_from_pieces(folder, log.store(), fill, |_| Ok(()))
    }

    #[test]
    fn a_store_made_of_pieces_is_the_store() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let store = store_of_segments(&at("store"));
        let log = log_of(&at("store"));
        assert!(log.head().position.segment() > 3, "several segments");
        for bytes_max in [0, 5000, 1 << 20] {
            let name = format!("copy-{bytes_max}");
            let pieces = pieces(&log, bytes_max);
            let done = restore(&at(&name), &at("store"), &log, &pieces).unwrap();
            assert_eq!((done.report.verdict(), done.head), (Verdict::Sound, store.head().unwrap()));
            for number in 1..log.head().position.segment() {
                let (facts, bytes) = log.segment_bytes(number).unwrap().unwrap();
                let copied = std::fs::read(at(&name).join(format!("log/{number:012}.seg"))).unwrap();
                assert_eq!((facts.generation, &copied), (0, &bytes));
            }
            let copy = Store::builder(at(&name)).any_file_system().open().unwrap();
            let session = copy.session(StreamInfo::session("test", "pieces"));
            let _ = session.append([Entry::message("more", Role::User, "it goes on")]).unwrap();
        }
        assert!(log.segment_bytes(log.head().position.segment()).unwrap().is_none(), "not complete");
    }

    /// An erased text would come back with the bytes that were taken before it was erased.
    #[test]
    fn a_copy_with_older_pieces_carries_erasures_out_again() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let store = store_of_segments(&at("store"));
        let session = store.session(StreamInfo::session("test", "pieces"));
        let said = session.append([Entry::message("leak", Role::User, "the word is swordfish")]).unwrap();
        let mut taken = pieces(&log_of(&at("store")), 4096);
        let _ = store.erase(said.items[0].unwrap(), "ada", "it leaked").unwrap();
        let log = log_of(&at("store"));
        let mut place = taken.last().unwrap().behind;
        while let Some(piece) = log.piece(place, log.head(), 4096).unwrap() {
            place = piece.behind;
            taken.push(piece);
        }
        let done = restore(&at("copy"), &at("store"), &log, &taken).unwrap();
        assert_eq!(done.report.verdict(), Verdict::Sound);
        let holds = || {
            let files = std::fs::read_dir(at("copy/log")).unwrap();
            let mut bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
            bytes.any(|bytes| bytes.windows(9).any(|window| window == b"swordfish"))
        };
        assert!(holds() && at("copy/erasing").exists());
        Store::builder(at("copy")).any_file_system().open().unwrap().close().unwrap();
        assert!(!holds() && !at("copy/erasing").exists());
        // A complete segment has the generation of the erasure.
        let generations = (1..log.head().position.segment())
            .map(|number| log.segment_bytes(number).unwrap().unwrap().0.generation);
        assert_eq!(generations.sum::<u32>(), 1);
    }

    #[test]
    fn pieces_that_do_not_continue_the_place_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["store", "other"] {
            drop(store_of_segments(&at(name)));
        }
        let log = log_of(&at("store"));
        let sound = pieces(&log, 2000);
        let check = |what: &str, pieces: Vec<LogPiece>, part: DamagedPart| {
            let refused = restore(&at("copy"), &at("store"), &log, &pieces);
            let Err(Error::Corrupt { detail, .. }) = refused else { panic!("{what}: {refused:?}") };
            assert!(detail.starts_with(&part.to_string()), "{what}: {detail}");
            assert!(!at("copy").exists() && !at("copy.partial").exists(), "{what}");
        };
        let changed = |change: &dyn Fn(&mut Vec<LogPiece>)| {
            let mut pieces = sound.clone();
            change(&mut pieces);
            pieces
        };
        check("left out", changed(&|pieces| drop(pieces.remove(1))), DamagedPart::FrameMisplaced);
        check("swapped", changed(&|pieces| pieces.swap(1, 2)), DamagedPart::FrameMisplaced);
        check("twice", changed(&|pieces| pieces.insert(1, pieces[1].clone())), DamagedPart::FrameMisplaced);
        check("cut", changed(&|pieces| pieces[1].bytes.truncate(200)), DamagedPart::FrameHeader);
        check("a flipped content", changed(&|pieces| pieces[1].bytes[170] ^= 1), DamagedPart::Spine);
        check("a flipped header", changed(&|pieces| pieces[1].bytes[60] ^= 1), DamagedPart::FrameHeader);
        check("of another store", self::pieces(&log_of(&at("other")), 2000), DamagedPart::SegmentHeader);
        let first = &sound[0];
        assert_eq!(follow(log.store(), &first.before, 1, &first.bytes).unwrap(), first.behind);
    }
}
