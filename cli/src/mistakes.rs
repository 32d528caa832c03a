//! Mistakes in the words of a command line: hints beside the message of the reader of arguments.

use acpdb_engine::text::likeness::kept_share;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::args;
use crate::output::{EscapeLevel, escape};

/// Adds the probable meaning to a refusal.
pub(crate) fn explain(error: &mut clap::Error) {
    withhold(error);
    clean(error);
    tell_of_verb(error);
    tell_of_ids(error);
    tell_of_session(error);
    tell_of_option(error);
}

/// Makes the characters visible with which a quoted word would steer the terminal.
fn clean(error: &mut clap::Error) {
    let cleaned = |text: &String| escape(text, EscapeLevel::Line).into_owned();
    let quoted: Vec<(ContextKind, ContextValue)> = error
        .context()
        .filter_map(|(kind, value)| match value {
            ContextValue::String(text) => Some((kind, ContextValue::String(cleaned(text)))),
            ContextValue::Strings(texts) => {
                Some((kind, ContextValue::Strings(texts.iter().map(cleaned).collect())))
            }
            _ => None,
        })
        .collect();
    for (kind, value) in quoted {
        error.insert(kind, value);
    }
}

/// The words of the command line after the program's name.
fn typed() -> Vec<String> {
    // A word that is not UTF-8 is no name here.
    std::env::args_os().skip(1).filter_map(|word| word.into_string().ok()).collect()
}

fn tip(error: &mut clap::Error, text: String) {
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![text.into()]));
}

fn tell_of_verb(error: &mut clap::Error) {
    if error.kind() != ErrorKind::InvalidSubcommand {
        return;
    }
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return };
    if typed().first().is_some_and(|verb| verb == "help") {
        tip(error, format!("topics: {}; acpdb --help lists the verbs", args::topics().join(", ")));
        return;
    }
    if let Some(meant) = args::moved(word) {
        error.remove(ContextKind::SuggestedSubcommand);
        tip(error, format!("did you mean 'acpdb {meant}'?"));
    }
}

/// Users do not know ids of items by heart: where an id is missing, says which verb lists ids, and how to type one, as a shell
/// drops a bare `#297`.
fn tell_of_ids(error: &mut clap::Error) {
    let missing = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(name)) if name == "--chain <ID>" => true,
        Some(ContextValue::Strings(names)) => names.iter().any(|name| is_id(name)),
        _ => false,
    };
    if missing && matches!(error.kind(), ErrorKind::InvalidValue | ErrorKind::MissingRequiredArgument) {
        tip(error, "in a shell, write 297 or '#297'; acpdb history lists ids".to_owned());
    }
}

/// Whether an argument is the id of an item or a point in time, both of which may begin with `#`.
fn is_id(name: &str) -> bool {
    ["<ID>", "<FILE|ID>", "<WHEN>", "<TO>", "<A>"].contains(&name)
}

/// `todo list 21a2`: many verbs take the session as an argument, and the others as an option.
fn tell_of_session(error: &mut clap::Error) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return };
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if error.kind() != ErrorKind::UnknownArgument
        || word.starts_with('-')
        || word.len() < 4
        || !word.chars().all(is_name)
    {
        return;
    }
    let word = word.clone();
    if args::is_of_session(&std::env::args_os().collect::<Vec<_>>()) {
        tip(error, format!("did you mean --session {word}?"));
    }
}

/// An option that a verb does not have is seldom meant as a value of it.
fn tell_of_option(error: &mut clap::Error) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return };
    if error.kind() != ErrorKind::UnknownArgument || !word.starts_with("--") {
        return;
    }
    let gone = args::gone(word);
    if gone.is_some() {
        error.remove(ContextKind::SuggestedArg);
    }
    if error.get(ContextKind::SuggestedArg).is_none() {
        error.remove(ContextKind::Suggested);
    }
    if let Some(meant) = gone {
        tip(error, format!("it is gone; {meant} does its work"));
    }
}

/// Puts the verb that is most like the typed one first.
fn nearest_first(names: &mut [String], error: &clap::Error) {
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else { return };
    let word = word.clone();
    let unlike = |name: &String| 1.0 - kept_share(name, &word);
    names.sort_by(|one, other| unlike(one).total_cmp(&unlike(other)));
}

/// Verbs that cannot be undone, or that change the kind of a store. A slip of the finger does not lead to them.
const GRAVE_VERBS: [&str; 7] = ["erase", "seal", "salvage", "rewind", "reindex", "fork", "retract"];

/// Takes grave verbs out of the suggestions for an unknown verb.
fn withhold(error: &mut clap::Error) {
    let is_grave = |name: &String| GRAVE_VERBS.contains(&name.as_str());
    match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(mut names)) => {
            names.retain(|name| !is_grave(name));
            nearest_first(&mut names, error);
            if !names.is_empty() {
                error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
            }
        }
        Some(ContextValue::String(name)) if is_grave(&name) => {}
        Some(other) => {
            error.insert(ContextKind::SuggestedSubcommand, other);
        }
        None => {}
    }
}
