//! `acpdb append --stdin [--ack]`: JSON lines, one commit each.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, Fact, StreamInfo};
use acpdb_engine::event::Outcome;
use acpdb_hosts::lines::{self, Noise};
use acpdb_hosts::registry::{is_known_host, known_hosts};

use super::lines::one_line;
use super::{Code, Failure, Global, Output, store_path};
use crate::args::Append;
use crate::feed::{self, FeedAct};

pub(crate) fn run(global: &Global, args: &Append, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    // Opens and recovers before it reads a line.
    let folder = store_path::folder(global, output)?;
    let store = store_path::open_redacting(&folder, global, &args.redact, output)?;
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    let (mut recorded, mut refused) = (0_u64, 0_u64);
    let mut strangers = BTreeSet::new();
    let mut hosts = Hosts::default();
    let mut changes = TodoCalls::default();
    let mut number = 0;
    let mut noise = Noise::default();
    while let Some(read) =
        lines::next_line(&mut input, &mut line).map_err(Failure::io("read", "standard input"))?
    {
        number += 1;
        if read == Ok("") {
            continue;
        }
        let bytes = read.map_or(usize::MAX, str::len);
        let parsed = read.map_err(|error| error.to_string()).and_then(|text| feed::parse(text, number));
        let is_noise = match &parsed {
            Ok(_) => false,
            Err(_) => noise.meant_nothing(bytes),
        };
        let parsed = parsed.map_err(Failure::usage).and_then(|line| hosts.complete(&store, line));
        // A line that cannot be parsed is refused below.
        if let Ok(parsed) = &parsed
            && !is_known_host(&parsed.stream.host)
            && strangers.insert(parsed.stream.host.clone())
        {
            let host = one_line(&parsed.stream.host);
            output.note(format!(
                "note: line {number}: host {host} is not known, so its tools are read by the common names; known are {}",
                known_hosts().join(", ")
            ));
        }
        let parsed = parsed.map(|line| changes.told(line));
        let mut last_seq = 0;
        let mut unchanged = None;
        let done = match parsed {
            Ok(parsed) => {
                let done = record(&store, &parsed, &mut last_seq, output).map(|reply| unchanged = reply);
                if last_seq > 0 {
                    hosts.know(store.recorded_info(&parsed.stream));
                }
                done
            }
            Err(failure) => Err(failure),
        };
        match done {
            Ok(()) => {
                recorded += 1;
                noise.meant();
                if let Some(reply) = &unchanged {
                    output.note(format!("line {number} changed nothing: {}", one_line(reply)));
                }
                if args.ack {
                    Ack { line: number, seq: Some(last_seq), refused: None }.print(output)?;
                }
            }
            // The next line may succeed.
            Err(failure)
                if failure.is_erased
                    || matches!(failure.code, Code::Usage | Code::NotFound | Code::Conflict) =>
            {
                refused += 1;
                // A session and a turn may come before a command.
                let what = if last_seq > 0 { ": only its session and turn were" } else { " was not" };
                output.warn(format!("line {number}{what} recorded: {}", failure.message));
                if args.ack {
                    let seq = (last_seq > 0).then_some(last_seq);
                    Ack { line: number, seq, refused: Some(&failure.message) }.print(output)?;
                }
            }
            // A full disk, a failed sync: the next lines would only fail again.
            Err(failure) => {
                let what = if failure.is_open { "may be recorded or not" } else { "was not recorded" };
                let message = format!("line {number} {what}: {}", failure.message);
                return Err(Failure { message, ..failure });
            }
        }
        if is_noise {
            output.warn(format!("line {number} is the last one that is read: {}", Noise::TOLD));
            break;
        }
    }
    crate::kept::leave_if_much(&store);
    store.close()?;
    if refused > 0 {
        let lines = if refused == 1 { "1 line was".to_owned() } else { format!("{refused} lines were") };
        let others = match recorded {
            0 => "there was no other",
            1 => "the other one is",
            _ => "the others are",
        };
        output.note(format!("{lines} not recorded; {others}"));
        return Ok(Code::Partial);
    }
    Ok(Code::Ok)
}

/// The answer to a line: each line of input has one, so that a host that waits for it goes on.
#[derive(serde::Serialize)]
struct Ack<'a> {
    /// The number of the line, from 1.
    line: u64,
    /// The last seq of what was recorded of it; if it changed nothing, the store's newest.
    seq: Option<u64>,
    /// The reason, if the line was refused.
    refused: Option<&'a str>,
}

impl Ack<'_> {
    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        match (output.json, self.refused) {
            (true, _) => drop(output.json_object("acpdb.ack/1", self)?),
            (false, Some(reason)) => output.line(format!("refused: {}", one_line(reason)))?,
            (false, None) => output.line(self.seq.unwrap_or_default().to_string())?,
        }
        output.flush()
    }
}

/// The hosts of the sessions of each name, for lines that name no host.
#[derive(Default)]
struct Hosts {
    of: HashMap<String, BTreeSet<String>>,
    /// All sessions of the store are known, not only those of earlier lines.
    is_whole: bool,
}

impl Hosts {
    fn know(&mut self, stream: StreamInfo) {
        self.of.entry(stream.name).or_default().insert(stream.host);
    }

    /// A line without a host goes to the session of its name: this program's own, else the only one.
    fn complete(&mut self, store: &Store, line: feed::FeedLine) -> Result<feed::FeedLine, Failure> {
        let own = store.recorded_info(&line.stream);
        let is_own = |hosts: &BTreeSet<String>| hosts.contains(&own.host);
        if line.names_host || self.of.get(&own.name).is_some_and(is_own) {
            return Ok(line);
        }
        if !self.is_whole {
            if store.stream_name(own.id())?.is_some() {
                self.know(own);
                return Ok(line);
            }
            // One look at all sessions: a look for each line would take longer the more there are.
            for there in store.stream_names()?.into_iter().filter(|there| there.scope == own.scope) {
                self.know(StreamInfo::session(there.host, there.name));
            }
            self.is_whole = true;
        }
        let hosts: Vec<&String> = self.of.get(&own.name).into_iter().flatten().collect();
        match hosts.as_slice() {
            [] => Ok(line),
            [only] => {
                let stream = StreamInfo { host: (*only).clone(), ..line.stream };
                Ok(feed::FeedLine { stream, ..line })
            }
            [first, second, ..] => Err(Failure::usage(format!(
                "session {:?} is of {first} and of {second}: name one with \"host\"",
                own.name
            ))),
        }
    }
}

/// Records one line. `last` is the last seq of its events, or the store's head if all of it was known. Gives the reply to an act
/// that changed nothing, as one whose pattern matches no text.
fn record(
    store: &Store,
    line: &feed::FeedLine,
    last: &mut u64,
    output: &mut Output,
) -> Result<Option<String>, Failure> {
    let mut entries = Vec::new();
    let mut unchanged = None;
    for act in &line.acts {
        match act {
            FeedAct::Record(entry) => {
                entries.extend(acpdb_query::memory::all_placed(store, &line.stream, vec![entry.clone()])?);
            }
            FeedAct::Tasks(json) => {
                // Tasks may be the first act about a session.
                let receipt = store.append(&line.stream, std::mem::take(&mut entries))?;
                *last = receipt.last_seq.get();
                let list =
                    if json.trim_start().starts_with('[') { json.clone() } else { format!("[{json}]") };
                let stream = store.recorded_info(&line.stream).id();
                let reply = store.update_tasks(stream, format!("{{\"tasks\":{list}}}").as_bytes())?;
                output.note(&reply.text);
                *last = reply.last_seq.map_or(*last, acpdb_engine::ids::Seq::get);
            }
            FeedAct::Context(json) => {
                flush(store, line, &mut entries, last)?;
                let stream = store.recorded_info(&line.stream).id();
                if *last == 0 && !store.stream_names()?.iter().any(|name| name.id == stream) {
                    let name = &line.stream.name;
                    return Err(Failure::not_found(format!(
                        "session {name:?} holds nothing yet that could be acted on"
                    )));
                }
                let reply = store.context_tool(stream, json)?;
                match reply.last_seq {
                    Some(seq) => {
                        output.note(&reply.text);
                        *last = seq.get();
                    }
                    None => unchanged = Some(reply.text),
                }
            }
            FeedAct::Policy(json) => {
                // A policy may be the first act about a session.
                let receipt = store.append(&line.stream, std::mem::take(&mut entries))?;
                *last = receipt.last_seq.get();
                *last =
                    super::policy::set_json(store, Some(store.recorded_info(&line.stream).id()), json, None)?
                        .get();
            }
        }
    }
    flush(store, line, &mut entries, last)?;
    if *last == 0 {
        *last = store.head()?.get();
    }
    Ok(unchanged)
}

/// Calls of Claude Code's task tools that are open: their results change single todos, as where its records are imported.
#[derive(Default)]
struct TodoCalls(BTreeMap<(String, String), (String, Vec<u8>)>);

impl TodoCalls {
    /// The line, with the changes that its results made to the todo list.
    fn told(&mut self, mut line: feed::FeedLine) -> feed::FeedLine {
        if line.stream.host != "claude-code" {
            return line;
        }
        for act in &mut line.acts {
            let feed::FeedAct::Record(entry) = act else { continue };
            match &mut entry.fact {
                Fact::ToolStarted(call) if matches!(call.tool.as_str(), "TaskCreate" | "TaskUpdate") => {
                    let key = (line.stream.name.clone(), call.call.clone());
                    self.0.insert(key, (call.tool.clone(), call.params.to_vec()));
                }
                Fact::ToolFinished(end) => {
                    let begun = self.0.remove(&(line.stream.name.clone(), end.call.clone()));
                    let Some((tool, params)) = begun.filter(|_| end.outcome == Outcome::Completed) else {
                        continue;
                    };
                    let said = end.output.iter().map(|part| String::from_utf8_lossy(&part.bytes));
                    let said = said.collect::<Vec<_>>().join("\n");
                    let params = String::from_utf8_lossy(&params);
                    end.todo_change = acpdb_hosts::import::claude_todo_change(&tool, &params, &said);
                }
                _ => {}
            }
        }
        line
    }
}

fn flush(
    store: &Store,
    line: &feed::FeedLine,
    entries: &mut Vec<Entry>,
    last: &mut u64,
) -> Result<(), Failure> {
    if !entries.is_empty() {
        let entries = std::mem::take(entries);
        let receipt = match line.expect {
            Some(head) => store.session(line.stream.clone()).append_expecting(head, entries)?,
            None => store.append(&line.stream, entries)?,
        };
        *last = receipt.last_seq.get().max(*last);
    }
    Ok(())
}
