//! Saving and forgetting what can be made again, when a caller asks for it.

use crate::error::Error;
use crate::ids::StreamId;
use crate::log::is_copy_name;

use super::loaded::whole;
use super::snapshots::{FOLDER, encode, write};
use super::{Inner, Store};

impl Inner {
    /// Saves what is known of a stream, having read all that is new.
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
    /// Saves the fold of a stream, so that the next to open it need not fold it from its beginning, and what has to be known
    /// of it to append to it. Long sessions are saved without being asked. True if the fold was written.
    ///
    /// Nothing depends on it: not durable, and gone without loss when `snap/` is deleted.
    ///
    /// # Errors
    /// If the stream has no events or cannot be read; [`Error::ReadOnly`].
    #[cfg_attr(not(feature = "internals"), doc(hidden))]
    pub fn save_snapshot(&self, stream: StreamId) -> Result<bool, Error> {
        let inner = &self.inner;
        inner.check_writable()?;
        // It brings the fold up to now.
        let _ = self.view(stream)?;
        let shared = inner.fold(stream)?;
        let loaded = whole(&shared)?;
        let Some(footing) = inner.footing_of(loaded.watermark) else { return Ok(false) };
        let bytes = encode(inner.snapshots.store, stream, footing, &loaded);
        drop(loaded);
        // Its own errors concern those who append.
        let _ = inner.save_ingest_state_of(stream);
        Ok(bytes.is_some_and(|bytes| write(&*inner.snapshots.storage, stream, &bytes).is_ok()))
    }

    /// Removes the snapshots of a stream; `None`: of all. What erases bodies calls this, although no snapshot holds any.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Io`] if one is there and cannot be removed.
    #[cfg_attr(not(feature = "internals"), doc(hidden))]
    pub fn forget_snapshots(&self, stream: Option<StreamId>) -> Result<(), Error> {
        let inner = &self.inner;
        inner.check_writable()?;
        inner.snapshots.finish();
        let storage = &inner.snapshots.storage;
        let wanted = stream.map(|stream| stream.to_hex());
        let names = match storage.list(FOLDER) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            names => names,
        };
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
