//! Makes a new store of everything in a damaged store that verifies.
//!
//! ```text
//! frame sound       -> the same events with the same seqs and times; payloads and bodies byte for byte
//! its body damaged  -> zeros in its place, and a loss on record
//! frame damaged     -> its events are lost
//! events lost       -> as many `DamageNoted` in their place, so that events which name items by seq still name the same items
//! at the end        -> the losses, on record
//! ```
//!
//! Every seq up to the last known one is either copied or said to be lost. The last known seq comes from the log itself, headers of damaged frames,
//! the tail page and the checkpoint.
//!
//! The source is only read. The new store has an id and links of its own: it is another store with the same events, and it says which are missing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rustc_hash::FxHashSet;

use crate::codec::payload;
use crate::codec::{BodyRow, EncodedBody, EncodedEvent, Envelope, Frame, FrameCheck};
use crate::error::Error;
use crate::event::{Actor, BodyAddress, DamageNoted, Erased, Payload, SessionOpened, Stamp};
use crate::ids::{Digest, Micros, Origin, Seq, StoreId, StreamId};
use crate::log::{Log, LogError, LogOptions, LogReport, WitnessKind};
use crate::storage::{Clock, FileStorage, Storage, SystemClock, SystemEntropy, read_file, write_file};
use crate::vault::{KEY, KEY_FILE_BYTES, KeyUse};
use crate::verify::{recorded_addresses, rows_at, verify_log};

use super::former::FormerCopy;
use super::unnamed::{Unnamed, check_outside};
use super::write::settle_text;
pub use report::Salvaged;

mod report;

const MAKE: &str = "make a store in";

/// The names in a salvage that was not opened to be written since it was made.
const MADE: [&str; 7] = ["SYNC", "acpdb.json", "checkpoint", KEY, "log", "secret", "tail"];
/// Notes written in one commit.
const NOTES_PER_COMMIT: u64 = 4096;
/// Erased bodies named by one event.
const BODIES_PER_EVENT: usize = 4096;
/// Most events that are noted as lost at the end, where only a witness names them.
const LOST_AT_END_COUNT_MAX: u64 = 1 << 16;
/// Length of a stream's signature key, the only body of the event that opens it.
const KEY_BYTES: u32 = 32;

/// Copies everything that verifies from the store in `from` to a new store in `into`, a folder that must be missing or empty.
///
/// A text whose erasure is on record stays gone. Zeros without a record of an erasure are damage, unless the record may be among lost events.
///
/// `progress` is called with the count of events copied so far. Cost: two reads of the source, and a synced commit for each of its frames. The source
/// is not changed.
///
/// The new store is made under the name `into` with `.partial` behind it, and gets its own name once it is whole: a part of it would pass for a sound
/// store. After a kill it can be asked for again: what is left of the first one is removed. An earlier salvage of the same store, to which nothing
/// was written since, is no obstacle: the new one takes its place if no less could be read.
///
/// # Errors
/// [`Error::NotAStore`] if there is nothing to read at all, [`Error::Io`] and [`Error::NoSpace`] of either side; [`Error::Busy`] if another process
/// writes to the earlier salvage.
pub fn salvage(from: &Path, into: &Path, progress: &mut dyn FnMut(u64)) -> Result<Salvaged, Error> {
    salvage_with(from, into, &KeyUse::None, progress)
}

/// [`salvage`] of an encrypted store: the new one has the same key. Its frames are sealed anew, at their seqs.
///
/// # Errors
/// As [`salvage`]; [`Error::Locked`] if the key cannot be had.
pub fn salvage_with(
    from: &Path,
    into: &Path,
    keys: &KeyUse,
    progress: &mut dyn FnMut(u64),
) -> Result<Salvaged, Error> {
    check_outside(MAKE, into, from)?;
    let on_disk = |path: &Path| Arc::new(FileStorage::new(path)) as Arc<dyn Storage>;
    let (former, before) = former_salvage(from, into, keys)?.unzip();
    let copy = Unnamed::begin(MAKE, into, former)?;
    let done = salvage_storage(on_disk(from), on_disk(copy.path()), keys, progress)?;
    let now = done.counts();
    if before.is_some_and(|before| now.events < before.events || now.lost_bodies > before.lost_bodies) {
        return Err(copy.refused("the salvage there has more than can be read now, and stays"));
    }
    copy.name()?;
    Ok(Salvaged { path: into.to_owned(), ..done })
}

/// An earlier salvage of a store, to which nothing was written since, and what it says of itself. `None`: the folder holds no such store.
fn former_salvage(
    from: &Path,
    into: &Path,
    keys: &KeyUse,
) -> Result<Option<(FormerCopy, SalvageCounts)>, Error> {
    let Some(former) = FormerCopy::of(into, &MADE)? else { return Ok(None) };
    let read = |folder: &Path| {
        Log::open_to_read(Arc::new(FileStorage::new(folder).read_only()) as Arc<dyn Storage>, keys.clone())
    };
    let source = read(from)?.store();
    // One that cannot be read is none of which anything is known.
    let Ok(log) = read(into) else { return Ok(None) };
    let note = match last_note(&log) {
        // Nor is anything known of a damaged one.
        Err(Error::Corrupt { .. }) => return Ok(None),
        note => note?,
    };
    Ok(note.and_then(|note| SalvageCounts::of(&note, source)).map(|counts| (former, counts)))
}

/// The note in the last event of a sound log, if it is one.
fn last_note(log: &Log) -> Result<Option<String>, Error> {
    let end = log.head();
    for frame in log.frames_until(end.seq, end, FrameCheck::Digest)? {
        let frame = frame?;
        let Some(event) = frame.event(end.seq) else { continue };
        let is_note = event.envelope.kind == Payload::from(DamageNoted::default()).number();
        let Some(row) = event.rows().last().filter(|_| is_note) else { return Ok(None) };
        let (_, text) = log.salted_body(&row)?;
        // Only a log that ends with a note is verified: others are none, whatever is in them.
        let is_sound = verify_log(log, &[])?.violations.is_empty();
        // Bytes that are no text are no such note.
        return Ok(String::from_utf8(text).ok().filter(|_| is_sound));
    }
    Ok(None)
}

/// The figures of a salvage, as its last event has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SalvageCounts {
    events: u64,
    lost: u64,
    lost_bodies: u64,
}

impl SalvageCounts {
    fn note(self, store: StoreId) -> String {
        let Self { events, lost, lost_bodies } = self;
        format!("salvaged from store {store}: {events} events copied, {lost} lost, {lost_bodies} bodies lost")
    }

    /// Reads them from the note of a salvage of this store.
    fn of(note: &str, store: StoreId) -> Option<Self> {
        let mut numbers = note.split([' ', ',']).filter_map(|word| word.parse().ok());
        let counts = Self { events: numbers.next()?, lost: numbers.next()?, lost_bodies: numbers.next()? };
        (counts.note(store) == note).then_some(counts)
    }
}

impl Salvaged {
    fn counts(&self) -> SalvageCounts {
        let lost = self.lost_events.iter().map(|(first, last)| last.next().since(*first)).sum();
        SalvageCounts { events: self.events, lost, lost_bodies: self.lost_bodies.len() as u64 }
    }
}

/// Refuses a folder that is not empty.
fn check_empty(into: &dyn Storage) -> Result<(), Error> {
    match into.list("") {
        Ok(names) if !names.is_empty() => {
            let source = std::io::ErrorKind::AlreadyExists.into();
            Err(Error::Io { action: MAKE, path: into.path(""), source })
        }
        _ => Ok(()),
    }
}

/// [`salvage_with`], on any storage.
///
/// # Errors
/// As [`salvage_with`].
pub fn salvage_storage(
    from: Arc<dyn Storage>,
    into: Arc<dyn Storage>,
    keys: &KeyUse,
    progress: &mut dyn FnMut(u64),
) -> Result<Salvaged, Error> {
    check_empty(&*into)?;
    let path = into.path("");
    let source = Log::open_to_read(from, keys.clone())?;
    let found = verify_log(&source, &[])?;
    let (source_head, source_head_is_known) = end_of(&found);
    // Events that were written and never confirmed are as sound as the rest.
    let durable = source.refresh()?;
    let until = if found.end.position > durable.position { found.end } else { durable };
    let records = recorded_addresses(&source, Seq::ZERO)?;
    let erased = rows_at(&source, &records)?.into_iter().flatten().map(|row| row.digest).collect();
    let clock = Arc::new(ToldClock { now: AtomicI64::new(0), real: SystemClock::new() });
    let options =
        LogOptions { keys: keys_of_copy(&**source.storage(), &*into, keys)?, ..LogOptions::default() };
    let (target, _recovery) = Log::create_or_open(into, clock.clone(), Arc::new(SystemEntropy), options)?;
    // The new store takes the secret, so origins, revisions and signatures keep their meaning. If the secret is lost, the new store has one of its
    // own.
    let secret = source.filed_secret();
    if let Some(secret) = &secret {
        target.take_secret(secret)?;
    }
    let contradicting = found.witnesses.iter().filter(|witness| witness.contradicts());
    let mut copy = SalvageCopy {
        source: &source,
        target: &target,
        clock: &clock,
        erased,
        zeros: BTreeSet::new(),
        next: Seq(1),
        done: Salvaged {
            schema: "acpdb.salvage/1",
            source: source.store(),
            store: target.store(),
            path,
            events: 0,
            bodies: 0,
            lost_events: Vec::new(),
            lost_bodies: Vec::new(),
            new_keys: 0,
            has_new_secret: secret.is_none() && source_head > Seq::ZERO,
            source_head,
            source_head_is_known,
            contradicting: contradicting.cloned().collect(),
            head: Seq::ZERO,
            violations: found.violations,
        },
    };
    for frame in source.frames_until(Seq(1), until, FrameCheck::Digest)? {
        match frame {
            Ok(frame) => copy.frame(&frame)?,
            // The report tells of it, and the next sound frame of the seqs that are lost.
            Err(LogError::Corrupt(_)) => {}
            Err(error) => return Err(error.into()),
        }
        progress(copy.done.events);
    }
    // At the end no event follows whose seq must stay the same, and a witness may claim any end, so the count of notes is limited.
    copy.fill(source_head.next(), LOST_AT_END_COUNT_MAX)?;
    // Only the tail page names each durable end: a checkpoint may be older than the last erasure.
    let has_tail = found
        .witnesses
        .iter()
        .any(|witness| witness.kind == WitnessKind::Tail && witness.acknowledged().is_some());
    copy.finish(has_tail)?;
    target.write_checkpoint()?;
    Ok(copy.done)
}

/// Puts the wrapped key of an encrypted store into the folder of its salvage, which is then made under that key.
fn keys_of_copy(from: &dyn Storage, into: &dyn Storage, keys: &KeyUse) -> Result<KeyUse, Error> {
    let Some(ring) = keys.ring() else { return Ok(KeyUse::None) };
    let fail = |action, path| move |source| Error::Io { action, path, source };
    let file = read_file(from, KEY, KEY_FILE_BYTES).map_err(fail("read", from.path(KEY)))?;
    // The source was opened by it.
    let file = file.unwrap_or_default();
    into.create_dir("").map_err(fail("create", into.path("")))?;
    write_file(into, KEY, &file).map_err(fail("write", into.path(KEY)))?;
    Ok(KeyUse::Make(Arc::clone(ring)))
}

/// The last known seq, and whether a witness says that the log ended there.
fn end_of(found: &LogReport) -> (Seq, bool) {
    let told = found.witnesses.iter().filter_map(|witness| Some((witness.kind, witness.acknowledged()?)));
    let told: Vec<(WitnessKind, Seq)> = told.collect();
    let lost = found.violations.iter().filter_map(|violation| violation.seq_last);
    let seqs = told.iter().map(|(_, seq)| *seq).chain(lost).chain(found.missing.map(|(_, last)| last));
    let end = seqs.fold(found.head_seq, Seq::max);
    // The tail page names each durable end. The checkpoint names one from time to time, so it only confirms an end that it names. Headers of segments
    // name the ends of earlier segments.
    let is_known = told.iter().any(|(kind, seq)| match kind {
        WitnessKind::Tail => true,
        WitnessKind::Checkpoint => *seq >= end,
        _ => false,
    });
    (end, is_known)
}

/// A body that is gone, with its digest, length and form.
fn lost_body(place: &BodyRow) -> EncodedBody {
    let BodyRow { digest, bytes, stored_bytes, codec, .. } = *place;
    EncodedBody::Lost { digest, bytes, stored_bytes, codec }
}

/// A clock whose time is the time of the copied frame.
struct ToldClock {
    now: AtomicI64,
    real: SystemClock,
}

impl Clock for ToldClock {
    fn now(&self) -> Micros {
        Micros(self.now.load(Ordering::Relaxed))
    }

    fn elapsed(&self) -> Duration {
        self.real.elapsed()
    }

    fn sleep(&self, time: Duration) {
        self.real.sleep(time);
    }
}

struct SalvageCopy<'a> {
    source: &'a Log,
    target: &'a Log,
    clock: &'a ToldClock,
    /// The bodies that records of erasures name: each has its own salt, so digests differ. Some may not be zeroed yet; none is copied.
    erased: FxHashSet<Digest>,
    /// Lost bodies that are zeros: the record of an erasure may be lost.
    zeros: BTreeSet<BodyAddress>,
    /// The next seq of the new store.
    next: Seq,
    done: Salvaged,
}

impl SalvageCopy<'_> {
    /// Copies a sound frame, with notes before it in the place of lost events.
    fn frame(&mut self, frame: &Frame) -> Result<(), Error> {
        if frame.first_seq() < self.next {
            return Ok(());
        }
        self.fill(frame.first_seq(), u64::MAX)?;
        self.events(frame)
    }

    fn events(&mut self, frame: &Frame) -> Result<(), Error> {
        self.clock.now.store(frame.time().0, Ordering::Relaxed);
        let mut events = Vec::new();
        for event in frame.events() {
            let mut bodies = Vec::new();
            for (row, place) in (0..).zip(event.rows()) {
                let body = self.body(BodyAddress { seq: event.seq, row }, &place)?;
                bodies.push(self.or_new_key(event.seq, &event.envelope, body)?);
            }
            events.push(EncodedEvent { envelope: event.envelope, payload: event.payload.to_vec(), bodies });
        }
        let appended = self.target.append(self.target.prepare(&events)?, &[])?;
        self.next = appended.last_seq().next();
        self.done.events += events.len() as u64;
        Ok(())
    }

    fn body(&mut self, address: BodyAddress, place: &BodyRow) -> Result<EncodedBody, Error> {
        if self.erased.contains(&place.digest) {
            return Ok(lost_body(place));
        }
        match self.source.salted_body(place) {
            Ok((salt, bytes)) => {
                self.done.bodies += 1;
                return Ok(EncodedBody::New { bytes: bytes.into(), salt });
            }
            Err(LogError::Erased { .. }) => {
                self.zeros.insert(address);
            }
            Err(LogError::Corrupt(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.done.lost_bodies.push(address);
        Ok(lost_body(place))
    }

    /// Replaces a lost signature key: without it nothing could be appended to its stream ever again.
    fn or_new_key(&mut self, seq: Seq, envelope: &Envelope, body: EncodedBody) -> Result<EncodedBody, Error> {
        let opens = envelope.kind == Payload::from(SessionOpened::default()).number();
        if !opens || !matches!(body, EncodedBody::Lost { bytes: KEY_BYTES, .. }) {
            return Ok(body);
        }
        // A body whose erasure is on record is not in the list.
        self.done.lost_bodies.pop_if(|lost| lost.seq == seq);
        self.done.new_keys += 1;
        let mut key = Vec::with_capacity(KEY_BYTES as usize);
        for _ in 0..2 {
            key.extend_from_slice(&self.target.salt()?);
        }
        Ok(EncodedBody::New { bytes: key.into(), salt: self.target.salt()? })
    }

    /// Puts notes in the place of lost events, up to before `until`; at most `count_max` notes.
    fn fill(&mut self, until: Seq, count_max: u64) -> Result<(), Error> {
        if until <= self.next {
            return Ok(());
        }
        let lost = (self.next, until.before());
        self.done.lost_events.push(lost);
        let note = DamageNoted {
            first: lost.0,
            last: lost.1,
            // A word, which needs no body: the lost event may have had bodies of its own.
            note: "lost".into(),
            ..DamageNoted::default()
        };
        let until = until.min(self.next.plus(count_max));
        while self.next < until {
            let count = until.since(self.next).min(NOTES_PER_COMMIT);
            let notes = (0..count).map(|_| note.clone().into()).collect();
            self.record(notes)?;
        }
        Ok(())
    }

    /// Puts the losses on record. `has_tail`: the tail page names the end.
    fn finish(&mut self, has_tail: bool) -> Result<(), Error> {
        let done = &mut self.done;
        let store = done.source;
        // An erasure is on record before it is carried out. So zeros without a record are damage, if no event is known to be lost.
        let is_all = has_tail
            && done.lost_events.is_empty()
            && done.source_head_is_known
            && done.contradicting.is_empty();
        let is_doubtful = |body: &BodyAddress| !is_all && self.zeros.contains(body);
        let (zeros, damaged): (Vec<BodyAddress>, Vec<BodyAddress>) =
            done.lost_bodies.iter().partition(|body| is_doubtful(body));
        let mut payloads: Vec<Payload> = Vec::new();
        for bodies in zeros.chunks(BODIES_PER_EVENT) {
            let bodies = bodies.to_vec();
            let reason = format!("erased or damaged in store {store}").into();
            payloads.push(Erased { bodies, by: "salvage".to_owned(), reason, contents: Vec::new() }.into());
        }
        for bodies in damaged.chunks(BODIES_PER_EVENT) {
            payloads.push(Erased::lost(bodies.to_vec(), format!("it was damaged in store {store}")).into());
        }
        let note = done.counts().note(store);
        payloads.push(DamageNoted { note: note.into(), ..DamageNoted::default() }.into());
        self.record(payloads)?;
        self.done.head = self.next.before();
        Ok(())
    }

    /// Records events of the store's own stream.
    fn record(&mut self, payloads: Vec<Payload>) -> Result<(), Error> {
        let stamp = Stamp { actor: Actor::Policy, ..Stamp::default() };
        let mut events = Vec::with_capacity(payloads.len());
        for mut payload in payloads {
            let mut rows = Vec::new();
            payload.texts_mut(&mut |text| settle_text(text, &mut rows));
            let (version, bytes) = payload::encode(&stamp, &payload).map_err(|_| Error::TooLarge {
                what: payload.label(),
                actual: u64::MAX,
                limit: crate::codec::EVENT_BYTES_MAX as u64,
            })?;
            let envelope = Envelope {
                kind: payload.number(),
                version,
                stream: StreamId::STORE,
                origin: Origin::ZERO,
                host_time: None,
            };
            let mut bodies = Vec::with_capacity(rows.len());
            for bytes in rows {
                bodies.push(EncodedBody::New { bytes, salt: self.target.salt()? });
            }
            events.push(EncodedEvent { envelope, payload: bytes, bodies });
        }
        let appended = self.target.append(self.target.prepare(&events)?, &[])?;
        self.next = appended.last_seq().next();
        Ok(())
    }
}
