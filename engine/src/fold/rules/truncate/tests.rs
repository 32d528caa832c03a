#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const DEFAULT: HeadAndTail = HeadAndTail { max_tokens: 2000, head_ratio: 0.4, tail_ratio: 0.4 };

fn cut(text: &str, settings: &HeadAndTail) -> Option<String> {
    settings.cut(text.as_bytes())
}

fn check(short: Option<String>, expected: &Expect) {
    expected.assert_eq(&short.unwrap_or_else(|| "(whole)".to_owned()));
}

fn numbered(count: usize, word: &str) -> String {
    (1..=count).map(|number| format!("{word} {number}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_middle_of_a_long_output_is_left_out() {
    let settings = HeadAndTail { max_tokens: 30, ..DEFAULT };
    check(
        cut(&numbered(40, "line"), &settings),
        &expect![[r#"
        line 1
        line 2
        line 3
        line 4

        [... 32 lines truncated to save context ...]

        line 37
        line 38
        line 39
        line 40"#]],
    );
    check(cut(&numbered(20, "a long line that is one of twenty"), &settings), &expect![["(whole)"]]);
    check(cut(&numbered(40, "line"), &DEFAULT), &expect![["(whole)"]]);
}

#[test]
fn an_output_without_a_gap_or_gain_stays() {
    let all = HeadAndTail { max_tokens: 30, head_ratio: 2.0, tail_ratio: 9.0 };
    check(cut(&numbered(40, "line"), &all), &expect![["(whole)"]]);
    // Leaving out a few short lines would cost more than it saves.
    let most = HeadAndTail { max_tokens: 50, head_ratio: 1.0, tail_ratio: 1.2 };
    check(cut(&numbered(40, "x"), &most), &expect![["(whole)"]]);
    let fewer = HeadAndTail { head_ratio: 0.5, ..most };
    assert!(cut(&numbered(40, "x"), &fewer).is_some_and(|short| short.contains("[... 12 lines ")));
    // No line fits: only the mark remains.
    let none = HeadAndTail { max_tokens: 10, head_ratio: 0.0, tail_ratio: 0.0 };
    check(
        cut(&numbered(40, "line"), &none),
        &expect![[r#"


        [... 40 lines truncated to save context ...]

    "#]],
    );
}

proptest! {
    #[test]
    fn what_is_left_is_never_longer(
        lines in proptest::collection::vec("[a-z ]{0,30}|the result|é{1,9}", 0..60),
        max_tokens in 0_u32..80,
        head_ratio in 0.0..1.2,
        tail_ratio in 0.0..1.2,
    ) {
        let text = lines.join("\n");
        if let Some(short) = cut(&text, &HeadAndTail { max_tokens, head_ratio, tail_ratio }) {
            prop_assert!(short.len() <= text.len() && short.contains("[... "));
        }
    }
}
