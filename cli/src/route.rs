//! Which store a command means, where several are named.
//!
//! ```text
//! --db A --db B, --db FOLDER, --db URL, $ACPDB_PATH=A:B --> one store:        as ever
//!                                             '-> several:
//!      a verb that lists           all of them
//!      one that shows one thing    the store that has it, named as laptop:812 or found by a session's name
//!      one that records, or looks at a store itself: refused, with their names
//! ```

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::Error;
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::store::{StoreMember, Stores, is_store, stores_in};
use acpdb_query::when::{self, Point};

use crate::args::{Args, Naming, Reach, Verb};
use crate::clock::now;
use crate::commands::{lines::some_of, session};
use crate::failure::Failure;
use crate::global::KeyOf;
use crate::several::{in_words, labels, opened_from};
use crate::{mirrors, store_path};

/// Most forms of a name that a hint tells.
const FORM_COUNT_MAX: usize = 8;
/// Most names of stores in a message.
const NAMED_COUNT_MAX: usize = 8;

/// Finds the stores that the words name, and the one that the verb means if it knows of one only. `words` are those of the command line.
pub(crate) fn settle(args: &mut Args, words: impl IntoIterator<Item = OsString>) -> Result<(), Failure> {
    let has_url = args.global.named.iter().any(|named| mirrors::is_url(named));
    match args.verb.reach(&args.global) {
        // It checks the objects where they lie.
        Reach::Apart if has_url && matches!(args.verb, Verb::Verify(_)) => return Ok(()),
        Reach::Apart if has_url => {
            let failure = Failure::usage("this verb works with a store in a folder, and a URL is named");
            return Err(failure.hint("acpdb restore URL DIR makes a store of what is there"));
        }
        // No request is made for nothing.
        Reach::Without if has_url => return Ok(()),
        _ => {}
    }
    if has_url {
        args.global.key_of = KeyOf::Objects;
    }
    let (one, several) =
        places(&args.global.named, args.global.key_file.as_deref(), &mut args.global.warnings)?;
    args.global.db = one;
    if several.is_empty() {
        return Ok(());
    }
    let naming = match (args.verb.reach(&args.global), several.as_slice()) {
        (Reach::Without, _) => return Ok(()),
        (Reach::Apart, [only]) => {
            let failure = Failure::usage("the folder that is named is no store, but holds one");
            return Err(failure.hint(format!("if that is meant: --db {}", store_path::quoted(only))));
        }
        (Reach::Naming(_), [only]) => {
            args.global.db = Some(only.clone());
            return Ok(());
        }
        (Reach::Apart, _) => None,
        (Reach::Naming(naming), _) => Some(naming),
    };
    let stores = opened_from(several, args.global.key_file.as_deref())?;
    let chosen = match (&naming, stores.members()) {
        // The same store, named twice.
        (_, [only]) if stores.copies().is_empty() => {
            RoutedStore { member: only.clone(), renamed: Vec::new() }
        }
        (None, members) => {
            let labels = labels(&stores);
            let told = format!(
                "this verb works with one store, and these are {}: {}",
                members.len(),
                some_of(&labels, NAMED_COUNT_MAX)
            );
            return Err(Failure::usage(told).hint("name one folder with --db"));
        }
        (Some(naming), members) => match named(&stores, naming, args.global.at.as_deref())? {
            Some(chosen) => chosen,
            None if naming.lists => {
                args.global.several = Some(Arc::new(stores));
                return Ok(());
            }
            None => {
                let (newest, count) = (newest(&stores)?, in_words(members.len()));
                args.global.note = Some(format!("note: of {count}, {} has the newest session", newest.label));
                RoutedStore { member: newest, renamed: Vec::new() }
            }
        },
    };
    if !chosen.renamed.is_empty() {
        // The words were read once already; only names of stores are gone from them.
        let words = words.into_iter().map(|word| chosen.without_store(word));
        let again = Args::read(words).map_err(|error| Failure::usage(error.to_string()))?;
        let key_file = std::mem::take(&mut args.global.key_file);
        let warnings = std::mem::take(&mut args.global.warnings);
        *args = again;
        (args.global.key_file, args.global.warnings) = (key_file, warnings);
    }
    args.global.db = Some(chosen.member.root);
    args.global.store_label = Some(chosen.member.label);
    Ok(())
}

/// The store that a verb means, and the names that named it, with and without the store's.
struct RoutedStore {
    member: StoreMember,
    renamed: Vec<(String, String)>,
}

impl RoutedStore {
    /// A word of the command line without the store's name: as a word of its own, or behind `--option=` or `-o`.
    fn without_store(&self, word: OsString) -> OsString {
        // Names are texts; a word that is none names no store.
        let Some(text) = word.to_str() else { return word };
        for (from, to) in &self.renamed {
            let Some(before) = text.strip_suffix(from.as_str()) else { continue };
            let is_long = before.starts_with("--") && before.ends_with('=');
            let is_short = before.len() == 2 && before.starts_with('-');
            if before.is_empty() || is_long || is_short {
                return OsString::from(format!("{before}{to}"));
            }
        }
        word
    }
}

/// The store's name in `laptop:812`, and what stands behind it.
fn split<'n>(stores: &Stores<Failure>, name: &'n str) -> Option<(usize, &'n str)> {
    let (label, rest) = name.split_once(':')?;
    Some((stores.labelled(label).filter(|_| !rest.is_empty())?, rest))
}

/// The one store that the names of a verb mean; `None`: no store has a name of them.
fn named(
    stores: &Stores<Failure>,
    naming: &Naming<'_>,
    at: Option<&str>,
) -> Result<Option<RoutedStore>, Failure> {
    // A condition is no name, and a time is no point of a store, though a store may be called `host` or `14`.
    let word = naming.word.filter(|word| !session::is_condition(word));
    let is_time = |text: &&str| matches!(when::parse(text, now()), Ok(Point::Time(_)));
    let points = naming.points.iter().copied().chain(at).filter(|text| !is_time(text));
    let mut renamed = Vec::new();
    let mut chosen: Option<usize> = None;
    for name in naming.session.into_iter().chain(word).chain(points) {
        let Some((place, rest)) = split(stores, name) else { continue };
        if chosen.is_some_and(|chosen| chosen != place) {
            return Err(Failure::usage(format!("{name:?} names another store than the words before it")));
        }
        chosen = Some(place);
        renamed.push((name.to_owned(), rest.to_owned()));
    }
    let names = if chosen.is_none() { [naming.session, word] } else { [None; 2] };
    for name in names.into_iter().flatten() {
        if name == "latest" {
            return Ok(Some(RoutedStore { member: newest(stores)?, renamed }));
        }
        let (holding, unread) = holding(stores, name);
        match (holding.as_slice(), unread) {
            ([], Some((label, failure))) if !naming.lists => return Err(failure.in_place(label)),
            ([], _) if naming.session == Some(name) => {
                let failure = Failure::not_found(format!("no session {name:?} in these stores"));
                return Err(failure.hint("acpdb sessions lists them"));
            }
            ([], _) => {}
            ([only], _) => chosen = chosen.or(Some(*only)),
            (several, _) => {
                let label = |place: &usize| stores.members().get(*place).map_or("", |member| &member.label);
                let forms =
                    several.iter().take(FORM_COUNT_MAX).map(|place| format!("{}:{name}", label(place)));
                let forms: Vec<String> = forms.collect();
                let failure = Failure::usage(format!("{name:?} is in {} stores", several.len()));
                return Err(failure.hint(format!("name the store, too: {}", forms.join(" or "))));
            }
        }
    }
    let member = chosen.and_then(|place| stores.members().get(place)).cloned();
    Ok(member.map(|member| RoutedStore { member, renamed }))
}

/// A store that could not be read, and the reason.
type Unread = Option<(String, Failure)>;

/// The places of the stores that have a session or an item of this name; and the first store that could not be asked.
fn holding(stores: &Stores<Failure>, name: &str) -> (Vec<usize>, Unread) {
    let (mut found, mut unread) = (Vec::new(), None);
    for (place, member) in stores.members().iter().enumerate() {
        let has = stores.get(place).and_then(|store| {
            Ok(session::by_place(&store, name)?.is_some() || acpdb_query::find(&store, name, None).is_ok())
        });
        match has {
            Ok(true) => found.push(place),
            Ok(false) => {}
            Err(failure) => unread = unread.or(Some((member.label.clone(), failure))),
        }
    }
    (found, unread)
}

/// The store with the newest session, of those that can be read.
fn newest(stores: &Stores<Failure>) -> Result<StoreMember, Failure> {
    let ended = |place: usize| -> Result<Option<Option<Micros>>, Failure> {
        let store = stores.get(place)?;
        let Some(session) = store.newest_of(session::asked(&store, None)?)? else { return Ok(None) };
        Ok(Some(store.last_active(session.id, Seq::MAX)?))
    };
    let (mut newest, mut failed) = (None, None);
    for (place, member) in stores.members().iter().enumerate() {
        match ended(place) {
            Ok(Some(ended)) => newest = newest.max(Some((ended, std::cmp::Reverse(place)))),
            Ok(None) => {}
            Err(failure) => failed = failed.or(Some(failure.in_place(&member.label))),
        }
    }
    match (newest.and_then(|(_, place)| stores.members().get(place.0)), failed) {
        (Some(member), _) => Ok(member.clone()),
        (None, Some(failure)) => Err(failure),
        (None, None) => Err(Failure::not_found("these stores hold no session")),
    }
}

/// The store that is named alone, and several that are named, or that lie in a folder that is named.
fn places(
    named: &[PathBuf],
    key_file: Option<&Path>,
    warnings: &mut Vec<String>,
) -> Result<(Option<PathBuf>, Vec<PathBuf>), Failure> {
    let (mut all, mut several) = (Vec::new(), Vec::new());
    for path in named {
        if mirrors::is_url(path) {
            let (folders, told) = mirrors::folders(path, key_file)?;
            several.extend(folders);
            warnings.extend(told);
            continue;
        }
        let of_variable = std::env::var_os("ACPDB_PATH").is_some_and(|value| value == path.as_os_str());
        if of_variable && path.symlink_metadata().is_err() {
            all.extend(std::env::split_paths(path).filter(|path| !path.as_os_str().is_empty()));
        } else {
            all.push(path.clone());
        }
    }
    let has_url = !several.is_empty();
    for path in &all {
        let found = if is_store(path) || !path.is_dir() { Ok(Vec::new()) } else { stores_in(path) };
        let below = match found {
            // The verb tells of what this user may not read: it may have a verdict for it.
            Err(Error::Io { source, .. }) if source.kind() == ErrorKind::PermissionDenied => Vec::new(),
            found => found?,
        };
        if below.is_empty() { several.push(path.clone()) } else { several.extend(below) }
    }
    match (all.as_slice(), several.as_slice()) {
        ([], _) if !has_url => Ok((None, Vec::new())),
        ([named], [found]) if named == found && !has_url => Ok((Some(named.clone()), Vec::new())),
        _ => Ok((None, several)),
    }
}
