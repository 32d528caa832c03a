//! A [`World`] as bytes and back: the content of a snapshot.
//!
//! ```text
//! World --rows of plain fields, archives between them--> bytes, front to back
//! bytes --a piece at a time, each number checked--> World, with lookup tables that are filled at first use
//! ```
//!
//! Pure: the caller knows where the bytes lie, whether they are whole, and whether they belong to the log at hand.
//! Validation makes any bytes safe to read, not right; so a caller checks the digest of the whole before it uses the result.
//!
//! The form is that of this program alone: a layout, not a format. [`LAYOUT_VERSION`] counts its changes, and a test
//! fails when the layout changed and the number did not.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::claims::Claims;
use super::facts::Facts;
use super::history::History;
use super::memory::MemoryState;
use super::op::Ops;
use super::policy::Policy;
use super::rows::{In, Later, Out, Pieces};
use super::state::{Core, Subs};
use super::state::{State, StreamFacts};
use super::task::TaskState;
use super::todo::TodoState;
use super::world::{Belongs, World};
use crate::ids::{Seq, StreamId};

/// Version of the layout: one more whenever any type in here changes.
pub(crate) const LAYOUT_VERSION: u32 = 13;

fn texts(policies: &[(Seq, Arc<Policy>)]) -> Vec<(Seq, String)> {
    policies.iter().map(|(since, policy)| (*since, Policy::shared_json(policy))).collect()
}

fn parsed(texts: Vec<(Seq, String)>) -> Option<Vec<(Seq, Arc<Policy>)>> {
    // A saved fold whose policy cannot be parsed is refused.
    let parse = |(since, json): (Seq, String)| Some((since, Policy::shared(&json).ok()?));
    texts.into_iter().map(parse).collect()
}

impl State {
    fn save(&self, out: &mut Out) -> Option<()> {
        // By name, so that a field to come is not forgotten.
        let Self {
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
            heard_at,
        } = self;
        let infos: Vec<(Seq, StreamFacts)> =
            infos.iter().map(|(since, info)| (*since, (**info).clone())).collect();
        out.archive(id)?;
        facts.save(out)?;
        core.save(out)?;
        history.save(out)?;
        todos.save(out)?;
        tasks.save(out)?;
        memory.save(out)?;
        ops.save(out)?;
        out.archive(&infos)?;
        out.archive(&texts(policies))?;
        out.archive(prompts)?;
        out.archive(finished)?;
        out.archive(rebases)?;
        out.archive(served)?;
        out.rows(closed);
        out.archive(forks)?;
        out.rows(rewinds);
        out.archive(counts)?;
        out.rows(&[*first, *head]);
        out.rows(times);
        out.rows(heard_at.as_slice());
        Some(())
    }

    fn read(saved: &mut In<'_>) -> Option<Self> {
        // In the order of `save`.
        let (id, facts) = (saved.archive()?, Facts::read(saved)?);
        let (core, history) = (Core::read(saved)?, History::read(saved)?);
        let (todos, tasks) = (Later::<TodoState>::read(saved)?, saved.archive::<TaskState>()?);
        let mut memory: MemoryState = saved.archive()?;
        memory.find_anew();
        let ops = Ops::read(saved)?;
        let infos: Vec<(Seq, StreamFacts)> = saved.archive()?;
        let policies = parsed(saved.archive()?)?;
        let (prompts, finished) = (saved.archive()?, saved.archive()?);
        let (rebases, served) = (saved.archive()?, saved.archive()?);
        let (closed, forks, rewinds) = (saved.rows()?, saved.archive()?, saved.rows()?);
        let counts = saved.archive()?;
        let [first, head] = *saved.rows::<Seq>()?.first_chunk()?;
        Some(Self {
            id,
            facts,
            core,
            history,
            subs: Subs { todos, tasks: tasks.into(), memory: memory.into() },
            ops,
            infos: infos.into_iter().map(|(since, info)| (since, Arc::new(info))).collect(),
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
            times: saved.rows()?,
            heard_at: saved.rows()?.first().copied(),
        })
    }
}

impl Core {
    fn save(&self, out: &mut Out) -> Option<()> {
        out.archive(self)?;
        out.rows(&self.live);
        self.claims.save(out);
        Some(())
    }

    fn read(saved: &mut In<'_>) -> Option<Self> {
        let mut core: Self = saved.archive()?;
        core.live = saved.rows()?;
        core.claims = Claims::read(saved)?;
        Some(core)
    }
}

impl World {
    /// The world as bytes, behind `before`. `None` if it is too large to be read back.
    pub(crate) fn save(&self, before: Vec<u8>) -> Option<Vec<u8>> {
        let Self { streams, policies, projects, session_memory, head } = self;
        let mut out = Out::behind(before);
        out.archive(&texts(policies))?;
        out.archive(&projects.iter().map(|(id, belongs)| (*id, *belongs)).collect::<Vec<_>>())?;
        out.archive(&session_memory.iter().copied().collect::<Vec<_>>())?;
        out.rows(&[*head]);
        out.number(streams.len());
        for state in streams.values() {
            state.save(&mut out)?;
        }
        out.finish()
    }

    /// The world out of bytes that [`World::save`] made. `None` if they are not such bytes, to the last one.
    pub(crate) fn restore(pieces: &mut dyn Pieces) -> Option<Self> {
        let mut saved = In::new(pieces);
        let policies = parsed(saved.archive()?)?;
        let projects: Vec<(StreamId, Belongs)> = saved.archive()?;
        let session_memory: Vec<StreamId> = saved.archive()?;
        let [head] = *saved.rows::<Seq>()?.first_chunk()?;
        let mut streams = BTreeMap::new();
        for _ in 0..saved.number()? {
            let state = State::read(&mut saved)?;
            streams.insert(state.id, Arc::new(state));
        }
        (pieces.left() == 0).then_some(Self {
            streams,
            policies,
            projects: Arc::new(projects.into_iter().collect()),
            session_memory: session_memory.into_iter().collect(),
            head,
        })
    }
}

#[cfg(test)]
mod tests;
