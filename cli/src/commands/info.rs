//! `acpdb info`: what the store holds and where.

use super::describe;
use crate::args::Global;
use crate::failure::{Code, Failure};
use crate::output::Output;
use crate::place;

pub(crate) fn run(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    let store = place::read(global, output)?;
    let info = store.info()?;
    if output.json {
        let mut value = serde_json::to_value(&info).unwrap_or_default();
        if let Some(object) = value.as_object_mut() {
            object.insert("schema".to_owned(), "acpdb.info/1".into());
        }
        output.json_line(&value)?;
        return Ok(Code::Ok);
    }
    let mut field = |name: &str, value: String| output.line(format!("{name:<10} {value}"));
    field("store", store.root().display().to_string())?;
    field("id", info.id.to_hex())?;
    field("format", info.format_version.to_string())?;
    field("head", format!("{}, {}", info.head, describe::count(info.head.get(), "event")))?;
    field("streams", format!("{} ({})", info.stream_count, describe::count(info.session_count, "session")))?;
    field(
        "log",
        format!("{} in {}", describe::bytes(info.log_bytes), describe::count(info.segment_count, "segment")),
    )?;
    field("index", info.index.clone())?;
    if info.quarantine_bytes > 0 {
        field(
            "quarantine",
            format!("{}, set aside by recovery; may be deleted", describe::bytes(info.quarantine_bytes)),
        )?;
    }
    Ok(Code::Ok)
}
