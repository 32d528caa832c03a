//! Where the events of a stream are: in the index, in tables of complete segments, or in the tail that was read.
//!
//! ```text
//! seq 1 ........ base | base+1 ........ base+n | ........ head
//!       index.redb    |   segment tables       |   tail: a map in memory, from the log's envelopes
//! ```
//!
//! Without a usable index `base` is 0; segment tables and the tail then cover the whole log. If the index fails during a
//! look-up, it is dropped and the question is asked again without it. If another process owns the index, this handle tries
//! again while the log grows, at growing intervals; so one of the handles takes the index over when its owner ends. Once the
//! tail has grown, the base moves up to the index's watermark, and the tail forgets the frames below.

use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use crate::codec::{Frame, SegmentHeader};
use crate::error::Error;
use crate::ids::{Position, Seq, StreamId};
use crate::index::{
    Bypassed, FramePlace, INDEX_NAME, Identity, Index, IndexOptions, IndexState, Indexer, IndexerOptions,
    Lookup as _, NameEntry, NameKind, Rebuilt, Unchanged, as_kept, reindex,
};
use crate::locks::{renewed_read, renewed_write};
use crate::log::LogError;
use crate::storage::Access;

use super::locator::{Locator, RETRY_MIN, SegmentFrames, StreamPlace, TailFrames, Unanswered};
use super::{Inner, Store};

/// A store with fewer events gets no index: reading it is as fast.
const INDEX_EVENT_COUNT_MIN: u64 = 4096;
/// How long a handle that only reads may keep writers from owning the index.
const READING_MAX: Duration = Duration::from_secs(10);

impl Inner {
    /// Opens the index if it is there, or worth making.
    fn open_index(&self, locator: &mut Locator, head: Seq) {
        if !locator.enabled
            || locator.index.is_some()
            || locator.retry.is_some_and(|retry| Instant::now() < retry.at)
        {
            return;
        }
        if head.get() < INDEX_EVENT_COUNT_MIN {
            // Not at each commit: the look costs as much as the commit's own system calls.
            if locator.looked.is_some_and(|looked| looked.elapsed() < RETRY_MIN) {
                return;
            }
            locator.looked = Some(Instant::now());
            if !self.has_index_file() {
                return;
            }
        }
        let opened = if locator.is_reading {
            Index::open_reading_for(&self.log, IndexOptions::default())
        } else {
            Index::open_for(&self.log, IndexOptions::default())
        };
        match opened {
            IndexState::Bypassed(why) => locator.postpone(why.reason),
            IndexState::Owner(index) => {
                locator.reason = index.notice().map(str::to_owned);
                if locator.is_reading {
                    locator.opened = Some(Instant::now());
                } else {
                    let source = Arc::clone(&self.log);
                    locator.indexer =
                        // Without its thread the index stays as it is, and the tail has the rest.
                        Indexer::start(Arc::clone(&index), source, IndexerOptions::default()).ok();
                }
                let watermark = index.watermark();
                locator.index = Some(index);
                if locator.tail.watermark < watermark.seq {
                    locator.segments = SegmentFrames::default();
                    locator.tail = TailFrames::after(watermark.seq);
                    locator.base = watermark.seq;
                    locator.resume = watermark.end;
                } else {
                    // Taken over from another process: the frames that were read meanwhile stay in the tail.
                    locator.advance_base();
                }
            }
        }
    }

    /// The locator, to ask it. After a panic in the middle of a change it begins anew, and leaves the index alone for a while.
    fn locator(&self) -> RwLockReadGuard<'_, Locator> {
        renewed_read(&self.locator, begin_anew)
    }

    /// The locator, to change it. As [`Inner::locator`].
    fn locator_mut(&self) -> RwLockWriteGuard<'_, Locator> {
        renewed_write(&self.locator, begin_anew)
    }

    fn has_index_file(&self) -> bool {
        self.log.storage().open(INDEX_NAME, Access::Read).is_ok()
    }

    /// Closes an index that is open for reading, after a while: another process may want to write it.
    fn let_index_go(&self) {
        let is_due = |locator: &Locator| locator.opened.is_some_and(|opened| opened.elapsed() > READING_MAX);
        if !is_due(&self.locator()) {
            return;
        }
        let mut locator = self.locator_mut();
        if is_due(&locator) {
            locator.drop_index(&Bypassed { reason: "the index was left to those who write".to_owned() });
            locator.enabled = false;
        }
    }

    /// Whether the places of streams past `after` are known; with `by_index` also if an index may know them.
    pub(super) fn knows_places(&self, after: Seq, by_index: bool) -> bool {
        let locator = self.locator();
        locator.tail.watermark > after || by_index && locator.enabled
    }

    /// Tells the indexer that the log has grown. Never waits.
    pub(super) fn nudge_index(&self) {
        // The next commit nudges the indexer.
        if let Ok(locator) = self.locator.try_read()
            && let Some(indexer) = &locator.indexer
        {
            indexer.nudge();
        }
    }

    /// Brings the locator up to the durable head and returns it.
    pub(super) fn catch_up_locator(&self) -> Result<Seq, Error> {
        let until = self.log.refresh()?;
        {
            let locator = self.locator();
            if locator.tail.watermark >= until.seq {
                return Ok(until.seq);
            }
        }
        let mut locator = self.locator_mut();
        self.open_index(&mut locator, until.seq);
        if let Some(indexer) = &locator.indexer {
            indexer.nudge();
        }
        if locator.tail.watermark >= until.seq {
            return Ok(until.seq);
        }
        self.attach_tables(&mut locator)?;
        let from = locator.tail.watermark.next();
        let frames = match locator.resume {
            Some(end) => self.log.frames(end, until).skip_before(from),
            None => self.log.frames_from(from, until)?,
        };
        let mut resume = None;
        let mut sound = true;
        for frame in frames {
            match frame {
                Ok(frame) => {
                    locator.tail.observe(&frame);
                    resume = Some(frame.header().end());
                    // A caller that asks for a stream's frames reads them next.
                    self.cache().keep_if_room(&frame);
                }
                // Readable events are served all the same.
                Err(error @ LogError::Corrupt(_)) => {
                    sound = false;
                    self.note_damage(error.to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        locator.resume = resume.filter(|_| sound);
        locator.tail.watermark = locator.tail.watermark.max(until.seq);
        locator.forget_known();
        Ok(until.seq)
    }

    /// Takes up a frame that this handle wrote and that is durable, so that it is not read back. A frame that does not follow the
    /// tail, or that would have to wait, is read when it is needed.
    pub(super) fn take_own_frame(&self, frame: &Frame) {
        let Ok(mut locator) = self.locator.try_write() else { return };
        let follows = |locator: &Locator| {
            locator.tail.watermark.next() == frame.first_seq() && locator.resume == Some(frame.position())
        };
        if !follows(&locator) {
            return;
        }
        self.open_index(&mut locator, frame.last_seq());
        // An index that was opened just now may know more, or less.
        if !follows(&locator) {
            return;
        }
        locator.tail.observe(frame);
        locator.resume = Some(frame.header().end());
        locator.forget_known();
        drop(locator);
        self.cache().keep_if_room(frame);
    }

    /// Attaches the tables of complete segments, instead of reading their frames, until a segment is reached whose frames were read.
    fn attach_tables(&self, locator: &mut Locator) -> Result<(), Error> {
        // The last segment has no tables.
        while self.log.head().position.segment() > 1 {
            let from = locator.tail.watermark.next();
            let Some(segment) = self.log.complete_segment(from)? else { return Ok(()) };
            let known = segment.first_seq < from && locator.tail.place_count() > 0;
            if known || !locator.segments.attach(&self.log, segment)? {
                return Ok(());
            }
            locator.tail.watermark = segment.last_seq;
            locator.resume = Some(SegmentHeader::start(segment.number.saturating_add(1)));
        }
        Ok(())
    }

    /// Brings the locator up to the durable head and asks it.
    fn ask<T>(&self, question: &dyn Fn(&Locator) -> Result<T, Unanswered>) -> Result<(T, Seq), Error> {
        self.let_index_go();
        loop {
            let until = self.catch_up_locator()?;
            if let Some(answer) = self.ask_from(until, question)? {
                return Ok(answer);
            }
        }
    }

    /// Asks the locator as it is. If the index fails, brings the locator up to the durable head without it and asks again.
    fn ask_known<T>(&self, question: &dyn Fn(&Locator) -> Result<T, Unanswered>) -> Result<(T, Seq), Error> {
        self.ask_from(Seq::ZERO, question)?.map_or_else(|| self.ask(question), Ok)
    }

    /// The locator's answer. `None`: it has not all events up to `until`, since another thread began it anew, or its index failed and was dropped.
    fn ask_from<T>(
        &self,
        until: Seq,
        question: &dyn Fn(&Locator) -> Result<T, Unanswered>,
    ) -> Result<Option<(T, Seq)>, Error> {
        let failed = {
            let locator = self.locator();
            if locator.tail.watermark < until {
                return Ok(None);
            }
            match question(&locator) {
                Ok(answer) => return Ok(Some((answer, locator.tail.watermark))),
                Err(Unanswered::Log(error)) => return Err(error),
                Err(Unanswered::Index(why)) => why,
            }
        };
        self.locator_mut().drop_index(&failed);
        Ok(None)
    }

    /// Frames with events of `streams` past `after`, oldest first, and the seq up to which these are all.
    pub(super) fn frames_of(
        &self,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<(Vec<FramePlace>, Seq), Error> {
        self.ask(&|locator| locator.frames_of(&self.log, streams, after))
    }

    /// As [`Inner::frames_of`], without a look for commits of other processes. For callers whose commit carries a condition:
    /// the log refuses it if another process wrote meanwhile.
    pub(super) fn known_frames_of(
        &self,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<(Vec<FramePlace>, Seq), Error> {
        self.ask_known(&|locator| locator.frames_of(&self.log, streams, after))
    }

    /// Frames that hold the newest `count` events of a stream, oldest first; perhaps more of them.
    pub(super) fn last_frames_of(&self, stream: StreamId, count: usize) -> Result<Vec<FramePlace>, Error> {
        Ok(self.ask(&|locator| locator.last_frames_of(&self.log, stream, count))?.0)
    }

    /// All frames with events past `after`.
    pub(super) fn all_frames(&self, after: Seq) -> Result<(Vec<FramePlace>, Seq), Error> {
        let streams: Vec<StreamId> = self.stream_places()?.iter().map(|place| place.stream).collect();
        self.frames_of(&streams, after)
    }

    /// One stream; `None` if it has no events.
    pub(super) fn stream_place(&self, stream: StreamId) -> Result<Option<StreamPlace>, Error> {
        Ok(self.ask(&|locator| Ok(locator.stream(stream)?))?.0)
    }

    /// All streams, in order of their first event.
    pub(super) fn stream_places(&self) -> Result<Vec<StreamPlace>, Error> {
        Ok(self.ask(&|locator| Ok(locator.streams()?))?.0)
    }

    /// Where the frame of a seq begins, if the index is open and has it. Opens no index.
    pub(super) fn known_place(&self, seq: Seq) -> Option<Position> {
        let locator = self.locator();
        let index = locator.index.as_ref().filter(|index| seq > Seq(1) && seq <= index.watermark().seq)?;
        // An index that fails is no help: the log is asked.
        index.place_of(seq).ok().flatten().map(|place| place.position)
    }

    /// As [`Store::named`].
    fn named(&self, kind: NameKind, text: &str, prefix: bool, limit: usize) -> Option<Vec<NameEntry>> {
        // The caller folds instead, and reports read errors.
        self.catch_up_locator().ok()?;
        let locator = self.locator();
        let index = locator.index.as_ref()?;
        if index.watermark().seq < locator.tail.watermark {
            return None;
        }
        // As above.
        index.names(kind, as_kept(text), prefix, limit).ok()
    }

    /// Whether the index is used, and if not, why.
    pub(super) fn index_state(&self) -> String {
        let locator = self.locator();
        match (&locator.index, &locator.reason) {
            (Some(index), _) => format!("used, up to {}", index.watermark().seq),
            (None, Some(reason)) => reason.clone(),
            (None, None) if !locator.enabled => "not used by this handle".to_owned(),
            (None, None) => format!("not needed below {INDEX_EVENT_COUNT_MIN} events"),
        }
    }
}

fn begin_anew(locator: &mut Locator) {
    locator.drop_index(&Bypassed { reason: "a thread panicked while it looked for events".to_owned() });
}

impl Store {
    /// Why the index is not used, in one line for people; `None` if it is used or not needed. Answers do not depend on it.
    pub fn index_notice(&self) -> Option<String> {
        self.inner.locator().reason.clone()
    }

    /// The watermark of this handle's index; [`Seq::ZERO`] without one.
    pub fn indexed_until(&self) -> Seq {
        let locator = self.inner.locator();
        locator.index.as_ref().map_or(Seq::ZERO, |index| index.watermark().seq)
    }

    /// Waits until the index has reached the head, at most `limit`. `false`: there is no index, or it is still behind.
    ///
    /// Answers never depend on it; for measurements, and before a copy of the folder is made.
    pub fn wait_for_index(&self, limit: Duration) -> bool {
        let started = Instant::now();
        loop {
            let Ok(head) = self.inner.catch_up_locator() else { return false };
            self.inner.nudge_index();
            let index = self.inner.locator().index.clone();
            match index {
                Some(index) if index.watermark().seq >= head => return true,
                Some(index) if index.broken().is_none() && started.elapsed() < limit => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                _ => return false,
            }
        }
    }

    /// Streams whose events bear a name, as the index knows them: at most `limit`, each with its newest such event. For a name
    /// longer than [`NAME_BYTES_MAX`](crate::index::NAME_BYTES_MAX), names that begin alike are found, too.
    ///
    /// `None` if there is no index, or it does not go up to the head: then only a fold can tell. A name that is not found is
    /// a hint, not a proof.
    #[doc(hidden)]
    pub fn named(&self, kind: NameKind, text: &str, prefix: bool, limit: usize) -> Option<Vec<NameEntry>> {
        self.inner.named(kind, text, prefix, limit)
    }

    /// How many streams there are, the store's own among them.
    ///
    /// # Errors
    /// If the log cannot be read.
    #[doc(hidden)]
    pub fn stream_count(&self) -> Result<usize, Error> {
        Ok(self.inner.stream_places()?.len())
    }

    /// The streams that may have an event with a name that begins with `text`: those that the index knows by such a name, and
    /// those with events that the index does not have yet. In order; no other stream has such an event.
    ///
    /// `None`: there is no index, or it knows `limit` such names or more.
    ///
    /// # Errors
    /// If the log cannot be read.
    #[doc(hidden)]
    pub fn bearers(&self, kind: NameKind, text: &str, limit: usize) -> Result<Option<Vec<StreamId>>, Error> {
        let places = self.inner.stream_places()?;
        let Some(index) = ({
            let locator = self.inner.locator();
            locator.index.clone()
        }) else {
            return Ok(None);
        };
        // Read before the names: an event that comes in between is counted twice rather than not at all.
        let known = index.watermark().seq;
        let Ok(entries) = index.names(kind, as_kept(text), true, limit) else { return Ok(None) };
        if entries.len() >= limit {
            return Ok(None);
        }
        let newer = places.iter().filter(|place| place.head > known).map(|place| place.stream);
        let mut streams: Vec<StreamId> = entries.iter().map(|entry| entry.stream).chain(newer).collect();
        streams.sort_unstable();
        streams.dedup();
        Ok(Some(streams))
    }

    /// Makes the index anew from the log, and replaces the old one once the new one is proven.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Busy`] if another process holds the index; [`Error::Io`] if the disk is full or the log cannot be read; the old
    /// index stays.
    #[doc(hidden)]
    pub fn reindex(&self) -> Result<Rebuilt, Error> {
        let inner = &self.inner;
        let mut locator = inner.locator_mut();
        let read_only =
            |detail: &str| Error::ReadOnly { path: inner.root.clone(), detail: detail.to_owned() };
        if inner.recovery.read_only {
            return Err(read_only("it is open for reading only"));
        }
        if !locator.enabled {
            return Err(read_only("this handle uses no index"));
        }
        locator.drop_index(&Bypassed { reason: "the index is being rebuilt".to_owned() });
        let head = inner.log.refresh()?;
        let (storage, identity) = (inner.log.storage(), Identity::of(&inner.log));
        let rebuilt = reindex(&**storage, identity, &*inner.log, IndexOptions::default())
            .map_err(|why| inner.unchanged(why));
        (locator.retry, locator.reason, locator.looked) = (None, None, None);
        inner.open_index(&mut locator, head.seq);
        rebuilt
    }
}

impl Inner {
    /// The error for an index that stayed as it was.
    fn unchanged(&self, why: Unchanged) -> Error {
        match why {
            Unchanged::Held => Error::Busy { detail: why.to_string() },
            Unchanged::Io { action, path, source } => Error::Io { action, path, source },
            Unchanged::Failed(why) => Error::Io {
                action: "rebuild",
                path: self.log.storage().path(INDEX_NAME),
                source: std::io::Error::other(why),
            },
        }
    }
}

#[cfg(test)]
impl Locator {
    /// Indexes all frames that the tail knows, and moves the base there.
    pub(super) fn index_all_for_test(&mut self, inner: &Inner) {
        use crate::index::{Durability, FrameSource as _, rows_of};
        let index = self.index.as_ref().expect("an index");
        while index.watermark().seq < self.tail.watermark {
            let frames = inner.log.frames_after(index.watermark().end, 1 << 20).expect("frames");
            let rows: Vec<_> = frames.iter().map(|frame| rows_of(frame, inner.log.secret())).collect();
            // The indexer's thread may have been faster.
            let _ = index.apply(&rows, Durability::None);
        }
        self.advance_base();
    }

    pub(super) const fn tail_place_count_for_test(&self) -> usize {
        self.tail.place_count()
    }
}

#[cfg(test)]
mod tests {
    use crate::entry::{Entry, StreamInfo};
    use crate::event::Role;

    use super::*;

    /// Between a thread's look at the log and its question another one began the locator anew: the answer was that there is nothing.
    #[test]
    fn a_question_is_not_asked_of_a_locator_that_another_thread_began_anew() {
        let folder = tempfile::TempDir::new().unwrap();
        let store = Store::builder(folder.path().join("store")).open().unwrap();
        let info = StreamInfo::session("acpdb", "s1");
        let _ = store.append(&info, vec![Entry::message("m1", Role::User, "hello")]).unwrap();
        let inner = &store.inner;
        let question = |locator: &Locator| Ok(locator.stream(info.id())?.is_some());
        let until = inner.catch_up_locator().unwrap();
        assert_eq!(inner.ask_from(until, &question).unwrap(), Some((true, until)));
        inner.locator_mut().drop_index(&Bypassed { reason: "another thread's".to_owned() });
        assert_eq!(inner.ask_from(until, &question).unwrap(), None);
        assert_eq!(inner.ask(&question).unwrap(), (true, until));
    }
}
