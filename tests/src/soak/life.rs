//! A life: processes that open a store on one machine and follow their scripts, watched by the auditor.

use std::sync::Arc;
use std::time::Duration;

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::fold::Policy;
use acpdb_engine::storage::{FixedEntropy, SimStorage, SimWorld, Storage as _};
use acpdb_engine::{Atomicity, Builder, Error, Store};

use super::auditor::{Auditor, Lines};
use super::sabotage::{Sabotage, sabotaged};
use super::script::{Step, session};

/// How stores of a life are opened.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Length of a segment: short, so that a few commits fill one.
    pub segment_bytes_max: u64,
    /// Whether a failed step ends the process (crashes) or the next one is tried (faults).
    pub goes_on: bool,
    /// The rule that its storage breaks, to see that it is noticed.
    pub sabotage: Option<Sabotage>,
}

/// How a process of a simulated machine opens the store.
#[must_use]
pub fn builder(storage: &SimStorage, setting: Setting) -> Builder {
    Store::builder("/sim")
        .storage(sabotaged(storage, setting.sabotage))
        .clock(Arc::new(storage.clock()))
        .entropy(Arc::new(FixedEntropy::new(u64::from(storage.process()))))
        .registry(acpdb_hosts::registry())
        .segment_bytes_max(setting.segment_bytes_max)
        .lock_wait(Duration::from_millis(200))
}

/// One process of a life.
pub struct Actor<'a> {
    /// Its machine.
    pub storage: SimStorage,
    /// Its auditor.
    pub auditor: Auditor,
    /// How it opens the store.
    pub setting: Setting,
    /// Sessions that are known to be open.
    pub opened: Vec<usize>,
    /// Its steps.
    pub steps: &'a [Step],
}

impl Actor<'_> {
    /// Opens the store; the first one records its policy.
    fn open(&self) -> Result<Store, Error> {
        let first: Lines = vec!["policy_set".to_owned()].into();
        let is_new = self.auditor.now().is_empty();
        if is_new {
            self.auditor.tries(&first);
        }
        let store = builder(&self.storage, self.setting).open()?;
        if is_new && !self.storage.is_dead() {
            self.auditor.acknowledged(1, &first);
        }
        Ok(store)
    }

    /// Lives until the script ends or, unless it goes on after failures, until the first one.
    ///
    /// # Errors
    /// The failure that ended it.
    pub fn live(mut self) -> Result<(), Error> {
        let mut store = self.open()?;
        for step in self.steps {
            if self.storage.is_dead() {
                break;
            }
            if let Step::Reopen { close } = step {
                if *close
                    && let Err(error) = store.close()
                    && !self.setting.goes_on
                {
                    return Err(error);
                }
                drop(store);
                store = self.open()?;
                continue;
            }
            let done = match step {
                Step::Seal => store.seal(false).map(drop),
                _ => self.commit(&store, step),
            };
            match done {
                Err(Error::Poisoned) if self.setting.goes_on => {
                    drop(store);
                    store = self.open()?;
                }
                // Facts of others went first, as often as one tries: a possible fate, and nothing was recorded.
                // Another process seals or erases.
                Err(Error::Busy { .. }) if matches!(step, Step::Erase(..)) => {}
                Ok(()) | Err(Error::HeadMoved { .. } | Error::Rejected(_) | Error::NotFound { .. }) => {}
                Err(error) if !self.setting.goes_on => return Err(error),
                Err(_) => {}
            }
            if let Ok(head) = store.head()
                && !self.storage.is_dead()
            {
                self.auditor.shown(head.get());
            }
        }
        store.close()
    }

    fn commit(&mut self, store: &Store, step: &Step) -> Result<(), Error> {
        let mut sessions = step.sessions();
        sessions.retain(|session| !self.opened.contains(session));
        // A commit opens all its streams first.
        let mut lines: Vec<String> = sessions.iter().map(|_| "session_opened".to_owned()).collect();
        lines.extend(step.lines());
        let lines: Lines = lines.into();
        self.auditor.tries(&lines);
        let done = act(store, step);
        if self.storage.is_dead() {
            return done.map(drop);
        }
        match done {
            Ok(Some(first_seq)) => {
                self.auditor.acknowledged(first_seq, &lines);
                self.opened.extend(sessions);
                Ok(())
            }
            Ok(None) => {
                self.auditor.refused(&lines);
                Ok(())
            }
            Err(error) => {
                // An erasure is many steps; one that was recorded is ended later.
                let promises_nothing = !matches!(step, Step::Erase(..))
                    && matches!(
                        error,
                        Error::HeadMoved { .. }
                            | Error::Rejected(_)
                            | Error::NotFound { .. }
                            | Error::NoSpace { .. }
                    );
                if promises_nothing {
                    self.auditor.refused(&lines);
                }
                Err(error)
            }
        }
    }
}

/// Does one step; the seq of the first event it recorded, if it recorded any.
fn act(store: &Store, step: &Step) -> Result<Option<u64>, Error> {
    let context = |number: usize, action, call: &str, summary: Option<&str>| {
        let target = (Target::Call(call.to_owned()), summary.map(str::to_owned));
        let reply = store.context(session(number).id(), action, vec![target])?;
        Ok(reply.last_seq.map(acpdb_engine::ids::Seq::get))
    };
    match step {
        Step::Say(_) | Step::Call { .. } => {
            let receipt = store.commit(&step.batches(), Atomicity::One)?;
            Ok((receipt.event_count > 0).then_some(receipt.first_seq.get()))
        }
        Step::Discard(number, call) => context(*number, ContextAction::Discard, call, None),
        Step::Distill(number, call, summary) => context(*number, ContextAction::Distill, call, Some(summary)),
        Step::Restore(number, call) => context(*number, ContextAction::Restore, call, None),
        Step::Pin(number, call) => {
            let reply = store.pin(session(*number).id(), vec![Target::Call(call.clone())])?;
            Ok(reply.last_seq.map(acpdb_engine::ids::Seq::get))
        }
        Step::Policy(name, reason) => {
            let policy = Policy::preset(name).unwrap_or_default();
            Ok(Some(store.set_policy(None, &policy, Some(reason))?.get()))
        }
        Step::Erase(number, call) => {
            let view = store.view(session(*number).id())?;
            let item = view.history().into_iter().find(|item| item.call.as_deref() == Some(call.as_str()));
            // It may have failed to be recorded.
            let Some(item) = item else { return Ok(None) };
            Ok(store.erase(item.item, "soak", call)?.recorded.map(acpdb_engine::ids::Seq::get))
        }
        Step::Seal | Step::Reopen { .. } => Ok(None),
    }
}

/// A machine with a store in which every session is open, settled and durable, and the auditor that saw it made.
///
/// # Errors
/// If even that fails.
pub fn prepared(seed: u64, setting: Setting) -> Result<(SimWorld, Auditor), Error> {
    let world = SimWorld::new(seed);
    let auditor = Auditor::default();
    let storage = world.process(9);
    let steps: Vec<Step> = (0..super::script::SESSION_COUNT)
        .map(|number| Step::Say(vec![(number, format!("hello {number}"))]))
        .collect();
    let actor = Actor { storage, auditor: auditor.clone(), setting, opened: Vec::new(), steps: &steps };
    actor.live()?;
    Ok((world, auditor))
}
