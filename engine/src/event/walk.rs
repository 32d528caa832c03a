//! Goes through what a payload names: bodies, items, signatures.
//!
//! A payload that travels to another store takes along what it names. Each kind says here, once, where that stands in it.

use super::{
    Body, Hidden, MemoryRecorded, Part, Payload, PromptSet, TaskFields, TodoChange, TodoList, TodoUpdate,
};
use crate::ids::{ItemId, Signature};

impl Payload {
    /// Calls `each` with every body, in no order that means anything. Free texts are not among them, nor is the key of a stream.
    pub(crate) fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        match self {
            Self::PromptSet(PromptSet { system, tools, params, .. }) => {
                [system, tools, params].into_iter().flatten().for_each(each);
            }
            Self::HostCleared(cleared) => cleared.text.iter_mut().for_each(each),
            Self::HostRecorded(host) => host.raw.iter_mut().for_each(each),
            Self::MessageRecorded(message) => parts(&mut message.parts, each),
            Self::MessageContinued(message) => parts(&mut message.parts, each),
            Self::ItemRevised(revised) => parts(&mut revised.parts, each),
            Self::ToolCallStarted(started) => {
                each(&mut started.params);
                started.todos.iter_mut().for_each(|list| each(&mut list.body));
                started.provider_signature.iter_mut().for_each(each);
            }
            Self::ToolCallFinished(finished) => {
                parts(&mut finished.output, each);
                finished.details.iter_mut().for_each(&mut *each);
                match &mut finished.todos {
                    Some(TodoUpdate::List(list)) => each(&mut list.body),
                    Some(TodoUpdate::Change(change)) => change.entry.iter_mut().for_each(each),
                    None => {}
                }
            }
            Self::TodosReplaced(replaced) => each(&mut replaced.list.body),
            Self::TodoChanged(changed) => changed.change.entry.iter_mut().for_each(each),
            Self::TaskChanged(changed) => {
                for TaskFields { content, extra, summary, .. } in &mut changed.tasks {
                    [content, extra, summary].into_iter().flatten().for_each(&mut *each);
                }
            }
            Self::TaskEvicted(evicted) => evicted.summary.iter_mut().for_each(each),
            Self::MemoryRecorded(memory) => {
                let MemoryRecorded { value, rationale, alternatives, extra, .. } = memory;
                each(value);
                alternatives.iter_mut().for_each(&mut *each);
                [rationale, extra].into_iter().flatten().for_each(each);
            }
            Self::MemorySuperseded(superseded) => superseded.reason.iter_mut().for_each(each),
            Self::MemoryRetracted(retracted) => retracted.reason.iter_mut().for_each(each),
            Self::Discarded(discarded) => {
                each(&mut discarded.targets);
                summaries(&mut discarded.items, each);
            }
            Self::Distilled(distilled) => {
                each(&mut distilled.targets);
                summaries(&mut distilled.items, each);
            }
            Self::Restored(restored) => each(&mut restored.targets),
            Self::Injected(injected) => each(&mut injected.text),
            _ => {}
        }
    }

    /// Calls `each` with every item that it names; one that `each` refuses is left out. `false`: it cannot do without.
    pub(crate) fn items_mut(&mut self, each: &mut dyn FnMut(&mut ItemId) -> bool) -> bool {
        match self {
            Self::ContextReplaced(replaced) => replaced.order.retain_mut(each),
            Self::HostCleared(cleared) => cleared.items.retain_mut(each),
            Self::ItemRevised(revised) => return each(&mut revised.item),
            Self::MemoryRecorded(memory) => {
                let source = memory.source.take();
                memory.source = source.and_then(|mut source| each(&mut source.item).then_some(source));
            }
            Self::Discarded(discarded) => discarded.items.retain_mut(|hidden| each(&mut hidden.item)),
            Self::Distilled(distilled) => distilled.items.retain_mut(|hidden| each(&mut hidden.item)),
            Self::Restored(restored) => restored.items.retain_mut(each),
            Self::Pinned(pinned) => pinned.items.retain_mut(each),
            Self::Unpinned(unpinned) => unpinned.items.retain_mut(each),
            // Without items it would apply everything that is pending.
            Self::ContextRebased(rebased) if !rebased.items.is_empty() => {
                rebased.items.retain_mut(each);
                return !rebased.items.is_empty();
            }
            _ => {}
        }
        true
    }

    /// Calls `each` with every signature.
    pub(crate) fn signatures_mut(&mut self, each: &mut dyn FnMut(&mut Signature)) {
        let list = |list: &mut TodoList, each: &mut dyn FnMut(&mut Signature)| {
            list.items.iter_mut().for_each(|head| each(&mut head.content));
        };
        let change = |change: &mut TodoChange, each: &mut dyn FnMut(&mut Signature)| {
            change.content.iter_mut().for_each(each);
        };
        match self {
            Self::ToolCallStarted(started) => {
                each(&mut started.signature);
                started.forms.iter_mut().for_each(|(_, signature)| each(signature));
                started.todos.iter_mut().for_each(|todos| list(todos, each));
            }
            Self::ToolCallFinished(finished) => match &mut finished.todos {
                Some(TodoUpdate::List(todos)) => list(todos, each),
                Some(TodoUpdate::Change(todo)) => change(todo, each),
                None => {}
            },
            Self::TodosReplaced(replaced) => list(&mut replaced.list, each),
            Self::TodoChanged(changed) => change(&mut changed.change, each),
            Self::MemoryRecorded(memory) => each(&mut memory.value_signature),
            Self::Discarded(discarded) => patterns(&mut discarded.items, each),
            Self::Distilled(distilled) => patterns(&mut distilled.items, each),
            _ => {}
        }
    }

    /// Calls `each` with every id of a memory item.
    pub(crate) fn memory_ids_mut(&mut self, each: &mut dyn FnMut(&mut String)) {
        match self {
            Self::MemoryRecorded(memory) => {
                each(&mut memory.id);
                memory.replaces.iter_mut().chain(&mut memory.superseded_by).for_each(each);
            }
            Self::MemorySuperseded(superseded) => {
                each(&mut superseded.old);
                each(&mut superseded.new);
            }
            Self::MemoryReinforced(reinforced) => each(&mut reinforced.id),
            Self::MemoryRetracted(retracted) => each(&mut retracted.id),
            _ => {}
        }
    }
}

fn parts(parts: &mut [Part], each: &mut dyn FnMut(&mut Body)) {
    for part in parts {
        each(&mut part.body);
        part.signature.iter_mut().for_each(&mut *each);
    }
}

fn summaries(items: &mut [Hidden], each: &mut dyn FnMut(&mut Body)) {
    items.iter_mut().filter_map(|hidden| hidden.summary.as_mut()).for_each(each);
}

fn patterns(items: &mut [Hidden], each: &mut dyn FnMut(&mut Signature)) {
    items.iter_mut().filter_map(|hidden| hidden.pattern.as_mut()).for_each(each);
}
