//! `acpdb context SESSION --format F`: the body of a request, or a transcript.

use acpdb_engine::View;
use acpdb_hosts::export::{
    ExportChoices, ExportReport, Format, Selection, Unfinished, export, export_served,
};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Code, EscapeLevel, Failure, Output, escape};
use crate::args::{ExportMode, ExportOptions};

#[derive(Serialize)]
struct ExportResult<'a> {
    format: &'static str,
    renderer: u32,
    closing: usize,
    messages: usize,
    report: &'a ExportReport,
    body: ExportBody<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ExportBody<'a> {
    Request(&'a RawValue),
    Transcript(std::borrow::Cow<'a, str>),
}

pub(crate) fn run(
    view: &View,
    args: &ExportOptions,
    recorded: bool,
    format: Format,
    output: &mut Output,
) -> Result<Code, Failure> {
    let selection = match args.mode.unwrap_or(ExportMode::Eager) {
        _ if recorded => Selection::Recorded,
        ExportMode::Eager | ExportMode::Batched => Selection::Current,
        ExportMode::Whole => Selection::Whole,
        ExportMode::History => Selection::History,
    };
    let unfinished = if args.synthetic_results { Unfinished::Synthetic } else { Unfinished::LeaveOut };
    let options = ExportChoices {
        selection,
        unfinished,
        model: args.model.clone(),
        // The host's context is exported without changes; a history is no request.
        breakpoints: !args.no_breakpoints && !recorded && args.mode != Some(ExportMode::History),
        ..ExportChoices::default()
    };
    let export = match args.mode {
        Some(ExportMode::Batched) => export_served(&acpdb_serve::Served::to_send(view), format, &options)?,
        _ => export(view, format, &options)?,
    };
    if output.json {
        let request = match format.provider() {
            None => None,
            Some(_) => Some(serde_json::from_slice::<&RawValue>(&export.bytes).map_err(|error| {
                Failure::new(Code::Failure, format!("the request that was made is no JSON: {error}"))
            })?),
        };
        let body = request.map_or_else(
            || ExportBody::Transcript(String::from_utf8_lossy(&export.bytes)),
            ExportBody::Request,
        );
        let answer = ExportResult {
            format: export.format.name(),
            renderer: export.renderer,
            closing: export.closing,
            messages: export.message_count,
            report: &export.report,
            body,
        };
        return output.json_object("acpdb.export/1", &answer);
    }
    for line in export.report.lines() {
        output.note(line);
    }
    if output.terminal {
        let text = String::from_utf8_lossy(&export.bytes);
        if format.provider().is_some() {
            output.json_text(text.trim_end())?;
        } else {
            output.line(escape(text.trim_end(), EscapeLevel::Text))?;
        }
    } else {
        output.bytes(&export.bytes)?;
        if !export.bytes.ends_with(b"\n") {
            output.bytes(b"\n")?;
        }
    }
    Ok(Code::Ok)
}
