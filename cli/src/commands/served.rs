//! `acpdb context --served`: the exact bytes that were sent, made again from the log.

use acpdb_engine::store::StreamName;
use acpdb_engine::{At, Error, Store};
use acpdb_hosts::export::Exporter;
use acpdb_query::when::{self, Point};
use acpdb_serve::{PlainText, Renderer, ServedAgain};
use serde::Serialize;

use super::{Code, Failure, Global, Output};

#[derive(Serialize)]
struct ServedResult<'a> {
    seq: acpdb_engine::ids::Seq,
    turn: u32,
    step: &'a str,
    epoch: u32,
    format: &'a str,
    renderer: u32,
    tokens: u64,
    digest: String,
    /// Whether the bytes have the digest that was recorded.
    same: bool,
    body: std::borrow::Cow<'a, str>,
}

pub(crate) fn run(
    global: &Global,
    store: &Store,
    session: &StreamName,
    output: &mut Output,
) -> Result<Code, Failure> {
    let at = match global.at.as_deref() {
        None => At::Head,
        Some(text) => match when::parse(text, super::at::now()) {
            Ok(Point::Turn(turn)) => At::Turn(turn),
            _ => At::Seq(super::find::view(store, global, session)?.at()),
        },
    };
    let exporters = Exporter::all();
    let mut renderers: Vec<&dyn Renderer> = vec![&PlainText];
    renderers.extend(
        acpdb_live::plugin::shown::PluginRenderer::ALL.iter().map(|shown| -> &dyn Renderer { shown }),
    );
    renderers.extend(exporters.iter().map(|exporter| -> &dyn Renderer { exporter }));
    let again =
        ServedAgain::find(store, session.id, &at, &renderers).map_err(|error| none_or(error, session))?;
    if !again.is_same {
        output.warn(format!(
            "{} was recorded with another digest: what was sent was changed by its host, or made with other choices",
            again.seq
        ));
    }
    print(&again, output)?;
    Ok(if again.is_same { Code::Ok } else { Code::Failure })
}

/// The failure for a session of which no request went through this program, as for most sessions.
fn none_or(error: Error, session: &StreamName) -> Failure {
    match error {
        Error::NotFound { what: "served context", name, .. } => {
            // At the head, the name covers the whole session, which the message names.
            let when = if name.starts_with("of this") { String::new() } else { format!(" {name}") };
            let name = super::lines::one_line(&session.name);
            Failure::not_found(format!("no context of session {name} was sent through acpdb{when}"))
                .hint("acpdb step, a proxy and attached hosts record what they send; without --served: what the model should see")
        }
        error => error.into(),
    }
}

fn print(again: &ServedAgain, output: &mut Output) -> Result<(), Failure> {
    let record = &again.record;
    if output.json {
        let answer = ServedResult {
            seq: again.seq,
            turn: again.turn.get(),
            step: &record.step,
            epoch: record.epoch,
            format: &record.format,
            renderer: record.renderer,
            tokens: record.tokens,
            digest: crate::keys::hex(&record.digest),
            same: again.is_same,
            body: String::from_utf8_lossy(&again.bytes),
        };
        return output.json_object("acpdb.served/1", &answer).map(drop);
    }
    if output.terminal {
        return output.json_text(String::from_utf8_lossy(&again.bytes).trim_end());
    }
    output.bytes(&again.bytes)
}
