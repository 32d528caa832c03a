//! Events as facts.

use acpdb_engine::entry::{Entry, PartEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{Outcome, ReplaceCause, Report, Role, Usage};

use super::super::json::{count, elements, member, owned, pick};
use super::super::time;
use super::super::turns::{Calls, Occurrences, message, not_for_the_model, prompt, step};
use super::{Copilot, HOST};

/// The state of one line of conversation.
#[derive(Debug, Default)]
pub(super) struct EventLine {
    /// The stream, once the file has named it; the session's line only.
    pub(super) info: Option<StreamInfo>,
    /// Of a subagent: the line of the call that started it, and the call.
    pub(super) parent: Option<(usize, String)>,
    cwd: Option<String>,
    calls: Calls,
    /// Key of the newest message of the model, which asks for the calls that follow.
    message: Option<String>,
    keys: Occurrences,
    /// Origins of events at which a rewind may end.
    prompts: Vec<String>,
}

impl Copilot {
    /// Adds the facts of an event of a line.
    pub(super) fn event(&mut self, owner: usize, kind: &str, data: &str, origin: &str, out: &mut Vec<Entry>) {
        let Self { lines, told, .. } = self;
        let Some(line) = lines.get_mut(owner) else { return };
        match kind {
            "session.start" | "session.resume" => {
                told.model_is(owned(member(Some(data), "selectedModel")));
                line.opened(kind, data, origin, out);
            }
            "session.shutdown" => {
                let [reason, model] = pick(data, ["shutdownType", "currentModel"]).unwrap_or_default();
                out.push(Entry::from(fact::SessionClosed { reason: owned(reason) }).origin(origin));
                told.model_was(owned(model));
                told.sums(member(Some(data), "modelMetrics"), origin, out);
            }
            "session.model_change" => {
                let model = owned(member(Some(data), "newModel"));
                told.model_is(model.clone());
                if model.is_some() {
                    let set = fact::PromptSet { system: None, tools: None, model, params: None };
                    out.push(Entry::from(set).origin(origin));
                }
            }
            "session.compaction_complete" => {
                line.compacted(data, origin, out);
                told.compacted(data, origin, out);
            }
            "session.context_cleared" => {
                let order = Vec::new();
                let replaced =
                    fact::ContextReplaced { cause: ReplaceCause::Host, order, tokens_before: None };
                out.push(Entry::from(replaced).origin(origin));
            }
            "session.snapshot_rewind" => {
                let up_to = owned(member(Some(data), "upToEventId")).unwrap_or_default();
                let name = format!("event:{up_to}");
                // A place that is not in the file says nothing: the host has left its events out.
                if let Some(place) = line.prompts.iter().position(|known| *known == name) {
                    line.prompts.truncate(place);
                    let to = PointRef::Before(format!("prompt:{name}"));
                    out.push(Entry::from(fact::Rewound { to }).origin(origin));
                }
            }
            "session.usage_record" | "assistant.usage" => told.record(data, origin, out),
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
            "user.message" => line.asked(data, origin, out),
            "assistant.turn_start" => out.push(step(origin)),
            "assistant.message" => {
                let report = line.reply(data, origin, out);
                let key = line.message.clone().unwrap_or_default();
                told.answer((owner, key), report, data, origin, out);
            }
            "tool.execution_start" => line.started(data, out),
            "tool.execution_complete" => line.finished(data, out),
            "abort" => {
                out.push(Entry::host_record(kind, None).origin(origin));
                let why = owned(member(Some(data), "reason")).unwrap_or_else(|| "interrupted".to_string());
                for (call, finish) in line.calls.give_up() {
                    out.push(Entry::tool_aborted(call, &why).origin(finish));
                }
            }
            _ => {}
        }
    }
}

impl EventLine {
    /// The line of a subagent that a call in another line started.
    pub(super) fn of_agent(parent: usize, call: String) -> Self {
        Self { parent: Some((parent, call)), ..Self::default() }
    }

    fn asked(&mut self, data: &str, origin: &str, out: &mut Vec<Entry>) {
        let [text, sent] = pick(data, ["content", "transformedContent"]).unwrap_or_default();
        let (text, sent) = (owned(text).unwrap_or_default(), owned(sent));
        self.prompts.push(origin.to_owned());
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

    fn opened(&mut self, kind: &str, data: &str, origin: &str, out: &mut Vec<Entry>) {
        let [id, version, context, start] =
            pick(data, ["sessionId", "copilotVersion", "context", "startTime"]).unwrap_or_default();
        let cwd = owned(member(context, "cwd"));
        if self.info.is_none()
            && self.parent.is_none()
            && let Some(id) = owned(id)
        {
            self.cwd.clone_from(&cwd);
            self.info = Some(StreamInfo {
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

    /// The summary takes the place of all before it. A compaction that failed changed nothing.
    fn compacted(&mut self, data: &str, origin: &str, out: &mut Vec<Entry>) {
        let [success, summary, before] =
            pick(data, ["success", "summaryContent", "preCompactionTokens"]).unwrap_or_default();
        let Some(summary) = owned(summary).filter(|text| !text.is_empty() && success != Some("false")) else {
            return;
        };
        let cause = ReplaceCause::Compaction;
        let replaced = fact::ContextReplaced { cause, order: Vec::new(), tokens_before: count(before) };
        out.push(Entry::from(replaced).origin(origin));
        let key = format!("{origin}/summary");
        out.push(message(&key, Role::User, vec![PartEntry::text(summary)], true));
        self.prompts.clear();
    }

    fn reply(&mut self, data: &str, origin: &str, out: &mut Vec<Entry>) -> Report {
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
        let key = match self.keys.next(&key) {
            1 => key,
            n => format!("{key}+{n}"),
        };
        let (reasoning, sealed) = (owned(reasoning), owned(sealed));
        let mut parts = Vec::new();
        if reasoning.is_some() || sealed.is_some() {
            let sealed = sealed.as_deref().map(str::as_bytes);
            parts.push(PartEntry::reasoning(reasoning.unwrap_or_default(), sealed));
        }
        parts.extend(owned(content).filter(|text| !text.is_empty()).map(PartEntry::text));
        out.push(message(&key, Role::Assistant, parts, false).origin(origin));
        self.message = Some(key);
        Report {
            model: owned(model),
            request: owned(request),
            usage: Usage { output: count(tokens), ..Usage::default() },
            ..Report::default()
        }
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
