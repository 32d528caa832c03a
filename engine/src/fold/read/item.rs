//! Items and their faces.

use std::sync::Arc;

use crate::event::{Face, InjectedKind, Role, ToolClass};
use crate::fold::facts::ItemKind;
use crate::fold::history::{Cause, CauseRow, Evicted, RuleKind, ShortenKind};
use crate::fold::number::Ix;
use crate::fold::state::State;
use crate::fold::state::Status;
use crate::ids::{BodyId, ItemId, Micros, Seq, Turn};

use super::{FaceState, PartView, Placeholder};

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
        /// The item that shows the summary of its range; absent if the item was hidden without one.
        #[serde(skip_serializing_if = "Option::is_none")]
        behind: Option<ItemId>,
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

    /// Tokens that the host and erasures took out of the context, without acpdb's conclusions: each seq up to `at` from which on the number is
    /// another one, in order. Below zero: a placeholder has more tokens than the text that it stands for.
    pub fn left_out(&self, at: Seq) -> Vec<(Seq, i64)> {
        let by_others = |row: &CauseRow| matches!(row.cause, Cause::Erased { .. } | Cause::Cleared { .. });
        let rows = self.history.rows.iter().filter(by_others);
        let mut faces: Vec<(Ix, Face)> = rows.map(|row| (row.ix, row.face)).collect();
        faces.sort_unstable();
        faces.dedup();
        let signed = |tokens: u64| i64::try_from(tokens).unwrap_or(i64::MAX);
        let mut changes: Vec<(Seq, i64)> = Vec::new();
        for (ix, face) in faces {
            let mut before = 0;
            for seq in self.turning_points(ix, at) {
                let placeholder = self.recorded_placeholder(ix, face, seq);
                let left_out = placeholder.filter(|_| self.is_in_context(ix, seq)).map_or(0, |placeholder| {
                    let size = self.face_size(ix, face, seq).map_or(0, |size| size.tokens);
                    // Signed: the difference may be below 0.
                    signed(size).saturating_sub(signed(placeholder.tokens))
                });
                // As above.
                changes.push((seq, left_out.saturating_sub(before)));
                before = left_out;
            }
        }
        changes.sort_unstable_by_key(|(seq, _)| *seq);
        let mut sum = 0_i64;
        for (_, change) in &mut changes {
            sum = sum.saturating_add(*change);
            *change = sum;
        }
        changes
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
            Cause::Evicted { eviction, how, .. } => match self.facts.evictions.get(eviction as usize) {
                Some(eviction) => CauseView::Evicted {
                    seq: eviction.seq,
                    task: self.facts.names.text(eviction.task).to_owned(),
                    rolling: how == Evicted::Rolling,
                },
                None => CauseView::Left { seq },
            },
            Cause::Superseded { edge } => match self.history.edge(edge) {
                Some(edge) => CauseView::Superseded {
                    seq: edge.seq,
                    turn: edge.turn,
                    by: self.facts.item(Ix(edge.new)).map(|item| item.id),
                    rule: edge.kind,
                },
                None => CauseView::Left { seq },
            },
            Cause::Discarded { act, at } => CauseView::Discarded { seq, behind: self.range_head(act, at) },
            Cause::Shortened { rule, .. } => CauseView::Shortened { seq, turn: row.turn, rule },
            Cause::Left if !self.history.is_ordered_in(seq) => CauseView::Abandoned { seq },
            Cause::Left | Cause::Answered { .. } | Cause::Revised { .. } | Cause::Pinned => {
                CauseView::Left { seq }
            }
        }
    }

    /// The item that shows the summary for an item of a range: the nearest one before it that has a summary.
    fn range_head(&self, act: u32, at: u32) -> Option<ItemId> {
        let act = self.facts.acts.get(act as usize)?;
        let before = act.items.get(..at as usize)?;
        before.iter().rev().find(|hidden| hidden.summary.is_some()).map(|hidden| hidden.item)
    }

    pub(crate) fn act_body(&self, act: u32, at: u32) -> Option<BodyId> {
        let act = self.facts.acts.get(act as usize)?;
        Some(act.items.get(at as usize)?.summary?.id(act.seq))
    }

    /// An item at `at`; `None` if it was not recorded then.
    pub fn item(&self, ix: Ix, at: Seq) -> Option<ItemView> {
        let item = self.facts.item(ix).filter(|item| item.id.seq <= at)?;
        let call = self.facts.call(ix);
        let extra = self.facts.extra(item.extra);
        let name = |name| self.facts.names.shared(name);
        let finish = self.finish(ix, at);
        let header = self.item_header(ix, at)?;
        Some(ItemView {
            item: item.id,
            ix,
            kind: item.kind,
            role: item.role,
            turn: item.turn,
            recorded_at: item.recorded_at,
            message: header.message,
            call: header.call,
            tool: header.tool,
            class: call.map(|call| call.class),
            status: header.status,
            finished: header.finished,
            hash: self.hash(ix, at, super::HashForm::Shown),
            keys: call
                .map(|call| self.facts.keys_of(call).iter().map(|key| name(key.given)).collect())
                .unwrap_or_default(),
            injected: header.injected,
            task: extra.task.or(finish.and_then(|finish| finish.task)).map(name),
            in_context: self.is_in_context(ix, at),
            hidden_from_model: item.hidden,
            pinned: self.history.is_pinned(ix, at),
            params: header.params,
            provider_signature: header.signature,
            content: self.content(ix, at),
            details: finish.and_then(|finish| Some(self.facts.finish_extra(finish)?.details?.id(finish.seq))),
            input: self.face(ix, Face::Input, at),
            output: self.face(ix, Face::Output, at),
        })
    }
}
