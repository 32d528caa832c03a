//! Several stores, read as one: which they are, and which of them a verb means.
//!
//! ```text
//! --db A --db B, --db FOLDER, $ACPDB_PATH=A:B --> one store:        as ever
//!                                             '-> several:
//!      a verb that lists           all of them; each row names its store
//!      one that shows one thing    the store that has it, named as laptop:812 or found by a session's name
//!      one that records, or looks at a store itself: refused, with their names
//! ```
//!
//! Verbs know of one store. Only those that list know that there may be more.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::store::{StoreMember, Stores, stores_in};
use acpdb_engine::{Error, Store};
use acpdb_query::when::{self, Point};

use crate::args::{Args, Reach};
use crate::clock::now;
use crate::commands::session;
use crate::failure::{Code, Failure};
use crate::global::Global;
use crate::output::Output;
use crate::{describe, spread, store_path, trust};

/// Most names of stores in a message.
const NAMED_COUNT_MAX: usize = 8;

/// The stores of a question that lists: one, or several that are read as one.
pub(crate) struct ReadStores {
    one: Option<Store>,
    several: Option<Stores<Failure>>,
}

impl ReadStores {
    /// Opens the store of a command, or takes several to be opened one after the other. Says what is strange about them.
    pub(crate) fn open(global: &Global, output: &Output) -> Result<Self, Failure> {
        if global.several.is_empty() {
            return Ok(Self { one: Some(store_path::read(global, output)?), several: None });
        }
        let stores = of(global)?;
        for member in stores.members() {
            let objection = trust::objection(&member.root);
            if let Some(objection) = objection.filter(|_| !trust::is_trusted(&global.settings, &member.root))
            {
                output.warn(format!("{} {objection}", member.root.display()));
            }
        }
        for copy in stores.copies() {
            output.note(format!("note: {} is left out: another of these stores holds all of it", copy.label));
        }
        for fork in stores.forks() {
            let [one, other] = &fork.labels;
            output.warn(format!(
                "{one} and {other} are one store up to {}, and went on apart: both are shown",
                fork.shared
            ));
        }
        Ok(Self { one: None, several: Some(stores) })
    }

    /// The number of stores.
    pub(crate) fn count(&self) -> usize {
        self.several.as_ref().map_or(1, |stores| stores.members().len())
    }

    /// The store at a place.
    pub(crate) fn store(&self, place: usize) -> Result<Store, Failure> {
        match (&self.one, &self.several) {
            (Some(one), _) => Ok(one.clone()),
            (None, Some(stores)) => stores.get(place),
            (None, None) => Err(Failure::not_found("there is no store")),
        }
    }

    /// The only store, if there is one.
    pub(crate) fn only(&self) -> Option<&Store> {
        self.one.as_ref()
    }

    /// The name of the store at a place; `None`: there is only one.
    pub(crate) fn label(&self, place: usize) -> Option<&str> {
        self.several.as_ref()?.members().get(place).map(|member| member.label.as_str())
    }

    /// The place of a store's name, as a cursor has it.
    pub(crate) fn place_of(&self, label: Option<u32>) -> usize {
        (0..self.count()).find(|place| self.mark(*place) == label).unwrap_or_default()
    }

    /// The name of the store at a place, as a cursor has it.
    pub(crate) fn mark(&self, place: usize) -> Option<u32> {
        self.label(place).map(|label| acpdb_query::cursor::question(&[label]))
    }

    /// An id as a command takes it: with its store's name, if there are several.
    pub(crate) fn qualified(&self, place: usize, id: &str) -> String {
        self.label(place).map_or_else(|| id.to_owned(), |label| format!("{label}:{id}"))
    }

    /// Asks each store, on all cores. Of several, one that cannot be read is told and left out; the code says so.
    pub(crate) fn each<R: Send>(
        &self,
        output: &Output,
        ask: impl Fn(&Store) -> Result<R, Failure> + Sync,
    ) -> Result<(Vec<(usize, R)>, Code), Failure> {
        if let Some(one) = &self.one {
            return Ok((vec![(0, ask(one)?)], Code::Ok));
        }
        let places: Vec<usize> = (0..self.count()).collect();
        let answers = spread::each(&places, "stores", output, |place| {
            let asked = self.store(*place).and_then(|store| {
                let answer = ask(&store)?;
                Ok((answer, store.damage_met()))
            });
            Ok::<_, Error>(asked)
        })?;
        let (mut found, mut failed) = (Vec::new(), None);
        for (place, answer) in answers.into_iter().enumerate() {
            let label = self.label(place).unwrap_or_default();
            match answer {
                Ok((answer, damage)) => {
                    for line in &damage {
                        output.left_out(&format!("{label}: {line}"));
                    }
                    found.push((place, answer));
                }
                Err(failure) => {
                    output.warn(format!("{label} is left out: {}", failure.message));
                    failed.get_or_insert(failure.in_place(label));
                }
            }
        }
        match failed {
            Some(failure) if found.is_empty() => Err(failure),
            Some(_) => Ok((found, Code::Partial)),
            None => Ok((found, Code::Ok)),
        }
    }
}

/// The last seq of a store that a question over several reads; `None`: nothing had been recorded by then.
pub(crate) fn end(store: &Store, moment: Option<Micros>) -> Result<Option<Seq>, Failure> {
    let end = match moment {
        Some(moment) => store.seq_at(moment)?,
        None => store.head()?,
    };
    Ok(Some(end).filter(|end| *end > Seq::ZERO))
}

/// The time of `--at`: over several stores, no seq, turn or mark means anything.
pub(crate) fn moment(global: &Global) -> Result<Option<Micros>, Failure> {
    let Some(text) = &global.at else { return Ok(None) };
    if let Ok(Point::Time(time)) = when::parse(text, now()) {
        return Ok(Some(time));
    }
    let labels = labels(&of(global)?);
    let first = labels.first().map_or("STORE", String::as_str);
    let failure = Failure::usage(format!("--at: {text:?} is a point of one store, and there are several"));
    Err(failure.hint(format!("give a time, or name the store: --at {first}:{text}")))
}

/// As [`moment`], and none where there is only one store.
pub(crate) fn moment_of(global: &Global, stores: &ReadStores) -> Result<Option<Micros>, Failure> {
    if stores.only().is_some() { Ok(None) } else { moment(global) }
}

fn of(global: &Global) -> Result<Stores<Failure>, Failure> {
    let open = |folder: &Path| {
        let builder = store_path::other(folder)?.read_only();
        builder.open().map_err(Failure::from)
    };
    let several = global.several.clone();
    // The key that is named is for a store that is named alone.
    Stores::new(several, open)
}

fn labels(stores: &Stores<Failure>) -> Vec<String> {
    stores.members().iter().map(|member| member.label.clone()).collect()
}

fn listed(labels: &[String]) -> String {
    let more = if labels.len() > NAMED_COUNT_MAX { ", .." } else { "" };
    let first: Vec<&str> = labels.iter().take(NAMED_COUNT_MAX).map(String::as_str).collect();
    format!("{}{more}", first.join(", "))
}

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
    let chosen = match args.verb.reach() {
        Reach::All => return Ok(()),
        Reach::AllOr(names) => {
            let stores = of(&args.global)?;
            match named(&stores, &names, args.global.at.as_deref())? {
                Some(chosen) => chosen,
                None => return Ok(()),
            }
        }
        Reach::One(names) => {
            let stores = of(&args.global)?;
            match named(&stores, &names, args.global.at.as_deref())? {
                Some(chosen) => chosen,
                None => {
                    let newest = newest(&stores)?;
                    args.global.chosen = Some(format!(
                        "note: of {}, {} has the newest session",
                        in_words(stores.members().len()),
                        newest.label
                    ));
                    args.global.db = Some(newest.root.clone());
                    args.global.several.clear();
                    return Ok(());
                }
            }
        }
        Reach::Apart => {
            let labels = labels(&of(&args.global)?);
            let failure = Failure::usage(format!(
                "this verb works with one store, and these are {}: {}",
                labels.len(),
                listed(&labels)
            ));
            return Err(failure.hint("name one folder with --db"));
        }
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
                        .take(NAMED_COUNT_MAX)
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

/// A row with the name of its store.
pub(crate) fn with_store(mut row: serde_json::Value, label: Option<&str>) -> serde_json::Value {
    if let (Some(label), Some(fields)) = (label, row.as_object_mut()) {
        fields.insert("store".to_owned(), label.into());
    }
    row
}

/// Stores in words.
pub(crate) fn in_words(count: usize) -> String {
    describe::count(count as u64, "store")
}
