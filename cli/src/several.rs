//! Several stores, read as one: each is asked, and each row names its store. Only verbs that list know that there may be more than one.

use std::path::Path;

use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::store::Stores;
use acpdb_engine::{Error, Store};
use acpdb_query::when::{self, Point};

use crate::clock::now;
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
        if let Some(one) = &self.one {
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
    let labels = labels(&of(global)?);
    let first = labels.first().map_or("STORE", String::as_str);
    let failure = Failure::usage(format!("--at: {text:?} is a point of one store, and there are several"));
    Err(failure.hint(format!("give a time, or name the store: --at {first}:{text}")))
}

/// As [`moment`], and none where there is only one store.
pub(crate) fn moment_of(global: &Global, stores: &ReadStores) -> Result<Option<Micros>, Failure> {
    if stores.only().is_some() { Ok(None) } else { moment(global) }
}

pub(crate) fn of(global: &Global) -> Result<Stores<Failure>, Failure> {
    let key_file = global.key_file.clone();
    let open = move |folder: &Path| {
        // A key is for those that are encrypted.
        let key_file = key_file.as_deref().filter(|_| crate::rings::is_encrypted(folder));
        Ok(store_path::keyed_by(folder, key_file)?.read_only().open()?)
    };
    Stores::new(global.several.clone(), open)
}

pub(crate) fn labels(stores: &Stores<Failure>) -> Vec<String> {
    stores.members().iter().map(|member| member.label.clone()).collect()
}

pub(crate) fn listed(labels: &[String]) -> String {
    let more = if labels.len() > NAMED_COUNT_MAX { ", .." } else { "" };
    let first: Vec<&str> = labels.iter().take(NAMED_COUNT_MAX).map(String::as_str).collect();
    format!("{}{more}", first.join(", "))
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
