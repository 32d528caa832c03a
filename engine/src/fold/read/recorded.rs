//! A stream and its items as they were recorded: what stands in which order, and of which bodies it is made.

use std::sync::Arc;

use crate::event::{Body, Face, PartKind};
use crate::fold::facts::{Finish, ItemKind, PartFact, Size};
use crate::fold::history::Cause;
use crate::fold::number::{Ix, NONE, index};
use crate::fold::policy::Policy;
use crate::fold::stamped::{last_until, until};
use crate::fold::state::{Rebase, State, Status, StreamFacts};
use crate::ids::{BodyId, Seq, StreamId, Turn};

/// A part of an output.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct PartView {
    /// Its kind.
    pub kind: PartKind,
    /// Its content.
    pub body: BodyId,
    /// Length in bytes.
    pub bytes: u64,
    /// Estimated tokens.
    pub tokens: u32,
    /// Media type, for media.
    pub media_type: Option<String>,
    /// The provider's signature.
    pub signature: Option<BodyId>,
}

impl State {
    /// The stream.
    pub const fn id(&self) -> StreamId {
        self.id
    }

    /// The seq of its first event.
    pub const fn first(&self) -> Seq {
        self.first
    }

    /// The seq of its newest event.
    pub const fn head(&self) -> Seq {
        self.head
    }

    /// The turn at `at`.
    pub fn turn(&self, at: Seq) -> Turn {
        self.history.turn(at)
    }

    /// Prompts of the user so far.
    pub fn prompt_count(&self, at: Seq) -> u32 {
        index(self.history.prompts.partition_point(|seq| *seq <= at))
    }

    /// Estimated tokens of the items of the context at `at`, without system prompt and tools: as the rules show them in a session that acpdb serves,
    /// else as the host sends them.
    pub fn context_tokens(&self, at: Seq) -> u64 {
        let total = self.history.total(at);
        if self.served(at).is_empty() { total.whole } else { total.shown }
    }

    /// Whether the context has passed a size by the end of an answered prompt up to `at`: a host that tells of sizes with prompts told of it.
    pub fn had_passed(&self, tokens: u64, at: Seq) -> bool {
        let last_turn =
            last_until(&self.history.turns, at, |(seq, _)| *seq).map_or(Seq::ZERO, |(seq, _)| *seq);
        let answered = self.history.prompts.iter().take_while(|seq| **seq < last_turn);
        answered.into_iter().any(|seq| self.context_tokens(*seq) >= tokens)
    }

    /// The policy in force at `at`: the stream's own, else the store's.
    pub fn policy(&self, at: Seq) -> &Arc<Policy> {
        let last = last_until(&self.policies, at, |(since, _)| *since);
        &last.map_or(&self.core.policy, |(_, policy)| policy).0
    }

    /// The known facts about the stream itself at `at`; `None` before it was opened.
    pub fn info(&self, at: Seq) -> Option<&StreamFacts> {
        last_until(&self.infos, at, |(since, _)| *since).map(|(_, info)| &**info)
    }

    /// When the session was last closed, at `at`. A later event reopens it.
    pub fn closed(&self, at: Seq) -> Option<Seq> {
        last_until(&self.closed, at, |seq| *seq).copied()
    }

    /// Epochs of the served context up to `at`, oldest first.
    pub fn rebases(&self, at: Seq) -> &[Rebase] {
        until(&self.rebases, at, |rebase| rebase.seq)
    }

    /// Contexts that were served up to `at`, oldest first.
    pub fn served(&self, at: Seq) -> &[(Seq, crate::event::ContextServed)] {
        until(&self.served, at, |(seq, _)| *seq)
    }

    /// The prompts before the messages at `at`, with the event that set each: later ones overlay earlier ones.
    pub fn prompts(&self, at: Seq) -> &[(Seq, crate::event::PromptSet)] {
        until(&self.prompts, at, |(seq, _)| *seq)
    }

    /// Providers' reports about messages up to `at`, oldest first.
    pub fn message_reports(&self, at: Seq) -> &[(Seq, crate::event::MessageFinished)] {
        until(&self.finished, at, |(seq, _)| *seq)
    }

    /// Forks that this stream began with, up to `at`.
    pub fn forks(&self, at: Seq) -> &[(Seq, crate::event::Forked)] {
        until(&self.forks, at, |(seq, _)| *seq)
    }

    /// Every item recorded up to `at`, in the order of recording.
    pub fn items(&self, at: Seq) -> impl DoubleEndedIterator<Item = Ix> + use<> {
        (0..index(self.facts.items.partition_point(|item| item.id.seq <= at))).map(Ix)
    }

    /// Items of the current context at `at`, in conversation order.
    pub fn current(&self, at: Seq) -> Vec<Ix> {
        let (list, from) =
            self.history.order(at).map_or((&[][..], Ix(0)), |order| (order.list.as_slice(), order.from));
        let later = self.items(at).filter(|ix| *ix >= from);
        let mut current: Vec<Ix> = list.iter().copied().chain(later).collect();
        current.retain(|ix| self.is_in_context(*ix, at));
        current
    }

    /// Whether an item is part of the context: recorded, on the branch, not left, and not hidden by its host.
    pub fn is_in_context(&self, ix: Ix, at: Seq) -> bool {
        let Some(item) = self.facts.item(ix) else { return false };
        item.id.seq <= at && !item.hidden && !self.is_out(ix, at)
    }

    /// Whether a rewind took an item off the branch.
    pub fn is_off_branch(&self, ix: Ix, at: Seq) -> bool {
        self.history.rows_of(ix).any(|row| row.cause == Cause::OffBranch && row.holds(at))
    }

    /// Whether the host has put its own text in place of an item.
    pub(crate) fn is_cleared(&self, ix: Ix, at: Seq) -> bool {
        self.history.rows_of(ix).any(|row| matches!(row.cause, Cause::Cleared { .. }) && row.holds(at))
    }

    /// Whether an item is off the branch or has left the context.
    pub(crate) fn is_out(&self, ix: Ix, at: Seq) -> bool {
        self.history
            .rows_of(ix)
            .any(|row| matches!(row.cause, Cause::OffBranch | Cause::Left) && row.holds(at))
    }

    /// The parts of an output face at `at`, with the event that names their bodies; `None` if the call is unfinished.
    pub(crate) fn output_parts(&self, ix: Ix, at: Seq) -> Option<(Seq, &[PartFact])> {
        // One walk for both: each event asks this for each face that it touches, before and after.
        let mut answer = None;
        for row in self.history.facts_of(ix).filter(|row| row.holds(at)) {
            match row.cause {
                Cause::Revised { revision } if row.face == Face::Output => {
                    let revision = self.facts.revisions.get(revision as usize)?;
                    return Some((revision.seq, self.facts.parts_of(revision.parts)));
                }
                Cause::Answered { finish } => answer = answer.or(Some(finish)),
                _ => {}
            }
        }
        let finish = self.facts.finishes.get(answer? as usize)?;
        Some((finish.seq, self.facts.parts_of(finish.output)))
    }

    /// Parameters of a call at `at`: the event that names the body, and the body.
    pub(crate) fn input_body(&self, ix: Ix, at: Seq) -> Option<(Seq, Body)> {
        let item = self.facts.item(ix).filter(|item| item.call != NONE)?;
        let revised = self.history.revision(ix, Face::Input, at).and_then(|number| {
            let revision = self.facts.revisions.get(number as usize)?;
            Some((revision.seq, self.facts.parts_of(revision.parts).first()?.body))
        });
        Some(revised.unwrap_or((item.id.seq, item.body)))
    }

    /// The parameters of a call at `at`; `None` for an item that is no call, or was not recorded then.
    ///
    /// Cost: a fraction of [`State::item`].
    pub fn params(&self, ix: Ix, at: Seq) -> Option<BodyId> {
        self.facts.item(ix).filter(|item| item.id.seq <= at)?;
        self.input_body(ix, at).map(|(seq, body)| body.id(seq))
    }

    /// Size of a face as recorded; `None` if there is no such face at `at`.
    pub(crate) fn face_size(&self, ix: Ix, face: Face, at: Seq) -> Option<Size> {
        let item = self.facts.item(ix).filter(|item| item.id.seq <= at)?;
        match (face, item.kind) {
            (Face::Input, ItemKind::Call) => self.input_body(ix, at).map(|(_, body)| Size::of_body(&body)),
            (Face::Input, _) => None,
            (Face::Output, ItemKind::Call | ItemKind::Result) => {
                self.output_parts(ix, at).map(|(_, parts)| Size::of(parts))
            }
            (Face::Output, _) => Some(match self.output_parts(ix, at) {
                Some((_, parts)) => Size::of(parts),
                None => Size::of_body(&item.body),
            }),
        }
    }

    /// The end of a call at `at`, or the result that is an item of its own.
    pub(crate) fn finish(&self, ix: Ix, at: Seq) -> Option<&Finish> {
        self.facts.finishes.get(self.history.answer(ix, at)? as usize)
    }

    /// The status of a call at `at`; `None` for an item that is no call.
    pub fn status(&self, ix: Ix, at: Seq) -> Option<Status> {
        self.facts.call(ix)?;
        Some(self.finish(ix, at).map_or(Status::Pending, |finish| finish.outcome.into()))
    }

    /// The parts of an item's content or result at `at`, as recorded.
    pub fn content(&self, ix: Ix, at: Seq) -> Vec<PartView> {
        let Some(item) = self.facts.item(ix).filter(|item| item.id.seq <= at) else { return Vec::new() };
        let view = |seq: Seq, part: &PartFact| {
            let extra = self.facts.extra(part.extra);
            PartView {
                kind: part.kind,
                body: part.body.id(seq),
                bytes: part.body.bytes,
                tokens: part.body.tokens,
                media_type: extra.media_type.map(|name| self.facts.names.text(name).to_owned()),
                signature: extra.signature.map(|body| body.id(seq)),
            }
        };
        if let Some((seq, parts)) = self.output_parts(ix, at) {
            return parts.iter().map(|part| view(seq, part)).collect();
        }
        let kind = match item.kind {
            ItemKind::Call | ItemKind::Result => return Vec::new(),
            ItemKind::Text | ItemKind::Injected => PartKind::Text,
            ItemKind::Reasoning => PartKind::Reasoning,
            ItemKind::Media => PartKind::Media,
            ItemKind::Opaque => PartKind::Opaque,
        };
        vec![view(item.id.seq, &PartFact { body: item.body, extra: item.extra, kind })]
    }
}
