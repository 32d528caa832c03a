//! Picks the values that an importer needs out of a JSON text, borrowed, without building a tree.
//!
//! Every function takes JSON text and gives back slices of it, so that params and signatures keep their bytes. Wrong
//! types give `None`, never an error; a repeated name counts with its last value; `null` counts as absent. Strings
//! may hold lone surrogates, as programs that cut strings by UTF-16 units write them: they read as U+FFFD.

pub mod comments;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The values of these members of an object, as JSON text; `None` for the whole if `object` is no valid object.
pub fn pick<'a, const N: usize>(object: &'a str, names: [&str; N]) -> Option<[Option<&'a str>; N]> {
    let found = pick_with_nulls(object, names)?;
    Some(found.map(|value| value.filter(|text| *text != "null")))
}

/// [`pick`] that tells `null` from absent.
pub fn pick_with_nulls<'a, const N: usize>(
    object: &'a str,
    names: [&str; N],
) -> Option<[Option<&'a str>; N]> {
    struct Picker<'n, const N: usize>([&'n str; N]);
    impl<'de, const N: usize> Visitor<'de> for Picker<'_, N> {
        type Value = [Option<&'de str>; N];

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = [None; N];
            while let Some(at) = map.next_key_seed(Name(&self.0))? {
                match at.and_then(|at| found.get_mut(at)) {
                    Some(place) => *place = Some(map.next_value::<&RawValue>()?.get()),
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(found)
        }
    }
    parse(object, '{', |deserializer| deserializer.deserialize_map(Picker(names)))
}

/// Reads a member's name as its place in the list of wanted names.
struct Name<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = Option<usize>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.0.iter().position(|wanted| *wanted == name))
    }
}

/// All members of an object in their order, values as JSON text (`null` included).
pub fn members(object: &str) -> Option<Vec<(String, &str)>> {
    struct AllMembers;
    impl<'de> Visitor<'de> for AllMembers {
        type Value = Vec<(String, &'de str)>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                found.push((name, value.get()));
            }
            Ok(found)
        }
    }
    parse(object, '{', |deserializer| deserializer.deserialize_map(AllMembers))
}

/// The elements of an array as JSON text.
pub fn elements(array: &str) -> Option<Vec<&str>> {
    struct AllElements;
    impl<'de> Visitor<'de> for AllElements {
        type Value = Vec<&'de str>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
            let mut found = Vec::new();
            while let Some(value) = sequence.next_element::<&RawValue>()? {
                found.push(value.get());
            }
            Ok(found)
        }
    }
    parse(array, '[', |deserializer| deserializer.deserialize_seq(AllElements))
}

fn parse<'a, T>(
    text: &'a str,
    begins_with: char,
    read: impl FnOnce(&mut serde_json::Deserializer<serde_json::de::StrRead<'a>>) -> serde_json::Result<T>,
) -> Option<T> {
    // An error about a text of another type would hold all of it.
    if !text.trim_ascii_start().starts_with(begins_with) {
        return None;
    }
    let mut deserializer = serde_json::Deserializer::from_str(text);
    // Wrong types give `None`, as the module says; text behind a value makes it no value.
    let value = read(&mut deserializer).ok()?;
    // As above.
    deserializer.end().ok()?;
    Some(value)
}

/// The range of a slice in a text; `None` if it is no slice of it, such as the value of a member that is not there.
pub fn range_in(text: &str, slice: &str) -> Option<Range<usize>> {
    let start = slice.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let end = start.checked_add(slice.len())?;
    (end <= text.len()).then_some(start..end)
}

/// The text with new texts in place of some of its ranges. Of two that overlap, the later one is left out.
pub fn edited(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(range, _)| range.start);
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, new) in edits {
        let Some(between) = text.get(done..range.start) else { continue };
        out.push_str(between);
        out.push_str(&new);
        done = range.end;
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// Whether a word stands anywhere in a text: a text without the name of a member has no such member. A name that is written with escapes is not found;
/// no host writes its own names so.
pub fn is_in(text: &str, word: &str) -> bool {
    memchr::memmem::find(text.as_bytes(), word.as_bytes()).is_some()
}

/// One member of an object.
pub fn member<'a>(object: Option<&'a str>, name: &str) -> Option<&'a str> {
    let [found] = pick(object?, [name])?;
    found
}

/// The content of a JSON string.
pub fn string(value: Option<&str>) -> Option<Cow<'_, str>> {
    let inner = value?.strip_prefix('"')?.strip_suffix('"')?;
    Some(unescape(inner))
}

/// As [`string`], owned; empty strings are kept.
pub fn owned(value: Option<&str>) -> Option<String> {
    string(value).map(Cow::into_owned)
}

/// A boolean.
pub fn boolean(value: Option<&str>) -> Option<bool> {
    match value? {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// A whole number that is not negative, also as the text of one. One that is too large is the largest: it is no number of anything, and
/// must not look as if nothing had been told.
pub fn count(value: Option<&str>) -> Option<u64> {
    let text = value?;
    let text = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or(text);
    text.parse().ok().or_else(|| {
        let number: f64 = text.parse().ok()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and a larger one becomes the largest"
        )]
        (number >= 0.0 && number.is_finite() && number.fract() == 0.0).then_some(number as u64)
    })
}

/// A number that is not negative, in millionths and rounded, such as dollars.
pub fn millionths(value: &str) -> Option<u64> {
    let number: f64 = value.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked against the range")]
    (0.0..9.0e9).contains(&number).then_some((number * 1e6).round() as u64)
}

/// The content of a string token without its quotes.
///
/// Unknown escapes stay as they are; lone surrogates become U+FFFD.
pub fn unescape(inner: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', inner.as_bytes()) else { return Cow::Borrowed(inner) };
    let mut out = String::with_capacity(inner.len());
    out.push_str(inner.get(..first).unwrap_or_default());
    let mut rest = inner.get(first..).unwrap_or_default();
    while let Some(after) = rest.strip_prefix('\\') {
        let code = after.chars().next().unwrap_or('\\');
        let mut tail = after.get(code.len_utf8()..).unwrap_or_default();
        match code {
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'u' => {
                let (found, left) = unicode(tail);
                out.push(found);
                tail = left;
            }
            other => out.push(other),
        }
        let next = memchr::memchr(b'\\', tail.as_bytes()).unwrap_or(tail.len());
        out.push_str(tail.get(..next).unwrap_or_default());
        rest = tail.get(next..).unwrap_or_default();
    }
    Cow::Owned(out)
}

/// The character of a `\u` escape, and the text behind it.
fn unicode(text: &str) -> (char, &str) {
    const LOST: char = char::REPLACEMENT_CHARACTER;
    let Some((unit, rest)) = hex(text) else { return (LOST, text) };
    if (0xd800..0xdc00).contains(&unit) {
        let low = rest.strip_prefix("\\u").and_then(hex);
        if let Some((low @ 0xdc00..0xe000, rest)) = low {
            let joined = 0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00);
            return (char::from_u32(joined).unwrap_or(LOST), rest);
        }
    }
    (char::from_u32(unit).unwrap_or(LOST), rest)
}

fn hex(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    // Four hex digits always fit.
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

/// JSON without the white space between its tokens: one program indents a text that another writes on a line.
pub fn compact(json: &str) -> Cow<'_, str> {
    let mut kept = Vec::new();
    let (mut in_string, mut escaped, mut from) = (false, false, 0);
    for (at, byte) in json.bytes().enumerate() {
        if in_string {
            in_string = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
        } else if byte == b'"' {
            in_string = true;
        } else if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            kept.extend(json.get(from..at));
            from = at + 1;
        }
    }
    if from == 0 {
        return Cow::Borrowed(json);
    }
    kept.extend(json.get(from..));
    Cow::Owned(kept.concat())
}

/// Writes `text` as a JSON string, quotes included.
pub fn quote(out: &mut Vec<u8>, text: &str) {
    out.reserve(text.len().saturating_add(2));
    out.push(b'"');
    escape(out, text.as_bytes());
    out.push(b'"');
}

/// A text as a JSON string, quotes included.
pub fn quoted(text: &str) -> String {
    let mut out = Vec::new();
    quote(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}

/// Appends `text` as the inside of a JSON string, eight bytes at a time where nothing is to be escaped.
pub fn escape(out: &mut Vec<u8>, text: &[u8]) {
    let mut rest = text;
    while let Some((run, tail)) = rest.split_at_checked(plain_count(rest)) {
        out.extend_from_slice(run);
        let Some((special, after)) = tail.split_first() else { return };
        if let Some(escape) = escape_of(*special) {
            out.extend_from_slice(escape.as_slice());
        }
        rest = after;
    }
}

/// How many bytes come before the first one that is escaped.
pub(super) fn plain_count(text: &[u8]) -> usize {
    let (words, tail) = text.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let found = specials(u64::from_le_bytes(*word));
        if found != 0 {
            return number * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let plain = tail.iter().take_while(|byte| !matches!(byte, 0..0x20 | b'"' | b'\\')).count();
    text.len() - tail.len() + plain
}

const ONES: u64 = 0x0101_0101_0101_0101;
const HIGHS: u64 = 0x8080_8080_8080_8080;

/// The high bits of those of eight bytes that are below 0x20, a quote or a backslash. The lowest set bit is exact; bits above it may be set for
/// other bytes, since a difference borrows from the byte above.
const fn specials(word: u64) -> u64 {
    const fn zero(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGHS
    }
    let control = word.wrapping_sub(ONES.wrapping_mul(0x20)) & !word & HIGHS;
    control | zero(word ^ ONES.wrapping_mul(b'"' as u64)) | zero(word ^ ONES.wrapping_mul(b'\\' as u64))
}

/// The escape of a byte in a JSON string; `None`: it stands as itself. Short escapes, else `\u00xx` in lower case.
pub fn escape_of(byte: u8) -> Option<Escape> {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        0x00..=0x1f => {
            let low = HEX.get(usize::from(byte & 15)).copied().unwrap_or(b'0');
            return Some(Escape { bytes: [b'\\', b'u', b'0', b'0', b'0' + (byte >> 4), low], length: 6 });
        }
        _ => return None,
    };
    Some(Escape { bytes: [b'\\', short, 0, 0, 0, 0], length: 2 })
}

/// The bytes of one escape.
#[derive(Clone, Copy, Debug)]
pub struct Escape {
    bytes: [u8; 6],
    length: usize,
}

impl Escape {
    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_between_tokens_is_dropped_and_texts_stay() {
        for (json, expected) in [
            ("{\n  \"a b\" : [ 1,\t2 ]\r\n}", "{\"a b\":[1,2]}"),
            (r#"{"a":"x \" y \\"  , "b" : 1}"#, r#"{"a":"x \" y \\","b":1}"#),
            ("{}", "{}"),
            (" ", ""),
        ] {
            assert_eq!(compact(json), expected);
        }
        assert!(matches!(compact("{\"a\":1}"), Cow::Borrowed(_)));
    }
    use proptest::prelude::*;

    #[test]
    fn members_are_picked_as_they_stand() {
        let text = r#"{"a": 1.0 ,"b":{"z":[1, 2]},"a":"last","n":null,"u\u0062":true}"#;
        assert_eq!(
            pick(text, ["a", "b", "n", "ub", "x"]),
            Some([Some("\"last\""), Some("{\"z\":[1, 2]}"), None, Some("true"), None])
        );
        assert_eq!(pick("[1]", ["a"]), None);
        assert_eq!(pick("{\"a\":}", ["a"]), None);
        assert_eq!(elements("[1, {}]"), Some(vec!["1", "{}"]));
        assert_eq!(count(Some("3.0")), Some(3));
        assert_eq!(count(Some("-3")), None);
        assert_eq!(count(Some("\"12\"")), Some(12));
        assert_eq!(count(Some("true")), None);
        // Too large is not the same as not told: a bill names it.
        assert_eq!(count(Some("100000000000000000000000000000")), Some(u64::MAX));
    }

    #[test]
    fn lone_surrogates_read_as_replacement_characters() {
        assert_eq!(
            string(Some(r#""a\ud83d\ude00\ud83d\u0041\ude00""#)).unwrap(),
            "a\u{1f600}\u{fffd}A\u{fffd}"
        );
        let text = r#"{"a":"\ud800","b":1}"#;
        assert_eq!(pick(text, ["a", "b"]), Some([Some(r#""\ud800""#), Some("1")]));
    }

    proptest! {
        #[test]
        fn unescape_undoes_quote(text in any::<String>()) {
            let mut quoted = Vec::new();
            quote(&mut quoted, &text);
            let quoted = String::from_utf8(quoted).unwrap();
            prop_assert_eq!(string(Some(&quoted)).unwrap(), text.as_str());
            let parsed: String = serde_json::from_str(&quoted).unwrap();
            prop_assert_eq!(parsed, text);
        }
    }
}
