//! The policy: what supersedes what, as data.
//!
//! ```text
//! {"preset":"acp","file.edit_quiet_steps":4}  --from_json-->  Policy  --to_json-->  preset and every key with its value
//!                                                               |
//!                                                               +--compact-->  preset and the keys that differ from it
//! ```
//!
//! A policy is recorded whole in `PolicySet`, so a later default never rewrites the past. Keys are flat; a setting of
//! a rule takes a dot (`purge_errors.turns`), and nested objects (a TOML table) mean the same. The table of keys is in
//! [`keys`](super::policy_keys); an unknown key is refused, with the nearest known one as a suggestion.
//!
//! This module knows no event, and of rules their switches.

mod presets;
mod switches;

pub use presets::{PRESETS, PROTECTED_FILES, PROTECTED_TOOLS, REPEAT_EXCEPT, SHELF_EXCEPT};
use serde_json::{Map, Value};
pub use switches::Switches;

use super::policy_keys::{KeyError, policy_keys};
use super::reminder::{ReflectionSettings, ReminderSettings};
pub use super::rules::Ages;
use super::rules::shorten::{TURNS_MIN, ages_keys};
use super::rules::{SHORTENING, switches};
use super::serving::ServeSettings;
use crate::event::ToolClass;
use crate::text::Globs;

/// How paths are compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Paths {
    /// As given.
    Raw,
    /// Resolved by text against the session's folder.
    #[default]
    Session,
}

/// Where a tombstone says that a task's logs can be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskArchive {
    /// By the command that prints them.
    #[default]
    Command,
    /// In the file that a host writes them to, `.sigma/archives/SESSION/TASK.log`.
    File,
}

/// What makes two calls a repeat.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepeatMode {
    /// Nothing.
    Off,
    /// Equal tool and canonical parameters.
    #[default]
    #[serde(alias = "on")]
    Hash,
    /// The same, top-level nulls left out.
    Dedup,
}

/// What a superseded call shows of its input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HideInput {
    /// All of it.
    #[default]
    None,
    /// An object of the shown parameters.
    Metadata,
    /// The same, but only of writes and edits: what they wrote stands in the file.
    Changes,
}

impl HideInput {
    /// Whether the input of a superseded call of this class is hidden.
    pub(super) const fn is_meant(self, class: Option<ToolClass>) -> bool {
        match self {
            Self::None => false,
            Self::Metadata => true,
            Self::Changes => matches!(class, Some(ToolClass::Write | ToolClass::Edit)),
        }
    }
}

/// What edges of the file rule are called.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileKind {
    /// `file`.
    #[default]
    File,
    /// `supersede_write`.
    SupersedeWrite,
    /// `supersede_read`.
    SupersedeRead,
}

/// The repeat rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Repeat {
    /// What is compared, or off.
    pub mode: RepeatMode,
    /// Tools the rule never means.
    pub except: Globs,
    /// Tools protected from this rule, besides the common ones.
    pub protected_tools: Globs,
}

/// The file rule: which class of call clears which class of view.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FileRule {
    /// What a whole-file write clears.
    pub write_clears: Vec<ToolClass>,
    /// What an edit clears.
    pub edit_clears: Vec<ToolClass>,
    /// What a delete clears.
    pub delete_clears: Vec<ToolClass>,
    /// What a read clears.
    pub read_clears: Vec<ToolClass>,
    /// What a search clears (an equal search key).
    pub search_clears: Vec<ToolClass>,
    /// Any file call clears; set, it stands for the matrix of `acp-head`, unset for that of `acp`.
    pub any_call: bool,
    /// Name of the edges.
    pub kind: FileKind,
    /// Turns in which the file must rest before an edit clears earlier views; 0: at once.
    pub edit_quiet_steps: u32,
    /// Tools protected from this rule, besides the common ones.
    pub protected_tools: Globs,
}

impl FileRule {
    /// What a call of class `class` clears.
    pub fn clears(&self, class: ToolClass) -> &[ToolClass] {
        match class {
            ToolClass::Write => &self.write_clears,
            ToolClass::Edit => &self.edit_clears,
            ToolClass::Delete => &self.delete_clears,
            ToolClass::Read => &self.read_clears,
            ToolClass::Search => &self.search_clears,
            ToolClass::Other => &[],
        }
    }

    /// Sets the matrix that `any_call` stands for.
    pub(super) fn set_any_call(&mut self, any_call: bool) {
        let views = vec![ToolClass::Read, ToolClass::Write, ToolClass::Edit];
        self.any_call = any_call;
        self.write_clears.clone_from(&views);
        self.edit_clears.clone_from(&views);
        self.delete_clears.clone_from(&views);
        self.read_clears = if any_call { views } else { Vec::new() };
        self.search_clears = if any_call { vec![ToolClass::Search] } else { Vec::new() };
    }
}

/// Failed calls lose their long parameters.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PurgeErrors {
    /// Whether the rule is on.
    pub on: bool,
    /// Age in turns at which it acts; 0 counts as 1.
    pub turns: u32,
    /// Tools protected from this rule, besides the common ones.
    pub protected_tools: Globs,
}

/// Long outputs keep head and tail.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Truncate {
    /// Whether the rule is on.
    pub on: bool,
    /// Estimated tokens above which it acts.
    pub max_tokens: u32,
    /// Part of `max_tokens` for the leading lines.
    pub head_ratio: f64,
    /// Part of `max_tokens` for the trailing lines.
    pub tail_ratio: f64,
    /// Age in turns at which it acts.
    pub turns_min: u32,
    /// Tools it means.
    pub tools: Globs,
}

/// Long reasoning keeps its beginning and its conclusions.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CompressReasoning {
    /// Whether the rule is on.
    pub on: bool,
    /// Estimated tokens above which it acts.
    pub max_tokens: u32,
    /// Age in turns at which it acts.
    pub turns_min: u32,
}

/// What nothing has touched for some turns steps aside.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ShelfRule {
    /// Whether the rule is on.
    pub on: bool,
    /// Turns without a touch after which a read is shelved.
    pub read_turns: u32,
    /// The same for outputs of all other tools.
    pub other_turns: u32,
    /// The same for the parameters of writes and edits.
    pub input_turns: u32,
    /// Estimated tokens from which on it acts.
    pub tokens_min: u32,
    /// Tools it never means.
    pub except: Globs,
}

/// Rules that set aside what nothing has touched, each with ages of its own.
#[derive(Clone, PartialEq, Debug)]
pub struct IdleRules {
    /// Estimated tokens from which on they act.
    pub tokens_min: u32,
    /// Part of an age that is enough when the cache is cold; 1: no part.
    pub cold_share: f64,
    /// Ages by the number of the rule.
    ages: Vec<Ages>,
}

impl IdleRules {
    /// Those of a preset.
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

    pub(crate) fn ages(&self, number: usize) -> Ages {
        self.ages.get(number).copied().unwrap_or_default()
    }

    pub(crate) fn set_ages(&mut self, number: usize, ages: Ages) {
        if let Some(known) = self.ages.get_mut(number) {
            *known = ages;
        }
    }

    /// The age that is enough when the cache is cold, if that is less.
    pub(crate) fn turns_when_cold(&self, turns: u32) -> Option<u32> {
        if self.cold_share >= 1.0 {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part of a u32")]
        let part = (f64::from(turns) * self.cold_share.max(0.0)).ceil() as u32;
        Some(part.max(TURNS_MIN))
    }
}

/// Calls of the newest turns supersede nothing yet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TurnProtection {
    /// Whether it is on.
    pub enabled: bool,
    /// Turns.
    pub turns: u32,
}

impl TurnProtection {
    /// Turns that a call must be old to be ready: 0 if off.
    pub const fn age_min(&self) -> u32 {
        if self.enabled { self.turns } else { 0 }
    }
}

/// Everything that decides what supersedes what.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let _ = session.append([acpdb_engine::Entry::step("step-1")])?;
/// use acpdb_engine::{Policy, Seq};
///
/// let policy = Policy::from_json(r#"{"preset": "economy", "same_turn": false}"#)?;
/// store.set_policy(Some(session.id()), &policy, Some("repeats matter here"))?;
/// assert_eq!(store.policy(Some(session.id()), Seq::MAX)?.preset, "economy");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// Name of the preset it began with.
    pub preset: String,
    /// Whether any rule acts by itself. Commands always work.
    pub automatic: bool,
    /// How paths are compared.
    pub paths: Paths,
    /// The repeat rule.
    pub repeat: Repeat,
    /// The file rule.
    pub file: FileRule,
    /// Whether a call may supersede one of its own turn.
    pub same_turn: bool,
    /// Whether repeat and file take failed calls too.
    pub failed: bool,
    /// What a superseded call shows of its input.
    pub hide_input: HideInput,
    /// Rules that a key turns on, and nothing else decides.
    pub switches: Switches,
    /// Failed calls lose long parameters.
    pub purge_errors: PurgeErrors,
    /// Long outputs keep head and tail.
    pub truncate: Truncate,
    /// Long reasoning keeps beginning and conclusions.
    pub compress_reasoning: CompressReasoning,
    /// Tools no rule but `todo` hides.
    pub protected_tools: Globs,
    /// Files whose calls no rule hides or shortens.
    pub protected_files: Globs,
    /// What nothing has touched for some turns.
    pub shelf: ShelfRule,
    /// The same by kind and size.
    pub idle: IdleRules,
    /// When what is concluded is sent.
    pub serve: ServeSettings,
    /// Calls of the newest turns.
    pub turn_protection: TurnProtection,
    /// Todo reminders.
    pub reminder: ReminderSettings,
    /// Reflection.
    pub automata: ReflectionSettings,
    /// Outputs of the active task that stay; older ones are hidden.
    pub task_outputs_max: u32,
    /// Where tombstones say that an evicted output can be read.
    pub task_archive: TaskArchive,
}

/// A policy that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// Not JSON or not TOML.
    #[error("the policy is not {format}: {reason}")]
    Syntax {
        /// What was expected.
        format: &'static str,
        /// What the parser says.
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
        /// What it takes.
        expected: &'static str,
        /// What was given.
        found: String,
    },
}

fn suggest(suggestion: Option<&str>) -> String {
    suggestion.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// The known name nearest to `name`, if any is near.
pub(crate) fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<String> {
    known
        .map(|candidate| {
            let swapped = strsim::normalized_damerau_levenshtein(name, candidate);
            (strsim::jaro_winkler(name, candidate) + swapped, candidate)
        })
        .filter(|(score, _)| *score > 1.0)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, candidate)| candidate.to_owned())
}

impl Policy {
    /// Reads a policy from JSON: an optional `preset` (else `acp`) and the keys that differ.
    ///
    /// Keys are flat (`file.kind`) or nested (`{"file":{"kind":..}}`); a rule that is both a switch and a group of
    /// settings takes `on` for the switch when nested. A bare string is a preset's name.
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

    /// Late keys as if the preset did not know them. A policy that was recorded whole names those that it means, and a
    /// preset that changed since does not change what was recorded.
    fn forget_late_keys(&mut self) {
        let plain = Self::default();
        for key in policy_keys().iter().filter(|key| is_late(key.name)) {
            // A value that a key gave is one that it takes.
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
        // The switch that stands for a whole matrix goes first, so that single entries can differ from it.
        flat.sort_by_key(|(key, _)| key != "file.any_call");
        let mut changed = self.clone();
        for (key, value) in &flat {
            if key == "preset" {
                continue;
            }
            let Some(entry) = policy_keys().iter().find(|entry| entry.name == key) else {
                return Err(PolicyError::UnknownKey {
                    key: key.clone(),
                    suggestion: nearest(key, policy_keys().iter().map(|entry| entry.name)),
                });
            };
            entry.set(&mut changed, value).map_err(|error| match error {
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
        let mut map = Map::new();
        map.insert("preset".to_owned(), Value::String(self.preset.clone()));
        let plain = Self::default();
        for key in policy_keys() {
            let value = key.value(self);
            // Keys that later versions brought are left out where they change nothing: what was recorded without them
            // means the same, and has the same digest.
            if !(is_late(key.name) && value == key.value(&plain)) {
                map.insert(key.name.to_owned(), value);
            }
        }
        Value::Object(map)
    }

    /// [`Policy::to_value`] as JSON text.
    pub fn to_json(&self) -> String {
        self.to_value().to_string()
    }

    /// The preset's name and the keys that differ from it.
    pub fn compact(&self) -> Value {
        let preset = Self::preset(&self.preset).unwrap_or_default();
        let mut map = Map::new();
        map.insert("preset".to_owned(), Value::String(self.preset.clone()));
        for key in policy_keys() {
            let value = key.value(self);
            if value != key.value(&preset) {
                map.insert(key.name.to_owned(), value);
            }
        }
        Value::Object(map)
    }

    /// Whether any rule sets aside what is idle.
    pub(crate) fn has_idle_rules(&self) -> bool {
        self.shelf.on || self.idle.ages.iter().any(|ages| *ages != Ages::default())
    }

    /// Turns for which an output of medium size stays that no rule takes for another reason; `None`: for ever.
    pub fn other_turns(&self) -> Option<u32> {
        let shelf = self.shelf.on.then_some(self.shelf.other_turns);
        let searches = self.idle.ages.iter().zip(SHORTENING).find(|(_, rule)| rule.name == "idle_searches");
        shelf.or_else(|| searches.map(|(ages, _)| ages.medium).filter(|turns| *turns > 0))
    }

    /// Whether hashes are shown as six digits without a letter, as `acp-head` does.
    pub fn bare_hashes(&self) -> bool {
        self.preset == "acp-head"
    }
}

/// Keys that are absent from policies recorded by the first version. Their defaults change nothing, and stay for ever.
fn is_late(key: &str) -> bool {
    key.split('.').next().is_some_and(|group| matches!(group, "shelf" | "serve" | "idle"))
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

/// Nested objects become keys with dots. The parsers bound the depth of what it parses.
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

#[cfg(test)]
mod tests;
