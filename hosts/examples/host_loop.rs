//! The loop of an agent host, whole: record events, get the bytes to send, send them.
//!
//! ```text
//! cargo run -p acpdb-hosts --example host_loop [FOLDER]
//! ```
//!
//! It may be killed at any point and started again with the same folder: nothing recorded is lost, no prompt is recorded
//! twice, no tool has its effect twice. Only the model and the tools are fake.

use acpdb_engine::entry::{Entry, PartEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{ReplaceCause, Report, Role, Usage};
use acpdb_engine::ids::Seq;
use acpdb_engine::store::Session;
use acpdb_engine::{At, Error, Store};
use acpdb_hosts::export::{Exporter, Format};
use acpdb_serve::{ServeOptions, ServedAgain, Step};

/// A model's answer: parts, calls as (id, tool, parameters); or it breaks off in the middle.
pub(crate) struct Answer {
    pub(crate) parts: Vec<PartEntry>,
    pub(crate) calls: Vec<[String; 3]>,
    pub(crate) broke_off: bool,
}

/// The world outside: the provider, and the tools with their effects.
pub(crate) trait Outside {
    fn ask(&mut self, request: &[u8], step: &str) -> Answer;
    fn run(&mut self, session: &Session, call: &[String; 3]) -> Result<String, String>;
}

/// Opens a session; for one that exists, ends the calls and messages that a crash left open.
pub(crate) fn resume(store: &Store, info: StreamInfo) -> Result<Session, Error> {
    let session = store.session(info);
    let resumed = session.open_or_resume()?;
    let _ = session.give_up(&resumed, "the host was restarted")?;
    let system = Some(b"You are a careful agent.".as_slice().into());
    let params = Some(br#"{"max_tokens":4096}"#.as_slice().into());
    let model = Some("claude-opus-4-5".to_owned());
    let prompt = fact::PromptSet { system, tools: None, model, params };
    let _ = session.append([Entry::from(prompt).origin("prompt")])?; // known after the first time
    Ok(session)
}

/// Asks something and lets the model work until it has answered. A repeated call with the same key goes on from there.
pub(crate) fn ask(session: &Session, outside: &mut dyn Outside, key: &str, text: &str) -> Result<(), Error> {
    let asked = Entry::message(key, Role::User, text).origin(format!("msg:{key}"));
    let _ = session.append([Entry::prompt(key).origin(format!("prompt:{key}")), asked])?;
    loop {
        let items = session.view()?.current();
        if items.last().is_some_and(|item| item.role == Role::Assistant && item.call.is_none()) {
            return Ok(()); // the model had the last word, and asked for nothing
        }
        step(session, outside)?;
    }
}

/// One step of the model: a request, its answer, the calls it asked for.
fn step(session: &Session, outside: &mut dyn Outside) -> Result<(), Error> {
    let key = format!("step-{}", session.view()?.turn().get() + 1);
    // Memory and reminders that are due are recorded and sent along; the bytes begin with those sent before, as long as it
    // pays.
    let options = ServeOptions { inject: true, ..ServeOptions::default() };
    let context = Step::begin(session, &key)?.context(&Exporter::new(Format::Anthropic), &options)?;
    let answer = outside.ask(&context.bytes, &key);
    let mut message = session.message(&key);
    for part in answer.parts {
        let _ = message.push(part)?;
    }
    if answer.broke_off {
        return message.abandon().map(drop); // the next step asks again
    }
    let started =
        answer.calls.iter().map(|[id, tool, params]| Entry::tool_started(id, tool, params).origin(id));
    let usage = Usage { output: Some(20), ..Usage::default() };
    let report = Report { model: Some("claude-opus-4-5".to_owned()), usage, ..Report::default() };
    // The starts are durable, in one commit with the end of the message, before any tool has its effect.
    let _ = message.finish(report, started)?;
    for call in answer.calls.iter().rev() {
        let ended = match outside.run(session, call) {
            Ok(text) => Entry::tool_completed(&call[0], text),
            Err(text) => Entry::tool_failed(&call[0], text),
        };
        let _ = session.append([ended.origin(format!("{}:end", call[0]))])?; // in any order
    }
    Ok(())
}

/// The session of a subagent that a call starts; any process that opens the store may run it.
pub(crate) fn child(parent: &Session, call: &str) -> StreamInfo {
    let link = Some((parent.id(), Some(call.to_owned())));
    StreamInfo { parent: link, ..StreamInfo::session("example", format!("{}/{call}", parent.info().name)) }
}

/// The host's own compaction: everything leaves the context, a summary stays. One commit.
pub(crate) fn compact(session: &Session, key: &str, summary: &str) -> Result<(), Error> {
    let cause = ReplaceCause::Compaction;
    let replaced = fact::ContextReplaced { cause, order: Vec::new(), tokens_before: None };
    let summary = Entry::message(key, Role::User, summary).origin(format!("msg:{key}"));
    session.append([Entry::from(replaced).origin(format!("replaced:{key}")), summary]).map(drop)
}

/// A question is taken back, with all that followed: it leaves the branch and stays in history.
pub(crate) fn take_back(session: &Session, key: &str) -> Result<(), Error> {
    let rewound = fact::Rewound { to: PointRef::Before(format!("prompt:{key}")) };
    session.append([Entry::from(rewound).origin(format!("rewound:{key}"))]).map(drop)
}

/// A session that shares another's past up to a seq, and goes its own way. One commit opens and forks it.
pub(crate) fn fork(store: &Store, from: &Session, at: Seq, name: &str) -> Result<Session, Error> {
    let session = store.session(StreamInfo::session("example", name));
    let forked = fact::Forked { from: from.id(), at: PointRef::Seq(at) };
    let first = session.view().is_err().then(|| session.append([Entry::from(forked)]));
    first.transpose().map(|_| session)
}

/// A model that reads two files at once and then answers, and tools that repeat their calls.
struct Fake;

impl Outside for Fake {
    fn ask(&mut self, request: &[u8], step: &str) -> Answer {
        let text = String::from_utf8_lossy(request);
        let is_answered = text.rsplit("\"role\":").next().is_some_and(|last| last.contains("tool_result"));
        let read = |name| [format!("{step}-{name}"), "read".into(), format!(r#"{{"file_path":"/{name}"}}"#)];
        let calls = if is_answered { Vec::new() } else { vec![read("a"), read("b")] };
        Answer { parts: vec![PartEntry::text(format!("This is {step}."))], calls, broke_off: false }
    }

    fn run(&mut self, _: &Session, [id, tool, params]: &[String; 3]) -> Result<String, String> {
        Ok(format!("{tool} {params} for {id}"))
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "target/host-loop".to_owned());
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).open()?;
    let session = resume(&store, StreamInfo::session("example", "loop"))?;
    ask(&session, &mut Fake, "first", "What is in /a and /b?")?;
    let kept = session.view()?.at();
    ask(&session, &mut Fake, "second", "And again?")?;
    take_back(&session, "second")?; // the second question is taken back ..
    let other = resume(&store, fork(&store, &session, kept, "other")?.info().clone())?;
    ask(&other, &mut Fake, "third", "And here?")?; // .. and a third asked elsewhere
    ask(&resume(&store, child(&session, "call"))?, &mut Fake, "sub", "Look closer.")?;
    compact(&session, "summary", "We have read /a and /b.")?;
    ask(&session, &mut Fake, "last", "What was in them?")?;
    let sent = ServedAgain::find(&store, session.id(), &At::Head, &[&Exporter::new(Format::Anthropic)])?;
    println!("{}", String::from_utf8_lossy(&sent.bytes)); // the bytes that were sent last, made again from the log
    Ok(())
}
