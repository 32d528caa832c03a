//! Laws: file = memory = scan of the script; split = whole; a reopened index goes on.

use proptest::prelude::*;

use super::sample::{Judge, frames, open, rows, scripts};
use crate::index::{IndexDurability, IndexOptions, MemoryIndex};

proptest! {
    #[test]
    fn answers_are_those_of_a_scan_and_a_split_equals_the_whole(script in scripts(12), cut in 0_usize..12) {
        let frames = frames(&script);
        let all = rows(&frames);
        let mut whole = MemoryIndex::default();
        whole.apply(&all).unwrap();
        Judge::new(&script, &frames).check(&whole);

        let mut split = MemoryIndex::default();
        let cut = cut.min(all.len());
        split.apply(&all[..cut]).unwrap();
        // Frames that it knows already are skipped.
        split.apply(&all[cut / 2..]).unwrap();
        prop_assert_eq!(split.digest(), whole.digest());
        prop_assert_eq!(split.watermark(), whole.watermark());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_file_equals_memory_row_by_row(
        script in scripts(14),
        steps in prop::collection::vec((1_usize..5, any::<bool>(), any::<bool>()), 1..8),
    ) {
        let frames = frames(&script);
        let all = rows(&frames);
        let folder = tempfile::tempdir().unwrap();
        let mut index = open(&folder, &frames, IndexOptions::default());
        let mut memory = MemoryIndex::default();
        let mut next = 0;
        for (count, immediate, reopen) in steps.into_iter().cycle() {
            let end = (next + count).min(all.len());
            let durability = if immediate { IndexDurability::Immediate } else { IndexDurability::None };
            let watermark = index.apply(&all[next..end], durability).unwrap();
            memory.apply(&all[next..end]).unwrap();
            prop_assert_eq!(watermark, memory.watermark());
            prop_assert_eq!(index.difference(&memory).unwrap(), None);
            prop_assert_eq!(index.digest(), memory.digest());
            if reopen {
                // Rows that need not last may go with the handle.
                index.apply(&[], IndexDurability::Immediate).unwrap();
                drop(index);
                index = open(&folder, &frames, IndexOptions::default());
                prop_assert_eq!(index.notice(), None);
                prop_assert_eq!(index.watermark(), memory.watermark());
            }
            next = end;
            if next == all.len() {
                break;
            }
        }
        Judge::new(&script, &frames).check(&*index);
        prop_assert_eq!(index.row_count().unwrap(), memory.row_count());
    }
}

#[test]
fn a_difference_is_found_and_named() {
    let script = super::sample::steady(6);
    let frames = frames(&script);
    let all = rows(&frames);
    let folder = tempfile::tempdir().unwrap();
    let index = open(&folder, &frames, IndexOptions::default());
    index.apply(&all[..5], IndexDurability::None).unwrap();
    let mut memory = MemoryIndex::default();
    memory.apply(&all).unwrap();
    assert_eq!(index.difference(&memory).unwrap().as_deref(), Some("it is at #15, not #18"));
    assert_ne!(index.digest(), memory.digest());
}
