//! A [`World`] as bytes and back: what a snapshot holds.
//!
//! ```text
//! World --bytes--> rkyv archive --validated, owned--> World, with tables for finding things filled anew
//! ```
//!
//! Pure: where the bytes lie, whether they are whole, and whether they belong to the log at hand is for the caller to know.
//! Validation makes any bytes safe to read, not right; so a caller checks a digest first.
//!
//! The form is that of this program alone: a layout, not a format. [`LAYOUT_VERSION`] counts its changes, and a test
//! fails when it changed and the number did not.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rkyv::boxed::{ArchivedBox, BoxResolver};
use rkyv::rancor::{Failure, Fallible, Source};
use rkyv::ser::Writer;
use rkyv::string::{ArchivedString, StringResolver};
use rkyv::util::AlignedVec;
use rkyv::with::{ArchiveWith, DeserializeWith, Inline, SerializeWith};
use rkyv::{Archive, Deserialize, Place, Serialize};

use super::core::{Core, Op, Subs};
use super::facts::Facts;
use super::history::History;
use super::memory::MemoryState;
use super::policy::Policy;
use super::state::{Counts, Rebase, State, StreamFacts};
use super::task::TaskState;
use super::todo::TodoState;
use super::world::{Belongs, World};
use crate::event::{ContextServed, Forked, MessageFinished, PromptSet};
use crate::ids::{Micros, Seq, StreamId};

/// Version of the layout: one more whenever any type in here changes.
pub(crate) const LAYOUT_VERSION: u32 = 2;

/// A policy, archived as its JSON.
pub(crate) struct AsJson;

impl ArchiveWith<Arc<Policy>> for AsJson {
    type Archived = ArchivedString;
    type Resolver = StringResolver;

    fn resolve_with(policy: &Arc<Policy>, resolver: StringResolver, out: Place<ArchivedString>) {
        ArchivedString::resolve_from_str(&policy.to_json(), resolver, out);
    }
}

impl<S: Fallible<Error: Source> + Writer + ?Sized> SerializeWith<Arc<Policy>, S> for AsJson {
    fn serialize_with(policy: &Arc<Policy>, serializer: &mut S) -> Result<StringResolver, S::Error> {
        ArchivedString::serialize_from_str(&policy.to_json(), serializer)
    }
}

impl<D: Fallible<Error: Source> + ?Sized> DeserializeWith<ArchivedString, Arc<Policy>, D> for AsJson {
    fn deserialize_with(json: &ArchivedString, _: &mut D) -> Result<Arc<Policy>, D::Error> {
        Policy::from_json(json).map(Arc::new).map_err(Source::new)
    }
}

/// A shared text, archived as a text.
pub(crate) struct AsText;

impl ArchiveWith<Arc<str>> for AsText {
    type Archived = ArchivedString;
    type Resolver = StringResolver;

    fn resolve_with(text: &Arc<str>, resolver: StringResolver, out: Place<ArchivedString>) {
        ArchivedString::resolve_from_str(text, resolver, out);
    }
}

impl<S: Fallible<Error: Source> + Writer + ?Sized> SerializeWith<Arc<str>, S> for AsText {
    fn serialize_with(text: &Arc<str>, serializer: &mut S) -> Result<StringResolver, S::Error> {
        ArchivedString::serialize_from_str(text, serializer)
    }
}

impl<D: Fallible + ?Sized> DeserializeWith<ArchivedString, Arc<str>, D> for AsText {
    fn deserialize_with(text: &ArchivedString, _: &mut D) -> Result<Arc<str>, D::Error> {
        Ok(Arc::from(text.as_str()))
    }
}

/// A shared value, archived apart from what holds it: nothing is shared in an archive, and rows stay small.
pub(crate) struct Apart;

impl<T: Archive> ArchiveWith<Arc<T>> for Apart {
    type Archived = ArchivedBox<T::Archived>;
    type Resolver = BoxResolver;

    fn resolve_with(value: &Arc<T>, resolver: BoxResolver, out: Place<Self::Archived>) {
        ArchivedBox::resolve_from_ref(&**value, resolver, out);
    }
}

impl<T, S> SerializeWith<Arc<T>, S> for Apart
where
    T: Serialize<S>,
    S: Fallible + Writer + ?Sized,
{
    fn serialize_with(value: &Arc<T>, serializer: &mut S) -> Result<BoxResolver, S::Error> {
        ArchivedBox::serialize_from_ref(&**value, serializer)
    }
}

impl<T, D> DeserializeWith<ArchivedBox<T::Archived>, Arc<T>, D> for Apart
where
    T: Archive<Archived: Deserialize<T, D>>,
    D: Fallible + ?Sized,
{
    fn deserialize_with(value: &ArchivedBox<T::Archived>, deserializer: &mut D) -> Result<Arc<T>, D::Error> {
        value.get().deserialize(deserializer).map(Arc::new)
    }
}

/// A stream's state, its great parts borrowed.
#[derive(Archive, Serialize)]
struct SavedState<'a> {
    id: StreamId,
    #[rkyv(with = Inline)]
    facts: &'a Facts,
    #[rkyv(with = Inline)]
    core: &'a Core,
    #[rkyv(with = Inline)]
    history: &'a History,
    #[rkyv(with = Inline)]
    todos: &'a TodoState,
    #[rkyv(with = Inline)]
    tasks: &'a TaskState,
    #[rkyv(with = Inline)]
    memory: &'a MemoryState,
    #[rkyv(with = Inline)]
    ops: &'a Vec<(Seq, Op)>,
    infos: Vec<(Seq, StreamFacts)>,
    policies: Vec<(Seq, String)>,
    #[rkyv(with = Inline)]
    prompts: &'a Vec<(Seq, PromptSet)>,
    #[rkyv(with = Inline)]
    finished: &'a Vec<(Seq, MessageFinished)>,
    #[rkyv(with = Inline)]
    rebases: &'a Vec<Rebase>,
    #[rkyv(with = Inline)]
    served: &'a Vec<(Seq, ContextServed)>,
    #[rkyv(with = Inline)]
    closed: &'a Vec<Seq>,
    #[rkyv(with = Inline)]
    forks: &'a Vec<(Seq, Forked)>,
    #[rkyv(with = Inline)]
    rewinds: &'a Vec<(Seq, Seq)>,
    counts: Counts,
    first: Seq,
    head: Seq,
    #[rkyv(with = Inline)]
    times: &'a Vec<(Seq, Micros)>,
}

#[derive(Archive, Serialize)]
struct SavedWorld<'a> {
    streams: Vec<SavedState<'a>>,
    policies: Vec<(Seq, String)>,
    projects: Vec<(StreamId, Belongs)>,
    session_memory: Vec<StreamId>,
    head: Seq,
}

fn texts(policies: &[(Seq, Arc<Policy>)]) -> Vec<(Seq, String)> {
    policies.iter().map(|(since, policy)| (*since, policy.to_json())).collect()
}

fn parsed(texts: Vec<(Seq, String)>) -> Option<Vec<(Seq, Arc<Policy>)>> {
    let parse = |(since, json): (Seq, String)| Some((since, Arc::new(Policy::from_json(&json).ok()?)));
    texts.into_iter().map(parse).collect()
}

impl<'a> SavedState<'a> {
    fn of(state: &'a State) -> Self {
        // By name, so that a field to come is not forgotten.
        let State {
            id,
            facts,
            core,
            history,
            subs: Subs { todos, tasks, memory },
            ops,
            infos,
            policies,
            prompts,
            finished,
            rebases,
            served,
            closed,
            forks,
            rewinds,
            counts,
            first,
            head,
            times,
        } = state;
        Self {
            id: *id,
            facts,
            core,
            history,
            todos,
            tasks,
            memory,
            ops,
            infos: infos.iter().map(|(since, info)| (*since, (**info).clone())).collect(),
            policies: texts(policies),
            prompts,
            finished,
            rebases,
            served,
            closed,
            forks,
            rewinds,
            counts: *counts,
            first: *first,
            head: *head,
            times,
        }
    }
}

fn owned<T: Archive>(archived: &T::Archived) -> Option<T>
where
    T::Archived: Deserialize<T, rkyv::api::high::HighDeserializer<Failure>>,
{
    rkyv::deserialize::<T, Failure>(archived).ok()
}

impl ArchivedSavedState<'_> {
    fn state(&self) -> Option<State> {
        let mut facts: Facts = owned(&self.facts)?;
        facts.fill_tables();
        let mut memory: MemoryState = owned(&self.memory)?;
        memory.find_anew();
        let infos: Vec<(Seq, StreamFacts)> = owned(&self.infos)?;
        Some(State {
            id: owned(&self.id)?,
            facts,
            core: owned(&self.core)?,
            history: owned(&self.history)?,
            subs: Subs { todos: owned(&self.todos)?, tasks: owned(&self.tasks)?, memory },
            ops: owned(&self.ops)?,
            infos: infos.into_iter().map(|(since, info)| (since, Arc::new(info))).collect(),
            policies: parsed(owned(&self.policies)?)?,
            prompts: owned(&self.prompts)?,
            finished: owned(&self.finished)?,
            rebases: owned(&self.rebases)?,
            served: owned(&self.served)?,
            closed: owned(&self.closed)?,
            forks: owned(&self.forks)?,
            rewinds: owned(&self.rewinds)?,
            counts: owned(&self.counts)?,
            first: owned(&self.first)?,
            head: owned(&self.head)?,
            times: owned(&self.times)?,
        })
    }
}

impl World {
    /// The world as bytes, behind `before`. `None` if it is larger than such an archive can be.
    pub(crate) fn save(&self, before: AlignedVec<16>) -> Option<AlignedVec<16>> {
        let Self { streams, policies, projects, session_memory, head } = self;
        let saved = SavedWorld {
            streams: streams.values().map(SavedState::of).collect(),
            policies: texts(policies),
            projects: projects.iter().map(|(id, belongs)| (*id, *belongs)).collect(),
            session_memory: session_memory.iter().copied().collect(),
            head: *head,
        };
        rkyv::api::high::to_bytes_in::<_, Failure>(&saved, before).ok()
    }

    /// The world out of bytes that [`World::save`] made. `None` if they are not such bytes.
    pub(crate) fn restore(bytes: &[u8]) -> Option<Self> {
        let saved = rkyv::access::<ArchivedSavedWorld<'static>, Failure>(bytes).ok()?;
        let mut streams = BTreeMap::new();
        for state in saved.streams.iter() {
            let state = state.state()?;
            streams.insert(state.id, state);
        }
        Some(Self {
            streams,
            policies: parsed(owned(&saved.policies)?)?,
            projects: owned::<Vec<(StreamId, Belongs)>>(&saved.projects)?.into_iter().collect(),
            session_memory: owned::<Vec<StreamId>>(&saved.session_memory)?
                .into_iter()
                .collect::<BTreeSet<StreamId>>(),
            head: owned(&saved.head)?,
        })
    }
}

#[cfg(test)]
mod tests;
