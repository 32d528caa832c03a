//! Names of records and messages: an id is a name, and the content decides.
//!
//! ```text
//! uuid       the same record again      told once               another record      told under uuid+2
//! message.id a record that fits         a part of the message   one that cannot     told under id+2
//! ```
//!
//! Redactors put one word in place of many ids. A record cannot be of the message before it if it names another request or model, if
//! its input has another length, or if a prompt or all results of the message's calls stand between them.

use super::super::json;
use super::blocks::MessageBlocks;
use super::line::LineState;
use super::record::Record;
use super::usage::usage_of;

/// A message under an id that the provider gave. A redactor may have put one word in place of several ids.
pub(super) struct NamedMessage {
    /// Messages under this id, this one included.
    count: usize,
    request: Option<String>,
    model: Option<String>,
    /// Tokens of its input: the same on each of its records.
    input: u64,
    prompt_count: usize,
    calls: Vec<Box<str>>,
}

/// How a record's id has been met before.
pub(super) enum SeenBefore {
    New,
    /// The same record was there.
    Again,
    /// Other records were there under this id, so many.
    Other(usize),
}

/// The parts of a record of the model by which messages are told apart.
pub(super) struct AnswerMarks<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) usage: Option<&'a str>,
    pub(super) blocks: &'a MessageBlocks<'a>,
}

impl LineState {
    /// Whether a record of this kind gives the session its title.
    pub(super) fn may_be_titled(&mut self, kind: &str) -> bool {
        let is_users = kind == "custom-title";
        self.is_titled |= is_users;
        is_users || !self.is_titled
    }

    /// Looks whether a record was told before. Its id is a name, and its content decides.
    pub(super) fn has_seen(&mut self, uuid: &str, content: [u8; 16]) -> SeenBefore {
        let Some(known) = self.contents.get_mut(uuid) else {
            self.contents.insert(Box::from(uuid), vec![content]);
            return SeenBefore::New;
        };
        if known.contains(&content) {
            return SeenBefore::Again;
        }
        known.push(content);
        SeenBefore::Other(known.len())
    }

    /// The id of the message that a record of the model belongs to. A record that cannot be of the message that was told under
    /// its id is of another one.
    pub(super) fn message_id(&mut self, record: &Record<'_>, id: &str, message: &AnswerMarks<'_>) -> String {
        let request = json::owned(record.request);
        let model = json::owned(message.model);
        let usage = message.usage.and_then(usage_of).unwrap_or_default();
        let input = [usage.input, usage.cache_read, usage.cache_write].into_iter().flatten();
        let input = input.fold(0, u64::saturating_add);
        let differs = |one: &Option<String>, other: &Option<String>| matches!((one, other), (Some(one), Some(other)) if one != other);
        let calls: Vec<Box<str>> =
            message.blocks.list.iter().filter_map(|block| Some(Box::from(&*block.call_id()?))).collect();
        let prompt_count = self.prompt_count;
        let Some(given) = self.given.get_mut(id) else {
            let given = NamedMessage { count: 1, request, model, input, prompt_count, calls };
            self.given.insert(Box::from(id), given);
            return id.to_owned();
        };
        // Text behind the results of all its calls: a step of its own.
        let is_behind = calls.is_empty()
            && !given.calls.is_empty()
            && given.calls.iter().all(|call| self.answered.contains(call));
        let is_other = differs(&given.request, &request)
            || differs(&given.model, &model)
            || given.input > 0 && input > 0 && given.input != input
            || given.prompt_count != prompt_count
            || is_behind;
        if is_other {
            *given = NamedMessage { count: given.count + 1, request, model, input, prompt_count, calls };
        } else {
            given.calls.extend(calls);
            given.input = given.input.max(input);
            given.request = given.request.take().or(request);
        }
        match given.count {
            1 => id.to_owned(),
            count => format!("{id}+{count}"),
        }
    }
}
