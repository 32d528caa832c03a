//! Ids as people type them, for every command that takes one.

use acpdb_engine::event::Payload;
use acpdb_engine::fold::Ix;
use acpdb_engine::ids::Seq;
use acpdb_engine::{At, Store, StreamName, View};
use acpdb_query::{FindError, Found};

use super::at::Point;
use crate::args::Global;
use crate::failure::{Code, Failure};

/// The item or event that `text` names, in one session or in all.
pub(crate) fn item(store: &Store, text: &str, session: Option<&str>) -> Result<Found, Failure> {
    let session = session.map(|session| super::sessions::find(store, session)).transpose()?;
    acpdb_query::find(store, text, session.as_ref()).map_err(failure)
}

fn failure(error: FindError) -> Failure {
    let message = error.to_string();
    match error {
        FindError::Store(error) => error.into(),
        FindError::NotFound { nearest: Some(nearest), .. } => {
            Failure::not_found(message).hint(format!("did you mean {nearest}?"))
        }
        FindError::NotFound { .. } => Failure::not_found(message)
            .hint("ids are a #seq, a hash such as r_a1b2c, a call id, or the beginning of one; acpdb history lists them"),
        FindError::Ambiguous { .. } => {
            Failure::new(Code::Usage, message).hint("give the #seq, more of the id, or --session")
        }
        _ => Failure::not_found(message),
    }
}

/// The item of what was found, as of `--at`: a view and the item's place in it.
pub(crate) fn target(store: &Store, global: &Global, found: &Found) -> Result<(View, Ix), Failure> {
    let Some(ix) = found.ix else {
        let seq = found.item.seq;
        let payload = store.event(seq)?.map(|recorded| recorded.event.payload);
        let kind = payload.as_ref().map_or("", Payload::label);
        let failure = Failure::not_found(format!("{seq} is a {kind} event and no item of a context"));
        let hint = match &payload {
            Some(Payload::MemoryRecorded(memory)) => {
                format!(
                    "what became of it: acpdb history --memory '{}' --session '{}'",
                    memory.id, found.stream.name
                )
            }
            _ => format!("the event itself: acpdb show '{seq}'"),
        };
        return Err(failure.hint(hint));
    };
    let view = view(store, global, &found.stream)?;
    if view.read().state().item(ix, view.at()).is_none() {
        return Err(Failure::not_found(format!("{} was not recorded yet at {}", found.item, view.at())));
    }
    Ok((view, ix))
}

/// A stream as of `--at`, or at its head.
pub(crate) fn view(store: &Store, global: &Global, stream: &StreamName) -> Result<View, Failure> {
    let at = match global.at.as_deref() {
        None => At::Head,
        Some(text) => match super::at::parse(text, jiff::Timestamp::now())? {
            Point::Seq(seq) => At::Seq(seq.min(store.head()?)),
            Point::Turn(turn) => At::Turn(acpdb_engine::ids::Turn(turn)),
            Point::Time(time) => At::Seq(store.seq_at(time)?),
        },
    };
    match (store.view_at(stream.id, &at), at) {
        (Err(acpdb_engine::Error::NotFound { what: "turn", .. }), At::Turn(turn)) => {
            let newest = store.view(stream.id)?;
            let newest = newest.read().state().turn(Seq::MAX);
            Err(Failure::not_found(format!(
                "session {} has no turn {}; its newest is {}",
                stream.name,
                turn.get(),
                newest.get()
            )))
        }
        (view, _) => {
            let view = view?;
            let first = view.read().state().first();
            if view.at() < first {
                let message =
                    format!("session {} began later, in {first}, not yet at {}", stream.name, view.at());
                return Err(Failure::not_found(message));
            }
            Ok(view)
        }
    }
}
