//! Asks every way that there is to ask about a session, at one point.

use std::collections::BTreeMap;

use acpdb_engine::event::Payload;
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::{Error, Store, View, store::StreamName};
use acpdb_hosts::export::{ExportChoices, Format, Thinking, export, export_served};
use acpdb_query::context::ContextOwner;
use acpdb_query::export::page::{PageOptions, page};
use acpdb_query::export::rows::{RowsReport, lines};
use acpdb_query::{Window, explain};
use acpdb_serve::{Served, ServedItem};
use serde_json::Value;

use super::{Sent, Testimony};
use crate::support::Failure;

/// When memory is asked for.
const NOW: Micros = Micros(1_700_000_000_000_000);

/// The testimony about a session as of a view. `model`: the model of the requests, if the log does not name it.
///
/// # Errors
/// If the store cannot be read.
pub fn testimony(
    store: &Store,
    view: &View,
    name: &StreamName,
    model: Option<&str>,
) -> Result<Testimony, Failure> {
    let at = view.at();
    let window = |layer| Window { last: None, layer };
    let context = acpdb_query::context(store, view, window(ContextOwner::Current), NOW)?;
    let recorded = acpdb_query::context(store, view, window(ContextOwner::Recorded), NOW)?;
    let stats = acpdb_query::stats([(name.host.as_str(), view)]);
    let all: Vec<_> = view.state().items(at).collect();
    let explained = all.iter().filter_map(|ix| explain(view, &name.name, *ix)).map(serde_json::to_value);
    let mut written = Vec::new();
    lines(store, view, name, &mut written, &mut RowsReport::default())?;
    let records =
        written.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(serde_json::from_slice);
    let mut html = Vec::new();
    let _ = page(store, view, NOW, &PageOptions::default(), &mut html)?;
    let mut said = Testimony {
        context: serde_json::to_value(&context)?,
        recorded: serde_json::to_value(&recorded)?,
        stats: serde_json::to_value(&stats)?,
        explained: explained.collect::<Result<_, _>>()?,
        records: records
            .collect::<Result<Vec<Value>, _>>()?
            .into_iter()
            .filter(|it| it.get("item").is_some())
            .collect(),
        page: String::from_utf8(html)?,
        sent: Vec::new(),
        summaries: summaries(store, at)?,
    };
    for format in Format::ALL {
        for thinking in [Thinking::Free, Thinking::Preserved] {
            let is_bound = thinking == Thinking::Preserved;
            if is_bound && format != Format::Anthropic {
                continue;
            }
            let options =
                ExportChoices { thinking, model: model.map(str::to_owned), ..ExportChoices::default() };
            let made = export(view, format, &options)?;
            // Where reasoning is bound, changes wait: such a request says so, and is judged only if none does.
            let deferred = made.report.count(acpdb_hosts::export::LeftOut::ChangeDeferred);
            if is_bound && deferred > 0 {
                continue;
            }
            let left_out = left_out(&serde_json::to_value(&made.report)?);
            said.sent.push(Sent {
                name: format!("{format} {thinking:?}"),
                bytes: made.bytes,
                left_out,
                is_transcript: format.provider().is_none(),
                is_eager: true,
                as_of: BTreeMap::new(),
            });
        }
    }
    Ok(said)
}

/// Adds the context that was served last to the testimony.
///
/// # Errors
/// If the store cannot be read.
pub fn with_served(
    said: &mut Testimony,
    view: &View,
    name: String,
    format: Format,
    served: &[u8],
    is_eager: bool,
) -> Result<(), Error> {
    let context = Served::to_send(view);
    let made = export_served(&context, format, &ExportChoices::default())?;
    let moment = |item: &ServedItem| (item.view.item.to_string(), item.place.output_at.get());
    let as_of = context.items().iter().map(moment).collect();
    let left_out = serde_json::to_value(&made.report).map(|report| left_out(&report)).unwrap_or_default();
    said.sent = vec![Sent { name, bytes: served.to_vec(), left_out, is_transcript: false, is_eager, as_of }];
    Ok(())
}

fn left_out(report: &Value) -> BTreeMap<String, u64> {
    let reasons = report.get("reasons").and_then(Value::as_object).into_iter().flatten();
    reasons.map(|(why, said)| (why.clone(), said.get("count").and_then(Value::as_u64).unwrap_or(0))).collect()
}

/// The summary that each eviction of a completed task left in place of the hidden items, by the event that records the eviction: a
/// task may be completed more than once, each time with a summary of its own. Read from the log, not from the fold.
fn summaries(store: &Store, at: Seq) -> Result<BTreeMap<String, String>, Error> {
    let mut summaries = BTreeMap::new();
    for recorded in store.events(Seq(1), at)? {
        let recorded = recorded?;
        let Payload::TaskEvicted(evicted) = &recorded.event.payload else { continue };
        let Some(summary) = evicted.summary else { continue };
        match store.body(summary.id(recorded.seq)) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text).into_owned();
                let _ = summaries.insert(recorded.seq.to_string(), text);
            }
            Err(Error::Erased { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(summaries)
}
