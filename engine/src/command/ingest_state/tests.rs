//! An ingest state that was saved, restored and fed the rest is the ingest state that was fed everything.

use std::sync::Arc;

use proptest::prelude::*;
use rkyv::rancor::Failure;
use rkyv::util::AlignedVec;

use super::*;
use crate::entry::{Entry, Fact, MemoryEntry, PartEntry, WirePiece, fact};
use crate::event::{MemoryKind, Role, TurnKind};
use crate::ids::Origin;
use crate::secret::Secret;
use crate::testing::{Tape, TestTools};

/// The origin on a tape, which has no secret.
fn origin_of(fact: &str) -> Origin {
    Secret::missing().origin(fact)
}

/// A fact of a small world, so that many are told again, changed, continued or ended.
fn entry_of(number: u16) -> Entry {
    let (kind, key, text) = (number % 10, number / 10 % 5, number / 50 % 4);
    let parts = |count: u16| {
        (0..count).map(|part| PartEntry::text(format!("text {text} part {part}"))).collect::<Vec<_>>()
    };
    let call = format!("c{key}");
    let entry: Entry = match kind {
        0 | 1 => Entry::message_parts(format!("m{key}"), Role::Assistant, parts(1 + text % 3))
            .origin(format!("msg:{key}")),
        2 => Entry::from(fact::MessageContinued { key: format!("m{key}"), parts: parts(1 + text % 2) })
            .origin(format!("more:{key}:{}", text % 2)),
        3 | 4 => Entry::tool_started(&call, "read", format!(r#"{{"filePath":"f{text}"}}"#))
            .origin(format!("{call}:start")),
        5 | 6 => Entry::tool_completed(&call, format!("output {text}")).origin(format!("{call}:end")),
        7 => {
            let id = if text == 0 { String::new() } else { format!("id{text}") };
            let memory = MemoryEntry {
                id,
                kind: MemoryKind::Fact,
                value: format!("value {key}"),
                ..MemoryEntry::default()
            };
            Entry::from(Fact::Memory(memory)).origin(format!("memory:{key}:{text}"))
        }
        8 => Entry::from(fact::SessionChanged {
            title: Some(format!("title {text}")),
            cwd: (key == 0).then(|| "/w".to_owned()),
            project: (key == 1).then(|| "p".to_owned()),
            ..fact::SessionChanged::default()
        }),
        _ => Entry::from(fact::TurnStarted { kind: TurnKind::Step, key: format!("t{key}"), number: None }),
    };
    if number.is_multiple_of(3) { entry.wire(vec![WirePiece::Literal(b"{}".to_vec())]) } else { entry }
}

fn tape_of(numbers: &[u16]) -> Tape {
    let mut tape = Tape::new("test", "s", Arc::new(TestTools));
    for number in numbers {
        tape.entry(entry_of(*number));
    }
    tape
}

fn observed(events: &[Recorded]) -> IngestState {
    let mut ingest_state = IngestState::default();
    for event in events {
        ingest_state.observe(event);
    }
    ingest_state
}

fn archive(ingest_state: &IngestState) -> AlignedVec {
    rkyv::to_bytes::<Failure>(&ingest_state.save()).unwrap()
}

fn read(archive: &[u8]) -> Option<IngestState> {
    IngestState::restore(rkyv::from_bytes::<SavedIngestState, Failure>(archive).ok()?)
}

fn through_bytes(ingest_state: &IngestState) -> IngestState {
    read(&archive(ingest_state)).unwrap()
}

/// All answers of an ingest state about the small world.
fn answers(ingest_state: &IngestState) -> String {
    let free = ingest_state.free_memory_id('f', &mut ingest_state.first_memory_number(), &|_| false);
    let mut out = format!("{:?} {free:?}\n", ingest_state.open_calls());
    for key in 0..5 {
        let mut names = vec![format!("msg:{key}"), format!("c{key}:start"), format!("c{key}:end")];
        names.extend((0..4).map(|text| format!("memory:{key}:{text}")));
        names.extend((0..2).map(|text| format!("more:{key}:{text}")));
        for name in names {
            let origin = origin_of(&name);
            out += &format!("{name} {:?} {:?}\n", ingest_state.seen(origin), ingest_state.part_items(origin));
        }
        let (call, id) = (format!("c{key}"), format!("id{key}"));
        out += &format!("{:?} {}\n", ingest_state.open_call(&call), ingest_state.has_memory(&id));
    }
    out
}

#[track_caller]
fn assert_alike(one: &IngestState, other: &IngestState) {
    assert_eq!(answers(one), answers(other));
    assert_eq!(one.save(), other.save());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::testing::cases(96)))]

    #[test]
    fn saved_anywhere_and_fed_the_rest_it_is_what_the_log_says(
        numbers in prop::collection::vec(any::<u16>(), 0..80),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let tape = tape_of(&numbers);
        let events = tape.events();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(events.len() + 1)).collect();
        cuts.sort_unstable();
        let mut ingest_state = IngestState::default();
        let mut fed = 0;
        for cut in cuts {
            for event in &events[fed..cut] {
                ingest_state.observe(event);
            }
            ingest_state = through_bytes(&ingest_state);
            fed = cut;
        }
        for event in &events[fed..] {
            ingest_state.observe(event);
        }
        assert_alike(&ingest_state, &observed(events));
        assert_eq!(ingest_state.event_count, events.len() as u64);
    }
}

#[test]
fn facts_are_found_among_many() {
    let mut tape = Tape::new("test", "s", Arc::new(TestTools));
    for number in 0..20_000 {
        tape.entry(Entry::message(format!("m{number}"), Role::User, "x").origin(format!("m{number}")));
    }
    let (half, rest) = tape.events().split_at(10_000);
    let whole = observed(tape.events());
    let mut restored = through_bytes(&observed(half));
    for number in 0..20_000 {
        let origin = origin_of(&format!("m{number}"));
        let known = whole.seen(origin).filter(|seen| seen.seq <= restored.head);
        assert_eq!(restored.seen(origin), known, "{number}");
    }
    for event in rest {
        restored.observe(event);
    }
    assert_alike(&restored, &whole);
    let again = through_bytes(&restored);
    assert_alike(&again, &whole);
}

/// A digest keeps such archives away; they are safe to read all the same.
#[test]
fn a_changed_archive_is_refused_or_harmless() {
    let ingest_state = observed(tape_of(&(0..200).map(|number| number * 37).collect::<Vec<_>>()).events());
    let mut saved = archive(&ingest_state);
    for place in 0..saved.len() {
        let bit = 1 << (place % 8);
        saved[place] ^= bit;
        if let Some(restored) = read(&saved) {
            let _ = answers(&restored);
        }
        saved[place] ^= bit;
        assert!(place % 7 > 0 || read(&saved[..place]).is_none(), "cut to {place}");
    }
    assert_alike(&read(&saved).unwrap(), &ingest_state);
}

/// When the search for each id began at the first number, 16,000 entries in one commit took 102 s.
#[test]
fn ids_of_memory_are_looked_for_once() {
    let mut ingest_state = IngestState::default();
    ingest_state.memory_ids.extend(["f2", "f4", "note"].map(str::to_owned));
    let mut pending = FxHashSet::from_iter(["f7".to_owned(), "p4".to_owned()]);
    let (mut asked, mut given) = (0, Vec::new());
    let mut numbers = [ingest_state.first_memory_number(); 2];
    for round in 0..2000 {
        let place = usize::from(round % 3 == 2);
        let letter = ['f', 'p'][place];
        let id = ingest_state.free_memory_id(letter, &mut numbers[place], &|id| pending.contains(id));
        // A search from the first number on finds the same id.
        let first = &mut ingest_state.first_memory_number();
        if round < 40 {
            assert_eq!(ingest_state.free_memory_id(letter, first, &|id| pending.contains(id)), id);
        }
        asked += 1;
        pending.insert(id.clone());
        given.push(id);
    }
    assert_eq!(given[..6], ["f5", "f6", "p5", "f8", "f9", "p6"]);
    let last = numbers.iter().map(|number| number - ingest_state.first_memory_number()).sum::<usize>();
    assert!(last <= asked + 3, "{last} numbers were tried for {asked} ids");
}
