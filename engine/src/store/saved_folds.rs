//! Taking up saved folds that the log bears out, and saving folds behind an answer.

use std::sync::{Arc, RwLock};

use crate::ids::{Position, Seq, StoreId, StreamId};
use crate::locks::steady;
use crate::storage::{Access, Storage, read_up_to};

use super::Inner;
use super::loaded::Loaded;
use super::snapshots::{Footing, Read, decode, encode, is_due, name, write};

impl Inner {
    /// The saved fold of a stream, if there is one that this log bears out.
    pub(super) fn saved_fold(&self, stream: StreamId) -> Option<Loaded> {
        let snapshots = &self.snapshots;
        if !snapshots.uses.reads {
            return None;
        }
        // A saved fold that cannot be read is made of the log instead, here and below.
        let file = snapshots.storage.open(&name(stream), Access::Read).ok()?;
        let read_at = |buffer: &mut [u8], offset| read_up_to(&*file, buffer, offset);
        // As above.
        let mut read = Read::new(&read_at, file.len().ok()?);
        let found = decode(&mut read, snapshots.store, stream);
        if read.failed {
            return None;
        }
        let sound = found.and_then(|(footing, loaded)| {
            let (known, end) = self.footing_at(footing.position)?;
            (known == footing).then_some(Loaded { end: Some(end), ..loaded })
        });
        if sound.is_none() {
            snapshots.forget(stream);
        }
        sound
    }

    /// The frame at a position as a footing, and where it ends, if it is durable.
    pub(super) fn footing_at(&self, position: Position) -> Option<(Footing, Position)> {
        // Without a footing nothing is saved or restored, here and below.
        let head = self.refresh().ok()?;
        // As above.
        let header = self.log.header_at(position).ok()?;
        let footing = Footing { seq: header.last_seq(), position, link: header.link() };
        (footing.seq <= head).then_some((footing, header.end()))
    }

    pub(super) fn footing_of(&self, seq: Seq) -> Option<Footing> {
        // As above.
        let position = self.frame_of(seq).ok()??.position();
        self.footing_at(position).map(|(footing, _)| footing).filter(|footing| footing.seq == seq)
    }

    /// Saves a fold behind the caller's back if that is due and nothing else is being saved.
    pub(super) fn save_later(&self, stream: StreamId, shared: &Arc<RwLock<Loaded>>) {
        let snapshots = &self.snapshots;
        if !snapshots.uses.writes || !snapshots.uses.by_itself {
            return;
        }
        let watermark = {
            // What a panic left half folded is not saved, here and below.
            let Ok(loaded) = shared.read() else { return };
            if !is_due(&loaded) {
                return;
            }
            loaded.watermark
        };
        let mut running = steady(&snapshots.running);
        if running.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let Some(footing) = self.footing_of(watermark) else { return };
        let (storage, store, shared) = (Arc::clone(&snapshots.storage), snapshots.store, Arc::clone(shared));
        let save = move || save(&*storage, store, stream, footing, &shared);
        // No thread to be had: no snapshot.
        *running = std::thread::Builder::new().name("acpdb snapshot".to_owned()).spawn(save).ok();
    }

    /// Saves what is due, now: the store is being closed.
    pub(super) fn save_folds(&self) {
        self.snapshots.finish();
        let folds = steady(&self.folds).list();
        for (stream, shared) in folds {
            self.save_if_due(stream, &shared);
        }
    }

    /// Saves a fold now, if that is due: it leaves the memory.
    pub(super) fn save_if_due(&self, stream: StreamId, shared: &RwLock<Loaded>) {
        let snapshots = &self.snapshots;
        if !snapshots.uses.writes || !snapshots.uses.by_itself {
            return;
        }
        let watermark = {
            let Ok(loaded) = shared.read() else { return };
            is_due(&loaded).then_some(loaded.watermark)
        };
        if let Some(footing) = watermark.and_then(|watermark| self.footing_of(watermark)) {
            save(&*snapshots.storage, snapshots.store, stream, footing, shared);
        }
    }
}

/// Saves a fold, if it still ends at `footing`. Appends to it wait while it is laid out, not while it is written.
fn save(storage: &dyn Storage, store: StoreId, stream: StreamId, footing: Footing, shared: &RwLock<Loaded>) {
    let bytes = {
        let Ok(loaded) = shared.read() else { return };
        if loaded.watermark != footing.seq {
            return;
        }
        encode(store, stream, footing, &loaded)
    };
    // One that is too large is not tried again until it has grown by as much as any other.
    let written = bytes.is_none_or(|bytes| write(storage, stream, &bytes).is_ok());
    let Ok(mut loaded) = shared.write() else { return };
    if written && loaded.watermark >= footing.seq {
        loaded.saved_count = loaded.event_count;
    }
}
