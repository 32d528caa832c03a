//! Folds of streams, kept in memory and caught up on demand.
//!
//! A session is folded together with what its view needs: the store's own stream (policy), its project (memory) and, for a
//! fork, the streams it shares history with. Readers take a watermark; what is folded later does not show through it.

use std::sync::{Arc, PoisonError, RwLock};

use crate::error::Error;
use crate::event::{Lifespan, Payload, Scope, stream_id};
use crate::fold::World;
use crate::ids::{Seq, StreamId};
use crate::index::SESSION_OPENED;

use super::Inner;
use super::events::decode;

/// A world of some streams, folded up to a watermark.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) world: World,
    /// Streams it folds; `None`: all.
    streams: Option<Vec<StreamId>>,
    /// Whether it looks at the beginnings of all other sessions, which end what a session remembered for its own length.
    /// Only where something is: it costs a frame for each session of the store.
    beginnings: bool,
    pub(super) watermark: Seq,
}

/// Which fold is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum FoldKey {
    /// One stream and what it needs.
    Stream(StreamId),
    /// Every stream.
    All,
}

impl Inner {
    /// The fold for `key`, caught up to the durable head.
    pub(super) fn fold(&self, key: FoldKey) -> Result<Arc<RwLock<Loaded>>, Error> {
        let shared = {
            let mut folds = self.folds.lock().unwrap_or_else(PoisonError::into_inner);
            folds.entry(key).or_insert_with(|| {
                let streams = match key {
                    FoldKey::Stream(stream) => Some(vec![StreamId::STORE, stream]),
                    FoldKey::All => None,
                };
                Arc::new(RwLock::new(Loaded { streams, ..Loaded::default() }))
            });
            folds.get(&key).cloned().unwrap_or_default()
        };
        let head = self.refresh()?;
        {
            let loaded = shared.read().unwrap_or_else(PoisonError::into_inner);
            if loaded.watermark >= head {
                drop(loaded);
                return Ok(shared);
            }
        }
        let mut loaded = shared.write().unwrap_or_else(PoisonError::into_inner);
        while !self.advance(&mut loaded)? {}
        drop(loaded);
        Ok(shared)
    }

    /// Folds what is new. `false`: the fold needs a stream it did not have and was begun anew.
    fn advance(&self, loaded: &mut Loaded) -> Result<bool, Error> {
        let after = loaded.watermark;
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
        for place in places {
            let frame = self.frame_at(place.position)?;
            for event in frame.events().filter(|event| event.seq > after) {
                let stream = event.envelope.stream;
                if loaded.streams.as_ref().is_some_and(|streams| !streams.contains(&stream)) {
                    if loaded.beginnings && event.envelope.kind == SESSION_OPENED {
                        loaded.world.opened(&decode(&frame, &event)?);
                    }
                    continue;
                }
                let recorded = decode(&frame, &event)?;
                if loaded.streams.is_some()
                    && !loaded.beginnings
                    && ends_with_session(&recorded.event.payload)
                {
                    loaded.beginnings = true;
                    loaded.world = World::default();
                    loaded.watermark = Seq::ZERO;
                    return Ok(false);
                }
                if let Some(streams) = &mut loaded.streams
                    && let Some(needed) = needs(&recorded.event.payload, streams)
                {
                    streams.extend(needed);
                    loaded.world = World::default();
                    loaded.watermark = Seq::ZERO;
                    return Ok(false);
                }
                let _ = loaded.world.apply(&recorded);
            }
        }
        loaded.watermark = watermark;
        Ok(true)
    }
}

/// Whether an event records what is remembered for the length of a session.
fn ends_with_session(payload: &Payload) -> bool {
    matches!(payload, Payload::MemoryRecorded(record) if record.lifespan == Lifespan::Session)
}

/// Streams that an event says a fold needs, and that it does not have.
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
