//! Importing another store: it is a host like any other, and its events come in through the same door.
//!
//! ```text
//! the other store: events in order -> words: a fact with its texts ------------------> entries of a commit   known ones are skipped
//!                                  -> acts: items and points as they stand here -----> a decision
//!                                  -> policies, erasures, sent contexts: counted, and not taken
//! ```
//!
//! A fact keeps its canonical id, so a host's own recording adds nothing to it later. An act, or a fact without an id, gets one from the
//! store and the seq where it first stood, and keeps it: a second import, or one over a third store, records nothing new. Of a fact that
//! this store has in other words, later words come in only if this store has the ones before them.
//!
//! Signatures, keys, labels and todo lists are made anew from the texts. An erased text arrives as the word for it.

mod acts;
mod here;
mod words;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::command::Rejection;
use crate::entry::fact::revision_of;
use crate::entry::{Entry, StreamInfo};
use crate::error::Error;
use crate::event::{Payload, Recorded, Scope};
use crate::ids::{FactId, Micros, Origin, Seq, StoreId, StreamId};
use crate::secret::{BY_ID_ALONE, ELSEWHERE, first_16_of};

use super::redact::Pass;
use super::{Atomicity, Batch, Store};

/// Facts of one commit.
const FACT_COUNT_MAX: usize = 256;
/// How many places of damage a report names; it counts the others.
const NAMED_MAX: usize = 100;

/// The report of an import of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[must_use]
pub struct StoreImport {
    /// The other store.
    pub source: StoreId,
    /// Events that were recorded here.
    pub events_new: u64,
    /// Facts and acts that were here already.
    pub events_known: u64,
    /// Sessions, projects and users that are new here.
    pub streams_new: u64,
    /// Facts that this store has in other words; it keeps its own.
    pub other_words: u64,
    /// Texts that were erased there; the word for it arrived in their place.
    pub texts_erased: u64,
    /// Acts on items that are not here.
    pub acts_lost: u64,
    /// Items of memory, where they are not taken.
    pub memories: u64,
    /// Policies, which are not taken.
    pub policies: u64,
    /// Erasures, which are not taken.
    pub erasures: u64,
    /// Records of contexts that were sent, which are not taken.
    pub contexts: u64,
    /// Events of kinds that a newer program writes, and events whose key was destroyed.
    pub unreadable: u64,
    /// Damage there, and acts that were refused here, each in a line; at most 100.
    pub left_out: Vec<String>,
    /// How many there were.
    pub left_out_count: u64,
}

impl StoreImport {
    fn leave_out(&mut self, what: impl Into<String>) {
        self.left_out_count += 1;
        if self.left_out.len() < NAMED_MAX {
            self.left_out.push(what.into());
        }
    }
}

impl Store {
    /// Records the sessions and acts of another store that are not here yet. The other store is only read.
    ///
    /// Importing again adds nothing. Durable when it returns. Events that were recorded before an error stay, and the next import adds
    /// the rest.
    ///
    /// Memory, policies, erasures, keys and records of sent contexts are not taken; the report counts them. Memory is told to every later
    /// session, so [`Store::import_with_memory`] takes it only from a store that you trust.
    ///
    /// Cost: two passes over the other store, one of them with its texts, one over the spines of this store, and 60 bytes of memory an
    /// event of the other.
    ///
    /// # Errors
    /// [`Error::Rejected`] if it is this store or a copy of it; the errors of reading it, except damage, which the report names; and as
    /// [`Store::commit`].
    pub fn import(&self, source: &Self) -> Result<StoreImport, Error> {
        self.import_from(source, false)
    }

    /// As [`Store::import`], with the other store's memory: its items and what became of them.
    ///
    /// # Errors
    /// As [`Store::import`].
    pub fn import_with_memory(&self, source: &Self) -> Result<StoreImport, Error> {
        self.import_from(source, true)
    }

    fn import_from(&self, source: &Self, with_memory: bool) -> Result<StoreImport, Error> {
        self.inner.check_writable()?;
        if source.id() == self.id() {
            let path = source.inner.root.display();
            let why = format!("{path} is this store, or a copy of it: it has nothing that is new here");
            return Err(Rejection::Malformed(why).into());
        }
        if !source.inner.log.secret().is_known() {
            let detail =
                "its file `secret` is missing, without which no event can be told from another".to_owned();
            return Err(Error::ReadOnly { path: source.inner.root.clone(), detail });
        }
        let mut import = StoreImporter::new(self, source, with_memory)?;
        let events = source.events(Seq(1), Seq::MAX)?;
        for event in events {
            match event {
                Ok(recorded) => import.take(&recorded)?,
                Err(Error::Corrupt { detail, .. }) => import.report.leave_out(detail),
                Err(error) => return Err(error),
            }
        }
        import.finish()
    }
}

/// A stream of the other store.
struct Stream {
    info: StreamInfo,
    /// Whether it was here before.
    is_known: bool,
    /// Whether a batch of this import opens it.
    is_open: bool,
    /// Its facts and acts in order.
    facts: Vec<(Seq, FactId)>,
}

/// Where an event of the other store stands: its stream, its id, and the number of parts of this fact before its own.
#[derive(Clone, Copy)]
struct ForeignEvent {
    stream: StreamId,
    fact: FactId,
    parts_before: u32,
}

/// The words that this store had of a fact before this import.
enum FactWords {
    Fresh,
    Earlier { revision: u64, is_met: bool, later: Vec<Entry> },
}

struct StoreImporter<'a> {
    store: &'a Store,
    source: &'a Store,
    with_memory: bool,
    report: StoreImport,
    streams: FxHashMap<StreamId, Stream>,
    places: FxHashMap<Seq, ForeignEvent>,
    /// Parts of each message so far.
    parts: FxHashMap<(StreamId, FactId), u32>,
    standing: FxHashMap<(StreamId, FactId), FactWords>,
    /// Facts that the other store revised, and streams with records of a host.
    revised: FxHashSet<(StreamId, Origin)>,
    has_records: FxHashSet<StreamId>,
    /// The words of revised facts, as told so far.
    told: FxHashMap<(StreamId, FactId), words::FactTelling>,
    /// A revision that is being read: its other events follow.
    open_revision: Option<(StreamId, FactId)>,
    /// Events without an origin that this store recorded first, by the ids that they have elsewhere.
    own: FxHashMap<FactId, (StreamId, Seq)>,
    /// Ids of memory items here, by stream and by their ids there.
    memory: FxHashMap<(StreamId, String), String>,
    waiting: Vec<Batch>,
    waiting_count: usize,
}

/// The id, in all other stores, of an event that has none of its own.
fn first_stood(store: StoreId, seq: Seq) -> FactId {
    let hasher = blake3::Hasher::new_derive_key("acpdb 2026 event without an origin v1");
    FactId(first_16_of(hasher, &[store.as_bytes(), &seq.get().to_le_bytes()]))
}

impl<'a> StoreImporter<'a> {
    fn new(store: &'a Store, source: &'a Store, with_memory: bool) -> Result<Self, Error> {
        let (mut revised, mut has_records) = (FxHashSet::default(), FxHashSet::default());
        for event in source.events(Seq(1), Seq::MAX)? {
            // Damage is named in the second pass.
            let Ok(Recorded { event, .. }) = event else { continue };
            if event.stamp.wire.is_some() {
                has_records.insert(event.stream);
            }
            if matches!(event.payload, Payload::ItemRevised(_)) && !event.origin.is_zero() {
                revised.insert((event.stream, event.origin));
            }
        }
        let mut own = FxHashMap::default();
        let mine = store.events(Seq(1), Seq::MAX)?.wanted(|glimpse| glimpse.origin().is_zero());
        for event in mine {
            let Ok(Recorded { seq, event, .. }) = event else { continue };
            own.insert(first_stood(store.id(), seq), (event.stream, seq));
        }
        let report = StoreImport { source: source.id(), ..StoreImport::default() };
        Ok(Self {
            store,
            source,
            with_memory,
            report,
            streams: FxHashMap::default(),
            places: FxHashMap::default(),
            parts: FxHashMap::default(),
            standing: FxHashMap::default(),
            revised,
            has_records,
            told: FxHashMap::default(),
            open_revision: None,
            own,
            memory: FxHashMap::default(),
            waiting: Vec::new(),
            waiting_count: 0,
        })
    }

    fn take(&mut self, recorded: &Recorded) -> Result<(), Error> {
        let stream = recorded.event.stream;
        let is_rest = self.is_rest_of_revision(recorded);
        if !is_rest {
            self.end_revision()?;
        }
        match &recorded.event.payload {
            Payload::SessionOpened(_) => return self.open(recorded),
            Payload::PolicySet(set) if set.reason.as_deref() == Some("store created") => return Ok(()),
            Payload::PolicySet(_) => self.report.policies += 1,
            Payload::ProjectRenamed(_) => {
                self.report.leave_out(format!("the renamed project {}", recorded.event.payload.in_words()));
            }
            Payload::MemoryRecorded(_) if !self.with_memory => self.report.memories += 1,
            Payload::MemorySuperseded(_) | Payload::MemoryReinforced(_) | Payload::MemoryRetracted(_)
                if !self.with_memory => {}
            Payload::Erased(_) => self.report.erasures += 1,
            Payload::DamageNoted(noted) => self.report.leave_out(noted_in_words(noted, recorded.seq)),
            Payload::ContextServed(_) | Payload::ContextRebased(_) => self.report.contexts += 1,
            Payload::Unknown { .. } => self.report.unreadable += 1,
            // The end of a call that was told anew: this store makes one, too.
            Payload::ToolCallFinished(_)
                if recorded.event.stamp.revision == 0 && recorded.event.origin.is_zero() => {}
            _ if !self.streams.contains_key(&stream) => {
                self.report
                    .leave_out(format!("event {} of a stream whose beginning is missing", recorded.seq));
            }
            Payload::ItemRevised(_) => self.revise(recorded)?,
            _ => self.place_and_tell(recorded, is_rest)?,
        }
        Ok(())
    }

    fn place_and_tell(&mut self, recorded: &Recorded, is_rest: bool) -> Result<(), Error> {
        let event = &recorded.event;
        let (stream, seq) = (event.stream, recorded.seq);
        let mut fact = self.fact_of(recorded);
        // A record that came late bears the id of its fact. Here it is one of its own.
        let is_late =
            matches!(&event.payload, Payload::HostRecorded(it) if it.raw.is_none() && it.record == "record");
        if is_late && self.parts.contains_key(&(stream, fact)) {
            fact = first_stood(self.source.id(), seq);
        }
        let count = match &event.payload {
            Payload::MessageRecorded(message) => message.parts.len(),
            Payload::MessageContinued(message) => message.parts.len(),
            _ => 1,
        };
        let parts = self.parts.entry((stream, fact)).or_default();
        let is_message = matches!(event.payload, Payload::MessageRecorded(_) | Payload::MessageContinued(_));
        let parts_before = if is_message { *parts } else { 0 };
        *parts = parts_before.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        self.places.insert(seq, ForeignEvent { stream, fact, parts_before });
        if let Some(known) = self.streams.get_mut(&stream) {
            known.facts.push((seq, fact));
        }
        if is_rest {
            return self.add_parts(recorded, fact);
        }
        if acts::is_act(&event.payload) {
            return self.act(recorded, fact);
        }
        let Some((entry, is_whole)) = self.entry(recorded, fact)? else { return Ok(()) };
        if self.revised.contains(&(stream, event.origin)) {
            self.told.insert((stream, fact), words::FactTelling::new(&entry, is_whole, seq));
        }
        self.offer(stream, fact, entry)
    }

    /// Begins a stream.
    fn open(&mut self, recorded: &Recorded) -> Result<(), Error> {
        let Payload::SessionOpened(opened) = &recorded.event.payload else { return Ok(()) };
        let stream = recorded.event.stream;
        let info = StreamInfo {
            scope: opened.scope,
            host: opened.host.clone(),
            name: opened.name.clone(),
            project: opened.project.clone(),
            parent: opened.parent.clone().map(|parent| (parent.stream, parent.call)),
            cwd: opened.cwd.clone(),
            title: opened.title.as_ref().map(ToString::to_string),
            host_version: opened.host_version.clone(),
            host_time: self.time(recorded),
        };
        let is_known = self.here(stream, |here| here.opened)?;
        // Projects and users have memory alone: without it their streams are not begun.
        let is_begun = self.with_memory || opened.scope == Scope::Session;
        self.report.streams_new += u64::from(!is_known && is_begun);
        self.streams.insert(stream, Stream { info, is_known, is_open: is_known, facts: Vec::new() });
        if is_begun {
            self.batch(stream);
        }
        Ok(())
    }

    /// The host's time; of what was recorded as it happened, the time of the recording.
    fn time(&self, recorded: &Recorded) -> Option<Micros> {
        let event = &recorded.event;
        let happened = acts::is_act(&event.payload) || !self.has_records.contains(&event.stream);
        event.host_time.or(happened.then_some(recorded.recorded_at))
    }

    fn fact_of(&self, recorded: &Recorded) -> FactId {
        match recorded.event.origin {
            origin if origin.is_zero() => first_stood(self.source.id(), recorded.seq),
            origin => self.source.inner.log.secret().plain(origin),
        }
    }

    /// Records a fact, if this store does not have it. Of a fact that was here before, words that follow the ones that it has here wait
    /// for the end: only then is it known which are the last.
    fn offer(&mut self, stream: StreamId, fact: FactId, entry: Entry) -> Result<(), Error> {
        if self.own.contains_key(&fact) {
            self.report.events_known += 1;
            return Ok(());
        }
        let Some(known) = self.streams.get(&stream) else { return Ok(()) };
        if known.is_known && !self.standing.contains_key(&(stream, fact)) {
            let origin = self.store.inner.log.secret().keyed(fact);
            let standing = match self.here(stream, |here| here.seen(origin))? {
                None => FactWords::Fresh,
                Some(seen) => {
                    FactWords::Earlier { revision: seen.revision, is_met: false, later: Vec::new() }
                }
            };
            self.standing.insert((stream, fact), standing);
        }
        let told = self.revision(&entry);
        match self.standing.get_mut(&(stream, fact)) {
            None | Some(FactWords::Fresh) => self.wait(stream, entry),
            Some(FactWords::Earlier { revision, is_met, later }) => {
                if *revision == told || *revision == 0 || told == 0 {
                    self.report.events_known += u64::from(!*is_met);
                    *is_met = true;
                    later.clear();
                } else if *is_met {
                    later.push(entry);
                }
                Ok(())
            }
        }
    }

    /// The revision that the store gives to an entry.
    fn revision(&self, entry: &Entry) -> u64 {
        let inner = &self.store.inner;
        if entry.origin.as_deref().is_some_and(|origin| origin.starts_with(BY_ID_ALONE)) {
            return 0;
        }
        let Some(redactor) = inner.redactor.as_deref() else { return revision_of(entry, inner.log.secret()) };
        let mut clean = entry.clone();
        Pass::new(redactor).entry(&mut clean);
        revision_of(&clean, inner.log.secret())
    }

    fn wait(&mut self, stream: StreamId, entry: Entry) -> Result<(), Error> {
        if let Some(batch) = self.batch(stream) {
            batch.entries.push(entry);
            self.waiting_count += 1;
        }
        if self.waiting_count >= FACT_COUNT_MAX { self.flush() } else { Ok(()) }
    }

    /// The batch of a stream that is filled. The first one opens a new stream; later ones change nothing about it.
    fn batch(&mut self, stream: StreamId) -> Option<&mut Batch> {
        let known = self.streams.get_mut(&stream)?;
        if self.waiting.last().is_none_or(|batch| batch.stream.id() != stream) {
            let Stream { info, is_open, .. } = known;
            let bare = || StreamInfo {
                scope: info.scope,
                host: info.host.clone(),
                name: info.name.clone(),
                ..StreamInfo::default()
            };
            let info = if *is_open { bare() } else { info.clone() };
            known.is_open = true;
            self.waiting.push(Batch { stream: info, entries: Vec::new() });
        }
        self.waiting.last_mut()
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.waiting_count = 0;
        let batches = std::mem::take(&mut self.waiting);
        if batches.is_empty() {
            return Ok(());
        }
        // Memory stands in the streams where it stood: it is not routed anew.
        let (receipt, placed) = self.store.inner.commit(&batches, Atomicity::Split, None)?;
        self.store.complete(placed)?;
        self.report.events_new += receipt.event_count;
        self.report.events_known += receipt.known_count;
        Ok(())
    }

    fn finish(mut self) -> Result<StoreImport, Error> {
        self.end_revision()?;
        let mut rest = Vec::new();
        for ((stream, _), standing) in self.standing.drain() {
            match standing {
                FactWords::Earlier { is_met: false, .. } => self.report.other_words += 1,
                FactWords::Earlier { later, .. } => {
                    rest.extend(later.into_iter().map(|entry| (stream, entry)));
                }
                FactWords::Fresh => {}
            }
        }
        // In one order, whatever the table's: facts of one stream by their ids, words of one fact as they were told.
        rest.sort_by(|(left, one), (right, other)| (left, &one.origin).cmp(&(right, &other.origin)));
        for (stream, entry) in rest {
            self.wait(stream, entry)?;
        }
        self.flush()?;
        Ok(self.report)
    }
}

/// The canonical id by which a fact of another store is recorded. `is_whole`: its words can be compared with those of a host.
fn origin_of(fact: FactId, is_whole: bool) -> String {
    format!("{}{}", if is_whole { ELSEWHERE } else { BY_ID_ALONE }, fact.to_hex())
}

fn noted_in_words(noted: &crate::event::DamageNoted, seq: Seq) -> String {
    let words = Payload::from(noted.clone()).in_words();
    format!("event {seq} notes damage: {words}")
}
