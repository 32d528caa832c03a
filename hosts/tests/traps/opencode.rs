//! opencode: parts that are rewritten, sessions in one document, cleared outputs, compaction.

use acpdb_engine::event::Actor;
use acpdb_hosts::import::ImportFormat;
use expect_test::{Expect, expect};

use super::{documents, read};

fn document(messages: &str) -> String {
    format!(
        r#"{{ "info": {{"id":"ses_1","directory":"/w","title":"T","time":{{"created":5}}}}, "messages":[ {messages} ] }}"#
    )
}

fn check(messages: &str, expected: Expect) {
    let text = document(messages);
    super::check(ImportFormat::Opencode, &text, expected);
    let (batches, _) = read(ImportFormat::Opencode, text.as_bytes());
    assert_eq!(documents(&batches), [text]);
}

#[test]
fn parts_become_facts_of_their_message() {
    check(
        r#"{"info":{"id":"msg_1","role":"user","time":{"created":1}},"parts":[{"type":"text","text":"do it","id":"prt_1"}]},
           {"info":{"id":"msg_2","role":"assistant","parentID":"msg_1","modelID":"m","providerID":"p","time":{"created":2,"completed":9},"finish":"stop","tokens":{"input":1,"output":2,"reasoning":3,"cache":{"read":4,"write":5}}},
            "parts":[{"type":"step-start","id":"prt_2"},{"type":"reasoning","text":"hm","id":"prt_3","metadata":{"openai":{"itemId":"x"}}},
             {"type":"tool","callID":"c","tool":"bash","id":"prt_4","state":{"status":"completed","input":{"command":"false"},"output":"out","metadata":{"exit":1},"time":{"start":3,"end":4}}},
             {"type":"tool","callID":"c","tool":"read","id":"prt_5","state":{"status":"error","input":{"filePath":"/a"},"error":"no such file","time":{"start":3,"end":4}}},
             {"type":"step-finish","id":"prt_6"},{"type":"marvel","id":"prt_7"},{"type":"text","id":"prt_8"},7]}"#,
        expect![[r#"
            [ses_1]
              prompt msg_1 <prompt:msg_1>
              User msg_1:  <msg:msg_1>
              record message about Some("msg_1") <record:msg_1> *
              more of msg_1: Text "do it" <part:prt_1>
              record text about Some("msg_1") <record:prt_1> *
              Assistant msg_2 after msg_1:  <msg:msg_2>
              record message about Some("msg_2") <record:msg_2> *
              step prt_2 <turn:prt_2>
              record step-start about Some("msg_2") <record:prt_2> *
              more of msg_2: Reasoning "hm" signed {"openai":{"itemId":"x"}} <part:prt_3>
              record reasoning about Some("msg_2") <record:prt_3> *
              call c of Some("msg_2"): bash {"command":"false"} <call:prt_4:start>
              Completed c: Text "out" details {"exit":1} <call:prt_4:finish> *
              call c of Some("msg_2"): read {"filePath":"/a"} <call:prt_5:start>
              Failed c: Text "no such file" <call:prt_5:finish> *
              record step-finish about Some("msg_2") <record:prt_6> *
              record marvel about Some("msg_2") <record:prt_7> *
              record text about Some("msg_2") <record:prt_8> *
              record part about None <part:msg_2/7> *
              end of msg_2 Some("m") Some("stop") in Some(1) out Some(5) <msg:msg_2:finish>
              record document about None <document:ses_1> *
            ! 6:1019 part prt_8 of kind text lacks its content; kept as it is
            ! 6:1048 part 8 of msg_2 is no object; kept as it is
            ! 1 unknown marvel
        "#]],
    );
}

#[test]
fn a_running_call_is_recorded_and_finished_by_a_later_import() {
    let head = r#"{"info":{"id":"msg_2","role":"assistant","time":{"created":2}},"parts":[{"type":"tool","callID":"c","tool":"bash","id":"prt_4","state":"#;
    check(
        &format!(
            r#"{head}{{"status":"running","input":{{"command":"x"}},"metadata":{{"output":"par"}}}}}}]}}"#
        ),
        expect![[r#"
            [ses_1]
              Assistant msg_2:  <msg:msg_2>
              record message about Some("msg_2") <record:msg_2> *
              call c of Some("msg_2"): bash {"command":"x"} <call:prt_4:start>
              record tool about Some("msg_2") <record:prt_4> *
              record document about None <document:ses_1> *
        "#]],
    );
    check(
        &format!(
            r#"{head}{{"status":"completed","input":{{"command":"x"}},"output":"partial","time":{{"start":1,"end":2,"compacted":3}}}}}}]}}"#
        ),
        expect![[r#"
            [ses_1]
              Assistant msg_2:  <msg:msg_2>
              record message about Some("msg_2") <record:msg_2> *
              call c of Some("msg_2"): bash {"command":"x"} <call:prt_4:start>
              Completed c: Text "partial" <call:prt_4:finish>
              cleared [Origin("call:prt_4:start", 1)] [] <cleared:prt_4>
              record tool about Some("msg_2") <record:prt_4> *
              record document about None <document:ses_1> *
        "#]],
    );
}

#[test]
fn a_compaction_keeps_the_summary_and_what_follows() {
    check(
        r#"{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"compaction","auto":true,"id":"prt_1"}]},
           {"info":{"id":"msg_2","role":"assistant","mode":"compaction","summary":true},"parts":[{"type":"text","text":"what was","id":"prt_2"}]}"#,
        expect![[r#"
            [ses_1]
              User msg_1:  <msg:msg_1>
              record message about Some("msg_1") <record:msg_1> *
              record compaction about Some("msg_1") <record:prt_1> *
              replaced by Compaction None <replaced:msg_2>
              User question:msg_2 (hidden from the user): Text "What did we do so far?" <question:msg_2>
              Assistant msg_2:  <msg:msg_2>
              record message about Some("msg_2") <record:msg_2> *
              more of msg_2: Text "what was" <part:prt_2>
              record text about Some("msg_2") <record:prt_2> *
              record document about None <document:ses_1> *
        "#]],
    );
}

#[test]
fn ids_may_be_missing_or_repeated() {
    check(
        r#"{"info":{"role":"user"},"parts":[{"type":"text","text":"a"}]},{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"a","id":"prt_1"},{"type":"text","text":"b","id":"prt_1"}]},{"parts":[]},3"#,
        expect![[r#"
            [ses_1]
              prompt message-0 <prompt:message-0>
              User message-0:  <msg:message-0>
              record message about Some("message-0") <record:message-0> *
              more of message-0: Text "a" <part:message-0/0>
              record text about Some("message-0") <record:message-0/0> *
              prompt msg_1 <prompt:msg_1>
              User msg_1:  <msg:msg_1>
              record message about Some("msg_1") <record:msg_1> *
              more of msg_1: Text "a" <part:prt_1>
              record text about Some("msg_1") <record:prt_1> *
              more of msg_1: Text "b" <part:prt_1+2>
              record text about Some("msg_1") <record:prt_1+2> *
              record message about None <message:digest:8dd9a575433f1dbac9b337556b465858#3> *
              record message about None <message:digest:58d6fd3dc609068615d66b6a2616cce5#4> *
              record document about None <document:ses_1> *
            ! 1:279 message 3 has no info; kept as it is
            ! 1:292 message 4 has no info; kept as it is
        "#]],
    );
}

#[test]
fn another_document_is_refused_by_name() {
    let mut batches = Vec::new();
    let options = acpdb_hosts::import::ImportOptions::default();
    let refused =
        acpdb_hosts::import::read(ImportFormat::Opencode, "x", &b"\n{\"a\":1}"[..], &options, &mut batches)
            .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "not a session of opencode at line 2, byte 1: no info and messages; name the right format"
    );
}

/// A grown session adds its new records and a new document; the earlier records give the same facts.
#[test]
fn a_grown_document_changes_nothing_that_was_there() {
    let first = r#"{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"a","id":"prt_1"}]}"#;
    let second = r#"{"info":{"id":"msg_2","role":"assistant"},"parts":[{"type":"step-start","id":"prt_2"},{"type":"tool","tool":"bash","id":"prt_3","callID":"c","state":{"status":"completed","input":{},"output":"o"}}]}"#;
    let entries = |messages: &str| -> std::collections::BTreeMap<String, String> {
        let (batches, _) = read(ImportFormat::Opencode, document(messages).as_bytes());
        let entries = batches.into_iter().flat_map(|batch| batch.entries);
        entries.map(|entry| (entry.origin.clone().unwrap(), format!("{entry:?}"))).collect()
    };
    let before = entries(first);
    let after = entries(&format!("{first},{second}"));
    let changed: Vec<_> = before.iter().filter(|(origin, entry)| after.get(*origin) != Some(entry)).collect();
    assert_eq!(changed.iter().map(|(origin, _)| origin.as_str()).collect::<Vec<_>>(), ["document:ses_1"]);
    let new: Vec<_> =
        after.keys().filter(|origin| !before.contains_key(*origin)).map(String::as_str).collect();
    expect![[r#"
        call:prt_3:finish
        call:prt_3:start
        msg:msg_2
        record:msg_2
        record:prt_2
        turn:prt_2"#]]
    .assert_eq(&new.join("\n"));
}

/// An export may hold two messages under one id. The end of the second was told as that of the first: every import of the file revised it back and
/// forth, and the store grew.
#[test]
fn each_fact_of_messages_of_one_id_is_told_once() {
    let told = |finish: &str| {
        format!(
            r#"{{"info":{{"id":"msg_1","role":"assistant","time":{{"created":1,"completed":2}},"finish":"{finish}"}},"parts":[{{"id":"prt_1","type":"text","text":"done"}}]}}"#
        )
    };
    let text = document(&[told("tool-calls"), told("stop")].join(","));
    let (batches, _) = read(ImportFormat::Opencode, text.as_bytes());
    assert_eq!(documents(&batches), [text]);
    let mut origins: Vec<_> =
        batches.iter().flat_map(|batch| &batch.entries).map(|entry| entry.origin.clone().unwrap()).collect();
    let count = origins.len();
    origins.sort();
    origins.dedup();
    assert_eq!(origins.len(), count);
}

/// The text of a prompt comes in a part of its own. It was the assistant's, so `actor:user` found no prompt.
#[test]
fn parts_of_a_prompt_are_the_users() {
    let text = document(
        r#"{"info":{"id":"msg_1","role":"user"},"parts":[{"type":"text","text":"do it","id":"prt_1"}]},
           {"info":{"id":"msg_2","role":"assistant"},"parts":[{"type":"text","text":"done","id":"prt_2"}]}"#,
    );
    let (batches, _) = read(ImportFormat::Opencode, text.as_bytes());
    let entries = || batches.iter().flat_map(|batch| &batch.entries);
    let of = |origin: &str| entries().find(|entry| entry.origin.as_deref() == Some(origin)).unwrap().actor;
    assert_eq!((of("part:prt_1"), of("part:prt_2")), (Some(Actor::User), None));
}

/// A session in many files, as the host kept it before its database: each message was a session of its own, without a text.
#[test]
fn a_storage_is_put_together_and_what_is_reverted_is_taken_back() {
    let message = |id: &str, role: &str, text: &str| acpdb_hosts::import::StoredMessage {
        id: id.to_owned(),
        info: format!(r#"{{"role":"{role}"}}"#).into_bytes(),
        parts: vec![
            (format!("prt_{id}"), format!(r#"{{"type":"text","text":"{text}"}}"#).into_bytes()),
            (format!("prt_{id}x"), b"{ torn".to_vec()),
        ],
    };
    let messages = [
        message("msg_1", "user", "one"),
        message("msg_2", "assistant", "two"),
        message("msg_3", "user", "three"),
    ];
    let parts = |message: &acpdb_hosts::import::StoredMessage| {
        message.parts.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>()
    };
    let list = messages.iter().map(|message| (message.id.clone(), parts(message))).collect();
    let info = br#"{"id":"ses_1","directory":"/w","revert":{"messageID":"msg_3"}}"#;
    let mut told = super::Told::default();
    let options = acpdb_hosts::import::ImportOptions::default();
    let mut each = messages.into_iter().map(Ok);
    let report =
        acpdb_hosts::import::read_storage("ses_1", info, (list, &mut each), &options, &mut told).unwrap();
    assert_eq!((report.sessions, report.kept_raw.len()), (1, 3));
    expect![[r#"
        present: msg_1 msg_2
        broken:part/prt_msg_1x
        prompt:msg_1
        msg:msg_1
        record:msg_1
        part:prt_msg_1
        record:prt_msg_1
        broken:part/prt_msg_2x
        msg:msg_2
        record:msg_2
        part:prt_msg_2
        record:prt_msg_2
        broken:part/prt_msg_3x
        prompt:msg_3
        msg:msg_3
        record:msg_3
        part:prt_msg_3
        record:prt_msg_3
        present: msg_1 msg_2
        document:ses_1"#]]
    .assert_eq(&told.0.join("\n"));
}
