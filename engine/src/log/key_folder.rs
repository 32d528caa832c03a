//! The folder of wrapped keys: files by their names, replaced and destroyed in steps that survive a crash.
//!
//! ```text
//! new        written under another name, synced, renamed
//! replaced   the old file renamed to NAME.old -> the new one as above -> the old file zeroed, synced and removed
//! destroyed  replaced by a file without a key, so that no key is ever made for it; where that fails, its bytes are written over the old ones
//! ```
//!
//! At whichever step a process dies, a whole file lies under NAME or NAME.old, and no wrapped key lies in a file without a name, where no zeros would
//! reach it.
//!
//! Not here: the contents of the files, and the rings that open them (`keys`).

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, Mutex};

use super::error::LogError;
use crate::codec::{Invalid, KEY_FILE_BYTES_MAX, KeyFile, Part, SubjectFile};
use crate::ids::{StoreId, StreamId, SubjectId};
use crate::locks::steady;
use crate::storage::{Access, Storage, StoredFile, bytes_between, read_file, sync, write_all, write_file};

/// The feature that a store with sealed streams names.
pub(crate) const ENCRYPTION: &str = "encryption";
/// The same feature as a bit in headers of segments.
pub(crate) const ENCRYPTION_BIT: u64 = 1;
/// The folder.
pub(crate) const KEYS_DIR: &str = "keys";
/// The lock file that guards every change in the folder.
const KEYS_LOCK: &str = "KEYS";
const LOCK_PAUSE: std::time::Duration = std::time::Duration::from_millis(2);
const LOCK_TRIES: u32 = 2500;
/// How often a file that seems damaged is looked at again.
const LOOKS: u32 = 3;

const STREAM_END: &str = ".key";
const SUBJECT_END: &str = ".subject";
/// The end of the name of a file that is being written.
const NEW_END: &str = ".tmp";
/// The end of the name of a file that is being replaced.
const OLD_END: &str = ".old";

/// The file of a stream's keys.
pub(crate) fn key_name(stream: StreamId) -> String {
    format!("{KEYS_DIR}/{}{STREAM_END}", stream.to_hex())
}

/// The file of a subject's key.
pub(super) fn subject_name(subject: SubjectId) -> String {
    format!("{KEYS_DIR}/{}{SUBJECT_END}", subject.to_hex())
}

fn key_stream(file_name: &str) -> Option<StreamId> {
    StreamId::from_hex(file_name.strip_suffix(STREAM_END)?)
}

fn key_subject(file_name: &str) -> Option<SubjectId> {
    SubjectId::from_hex(file_name.strip_suffix(SUBJECT_END)?)
}

/// A file's bytes, also while it is being replaced: a file that was replaced after it was opened may be zeros by now.
fn read(storage: &dyn Storage, name: &str) -> io::Result<Option<Vec<u8>>> {
    let mut found = read_once(storage, name)?;
    for _ in 0..LOOKS {
        if !matches!(&found, Some(bytes) if bytes.iter().all(|byte| *byte == 0)) {
            break;
        }
        found = read_once(storage, name)?;
    }
    Ok(found)
}

fn read_once(storage: &dyn Storage, name: &str) -> io::Result<Option<Vec<u8>>> {
    let old = format!("{name}{OLD_END}");
    for name in [name, &old, name] {
        // The own name is tried twice: the new file may have got it between the first two looks.
        if let Some(bytes) = read_file(storage, name, KEY_FILE_BYTES_MAX)? {
            return Ok(Some(bytes));
        }
    }
    Ok(None)
}

/// All names in the folder.
fn names(storage: &dyn Storage) -> io::Result<Vec<String>> {
    match storage.list(KEYS_DIR) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(Vec::new())
        }
        names => names,
    }
}

/// The names of files, sorted, each once; a file that is being replaced counts by its own name.
fn file_names(names: Vec<String>) -> Vec<String> {
    let names = names.into_iter().map(|name| name.strip_suffix(OLD_END).map(str::to_owned).unwrap_or(name));
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The id of the ring that wraps the keys of a stream; nothing if there is no such file, it is damaged, or the stream was shredded.
fn ring_of(storage: &dyn Storage, stream: StreamId) -> Option<[u8; 16]> {
    // A damaged file is reported where its key is needed.
    KeyFile::ring_of(&read(storage, &key_name(stream)).ok()??, stream)
}

/// The id of the ring that opens a store: it wraps the store's own key.
pub(crate) fn ring(storage: &dyn Storage) -> Option<[u8; 16]> {
    ring_of(storage, StreamId::STORE)
}

/// The id of the store that a folder's files of keys are of. `None`: there is no sound file of a stream's keys.
pub(crate) fn store(storage: &dyn Storage) -> Option<StoreId> {
    // Without a name that can be read, the loss is reported where the keys are needed. The store's own key is the first by name.
    file_names(names(storage).ok()?).iter().find_map(|name| {
        let stream = key_stream(name)?;
        // As above.
        Some(KeyFile::of_any_store(&read(storage, &key_name(stream)).ok()??, stream)?.store)
    })
}

/// The ids of all rings that wrap keys of a store: first the one that opens it, then others that a rotation began with or left.
pub(crate) fn rings(storage: &dyn Storage) -> io::Result<Vec<[u8; 16]>> {
    let names = file_names(names(storage)?);
    let mut streams: Vec<StreamId> = names.iter().filter_map(|name| key_stream(name)).collect();
    streams.sort_by_key(|stream| (*stream != StreamId::STORE, *stream));
    let streams = streams.into_iter().filter_map(|stream| ring_of(storage, stream));
    let subjects = names.iter().filter_map(|name| {
        let subject = key_subject(name)?;
        // A file that cannot be read names no ring; it is reported where its key is needed.
        SubjectFile::ring_of(&read(storage, &subject_name(subject)).ok()??, subject)
    });
    let mut found = Vec::new();
    for ring in streams.chain(subjects) {
        if !found.contains(&ring) {
            found.push(ring);
        }
    }
    Ok(found)
}

/// The folder of one store.
pub(super) struct KeyFolder {
    pub(super) storage: Arc<dyn Storage>,
    pub(super) store: StoreId,
    /// Copies of the folder, for files that are not here or are damaged. They are only read.
    pub(super) copies: Vec<Arc<dyn Storage>>,
    /// The files that were read from copies.
    pub(super) from_copies: Mutex<BTreeSet<String>>,
}

/// The right to change files of the folder.
pub(super) struct KeysLock(Box<dyn StoredFile>);

impl Drop for KeysLock {
    fn drop(&mut self) {
        // If unlocking fails, closing the file still releases the lock.
        let _ = self.0.unlock();
    }
}

impl KeyFolder {
    pub(super) fn io(&self, action: &'static str, name: &str) -> impl Fn(io::Error) -> LogError + use<> {
        let path = self.storage.path(name);
        move |error| LogError::io(action, path.clone(), error)
    }

    fn decoded<T>(
        &self,
        name: &str,
        decode: impl Fn(&[u8]) -> Result<T, Invalid>,
    ) -> Result<Result<Option<T>, Invalid>, LogError> {
        let own = self.decoded_in(&*self.storage, name, &decode)?;
        if matches!(own, Ok(Some(_))) {
            return Ok(own);
        }
        for copy in &self.copies {
            let found = self.decoded_in(&**copy, name, &decode)?;
            if matches!(found, Ok(Some(_))) {
                steady(&self.from_copies).insert(name.to_owned());
                return Ok(found);
            }
        }
        Ok(own)
    }

    fn decoded_in<T>(
        &self,
        storage: &dyn Storage,
        name: &str,
        decode: &impl Fn(&[u8]) -> Result<T, Invalid>,
    ) -> Result<Result<Option<T>, Invalid>, LogError> {
        let mut found = self.decoded_once(storage, name, decode)?;
        for _ in 0..LOOKS {
            if found.is_ok() {
                break;
            }
            // Some of it may be zeros, as above.
            found = self.decoded_once(storage, name, decode)?;
        }
        Ok(found)
    }

    fn decoded_once<T>(
        &self,
        storage: &dyn Storage,
        name: &str,
        decode: &impl Fn(&[u8]) -> Result<T, Invalid>,
    ) -> Result<Result<Option<T>, Invalid>, LogError> {
        let bytes = match read(storage, name) {
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Ok(Err(Invalid::new(Part::Secret, 0, "a file of keys", error.to_string())));
            }
            read => read.map_err(self.io("read", name))?,
        };
        match bytes.map(|bytes| decode(&bytes)).transpose() {
            Err(invalid) if invalid.part == Part::Newer => Err(LogError::NewerFormat {
                found: format!("is a file of keys of {}", invalid.found),
                path: self.storage.path(name),
            }),
            decoded => Ok(decoded),
        }
    }

    /// The file of a stream's keys; `None` if there is none, [`Invalid`] if it is damaged.
    pub(super) fn stream(&self, stream: StreamId) -> Result<Result<Option<KeyFile>, Invalid>, LogError> {
        self.decoded(&key_name(stream), |bytes| KeyFile::decode(bytes, self.store, stream))
    }

    /// The file of a subject's key; `None` if there is none, [`Invalid`] if it is damaged.
    pub(super) fn subject(
        &self,
        subject: SubjectId,
    ) -> Result<Result<Option<SubjectFile>, Invalid>, LogError> {
        self.decoded(&subject_name(subject), |bytes| SubjectFile::decode(bytes, self.store, subject))
    }

    fn names(&self) -> Result<Vec<String>, LogError> {
        names(&*self.storage).map_err(self.io("list", KEYS_DIR))
    }

    /// The names here and in copies.
    fn all_names(&self) -> Result<Vec<String>, LogError> {
        let mut all = self.names()?;
        for copy in &self.copies {
            let failed = |error| LogError::io("list", copy.path(KEYS_DIR), error);
            all.extend(names(&**copy).map_err(failed)?);
        }
        Ok(all)
    }

    /// The streams that have a file, rising.
    pub(super) fn streams(&self) -> Result<Vec<StreamId>, LogError> {
        Ok(file_names(self.all_names()?).iter().filter_map(|name| key_stream(name)).collect())
    }

    /// The subjects that have a file, rising.
    pub(super) fn subjects(&self) -> Result<Vec<SubjectId>, LogError> {
        Ok(file_names(self.all_names()?).iter().filter_map(|name| key_subject(name)).collect())
    }

    /// Takes the lock of the folder.
    pub(super) fn lock(&self) -> Result<KeysLock, LogError> {
        let file = self.storage.open(KEYS_LOCK, Access::Create).map_err(self.io("open", KEYS_LOCK))?;
        for _ in 0..LOCK_TRIES {
            if file.try_lock().map_err(self.io("lock", KEYS_LOCK))? {
                return Ok(KeysLock(file));
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        Err(LogError::Busy { process: 0, path: self.storage.path(KEYS_LOCK) })
    }

    /// Takes the lock, and finishes changes that a process left half done. For changes of files that are there.
    pub(super) fn lock_and_mend(&self) -> Result<KeysLock, LogError> {
        let lock = self.lock()?;
        for found in self.names()? {
            // Files of other names are not the store's and stay as they are.
            let is_own = |name: &str| key_stream(name).is_some() || key_subject(name).is_some();
            let old = format!("{KEYS_DIR}/{found}");
            if found.strip_suffix(NEW_END).is_some_and(is_own) {
                self.clear(&old)?;
            }
            let Some(name) = found.strip_suffix(OLD_END).filter(|name| is_own(name)) else { continue };
            let name = &format!("{KEYS_DIR}/{name}");
            if read_file(&*self.storage, name, KEY_FILE_BYTES_MAX).map_err(self.io("read", name))?.is_some() {
                // The process that put the new file there may have died before its name was durable.
                self.sync_names()?;
                self.clear(&old)?;
            } else {
                self.storage.rename(&old, name).map_err(self.io("rename", &old))?;
                self.sync_names()?;
            }
        }
        Ok(lock)
    }

    /// Puts a new file in place. Durable when it returns. The caller holds the lock, as for all methods below, or is making the store.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), LogError> {
        write_file(&*self.storage, name, bytes).map_err(self.io("write", name))
    }

    /// Replaces a file; no bytes of the old one are left. Durable when it returns.
    pub(super) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), LogError> {
        let old = format!("{name}{OLD_END}");
        self.storage.rename(name, &old).map_err(self.io("rename", name))?;
        self.sync_names()?;
        if let Err(error) = self.put(name, bytes) {
            // A new file that has its name stays: others may have sealed with its keys.
            if matches!(read_file(&*self.storage, name, KEY_FILE_BYTES_MAX), Ok(None)) {
                // If the old file cannot be put back, it is read under its `.old` name.
                let _ = self.storage.rename(&old, name);
            }
            return Err(error);
        }
        self.clear(&old)
    }

    /// Zeroes a file where it lies, if it is there; the zeros are durable when it returns.
    fn zero(&self, name: &str) -> Result<bool, LogError> {
        Ok(self.open_here(name)?.map(|file| self.cover(&*file, name, &[])).transpose()?.is_some())
    }

    /// Writes `bytes` over a file where it lies, if it is there; nothing else is left in it. Durable when it returns.
    fn overwrite(&self, name: &str, bytes: &[u8]) -> Result<bool, LogError> {
        let Some(file) = self.open_here(name)? else { return Ok(false) };
        if self.cover(&*file, name, bytes)? > bytes.len() {
            file.set_len(bytes.len() as u64).map_err(self.io("cut", name))?;
            sync(&*file).map_err(self.io("sync", name))?;
        }
        Ok(true)
    }

    fn open_here(&self, name: &str) -> Result<Option<Box<dyn StoredFile>>, LogError> {
        match self.storage.open(name, Access::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            file => file.map(Some).map_err(self.io("open", name)),
        }
    }

    /// Covers a file with `bytes` and zeros behind them, in one write: a reader finds the old bytes or these. Returns how many bytes it has.
    fn cover(&self, file: &dyn StoredFile, name: &str, bytes: &[u8]) -> Result<usize, LogError> {
        let length = file.len().map_err(self.io("inspect", name))?.min(KEY_FILE_BYTES_MAX as u64);
        let mut covering = bytes.to_vec();
        covering.resize(bytes.len().max(bytes_between(0, length)), 0);
        write_all(file, &covering, 0, &mut 0).map_err(self.io("overwrite", name))?;
        sync(file).map_err(self.io("sync", name))?;
        Ok(covering.len())
    }

    /// Makes the names in the folder durable, whichever process gave them.
    pub(super) fn sync_names(&self) -> Result<(), LogError> {
        self.storage.sync_dir(KEYS_DIR).map_err(self.io("sync", KEYS_DIR))
    }

    fn clear(&self, name: &str) -> Result<(), LogError> {
        if self.zero(name)? {
            self.storage.remove(name).map_err(self.io("remove", name))?;
            self.sync_names()?;
        }
        Ok(())
    }

    /// Puts the file `gone`, which says so, in place of a file of keys, whose bytes are gone then. Durable when it returns. If it fails, readers find
    /// the old file or this one.
    pub(super) fn destroy(&self, name: &str, gone: &[u8]) -> Result<(), LogError> {
        if self.replace(name, gone).is_ok() {
            return Ok(());
        }
        // There is no file, or no space or descriptor for another one: a file that is there needs neither.
        let old = format!("{name}{OLD_END}");
        let is_here = self.overwrite(name, gone)?;
        let is_old = self.overwrite(&old, gone)?;
        match (is_here, is_old) {
            (true, true) => {
                // The new file may have its name, and that may not be durable.
                self.sync_names()?;
                self.clear(&old)
            }
            (true, false) => self.sync_names(),
            (false, true) => {
                self.storage.rename(&old, name).map_err(self.io("rename", &old))?;
                self.sync_names()
            }
            (false, false) => {
                self.storage.create_dir(KEYS_DIR).map_err(self.io("create", KEYS_DIR))?;
                self.put(name, gone)
            }
        }
    }

    /// Copies a file to another storage. Returns whether the file exists.
    pub(super) fn copy(&self, name: &str, target: &dyn Storage) -> Result<bool, LogError> {
        let Some(bytes) = read(&*self.storage, name).map_err(self.io("read", name))? else {
            return Ok(false);
        };
        let fail = |error| LogError::io("write", target.path(name), error);
        write_file(target, name, &bytes).map_err(fail)?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::codec::{WRAPPED_BYTES_MAX, WrappedKey};
    use crate::storage::{Fault, FaultKind, SimStorage, SimWorld};

    /// Opens zeros so many times: the file had been replaced before it was read.
    struct Replaced {
        storage: SimStorage,
        zeros: AtomicU32,
    }

    impl Storage for Replaced {
        fn path(&self, name: &str) -> PathBuf {
            self.storage.path(name)
        }
        fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>> {
            let less = |left: u32| left.checked_sub(1);
            let is_late = self.zeros.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
            self.storage.open(if is_late { "keys/zeros" } else { name }, access)
        }
        fn create_dir(&self, name: &str) -> io::Result<()> {
            self.storage.create_dir(name)
        }
        fn list(&self, directory: &str) -> io::Result<Vec<String>> {
            self.storage.list(directory)
        }
        fn rename(&self, from: &str, to: &str) -> io::Result<()> {
            self.storage.rename(from, to)
        }
        fn remove(&self, name: &str) -> io::Result<()> {
            self.storage.remove(name)
        }
        fn sync_dir(&self, directory: &str) -> io::Result<()> {
            self.storage.sync_dir(directory)
        }
        fn process(&self) -> u32 {
            self.storage.process()
        }
    }

    /// The name of a new file could not be made durable, and the old file took its place again. Another process had sealed with a key of the new one.
    #[test]
    fn a_new_file_that_has_its_name_is_not_taken_back() {
        for kind in [FaultKind::SyncDirError, FaultKind::RenameError, FaultKind::SyncError] {
            for after in 0..4 {
                let world = SimWorld::new(1);
                world.set_file("keys/a.key", b"old");
                let storage = world.process(1);
                storage.create_dir(KEYS_DIR).unwrap();
                storage.plant(Fault { kind, after, once: true });
                let (store, copies) = (StoreId::ZERO, Vec::new());
                let folder =
                    KeyFolder { storage: Arc::new(storage), store, copies, from_copies: Mutex::default() };
                let done = folder.replace("keys/a.key", b"new");
                let (file, old) = (world.file("keys/a.key"), world.file("keys/a.key.old"));
                let is_new = file.as_deref() == Some(b"new");
                assert!(
                    is_new || done.is_err() && file.or(old).as_deref() == Some(b"old"),
                    "{kind:?} {after}"
                );
                // Other processes may have read the new file from when it had its name.
                assert!(
                    is_new || kind != FaultKind::SyncDirError || after == 0,
                    "{kind:?} {after}: {done:?}"
                );
            }
        }
    }

    /// Zeros in the file of a key: a process that was open called the session damaged after a shredding that had found no space and no descriptor.
    #[test]
    fn a_destroyed_file_is_the_old_one_or_says_so_also_if_that_fails_half_way() {
        let (store, stream) = (StoreId([7; 16]), StreamId([8; 16]));
        let name = key_name(stream);
        let key = |number| WrappedKey { number, bytes: vec![5; WRAPPED_BYTES_MAX] };
        let gone = KeyFile::shredded(store, stream, None);
        let gone_bytes = gone.encode().unwrap();
        let mut undone = 0;
        for count in [1, 3] {
            let live =
                KeyFile { store, stream, ring: [9; 16], subject: None, keys: (1..=count).map(key).collect() };
            let pairs = FaultKind::ALL.into_iter().flat_map(|one| FaultKind::ALL.map(|two| (one, two)));
            let cases =
                pairs.flat_map(|pair| (0..6).flat_map(move |one| (0..6).map(move |two| (pair, one, two))));
            for ((one, two), first, second) in cases {
                let world = SimWorld::new(1);
                world.set_file(&name, live.encode().unwrap());
                let (storage, reader) = (world.process(1), world.process(2));
                storage.plant(Fault { kind: one, after: first, once: true });
                storage.plant(Fault { kind: two, after: second, once: false });
                let folder = |storage: SimStorage| {
                    let (storage, copies) = (Arc::new(storage), Vec::new());
                    KeyFolder { storage, store, copies, from_copies: Mutex::default() }
                };
                let done = folder(storage).destroy(&name, &gone_bytes);
                let found = folder(reader).stream(stream).unwrap();
                let case = format!("{count} {one:?} {first} {two:?} {second} {done:?} {found:?}");
                // A longer file is written over in one step and cut in another one; and a write may end half way.
                let has = |kind| [one, two].contains(&kind);
                let is_cut_short = count > 1 && has(FaultKind::SyncError)
                    || has(FaultKind::WriteError) && (count > 1 || has(FaultKind::Short));
                match found {
                    Ok(Some(file)) if file == gone => {}
                    Ok(Some(file)) => assert!(file == live && done.is_err(), "{case}"),
                    Ok(None) | Err(_) => assert!(is_cut_short && done.is_err(), "{case}"),
                }
                let is_left =
                    |name: &String| world.file(name).unwrap().windows(64).any(|part| part == [5; 64]);
                assert!(done.is_err() || !world.files().iter().any(is_left), "{case}");
                undone += u32::from(done.is_err());
            }
        }
        assert!(undone > 1000, "{undone}");
    }

    /// A copy of the keys beside a rotation could hold zeros in place of a key.
    #[test]
    fn a_file_that_was_replaced_after_it_was_opened_is_read_again() {
        let world = SimWorld::new(1);
        world.set_file("keys/a.key", b"wrapped");
        world.set_file("keys/zeros", [0; 7]);
        let read_late = |times: u32| {
            let storage = Replaced { storage: world.process(1), zeros: AtomicU32::new(times) };
            read(&storage, "keys/a.key").unwrap()
        };
        assert_eq!([0, 1, LOOKS].map(read_late), [(); 3].map(|()| Some(b"wrapped".to_vec())));
        // Damage stays damage.
        assert_eq!(read_late(LOOKS + 1), Some(vec![0; 7]));
    }
}
