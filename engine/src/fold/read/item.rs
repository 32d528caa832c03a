//! Items and their faces.

use std::sync::Arc;

use crate::event::{Body, Face, InjectedKind, PartKind, Role, ToolClass};
use crate::fold::facts::{ItemKind, PartFact, Size};
use crate::fold::history::{Cause, CauseRow, Evicted, RuleKind, ShortenKind};
use crate::fold::number::{Ix, NONE};
use crate::fold::policy::Policy;
use crate::fold::state::Status;
use crate::fold::state::{Rebase, State, StreamFacts};
use crate::ids::{BodyId, ItemId, Micros, Seq, StreamId, Turn};

use super::Placeholder;

/// How a face is shown.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FaceState {
    /// As recorded.
    #[default]
    Whole,
    /// A short text says why it is gone.
    Tombstone,
    /// A summary.
    Summary,
    /// A shorter form of itself.
    Shortened,
    /// Nothing stands in its place: it left the context, or leaves no tombstone.
    Gone,
    /// There is no such face: the result of an unfinished call, the input of an item that is no call.
    Absent,
}

/// Why a face is not shown whole.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum CauseView {
    /// Its bytes were removed for good.
    Erased {
        /// When.
        seq: Seq,
    },
    /// Damage took its bytes.
    Lost {
        /// The event that says so.
        seq: Seq,
    },
    /// A rewind took it off the branch.
    OffBranch {
        /// The rewind.
        seq: Seq,
    },
    /// The context was replaced without it, as by a compaction.
    Left {
        /// When.
        seq: Seq,
    },
    /// The host gave its message up.
    Abandoned {
        /// When.
        seq: Seq,
    },
    /// The host put a text of its own in its place.
    ClearedByHost {
        /// When.
        seq: Seq,
        /// The host's text, if known.
        text: Option<BodyId>,
    },
    /// A request put a summary in its place.
    Distilled {
        /// The act.
        seq: Seq,
        /// The summary.
        summary: Option<BodyId>,
    },
    /// Its task was completed, or it is an older output of an active one.
    Evicted {
        /// The event that completed the task, or the newer output that pushed this one out.
        seq: Seq,
        /// The task.
        task: String,
        /// Rolling prune: the task is still active.
        rolling: bool,
    },
    /// A newer item made it stale.
    Superseded {
        /// When the edge came about.
        seq: Seq,
        /// In which turn.
        turn: Turn,
        /// The newer item; absent where an event without an item did it.
        by: Option<ItemId>,
        /// The rule.
        rule: RuleKind,
    },
    /// A request hid it.
    Discarded {
        /// The act.
        seq: Seq,
    },
    /// A rule shortened it.
    Shortened {
        /// When.
        seq: Seq,
        /// In which turn.
        turn: Turn,
        /// The rule.
        rule: ShortenKind,
    },
}

/// A face at a watermark.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct FaceView {
    /// How it is shown.
    pub state: FaceState,
    /// Why it is hidden or shortened. Stands also where the face stays whole because its placeholder would be longer.
    pub cause: Option<CauseView>,
    /// Bytes as recorded.
    pub bytes: u64,
    /// Estimated tokens as recorded.
    pub tokens: u64,
    /// Estimated tokens as shown.
    pub tokens_shown: u64,
}

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

/// An item at a watermark.
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
/// let view = session.view()?;
/// for item in view.history() {
///     let tool = item.tool.as_deref().unwrap_or("-");
///     println!("{} {:?} {tool}, {} tokens in the context", item.item, item.kind, item.output.tokens);
/// }
/// assert_eq!(view.history().len(), view.current().len()); // nothing was taken out
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct ItemView {
    /// Its id.
    pub item: ItemId,
    /// Its place in the order of recording.
    #[serde(skip)]
    pub ix: Ix,
    /// Its kind.
    pub kind: ItemKind,
    /// Role of its speaker.
    pub role: Role,
    /// The turn it was recorded in; a call's turn is the one it started in.
    pub turn: Turn,
    /// When it was recorded.
    pub recorded_at: Micros,
    /// Key of its message.
    pub message: Option<Arc<str>>,
    /// The host's id of the call.
    pub call: Option<Arc<str>>,
    /// Name of the tool.
    pub tool: Option<Arc<str>>,
    /// Class of the tool.
    pub class: Option<ToolClass>,
    /// Status of the call.
    pub status: Option<Status>,
    /// The event that finished the call.
    pub finished: Option<Seq>,
    /// The hash by which an agent names the call; absent for protected tools.
    pub hash: Option<String>,
    /// The call's keys, as given.
    pub keys: Vec<Arc<str>>,
    /// Kind of an injected text.
    pub injected: Option<InjectedKind>,
    /// The task that a tag in it names.
    pub task: Option<Arc<str>>,
    /// Whether it is part of the current context (its faces may still be hidden).
    pub in_context: bool,
    /// The host does not show it to the model: a notice, a line of the transcript.
    pub hidden_from_model: bool,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Parameters of a call.
    pub params: Option<BodyId>,
    /// The provider's signature on the part or call.
    pub provider_signature: Option<BodyId>,
    /// Content, or result of a call, part by part.
    pub content: Vec<PartView>,
    /// The part of the result that the model never sees.
    pub details: Option<BodyId>,
    /// The parameters as shown.
    pub input: FaceView,
    /// The content or result as shown.
    pub output: FaceView,
}

/// Tokens of one face.
#[derive(Clone, Copy, Default)]
pub(crate) struct FaceTokens {
    /// In the context, as recorded.
    pub(crate) whole: u64,
    /// In the context, as shown.
    pub(crate) shown: u64,
    /// As recorded, wherever it is.
    pub(crate) recorded: u64,
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
        crate::fold::number::index(self.history.prompts.partition_point(|seq| *seq <= at))
    }

    /// The policy in force at `at`: the stream's own, else the store's.
    pub fn policy(&self, at: Seq) -> &Arc<Policy> {
        let count = self.policies.partition_point(|(since, _)| *since <= at);
        let last = count.checked_sub(1).and_then(|last| self.policies.get(last));
        last.map_or(&self.core.policy, |(_, policy)| policy)
    }

    /// The known facts about the stream itself at `at`; `None` before it was opened.
    pub fn info(&self, at: Seq) -> Option<&StreamFacts> {
        let count = self.infos.partition_point(|(since, _)| *since <= at);
        self.infos.get(count.checked_sub(1)?).map(|(_, info)| info.as_ref())
    }

    /// When the session was last closed, at `at`. A later event reopens it.
    pub fn closed(&self, at: Seq) -> Option<Seq> {
        let count = self.closed.partition_point(|seq| *seq <= at);
        self.closed.get(count.checked_sub(1)?).copied()
    }

    /// Epochs of the served context up to `at`, oldest first.
    pub fn rebases(&self, at: Seq) -> &[Rebase] {
        let count = self.rebases.partition_point(|rebase| rebase.seq <= at);
        self.rebases.get(..count).unwrap_or_default()
    }

    /// Contexts that were served up to `at`, oldest first.
    pub fn served(&self, at: Seq) -> &[(Seq, crate::event::ContextServed)] {
        let count = self.served.partition_point(|(seq, _)| *seq <= at);
        self.served.get(..count).unwrap_or_default()
    }

    /// The prompts before the messages at `at`, with the event that set each: later ones overlay earlier ones.
    pub fn prompts(&self, at: Seq) -> &[(Seq, crate::event::PromptSet)] {
        let count = self.prompts.partition_point(|(seq, _)| *seq <= at);
        self.prompts.get(..count).unwrap_or_default()
    }

    /// Providers' reports about messages up to `at`, oldest first.
    pub fn message_reports(&self, at: Seq) -> &[(Seq, crate::event::MessageFinished)] {
        let count = self.finished.partition_point(|(seq, _)| *seq <= at);
        self.finished.get(..count).unwrap_or_default()
    }

    /// Forks that this stream began with, up to `at`.
    pub fn forks(&self, at: Seq) -> &[(Seq, crate::event::Forked)] {
        let count = self.forks.partition_point(|(seq, _)| *seq <= at);
        self.forks.get(..count).unwrap_or_default()
    }

    /// Every item recorded up to `at`, in the order of recording.
    pub fn items(&self, at: Seq) -> impl DoubleEndedIterator<Item = Ix> + use<> {
        (0..crate::fold::number::index(self.facts.items.partition_point(|item| item.id.seq <= at))).map(Ix)
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

    /// Tokens of a face at `at`.
    pub(crate) fn face_tokens(&self, ix: Ix, face: Face, at: Seq) -> FaceTokens {
        let Some(size) = self.face_size(ix, face, at) else { return FaceTokens::default() };
        let is_hidden = self.facts.item(ix).is_none_or(|item| item.hidden);
        let (is_out, cause) = self.history.standing(ix, face, at);
        if is_hidden || is_out {
            return FaceTokens { recorded: size.tokens, ..FaceTokens::default() };
        }
        let shown = match cause {
            None => size.tokens,
            Some(row) => self.placeholder_figures(ix, face, &row, size, at).1,
        };
        FaceTokens { whole: size.tokens, shown, recorded: size.tokens }
    }

    /// Tokens of a face that was read at `at`: as [`State::face_tokens`], without reading it again.
    pub(crate) fn tokens_in(&self, ix: Ix, view: &FaceView, at: Seq) -> FaceTokens {
        if self.is_in_context(ix, at) {
            FaceTokens { whole: view.tokens, shown: view.tokens_shown, recorded: view.tokens }
        } else {
            FaceTokens { recorded: view.tokens, ..FaceTokens::default() }
        }
    }

    /// A face at `at`.
    pub fn face(&self, ix: Ix, face: Face, at: Seq) -> FaceView {
        let Some(size) = self.face_size(ix, face, at) else {
            return FaceView { state: FaceState::Absent, cause: None, bytes: 0, tokens: 0, tokens_shown: 0 };
        };
        let row = self.history.cause(ix, face, at);
        let (state, tokens_shown) = match (&row, self.face_by_host(ix)) {
            (Some(row), _) => self.placeholder_figures(ix, face, row, size, at),
            (None, FaceState::Gone) => (FaceState::Gone, 0),
            (None, state) => (state, size.tokens),
        };
        let cause = row.map(|row| self.cause_view(&row));
        FaceView { state, cause, bytes: size.bytes, tokens: size.tokens, tokens_shown }
    }

    /// How a face is shown at `at`: as [`State::face`] says, without the reason and the figures.
    pub fn face_state(&self, ix: Ix, face: Face, at: Seq) -> FaceState {
        let Some(size) = self.face_size(ix, face, at) else { return FaceState::Absent };
        match self.history.cause(ix, face, at) {
            Some(row) => self.placeholder_state(ix, face, &row, size, at),
            None => self.face_by_host(ix),
        }
    }

    /// How a face without a cause is shown: a host also records items that are not for the model.
    fn face_by_host(&self, ix: Ix) -> FaceState {
        let is_hidden = self.facts.item(ix).is_some_and(|item| item.hidden);
        if is_hidden { FaceState::Gone } else { FaceState::Whole }
    }

    /// The placeholder of a face that the host or an erasure hid: acpdb's own conclusions do not count. `None` where the face is
    /// as it was recorded.
    pub fn recorded_placeholder(&self, ix: Ix, face: Face, at: Seq) -> Option<Placeholder> {
        let row = self.history.cause(ix, face, at)?;
        let is_hosts = matches!(
            row.cause,
            Cause::Erased { .. } | Cause::OffBranch | Cause::Left | Cause::Cleared { .. }
        );
        if is_hosts { self.placeholder(ix, face, at) } else { None }
    }

    /// An item as the host had it at `at`: acpdb's conclusions about it do not count.
    pub fn recorded_item(&self, ix: Ix, at: Seq) -> Option<ItemView> {
        let mut item = self.item(ix, at)?;
        for (face, view) in [(Face::Input, &mut item.input), (Face::Output, &mut item.output)] {
            if view.cause.is_some() && self.recorded_placeholder(ix, face, at).is_none() {
                (view.state, view.cause, view.tokens_shown) = (FaceState::Whole, None, view.tokens);
            }
        }
        Some(item)
    }

    /// Why a face is hidden at `at`, if it is.
    pub(crate) fn cause_view(&self, row: &CauseRow) -> CauseView {
        let seq = row.since;
        match row.cause {
            Cause::Erased { lost: false } => CauseView::Erased { seq },
            Cause::Erased { lost: true } => CauseView::Lost { seq },
            Cause::OffBranch => CauseView::OffBranch { seq },
            Cause::Cleared { act } => CauseView::ClearedByHost { seq, text: self.act_body(act, 0) },
            Cause::Distilled { act, at } => CauseView::Distilled { seq, summary: self.act_body(act, at) },
            // The row may be later than its eviction: a call that ended late, a summary that moved.
            Cause::Evicted { eviction, how, .. } => match self.facts.rare.evictions.get(eviction as usize) {
                Some(eviction) => CauseView::Evicted {
                    seq: eviction.seq,
                    task: self.facts.names.text(eviction.task).to_owned(),
                    rolling: how == Evicted::Rolling,
                },
                None => CauseView::Left { seq },
            },
            Cause::Superseded { edge } => match self.history.edges.get(edge) {
                Some(edge) => CauseView::Superseded {
                    seq: edge.seq,
                    turn: edge.turn,
                    by: self.facts.item(Ix(edge.new)).map(|item| item.id),
                    rule: edge.kind,
                },
                None => CauseView::Left { seq },
            },
            Cause::Discarded { .. } => CauseView::Discarded { seq },
            Cause::Shortened { rule, .. } => CauseView::Shortened { seq, turn: row.turn, rule },
            Cause::Left if !self.history.is_ordered_in(seq) => CauseView::Abandoned { seq },
            Cause::Left | Cause::Answered { .. } | Cause::Revised { .. } | Cause::Pinned => {
                CauseView::Left { seq }
            }
        }
    }

    pub(crate) fn act_body(&self, act: u32, at: u32) -> Option<BodyId> {
        let act = self.facts.rare.acts.get(act as usize)?;
        Some(act.items.get(at as usize)?.summary?.id(act.seq))
    }

    /// The status of a call at `at`; `None` for an item that is no call.
    pub fn status(&self, ix: Ix, at: Seq) -> Option<Status> {
        self.facts.call(ix)?;
        let finish = self.history.answer(ix, at).and_then(|finish| self.facts.finishes.get(finish as usize));
        Some(finish.map_or(Status::Pending, |finish| finish.outcome.into()))
    }

    /// An item at `at`; `None` if it was not recorded then.
    pub fn item(&self, ix: Ix, at: Seq) -> Option<ItemView> {
        let item = self.facts.item(ix).filter(|item| item.id.seq <= at)?;
        let call = self.facts.call(ix);
        let extra = self.facts.extra(item.extra);
        let name = |name| self.facts.names.shared(name);
        let finish = self.history.answer(ix, at).and_then(|finish| self.facts.finishes.get(finish as usize));
        let message = self.facts.messages.get(item.message as usize).map(|message| name(message.key));
        Some(ItemView {
            item: item.id,
            ix,
            kind: item.kind,
            role: item.role,
            turn: item.turn,
            recorded_at: item.recorded_at,
            message,
            call: call.map(|call| name(call.host_id)).or_else(|| {
                finish.filter(|_| item.kind == ItemKind::Result).map(|finish| name(finish.host_id))
            }),
            tool: call.map(|call| name(call.tool)),
            class: call.map(|call| call.class),
            status: self.status(ix, at),
            finished: finish.map(|finish| finish.seq),
            hash: self.hash(ix, at, super::HashForm::Shown),
            keys: call
                .map(|call| self.facts.keys_of(call).iter().map(|key| name(key.given)).collect())
                .unwrap_or_default(),
            injected: extra.injected,
            task: extra.task.or(finish.and_then(|finish| finish.task)).map(name),
            in_context: self.is_in_context(ix, at),
            hidden_from_model: item.hidden,
            pinned: self.history.is_pinned(ix, at),
            params: self.params(ix, at),
            provider_signature: extra.signature.map(|body| body.id(item.id.seq)),
            content: self.content(ix, at),
            details: finish.and_then(|finish| Some(self.facts.finish_extra(finish)?.details?.id(finish.seq))),
            input: self.face(ix, Face::Input, at),
            output: self.face(ix, Face::Output, at),
        })
    }

    /// The parts of an item's content or result at `at`, as recorded.
    pub fn content(&self, ix: Ix, at: Seq) -> Vec<PartView> {
        let Some(item) = self.facts.item(ix).filter(|item| item.id.seq <= at) else { return Vec::new() };
        if let Some((seq, parts)) = self.output_parts(ix, at) {
            let view = |part: &PartFact| {
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
            return parts.iter().map(view).collect();
        }
        let kind = match item.kind {
            ItemKind::Call | ItemKind::Result => return Vec::new(),
            ItemKind::Text | ItemKind::Injected => PartKind::Text,
            ItemKind::Reasoning => PartKind::Reasoning,
            ItemKind::Media => PartKind::Media,
            ItemKind::Opaque => PartKind::Opaque,
        };
        let extra = self.facts.extra(item.extra);
        vec![PartView {
            kind,
            body: item.body.id(item.id.seq),
            bytes: item.body.bytes,
            tokens: item.body.tokens,
            media_type: extra.media_type.map(|name| self.facts.names.text(name).to_owned()),
            signature: extra.signature.map(|body| body.id(item.id.seq)),
        }]
    }
}
