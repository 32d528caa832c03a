//! Where the events of a stream are: the index as far as it goes, a catalog of the rest.
//!
//! ```text
//! seq 1 ........ base | base+1 ........ head
//!       index.redb    |   catalog, in memory, from the log's envelopes
//! ```
//!
//! Without a usable index `base` is 0 and the catalog holds everything. An index that fails on the way is dropped and the
//! catalog begun anew: the caller notices nothing but time. One that another process owns is tried again while there is
//! something new to index, less and less often, so that someone takes it over when its owner goes. The base follows the
//! index once the catalog has grown: what both know is kept once.

use std::cell::RefCell;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crate::codec::{FORMAT_VERSION, SegmentHeader};
use crate::error::Error;
use crate::ids::{Position, Seq, StreamId};
use crate::index::{
    Bypassed, Evidence, FramePlace, INDEX_NAME, Identity, Index, IndexOptions, IndexState, Indexer,
    IndexerOptions, Lookup as _, NameEntry, NameKind, Rebuilt, reindex, set_aside,
};
use crate::log::LogError;
use crate::storage::Access;

use super::catalog::Catalog;
use super::tabled::Tabled;
use super::{Inner, Store};

/// Frames that may hold something, and the seq up to which that is all.
type Found = (Vec<FramePlace>, Seq);
/// Which frames may hold something, asked of the places.
type FramesQuestion<'a> = dyn Fn(&Places) -> Result<Vec<FramePlace>, Bypassed> + 'a;

/// Events from which on an index is worth its file.
const INDEX_EVENT_COUNT_MIN: u64 = 4096;
/// How long an index that could not be had is left alone, the first time and at most; doubled each time.
const RETRY_MIN: Duration = Duration::from_millis(250);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// How long a handle that only reads keeps those who write from owning the index.
const READING_MAX: Duration = Duration::from_secs(10);
/// Places in the catalog from which on it is worth forgetting what the index knows.
const FORGET_PLACE_COUNT: usize = 16_384;

/// The index, if this handle uses one.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Whether this handle uses an index.
    enabled: bool,
    /// Whether it only looks things up in it; then since when, and for how long others go without.
    is_reading: bool,
    opened: Option<Instant>,
    index: Option<Arc<Index>>,
    indexer: Option<Indexer>,
    /// Why there is no index, in a line.
    reason: Option<String>,
    /// When to try to own it again.
    retry: Option<Retry>,
    /// When a small store was last looked through for an index that another process made.
    looked: Option<Instant>,
    /// The index answers up to here.
    base: Seq,
    /// Complete segments after the base that are known by their tables.
    tabled: Tabled,
    delta: Catalog,
    /// How large the catalog may become until the base moves.
    forget_at: usize,
    /// End of the last frame in the catalog, if everything up to there was sound: where to read on.
    resume: Option<Position>,
}

/// What is known of one stream without decoding it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct StreamPlace {
    pub(super) stream: StreamId,
    pub(super) first: FramePlace,
    pub(super) head: Seq,
}

impl Places {
    pub(super) fn new(enabled: bool, is_reading: bool) -> Self {
        Self { enabled, is_reading, forget_at: FORGET_PLACE_COUNT, ..Self::default() }
    }

    /// Leaves the index alone for a while.
    fn postpone(&mut self, why: String) {
        self.reason = Some(why);
        self.retry = Some(Retry::after(self.retry));
    }

    /// Moves the base to where the index is, and forgets what lies below.
    fn advance_base(&mut self) {
        let Some(index) = &self.index else { return };
        let base = index.watermark().seq.min(self.delta.watermark);
        if base > self.base {
            self.base = base;
            self.delta.forget(base);
        }
        // An index that is far behind is not asked at each commit.
        self.forget_at = self.delta.place_count().saturating_mul(2).max(FORGET_PLACE_COUNT);
    }

    fn drop_index(&mut self, why: &Bypassed) {
        self.postpone(why.reason.clone());
        self.opened = None;
        self.indexer = None;
        self.index = None;
        self.base = Seq::ZERO;
        self.tabled = Tabled::default();
        self.delta = Catalog::default();
        self.forget_at = FORGET_PLACE_COUNT;
        self.resume = None;
    }
}

/// When an index is tried again.
#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Instant,
    pause: Duration,
}

impl Retry {
    fn after(last: Option<Self>) -> Self {
        let pause = last.map_or(RETRY_MIN, |last| last.pause.saturating_mul(2).min(RETRY_MAX));
        let now = Instant::now();
        Self { at: now.checked_add(pause).unwrap_or(now), pause }
    }
}

impl Inner {
    fn identity(&self) -> Identity {
        Identity { store: self.log.store(), format: FORMAT_VERSION }
    }

    /// Opens the index if it is there, or worth making.
    fn open_index(&self, places: &mut Places, head: Seq) {
        if !places.enabled
            || places.index.is_some()
            || places.retry.is_some_and(|retry| Instant::now() < retry.at)
        {
            return;
        }
        if head.get() < INDEX_EVENT_COUNT_MIN {
            // Not at each commit: the look costs as much as the commit's own system calls.
            if places.looked.is_some_and(|looked| looked.elapsed() < RETRY_MIN) {
                return;
            }
            places.looked = Some(Instant::now());
            if !self.has_index_file() {
                return;
            }
        }
        let opened = if places.is_reading {
            Index::open_reading_for(&self.log, IndexOptions::default())
        } else {
            Index::open_for(&self.log, IndexOptions::default())
        };
        match opened {
            IndexState::Bypassed(why) => places.postpone(why.reason),
            IndexState::Evidence(evidence) => {
                places.postpone(format!("the index is kept and not used: {evidence}"));
            }
            IndexState::Owner(index) => {
                places.reason = index.notice().map(str::to_owned);
                if places.is_reading {
                    places.opened = Some(Instant::now());
                } else {
                    let source = Arc::clone(&self.log);
                    places.indexer =
                        Indexer::start(Arc::clone(&index), source, IndexerOptions::default()).ok();
                }
                let watermark = index.watermark();
                places.index = Some(index);
                if places.delta.watermark < watermark.seq {
                    places.tabled = Tabled::default();
                    places.delta = Catalog::after(watermark.seq);
                    places.base = watermark.seq;
                    places.resume = watermark.end;
                } else {
                    // Taken over from another process: what was read meanwhile need not be read again.
                    places.advance_base();
                }
            }
        }
    }

    fn has_index_file(&self) -> bool {
        self.log.storage().open(INDEX_NAME, Access::Read).is_ok()
    }

    /// Lets go of an index that was only looked into for a while: somebody may want to write it.
    fn let_index_go(&self) {
        let is_due = |places: &Places| places.opened.is_some_and(|opened| opened.elapsed() > READING_MAX);
        if !is_due(&self.places.read().unwrap_or_else(PoisonError::into_inner)) {
            return;
        }
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        if is_due(&places) {
            places.drop_index(&Bypassed { reason: "the index was left to those who write".to_owned() });
            places.enabled = false;
        }
    }

    /// Whether it is known where the streams are past `after`; with `by_index` also if an index may know.
    pub(super) fn knows_places(&self, after: Seq, by_index: bool) -> bool {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        places.delta.watermark > after || by_index && places.enabled
    }

    /// Tells the index that there is something new. Never waits.
    pub(super) fn nudge_index(&self) {
        if let Ok(places) = self.places.try_read()
            && let Some(indexer) = &places.indexer
        {
            indexer.nudge();
        }
    }

    /// Brings the places up to the durable head and returns it.
    pub(super) fn catch_up_places(&self) -> Result<Seq, Error> {
        let until = self.log.refresh()?;
        {
            let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
            if places.delta.watermark >= until.seq {
                return Ok(until.seq);
            }
        }
        let mut places = self.places.write().unwrap_or_else(PoisonError::into_inner);
        self.open_index(&mut places, until.seq);
        if let Some(indexer) = &places.indexer {
            indexer.nudge();
        }
        if places.delta.watermark >= until.seq {
            return Ok(until.seq);
        }
        self.attach_tables(&mut places)?;
        let from = places.delta.watermark.next();
        let frames = match places.resume {
            Some(end) => self.log.frames(end, until).skip_before(from),
            None => self.log.frames_from(from, until)?,
        };
        let mut resume = None;
        let mut sound = true;
        for frame in frames {
            match frame {
                Ok(frame) => {
                    places.delta.observe(&frame);
                    resume = Some(frame.header().end());
                    // Whoever asks where a stream is reads it next.
                    self.cache().keep_if_room(&frame);
                }
                // What can be read is served.
                Err(error @ LogError::Corrupt(_)) => {
                    sound = false;
                    self.note_damage(error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        places.resume = resume.filter(|_| sound);
        places.delta.watermark = places.delta.watermark.max(until.seq);
        if places.delta.place_count() >= places.forget_at {
            places.advance_base();
        }
        Ok(until.seq)
    }

    /// Takes in the tables of complete segments, instead of their frames, as long as nothing of them has been read.
    fn attach_tables(&self, places: &mut Places) -> Result<(), Error> {
        loop {
            let from = places.delta.watermark.next();
            let Some(segment) = self.log.complete_segment(from)? else { return Ok(()) };
            let known = segment.first_seq < from && places.delta.place_count() > 0;
            if known || !places.tabled.attach(&self.log, segment)? {
                return Ok(());
            }
            places.delta.watermark = segment.last_seq;
            places.resume = Some(SegmentHeader::start(segment.number.saturating_add(1)));
        }
    }

    /// Asks the places, brought up to the durable head.
    fn ask<T>(&self, question: &dyn Fn(&Places) -> Result<T, Bypassed>) -> Result<(T, Seq), Error> {
        self.let_index_go();
        self.catch_up_places()?;
        self.ask_known(question)
    }

    /// Asks the places as they are known; an index that fails is dropped and the question asked again.
    fn ask_known<T>(&self, question: &dyn Fn(&Places) -> Result<T, Bypassed>) -> Result<(T, Seq), Error> {
        let failed = {
            let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
            match question(&places) {
                Ok(answer) => return Ok((answer, places.delta.watermark)),
                Err(why) => why,
            }
        };
        self.places.write().unwrap_or_else(PoisonError::into_inner).drop_index(&failed);
        self.catch_up_places()?;
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        match question(&places) {
            Ok(answer) => Ok((answer, places.delta.watermark)),
            Err(why) => Err(Error::Corrupt { detail: why.reason }),
        }
    }

    /// Frames with events of `streams` past `after`, oldest first, and the seq up to which that is all.
    pub(super) fn frames_of(
        &self,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<(Vec<FramePlace>, Seq), Error> {
        self.ask_frames(streams, after, &|question| self.ask(question))
    }

    /// The same as it is known, without a look at what other processes did: for those whose commit says up to where they
    /// looked, and is refused if there was more.
    pub(super) fn known_frames_of(
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
        let answer = ask(&|places: &Places| {
            let mut found = Vec::new();
            if after < places.base
                && let Some(index) = &places.index
            {
                for stream in streams {
                    let known = index.frames_of(*stream, after)?;
                    found.extend(known.into_iter().filter(|place| place.last_seq <= places.base));
                }
            }
            let past = after.max(places.base);
            for stream in streams {
                match places.tabled.frames_of(&self.log, *stream, past) {
                    Ok(known) => found.extend(known),
                    Err(error) => *failed.borrow_mut() = Some(error),
                }
            }
            found.extend(places.delta.frames_of(streams, past));
            if !found.is_sorted_by(|left, right| left < right) {
                found.sort_unstable();
                found.dedup();
            }
            Ok(found)
        });
        failed.into_inner().map_or(answer, Err)
    }

    /// All frames with events past `after`.
    pub(super) fn all_frames(&self, after: Seq) -> Result<(Vec<FramePlace>, Seq), Error> {
        let streams: Vec<StreamId> = self.stream_places()?.iter().map(|place| place.stream).collect();
        self.frames_of(&streams, after)
    }

    /// All streams, in order of their first event.
    pub(super) fn stream_places(&self) -> Result<Vec<StreamPlace>, Error> {
        let (found, _) = self.ask(&|places| {
            let mut found: Vec<StreamPlace> = Vec::new();
            let mut known = rustc_hash::FxHashMap::default();
            if let Some(index) = &places.index {
                for entry in index.streams()? {
                    // What the index knows beyond the base is in the delta, too.
                    if entry.first_seq <= places.base {
                        known.insert(entry.stream, found.len());
                        found.push(StreamPlace {
                            stream: entry.stream,
                            first: entry.first_frame,
                            head: entry.head,
                        });
                    }
                }
            }
            for place in places.tabled.streams().iter().filter(|place| place.head > places.base) {
                if let Some(old) = known.get(&place.stream).and_then(|at: &usize| found.get_mut(*at)) {
                    old.head = old.head.max(place.head);
                } else {
                    known.insert(place.stream, found.len());
                    found.push(*place);
                }
            }
            for stream in places.delta.streams() {
                let Some(fresh) = places.delta.stream(*stream) else { continue };
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

    /// Where the frame of a seq begins, if the index is open and knows. Asking it opens nothing.
    pub(super) fn known_place(&self, seq: Seq) -> Option<Position> {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let index = places.index.as_ref().filter(|index| seq > Seq(1) && seq <= index.watermark().seq)?;
        index.place_of(seq).ok().flatten().map(|place| place.position)
    }

    /// As [`Store::named`].
    fn named(&self, kind: NameKind, text: &str, prefix: bool, limit: usize) -> Option<Vec<NameEntry>> {
        self.catch_up_places().ok()?;
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let index = places.index.as_ref()?;
        if index.watermark().seq < places.delta.watermark {
            return None;
        }
        index.names(kind, text, prefix, limit).ok()
    }

    /// Whether the index is used, and if not, why.
    pub(super) fn index_state(&self) -> String {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        match (&places.index, &places.reason) {
            (Some(index), _) => format!("used, up to {}", index.watermark().seq),
            (None, Some(reason)) => reason.clone(),
            (None, None) if !places.enabled => "not used by this handle".to_owned(),
            (None, None) => format!("not needed below {INDEX_EVENT_COUNT_MIN} events"),
        }
    }
}

impl Store {
    /// What was wrong with the index, in a line for a person; `None` if nothing was. Answers do not depend on it.
    pub fn index_notice(&self) -> Option<String> {
        self.inner.places.read().unwrap_or_else(PoisonError::into_inner).reason.clone()
    }

    /// The seq up to which the index of this handle knows all; [`Seq::ZERO`] without one.
    pub fn indexed_until(&self) -> Seq {
        let places = self.inner.places.read().unwrap_or_else(PoisonError::into_inner);
        places.index.as_ref().map_or(Seq::ZERO, |index| index.watermark().seq)
    }

    /// Waits until the index has come to the head, at most `limit`. `false`: there is no index, or it has not.
    ///
    /// Answers never depend on it; for measurements, and before a copy of the folder is made.
    pub fn wait_for_index(&self, limit: Duration) -> bool {
        let started = Instant::now();
        loop {
            let Ok(head) = self.inner.catch_up_places() else { return false };
            self.inner.nudge_index();
            let index = self.inner.places.read().unwrap_or_else(PoisonError::into_inner).index.clone();
            match index {
                Some(index) if index.watermark().seq >= head => return true,
                Some(index) if index.broken().is_none() && started.elapsed() < limit => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => return false,
            }
        }
    }

    /// Streams whose events bear a name, as the index knows them: at most `limit`, each with its newest such event.
    ///
    /// `None` if there is no index, or it does not go up to the head: then only a fold can tell. A name that is not found is
    /// a hint, not a proof.
    pub fn named(&self, kind: NameKind, text: &str, prefix: bool, limit: usize) -> Option<Vec<NameEntry>> {
        self.inner.named(kind, text, prefix, limit)
    }

    /// What the index knows and the log does not: evidence that the log was rolled back, or that an older copy of it was put
    /// in its place. Such an index is kept as it is, and answers come from the log, until
    /// [`Store::discard_evidence`]. Cost: about 1 ms if there is an index that this handle does not use.
    pub fn index_evidence(&self) -> Option<Evidence> {
        if self.inner.places.read().unwrap_or_else(PoisonError::into_inner).index.is_some() {
            return None;
        }
        Index::evidence(&self.inner.log, IndexOptions::default())
    }

    /// Gives an index that is evidence another name, and so saved folds and ledgers that contradict the log: a person has said
    /// that it is explained. The next handle makes new ones. Returns the new names.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Busy`] if another process holds the index; [`Error::Io`].
    pub fn discard_evidence(&self) -> Result<Vec<String>, Error> {
        self.inner.check_writable()?;
        let mut names = Vec::new();
        if self.index_evidence().is_some() {
            let name = set_aside(&**self.inner.log.storage());
            names.push(name.map_err(|why| Error::Busy { detail: why.reason })?);
            self.inner.places.write().unwrap_or_else(PoisonError::into_inner).retry = None;
        }
        names.extend(self.set_saved_aside()?);
        Ok(names)
    }

    /// Makes the index anew from the log, and replaces the old one once the new one is proven.
    ///
    /// # Errors
    /// [`Error::RolledBack`] if the old one is evidence; [`Error::ReadOnly`]; [`Error::Busy`] if another process holds the index, or the log cannot be read; the old index stays.
    pub fn reindex(&self) -> Result<Rebuilt, Error> {
        let inner = &self.inner;
        let mut places = inner.places.write().unwrap_or_else(PoisonError::into_inner);
        let read_only =
            |detail: &str| Error::ReadOnly { path: inner.root.clone(), detail: detail.to_owned() };
        if inner.recovery.read_only {
            return Err(read_only("it is open for reading only"));
        }
        if !places.enabled {
            return Err(read_only("this handle uses no index"));
        }
        places.drop_index(&Bypassed { reason: "the index is being rebuilt".to_owned() });
        let head = inner.log.refresh()?;
        if let Some(evidence) = Index::evidence(&inner.log, IndexOptions::default()) {
            return Err(Error::RolledBack { detail: evidence.detail });
        }
        let rebuilt = reindex(&**inner.log.storage(), inner.identity(), &*inner.log, IndexOptions::default())
            .map_err(|why| Error::Busy { detail: why.reason });
        (places.retry, places.reason, places.looked) = (None, None, None);
        inner.open_index(&mut places, head.seq);
        rebuilt
    }
}

#[cfg(test)]
impl Places {
    /// Indexes all that the catalog knows, and moves the base there.
    pub(super) fn index_all_for_test(&mut self, inner: &Inner) {
        use crate::index::{Durability, FrameSource as _, rows_of};
        let index = self.index.as_ref().expect("an index");
        while index.watermark().seq < self.delta.watermark {
            let frames = inner.log.frames_after(index.watermark().end, 1 << 20).expect("frames");
            let rows: Vec<_> = frames.iter().map(|frame| rows_of(frame, inner.log.secret())).collect();
            // The thread may have been faster.
            let _ = index.apply(&rows, Durability::None);
        }
        self.advance_base();
    }

    pub(super) const fn delta_place_count_for_test(&self) -> usize {
        self.delta.place_count()
    }
}
