//! Answers of the server, made from the store: the same pages that are exported, and their data.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use acpdb_engine::event::Scope;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::locks::steady;
use acpdb_engine::store::Redactor;
use acpdb_engine::{At, Error, Store, View};
use acpdb_query::export::ExportError;
use acpdb_query::export::index_page::{self, IndexEntry};
use acpdb_query::export::page::{self, PageOptions};
use acpdb_query::filter::Filter;
use acpdb_query::{SessionRow, SessionsAsked};
use tokio::sync::oneshot::Sender;

use super::body::BodyWriter;
use super::route::Route;

/// The rows of the index, as of a seq.
type Rows = (Seq, Arc<Vec<SessionRow>>);

/// A store, and its growth since the server began.
pub(super) struct Answers {
    store: Store,
    options: PageOptions,
    /// The end of the log when the server began.
    began: Seq,
    /// The newest seq of each stream that has grown since the server began.
    grown: Mutex<BTreeMap<StreamId, Seq>>,
    rows: Mutex<Option<Rows>>,
}

impl Answers {
    pub(super) fn new(store: Store, redactor: Option<Arc<dyn Redactor>>) -> Self {
        let options = PageOptions { redactor, live: true, index: Some("../".to_owned()) };
        let began = store.head().unwrap_or_default();
        Self { store, options, began, grown: Mutex::default(), rows: Mutex::default() }
    }

    /// The end of the log when the server began; [`Self::grew`] tells of later events.
    pub(super) const fn began(&self) -> Seq {
        self.began
    }

    /// Takes note of new events.
    pub(super) fn grew(&self, events: impl Iterator<Item = (StreamId, Seq)>) {
        let mut grown = steady(&self.grown);
        for (stream, seq) in events {
            grown.insert(stream, seq);
        }
    }

    /// Whether a session, or a session that it started, may have events after a seq. If that is not known, the answer is true.
    pub(super) fn has_grown(&self, stream: StreamId, after: Seq) -> bool {
        if after < self.began {
            return true;
        }
        let newer: Vec<StreamId> = {
            let grown = steady(&self.grown);
            grown.iter().filter(|(_, seq)| **seq > after).map(|(stream, _)| *stream).collect()
        };
        if newer.contains(&stream) {
            return true;
        }
        let Ok(names) = self.store.stream_names() else { return true };
        let parents: BTreeMap<StreamId, Option<StreamId>> =
            names.iter().map(|name| (name.id, name.parent)).collect();
        newer.into_iter().any(|start| {
            // The loop ends even in a circle: no chain of parents is longer than the list.
            let mut above = Some(start);
            for _ in 0..=parents.len() {
                match above {
                    Some(found) if found == stream => return true,
                    Some(found) => above = parents.get(&found).copied().flatten(),
                    None => return false,
                }
            }
            false
        })
    }

    /// Writes an answer; before that, sends to `known` whether there is one.
    pub(super) fn write(&self, route: Route, known: Sender<bool>, mut pieces: BodyWriter) {
        let now = self.store.now();
        // A browser that has gone away gets no answer.
        let result = match route {
            Route::Page(stream) | Route::PageData(stream, _) => {
                let view = match self.view(stream) {
                    Ok(Some(view)) => view,
                    Ok(None) => {
                        // A browser that has gone away gets no answer.
                        let _ = known.send(false);
                        return;
                    }
                    Err(error) => {
                        // There is an answer, which ends with the error.
                        let _ = known.send(true);
                        return pieces.end(Err::<(), _>(error));
                    }
                };
                // A browser that has gone away gets no answer.
                let _ = known.send(true);
                let write = if matches!(route, Route::Page(_)) { page::page } else { page::page_data };
                write(&self.store, &view, now, &self.options, &mut pieces).map(|_| ())
            }
            Route::Search(words) => {
                // A browser that has gone away gets no answer.
                let _ = known.send(true);
                super::found::write(&self.store, &self.options, &words, &mut pieces)
            }
            _ => {
                // A browser that has gone away gets no answer.
                let _ = known.send(true);
                self.index(matches!(route, Route::Index), &mut pieces)
            }
        };
        pieces.end(result);
    }

    /// The view of a session; `None` if there is no such session.
    fn view(&self, stream: StreamId) -> Result<Option<View>, Error> {
        // Other streams, which sessions share, have no page.
        let Some(name) = self.store.stream_name(stream)? else { return Ok(None) };
        if name.scope != Scope::Session || stream == StreamId::STORE {
            return Ok(None);
        }
        let view = match self.store.view_once(stream, &At::Head) {
            Err(Error::NotFound { .. }) => return Ok(None),
            view => view?,
        };
        let is_there = view.state().first() <= view.at();
        Ok(is_there.then_some(view))
    }

    fn index(&self, is_page: bool, pieces: &mut BodyWriter) -> Result<(), ExportError> {
        let rows = self.rows()?;
        let link = |row: &SessionRow| format!("session/{}", row.summary.name.id);
        let links: Vec<String> = rows.iter().map(link).collect();
        let entries: Vec<IndexEntry<'_>> =
            rows.iter().zip(&links).map(|(row, link)| IndexEntry { row, file: Some(link) }).collect();
        let write = if is_page { index_page::index } else { index_page::index_data };
        write(&entries, &self.options, pieces).map(|_| ())
    }

    /// The rows of all sessions, kept until the store grows.
    fn rows(&self) -> Result<Arc<Vec<SessionRow>>, ExportError> {
        let mut held = steady(&self.rows);
        let head = self.store.head()?;
        if let Some((_, rows)) = held.as_ref().filter(|(at, _)| *at == head) {
            return Ok(Arc::clone(rows));
        }
        let asked = SessionsAsked::new(&self.store, head, &Filter::default())?;
        let rows = asked.names.iter().map(|name| asked.row(name)).collect::<Result<Vec<_>, _>>()?;
        let rows: Arc<Vec<SessionRow>> = Arc::new(rows.into_iter().flatten().collect());
        *held = Some((head, Arc::clone(&rows)));
        Ok(rows)
    }
}
