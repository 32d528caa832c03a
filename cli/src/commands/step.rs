//! `acpdb step SESSION --format F`: a step of the model begins; the body to send, recorded as sent.
//!
//! With `acpdb append` for the model's answer, this is the whole loop of a host, for hosts that are not written in Rust.

use acpdb_engine::entry::StreamInfo;
use acpdb_engine::event::Scope;
use acpdb_hosts::export::Exporter;
use acpdb_serve::{Injection, Obstacle, ServeOptions};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Code, Failure, Global, Output, store_path};
use crate::args::StepArgs;

/// A step, for programs.
#[derive(Serialize)]
struct StepResult<'a> {
    session: &'a str,
    step: &'a str,
    seq: acpdb_engine::ids::Seq,
    format: &'a str,
    tokens: u64,
    /// Items before this one are in the provider's cache.
    first_changed: usize,
    /// Items after each of which a mark for the provider's cache pays.
    breakpoints: Vec<usize>,
    rebased: bool,
    /// Texts that are due and were not sent.
    due: Vec<Injection>,
    /// Items that keep the context above the budget.
    obstacles: Vec<Obstacle>,
    notes: &'a [String],
    body: &'a RawValue,
}

pub(crate) fn run(global: &Global, args: &StepArgs, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    if args.format.provider().is_none() {
        let failure = Failure::usage("a provider takes no transcript");
        return Err(failure.hint("formats: anthropic, openai, responses, gemini"));
    }
    let store = store_path::write(global, output)?;
    let name = super::session::find(&store, &args.session)?;
    if name.scope != Scope::Session {
        return Err(Failure::usage(format!("{} is no session", name.name)));
    }
    let session = store.session(StreamInfo::session(&*name.host, &*name.name));
    let key = if let Some(key) = &args.key {
        key.clone()
    } else {
        let view = session.view()?;
        let turn = view.state().turn(view.at());
        format!("step-{}", turn.get().saturating_add(1))
    };
    let options =
        ServeOptions { tokens_max: args.tokens_max, inject: args.inject, ..ServeOptions::default() };
    let format = args.format;
    let exporter = if args.no_breakpoints { Exporter::new(format) } else { Exporter::marked(format) };
    let context = acpdb_serve::Step::begin(&session, key.as_str())?.context(&exporter, &options)?;
    let due = Injection::due(&session)?;
    let obstacles = context.over_budget.as_ref().map(|over| over.obstacles.clone()).unwrap_or_default();
    store.close()?;
    if output.json {
        let body: &RawValue = serde_json::from_slice(&context.bytes)
            .map_err(|error| Failure::new(Code::Failure, format!("the body is no JSON: {error}")))?;
        let answer = StepResult {
            session: &name.name,
            step: &key,
            seq: context.seq,
            format: format.name(),
            tokens: context.tokens,
            first_changed: context.first_changed,
            breakpoints: context.breakpoints(),
            rebased: context.rebased.is_some(),
            due,
            obstacles,
            notes: &context.notes,
            body,
        };
        return output.json_object("acpdb.step/1", &answer);
    }
    for note in &context.notes {
        output.note(note);
    }
    if !due.is_empty() {
        output.note("texts that are due to the model, and were not sent; --inject sends them:");
    }
    for due in &due {
        output.note(&due.text);
    }
    if let Some(over) = &context.over_budget {
        output.warn(format!("the context has ~{} tokens, more than {}", over.tokens, over.tokens_max));
    }
    if output.terminal {
        output.json_text(String::from_utf8_lossy(&context.bytes).trim_end())?;
        return Ok(Code::Ok);
    }
    output.bytes(&context.bytes)?;
    if !context.bytes.ends_with(b"\n") {
        output.bytes(b"\n")?;
    }
    Ok(Code::Ok)
}
