//! Blocks of Pi's messages, for any provider.
//!
//! ```text
//! text | thinking, thinkingSignature, redacted | image: data, mimeType | toolCall: id, name, arguments, thoughtSignature
//! ```
//!
//! `thinkingSignature` is the value that the provider wants back: with Anthropic a signature, with Responses the whole item
//! as JSON, and over chat no more than the name of the field in which the reasoning came.

use std::fmt::Write as _;

use acpdb_engine::entry::PartEntry;
use acpdb_engine::event::Usage;

use super::super::json::{self, boolean, count, elements, member, owned, pick};

/// A block of a reply.
pub(super) enum ReplyBlock {
    Part(PartEntry),
    Call { id: String, tool: String, arguments: String, signature: Option<String> },
}

/// The parts of a text, or of blocks, that a user or a tool said.
pub(super) fn content(said: Option<&str>) -> Vec<PartEntry> {
    let Some(said) = said else { return Vec::new() };
    if let Some(text) = owned(Some(said)) {
        return vec![PartEntry::text(text)];
    }
    let blocks = elements(said).unwrap_or_else(|| vec![said]);
    blocks.into_iter().map(part).collect()
}

fn part(block: &str) -> PartEntry {
    let [kind, text, data, media_type] =
        pick(block, ["type", "text", "data", "mimeType"]).unwrap_or_default();
    let known = match json::string(kind).as_deref() {
        Some("text") => json::string(text).map(|text| PartEntry::text(&*text)),
        Some("image") => json::string(data).map(|data| PartEntry::media(&*data, owned(media_type))),
        _ => None,
    };
    known.unwrap_or_else(|| PartEntry::opaque(block))
}

/// The blocks of a reply over `api`.
pub(super) fn pieces(blocks: Option<&str>, api: &str) -> Vec<ReplyBlock> {
    let Some(blocks) = blocks else { return Vec::new() };
    if let Some(text) = owned(Some(blocks)) {
        return vec![ReplyBlock::Part(PartEntry::text(text))];
    }
    elements(blocks).unwrap_or_default().into_iter().map(|block| piece(block, api)).collect()
}

fn piece(block: &str, api: &str) -> ReplyBlock {
    let [kind, id, name, arguments, signature] =
        pick(block, ["type", "id", "name", "arguments", "thoughtSignature"]).unwrap_or_default();
    match (json::string(kind).as_deref(), owned(id)) {
        (Some("toolCall"), Some(id)) => ReplyBlock::Call {
            id: call_id(&id).to_owned(),
            tool: owned(name).unwrap_or_default(),
            arguments: arguments.unwrap_or("{}").to_owned(),
            signature: owned(signature),
        },
        (Some("thinking"), _) => ReplyBlock::Part(thinking(block, api)),
        _ => ReplyBlock::Part(part(block)),
    }
}

fn thinking(block: &str, api: &str) -> PartEntry {
    let [text, signature, redacted] =
        pick(block, ["thinking", "thinkingSignature", "redacted"]).unwrap_or_default();
    let (text, signature) = (owned(text).unwrap_or_default(), owned(signature));
    let signature = signature.filter(|signature| !signature.is_empty());
    if boolean(redacted) == Some(true)
        && let Some(sealed) = &signature
    {
        let mut out = br#"{"type":"redacted_thinking","data":"#.to_vec();
        json::quote(&mut out, sealed);
        out.push(b'}');
        return PartEntry::opaque(out);
    }
    let sealed = match signature {
        Some(item) if item.starts_with('{') => owned(member(Some(&item), "encrypted_content")),
        Some(_) if api == "openai-completions" => None,
        signature => signature,
    };
    PartEntry::reasoning(text, sealed.as_deref().map(str::as_bytes))
}

/// The provider's id of a call: over Responses the host adds the id of the item behind a bar.
pub(super) fn call_id(id: &str) -> &str {
    id.split_once('|').map_or(id, |(call, _)| call)
}

/// The text that is sent of a command that the user ran.
pub(super) fn bash(said: &str) -> String {
    let names = ["command", "output", "exitCode", "cancelled", "truncated", "fullOutputPath"];
    let [command, output, code, cancelled, truncated, path] = pick(said, names).unwrap_or_default();
    let output = owned(output).filter(|output| !output.is_empty());
    let mut text = format!("Ran `{}`\n", owned(command).unwrap_or_default());
    match output {
        Some(output) => drop(write!(text, "```\n{output}\n```")),
        None => text.push_str("(no output)"),
    }
    if boolean(cancelled) == Some(true) {
        text.push_str("\n\n(command cancelled)");
    } else if let Some(code) = code.filter(|code| *code != "0") {
        let _ = write!(text, "\n\nCommand exited with code {code}");
    }
    if let (Some(true), Some(path)) = (boolean(truncated), owned(path)) {
        let _ = write!(text, "\n\n[Output truncated. Full output: {path}]");
    }
    text
}

pub(super) fn usage_of(usage: Option<&str>) -> Usage {
    let names = ["input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning"];
    let [input, output, read, write, long, reasoning] =
        usage.and_then(|usage| pick(usage, names)).unwrap_or_default();
    Usage {
        input: count(input),
        output: count(output),
        cache_read: count(read),
        cache_write: count(write),
        cache_write_long: count(long),
        reasoning: count(reasoning),
        searches: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_provider_wants_back_is_told_apart_from_what_it_does_not() {
        let sealed = |block: &str, api: &str| {
            let part = thinking(block, api);
            part.signature.map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        };
        let plain = r#"{"type":"thinking","thinking":"hm","thinkingSignature":"reasoning_content"}"#;
        assert_eq!(sealed(plain, "openai-completions"), None);
        assert_eq!(sealed(plain, "anthropic-messages").as_deref(), Some("reasoning_content"));
        let item =
            r#"{"type":"thinking","thinking":"hm","thinkingSignature":"{\"encrypted_content\":\"x\"}"}"#;
        assert_eq!(sealed(item, "openai-responses").as_deref(), Some("x"));
        let redacted = r#"{"type":"thinking","thinking":"","thinkingSignature":"x","redacted":true}"#;
        assert_eq!(
            thinking(redacted, "anthropic-messages").bytes.as_ref(),
            br#"{"type":"redacted_thinking","data":"x"}"#
        );
        assert_eq!(call_id("call_1|fc_2"), "call_1");
    }

    #[test]
    fn a_users_command_is_sent_as_a_text() {
        for (said, expected) in [
            (r#"{"command":"ls","output":"a"}"#, "Ran `ls`\n```\na\n```"),
            (
                r#"{"command":"ls","output":"","exitCode":2}"#,
                "Ran `ls`\n(no output)\n\nCommand exited with code 2",
            ),
            (
                r#"{"command":"x","output":"a","exitCode":0,"truncated":true,"fullOutputPath":"/t"}"#,
                "Ran `x`\n```\na\n```\n\n[Output truncated. Full output: /t]",
            ),
            (r#"{"command":"x","cancelled":true}"#, "Ran `x`\n(no output)\n\n(command cancelled)"),
        ] {
            assert_eq!(bash(said), expected);
        }
    }
}
