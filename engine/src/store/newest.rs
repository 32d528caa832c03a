//! The newest events of a stream: found from its end, given from their beginning.
//!
//! ```text
//! places: f1 f2 .. f8 f9     read back:  f9 (3 events), f8 (3) .. until there are enough     given:  f8, f9, without the surplus of f8
//! ```
//!
//! Frames are held between the two, with the texts that were read with them, so that each is read once. If there are very many, only
//! their places are held, and the frames are read twice.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::codec::Frame;
use crate::error::Error;
use crate::ids::{Seq, StreamId};
use crate::log::Looks;

use super::Inner;
use super::scan::Source;

/// Most frames that are held, each of some 4 KiB.
pub(super) const HELD_COUNT_MAX: usize = 1024;

/// The frames that hold the newest `count` events of a stream, and the seq of the first of these events. At most `held_max` frames
/// are held.
/// held.
pub(super) fn source(
    inner: Arc<Inner>,
    (stream, count): (StreamId, usize),
    held_max: usize,
) -> Result<(Source, Seq), Error> {
    let mut places = VecDeque::from(inner.last_frames_of(stream, count)?);
    let (mut held, mut unread) = (VecDeque::new(), places.len());
    let (mut found, mut first) = (0, Seq::MAX);
    let mut looks = Looks::WITH_TEXTS;
    for place in places.iter().rev() {
        if found >= count {
            break;
        }
        unread -= 1;
        let (parts, _) = inner.parts_once(&mut looks, place.position, &[stream], Seq::ZERO)?;
        for frame in parts.into_iter().rev() {
            let own: Vec<Seq> = seqs(&frame, stream).collect();
            // As long as too few are found, none is too many.
            let surplus = (found + own.len()).saturating_sub(count);
            first = own.get(surplus).copied().unwrap_or(first);
            found += own.len();
            if held.len() <= held_max {
                held.push_front(frame);
            }
            if surplus > 0 {
                break;
            }
        }
    }
    drop(looks);
    if held.len() <= held_max {
        return Ok((Source::Held { inner, frames: held }, first));
    }
    places.drain(..unread);
    let source = Source::Places { inner, places, streams: vec![stream], after: Seq::ZERO, parts: None };
    Ok((source, first))
}

fn seqs(frame: &Frame, stream: StreamId) -> impl Iterator<Item = Seq> + '_ {
    frame.events().filter(move |event| event.envelope.stream == stream).map(|event| event.seq)
}
