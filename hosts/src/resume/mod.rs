//! Sessions written back, so that a host opens them and goes on.
//!
//! ```text
//! View --records of its own host--> the same lines, under a new id                    Origin::Records
//!  '---export as a request--------> a line for each message, as the host writes them  Origin::Conversation
//! ```
//!
//! A session of the same host is made of the host's own records, byte for byte but for the session's id: settings, summaries
//! and usage in them are there again. For another host, and where there are no records, lines are made of the request that the
//! model would be sent. In both cases importing the file gives the same conversation.
//!
//! This module does not choose where the file lies, and does not write it. Subagents have files of their own and are left out;
//! their answers are in the session's own results.

mod claude;
mod codex;

use std::collections::BTreeSet;

use acpdb_engine::event::Payload;
use acpdb_engine::ids::Seq;
use acpdb_engine::store::At;
use acpdb_engine::{Error, Store, View};

use crate::export::{ExportChoices, Format, Selection, export};

/// Most branches of which one leaves the other.
const BRANCH_DEPTH_MAX: usize = 64;

/// A host whose sessions can be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResumeHost {
    /// Claude Code: `projects/FOLDER/ID.jsonl`.
    ClaudeCode,
    /// Codex: `sessions/YEAR/MONTH/DAY/rollout-TIME-ID.jsonl`.
    Codex,
}

impl ResumeHost {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::ClaudeCode, Self::Codex];

    /// Its name, as imports spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
        }
    }

    /// The host of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|host| host.name() == name)
    }

    /// The path at which the host looks for the file, below the folder of its settings.
    pub fn place(self, resume: &ResumeOptions) -> String {
        match self {
            Self::ClaudeCode => claude::place(resume),
            Self::Codex => codex::place(resume),
        }
    }

    /// The command that opens the session, in its folder.
    pub fn opens(self, id: &str) -> String {
        match self {
            Self::ClaudeCode => format!("claude --resume {id}"),
            Self::Codex => format!("codex resume {id}"),
        }
    }

    const fn format(self) -> Format {
        match self {
            Self::ClaudeCode => Format::Anthropic,
            Self::Codex => Format::Responses,
        }
    }
}

/// The command by which a host opens a session of its own again; `None`: it has none that takes a session's name. A subagent has none, so
/// its session is opened.
pub fn opens(host: &str, session: &str) -> Option<String> {
    let session = session.split('/').next().filter(|name| !name.is_empty())?;
    // Its host opens the branch that was written to last.
    let session = acpdb_engine::entry::without_branch(session);
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    // Names of other forms were made by people or programs; a shell would read them otherwise.
    if session.starts_with('-') || !session.chars().all(is_plain) {
        return None;
    }
    if let Some(host) = ResumeHost::from_name(host) {
        return Some(host.opens(session));
    }
    Some(match host {
        "opencode" => format!("opencode --session {session}"),
        "gemini-cli" => format!("gemini --resume {session}"),
        "copilot-cli" => format!("copilot --resume={session}"),
        "pi" => format!("pi --session {session}"),
        _ => return None,
    })
}

/// How a session is written.
#[derive(Clone, Debug)]
pub struct ResumeOptions {
    /// Its new id, a UUID.
    pub id: String,
    /// The folder in which the host goes on.
    pub folder: String,
    /// Now, as `2026-01-31T12:00:00.000Z`.
    pub time: String,
    /// Whether superseded, discarded and distilled texts show their placeholders, as acpdb would send them.
    pub pruned: bool,
}

/// The source of a file's lines.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The host's own records.
    Records,
    /// Messages of the conversation.
    Conversation,
}

/// A session as its host's file.
#[derive(Clone, Debug)]
#[must_use]
pub struct ResumedSession {
    /// The file.
    pub bytes: Vec<u8>,
    /// The source of its lines.
    pub origin: Origin,
    /// Its lines.
    pub lines: usize,
    /// Parts of the conversation that could not be carried.
    pub left_out: Vec<String>,
}

/// Writes the conversation that `view` shows as a session of a host.
///
/// Cost: the session's records, or the texts of its context.
///
/// # Errors
/// If the log cannot be read.
pub fn write(
    store: &Store,
    view: &View,
    host: ResumeHost,
    resume: &ResumeOptions,
) -> Result<ResumedSession, Error> {
    let info = view.state().info(view.at()).cloned().unwrap_or_default();
    if info.host == host.name() && !resume.pruned {
        let mut lines = records(store, view, &info.name, resume)?;
        if !lines.is_empty() {
            let mut above = view.clone();
            // The lines that a branch shares stand in the stream that it left.
            for _ in 0..BRANCH_DEPTH_MAX {
                let Some((_, fork)) = above.state().forks(above.at()).last() else { break };
                if fork.at == Seq::ZERO {
                    break;
                }
                above = store.view_once(fork.from, &At::Seq(fork.at))?;
                let name = above.state().info(above.at()).map(|info| info.name.clone()).unwrap_or_default();
                let mut shared = records(store, &above, &name, resume)?;
                shared.append(&mut lines);
                lines = shared;
            }
            let count = lines.len();
            return Ok(ResumedSession {
                bytes: joined(lines),
                origin: Origin::Records,
                lines: count,
                left_out: Vec::new(),
            });
        }
    }
    let selection = if resume.pruned { Selection::Current } else { Selection::Recorded };
    let exported = export(view, host.format(), &ExportChoices { selection, ..ExportChoices::default() })?;
    let lines = match host {
        ResumeHost::ClaudeCode => claude::lines(&exported.bytes, resume),
        ResumeHost::Codex => codex::lines(&exported.bytes, resume),
    };
    let (count, left_out) = (lines.len(), exported.report.lines());
    Ok(ResumedSession { bytes: joined(lines), origin: Origin::Conversation, lines: count, left_out })
}

fn joined(lines: Vec<Vec<u8>>) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(lines.iter().map(|line| line.len() + 1).sum());
    for line in lines {
        bytes.extend(line);
        bytes.push(b'\n');
    }
    bytes
}

/// The host's records up to the view's seq, without those of branches that were left, under a new id.
fn records(store: &Store, view: &View, old: &str, resume: &ResumeOptions) -> Result<Vec<Vec<u8>>, Error> {
    // Branches that the host itself left stay: the host's record of the rewind is among the lines.
    let mut left: Vec<(Seq, Seq)> = view.state().rewinds(view.at()).to_vec();
    let mut told_by_host = BTreeSet::new();
    let mut found = Vec::new();
    for recorded in store.stream_events(view.stream(), Seq(1), view.at())? {
        let recorded = match recorded {
            Err(Error::Corrupt { .. }) => continue,
            other => other?,
        };
        let record = store.record(&recorded)?;
        if matches!(recorded.event.payload, Payload::Rewound(_)) && record.is_some() {
            told_by_host.insert(recorded.seq);
        }
        found.extend(record.map(|record| (recorded.seq, record)));
    }
    left.retain(|(seq, _)| !told_by_host.contains(seq));
    let is_left = |seq: Seq| left.iter().any(|(at, to)| *to < seq && seq < *at);
    let old = acpdb_engine::entry::without_branch(old);
    let (from, to) = (format!("\"{old}\""), format!("\"{}\"", resume.id));
    let lines = found.into_iter().filter(|(seq, _)| !is_left(*seq));
    Ok(lines.map(|(_, record)| replaced(&record, from.as_bytes(), to.as_bytes())).collect())
}

/// The bytes with `to` in place of each `from`, without line feeds at the end. Inside a JSON string no quotation mark stands
/// alone, so a quoted id is a value, never part of a text.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from) {
        let (before, behind) = rest.split_at(at);
        out.extend_from_slice(before);
        out.extend_from_slice(to);
        rest = behind.get(from.len()..).unwrap_or_default();
    }
    out.extend_from_slice(rest);
    while out.last() == Some(&b'\n') {
        out.pop();
    }
    out
}

/// An id of the form of a UUID, the same for the same words.
fn derived(words: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for word in words {
        hasher.update(&(word.len() as u64).to_le_bytes());
        hasher.update(word.as_bytes());
    }
    let hex = hasher.finalize().to_hex();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    format!("{}-{}-4{}-8{}-{}", part(0, 8), part(8, 12), part(13, 16), part(17, 20), part(20, 32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_opens_its_own_sessions_and_no_shell_reads_a_name_otherwise() {
        for (host, session, want) in [
            ("claude-code", "e38a-1", Some("claude --resume e38a-1")),
            ("claude-code", "e38a-1/agent-7", Some("claude --resume e38a-1")),
            ("claude-code", "e38a-1+2", Some("claude --resume e38a-1")),
            ("codex", "01a2", Some("codex resume 01a2")),
            ("opencode", "ses_1", Some("opencode --session ses_1")),
            ("gemini-cli", "g1", Some("gemini --resume g1")),
            ("copilot-cli", "c1", Some("copilot --resume=c1")),
            ("pi", "p1", Some("pi --session p1")),
            ("cursor", "x", None),
            ("acpdb", "s1", None),
            ("claude-code", "", None),
            ("claude-code", "-p", None),
            ("claude-code", "a; rm -r b", None),
            ("claude-code", "$(b)", None),
        ] {
            assert_eq!(opens(host, session).as_deref(), want, "{host} {session}");
        }
    }

    #[test]
    fn a_quoted_id_is_replaced_wherever_it_is_a_value() {
        for (from, to) in [
            (r#"{"sessionId":"old","x":1}"#, r#"{"sessionId":"new","x":1}"#),
            (r#"{"a":{"id":"old"},"b":["old"]}"#, r#"{"a":{"id":"new"},"b":["new"]}"#),
            (r#"{"text":"say \"old\" and old"}"#, r#"{"text":"say \"old\" and old"}"#),
            ("{}\n", "{}"),
            ("", ""),
        ] {
            let is = replaced(from.as_bytes(), br#""old""#, br#""new""#);
            assert_eq!(String::from_utf8(is).unwrap(), to);
        }
    }

    #[test]
    fn derived_ids_are_uuids_and_differ() {
        let id = derived(&["a", "1"]);
        assert_eq!(id.len(), 36);
        assert!(id.split('-').map(str::len).eq([8, 4, 4, 4, 12]), "{id}");
        assert_eq!(id, derived(&["a", "1"]));
        assert_ne!(id, derived(&["a1", ""]));
    }
}
