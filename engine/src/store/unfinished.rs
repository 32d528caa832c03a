//! Ending an erasure whose process died in it.
//!
//! ```text
//! note "erasing" found at an opening -> keys destroyed -> late sessions about a shredded subject recorded -> bodies zeroed -> note away
//! ```

use std::collections::BTreeSet;

use crate::error::Error;
use crate::ids::Seq;
use crate::verify::{
    SHREDDED_ROW, SHREDDED_SUBJECT_ROW, recorded_addresses, recorded_erasures, recorded_shreds,
    shredded_streams,
};

use super::Inner;
use super::shred::Found;

impl Inner {
    /// Ends an erasure that a crash interrupted. If it cannot be ended now, the next opening ends it.
    pub(super) fn resume_erasing(&self) -> Result<(), Error> {
        let Some(erasing) = self.log.resume_erasing()? else { return Ok(()) };
        self.destroy_keys(erasing.after)?;
        self.record_late_sessions(erasing.after)?;
        let rows = recorded_erasures(&self.log, erasing.after)?;
        if !rows.is_empty() {
            // The figures belong to the interrupted erasure.
            let _ = erasing.zero(&rows)?;
        }
        erasing.end()?;
        Ok(())
    }

    /// Puts on record the sessions that began after a shredding had searched for those about its subject, and before the subject's key was
    /// gone. Called when the process of the shredding ended in between.
    fn record_late_sessions(&self, after: Seq) -> Result<(), Error> {
        let Some(keys) = self.log.keys() else { return Ok(()) };
        let mut records = recorded_addresses(&self.log, after)?;
        records.retain(|record| record.address.row == SHREDDED_SUBJECT_ROW);
        for record in records {
            let Some(said) = self.erasure(record.commit)? else { continue };
            let told = recorded_shreds(&self.log, Seq::ZERO, SHREDDED_ROW)?;
            for stream in shredded_streams(&self.log, &[record], SHREDDED_SUBJECT_ROW)? {
                let Some(subject) = keys.subject_of(stream)? else { continue };
                let of = keys.subjects_of_streams()?.into_iter();
                let late = of.filter(|(stream, of)| *of == Some(subject) && !told.contains(stream));
                let late = late.map(|(stream, _)| stream).collect();
                // The subject itself is on record.
                let mut found = Found::of_record(said.seq);
                self.record_shredding(&late, &BTreeSet::new(), (&said.by, &said.reason), &mut found)?;
            }
        }
        Ok(())
    }
}
