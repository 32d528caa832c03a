//! Judge of the profiles acp-seed, acp-head, dcp and dcp-supersede-reads: a vector's events are recorded as a host
//! would record them, folded under the preset of the profile, and read back.
//!
//! ```text
//! vector event --Entry, Command--> Tape --> State --edges, faces, hashes, log lines, todos--> fields of `expected`
//! ```
//!
//! Turns pass one by one where reminders are on, so that a due one is shown at the end of each turn on the way.

use std::collections::BTreeMap;

use acpdb_engine::command::{Command, ContextAction, Target};
use acpdb_engine::entry::{Entry, fact};
use acpdb_engine::event::{InjectedKind, Outcome, PartKind, PolicySet, ReplaceCause, Role, TurnKind};
use acpdb_engine::fold::todo::ReminderSettings;
use acpdb_engine::fold::todo::TodoSource;
use acpdb_engine::fold::{HashForm, ItemKind, Ix, Policy, RuleKind, State};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::testing::Tape;
use acpdb_engine::text::HashTarget;
use serde_json::{Map, Value, json};

/// The host whose tools the vectors use.
const HOST: &str = "opencode";

/// Judges a vector of calls.
///
/// # Errors
/// Says which part of the vector has another form than the README describes.
pub fn judge(vector: &Value) -> Result<Value, String> {
    let profile = text(vector, "profile")?;
    let policy = policy_of(profile, vector.get("config").unwrap_or(&Value::Null))?;
    let mut run = Run::new(&policy, vector);
    let events = vector.get("events").and_then(Value::as_array).ok_or("no events")?;
    for event in events {
        run.event(event)?;
    }
    run.remind();
    Ok(run.result(profile, vector))
}

fn text<'v>(value: &'v Value, field: &str) -> Result<&'v str, String> {
    value.get(field).and_then(Value::as_str).ok_or_else(|| format!("no text `{field}` in {value}"))
}

/// The policy that a profile and a configuration stand for: the preset, the base values of the vectors, the changes.
fn policy_of(profile: &str, config: &Value) -> Result<Policy, String> {
    let preset = if profile == "acp-seed" { "acp" } else { profile };
    let usual = Policy::default();
    let mut keys = Map::new();
    let mut set = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
    match config.get("protectedTools") {
        // One list for all profiles, whatever the preset has.
        Some(Value::String(_)) => {
            let list: Vec<&str> = usual.protected_tools.patterns().iter().map(String::as_str).collect();
            set("protected_tools", json!(list));
        }
        given => set("protected_tools", given.cloned().unwrap_or_else(|| json!([]))),
    }
    let files = config.get("protectedFilePatterns").cloned();
    set("protected_files", files.unwrap_or_else(|| json!([])));
    let at = |pointer: &str| config.pointer(pointer).cloned();
    let mut copy = |pointer: &str, key: &str| {
        if let Some(value) = config.pointer(pointer) {
            keys.insert(key.to_owned(), value.clone());
        }
    };
    copy("/turnProtection/enabled", "turn_protection");
    copy("/turnProtection/turns", "turn_protection.turns");
    copy("/strategies/deduplication/protectedTools", "repeat.protected_tools");
    copy("/strategies/supersedeWrites/protectedTools", "file.protected_tools");
    copy("/strategies/supersedeReads/protectedTools", "file.protected_tools");
    copy("/strategies/purgeErrors/protectedTools", "purge_errors.protected_tools");
    copy("/strategies/purgeErrors/turns", "purge_errors.turns");
    copy("/strategies/aggressivePruning/aggressiveFilePrune", "file.any_call");
    if profile == "dcp" {
        copy("/strategies/purgeErrors/enabled", "purge_errors");
    }
    let off = |pointer: &str| at(pointer) == Some(Value::Bool(false));
    if off("/strategies/deduplication/enabled") {
        keys.insert("repeat".to_owned(), json!("off"));
    }
    if off("/strategies/supersedeWrites/enabled") || off("/strategies/supersedeReads/enabled") {
        for class in ["write", "edit", "delete", "read", "search"] {
            keys.insert(format!("file.{class}_clears"), json!([]));
        }
    }
    if at("/manualMode/enabled") == Some(Value::Bool(true)) && off("/manualMode/automaticStrategies") {
        keys.insert("automatic".to_owned(), json!(false));
    }
    let changes = config.get("policy").and_then(Value::as_object);
    keys.extend(changes.into_iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
    keys.insert("preset".to_owned(), json!(preset));
    Policy::from_value(&Value::Object(keys)).map_err(|error| error.to_string())
}

/// A vector being played.
struct Run {
    tape: Tape,
    turn: u32,
    reminders: Option<ReminderSettings>,
    reminded: Vec<Value>,
    contexts: Vec<Value>,
    /// Calls and messages of the vector, with the event that ended each.
    names: BTreeMap<ItemId, String>,
    calls: BTreeMap<String, (ItemId, Seq)>,
    messages: BTreeMap<String, Seq>,
    /// Plain keys, by the signs that stand for them in the log.
    words: BTreeMap<String, String>,
}

impl Run {
    fn new(policy: &Policy, vector: &Value) -> Self {
        let mut tape = Tape::new(HOST, "vector", acpdb_hosts::registry());
        tape.payload(PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
        let reminders = vector.pointer("/config/todoReminder").map(|config| {
            let usual = ReminderSettings::default();
            let turns = |name, usual| {
                let given = config.get(name).and_then(Value::as_u64);
                given.and_then(|turns| u32::try_from(turns).ok()).unwrap_or(usual)
            };
            ReminderSettings {
                enabled: true,
                initial_turns: turns("initialTurns", usual.initial_turns),
                repeat_turns: turns("repeatTurns", usual.repeat_turns),
                stuck_task_turns: turns("stuckTaskTurns", usual.stuck_task_turns),
            }
        });
        Self {
            tape,
            turn: 0,
            reminders,
            reminded: Vec::new(),
            contexts: Vec::new(),
            names: BTreeMap::new(),
            calls: BTreeMap::new(),
            messages: BTreeMap::new(),
            words: BTreeMap::new(),
        }
    }

    fn state(&self) -> &State {
        self.tape.state()
    }

    /// Passes time up to `turn`, at once or turn by turn; with reminders on, every turn on the way ends with a look at
    /// them.
    fn pass(&mut self, turn: u32, by_one: bool) {
        while self.turn < turn {
            if self.turn > 0 {
                self.remind();
            }
            self.turn = if by_one || self.reminders.is_some() { self.turn + 1 } else { turn };
            let number = Some(self.turn);
            self.tape.entry(fact::TurnStarted { kind: TurnKind::Step, key: String::new(), number });
        }
    }

    /// Shows a reminder if one is due.
    fn remind(&mut self) {
        let Some(settings) = self.reminders else { return };
        let now = self.state().turn(Seq::MAX);
        if let Some(due) = self.state().todos().reminder_due(Seq::MAX, now, &settings) {
            self.reminded.push(json!({
                "turn": due.turn,
                "turns_since_update": due.turns_since_update,
                "stuck_turns": due.stuck_turns,
            }));
            let text = acpdb_serve::Reminder::from(due).text.as_bytes().into();
            self.tape.entry(fact::Injected { what: InjectedKind::Reminder, text });
        }
    }

    fn event(&mut self, event: &Value) -> Result<(), String> {
        if let Some(turn) = event.get("turn").and_then(Value::as_u64) {
            let by_one = text(event, "type")? == "turn";
            self.pass(u32::try_from(turn).map_err(|error| error.to_string())?, by_one);
        }
        match text(event, "type")? {
            "call" => self.call(event)?,
            "status" => drop(self.finish(text(event, "id")?, event)?),
            "message" => self.message(event)?,
            "turn" => {}
            "sync" => self.remind(),
            "compact" => {
                self.remind();
                let cause = ReplaceCause::Compaction;
                self.tape.entry(fact::ContextReplaced { cause, order: Vec::new(), tokens_before: None });
            }
            "context" => {
                self.remind();
                self.context(event)?;
            }
            "policy" => {
                let mut policy = self.state().policy(Seq::MAX).as_ref().clone();
                let keys = event.get("set").and_then(Value::as_object).ok_or("no keys to set")?;
                policy.change(keys).map_err(|error| error.to_string())?;
                self.tape.payload(PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
            }
            kind @ ("pin" | "unpin") => {
                let id = text(event, "id")?;
                let named = self.names.iter().find(|(_, name)| *name == id);
                let item = *named.ok_or("pin of nothing known")?.0;
                let targets = vec![Target::Item(item)];
                let command =
                    if kind == "pin" { Command::Pin { targets } } else { Command::Unpin { targets } };
                self.tape.command(&command).map_err(|error| error.to_string())?;
            }
            "rewind" => {
                let id = text(event, "to")?;
                let call = self.calls.get(id).map(|(_, end)| *end);
                let to = call.or_else(|| self.messages.get(id).copied()).ok_or("rewind to nothing known")?;
                self.tape.command(&Command::Rewind { to }).map_err(|error| error.to_string())?;
            }
            other => return Err(format!("unknown event type `{other}`")),
        }
        Ok(())
    }

    fn call(&mut self, event: &Value) -> Result<(), String> {
        let id = text(event, "id")?;
        let params = event.get("params").map_or_else(|| "{}".to_owned(), Value::to_string);
        let tool = text(event, "tool")?;
        let known = acpdb_engine::text::json::Json::parse(params.as_bytes());
        let spelled =
            known.map(|known| acpdb_hosts::registry().tool(HOST, tool, &known).keys).unwrap_or_default();
        let seq = self.tape.entry(Entry::tool_started(id, tool, params));
        let item = ItemId::first(seq);
        if let Some(call) = self.state().find(item).and_then(|ix| self.state().item(ix, Seq::MAX)) {
            let signs: Vec<String> = call.keys.iter().map(ToString::to_string).collect();
            self.words.extend(signs.into_iter().zip(spelled.into_iter().map(|key| key.given)));
        }
        self.names.insert(item, id.to_owned());
        // The event that the call itself recorded; a `status` is an event of its own.
        let end = self.finish(id, event)?.unwrap_or(seq);
        self.calls.insert(id.to_owned(), (item, end));
        Ok(())
    }

    fn finish(&mut self, id: &str, event: &Value) -> Result<Option<Seq>, String> {
        let outcome = match text(event, "status")? {
            "completed" => Outcome::Completed,
            "error" => Outcome::Failed,
            _ => return Ok(None),
        };
        let output = event.get("output").and_then(Value::as_str).unwrap_or_default();
        let output = vec![acpdb_engine::entry::PartEntry::of(PartKind::Text, output)];
        Ok(Some(self.tape.entry(Entry::tool_finished(id, outcome, output))))
    }

    fn message(&mut self, event: &Value) -> Result<(), String> {
        let id = text(event, "id")?;
        let role = match text(event, "role")? {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            other => return Err(format!("unknown role `{other}`")),
        };
        let seq = self.tape.entry(Entry::message(id, role, text(event, "text")?));
        self.names.insert(ItemId::first(seq), id.to_owned());
        self.messages.insert(id.to_owned(), seq);
        Ok(())
    }

    /// The hashes that stand for a call's short hash as an agent of the originals means it: each call on the branch that has the short
    /// one is shown with a hash of its own here.
    fn hashes_of(&self, call: &str) -> Result<Vec<String>, String> {
        let (item, _) = *self.calls.get(call).ok_or("hash of an unknown call")?;
        let state = self.state();
        let ix = state.find(item).ok_or("no such item")?;
        let short = state.hash(ix, Seq::MAX, HashForm::Short).unwrap_or_default();
        let target = HashTarget::parse(&short).or_else(|| HashTarget::parse_bare(&short));
        let groups = target.map(|target| state.calls_by_hash(&target, Seq::MAX)).unwrap_or_default();
        let on_branch =
            groups.iter().filter_map(|calls| calls.iter().find(|ix| !state.is_off_branch(**ix, Seq::MAX)));
        let shown: Vec<String> =
            on_branch.filter_map(|ix| state.hash(*ix, Seq::MAX, HashForm::Shown)).collect();
        Ok(if shown.len() > 1 { shown } else { vec![short] })
    }

    fn context(&mut self, event: &Value) -> Result<(), String> {
        let action = match text(event, "action")? {
            "discard" => ContextAction::Discard,
            "distill" => ContextAction::Distill,
            "restore" => ContextAction::Restore,
            other => return Err(format!("unknown action `{other}`")),
        };
        let mut targets = Vec::new();
        for target in event.get("targets").and_then(Value::as_array).into_iter().flatten() {
            let named = target.get(0).unwrap_or(&Value::Null);
            let typed = match named.get("hash_of").and_then(Value::as_str) {
                Some(call) => self.hashes_of(call)?,
                None => vec![named.as_str().unwrap_or_default().to_owned()],
            };
            let summary = target.get(1).and_then(Value::as_str).map(str::to_owned);
            targets.extend(typed.into_iter().map(|typed| (Target::Auto(typed), summary.clone())));
        }
        let decided = self.tape.command(&Command::Context { action, targets, pin: false });
        let names = |items: &[ItemId]| -> Vec<Value> {
            items.iter().filter_map(|item| self.names.get(item)).map(|name| json!(name)).collect()
        };
        let none = Vec::new();
        let (key, said, calls, parts) = match &decided {
            Ok(decision) => ("ok", decision.reply.clone(), names(&decision.calls), names(&decision.parts)),
            Err(rejection) => ("error", rejection.to_string(), none.clone(), none.clone()),
        };
        let (hides, shows) = if action == ContextAction::Restore {
            ((none.clone(), none), (calls, parts))
        } else {
            ((calls, parts), (none.clone(), none))
        };
        self.contexts.push(json!({
            key: said,
            "tools_pruned": hides.0,
            "tools_restored": shows.0,
            "messages_pruned": hides.1,
            "messages_restored": shows.1,
        }));
        Ok(())
    }

    /// Calls on the branch, in order.
    fn branch_calls(&self) -> Vec<Ix> {
        let state = self.state();
        let on_branch = |ix: &Ix| {
            state.item(*ix, Seq::MAX).is_some_and(|item| {
                item.kind == ItemKind::Call
                    && !matches!(item.input.cause, Some(acpdb_engine::fold::CauseView::OffBranch { .. }))
            })
        };
        state.items(Seq::MAX).filter(on_branch).collect()
    }

    fn result(&self, profile: &str, vector: &Value) -> Value {
        let state = self.state();
        let name = |item: ItemId| self.names.get(&item).cloned().unwrap_or_default();
        // The first conclusion about a call counts, edge or not.
        let mut concluded = Vec::new();
        let mut seen = std::collections::BTreeSet::new();
        // The vectors name the two modes of the rule of repeats.
        let kind = |rule: RuleKind| match rule {
            RuleKind::HASH => "hash",
            RuleKind::DEDUP => "dedup",
            rule => rule.label(),
        };
        let mut counts = BTreeMap::from([("hash", 0), ("file", 0), ("todo", 0)]);
        for edge in state.edges(Seq::MAX) {
            concluded.push((edge.seq, edge.old, edge.new.map(name), kind(edge.rule), edge.turn));
        }
        for change in state.shortened(Seq::MAX) {
            if change.rule.label() == "purge_errors" {
                concluded.push((change.seq, change.item, None, "purge_error", change.turn));
            }
        }
        concluded.sort_by_key(|(seq, ..)| *seq);
        let mut superseded = Vec::new();
        for (_, old, by, kind, turn) in concluded {
            if seen.insert(old) {
                superseded.push(json!({ "call": name(old), "by": by, "kind": kind, "turn": turn }));
                *counts.entry(kind).or_insert(0) += 1;
            }
        }
        if profile.starts_with("dcp") {
            superseded.sort_by_key(Value::to_string);
        }
        let calls = self.branch_calls();
        let ids: Vec<ItemId> = calls.iter().filter_map(|ix| state.item_id(*ix)).collect();
        let live: Vec<String> = ids.iter().filter(|id| !seen.contains(id)).map(|id| name(*id)).collect();
        let mut hashes = Map::new();
        let age_min = state.policy(Seq::MAX).turn_protection.age_min();
        for ix in &calls {
            let Some(item) = state.item(*ix, Seq::MAX) else { continue };
            if state.turn(Seq::MAX).since(item.turn) >= age_min {
                hashes.insert(name(item.item), json!(state.hash(*ix, Seq::MAX, HashForm::Short)));
            }
        }
        let mut result = json!({
            "superseded": superseded,
            "live": live,
            "hashes": hashes,
            "log": state.log_lines_spelled(Seq::MAX, HashForm::Short, &|sign| self.words.get(sign).cloned()),
            "stats_unique": counts,
            "context": self.contexts,
            "reminders": self.reminded,
            "todos": self.todos(),
        });
        // A vector without todo calls says nothing about the list.
        if vector.pointer("/expected/todos").is_none()
            && let Some(fields) = result.as_object_mut()
        {
            fields.remove("todos");
        }
        result
    }

    /// The todo list as the vectors print it.
    fn todos(&self) -> Value {
        let Some(list) = self.state().todos().list(Seq::MAX) else { return json!([]) };
        let entry = |item: &acpdb_engine::fold::todo::TodoEntry| {
            let mut object = Map::new();
            for source in &item.entry {
                let (body, index) = match source {
                    TodoSource::List { body, index } => (*body, Some(*index)),
                    TodoSource::Change { body } => (*body, None),
                };
                let bytes = self.tape.body(body).unwrap_or_default();
                let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let value = match index {
                    Some(index) => value.get(index as usize).cloned().unwrap_or_default(),
                    None => value,
                };
                object.extend(value.as_object().cloned().unwrap_or_default());
            }
            object.insert("status".to_owned(), json!(item.status));
            object.remove("inProgressSince");
            if let Some(since) = item.in_progress_since {
                object.insert("inProgressSince".to_owned(), json!(since));
            }
            Value::Object(object)
        };
        Value::Array(list.items.iter().map(|item| entry(item)).collect())
    }
}
