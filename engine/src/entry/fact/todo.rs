//! Todo lists.

use super::{Cleaner, Drafter, FactFields, ForeignValues, HostFact};
use crate::entry::{Bytes, TodoChangeEntry};
use crate::event;

/// The todo list was written as a whole.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct TodosReplaced {
    pub list: Bytes,
}

impl HostFact for TodosReplaced {
    type Kept = event::TodosReplaced;
    ids!();

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"todos_replaced").bytes(&self.list);
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.json(&mut self.list);
    }

    fn draft(&self, drafter: &mut dyn Drafter) -> event::TodosReplaced {
        // Facts are never refused: bytes that are no list are recorded as an empty list, with the host's record beside it.
        event::TodosReplaced { list: drafter.todo_list(&self.list).unwrap_or_default() }
    }

    fn tell(kept: &event::TodosReplaced, teller: &mut dyn ForeignValues) -> Self {
        Self { list: teller.list(&kept.list.body) }
    }
}

/// One entry of the todo list changed.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct TodoChanged {
    pub change: TodoChangeEntry,
}

impl HostFact for TodoChanged {
    fields!(TodoChanged { change: change });
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"todo_changed").change(&self.change);
    }
}

impl TodoChangeEntry {
    pub(super) fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.text(&mut self.id);
        cleaner.texts(&mut [&mut self.status]);
        if let Some(entry) = &mut self.entry {
            cleaner.json(entry);
        }
    }
}
