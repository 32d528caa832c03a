//! Ids as people type them, for every command that takes one.

use acpdb_engine::event::Payload;
use acpdb_engine::fold::Ix;
use acpdb_engine::store::{At, StreamName};
use acpdb_engine::{Store, View};
use acpdb_query::when::{self, WhenError};
use acpdb_query::{FindError, FoundItem};

use super::{Code, Failure, Global, Output, store_path};

/// The item or event that `text` names, in one session or in all.
pub(crate) fn item(store: &Store, text: &str, session: Option<&str>) -> Result<FoundItem, Failure> {
    let session = super::session::named(store, session)?;
    acpdb_query::find(store, text, session.as_ref()).map_err(|error| {
        let is_unknown = matches!(error, FindError::NotFound { .. });
        let failure = failure(error);
        // If this look-up fails too, the first failure is the one to tell.
        match super::session::by_place(store, text) {
            Ok(Some(_)) if is_unknown => {
                failure.hint(format!("that is a session: acpdb context --session {text}"))
            }
            _ => failure,
        }
    })
}

pub(crate) fn failure(error: FindError) -> Failure {
    let message = error.to_string();
    match error {
        FindError::Store(error) => error.into(),
        FindError::NotFound { nearest: Some(nearest), .. } => {
            Failure::not_found(message).hint(format!("did you mean {nearest}?"))
        }
        FindError::NotFound { .. } => Failure::not_found(message)
            .hint("ids are a seq (812), a hash such as r_a1b2c, a call id, or the beginning of one; acpdb history lists them"),
        FindError::Ambiguous { text, candidates, count } => {
            let mut message = format!("{text:?} names {count} items:");
            for candidate in &candidates {
                message.push_str(&format!("\n  {}", super::lines::one_line(&candidate.to_string())));
            }
            if count > candidates.len() {
                message.push_str(&format!("\n  and {} more", count - candidates.len()));
            }
            Failure::new(Code::Usage, message).hint("give the seq (812), more of the id, or --session")
        }
        _ => Failure::not_found(message),
    }
}

/// The found item as of `--at`: a view and the item's index in it.
pub(crate) fn target(store: &Store, global: &Global, found: &FoundItem) -> Result<(View, Ix), Failure> {
    let Some(ix) = found.ix else {
        let seq = found.item.seq;
        let payload = store.event(seq)?.map(|recorded| recorded.event.payload);
        let kind = payload.as_ref().map_or("", Payload::label);
        let failure = Failure::not_found(format!("{seq} is a {kind} event and no item of a context"));
        let hint = match &payload {
            Some(Payload::MemoryRecorded(memory)) => {
                format!(
                    "what became of it: acpdb memory history '{}' --session '{}'",
                    memory.id, found.stream.name
                )
            }
            _ => format!(
                "the event itself: acpdb show '{seq}'; a todo's id goes with history --todo, a remembered item's with --memory"
            ),
        };
        return Err(failure.hint(hint));
    };
    let view = view(store, global, &found.stream)?;
    if view.state().item(ix, view.at()).is_none() {
        return Err(Failure::not_found(format!("{} was not recorded yet at {}", found.item, view.at())));
    }
    Ok((view, ix))
}

/// The store to read, the named session or else the default one, and its view at `--at`.
pub(crate) fn opened(
    global: &Global,
    named: Option<&str>,
    output: &Output,
) -> Result<(Store, StreamName, View), Failure> {
    let store = store_path::read(global, output)?;
    let session = super::session::default_session_noted(&store, named, output)?;
    let view = view(&store, global, &session)?;
    Ok((store, session, view))
}

/// A stream as of `--at`, or at its head.
pub(crate) fn view(store: &Store, global: &Global, stream: &StreamName) -> Result<View, Failure> {
    view_at(store, global, stream, global.at.as_deref())
}

/// A stream as of a point, or at its head.
pub(crate) fn view_at(
    store: &Store,
    global: &Global,
    stream: &StreamName,
    at: Option<&str>,
) -> Result<View, Failure> {
    let Some(at) = at else { return Ok(store.view_at(stream.id, &At::Head)?) };
    let (view, found) = when::view(store, stream, Some(at), crate::clock::now()).map_err(point_failure)?;
    global.clocks.used(&found);
    Ok(view)
}

/// A stream as of a point, alone or as one of many: then its fold is not kept, and `None` says that it was not there yet.
pub(crate) fn view_among(
    store: &Store,
    global: &Global,
    stream: &StreamName,
    at: Option<&str>,
    is_alone: bool,
) -> Result<Option<View>, Failure> {
    match if is_alone { view_at } else { once_at }(store, global, stream, at) {
        Err(failure) if failure.code == Code::NotFound && !is_alone => Ok(None),
        view => view.map(Some),
    }
}

/// As [`view_at`], with a fold that is not kept.
pub(crate) fn once_at(
    store: &Store,
    global: &Global,
    stream: &StreamName,
    at: Option<&str>,
) -> Result<View, Failure> {
    let (view, found) = when::view_once(store, stream, at, crate::clock::now()).map_err(point_failure)?;
    global.clocks.used(&found);
    Ok(view)
}

/// The failure for a point that cannot be found.
pub(crate) fn point_failure(error: WhenError) -> Failure {
    let message = error.to_string();
    match error {
        WhenError::Store(error) => error.into(),
        WhenError::Unreadable { .. } => Failure::usage(message)
            .hint(format!("give 812 (an event), t12, -3t, @compact-1, @rewind-1, {}", when::TIME_FORMS)),
        WhenError::NeedsSession { .. } => Failure::usage(format!("--at: {message}"))
            .hint("name the session, or give an event (812) or a time"),
        WhenError::NoMark { mark, .. } => {
            let kind = if mark == "rewind" { "rewound" } else { "context_replaced" };
            Failure::not_found(message).hint(format!("acpdb log kind:{kind} lists them"))
        }
        _ => Failure::new(Code::NotFound, message),
    }
}
