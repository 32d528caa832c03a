//! Session, project and user: which sessions see which values, and until when.

use acpdb_engine::command::memory::{MemoryCommand, MemoryRef};
use acpdb_engine::entry::{Entry, MemoryEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{Lifespan, MemoryKind, Role};
use acpdb_engine::fold::memory::MemoryStatus;
use acpdb_engine::ids::{ItemId, Micros, Seq, StreamId};
use acpdb_engine::{MemoryScope, Store};
use acpdb_tests::support::{cases, events, folded};
use proptest::prelude::*;
use tempfile::TempDir;

use super::{current, read};

fn store() -> (TempDir, Store) {
    let folder = TempDir::new().unwrap();
    let store = Store::builder(folder.path().join("store")).open().unwrap();
    (folder, store)
}

fn session(name: &str, project: &str) -> StreamInfo {
    StreamInfo { project: Some(project.to_owned()), ..StreamInfo::session("acpdb", name) }
}

fn say(store: &Store, info: &StreamInfo) -> Seq {
    store.append(info, vec![Entry::message("", Role::User, "hello")]).unwrap().last_seq
}

fn fact(value: &str, lifespan: Lifespan) -> MemoryEntry {
    MemoryEntry {
        value: value.to_owned(),
        confidence: 90,
        lifespan: Some(lifespan),
        ..MemoryEntry::default()
    }
}

fn preference(value: &str) -> MemoryEntry {
    MemoryEntry {
        kind: MemoryKind::Preference,
        category: "tooling".to_owned(),
        key: Some("package_manager".to_owned()),
        value: value.to_owned(),
        confidence: 80,
        ..MemoryEntry::default()
    }
}

fn add(store: &Store, scope: &MemoryScope, entry: MemoryEntry) -> ItemId {
    store.remember(scope, &MemoryCommand::Add(entry)).unwrap().item.unwrap()
}

fn at_head(store: &Store, info: &StreamInfo) -> Vec<String> {
    current(store, &MemoryScope::session(info.id()), Seq::MAX)
}

/// The current values of a stream, by the fold of all events and by the one that the store keeps for the stream alone.
fn agree(store: &Store, stream: StreamId) {
    let world = folded(&events(store).unwrap());
    let view = store.view(stream).unwrap();
    let now = store.now();
    for at in 0..=world.head().0 {
        let standings = |state: &acpdb_engine::fold::State| -> Vec<(ItemId, MemoryStatus)> {
            let all = state.memory().at(Seq(at)).all().into_iter();
            all.map(|item| (item.item(), item.standing(now))).collect()
        };
        assert_eq!(standings(world.stream(stream).unwrap()), standings(view.state()), "at #{at}");
    }
}

/// A session's memory used to outlive it unless its host said that it was over: the fold of one session never saw
/// another one begin.
#[test]
fn session_memory_ends_when_a_newer_session_of_the_project_begins() {
    let (_folder, store) = store();
    let first = session("s1", "p");
    say(&store, &first);
    let scope = MemoryScope::session(first.id());
    let fact_item = add(&store, &scope, fact("the build is red", Lifespan::Session));
    assert_eq!(at_head(&store, &first), ["f1 the build is red"]);
    // A session of another project; a subagent of this one; a session long before.
    say(&store, &session("other", "q"));
    say(&store, &StreamInfo { parent: Some((first.id(), None)), ..session("subagent", "p") });
    say(&store, &StreamInfo { host_time: Some(Micros(1)), ..session("imported", "p") });
    assert_eq!(at_head(&store, &first), ["f1 the build is red"]);
    agree(&store, first.id());

    let second = session("s2", "p");
    let opened = say(&store, &second);
    assert_eq!(at_head(&store, &first), Vec::<String>::new());
    assert_eq!(current(&store, &scope, Seq(opened.0 - 2)), ["f1 the build is red"], "as of before, it holds");
    read(&store, &scope, Seq::MAX, |view| {
        assert_eq!(view.by_item(fact_item).unwrap().1.standing(store.now()), MemoryStatus::Expired);
    });
    // Going on with the first session, one can remember anew.
    add(&store, &scope, fact("the build is green", Lifespan::Session));
    assert_eq!(at_head(&store, &first), ["f2 the build is green"]);
    assert_eq!(at_head(&store, &second), Vec::<String>::new());
    agree(&store, first.id());
    agree(&store, second.id());
}

#[test]
fn session_memory_ends_when_the_session_is_closed() {
    let (_folder, store) = store();
    let info = session("s1", "p");
    say(&store, &info);
    let scope = MemoryScope::session(info.id());
    add(&store, &scope, fact("the build is red", Lifespan::Session));
    add(&store, &scope, preference("pnpm"));
    let _ = store.append(&info, vec![Entry::from(fact::SessionClosed { reason: None })]).unwrap();
    assert_eq!(at_head(&store, &info), ["p1 pnpm"]);
    agree(&store, info.id());
}

#[test]
fn project_memory_is_seen_by_every_session_of_the_project_as_of_one_seq() {
    let (_folder, store) = store();
    let (one, two, other) = (session("s1", "p"), session("s2", "p"), session("s3", "q"));
    for info in [&one, &two, &other] {
        say(&store, info);
    }
    let scope = MemoryScope::session(one.id());
    let npm = add(&store, &scope, preference("npm"));
    let pnpm = add(&store, &scope, preference("pnpm"));
    add(&store, &scope, fact("Ada", Lifespan::Permanent));
    for (info, at, expected) in [
        (&one, Seq(npm.seq.0 - 1), vec![]),
        (&one, npm.seq, vec!["p1 npm"]),
        (&two, npm.seq, vec!["p1 npm"]),
        (&two, pnpm.seq, vec!["p2 pnpm"]),
        (&one, Seq::MAX, vec!["p2 pnpm", "f1 Ada"]),
        (&two, Seq::MAX, vec!["p2 pnpm", "f1 Ada"]),
        // A permanent value is the user's: other projects know it, too.
        (&other, Seq::MAX, vec!["f1 Ada"]),
    ] {
        assert_eq!(current(&store, &MemoryScope::session(info.id()), at), expected, "{} at {at}", info.name);
    }
    // The session's own value shadows it here, and nowhere else.
    let own = MemoryEntry { lifespan: Some(Lifespan::Session), ..preference("yarn") };
    add(&store, &scope, own);
    assert_eq!(at_head(&store, &one), ["f1 Ada", "p3 yarn"]);
    assert_eq!(at_head(&store, &two), ["p2 pnpm", "f1 Ada"]);
}

#[test]
fn a_fork_sees_its_parents_memory_up_to_the_fork() {
    let (_folder, store) = store();
    let parent = session("s1", "p");
    say(&store, &parent);
    let scope = MemoryScope::session(parent.id());
    let before = add(&store, &scope, fact("the build is red", Lifespan::Session));
    add(&store, &scope, fact("the tests hang", Lifespan::Session));
    let fork = session("s2", "p");
    let entry = Entry::from(fact::Forked { from: parent.id(), at: PointRef::Seq(before.seq) });
    let _ = store.append(&fork, vec![entry]).unwrap();
    assert_eq!(at_head(&store, &fork), ["f1 the build is red"]);
    agree(&store, fork.id());
    agree(&store, parent.id());
}

#[test]
fn what_was_superseded_or_retracted_can_hold_again() {
    let (_folder, store) = store();
    let scope = MemoryScope::project("p");
    let npm = add(&store, &scope, preference("npm"));
    let pnpm = add(&store, &scope, preference("pnpm"));
    let act = |command: MemoryCommand| store.remember(&scope, &command).unwrap();
    let _ = act(MemoryCommand::Restore { item: MemoryRef::Item(npm) });
    assert_eq!(current(&store, &scope, Seq::MAX), ["p1 npm"]);
    assert_eq!(current(&store, &scope, pnpm.seq), ["p2 pnpm"]);
    let _ = act(MemoryCommand::Retract { item: MemoryRef::Item(npm), reason: None });
    assert_eq!(current(&store, &scope, Seq::MAX), ["p2 pnpm"]);
    let _ = act(MemoryCommand::Restore { item: MemoryRef::Item(npm) });
    assert_eq!(current(&store, &scope, Seq::MAX), ["p1 npm"]);
}

/// An act on one project: a value of a key, or the end of a value that holds.
#[derive(Clone, Copy, Debug)]
enum Act {
    Set(usize),
    Retract,
    Restore(usize),
}

const VALUES: [&str; 3] = ["npm", "pnpm", "yarn"];

fn perform(store: &Store, project: &str, act: Act, made: &mut Vec<ItemId>) {
    let scope = MemoryScope::project(project);
    let command = match act {
        Act::Set(value) => MemoryCommand::Add(preference(VALUES[value])),
        Act::Retract => {
            let Some(last) = made.last() else { return };
            MemoryCommand::Retract { item: MemoryRef::Item(*last), reason: None }
        }
        Act::Restore(nth) => {
            let Some(item) = made.get(nth) else { return };
            MemoryCommand::Restore { item: MemoryRef::Item(*item) }
        }
    };
    // An impossible command is refused alike in both stores.
    if let Ok(receipt) = store.remember(&scope, &command) {
        made.extend(receipt.item);
    }
}

/// A project's history without places in the log: the values recorded, how each stands, and which value took its place.
fn history(store: &Store, project: &str) -> Vec<String> {
    let scope = MemoryScope::project(project);
    if store.memory(&scope, Seq::MAX).is_err() {
        return Vec::new();
    }
    read(store, &scope, Seq::MAX, |view| {
        let all = view.all().into_iter();
        let lines = all.map(|(stream, item)| {
            let (_, memory) = view.stream(stream).unwrap();
            let edges: Vec<String> = (memory.superseded_by(&item).into_iter())
                .map(|edge| format!("{} {} {}", edge.new, edge.rule.label(), edge.hides()))
                .collect();
            let (id, text, standing) = (item.id(), view.text(&item), item.standing(view.now()));
            format!("{id} {text:?} {standing:?} {edges:?}")
        });
        lines.collect()
    })
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0..VALUES.len()).prop_map(Act::Set),
        1 => Just(Act::Retract),
        1 => (0..4_usize).prop_map(Act::Restore),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(12)))]

    /// Two projects in one store, their commands in any order, have the histories that each has in a store of its own.
    #[test]
    fn two_projects_in_one_store_keep_both_histories(
        script in proptest::collection::vec((any::<bool>(), act()), 0..14)
    ) {
        let (_merged_folder, merged) = store();
        let (_left_folder, left) = store();
        let (_right_folder, right) = store();
        let mut in_merged = [Vec::new(), Vec::new()];
        let mut alone = [Vec::new(), Vec::new()];
        for (is_right, act) in script {
            let (name, own) = if is_right { ("b", &right) } else { ("a", &left) };
            perform(&merged, name, act, &mut in_merged[usize::from(is_right)]);
            perform(own, name, act, &mut alone[usize::from(is_right)]);
        }
        prop_assert_eq!(history(&merged, "a"), history(&left, "a"));
        prop_assert_eq!(history(&merged, "b"), history(&right, "b"));
    }
}

/// The streams of a memory were as they had been, and a caller that asked for their newest event alone kept the erased text.
#[test]
fn an_erasure_moves_the_head_of_a_memory() {
    let (_folder, store) = store();
    let scope = MemoryScope::project("shop");
    let _ = store.append(&StreamInfo::project("shop"), Vec::new());
    let _ = store
        .remember(&scope, &MemoryCommand::Add(fact("the key is xq7Zp0vLk3", Lifespan::Project)))
        .unwrap();
    let head = || store.memory(&scope, Seq::MAX).unwrap().head().unwrap();
    let (before, item) = (head(), ItemId::first(store.head().unwrap()));
    assert_eq!(head(), before);
    let _ = store.erase(item, "me", "it leaked").unwrap();
    assert!(head() > before, "{before}");
    let texts = read(&store, &scope, Seq::MAX, |view| {
        view.current().into_iter().map(|(_, item)| view.text(&item)).collect::<Vec<_>>()
    });
    assert_eq!(texts, [None]);
}
