//! Taking events in: an event adds to the facts and becomes the operation by which the state steps.

use std::sync::Arc;

use crate::event::{
    Body, Hidden, Part, Payload, Recorded, Role, SignatureForm, TaskChanged, TaskEvicted, TaskStatus,
    ToolCallFinished, ToolCallStarted, TurnKind,
};
use crate::fold::facts::{
    ActFact, CallFact, EvictionFact, Extra, FaceRevision, Finish, FinishExtra, ItemFact, ItemKind, PartFact,
    Range, TaskCall, form_index, kind_of,
};
use crate::fold::memory::{MemoryEvent, Moment};
use crate::fold::number::{Ix, NONE, index, pushed};
use crate::fold::op::Op;
use crate::fold::policy::Policy;
use crate::fold::state::State;
use crate::ids::{Micros, Seq};

/// Whole seconds from one time to another; none if the clock was set back.
fn seconds_between(then: Micros, now: Micros) -> u32 {
    // As the text above says.
    let seconds = now.0.saturating_sub(then.0).max(0) / 1_000_000;
    u32::try_from(seconds).unwrap_or(u32::MAX)
}

/// When an event took place: by the host's clock, where the host says so.
fn happened_at(recorded: &Recorded) -> Micros {
    recorded.event.host_time.unwrap_or(recorded.recorded_at)
}

impl State {
    /// The model is heard when it begins a step, speaks or calls; a prompt or a result is not heard from it. Returns when it was
    /// heard before.
    fn hear(&mut self, recorded: &Recorded) -> Option<Micros> {
        let before = self.heard_at;
        let is_heard = match &recorded.event.payload {
            Payload::ToolCallStarted(_) | Payload::MessageContinued(_) => true,
            Payload::MessageRecorded(message) => message.role == Role::Assistant,
            Payload::TurnStarted(turn) => turn.kind == TurnKind::Step,
            _ => false,
        };
        if is_heard {
            self.heard_at = self.heard_at.max(Some(happened_at(recorded)));
        }
        before
    }

    /// The operation for an event; `None` if the stream's items do not depend on it.
    pub(super) fn take_in(&mut self, recorded: &Recorded) -> Option<Op> {
        let seq = recorded.seq;
        Some(match &recorded.event.payload {
            Payload::ToolCallStarted(_)
            | Payload::ToolCallFinished(_)
            | Payload::MessageRecorded(_)
            | Payload::MessageContinued(_)
            | Payload::TurnStarted(_) => return self.take_in_frequent(recorded),
            Payload::MessageAbandoned(message) => {
                let key = self.facts.names.find(&message.key)?;
                Op::Abandon(self.facts.message_by_key(key)?)
            }
            Payload::ItemRevised(revised) => {
                let parts = self.take_part_list(&revised.parts);
                let number = index(self.facts.revisions.len());
                self.facts.revisions.push(FaceRevision {
                    seq,
                    item: revised.item,
                    face: revised.face,
                    parts,
                });
                Op::Revise(number)
            }
            Payload::ContextReplaced(replaced) => Op::Replace(Arc::new(replaced.order.clone())),
            Payload::HostCleared(cleared) => {
                let mut items = cleared.items.clone();
                for call in &cleared.calls {
                    let name = self.facts.names.find(call);
                    let found = name.and_then(|name| self.core.finished_call(&self.facts, name));
                    items.extend(found.and_then(|ix| self.facts.item(ix)).map(|item| item.id));
                }
                let items =
                    items.into_iter().map(|item| Hidden { item, pattern: None, summary: cleared.text });
                Op::Clear(self.take_act(seq, items.collect()))
            }
            Payload::Rewound(rewound) => Op::Rewound {
                to: rewound.to,
                turn: self.core.turn,
                policy: self.core.policy.clone(),
                own: self.core.own_policy,
            },
            Payload::FileChanged(changed) => {
                let key = self.facts.key(&changed.key);
                Op::FileChanged(pushed(&mut self.facts.keys, key))
            }
            Payload::Discarded(act) => Op::Hide(self.take_act(seq, act.items.clone())),
            Payload::Distilled(act) => Op::Hide(self.take_act(seq, act.items.clone())),
            Payload::Restored(act) => {
                Op::Restore { items: Arc::new(act.items.clone()), moment: Moment::of(recorded) }
            }
            Payload::Pinned(act) => Op::Pin(Arc::new(act.items.clone())),
            Payload::Unpinned(act) => Op::Unpin(Arc::new(act.items.clone())),
            Payload::SessionClosed(_) => Op::Closed,
            Payload::Injected(injected) => {
                let extra = Extra { injected: Some(injected.what), ..Extra::default() };
                let ix = self.take_item(recorded, ItemKind::Injected, injected.text, extra);
                if let Some(item) = self.facts.items.get_mut(ix.at()) {
                    item.role = Role::User;
                }
                Op::Injected(ix)
            }
            Payload::PolicySet(set) => {
                if self.id == crate::ids::StreamId::STORE {
                    return None;
                }
                // A policy that this program cannot read changes nothing: recording one is refused.
                let policy = Policy::shared(&set.policy).ok()?;
                self.policies.push((seq, policy.clone()));
                Op::Policy { policy, own: true }
            }
            Payload::TodosReplaced(event) => Op::TodosReplaced(Arc::new(event.list.clone())),
            Payload::TodoChanged(event) => Op::TodoChanged(Arc::new(event.change.clone())),
            Payload::TaskChanged(event) => Op::TaskChanged(Arc::new(event.clone())),
            Payload::TaskEvicted(event) => {
                let task = self.facts.names.intern(&event.task);
                let eviction = index(self.facts.evictions.len());
                self.facts.evictions.push(EvictionFact { seq, task, summary: event.summary });
                Op::TaskEvicted { event: Arc::new(event.clone()), eviction }
            }
            Payload::MemoryRecorded(_)
            | Payload::MemorySuperseded(_)
            | Payload::MemoryReinforced(_)
            | Payload::MemoryRetracted(_) => Op::Memory(Arc::new(MemoryEvent::of(recorded)?)),
            Payload::SessionOpened(_)
            | Payload::SessionChanged(_)
            | Payload::ProjectRenamed(_)
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

    /// The operation for an event of a frequent kind.
    fn take_in_frequent(&mut self, recorded: &Recorded) -> Option<Op> {
        let seq = recorded.seq;
        let heard_at = self.hear(recorded);
        Some(match &recorded.event.payload {
            Payload::ToolCallStarted(started) => Op::Start(self.take_start(recorded, started)),
            Payload::ToolCallFinished(finished) => Op::Finish(self.take_finish(recorded, finished)),
            Payload::MessageRecorded(message) => {
                let number = self.facts.message(seq, &message.key, message.role);
                if let Some(known) = self.facts.messages.get_mut(number as usize) {
                    known.role = message.role;
                    known.hidden |= message.hidden_from_model;
                }
                self.take_parts(recorded, number, &message.parts)
            }
            Payload::MessageContinued(message) => {
                let number = self.facts.message(seq, &message.key, Role::Assistant);
                self.take_parts(recorded, number, &message.parts)
            }
            Payload::TurnStarted(turn) if turn.kind == TurnKind::Step => {
                let key = if turn.key.is_empty() { NONE } else { self.facts.names.intern(&turn.key).0 };
                let idle_seconds = heard_at.map_or(0, |then| seconds_between(then, happened_at(recorded)));
                Op::Turn { key, number: turn.number, idle_seconds }
            }
            Payload::TurnStarted(_) => Op::Prompt,
            _ => return None,
        })
    }

    fn take_act(&mut self, seq: Seq, items: Vec<Hidden>) -> u32 {
        pushed(&mut self.facts.acts, ActFact { seq, items })
    }

    fn take_item(&mut self, recorded: &Recorded, kind: ItemKind, body: Body, extra: Extra) -> Ix {
        let ix = self.facts.next_ix();
        let extra = self.facts.add_extra(extra);
        let item = ItemFact::new(recorded.seq, recorded.recorded_at, self.core.turn, kind, body);
        self.facts.items.push(ItemFact { extra, ..item });
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
            let extra = self.extra_of(part);
            let ix = self.take_item(recorded, kind_of(part.kind), part.counted(), extra);
            if let Some(item) = self.facts.items.get_mut(ix.at()) {
                item.id.part = place;
                item.role = role;
                item.hidden = hidden;
                item.message = number;
                item.automata = part.automata && role == Role::User;
            }
            self.facts.put_into(number, ix);
        }
        Op::Parts { first, count: index(parts.len()) }
    }

    fn extra_of(&mut self, part: &Part) -> Extra {
        Extra {
            media_type: part.media_type.as_deref().map(|text| self.facts.names.intern(text)),
            task: part.task.as_deref().map(|text| self.facts.names.intern(text)),
            signature: part.signature,
            injected: None,
        }
    }

    /// Takes in parts that are no items: of an output, or of a rewritten face.
    fn take_part_list(&mut self, parts: &[Part]) -> Range {
        let first = index(self.facts.parts.len());
        for part in parts {
            let extra = self.extra_of(part);
            let extra = self.facts.add_extra(extra);
            self.facts.parts.push(PartFact { body: part.counted(), extra, kind: part.kind });
        }
        (first, index(self.facts.parts.len()))
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
        // A form that the event leaves out equals the nearest one that it has: both changes, without nulls, resolved, as given.
        let (mut has_both, mut has_no_nulls) = (false, false);
        for (form, signature) in started.forms.iter().copied() {
            has_both |= form == SignatureForm::ResolvedNoNulls;
            has_no_nulls |= form == SignatureForm::NoNulls;
            let number = self.facts.signature(signature);
            if let Some(place) = compared.get_mut(form_index(form)) {
                *place = number;
            }
        }
        if !has_both {
            compared[3] = if has_no_nulls { compared[1] } else { compared[2] };
        }
        let message = match &started.message {
            Some(key) => self.facts.message(recorded.seq, key, Role::Assistant),
            None => NONE,
        };
        let todos = match &started.todos {
            Some(list) => pushed(&mut self.facts.todo_lists, Arc::new(list.clone())),
            None => NONE,
        };
        self.take_task_call(recorded.seq, started);
        let extra = Extra { signature: started.provider_signature, ..Extra::default() };
        let ix = self.take_item(recorded, ItemKind::Call, started.params, extra);
        let call = CallFact {
            host_id,
            tool,
            canonical_tokens: started.canonical_tokens,
            label: started.label,
            compared,
            keys: (first, index(self.facts.keys.len())),
            todos,
            previous_of_host: NONE,
            previous_of_signature: NONE,
            shown: started.shown,
            class: started.class,
            volatile: started.volatile,
            todo: started.todo,
        };
        let call = self.facts.add_call(ix, call);
        self.facts.put_into(message, ix);
        if let Some(item) = self.facts.items.get_mut(ix.at()) {
            item.message = message;
            item.call = call;
        }
        ix
    }

    /// Takes in the changes of tasks that a call asks for. Only a summary of its own can stand for a task.
    fn take_task_call(&mut self, seq: Seq, started: &ToolCallStarted) {
        if started.tasks.is_empty() {
            return;
        }
        let mut ends = Vec::new();
        for fields in started.tasks.iter().filter(|fields| fields.status == Some(TaskStatus::Completed)) {
            if fields.summary.is_none() {
                continue;
            }
            let task = self.facts.names.intern(&fields.id);
            let fact = EvictionFact { seq, task, summary: fields.summary };
            let eviction = pushed(&mut self.facts.evictions, fact);
            let (task, message) = (fields.id.clone(), started.message.clone());
            ends.push((TaskEvicted { task, summary: fields.summary, message, validation: None }, eviction));
        }
        let change = TaskChanged { tasks: started.tasks.clone(), message: started.message.clone() };
        self.facts.task_calls.push(Arc::new(TaskCall { seq, change, ends }));
    }

    fn take_finish(&mut self, recorded: &Recorded, finished: &ToolCallFinished) -> u32 {
        let tag = finished.output.iter().rev().find_map(|part| part.task.as_deref());
        let task = tag.map(|text| self.facts.names.intern(text));
        let output = self.take_part_list(&finished.output);
        let todos = finished.todos.clone().map(Arc::new);
        let extra = if finished.details.is_some() || todos.is_some() {
            pushed(&mut self.facts.finish_extras, FinishExtra { details: finished.details, todos })
        } else {
            NONE
        };
        let finish = Finish {
            seq: recorded.seq,
            recorded_at: recorded.recorded_at,
            host_id: self.facts.names.intern(&finished.call),
            output,
            task,
            extra,
            orphan: NONE,
            outcome: finished.outcome,
        };
        pushed(&mut self.facts.finishes, finish)
    }
}
