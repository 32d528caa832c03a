//! Tables: the events that record each command, and each refusal with its text.

use expect_test::{Expect, expect};

use super::*;
use crate::event::Payload;
use crate::fold::memory::testing::{Bench, preference, record, stream};
use crate::ids::Seq;

fn bench() -> Bench {
    let mut bench = Bench::default();
    bench.item(preference("p1", "package_manager", ""), "npm");
    bench.item(preference("p2", "package_manager", ""), "pnpm");
    bench.item(record("d1", MemoryKind::Decision, "implementation", ""), "React for frontend");
    bench.item(record("d2", MemoryKind::Decision, "implementation", ""), "Vue for frontend");
    let fact =
        MemoryRecorded { lifespan: Lifespan::Session, ..record("f1", MemoryKind::Fact, "schedule", "") };
    bench.item(fact, "Deadline on Friday");
    bench
}

/// The outcome of a command: its stream, and each event with its bodies; or the refusal.
fn outcome(bench: &Bench, command: &MemoryCommand) -> String {
    match bench.view(|view| decide(view, command)) {
        Err(rejection) => format!("refused: {rejection}\n"),
        Ok(decision) => {
            let scope = [Lifespan::Session, Lifespan::Project, Lifespan::Permanent]
                .into_iter()
                .find(|lifespan| stream(*lifespan) == decision.stream)
                .map(lifespan_label);
            let drafts = decision.drafts.iter().map(|draft| {
                let what = match &draft.event.payload {
                    Payload::MemoryRecorded(record) => format!(
                        "{} {}/{:?} .{:02} {} replaces {:?}",
                        kind_label(record.kind),
                        record.category,
                        record.key,
                        record.confidence,
                        lifespan_label(record.lifespan),
                        record.replaces
                    ),
                    Payload::MemorySuperseded(link) => format!("{} by {}", link.old, link.new),
                    Payload::MemoryReinforced(event) => format!("{} +{}", event.id, event.amount),
                    Payload::MemoryRetracted(event) => event.id.clone(),
                    Payload::Restored(event) => format!("{:?}", event.items),
                    other => other.label().to_owned(),
                };
                let bodies: Vec<_> = draft.bodies.iter().map(|body| String::from_utf8_lossy(body)).collect();
                format!("  {} {what} {bodies:?}\n", draft.event.payload.label())
            });
            format!("{} in {}\n{}", decision.id, scope.unwrap_or("?"), drafts.collect::<String>())
        }
    }
}

fn check(bench: &Bench, commands: &[MemoryCommand], expected: &Expect) {
    expected.assert_eq(&commands.iter().map(|command| outcome(bench, command)).collect::<String>());
}

fn entry(kind: MemoryKind, value: &str) -> MemoryEntry {
    MemoryEntry { kind, value: value.into(), confidence: 80, ..MemoryEntry::default() }
}

fn add(entry: MemoryEntry) -> MemoryCommand {
    MemoryCommand::Add(entry)
}

fn wish(key: &str, value: &str) -> MemoryEntry {
    MemoryEntry { category: "tooling".into(), key: Some(key.into()), ..entry(MemoryKind::Preference, value) }
}

fn link(old: &str, new: &str) -> MemoryCommand {
    MemoryCommand::Supersede { old: old.into(), new: new.into(), reason: Some("changed".into()) }
}

#[test]
fn what_commands_record() {
    check(
        &bench(),
        &[
            add(entry(MemoryKind::Fact, "likes tea")),
            add(wish("editor", "Vim")),
            add(MemoryEntry {
                rationale: Some("fast".into()),
                alternatives: vec!["Svelte".into(), String::new()],
                related_files: vec!["src/app.ts".into()],
                replaces: vec!["d2".into(), "#3".into()],
                ..entry(MemoryKind::Decision, "Solid for frontend")
            }),
            add(MemoryEntry {
                lifespan: Some(Lifespan::Permanent),
                id: "mine".into(),
                ..entry(MemoryKind::Note, "n")
            }),
            // Equal values, any case: reinforced.
            add(wish("package_manager", "PNPM")),
            add(MemoryEntry {
                replaces: vec!["d1".into(), "d2".into()],
                ..entry(MemoryKind::Decision, "vue for frontend")
            }),
            // The superseded value again is a new item.
            add(wish("package_manager", "npm")),
            link("d1", "d2"),
            MemoryCommand::Reinforce { item: "#5".into() },
            MemoryCommand::Retract { item: "p2".into(), reason: None },
            MemoryCommand::Restore { item: "p1".into() },
        ],
        &expect![[r##"
            f2 in project
              memory_recorded fact other/None .80 project replaces [] ["likes tea"]
            p3 in project
              memory_recorded preference tooling/Some("editor") .80 project replaces [] ["Vim"]
            d3 in project
              memory_recorded decision implementation/None .80 project replaces ["d2", "d1"] ["Solid for frontend", "fast", "Svelte"]
            mine in permanent
              memory_recorded note other/None .80 permanent replaces [] ["n"]
            p2 in project
              memory_reinforced p2 +10 []
            d2 in project
              memory_reinforced d2 +10 []
              memory_superseded d1 by d2 []
            p3 in project
              memory_recorded preference tooling/Some("package_manager") .80 project replaces [] ["npm"]
            d2 in project
              memory_superseded d1 by d2 ["changed"]
            f1 in session
              memory_reinforced f1 +10 []
            p2 in project
              memory_retracted p2 []
            p1 in project
              restored [ItemId { seq: Seq(1), part: 1 }] ["[[\"#1\"]]"]
        "##]],
    );
}

#[test]
fn what_is_refused() {
    let mut bench = bench();
    bench.item(
        MemoryRecorded {
            replaces: vec!["d1".into()],
            ..record("d3", MemoryKind::Decision, "implementation", "")
        },
        "three",
    );
    bench.push(Lifespan::Project, MemoryRetracted { id: "d2".into(), ..MemoryRetracted::default() }, &[]);
    bench.item(record("d3", MemoryKind::Decision, "implementation", ""), "three again");
    check(
        &bench,
        &[
            add(entry(MemoryKind::Fact, " \n")),
            add(wish(" ", "Vim")),
            add(entry(MemoryKind::Preference, "Vim")),
            add(MemoryEntry { key: Some("k".into()), ..entry(MemoryKind::Fact, "v") }),
            add(wish("a\u{7}b", "Vim")),
            add(wish(&"k".repeat(513), "Vim")),
            add(wish("editor", &"v".repeat(VALUE_BYTES_MAX + 1))),
            add(MemoryEntry { confidence: 101, ..entry(MemoryKind::Fact, "v") }),
            add(MemoryEntry { category: "personel".into(), ..entry(MemoryKind::Fact, "v") }),
            add(MemoryEntry { category: "tools".into(), ..wish("editor", "Vim") }),
            add(MemoryEntry { id: "d1".into(), ..entry(MemoryKind::Note, "v") }),
            add(MemoryEntry { id: "x".into(), replaces: vec!["x".into()], ..entry(MemoryKind::Note, "v") }),
            add(MemoryEntry { replaces: vec!["gone".into()], ..entry(MemoryKind::Note, "v") }),
            add(MemoryEntry { replaces: vec!["d1".into()], ..entry(MemoryKind::Fact, "v") }),
            add(MemoryEntry { replaces: vec![String::new(); 300], ..entry(MemoryKind::Note, "v") }),
            link("p1", "p1"),
            link("p2", "p1"),
            link("f1", "d1"),
            link("d1", "elsewhere"),
            link("#6", "d1"),
            MemoryCommand::Reinforce { item: "#99".into() },
            MemoryCommand::Retract { item: "d2".into(), reason: None },
            MemoryCommand::Restore { item: "p2".into() },
        ],
        &expect![[r#"
            refused: a fact needs a value; give a text that is not blank
            refused: a preference needs a key, such as package_manager
            refused: a preference needs a key, such as package_manager
            refused: a fact has no key; only preferences do
            refused: the key "a\u{7}b" has control characters; leave them out
            refused: the key has 513 bytes; at most 512 fit
            refused: the value has 1048577 bytes; at most 1048576 fit
            refused: confidence 1.01 is not between 0 and 1
            refused: unknown fact category 'personel'; did you mean 'personal'? known: personal, schedule, context, preference, other
            refused: unknown preference category 'tools'; did you mean 'tooling'? known: style, tooling, workflow, communication, other
            refused: id 'd1' is taken by #3; leave the id out or choose another
            refused: 'x' cannot supersede itself
            refused: no memory item 'gone' here; items of other projects cannot be named
            f2 in project
              memory_recorded fact other/None .80 project replaces ["d1"] ["v"]
            refused: 300 replaced items were given; at most 256 fit
            refused: 'p1' cannot supersede itself
            refused: 'p2' already took the place of 'p1', directly or through others; restore 'p1' first
            refused: 'f1' (session) and 'd1' (project) live apart; record the new item with lifespan session
            refused: no memory item 'elsewhere' here; items of other projects cannot be named
            refused: #6 is an older version of #8; name that one
            refused: no memory item #99 here; items of other projects cannot be named
            refused: 'd2' is already retracted
            refused: 'p2' is current; there is nothing to restore
        "#]],
    );
    let none = |_| None;
    let nowhere = MemoryView::new(Vec::new(), Seq::MAX, crate::ids::Micros(0), &none);
    assert_eq!(decide(&nowhere, &add(entry(MemoryKind::Note, "v"))), Err(MemoryRejection::NoStream));
}

#[test]
fn confidences_and_lifespans_are_read_strictly() {
    for (given, hundredths) in [(0.0, 0), (0.555, 56), (1.0, 100), (-0.0, 0)] {
        assert_eq!(confidence_hundredths(given), Ok(hundredths));
    }
    for given in [-0.01, 1.01, f64::NAN, f64::INFINITY] {
        assert!(confidence_hundredths(given).is_err());
    }
    assert_eq!(parse_lifespan(" Project"), Ok(Lifespan::Project));
    let refused = parse_lifespan("forever").unwrap_err();
    assert_eq!(refused.to_string(), "unknown lifespan 'forever'; use session, project or permanent");
}
