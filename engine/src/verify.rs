//! Invariants as data: checks that return the faults, never a bool, and never stop at the first find.
//!
//! ```text
//! log (every byte, link, digest, witness)  +  fold (its conclusions, at every seq asked for)  ->  Report
//! ```
//!
//! One implementation for all: `acpdb verify`, property tests, model test, crash tests, fuzzing. Nothing is written, nothing is repaired.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::codec::{BodyRow, DamagedPart, SECRET_FILE_BYTES};
use crate::error::Error;
use crate::event::{Face, Payload};
use crate::fold::{FaceState, ItemKind, State, Status, World};
use crate::ids::{ItemId, Link, Seq, StoreId, StreamId};
use crate::log::{Log, LogError, LogReport, SECRET, Violation, Witness, WitnessKind, WitnessStatus};
use crate::storage::{FileStorage, Storage, read_file};
use crate::vault::{KeyUse, key_fault};

mod erasures;

use erasures::ErasedBodies;
pub(crate) use erasures::{recorded_addresses, recorded_erasures, rows_at};

/// The invariant that a payload comes back as it was encoded. A payload that does not is damage, even if its digests are right.
const PAYLOAD_INVARIANT: u8 = 9;
/// The invariant that a body on record as erased cannot be read.
pub const ERASURE_INVARIANT: u8 = 12;

/// Name of the shape of a report.
const SCHEMA: &str = "acpdb.verify/1";

/// The verdict on a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Nothing is wrong; an unfinished write at the end is no fault.
    Sound,
    /// Something recorded is damaged.
    Damaged,
    /// Acknowledged events are missing at the end, or the log ends before an event whose link was kept elsewhere.
    TailLost,
    /// The log is sound, and this program's conclusions from it cannot be: a fault of the program, not of the store.
    Contradicted,
    /// Sound or not, it cannot be read here: a key is missing, or a file is closed to this user or fails.
    Unreadable,
}

/// A conclusion that cannot be.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Contradiction {
    /// The invariant that it breaks: 4, 5, 7 or 11 of the fold, 9 if the event cannot be decoded, 12 if an erased body can be read.
    pub invariant: u8,
    /// The stream.
    pub stream: StreamId,
    /// The item, if it is about one.
    pub item: Option<ItemId>,
    /// The fault, in words.
    pub detail: String,
}

/// The findings of a verification.
#[derive(Clone, Debug, serde::Serialize)]
#[must_use]
pub struct VerifyReport {
    /// Name of this shape.
    pub schema: &'static str,
    /// Id of the store.
    pub store: StoreId,
    /// The verdict.
    pub verdict: Verdict,
    /// Last sound seq.
    pub head_seq: Seq,
    /// The link at that seq.
    pub head_link: Link,
    /// Segments read.
    pub segments: u64,
    /// Sound frames.
    pub frames: u64,
    /// Sound events.
    pub events: u64,
    /// Sound bodies.
    pub bodies: u64,
    /// Bytes of sound frames.
    pub bytes: u64,
    /// Bytes of an unfinished write at the end: no damage.
    pub torn_bytes: u64,
    /// Events that were written and never acknowledged.
    pub unconfirmed_events: u64,
    /// Everything that is damaged, in the order of the log.
    pub violations: Vec<Violation>,
    /// First and last of the acknowledged events that are missing at the end.
    pub missing: Option<(Seq, Seq)>,
    /// Witnesses of the log's end, and how each compares.
    pub witnesses: Vec<Witness>,
    /// Saved folds and ingest states that differ from the log; only looked for by a deep verification of a folder.
    pub saved: Vec<SavedFault>,
    /// Conclusions that cannot be; only looked for by a deep verification.
    pub contradictions: Vec<Contradiction>,
    /// Things that could not be proven, in words.
    pub not_proven: Vec<String>,
}

/// A file under `snap/` that differs from the log.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct SavedFault {
    /// Its stream.
    pub stream: StreamId,
    /// The file.
    #[serde(serialize_with = "crate::text::paths::serialize_shown")]
    pub path: PathBuf,
    /// The fault, in words.
    pub detail: String,
}

/// A link that a caller kept, of the commit that holds a seq.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Expected {
    /// The seq.
    pub seq: Seq,
    /// The link.
    pub link: Link,
}

impl VerifyReport {
    /// The verdict on the store.
    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Whether texts are damaged and nothing else is: all events are readable, and the store takes appends.
    pub fn lost_texts_alone(&self) -> bool {
        self.has_only(|kind| matches!(kind, DamagedPart::Body | DamagedPart::BodyZeroed))
    }

    /// Whether the store's secret is missing or damaged and nothing else is: all can be read, and nothing can be appended.
    pub fn lacks_secret_alone(&self) -> bool {
        self.has_only(|kind| *kind == DamagedPart::Secret)
    }

    /// Whether there is damage, and all of it is of such kinds.
    fn has_only(&self, is_such: impl Fn(&DamagedPart) -> bool) -> bool {
        let mut kinds = self.violations.iter().map(|violation| &violation.kind);
        !self.violations.is_empty() && self.missing.is_none() && kinds.all(is_such)
    }

    /// Witnesses that claim more than the log holds, or something else than the log holds.
    pub fn contradicting(&self) -> impl Iterator<Item = &Witness> {
        self.witnesses.iter().filter(|witness| witness.contradicts())
    }

    /// Whether the file is gone, or is none, that says where the log ends: the loss of the newest events could not be seen.
    pub fn has_no_tail(&self) -> bool {
        let mut tail = self.witnesses.iter().filter(|witness| witness.kind == WitnessKind::Tail);
        // A torn record of the page is no fault: a power cut leaves one.
        tail.any(|witness| {
            witness.name == "tail"
                && matches!(witness.standing, WitnessStatus::Absent | WitnessStatus::Damaged)
        })
    }

    /// A store that cannot be read, for a reason.
    fn unreadable(store: StoreId, why: String) -> Self {
        Self {
            schema: SCHEMA,
            store,
            verdict: Verdict::Unreadable,
            head_seq: Seq::ZERO,
            head_link: Link::ZERO,
            segments: 0,
            frames: 0,
            events: 0,
            bodies: 0,
            bytes: 0,
            torn_bytes: 0,
            unconfirmed_events: 0,
            violations: Vec::new(),
            missing: None,
            witnesses: Vec::new(),
            saved: Vec::new(),
            contradictions: Vec::new(),
            not_proven: vec![why],
        }
    }

    /// The report on a store that could not be verified, if that is for a file that cannot be read.
    ///
    /// # Errors
    /// The error, if it is another one: there is no store, or a program of another version made it.
    pub(crate) fn of_error(error: Error, store: StoreId) -> Result<Self, Error> {
        use std::io::ErrorKind::NotFound;
        match &error {
            Error::Io { source, .. } if source.kind() != NotFound => {
                Ok(Self::unreadable(store, format!("{error}: {source}")))
            }
            _ => Err(error),
        }
    }

    /// Adds the faults of saved folds and ingest states.
    pub(crate) fn add_saved(&mut self, faults: Vec<SavedFault>) {
        self.saved.extend(faults);
        self.verdict = judge(self, self.verdict == Verdict::TailLost);
    }
}

/// The verdict from all findings. `is_lost`: acknowledged events are missing, and the log has no other fault.
fn judge(report: &VerifyReport, is_lost: bool) -> Verdict {
    let expected = |standing| {
        let mut kept = report.witnesses.iter().filter(|witness| witness.kind == WitnessKind::Expected);
        kept.any(|witness| witness.standing == standing)
    };
    let undecoded = report.contradictions.iter().any(|found| found.invariant == PAYLOAD_INVARIANT);
    let is_damaged = !report.violations.is_empty() && !is_lost;
    if is_damaged || undecoded || !report.saved.is_empty() || expected(WitnessStatus::Forked) {
        return Verdict::Damaged;
    }
    if is_lost || report.missing.is_some() || expected(WitnessStatus::Ahead) {
        return Verdict::TailLost;
    }
    match (report.contradictions.is_empty(), report.has_no_tail()) {
        (true, true) => Verdict::Damaged,
        (true, false) => Verdict::Sound,
        (false, _) => Verdict::Contradicted,
    }
}

/// Verifies the store in a folder.
///
/// # Errors
/// If the folder cannot be read; damage is in the report.
pub fn verify_folder(folder: &Path, deep: bool) -> Result<VerifyReport, Error> {
    verify_storage(Arc::new(FileStorage::new(folder).read_only()), deep)
}

/// Checks a store as it lies there: the log, and the witnesses of its end. Opens it for reading only; a live writer is not
/// disturbed.
///
/// An encrypted store is checked without its key, by its stored bytes. Zeros in the place of a body are then taken for an erasure, since the
/// record of it is sealed.
///
/// `deep` also folds every event and checks the conclusions. Saved folds are not looked at: see [`verify_store`](crate::store::verify_store). Cost:
/// one pass over the log at about the speed of BLAKE3; deep, a fold on top.
///
/// # Errors
/// [`Error::NotAStore`] or [`Error::NewerFormat`]. Damage, and a file that cannot be read, are in the report.
pub fn verify_storage(storage: Arc<dyn Storage>, deep: bool) -> Result<VerifyReport, Error> {
    let keys = if deep { KeyUse::None } else { KeyUse::Bytes };
    verify_expecting(storage, deep, &keys, &[])
}

/// Why a store whose bytes are sound is not called so.
const NO_KEY: &str =
    "no key was given, so nothing shows that its texts can be read; all digests and links of its bytes hold";

/// [`verify_storage`], with links that were kept elsewhere. The bytes of an encrypted store may be sound; it is so only if a key was given that opens
/// it, or if its bytes alone were asked for.
pub(crate) fn verify_expecting(
    storage: Arc<dyn Storage>,
    deep: bool,
    keys: &KeyUse,
    expected: &[Expected],
) -> Result<VerifyReport, Error> {
    // Digests and links are over stored bytes: only a fold needs the key of an encrypted store.
    let is_unopened = !deep && matches!(keys, KeyUse::None);
    let keys = if is_unopened { KeyUse::Bytes } else { keys.clone() };
    verify_opened(storage, deep, keys, expected, |log, report| {
        // A file that this user may not read is not for that damaged.
        if report.lacks_secret_alone()
            && let Err(error) = read_file(&**log.storage(), SECRET, SECRET_FILE_BYTES)
        {
            let path = log.storage().path(SECRET);
            *report =
                VerifyReport::unreadable(log.store(), format!("cannot read {}: {error}", path.display()));
        }
        if report.verdict != Verdict::Sound || !log.is_encrypted() {
            return;
        }
        // Sound bytes that no key opens any more are no sound store.
        if let Some(why) = key_fault(&**log.storage()) {
            *report = VerifyReport::unreadable(log.store(), why);
        } else if is_unopened {
            report.verdict = Verdict::Unreadable;
            report.not_proven.insert(0, NO_KEY.to_owned());
        }
    })
}

/// [`verify_storage`], of a copy that its key does not go with: all that is proven is of its stored bytes.
pub(crate) fn verify_bytes(storage: Arc<dyn Storage>) -> Result<VerifyReport, Error> {
    verify_opened(storage, false, KeyUse::Bytes, &[], |_, _| {})
}

/// Opens a log, checks it, and lets `judge` look at the report.
fn verify_opened(
    storage: Arc<dyn Storage>,
    deep: bool,
    keys: KeyUse,
    expected: &[Expected],
    judge: impl FnOnce(&Log, &mut VerifyReport),
) -> Result<VerifyReport, Error> {
    let log = match Log::open_to_read(storage, keys) {
        Ok(log) => log,
        Err(error) => return VerifyReport::of_error(error.into(), StoreId::ZERO),
    };
    let look = || -> Result<VerifyReport, Error> {
        let found = verify_log(&log, expected)?;
        let contradictions = if deep { contradictions_of(&log)? } else { Vec::new() };
        let mut report = report(found, contradictions, log.is_closed());
        judge(&log, &mut report);
        Ok(report)
    };
    look().or_else(|error| VerifyReport::of_error(error, log.store()))
}

/// Checks an open log against its own witnesses and the given ones. A body whose erasure is on record may be zeros.
pub(crate) fn verify_log(log: &Log, expected: &[Expected]) -> Result<LogReport, LogError> {
    let expected = expected.iter().map(|expected| Witness::expected(expected.seq, expected.link)).collect();
    let erasures = ErasedBodies::new(log);
    let found = log.verify_against(|row, part| erasures.account_for(row, part), expected);
    erasures.failed().map_or(found, Err)
}

fn report(found: LogReport, contradictions: Vec<Contradiction>, log_is_closed: bool) -> VerifyReport {
    let mut not_proven = Vec::new();
    let testifies = |witness: &Witness| {
        let is_end = matches!(witness.kind, WitnessKind::Tail | WitnessKind::Checkpoint);
        is_end
            && !matches!(
                witness.standing,
                WitnessStatus::Damaged | WitnessStatus::Absent | WitnessStatus::NotCompared
            )
    };
    if log_is_closed {
        let text = "without the key, zeros in the place of a text are taken for an erasure, and no event was read or compared with what was signed";
        not_proven.push(text.to_owned());
    }
    if !found.witnesses.iter().any(testifies) {
        let text = "without a witness (tail, checkpoint) the loss of the newest events would not be seen";
        not_proven.push(text.to_owned());
    }
    let is_lost = found.is_only_cut();
    let mut report = VerifyReport {
        verdict: Verdict::Sound,
        schema: SCHEMA,
        store: found.store,
        head_seq: found.head_seq,
        head_link: found.head_link,
        segments: found.segments,
        frames: found.frames,
        events: found.events,
        bodies: found.bodies,
        bytes: found.bytes,
        torn_bytes: found.torn_bytes,
        unconfirmed_events: found.unconfirmed_events,
        violations: found.violations,
        missing: found.missing,
        witnesses: found.witnesses,
        saved: Vec::new(),
        contradictions,
        not_proven,
    };
    report.verdict = judge(&report, is_lost);
    report
}

/// Folds a log and checks the conclusions.
fn contradictions_of(log: &Log) -> Result<Vec<Contradiction>, Error> {
    let until = log.refresh()?;
    let mut world = World::default();
    let mut found = Vec::new();
    for frame in log.frames(crate::ids::Position::default(), until) {
        let frame = match frame {
            Ok(frame) => frame,
            // Damaged frames are in the log's own report.
            Err(LogError::Corrupt(_)) => continue,
            Err(error) => return Err(error.into()),
        };
        for event in frame.events() {
            match crate::codec::payload::recorded(&frame, &event) {
                Ok(mut recorded) => {
                    complete(log, &event, &mut recorded);
                    world.apply(&recorded);
                }
                Err(error) => found.push(Contradiction {
                    invariant: PAYLOAD_INVARIANT,
                    stream: event.envelope.stream,
                    item: Some(ItemId::first(event.seq)),
                    detail: error.to_string(),
                }),
            }
        }
    }
    found.extend(world_contradictions(&world, Seq::MAX));
    found.extend(readable_erasures(log)?);
    Ok(found)
}

/// Bodies that are on record as erased and are still there: a file of the log was put back that was copied before. Sealed bodies need no
/// key for this check.
fn readable_erasures(log: &Log) -> Result<Vec<Contradiction>, Error> {
    let is_gone = |row: &BodyRow| match log.body(row) {
        Err(LogError::Erased { .. } | LogError::Corrupt(_)) => Ok(true),
        Err(error @ LogError::Io { .. }) => Err(error),
        _ => Ok(false),
    };
    let mut there = Vec::new();
    let erased = recorded_addresses(log, Seq::ZERO)?;
    for (row, erased) in rows_at(log, &erased)?.into_iter().zip(&erased) {
        if let Some(row) = row
            && !is_gone(&row)?
        {
            there.push((*erased, row));
        }
    }
    // An erasure that is under way, or ended just now, is carried out.
    if there.is_empty() || log.is_erasing()? {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for (address, row) in there {
        if is_gone(&row)? {
            continue;
        }
        let frame = log.locate(address.seq)?;
        let stream = frame.and_then(|frame| frame.event(address.seq).map(|event| event.envelope.stream));
        found.push(Contradiction {
            invariant: ERASURE_INVARIANT,
            stream: stream.unwrap_or(StreamId::STORE),
            item: Some(ItemId::first(address.seq)),
            detail: format!("text {} of it is on record as erased, and is there", u64::from(address.row) + 1),
        });
    }
    Ok(found)
}

/// Fills in texts that stand in bodies, and the sealed label. Texts that cannot be read stay empty: the log's own report has them.
fn complete(log: &Log, event: &crate::codec::EventRef<'_>, recorded: &mut crate::event::Recorded) {
    if let Payload::ToolCallStarted(started) = &mut recorded.event.payload {
        started.label = log.secret().open_label(started.label);
    }
    recorded.event.payload.texts_mut(&mut |text| {
        if text.fill_plain() {
            return;
        }
        let body = text.body();
        let rows = body.first..body.first.saturating_add(body.chunks);
        let mut bytes = Vec::new();
        for row in rows.filter_map(|row| event.row(row as usize)) {
            // A text that is gone or damaged is in the log's own report.
            bytes.extend(log.body(&row).unwrap_or_default());
        }
        text.fill(String::from_utf8_lossy(&bytes).into_owned());
    });
}

/// The contradictions in all streams of a world at a watermark. Empty for every fold of every log.
pub fn world_contradictions(world: &World, at: Seq) -> Vec<Contradiction> {
    world.streams().flat_map(|(_, state)| state_contradictions(state, at)).collect()
}

/// The contradictions in one stream at a watermark: invariants 4, 5, 7 and 11.
pub fn state_contradictions(state: &State, at: Seq) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let mut say = |invariant, item, detail: String| {
        found.push(Contradiction { invariant, stream: state.id(), item, detail });
    };
    let mut recorded = 0;
    let mut grown = 0;
    for ix in state.items(at) {
        let Some(item) = state.item(ix, at) else {
            say(4, state.item_id(ix), "an item that was recorded is not in the history".to_owned());
            continue;
        };
        recorded += item.input.tokens + item.output.tokens;
        for (name, face) in [("input", &item.input), ("output", &item.output)] {
            let hidden = !matches!(face.state, FaceState::Whole | FaceState::Absent);
            // Sizes are estimates: a placeholder may be counted above its text, and then it freed nothing.
            if item.in_context {
                // A face with a smaller placeholder did not grow.
                grown += face.tokens_shown.saturating_sub(face.tokens);
            }
            if hidden && face.cause.is_none() && !item.hidden_from_model {
                say(5, Some(item.item), format!("its {name} is hidden and nothing says why"));
            }
            if face.tokens_shown > 0 && matches!(face.state, FaceState::Gone) {
                say(4, Some(item.item), format!("its {name} is gone and still shows something"));
            }
        }
        if item.kind == ItemKind::Call && item.status == Some(Status::Pending) && item.finished.is_some() {
            say(4, Some(item.item), "it has finished and is still pending".to_owned());
        }
        if state.face(ix, Face::Output, at).state != item.output.state {
            say(4, Some(item.item), "two reads of one face disagree".to_owned());
        }
    }
    for edge in state.edges(at) {
        let Some(new) = edge.new else { continue };
        let superseder = state.find(new).and_then(|ix| state.item(ix, at));
        let Some(superseder) = superseder else {
            say(5, Some(edge.old), format!("it is superseded by {new}, which is not in the history"));
            continue;
        };
        if superseder.kind == ItemKind::Call && superseder.status != Some(Status::Completed) {
            say(7, Some(edge.old), format!("it is superseded by {new}, which is not completed"));
        }
        if edge.old == new {
            say(5, Some(edge.old), "it supersedes itself".to_owned());
        }
        let done = superseder.finished.unwrap_or(superseder.item.seq);
        if done <= edge.old.seq && edge.rule != crate::fold::RuleKind::RETRY {
            say(5, Some(edge.old), format!("it is superseded by {new}, which was complete before it began"));
        }
    }
    let figures = state.stats(at);
    if figures.tokens_shown + figures.freed() != figures.tokens_whole + grown {
        let detail = format!(
            "{} tokens shown and {} freed are not the {} recorded and the {grown} that placeholders added",
            figures.tokens_shown,
            figures.freed(),
            figures.tokens_whole
        );
        say(11, None, detail);
    }
    if figures.tokens_recorded != recorded {
        say(11, None, format!("{} tokens recorded, but its items have {recorded}", figures.tokens_recorded));
    }
    found
}

#[cfg(any(test, feature = "testing"))]
/// Invariant 9 for one payload: it decodes to the encoded value, and encodes to the same bytes again.
pub fn payload_round_trip(stamp: &crate::event::Stamp, payload: &Payload) -> Result<(), String> {
    let (version, bytes) =
        crate::codec::payload::encode(stamp, payload).map_err(|error| error.to_string())?;
    let (stamp_again, again) = crate::codec::payload::decode(payload.number(), version, &bytes)
        .map_err(|error| error.to_string())?;
    if (&stamp_again, &again) != (stamp, payload) {
        return Err(format!("{} comes back as something else", payload.label()));
    }
    match crate::codec::payload::encode(&stamp_again, &again) {
        Ok((_, same)) if same == bytes => Ok(()),
        _ => Err(format!("{} encodes to other bytes the second time", payload.label())),
    }
}
