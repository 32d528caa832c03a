//! Sessions that calls of other ones started, in whatever order the files were read.

use std::collections::{BTreeSet, HashSet};

use acpdb_engine::entry::StreamInfo;
use acpdb_engine::ids::StreamId;
use acpdb_engine::store::StreamName;
use acpdb_engine::{Atomicity, Batch, Error, Store};

use super::FileReport;

/// Tells the sessions whose calls are not known which calls started them: their files may have been read before those of the sessions with the calls,
/// or behind them.
pub(crate) fn tell_started(store: &Store, reports: &[FileReport]) -> Result<(), Error> {
    let started = reports
        .iter()
        .flat_map(|file| file.report.started.iter().map(|started| started.info(file.report.format.name())));
    let started: Vec<StreamInfo> = started.collect();
    if started.is_empty() || reports.iter().all(|file| file.event_count == 0) {
        return Ok(());
    }
    let lacks_call = |name: &StreamName| name.started_by.as_ref().is_some_and(|it| it.call.is_none());
    let told: BTreeSet<StreamId> = started.iter().map(StreamInfo::id).collect();
    let names = store.stream_names_among(&told)?;
    let lacking: HashSet<StreamId> = names.into_iter().filter(lacks_call).map(|name| name.id).collect();
    let batches: Vec<Batch> = started
        .into_iter()
        .filter(|stream| lacking.contains(&stream.id()))
        .map(|stream| Batch { stream, entries: Vec::new() })
        .collect();
    if !batches.is_empty() {
        // Its receipt is for callers that go on from there.
        let _ = store.commit(&batches, Atomicity::Split)?;
    }
    Ok(())
}
