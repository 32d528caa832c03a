//! Habits of the host that recorded a session, where its own requests differ from the portable form.
//!
//! `context --recorded` is to give the host's own request: so for the format of the host's own provider it follows the
//! host's habits, as far as they were seen on the wire (`tests/tests/hosts.rs`). Every other export is the portable form,
//! which any program may send.
//!
//! | host | habit |
//! |---|---|
//! | Claude Code | attachments are messages of role `system`, or stand before the prompt; a line feed ends a text that another user's text follows |
//! | Codex, from 0.168 on | base instructions are the first `developer` message; results and messages stand in the order in which they came |
//! | Copilot CLI before 1.0.102 | results of calls at once stand in the order in which the calls ended |
//! | opencode, Copilot CLI | over chat, reasoning is `reasoning_content` beside a reply's text |
//! | Copilot CLI | around the summary of a compaction stand words of its own, and the prompts before it |
//! | Codex, opencode | a call that was cut off, as by a kill, has a result of the host's own with the next prompt |

use super::{Format, Selection};

/// A host's habits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    /// None: the form that any program may send.
    Portable,
    /// Claude Code's.
    ClaudeCode,
    /// Codex's.
    Codex,
    /// The habit of hosts that send reasoning over chat.
    ReasoningInChat,
    /// The same; and results of calls at once stand in the order in which the calls ended.
    ResultsAsTheyCame,
}

impl Dialect {
    /// The habits that an export follows.
    pub(super) fn of(host: &str, version: Option<&str>, format: Format, selection: Selection) -> Self {
        if selection != Selection::Recorded {
            return Self::Portable;
        }
        match (host, format) {
            ("claude-code", Format::Anthropic) => Self::ClaudeCode,
            ("copilot-cli", Format::Openai)
                if version.is_some_and(|version| !is_from(version, [1, 0, 102])) =>
            {
                Self::ResultsAsTheyCame
            }
            ("opencode" | "copilot-cli", Format::Openai) => Self::ReasoningInChat,
            ("codex", Format::Responses) if version.is_some_and(|version| is_from(version, [0, 168, 0])) => {
                Self::Codex
            }
            _ => Self::Portable,
        }
    }
}

/// The result that a host gives to a call that was cut off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct CutOff {
    pub(super) text: &'static str,
    pub(super) failed: bool,
}

impl CutOff {
    /// The result in a host's own requests; `None`: the host records one itself, or its result was not seen.
    pub(super) fn of(host: &str, selection: Selection) -> Option<Self> {
        match host {
            _ if selection != Selection::Recorded => None,
            "codex" => Some(Self { text: "aborted", failed: false }),
            "opencode" => Some(Self { text: "[Tool execution was interrupted]", failed: true }),
            _ => None,
        }
    }
}

/// Whether a version is at least this one.
fn is_from(version: &str, first: [u32; 3]) -> bool {
    let mut numbers = version.split(['.', '-']).map(|number| number.parse().unwrap_or(0));
    [(); 3].map(|()| numbers.next().unwrap_or(0)) >= first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn habits_are_followed_only_where_they_were_seen() {
        let of = |host, version, format, selection| Dialect::of(host, Some(version), format, selection);
        let recorded = Selection::Recorded;
        assert_eq!(of("codex", "0.168.0", Format::Responses, recorded), Dialect::Codex);
        assert_eq!(of("codex", "1.0", Format::Responses, recorded), Dialect::Codex);
        assert_eq!(of("codex", "0.98.1", Format::Responses, recorded), Dialect::Portable);
        assert_eq!(of("codex", "0.169.0", Format::Openai, recorded), Dialect::Portable);
        assert_eq!(of("copilot-cli", "1.0.92", Format::Openai, recorded), Dialect::ResultsAsTheyCame);
        assert_eq!(of("copilot-cli", "1.0.102", Format::Openai, recorded), Dialect::ReasoningInChat);
        assert_eq!(of("copilot-cli", "1.1", Format::Openai, recorded), Dialect::ReasoningInChat);
        assert_eq!(of("claude-code", "2.1", Format::Anthropic, recorded), Dialect::ClaudeCode);
        assert_eq!(of("claude-code", "2.1", Format::Anthropic, Selection::Whole), Dialect::Portable);
        assert_eq!(Dialect::of("codex", None, Format::Responses, recorded), Dialect::Portable);
    }
}
