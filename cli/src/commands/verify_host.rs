//! `acpdb verify --host [SESSION]`: whether the store's requests are those that the host says it sent.

use acpdb_engine::At;
use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_engine::store::StreamName;
use acpdb_hosts::export::{ExportChoices, Format, Selection, export};
use acpdb_hosts::proof::{ProofVerdict, Prover};
use serde::Serialize;

use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, store_path};

/// The host that records digests of its requests.
const HOST: &str = "claude-code";

/// The digests of a session, compared.
#[derive(Debug, Default, Serialize)]
struct DigestRow {
    session: String,
    /// Requests of which the host recorded digests.
    requests: u64,
    /// Requests proven equal to those that were sent.
    proven: u64,
    /// Requests of which the recording lacks a message.
    unknown: u64,
    /// Requests that differ from those that were sent.
    differing: u64,
    /// The host's ids of the differing requests.
    different: Vec<String>,
}

pub(crate) fn run(global: &Global, session: &str, output: &mut Output) -> Result<Code, Failure> {
    let store = store_path::read(global, output)?;
    let names =
        if session.is_empty() { store.stream_names()? } else { vec![super::session::find(&store, session)?] };
    let mut rows = Vec::new();
    for name in names.iter().filter(|name| name.host == HOST || !session.is_empty()) {
        let row = row(&store, name)?;
        if row.requests > 0 || !session.is_empty() {
            rows.push(row);
        }
    }
    store.close()?;
    let differing: u64 = rows.iter().map(|row| row.differing).sum();
    if output.json {
        output.json_items("acpdb.verify_host/1", &rows)?;
    } else {
        for row in &rows {
            output.line(text(row))?;
        }
        if rows.is_empty() {
            output.note("no session with digests of what was sent; Claude Code records them since 2.1.3xx");
        }
    }
    Ok(if differing == 0 { Code::Ok } else { Code::Failure })
}

fn text(row: &DigestRow) -> String {
    let session = escape(&row.session, EscapeLevel::Line);
    let mut text = format!(
        "{session}: {} of {} proven to be what was sent",
        row.proven,
        describe::count(row.requests, "request")
    );
    if row.unknown > 0 {
        text += &format!("; {} with messages that the recording lacks", row.unknown);
    }
    if row.differing > 0 {
        let ids: Vec<_> = row.different.iter().map(|id| escape(id, EscapeLevel::Line)).collect();
        text += &format!("; {} different ({})", row.differing, ids.join(", "));
    }
    text
}

fn row(store: &Store, name: &StreamName) -> Result<DigestRow, Failure> {
    let mut row = DigestRow { session: name.name.clone(), ..DigestRow::default() };
    let mut prover = Prover::default();
    let options = ExportChoices { selection: Selection::Recorded, ..ExportChoices::default() };
    for recorded in store.stream_events(name.id, Seq::ZERO, Seq::MAX)? {
        let recorded = recorded?;
        let Some(raw) = store.record(&recorded)? else { continue };
        // A record that is not text is no request.
        let Some(sent) = std::str::from_utf8(&raw).ok().and_then(|raw| prover.record(raw)) else { continue };
        let view = store.view_at(name.id, &At::Seq(recorded.seq))?;
        let body = export(&view, Format::Anthropic, &options)?.bytes;
        row.requests += 1;
        match prover.against(&sent, &body) {
            ProofVerdict::Proven => row.proven += 1,
            ProofVerdict::Unknown(_) => row.unknown += 1,
            ProofVerdict::Differs(_) => {
                row.differing += 1;
                row.different.push(sent.id);
            }
        }
    }
    Ok(row)
}
