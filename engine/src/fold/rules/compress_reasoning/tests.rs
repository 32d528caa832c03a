#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes them")]

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

fn cut(text: &str, max_tokens: u32) -> Option<String> {
    Conclusions { max_tokens }.cut(text.as_bytes())
}

fn check(short: Option<String>, expected: &Expect) {
    expected.assert_eq(&short.unwrap_or_else(|| "(whole)".to_owned()));
}

fn numbered(count: usize, word: &str) -> String {
    (1..=count).map(|number| format!("{word} {number}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn reasoning_keeps_its_beginning_what_tells_and_its_end() {
    let mut lines: Vec<String> = (1..=60).map(|n| format!("thinking about number {n}")).collect();
    lines[30] = "THEREFORE we take the second".to_owned();
    lines[57] = "so the Result is this".to_owned();
    check(
        cut(&lines.join("\n"), 90),
        &expect![[r#"
        thinking about number 1
        thinking about number 2
        thinking about number 3
        thinking about number 4
        thinking about number 5

        [... 49 lines of reasoning compressed ...]

        THEREFORE we take the second
        thinking about number 56
        thinking about number 57
        so the Result is this
        thinking about number 59
        thinking about number 60
        [Thinking compressed to save context - key points preserved above]"#]],
    );
    check(cut(&lines.join("\n"), 900), &expect![["(whole)"]]);
    check(cut(&lines[..10].join("\n"), 5), &expect![["(whole)"]]);
}

#[test]
fn reasoning_takes_no_line_twice() {
    let text = numbered(12, "a result of some length that counts for about as many tokens as");
    let short = cut(&text, 150).unwrap();
    for number in 1..=12 {
        let line = format!("as {number}\n");
        assert!(format!("{short}\n").matches(&line).count() <= 1, "line {number}");
    }
}

proptest! {
    #[test]
    fn what_is_left_is_never_longer(
        lines in proptest::collection::vec("[a-z ]{0,30}|the result|é{1,9}", 0..60),
        max_tokens in 0_u32..80,
    ) {
        let text = lines.join("\n");
        if let Some(short) = cut(&text, max_tokens) {
            prop_assert!(short.len() <= text.len() && short.contains("[... "));
        }
    }
}
