//! Events as facts.

use acpdb_engine::entry::{Entry, Fact, PartEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{Outcome, ReplaceCause, Report, Role, Usage};
use sha2::{Digest as _, Sha256};

use super::super::json::{count, elements, member, owned, pick};
use super::super::time;
use super::super::turns::{Calls, Occurrences, holds_pointer, message, not_for_the_model, prompt, step};
use super::{Copilot, HOST};

/// Ends of the keys of a summary: as the model wrote it, and as the host sends it.
pub(crate) const SUMMARY: &str = "/summary";
pub(crate) const SUMMARY_SENT: &str = "/summary/sent";

/// Words around the user's words and a summary, as 1.0.92 and 1.0.102 send them.
const AROUND: [&str; 3] = [
    "Some of the conversation history has been summarized to free up context.\n\nYou were originally given instructions from a user over one or \
     more turns. Here were the user messages:\n",
    "\nHere is a summary of the prior context:\n<summary>\n",
    "\n</summary>\n",
];

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
    /// The user's words so far, behind their origins: the host tells them again with each summary.
    said: Vec<(String, String)>,
    /// Origin of the newest fact that has one place: the end of a message is told again.
    last: Option<String>,
}

impl Copilot {
    /// Adds the facts of an event of a line.
    pub(super) fn event(&mut self, owner: usize, kind: &str, data: &str, origin: &str, out: &mut Vec<Entry>) {
        let Self { lines, told, ids, skills, .. } = self;
        let Some(line) = lines.get_mut(owner) else { return };
        match kind {
            "session.start" | "session.resume" => {
                told.started();
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
                let (name, is_known) = (format!("event:{up_to}"), ids.contains_key(&up_to));
                let place = line.prompts.iter().position(|known| *known == name);
                let to = match (place, &line.last) {
                    (Some(place), _) => {
                        line.prompts.truncate(place);
                        let place = line.said.iter().position(|(origin, _)| *origin == name);
                        line.said.truncate(place.unwrap_or(line.said.len()));
                        Some(PointRef::Before(format!("prompt:{name}")))
                    }
                    // The host has taken the events out of the file. A store that was told of them knows what was before.
                    (None, Some(last)) if !is_known => Some(PointRef::After(last.clone())),
                    _ => None,
                };
                out.extend(to.map(|to| Entry::from(fact::Rewound { to }).origin(origin)));
            }
            "session.usage_record" | "assistant.usage" => told.record(data, origin, out),
            "system.message" => {
                if let Some(text) = owned(member(Some(data), "content")) {
                    let system = Some(text.into_bytes().into());
                    let set = fact::PromptSet { system, tools: None, model: None, params: None };
                    out.push(Entry::from(set).origin(origin));
                }
            }
            "system.notification" | "skill.context_delivered" | "session.mode_notice_delivered" => {
                if let Some(text) = owned(member(Some(data), "content")) {
                    skills.insert(sha256_of(&text), text.clone());
                    out.push(message(origin, Role::User, vec![PartEntry::text(text)], true));
                }
            }
            "skill.invoked" => {
                let content = owned(member(Some(data), "content"));
                skills.extend(content.map(|text| (sha256_of(&text), text)));
            }
            "skill.context_delivered_ref" => {
                let [id, before, behind] = pick(data, ["contentId", "prefix", "suffix"]).unwrap_or_default();
                let content = owned(id).and_then(|id| skills.get(&id));
                let [before, behind] = [before, behind].map(|text| owned(text).unwrap_or_default());
                let text = content.map(|content| format!("{before}{content}{behind}"));
                out.extend(text.map(|text| message(origin, Role::User, vec![PartEntry::text(text)], true)));
            }
            "session.context_changed" => {
                line.moved(owned(member(Some(data), "cwd")), None, kind, origin, out);
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
    /// Remembers the newest origin of facts.
    pub(super) fn emitted(&mut self, entries: &[Entry]) {
        let mut places = entries.iter().rev().filter(|entry| !matches!(entry.fact, Fact::MessageFinished(_)));
        self.last = places.find_map(|entry| entry.origin.clone()).or(self.last.take());
    }

    /// The line of a subagent that a call in another line started.
    pub(super) fn of_agent(parent: usize, call: String) -> Self {
        Self { parent: Some((parent, call)), ..Self::default() }
    }

    fn asked(&mut self, data: &str, origin: &str, out: &mut Vec<Entry>) {
        let [text, sent] = pick(data, ["content", "transformedContent"]).unwrap_or_default();
        let (text, sent) = (owned(text).unwrap_or_default(), owned(sent));
        self.prompts.push(origin.to_owned());
        self.said.push((origin.to_owned(), text.clone()));
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
        self.moved(cwd, owned(version), kind, origin, out);
    }

    /// The host goes on in a folder.
    fn moved(
        &mut self,
        cwd: Option<String>,
        host_version: Option<String>,
        kind: &str,
        origin: &str,
        out: &mut Vec<Entry>,
    ) {
        out.push(Entry::host_record(kind, None).origin(origin));
        if cwd.is_some() && cwd != self.cwd {
            self.cwd.clone_from(&cwd);
            let changed = fact::SessionChanged { cwd, host_version, ..fact::SessionChanged::default() };
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
        let key = format!("{origin}{SUMMARY}");
        let sent = vec![PartEntry::text(self.around(&summary))];
        out.push(message(&key, Role::User, vec![PartEntry::text(summary)], true));
        let sent = message(&format!("{origin}{SUMMARY_SENT}"), Role::User, sent, true);
        out.push(not_for_the_model(sent));
        self.prompts.clear();
    }

    /// A summary as the host sends it: with the user's words so far.
    fn around(&self, summary: &str) -> String {
        let said = self.said.iter().map(|(_, text)| format!("<user_message>\n{text}\n</user_message>\n"));
        let [before, between, behind] = AROUND;
        format!("{before}{}{between}{summary}{behind}", said.collect::<String>())
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
        let parts = output(shown);
        let outcome = if failed {
            Outcome::Failed
        } else if holds_pointer(&parts) {
            // The text that the result points to has to stay: nothing was read.
            Outcome::Aborted
        } else {
            Outcome::Completed
        };
        let finish = self.calls.finish(&id);
        let mut entry = Entry::tool_finished(id, outcome, parts).origin(finish);
        if let Some(telemetry) = telemetry.filter(|object| *object != "{}") {
            entry = entry.details(telemetry);
        }
        out.push(entry);
    }
}

/// The name by which the host refers to a content.
fn sha256_of(content: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
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
