//! `acpdb reindex`: the index made anew from the log.

use crate::args::Global;
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

pub(crate) fn run(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    let store = place::read(global, output)?;
    let done = store.reindex()?;
    if output.json {
        output.json_line(&serde_json::json!({
            "schema": "acpdb.reindex/1",
            "rows": done.row_count,
            "watermark": done.watermark,
            "digest": done.digest,
        }))?;
    } else {
        output.line(format!("index.redb holds {} rows up to {}", done.row_count, done.watermark))?;
    }
    Ok(Code::Ok)
}
