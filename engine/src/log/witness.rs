//! Witnesses: records outside of the commits that claim where the log was, compared with the log itself.
//!
//! ```text
//! tail, checkpoint, headers of segments, links kept elsewhere
//!      |  each claims: this seq ends at this position with this link
//!      v
//! the walk of `verify` passes every commit -> agrees | behind | ahead | forked | not compared
//! ```
//!
//! A witness is called agreeing only if its seq, position and link (as far as it names them) were all compared.

use std::collections::VecDeque;

use super::error::LogError;
use super::files::Segments;
use crate::codec::{FrameHeader, SegmentHeader, TailPage};
use crate::ids::{Link, Position, Seq, StoreId};

/// How a witness stands to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WitnessStatus {
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
    /// The log is damaged where the witness points, or the claim was never acknowledged.
    NotCompared,
}

impl std::fmt::Display for WitnessStatus {
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
    /// A link that was kept elsewhere.
    Expected,
}

/// A witness's claim, and how it compares with the log.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Witness {
    /// The kind.
    pub kind: WitnessKind,
    /// The name: `tail written`, `checkpoint`, `segment 2`, a seq.
    pub name: String,
    /// The result of the comparison with the log.
    pub standing: WitnessStatus,
    /// The compared fields: of `seq`, `position`, `link`.
    pub compared: Vec<&'static str>,
    /// The position that the witness names: everything before it was durable.
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
        Self {
            kind,
            name: name.into(),
            standing: WitnessStatus::NotCompared,
            compared: Vec::new(),
            position: None,
            seq: None,
            link: None,
            detail: None,
            is_hint: false,
        }
    }

    /// A claim: a commit with this link ends with `seq`, at `position`. Without a position `seq` may be anywhere in that commit.
    pub(crate) fn claim(self, position: Option<Position>, seq: Seq, link: Link) -> Self {
        Self { position, seq: Some(seq), link: Some(link), ..self }
    }

    /// A link, kept elsewhere, of the commit that holds `seq`.
    pub(crate) fn expected(seq: Seq, link: Link) -> Self {
        Self::new(WitnessKind::Expected, seq.to_string()).claim(None, seq, link)
    }

    pub(crate) fn standing(mut self, standing: WitnessStatus, detail: impl Into<String>) -> Self {
        self.standing = standing;
        self.detail = Some(detail.into()).filter(|detail| !detail.is_empty());
        self
    }

    /// The last event that the witness knows of, if the witness can be read and the event was acknowledged.
    pub(crate) fn acknowledged(&self) -> Option<Seq> {
        let is_read = !matches!(self.standing, WitnessStatus::Damaged | WitnessStatus::Absent);
        self.seq.filter(|_| is_read && !self.is_hint)
    }

    /// Whether the witness claims more than the log holds, or something else than the log holds.
    pub fn contradicts(&self) -> bool {
        matches!(self.standing, WitnessStatus::Ahead | WitnessStatus::Forked)
    }

    fn claimed(&self) -> Seq {
        // A witness that names no seq is judged already.
        self.seq.unwrap_or(Seq::ZERO)
    }

    fn judged(mut self, standing: WitnessStatus, detail: Option<String>) -> Self {
        (self.standing, self.detail) = (standing, detail);
        if self.is_hint && self.contradicts() {
            return self.standing(WitnessStatus::NotCompared, "of a write that was never confirmed");
        }
        if matches!(standing, WitnessStatus::Agrees | WitnessStatus::Behind | WitnessStatus::Forked) {
            let named = [(true, "seq"), (self.position.is_some(), "position"), (self.link.is_some(), "link")];
            self.compared =
                named.into_iter().filter_map(|(is_named, name)| is_named.then_some(name)).collect();
        }
        self
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
pub(crate) struct WitnessClaims {
    /// Ordered by seq.
    waiting: VecDeque<Witness>,
    judged: Vec<Witness>,
}

impl WitnessClaims {
    /// Adds claims to compare. Call before the walk begins.
    pub(crate) fn add(&mut self, claims: impl IntoIterator<Item = Witness>) {
        self.waiting.extend(claims);
        self.waiting.make_contiguous().sort_by_key(Witness::claimed);
    }

    /// Adds a witness that has nothing to compare.
    pub(crate) fn tell(&mut self, witness: Witness) {
        self.judged.push(witness);
    }

    /// Compares the claims about a sound commit, and about the log before that commit.
    pub(crate) fn pass(&mut self, segments: &Segments, header: &FrameHeader) -> Result<(), LogError> {
        while self.waiting.front().is_some_and(|claim| claim.claimed() <= header.last_seq())
            && let Some(claim) = self.waiting.pop_front()
        {
            self.judged.push(compare(segments, claim, header)?);
        }
        Ok(())
    }

    /// Judges the remaining claims: the sound part of the log ends at `seq` and `end`, because of `ending`.
    pub(crate) fn finish(mut self, seq: Seq, end: Position, ending: Ending) -> Vec<Witness> {
        let told = format!("the log ends at {seq}");
        for claim in self.waiting {
            let is_within = claim.position.is_some_and(|position| position <= end);
            let begins = claim.claimed() == Seq::ZERO && seq == Seq::ZERO;
            let (standing, detail) = match ending {
                _ if begins && is_within => (WitnessStatus::Agrees, None),
                Ending::Damaged if is_within => {
                    (WitnessStatus::NotCompared, Some("the log is damaged there".to_owned()))
                }
                Ending::Whole if is_within => (WitnessStatus::Forked, Some(told.clone())),
                _ => (WitnessStatus::Ahead, Some(told.clone())),
            };
            self.judged.push(claim.judged(standing, detail));
        }
        let mut found = self.judged;
        for witness in &mut found {
            if witness.standing == WitnessStatus::Behind && witness.claimed() >= seq {
                witness.standing = WitnessStatus::Agrees;
            }
        }
        found.sort_by(|left, right| {
            (left.kind as u8, left.seq, &left.name).cmp(&(right.kind as u8, right.seq, &right.name))
        });
        found
    }
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
fn compare(segments: &Segments, claim: Witness, header: &FrameHeader) -> Result<Witness, LogError> {
    let link = header.link();
    let seq = claim.claimed();
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
            claim.position.map_or(Ok(true), begins)? && claim.link.is_none_or(|link| link.is_zero());
        let found = format!("the log begins at {start} without a link");
        return Ok(if is_start {
            claim.judged(WitnessStatus::Behind, None)
        } else {
            claim.judged(WitnessStatus::Forked, Some(found))
        });
    }
    if header.first_seq > seq {
        let detail = format!("the log is damaged before {}", header.first_seq);
        return Ok(claim.judged(WitnessStatus::NotCompared, Some(detail)));
    }
    let is_there = match claim.position {
        None => true,
        Some(position) => header.last_seq() == seq && ends_at(segments, position, header)?,
    };
    if is_there && claim.link.is_none_or(|claimed| claimed == link) {
        return Ok(claim.judged(WitnessStatus::Behind, None));
    }
    let found = format!("the log has link {link} at {}, ending at {}", header.last_seq(), header.end());
    Ok(claim.judged(WitnessStatus::Forked, Some(found)))
}

/// Adds claims about the ends of complete segments, from the headers of the segments after them.
pub(crate) fn add_segments(
    claims: &mut WitnessClaims,
    segments: &Segments,
    numbers: &[u32],
) -> Result<(), LogError> {
    let mut found = Vec::new();
    for number in numbers {
        if let Some(header) = segments.header(*number)?.filter(|header| header.number > 1) {
            let witness = Witness::new(WitnessKind::Segment, format!("segment {number}"));
            let seq = header.first_seq.before();
            found.push(witness.claim(Some(header.previous_end), seq, header.previous));
        }
    }
    claims.add(found);
    Ok(())
}

/// Adds the tail page's claims. `page` is read from the file, and may be of another store; `None`: there is no file.
pub(crate) fn add_tail(claims: &mut WitnessClaims, page: Option<&TailPage>, store: StoreId) {
    let named = |part: &str| Witness::new(WitnessKind::Tail, format!("tail {part}").trim_end().to_owned());
    let Some(page) = page else { return claims.tell(named("").standing(WitnessStatus::Absent, "")) };
    match page.store {
        Some(found) if found == store => {}
        Some(found) => {
            return claims
                .tell(named("").standing(WitnessStatus::Damaged, format!("it is of store {found}")));
        }
        None => return claims.tell(named("").standing(WitnessStatus::Damaged, "it is no tail page")),
    }
    let mut found = Vec::new();
    let records = std::iter::once(("written", page.written)).chain(page.durable_records);
    for (name, record) in records {
        match record {
            Some(place) => {
                let mut claim = named(name).claim(Some(place.position), place.seq, place.link);
                // A record was acknowledged only if the page as a whole calls it durable.
                claim.is_hint = name == "written" && page.clean().is_none();
                found.push(claim);
            }
            // A power cut left the record half written; its claim may never have been made.
            None if name == "written" || page.durable.is_none() => {
                claims.tell(named(name).standing(WitnessStatus::Damaged, "torn"));
            }
            None => {}
        }
    }
    claims.add(found);
}
