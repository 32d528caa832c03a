//! The marks of each host's records, by which a whole record is known among broken bytes.
//!
//! Members are asked for that records have and the objects inside them do not: a block of a message has a type too, and the
//! record of a subagent stands whole within one of the session.

use super::json::{pick, pick_with_nulls, string};
use super::torn::IsRecord;
use super::{ImportFormat, detect};

/// Tells a record of a format.
pub(super) const fn marks(format: ImportFormat) -> IsRecord {
    match format {
        ImportFormat::ClaudeCode => is_claude,
        ImportFormat::Codex => is_codex,
        ImportFormat::GeminiCli => is_gemini,
        ImportFormat::CopilotCli => is_copilot,
        ImportFormat::Pi => is_pi,
        ImportFormat::Opencode => |text| detect::by_value(text) == Some(ImportFormat::Opencode),
        ImportFormat::OpenaiMessages => |text| detect::by_value(text) == Some(ImportFormat::OpenaiMessages),
        ImportFormat::SweAgent => |text| detect::by_value(text) == Some(ImportFormat::SweAgent),
        ImportFormat::MemoryDecisions | ImportFormat::MemoryPreferences => is_memory,
    }
}

/// Whether it is a record of any format.
pub(super) fn is_any(text: &str) -> bool {
    ImportFormat::ALL.into_iter().any(|format| marks(format)(text))
}

fn has_all<const N: usize>(text: &str, names: [&str; N]) -> bool {
    pick(text, names).is_some_and(|found| found.iter().all(Option::is_some))
}

fn is_claude(text: &str) -> bool {
    // The first message of a session has a parent that is null.
    let names = ["sessionId", "parentUuid", "leafUuid", "snapshot", "logicalParentUuid"];
    has_all(text, ["type"])
        && pick_with_nulls(text, names).is_some_and(|found| found.iter().any(Option::is_some))
}

fn is_codex(text: &str) -> bool {
    has_all(text, ["timestamp", "type", "payload"])
}

fn is_copilot(text: &str) -> bool {
    has_all(text, ["type", "data"]) && (has_all(text, ["id"]) || has_all(text, ["timestamp"]))
}

fn is_pi(text: &str) -> bool {
    has_all(text, ["type", "timestamp"]) && (has_all(text, ["id"]) || has_all(text, ["message"]))
}

fn is_gemini(text: &str) -> bool {
    let Some([set, rewind, id, kind, content, session, messages]) =
        pick(text, ["$set", "$rewindTo", "id", "type", "content", "sessionId", "messages"])
    else {
        return false;
    };
    let kind = string(kind);
    let is_message = matches!(kind.as_deref(), Some("user" | "gemini" | "info" | "warning" | "error"));
    set.or(rewind).is_some()
        || is_message && id.is_some() && content.is_some()
        || session.is_some() && (messages.is_some() || has_all(text, ["projectHash"]))
}

fn is_memory(text: &str) -> bool {
    matches!(detect::by_value(text), Some(ImportFormat::MemoryDecisions | ImportFormat::MemoryPreferences))
}
