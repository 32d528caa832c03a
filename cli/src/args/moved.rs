//! Words that are no verbs: verbs that are gone, and names under which people look for others.

use std::ffi::OsString;

/// Such a word, the words that do its work, and whether these simply run in its place, as scripts call it.
const MOVED: &[(&str, &str, bool)] = &[
    ("accept", "memory propose --accept", false),
    ("at", "context --summary --at", true),
    ("audit", "export audit", true),
    ("check", "checkpoint check", true),
    ("discard", "context discard", false),
    ("distill", "context distill", false),
    ("head", "verify --head", true),
    ("hosts", "info --hosts", true),
    ("insights", "memory insights", false),
    ("lint", "context lint", true),
    ("list", "log --texts", true),
    ("list-sessions", "sessions", false),
    ("ls", "sessions", false),
    ("open", "ui", false),
    ("pin", "context pin", false),
    ("presets", "policy presets", false),
    ("propose", "memory propose", false),
    ("prove", "checkpoint prove", true),
    ("redo", "undo --redo", false),
    ("reindex", "doctor reindex", true),
    ("salvage", "doctor salvage", true),
    ("seal", "doctor seal", true),
    ("serve", "ui", false),
    ("status", "attach --status", false),
    ("todos", "todo list", false),
    ("trust", "config trust", true),
    ("unpin", "context unpin", false),
    ("web", "ui", false),
];

/// Options that are gone, and the words that do their work.
const GONE: &[(&str, &str)] = &[
    ("--case", "--regex '(?-i)WORD'"),
    ("--expect-file", "--expect FILE"),
    ("--missed", "--json"),
    ("--redact-entropy", "--redact-rule entropy"),
    ("--stat", "--json"),
    ("--take-prices", "acpdb config set prices FILE"),
    ("--template", "acpdb config set statusline TEXT"),
    ("--witness", "--policy FILE"),
    ("--witness-key", "--policy FILE"),
    ("--word", "--regex '\\bWORD\\b'"),
];

/// The words that do the work of an option that is gone.
pub(crate) fn gone(option: &str) -> Option<&'static str> {
    GONE.iter().find(|(name, _)| *name == option).map(|(_, meant)| *meant)
}

/// The words that do the work of this one.
pub(crate) fn moved(word: &str) -> Option<&'static str> {
    MOVED.iter().find(|(name, ..)| *name == word).map(|(_, meant, _)| *meant)
}

/// The place of the first word that is no option, nor the value of one.
pub(crate) fn verb(words: &[OsString]) -> Option<usize> {
    let mut rest = words.iter().enumerate().skip(1);
    while let Some((place, word)) = rest.next() {
        if ["--db", "--key-file", "--at", "--color", "--session", "-s"].iter().any(|option| word == option) {
            rest.next();
        } else if !word.to_string_lossy().starts_with('-') {
            return Some(place);
        }
    }
    None
}

/// Puts the words of today in the place of a verb that scripts still call by its old name.
pub(super) fn renamed(mut words: Vec<OsString>) -> Vec<OsString> {
    let Some(place) = verb(&words) else { return words };
    let named =
        |(name, _, runs): &&(&str, _, bool)| *runs && words.get(place).is_some_and(|word| word == name);
    if let Some((_, meant, _)) = MOVED.iter().find(named) {
        words.splice(place..=place, meant.split(' ').map(OsString::from));
    }
    words
}

#[cfg(test)]
mod tests {
    use clap::error::ErrorKind;

    use super::*;
    use crate::args::Args;

    #[test]
    fn an_option_that_is_gone_leads_to_another() {
        for (option, _) in GONE {
            let name = option.trim_start_matches('-');
            let mut open = vec![super::super::command()];
            while let Some(verb) = open.pop() {
                assert!(verb.get_arguments().all(|argument| argument.get_long() != Some(name)), "{option}");
                open.extend(verb.get_subcommands().cloned());
            }
        }
    }

    #[test]
    fn a_word_that_is_no_verb_leads_to_one_and_only_some_run() {
        for (word, meant, runs) in MOVED {
            let words = |text: &str| -> Vec<OsString> {
                ["acpdb", "--db", "x"].into_iter().chain(text.split(' ')).map(OsString::from).collect()
            };
            assert!(super::super::command().find_subcommand(word).is_none(), "{word} is a verb");
            let is_unknown = |error: &clap::Error| error.kind() == ErrorKind::InvalidSubcommand;
            assert_eq!(Args::read(words(word)).is_err_and(|error| is_unknown(&error)), !runs, "{word}");
            assert!(!Args::read(words(meant)).is_err_and(|error| is_unknown(&error)), "{meant}");
            assert_eq!(renamed(words(word)), words(if *runs { meant } else { word }));
        }
    }
}
