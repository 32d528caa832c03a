//! `acpdb doctor seal`: complete segments, packed.

use serde_json::json;

use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::Seal;

pub(crate) fn run(global: &Global, args: &Seal, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "seal")?;
    let store = store_path::write(global, output)?;
    let report = {
        let _spinner = super::progress::spinner("sealing", output);
        let report = store.seal(args.all)?;
        crate::kept::leave(&store);
        report
    };
    let code = if !report.damage.is_empty() {
        Code::Damage
    } else if report.busy {
        Code::Busy
    } else {
        Code::Ok
    };
    if output.json {
        let value = describe::with(json!(report), json!({"schema": "acpdb.seal/1"}));
        output.json_line(&value)?;
        return Ok(code);
    }
    for sealed in &report.sealed {
        output.line(format!(
            "segment {}: {} to {}",
            sealed.segment,
            describe::bytes(sealed.bytes_before),
            describe::bytes(sealed.bytes_after),
        ))?;
    }
    if report.sealed.is_empty() && report.left == 0 {
        output
            .line("nothing to seal: only complete segments are sealed; --all completes the last one first")?;
    }
    for damage in &report.damage {
        output.warn(format!("left as it is: {damage}; run acpdb verify"));
    }
    if report.busy {
        output.warn("another process is sealing; try again later");
    }
    Ok(code)
}
