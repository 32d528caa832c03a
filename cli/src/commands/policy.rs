//! `acpdb policy`: the rules of superseding, as data: shows them, changes them for later events, and lists the presets.

use acpdb_engine::Store;
use acpdb_engine::fold::policy::PRESETS;
use acpdb_engine::fold::{Policy as Rules, PolicyError, policy_keys};
use acpdb_engine::ids::{Seq, StreamId};
use serde_json::{Map, Value, json};

use super::policy_file::{answer, from_file, refused};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, store_path};
use crate::args::{PolicyAct, PolicySetArgs, PolicyShow};

pub(crate) fn run(global: &Global, act: &PolicyAct, output: &mut Output) -> Result<Code, Failure> {
    match act {
        PolicyAct::Show(args) => show(global, args, output),
        PolicyAct::Set(args) => set(global, args, output),
        PolicyAct::Import(args) => super::policy_import::run(global, args, output),
        PolicyAct::Presets => presets(output),
    }
}

/// Sets a policy given as JSON: a preset's name, or an object with the keys that differ from one.
pub(crate) fn set_json(
    store: &Store,
    stream: Option<StreamId>,
    json: &str,
    reason: Option<&str>,
) -> Result<Seq, Failure> {
    let policy = Rules::from_json(json).map_err(refused)?;
    Ok(store.set_policy(stream, &policy, reason)?)
}

fn show(global: &Global, args: &PolicyShow, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let (at, session) = match &global.session {
        Some(name) => {
            let session = super::session::find(&store, name)?;
            (super::find::view(&store, global, &session)?.at(), Some(session))
        }
        None => (super::at::end(&store, global, None)?.unwrap_or(Seq::MAX), None),
    };
    let policy = store.policy(session.as_ref().map(|session| session.id), at)?;
    let changed = policy.compact();
    if output.json {
        return output.json_line(&answer(&policy, session.as_ref(), None));
    }
    let whose = session.map_or_else(|| "the store".to_owned(), |session| format!("session {}", session.name));
    let heading = format!("# policy of {whose}: preset {}", policy.preset);
    output.styled(describe::DIM, crate::output::escape(&heading, EscapeLevel::Line))?;
    // On a terminal the heading says most of it: the preset, of which only some keys were changed.
    let is_short = output.terminal && !args.all;
    let mut left_count = 0_u64;
    for key in policy_keys() {
        let differs = changed.get(key.name).is_some();
        if is_short && !differs {
            left_count += 1;
            continue;
        }
        let line = format!("{} = {}", key.name, key.value(&policy));
        let line = crate::output::escape(&line, EscapeLevel::Text).into_owned();
        output.line(if differs {
            output.paint(describe::BOLD, &format!("{line}  # changed"))
        } else {
            line
        })?;
    }
    if left_count > 0 {
        output.styled(describe::DIM, format!("{left_count} more as the preset has them: --all"))?;
    }
    Ok(Code::Ok)
}

/// The policy that the arguments of `set` ask for.
enum RequestedPolicy {
    /// This policy, in place of the one in force.
    Whole(Box<Rules>),
    /// The policy in force (or this preset) with these keys changed.
    Changed { preset: Option<String>, keys: Vec<(String, String)> },
}

impl RequestedPolicy {
    fn policy(&self, current: &Rules) -> Result<Rules, PolicyError> {
        match self {
            Self::Whole(policy) => Ok((**policy).clone()),
            Self::Changed { preset, keys } => {
                let mut policy = match preset {
                    Some(name) => Rules::from_value(&Value::String(name.clone()))?,
                    None => current.clone(),
                };
                let mut map = Map::new();
                for (key, text) in keys {
                    map.insert(key.clone(), value(key, text));
                }
                policy.change(&map)?;
                Ok(policy)
            }
        }
    }
}

/// A typed value: JSON; else, for a list, its elements with commas between; else a word.
fn value(key: &str, text: &str) -> Value {
    // Words need no quotes: a text that is not JSON is a word or a list of words.
    if let Ok(value) = serde_json::from_str(text) {
        return value;
    }
    let default = Rules::default();
    let is_list = policy_keys()
        .iter()
        .find(|known| known.name == key)
        .is_some_and(|known| known.value(&default).is_array());
    if is_list {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty() && *item != "-");
        return items.map(|item| Value::String(item.to_owned())).collect();
    }
    // The key itself decides the meaning of `on` and `off`.
    Value::String(text.to_owned())
}

fn wanted(what: &[String]) -> Result<RequestedPolicy, Failure> {
    let (pairs, names): (Vec<&String>, Vec<&String>) = what.iter().partition(|text| text.contains('='));
    let keys = pairs.iter().filter_map(|text| text.split_once('='));
    let keys: Vec<(String, String)> =
        keys.map(|(key, value)| (key.trim().to_owned(), value.to_owned())).collect();
    match names.as_slice() {
        [] => Ok(RequestedPolicy::Changed { preset: None, keys }),
        [name] if PRESETS.contains(&name.as_str()) => {
            Ok(RequestedPolicy::Changed { preset: Some((*name).clone()), keys })
        }
        [name] if looks_like_a_file(name) => {
            if !keys.is_empty() {
                return Err(Failure::usage("a file is a whole policy; put the keys into it"));
            }
            Ok(RequestedPolicy::Whole(Box::new(from_file(name)?)))
        }
        // Not a preset: the engine's error suggests a near name.
        [name] => {
            Err(Rules::from_value(&json!(name)).map_or_else(refused, |_| Failure::usage("not a preset")))
        }
        [_, other, ..] => Err(Failure::usage(format!(
            "{other:?} is one too many; give one preset or file, then KEY=VALUE.."
        ))),
    }
}

fn looks_like_a_file(name: &str) -> bool {
    let path = std::path::Path::new(name);
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("toml" | "json")) || name.contains(std::path::MAIN_SEPARATOR)
}

fn set(global: &Global, args: &PolicySetArgs, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let wanted = wanted(&args.what)?;
    let store = store_path::open(global, output)?;
    let session = super::session::named(&store, global.session.as_deref())?;
    let stream = session.as_ref().map(|session| session.id);
    // Checked before anything is recorded, so that a refusal tells its real reason.
    wanted.policy(&*store.policy(stream, Seq::MAX)?).map_err(refused)?;
    let seq = store.change_policy(stream, args.reason.as_deref(), &|current| wanted.policy(current))?;
    let policy = store.policy(stream, Seq::MAX)?;
    // Under another policy no figure holds any more.
    crate::kept::leave(&store);
    if output.json {
        return output.json_line(&answer(&policy, session.as_ref(), Some(seq)));
    }
    let whose = session.map_or_else(|| "the store".to_owned(), |session| format!("session {}", session.name));
    let text = format!("{seq} policy of {whose} from here on: {}", policy.compact());
    output.line(crate::output::escape(&text, EscapeLevel::Text))?;
    Ok(Code::Ok)
}

/// The purpose of each preset, in a line.
fn purpose(preset: &str) -> &'static str {
    match preset {
        "acp" => "repeats, files and todo lists supersede; the default",
        "balanced" => "acp, but a read stays until its file is left alone for four steps",
        "careful" => "acp, but only whole writes and deletes clear earlier reads; edits clear nothing",
        "acp-head" => "acp, any file call, and the rules for urls, state queries, snapshots and retries",
        "dcp" => "dynamic context pruning: repeats, errors, writes that were read",
        "dcp-supersede-reads" => "only reads of files that were written later",
        "economy" => "acp for a prompt cache: quiet steps, inputs, pointers and shelving, where the money is",
        "calm" => "economy, but what was sent changes only with the first request after a prompt",
        "safe" => "economy, but edits clear nothing, and what was sent changes only when the cache is cold",
        _ => "",
    }
}

fn presets(output: &mut Output) -> Result<Code, Failure> {
    let base = Rules::default();
    let differs = |name: &str| {
        let policy = Rules::preset(name).unwrap_or_default();
        let mut keys = Map::new();
        for key in policy_keys() {
            let value = key.value(&policy);
            if key.value(&base) != value {
                keys.insert(key.name.to_owned(), value);
            }
        }
        keys
    };
    if output.json {
        let items: Vec<Value> = PRESETS
            .iter()
            .map(|name| {
                let whole = Rules::preset(name).unwrap_or_default().to_value();
                json!({"name": name, "purpose": purpose(name), "differs_from_acp": differs(name), "policy": whole})
            })
            .collect();
        return output.json_items("acpdb.policy_presets/1", &items);
    }
    for name in PRESETS {
        output.line(format!("{}  {}", output.paint(describe::BOLD, name), purpose(name)))?;
        for (key, value) in differs(name) {
            output.styled(describe::DIM, format!("    {key} = {value}"))?;
        }
    }
    Ok(Code::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(what: &[&str]) -> Result<Value, String> {
        let what: Vec<String> = what.iter().map(|text| (*text).to_owned()).collect();
        let wanted = wanted(&what).map_err(|failure| failure.message)?;
        wanted.policy(&Rules::default()).map(|policy| policy.compact()).map_err(|error| error.to_string())
    }

    /// `calm` and `safe` stood in the list without a word.
    #[test]
    fn each_preset_says_what_it_is_for() {
        let mute: Vec<&&str> = PRESETS.iter().filter(|name| purpose(name).is_empty()).collect();
        assert!(mute.is_empty(), "{mute:?}");
    }

    #[test]
    fn presets_keys_and_both_are_understood() {
        for (what, policy) in [
            (vec!["careful"], json!({"preset": "careful"})),
            (vec!["file.edit_quiet_steps=4"], json!({"preset": "acp", "file.edit_quiet_steps": 4})),
            (vec!["careful", "retry=on"], json!({"preset": "careful", "retry": true})),
            (
                vec!["protected_tools=bash, task"],
                json!({"preset": "acp", "protected_tools": ["bash", "task"]}),
            ),
            (vec!["file.edit_clears=-"], json!({"preset": "acp", "file.edit_clears": []})),
            (vec!["todo=false"], json!({"preset": "acp", "todo": false})),
            // `off` became `false` on its way, and the rule of repeats did not know that value.
            (vec!["repeat=off"], json!({"preset": "acp", "repeat": "off"})),
            (vec!["repeat=false"], json!({"preset": "acp", "repeat": "off"})),
            (vec!["repeat=off", "repeat=on"], json!({"preset": "acp"})),
            // The rule that supersedes most could be switched off by its parts alone.
            (
                vec!["file=off"],
                json!({"preset": "acp", "file.write_clears": [], "file.edit_clears": [], "file.delete_clears": []}),
            ),
            (
                vec!["careful", "file=off"],
                json!({"preset": "careful", "file.write_clears": [], "file.delete_clears": []}),
            ),
            (vec!["file=off", "file=on"], json!({"preset": "acp"})),
            (vec!["file.any_call=on", "file.any_call=off"], json!({"preset": "acp"})),
        ] {
            assert_eq!(set(&what), Ok(policy), "{what:?}");
        }
    }

    #[test]
    fn what_is_unknown_is_refused_with_what_is_near() {
        for (what, part) in [
            (vec!["carefull"], "did you mean `careful`?"),
            (vec!["file.edit_quiet_step=4"], "did you mean `file.edit_quiet_steps`?"),
            (vec!["todo=maybe"], "todo"),
            (vec!["acp", "careful"], "one too many"),
        ] {
            let message = set(&what).unwrap_err();
            assert!(message.contains(part), "{what:?}: {message}");
        }
    }
}
