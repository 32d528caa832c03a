//! Queries as people type them: words of the command line to a filter, and pages.

use acpdb_query::cursor::{self, Cursor};
use acpdb_query::{Filter, Scanned};

use super::{Failure, Output, at, describe};
use crate::args::Ask;

/// The filter that words of the command line mean.
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

/// `text:connection refused`, as a shell hands over `text:"connection refused"`, means one text.
fn quoted(word: &str) -> String {
    let plain = |rest: &str| rest.contains(' ') && !rest.contains(['"', ':', '(', ')']);
    match word.split_once("text:") {
        Some((before @ ("" | "-" | "!"), rest)) if plain(rest) => format!("{before}text:\"{rest}\""),
        _ => word.to_owned(),
    }
}

/// `'tool:read or tool:grep'`, beside other words, is one condition: the shell's quotes are the user's brackets.
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
    /// The filter that is asked for.
    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        filter(&self.query)
    }

    /// The cursor, if it is one of this question; and the question's digest.
    pub(crate) fn page(&self, question: &[&str]) -> Result<(Option<Cursor>, u32), Failure> {
        let digest = cursor::question(question);
        let read = |text: &String| {
            Cursor::parse(text, digest).map_err(|error| Failure::usage(format!("--after: {error}")))
        };
        Ok((self.after.as_ref().map(read).transpose()?, digest))
    }
}

/// Says where the next page begins: on stderr for people.
pub(crate) fn more(cursor: Option<Cursor>, output: &Output) {
    if let Some(cursor) = cursor {
        output.note(format!("more: --after {cursor}"));
    }
}

/// Says what a search for a text went through.
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

    /// `log 'tool:read or tool:grep' turn:3` gave every read of the session: `or` binds weaker than what stands side by side.
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
            ("text:one", "text:one"),
            ("text:\"a b\"", "text:\"a b\""),
            ("text:a kind:tool", "text:a kind:tool"),
            ("kind:tool text:a b", "kind:tool text:a b"),
        ] {
            assert_eq!(quoted(word), read);
        }
    }
}
