//! Which session a command means: a name, an id, a part of one, `latest`, or none.

use std::collections::BTreeSet;
use std::path::Path;

use acpdb_engine::event::Scope;
use acpdb_engine::index::{NAME_BYTES_MAX, NameKind};
use acpdb_engine::{Store, store::StreamName};
use acpdb_query::filter::words;

use super::lines::{clip, one_line};
use super::{Failure, Output};

/// Widest title in a list of sessions that one name could mean, in columns.
const TITLE_WIDTH: usize = 56;

/// The named session: by its id, a unique prefix of it, or `latest`.
pub(crate) fn find(store: &Store, text: &str) -> Result<StreamName, Failure> {
    if text == "latest" {
        return Ok(choose(store, None)?.session);
    }
    // A list prints an id in this form if it has no room for it.
    if let Some((head, tail)) = text.split_once('…') {
        return clipped(store, text, (head, tail));
    }
    store.find_stream(text).map_err(|error| match error {
        acpdb_engine::Error::Ambiguous { name, candidates } => several(store, &name, &candidates),
        acpdb_engine::Error::NotFound { nearest: None, .. } => Failure::from(error)
            .hint("acpdb sessions lists them, acpdb sessions title:WORD those with a word in their titles"),
        error => error.into(),
    })
}

/// The session whose id begins with `head` and ends with `tail`.
fn clipped(store: &Store, text: &str, (head, tail): (&str, &str)) -> Result<StreamName, Failure> {
    let mut all = store.stream_names()?;
    all.retain(|name| {
        name.scope == Scope::Session && name.name.starts_with(head) && name.name.ends_with(tail)
    });
    match all.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(Failure::not_found(format!("no session {text:?} in this store"))
            .hint("acpdb sessions lists them")),
        many => {
            let names: Vec<String> = many.iter().map(|name| name.name.clone()).collect();
            Err(several(store, text, &names))
        }
    }
}

/// The failure for a prefix that several sessions share: lists them, with their titles. Sessions of one name are told apart by
/// their hosts, and named by their streams.
fn several(store: &Store, text: &str, candidates: &[String]) -> Failure {
    let mut message = format!("{text:?} names {} sessions:", candidates.len());
    // A session that cannot be read has no title; its reader tells of the error.
    let all = store.stream_names().unwrap_or_default();
    let mut is_shared = false;
    let mut told = BTreeSet::new();
    for candidate in candidates.iter().filter(|name| told.insert(*name)) {
        let named: Vec<&StreamName> = all.iter().filter(|name| name.name == *candidate).collect();
        for stream in &named {
            // A session that cannot be read has no title.
            let title = acpdb_query::titles::title_of(store, stream, None).ok().flatten();
            let title = clip(&title.unwrap_or_default(), TITLE_WIDTH);
            let name = if named.len() > 1 {
                is_shared = true;
                format!("{}  {}", stream.id.to_hex(), one_line(&stream.host))
            } else {
                one_line(candidate)
            };
            message.push_str(format!("\n  {name}  {title}").trim_end_matches(' '));
        }
    }
    Failure::usage(message).hint(if is_shared {
        "give the digits before the host in place of the name"
    } else {
        "give more of the id"
    })
}

/// The named session, if a name is given.
pub(crate) fn named(store: &Store, name: Option<&str>) -> Result<Option<StreamName>, Failure> {
    name.map(|name| find(store, name)).transpose()
}

/// Fewest characters of a prefix that names a session as a bare word.
const BEGINNING_LENGTH_MIN: usize = 4;
/// Names near a word that an index is asked for; if it knows more, all sessions are looked at.
const NEAR_COUNT_MAX: usize = 64;

/// The session that a bare word names: `latest`, an id, or a prefix of only one id.
pub(crate) fn by_place(store: &Store, word: &str) -> Result<Option<StreamName>, Failure> {
    if let Some(ends) = word.split_once('…') {
        // A word that names no session is a text.
        return Ok(clipped(store, word, ends).ok());
    }
    if word.is_empty() || word.contains(['"', '(', ')', '!', ' ']) || is_condition(word) {
        return Ok(None);
    }
    if word == "latest" {
        return find(store, word).map(Some);
    }
    // Most words name no session, and an index knows that without a look at all sessions.
    if word.len() < NAME_BYTES_MAX && !is_stream_id(word) && !may_begin_a_name(store, word)? {
        return Ok(None);
    }
    let is_long = word.chars().count() >= BEGINNING_LENGTH_MIN;
    match store.find_stream(word) {
        Ok(found) if found.scope == Scope::Session && (is_long || found.name == word) => Ok(Some(found)),
        Ok(_) | Err(acpdb_engine::Error::NotFound { .. } | acpdb_engine::Error::Ambiguous { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the name of a session may begin with a word. An index that is behind knows most sessions; the few others are looked at.
fn may_begin_a_name(store: &Store, word: &str) -> Result<bool, Failure> {
    if let Some(known) = store.named(NameKind::Session, word, true, 1) {
        return Ok(!known.is_empty());
    }
    let Some(streams) = store.bearers(NameKind::Session, word, NEAR_COUNT_MAX)? else { return Ok(true) };
    let names = store.stream_names_among(&streams.into_iter().collect())?;
    Ok(names.iter().any(|stream| stream.name.starts_with(word)))
}

/// Whether a text has the form of a stream's own id.
fn is_stream_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The sessions of a question: the named one, else all, with subagents and forks.
pub(crate) fn asked(store: &Store, named: Option<StreamName>) -> Result<Vec<StreamName>, Failure> {
    if let Some(named) = named {
        return Ok(vec![named]);
    }
    let all = store.stream_names()?.into_iter();
    Ok(all.filter(|stream| stream.scope == Scope::Session).collect())
}

/// The named session, else the only one, else the newest one of the current folder's project, else the newest one; if there was a
/// choice, stderr tells which session it is.
pub(crate) fn default_session_noted(
    store: &Store,
    given: Option<&str>,
    output: &Output,
) -> Result<StreamName, Failure> {
    let Choice { session, of, total } = choose(store, given)?;
    if total > 1 && given.is_none() {
        let which = match of {
            Some(here) => format!("the newest of {here} sessions of this folder (and {total} in all)"),
            None => format!("the newest of {total} sessions"),
        };
        output.note(format!(
            "note: {which}, {}; name another with --session ID (acpdb sessions lists them)",
            session.name
        ));
    }
    Ok(session)
}

/// A session, and the number of sessions from which it was chosen.
struct Choice {
    session: StreamName,
    /// Sessions of the current folder's project, if the project decided.
    of: Option<usize>,
    total: usize,
}

fn choose(store: &Store, given: Option<&str>) -> Result<Choice, Failure> {
    if let Some(given) = given.filter(|given| *given != "latest") {
        return Ok(Choice { session: find(store, given)?, of: None, total: 1 });
    }
    let mut from = store.stream_names()?;
    from.retain(|name| name.scope == Scope::Session);
    if from.iter().any(|name| name.parent.is_none()) {
        from.retain(|name| name.parent.is_none());
    }
    let total = from.len();
    let moves = store.project_moves()?;
    let here = std::env::current_dir().map(|here| match here.to_str() {
        Some(text) => of_folder(&from, Path::new(&*moves.folder(text))),
        None => of_folder(&from, &here),
    });
    let here = here.unwrap_or_default();
    let of = Some(here.len()).filter(|count| (1..total).contains(count));
    let newest = store.newest_of(if here.is_empty() { from } else { here })?;
    let session = newest.ok_or_else(|| {
        Failure::not_found("the store holds no session")
            .hint("read some with `acpdb import`, or try `acpdb demo`")
    })?;
    Ok(Choice { session, of, total })
}

/// The sessions that began in a folder or below it, else those that began in the nearest folder above it.
fn of_folder(sessions: &[StreamName], here: &Path) -> Vec<StreamName> {
    let folder = |name: &StreamName| {
        name.folder.as_deref().map(Path::new).filter(|it| it.is_absolute()).map(Path::to_owned)
    };
    let nearest = sessions
        .iter()
        .filter_map(folder)
        .filter(|it| here.starts_with(it))
        .max_by_key(|it| it.as_os_str().len());
    let is_below = |name: &&StreamName| folder(name).is_some_and(|it| it.starts_with(here));
    let below: Vec<StreamName> = sessions.iter().filter(is_below).cloned().collect();
    match nearest {
        Some(nearest) if below.is_empty() => {
            sessions.iter().filter(|name| folder(name).as_ref() == Some(&nearest)).cloned().collect()
        }
        _ => below,
    }
}

/// Whether a word is a condition, such as `tool:read`. Names of sessions may have a colon, too: `derived:21a2`.
pub(crate) fn is_condition(word: &str) -> bool {
    let field = word.trim_start_matches(['-', '!']).split_once(':').map(|(field, _)| field.to_lowercase());
    field.is_some_and(|field| words::field(&field).is_some())
}

#[cfg(test)]
mod tests {
    use super::is_condition;

    #[test]
    fn a_word_with_a_field_of_the_language_is_a_condition() {
        for (word, is) in [
            ("tool:read", true),
            ("-Tool:read", true),
            ("!session:derived:21a2", true),
            ("derived:21a2", false),
            ("21a2", false),
            (":read", false),
        ] {
            assert_eq!(is_condition(word), is, "{word}");
        }
    }
}
