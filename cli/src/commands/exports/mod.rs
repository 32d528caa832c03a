//! `acpdb export`: sessions as files for other programs.
//!
//! `acpdb_query::export` decides about their content; this module writes the files.

mod pages;

use std::path::Path;

use acpdb_engine::event::Scope;
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::export::otlp;
use acpdb_query::export::rows::{self, RowsReport};
use serde::Serialize;

use super::sink::{Stop, TargetSink, To};
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::{ExportAct, ExportOf, ExportSpans};

pub(crate) fn run(global: &Global, act: &ExportAct, output: &mut Output) -> Result<Code, Failure> {
    match act {
        ExportAct::Html(args) if args.all => pages::index(global, args, output),
        ExportAct::Html(args) => pages::page(global, args, output),
        ExportAct::Poster(args) => pages::poster(global, args, output),
        ExportAct::Jsonl(args) => jsonl(global, args, output),
        ExportAct::OtlpJson(args) => otlp_json(global, args, output),
        ExportAct::Audit(args) => super::audit::run(global, args, output),
    }
}

/// The result of an export, for programs.
#[derive(Serialize)]
struct ExportOutcome<'a, R: Serialize> {
    format: &'static str,
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    path: &'a Path,
    bytes: u64,
    #[serde(flatten)]
    report: R,
}

/// Prints the result of an export.
pub(super) fn finish(
    format: &'static str,
    to: &To,
    report: impl Serialize,
    output: &mut Output,
) -> Result<Code, Failure> {
    let To::File { path, bytes } = to else { return Ok(Code::Ok) };
    if output.json {
        output.json_object("acpdb.exported/1", &ExportOutcome { format, path, bytes: *bytes, report })?;
    } else {
        output.note(format!("{} in {}", describe::bytes(*bytes), path.display()));
    }
    Ok(Code::Ok)
}

fn jsonl(global: &Global, of: &ExportOf, output: &mut Output) -> Result<Code, Failure> {
    let sink = TargetSink::open(&of.target, output)?;
    let store = store_path::read(global, output)?;
    let sessions = chosen(&store, &of.sessions)?;
    let is_named = !of.sessions.is_empty();
    let (report, to) = sink.fill(|out| {
        let mut report = RowsReport::default();
        for session in &sessions {
            if let Some(view) = view(&store, global, session, is_named)? {
                rows::lines(&store, &view, session, out, &mut report)?;
            }
        }
        Ok(report)
    })?;
    finish("jsonl", &to, report, output)
}

fn otlp_json(global: &Global, args: &ExportSpans, output: &mut Output) -> Result<Code, Failure> {
    let sink = TargetSink::open(&args.of.target, output)?;
    let store = store_path::read(global, output)?;
    let sessions = chosen(&store, &args.of.sessions)?;
    let is_named = !args.of.sessions.is_empty();
    let (report, to) = sink.fill(|out| {
        let mut report = otlp::SpansReport::default();
        let options = otlp::SpanOptions { texts: args.texts };
        // Each session may be asked for as of a point of its own.
        let usages = match global.at {
            None => Some(otlp::Usages::read(&store, acpdb_engine::ids::Seq::MAX)?),
            Some(_) => None,
        };
        for session in &sessions {
            let Some(view) = view(&store, global, session, is_named)? else { continue };
            match &usages {
                Some(usages) => otlp::spans_with(&store, &view, usages, options, out, &mut report)?,
                None => otlp::spans(&store, &view, options, out, &mut report)?,
            }
        }
        Ok(report)
    })?;
    finish("otlp-json", &to, report, output)
}

/// The named sessions, else all.
fn chosen(store: &Store, named: &[String]) -> Result<Vec<StreamName>, Failure> {
    if named.is_empty() {
        let all = store.stream_names()?.into_iter().filter(|name| name.scope == Scope::Session);
        return Ok(all.collect());
    }
    let mut found: Vec<StreamName> = Vec::new();
    for name in named {
        let session = super::session::find(store, name)?;
        if !found.contains(&session) {
            found.push(session);
        }
    }
    Ok(found)
}

/// A session as of `--at`; `None` if it began later. A fork that is named also has the history that it shares with its parent.
fn view(
    store: &Store,
    global: &Global,
    session: &StreamName,
    is_named: bool,
) -> Result<Option<acpdb_engine::View>, Stop> {
    let at = global.at.as_deref();
    let Some(view) = super::find::view_among(store, global, session, at, is_named)? else { return Ok(None) };
    let is_there = {
        let state = view.state();
        state.first() <= view.at() || (is_named && state.items(view.at()).next().is_some())
    };
    Ok(is_there.then_some(view))
}
