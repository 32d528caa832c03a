//! Items in groups: one reply of the model, the results of its calls, and the texts said to it then.
//!
//! ```text
//! group 0   model: nothing                      said: the user's prompt          <- the user's move
//! group 1   model: text, call a, call b         results of a and b, then texts said meanwhile
//! group 2   model: text                         said: the next prompt            <- the user's move
//! ```
//!
//! Parts of one message in one turn are one reply, even if other items came between them. So are parts and calls of one
//! model step, for hosts that give no message to a call. Where there are no steps and no keys, a reply ends with the first
//! result that was there before its next part.

use acpdb_engine::Error;
use acpdb_engine::event::{PartKind, Role};
use acpdb_engine::fold::{FaceState, ItemHeader, ItemKind, Ix, PartView, Placeholder, Status};
use acpdb_engine::ids::{ItemId, Seq, Turn};

use super::calls::{CallIds, object_type};
use super::dialect::Dialect;
use super::provider::{Opaque, fits, unwrapped};
use super::report::LeftOut;
use super::source::{ExportItem, ExportSource, ShownAs};
use super::{Provider, Thinking, Unfinished};

/// The text of the result of an unfinished call.
const NO_RESULT: &str = "[no result: the call did not finish]";

/// A group, as indices of items.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct ItemGroup {
    /// Items that the model made, calls included.
    pub(super) model: Vec<usize>,
    /// Items that were said to it after that.
    pub(super) said: Vec<usize>,
    /// Whether the model made a call in it.
    pub(super) has_calls: bool,
}

impl ItemGroup {
    /// Whether the user (or the host in their place) had the word: nothing waited for results.
    pub(super) fn is_users_move(&self) -> bool {
        !self.has_calls && !self.said.is_empty()
    }
}

fn is_models(brief: &ItemHeader) -> bool {
    brief.kind == ItemKind::Call
        || (brief.role == Role::Assistant && !matches!(brief.kind, ItemKind::Result | ItemKind::Injected))
}

/// Groups items in the order of the conversation.
pub(super) fn group(briefs: &[(Ix, ItemHeader)]) -> Vec<ItemGroup> {
    let mut groups: Vec<ItemGroup> = Vec::new();
    // Of the newest group with items of the model: its last such item, and the seq of the first result.
    let mut last: Option<&ItemHeader> = None;
    let mut answered: Option<Seq> = None;
    for (place, (_, brief)) in briefs.iter().enumerate() {
        if !is_models(brief) {
            match groups.last_mut() {
                Some(group) => group.said.push(place),
                None => groups.push(ItemGroup { said: vec![place], ..ItemGroup::default() }),
            }
            continue;
        }
        let spoken_to = groups.last().is_none_or(|group| !group.said.is_empty());
        if last.is_none_or(|last| !is_same_reply(last, brief, spoken_to, answered)) {
            groups.push(ItemGroup::default());
            answered = None;
        }
        if let Some(group) = groups.last_mut() {
            group.model.push(place);
            group.has_calls |= brief.kind == ItemKind::Call;
        }
        if let Some(finished) = brief.finished {
            answered = Some(answered.map_or(finished, |seq| seq.min(finished)));
        }
        last = Some(brief);
    }
    groups
}

fn is_same_reply(last: &ItemHeader, next: &ItemHeader, spoken_to: bool, answered: Option<Seq>) -> bool {
    if last.turn != next.turn {
        return false;
    }
    let keys = (last.message.as_ref(), next.message.as_ref());
    if let (Some(one), Some(other)) = keys
        && one == other
    {
        return true;
    }
    if spoken_to {
        return false;
    }
    let answered_before = answered.is_some_and(|seq| seq < next.item.seq);
    let has_step = next.turn > Turn(0);
    match keys {
        _ if !answered_before => true,
        (Some(_), Some(_)) => false,
        _ => has_step,
    }
}

/// For each item, whether it is reasoning that led to the calls whose results the model is about to be told.
pub(super) fn open_reasoning(briefs: &[(Ix, ItemHeader)], groups: &[ItemGroup]) -> Vec<bool> {
    let last = groups.last().filter(|last| last.has_calls);
    let mut open = vec![false; briefs.len()];
    for place in last.map(|last| last.model.as_slice()).unwrap_or_default() {
        let is_reasoning = briefs.get(*place).is_some_and(|(_, brief)| brief.kind == ItemKind::Reasoning);
        if let Some(open) = open.get_mut(*place) {
            *open = is_reasoning;
        }
    }
    open
}

/// A piece of a reply.
#[derive(Debug)]
pub(super) enum ReplyPiece {
    Text {
        text: String,
        signature: Option<String>,
        key: Option<std::sync::Arc<str>>,
    },
    Reasoning {
        text: String,
        opaque: Opaque,
    },
    /// JSON of the provider's own.
    Opaque {
        json: String,
    },
    Media {
        body: String,
        media_type: Option<String>,
    },
    Call(CallPiece),
    /// Reasoning that is left out: the rest of its run goes with it, where runs are whole. A placeholder in its place is
    /// said as a text.
    Gap(Option<Instead>),
}

/// The text in the place of reasoning.
#[derive(Debug)]
pub(super) struct Instead {
    text: String,
    signature: Option<String>,
    key: Option<std::sync::Arc<str>>,
}

/// A call, with its result.
#[derive(Debug)]
pub(super) struct CallPiece {
    pub(super) item: ItemId,
    pub(super) id: String,
    pub(super) tool: String,
    pub(super) input: String,
    pub(super) signature: Option<String>,
    pub(super) failed: bool,
    pub(super) result: Vec<MessagePiece>,
    /// The seq at which its result came.
    pub(super) finished: Seq,
}

/// A piece of a message to the model, or of a result.
#[derive(Debug)]
pub(super) enum MessagePiece {
    Text { text: String, role: Role, key: Option<std::sync::Arc<str>> },
    Media { body: String, media_type: Option<String>, key: Option<std::sync::Arc<str>> },
    Opaque { json: String },
}

/// One group, with its texts.
#[derive(Debug, Default)]
pub(super) struct Turned {
    pub(super) pieces: Vec<ReplyPiece>,
    pub(super) said: Vec<MessagePiece>,
    /// The seq at which each of them was said.
    pub(super) said_at: Vec<Seq>,
}

impl Turned {
    pub(super) fn calls(&self) -> impl Iterator<Item = &CallPiece> {
        self.pieces.iter().filter_map(|piece| match piece {
            ReplyPiece::Call(call) => Some(call),
            _ => None,
        })
    }
}

/// The rules of a format for the pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says one thing that a format wants")]
pub(super) struct PieceRules {
    pub(super) provider: Provider,
    /// Parameters of calls are sent whole where the provider signed something among them.
    pub(super) whole_units: bool,
    /// A run of reasoning goes as a whole.
    pub(super) whole_runs: bool,
    /// Whether reasoning can be sent at all.
    pub(super) reasoning: bool,
    /// Signatures are over the text of reasoning.
    pub(super) signs_text: bool,
}

/// Reads the texts of one group.
pub(super) fn read(
    source: &mut ExportSource<'_>,
    number: usize,
    rules: PieceRules,
    ids: &mut CallIds,
) -> Result<Turned, Error> {
    let group = source.groups.get_mut(number).map(std::mem::take).unwrap_or_default();
    let mut turned = Turned::default();
    let unbound = source.unbound.get(number).copied().unwrap_or(false);
    let unit = rules.whole_units && group.has_calls && has_signature(source, &group, rules)?;
    for place in &group.model {
        let Some(item) = source.items.get_mut(*place).map(ExportItem::take) else { continue };
        if item.is_call() {
            if let Some(call) = call(source, &item, unit, ids)? {
                turned.pieces.push(ReplyPiece::Call(call));
            }
        } else {
            let reading = TurnReader { rules, unbound };
            pieces(source, &item, reading, &mut turned.pieces)?;
        }
    }
    close_gaps(source, &mut turned.pieces, rules.whole_runs);
    for place in &group.said {
        let Some(item) = source.items.get_mut(*place).map(ExportItem::take) else { continue };
        said(source, &item, rules.provider, &mut turned.said)?;
        turned.said_at.resize(turned.said.len(), item.id().seq);
    }
    Ok(turned)
}

/// The texts of one item that is said to the model; takes it out.
pub(super) fn said_of(
    source: &mut ExportSource<'_>,
    place: usize,
    out: &mut Vec<String>,
) -> Result<(), Error> {
    let Some(item) = source.items.get_mut(place).map(ExportItem::take) else { return Ok(()) };
    let mut pieces = Vec::new();
    content(source, &item, item.brief.role, Provider::Other, &mut pieces)?;
    out.extend(pieces.into_iter().filter_map(|said| match said {
        MessagePiece::Text { text, .. } => Some(text),
        MessagePiece::Media { .. } | MessagePiece::Opaque { .. } => None,
    }));
    Ok(())
}

/// Whether a piece is part of a run of reasoning.
pub(super) fn is_reasoning(piece: &ReplyPiece) -> bool {
    match piece {
        ReplyPiece::Reasoning { .. } | ReplyPiece::Gap(_) => true,
        ReplyPiece::Opaque { json } => {
            matches!(object_type(json).as_deref(), Some("thinking" | "redacted_thinking" | "reasoning"))
        }
        _ => false,
    }
}

/// Takes gaps out, and the runs that they are in where runs are whole; placeholders in their place become text.
fn close_gaps(source: &mut ExportSource<'_>, pieces: &mut Vec<ReplyPiece>, whole_runs: bool) {
    if !pieces.iter().any(|piece| matches!(piece, ReplyPiece::Gap(_))) {
        return;
    }
    let mut kept: Vec<ReplyPiece> = Vec::with_capacity(pieces.len());
    let mut run: Vec<ReplyPiece> = Vec::new();
    let mut end = |run: &mut Vec<ReplyPiece>, kept: &mut Vec<ReplyPiece>| {
        let broken = whole_runs && run.iter().any(|piece| matches!(piece, ReplyPiece::Gap(_)));
        for piece in run.drain(..) {
            match piece {
                ReplyPiece::Gap(None) => {}
                ReplyPiece::Gap(Some(Instead { text, signature, key })) => {
                    kept.push(ReplyPiece::Text { text, signature, key });
                }
                _ if broken => source.report.note(LeftOut::ReasoningRun, None),
                piece => kept.push(piece),
            }
        }
    };
    for piece in pieces.drain(..) {
        if is_reasoning(&piece) {
            run.push(piece);
        } else {
            end(&mut run, &mut kept);
            kept.push(piece);
        }
    }
    end(&mut run, &mut kept);
    *pieces = kept;
}

/// Whether the provider signed something in a group.
fn has_signature(source: &mut ExportSource<'_>, group: &ItemGroup, rules: PieceRules) -> Result<bool, Error> {
    for place in &group.model {
        let Some(item) = source.items.get(*place) else { continue };
        let own = source.provider(item).is_none_or(|provider| provider == rules.provider);
        let (id, body) = (item.id(), item.brief.signature);
        if own
            && let Some(body) = body
            && let Some(kept) = source.exact(body, Some(id))?
            && unwrapped(&source.host, &kept, rules.provider).is_some()
        {
            return Ok(true);
        }
    }
    Ok(false)
}

#[derive(Clone, Copy)]
struct TurnReader {
    rules: PieceRules,
    unbound: bool,
}

/// The pieces of an item of the model that is no call.
fn pieces(
    source: &mut ExportSource<'_>,
    item: &ExportItem,
    how: TurnReader,
    out: &mut Vec<ReplyPiece>,
) -> Result<(), Error> {
    let key = item.brief.message.clone();
    let id = Some(item.id());
    if item.brief.kind == ItemKind::Reasoning {
        let piece = match &item.output {
            ShownAs::Nothing => ReplyPiece::Gap(None),
            ShownAs::Whole => whole_reasoning(source, item, how)?.unwrap_or(ReplyPiece::Gap(None)),
            ShownAs::Placeholder(placeholder) => {
                let placeholder = placeholder.clone();
                instead_of_reasoning(source, item, &placeholder, how)?
            }
            ShownAs::Text(text) => {
                ReplyPiece::Gap(Some(Instead { text: text.clone(), signature: None, key }))
            }
        };
        out.push(piece);
        return Ok(());
    }
    match &item.output {
        ShownAs::Nothing => {}
        ShownAs::Placeholder(placeholder) => {
            let kept = placeholder.signature;
            if let Some(text) = source.placeholder(placeholder, item.id())? {
                let signature = match kept {
                    Some(body) => signature(source, item, body, how.rules.provider)?,
                    None => None,
                };
                push_text(source, id, text, signature, key, out);
            }
        }
        ShownAs::Text(text) => push_text(source, id, text.clone(), None, key, out),
        ShownAs::Whole => {
            for part in &item.content {
                match part.kind {
                    PartKind::Media => {
                        let body = source.text(part.body, id)?;
                        out.push(ReplyPiece::Media { body, media_type: part.media_type.clone() });
                    }
                    PartKind::Text | PartKind::Reasoning => {
                        let text = source.text(part.body, id)?;
                        let signature = match part.signature {
                            Some(body) => signature(source, item, body, how.rules.provider)?,
                            None => None,
                        };
                        push_text(source, id, text, signature, key.clone(), out);
                    }
                    PartKind::Opaque | PartKind::Call | PartKind::Result => {
                        opaque(source, item, part, how, out)?;
                    }
                }
            }
        }
    }
    Ok(())
}

fn push_text(
    source: &mut ExportSource<'_>,
    item: Option<ItemId>,
    text: String,
    signature: Option<String>,
    key: Option<std::sync::Arc<str>>,
    out: &mut Vec<ReplyPiece>,
) {
    if text.trim().is_empty() && signature.is_none() {
        source.report.note(LeftOut::TextEmpty, item);
    } else {
        out.push(ReplyPiece::Text { text, signature, key });
    }
}

fn signature(
    source: &mut ExportSource<'_>,
    item: &ExportItem,
    body: acpdb_engine::ids::BodyId,
    provider: Provider,
) -> Result<Option<String>, Error> {
    if source.provider(item).is_some_and(|made| made != provider) {
        return Ok(None);
    }
    let kept = source.exact(body, Some(item.id()))?;
    Ok(kept.and_then(|kept| match unwrapped(&source.host, &kept, provider)? {
        Opaque::Signature(signature) => Some(signature),
        Opaque::Redacted(_) => None,
    }))
}

/// Reasoning as it was recorded, if this provider takes it.
fn whole_reasoning(
    source: &mut ExportSource<'_>,
    item: &ExportItem,
    how: TurnReader,
) -> Result<Option<ReplyPiece>, Error> {
    let Some(part) = source.content(item).into_iter().next() else { return Ok(None) };
    if matches!(source.dialect, Dialect::ReasoningInChat | Dialect::ResultsAsTheyCame) {
        let text = source.text(part.body, Some(item.id()))?;
        return Ok(Some(ReplyPiece::Reasoning { text, opaque: Opaque::Signature(String::new()) }));
    }
    let Some(opaque) = sealed(source, item, part.signature, how)? else { return Ok(None) };
    let text = source.text(part.body, Some(item.id()))?;
    Ok(Some(ReplyPiece::Reasoning { text, opaque }))
}

/// The opaque field that a provider wants with its own reasoning; `None` if the reasoning is left out.
fn sealed(
    source: &mut ExportSource<'_>,
    item: &ExportItem,
    signature: Option<acpdb_engine::ids::BodyId>,
    how: TurnReader,
) -> Result<Option<Opaque>, Error> {
    let id = Some(item.id());
    let made = source.provider(item);
    let why = match signature {
        _ if source.options.thinking == Thinking::Drop || !how.rules.reasoning => LeftOut::ReasoningDropped,
        _ if how.unbound => LeftOut::ReasoningUnbound,
        Some(body) if made.is_none_or(|made| made == how.rules.provider) => {
            let kept = source.exact(body, id)?;
            match kept.and_then(|kept| unwrapped(&source.host, &kept, how.rules.provider)) {
                Some(opaque) => return Ok(Some(opaque)),
                None => LeftOut::ReasoningNotPortable,
            }
        }
        _ => LeftOut::ReasoningNotPortable,
    };
    source.report.note(why, id);
    Ok(None)
}

/// The piece in place of reasoning: a tombstone or a summary as a text, in every format, for other parts of the reply may
/// be behind it. Shortened reasoning goes where the whole would go, under its signature, unless the signature is over the
/// text; then it is a text.
fn instead_of_reasoning(
    source: &mut ExportSource<'_>,
    item: &ExportItem,
    placeholder: &Placeholder,
    how: TurnReader,
) -> Result<ReplyPiece, Error> {
    let key = item.brief.message.clone();
    let instead = |text, signature| ReplyPiece::Gap(Some(Instead { text, signature, key: key.clone() }));
    if placeholder.state == FaceState::Shortened {
        let part = source.content(item).into_iter().next();
        let Some(opaque) = sealed(source, item, part.and_then(|part| part.signature), how)? else {
            return Ok(ReplyPiece::Gap(None));
        };
        let Some(text) = source.placeholder(placeholder, item.id())? else {
            return Ok(whole_reasoning(source, item, how)?.unwrap_or(ReplyPiece::Gap(None)));
        };
        return Ok(if how.rules.signs_text {
            instead(text, None)
        } else {
            ReplyPiece::Reasoning { text, opaque }
        });
    }
    let Some(text) = source.placeholder(placeholder, item.id())?.filter(|text| !text.is_empty()) else {
        return Ok(ReplyPiece::Gap(None));
    };
    let signature = match placeholder.signature {
        Some(body) => signature(source, item, body, how.rules.provider)?,
        None => None,
    };
    Ok(instead(text, signature))
}

/// A part that only its provider understands: JSON with a type.
fn opaque(
    source: &mut ExportSource<'_>,
    item: &ExportItem,
    part: &PartView,
    how: TurnReader,
    out: &mut Vec<ReplyPiece>,
) -> Result<(), Error> {
    let id = Some(item.id());
    let json = source.text(part.body, id)?;
    let own = source.provider(item).is_none_or(|provider| provider == how.rules.provider);
    if !own || !fits(how.rules.provider, &json) {
        source.report.note(LeftOut::OpaqueNotPortable, id);
        return Ok(());
    }
    let is_reasoning =
        matches!(object_type(&json).as_deref(), Some("redacted_thinking" | "thinking" | "reasoning"));
    if is_reasoning && source.options.thinking == Thinking::Drop {
        source.report.note(LeftOut::ReasoningDropped, id);
        out.push(ReplyPiece::Gap(None));
    } else if is_reasoning && how.unbound {
        source.report.note(LeftOut::ReasoningUnbound, id);
        out.push(ReplyPiece::Gap(None));
    } else {
        out.push(ReplyPiece::Opaque { json });
    }
    Ok(())
}

fn call(
    source: &mut ExportSource<'_>,
    item: &ExportItem,
    unit: bool,
    ids: &mut CallIds,
) -> Result<Option<CallPiece>, Error> {
    let id = item.id();
    let cut_off = source.cut_off(item);
    if !item.is_finished() && cut_off.is_none() && source.options.unfinished == Unfinished::LeaveOut {
        source.report.note(LeftOut::CallUnfinished, Some(id));
        return Ok(None);
    }
    let (name, renamed) = ids.name(item.brief.call.as_deref().unwrap_or_default(), id);
    if renamed {
        source.report.note(LeftOut::CallRenamed, Some(id));
    }
    let (tool, renamed) = ids.tool(item.brief.tool.as_deref().unwrap_or_default());
    if renamed {
        source.report.note(LeftOut::ToolRenamed, Some(id));
    }
    let mut input = None;
    if let ShownAs::Placeholder(placeholder) = &item.input {
        if unit {
            source.report.note(LeftOut::UnitKeptWhole, Some(id));
        } else {
            input = source.placeholder(placeholder, id)?;
        }
    }
    let input = match (input, item.brief.params) {
        (Some(text), _) => text,
        (None, Some(params)) => source.text(params, Some(id))?,
        (None, None) => "{}".to_owned(),
    };
    let signature = match item.brief.signature {
        Some(body) => signature(source, item, body, ids.provider())?,
        None => None,
    };
    let mut result = Vec::new();
    if let Some(cut_off) = cut_off {
        result.push(MessagePiece::Text { text: cut_off.text.to_owned(), role: Role::Tool, key: None });
    } else if item.is_finished() {
        content(source, item, Role::Tool, ids.provider(), &mut result)?;
    } else {
        source.report.note(LeftOut::ResultSynthetic, Some(id));
        result.push(MessagePiece::Text { text: NO_RESULT.to_owned(), role: Role::Tool, key: None });
    }
    let failed = cut_off.map_or(item.brief.status != Some(Status::Completed), |it| it.failed);
    // The host answers what was cut off before anything else.
    let finished = item.brief.finished.unwrap_or(if cut_off.is_some() { id.seq } else { Seq::MAX });
    Ok(Some(CallPiece { item: id, id: name, tool, input, signature, failed, result, finished }))
}

fn said(
    source: &mut ExportSource<'_>,
    item: &ExportItem,
    provider: Provider,
    out: &mut Vec<MessagePiece>,
) -> Result<(), Error> {
    let first = out.len();
    content(source, item, item.brief.role, provider, out)?;
    let empty =
        |said: &MessagePiece| matches!(said, MessagePiece::Text { text, .. } if text.trim().is_empty());
    let tail = out.split_off(first);
    for said in tail {
        if empty(&said) {
            source.report.note(LeftOut::TextEmpty, Some(item.id()));
        } else {
            out.push(said);
        }
    }
    Ok(())
}

/// The content of an item that is said to the model, or the result of a call.
fn content(
    source: &mut ExportSource<'_>,
    item: &ExportItem,
    role: Role,
    provider: Provider,
    out: &mut Vec<MessagePiece>,
) -> Result<(), Error> {
    let id = item.id();
    let own = source.provider(item).is_none_or(|made| made == provider);
    let key = item.brief.message.clone();
    match &item.output {
        ShownAs::Nothing => {}
        ShownAs::Placeholder(placeholder) => {
            if let Some(text) = source.placeholder(placeholder, id)? {
                out.push(MessagePiece::Text { text, role, key });
            }
        }
        ShownAs::Text(text) => out.push(MessagePiece::Text { text: text.clone(), role, key }),
        ShownAs::Whole => {
            for part in &item.content {
                let body = source.sent_instead(item).unwrap_or(part.body);
                let (text, key) = (source.text(body, Some(id))?, key.clone());
                out.push(match part.kind {
                    PartKind::Media => {
                        MessagePiece::Media { body: text, media_type: part.media_type.clone(), key }
                    }
                    PartKind::Text | PartKind::Reasoning => MessagePiece::Text { text, role, key },
                    PartKind::Opaque | PartKind::Call | PartKind::Result if own && fits(provider, &text) => {
                        MessagePiece::Opaque { json: text }
                    }
                    // Another provider's: the model reads it as text.
                    PartKind::Opaque | PartKind::Call | PartKind::Result => {
                        source.report.note(LeftOut::OpaqueNotPortable, Some(id));
                        MessagePiece::Text { text, role, key }
                    }
                });
            }
        }
    }
    Ok(())
}
