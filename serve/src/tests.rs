//! Serving on a real folder: the context that is sent, that it stays, that it can be made again, and the effect of budgets.

use tempfile::TempDir;

use acpdb_engine::command::memory::MemoryCommand;
use acpdb_engine::entry::fact::HostCleared;
use acpdb_engine::entry::{Entry, MemoryEntry, StreamInfo};
use acpdb_engine::event::{InjectedKind, RebaseCause, Role};
use acpdb_engine::fold::policy::ServeMode;
use acpdb_engine::ids::{ItemId, Seq, Turn};
use acpdb_engine::testing::TestTools;
use acpdb_engine::{At, Error, MemoryScope, Session, Store};

use crate::{
    Context, Injection, PlainText, Rendered, Renderer, ServeOptions, Served, ServedAgain, Step, flush,
};

struct Fixture {
    _folder: TempDir,
    session: Session,
    calls: std::cell::Cell<u32>,
}

fn fixture() -> Fixture {
    let folder = TempDir::new().unwrap();
    let registry = std::sync::Arc::new(TestTools);
    let store = Store::builder(folder.path().join("store")).registry(registry).open().unwrap();
    let session = store.session(StreamInfo::session("test", "s1"));
    Fixture { _folder: folder, session, calls: std::cell::Cell::new(0) }
}

impl Fixture {
    fn say(&self, text: &str) {
        let _ = self.session.append([Entry::message("", Role::User, text)]).unwrap();
    }

    fn call(&self, tool: &str, path: &str, lines: usize) {
        let number = self.calls.get() + 1;
        self.calls.set(number);
        let call = format!("c{number}");
        let output = format!("{tool} of {path}, a line of some length that says nothing new\n").repeat(lines);
        let _ = self
            .session
            .append([
                Entry::tool_started(call.as_str(), tool, format!(r#"{{"filePath":"{path}"}}"#)),
                Entry::tool_completed(call, output),
            ])
            .unwrap();
    }

    fn context(&self, key: &str, options: &ServeOptions) -> Context {
        Step::begin(&self.session, key).unwrap().context(&PlainText, options).unwrap()
    }
}

fn fact(value: &str) -> MemoryEntry {
    MemoryEntry { value: value.to_owned(), confidence: 90, ..MemoryEntry::default() }
}

fn mode(mode: ServeMode) -> ServeOptions {
    ServeOptions { mode: Some(mode), ..ServeOptions::default() }
}

/// A renderer of a version that this program does not have.
struct Other;

impl Renderer for Other {
    fn format(&self) -> &'static str {
        "plain"
    }

    fn version(&self) -> u32 {
        7
    }

    fn render(&self, context: &Served) -> Result<Rendered, Error> {
        PlainText.render(context)
    }
}

struct Changed;

impl Renderer for Changed {
    fn format(&self) -> &'static str {
        "plain"
    }

    fn version(&self) -> u32 {
        8
    }

    fn render(&self, context: &Served) -> Result<Rendered, Error> {
        let mut rendered = PlainText.render(context)?;
        rendered.bytes.push(b'\n');
        Ok(rendered)
    }
}

#[test]
fn between_two_rebases_each_context_begins_with_the_one_before() {
    let fixture = fixture();
    let append_only = mode(ServeMode::AppendOnly);
    fixture.say("what does a do?");
    let first = fixture.context("k1", &append_only);
    fixture.call("read", "a", 60);
    let second = fixture.context("k2", &append_only);
    fixture.call("write", "a", 2);
    let third = fixture.context("k3", &append_only);
    assert!(second.bytes.starts_with(&first.bytes));
    assert!(third.bytes.starts_with(&second.bytes), "the read is superseded, and still sent");
    assert_eq!((third.rebased, third.first_changed), (None, 2));
    assert_eq!(fixture.session.view().unwrap().pending().len(), 1);
    assert!(flush(&fixture.session).unwrap().is_some());
    let fourth = fixture.context("k4", &append_only);
    assert!(!fourth.bytes.starts_with(&third.bytes));
    assert!(String::from_utf8_lossy(&fourth.bytes).contains("[auto-superseded: file superseded by write]"));
    assert!(flush(&fixture.session).unwrap().is_none(), "nothing is pending");
}

#[test]
fn eager_and_batched_rebase_when_they_say_so() {
    for (asked, rebased) in [
        (ServeMode::Eager, Some(RebaseCause::Pays)),
        (ServeMode::AppendOnly, None),
        (ServeMode::Batched, Some(RebaseCause::Pays)),
    ] {
        let fixture = fixture();
        fixture.say("what does a do?");
        let _ = fixture.context("k1", &mode(asked));
        fixture.call("read", "a", 200);
        let _ = fixture.context("k2", &mode(asked));
        fixture.call("write", "a", 2);
        // The read was sent last: rewriting costs next to nothing, so batched does it, too.
        let third = fixture.context("k3", &mode(asked));
        assert_eq!(third.rebased, rebased, "{asked:?} {:?}", third.plan);
    }
}

/// A host's recording lags: a result comes to the log after the context that went out with its call. Each such call broke the
/// context at its end, and the list of items that ride along was empty, which means all items: all that were pending were
/// applied there and then, and the provider's cache was written anew with nearly every request.
#[test]
fn a_result_that_comes_late_takes_nothing_along_that_lies_before_it() {
    let fixture = fixture();
    let append_only = mode(ServeMode::AppendOnly);
    fixture.say("what does a do?");
    fixture.call("read", "a", 60);
    let _ = fixture.context("k1", &append_only);
    fixture.call("write", "a", 2);
    let started = Entry::tool_started("late", "read", r#"{"filePath":"b"}"#);
    let _ = fixture.session.append([started]).unwrap();
    let before = fixture.context("k2", &append_only);
    assert_eq!((before.rebased, fixture.session.view().unwrap().pending().len()), (None, 1));
    let _ = fixture.session.append([Entry::tool_completed("late", "b")]).unwrap();
    let after = fixture.context("k3", &append_only);
    assert_eq!(after.rebased, Some(RebaseCause::Asked), "the call is shown with its result");
    assert_eq!(fixture.session.view().unwrap().pending().len(), 1, "the read of a waits on");
    let same = before.bytes.iter().zip(&after.bytes).take_while(|(one, other)| one == other).count();
    let read = before.bytes.windows(9).rposition(|at| at == b"read of a").unwrap();
    assert!(same > read && !String::from_utf8_lossy(&after.bytes).contains("superseded"));
}

#[test]
fn a_cold_cache_applies_everything() {
    let fixture = fixture();
    fixture.say("what does a do?");
    fixture.call("read", "a", 20);
    let _ = fixture.context("k1", &ServeOptions::default());
    fixture.call("write", "a", 2);
    let cold = ServeOptions { cold: true, ..ServeOptions::default() };
    assert_eq!(fixture.context("k2", &cold).rebased, Some(RebaseCause::Cold));
}

#[test]
fn what_was_sent_can_be_made_again_and_an_unknown_renderer_is_named() {
    let fixture = fixture();
    fixture.say("what does a do?");
    let mut sent = Vec::new();
    for turn in 1..6 {
        fixture.call("read", "a", 20);
        fixture.call("write", "a", turn);
        sent.push(fixture.context(&format!("k{turn}"), &ServeOptions::default()).bytes);
    }
    let stream = fixture.session.id();
    for (turn, bytes) in (1..).zip(&sent) {
        let again =
            ServedAgain::find(fixture.session.store(), stream, &At::Turn(Turn(turn)), &[&Other, &PlainText])
                .unwrap();
        assert!(again.is_same);
        assert_eq!(&again.bytes, bytes);
    }
    // A renderer of another version may make the same bytes; one that makes others is no renderer of that context.
    let other = ServedAgain::find(fixture.session.store(), stream, &At::Head, &[&Other]).unwrap();
    assert!(other.is_same);
    let refused = ServedAgain::find(fixture.session.store(), stream, &At::Head, &[&Changed]).unwrap_err();
    assert!(refused.to_string().contains("version 1 of the format `plain`"), "{refused}");
    let missing =
        ServedAgain::find(fixture.session.store(), stream, &At::Turn(Turn(99)), &[&PlainText]).unwrap_err();
    assert!(matches!(missing, Error::NotFound { .. }), "{missing}");
}

#[test]
fn bytes_that_do_not_match_their_digest_are_told_and_stop_nothing() {
    let fixture = fixture();
    fixture.say("hello");
    let step = Step::begin(&fixture.session, "k1").unwrap();
    let served = acpdb_engine::event::ContextServed {
        step: "k1".to_owned(),
        epoch: 0,
        renderer: 1,
        digest: [7; 32],
        tokens: 1,
        format: "plain".to_owned(),
    };
    let stream = step.session().id();
    let draft =
        acpdb_engine::command::draft::EventDraft::of(served, acpdb_engine::command::draft::Bodies::default());
    let store = fixture.session.store().clone();
    fixture.session.decide(acpdb_engine::event::Actor::Host, &mut |_| Ok((vec![draft.clone()], ()))).unwrap();
    assert!(!ServedAgain::find(&store, stream, &At::Head, &[&PlainText]).unwrap().is_same);
    let next = fixture.context("k2", &ServeOptions::default());
    assert!(!next.bytes.is_empty());
}

/// Outputs that the host had cleared counted as if acpdb had hidden them: a rewrite was paid from savings that nothing had made.
#[test]
fn what_the_host_leaves_out_itself_is_no_saving() {
    let fixture = fixture();
    let options = ServeOptions { prefix_tokens: 1_000, ..ServeOptions::default() };
    let price = acpdb_engine::fold::policy::Prices::default();
    let (mut before, mut unhidden) = (0, 0.0);
    for (number, key) in ["one", "two", "three"].into_iter().enumerate() {
        fixture.call("read", &format!("src/{key}.rs"), 40);
        if number == 1 {
            let text = Some(b"[cleared]".to_vec().into());
            let cleared = HostCleared { items: Vec::new(), calls: vec!["c1".to_owned()], text };
            let _ = fixture.session.append([Entry::from(cleared)]).unwrap();
        }
        let sent = fixture.context(key, &options).tokens + options.prefix_tokens;
        // No rule hides anything: it is the context that was sent, as a cache reads it that no clearing broke.
        unhidden += price.of(sent, before);
        before = sent;
    }
    let view = fixture.session.view().unwrap();
    let (state, at) = (view.state(), view.at());
    let settings = state.policy(at).serve;
    let now = fixture.session.store().now();
    let known = crate::step::cache(state, &state.served_places(at), &options, &settings, at, now);
    assert!((known.paid_unhidden - unhidden).abs() < 1e-6, "{} and {unhidden}", known.paid_unhidden);
    assert!(known.paid > known.paid_unhidden, "the clearing broke the cache");
}

#[test]
fn asking_for_a_step_twice_begins_one() {
    let fixture = fixture();
    fixture.say("hello");
    let _ = Step::begin(&fixture.session, "k1").unwrap();
    let _ = Step::begin(&fixture.session, "k1").unwrap();
    let view = fixture.session.view().unwrap();
    assert_eq!(view.state().turn(Seq::MAX), Turn(1));
}

#[test]
fn a_budget_is_kept_or_what_stands_in_the_way_is_named() {
    let fixture = fixture();
    fixture.say("look at everything");
    for turn in 0..6 {
        fixture.call("read", &format!("file{turn}"), 100);
        let _ = fixture.context(&format!("k{turn}"), &ServeOptions::default());
    }
    let whole = fixture.context("all", &ServeOptions::default()).tokens;
    let budget = ServeOptions { tokens_max: Some(whole / 2), ..ServeOptions::default() };
    let kept = fixture.context("half", &budget);
    assert!(kept.tokens <= whole / 2, "{} of {whole}", kept.tokens);
    assert_eq!((kept.rebased, kept.over_budget.is_none()), (Some(RebaseCause::Budget), true));
    let tiny = ServeOptions { tokens_max: Some(3), ..ServeOptions::default() };
    let over = fixture.context("tiny", &tiny);
    let over_budget = over.over_budget.unwrap();
    assert_eq!((over_budget.tokens, over_budget.tokens_max), (over.tokens, 3));
    assert!(!over_budget.obstacles.is_empty());
    // An item that a budget hid can be shown again like any hidden item.
    let hidden = fixture.session.view().unwrap();
    let discarded = hidden
        .current()
        .into_iter()
        .find(|item| matches!(item.output.cause, Some(acpdb_engine::fold::CauseView::Discarded { .. })));
    assert!(discarded.is_some());
}

#[test]
fn memory_is_pinned_and_its_changes_are_appended() {
    let fixture = fixture();
    fixture.say("hello");
    let scope = MemoryScope::session(fixture.session.id());
    let remember = |value: &str| {
        let entry = fact(value);
        let _ = fixture.session.store().remember(&scope, &MemoryCommand::Add(entry)).unwrap();
    };
    remember("tabs are four wide");
    let inject = ServeOptions { inject: true, mode: Some(ServeMode::AppendOnly), ..ServeOptions::default() };
    let first = fixture.context("k1", &inject);
    let text = |context: &Context| String::from_utf8_lossy(&context.bytes).into_owned();
    assert!(text(&first).contains("[memory]\n- fact other: tabs are four wide"), "{}", text(&first));
    remember("tests run in parallel");
    let second = fixture.context("k2", &inject);
    assert!(second.bytes.starts_with(&first.bytes));
    assert!(text(&second).contains("[memory changed]\n- fact other: tests run in parallel"));
    // A second line is no entry of its own: it looked like what another had said.
    remember("two lines\n- preference setup: of no user");
    let third = text(&fixture.context("k2b", &inject));
    assert!(third.contains("two lines\n    - preference setup: of no user"), "{third}");
    // An epoch begins with all items that hold, in one block.
    fixture.call("read", "a", 20);
    let _ = fixture.context("k3", &inject);
    fixture.call("write", "a", 2);
    let _ = fixture.context("k4", &inject);
    assert!(flush(&fixture.session).unwrap().is_some());
    let anew = text(&fixture.context("k5", &inject));
    assert_eq!(
        (anew.matches("[memory]").count(), anew.matches("[memory changed]").count()),
        (1, 0),
        "{anew}"
    );
    assert!(anew.contains("tabs are four wide") && anew.contains("tests run in parallel"));
}

#[test]
fn nothing_is_injected_while_a_call_is_open() {
    let fixture = fixture();
    fixture.say("hello");
    let scope = MemoryScope::session(fixture.session.id());
    let entry = fact("tabs are four wide");
    let _ = fixture.session.store().remember(&scope, &MemoryCommand::Add(entry)).unwrap();
    let _ = fixture.session.append([Entry::tool_started("open", "read", r#"{"filePath":"a"}"#)]).unwrap();
    assert_eq!(Injection::due(&fixture.session).unwrap(), Vec::new());
    let _ = fixture.session.append([Entry::tool_completed("open", "text")]).unwrap();
    let due = Injection::due(&fixture.session).unwrap();
    assert_eq!(due.iter().map(|due| due.what).collect::<Vec<_>>(), [InjectedKind::Memory]);
}

/// Two sizes are passed at once, then one comes back behind a compaction: each is told of once.
#[test]
fn each_size_is_told_of_once() {
    let fixture = fixture();
    let told = || {
        let due = Injection::due(&fixture.session).unwrap();
        let _ = crate::inject(&fixture.session).unwrap();
        due.into_iter().map(|due| due.text.lines().nth(1).unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let long = "some words of a text that is long, and ".repeat(100);
    fixture.say(&long);
    assert_eq!(told(), Vec::<String>::new(), "no size is named");
    let policy = r#"{"preset":"acp","size_notice.tokens":[700, "1500", 3000]}"#;
    let policy = acpdb_engine::fold::Policy::from_json(policy).unwrap();
    let _ = fixture.session.store().set_policy(Some(fixture.session.id()), &policy, None).unwrap();
    fixture.say(&long);
    let first = told();
    assert!(first.len() == 1 && first[0].contains("more than 1500)"), "{first:?}");
    assert_eq!(told(), Vec::<String>::new());
    let replaced = acpdb_engine::entry::fact::ContextReplaced {
        cause: acpdb_engine::event::ReplaceCause::Compaction,
        order: Vec::new(),
        tokens_before: None,
    };
    let _ = fixture.session.append([Entry::from(replaced)]).unwrap();
    fixture.say(&long);
    fixture.say(&long);
    assert_eq!(told(), Vec::<String>::new(), "it was told of before");
    fixture.say(&long);
    fixture.say(&long);
    let last = told();
    assert!(last.len() == 1 && last[0].contains("more than 3000)"), "{last:?}");
}

/// A host that tells of it with a prompt keeps no record of its own: the first prompt behind the size has the notice, no later one.
#[test]
fn a_size_is_told_of_with_the_first_prompt_behind_it() {
    let fixture = fixture();
    let policy =
        acpdb_engine::fold::Policy::from_json(r#"{"preset":"acp","size_notice.tokens":700}"#).unwrap();
    let prompt = |key: &str, text: &str| {
        let message = Entry::message(key, Role::User, text);
        let _ = fixture.session.append([Entry::prompt(key), message]).unwrap();
        crate::SizeNotice::due_with_prompt(&fixture.session.view().unwrap()).is_some()
    };
    let _ = fixture.session.append([Entry::prompt("p0")]).unwrap();
    let _ = fixture.session.store().set_policy(Some(fixture.session.id()), &policy, None).unwrap();
    assert!(!prompt("p1", "a few words"));
    let long = "some words of a text that is long, and ".repeat(100);
    let _ = fixture
        .session
        .append([Entry::step("s1"), Entry::message("m1", Role::Assistant, long.as_str())])
        .unwrap();
    assert!(prompt("p2", "and now?"));
    let _ = fixture
        .session
        .append([Entry::step("s2"), Entry::message("m2", Role::Assistant, long.as_str())])
        .unwrap();
    assert!(!prompt("p3", "and now?"));
}

#[test]
fn what_the_model_still_sees_is_pointed_at_and_is_text_again_when_it_is_hidden() {
    let fixture = fixture();
    let policy = acpdb_engine::fold::Policy::from_json(r#"{"preset":"acp","serve.pointing":true}"#).unwrap();
    fixture.say("what does a do?");
    let _ = fixture.session.store().set_policy(Some(fixture.session.id()), &policy, None).unwrap();
    let file: String = (0..50).map(|n| format!("let value_{n} = compute(\"{n}\");\n")).collect();
    let show = |call: &str, tool: &str, params: &str, before: &str| {
        let output = format!("{before}\n{file}");
        let _ = fixture
            .session
            .append([Entry::tool_started(call, tool, params), Entry::tool_completed(call, output)])
            .unwrap();
    };
    let append_only = mode(ServeMode::AppendOnly);
    show("r1", "read", r#"{"filePath":"a"}"#, "first");
    let first = fixture.context("k1", &append_only);
    show("s1", "bash", r#"{"command":"cat a"}"#, "second");
    let second = fixture.context("k2", &append_only);
    let text = |context: &Context| String::from_utf8_lossy(&context.bytes).into_owned();
    assert!(second.bytes.starts_with(&first.bytes));
    assert!(
        text(&second).contains("second\n[50 lines, the same as lines 2-51 of read a (#"),
        "{}",
        text(&second)
    );
    // The write hides the read; the pointer to it is text again, and earlier contexts are known as they were.
    let _ = fixture
        .session
        .append([
            Entry::tool_started("w1", "write", r#"{"filePath":"a"}"#),
            Entry::tool_completed("w1", "done"),
        ])
        .unwrap();
    let third = fixture.context("k3", &append_only);
    assert!(third.bytes.starts_with(&second.bytes));
    assert!(flush(&fixture.session).unwrap().is_some());
    let fourth = fixture.context("k4", &append_only);
    assert!(text(&fourth).contains("[auto-superseded") && !text(&fourth).contains("the same as lines"));
    assert_eq!(text(&fourth).matches("let value_7 ").count(), 1);
    // A model that is not told yet that the read is hidden sees the pointer still.
    let view = fixture.session.view().unwrap();
    let points = |served: &Served| served.items().iter().filter(|item| item.pointed.is_some()).count();
    let served = Served::to_send(&view);
    assert_eq!((points(&served), points(&served.held(third.seq))), (0, 1));
    assert_eq!(points(&Served::of(&view).held(third.seq)), 0);
    for (turn, context) in (1..).zip([&first, &second, &third, &fourth]) {
        let again = ServedAgain::find(
            fixture.session.store(),
            fixture.session.id(),
            &At::Turn(Turn(turn)),
            &[&PlainText],
        );
        assert_eq!(again.unwrap().bytes, context.bytes, "turn {turn}");
    }
}

/// Another process erases a text between the view of a context and the reading of its texts.
struct Erases {
    other: Store,
    item: ItemId,
}

impl Renderer for Erases {
    fn format(&self) -> &'static str {
        "plain"
    }

    fn version(&self) -> u32 {
        1
    }

    fn render(&self, context: &Served) -> Result<Rendered, Error> {
        let _ = self.other.erase(self.item, "another process", "to see it gone")?;
        PlainText.render(context)
    }
}

/// The step of an agent ended with "the content was erased", though the next try of the same call went well.
#[test]
fn a_context_is_made_anew_if_a_text_of_it_is_erased_meanwhile() {
    let fixture = fixture();
    fixture.say("keep this");
    let said = fixture.session.append([Entry::message("", Role::User, "forget this")]).unwrap();
    let other = Store::builder(fixture.session.store().root()).open().unwrap();
    let erases = Erases { other, item: said.items[0].unwrap() };
    let options = ServeOptions::default();
    let context = Step::begin(&fixture.session, "k1").unwrap().context(&erases, &options).unwrap();
    let text = String::from_utf8(context.bytes).unwrap();
    assert!(text.contains("keep this") && !text.contains("forget this"), "{text}");
}
