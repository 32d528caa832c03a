//! Several streams' memory seen as one: a session's, its project's, its user's.

use super::read::{MemoryAt, MemoryItem, Standing};
use super::{MemoryState, TextSource};
use crate::event::{Lifespan, MemoryKind};
use crate::ids::{ItemId, Micros, Seq, StreamId};
use crate::text::Signer;

/// Scopes, the one that shadows the others first.
pub const LIFESPANS_INNER_FIRST: [Lifespan; 3] = [Lifespan::Session, Lifespan::Project, Lifespan::Permanent];

/// The memory of one stream, as part of a view.
#[derive(Clone, Debug)]
pub struct MemoryLayer<'a> {
    /// The stream.
    pub stream: StreamId,
    /// Items of this lifespan are recorded here: a session's stream has session items, and so on.
    pub records: Lifespan,
    /// Its memory.
    pub memory: &'a MemoryState,
    /// Signs texts with the stream's key.
    pub signer: Signer,
    /// Nothing after this is seen, whatever the view's seq: a fork sees its parent up to the fork. Else [`Seq::MAX`].
    pub until: Seq,
}

impl MemoryLayer<'_> {
    /// Whether items can be recorded in it: not so for what a fork sees of its parent.
    pub fn is_writable(&self) -> bool {
        self.until == Seq::MAX
    }
}

/// Memory as a session sees it, as of one seq and one time.
///
/// Layers come innermost first: the session, its project, its user. A stream may hold items of any lifespan; the scope
/// of an item is its lifespan. Of preferences with one category and key, that of the innermost scope holds and shadows
/// the others, without an edge; within a scope, the one that was recorded or restored last.
#[derive(Clone)]
pub struct MemoryView<'a> {
    layers: Vec<MemoryLayer<'a>>,
    at: Seq,
    now: Micros,
    texts: TextSource<'a>,
}

impl<'a> MemoryView<'a> {
    /// A view of these layers, innermost first.
    pub fn new(layers: Vec<MemoryLayer<'a>>, at: Seq, now: Micros, texts: TextSource<'a>) -> Self {
        Self { layers, at, now, texts }
    }

    /// The time of the view.
    pub const fn now(&self) -> Micros {
        self.now
    }

    /// The layers, innermost first.
    pub fn layers(&self) -> &[MemoryLayer<'a>] {
        &self.layers
    }

    /// Each stream with its memory as of the view's seq, innermost first.
    pub fn streams(&self) -> impl Iterator<Item = (&MemoryLayer<'a>, MemoryAt<'a>)> {
        self.layers.iter().map(|layer| (layer, layer.memory.at(self.at.min(layer.until))))
    }

    /// The memory of one stream.
    pub fn stream(&self, stream: StreamId) -> Option<(&MemoryLayer<'a>, MemoryAt<'a>)> {
        self.streams().find(|(layer, _)| layer.stream == stream)
    }

    /// The value of an item as text; `None` if it was erased.
    pub fn text(&self, item: &MemoryItem<'_>) -> Option<String> {
        let value = item.value();
        if value.chunks == 0 { Some(String::new()) } else { (self.texts)(value) }
    }

    /// Everything ever recorded, with its stream, in the order of recording.
    pub fn all(&self) -> Vec<(StreamId, MemoryItem<'a>)> {
        let mut items: Vec<_> = self
            .streams()
            .flat_map(|(layer, memory)| memory.all().into_iter().map(|item| (layer.stream, item)))
            .collect();
        items.sort_by_key(|(_, item)| item.item());
        items
    }

    /// What holds, with its stream, in the order of recording; shadowed preferences left out.
    pub fn current(&self) -> Vec<(StreamId, MemoryItem<'a>)> {
        let mut items: Vec<_> = self
            .streams()
            .flat_map(|(layer, memory)| memory.current(self.now).map(|item| (layer.stream, item)))
            .filter(|(_, item)| !self.is_shadowed(item))
            .collect();
        items.sort_by_key(|(_, item)| item.item());
        items
    }

    /// Whether another preference of the same category and key holds instead of this one, though no edge says so.
    pub fn is_shadowed(&self, item: &MemoryItem<'_>) -> bool {
        let Some(key) = item.key().filter(|_| item.kind() == MemoryKind::Preference) else { return false };
        item.standing(self.now) == Standing::Current
            && self.by_key(item.category(), key).is_some_and(|(_, holder)| holder.item() != item.item())
    }

    /// The preference that holds for a category and key.
    pub fn by_key(&self, category: &str, key: &str) -> Option<(StreamId, MemoryItem<'a>)> {
        LIFESPANS_INNER_FIRST.into_iter().find_map(|lifespan| self.by_key_in(lifespan, category, key))
    }

    /// The preference that holds for a category and key within one scope.
    pub fn by_key_in(
        &self,
        lifespan: Lifespan,
        category: &str,
        key: &str,
    ) -> Option<(StreamId, MemoryItem<'a>)> {
        self.find(|memory| memory.by_key(lifespan, category, key, self.now))
    }

    /// The fact or decision that holds on a subject (any case) within one scope; of several the newest.
    pub fn by_subject(
        &self,
        kind: MemoryKind,
        lifespan: Lifespan,
        category: &str,
        subject: &str,
    ) -> Option<(StreamId, MemoryItem<'a>)> {
        self.find(|memory| memory.by_subject(kind, lifespan, category, subject, self.now))
    }

    /// The item with this id, of the innermost stream that has one.
    pub fn by_id(&self, id: &str) -> Option<(StreamId, MemoryItem<'a>)> {
        self.find(|memory| memory.by_id(id))
    }

    /// The item that this event recorded.
    pub fn by_item(&self, item: ItemId) -> Option<(StreamId, MemoryItem<'a>)> {
        self.find(|memory| memory.by_item(item))
    }

    /// What holds in a category, over all scopes, newest first.
    pub fn in_category(&self, kind: MemoryKind, category: &str) -> Vec<(StreamId, MemoryItem<'a>)> {
        self.gather(|memory, _| memory.in_category(kind, category, self.now).collect())
    }

    /// What holds and has this value (any case), over all scopes, newest first.
    pub fn with_value(&self, value: &str) -> Vec<(StreamId, MemoryItem<'a>)> {
        self.gather(|memory, signer| {
            memory.with_value(super::value_signature(signer, value), self.now).collect()
        })
    }

    fn find(
        &self,
        read: impl Fn(&MemoryAt<'a>) -> Option<MemoryItem<'a>>,
    ) -> Option<(StreamId, MemoryItem<'a>)> {
        self.streams().find_map(|(layer, memory)| Some((layer.stream, read(&memory)?)))
    }

    fn gather(
        &self,
        read: impl Fn(MemoryAt<'a>, &Signer) -> Vec<MemoryItem<'a>>,
    ) -> Vec<(StreamId, MemoryItem<'a>)> {
        let mut found: Vec<_> = self
            .streams()
            .flat_map(|(layer, memory)| {
                read(memory, &layer.signer).into_iter().map(|item| (layer.stream, item))
            })
            .collect();
        found.sort_by_key(|(_, item)| std::cmp::Reverse((item.facts().created, item.item())));
        found
    }
}
