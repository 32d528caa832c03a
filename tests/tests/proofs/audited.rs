//! The audit report, compared with the output of `log`, `verify` and `checkpoint show`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::world::{FEED, SESSION, World};
use super::{said, signed, tells};

fn report(world: &World, arguments: &[&str], file: &str) -> Value {
    let ran = world.run(&[&["export", "audit", "--force", "-o", file], arguments].concat());
    assert!(ran.code == 0, "{}{}", ran.text(), ran.err);
    read(world, file)
}

/// A report, which has to have the published shape and no field besides.
fn read(world: &World, file: &str) -> Value {
    let report = serde_json::from_str(&std::fs::read_to_string(world.path(file)).unwrap()).unwrap();
    let schemas = world.run(&["man", "--schemas"]).ok();
    let schema = schemas.lines().find(|line| line.contains("\"title\":\"acpdb.audit/1\"")).unwrap();
    let mut schema: Value = serde_json::from_str(schema).unwrap();
    close(&mut schema);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<String> =
        validator.iter_errors(&report).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    report
}

fn close(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        if object.get("properties").is_some_and(Value::is_object) && object.contains_key("required") {
            object.insert("additionalProperties".to_owned(), false.into());
        }
        object.values_mut().for_each(close);
    } else if let Some(list) = schema.as_array_mut() {
        list.iter_mut().for_each(close);
    }
}

fn rows<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name].as_array().unwrap_or_else(|| panic!("{name}"))
}

/// Events of the log by their kind, as another verb tells them.
fn logged(world: &World, session: &str) -> BTreeMap<String, Vec<Value>> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in world.run(&["log", "--session", session, "--json"]).ok().lines() {
        let event: Value = serde_json::from_str(line).unwrap();
        found.entry(event["kind"].as_str().unwrap_or_default().to_owned()).or_default().push(event);
    }
    found
}

#[test]
fn each_call_message_act_and_erasure_of_the_log_is_in_the_report() {
    let world = World::fed();
    world.run(&["import", SESSION]).ok();
    // A call that runs, and one that was refused.
    let calls = [
        r#"{"session":"s5","tool_started":{"call":"c1","tool":"bash","params":{"command":"ls"}}}"#,
        r#"{"session":"s5","tool":{"call":"c2","tool":"bash","params":{},"outcome":"aborted","error":"refused"}}"#,
    ];
    world.run_with(&["append", "--stdin"], calls.join("\n") + "\n").ok();
    world.run(&["context", "discard", "call-grep-1", "--session", "s1"]).ok();
    world.run(&["erase", "#6", "--reason", "a customer's name"]).ok();
    world.run(&["key", "new"]).ok();
    world.run(&["checkpoint", "sign"]).ok();
    let whole = report(&world, &[], "whole.json");
    assert_eq!(whole["schema"], "acpdb.audit/1");
    let mut calls = 0;
    for session in rows(&whole, "who") {
        let name = session["session"].as_str().unwrap();
        let log = logged(&world, name);
        let none = Vec::new();
        let of = |kind: &str| log.get(kind).unwrap_or(&none);
        let told: Vec<&Value> = rows(&whole, "calls").iter().filter(|row| row["session"] == name).collect();
        for started in of("tool_call_started") {
            let row = told.iter().find(|row| row["seq"] == started["seq"]).unwrap();
            assert_eq!(row["tool"], started["payload"]["tool"]);
            assert_eq!(row["call"], started["payload"]["call"]);
        }
        for finished in of("tool_call_finished") {
            let row = told.iter().find(|row| row["finished_seq"] == finished["seq"]).unwrap();
            assert_eq!(row["outcome"], finished["payload"]["outcome"], "{row}");
        }
        assert_eq!(told.len(), of("tool_call_started").len(), "{name}");
        calls += told.len();
        let users = of("message_recorded").iter().filter(|event| event["payload"]["role"] == "user").count();
        assert_eq!(
            rows(&whole, "asked").iter().filter(|row| row["session"] == name).count(),
            users,
            "{name}"
        );
        assert!(!session["host"].as_str().unwrap().is_empty());
    }
    assert!(calls > 80, "{calls}");
    // Parameters and results are those that were recorded; an erasure is told, with its author and reason.
    let call = rows(&whole, "calls").iter().find(|row| row["seq"] == 6).unwrap();
    assert_eq!(call["params"]["state"], "erased");
    let other = rows(&whole, "calls").iter().find(|row| row["params"]["state"] == "whole").unwrap();
    assert!(other["params"]["text"].as_str().unwrap().starts_with('{'), "{other}");
    assert_eq!(rows(&whole, "erased")[0]["reason"], "a customer's name");
    // With it went all equal texts.
    let events = rows(&whole, "erased")[0]["events"].as_array().unwrap();
    assert!(events.contains(&6.into()), "{events:?}");
    assert!(rows(&whole, "files").iter().any(|row| row["path"].as_str().unwrap().contains("orders.rs")));
    assert!(rows(&whole, "hidden").iter().any(|row| row["act"] == "superseded" && row["rule"].is_string()));
    assert!(rows(&whole, "hidden").iter().any(|row| row["act"] == "discarded" && row["session"] == "s1"));
    let of_call = |name: &str| rows(&whole, "calls").iter().find(|row| row["call"] == name).unwrap();
    assert_eq!((&of_call("c1")["outcome"], &of_call("c2")["outcome"]), (&Value::Null, &"aborted".into()));
    assert_eq!(of_call("c2")["result"][0]["text"], "refused");
    assert!(rows(&whole, "approvals").iter().any(|row| row["about"] == "c2"));
    let runs = |gap: &Value| gap["what"] == "call_without_result" && gap["seq"] == of_call("c1")["seq"];
    assert!(rows(&whole, "gaps").iter().any(runs), "{}", whole["gaps"]);
    // All was signed, so no gap says otherwise.
    assert!(rows(&whole, "gaps").iter().all(|gap| gap["what"] != "not_signed"), "{}", whole["gaps"]);
    assert_eq!(rows(&whole, "checkpoints")[0]["standing"], "agrees");
    // One session, and the later events.
    let one = report(&world, &["s1"], "one.json");
    assert!(rows(&one, "calls").iter().all(|row| row["session"] == "s1"));
    assert_eq!(rows(&one, "who").len(), 1);
    world.run_with(&["append", "--stdin"], said("k1", "later")).ok();
    let later = report(&world, &["--since", "#29"], "later.json");
    assert!(rows(&later, "asked").iter().all(|row| row["seq"].as_u64() > Some(29)));
    assert!(rows(&later, "gaps").iter().any(|gap| gap["what"] == "not_signed"));
}

#[test]
fn a_report_can_be_printed_and_what_was_recorded_cannot_write_it() {
    let world = World::new();
    let hostile = r#"<script>alert(1)</script> \u202e<img src=x onerror=y> </td></table>"#;
    world.run_with(&["append", "--stdin"], said("k1", hostile)).ok();
    let ran = world.run(&["export", "audit", "-o", "report.html"]);
    tells(&ran, 0, &["report.html: 0 calls, "]);
    let page = std::fs::read_to_string(world.path("report.html")).unwrap();
    for word in ["@media print", "What it does not show", "claims no", "default-src 'none'"] {
        let is_there = page.contains(word) || word == "claims no" && page.contains("Conformity with any law");
        assert!(is_there, "{word:?} is not in the page");
    }
    assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{202e}'), "{page}");
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert_eq!(page.matches("<table>").count(), page.matches("</table>").count());
    assert!(page.contains("no checkpoint of a known key covers any event"));
    // A file that is there stays, and a form has to be named.
    tells(&world.run(&["export", "audit", "-o", "report.html"]), 1, &["exists", "--force"]);
    tells(&world.run(&["export", "audit", "-o", "report.pdf"]), 2, &["ends in .html or .json"]);
    tells(&world.run(&["export", "audit"]), 2, &["ends in .html or .json"]);
    tells(&world.run(&["export", "audit", "nothing", "-o", "x.json"]), 7, &["nothing"]);
    tells(&world.run(&["export", "audit", "--since", "yesteryear", "-o", "x.json"]), 2, &["--since"]);
    assert!(!world.path("x.json").exists());
}

#[test]
fn a_report_of_a_history_that_was_rewritten_says_so() {
    let world = signed();
    super::copy(&world.path("base"), &world.path("forged"));
    world.run_with(&["--db", "forged", "append", "--stdin"], said("k1", "ONE") + FEED).ok();
    let ran = world.run(&["--db", "forged", "export", "audit", "-o", "forged.json"]);
    tells(&ran, 3, &["forged.json"]);
    let forged = read(&world, "forged.json");
    assert_eq!(rows(&forged, "checkpoints")[0]["standing"], "rewritten");
    tells(&world.run(&["export", "audit", "-o", "true.json"]), 0, &["true.json"]);
}
