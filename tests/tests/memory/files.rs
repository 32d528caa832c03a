//! Memory files of real projects: the store's answers against a plain reading of the files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use acpdb_engine::fold::memory::MemoryStatus;
use acpdb_engine::ids::Seq;
use acpdb_engine::{MemoryScope, Store};
use acpdb_hosts::import::ImportFormat;
use acpdb_tests::support::{import_bytes, recordings};
use serde_json::Value;
use tempfile::TempDir;

use super::read;

const PREFERENCES: [(&str, usize, usize, usize); 2] = [
    ("preferences-gemini-cli-package-json", 547, 177, 63),
    ("preferences-gemini-cli-core-package-json", 426, 129, 46),
];

/// A store with one memory file in it, imported twice: the second time adds nothing.
fn imported(folder: &Path, name: &str, format: ImportFormat) -> (TempDir, Store, Vec<Value>) {
    let bytes = std::fs::read(folder.join(format!("{name}.jsonl"))).unwrap();
    let temp = TempDir::new().unwrap();
    let store = Store::builder(temp.path().join("store")).open().unwrap();
    let first = import_bytes(&store, format, name, &bytes).unwrap();
    assert_eq!(first.known_count, 0);
    let head = store.head().unwrap();
    let second = import_bytes(&store, format, name, &bytes).unwrap();
    assert_eq!(
        (second.event_count, store.head().unwrap()),
        (0, head),
        "{name}: a second import adds nothing"
    );
    let lines = String::from_utf8(bytes).unwrap();
    let records = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    (temp, store, records)
}

fn text<'v>(record: &'v Value, field: &str) -> &'v str {
    record[field].as_str().unwrap_or_default()
}

fn ids(record: &Value, field: &str) -> Vec<String> {
    record[field].as_array().into_iter().flatten().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn every_link_of_the_proposals_is_kept_and_decides_what_holds() {
    let folder = recordings().join("memory");
    let name = "decisions-peps";
    let (_temp, store, records) = imported(&folder, name, ImportFormat::MemoryDecisions);
    assert_eq!(records.len(), 691);
    assert_eq!(records.iter().filter(|it| !ids(it, "superseded_by").is_empty()).count(), 27);
    assert_eq!(records.iter().filter(|it| !ids(it, "replaces").is_empty()).count(), 34);

    // Either end may say so; said twice is one.
    let mut links: BTreeSet<(String, String)> = BTreeSet::new();
    let mut said: BTreeMap<(String, String), usize> = BTreeMap::new();
    for record in &records {
        let id = text(record, "id").to_owned();
        let forward = ids(record, "superseded_by").into_iter().map(|new| (id.clone(), new));
        let back = ids(record, "replaces").into_iter().map(|old| (old, id.clone()));
        for link in forward.chain(back) {
            *said.entry(link.clone()).or_default() += 1;
            links.insert(link);
        }
    }
    let known: BTreeSet<&str> = records.iter().map(|record| text(record, "id")).collect();
    let dangling: BTreeSet<(String, String)> = (links.iter())
        .filter(|(old, new)| !known.contains(old.as_str()) || !known.contains(new.as_str()))
        .cloned()
        .collect();
    assert!(said.values().any(|count| *count == 1) && said.values().any(|count| *count == 2));
    assert!(!dangling.is_empty());

    let scope = MemoryScope::project(name);
    read(&store, &scope, Seq::MAX, |view| {
        let (_, memory) = view.streams().next().unwrap();
        let pair = |edge: acpdb_engine::fold::memory::MemoryEdge| (edge.old, edge.new);
        let edges: Vec<_> = memory.edges().into_iter().map(pair).collect();
        assert_eq!(edges.len(), links.len(), "each link once");
        assert_eq!(edges.into_iter().collect::<BTreeSet<_>>(), links);
        assert_eq!(memory.dangling().into_iter().map(pair).collect::<BTreeSet<_>>(), dangling);
        let current: BTreeSet<String> = view.current().iter().map(|(_, item)| item.id().to_owned()).collect();
        let superseded: BTreeSet<&str> = links.iter().map(|(old, _)| old.as_str()).collect();
        let expected: BTreeSet<String> =
            known.iter().filter(|id| !superseded.contains(*id)).map(|id| (*id).to_owned()).collect();
        assert_eq!(current, expected);
        // A chain shows an end that is in no file, too.
        for (old, new) in &dangling {
            let here = if known.contains(old.as_str()) { old } else { new };
            let chain = memory.chain(&memory.by_id(here).unwrap());
            let members: Vec<&str> = chain.members.iter().map(|member| member.id.as_str()).collect();
            assert!(members.contains(&old.as_str()) && members.contains(&new.as_str()), "{members:?}");
        }
    });
}

#[test]
#[ignore = "reads recorded sessions: ACPDB_RECORDINGS"]
fn the_last_record_of_each_preference_holds_and_its_chain_is_the_file() {
    let folder = recordings().join("memory");
    for (name, record_count, key_count, removal_count) in PREFERENCES {
        let (_temp, store, records) = imported(&folder, name, ImportFormat::MemoryPreferences);
        let mut by_key: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
        for record in &records {
            by_key.entry((text(record, "category"), text(record, "key"))).or_default().push(record);
        }
        let removals = records.iter().filter(|record| record["value"].is_null()).count();
        assert_eq!((records.len(), by_key.len(), removals), (record_count, key_count, removal_count));

        read(&store, &MemoryScope::project(name), Seq::MAX, |view| {
            let (_, memory) = view.streams().next().unwrap();
            let mut retracted_count = 0;
            for ((category, key), records) in &by_key {
                let current = view.by_key(category, key).map(|(_, item)| view.text(&item).unwrap());
                let last = records.last().unwrap()["value"].as_str().map(str::to_owned);
                assert_eq!(current, last, "{name}: {category}/{key}");

                // The items of the key, in order, are the values of the file in order, but for equal ones in a row.
                let items: Vec<_> = (memory.all().into_iter())
                    .filter(|item| (item.category(), item.key()) == (*category, Some(*key)))
                    .collect();
                let mut expected: Vec<(String, bool)> = Vec::new();
                let mut before: Option<&str> = None;
                for record in records {
                    assert_eq!(record["previous"].as_str(), before, "{name}: {category}/{key}");
                    match record["value"].as_str() {
                        Some(value) if before.is_some_and(|it| it.to_lowercase() == value.to_lowercase()) => {
                        }
                        Some(value) => expected.push((value.to_owned(), false)),
                        None => expected.last_mut().unwrap().1 = true,
                    }
                    before = record["value"].as_str();
                }
                let found: Vec<(String, bool)> =
                    items.iter().map(|item| (view.text(item).unwrap(), item.is_retracted())).collect();
                assert_eq!(found, expected, "{name}: {category}/{key}");
                retracted_count += items.iter().filter(|item| item.is_retracted()).count();

                // Each value but the last is gone for a reason: the next one of the key took its place, or it was removed.
                for (item, next) in items.iter().zip(items.iter().skip(1)) {
                    let by: Vec<String> = memory.superseded_by(item).into_iter().map(|it| it.new).collect();
                    if item.is_retracted() {
                        assert_eq!(item.standing(view.now()), MemoryStatus::Retracted);
                    } else {
                        assert_eq!(by, [next.id()], "{name}: {category}/{key}");
                    }
                }
                assert!(
                    items.iter().filter(|item| item.standing(view.now()) == MemoryStatus::Current).count()
                        <= 1
                );
            }
            assert_eq!(retracted_count, removal_count, "{name}: each removal is a retraction");
        });
    }
}
