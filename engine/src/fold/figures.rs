//! Figures as hosts show them: a line for a rule, and the block of all.

use std::fmt::Write as _;

use super::{KindStats, RuleKind, ShortenKind, Stats, StatsKind};

impl Stats {
    /// The short form of one kind, such as `🔄 hash: 1 prune`.
    pub fn line(&self, kind: RuleKind) -> String {
        let count = self.of(StatsKind::Rule(kind)).count;
        let plural = if count == 1 { "" } else { "s" };
        format!("{} {}: {count} prune{plural}", kind.described().sign, kind.described().short)
    }

    /// The stats block in the layout of the originals, without a line feed at its end.
    pub fn acp_block(&self) -> String {
        // A row for each short name, in the order of the labels; no rule hides injected texts.
        let mut rows: Vec<(RuleKind, KindStats)> = Vec::new();
        for kind in RuleKind::all().filter(|kind| *kind != RuleKind::INJECTED) {
            let stats = self.of(StatsKind::Rule(kind));
            let is_its = |row: RuleKind| row.described().short == kind.described().short;
            if !rows.iter().any(|(row, _)| is_its(*row)) {
                rows.push((kind, KindStats::default()));
            }
            for (_, sum) in rows.iter_mut().filter(|(row, _)| is_its(*row)) {
                sum.count += stats.count;
                sum.acp_saved += stats.acp_saved;
            }
        }
        let mut supersede = KindStats::default();
        for (_, stats) in &rows {
            supersede.count += stats.count;
            supersede.acp_saved += stats.acp_saved;
        }
        let mut strategies = vec![("Auto-Supersede", supersede)];
        for (name, kind) in listed() {
            let stats = self.of(kind);
            if stats.count > 0 {
                strategies.push((name, stats));
            }
        }
        strategies.sort_by_key(|(_, stats)| std::cmp::Reverse(stats.acp_saved));
        let mut block = format!("Strategy Effectiveness:\n{}", "─".repeat(60));
        for (place, (name, stats)) in strategies.iter().enumerate() {
            let star = if place == 0 && stats.acp_saved > 0 { " ⭐" } else { "" };
            let _ = write!(
                block,
                "\n  {name:<20}{:>4} prunes, ~{} saved{star}",
                stats.count,
                short_tokens(stats.acp_saved)
            );
            if *name != "Auto-Supersede" {
                continue;
            }
            for (kind, stats) in &rows {
                let label = kind.described();
                if label.is_always_shown || stats.count > 0 {
                    let _ = write!(
                        block,
                        "\n    {} {:<15}{:>4} prunes, ~{}",
                        label.sign,
                        label.short,
                        stats.count,
                        short_tokens(stats.acp_saved)
                    );
                }
            }
        }
        block
    }
}

/// Lines of the block of figures below the rules that supersede. Acts on request stand behind the first rule that
/// shortens, as in the originals.
fn listed() -> impl Iterator<Item = (&'static str, StatsKind)> {
    let rules = ShortenKind::all().map(|rule| (rule.figure(), StatsKind::Shortened(rule)));
    let first = rules.clone().take(1);
    let asked = [("Manual Discard", StatsKind::Discard), ("Distillation", StatsKind::Distill)];
    first.chain(asked).chain(rules.skip(1)).chain([("Task Eviction", StatsKind::Evict)])
}

/// Below 1000 plain, else with one decimal and `k`.
fn short_tokens(tokens: u64) -> String {
    if tokens < 1000 {
        return tokens.to_string();
    }
    let tenths = tokens.saturating_add(50) / 100;
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole}k"),
        (whole, tenth) => format!("{whole}.{tenth}k"),
    }
}
