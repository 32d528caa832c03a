use expect_test::expect;

use super::*;

#[test]
#[expect(clippy::too_many_lines, reason = "one table of all presets")]
fn presets_differ_in_these_keys() {
    let mut table = String::new();
    for name in PRESETS {
        let policy = Policy::preset(name).unwrap();
        let acp = Policy::default();
        for key in policy_keys() {
            if key.value(&policy) != key.value(&acp) {
                table += &format!("{name} {} {}\n", key.name, key.value(&policy));
            }
        }
    }
    expect![[r#"
        balanced file.edit_quiet_steps 4
        careful file.edit_clears []
        acp-head file.any_call true
        acp-head file.read_clears ["read","write","edit"]
        acp-head file.search_clears ["search"]
        acp-head hide_input "metadata"
        acp-head url true
        acp-head state_query true
        acp-head snapshot true
        acp-head retry true
        acp-head context true
        acp-head serve.pointing false
        dcp repeat "dedup"
        dcp file.write_clears []
        dcp file.edit_clears []
        dcp file.delete_clears []
        dcp file.read_clears ["write"]
        dcp file.kind "supersede_write"
        dcp same_turn true
        dcp failed true
        dcp hide_input "metadata"
        dcp todo false
        dcp purge_errors true
        dcp protected_tools []
        dcp protected_files []
        dcp serve.pointing false
        dcp-supersede-reads repeat "off"
        dcp-supersede-reads file.write_clears ["read"]
        dcp-supersede-reads file.edit_clears ["read"]
        dcp-supersede-reads file.delete_clears ["read"]
        dcp-supersede-reads file.kind "supersede_read"
        dcp-supersede-reads same_turn true
        dcp-supersede-reads failed true
        dcp-supersede-reads todo false
        dcp-supersede-reads protected_tools []
        dcp-supersede-reads protected_files []
        dcp-supersede-reads serve.pointing false
        economy file.edit_quiet_steps 6
        economy state_query true
        economy command_family true
        economy idle.tokens_min 40
        economy idle.cold_share 0.1
        economy serve.horizon 6.0
        economy serve.debt_max 1.0
        economy serve.pointing_tokens_min 30
        economy serve.pointers_max 60
        economy idle.subagents 60
        economy idle.notes 7
        economy idle.reads [30,80,80]
        economy idle.shell_reads [10,20,30]
        economy idle.searches [2,3,4]
        economy idle.changes 10
        economy idle.others [5,10,16]
        economy idle.inputs 40
        economy idle.reasoning 1
        economy idle.search_lines [2,2,0]
        economy idle.command_lines [1,1,0]
        calm file.edit_quiet_steps 6
        calm state_query true
        calm command_family true
        calm idle.tokens_min 40
        calm idle.cold_share 0.1
        calm serve.rule "prompts"
        calm serve.horizon 6.0
        calm serve.debt_max 1.0
        calm serve.pointing_tokens_min 30
        calm serve.pointers_max 60
        calm idle.subagents 60
        calm idle.notes 7
        calm idle.reads [30,80,80]
        calm idle.shell_reads [10,20,30]
        calm idle.searches [2,3,4]
        calm idle.changes 10
        calm idle.others [5,10,16]
        calm idle.inputs 40
        calm idle.reasoning 1
        calm idle.search_lines [2,2,0]
        calm idle.command_lines [1,1,0]
        safe file.edit_clears []
        safe file.edit_quiet_steps 6
        safe state_query true
        safe command_family true
        safe idle.tokens_min 40
        safe idle.cold_share 0.1
        safe serve.rule "cold"
        safe serve.horizon 6.0
        safe serve.debt_max 1.0
        safe serve.pointing_tokens_min 30
        safe serve.pointers_max 60
        safe idle.subagents 60
        safe idle.notes 7
        safe idle.reads [30,80,80]
        safe idle.shell_reads [10,20,30]
        safe idle.searches [2,3,4]
        safe idle.changes 10
        safe idle.others [5,10,16]
        safe idle.inputs 40
        safe idle.reasoning 1
        safe idle.search_lines [2,2,0]
        safe idle.command_lines [1,1,0]
    "#]]
    .assert_eq(&table);
}

#[test]
fn whole_policies_survive_json_and_toml() {
    for name in PRESETS {
        let mut policy = Policy::preset(name).unwrap();
        policy.purge_errors.turns = 7;
        assert_eq!(Policy::from_json(&policy.to_json()).unwrap(), policy);
        assert_eq!(Policy::from_value(&policy.compact()).unwrap(), policy);
        let text = toml::to_string(&policy.to_value()).unwrap();
        assert_eq!(Policy::from_toml(&text).unwrap(), policy);
    }
    let nested = "preset = 'dcp'\n[file]\nread_clears = []\n[purge_errors]\non = false\nturns = 9\n";
    let policy = Policy::from_toml(nested).unwrap();
    assert_eq!(
        policy.compact().to_string(),
        r#"{"preset":"dcp","file.read_clears":[],"purge_errors":false,"purge_errors.turns":9}"#
    );
}

/// Lost once: `economy` without its shelf was recorded as plain `economy`, since most presets say `shelf = false`.
#[test]
fn a_preset_without_one_of_its_rules_is_recorded_without_it() {
    for preset in PRESETS {
        for key in policy_keys() {
            let mut policy = Policy::preset(preset).unwrap();
            key.set(&mut policy, &key.value(&Policy::default())).ok().unwrap();
            assert_eq!(Policy::from_json(&policy.to_json()).unwrap(), policy, "{preset} {}", key.name);
        }
    }
}

#[test]
fn mistakes_are_named() {
    let mut table = String::new();
    for text in [
        r#"{"fil.kind":"file"}"#,
        r#"{"fle":"off"}"#,
        r#"{"preset":"apc"}"#,
        r#"{"zzz":1}"#,
        r#"{"todo":"yes"}"#,
        r#"{"purge_errors.turns":-1}"#,
        r#"{"protected_tools":[""]}"#,
        r#"{"file.kind":"files"}"#,
        "[]",
        "{",
    ] {
        table += &format!("{}\n", Policy::from_json(text).unwrap_err());
    }
    expect![[r#"
        no policy key is called `fil.kind`; did you mean `file.kind`?
        no policy key is called `fle`; did you mean `file`?
        no preset is called `apc`; did you mean `acp`?
        no policy key is called `zzz`
        policy key `todo` takes true or false, not `"yes"`
        policy key `purge_errors.turns` takes a whole number, not `-1`
        policy key `protected_tools` takes a list of patterns, not `pattern `` is empty`
        policy key `file.kind` takes `file`, `supersede_write` or `supersede_read`, not `"files"`
        policy key `policy` takes an object of keys, not `[]`
        the policy is not JSON: EOF while parsing an object at line 1 column 1
    "#]]
    .assert_eq(&table);
}

#[test]
fn a_shared_policy_is_the_one_that_its_text_says() {
    let text = |turns: usize| format!(r#"{{"preset":"economy","purge_errors.turns":{turns}}}"#);
    for turns in (1..=KEPT_COUNT + 3).chain(1..4) {
        let read = Policy::from_json(&text(turns)).unwrap();
        assert_eq!(*Policy::shared(&text(turns)).unwrap(), read, "{turns}");
        assert_eq!(*Policy::shared(&text(turns)).unwrap(), read, "{turns}");
    }
    assert_eq!(Policy::shared("nonsense").unwrap_err(), Policy::from_json("nonsense").unwrap_err());
    assert_eq!(*Policy::standard(), Policy::default());
}

#[test]
fn a_shared_policy_is_written_in_the_one_form_whatever_it_was_read_from() {
    let policy = Policy::preset("dcp").unwrap();
    let spaced = serde_json::to_string_pretty(&policy.to_value()).unwrap();
    let read = Policy::shared(&spaced).unwrap();
    for _ in 0..2 {
        assert_eq!(Policy::shared_json(&read.0), policy.to_json());
    }
    assert!(Arc::ptr_eq(&Policy::shared(&spaced).unwrap().0, &read.0));
}

/// Only the command line knew the file rule by its name: a line of `append`, a host's policy and a file of one were refused.
#[test]
fn the_file_rule_is_switched_by_its_name() {
    let compact = |json: &str| Policy::from_json(json).unwrap().compact().to_string();
    let off = r#"{"file.delete_clears":[],"file.edit_clears":[],"file.write_clears":[],"preset":"acp"}"#;
    let sorted = |json: &str| {
        let value: std::collections::BTreeMap<String, Value> = serde_json::from_str(&compact(json)).unwrap();
        serde_json::to_string(&value).unwrap()
    };
    for json in [r#"{"file":"off"}"#, r#"{"file":false}"#, r#"{"file":{"on":false}}"#] {
        assert_eq!(sorted(json), off, "{json}");
    }
    let mut policy = Policy::from_json(r#"{"preset":"careful","file":"off"}"#).unwrap();
    policy.change(serde_json::json!({"file": "on"}).as_object().unwrap()).unwrap();
    assert_eq!(policy, Policy::preset("careful").unwrap());
    // A class of its own holds beside the switch.
    let edits = Policy::from_json(r#"{"file.edit_clears":["read"],"file":"off"}"#).unwrap();
    assert_eq!(edits.file.edit_clears, [ToolClass::Read]);
    assert!(edits.file.write_clears.is_empty());
    let refused = Policy::from_json(r#"{"file":3}"#).unwrap_err().to_string();
    assert!(refused.contains("true or false"), "{refused}");
}
