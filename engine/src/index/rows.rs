//! The rows that one frame adds to an index. Pure: the same frame always gives the same rows.

use crate::codec::{EventRef, Frame, FrameHeader, payload};
use crate::event::{Key, KeyKind, Payload};
use crate::ids::Seq;
use crate::secret::Secret;
use crate::text::paths::plain;
use crate::text::signature::Label;

use super::layout::NameKey;
use super::{Bypassed, FramePlace, NAME_BYTES_MAX, NameKind, Watermark};

/// The rows that one frame adds to an index; made by [`rows_of`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexRows {
    pub(super) place: FramePlace,
    /// The link is asked for only of the last frame of a batch: it is a digest, and not made for the others.
    pub(super) header: FrameHeader,
    pub(super) names: Vec<(NameKey, Seq)>,
}

impl IndexRows {
    /// The frame they come from.
    pub const fn place(&self) -> FramePlace {
        self.place
    }

    /// How many events the frame holds.
    pub const fn event_count(&self) -> u64 {
        self.place.event_count()
    }
}

// The kinds whose payloads hold names; a test compares them with the event module's numbers.
pub(crate) const SESSION_OPENED: u16 = 1;
pub(super) const TOOL_CALL_STARTED: u16 = 32;
pub(super) const TOOL_CALL_FINISHED: u16 = 33;
pub(super) const FILE_CHANGED: u16 = 34;
pub(super) const MEMORY_RECORDED: u16 = 64;

/// The rows that `frame` adds to an index. `secret`: the store's, to read the labels of calls.
///
/// Total: payloads that are unknown or do not decode bear no names, and their events are placed all the same. Cost:
/// decodes only the kinds that bear names.
pub fn rows_of(frame: &Frame, secret: &Secret) -> IndexRows {
    let header = frame.header();
    let mut rows = IndexRows {
        place: FramePlace {
            first_seq: header.first_seq,
            last_seq: header.last_seq(),
            position: header.position,
        },
        header: *header,
        names: Vec::new(),
    };
    for event in frame.events() {
        let stream = event.envelope.stream;
        names_of(&event, secret, |kind, text| {
            let text = as_kept(&text);
            if !text.is_empty() {
                rows.names.push((NameKey::new(kind, text, stream), event.seq));
            }
        });
    }
    rows
}

impl IndexRows {
    /// The watermark behind the frame.
    pub(super) fn watermark(&self) -> Watermark {
        let (seq, link) = (self.header.last_seq(), self.header.link());
        Watermark { seq, last: Some(self.header.position), end: Some(self.header.end()), link }
    }
}

/// The names of frames behind a watermark, in order, and the watermark behind them. Frames at or below it are skipped.
///
/// # Errors
/// If a frame does not follow the one before it.
pub(super) fn advance(
    watermark: Watermark,
    frames: &[IndexRows],
) -> Result<(impl Iterator<Item = (NameKey, Seq)> + '_, Watermark), Bypassed> {
    let new = move || frames.iter().filter(move |rows| rows.place.last_seq > watermark.seq);
    let mut next = watermark.seq;
    for rows in new() {
        if rows.place.first_seq != next.next() {
            let reason = format!("a frame begins at {}, expected {}", rows.place.first_seq, next.next());
            return Err(Bypassed { reason });
        }
        next = rows.place.last_seq;
    }
    let reached = new().next_back().map_or(watermark, IndexRows::watermark);
    Ok((new().flat_map(|rows| rows.names.iter().copied()), reached))
}

fn names_of(event: &EventRef<'_>, secret: &Secret, mut name: impl FnMut(NameKind, String)) {
    let envelope = &event.envelope;
    let names = [SESSION_OPENED, TOOL_CALL_STARTED, TOOL_CALL_FINISHED, FILE_CHANGED, MEMORY_RECORDED];
    if !names.contains(&envelope.kind) {
        return;
    }
    let Ok((_, payload)) = payload::decode(envelope.kind, envelope.version, event.payload) else { return };
    match payload {
        Payload::SessionOpened(opened) => name(NameKind::Session, opened.name),
        Payload::ToolCallStarted(started) => {
            name(NameKind::Label, Label::from_bits(&started.tool, secret.open_label(started.label)).short());
            name(NameKind::Call, started.call);
            for key in started.keys {
                files_of(key, &mut name);
            }
        }
        // Some hosts tell of an end without having told of the start.
        Payload::ToolCallFinished(finished) => name(NameKind::Call, finished.call),
        Payload::FileChanged(changed) => files_of(changed.key, &mut name),
        // Its category and its key are free text: not for an index.
        Payload::MemoryRecorded(memory) => name(NameKind::Memory, memory.id),
        _ => {}
    }
}

fn files_of(key: Key, name: &mut impl FnMut(NameKind, String)) {
    if key.kind == KeyKind::File {
        name(NameKind::File, from_its_end(&key.given));
        if let Some(resolved) = key.resolved {
            name(NameKind::File, from_its_end(&resolved));
        }
    }
}

/// The part of a name that the index keeps: all of it, or of a very long one its first [`NAME_BYTES_MAX`] bytes, without a letter that
/// this would cut. Questions cut names in the same way, so for a long name the index finds at least all that bear it.
pub fn as_kept(name: &str) -> &str {
    crate::text::first_bytes(name, NAME_BYTES_MAX)
}

/// A path as the index keeps it, last letter first: people name a file by the end of its path. At most as long as a name may be,
/// so that every path is in the index by its end.
pub fn from_its_end(path: &str) -> String {
    let mut reversed = String::with_capacity(path.len());
    for letter in plain(path).chars().rev() {
        if reversed.len().saturating_add(letter.len_utf8()) > NAME_BYTES_MAX {
            break;
        }
        reversed.push(letter);
    }
    reversed
}
