//! Chains that are read many objects at a time: the same is found as one by one, in far fewer turns.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use acpdb_engine::ids::StoreId;
use acpdb_engine::storage::{KeyRing, RawKeyRing, SystemEntropy};
use acpdb_engine::{Entry, Role, StreamInfo};

use super::counted::CountedRemote;
use super::world::{piece_behind, read_commits};
use crate::ahead::AheadRemote;
use crate::names::ObjectName;
use crate::{EncryptedRemote, Remote, RemoteChain, RemoteOptions, RemoteStore, open};

const STORE: StoreId = StoreId([3; 16]);

fn written(remote: &Arc<CountedRemote>, count: u64, pack_at: &[u64]) {
    let there: Arc<dyn Remote> = Arc::<CountedRemote>::clone(remote);
    let mut chain = RemoteChain::take_over(there, Arc::new(SystemEntropy), STORE, "worker").unwrap();
    for commit in 0..count {
        chain.append(&piece_behind(chain.place(), commit)).unwrap();
        if pack_at.contains(&commit) {
            chain.pack().unwrap();
        }
    }
}

#[test]
fn many_at_a_time_find_what_one_by_one_does() {
    for (count, pack_at) in
        [(0, &[][..]), (1, &[]), (3, &[2]), (200, &[]), (200, &[20, 40, 60, 80, 100, 120])]
    {
        let expected: Vec<u64> = (0..count).collect();
        for width in [1, 2, 32] {
            let remote = CountedRemote::wide(width);
            written(&remote, count, pack_at);
            assert_eq!(read_commits(&*remote, STORE), expected, "{count} commits, {width} at a time");
            // Who takes over reads them, too, and goes on behind the last one.
            let there: Arc<dyn Remote> = Arc::<CountedRemote>::clone(&remote);
            let mut chain = RemoteChain::take_over(there, Arc::new(SystemEntropy), STORE, "other").unwrap();
            assert_eq!(chain.place().seq.0, count);
            chain.append(&piece_behind(chain.place(), count)).unwrap();
            assert_eq!(read_commits(&*remote, STORE).len() as u64, count + 1);
        }
    }
}

#[test]
fn a_long_tail_takes_few_turns_and_few_calls_more() {
    let remote = CountedRemote::wide(32);
    written(&remote, 60, &[]);
    remote.count.store(0, SeqCst);
    let ahead = AheadRemote::new(&*remote, STORE);
    let mut batches = 0;
    for number in 1..=61 {
        let before = remote.count.load(SeqCst);
        assert!(ahead.get(&ObjectName::Entry(number).key(STORE), None).unwrap().is_some(), "{number}");
        batches += usize::from(remote.count.load(SeqCst) > before);
    }
    assert_eq!(ahead.get(&ObjectName::Entry(62).key(STORE), None).unwrap(), None);
    assert!(batches <= 5, "{batches}");
    assert!(remote.count.load(SeqCst) <= 61 + 32, "{:?}", remote.count);
    // One that is missing is looked for again: it may have come meanwhile.
    let _ = remote.create(&ObjectName::Entry(62).key(STORE), b"late").unwrap();
    assert!(ahead.get(&ObjectName::Entry(62).key(STORE), None).unwrap().is_some());
}

/// Objects of a prefix that lies were read thirty at a time, whatever their length.
#[test]
fn a_long_object_is_read_alone() {
    let remote = CountedRemote::wide(32);
    let long = vec![7; 3 << 20];
    for number in 1..=8 {
        let _ = remote.create(&ObjectName::Entry(number).key(STORE), &long).unwrap();
    }
    let ahead = AheadRemote::new(&*remote, STORE);
    for number in 1..=8 {
        let (object, _) = ahead.get(&ObjectName::Entry(number).key(STORE), None).unwrap().unwrap();
        assert!(object == long, "{number}");
    }
    assert_eq!(ahead.get(&ObjectName::Entry(9).key(STORE), None).unwrap(), None);
}

/// Small files were read two and three times, the entries twice, and each call is as long as the way there.
#[test]
fn a_worker_opens_a_store_with_each_object_read_once() {
    for is_sealed in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let real = CountedRemote::wide(32);
        let rings = Arc::new(AtomicUsize::new(0));
        let layer = || {
            let rings = Arc::clone(&rings);
            let layer =
                EncryptedRemote::new(Arc::<CountedRemote>::clone(&real)).find_rings(Box::new(move |_| {
                    rings.fetch_add(1, SeqCst);
                    Ok(Some(ring()))
                }));
            if is_sealed { layer.seal_new(Box::new(|| Ok(ring()))) } else { layer }
        };
        let opened = |name: &str| {
            let options =
                RemoteOptions::new(folder.path().join(name)).store(acpdb_engine::Builder::any_file_system);
            open(Arc::new(layer()), STORE, options).unwrap()
        };
        let session = |of: &RemoteStore| of.store().session(StreamInfo::session("test", "once"));
        let first = opened("first");
        for count in 0..90 {
            let entry = Entry::message(format!("m{count}"), Role::User, "text");
            let _ = session(&first).append([entry]).unwrap();
        }
        drop(first);
        rings.store(0, SeqCst);
        real.asked.lock().unwrap().clear();
        let second = opened("second");
        assert_eq!(session(&second).view().unwrap().current().len(), 90);
        let asked = real.asked.lock().unwrap().clone();
        for key in asked.iter().collect::<BTreeSet<_>>() {
            let count = asked.iter().filter(|other| *other == key).count();
            // The head is looked at before and behind the fence, and to see whether it is sealed.
            assert!(count <= if key.starts_with("heads/") { 3 } else { 1 }, "{key}: {count} of {asked:?}");
        }
        assert_eq!(rings.load(SeqCst), usize::from(is_sealed), "calls at a time ask for a key once");
    }
}

fn ring() -> Arc<dyn KeyRing> {
    Arc::new(RawKeyRing::new("a ring", &[1; 32]))
}
