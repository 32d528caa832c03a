//! JSON whose texts hold halves of characters. Pure.
//!
//! Programs that cut texts by UTF-16 units write `\ud83d` without its other half. No text of UTF-8 can hold a half, so parsers
//! refuse the whole JSON. Importers read such a half as U+FFFD; this module writes it so before a parser sees it. All else
//! stays byte for byte.

use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The escape that replaces a half.
const LOST: &[u8] = b"\\ufffd";
const HIGH: RangeInclusive<u16> = 0xd800..=0xdbff;
const LOW: RangeInclusive<u16> = 0xdc00..=0xdfff;
/// Bytes of an escape.
const ESCAPE: usize = 6;

/// Puts U+FFFD in the place of halves that stand alone, in JSON that comes in pieces.
#[derive(Debug, Default)]
pub struct Halves {
    /// An escape that is not complete yet, or a high half and the beginning of the escape behind it.
    held: Vec<u8>,
}

impl Halves {
    /// Passes a piece on; bytes that cannot be judged yet are held back.
    pub fn pass(&mut self, piece: &[u8], out: &mut Vec<u8>) {
        for &byte in piece {
            self.byte(byte, out);
        }
    }

    /// Writes the held bytes, which nothing completes: a high half is replaced, an unfinished escape stays as it is.
    pub fn end(&mut self, out: &mut Vec<u8>) {
        if self.unit(0).is_some() {
            self.lose(out);
        }
        out.append(&mut self.held);
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<u8>) {
        let fits = match self.held.len() % ESCAPE {
            0 => byte == b'\\',
            1 => byte == b'u',
            _ => byte.is_ascii_hexdigit(),
        };
        if fits {
            self.held.push(byte);
            return self.judge(out);
        }
        let is_escaped = self.held.len() % ESCAPE == 1;
        self.end(out);
        if byte == b'\\' && !is_escaped {
            self.held.push(byte);
        } else {
            out.push(byte);
        }
    }

    /// Passes on or replaces the held escapes that are complete.
    fn judge(&mut self, out: &mut Vec<u8>) {
        match (self.unit(0), self.unit(ESCAPE)) {
            (Some(first), Some(next)) if HIGH.contains(&first) && LOW.contains(&next) => {
                out.append(&mut self.held);
            }
            (Some(first), Some(_)) if HIGH.contains(&first) => {
                self.lose(out);
                self.judge(out);
            }
            (Some(first), None) if HIGH.contains(&first) => {}
            (Some(first), _) if LOW.contains(&first) => self.lose(out),
            (Some(_), _) => out.append(&mut self.held),
            (None, _) => {}
        }
    }

    /// The number of the escape that begins at `start`, if the escape is complete.
    fn unit(&self, start: usize) -> Option<u16> {
        let digits = std::str::from_utf8(self.held.get(start + 2..start + ESCAPE)?);
        // Each digit was checked when it came.
        u16::from_str_radix(digits.ok()?, 16).ok()
    }

    /// Replaces the first held escape, a half that stands alone.
    fn lose(&mut self, out: &mut Vec<u8>) {
        self.held.drain(..ESCAPE.min(self.held.len()));
        out.extend(LOST);
    }
}

/// A whole JSON text with U+FFFD in the place of halves that stand alone.
pub fn without_halves(text: &str) -> Cow<'_, str> {
    if !text.contains("\\ud") && !text.contains("\\uD") {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::with_capacity(text.len());
    let mut halves = Halves::default();
    halves.pass(text.as_bytes(), &mut out);
    halves.end(&mut out);
    // Only ASCII was put in the place of ASCII.
    String::from_utf8(out).map_or(Cow::Borrowed(text), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_that_stand_alone_give_way_and_nothing_else() {
        for (text, expected) in [
            (r#""a \ud83d""#, r#""a \ufffd""#),
            (r#""\uD83D\uDE00 \ud83d\ude00""#, r#""\uD83D\uDE00 \ud83d\ude00""#),
            (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\n\\ud83d\\\ud83d""#, r#""\ufffd\n\\ud83d\\\ufffd""#),
            (r#""\ud83d\u0041\ud83dx\ud83d\\""#, r#""\ufffd\u0041\ufffdx\ufffd\\""#),
            (r#""\ud8 \ud83d\ux é""#, r#""\ud8 \ufffd\ux é""#),
            (r#""\ud83d"#, r#""\ufffd"#),
            (r#""\ud83"#, r#""\ud83"#),
        ] {
            assert_eq!(without_halves(text), expected);
            // Byte by byte, as it may come through a pipe.
            let (mut halves, mut out) = (Halves::default(), Vec::new());
            text.bytes().for_each(|byte| halves.pass(&[byte], &mut out));
            halves.end(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
