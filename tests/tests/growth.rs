//! Bytes grow with new content: late events cost as much as early ones, however large the store is already.
//!
//! Counted on a simulated disk, so the figures are the same in every run. The bench's `growth` does it at full size, with
//! times.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test stops at what it did not expect")]

use std::sync::Arc;

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, PartEntry, StreamInfo, fact};
use acpdb_engine::event::Role;
use acpdb_engine::storage::SimWorld;
use acpdb_tests::support::fixed;

/// Bytes of the log after each of `parts` parts of `count` things, each part by a store opened anew.
fn growth(parts: usize, count: usize, record: &dyn Fn(&Store, &StreamInfo, usize)) -> Vec<u64> {
    let world = SimWorld::new(1);
    let session = StreamInfo::session("acpdb", "s1");
    (0..parts)
        .map(|part| {
            let storage = Arc::new(world.process(u32::try_from(part).unwrap() + 1));
            let builder = Store::builder("/sim").storage(storage).registry(acpdb_hosts::registry());
            let store = fixed(builder, part as u64).open().unwrap();
            (part * count..(part + 1) * count).for_each(|number| record(&store, &session, number));
            store.close().unwrap();
            drop(store);
            let files = world.files().into_iter().filter(|name| name.starts_with("log/"));
            files.map(|name| world.file_len(&name).unwrap()).sum()
        })
        .collect()
}

/// Each part after the first costs the same, within one in a hundred; returns the bytes of one thing.
#[track_caller]
fn check_linear(bytes: &[u64], count: usize) -> u64 {
    let parts: Vec<u64> = bytes.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let (least, most) = (parts.iter().min().unwrap(), parts.iter().max().unwrap());
    assert!(most * 100 <= least * 101, "bytes of equal parts: {parts:?}");
    most / count as u64
}

#[test]
fn a_message_that_streams_in_costs_its_pieces() {
    let bytes = growth(4, 250, &|store, session, number| {
        let entry = if number == 0 {
            Entry::message_parts("m", Role::Assistant, vec![PartEntry::text("begins")])
        } else {
            let parts = vec![PartEntry::text(format!("piece {number:04}"))];
            fact::MessageContinued { key: "m".to_owned(), parts }.into()
        };
        let _ = store.append(session, vec![entry.origin(format!("msg:m/{number}"))]).unwrap();
    });
    let each = check_linear(&bytes, 250);
    assert!(each < 500, "{each} bytes for a piece of ten");
}

#[test]
fn a_message_that_is_told_anew_costs_its_text_each_time() {
    let bytes = growth(4, 250, &|store, session, number| {
        let message = Entry::message("m", Role::Assistant, format!("after update {number:04}"));
        let _ = store.append(session, vec![message.origin("msg:m")]).unwrap();
    });
    let each = check_linear(&bytes, 250);
    assert!(each < 520, "{each} bytes for a revision of twenty");
}

/// Equal texts of one commit share their bytes; those of another commit are stored with it, so that each commit stands for itself.
#[test]
fn an_output_is_stored_once_in_each_commit() {
    let output = "the same line of a long output\n".repeat(3300);
    let bytes = growth(3, 20, &|store, session, number| {
        let call = |part: usize| {
            let call = format!("call-{number:04}-{part}");
            [
                Entry::tool_started(&call, "Bash", r#"{"command":"make"}"#).origin(format!("{call}:start")),
                Entry::tool_completed(&call, output.as_str()).origin(format!("{call}:end")),
            ]
        };
        let _ = store.append(session, (0..3).flat_map(call).collect()).unwrap();
    });
    let each = check_linear(&bytes, 20);
    let once = output.len() as u64;
    assert!((once..once + 2400).contains(&each), "{each} bytes for three outputs of {once}, all equal");
}

#[test]
fn a_call_late_in_a_session_costs_what_an_early_one_did() {
    let bytes = growth(4, 500, &|store, session, number| {
        let (call, path) = (format!("call-{number:05}"), format!("/src/file-{:02}.rs", number % 40));
        let entries = vec![
            Entry::step(format!("step-{number:05}")).origin(format!("step-{number:05}")),
            Entry::tool_started(&call, "Read", format!(r#"{{"file_path":"{path}"}}"#))
                .origin(format!("{call}:start")),
            Entry::tool_completed(&call, format!("text {number:05} of {path}")).origin(format!("{call}:end")),
        ];
        let _ = store.append(session, entries).unwrap();
    });
    check_linear(&bytes, 500);
}
