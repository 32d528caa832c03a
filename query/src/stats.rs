//! Figures: the items that each rule superseded and the tokens that it saved, for one session, a host, or all.

use std::collections::BTreeMap;

use acpdb_engine::View;
use acpdb_engine::fold::{KindStats, RuleKind, Stats, StatsKind};
use acpdb_engine::ids::Seq;
use serde::Serialize;

use crate::items::ItemRow;

/// Figures of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct KindRow {
    /// The rule, or the other cause.
    pub kind: StatsKind,
    /// Items; each once.
    pub count: u64,
    /// Those of a rule's items that were shown again on request.
    pub shown_again: u64,
    /// Estimated tokens of their canonical parameters and outputs, as the originals count.
    pub acp_saved: u64,
    /// Estimated tokens that the contexts are really shorter by.
    pub freed: u64,
}

/// Figures of one host.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct HostRow {
    /// The host.
    pub host: String,
    /// Sums over its sessions.
    #[serde(flatten)]
    pub total: Total,
    /// By kind.
    pub items: Vec<KindRow>,
}

/// Sums over sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Total {
    /// Sessions, subagents included.
    pub sessions: u64,
    /// Tool calls.
    pub calls: u64,
    /// Items superseded by a rule, each once, also if they were shown again on request.
    pub superseded: u64,
    /// Those of them that were shown again.
    pub shown_again: u64,
    /// Estimated tokens of everything recorded.
    pub tokens: u64,
    /// Estimated tokens of the current contexts as recorded.
    pub tokens_whole: u64,
    /// Estimated tokens of the current contexts as shown.
    pub tokens_shown: u64,
    /// Estimated tokens that hiding saves in the current contexts.
    pub tokens_freed: u64,
}

/// Figures of a choice of sessions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct StatsReport {
    /// By kind, those that hid most tokens first.
    pub items: Vec<KindRow>,
    /// Sums.
    pub total: Total,
    /// By host, in order of their names.
    pub hosts: Vec<HostRow>,
    /// The sum in the engine's form.
    #[serde(skip)]
    pub sum: Stats,
}

#[derive(Debug, Default)]
struct StatSum {
    total: Total,
    stats: Stats,
}

impl StatSum {
    fn add(&mut self, stats: &Stats) {
        let rules = stats.kinds.iter().filter(|(kind, _)| matches!(kind, StatsKind::Rule(_)));
        let total = &mut self.total;
        total.sessions += 1;
        total.calls += stats.calls;
        for (_, figures) in rules {
            total.superseded += figures.count;
            total.shown_again += figures.shown_again;
        }
        total.tokens += stats.tokens_recorded;
        total.tokens_whole += stats.tokens_whole;
        total.tokens_shown += stats.tokens_shown;
        total.tokens_freed += stats.freed();
        for (kind, figures) in &stats.kinds {
            let KindStats { count, shown_again, acp_saved, freed } =
                self.stats.kinds.entry(*kind).or_default();
            *count += figures.count;
            *shown_again += figures.shown_again;
            *acp_saved += figures.acp_saved;
            *freed += figures.freed;
        }
        self.stats.tokens_shown += stats.tokens_shown;
        self.stats.tokens_whole += stats.tokens_whole;
        self.stats.tokens_recorded += stats.tokens_recorded;
        self.stats.items += stats.items;
        self.stats.calls += stats.calls;
    }
}

/// Sums the figures of views, each with the host of its session. Cost: O(items that were ever hidden).
///
/// Of several views, each counts what it recorded and hid itself: what a fork shares counts with its parent.
pub fn stats<'v>(views: impl IntoIterator<Item = (&'v str, &'v View)>) -> StatsReport {
    let views: Vec<_> = views.into_iter().collect();
    let mut sums = StatsSums::default();
    for (host, view) in &views {
        if views.len() > 1 { sums.add_own(host, view) } else { sums.add(host, view) }
    }
    sums.report()
}

/// The figures of a session without those that it shared when it began as a fork.
fn own(view: &View) -> Stats {
    let (state, at) = (view.state(), view.at());
    let mut own = state.stats(at);
    let Some((began, _)) = state.forks(Seq::MAX).last() else { return own };
    let shared = state.stats((*began).min(at));
    // A fork may have less than it began with: shared items were erased, shown again, or left its context.
    let less = |own: &mut u64, shared: u64| *own = own.saturating_sub(shared);
    for (kind, before) in &shared.kinds {
        if let Some(figures) = own.kinds.get_mut(kind) {
            less(&mut figures.count, before.count);
            less(&mut figures.shown_again, before.shown_again);
            less(&mut figures.acp_saved, before.acp_saved);
            less(&mut figures.freed, before.freed);
        }
    }
    less(&mut own.tokens_whole, shared.tokens_whole);
    less(&mut own.tokens_recorded, shared.tokens_recorded);
    less(&mut own.items, shared.items);
    less(&mut own.calls, shared.calls);
    // It may also hide items that it shares: these count with it as far as they are hidden.
    let freed = own.freed();
    own.tokens_whole = own.tokens_whole.max(freed);
    own.tokens_shown = own.tokens_whole - freed;
    own
}

/// Figures in the making, for views that do not live at the same time.
#[derive(Debug, Default)]
pub struct StatsSums {
    all: StatSum,
    hosts: BTreeMap<String, StatSum>,
}

impl StatsSums {
    /// Adds a session.
    pub fn add(&mut self, host: &str, view: &View) {
        let stats = view.state().stats(view.at());
        self.add_stats(host, &stats);
    }

    /// Adds a session without the items that it shares as a fork: they count with its parent, which is added by itself.
    pub fn add_own(&mut self, host: &str, view: &View) {
        self.add_stats(host, &own(view));
    }

    fn add_stats(&mut self, host: &str, stats: &Stats) {
        self.all.add(stats);
        self.hosts.entry(host.to_owned()).or_default().add(stats);
    }

    /// The figures.
    pub fn report(self) -> StatsReport {
        let host =
            |(host, sum): (String, StatSum)| HostRow { host, total: sum.total, items: rows(&sum.stats) };
        StatsReport {
            items: rows(&self.all.stats),
            total: self.all.total,
            hosts: self.hosts.into_iter().map(host).collect(),
            sum: self.all.stats,
        }
    }
}

/// Figures of the items that match a filter.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Tally {
    /// Sessions that hold such an item.
    pub sessions: u64,
    /// Items.
    pub items: u64,
    /// Tokens as recorded.
    pub tokens: u64,
    /// Tokens as shown in the current contexts.
    pub tokens_shown: u64,
    /// By tool, those with most tokens first.
    pub tools: Vec<TallyRow>,
    /// By how they stand: a rule or cause, else `current`.
    pub states: Vec<TallyRow>,
}

/// Items of one name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct TallyRow {
    /// A tool, a rule, a cause.
    pub name: String,
    /// The number of items.
    pub count: u64,
    /// Tokens as recorded.
    pub tokens: u64,
    /// Tokens as shown.
    pub tokens_shown: u64,
}

/// A tally in the making.
#[derive(Debug, Default)]
pub struct TallySums {
    tally: Tally,
    tools: BTreeMap<String, TallyRow>,
    states: BTreeMap<String, TallyRow>,
}

impl TallySums {
    /// Adds the items of one session.
    ///
    /// # Errors
    /// The first error of the rows.
    pub fn add<E>(&mut self, rows: impl Iterator<Item = Result<ItemRow, E>>) -> Result<(), E> {
        let mut any = 0;
        for row in rows {
            let row = row?;
            any = 1;
            self.tally.items += 1;
            self.tally.tokens += row.tokens;
            self.tally.tokens_shown += row.tokens_shown;
            let rule = row.rule.map(RuleKind::label);
            let state = rule.or(row.cause).unwrap_or(if row.in_context { "current" } else { "hidden" });
            if let Some(tool) = &row.tool {
                count(&mut self.tools, tool, &row);
            }
            count(&mut self.states, state, &row);
        }
        self.tally.sessions += any;
        Ok(())
    }

    /// The tally.
    pub fn tally(self) -> Tally {
        Tally { tools: most_first(self.tools), states: most_first(self.states), ..self.tally }
    }
}

fn count(rows: &mut BTreeMap<String, TallyRow>, name: &str, row: &ItemRow) {
    let sum = rows.entry(name.to_owned()).or_default();
    sum.count += 1;
    sum.tokens += row.tokens;
    sum.tokens_shown += row.tokens_shown;
}

fn most_first(rows: BTreeMap<String, TallyRow>) -> Vec<TallyRow> {
    let mut all: Vec<TallyRow> = rows.into_iter().map(|(name, row)| TallyRow { name, ..row }).collect();
    all.sort_by_key(|row| std::cmp::Reverse((row.tokens, row.count)));
    all
}

/// Kinds, those with most tokens first; `hash`, `file` and `todo` are listed even if they hid nothing.
fn rows(stats: &Stats) -> Vec<KindRow> {
    let mut rows: Vec<KindRow> = stats
        .kinds
        .iter()
        .map(|(kind, figures)| KindRow {
            kind: *kind,
            count: figures.count,
            shown_again: figures.shown_again,
            acp_saved: figures.acp_saved,
            freed: figures.freed,
        })
        .collect();
    rows.sort_by_key(|row| (std::cmp::Reverse((row.freed, row.acp_saved, row.count)), row.kind));
    rows
}
