//! Witnesses: files and links that claim where the log was, compared with the log itself, place by place.
//!
//! ```text
//! tail, checkpoint, headers of segments, records of maps, index, saved folds, links kept elsewhere
//!      |  each claims: this seq ends at this position with this link
//!      v
//! the walk of `verify` passes every commit -> agrees | behind | ahead | forked | not compared
//! ```
//!
//! A witness is called agreeing only if its seq, position and link (as far as it names them) were all compared.

use std::collections::VecDeque;

use super::error::LogError;
use super::files::{Segments, map_name};
use super::lookup::{Source, exactly};
use crate::codec::{FrameHeader, MapRecord, RECORD_BYTES, SegmentHeader, TailPage};
use crate::ids::{Link, Position, Seq, StoreId};
use crate::storage::Access;

/// How a witness stands to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// The witness names the end of the log, and the log confirms all of its claim.
    Agrees,
    /// The witness names an earlier place, and the log confirms all of its claim.
    Behind,
    /// The witness knows more than the log holds.
    Ahead,
    /// The log holds something else where the witness points.
    Forked,
    /// The witness cannot be read, or is of another store: it says nothing.
    Damaged,
    /// There is no such witness.
    Absent,
    /// The log is damaged where the witness points, or another process holds the witness.
    NotCompared,
}

impl std::fmt::Display for Standing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees",
            Self::Behind => "behind",
            Self::Ahead => "ahead",
            Self::Forked => "forked",
            Self::Damaged => "damaged",
            Self::Absent => "absent",
            Self::NotCompared => "not compared",
        })
    }
}

/// The kind of a witness. It decides the meaning of a contradiction to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WitnessKind {
    /// A record of the tail page.
    Tail,
    /// The checkpoint.
    Checkpoint,
    /// The header of a segment, about the segment before it.
    Segment,
    /// The map of a complete segment.
    Map,
    /// The index.
    Index,
    /// A saved fold.
    Snapshot,
    /// A saved ingest state.
    IngestState,
    /// A link that was kept elsewhere.
    Expected,
}

impl WitnessKind {
    /// Whether the witness is part of the log, so that a contradiction is damage.
    pub const fn is_of_the_log(self) -> bool {
        matches!(self, Self::Tail | Self::Checkpoint | Self::Segment)
    }

    /// Whether the witness is kept apart from the log and was made of durable events only, so that a contradiction is evidence that
    /// the log was rolled back.
    pub const fn is_kept_apart(self) -> bool {
        matches!(self, Self::Index | Self::Snapshot | Self::IngestState)
    }
}

/// A witness's claim, and how it compares with the log.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Witness {
    /// The kind.
    pub kind: WitnessKind,
    /// The name: `tail written`, `checkpoint`, `segment 2`, a file.
    pub name: String,
    /// The result of the comparison with the log.
    pub standing: Standing,
    /// The compared fields: of `seq`, `position`, `link`.
    pub compared: Vec<&'static str>,
    /// The position that the witness names: everything before it was durable. A saved fold names the start of its last commit.
    pub position: Option<Position>,
    /// The last event before that position.
    pub seq: Option<Seq>,
    /// The link at that position.
    pub link: Option<Link>,
    /// The log's own value at that position, or the reason why nothing was compared.
    pub detail: Option<String>,
    /// The claim was never acknowledged: it may be ahead of the log, or name a write that was given up.
    #[serde(skip)]
    pub(crate) is_hint: bool,
}

impl Witness {
    pub(crate) fn new(kind: WitnessKind, name: impl Into<String>) -> Self {
        let (standing, compared) = (Standing::NotCompared, Vec::new());
        Self {
            kind,
            name: name.into(),
            standing,
            compared,
            position: None,
            seq: None,
            link: None,
            detail: None,
            is_hint: false,
        }
    }

    pub(crate) fn standing(mut self, standing: Standing, detail: impl Into<String>) -> Self {
        self.standing = standing;
        self.detail = Some(detail.into()).filter(|detail| !detail.is_empty());
        self
    }

    /// The last event that the witness knows of, if the witness can be read and the event was acknowledged.
    pub(crate) fn acknowledged(&self) -> Option<Seq> {
        let is_read = !matches!(self.standing, Standing::Damaged | Standing::Absent);
        self.seq.filter(|_| is_read && !self.is_hint)
    }

    /// Whether the witness claims more than the log holds, or something else than the log holds.
    pub fn contradicts(&self) -> bool {
        matches!(self.standing, Standing::Ahead | Standing::Forked)
    }
}

/// The meaning of a position in a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The end of the commit that ends with the seq.
    End(Position),
    /// The start of that commit.
    Start(Position),
    /// The seq is somewhere in the commit, which may be anywhere.
    Anywhere,
}

/// A witness's claim, before it is compared.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) witness: Witness,
    pub(crate) place: Place,
    pub(crate) seq: Seq,
    pub(crate) link: Option<Link>,
}

impl Claim {
    pub(crate) fn new(witness: Witness, place: Place, seq: Seq, link: Option<Link>) -> Self {
        let position = match place {
            Place::End(position) | Place::Start(position) => Some(position),
            Place::Anywhere => None,
        };
        let witness = Witness { position, seq: Some(seq), link, ..witness };
        Self { witness, place, seq, link }
    }

    /// A link, kept elsewhere, of the commit that holds `seq`.
    pub(crate) fn expected(seq: Seq, link: Link) -> Self {
        Self::new(Witness::new(WitnessKind::Expected, seq.to_string()), Place::Anywhere, seq, Some(link))
    }

    fn judged(mut self, standing: Standing, detail: Option<String>) -> Witness {
        if matches!(standing, Standing::Agrees | Standing::Behind | Standing::Forked) {
            self.witness.compared = [
                (self.witness.seq.is_some(), "seq"),
                (self.witness.position.is_some(), "position"),
                (self.link.is_some(), "link"),
            ]
            .into_iter()
            .filter_map(|(is_named, name)| is_named.then_some(name))
            .collect();
        }
        if self.witness.is_hint && matches!(standing, Standing::Ahead | Standing::Forked) {
            let detail = "of a write that was never confirmed".to_owned();
            return Witness {
                standing: Standing::NotCompared,
                detail: Some(detail),
                compared: Vec::new(),
                ..self.witness
            };
        }
        Witness { standing, detail, ..self.witness }
    }
}

/// The reason why the log goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The log was never longer, as far as it knows itself.
    Whole,
    /// Acknowledged events are missing at the end of the log.
    Missing,
    /// The next frame is damaged.
    Damaged,
}

/// Claims that the walk has not reached yet, and judged ones.
#[derive(Default)]
pub(crate) struct Claims {
    /// Ordered by seq.
    waiting: VecDeque<Claim>,
    judged: Vec<(Witness, Seq)>,
}

impl Claims {
    /// Adds claims to compare. Call before the walk begins.
    pub(crate) fn add(&mut self, claims: impl IntoIterator<Item = Claim>) {
        self.waiting.extend(claims);
        self.waiting.make_contiguous().sort_by_key(|claim| claim.seq);
    }

    /// Adds a witness that has nothing to compare.
    pub(crate) fn tell(&mut self, witness: Witness) {
        self.judged.push((witness, Seq::ZERO));
    }

    /// Compares the claims about a sound commit, and about the log before that commit.
    pub(crate) fn pass(&mut self, segments: &Segments, header: &FrameHeader) -> Result<(), LogError> {
        while let Some(claim) = pop_if(&mut self.waiting, |claim| claim.seq <= header.last_seq()) {
            let seq = claim.seq;
            let witness = compare(segments, claim, header)?;
            self.judged.push((witness, seq));
        }
        Ok(())
    }

    /// Judges the remaining claims: the sound part of the log ends at `seq` and `end`, because of `ending`.
    pub(crate) fn finish(mut self, seq: Seq, end: Position, ending: Ending) -> Vec<Witness> {
        let told = format!("the log ends at {seq}");
        for claim in self.waiting {
            let is_within = claim.witness.position.is_some_and(|position| position <= end);
            let begins = claim.seq == Seq::ZERO && seq == Seq::ZERO;
            let (standing, detail) = match ending {
                _ if begins && is_within => (Standing::Agrees, None),
                Ending::Damaged if is_within => {
                    (Standing::NotCompared, Some("the log is damaged there".to_owned()))
                }
                Ending::Whole if is_within => (Standing::Forked, Some(told.clone())),
                _ => (Standing::Ahead, Some(told.clone())),
            };
            let at = claim.seq;
            self.judged.push((claim.judged(standing, detail), at));
        }
        let mut judged = self.judged;
        for (witness, at) in &mut judged {
            if witness.standing == Standing::Behind && *at >= seq {
                witness.standing = Standing::Agrees;
            }
        }
        let mut found: Vec<Witness> = judged.into_iter().map(|(witness, _)| witness).collect();
        found.sort_by(|left, right| {
            (left.kind as u8, left.seq, &left.name).cmp(&(right.kind as u8, right.seq, &right.name))
        });
        found
    }
}

fn pop_if(claims: &mut VecDeque<Claim>, is_due: impl Fn(&Claim) -> bool) -> Option<Claim> {
    if claims.front().is_some_and(is_due) { claims.pop_front() } else { None }
}

/// Whether a commit ends at a position: right there, or at the start of a segment that was begun after it. Segments between that
/// hold nothing were given up after failed syncs.
fn ends_at(segments: &Segments, mut position: Position, header: &FrameHeader) -> Result<bool, LogError> {
    while position != header.end() {
        let number = position.segment();
        let is_start = position == SegmentHeader::start(number);
        let Some(next) = (if is_start { segments.header(number)? } else { None }) else { return Ok(false) };
        // Always in an earlier segment, so the loop ends.
        position = next.previous_end;
    }
    Ok(true)
}

/// Compares a claim with the first sound commit that ends at its seq or later.
fn compare(segments: &Segments, claim: Claim, header: &FrameHeader) -> Result<Witness, LogError> {
    let link = header.link();
    let seq = claim.seq;
    if seq == Seq::ZERO {
        let start = SegmentHeader::start(1);
        // Where the first commit was given up, the log begins in a later segment.
        let begins = |position: Position| {
            let number = position.segment();
            let header =
                if position == SegmentHeader::start(number) { segments.header(number)? } else { None };
            Ok::<_, LogError>(position.0 == 0 || header.is_some_and(|header| header.first_seq == Seq(1)))
        };
        let is_start =
            claim.witness.position.map_or(Ok(true), begins)? && claim.link.is_none_or(|link| link.is_zero());
        let found = format!("the log begins at {start} without a link");
        return Ok(if is_start {
            claim.judged(Standing::Behind, None)
        } else {
            claim.judged(Standing::Forked, Some(found))
        });
    }
    if header.first_seq > seq {
        let detail = format!("the log is damaged before {}", header.first_seq);
        return Ok(claim.judged(Standing::NotCompared, Some(detail)));
    }
    let is_there = match claim.place {
        Place::Anywhere => true,
        Place::Start(position) => header.last_seq() == seq && header.position == position,
        Place::End(position) => header.last_seq() == seq && ends_at(segments, position, header)?,
    };
    if is_there && claim.link.is_none_or(|claimed| claimed == link) {
        return Ok(claim.judged(Standing::Behind, None));
    }
    let found = format!("the log has link {link} at {}, ending at {}", header.last_seq(), header.end());
    Ok(claim.judged(Standing::Forked, Some(found)))
}

/// Adds claims about the ends of complete segments, from headers and records.
pub(crate) fn add_segments(
    claims: &mut Claims,
    segments: &Segments,
    numbers: &[u32],
) -> Result<(), LogError> {
    let mut found = Vec::new();
    for number in numbers {
        let header = segments.header(*number)?;
        if let Some(header) = header.as_ref().filter(|header| header.number > 1) {
            let witness = Witness::new(WitnessKind::Segment, format!("segment {number}"));
            let seq = header.first_seq.before();
            found.push(Claim::new(witness, Place::End(header.previous_end), seq, Some(header.previous)));
        }
        let Ok(file) = segments.storage.open(&map_name(*number), Access::Read) else { continue };
        let witness = Witness::new(WitnessKind::Map, format!("map {number}"));
        let path = segments.storage.path(&map_name(*number));
        // A map that cannot be read says nothing: it is named as a witness that was not compared.
        let record = exactly(Source { file: &*file, path: &path }, 0, RECORD_BYTES).ok();
        // As above.
        let record = record.and_then(|record| MapRecord::decode(&record).ok());
        match record.filter(|record| record.number == *number && record.store == segments.store) {
            Some(record) => {
                let link = Some(record.link);
                found.push(Claim::new(witness, Place::End(record.end), record.last_seq, link));
            }
            None => {
                claims.tell(witness.standing(Standing::Damaged, "no sound record of this segment; not used"));
            }
        }
    }
    claims.add(found);
    Ok(())
}

/// Adds the tail page's claims. `page` is read from the file, and may be of another store; `None`: there is no file.
pub(crate) fn add_tail(claims: &mut Claims, page: Option<&TailPage>, store: StoreId) {
    let named = |part: &str| Witness::new(WitnessKind::Tail, format!("tail {part}").trim_end().to_owned());
    let Some(page) = page else { return claims.tell(named("").standing(Standing::Absent, "")) };
    match page.store {
        Some(found) if found == store => {}
        Some(found) => {
            return claims.tell(named("").standing(Standing::Damaged, format!("it is of store {found}")));
        }
        None => return claims.tell(named("").standing(Standing::Damaged, "it is no tail page")),
    }
    let mut found = Vec::new();
    let records = std::iter::once(("written", page.written)).chain(page.durable_records);
    for (name, record) in records {
        match record {
            Some(place) => {
                let mut claim =
                    Claim::new(named(name), Place::End(place.position), place.seq, Some(place.link));
                // A record was acknowledged only if the page as a whole calls it durable.
                claim.witness.is_hint = name == "written" && page.clean().is_none();
                found.push(claim);
            }
            // A power cut left the record half written; its claim may never have been made.
            None if name == "written" || page.durable.is_none() => {
                claims.tell(named(name).standing(Standing::Damaged, "torn"));
            }
            None => {}
        }
    }
    claims.add(found);
}
