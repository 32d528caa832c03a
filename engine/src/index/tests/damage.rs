//! A damaged file never ends the process and never invents a name.
//!
//! redb serves most flipped bits as data, and panics on some. Checked at open, a small file is either sound or begun
//! anew, with equal answers. Unchecked, as a large one, it gives right answers or none; names may be missed, not
//! invented.

use std::fs;

use super::sample::{IDENTITY, Judge, Script, frames, head, open, rows, steady, storage};
use crate::codec::Frame;
use crate::index::{Index, IndexDurability, IndexOptions, NameKind};

const UNCHECKED: IndexOptions = IndexOptions {
    cache_bytes: 1 << 20,
    check_bytes_max: 0,
    sort_bytes_max: 1 << 20,
    pack_event_count_min: 4096,
};

struct Sound {
    script: Script,
    frames: Vec<Frame>,
    bytes: Vec<u8>,
}

impl Sound {
    fn new() -> Self {
        let script = steady(40);
        let frames = frames(&script);
        let folder = tempfile::tempdir().unwrap();
        let index = open(&folder, &frames, IndexOptions::default());
        for part in rows(&frames).chunks(9) {
            index.apply(part, IndexDurability::Immediate).unwrap();
        }
        drop(index);
        let bytes = fs::read(folder.path().join("index.redb")).unwrap();
        Self { script, frames, bytes }
    }

    fn judge(&self) -> Judge {
        Judge::new(&self.script, &self.frames)
    }

    /// Opens a damaged copy. Returns whether the index was noticed to be damaged at open.
    fn with(&self, damaged: &[u8], options: IndexOptions, look: impl FnOnce(&Index)) -> bool {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("index.redb"), damaged).unwrap();
        let path = folder.path().join("index.redb");
        let state = Index::open(&storage(folder.path()), IDENTITY, head(&self.frames), options);
        let index = state.owner().expect("no other process owns it and it can be removed");
        let noticed = index.notice().is_some();
        look(&index);
        let broken = index.broken().is_some();
        drop(index);
        assert!(!broken || !path.exists(), "what is put aside is removed");
        noticed
    }

    /// A file that is checked at open gives all answers, after missing frames are indexed again.
    fn check(&self, damaged: &[u8], judge: &Judge) -> bool {
        self.with(damaged, IndexOptions::default(), |index| {
            let known = usize::try_from(index.watermark().seq.0).unwrap() / 3;
            index.apply(&rows(&self.frames[known..]), IndexDurability::Immediate).unwrap();
            judge.check(index);
        })
    }

    /// A file that is not checked at open gives right answers or none.
    fn check_unchecked(&self, damaged: &[u8], judge: &Judge) -> bool {
        let mut put_aside = false;
        let noticed = self.with(damaged, UNCHECKED, |index| {
            if index.watermark().seq == head(&self.frames).0 {
                put_aside = index.digest().is_err();
            }
            for (kind, text) in judge.texts() {
                let Ok(found) = index.names(kind, &text, false, usize::MAX) else { continue };
                let expected = judge.names(kind, &text, false);
                assert!(found.iter().all(|entry| expected.contains(entry)), "{kind:?} {text:?}: {found:?}");
            }
            let _ = (index.digest(), index.names(NameKind::File, "", true, 1000));
        });
        noticed || put_aside
    }
}

/// Numbers without a pattern, the same each time.
fn scattered(seed: u64) -> impl FnMut(usize) -> usize {
    let mut state = seed;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    }
}

#[test]
fn one_flipped_bit_costs_at_most_a_rebuild() {
    let sound = Sound::new();
    let judge = sound.judge();
    assert!(!sound.check(&sound.bytes, &judge) && !sound.check_unchecked(&sound.bytes, &judge));
    let mut random = scattered(1);
    // Bits in pages that hold something: most of the file is spare.
    let used: Vec<usize> = (0..sound.bytes.len()).filter(|at| sound.bytes[*at] != 0).collect();
    let (mut checked_count, mut unchecked_count) = (0, 0);
    let flip_count = flip_count();
    for _ in 0..flip_count {
        let (at, bit) = (used[random(used.len())], random(8));
        let mut damaged = sound.bytes.clone();
        damaged[at] ^= 1 << bit;
        checked_count += usize::from(sound.check(&damaged, &judge));
        unchecked_count += usize::from(sound.check_unchecked(&damaged, &judge));
    }
    // If no flip hit anything that matters, this test shows nothing.
    assert!(
        checked_count > flip_count / 20 && unchecked_count > flip_count / 50,
        "{checked_count} and {unchecked_count} of {flip_count} noticed"
    );
}

/// A few hundred, or as many as `ACPDB_INDEX_FLIPS` says.
fn flip_count() -> usize {
    std::env::var("ACPDB_INDEX_FLIPS").ok().and_then(|count| count.parse().ok()).unwrap_or(200)
}

#[test]
fn a_file_cut_short_costs_at_most_a_rebuild() {
    let sound = Sound::new();
    let judge = sound.judge();
    let mut random = scattered(2);
    let lengths = [1, 4095, 4096, 8192, sound.bytes.len() - 1, sound.bytes.len() - 4096];
    for length in lengths.into_iter().chain((0..20).map(|_| random(sound.bytes.len()))) {
        sound.check(&sound.bytes[..length], &judge);
        sound.check_unchecked(&sound.bytes[..length], &judge);
    }
}

#[test]
fn pages_zeroed_garbled_or_swapped_cost_at_most_a_rebuild() {
    let sound = Sound::new();
    let judge = sound.judge();
    let mut random = scattered(3);
    let page_count = sound.bytes.len() / 4096;
    for round in 0..90 {
        let mut damaged = sound.bytes.clone();
        let page = if round < 6 { 0 } else { random(page_count) };
        let range = page * 4096..(page + 1) * 4096;
        match round % 3 {
            0 => damaged[range].fill(0),
            1 => damaged[range].iter_mut().for_each(|byte| *byte = u8::try_from(random(256)).unwrap()),
            _ => {
                let from = random(page_count) * 4096;
                damaged.copy_within(from..from + 4096, range.start);
            }
        }
        sound.check(&damaged, &judge);
        sound.check_unchecked(&damaged, &judge);
    }
}
