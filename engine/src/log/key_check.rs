//! A check of the files of keys, for a verification of the log.
//!
//! Sealed events are lost with the file of their key, though their bytes are as they were. To see whether that file is there, no ring is needed; whether
//! it opens them, only a ring tells. A copy without any keys counts as whole.

use std::collections::BTreeMap;

use super::Log;
use super::error::{Corruption, LogError};
use super::key_folder::{key_name, subject_name};
use super::keys::PUT_BACK;
use crate::codec::Part;
use crate::ids::{Seq, StreamId};

impl Log {
    /// The faults of the files of keys. `sealed`: streams with events that are not open here, and the first and last of these; with a ring, these are
    /// events that it should open.
    pub(super) fn key_faults(
        &self,
        sealed: &BTreeMap<StreamId, (Seq, Seq)>,
    ) -> Result<Vec<Corruption>, LogError> {
        let mut faults = Vec::new();
        let Some(keys) = self.segments.keys() else { return Ok(faults) };
        let mut lost = |name: String, stream: StreamId, seqs: Option<(Seq, Seq)>, found: String| {
            faults.push(Corruption {
                part: Part::Secret,
                path: self.storage.path(&name),
                segment: 0,
                offset: 0,
                seq_first: seqs.map(|(first, _)| first),
                seq_last: seqs.map(|(_, last)| last),
                expected: format!("the wrapped key of stream {stream} ({PUT_BACK})"),
                found,
            });
        };
        match keys.folder.stream(StreamId::STORE)? {
            Ok(None) => return Ok(faults),
            Ok(Some(_)) => {}
            Err(invalid) => lost(key_name(StreamId::STORE), StreamId::STORE, None, invalid.found),
        }
        for (&stream, &seqs) in sealed {
            let mut lost = |name, found| lost(name, stream, Some(seqs), found);
            let subject = match keys.folder.stream(stream)? {
                Ok(Some(file)) => file.subject.filter(|_| !file.is_shredded()),
                Ok(None) => {
                    lost(key_name(stream), "no file".to_owned());
                    continue;
                }
                Err(invalid) => {
                    lost(key_name(stream), invalid.found);
                    continue;
                }
            };
            match subject.map(|subject| keys.folder.subject(subject)).transpose()?.zip(subject) {
                Some((Ok(None), subject)) => lost(subject_name(subject), "no file".to_owned()),
                Some((Err(invalid), subject)) => lost(subject_name(subject), invalid.found),
                None | Some((Ok(Some(_)), _)) if keys.has_ring() => {
                    lost(key_name(stream), self.key_fault(stream)?.why);
                }
                None | Some((Ok(Some(_)), _)) => {}
            }
        }
        Ok(faults)
    }
}
