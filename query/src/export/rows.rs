//! Sessions as rows, for databases and data frames: the history, with how each item stands and why.
//!
//! A row is an item, with its states (how it stood since which seq) and its edges (old, new, rule) in it, so one file is one table.
//! Rows are written as they are read, session by session, so memory is that of one session's fold and one item's text.

use std::collections::HashMap;
use std::io::Write;

use acpdb_engine::event::PartKind;
use acpdb_engine::fold::{FaceState, ItemView, Ix};
use acpdb_engine::ids::{BodyId, Micros, Seq};
use acpdb_engine::{Store, View, store::StreamName};
use serde::Serialize;

use super::ExportError;
use crate::chain::ChainEdge;
use crate::items::{ItemRow, cause_label};
use crate::sound::or_lost;

/// An item, with its texts and the reasons.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ItemRecord {
    /// The item and how it stands.
    #[serde(flatten)]
    pub row: ItemRow,
    /// The host program.
    pub host: String,
    /// The host's time in microseconds since 1970; without one, the time of recording.
    pub time: Micros,
    /// The event that finished the call.
    pub finished: Option<Seq>,
    /// The time of that event, as `time`.
    pub finished_time: Option<Micros>,
    /// The reasons why it is, or is not, in the current context, in sentences.
    pub reason: String,
    /// Parameters of a call, as recorded.
    pub input: Option<String>,
    /// Content, or the result of a call, as recorded; parts are joined by line feeds.
    pub output: Option<String>,
    /// The reason why a text is not there: erased or damaged.
    pub problem: Option<String>,
    /// How it stood, since which seq.
    pub states: Vec<StateRecord>,
    /// The edges to the items that superseded it.
    pub edges: Vec<ChainEdge>,
}

/// How an item stood since a seq.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct StateRecord {
    /// Since this seq.
    pub seq: Seq,
    /// Whether it was part of the context.
    pub in_context: bool,
    /// How its parameters were shown.
    pub input: FaceState,
    /// How its content was shown.
    pub output: FaceState,
    /// The cause if it was not shown whole.
    pub cause: Option<&'static str>,
    /// Tokens as shown; 0 outside of the context.
    pub tokens_shown: u64,
}

/// The amounts that were exported.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct RowsReport {
    /// Sessions.
    pub sessions: u64,
    /// Items.
    pub items: u64,
    /// Supersessions.
    pub edges: u64,
}

/// Writes a line of JSON for each item of a session as of a view.
///
/// # Errors
/// If the log cannot be read or `out` fails.
pub fn lines(
    store: &Store,
    view: &View,
    name: &StreamName,
    out: &mut dyn Write,
    report: &mut RowsReport,
) -> Result<(), ExportError> {
    let times = times(store, view)?;
    let all: Vec<Ix> = view.state().items(view.at()).collect();
    report.sessions += 1;
    for ix in all {
        let Some(record) = record(view, name, ix, &times)? else { continue };
        report.items += 1;
        report.edges += record.edges.len() as u64;
        serde_json::to_writer(&mut *out, &record)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// The time of each event of a session, with the history that it shares as a fork: the host's, else the time of recording.
pub(super) fn times(store: &Store, view: &View) -> Result<HashMap<Seq, Micros>, ExportError> {
    let mut times = HashMap::new();
    for recorded in crate::lineage::events(store, view.stream(), view.at())? {
        let recorded = recorded?;
        times.insert(recorded.seq, recorded.event.host_time.unwrap_or(recorded.recorded_at));
    }
    Ok(times)
}

fn record(
    view: &View,
    name: &StreamName,
    ix: Ix,
    times: &HashMap<Seq, Micros>,
) -> Result<Option<ItemRecord>, ExportError> {
    let at = view.at();
    let (item, mut row, states, mut edges) = {
        let state = view.state();
        let Some(item) = state.item(ix, at) else { return Ok(None) };
        let row = ItemRow::of(state, &item, &name.name, at);
        let then = |seq| Some(state_record(seq, &state.item(ix, seq)?));
        let mut states: Vec<StateRecord> =
            state.turning_points(ix, at).into_iter().filter_map(then).collect();
        states.dedup_by(|next, last| StateRecord { seq: last.seq, ..next.clone() } == *last);
        let edges: Vec<ChainEdge> = state.superseded_by(ix, at).iter().map(ChainEdge::from).collect();
        (item, row, states, edges)
    };
    let words = crate::items::spell(view, &mut [&mut row]);
    for edge in &mut edges {
        words.put_key(edge);
    }
    let reason = crate::explain(view, &name.name, ix).map(|why| why.sentences.join(" ")).unwrap_or_default();
    let mut problem = None;
    let input = item.params.map(|body| text(view, body, &mut problem)).transpose()?.flatten();
    let output = content(view, &item, &mut problem)?;
    Ok(Some(ItemRecord {
        host: name.host.clone(),
        time: times.get(&item.item.seq).copied().unwrap_or(item.recorded_at),
        finished: item.finished,
        finished_time: item.finished.and_then(|seq| times.get(&seq).copied()),
        reason,
        input,
        output,
        problem,
        states,
        edges,
        row,
    }))
}

fn state_record(seq: Seq, item: &ItemView) -> StateRecord {
    let cause = item.output.cause.as_ref().or(item.input.cause.as_ref());
    let shown = item.input.tokens_shown.saturating_add(item.output.tokens_shown);
    StateRecord {
        seq,
        in_context: item.in_context,
        input: item.input.state,
        output: item.output.state,
        cause: cause.map(cause_label),
        tokens_shown: if item.in_context { shown } else { 0 },
    }
}

/// A body's text; `None` if it is not there any more.
fn text(view: &View, body: BodyId, problem: &mut Option<String>) -> Result<Option<String>, ExportError> {
    let text = or_lost(view.text(body))?;
    // The row's problem tells why the text is not there.
    Ok(text.inspect_err(|lost| _ = problem.get_or_insert_with(|| lost.to_string())).ok())
}

fn content(
    view: &View,
    item: &ItemView,
    problem: &mut Option<String>,
) -> Result<Option<String>, ExportError> {
    let mut content: Option<String> = None;
    for part in &item.content {
        let text = if part.kind == PartKind::Media {
            let media_type = part.media_type.as_deref().unwrap_or("of unknown type");
            Some(format!("[media {media_type}, {} B]", part.bytes))
        } else {
            text(view, part.body, problem)?
        };
        let Some(text) = text else { continue };
        match &mut content {
            None => content = Some(text),
            Some(content) => {
                content.push('\n');
                content.push_str(&text);
            }
        }
    }
    Ok(content)
}
