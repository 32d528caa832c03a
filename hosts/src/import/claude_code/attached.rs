//! Texts that the host attached, as the model read them.
//!
//! ```text
//! attachment with `rendered`            a message of role system or user, as `renderedRole` says; the user did not write it
//! queued_command, a prompt              the same, and before it the prompt itself, for the history: the user did write that
//! .. with `humanTurn`, `hostsOwnTurn`   the words were sent as the user's own, without tags, whatever `renderedRole` says
//! the words stand in a result           nothing more was sent: kept as a record
//! the others                            nothing was sent: kept as records
//! ```
//!
//! Where the host's copy of the message has other words, another role or another order, these count: see `sent`.
//!
//! Versions before `rendered` record the attachment, but not the words in which it was sent: of these only prompts are
//! messages.

use acpdb_engine::entry::{Entry, PartEntry, fact};
use acpdb_engine::event::{PartKind, Role};

use super::super::{json, time};
use super::line::LineState;
use super::record::{Record, RecordWords};

/// Beginning of the key of a message that the host attached for the user's side.
///
/// The host sends such texts before those that the user wrote, wherever the record stands: see
/// `export::providers::anthropic`.
pub(crate) const ATTACHED: &str = "attached:";

/// Beginning of the key of a message in the very words in which it was sent; the number behind it is its place among the texts of
/// the user's side.
pub(crate) const SENT: &str = "sent:";

/// Where a text of the host's stands among the messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum AttachmentPosition {
    /// In a message of role system.
    System,
    /// Before the user's own texts.
    Attached,
    /// Among the user's own texts.
    Own,
}

/// An attachment, as it is told.
pub(super) struct Attachment {
    /// A prompt's own words, for people.
    prompt: Vec<PartEntry>,
    pub(super) place: AttachmentPosition,
    pub(super) parts: Vec<PartEntry>,
}

/// How an attachment is told; `None`: it says nothing.
pub(super) fn told(record: &Record<'_>) -> Option<Attachment> {
    let [kind, prompt, mode, human, own] =
        json::pick(record.attachment?, ["type", "prompt", "commandMode", "humanTurn", "hostsOwnTurn"])
            .unwrap_or_default();
    let is_prompt = json::string(kind).as_deref() == Some("queued_command")
        && json::string(mode).is_none_or(|mode| mode == "prompt");
    let prompt = prompt.filter(|_| is_prompt).map(prompt_parts).unwrap_or_default();
    let rendered = record.rendered.and_then(json::elements).unwrap_or_default();
    let rendered = rendered.into_iter().flat_map(rendered_parts);
    let place = match json::string(record.rendered_role).as_deref() {
        _ if is_prompt && [human, own].contains(&Some("true")) => AttachmentPosition::Own,
        Some("system") => AttachmentPosition::System,
        _ => AttachmentPosition::Attached,
    };
    let parts: Vec<PartEntry> = match place {
        AttachmentPosition::Own => rendered.map(without_tags).collect(),
        _ => rendered.collect(),
    };
    (!prompt.is_empty() || !parts.is_empty()).then_some(Attachment { prompt, place, parts })
}

impl LineState {
    /// Facts of what a command of the host's own put out: it is sent with the next prompt. Versions that do not record their requests leave
    /// some of it out (2.1.197: that of `/context`), and their records do not say which.
    pub(super) fn commanded(&mut self, record: &Record<'_>, entries: &mut Vec<Entry>) -> bool {
        let is_output = json::string(record.subtype).as_deref() == Some("local_command");
        let (Some(uuid), Some(said)) = (record.uuid.as_deref(), json::string(record.content)) else {
            return false;
        };
        if !is_output || said.is_empty() {
            return false;
        }
        self.link(record);
        let sent = record.sent.as_ref().and_then(|sent| sent.text(0));
        let (key, parts) = (uuid.to_owned(), vec![PartEntry::text(sent.unwrap_or(&said))]);
        let fact = fact::MessageRecorded { key, role: Role::User, parts, ..fact::MessageRecorded::default() };
        entries.push(Entry::from(fact).origin(format!("msg:{uuid}#0")).at(time(record.timestamp)));
        self.told(uuid, entries);
        true
    }

    /// Facts of an attachment; false if nothing of it was sent.
    pub(super) fn attached(&mut self, record: &Record<'_>, entries: &mut Vec<Entry>) -> bool {
        let sent = record.sent.as_ref();
        let (Some(uuid), Some(Attachment { prompt, place, parts: rendered })) =
            (record.uuid.as_deref(), told(record))
        else {
            return false;
        };
        // The key of one that stands among the user's own texts does not begin as those of others do.
        let name = if place == AttachmentPosition::Own { "meanwhile:" } else { ATTACHED };
        if sent.is_some_and(RecordWords::is_in_result) {
            // Read before its request, it was told as a message.
            let fact = fact::MessageAbandoned { key: format!("{name}{uuid}") };
            entries.push(Entry::from(fact).origin(format!("abandoned:{uuid}")).at(time(record.timestamp)));
            return false;
        }
        let first = entries.len();
        let prompt_is_none = prompt.is_empty();
        self.link(record);
        let message = |key: String, role, parts, hidden_from_model, hidden_from_user| {
            let origin = format!("msg:{key}#0");
            let fact =
                fact::MessageRecorded { key, role, parts, parent: None, hidden_from_model, hidden_from_user };
            Entry::from(fact).origin(origin)
        };
        if !prompt.is_empty() {
            entries.push(Entry::prompt(uuid).origin(format!("prompt:{uuid}")));
            // Where the sent words are known, the prompt itself is for people.
            entries.push(message(uuid.to_owned(), Role::User, prompt, !rendered.is_empty(), false));
        }
        let role = if place == AttachmentPosition::System { Role::System } else { Role::User };
        if self.fold.is_some() && prompt_is_none && !rendered.is_empty() {
            let kept = fact::HostRecorded { record: "attachment".to_owned(), about: None, raw: None };
            entries.push(Entry::from(kept).origin(format!("record:{uuid}")));
            entries.extend(self.again(&format!("{ATTACHED}{uuid}"), role, rendered));
        } else if !rendered.is_empty() {
            let origin = format!("msg:{name}{uuid}#0");
            let words = rendered
                .into_iter()
                .enumerate()
                .map(|(number, part)| sent.and_then(|sent| sent.text(number)).map_or(part, PartEntry::text));
            let words = words.collect();
            entries.push(
                match sent.and_then(RecordWords::place).filter(|_| place != AttachmentPosition::Own) {
                    Some((role, at)) => {
                        message(format!("{SENT}{at}:{uuid}"), role, words, false, true).origin(origin)
                    }
                    None => message(format!("{name}{uuid}"), role, words, false, true),
                },
            );
        }
        let own = entries.get_mut(first..).unwrap_or_default();
        for entry in own {
            entry.host_time = time(record.timestamp);
        }
        self.told(uuid, entries.get(first..).unwrap_or_default());
        true
    }
}

/// A prompt is a text, or a list of blocks.
fn prompt_parts(prompt: &str) -> Vec<PartEntry> {
    match json::string(Some(prompt)) {
        Some(text) if text.is_empty() => Vec::new(),
        Some(text) => vec![PartEntry::text(&*text)],
        None => json::elements(prompt).unwrap_or_default().into_iter().map(part).collect(),
    }
}

fn rendered_parts(rendered: &str) -> Vec<PartEntry> {
    json::member(Some(rendered), "content").map(prompt_parts).unwrap_or_default()
}

/// A text of the host's without the tags that tell it from the user's texts.
pub(crate) fn untagged(text: &str) -> &str {
    let inner =
        text.strip_prefix("<system-reminder>\n").and_then(|it| it.strip_suffix("\n</system-reminder>"));
    inner.unwrap_or(text)
}

fn without_tags(part: PartEntry) -> PartEntry {
    match std::str::from_utf8(&part.bytes) {
        Ok(text) if part.kind == PartKind::Text => PartEntry::text(untagged(text)),
        _ => part,
    }
}

fn part(block: &str) -> PartEntry {
    match json::string(json::member(Some(block), "text")) {
        Some(text) => PartEntry::text(&*text),
        None => PartEntry::opaque(block),
    }
}
