//! JSON as hosts write it: values that keep every string, a strict parser, and the canonical form.
//!
//! ```text
//! host's bytes --parse--> Json --canonical--> one spelling for all that mean the same --> signature, short hash
//!                          |
//!                          +-- at(path): the strings that give file keys
//! ```
//!
//! Strings may hold lone surrogates, as JavaScript hosts produce them by cutting text in the middle of a character;
//! [`JsonStr`] keeps them. Numbers are IEEE doubles: `1.0` and `1` are one number. A number that is not exactly a double keeps its digits
//! beside the nearest double: hosts' hashes are made of the double, calls are compared by the digits. Objects keep the
//! order and the duplicates they were written with; reading takes the last of several equal keys.
//!
//! The parser does not recurse and refuses values nested deeper than [`JSON_DEPTH_MAX`], so everything that walks a
//! parsed value may recurse. The log always stores the host's own bytes, never a printed [`Json`].

mod canonical;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::ops::Range;

use canonical::is_double;
pub use canonical::{ParamPath, canonical_or_text, write_json_string};

/// How deep arrays and objects may be nested in each other.
pub const JSON_DEPTH_MAX: usize = 128;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number; too large ones are infinite.
    Num(f64),
    /// A number that is not exactly a double, such as an id of twenty digits: the nearest double, and the number as written.
    Written(f64, Box<str>),
    /// A string.
    Str(JsonStr),
    /// An array.
    Arr(Vec<Json>),
    /// An object: keys and values in the order they were written, duplicates included.
    Obj(Vec<(JsonStr, Json)>),
}

/// A JSON string: Unicode text, or UTF-16 units if it holds a lone surrogate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct JsonStr(Repr);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Repr {
    Text(Box<str>),
    /// Holds at least one lone surrogate; else it would be `Text`.
    Units(Box<[u16]>),
}

impl JsonStr {
    /// The string with these UTF-16 units, which may be unpaired.
    pub fn from_units(units: &[u16]) -> Self {
        match String::from_utf16(units) {
            Ok(text) => Self(Repr::Text(text.into())),
            Err(_) => Self(Repr::Units(units.into())),
        }
    }

    /// The text, `None` if the string holds a lone surrogate. Free.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            Repr::Text(text) => Some(text),
            Repr::Units(_) => None,
        }
    }

    /// The text with U+FFFD in place of each lone surrogate.
    pub fn to_lossy(&self) -> Cow<'_, str> {
        match &self.0 {
            Repr::Text(text) => Cow::Borrowed(text),
            Repr::Units(units) => Cow::Owned(String::from_utf16_lossy(units)),
        }
    }
}

impl From<&str> for JsonStr {
    fn from(text: &str) -> Self {
        Self(Repr::Text(text.into()))
    }
}

impl From<String> for JsonStr {
    fn from(text: String) -> Self {
        Self(Repr::Text(text.into()))
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Str(text.into())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Str(text.into())
    }
}

impl Json {
    /// Reads one strict JSON document with nothing but white space around it. Cost: one pass, no recursion.
    ///
    /// # Errors
    /// If `bytes` are not UTF-8, not JSON, or nested deeper than `JSON_DEPTH_MAX`.
    pub fn parse(bytes: &[u8]) -> Result<Self, JsonError> {
        let text = std::str::from_utf8(bytes).map_err(|error| JsonError {
            offset: error.valid_up_to(),
            expected: "UTF-8",
            found: bytes
                .get(error.valid_up_to())
                .map_or_else(String::new, |byte| format!("byte 0x{byte:02x}")),
        })?;
        let mut parser = Parser { text, at: 0, spans: None };
        parser.document()
    }

    /// The value under `key`, the last if there are several; `None` if there is none or this is no object.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let fields = self.as_object()?;
        fields.iter().rev().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// The text of a string without lone surrogates.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Str(text) => text.as_str(),
            _ => None,
        }
    }

    /// The number.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Self::Num(number) | Self::Written(number, _) => Some(*number),
            _ => None,
        }
    }

    /// The number, if it is whole, not negative and at most 2^53, up to which doubles count exactly.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked first")]
    pub fn as_u64(&self) -> Option<u64> {
        let number = self.as_f64()?;
        let exact = (0.0..=canonical::WHOLE_MAX).contains(&number) && number.fract() == 0.0;
        exact.then_some(number as u64)
    }

    /// The truth value.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// The items of an array.
    pub fn as_array(&self) -> Option<&[Self]> {
        match self {
            Self::Arr(items) => Some(items),
            _ => None,
        }
    }

    /// The fields of an object as written, duplicates included.
    pub fn as_object(&self) -> Option<&[(JsonStr, Self)]> {
        match self {
            Self::Obj(fields) => Some(fields),
            _ => None,
        }
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }
}

// --- the parser ----------------------------------------------------------------------------------------------------------

// One pass, an explicit stack, errors that name the place and the fault. The text is checked to be UTF-8 once, up front; after that every
// cut is at an ASCII byte. Containers that are not closed yet wait on a stack of at most [`JSON_DEPTH_MAX`] frames.

/// Why some bytes are not a JSON document.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not JSON at byte {offset}: expected {expected}, found {found}")]
pub struct JsonError {
    /// The place, in bytes from the start.
    pub offset: usize,
    /// The text that may stand there.
    pub expected: &'static str,
    /// The text that stands there.
    pub found: String,
}

/// A container that is being read, with the key that waits for its value.
enum OpenContainer {
    Arr(Vec<Json>),
    Obj(Vec<(JsonStr, Json)>, JsonStr),
}

/// Byte ranges of the strings that are values (not keys), quotes included, with their texts, in order.
///
/// For rewriting a document while all else keeps its spelling.
pub(crate) fn string_spans(text: &str) -> Result<Vec<(Range<usize>, JsonStr)>, JsonError> {
    let mut parser = Parser { text, at: 0, spans: Some(Vec::new()) };
    parser.document()?;
    Ok(parser.spans.unwrap_or_default())
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    /// Collects the string values, if the caller asked for them.
    spans: Option<Vec<(Range<usize>, JsonStr)>>,
}

impl<'t> Parser<'t> {
    fn document(&mut self) -> Result<Json, JsonError> {
        let mut stack: Vec<OpenContainer> = Vec::new();
        loop {
            let mut value = match self.peek_token() {
                Some(b'{') => {
                    self.enter(&stack)?;
                    if self.peek_token() == Some(b'}') {
                        self.at += 1;
                        Json::Obj(Vec::new())
                    } else {
                        let key = self.key()?;
                        stack.push(OpenContainer::Obj(Vec::new(), key));
                        continue;
                    }
                }
                Some(b'[') => {
                    self.enter(&stack)?;
                    if self.peek_token() == Some(b']') {
                        self.at += 1;
                        Json::Arr(Vec::new())
                    } else {
                        stack.push(OpenContainer::Arr(Vec::new()));
                        continue;
                    }
                }
                other => self.scalar(other)?,
            };
            // The value is whole: hand it to its container, and that one to its own, as long as they close.
            loop {
                match stack.pop() {
                    None => return self.end().map(|()| value),
                    Some(OpenContainer::Arr(mut items)) => {
                        items.push(value);
                        if self.comma(b']', "`,` or `]`")? {
                            stack.push(OpenContainer::Arr(items));
                            break;
                        }
                        value = Json::Arr(items);
                    }
                    Some(OpenContainer::Obj(mut fields, key)) => {
                        fields.push((key, value));
                        if self.comma(b'}', "`,` or `}`")? {
                            let key = self.key()?;
                            stack.push(OpenContainer::Obj(fields, key));
                            break;
                        }
                        value = Json::Obj(fields);
                    }
                }
            }
        }
    }

    /// Steps into a container, unless it is too deep.
    fn enter(&mut self, stack: &[OpenContainer]) -> Result<(), JsonError> {
        if stack.len() >= JSON_DEPTH_MAX {
            return Err(self.error("at most 128 levels"));
        }
        self.at += 1;
        Ok(())
    }

    fn end(&mut self) -> Result<(), JsonError> {
        match self.peek_token() {
            None => Ok(()),
            Some(_) => Err(self.error("the end")),
        }
    }

    /// Whether another member follows; false once the container is closed.
    fn comma(&mut self, close: u8, expected: &'static str) -> Result<bool, JsonError> {
        let more = match self.peek_token() {
            Some(b',') => true,
            Some(byte) if byte == close => false,
            _ => return Err(self.error(expected)),
        };
        self.at += 1;
        Ok(more)
    }

    fn key(&mut self) -> Result<JsonStr, JsonError> {
        if self.peek_token() != Some(b'"') {
            return Err(self.error("a key in quotes"));
        }
        let key = self.string()?;
        if self.peek_token() != Some(b':') {
            return Err(self.error("`:`"));
        }
        self.at += 1;
        Ok(key)
    }

    fn scalar(&mut self, first: Option<u8>) -> Result<Json, JsonError> {
        match first {
            Some(b'"') => {
                let start = self.at;
                let text = self.string()?;
                if let Some(spans) = &mut self.spans {
                    spans.push((start..self.at, text.clone()));
                }
                Ok(Json::Str(text))
            }
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.error("a value")),
        }
    }

    fn word(&mut self, word: &'static str, value: Json) -> Result<Json, JsonError> {
        if self.rest().starts_with(word) {
            self.at += word.len();
            Ok(value)
        } else {
            Err(self.error(word))
        }
    }

    fn number(&mut self) -> Result<Json, JsonError> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        let digits = self.text.get(start..self.at).unwrap_or_default();
        // JSON's number syntax is a part of Rust's; a number that is too large becomes infinite.
        let number: f64 = digits.parse().map_err(|_| self.error("a number"))?;
        Ok(if is_double(digits, number) { Json::Num(number) } else { Json::Written(number, digits.into()) })
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), JsonError> {
        let count = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        if count == 0 {
            return Err(self.error("a digit"));
        }
        self.at += count;
        Ok(())
    }

    /// Reads a string; stands at its opening quote before and behind its closing quote after.
    fn string(&mut self) -> Result<JsonStr, JsonError> {
        self.at += 1;
        let plain = self.plain_run()?;
        if self.peek() == Some(b'"') {
            self.at += 1;
            return Ok(plain.into());
        }
        let mut built = Built::Text(plain.to_owned());
        while self.peek() != Some(b'"') {
            self.escape(&mut built)?;
            built.push_str(self.plain_run()?);
        }
        self.at += 1;
        Ok(built.finish())
    }

    /// The text up to the next quote or backslash, where the parser then stands.
    fn plain_run(&mut self) -> Result<&'t str, JsonError> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let stops = |byte: u8| byte == b'"' || byte == b'\\' || byte < 0x20;
        let length = rest.bytes().position(stops).unwrap_or(rest.len());
        self.at += length;
        match self.peek() {
            Some(b'"' | b'\\') => Ok(rest.get(..length).unwrap_or_default()),
            Some(_) => Err(self.error("no control character in a string")),
            None => Err(self.error("`\"`")),
        }
    }

    /// Reads one escape; stands at its backslash before and behind it after.
    fn escape(&mut self, built: &mut Built) -> Result<(), JsonError> {
        self.at += 1;
        let plain = match self.peek() {
            Some(byte @ (b'"' | b'\\' | b'/')) => char::from(byte),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.at += 1;
                return self.escaped_unit(built);
            }
            _ => return Err(self.error("an escape: one of \" \\ / b f n r t u")),
        };
        self.at += 1;
        built.push_char(plain);
        Ok(())
    }

    /// Reads the digits of a `\u` escape, and the digits of the next one if the two are one character.
    fn escaped_unit(&mut self, built: &mut Built) -> Result<(), JsonError> {
        let unit = self.unit()?;
        if (0xd800..0xdc00).contains(&unit) && self.rest().starts_with("\\u") {
            let behind_first = self.at;
            self.at += 2;
            let second = self.unit()?;
            if let Some(Ok(pair)) = char::decode_utf16([unit, second]).next() {
                built.push_char(pair);
                return Ok(());
            }
            self.at = behind_first; // the second stands for itself
        }
        match char::from_u32(unit.into()) {
            Some(plain) => built.push_char(plain),
            None => built.push_lone(unit),
        }
        Ok(())
    }

    /// Four hex digits.
    fn unit(&mut self) -> Result<u16, JsonError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            let digit = digit.and_then(|digit| u16::try_from(digit).ok());
            unit = unit << 4 | digit.ok_or_else(|| self.error("four hex digits"))?;
            self.at += 1;
        }
        Ok(unit)
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Skips white space, then peeks.
    fn peek_token(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
        self.peek()
    }

    fn error(&self, expected: &'static str) -> JsonError {
        let found = match self.rest().chars().next() {
            None => "the end".to_owned(),
            Some(found) => format!("`{}`", found.escape_debug()),
        };
        JsonError { offset: self.at, expected, found }
    }
}

/// A string with escapes, while it is read: text until the first lone surrogate.
enum Built {
    Text(String),
    Units(Vec<u16>),
}

impl Built {
    fn push_str(&mut self, more: &str) {
        match self {
            Self::Text(text) => text.push_str(more),
            Self::Units(units) => units.extend(more.encode_utf16()),
        }
    }

    fn push_char(&mut self, more: char) {
        self.push_str(more.encode_utf8(&mut [0; 4]));
    }

    fn push_lone(&mut self, unit: u16) {
        match self {
            Self::Text(text) => {
                let units = text.encode_utf16().chain([unit]).collect();
                *self = Self::Units(units);
            }
            Self::Units(units) => units.push(unit),
        }
    }

    fn finish(self) -> JsonStr {
        match self {
            Self::Text(text) => text.into(),
            Self::Units(units) => JsonStr(Repr::Units(units.into())),
        }
    }
}
