//! Copilot CLI: `events.jsonl`, `{type, data, id, timestamp, parentId}` a line.
//!
//! ```text
//! session.start / resume        -> the stream; SessionChanged when the folder changes
//! system.message                -> PromptSet          user.message -> prompt, message
//! assistant.turn_start          -> a step             assistant.message -> message, MessageFinished
//! tool.execution_start/complete -> the call           everything else -> HostRecorded
//! ```
//!
//! Calls come from `tool.execution_*` alone: `assistant.message.toolRequests` repeats them. For the model, the text of a
//! prompt is `transformedContent`, which adds the time of day; the typed text is for people. `parentId` is always the line
//! before and says nothing. The format is undocumented: kinds that are not listed are kept, those of a known group
//! (`hook.`, `permission.`, `session.` ..) without being called unknown.

use acpdb_engine::entry::{Entry, Fact, PartEntry, StreamInfo, fact};
use acpdb_engine::event::{Outcome, Report, Role, Usage};

use super::json::{count, elements, member, owned, pick};
use super::lines::{Found, LineImporter, read_lines};
use super::turns::{Calls, Occurrences, digest, message, not_for_the_model, prompt, step};
use super::{Context, ImportError, Input, time};

const HOST: &str = "copilot-cli";

/// Groups of events that are kept without being facts.
const GROUPS: [&str; 9] =
    ["session.", "user.", "assistant.", "tool.", "hook.", "permission.", "system.", "subagent.", "skill."];

#[derive(Debug, Default)]
struct Copilot {
    stream: Option<StreamInfo>,
    cwd: Option<String>,
    ids: Occurrences,
    calls: Calls,
    /// Key of the newest message of the model, which asks for the calls that follow.
    message: Option<String>,
}

/// Reads an event file.
pub(super) fn read(input: Input<'_>, context: &mut Context<'_>) -> Result<(), ImportError> {
    let id = context.options.session.clone().unwrap_or_else(|| context.name.to_string());
    read_lines(input, context, &mut Copilot::default(), &StreamInfo::session(HOST, id))
}

impl LineImporter for Copilot {
    fn record(&mut self, line: &str, out: &mut Vec<Entry>) -> Found {
        let Some([kind, data, id, timestamp]) = pick(line, ["type", "data", "id", "timestamp"]) else {
            return Found::Unfit("not a JSON object");
        };
        let Some(kind) = owned(kind) else { return Found::Unfit("an event without a type") };
        let data = data.unwrap_or("{}");
        // Ids are unique; should one come twice, both events are kept.
        let id = owned(id).unwrap_or_else(|| digest(line));
        let origin = match self.ids.next(&id) {
            1 => format!("event:{id}"),
            n => format!("event:{id}#{n}"),
        };
        self.event(&kind, data, &origin, out);
        if out.iter().all(|entry| matches!(entry.fact, Fact::TurnStarted(_))) {
            let about = owned(member(Some(data), "toolCallId"));
            let fact = fact::HostRecorded { record: kind.clone(), about, raw: None };
            out.push(Entry::from(fact).origin(origin));
        }
        let at = time(timestamp);
        for entry in out.iter_mut() {
            entry.host_time = at;
        }
        let known = kind == "abort" || GROUPS.iter().any(|group| kind.starts_with(group));
        if known { Found::Known } else { Found::Unknown(kind) }
    }

    fn stream(&self) -> Option<&StreamInfo> {
        self.stream.as_ref()
    }
}

impl Copilot {
    fn event(&mut self, kind: &str, data: &str, origin: &str, out: &mut Vec<Entry>) {
        match kind {
            "session.start" | "session.resume" => self.opened(kind, data, origin, out),
            "session.shutdown" => {
                let reason = owned(member(Some(data), "shutdownType"));
                out.push(Entry::from(fact::SessionClosed { reason }).origin(origin));
            }
            "session.model_change" => {
                let model = owned(member(Some(data), "newModel"));
                if model.is_some() {
                    let set = fact::PromptSet { system: None, tools: None, model, params: None };
                    out.push(Entry::from(set).origin(origin));
                }
            }
            "system.message" => {
                if let Some(text) = owned(member(Some(data), "content")) {
                    let system = Some(text.into_bytes().into());
                    let set = fact::PromptSet { system, tools: None, model: None, params: None };
                    out.push(Entry::from(set).origin(origin));
                }
            }
            "system.notification" => {
                if let Some(text) = owned(member(Some(data), "content")) {
                    out.push(message(origin, Role::User, vec![PartEntry::text(text)], true));
                }
            }
            "user.message" => {
                let [text, sent] = pick(data, ["content", "transformedContent"]).unwrap_or_default();
                let (text, sent) = (owned(text).unwrap_or_default(), owned(sent));
                out.push(prompt(origin));
                // The sent text has the time before it, and more; people read the typed text.
                let typed = sent.as_ref().is_some_and(|sent| *sent != text).then(|| text.clone());
                let sent = vec![PartEntry::text(sent.unwrap_or(text))];
                out.push(message(origin, Role::User, sent, typed.is_some()));
                if let Some(typed) = typed {
                    let key = format!("{origin}/typed");
                    let typed = message(&key, Role::User, vec![PartEntry::text(typed)], false);
                    out.push(not_for_the_model(typed));
                }
            }
            "assistant.turn_start" => out.push(step(origin)),
            "assistant.message" => self.reply(data, origin, out),
            "tool.execution_start" => self.started(data, out),
            "tool.execution_complete" => self.finished(data, out),
            "abort" => {
                out.push(Entry::host_record(kind, None).origin(origin));
                let why = owned(member(Some(data), "reason")).unwrap_or_else(|| "interrupted".to_string());
                for (call, finish) in self.calls.give_up() {
                    out.push(Entry::tool_aborted(call, &why).origin(finish));
                }
            }
            _ => {}
        }
    }

    fn opened(&mut self, kind: &str, data: &str, origin: &str, out: &mut Vec<Entry>) {
        let [id, version, context, start] =
            pick(data, ["sessionId", "copilotVersion", "context", "startTime"]).unwrap_or_default();
        let cwd = owned(member(context, "cwd"));
        if self.stream.is_none()
            && let Some(id) = owned(id)
        {
            self.cwd.clone_from(&cwd);
            self.stream = Some(StreamInfo {
                cwd,
                host_version: owned(version),
                host_time: time(start),
                ..StreamInfo::session(HOST, id)
            });
            return;
        }
        out.push(Entry::host_record(kind, None).origin(origin));
        if cwd.is_some() && cwd != self.cwd {
            self.cwd.clone_from(&cwd);
            let changed =
                fact::SessionChanged { title: None, cwd, project: None, host_version: owned(version) };
            out.push(Entry::from(changed).origin(format!("{origin}/cwd")));
        }
    }

    fn reply(&mut self, data: &str, origin: &str, out: &mut Vec<Entry>) {
        let names = [
            "messageId",
            "content",
            "reasoningText",
            "reasoningOpaque",
            "model",
            "outputTokens",
            "requestId",
        ];
        let [key, content, reasoning, sealed, model, tokens, request] = pick(data, names).unwrap_or_default();
        let key = owned(key).unwrap_or_else(|| origin.to_string());
        let (reasoning, sealed) = (owned(reasoning), owned(sealed));
        let mut parts = Vec::new();
        if reasoning.is_some() || sealed.is_some() {
            let sealed = sealed.as_deref().map(str::as_bytes);
            parts.push(PartEntry::reasoning(reasoning.unwrap_or_default(), sealed));
        }
        parts.extend(owned(content).filter(|text| !text.is_empty()).map(PartEntry::text));
        out.push(message(&key, Role::Assistant, parts, false).origin(origin));
        let finished = fact::MessageFinished {
            key: key.clone(),
            report: Report {
                model: owned(model),
                request: owned(request),
                usage: Usage { output: count(tokens), ..Usage::default() },
                ..Report::default()
            },
        };
        out.push(Entry::from(finished).origin(format!("{origin}/finished")));
        self.message = Some(key);
    }

    fn started(&mut self, data: &str, out: &mut Vec<Entry>) {
        let [id, tool, arguments] = pick(data, ["toolCallId", "toolName", "arguments"]).unwrap_or_default();
        let Some(id) = owned(id) else { return };
        let tool = owned(tool).unwrap_or_default();
        let start = self.calls.start(&id);
        let mut entry = Entry::tool_started(id, tool, arguments.unwrap_or("{}")).origin(start);
        if let Some(message) = &self.message {
            entry = entry.in_message(message);
        }
        out.push(entry);
    }

    fn finished(&mut self, data: &str, out: &mut Vec<Entry>) {
        let names = ["toolCallId", "success", "result", "error", "toolTelemetry"];
        let [id, success, result, error, telemetry] = pick(data, names).unwrap_or_default();
        let Some(id) = owned(id) else { return };
        let failed = success == Some("false") || (result.is_none() && error.is_some());
        let shown = if failed { error.or(result) } else { result.or(error) };
        let outcome = if failed { Outcome::Failed } else { Outcome::Completed };
        let finish = self.calls.finish(&id);
        let mut entry = Entry::tool_finished(id, outcome, output(shown)).origin(finish);
        if let Some(telemetry) = telemetry.filter(|object| *object != "{}") {
            entry = entry.details(telemetry);
        }
        out.push(entry);
    }
}

/// The parts of a result for the model: the text of `content` or `message`, a bare string, or blocks.
fn output(shown: Option<&str>) -> Vec<PartEntry> {
    let Some(shown) = shown else { return Vec::new() };
    let [content, message] = pick(shown, ["content", "message"]).unwrap_or_default();
    let content = content.or(message).unwrap_or(shown);
    if let Some(text) = owned(Some(content)) {
        return vec![PartEntry::text(text)];
    }
    match elements(content) {
        Some(blocks) => blocks
            .into_iter()
            .map(|block| match owned(member(Some(block), "text")) {
                Some(text) => PartEntry::text(text),
                None => PartEntry::opaque(block),
            })
            .collect(),
        None => vec![PartEntry::opaque(content)],
    }
}
