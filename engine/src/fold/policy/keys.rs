//! The keys of a policy: the name of each, and how it is read and written. One line a key.

use std::sync::LazyLock;

use serde::de::DeserializeOwned;
use serde::{Deserialize as _, Serialize};
use serde_json::Value;

use crate::event::ToolClass;
use crate::fold::policy_values::{Ages, FileRule, Policy};
use crate::fold::rules::ages_keys;
use crate::fold::rules::switches;
use crate::text::{GlobError, Globs};

/// A value that a key does not take.
pub(super) enum KeyError {
    /// The values that the key takes.
    Kind(&'static str),
    /// A pattern that cannot be used.
    Glob(GlobError),
}

/// One key.
pub struct PolicyKey {
    /// Its name; a setting of a rule takes a dot.
    pub name: &'static str,
    place: ValueField,
}

/// The place of a key's value in a policy.
enum ValueField {
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
            ValueField::Field { get, .. } => get(policy),
            ValueField::Switch(number) => Value::Bool(policy.switches.is_on(number)),
            ValueField::Ages(number) => of_ages(policy.idle.ages(number)),
        }
    }

    pub(super) fn set(&self, policy: &mut Policy, value: &Value) -> Result<(), KeyError> {
        match self.place {
            ValueField::Field { set, .. } => set(policy, value),
            ValueField::Switch(number) => {
                let mut on = policy.switches.is_on(number);
                flag(&mut on, value)?;
                policy.switches.set(number, on);
                Ok(())
            }
            ValueField::Ages(number) => {
                policy.idle.set_ages(number, ages(value)?);
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

/// A key a line: its name, its field, the function that sets it; `in` where that function sets more than the field.
macro_rules! keys {
    ($( $name:literal $($field:ident).+ $(in $place:ident)? : $set:expr );+ $(;)?) => {
        [ $( PolicyKey {
            name: $name,
            place: ValueField::Field {
                get: |policy| json(&policy.$($field).+),
                set: |policy, value| $set(keys!(@ policy $(in $place)? : $($field).+), value),
            },
        } ),+ ]
    };
    (@ $policy:ident : $($field:ident).+) => { &mut $policy.$($field).+ };
    (@ $policy:ident in $place:ident : $($field:ident).+) => { &mut $policy.$place };
}

/// Every key, in the order in which a whole policy lists them.
pub fn policy_keys() -> &'static [PolicyKey] {
    static ALL: LazyLock<Vec<PolicyKey>> = LazyLock::new(|| {
        let switches = switches()
            .map(|(number, switch)| PolicyKey { name: switch.key, place: ValueField::Switch(number) });
        let ages =
            ages_keys().map(|(number, ages)| PolicyKey { name: ages.key, place: ValueField::Ages(number) });
        supersession().into_iter().chain(switches).chain(others()).chain(ages).collect()
    });
    &ALL
}

/// Keys of rules that supersede, other than those with a plain switch.
fn supersession() -> impl IntoIterator<Item = PolicyKey> {
    keys! {
    "automatic" automatic: flag;
    "paths" paths: word("`raw` or `session`");
    "repeat" repeat.mode: word("`off`, `hash` (or `on`) or `dedup`");
    "repeat.except" repeat.except: names;
    "repeat.protected_tools" repeat.protected_tools: names;
    "file.any_call" file.any_call in file: any_call;
    "file.write_clears" file.write_clears: classes;
    "file.edit_clears" file.edit_clears: classes;
    "file.delete_clears" file.delete_clears: classes;
    "file.read_clears" file.read_clears: classes;
    "file.search_clears" file.search_clears: classes;
    "file.kind" file.kind: word("`file`, `supersede_write` or `supersede_read`");
    "file.edit_quiet_steps" file.edit_quiet_steps: count;
    "file.protected_tools" file.protected_tools: names;
    "same_turn" same_turn: flag;
    "failed" failed: flag;
    "hide_input" hide_input: word("`none`, `metadata` or `changes`");
    }
}

/// Keys for shortening, protecting and serving.
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
    "size_notice.tokens" size_notices: sizes;
    "task.outputs_max" task_outputs_max: count;
    "task.archive" task_archive: word("`command` or `file`");
    "shelf" shelf.on: flag;
    "shelf.read_turns" shelf.read_turns: count;
    "shelf.other_turns" shelf.other_turns: count;
    "shelf.input_turns" shelf.input_turns: count;
    "shelf.tokens_min" shelf.tokens_min: count;
    "shelf.except" shelf.except: names;
    "idle.tokens_min" idle.tokens_min: count;
    "idle.cold_share" idle.cold_share: ratio;
    "serve.mode" serve.mode: word("`append_only`, `batched` or `eager`");
    "serve.rule" serve.rule: word("`hybrid`, `ski_rental`, `cold` or `prompts`");
    "serve.horizon" serve.horizon: amount;
    "serve.waiting" serve.waiting: amount;
    "serve.debt_max" serve.debt_max: ratio;
    "serve.pointing" serve.pointing: flag;
    "serve.pointing_tokens_min" serve.pointing_tokens_min: count;
    "serve.pointers_max" serve.pointers_max: count;
    "serve.price.input" serve.price.input: amount;
    "serve.price.read" serve.price.read: amount;
    "serve.price.write" serve.price.write: amount;
    "serve.price.ttl_seconds" serve.price.ttl_seconds: count;
    }
}

/// The JSON value of a field.
fn json<T: Serialize>(value: &T) -> Value {
    // Switches, numbers, words and lists of them: no part of it is refused.
    serde_json::to_value(value).unwrap_or_default()
}

fn flag(place: &mut bool, value: &Value) -> Result<(), KeyError> {
    *place = match value {
        Value::Bool(value) => *value,
        Value::String(word) if word == "on" => true,
        Value::String(word) if word == "off" => false,
        _ => return Err(KeyError::Kind("true or false")),
    };
    Ok(())
}

/// The file rule as a whole: off, no class of calls clears anything; on, it is as its preset has it.
pub(super) fn set_file_rule(policy: &mut Policy, value: &Value) -> Result<(), KeyError> {
    let mut is_on = true;
    flag(&mut is_on, value)?;
    let preset = Policy::preset(&policy.preset).unwrap_or_default();
    let clears = |key: &&PolicyKey| key.name.starts_with("file.") && key.name.ends_with("_clears");
    for key in policy_keys().iter().filter(clears) {
        key.set(policy, &if is_on { key.value(&preset) } else { Value::Array(Vec::new()) })?;
    }
    Ok(())
}

fn any_call(rule: &mut FileRule, value: &Value) -> Result<(), KeyError> {
    let mut any_call = rule.any_call;
    flag(&mut any_call, value)?;
    if any_call != rule.any_call {
        rule.set_any_call(any_call);
    }
    Ok(())
}

fn count(place: &mut u32, value: &Value) -> Result<(), KeyError> {
    let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
    *place = number.ok_or(KeyError::Kind("a whole number"))?;
    Ok(())
}

fn amount(place: &mut f64, value: &Value) -> Result<(), KeyError> {
    let number = value.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    *place = number.ok_or(KeyError::Kind("a number, 0 or more"))?;
    Ok(())
}

fn ratio(place: &mut f64, value: &Value) -> Result<(), KeyError> {
    let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
    *place = number.ok_or(KeyError::Kind("a number from 0 to 1"))?;
    Ok(())
}

/// Sets a word, one of those that `expected` names.
fn word<W: DeserializeOwned>(expected: &'static str) -> impl Fn(&mut W, &Value) -> Result<(), KeyError> {
    move |place, value| {
        // People write `off` for it, and other programs make `false` of that.
        let word = match value {
            Value::Bool(true) => &Value::from("on"),
            Value::Bool(false) => &Value::from("off"),
            other => other,
        };
        *place = W::deserialize(word).map_err(|_| KeyError::Kind(expected))?;
        Ok(())
    }
}

/// Texts of a list; `None` if the value is no list of texts.
fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

fn names(place: &mut Globs, value: &Value) -> Result<(), KeyError> {
    let patterns = texts(value).ok_or(KeyError::Kind("a list of tool names"))?;
    *place = Globs::names(patterns).map_err(KeyError::Glob)?;
    Ok(())
}

fn files(place: &mut Globs, value: &Value) -> Result<(), KeyError> {
    let patterns = texts(value).ok_or(KeyError::Kind("a list of file patterns"))?;
    *place = Globs::guarded_paths(patterns).map_err(KeyError::Glob)?;
    Ok(())
}

fn classes(place: &mut Vec<ToolClass>, value: &Value) -> Result<(), KeyError> {
    *place = Vec::deserialize(value)
        .map_err(|_| KeyError::Kind("a list of `read`, `write`, `edit`, `delete`, `search`"))?;
    Ok(())
}

fn sizes(place: &mut Vec<u32>, value: &Value) -> Result<(), KeyError> {
    let size = |value: &Value| {
        let number = value.as_u64().or_else(|| value.as_str()?.parse().ok());
        number.and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0)
    };
    let all = match value {
        Value::Array(values) => values.iter().map(size).collect(),
        Value::Bool(false) => Some(Vec::new()),
        one if one.as_str() == Some("off") => Some(Vec::new()),
        one => size(one).map(|size| vec![size]),
    };
    let mut all: Vec<u32> = all.ok_or(KeyError::Kind("a list of numbers of tokens, or off"))?;
    all.sort_unstable();
    all.dedup();
    *place = all;
    Ok(())
}

/// One number where all sizes have the same age.
fn of_ages(ages: Ages) -> Value {
    if ages == Ages::all(ages.large) {
        return Value::from(ages.large);
    }
    Value::from(vec![ages.large, ages.medium, ages.small])
}

fn ages(value: &Value) -> Result<Ages, KeyError> {
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
    ages.ok_or(KeyError::Kind("a number of turns (0: never), or three: for 1500 tokens, for 300, for fewer"))
}
