//! `--at`: points in time.

use acpdb_engine::event::Scope;
use acpdb_engine::ids::Seq;
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::when::{self, Point, WhenError};

use super::{Failure, Global, Output, find};

pub(crate) use crate::clock::now;

/// Refuses `--at`: commands that record something act now.
pub(crate) fn refuse(global: &Global) -> Result<(), Failure> {
    match &global.at {
        Some(_) => Err(Failure::usage("--at is for reading; what is recorded is recorded now")),
        None => Ok(()),
    }
}

/// The last seq at a point. Turns, marks and times of a host's clock belong to a session: to the named one, turns and marks also to
/// the only session.
pub(crate) fn seq(
    store: &Store,
    global: &Global,
    text: &str,
    session: Option<&StreamName>,
) -> Result<Seq, Failure> {
    let of_session =
        |session: &StreamName| find::once_at(store, global, session, Some(text)).map(|view| view.at());
    let is_time = matches!(when::parse(text, now()), Ok(Point::Time(time)) if time <= now());
    if let Some(session) = session.filter(|_| is_time) {
        return of_session(session);
    }
    let found = when::resolve(store, text, now()).map(|found| {
        global.clocks.used(&found);
        found.seq
    });
    match found {
        Ok(Seq::ZERO) if is_time => Err(Failure::not_found(format!("nothing had been recorded at {text}")).hint(
            "times of the whole store are when things were recorded or imported; a session that is named goes by its host's clock",
        )),
        Err(error @ WhenError::NeedsSession { .. }) => match session.cloned().map_or_else(|| only(store), |it| Ok(Some(it)))? {
            Some(session) => of_session(&session),
            None => Err(find::point_failure(error)),
        },
        found => found.map_err(find::point_failure),
    }
}

/// The only session, if there is one; subagents do not count.
fn only(store: &Store) -> Result<Option<StreamName>, Failure> {
    let mut tops = store.stream_names()?;
    tops.retain(|name| name.scope == Scope::Session && name.parent.is_none());
    Ok(tops.pop().filter(|_| tops.is_empty()))
}

/// The last seq that a command with `--at` reads; `None` without it.
pub(crate) fn end(
    store: &Store,
    global: &Global,
    session: Option<&StreamName>,
) -> Result<Option<Seq>, Failure> {
    global.at.as_ref().map(|text| seq(store, global, text, session)).transpose()
}

/// Says once that a time is yet to come: then the newest state is shown.
pub(crate) fn forewarn(global: &Global, output: &Output) {
    let now = now();
    // The command that reads up to the point refuses a text that it cannot parse.
    if let Some(Point::Time(time)) = global.at.as_deref().and_then(|text| when::parse(text, now).ok())
        && time > now
    {
        output
            .note(format!("note: {} is yet to come; this is how it stands now", crate::describe::time(time)));
    }
}

/// Refuses `--at`: commands about the store itself show no past of it.
pub(crate) fn refuse_now(global: &Global, verb: &str) -> Result<(), Failure> {
    match &global.at {
        Some(_) => Err(Failure::usage(format!(
            "{verb} looks at the store as it is; --at is for reading what was recorded"
        ))),
        None => Ok(()),
    }
}
