//! Makes a new store of everything in a damaged store that verifies.
//!
//! ```text
//! frame sound     -> the same events with the same seqs and times, bodies checked; a damaged body becomes an erased one
//! frame damaged   -> the same for each of its pieces that is sound by itself
//! events lost     -> as many `DamageNoted` in their place, so that events which name items by seq still name the same items
//! at the end      -> the losses, on record
//! a backup given  -> lost events and bodies that the backup still has are copied from it, and are not lost
//! encrypted       -> opened with the store's keys, and sealed anew with the same keys for the new store (`sealed`)
//! ```
//!
//! Every seq up to the last known one is either copied or said to be lost. The last known seq comes from the log itself, headers of damaged frames,
//! the tail page, the checkpoint, the index, and files under `snap/`.
//!
//! The source is only read. The new store has an id and links of its own: it is another store with the same events, and it says which are missing.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::codec::payload;
use crate::codec::{BodyForm, BodyRow, EncodedBody, EncodedEvent, Envelope, EventRef, Frame, FrameCheck};
use crate::error::Error;
use crate::event::{Actor, BodyAddress, DamageNoted, Erased, Payload, SessionOpened, Stamp};
use crate::ids::{Digest, Micros, Origin, Seq, StreamId};
use crate::log::{Log, LogError, LogOptions, LogReport, Opening, WitnessKind};
use crate::secret::Withheld;
use crate::storage::{Clock, FileStorage, KeyRing, Storage, SystemClock, SystemEntropy};
use crate::verify::{SHREDDED_ROW, SHREDDED_SUBJECT_ROW, recorded_addresses, shredded_streams, verify_log};

use super::audit::saved_claims;
use super::write::settle_text;
use backups::{Backup, Held, shortfall};
use recorded::Recorded;
pub use report::{SalvageOptions, Salvaged};
use sealed::Sealed;

mod backups;
mod recorded;
mod report;
mod sealed;

/// Notes written in one commit.
const NOTES_PER_COMMIT: u64 = 4096;
/// Erased bodies named by one event.
const BODIES_PER_EVENT: usize = 4096;
/// Length of a stream's signature key, the only body of the event that opens it.
const KEY_BYTES: u32 = 32;

/// Copies everything that verifies from the store in `from` to a new store in `into`, a folder that must be missing or empty.
///
/// Lost events and texts are copied from the first backup that has them, each to its place. Backups are only read. Events that the links of the store
/// confirm come before other events of backups. A text whose erasure is on record in the new store stays gone. So do zeros without a record of an
/// erasure, if their segment counts more erasures than are on record; or, where there is no count, if anything is lost. If both a text's own place
/// and the record of its erasure are lost, nothing tells that the text was erased: then it comes back, as after any restore.
///
/// If the store is encrypted, the new store is encrypted with the same keys. Shredded events stay noise. Events that a missing key seals are lost. A
/// backup needs no keys of its own; its files of keys are read where the store's own are missing or damaged.
///
/// `progress` is called with the count of events copied so far. Cost: four reads of the source, three of each backup, and a synced commit for each of
/// its frames. The source is not changed.
///
/// The new store is made under the name `into` with `.partial` behind it, and gets its own name once it is whole: a part of it would pass for a sound
/// store. If the salvage is interrupted, the partial folder stays; remove it and begin again.
///
/// # Errors
/// [`Error::NotAStore`] if there is nothing to read at all, [`Error::Io`] and [`Error::NoSpace`] of any side, [`Error::Io`] also for a backup of
/// another store, or of this store with another history; [`Error::Locked`] if the store is encrypted and its key is not given, or the store is not
/// encrypted and a key is given.
pub fn salvage(
    from: &Path,
    into: &Path,
    options: &SalvageOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Salvaged, Error> {
    let fail = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    };
    check_empty(&FileStorage::new(into))?;
    for read in std::iter::once(from).chain(options.backups.iter().map(PathBuf::as_path)) {
        check_outside(into, read)?;
    }
    let mut name = into
        .file_name()
        .ok_or_else(|| {
            let source = std::io::ErrorKind::InvalidInput.into();
            Error::Io { action: "make a store in", path: into.to_owned(), source }
        })?
        .to_owned();
    name.push(".partial");
    let partial = into.with_file_name(name);
    let on_disk = |path: &Path| Arc::new(FileStorage::new(path)) as Arc<dyn Storage>;
    let backups = options.backups.iter().map(|path| on_disk(path)).collect();
    let done = salvage_storage(on_disk(from), on_disk(&partial), backups, &options.keys, progress)?;
    std::fs::rename(&partial, into).map_err(fail("rename", &partial))?;
    let folder = into.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    let synced = std::fs::File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(fail("sync", folder))?;
    Ok(Salvaged { path: into.to_owned(), ..done })
}

/// Refuses to make a store in a folder that is only read.
fn check_outside(into: &Path, read: &Path) -> Result<(), Error> {
    let read = resolved(read)?;
    if !resolved(into)?.starts_with(&read) {
        return Ok(());
    }
    let why = format!("it lies in {}, which is only read", crate::text::paths::shown(&read));
    let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
    Err(Error::Io { action: "make a store in", path: into.to_owned(), source })
}

/// A path without links and steps up. Parts that do not exist yet are taken as they are.
fn resolved(path: &Path) -> Result<PathBuf, Error> {
    let fail = |source| Error::Io { action: "resolve", path: path.to_owned(), source };
    let mut resolved = PathBuf::new();
    for component in std::path::absolute(path).map_err(fail)?.components() {
        if component == std::path::Component::ParentDir {
            resolved.pop();
            continue;
        }
        resolved.push(component);
        // A part that does not exist yet is not a link.
        resolved = resolved.canonicalize().unwrap_or(resolved);
    }
    Ok(resolved)
}

/// Refuses a folder that is not empty.
fn check_empty(into: &dyn Storage) -> Result<(), Error> {
    match into.list("") {
        Ok(names) if !names.is_empty() => {
            let source = std::io::ErrorKind::AlreadyExists.into();
            Err(Error::Io { action: "make a store in", path: into.path(""), source })
        }
        _ => Ok(()),
    }
}

/// [`salvage`], on any storage.
///
/// # Errors
/// As [`salvage`].
pub fn salvage_storage(
    from: Arc<dyn Storage>,
    into: Arc<dyn Storage>,
    backups: Vec<Arc<dyn Storage>>,
    keys: &[Arc<dyn KeyRing>],
    progress: &mut dyn FnMut(u64),
) -> Result<Salvaged, Error> {
    check_empty(&*into)?;
    let path = into.path("");
    let folders = std::iter::once(&from).chain(&backups).map(Arc::clone).collect();
    let ring = keys.first().cloned();
    let older_rings = keys.iter().skip(1).cloned().collect();
    let opening = Opening { create: false, ring: ring.clone(), older_rings, keys_in: folders };
    let source = Log::open_to_read(from, &opening)?;
    if source.is_encrypted() && ring.is_none() {
        return Err(source.why_locked(StreamId::STORE).into());
    }
    let records = recorded_addresses(&source, Seq::ZERO)?;
    let mut shredded = shredded_streams(&source, &records, SHREDDED_ROW)?;
    shredded.append(&mut shredded_streams(&source, &records, SHREDDED_SUBJECT_ROW)?);
    let backups = Backup::open_all(backups, &source, &opening, &shredded)?;
    let found = verify_log(&source, true, saved_claims(&**source.storage(), source.store()))?;
    let (known_end, source_head_is_known) = end_of(&found);
    let source_head = backups.iter().map(|backup| backup.head.seq).fold(known_end, Seq::max);
    // Events that were written and never confirmed are as sound as the rest.
    let durable = source.refresh()?;
    let until = if found.end.position > durable.position { found.end } else { durable };
    let shortfall = shortfall(&source, until, &backups, (&found, source_head), &shredded)?;
    let is_all = shortfall.lost.is_empty()
        && shortfall.unconfirmed.is_empty()
        && source_head_is_known
        && shortfall.contradicting.is_empty();
    // Only the tail page names each durable end: a checkpoint may be older than the last erasure.
    let has_tail = found
        .witnesses
        .iter()
        .any(|witness| witness.kind == WitnessKind::Tail && witness.acknowledged().is_some());
    let clock = Arc::new(ToldClock { now: AtomicI64::new(0), real: SystemClock::new() });
    let making = Opening { create: true, ring, ..Opening::default() };
    let (target, _recovery) =
        Log::open_with_keys(into, clock.clone(), Arc::new(SystemEntropy), LogOptions::default(), making)?;
    // The new store takes the secret, so origins, revisions and signatures keep their meaning. If the secret is lost, the new store has one of its
    // own.
    let mut logs = std::iter::once(&source).chain(backups.iter().map(|backup| &backup.log));
    let secret = logs.find_map(Log::filed_secret);
    if let Some(secret) = &secret {
        target.take_secret(secret)?;
    }
    let recorded = Recorded::read((&source, records), &backups, &shortfall)?;
    let (sealed, lost_keys, keys_from_backups) =
        Sealed::take(&source, &target, &recorded.shreds, &shortfall.locked)?;
    let mut copy = Copy {
        source: &source,
        target: &target,
        clock: &clock,
        places: FxHashMap::default(),
        backups: &backups,
        offers: offers(&backups, &shortfall.confirmed),
        recorded,
        sealed,
        // An erasure is on record before it is carried out. So zeros without a record are damage, if no event is known to be lost.
        zeros_are_damage: has_tail && is_all,
        doubtful: FxHashSet::default(),
        next: Seq(1),
        done: Salvaged {
            schema: "acpdb.salvage/1",
            source: source.store(),
            store: target.store(),
            path,
            events: 0,
            events_from_backups: 0,
            bodies: 0,
            bodies_from_backups: 0,
            unconfirmed_events: shortfall.unconfirmed,
            lost_events: Vec::new(),
            lost_bodies: Vec::new(),
            lost_keys,
            keys_from_backups,
            new_keys: 0,
            has_new_secret: secret.is_none() && source_head > Seq::ZERO,
            source_head,
            source_head_is_known,
            contradicting: shortfall.contradicting,
            head: Seq::ZERO,
            violations: found.violations,
        },
    };
    for stretch in source.stretches(Seq(1), until, FrameCheck::Checksum, &shredded)? {
        let stretch = stretch?;
        for run in runs_of(&stretch.parts) {
            copy.events(run)?;
        }
        progress(copy.done.events);
    }
    // At the end no event follows whose seq must stay the same, and a witness may claim any end, so the count of notes is limited.
    copy.fill(0, source_head.next(), LOST_AT_END_COUNT_MAX)?;
    copy.finish()?;
    target.write_checkpoint()?;
    Ok(copy.done)
}

/// The last known seq, and whether a witness says that the log ended there.
fn end_of(found: &LogReport) -> (Seq, bool) {
    let told = found.witnesses.iter().filter_map(|witness| Some((witness.kind, witness.acknowledged()?)));
    let told: Vec<(WitnessKind, Seq)> = told.collect();
    let lost = found.violations.iter().filter_map(|violation| violation.seq_last);
    let seqs = told.iter().map(|(_, seq)| *seq).chain(lost).chain(found.missing.map(|(_, last)| last));
    let end = seqs.fold(found.head_seq, Seq::max);
    // The tail page names each durable end. Other witnesses name one from time to time, so they only confirm an end that they name. Headers and seals
    // of segments name the ends of earlier segments.
    let is_known = told.iter().any(|(kind, seq)| match kind {
        WitnessKind::Tail => true,
        WitnessKind::Checkpoint => *seq >= end,
        kind => kind.is_kept_apart() && *seq >= end,
    });
    (end, is_known)
}

/// A body that is gone, with its digest, length and form.
fn lost_body(place: &BodyRow) -> EncodedBody {
    let is_known = place.is_known() || place.is_sealed();
    let form = if is_known { place.form() } else { BodyForm::plain(place.bytes) };
    EncodedBody::Lost { digest: place.digest, bytes: place.bytes, form }
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

/// A backup to copy events from: with `only`, the events that the store confirms; without it, all events.
#[derive(Clone, Copy)]
struct Offer<'a> {
    backup: &'a Backup,
    only: Option<&'a Held>,
}

fn offers<'a>(backups: &'a [Backup], confirmed: &'a [Held]) -> Vec<Offer<'a>> {
    let sure =
        backups.iter().zip(confirmed).map(|(backup, confirmed)| Offer { backup, only: Some(confirmed) });
    sure.chain(backups.iter().map(|backup| Offer { backup, only: None })).collect()
}

struct Copy<'a> {
    source: &'a Log,
    target: &'a Log,
    backups: &'a [Backup],
    /// Backups in the order in which they are asked for events, each twice.
    offers: Vec<Offer<'a>>,
    clock: &'a ToldClock,
    /// Rows of copied bodies in the new store, by their digest in the source.
    places: FxHashMap<Digest, BodyRow>,
    recorded: Recorded,
    sealed: Sealed,
    /// Whether zeros without a record of an erasure are damage, unless a segment's count tells otherwise. If not, the record may be lost.
    zeros_are_damage: bool,
    /// Bodies that are zeros, and whose record of an erasure may be lost.
    doubtful: FxHashSet<(Seq, u32)>,
    /// The next seq of the new store.
    next: Seq,
    done: Salvaged,
}

/// Most events that are noted as lost at the end, where only a witness names them.
const LOST_AT_END_COUNT_MAX: u64 = 1 << 16;

/// Groups parts of a frame whose seqs follow one another: each group becomes one frame again.
fn runs_of(parts: &[Frame]) -> impl Iterator<Item = &[Frame]> {
    parts.chunk_by(|part, next| part.last_seq().next() == next.first_seq())
}

impl Copy<'_> {
    /// Copies the events of a frame, or of parts of a frame that follow one another. First fills the gap before them from backups.
    fn events(&mut self, run: &[Frame]) -> Result<(), Error> {
        let Some(first) = run.first().filter(|first| first.first_seq() >= self.next) else { return Ok(()) };
        self.fill(0, first.first_seq(), u64::MAX)?;
        self.copy(run, Seq::MAX).map(|_| ())
    }

    /// Copies the events of a run from `next` up to before `until`. Returns how many.
    fn copy(&mut self, run: &[Frame], until: Seq) -> Result<u64, Error> {
        let Some(first) = run.first() else { return Ok(0) };
        self.clock.now.store(first.time().0, Ordering::Relaxed);
        let (mut events, mut digests, mut noise) = (Vec::new(), Vec::new(), Vec::new());
        let next = self.next;
        let wanted = |event: &EventRef<'_>| event.seq >= next && event.seq < until;
        for event in run.iter().flat_map(Frame::events).filter(wanted) {
            if let Some((key, event)) = self.sealed.noise(&event, &self.recorded) {
                noise.push((events.len(), key));
                digests.extend(event.bodies.iter().map(|_| None));
                events.push(event);
                continue;
            }
            let mut bodies = Vec::new();
            for (row, place) in event.rows().enumerate() {
                let body = self.body(event.seq, row, &place)?;
                // Damage is reported for each event that has the body. An erasure names one place for all such events.
                let is_damaged =
                    matches!(body, EncodedBody::Lost { .. }) && !self.recorded.erased.contains(&place.digest);
                digests.push(Some(place.digest).filter(|_| !is_damaged));
                bodies.push(self.or_new_key(event.seq, &event.envelope, body)?);
            }
            events.push(EncodedEvent { envelope: event.envelope, payload: event.payload.to_vec(), bodies });
        }
        if events.is_empty() {
            return Ok(0);
        }
        let appended = self.target.append(self.target.prepare_with_noise(&events, &noise)?, &[])?;
        for (digest, row) in digests.into_iter().zip(&appended.rows) {
            if let Some(digest) = digest {
                self.places.entry(digest).or_insert(*row);
            }
        }
        self.next = appended.last_seq().next();
        let count = events.len() as u64;
        self.done.events += count;
        Ok(count)
    }

    fn body(&mut self, seq: Seq, row: usize, place: &BodyRow) -> Result<EncodedBody, Error> {
        if let Some(known) = self.places.get(&place.digest) {
            self.done.bodies += 1;
            return Ok(EncodedBody::Existing {
                digest: known.digest,
                bytes: known.bytes,
                position: known.position,
                form: known.form(),
            });
        }
        let lost = lost_body(place);
        if self.recorded.erased.contains(&place.digest) {
            return Ok(lost);
        }
        let error = match self.source.body(place) {
            Ok(bytes) => return self.copied(bytes),
            // A stream with several keys may lack one of them.
            Err(error @ (LogError::Corrupt(_) | LogError::Erased { .. } | LogError::Locked { .. })) => error,
            Err(error) => return Err(error.into()),
        };
        let is_zeros = matches!(error, LogError::Erased { .. });
        // The record of these zeros may have been in a lost frame, and then a person wanted the text gone.
        let mut is_doubtful = is_zeros && !self.zeros_are_damage;
        for (number, backup) in self.backups.iter().enumerate() {
            if is_zeros {
                let is_all = self.recorded.is_all(self.source, (number, backup), place.position)?;
                if is_all == Some(false) {
                    is_doubtful = true;
                }
                if !is_all.unwrap_or(self.zeros_are_damage) {
                    continue;
                }
            }
            if let Some(bytes) = backup.body(place)? {
                self.done.bodies_from_backups += 1;
                return self.copied(bytes);
            }
        }
        let row = u32::try_from(row).unwrap_or(u32::MAX);
        self.done.lost_bodies.push(BodyAddress { seq, row });
        if is_doubtful {
            self.doubtful.insert((seq, row));
        }
        Ok(lost)
    }

    fn copied(&mut self, bytes: Vec<u8>) -> Result<EncodedBody, Error> {
        self.done.bodies += 1;
        Ok(EncodedBody::New { bytes: bytes.into(), salt: self.target.salt()?, content: None })
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
        Ok(EncodedBody::New { bytes: key.into(), salt: self.target.salt()?, content: None })
    }

    /// Copies the events up to before `until` that the offers from `number` on have, and puts notes in the place of the others. `count_max`: most
    /// notes at the end.
    fn fill(&mut self, number: usize, until: Seq, count_max: u64) -> Result<(), Error> {
        if until <= self.next {
            return Ok(());
        }
        let Some(offer) = self.offers.get(number).copied() else { return self.note(until, count_max) };
        let next = number + 1;
        for stretch in offer.backup.stretches(self.next)? {
            let stretch = stretch?;
            if stretch.header.first_seq >= until {
                break;
            }
            // A commit is confirmed as a whole.
            let (first, last) = (stretch.header.first_seq, stretch.header.last_seq());
            let is_offered = match offer.only {
                Some(only) => only.has(first),
                None => !self.recorded.names_others(number - self.backups.len(), first, last),
            };
            if !is_offered {
                continue;
            }
            for run in runs_of(&stretch.parts) {
                let Some(first) = run.first().filter(|first| first.first_seq() < until) else { break };
                self.fill(next, first.first_seq(), u64::MAX)?;
                self.done.events_from_backups += self.copy(run, until)?;
            }
        }
        self.fill(next, until, count_max)
    }

    /// Puts notes in the place of lost events, up to before `until`; at most `count_max` notes.
    fn note(&mut self, until: Seq, count_max: u64) -> Result<(), Error> {
        if until <= self.next {
            return Ok(());
        }
        let lost = (self.next, until.before());
        self.done.lost_events.push(lost);
        let note = DamageNoted {
            first: lost.0,
            last: lost.1,
            note: format!("lost in store {}", self.source.store()),
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

    /// Puts the losses on record.
    fn finish(&mut self) -> Result<(), Error> {
        let mut payloads: Vec<Payload> = Vec::new();
        let store = self.source.store();
        let is_doubtful = |body: &BodyAddress| self.doubtful.contains(&(body.seq, body.row));
        let (zeros, damaged): (Vec<_>, Vec<_>) =
            self.done.lost_bodies.iter().partition(|body| is_doubtful(body));
        // Bodies of shredded streams are not lost by the salvage: they are on record as erased.
        let zeros: Vec<BodyAddress> =
            zeros.into_iter().chain(std::mem::take(&mut self.sealed.gone)).collect();
        for bodies in zeros.chunks(BODIES_PER_EVENT) {
            let bodies = bodies.to_vec();
            let reason = format!("erased or damaged in store {store}").into();
            payloads.push(Erased { bodies, by: "salvage".to_owned(), reason, contents: Vec::new() }.into());
        }
        for bodies in damaged.chunks(BODIES_PER_EVENT) {
            payloads.push(Erased::lost(bodies.to_vec(), format!("it was damaged in store {store}")).into());
        }
        let lost: u64 = self.done.lost_events.iter().map(|(first, last)| last.next().since(*first)).sum();
        let note = format!(
            "salvaged from store {}: {} events copied, {lost} lost, {} bodies lost",
            self.source.store(),
            self.done.events,
            self.done.lost_bodies.len()
        );
        payloads.push(DamageNoted { note, ..DamageNoted::default() }.into());
        // Some were left out, since a record names them.
        let unconfirmed = std::mem::take(&mut self.done.unconfirmed_events);
        self.done.unconfirmed_events = Held::of(&self.done.lost_events).taken_from(&unconfirmed);
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
            payload.texts_mut(&mut |text| settle_text(text, &mut rows, &Withheld::default()));
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
                bodies.push(EncodedBody::New { bytes, salt: self.target.salt()?, content: None });
            }
            events.push(EncodedEvent { envelope, payload: bytes, bodies });
        }
        let appended = self.target.append(self.target.prepare(&events)?, &[])?;
        self.next = appended.last_seq().next();
        Ok(())
    }
}
