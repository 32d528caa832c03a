//! Sealed payloads of a frame, in plain.

use rkyv::util::AlignedVec;

use super::cipher::DataKey;
use super::fields::align16;

/// Whether the payload of an event is in plain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It is: it was never sealed, or it was opened.
    Clear,
    /// Its key is not at hand.
    NoKey,
    /// Its key was destroyed.
    Shredded,
    /// Its key does not open it: it was altered or moved.
    Forged,
    /// Its form is one of a newer program.
    Newer,
}

/// A key of a stream.
#[derive(Debug, Clone)]
pub enum KeyFound {
    /// The key.
    Key(DataKey),
    /// It cannot be had.
    Missing,
    /// It was destroyed.
    Shredded,
}

/// Opened payloads by the ordinals of their events, which rise.
#[derive(Default)]
pub(super) struct Opened {
    bytes: AlignedVec<16>,
    events: Vec<(u32, Sight, usize, usize)>,
}

impl Opened {
    /// Opens the payload of an event.
    pub(super) fn open(&mut self, ordinal: u32, key: &DataKey, context: &[u8], sealed: &[u8]) {
        self.bytes.resize(align16(self.bytes.len()), 0);
        let start = self.bytes.len();
        let sight =
            if key.open_into(context, sealed, &mut self.bytes) { Sight::Clear } else { Sight::Forged };
        // What is opened is added, and nothing is taken away.
        let length = self.bytes.len().saturating_sub(start);
        self.events.push((ordinal, sight, start, length));
    }

    /// Takes note why the payload of an event stays sealed.
    pub(super) fn note(&mut self, ordinal: u32, sight: Sight) {
        self.events.push((ordinal, sight, 0, 0));
    }

    /// The payload of an event, which is `raw` if it stays sealed.
    pub(super) fn get<'a>(&'a self, ordinal: u32, raw: &'a [u8]) -> (Sight, &'a [u8]) {
        let found = self.events.binary_search_by_key(&ordinal, |event| event.0).ok();
        match found.and_then(|index| self.events.get(index)) {
            Some((_, Sight::Clear, start, length)) => {
                (Sight::Clear, self.bytes.get(*start..start.saturating_add(*length)).unwrap_or(&[]))
            }
            Some((_, sight, ..)) => (*sight, raw),
            None => (Sight::NoKey, raw),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(self.bytes.as_mut_slice());
    }
}
