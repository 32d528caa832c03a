//! Commands on an open store: asked, decided at the head, recorded as one commit, or refused with nothing recorded.
//!
//! ```text
//! lock the stream -> catch up -> decide(State at the head) -> refused: Error::Rejected
//!        ^                            |
//!        |                            +-> drafts -> one commit, if no other wrote to the stream   -> ingest state
//!        +---------------------------------------------- another did -+
//! ```
//!
//! `command` decides, without IO, which commands are allowed and how they are answered. This module brings the state and
//! the texts for that, and records the outcome. Memory has its own file, [`super::memory`].

use std::cell::Cell;
use std::fmt::Write as _;
use std::sync::Arc;

use serde::Deserialize;

use crate::command::draft::{Bodies, EventDraft};
use crate::command::task::{self, TaskUpdate};
use crate::command::{Command, ContextAction, Decision, Rejection, Target, decide};
use crate::error::Error;
use crate::event::{Actor, Payload, TaskStatus};
use crate::fold::{Ix, Policy};
use crate::ids::{BodyId, ItemId, Seq, StreamId};
use crate::index::FramePlace;
use crate::text::lossy;

use super::write::{CommandDrafts, unsigned};
use super::{Store, StoreInner, View};

/// The effect of a command on a context. Durable when you hold it.
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
/// let target = || vec![(Target::Item(item), None)];
/// let reply = store.context(session.id(), ContextAction::Discard, target())?;
/// println!("{}", reply.text); // what the agent is told
/// let again = store.context(session.id(), ContextAction::Discard, target())?;
/// assert!(again.hidden.is_empty()); // it is hidden already
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[must_use]
pub struct ActReply {
    /// The exact reply for the agent.
    #[serde(rename = "reply")]
    pub text: String,
    /// Last seq of the commit; absent if nothing was to be recorded.
    pub last_seq: Option<Seq>,
    /// Items that are hidden from now on, calls first, in order of their targets.
    pub hidden: Vec<ItemId>,
    /// Items that are shown from now on, likewise.
    pub shown: Vec<ItemId>,
}

/// The JSON of the context tool.
#[derive(Deserialize)]
struct ContextCall {
    action: ContextAction,
    targets: Vec<ContextTarget>,
    #[serde(default)]
    pin: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ContextTarget {
    Bare(String),
    Alone((String,)),
    Pair((String, Option<String>)),
}

/// A target as a model writes it.
fn read(text: String) -> Target {
    let item = text.trim().strip_prefix('#').and_then(|_| text.trim().parse().ok());
    item.map_or(Target::Auto(text), Target::Item)
}

impl Store {
    /// Runs a call of the context tool: `{"action": "discard" | "distill" | "restore", "targets": [[target, summary?], ..]}`.
    /// A target is an item (`#812`), else what [`Target::Auto`] means.
    ///
    /// All targets or none; the reply's text is exact. Cost: one fold of the stream (kept), and for a pattern the texts
    /// of the assistant's messages in the context.
    ///
    /// # Errors
    /// [`Error::Rejected`] with the exact error text, [`Error::NotFound`] for an unknown stream, and the errors of an
    /// append. Nothing was recorded then.
    pub fn context_tool(&self, stream: StreamId, json: &str) -> Result<ActReply, Error> {
        let json = self.inner.clean_json(json.as_bytes());
        let call: ContextCall = serde_json::from_slice(&json).map_err(|error| {
            Rejection::Malformed(format!(
                "the call is not {{\"action\": discard | distill | restore, \"targets\": [[target, summary?], ..]}}: {error}"
            ))
        })?;
        let targets = call.targets.into_iter().map(|target| match target {
            ContextTarget::Bare(text) | ContextTarget::Alone((text,)) => (read(text), None),
            ContextTarget::Pair((text, summary)) => (read(text), summary),
        });
        let command = Command::Context { action: call.action, targets: targets.collect(), pin: call.pin };
        self.act(stream, &command, Actor::Assistant)
    }

    /// Hides or shows the items that `targets` name, each with its summary if one is given.
    ///
    /// # Errors
    /// As [`Store::context_tool`].
    pub fn context(
        &self,
        stream: StreamId,
        action: ContextAction,
        mut targets: Vec<(Target, Option<String>)>,
    ) -> Result<ActReply, Error> {
        for summary in targets.iter_mut().filter_map(|(_, summary)| summary.as_mut()) {
            self.inner.clean_text(summary);
        }
        self.act(stream, &Command::Context { action, targets, pin: false }, Actor::User)
    }

    /// Shows the items that `targets` name, and keeps them from the rules until they are unpinned.
    ///
    /// # Errors
    /// As [`Store::context_tool`].
    pub fn restore_pinned(&self, stream: StreamId, targets: Vec<Target>) -> Result<ActReply, Error> {
        let targets = targets.into_iter().map(|target| (target, None)).collect();
        let command = Command::Context { action: ContextAction::Restore, targets, pin: true };
        self.act(stream, &command, Actor::User)
    }

    /// Keeps items from the rules.
    ///
    /// # Errors
    /// As [`Store::context_tool`]; also if a target names nothing.
    pub fn pin(&self, stream: StreamId, targets: Vec<Target>) -> Result<ActReply, Error> {
        self.act(stream, &Command::Pin { targets }, Actor::User)
    }

    /// Leaves items to the rules again.
    ///
    /// # Errors
    /// As [`Store::pin`].
    pub fn unpin(&self, stream: StreamId, targets: Vec<Target>) -> Result<ActReply, Error> {
        self.act(stream, &Command::Unpin { targets }, Actor::User)
    }

    /// Takes everything recorded after `to` off the active branch. If the branch has nothing after `to`, nothing is recorded.
    ///
    /// # Errors
    /// As [`Store::context_tool`]; also if `to` is past the store's head.
    pub fn rewind(&self, stream: StreamId, to: Seq) -> Result<ActReply, Error> {
        self.inner.sync()?;
        let view = self.view(stream)?;
        if to <= view.at() && !self.has_after(&view, to)? {
            let text = format!("Nothing to rewind: the branch has no event after {to}");
            return Ok(ActReply { text, ..ActReply::default() });
        }
        self.act(stream, &Command::Rewind { to }, Actor::User)
    }

    /// Whether the branch has an item after `to`, or an event of the stream itself: [`Store::rewind`] would take it off. Rewinds are on no branch.
    ///
    /// # Errors
    /// As [`Store::events`].
    pub fn has_after(&self, view: &View, to: Seq) -> Result<bool, Error> {
        let state = view.state();
        let is_after = |ix: &Ix| state.item_id(*ix).is_some_and(|item| item.seq > to);
        if state.current(view.at()).iter().any(is_after) {
            return Ok(true);
        }
        for recorded in self.stream_events(view.stream(), to.next(), view.at())? {
            let recorded = recorded?;
            let is_rewind = matches!(recorded.event.payload, Payload::Rewound(_));
            if !is_rewind && !state.is_left(recorded.seq, view.at()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn act(&self, stream: StreamId, command: &Command, actor: Actor) -> Result<ActReply, Error> {
        let (decision, written) = self.inner.decided(&[], &[stream], &mut |signers| {
            let view = View::new(self, stream, &super::At::Head)?;
            let (places, _) = self.inner.frames_of(&[stream], Seq::ZERO)?;
            let read = |body: BodyId| self.inner.text_in(&places, body);
            let signer = signers.get(&stream).cloned().unwrap_or_else(unsigned);
            let mut decision = decide(view.state(), command, &read, &signer).map_err(Rejection::from)?;
            let drafts = std::mem::take(&mut decision.drafts);
            Ok((vec![CommandDrafts { stream, actor, drafts }], decision))
        })?;
        let Decision { reply: text, mut calls, parts, .. } = decision;
        calls.extend(parts);
        let restores = matches!(command, Command::Context { action: ContextAction::Restore, .. });
        let (hidden, shown) = if restores { (Vec::new(), calls) } else { (calls, Vec::new()) };
        Ok(ActReply { text, last_seq: written.map(|written| written.last_seq), hidden, shown })
    }

    /// The policy in force after `at` ([`Seq::MAX`] for now): of one stream, or the store's own, which holds for all
    /// streams that set none of theirs.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown stream.
    pub fn policy(&self, stream: Option<StreamId>, at: Seq) -> Result<Arc<Policy>, Error> {
        if let Some(stream) = stream.filter(|stream| *stream != StreamId::STORE) {
            return Ok(Arc::clone(self.view(stream)?.state().policy(at)));
        }
        let loaded = self.inner.fold(StreamId::STORE)?;
        Ok(loaded.world.policy(at))
    }

    /// Sets the policy for later events: of one stream, or of the store. Earlier conclusions stay.
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown stream, and the errors of an append.
    pub fn set_policy(
        &self,
        stream: Option<StreamId>,
        policy: &Policy,
        reason: Option<&str>,
    ) -> Result<Seq, Error> {
        self.change_policy(stream, reason, &|_| Ok(policy.clone()))
    }

    /// Sets the policy that `change` makes from the one in force. `change` may be called again if another writer set a
    /// policy meanwhile.
    ///
    /// # Errors
    /// The error of `change`, as [`Error::Rejected`]; else as [`Store::set_policy`].
    pub fn change_policy(
        &self,
        stream: Option<StreamId>,
        reason: Option<&str>,
        change: &dyn Fn(&Policy) -> Result<Policy, crate::fold::PolicyError>,
    ) -> Result<Seq, Error> {
        let home = stream.unwrap_or(StreamId::STORE);
        let reason = reason.map(|reason| self.inner.cleaned(reason));
        let ((), written) = self.inner.decided(&[], &[home], &mut |_| {
            let policy = change(&*self.policy(stream, Seq::MAX)?).map_err(Rejection::from)?;
            let payload =
                crate::event::PolicySet { policy: policy.to_json(), reason: reason.as_ref().map(Into::into) };
            let draft = EventDraft::of(payload, Bodies::default());
            Ok((vec![CommandDrafts { stream: home, actor: Actor::User, drafts: vec![draft] }], ()))
        })?;
        // Nothing was recorded: no seq.
        Ok(written.map(|written| written.last_seq).unwrap_or_default())
    }

    /// Changes the tasks of a session, as an agent asks for it: `{"tasks": [{"id": .., "status": ..}, ..]}`.
    ///
    /// The outputs of a completed task are hidden behind its summary in the same commit.
    ///
    /// # Errors
    /// [`Error::Rejected`] with the reason; the agent reads it after `Error updating task: `. Else as
    /// [`Store::context_tool`].
    pub fn update_tasks(&self, stream: StreamId, json: &[u8]) -> Result<ActReply, Error> {
        let update = TaskUpdate::from_json(&self.inner.clean_json(json)).map_err(Rejection::from)?;
        let ((completed, again), written) = self.inner.decided(&[], &[stream], &mut |_| {
            let view = View::new(self, stream, &super::At::Head)?;
            let tasks = view.state().tasks();
            let is_again = |entry: &&task::TaskEntry| {
                let known = tasks.task(&entry.id, Seq::MAX);
                entry.status == Some(TaskStatus::Completed)
                    && entry.result_summary.is_some()
                    && known.is_some_and(|known| known.status == TaskStatus::Completed)
            };
            let again: Vec<String> =
                update.tasks.iter().filter(is_again).map(|entry| entry.id.clone()).collect();
            // An erased or damaged text counts as gone. A text that cannot be read now must not be recorded as if there were none.
            let failed = Cell::new(None);
            let read = |body: BodyId| match self.inner.body(body) {
                Ok(bytes) => Some(bytes),
                Err(Error::Erased { .. }) => None,
                Err(Error::Corrupt { detail, .. }) => {
                    self.inner.note_damage(detail);
                    None
                }
                Err(error) => {
                    failed.set(Some(error));
                    None
                }
            };
            let drafts = task::accept(view.state().tasks(), Seq::MAX, &update, None, &read);
            if let Some(error) = failed.take() {
                return Err(error);
            }
            let drafts = drafts.map_err(Rejection::from)?;
            let completed: Vec<String> = drafts
                .iter()
                .filter_map(|draft| match &draft.event.payload {
                    Payload::TaskEvicted(evicted) => Some(evicted.task.clone()),
                    _ => None,
                })
                .collect();
            Ok((vec![CommandDrafts { stream, actor: Actor::Assistant, drafts }], (completed, again)))
        })?;
        let mut text = match update.tasks.len() {
            1 => "Updated 1 task".to_owned(),
            count => format!("Updated {count} tasks"),
        };
        if !completed.is_empty() {
            text.push_str("; completed and evicted: ");
            text.push_str(&completed.join(", "));
        }
        if !again.is_empty() {
            let again = again.join(", ");
            let _ = write!(
                text,
                "; completed already, with its first summary in place: {again} (start it again to replace that)"
            );
        }
        for (task, given, meant) in update.doubtful_fields() {
            let _ = write!(text, "; {task}: {given} is kept and not read, did you mean {meant}?");
        }
        let last_seq = written.map(|written| written.last_seq);
        Ok(ActReply { text, last_seq, ..ActReply::default() })
    }
}

impl StoreInner {
    /// The text of a body. Its frame is looked for among `places`, and else in the whole log, as for another stream's
    /// body. `None` if the text cannot be read.
    ///
    /// Reads one frame by its position, so that thousands of texts in order cost one pass over the log.
    pub(super) fn text_in(&self, places: &[FramePlace], id: BodyId) -> Option<String> {
        let at = places.partition_point(|place| place.last_seq < id.seq);
        let place = places.get(at).filter(|place| place.first_seq <= id.seq);
        let frame = match place {
            // A text that cannot be read is `None`, here and below.
            Some(place) => self.frame_at(place.position).ok()?,
            None if id.chunks == 0 => return Some(String::new()),
            // As above.
            None => self.frame_of(id.seq).ok()??,
        };
        // As above.
        self.body_in(&frame, id).ok().map(lossy)
    }
}
