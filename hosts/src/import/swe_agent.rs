//! SWE-agent: one document a run, `{trajectory[], history[], info, ..}`.
//!
//! ```text
//! history[..first assistant]   -> the system prompt and the task, as messages
//! trajectory[i]                -> a step: message (response), call (action), its end (observation)
//! everything else              -> stays in the document
//! ```
//!
//! Actions are command lines, so each is a call of `shell` with `{"command": action}`. The open file is state of the
//! host, not an argument: the step's `state` goes to the details of the call. The rest of `history` repeats the
//! trajectory and is kept in the document only.

use acpdb_engine::entry::{Entry, Fact, PartEntry, StreamInfo, fact};
use acpdb_engine::event::{Outcome, Role};
use acpdb_engine::secret::DERIVED;

use super::json::{elements, member, owned, pick};
use super::lines::{attach, document, opened, span};
use super::report::Admitted;
use super::turns::{Occurrences, digest, step};
use super::values::{TINY_BYTES, ValueReader};
use super::{ImportContext, ImportError, Input, kept_record};
use crate::exchange::parts;

const HOST: &str = "swe-agent";

/// Reads a run; of several in one input, each is a stream.
pub(super) fn read(input: Input<'_>, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let mut reader = ValueReader::documents(input, &context.options.limits);
    let mut kept = Occurrences::default();
    while let Some(value) = reader.read()? {
        let (line, at) = (value.line, value.offset);
        let raw = match context.admit(&value) {
            Admitted::Nothing => continue,
            Admitted::Raw(bytes) => bytes,
            Admitted::Text(text) => {
                if let Some(steps) = member(Some(text), "trajectory").and_then(elements) {
                    run(text, &steps, at, context)?;
                    continue;
                }
                context.report.keep_raw(line, at, "no trajectory in it; kept as it is");
                text.as_bytes()
            }
        };
        let hash = blake3::hash(raw).to_hex();
        let entry = kept_record("raw", raw, u64::from(kept.next(hash.as_str())));
        let name = context
            .options
            .session
            .clone()
            .unwrap_or_else(|| format!("{DERIVED}{}", hash.get(..32).unwrap_or_default()));
        let stream = opened(StreamInfo::session(HOST, name), context);
        context.report.records += 1;
        context.emit(&stream, vec![entry], reader.offset())?;
    }
    Ok(())
}

fn run(text: &str, steps: &[&str], at: u64, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
    let [history, environment] = pick(text, ["history", "environment"]).unwrap_or_default();
    context.check_noise(steps, TINY_BYTES)?;
    let cwd = steps.first().and_then(|first| working_folder(first));
    let name = context.options.session.clone().unwrap_or_else(|| digest(text));
    let title = owned(environment).filter(|name| !name.is_empty() && context.name.is_empty());
    let title = title.unwrap_or_else(|| context.name.to_string());
    let stream = opened(StreamInfo { cwd, title: Some(title), ..StreamInfo::session(HOST, name) }, context);
    let mut records: Vec<(&str, String)> = Vec::new();
    let end =
        |record: &str| at.saturating_add(span(text, record).map_or(0, |start| start + record.len()) as u64);

    for (place, turn) in history.and_then(elements).unwrap_or_default().into_iter().enumerate() {
        let Some(entry) = opening(turn, place) else { break };
        let mut entries = vec![entry];
        attach(turn.as_bytes(), &mut entries);
        records.push((turn, format!("history:{place}")));
        context.emit(&stream, entries, end(turn))?;
    }
    for (place, step) in steps.iter().enumerate() {
        let mut entries = trajectory_step(step, place);
        attach(step.as_bytes(), &mut entries);
        records.push((step, format!("step:{place}")));
        context.report.records += 1;
        context.emit(&stream, entries, end(step))?;
    }
    // The history stands behind the trajectory in some files and before it in others.
    records.sort_by_key(|(record, _)| span(text, record));
    let around = Entry::host_record("document", None).origin("document").wire(document(text, &records));
    context.emit(&stream, vec![around], at.saturating_add(text.len() as u64))
}

/// A message from before the model's first.
fn opening(turn: &str, place: usize) -> Option<Entry> {
    let [role, content] = pick(turn, ["role", "content"])?;
    let role = match owned(role)?.as_str() {
        "system" => Role::System,
        "user" => Role::User,
        _ => return None,
    };
    let content = content.filter(|content| content.starts_with(['"', '[']))?;
    let origin = format!("history:{place}");
    Some(Entry::message_parts(&origin, role, parts(Some(content), |_| None)).origin(&origin))
}

fn trajectory_step(text: &str, place: usize) -> Vec<Entry> {
    let origin = format!("step:{place}");
    let names = ["action", "observation", "response", "thought", "state"];
    let [action, observation, response, thought, state] = pick(text, names).unwrap_or_default();
    let said = owned(response).filter(|said| !said.is_empty()).or_else(|| owned(thought)).unwrap_or_default();
    let parts = if said.is_empty() { Vec::new() } else { vec![PartEntry::text(said)] };
    let mut entries =
        vec![step(&origin), Entry::message_parts(&origin, Role::Assistant, parts).origin(&origin)];
    let Some(action) = action else { return entries };
    let id = place.to_string();
    let params = format!("{{\"command\":{action}}}");
    let start =
        Entry::tool_started(&id, "shell", params).origin(format!("call:{place}:start")).in_message(&origin);
    entries.push(start);
    let output = match (owned(observation), observation) {
        (Some(text), _) => PartEntry::text(text),
        (None, Some(other)) => PartEntry::text(other),
        (None, None) => return entries,
    };
    let mut finish =
        Entry::tool_finished(id, Outcome::Completed, vec![output]).origin(format!("call:{place}:finish"));
    if let (Some(state), Fact::ToolFinished(fact::ToolFinished { details, .. })) = (state, &mut finish.fact) {
        // An object, or the text of one.
        let state = owned(Some(state)).unwrap_or_else(|| state.to_string());
        *details = Some(state.into_bytes().into());
    }
    entries.push(finish);
    entries
}

fn working_folder(step: &str) -> Option<String> {
    let state = member(Some(step), "state")?;
    match owned(Some(state)) {
        Some(text) => owned(member(Some(text.trim()), "working_dir")),
        None => owned(member(Some(state), "working_dir")),
    }
}
