//! No input makes an importer panic, lose count, or hand out a record without its bytes.

use acpdb_hosts::import::{ImportBatch, ImportFormat, ImportOptions, read, wire};
use proptest::prelude::*;

pub(crate) const INPUTS: [(ImportFormat, &str); 13] = [
    (ImportFormat::Codex, super::codex::SESSION),
    (ImportFormat::Codex, super::codex::MARKS),
    (ImportFormat::CopilotCli, super::copilot::SESSION),
    (ImportFormat::Pi, super::pi::SESSION),
    (ImportFormat::GeminiCli, super::gemini::DOCUMENT),
    (ImportFormat::GeminiCli, super::gemini::LOG),
    (ImportFormat::OpenaiMessages, super::openai::RUNS),
    (ImportFormat::OpenaiMessages, super::openai::LIST),
    (ImportFormat::OpenaiMessages, super::openai::SIMULATIONS),
    (ImportFormat::SweAgent, super::swe::RUN),
    (ImportFormat::MemoryDecisions, super::memory::DECISIONS),
    (ImportFormat::MemoryPreferences, super::memory::PREFERENCES),
    (ImportFormat::Codex, ""),
];

/// A change to an input at an offset.
#[derive(Clone, Debug)]
enum Change {
    Cut,
    Remove(usize),
    Replace(u8),
    Insert(&'static str),
    Repeat(usize),
}

fn change() -> impl Strategy<Value = Change> {
    let texts = [
        "null",
        "{}",
        "[]",
        "\"\"",
        "{",
        "}",
        "]",
        "\"",
        ",",
        "\n",
        "\\ud800",
        "1e999",
        "-1",
        "{\"a\":1}",
        "[[[[",
        "\u{feff}",
        "true",
        "\"role\":\"tool\",",
        "\"id\":\"m1\",",
        "\"type\":\"user\",",
    ];
    prop_oneof![
        Just(Change::Cut),
        (1..60_usize).prop_map(Change::Remove),
        any::<u8>().prop_map(Change::Replace),
        prop::sample::select(texts.to_vec()).prop_map(Change::Insert),
        (1..400_usize).prop_map(Change::Repeat),
    ]
}

fn changed(input: &str, changes: &[(prop::sample::Index, Change)]) -> Vec<u8> {
    let mut bytes = input.as_bytes().to_vec();
    for (place, change) in changes {
        let at = place.index(bytes.len() + 1);
        let end = |count: &usize| (at + count).min(bytes.len());
        match change {
            Change::Cut => bytes.truncate(at),
            Change::Remove(count) => drop(bytes.drain(at..end(count))),
            Change::Replace(byte) => {
                if let Some(slot) = bytes.get_mut(at) {
                    *slot = *byte;
                }
            }
            Change::Insert(text) => drop(bytes.splice(at..at, text.bytes())),
            Change::Repeat(count) => {
                let piece = bytes[at..end(count)].to_vec();
                bytes.splice(at..at, piece);
            }
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn mutated_inputs_are_read_to_the_end(
        which in 0..INPUTS.len(),
        reader in 0..INPUTS.len(),
        other in prop::bool::weighted(0.1),
        changes in prop::collection::vec((any::<prop::sample::Index>(), change()), 0..8),
    ) {
        let (own, input) = INPUTS[which];
        let format = if other { INPUTS[reader].0 } else { own };
        let bytes = changed(input, &changes);
        let mut batches = Vec::new();
        let report = read(format, "name", &bytes[..], &ImportOptions::default(), &mut batches).unwrap();
        let mut kept = 0;
        let has_wire = |batch: &ImportBatch| batch.entries.iter().any(|entry| !entry.wire.is_empty());
        // An answer whose model came in no later record is told behind all records.
        let record_count = batches.iter().rposition(has_wire).map_or(0, |last| last + 1);
        for end in &batches[record_count..] {
            prop_assert!(ends_tell(format), "{:?}", end);
            prop_assert!(end.entries.iter().all(|entry| entry.origin.is_some()), "{:?}", end);
        }
        for batch in &batches[..record_count] {
            let wires = batch.entries.iter().filter(|entry| !entry.wire.is_empty());
            prop_assert_eq!(wires.clone().count(), 1);
            for entry in wires {
                prop_assert!(entry.origin.is_some());
                match wire::resolve(&entry.wire) {
                    // A record's bytes stand in the input as they are.
                    Some(record) if !matches!(format, ImportFormat::OpenaiMessages) => {
                        prop_assert!(memchr_find(&bytes, &record), "{:?}", String::from_utf8_lossy(&record));
                    }
                    _ => {}
                }
                kept += 1;
            }
        }
        let twice = |times: usize| {
            let mut store = super::twice::Store::default();
            for _ in 0..times {
                store.take(&batches);
            }
            store.event_count
        };
        prop_assert_eq!(twice(2), twice(1), "a second import adds nothing: {}", String::from_utf8_lossy(&bytes));
        prop_assert!(kept >= report.records, "{} wires, {:?}", kept, report);
    }
}

/// Whether a format may have facts that the end of its input settles.
fn ends_tell(format: ImportFormat) -> bool {
    matches!(format, ImportFormat::CopilotCli)
}

fn memchr_find(whole: &[u8], part: &[u8]) -> bool {
    part.is_empty() || whole.windows(part.len()).any(|window| window == part)
}
