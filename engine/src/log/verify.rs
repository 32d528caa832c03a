//! Checking everything: every byte, every link, every witness; never stopping at the first damage.

use std::path::PathBuf;

use super::create::{StoreFileState, identify, read_secret, store_file_damage};
use super::cursor::{FrameCursor, ReadBuffer};
use super::error::{Corruption, FrameFault, LogError, sound};
use super::files::corruption;
use super::files::{CHECKPOINT, SCAN_WINDOW_BYTES, SECRET, TAIL, after};
use super::frames::{FrameWalk, WalkStep};
use super::parallel_verify::{Damaged, FrameBatch, check_alone};
use super::places_check::PlacesCheck;
use super::recovery_scan::{CheckpointFile, claims, read_checkpoint, strict, torn};
use super::witness::{Ending, Witness, WitnessClaims, WitnessKind, WitnessStatus, add_segments, add_tail};
use super::{Head, Log};
use crate::codec::{DamagedPart, DurablePoint, Frame, FrameCheck, SALT_BYTES, TailPage};
use crate::ids::{Link, Position, Seq, StoreId};
use crate::locks::steady;
use crate::storage::Access;

/// Something that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Violation {
    /// The damaged part.
    pub kind: DamagedPart,
    /// The file.
    #[serde(serialize_with = "crate::text::paths::serialize_shown")]
    pub path: PathBuf,
    /// Its segment, 0 for other files.
    pub segment: u32,
    /// Where the damage begins, in bytes from the start of the file.
    pub offset: u64,
    /// First event it costs, if any.
    pub seq_first: Option<Seq>,
    /// Last event it costs, if any and if known.
    pub seq_last: Option<Seq>,
    /// The expected and the found value.
    pub detail: String,
}

impl From<Corruption> for Violation {
    fn from(damage: Corruption) -> Self {
        Self {
            kind: damage.part,
            path: damage.path,
            segment: damage.segment,
            offset: damage.offset,
            seq_first: damage.seq_first,
            seq_last: damage.seq_last,
            detail: format!("expected {}, found {}", damage.expected, damage.found),
        }
    }
}

/// The findings of [`Log::verify`].
#[derive(Debug, Clone, serde::Serialize)]
#[must_use]
pub struct LogReport {
    /// The store.
    pub store: StoreId,
    /// The end of sound frames.
    pub head_seq: Seq,
    /// The link at the end.
    pub head_link: Link,
    /// The same end as a place, unconfirmed events included.
    #[serde(skip)]
    pub(crate) end: Head,
    /// Segment files read.
    pub segments: u64,
    /// Sound frames.
    pub frames: u64,
    /// Sound events, also if their bodies are damaged.
    pub events: u64,
    /// Sound rows of body tables.
    pub bodies: u64,
    /// Bytes of sound frames.
    pub bytes: u64,
    /// Bytes of an unfinished write after the end: not damage.
    pub torn_bytes: u64,
    /// Sound events after the last durable claim: written, not confirmed.
    pub unconfirmed_events: u64,
    /// Everything that is wrong, in the order of the log.
    pub violations: Vec<Violation>,
    /// Witnesses of the log's end, and how each compares. Without a witness a lost end cannot be seen.
    pub witnesses: Vec<Witness>,
    /// First and last of the acknowledged events that are missing at the end of the log.
    pub missing: Option<(Seq, Seq)>,
}

impl LogReport {
    /// Whether the missing end of the log is all the damage.
    pub fn is_only_cut(&self) -> bool {
        let Some((first, _)) = self.missing else { return false };
        let is_loss = |part| matches!(part, DamagedPart::Missing | DamagedPart::SegmentMissing);
        let mut violations = self.violations.iter();
        violations.all(|lost| is_loss(lost.kind) && lost.seq_first.is_none_or(|seq| seq >= first))
    }

    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.violations.is_empty() && self.missing.is_none()
    }
}

impl Log {
    /// Checks every digest, link, body, reserved byte and witness of the store, as it lies on the disk now.
    ///
    /// Writes nothing. Cost: one pass over the whole log, about as fast as BLAKE3 on two threads.
    ///
    /// # Errors
    /// [`LogError::Io`] if the storage fails; damage is in the report.
    pub fn verify(&self) -> Result<LogReport, LogError> {
        self.verify_with(|_, _| false)
    }

    /// [`Log::verify`], where `erased` says whether the erasure of a body accounts for its zeroed or damaged bytes.
    ///
    /// # Errors
    /// As [`Log::verify`].
    pub fn verify_with(
        &self,
        erased: impl Fn(&crate::codec::BodyRow, DamagedPart) -> bool,
    ) -> Result<LogReport, LogError> {
        self.verify_against(erased, Vec::new())
    }

    /// [`Log::verify_with`], with links that were kept elsewhere.
    pub(crate) fn verify_against(
        &self,
        erased: impl Fn(&crate::codec::BodyRow, DamagedPart) -> bool,
        expected: Vec<Witness>,
    ) -> Result<LogReport, LogError> {
        self.segments.forget();
        let mut claims = WitnessClaims::default();
        claims.add(expected);
        let mut check = LogCheck {
            log: self,
            erased: &erased,
            checkpoint: None,
            claims,
            cut: None,
            cut_seq: None,
            report: LogReport {
                store: self.store(),
                head_seq: Seq::ZERO,
                head_link: Link::ZERO,
                end: Head::default(),
                segments: 0,
                frames: 0,
                events: 0,
                bodies: 0,
                bytes: 0,
                torn_bytes: 0,
                unconfirmed_events: 0,
                violations: Vec::new(),
                witnesses: Vec::new(),
                missing: None,
            },
        };
        check.run()?;
        Ok(check.report)
    }
}

struct LogCheck<'a> {
    log: &'a Log,
    erased: &'a dyn Fn(&crate::codec::BodyRow, DamagedPart) -> bool,
    checkpoint: Option<DurablePoint>,
    claims: WitnessClaims,
    /// The end of the file of the last segment, if that lies before the durable end.
    cut: Option<Position>,
    /// The first event that lost bytes to that cut.
    cut_seq: Option<Seq>,
    report: LogReport,
}

impl LogCheck<'_> {
    fn run(&mut self) -> Result<(), LogError> {
        let log = self.log;
        match identify(&*log.storage) {
            Ok(StoreFileState::Store(file)) if file.store == log.store() => {}
            Ok(StoreFileState::Store(_) | StoreFileState::Missing) => {
                self.found(store_file_damage(&*log.storage, None));
            }
            Ok(StoreFileState::Damaged(invalid)) => {
                self.found(store_file_damage(&*log.storage, Some(invalid)));
            }
            Err(error) => return Err(error),
        }
        self.check_surroundings();
        self.read_checkpoint()?;
        let page = log.read_page()?;
        let is_there = page.store.is_some() || log.storage.open(TAIL, Access::Read).is_ok();
        add_tail(&mut self.claims, is_there.then_some(&page), log.store());
        let page = if page.store == Some(log.store()) { page } else { TailPage::default() };
        let numbers = log.segments.numbers()?;
        add_segments(&mut self.claims, &log.segments, &numbers)?;
        self.report.segments = numbers.len() as u64;
        let durable = self.durable(&numbers, &page)?;
        let checkpoint = self.checkpoint.map(|checkpoint| checkpoint.written);
        let places = [page.written, page.durable, checkpoint].into_iter().flatten();
        let seq = places.filter(|place| place.position == durable).map(|place| place.seq).max();
        let seq = seq.unwrap_or(Seq::ZERO);
        let until = Head { position: durable, seq, ..Head::default() };
        let segments = &log.segments;
        self.check_generations(&numbers)?;
        self.cut = self.cut_before(durable)?;
        let mut sound_count = 0;
        let mut places = PlacesCheck::new(log, page.entered);
        let mut walk =
            FrameWalk::new(segments, Position::default(), until, FrameCheck::Digest, true, SCAN_WINDOW_BYTES);
        let mut ends_in_damage = false;
        let mut segment = 1;
        let mut room = ReadBuffer::default();
        let mut batch = FrameBatch::read(&mut walk, ReadBuffer::default())?;
        loop {
            let (damaged, next) = batch.check_beside(|| match batch.met {
                Some(WalkStep::End) => Ok(FrameBatch::default()),
                _ => FrameBatch::read(&mut walk, std::mem::take(&mut room)),
            });
            for (unchecked, damaged) in batch.frames.iter().zip(damaged) {
                ends_in_damage = false;
                self.frame(&unchecked.frame, damaged);
                places.pass(&unchecked.frame)?;
                self.claims.pass(segments, unchecked.frame.header())?;
                sound_count = self.report.violations.len();
            }
            let ends = matches!(batch.met, Some(WalkStep::End));
            if let Some(WalkStep::Damage(damage)) = batch.met.take() {
                ends_in_damage = damage.part != DamagedPart::SegmentHeader;
                if damage.part == DamagedPart::Missing && batch.place >= until.position {
                    self.missing(&damage);
                }
                self.found(damage);
            }
            if ends {
                break;
            }
            let reached = batch.place.segment();
            for number in numbers.iter().filter(|number| (segment..reached).contains(*number)) {
                self.leftovers(*number)?;
            }
            segment = segment.max(reached);
            room = std::mem::replace(&mut batch, next?).into_room();
        }
        let mut place = walk.place;
        (self.report.head_seq, self.report.head_link) = (place.seq, place.link);
        if !ends_in_damage && self.report.missing.is_none() {
            let mut cursor = FrameCursor::new(segments, SCAN_WINDOW_BYTES);
            while let Some(header) = sound(strict(&mut cursor, &place, true))? {
                let frame = sound(cursor.frame(place.position, FrameCheck::Digest))?;
                place = after(&header);
                // A frame that is not sound was never acknowledged: it counts for nothing.
                if let Some(frame) = frame {
                    self.report.unconfirmed_events += u64::from(header.event_count);
                    let damaged = check_alone(&frame, &mut cursor)?;
                    self.frame(&frame, damaged);
                    self.claims.pass(segments, &header)?;
                }
            }
            (self.report.head_seq, self.report.head_link) = (place.seq, place.link);
            self.report.torn_bytes =
                // A torn stretch ends behind its start, here and below.
                torn(&mut cursor, &place)?.map_or(0, |(start, end)| end.saturating_sub(start));
        } else if self.report.missing.is_none() && place.position >= until.position {
            self.trailing_loss(until.seq);
        }
        self.report.end = place;
        self.judge_cut(sound_count, until.seq);
        let ending = match (self.report.missing.is_some(), ends_in_damage) {
            (true, _) => Ending::Missing,
            (false, true) => Ending::Damaged,
            (false, false) => Ending::Whole,
        };
        self.judge_witnesses(place.position, ending);
        places.end()?;
        places.faults.into_iter().for_each(|fault| self.found(fault));
        Ok(())
    }

    /// Parts that a newer program wrote, and the secret.
    fn check_surroundings(&mut self) {
        let log = self.log;
        // The newer part may be past the last frame that this program can follow.
        let newer = steady(&log.shared).damage.clone().filter(|damage| damage.part == DamagedPart::Newer);
        if let Some(damage) = newer {
            self.found(*damage);
        }
        // Without the key of an encrypted store nothing is known of its secret.
        if log.is_closed() {
            return;
        }
        let read = || read_secret(&*log.storage, log.store(), &log.segments.vault);
        // Only a file that stays unreadable is a fault.
        let secret = read().or_else(|_| read());
        if let Err(found) = secret.unwrap_or_else(|error| Err(format!("it cannot be read: {error}"))) {
            self.found(Corruption {
                part: DamagedPart::Secret,
                path: log.storage.path(SECRET),
                segment: 0,
                offset: 0,
                seq_first: None,
                seq_last: None,
                expected: "the secret of this store, without which nothing can be appended".to_owned(),
                found,
            });
        }
    }

    /// A record of how often bodies were erased may be torn only while an erasure is to be taken up again.
    fn check_generations(&mut self, numbers: &[u32]) -> Result<(), LogError> {
        if self.log.is_erasing()? {
            return Ok(());
        }
        for number in numbers {
            let Some(file) = self.log.segments.get(*number)? else { continue };
            if file.header.as_ref().is_ok_and(|header| header.generation_torn) {
                self.found(Corruption {
                    part: DamagedPart::SegmentHeader,
                    path: file.path.clone(),
                    segment: *number,
                    offset: crate::codec::generation_offset(0),
                    seq_first: None,
                    seq_last: None,
                    expected: "how often bodies were erased, and its checksum".to_owned(),
                    found: "other bytes".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// The end of the file that holds the durable end, if the file ends before it.
    fn cut_before(&self, durable: Position) -> Result<Option<Position>, LogError> {
        let segment = durable.segment();
        let Some(file) = self.log.segments.get(segment)?.filter(|file| file.sealed.is_none()) else {
            return Ok(None);
        };
        let length = file.file.len().map_err(|error| LogError::io("inspect", file.path.clone(), error))?;
        let grains = length / Position::GRAIN_BYTES * Position::GRAIN_BYTES;
        Ok(Position::new(segment, grains).filter(|_| length < durable.offset()))
    }

    /// A file that ends too early has lost its end: damage found behind its last sound commit is that loss and no other
    /// damage.
    fn judge_cut(&mut self, sound_count: usize, last: Seq) {
        let Some(cut) = self.cut else { return };
        let lost = self.report.violations.get(sound_count..).unwrap_or_default();
        // A sound frame of another place was put there.
        let is_moved = |part| matches!(part, DamagedPart::FrameMisplaced | DamagedPart::Link);
        if lost.iter().any(|lost| lost.segment != cut.segment() || is_moved(lost.kind)) {
            return;
        }
        let first = lost.iter().filter_map(|lost| lost.seq_first).chain(self.cut_seq).min();
        let Some(first) = first else { return };
        let last = lost.iter().filter_map(|lost| lost.seq_last).fold(last, Seq::max).max(first);
        let place = lost.first().map(|lost| (lost.offset, lost.path.clone()));
        self.report.violations.truncate(sound_count);
        self.report.missing = Some((first, last));
        let (offset, path) = place.unwrap_or_else(|| (cut.offset(), self.log.segments.path(cut.segment())));
        self.report.violations.push(Violation {
            kind: DamagedPart::Missing,
            path,
            segment: cut.segment(),
            offset,
            seq_first: Some(first),
            seq_last: Some(last),
            detail: format!("expected events up to {last}, found the end of the file"),
        });
    }

    fn found(&mut self, damage: Corruption) {
        self.report.violations.push(damage.into());
    }

    fn missing(&mut self, damage: &Corruption) {
        if let Some(first) = damage.seq_first {
            self.report.missing = Some((first, damage.seq_last.unwrap_or(first).max(first)));
        }
    }

    /// Damage up to the very end: the witness tells which acknowledged events are gone with it.
    fn trailing_loss(&mut self, last: Seq) {
        let first = self.report.violations.last().and_then(|violation| violation.seq_first);
        if let Some(first) = first.filter(|first| *first <= last && self.lost_segment()) {
            self.report.missing = Some((first, last));
        }
    }

    fn lost_segment(&self) -> bool {
        self.report.violations.last().is_some_and(|violation| violation.kind == DamagedPart::SegmentMissing)
    }

    fn read_checkpoint(&mut self) -> Result<(), LogError> {
        match read_checkpoint(&self.log.segments)? {
            CheckpointFile::Sound(checkpoint) => {
                let written = checkpoint.written;
                self.checkpoint = Some(checkpoint);
                let witness = Witness::new(WitnessKind::Checkpoint, "checkpoint");
                self.claims.add([witness.claim(Some(written.position), written.seq, written.link)]);
            }
            CheckpointFile::Damaged(damage) => {
                let witness = Witness::new(WitnessKind::Checkpoint, "checkpoint");
                self.claims.tell(witness.standing(WitnessStatus::Damaged, damage.found.clone()));
                self.found(damage);
            }
            CheckpointFile::Missing => {
                let path = self.log.storage.path(CHECKPOINT);
                let mut damage = corruption(&self.log.segments, Position::default(), FrameFault::Nothing);
                (damage.part, damage.path) = (DamagedPart::Checkpoint, path);
                "the file".clone_into(&mut damage.expected);
                "no file".clone_into(&mut damage.found);
                let witness = Witness::new(WitnessKind::Checkpoint, "checkpoint");
                self.claims.tell(witness.standing(WitnessStatus::Absent, ""));
                self.found(damage);
            }
        }
        Ok(())
    }

    /// The highest durable claim, claims of frames after the last witness included.
    fn durable(&self, numbers: &[u32], page: &TailPage) -> Result<Position, LogError> {
        let claimed = claims(numbers, page, self.checkpoint.as_ref());
        let found =
            super::recovery_scan::scan(&self.log.segments, numbers, page, self.checkpoint.as_ref(), false)?;
        Ok(claimed.max(found.durable))
    }

    /// Takes in a sound frame, and its rows whose bodies are damaged.
    fn frame(&mut self, frame: &Frame, damaged: Vec<Damaged>) {
        let header = *frame.header();
        self.report.frames += 1;
        self.report.events += u64::from(header.event_count);
        self.report.bytes += header.frame_bytes();
        let mut rows = u64::from(header.row_count);
        for (row, invalid) in damaged {
            if matches!(invalid.part, DamagedPart::BodyZeroed | DamagedPart::Body)
                && (self.erased)(&row, invalid.part)
            {
                continue;
            }
            // A row of no bytes stands for the end of the frame.
            rows = rows.saturating_sub(u64::from(row.bytes > 0));
            let block_end = row.place.offset.saturating_add(SALT_BYTES as u64 + u64::from(row.stored_bytes));
            if self.cut.is_some_and(|cut| cut.segment() == row.place.segment && cut.offset() < block_end) {
                let seq = header.first_seq.plus(u64::from(row.event));
                self.cut_seq = Some(self.cut_seq.map_or(seq, |first| first.min(seq)));
                continue;
            }
            let seq = Some(header.first_seq.plus(u64::from(row.event)));
            let (segment, offset) = (row.place.segment, row.place.offset);
            self.found(Corruption {
                part: invalid.part,
                path: self.log.segments.path(segment),
                segment,
                offset,
                seq_first: seq,
                seq_last: seq,
                expected: invalid.expected,
                found: invalid.found,
            });
        }
        self.report.bodies += rows;
    }

    /// A complete segment must hold nothing after its end, unless the next one says that it was given up.
    fn leftovers(&mut self, segment: u32) -> Result<(), LogError> {
        if let Some(file) = self.log.segments.get(segment)?.filter(|file| file.sealed.is_some()) {
            for damage in self.log.segments.check_packed(segment, &file)? {
                self.found(damage);
            }
        }
        let Some(next) = self.log.segments.header(segment.saturating_add(1))? else { return Ok(()) };
        if next.previous_end.segment() != segment {
            return Ok(());
        }
        let end = Head { position: next.previous_end, ..Head::default() };
        let mut cursor = FrameCursor::new(&self.log.segments, SCAN_WINDOW_BYTES);
        let Some((start, stop)) = torn(&mut cursor, &end)? else { return Ok(()) };
        if next.abandoned {
            // As above.
            self.report.torn_bytes += stop.saturating_sub(start);
            return Ok(());
        }
        let mut damage = corruption(&self.log.segments, next.previous_end, FrameFault::Nothing);
        damage.part = DamagedPart::Rubbish;
        damage.offset = start;
        "zeros".clone_into(&mut damage.expected);
        // As above.
        damage.found = format!("{} other bytes", stop.saturating_sub(start));
        self.found(damage);
        Ok(())
    }

    /// Reports how each claim compares. If a witness that is part of the log contradicts it, that is damage.
    fn judge_witnesses(&mut self, end: Position, ending: Ending) {
        let witnesses = std::mem::take(&mut self.claims).finish(self.report.head_seq, end, ending);
        for witness in &witnesses {
            let is_forked = witness.standing == WitnessStatus::Forked;
            let (Some(position), true) = (witness.position, is_forked) else { continue };
            let storage = &self.log.storage;
            let mut damage = corruption(&self.log.segments, position, FrameFault::Nothing);
            damage.part = DamagedPart::Forked;
            match witness.kind {
                WitnessKind::Tail => {
                    (damage.path, damage.segment, damage.offset) = (storage.path(TAIL), 0, 0);
                }
                WitnessKind::Checkpoint => {
                    (damage.path, damage.segment, damage.offset) = (storage.path(CHECKPOINT), 0, 0);
                }
                _ => {}
            }
            // A value that a witness does not name is left out, here and below.
            let link = witness.link.map(|link| format!("link {link} at ")).unwrap_or_default();
            // As above.
            let seq = witness.seq.map(|seq| format!("{seq}, ")).unwrap_or_default();
            damage.expected = format!("{link}{seq}ending at {position}, as {} says", witness.name);
            // As above.
            damage.found = witness.detail.clone().unwrap_or_default();
            self.report.violations.push(damage.into());
        }
        self.report.witnesses = witnesses;
    }
}
