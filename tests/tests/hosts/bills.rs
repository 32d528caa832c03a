//! Bills: the cost of a session by the table of prices equals the cost by its host.

use std::collections::BTreeMap;
use std::path::PathBuf;

use acpdb_engine::ids::Seq;
use acpdb_hosts::import::json;
use acpdb_query::cost::{BillFilter, By, PriceTable, bill, requests};

use super::scenes::{files, folder, imported};

/// The newest total that Claude Code recorded of each session, in millionths of a dollar.
fn totals(scene: &str) -> BTreeMap<String, i64> {
    let mut paths: Vec<(_, PathBuf)> = Vec::new();
    files("claude", &folder().join(scene).join("recording"), &mut paths);
    let mut totals = BTreeMap::new();
    for (_, path) in paths {
        for line in std::fs::read_to_string(path).unwrap().lines().filter(|line| line.contains("cost-state"))
        {
            let [session, total] = json::pick(line, ["sessionId", "totalCostUSD"]).unwrap();
            let Some((session, total)) = json::owned(session).zip(total) else { continue };
            totals.insert(session, millionths(total.parse().unwrap()));
        }
    }
    totals
}

#[expect(clippy::cast_possible_truncation, reason = "cents of a scene")]
fn millionths(dollars: f64) -> i64 {
    (dollars * 1e6).round() as i64
}

/// The cost of each session by the table, subagents included.
fn reckoned(scene: &str) -> BTreeMap<String, i64> {
    let played = imported(scene);
    let requests = requests(&played.store, Seq::MAX).unwrap();
    let table = PriceTable::built_in().unwrap();
    let asked = BillFilter { wanted: &|_| true, stale: None, within: None, zone: jiff::tz::TimeZone::UTC };
    let bill = bill(&requests, By::Session, &table, &asked);
    assert_eq!(bill.unpriced, [], "{scene}");
    bill.items.iter().map(|row| (row.key.clone(), millionths(row.total))).collect()
}

#[test]
fn claude_codes_own_totals_are_the_tables() {
    for scene in [
        "main",
        "more",
        "agent",
        "hooks",
        "meanwhile",
        "rewind",
        "fold",
        "mention",
        "agents",
        "slash",
        "opus",
        "sonnet",
        "haiku",
        "compact",
        "twice",
    ] {
        let scene = format!("claude/{scene}");
        let totals = totals(&scene);
        assert!(!totals.is_empty(), "{scene}");
        assert_eq!(reckoned(&scene), totals, "{scene}");
    }
}
