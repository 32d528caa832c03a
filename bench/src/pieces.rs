//! Two ways to keep thousands of entries: one large frame in pieces, or many small frames with one sync at the end.
//!
//! ```text
//! the same entries --> commits of 1,000, each synced          frames of pieces
//!                 '--> commits of 16, one sync at the end     small frames
//! ```

use acpdb_engine::ids::{BodyId, Seq};
use acpdb_engine::{Atomicity, Batch, Durability, Store};

use crate::measure::{middle, own, spent};
use crate::report::{Report, Target};
use crate::session::{Numbers, Session};
use crate::{Options, Outcome};

/// A way of recording.
struct Way {
    name: &'static str,
    entries_per_commit: usize,
    durability: Durability,
}

const WAYS: [Way; 2] = [
    Way { name: "commits of 1,000", entries_per_commit: 1000, durability: Durability::Sync },
    Way { name: "commits of 16, settled once", entries_per_commit: 16, durability: Durability::Os },
];

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let (sessions, calls, rounds) = if options.quick { (4, 500, 1) } else { (20, 1500, 3) };
    for way in &WAYS {
        let mut rows: Vec<[f64; 6]> = Vec::new();
        for _ in 0..rounds {
            rows.push(measured(options, way, sessions, calls)?);
        }
        let names =
            ["bytes of log an event", "record an event", "get one, the first of a process", "get one"];
        let more = ["first view of a session", "open"];
        let units = ["B", "us", "us", "us", "ms", "ms"];
        for (column, (name, unit)) in names.into_iter().chain(more).zip(units).enumerate() {
            let values = rows.iter().filter_map(|row| row.get(column).copied()).collect();
            report.row(format!("{}: {name}", way.name), middle(values), unit, Target::None);
        }
    }
    Ok(())
}

fn measured(options: &Options, way: &Way, sessions: usize, calls: usize) -> Outcome<[f64; 6]> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let open = |durability| {
        let builder = Store::builder(folder.path()).registry(acpdb_hosts::registry());
        builder.durability(durability).sealing(false).snapshots(false).open()
    };
    let store = open(way.durability)?;
    let mut stream = None;
    let mut taken = 0.0;
    for number in 0..sessions {
        let mut session = Session::new(&format!("session-{number:03}"));
        let mut entries = Vec::new();
        for _ in 0..calls {
            session.call(&mut entries);
        }
        let batches: Vec<Batch> = entries
            .chunks(way.entries_per_commit)
            .map(|part| Batch { stream: session.info.clone(), entries: part.to_vec() })
            .collect();
        let (done, time) = spent(|| {
            for batch in &batches {
                let _ = store.commit(std::slice::from_ref(batch), Atomicity::One)?;
            }
            store.sync()
        });
        done?;
        taken += time.cpu;
        stream = Some(session.info.id()).filter(|_| number == sessions / 2).or(stream);
    }
    let head = store.head()?.get();
    let bytes = store.info()?.log_bytes;
    store.close()?;
    drop(store);
    let stream = stream.ok_or("no session")?;
    let mut numbers = Numbers(11);
    let mut seqs = || Seq(1 + numbers.next() % head);
    let get = |store: &Store, seq: Seq| -> Outcome<f64> {
        let (found, time) = own(|| {
            let event = store.event(seq)?;
            let bodies = store.body_count(seq)?;
            store.bodies(&(0..bodies).map(|first| BodyId { seq, first, chunks: 1 }).collect::<Vec<_>>());
            Ok::<_, acpdb_engine::Error>(event)
        });
        found?.ok_or("no such event")?;
        Ok(time)
    };
    let mut firsts = Vec::new();
    let mut opened = Vec::new();
    let mut viewed = Vec::new();
    for _ in 0..9 {
        let (store, time) = own(|| open(Durability::Sync));
        let store = store?;
        opened.push(time);
        firsts.push(get(&store, seqs())?);
        let (view, time) = own(|| store.view(stream));
        let _ = view?;
        viewed.push(time);
    }
    let store = open(Durability::Sync)?;
    let mut gets = Vec::new();
    for _ in 0..2000 {
        gets.push(get(&store, seqs())?);
    }
    let mean = gets.iter().sum::<f64>() / float(gets.len() as u64);
    Ok([
        float(bytes) / float(head),
        taken / float(head) * 1e6,
        middle(firsts) * 1e6,
        mean * 1e6,
        middle(viewed) * 1e3,
        middle(opened) * 1e3,
    ])
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn float(count: u64) -> f64 {
    count as f64
}
