//! The example host, stopped at every call to the storage and started again: nothing lost, nothing done twice.
//!
//! The outside world survives a crash of the host: it counts how often each tool had its effect, and which requests the
//! provider saw. The simulated disk forgets writes that were not synced.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    reason = "tests: a failed step is a failed test"
)]

#[allow(dead_code, reason = "the example's own main and fakes")]
#[path = "../../hosts/examples/host_loop.rs"]
mod host_loop;

use std::collections::BTreeMap;
use std::sync::Arc;

use acpdb_engine::entry::{PartEntry, StreamInfo};
use acpdb_engine::event::{Payload, Role};
use acpdb_engine::fold::Status;
use acpdb_engine::ids::Seq;
use acpdb_engine::storage::{Crash, SimStorage, SimWorld, Storage as _};
use acpdb_engine::store::Session;
use acpdb_engine::verify::{Verdict, verify_storage};
use acpdb_engine::{Error, Store};
use acpdb_hosts::export::Format;
use acpdb_hosts::lint::{RequestFacts, lint};
use acpdb_tests::support::{events, fixed};
use host_loop::{Answer, Outside, ask, child, compact, fork, resume, take_back};

fn open(storage: &SimStorage) -> Result<Store, Error> {
    let builder = Store::builder("/sim").storage(Arc::new(storage.clone())).registry(acpdb_hosts::registry());
    let builder = builder.lock_wait(std::time::Duration::from_millis(3));
    fixed(builder, u64::from(storage.process())).open()
}

/// The world outside: it remembers, even if the host stops.
#[derive(Default)]
struct World {
    /// Effects by call.
    effects: BTreeMap<String, u32>,
    /// Answers that broke off.
    broken: u32,
    /// The process that a subagent runs in.
    other: Option<SimStorage>,
}

impl Outside for World {
    fn ask(&mut self, request: &[u8], step: &str) -> Answer {
        let findings = lint(Format::Anthropic, request, RequestFacts::default());
        assert_eq!(findings, [], "{}", String::from_utf8_lossy(request));
        let body: serde_json::Value = serde_json::from_slice(request).unwrap();
        let messages = body["messages"].as_array().unwrap();
        let last = messages.last().unwrap()["content"].as_array().unwrap();
        let results = last.iter().filter(|block| block["type"] == "tool_result").count();
        let think = PartEntry::reasoning(format!("thinking of {step}"), Some(step.as_bytes()));
        let mut parts = vec![think, PartEntry::text(format!("words of {step}"))];
        // The first answer breaks off once.
        if self.broken == 0 {
            self.broken = 1;
            parts.truncate(1);
            return Answer { parts, calls: Vec::new(), broke_off: true };
        }
        let call = |name: &str, tool: &str| {
            [format!("{step}-{name}"), tool.to_owned(), format!(r#"{{"file_path":"/{name}"}}"#)]
        };
        let calls = match results {
            0 => vec![call("a", "read"), call("b", "write"), call("c", "task")],
            3 if !request.windows(8).any(|it| it == b"restarte") => vec![call("d", "read")],
            _ => Vec::new(),
        };
        Answer { parts, calls, broke_off: false }
    }

    fn run(&mut self, session: &Session, [id, tool, _]: &[String; 3]) -> Result<String, String> {
        // The start is durable before the effect: another process sees it.
        let seen = self.other.as_ref().map(|other| open(other).and_then(|store| store.view(session.id())));
        if let Some(seen) = seen {
            let seen = seen.map_err(|error| error.to_string())?;
            assert!(seen.current().iter().any(|item| item.call.as_deref() == Some(id)), "{id} has no start");
        }
        *self.effects.entry(id.clone()).or_default() += 1;
        if tool == "task" {
            let Some(other) = self.other.clone() else { return Err("nowhere to run it".to_owned()) };
            let run = || -> Result<(), Error> {
                let store = open(&other)?;
                let session = resume(&store, child(session, id))?;
                ask(&session, &mut Child, "sub", "look closer")
            };
            return run().map(|()| "done".to_owned()).map_err(|error| error.to_string());
        }
        if tool == "write" { Err("no room".to_owned()) } else { Ok(format!("content for {id}")) }
    }
}

/// A subagent that answers at once.
struct Child;

impl Outside for Child {
    fn ask(&mut self, _: &[u8], step: &str) -> Answer {
        Answer { parts: vec![PartEntry::text(format!("child {step}"))], calls: Vec::new(), broke_off: false }
    }

    fn run(&mut self, _: &Session, call: &[String; 3]) -> Result<String, String> {
        Err(format!("no {call:?}"))
    }
}

/// The host's work, from any point where it was stopped.
fn work(storage: &SimStorage, world: &mut World) -> Result<(), Error> {
    let store = open(storage)?;
    let session = resume(&store, StreamInfo::session("example", "loop"))?;
    ask(&session, world, "first", "what is there?")?;
    let kept = session.view()?.at();
    ask(&session, world, "wrong", "and elsewhere?")?;
    take_back(&session, "wrong")?;
    let other = resume(&store, fork(&store, &session, kept, "other")?.info().clone())?;
    ask(&other, &mut Child, "aside", "by the way?")?;
    // A compaction told twice is known the second time.
    compact(&session, "summary", "we have looked")?;
    ask(&session, world, "second", "and now?")?;
    store.close()
}

/// The rules that must hold once the work is done.
fn judge(sim: &SimWorld, world: &World, context: &str) {
    let store = open(&sim.process(90)).unwrap();
    let session = store.session(StreamInfo::session("example", "loop"));
    assert_eq!(session.open_calls().unwrap(), [], "{context}");
    assert_eq!(session.open_messages().unwrap(), [""; 0], "{context}");
    let recorded = events(&store).unwrap();
    let count = |wanted: &dyn Fn(&Payload) -> bool| {
        let own = recorded.iter().filter(|it| it.event.stream == session.id());
        own.filter(|it| wanted(&it.event.payload)).count()
    };
    for key in ["first", "wrong", "second", "summary"] {
        let said = count(&|it| matches!(it, Payload::MessageRecorded(it) if it.key == key));
        assert_eq!(said, 1, "{context}: {key} is recorded once");
    }
    assert_eq!(count(&|it| matches!(it, Payload::ContextReplaced(_))), 1, "{context}");
    assert_eq!(count(&|it| matches!(it, Payload::Rewound(_))), 1, "{context}");
    let other = store.view(StreamInfo::session("example", "other").id()).unwrap().current();
    let said: Vec<bool> = other.iter().map(|item| item.item.seq > Seq(1) && item.in_context).collect();
    assert!(said.len() > 3 && said.iter().all(|it| *it), "{context}: the fork has its past");
    // Every context that was sent can be made again, byte for byte.
    let exporter = acpdb_hosts::export::Exporter::new(Format::Anthropic);
    let sent = session.view().unwrap();
    let served: Vec<Seq> = sent.state().served(Seq::MAX).iter().map(|(seq, _)| *seq).collect();
    assert!(served.len() > 4, "{context}");
    for seq in served {
        let again =
            acpdb_serve::ServedAgain::find(&store, session.id(), &acpdb_engine::At::Seq(seq), &[&exporter])
                .unwrap();
        assert!(again.is_same && again.seq == seq, "{context}: {seq}");
    }
    // An effect was preceded by a durable start, and happened once; every completed call had its effect.
    let starts = |id: &str| count(&|it| matches!(it, Payload::ToolCallStarted(it) if it.call == *id));
    for (id, effects) in &world.effects {
        assert_eq!((*effects, starts(id)), (1, 1), "{context}: {id}");
    }
    let view = session.view().unwrap();
    let items = view.history();
    let completed = items.iter().filter(|item| item.status == Some(Status::Completed));
    for item in completed {
        assert!(world.effects.contains_key(item.call.as_deref().unwrap()), "{context}: {item:?}");
    }
    let last = view.current().pop().unwrap();
    assert!(last.role == Role::Assistant && last.call.is_none(), "{context}: it was answered");
    drop(store);
    let report = verify_storage(Arc::new(sim.process(91)), true).unwrap();
    assert_eq!(report.verdict(), Verdict::Sound, "{context}: {report:#?}");
}

/// A life without a crash, and how many operations it takes.
fn whole() -> u64 {
    let sim = SimWorld::new(5);
    let storage = sim.process(1);
    let mut world = World { other: Some(sim.process(2)), ..World::default() };
    work(&storage, &mut world).unwrap();
    judge(&sim, &world, "without a crash");
    assert!(world.effects.len() > 5 && world.effects.keys().any(|id| id.ends_with("-c")));
    let names = open(&sim.process(3)).unwrap().stream_names().unwrap();
    assert!(names.iter().any(|it| it.parent.is_some()), "a subagent has a session of its own");
    assert!(open(&sim.process(3)).unwrap().head().unwrap() > Seq(20));
    storage.operation_count()
}

#[test]
fn the_example_host_survives_a_crash_at_every_storage_call() {
    let operations = whole();
    // Each in turn where time is no matter; one in thirteen in the usual run.
    let stride = if std::env::var_os("ACPDB_TEST_CASES").is_some() { 1 } else { 13 };
    for stop in (1..=operations).step_by(stride) {
        let sim = SimWorld::new(5);
        let mut world = World::default();
        crash_at(&sim, &mut world, stop);
        let context = format!("stopped at {stop} of {operations}");
        let mut life = 10;
        while let Err(error) = work(&sim.process(life), &mut world) {
            life += 1;
            assert!(life < 14, "{context}: {error}");
        }
        judge(&sim, &world, &context);
    }
}

fn crash_at(sim: &SimWorld, world: &mut World, stop: u64) {
    let storage = sim.process(1);
    let crash = [Crash::Power, Crash::Kill][usize::try_from(stop % 2).unwrap()];
    storage.crash_at(stop, crash);
    let _ = work(&storage, world);
}
