//! Codex: `rollout` files, `{timestamp, type, payload}` a line.
//!
//! ```text
//! session_meta    -> the stream (first one only), PromptSet
//! response_item   -> messages, calls, results: the history. The only source of facts
//! event_msg       -> HostRecorded (it repeats the history for display, incompletely); the start of a prompt,
//!                    calls given up (turn_aborted), rewinds (thread_rolled_back)
//! turn_context    -> PromptSet, SessionChanged
//! compacted       -> ContextReplaced, then the new history as messages
//! ```
//!
//! A step begins at the first model-made `response_item` after another one: reasoning, an assistant's message and calls
//! that follow one another are one reply. Records between them that are no `response_item` do not count: the echo of a
//! message stands between reasoning and message. A prompt always ends a reply, and so do the counts of its tokens.
//!
//! An older fork's file begins with a copy of the shared records, and nothing says where the copy ends: it is part of the
//! new stream, whose `Forked` names the other stream and shares nothing of it. A newer fork's file names the file in which
//! its beginning stands, and the end of that beginning (see `base`); its facts are read from there into the new stream. Not
//! interpreted: shell commands that read files (`parsed_cmd` is there for some of them only).

mod base;

use std::borrow::Cow;

use acpdb_engine::entry::{Entry, Fact, PartEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{Outcome, ReplaceCause, Report, Role, Scope, Usage, stream_id};
use acpdb_engine::ids::Seq;

use super::json::{count, elements, member, owned, pick};
use super::lines::{LineImporter, RecordOutcome, read_lines, span};
use super::turns::{Calls, Occurrences, Repeated, digest, holds_pointer, message, picture, prompt, step};
use super::{Beside, ImportContext, ImportError, Input, is_uuid, time, without_cached};

const HOST: &str = "codex";

/// The state that the records so far leave for later ones.
#[derive(Debug, Default)]
pub(super) struct Codex {
    stream: StreamInfo,
    named: bool,
    lines: Occurrences,
    repeated: Repeated,
    calls: Calls,
    /// The last response item was made by the model.
    replying: bool,
    /// For each prompt that is not rolled back, the origin of its first item.
    prompts: Vec<String>,
    /// Origin of a user's message that no prompt has claimed yet.
    asked: Option<String>,
    model: Option<String>,
    /// The newest step, until its usage has been told.
    step: Option<String>,
    /// The running totals that were told last.
    total: Option<Usage>,
    /// Each request has a record of its own: counts for display say nothing more.
    has_records: bool,
    /// Reads the files of other sessions.
    beside: Option<Beside>,
    /// Files in which this one's beginning stands, by their threads and numbers, while they are read; `inherited`: bytes of
    /// all.
    open: Vec<(String, usize)>,
    inherited: usize,
    /// A note about a beginning that could not be read.
    missing: Option<String>,
    /// Calls, and the threads that they started: all so far, and those of which the record tells.
    spawned: Vec<(String, String)>,
    started: Vec<(String, String)>,
}

/// The newest of a session's subagents whose threads are looked for in each line.
const SPAWNED_COUNT: usize = 64;

impl LineImporter for Codex {
    fn record(&mut self, line: &str, out: &mut Vec<Entry>) -> RecordOutcome {
        let Some([timestamp, kind, payload]) = pick(line, ["timestamp", "type", "payload"]) else {
            return RecordOutcome::Unfit("not a JSON object");
        };
        if self.repeated.is_again(line, time(timestamp)) {
            return RecordOutcome::Again;
        }
        let origin = self.lines.origin("line", &digest(&without_ordinal(line)));
        let (kind, payload) = (owned(kind).unwrap_or_default(), payload.unwrap_or_default());
        let part = owned(member(Some(payload), "type")).unwrap_or_default();
        self.started.clear();
        self.spawned(&part, payload);
        // Its file may have begun after the line that named it first.
        let newest = self.spawned.iter().rev().take(SPAWNED_COUNT);
        self.started.extend(newest.filter(|(_, thread)| line.contains(thread.as_str())).cloned());
        let known = match kind.as_str() {
            "session_meta" => self.session_meta(payload, &origin, out),
            "turn_context" => self.turn_context(payload, &origin, out),
            "response_item" => self.response_item(&part, payload, &origin, out),
            "compacted" => self.compacted(payload, &origin, out),
            "event_msg" => self.event(&part, payload, &origin, out),
            "token_usage_record" => self.usage(payload, &origin, out),
            // The host's own set-up; the parts of it that are sent stand in messages.
            "world_state" => true,
            _ => false,
        };
        let record = match (kind.as_str(), part.as_str()) {
            ("", _) => "untyped".to_string(),
            (_, "") => kind,
            _ => format!("{kind}/{part}"),
        };
        if out.iter().all(|entry| matches!(entry.fact, Fact::TurnStarted(_))) {
            out.push(Entry::host_record(record.clone(), None).origin(origin));
        }
        let at = time(timestamp);
        // Facts from another file have their own times.
        for entry in out.iter_mut().filter(|entry| entry.host_time.is_none()) {
            entry.host_time = at;
        }
        if known { RecordOutcome::Known } else { RecordOutcome::Unknown(record) }
    }

    fn stream(&self) -> Option<&StreamInfo> {
        self.named.then_some(&self.stream)
    }

    fn started(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.started)
    }
}

/// Reads a rollout file.
pub(super) fn read(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    // `rollout-<local time>-<uuid>`: the last 36 characters are the id.
    let name = context.name;
    let id =
        name.len().checked_sub(36).filter(|_| name.starts_with("rollout-")).and_then(|at| name.get(at..));
    let id = context.options.session.clone().unwrap_or_else(|| id.unwrap_or(name).to_string());
    let mut importer = Codex { beside: context.options.beside.clone(), ..Codex::default() };
    read_lines(input, context, &mut importer, &StreamInfo::session(HOST, id))?;
    if let Some(missing) = importer.missing {
        context.report.skip(1, 0, missing);
    }
    Ok(())
}

impl Codex {
    fn session_meta(&mut self, payload: &str, origin: &str, out: &mut Vec<Entry>) -> bool {
        if self.named {
            return true;
        }
        let Some([id, cwd, version, source, instructions, at]) =
            pick(payload, ["id", "cwd", "cli_version", "source", "base_instructions", "timestamp"])
        else {
            return false;
        };
        let Some(id) = owned(id) else { return false };
        self.named = true;
        self.stream = StreamInfo {
            cwd: owned(cwd),
            host_version: owned(version),
            host_time: time(at),
            ..StreamInfo::session(HOST, id)
        };
        let spawned = member(member(source, "subagent"), "thread_spawn");
        if let Some(parent) = owned(member(spawned, "parent_thread_id")) {
            self.stream.parent = Some((stream_id(Scope::Session, HOST, &parent), None));
        }
        // The file does not tell which of its lines are the copied prefix: they are facts of this stream, and the fork
        // shares only the name of the stream that they came from.
        let base = member(Some(payload), "history_base");
        let forked =
            owned(member(Some(payload), "forked_from_id")).or_else(|| owned(member(base, "thread_id")));
        if let Some(from) = forked.filter(|from| !from.is_empty() && *from != self.stream.name) {
            let fork =
                fact::Forked { from: stream_id(Scope::Session, HOST, &from), at: PointRef::Seq(Seq::ZERO) };
            out.push(Entry::from(fork).origin(format!("{origin}/forked")));
        }
        let system = owned(instructions).or_else(|| owned(member(instructions, "text")));
        if let Some(system) = system {
            let system = Some(system.into_bytes().into());
            let set = fact::PromptSet { system, ..fact::PromptSet::default() };
            out.push(Entry::from(set).origin(origin));
        }
        if let Some(base) = base {
            self.inherit(base, origin, out);
        }
        true
    }

    /// Notes the thread of a subagent that a call started: the call's result names it, and so do events.
    fn spawned(&mut self, kind: &str, payload: &str) {
        let [id, output, thread, item] =
            pick(payload, ["call_id", "output", "new_thread_id", "item"]).unwrap_or_default();
        let (call, threads) = match kind {
            "function_call_output" => {
                let told = owned(output).unwrap_or_default();
                (owned(id), owned(member(Some(&told), "agent_id")).into_iter().collect())
            }
            "collab_agent_spawn_end" => (owned(id), owned(thread).into_iter().collect()),
            "item_completed" if owned(member(item, "tool")).as_deref() == Some("spawn_agent") => {
                let threads = member(item, "receiver_thread_ids").and_then(elements).unwrap_or_default();
                let threads: Vec<String> = threads.into_iter().filter_map(|it| owned(Some(it))).collect();
                (owned(member(item, "id")), threads)
            }
            _ => return,
        };
        let Some(call) = call else { return };
        for thread in threads.into_iter().filter(|thread| is_uuid(thread)) {
            if !self.spawned.iter().any(|(_, known)| *known == thread) {
                self.spawned.push((call.clone(), thread));
            }
        }
    }

    fn turn_context(&mut self, payload: &str, origin: &str, out: &mut Vec<Entry>) -> bool {
        let Some([cwd, model]) = pick(payload, ["cwd", "model"]) else { return false };
        let (cwd, model) = (owned(cwd), owned(model));
        out.push(Entry::host_record("turn_context", None).origin(origin));
        if cwd.is_some() && cwd != self.stream.cwd {
            self.stream.cwd.clone_from(&cwd);
            let changed = fact::SessionChanged { cwd, ..fact::SessionChanged::default() };
            out.push(Entry::from(changed).origin(format!("{origin}/cwd")));
        }
        if model.is_some() && model != self.model {
            self.model.clone_from(&model);
            let set = fact::PromptSet { system: None, tools: None, model, params: None };
            out.push(Entry::from(set).origin(format!("{origin}/model")));
        }
        true
    }

    fn response_item(&mut self, kind: &str, payload: &str, origin: &str, out: &mut Vec<Entry>) -> bool {
        let role = owned(member(Some(payload), "role")).unwrap_or_default();
        let made =
            kind == "reasoning" || kind.ends_with("_call") || (kind == "message" && role == "assistant");
        if made && !self.replying {
            out.push(step(origin));
            self.step = Some(origin.to_string());
        }
        if made {
            self.asked = None;
        }
        self.replying = made;
        let found = self.item(kind, payload, origin, out);
        if kind == "message" && role == "user" && !hidden(out.last()) {
            self.asked = Some(origin.to_string());
        }
        found
    }

    /// One item of the history, from a line of its own or from a replacement.
    fn item(&mut self, kind: &str, payload: &str, origin: &str, out: &mut Vec<Entry>) -> bool {
        match kind {
            "message" => {
                let [role, content] = pick(payload, ["role", "content"]).unwrap_or_default();
                let role = match owned(role).as_deref() {
                    Some("assistant") => Role::Assistant,
                    Some("user") => Role::User,
                    _ => Role::System,
                };
                let parts = content_parts(content);
                let injected = role == Role::System || (role == Role::User && is_injected(&parts));
                out.push(message(origin, role, parts, injected));
            }
            "reasoning" => {
                let [summary, content, sealed] =
                    pick(payload, ["summary", "content", "encrypted_content"]).unwrap_or_default();
                let texts: Vec<String> = [summary, content]
                    .into_iter()
                    .flatten()
                    .filter_map(elements)
                    .flatten()
                    .filter_map(|piece| owned(member(Some(piece), "text")))
                    .collect();
                let sealed = owned(sealed);
                let part = PartEntry::reasoning(texts.join("\n\n"), sealed.as_deref().map(str::as_bytes));
                out.push(message(origin, Role::Assistant, vec![part], false));
            }
            // The summary of a compaction, sealed by the provider: sent back as it is.
            "compaction" | "compaction_summary" | "context_compaction" => {
                out.push(message(origin, Role::Assistant, vec![PartEntry::opaque(payload)], true));
            }
            _ if kind.ends_with("_call") => self.call(kind, payload, origin, out),
            _ if kind.ends_with("_output") => return self.output(kind, payload, out),
            "ghost_snapshot" => {}
            _ => return false,
        }
        true
    }

    /// Takes in the provider's report on the newest step.
    fn usage(&mut self, payload: &str, origin: &str, out: &mut Vec<Entry>) -> bool {
        let Some([usage, request]) = pick(payload, ["usage", "response_id"]) else { return false };
        self.has_records = true;
        if let Some(usage) = usage.and_then(usage_of) {
            self.finished(usage, request, origin, out);
        }
        true
    }

    /// Takes in the counts that older files tell for display: of the last request, and of all. Where they tell no last one, it is
    /// what the totals have grown by; totals that fall have begun anew. A growth without a step is a request of no message.
    fn counted(&mut self, info: Option<&str>, origin: &str, out: &mut Vec<Entry>) {
        let [last, total] = info
            .and_then(|info| pick(info, ["last_token_usage", "total_token_usage"]))
            .unwrap_or_default()
            .map(|usage| usage.and_then(usage_of));
        let before = self.total;
        // A change of the limits tells the newest counts again.
        if total.is_some() && total == before {
            return;
        }
        self.total = total.or(before);
        let grown = total.map(|total| before.map_or(total, |before| growth(before, total)));
        let has_grown = |usage: &Usage| usage.input.max(usage.output).max(usage.cache_read).unwrap_or(0) > 0;
        if self.step.is_some() {
            // The first totals of a session that goes on count what was before it.
            if let Some(usage) = last.or(grown.filter(has_grown)) {
                self.finished(usage, None, origin, out);
            }
            return;
        }
        let is_known = before.is_some() && !self.has_records;
        if let Some(usage) = grown.filter(|usage| is_known && has_grown(usage)) {
            let report = Report { model: self.model.clone(), usage, ..Report::default() };
            let fact = fact::MessageFinished { key: format!("{origin}/request"), report };
            out.push(Entry::from(fact).origin(format!("{origin}/finish")));
        }
    }

    /// The end of the newest step, unless it has been told; a step and its end have one key.
    fn finished(&mut self, usage: Usage, request: Option<&str>, origin: &str, out: &mut Vec<Entry>) {
        let Some(key) = self.step.take() else { return };
        // The provider has told all of this reply: what the model makes next is another one.
        self.replying = false;
        let report =
            Report { model: self.model.clone(), request: owned(request), usage, ..Report::default() };
        let fact = fact::MessageFinished { key, report };
        out.push(Entry::from(fact).origin(format!("{origin}/finish")));
    }

    fn call(&mut self, kind: &str, payload: &str, origin: &str, out: &mut Vec<Entry>) {
        let [id, name, space, arguments, input, action] =
            pick(payload, ["call_id", "name", "namespace", "arguments", "input", "action"])
                .unwrap_or_default();
        let Some(id) = owned(id) else {
            // Run by the provider and without a result of its own, such as `web_search_call`.
            out.push(message(origin, Role::Assistant, vec![PartEntry::opaque(payload)], false));
            return;
        };
        let tool = owned(name).unwrap_or_else(|| kind.strip_suffix("_call").unwrap_or(kind).to_string());
        // As the host's own hooks spell it.
        let tool = match owned(space).filter(|space| !space.is_empty()) {
            Some(space) => format!("{space}__{tool}"),
            None => tool,
        };
        // `arguments` is JSON inside a string; `input` is plain text, which as a JSON string is the parameters itself.
        let params = match (owned(arguments), arguments.or(input).or(action)) {
            (Some(inner), _) => inner,
            (None, given) => given.unwrap_or("{}").to_string(),
        };
        let start = self.calls.start(&id);
        out.push(Entry::tool_started(id, tool, params).origin(start));
    }

    fn output(&mut self, kind: &str, payload: &str, out: &mut Vec<Entry>) -> bool {
        let [id, output] = pick(payload, ["call_id", "output"]).unwrap_or_default();
        let Some(id) = owned(id) else { return false };
        let mut parts = output_parts(output);
        if parts.is_empty() && !matches!(kind, "function_call_output" | "custom_tool_call_output") {
            parts.push(PartEntry::opaque(payload));
        }
        let mut outcome = parts.first().map_or(Outcome::Completed, |part| outcome(&part.bytes));
        if member(output, "success") == Some("false") {
            outcome = Outcome::Failed;
        }
        if holds_pointer(&parts) {
            outcome = Outcome::Aborted;
        }
        let finish = self.calls.finish(&id);
        out.push(Entry::tool_finished(id, outcome, parts).origin(finish));
        true
    }

    fn event(&mut self, kind: &str, payload: &str, origin: &str, out: &mut Vec<Entry>) -> bool {
        out.push(Entry::host_record(format!("event_msg/{kind}"), None).origin(origin));
        match kind {
            "user_message" => self.prompt(origin, out),
            "item_completed" => {
                let item = owned(member(member(Some(payload), "item"), "type"));
                if matches!(item.as_deref(), Some("UserMessage" | "user_message" | "userMessage")) {
                    self.prompt(origin, out);
                }
            }
            // Older files tell usage here only, and once more for each prompt before anything was sent.
            "token_count" => self.counted(member(Some(payload), "info"), origin, out),
            "turn_aborted" => {
                let why = owned(member(Some(payload), "reason")).unwrap_or_else(|| "interrupted".to_string());
                for (call, finish) in self.calls.give_up() {
                    out.push(Entry::tool_aborted(call, &why).origin(finish));
                }
                self.replying = false;
            }
            "thread_rolled_back" => {
                let turns = count(member(Some(payload), "num_turns")).unwrap_or(0);
                let kept = self.prompts.len().saturating_sub(usize::try_from(turns).unwrap_or(usize::MAX));
                if let Some(first) = self.prompts.drain(kept..).next() {
                    let to = PointRef::Before(first);
                    out.push(Entry::from(fact::Rewound { to }).origin(format!("{origin}/rewound")));
                }
                self.replying = false;
                self.asked = None;
            }
            _ => {}
        }
        true
    }

    fn prompt(&mut self, origin: &str, out: &mut Vec<Entry>) {
        self.prompts.push(self.asked.take().unwrap_or_else(|| origin.to_string()));
        self.replying = false;
        out.push(prompt(origin));
    }

    fn compacted(&mut self, payload: &str, origin: &str, out: &mut Vec<Entry>) -> bool {
        let Some([text, history]) = pick(payload, ["message", "replacement_history"]) else { return false };
        let replaced =
            fact::ContextReplaced { cause: ReplaceCause::Compaction, order: Vec::new(), tokens_before: None };
        out.push(Entry::from(replaced).origin(origin));
        // A later rollback does not go behind the new history: prompts before it are not there any more.
        self.prompts.clear();
        let history = history.and_then(elements).unwrap_or_default();
        if history.is_empty()
            && let Some(text) = owned(text).filter(|text| !text.is_empty())
        {
            let summary = vec![PartEntry::text(text)];
            out.push(message(&format!("{origin}/summary"), Role::User, summary, true));
        }
        for (place, item) in history.into_iter().enumerate() {
            let kind = owned(member(Some(item), "type")).unwrap_or_default();
            let origin = format!("{origin}/{place}");
            let first = out.len();
            self.item(&kind, item, &origin, out);
            if out.len() == first {
                out.push(message(&origin, Role::User, vec![PartEntry::opaque(item)], true));
            }
        }
        self.replying = false;
        self.asked = None;
        true
    }
}

/// A line without its number, which a host adds when it rewrites an older file: the record is the same.
fn without_ordinal(line: &str) -> Cow<'_, str> {
    let Some(number) = member(Some(line), "ordinal") else { return Cow::Borrowed(line) };
    let name = "\"ordinal\":";
    let start = span(line, number).and_then(|start| start.checked_sub(name.len()));
    let Some(start) = start.filter(|start| line.get(*start..).is_some_and(|rest| rest.starts_with(name)))
    else {
        return Cow::Borrowed(line);
    };
    let rest = line.get(start + name.len() + number.len()..).unwrap_or_default();
    let before = line.get(..start).unwrap_or_default();
    // One of the commas beside it goes along.
    let (before, rest) = match (rest.strip_prefix(','), before.strip_suffix(',')) {
        (Some(rest), _) => (before, rest),
        (None, Some(before)) => (before, rest),
        (None, None) => (before, rest),
    };
    Cow::Owned(format!("{before}{rest}"))
}

fn hidden(entry: Option<&Entry>) -> bool {
    matches!(
        entry,
        Some(Entry { fact: Fact::MessageRecorded(fact::MessageRecorded { hidden_from_user: true, .. }), .. })
    )
}

/// Texts, images and other pieces that `content` lists.
fn content_parts(content: Option<&str>) -> Vec<PartEntry> {
    if let Some(text) = owned(content) {
        return vec![PartEntry::text(text)];
    }
    content.and_then(elements).unwrap_or_default().into_iter().map(content_part).collect()
}

fn content_part(piece: &str) -> PartEntry {
    let [text, image, detail] = pick(piece, ["text", "image_url", "detail"]).unwrap_or_default();
    match (owned(text), owned(image)) {
        (Some(text), _) => PartEntry::text(text),
        (None, Some(url)) => picture(url, owned(detail)),
        (None, None) => PartEntry::opaque(piece),
    }
}

/// A result: a text, a list of content, or (older files) an object with `content`.
fn output_parts(output: Option<&str>) -> Vec<PartEntry> {
    match output {
        Some(object) if object.starts_with('{') => match member(Some(object), "content") {
            content @ Some(_) => content_parts(content),
            None => vec![PartEntry::opaque(object)],
        },
        other => content_parts(other),
    }
}

/// Tokens of a request. The host's `input_tokens` counts tokens from the cache, too.
fn usage_of(usage: &str) -> Option<Usage> {
    let names = [
        "input_tokens",
        "cached_input_tokens",
        "cache_write_input_tokens",
        "output_tokens",
        "reasoning_output_tokens",
    ];
    let [input, read, written, output, reasoning] = pick(usage, names)?.map(count);
    let usage =
        Usage { input, output, cache_read: read, cache_write: written, reasoning, ..Usage::default() };
    Some(without_cached(usage))
}

/// The growth of running totals; all of them, if they have begun anew.
fn growth(before: Usage, total: Usage) -> Usage {
    let pairs =
        [(before.input, total.input), (before.output, total.output), (before.cache_read, total.cache_read)];
    if pairs.iter().any(|(before, total)| total.unwrap_or(0) < before.unwrap_or(0)) {
        return total;
    }
    total.without(&before)
}

/// How a call ended, which Codex says in the text of the result only.
///
/// Forms: a header `Exit code: N` or `Process exited with code N` above `Output:`; JSON with `metadata.exit_code`; the
/// refusal of a patch that does not apply, which has no code; `aborted by user`.
fn outcome(output: &[u8]) -> Outcome {
    let head = String::from_utf8_lossy(output.get(..512).unwrap_or(output));
    if head.starts_with("apply_patch verification failed") {
        return Outcome::Failed;
    }
    if head.starts_with("aborted by user") {
        return Outcome::Aborted;
    }
    let code = if head.starts_with('{') {
        let whole = String::from_utf8_lossy(output);
        member(member(Some(&whole), "metadata"), "exit_code").map(str::to_string)
    } else {
        head.lines()
            .take_while(|line| !line.eq_ignore_ascii_case("output:"))
            .find_map(|line| {
                let code = line.strip_prefix("Exit code: ");
                code.or_else(|| line.strip_prefix("Process exited with code "))
            })
            .map(|code| code.trim().to_string())
    };
    // The host writes a number there, or `null` where it knows none.
    match code.and_then(|code| code.parse::<i64>().ok()) {
        Some(0) | None => Outcome::Completed,
        Some(_) => Outcome::Failed,
    }
}

/// Whether the host put every text of the message there.
fn is_injected(parts: &[PartEntry]) -> bool {
    const OPENINGS: [&[u8]; 7] = [
        b"# AGENTS.md instructions",
        b"<environment_context>",
        b"<ENVIRONMENT_CONTEXT>",
        b"<user_instructions>",
        b"<turn_aborted>",
        b"<skill>",
        b"<subagent_notification>",
    ];
    let injected =
        |part: &PartEntry| OPENINGS.iter().any(|opening| part.bytes.trim_ascii_start().starts_with(opening));
    !parts.is_empty() && parts.iter().all(injected)
}
