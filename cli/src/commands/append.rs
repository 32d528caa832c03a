//! `acpdb append --stdin [--ack]`: JSON lines, one commit each.

use std::io::BufRead as _;

use acpdb_engine::Store;

use crate::args::{Append, Global};
use crate::failure::{Code, Failure};
use crate::feed::{self, Act};
use crate::output::Output;
use crate::place;

/// Longest line that is read; a longer one is refused before it is held in memory.
const LINE_BYTES_MAX: u64 = 64 << 20;

pub(crate) fn run(global: &Global, args: &Append, output: &mut Output) -> Result<Code, Failure> {
    // Opens and recovers before it reads a line.
    let store = place::open(global, output)?;
    let mut input = std::io::stdin().lock();
    let mut line = Vec::new();
    let mut refused = 0_u64;
    for number in 1.. {
        line.clear();
        let mut limited = std::io::Read::take(&mut input, LINE_BYTES_MAX);
        let read = limited.read_until(b'\n', &mut line);
        if read.map_err(|error| Failure::io("read", "standard input", &error))? == 0 {
            break;
        }
        if !line.ends_with(b"\n") && line.len() as u64 == LINE_BYTES_MAX {
            return Err(Failure::new(
                Code::Failure,
                format!("line {number} is longer than {LINE_BYTES_MAX} bytes"),
            ));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let parsed = std::str::from_utf8(&line)
            .map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to()))
            .and_then(|text| feed::parse(text, number));
        let done = match parsed {
            Ok(parsed) => record(&store, &parsed, output),
            Err(message) => {
                refused += 1;
                output.warn(format!("line {number} was not recorded: {message}"));
                continue;
            }
        };
        match done {
            Ok(last_seq) => {
                if args.ack {
                    output.line(last_seq.to_string())?;
                    output.flush()?;
                }
            }
            Err(failure) if failure.code == Code::Usage => {
                refused += 1;
                output.warn(format!("line {number} was not recorded: {}", failure.message));
            }
            // A full disk, a failed sync: what follows would only fail again.
            Err(failure) => return Err(failure),
        }
    }
    store.close()?;
    if refused > 0 {
        let lines = if refused == 1 { "1 line was" } else { "some lines were" };
        output.note(format!("{lines} not recorded ({refused}); the rest is"));
        return Ok(Code::Partial);
    }
    Ok(Code::Ok)
}

/// Records one line; returns the commit's last seq (the store's head if everything was known).
fn record(store: &Store, line: &feed::Line, output: &mut Output) -> Result<u64, Failure> {
    let mut last = 0;
    let mut entries = Vec::new();
    for act in &line.acts {
        match act {
            Act::Record(entry) => entries.push(entry.clone()),
            Act::Context(json) => {
                last = flush(store, line, &mut entries, last)?;
                let reply = super::acts::tool_call(store, line.stream.id(), json)?;
                output.note(&reply.text);
                last = reply.last_seq.map_or(last, acpdb_engine::ids::Seq::get);
            }
            Act::Policy(json) => {
                flush(store, line, &mut entries, last)?;
                last = super::policy::set_json(store, Some(line.stream.id()), json, None)?.get();
            }
        }
    }
    last = flush(store, line, &mut entries, last)?;
    if last == 0 { Ok(store.head()?.get()) } else { Ok(last) }
}

fn flush(
    store: &Store,
    line: &feed::Line,
    entries: &mut Vec<acpdb_engine::entry::Entry>,
    last: u64,
) -> Result<u64, Failure> {
    if entries.is_empty() {
        return Ok(last);
    }
    let receipt = store.append(&line.stream, std::mem::take(entries))?;
    Ok(receipt.last_seq.get().max(last))
}
