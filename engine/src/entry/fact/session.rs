//! Sessions, prompts, a host's changes to its context, and texts that the host or acpdb puts into the context.

use super::{Cleaner, Drafter, FactFields, ForeignValues, HostFact, TextField as _};
use crate::entry::{Bytes, ItemRef, PointRef};
use crate::event::{self, Actor, InjectedKind, ReplaceCause};
use crate::ids::StreamId;

/// Title, folder, project or the host's version changed, or the call that started the session became known.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct SessionChanged {
    pub title: Option<String>,
    pub cwd: Option<String>,
    pub project: Option<String>,
    pub host_version: Option<String>,
    pub call: Option<String>,
}

impl HostFact for SessionChanged {
    fields!(SessionChanged { title: title, cwd: name, project: name, host_version: name, call: id });
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"session_changed").text_option(self.title.as_ref()).text_option(self.cwd.as_ref());
        fields.text_option(self.project.as_ref()).text_option(self.host_version.as_ref());
        // Without it, the fact has the revision that it always had.
        if self.call.is_some() {
            fields.text_option(self.call.as_ref());
        }
    }
}

/// The session ended.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct SessionClosed {
    pub reason: Option<String>,
}

impl HostFact for SessionClosed {
    fields!(SessionClosed { reason: title });

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"session_closed").text_option(self.reason.as_ref());
    }
}

/// The prompt of the model changed: its system text, tools, name or parameters.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct PromptSet {
    pub system: Option<Bytes>,
    pub tools: Option<Bytes>,
    pub model: Option<String>,
    pub params: Option<Bytes>,
}

impl HostFact for PromptSet {
    fields!(PromptSet { system: bytes, tools: json, model: name, params: aside });

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"prompt_set").bytes_option(self.system.as_ref()).bytes_option(self.tools.as_ref());
        fields.text_option(self.model.as_ref()).bytes_option(self.params.as_ref());
    }
}

/// The host replaced its context by these items, as after a compaction.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct ContextReplaced {
    pub cause: ReplaceCause,
    pub order: Vec<ItemRef>,
    pub tokens_before: Option<u64>,
}

impl HostFact for ContextReplaced {
    fields!(ContextReplaced { cause: same, order: items, tokens_before: same });
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"context_replaced").tag(&[self.cause as u8]).items(&self.order);
        fields.number(self.tokens_before.map_or(-1, u64::cast_signed));
    }

    fn needs(&self, each: &mut dyn FnMut(&str)) {
        self.order.iter().filter_map(ItemRef::origin).for_each(each);
    }
}

/// The host itself emptied items.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct HostCleared {
    pub items: Vec<ItemRef>,
    pub calls: Vec<String>,
    pub text: Option<Bytes>,
}

impl HostFact for HostCleared {
    fields!(HostCleared { items: items, calls: id, text: bytes });
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"host_cleared").items(&self.items).list(&self.calls).bytes_option(self.text.as_ref());
    }

    fn needs(&self, each: &mut dyn FnMut(&str)) {
        self.items.iter().filter_map(ItemRef::origin).for_each(each);
    }
}

/// The session went back to an earlier point.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Rewound {
    pub to: PointRef,
}

impl HostFact for Rewound {
    fields!(Rewound { to: point });
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"rewound").point(&self.to);
    }

    fn actor(&self) -> Actor {
        Actor::User
    }

    fn needs(&self, each: &mut dyn FnMut(&str)) {
        match &self.to {
            PointRef::After(origin) | PointRef::Before(origin) => each(origin),
            PointRef::Seq(_) => {}
        }
    }
}

/// The session goes on from a point of another one.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Forked {
    pub from: StreamId,
    pub at: PointRef,
}

impl HostFact for Forked {
    type Kept = event::Forked;
    ids!();
    const IS_PLACED: bool = true;

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"forked").tag(self.from.as_bytes()).point(&self.at);
    }

    fn clean(&mut self, _: &mut dyn Cleaner) {}

    fn draft(&self, drafter: &mut dyn Drafter) -> event::Forked {
        event::Forked { from: self.from, at: drafter.point(&self.at) }
    }

    fn tell(kept: &event::Forked, teller: &mut dyn ForeignValues) -> Self {
        Self { from: kept.from, at: teller.point(Some(kept.from), kept.at) }
    }
}

/// A record of the host that is no other fact.
#[derive(Clone, PartialEq, Hash, Debug, Default)]
pub struct HostRecorded {
    pub record: String,
    pub about: Option<String>,
    pub raw: Option<Bytes>,
}

impl HostFact for HostRecorded {
    fields!(HostRecorded { record: name, about: id, raw: raw });

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"host_recorded").text(&self.record).text_option(self.about.as_ref());
        fields.bytes_option(self.raw.as_ref());
    }
}

/// A text was put into the context.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Injected {
    pub what: InjectedKind,
    pub text: Bytes,
}

impl HostFact for Injected {
    type Kept = event::Injected;
    ids!();

    fn revision(&self, fields: &mut FactFields) {
        fields.tag(b"injected").tag(&[self.what as u8]).bytes(&self.text);
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.bytes(&mut self.text);
    }

    fn draft(&self, drafter: &mut dyn Drafter) -> event::Injected {
        event::Injected { what: self.what, text: drafter.body(&self.text) }
    }

    fn tell(kept: &event::Injected, teller: &mut dyn ForeignValues) -> Self {
        Self { what: kept.what, text: teller.bytes(&kept.text) }
    }
}
