//! The linter knows the requests of shipping hosts: every request of every scene is clean.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_hosts::export::Format;
use acpdb_hosts::lint::{RequestFacts, lint};
use expect_test::expect;

use super::scenes::{folder, requests};

/// The scenes that were recorded.
fn scenes() -> Vec<String> {
    let mut all = BTreeSet::new();
    for host in std::fs::read_dir(folder()).unwrap().map(Result::unwrap).filter(|it| it.path().is_dir()) {
        for scene in std::fs::read_dir(host.path()).unwrap().map(Result::unwrap) {
            let name = |it: &std::fs::DirEntry| it.file_name().to_string_lossy().into_owned();
            all.insert(format!("{}/{}", name(&host), name(&scene)));
        }
    }
    all.into_iter().collect()
}

#[test]
fn real_requests_are_clean() {
    let mut found: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let mut count = 0;
    for scene in scenes() {
        let mut before: BTreeMap<Option<String>, String> = BTreeMap::new();
        for request in requests(&scene) {
            let (format, name) = match request.api.as_str() {
                "anthropic" => (Format::Anthropic, "messages"),
                "responses" => (Format::Responses, "input"),
                "chat" => (Format::Openai, "messages"),
                _ => (Format::Gemini, "contents"),
            };
            let body =
                format!(r#"{{"model":{:?},"{name}":[{}]}}"#, request.model, request.messages.join(","));
            // A request for a summary is no step of the conversation.
            let previous = before.get(&request.session).filter(|_| request.kind == "main");
            let known =
                RequestFacts { previous: previous.map(String::as_bytes), model: Some(&request.model) };
            for finding in lint(format, body.as_bytes(), known) {
                let host = scene.split('/').next().unwrap();
                let row = found.entry(format!("{host} {}: {}", finding.rule, finding.expected)).or_default();
                row.0 += 1;
                row.1 = format!("{scene} {} found {}", finding.pointer, finding.found);
            }
            if request.kind == "main" {
                before.insert(request.session.clone(), body);
            }
            count += 1;
        }
    }
    // Where the last one stood is for the reader of a failure.
    for (what, (_, last)) in &found {
        println!("{what}: {last}");
    }
    let rows: Vec<String> = found.iter().map(|(what, (count, _))| format!("{what}: {count}\n")).collect();
    assert!(count > 150, "{count} requests");
    // A fault of that host: after a resume it sends each old result twice.
    expect![[r#"
        gemini G1: 1 responses: 48
        gemini G1: 2 responses: 4
        gemini G1: a call of that name (and id) in the turn before: 56
    "#]]
    .assert_eq(&rows.concat());
}
