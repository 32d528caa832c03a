//! A file of the simulated disk: the bytes that processes see, the durable bytes, and every version between.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::bytes::{Bytes, SECTOR_BYTES, Sector};
use super::chance::Chance;

/// Versions of an unsynced sector that are remembered besides the durable and the newest one.
const VERSION_COUNT_MAX: usize = 6;

#[derive(Clone, Default)]
pub(super) struct Inode {
    /// The page cache: the bytes that every process sees.
    pub(super) cached: Bytes,
    /// The bytes that a power cut leaves for certain.
    durable: Bytes,
    /// Unsynced sectors, each with the contents it had since the last sync, oldest first, without the newest.
    dirty: BTreeMap<usize, Vec<Arc<Sector>>>,
    /// Lengths since the last sync, without the newest.
    lengths: Vec<usize>,
    /// How many write-backs failed. Each open file remembers the count it knows of, as Linux does (`errseq_t`).
    errors: u32,
    /// Whether the last failure was reported; if not, the next handle on the file gets it.
    error_was_seen: bool,
}

impl Inode {
    /// A file that is durable as it is.
    pub(super) fn settled(bytes: &[u8]) -> Self {
        let cached = Bytes::from(bytes);
        Self { durable: cached.clone(), cached, ..Self::default() }
    }

    /// Puts bytes into the page cache. Returns whether anything is different now.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        if bytes.is_empty() {
            return false;
        }
        let end = offset.saturating_add(bytes.len());
        if end > self.cached.len() {
            self.lengths.push(self.cached.len());
        }
        for number in offset / SECTOR_BYTES..end.div_ceil(SECTOR_BYTES) {
            if let Some(versions) = self.dirty.get_mut(&number) {
                if versions.len() >= VERSION_COUNT_MAX {
                    versions.remove(1);
                }
                versions.push(Arc::new(self.cached.sector(number)));
            } else {
                self.dirty.insert(number, Vec::new());
            }
        }
        self.cached.write(offset, bytes)
    }

    /// Cuts or extends. Returns whether anything is different now.
    pub(super) fn resize(&mut self, length: usize) -> bool {
        let old = self.cached.len();
        if old == length {
            return false;
        }
        self.lengths.push(old);
        self.cached.resize(length);
        true
    }

    /// Everything reaches the disk.
    pub(super) fn write_back(&mut self) {
        self.lengths.clear();
        self.durable.resize(self.cached.len());
        for number in std::mem::take(&mut self.dirty).into_keys() {
            self.durable.put_sector(number, &self.cached.sector(number));
        }
    }

    /// Some sectors reach the disk in some version, whole or torn, and the others do not; all count as clean.
    pub(super) fn write_back_badly(&mut self, chance: &mut Chance) {
        // The plain outcomes, all and nothing, are frequent too.
        let mood = chance.below(6);
        if mood == 0 {
            return self.write_back();
        }
        let dirty = std::mem::take(&mut self.dirty);
        let lengths = std::mem::take(&mut self.lengths);
        if mood == 1 {
            return;
        }
        let durable_length = self.durable.len();
        let length = match chance.below(lengths.len() + 3) {
            0 => durable_length,
            pick => lengths.get(pick - 1).copied().unwrap_or(self.cached.len()),
        };
        self.durable.resize(length);
        for (number, versions) in dirty {
            let start = number * SECTOR_BYTES;
            if start >= length {
                continue;
            }
            let mut old = self.durable.sector(number);
            if start >= durable_length && mood == 5 && chance.one_in(4) {
                // The block belonged to another file, and the file system shows its old bytes.
                old = chance.garbage();
            }
            let newest = self.cached.sector(number);
            let version = |pick: usize| match pick {
                0 => old,
                pick => versions.get(pick - 1).map_or(newest, |version| **version),
            };
            let count = versions.len() + 2;
            let kept = match mood {
                2 => version(if chance.one_in(2) { 0 } else { count - 1 }),
                3 if chance.one_in(3) => {
                    // Torn at a byte.
                    let (mut kept, rest) = (version(chance.below(count)), version(chance.below(count)));
                    let cut = chance.below(SECTOR_BYTES);
                    kept.iter_mut().zip(rest).skip(cut).for_each(|(kept, rest)| *kept = rest);
                    kept
                }
                4 if chance.one_in(3) => {
                    // Written back while it was being changed: each word from another moment.
                    let mut kept = newest;
                    for (index, word) in kept.chunks_mut(8).enumerate() {
                        let from = version(chance.below(count));
                        if let Some(from) = from.get(index * 8..index * 8 + word.len()) {
                            word.copy_from_slice(from);
                        }
                    }
                    kept
                }
                _ => version(chance.below(count)),
            };
            self.durable.put_sector(number, &kept);
        }
    }

    /// A write-back fails. `seen`: some process that is no more was told of it.
    pub(super) fn fail_write_back(&mut self, seen: bool, chance: &mut Chance) {
        self.write_back_badly(chance);
        self.errors = self.errors.wrapping_add(1);
        self.error_was_seen = seen;
    }

    /// The failures that a new handle counts as known.
    pub(super) fn sample_errors(&self) -> u32 {
        let is_news = self.errors != 0 && !self.error_was_seen;
        self.errors.wrapping_sub(u32::from(is_news))
    }

    /// The failures an open file has not been told of yet: the new count to remember, if there are any.
    pub(super) fn news_of_errors(&mut self, known: u32) -> Option<u32> {
        if known == self.errors {
            return None;
        }
        self.error_was_seen = true;
        Some(self.errors)
    }

    /// The page cache is lost.
    pub(super) fn cut_power(&mut self, chance: &mut Chance) {
        self.write_back_badly(chance);
        self.cached = self.durable.clone();
        self.errors = 0;
        self.error_was_seen = false;
    }
}
