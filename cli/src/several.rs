//! Several stores, read as one: each is asked, and each row names its store. Only verbs that list know that there may be more than one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::store::Stores;
use acpdb_engine::{Error, Store};
use acpdb_query::when::{self, Point};

use crate::clock::now;
use crate::failure::{Code, Failure};
use crate::global::Global;
use crate::output::Output;
use crate::{describe, spread, store_path, trust};

/// The stores of a question that lists.
pub(crate) enum ReadStores {
    One(Store),
    /// Several that are read as one.
    Several(Arc<Stores<Failure>>),
}

impl ReadStores {
    /// Opens the store of a command, or takes several to be opened one after the other. Says what is strange about them.
    pub(crate) fn open(global: &Global, output: &Output) -> Result<Self, Failure> {
        let Some(stores) = &global.several else { return Ok(Self::One(store_path::read(global, output)?)) };
        for member in stores.members() {
            if let Some(objection) = trust::open_objection(&global.settings, &member.root) {
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
        Ok(Self::Several(Arc::clone(stores)))
    }

    /// The number of stores.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Several(stores) => stores.members().len(),
        }
    }

    /// The store at a place.
    pub(crate) fn store(&self, place: usize) -> Result<Store, Failure> {
        match self {
            Self::One(one) => Ok(one.clone()),
            Self::Several(stores) => stores.get(place),
        }
    }

    /// The only store, if there is one.
    pub(crate) const fn only(&self) -> Option<&Store> {
        match self {
            Self::One(one) => Some(one),
            Self::Several(_) => None,
        }
    }

    /// The name of the store at a place; `None`: there is only one.
    pub(crate) fn label(&self, place: usize) -> Option<&str> {
        let Self::Several(stores) = self else { return None };
        stores.members().get(place).map(|member| member.label.as_str())
    }

    /// The place of a store's name, as a cursor has it.
    pub(crate) fn place_of(&self, label: Option<u32>) -> Result<usize, Failure> {
        (0..self.count()).find(|place| self.mark(*place) == label).ok_or_else(lost_cursor)
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
        if let Self::One(one) = self {
            return Ok((vec![(0, ask(one)?)], Code::Ok));
        }
        let places: Vec<usize> = (0..self.count()).collect();
        let answers = spread::each(&places, "stores", output, |place| {
            let asked = self.store(*place).map(|store| (ask(&store), store.damage_met()));
            Ok::<_, Error>(asked)
        })?;
        let (mut found, mut failed, mut missing) = (Vec::new(), None, None);
        for (place, answer) in answers.into_iter().enumerate() {
            let label = self.label(place).unwrap_or_default();
            let answer = answer.and_then(|(answer, damage)| {
                for line in &damage {
                    output.left_out(&format!("{label}: {line}"));
                }
                match answer {
                    // Another store may know it.
                    Err(failure) if failure.code == Code::NotFound => {
                        missing = missing.take().or(Some(failure));
                        Ok(None)
                    }
                    answer => answer.map(Some),
                }
            });
            match answer {
                Ok(answer) => found.extend(answer.map(|answer| (place, answer))),
                Err(failure) => {
                    output.warn(format!("{label} is left out: {}", failure.message));
                    failed = failed.or(Some(failure.in_place(label)));
                }
            }
        }
        match failed.is_some() {
            _ if found.is_empty() && (failed.is_some() || missing.is_some()) => {
                Err(missing.or(failed).unwrap_or_else(|| Failure::not_found("there is no store")))
            }
            is_part => Ok((found, if is_part { Code::Partial } else { Code::Ok })),
        }
    }
}

/// The failure of a cursor whose place is not in the answer.
pub(crate) fn lost_cursor() -> Failure {
    Failure::usage("--after: what this cursor stands behind is not in this answer; begin again without it")
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
    // A text that is no point either is told as one of a store.
    if let Ok(Point::Time(time)) = when::parse(text, now()) {
        return Ok(Some(time));
    }
    let labels = global.several.as_deref().map(labels).unwrap_or_default();
    let first = labels.first().map_or("STORE", String::as_str);
    let failure = Failure::usage(format!("--at: {text:?} is a point of one store, and there are several"));
    Err(failure.hint(format!("give a time, or name the store: --at {first}:{text}")))
}

/// As [`moment`], and none where there is only one store.
pub(crate) fn moment_of(global: &Global, stores: &ReadStores) -> Result<Option<Micros>, Failure> {
    if stores.only().is_some() { Ok(None) } else { moment(global) }
}

/// The stores of these folders, each to be opened to read. A key is for those that are encrypted.
pub(crate) fn opened_from(
    folders: Vec<PathBuf>,
    key_file: Option<&Path>,
) -> Result<Stores<Failure>, Failure> {
    let key_file = key_file.map(Path::to_owned);
    let open = move |folder: &Path| {
        let key_file = key_file.as_deref().filter(|_| crate::rings::is_encrypted(folder));
        Ok(store_path::keyed_by(folder, key_file)?.read_only().open()?)
    };
    Stores::new(folders, open)
}

pub(crate) fn labels(stores: &Stores<Failure>) -> Vec<String> {
    stores.members().iter().map(|member| member.label.clone()).collect()
}

/// A row with the name of its store, where there are several.
pub(crate) fn with_store(row: serde_json::Value, label: Option<&str>) -> serde_json::Value {
    match label {
        Some(label) => describe::with(row, serde_json::json!({ "store": label })),
        None => row,
    }
}

/// Stores in words.
pub(crate) fn in_words(count: usize) -> String {
    describe::count(count as u64, "store")
}
