//! A request as acpdb serves it: results and parameters that are superseded, discarded or repeated show their placeholders.
//!
//! ```text
//! body -> its session -> the host's own recording, as far as it is written -> Step::context -> changes, by the ids of calls
//!      -> the same body with these values in place of the old ones; all other bytes stay
//! ```
//!
//! The host makes the request and goes on having everything whole, so each request is changed anew, in the same way until a
//! rewrite pays. A session that has no recording is recorded from the request itself. Marks tell Anthropic's cache how much of
//! a request to keep; they stand beside the marks that the host set. Requests and parts that are not understood stay: another
//! API, a packed body, a request without tools, calls that the store does not know. All of these are counted. So does a request
//! that adds to a thread of Anthropic's: results that are stale by now stand at the provider, and the next whole request changes them.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use acpdb_engine::entry::StreamInfo;
use acpdb_engine::fold::ItemKind;
use acpdb_engine::fold::policy::{Prices, ServeMode};
use acpdb_engine::{Error, Store, View};
use acpdb_hosts::exchange::{self, Extent, Talk};
use acpdb_hosts::export::{self, preserves_thinking, with_breakpoints};
use acpdb_hosts::import::{ImportFormat, json};
use acpdb_query::cost::PriceTable;
use acpdb_serve::{ServeOptions, Step};
use memchr::memmem;
use serde::Serialize;

use super::hold::Hold;
use super::identity::RequestIdentity;
use super::sent::LastRequests;
use super::talk::{AnsweredRequest, Talks, is_told};
use crate::compaction;
use crate::growing::GrowingRecordings;
use crate::plugin::chained;
use crate::plugin::shown::{self, PluginRenderer};
use crate::told::CallChange;

/// Most folders that are looked through for a recording.
const FOLDER_COUNT_MAX: usize = 10_000;

/// The changes to a request.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Pruned {
    /// Number of values that were replaced.
    pub changes: usize,
    /// Results whose calls the store does not know: they went through untouched.
    pub unknown: usize,
    /// Bytes of the body as the host made it.
    pub bytes_before: usize,
    /// Marks for the provider's cache that were set beside those of the host.
    pub breakpoints: usize,
    /// The context that was recorded as sent.
    pub seq: Option<u64>,
    /// Why the host's recording was not read: newer results are not known to be stale.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// Why nothing was changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untouched: Option<String>,
}

/// A request as its program made it.
#[derive(Clone, Copy, Debug)]
pub struct OriginalRequest<'a> {
    /// Its number, by [`Talks::number`].
    pub number: u64,
    /// The path, up to its `?`.
    pub path: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// Values that are known beside the store.
#[derive(Clone, Copy, Debug)]
pub struct HostValues<'a> {
    /// The folders of hosts' recordings.
    pub places: &'a RecordingFolders,
    /// The last request of each session.
    pub sent: &'a LastRequests,
    /// The requests of each session so far.
    pub talks: &'a Talks,
    /// Whether the request still waits.
    pub hold: &'a Hold,
    /// The recordings that were read.
    pub recordings: &'a GrowingRecordings,
}

/// The parts of a request that matter here.
#[derive(Debug)]
struct PrunedRequest<'a> {
    model: Cow<'a, str>,
    has_tools: bool,
    /// Whether it asks for a cache that is kept for an hour.
    keeps_long: bool,
    messages: Vec<&'a str>,
}

impl<'a> PrunedRequest<'a> {
    fn parse(api: export::Format, path: &'a str, body: &'a str) -> Option<Self> {
        let [model, tools, messages] = json::pick(body, ["model", "tools", api.list()?])?;
        let has_tools = tools.and_then(json::elements).is_some_and(|tools| !tools.is_empty());
        let messages = json::elements(messages?)?;
        // These quotes never come from a text: there they have a backslash before them.
        let keeps_long =
            api.has_marks() && [r#""ttl":"1h""#, r#""ttl": "1h""#].iter().any(|ttl| holds(body, ttl));
        let model = api.model_in(path).map(Cow::Borrowed).or_else(|| json::string(model)).unwrap_or_default();
        Some(Self { model, has_tools, keeps_long, messages })
    }

    /// The prices of its model's tokens, with the lifetime that it asks for; `None`: the table of prices does not know the model.
    fn price(&self) -> Option<Prices> {
        // The built-in table is read by a test: it is never absent in a program that passed them.
        static TABLE: LazyLock<Option<PriceTable>> = LazyLock::new(|| PriceTable::built_in().ok());
        let price = TABLE.as_ref()?.price(&self.model, None)?;
        // A price that is no number is as good as none: the default of the policy holds.
        price.relative(self.keeps_long).checked().ok()
    }

    /// The ids of the calls whose results end the request.
    fn answers(&self) -> Vec<Cow<'a, str>> {
        let ids = |message: &'a str| -> Vec<Cow<'a, str>> {
            let names = ["type", "call_id", "role", "tool_call_id", "content"];
            let [kind, call, role, tool_call, content] = json::pick(message, names).unwrap_or_default();
            let is_output = json::string(kind).is_some_and(|kind| kind.ends_with("_output"));
            let is_tool = json::string(role).as_deref() == Some("tool");
            let named = call.filter(|_| is_output).or(tool_call.filter(|_| is_tool));
            let blocks = content.and_then(json::elements).unwrap_or_default().into_iter();
            let of_block = |block: &'a str| {
                let [id] = json::pick(block, ["tool_use_id"]).unwrap_or_default();
                json::string(id)
            };
            json::string(named).into_iter().chain(blocks.filter_map(of_block)).collect()
        };
        self.newest_first().map(ids).take_while(|ids| !ids.is_empty()).flatten().collect()
    }

    /// The messages, the last one first. A host may put words of its own behind it: they are left out.
    fn newest_first(&self) -> impl Iterator<Item = &'a str> {
        let is_system = |message: &&str| {
            let [role] = json::pick(message, ["role"]).unwrap_or_default();
            json::string(role).as_deref() == Some("system")
        };
        self.messages.iter().rev().copied().skip_while(is_system)
    }

    /// Whether the user speaks last: nothing of this turn was sent yet.
    fn is_prompt(&self) -> bool {
        let Some(message) = self.newest_first().next() else { return false };
        let [role, content] = json::pick(message, ["role", "content"]).unwrap_or_default();
        let blocks = content.and_then(json::elements).unwrap_or_default();
        let has_result = blocks.iter().any(|block| {
            let [kind] = json::pick(block, ["type"]).unwrap_or_default();
            json::string(kind).as_deref() == Some("tool_result")
        });
        json::string(role).as_deref() == Some("user") && !has_result
    }
}

/// Whether the store has the results of calls.
fn knows(store: &Store, view: &View, calls: &[Cow<'_, str>]) -> bool {
    let state = view.state();
    calls.iter().all(|call| {
        let found = state.calls_by_host_id(&store.recorded_id(call), view.at());
        let newest = found.last().and_then(|ix| state.item(*ix, view.at()));
        newest.is_some_and(|item| item.finished.is_some())
    })
}

/// Whether a text holds another, as the processor finds it fastest in all builds.
fn holds(text: &str, other: &str) -> bool {
    memmem::find(text.as_bytes(), other.as_bytes()).is_some()
}

/// The body of a request as it is to be sent; `None`: unchanged. The changes are told either way.
///
/// Durable when it returns, if anything was recorded. Cost: a pass over the body and over what is new in the host's recording,
/// and a fold of the session (kept by snapshots).
pub fn prune(
    store: &Store,
    identity: &RequestIdentity,
    asked: OriginalRequest<'_>,
    known: HostValues<'_>,
) -> (Option<Vec<u8>>, Pruned) {
    let mut pruned = Pruned { bytes_before: asked.body.len(), ..Pruned::default() };
    let untouched = |mut pruned: Pruned, why: &str| {
        pruned.untouched = Some(why.to_owned());
        (None, pruned)
    };
    let Some(api) = export::Format::of_path(asked.path) else { return untouched(pruned, "another API") };
    let Ok(text) = std::str::from_utf8(asked.body) else { return untouched(pruned, "the body is no text") };
    let Some(request) = PrunedRequest::parse(api, asked.path, text) else {
        return untouched(pruned, "the body is not understood");
    };
    // These quotes never come from a text, as above.
    if api.binds_reasoning() && holds(text, r#""previous_message_id""#) {
        let talk = exchange::request(api, asked.path, text);
        if talk.is_some_and(|talk| talk.extent == Extent::Added) {
            return untouched(pruned, "a request that adds to a conversation that the provider keeps");
        }
    }
    if !request.has_tools {
        return untouched(pruned, "a request without tools");
    }
    match changes(store, identity, api, &request, (asked, known), &mut pruned) {
        Ok((changes, seq)) => {
            pruned.seq = Some(seq);
            let mut edits = Edits::of(text, &changes);
            if api.binds_reasoning() {
                request.messages.iter().for_each(|message| edits.message(message));
            } else if let Some(talk) = exchange::request(api, asked.path, text) {
                edits.talk(store, api, &talk);
            }
            (pruned.changes, pruned.unknown) = (edits.list.len(), edits.unknown);
            let made = if edits.list.is_empty() {
                Cow::Borrowed(text)
            } else {
                Cow::Owned(json::edited(text, edits.list))
            };
            let made = if api.has_marks() { marked(made, identity, known.sent, &mut pruned) } else { made };
            match made {
                Cow::Borrowed(_) => (None, pruned),
                Cow::Owned(made) => (Some(made.into_bytes()), pruned),
            }
        }
        Err(error) => untouched(pruned, &error.to_string()),
    }
}

/// The request with marks for the provider's cache. It is kept for a comparison with the next one.
fn marked<'a>(
    made: Cow<'a, str>,
    identity: &RequestIdentity,
    sent: &LastRequests,
    pruned: &mut Pruned,
) -> Cow<'a, str> {
    let before = sent.take(identity);
    let marks = |body: &str| memmem::find_iter(body.as_bytes(), r#""cache_control":"#).count();
    let marked = match with_breakpoints(&made, before.as_deref()) {
        Cow::Borrowed(_) => None,
        Cow::Owned(marked) => {
            // Marks are only added.
            pruned.breakpoints = marks(&marked).saturating_sub(marks(&made));
            Some(marked)
        }
    };
    let made = marked.map_or(made, Cow::Owned);
    sent.keep(identity, made.clone().into_owned());
    made
}

/// The changes that the store serves for a session.
#[derive(Debug, Default)]
struct Changes {
    calls: HashMap<String, CallChange>,
    /// Signatures of reasoning that is not to be sent any more.
    signatures: HashSet<String>,
}

/// The changes by the ids of calls; all calls that the store knows are among them.
fn changes(
    store: &Store,
    identity: &RequestIdentity,
    api: export::Format,
    request: &PrunedRequest<'_>,
    (asked, known): (OriginalRequest<'_>, HostValues<'_>),
    pruned: &mut Pruned,
) -> Result<(Changes, u64), Error> {
    let session = store.session(StreamInfo::session(identity.host, identity.session.as_str()));
    if let Some((format, path)) = known.places.recording(identity) {
        let answers = request.answers();
        // A view that cannot be had is told of below.
        let mut is_told =
            || answers.is_empty() || session.view().map_or(true, |view| knows(store, &view, &answers));
        // A recording that cannot be read now is tried again by the next request.
        let read = known.recordings.import_until(store, &path, format, &mut is_told);
        pruned.recording = read.err().map(|error| chained(&error));
    } else if is_told(identity) {
        let said =
            AnsweredRequest { number: asked.number, path: asked.path, request: asked.body, answer: None };
        // The record of the exchange tells the left-out parts, once its answer is here.
        let _ = known.talks.tell(store, identity, said)?;
    }
    let view = session.view()?;
    let is_bound = api.binds_reasoning() && preserves_thinking(&request.model);
    let has_reasoning = || view.current().iter().any(|item| item.kind == ItemKind::Reasoning);
    // If reasoning is bound to all messages before it, sent messages stay until the user's next message. Then the reasoning
    // behind a change goes with the change.
    let waits = is_bound && !request.is_prompt() && has_reasoning();
    let mode = waits.then_some(ServeMode::AppendOnly);
    let options = ServeOptions { mode, price: request.price(), ..ServeOptions::default() };
    let key = format!("request-{}", request.messages.len());
    if !known.hold.begin() {
        return Err(Error::Busy { detail: "the request has gone on as it was".to_owned() });
    }
    let context = Step::begun(&session, key).context(&PluginRenderer::bare(is_bound), &options)?;
    let mut changes = Changes::default();
    let stale = if is_bound { shown::stale(&context.served) } else { HashSet::new() };
    for item in context.served.items() {
        if stale.contains(&item.view.item)
            && let Some(signature) = item.view.provider_signature
        {
            changes.signatures.insert(view.text(signature)?);
        }
        if let (ItemKind::Call, Some(call)) = (item.view.kind, &item.view.call) {
            changes.calls.entry(call.to_string()).or_default();
        }
    }
    changes.calls.extend(compaction::calls(&context.bytes));
    Ok((changes, context.seq.get()))
}

/// Replacements of values in a text.
struct Edits<'a> {
    text: &'a str,
    changes: &'a Changes,
    list: Vec<(Range<usize>, String)>,
    unknown: usize,
}

impl<'a> Edits<'a> {
    const fn of(text: &'a str, changes: &'a Changes) -> Self {
        Self { text, changes, list: Vec::new(), unknown: 0 }
    }

    /// Edits the blocks of a message of Anthropic's API, in which reasoning may go as well.
    fn message(&mut self, message: &'a str) {
        let [content] = json::pick(message, ["content"]).unwrap_or_default();
        let blocks = content.and_then(json::elements).unwrap_or_default();
        self.drop_stale(&blocks);
        for block in blocks {
            let [kind, id, input, of, content] =
                json::pick(block, ["type", "id", "input", "tool_use_id", "content"]).unwrap_or_default();
            match json::string(kind).as_deref() {
                Some("tool_use") => self.input(id, input),
                Some("tool_result") => self.output(of, content),
                _ => {}
            }
        }
    }

    /// Edits calls and results of a conversation, by the ids that its record has.
    fn talk(&mut self, store: &Store, api: export::Format, talk: &Talk<'a>) {
        for message in &talk.messages {
            for call in &message.calls {
                // A signature is over the call as the model made it.
                let change = self.changes.calls.get(&*store.recorded_id(&call.id));
                let input =
                    change.and_then(|change| change.input.as_deref()).filter(|_| call.signature.is_none());
                self.put_input(input, call.value, api.texts_params());
            }
            for result in &message.results {
                let Some(change) = self.changes.calls.get(&*store.recorded_id(&result.id)) else {
                    self.unknown = self.unknown.saturating_add(1);
                    continue;
                };
                let Some((output, value)) = change.output.as_deref().zip(result.value) else { continue };
                let output = json::quoted(output);
                let whole = match api.result_member() {
                    Some(member) => format!("{{{}:{output}}}", json::quoted(member)),
                    None => output,
                };
                self.put(value, whole);
            }
        }
    }

    /// Takes blocks of reasoning out of a message, unless nothing would be left of it.
    fn drop_stale(&mut self, blocks: &[&'a str]) {
        if self.changes.signatures.is_empty() {
            return;
        }
        let is_stale = |block: &&str| {
            let [kind, signature] = json::pick(block, ["type", "signature"]).unwrap_or_default();
            let is_thinking = json::string(kind).as_deref() == Some("thinking");
            is_thinking && json::string(signature).is_some_and(|it| self.changes.signatures.contains(&*it))
        };
        let stale: Vec<bool> = blocks.iter().map(is_stale).collect();
        let Some(last) = stale.iter().rposition(|is_stale| !is_stale) else { return };
        let place_of = |block: &str| json::range_in(self.text, block);
        let mut gone = Vec::new();
        for (place, pair) in blocks.windows(2).enumerate().take(last) {
            if let (Some(true), [one, next]) = (stale.get(place), pair)
                && let (Some(one), Some(next)) = (place_of(one), place_of(next))
            {
                gone.push(one.start..next.start);
            }
        }
        // Blocks at the end go with the comma before them.
        if let (Some(kept), Some(end)) = (blocks.get(last), blocks.last().filter(|_| last + 1 < blocks.len()))
            && let (Some(kept), Some(end)) = (place_of(kept), place_of(end))
        {
            gone.push(kept.end..end.end);
        }
        self.list.extend(gone.into_iter().map(|range| (range, String::new())));
    }

    fn change(&self, id: Option<&str>) -> Option<&'a CallChange> {
        self.changes.calls.get(&*json::string(id)?)
    }

    fn input(&mut self, id: Option<&str>, value: Option<&'a str>) {
        let input = self.change(id).and_then(|change| change.input.as_deref());
        if let Some(value) = value {
            self.put_input(input, value, false);
        }
    }

    fn put_input(&mut self, input: Option<&str>, value: &str, is_text: bool) {
        let Some(input) = input else { return };
        // A provider takes an object there, and nothing else.
        let is_object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(input).is_ok();
        if is_object {
            self.put(value, if is_text { json::quoted(input) } else { input.to_owned() });
        }
    }

    fn output(&mut self, id: Option<&str>, value: Option<&'a str>) {
        let Some(change) = self.change(id) else {
            self.unknown = self.unknown.saturating_add(1);
            return;
        };
        if let Some((output, value)) = change.output.as_deref().zip(value) {
            self.put(value, json::quoted(output));
        }
    }

    /// Puts `new` in the place of `value`, a slice of the text.
    fn put(&mut self, value: &str, new: String) {
        // A member that is not there is no slice of the text.
        let range = json::range_in(self.text, value).filter(|range| !range.is_empty() && value != new);
        self.list.extend(range.map(|range| (range, new)));
    }
}

/// The folders of hosts' recordings.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordingFolders {
    /// Claude Code's folder of projects.
    pub claude: Option<PathBuf>,
    /// Codex's folder of sessions.
    pub codex: Option<PathBuf>,
}

impl RecordingFolders {
    /// The usual folders. `variable` reads the environment.
    pub fn usual(variable: &dyn Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = |folder: &str| Some(set("HOME")?.join(folder));
        let claude =
            set("CLAUDE_CONFIG_DIR").or_else(|| home(".claude")).map(|folder| folder.join("projects"));
        let codex = set("CODEX_HOME").or_else(|| home(".codex")).map(|folder| folder.join("sessions"));
        Self { claude, codex }
    }

    /// The recording of a session, if it can be found by its name.
    pub fn recording(&self, identity: &RequestIdentity) -> Option<(ImportFormat, PathBuf)> {
        let (session, agent) = match identity.session.split_once('/') {
            Some((session, agent)) => (session, Some(agent)),
            None => (&*identity.session, None),
        };
        let is_name =
            |name: &str| name.chars().all(|char| char.is_ascii_alphanumeric() || char == '-' || char == '_');
        if !is_name(session) || !agent.is_none_or(is_name) {
            return None;
        }
        match identity.host {
            "claude-code" => {
                let found = folders(self.claude.as_ref()?).into_iter().find_map(|folder| {
                    let path = match agent {
                        None => folder.join(format!("{session}.jsonl")),
                        Some(agent) => folder.join(session).join(format!("subagents/agent-{agent}.jsonl")),
                    };
                    path.is_file().then_some(path)
                });
                Some((ImportFormat::ClaudeCode, found?))
            }
            "codex" => {
                let mut days = vec![self.codex.clone()?];
                for _ in ["year", "month", "day"] {
                    days = days.iter().flat_map(|folder| folders(folder)).take(FOLDER_COUNT_MAX).collect();
                }
                let end = format!("{session}.jsonl");
                // The newest day first: there the session is most likely.
                let found = days.iter().rev().find_map(|day| {
                    // As in `folders`.
                    let files = std::fs::read_dir(day).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
                    files.into_iter().find(|path| path.to_string_lossy().ends_with(&end))
                });
                Some((ImportFormat::Codex, found?))
            }
            _ => None,
        }
    }
}

/// The folders in a folder, in the order of their names.
fn folders(folder: &Path) -> Vec<PathBuf> {
    // A folder that cannot be read has no recording that could be read: then only its requests tell the session.
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut folders: Vec<PathBuf> = entries
        // As above.
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .take(FOLDER_COUNT_MAX)
        .collect();
    folders.sort();
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_results_that_end_a_request_are_found_in_each_api() {
        for (path, body, wanted) in [
            (
                "/v1/messages",
                r#"{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a"}]},{"role":"assistant","content":"x"},
                    {"role":"user","content":[{"type":"tool_result","tool_use_id":"b"},{"type":"text","text":"y"},{"type":"tool_result","tool_use_id":"c"}]},
                    {"role":"system","content":"z"}]}"#,
                "b c",
            ),
            ("/v1/messages", r#"{"model":"m","messages":[{"role":"user","content":"a prompt"}]}"#, ""),
            (
                "/v1/chat/completions",
                r#"{"model":"m","messages":[{"role":"assistant","content":null},{"role":"tool","tool_call_id":"a","content":"1"},{"role":"tool","tool_call_id":"b","content":"2"}]}"#,
                "a b",
            ),
            (
                "/v1/responses",
                r#"{"model":"m","input":[{"type":"function_call","call_id":"a"},{"type":"function_call_output","call_id":"a","output":"1"}]}"#,
                "a",
            ),
        ] {
            let api = export::Format::of_path(path).unwrap();
            let mut answers = PrunedRequest::parse(api, path, body).unwrap().answers();
            answers.sort();
            assert_eq!(answers.join(" "), wanted, "{body}");
        }
    }
}
