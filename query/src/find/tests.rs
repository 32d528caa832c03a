//! A text names the same item with an index as without one; the index saves the folds of streams that cannot hold the item.

use acpdb_engine::entry::{Entry, StreamInfo};
use tempfile::TempDir;

use super::*;

/// Calls whose ids begin alike, long ones that an index cuts, one that two sessions have, and a fork.
fn filled(folder: &TempDir) {
    let store = Store::builder(folder.path().join("store")).open().unwrap();
    let call = |id: &str, path: &str| {
        let params = format!(r#"{{"file_path":"{path}"}}"#);
        [Entry::tool_started(id, "Read", params), Entry::tool_completed(id, "a line")]
    };
    let sessions = [
        ("one", vec!["toolu_01", "toolu_02", "call_with_a_long_id_0001", "Mixed_Case"]),
        ("two", vec!["toolu_10", "call_with_a_long_id_0002", "shared", "alone"]),
        ("three", vec!["shared", "call_with_another_id_9", "x"]),
    ];
    for (name, calls) in sessions {
        let session = StreamInfo::session("acpdb", name);
        for (number, id) in calls.into_iter().enumerate() {
            let _ = store.append(&session, call(id, &format!("/{name}/{number}")).into()).unwrap();
        }
    }
    let _ = store.reindex().unwrap();
}

fn told(store: &Store, text: &str) -> String {
    match find(store, text, None) {
        Ok(found) => format!("{} in {}", found.item, found.stream.name),
        Err(error @ FindError::Ambiguous { .. }) => error.to_string(),
        Err(FindError::NotFound { .. }) => "nothing".to_owned(),
        Err(error) => panic!("{text:?}: {error}"),
    }
}

#[test]
fn a_call_is_found_by_the_same_texts_with_and_without_an_index() {
    let folder = TempDir::new().unwrap();
    filled(&folder);
    let path = folder.path().join("store");
    let indexed = Store::builder(&path).create(false).open().unwrap();
    let plain = Store::builder(&path).create(false).index(false).open().unwrap();
    assert!(indexed.named(NameKind::Call, "alone", false, 9).is_some_and(|found| found.len() == 1));
    compare(&indexed, &plain);
    // These names come from the index alone, without a fold.
    for (text, nearest) in [
        ("toolu_03", "toolu_0"),
        ("alonf", "alone"),
        ("call_with_a_long_id_0004", "call_with_a_long_id_000"),
        ("Mixed_Cast", "Mixed_Case"),
    ] {
        let Err(FindError::NotFound { nearest: Some(near), .. }) = find(&indexed, text, None) else {
            panic!("{text:?} is found")
        };
        assert!(near.starts_with(nearest), "{text:?}: {near}");
    }
}

/// The index is behind after each short append. Then it was not asked, and each question for a name folded the whole store.
#[test]
fn an_index_that_is_behind_names_the_streams_that_it_knows() {
    let folder = TempDir::new().unwrap();
    filled(&folder);
    let path = folder.path().join("store");
    let plain = Store::builder(&path).create(false).index(false).open().unwrap();
    let late = [Entry::tool_started("toolu_011", "Read", r#"{"file_path":"/new"}"#)];
    for name in ["four", "two and more"] {
        let _ = plain.append(&StreamInfo::session("acpdb", name), late.to_vec()).unwrap();
    }
    let indexed = Store::builder(&path).read_only().open().unwrap();
    assert!(indexed.named(NameKind::Call, "alone", false, 9).is_none(), "it is behind");
    for (text, streams) in [("alone", 3), ("nothing", 2)] {
        let found = indexed.bearers(NameKind::Call, text, 9).unwrap().unwrap();
        assert_eq!(found.len(), streams, "{text}");
    }
    compare(&indexed, &plain);
    for name in ["one", "on", "two", "tw", "two ", "four", "f", "three", "t", "nothing"] {
        let found =
            |store: &Store| store.find_stream(name).map(|found| found.name).map_err(|it| it.to_string());
        assert_eq!(found(&indexed), found(&plain), "{name}");
    }
}

/// Names the same item for each text.
fn compare(indexed: &Store, plain: &Store) {
    let mut hashes = Vec::new();
    for stream in plain.stream_names().unwrap() {
        let view = plain.view(stream.id).unwrap();
        hashes.extend(view.history().into_iter().filter_map(|item| item.hash));
    }
    assert!(hashes.len() > 8, "{hashes:?}");
    let mut texts: Vec<String> = [
        "toolu_01",
        "toolu_0",
        "toolu_",
        "toolu_9",
        "alone",
        "alon",
        "shared",
        "shar",
        "x",
        "xx",
        "Mixed_Case",
        "mixed_case",
        "Mixed",
        "call_with_a_long_id_0001",
        "call_with_a_long_id_000",
        "call_with_a_long_id_0003",
        "call_with_a_long_id_0001_and_more",
        "call_with_a",
        "call_with_an",
        "call_w",
        "nothing like it",
        "r_00000",
        "r_0",
        "r_",
        "é",
        "000000",
    ]
    .map(str::to_owned)
    .into();
    for hash in &hashes {
        texts.extend([hash.clone(), hash.to_uppercase(), format!("{hash}0000"), hash[..5].to_owned()]);
        texts.extend([hash[2..].to_owned(), format!("{}0", &hash[2..])]);
    }
    texts.push("x".repeat(700));
    for text in &texts {
        assert_eq!(told(indexed, text), told(plain, text), "{text:?}");
    }
}
