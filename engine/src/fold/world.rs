//! All folded streams, and the policy they share.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::number::Ix;
use super::policy::{Policy, SharedPolicy};
use super::stamped::last_until;
use super::state::State;
use crate::event::{Face, Lifespan, Payload, Recorded, Scope, stream_id};
use crate::ids::{Micros, Seq, StreamId};

/// Folded streams by id, with the store-wide policy.
///
/// A clone shares its states with the original; either makes a state its own when it folds an event into it.
///
/// May hold only some of a store's streams: then apply their events, those of the store's own stream, and those of the
/// parents of forks.
#[derive(Clone, Debug, Default, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub struct World {
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) streams: BTreeMap<StreamId, Arc<State>>,
    /// The policy that the store's own stream set, from each seq on.
    pub(super) policies: Vec<(Seq, SharedPolicy)>,
    /// The project of each session, and of each project's own stream. A newer session of a project ends session memory in these.
    #[rkyv(with = rkyv::with::Unshare)]
    pub(super) projects: Arc<BTreeMap<StreamId, Belongs>>,
    /// Folded streams that remember something for the length of a session.
    #[rkyv(with = rkyv::with::AsVec)]
    pub(super) session_memory: BTreeSet<StreamId>,
    pub(super) head: Seq,
}

/// A stream's project, and when the stream began: by its host's time, if that is known.
#[derive(Clone, Copy, Debug, rkyv::Archive, rkyv::Serialize, rkyv::Deserialize)]
pub(super) struct Belongs {
    project: StreamId,
    since: Micros,
}

impl World {
    /// Folds one event. Total. Gives the faces of its stream that it changed, each once, in order of first change.
    pub fn apply(&mut self, recorded: &Recorded) -> &[(Ix, Face)] {
        self.head = recorded.seq;
        let stream = recorded.event.stream;
        match &recorded.event.payload {
            Payload::PolicySet(set) if stream == StreamId::STORE => {
                // A policy of a newer program may have keys unknown here; it changes nothing then.
                if let Ok(policy) = Policy::shared(&set.policy) {
                    self.policies.push((recorded.seq, policy.clone()));
                    for (id, state) in &mut self.streams {
                        if *id != StreamId::STORE {
                            Arc::make_mut(state).store_policy(recorded.seq, &policy);
                        }
                    }
                }
            }
            Payload::Erased(erased) => {
                let is_loss = erased.is_loss(recorded.event.stamp.actor);
                for state in self.streams.values_mut() {
                    Arc::make_mut(state).erase(recorded.seq, &erased.bodies, is_loss);
                }
            }
            Payload::Forked(forked) if forked.from != stream => {
                let info = self.streams.get(&stream).and_then(|state| state.first_info());
                let parent = self.streams.get(&forked.from);
                let seq = recorded.seq;
                if let Some(shared) = parent.map(|parent| parent.fork(seq, stream, forked.at, info)) {
                    if shared.memory().has_session_items() {
                        self.session_memory.insert(stream);
                    }
                    self.state(stream).adopt(seq, shared);
                }
            }
            Payload::SessionOpened(_) => self.opened(recorded),
            Payload::SessionChanged(changed) => {
                if let (Some(name), Some(belongs)) =
                    (&changed.project, Arc::make_mut(&mut self.projects).get_mut(&stream))
                {
                    belongs.project = stream_id(Scope::Project, "", name);
                }
            }
            Payload::MemoryRecorded(record) if record.lifespan == Lifespan::Session => {
                self.session_memory.insert(stream);
            }
            _ => {}
        }
        let state = self.state(stream);
        state.apply(recorded);
        state.touched()
    }

    /// A stream began. A session of a project ends the items that earlier sessions of the project remembered for their own
    /// length. A session that another session started (a subagent) ends none, nor does one that took place before (an import).
    ///
    /// [`World::apply`] calls this for streams that are folded here; for other streams the caller calls it alone.
    pub(crate) fn opened(&mut self, recorded: &Recorded) {
        let Payload::SessionOpened(opened) = &recorded.event.payload else { return };
        let stream = recorded.event.stream;
        let since = recorded.event.host_time.unwrap_or(recorded.recorded_at);
        let project = match (opened.scope, &opened.project) {
            (Scope::Session, Some(name)) => stream_id(Scope::Project, "", name),
            (Scope::Project, _) => {
                // The project is older than all its sessions.
                let belongs = Belongs { project: stream, since: Micros(i64::MIN) };
                Arc::make_mut(&mut self.projects).insert(stream, belongs);
                return;
            }
            _ => StreamId::STORE,
        };
        Arc::make_mut(&mut self.projects).insert(stream, Belongs { project, since });
        if project == StreamId::STORE || opened.parent.is_some() {
            return;
        }
        for earlier in &self.session_memory {
            let ends = |belongs: &Belongs| belongs.project == project && belongs.since <= since;
            if *earlier != stream
                && self.projects.get(earlier).is_some_and(ends)
                && let Some(state) = self.streams.get_mut(earlier)
            {
                Arc::make_mut(state).end_session_memory(recorded.seq);
            }
        }
    }

    fn state(&mut self, stream: StreamId) -> &mut State {
        let policy = || self.policies.last().map(|(_, policy)| policy.clone()).unwrap_or_default().0;
        Arc::make_mut(self.streams.entry(stream).or_insert_with(|| Arc::new(State::new(stream, policy()))))
    }

    /// The state of a stream, if any event of it was folded.
    pub fn stream(&self, stream: StreamId) -> Option<&State> {
        self.streams.get(&stream).map(|state| &**state)
    }

    /// As [`World::stream`], to keep: events that are folded later do not change it.
    pub(crate) fn shared(&self, stream: StreamId) -> Option<Arc<State>> {
        self.streams.get(&stream).map(Arc::clone)
    }

    /// All streams, in order of their ids.
    pub fn streams(&self) -> impl Iterator<Item = (StreamId, &State)> {
        self.streams.iter().map(|(id, state)| (*id, &**state))
    }

    /// The newest seq that was folded.
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The store's own policy at `at`, which holds for streams without a policy of their own.
    pub fn policy(&self, at: Seq) -> Arc<Policy> {
        let last = last_until(&self.policies, at, |(since, _)| *since);
        last.map(|(_, policy)| policy.clone()).unwrap_or_default().0
    }
}
