//! Reading forward, with the sound pieces of damaged frames.

use std::collections::BTreeSet;

use super::error::LogError;
use super::frames::Frames;
use super::{Head, Log};
use crate::codec::{Frame, FrameCheck, FrameHeader};
use crate::ids::{Seq, StreamId};

/// A frame, or its sound pieces. Sealed events are opened.
pub(crate) struct Stretch {
    pub(crate) header: FrameHeader,
    /// The frame, or the sound pieces of a damaged one.
    pub(crate) parts: Vec<Frame>,
    pub(crate) is_whole: bool,
    /// Streams of its events that are left out: their keys are not at hand, or do not open them.
    pub(crate) locked: Vec<StreamId>,
}

impl Stretch {
    fn new(header: FrameHeader, parts: Vec<Frame>, is_whole: bool, shredded: &BTreeSet<StreamId>) -> Self {
        let mut stretch =
            Self { header, parts: Vec::with_capacity(parts.len()), is_whole, locked: Vec::new() };
        for part in parts {
            let (legible, locked) = part.legible(shredded);
            stretch.parts.extend(legible);
            stretch.locked.extend(locked);
        }
        stretch
    }
}

/// Goes through a log, damage left out: the report of a verification tells of it.
pub(crate) struct Stretches<'a> {
    log: &'a Log,
    frames: Frames<'a>,
    shredded: &'a BTreeSet<StreamId>,
}

impl Log {
    /// Stretches from the one that holds `from` on, up to a place that need not be durable. Events of `shredded` streams are there even if no key
    /// file says so.
    ///
    /// # Errors
    /// As [`Log::frames_from`].
    pub(crate) fn stretches<'a>(
        &'a self,
        from: Seq,
        until: Head,
        check: FrameCheck,
        shredded: &'a BTreeSet<StreamId>,
    ) -> Result<Stretches<'a>, LogError> {
        Ok(Stretches { log: self, frames: self.frames_until(from, until, check)?, shredded })
    }
}

impl Iterator for Stretches<'_> {
    type Item = Result<Stretch, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match (self.frames.next()?, self.frames.damaged()) {
                (Ok(frame), _) => {
                    return Some(Ok(Stretch::new(*frame.header(), vec![frame], true, self.shredded)));
                }
                (Err(LogError::Corrupt(_)), Some(header)) => {
                    let header = *header;
                    let parts = self.log.sound_parts(&header);
                    return Some(parts.map(|parts| Stretch::new(header, parts, false, self.shredded)));
                }
                // No header tells which events these were.
                (Err(LogError::Corrupt(_)), None) => {}
                (Err(error), _) => return Some(Err(error)),
            }
        }
    }
}
