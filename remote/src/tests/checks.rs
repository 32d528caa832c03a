//! A check of what is there: each kind of damage is named, and what is no damage is not.

use std::sync::Arc;

use acpdb_engine::ids::StoreId;

use crate::names::{ObjectName, head_key, meta_key};
use crate::objects::head_of;
use crate::{ChainError, MemoryRemote, RehearsedRemote, Remote, RemoteOptions, check, open, store_of};

/// A store with segments, packs, chunks, a fence and a torn entry.
fn world(folder: &std::path::Path) -> (Arc<MemoryRemote>, StoreId) {
    let memory = Arc::new(MemoryRemote::new());
    let id = store_of("checked");
    for worker in 0..2 {
        let options = RemoteOptions::new(folder.join(format!("w{worker}")))
            .store(|store| store.any_file_system().segment_bytes_max(48 << 10));
        let opened = open(Arc::clone(&memory) as Arc<dyn Remote>, id, options).unwrap();
        let session = opened.store().session(acpdb_engine::StreamInfo::session("test", "checks"));
        for number in 0..110 {
            let text = format!("message {number} of {worker} ").repeat(20);
            let entry =
                acpdb_engine::Entry::message(format!("m{worker}-{number}"), acpdb_engine::Role::User, text);
            let _ = session.append([entry]).unwrap();
        }
    }
    (memory, id)
}

fn is_entry(id: StoreId, key: &str) -> Option<u64> {
    match ObjectName::parse(id, key) {
        Some(ObjectName::Entry(number)) => Some(number),
        _ => None,
    }
}

#[test]
fn a_check_counts_what_is_there_and_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, id) = world(folder.path());
    let before = memory.all();
    let last = before.keys().filter_map(|key| is_entry(id, key)).max().unwrap();
    let whole = check(&*memory, id, false).unwrap();
    let quick = check(&*memory, id, true).unwrap();
    for report in [&whole, &quick] {
        assert!(report.is_sound && !report.lacks_secret, "{report:?}");
        assert_eq!((report.epoch, report.torn, report.left_over), (2, 0, 0));
        assert!(report.segments > 1 && report.chunks > 0, "{report:?}");
    }
    assert!(whole.head_seq > quick.head_seq && whole.fences > 0, "{whole:?}");
    // A writer that died in the middle of a PUT is no damage.
    memory.set(&ObjectName::Entry(last + 1).key(id), Some(Vec::new()));
    for is_quick in [false, true] {
        let report = check(&*memory, id, is_quick).unwrap();
        assert!(report.is_sound && report.torn == 1, "{report:?}");
    }
    memory.set(&ObjectName::Entry(last + 1).key(id), None);
    assert_eq!(memory.all(), before);
    memory.set(&meta_key(id, "secret"), None);
    assert!(check(&*memory, id, true).unwrap().lacks_secret);
    let none = check(&*memory, store_of("none"), true);
    assert!(matches!(none, Err(ChainError::NoStore { .. })));
    memory.set(&head_key(id), Some(b"junk".to_vec()));
    assert!(matches!(check(&*memory, id, true), Err(ChainError::HeadLost { .. })));
}

/// Each object that counts is flipped, cut and taken away, one at a time.
#[test]
fn each_damaged_object_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, id) = world(folder.path());
    let (head, _) = head_of(&*memory, id).unwrap().unwrap();
    let before = memory.all();
    let last = before.keys().filter_map(|key| is_entry(id, key)).max().unwrap();
    let mut tried = 0;
    for (key, object) in &before {
        let number = is_entry(id, key);
        let is_fence = number.is_some() && object.len() == crate::run::RUN_HEADER_BYTES;
        let is_secret = *key == meta_key(id, "secret") || !key.starts_with("s/");
        // Nothing tells that the last entry is missing, and fences before the boundary are of the past.
        if is_secret || is_fence || number.is_some_and(|number| number < head.boundary || number == last) {
            continue;
        }
        let flipped: Vec<u8> =
            object.iter().enumerate().map(|(at, byte)| byte ^ u8::from(at + 9 == object.len())).collect();
        for changed in [Some(flipped), Some(object[..object.len() / 2].to_vec()), None] {
            let is_gone = changed.is_none();
            memory.set(key, changed);
            let report = check(&*memory, id, false).unwrap();
            assert!(!report.is_sound, "{key}");
            // A chunk that is damaged is found by the one that continues it.
            let is_named = report.violations.iter().any(|found| found.key == *key);
            assert!(is_named || number.is_some() && !report.violations.is_empty(), "{key}: {report:?}");
            if is_gone && !key.contains("/meta/") {
                let quick = check(&*memory, id, true).unwrap();
                assert!(quick.violations.iter().any(|found| found.key == *key), "{key}: {quick:?}");
            }
            tried += 1;
        }
        memory.set(key, Some(object.clone()));
    }
    assert!(tried > 20 && check(&*memory, id, false).unwrap().is_sound);
}

/// Entries were read a second time to count fences and torn ones, and all named objects once more after the first fault: a check of a large store took
/// twice the requests. And behind a fault only the objects themselves were looked at, not whether their frames continue each other.
#[test]
fn a_check_reads_each_object_once_whatever_is_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let (memory, id) = world(folder.path());
    let before = memory.all();
    let named = |key: &&String| ObjectName::parse(id, key).is_some();
    let keys: Vec<String> = before.keys().filter(named).cloned().collect();
    let segments: Vec<&String> = keys.iter().filter(|key| key.contains("/seg/")).collect();
    // The head four times, the store file, the secret, the first number that is missing; where an object is gone, the head once more.
    let most = keys.len() as u64 + 8;
    for damaged in [vec![], vec![segments[0]], vec![segments[0], segments[1]], vec![keys.last().unwrap()]] {
        for is_gone in [false, true] {
            for key in &damaged {
                memory.set(key, (!is_gone).then(|| b"junk".to_vec()));
            }
            let counted = RehearsedRemote::new(Arc::clone(&memory) as Arc<dyn Remote>);
            let report = check(&counted, id, false).unwrap();
            let reads = counted.count().reads;
            assert!(reads <= most + damaged.len() as u64, "{damaged:?}, gone: {is_gone}: {reads}, {most}");
            for key in &damaged {
                assert!(report.violations.iter().any(|found| found.key == **key), "{key}: {report:?}");
                memory.set(key, Some(before[*key].clone()));
            }
            // Objects behind a fault are read to the end.
            let sound = check(&*memory, id, false).unwrap();
            assert_eq!((report.head_seq, report.fences), (sound.head_seq, sound.fences), "{damaged:?}");
        }
    }
}
