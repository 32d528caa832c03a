//! Tells the format of a file: by its content first, by the folders it lies in second.

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use acpdb_engine::text::first_bytes;

use super::limits::{Exceeded, Limits, RATIO_FREE_BYTES};
use super::torn::records_in;
use super::values::{Shape, ValueReader};
use super::{ImportFormat, json, marks};
use crate::is_among;

/// Bytes of the beginning of a file that [`detect`] wants; fewer will do for most files.
pub const HEAD_BYTES: usize = 256 << 10;

/// First bytes of a Zstandard frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// First bytes of a file of gzip.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Most values of the head that are read.
const VALUES_MAX: usize = 50;

/// Whether a file that begins with `head` (already decompressed) holds the rows of items that `export jsonl` writes. They are for
/// reading: no events can be made of them.
pub fn is_own_export(head: &[u8]) -> bool {
    let is_blank = |line: &&[u8]| line.trim_ascii().is_empty();
    let Some(line) = head.split(|byte| *byte == b'\n').find(|line| !is_blank(line)) else { return false };
    // The first line of a head may be cut; its first fields are not.
    let text = String::from_utf8_lossy(line);
    let fields = ["item", "tokens_shown", "in_context", "superseded_by"];
    text.starts_with(r#"{"item":"#) && fields.iter().all(|name| text.contains(&format!("\"{name}\":")))
}

/// The format of a file that begins with `head` (already decompressed); `None` if nothing speaks for any.
pub fn detect(path: &Path, head: &[u8]) -> Option<ImportFormat> {
    by_content(head).or_else(|| by_folder(path).filter(|_| is_json(head)))
}

/// Whether it begins with JSON as hosts write it. A folder's name says nothing of a file that holds something else.
fn is_json(head: &[u8]) -> bool {
    let mut reader = ValueReader::new(head, head.len());
    let Ok(Some(value)) = reader.next_value() else { return head.trim_ascii().is_empty() };
    let is_open = matches!(value.bytes.first(), Some(b'{' | b'['));
    is_open
        && (value.shape == Shape::Cut || serde_json::from_slice::<serde::de::IgnoredAny>(value.bytes).is_ok())
}

fn by_content(head: &[u8]) -> Option<ImportFormat> {
    let mut reader = ValueReader::new(head, head.len());
    for _ in 0..VALUES_MAX {
        // A value that is no JSON is of no format that is known by its content.
        let value = reader.next_value().ok()??;
        let found = match (value.shape, std::str::from_utf8(value.bytes)) {
            (Shape::Whole, Ok(text)) => by_value(text),
            (Shape::Cut, Ok(text)) => by_beginning(text),
            // The head may end inside a character.
            (Shape::Cut, Err(error)) => value
                .bytes
                .get(..error.valid_up_to())
                .and_then(|bytes| std::str::from_utf8(bytes).ok())
                .and_then(by_beginning),
            (Shape::Broken(_), _) => by_record_in(value.bytes),
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}

/// The format of a record behind bytes that are none.
fn by_record_in(bytes: &[u8]) -> Option<ImportFormat> {
    let first = records_in(bytes, marks::is_any).into_iter().next()?;
    by_value(std::str::from_utf8(bytes.get(first)?).ok()?)
}

/// Why a file that begins with `head` (already decompressed) is not read, if it is of a known kind that acpdb does not read.
pub fn foreign(head: &[u8]) -> Option<&'static str> {
    if is_utf16(head) {
        return Some(
            "its encoding is UTF-16, as PowerShell writes it; only UTF-8 is read: write it anew as UTF-8",
        );
    }
    if head.starts_with(&GZIP_MAGIC) {
        return Some("it is packed with gzip, which is not unpacked on the way: unpack it first");
    }
    let start = String::from_utf8_lossy(head.get(..HEAD_BYTES.min(head.len())).unwrap_or_default());
    let has = |names: &[&str]| names.iter().all(|name| start.contains(&format!("\"{name}\"")));
    let is_list = matches!(start.trim_start().as_bytes().first(), Some(b'[' | b'{'));
    let is_mapped = has(&["mapping", "current_node"]) || has(&["mapping", "author", "content_type"]);
    if is_list && is_mapped {
        return Some("it is ChatGPT's export of conversations, which is not read");
    }
    if is_list && has(&["chat_messages", "sender"]) {
        return Some("it is Claude.ai's export of conversations, which is not read");
    }
    None
}

/// Whether a text is UTF-16: it has that mark, or every other byte of its beginning is zero.
fn is_utf16(head: &[u8]) -> bool {
    let start = head.get(..64.min(head.len())).unwrap_or_default();
    let zeros = |from: usize| start.iter().skip(from).step_by(2).all(|byte| *byte == 0);
    let others = |from: usize| start.iter().skip(from).step_by(2).all(|byte| *byte != 0);
    let is_either = zeros(0) && others(1) || zeros(1) && others(0);
    start.starts_with(&[0xff, 0xfe]) || start.starts_with(&[0xfe, 0xff]) || start.len() >= 4 && is_either
}

/// Roles of messages, as the hosts and providers that are read name them.
const ROLES: &str = "system developer user assistant tool function model";

/// Whether a value is the role of a message. Others than messages have roles, too.
fn is_role(role: Option<&str>) -> bool {
    json::string(role).is_some_and(|role| is_among(ROLES, &role))
}

/// The format of one whole value.
pub(super) fn by_value(text: &str) -> Option<ImportFormat> {
    if text.starts_with('[') {
        let list = json::elements(text)?;
        return list.first().and_then(|first| by_list_element(first));
    }
    let names = [
        "type",
        "payload",
        "sessionId",
        "messages",
        "info",
        "trajectory",
        "data",
        "role",
        "replaces",
        "key",
        "ts",
        "simulations",
        "uuid",
    ];
    let [
        kind,
        payload,
        session,
        messages,
        info,
        trajectory,
        data,
        role,
        replaces,
        key,
        ts,
        simulations,
        uuid,
    ] = json::pick(text, names)?;
    let [superseded_by, snapshot, leaf, gemini] =
        json::pick(text, ["superseded_by", "snapshot", "leafUuid", "$set"])?;
    let kind_text = json::string(kind);
    if trajectory.is_some() {
        return Some(ImportFormat::SweAgent);
    }
    if let (Some(_), Some(info)) = (messages, info) {
        let [id, directory] = json::pick(info, ["id", "directory"])?;
        if directory.is_some() || json::string(id).is_some_and(|id| id.starts_with("ses_")) {
            return Some(ImportFormat::Opencode);
        }
    }
    let [project, kind_field] = json::pick(text, ["projectHash", "kind"])?;
    if gemini.is_some() || (session.is_some() && (project.is_some() || kind_field.is_some())) {
        return Some(ImportFormat::GeminiCli);
    }
    if simulations.is_some() {
        return Some(ImportFormat::OpenaiMessages);
    }
    if ts.is_some() && key.is_some() {
        return Some(ImportFormat::MemoryPreferences);
    }
    if replaces.is_some() || superseded_by.is_some() {
        return Some(ImportFormat::MemoryDecisions);
    }
    if payload.is_some() && kind.is_some() {
        return Some(ImportFormat::Codex);
    }
    if data.is_some() && kind_text.as_deref().is_some_and(is_copilot) && session.is_none() {
        return Some(ImportFormat::CopilotCli);
    }
    if kind_text.as_deref() == Some("session") {
        let [id, cwd, uuid_of_host] = json::pick(text, ["id", "cwd", "sessionId"])?;
        if id.is_some() && cwd.is_some() && uuid_of_host.is_none() {
            return Some(ImportFormat::Pi);
        }
    }
    let claude = uuid.is_some() || session.is_some() || snapshot.is_some() || leaf.is_some();
    if kind.is_some() && claude {
        return Some(ImportFormat::ClaudeCode);
    }
    let [history] = json::pick(text, ["history"])?;
    let is_talk = |list: Option<&str>| {
        let first = list.and_then(json::elements).and_then(|list| list.first().copied());
        first.is_some_and(|first| by_list_element(first).is_some())
    };
    if is_role(role) || messages.is_some() || is_talk(history) {
        return Some(ImportFormat::OpenaiMessages);
    }
    None
}

fn is_copilot(kind: &str) -> bool {
    let groups = ["session.", "user.", "assistant.", "tool.", "hook.", "permission.", "system.", "subagent."];
    groups.iter().any(|group| kind.starts_with(group))
}

fn by_list_element(element: &str) -> Option<ImportFormat> {
    let [traj, role, task] = json::pick(element, ["traj", "role", "task_id"])?;
    (traj.is_some() || is_role(role) || task.is_some()).then_some(ImportFormat::OpenaiMessages)
}

/// The format of a document by its beginning: by the names that it shows first.
fn by_beginning(text: &str) -> Option<ImportFormat> {
    let start = first_bytes(text, 4096);
    let has = |name: &str| start.contains(&format!("\"{name}\""));
    if has("info") && (start.contains("\"ses_") || has("projectID")) {
        return Some(ImportFormat::Opencode);
    }
    if has("projectHash") && has("sessionId") {
        return Some(ImportFormat::GeminiCli);
    }
    if has("trajectory") || (has("environment") && has("history")) {
        return Some(ImportFormat::SweAgent);
    }
    if has("simulations") || has("traj") || (text.starts_with('[') && has("role")) {
        return Some(ImportFormat::OpenaiMessages);
    }
    if has("payload") && has("timestamp") {
        return Some(ImportFormat::Codex);
    }
    if has("parentUuid") && has("sessionId") {
        return Some(ImportFormat::ClaudeCode);
    }
    None
}

/// Whether a file bears the name of a session, in the manner of some host.
fn is_session_name(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    let Some((stem, ending)) = name.rsplit_once('.') else { return false };
    let is_lines = ["jsonl", "ndjson", "traj"].iter().any(|known| ending.eq_ignore_ascii_case(known));
    let is_named = ["session", "ses_", "rollout", "checkpoint"].iter().any(|start| stem.starts_with(start));
    is_lines || (ending.eq_ignore_ascii_case("json") && is_named)
}

fn by_folder(path: &Path) -> Option<ImportFormat> {
    let named = path.components().rev().find_map(|part| {
        let part = part.as_os_str().to_str()?;
        match part {
            // Files with other names in these folders are the host's own affairs.
            _ if !is_session_name(path) => None,
            ".claude" => Some(ImportFormat::ClaudeCode),
            ".codex" => Some(ImportFormat::Codex),
            ".gemini" => Some(ImportFormat::GeminiCli),
            ".copilot" | "session-state" => Some(ImportFormat::CopilotCli),
            ".pi" => Some(ImportFormat::Pi),
            _ => ImportFormat::from_name(part),
        }
    });
    named.or_else(|| (path.extension()? == "traj").then_some(ImportFormat::SweAgent))
}

/// Reads `input` as it is, or decompressed if it begins like a Zstandard file.
///
/// # Errors
/// Those of the input; reading on past the limits is an error of the returned reader, see [`exceeded`](super::exceeded).
pub fn decompressed<'a>(mut input: impl BufRead + 'a, limits: &Limits) -> io::Result<Box<dyn BufRead + 'a>> {
    let compressed = input.fill_buf()?.starts_with(&ZSTD_MAGIC);
    let taken = Rc::new(Cell::new(0));
    let counted = ByteCounter { input, count: Rc::clone(&taken) };
    if !compressed {
        let capped = Capped { input: counted, given: 0, taken: None, limits: *limits };
        return Ok(Box::new(BufReader::with_capacity(1 << 16, capped)));
    }
    let mut decoder = zstd::stream::read::Decoder::with_buffer(counted)?;
    // 128 MiB: the limit of the format's tools, unless they are asked for more.
    decoder.window_log_max(27)?;
    let capped = Capped { input: decoder, given: 0, taken: Some(taken), limits: *limits };
    Ok(Box::new(BufReader::with_capacity(1 << 16, capped)))
}

/// Counts the bytes that are taken of an input.
struct ByteCounter<R> {
    input: R,
    count: Rc<Cell<u64>>,
}

impl<R: BufRead> Read for ByteCounter<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.count.set(self.count.get().saturating_add(read as u64));
        Ok(read)
    }
}

impl<R: BufRead> BufRead for ByteCounter<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.input.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        self.count.set(self.count.get().saturating_add(count as u64));
        self.input.consume(count);
    }
}

/// Ends an input that gives more than the limits allow.
struct Capped<R> {
    input: R,
    given: u64,
    /// Packed bytes taken so far, if it is packed.
    taken: Option<Rc<Cell<u64>>>,
    limits: Limits,
}

impl<R: Read> Read for Capped<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer)?;
        self.given = self.given.saturating_add(read as u64);
        let Limits { bytes, ratio, .. } = self.limits;
        if self.given > bytes {
            return Err(Exceeded { limit: "bytes", max: bytes, found: self.given }.into());
        }
        if let Some(taken) = &self.taken {
            let found = self.given / taken.get().max(1);
            if self.given > RATIO_FREE_BYTES && found > ratio {
                return Err(Exceeded { limit: "ratio", max: ratio, found }.into());
            }
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_named() {
        let utf16: Vec<u8> = "{\"type\":\"user\"}".encode_utf16().flat_map(u16::to_le_bytes).collect();
        for (head, named) in [
            (&utf16[..], Some("UTF-16")),
            (&b"\x1f\x8b\x08\0\0\0\0\0"[..], Some("gzip")),
            (br#"[{"mapping":{},"current_node":"a"}]"#, Some("ChatGPT")),
            (br#"{"type":"user"}"#, None),
        ] {
            let found = foreign(head);
            assert!(
                found.map_or(named.is_none(), |found| named.is_some_and(|it| found.contains(it))),
                "{found:?}"
            );
        }
    }
}
