//! Questions of the screen to the store: those of the other verbs.

use acpdb_engine::fold::FaceState;
use acpdb_engine::ids::{ItemId, Turn};
use acpdb_engine::{At, Store, View, store::StreamName};
use acpdb_query::filter::Filter;
use acpdb_query::search::{Hit, Patterns, Reading, SearchQuestion, search, search_whole};
use acpdb_query::{ChainReport, ContextItem, ItemRow, Layer, Scanned, SessionRow, SessionsAsked, Window};

use crate::commands::{Failure, lines};

/// Most hits that a search shows: users do not read more.
const HIT_COUNT_MAX: usize = 500;

/// A store to ask.
pub(super) struct Questions {
    store: Store,
}

impl Questions {
    pub(super) fn new(store: Store) -> Self {
        Self { store }
    }

    /// All sessions but subagents, the newest first.
    pub(super) fn sessions(&self) -> Result<Vec<SessionRow>, Failure> {
        let asked = SessionsAsked::new(&self.store, self.store.head()?, &Filter::default())?;
        let tops = asked.names.iter().filter(|name| name.parent.is_none());
        let rows = tops.map(|name| asked.row(name)).collect::<Result<Vec<_>, _>>()?;
        let mut rows: Vec<SessionRow> = rows.into_iter().flatten().collect();
        rows.sort_by_key(|row| std::cmp::Reverse((row.summary.ended, row.summary.name.head)));
        Ok(rows)
    }

    /// A session as it was at the end of a turn, or as it is now.
    pub(super) fn view(&self, name: &StreamName, turn: Option<u32>) -> Result<View, Failure> {
        let at = turn.map_or(At::Head, |turn| At::Turn(Turn(turn)));
        Ok(self.store.view_at(name.id, &at)?)
    }

    /// The number of the newest turn.
    pub(super) fn turns(view: &View) -> u32 {
        view.state().turn(view.at()).get()
    }

    /// All items that a session recorded.
    pub(super) fn timeline(&self, name: &StreamName, view: &View) -> Result<Vec<ItemRow>, Failure> {
        let rows = acpdb_query::item_rows(&self.store, view, name, &Filter::default())?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The items in the context.
    pub(super) fn context(&self, view: &View) -> Result<Vec<ContextItem>, Failure> {
        let window = Window { last: None, layer: Layer::Current };
        Ok(acpdb_query::context(&self.store, view, window, self.store.now())?.items)
    }

    /// The chain of superseding around an item.
    pub(super) fn chain(name: &StreamName, view: &View, item: &str) -> Option<ChainReport> {
        // A row names its item as `ItemId` writes it.
        let found = item.parse::<ItemId>().ok()?;
        let ix = view.state().find(found)?;
        acpdb_query::chain(view, &name.name, ix)
    }

    /// The subject of an item, in one line.
    pub(super) fn about(view: &View, row: &ItemRow) -> Result<String, Failure> {
        lines::about(view, row)
    }

    /// The texts of an item as they were recorded.
    pub(super) fn text(view: &View, item: &str) -> Result<String, Failure> {
        // A row names its item as `ItemId` writes it.
        let Some(ix) = item.parse::<ItemId>().ok().and_then(|item| view.state().find(item)) else {
            return Ok("[not there at this point]".to_owned());
        };
        let at = view.at();
        let faces = {
            let found = view.state().item(ix, at);
            found.map(|item| (item.params, item.content.iter().map(|part| part.body).collect::<Vec<_>>()))
        };
        let Some((params, content)) = faces else { return Ok(String::new()) };
        let mut texts = Vec::new();
        for body in params.into_iter().chain(content) {
            texts.push(match view.text(body) {
                Ok(text) => text,
                Err(error @ (acpdb_engine::Error::Corrupt { .. } | acpdb_engine::Error::Erased { .. })) => {
                    format!("[{error}]")
                }
                Err(error) => return Err(error.into()),
            });
        }
        Ok(texts.join("\n\n"))
    }

    /// Hits of a text, in one session or in all.
    pub(super) fn search(&self, text: &str, only: Option<&StreamName>) -> Result<Vec<Hit>, Failure> {
        let patterns = Patterns::new(&[text.to_owned()], Reading::default())
            .map_err(|error| Failure::usage(error.to_string()))?;
        let at = self.store.head()?;
        let question = SearchQuestion { patterns, filter: Filter::default(), at, context: 0, places: 1 };
        let names = match only {
            Some(name) => vec![name.clone()],
            None => crate::commands::session::asked(&self.store, None)?,
        };
        let search = if only.is_some() { search_whole } else { search };
        let mut hits = Vec::new();
        for name in names.iter().rev() {
            search(&self.store, name, &question, &mut Scanned::default(), &mut |hit| {
                hits.push(hit);
                hits.len() < HIT_COUNT_MAX
            })?;
        }
        Ok(hits)
    }

    /// A session by the host's id of it.
    pub(super) fn named(&self, name: &str) -> Result<StreamName, Failure> {
        Ok(self.store.find_stream(name)?)
    }
}

/// Whether a row is shown dimmed: the model does not read it.
pub(super) fn is_dim(row: &ItemRow) -> bool {
    !row.in_context || !matches!(row.state, FaceState::Whole | FaceState::Shortened | FaceState::Absent)
}
