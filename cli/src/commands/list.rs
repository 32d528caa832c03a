//! `acpdb list`: bodies in order, `seq<TAB>text`, one event a line.

use acpdb_engine::event::{Body, Payload};
use acpdb_engine::ids::Seq;

use crate::args::{Global, List};
use crate::failure::{Code, Failure};
use crate::output::{Escape, Output};
use crate::place;

pub(crate) fn run(global: &Global, args: &List, output: &mut Output) -> Result<Code, Failure> {
    let store = place::read(global, output)?;
    let to = super::log::end(&store, global)?;
    let events = match &args.session {
        Some(session) => store.stream_events(super::sessions::find(&store, session)?.id, Seq(1), to)?,
        None => store.events(Seq(1), to)?,
    };
    let mut damaged = 0_u64;
    for recorded in events {
        let recorded = match recorded {
            Ok(recorded) => recorded,
            Err(acpdb_engine::Error::Corrupt { detail }) => {
                damaged += 1;
                output.warn(detail);
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let shown = shown(&recorded.event.payload);
        if shown.is_empty() {
            continue;
        }
        let mut text = String::new();
        let mut whole = true;
        for body in shown {
            match store.body(body.id(recorded.seq)) {
                Ok(bytes) => {
                    if !text.is_empty() {
                        text.push('\n');
                    }
                    text.push_str(&String::from_utf8_lossy(&bytes));
                }
                Err(error @ acpdb_engine::Error::Corrupt { .. }) => {
                    whole = false;
                    output.warn(error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        if !whole {
            damaged += 1;
        } else if output.json {
            let line = serde_json::json!({"schema": "acpdb.list/1", "seq": recorded.seq, "body": text});
            output.json_line(&line)?;
        } else {
            let text = output.recorded(&text, Escape::Line).into_owned();
            output.line(format!("{}\t{text}", recorded.seq.get()))?;
        }
    }
    if damaged > 0 {
        output.warn(format!("{damaged} damaged event(s) left out; run acpdb verify"));
        return Ok(Code::Damage);
    }
    Ok(Code::Ok)
}

/// The bodies that say what an event is about; not details, signatures or wire forms.
fn shown(payload: &Payload) -> Vec<Body> {
    let bodies = match payload {
        Payload::MessageRecorded(message) => message.parts.iter().map(|part| part.body).collect(),
        Payload::MessageContinued(message) => message.parts.iter().map(|part| part.body).collect(),
        Payload::ItemRevised(revised) => revised.parts.iter().map(|part| part.body).collect(),
        Payload::ToolCallStarted(started) => vec![started.params],
        Payload::ToolCallFinished(finished) => finished.output.iter().map(|part| part.body).collect(),
        Payload::TodosReplaced(todos) => vec![todos.list.body],
        Payload::MemoryRecorded(memory) => vec![memory.value],
        Payload::Injected(injected) => vec![injected.text],
        Payload::PromptSet(prompt) => prompt.system.into_iter().collect(),
        Payload::HostRecorded(record) => record.raw.into_iter().collect(),
        Payload::Discarded(act) => vec![act.targets],
        Payload::Distilled(act) => vec![act.targets],
        Payload::Restored(act) => vec![act.targets],
        Payload::TaskEvicted(task) => task.summary.into_iter().collect(),
        _ => Vec::new(),
    };
    bodies.into_iter().filter(|body| body.bytes > 0).collect()
}
