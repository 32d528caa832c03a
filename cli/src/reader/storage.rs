//! opencode's storage before its database: which files are a session's, and which sessions the database has by now.
//!
//! ```text
//! storage/session/<project>/<session>.json     the file that stands for a session
//! storage/message/.., storage/part/..          read with it
//! storage/todo/.., storage/project/..          nothing of a session
//! opencode*.db beside storage/                 what it has is read from there alone: a session counts once
//! ```

use std::collections::BTreeSet;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use acpdb_engine::locks::steady;
use acpdb_hosts::import::{self, ImportError, ImportOptions, ImportReport, Sink, StoredMessage};
use acpdb_live::below;

/// Most bytes of one file.
const FILE_BYTES_MAX: u64 = 64 << 20;
/// Folders of a storage.
const FOLDERS: [&str; 10] = [
    "session",
    "message",
    "part",
    "todo",
    "session_diff",
    "session_share",
    "project",
    "snapshot",
    "share",
    "permission",
];

/// The part of a file in a storage.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StorageFile {
    /// The file of a session.
    Session(StoredSession),
    /// Read with a session's file, or nothing of a session.
    Other,
}

/// A session of a storage.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredSession {
    id: String,
    info: PathBuf,
    /// The folder of its messages' files.
    messages: PathBuf,
    /// The folder in which each message has a folder of parts.
    parts: PathBuf,
    root: PathBuf,
}

/// The part of the file at `path` in a storage of opencode; `None`: it lies in none.
pub(crate) fn stored(path: &Path) -> Option<StorageFile> {
    let is_root = |folder: &&Path| {
        folder.file_name().is_some_and(|name| name == "storage") && folder.join("session").is_dir()
    };
    let root = path.ancestors().skip(1).find(is_root)?;
    // The root is one of its ancestors; a name that is no text is none of a storage.
    let names: Vec<&str> = path.strip_prefix(root).ok()?.iter().filter_map(std::ffi::OsStr::to_str).collect();
    if !names.first().is_some_and(|first| FOLDERS.contains(first)) {
        return (names.len() == 1).then_some(StorageFile::Other);
    }
    let id = path.file_stem()?.to_str()?.to_owned();
    let is_json = path.extension().is_some_and(|ending| ending == "json");
    let session = |messages: PathBuf, parts: PathBuf| {
        let (info, root) = (path.to_owned(), root.to_owned());
        StorageFile::Session(StoredSession { id: id.clone(), info, messages, parts, root })
    };
    Some(match names.as_slice() {
        ["session", "info", _] if is_json => {
            let own = root.join("session");
            session(own.join("message").join(&id), own.join("part").join(&id))
        }
        ["session", "message" | "part", ..] => StorageFile::Other,
        ["session", _, _] if is_json => session(root.join("message").join(&id), root.join("part")),
        _ => StorageFile::Other,
    })
}

impl StoredSession {
    /// Whether a database beside the storage has the session.
    pub(crate) fn is_in_a_database(&self) -> bool {
        let set = std::env::var_os("OPENCODE_DB").filter(|path| !path.is_empty()).map(PathBuf::from);
        // A folder that cannot be listed holds no database that is read.
        let beside = self.root.parent().and_then(|folder| std::fs::read_dir(folder).ok());
        let beside = beside.into_iter().flatten().flatten().map(|entry| entry.path());
        let is_one = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("opencode") && name.ends_with(".db")
        };
        set.into_iter().chain(beside.filter(is_one)).any(|database| sessions_of(&database).contains(&self.id))
    }

    /// Bytes of all its files, and the time of the last change of one: other values if any file changes.
    pub(crate) fn stamp(&self) -> (u64, i128) {
        let mut stamp = (0_u64, 0_i128);
        for path in self.files() {
            // A file that is gone meanwhile changes the sum of bytes.
            let Ok(metadata) = std::fs::metadata(&path) else { continue };
            let at = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
            stamp = (stamp.0.saturating_add(metadata.size()).saturating_add(1), stamp.1.max(at));
        }
        stamp
    }

    fn files(&self) -> Vec<PathBuf> {
        self.messages_with_parts()
            .into_iter()
            .flat_map(|(message, parts)| [vec![message], parts].concat())
            .collect()
    }

    fn messages_with_parts(&self) -> Vec<(PathBuf, Vec<PathBuf>)> {
        let with_parts = |message: PathBuf| {
            let parts = in_order(&self.parts.join(message.file_stem().unwrap_or_default()));
            (message, parts)
        };
        in_order(&self.messages).into_iter().map(with_parts).collect()
    }

    fn message(&self, path: &Path, parts: Vec<PathBuf>) -> io::Result<StoredMessage> {
        let part = |path: PathBuf| Ok((name_of(&path), self.content(&path)?));
        let parts = parts.into_iter().map(part).collect::<io::Result<_>>()?;
        Ok(StoredMessage { id: name_of(path), info: self.content(path)?, parts })
    }

    /// A file of the storage. No link below the storage is followed: the maker of the folder would choose the files that are read.
    fn content(&self, path: &Path) -> io::Result<Vec<u8>> {
        let name = path.strip_prefix(&self.root).map_err(io::Error::other)?.to_str();
        let name =
            name.ok_or_else(|| io::Error::other(format!("{} is not named in UTF-8", path.display())))?;
        let mut file = below::beneath(&self.root, name)?;
        if file.bytes > FILE_BYTES_MAX {
            return Err(io::Error::other(format!("{} has more than {FILE_BYTES_MAX} bytes", path.display())));
        }
        let mut bytes = Vec::new();
        file.by_ref().take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Imports the session.
    pub(crate) fn read(
        &self,
        options: &ImportOptions,
        sink: &mut dyn Sink,
    ) -> io::Result<Result<ImportReport, ImportError>> {
        let info = self.content(&self.info)?;
        // Looked at once: a part that comes later is in neither.
        let files = self.messages_with_parts();
        let names = |parts: &[PathBuf]| parts.iter().map(|part| name_of(part)).collect();
        let list = files.iter().map(|(path, parts)| (name_of(path), names(parts))).collect();
        let mut messages = files.into_iter().map(|(path, parts)| self.message(&path, parts));
        Ok(import::read_storage(&self.id, &info, (list, &mut messages), options, sink))
    }
}

/// The JSON files of a folder, in the order of their ids, which is that of time.
fn in_order(folder: &Path) -> Vec<PathBuf> {
    // A message without parts has no folder of them.
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect();
    files.sort();
    files
}

fn name_of(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

type KnownSessions = (PathBuf, Option<(u64, i64, i64)>, Arc<BTreeSet<String>>);

/// The sessions of a database; none if it cannot be read. The database that was asked for last is remembered as it was.
fn sessions_of(database: &Path) -> Arc<BTreeSet<String>> {
    static KNOWN: Mutex<Option<KnownSessions>> = Mutex::new(None);
    // A file without a time is read anew.
    let metadata = std::fs::metadata(super::log_of(database)).or_else(|_| std::fs::metadata(database)).ok();
    let stamp = metadata.map(|it| (it.size(), it.mtime(), it.mtime_nsec()));
    let mut known = steady(&KNOWN);
    if let Some((path, at, sessions)) = &*known
        && path == database
        && *at == stamp
    {
        return Arc::clone(sessions);
    }
    let found = super::database(database, |file, log| import::session_ids(file, log));
    // A database that cannot be read is named where it is imported itself.
    let sessions = Arc::new(found.ok().and_then(Result::ok).unwrap_or_default());
    *known = Some((database.to_owned(), stamp, Arc::clone(&sessions)));
    sessions
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sessions_file_stands_for_all_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("opencode/storage");
        std::fs::create_dir_all(root.join("session")).unwrap();
        for (path, is_session) in [
            ("session/p1/ses_1.json", Some(true)),
            ("session/info/ses_1.json", Some(true)),
            ("session/message/ses_1/msg_1.json", Some(false)),
            ("session/part/ses_1/msg_1/prt_1.json", Some(false)),
            ("message/ses_1/msg_1.json", Some(false)),
            ("part/msg_1/prt_1.json", Some(false)),
            ("todo/ses_1.json", Some(false)),
            ("migration", Some(false)),
            ("mine/a.json", None),
        ] {
            let found = stored(&root.join(path)).map(|stored| matches!(stored, StorageFile::Session(_)));
            assert_eq!(found, is_session, "{path}");
        }
        assert_eq!(stored(&folder.path().join("session/p1/ses_1.json")), None);
    }

    /// A storage that a repository brings must not choose which of the user's files are read.
    #[test]
    fn links_below_a_storage_lead_nowhere() {
        use std::os::unix::fs::symlink;

        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("opencode/storage");
        for name in ["session/p1", "message/ses_1", "part"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::create_dir(folder.path().join("own")).unwrap();
        for name in ["own/prt_1.json", "opencode/storage/message/ses_1/msg_1.json"] {
            std::fs::write(folder.path().join(name), "{}").unwrap();
        }
        symlink(folder.path().join("own"), root.join("part/msg_1")).unwrap();
        symlink(folder.path().join("own/prt_1.json"), root.join("message/ses_1/msg_2.json")).unwrap();
        let Some(StorageFile::Session(session)) = stored(&root.join("session/p1/ses_1.json")) else {
            panic!()
        };
        assert_eq!(session.content(&root.join("message/ses_1/msg_1.json")).unwrap(), b"{}");
        for name in ["message/ses_1/msg_2.json", "part/msg_1/prt_1.json", "../../own/prt_1.json"] {
            assert!(session.content(&root.join(name)).is_err(), "{name}");
        }
    }
}
