//! The cost of encryption: the same work in a plain store and in a store whose streams are sealed, in one run.

use std::sync::Arc;

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::keys::FileKeyRing;
use acpdb_engine::{Builder, Store};

use crate::measure::{median, middle, spent};
use crate::report::{Report, Target};
use crate::session::Session;
use crate::{Options, Outcome};

/// Plain and sealed, in this order.
const BOTH: [bool; 2] = [false, true];
/// Name of the session that is replayed.
const LONG: &str = "long";

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let ring = Arc::new(FileKeyRing::create(&folder.path().join("bench.key"))?);
    let builder = |name: &str, is_sealed: bool| -> Builder {
        let path = folder.path().join(format!("{name}-{is_sealed}"));
        // Neither store has an index or saved folds: an encrypted store keeps none.
        let builder = Store::builder(path).registry(acpdb_hosts::registry()).index(false).snapshots(false);
        if is_sealed { builder.keys(ring.clone()) } else { builder }
    };
    commits(options, &builder, report)?;
    let (rounds, calls) = if options.quick { (3, 1_000) } else { (5, 9_200) };
    let mut bulk = [Vec::new(), Vec::new()];
    for round in 0..rounds {
        for (times, is_sealed) in bulk.iter_mut().zip(BOTH) {
            let store = builder(&format!("bulk-{round}"), is_sealed).open()?;
            let (done, spent) = spent(|| Session::new(LONG).record(&store, calls));
            done?;
            store.close()?;
            times.push(spent.cpu);
        }
    }
    row(report, "bulk: a long session recorded, processor", bulk.map(middle), 1.3);
    let name = Session::new(LONG).info.id();
    let mut replay = [0.0; 2];
    for (time, is_sealed) in replay.iter_mut().zip(BOTH) {
        *time = median(rounds, || {
            let store = builder("bulk-0", is_sealed).read_only().open()?;
            let (view, spent) = spent(|| store.view(name).map(|view| view.current().len()));
            view?;
            Ok(spent.cpu)
        })?;
    }
    row(report, "replay: its fold from nothing, processor", replay, 1.5);
    Ok(())
}

/// Small commits, each on the disk before the next.
fn commits(options: &Options, builder: &dyn Fn(&str, bool) -> Builder, report: &mut Report) -> Outcome<()> {
    let count = if options.quick { 100 } else { 600 };
    let stores = [builder("commits", false).open()?, builder("commits", true).open()?];
    let session = StreamInfo::session("acpdb", "commits");
    let mut times = [Vec::new(), Vec::new()];
    for number in 0..count {
        for (times, store) in times.iter_mut().zip(&stores) {
            let text = format!("{number} {}", "what was said in a few lines ".repeat(20));
            let entry = Entry::message(format!("m{number}"), Role::User, text);
            let (receipt, spent) = spent(|| store.append(&session, vec![entry]));
            let _ = receipt?;
            times.push(spent.wall);
        }
    }
    row(report, "commit: a message of 600 bytes, synced", times.map(middle), 1.25);
    Ok(())
}

/// Both times, and their ratio.
fn row(report: &mut Report, name: &str, [plain, sealed]: [f64; 2], limit: f64) {
    report.row(format!("{name}, plain"), plain * 1e3, "ms", Target::None);
    report.row(format!("{name}, sealed"), sealed * 1e3, "ms", Target::None);
    report.row(format!("{name}, ratio"), sealed / plain, "x", Target::AtMost(limit));
}
