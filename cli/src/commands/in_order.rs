//! Events of several stores, in order of time, then of stores, then of seqs.
//!
//! Two passes: the first notes the time and the seq of each event, the second reads the events that are shown. Times are those of the
//! hosts' clocks, and clocks of two machines are no order: the order is for reading, and nothing is concluded from it.

use std::collections::BTreeMap;

use acpdb_engine::Store;
use acpdb_engine::event::Recorded;
use acpdb_engine::ids::{ItemId, Micros, Seq};
use acpdb_query::{EventsQuestion, PageCursor};

use super::{Code, Failure, Output, ask, describe};
use crate::several::{ReadStores, lost_cursor};

/// Most stores whose names are kept.
const NAMED_STORE_COUNT: usize = 32;

/// A question over several stores.
pub(super) struct InOrder<'a> {
    pub(super) stores: &'a ReadStores,
    pub(super) reverse: bool,
    /// Only so many, from the end.
    pub(super) last: Option<usize>,
    pub(super) limit: Option<usize>,
    pub(super) after: Option<PageCursor>,
    pub(super) digest: u32,
}

/// An event's place in the order: its time, its store, its seq.
type Place = (Option<Micros>, usize, Seq);

impl InOrder<'_> {
    /// Prints events, and the cursor of the next page. `question` is that of a store; `None`: the store has nothing to say.
    pub(super) fn print(
        &self,
        question: &(dyn Fn(&Store) -> Result<Option<EventsQuestion>, Failure> + Sync),
        output: &mut Output,
        print: &mut dyn FnMut(&Recorded, &StoreNames, &mut Output) -> Result<(), Failure>,
    ) -> Result<Code, Failure> {
        let (found, code) = self.stores.each(output, |store| {
            let Some(question) = question(store)? else { return Ok(Vec::new()) };
            times(store, question)
        })?;
        let of_store = |(store, places): (usize, Vec<(Option<Micros>, Seq)>)| {
            places.into_iter().map(move |(time, seq)| (time, store, seq))
        };
        let mut places: Vec<Place> = found.into_iter().flat_map(of_store).collect();
        places.sort_unstable();
        if let Some(last) = self.last {
            // There may be fewer.
            places.drain(..places.len().saturating_sub(last));
        }
        if self.reverse {
            places.reverse();
        }
        if let Some(after) = self.after {
            let is_end =
                |(_, store, seq): &Place| self.stores.mark(*store) == after.store && *seq == after.after.seq;
            let end = places.iter().position(is_end).ok_or_else(lost_cursor)?;
            places.drain(..=end);
        }
        let next = self.limit.filter(|limit| *limit < places.len()).and_then(|limit| {
            places.truncate(limit);
            let (_, store, seq) = *places.last()?;
            let after = ItemId { seq, part: 1 };
            Some(PageCursor { at: Seq::ZERO, after, question: self.digest, store: self.stores.mark(store) })
        });
        if places.is_empty() {
            output.note("0 events matched");
        }
        let mut names: BTreeMap<usize, StoreNames> = BTreeMap::new();
        for (_, store, seq) in places {
            if names.len() >= NAMED_STORE_COUNT && !names.contains_key(&store) {
                names.clear();
            }
            let of_store = match names.entry(store) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(free) => {
                    free.insert(StoreNames::new(self.stores.store(store)?, self.stores.label(store)))
                }
            };
            // It was read a moment ago; an erasure may have come between.
            if let Some(recorded) = of_store.store.event(seq)? {
                print(&recorded, of_store, output)?;
            }
        }
        ask::next_page(next, output)?;
        Ok(code)
    }
}

/// A store, its name, and the names of its streams.
pub(super) struct StoreNames {
    pub(super) store: Store,
    /// The store's name, where there are several.
    pub(super) label: Option<String>,
    pub(super) streams: describe::StreamNames,
}

impl StoreNames {
    pub(super) fn new(store: Store, label: Option<&str>) -> Self {
        let streams = describe::StreamNames::new(&store);
        Self { store, label: label.map(str::to_owned), streams }
    }
}

/// The times and seqs of the events that match. Damage is noted by the store, and left out.
fn times(store: &Store, question: EventsQuestion) -> Result<Vec<(Option<Micros>, Seq)>, Failure> {
    let names = describe::StreamNames::new(store);
    let mut found = Vec::new();
    for recorded in acpdb_query::events(store, question)? {
        match recorded {
            Ok(recorded) => found.push((names.time(&recorded), recorded.seq)),
            Err(acpdb_engine::Error::Corrupt { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}
