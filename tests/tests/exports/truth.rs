//! One truth in every mouth: over lives of every kind of event and in every mode of serving, each way of asking says the
//! same of each item, and the bytes sent agree with it.

use std::sync::Arc;

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, ItemRef, PartEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{FileChanger, InjectedKind, Outcome, PartKind, ReplaceCause, Role};
use acpdb_engine::fold::Policy;
use acpdb_engine::fold::policy::ServeMode;
use acpdb_engine::ids::ItemId;
use acpdb_engine::storage::SimWorld;
use acpdb_engine::{Error, Store, store::StreamName};
use acpdb_hosts::export::{Exporter, Format};
use acpdb_serve::{ServeOptions, Step};
use acpdb_tests::support::{cases, fixed};
use acpdb_tests::truth::ask::{testimony, with_served};
use acpdb_tests::truth::judge;
use proptest::prelude::*;
use serde_json::{Value, json};

const PRESETS: [&str; 7] = ["acp", "acp-head", "economy", "dcp", "balanced", "calm", "safe"];

/// A session whose every text bears a mark of its own.
struct Told {
    store: Store,
    info: StreamInfo,
    counter: u64,
    open: Vec<String>,
    items: Vec<ItemId>,
    task: Option<String>,
}

/// A text that occurs nowhere else, of so many lines.
fn marked(n: u64, what: &str, lines: u64) -> String {
    let line = |line| format!("mark {what} {n:05}-{line:03} of a text that says something");
    (0..lines.max(1)).map(line).collect::<Vec<_>>().join("\n")
}

impl Told {
    fn new(preset: &str, host: &str) -> Self {
        let world = SimWorld::new(3);
        let builder = Store::builder("/sim").storage(Arc::new(world.process(1)));
        let store = fixed(builder.registry(acpdb_hosts::registry()), 7).open().unwrap();
        let info = StreamInfo { cwd: Some("/w".to_owned()), ..StreamInfo::session(host, "told") };
        let mut told = Self { store, info, counter: 0, open: Vec::new(), items: Vec::new(), task: None };
        told.prompt();
        told.policy(preset, 0);
        told
    }

    fn policy(&mut self, preset: &str, shape: u16) {
        let mut policy = Policy::preset(preset).unwrap();
        let mut keys = json!({"compress_reasoning": shape & 1 == 1, "compress_reasoning.max_tokens": 40,
            "compress_reasoning.turns_min": 1, "truncate": shape & 2 == 2, "truncate.max_tokens": 80,
            "truncate.turns_min": 1, "truncate.tools": ["bash", "read"], "purge_errors": shape & 4 == 4,
            "purge_errors.turns": 1, "task.outputs_max": 3, "shelf.tokens_min": 20, "shelf.other_turns": 2});
        if shape & 8 == 8 {
            keys["paths"] = json!("raw");
        }
        policy.change(keys.as_object().unwrap()).unwrap();
        if shape & 16 == 16 {
            policy.change(super::life::every_age().as_object().unwrap()).unwrap();
        }
        self.store.set_policy(Some(self.info.id()), &policy, None).unwrap();
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn append(&mut self, entries: Vec<Entry>) {
        let receipt = self.store.append(&self.info, entries).unwrap();
        self.items.extend(receipt.items.into_iter().flatten());
    }

    fn prompt(&mut self) {
        let n = self.next();
        self.append(vec![
            Entry::prompt(format!("p{n}")),
            Entry::message(format!("u{n}"), Role::User, marked(n, "asked", 1)),
        ]);
    }

    fn reply(&mut self, shape: u16) {
        let n = self.next();
        let key = format!("a{n}");
        let mut parts = Vec::new();
        if shape & 1 == 1 {
            let text = marked(n, "thought", u64::from(shape % 20));
            parts.push(PartEntry::reasoning(text, Some(format!("sig=={n}").as_bytes())));
        }
        let calls = (shape >> 2) % 4;
        if shape & 2 == 2 || calls == 0 {
            let text = if shape & 64 == 64 { format!("short {n:07}") } else { marked(n, "said", 2) };
            parts.push(PartEntry::text(text));
        }
        let mut entries = vec![Entry::step(&key), Entry::message_parts(&key, Role::Assistant, parts)];
        for place in 0..calls {
            let which = shape.wrapping_mul(31).wrapping_add(place * 7);
            let id = format!("call-{n:05}.{place}");
            let text = marked(n, &format!("given-{place}"), 1);
            let (tool, params) = match which % 5 {
                0 => ("read", json!({"filePath": format!("/w/f{}", which % 3)})),
                1 => (
                    "edit",
                    json!({"filePath": format!("f{}", which % 3), "oldString": "a", "newString": text}),
                ),
                2 => ("bash", json!({"command": format!("ls {}", which % 2)})),
                3 => ("write", json!({"filePath": format!("./f{}", which % 3), "content": text})),
                _ => ("grep", json!({"pattern": text})),
            };
            entries.push(Entry::tool_started(&id, tool, params.to_string()).in_message(&key));
            self.open.push(id);
        }
        self.append(entries);
    }

    fn finish(&mut self, shape: u16) {
        let mut open = std::mem::take(&mut self.open);
        if shape & 1 == 1 {
            open.reverse();
        }
        if shape & 2 == 2 && open.len() > 1 {
            // One stays open for now.
            self.open.extend(open.pop());
        }
        for (place, id) in open.into_iter().enumerate() {
            let n = self.next();
            let text = marked(n, "came", u64::from(shape.wrapping_add(place as u16) % 40));
            let entry = match (shape.wrapping_add(place as u16)) % 7 {
                0 => Entry::tool_failed(&id, text),
                1 => Entry::tool_completed(&id, format!("ok {n:07}")),
                _ => Entry::tool_completed(&id, text),
            };
            self.append(vec![entry]);
        }
    }

    fn target(&self, number: u16) -> Option<ItemId> {
        self.items.get(usize::from(number) % self.items.len().max(1)).copied()
    }

    fn may(done: Result<(), Error>) {
        match done {
            Ok(()) | Err(Error::Rejected(_) | Error::NotFound { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    fn act(&mut self, number: u16) {
        let shape = number / 24;
        let stream = self.info.id();
        let n = self.next();
        match number % 24 {
            0..=7 => {
                self.finish(shape);
                self.reply(shape);
            }
            8 => {
                self.finish(0);
                self.prompt();
            }
            9 => self.append(vec![Entry::message(format!("q{n}"), Role::User, marked(n, "meanwhile", 1))]),
            10 | 11 => {
                let Some(item) = self.target(shape) else { return };
                let summary = (number % 24 == 11)
                    .then(|| if shape & 1 == 1 { format!("sum {n:05}") } else { marked(n, "summed up", 3) });
                let action = if summary.is_some() { ContextAction::Distill } else { ContextAction::Discard };
                let done = self.store.context(stream, action, vec![(Target::Item(item), summary)]);
                Self::may(done.map(drop));
            }
            12 => {
                let Some(item) = self.target(shape) else { return };
                let done =
                    self.store.context(stream, ContextAction::Restore, vec![(Target::Item(item), None)]);
                Self::may(done.map(drop));
            }
            13 => {
                let Some(item) = self.target(shape) else { return };
                let done = if shape & 1 == 1 {
                    self.store.pin(stream, vec![Target::Item(item)])
                } else {
                    self.store.unpin(stream, vec![Target::Item(item)])
                };
                Self::may(done.map(drop));
            }
            14 | 15 => self.task(n, shape),
            16 if shape.is_multiple_of(3) => {
                let order: Vec<ItemRef> = if shape & 1 == 1 {
                    Vec::new()
                } else {
                    self.items.iter().rev().take(9).rev().map(|item| ItemRef::Id(*item)).collect()
                };
                let fact =
                    fact::ContextReplaced { cause: ReplaceCause::Compaction, order, tokens_before: None };
                self.append(vec![
                    fact.into(),
                    Entry::message(format!("s{n}"), Role::User, marked(n, "compacted", 2)),
                ]);
            }
            17 if shape.is_multiple_of(3) => {
                let Some(item) = self.target(shape) else { return };
                self.open.clear();
                self.task = None;
                self.append(vec![fact::Rewound { to: PointRef::Seq(item.seq) }.into()]);
            }
            18 => {
                let items = self.target(shape).map(ItemRef::Id).into_iter().collect();
                let text = (shape & 1 == 1).then(|| b"[cleared]".as_slice().into());
                self.append(vec![fact::HostCleared { items, calls: Vec::new(), text }.into()]);
            }
            19 => {
                let what = [InjectedKind::Reminder, InjectedKind::Memory, InjectedKind::Other]
                    [usize::from(shape % 3)];
                let text = marked(n, "injected", 1).into_bytes().into();
                self.append(vec![fact::Injected { what, text }.into()]);
            }
            20 => self.append(vec![
                Entry::tool_completed(format!("stray{n}"), marked(n, "stray", 2)),
                fact::FileChanged { path: "/w/f1".to_owned(), by: FileChanger::User }.into(),
                Entry::message_parts(
                    format!("m{n}"),
                    Role::User,
                    vec![
                        PartEntry::of(PartKind::Text, marked(n, "with media", 1)),
                        PartEntry::media("QUJD", None),
                    ],
                ),
            ]),
            21 => {
                let preset = PRESETS[usize::from(shape) % PRESETS.len()];
                self.policy(preset, shape / 5);
            }
            22 if shape.is_multiple_of(5) => {
                let Some(item) = self.target(shape) else { return };
                match self.store.erase(item, "the user", "a secret") {
                    Ok(_) | Err(Error::NotFound { .. } | Error::Rejected(_)) => {}
                    Err(error) => panic!("{error}"),
                }
            }
            22 => self.append(vec![fact::MessageAbandoned { key: format!("a{shape}") }.into()]),
            _ => {
                self.finish(0);
                self.append(vec![Entry::step(format!("quiet{n}"))]);
            }
        }
    }

    /// A task begins, or the one under way ends with a summary, calls open or not.
    fn task(&mut self, n: u64, shape: u16) {
        let update = if let Some(task) = self.task.take() {
            json!({"tasks": [{"id": task, "status": "completed", "result_summary": marked(n, "achieved", 2)}]})
        } else {
            let task = format!("t{}", shape % 3);
            self.task = Some(task.clone());
            json!({"tasks": [{"id": task, "status": "in_progress"}]})
        };
        let done = self.store.update_tasks(self.info.id(), update.to_string().as_bytes());
        Self::may(done.map(drop));
    }

    fn name(&self) -> StreamName {
        let names = self.store.stream_names().unwrap();
        names.into_iter().find(|name| name.id == self.info.id()).unwrap()
    }
}

/// Judges a life at every so many acts, and at its end.
fn check(numbers: &[u16], preset: &str, host: &str, seen: &mut [usize; 4]) {
    let mut told = Told::new(preset, host);
    for (place, number) in numbers.iter().enumerate() {
        told.act(*number);
        if place % 9 == 8 || place + 1 == numbers.len() {
            let view = told.store.view(told.info.id()).unwrap();
            let said = testimony(&told.store, &view, &told.name(), None).unwrap();
            let complaints = judge(&said);
            assert!(
                complaints.is_empty(),
                "{numbers:?} {preset} {host} at {place}:\n{}",
                complaints.join("\n")
            );
            let has = |state: &str| said.explained.iter().any(|item| item["state"] == state);
            for (count, state) in seen.iter_mut().zip(["tombstone", "summary", "shortened", "gone"]) {
                *count += usize::from(has(state));
            }
        }
    }
}

/// Serves a life after each act, and judges the bytes sent.
fn check_served(numbers: &[u16], mode: ServeMode, format: Format, preset: &str, seen: &mut [usize; 2]) {
    let mut told = Told::new(preset, "opencode");
    let session = told.store.session(told.info.clone());
    let exporter = Exporter::new(format);
    for (place, number) in numbers.iter().enumerate() {
        told.act(*number);
        told.finish(0);
        let options = ServeOptions { mode: Some(mode), cold: number % 37 == 0, ..ServeOptions::default() };
        let step = Step::begin(&session, format!("serve-{place}")).unwrap();
        // The context that was sent can be told from the log afterwards, as the log was when it was sent.
        let sent = step.context(&exporter, &options).unwrap();
        let view = told.store.view(told.info.id()).unwrap();
        let mut said = testimony(&told.store, &view, &told.name(), None).unwrap();
        seen[0] += usize::from(view.pending().is_empty());
        seen[1] += usize::from(!view.pending().is_empty());
        if mode == ServeMode::Eager {
            assert_eq!(view.pending(), [], "{numbers:?} {mode:?} {format} {preset} at {place}");
        }
        with_served(&mut said, &view, format!("{mode:?} {format}"), format, &sent.bytes, false).unwrap();
        let complaints = judge(&said);
        assert!(
            complaints.is_empty(),
            "{numbers:?} {mode:?} {format} {preset} at {place}:\n{}",
            complaints.join("\n")
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(24), ..ProptestConfig::default() })]

    #[test]
    fn every_mouth_says_the_same(
        numbers in prop::collection::vec(any::<u16>(), 1..60),
        preset in prop::sample::select(&PRESETS[..]),
        host in prop::sample::select(&["opencode", "claude-code", "gemini-cli", "codex"][..]),
    ) {
        check(&numbers, preset, host, &mut [0; 4]);
    }

    #[test]
    fn what_is_sent_is_what_is_said(
        numbers in prop::collection::vec(any::<u16>(), 1..24),
        preset in prop::sample::select(&PRESETS[..]),
        mode in prop::sample::select(ServeMode::ALL),
        format in prop::sample::select(&Format::REQUESTS[..]),
    ) {
        check_served(&numbers, mode, format, preset, &mut [0; 2]);
    }
}

/// The law is about something: its lives have every kind of placeholder, and contexts with and without pending changes.
#[test]
fn the_lives_are_full() {
    let numbers = |seed: u64| {
        let mut state = seed;
        let mut next = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u16
        };
        (0..70).map(|_| next()).collect::<Vec<u16>>()
    };
    let (mut seen, mut served) = ([0; 4], [0; 2]);
    for (seed, preset) in (1..).zip(PRESETS) {
        check(&numbers(seed), preset, "opencode", &mut seen);
    }
    check_served(&numbers(9)[..30], ServeMode::AppendOnly, Format::Openai, "acp", &mut served);
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
    assert!(served.iter().all(|count| *count > 0), "{served:?}");
}

/// A screenshot counted as its base64 would as a text: hundreds of thousands of tokens, wherever tokens were told.
#[test]
fn a_picture_counts_what_it_shows_in_every_mouth() {
    let mut told = Told::new("acp", "claude-code");
    let picture =
        |bytes: usize| PartEntry::media("iVBORw0KGgo".repeat(bytes / 11), Some("image/png".to_owned()));
    told.append(vec![
        Entry::step("a1"),
        Entry::message_parts("m1", Role::User, vec![PartEntry::text("look"), picture(700_000), picture(110)]),
        Entry::tool_started("c1", "read", r#"{"filePath":"/a.png"}"#),
        Entry::tool_finished("c1", Outcome::Completed, vec![picture(700_000)]),
    ]);
    let view = told.store.view(told.info.id()).unwrap();
    let said = testimony(&told.store, &view, &told.name(), None).unwrap();
    assert_eq!(judge(&said), [""; 0]);
    let tokens: Vec<u64> = said.explained.iter().filter_map(|item| item["tokens"].as_u64()).collect();
    // Words, a large picture and a small one; the call has eight tokens of parameters.
    assert_eq!(tokens, [14, 1, 1600, 49, 1608]);
}

/// Lives about which the ways of asking once disagreed.
#[test]
fn lives_that_were_told_in_two_ways() {
    let numbers = [
        34992, 26265, 39186, 47816, 26992, 47334, 47041, 44545, 40778, 30236, 30767, 24825, 22195, 15618,
        54820, 56927, 49057, 58761, 8610,
    ];
    check(&numbers, "balanced", "opencode", &mut [0; 4]);
    // A task is completed, begun again and completed again: the second end hides nothing. The judge asked for the summary
    // of the newest end; hidden items stand behind the summary of the end that hid them.
    let twice = [63326, 5612, 23918, 16478, 854, 43166, 58671];
    check(&twice, "acp", "claude-code", &mut [0; 4]);
    // The host cleared a call before its result came. Its place bore the summary of a task, which then stood nowhere.
    let cleared = [
        6112, 8012, 22478, 16096, 13936, 8424, 14610, 4336, 23702, 48446, 23754, 26270, 47592, 5373, 176, 18,
        18, 0,
    ];
    check(&cleared, "acp", "opencode", &mut [0; 4]);
}

/// Lives that were once served, or judged, wrongly.
#[test]
fn served_lives_that_went_wrong() {
    for (numbers, mode, format, preset) in [
        // An output was sent as pruned while its task went on, and the end of the task waited for a rewrite that pays.
        // The judge missed a summary with which nothing was hidden yet; it asks for the cause as it was sent.
        (&[17750, 32232, 4316, 36741, 32510][..], ServeMode::Batched, Format::Anthropic, "acp"),
        (&[17750, 32232, 4316, 36741, 32510][..], ServeMode::Batched, Format::Anthropic, "acp-head"),
    ] {
        check_served(numbers, mode, format, preset, &mut [0; 2]);
    }
}

fn body(view: &acpdb_engine::View, format: Format) -> Value {
    serde_json::from_slice(
        &super::judged(view, format, &acpdb_hosts::export::ExportChoices::default(), "").bytes,
    )
    .unwrap()
}

/// The summary of a task stood on the reasoning of the last reply, and no provider is sent reasoning in that form: logs and
/// summary were both gone. It stands in every request now.
#[test]
fn a_summary_on_reasoning_is_in_every_request() {
    for host in ["claude-code", "gemini-cli", "codex", "opencode"] {
        let mut told = Told::new("acp", host);
        told.task(1, 0);
        let reasoned = vec![
            PartEntry::reasoning("a thought about it ".repeat(9), Some(b"sig")),
            PartEntry::text("some words about it ".repeat(9)),
        ];
        told.append(vec![
            Entry::step("a1"),
            Entry::message_parts("a1", Role::Assistant, reasoned),
            Entry::tool_started("c1", "read", r#"{"filePath":"/a"}"#).in_message("a1"),
            Entry::tool_completed("c1", "the log of it ".repeat(20)),
            Entry::step("a2"),
            Entry::message_parts(
                "a2",
                Role::Assistant,
                vec![
                    PartEntry::reasoning("last thought ".repeat(9), Some(b"sig")),
                    PartEntry::text("done ".repeat(9)),
                ],
            ),
        ]);
        told.task(2, 0);
        told.prompt();
        let view = told.store.view(told.info.id()).unwrap();
        for format in Format::REQUESTS {
            let text = body(&view, format).to_string();
            assert!(text.contains("mark achieved 00002-000"), "{host} {format}: {text}");
            assert_eq!(text.matches("evicted to save tokens").count(), 2, "{host} {format}: {text}");
            assert!(
                !text.contains("the log of it") && !text.contains("last thought"),
                "{host} {format}: {text}"
            );
        }
    }
}

/// The output of the newest reply was sent whole though it was discarded, also behind a further prompt.
#[test]
fn what_a_person_discards_goes_at_once() {
    let mut told = Told::new("acp", "opencode");
    told.append(vec![
        Entry::step("a1"),
        Entry::message("a1", Role::Assistant, "I look"),
        Entry::tool_started("c1", "bash", r#"{"command":"x"}"#).in_message("a1"),
        Entry::tool_completed("c1", "a long output that is needed no more ".repeat(5)),
    ]);
    let discard = vec![(Target::Call("c1".to_owned()), None)];
    let _ = told.store.context(told.info.id(), ContextAction::Discard, discard).unwrap();
    for _ in 0..2 {
        let view = told.store.view(told.info.id()).unwrap();
        for format in Format::REQUESTS {
            assert!(!body(&view, format).to_string().contains("needed no more"), "{format}");
        }
        told.prompt();
    }
}

/// A distilled text that was shorter than `[distilled] ` and its summary lost both.
#[test]
fn a_short_text_is_not_lost_to_its_summary() {
    for (summary, shown) in [
        ("ten passed", "[distilled] ten passed"),
        ("ten passed, and none failed", "ten passed, and none failed"),
        ("there were ten tests, of which all have passed", "Test results: 10 passed, 0 failed"),
    ] {
        let mut told = Told::new("acp", "opencode");
        told.append(vec![
            Entry::step("a1"),
            Entry::tool_started("c1", "bash", r#"{"command":"x"}"#),
            Entry::tool_completed("c1", "Test results: 10 passed, 0 failed"),
        ]);
        let distill = vec![(Target::Call("c1".to_owned()), Some(summary.to_owned()))];
        let _ = told.store.context(told.info.id(), ContextAction::Distill, distill).unwrap();
        let view = told.store.view(told.info.id()).unwrap();
        for format in Format::REQUESTS {
            assert!(body(&view, format).to_string().contains(shown), "{format} {summary}");
        }
    }
}

/// An item that was discarded and then superseded counted twice. It counts under the rule, as `explain` tells it.
#[test]
fn an_item_counts_once_and_under_a_rule_before_an_act() {
    let mut told = Told::new("acp", "opencode");
    told.append(vec![
        Entry::step("a1"),
        Entry::tool_started("c1", "read", r#"{"filePath":"/w/a"}"#),
        Entry::tool_completed("c1", "the file ".repeat(40)),
    ]);
    let discard = vec![(Target::Call("c1".to_owned()), None)];
    let _ = told.store.context(told.info.id(), ContextAction::Discard, discard).unwrap();
    told.append(vec![
        Entry::step("a2"),
        Entry::tool_started("c2", "write", r#"{"filePath":"/w/a","content":"x"}"#),
        Entry::tool_completed("c2", "ok"),
    ]);
    let stats = told.store.view(told.info.id()).unwrap().stats();
    let counts: Vec<(&str, u64)> = stats
        .kinds
        .iter()
        .map(|(kind, stats)| (kind.label(), stats.count))
        .filter(|(_, count)| *count > 0)
        .collect();
    assert_eq!(counts, [("file", 1)]);
}

/// A call that was open when its task was completed stayed for ever; and the item that bore the summary may be shown
/// again, while the rest is hidden: the summary moves on.
#[test]
fn a_summary_outlives_its_bearer_and_open_calls_follow_it() {
    let mut told = Told::new("acp", "opencode");
    told.task(1, 0);
    told.append(vec![
        Entry::step("a1"),
        Entry::tool_started("c1", "bash", r#"{"command":"1"}"#),
        Entry::tool_completed("c1", "first log ".repeat(30)),
        Entry::tool_started("c2", "bash", r#"{"command":"2"}"#),
        Entry::tool_completed("c2", "second log ".repeat(30)),
        Entry::tool_started("c3", "bash", r#"{"command":"3"}"#),
    ]);
    told.task(2, 0);
    let shown = |told: &Told| {
        let view = told.store.view(told.info.id()).unwrap();
        let text = body(&view, Format::Openai).to_string();
        ["first log", "second log", "third log", "mark achieved 00002-000"]
            .map(|mark| text.matches(mark).count().min(9))
    };
    assert_eq!(shown(&told), [0, 0, 0, 1]);
    let restore = vec![(Target::Call("c2".to_owned()), None)];
    let _ = told.store.context(told.info.id(), ContextAction::Restore, restore).unwrap();
    assert_eq!(shown(&told), [0, 9, 0, 1]);
    told.append(vec![Entry::tool_completed("c3", "third log ".repeat(30))]);
    assert_eq!(shown(&told), [0, 9, 0, 1]);
    // The summary moved and the third call ended long after the task: both still name the event that evicted them.
    let view = told.store.view(told.info.id()).unwrap();
    let said = testimony(&told.store, &view, &told.name(), None).unwrap();
    let evictions: Vec<&String> = said.summaries.keys().collect();
    let sentence = format!("It was evicted in {} with its completed task t0.", evictions[0]);
    let says = |item: &&Value| item["sentences"].as_array().unwrap().iter().any(|it| *it == *sentence);
    assert_eq!(
        (evictions.len(), said.explained.iter().filter(says).count()),
        (1, 2),
        "{sentence} {:#?}",
        said.explained
    );
}
