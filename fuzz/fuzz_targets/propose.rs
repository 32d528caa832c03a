//! Proposals to remember from a message: any text ends, and each proposal lies in the text.
//!
//! The bytes are a message; bytes that are no UTF-8 are replaced. Panics are bugs; so are ranges that cut a character,
//! and proposals that differ the second time.
#![no_main]

use acpdb_engine::event::Role;
use acpdb_engine::fold::memory::MemoryView;
use acpdb_engine::ids::{Micros, Seq};
use acpdb_query::propose::{PROPOSAL_COUNT_MAX, corrections, propose};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    for found in corrections(&text) {
        assert!(text.get(found.start..found.end).is_some(), "a correction lies in the text");
        assert!(!found.to.is_empty(), "a correction says what to use");
    }
    let nothing = |_| None;
    let view = MemoryView::new(Vec::new(), Seq::MAX, Micros(0), &nothing);
    for role in [Role::User, Role::Assistant] {
        let found = propose(role, &text, &view);
        assert!(found.len() <= PROPOSAL_COUNT_MAX, "so many at most");
        for proposal in &found {
            assert!(text.get(proposal.start..proposal.end).is_some(), "a proposal lies in the text");
            assert!(text.contains(&proposal.sentence), "its sentence is of the text");
            assert!(!proposal.item.value.trim().is_empty(), "it says something");
            assert!(proposal.item.confidence <= 100, "and how sure it is");
        }
        assert_eq!(found, propose(role, &text, &view), "the same text suggests the same");
    }
});
