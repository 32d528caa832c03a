//! `acpdb policy import FILE`: the configuration of a pruning plug-in as a policy.
//!
//! ```text
//! JSON with comments -> rows of the table -> keys of the policy         a setting in no row is named, never dropped in silence
//! ```

use acpdb_engine::fold::Policy as Rules;
use acpdb_engine::ids::Seq;
use acpdb_hosts::import::json::comments::strict;
use serde_json::{Map, Value, json};

use super::{Code, EscapeLevel, Failure, Global, Output, escape, store_path};
use crate::args::PolicyImport;

/// Places of settings, and the keys of the policy with the same meaning.
const COPIED: &[(&str, &str)] = &[
    ("/protectedTools", "protected_tools"),
    ("/tools/settings/protectedTools", "protected_tools"),
    ("/protectedFilePatterns", "protected_files"),
    ("/turnProtection/enabled", "turn_protection"),
    ("/turnProtection/turns", "turn_protection.turns"),
    ("/strategies/deduplication/protectedTools", "repeat.protected_tools"),
    ("/strategies/supersedeWrites/protectedTools", "file.protected_tools"),
    ("/strategies/supersedeReads/protectedTools", "file.protected_tools"),
    ("/strategies/purgeErrors/enabled", "purge_errors"),
    ("/strategies/purgeErrors/turns", "purge_errors.turns"),
    ("/strategies/purgeErrors/protectedTools", "purge_errors.protected_tools"),
    ("/strategies/aggressivePruning/aggressiveFilePrune", "file.any_call"),
    ("/strategies/truncation/enabled", "truncate"),
    ("/strategies/truncation/maxTokens", "truncate.max_tokens"),
    ("/strategies/truncation/headRatio", "truncate.head_ratio"),
    ("/strategies/truncation/tailRatio", "truncate.tail_ratio"),
    ("/strategies/truncation/minTurnsOld", "truncate.turns_min"),
    ("/strategies/truncation/targetTools", "truncate.tools"),
    ("/strategies/thinkingCompression/enabled", "compress_reasoning"),
    ("/strategies/thinkingCompression/maxTokens", "compress_reasoning.max_tokens"),
    ("/strategies/thinkingCompression/minTurnsOld", "compress_reasoning.turns_min"),
    ("/tools/todoReminder/enabled", "todo_reminder"),
    ("/tools/todoReminder/initialTurns", "todo_reminder.initial_turns"),
    ("/tools/todoReminder/repeatTurns", "todo_reminder.repeat_turns"),
    ("/tools/todoReminder/stuckTaskTurns", "todo_reminder.stuck_task_turns"),
    ("/tools/automataMode/enabled", "automata"),
    ("/tools/automataMode/initialTurns", "automata.initial_turns"),
];

/// Settings that are read in other ways.
const READ: &[&str] = &[
    "/$schema",
    "/strategies/deduplication/enabled",
    "/strategies/supersedeWrites/enabled",
    "/strategies/supersedeReads/enabled",
    "/manualMode/enabled",
    "/manualMode/automaticStrategies",
];

/// The result for a configuration.
#[derive(Debug, PartialEq)]
struct ImportedPolicy {
    /// Keys of the policy.
    keys: Map<String, Value>,
    /// Settings for which the policy has no key.
    left: Vec<String>,
}

pub(crate) fn run(global: &Global, args: &PolicyImport, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let text = super::policy_file::read(&args.file, "configuration")?;
    let imported = imported(&text).map_err(|reason| {
        Failure::usage(format!("{}: {reason}", args.file))
            .hint("give the plug-in's own configuration, as JSON")
    })?;
    let policy = Rules::from_value(&Value::Object(imported.keys)).map_err(|error| {
        Failure::usage(format!("{}: {error}", args.file)).hint("acpdb policy show lists the keys")
    })?;
    let seq = if args.dry_run {
        None
    } else {
        let store = store_path::open(global, output)?;
        let seq = store.set_policy(None, &policy, Some("imported"))?;
        debug_assert!(seq > Seq::ZERO, "a policy that is set has a place in the log");
        Some(seq)
    };
    if output.json {
        let answer = super::policy_file::answer(&policy, None, seq);
        return output.json_line(&super::describe::with(answer, json!({"left": imported.left})));
    }
    let done = seq.map_or_else(|| "would be".to_owned(), |seq| format!("{seq}"));
    output.line(escape(
        &format!("{done} policy of the store from here on: {}", policy.compact()),
        EscapeLevel::Text,
    ))?;
    for name in &imported.left {
        output.note(format!("{} has no counterpart here, and is left out", escape(name, EscapeLevel::Line)));
    }
    Ok(Code::Ok)
}

/// A configuration, in keys of the policy.
fn imported(text: &str) -> Result<ImportedPolicy, String> {
    let config: Value =
        serde_json::from_str(&strict(text)).map_err(|error| format!("not valid JSON: {error}"))?;
    if !config.is_object() {
        return Err("not a JSON object".to_owned());
    }
    let mut keys = base(&config);
    for (pointer, key) in COPIED {
        if let Some(value) = config.pointer(pointer) {
            keys.insert((*key).to_owned(), value.clone());
        }
    }
    let off = |pointer: &str| config.pointer(pointer) == Some(&Value::Bool(false));
    if off("/strategies/deduplication/enabled") {
        keys.insert("repeat".to_owned(), json!("off"));
    }
    let is_manual = config.pointer("/manualMode/enabled") == Some(&Value::Bool(true));
    if is_manual && off("/manualMode/automaticStrategies") {
        keys.insert("automatic".to_owned(), json!(false));
    }
    let mut left = Vec::new();
    leaves(&config, "", &mut left);
    left.retain(|pointer| {
        let is_known = COPIED.iter().any(|(known, _)| pointer == known) || READ.contains(&pointer.as_str());
        !is_known
    });
    let left = left.iter().map(|pointer| pointer.trim_start_matches('/').replace('/', ".")).collect();
    Ok(ImportedPolicy { keys, left })
}

/// Settings that only the plug-in acp has: there, the two switches of files mean its file rule.
const ACP: &[&str] = &[
    "/strategies/aggressivePruning",
    "/strategies/truncation",
    "/strategies/thinkingCompression",
    "/tools/todoReminder",
    "/tools/automataMode",
];

/// The preset, and the keys of its file rule.
///
/// The plug-in dcp has two rules of files: `supersedeWrites` hides a write that was read later, `supersedeReads` a read of a file that
/// was written later. A configuration with one of them means the preset of what is on.
fn base(config: &Value) -> Map<String, Value> {
    let mut keys = Map::new();
    let mut put = |key: &str, value: Value| drop(keys.insert(key.to_owned(), value));
    let is = |name: &str| config.pointer(&format!("/strategies/{name}/enabled")).and_then(Value::as_bool);
    let (writes, reads) = (is("supersedeWrites"), is("supersedeReads"));
    let are_off = |classes: &[&str], put: &mut dyn FnMut(&str, Value)| {
        for class in classes {
            put(&format!("file.{class}_clears"), json!([]));
        }
    };
    let is_acp = ACP.iter().any(|pointer| config.pointer(pointer).is_some());
    if is_acp || (writes, reads) == (None, None) {
        put("preset", json!("acp"));
        if [writes, reads].iter().flatten().count() > 0 && writes != Some(true) && reads != Some(true) {
            are_off(&["write", "edit", "delete", "read", "search"], &mut put);
        }
        return keys;
    }
    let clears_reads = ["file.write_clears", "file.edit_clears", "file.delete_clears"];
    match (writes.unwrap_or_default(), reads.unwrap_or_default()) {
        (true, false) => put("preset", json!("dcp")),
        (true, true) => {
            put("preset", json!("dcp"));
            for key in clears_reads {
                put(key, json!(["read"]));
            }
        }
        (false, true) => {
            put("preset", json!("dcp-supersede-reads"));
            // The preset is that rule alone; the plug-in has these two as well, unless they are switched off.
            put("repeat", json!("dedup"));
            put("purge_errors", json!(true));
        }
        (false, false) => {
            put("preset", json!("dcp"));
            are_off(&["read"], &mut put);
        }
    }
    keys
}

/// Pointers to all values that are no objects.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value.as_object() {
        Some(members) => {
            for (name, member) in members {
                leaves(member, &format!("{at}/{name}"), found);
            }
        }
        None => found.push(at.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(text: &str) -> (Value, Vec<String>) {
        let imported = imported(text).unwrap();
        (Rules::from_value(&Value::Object(imported.keys)).unwrap().compact(), imported.left)
    }

    #[test]
    fn settings_become_keys_and_the_rest_is_named() {
        for (text, changed, left) in [
            ("{}", json!({"preset": "acp"}), vec![]),
            (
                "{ // reminders\n \"tools\": {\"todoReminder\": {\"initialTurns\": 3, /* few */ \"stuckTaskTurns\": 5,}}}",
                json!({"preset": "acp", "todo_reminder.initial_turns": 3, "todo_reminder.stuck_task_turns": 5}),
                vec![],
            ),
            (
                r#"{"strategies": {"deduplication": {"enabled": false}}, "debug": true, "x": "// no comment, }"}"#,
                json!({"preset": "acp", "repeat": "off"}),
                vec!["debug", "x"],
            ),
            (
                r#"{"manualMode": {"enabled": true, "automaticStrategies": false}, "turnProtection": {"enabled": true, "turns": 2}}"#,
                json!({"preset": "acp", "automatic": false, "turn_protection": true, "turn_protection.turns": 2}),
                vec![],
            ),
        ] {
            let (found, names) = policy(text);
            assert_eq!(found, changed, "{text}");
            assert_eq!(names, left, "{text}");
        }
    }

    /// `supersedeWrites` was taken for all of the file rule: what the plug-in recommends switched the rule off, and its own rule alone
    /// made writes hide reads.
    #[test]
    fn the_rules_of_dcp_are_told_apart() {
        let strategies = |text: &str| policy(&format!("{{\"strategies\": {{{text}}}}}")).0;
        let (writes, reads) = (
            |on| format!(r#""supersedeWrites": {{"enabled": {on}}}"#),
            |on| format!(r#""supersedeReads": {{"enabled": {on}}}"#),
        );
        let reads_alone = json!({"preset": "dcp-supersede-reads", "repeat": "dedup", "purge_errors": true});
        for (text, expected) in [
            (writes(true), json!({"preset": "dcp"})),
            (reads(true), reads_alone.clone()),
            (format!("{}, {}", writes(false), reads(true)), reads_alone),
            (format!("{}, {}", writes(true), reads(false)), json!({"preset": "dcp"})),
            (
                format!("{}, {}", writes(true), reads(true)),
                json!({"preset": "dcp", "file.write_clears": ["read"], "file.edit_clears": ["read"], "file.delete_clears": ["read"]}),
            ),
            (
                format!("{}, {}", writes(false), reads(false)),
                json!({"preset": "dcp", "file.read_clears": []}),
            ),
            (
                format!(r#"{}, "truncation": {{"enabled": true}}"#, writes(true)),
                json!({"preset": "acp", "truncate": true}),
            ),
        ] {
            assert_eq!(strategies(&text), expected, "{text}");
        }
    }

    #[test]
    fn every_row_names_a_key_that_there_is() {
        for (pointer, key) in COPIED {
            assert!(
                acpdb_engine::fold::policy_keys().iter().any(|known| known.name == *key),
                "{pointer} -> {key}"
            );
        }
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        for text in ["", "[]", "{", "nothing"] {
            assert!(imported(text).is_err(), "{text}");
        }
    }
}
