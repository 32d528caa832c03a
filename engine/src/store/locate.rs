//! Where the events of a stream are, as the log's places say; and the index, which knows streams by names.
//!
//! The index is opened for a question about a name, and by a handle that writes. If another process owns it, this handle tries again at growing
//! intervals, so one of the handles takes the index over when its owner ends. Answers never depend on it.

use std::sync::{Arc, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use crate::codec::Frame;
use crate::error::Error;
use crate::ids::{Seq, StreamId};
use crate::index::{
    Bypassed, FramePlace, INDEX_NAME, Identity, Index, IndexOptions, IndexState, Indexer, IndexerOptions,
    NameEntry, NameKind, Rebuilt, Unchanged, as_kept, reindex,
};
use crate::locks::{renewed_read, renewed_write};
use crate::log::StreamPlace;
use crate::storage::Access;

use super::index_use::{IndexUse, RETRY_MIN};
use super::{Store, StoreInner};

/// A store with fewer events gets no index: reading it is as fast.
const INDEX_EVENT_COUNT_MIN: u64 = 4096;
/// Most frames past the index's watermark that are read to learn their streams: of more, the list of all streams is asked.
const NEWER_FRAME_COUNT_MAX: usize = 256;
/// How long a handle that only reads may keep writers from owning the index.
const READING_MAX: Duration = Duration::from_secs(10);

impl StoreInner {
    /// Opens the index if it is there, or worth making.
    fn open_index(&self, names: &mut IndexUse, head: Seq) {
        if !names.may_open() {
            return;
        }
        if head.get() < INDEX_EVENT_COUNT_MIN {
            // Not at each commit: the look costs as much as the commit's own system calls.
            if names.looked.is_some_and(|looked| looked.elapsed() < RETRY_MIN) {
                return;
            }
            names.looked = Some(Instant::now());
            if !self.has_index_file() {
                return;
            }
        }
        let opened = if names.is_reading {
            Index::open_reading_for(&self.log, IndexOptions::default())
        } else {
            Index::open_for(&self.log, IndexOptions::default())
        };
        match opened {
            IndexState::Bypassed(why) => names.postpone(why.reason),
            IndexState::Owner(index) => {
                names.reason = index.notice().map(str::to_owned);
                if names.is_reading {
                    names.opened = Some(Instant::now());
                } else {
                    let source = Arc::clone(&self.log);
                    names.indexer =
                        // Without its thread the index stays as it is.
                        Indexer::start(Arc::clone(&index), source, IndexerOptions::default()).ok();
                }
                names.index = Some(index);
            }
        }
    }

    /// The index, to ask it. After a panic in the middle of a change it is left alone for a while.
    fn names(&self) -> RwLockReadGuard<'_, IndexUse> {
        renewed_read(&self.names, begin_anew)
    }

    /// The index, to change its use. As [`StoreInner::names`].
    fn names_mut(&self) -> RwLockWriteGuard<'_, IndexUse> {
        renewed_write(&self.names, begin_anew)
    }

    fn has_index_file(&self) -> bool {
        self.log.storage().open(INDEX_NAME, Access::Read).is_ok()
    }

    /// Closes an index that is open for reading, after a while: another process may want to write it.
    fn let_index_go(&self) {
        let is_due = |names: &IndexUse| names.opened.is_some_and(|opened| opened.elapsed() > READING_MAX);
        if !is_due(&self.names()) {
            return;
        }
        let mut names = self.names_mut();
        if is_due(&names) {
            names.drop_index(&Bypassed { reason: "the index was left to those who write".to_owned() });
            names.enabled = false;
        }
    }

    /// Tells the indexer that the log has grown, and starts it if it is due. Never waits.
    pub(super) fn nudge_index(&self) {
        let is_due = {
            // The next commit nudges the indexer, here and below.
            let Ok(names) = self.names.try_read() else { return };
            if let Some(indexer) = &names.indexer {
                indexer.nudge();
            }
            names.may_open() && !names.is_reading
        };
        if is_due && let Ok(mut names) = self.names.try_write() {
            self.open_index(&mut names, self.log.head().seq);
        }
    }

    /// The index, open if it may be, and the durable head.
    pub(super) fn open_names(&self) -> Result<(Option<Arc<Index>>, Seq), Error> {
        self.let_index_go();
        let until = self.log.refresh()?.seq;
        let known = {
            let names = self.names();
            names.index.is_some() || !names.may_open()
        };
        if !known {
            self.open_index(&mut self.names_mut(), until);
        }
        let names = self.names();
        if let Some(indexer) = &names.indexer {
            indexer.nudge();
        }
        Ok((names.index.clone(), until))
    }

    /// Takes up a frame that this handle wrote and that is durable, so that it is not read back.
    pub(super) fn take_own_frame(&self, frame: &Frame) {
        if self.log.enter_own(frame) {
            self.cache().keep_if_room(frame);
        }
    }

    /// Takes note of damage that was met while places were looked for, and gives the answer.
    fn placed<T>(&self, answer: T) -> T {
        for detail in self.log.take_places_damage() {
            self.note_damage(detail);
        }
        answer
    }

    /// Frames with events of `streams` past `after`, oldest first, and the seq up to which these are all.
    pub(super) fn frames_of(
        &self,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<(Vec<FramePlace>, Seq), Error> {
        self.log.refresh()?;
        self.known_frames_of(streams, after)
    }

    /// As [`StoreInner::frames_of`], without a look for commits of other processes. For callers whose commit carries a condition:
    /// the log refuses it if another process wrote meanwhile.
    pub(super) fn known_frames_of(
        &self,
        streams: &[StreamId],
        after: Seq,
    ) -> Result<(Vec<FramePlace>, Seq), Error> {
        Ok(self.placed(self.log.frames_of(streams, after)?))
    }

    /// Frames that hold the newest `count` events of a stream, oldest first; perhaps more of them.
    pub(super) fn last_frames_of(&self, stream: StreamId, count: usize) -> Result<Vec<FramePlace>, Error> {
        self.log.refresh()?;
        Ok(self.placed(self.log.last_frames_of(stream, count)?))
    }

    /// All frames with events past `after`.
    pub(super) fn all_frames(&self, after: Seq) -> Result<(Vec<FramePlace>, Seq), Error> {
        self.log.refresh()?;
        Ok(self.placed(self.log.all_frames(after)?))
    }

    /// One stream; `None` if it has no events.
    pub(super) fn stream_place(&self, stream: StreamId) -> Result<Option<StreamPlace>, Error> {
        self.log.refresh()?;
        Ok(self.placed(self.log.stream_place(stream)?))
    }

    /// All streams, in order of their first event.
    pub(super) fn stream_places(&self) -> Result<Vec<StreamPlace>, Error> {
        self.log.refresh()?;
        Ok(self.placed(self.log.stream_places()?))
    }

    /// The streams with events past `after`.
    fn streams_past(&self, after: Seq) -> Result<Vec<StreamId>, Error> {
        let (places, _) = self.all_frames(after)?;
        if places.len() > NEWER_FRAME_COUNT_MAX {
            let newer = self.stream_places()?.into_iter().filter(|place| place.head > after);
            return Ok(newer.map(|place| place.stream).collect());
        }
        let mut streams = Vec::new();
        for place in places {
            if let Some(frame) = self.sound_frame_at(place.position)? {
                streams.extend(frame.streams());
            }
        }
        Ok(streams)
    }

    /// As [`Store::named`].
    fn named(&self, kind: NameKind, text: &str, prefix: bool, limit: usize) -> Option<Vec<NameEntry>> {
        // The caller folds instead, and reports read errors.
        let (index, head) = self.open_names().ok()?;
        let index = index.filter(|index| index.watermark().seq >= head)?;
        let found = index.names(kind, as_kept(text), prefix, limit);
        // As above.
        found.map_err(|why| self.names_mut().drop_index(&why)).ok()
    }

    /// Whether the index is used, and if not, why.
    pub(super) fn index_state(&self) -> String {
        let names = self.names();
        match (&names.index, &names.reason) {
            (Some(index), _) => format!("used, up to {}", index.watermark().seq),
            (None, Some(reason)) => reason.clone(),
            (None, None) if !names.enabled => "not used by this handle".to_owned(),
            (None, None) => format!("not needed below {INDEX_EVENT_COUNT_MIN} events"),
        }
    }
}

fn begin_anew(names: &mut IndexUse) {
    names.drop_index(&Bypassed { reason: "a thread panicked while it looked for names".to_owned() });
}

impl Store {
    /// Why the index is not used, in one line for people; `None` if it is used or not needed. Answers do not depend on it.
    pub fn index_notice(&self) -> Option<String> {
        self.inner.names().reason.clone()
    }

    /// The watermark of this handle's index; [`Seq::ZERO`] without one.
    pub fn indexed_until(&self) -> Seq {
        let names = self.inner.names();
        names.index.as_ref().map_or(Seq::ZERO, |index| index.watermark().seq)
    }

    /// Waits until the index has reached the head, at most `limit`. `false`: there is no index, or it is still behind.
    ///
    /// Answers never depend on it; for measurements, and before a copy of the folder is made.
    pub fn wait_for_index(&self, limit: Duration) -> bool {
        let started = Instant::now();
        loop {
            let Ok((index, head)) = self.inner.open_names() else { return false };
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
        let (Some(index), _) = self.inner.open_names()? else { return Ok(None) };
        // Read before the names: an event that comes in between is counted twice rather than not at all.
        let known = index.watermark().seq;
        let Ok(entries) = index.names(kind, as_kept(text), true, limit) else { return Ok(None) };
        if entries.len() >= limit {
            return Ok(None);
        }
        let newer = self.inner.streams_past(known)?;
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
        let mut names = inner.names_mut();
        let read_only =
            |detail: &str| Error::ReadOnly { path: inner.root.clone(), detail: detail.to_owned() };
        if inner.recovery.read_only {
            return Err(read_only("it is open for reading only"));
        }
        if !names.enabled {
            return Err(read_only("this handle uses no index"));
        }
        names.drop_index(&Bypassed { reason: "the index is being rebuilt".to_owned() });
        let head = inner.log.refresh()?;
        let (storage, identity) = (inner.log.storage(), Identity::of(&inner.log));
        let rebuilt = reindex(&**storage, identity, &*inner.log, IndexOptions::default())
            .map_err(|why| inner.unchanged(why));
        (names.retry, names.reason, names.looked) = (None, None, None);
        inner.open_index(&mut names, head.seq);
        rebuilt
    }
}

impl StoreInner {
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
