//! Small files beside the snapshots, in which a program on top of the store keeps bytes that it would like to find again.
//!
//! ```text
//! snap/<name>.aside   header: magic, layout, program, store, name's digest, seq, position, link   digest 32   bytes
//! ```
//!
//! Like everything in `snap/` they may be deleted at any moment. A file counts only while the log bears out the commit that
//! the file rests on: beside an older log, or another store's, it is ignored. Code that keeps a file here must be able to do
//! without; failures are not reported.

use super::Store;
use super::kept::FOLDER;
use super::snapshot_file::{Fields, Footing, program, put_in_place, write_parts};
use crate::ids::StoreId;
use crate::storage::Access;

const MAGIC: &[u8; 8] = b"acpdbASD";
const LAYOUT: u32 = 1;
/// Most bytes of one file.
const BYTES_MAX: u64 = 64 << 20;
const HEADER_BYTES: usize = 96;
const DIGEST_BYTES: usize = 32;

fn file_name(name: &str) -> String {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{FOLDER}/{plain}.aside")
}

/// The id of a file's name in its header: the first half of the digest of the name.
fn owner(name: &str) -> [u8; 16] {
    let mut id = [0; 16];
    let digest = blake3::hash(name.as_bytes());
    for (to, from) in id.iter_mut().zip(digest.as_bytes()) {
        *to = *from;
    }
    id
}

fn encode(store: StoreId, name: &str, footing: Footing) -> Vec<u8> {
    let mut header = Vec::with_capacity(HEADER_BYTES);
    header.extend_from_slice(MAGIC);
    header.extend_from_slice(&LAYOUT.to_le_bytes());
    header.extend_from_slice(&program().to_le_bytes());
    header.extend_from_slice(store.as_bytes());
    header.extend_from_slice(&owner(name));
    footing.encode(&mut header);
    header
}

/// The footing of the bytes, if the header is of a file of that name, of this program and of this store.
fn decode(header: &[u8], store: StoreId, name: &str) -> Option<Footing> {
    let mut fields = Fields(header);
    let ours = fields.take()? == *MAGIC
        && fields.take()? == LAYOUT.to_le_bytes()
        && fields.take()? == program().to_le_bytes()
        && fields.take()? == store.0
        && fields.take()? == owner(name);
    fields.footing().filter(|_| ours)
}

fn digest(header: &[u8], bytes: &[u8]) -> [u8; DIGEST_BYTES] {
    let mut hasher = blake3::Hasher::new_derive_key("acpdb 2026 aside v1");
    hasher.update(header);
    hasher.update(bytes);
    *hasher.finalize().as_bytes()
}

impl Store {
    /// The bytes kept under a name, if the file is still there, whole, and of this log.
    #[doc(hidden)]
    pub fn aside(&self, name: &str) -> Option<Vec<u8>> {
        let snapshots = &self.inner.snapshots;
        if !snapshots.uses.reads {
            return None;
        }
        // Bytes kept aside that cannot be read are made anew, here and below.
        let file = snapshots.storage.open(&file_name(name), Access::Read).ok()?;
        // As above.
        let length = file.len().ok().filter(|length| *length <= BYTES_MAX)?;
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        let mut done = 0;
        while done < bytes.len() {
            match file.read_at(bytes.get_mut(done..)?, done as u64).ok()? {
                0 => return None,
                count => done += count,
            }
        }
        let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
        let (stored, kept) = rest.split_at_checked(DIGEST_BYTES)?;
        if digest(header, kept) != *stored {
            return None;
        }
        let footing = decode(header, snapshots.store, name)?;
        (self.inner.footing_at(footing.position)? == footing).then(|| kept.to_vec())
    }

    /// Whether this handle keeps bytes aside at all: not if it is open for reading only.
    #[doc(hidden)]
    pub fn puts_aside(&self) -> bool {
        self.inner.snapshots.uses.writes
    }

    /// Keeps bytes under a name, in the place of earlier ones. `false`: the bytes are not kept.
    #[doc(hidden)]
    pub fn put_aside(&self, name: &str, bytes: &[u8]) -> bool {
        let snapshots = &self.inner.snapshots;
        if !snapshots.uses.writes || bytes.len() as u64 > BYTES_MAX / 2 {
            return false;
        }
        // Without a footing nothing is kept aside, at the cost of time alone.
        let Some(footing) = self.head().ok().and_then(|head| self.inner.footing_of(head)) else {
            return false;
        };
        let header = encode(snapshots.store, name, footing);
        let digest = digest(&header, bytes);
        let put = put_in_place(&*snapshots.storage, &file_name(name), &|file| {
            write_parts(file, &[&header, &digest, bytes], 0)
        });
        // As above.
        put.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use crate::entry::{Entry, StreamInfo};
    use crate::event::Role;
    use crate::store::Store;

    #[test]
    fn what_is_kept_is_found_again_or_not_at_all() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("store");
        let open = || Store::builder(&path).open().unwrap();
        let say = |store: &Store, text: &str| {
            let _ = store.append(&StreamInfo::session("h", "s"), vec![Entry::message("", Role::User, text)]);
        };
        let store = open();
        say(&store, "one");
        assert_eq!(store.aside("imports"), None);
        assert!(store.put_aside("imports", b"kept"));
        assert_eq!(store.aside("imports").as_deref(), Some(&b"kept"[..]));
        assert_eq!(store.aside("import"), None, "another name");
        // A longer log bears it out, another store does not.
        say(&store, "two");
        store.close().unwrap();
        assert_eq!(open().aside("imports").as_deref(), Some(&b"kept"[..]));
        let file = path.join("snap/imports.aside");
        let other = Store::builder(folder.path().join("other")).open().unwrap();
        say(&other, "one");
        assert!(other.put_aside("imports", b"other"));
        std::fs::copy(&file, folder.path().join("other/snap/imports.aside")).unwrap();
        assert_eq!(other.aside("imports"), None);
        // Garbled at any place, or cut.
        let sound = std::fs::read(&file).unwrap();
        for place in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[place] ^= 1;
            std::fs::write(&file, &bytes).unwrap();
            assert_eq!(open().aside("imports"), None, "byte {place}");
            std::fs::write(&file, &sound[..place]).unwrap();
            assert_eq!(open().aside("imports"), None, "cut at {place}");
        }
        std::fs::remove_file(&file).unwrap();
        assert_eq!(open().aside("imports"), None);
    }
}
