//! The abilities of an engine, and the list of engines that are compared.

use std::path::Path;

use super::work::{Ask, Event, Sink};
use crate::Outcome;

/// An engine with its store open.
pub(crate) trait Engine {
    /// Appends events as one commit, which is durable when the call returns.
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()>;

    /// Whether a commit may hold several events.
    fn has_batches(&self) -> bool {
        true
    }

    /// Waits for background work on which reads depend.
    fn settle(&mut self) -> Outcome<()> {
        Ok(())
    }

    /// Answers a lookup; `false` if the engine has no way to.
    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool>;

    /// Reads all events in order; `false` if the engine has no way to.
    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool>;
}

/// A kind of engine.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Makes or opens a store in a folder.
    pub(crate) open: fn(&Path) -> Outcome<Box<dyn Engine>>,
    /// Most events that the engine is given, and the reason.
    pub(crate) limit: Option<(u64, &'static str)>,
}

/// All engines, acpdb first.
pub(crate) fn all() -> Vec<Kind> {
    let kind = |name, open| Kind { name, open, limit: None };
    let mut kinds = vec![
        kind("acpdb log + index", super::own::open_log),
        kind("acpdb store", super::own::open_store),
        kind("raw file", super::raw::open),
    ];
    #[cfg(feature = "peers")]
    kinds.extend(super::peers::all());
    kinds.retain(|kind| !kind.name.is_empty());
    kinds
}
