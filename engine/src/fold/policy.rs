//! The policy: settings of the rules, as data; and the presets, with the lists of names that they begin with.
//!
//! ```text
//! {"preset":"acp","file.edit_quiet_steps":4}  --from_json-->  Policy  --to_json-->  preset and every key with its value
//!                                                               |
//!                                                               +--compact-->  preset and the keys that differ from it
//! ```
//!
//! A policy is recorded whole in `PolicySet`, so a later default never rewrites the past. Keys are flat; a setting of
//! a rule takes a dot (`purge_errors.turns`), and nested objects (a TOML table) mean the same. The table of keys is in
//! [`keys`]; an unknown key is refused, with the nearest known one as a suggestion.
//!
//! Every fold begins with the store's policy. Reading a policy and compiling its patterns takes a tenth of a millisecond, more than
//! the fold of a short session; the same text always gives the same policy, and a process meets few of them. So policies that were
//! read lately are shared.
//!
//! Keys and presets of single rules come from the list of rules. The values of a policy stand below the rules, in
//! [`policy_values`](super::policy_values).

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use serde_json::{Map, Value};

use super::rules::{SHORTENING, ages_keys, switches};
use crate::event::ToolClass;
use crate::locks::renewed;
use crate::text::Globs;
use crate::text::globs::GLOB_BYTES_MAX;
use crate::text::likeness::{kept_share, likeness, nearest_by};

mod archive;
mod keys;

pub(crate) use archive::SharedPolicy;
pub use keys::{PolicyKey, policy_keys};

pub use super::policy_values::{
    Ages, CompressReasoning, FileKind, FileRule, FlushRule, HideInput, IdleRules, Paths, Policy, PriceError,
    Prices, PurgeErrors, ReflectionSettings, ReminderSettings, Repeat, RepeatMode, ServeMode, ServeSettings,
    ShelfRule, Switches, TaskArchive, Truncate, TurnProtection,
};
use keys::KeyError;

/// A policy that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// Not JSON or not TOML.
    #[error("the policy is not {format}: {reason}")]
    Syntax {
        /// The format that was expected.
        format: &'static str,
        /// The parser's message.
        reason: String,
    },
    /// No such preset.
    #[error("no preset is called `{name}`{}", suggest(.suggestion.as_deref()))]
    UnknownPreset {
        /// As given.
        name: String,
        /// The nearest known one.
        suggestion: Option<String>,
    },
    /// No such key.
    #[error("no policy key is called `{key}`{}", suggest(.suggestion.as_deref()))]
    UnknownKey {
        /// As given.
        key: String,
        /// The nearest known one.
        suggestion: Option<String>,
    },
    /// A value of the wrong kind.
    #[error("policy key `{key}` takes {expected}, not `{found}`")]
    Value {
        /// The key.
        key: String,
        /// The values that the key takes.
        expected: &'static str,
        /// The value that was given.
        found: String,
    },
}

fn suggest(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The known name nearest to `name`, if any is near.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    nearest_by(known, 1.0, |known| likeness(name, known) + kept_share(name, known)).map(str::to_owned)
}

/// The key that was probably meant: a known one, or a rule, behind words like `rule.`, else the nearest.
fn near_key(key: &str) -> Option<String> {
    let names = || policy_keys().iter().map(|entry| entry.name);
    let is_known = |tail: &str| {
        names()
            .any(|name| name.strip_prefix(tail).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
    };
    let tails = key.match_indices('.').filter_map(|(at, _)| key.get(at + 1..));
    tails
        .into_iter()
        .find(|tail| is_known(tail))
        .map(str::to_owned)
        .or_else(|| nearest(key, names().chain([FILE_RULE])))
}

impl Policy {
    /// Reads a policy from JSON: an optional `preset` (else `acp`) and the keys that differ.
    ///
    /// Keys are flat (`file.kind`) or nested (`{"file":{"kind":..}}`); a rule that is both a switch and a group of
    /// settings takes `on` for the switch when nested. `file` switches the file rule off, or back to what its preset says.
    /// A bare string is a preset's name.
    ///
    /// # Errors
    /// [`PolicyError`], naming the key.
    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        let value: Value = serde_json::from_str(text)
            .map_err(|error| PolicyError::Syntax { format: "JSON", reason: error.to_string() })?;
        Self::from_value(&value)
    }

    /// Reads a policy from TOML; see [`Policy::from_json`].
    ///
    /// # Errors
    /// [`PolicyError`], naming the key.
    pub fn from_toml(text: &str) -> Result<Self, PolicyError> {
        let table: toml::Table = toml::from_str(text)
            .map_err(|error| PolicyError::Syntax { format: "TOML", reason: error.message().to_owned() })?;
        let value = serde_json::to_value(table)
            .map_err(|error| PolicyError::Syntax { format: "TOML", reason: error.to_string() })?;
        Self::from_value(&value)
    }

    /// Reads a policy from a JSON value; see [`Policy::from_json`].
    ///
    /// # Errors
    /// [`PolicyError`], naming the key.
    pub fn from_value(value: &Value) -> Result<Self, PolicyError> {
        let empty = Map::new();
        let (name, keys) = match value {
            Value::String(name) => (name.as_str(), &empty),
            Value::Object(keys) => match keys.get("preset") {
                None => ("acp", keys),
                Some(Value::String(name)) => (name.as_str(), keys),
                Some(other) => return Err(value_error("preset", "the name of a preset", other)),
            },
            other => return Err(value_error("policy", "an object of keys", other)),
        };
        let mut policy = Self::preset(name).ok_or_else(|| PolicyError::UnknownPreset {
            name: name.to_owned(),
            suggestion: nearest(name, PRESETS.iter().copied()),
        })?;
        if is_whole(keys) {
            policy.forget_late_keys();
        }
        policy.change(keys)?;
        Ok(policy)
    }

    /// The values that late keys have in a policy that was recorded without them.
    fn plain() -> Self {
        let mut plain = Self::default();
        plain.serve.pointing = false;
        plain
    }

    /// Sets late keys as if the preset did not know them. A policy that was recorded whole names the late keys that it means, and
    /// a preset that changed since does not change a recorded policy.
    fn forget_late_keys(&mut self) {
        let plain = Self::plain();
        for key in policy_keys().iter().filter(|key| is_late(key.name)) {
            // Each key takes the values that it gives.
            let _ = key.set(self, &key.value(&plain));
        }
    }

    /// Changes the keys that `keys` names, all or none.
    ///
    /// # Errors
    /// [`PolicyError`], naming the key.
    pub fn change(&mut self, keys: &Map<String, Value>) -> Result<(), PolicyError> {
        let mut flat = Vec::new();
        flatten("", keys, &mut flat);
        // Switches that stand for a whole matrix go first, so that single entries can differ from it.
        flat.sort_by_key(|(key, _)| match key.as_str() {
            FILE_RULE => 0,
            "file.any_call" => 1,
            _ => 2,
        });
        let mut changed = self.clone();
        for (key, value) in &flat {
            if key == "preset" {
                continue;
            }
            let entry = policy_keys().iter().find(|entry| entry.name == key);
            let set = match entry {
                Some(entry) => entry.set(&mut changed, value),
                None if key == FILE_RULE => keys::set_file_rule(&mut changed, value),
                None => return Err(PolicyError::UnknownKey { key: key.clone(), suggestion: near_key(key) }),
            };
            set.map_err(|error| match error {
                KeyError::Kind(expected) => value_error(key, expected, value),
                KeyError::Glob(error) => PolicyError::Value {
                    key: key.clone(),
                    expected: "a list of patterns",
                    found: error.to_string(),
                },
            })?;
        }
        *self = changed;
        Ok(())
    }

    /// The whole policy: the preset's name and every key with its value, as `PolicySet` records it.
    pub fn to_value(&self) -> Value {
        let plain = Self::plain();
        // Keys that later versions brought are left out where they change nothing: a policy that was recorded without them
        // means the same, and has the same digest.
        self.listed(|key, value| !(is_late(key.name) && *value == key.value(&plain)))
    }

    /// [`Policy::to_value`] as JSON text.
    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    /// The preset's name and the keys that differ from it.
    pub fn compact(&self) -> Value {
        let preset = Self::preset(&self.preset).unwrap_or_default();
        self.listed(|key, value| *value != key.value(&preset))
    }

    fn listed(&self, is_listed: impl Fn(&PolicyKey, &Value) -> bool) -> Value {
        let mut map = Map::new();
        map.insert("preset".to_owned(), Value::String(self.preset.clone()));
        let keys = policy_keys().iter().map(|key| (key, key.value(self)));
        map.extend(
            keys.filter(|(key, value)| is_listed(key, value))
                .map(|(key, value)| (key.name.to_owned(), value)),
        );
        Value::Object(map)
    }
}

/// Keys that are absent from policies recorded by the first version. The values that they have then ([`Policy::plain`]) hide nothing, and stay for ever, but
/// for `serve.debt_max`: it was 0 before the first release.
fn is_late(key: &str) -> bool {
    key.split('.').next().is_some_and(|group| matches!(group, "shelf" | "serve" | "idle" | "size_notice"))
        || switches().any(|(_, switch)| switch.is_late && switch.key == key)
}

/// Whether a policy names every key but late ones, as recorded policies do.
fn is_whole(keys: &Map<String, Value>) -> bool {
    policy_keys().iter().all(|key| is_late(key.name) || keys.contains_key(key.name))
}

impl serde::Serialize for Policy {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.to_value().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Policy {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::from_value(&value).map_err(serde::de::Error::custom)
    }
}

fn value_error(key: &str, expected: &'static str, found: &Value) -> PolicyError {
    PolicyError::Value { key: key.to_owned(), expected, found: found.to_string() }
}

/// Nested objects become keys with dots. The parsers bound the depth of their values.
fn flatten(prefix: &str, keys: &Map<String, Value>, flat: &mut Vec<(String, Value)>) {
    for (key, value) in keys {
        let name = match (prefix.is_empty(), key.as_str()) {
            (true, _) => key.clone(),
            (false, "on") => prefix.to_owned(),
            (false, _) => format!("{prefix}.{key}"),
        };
        match value {
            Value::Object(inner) if prefix.len() < 64 => flatten(&name, inner, flat),
            _ => flat.push((name, value.clone())),
        }
    }
}

/// The name of the file rule: it is no key of its own, but stands for those that say what clears what.
const FILE_RULE: &str = "file";

/// Number of policies that are kept, at most.
const KEPT_COUNT: usize = 8;

/// A policy with its JSON.
struct PolicyText {
    policy: SharedPolicy,
    json: String,
    /// Whether `json` is the text that [`Policy::to_json`] gives. A host may have written another one.
    is_own: bool,
}

static KEPT: Mutex<Vec<PolicyText>> = Mutex::new(Vec::new());

/// The policies that were read or written lately.
fn kept() -> MutexGuard<'static, Vec<PolicyText>> {
    renewed(&KEPT, Vec::clear)
}

fn keep(one: PolicyText) {
    let mut kept = kept();
    if kept.len() >= KEPT_COUNT {
        kept.remove(0);
    }
    kept.push(one);
}

impl Policy {
    /// As [`Policy::from_json`]; a policy that was read or written lately is shared.
    pub(crate) fn shared(text: &str) -> Result<SharedPolicy, PolicyError> {
        if let Some(known) = kept().iter().find(|known| known.json == text) {
            return Ok(known.policy.clone());
        }
        let policy = SharedPolicy(Arc::new(Self::from_json(text)?));
        keep(PolicyText { policy: policy.clone(), json: text.to_owned(), is_own: false });
        Ok(policy)
    }

    /// As [`Policy::to_json`]; the JSON of a policy that was written lately is copied. Each saved fold has the JSON of its policies.
    pub(crate) fn shared_json(policy: &Arc<Self>) -> String {
        if let Some(known) = kept().iter().find(|known| known.is_own && Arc::ptr_eq(&known.policy.0, policy))
        {
            return known.json.clone();
        }
        let json = policy.to_json();
        keep(PolicyText { policy: SharedPolicy(Arc::clone(policy)), json: json.clone(), is_own: true });
        json
    }

    /// The default policy, shared.
    pub(crate) fn standard() -> SharedPolicy {
        static STANDARD: OnceLock<Arc<Policy>> = OnceLock::new();
        SharedPolicy(Arc::clone(STANDARD.get_or_init(Arc::default)))
    }
}

// --- presets -------------------------------------------------------------------------------------------------------------

/// Tools that are protected unless a policy says otherwise.
pub const PROTECTED_TOOLS: &[&str] = &[
    "context_info",
    "task",
    "todowrite",
    "todoread",
    "discard_tool",
    "discard_msg",
    "distill_tool",
    "distill_msg",
    "restore_tool",
    "restore_msg",
    "context",
    "batch",
    "plan_enter",
    "plan_exit",
];

/// Files that are protected unless a policy says otherwise.
pub const PROTECTED_FILES: &[&str] =
    &["**/.env", "**/.env.*", "**/credentials.json", "**/secrets.json", "**/*.pem", "**/*.key"];

/// Tools whose equal calls are a new answer or a new deed each time: polls, deltas, deeds.
pub const REPEAT_EXCEPT: &[&str] = &[
    "write_stdin",
    "read_bash",
    "stop_bash",
    "TaskOutput",
    "BashOutput",
    "AgentOutputTool",
    "TaskCreate",
    "TaskUpdate",
    "tracker_*",
    "book_*",
    "cancel_*",
    "create_*",
    "delete_*",
    "exchange_*",
    "modify_*",
    "place_*",
    "remove_*",
    "return_*",
    "send_*",
    "submit*",
    "transfer_*",
    "update_*",
];

/// Tools whose outputs steer the work and are never shelved.
pub const SHELF_EXCEPT: &[&str] = &[
    "task*",
    "Task*",
    "agent*",
    "Agent*",
    "skill*",
    "Skill*",
    "*uestion*",
    "*plan*",
    "*Plan*",
    "*todo*",
    "*Todo*",
];

/// Names of the presets, in the order in which they are listed.
pub const PRESETS: &[&str] =
    &["acp", "balanced", "careful", "acp-head", "dcp", "dcp-supersede-reads", "economy", "calm", "safe"];

impl IdleRules {
    /// The rules of a preset.
    fn of(preset: &str) -> Self {
        let mut rules =
            Self { tokens_min: 300, cold_share: 1.0, ages: vec![Ages::default(); SHORTENING.len()] };
        for (number, key) in ages_keys() {
            if let Some((_, ages)) = key.presets.iter().find(|(name, _)| *name == preset) {
                rules.set_ages(number, *ages);
            }
        }
        rules
    }
}

impl Switches {
    /// The switches of a preset.
    fn of(preset: &str) -> Self {
        let mut all = Self::default();
        for (number, switch) in switches() {
            all.set(number, switch.presets.contains(&preset));
        }
        all
    }
}

/// Tools whose outputs `truncate` means.
const TRUNCATE_TOOLS: &[&str] = &["read", "grep", "glob", "bash"];

// A refused list would protect nothing, without a word: a list with such a pattern ends the build.
const _: () = {
    let mut lists: &[&[&str]] =
        &[PROTECTED_TOOLS, PROTECTED_FILES, REPEAT_EXCEPT, SHELF_EXCEPT, TRUNCATE_TOOLS];
    while let [list, more_lists @ ..] = lists {
        let mut patterns = *list;
        while let [pattern, more @ ..] = patterns {
            assert!(!pattern.is_empty() && pattern.len() <= GLOB_BYTES_MAX, "no pattern");
            patterns = more;
        }
        lists = more_lists;
    }
};

impl Default for Policy {
    /// The preset `acp`.
    fn default() -> Self {
        // Only an empty pattern and one that is too long are refused: the build has none, here and below.
        let names = |list: &[&str]| Globs::names(list).unwrap_or_default();
        let mut file = FileRule::default();
        file.set_any_call(false);
        Self {
            preset: "acp".to_owned(),
            automatic: true,
            paths: Paths::Session,
            repeat: Repeat {
                mode: RepeatMode::Hash,
                except: names(REPEAT_EXCEPT),
                protected_tools: Globs::default(),
            },
            file,
            same_turn: false,
            failed: false,
            hide_input: HideInput::None,
            switches: Switches::of("acp"),
            purge_errors: PurgeErrors { on: false, turns: 4, protected_tools: Globs::default() },
            truncate: Truncate {
                on: false,
                max_tokens: 2000,
                head_ratio: 0.4,
                tail_ratio: 0.4,
                turns_min: 2,
                tools: names(TRUNCATE_TOOLS),
            },
            compress_reasoning: CompressReasoning { on: false, max_tokens: 500, turns_min: 3 },
            protected_tools: names(PROTECTED_TOOLS),
            protected_files: Globs::guarded_paths(PROTECTED_FILES).unwrap_or_default(),
            shelf: ShelfRule {
                on: false,
                read_turns: 40,
                other_turns: 10,
                input_turns: 40,
                tokens_min: 300,
                except: names(SHELF_EXCEPT),
            },
            idle: IdleRules::of("acp"),
            serve: ServeSettings::default(),
            turn_protection: TurnProtection { enabled: false, turns: 4 },
            reminder: ReminderSettings::default(),
            automata: ReflectionSettings::default(),
            size_notices: Vec::new(),
            task_outputs_max: 20,
            task_archive: TaskArchive::Command,
        }
    }
}

impl Policy {
    /// The preset called `name` ([`PRESETS`]), or `None`.
    pub fn preset(name: &str) -> Option<Self> {
        let (preset, switches, idle) = (name.to_owned(), Switches::of(name), IdleRules::of(name));
        let mut policy = Self { preset, switches, idle, ..Self::default() };
        match name {
            "acp" => {}
            "balanced" => policy.file.edit_quiet_steps = 4,
            "careful" => policy.file.edit_clears.clear(),
            "acp-head" => {
                policy.file.set_any_call(true);
                policy.hide_input = HideInput::Metadata;
                policy.serve.pointing = false;
            }
            "dcp" => {
                policy.become_dcp();
                policy.repeat.mode = RepeatMode::Dedup;
                policy.file.read_clears = vec![ToolClass::Write];
                policy.file.kind = FileKind::SupersedeWrite;
                policy.hide_input = HideInput::Metadata;
                policy.purge_errors.on = true;
            }
            "dcp-supersede-reads" => {
                policy.become_dcp();
                policy.repeat.mode = RepeatMode::Off;
                policy.file.write_clears = vec![ToolClass::Read];
                policy.file.edit_clears = vec![ToolClass::Read];
                policy.file.delete_clears = vec![ToolClass::Read];
                policy.file.kind = FileKind::SupersedeRead;
            }
            "economy" => {
                policy.file.edit_quiet_steps = 6;
                policy.idle.tokens_min = 40;
                policy.idle.cold_share = 0.1;
                policy.serve.pointing_tokens_min = 30;
                policy.serve.pointers_max = 60;
                policy.serve.horizon = 6.0;
                policy.serve.debt_max = 1.0;
            }
            "calm" => {
                policy = Self { preset: name.to_owned(), ..Self::preset("economy")? };
                policy.serve.rule = FlushRule::Prompts;
            }
            "safe" => {
                policy = Self { preset: name.to_owned(), ..Self::preset("economy")? };
                policy.file.edit_clears.clear();
                policy.serve.rule = FlushRule::Cold;
            }
            _ => return None,
        }
        Some(policy)
    }

    /// Sets the values that both dcp presets have in common; the file rule's matrix is empty.
    fn become_dcp(&mut self) {
        self.file = FileRule::default();
        self.same_turn = true;
        self.failed = true;
        self.serve.pointing = false;
        self.protected_tools = Globs::default();
        self.protected_files = Globs::default();
    }
}

#[cfg(test)]
mod tests;
