//! Free texts in events: they stand in bodies, and the event's bytes name the rows only.
//!
//! ```text
//! draft   Text "a title"          --settle--> row 1 of the event: the bytes       payload: row 1
//! log     payload: row 1          --fill----> Text "a title", or the substitute of an erased text
//! ```
//!
//! So texts of people and models can be erased, and no spine repeats them. In memory a text holds its words; two texts are
//! equal if their words are equal.

use std::fmt;
use std::ops::Deref;

use rkyv::{Archive, Deserialize, Serialize};

use super::cbor::{CborFault, CborField, CborReader, put_array, put_unsigned};
use super::{Body, Payload};

/// The words in place of an erased text.
pub const ERASED_TEXT: &str = "[erased]";
/// The words in place of a text whose bytes are damaged.
pub const DAMAGED_TEXT: &str = "[damaged]";

/// Words that acpdb itself gives. They stand in a payload as their number, from 1, and in no body. Part of the format: words
/// are added at the end only.
pub(super) const WORDS: &[&str] = &[
    "other",
    "implementation",
    "personal",
    "schedule",
    "context",
    "preference",
    "style",
    "tooling",
    "workflow",
    "communication",
    "architecture",
    "active",
    "superseded",
    "store created",
    "lost",
];

/// A free text of an event. Its bytes are a body of the event, unless it is empty or one of the words that every program has.
#[derive(Archive, Serialize, Deserialize, Clone, Default)]
pub struct Text {
    first: u32,
    chunks: u32,
    /// The words; empty in the log.
    words: String,
}

impl Text {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.words
    }

    /// Its body, as far as a text needs one: no figures. Without rows before it is settled, and if it is empty.
    pub fn body(&self) -> Body {
        Body { first: self.first, chunks: self.chunks, ..Body::default() }
    }

    /// Takes the form of the log: the rows of the body that was made of it, without words.
    pub(crate) fn settle(&mut self, body: Body) {
        *self = Self { first: body.first, chunks: body.chunks, words: String::new() };
    }

    /// Takes the form of the log, if it needs no body: it is one of [`WORDS`], or empty. Returns whether it needs none.
    pub(crate) fn settle_plain(&mut self) -> bool {
        let word = WORDS.iter().position(|word| *word == self.words);
        let number = word.and_then(|word| u32::try_from(word).ok()?.checked_add(1));
        let is_plain = number.is_some() || self.words.is_empty();
        if is_plain {
            *self = Self { first: number.unwrap_or_default(), ..Self::default() };
        }
        is_plain
    }

    /// Puts in the word that its number means, if it has no body. Returns whether it has none.
    pub(crate) fn fill_plain(&mut self) -> bool {
        let word = || WORDS.get(usize::try_from(self.first.checked_sub(1)?).ok()?);
        if self.chunks == 0 {
            self.words = word().copied().unwrap_or_default().to_owned();
        }
        self.chunks == 0
    }

    /// Puts in the words of its body.
    pub(crate) fn fill(&mut self, text: String) {
        self.words = text;
    }

    /// Puts in another text, which has no body yet.
    pub(crate) fn replace(&mut self, text: String) {
        *self = Self::from(text);
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.words
    }
}

impl AsRef<str> for Text {
    fn as_ref(&self) -> &str {
        &self.words
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Self { words: text, ..Self::default() }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<&String> for Text {
    fn from(text: &String) -> Self {
        text.clone().into()
    }
}

impl From<Text> for String {
    fn from(text: Text) -> Self {
        text.words
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.words, f)
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

impl Eq for Text {}

impl std::hash::Hash for Text {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.words.hash(state);
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        self.words == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        self.words == *other
    }
}

impl PartialEq<String> for Text {
    fn eq(&self, other: &String) -> bool {
        self.words == *other
    }
}

impl serde::Serialize for Text {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.words)
    }
}

impl<'de> serde::Deserialize<'de> for Text {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words: String = serde::Deserialize::deserialize(deserializer)?;
        Ok(words.into())
    }
}

/// The number of a word, or first row and rows of a body. Its words stand in no payload: a text is settled before it is written.
impl CborField for Text {
    fn blank() -> Self {
        Self::default()
    }

    fn is_default(&self) -> bool {
        (self.first, self.chunks) == (0, 0)
    }

    fn write(&self, out: &mut Vec<u8>) {
        if self.chunks > 0 {
            put_array(out, 2);
            put_unsigned(out, u64::from(self.first));
            put_unsigned(out, u64::from(self.chunks));
        } else {
            put_unsigned(out, u64::from(self.first));
        }
    }

    fn read(&mut self, from: &mut CborReader<'_>) -> Result<(), CborFault> {
        *self = Self::default();
        if let Some(word) = from.unsigned_if_any()? {
            let first = u32::try_from(word).ok().filter(|word| *word as usize <= WORDS.len());
            self.first = first.ok_or(CborFault::Newer)?;
            return Ok(());
        }
        from.array_of(2)?;
        self.first.read(from)?;
        self.chunks.read(from)?;
        from.array_end();
        if self.chunks == 0 { Err(CborFault::Malformed("a text has no rows")) } else { Ok(()) }
    }

    #[cfg(any(test, feature = "testing"))]
    fn form() -> String {
        "text".to_owned()
    }

    #[cfg(any(test, feature = "testing"))]
    const DEFAULT: &'static str = "empty";
}

impl Payload {
    /// The payload without its free texts, as the spine has it.
    #[must_use]
    pub fn without_texts(&self) -> Self {
        let mut copy = self.clone();
        copy.texts_mut(&mut |text| text.fill(String::new()));
        copy
    }
}
