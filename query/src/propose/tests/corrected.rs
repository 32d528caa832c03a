//! Corrections and contradictions of what is remembered.

use super::*;

/// Corrections worked for the names of the table alone: "not us-east-1, use eu-west-1" and "instead of React, use Vue" said nothing,
/// though what they correct was remembered.
#[test]
fn a_correction_of_what_is_remembered_is_certain() {
    let mut bench = with_preferences();
    let region =
        acpdb_engine::event::MemoryRecorded { category: "other".into(), ..preference("p4", "region", "x") };
    bench.item(region, "us-east-1");
    // A name of the table that begins a longer word is not the value.
    let registry =
        acpdb_engine::event::MemoryRecorded { category: "other".into(), ..preference("p5", "registry", "x") };
    bench.item(registry, "npm.acme.io");
    for (id, kind, text) in [
        ("d1", MemoryKind::Decision, "PostgreSQL for the database"),
        ("d2", MemoryKind::Decision, "deploy on Fridays"),
        ("f1", MemoryKind::Fact, "the office is in Turin."),
    ] {
        bench.item(record(id, kind, "implementation", "x"), text);
    }
    let mut table = String::new();
    for text in [
        "not us-east-1, use eu-west-1",
        "not npm.acme.io, use npm.corp.io",
        "not PostgreSQL, use SQLite",
        "change from PostgreSQL to SQLite",
        "instead of Turin, use Milan",
        "not Friday, use Monday",
        "I meant pnpm",
        "Actually, pnpm.",
        "No, pnpm!",
        "let's switch to pnpm",
        "No, npm",
        "actually, pnpm?",
        "we could switch to pnpm",
        "actually pnpm is slow here",
        "I meant jest",
    ] {
        let found = proposals(&bench, Role::User, text);
        write!(table, "{text}: {}", if found.is_empty() { "nothing\n" } else { &found }).unwrap();
    }
    expect![[r#"
        not us-east-1, use eu-west-1: correction other/region = eu-west-1 .90 supersedes p4 <not us-east-1, use eu-west-1>
        not npm.acme.io, use npm.corp.io: correction other/registry = npm.corp.io .90 supersedes p5 <not npm.acme.io, use npm.corp.io>
        not PostgreSQL, use SQLite: correction implementation/- = SQLite for the database .90 supersedes d1 <not PostgreSQL, use SQLite>
        change from PostgreSQL to SQLite: correction implementation/- = SQLite for the database .90 supersedes d1 <change from PostgreSQL to SQLite>
        instead of Turin, use Milan: correction implementation/- = the office is in Milan. .90 supersedes f1 <instead of Turin, use Milan>
        not Friday, use Monday: nothing
        I meant pnpm: correction tooling/package_manager = pnpm .90 supersedes p1 <I meant pnpm>
        Actually, pnpm.: correction tooling/package_manager = pnpm .90 supersedes p1 <Actually, pnpm>
        No, pnpm!: correction tooling/package_manager = pnpm .90 supersedes p1 <No, pnpm!>
        let's switch to pnpm: correction tooling/package_manager = pnpm .90 supersedes p1 <switch to pnpm>
        No, npm: nothing
        actually, pnpm?: nothing
        we could switch to pnpm: nothing
        actually pnpm is slow here: nothing
        I meant jest: nothing
    "#]].assert_eq(&table);
}

/// A general decision that was newer than the one on the same subject hid it from the next decision on the subject.
#[test]
fn the_decision_on_the_subject_goes_before_a_rival() {
    let mut bench = Bench::default();
    for (id, text) in [("d1", "Vue for frontend"), ("d2", "Vue")] {
        bench.item(record(id, MemoryKind::Decision, "implementation", "x"), text);
    }
    let found = proposals(&bench, Role::Assistant, "The solution will be React for frontend.");
    assert!(found.contains("supersedes d1") && !found.contains("d2"), "{found}");
}

/// "User is a junior developer", added by hand, stayed current beside the senior developer of the talk.
#[test]
fn what_was_added_by_hand_is_contradicted_as_well() {
    for (category, subject) in [("other", None), ("personal", Some("role"))] {
        let mut bench = Bench::default();
        let by_hand = acpdb_engine::event::MemoryRecorded {
            subject: subject.map(Into::into),
            lifespan: Lifespan::Project,
            ..record("f1", MemoryKind::Fact, category, "x")
        };
        bench.item(by_hand, "User is a junior developer");
        let found = proposals(&bench, Role::User, "Actually, I'm a senior developer now");
        assert!(found.contains("User is a senior developer") && found.contains("supersedes f1"), "{found}");
        let lifespan =
            bench.view(|view| propose(Role::User, "I'm a senior developer", view)[0].item.lifespan);
        assert_eq!(lifespan, Some(Lifespan::Project), "edges stay in one scope");
    }
}

#[test]
fn what_leads_to_a_wish_in_other_words_counts() {
    for (text, wished) in [
        ("let us use 4 spaces", "4 spaces"),
        ("rather than pnpm use npm, and prefer jest", "npm jest"),
        ("let us use 2 spaces, always tabs", "2 spaces"),
    ] {
        let found = proposals(&Bench::default(), Role::User, text);
        for value in wished.split(' ') {
            assert!(found.contains(value), "{text}: {found}");
        }
        assert!(!found.contains("= pnpm") && !found.contains("= tabs"), "{text}: {found}");
    }
}
