//! Kept data gives the same answers as a fold, or none.

use acpdb_engine::entry::{Entry, Fact, PointRef, StreamInfo, fact};
use acpdb_engine::event::{Report, Role, Usage};
use acpdb_engine::fold::Policy;
use acpdb_engine::ids::ItemId;
use expect_test::expect;
use proptest::prelude::*;

use super::*;
use crate::cost::{self, Requests};
use crate::filter::Filter;
use crate::testing::{play, store};
use crate::{SessionRow, sessions};

/// The data of lists and bills, as of a seq.
fn shown(store: &Store, at: Seq) -> (Vec<SessionRow>, Vec<cost::BilledRequest>, String) {
    let rows = sessions(store, at, &Filter::default()).unwrap().map(Result::unwrap).collect();
    let Requests { all, copies, streams, spans, titles } = cost::requests(store, at).unwrap();
    (rows, all, format!("{copies:?} {streams:?} {spans:?} {titles:?}"))
}

/// The bytes that would be kept of a store now.
fn kept(store: &Store) -> Vec<u8> {
    let keeping = Keeping::as_of(store, store.head().unwrap()).unwrap();
    let made = keeping.wanting.iter().map(|name| (name.id, keeping.figures(name).unwrap()));
    let made = made.filter_map(|(id, figures)| Some((id, figures?))).collect();
    keeping.bytes(made).unwrap()
}

/// One step of a history of four sessions, two of them forks.
fn act(store: &Store, number: usize, line: &str) {
    let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
    let (name, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let info = StreamInfo::session("acpdb", name);
    let append = |fact: Fact| {
        let _ = store.append(&info, vec![Entry::from(fact)]).unwrap();
    };
    match verb {
        "play" => {
            play(store, name, rest);
        }
        "told" => {
            let tokens: u64 = rest.parse().unwrap();
            let usage = Usage { input: Some(tokens), cache_read: Some(7), ..Usage::default() };
            let report = Report {
                model: Some(format!("claude-opus-4-{}", tokens % 3 + 4)),
                request: (tokens.is_multiple_of(2)).then(|| format!("r{}", tokens % 5)),
                cost: (tokens.is_multiple_of(7)).then_some(tokens),
                usage,
                ..Report::default()
            };
            append(Fact::MessageFinished(fact::MessageFinished { key: format!("k{}", tokens % 4), report }));
        }
        "title" => {
            let changed = StreamInfo { title: Some(format!("Title {number}")), ..info.clone() };
            let _ = store.append(&changed, vec![Entry::step("")]).unwrap();
        }
        "fork" if store.find_stream("a").is_ok() && store.find_stream(name).is_err() => {
            let from = StreamInfo::session("acpdb", "a").id();
            let at = if rest == "copy" { Seq::ZERO } else { store.find_stream("a").unwrap().head };
            append(Fact::Forked(fact::Forked { from, at: PointRef::Seq(at) }));
        }
        "policy" => {
            let preset = Policy::preset(rest).unwrap();
            let _ = store.change_policy(None, None, &|_| Ok(preset.clone()));
        }
        "erase" => {
            let Ok(stream) = store.find_stream(name) else { return };
            let seqs: Vec<Seq> =
                store.stream_events(stream.id, Seq(1), Seq::MAX).unwrap().map(|it| it.unwrap().seq).collect();
            if let Some(seq) = seqs.get(number % seqs.len()) {
                let _ = store.erase(ItemId::first(*seq), "me", "it leaked");
            }
        }
        _ => {}
    }
}

fn history() -> impl Strategy<Value = Vec<String>> {
    let session = prop::sample::select(vec!["a", "b"]);
    let any = prop::sample::select(vec!["a", "b", "f", "c"]);
    let call = prop::sample::select(vec![
        "turn",
        "user go on",
        "read /a ok",
        "edit /a ok",
        "read /a ok",
        "bash ls ok",
        "read /b failed",
    ]);
    let line = prop_oneof![
        8 => (any.clone(), call).prop_map(|(name, call)| format!("play {name} {call}")),
        3 => (any.clone(), 1..30_u64).prop_map(|(name, tokens)| format!("told {name} {tokens}")),
        1 => session.prop_map(|name| format!("title {name}")),
        1 => Just("fork f at".to_owned()),
        1 => Just("fork c copy".to_owned()),
        1 => prop::sample::select(vec!["policy - acp", "policy - economy", "policy - calm"]).prop_map(str::to_owned),
        1 => any.prop_map(|name| format!("erase {name}")),
    ];
    prop::collection::vec(line, 2..40)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn what_is_kept_at_any_time_shows_what_a_fold_shows(lines in history(), part in 0.0..1.0_f64) {
        let store = store();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a place")]
        let middle = (lines.len() as f64 * part) as usize;
        let mut half = None;
        for (number, line) in lines.iter().enumerate() {
            if number == middle && store.head().unwrap() > Seq::ZERO {
                half = Some((kept(&store), store.head().unwrap()));
            }
            act(&store, number, line);
        }
        let head = store.head().unwrap();
        let Some((half, at)) = half else { return Ok(()) };
        let (folded, earlier) = (shown(&store, head), shown(&store, at));
        let whole = kept(&store);
        prop_assert!(store.put_aside(NAME, &half));
        prop_assert_eq!(&shown(&store, head), &folded, "kept at {}", at);
        prop_assert_eq!(&shown(&store, at), &earlier);
        // Bytes that are made from kept bytes equal bytes that are made from none.
        prop_assert_eq!(kept(&store), whole.clone());
        prop_assert!(store.put_aside(NAME, &whole));
        prop_assert_eq!(&shown(&store, head), &folded);
        prop_assert_eq!(&shown(&store, at), &earlier, "what is kept is newer");
        prop_assert!(Keeping::due(&store).unwrap().is_none());
    }

    #[test]
    fn other_bytes_are_nothing(at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()) {
        let store = sample();
        let folded = shown(&store, Seq::MAX);
        let mut bytes = kept(&store);
        let place = at.index(bytes.len());
        if cut {
            bytes.truncate(place);
            prop_assert!(layout::decode(&bytes).is_none());
            prop_assert!(store.put_aside(NAME, &bytes));
            prop_assert_eq!(shown(&store, Seq::MAX), folded);
        } else {
            // Only the digest around these bytes tells that they are wrong; they only must not break anything.
            bytes[place] = byte;
            let _ = layout::decode(&bytes);
        }
    }
}

fn sample() -> Store {
    let store = store();
    play(&store, "one", "user mend the parser\nturn\nread /a ok\nedit /a ok\nread /a ok");
    act(&store, 0, "told one 12");
    act(&store, 1, "title one");
    play(&store, "two", "user another\nturn\nread /b ok");
    store
}

#[test]
fn a_later_layout_and_another_stores_are_nothing() {
    let store = sample();
    let folded = shown(&store, Seq::MAX);
    let mut later = kept(&store);
    let layout = later.first_mut().unwrap();
    *layout += 1;
    assert!(store.put_aside(NAME, &later));
    assert_eq!(shown(&store, Seq::MAX), folded);
    // A row of a session that is not there, and rows with wrong figures, kept up to a seq that the log does not have.
    let (mut told, mut figures) = layout::decode(&kept(&store)).unwrap();
    told.until = Seq(1_000_000);
    for row in figures.values_mut() {
        row.calls = 99;
    }
    figures.insert(StreamId([7; 16]), Figures::default());
    assert!(store.put_aside(NAME, &layout::encode(&told, &figures)));
    assert_eq!(shown(&store, Seq::MAX), folded);
}

#[test]
fn rows_that_are_kept_are_used() {
    let store = sample();
    let (told, mut figures) = layout::decode(&kept(&store)).unwrap();
    for row in figures.values_mut() {
        row.calls = 99;
    }
    assert!(store.put_aside(NAME, &layout::encode(&told, &figures)));
    let calls = |store: &Store| -> Vec<u64> {
        shown(store, store.head().unwrap()).0.iter().map(|row| row.summary.calls).collect()
    };
    assert_eq!(calls(&store), [99, 99]);
    play(&store, "one", "read /c ok");
    assert_eq!(calls(&store), [4, 99], "a session that has grown is folded");
    // An erasure is an event of the store's own stream, as a policy is: it made all figures void.
    play(&store, "three", "user a third\nturn\nread /c ok");
    assert_eq!(calls(&store), [4, 99, 1]);
    act(&store, 1, "erase three");
    assert_eq!(calls(&store), [4, 99, 1], "the second one has its texts");
    act(&store, 1, "erase two");
    assert_eq!(calls(&store), [4, 1, 1]);
    assert!(Keeping::due(&store).unwrap().is_some(), "a row that was kept is to be made");
    act(&store, 0, "policy - economy");
    assert_eq!(calls(&store), [4, 1, 1], "all are under another policy");
}

/// The fork between had a new event, so its row was gone before forks of it were looked for.
#[test]
fn an_erasure_makes_void_the_row_of_a_fork_of_a_fork() {
    let store = store();
    play(&store, "a", "user mend the parser\nturn\nread /a ok");
    for (name, from) in [("b", "a"), ("c", "b")] {
        let from = store.find_stream(from).unwrap();
        let forked = fact::Forked { from: from.id, at: PointRef::Seq(store.head().unwrap()) };
        let _ = store.append(&StreamInfo::session("acpdb", name), vec![Fact::Forked(forked).into()]).unwrap();
    }
    let (told, mut figures) = layout::decode(&kept(&store)).unwrap();
    for row in figures.values_mut() {
        row.calls = 99;
    }
    assert!(store.put_aside(NAME, &layout::encode(&told, &figures)));
    play(&store, "b", "user go on");
    act(&store, 1, "erase a");
    let rows = shown(&store, store.head().unwrap()).0;
    let calls: Vec<u64> = rows.iter().map(|row| row.summary.calls).collect();
    assert_eq!(calls, [1, 1, 1], "none of them is as it was kept");
}

/// Nothing is kept by a handle that saves nothing, so each append found that much was new, folded all sessions, and threw the rows away.
#[test]
fn a_store_that_keeps_nothing_aside_is_not_folded_for_it() {
    use acpdb_engine::storage::SimWorld;
    use std::sync::Arc;

    let world = SimWorld::new(7);
    let builder = Store::builder("/sim").storage(Arc::new(world.process(1)));
    let bare = builder.snapshots(false).open().unwrap();
    let plain = store();
    for (store, is_kept) in [(bare, false), (plain, true)] {
        let said = |number| Entry::message(format!("m{number}"), Role::User, "go on");
        let entries = (0..NEW_COUNT_MIN).map(said).collect();
        let _ = store.append(&StreamInfo::session("acpdb", "one"), entries).unwrap();
        assert_eq!(is_much_new(&store).unwrap(), is_kept);
        assert_eq!(Keeping::due(&store).unwrap().is_some(), is_kept);
    }
}

#[test]
fn no_text_is_kept_and_an_erased_prompt_is_no_title() {
    let store = store();
    let info = StreamInfo::session("acpdb", "one");
    let said = vec![
        Entry::message("", Role::User, "the token is hunter2"),
        Entry::message("", Role::User, "mend the parser"),
    ];
    let receipt = store.append(&info, said).unwrap();
    let bytes = kept(&store);
    assert!(store.put_aside(NAME, &bytes));
    assert!(!bytes.windows(7).any(|it| it == b"hunter2"));
    let title = |store: &Store| shown(store, store.head().unwrap()).0[0].summary.name.title.clone();
    assert_eq!(title(&store).as_deref(), Some("the token is hunter2"));
    let first = receipt.items[0].unwrap();
    assert!(store.erase(first, "me", "it leaked").unwrap().recorded.is_some());
    assert_eq!(title(&store).as_deref(), Some("mend the parser"));
}

/// Fails if rows or their bytes change, and the number of the layout does not.
#[test]
fn the_layout_is_as_its_number_says() {
    // Times of a store differ from run to run; so each is put at a place of its own.
    let (mut told, mut figures) = layout::decode(&kept(&sample())).unwrap();
    for telling in &mut told.all {
        telling.request.at = Some(Micros(5));
        telling.identity = None;
    }
    for times in told.times.values_mut() {
        (times.host, times.recorded) = (None, Some((Micros(1), Micros(-2))));
    }
    for row in figures.values_mut() {
        row.ended = Some(Micros(7));
    }
    let bytes = layout::encode(&told, &figures);
    assert_eq!(layout::decode(&bytes), Some((told, figures)));
    let digest: String =
        crate::cost::told::mark(&[&bytes]).iter().map(|byte| format!("{byte:02x}")).collect();
    expect!["9: 172 bytes, 8068d015bce041efce3812c5f319b4d9"].assert_eq(&format!(
        "{}: {} bytes, {digest}",
        bytes[0],
        bytes.len()
    ));
}
