//! Queries as people type them: words of the command line to a filter, and pages.

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_engine::store::StreamName;
use acpdb_query::cursor::{self, PageCursor};
use acpdb_query::{Filter, Scanned};

use super::{Code, Failure, Global, Output, at, describe, session};
use crate::args::Ask;
use crate::several::{self, ReadStores};

/// The filter from words of the command line.
pub(crate) fn filter(words: &[String]) -> Result<Filter, Failure> {
    let text = if let [only] = words {
        quoted(only)
    } else {
        words.iter().map(|word| bracketed(quoted(word))).collect::<Vec<_>>().join(" ")
    };
    Filter::parse(&text, at::now()).map_err(|error| {
        let failure = Failure::usage(error.to_string());
        match &error.hint {
            Some(hint) => failure.hint(hint.as_str()),
            None => failure,
        }
    })
}

/// Refuses words that are no query, before a store is opened. The first one may be a session's name, see [`placed`].
pub(crate) fn check(words: &[String], session: Option<&str>) -> Result<(), Failure> {
    let read = match words.split_first() {
        Some((first, rest)) if session.is_none() && first.contains(':') && !session::is_condition(first) => {
            filter(rest)
        }
        _ => filter(words),
    };
    read.map(|_| ())
}

/// The session that a question goes to, if one is named, and the question.
///
/// Without an option, the first word names the session, if it is a session's name by [`session::by_place`]: people write `history
/// latest` and `log 21a2`. Then a note says so, since the word could also be a text to look for.
pub(crate) fn placed(
    store: &Store,
    words: &[String],
    session: Option<&str>,
    output: &Output,
) -> Result<(Option<StreamName>, Filter), Failure> {
    if session.is_some() {
        return Ok((session::named(store, session)?, filter(words)?));
    }
    let Some((first, rest)) = words.split_first() else { return Ok((None, filter(words)?)) };
    let Some(found) = session::by_place(store, first)? else { return Ok((None, filter(words)?)) };
    output.note(format!("note: session {}; search for the text with text:{first}", found.name));
    Ok((Some(found), filter(rest)?))
}

/// As [`placed`]; over several stores, no word names a session any more.
pub(crate) fn placed_in(
    stores: &ReadStores,
    words: &[String],
    session: Option<&str>,
    output: &Output,
) -> Result<(Option<StreamName>, Filter), Failure> {
    match stores.only() {
        Some(store) => placed(store, words, session, output),
        None => Ok((None, filter(words)?)),
    }
}

/// Asks each store up to the last seq that a question reads: where `--at` stands in the only store, or by a time in several. One of several in which nothing had
/// been recorded by then is left out.
pub(crate) fn each_until<R: Send>(
    stores: &ReadStores,
    global: &Global,
    only: Option<&StreamName>,
    output: &Output,
    ask: impl Fn(&Store, Seq) -> Result<R, Failure> + Sync,
) -> Result<(Vec<(usize, R)>, Code), Failure> {
    if let Some(store) = stores.only() {
        let end = at::end(store, global, only)?.unwrap_or(store.head()?);
        return Ok((vec![(0, ask(store, end)?)], Code::Ok));
    }
    let moment = several::moment(global)?;
    let (found, code) =
        stores.each(output, |store| several::end(store, moment)?.map(|end| ask(store, end)).transpose())?;
    Ok((found.into_iter().filter_map(|(place, answer)| Some((place, answer?))).collect(), code))
}

/// A shell passes `text:"connection refused"` as `text:connection refused`. That means one text; so do titles and projects.
fn quoted(word: &str) -> String {
    let plain = |rest: &str| rest.contains(' ') && !rest.contains(['"', ':', '(', ')']);
    match word.split_once(':') {
        Some((field, rest))
            if matches!(field.trim_start_matches(['-', '!']), "text" | "title" | "project")
                && plain(rest) =>
        {
            format!("{field}:\"{rest}\"")
        }
        _ => word.to_owned(),
    }
}

/// `'tool:read or tool:grep'` beside other words is one condition: the shell's quotes act as brackets.
fn bracketed(word: String) -> String {
    let count = |sign| word.matches(sign).count();
    let is_whole = count('(') == count(')') && count('"') % 2 == 0;
    if is_whole
        && word.split_whitespace().count() > 1
        && word.split_whitespace().any(|part| part.eq_ignore_ascii_case("or"))
    {
        format!("({word})")
    } else {
        word
    }
}

impl Ask {
    /// The cursor, if it belongs to this question; and the question's digest.
    pub(crate) fn page(&self, question: &[&str]) -> Result<(Option<PageCursor>, u32), Failure> {
        let digest = cursor::question(question);
        let read = |text: &String| {
            PageCursor::parse(text, digest).map_err(|error| Failure::usage(format!("--after: {error}")))
        };
        Ok((self.after.as_ref().map(read).transpose()?, digest))
    }
}

/// Tells the cursor of the next page, on stderr for people.
pub(crate) fn more(cursor: Option<PageCursor>, output: &Output) {
    if let Some(cursor) = cursor {
        output.note(format!("more: --after {cursor}"));
    }
}

/// The same, for programs as a line of its own.
pub(crate) fn next_page(cursor: Option<PageCursor>, output: &mut Output) -> Result<(), Failure> {
    if let Some(cursor) = cursor.filter(|_| output.json) {
        return output.json_object("acpdb.page/1", &serde_json::json!({"next_cursor": cursor})).map(drop);
    }
    more(cursor, output);
    Ok(())
}

/// Tells how many texts a search went through.
pub(crate) fn searched(scanned: Scanned, output: &Output) {
    if scanned.bodies > 0 {
        output.note(format!(
            "searched {} of {}, {}",
            describe::count(scanned.bodies, "text"),
            describe::count(scanned.events, "row"),
            describe::bytes(scanned.bytes)
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::{bracketed, quoted};

    /// `log 'tool:read or tool:grep' turn:3` gave every read of the session: `or` binds weaker than conditions side by side.
    #[test]
    fn what_the_shell_held_together_stays_together() {
        for (word, read) in [
            ("tool:read or tool:grep", "(tool:read or tool:grep)"),
            ("tool:read", "tool:read"),
            ("or", "or"),
            ("(tool:read or", "(tool:read or"),
            ("text:\"a or b", "text:\"a or b"),
            ("not failed", "not failed"),
        ] {
            assert_eq!(bracketed(word.to_owned()), read);
        }
    }

    #[test]
    fn a_text_that_the_shell_unquoted_is_quoted_again() {
        for (word, read) in [
            ("text:connection refused", "text:\"connection refused\""),
            ("-text:a b", "-text:\"a b\""),
            ("title:a b", "title:\"a b\""),
            ("!project:a b", "!project:\"a b\""),
            ("tool:a b", "tool:a b"),
            ("text:one", "text:one"),
            ("text:\"a b\"", "text:\"a b\""),
            ("text:a kind:tool", "text:a kind:tool"),
            ("kind:tool text:a b", "kind:tool text:a b"),
        ] {
            assert_eq!(quoted(word), read);
        }
    }
}
