//! Reading forward over sound and damaged stretches.
//!
//! ```text
//! frame ok ........ yield it
//! spine bad ....... the header says where the next frame is and which events are lost: report, step over
//! header bad ...... look for the next header whose chain of links re-joins the log: report, go on there
//! segment bad ..... go on at the next segment: its header says which seq it begins with
//! ```
//!
//! Each damaged stretch is one error that names the file, the place and the events it costs.

use std::collections::HashSet;

use super::cursor::{FrameCursor, Windows};
use super::error::{Corruption, FrameFault, LogError, sound};
use super::files::{
    SCAN_WINDOW_BYTES, Segments, after, continues, corruption, damaged, segment_begin, segment_start,
};
use super::recovery_scan::{find_header, strict};
use super::{Head, Log};
use crate::codec::{DamagedPart, Frame, FrameCheck, FrameHeader, SegmentHeader, WrittenPlace};
use crate::ids::{Position, Seq};

/// Walks from a place to an end, stepping over damage.
pub(crate) struct FrameWalk<'a> {
    pub(crate) segments: &'a Segments,
    cursor: FrameCursor<'a>,
    numbers: Option<Vec<u32>>,
    /// Where the walk is; `link` only counts if `link_known`.
    pub(crate) place: WrittenPlace,
    link_known: bool,
    until: Head,
    check: FrameCheck,
    links: bool,
    next_segment: Option<(u32, Option<SegmentHeader>)>,
    /// The header of the damaged frame that the last step went over, if the header is sound.
    damaged: Option<FrameHeader>,
    started: bool,
}

/// One step of a walk.
pub(crate) enum WalkStep {
    /// A sound frame.
    Frame(Frame),
    /// A damaged stretch, stepped over.
    Damage(Corruption),
    /// The end.
    End,
}

impl<'a> FrameWalk<'a> {
    /// A walk from `from` (the default: from the first segment). With `links` every link is computed and compared.
    pub(crate) fn new(
        segments: &'a Segments,
        from: Position,
        until: Head,
        check: FrameCheck,
        links: bool,
        window_bytes: usize,
    ) -> Self {
        let place = WrittenPlace { position: from, ..WrittenPlace::default() };
        let cursor = FrameCursor::new(segments, window_bytes);
        Self {
            segments,
            cursor,
            numbers: None,
            place,
            link_known: false,
            until,
            check,
            links,
            next_segment: None,
            damaged: None,
            started: false,
        }
    }

    pub(crate) fn cursor(&mut self) -> &mut FrameCursor<'a> {
        &mut self.cursor
    }

    fn into_windows(self) -> Windows {
        self.cursor.into_windows()
    }

    pub(crate) fn step(&mut self) -> Result<WalkStep, LogError> {
        self.damaged = None;
        if !self.started {
            let damage = self.start()?;
            self.started = true;
            if let Some(damage) = damage {
                return Ok(WalkStep::Damage(damage));
            }
        }
        loop {
            if self.place.position >= self.until.position {
                return Ok(WalkStep::End);
            }
            let segment = self.place.position.segment();
            if segment < self.until.position.segment() {
                let next = self.next_header(segment)?;
                if let Some(header) = next.filter(|next| next.previous_end <= self.place.position) {
                    if let Some(damage) = self.open_segment(header.number)? {
                        return Ok(WalkStep::Damage(damage));
                    }
                    continue;
                }
            }
            let position = self.place.position;
            let fault = match self.cursor.frame(position, self.check) {
                Ok(frame) => match self.accept(&frame) {
                    None => return Ok(WalkStep::Frame(frame)),
                    Some(damage) => return Ok(WalkStep::Damage(damage)),
                },
                Err(FrameFault::Error(error)) => return Err(error),
                Err(fault) => fault,
            };
            return Ok(WalkStep::Damage(self.step_over(fault)?));
        }
    }

    /// Finds the first place.
    fn start(&mut self) -> Result<Option<Corruption>, LogError> {
        let position = self.place.position;
        if position.segment() == 0 {
            self.place = WrittenPlace { position: segment_begin(1), ..WrittenPlace::default() };
            self.link_known = true;
            if self.until.position <= self.place.position {
                return Ok(None);
            }
            return self.open_segment(1);
        }
        if position == SegmentHeader::start(position.segment()) {
            return self.open_segment(position.segment());
        }
        // Without a sound header, the next step reports the reason.
        if let Some(header) = sound(self.cursor.header(position))? {
            self.place = before(&header);
            self.link_known = true;
        }
        Ok(None)
    }

    /// Goes to the first frame of segment `number`; reports if the file or its header is damaged.
    fn open_segment(&mut self, number: u32) -> Result<Option<Corruption>, LogError> {
        let start = SegmentHeader::start(number);
        let Some(file) = self.segments.get(number)? else {
            return self.skip_segment(number).map(Some);
        };
        match file.header.clone() {
            Ok(header) => {
                let place = segment_start(&header);
                let known = self.link_known && self.place.seq == place.seq && self.place.link == place.link;
                let first = number == 1 && place.seq == Seq::ZERO && place.link.is_zero();
                let entered = !self.link_known || known || first;
                let before = std::mem::replace(&mut self.place, place);
                self.link_known = true;
                if entered {
                    return Ok(None);
                }
                let mut damage = corruption(self.segments, before.position, FrameFault::Nothing);
                damage.part = DamagedPart::Link;
                damage.expected = format!("events up to {}, which segment {number} continues", place.seq);
                damage.found = format!("events up to {}", before.seq);
                damage.seq_first = Some(before.seq.next()).filter(|first| *first <= place.seq);
                damage.seq_last = damage.seq_first.map(|_| place.seq);
                Ok(Some(damage))
            }
            Err(invalid) => {
                // Frames say themselves where they belong, so a segment can be read without its header.
                self.place.position = start;
                let position = segment_begin(number);
                Ok(Some(corruption(self.segments, position, FrameFault::Invalid(invalid, None))))
            }
        }
    }

    /// Steps over a segment that is not there.
    fn skip_segment(&mut self, number: u32) -> Result<Corruption, LogError> {
        let mut damage = corruption(self.segments, segment_begin(number), FrameFault::Nothing);
        damage.part = DamagedPart::SegmentMissing;
        "the file".clone_into(&mut damage.expected);
        "no file".clone_into(&mut damage.found);
        if self.numbers.is_none() {
            self.numbers = Some(self.segments.numbers()?);
        }
        let numbers = self.numbers.as_deref().unwrap_or(&[]);
        let later =
            numbers.iter().copied().find(|later| *later > number && *later <= self.until.position.segment());
        let mut last = self.until.seq;
        if let Some(later) = later {
            self.place.position = SegmentHeader::start(later);
            self.link_known = false;
            let place = match self.segments.header(later)? {
                Some(header) => Some(segment_start(&header)),
                // That segment's header is damaged too: its frames tell where it begins.
                None => {
                    self.resync(later, SegmentHeader::start(later).offset())?.map(|header| before(&header))
                }
            };
            if let Some(place) = place {
                last = place.seq;
                damage.seq_first = Some(self.place.seq.next());
                self.place = place;
                self.link_known = true;
            }
        } else {
            self.place.position = self.until.position;
        }
        let first = damage.seq_first.unwrap_or(self.place.seq.next());
        damage.seq_first = Some(first).filter(|first| *first <= last);
        damage.seq_last = damage.seq_first.map(|_| last);
        Ok(damage)
    }

    /// The header of the segment after `segment`, read once.
    fn next_header(&mut self, segment: u32) -> Result<Option<SegmentHeader>, LogError> {
        if let Some((known, header)) = self.next_segment
            && known == segment
        {
            return Ok(header);
        }
        let header = self.segments.header(segment.saturating_add(1))?;
        self.next_segment = Some((segment, header));
        Ok(header)
    }

    /// Goes on behind a sound frame; reports it if it does not continue the log.
    fn accept(&mut self, frame: &Frame) -> Option<Corruption> {
        let header = frame.header();
        let expected = if self.links && self.link_known {
            continues(&self.place, header)
        } else {
            continues(&WrittenPlace { link: header.previous, ..self.place }, header)
        };
        let invalid = expected.err();
        let known = self.place;
        self.place = if self.links {
            after(header)
        } else {
            let (position, seq, time) = (header.end(), header.last_seq(), header.time_max);
            WrittenPlace { position, seq, time, link: header.previous, last_frame: 1 }
        };
        self.link_known = self.links;
        let mut damage = corruption(self.segments, header.position, FrameFault::Invalid(invalid?, None));
        damage.seq_first = Some(header.first_seq.min(known.seq.next()));
        damage.seq_last = Some(header.last_seq());
        if header.first_seq <= known.seq {
            // The frame's seqs were passed already: it must not pull the walk back.
            self.place.seq = known.seq;
        }
        Some(damage)
    }

    /// Reports a fault at the current place and goes on behind it.
    fn step_over(&mut self, fault: FrameFault) -> Result<Corruption, LogError> {
        let (position, seq) = (self.place.position, self.place.seq);
        let segment = position.segment();
        if let FrameFault::Invalid(_, Some(header)) = &fault {
            let header = **header;
            let mut damage = corruption(self.segments, position, fault);
            self.damaged = Some(header);
            self.place = after(&header);
            self.link_known = true;
            if header.first_seq <= seq {
                self.place.seq = seq;
            }
            damage.seq_first = Some(header.first_seq);
            return Ok(damage);
        }
        let mut damage = corruption(self.segments, position, fault);
        let next = if segment < self.until.position.segment() { self.next_header(segment)? } else { None };
        let found = self.resync(segment, position.offset().saturating_add(Position::GRAIN_BYTES))?;
        let last = if let Some(header) = found {
            self.place = before(&header);
            self.link_known = true;
            Some(self.place.seq)
        } else if segment < self.until.position.segment() {
            if let Some(header) = next {
                self.place = segment_start(&header);
                self.link_known = true;
                Some(self.place.seq)
            } else {
                self.link_known = false;
                // If only the header of the next segment is wrong, this segment simply ends here.
                if let Some(next) = self.open_segment(segment.saturating_add(1))? {
                    if damage.part == DamagedPart::Missing {
                        return Ok(next);
                    }
                    return Ok(Corruption { seq_first: Some(seq.next()), seq_last: None, ..damage });
                }
                None
            }
        } else {
            self.place.position = self.until.position;
            Some(self.until.seq)
        };
        // A damaged range without a seq costs no event, unless the number of events in it is unknown.
        let last = last.filter(|last| *last != Seq::ZERO);
        damage.seq_first = last.is_none_or(|last| seq < last).then_some(seq.next());
        damage.seq_last = damage.seq_first.and(last);
        Ok(damage)
    }

    /// The next frame of `segment` from which a chain of links leads to where the segment is known to end.
    ///
    /// If there is more damage ahead no chain gets there; then the first one that just breaks off is taken, but
    /// never one that runs into a sound frame with another link (that one is a forgery or a stale copy).
    fn resync(&mut self, segment: u32, offset: u64) -> Result<Option<FrameHeader>, LogError> {
        let last = segment >= self.until.position.segment();
        let end = if last {
            Some(self.until.position)
        } else {
            self.next_header(segment)?.map(|next| next.previous_end)
        };
        let until = end.filter(|end| end.segment() == segment).map_or(u64::MAX, Position::offset);
        let mut cursor = FrameCursor::new(self.segments, SCAN_WINDOW_BYTES);
        let mut visited: HashSet<Position> = HashSet::new();
        let mut fallback = None;
        let mut offset = offset;
        while let Some(candidate) = find_header(&mut cursor, segment, offset, until, self.place.seq)? {
            offset = candidate.position.offset().saturating_add(Position::GRAIN_BYTES);
            if visited.contains(&candidate.position) {
                continue;
            }
            let (mut header, mut disagrees) = (candidate, false);
            loop {
                visited.insert(header.position);
                if end == Some(header.end()) {
                    return Ok(Some(candidate));
                }
                let Some(next) = sound(cursor.header(header.end()))? else { break };
                disagrees = continues(&after(&header), &next).is_err();
                if disagrees {
                    break;
                }
                header = next;
            }
            if !disagrees && fallback.is_none() {
                fallback = Some(candidate);
            }
        }
        Ok(fallback)
    }
}

/// The place right before a frame, as its header says.
fn before(header: &FrameHeader) -> WrittenPlace {
    WrittenPlace {
        position: header.position,
        seq: header.first_seq.before(),
        time: header.time_max,
        link: header.previous,
        last_frame: 1,
    }
}

/// Sound frames in order, and an error for each damaged stretch between them.
pub struct Frames<'a> {
    log: &'a Log,
    walk: FrameWalk<'a>,
    skip: Seq,
    done: bool,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(
        log: &'a Log,
        from: Position,
        until: Head,
        check: FrameCheck,
        window_bytes: usize,
    ) -> Self {
        let walk = FrameWalk::new(&log.segments, from, until, check, false, window_bytes);
        Self { log, walk, skip: Seq::ZERO, done: false }
    }

    pub(crate) fn skip_before(mut self, seq: Seq) -> Self {
        self.skip = seq;
        self
    }

    /// Reads into these windows, if no frame uses them any more.
    pub(crate) fn reusing(mut self, windows: Windows) -> Self {
        self.walk.cursor().reuse(windows);
        self
    }

    /// Returns the windows, for the next reader.
    pub(crate) fn into_windows(self) -> Windows {
        self.walk.into_windows()
    }
}

impl Iterator for Frames<'_> {
    type Item = Result<Frame, LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.done {
            match self.walk.step() {
                Ok(WalkStep::Frame(frame)) => {
                    if frame.header().last_seq() >= self.skip {
                        return Some(Ok(frame));
                    }
                }
                Ok(WalkStep::Damage(damage)) => {
                    if damage.seq_last.is_none_or(|last| last >= self.skip) {
                        return Some(self.log.met(Err(LogError::Corrupt(Box::new(damage)))));
                    }
                }
                Ok(WalkStep::End) => self.done = true,
                Err(error) => {
                    self.done = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

impl Log {
    /// Frames from `from` (the start of a frame or segment; the default position is the start of the log) up to
    /// `until`, with damage reported as errors and stepped over.
    ///
    /// Take `until` from [`Log::head`] or [`Log::refresh`]: nothing after the durable head is shown.
    pub fn frames(&self, from: Position, until: Head) -> Frames<'_> {
        let head = self.head();
        let until = if until.position > head.position { head } else { until };
        Frames::new(self, from, until, FrameCheck::Checksum, SCAN_WINDOW_BYTES)
    }

    /// Follows sound, linked frames from `place` to `until` exactly.
    pub(crate) fn walk_to(
        &self,
        place: Head,
        until: Position,
        mut each: impl FnMut(&crate::codec::Frame),
    ) -> Result<Head, LogError> {
        self.walk(place, until, |cursor, header| {
            each(&cursor.frame(header.position, FrameCheck::Checksum)?);
            Ok(())
        })
    }

    fn walk(
        &self,
        mut place: Head,
        until: Position,
        mut each: impl FnMut(&mut FrameCursor<'_>, &FrameHeader) -> Result<(), FrameFault>,
    ) -> Result<Head, LogError> {
        let mut cursor = FrameCursor::new(&self.segments, SCAN_WINDOW_BYTES);
        while place.position < until {
            let segment = place.position.segment();
            if segment < until.segment()
                && let Some(next) = self.segments.header(segment.saturating_add(1))?
                && next.previous_end == place.position
                && next.previous == place.link
            {
                place = segment_start(&next);
                continue;
            }
            let header = strict(&mut cursor, &place, false)
                .and_then(|header| each(&mut cursor, &header).map(|()| header));
            match header {
                Ok(header) => place = after(&header),
                Err(fault) => return self.met(Err(damaged(&self.segments, place.position, fault))),
            }
        }
        Ok(place)
    }
}
