//! Ending an erasure whose process died in it.
//!
//! ```text
//! note "erasing" found at an opening -> bodies zeroed -> note away
//! ```

use crate::error::Error;
use crate::verify::recorded_erasures;

use super::StoreInner;

impl StoreInner {
    /// Ends an erasure that a crash interrupted. If it cannot be ended now, the next opening ends it.
    pub(super) fn resume_erasing(&self) -> Result<(), Error> {
        let Some(erasing) = self.log.resume_erasing()? else { return Ok(()) };
        let rows = recorded_erasures(&self.log, erasing.after)?;
        if !rows.is_empty() {
            // The figures belong to the interrupted erasure.
            let _ = erasing.zero(&rows)?;
        }
        erasing.end()?;
        Ok(())
    }
}
