//! Pi: a session file of lines, `{type, id, parentId, timestamp, ..}`, which form a tree.
//!
//! ```text
//! session                  -> the stream
//! message user             -> prompt, message            message assistant   -> a step, message, calls, MessageFinished
//! message toolResult       -> end of a call              message bashExecution, custom, and custom_message -> message
//! message system           -> PromptSet: prompt and tools as they are from then on
//! compaction               -> ContextReplaced, the summary as a message, then the kept items behind it
//! branch_summary           -> message                    model_change -> PromptSet    session_info -> SessionChanged
//! everything else          -> HostRecorded
//! ```
//!
//! The line written last is the leaf: a line whose parent is another one goes on from there, which is a rewind to the
//! moment when that one was the leaf. A branch that was left and is entered again is told again, since rewound facts do not
//! come back: so the facts of a file are held while it is read. A parent that is not in the file tells nothing.
//!
//! Old files have no ids; the host writes such a file anew, with ids. So a message's origin is a digest of the message,
//! which stays as it is. Files of forks repeat the shared lines: they are part of the new stream.

mod parts;
mod system;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use acpdb_engine::entry::{Entry, Fact, ItemRef, PartEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{Outcome, ReplaceCause, Report, Role};

use self::parts::{ReplyBlock, bash, content, pieces, usage_of};
use self::system::System;
use super::json::{boolean, count, member, owned, pick};
use super::lines::{LineImporter, RecordOutcome, read_lines};
use super::turns::{Calls, Occurrences, digest, message, not_for_the_model, prompt, step};
use super::{ImportContext, ImportError, Input, small_fields, time};

const HOST: &str = "pi";

/// Texts around summaries when they are sent.
const COMPACTED: [&str; 2] = [
    "The conversation history before this point was compacted into the following summary:\n\n<summary>\n",
    "\n</summary>",
];
const LEFT: [&str; 2] = [
    "The following is a summary of a branch that this conversation came back from:\n\n<summary>\n",
    "</summary>",
];

/// Kinds of lines that say nothing about the context.
const KNOWN: &[&str] = &["thinking_level_change", "custom", "label"];

/// Most lines between a compaction and the first that it kept.
const KEPT_MAX: usize = 100_000;

/// A line that was read.
#[derive(Debug, Default)]
struct LineNode {
    parent: Option<String>,
    /// Origin of its last fact.
    last: String,
    /// Its items in the context.
    items: Vec<ItemRef>,
    /// Its facts, without their wires, as they were told first; how often they were told.
    facts: Vec<Entry>,
    told: u32,
    /// The system prompt and the tools behind it.
    system: Rc<System>,
}

#[derive(Debug, Default)]
struct Pi {
    stream: Option<StreamInfo>,
    ids: Occurrences,
    /// Digests of the lines with ids.
    lines: HashSet<blake3::Hash>,
    calls: Calls,
    nodes: HashMap<String, LineNode>,
    /// The path to the line that was written last, and the place of each of its lines.
    path: Vec<String>,
    places: HashMap<String, usize>,
    /// The newest origins of facts that were told again, by those that they had first.
    again: HashMap<String, String>,
    /// The system prompt and the tools behind the line that is read.
    system: Rc<System>,
}

/// Reads a session file.
pub(super) fn read(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let id = context.options.session.clone().unwrap_or_else(|| session_of(context.name).to_owned());
    read_lines(input, context, &mut Pi::default(), &StreamInfo::session(HOST, id))
}

/// The session's id out of a file's name, `TIME_ID`.
fn session_of(name: &str) -> &str {
    name.rsplit_once('_').map_or(name, |(_, id)| id)
}

impl LineNode {
    /// Notes the names that its facts have in the stream.
    fn hold(&mut self, facts: &[Entry]) {
        self.items.clear();
        for entry in facts {
            let Some(origin) = &entry.origin else { continue };
            let count = match &entry.fact {
                Fact::MessageRecorded(fact::MessageRecorded { parts, hidden_from_model: false, .. })
                | Fact::MessageContinued(fact::MessageContinued { parts, .. }) => parts.len(),
                Fact::ToolStarted(_) => 1,
                _ => 0,
            };
            let parts = 1..=u32::try_from(count).unwrap_or(u32::MAX);
            self.items.extend(parts.map(|part| ItemRef::Origin(origin.clone(), part)));
            self.last.clone_from(origin);
        }
    }
}

impl LineImporter for Pi {
    fn record(&mut self, line: &str, out: &mut Vec<Entry>) -> RecordOutcome {
        let Some([kind, id, parent, timestamp, said]) =
            pick(line, ["type", "id", "parentId", "timestamp", "message"])
        else {
            return RecordOutcome::Unfit("not a JSON object");
        };
        let Some(kind) = owned(kind) else { return RecordOutcome::Unfit("a line without a type") };
        let (id, parent) = (owned(id), owned(parent));
        // It would seem to go back to the line before the first one.
        if id.is_some() && !self.lines.insert(blake3::hash(line.as_bytes())) {
            return RecordOutcome::Again;
        }
        if kind == "session" {
            self.opened(line, id, out);
            return RecordOutcome::Known;
        }
        // Members that the host adds beside a message when it writes a file anew are not part of the message.
        let name = said.map_or_else(|| id.clone().unwrap_or_else(|| digest(line)), digest);
        let origin = self.ids.origin(&kind, &name);
        if id.is_some() {
            self.branch(parent.as_deref(), &origin, out);
        }
        let behind = self.system_of(parent.as_deref());
        if !out.is_empty() && behind != self.system {
            // The system prompt of the branch that is left does not hold here.
            out.push(Entry::from(behind.fact()).origin(format!("{origin}/system")));
        }
        self.system = behind;
        let before = out.len();
        let is_known = self.line(&kind, line, said, &origin, parent.as_deref(), out);
        if !out.iter().skip(before).any(|entry| !matches!(entry.fact, Fact::TurnStarted(_))) {
            out.push(Entry::host_record(kind.clone(), None).origin(&origin));
        }
        let at = time(timestamp);
        for entry in out.iter_mut() {
            entry.host_time = at;
        }
        if let Some(id) = id {
            self.grown(id, parent, out.get(before..).unwrap_or_default());
        }
        if is_known { RecordOutcome::Known } else { RecordOutcome::Unknown(kind) }
    }

    fn stream(&self) -> Option<&StreamInfo> {
        self.stream.as_ref()
    }
}

impl Pi {
    fn opened(&mut self, line: &str, id: Option<String>, out: &mut Vec<Entry>) {
        let [cwd, timestamp] = pick(line, ["cwd", "timestamp"]).unwrap_or_default();
        let name = id.unwrap_or_else(|| digest(line));
        let origin = self.ids.origin("session", &name);
        out.push(Entry::host_record("session", None).origin(origin).at(time(timestamp)));
        self.stream.get_or_insert_with(|| StreamInfo {
            cwd: owned(cwd),
            host_time: time(timestamp),
            ..StreamInfo::session(HOST, name)
        });
    }

    /// Adds a rewind if a line does not go on from the line before it. A branch that was left is told again: rewound facts
    /// do not come back as themselves.
    fn branch(&mut self, parent: Option<&str>, origin: &str, out: &mut Vec<Entry>) {
        if parent == self.path.last().map(String::as_str) {
            return;
        }
        // Lines that were left, from the parent up to the first that was not.
        let mut lost = Vec::new();
        let mut at = parent;
        while let Some(id) = at.filter(|id| !self.places.contains_key(*id)) {
            // A parent that is not in the file tells nothing; nor does a line that hangs on itself.
            let Some(node) = self.nodes.get(id).filter(|_| lost.len() < self.nodes.len()) else { return };
            lost.push(id.to_owned());
            at = node.parent.as_deref();
        }
        let to = match at.and_then(|id| self.nodes.get(id)) {
            Some(node) => PointRef::After(node.last.clone()),
            // Behind others, a line without a parent: the first prompt was written anew.
            None => PointRef::Before(String::new()),
        };
        let keep = at.and_then(|id| self.places.get(id)).map_or(0, |place| place + 1);
        for id in self.path.drain(keep..) {
            self.places.remove(&id);
        }
        out.push(Entry::from(fact::Rewound { to }).origin(format!("{origin}/rewound")));
        for id in lost.into_iter().rev() {
            self.retell(id, out);
        }
    }

    /// Tells the facts of a line again, under other names.
    fn retell(&mut self, id: String, out: &mut Vec<Entry>) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.told = node.told.saturating_add(1);
        let number = node.told;
        let facts = node.facts.clone();
        let mut told = Vec::with_capacity(facts.len());
        for mut entry in facts {
            let Some(origin) = entry.origin.take() else { continue };
            let name = renamed(&origin, number);
            self.again.insert(origin, name.clone());
            entry.origin = Some(name);
            told.push(entry);
        }
        for entry in &mut told {
            match &mut entry.fact {
                Fact::TurnStarted(fact::TurnStarted { key, .. })
                | Fact::MessageRecorded(fact::MessageRecorded { key, .. })
                | Fact::MessageContinued(fact::MessageContinued { key, .. })
                | Fact::MessageFinished(fact::MessageFinished { key, .. })
                | Fact::ToolStarted(fact::ToolStarted { message: Some(key), .. }) => {
                    *key = renamed(key, number);
                }
                Fact::ContextReplaced(fact::ContextReplaced { order, .. }) => {
                    for item in order {
                        // A compaction may have named the item as it was told the time before.
                        if let ItemRef::Origin(origin, _) = item
                            && let Some(name) =
                                self.again.get(origin).or_else(|| self.again.get(&*first_name(origin)?))
                        {
                            origin.clone_from(name);
                        }
                    }
                }
                _ => {}
            }
        }
        if let Some(node) = self.nodes.get_mut(&id) {
            node.hold(&told);
        }
        self.places.insert(id.clone(), self.path.len());
        self.path.push(id);
        out.append(&mut told);
    }

    /// The system prompt and the tools behind a line; a line that is not in the file changes nothing.
    fn system_of(&self, id: Option<&str>) -> Rc<System> {
        let Some(id) = id.filter(|_| !self.nodes.is_empty()) else { return Rc::default() };
        Rc::clone(self.nodes.get(id).map_or(&self.system, |node| &node.system))
    }

    /// Remembers a line with its own facts.
    fn grown(&mut self, id: String, parent: Option<String>, own: &[Entry]) {
        let mut node = LineNode {
            parent,
            facts: own.to_vec(),
            told: 1,
            system: Rc::clone(&self.system),
            ..LineNode::default()
        };
        node.hold(own);
        self.places.insert(id.clone(), self.path.len());
        self.path.push(id.clone());
        self.nodes.insert(id, node);
    }

    /// Adds the facts of a line; whether its kind is known.
    fn line(
        &mut self,
        kind: &str,
        line: &str,
        said: Option<&str>,
        origin: &str,
        parent: Option<&str>,
        out: &mut Vec<Entry>,
    ) -> bool {
        match (kind, said) {
            ("message", Some(said)) => return self.message(said, origin, out),
            ("custom_message", _) => {
                let [said, shown] = pick(line, ["content", "display"]).unwrap_or_default();
                out.push(message(origin, Role::User, content(said), boolean(shown) == Some(false)));
            }
            ("compaction", _) => self.compacted(line, origin, parent, out),
            ("branch_summary", _) => {
                let summary = owned(member(Some(line), "summary")).filter(|text| !text.is_empty());
                let text = summary.map(|text| LEFT.join(&text));
                out.extend(text.map(|text| message(origin, Role::User, vec![PartEntry::text(text)], true)));
            }
            ("model_change", _) => {
                let model = owned(member(Some(line), "modelId"));
                let set = fact::PromptSet { system: None, tools: None, model, params: None };
                out.push(Entry::from(set).origin(origin));
            }
            ("session_info", _) => {
                let title = owned(member(Some(line), "name"));
                let changed = fact::SessionChanged { title, ..fact::SessionChanged::default() };
                out.push(Entry::from(changed).origin(origin));
            }
            _ => return KNOWN.contains(&kind),
        }
        true
    }

    fn message(&mut self, said: &str, origin: &str, out: &mut Vec<Entry>) -> bool {
        let role = owned(member(Some(said), "role")).unwrap_or_default();
        let inner = || content(member(Some(said), "content"));
        match role.as_str() {
            "user" => {
                out.push(prompt(origin));
                out.push(message(origin, Role::User, inner(), false));
            }
            "assistant" => self.reply(said, origin, out),
            "toolResult" => self.result(said, origin, out),
            "bashExecution" => {
                let entry = message(origin, Role::User, vec![PartEntry::text(bash(said))], false);
                let is_left_out = boolean(member(Some(said), "excludeFromContext")) == Some(true);
                out.push(if is_left_out { not_for_the_model(entry) } else { entry });
            }
            "system" => {
                Rc::make_mut(&mut self.system).change(said);
                out.push(Entry::from(self.system.fact()).origin(origin));
            }
            "custom" | "hookMessage" => {
                let is_hidden = boolean(member(Some(said), "display")) == Some(false);
                out.push(message(origin, Role::User, inner(), is_hidden));
            }
            _ => return false,
        }
        true
    }

    /// A reply, in the order of its blocks.
    fn reply(&mut self, said: &str, origin: &str, out: &mut Vec<Entry>) {
        let names = ["api", "provider", "model", "usage", "stopReason", "responseId", "content"];
        let [api, provider, model, usage, stop, request, blocks] = pick(said, names).unwrap_or_default();
        let stop = owned(stop);
        // A reply that failed on its way is not sent again, and its calls were not made.
        let is_void = matches!(stop.as_deref(), Some("error" | "aborted"));
        out.push(step(origin));
        let told = message(origin, Role::Assistant, Vec::new(), false);
        let told = if is_void { not_for_the_model(told) } else { told };
        let mut text: Vec<PartEntry> = Vec::new();
        let mut first = Some(told);
        for piece in pieces(blocks, owned(api).as_deref().unwrap_or_default()) {
            match piece {
                ReplyBlock::Part(part) => text.push(part),
                ReplyBlock::Call { .. } if is_void => {}
                ReplyBlock::Call { id, tool, arguments, signature } => {
                    tell(&mut first, &mut text, origin, out);
                    let start = self.calls.start(&id);
                    let mut entry = Entry::tool_started(id, tool, arguments).in_message(origin).origin(start);
                    if let Fact::ToolStarted(fact::ToolStarted { provider_signature, .. }) = &mut entry.fact {
                        *provider_signature = signature.map(|text| text.into_bytes().into());
                    }
                    out.push(entry);
                }
            }
        }
        tell(&mut first, &mut text, origin, out);
        let cost = member(member(usage, "cost"), "total").and_then(super::json::millionths);
        let finished = fact::MessageFinished {
            key: origin.to_owned(),
            report: Report {
                model: owned(model),
                provider: owned(provider),
                request: owned(request),
                stop_reason: stop,
                usage: usage_of(usage),
                // Where the host knows no prices it writes noughts.
                cost: cost.filter(|cost| *cost > 0),
                ..Report::default()
            },
        };
        out.push(Entry::from(finished).origin(format!("{origin}/finished")));
    }

    fn result(&mut self, said: &str, origin: &str, out: &mut Vec<Entry>) {
        let [id, shown, failed, details] =
            pick(said, ["toolCallId", "content", "isError", "details"]).unwrap_or_default();
        let Some(id) = owned(id) else {
            out.push(Entry::host_record("message", None).origin(origin));
            return;
        };
        let id = parts::call_id(&id).to_owned();
        let outcome = if boolean(failed) == Some(true) { Outcome::Failed } else { Outcome::Completed };
        let finish = self.calls.finish(&id);
        let mut entry = Entry::tool_finished(id, outcome, content(shown)).origin(finish);
        if let Fact::ToolFinished(fact::ToolFinished { details: kept, .. }) = &mut entry.fact {
            *kept = details.and_then(small_fields);
        }
        out.push(entry);
    }

    /// The summary, and behind it the items that the compaction kept.
    fn compacted(&mut self, line: &str, origin: &str, parent: Option<&str>, out: &mut Vec<Entry>) {
        let [summary, first, tokens, system] =
            pick(line, ["summary", "firstKeptEntryId", "tokensBefore", "systemMessage"]).unwrap_or_default();
        let tokens_before = count(tokens);
        let replaced =
            fact::ContextReplaced { cause: ReplaceCause::Compaction, order: Vec::new(), tokens_before };
        out.push(Entry::from(replaced).origin(origin));
        if let Some(said) = system {
            self.system = Rc::default();
            Rc::make_mut(&mut self.system).change(said);
            out.push(Entry::from(self.system.fact()).origin(format!("{origin}/system")));
        }
        let told = format!("{origin}/summary");
        let text = COMPACTED.join(&owned(summary).unwrap_or_default());
        out.push(message(&told, Role::User, vec![PartEntry::text(text)], true));
        let kept = self.kept(owned(first).as_deref(), parent);
        if !kept.is_empty() {
            let mut order = vec![ItemRef::Origin(told, 1)];
            order.extend(kept);
            let fact = fact::ContextReplaced { cause: ReplaceCause::Host, order, tokens_before: None };
            out.push(Entry::from(fact).origin(format!("{origin}/kept")));
        }
    }

    /// The context items of the lines from `first` to `last`, which descends from `first`.
    fn kept(&self, first: Option<&str>, last: Option<&str>) -> Vec<ItemRef> {
        let Some(first) = first else { return Vec::new() };
        let mut found = Vec::new();
        let mut at = last;
        for _ in 0..KEPT_MAX {
            let Some((id, node)) = at.and_then(|id| Some((id, self.nodes.get(id)?))) else { break };
            found.push(node);
            if id == first {
                return found.iter().rev().flat_map(|node| node.items.iter().cloned()).collect();
            }
            at = node.parent.as_deref();
        }
        Vec::new()
    }
}

/// The name of a fact, or of a message, that is told again.
fn renamed(name: &str, number: u32) -> String {
    match name.strip_suffix(":start") {
        Some(call) => format!("{call}@{number}:start"),
        None => format!("{name}@{number}"),
    }
}

/// The first name of a fact that is told again under this name.
fn first_name(name: &str) -> Option<Cow<'_, str>> {
    let (call, end) = name.strip_suffix(":start").map_or((name, ""), |call| (call, ":start"));
    let (first, number) = call.rsplit_once('@')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| if end.is_empty() { Cow::Borrowed(first) } else { Cow::Owned(format!("{first}{end}")) })
}

/// Hands out the parts that were gathered: the first time as the message, later as its continuation.
fn tell(first: &mut Option<Entry>, text: &mut Vec<PartEntry>, origin: &str, out: &mut Vec<Entry>) {
    let gathered = std::mem::take(text);
    match first.take() {
        Some(mut entry) => {
            if let Fact::MessageRecorded(fact::MessageRecorded { parts, .. }) = &mut entry.fact {
                *parts = gathered;
            }
            out.push(entry);
        }
        None if gathered.is_empty() => {}
        None => {
            let fact = fact::MessageContinued { key: origin.to_owned(), parts: gathered };
            out.push(Entry::from(fact).origin(format!("{origin}/{}", out.len())));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_named_by_the_end_of_its_files_name() {
        assert_eq!(session_of("2026-01-02T03-04-05-006Z_01a2"), "01a2");
        assert_eq!(session_of("mine"), "mine");
    }
}
