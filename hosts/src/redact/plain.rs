//! A text as a person sees it: without the codes of a terminal and signs that take no room, and with `%5F`, `&#95;`, `&#x5f;` and `\x5f` as the sign
//! that they stand for.
//!
//! ```text
//! ESC[32mghp_..ESC[0m  ->  ghp_..      each stretch of it knows its place in the text
//! ```
//!
//! Programs colour what they print, and wrap long lines: a secret behind a code, or with one inside, is the same secret.

use std::ops::Range;

const ESCAPE: u8 = 0x1b;
/// Longest code of a terminal that is taken for one: a longer one is text.
const CODE_BYTES_MAX: usize = 4096;
/// Signs that take no room: U+00AD, U+200B to U+200F, U+2060, U+FEFF.
const UNSEEN: [&[u8]; 8] = [
    b"\xc2\xad",
    b"\xe2\x80\x8b",
    b"\xe2\x80\x8c",
    b"\xe2\x80\x8d",
    b"\xe2\x80\x8e",
    b"\xe2\x80\x8f",
    b"\xe2\x81\xa0",
    b"\xef\xbb\xbf",
];

/// A stretch of the plain text, and where it comes from.
#[derive(Debug)]
struct PlainRun {
    at: usize,
    from: Range<usize>,
    /// As long as in the text; else one sign for all of it.
    is_copy: bool,
}

/// A text without codes.
#[derive(Debug, Default)]
pub(super) struct Plain {
    pub(super) bytes: Vec<u8>,
    runs: Vec<PlainRun>,
}

impl Plain {
    /// The text without codes of a terminal, signs that take no room, and line breaks behind a backslash; `None` if it has none.
    /// Cost: a pass.
    pub(super) fn without_codes(text: &[u8]) -> Option<Self> {
        Self::of(
            text,
            |byte| matches!(byte, 0 | ESCAPE | b'\\' | 0xc2 | 0xe2 | 0xef),
            |rest| Some((code(rest)?, None)),
        )
    }

    /// The text with each sign that is written by its number, as in addresses, pages and programs; `None` if it has none. Cost: a pass.
    pub(super) fn decoded(text: &[u8]) -> Option<Self> {
        Self::of(
            text,
            |byte| matches!(byte, b'%' | b'&' | b'\\'),
            |rest| {
                let (skipped, length, radix) = match rest {
                    [b'%', ..] => (1, 2, 16),
                    [b'\\', b'x', ..] => (2, 2, 16),
                    [b'&', b'#', b'x' | b'X', after @ ..] => {
                        (3, after.iter().take(5).position(|it| *it == b';')?, 16)
                    }
                    [b'&', b'#', after @ ..] => (2, after.iter().take(5).position(|it| *it == b';')?, 10),
                    _ => return None,
                };
                // Other signs behind such a beginning stand for themselves.
                let digits = std::str::from_utf8(rest.get(skipped..skipped + length)?).ok()?;
                // As above.
                let byte = u8::from_str_radix(digits, radix).ok().filter(u8::is_ascii_graphic)?;
                let closing = usize::from(rest.first() == Some(&b'&'));
                Some((skipped + length + closing, Some(byte)))
            },
        )
    }

    /// The text with other signs in the place of those that `at` finds: how many bytes there are, and the sign in their place.
    fn of(
        text: &[u8],
        may_begin: impl Fn(u8) -> bool,
        at: impl Fn(&[u8]) -> Option<(usize, Option<u8>)>,
    ) -> Option<Self> {
        let mut plain = Self::default();
        let (mut done, mut place) = (0, 0);
        while let Some(next) = text.get(place..)?.iter().position(|byte| may_begin(*byte)) {
            let start = place + next;
            let Some((length, sign)) = at(text.get(start..)?) else {
                place = start + 1;
                continue;
            };
            plain.copy(text, done..start);
            if let Some(sign) = sign {
                let run = PlainRun { at: plain.bytes.len(), from: start..start + length, is_copy: false };
                plain.runs.push(run);
                plain.bytes.push(sign);
            }
            (done, place) = (start + length, start + length);
        }
        if done == 0 {
            return None;
        }
        plain.copy(text, done..text.len());
        Some(plain)
    }

    fn copy(&mut self, text: &[u8], from: Range<usize>) {
        if let Some(bytes) = text.get(from.clone()).filter(|bytes| !bytes.is_empty()) {
            self.runs.push(PlainRun { at: self.bytes.len(), from, is_copy: true });
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// The bytes of the text that a stretch of the plain text stands for, codes inside of it included.
    pub(super) fn place_in_text(&self, place: &Range<usize>) -> Range<usize> {
        let run_of = |at: usize| {
            let after = self.runs.partition_point(|run| run.at <= at);
            after.checked_sub(1).and_then(|before| self.runs.get(before))
        };
        let start = run_of(place.start).map_or(0, |run| {
            if run.is_copy { run.from.start + (place.start - run.at) } else { run.from.start }
        });
        // An empty stretch ends where it begins.
        let end = run_of(place.end.saturating_sub(1)).map_or(start, |run| {
            if run.is_copy { run.from.start + (place.end - run.at) } else { run.from.end }
        });
        start..end.max(start)
    }
}

/// The length of a code at the start of a text, if there is one: `ESC [ .. letter`, `ESC ] .. BEL`, `ESC ( B`; a sign that takes no room; a line break behind a backslash.
fn code(text: &[u8]) -> Option<usize> {
    match text {
        [ESCAPE, b'[', rest @ ..] => {
            let end = rest.iter().take(CODE_BYTES_MAX).position(|byte| !matches!(byte, 0x20..=0x3f))?;
            rest.get(end).filter(|byte| matches!(byte, 0x40..=0x7e)).map(|_| end + 3)
        }
        [ESCAPE, b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => {
            let within = rest.get(..rest.len().min(CODE_BYTES_MAX))?;
            let end = within.iter().position(|byte| matches!(*byte, 0x07 | ESCAPE))?;
            // `ESC \` ends it; another code that begins there ends it, too.
            let closing = if within.get(end..end + 2) == Some(b"\x1b\\") {
                2
            } else {
                usize::from(within.get(end) == Some(&0x07))
            };
            Some(2 + end + closing)
        }
        [ESCAPE, b' '..=b'/', _, ..] | [b'\\', b'\r', b'\n', ..] => Some(3),
        [ESCAPE, 0x30..=0x7e, ..] | [b'\\', b'\n', ..] => Some(2),
        // Each second byte of a text in UTF-16.
        [ESCAPE] | [0, ..] => Some(1),
        _ => UNSEEN.iter().find(|sign| text.starts_with(sign)).map(|sign| sign.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_taken_out_and_places_come_back() {
        for (text, plain) in [
            ("\x1b[32mgreen\x1b[0m", "green"),
            ("\x1b[01;31m\x1b[Kfound\x1b[m\x1b[K", "found"),
            ("\x1b]8;;http://x\x07link\x1b]8;;\x07", "link"),
            ("\x1b]0;title\x1b\\text", "text"),
            ("a\x1b(Bb", "ab"),
            ("zero\u{200b}width\u{ad}", "zerowidth"),
            ("two \\\nlines", "two lines"),
            ("t\0w\0o\0", "two"),
            ("cut \x1b[", "cut \x1b["),
        ] {
            let found = Plain::without_codes(text.as_bytes());
            assert_eq!(
                found.as_ref().map_or(text.as_bytes(), |found| &found.bytes),
                plain.as_bytes(),
                "{text:?}"
            );
            let Some(found) = found else { continue };
            for at in 0..plain.len() {
                let place = found.place_in_text(&(at..at + 1));
                assert_eq!(text.as_bytes().get(place), plain.as_bytes().get(at..at + 1), "{text:?} {at}");
            }
        }
        assert!(Plain::without_codes("no codes, é".as_bytes()).is_none());
        let found = Plain::decoded(b"a%5Fb%zz%00").unwrap();
        assert_eq!(found.bytes, b"a_b%zz%00");
        assert_eq!((found.place_in_text(&(0..2)), found.place_in_text(&(1..3))), (0..4, 1..5));
        let found = Plain::decoded(br"a&#95;b&#x5F;c\x5fd&#;&#300;&amp;").unwrap();
        assert_eq!(found.bytes, b"a_b_c_d&#;&#300;&amp;");
        assert_eq!(found.place_in_text(&(3..4)), 7..13);
        let found = Plain::without_codes(b"x \x1b[7mg\x1b[mh\x1b[m y").unwrap();
        assert_eq!((found.bytes.as_slice(), found.place_in_text(&(2..4))), (&b"x gh y"[..], 6..11));
    }
}
