//! Objects as files below a folder on any mounted disk.
//!
//! ```text
//! create   .name.RANDOM.tmp, written and synced -> link to the name: one of any number of links is made
//! swap     lock of .swap { read, compare } -> .tmp, synced -> renamed
//! put      .tmp, synced -> renamed
//! ```
//!
//! Names that begin with a dot are no objects. Where the file system has no second names, an object is created under its own name at once; a crash
//! may leave it torn then, and the chain passes over it. The lock must be one that all machines see which share the folder.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write as _};
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use acpdb_engine::locks::steady;
use acpdb_engine::storage::{Entropy as _, SystemEntropy};

use crate::remote::{
    Created, LISTED_COUNT_MAX, ListedObject, ObjectTag, Remote, RemoteError, Swapped, is_key, read_exactly,
    within,
};

/// No object of the chain is longer.
const OBJECT_BYTES_MAX: u64 = (1 << 30) + (1 << 16);
/// How often a name is drawn for a temporary file.
const DRAW_COUNT: u32 = 16;
/// The file whose lock guards swaps.
const SWAP_LOCK: &str = ".swap";
/// How long a swap waits for that lock, and how often it looks.
const LOCK_WAIT: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// Objects below a folder.
#[derive(Debug)]
pub struct FolderRemote {
    root: PathBuf,
    /// Makes the names in a folder durable.
    sync: fn(&Path) -> io::Result<()>,
    /// Folders of which that failed: what is found there may be lost yet.
    unsynced: Mutex<BTreeSet<PathBuf>>,
    /// How long a swap waits for the lock of all swaps.
    lock_wait: Duration,
}

impl FolderRemote {
    /// Objects below `root`, which is made when something is put there. Touches nothing.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), sync: sync_folder, unsynced: Mutex::default(), lock_wait: LOCK_WAIT }
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file of a key, and the folder that it is in.
    fn place(&self, key: &str) -> Result<(PathBuf, PathBuf), RemoteError> {
        if !is_key(key) {
            return Err(RemoteError::Refused { what: format!("the key {key:?}") });
        }
        let path = self.root.join(key);
        let folder = path.parent().unwrap_or(&self.root).to_owned();
        Ok((path, folder))
    }

    /// Makes the names in a folder durable; if that fails, the next call tries it again before it answers anything.
    fn sync(&self, folder: &Path) -> io::Result<()> {
        (self.sync)(folder).inspect_err(|_| {
            steady(&self.unsynced).insert(folder.to_owned());
        })
    }

    /// Syncs again what could not be synced. A caller that gets an error looks whether its object is there, and takes that for success.
    fn settle(&self) -> io::Result<()> {
        // Others wait meanwhile: none of them answers before it is durable.
        let mut unsynced = steady(&self.unsynced);
        while let Some(folder) = unsynced.first() {
            match (self.sync)(folder) {
                // There are no names in it any more.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                synced => synced?,
            }
            unsynced.pop_first();
        }
        Ok(())
    }

    /// Makes the folders above an object, each durable.
    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        if folder.is_dir() {
            return Ok(());
        }
        if let Some(above) = folder.parent().filter(|_| folder != self.root) {
            self.make_folder(above)?;
        }
        let is_root = folder == self.root;
        match DirBuilder::new().mode(0o700).recursive(is_root).create(folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made?,
        }
        folder.parent().map_or(Ok(()), |above| self.sync(above))
    }

    /// Writes a temporary file beside an object, which no other caller has. Durable when it returns, but for the name.
    fn temporary(&self, folder: &Path, key: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        self.make_folder(folder)?;
        let name = key.rsplit('/').next().unwrap_or(key);
        let mut drawn = [0; 8];
        for _ in 0..DRAW_COUNT {
            SystemEntropy.fill(&mut drawn)?;
            let path = folder.join(format!(".{name}.{:016x}.tmp", u64::from_le_bytes(drawn)));
            // Numbers of processes and counts are the same in two containers: such a name may be linked to an object already.
            match open_new(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                opened => {
                    write_synced(opened?, bytes).inspect_err(|_| {
                        // A rest of it takes space alone.
                        let _ = std::fs::remove_file(&path);
                    })?;
                    return Ok(path);
                }
            }
        }
        Err(io::Error::new(ErrorKind::AlreadyExists, "all names drawn for a temporary file are taken"))
    }

    fn create_file(&self, key: &str, path: &Path, folder: &Path, bytes: &[u8]) -> io::Result<Created> {
        self.settle()?;
        let temporary = self.temporary(folder, key, bytes)?;
        let linked = std::fs::hard_link(&temporary, path);
        let removed = std::fs::remove_file(&temporary);
        let made = match linked {
            Err(error) if matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::PermissionDenied) => {
                open_new(path).and_then(|file| write_synced(file, bytes))
            }
            made => made,
        };
        let is_taken = made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists);
        if !is_taken {
            made?;
        }
        // The link there may be an own one, or another's, that was never synced: it counts from this answer on.
        self.sync(folder)?;
        if is_taken {
            return Ok(Created::Taken);
        }
        removed?;
        Ok(Created::Here(ObjectTag::of(bytes)))
    }

    /// Takes the lock, or gives up: a process that was stopped between its look and its change keeps it.
    fn lock(&self, lock: &File) -> io::Result<()> {
        let until = Instant::now() + self.lock_wait;
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if Instant::now() >= until => {
                    return Err(ErrorKind::WouldBlock.into());
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            }
        }
    }

    fn swap_file(
        &self,
        key: &str,
        path: &Path,
        folder: &Path,
        bytes: &[u8],
        was: &ObjectTag,
    ) -> io::Result<Swapped> {
        self.settle()?;
        self.make_folder(&self.root)?;
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(self.root.join(SWAP_LOCK))?;
        self.lock(&lock)?;
        let found = read_object(path)?;
        if found.is_none_or(|found| ObjectTag::of(&found) != *was) {
            return Ok(Swapped::Moved);
        }
        let temporary = self.temporary(folder, key, bytes)?;
        std::fs::rename(&temporary, path)?;
        self.sync(folder)?;
        // The lock goes with the file.
        drop(lock);
        Ok(Swapped::Here(ObjectTag::of(bytes)))
    }
}

/// Adds the objects below a folder whose keys begin with `under`.
fn walk(
    folder: &Path,
    prefix: &str,
    under: &str,
    after: &str,
    found: &mut Vec<ListedObject>,
) -> io::Result<()> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        let key = format!("{prefix}{name}");
        if !is_key(&key) {
            continue;
        }
        // No link is followed.
        let kind = entry.file_type()?;
        let may_hold = key.starts_with(under) || under.starts_with(&key);
        if kind.is_dir() && may_hold {
            walk(&entry.path(), &format!("{key}/"), under, after, found)?;
        } else if kind.is_file() && key.starts_with(under) && key.as_str() > after {
            let bytes = match entry.metadata() {
                // It was deleted meanwhile.
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                metadata => metadata?.len(),
            };
            found.push(ListedObject { key, bytes });
            // Memory for two pages at most.
            if found.len() >= 2 * LISTED_COUNT_MAX {
                first_page(found);
            }
        }
    }
    Ok(())
}

/// Keeps the first page of a listing.
fn first_page(found: &mut Vec<ListedObject>) {
    found.sort_unstable_by(|left, right| left.key.cmp(&right.key));
    found.truncate(LISTED_COUNT_MAX);
}

/// Makes a file that must not exist.
fn open_new(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).mode(0o600).create_new(true).open(path)
}

/// Writes a file. Durable when it returns, but for the name.
fn write_synced(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    File::open(folder)?.sync_all()
}

/// The bytes of a regular file; `None`: there is none.
fn read_object(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match path.symlink_metadata() {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
        Ok(found) if !found.is_file() => {
            return Err(io::Error::new(ErrorKind::InvalidData, "it is no regular file"));
        }
        Ok(found) if found.len() > OBJECT_BYTES_MAX => {
            let text =
                format!("it has {} bytes, and no object has more than {OBJECT_BYTES_MAX}", found.len());
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        Ok(_) => {}
    }
    match std::fs::read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// The error of a file.
fn failed(call: &str, key: &str) -> impl FnOnce(io::Error) -> RemoteError {
    let what = format!("{call} {key}");
    move |error| match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            RemoteError::Full { what }
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            RemoteError::Refused { what: format!("{what}: {error}") }
        }
        // Another process holds the lock.
        ErrorKind::WouldBlock => RemoteError::Slow { what },
        // A write or a sync that failed may have happened.
        ErrorKind::TimedOut | ErrorKind::Interrupted | ErrorKind::StaleNetworkFileHandle => {
            RemoteError::Doubt { what }
        }
        _ => RemoteError::Broken { what: format!("{what}: {error}") },
    }
}

impl Remote for FolderRemote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        let (path, folder) = self.place(key)?;
        self.create_file(key, &path, &folder, bytes).map_err(failed("creating", key))
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        let (path, folder) = self.place(key)?;
        self.swap_file(key, &path, &folder, bytes, was).map_err(failed("swapping", key))
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        let (path, folder) = self.place(key)?;
        let bytes = read_exactly(bytes, length)?;
        let put = || {
            self.settle()?;
            let temporary = self.temporary(&folder, key, &bytes)?;
            std::fs::rename(&temporary, &path)?;
            self.sync(&folder)
        };
        put().map_err(failed("putting", key))?;
        Ok(ObjectTag::of(&bytes))
    }

    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        let (path, _) = self.place(key)?;
        let found = self.settle().and_then(|()| read_object(&path)).map_err(failed("reading", key))?;
        Ok(found.map(|bytes| (within(&bytes, range.as_ref()), ObjectTag::of(&bytes))))
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let mut found = Vec::new();
        let walked = self.settle().and_then(|()| walk(&self.root, "", under, after, &mut found));
        walked.map_err(failed("listing", under))?;
        first_page(&mut found);
        Ok(found)
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        let (path, folder) = self.place(key)?;
        match std::fs::remove_file(&path) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(()),
            removed => removed.and_then(|()| self.sync(&folder)).map_err(failed("deleting", key)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        /// How many syncs of a folder fail from now on, and how many did not.
        static FAILING: Cell<u32> = const { Cell::new(0) };
        static SYNCED: Cell<u32> = const { Cell::new(0) };
    }

    fn sync_or_fail(folder: &Path) -> io::Result<()> {
        if FAILING.get() > 0 {
            FAILING.set(FAILING.get() - 1);
            return Err(io::Error::from(ErrorKind::TimedOut));
        }
        SYNCED.set(SYNCED.get() + 1);
        sync_folder(folder)
    }

    /// A process that was stopped with the lock held up all others for ever.
    #[test]
    fn a_swap_waits_for_the_lock_of_others_and_not_for_ever() {
        let root = tempfile::tempdir().unwrap();
        let remote = FolderRemote { lock_wait: Duration::ZERO, ..FolderRemote::new(root.path()) };
        let Ok(Created::Here(tag)) = remote.create("heads/1", b"first") else { panic!("it is new") };
        let open =
            || OpenOptions::new().create(true).truncate(false).write(true).open(root.path().join(SWAP_LOCK));
        let held = open().unwrap();
        held.lock().unwrap();
        assert!(matches!(remote.swap("heads/1", b"second", &tag), Err(RemoteError::Slow { .. })));
        drop(held);
        assert!(matches!(remote.swap("heads/1", b"second", &tag), Ok(Swapped::Here(_))));
    }

    /// A sync of a folder timed out; the next try found its own link, and said that the object was there, which no sync had made durable.
    #[test]
    fn an_object_counts_once_its_name_is_synced() {
        let root = tempfile::tempdir().unwrap();
        let remote = FolderRemote { sync: sync_or_fail, ..FolderRemote::new(root.path()) };
        assert!(matches!(remote.create("log/1", b"first"), Ok(Created::Here(_))));
        let is_in_doubt = |error: Option<RemoteError>| matches!(error, Some(RemoteError::Doubt { .. }));

        // Another process, too, may have left a link unsynced.
        SYNCED.set(0);
        assert_eq!(remote.create("log/1", b"first"), Ok(Created::Taken));
        assert_eq!(SYNCED.get(), 1, "before it is said that it is there");

        FAILING.set(2);
        assert!(is_in_doubt(remote.create("log/2", b"second").err()));
        assert!(is_in_doubt(remote.get("log/2", None).err()), "it is not known to stay");
        SYNCED.set(0);
        assert!(remote.get("log/2", None).unwrap().is_some());
        assert_eq!(SYNCED.get(), 1, "it stays");
        assert!(remote.get("log/2", None).unwrap().is_some());
        assert_eq!(SYNCED.get(), 1, "nothing is left to be synced");

        // The same for a swap, whose caller looks at what is there.
        FAILING.set(2);
        assert!(is_in_doubt(remote.swap("log/1", b"other", &ObjectTag::of(b"first")).err()));
        assert!(is_in_doubt(remote.get("log/1", None).err()));
        assert!(remote.get("log/1", None).unwrap().is_some());
    }

    /// Two containers, whose processes have one number, and two remotes of a process had one temporary file for one object: the second writer changed what the
    /// first had linked to its name.
    #[test]
    fn two_writers_of_one_object_have_two_temporary_files() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("log");
        let (one, two) = (FolderRemote::new(root.path()), FolderRemote::new(root.path()));
        let first = one.temporary(&folder, "log/1", b"first").unwrap();
        let object = folder.join("1");
        std::fs::hard_link(&first, &object).unwrap();
        let second = two.temporary(&folder, "log/1", b"second").unwrap();
        assert_ne!(first, second);
        assert_eq!(std::fs::read(&object).unwrap(), b"first", "what is written once does not change");
        assert_eq!(std::fs::read(&second).unwrap(), b"second");
    }
}
