//! Erasing in a sealed segment: the file is written once more without the texts, and takes the place of the old one.
//!
//! ```text
//! SEAL { n.seg.tmp without the texts -> sync -> compare -> exchange the two names -> sync directory -> generation
//!        -> n.seg.tmp, the old file now: zeros -> sync -> removed }
//! ```
//!
//! The two names change places in one step, so at no time is a segment without its file, and the old file is never without a name: after a
//! crash the next holder of SEAL finds the temporary file, whichever of the two it is, overwrites it with zeros and removes it. Chunks
//! without erased texts are copied as they are.

use std::collections::BTreeMap;
use std::io;

use super::Log;
use super::error::LogError;
use super::files::{LOG_DIR, SegmentFile, segment_name};
use super::repair::zero;
use super::seal_writer::{SealWriter, first_difference};
use super::unpacked::Unpacked;
use crate::codec::{SALT_BYTES, generation_offset, generation_record, is_zero};
use crate::storage::{Access, bytes_between, read_up_to, sync};

/// Bytes that take the place of others, by their offset in the segment.
type Changes = Vec<(u64, Vec<u8>)>;

/// Puts the part of each change that lies in `bytes`, which begin at `start`. Says whether there was one.
fn change(bytes: &mut [u8], start: u64, changes: &Changes) -> bool {
    let end = start.saturating_add(bytes.len() as u64);
    let mut changed = false;
    for (at, new) in
        changes.iter().filter(|(at, new)| *at < end && at.saturating_add(new.len() as u64) > start)
    {
        let new = new.get(bytes_between(*at, start)..).unwrap_or(&[]);
        let old = bytes.get_mut(bytes_between(start, *at)..).unwrap_or_default();
        old.iter_mut().zip(new).for_each(|(old, new)| *old = *new);
        changed = true;
    }
    changed
}

impl Log {
    /// Takes the blocks at these offsets out of a sealed segment. Durable when it returns. Call under SEAL.
    ///
    /// # Errors
    /// [`LogError::Io`], [`LogError::NoSpace`]; then the old file is as it was, or the next holder of SEAL ends the work.
    pub(super) fn erase_sealed(
        &self,
        number: u32,
        segment: &SegmentFile,
        sealed: &Unpacked,
        blocks: &BTreeMap<u64, u32>,
    ) -> Result<(), LogError> {
        let name = segment_name(number);
        let temporary = format!("{name}.tmp");
        let fail = |action| LogError::of(action, &*self.storage, &name);
        let length = segment.file.len().map_err(fail("inspect"))?;
        let mut changes = Changes::new();
        let mut is_there = false;
        for (offset, bytes) in blocks {
            let mut block = vec![0; SALT_BYTES.saturating_add(*bytes as usize)];
            let count = read_up_to(&*segment.file, &mut block, *offset).map_err(fail("read"))?;
            is_there |= !is_zero(block.get(..count).unwrap_or(&block));
            block.fill(0);
            changes.push((*offset, block));
        }
        if !is_there {
            return Ok(());
        }
        // A program that copied the file before this has to copy it again.
        // Where the header is damaged the head serves.
        let head = sealed.head().map_err(fail("read"))?.and_then(Result::ok);
        // As above.
        let generation = segment.header.as_ref().map(|header| header.generation).ok();
        let generation = generation.or(head.map(|head| head.generation)).unwrap_or(0).saturating_add(1);
        let record = generation_record(number, generation);
        changes.push((generation_offset(generation), record.to_vec()));
        // Refused if it has another name elsewhere, as any file that is to be changed.
        let old = self.storage.open(&name, Access::Write).map_err(fail("open"))?;
        if let Err(error) = self.write_without(number, generation, sealed, &temporary, &changes, length) {
            // If it stays, the next holder of the lock removes it.
            let _ = self.storage.remove(&temporary);
            return Err(error);
        }
        let exchanged = match self.storage.exchange(&temporary, &name) {
            Ok(()) => true,
            // A file system that cannot: the old file loses its name before it is zeroed.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                self.storage.rename(&temporary, &name).map_err(fail("replace"))?;
                false
            }
            Err(error) => return Err(fail("replace")(error)),
        };
        let synced = self.storage.sync_dir(LOG_DIR);
        synced.map_err(|error| LogError::io("sync", self.storage.path(LOG_DIR), error))?;
        self.segments.forget();
        self.generation_changed();
        if exchanged {
            drop(old);
            return self.zero_away(&temporary);
        }
        let old_bytes = old.len().map_err(fail("inspect"))?;
        zero(&*old, 0, old_bytes).map_err(fail("zero the former file of"))?;
        sync(&*old).map_err(fail("sync the former file of"))
    }

    /// Writes the sealed file with these changes to a temporary file, syncs it, reads it back and compares.
    fn write_without(
        &self,
        number: u32,
        generation: u32,
        sealed: &Unpacked,
        temporary: &str,
        changes: &Changes,
        length: u64,
    ) -> Result<(), LogError> {
        let fail = |action| LogError::of(action, &*self.storage, temporary);
        let of_old = |error| LogError::io("read", sealed.path(), error);
        let file = self.storage.open(temporary, Access::Replace).map_err(fail("create"))?;
        let mut writer = SealWriter::new(&*file).map_err(fail("write"))?;
        for chunk in sealed.chunk_list().map_err(of_old)?.iter() {
            // A damaged chunk as readers see it.
            let mut bytes = vec![0; chunk.entry.unpacked as usize];
            let count = read_up_to(sealed, &mut bytes, chunk.start).map_err(of_old)?;
            bytes.truncate(count);
            let is_lost_header = chunk.start == 0 && sealed.unpacked(chunk).map_err(of_old)?.is_none();
            if !is_lost_header && change(&mut bytes, chunk.start, changes) {
                writer.chunk(&bytes).map_err(fail("write"))?;
            } else {
                let packed = sealed.packed(chunk.place, chunk.entry.packed as usize).map_err(of_old)?;
                writer.copy(&packed, chunk.entry, &bytes).map_err(fail("write"))?;
            }
        }
        writer.finish(self.segments.store, number, generation).map_err(fail("write"))?;
        drop(file);
        let Some(made) = self.segments.open_named(number, temporary.to_owned())? else {
            return Err(fail("open")(io::ErrorKind::NotFound.into()));
        };
        let difference = first_difference(&made, length, |at, count| {
            let mut bytes = vec![0; count];
            let count = read_up_to(sealed, &mut bytes, at).map_err(of_old)?;
            bytes.truncate(count);
            change(&mut bytes, at, changes);
            Ok(bytes)
        })?;
        match difference {
            None => Ok(()),
            Some(at) => {
                let text = format!("what was written differs from the segment at {at}");
                Err(fail("read back")(io::Error::other(text)))
            }
        }
    }
}
