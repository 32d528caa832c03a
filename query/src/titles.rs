//! The title of a session: the one that its host gave, if it says something, else the first prompt that a person wrote.
//!
//! Hosts put texts of their own before the prompt: instructions of the project, a description of the environment, the output of a
//! command. Such texts stand in tags, or begin with known words.

use acpdb_engine::event::{Body, PartKind, Payload, Role};
use acpdb_engine::ids::{BodyId, Seq};
use acpdb_engine::text::first_bytes;
use acpdb_engine::{Error, Store, store::StreamName};

use crate::kinds::MESSAGE_RECORDED;
use crate::sound::{or_lost, sound};

/// Messages of the user that are looked at.
const PROMPT_COUNT_MAX: usize = 12;
/// Bytes of a prompt that are looked at, behind the texts that are left out of it.
const TITLE_BYTES_MAX: usize = 1 << 10;

/// Beginnings of texts that hosts write in a person's name.
const INJECTED: &[&str] = &[
    "# AGENTS.md instructions",
    "# CLAUDE.md",
    "Caveat: The messages below were generated",
    "[Request interrupted by user",
    "This session is being continued from a previous conversation",
    "Warmup",
];

/// Lines that stand before the request itself.
const LEADS: &[&str] = &["Implement the following plan:", "[[ ## user_query ## ]]"];

/// Titles that hosts give before they know better.
const EMPTY_TITLES: &[&str] = &["New session", "New Session", "New chat", "Untitled"];

/// The host whose titles are names of files.
const CHATS: &str = "openai-messages";

/// The title of a session, if there is one. `changed` is the newest title that its host gave it later.
///
/// Cost: if the host gave no title, a look at the first messages.
///
/// # Errors
/// If the log cannot be read. Texts that are damaged or erased are passed over.
pub fn title_of(store: &Store, name: &StreamName, changed: Option<&str>) -> Result<Option<String>, Error> {
    let told = changed.or(name.title.as_deref()).filter(|title| name.host != CHATS && is_telling(title));
    if let Some(told) = told {
        return Ok(Some(one_line(told)));
    }
    let prompt = first_prompt(store, name)?.map(|(_, prompt)| prompt);
    Ok(prompt.or_else(|| name.title.as_deref().map(one_line)))
}

/// As [`title_of`], by the event that gave the newest title later, and by the text that is known to hold the first prompt.
///
/// Cost: a look at each of the two at most, unless the text there was erased.
///
/// # Errors
/// If the log cannot be read.
pub fn title_at(
    store: &Store,
    name: &StreamName,
    changed: Option<Seq>,
    prompt: Option<BodyId>,
) -> Result<Option<String>, Error> {
    let changed = changed_title(store, changed)?;
    let told = changed.as_deref().or(name.title.as_deref());
    if let Some(prompt) = prompt.filter(|_| !told.is_some_and(|told| name.host != CHATS && is_telling(told)))
        && let Some(prompt) = prompt_at(store, prompt)?
    {
        return Ok(Some(prompt));
    }
    title_of(store, name, changed.as_deref())
}

/// The title that an event gave its session.
fn changed_title(store: &Store, seq: Option<Seq>) -> Result<Option<String>, Error> {
    let Some(seq) = seq else { return Ok(None) };
    Ok(match store.event(seq)?.map(|recorded| recorded.event.payload) {
        Some(Payload::SessionChanged(changed)) => changed.title.map(String::from),
        _ => None,
    })
}

/// The prompt that a text holds. A damaged or erased text holds none.
fn prompt_at(store: &Store, body: BodyId) -> Result<Option<String>, Error> {
    let bytes = or_lost(store.body(body))?;
    // A damaged or erased text holds none.
    Ok(bytes.ok().and_then(|bytes| prompt_in(&String::from_utf8_lossy(&bytes))))
}

fn is_telling(title: &str) -> bool {
    let title = title.trim();
    !title.is_empty()
        && !EMPTY_TITLES.iter().any(|empty| title.starts_with(empty))
        && prompt_in(title).is_some()
}

/// The first prompt of a session that a person wrote, and the text that holds it.
pub(crate) fn first_prompt(store: &Store, name: &StreamName) -> Result<Option<(BodyId, String)>, Error> {
    let events = store.stream_events(name.id, Seq(1), Seq::MAX)?;
    let mut seen = 0;
    for recorded in sound(events.wanted(|glimpse| glimpse.kind() == MESSAGE_RECORDED)) {
        let recorded = recorded?;
        let Payload::MessageRecorded(message) = &recorded.event.payload else { continue };
        if message.role != Role::User || message.hidden_from_model {
            continue;
        }
        seen += 1;
        let texts = message.parts.iter().filter(|part| part.kind == PartKind::Text);
        for body in texts.map(|part| part.body).filter(|body: &Body| body.bytes > 0) {
            let body = body.id(recorded.seq);
            if let Some(prompt) = prompt_at(store, body)? {
                return Ok(Some((body, prompt)));
            }
        }
        if seen == PROMPT_COUNT_MAX {
            break;
        }
    }
    Ok(None)
}

/// The part of a text that a person wrote, as one line; `None`: nothing.
pub fn prompt_in(text: &str) -> Option<String> {
    let mut rest = text.trim_start();
    loop {
        if INJECTED.iter().any(|beginning| rest.starts_with(beginning)) {
            return None;
        }
        let lead = LEADS.iter().find_map(|lead| rest.strip_prefix(lead));
        if let Some(behind) = lead.filter(|behind| !behind.trim().is_empty()) {
            rest = behind.trim_start();
        } else if let Some(behind) = behind_tag(rest) {
            rest = behind.trim_start();
        } else {
            break;
        }
    }
    let rest = rest.trim_start_matches('#').trim_start();
    let rest = rest.strip_prefix("Plan:").unwrap_or(rest).trim_start();
    let end = rest.find("\n\n").unwrap_or(rest.len()).min(TITLE_BYTES_MAX);
    let line = one_line(first_bytes(rest, end));
    (!line.is_empty()).then_some(line)
}

/// The text behind `<tag ..>..</tag>`, if the text begins with a tag.
fn behind_tag(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?;
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-')))?;
    let tag = inner.get(..end).filter(|tag| !tag.is_empty())?;
    let close = format!("</{tag}>");
    let (_, behind) = text.split_once(close.as_str())?;
    Some(behind)
}

/// A text in one line.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a text, at most so many characters.
pub(crate) fn beginning(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use acpdb_engine::entry::{Entry, StreamInfo};

    use super::*;
    use crate::testing::store;

    #[test]
    fn what_a_host_put_before_a_prompt_is_no_part_of_it() {
        for (text, prompt) in [
            ("fix the parser", Some("fix the parser")),
            ("  fix\n the  parser\n\nIt fails.", Some("fix the parser")),
            ("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>", None),
            ("<environment_context>\n<cwd>/w</cwd>\n</environment_context>", None),
            ("<now>10:00</now>\n\nfix it", Some("fix it")),
            ("<a>1</a><b-c d=\"e\">2</b-c> fix it", Some("fix it")),
            (
                "Implement the following plan:\n\n# Plan: Mend `@` references\n\n## Context\nx",
                Some("Mend `@` references"),
            ),
            ("[[ ## user_query ## ]]\n\nWhat is 2+2?", Some("What is 2+2?")),
            ("Implement the following plan:", Some("Implement the following plan:")),
            ("<div> is not closed here", Some("<div> is not closed here")),
            ("a < b", Some("a < b")),
            ("<>", Some("<>")),
            ("Caveat: The messages below were generated by the user", None),
            ("", None),
            ("###", None),
        ] {
            assert_eq!(prompt_in(text).as_deref(), prompt, "{text:?}");
        }
    }

    #[test]
    fn a_session_goes_by_its_hosts_title_or_by_the_first_real_prompt() {
        let store = store();
        for (host, title, texts, expected) in [
            (
                "codex",
                None,
                &["# AGENTS.md instructions for /w", "<env>x</env>", "mend it", "more"][..],
                Some("mend it"),
            ),
            ("opencode", Some("A real title"), &["mend it"], Some("A real title")),
            ("opencode", Some("New session - 2026-01-31T12:00:00Z"), &["mend it"], Some("mend it")),
            ("openai-messages", Some("chats.json"), &["mend it"], Some("mend it")),
            ("codex", None, &["<env>x</env>"], None),
            ("opencode", Some("New session"), &[], Some("New session")),
        ] {
            let name = format!("{host} {title:?} {}", texts.len());
            let info =
                StreamInfo { title: title.map(str::to_owned), ..StreamInfo::session(host, name.as_str()) };
            let _ = store.append(&info, vec![Entry::step("")]).unwrap();
            for text in texts {
                let _ = store.append(&info, vec![Entry::message("", Role::User, *text)]).unwrap();
            }
            let stream = store.find_stream(&name).unwrap();
            assert_eq!(title_of(&store, &stream, None).unwrap().as_deref(), expected, "{name}");
            assert_eq!(
                title_of(&store, &stream, Some("Later")).unwrap().as_deref(),
                if host == "openai-messages" { expected } else { Some("Later") }
            );
        }
    }
}
