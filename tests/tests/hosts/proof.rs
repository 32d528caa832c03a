//! Claude Code's own digests prove that the context made from its recording equals its requests.

use std::collections::BTreeMap;

use acpdb_engine::At;
use acpdb_engine::event::Scope;
use acpdb_engine::ids::Seq;
use acpdb_hosts::export::{ExportChoices, Format, Selection, export};
use acpdb_hosts::proof::{ProofVerdict, Prover};
use expect_test::expect;

use super::scenes::imported;

#[test]
fn requests_are_proven_by_the_hosts_own_digests() {
    let mut rows = Vec::new();
    for scene in [
        "main",
        "thread",
        "more",
        "agent",
        "hooks",
        "meanwhile",
        "compact",
        "rewind",
        "fold",
        "opus",
        "haiku",
        "sonnet",
        "mention",
        "slash",
        "agents",
        "twice",
        "killed",
    ] {
        let played = imported(&format!("claude/{scene}"));
        let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
        for stream in played.store.stream_names().unwrap().into_iter().filter(|it| it.scope == Scope::Session)
        {
            let mut prover = Prover::default();
            for recorded in played.store.stream_events(stream.id, Seq::ZERO, Seq::MAX).unwrap() {
                let recorded = recorded.unwrap();
                let Some(raw) = played.store.record(&recorded).unwrap() else { continue };
                let Some(sent) = prover.record(std::str::from_utf8(&raw).unwrap()) else { continue };
                let view = played.store.view_at(stream.id, &At::Seq(recorded.seq)).unwrap();
                let options = ExportChoices { selection: Selection::Recorded, ..ExportChoices::default() };
                let body = export(&view, Format::Anthropic, &options).unwrap().bytes;
                let verdict = match prover.against(&sent, &body) {
                    ProofVerdict::Proven => "proven",
                    ProofVerdict::Unknown(_) => "unknown",
                    ProofVerdict::Differs(place) => {
                        println!("{scene} {} differs at {place}", sent.id);
                        "differs"
                    }
                };
                *counts.entry(verdict).or_default() += 1;
            }
        }
        rows.push(format!("{scene}: {counts:?}\n"));
    }
    expect![[r#"
        main: {"proven": 15}
        thread: {"proven": 15}
        more: {"proven": 5}
        agent: {"proven": 5}
        hooks: {"proven": 6}
        meanwhile: {"proven": 2}
        compact: {"proven": 4}
        rewind: {"proven": 6}
        fold: {"proven": 15}
        opus: {"proven": 15}
        haiku: {"proven": 15}
        sonnet: {"proven": 15}
        mention: {"proven": 4}
        slash: {"proven": 4}
        agents: {"proven": 9}
        twice: {"proven": 6}
        killed: {"proven": 4}
    "#]]
    .assert_eq(&rows.concat());
}
