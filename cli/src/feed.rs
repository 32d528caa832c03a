//! JSON lines of `append --stdin` to facts.
//!
//! ```text
//! {"session":"s1","host":"opencode"?,"project":"p"?,"cwd":"/w"?,"expect":812?,"turn":true?, WHAT}
//! WHAT = "message":{"role","text"} | "tool_started":{..} | "tool_finished":{..} | "tool":{..} | "todos":[..]
//!      | "memory":{..} | "file_changed":{"path"} | "context":{"action","targets"} | "policy":{..} | "tasks":[..]
//!      | "events":[{WHAT}..]
//! ```
//!
//! Parameters are kept as the bytes that stand in the line.

use std::fmt;

use acpdb_engine::codec::COMMIT_EVENT_COUNT_MAX;
use acpdb_engine::entry::{Bytes, Entry, Fact, MemoryEntry, PartEntry, StreamInfo, fact};
use acpdb_engine::event::{FileChanger, Lifespan, MemoryKind, Outcome, Role};
use acpdb_engine::ids::Seq;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One line, understood.
#[derive(Debug)]
pub(crate) struct FeedLine {
    pub(crate) stream: StreamInfo,
    /// The line names its host.
    pub(crate) names_host: bool,
    /// The last seq of the session that the writer of the line knows.
    pub(crate) expect: Option<Seq>,
    pub(crate) acts: Vec<FeedAct>,
}

/// Acts of a line, in order.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a line has few of them, nearly all facts")]
pub(crate) enum FeedAct {
    Record(Entry),
    /// JSON of the context tool.
    Context(String),
    /// JSON of a policy.
    Policy(String),
    /// JSON of a list of tasks, or of one.
    Tasks(String),
}

/// Fields that name the session of a line, and its head.
const NAMING: &[&str] = &["session", "host", "project", "cwd", "title", "expect"];

/// Fields that tell of an event, in the order in which they are recorded if a line has several: a turn begins before the events in
/// it, a call begins before it ends.
const HAPPENING: &[&str] = &[
    "turn",
    "context",
    "file_changed",
    "memory",
    "message",
    "policy",
    "tasks",
    "todos",
    "tool",
    "tool_started",
    "tool_finished",
];

/// The fields of a line, or of one of its events. A field that stands twice is refused: one of the two values would be lost.
#[derive(Debug, Default)]
struct RawAct<'a>(Vec<(&'static str, &'a RawValue)>);

impl<'a> RawAct<'a> {
    fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for RawAct<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FeedFields;
        impl<'de> Visitor<'de> for FeedFields {
            type Value = RawAct<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = RawAct::default();
                while let Some(name) = map.next_key::<String>()? {
                    let mut known = NAMING.iter().chain(HAPPENING).chain(&["events"]);
                    let known = known.find(|known| **known == name).copied();
                    let known =
                        known.ok_or_else(|| A::Error::custom(format_args!("unknown field \"{name}\"")))?;
                    if fields.get(known).is_some() {
                        return Err(A::Error::custom(format_args!("\"{name}\" stands twice")));
                    }
                    fields.0.push((known, map.next_value()?));
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(FeedFields)
    }
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with \"role\" and \"text\"")]
struct RawMessage {
    #[serde(alias = "id")]
    key: Option<String>,
    role: Role,
    text: String,
    origin: Option<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with \"call\", \"tool\", \"params\" and \"output\"")]
struct RawTool<'a> {
    #[serde(alias = "id")]
    call: Option<String>,
    #[serde(alias = "name")]
    tool: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    message: Option<String>,
    output: Option<String>,
    error: Option<String>,
    outcome: Option<Outcome>,
    #[serde(borrow)]
    details: Option<&'a RawValue>,
    origin: Option<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with \"kind\" and \"value\"")]
struct RawMemory {
    #[serde(default)]
    id: String,
    #[serde(default)]
    kind: MemoryKind,
    #[serde(default)]
    category: String,
    key: Option<String>,
    subject: Option<String>,
    #[serde(alias = "fact", alias = "description", alias = "text")]
    value: String,
    rationale: Option<String>,
    #[serde(default)]
    alternatives: Vec<String>,
    #[serde(default)]
    related_files: Vec<String>,
    confidence: Option<f64>,
    lifespan: Option<Lifespan>,
    #[serde(default)]
    replaces: Vec<String>,
}

#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with \"path\"")]
struct RawFile {
    path: String,
    #[serde(default)]
    by: FileChanger,
}

/// Reads one line. `number` makes call ids for tools that have none.
///
/// The error is one sentence that says what is wrong with the line.
pub(crate) fn parse(line: &str, number: u64) -> Result<FeedLine, String> {
    let raw: RawAct<'_> = serde_json::from_str(line).map_err(|error| {
        let said = sentence(&error, line, line);
        if error.is_data() { said } else { format!("it is no JSON: {said}") }
    })?;
    let text = |name: &str| -> Result<Option<String>, String> {
        let Some(value) = raw.get(name) else { return Ok(None) };
        serde_json::from_str(value.get())
            .map_err(|error| format!("\"{name}\": {}", sentence(&error, value.get(), line)))
    };
    let session = text("session")?.ok_or("\"session\" is missing: which session does this belong to?")?;
    if session.is_empty() {
        return Err("\"session\" is empty".to_owned());
    }
    let host = text("host")?;
    let names_host = host.is_some();
    let stream = StreamInfo {
        project: text("project")?,
        cwd: text("cwd")?,
        title: text("title")?,
        ..StreamInfo::session(host.unwrap_or_else(|| "acpdb".to_owned()), session)
    };
    let expect = match raw.get("expect") {
        Some(seq) => Some(Seq(serde_json::from_str(seq.get()).map_err(|_| {
            "\"expect\" is the last seq of the session that you know: a number, 0 for a new session"
                .to_owned()
        })?)),
        None => None,
    };
    let events = raw.get("events");
    let mut acts = Vec::new();
    if events.is_some() && HAPPENING.iter().any(|name| *name != "turn" && raw.get(name).is_some()) {
        return Err("\"events\" stands alone: put everything into it".to_owned());
    }
    push(&raw, line, number, &mut acts)?;
    if let Some(events) = &events {
        let wrong = |error: &serde_json::Error, text| format!("\"events\": {}", sentence(error, text, line));
        let events: Vec<&RawValue> =
            serde_json::from_str(events.get()).map_err(|error| wrong(&error, events.get()))?;
        // The events are counted before they become acts: a line may hold many more events than a commit, and an act takes some
        // hundred times the bytes of its event.
        if events.len() > COMMIT_EVENT_COUNT_MAX {
            let count = events.len();
            return Err(format!(
                "\"events\" are {count}, over the {COMMIT_EVENT_COUNT_MAX} of a commit; split it"
            ));
        }
        for event in events {
            let event: RawAct<'_> =
                serde_json::from_str(event.get()).map_err(|error| wrong(&error, event.get()))?;
            let foreign = NAMING.iter().chain(&["events"]).find(|name| event.get(name).is_some());
            if let Some(name) = foreign {
                return Err(format!("unknown field \"{name}\""));
            }
            push(&event, line, number, &mut acts)?;
        }
    }
    if acts.is_empty() {
        return Err("nothing to record: give message, tool, tool_started, tool_finished, todos, memory, file_changed, \
                    context, policy, tasks, turn or events"
            .to_owned());
    }
    // A command is decided on the state before its commit, so that it needs a commit of its own.
    let is_command = |act: &FeedAct| !matches!(act, FeedAct::Record(_));
    let is_turn = |act: &FeedAct| matches!(act, FeedAct::Record(Entry { fact: Fact::TurnStarted(_), .. }));
    if acts.iter().any(is_command)
        && (acts.iter().filter(|act| !is_turn(act)).count() > 1 || events.is_some())
    {
        return Err("\"context\", \"policy\" and \"tasks\" each have a line of their own".to_owned());
    }
    if expect.is_some() && acts.iter().any(is_command) {
        return Err(
            "\"expect\" goes with what happened, not with \"context\", \"policy\" and \"tasks\"".to_owned()
        );
    }
    Ok(FeedLine { stream, names_host, expect, acts })
}

fn push(raw: &RawAct<'_>, line: &str, number: u64, acts: &mut Vec<FeedAct>) -> Result<(), String> {
    if let Some(turn) = raw.get("turn") {
        match turn.get() {
            "true" => acts.push(FeedAct::Record(Entry::step(""))),
            "false" | "null" => {}
            text => {
                let turn: u32 =
                    text.parse().map_err(|_| format!("\"turn\" is true or a number, not {text}"))?;
                let kind = acpdb_engine::event::TurnKind::Step;
                acts.push(FeedAct::Record(
                    fact::TurnStarted { kind, key: String::new(), number: Some(turn) }.into(),
                ));
            }
        }
    }
    for key in HAPPENING {
        let Some(value) = raw.get(key) else { continue };
        let text = value.get();
        let wrong = |error: &serde_json::Error| format!("\"{key}\": {}", sentence(error, text, line));
        match *key {
            "message" => {
                let message: RawMessage = serde_json::from_str(text).map_err(|error| wrong(&error))?;
                let entry = Entry::message(message.key.unwrap_or_default(), message.role, message.text);
                acts.push(FeedAct::Record(Entry { origin: message.origin, ..entry }));
            }
            "tool_started" | "tool_finished" | "tool" => {
                let tool: RawTool<'_> = serde_json::from_str(text).map_err(|error| wrong(&error))?;
                push_tool(key, tool, number, acts)?;
            }
            "todos" => {
                let list: Vec<serde_json::Map<String, serde_json::Value>> =
                    serde_json::from_str(text).map_err(|error| wrong(&error))?;
                drop(list);
                acts.push(FeedAct::Record(fact::TodosReplaced { list: Bytes::from(text.as_bytes()) }.into()));
            }
            "memory" => {
                let memory: RawMemory = serde_json::from_str(text).map_err(|error| wrong(&error))?;
                acts.push(FeedAct::Record(Fact::Memory(memory_entry(memory)?).into()));
            }
            "file_changed" => {
                let file: RawFile = serde_json::from_str(text).map_err(|error| wrong(&error))?;
                acts.push(FeedAct::Record(fact::FileChanged { path: file.path, by: file.by }.into()));
            }
            "context" => acts.push(FeedAct::Context(text.to_owned())),
            "policy" => acts.push(FeedAct::Policy(text.to_owned())),
            "tasks" => acts.push(FeedAct::Tasks(text.to_owned())),
            // A turn was handled above.
            _ => {}
        }
    }
    Ok(())
}

fn push_tool(what: &str, tool: RawTool<'_>, number: u64, acts: &mut Vec<FeedAct>) -> Result<(), String> {
    let call = match (tool.call, what) {
        (Some(call), _) => call,
        (None, "tool") => format!("line-{number}-{}", acts.len()),
        (None, _) => return Err(format!("\"{what}\" needs \"call\", the id that start and finish share")),
    };
    let origin = |suffix: &str| tool.origin.as_ref().map(|origin| format!("{origin}:{suffix}"));
    if what != "tool_finished" {
        let name = tool.tool.ok_or_else(|| format!("\"{what}\" needs \"tool\", the tool's name"))?;
        let params = tool.params.map_or("{}", RawValue::get);
        let mut entry = Entry::tool_started(&call, name, params);
        if let Some(message) = tool.message {
            entry = entry.in_message(message);
        }
        entry.origin = origin("start");
        acts.push(FeedAct::Record(entry));
    }
    if what != "tool_started" {
        let outcome = match (tool.outcome, &tool.error) {
            (Some(outcome), _) => outcome,
            (None, Some(_)) => Outcome::Failed,
            (None, None) => Outcome::Completed,
        };
        let text = tool.error.or(tool.output).unwrap_or_default();
        let mut entry = Entry::tool_finished(&call, outcome, vec![PartEntry::text(text)]);
        if let Some(details) = tool.details {
            entry = entry.details(details.get());
        }
        entry.origin = origin("finish");
        acts.push(FeedAct::Record(entry));
    }
    Ok(())
}

fn memory_entry(raw: RawMemory) -> Result<MemoryEntry, String> {
    let confidence = raw.confidence.unwrap_or(0.8);
    if !(0.0..=1.0).contains(&confidence) {
        return Err(format!("\"confidence\" is between 0 and 1, not {confidence}"));
    }
    if raw.value.trim().is_empty() {
        return Err("\"value\" is empty".to_owned());
    }
    if raw.kind == MemoryKind::Preference && raw.key.as_deref().unwrap_or_default().trim().is_empty() {
        return Err("a preference needs \"key\"".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 100")]
    let hundredths = (confidence * 100.0).round() as u8;
    Ok(MemoryEntry {
        id: raw.id,
        kind: raw.kind,
        category: raw.category,
        key: raw.key,
        subject: raw.subject,
        value: raw.value,
        rationale: raw.rationale,
        alternatives: raw.alternatives,
        related_files: raw.related_files,
        confidence: hundredths,
        lifespan: raw.lifespan,
        replaces: raw.replaces,
        ..MemoryEntry::default()
    })
}

/// Serde's error about a part of a line, as half a sentence with the column in the line.
fn sentence(error: &serde_json::Error, part: &str, line: &str) -> String {
    let text = error.to_string();
    let text = match text.split(" at line ").next().unwrap_or(&text) {
        "unexpected end of hex escape" | "lone leading surrogate in hex escape" => {
            "half of a surrogate pair, which is no character"
        }
        text => text,
    };
    // Values are pieces of the line: serde counts from the beginning of the piece.
    let before = part.as_ptr().addr().checked_sub(line.as_ptr().addr()).filter(|place| *place <= line.len());
    let column = before.unwrap_or(0) + error.column();
    if error.column() > 0 { format!("{text} (column {column})") } else { text.to_owned() }
}
