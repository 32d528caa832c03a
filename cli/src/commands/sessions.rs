//! `acpdb sessions`: a line for each session; and which session other commands mean.

use acpdb_engine::event::Scope;
use acpdb_engine::{SessionSummary, Store, StreamName};

use super::describe;
use super::lines::{clip, first_prompt, one_line};
use crate::args::{Global, Sessions};
use crate::failure::{Code, Failure};
use crate::output::{Escape, Output, escape};
use crate::place;

/// Fewest characters of an id that are shown.
const ID_LENGTH_MIN: usize = 8;

pub(crate) fn run(global: &Global, args: &Sessions, output: &mut Output) -> Result<Code, Failure> {
    let store = place::read(global, output)?;
    let all = store.sessions(super::log::end(&store, global)?)?;
    let all_count = all.len();
    let wanted = |session: &SessionSummary| {
        args.host.as_ref().is_none_or(|host| *host == session.name.host)
            && (args.all || session.name.parent.is_none())
    };
    let subagents = all.iter().filter(|session| session.name.parent.is_some()).count();
    let mut sessions: Vec<SessionSummary> = all.into_iter().filter(wanted).collect();
    sessions.sort_by_key(|session| std::cmp::Reverse((session.ended, session.name.head)));
    if output.json {
        output.json_items("acpdb.sessions/1", &sessions)?;
        return Ok(Code::Ok);
    }
    if sessions.is_empty() {
        let what = args.host.as_ref().map(|host| format!(" of host {host}")).unwrap_or_default();
        output.note(format!("no sessions{what}"));
        return Ok(Code::Ok);
    }
    let lengths = id_lengths(&sessions);
    let mut table = super::table::new(
        output,
        &["id", "host", "title", "turns", "calls", "tokens", "shown", "superseded", "when"],
    );
    table.right(3..8);
    let ids = lengths.iter().copied().max().unwrap_or_default();
    let hosts = sessions.iter().map(|session| session.name.host.len()).max().unwrap_or_default().max(4);
    // What the other columns need; where that leaves little, times are cut to days.
    let others = ids + hosts + 5 + 5 + 7 + 7 + 10 + 2 * 8;
    let minutes = output.width >= others + 16 + 20;
    let when_width = if minutes { 16 } else { 10 };
    let title_width = output.width.saturating_sub(others + when_width).max(8);
    for (session, length) in sessions.iter().zip(lengths) {
        let id: String = session.name.name.chars().take(length).collect();
        let title = match &session.name.title {
            Some(title) => one_line(title),
            None => first_prompt(&store.view(session.name.id)?)?.unwrap_or_default(),
        };
        table.row([
            escape(&id, Escape::Line).into_owned(),
            escape(&session.name.host, Escape::Line).into_owned(),
            clip(&title, title_width),
            session.turns.get().to_string(),
            session.calls.to_string(),
            describe::tokens(session.tokens),
            describe::tokens(session.tokens_shown),
            session.superseded.to_string(),
            when(session, when_width),
        ]);
    }
    output.line(table.to_string())?;
    if !args.all && subagents > 0 && sessions.len() < all_count {
        output.note(format!("{} not shown; --all shows them", describe::count(subagents as u64, "subagent")));
    }
    Ok(Code::Ok)
}

/// When a session was last active: the first `width` characters of `2026-01-31 12:00`.
fn when(session: &SessionSummary, width: usize) -> String {
    let time = describe::time(session.ended);
    time.get(..width).map_or_else(|| time.clone(), |cut| cut.replace('T', " "))
}

/// How many characters of each id tell it from the others.
fn id_lengths(sessions: &[SessionSummary]) -> Vec<usize> {
    let mut sorted: Vec<&str> = sessions.iter().map(|session| session.name.name.as_str()).collect();
    sorted.sort_unstable();
    let shared = |left: &str, right: &str| {
        left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count()
    };
    sessions
        .iter()
        .map(|session| {
            let name = session.name.name.as_str();
            let place = sorted.binary_search(&name).unwrap_or_default();
            let before = place.checked_sub(1).and_then(|before| sorted.get(before));
            let after = sorted.get(place + 1);
            let near = [before, after].into_iter().flatten().map(|other| shared(name, other)).max();
            near.map_or(ID_LENGTH_MIN, |shared| (shared + 1).max(ID_LENGTH_MIN))
        })
        .collect()
}

/// The session that a text names: its id, a unique prefix of it, or `latest`.
pub(crate) fn find(store: &Store, text: &str) -> Result<StreamName, Failure> {
    store.find_stream(text).map_err(|error| {
        let hint = matches!(error, acpdb_engine::Error::NotFound { nearest: None, .. });
        let failure = Failure::from(error);
        if hint { failure.hint("acpdb sessions lists them") } else { failure }
    })
}

/// The session that is named, else the only one, else the one that was recorded last: then stderr says which it is.
pub(crate) fn default_session_noted(
    store: &Store,
    given: Option<&str>,
    output: &Output,
) -> Result<StreamName, Failure> {
    let (session, count) = choose(store, given)?;
    if count > 1 {
        output.note(format!(
            "note: the newest of {count} sessions, {}; name another (acpdb sessions lists them)",
            session.name
        ));
    }
    Ok(session)
}

/// The session, and how many there were to choose from.
fn choose(store: &Store, given: Option<&str>) -> Result<(StreamName, usize), Failure> {
    if let Some(given) = given {
        return Ok((find(store, given)?, 1));
    }
    let names = store.stream_names()?;
    let sessions: Vec<StreamName> = names.into_iter().filter(|name| name.scope == Scope::Session).collect();
    let mains: Vec<&StreamName> = sessions.iter().filter(|name| name.parent.is_none()).collect();
    let from = if mains.is_empty() { sessions.iter().collect() } else { mains };
    let newest = from.iter().max_by_key(|name| name.head).map(|name| (**name).clone());
    let newest = newest.ok_or_else(|| {
        Failure::not_found("the store holds no session")
            .hint("read some with `acpdb import`, or try `acpdb demo`")
    })?;
    Ok((newest, from.len()))
}
