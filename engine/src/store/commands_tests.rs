//! Commands on a real folder: the events that they record and where, their refusals, and that a refusal records nothing.

use expect_test::{Expect, expect};
use tempfile::TempDir;

use super::*;
use crate::command::memory::{MemoryCommand, MemoryRef};
use crate::command::{ContextAction, Rejection, Target};
use crate::entry::MemoryEntry;
use crate::event::{Actor, Face, MemoryKind, Payload, Role};
use crate::fold::{FaceState, HashForm, Policy};
use crate::ids::ItemId;

struct Fixture {
    _folder: TempDir,
    store: Store,
}

fn fixture() -> Fixture {
    let folder = TempDir::new().unwrap();
    let store = Store::builder(folder.path().join("store")).open().unwrap();
    Fixture { _folder: folder, store }
}

fn session(project: Option<&str>) -> StreamInfo {
    StreamInfo { project: project.map(str::to_owned), ..StreamInfo::session("acpdb", "s1") }
}

impl Fixture {
    fn say(&self, info: &StreamInfo, role: Role, text: &str) -> ItemId {
        let receipt = self.store.append(info, vec![Entry::message("", role, text)]).unwrap();
        receipt.items[0].unwrap()
    }

    /// Events since `from`, each with the scope of its stream and its label.
    fn since(&self, from: Seq) -> Vec<String> {
        let names = self.store.stream_names().unwrap();
        let name = |stream: StreamId| {
            let found = names.iter().find(|name| name.id == stream);
            found.map_or_else(|| "store".to_owned(), |name| name.name.clone())
        };
        let events = self.store.events(from.next(), Seq::MAX).unwrap().map(Result::unwrap);
        events.map(|it| format!("{} {}", name(it.event.stream), it.event.payload.label())).collect()
    }

    /// Runs `act`, which must be refused with this text and leave the log as it is.
    fn refused<T: std::fmt::Debug>(&self, act: impl FnOnce(&Store) -> Result<T, Error>, text: &Expect) {
        let before = self.store.head().unwrap();
        let error = act(&self.store).unwrap_err();
        assert!(matches!(error, Error::Rejected(_)), "{error}");
        text.assert_eq(&error.to_string());
        assert_eq!(self.store.head().unwrap(), before, "a refusal recorded something");
    }

    fn remember(&self, scope: &MemoryScope, entry: MemoryEntry) -> MemoryReceipt {
        self.store.remember(scope, &MemoryCommand::Add(entry)).unwrap()
    }

    fn current(&self, scope: &MemoryScope) -> Vec<String> {
        let memory = self.store.memory(scope, Seq::MAX).unwrap();
        memory.read(self.store.now(), |view| {
            let rows = view.current().into_iter();
            rows.map(|(_, item)| format!("{} {}", item.id(), view.text(&item).unwrap())).collect()
        })
    }
}

fn preference(key: &str, value: &str) -> MemoryEntry {
    MemoryEntry {
        kind: MemoryKind::Preference,
        category: "tooling".to_owned(),
        key: Some(key.to_owned()),
        value: value.to_owned(),
        confidence: 80,
        ..MemoryEntry::default()
    }
}

fn fact(value: &str) -> MemoryEntry {
    MemoryEntry { value: value.to_owned(), confidence: 90, ..MemoryEntry::default() }
}

#[test]
fn memory_goes_to_the_stream_of_its_lifespan_and_opens_a_new_project() {
    let fixture = fixture();
    let info = session(Some("p"));
    fixture.say(&info, Role::User, "hello");
    let before = fixture.store.head().unwrap();
    let scope = MemoryScope::session(info.id());
    let of_session = Some(crate::event::Lifespan::Session);
    let first = fixture.remember(&scope, MemoryEntry { lifespan: of_session, ..fact("the build is slow") });
    let second = fixture.remember(&scope, preference("package_manager", "npm"));
    let permanent = MemoryEntry { lifespan: Some(crate::event::Lifespan::Permanent), ..fact("Ada") };
    let _ = fixture.remember(&scope, permanent);
    expect![[r#"
        s1 memory_recorded
        p session_opened
        p memory_recorded
        user session_opened
        user memory_recorded"#]]
    .assert_eq(&fixture.since(before).join("\n"));
    assert_eq!((first.stream, second.stream), (info.id(), StreamInfo::project("p").id()));
    let recorded = fixture.store.event(second.item.unwrap().seq).unwrap().unwrap();
    assert!(matches!(recorded.event.payload, Payload::MemoryRecorded(_)));
    assert_eq!(fixture.current(&scope), ["f1 the build is slow", "p1 npm", "f2 Ada"]);
    // The project's memory alone has nothing of the session.
    assert_eq!(fixture.current(&MemoryScope::project("p")), ["p1 npm", "f2 Ada"]);
}

#[test]
fn a_session_without_a_project_keeps_everything_itself() {
    let fixture = fixture();
    let info = session(None);
    fixture.say(&info, Role::User, "hello");
    let receipt = fixture.remember(&MemoryScope::session(info.id()), preference("package_manager", "npm"));
    assert_eq!(receipt.stream, info.id());
}

#[test]
fn an_equal_value_reinforces_and_a_new_one_takes_the_place_also_after_reopening() {
    let folder = TempDir::new().unwrap();
    let scope = MemoryScope::project("p");
    let add = |value: &str| {
        // A handle of its own each time: the stream's key must be found again.
        let store = Store::builder(folder.path().join("store")).open().unwrap();
        store.remember(&scope, &MemoryCommand::Add(preference("package_manager", value))).unwrap()
    };
    assert!(add("npm").item.is_some());
    let equal = add("NPM");
    assert_eq!((equal.id.as_str(), equal.item), ("p1", None));
    assert_eq!(add("pnpm").id, "p2");
    let store = Store::builder(folder.path().join("store")).open().unwrap();
    let memory = store.memory(&scope, Seq::MAX).unwrap();
    memory.read(store.now(), |view| {
        let (_, holder) = view.by_key("tooling", "package_manager").unwrap();
        assert_eq!(holder.id(), "p2");
        let (_, old) = view.by_id("p1").unwrap();
        assert_eq!(old.confirmed(), crate::fold::memory::Confidence::from_hundredths(90));
    });
    // As of the first item, the first value holds.
    let early = store.memory(&scope, Seq(3)).unwrap();
    early.read(store.now(), |view| {
        assert_eq!(view.by_key("tooling", "package_manager").unwrap().1.id(), "p1");
    });
}

#[test]
fn memory_that_cannot_be_is_refused() {
    let fixture = fixture();
    let scope = MemoryScope::project("p");
    let _ = fixture.remember(&scope, fact("a"));
    let _ = fixture.remember(&scope, fact("b"));
    let supersede = |old: &str, new: &str| MemoryCommand::Supersede {
        old: MemoryRef::from(old),
        new: MemoryRef::from(new),
        reason: None,
    };
    let _ = fixture.store.remember(&scope, &supersede("f1", "f2")).unwrap();
    fixture.refused(
        |store| store.remember(&scope, &supersede("f2", "f1")),
        &expect!["'f2' already took the place of 'f1', directly or through others; restore 'f1' first"],
    );
    fixture.refused(
        |store| store.remember(&scope, &supersede("f9", "f2")),
        &expect!["no memory item 'f9' here; items of other projects cannot be named"],
    );
    fixture.refused(
        |store| store.remember(&scope, &MemoryCommand::Add(fact(" "))),
        &expect!["a fact needs a value; give a text that is not blank"],
    );
    fixture.refused(
        |store| store.remember(&MemoryScope::default(), &MemoryCommand::Add(fact("x"))),
        &expect!["there is no stream to record memory in; open a session or project first"],
    );
    let unknown = fixture.store.memory(&MemoryScope::project("q"), Seq::MAX).unwrap_err();
    assert!(matches!(unknown, Error::NotFound { what: "project", .. }), "{unknown}");
}

#[test]
fn a_policy_holds_for_what_comes_and_for_one_stream_if_it_is_asked() {
    let fixture = fixture();
    let info = session(None);
    fixture.say(&info, Role::User, "hello");
    let before = fixture.store.head().unwrap();
    let careful = Policy::preset("careful").unwrap();
    let seq = fixture.store.set_policy(Some(info.id()), &careful, Some("to try")).unwrap();
    let _ = fixture.store.set_policy(None, &Policy::preset("dcp").unwrap(), None).unwrap();
    assert_eq!(fixture.since(before), ["s1 policy_set", "store policy_set"]);
    let preset = |stream, at| fixture.store.policy(stream, at).unwrap().preset.clone();
    assert_eq!(preset(Some(info.id()), Seq::MAX), "careful");
    assert_eq!(preset(Some(info.id()), Seq(seq.get() - 1)), "acp");
    assert_eq!((preset(None, Seq::MAX), preset(None, seq)), ("dcp".to_owned(), "acp".to_owned()));
    fixture.refused(
        |store| store.change_policy(None, None, &|_| Policy::from_json(r#"{"filekind":1}"#)),
        &expect!["no policy key is called `filekind`; did you mean `file.kind`?"],
    );
}

#[test]
fn tasks_are_changed_by_the_rules_and_their_work_is_evicted() {
    let fixture = fixture();
    let info = session(None);
    fixture.say(&info, Role::User, "please");
    let update = |json: &str| fixture.store.update_tasks(info.id(), json.as_bytes());
    let reply = update(r#"{"tasks":[{"id":"A","content":"first","status":"in_progress"}]}"#).unwrap();
    assert_eq!(reply.text, "Updated 1 task");
    let thought = fixture.say(&info, Role::Assistant, &"I am thinking about the first task. ".repeat(20));
    fixture.refused(
        |_| update(r#"{"tasks":[{"id":"B","status":"in_progress"}]}"#),
        &expect!["complete task 'A' before starting 'B'"],
    );
    fixture.refused(|_| update("[]"), &expect!["the update is not an object with a list `tasks`"]);
    let before = fixture.store.head().unwrap();
    let summary = "It is done and it works as it should.";
    let json = format!(r#"{{"tasks":[{{"id":"A","status":"completed","result_summary":"{summary}"}}]}}"#);
    assert_eq!(update(&json).unwrap().text, "Updated 1 task; completed and evicted: A");
    assert_eq!(fixture.since(before), ["s1 task_changed", "s1 task_evicted"]);
    // A second summary of a completed task is recorded and stands nowhere; a field with a slip of the pen is kept, and no rule reads it.
    let again = r#"{"tasks":[{"id":"A","status":"completed","result_summary":"It is done, and here is more of it."}]}"#;
    let reply = update(again).unwrap().text;
    assert!(reply.contains("completed already, with its first summary in place: A"), "{reply}");
    let slips = r#"{"tasks":[{"id":"A","acceptance_critera":["x"],"priority":"high","grounding":{}}]}"#;
    let reply = update(slips).unwrap().text;
    assert_eq!(
        reply,
        "Updated 1 task; A: acceptance_critera is kept and not read, did you mean acceptance_criteria?"
    );
    let view = fixture.store.view(info.id()).unwrap();
    let ix = view.state().find(thought).unwrap();
    let shown = view.shown(ix, Face::Output).unwrap();
    assert_eq!(shown.state, FaceState::Summary);
    assert!(shown.text.contains(summary), "{}", shown.text);
}

/// A task that was finished again kept its first summary in every request, and what it hid stayed hidden while it was open.
#[test]
fn a_task_that_is_opened_again_shows_its_items_and_its_newest_summary() {
    let fixture = fixture();
    let info = session(None);
    let update = |json: &str| fixture.store.update_tasks(info.id(), json.as_bytes()).unwrap();
    let complete = |summary: &str| {
        update(&format!(r#"{{"tasks":[{{"id":"A","status":"completed","result_summary":"{summary}"}}]}}"#))
    };
    fixture.say(&info, Role::User, "please");
    let _ = update(r#"{"tasks":[{"id":"A","content":"first","status":"in_progress"}]}"#);
    let long = "a line of output that is long enough to be hidden\n".repeat(20);
    let call = |id: &str| {
        let entries =
            vec![Entry::tool_started(id, "read", r#"{"filePath":"a"}"#), Entry::tool_completed(id, &long)];
        fixture.store.append(&info, entries).unwrap().items[0].unwrap()
    };
    let early = call("c1");
    let shown = |item: ItemId| {
        let view = fixture.store.view(info.id()).unwrap();
        let shown = view.shown(view.state().find(item).unwrap(), Face::Output).unwrap();
        (shown.state, shown.text)
    };
    let _ = complete("It was done in a first way.");
    assert!(shown(early).1.contains("first way"), "{:?}", shown(early));
    for status in ["pending", "in_progress"] {
        let _ = update(&format!(r#"{{"tasks":[{{"id":"A","status":"{status}"}}]}}"#));
        assert_eq!(shown(early), (FaceState::Whole, long.clone()), "{status}");
        let late = call(status);
        let _ = complete("It was done in a second way.");
        // A call while nothing is in progress belongs to no task.
        let hidden = if status == "pending" { vec![early] } else { vec![early, late] };
        let texts: String = hidden.into_iter().map(|item| shown(item).1).collect();
        assert_eq!(texts.matches("second way").count(), 1, "{status}: {texts}");
        assert!(!texts.contains("first way") && !texts.contains("long enough"), "{status}: {texts}");
    }
}

/// A prompt that came in parts, as opencode and Pi tell it, never began automata mode.
#[test]
fn a_word_of_a_user_counts_in_each_part_of_a_message() {
    use crate::entry::PartEntry;
    use crate::entry::fact::MessageContinued;
    for (role, is_on) in [(Role::User, true), (Role::Assistant, false)] {
        let fixture = fixture();
        let info = session(None);
        let parts = vec![PartEntry::text("and go into Automata mode")];
        let entries = vec![
            Entry::message("m1", role, "please"),
            MessageContinued { key: "m1".to_owned(), parts }.into(),
        ];
        let _ = fixture.store.append(&info, entries).unwrap();
        let view = fixture.store.view(info.id()).unwrap();
        assert_eq!(view.state().todos().is_automata(view.at()), is_on);
    }
}

/// A summary that could not be read was refused as too short, or judged without the task's criteria, and recorded so.
#[test]
fn what_a_task_said_is_read_or_the_error_is_told() {
    use crate::ids::Micros;
    use crate::storage::{Fault, FaultKind, FixedClock, FixedEntropy, SimWorld};
    let summary = "The parser reads all of it, and its tests pass.";
    let begun = format!(
        r#"{{"tasks":[{{"id":"A","content":"first","status":"in_progress","result_summary":"{summary}"}}]}}"#
    );
    let info = session(None);
    let (mut told, mut done) = (0, 0);
    for after in 0.. {
        let world = SimWorld::new(1);
        let process = world.process(1);
        let builder = Store::builder("/sim").storage(Arc::new(process.clone()));
        let clock = Arc::new(FixedClock::new(Micros(1_000_000), 10));
        let store = builder.clock(clock).entropy(Arc::new(FixedEntropy::new(1))).open().unwrap();
        let said =
            vec![Entry::message("", Role::Assistant, "I am thinking about the first task. ".repeat(20))];
        let _ = store.append(&info, vec![Entry::message("", Role::User, "please")]).unwrap();
        let _ = store.update_tasks(info.id(), begun.as_bytes()).unwrap();
        let thought = store.append(&info, said).unwrap().items[0].unwrap();
        process.plant(Fault { kind: FaultKind::ReadError, after, once: true });
        let ended = r#"{"tasks":[{"id":"A","status":"completed"}]}"#;
        let answer = store.update_tasks(info.id(), ended.as_bytes());
        let was_hit = process.was_hit();
        process.heal();
        match answer {
            Ok(_) => {
                done += 1;
                let view = store.view(info.id()).unwrap();
                let ix = view.state().find(thought).unwrap();
                assert!(view.shown(ix, Face::Output).unwrap().text.contains(summary), "read {after}");
            }
            Err(Error::Rejected(why)) => panic!("read {after}: refused, as if nothing had been said: {why}"),
            Err(_) => told += 1,
        }
        if !was_hit {
            break;
        }
    }
    assert!(told > 0 && done > 0, "{told} told, {done} done");
}

#[test]
fn items_are_pinned_restored_and_rewound_by_id() {
    let fixture = fixture();
    let info = session(None);
    let text = "a long enough text of the assistant that its tombstone is shorter than itself";
    let first = fixture.say(&info, Role::Assistant, text);
    let second = fixture.say(&info, Role::Assistant, text);
    let store = &fixture.store;
    let discard = |item: ItemId| store.context(info.id(), ContextAction::Discard, vec![(item.into(), None)]);
    assert_eq!(discard(first).unwrap().hidden, [first]);
    let reply = store.restore_pinned(info.id(), vec![first.into()]).unwrap();
    assert_eq!((reply.text.as_str(), reply.shown), ("Restored 1 message(s)", vec![first]));
    let pinned = |item: ItemId| {
        let view = store.view(info.id()).unwrap();
        let ix = view.state().find(item).unwrap();
        view.state().item(ix, Seq::MAX).unwrap().pinned
    };
    assert_eq!((pinned(first), pinned(second)), (true, false));
    let _ = store.unpin(info.id(), vec![first.into()]).unwrap();
    let _ = store.pin(info.id(), vec![second.into()]).unwrap();
    assert_eq!((pinned(first), pinned(second)), (false, true));
    fixture.refused(
        |store| store.pin(info.id(), vec![Target::Item(ItemId::first(Seq(999)))]),
        &expect!["nothing in this stream is called `#999`"],
    );
    let _ = store.rewind(info.id(), first.seq).unwrap();
    let view = store.view(info.id()).unwrap();
    assert_eq!(view.state().current(Seq::MAX).len(), 1);
    let end = store.head().unwrap();
    let other = StreamInfo::session("acpdb", "another");
    let head = store.append(&other, vec![Entry::message("", Role::User, "hello")]).unwrap().last_seq;
    let noops = [
        (first.seq, "twice"),
        (second.seq, "a branch that was left"),
        (end, "the end of the session"),
        (head, "the head of the store"),
    ];
    for (to, why) in noops {
        let reply = store.rewind(info.id(), to).unwrap();
        assert_eq!(reply.last_seq, None, "{why}");
        assert_eq!(reply.text, format!("Nothing to rewind: the branch has no event after {to}"), "{why}");
    }
    let after = head.next();
    assert_eq!(store.head().unwrap(), head);
    fixture.refused(
        |store| store.rewind(info.id(), after),
        &expect!["cannot rewind to #13: the stream ends at #10"],
    );
    let unknown = store.pin(StreamInfo::session("acpdb", "s2").id(), vec![first.into()]).unwrap_err();
    assert!(matches!(unknown, Error::NotFound { .. }), "{unknown}");
}

#[test]
fn commands_of_several_handles_and_appends_between_them_lose_nothing() {
    let fixture = fixture();
    let info = session(None);
    fixture.say(&info, Role::User, "hello");
    let root = fixture.store.root().to_path_buf();
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (root, info) = (root.clone(), info.clone());
            scope.spawn(move || {
                let store = Store::builder(root).open().unwrap();
                let scope = MemoryScope::session(info.id());
                for number in 0..8 {
                    let _ = store.append(&info, vec![Entry::message("", Role::User, "more")]).unwrap();
                    let entry = fact(&format!("fact {thread}-{number}"));
                    let _ = store.remember(&scope, &MemoryCommand::Add(entry)).unwrap();
                }
            });
        }
    });
    let scope = MemoryScope::session(info.id());
    let memory = fixture.store.memory(&scope, Seq::MAX).unwrap();
    let ids: std::collections::BTreeSet<String> = memory.read(fixture.store.now(), |view| {
        view.all().into_iter().map(|(_, item)| item.id().to_owned()).collect()
    });
    assert_eq!(ids.len(), 24, "two items have one id: {ids:?}");
}

#[test]
fn a_store_that_is_read_takes_no_command() {
    let folder = TempDir::new().unwrap();
    let info = session(None);
    let root = folder.path().join("store");
    {
        let store = Store::builder(&root).open().unwrap();
        let _ = store.append(&info, vec![Entry::message("", Role::User, "hello")]).unwrap();
    }
    let store = Store::builder(&root).read_only().open().unwrap();
    let refused = store.context_tool(info.id(), r#"{"action":"discard","targets":[["a...b"]]}"#);
    assert!(matches!(refused, Err(Error::ReadOnly { .. })));
}

/// Programs read items themselves, so that a list of items and hashes was refused, and one door knew no items at all.
#[test]
fn a_call_of_the_tool_names_items_beside_hashes_and_texts() {
    let fixture = fixture();
    let info = session(None);
    let said = fixture.say(&info, Role::Assistant, "I look at the parser first, and then at the lexer.");
    let long = "a line of a file\n".repeat(60);
    let calls = ["c1", "c2"].map(|id| {
        let call = [
            Entry::tool_started(id, "read", format!(r#"{{"filePath":"{id}.rs"}}"#)),
            Entry::tool_completed(id, &long),
        ];
        fixture.store.append(&info, call.to_vec()).unwrap().items[0].unwrap()
    });
    let hash = {
        let view = fixture.store.view(info.id()).unwrap();
        let ix = view.state().find(calls[0]).unwrap();
        view.state().hash(ix, Seq::MAX, HashForm::Shown).unwrap()
    };
    let targets = format!(r##"[["{hash}"], [" {} "], ["I look...lexer."], ["#9999"]]"##, calls[1]);
    let call = |targets: &str| format!(r#"{{"action":"discard","targets":{targets}}}"#);
    fixture.refused(
        |store| store.context_tool(info.id(), &call(&targets)),
        &expect!["nothing in this stream is called `#9999`"],
    );
    let done =
        fixture.store.context_tool(info.id(), &call(&targets.replace(r##", ["#9999"]"##, ""))).unwrap();
    assert_eq!(done.hidden, [calls[0], calls[1], said]);
    let recorded = fixture.store.event(done.last_seq.unwrap()).unwrap().unwrap();
    assert_eq!(recorded.event.stamp.actor, Actor::Assistant);
}

#[test]
fn a_call_of_the_tool_that_is_none_is_refused() {
    let fixture = fixture();
    let info = session(None);
    fixture.say(&info, Role::User, "hello");
    for json in
        ["", "[]", r#"{"action":"hide","targets":[]}"#, r#"{"action":"discard","targets":[["a","b","c"]]}"#]
    {
        let before = fixture.store.head().unwrap();
        let refused = fixture.store.context_tool(info.id(), json).unwrap_err();
        assert!(
            matches!(&refused, Error::Rejected(rejection) if matches!(**rejection, Rejection::Malformed(_))),
            "{json}: {refused}"
        );
        assert_eq!(fixture.store.head().unwrap(), before);
    }
}
