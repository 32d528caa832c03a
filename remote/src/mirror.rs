//! A store at a remote, as a folder of this machine that is read.
//!
//! ```text
//! PLACE/objects   what was fetched, each once        PLACE/ID   the store, restored from there and verified
//! PLACE/state     the head, the next number, the last seq, as they were then
//! ```
//!
//! Asked again, it costs two or three requests if nothing is new, and else those and one for each new object. The folder is made anew from
//! `objects` then, beside the old one, whose place it takes once it is proven. A remote that has less than it had is said to be set back, and
//! the folder stays. Nothing that is recorded in it would stay.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use acpdb_engine::Error;
use acpdb_engine::ids::StoreId;
use acpdb_engine::store::is_store;

use crate::cache::CachedRemote;
use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::names::ObjectName;
use crate::objects::{get_settled, head_of};
use crate::remote::Remote;
use crate::restore::{RestoreOptions, restored};

/// Letters of a store's id in the name of its folder.
const NAME_BYTES: usize = 8;
/// How often it is looked again because the chain was packed meanwhile.
const ROUND_COUNT: u32 = 16;

/// A store that is mirrored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mirrored {
    /// The store's folder. Its name is the beginning of the id.
    pub folder: PathBuf,
    /// The remote has less than it had, or another history. The folder has what it had.
    pub is_set_back: bool,
    /// Whether the folder was made anew by this call.
    pub is_new: bool,
}

/// The head and the end of the chain when the folder was made.
struct MirrorState {
    head: [u8; 32],
    epoch: u64,
    next: u64,
    seq: u64,
}

impl MirrorState {
    fn of(head: &RemoteHead, next: u64, seq: u64) -> Self {
        Self { head: *blake3::hash(&head.encode()).as_bytes(), epoch: head.epoch, next, seq }
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = self.head.to_vec();
        for number in [self.epoch, self.next, self.seq] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        let digest = blake3::hash(&bytes);
        bytes.extend_from_slice(digest.as_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (fields, digest) = bytes.split_at_checked(56)?;
        let (head, numbers) = fields.split_first_chunk::<32>()?;
        let ([epoch, next, seq], []) = numbers.as_chunks::<8>().0.split_first_chunk::<3>()? else {
            return None;
        };
        let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        let state = Self { head: *head, epoch: number(epoch), next: number(next), seq: number(seq) };
        (digest == blake3::hash(fields).as_bytes()).then_some(state)
    }
}

/// The name of a folder for what is below a URL: a digest of it.
pub fn mirror_name(url: &str) -> String {
    blake3::hash(url.as_bytes()).to_hex().chars().take(32).collect()
}

/// How what is there stands to what was there.
enum MirrorStanding {
    Same,
    Other,
    SetBack,
}

pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ChainError {
    let path = path.to_owned();
    move |source| match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => ChainError::Store(Error::NoSpace { path }),
        _ => ChainError::Store(Error::Io { action, path, source }),
    }
}

/// Mirrors a store in the folder `place`, which is made; one process at a time.
///
/// # Errors
/// Those of [`crate::restore`]: what was mirrored before stays then. [`ChainError::Store`] if the place cannot be written.
pub fn mirror(remote: &dyn Remote, store: StoreId, place: &Path) -> Result<Mirrored, ChainError> {
    let objects = place.join("objects");
    let made = DirBuilder::new().mode(0o700).recursive(true).create(&objects);
    made.map_err(failed("create", &objects))?;
    let lock = place.join("lock");
    let held = lock_file(&lock)?;
    held.lock().map_err(failed("lock", &lock))?;
    let name: String = store.to_hex().chars().take(NAME_BYTES).collect();
    let (folder, state_file) = (place.join(&name), place.join("state"));
    let cached = CachedRemote::new(remote, store, &objects);
    // A state that cannot be read is none.
    let known = std::fs::read(&state_file).ok().and_then(|bytes| MirrorState::decode(&bytes));
    let known = known.filter(|_| is_store(&folder));
    if known.is_none() {
        // Objects that were fetched may be of another history than those there now.
        remove(&objects)?;
        DirBuilder::new().mode(0o700).create(&objects).map_err(failed("create", &objects))?;
    }
    let told = |is_set_back, is_new| Ok(Mirrored { folder: folder.clone(), is_set_back, is_new });
    if let Some(known) = &known {
        match standing(&cached, store, known)? {
            MirrorStanding::Same => return told(false, false),
            MirrorStanding::SetBack => return told(true, false),
            MirrorStanding::Other => {}
        }
    }
    let beside = place.join("new");
    remove(&beside)?;
    DirBuilder::new().mode(0o700).create(&beside).map_err(failed("create", &beside))?;
    let made = beside.join(&name);
    let (_verified, end) = restored(&cached, store, &made, RestoreOptions::default())?;
    if known.is_some_and(|known| end.place.seq.0 < known.seq) {
        remove(&beside)?;
        return told(true, false);
    }
    // Without a state the next call makes it anew: it is whole, whichever of these is the last.
    remove(&state_file)?;
    remove(&folder)?;
    std::fs::rename(&made, &folder).map_err(failed("rename", &made))?;
    let state = MirrorState::of(&end.head, end.tail.next, end.place.seq.0).encode();
    std::fs::write(&state_file, state).map_err(failed("write", &state_file))?;
    remove(&beside)?;
    cached.prune().map_err(failed("clear", &objects))?;
    told(false, true)
}

/// Looks whether anything changed: the head, the last entry that is known, and the one behind it.
fn standing(
    remote: &CachedRemote<'_>,
    store: StoreId,
    known: &MirrorState,
) -> Result<MirrorStanding, ChainError> {
    for _ in 0..ROUND_COUNT {
        let found = head_of(remote, store)?;
        let (head, _) = found.ok_or_else(|| ChainError::NoStore { store: store.to_string() })?;
        if head.epoch < known.epoch {
            return Ok(MirrorStanding::SetBack);
        }
        // Entries that a pack has are read from there.
        let last = known.next.checked_sub(1).filter(|last| *last >= head.boundary);
        if let Some(last) = last {
            let key = ObjectName::Entry(last).key(store);
            let there = remote.real_get(&key)?;
            let kept = remote.kept(&key);
            if there.is_none() || there != kept {
                let again = head_of(remote, store)?;
                if again.is_some_and(|(again, _)| again.boundary == head.boundary) {
                    // One that is not kept here shows nothing.
                    let is_other = there.is_none() || kept.is_some();
                    return Ok(if is_other { MirrorStanding::SetBack } else { MirrorStanding::Other });
                }
                continue;
            }
        }
        let is_same = MirrorState::of(&head, known.next, known.seq).head == known.head;
        let is_end = is_same && get_settled(remote, &ObjectName::Entry(known.next).key(store))?.is_none();
        return Ok(if is_end { MirrorStanding::Same } else { MirrorStanding::Other });
    }
    Err(ChainError::Contended)
}

/// Opens the file of a lock, which is made if it is not there.
pub(crate) fn lock_file(path: &Path) -> Result<File, ChainError> {
    let opened = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    opened.map_err(failed("open", path))
}

/// Removes a file or a folder, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), ChainError> {
    let removed = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(failed("remove", path)),
    }
}
