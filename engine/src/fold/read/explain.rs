//! Why an item is, or is not, in the current context.

use crate::event::{Face, KeyKind, ToolClass};
use crate::fold::history::{Cause, is_before};
use crate::fold::number::Ix;
use crate::fold::policy::Paths;
use crate::fold::rules::{names_protected_file, tool_lists};
use crate::fold::state::State;
use crate::fold::state::Status;
use crate::ids::{ItemId, Seq, Turn};

use super::{CauseView, EdgeView, FaceState, FaceView};

/// A protection that keeps the rules from an item: the first that holds, in this order.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Protection {
    /// Pinned.
    Pinned,
    /// It names a protected file.
    File,
    /// Its tool is protected.
    Tool,
    /// It is of one of the newest turns.
    Turn,
}

/// Whether the model can still see an item's content.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Visibility {
    /// Its content is in the current context, whole.
    pub visible: bool,
    /// How its content is shown.
    pub state: FaceState,
    /// The event by which the file that it shows was changed, by no call: the visible content is stale.
    pub stale: Option<Seq>,
}

/// Why an item is as it is.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// use acpdb_engine::{ContextAction, Target};
///
/// let _ = store.context(session.id(), ContextAction::Discard, vec![(Target::Item(item), None)])?;
/// let why = session.view()?.explain(item).ok_or("it is there")?;
/// println!("{:?}, because of {:?}", why.output.state, why.output.cause);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Explanation {
    /// The item.
    pub item: ItemId,
    /// Whether it is part of the current context at all (its faces may still be hidden).
    pub in_context: bool,
    /// Status of its call.
    pub status: Option<Status>,
    /// Its turn.
    pub turn: Turn,
    /// Its parameters as shown, and why.
    pub input: FaceView,
    /// Its content as shown, and why.
    pub output: FaceView,
    /// The edge that hides it, if one does.
    pub edge: Option<EdgeView>,
    /// All edges in which it is the older one.
    pub superseded_by: Vec<EdgeView>,
    /// All edges in which it is the newer one.
    pub supersedes: Vec<EdgeView>,
    /// The protection that keeps the rules from it now.
    pub protection: Option<Protection>,
    /// The event by which the file that it shows was changed, by no call.
    pub stale: Option<Seq>,
    /// How long it had rested, if a rule set it aside for its age.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rested: Option<Rested>,
    /// Preset of the policy that was in force when it was hidden, else of the one in force now.
    pub policy: String,
}

/// How long an item had rested when a rule set it aside.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Rested {
    /// The turn in which it was made, or a file of it was last touched.
    pub last_touch: Turn,
    /// Turns from then until it was set aside.
    pub turns: u32,
}

impl State {
    /// Why an item is, or is not, in the current context at `at`; `None` if it was not recorded then.
    pub fn explain(&self, ix: Ix, at: Seq) -> Option<Explanation> {
        let item = self.facts.item(ix).filter(|item| item.id.seq <= at)?;
        let output = self.face(ix, Face::Output, at);
        let input = self.face(ix, Face::Input, at);
        let superseded_by = self.superseded_by(ix, at);
        let hides = matches!(output.cause, Some(CauseView::Superseded { .. }));
        let edge = superseded_by.iter().find(|edge| hides && !edge.released).cloned();
        // An edge that a rewind or a fork began anew is as old as the rule's act, not as its row.
        let since = match output.cause {
            Some(CauseView::Superseded { seq, .. }) => seq,
            _ => self.history.cause(ix, Face::Output, at).map_or(at, |row| row.since),
        };
        Some(Explanation {
            item: item.id,
            in_context: self.is_in_context(ix, at),
            status: self.status(ix, at),
            turn: item.turn,
            input,
            output,
            edge,
            superseded_by,
            supersedes: self.supersedes(ix, at),
            protection: self.protection(ix, at),
            stale: self.stale(ix, at),
            rested: self.rested(ix, at),
            policy: self.policy(since).preset.clone(),
        })
    }

    /// How long an item had rested when it was set aside for that. Cost: O(items).
    fn rested(&self, ix: Ix, at: Seq) -> Option<Rested> {
        let row = [Face::Output, Face::Input].into_iter().find_map(|face| {
            let row = self.history.cause(ix, face, at)?;
            matches!(row.cause, Cause::Shortened { rule, .. } if rule.is_idle()).then_some(row)
        })?;
        let paths = self.policy(row.since).paths;
        let files = |ix: Ix| {
            let keys = self.facts.call(ix).map_or(&[][..], |call| self.facts.keys_of(call));
            let files = keys.iter().filter(|key| key.kind == KeyKind::File);
            files.map(move |key| if paths == Paths::Raw { key.id_given } else { key.id_resolved })
        };
        let own: Vec<_> = files(ix).collect();
        let touches =
            self.items(row.since).filter(|other| *other == ix || files(*other).any(|id| own.contains(&id)));
        let last_touch = touches
            .filter_map(|other| {
                let finish = self.finish(other, row.since);
                let ended =
                    finish.filter(|_| other != ix || !own.is_empty()).map(|finish| self.turn(finish.seq));
                self.facts.item(other).map(|item| item.turn).max(ended)
            })
            .max()?;
        Some(Rested { last_touch, turns: row.turn.since(last_touch) })
    }

    /// The protection that keeps the rules from an item at `at`: the first that holds.
    pub fn protection(&self, ix: Ix, at: Seq) -> Option<Protection> {
        let policy = self.policy(at);
        if self.history.is_pinned(ix, at) {
            return Some(Protection::Pinned);
        }
        let item = self.facts.item(ix)?;
        self.facts.call(ix)?;
        if names_protected_file(&self.facts, policy, ix) {
            return Some(Protection::File);
        }
        if tool_lists(policy, self.facts.tool(ix)).protected {
            return Some(Protection::Tool);
        }
        let young = self.turn(at).since(item.turn) < policy.turn_protection.age_min();
        young.then_some(Protection::Turn)
    }

    /// The newest event by which a file that a view shows was changed outside of any call.
    pub fn stale(&self, ix: Ix, at: Seq) -> Option<Seq> {
        let call = self.facts.call(ix)?;
        let finish = self.finish(ix, at)?;
        let views = self.facts.keys_of(call).iter().filter(|key| {
            key.kind == KeyKind::File
                && matches!(key.class, ToolClass::Read | ToolClass::Write | ToolClass::Edit)
        });
        views
            .flat_map(|key| [key.id_given, key.id_resolved])
            .filter_map(|id| self.history.file_changes.get(&id))
            .flatten()
            .filter(|touch| touch.seq > finish.seq && touch.seq <= at && is_before(at, touch.until))
            .map(|touch| touch.seq)
            .max()
    }

    /// Whether the model can still see an item's content at `at`; `None` if it was not recorded then.
    pub fn visible(&self, ix: Ix, at: Seq) -> Option<Visibility> {
        self.facts.item(ix).filter(|item| item.id.seq <= at)?;
        let state = self.face(ix, Face::Output, at).state;
        let visible = state == FaceState::Whole && self.is_in_context(ix, at);
        Some(Visibility { visible, state, stale: self.stale(ix, at) })
    }
}
