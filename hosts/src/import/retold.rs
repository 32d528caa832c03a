//! Facts that a host tells again, gathered so that each is handed out once.
//!
//! ```text
//! records -> tell -> [first place of each fact, as it was told last] -> take -> records
//! ```
//!
//! A log of Gemini CLI writes a message anew as it goes on. Handed out line by line, each import of the file would revise the facts of
//! such a message back and forth.

use std::collections::{BTreeSet, HashMap};

use acpdb_engine::entry::Entry;

/// Facts that are handed out each once, where it was told first, as it was told last.
///
/// [`Retold::take`] may be called while a file still grows. What it then gives are the facts that are new or were told again
/// since: the same that an import of the file as it is now would add. Memory: all facts that were told.
///
/// ```
/// use acpdb_engine::entry::Entry;
/// use acpdb_hosts::import::Retold;
///
/// let record = |text: &str| vec![Entry::host_record(text, None).origin("line:1")];
/// let mut retold = Retold::default();
/// retold.tell(record("first"), 10);
/// retold.tell(record("second"), 20);
/// assert_eq!(retold.take(), [(record("second"), 10)]);
/// assert!(retold.take().is_empty());
/// ```
#[derive(Debug, Default)]
pub struct Retold {
    /// All facts, record by record, with the offset after the record.
    records: Vec<(Vec<Entry>, u64)>,
    /// Where a fact of this origin was told first: its record, and its place there.
    places: HashMap<String, (usize, usize)>,
    /// Facts that were not handed out as they are now.
    due: BTreeSet<(usize, usize)>,
}

impl Retold {
    /// Takes in the facts of one record, which ends at `offset` of the input.
    ///
    /// A fact without an origin is never told again. Of a fact that was told before only the content counts: its time and its wire
    /// stay those of the first.
    pub fn tell(&mut self, entries: Vec<Entry>, offset: u64) {
        let record = self.records.len();
        let mut new: Vec<Entry> = Vec::with_capacity(entries.len());
        for entry in entries {
            let here = (record, new.len());
            let place = entry
                .origin
                .as_ref()
                .map_or(here, |origin| *self.places.entry(origin.clone()).or_insert(here));
            self.due.insert(place);
            if place == here {
                new.push(entry);
            } else if place.0 == record {
                if let Some(first) = new.get_mut(place.1) {
                    first.fact = entry.fact;
                }
            } else if let Some(first) =
                self.records.get_mut(place.0).and_then(|(told, _)| told.get_mut(place.1))
            {
                first.fact = entry.fact;
            }
        }
        self.records.push((new, offset));
    }

    /// Hands out what is due, in the order in which it was told first, with the offset after each record.
    pub fn take(&mut self) -> Vec<(Vec<Entry>, u64)> {
        let mut out: Vec<(usize, Vec<Entry>, u64)> = Vec::new();
        for (record, place) in std::mem::take(&mut self.due) {
            let Some((told, offset)) = self.records.get(record) else { continue };
            let Some(entry) = told.get(place) else { continue };
            match out.last_mut() {
                Some((last, entries, _)) if *last == record => entries.push(entry.clone()),
                _ => out.push((record, vec![entry.clone()], *offset)),
            }
        }
        out.into_iter().map(|(_, entries, offset)| (entries, offset)).collect()
    }
}
