//! A text without JSON's escapes, whether it is whole JSON or a piece of it, and the way back to the places of the text.
//!
//! ```text
//! the text    {"k":"a\n\u0062c"}       -> of  ->   {"k":"a
//!                                                 bc"}            places of this lead back: `b` to the `\` before `u0062`
//! ```

/// A text without one layer of escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unescaped {
    /// The text, each escape replaced by the sign that it stands for.
    pub bytes: Vec<u8>,
    /// Behind each escape: the place in these bytes, and the place in the text.
    behind: Vec<(usize, usize)>,
}

impl Unescaped {
    /// The text without its escapes, wherever they stand; `None` if it has none. A backslash that begins no escape stands for
    /// itself, half of a surrogate pair for U+FFFD. Cost: one pass.
    pub fn of(text: &[u8]) -> Option<Self> {
        let mut plain = Self { bytes: Vec::new(), behind: Vec::new() };
        let (mut done, mut at) = (0, 0);
        while let Some(next) = text.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
            let start = at + next;
            let Some((sign, length)) = text.get(start..).and_then(escape) else {
                at = start + 1;
                continue;
            };
            plain.bytes.extend_from_slice(text.get(done..start).unwrap_or_default());
            plain.bytes.extend_from_slice(sign.encode_utf8(&mut [0; 4]).as_bytes());
            (done, at) = (start + length, start + length);
            plain.behind.push((plain.bytes.len(), at));
        }
        plain.bytes.extend_from_slice(text.get(done..).unwrap_or_default());
        (done > 0).then_some(plain)
    }

    /// The text without each layer of escapes, outermost first, at most `layers` of them: JSON may stand as a text in JSON.
    pub fn layers(text: &[u8], layers: usize) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        while all.len() < layers
            && let Some(next) = Self::of(all.last().map_or(text, |last| &last.bytes))
        {
            all.push(next);
        }
        all
    }

    /// The place in the text that a place in [`bytes`](Self::bytes) has.
    pub fn place_in_text(&self, place: usize) -> usize {
        let passed = self.behind.partition_point(|(inside, _)| *inside <= place);
        let last = passed.checked_sub(1).and_then(|last| self.behind.get(last));
        last.map_or(place, |(inside, outside)| outside + (place - inside))
    }
}

/// The sign that the escape at the beginning of a text stands for, and the bytes of the escape.
fn escape(text: &[u8]) -> Option<(char, usize)> {
    let plain = match text.get(1)? {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        byte @ (b'"' | b'\\' | b'/') => char::from(*byte),
        b'u' => {
            let first = unit(text)?;
            let second = text.get(6..).and_then(unit);
            // Halves that are no pair stand for no sign, and the next line says so.
            let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
            return Some(match (char::from_u32(u32::from(first)), pair) {
                (Some(sign), _) => (sign, 6),
                (None, Some(pair)) => (pair, 12),
                (None, None) => (char::REPLACEMENT_CHARACTER, 6),
            });
        }
        _ => return None,
    };
    Some((plain, 2))
}

/// The number of the `\uXXXX` at the beginning of a text.
fn unit(text: &[u8]) -> Option<u16> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    // Bytes that are no text are no digits; `from_str_radix` would take a `+` before them.
    let digits = std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
    // Nor are they if they are no number.
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn escapes_become_signs_and_all_else_stays() {
        for (text, expected) in [
            (r#"{"a":"b\nc\"d\/e\\f"}"#, Some("{\"a\":\"b\nc\"d/e\\f\"}")),
            (r"\u0041\u00e9\ud83d\ude00.", Some("A\u{e9}\u{1f600}.")),
            (r"\ud83d\u0041 \ude00", Some("\u{fffd}A \u{fffd}")),
            (r"\ud83d", Some("\u{fffd}")),
            (r"\x \u12 \u+123 \", None),
            (r"\x\n", Some("\\x\n")),
            ("plain", None),
            ("", None),
        ] {
            let plain = Unescaped::of(text.as_bytes());
            assert_eq!(plain.map(|it| it.bytes), expected.map(|it| it.as_bytes().to_vec()), "{text}");
        }
        assert_eq!(Unescaped::layers(br"\\\\n", 3).len(), 3);
        assert_eq!(Unescaped::layers(br"\\\\n", 2).len(), 2);
        assert_eq!(Unescaped::layers(b"n", 2), []);
    }

    #[test]
    fn places_lead_back() {
        let text = r"ab\n\ud83d\ude00c";
        let plain = Unescaped::of(text.as_bytes()).unwrap();
        assert_eq!(plain.bytes, "ab\n\u{1f600}c".as_bytes());
        let back: Vec<usize> = [0, 2, 3, 7, 8].into_iter().map(|place| plain.place_in_text(place)).collect();
        assert_eq!(back, [0, 2, 4, 16, 17]);
    }

    proptest! {
        /// The other judge of escapes is `serde_json`.
        #[test]
        fn strings_of_json_are_read_as_serde_json_reads_them(text in ".*") {
            let json = serde_json::json!(text).to_string();
            let inner = &json[1..json.len() - 1];
            let plain = Unescaped::of(inner.as_bytes()).map_or_else(|| inner.into(), |plain| plain.bytes);
            prop_assert_eq!(plain, text.into_bytes());
        }

        #[test]
        fn any_bytes_are_read_and_places_stay_in_order(text in prop::collection::vec(prop::sample::select(br#"\\\unbd8"/0c+"#.to_vec()), 0..40)) {
            if let Some(plain) = Unescaped::of(&text) {
                let places: Vec<usize> = (0..=plain.bytes.len()).map(|place| plain.place_in_text(place)).collect();
                prop_assert!(places.is_sorted());
                prop_assert_eq!(places.last(), Some(&text.len()));
            }
        }
    }
}
