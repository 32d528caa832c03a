//! Folds of streams: kept in memory, caught up on demand, saved.
//!
//! A session is folded together with the streams that its view needs: the store's own stream (policy), its project
//! (memory) and, for a fork, the streams it shares history with. Readers take a watermark; events folded later do not show
//! through it.
//!
//! A saved fold is taken up if the log bears it out. Folds are saved behind an answer when they are due, or when a caller asks for it.

use std::sync::Arc;

use super::erasures::ERASED;
use super::kept::{FoldSlot, Loaded};
use super::saved::SavedName;
use super::saving::fold_archive;
use super::{Store, StoreInner};
use crate::codec::Frame;
use crate::codec::payload::Decoder;
use crate::error::Error;
use crate::event::{Lifespan, Payload, Scope, stream_id};
use crate::ids::{Seq, StreamId};
use crate::index::SESSION_OPENED;
use crate::locks::steady;
use crate::log::Looks;

/// The streams and beginnings that a fold turns out to need and does not have.
struct Missing {
    streams: Vec<StreamId>,
    beginnings: bool,
}

impl Missing {
    /// No stream is missing, but the fold met an erasure: a text that it was folded from is gone.
    const NOTHING: Self = Self { streams: Vec::new(), beginnings: false };

    const fn is_nothing(&self) -> bool {
        self.streams.is_empty() && !self.beginnings
    }
}

impl Loaded {
    /// An empty fold of the same streams and the missing ones.
    fn with(&self, missing: Missing) -> Self {
        let streams = self.streams.iter().flatten().copied().chain(missing.streams).collect();
        let beginnings = self.beginnings || missing.beginnings;
        Self { streams: Some(streams), beginnings, bare: self.bare, ..Self::default() }
    }
}

impl StoreInner {
    /// The fold of a stream, with the streams that it depends on, caught up to the durable head.
    pub(super) fn fold(&self, stream: StreamId) -> Result<Arc<Loaded>, Error> {
        let slot = steady(&self.folds).of(stream, |_| true, || FoldSlot::new(stream));
        let head = self.refresh()?;
        let fold = {
            let mut newest = slot.lock();
            self.catch_up_fold(stream, head, &mut newest)?;
            Arc::clone(&newest)
        };
        self.save_later(stream, &slot, &fold);
        let surplus = {
            let mut folds = steady(&self.folds);
            folds.weigh(stream, fold.event_bytes());
            folds.surplus(|slot| !slot.is_shared())
        };
        for (stream, slot) in surplus {
            self.save_leaving(stream, Some(&slot), None);
        }
        Ok(fold)
    }

    /// A fold of one session, without its project's memory, that is not kept: for reading many sessions one by one.
    pub(super) fn fold_once(&self, stream: StreamId) -> Result<Arc<Loaded>, Error> {
        let mut fold = Arc::new(Loaded { bare: true, ..Loaded::of(stream) });
        self.catch_up_fold(stream, self.refresh()?, &mut fold)?;
        Ok(fold)
    }

    /// Folds events up to `head` at least. Views that share the fold keep it as it is.
    fn catch_up_fold(&self, stream: StreamId, head: Seq, newest: &mut Arc<Loaded>) -> Result<(), Error> {
        if newest.watermark >= head {
            return Ok(());
        }
        let fold = Arc::make_mut(newest);
        if fold.watermark == Seq::ZERO
            && let Some((footing, saved)) =
                self.saved(&SavedName::fold(stream), |saved| saved.value::<Loaded>()?.revived())
            && saved.watermark == footing.seq
        {
            *fold = saved;
        }
        // A fold keeps short texts, such as titles and keys of memory: a fold from before an erasure may hold an erased text.
        fold.is_resumed = fold.watermark != Seq::ZERO;
        if let Some(missing) = self.advance(fold, Seq::MAX)? {
            if missing.is_nothing() {
                self.snapshots.empty(&SavedName::fold(stream));
            }
            // Begun anew beside the old fold: if reading fails, the old one stays.
            let mut anew = fold.with(missing);
            while let Some(missing) = self.advance(&mut anew, Seq::MAX)? {
                anew = anew.with(missing);
            }
            *fold = anew;
        }
        Ok(())
    }

    /// The fold of a stream up to a seq at which a commit ends, made from the log alone and not kept.
    pub(super) fn fold_anew(&self, stream: StreamId, until: Seq) -> Result<Loaded, Error> {
        let mut anew = Loaded::of(stream);
        while let Some(missing) = self.advance(&mut anew, until)? {
            anew = anew.with(missing);
        }
        Ok(anew)
    }

    /// Folds new events up to `until`, a frame at a time, so that an error loses nothing and repeats nothing. `Some`: the
    /// streams or beginnings that the fold needs and does not have; the fold has to begin anew with them.
    ///
    /// Damaged frames are left out and noted: sound frames stay readable.
    fn advance(&self, loaded: &mut Loaded, until: Seq) -> Result<Option<Missing>, Error> {
        let after = loaded.watermark;
        if after >= self.refresh()? {
            return Ok(None);
        }
        let (mut places, watermark) = match &loaded.streams {
            Some(streams) => self.frames_of(streams, after)?,
            None => self.all_frames(after)?,
        };
        if loaded.beginnings {
            let first = self.stream_places()?.into_iter().map(|place| place.first);
            places.extend(first.filter(|place| place.last_seq > after && place.last_seq <= watermark));
            places.sort_unstable();
            places.dedup();
        }
        places.retain(|place| place.last_seq <= until);
        let watermark = watermark.min(until);
        let mut looks = Looks::WITHOUT_TEXTS;
        for place in places {
            // A frame may have been left half way, when a stream was found missing.
            let folded = after.max(loaded.world.head());
            let frame = match self.frame_by(&mut looks, place.position) {
                Ok(frame) => frame,
                Err(Error::Corrupt { detail, .. }) => {
                    self.note_damage(detail);
                    loaded.has_gaps = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if let Some(missing) = self.fold_frame(loaded, &frame, folded)? {
                return Ok(Some(missing));
            }
            loaded.watermark = loaded.watermark.max(place.last_seq);
        }
        loaded.watermark = watermark.max(loaded.watermark);
        Ok(None)
    }

    /// Folds the events of a frame past `folded`. `Some`: as [`StoreInner::advance`].
    fn fold_frame(&self, loaded: &mut Loaded, frame: &Frame, folded: Seq) -> Result<Option<Missing>, Error> {
        let mut decoder = Decoder::default();
        for event in frame.events().filter(|event| event.seq > folded) {
            let stream = event.envelope.stream;
            if loaded.streams.as_ref().is_some_and(|streams| !streams.contains(&stream)) {
                if loaded.beginnings && event.envelope.kind == SESSION_OPENED {
                    loaded.world.opened(&self.decode(frame, &event)?);
                }
                continue;
            }
            if loaded.is_resumed && event.envelope.kind == ERASED {
                return Ok(Some(Missing::NOTHING));
            }
            loaded.event_count = loaded.event_count.saturating_add(1);
            let noted = |error| match error {
                Error::Corrupt { detail, .. } => {
                    self.note_damage(detail);
                    Ok(())
                }
                error => Err(error),
            };
            let recorded = match self.decode_with(&mut decoder, frame, &event) {
                Ok(recorded) => recorded,
                Err(error) => {
                    noted(error)?;
                    loaded.has_gaps = true;
                    continue;
                }
            };
            if loaded.streams.is_some()
                && !loaded.beginnings
                && !loaded.bare
                && ends_with_session(&recorded.event.payload)
            {
                return Ok(Some(Missing { streams: Vec::new(), beginnings: true }));
            }
            if let Some(streams) = &loaded.streams
                && (!loaded.bare || matches!(recorded.event.payload, Payload::Forked(_)))
                && let Some(needed) = needs(&recorded.event.payload, streams)
            {
                return Ok(Some(Missing { streams: needed, beginnings: false }));
            }
            // An event that this program does not understand is read again by the next one, which may.
            loaded.has_gaps |= recorded.event.payload.is_unread();
            loaded.world.apply(recorded);
        }
        Ok(None)
    }
}

/// Whether an event records memory that lasts as long as a session.
fn ends_with_session(payload: &Payload) -> bool {
    matches!(payload, Payload::MemoryRecorded(record) if record.lifespan == Lifespan::Session)
}

/// Streams that a fold needs because of an event, and that it does not have.
fn needs(payload: &Payload, have: &[StreamId]) -> Option<Vec<StreamId>> {
    let project = |name: &Option<String>| name.as_ref().map(|name| stream_id(Scope::Project, "", name));
    let needed = match payload {
        Payload::SessionOpened(opened) => project(&opened.project),
        Payload::SessionChanged(changed) => project(&changed.project),
        Payload::Forked(forked) => Some(forked.from),
        _ => None,
    };
    let needed: Vec<StreamId> = needed.into_iter().filter(|stream| !have.contains(stream)).collect();
    (!needed.is_empty()).then_some(needed)
}

impl StoreInner {
    /// Saves the ingest state of a stream, after reading all new events.
    pub(super) fn save_ingest_state_of(&self, stream: StreamId) -> Result<bool, Error> {
        let writers = self.writers_of(std::iter::once(stream));
        let Some(writer) = writers.get(&stream) else { return Ok(false) };
        let mut writer = self.lock_writer(writer)?;
        self.settle_known(&mut writer)?;
        self.catch_up(stream, &mut writer)?;
        Ok(self.save_ingest_state(stream, &mut writer))
    }
}

impl Store {
    /// Saves the fold of a stream, so that the next process need not fold it from its beginning, and its ingest state, which
    /// appending needs. Long sessions are saved without being asked. True if the fold was written: never by a handle that saves none.
    ///
    /// Nothing depends on the snapshot: it is not durable, and deleting `snap/` loses nothing.
    ///
    /// # Errors
    /// If the stream has no events or cannot be read; [`Error::ReadOnly`].
    #[doc(hidden)]
    pub fn save_snapshot(&self, stream: StreamId) -> Result<bool, Error> {
        let inner = &self.inner;
        inner.check_writable()?;
        let loaded = inner.fold(stream)?;
        if loaded.world.stream(stream).is_none() {
            return Err(Error::NotFound { what: "stream", name: stream.to_hex(), nearest: None });
        }
        if !inner.snapshots.uses.writes {
            return Ok(false);
        }
        let Some(footing) = inner.footing_to_save(loaded.watermark) else { return Ok(false) };
        let archive = fold_archive(&loaded);
        drop(loaded);
        // Errors of the ingest state concern appends alone.
        let _ = inner.save_ingest_state_of(stream);
        let name = SavedName::fold(stream);
        Ok(archive.is_some_and(|archive| inner.put_saved(&name, footing, &archive)))
    }

    #[cfg(any(test, feature = "testing"))]
    /// Removes the snapshots of a stream; `None`: of all.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Io`] if one is there and cannot be removed.
    #[doc(hidden)]
    pub fn forget_snapshots(&self, stream: Option<StreamId>) -> Result<(), Error> {
        use super::kept::FOLDER;
        use crate::log::is_copy_name;

        let inner = &self.inner;
        inner.check_writable()?;
        inner.snapshots.finish();
        let storage = &inner.snapshots.storage;
        let wanted = stream.map(|stream| stream.to_hex());
        let names = crate::storage::list_if_there(&**storage, FOLDER);
        let failed = |source| Error::Io { action: "remove snapshots in", path: storage.path(FOLDER), source };
        for file in names.map_err(failed)? {
            let is_wanted = wanted.as_ref().is_none_or(|wanted| file.starts_with(wanted.as_str()));
            if is_wanted && is_copy_name(FOLDER, &file) {
                match storage.remove(&format!("{FOLDER}/{file}")) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
                    _ => {}
                }
            }
        }
        Ok(())
    }
}
