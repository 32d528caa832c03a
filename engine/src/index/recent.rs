//! The places of the frames that were indexed last, in memory: new frames are asked for most, and looking here
//! takes a tenth of a look-up in the file.
//!
//! A bounded number of frames, without gaps; it holds nothing that is not in the file.

use std::collections::VecDeque;

use crate::ids::{Position, Seq};

use super::FramePlace;

/// Frames that are kept, 16 bytes each.
const FRAME_COUNT_MAX: usize = 1 << 17;

/// The last frames of an index.
#[derive(Debug, Default)]
pub(super) struct Recent {
    /// First seqs, rising, and places.
    frames: VecDeque<(Seq, Position)>,
    last: Seq,
}

impl Recent {
    /// Takes in the next frame; a frame that does not continue the kept ones replaces them.
    pub(super) fn push(&mut self, place: FramePlace) {
        if place.first_seq != self.last.next() {
            self.frames.clear();
        }
        if self.frames.len() >= FRAME_COUNT_MAX {
            self.frames.pop_front();
        }
        self.frames.push_back((place.first_seq, place.position));
        self.last = place.last_seq;
    }

    /// The frame that holds `seq`, if it is one of these.
    pub(super) fn place_of(&self, seq: Seq) -> Option<FramePlace> {
        if seq > self.last {
            return None;
        }
        let after = self.frames.partition_point(|(first, _)| *first <= seq);
        let (first_seq, position) = *self.frames.get(after.checked_sub(1)?)?;
        let next = self.frames.get(after).map_or(self.last.next(), |(next, _)| *next);
        Some(FramePlace { first_seq, last_seq: next.before(), position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(first: u64, last: u64) -> FramePlace {
        let position = Position::new(1, first * 160).unwrap();
        FramePlace { first_seq: Seq(first), last_seq: Seq(last), position }
    }

    #[test]
    fn every_seq_of_the_last_frames_is_found_and_no_other() {
        let mut recent = Recent::default();
        assert_eq!(recent.place_of(Seq(1)), None);
        let places = [place(5, 5), place(6, 9), place(10, 10)];
        for place in places {
            recent.push(place);
        }
        for seq in 0..13 {
            let expected = places.iter().find(|place| (place.first_seq..=place.last_seq).contains(&Seq(seq)));
            assert_eq!(recent.place_of(Seq(seq)), expected.copied(), "{seq}");
        }
    }

    #[test]
    fn a_gap_forgets_what_lies_before_it() {
        let mut recent = Recent::default();
        recent.push(place(1, 2));
        recent.push(place(4, 4));
        assert_eq!(recent.place_of(Seq(2)), None);
        assert_eq!(recent.place_of(Seq(3)), None);
        assert_eq!(recent.place_of(Seq(4)), Some(place(4, 4)));
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for() {
        let mut recent = Recent::default();
        let count = FRAME_COUNT_MAX as u64 + 10;
        for seq in 1..=count {
            recent.push(place(seq, seq));
        }
        assert_eq!(recent.frames.len(), FRAME_COUNT_MAX);
        assert_eq!(recent.place_of(Seq(10)), None);
        assert_eq!(recent.place_of(Seq(11)), Some(place(11, 11)));
    }
}
