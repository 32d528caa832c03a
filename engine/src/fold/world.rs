//! All folded streams, and the policy they share.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::policy::Policy;
use super::state::{Effects, State};
use crate::event::{Payload, Recorded};
use crate::ids::{Seq, StreamId};

/// Folded streams by id, with the store-wide policy.
///
/// May hold only some of a store's streams: apply the events of those, of the store's own stream, and of the parents
/// of forks.
#[derive(Clone, Debug, Default)]
pub struct World {
    streams: BTreeMap<StreamId, State>,
    /// The policy that the store's own stream set, from each seq on.
    policies: Vec<(Seq, Arc<Policy>)>,
    head: Seq,
}

impl World {
    /// Folds one event and says what it changed for readers. Total.
    pub fn apply(&mut self, recorded: &Recorded) -> Effects {
        self.head = recorded.seq;
        let stream = recorded.event.stream;
        match &recorded.event.payload {
            Payload::PolicySet(set) if stream == StreamId::STORE => {
                // A policy of a newer program may have keys unknown here; it changes nothing then.
                if let Ok(policy) = Policy::from_json(&set.policy) {
                    let policy = Arc::new(policy);
                    self.policies.push((recorded.seq, Arc::clone(&policy)));
                    for (id, state) in &mut self.streams {
                        if *id != StreamId::STORE {
                            state.store_policy(recorded.seq, &policy);
                        }
                    }
                }
            }
            Payload::Erased(erased) => {
                for state in self.streams.values_mut() {
                    state.erase(recorded.seq, &erased.bodies);
                }
            }
            Payload::Forked(forked) if forked.from != stream => {
                let info = self.streams.get(&stream).and_then(State::first_info);
                let parent = self.streams.get(&forked.from);
                let seq = recorded.seq;
                if let Some(shared) = parent.map(|parent| parent.fork(seq, stream, forked.at, info)) {
                    self.state(stream).adopt(seq, shared);
                }
            }
            _ => {}
        }
        self.state(stream).apply(recorded)
    }

    fn state(&mut self, stream: StreamId) -> &mut State {
        let policy = self.policies.last().map(|(_, policy)| policy);
        self.streams.entry(stream).or_insert_with(|| State::new(stream, policy.cloned().unwrap_or_default()))
    }

    /// The state of a stream, if any event of it was folded.
    pub fn stream(&self, stream: StreamId) -> Option<&State> {
        self.streams.get(&stream)
    }

    /// All streams, in order of their ids.
    pub fn streams(&self) -> impl Iterator<Item = (StreamId, &State)> {
        self.streams.iter().map(|(id, state)| (*id, state))
    }

    /// The newest seq that was folded.
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The store's own policy at `at`: that of streams without one of their own.
    pub fn policy(&self, at: Seq) -> Arc<Policy> {
        let count = self.policies.partition_point(|(since, _)| *since <= at);
        let last = count.checked_sub(1).and_then(|last| self.policies.get(last));
        last.map(|(_, policy)| Arc::clone(policy)).unwrap_or_default()
    }
}
