//! A thread that follows the store while others write, from its beginning to its end.

use std::sync::atomic::Ordering;
use std::time::Duration;

use acpdb_engine::event::Recorded;
use acpdb_engine::ids::Seq;
use acpdb_engine::store::Subscription;
use acpdb_engine::{Error, Store};

use super::diary::{Diary, Note};
use super::member::Member;
use super::told;
use super::weather::SKY;
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
    let read_only = dice.one_in(2);
    let open = |dice: &mut Dice| {
        member.setting.open(&member.folder, dice, read_only).map_err(|error| format!("follower: {error}"))
    };
    let store = open(&mut dice)?;
    let mut subscription = store.subscribe(Seq::ZERO);
    loop {
        let is_over = member.is_over.load(Ordering::SeqCst);
        member.is_at(thread, "follows");
        let mark = SKY.mark();
        let mut next = subscription.next_seq();
        let head = match follow_on(&store, &mut subscription, &mut next, &mut diary) {
            Ok(head) => head,
            // The next call goes on where this one stopped.
            Err(error) if SKY.excuses(mark, &error) => continue,
            Err(error) => return Err(fail(error)),
        };
        if is_over {
            let next = subscription.next_seq();
            return if next > head { Ok(()) } else { Err(format!("follower: told up to {next} of {head}")) };
        }
    }
}

/// Notes each commit that is there. `next`: the first seq that was not noted.
fn follow_on(
    store: &Store,
    subscription: &mut Subscription,
    next: &mut Seq,
    diary: &mut Diary,
) -> Result<Seq, Error> {
    let head = store.head()?;
    while let Some(commit) = subscription.next_within(Duration::from_millis(20))? {
        let first = commit.events.first().map_or(0, |event| event.seq.get());
        let told = diary.note(&Note::Told(first, commit.events.iter().map(word).collect()));
        told.map_err(|error| Error::ReadOnly { path: store.root().to_owned(), detail: error })?;
        *next = subscription.next_seq();
    }
    Ok(head)
}
