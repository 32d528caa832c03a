//! The text in place of a face, and the body from which it is made.
//!
//! A placeholder is never longer (in UTF-8 bytes) than the face: else the face stays whole, but a face that was hidden on
//! request shows `[removed]` or `-`. Lengths are known without any body, so the fold can decide. The texts of an eviction
//! are always used: they carry the summary and keep the message valid.

use crate::event::{Face, Role};
use crate::fold::eviction::{output_text, rolling_text, words_text};
use crate::fold::facts::{ItemKind, Size};
use crate::fold::history::{Cause, CauseRow, Evicted, RuleKind, ShortenKind};
use crate::fold::number::{Ix, NONE};
use crate::fold::policy::TaskArchive;
use crate::fold::rules::Tombstone;
use crate::fold::rules::shorten::{Cutter, Cutting, ShortenedContent};
use crate::fold::state::State;
use crate::fold::state::Status;
use crate::ids::{BodyId, Seq};
use crate::registry::Registry;
use crate::text::json::canonical_or_text;
use crate::text::shorten::{set_aside, shown_params};
use crate::text::tokens::{estimate, estimate_pieces};

const CALL_REMOVED: &str = "[Output removed to save context - information superseded or no longer needed]\n";
const PART_REMOVED: &str = "[Assistant message part removed to save context]";
const REMOVED: &str = "[removed]";
const REMOVED_SHORT: &str = "-";
const DISTILLED: &str = "[distilled] ";
/// Between a call and its status in a tombstone.
const ARROW: &str = " → ";

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

/// How the text of a placeholder is made.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
#[serde(tag = "render", rename_all = "snake_case")]
pub enum Render {
    /// The face as recorded.
    Whole,
    /// Nothing at all.
    Nothing,
    /// This text.
    Text {
        /// The text.
        text: String,
    },
    /// The tombstone of a discarded call: its line is made from the parameters.
    CallLine {
        /// The host program, for its registry.
        host: String,
        /// Name of the tool.
        tool: String,
        /// The parameters.
        params: BodyId,
        /// `completed`, `error`, ...
        status: &'static str,
    },
    /// The parameters with their long strings set aside.
    SetAside {
        /// The parameters.
        params: BodyId,
    },
    /// Text, body, text.
    Around {
        /// Before the body.
        before: String,
        /// The body.
        body: BodyId,
        /// Behind it.
        after: String,
    },
    /// A task's text with its summary.
    Evicted {
        /// The task.
        task: String,
        /// The session.
        session: String,
        /// An assistant's words rather than an output.
        words: bool,
        /// The summary.
        summary: BodyId,
    },
    /// The part of the face that a rule leaves.
    Cut {
        /// The face's parts.
        bodies: Vec<BodyId>,
        /// How the rule cuts them.
        by: Cutter,
    },
}

/// The text in place of a face.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Placeholder {
    /// How the face is shown.
    pub state: FaceState,
    /// Estimated tokens as shown. For shortened faces an upper estimate, as the text needs the body.
    pub tokens: u64,
    /// How its text is made.
    pub render: Render,
    /// For an assistant's words that were evicted: the first signature among the hidden parts of the message.
    pub signature: Option<BodyId>,
}

impl Placeholder {
    const fn of(state: FaceState, tokens: u64, render: Render) -> Self {
        Self { state, tokens, render, signature: None }
    }

    /// The text, if no body is needed for it.
    pub fn text(&self) -> Option<&str> {
        match &self.render {
            Render::Text { text } => Some(text),
            Render::Nothing => Some(""),
            _ => None,
        }
    }

    /// Bodies that the text is made from.
    pub fn needs(&self) -> Vec<BodyId> {
        match &self.render {
            Render::Whole | Render::Nothing | Render::Text { .. } => Vec::new(),
            Render::CallLine { params, .. } | Render::SetAside { params } => vec![*params],
            Render::Around { body, .. } => vec![*body],
            Render::Evicted { summary, .. } => vec![*summary],
            Render::Cut { bodies, .. } => bodies.clone(),
        }
    }

    /// Whether a part of the face's own text is shown: a reader sees that part still.
    pub const fn is_part(&self) -> bool {
        matches!(self.render, Render::Cut { .. })
    }
}

/// Makes the text of a placeholder; `None` where the face is shown whole after all, or a body is missing.
///
/// Pure: `body` gives the bytes of a body. The registry names the parameters that are shown.
pub fn render(
    placeholder: &Placeholder,
    registry: &dyn Registry,
    body: &dyn Fn(BodyId) -> Option<Vec<u8>>,
) -> Option<String> {
    let text_of = |id: BodyId| body(id).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let shown = |host: &str, tool: &str, params: BodyId| {
        let bytes = body(params)?;
        let (_, json) = canonical_or_text(&bytes);
        let json = json?;
        let names = registry.tool(host, tool, &json).shown;
        Some(shown_params(&json, &names))
    };
    match &placeholder.render {
        Render::Whole => None,
        Render::Nothing => Some(String::new()),
        Render::Text { text } => Some(text.clone()),
        Render::CallLine { host, tool, params, status } => {
            let line = shown(host, tool, *params)
                .map_or_else(|| format!("{tool}(){ARROW}{status}"), |shown| shown.call_line(tool, status));
            Some(format!("{CALL_REMOVED}{line}"))
        }
        Render::SetAside { params } => set_aside(&body(*params)?),
        Render::Around { before, body, after } => Some(format!("{before}{}{after}", text_of(*body)?)),
        Render::Evicted { task, session, words, summary } => {
            let summary = text_of(*summary)?;
            Some(if *words {
                words_text(task, Some(&summary))
            } else {
                output_text(task, session, Some(&summary), TaskArchive::default())
            })
        }
        Render::Cut { bodies, by } => {
            let bytes: Option<Vec<Vec<u8>>> = bodies.iter().map(|id| body(*id)).collect();
            by.cut(&bytes?.join(&b'\n'))
        }
    }
}

/// The text in place of a superseded face; empty for a rule that leaves no tombstone.
pub(crate) fn superseded_text(kind: RuleKind, tool: &str) -> String {
    superseded_pieces(kind, tool).concat()
}

/// The same in pieces; all empty for a rule that leaves no tombstone.
fn superseded_pieces(kind: RuleKind, tool: &str) -> [&str; 5] {
    let [before, tool, after] = match kind.described().tombstone {
        Tombstone::Nothing => return [""; 5],
        Tombstone::Text(text) => [text, "", ""],
        Tombstone::Tool(before, after) => [before, tool, after],
    };
    ["[auto-superseded: ", before, tool, after, "]"]
}

/// The word for a status in texts for the model.
pub(crate) const fn status_word(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::Completed => "completed",
        Status::Failed => "error",
        Status::Aborted => "aborted",
    }
}

fn tokens_of(text: &str) -> u64 {
    u64::from(estimate(text.as_bytes()))
}

impl State {
    /// The placeholder of a face at `at`; `None` if there is no such face, or it is simply shown.
    pub fn placeholder(&self, ix: Ix, face: Face, at: Seq) -> Option<Placeholder> {
        let size = self.face_size(ix, face, at)?;
        let row = self.history.cause(ix, face, at)?;
        Some(self.placeholder_for(ix, face, &row, size, at))
    }

    fn whole(size: Size) -> Placeholder {
        Placeholder::of(FaceState::Whole, size.tokens, Render::Whole)
    }

    fn text_placeholder(state: FaceState, text: String) -> Placeholder {
        Placeholder::of(state, tokens_of(&text), Render::Text { text })
    }

    const fn nothing() -> Placeholder {
        Placeholder::of(FaceState::Gone, 0, Render::Nothing)
    }

    /// A text if it is no longer than the face, else the face.
    fn fitting(size: Size, text: String) -> Placeholder {
        if text.len() as u64 > size.bytes {
            return Self::whole(size);
        }
        Self::text_placeholder(FaceState::Tombstone, text)
    }

    /// The placeholder of a face that a request hid: its text also fits a short face.
    fn removed(size: Size) -> Placeholder {
        match [REMOVED, REMOVED_SHORT].into_iter().find(|text| text.len() as u64 <= size.bytes) {
            Some(text) => Self::text_placeholder(FaceState::Tombstone, text.to_owned()),
            None => Self::whole(size),
        }
    }

    /// The placeholder that a cause brings. It counts at most the tokens that it replaces, so that shown and freed make the whole.
    pub(crate) fn placeholder_for(
        &self,
        ix: Ix,
        face: Face,
        row: &CauseRow,
        size: Size,
        at: Seq,
    ) -> Placeholder {
        let placeholder = self.placeholder_by(ix, face, row, size, at);
        Placeholder { tokens: placeholder.tokens.min(size.tokens), ..placeholder }
    }

    fn placeholder_by(&self, ix: Ix, face: Face, row: &CauseRow, size: Size, at: Seq) -> Placeholder {
        match row.cause {
            Cause::Erased { .. } | Cause::OffBranch | Cause::Left => Self::nothing(),
            Cause::Cleared { act } => match self.cleared(act) {
                Some((body, tokens)) => {
                    let render = Render::Around { before: String::new(), body, after: String::new() };
                    Placeholder::of(FaceState::Tombstone, tokens, render)
                }
                None => Self::text_placeholder(FaceState::Tombstone, REMOVED.to_owned()),
            },
            Cause::Distilled { act, at } => self.distilled(act, at, size),
            Cause::Evicted { .. } => self.evicted_placeholder(ix, row, at),
            Cause::Superseded { edge } => match self.history.edge(edge) {
                Some(edge) if face == Face::Input => self.set_aside(ix, edge.since, size),
                Some(edge) => {
                    let text = superseded_text(edge.kind, self.facts.tool(Ix(edge.new)));
                    if text.is_empty() { Self::nothing() } else { Self::fitting(size, text) }
                }
                None => Self::whole(size),
            },
            Cause::Discarded { .. } => self.discarded(ix, size, at),
            Cause::Shortened { rule, .. } => self.shortened_placeholder(ix, face, rule, row, size, at),
            Cause::Answered { .. } | Cause::Revised { .. } | Cause::Pinned => Self::whole(size),
        }
    }

    /// State and tokens of the placeholder of [`State::placeholder_for`], without making the text of the most frequent kind.
    pub(crate) fn placeholder_figures(
        &self,
        ix: Ix,
        face: Face,
        row: &CauseRow,
        size: Size,
        at: Seq,
    ) -> (FaceState, u64) {
        if let Some((state, pieces)) = self.tombstone_of(face, row, size) {
            return match state {
                FaceState::Gone => (state, 0),
                // It counts at most the tokens that it replaces, as everywhere.
                FaceState::Tombstone => (state, u64::from(estimate_pieces(&pieces)).min(size.tokens)),
                _ => (state, size.tokens),
            };
        }
        let placeholder = self.placeholder_for(ix, face, row, size, at);
        (placeholder.state, placeholder.tokens)
    }

    /// State of the placeholder of [`State::placeholder_for`]: as [`State::placeholder_figures`], without counting.
    pub(crate) fn placeholder_state(
        &self,
        ix: Ix,
        face: Face,
        row: &CauseRow,
        size: Size,
        at: Seq,
    ) -> FaceState {
        match self.tombstone_of(face, row, size) {
            Some((state, _)) => state,
            None => self.placeholder_for(ix, face, row, size, at).state,
        }
    }

    /// How a superseded output is shown, with the pieces of the text in its place; `None` for every other face.
    fn tombstone_of(&self, face: Face, row: &CauseRow, size: Size) -> Option<(FaceState, [&str; 5])> {
        let Cause::Superseded { edge } = row.cause else { return None };
        let edge = self.history.edge(edge).filter(|_| face == Face::Output)?;
        let pieces = superseded_pieces(edge.kind, self.facts.tool(Ix(edge.new)));
        let state = match pieces.iter().map(|piece| piece.len() as u64).sum::<u64>() {
            0 => FaceState::Gone,
            bytes if bytes > size.bytes => FaceState::Whole,
            _ => FaceState::Tombstone,
        };
        Some((state, pieces))
    }

    fn cleared(&self, act: u32) -> Option<(BodyId, u64)> {
        let act = self.facts.acts.get(act as usize)?;
        let body = act.items.first()?.summary?;
        Some((body.id(act.seq), u64::from(body.tokens)))
    }

    fn distilled(&self, act: u32, at: u32, size: Size) -> Placeholder {
        let act = self.facts.acts.get(act as usize);
        let summary = act.and_then(|act| Some((act.seq, act.items.get(at as usize..)?)));
        let Some((seq, [hidden, others @ ..])) = summary else { return Self::removed(size) };
        let Some(summary) = hidden.summary else { return Self::removed(size) };
        // The items behind it that have no summary are those of its range.
        let range = others.iter().take_while(|other| other.summary.is_none()).map(|other| other.item);
        let (first, last) = range
            .clone()
            .fold((hidden.item, hidden.item), |(first, last), item| (first.min(item), last.max(item)));
        let mark = match range.count() {
            0 => DISTILLED.to_owned(),
            count => format!("[distilled: {} items, {first} to {last}] ", count.saturating_add(1)),
        };
        // A short text may leave room for its summary alone, or be the better summary itself.
        let fits = |mark: &String| summary.bytes.saturating_add(mark.len() as u64) <= size.bytes;
        let Some(before) = [mark, String::new()].into_iter().find(fits) else { return Self::whole(size) };
        let tokens = u64::from(summary.tokens).saturating_add(tokens_of(&before));
        let render = Render::Around { before, body: summary.id(seq), after: String::new() };
        Placeholder::of(FaceState::Summary, tokens, render)
    }

    fn evicted_placeholder(&self, ix: Ix, row: &CauseRow, at: Seq) -> Placeholder {
        let Cause::Evicted { eviction, how, last } = row.cause else { return Self::nothing() };
        let archive = self.policy(row.since).task_archive;
        let Some(eviction) = self.facts.evictions.get(eviction as usize) else { return Self::nothing() };
        let task = self.facts.names.text(eviction.task);
        let session = self.info(at).map(|info| info.name.clone()).unwrap_or_default();
        let text = match how {
            Evicted::Dropped => return Self::nothing(),
            Evicted::Rolling => rolling_text(task, &session, archive),
            Evicted::Output => output_text(task, &session, None, archive),
            Evicted::Assistant => words_text(task, None),
        };
        let signature = if how == Evicted::Assistant { self.evicted_signature(ix, at) } else { None };
        match eviction.summary.filter(|_| last) {
            Some(summary) => Placeholder {
                state: FaceState::Summary,
                tokens: tokens_of(&text).saturating_add(u64::from(summary.tokens)),
                render: Render::Evicted {
                    task: task.to_owned(),
                    session,
                    words: how == Evicted::Assistant,
                    summary: summary.id(eviction.seq),
                },
                signature,
            },
            None => Placeholder { signature, ..Self::text_placeholder(FaceState::Tombstone, text) },
        }
    }

    /// The first signature among the hidden parts of an evicted part's message.
    fn evicted_signature(&self, ix: Ix, at: Seq) -> Option<BodyId> {
        let message = self.facts.messages.get(self.facts.item(ix)?.message as usize)?;
        self.facts.items_of(message).find_map(|part| {
            let item =
                self.facts.item(part).filter(|item| item.id.seq <= at && item.kind != ItemKind::Call)?;
            let evicted = |row: CauseRow| matches!(row.cause, Cause::Evicted { .. }) && row.holds(at);
            self.history
                .rows_of(part)
                .any(evicted)
                .then_some(self.facts.extra(item.extra).signature?.id(item.id.seq))
        })
    }

    fn host(&self, at: Seq) -> String {
        self.info(at).map(|info| info.host.clone()).unwrap_or_default()
    }

    fn set_aside(&self, ix: Ix, since: Seq, size: Size) -> Placeholder {
        let Some(call) = self.facts.call(ix) else { return Self::whole(size) };
        let Some((seq, params)) = self.input_body(ix, since) else { return Self::whole(size) };
        if u64::from(call.shown.object_bytes) >= size.bytes {
            return Self::whole(size);
        }
        let render = Render::SetAside { params: params.id(seq) };
        Placeholder::of(FaceState::Shortened, call.shown.object_tokens.into(), render)
    }

    fn discarded(&self, ix: Ix, size: Size, at: Seq) -> Placeholder {
        let Some((call, (seq, params))) = self.facts.call(ix).zip(self.input_body(ix, at)) else {
            let is_part =
                self.facts.item(ix).is_some_and(|item| item.message != NONE && item.role == Role::Assistant);
            return if is_part && PART_REMOVED.len() as u64 <= size.bytes {
                Self::text_placeholder(FaceState::Tombstone, PART_REMOVED.to_owned())
            } else {
                Self::removed(size)
            };
        };
        let status = status_word(self.status(ix, at).unwrap_or_default());
        let bytes = u64::from(call.shown.line_bytes)
            .saturating_add((CALL_REMOVED.len() + ARROW.len() + status.len()) as u64);
        if bytes > size.bytes {
            return Self::removed(size);
        }
        let tokens = [CALL_REMOVED, ARROW, status].into_iter().map(tokens_of);
        let tokens = tokens.fold(call.shown.line_tokens.into(), u64::saturating_add);
        let (host, tool) = (self.host(at), self.facts.names.text(call.tool).to_owned());
        let render = Render::CallLine { host, tool, params: params.id(seq), status };
        Placeholder::of(FaceState::Tombstone, tokens, render)
    }

    fn shortened_placeholder(
        &self,
        ix: Ix,
        face: Face,
        rule: ShortenKind,
        row: &CauseRow,
        size: Size,
        at: Seq,
    ) -> Placeholder {
        let part = match (rule.described().leaves)(face) {
            ShortenedContent::Nothing => return Self::nothing(),
            ShortenedContent::Text(text) => return Self::fitting(size, text.to_owned()),
            ShortenedContent::SetAside => return self.set_aside(ix, row.since, size),
            ShortenedContent::Part(part) => part,
        };
        let bodies: Vec<BodyId> = match face {
            Face::Input => self.params(ix, at).into_iter().collect(),
            Face::Output => self.content(ix, at).iter().map(|part| part.body).collect(),
        };
        if bodies.is_empty() {
            return Self::whole(size);
        }
        let policy = self.policy(row.since);
        let cutting = Cutting { facts: &self.facts, policy, ix, at: row.since };
        let by = Cutter::of(part, &cutting);
        Placeholder::of(FaceState::Shortened, size.tokens.min(by.tokens_max()), Render::Cut { bodies, by })
    }
}
