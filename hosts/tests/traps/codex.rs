//! Codex: sessions that begin in another session's file, or go on from a point of their own; files that were written anew.

use std::sync::Arc;

use acpdb_engine::entry::{Fact, PointRef, fact};
use acpdb_hosts::import::{Beside, ImportBatch, ImportFormat, ImportOptions, ImportReport, read};

const PARENT: &str = "aaaaaaaa-0000-4000-8000-000000000001";
const CHILD: &str = "aaaaaaaa-0000-4000-8000-000000000002";

fn meta(id: &str, ordinal: u32, base: Option<(&str, u32, usize)>) -> String {
    let base = base.map_or(String::new(), |(thread, ordinal, offset)| {
        format!(
            r#","history_base":{{"thread_id":"{thread}","end_ordinal_exclusive":{ordinal},"end_byte_offset":{offset}}}"#
        )
    });
    format!(
        r#"{{"timestamp":"2026-01-31T10:00:00Z","ordinal":{ordinal},"type":"session_meta","payload":{{"id":"{id}","cwd":"/w","history_mode":"paginated"{base}}}}}"#
    ) + "\n"
}

fn said(ordinal: u32, text: &str) -> String {
    format!(
        r#"{{"timestamp":"2026-01-31T10:00:{ordinal:02}Z","ordinal":{ordinal},"type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
    ) + "\n"
}

fn imported(file: &str, beside: Vec<(&'static str, String)>) -> (Vec<ImportBatch>, ImportReport) {
    let mut batches = Vec::new();
    let beside = Beside(Arc::new(move |named: &str, number: usize| {
        beside
            .iter()
            .filter(|(thread, _)| *thread == named)
            .nth(number)
            .map(|(_, text)| text.clone().into_bytes())
    }));
    let options = ImportOptions { beside: Some(beside), ..ImportOptions::default() };
    let report = read(ImportFormat::Codex, "rollout", file.as_bytes(), &options, &mut batches).unwrap();
    (batches, report)
}

/// Origins and words of messages, and other facts that change the context.
fn told(batches: &[ImportBatch]) -> Vec<(String, String)> {
    let facts = batches.iter().flat_map(|batch| &batch.entries);
    let told = facts.filter_map(|entry| {
        let origin = entry.origin.clone().unwrap_or_default();
        match &entry.fact {
            Fact::MessageRecorded(fact::MessageRecorded { parts, .. }) => {
                Some((origin, String::from_utf8_lossy(&parts[0].bytes).into_owned()))
            }
            Fact::Rewound(fact::Rewound { to: PointRef::After(to) }) => {
                Some((to.clone(), "rewound".to_owned()))
            }
            Fact::Forked(_) => Some((String::new(), "forked".to_owned())),
            _ => None,
        }
    });
    told.collect()
}

fn words(told: &[(String, String)]) -> Vec<&str> {
    told.iter().map(|(_, words)| words.as_str()).collect()
}

#[test]
fn a_fork_begins_with_what_its_parent_said_up_to_the_point() {
    let start = meta(PARENT, 0, None) + &said(1, "one") + &said(2, "two");
    let parent = start.clone() + &said(3, "three");
    let child = meta(CHILD, 3, Some((PARENT, 3, start.len()))) + &said(4, "four");
    let (batches, report) = imported(&child, vec![(PARENT, parent.clone())]);
    assert!(report.is_complete(), "{report:?}");
    assert_eq!(words(&told(&batches)), ["forked", "one", "two", "four"]);
    assert!(batches.iter().all(|batch| batch.stream.name == CHILD));
    // The number of the line counts as well as the offset.
    let child = meta(CHILD, 2, Some((PARENT, 2, start.len())));
    assert_eq!(words(&told(&imported(&child, vec![(PARENT, parent.clone())]).0)), ["forked", "one"]);
    // A fork of a fork.
    let grandchild =
        meta("aaaaaaaa-0000-4000-8000-000000000003", 5, Some((CHILD, 5, 1 << 40))) + &said(6, "six");
    let (_, report) = imported(&grandchild, vec![(CHILD, child.clone())]);
    assert!(!report.is_complete(), "the file is shorter than it was");
    let grandchild =
        meta("aaaaaaaa-0000-4000-8000-000000000003", 5, Some((CHILD, 5, child.len()))) + &said(6, "six");
    let beside = vec![(CHILD, child), (PARENT, parent)];
    assert_eq!(words(&told(&imported(&grandchild, beside).0)), ["forked", "one", "six"]);
    // The import of a file that names itself ends.
    let child = meta(CHILD, 3, Some((PARENT, 3, 1))) + &said(4, "four");
    let round = meta(PARENT, 0, Some((PARENT, 3, 1)));
    assert_eq!(words(&told(&imported(&child, vec![(PARENT, round)]).0)), ["forked", "four"]);
}

#[test]
fn what_is_missing_is_said_and_the_rest_imported() {
    let child = meta(CHILD, 3, Some((PARENT, 3, 700))) + &said(4, "four");
    let (batches, report) = imported(&child, Vec::new());
    assert_eq!(words(&told(&batches)), ["forked", "four"]);
    assert_eq!(report.skipped.len(), 1);
    assert!(report.skipped[0].reason.contains("thread aaaaaaaa-0000-4000-8000-000000000001"), "{report:?}");
}

/// The longest file of a thread was taken as the thread's. A thread that was taken back has two files, the newer of which begins in the older: a fork
/// of it was imported without its beginning.
#[test]
fn a_fork_of_a_thread_that_was_taken_back_has_its_beginning() {
    let start = meta(PARENT, 0, None) + &said(1, "one");
    let old = start.clone() + &said(2, "two");
    let long = "three ".repeat(200);
    let new = meta(PARENT, 2, Some((PARENT, 2, start.len()))) + &said(3, &long);
    let fork = meta(CHILD, 4, Some((PARENT, 4, new.len()))) + &said(5, "five");
    for files in [[&new, &old], [&old, &new]] {
        let files = files.iter().map(|file| (PARENT, (*file).clone())).collect();
        let (batches, report) = imported(&fork, files);
        assert!(report.is_complete(), "{report:?}");
        let told = told(&batches);
        assert_eq!(words(&told), ["forked", "one", long.as_str(), "five"]);
    }
}

/// Each further `session_meta` of a file was followed, and the file that it named read again, 16 files deep: a file of 700 bytes
/// took seconds, and one more line in it doubled them.
#[test]
fn a_thread_that_names_itself_many_times_is_read_once() {
    let round = meta(PARENT, 0, Some((PARENT, 90, 1 << 30))).replace(r#","end_byte_offset":1073741824"#, "");
    let parent = round.repeat(40) + &said(1, "one");
    let child = meta(CHILD, 3, Some((PARENT, 3, parent.len()))) + &said(4, "four");
    let (batches, report) = imported(&child, vec![(PARENT, parent)]);
    assert_eq!(words(&told(&batches)), ["forked", "one", "four"]);
    assert_eq!(report.skipped.len(), 1);
}

#[test]
fn a_session_that_goes_on_from_a_point_of_its_own_takes_back_what_followed() {
    let start = meta(PARENT, 0, None) + &said(1, "one") + &said(2, "two");
    let old = start.clone() + &said(3, "three");
    let new = meta(PARENT, 3, Some((PARENT, 3, start.len()))) + &said(4, "four");
    let first = told(&imported(&old, Vec::new()).0);
    let second = told(&imported(&new, vec![(PARENT, old)]).0);
    assert_eq!(words(&second), ["one", "two", "rewound", "four"]);
    // Known records are named as they were; the point is just behind it.
    assert_eq!(second[..2], first[..2]);
    assert_eq!(second[2].0, first[1].0);
}

#[test]
fn lines_that_are_given_numbers_later_are_the_same_records() {
    let numbered = meta(PARENT, 0, None) + &said(1, "one") + &said(2, "two");
    let plain =
        numbered.replace("\"ordinal\":0,", "").replace("\"ordinal\":1,", "").replace("\"ordinal\":2,", "");
    let last = plain
        .lines()
        .map(|line| format!("{},\"ordinal\":7}}\n", &line[..line.len() - 1]))
        .collect::<String>();
    let origins = |file: &str| {
        let (batches, _) = imported(file, Vec::new());
        batches.iter().flat_map(|batch| &batch.entries).map(|entry| entry.origin.clone()).collect::<Vec<_>>()
    };
    assert_eq!(origins(&numbered), origins(&plain));
    assert_eq!(origins(&last), origins(&plain));
}

/// Threads of subagents named no call. The call's result names the thread, and so do events; later lines that name it tell the call again.
#[test]
fn a_call_that_starts_a_thread_is_told() {
    let line = |kind: &str, payload: &str| {
        format!(r#"{{"timestamp":"2026-01-31T10:00:00Z","type":"{kind}","payload":{{{payload}}}}}"#) + "\n"
    };
    let call = r#""type":"function_call","call_id":"c1","name":"spawn_agent","arguments":"{}""#;
    let call = line("response_item", call);
    let result =
        format!(r#""type":"function_call_output","call_id":"c1","output":"{{\"agent_id\":\"{CHILD}\"}}""#);
    let older = format!(r#""type":"collab_agent_spawn_end","call_id":"c1","new_thread_id":"{CHILD}""#);
    let item = format!(r#""id":"c1","tool":"spawn_agent","receiver_thread_ids":["{CHILD}"]"#);
    let item = format!(r#""type":"item_completed","item":{{"type":"CollabAgentToolCall",{item}}}"#);
    for told in [line("response_item", &result), line("event_msg", &older), line("event_msg", &item)] {
        let later = line("event_msg", &format!(r#""type":"agent_message","message":"{CHILD} has ended""#));
        let (batches, report) = imported(&(meta(PARENT, 0, None) + &call + &told + &later), Vec::new());
        let started = &report.started;
        assert_eq!(started.len(), 1, "{told}");
        assert_eq!((started[0].call.as_str(), started[0].session.as_str()), ("c1", CHILD));
        assert_eq!(batches.iter().filter(|batch| batch.entries.is_empty()).count(), 2, "{told}");
    }
}
