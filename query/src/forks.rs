//! Forks: sessions that continue another one from a point in time.

use acpdb_engine::entry::{Entry, PointRef, StreamInfo, fact};
use acpdb_engine::ids::Seq;
use acpdb_engine::store::StreamName;
use acpdb_engine::{Error, Store, View};

/// Highest number for the name of a fork.
const FORK_NUMBER_MAX: u32 = 9_999;

/// A fork that may begin, but for its name.
#[derive(Clone, Debug)]
pub struct ForkPlan {
    /// The last event that it shares with its parent.
    pub at: Seq,
    parent: StreamName,
    info: StreamInfo,
}

/// How a fork of `parent` as of a view begins. Without a title of its own it is named after its parent: the first prompt of both is the same,
/// and a list could not tell them apart.
///
/// # Errors
/// If the log cannot be read.
pub fn fork_plan(
    store: &Store,
    view: &View,
    parent: StreamName,
    title: Option<String>,
) -> Result<ForkPlan, Error> {
    // The fork begins at an event of its parent, not at any seq of the store.
    let at = view.at().min(parent.head);
    let facts = view.state().info(at).cloned().unwrap_or_default();
    let turn = view.state().turn(at).get();
    let told = crate::titles::title_of(store, &parent, facts.title.as_deref())?;
    let told = told.unwrap_or_else(|| parent.name.clone());
    let info = StreamInfo {
        title: Some(title.unwrap_or_else(|| format!("fork of {told} at t{turn}"))),
        cwd: facts.cwd,
        project: facts.project,
        ..StreamInfo::session(parent.host.clone(), String::new())
    };
    Ok(ForkPlan { at, parent, info })
}

impl ForkPlan {
    /// The fork of a name.
    #[must_use]
    pub fn named(&self, name: String) -> StreamInfo {
        StreamInfo { name, ..self.info.clone() }
    }

    /// The names of forks that bear none of their own, in order: the first that is free is taken.
    pub fn numbered(&self) -> impl Iterator<Item = String> + '_ {
        (1..=FORK_NUMBER_MAX).map(|number| format!("{}-fork-{number}", self.parent.name))
    }

    /// The first event of the fork.
    #[must_use]
    pub fn entry(&self) -> Entry {
        let (from, at) = (self.parent.id, self.at);
        Entry::from(fact::Forked { from, at: PointRef::Seq(at) })
            .origin(format!("forked:{}:{at}", from.to_hex()))
    }
}
