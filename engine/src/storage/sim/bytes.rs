//! The bytes of a file in pages that copies share, so that a whole disk is copied in microseconds.

use std::sync::{Arc, OnceLock};

/// The unit that a disk writes: whole or torn.
pub(super) const SECTOR_BYTES: usize = 512;
pub(super) const PAGE_BYTES: usize = 4096;

pub(super) type Sector = [u8; SECTOR_BYTES];
type Page = [u8; PAGE_BYTES];

fn zero_page() -> Arc<Page> {
    static ZEROS: OnceLock<Arc<Page>> = OnceLock::new();
    ZEROS.get_or_init(|| Arc::new([0; PAGE_BYTES])).clone()
}

/// Bytes of a file. A clone shares all pages until one of the two is written to.
#[derive(Clone, Default)]
pub(super) struct Bytes {
    pages: Vec<Arc<Page>>,
    length: usize,
}

impl Bytes {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Cuts, or extends with zeros.
    pub(super) fn resize(&mut self, length: usize) {
        if length < self.length
            && let Some(page) = self.pages.get_mut(length / PAGE_BYTES)
            && let Some(rest) = Arc::make_mut(page).get_mut(length % PAGE_BYTES..)
        {
            rest.fill(0);
        }
        self.pages.resize_with(length.div_ceil(PAGE_BYTES), zero_page);
        self.length = length;
    }

    /// Copies the bytes that there are from `offset` on; returns how many.
    pub(super) fn read(&self, offset: usize, target: &mut [u8]) -> usize {
        let count = self.length.saturating_sub(offset).min(target.len());
        let mut done = 0;
        while done < count {
            let at = offset + done;
            let (start, room) = (at % PAGE_BYTES, PAGE_BYTES - at % PAGE_BYTES);
            let step = room.min(count - done);
            if let Some(from) = self.pages.get(at / PAGE_BYTES).and_then(|page| page.get(start..start + step))
                && let Some(to) = target.get_mut(done..done + step)
            {
                to.copy_from_slice(from);
            }
            done += step;
        }
        count
    }

    /// Puts bytes, extending the file if need be. Returns whether anything is different now.
    pub(super) fn write(&mut self, offset: usize, bytes: &[u8]) -> bool {
        let end = offset.saturating_add(bytes.len());
        let mut differs = end > self.length;
        if differs {
            self.resize(end);
        }
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + done;
            let (start, room) = (at % PAGE_BYTES, PAGE_BYTES - at % PAGE_BYTES);
            let step = room.min(bytes.len() - done);
            if let Some(from) = bytes.get(done..done + step)
                && let Some(page) = self.pages.get_mut(at / PAGE_BYTES)
                && page.get(start..start + step) != Some(from)
                && let Some(to) = Arc::make_mut(page).get_mut(start..start + step)
            {
                to.copy_from_slice(from);
                differs = true;
            }
            done += step;
        }
        differs
    }

    /// A sector; zeros past the end.
    pub(super) fn sector(&self, number: usize) -> Sector {
        let mut sector = [0; SECTOR_BYTES];
        self.read(number * SECTOR_BYTES, &mut sector);
        sector
    }

    /// Puts as much of a sector as lies within the file.
    pub(super) fn put_sector(&mut self, number: usize, sector: &Sector) {
        let start = number * SECTOR_BYTES;
        let count = self.length.saturating_sub(start).min(SECTOR_BYTES);
        // Even a write of no bytes, past the end, would move the end.
        if count > 0 {
            self.write(start, sector.get(..count).unwrap_or(&[]));
        }
    }

    pub(super) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.length];
        self.read(0, &mut bytes);
        bytes
    }
}

impl From<&[u8]> for Bytes {
    fn from(bytes: &[u8]) -> Self {
        let mut new = Self::default();
        new.write(0, bytes);
        new
    }
}
