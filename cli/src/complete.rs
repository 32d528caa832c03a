//! Completions for a shell: sessions, ids, settings. The shell calls this program, which looks into the store.
//!
//! ```text
//! acpdb completions bash     the script that makes the shell call us
//! ACPDB_COMPLETE=bash acpdb -- acpdb explain '#1       what it calls then
//! ```
//!
//! Nothing is made or recovered here, and nothing is said: a store that cannot be read gives no candidates.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use acpdb_engine::event::Scope;
use acpdb_engine::{At, Store, View, store::StreamName};
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate};

use crate::global::Global;
use crate::output::{EscapeLevel, escape};
use crate::store_path;

/// The variable by which a shell asks.
pub(crate) const VARIABLE: &str = "ACPDB_COMPLETE";
/// Most candidates for one completion: users do not read more.
const CANDIDATE_COUNT_MAX: usize = 200;
/// Most sessions that are searched for an id: a shell waits for the answer.
const SESSION_COUNT_MAX: usize = 32;

/// Completes a session.
pub(crate) fn sessions() -> ArgValueCompleter {
    ArgValueCompleter::new(session_candidates)
}

/// Completes an item: a seq, the hash of a call, a host's id of a call.
pub(crate) fn items() -> ArgValueCompleter {
    ArgValueCompleter::new(item_candidates)
}

/// Completes a setting.
pub(crate) fn settings() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let keys = crate::settings::KEYS.iter();
        keys.map(|key| CompletionCandidate::new(key.name).help(Some(key.about.into()))).collect()
    })
}

/// Completes a preset of policies.
pub(crate) fn presets() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        acpdb_engine::fold::policy::PRESETS.iter().map(CompletionCandidate::new).collect()
    })
}

/// Completes the name of an import format.
pub(crate) fn formats() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let formats = acpdb_hosts::import::ImportFormat::ALL.iter();
        formats.map(|format| CompletionCandidate::new(format.name())).collect()
    })
}

fn session_candidates(current: &OsStr) -> Vec<CompletionCandidate> {
    let (Some(current), Some(store)) = (current.to_str(), store()) else { return Vec::new() };
    let sessions = sessions_of(&store).into_iter();
    let sessions = sessions.filter(|stream| stream.name.starts_with(current) && is_plain(&stream.name));
    let mut all: Vec<CompletionCandidate> = sessions
        .take(CANDIDATE_COUNT_MAX)
        .map(|stream| {
            // A suggestion leaves out all that cannot be read, here and below.
            let title = acpdb_query::titles::title_of(&store, &stream, None).ok().flatten();
            let title = title.unwrap_or(stream.host);
            CompletionCandidate::new(stream.name)
                .help(Some(escape(&title, EscapeLevel::Line).into_owned().into()))
        })
        .collect();
    if "latest".starts_with(current) {
        all.push(CompletionCandidate::new("latest").help(Some("the newest session".into())));
    }
    all
}

fn item_candidates(current: &OsStr) -> Vec<CompletionCandidate> {
    let (Some(current), Some(store)) = (current.to_str(), store()) else { return Vec::new() };
    // A name that is not UTF-8 is no session's name.
    let sessions = match option(&["--session", "-s"]).and_then(|name| name.into_string().ok()) {
        Some(name) => store.find_stream(&name).into_iter().collect(),
        None => sessions_of(&store),
    };
    // Ids of any session count; users mostly mean the newest session that has such an id.
    let sessions = sessions.iter().take(SESSION_COUNT_MAX);
    // A session that cannot be read suggests nothing.
    let views = sessions.filter_map(|stream| store.view_once(stream.id, &At::Head).ok());
    views.map(|view| items_of(&view, current)).find(|found| !found.is_empty()).unwrap_or_default()
}

/// Items of a session whose seq, hash or host's id begins with `current`.
fn items_of(view: &View, current: &str) -> Vec<CompletionCandidate> {
    // In many shells `#` needs quotes; a seq is taken without it.
    let is_bare = !current.is_empty() && current.bytes().all(|byte| byte.is_ascii_digit());
    let mut all = Vec::new();
    // Repeats of a call have one hash.
    let mut known = std::collections::BTreeSet::new();
    // Users mostly mean the newest items.
    for item in view.history().iter().rev() {
        let about = item.tool.as_deref().unwrap_or("message");
        let about = match item.keys.first() {
            Some(key) => format!("{about} {key}"),
            None => about.to_owned(),
        };
        let about = escape(&about, EscapeLevel::Line).into_owned();
        let id = item.item.to_string();
        let id = if is_bare { id.trim_start_matches('#').to_owned() } else { id };
        let names = [Some(id), item.hash.clone(), item.call.as_ref().map(ToString::to_string)];
        for name in names.into_iter().flatten().filter(|name| name.starts_with(current) && is_plain(name)) {
            if !known.insert(name.clone()) {
                continue;
            }
            all.push(CompletionCandidate::new(name).help(Some(about.clone().into())));
        }
        if all.len() >= CANDIDATE_COUNT_MAX {
            break;
        }
    }
    all
}

/// Whether every shell takes a name for one plain word. The shell puts a candidate on the line as it is: an id with `$(..)`
/// in it, which a host may have recorded, would be run. Such ids are left out; they can be typed, in quotes.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:/@+,#".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_plain)
}

/// Sessions, newest first.
fn sessions_of(store: &Store) -> Vec<StreamName> {
    let mut streams = store.stream_names().unwrap_or_default();
    streams.retain(|stream| stream.scope == Scope::Session);
    streams.sort_by_key(|stream| std::cmp::Reverse(stream.head));
    streams
}

/// The store that the unfinished command line means.
fn store() -> Option<Store> {
    let db = option(&["--db"]).or_else(|| std::env::var_os("ACPDB_PATH"));
    let global = Global {
        db: db.filter(|path| !path.is_empty()).map(PathBuf::from),
        settings: crate::settings::read().unwrap_or_default(),
        ..Global::default()
    };
    // Without a store nothing is suggested. The shell asks unasked: what a stranger's store says stands in no suggestion.
    let found = store_path::find_unasked(&global).ok()?;
    let builder = Store::builder(&found.folder).registry(acpdb_hosts::registry()).read_only();
    let builder = match crate::rings::at_hand(&found.folder) {
        Some(ring) => builder.keys(ring),
        None => builder,
    };
    // A store that cannot be opened suggests nothing.
    builder.open().ok()
}

/// The value of an option in the unfinished command line.
fn option(names: &[&str]) -> Option<OsString> {
    let mut words = std::env::args_os();
    while let Some(word) = words.next() {
        if names.iter().any(|name| word == *name) {
            return words.next();
        }
        let text = word.to_str().unwrap_or_default();
        let long = names.iter().filter(|name| name.starts_with("--"));
        for name in long {
            if let Some(value) = text.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
                return Some(value.into());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    /// A session called `$(touch x)` was offered as it is, and the shell ran it with the line. It is left out now.
    #[test]
    fn only_words_that_no_shell_reads_anything_into_are_offered() {
        for name in ["ses_01", "a-b.c:d", "2024/05", "#812", "r_a1b2c", "réunion", "user@host", "a+b,c"] {
            assert!(is_plain(name), "{name:?}");
        }
        for name in [
            "$(touch x)",
            "`id`",
            "a b",
            "a;b",
            "a|b",
            "a&b",
            "a>b",
            "a\nb",
            "a\tb",
            "*",
            "?",
            "[a]",
            "{a,b}",
            "~",
            "!1",
            "'",
            "\"",
            "\\",
            "$HOME",
            "",
            "-rf",
            "--help",
            "a\u{0}b",
            "a\u{1b}b",
            "a=b",
            "%PATH%",
            "(a)",
            "^a",
            "a\u{202e}b",
            "a\u{200b}b",
            "a\u{a0}b",
        ] {
            assert!(!is_plain(name), "{name:?}");
        }
    }
}
