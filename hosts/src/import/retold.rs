//! Facts that a host tells again, gathered so that each is handed out once.
//!
//! ```text
//! records -> tell -> [first place of each fact, as it was told last] -> take -> records
//! ```
//!
//! A log of Gemini CLI writes a message anew as it goes on, and an export of opencode may hold one twice. Handed out as they stand
//! there, the facts of such a message would be revised back and forth by each import of the file.

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher as _, RandomState};

use acpdb_engine::entry::{Entry, Fact, WirePiece, fact};
use acpdb_engine::event::Actor;
use acpdb_engine::ids::Micros;

/// Hands out each fact once, where it was told first, as it was told last.
///
/// [`Retold::take`] may be called while a file still grows. It then gives the facts that are new or were told otherwise
/// since: the same that an import of the file as it is now would add. Memory: facts that were not handed out; of the others
/// their names, and the records of those that may still change.
///
/// ```
/// use acpdb_engine::entry::Entry;
/// use acpdb_hosts::import::Retold;
///
/// let record = |text: &str| vec![Entry::host_record(text, None).origin("line:1")];
/// let mut retold = Retold::default();
/// retold.tell(record("first"), 10);
/// retold.tell(record("second"), 20);
/// assert!(retold.take().eq([(record("second"), 10)]));
/// assert_eq!(retold.take().count(), 0);
/// ```
#[derive(Debug, Default)]
pub struct Retold {
    /// Facts with an origin, as far as they are needed to tell them again.
    told: HashMap<Box<str>, FactState>,
    /// Facts that were not handed out as they are now.
    due: BTreeMap<Place, Box<Due>>,
    record_count: usize,
    hash: RandomState,
}

/// A record, and a place in it.
type Place = (usize, usize);

/// The state of a fact that was told.
#[derive(Debug)]
struct FactState {
    /// The place at which it was told first.
    place: Place,
    /// The end of that record.
    offset: u64,
    /// Hash of its content now.
    hash: u64,
    host_time: Option<Micros>,
    actor: Option<Actor>,
    /// The record that it came with, once it was handed out.
    wire: Vec<WirePiece>,
}

/// A fact to hand out.
#[derive(Debug)]
struct Due {
    entry: Entry,
    offset: u64,
}

impl Retold {
    /// Takes in the facts of one record, which ends at `offset` of the input.
    ///
    /// A fact without an origin is never told again. Of a fact that was told before only the content counts: its time and its wire
    /// stay those of the first.
    pub fn tell(&mut self, entries: Vec<Entry>, offset: u64) {
        let record = self.record_count;
        self.record_count += 1;
        let mut new_count = 0;
        for entry in entries {
            let place = (record, new_count);
            let Some(origin) = &entry.origin else {
                new_count += 1;
                self.due.insert(place, Box::new(Due { entry, offset }));
                continue;
            };
            let hash = self.hash.hash_one(&entry.fact);
            let Some(told) = self.told.get_mut(origin.as_str()) else {
                new_count += 1;
                let Entry { host_time, actor, .. } = entry;
                let told = FactState { place, offset, hash, host_time, actor, wire: Vec::new() };
                self.told.insert(origin.as_str().into(), told);
                self.due.insert(place, Box::new(Due { entry, offset }));
                continue;
            };
            if told.hash == hash {
                continue;
            }
            told.hash = hash;
            if let Some(due) = self.due.get_mut(&told.place) {
                due.entry.fact = entry.fact;
            } else {
                let (host_time, actor, wire) = (told.host_time, told.actor, told.wire.clone());
                let entry = Entry { host_time, actor, wire, ..entry };
                self.due.insert(told.place, Box::new(Due { entry, offset: told.offset }));
            }
        }
    }

    /// Hands out the facts that are due, in the order in which they were told first, with the offset after each record.
    pub fn take(&mut self) -> impl Iterator<Item = (Vec<Entry>, u64)> {
        std::iter::from_fn(|| {
            let (place, first) = self.due.pop_first()?;
            let offset = first.offset;
            let mut entries = vec![self.handed_out(first.entry)];
            while let Some(next) = self.due.first_entry().filter(|next| next.key().0 == place.0) {
                let due = next.remove();
                entries.push(self.handed_out(due.entry));
            }
            Some((entries, offset))
        })
    }

    /// Keeps the record that handing a fact out again needs.
    fn handed_out(&mut self, entry: Entry) -> Entry {
        if !entry.wire.is_empty()
            && can_change(&entry.fact)
            && let Some(told) = entry.origin.as_deref().and_then(|origin| self.told.get_mut(origin))
        {
            told.wire.clone_from(&entry.wire);
        }
        entry
    }
}

/// Whether a fact may be told otherwise. Other facts are the same at each telling, and most records come with one of them.
fn can_change(fact: &Fact) -> bool {
    match fact {
        Fact::TurnStarted(_) | Fact::HostRecorded(_) | Fact::ContextReplaced(_) | Fact::Rewound(_) => false,
        Fact::MessageRecorded(fact::MessageRecorded { parts, .. }) => !parts.is_empty(),
        _ => true,
    }
}
