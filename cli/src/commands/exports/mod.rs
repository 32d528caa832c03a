//! `acpdb export`: sessions as files for other programs.
//!
//! `acpdb_query::export` decides about their content; this module writes the files.

mod pages;
#[cfg_attr(not(feature = "png"), path = "no_painter.rs")]
mod painter;
mod target;

use std::io::Write;
use std::path::Path;

use acpdb_engine::event::Scope;
use acpdb_engine::ids::StreamId;
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::export::otlp;
use acpdb_query::export::parcels::parcels;
use acpdb_query::export::rows::{self, RowsReport};
use serde::Serialize;

pub(crate) use self::target::{Sink, To};
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::{ExportAct, ExportLines, ExportSpans, Lines};

pub(crate) fn run(global: &Global, act: &ExportAct, output: &mut Output) -> Result<Code, Failure> {
    match act {
        ExportAct::Html(args) if args.all => pages::index(global, args, output),
        ExportAct::Html(args) => pages::page(global, args, output),
        ExportAct::Poster(args) => pages::poster(global, args, output),
        ExportAct::Jsonl(args) => jsonl(global, args, output),
        ExportAct::OtlpJson(args) => otlp_json(global, args, output),
    }
}

/// The result of an export, for programs.
#[derive(Serialize)]
struct Written<'a, R: Serialize> {
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
        output.json_object("acpdb.exported/1", &Written { format, path, bytes: *bytes, report })?;
    } else {
        output.note(format!("{} in {}", describe::bytes(*bytes), path.display()));
    }
    Ok(Code::Ok)
}

/// The result of an export of lines.
#[derive(Default, Serialize)]
struct LinesReport {
    #[serde(flatten)]
    rows: RowsReport,
    /// Events.
    events: u64,
}

fn jsonl(global: &Global, args: &ExportLines, output: &mut Output) -> Result<Code, Failure> {
    if global.at.is_some() && args.only == Some(Lines::Events) {
        return Err(
            Failure::usage("events are those of the whole log, not as of a point").hint("leave out --at")
        );
    }
    let sink = Sink::open(&args.of.target, output)?;
    let store = store_path::read(global, output)?;
    let sessions = chosen(&store, &args.of.sessions)?;
    let streams: Vec<StreamId> = sessions.iter().map(|session| session.id).collect();
    let is_named = !args.of.sessions.is_empty();
    let streams = is_named.then_some(streams.as_slice());
    let items_only = args.only == Some(Lines::Items) || global.at.is_some();
    if items_only && args.only.is_none() {
        output.note("as of a point there are items only; leave out --at for what another store can import");
    }
    let (report, to) = sink.fill(|out| {
        let mut report = LinesReport::default();
        if items_only {
            report.rows = each(&store, global, (&sessions, is_named), out)?;
            return Ok(report);
        }
        let mut stopped = None;
        let told = parcels(&store, streams, out, |out| {
            if args.only == Some(Lines::Events) {
                return Ok(());
            }
            match each(&store, global, (&sessions, is_named), out) {
                Ok(rows) => report.rows = rows,
                Err(target::Stop::Export(error)) => return Err(error),
                Err(stop) => stopped = Some(stop),
            }
            Ok(())
        });
        report.events = told?;
        stopped.map_or(Ok(report), Err)
    })?;
    finish("jsonl", &to, report, output)
}

fn otlp_json(global: &Global, args: &ExportSpans, output: &mut Output) -> Result<Code, Failure> {
    let sink = Sink::open(&args.of.target, output)?;
    let store = store_path::read(global, output)?;
    let sessions = chosen(&store, &args.of.sessions)?;
    let is_named = !args.of.sessions.is_empty();
    let (report, to) = sink.fill(|out| {
        let mut report = otlp::SpansReport::default();
        let options = otlp::SpanOptions { texts: args.texts };
        for session in &sessions {
            if let Some(view) = view(&store, global, session, is_named)? {
                otlp::spans(&store, &view, options, out, &mut report)?;
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
) -> Result<Option<acpdb_engine::View>, target::Stop> {
    let at = global.at.as_deref();
    let Some(view) = super::find::view_among(store, global, session, at, is_named)? else { return Ok(None) };
    let is_there = {
        let state = view.state();
        state.first() <= view.at() || (is_named && state.items(view.at()).next().is_some())
    };
    Ok(is_there.then_some(view))
}

/// Writes the rows of each session.
fn each(
    store: &Store,
    global: &Global,
    (sessions, is_named): (&[StreamName], bool),
    out: &mut dyn Write,
) -> Result<RowsReport, target::Stop> {
    let mut report = RowsReport::default();
    for session in sessions {
        if let Some(view) = view(store, global, session, is_named)? {
            rows::lines(store, &view, session, out, &mut report)?;
        }
    }
    Ok(report)
}
