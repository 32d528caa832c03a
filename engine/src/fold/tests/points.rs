//! The seqs at which an item changes: none is missed, and the end of a call is among them.

use proptest::prelude::*;

use super::{Face, Policy, Seq};
use crate::testing::Script;

/// Results and revisions moved to a list of their own, and `settled` went on looking in the other one: it was always
/// zero, so an exporter kept reasoning that was bound to a content that had come later.
#[test]
fn a_call_settles_when_it_ends() {
    let policy = Policy::from_json(r#""acp""#).unwrap();
    let played = Script::parse("1 read a open\n2 say hello\n3 finish c1 ok").play(&policy);
    let state = played.tape.state();
    let ix = played.ix("c1").unwrap();
    let finished = state.item(ix, Seq::MAX).unwrap().finished.unwrap();
    assert_eq!(state.settled(ix, Seq::MAX), finished);
    assert_eq!(state.settled(ix, Seq(finished.get() - 1)), Seq::ZERO);
    assert_eq!(state.turning_points(ix, Seq::MAX), [state.item_id(ix).unwrap().seq, finished]);
}

proptest! {
    /// Between two of its turning points an item is as it was at the first.
    #[test]
    fn nothing_changes_between_turning_points(numbers in prop::collection::vec(any::<u16>(), 0..60)) {
        let played = Script::from_numbers(&numbers).play(&Policy::from_json(r#""balanced""#).unwrap());
        let state = played.tape.state();
        for ix in state.items(Seq::MAX) {
            let points = state.turning_points(ix, Seq::MAX);
            for at in (state.item_id(ix).unwrap().seq.get()..=state.head().get()).map(Seq) {
                let last = points.iter().rev().find(|point| **point <= at).copied().unwrap();
                for face in [Face::Input, Face::Output] {
                    prop_assert_eq!(state.face(ix, face, at).state, state.face(ix, face, last).state);
                    prop_assert_eq!(state.face(ix, face, at).cause, state.face(ix, face, last).cause);
                }
                prop_assert_eq!(state.is_in_context(ix, at), state.is_in_context(ix, last));
                prop_assert_eq!(state.status(ix, at), state.status(ix, last));
            }
        }
    }
}
