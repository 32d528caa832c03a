//! Ending the use of a handle: the checkpoint witnesses the end of the log, and preallocated space is given back.

use super::Log;
use super::error::LogError;
use super::files::CHECKPOINT;
use super::recovery_scan::{CheckpointFile, read_checkpoint};
use crate::codec::{Busy, Checkpoint};
use crate::storage::write_file;

impl Log {
    /// Ends the use of this handle: gives back preallocated space and writes the checkpoint that witnesses the end.
    ///
    /// Everything acknowledged is durable without it; after it, `verify` notices the loss of any event.
    ///
    /// # Errors
    /// [`LogError::Busy`], [`LogError::NoSpace`], [`LogError::Io`]; the log is sound all the same.
    pub fn close(self) -> Result<(), LogError> {
        self.write_checkpoint()
    }

    /// The work of [`Log::close`], for a handle that stays open.
    ///
    /// # Errors
    /// As [`Log::close`].
    pub fn write_checkpoint(&self) -> Result<(), LogError> {
        self.check_process()?;
        let mut writer = self.writer()?;
        let writer = &mut *writer;
        let Ok(tail) = self.check_appendable() else { return Ok(()) };
        let _lock = tail.lock(&*self.clock, self.options.lock_wait)?;
        let page = tail.read()?;
        // If another process left things unsettled, its recovery will write the next checkpoint. But a page that says nothing
        // is made anew here: without page and checkpoint readers would miss the last acknowledged events.
        let is_unsettled = page.busy != Busy::Idle || page.written.is_none() || page.poisoned;
        if page.store == Some(self.segments.store) && is_unsettled || writer.postponed {
            return Ok(());
        }
        self.catch_up(tail, writer, &page)?;
        self.make_durable(tail, writer)?;
        let place = writer.place;
        if let CheckpointFile::Sound(known) = read_checkpoint(&self.segments)?
            && known.written.position >= place.position
        {
            return Ok(());
        }
        self.write_segment(tail, writer)?.give_back(place.position.offset());
        let checkpoint = Checkpoint { store: self.segments.store, written: place };
        write_file(&*self.storage, CHECKPOINT, &checkpoint.encode())
            .map_err(|error| LogError::io("write", self.storage.path(CHECKPOINT), error))
    }
}
