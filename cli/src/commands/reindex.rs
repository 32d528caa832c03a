//! `acpdb doctor reindex`: the index made anew from the log.

use acpdb_engine::index::LiveComparison;

use super::{Code, Failure, Global, Output, describe, store_path};

pub(crate) fn run(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "reindex")?;
    let store = store_path::write(global, output)?;
    if store.is_encrypted() {
        let message = format!("{} is encrypted, and such a store keeps no index", store.root().display());
        return Err(Failure::usage(message).hint("there is nothing to make anew"));
    }
    let done = {
        let _spinner = super::progress::spinner("reading the log", output);
        let done = store.reindex()?;
        crate::kept::leave(&store);
        done
    };
    if output.json {
        return output.json_line(&serde_json::json!({
            "schema": "acpdb.reindex/1",
            "event_count": done.event_count,
            "row_count": done.row_count,
            "bytes": done.bytes,
            "digest": done.digest,
            "live": format!("{:?}", done.live).to_lowercase(),
        }));
    }
    let live = match done.live {
        LiveComparison::Absent => "there was none before",
        LiveComparison::Elsewhere { .. } => "the old one had not come as far",
        LiveComparison::Equal => "the old one was equal, row by row",
        LiveComparison::Different => "the old one was damaged or of another version",
    };
    output.line(format!(
        "index.redb holds {} for {} in {}; {live}",
        describe::count(done.row_count, "row"),
        describe::count(done.event_count, "event"),
        describe::bytes(done.bytes)
    ))?;
    Ok(Code::Ok)
}
