//! Figures: what each rule superseded and what that saved, for one session, a host, or all.

use std::collections::BTreeMap;

use acpdb_engine::View;
use acpdb_engine::fold::{KindStats, Stats, StatsKind};
use serde::Serialize;

/// Figures of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct KindRow {
    /// The rule, or what was done.
    pub kind: StatsKind,
    /// Items; each once.
    pub count: u64,
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
    /// Items superseded by a rule, each once.
    pub superseded: u64,
    /// Estimated tokens of everything recorded.
    pub tokens: u64,
    /// Estimated tokens of the current contexts as recorded.
    pub tokens_whole: u64,
    /// Estimated tokens of the current contexts as shown.
    pub tokens_shown: u64,
    /// What hiding saves in the current contexts.
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

#[derive(Default)]
struct Sum {
    total: Total,
    stats: Stats,
}

impl Sum {
    fn add(&mut self, stats: &Stats) {
        let rules = stats.kinds.iter().filter(|(kind, _)| matches!(kind, StatsKind::Rule(_)));
        let total = &mut self.total;
        total.sessions += 1;
        total.calls += stats.calls;
        total.superseded += rules.map(|(_, figures)| figures.count).sum::<u64>();
        total.tokens += stats.tokens_recorded;
        total.tokens_whole += stats.tokens_whole;
        total.tokens_shown += stats.tokens_shown;
        total.tokens_freed += stats.freed();
        for (kind, figures) in &stats.kinds {
            let KindStats { count, acp_saved, freed } = self.stats.kinds.entry(*kind).or_default();
            *count += figures.count;
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

/// Sums the figures of views, each with the host of its session. Cost: O(what was ever hidden).
pub fn stats<'v>(views: impl IntoIterator<Item = (&'v str, &'v View)>) -> StatsReport {
    let mut all = Sum::default();
    let mut hosts: BTreeMap<&str, Sum> = BTreeMap::new();
    for (host, view) in views {
        let stats = view.read().state().stats(view.at());
        all.add(&stats);
        hosts.entry(host).or_default().add(&stats);
    }
    let host = |(host, sum): (&str, Sum)| HostRow {
        host: host.to_owned(),
        total: sum.total,
        items: rows(&sum.stats),
    };
    StatsReport {
        items: rows(&all.stats),
        total: all.total,
        hosts: hosts.into_iter().map(host).collect(),
        sum: all.stats,
    }
}

/// Kinds, those with most tokens first; `hash`, `file` and `todo` stand even if they hid nothing.
fn rows(stats: &Stats) -> Vec<KindRow> {
    let mut rows: Vec<KindRow> = stats
        .kinds
        .iter()
        .map(|(kind, figures)| KindRow {
            kind: *kind,
            count: figures.count,
            acp_saved: figures.acp_saved,
            freed: figures.freed,
        })
        .collect();
    rows.sort_by_key(|row| (std::cmp::Reverse((row.freed, row.acp_saved, row.count)), row.kind));
    rows
}
