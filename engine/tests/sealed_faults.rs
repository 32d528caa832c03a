//! Calls to the storage that fail, or a process that dies, while keys are made, wrapped or destroyed, beside a handle that was open before: acknowledged
//! texts are readable or shredded on record, and the act can be done again.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "tests")]

use std::path::Path;
use std::sync::Arc;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Payload, Role};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::storage::{
    Crash, Fault, FaultKind, FileKeyRing, KeyRing, SimStorage, SimWorld, Storage, SystemEntropy,
};
use acpdb_engine::store::{VerifyOptions, verify_store_in};
use acpdb_engine::verify::Verdict;
use acpdb_engine::{Error, Store};

type Ring = Arc<dyn KeyRing>;

fn ring(folder: &Path, name: &str) -> Ring {
    Arc::new(FileKeyRing::create(&folder.join(name)).unwrap())
}

fn open(process: &SimStorage, ring: &Ring) -> Result<Store, Error> {
    let builder = Store::builder(Path::new("sim")).storage(Arc::new(process.clone())).segment_bytes_max(8192);
    let builder = builder.lock_wait(std::time::Duration::from_millis(3));
    builder.clock(Arc::new(process.clock())).entropy(Arc::new(SystemEntropy)).keys(Arc::clone(ring)).open()
}

fn about(name: &str) -> StreamInfo {
    let subject = (name != "plain").then(|| "zebra".to_owned());
    StreamInfo { subject, ..StreamInfo::session("acpdb", name) }
}

fn add(store: &Store, name: &str, id: &str) -> Result<(), Error> {
    let entry = Entry::message(id, Role::User, format!("text of {id}")).origin(format!("msg:{id}"));
    store.append(&about(name), vec![entry]).map(drop)
}

fn texts(store: &Store, name: &str) -> Result<Vec<String>, Error> {
    let mut texts = Vec::new();
    for recorded in store.stream_events(about(name).id(), Seq(1), Seq::MAX)? {
        let recorded = recorded?;
        if let Payload::MessageRecorded(message) = &recorded.event.payload {
            match store.body(message.parts[0].body.id(recorded.seq)) {
                Ok(bytes) => texts.push(String::from_utf8(bytes).unwrap()),
                Err(Error::Erased { lost: false, .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(texts)
}

fn is_on_record(store: &Store) -> bool {
    let mut events = store.stream_events(StreamId::STORE, Seq(1), Seq::MAX).unwrap();
    events.any(|it| matches!(it.unwrap().event.payload, Payload::Erased(_)))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    Shred,
    ShredSubject,
    RotateRing,
    RotateKeys,
    Begin,
    Append,
}

fn act(act: Act, store: &Store, new: &Ring) -> Result<(), Error> {
    match act {
        Act::Shred => store.shred(about("x").id(), "ann", "asked to").map(drop),
        Act::ShredSubject => store.shred_subject("zebra", "ann", "asked to").map(drop),
        Act::RotateRing => store.rotate_keys(new).map(drop),
        Act::RotateKeys => store.rotate_data_keys(None).map(drop),
        Act::Begin => add(store, "new", "m5"),
        Act::Append => add(store, "x", "m5"),
    }
}

fn well<T>(done: Result<T, Error>, context: &str) -> T {
    done.unwrap_or_else(|error| panic!("{context}: {error:?}"))
}

fn judge(what: Act, world: &SimWorld, other: &Store, done: bool, (old, new): (&Ring, &Ring), context: &str) {
    let beside = add(other, "plain", "m8");
    assert!(matches!(beside, Ok(()) | Err(Error::Poisoned | Error::Locked { .. })), "{context}: {beside:?}");
    if matches!(beside, Err(Error::Locked { .. })) {
        assert!(what == Act::RotateRing, "{context}: {beside:?}");
    } else {
        let read = well(texts(other, "plain"), context);
        assert_eq!(read.len(), 1 + usize::from(beside.is_ok()), "{context}");
    }
    let process = world.process(5);
    let store = if what == Act::RotateRing {
        // The store's own key goes last: as long as the old ring opens it, the old ring takes the work up again.
        match open(&process, old) {
            Err(Error::Locked { .. }) => {}
            opened => {
                assert!(!done, "{context}: the old ring opens it");
                well(act(what, &well(opened, context), new), context);
            }
        }
        open(&process, new)
    } else {
        open(&process, old)
    };
    let store = well(store, context);
    let plain = well(texts(&store, "plain"), context);
    assert_eq!(plain.len(), 1 + usize::from(beside.is_ok()), "{context}");
    let (is_shredded, is_told) = (store.is_shredded(about("x").id()).unwrap(), is_on_record(&store));
    assert_eq!(is_shredded, is_told, "{context}");
    let shreds = matches!(what, Act::Shred | Act::ShredSubject);
    assert!(is_shredded || !done || !shreds, "{context}");
    let x = well(texts(&store, "x"), context);
    assert_eq!(x.is_empty(), is_shredded, "{context}");
    let y = store.is_shredded(about("y").id()).unwrap();
    assert_eq!(y, is_shredded && what == Act::ShredSubject, "{context}");
    assert_eq!(texts(&store, "y").unwrap().is_empty(), y, "{context}");
    if !is_shredded && what != Act::RotateRing {
        // It can be done again.
        well(act(what, &store, new), context);
    }
    drop(store);
    let ring = if what == Act::RotateRing { new } else { old };
    let store = well(open(&world.process(6), ring), context);
    assert_eq!(texts(&store, "plain").unwrap(), plain, "{context}");
    assert_eq!(texts(&store, "x").unwrap().is_empty(), shreds, "{context}");
    add(&store, "plain", "m9").unwrap();
    drop(store);
    let storage: Arc<dyn Storage> = Arc::new(world.process(7));
    let options = VerifyOptions { keys: Some(Arc::clone(ring)), deep: true, ..VerifyOptions::default() };
    let report = verify_store_in(&storage, &options).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{context}: {report:#?}");
}

/// Calls between two that fail, or at which the process dies: each one is tried in three minutes, with none between.
const STEP: usize = 29;

#[test]
fn an_act_on_keys_that_fails_anywhere_can_be_done_again_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = (ring(folder.path(), "old.key"), ring(folder.path(), "new.key"));
    let template = SimWorld::new(5);
    {
        let store = open(&template.process(1), &old).unwrap();
        for (name, id) in [("x", "m1"), ("y", "m2"), ("plain", "m3")] {
            add(&store, name, id).unwrap();
        }
    }
    let mut count = 0;
    let acts = [Act::Shred, Act::ShredSubject, Act::RotateRing, Act::RotateKeys, Act::Begin, Act::Append];
    for (number, what) in acts.into_iter().enumerate() {
        // Whether the trouble came to pass.
        let mut meets = |trouble: &dyn Fn(&SimStorage), seed: u64, context: &str| {
            let world = template.fork(seed);
            let other = open(&world.process(3), &old).unwrap();
            let process = world.process(2);
            let store = open(&process, &old).unwrap();
            trouble(&process);
            let done = act(what, &store, &new).is_ok();
            drop(store);
            judge(what, &world, &other, done, (&old, &new), context);
            count += 1;
            process.was_hit() || process.is_dead()
        };
        let kinds = FaultKind::ALL.into_iter().filter(|kind| *kind != FaultKind::SyncLies);
        for (more, (kind, once)) in kinds.flat_map(|kind| [(kind, true), (kind, false)]).enumerate() {
            for after in ((number + more) as u64 % STEP as u64..).step_by(STEP) {
                let context = format!("{what:?}: {kind:?} after {after}, once: {once}");
                if !meets(&|it| it.plant(Fault { kind, after, once }), after, &context) {
                    break;
                }
            }
        }
        for call in (0..).step_by(STEP) {
            let kill = |it: &SimStorage| it.crash_at(it.operation_count() + call, Crash::Kill);
            if !meets(&kill, call, &format!("{what:?}: killed at its call {call}")) {
                break;
            }
        }
    }
    assert!(count > 180, "{count}");
}
