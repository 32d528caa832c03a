//! Memory items: recorded, superseded, reinforced, retracted.

use super::{Cleaner, Drafter, FactFields, ForeignValues, HostFact, TextField as _};
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
    fields!(MemorySuperseded { old: memory_id, new: memory_id, reason: text });
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"memory_superseded").text(&self.old).text(&self.new).text_option(self.reason.as_ref());
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
    fields!(MemoryReinforced { id: memory_id, amount: same, at: time });
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        let at = self.at.map_or(i64::MIN, Micros::get);
        fields.tag(b"memory_reinforced").text(&self.id).number(i64::from(self.amount)).number(at);
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
    fields!(MemoryRetracted { id: memory_id, reason: text, at: time });
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        let at = self.at.map_or(i64::MIN, Micros::get);
        fields.tag(b"memory_retracted").text(&self.id).text_option(self.reason.as_ref()).number(at);
    }
}
