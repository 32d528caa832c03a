//! Secrets in another spelling: base64, hex digits, lines that were wrapped in the middle of a word, and pieces that a program joins.
//!
//! ```text
//! Z2hwXy4uLg==   ->  ghp_...      each byte knows the stretch of the text that it comes from
//! ```
//!
//! Only a run whose first bytes are text is looked into: digests and pictures are none.

use std::ops::Range;

/// Shortest run of signs that is decoded: a token of 20 bytes has as many in base64.
const BASE64_COUNT_MIN: usize = 28;
const HEX_COUNT_MIN: usize = 48;
/// How many bytes at the start of a run have to be text.
const TEXT_BYTES: usize = 18;
/// Shortest line of base64 that goes on in the next one, as mail and PEM files have it.
const WRAPPED_LINE_COUNT_MIN: usize = 60;
/// Shortest line that is taken for a wrapped one.
const LINE_BYTES_MIN: usize = 20;
/// Shortest word that is put together: no token is shorter.
const WORD_BYTES_MIN: usize = 16;
/// Most bytes between two pieces of a word that a program puts together.
const JOINT_BYTES_MAX: usize = 64;

/// Bytes that a text stands for, and the place of each.
#[derive(Debug, Default)]
pub(super) struct Decoded {
    pub(super) bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

impl Decoded {
    fn push(&mut self, byte: u8, place: Range<usize>) {
        self.bytes.push(byte);
        self.places.push(place);
    }

    /// The stretch of the text that a stretch of these bytes stands for.
    pub(super) fn place_in_text(&self, place: &Range<usize>) -> Range<usize> {
        let start = self.places.get(place.start).map_or(0, |first| first.start);
        let last = place.end.checked_sub(1).and_then(|last| self.places.get(last));
        start..last.map_or(start, |last| last.end.max(start))
    }
}

/// The runs of base64 and of hex digits in a text that stand for another text. Cost: a pass.
pub(super) fn all_in(text: &[u8]) -> Vec<Decoded> {
    let mut all = Vec::new();
    let mut at = 0;
    while let Some(next) =
        text.get(at..).and_then(|rest| rest.iter().position(|byte| sextet(*byte).is_some()))
    {
        let start = at + next;
        let rest = text.get(start..).unwrap_or_default();
        let length = rest.iter().position(|byte| sextet(*byte).is_none()).unwrap_or(rest.len());
        // Most runs are words, or no text in another spelling: they are told by their beginning.
        if length < BASE64_COUNT_MIN || !may_be_text(text, start, length) {
            at = start + length;
            continue;
        }
        let (signs, end) = run(text, start);
        at = end;
        if signs.len() >= HEX_COUNT_MIN && signs.iter().all(|place| digit(text, *place).is_some()) {
            all.extend(hex(text, &signs));
        } else if signs.len() >= BASE64_COUNT_MIN {
            all.extend(base64(text, &signs));
        }
    }
    all
}

/// Whether the beginning of a run stands for text, as base64 or as hex digits.
fn may_be_text(text: &[u8], start: usize, length: usize) -> bool {
    let begins = |count: usize| (start..start + length.min(count)).collect::<Vec<usize>>();
    let is_hex = || begins(TEXT_BYTES * 2).iter().all(|place| digit(text, *place).is_some());
    base64(text, &begins(TEXT_BYTES / 3 * 4)).is_some() || is_hex()
}

/// The places of the signs of a run, and its end. A run goes on over the end of a long line.
fn run(text: &[u8], start: usize) -> (Vec<usize>, usize) {
    let (mut signs, mut at, mut line) = (Vec::new(), start, 0);
    loop {
        match text.get(at) {
            Some(byte) if sextet(*byte).is_some() => {
                signs.push(at);
                at += 1;
                line += 1;
            }
            Some(b'\n' | b'\r') if line >= WRAPPED_LINE_COUNT_MIN => {
                let ends = if text.get(at..at + 2) == Some(b"\r\n") { 2 } else { 1 };
                if text.get(at + ends).is_none_or(|byte| sextet(*byte).is_none()) {
                    return (signs, at);
                }
                (at, line) = (at + ends, 0);
            }
            _ => return (signs, at),
        }
    }
}

/// The value of a sign of base64, of the usual and of the other alphabet.
const fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

fn digit(text: &[u8], place: usize) -> Option<u8> {
    let value = char::from(*text.get(place)?).to_digit(16)?;
    u8::try_from(value).ok()
}

fn is_text(bytes: &[u8]) -> bool {
    bytes.iter().take(TEXT_BYTES).all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'))
}

fn base64(text: &[u8], signs: &[usize]) -> Option<Decoded> {
    let mut decoded = Decoded::default();
    for group in signs.chunks(4) {
        let mut bits = 0_u32;
        for place in group {
            bits = bits << 6 | u32::from(sextet(*text.get(*place)?)?);
        }
        bits <<= 6 * (4 - group.len());
        let [_, bytes @ ..] = bits.to_be_bytes();
        // One sign alone stands for nothing.
        let place = *group.first()?..*group.last()? + 1;
        bytes.into_iter().take(group.len() - 1).for_each(|byte| decoded.push(byte, place.clone()));
        if decoded.bytes.len() >= TEXT_BYTES
            && decoded.bytes.len() < TEXT_BYTES + 3
            && !is_text(&decoded.bytes)
        {
            return None;
        }
    }
    is_text(&decoded.bytes).then_some(decoded)
}

fn hex(text: &[u8], signs: &[usize]) -> Option<Decoded> {
    let mut decoded = Decoded::default();
    for pair in signs.chunks_exact(2) {
        let [high, low] = pair else { return None };
        decoded.push(digit(text, *high)? << 4 | digit(text, *low)?, *high..*low + 1);
        if decoded.bytes.len() == TEXT_BYTES && !is_text(&decoded.bytes) {
            return None;
        }
    }
    is_text(&decoded.bytes).then_some(decoded)
}

/// The text without breaks of lines that stand between signs of one word; `None` if there are none. The second line begins with letters and
/// digits mixed: a word of prose does not.
pub(super) fn unwrapped(text: &[u8]) -> Option<Decoded> {
    let mut breaks: Vec<Range<usize>> = Vec::new();
    let mut line = 0;
    for (at, _) in text.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        let before = text.get(line..at).unwrap_or_default();
        let before = before.strip_suffix(b"\r").unwrap_or(before);
        let after = text.get(at + 1..).unwrap_or_default();
        let word = after.iter().position(|byte| sextet(*byte).is_none()).unwrap_or(after.len());
        let word = after.get(..word).unwrap_or_default();
        let is_mixed = word.iter().any(u8::is_ascii_digit) && word.iter().any(u8::is_ascii_alphabetic);
        if before.len() >= LINE_BYTES_MIN
            && before.last().is_some_and(|byte| sextet(*byte).is_some())
            && is_mixed
        {
            breaks.push(line + before.len()..at + 1);
        }
        line = at + 1;
    }
    without(text, breaks)
}

/// The text without quotes that end and begin anew within one word, as shells and programs join pieces: `gh""p_`, `"gh" "p_"`, `'gh' + 'p_'`;
/// `None` if there are none.
pub(super) fn joined(text: &[u8]) -> Option<Decoded> {
    let is_word = |byte: Option<&u8>| byte.is_some_and(|byte| sextet(*byte).is_some());
    let is_quote = |byte: &u8| matches!(byte, b'"' | b'\'' | b'`');
    let mut gaps: Vec<Range<usize>> = Vec::new();
    let mut done = 0;
    for (at, _) in text.iter().enumerate().filter(|(_, byte)| is_quote(byte)) {
        if at < done || !is_word(at.checked_sub(1).and_then(|before| text.get(before))) {
            continue;
        }
        let rest = text.get(at + 1..).unwrap_or_default();
        let rest = rest.get(..rest.len().min(JOINT_BYTES_MAX)).unwrap_or_default();
        let blanks = |from: usize| {
            let rest = rest.get(from..).unwrap_or_default();
            from + rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b'\\')).count()
        };
        let mut end = blanks(0);
        if rest.get(end).is_some_and(|byte| matches!(byte, b'+' | b'.' | b'&')) {
            end = blanks(end + 1);
        }
        if rest.get(end).is_some_and(is_quote) && is_word(rest.get(end + 1)) {
            done = at + 1 + end + 1;
            gaps.push(at..done);
        }
    }
    without(text, long_words(text, &gaps))
}

/// The gaps of words that are as long as a token: programs join short ones everywhere.
fn long_words(text: &[u8], gaps: &[Range<usize>]) -> Vec<Range<usize>> {
    let is_other = |byte: &u8| sextet(*byte).is_none();
    let before = |at: usize| {
        let text = text.get(..at).unwrap_or_default();
        text.iter().rev().position(is_other).unwrap_or(text.len())
    };
    let after = |at: usize| {
        let text = text.get(at..).unwrap_or_default();
        text.iter().position(is_other).unwrap_or(text.len())
    };
    let mut long = Vec::new();
    // A word goes on where nothing else stands between two gaps.
    let goes_on = |one: &Range<usize>, next: &Range<usize>| one.end + after(one.end) == next.start;
    for word in gaps.chunk_by(goes_on) {
        let pieces: usize = word.iter().map(|gap| after(gap.end)).sum();
        if word.first().map_or(0, |gap| before(gap.start)) + pieces >= WORD_BYTES_MIN {
            long.extend_from_slice(word);
        }
    }
    long
}

/// The text without some stretches of it; `None` if there are none.
fn without(text: &[u8], mut gaps: Vec<Range<usize>>) -> Option<Decoded> {
    if gaps.is_empty() {
        return None;
    }
    let mut whole = Decoded::default();
    let mut done = 0;
    gaps.push(text.len()..text.len());
    for gap in gaps {
        let piece = text.get(done..gap.start).unwrap_or_default();
        piece.iter().enumerate().for_each(|(index, byte)| whole.push(*byte, done + index..done + index + 1));
        done = gap.end;
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_stand_for_a_text_are_decoded_and_know_their_places() {
        // `printf 'the words of a person, 4711' | base64`, and `| xxd -p`.
        for (text, words) in [
            ("a dGhlIHdvcmRzIG9mIGEgcGVyc29uLCA0NzEx b", Some("the words of a person, 4711")),
            (
                "a=74686520776f726473206f66206120706572736f6e2c2034373131;",
                Some("the words of a person, 4711"),
            ),
            ("/usr/share/applications/mimeinfo/cache/and/so/on", None),
            ("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08", None),
            ("too short: dGhlIHdvcmRz", None),
        ] {
            let found = all_in(text.as_bytes());
            let said = found.first().map(|one| String::from_utf8_lossy(&one.bytes).into_owned());
            assert_eq!(said.as_deref(), words, "{text}");
            if let Some(found) = found.first() {
                let place = found.place_in_text(&(0..found.bytes.len()));
                assert_eq!(
                    (text.as_bytes().get(place.start - 1), place.end),
                    (Some(&text.as_bytes()[1]), text.len() - if text.ends_with(';') { 1 } else { 2 })
                );
            }
        }
    }

    #[test]
    fn pieces_are_joined_only_where_quotes_part_a_word() {
        for (text, whole) in [
            (r#"gh""p_1a2b3c4d5e6f7g8h"#, Some("ghp_1a2b3c4d5e6f7g8h")),
            (r#"a = "gh" "p_1a2b3c4d5e6f7g8h";"#, Some("a = \"ghp_1a2b3c4d5e6f7g8h\";")),
            ("'gh' + 'p_1a2b3c4d5e6f7g8h'", Some("'ghp_1a2b3c4d5e6f7g8h'")),
            ("'gh'\n    'p_1a2b3c4d5e6f7g8h'", Some("'ghp_1a2b3c4d5e6f7g8h'")),
            ("\"gh\" \\\n  \"p_1a2b3c4d5e6f7g8h\"", Some("\"ghp_1a2b3c4d5e6f7g8h\"")),
            ("'gh' . \"p_1a2b3c4d5e6f7g8h\"", Some("'ghp_1a2b3c4d5e6f7g8h\"")),
            (r#"g""h""p""_1a2b3c4d""5e6f7g8h"#, Some("ghp_1a2b3c4d5e6f7g8h")),
            (r#"'a' + 'b' + "short_word""#, None),
            (r#"["gh", "p_1a2b3c4d5e6f7g8h"]"#, None),
            (r#"{"gh": "p_1a2b3c4d5e6f7g8h"}"#, None),
            (r#""gh" + name + "p_1a2b3c4d5e6f7g8h""#, None),
            (r#"a "" b"#, None),
        ] {
            let found = joined(text.as_bytes()).map(|one| String::from_utf8(one.bytes).unwrap());
            assert_eq!(found.as_deref(), whole, "{text:?}");
        }
    }

    #[test]
    fn lines_are_put_together_only_within_a_word_of_letters_and_digits() {
        for (text, whole) in [
            ("a line that was wrapped ab\n12cd and so on", Some("a line that was wrapped ab12cd and so on")),
            ("a line that was wrapped ab\r\n12cd", Some("a line that was wrapped ab12cd")),
            ("a line that ends with word\nanother line", None),
            ("short ab\n12cd", None),
            ("a line that ends with a stop.\n12cd", None),
        ] {
            let found = unwrapped(text.as_bytes()).map(|one| String::from_utf8(one.bytes).unwrap());
            assert_eq!(found.as_deref(), whole, "{text:?}");
        }
    }
}
