//! A check of the files of keys, for a verification of the log.
//!
//! Sealed events are lost with the file of their key, though their bytes are as they were. To see whether that file is there, no ring is needed; whether
//! it opens them, only a ring tells. A copy without any keys counts as whole.

use std::collections::{BTreeMap, BTreeSet};

use super::Log;
use super::error::{Corruption, LogError};
use super::key_folder::{key_name, subject_name};
use super::keys::{KeyChain, PUT_BACK};
use crate::codec::Part;
use crate::ids::{Seq, StreamId};

impl Log {
    /// The faults of the files of keys. `sealed`: streams with events that are not open here, and the first and last of these; with a ring, these are
    /// events that it should open. `shredded` reads the streams that are on record as shredded. Returns also whether events are not open because
    /// another ring wraps their keys, which is no fault.
    pub(super) fn key_faults(
        &self,
        sealed: &BTreeMap<StreamId, (Seq, Seq)>,
        shredded: &dyn Fn() -> BTreeSet<StreamId>,
    ) -> Result<(Vec<Corruption>, bool), LogError> {
        let (mut faults, mut is_under_other_ring) = (Vec::new(), false);
        let Some(keys) = self.segments.keys() else { return Ok((faults, false)) };
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
            Ok(None) => return Ok((faults, false)),
            Ok(Some(_)) => {}
            Err(invalid) => lost(key_name(StreamId::STORE), StreamId::STORE, None, invalid.found),
        }
        let mut found = Vec::new();
        for (&stream, &seqs) in sealed {
            found.extend(self.key_file_fault(keys, stream)?.map(|fault| (stream, seqs, fault)));
        }
        // A shredding is recorded before it touches the file: so the records are read behind all files, and once.
        let shredded = if found.is_empty() { BTreeSet::new() } else { shredded() };
        for (stream, seqs, (name, what)) in found {
            // A shredding zeroes the file before the file says that the key is gone, and may have ended since.
            let says_so = || {
                Ok::<_, LogError>(
                    keys.folder.stream(stream)?.is_ok_and(|file| file.is_some_and(|it| it.is_shredded())),
                )
            };
            if shredded.contains(&stream) && (self.is_erasing()? || says_so()?) {
                continue;
            }
            // The file is sound: while all keys are wrapped anew, or if that was cut short, the ring of before opens some of them.
            if keys.is_under_other_ring(stream)? {
                is_under_other_ring = true;
            } else {
                lost(name, stream, Some(seqs), what);
            }
        }
        Ok((faults, is_under_other_ring))
    }

    /// The fault of the file of a stream's key, or of its subject's: the file, and what is there.
    fn key_file_fault(
        &self,
        keys: &KeyChain,
        stream: StreamId,
    ) -> Result<Option<(String, String)>, LogError> {
        let subject = match keys.folder.stream(stream)? {
            Ok(Some(file)) => file.subject.filter(|_| !file.is_shredded()),
            Ok(None) => return Ok(Some((key_name(stream), "no file".to_owned()))),
            Err(invalid) => return Ok(Some((key_name(stream), invalid.found))),
        };
        Ok(match subject.map(|subject| keys.folder.subject(subject)).transpose()?.zip(subject) {
            Some((Ok(None), subject)) => Some((subject_name(subject), "no file".to_owned())),
            Some((Err(invalid), subject)) => Some((subject_name(subject), invalid.found)),
            None | Some((Ok(Some(_)), _)) if keys.has_ring() => {
                Some((key_name(stream), self.key_fault(stream)?.why))
            }
            None | Some((Ok(Some(_)), _)) => None,
        })
    }
}
