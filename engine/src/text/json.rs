//! JSON as hosts write it: values that keep every string, a strict parser, and the canonical form.
//!
//! ```text
//! host's bytes --parse--> Json --canonical--> one spelling for all that mean the same --> signature, short hash
//!                          |
//!                          +-- at(path): the strings that give file keys
//! ```
//!
//! Strings may hold lone surrogates, as JavaScript hosts produce them by cutting text in the middle of a character;
//! [`JsonStr`] keeps them. Numbers are IEEE doubles: `1.0` and `1` are one number. One that no double is keeps its digits
//! beside the nearest double: hosts' hashes are made of the double, calls are compared by the digits. Objects keep the
//! order and the duplicates they were written with; reading takes the last of several equal keys.
//!
//! The parser does not recurse and refuses what is nested deeper than [`JSON_DEPTH_MAX`], so everything that walks a
//! parsed value may recurse. What is stored in the log is always the host's own bytes, never a printed [`Json`].

mod canonical;
mod parse;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use canonical::{ParamPath, canonical_or_text, write_json_string};
pub use parse::JsonError;
pub(crate) use parse::string_spans;

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
    /// A number that no double is, such as an id of twenty digits: the nearest double, and the number as written.
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
        parse::parse(bytes)
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
