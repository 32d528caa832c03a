//! Which store a command means, where several are named.
//!
//! ```text
//! --db A --db B, --db FOLDER, $ACPDB_PATH=A:B --> one store:        as ever
//!                                             '-> several:
//!      a verb that lists           all of them
//!      one that shows one thing    the store that has it, named as laptop:812 or found by a session's name
//!      one that records, or looks at a store itself: refused, with their names
//! ```

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use acpdb_engine::ids::Seq;
use acpdb_engine::store::{StoreMember, Stores, stores_in};

use crate::args::{Args, Reach};
use crate::commands::session;
use crate::failure::Failure;
use crate::global::Global;
use crate::several::{in_words, labels, listed, of};
use crate::store_path;

/// Most forms of a name that a hint tells.
const FORM_COUNT_MAX: usize = 8;

/// Finds the stores that the words name, and the one that the verb means if it knows of one only. `words` are those of the command line.
pub(crate) fn settle(args: &mut Args, words: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let (one, several) = places(&args.global.named)?;
    args.global.db = one;
    if several.is_empty() {
        return Ok(());
    }
    if let [only] = several.as_slice() {
        if args.verb.reach() == Reach::Apart {
            let failure = Failure::usage("the folder that is named is no store, but holds one");
            return Err(failure.hint(format!("if that is meant: --db {}", store_path::quoted(only))));
        }
        args.global.db = Some(only.clone());
        return Ok(());
    }
    args.global.db = None;
    args.global.several = several;
    let (names, is_list) = match args.verb.reach() {
        Reach::All => return Ok(()),
        Reach::AllOr(names) => (names, true),
        Reach::One(names) => (names, false),
        Reach::Apart => return Err(apart(&args.global)),
    };
    let stores = of(&args.global)?;
    let Some(chosen) = named(&stores, &names, args.global.at.as_deref())? else {
        if !is_list {
            let (newest, count) = (newest(&stores)?, in_words(stores.members().len()));
            args.global.chosen = Some(format!("note: of {count}, {} has the newest session", newest.label));
            args.global.db = Some(newest.root.clone());
            args.global.several.clear();
        }
        return Ok(());
    };
    let words = words.into_iter().map(|word| {
        let renamed = chosen.renamed.iter().find(|(from, _)| word == OsStr::new(from));
        renamed.map_or(word, |(_, to)| OsString::from(to))
    });
    // The words were read once already; only names of stores are gone from them.
    *args = Args::read(words).map_err(|error| Failure::usage(error.to_string()))?;
    args.global.db = Some(chosen.folder);
    Ok(())
}

/// The failure of a verb that works with one store.
fn apart(global: &Global) -> Failure {
    match of(global) {
        Ok(stores) => {
            let labels = labels(&stores);
            let told = format!(
                "this verb works with one store, and these are {}: {}",
                labels.len(),
                listed(&labels)
            );
            Failure::usage(told).hint("name one folder with --db")
        }
        Err(failure) => failure,
    }
}

/// The store that a verb means, and the words that named it, with and without its name.
struct Chosen {
    folder: PathBuf,
    renamed: Vec<(String, String)>,
}

/// The one store that some names of sessions and items mean; `None`: no store has a name of them.
fn named(stores: &Stores<Failure>, names: &[&str], at: Option<&str>) -> Result<Option<Chosen>, Failure> {
    let mut renamed = Vec::new();
    let mut chosen: Option<usize> = None;
    for name in names.iter().copied().chain(at) {
        let Some((label, rest)) = name.split_once(':') else { continue };
        let Some(place) = stores.labelled(label).filter(|_| !rest.is_empty()) else { continue };
        if chosen.is_some_and(|chosen| chosen != place) {
            return Err(Failure::usage(format!("{name:?} names another store than the words before it")));
        }
        chosen = Some(place);
        renamed.push((name.to_owned(), rest.to_owned()));
    }
    if chosen.is_none() {
        for name in names {
            let holding = holding(stores, name)?;
            match holding.as_slice() {
                [] => {}
                [only] => chosen = chosen.or(Some(*only)),
                several => {
                    let label =
                        |place: &usize| stores.members().get(*place).map_or("", |member| &member.label);
                    let forms: Vec<String> = several
                        .iter()
                        .take(FORM_COUNT_MAX)
                        .map(|place| format!("{}:{name}", label(place)))
                        .collect();
                    let failure = Failure::usage(format!("{name:?} is in {} stores", several.len()));
                    return Err(failure.hint(format!("name the store, too: {}", forms.join(" or "))));
                }
            }
        }
    }
    let folder = chosen.and_then(|place| stores.members().get(place)).map(|member| member.root.clone());
    Ok(folder.map(|folder| Chosen { folder, renamed }))
}

/// The places of the stores that have a session or an item of this name.
fn holding(stores: &Stores<Failure>, name: &str) -> Result<Vec<usize>, Failure> {
    let mut found = Vec::new();
    if matches!(name, "latest" | "head") {
        return Ok(found);
    }
    for place in 0..stores.members().len() {
        let store = stores.get(place)?;
        let is_item = || acpdb_query::find(&store, name, None).is_ok();
        if session::by_place(&store, name)?.is_some() || is_item() {
            found.push(place);
        }
    }
    Ok(found)
}

/// The store with the newest session.
fn newest(stores: &Stores<Failure>) -> Result<&StoreMember, Failure> {
    let mut newest = None;
    for place in 0..stores.members().len() {
        let store = stores.get(place)?;
        let Some(session) = store.newest_of(session::asked(&store, None)?)? else { continue };
        let ended = store.last_active(session.id, Seq::MAX)?;
        newest = newest.max(Some((ended, std::cmp::Reverse(place))));
    }
    let newest = newest.and_then(|(_, place)| stores.members().get(place.0));
    newest.ok_or_else(|| Failure::not_found("these stores hold no session"))
}

/// The store that is named alone, and several that are named, or that lie in a folder that is named.
fn places(named: &[PathBuf]) -> Result<(Option<PathBuf>, Vec<PathBuf>), Failure> {
    let mut all = Vec::new();
    for path in named {
        let of_variable = std::env::var_os("ACPDB_PATH").is_some_and(|value| value == path.as_os_str());
        if of_variable && path.symlink_metadata().is_err() {
            all.extend(std::env::split_paths(path).filter(|path| !path.as_os_str().is_empty()));
        } else {
            all.push(path.clone());
        }
    }
    let mut several = Vec::new();
    for path in &all {
        let is_store = path.join("acpdb.json").symlink_metadata().is_ok();
        let below = if is_store || !path.is_dir() { Vec::new() } else { stores_in(path)? };
        if below.is_empty() { several.push(path.clone()) } else { several.extend(below) }
    }
    match (all.as_slice(), several.as_slice()) {
        ([], _) => Ok((None, Vec::new())),
        ([named], [found]) if named == found => Ok((Some(named.clone()), Vec::new())),
        _ => Ok((None, several)),
    }
}
