//! Chance that follows from a seed.

use crate::storage::clock::next_random;

use super::bytes::{SECTOR_BYTES, Sector};

#[derive(Clone, Default)]
pub(super) struct Chance(pub(super) u64);

impl Chance {
    pub(super) fn below(&mut self, count: usize) -> usize {
        let random = next_random(&mut self.0) % (count.max(1) as u64);
        usize::try_from(random).unwrap_or(0)
    }

    pub(super) fn one_in(&mut self, count: u64) -> bool {
        next_random(&mut self.0).is_multiple_of(count.max(1))
    }

    pub(super) fn garbage(&mut self) -> Sector {
        let mut sector = [0; SECTOR_BYTES];
        for word in sector.chunks_mut(8) {
            let random = next_random(&mut self.0).to_le_bytes();
            word.iter_mut().zip(random).for_each(|(byte, random)| *byte = random);
        }
        sector
    }
}
