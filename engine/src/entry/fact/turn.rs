//! Turns, the calls of tools in them, and files that changed outside of calls.

use super::{Cleaner, Drafter, FactFields, ForeignValues, HostFact, TextField as _};
use crate::entry::{Bytes, PartEntry, TodoChangeEntry};
use crate::event::{self, Actor, FileChanger, Outcome, Role, TurnKind};

/// A step of the model, or a prompt of the user, began.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct TurnStarted {
    pub kind: TurnKind,
    pub key: String,
    pub number: Option<u32>,
}

impl HostFact for TurnStarted {
    fields!(TurnStarted { kind: same, key: id, number: same });

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"turn_started").tag(&[self.kind as u8]).text(&self.key);
        fields.number(self.number.map_or(-1, i64::from));
    }
}

/// A tool was called.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct ToolStarted {
    pub call: String,
    pub message: Option<String>,
    pub tool: String,
    pub params: Bytes,
    pub provider_signature: Option<Bytes>,
}

impl HostFact for ToolStarted {
    type Kept = event::ToolCallStarted;
    ids!(call, message);

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"tool_started").text(&self.tool).bytes(&self.params);
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.text(&mut self.tool);
        cleaner.json(&mut self.params);
    }

    fn draft(&self, drafter: &mut dyn Drafter) -> event::ToolCallStarted {
        drafter.call(self)
    }

    fn tell(kept: &event::ToolCallStarted, teller: &mut dyn ForeignValues) -> Self {
        Self {
            call: kept.call.clone(),
            message: kept.message.clone(),
            tool: kept.tool.clone(),
            params: teller.json(&kept.params),
            provider_signature: kept.provider_signature.as_ref().map(|body| teller.bytes(body)),
        }
    }

    fn actor(&self) -> Actor {
        Actor::Assistant
    }
}

/// A call ended.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct ToolFinished {
    pub call: String,
    pub outcome: Outcome,
    pub output: Vec<PartEntry>,
    pub details: Option<Bytes>,
    pub todo_change: Option<TodoChangeEntry>,
}

impl HostFact for ToolFinished {
    type Kept = event::ToolCallFinished;
    ids!(call);

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"tool_finished").tag(&[self.outcome as u8]).parts(&self.output);
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.parts(&mut self.output);
        if let Some(details) = &mut self.details {
            cleaner.json(details);
        }
        if let Some(change) = &mut self.todo_change {
            change.clean(cleaner);
        }
    }

    fn draft(&self, drafter: &mut dyn Drafter) -> event::ToolCallFinished {
        let todos = drafter.todo_update(self);
        event::ToolCallFinished {
            call: self.call.clone(),
            outcome: self.outcome,
            output: drafter.parts(&self.output, self.role()),
            details: self.details.as_ref().map(|bytes| drafter.uncounted(bytes)),
            todos,
        }
    }

    fn tell(kept: &event::ToolCallFinished, teller: &mut dyn ForeignValues) -> Self {
        // A list is found in the result again.
        let todo_change = match &kept.todos {
            Some(event::TodoUpdate::Change(change)) => Some(teller.todo_change(change)),
            _ => None,
        };
        Self {
            call: kept.call.clone(),
            outcome: kept.outcome,
            output: teller.parts(&kept.output),
            details: kept.details.as_ref().map(|body| teller.json(body)),
            todo_change,
        }
    }

    fn actor(&self) -> Actor {
        Actor::Tool
    }

    fn role(&self) -> Option<Role> {
        Some(Role::Tool)
    }
}

/// A file changed without a call that says so.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct FileChanged {
    pub path: String,
    pub by: FileChanger,
}

impl HostFact for FileChanged {
    type Kept = event::FileChanged;
    ids!();

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"file_changed").text(&self.path).tag(&[self.by as u8]);
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.text(&mut self.path);
    }

    fn draft(&self, drafter: &mut dyn Drafter) -> event::FileChanged {
        event::FileChanged { key: drafter.file(&self.path), by: self.by }
    }

    fn tell(kept: &event::FileChanged, _: &mut dyn ForeignValues) -> Self {
        Self { path: kept.key.given.clone(), by: kept.by }
    }

    fn actor(&self) -> Actor {
        Actor::User
    }
}
