//! The store against a model that is a plain list: the appended facts, in order.
//!
//! ```text
//! append (origins, repeats, revisions, several streams; several threads at once, in an order that the list allows) | context acts | policies | erase | seal | reopen | index deleted
//!        | crash (kill, power cut) | a view held, a subscription kept over all of it
//!        -- after each step, by each of two processes -->  events, views, time travel and verify agree
//! ```
//!
//! Twice: two handles on a folder, with an index; and two processes of a simulated machine, which can lose power.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::cast_possible_truncation,
    reason = "tests: a failed step is a failed test"
)]

#[path = "model/list.rs"]
mod list;

use std::sync::Arc;
use std::time::Duration;

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::Entry;
use acpdb_engine::event::{Face, Role};
use acpdb_engine::fold::{FaceState, Policy};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::storage::SimWorld;
use acpdb_engine::verify::{Verdict, VerifyReport, verify_folder, verify_storage, world_contradictions};
use acpdb_engine::{Atomicity, Batch, Error, Store, Subscription, View};
use acpdb_tests::support::{cases, copy_folder, events, fixed, folded, line_of, shown};
use list::{Fact, Known, Model, Outcome, Shown, Step, info, output, text};
use proptest::test_runner::Config;
use proptest_state_machine::{StateMachineTest, prop_state_machine};

/// So little memory that sessions leave it and come back all the time.
const MEMORY_BYTES: u64 = 24 << 10;

/// The rest of a text that was erased.
const GONE: &str = "gone";

/// A view that is held, and the context that it showed when it was made.
struct Held {
    view: View,
    digest: [u8; 32],
    texts: Vec<String>,
}

/// A subscription, and the next event it is to tell of.
struct Told {
    subscription: Subscription,
    next: usize,
}

/// Where the store is.
trait Place: Sized {
    fn new() -> Self;
    /// Opens it in process `number`.
    fn open(&self, number: u32) -> Store;
    /// The same place after everything stopped.
    fn crashed(&self, power: bool) -> Self;
    fn verify(&self) -> VerifyReport;
    fn delete_index(&self);
    /// Does all of these: at the same time, where threads take turns by themselves.
    fn together(jobs: Vec<Job<'_>>) -> Vec<Outcome> {
        jobs.into_iter().map(|job| job()).collect()
    }
}

/// A commit that is ready to go.
type Job<'a> = Box<dyn FnOnce() -> Outcome + Send + 'a>;

/// The facts of a commit as entries.
fn batches(facts: &[Fact]) -> Vec<Batch> {
    let batch = |fact: &Fact| {
        let entry = Entry::message("", Role::User, text(fact.text));
        let entry = match fact.origin {
            Some(origin) => entry.origin(format!("msg:{origin}")),
            None => entry,
        };
        Batch { stream: info(fact.stream), entries: vec![entry] }
    };
    facts.iter().map(batch).collect()
}

/// A folder. A crash is a copy of its files while the store is open.
struct Folder(tempfile::TempDir);

impl Place for Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
    fn open(&self, _number: u32) -> Store {
        let builder = Store::builder(self.0.path().join("store")).any_file_system().memory_max(MEMORY_BYTES);
        builder.registry(acpdb_hosts::registry()).segment_bytes_max(9 << 10).open().unwrap()
    }
    fn crashed(&self, _power: bool) -> Self {
        let copy = Self::new();
        copy_folder(&self.0.path().join("store"), &copy.0.path().join("store")).unwrap();
        // A copy of an index that is being written is no index that a crash could leave.
        copy.delete_index();
        copy
    }
    fn verify(&self) -> VerifyReport {
        verify_folder(&self.0.path().join("store"), true).unwrap()
    }
    fn together(jobs: Vec<Job<'_>>) -> Vec<Outcome> {
        let begin = std::sync::Barrier::new(jobs.len());
        std::thread::scope(|scope| {
            let start = |job: Job<'_>| {
                begin.wait();
                job()
            };
            let threads: Vec<_> = jobs.into_iter().map(|job| scope.spawn(move || start(job))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        })
    }
    fn delete_index(&self) {
        let index = self.0.path().join("store").join("index.redb");
        if index.exists() {
            std::fs::remove_file(index).unwrap();
        }
    }
}

/// A simulated machine, and how many processes it has had.
struct Machine(SimWorld, std::cell::Cell<u32>);

impl Place for Machine {
    fn new() -> Self {
        Self(SimWorld::new(1), std::cell::Cell::new(0))
    }
    fn open(&self, number: u32) -> Store {
        // A process that opens again is another one.
        let process = self.1.get() * 2 + number + 1;
        self.1.set(self.1.get() + 1);
        let builder =
            Store::builder("/sim").storage(Arc::new(self.0.process(process))).memory_max(MEMORY_BYTES);
        let builder = builder.registry(acpdb_hosts::registry()).segment_bytes_max(9 << 10);
        fixed(builder, u64::from(process)).open().unwrap()
    }
    fn crashed(&self, power: bool) -> Self {
        let image = self.0.fork(u64::from(self.1.get()));
        if power {
            image.cut_power();
        }
        Self(image, std::cell::Cell::new(self.1.get() + 2))
    }
    fn verify(&self) -> VerifyReport {
        verify_storage(Arc::new(self.0.process(1_000_000)), true).unwrap()
    }
    fn delete_index(&self) {}
}

struct Real<P> {
    place: P,
    stores: Option<(Store, Store)>,
    held: Vec<Held>,
    told: Vec<Told>,
    model: Model,
    /// Threads have met: the other copy of the model cannot know their outcome.
    has_own_order: bool,
}

impl<P: Place> Real<P> {
    /// Lets go of everything that belongs to the processes, and opens the store in two others.
    fn reopen(&mut self) {
        // Views outlive the handle that they are from, not the process: they go with it here.
        self.held.clear();
        self.told.clear();
        self.stores = None;
        self.stores = Some((self.place.open(0), self.place.open(1)));
        let recovery = self.store(false).recovery();
        assert!(recovery.damage.is_none(), "{recovery:?}");
    }

    fn store(&self, second: bool) -> &Store {
        let (one, two) = self.stores.as_ref().unwrap();
        if second { two } else { one }
    }

    /// Commits of several threads at once. Each must get the answer that it would have got in some order.
    fn together(&mut self, commits: &[(Vec<Fact>, bool)]) {
        let job = |(facts, second): &(Vec<Fact>, bool)| -> Job<'static> {
            let (store, batches) = (self.store(*second).clone(), batches(facts));
            Box::new(move || {
                let told = store.commit(&batches, Atomicity::One).unwrap();
                let (known_count, event_count) = (told.known_count, told.event_count);
                Outcome { known_count, event_count, first: told.first_seq.get() }
            })
        };
        let told = P::together(commits.iter().map(job).collect());
        let commits: Vec<(&[Fact], Outcome)> =
            commits.iter().map(|(facts, _)| facts.as_slice()).zip(told).collect();
        let model = self.model.in_some_order(&commits);
        self.model = model.unwrap_or_else(|| panic!("in no order: {commits:?}"));
        self.has_own_order = true;
    }

    fn texts(view: &View) -> Vec<String> {
        let current = view.state().current(view.at());
        let text = |ix| match view.shown(ix, Face::Output) {
            Ok(shown) => format!("{shown:?}"),
            Err(Error::Erased { .. }) => GONE.to_owned(),
            Err(error) => panic!("{error}"),
        };
        current.into_iter().map(text).collect()
    }

    /// One stream as of `at` events, as a handle shows it, against the model.
    fn compare(&self, store: &Store, stream: u8, at: usize) {
        let seq = Seq(at as u64);
        let Ok(view) = store.view(info(stream).id()) else {
            assert!(!self.model.log.contains(&Known::Opened(stream)));
            return;
        };
        let view = view.with_at(seq);
        let current = view.state().current(seq);
        let expected = self.model.context(stream, at);
        assert_eq!(current.len(), expected.len(), "items of s{stream} at {seq}");
        for (ix, expected) in current.into_iter().zip(expected) {
            let shown = view.shown(ix, Face::Output);
            if expected == Shown::Unreadable {
                // A tombstone may still say that there was something.
                let gone = match &shown {
                    Ok(shown) => !matches!(shown.state, FaceState::Whole),
                    Err(error) => matches!(error, Error::Erased { .. }),
                };
                assert!(gone, "s{stream} at {seq}: {shown:?}");
                continue;
            }
            let shown = shown.unwrap();
            match expected {
                Shown::Whole(text) => {
                    assert_eq!(shown.text, text, "s{stream} at {seq}");
                    assert!(matches!(shown.state, FaceState::Whole | FaceState::Absent), "{shown:?}");
                }
                Shown::Hidden => {
                    assert_eq!(shown.state, FaceState::Tombstone, "s{stream} at {seq}: {}", shown.text);
                }
                Shown::Erased | Shown::Unreadable => {
                    assert_eq!(shown.state, FaceState::Gone, "s{stream} at {seq}: {}", shown.text);
                }
            }
        }
    }

    fn check(&mut self) {
        let head = self.model.log.len();
        for second in [false, true] {
            let store = self.store(second);
            let recorded = events(store).unwrap();
            let labels: Vec<_> = recorded.iter().map(|event| event.event.payload.label()).collect();
            let expected: Vec<_> = self.model.log.iter().map(Known::label).collect();
            assert_eq!(labels, expected);
            for (event, known) in recorded.iter().zip(&self.model.log) {
                let stream =
                    known.stream().map_or(acpdb_engine::ids::StreamId::STORE, |stream| info(stream).id());
                assert_eq!(event.event.stream, stream, "{}", event.seq);
                if let Known::Message(.., t) | Known::Revised(.., t) = known {
                    let line = line_of(store, event).unwrap();
                    assert!(line.contains(&text(*t)), "{line}");
                }
            }
            assert_eq!(store.head().unwrap(), Seq(head as u64));
            // The state that a handle folded step by step equals a fold from nothing.
            let world = folded(&recorded);
            assert_eq!(world_contradictions(&world, Seq::MAX), []);
            for stream in 0..3 {
                self.compare(store, stream, head);
                if let Some(anew) = world.stream(info(stream).id()) {
                    let view = store.view(info(stream).id()).unwrap();
                    assert_eq!(view.state().digest(view.at()), anew.digest(Seq(head as u64)));
                }
            }
        }
        for held in &self.held {
            assert_eq!(held.view.state().digest(held.view.at()), held.digest, "a held view moved");
            let texts = Self::texts(&held.view);
            assert_eq!(texts.len(), held.texts.len(), "a held view moved");
            for (now, then) in texts.iter().zip(&held.texts) {
                assert!(now == then || now == GONE, "a held view moved from {then} to {now}");
            }
        }
        for told in &mut self.told {
            while let Some(commit) = told.subscription.next_within(Duration::ZERO).unwrap() {
                for event in commit.events {
                    assert_eq!(event.seq, Seq(told.next as u64 + 1), "told once, in order");
                    assert_eq!(event.event.payload.label(), self.model.log[told.next].label());
                    told.next += 1;
                }
            }
            assert_eq!(told.next, head, "everything durable is told");
        }
        let report = self.place.verify();
        assert_eq!(report.verdict(), Verdict::Sound, "{report:#?}");
        assert_eq!(report.events, head as u64);
    }
}

impl<P: Place + 'static> StateMachineTest for Real<P> {
    type SystemUnderTest = Self;
    type Reference = Model;

    fn init_test(model: &Model) -> Self {
        let place = P::new();
        let stores = Some((place.open(0), place.open(1)));
        Self { place, stores, held: Vec::new(), told: Vec::new(), model: model.clone(), has_own_order: false }
    }

    fn apply(mut real: Self, after: &Model, step: Step) -> Self {
        match step {
            Step::Append { facts, second, split } => {
                let known_count = real.model.append(&facts);
                let atomicity = if split { Atomicity::Split } else { Atomicity::One };
                let receipt = real.store(second).commit(&batches(&facts), atomicity).unwrap();
                assert_eq!(receipt.known_count, known_count, "{facts:?}");
                assert_eq!(receipt.items.len(), facts.len());
            }
            Step::Together { commits } => real.together(&commits),
            Step::Call { stream, file, second } => {
                real.model.call(stream, file);
                let entries = vec![
                    Entry::step(""),
                    Entry::tool_started("call", "read", format!(r#"{{"filePath":"f{file}"}}"#)),
                    Entry::tool_completed("call", output(file)),
                ];
                let _ = real.store(second).append(&info(stream), entries).unwrap();
            }
            Step::Act { stream, call, restore, second } => {
                let head = real.model.log.len();
                if let Some(place) = real.model.act(stream, call, restore) {
                    let action = if restore { ContextAction::Restore } else { ContextAction::Discard };
                    let target = Target::Item(ItemId::first(Seq(place as u64 + 1)));
                    let reply = real.store(second).context(info(stream).id(), action, vec![(target, None)]);
                    let recorded = real.model.log.len() > head;
                    let last = reply.map_or(None, |reply| reply.last_seq);
                    assert_eq!(last.is_some(), recorded, "{action:?} of {place} in s{stream}");
                }
            }
            Step::Policy { off, second } => {
                real.model.policy(off);
                let policy = Policy { automatic: !off, ..Policy::default() };
                let _ = real.store(second).set_policy(None, &policy, None).unwrap();
            }
            Step::Erase { stream, call, second } => {
                let head = real.model.log.len();
                if let Some(place) = real.model.erase(stream, call) {
                    let item = ItemId::first(Seq(place as u64 + 1));
                    let report = real.store(second).erase(item, "model", "to see it gone").unwrap();
                    assert_eq!(report.recorded.is_some(), real.model.log.len() > head, "{report:?}");
                }
            }
            Step::Seal { second } => drop(real.store(second).seal(true).unwrap()),
            Step::Crash { power } => {
                let place = real.place.crashed(power);
                let old = std::mem::replace(&mut real.place, place);
                real.reopen();
                drop(old);
            }
            Step::Subscribe { second } => {
                let next = real.model.log.len();
                let subscription = real.store(second).subscribe(Seq(next as u64 + 1));
                real.told.push(Told { subscription, next });
            }
            Step::Reopen { delete_index } => {
                real.held.clear();
                real.told.clear();
                real.stores = None;
                if delete_index {
                    real.place.delete_index();
                }
                real.reopen();
            }
            // Only one handle at a time has the index; the other one answers without.
            Step::Reindex => drop(real.store(false).reindex()),
            Step::Hold { stream } => {
                if let Ok(view) = real.store(false).view(info(stream).id()) {
                    let digest = view.state().digest(view.at());
                    let texts = Self::texts(&view);
                    real.held.push(Held { view, digest, texts });
                }
            }
            Step::Travel { at } => {
                let at = usize::from(at) % (real.model.log.len() + 1);
                for stream in 0..3 {
                    real.compare(real.store(false), stream, at);
                    real.compare(real.store(true), stream, at);
                }
                let prefix = folded(&events(real.store(true)).unwrap()[..at]);
                for stream in 0..3 {
                    let id = info(stream).id();
                    if let Some(state) = prefix.stream(id) {
                        let view = real.store(false).view(id).unwrap();
                        assert_eq!(view.state().digest(Seq(at as u64)), state.digest(Seq(at as u64)));
                    }
                }
            }
        }
        assert!(real.has_own_order || real.model.log == after.log, "both copies of the model agree");
        real.check();
        real
    }
}

prop_state_machine! {
    #![proptest_config(Config { cases: cases(16), failure_persistence: None, max_shrink_iters: 300, ..Config::default() })]

    #[test]
    fn a_folder_agrees_with_a_list(sequential 1..22 => Real<Folder>);
}

prop_state_machine! {
    #![proptest_config(Config { cases: cases(24), failure_persistence: None, max_shrink_iters: 300, ..Config::default() })]

    #[test]
    fn a_machine_of_two_processes_agrees_with_a_list(sequential 1..30 => Real<Machine>);
}

/// The model's own answers on a plain story: a judge that is wrong would make the store wrong.
#[test]
fn the_model_tells_a_plain_story() {
    let mut model = Model { log: vec![Known::Policy(false)] };
    let whole = |text: String| Shown::Whole(text);
    model.call(0, 1);
    model.call(0, 1);
    let fact = |text| Fact { stream: 0, origin: Some(1), text };
    assert_eq!(model.append(&[fact(0), fact(0), fact(2)]), 1);
    let all = model.log.len();
    assert_eq!(model.context(0, all), [Shown::Hidden, whole(output(1)), whole(text(2))]);
    assert_eq!(model.act(0, 0, true), Some(3));
    assert_eq!(model.context(0, all + 1), [whole(output(1)), whole(output(1)), whole(text(2))]);
    assert_eq!(model.context(0, 5), [whole(output(1))]);
    model.policy(true);
    model.call(0, 1);
    let all = model.log.len();
    assert_eq!(model.context(0, all)[1], whole(output(1)), "no rule is on");
    assert_eq!(model.erase(0, 1), Some(6));
    assert_eq!(model.context(0, all + 1)[..2], [Shown::Erased, Shown::Erased]);
    assert_eq!(model.context(0, all)[..2], [Shown::Unreadable, Shown::Unreadable]);
    let store = Folder::new().open(0);
    assert!(shown(&store, info(0).id(), Seq(1)).is_err(), "a stream without events has no context");
}
