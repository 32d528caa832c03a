//! A host's own recording into the store, as far as the host has written it.
//!
//! The importers give every fact an origin, so a recording may be read again after each event: known facts are skipped, new
//! ones are added. A fact that a hook told before the recording had it bears the same origin.

use std::fs::File;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use acpdb_engine::locks::steady;
use acpdb_engine::{Error, Store};
use acpdb_hosts::import::{self, Beside, ImportError, ImportFormat, ImportNote, ImportOptions, Limits};

use crate::below::{self, Links};
use crate::gather::Gather;

/// Most bytes of a file beside a session.
const BESIDE_BYTES_MAX: u64 = 64 << 20;
/// Most recordings of subagents that are read at once.
const AGENT_COUNT_MAX: usize = 256;

/// Why a recording could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// The file.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Its content.
    #[error("cannot import {}", path.display())]
    Import {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: ImportError,
    },
    /// A file of another kind. A host, or a program in its place, may name any file.
    #[error("{} is no recording of {}; nothing of it is recorded", path.display(), format.name())]
    Other {
        /// The file.
        path: PathBuf,
        /// The format that was expected.
        format: ImportFormat,
    },
    /// Messages that a plug-in told.
    #[error("cannot import the messages")]
    Messages(#[source] ImportError),
    /// The store.
    #[error("cannot record")]
    Store(#[from] Error),
}

/// The outcome of reading a recording.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordingReport {
    /// Events that are new.
    pub event_count: u64,
    /// A text about records that were left out.
    pub left_out: Option<String>,
}

/// Reads a recording into the store. A file that is not there yet, or whose first record is not whole yet, has no events.
///
/// Cost: one pass over the file. Durable when it returns.
///
/// # Errors
/// If the file cannot be read, is no recording of this format, or the store cannot be written; facts before the error are recorded.
pub fn import(store: &Store, path: &Path, format: ImportFormat) -> Result<RecordingReport, RecordingError> {
    match below::regular(path) {
        Ok(file) => import_opened(store, path, file, format),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(RecordingReport::default()),
        Err(source) => Err(RecordingError::File { path: path.to_owned(), source }),
    }
}

/// As [`import`], for a subagent's recording beside the session's own at `session`: no part of its name below the session's folder is
/// a link, since the maker of that folder would choose the files that are recorded.
///
/// # Errors
/// As [`import`].
pub fn import_agent(
    store: &Store,
    session: &Path,
    agent: &Path,
    format: ImportFormat,
) -> Result<RecordingReport, RecordingError> {
    let root = session.parent().unwrap_or_else(|| Path::new("."));
    // A recording that lies elsewhere is not this session's.
    let name = agent.strip_prefix(root).ok().and_then(Path::to_str);
    let Some(name) = name else { return Ok(RecordingReport::default()) };
    match below::beneath(root, name) {
        Ok(file) => import_opened(store, agent, file, format),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(RecordingReport::default()),
        Err(source) => Err(RecordingError::File { path: agent.to_owned(), source }),
    }
}

/// Reads a recording that is open into the store.
fn import_opened(
    store: &Store,
    path: &Path,
    file: impl std::io::Read,
    format: ImportFormat,
) -> Result<RecordingReport, RecordingError> {
    let failed = |source| RecordingError::File { path: path.to_owned(), source };
    let options = ImportOptions { beside: Some(beside(path)), ..ImportOptions::default() };
    let mut input = import::decompressed(BufReader::new(file), &options.limits).map_err(failed)?;
    let mut head = Vec::new();
    input.by_ref().take(import::HEAD_BYTES as u64).read_to_end(&mut head).map_err(failed)?;
    if import::is_own_export(&head) || import::detect(path, &head) != Some(format) {
        let other = RecordingError::Other { path: path.to_owned(), format };
        return if is_begun(&head) { Ok(RecordingReport::default()) } else { Err(other) };
    }
    let mut gather = Gather::new(store);
    let read = import::read(format, &stem(path), head.as_slice().chain(input), &options, &mut gather);
    // An error is returned below.
    let left_out = read.as_ref().ok().and_then(|report| left_out(path, &report.skipped));
    let read = read.map_err(|source| RecordingError::Import { path: path.to_owned(), source });
    Ok(RecordingReport { event_count: ended(gather, read)?, left_out })
}

/// A recording from its beginning, if it is there, has begun, and is not packed. Otherwise [`import`](fn@import) says what it is.
pub(crate) fn opened(path: &Path, format: ImportFormat) -> Option<File> {
    let mut head = Vec::new();
    // `import` tells the fault of a file that cannot be read, here and below.
    let file = below::regular(path).ok()?;
    // As above.
    (&file).take(import::HEAD_BYTES as u64).read_to_end(&mut head).ok()?;
    (!import::is_own_export(&head) && import::detect(path, &head) == Some(format)).then_some(file)
}

/// Whether the beginning of a file may become a recording: it is empty, or its last value is JSON that is not whole yet.
fn is_begun(head: &[u8]) -> bool {
    if head.len() >= import::HEAD_BYTES {
        return false;
    }
    let mut values = serde_json::Deserializer::from_slice(head).into_iter::<serde::de::IgnoredAny>();
    values.find_map(Result::err).map_or(head.trim_ascii().is_empty(), |error| error.is_eof())
}

/// A sentence about the records of a file that were left out.
pub(crate) fn left_out(path: &Path, skipped: &[ImportNote]) -> Option<String> {
    let first = skipped.first()?;
    // At least one is there.
    let more = match skipped.len() - 1 {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    Some(format!("{}:{}: {}{more}", path.display(), first.line, first.reason))
}

/// Records messages of an opencode session that its plug-in tells, as JSON. Returns the number of new events. Durable when it returns.
///
/// # Errors
/// If they are no such messages, or the store cannot be written.
pub fn opencode_messages(store: &Store, messages: &str) -> Result<u64, RecordingError> {
    let mut gather = Gather::new(store);
    let read = import::read_opencode_messages(messages.as_bytes(), &ImportOptions::default(), &mut gather);
    ended(gather, read.map_err(RecordingError::Messages))
}

/// The recording of a subagent of the session whose own recording is at `path`.
pub fn agent(path: &Path, agent: &str) -> PathBuf {
    path.with_extension("").join("subagents").join(format!("agent-{agent}.jsonl"))
}

/// The recordings of a session's subagents.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Agents {
    /// The recordings to read: those that were written last, in order of their names.
    pub files: Vec<PathBuf>,
    /// Number of the recordings beside them.
    pub left_out: usize,
}

impl Agents {
    /// A sentence about recordings that are not read; `None` if all are read.
    pub fn shortage(&self, path: &Path) -> Option<String> {
        let Self { files, left_out } = self;
        (*left_out > 0).then(|| {
            format!(
                "{left_out} older recordings of subagents were not read, of {}: acpdb import {} reads all",
                files.len().saturating_add(*left_out), // a count for people
                path.with_extension("").join("subagents").display()
            )
        })
    }
}

/// The recordings of the subagents of a session whose own recording is at `path`.
///
/// # Errors
/// If their folder is there and cannot be read.
pub fn agents(path: &Path) -> Result<Agents, RecordingError> {
    let (root, own) = (path.parent().unwrap_or_else(|| Path::new(".")), folder_name(path));
    let path = root.join(&own).join("subagents");
    let failed = |source| RecordingError::File { path: path.clone(), source };
    let names = match below::names_beneath(root, &format!("{own}/subagents")) {
        Ok(names) => names,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Agents::default()),
        Err(error) => return Err(failed(error)),
    };
    let mut files: Vec<PathBuf> = names.iter().map(|name| path.join(name)).collect();
    files.retain(|file| file.extension().is_some_and(|ending| ending == "jsonl"));
    let left_out = files.len().saturating_sub(AGENT_COUNT_MAX); // none, below the limit
    if left_out > 0 {
        // Files that were written last may be new. A file without a time counts as old.
        let written = |file: &PathBuf| file.metadata().and_then(|metadata| metadata.modified()).ok();
        files.sort_by_cached_key(|file| std::cmp::Reverse(written(file)));
        files.truncate(AGENT_COUNT_MAX);
    }
    files.sort();
    Ok(Agents { files, left_out })
}

/// The name of the folder that a host keeps beside the recording at `path`.
fn folder_name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// A file's name without its endings: the id of a session whose content gives none.
pub fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Reads files that the session at `path` names: long results, by their name alone, in the session's own folder of them; and
/// for Codex the file of another thread, by the thread's id and the number of its file.
pub fn beside(path: &Path) -> Beside {
    let root = path.parent().unwrap_or_else(|| Path::new(".")).to_owned();
    let folder = format!("{}/tool-results", folder_name(path));
    let own = path.to_owned();
    // The files of the thread that was asked for last: files are asked for one after the other.
    let known: Mutex<Option<(String, Vec<PathBuf>)>> = Mutex::default();
    Beside(Arc::new(move |named, number| {
        if import::is_uuid(named) {
            let mut known = steady(&known);
            if known.as_ref().is_none_or(|(thread, _)| thread != named) {
                *known = Some((named.to_owned(), rollouts(&own, named)));
            }
            let (_, files) = known.as_mut()?;
            // A file that cannot be read is none of them.
            return loop {
                match unpacked(files.get(number)?) {
                    Ok(bytes) => break Some(bytes),
                    Err(_) => drop(files.remove(number)),
                }
            };
        }
        if matches!(named, import::AGENT_META | import::AGENT_SESSION | import::AGENT_WORKFLOW) {
            return of_agent(&own, named);
        }
        if named == import::AGENT_FOLDER {
            return Some(own.parent()?.file_name()?.to_string_lossy().into_owned().into_bytes());
        }
        if named == import::SESSION_LOG {
            let log = own.with_extension("jsonl");
            return (log != own && log.exists()).then(Vec::new);
        }
        let name = Path::new(named).file_name().filter(|_| number == 0)?.to_str()?;
        // The session has the beginning of a file that is not read now. A later import looks again, and knows new facts by their origins.
        let mut file = below::beneath(&root, &format!("{folder}/{name}")).ok()?;
        if file.bytes > BESIDE_BYTES_MAX {
            return None;
        }
        let mut bytes = Vec::new();
        // As above.
        file.by_ref().take(BESIDE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }))
}

/// A file beside that of a subagent of Claude Code, by the name under which it is asked for.
fn of_agent(own: &Path, named: &str) -> Option<Vec<u8>> {
    let folder = own.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "subagents"));
    let path = match named {
        import::AGENT_META => own.with_extension("meta.json"),
        import::AGENT_WORKFLOW => {
            let workflow = own.parent().filter(|parent| Some(*parent) != folder && folder.is_some())?;
            return Some(workflow.file_name()?.to_string_lossy().into_owned().into_bytes());
        }
        _ => match folder {
            Some(folder) => folder.parent()?.with_extension("jsonl"),
            // Older versions keep it beside the session's file, which names it.
            None => session_beside(own)?,
        },
    };
    // A file that is not there says nothing about the call.
    let metadata = std::fs::symlink_metadata(&path).ok()?;
    let fits = metadata.is_file() && metadata.len() <= BESIDE_BYTES_MAX;
    // As above.
    fits.then(|| std::fs::read(&path).ok())?
}

/// The file of the session of a subagent whose file lies beside it, by the session's id in the file's first bytes.
fn session_beside(own: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    // A file that cannot be read is named where it is imported.
    File::open(own).ok()?.take(64 << 10).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().find(|line| line.contains("\"sessionId\""))?;
    let id = import::json::owned(import::json::member(Some(line), "sessionId"))?;
    import::is_uuid(&id).then(|| own.with_file_name(format!("{id}.jsonl")))
}

/// The files of a thread of Codex, which lie somewhere beside the file at `own`, the longest first.
fn rollouts(own: &Path, thread: &str) -> Vec<PathBuf> {
    let is_root = |folder: &&Path| {
        folder.file_name().is_some_and(|name| name == "sessions" || name == "archived_sessions")
    };
    let home = own.ancestors().find(is_root).and_then(Path::parent);
    // Files that were taken out of their folders lie side by side.
    let folders = match home {
        Some(home) => vec![home.join("sessions"), home.join("archived_sessions")],
        None => own.parent().map(Path::to_owned).into_iter().collect(),
    };
    let endings = [format!("-{thread}.jsonl"), format!("-{thread}.jsonl.zst")];
    // The importer notes a thread that cannot be read as missing, here and below.
    let found =
        folders.iter().filter_map(|folder| below::files(folder, below::DEPTH_MAX, Links::Within).ok());
    let named = found.flat_map(|found| found.files).filter(|(path, _)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path != own && endings.iter().any(|ending| name.ends_with(ending))
    });
    let mut all: Vec<(PathBuf, u64)> = named.filter(|(_, bytes)| *bytes <= BESIDE_BYTES_MAX).collect();
    all.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    all.into_iter().map(|(path, _)| path).collect()
}

fn unpacked(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let reader = import::decompressed(BufReader::new(below::regular(path)?), &Limits::default())?;
    reader.take(BESIDE_BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The number of events that a reading added.
fn ended<R>(mut gather: Gather<'_>, read: Result<R, RecordingError>) -> Result<u64, RecordingError> {
    if gather.error.is_none() {
        gather.flush();
    }
    // A fact that no commit can hold is named by `acpdb import`; the hook goes on with all others.
    match gather.error {
        Some(error) => Err(error.into()),
        None => read.map(|_| gather.events),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use acpdb_engine::Store;
    use acpdb_engine::entry::{Entry, StreamInfo};
    use acpdb_engine::event::Role;

    use super::{AGENT_COUNT_MAX, Agents, ImportFormat, agents, beside, import, import_agent};
    use crate::hook::HookEvent;
    use crate::host::{AttachMode, Host};
    use crate::mcp::tools::Tools;

    const RECORD: &str = r#"{"type":"user","uuid":"u1","sessionId":"s1","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"Look."}}"#;

    /// Whatever file a hook was told, such as a key of ssh, was recorded as a session.
    #[test]
    fn a_file_of_another_kind_is_refused_and_one_that_begins_is_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
        let path = folder.path().join("id_ed25519");
        let record = format!("{RECORD}\n");
        for (bytes, expected) in [
            (&b"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n"[..], None),
            (b"root:x:0:0:root:/root:/bin/bash\n", None),
            (b"\x93\x00\xff\xfe", None),
            (b"{\"some\": \"JSON\"}\n", None),
            (b"{\"type\":\"session_meta\",\"payload\":{}}\n", None),
            (b"", Some(0)),
            (b" \n", Some(0)),
            (&record.as_bytes()[..40], Some(0)),
            (record.as_bytes(), Some(3)),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let read = import(&store, &path, ImportFormat::ClaudeCode);
            let said = String::from_utf8_lossy(bytes);
            if let Some(count) = expected {
                assert_eq!(read.unwrap().event_count, count, "{said}");
            } else {
                let error = read.unwrap_err().to_string();
                assert!(error.contains("id_ed25519 is no recording of claude-code"), "{said}: {error}");
                assert!(store.stream_names().unwrap().is_empty(), "{said}");
            }
        }
    }

    /// A recording that could not be read took the texts with it that were due.
    #[test]
    fn texts_are_due_whatever_the_recording_is() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
        let project = Some("/w".to_owned());
        let before =
            StreamInfo { project: project.clone(), cwd: project, ..StreamInfo::session("claude-code", "s0") };
        let _ = store.append(&before, vec![Entry::message("m", Role::User, "Look.")]).unwrap();
        let remembered = serde_json::json!({"kind": "decision", "text": "Jobs wait in Postgres"});
        let tools = Tools::new(store.clone(), Some("s0".to_owned()), None);
        let _ = tools.call("memory_remember", remembered.as_object().unwrap()).unwrap();
        let path = folder.path().join("id_ed25519");
        std::fs::write(&path, "root:x:0:0:root:/root:/bin/bash\n").unwrap();
        for (event, is_due) in [("SessionStart", true), ("Stop", false)] {
            let told =
                format!(r#"{{"hook_event_name":"{event}","source":"startup","session_id":"s1","cwd":"/w"}}"#);
            let told = crate::dialect::parse(Host::ClaudeCode, &told, None).unwrap();
            let hook = HookEvent {
                host: Host::ClaudeCode,
                mode: AttachMode::Suggest,
                told: &told,
                transcript: Some(&path),
            };
            let done = hook.run(&store).map_err(|error| error.to_string());
            let said = "is no recording of claude-code";
            match done {
                Ok(done) => {
                    assert!(is_due, "{event}");
                    assert!(done.answer.context.unwrap().contains("Jobs wait in Postgres"));
                    assert!(done.left_out.unwrap().contains(said));
                }
                Err(error) => assert!(!is_due && error.contains(said), "{event}: {error}"),
            }
        }
    }

    /// A record over a limit was left out, and the journal of hooks said nothing.
    #[test]
    fn a_record_that_is_left_out_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
        let path = folder.path().join("s1.jsonl");
        let long = RECORD
            .replace("\"u1\"", "\"u2\"")
            .replace('}', &format!(",\"n\":[0{}]}}", ",0".repeat(1_000_001)));
        std::fs::write(&path, format!("{RECORD}\n{long}\n")).unwrap();
        let told = r#"{"hook_event_name":"Stop","session_id":"s1","cwd":"/w"}"#;
        let told = crate::dialect::parse(Host::ClaudeCode, told, None).unwrap();
        let hook = HookEvent {
            host: Host::ClaudeCode,
            mode: AttachMode::Record,
            told: &told,
            transcript: Some(&path),
        };
        let done = hook.run(&store).unwrap();
        assert!(done.event_count > 0);
        let said = done.left_out.unwrap();
        assert!(said.contains("s1.jsonl:2: left out: a record of "), "{said}");
    }

    /// A folder of subagents that could not be read counted as one without subagents: their work was not recorded.
    #[test]
    fn a_folder_of_subagents_that_cannot_be_read_is_no_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s1.jsonl");
        let below = folder.path().join("s1");
        assert_eq!(agents(&session).unwrap(), Agents::default());
        std::fs::create_dir_all(below.join("subagents")).unwrap();
        for name in ["agent-b.jsonl", "agent-a.jsonl", "agent-a.meta.json"] {
            std::fs::write(below.join("subagents").join(name), "").unwrap();
        }
        let found = agents(&session).unwrap().files;
        assert_eq!(found, ["agent-a.jsonl", "agent-b.jsonl"].map(|name| below.join("subagents").join(name)));
        std::fs::remove_dir_all(below.join("subagents")).unwrap();
        std::fs::write(below.join("subagents"), "no folder").unwrap();
        assert!(agents(&session).unwrap_err().to_string().contains("subagents"));
    }

    /// A folder that was unpacked beside a session led to the user's keys, and what the session named in it was recorded.
    #[test]
    fn links_beside_a_session_lead_nowhere() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(at("keys")).unwrap();
        std::fs::create_dir_all(at("s/own/tool-results")).unwrap();
        std::fs::create_dir_all(at("s/own/subagents")).unwrap();
        std::fs::write(at("keys/id"), "a private key").unwrap();
        std::fs::write(at("keys/agent-a.jsonl"), format!("{RECORD}\n")).unwrap();
        std::fs::write(at("s/own/tool-results/id"), "a result").unwrap();
        std::fs::write(at("s/own/subagents/agent-a.jsonl"), format!("{RECORD}\n")).unwrap();
        symlink(at("keys/agent-a.jsonl"), at("s/own/subagents/agent-b.jsonl")).unwrap();
        let read = |session: &str| beside(&at(session)).0("/elsewhere/id", 0);
        assert_eq!(read("s/own.jsonl").as_deref(), Some(&b"a result"[..]));
        let store = Store::builder(at("store")).any_file_system().open().unwrap();
        let own = agents(&at("s/own.jsonl")).unwrap().files;
        assert_eq!(own.len(), 2);
        let import = |agent| import_agent(&store, &at("s/own.jsonl"), agent, ImportFormat::ClaudeCode);
        assert!(import(&own[0]).unwrap().event_count > 0);
        assert!(import(&own[1]).is_err());
        for (what, to) in [("folder", "keys"), ("tool-results", "keys"), ("subagents", "keys")] {
            std::fs::create_dir_all(at("s/led")).unwrap();
            let link = if what == "folder" { at("s/linked") } else { at("s/led").join(what) };
            symlink(at(to), link).unwrap();
        }
        std::fs::create_dir_all(at("keys/tool-results")).unwrap();
        std::fs::write(at("keys/tool-results/id"), "a private key").unwrap();
        for session in ["s/led.jsonl", "s/linked.jsonl"] {
            assert_eq!(read(session), None, "{session}");
        }
        assert!(agents(&at("s/led.jsonl")).is_err());
        symlink(at("keys/id"), at("s/own/tool-results/link")).unwrap();
        assert_eq!(beside(&at("s/own.jsonl")).0("link", 0), None);
    }

    /// Past 256 subagents the last ones by name were never read, and nothing said so.
    #[test]
    fn too_many_subagents_are_told_and_the_newest_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let session = folder.path().join("s1.jsonl");
        std::fs::write(&session, "").unwrap();
        let below = folder.path().join("s1").join("subagents");
        std::fs::create_dir_all(&below).unwrap();
        for number in 0..AGENT_COUNT_MAX + 3 {
            let file = std::fs::File::create(below.join(format!("agent-{number:03}.jsonl"))).unwrap();
            let age = Duration::from_secs(if number < 3 { 0 } else { number as u64 });
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000) - age).unwrap();
        }
        let found = agents(&session).unwrap();
        assert_eq!((found.files.len(), found.left_out), (AGENT_COUNT_MAX, 3));
        assert_eq!(found.files[0], below.join("agent-000.jsonl"));
        assert_eq!(found.files.last(), Some(&below.join("agent-255.jsonl")));
        let store = Store::builder(folder.path().join("store")).open().unwrap();
        let told = crate::dialect::parse(
            Host::ClaudeCode,
            r#"{"hook_event_name":"SessionEnd","session_id":"s1","cwd":"/w"}"#,
            None,
        );
        let told = told.unwrap();
        let hook = HookEvent {
            host: Host::ClaudeCode,
            mode: AttachMode::Record,
            told: &told,
            transcript: Some(&session),
        };
        let left_out = hook.run(&store).unwrap().left_out.unwrap();
        assert!(
            left_out.starts_with("3 older recordings of subagents were not read, of 259: "),
            "{left_out}"
        );
    }
}
