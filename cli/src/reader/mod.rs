//! Files of hosts into a store: finds them, recognises them, imports them, and reports on their content.
//!
//! ```text
//! paths -> files -> format (content first) -> hosts::import::read -> batches -> store.commit, some MB at a time
//! ```

mod ahead;
mod kept;
mod notes;
mod place;
mod started;
mod storage;

use std::fs::File;
use std::io::{BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};

use acpdb_engine::{Error, Store};
use acpdb_hosts::import::{self, ImportError, ImportFormat, ImportNote, ImportOptions, ImportReport, Limits};
use acpdb_hosts::sqlite;
use acpdb_live::below::{self, Links};
use acpdb_live::gather::Gather;
use acpdb_live::recording::{beside, stem};

pub(crate) use self::ahead::{FILE_COUNT as AHEAD_COUNT, FileInProgress, ReaderThread};
pub(crate) use self::kept::{TemporaryFile, kept};
pub(crate) use self::notes::{notes, refused};
pub(crate) use self::started::tell_started;
pub(crate) use self::storage::{StorageFile, stored};

/// The result of reading one file.
#[derive(Debug)]
pub(crate) struct FileReport {
    pub(crate) path: PathBuf,
    pub(crate) report: ImportReport,
    /// Events that are new.
    pub(crate) event_count: u64,
    /// Facts that were known.
    pub(crate) known_count: u64,
    /// Length of the file on disk.
    pub(crate) bytes: u64,
    /// The file was not read: it has not changed since an earlier import.
    pub(crate) is_unchanged: bool,
}

/// A file, or a part of it, that was not imported, with the reason.
#[derive(Debug, serde::Serialize)]
pub(crate) struct Skipped {
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    pub(crate) path: PathBuf,
    pub(crate) line: Option<u64>,
    pub(crate) reason: String,
}

/// A file to import.
#[derive(Debug, Clone)]
pub(crate) struct ImportFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    /// Named by the user, not found in a folder.
    pub(crate) named: bool,
}

/// Files that were found, and paths that could not be looked at.
#[derive(Debug, Default)]
pub(crate) struct FileList {
    pub(crate) files: Vec<ImportFile>,
    pub(crate) unread: Vec<Skipped>,
}

/// The files that are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileChoice {
    /// Of this format; `None`: each of its own.
    pub(crate) format: Option<ImportFormat>,
    /// Also files of what is remembered: sessions are told of it from then on.
    pub(crate) with_memory: bool,
    /// Whether links are followed.
    pub(crate) links: Links,
}

impl FileChoice {
    /// Sessions of this format, or of each file's own.
    pub(crate) const fn sessions(format: Option<ImportFormat>) -> Self {
        Self { format, with_memory: false, links: Links::Within }
    }
}

/// Files below `path`, in order of their paths.
pub(crate) fn files(path: &Path, links: Links) -> std::io::Result<FileList> {
    files_to(path, below::DEPTH_MAX, links)
}

/// Files in the folder `path`, and not in folders below.
pub(crate) fn files_in(path: &Path, links: Links) -> std::io::Result<FileList> {
    files_to(path, 0, links)
}

fn files_to(path: &Path, depth_max: usize, links: Links) -> std::io::Result<FileList> {
    let named = !path.is_dir();
    let found = below::files(path, depth_max, links)?;
    let files = found.files.into_iter().map(|(path, bytes)| ImportFile { path, bytes, named }).collect();
    let unread = found.unread.into_iter().map(|(path, error)| Skipped::unread(path, &error)).collect();
    Ok(FileList { files, unread })
}

impl Skipped {
    /// A path that could not be looked at.
    pub(crate) fn unread(path: PathBuf, error: &std::io::Error) -> Self {
        Self { path, line: None, reason: format!("cannot be read: {error}") }
    }
}

/// Whether a file in a folder gets a remark if its format is not known.
fn looks_like_a_session(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    // A file that a host keeps beside a session is no session.
    !name.ends_with(".meta.json")
        && [".jsonl", ".json", ".traj", ".ndjson"].iter().any(|ending| name.ends_with(ending))
}

/// The kind of a file, by its content.
#[derive(Debug)]
pub(crate) enum Recognised {
    Session(ImportFormat),
    /// Of no known format, and nothing to report.
    Other,
    Skipped(Skipped),
}

/// Looks at the beginning of a file.
pub(crate) fn recognise(candidate: &ImportFile, choice: FileChoice) -> Recognised {
    let found = recognise_any(candidate, choice.format);
    let is_left = !choice.with_memory && choice.format.is_none();
    match found {
        Recognised::Session(ImportFormat::MemoryDecisions | ImportFormat::MemoryPreferences) if is_left => {
            let reason = format!(
                "it holds no session but what is to be remembered, of which later sessions are told; --memory takes it in: {}",
                preview(&candidate.path)
            );
            Recognised::Skipped(Skipped { path: candidate.path.clone(), line: None, reason })
        }
        found => found,
    }
}

/// Most lines, and most bytes, of a file of memory that are shown before it is taken in.
const PREVIEW_COUNT_MAX: usize = 8;
const PREVIEW_BYTES_MAX: u64 = 256 << 10;
/// Longest text of a line that is shown.
const PREVIEW_CHARS_MAX: usize = 80;

/// The first texts of a file of memory.
fn preview(path: &Path) -> String {
    let mut bytes = Vec::new();
    let input = below::regular(path)
        .and_then(|file| import::decompressed(BufReader::new(file), &Limits::default()))
        .and_then(|input| input.take(PREVIEW_BYTES_MAX).read_to_end(&mut bytes));
    if input.is_err() {
        return "it cannot be read".to_owned();
    }
    let text = String::from_utf8_lossy(&bytes);
    let count = text.lines().filter(|line| !line.trim().is_empty()).count();
    // A line that is cut off, or is none of the format, is counted and not shown.
    let shown = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut shown: Vec<String> = shown
        .filter_map(|record| {
            let part = |name: &str| record.get(name).and_then(serde_json::Value::as_str);
            let said = match (part("key"), part("value"), part("title")) {
                (Some(key), Some(value), _) => format!("{key}: {value}"),
                (_, _, Some(title)) => title.to_owned(),
                _ => return None,
            };
            let said: String = said.chars().take(PREVIEW_CHARS_MAX).collect();
            Some(format!("{said:?}"))
        })
        .take(PREVIEW_COUNT_MAX)
        .collect();
    if count > shown.len() {
        shown.push(format!("and {} more", count - shown.len()));
    }
    shown.join(", ")
}

fn recognise_any(candidate: &ImportFile, format: Option<ImportFormat>) -> Recognised {
    let path = &candidate.path;
    let skip = |reason: String| Recognised::Skipped(Skipped { path: path.clone(), line: None, reason });
    let worth_a_word = candidate.named || looks_like_a_session(path);
    let empty = || if candidate.named { skip("the file is empty".to_owned()) } else { Recognised::Other };
    // Hosts leave empty files.
    if candidate.bytes == 0 {
        return empty();
    }
    match stored(path) {
        Some(StorageFile::Session(session)) if session.is_in_a_database() => {
            let why = "opencode's database beside it has the session, which is read from there";
            return if candidate.named { skip(why.to_owned()) } else { Recognised::Other };
        }
        Some(StorageFile::Session(_)) if format.is_none_or(|format| format == ImportFormat::Opencode) => {
            return Recognised::Session(ImportFormat::Opencode);
        }
        Some(StorageFile::Other) => {
            let why = "it is a piece of opencode's storage; name the session's file, or the folder";
            return if candidate.named { skip(why.to_owned()) } else { Recognised::Other };
        }
        _ => {}
    }
    let head = below::regular(path)
        .and_then(|file| {
            import::decompressed(BufReader::new(file), &Limits::default())
                .map(|reader| reader.take(import::HEAD_BYTES as u64))
        })
        .and_then(|mut reader| {
            let mut head = Vec::new();
            reader.read_to_end(&mut head).map(|_| head)
        });
    let head = match head {
        Ok(head) => head,
        Err(error) => return skip(format!("cannot be read: {error}")),
    };
    if is_blank(&head) {
        return empty();
    }
    if head.starts_with(sqlite::MAGIC) {
        return match database(path, |file, log| import::is_opencode(file, log)) {
            Ok(Ok(true)) if format.is_none_or(|format| format == ImportFormat::Opencode) => {
                Recognised::Session(ImportFormat::Opencode)
            }
            Ok(Ok(true)) => skip("it is opencode's database; leave out --format".to_owned()),
            Ok(Ok(false)) if worth_a_word => skip("a SQLite database of another program".to_owned()),
            Ok(Ok(false)) => Recognised::Other,
            Ok(Err(error)) => skip(described(&error)),
            Err(error) => skip(format!("cannot be read: {error}")),
        };
    }
    let refused = |reason: &str| skip(reason.to_owned());
    if import::is_own_export(&head) {
        return refused("acpdb exported it: rows of items, of which no events can be made");
    }
    let host = place::host_of(path).filter(|_| !candidate.named);
    if let Some(reason) = import::foreign(&head) {
        return if host.is_some() && !reason.contains("UTF-16") {
            Recognised::Other
        } else {
            refused(reason)
        };
    }
    let detected = import::detect(path, &head);
    // In the folder of a host only its own sessions count: fixtures of its plug-ins are none.
    if let Some(host) = host
        && (detected.is_some_and(|found| found != host) || detected.is_none() && is_lines_of_json(&head))
    {
        return Recognised::Other;
    }
    // Records stay: a session read with another host's format would stay for ever as records that no importer understands.
    if let (Some(asked), Some(found)) = (format, detected)
        && asked != found
    {
        let (asked, found) = (asked.name(), found.name());
        return skip(format!(
            "it is of format {found}, not {asked}; leave out --format, or give --format {found}"
        ));
    }
    match format.or(detected) {
        Some(format) => Recognised::Session(format),
        None if worth_a_word => {
            let names: Vec<&str> = ImportFormat::ALL.iter().map(|format| format.name()).collect();
            skip(format!("the format is not known; known are {}, which --format names", names.join(", ")))
        }
        None => Recognised::Other,
    }
}

/// Whether a file is white space, or the zeros that a power cut leaves, to its end.
fn is_blank(head: &[u8]) -> bool {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    head.len() < import::HEAD_BYTES && text.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace())
}

/// Whether a file begins with JSON: it is no session that was damaged.
fn is_lines_of_json(head: &[u8]) -> bool {
    let mut values = serde_json::Deserializer::from_slice(head).into_iter::<serde::de::IgnoredAny>();
    values.next().is_none_or(|first| first.map_or_else(|error| error.is_eof(), |_| true))
}

/// The words for a file of which nothing was understood.
pub(crate) const NOTHING: &str =
    "nothing in it was understood as a message or a call; nothing of it is recorded";

/// Whether a file of which nothing was understood is passed over without a word: in the folder of a host, which leaves such files.
pub(crate) fn may_be_empty(candidate: &ImportFile) -> bool {
    !candidate.named && place::host_of(&candidate.path).is_some()
}

fn described(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// A file that is read at any position.
struct Anywhere(File);

impl sqlite::Source for Anywhere {
    fn fill(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<bool> {
        use std::os::unix::fs::FileExt as _;
        match self.0.read_exact_at(buffer, offset) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The write-ahead log of a database.
pub(crate) fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

/// Opens a database and its write-ahead log, for reading only; nothing is locked, and nothing is made beside it.
fn database<T>(
    path: &Path,
    with: impl FnOnce(&dyn sqlite::Source, Option<&dyn sqlite::Source>) -> T,
) -> std::io::Result<T> {
    let file = Anywhere(below::regular(path)?);
    // A pipe in the place of the log would be waited for.
    let log = match below::regular(&log_of(path)) {
        Ok(log) => Some(Anywhere(log)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    Ok(with(&file, log.as_ref().map(|log| log as &dyn sqlite::Source)))
}

/// Imports one file.
pub(crate) fn read(
    store: &Store,
    path: &Path,
    format: ImportFormat,
    options: &ImportOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<FileReport, ReadError> {
    read_changed(store, path, format, options, &mut import::ReadSessions::default(), progress)
}

/// Imports one file; of a database, only the sessions that changed since `sessions` was filled.
pub(crate) fn read_changed(
    store: &Store,
    path: &Path,
    format: ImportFormat,
    options: &ImportOptions,
    sessions: &mut import::ReadSessions,
    progress: &mut dyn FnMut(u64),
) -> Result<FileReport, ReadError> {
    let mut gather = Gather::new(store);
    let (bytes, result) =
        parse(path, format, options, sessions, &mut gather, progress).map_err(ReadError::File)?;
    report(&mut gather, path, bytes, result)
}

/// Records the remaining facts, and reports on the file at `path`.
pub(crate) fn report(
    gather: &mut Gather<'_>,
    path: &Path,
    bytes: u64,
    result: Result<ImportReport, ImportError>,
) -> Result<FileReport, ReadError> {
    if gather.error.is_none() {
        gather.flush();
    }
    if let Some(error) = gather.error.take() {
        return Err(ReadError::Store(error));
    }
    // All before the error is recorded, as whole records: importing again, with more allowed, adds the rest.
    let mut report = result.map_err(|error| ReadError::Import { error, event_count: gather.events })?;
    if let Some(reason) = gather.left_out() {
        report.skipped.push(ImportNote { line: 0, offset: 0, reason });
    }
    Ok(FileReport {
        path: path.to_owned(),
        report,
        event_count: gather.events,
        known_count: gather.known,
        bytes,
        is_unchanged: false,
    })
}

/// Reads one file into facts. Also returns its length.
fn parse(
    path: &Path,
    format: ImportFormat,
    options: &ImportOptions,
    sessions: &mut import::ReadSessions,
    sink: &mut dyn import::Sink,
    progress: &mut dyn FnMut(u64),
) -> std::io::Result<(u64, Result<ImportReport, ImportError>)> {
    let mut file = below::regular(path)?;
    let bytes = file.metadata().map_or(0, |metadata| metadata.len());
    let name = &stem(path);
    if let Some(StorageFile::Session(session)) = stored(path) {
        progress(bytes);
        return Ok((bytes, session.read(options, sink)?));
    }
    let options = &ImportOptions { beside: Some(beside(path)), ..options.clone() };
    let mut magic = [0; sqlite::MAGIC.len()];
    let is_database = file.read_exact(&mut magic).is_ok() && magic == *sqlite::MAGIC;
    let result = if is_database {
        progress(bytes);
        database(path, |file, log| import::read_changed(file, log, name, options, sessions, sink))?
    } else {
        file.rewind()?;
        let counted = FileCounts { inner: file, progress };
        let input = import::decompressed(BufReader::with_capacity(64 << 10, counted), &options.limits)?;
        import::read(format, name, input, options, sink)
    };
    Ok((bytes, result))
}

/// The reason why a file could not be imported.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The file.
    File(std::io::Error),
    /// Its content.
    Import {
        /// The error in the content.
        error: ImportError,
        /// Events that were recorded before the error was found.
        event_count: u64,
    },
    /// The store: nothing more can be recorded.
    Store(Error),
}

struct FileCounts<'p> {
    inner: File,
    progress: &'p mut dyn FnMut(u64),
}

impl std::io::Read for FileCounts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.inner.read(buffer)?;
        (self.progress)(count as u64);
        Ok(count)
    }
}
