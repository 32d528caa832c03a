//! `acpdb plugin HOST`: answers a host's plug-in. Each question is a JSON object on a line, and each gets a line back.
//!
//! It ends when standard input does. A fault is an answer like any other: the plug-in decides its effect on the host. The journal
//! of hooks tells each act.

use std::io::Write as _;
use std::time::Instant;

use acpdb_hosts::lines::{self, Noise};
use acpdb_live::journal::{self, JournalLine};
use acpdb_live::plugin::PluginSession;

use super::hook::{line, passed_over};
use super::{Code, Failure, Global, Output, store_path};
use crate::args::Plugin;

pub(crate) fn run(global: &Global, args: &Plugin) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    let global = global.apart();
    let found_by = global.apart();
    let open = move || {
        let output = Output::new(&global);
        store_path::open_live(&global, &output).map_err(|failure| failure.message)
    };
    // Without a folder for a store, the first question tells the reason.
    let passed_over = store_path::find_unasked(&found_by).ok().and_then(|found| passed_over(&found));
    let mut desk = PluginSession::new(args.host, args.mode, Box::new(open));
    let journal = journal::path(&crate::settings::variable);
    let mut input = std::io::stdin().lock();
    let mut out = std::io::stdout().lock();
    let mut text = Vec::new();
    let mut noise = Noise::default();
    let mut is_noise = false;
    while let Some(read) =
        lines::next_line(&mut input, &mut text).map_err(Failure::io("read", "standard input"))?
    {
        if read == Ok("") {
            continue;
        }
        let began = Instant::now();
        let (answer, done) = match read {
            Ok(text) => {
                let (answer, done) = desk.answer(text);
                // A line that is no request names no operation.
                if done.op.is_empty() {
                    is_noise = noise.meant_nothing(text.len());
                } else {
                    noise.meant();
                }
                if is_noise { PluginSession::refuse(Noise::TOLD) } else { (answer, done) }
            }
            Err(error) => PluginSession::refuse(&error.to_string()),
        };
        // A host that is gone needs no answer; all that it told is recorded.
        if writeln!(out, "{answer}").and_then(|()| out.flush()).is_err() {
            continue;
        }
        let line = JournalLine {
            event: done.op,
            session: done.session,
            milliseconds: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
            event_count: done.event_count,
            has_answered: done.has_answered,
            passed_over: passed_over.clone(),
            error: done.error,
            ..line(args.host.name())
        };
        if let Some(path) = &journal {
            // The journal is no record; a failed write loses nothing.
            let _ = journal::add(path, &line);
        }
        if is_noise {
            break;
        }
    }
    if let Some(store) = desk.into_store() {
        store.close()?;
    }
    Ok(Code::Ok)
}
