//! Where the events of a stream are: the index as far as it goes, a catalog of the rest.
//!
//! ```text
//! seq 1 ........ base | base+1 ........ head
//!       index.redb    |   catalog, in memory, from the log's envelopes
//! ```
//!
//! Without a usable index `base` is 0 and the catalog holds everything. An index that fails on the way is dropped and the
//! catalog begun anew: the caller notices nothing but time.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};

use crate::codec::FORMAT_VERSION;
use crate::error::Error;
use crate::ids::{Position, Seq, StreamId};
use crate::index::{
    Bypassed, FramePlace, Identity, Index, IndexOptions, IndexState, Indexer, IndexerOptions, Lookup as _,
    NameEntry, NameKind, Rebuilt, reindex,
};
use crate::log::LogError;

use super::catalog::Catalog;
use super::{Inner, Store};

/// Events from which on an index is worth its file.
const INDEX_EVENT_COUNT_MIN: u64 = 4096;

/// The index, if this handle uses one.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// Where the index file is; `None`: this handle uses none.
    path: Option<PathBuf>,
    index: Option<Arc<Index>>,
    indexer: Option<Indexer>,
    /// Why there is no index, in a line.
    reason: Option<String>,
    tried: bool,
    /// The index answers up to here.
    base: Seq,
    delta: Catalog,
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
    pub(super) fn new(path: Option<PathBuf>) -> Self {
        Self { path, ..Self::default() }
    }

    fn drop_index(&mut self, why: &Bypassed) {
        self.reason = Some(why.reason.clone());
        self.indexer = None;
        self.index = None;
        self.base = Seq::ZERO;
        self.delta = Catalog::default();
        self.resume = None;
    }
}

impl Inner {
    fn identity(&self) -> Identity {
        Identity { store: self.log.store(), format: FORMAT_VERSION }
    }

    /// Opens the index if it is there, or worth making.
    fn open_index(&self, places: &mut Places, head: Seq) {
        let Some(path) = places.path.clone() else { return };
        if places.tried || (!path.exists() && head.get() < INDEX_EVENT_COUNT_MIN) {
            return;
        }
        places.tried = true;
        match Index::open_for(&self.log, &path, IndexOptions::default()) {
            IndexState::Bypassed(why) => places.reason = Some(why.reason),
            IndexState::Owner(index) => {
                places.reason = index.notice().map(str::to_owned);
                let source = Arc::clone(&self.log);
                places.indexer = Indexer::start(Arc::clone(&index), source, IndexerOptions::default()).ok();
                places.base = index.watermark().seq;
                places.delta = Catalog::default();
                places.delta.watermark = places.base;
                // Without this the way to where the index ends would lead through the whole segment.
                let last = index.place_of(places.base).ok().flatten();
                let last = last.and_then(|place| self.log.frame_at(place.position).ok());
                places.resume = last.map(|frame| frame.header().end());
                places.index = Some(index);
            }
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
        Ok(until.seq)
    }

    /// Asks the places; an index that fails is dropped and the question asked again.
    fn ask<T>(&self, question: &dyn Fn(&Places) -> Result<T, Bypassed>) -> Result<(T, Seq), Error> {
        self.catch_up_places()?;
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
        self.ask(&|places| {
            let mut found = Vec::new();
            if after < places.base
                && let Some(index) = &places.index
            {
                for stream in streams {
                    let known = index.frames_of(*stream, after)?;
                    found.extend(known.into_iter().filter(|place| place.last_seq <= places.base));
                }
                if streams.len() > 1 {
                    found.sort_unstable();
                    found.dedup();
                }
            }
            found.extend(places.delta.frames_of(streams, after.max(places.base)));
            Ok(found)
        })
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
        let index = places.index.as_ref().filter(|_| seq > Seq(1) && seq <= places.base)?;
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
            (None, None) if places.path.is_none() => "not used by this handle".to_owned(),
            (None, None) => format!("not needed below {INDEX_EVENT_COUNT_MIN} events"),
        }
    }
}

impl Store {
    /// What was wrong with the index, in a line for a person; `None` if nothing was. Answers do not depend on it.
    pub fn index_notice(&self) -> Option<String> {
        self.inner.places.read().unwrap_or_else(PoisonError::into_inner).reason.clone()
    }

    /// Streams whose events bear a name, as the index knows them: at most `limit`, each with its newest such event.
    ///
    /// `None` if there is no index, or it does not go up to the head: then only a fold can tell. A name that is not found is
    /// a hint, not a proof.
    pub fn named(&self, kind: NameKind, text: &str, prefix: bool, limit: usize) -> Option<Vec<NameEntry>> {
        self.inner.named(kind, text, prefix, limit)
    }

    /// Makes the index anew from the log, and replaces the old one once the new one is proven.
    ///
    /// # Errors
    /// [`Error::ReadOnly`]; [`Error::Busy`] if another process holds the index, or the log cannot be read; the old index stays.
    pub fn reindex(&self) -> Result<Rebuilt, Error> {
        let inner = &self.inner;
        let mut places = inner.places.write().unwrap_or_else(PoisonError::into_inner);
        let read_only =
            |detail: &str| Error::ReadOnly { path: inner.root.clone(), detail: detail.to_owned() };
        if inner.recovery.read_only {
            return Err(read_only("it is open for reading only"));
        }
        let path = places.path.clone().ok_or_else(|| read_only("this handle uses no index"))?;
        places.drop_index(&Bypassed { reason: "the index is being rebuilt".to_owned() });
        places.reason = None;
        let head = inner.log.refresh()?;
        let rebuilt = reindex(&path, inner.identity(), &*inner.log, IndexOptions::default())
            .map_err(|why| Error::Busy { detail: why.reason });
        places.tried = false;
        inner.open_index(&mut places, head.seq);
        rebuilt
    }
}
