//! Memory items: recorded, superseded, reinforced, retracted.

use super::{Cleaner, Drafter, FactFields, ForeignValues, HostFact, Ids as _};
use crate::entry::MemoryEntry;
use crate::event;
use crate::ids::Micros;

impl HostFact for MemoryEntry {
    type Kept = event::MemoryRecorded;
    ids!(id, replaces);
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"memory").tag(&[self.kind as u8]).text(&self.category);
        fields.text_option(self.key.as_ref()).text_option(self.subject.as_ref()).text(&self.value);
        fields.text_option(self.rationale.as_ref()).list(&self.alternatives).list(&self.related_files);
        fields.number(i64::from(self.confidence)).list(&self.replaces).list(&self.superseded_by);
        fields.number(self.lifespan.map_or(-1, |lifespan| i64::from(lifespan as u8)));
        fields.text_option(self.status.as_ref()).bytes_option(self.extra.as_ref());
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.text(&mut self.category);
        cleaner.text(&mut self.value);
        cleaner.texts(&mut [&mut self.key, &mut self.subject, &mut self.rationale, &mut self.status]);
        let lists = [&mut self.alternatives, &mut self.related_files, &mut self.superseded_by];
        for text in lists.into_iter().flatten() {
            cleaner.text(text);
        }
        if let Some(extra) = &mut self.extra {
            cleaner.json(extra);
        }
    }

    fn draft(&self, drafter: &mut dyn Drafter) -> event::MemoryRecorded {
        drafter.memory(self)
    }

    fn tell(kept: &event::MemoryRecorded, teller: &mut dyn ForeignValues) -> Self {
        teller.memory(kept)
    }
}

/// A memory item took another one's place.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct MemorySuperseded {
    pub old: String,
    pub new: String,
    pub reason: Option<String>,
}

impl HostFact for MemorySuperseded {
    type Kept = event::MemorySuperseded;
    ids!(old, new);
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"memory_superseded").text(&self.old).text(&self.new).text_option(self.reason.as_ref());
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.texts(&mut [&mut self.reason]);
    }

    fn draft(&self, drafter: &mut dyn Drafter) -> event::MemorySuperseded {
        event::MemorySuperseded {
            old: self.old.clone(),
            new: self.new.clone(),
            reason: self.reason.as_ref().map(|reason| drafter.text(reason)),
        }
    }

    fn tell(kept: &event::MemorySuperseded, teller: &mut dyn ForeignValues) -> Self {
        Self {
            old: teller.memory_id(&kept.old),
            new: teller.memory_id(&kept.new),
            reason: kept.reason.as_ref().map(|body| teller.text(body)),
        }
    }
}

/// A memory item was confirmed.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct MemoryReinforced {
    pub id: String,
    pub amount: u8,
    pub at: Option<Micros>,
}

impl HostFact for MemoryReinforced {
    type Kept = event::MemoryReinforced;
    ids!(id);
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        let at = self.at.map_or(i64::MIN, Micros::get);
        fields.tag(b"memory_reinforced").text(&self.id).number(i64::from(self.amount)).number(at);
    }

    fn clean(&mut self, _: &mut dyn Cleaner) {}

    fn draft(&self, _: &mut dyn Drafter) -> event::MemoryReinforced {
        event::MemoryReinforced { id: self.id.clone(), amount: self.amount, at: self.at }
    }

    fn tell(kept: &event::MemoryReinforced, teller: &mut dyn ForeignValues) -> Self {
        Self { id: teller.memory_id(&kept.id), amount: kept.amount, at: teller.time(kept.at) }
    }
}

/// A memory item does not hold any more.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct MemoryRetracted {
    pub id: String,
    pub reason: Option<String>,
    pub at: Option<Micros>,
}

impl HostFact for MemoryRetracted {
    type Kept = event::MemoryRetracted;
    ids!(id);
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        let at = self.at.map_or(i64::MIN, Micros::get);
        fields.tag(b"memory_retracted").text(&self.id).text_option(self.reason.as_ref()).number(at);
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.texts(&mut [&mut self.reason]);
    }

    fn draft(&self, drafter: &mut dyn Drafter) -> event::MemoryRetracted {
        event::MemoryRetracted {
            id: self.id.clone(),
            reason: self.reason.as_ref().map(|reason| drafter.text(reason)),
            at: self.at,
        }
    }

    fn tell(kept: &event::MemoryRetracted, teller: &mut dyn ForeignValues) -> Self {
        Self {
            id: teller.memory_id(&kept.id),
            reason: kept.reason.as_ref().map(|body| teller.text(body)),
            at: teller.time(kept.at),
        }
    }
}
