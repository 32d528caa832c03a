//! Laws of a store on a disk: any flipped bit is reported and never served, an index made anew equals the live one.

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::{Position, Seq};
use acpdb_engine::index::{Index, IndexOptions, IndexState, MemoryIndex, rows_of};
use acpdb_engine::log::{Log, LogOptions};
use acpdb_engine::storage::{FileStorage, SimWorld, SystemClock, SystemEntropy};
use acpdb_engine::verify::{Verdict, verify_storage};
use acpdb_engine::{Error, Store};
use acpdb_tests::support::{events, fixed, line_of};

fn session(name: &str) -> StreamInfo {
    StreamInfo::session("opencode", name)
}

fn round(number: u32) -> Vec<Entry> {
    let call = format!("c{number}");
    vec![
        Entry::step(format!("s{number}")),
        Entry::message(format!("m{number}"), Role::Assistant, format!("round {number}"))
            .origin(format!("msg:{number}")),
        Entry::tool_started(&call, "read", format!(r#"{{"filePath":"f{}.rs"}}"#, number % 3)),
        Entry::tool_completed(&call, format!("line {number}\n").repeat(12)),
    ]
}

/// A closed store of a few commits on a simulated disk, and the lines of its events.
fn small_store() -> (SimWorld, BTreeMap<Seq, String>) {
    let world = SimWorld::new(1);
    let open = |number| {
        let builder = Store::builder("/sim").storage(Arc::new(world.process(number)));
        fixed(builder.segment_bytes_max(4096 + 3500), 5).open().unwrap()
    };
    let store = open(1);
    for number in 0..6 {
        let _ = store.append(&session(if number % 2 == 0 { "a" } else { "b" }), round(number)).unwrap();
    }
    store.close().unwrap();
    drop(store);
    let store = open(2);
    let lines = events(&store)
        .unwrap()
        .into_iter()
        .map(|event| (event.seq, line_of(&store, &event).unwrap()))
        .collect();
    (world, lines)
}

/// Every line that a damaged store still serves.
fn served(world: &SimWorld) -> Result<BTreeMap<Seq, String>, Error> {
    let builder = Store::builder("/sim").storage(Arc::new(world.process(9))).read_only();
    let store = builder.open()?;
    let mut lines = BTreeMap::new();
    for recorded in store.events(Seq(1), Seq::MAX)?.flatten() {
        // A body that cannot be trusted is an error, and then the line is not served.
        if let Ok(line) = line_of(&store, &recorded) {
            lines.insert(recorded.seq, line);
        }
    }
    Ok(lines)
}

#[test]
fn any_flipped_bit_is_reported_and_never_served() {
    let (world, truth) = small_store();
    let report = verify_storage(Arc::new(world.process(3)), true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
    let mut flips = 0;
    let files: Vec<String> =
        world.files().into_iter().filter(|name| name.starts_with("log/") || name == "acpdb.json").collect();
    assert!(files.len() > 3, "{files:?}");
    for name in files {
        let bytes = world.file(&name).unwrap();
        // Every fifth byte unless it is zero, and a sample of all bytes; the bit moves along.
        let places = (0..bytes.len()).filter(|at| (bytes[*at] != 0 && at % 5 == 0) || at % 61 == 0);
        for at in places {
            let damaged = world.fork(0);
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            damaged.set_file(&name, changed);
            flips += 1;
            // An error that refuses the whole store is a report, too.
            // However rows of places are damaged, the frames answer and the rows are made anew: only served events count.
            if !name.ends_with(".places")
                && let Ok(report) = verify_storage(Arc::new(damaged.process(4)), true)
            {
                assert_ne!(
                    report.verdict(),
                    Verdict::Sound,
                    "{name} byte {at}: a flipped bit is not reported"
                );
            }
            if let Ok(lines) = served(&damaged) {
                for (seq, line) in lines {
                    assert_eq!(truth.get(&seq), Some(&line), "{name} byte {at}: a wrong body is served");
                }
            }
        }
    }
    assert!(flips > 1000, "{flips}");
}

#[test]
fn an_index_made_anew_equals_the_live_one_row_by_row() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let store =
        Store::builder(&path).registry(acpdb_hosts::registry()).segment_bytes_max(64 << 10).open().unwrap();
    for number in 0..40 {
        let _ = store.append(&session("a"), round(number)).unwrap();
    }
    let first = store.reindex().unwrap();
    assert_eq!(store.reindex().unwrap().digest, first.digest);
    // From here on the index lives with the store.
    for number in 40..64 {
        let entries = (0..10).flat_map(|part| round(number * 10 + part)).collect();
        let _ = store.append(&session(["a", "b", "c"][number as usize % 3]), entries).unwrap();
        let _ = store.view(session("a").id()).unwrap();
    }
    assert_eq!(store.stream_names().unwrap().len(), 3);
    store.close().unwrap();
    drop(store);

    let options = LogOptions { read_only: true, ..LogOptions::default() };
    let files = Arc::new(FileStorage::new(&path));
    let (log, _) = Log::open(files, Arc::new(SystemClock::new()), Arc::new(SystemEntropy), options).unwrap();
    let rows: Vec<_> = log
        .frames(Position::default(), log.head())
        .map(|frame| rows_of(&frame.unwrap(), log.secret()))
        .collect();
    let IndexState::Owner(live) = Index::open_for(&log, IndexOptions::default()) else {
        panic!("the index cannot be opened");
    };
    let watermark = live.watermark();
    // How far it came is the background's business; there it must be right.
    assert!(watermark.seq.get() >= first.event_count, "{watermark:?}");
    let mut anew = MemoryIndex::default();
    for frame in &rows {
        if anew.watermark().seq < watermark.seq {
            anew.apply(std::slice::from_ref(frame)).unwrap();
        }
    }
    assert_eq!(anew.watermark(), watermark);
    assert_eq!(live.difference(&anew).unwrap(), None);
    assert_eq!(live.digest().unwrap(), anew.digest().unwrap());
    drop(live);

    // Made anew from all of the log, it equals the rows of all of the log.
    let mut whole = MemoryIndex::default();
    whole.apply(&rows).unwrap();
    let store = Store::builder(&path).open().unwrap();
    assert_eq!(store.reindex().unwrap().digest, whole.digest().unwrap());
}
