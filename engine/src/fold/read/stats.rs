//! Figures: how many items each rule hid, and how many tokens that saved.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Face;
use crate::fold::history::{Cause, EdgeRow, History, RuleKind, ShortenKind, is_before};
use crate::fold::number::Ix;
use crate::fold::rules::EdgeLine;
use crate::fold::state::State;
use crate::ids::Seq;

use super::HashForm;

/// The rule or act that a figure counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum StatsKind {
    /// Superseded, by this rule.
    Rule(RuleKind),
    /// Shortened or set aside, by this rule.
    Shortened(ShortenKind),
    /// Hidden on request.
    Discard,
    /// Hidden behind a summary.
    Distill,
    /// Evicted with its task.
    Evict,
    /// Cleared by the host.
    HostCleared,
    /// Removed for good.
    Erased,
    /// Taken by damage.
    Lost,
}

impl serde::Serialize for StatsKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.label())
    }
}

impl StatsKind {
    /// The name in JSON.
    pub fn label(self) -> &'static str {
        match self {
            Self::Rule(rule) => rule.label(),
            Self::Shortened(rule) => rule.label(),
            Self::Discard => "discard",
            Self::Distill => "distill",
            Self::Evict => "evict",
            Self::HostCleared => "host_cleared",
            Self::Erased => "erased",
            Self::Lost => "lost",
        }
    }

    /// Both modes of the repeat rule count as that rule.
    fn rule(kind: RuleKind) -> Self {
        let same = |other: &RuleKind| other.label() == kind.label();
        Self::Rule(RuleKind::all().find(same).unwrap_or(kind))
    }

    fn of(cause: Cause, history: &History) -> Option<Self> {
        Some(match cause {
            Cause::Erased { lost: false } => Self::Erased,
            Cause::Erased { lost: true } => Self::Lost,
            Cause::Cleared { .. } => Self::HostCleared,
            Cause::Distilled { .. } => Self::Distill,
            Cause::Evicted { .. } => Self::Evict,
            Cause::Superseded { edge } => Self::rule(history.edge(edge)?.kind),
            Cause::Discarded { .. } => Self::Discard,
            Cause::Shortened { rule, .. } => Self::Shortened(rule),
            Cause::OffBranch
            | Cause::Left
            | Cause::Answered { .. }
            | Cause::Revised { .. }
            | Cause::Pinned => {
                return None;
            }
        })
    }
}

/// Figures of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct KindStats {
    /// Items; each counts once: an erased one as erased, else under the first rule that superseded it, else under the first act or
    /// rule that hid or shortened it. It stays counted when it is restored.
    pub count: u64,
    /// Those of a rule's items that were shown again on request: no rule hides them now.
    pub shown_again: u64,
    /// Estimated tokens of their canonical parameters and outputs, as the originals count; of a shortened text, those that it lost.
    pub acp_saved: u64,
    /// Estimated tokens by which the context is really shorter, under the cause that shows.
    pub freed: u64,
}

/// All figures of a stream at a watermark. `tokens_shown` + freed = `tokens_whole`.
#[derive(Clone, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct Stats {
    /// Figures by kind; `hash`, `file` and `todo` always, others if they count anything.
    #[serde(serialize_with = "by_label")]
    pub kinds: BTreeMap<StatsKind, KindStats>,
    /// Tokens of the context as shown.
    pub tokens_shown: u64,
    /// Tokens of the same faces as recorded.
    pub tokens_whole: u64,
    /// Tokens of everything recorded.
    pub tokens_recorded: u64,
    /// Items recorded.
    pub items: u64,
    /// Calls recorded.
    pub calls: u64,
}

fn by_label<S: serde::Serializer>(
    kinds: &BTreeMap<StatsKind, KindStats>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let kinds: BTreeMap<&str, &KindStats> = kinds.iter().map(|(kind, stats)| (kind.label(), stats)).collect();
    serde::Serialize::serialize(&kinds, serializer)
}

impl Stats {
    /// Figures of one kind; zeros if there are none.
    pub fn of(&self, kind: StatsKind) -> KindStats {
        self.kinds.get(&kind).copied().unwrap_or_default()
    }

    /// Tokens freed, all kinds together.
    pub fn freed(&self) -> u64 {
        self.kinds.values().map(|stats| stats.freed).sum()
    }
}

impl State {
    /// All figures at `at`. Cost: O(items and their causes, old ones included).
    pub fn stats(&self, at: Seq) -> Stats {
        let mut stats = Stats::default();
        for kind in RuleKind::all().filter(|kind| kind.described().is_always_shown) {
            stats.kinds.insert(StatsKind::Rule(kind), KindStats::default());
        }
        // An item that was discarded first and superseded later is told as superseded, here as everywhere.
        let edges = self.edge_rows(at);
        let held: BTreeSet<Ix> =
            edges.iter().filter(|edge| is_before(at, edge.released)).map(|edge| edge.old).collect();
        let edges = edges.iter().map(|edge| (1, edge.seq, edge.old, StatsKind::rule(edge.kind)));
        let mut concluded: Vec<(u8, Seq, Ix, StatsKind)> = edges.collect();
        let mut faces = BTreeSet::new();
        let mut lost: BTreeMap<Ix, u64> = BTreeMap::new();
        for row in self.history.rows.iter().filter(|row| row.since <= at && is_before(at, row.undone)) {
            if row.cause.rank().is_none() {
                continue;
            }
            if row.holds(at) {
                faces.insert((row.ix, row.face));
            }
            let Some(kind) = StatsKind::of(row.cause, &self.history) else { continue };
            // A host clears calls that have not ended: as long as there is no output, nothing of it is hidden.
            let is_there = self.face_size(row.ix, row.face, at).is_some();
            if is_there && !matches!(kind, StatsKind::Rule(_)) {
                // An erased item counts as erased, whatever came before: a fork learns of an erasure when it begins.
                let order = if matches!(kind, StatsKind::Erased | StatsKind::Lost) { 0 } else { 2 };
                concluded.push((order, row.since, row.ix, kind));
            }
            // The originals count what a shortened text lost, and the whole input of a failed call.
            if row.face == Face::Output
                && matches!(kind, StatsKind::Shortened(_))
                && let Some(size) = self.face_size(row.ix, row.face, at)
            {
                let kept = self.placeholder_for(row.ix, row.face, &row, size, at).tokens;
                // A placeholder counts at most the tokens that it replaces.
                *lost.entry(row.ix).or_default() += size.tokens.saturating_sub(kept);
            }
        }
        // Stable: of one event, edges stay in the order in which they came about.
        concluded.sort_by_key(|(order, seq, _, _)| (*order, *seq));
        let mut counted = BTreeSet::new();
        for (_, _, ix, kind) in concluded {
            if counted.insert(ix) {
                let entry = stats.kinds.entry(kind).or_default();
                entry.count += 1;
                let part = lost.get(&ix).filter(|_| matches!(kind, StatsKind::Shortened(_)));
                entry.acp_saved += part.copied().unwrap_or_else(|| self.acp_saved(ix, at));
                let is_rule = matches!(kind, StatsKind::Rule(_));
                entry.shown_again += u64::from(is_rule && !held.contains(&ix));
            }
        }
        for (ix, face) in faces {
            let tokens = self.face_tokens(ix, face, at);
            // A placeholder that is longer than the text freed nothing.
            let freed = tokens.whole.saturating_sub(tokens.shown);
            let kind =
                self.history.cause(ix, face, at).and_then(|row| StatsKind::of(row.cause, &self.history));
            if let Some(kind) = kind.filter(|_| freed > 0) {
                stats.kinds.entry(kind).or_default().freed += freed;
            }
        }
        let total = self.history.total(at);
        stats.tokens_shown = total.shown;
        stats.tokens_whole = total.whole;
        stats.tokens_recorded = total.recorded;
        stats.items = self.items(at).count() as u64;
        stats.calls = self.items(at).filter(|ix| self.facts.call(*ix).is_some()).count() as u64;
        stats
    }

    /// Tokens of canonical parameters and output; without a call, those of the content.
    fn acp_saved(&self, ix: Ix, at: Seq) -> u64 {
        let params = self.facts.call(ix).map_or(0, |call| u64::from(call.canonical_tokens));
        let output = self.face_size(ix, Face::Output, at).map_or(0, |size| size.tokens);
        params.saturating_add(output)
    }

    /// One line per edge at `at`, in the order in which they came about. Keys that the log keeps as signs stand as signs.
    pub fn log_lines(&self, at: Seq, form: HashForm) -> Vec<String> {
        self.log_lines_spelled(at, form, &|_| None)
    }

    /// The same, with words of `words` in place of the signs that it knows.
    pub fn log_lines_spelled(
        &self,
        at: Seq,
        form: HashForm,
        words: &dyn Fn(&str) -> Option<String>,
    ) -> Vec<String> {
        self.edge_rows(at).iter().map(|edge| self.log_line(edge, at, form, words)).collect()
    }

    fn log_line(
        &self,
        edge: &EdgeRow,
        at: Seq,
        form: HashForm,
        words: &dyn Fn(&str) -> Option<String>,
    ) -> String {
        let host_id = |ix: Ix| self.host_id(ix).unwrap_or_default();
        let (old, new) = (edge.old, Ix(edge.new));
        let (a, b) = (host_id(old), host_id(new));
        let (tool, by) = (self.facts.tool(old), self.facts.tool(new));
        let key = self.facts.keys.get(edge.key as usize).map_or("", |key| self.facts.names.text(key.given));
        let spelled = words(key);
        let key = spelled.as_deref().unwrap_or(key);
        let label = edge.kind.described();
        let text = (label.line)(&EdgeLine {
            old: &a,
            new: &b,
            tool,
            by,
            key,
            turn: self.turn_of(old).unwrap_or_default().0,
            hash: &|| self.hash_text(new, at, form),
        });
        let sign = label.sign;
        format!("[auto-supersede] {sign} {text}")
    }
}
