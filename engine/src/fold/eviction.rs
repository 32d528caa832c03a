//! What a completed task hides, and which texts stand there instead.
//!
//! ```text
//! message 3  assistant  text, reasoning, CALL (T in_progress)   <- the range begins: words in here go
//!         4             output of T                             <- goes, as every output of T does, in range or not
//!         5  user       text                                    stays
//!         6  assistant  reasoning (signed), text, CALL          <- first part: tombstone, keeps the signature; text: dropped
//!         7             output of another task                  stays
//!         8  assistant  text, CALL (T completed)                <- the range ends: words in here go; the last place,
//!         9  assistant  text                                    stays                        it carries the summary
//! ```
//!
//! Calls, their params and ids, the order and what the user said stay, so the history remains valid for the provider.
//! The summary stands in the last hidden place only. A *rolling prune* hides older outputs of the active task.
//!
//! Pure functions over a description of the items ([`Piece`]): the fold, the archive and the judges call the same ones.
//! They decide nothing about restores, pins or other causes.

use std::fmt::Write as _;

use serde::Serialize;

use super::task::{TaskPoint, TaskView};

/// Outputs of the active task that a rolling prune leaves, unless settings say otherwise.
pub const ROLLING_OUTPUTS_MAX: usize = 20;

const TAG_START: &str = "<!-- sigma-task: ";
const TAG_END: &str = " -->";

/// What an item is, as far as an eviction cares.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[serde(rename_all = "snake_case")]
pub enum PieceKind {
    /// A tool's output.
    Output,
    /// A text or reasoning part of an assistant message.
    Words,
    /// A text part of anyone else's message.
    Text,
    /// Anything else: calls, media, opaque parts.
    Other,
}

/// One item, in conversation order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece<'a> {
    /// What it is.
    pub kind: PieceKind,
    /// Number of its message: equal for parts of one message, and what a [`MessageRange`] counts in. In a stream, the
    /// seq that began the message.
    pub message: u64,
    /// The task it belongs to: tagged, or recorded while that task was active (outputs only).
    pub task: Option<&'a str>,
    /// It carries a provider's signature.
    pub signed: bool,
}

/// Numbers of the messages whose words go, both included.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MessageRange {
    /// The message that first put the task in progress, since its last completion.
    pub first: u64,
    /// The message that completed it; `None`: to the end.
    pub last: Option<u64>,
}

impl MessageRange {
    /// The range of `task`: absent if it was never in progress, open if nothing completed it yet.
    ///
    /// `number` gives the number of a message by its key. Where no message is known the event's seq counts: messages
    /// recorded from there on, or up to there.
    pub fn of(task: &TaskView<'_>, number: impl Fn(&str) -> Option<u64>) -> Option<Self> {
        let number = |point: &TaskPoint| {
            let known = point.message.as_deref().and_then(&number);
            known.unwrap_or_else(|| point.seq.get())
        };
        Some(Self { first: number(task.begun?), last: task.ended.map(number) })
    }

    /// Whether `message` is in the range.
    pub fn contains(&self, message: u64) -> bool {
        message >= self.first && self.last.is_none_or(|last| message <= last)
    }
}

/// What stands in place of a hidden item.
#[derive(Serialize, Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[serde(rename_all = "snake_case")]
pub enum StandIn {
    /// [`output_text`].
    Output {
        /// The summary stands here.
        summary: bool,
    },
    /// [`words_text`], sent as reasoning (`thought: true`).
    Words {
        /// The summary stands here.
        summary: bool,
        /// Index of the piece whose signature it carries.
        signature: Option<usize>,
    },
    /// Nothing: the tombstone of its message stands before it.
    Dropped,
}

/// What the completion of `task` hides: indexes into `pieces`, ascending, each with what stands there instead.
///
/// `range`: absent if the task was never in progress; then only outputs go. Cost: O(pieces).
pub fn evicted(pieces: &[Piece<'_>], task: &str, range: Option<MessageRange>) -> Vec<(usize, StandIn)> {
    let mut hidden: Vec<(usize, StandIn)> = Vec::new();
    // Where the tombstone of the message at hand stands in `hidden`.
    let mut tombstone: Option<(u64, usize)> = None;
    for (index, piece) in pieces.iter().enumerate() {
        if piece.kind != PieceKind::Other && piece.task == Some(task) {
            hidden.push((index, StandIn::Output { summary: false }));
        } else if piece.kind == PieceKind::Words && range.is_some_and(|range| range.contains(piece.message)) {
            let signature = piece.signed.then_some(index);
            match tombstone.filter(|(message, _)| *message == piece.message) {
                None => {
                    tombstone = Some((piece.message, hidden.len()));
                    hidden.push((index, StandIn::Words { summary: false, signature }));
                }
                Some((_, place)) => {
                    if let Some((_, StandIn::Words { signature: kept @ None, .. })) = hidden.get_mut(place) {
                        *kept = signature;
                    }
                    hidden.push((index, StandIn::Dropped));
                }
            }
        }
    }
    let last = hidden.iter_mut().rev().find_map(|(_, stand_in)| match stand_in {
        StandIn::Output { summary } | StandIn::Words { summary, .. } => Some(summary),
        StandIn::Dropped => None,
    });
    if let Some(summary) = last {
        *summary = true;
    }
    hidden
}

/// What a rolling prune hides while `task` is active: indexes of all its outputs but the newest `outputs_max`.
///
/// Only outputs of the task matter, so a caller that keeps them apart need not give the rest.
pub fn rolled(pieces: &[Piece<'_>], task: &str, outputs_max: usize) -> Vec<usize> {
    let mut outputs: Vec<usize> = pieces
        .iter()
        .enumerate()
        .filter(|(_, piece)| piece.kind != PieceKind::Other && piece.task == Some(task))
        .map(|(index, _)| index)
        .collect();
    outputs.truncate(outputs.len().saturating_sub(outputs_max));
    outputs
}

/// The text in place of an output; with a summary it is the last place, and the summary stands there.
pub fn output_text(task: &str, session: &str, summary: Option<&str>) -> String {
    match summary {
        Some(summary) => {
            format!("[Task {task} completed. Raw logs evicted to archive. \nSUMMARY: {summary}]")
        }
        None => {
            format!("[Task {task} completed: output evicted to archive. {}", archive_hint(task, session))
        }
    }
}

/// The text in place of an assistant's words; with a summary it is the last place.
pub fn words_text(task: &str, summary: Option<&str>) -> String {
    let mut text = format!("[Assistant thinking/text for task {task} evicted to save tokens.");
    if let Some(summary) = summary {
        let _ = write!(text, " \nSUMMARY: {summary}");
    }
    text.push(']');
    text
}

/// The text in place of an output that a rolling prune hid.
pub fn rolling_text(task: &str, session: &str) -> String {
    format!(
        "[Tool output for task {task} evicted (Rolling Prune) to keep context small. {}",
        archive_hint(task, session)
    )
}

fn archive_hint(task: &str, session: &str) -> String {
    format!("Use 'grep' on {} if previous logs are needed.]", archive_path(task, session))
}

/// Where a task's archive is exported to, relative to the host's folder.
pub fn archive_path(task: &str, session: &str) -> String {
    format!(".sigma/archives/{}/{}.log", path_part(session), path_part(task))
}

/// An id as part of a path: letters, digits, `.`, `_` and `-` stay, all else becomes `_`.
fn path_part(id: &str) -> String {
    let keep = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    id.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}

/// The task that a tag at the end of `text` names, whole. White space after the tag does not matter.
pub fn task_tag(text: &str) -> Option<&str> {
    let head = text.trim_end().strip_suffix(TAG_END)?;
    let task = head.get(head.rfind(TAG_START)? + TAG_START.len()..)?;
    (!task.is_empty() && !task.contains("-->")).then_some(task)
}

/// `output` with the tag of `task` at its end, as hosts that read tags expect it.
pub fn with_task_tag(output: &str, task: &str) -> String {
    format!("{output}\n\n{TAG_START}{task}{TAG_END}")
}

#[cfg(test)]
mod tests;
