//! Checking a sealed file as it is: its head, its seek table and its chunks. The log that it unpacks to is checked by the walk.

use super::error::{Corruption, FrameFault, LogError};
use super::files::{SCAN_WINDOW_BYTES, SegmentFile, Segments, corruption, segment_begin};
use super::unpacked::Chunk;
use crate::codec::{DamagedPart, Invalid, SEAL_HEAD_BYTES};
use crate::ids::Digest;

/// How often a file that does not hold is looked at: between two looks an erasure may put another one in its place.
const LOOK_COUNT_MAX: usize = 4;

impl Segments {
    /// Faults of the sealed file of segment `number`; none if it is not sealed. Cost: a hash of the file; each chunk is
    /// unpacked only if that differs.
    pub(super) fn check_packed(
        &self,
        number: u32,
        segment: &SegmentFile,
    ) -> Result<Vec<Corruption>, LogError> {
        let mut found = self.look_at_packed(number, segment)?;
        let Some(sealed) = segment.sealed.as_ref() else { return Ok(found) };
        // The header may be of the file that was there, and what follows of the one that an erasure put in its place.
        for _ in 1..LOOK_COUNT_MAX {
            if found.is_empty() {
                break;
            }
            let Some(anew) = self.open_named(number, sealed.name().to_owned())? else { break };
            found = self.look_at_packed(number, &anew)?;
        }
        Ok(found)
    }

    fn look_at_packed(&self, number: u32, segment: &SegmentFile) -> Result<Vec<Corruption>, LogError> {
        let Some(sealed) = &segment.sealed else { return Ok(Vec::new()) };
        let fail = |error| LogError::io("read", segment.path.clone(), error);
        let damage = |offset: u64, expected: String, actual: String| {
            let invalid = Invalid { part: DamagedPart::Packed, offset: 0, expected, found: actual };
            let mut damage = corruption(self, segment_begin(number), FrameFault::Invalid(invalid, None));
            (damage.offset, damage.path) = (offset, segment.path.clone());
            damage
        };
        let mut found = Vec::new();
        let Some(head) = sealed.head().map_err(fail)? else { return Ok(found) };
        let next = self.header(number.saturating_add(1))?;
        let end = next.map(|next| next.previous_end).filter(|end| end.segment() == number);
        match &head {
            Ok(head) => {
                if head.store != self.store || head.segment != number {
                    let expected = format!("segment {number} of store {}", self.store);
                    let actual = format!("segment {} of store {}", head.segment, head.store);
                    found.push(damage(16, expected, actual));
                }
                let generation = segment.header.as_ref().map_or(head.generation, |header| header.generation);
                if head.generation != generation {
                    let expected = format!("generation {generation}");
                    found.push(damage(36, expected, format!("generation {}", head.generation)));
                }
                if let Some(end) = end.filter(|end| end.offset() != head.length) {
                    let expected = format!("{} bytes", end.offset());
                    found.push(damage(40, expected, format!("{} bytes", head.length)));
                }
            }
            Err(invalid) => {
                found.push(damage(invalid.offset, invalid.expected.clone(), invalid.found.clone()));
            }
        }
        let mut hasher = blake3::Hasher::new();
        let mut at = SEAL_HEAD_BYTES as u64;
        // There is no hole in packed bytes, and a hole may be longer than any disk.
        while sealed.packed_data_from(at).map_err(fail)? == Some(at) {
            let bytes = sealed.packed(at, SCAN_WINDOW_BYTES).map_err(fail)?;
            hasher.update(&bytes);
            at = at.saturating_add(bytes.len() as u64);
        }
        let digest = *hasher.finalize().as_bytes();
        // A damaged head is reported above.
        let expected = head.as_ref().ok().map(|head| head.packed);
        if expected == Some(digest) {
            return Ok(found);
        }
        let known = found.len();
        if !sealed.has_table().map_err(fail)? {
            found.push(damage(at, "a seek table".to_owned(), "other bytes".to_owned()));
        }
        let mut lost: Vec<(Chunk, u64)> = Vec::new();
        for chunk in sealed.chunk_list().map_err(fail)?.iter() {
            if sealed.is_written(chunk).map_err(fail)? && sealed.unpacked(chunk).map_err(fail)?.is_some() {
                continue;
            }
            match lost.last_mut().filter(|(_, end)| *end == chunk.start) {
                Some((_, end)) => *end = chunk.end(),
                None => lost.push((*chunk, chunk.end())),
            }
        }
        for (chunk, end) in lost {
            let expected = format!("zstd frames of bytes {} to {end}", chunk.start);
            found.push(damage(chunk.place, expected, "bytes that do not unpack".to_owned()));
        }
        if let Some(expected) = expected.filter(|_| found.len() == known) {
            let expected = format!("digest {}", Digest(expected));
            found.push(damage(80, expected, Digest(digest).to_string()));
        }
        Ok(found)
    }
}
