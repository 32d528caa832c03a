//! One line of conversation: the session's own, or a subagent's.
//!
//! ```text
//! user        u1                      group u1    prompt:u1, msg:u1#0
//! assistant   a1  message m1, text    group m1    turn:m1, msg:a1#0
//! assistant   a2  message m1, call c  group m1    call:c#1:start
//! user        r1  result of c         group m1    call:c#1:finish
//! assistant   a3  message m2          group m2    msg:m1:finish, turn:m2, ...
//! user        u2  parent r1           rewind: m2 leaves, Rewound to just before it
//! ```
//!
//! Records form a tree by their parents, and parallel calls branch too. So records are put in *groups*: the records of
//! one model message and the results of its calls, or a single other record. Progress, system and attachment records
//! take the group of their parent. A new group whose parent's group is not the newest of the active path is a rewind.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use acpdb_engine::entry::{Bytes, Entry, Fact, ItemRef, PartEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{Outcome, Report, Role};
use acpdb_serve::point::is_pointer;

use super::super::turns::Calls;
use super::super::{json, small_fields, time};
use super::blocks::{ContentBlock, MessageBlocks, parts_of};
use super::names::{AnswerMarks, NamedMessage};
use super::rebuilt::{CompactionItems, Fold, said_key};
use super::record::{Record, named};
use super::shared;
use super::todo::{self, TodoCall};
use super::usage::{self, Costs, OtherInference, Spent, greatest};

/// The model of words that the host put in the place of an answer.
const SYNTHETIC: &str = "<synthetic>";

/// Beginnings of user texts that are not the user's prompt.
const NO_PROMPT: &[&str] = &["<command-", "<local-command-", "[Request interrupted", "<task-notification>"];

/// Beginnings of error texts of calls that were refused or interrupted, not failed.
const ABORTED: &[&str] = &[
    "The user doesn't want to proceed",
    "[Request interrupted",
    "Sibling tool call errored",
    "<tool_use_error>Sibling tool call errored",
];

/// State of one line.
#[derive(Default)]
pub(super) struct LineState {
    info: Arc<StreamInfo>,
    cwd: Option<String>,
    /// Records seen, and the group that they belong to.
    pub(super) seen: HashMap<Box<str>, Option<usize>>,
    /// The contents that were told under each id of a record.
    pub(super) contents: HashMap<Box<str>, Vec<[u8; 16]>>,
    /// The newest message under each id that the provider gave.
    pub(super) given: HashMap<Box<str>, NamedMessage>,
    /// Prompts so far, and results of calls.
    pub(super) prompt_count: usize,
    pub(super) answered: HashSet<Box<str>>,
    /// The user gave the session its title.
    pub(super) is_titled: bool,
    /// The cost of the session, as its host tells it.
    pub(super) costs: Costs,
    /// Records without id: how often each was there, by digest.
    occurrences: HashMap<[u8; 16], u64>,
    calls: Calls,
    todo_calls: HashMap<String, TodoCall>,
    pub(super) groups: Vec<CallGroup>,
    /// The active path: indices of groups, oldest first.
    pub(super) path: Vec<usize>,
    pub(super) by_message: HashMap<Box<str>, usize>,
    pub(super) by_call: HashMap<Box<str>, usize>,
    message: Option<OpenMessage>,
    pub(super) last_origin: Option<String>,
    prompt: Option<Bytes>,
    /// The items of each record, for compactions that keep some.
    pub(super) items: HashMap<Box<str>, Vec<ItemRef>>,
    /// The items that the newest compaction kept, until the record behind which they stand has come.
    pub(super) kept: Option<CompactionItems>,
    /// Messages that are written again behind the newest compaction.
    pub(super) fold: Option<Fold>,
    /// The items of each text, by its role and its words.
    pub(super) said: HashMap<[u8; 16], Vec<ItemRef>>,
    /// The item of each call, and the digest of its result.
    pub(super) call_items: HashMap<Box<str>, ItemRef>,
    pub(super) outputs: HashMap<Box<str>, [u8; 16]>,
}

pub(super) struct CallGroup {
    pub(super) key: String,
    /// Its place in the path.
    pub(super) depth: usize,
    /// Origin of the last fact before it, and of the last one before the next group.
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    /// Its message has been recorded; later parts continue it.
    pub(super) recorded: bool,
}

/// The model's message that is being written.
struct OpenMessage {
    id: String,
    group: usize,
    report: Report,
    /// Inferences beside the one that the report tells.
    beside: Vec<OtherInference>,
    /// The provider's edits of the context that it answered, in words.
    edits: Option<String>,
    at: Option<acpdb_engine::ids::Micros>,
}

impl OpenMessage {
    /// Takes in the usage of one of its records. Those without inferences, or without a speed, say less than those with them.
    fn spend(&mut self, spent: Spent) {
        let report = &mut self.report;
        let is_plain = |tier: &Option<String>| tier.as_deref().is_none_or(|tier| tier == "standard");
        if !is_plain(&spent.tier) || is_plain(&report.service_tier) {
            report.service_tier = spent.tier.or(report.service_tier.take());
        }
        match (self.beside.is_empty(), spent.beside.is_empty()) {
            (true, false) => report.usage = spent.usage,
            (false, true) => return,
            _ => report.usage = greatest(report.usage, spent.usage),
        }
        self.beside = spent.beside;
        report.model = spent.model.or(report.model.take());
    }
}

impl LineState {
    pub(super) fn new(info: Arc<StreamInfo>) -> Self {
        Self { cwd: info.cwd.clone(), info, ..Self::default() }
    }

    pub(super) fn info(&self) -> &Arc<StreamInfo> {
        &self.info
    }

    /// Number of this record among equal ones, from 1.
    pub(super) fn occurrence(&mut self, raw: &[u8]) -> u64 {
        let mut key = [0; 16];
        blake3::Hasher::new().update(raw).finalize_xof().fill(&mut key);
        let count = self.occurrences.entry(key).or_default();
        *count += 1;
        *count
    }

    /// Remembers the last origin handed out. The end of a message marks no place: it is told again at the end of
    /// each import, before the results that follow in a longer file.
    pub(super) fn emitted(&mut self, entries: &[Entry]) {
        let mut places = entries.iter().rev().filter(|entry| !matches!(entry.fact, Fact::MessageFinished(_)));
        if let Some(origin) = places.find_map(|entry| entry.origin.as_ref()) {
            self.last_origin = Some(origin.clone());
        }
    }

    /// The subagent's prompt, as one body for all records that repeat it.
    pub(super) fn prompt(&mut self, text: Option<&str>) -> Bytes {
        match &self.prompt {
            Some(prompt) if text.is_none_or(|text| text.as_bytes() == &**prompt) => Bytes::clone(prompt),
            _ => {
                let prompt = shared(text);
                self.prompt = Some(Bytes::clone(&prompt));
                prompt
            }
        }
    }

    /// Adds a fact if the record was written in another folder than the record before.
    pub(super) fn moved_to(&mut self, record: &Record<'_>, entries: &mut Vec<Entry>) {
        let (Some(cwd), Some(uuid)) = (record.cwd.as_deref(), record.uuid.as_deref()) else { return };
        if self.cwd.as_deref() == Some(cwd) {
            return;
        }
        self.cwd = Some(cwd.to_owned());
        let fact = fact::SessionChanged { cwd: Some(cwd.to_owned()), ..fact::SessionChanged::default() };
        entries.push(Entry::from(fact).origin(format!("cwd:{uuid}")).at(time(record.timestamp)));
    }

    /// Remembers a record that only links others.
    pub(super) fn link(&mut self, record: &Record<'_>) {
        if let Some(uuid) = record.uuid.as_deref() {
            let group = record.parent.as_deref().and_then(|parent| self.seen.get(parent).copied().flatten());
            self.seen.insert(Box::from(uuid), group);
        }
    }

    /// Remembers the items that a record became.
    fn remember(&mut self, uuid: &str, entries: &[Entry]) {
        let mut items = Vec::new();
        for entry in entries {
            let Some(origin) = &entry.origin else { continue };
            let refs = |count: usize| {
                let parts = 1..=u32::try_from(count).unwrap_or(u32::MAX);
                parts.map(|part| ItemRef::Origin(origin.clone(), part)).collect::<Vec<_>>()
            };
            let own = match &entry.fact {
                Fact::MessageRecorded(fact::MessageRecorded {
                    role,
                    parts,
                    hidden_from_model: false,
                    ..
                }) => {
                    let own = refs(parts.len());
                    self.said.insert(said_key(*role, parts), own.clone());
                    own
                }
                Fact::MessageContinued(fact::MessageContinued { parts, .. }) => {
                    let own = refs(parts.len());
                    self.said.insert(said_key(Role::Assistant, parts), own.clone());
                    own
                }
                Fact::ToolStarted(fact::ToolStarted { call, .. }) => {
                    let own = refs(1);
                    self.call_items.extend(own.first().map(|item| (Box::from(&**call), item.clone())));
                    own
                }
                Fact::ToolFinished(fact::ToolFinished { call, output, .. }) => {
                    self.outputs.insert(Box::from(&**call), said_key(Role::Tool, output));
                    Vec::new()
                }
                _ => Vec::new(),
            };
            items.extend(own);
        }
        if !items.is_empty() {
            self.items.insert(Box::from(uuid), items);
        }
    }

    /// Remembers a message of the host's, outside the model's: the texts that it attached.
    pub(super) fn told(&mut self, uuid: &str, entries: &[Entry]) {
        self.remember(uuid, entries);
    }

    /// Puts a record into the newest group.
    pub(super) fn hang_on_newest(&mut self, uuid: &str) {
        self.seen.insert(Box::from(uuid), self.path.last().copied());
    }

    /// Ends the model's open message, if there is one.
    pub(super) fn finish_message(&mut self, entries: &mut Vec<Entry>) {
        let Some(message) = self.message.take() else { return };
        let origin = format!("msg:{}:finish", message.id);
        if let Some(edits) = message.edits {
            let key = format!("edited:{}", message.id);
            let edits = super::super::turns::message(&key, Role::System, vec![PartEntry::text(edits)], false);
            entries.push(super::super::turns::not_for_the_model(edits).at(message.at));
        }
        let request = message.report.request.clone();
        let beside: Vec<Entry> = usage::reports(&message.id, request.as_deref(), &message.beside).collect();
        let fact = fact::MessageFinished { key: message.id, report: message.report };
        entries.push(Entry::from(fact).origin(origin).at(message.at));
        entries.extend(beside.into_iter().map(|entry| entry.at(message.at)));
    }

    /// Adds the facts of a user or assistant record; gives the place of the one that carries the wire, `None` if the record
    /// cannot be understood.
    pub(super) fn speech(&mut self, record: &Record<'_>, entries: &mut Vec<Entry>) -> Option<usize> {
        let uuid = record.uuid.as_deref()?;
        let message = record.message?;
        let [id, content, model, stop_reason, usage, edited] =
            json::pick(message, ["id", "content", "model", "stop_reason", "usage", "context_management"])?;
        let blocks = MessageBlocks::parse(content)?;
        if let Some(wire) = self.said_again(record, uuid, &blocks, model, entries) {
            return Some(wire);
        }
        let first = entries.len();
        let wire = if record.kind == "assistant" {
            let told = AnswerMarks { model, usage, blocks: &blocks };
            let id = match named(id) {
                Some(id) => self.message_id(record, &id, &told),
                None => uuid.to_owned(),
            };
            let is_own = json::string(model).as_deref() == Some(SYNTHETIC);
            self.join_message(record, uuid, &id, is_own, entries);
            if let Some(open) = &mut self.message {
                let report = &mut open.report;
                report.model = json::owned(model).or(report.model.take());
                report.request = json::owned(record.request).or(report.request.take());
                report.stop_reason = json::owned(stop_reason).or(report.stop_reason.take());
                // The host's own words in the place of an answer: no model gave them.
                let is_synthetic = report.model.take_if(|model| model == SYNTHETIC).is_some();
                let own = report.model.as_deref();
                if let Some(spent) = usage.filter(|_| !is_synthetic).and_then(|usage| Spent::of(usage, own)) {
                    open.spend(spent);
                }
                open.edits = usage::applied_edits(edited).or(open.edits.take());
                open.at = time(record.timestamp);
            }
            let wire = entries.len();
            self.assistant(record, uuid, &id, &blocks, entries);
            wire
        } else {
            self.user(record, uuid, &blocks, entries)
        };
        self.remember(uuid, entries.get(first..).unwrap_or_default());
        self.place_kept(uuid, entries);
        Some(wire)
    }

    fn assistant(
        &mut self,
        record: &Record<'_>,
        uuid: &str,
        id: &str,
        blocks: &MessageBlocks<'_>,
        entries: &mut Vec<Entry>,
    ) {
        let at = time(record.timestamp);
        let mut parts: Vec<PartEntry> = Vec::new();
        let mut first = 0;
        for (index, block) in blocks.list.iter().enumerate() {
            if !block.is("tool_use") {
                if parts.is_empty() {
                    first = index;
                }
                parts.push(block.part());
                continue;
            }
            if !parts.is_empty() {
                let parts = std::mem::take(&mut parts);
                entries.push(self.parts(id, parts).origin(format!("msg:{uuid}#{first}")).at(at));
            }
            let call = named(block.id).map_or_else(|| format!("{uuid}#{index}"), Cow::into_owned);
            let tool = json::owned(block.name).unwrap_or_default();
            let sent = json::member(record.wire_inputs, &call).filter(|input| input.starts_with('{'));
            let params = sent.or(block.input).unwrap_or("{}");
            if let Some(change) = todo::of_call(&tool, params) {
                self.todo_calls.insert(call.clone(), change);
            }
            if let Some(&group) = self.by_message.get(id) {
                self.by_call.insert(Box::from(&*call), group);
            }
            let origin = self.calls.start(&call);
            entries.push(Entry::tool_started(call, tool, params).in_message(id).origin(origin).at(at));
        }
        if !parts.is_empty() || blocks.list.is_empty() {
            entries.push(self.parts(id, parts).origin(format!("msg:{uuid}#{first}")).at(at));
        }
    }

    /// The first parts of the open message, or further ones.
    fn parts(&mut self, id: &str, parts: Vec<PartEntry>) -> Entry {
        let group = self.message.as_ref().and_then(|open| self.groups.get_mut(open.group));
        let recorded = group.is_some_and(|group| std::mem::replace(&mut group.recorded, true));
        if recorded {
            return fact::MessageContinued { key: id.to_owned(), parts }.into();
        }
        let parent = self.parent_key(id);
        let mut entry = Entry::message_parts(id, Role::Assistant, parts);
        if let Fact::MessageRecorded(fact::MessageRecorded { parent: place, .. }) = &mut entry.fact {
            *place = parent;
        }
        entry
    }

    /// Gives the place of the fact that carries the wire.
    fn user(
        &mut self,
        record: &Record<'_>,
        uuid: &str,
        blocks: &MessageBlocks<'_>,
        entries: &mut Vec<Entry>,
    ) -> usize {
        let at = time(record.timestamp);
        let results = blocks.list.iter().filter(|block| block.is("tool_result")).count();
        let text =
            blocks.list.iter().find(|block| block.is("text")).and_then(|block| json::string(block.text));
        let is_prompt = results == 0
            && !record.is_meta
            && !record.is_summary
            && !NO_PROMPT.iter().any(|beginning| text.as_deref().unwrap_or_default().starts_with(beginning));
        let result_group = blocks
            .list
            .iter()
            .filter(|block| block.is("tool_result"))
            .find_map(|block| self.by_call.get(&*named(block.call)?).copied());
        if let Some(group) = result_group {
            self.seen.insert(Box::from(uuid), Some(group));
        } else {
            self.finish_message(entries);
            self.new_group(record, uuid, uuid, is_prompt, entries);
        }
        if is_prompt {
            self.prompt_count += 1;
            entries.push(Entry::prompt(uuid).origin(format!("prompt:{uuid}")).at(at));
        }
        let wire = entries.len();
        let mut parts = Vec::new();
        let mut first = None;
        let mut text_count = 0;
        for (index, block) in blocks.list.iter().enumerate() {
            if block.is("tool_result") {
                let entry = self.result(record, uuid, block, results == 1);
                entries.push(entry.at(at));
            } else {
                first = first.or(Some(index));
                let sent =
                    record.sent.as_ref().filter(|_| block.is("text")).and_then(|it| it.text(text_count));
                text_count += usize::from(block.is("text"));
                parts.push(sent.map_or_else(|| block.part(), PartEntry::text));
            }
        }
        if !parts.is_empty() || blocks.list.is_empty() {
            let fact = fact::MessageRecorded {
                key: uuid.to_owned(),
                role: Role::User,
                parts,
                parent: self.parent_key(uuid),
                hidden_from_model: false,
                hidden_from_user: record.is_meta || record.is_summary,
            };
            entries.push(Entry::from(fact).origin(format!("msg:{uuid}#{}", first.unwrap_or(0))).at(at));
        }
        wire
    }

    fn result(&mut self, record: &Record<'_>, uuid: &str, block: &ContentBlock<'_>, alone: bool) -> Entry {
        let call = named(block.call).map_or_else(|| uuid.to_owned(), Cow::into_owned);
        let sent = record.sent.as_ref().and_then(|sent| sent.result(&call)).map(parts_of);
        let output = sent.unwrap_or_else(|| block.result_parts());
        let failed = json::boolean(block.is_error) == Some(true);
        let text = output.first().map_or_else(|| Bytes::from([]), |part| Bytes::clone(&part.bytes));
        // Results are long, and few are of this type.
        let result = record.result.filter(|result| json::is_in(result, "file_unchanged"));
        let kind = json::string(json::member(result, "type"));
        let is_nothing_new = kind.as_deref() == Some("file_unchanged") || is_pointer(&text);
        let outcome = if !failed && is_nothing_new {
            // Nothing was read: the earlier result, which this one refers to, has to stay.
            Outcome::Aborted
        } else if !failed {
            Outcome::Completed
        } else if ABORTED.iter().any(|beginning| text.starts_with(beginning.as_bytes())) {
            Outcome::Aborted
        } else {
            Outcome::Failed
        };
        let origin = self.calls.finish(&call);
        self.answered.insert(Box::from(&*call));
        let result = record.result.filter(|_| alone);
        let change = self.todo_calls.remove(&call).filter(|_| !failed);
        let todo_change = change.and_then(|change| change.finished(result, &text));
        let details = result.and_then(small_fields);
        Entry::from(fact::ToolFinished { call, outcome, output, details, todo_change }).origin(origin)
    }

    /// Makes the message with this id the open one; a new one is a new model step, if it is not the host's own (`is_own`).
    fn join_message(
        &mut self,
        record: &Record<'_>,
        uuid: &str,
        id: &str,
        is_own: bool,
        entries: &mut Vec<Entry>,
    ) {
        let known = self.by_message.get(id).copied();
        if self.message.as_ref().is_some_and(|open| open.id == id)
            && let Some(group) = known
        {
            self.seen.insert(Box::from(uuid), Some(group));
            return;
        }
        self.finish_message(entries);
        let group = if let Some(group) = known {
            self.seen.insert(Box::from(uuid), Some(group));
            group
        } else {
            let group = self.new_group(record, uuid, id, false, entries);
            self.by_message.insert(Box::from(id), group);
            if !is_own {
                entries.push(Entry::step(id).origin(format!("turn:{id}")).at(time(record.timestamp)));
            }
            group
        };
        let (report, beside) = (Report::default(), Vec::new());
        self.message = Some(OpenMessage { id: id.to_owned(), group, report, beside, edits: None, at: None });
    }

    /// Puts a record into a group of its own, and adds a rewind if that leaves a branch.
    fn new_group(
        &mut self,
        record: &Record<'_>,
        uuid: &str,
        key: &str,
        is_prompt: bool,
        entries: &mut Vec<Entry>,
    ) -> usize {
        self.emitted(entries);
        self.close_group();
        let is_root = record.is_root && self.info().parent.is_none();
        let parent = record.parent.as_deref().and_then(|parent| self.seen.get(parent).copied().flatten());
        // How much of the path stays. A parent tells nothing if it is not in the file, hangs on no other, or is on a lost
        // branch.
        let keep = match parent {
            Some(parent) => {
                let depth = self.groups.get(parent).map_or(0, |group| group.depth);
                (self.path.get(depth) == Some(&parent)).then_some(depth + 1)
            }
            // A second root: the first prompt was rewritten.
            None if is_root && is_prompt => Some(0),
            None => None,
        };
        if let Some(keep) = keep
            && let Some(lost) = self.path.get(keep)
        {
            let lost = self.groups.get(*lost);
            let to = match lost.and_then(|group| group.before.clone()) {
                Some(origin) => PointRef::After(origin),
                None => PointRef::Before(String::new()),
            };
            let entry = Entry::from(fact::Rewound { to }).origin(format!("rewound:{uuid}"));
            entries.push(entry.at(time(record.timestamp)));
            self.path.truncate(keep);
            self.emitted(entries);
        }
        let group = self.push_group(key);
        self.seen.insert(Box::from(uuid), Some(group));
        group
    }

    /// Notes where the newest group ends.
    pub(super) fn close_group(&mut self) {
        if let Some(group) = self.groups.last_mut() {
            group.after.clone_from(&self.last_origin);
        }
    }

    pub(super) fn push_group(&mut self, key: &str) -> usize {
        let group = self.groups.len();
        let depth = self.path.len();
        self.groups.push(CallGroup {
            key: key.to_owned(),
            depth,
            before: self.last_origin.clone(),
            after: None,
            recorded: false,
        });
        self.path.push(group);
        group
    }

    /// Key of the message before the newest group, whose key is `key`.
    fn parent_key(&self, key: &str) -> Option<String> {
        let mut keys =
            self.path.iter().rev().filter_map(|group| self.groups.get(*group)).map(|group| &group.key);
        keys.find(|found| *found != key).cloned()
    }
}
