//! Reading forward, damaged frames left out.

use std::collections::BTreeSet;

use super::error::LogError;
use super::frames::Frames;
use super::{Head, Log};
use crate::codec::{Frame, FrameCheck, FrameHeader};
use crate::ids::{Seq, StreamId};

/// A frame, or the events of it that their keys open. Sealed events are opened.
pub(crate) struct Stretch {
    pub(crate) header: FrameHeader,
    /// The frame, or runs of its events.
    pub(crate) parts: Vec<Frame>,
    /// Streams of its events that are left out: their keys are not at hand, or do not open them.
    pub(crate) locked: Vec<StreamId>,
}

impl Stretch {
    fn new(frame: Frame, shredded: &BTreeSet<StreamId>) -> Self {
        let header = *frame.header();
        let (parts, locked) = frame.legible(shredded);
        Self { header, parts, locked }
    }
}

/// Goes through a log, damage left out: the report of a verification tells of it.
pub(crate) struct Stretches<'a> {
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
        Ok(Stretches { frames: self.frames_until(from, until, check)?, shredded })
    }
}

impl Iterator for Stretches<'_> {
    type Item = Result<Stretch, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.frames.next()? {
                Ok(frame) => return Some(Ok(Stretch::new(frame, self.shredded))),
                Err(LogError::Corrupt(_)) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
