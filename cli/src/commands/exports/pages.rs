//! Pages for browsers, and the picture of a session's tokens.

use std::path::Path;
use std::sync::Arc;

use acpdb_engine::event::Scope;
use acpdb_engine::store::Redactor;
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::export::index_page::{self, IndexEntry};
use acpdb_query::export::page::{self, PageOptions};
use acpdb_query::export::poster;
use acpdb_query::filter::Filter;
use acpdb_query::{SessionRow, SessionsAsked};

use super::{TargetSink, finish, view};
use crate::args::{ExportPage, ExportPoster, ExportTarget};
use crate::commands::{Code, Failure, Global, Output, at, find, store_path};
use crate::redaction::{self, RedactOptions};
use crate::spread;

/// A page of one session.
pub(super) fn page(global: &Global, args: &ExportPage, output: &mut Output) -> Result<Code, Failure> {
    let options = PageOptions { redactor: redactor(args)?, ..PageOptions::default() };
    let sink = TargetSink::open(&args.target, output)?;
    let (store, _, view) = find::opened(global, args.session.name(global), output)?;
    let (report, to) = sink.fill(|out| Ok(page::page(&store, &view, store.now(), &options, out)?))?;
    finish("html", &to, report, output)
}

/// The picture of a session's tokens.
pub(super) fn poster(global: &Global, args: &ExportPoster, output: &mut Output) -> Result<Code, Failure> {
    let extension = args.target.output.as_deref().and_then(Path::extension);
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("png")) {
        return Err(Failure::usage("the picture is an SVG").hint("name a file that ends in .svg"));
    }
    let sink = TargetSink::open(&args.target, output)?;
    let (_store, session, view) = find::opened(global, args.session.name(global), output)?;
    let (report, to) = sink.fill(|out| Ok(poster::poster(&view, &session.host, out)?))?;
    finish("poster", &to, report, output)
}

/// An index over all sessions, and their pages if the options ask for them.
pub(super) fn index(global: &Global, args: &ExportPage, output: &mut Output) -> Result<Code, Failure> {
    let options = PageOptions { redactor: redactor(args)?, ..PageOptions::default() };
    let sink = TargetSink::open(&args.target, output)?;
    let store = store_path::read(global, output)?;
    let until = at::end(&store, global, None)?.unwrap_or(store.head()?);
    let asked = SessionsAsked::new(&store, until, &Filter::default())?;
    let rows = spread::each(&asked.names, "sessions", output, |name| asked.row(name))?;
    let rows: Vec<SessionRow> = rows.into_iter().flatten().collect();
    let links = if let (Some(folder), Some(index)) = (&args.pages, &args.target.output) {
        pages(&store, global, (args, &options), (folder, index), &rows, output)?
    } else {
        output.note("the index alone, without links; --pages FOLDER writes each session's page beside it");
        vec![None; rows.len()]
    };
    let entries: Vec<IndexEntry<'_>> =
        rows.iter().zip(&links).map(|(row, link)| IndexEntry { row, file: link.as_deref() }).collect();
    let (report, to) = sink.fill(|out| Ok(index_page::index(&entries, &options, out)?))?;
    finish("html", &to, report, output)
}

/// Writes the page of each session that no other one started; returns the index's links to the pages.
fn pages(
    store: &Store,
    global: &Global,
    (args, options): (&ExportPage, &PageOptions),
    (folder, index): (&str, &Path),
    rows: &[SessionRow],
    output: &mut Output,
) -> Result<Vec<Option<String>>, Failure> {
    let is_plain = !folder.is_empty() && !folder.contains(['/', '\\', ':']) && !folder.starts_with('.');
    if !is_plain {
        return Err(Failure::usage(format!("--pages wants the plain name of a folder, not {folder:?}"))
            .hint("it is made beside the index, so that both can be moved together"));
    }
    let place = index.parent().unwrap_or(Path::new("")).join(folder);
    let back = index.file_name().map(|name| format!("../{}", in_link(&name.to_string_lossy())));
    let options = &PageOptions { index: back, ..options.clone() };
    acpdb_live::files::make_folder(&place).map_err(Failure::io("make", place.display()))?;
    let mut links = Vec::with_capacity(rows.len());
    for (number, row) in rows.iter().enumerate() {
        let name = &row.summary.name;
        // The pages of subagents are within the page of the session that started them.
        if name.scope != Scope::Session || name.parent.is_some() {
            links.push(None);
            continue;
        }
        let file = format!("{}-{}.html", number + 1, file_name(name));
        let target = ExportTarget { output: Some(place.join(&file)), force: args.target.force };
        let Some(view) = once(store, global, name)? else {
            links.push(None);
            continue;
        };
        let sink = TargetSink::open(&target, output)?;
        // The index has the number of items; the store notes damage, which is told at the end.
        let _ = sink.fill(|out| Ok(page::page(store, &view, store.now(), options, out)?))?;
        links.push(Some(format!("{folder}/{file}")));
    }
    Ok(links)
}

fn once(store: &Store, global: &Global, name: &StreamName) -> Result<Option<acpdb_engine::View>, Failure> {
    view(store, global, name, false).map_err(|stop| match stop {
        crate::commands::sink::Stop::Failure(failure) => failure,
        crate::commands::sink::Stop::Export(error) => Failure::new(Code::Failure, error.to_string()),
    })
}

/// A file's name as a link has it.
fn in_link(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let bytes = name.bytes();
    bytes
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// The beginning of a session's id, in letters that every file system takes and that links need not escape.
fn file_name(name: &StreamName) -> String {
    let plain = name.name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-' || *c == '_');
    plain.take(24).collect()
}

/// The redactor that takes secrets out, if the options ask for it.
fn redactor(args: &ExportPage) -> Result<Option<Arc<dyn Redactor>>, Failure> {
    let options = RedactOptions { redact: args.redact, redact_rule: args.redact_rule.clone() };
    let rules = redaction::rules(&options, false)?;
    Ok(rules.map(|rules| Arc::new(rules) as Arc<dyn Redactor>))
}
