//! Recorded facts, in the form that rules read: items, calls, keys, results, messages, acts.
//!
//! ```text
//! event --take in--> Item (one a part)  --call-->  Call (tool, keys, signature)  --keys-->  KeyFact
//!                    Finish, Revision, Act: later events about items
//! ```
//!
//! Facts are immutable and only grow; they are shared by every branch of the stream. The *conclusions* from them
//! stand elsewhere: the present in [`Core`](super::state::Core), all of them in [`history`](super::history).

mod rows;

use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

pub use rows::ItemKind;
pub(crate) use rows::*;

use super::names::StringTable;
use super::number::{Interned, Ix, KeyId, NONE, Name, index, newest_first, pushed};
use crate::event::{Body, KeyKind, Role, SignatureForm, TodoList};
use crate::ids::{ItemId, Seq, Signature, Turn};

/// Signatures by label, in order of first use. A label is its letter, if it has one, and its bits.
type Labelled = FxHashMap<(Option<char>, u32), SmallVec<[u32; 2]>>;

/// All facts of a stream, as the rules read them.
#[derive(Clone, Default, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(crate) struct Facts {
    pub(crate) names: StringTable,
    /// In the order of recording, so sorted by id.
    pub(crate) items: Vec<ItemFact>,
    pub(crate) calls: Vec<CallFact>,
    /// Keys of calls, and of files that changed outside of any call.
    pub(crate) keys: Vec<KeyFact>,
    /// Each identity of a key: its kind, whether several fields make its name, and the name.
    identities: Interned<(KeyKind, bool, Name)>,
    pub(crate) finishes: Vec<Finish>,
    pub(crate) parts: Vec<PartFact>,
    pub(crate) finish_extras: Vec<FinishExtra>,
    pub(crate) extras: Vec<Extra>,
    pub(crate) acts: Vec<ActFact>,
    pub(crate) evictions: Vec<EvictionFact>,
    /// Lists that calls wrote.
    #[rkyv(with = rkyv::with::Map<rkyv::with::Unshare>)]
    pub(crate) todo_lists: Vec<Arc<TodoList>>,
    /// Calls that change tasks, in the order of recording.
    #[rkyv(with = rkyv::with::Map<rkyv::with::Unshare>)]
    pub(crate) task_calls: Vec<Arc<TaskCall>>,
    pub(crate) revisions: Vec<FaceRevision>,
    pub(crate) messages: Vec<MessageFact>,
    /// The message with a name as its key, by name; [`NONE`] without one. Made at its first use, as tables are.
    #[rkyv(with = rkyv::with::Skip)]
    message_of: OnceLock<Vec<u32>>,
    signatures: Interned<Signature>,
    /// Signatures by label with its letter (20 bits). Made at their first use, here and below.
    #[rkyv(with = rkyv::with::Skip)]
    lettered: OnceLock<Labelled>,
    /// Signatures by bare label (24 bits).
    #[rkyv(with = rkyv::with::Skip)]
    bare: OnceLock<Labelled>,
    /// The newest call with a signature as given, by the signature's number.
    #[rkyv(with = rkyv::with::Skip)]
    newest_of_signature: OnceLock<Vec<u32>>,
    /// The newest call with a name as its host's id, by name.
    #[rkyv(with = rkyv::with::Skip)]
    newest_of_host: OnceLock<Vec<u32>>,
    #[rkyv(with = rkyv::with::Skip)]
    scratch: String,
}

impl Facts {
    pub(crate) fn item(&self, ix: Ix) -> Option<&ItemFact> {
        self.items.get(ix.at())
    }

    pub(crate) fn call(&self, ix: Ix) -> Option<&CallFact> {
        self.calls.get(self.item(ix)?.call as usize)
    }

    pub(crate) fn keys_of(&self, call: &CallFact) -> &[KeyFact] {
        slice(&self.keys, call.keys)
    }

    pub(crate) fn parts_of(&self, range: Range) -> &[PartFact] {
        slice(&self.parts, range)
    }

    /// The rare fields of an item or part.
    pub(crate) fn extra(&self, number: u32) -> Extra {
        self.extras.get(number as usize).copied().unwrap_or_default()
    }

    /// The rare fields of a result.
    pub(crate) fn finish_extra(&self, finish: &Finish) -> Option<&FinishExtra> {
        self.finish_extras.get(finish.extra as usize)
    }

    pub(crate) fn add_extra(&mut self, extra: Extra) -> u32 {
        if extra == Extra::default() {
            return NONE;
        }
        pushed(&mut self.extras, extra)
    }

    pub(crate) fn find(&self, id: ItemId) -> Option<Ix> {
        let found = self.items.binary_search_by_key(&id, |item| item.id).ok()?;
        Some(Ix(index(found)))
    }

    /// The text of the tool's name.
    pub(crate) fn tool(&self, ix: Ix) -> &str {
        self.call(ix).map(|call| self.names.text(call.tool)).unwrap_or_default()
    }

    /// The signature of a call as given.
    pub(crate) fn signature_of(&self, call: &CallFact) -> Signature {
        self.signature_numbered(call.compared[0])
    }

    /// The signature with a number.
    pub(crate) fn signature_numbered(&self, number: u32) -> Signature {
        self.signatures.get(number).copied().unwrap_or_default()
    }

    pub(crate) fn next_ix(&self) -> Ix {
        Ix(index(self.items.len()))
    }

    pub(crate) fn find_key(&self, kind: KeyKind, text: &str) -> Option<KeyId> {
        self.identities.find(&(kind, false, self.names.find(text)?)).map(KeyId)
    }

    /// A number for a signature.
    pub(crate) fn signature(&mut self, signature: Signature) -> u32 {
        self.signatures.number(signature)
    }

    /// Interns a key of a call or of a changed file.
    pub(crate) fn key(&mut self, key: &crate::event::Key) -> KeyFact {
        let (kind, class) = (key.kind, key.class);
        let given = self.names.intern(&key.given);
        let resolved = key.resolved.as_deref().map(|text| self.names.intern(text));
        let mut fields = key.fields.iter().map(String::as_str);
        let identity = match (fields.next(), fields.next()) {
            (None, _) => (kind, false, given),
            (Some(field), None) => (kind, false, self.names.intern(field)),
            (Some(first), Some(second)) => {
                // Lengths, so that no two lists of fields make one name.
                let mut name = std::mem::take(&mut self.scratch);
                name.clear();
                for field in [first, second].into_iter().chain(fields) {
                    let _ = write!(name, "{}:{field}", field.len());
                }
                let known = self.names.intern(&name);
                self.scratch = name;
                (kind, true, known)
            }
        };
        // Equal for keys of one kind with equal fields.
        let id_given = KeyId(self.identities.number(identity));
        let id_resolved = match resolved {
            Some(resolved) => KeyId(self.identities.number((kind, false, resolved))),
            None => id_given,
        };
        KeyFact { kind, class, given, resolved, id_given, id_resolved }
    }

    /// Adds a call of item `ix`, which is about to be recorded, behind those before it with its host's id and with its signature.
    pub(crate) fn add_call(&mut self, ix: Ix, call: CallFact) -> u32 {
        let number = call.compared[0];
        let places = self.labels_of(&call);
        for (labelled, place) in [&mut self.lettered, &mut self.bare].into_iter().zip(places) {
            if let Some(labelled) = labelled.get_mut() {
                label(labelled, place, number);
            }
        }
        // The lists must be made before they are changed.
        let _ = (self.newest_of_host(), self.newest_of_signature());
        let newest = |list: &mut OnceLock<Vec<u32>>, place: usize| {
            list.get_mut().map_or(NONE, |newest| swap(newest, place, ix.0))
        };
        let previous_of_host = newest(&mut self.newest_of_host, call.host_id.at());
        let previous_of_signature = newest(&mut self.newest_of_signature, number as usize);
        pushed(&mut self.calls, CallFact { previous_of_host, previous_of_signature, ..call })
    }

    /// The labels of a call: with its letter, and bare.
    fn labels_of(&self, call: &CallFact) -> [(Option<char>, u32); 2] {
        let label = crate::text::Label::from_bits(self.names.text(call.tool), call.label);
        [(Some(label.letter()), label.bits() >> 4), (None, label.bits())]
    }

    /// The signatures under a label, as numbers, in order of first use.
    pub(crate) fn signatures_under(&self, letter: Option<char>, bits: u32) -> &[u32] {
        let labelled = if letter.is_some() { &self.lettered } else { &self.bare };
        let labelled = labelled.get_or_init(|| {
            let mut labelled = Labelled::default();
            for call in &self.calls {
                let [lettered, bare] = self.labels_of(call);
                label(&mut labelled, if letter.is_some() { lettered } else { bare }, call.compared[0]);
            }
            labelled
        });
        labelled.get(&(letter, bits)).map_or(&[], SmallVec::as_slice)
    }

    /// Makes an item of a result that no call waits for.
    pub(crate) fn orphan(&mut self, number: u32, turn: Turn) -> Ix {
        let ix = self.next_ix();
        let Some(finish) = self.finishes.get_mut(number as usize) else { return ix };
        finish.orphan = ix.0;
        let finish = *finish;
        let extra = self.add_extra(Extra { task: finish.task, ..Extra::default() });
        let item = ItemFact::new(finish.seq, finish.recorded_at, turn, ItemKind::Result, Body::default());
        self.items.push(ItemFact { extra, role: Role::Tool, ..item });
        ix
    }

    /// The changes of tasks that the call asks for that began with event `seq`.
    pub(crate) fn task_call(&self, seq: Seq) -> Option<&Arc<TaskCall>> {
        let place = self.task_calls.binary_search_by_key(&seq, |call| call.seq);
        self.task_calls.get(place.ok()?)
    }

    /// The facts recorded up to `at`, for a fork.
    pub(crate) fn until(&self, at: Seq) -> Self {
        let mut facts = self.clone();
        facts.items.truncate(self.items.partition_point(|item| item.id.seq <= at));
        let item_count = index(facts.items.len());
        let calls = facts.items.iter().filter(|item| item.call != NONE).count();
        facts.calls.truncate(calls);
        facts.finishes.retain(|finish| finish.seq <= at);
        facts.revisions.retain(|revision| revision.seq <= at);
        facts.acts.retain(|act| act.seq <= at);
        facts.evictions.retain(|eviction| eviction.seq <= at);
        facts.task_calls.retain(|call| call.seq <= at);
        for message in &mut facts.messages {
            (message.first, message.last) = (NONE, NONE);
        }
        for place in 0..item_count {
            let message = facts.item(Ix(place)).map_or(NONE, |item| item.message);
            facts.put_into(message, Ix(place));
        }
        facts.messages.truncate(self.messages.partition_point(|message| message.since <= at));
        facts.message_of = OnceLock::new();
        (facts.newest_of_host, facts.newest_of_signature) = (OnceLock::new(), OnceLock::new());
        (facts.lettered, facts.bare) = (OnceLock::new(), OnceLock::new());
        facts
    }

    /// Makes an item the last one of a message.
    pub(crate) fn put_into(&mut self, message: u32, ix: Ix) {
        let Some(message) = self.messages.get_mut(message as usize) else { return };
        let before = std::mem::replace(&mut message.last, ix.0);
        if before == NONE {
            message.first = ix.0;
        } else if let Some(item) = self.items.get_mut(before as usize) {
            item.next = ix.0;
        }
        if let Some(item) = self.items.get_mut(ix.at()) {
            item.next = NONE;
        }
    }

    /// The parts and calls of a message, in order of recording.
    pub(crate) fn items_of(&self, message: &MessageFact) -> impl Iterator<Item = Ix> {
        let mut next = message.first;
        std::iter::from_fn(move || {
            let ix = Ix(next);
            // As [`newest_first`], the other way round.
            next = self.item(ix)?.next;
            next = if next > ix.0 { next } else { NONE };
            Some(ix)
        })
    }

    /// The message with this key, if there is one.
    pub(crate) fn message_by_key(&self, key: Name) -> Option<u32> {
        self.message_of().get(key.at()).copied().filter(|number| *number != NONE)
    }

    /// The same as of a seq: while a branch is folded anew, facts also hold messages that come later.
    pub(crate) fn message_at(&self, key: Name, at: Seq) -> Option<u32> {
        let number = self.message_by_key(key)?;
        self.messages.get(number as usize).is_some_and(|message| message.since <= at).then_some(number)
    }

    /// The message with this key; if there is none, a new one from `seq` on.
    pub(crate) fn message(&mut self, seq: Seq, key: &str, role: Role) -> u32 {
        let is_named = !key.is_empty();
        let key = self.names.intern(key);
        let next = index(self.messages.len());
        // Messages without a key are messages of their own, not parts of one.
        let known = if is_named { self.message_by_key(key) } else { None };
        let number = known.unwrap_or(next);
        if known.is_none() {
            if is_named {
                // The list must be made before the message is put in.
                let _ = self.message_of();
                // The message is new: no entry is replaced.
                let _ = self.message_of.get_mut().map(|known| swap(known, key.at(), next));
            }
            let message = MessageFact { key, first: NONE, last: NONE, since: seq, role, hidden: false };
            self.messages.push(message);
        }
        number
    }

    /// Calls with the host's id, newest first.
    pub(crate) fn calls_of_host(&self, host_id: Name) -> impl Iterator<Item = Ix> {
        let newest = self.newest_of_host().get(host_id.at()).copied().unwrap_or(NONE);
        self.calls_from(newest, |call| call.previous_of_host)
    }

    /// Calls with a signature as given, newest first.
    pub(crate) fn calls_with(&self, signature: u32) -> impl Iterator<Item = Ix> {
        let newest = self.newest_of_signature().get(signature as usize).copied().unwrap_or(NONE);
        self.calls_from(newest, |call| call.previous_of_signature)
    }

    fn calls_from(&self, newest: u32, previous: fn(&CallFact) -> u32) -> impl Iterator<Item = Ix> {
        newest_first(newest, move |ix| Some((Ix(ix), previous(self.call(Ix(ix))?))))
    }
}

fn label(labelled: &mut Labelled, place: (Option<char>, u32), signature: u32) {
    let under = labelled.entry(place).or_default();
    if !under.contains(&signature) {
        under.push(signature);
    }
}

fn slice<T>(all: &[T], range: Range) -> &[T] {
    all.get(range.0 as usize..range.1 as usize).unwrap_or_default()
}

/// Puts `value` at `place` of a vector, which grows if needed. Returns the value that was there; [`NONE`] if there was none.
fn swap(entries: &mut Vec<u32>, place: usize, value: u32) -> u32 {
    if entries.len() <= place {
        entries.resize(place.saturating_add(1), NONE);
    }
    entries.get_mut(place).map_or(NONE, |entry| std::mem::replace(entry, value))
}

/// The signature of a call that a form names, as index into [`CallFact::compared`].
pub(crate) const fn form_index(form: SignatureForm) -> usize {
    match form {
        SignatureForm::NoNulls => 1,
        SignatureForm::Resolved => 2,
        SignatureForm::ResolvedNoNulls => 3,
    }
}
