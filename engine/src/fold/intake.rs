//! Taking events in: what an event adds to the facts, and the operation that the state steps by.

use std::sync::Arc;

use super::core::Op;
use super::facts::{
    Act, ActItem, Call, Eviction, Finish, Item, ItemKind, Ix, NONE, Revision, form_index, index, kind_of,
};
use super::policy::Policy;
use super::state::State;
use crate::event::{
    Body, Hidden, Part, Payload, Recorded, Role, SignatureForm, ToolCallFinished, ToolCallStarted, TurnKind,
};
use crate::ids::{ItemId, Seq};
use crate::text::Label;

impl State {
    /// The operation for an event; `None` if the stream's items do not depend on it.
    pub(super) fn take_in(&mut self, recorded: &Recorded) -> Option<Op> {
        let seq = recorded.seq;
        Some(match &recorded.event.payload {
            Payload::ToolCallStarted(started) => Op::Start(self.take_start(recorded, started)),
            Payload::ToolCallFinished(finished) => Op::Finish(self.take_finish(recorded, finished)),
            Payload::MessageRecorded(message) => {
                let number = self.facts.message(&message.key, message.role);
                if let Some(known) = self.facts.messages.get_mut(number as usize) {
                    known.role = message.role;
                    known.hidden |= message.hidden_from_model;
                }
                self.take_parts(recorded, number, &message.parts)
            }
            Payload::MessageContinued(message) => {
                let number = self.facts.message(&message.key, Role::Assistant);
                self.take_parts(recorded, number, &message.parts)
            }
            Payload::MessageAbandoned(message) => {
                let key = self.facts.names.find(&message.key)?;
                Op::Abandon(*self.facts.message_by_key.get(&key)?)
            }
            Payload::ItemRevised(revised) => {
                let parts = revised.parts.clone().into_boxed_slice();
                let number = index(self.facts.revisions.len());
                self.facts.revisions.push(Revision { seq, item: revised.item, face: revised.face, parts });
                Op::Revise(number)
            }
            Payload::TurnStarted(turn) => match turn.kind {
                TurnKind::Step => {
                    let key = (!turn.key.is_empty()).then(|| self.facts.names.intern(&turn.key));
                    Op::Turn { key, number: turn.number }
                }
                TurnKind::Prompt => Op::Prompt,
            },
            Payload::ContextReplaced(replaced) => Op::Replace(Arc::from(replaced.order.as_slice())),
            Payload::HostCleared(cleared) => {
                let mut items = cleared.items.clone();
                for call in &cleared.calls {
                    let name = self.facts.names.find(call);
                    let found = name.and_then(|name| self.core.finished_call(&self.facts, name));
                    items.extend(found.and_then(|ix| self.facts.item(ix)).map(|item| item.id));
                }
                let items =
                    items.into_iter().map(|item| ActItem { item, pattern: None, summary: cleared.text });
                Op::Clear(self.take_act(seq, items.collect()))
            }
            Payload::Rewound(rewound) => Op::Rewound {
                to: rewound.to,
                turn: self.core.turn,
                policy: Arc::clone(&self.core.policy),
                own: self.core.own_policy,
            },
            Payload::FileChanged(changed) => Op::FileChanged(self.facts.key(&changed.key)),
            Payload::Discarded(act) => Op::Hide(self.take_act(seq, act.items.iter().map(act_item).collect())),
            Payload::Distilled(act) => Op::Hide(self.take_act(seq, act.items.iter().map(act_item).collect())),
            Payload::Restored(act) => Op::Restore(Arc::from(act.items.as_slice())),
            Payload::Pinned(act) => Op::Pin(Arc::from(act.items.as_slice())),
            Payload::Unpinned(act) => Op::Unpin(Arc::from(act.items.as_slice())),
            Payload::SessionClosed(_) => Op::Closed,
            Payload::Injected(injected) => {
                let ix = self.take_item(recorded, ItemKind::Injected, injected.text);
                if let Some(item) = self.facts.items.get_mut(ix.at()) {
                    item.injected = Some(injected.what);
                    item.role = Role::User;
                }
                Op::Injected(ix)
            }
            Payload::PolicySet(set) => {
                if self.id == crate::ids::StreamId::STORE {
                    return None;
                }
                let policy = Arc::new(Policy::from_json(&set.policy).ok()?);
                self.note_policy(seq, &policy);
                Op::Policy { policy, own: true }
            }
            Payload::TodosReplaced(event) => Op::TodosReplaced(Arc::new(event.list.clone())),
            Payload::TodoChanged(event) => Op::TodoChanged(Arc::new(event.change.clone())),
            Payload::TaskChanged(event) => Op::TaskChanged(Arc::new(event.clone())),
            Payload::TaskEvicted(event) => {
                let task = self.facts.names.intern(&event.task);
                let eviction = index(self.facts.evictions.len());
                self.facts.evictions.push(Eviction { seq, task, summary: event.summary });
                Op::TaskEvicted { event: Arc::new(event.clone()), eviction }
            }
            Payload::MemoryRecorded(_)
            | Payload::MemorySuperseded(_)
            | Payload::MemoryReinforced(_)
            | Payload::MemoryRetracted(_) => Op::Memory(Arc::new(recorded.clone())),
            Payload::SessionOpened(_)
            | Payload::SessionChanged(_)
            | Payload::PromptSet(_)
            | Payload::Forked(_)
            | Payload::HostRecorded(_)
            | Payload::MessageFinished(_)
            | Payload::ContextRebased(_)
            | Payload::ContextServed(_)
            | Payload::Erased(_)
            | Payload::DamageNoted(_)
            | Payload::Unknown { .. } => return None,
        })
    }

    fn take_act(&mut self, seq: Seq, items: Vec<ActItem>) -> u32 {
        self.facts.acts.push(Act { seq, items });
        index(self.facts.acts.len().saturating_sub(1))
    }

    fn take_item(&mut self, recorded: &Recorded, kind: ItemKind, body: Body) -> Ix {
        let ix = self.facts.next_ix();
        self.facts.items.push(Item {
            id: ItemId::first(recorded.seq),
            kind,
            role: Role::Assistant,
            turn: self.core.turn,
            recorded_at: recorded.recorded_at,
            body,
            media_type: None,
            provider_signature: None,
            message: NONE,
            call: NONE,
            injected: None,
            task: None,
            hidden: false,
        });
        ix
    }

    fn take_parts(&mut self, recorded: &Recorded, number: u32, parts: &[Part]) -> Op {
        let first = self.facts.next_ix();
        let (role, hidden) = self
            .facts
            .messages
            .get(number as usize)
            .map_or((Role::Assistant, false), |message| (message.role, message.hidden));
        for (place, part) in (1..).zip(parts) {
            let ix = self.take_item(recorded, kind_of(part.kind), part.body);
            let media_type = part.media_type.as_deref().map(|text| self.facts.names.intern(text));
            let task = part.task.as_deref().map(|text| self.facts.names.intern(text));
            if let Some(item) = self.facts.items.get_mut(ix.at()) {
                item.id.part = place;
                item.role = role;
                item.hidden = hidden;
                item.message = number;
                item.media_type = media_type;
                item.task = task;
                item.provider_signature = part.signature;
            }
            if part.automata && role == Role::User {
                self.facts.automata.insert(ix.0);
            }
            if let Some(message) = self.facts.messages.get_mut(number as usize) {
                message.items.push(ix);
            }
        }
        Op::Parts { first, count: index(parts.len()) }
    }

    fn take_start(&mut self, recorded: &Recorded, started: &ToolCallStarted) -> Ix {
        let tool = self.facts.names.intern(&started.tool);
        let host_id = self.facts.names.intern(&started.call);
        let first = index(self.facts.keys.len());
        for key in &started.keys {
            let key = self.facts.key(key);
            self.facts.keys.push(key);
        }
        let mut compared = [self.facts.signature(started.signature); 4];
        // A form that is not there equals the nearest one that is: both changes, without nulls, resolved, as given.
        let has = |form: SignatureForm| started.forms.iter().any(|(other, _)| *other == form);
        for (form, signature) in &started.forms {
            let number = self.facts.signature(*signature);
            if let Some(place) = compared.get_mut(form_index(*form)) {
                *place = number;
            }
        }
        if !has(SignatureForm::ResolvedNoNulls) {
            compared[3] = if has(SignatureForm::NoNulls) { compared[1] } else { compared[2] };
        }
        let label = Label::from_bits(&started.tool, started.label);
        let digits = (
            self.facts.digits(Some(label.letter()), label.bits() >> 4, started.signature),
            self.facts.digits(None, label.bits(), started.signature),
        );
        let message = match &started.message {
            Some(key) => self.facts.message(key, Role::Assistant),
            None => NONE,
        };
        let ix = self.take_item(recorded, ItemKind::Call, started.params);
        self.facts.by_host_id.entry(host_id).or_default().push(ix);
        self.facts.by_signature.entry(compared[0]).or_default().push(ix);
        if let Some(message) = self.facts.messages.get_mut(message as usize) {
            message.items.push(ix);
        }
        if let Some(item) = self.facts.items.get_mut(ix.at()) {
            item.message = message;
            item.call = index(self.facts.calls.len());
            item.provider_signature = started.provider_signature;
        }
        self.facts.calls.push(Call {
            host_id,
            tool,
            canonical_tokens: started.canonical_tokens,
            label: started.label,
            digits,
            signature: started.signature,
            compared,
            class: started.class,
            keys: (first, index(self.facts.keys.len())),
            volatile: started.volatile,
            todo: started.todo,
            todos: started.todos.clone().map(Arc::new),
            shown: started.shown,
        });
        ix
    }

    fn take_finish(&mut self, recorded: &Recorded, finished: &ToolCallFinished) -> u32 {
        let tag = finished.output.iter().rev().find_map(|part| part.task.as_deref());
        let task = tag.map(|text| self.facts.names.intern(text));
        let finish = Finish {
            seq: recorded.seq,
            recorded_at: recorded.recorded_at,
            host_id: self.facts.names.intern(&finished.call),
            outcome: finished.outcome,
            output: finished.output.clone().into_boxed_slice(),
            details: finished.details,
            todos: finished.todos.clone().map(Arc::new),
            task,
            orphan: NONE,
        };
        self.facts.finishes.push(finish);
        index(self.facts.finishes.len().saturating_sub(1))
    }
}

fn act_item(hidden: &Hidden) -> ActItem {
    ActItem { item: hidden.item, pattern: hidden.pattern, summary: hidden.summary }
}
