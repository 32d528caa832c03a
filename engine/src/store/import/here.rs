//! Facts of this store by their ids, and items and points as they stand here.

use crate::command::ingest_state::IngestState;
use crate::error::Error;
use crate::ids::{ItemId, Seq, StreamId};

use super::super::write::Streams;
use super::{ForeignEvent, StoreImporter};

impl StoreImporter<'_> {
    /// Asks the facts of a stream of this store.
    pub(super) fn here<T>(&self, stream: StreamId, ask: impl FnOnce(&IngestState) -> T) -> Result<T, Error> {
        let inner = &self.store.inner;
        let writers = inner.writers_of(std::iter::once(stream));
        let mut streams = Streams::lock(inner, &writers)?;
        streams.catch_up(inner)?;
        let none = IngestState::default();
        Ok(ask(streams.get(stream).map_or(&none, |writer| &writer.ingest_state)))
    }

    /// The item of this store that an item of the other one is; `None` if it is not here.
    pub(super) fn item(&self, item: ItemId) -> Result<Option<ItemId>, Error> {
        let Some(ForeignEvent { stream, fact, parts_before }) = self.places.get(&item.seq).copied() else {
            return Ok(None);
        };
        if let Some((_, seq)) = self.own.get(&fact) {
            return Ok(Some(ItemId { seq: *seq, part: item.part }));
        }
        let origin = self.store.inner.log.secret().keyed(fact);
        let place = (parts_before.saturating_add(item.part) as usize).checked_sub(1);
        self.here(stream, |here| {
            let seen = here.seen(origin)?;
            let part = place.and_then(|place| here.part_items(origin).get(place).copied());
            Some(part.unwrap_or(ItemId { seq: seen.item, part: item.part }))
        })
    }

    /// The last event of this store's stream that the other store has up to a seq of its own; zero if there is none.
    pub(super) fn point(&self, stream: StreamId, until: Seq) -> Result<Seq, Error> {
        let Some(known) = self.streams.get(&stream) else { return Ok(Seq::ZERO) };
        let end = known.facts.partition_point(|(seq, _)| *seq <= until);
        for (_, fact) in known.facts.get(..end).unwrap_or_default().iter().rev() {
            if let Some((_, seq)) = self.own.get(fact) {
                return Ok(*seq);
            }
            let origin = self.store.inner.log.secret().keyed(*fact);
            if let Some(seen) = self.here(stream, |here| here.seen(origin))? {
                return Ok(seen.seq);
            }
        }
        Ok(Seq::ZERO)
    }

    /// The id that a memory item of the other store has here. A new item whose id is taken gets another one.
    pub(super) fn memory_id(
        &mut self,
        stream: StreamId,
        id: &str,
        recorded: Option<ForeignEvent>,
    ) -> Result<String, Error> {
        let key = (stream, id.to_owned());
        if let Some(here) = self.memory.get(&key) {
            return Ok(here.clone());
        }
        let Some(ForeignEvent { fact, .. }) = recorded else { return Ok(id.to_owned()) };
        let origin = self.store.inner.log.secret().keyed(fact);
        let (seen, is_taken) = self.here(stream, |here| (here.seen(origin), here.has_memory(id)))?;
        let seq = self.own.get(&fact).map(|(_, seq)| *seq).or(seen.map(|seen| seen.seq));
        let known = match seq {
            Some(seq) => match self.store.event(seq)?.map(|recorded| recorded.event.payload) {
                Some(crate::event::Payload::MemoryRecorded(memory)) => Some(memory.id),
                _ => None,
            },
            None => None,
        };
        let mut number = 2_u32;
        let mut fresh = id.to_owned();
        let mut is_taken = is_taken && known.is_none();
        while is_taken {
            fresh = format!("{id}-{number}");
            number = number.saturating_add(1);
            is_taken = self.here(stream, |here| here.has_memory(&fresh))?
                || self.memory.iter().any(|((of, _), here)| *of == stream && *here == fresh);
        }
        let here = known.unwrap_or(fresh);
        self.memory.insert(key, here.clone());
        Ok(here)
    }
}
