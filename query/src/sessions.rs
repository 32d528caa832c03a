//! Sessions: a row each, with the size of the context over turns; and the forest of subagents, forks and rewinds.

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::event::Scope;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::text::ProjectMoves;
use acpdb_engine::{
    At, Error, Store,
    store::{SessionSummary, StreamName},
};
use serde::Serialize;

use crate::cost::told::RequestTellings;
use crate::cost::{Requests, StoreRequests};
use crate::facts::{SessionFacts, facts_of};
use crate::filter::Filter;
use crate::kept::{Figures, StoreData};
use crate::rows::item_rows;
use crate::titles::title_at;

/// A session in a line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SessionRow {
    /// Names and figures.
    #[serde(flatten)]
    pub summary: SessionSummary,
    /// Tokens of the context as shown, at the ends of turns spread evenly; at most
    /// [`SERIES_COUNT_MAX`](crate::context::SERIES_COUNT_MAX), the last is now.
    pub tokens_by_turn: Vec<u64>,
    /// The point where it was forked.
    pub forked_from: Option<ForkPoint>,
    /// Rewinds: branches that were left.
    pub rewinds: Vec<RewindPoint>,
    /// The number of its items that match the filter; absent without a filter about items.
    pub matches: Option<u64>,
    /// The models that answered it.
    pub models: Vec<String>,
    /// Dollars, its subagents included; absent if no request of it has a price.
    pub cost: Option<f64>,
    /// Requests of other sessions stand in it, and count there.
    #[serde(skip)]
    pub has_copies: bool,
    /// Seconds from its first event to its newest, as far as times are known.
    pub duration_seconds: Option<u64>,
}

/// The point up to which a session shares the history of another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ForkPoint {
    /// The stream whose history is shared.
    pub stream: StreamId,
    /// The last seq that is shared.
    pub at: Seq,
}

/// A rewind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct RewindPoint {
    /// The event.
    pub seq: Seq,
    /// The last seq that stayed.
    pub to: Seq,
    /// Items of the branch that was left.
    pub item_count: usize,
}

/// A session whose row is not made yet: without its title and its cost.
#[derive(Debug)]
pub struct SessionSketch {
    /// Names and figures; the title may be missing.
    pub summary: SessionSummary,
    figures: Figures,
    matches: Option<u64>,
}

/// A question for sessions: which may match, and the row of each. Rows may be asked for in any order, by several threads.
#[derive(Debug)]
pub struct SessionsAsked {
    store: Store,
    at: Seq,
    filter: Filter,
    facts: BTreeMap<StreamId, SessionFacts>,
    /// Figures that are known without a fold.
    figures: BTreeMap<StreamId, Figures>,
    moves: Arc<ProjectMoves>,
    /// The requests of all sessions of the store.
    pub requests: Requests,
    /// The sessions that may match, in order of first events.
    pub names: Vec<StreamName>,
}

impl SessionsAsked {
    /// Asks. Cost: the read of the kept figures ([`crate::kept`]), and a look at the envelope of every newer event.
    ///
    /// # Errors
    /// If the log cannot be read, or the filter names a session that does not exist.
    pub fn new(store: &Store, at: Seq, filter: &Filter) -> Result<Self, Error> {
        Ok(Self::read(store, at, filter)?.0)
    }

    /// The answer of one of several stores, and its requests, for [`Requests::joined`]. Cost: as [`SessionsAsked::new`].
    ///
    /// # Errors
    /// As [`SessionsAsked::new`], and those of `ask`.
    pub fn with_requests<R, E: From<Error>>(
        store: &Store,
        at: Seq,
        filter: &Filter,
        ask: impl FnOnce(&Self) -> Result<R, E>,
    ) -> Result<(R, StoreRequests), E> {
        let (asked, told) = Self::read(store, at, filter)?;
        let head = store.head()?;
        let answer = ask(&asked)?;
        Ok((answer, StoreRequests::new(asked.requests, told, head)))
    }

    /// With what the requests were made of.
    fn read(store: &Store, at: Seq, filter: &Filter) -> Result<(Self, RequestTellings), Error> {
        let (store, mut filter) = (store.clone(), filter.clone());
        let mut all = store.stream_names()?;
        let known = crate::names::StreamsByName::among(&store, &mut filter, &all)?;
        all.retain(|name| name.scope == Scope::Session);
        let names = all.iter().filter(|name| known.is_possible(&filter, name.id)).cloned().collect();
        let StoreData { told, figures, .. } = StoreData::at(&store, at, &all)?;
        let requests = Requests::of(&told, all);
        let (facts, moves) = (facts_of(&requests), store.project_moves()?);
        Ok((Self { store, at, filter, facts, figures, moves, requests, names }, told))
    }

    /// A session's row; `None` if the session began later, or holds no item that matches. Cost: a fold of the session, unless its
    /// figures are kept and the filter asks nothing of its items.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn row(&self, name: &StreamName) -> Result<Option<SessionRow>, Error> {
        self.sketch(name)?.map(|sketch| self.whole(sketch)).transpose()
    }

    /// The figures by which a list is sorted, of a session whose row may not be wanted. Cost and `None` as of [`SessionsAsked::row`].
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn sketch(&self, name: &StreamName) -> Result<Option<SessionSketch>, Error> {
        let is_of_items = !self.filter.is_empty() && !self.filter.is_of_sessions();
        let kept = self.figures.get(&name.id).filter(|_| !is_of_items);
        let found =
            kept.map_or_else(|| self.folded(name, is_of_items), |figures| Ok(Some((figures.clone(), None))))?;
        Ok(found.map(|(figures, matches)| {
            let summary = figures.summary(name.clone());
            SessionSketch { summary, figures, matches }
        }))
    }

    /// The row of a session that was sketched. Cost: a read of its title.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn whole(&self, sketch: SessionSketch) -> Result<SessionRow, Error> {
        let SessionSketch { mut summary, figures, matches } = sketch;
        let name = summary.name.clone();
        let known = self.facts.get(&name.id).cloned().unwrap_or_default();
        let SessionFacts { models, cost, has_copies, duration_seconds, titled } = known;
        if name.head > self.at {
            let earlier = self.store.stream_events(name.id, summary.first, self.at)?;
            // A damaged event is passed over: the row says where the readable ones end.
            summary.name.head = earlier.flatten().map(|event| event.seq).last().unwrap_or(summary.first);
        }
        summary.project = summary.project.map(|project| self.moves.project(&project).into_owned());
        summary.name.title = title_at(&self.store, &name, titled, figures.prompt)?;
        Ok(SessionRow {
            summary,
            tokens_by_turn: figures.tokens_by_turn,
            forked_from: figures.forked_from,
            rewinds: figures.rewinds,
            matches,
            models,
            cost,
            has_copies,
            duration_seconds,
        })
    }

    /// A session's figures, and the number of its items that match, if that is asked for.
    fn folded(&self, name: &StreamName, is_of_items: bool) -> Result<Option<(Figures, Option<u64>)>, Error> {
        let view = self.store.view_once(name.id, &At::Seq(self.at))?;
        if view.state().first() > view.at() {
            return Ok(None);
        }
        let mut matches = None;
        if is_of_items {
            let mut count = 0;
            for row in item_rows(&self.store, &view, name, &self.filter)? {
                row?;
                count += 1;
            }
            if count == 0 {
                return Ok(None);
            }
            matches = Some(count);
        }
        Ok(Figures::of(&self.store, name, &view)?.map(|figures| (figures, matches)))
    }
}

/// Sessions that hold an item that matches, in order of first events: an iterator that folds one session at a time.
///
/// # Errors
/// If the log cannot be read.
pub fn sessions(
    store: &Store,
    at: Seq,
    filter: &Filter,
) -> Result<impl Iterator<Item = Result<SessionRow, Error>> + use<>, Error> {
    let mut asked = SessionsAsked::new(store, at, filter)?;
    let names = std::mem::take(&mut asked.names);
    Ok(names.into_iter().filter_map(move |name| asked.row(&name).transpose()))
}

/// Values as bars of eight heights, from 0 to the largest. If all values are 0, each bar is a blank.
pub fn sparkline(values: &[u64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let most = values.iter().copied().max().unwrap_or_default();
    let bar = |value: &u64| {
        if most == 0 {
            return ' ';
        }
        let height = u128::from(*value) * 8;
        let place = usize::try_from(height.div_ceil(u128::from(most))).unwrap_or(8);
        BARS.get(place.saturating_sub(1)).copied().unwrap_or('█')
    };
    values.iter().map(bar).collect()
}

/// The way in which a session hangs below another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Branch {
    /// It stands alone.
    Root,
    /// It was started by the other one.
    Subagent,
    /// It continues the other one from a point.
    Fork,
}

/// A session in the forest.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct SessionNode {
    /// Place of its row in the list.
    pub row: usize,
    /// How it hangs below its parent.
    pub branch: Branch,
    /// The number of sessions above it.
    pub depth: usize,
    /// Whether it is the last one below its parent, and the same for each above it.
    pub is_last: Vec<bool>,
}

/// Rows as a forest, roots and branches in the order of the rows. A session whose parent is not listed is a root.
pub fn forest<'r>(rows: impl IntoIterator<Item = &'r SessionRow>) -> Vec<SessionNode> {
    let rows: Vec<&SessionRow> = rows.into_iter().collect();
    let place: BTreeMap<StreamId, usize> =
        rows.iter().enumerate().map(|(place, row)| (row.summary.name.id, place)).collect();
    let mut below: BTreeMap<usize, Vec<(usize, Branch)>> = BTreeMap::new();
    let mut roots = Vec::new();
    for (own, row) in rows.iter().enumerate() {
        let fork = row.forked_from.map(|fork| (fork.stream, Branch::Fork));
        let parent = row.summary.name.parent.map(|parent| (parent, Branch::Subagent));
        let above = fork.or(parent).and_then(|(stream, branch)| Some((*place.get(&stream)?, branch)));
        match above {
            Some((above, branch)) if above != own => below.entry(above).or_default().push((own, branch)),
            _ => roots.push((own, Branch::Root)),
        }
    }
    let mut seen = vec![false; rows.len()];
    let mut nodes = Vec::with_capacity(rows.len());
    let mut todo: Vec<(usize, Branch, Vec<bool>)> = Vec::new();
    // Circles have no root: the first session of a circle that is left over begins as one.
    let leftover = (0..rows.len()).map(|own| (own, Branch::Root));
    for (own, branch) in roots.into_iter().chain(leftover) {
        todo.push((own, branch, Vec::new()));
        while let Some((own, branch, is_last)) = todo.pop() {
            match seen.get_mut(own) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            let children = below.get(&own).map(Vec::as_slice).unwrap_or_default();
            for (number, (child, branch)) in children.iter().enumerate().rev() {
                let mut ends = is_last.clone();
                ends.push(number + 1 == children.len());
                todo.push((*child, *branch, ends));
            }
            nodes.push(SessionNode { row: own, branch, depth: is_last.len(), is_last });
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::sampled;

    #[test]
    fn a_sparkline_has_a_bar_for_each_value() {
        for (values, line) in [
            (&[][..], ""),
            (&[0, 0], "  "),
            (&[1, 2, 4, 8], "▁▂▄█"),
            (&[0, 1, 1000], "▁▁█"),
            (&[5], "█"),
            (&[u64::MAX, 1], "█▁"),
        ] {
            assert_eq!(sparkline(values), line, "{values:?}");
        }
    }

    #[test]
    fn samples_are_even_and_end_with_the_last() {
        let values: Vec<u64> = (0..100).collect();
        assert_eq!(sampled(&values, 4), [0, 33, 66, 99]);
        assert_eq!(sampled(&values[..3], 4), [0, 1, 2]);
        assert_eq!(sampled(&values, 1), [0]);
    }
}
