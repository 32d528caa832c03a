//! A thread that follows the store while others write, from its beginning to its end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use acpdb_engine::event::Recorded;
use acpdb_engine::ids::Seq;

use super::diary::{Diary, Note};
use super::member::Member;
use super::told;
use crate::soak::Dice;

/// An event in a word that stays, whatever is erased.
#[must_use]
pub fn word(recorded: &Recorded) -> String {
    format!("{} {} {}", recorded.seq, recorded.event.stream, recorded.recorded_at.get())
}

/// Follows until the others are done and nothing is left.
///
/// # Errors
/// In words.
pub fn follow(member: &Member, mut diary: Diary, thread: usize) -> Result<(), String> {
    let mut dice = Dice::new(member.setting.seed ^ member.number as u64);
    let fail = |error| format!("follower: {}", told(&error));
    let builder = member.setting.builder(&member.folder, &mut dice);
    let builder = if dice.one_in(2) { builder.read_only() } else { builder };
    let store = builder.open().map_err(fail)?;
    let mut subscription = store.subscribe(Seq::ZERO);
    loop {
        let is_over = member.is_over.load(Ordering::SeqCst);
        let head = store.head().map_err(fail)?;
        member.is_at(thread, "follows");
        while let Some(commit) = subscription.next_within(Duration::from_millis(20)).map_err(fail)? {
            let first = commit.events.first().map_or(0, |event| event.seq.get());
            diary.note(&Note::Told(first, commit.events.iter().map(word).collect()))?;
        }
        if is_over {
            let next = subscription.next_seq();
            return if next > head { Ok(()) } else { Err(format!("follower: told up to {next} of {head}")) };
        }
    }
}
