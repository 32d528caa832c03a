use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::event::TaskStatus;
use crate::ids::{Seq, Turn};

/// One piece a word: `MESSAGE:KIND[*][=TASK]`, kind o(utput), w(ords), t(ext), x (other); `*`: signed.
fn parse(script: &str) -> Vec<Piece<'_>> {
    let piece = |word| {
        let (head, task) = str::split_once(word, '=').map_or((word, None), |(head, task)| (head, Some(task)));
        let (message, kind) = head.split_once(':').unwrap();
        let kind_of = |letter| match letter {
            "o" => PieceKind::Output,
            "w" => PieceKind::Words,
            "t" => PieceKind::Text,
            _ => PieceKind::Other,
        };
        Piece {
            kind: kind_of(kind.trim_end_matches('*')),
            message: message.parse().unwrap(),
            task,
            signed: kind.ends_with('*'),
        }
    };
    script.split_whitespace().map(piece).collect()
}

fn show(script: &str, hidden: &[(usize, StandIn)]) -> String {
    let words: Vec<&str> = script.split_whitespace().collect();
    let shown = |(index, stand_in): &(usize, StandIn)| {
        let place = match stand_in {
            StandIn::Output { summary: false } => "output".to_owned(),
            StandIn::Output { summary: true } => "output, summary".to_owned(),
            StandIn::Words { summary, signature } => {
                let signature =
                    signature.map_or(String::new(), |index| format!(" signed by {}", words[index]));
                format!("words{signature}{}", if *summary { ", summary" } else { "" })
            }
            StandIn::Dropped => "dropped".to_owned(),
        };
        format!("{} {place}\n", words[*index])
    };
    hidden.iter().map(shown).collect()
}

#[track_caller]
fn check(script: &str, range: Option<(u64, Option<u64>)>, expected: &Expect) {
    let range = range.map(|(first, last)| MessageRange { first, last });
    expected.assert_eq(&show(script, &evicted(&parse(script), "T", range)));
}

#[test]
fn outputs_go_wherever_they_stand_and_words_in_the_range() {
    let history = "1:t 2:w* 2:x 3:w 3:x 4:o=T 5:w 5:w* 5:w* 5:x 6:o=U 7:t 8:w 8:x 9:w 9:o=T 10:t=T 11:x=T";
    check(
        history,
        Some((3, Some(8))),
        &expect![[r#"
        3:w words
        4:o=T output
        5:w words signed by 5:w*
        5:w* dropped
        5:w* dropped
        8:w words
        9:o=T output
        10:t=T output, summary
    "#]],
    );
    check(
        history,
        Some((3, None)),
        &expect![[r#"
        3:w words
        4:o=T output
        5:w words signed by 5:w*
        5:w* dropped
        5:w* dropped
        8:w words
        9:w words
        9:o=T output
        10:t=T output, summary
    "#]],
    );
    check(
        history,
        None,
        &expect![[r#"
        4:o=T output
        9:o=T output
        10:t=T output, summary
    "#]],
    );
}

#[test]
fn the_summary_stands_in_the_last_place_that_can_carry_it() {
    // The completing message is a bare call.
    check(
        "1:x 2:o=T 3:w 4:x",
        Some((1, Some(4))),
        &expect![[r#"
        2:o=T output
        3:w words, summary
    "#]],
    );
    // The last hidden part is dropped: the tombstone of its message carries the summary.
    check(
        "1:o=T 2:w 2:w",
        Some((1, Some(2))),
        &expect![[r#"
        1:o=T output
        2:w words, summary
        2:w dropped
    "#]],
    );
    check("1:o=U 2:t", Some((1, None)), &expect![""]);
    check("", None, &expect![""]);
}

#[test]
fn a_range_is_told_by_messages_or_else_by_events() {
    let point = |seq, message: &str| TaskPoint {
        seq: Seq(seq),
        message: (!message.is_empty()).then(|| message.to_owned()),
    };
    let number = |key: &str| key.strip_prefix('m').and_then(|number| number.parse().ok());
    for (begun, ended, range) in [
        (None, Some(point(9, "m8")), None),
        (Some(point(4, "m3")), None, Some((3, None))),
        (Some(point(4, "m3")), Some(point(9, "m8")), Some((3, Some(8)))),
        (Some(point(4, "")), Some(point(9, "unknown")), Some((4, Some(9)))),
    ] {
        let task = TaskView {
            id: "T",
            seq: Seq(9),
            turn: Turn(1),
            status: TaskStatus::Completed,
            content: None,
            extras: &[],
            summary: None,
            begun: begun.as_ref(),
            ended: ended.as_ref(),
            eviction: None,
        };
        let expected = range.map(|(first, last)| MessageRange { first, last });
        assert_eq!(MessageRange::of(&task, number), expected);
    }
}

#[test]
fn a_rolling_prune_leaves_the_newest_outputs_of_its_task() {
    let history = "1:o=T 2:o=U 3:o=T 4:w=T 5:x=T 6:o=T 7:w";
    for (outputs_max, hidden) in [(0, vec![0, 2, 3, 5]), (1, vec![0, 2, 3]), (3, vec![0]), (4, vec![])] {
        assert_eq!(rolled(&parse(history), "T", outputs_max), hidden);
    }
}

#[test]
fn texts() {
    let shown = [
        output_text("t 1/ä", "S:1", None),
        output_text("t1", "S1", Some("Fixed.")),
        words_text("t1", None),
        words_text("t1", Some("Fixed.")),
        rolling_text("t1", "../S1"),
        with_task_tag("out", "t1"),
    ];
    expect![[r#"
        [Task t 1/ä completed: output evicted to archive. Use 'grep' on .sigma/archives/S_1/t_1_ä.log if previous logs are needed.]
        [Task t1 completed. Raw logs evicted to archive. 
        SUMMARY: Fixed.]
        [Assistant thinking/text for task t1 evicted to save tokens.]
        [Assistant thinking/text for task t1 evicted to save tokens. 
        SUMMARY: Fixed.]
        [Tool output for task t1 evicted (Rolling Prune) to keep context small. Use 'grep' on .sigma/archives/.._S1/t1.log if previous logs are needed.]
        out

        <!-- sigma-task: t1 -->"#]].assert_eq(&shown.join("\n"));
}

#[test]
fn tags_stand_at_the_end_and_name_the_whole_task() {
    for (text, task) in [
        ("out\n\n<!-- sigma-task: t1 -->", Some("t1")),
        ("<!-- sigma-task: t 1 -->\n ", Some("t 1")),
        ("<!-- sigma-task: a --> <!-- sigma-task: b -->", Some("b")),
        ("<!-- sigma-task: t1 --> more", None),
        ("<!-- sigma-task: a --> x -->", None),
        ("<!-- sigma-task:  -->", None),
        ("<!-- other: t1 -->", None),
        (" -->", None),
        ("", None),
    ] {
        assert_eq!(task_tag(text), task, "{text:?}");
    }
}

fn pieces() -> impl Strategy<Value = Vec<Piece<'static>>> {
    let kind = prop::sample::select(vec![
        PieceKind::Output,
        PieceKind::Words,
        PieceKind::Words,
        PieceKind::Text,
        PieceKind::Other,
    ]);
    let task = prop::sample::select(vec![None, None, Some("T"), Some("U")]);
    let piece = (kind, 0u64..2, task, any::<bool>());
    prop::collection::vec(piece, 0..20).prop_map(|pieces| {
        let mut message = 0;
        pieces
            .into_iter()
            .map(|(kind, more, task, signed)| {
                message += more;
                Piece { kind, message, task, signed }
            })
            .collect()
    })
}

proptest! {
    /// One summary, in the last place; one tombstone a message with the first signature hidden in it; calls, other
    /// tasks' outputs and what others said stay.
    #[test]
    fn evictions_keep_the_history_valid(
        pieces in pieces(),
        range in prop::option::of((0u64..10, prop::option::of(0u64..15))),
    ) {
        let range = range.map(|(first, last)| MessageRange { first, last });
        let hidden = evicted(&pieces, "T", range);
        prop_assert!(hidden.windows(2).all(|pair| pair[0].0 < pair[1].0));
        let has_summary = |stand_in: &StandIn| {
            matches!(stand_in, StandIn::Output { summary: true } | StandIn::Words { summary: true, .. })
        };
        let places: Vec<_> = hidden.iter().filter(|(_, stand_in)| *stand_in != StandIn::Dropped).collect();
        prop_assert!(hidden.is_empty() == places.is_empty());
        for (order, (_, stand_in)) in places.iter().enumerate() {
            prop_assert_eq!(has_summary(stand_in), order + 1 == places.len());
        }
        for (index, stand_in) in &hidden {
            let piece = pieces[*index];
            match stand_in {
                StandIn::Output { .. } => prop_assert!(piece.task == Some("T") && piece.kind != PieceKind::Other),
                _ => prop_assert!(piece.kind == PieceKind::Words && range.unwrap().contains(piece.message)),
            }
            if let StandIn::Words { signature, .. } = stand_in {
                let of_message = |other: &&(usize, StandIn)| {
                    pieces[other.0].message == piece.message && !matches!(other.1, StandIn::Output { .. })
                };
                let parts: Vec<_> = hidden.iter().filter(of_message).collect();
                prop_assert_eq!(parts[0].0, *index);
                prop_assert_eq!(*signature, parts.iter().map(|part| part.0).find(|part| pieces[*part].signed));
            }
        }
        // What is left of T: nothing but calls, and words out of range.
        for (index, piece) in pieces.iter().enumerate().filter(|(_, piece)| piece.task == Some("T")) {
            prop_assert_eq!(hidden.iter().any(|(other, _)| *other == index), piece.kind != PieceKind::Other);
        }
    }

    #[test]
    fn a_tag_that_is_written_is_read(output in ".*", task in "[a-z][a-z0-9 /.-]{0,8}[a-z]") {
        let tagged = with_task_tag(&output, &task);
        prop_assert_eq!(task_tag(&tagged), Some(task.as_str()));
    }
}
