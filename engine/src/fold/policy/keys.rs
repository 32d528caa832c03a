//! The keys of a policy: name, how to read it, how to write it. One line a key.

use std::sync::LazyLock;

use serde_json::Value;

use crate::fold::policy_values::Policy;
use crate::fold::rules::ages_keys;
use crate::fold::rules::switches;
use crate::text::{GlobError, Globs};

/// A value that a key does not take.
pub(super) enum KeyError {
    /// What it takes.
    Kind(&'static str),
    /// A pattern that cannot be used.
    Glob(GlobError),
}

/// One key.
pub struct PolicyKey {
    /// Its name; a setting of a rule takes a dot.
    pub name: &'static str,
    place: Place,
}

/// Where a key's value is.
enum Place {
    Field {
        get: fn(&Policy) -> Value,
        set: fn(&mut Policy, &Value) -> Result<(), KeyError>,
    },
    /// The switch of the rule with this number.
    Switch(u8),
    /// The ages of the shortening rule with this number.
    Ages(usize),
}

impl PolicyKey {
    /// Its value in a policy.
    pub fn value(&self, policy: &Policy) -> Value {
        match self.place {
            Place::Field { get, .. } => get(policy),
            Place::Switch(number) => Value::Bool(policy.switches.is_on(number)),
            Place::Ages(number) => ages::get(policy.idle.ages(number)),
        }
    }

    pub(super) fn set(&self, policy: &mut Policy, value: &Value) -> Result<(), KeyError> {
        match self.place {
            Place::Field { set, .. } => set(policy, value),
            Place::Switch(number) => {
                let mut on = policy.switches.is_on(number);
                flag::set(&mut on, value)?;
                policy.switches.set(number, on);
                Ok(())
            }
            Place::Ages(number) => {
                policy.idle.set_ages(number, ages::read(value)?);
                Ok(())
            }
        }
    }
}

impl std::fmt::Debug for PolicyKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! keys {
    ($( $name:literal $($field:ident).+ : $with:ident );+ $(;)?) => {
        [ $( PolicyKey {
            name: $name,
            place: Place::Field {
                get: |policy| $with::get(&policy.$($field).+),
                set: |policy, value| $with::set(&mut policy.$($field).+, value),
            },
        } ),+ ]
    };
}

/// Every key, in the order in which a whole policy lists them.
pub fn policy_keys() -> &'static [PolicyKey] {
    static ALL: LazyLock<Vec<PolicyKey>> = LazyLock::new(|| {
        let switches =
            switches().map(|(number, switch)| PolicyKey { name: switch.key, place: Place::Switch(number) });
        let ages = ages_keys().map(|(number, ages)| PolicyKey { name: ages.key, place: Place::Ages(number) });
        supersession().into_iter().chain(switches).chain(others()).chain(ages).collect()
    });
    &ALL
}

/// Keys of rules that supersede, other than those that are a switch and no more.
fn supersession() -> impl IntoIterator<Item = PolicyKey> {
    keys! {
    "automatic" automatic: flag;
    "paths" paths: word;
    "repeat" repeat.mode: word;
    "repeat.except" repeat.except: names;
    "repeat.protected_tools" repeat.protected_tools: names;
    "file.any_call" file: any_call;
    "file.write_clears" file.write_clears: classes;
    "file.edit_clears" file.edit_clears: classes;
    "file.delete_clears" file.delete_clears: classes;
    "file.read_clears" file.read_clears: classes;
    "file.search_clears" file.search_clears: classes;
    "file.kind" file.kind: word;
    "file.edit_quiet_steps" file.edit_quiet_steps: count;
    "file.protected_tools" file.protected_tools: names;
    "same_turn" same_turn: flag;
    "failed" failed: flag;
    "hide_input" hide_input: word;
    }
}

/// Keys of what shortens, protects and serves.
fn others() -> impl IntoIterator<Item = PolicyKey> {
    keys! {
    "purge_errors" purge_errors.on: flag;
    "purge_errors.turns" purge_errors.turns: count;
    "purge_errors.protected_tools" purge_errors.protected_tools: names;
    "truncate" truncate.on: flag;
    "truncate.max_tokens" truncate.max_tokens: count;
    "truncate.head_ratio" truncate.head_ratio: ratio;
    "truncate.tail_ratio" truncate.tail_ratio: ratio;
    "truncate.turns_min" truncate.turns_min: count;
    "truncate.tools" truncate.tools: names;
    "compress_reasoning" compress_reasoning.on: flag;
    "compress_reasoning.max_tokens" compress_reasoning.max_tokens: count;
    "compress_reasoning.turns_min" compress_reasoning.turns_min: count;
    "protected_tools" protected_tools: names;
    "protected_files" protected_files: files;
    "turn_protection" turn_protection.enabled: flag;
    "turn_protection.turns" turn_protection.turns: count;
    "todo_reminder" reminder.enabled: flag;
    "todo_reminder.initial_turns" reminder.initial_turns: count;
    "todo_reminder.repeat_turns" reminder.repeat_turns: count;
    "todo_reminder.stuck_task_turns" reminder.stuck_task_turns: count;
    "automata" automata.enabled: flag;
    "automata.initial_turns" automata.initial_turns: count;
    "task.outputs_max" task_outputs_max: count;
    "task.archive" task_archive: word;
    "shelf" shelf.on: flag;
    "shelf.read_turns" shelf.read_turns: count;
    "shelf.other_turns" shelf.other_turns: count;
    "shelf.input_turns" shelf.input_turns: count;
    "shelf.tokens_min" shelf.tokens_min: count;
    "shelf.except" shelf.except: names;
    "idle.tokens_min" idle.tokens_min: count;
    "idle.cold_share" idle.cold_share: ratio;
    "serve.mode" serve.mode: word;
    "serve.rule" serve.rule: word;
    "serve.horizon" serve.horizon: amount;
    "serve.waiting" serve.waiting: amount;
    "serve.pointing" serve.pointing: flag;
    "serve.pointing_tokens_min" serve.pointing_tokens_min: count;
    "serve.pointers_max" serve.pointers_max: count;
    "serve.price.input" serve.price.input: amount;
    "serve.price.read" serve.price.read: amount;
    "serve.price.write" serve.price.write: amount;
    "serve.price.ttl_seconds" serve.price.ttl_seconds: count;
    }
}

mod flag {
    use super::{KeyError, Value};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the same form for every kind of value")]
    pub(super) fn get(value: &bool) -> Value {
        Value::Bool(*value)
    }

    pub(super) fn set(place: &mut bool, value: &Value) -> Result<(), KeyError> {
        *place = match value {
            Value::Bool(value) => *value,
            Value::String(word) if word == "on" => true,
            Value::String(word) if word == "off" => false,
            _ => return Err(KeyError::Kind("true or false")),
        };
        Ok(())
    }
}

mod count {
    use super::{KeyError, Value};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the same form for every kind of value")]
    pub(super) fn get(value: &u32) -> Value {
        Value::from(*value)
    }

    pub(super) fn set(place: &mut u32, value: &Value) -> Result<(), KeyError> {
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        *place = number.ok_or(KeyError::Kind("a whole number"))?;
        Ok(())
    }
}

mod amount {
    use super::{KeyError, Value};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the same form for every kind of value")]
    pub(super) fn get(value: &f64) -> Value {
        Value::from(*value)
    }

    pub(super) fn set(place: &mut f64, value: &Value) -> Result<(), KeyError> {
        let number = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
        *place = number.ok_or(KeyError::Kind("a number, 0 or more"))?;
        Ok(())
    }
}

mod ratio {
    use super::{KeyError, Value};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "the same form for every kind of value")]
    pub(super) fn get(value: &f64) -> Value {
        Value::from(*value)
    }

    pub(super) fn set(place: &mut f64, value: &Value) -> Result<(), KeyError> {
        let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
        *place = number.ok_or(KeyError::Kind("a number from 0 to 1"))?;
        Ok(())
    }
}

mod word {
    use serde::Serialize;
    use serde::de::DeserializeOwned;

    use super::{KeyError, Value};

    pub(super) trait Word: Serialize + DeserializeOwned {
        const EXPECTED: &'static str;
    }

    impl Word for crate::fold::policy_values::Paths {
        const EXPECTED: &'static str = "`raw` or `session`";
    }
    impl Word for crate::fold::policy_values::RepeatMode {
        const EXPECTED: &'static str = "`off`, `hash` (or `on`) or `dedup`";
    }
    impl Word for crate::fold::policy_values::HideInput {
        const EXPECTED: &'static str = "`none`, `metadata` or `changes`";
    }
    impl Word for crate::fold::policy_values::ServeMode {
        const EXPECTED: &'static str = "`append_only`, `batched` or `eager`";
    }
    impl Word for crate::fold::policy_values::FlushRule {
        const EXPECTED: &'static str = "`hybrid`, `ski_rental`, `cold` or `prompts`";
    }
    impl Word for crate::fold::policy_values::TaskArchive {
        const EXPECTED: &'static str = "`command` or `file`";
    }
    impl Word for crate::fold::policy_values::FileKind {
        const EXPECTED: &'static str = "`file`, `supersede_write` or `supersede_read`";
    }

    pub(super) fn get<W: Word>(value: &W) -> Value {
        serde_json::to_value(value).unwrap_or_default()
    }

    pub(super) fn set<W: Word>(place: &mut W, value: &Value) -> Result<(), KeyError> {
        // `off` is what people write for it, and `false` is what other programs make of that.
        let word = match value {
            Value::Bool(true) => &Value::from("on"),
            Value::Bool(false) => &Value::from("off"),
            other => other,
        };
        *place = W::deserialize(word).map_err(|_| KeyError::Kind(W::EXPECTED))?;
        Ok(())
    }
}

/// Texts of a list; `None` if it is none.
fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

mod names {
    use super::{Globs, KeyError, Value, texts};

    pub(super) fn get(value: &Globs) -> Value {
        Value::from(value.patterns().to_vec())
    }

    pub(super) fn set(place: &mut Globs, value: &Value) -> Result<(), KeyError> {
        let patterns = texts(value).ok_or(KeyError::Kind("a list of tool names"))?;
        *place = Globs::names(patterns).map_err(KeyError::Glob)?;
        Ok(())
    }
}

mod files {
    use super::{Globs, KeyError, Value, texts};

    pub(super) fn get(value: &Globs) -> Value {
        Value::from(value.patterns().to_vec())
    }

    pub(super) fn set(place: &mut Globs, value: &Value) -> Result<(), KeyError> {
        let patterns = texts(value).ok_or(KeyError::Kind("a list of file patterns"))?;
        *place = Globs::guarded_paths(patterns).map_err(KeyError::Glob)?;
        Ok(())
    }
}

mod classes {
    use serde::Deserialize as _;

    use super::{KeyError, Value};
    use crate::event::ToolClass;

    pub(super) fn get(value: &Vec<ToolClass>) -> Value {
        serde_json::to_value(value).unwrap_or_default()
    }

    pub(super) fn set(place: &mut Vec<ToolClass>, value: &Value) -> Result<(), KeyError> {
        *place = Vec::deserialize(value)
            .map_err(|_| KeyError::Kind("a list of `read`, `write`, `edit`, `delete`, `search`"))?;
        Ok(())
    }
}

mod ages {
    use super::{KeyError, Value};
    use crate::fold::policy_values::Ages;

    const EXPECTED: &str = "a number of turns (0: never), or three: for 1500 tokens, for 300, for fewer";

    /// One number where all sizes have the same age.
    pub(super) fn get(ages: Ages) -> Value {
        if ages == Ages::all(ages.large) {
            return Value::from(ages.large);
        }
        Value::from(vec![ages.large, ages.medium, ages.small])
    }

    pub(super) fn read(value: &Value) -> Result<Ages, KeyError> {
        let turns = |value: &Value| value.as_u64().and_then(|turns| u32::try_from(turns).ok());
        let ages = match value {
            Value::Array(values) => match values.as_slice() {
                [large, medium, small] => turns(large)
                    .zip(turns(medium))
                    .zip(turns(small))
                    .map(|((large, medium), small)| Ages::of(large, medium, small)),
                _ => None,
            },
            value => turns(value).map(Ages::all),
        };
        ages.ok_or(KeyError::Kind(EXPECTED))
    }
}

mod any_call {
    use super::{KeyError, Value};
    use crate::fold::policy_values::FileRule;

    pub(super) fn get(value: &FileRule) -> Value {
        Value::Bool(value.any_call)
    }

    pub(super) fn set(place: &mut FileRule, value: &Value) -> Result<(), KeyError> {
        let mut any_call = place.any_call;
        super::flag::set(&mut any_call, value)?;
        if any_call != place.any_call {
            place.set_any_call(any_call);
        }
        Ok(())
    }
}
