//! Questions about one frozen view.

use std::collections::BTreeSet;
use std::hint::black_box;
use std::sync::Once;

use acpdb_engine::event::{Face, HostRecorded, Payload};
use acpdb_engine::fold::{FaceState, Ix};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::{Error, MemoryScope, Store, View, store::StreamName};
use acpdb_hosts::export::{ExportChoices, Format, Selection, Unfinished, export, export_served};
use acpdb_query::export::{otlp, page};
use acpdb_query::memory::RememberedItem;
use acpdb_query::{ContextOwner, CurrentContext, FindError, FoundItem, ItemRow, Which, Window, todos};
use serde_json::{Value, json};

use crate::arguments::Arguments;
use crate::fault::Fault;
use crate::stores::{Looked, filter, hits, no_format, remembered};

/// The subject of questions: the store, a view in it, and the session of the view.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The store.
    pub store: &'a Store,
    /// A view of one session.
    pub view: &'a View,
    /// The session of the view.
    pub stream: &'a StreamName,
}

impl Asked<'_> {
    /// The context as data.
    pub fn context(&self, layer: &str, last: Option<usize>) -> Result<CurrentContext, Fault> {
        let layer = match layer {
            "current" => ContextOwner::Current,
            "recorded" => ContextOwner::Recorded,
            other => return Err(Fault::invalid(format!("layer is 'current' or 'recorded', not {other:?}"))),
        };
        Ok(acpdb_query::context(self.store, self.view, Window { last, layer }, self.store.now())?)
    }

    /// All items, or those of a file or tool, or those that a filter lets pass.
    pub fn history(
        &self,
        file: Option<&str>,
        tool: Option<&str>,
        text: &str,
        limit: Option<usize>,
    ) -> Result<Vec<ItemRow>, Fault> {
        let filter = acpdb_query::settled(self.store, filter(self.store, text)?)?;
        let which = match (file, tool) {
            (Some(path), None) => Which::File(path),
            (None, Some(tool)) => Which::Tool(tool),
            (None, None) => Which::All,
            (Some(_), Some(_)) => return Err(Fault::invalid("give file or tool, or put both into filter")),
        };
        let chosen: Option<BTreeSet<String>> = (file.is_some() || tool.is_some()).then(|| {
            let rows = acpdb_query::items(self.view, &self.stream.name, which).into_iter();
            rows.map(|row| row.item).collect()
        });
        let rows = acpdb_query::item_rows(self.store, self.view, self.stream, &filter)?;
        let is_chosen = |row: &Result<ItemRow, Error>| {
            row.as_ref().map_or(true, |row| chosen.as_ref().is_none_or(|chosen| chosen.contains(&row.item)))
        };
        Ok(rows.filter(is_chosen).take(limit.unwrap_or(usize::MAX)).collect::<Result<_, Error>>()?)
    }

    /// An item and the items that superseded it, oldest first.
    pub fn chain(&self, item: &str) -> Result<Value, Fault> {
        let chain = acpdb_query::chain(self.view, &self.stream.name, self.item(item)?);
        Ok(json!(chain.ok_or_else(|| self.miss(item))?))
    }

    /// The reason why an item is or is not in the context; of a file, its newest view.
    pub fn explain(&self, item: &str) -> Result<Value, Fault> {
        let ix = match self.item(item) {
            Ok(ix) => ix,
            Err(miss) => match acpdb_query::blame::newest_view(self.view, &self.stream.name, item) {
                Some((newest, _)) => self.item(&newest)?,
                None => return Err(miss.into()),
            },
        };
        let explained = acpdb_query::explain(self.view, &self.stream.name, ix);
        Ok(json!(explained.ok_or_else(|| self.miss(item))?))
    }

    /// The recorded bytes of an item: `input` of a call, else its content or output.
    pub fn body(&self, item: &str, face: &str) -> Result<Vec<u8>, Fault> {
        let face = match face {
            "input" => Face::Input,
            "output" => Face::Output,
            other => return Err(Fault::invalid(format!("face is 'input' or 'output', not {other:?}"))),
        };
        let ix = self.item(item)?;
        let found = self.view.state().item(ix, self.view.at());
        let bodies = found.map(|item| match face {
            Face::Input => item.params.into_iter().collect(),
            Face::Output => item.content.iter().map(|part| part.body).collect::<Vec<_>>(),
        });
        let mut all = Vec::new();
        for body in self.view.bodies(&bodies.unwrap_or_default()) {
            all.extend(body?);
        }
        Ok(all)
    }

    /// The todo list.
    pub fn todos(&self) -> Result<Value, Fault> {
        Ok(todos::list(self.view)?.json(&self.stream.name))
    }

    /// The memory items that hold; with `all` every one that was ever recorded.
    pub fn memory(&self, all: bool) -> Result<Vec<RememberedItem>, Fault> {
        let scope = MemoryScope::session(self.stream.id);
        Ok(remembered(self.store, &scope, self.view.at(), self.store.now(), all)?)
    }

    /// Items whose texts hold all patterns.
    pub fn search(&self, looked: &Looked) -> Result<Value, Fault> {
        let question = looked.question(self.store, self.view.at())?;
        Ok(hits(self.store, Some(self.stream.clone()), &question, looked.limit)?)
    }

    /// The host's raw records on the active branch, in order, each with its seq.
    pub fn records(&self, after: Seq) -> Result<Vec<(u64, Vec<u8>)>, Fault> {
        let view = self.view;
        let rewinds = view.state().rewinds(view.at()).to_vec();
        let left = |seq: Seq| rewinds.iter().any(|(rewound, to)| *to < seq && seq < *rewound);
        let mut all = Vec::new();
        for recorded in self.store.stream_events(view.stream(), after.next(), view.at())? {
            let recorded = recorded?;
            if left(recorded.seq) {
                continue;
            }
            let raw = match self.store.record(&recorded) {
                Ok(None) => match &recorded.event.payload {
                    Payload::HostRecorded(HostRecorded { raw: Some(raw), .. }) => {
                        self.store.body(raw.id(recorded.seq)).map(Some)
                    }
                    _ => Ok(None),
                },
                found => found,
            };
            match raw {
                Ok(Some(bytes)) => all.push((recorded.seq.get(), bytes)),
                Ok(None) | Err(Error::Erased { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(all)
    }

    /// The outputs of calls that the context does not show whole: the event that ended each call, and the text that stands in the
    /// output's place. An id of a call names no call for sure: hosts use ids again.
    pub fn replaced(&self) -> Result<Vec<(u64, String)>, Fault> {
        let at = self.view.at();
        let (ends, faces): (Vec<Seq>, Vec<_>) = {
            let state = self.view.state();
            let each = state.current(at).into_iter().filter_map(|ix| {
                let is_shown =
                    matches!(state.face_state(ix, Face::Output, at), FaceState::Whole | FaceState::Absent);
                let end = (!is_shown).then(|| state.item(ix, at)).flatten()?.finished?;
                Some((end, (ix, Face::Output, at)))
            });
            each.unzip()
        };
        let mut all = Vec::new();
        for (end, shown) in ends.into_iter().zip(self.view.shown_all(&faces)) {
            match shown {
                Ok(shown) if !shown.text.is_empty() => all.push((end.get(), shown.text)),
                Ok(_) | Err(Error::Erased { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(all)
    }

    /// How often the session went back to an earlier point: while the number stays the same, records are only added.
    pub fn rewind_count(&self) -> u64 {
        self.view.state().rewinds(self.view.at()).len() as u64
    }

    /// The body of a request, a transcript, a page or spans.
    pub fn export(&self, it: &Arguments) -> Result<Vec<u8>, Fault> {
        let (name, selection) = (it.text("format")?, it.text("selection")?);
        let mut out = Vec::new();
        match name {
            "html" => {
                page::page(self.store, self.view, self.store.now(), &page::PageOptions::default(), &mut out)?;
                return Ok(out);
            }
            "otlp" => {
                let options = otlp::SpanOptions::default();
                otlp::spans(self.store, self.view, options, &mut out, &mut otlp::SpansReport::default())?;
                return Ok(out);
            }
            _ => {}
        }
        let format = Format::from_name(name).ok_or_else(|| no_format(name, &["html", "otlp"]))?;
        let is_served = selection == "served";
        let selection = match selection {
            "current" | "served" => Selection::Current,
            "whole" => Selection::Whole,
            "recorded" => Selection::Recorded,
            "history" => Selection::History,
            other => {
                return Err(Fault::invalid(format!(
                    "selection is current, served, whole, recorded or history, not {other:?}"
                )));
            }
        };
        let is_ended = it.flag("synthetic_results")?;
        let options = ExportChoices {
            selection,
            unfinished: if is_ended { Unfinished::Synthetic } else { Unfinished::LeaveOut },
            model: it.owned("model")?,
            server_side: it.flag("server_side")?,
            ..ExportChoices::default()
        };
        let export = if is_served {
            export_served(&acpdb_serve::Served::to_send(self.view), format, &options)?
        } else {
            export(self.view, format, &options)?
        };
        keep_large_buffers(export.bytes.len());
        Ok(export.bytes)
    }

    /// Estimated tokens: those shown, and those of the whole.
    pub fn tokens(&self) -> (u64, u64) {
        let tokens = self.view.state().tokens(self.view.at());
        (tokens.shown, tokens.whole)
    }

    /// Whether the model sees an item, whole.
    pub fn is_visible(&self, item: &str) -> Result<bool, Fault> {
        let ix = self.item(item)?;
        let id: Option<ItemId> = self.view.state().item_id(ix);
        Ok(id.and_then(|id| self.view.visible(id)).is_some_and(|seen| seen.visible))
    }

    /// The item of a text, in the view.
    fn item(&self, text: &str) -> Result<Ix, FindError> {
        let FoundItem { ix, item, .. } = acpdb_query::find(self.store, text, Some(self.stream))?;
        let there = ix.filter(|ix| self.view.state().item(*ix, self.view.at()).is_some());
        there.ok_or_else(|| FindError::NotFound {
            text: format!("{text} ({item}, as of {})", self.view.at()),
            nearest: None,
        })
    }

    fn miss(&self, item: &str) -> Fault {
        Fault::new("not_found", format!("{item} was not recorded yet in session {}", self.stream.name))
    }
}

/// Each step of a model needs a context of about a megabyte. Some allocators (glibc's) by default give buffers of that size back to
/// the system at once, and fetch each page anew: two thirds of the time of such a call. They learn from freed buffers, so a larger
/// buffer is freed once; none of its pages is ever touched.
fn keep_large_buffers(bytes: usize) {
    const LARGE_BYTES: usize = 256 << 10;
    const LEARNT_BYTES: usize = 8 << 20;
    static LEARNT: Once = Once::new();
    if bytes >= LARGE_BYTES {
        LEARNT.call_once(|| drop(black_box(Vec::<u8>::with_capacity(LEARNT_BYTES))));
    }
}
