//! Copilot CLI: `events.jsonl`, `{type, data, id, timestamp, parentId, agentId}` a line.
//!
//! ```text
//! session.start / resume        -> the stream; SessionChanged when the folder changes
//! system.message                -> PromptSet          user.message -> prompt, message
//! assistant.turn_start          -> a step             assistant.message -> message, MessageFinished
//! tool.execution_start/complete -> the call           everything else -> HostRecorded
//! session.compaction_complete   -> ContextReplaced, the summary as a message
//! session.context_cleared       -> ContextReplaced by nothing        session.snapshot_rewind -> Rewound
//! system.notification, skill.context_delivered(_ref), session.mode_notice_delivered -> a message of the host's
//! session.usage_record          -> MessageFinished    session.shutdown -> what no message told (see `usage`)
//! events of a subagent          -> the same, in a stream of its own: `<session>/<the call that started it>`
//! ```
//!
//! Calls come from `tool.execution_*` alone: `assistant.message.toolRequests` repeats them. For the model, the text of a
//! prompt is `transformedContent`, which adds the time of day; the typed text is for people. `parentId` is always the line
//! before and says nothing. The format is undocumented: kinds that are not listed are kept, those of a known group
//! (`hook.`, `permission.`, `session.` ..) without being called unknown. The same event twice is one, another one under a
//! known id is a second.

mod events;
mod usage;

use std::collections::HashMap;
use std::sync::Arc;

use acpdb_engine::entry::{Entry, Fact, StreamInfo, fact};
use acpdb_engine::event::Scope;
use acpdb_engine::event::stream_id;

use self::events::EventLine;
pub(crate) use self::events::{SUMMARY, SUMMARY_SENT};
use self::usage::Reckoned;
use super::json::{member, owned, pick};
use super::lines::{RecordOutcome, keep, opened};
use super::marks::marks;
use super::report::Admitted;
use super::turns::{Occurrences, digest};
use super::values::ValueReader;
use super::{ImportContext, ImportError, ImportFormat, Input, time};

const HOST: &str = "copilot-cli";

/// Groups of events that are kept without being facts.
const GROUPS: [&str; 9] =
    ["session.", "user.", "assistant.", "tool.", "hook.", "permission.", "system.", "subagent.", "skill."];

/// Most records that may come before the one that names the session.
const PENDING_MAX: usize = 64;

/// The state of a file: the session's line, and those of its subagents.
#[derive(Debug, Default)]
struct Copilot {
    lines: Vec<EventLine>,
    /// Lines of subagents, by the calls that started them.
    agents: HashMap<String, usize>,
    /// The calls that started subagents, by the ids that the subagents have.
    calls: HashMap<String, String>,
    /// The line that each call stands in.
    owners: HashMap<String, usize>,
    /// Digests of the events that were told under each id.
    ids: HashMap<String, Vec<String>>,
    /// Texts of skills by the host's names for them: a later event may refer to one.
    skills: HashMap<String, String>,
    told: Reckoned,
    kept: Occurrences,
}

/// Facts that wait until the session is named.
type Pending = Vec<(usize, Vec<Entry>, u64)>;

/// Reads an event file.
pub(super) fn read(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let id = context.options.session.clone().unwrap_or_else(|| context.name.to_string());
    let reader = ValueReader::records(input, &context.options.limits);
    let mut reader = reader.finding(marks(ImportFormat::CopilotCli));
    let mut copilot = Copilot { lines: vec![EventLine::default()], ..Copilot::default() };
    let mut streams: Vec<Arc<StreamInfo>> = Vec::new();
    let mut pending = Pending::new();
    while let Some(value) = reader.read()? {
        let (line, at, raw) = (value.line, value.offset, value.raw);
        context.line = line;
        let mut entries = Vec::new();
        let owner = match context.admit(&value) {
            Admitted::Text(text) => {
                let (owner, found) = copilot.record(text, &mut entries);
                found.told(raw, (line, at), &mut entries, &mut copilot.kept, &mut context.report);
                owner
            }
            Admitted::Raw(bytes) => {
                entries.push(keep(&mut copilot.kept, bytes));
                0
            }
            Admitted::Nothing => continue,
        };
        context.report.records += 1;
        pending.push((owner, entries, reader.offset()));
        let is_named = copilot.lines.first().is_some_and(|main| main.info.is_some());
        if is_named || pending.len() > PENDING_MAX {
            copilot.hand_out(&id, &mut streams, std::mem::take(&mut pending), context)?;
        }
    }
    // Answers whose model came with no later event.
    let ends = copilot.told.unnamed().map(|(owner, entry)| (owner, vec![entry], reader.offset()));
    pending.extend(ends.collect::<Vec<_>>());
    copilot.hand_out(&id, &mut streams, pending, context)
}

impl Copilot {
    /// Hands out facts in their streams.
    fn hand_out(
        &self,
        id: &str,
        streams: &mut Vec<Arc<StreamInfo>>,
        pending: Pending,
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        for (owner, entries, offset) in pending {
            while streams.len() <= owner {
                let info = self.info(id, streams);
                streams.push(opened(info, context));
            }
            if let Some(stream) = streams.get(owner) {
                context.emit(stream, entries, offset)?;
            }
        }
        Ok(())
    }

    /// The info of the next stream.
    fn info(&self, id: &str, streams: &[Arc<StreamInfo>]) -> StreamInfo {
        let unnamed = || StreamInfo::session(HOST, id);
        let main = self.lines.first().and_then(|main| main.info.clone()).unwrap_or_else(unnamed);
        let Some((parent, call)) = self.lines.get(streams.len()).and_then(|line| line.parent.clone()) else {
            return main;
        };
        let parent =
            streams.get(parent).map_or_else(|| stream_id(Scope::Session, HOST, &main.name), |it| it.id());
        let name = format!("{}/{call}", main.name);
        StreamInfo { name, parent: Some((parent, Some(call))), title: None, ..main }
    }

    fn record(&mut self, line: &str, out: &mut Vec<Entry>) -> (usize, RecordOutcome) {
        let Some([kind, data, id, timestamp, agent]) =
            pick(line, ["type", "data", "id", "timestamp", "agentId"])
        else {
            return (0, RecordOutcome::Unfit("not a JSON object"));
        };
        let Some(kind) = owned(kind) else { return (0, RecordOutcome::Unfit("an event without a type")) };
        let data = data.unwrap_or("{}");
        let owner = self.owner(&kind, data, owned(agent));
        let id = owned(id).unwrap_or_else(|| digest(line));
        let known = self.ids.entry(id.clone()).or_default();
        let content = digest(line);
        if known.contains(&content) {
            return (owner, RecordOutcome::Again);
        }
        known.push(content);
        let origin = match known.len() {
            1 => format!("event:{id}"),
            n => format!("event:{id}#{n}"),
        };
        let at = time(timestamp);
        self.event(owner, &kind, data, &origin, out);
        if out.iter().all(|entry| matches!(entry.fact, Fact::TurnStarted(_))) {
            let about = owned(member(Some(data), "toolCallId"));
            let fact = fact::HostRecorded { record: kind.clone(), about, raw: None };
            out.push(Entry::from(fact).origin(origin));
        }
        for entry in out.iter_mut().filter(|entry| entry.host_time.is_none()) {
            entry.host_time = at;
        }
        if let Some(line) = self.lines.get_mut(owner) {
            line.emitted(out);
        }
        self.told.dated(at);
        let known = kind == "abort" || GROUPS.iter().any(|group| kind.starts_with(group));
        (owner, if known { RecordOutcome::Known } else { RecordOutcome::Unknown(kind) })
    }

    /// The line that an event belongs to: the session's, or that of the subagent that it names.
    fn owner(&mut self, kind: &str, data: &str, agent: Option<String>) -> usize {
        let [call, parent, own] =
            pick(data, ["toolCallId", "parentToolCallId", "agentId"]).unwrap_or_default();
        let (call, agent) = (owned(call), agent.or_else(|| owned(own)));
        if kind.starts_with("subagent.") {
            // It tells of the subagent, where that was started.
            if let (Some(agent), Some(call)) = (&agent, &call) {
                self.calls.insert(agent.clone(), call.clone());
            }
            return call.and_then(|call| self.owners.get(&call).copied()).unwrap_or(0);
        }
        let started_by = owned(parent).or_else(|| {
            let agent = agent?;
            Some(self.calls.get(&agent).cloned().unwrap_or(agent))
        });
        // Each event of a call belongs where the call was made, also if it does not say so.
        let of_call =
            call.as_ref().filter(|_| kind.starts_with("tool.")).and_then(|call| self.owners.get(call));
        let unmarked = of_call.copied().unwrap_or(0);
        let owner = started_by.map_or(unmarked, |started_by| self.agent(started_by));
        if let Some(call) = call.filter(|_| kind == "tool.execution_start") {
            self.owners.insert(call, owner);
        }
        owner
    }

    /// The line of the subagent that a call started.
    fn agent(&mut self, call: String) -> usize {
        if let Some(known) = self.agents.get(&call) {
            return *known;
        }
        let parent = self.owners.get(&call).copied().unwrap_or(0);
        let number = self.lines.len();
        self.lines.push(EventLine::of_agent(parent, call.clone()));
        self.agents.insert(call, number);
        number
    }
}
