//! What the store asks: which frames hold events of a stream, all of them or the newest, and where each stream begins.

use std::cell::RefCell;

use crate::error::Error;
use crate::ids::{Seq, StreamId};
use crate::index::{Bypassed, FramePlace, Lookup as _};

use super::super::Inner;
use super::super::locator::{Locator, StreamPlace};

/// Frames that may hold something, and the seq up to which that is all.
type Found = (Vec<FramePlace>, Seq);
/// A question to the locator: which frames may hold something.
type FramesQuestion<'a> = dyn Fn(&Locator) -> Result<Vec<FramePlace>, Bypassed> + 'a;

impl Inner {
    /// Frames with events of `streams` past `after`, oldest first, and the seq up to which that is all.
    pub(in crate::store) fn frames_of(
        &self,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<(Vec<FramePlace>, Seq), Error> {
        self.ask_frames(streams, after, &|question| self.ask(question))
    }

    /// As [`Inner::frames_of`], without a look for commits of other processes. For callers whose commit carries a condition:
    /// the log refuses it if another process wrote meanwhile.
    pub(in crate::store) fn known_frames_of(
        &self,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<(Vec<FramePlace>, Seq), Error> {
        self.ask_frames(streams, after, &|question| self.ask_known(question))
    }

    fn ask_frames(
        &self,
        streams: &[StreamId],
        after: Seq,
        ask: &dyn Fn(&FramesQuestion<'_>) -> Result<Found, Error>,
    ) -> Result<Found, Error> {
        let failed = RefCell::new(None);
        let answer = ask(&|locator: &Locator| {
            let mut found = Vec::new();
            if after < locator.base
                && let Some(index) = &locator.index
            {
                for stream in streams {
                    let known = index.frames_of(*stream, after)?;
                    found.extend(known.into_iter().filter(|place| place.last_seq <= locator.base));
                }
            }
            let past = after.max(locator.base);
            for stream in streams {
                match locator.segments.frames_of(&self.log, *stream, past) {
                    Ok(known) => found.extend(known),
                    Err(error) => *failed.borrow_mut() = Some(error),
                }
            }
            found.extend(locator.tail.frames_of(streams, past));
            if !found.is_sorted_by(|left, right| left < right) {
                found.sort_unstable();
                found.dedup();
            }
            Ok(found)
        });
        failed.into_inner().map_or(answer, Err)
    }

    /// Frames that hold the newest `count` events of a stream, oldest first; perhaps more of them.
    pub(in crate::store) fn last_frames_of(
        &self,
        stream: StreamId,
        count: usize,
    ) -> Result<Vec<FramePlace>, Error> {
        let failed = RefCell::new(None);
        let answer = self.ask(&|locator: &Locator| {
            let mut found = locator.tail.frames_of(&[stream], locator.base);
            // What the tail has is enough, or all that is before it is looked at.
            if found.len() < count {
                match locator.segments.frames_of(&self.log, stream, locator.base) {
                    Ok(known) => found.splice(0..0, known).for_each(drop),
                    Err(error) => *failed.borrow_mut() = Some(error),
                }
            }
            if found.len() < count
                && let Some(index) = &locator.index
            {
                let mut known = index.last_frames_of(stream, count)?;
                known.retain(|place| place.last_seq <= locator.base);
                found.splice(0..0, known).for_each(drop);
            }
            found.sort_unstable();
            found.dedup();
            // Fewer than were asked for: none is too many.
            let surplus = found.len().saturating_sub(count);
            found.drain(..surplus);
            Ok(found)
        });
        let (places, _) = failed.into_inner().map_or(answer, Err)?;
        Ok(places)
    }

    /// All frames with events past `after`.
    pub(in crate::store) fn all_frames(&self, after: Seq) -> Result<(Vec<FramePlace>, Seq), Error> {
        let streams: Vec<StreamId> = self.stream_places()?.iter().map(|place| place.stream).collect();
        self.frames_of(&streams, after)
    }

    /// All streams, in order of their first event.
    pub(in crate::store) fn stream_places(&self) -> Result<Vec<StreamPlace>, Error> {
        let (found, _) = self.ask(&|locator| {
            let mut found: Vec<StreamPlace> = Vec::new();
            let mut known = rustc_hash::FxHashMap::default();
            if let Some(index) = &locator.index {
                for entry in index.streams()? {
                    // What the index knows beyond the base is in the tail, too.
                    if entry.first_seq <= locator.base {
                        known.insert(entry.stream, found.len());
                        found.push(StreamPlace {
                            stream: entry.stream,
                            first: entry.first_frame,
                            head: entry.head,
                        });
                    }
                }
            }
            for place in locator.segments.streams().iter().filter(|place| place.head > locator.base) {
                if let Some(old) = known.get(&place.stream).and_then(|at: &usize| found.get_mut(*at)) {
                    old.head = old.head.max(place.head);
                } else {
                    known.insert(place.stream, found.len());
                    found.push(*place);
                }
            }
            for stream in locator.tail.streams() {
                let Some(fresh) = locator.tail.stream(*stream) else { continue };
                if let Some(old) = known.get(stream).and_then(|place| found.get_mut(*place)) {
                    old.head = old.head.max(fresh.head);
                } else if let Some(first) = fresh.frames.first() {
                    found.push(StreamPlace { stream: *stream, first: *first, head: fresh.head });
                }
            }
            Ok(found)
        })?;
        Ok(found)
    }
}
