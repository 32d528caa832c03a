//! Messages in parts, continued, finished and given up.

use super::{Cleaner, Drafter, FactFields, ForeignValues, HostFact, TextField as _};
use crate::entry::PartEntry;
use crate::event::{self, Actor, Report, Role, Usage};

/// A message, whole or its first parts.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct MessageRecorded {
    pub key: String,
    pub role: Role,
    pub parts: Vec<PartEntry>,
    pub parent: Option<String>,
    pub hidden_from_model: bool,
    pub hidden_from_user: bool,
}

impl HostFact for MessageRecorded {
    fields!(MessageRecorded {
        key: id,
        role: same,
        parts: parts,
        parent: id,
        hidden_from_model: same,
        hidden_from_user: same,
    });

    fn revision(&self, fields: &mut FactFields) {
        let flags = [self.role as u8, u8::from(self.hidden_from_model), u8::from(self.hidden_from_user)];
        fields.tag(b"message_recorded").tag(&flags).parts(&self.parts);
    }

    fn actor(&self) -> Actor {
        match self.role {
            Role::User => Actor::User,
            Role::Assistant => Actor::Assistant,
            Role::Tool => Actor::Tool,
            Role::System => Actor::Host,
        }
    }

    fn role(&self) -> Option<Role> {
        Some(self.role)
    }
}

/// Further parts of a message.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct MessageContinued {
    pub key: String,
    pub parts: Vec<PartEntry>,
}

impl HostFact for MessageContinued {
    fields!(MessageContinued { key: id, parts: parts });

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"message_continued").parts(&self.parts);
    }

    /// A message goes on in its speaker's words. The fold knows who that is, and minds what only a user can say.
    fn speaker(&self) -> Option<Role> {
        Some(Role::User)
    }

    fn actor(&self) -> Actor {
        Actor::Assistant
    }
}

/// A message is complete, with its provider's report.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct MessageFinished {
    pub key: String,
    pub report: Report,
}

impl HostFact for MessageFinished {
    type Kept = event::MessageFinished;
    ids!(key);

    fn revision(&self, fields: &mut FactFields) {
        let Report { model, provider, request, stop_reason, service_tier, cost, usage } = &self.report;
        fields.tag(b"message_finished").text(&self.key);
        for text in [model, provider, request, stop_reason, service_tier] {
            fields.text_option(text.as_ref());
        }
        let Usage { input, output, cache_read, cache_write, cache_write_long, reasoning, searches } = *usage;
        for count in [input, output, cache_read, cache_write, cache_write_long, reasoning, *cost] {
            fields.number(count.map_or(-1, u64::cast_signed));
        }
        // Reports without searches keep the digest that they had before searches were told.
        if let Some(searches) = searches {
            fields.number(searches.cast_signed());
        }
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        let Report { model, provider, request, stop_reason, service_tier, .. } = &mut self.report;
        cleaner.texts(&mut [model, provider, request, stop_reason, service_tier]);
    }

    fn draft(&self, _: &mut dyn Drafter) -> event::MessageFinished {
        event::MessageFinished { key: self.key.clone(), report: self.report.clone() }
    }

    fn tell(kept: &event::MessageFinished, _: &mut dyn ForeignValues) -> Self {
        Self { key: kept.key.clone(), report: kept.report.clone() }
    }

    fn actor(&self) -> Actor {
        Actor::Assistant
    }
}

/// A message was given up before it was complete: its parts leave the context.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct MessageAbandoned {
    pub key: String,
}

impl HostFact for MessageAbandoned {
    fields!(MessageAbandoned { key: id });

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"message_abandoned").text(&self.key);
    }
}
