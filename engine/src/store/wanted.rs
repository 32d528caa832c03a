//! Contents that are to be erased, and how they are recognised elsewhere.
//!
//! ```text
//! body of the item  -> equal: same length, same bytes       any body of the store
//!                   -> equal: JSON in another spelling      any body of about its length
//!                   -> quoted: inside a host's record       a short text only in records of commits that hold an equal body, or beside such
//! ```
//!
//! A stretch of a text is looked for in the other rows of its item, and quoted in such records.
//!
//! Not here: quotations inside other texts. A text that repeats a secret is a text of its own; `scan` finds it.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::codec::{BodyPlace, BodyRow};
use crate::event::wire::{TemplatePiece, pieces};
use crate::ids::Seq;
use crate::log::{Log, LogError};
use crate::text::{Unescaped, one_spelling};

/// Texts shorter than this must stand between quotation marks to count as quoted: a record has an `ok` in many a place.
pub(super) const BARE_BYTES_MIN: usize = 12;
/// Texts from this length on are looked for in the records of all commits: no record has such a text by chance.
pub(super) const FAR_BYTES_MIN: usize = 48;
/// Layers of escapes that are taken off a record: parameters may be JSON inside of a JSON string.
pub(super) const ESCAPE_LAYERS: usize = 2;

/// Contents that are to be erased.
#[derive(Default)]
pub(super) struct ErasureTargets {
    /// Rows that were asked for.
    asked: BTreeSet<(Seq, u32)>,
    /// By length, then by digest of the bytes alone.
    contents: FxHashMap<u32, FxHashSet<[u8; 32]>>,
    /// Of those that are JSON, the digests of their one spelling.
    spellings: FxHashSet<[u8; 32]>,
    /// The fewest and the most bytes of other spellings, if there are any.
    spelled_bytes: Option<(u32, u32)>,
    /// Blocks that are known to hold them, or not to.
    blocks: FxHashMap<BodyPlace, bool>,
    texts: Vec<Vec<u8>>,
}

impl ErasureTargets {
    /// Adds a row that was asked for; `body`: its content, unless that is no text that could be quoted.
    pub(super) fn add(&mut self, address: (Seq, u32), row: &BodyRow, body: Option<Vec<u8>>) {
        self.asked.insert(address);
        self.blocks.insert(row.place, true);
        if let Some(body) = body {
            self.contents.entry(row.bytes).or_default().insert(*blake3::hash(&body).as_bytes());
            if let Some(spelling) = one_spelling(&body) {
                let (least, most) = spelled_lengths(row.bytes);
                let (known_least, known_most) = self.spelled_bytes.unwrap_or((least, most));
                self.spelled_bytes = Some((least.min(known_least), most.max(known_most)));
                self.spellings.insert(*blake3::hash(spelling.as_bytes()).as_bytes());
            }
            self.texts.push(body);
        }
    }

    /// Adds a stretch of a text, for records that quote it without the rest of the text.
    pub(super) fn add_stretch(&mut self, stretch: &[u8]) {
        self.texts.push(stretch.to_vec());
    }

    /// Whether the content is one that is looked for everywhere.
    pub(super) fn knows(&self, body: &[u8]) -> bool {
        let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
        self.contents.get(&length).is_some_and(|known| known.contains(blake3::hash(body).as_bytes()))
            || self.is_spelled(length) && self.spells(body)
    }

    /// Whether bytes of this length may be another spelling.
    fn is_spelled(&self, length: u32) -> bool {
        self.spelled_bytes.is_some_and(|(least, most)| (least..=most).contains(&length))
    }

    fn spells(&self, body: &[u8]) -> bool {
        let digest = |spelling: String| *blake3::hash(spelling.as_bytes()).as_bytes();
        one_spelling(body).is_some_and(|spelling| self.spellings.contains(&digest(spelling)))
    }

    /// Whether there is nothing to look for.
    pub(super) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Nothing up to this seq is wanted. Content that is looked for everywhere may stand anywhere.
    pub(super) fn begins_after(&self) -> Seq {
        let is_everywhere = !self.contents.is_empty() || !self.texts.is_empty();
        let first = self.asked.first().filter(|_| !is_everywhere);
        first.map_or(Seq::ZERO, |(seq, _)| seq.before())
    }

    /// Whether the row was asked for.
    pub(super) fn is_asked(&self, address: (Seq, u32)) -> bool {
        self.asked.contains(&address)
    }

    /// Whether the row's content is wanted. Reads a block once.
    pub(super) fn holds(&mut self, log: &Log, row: &BodyRow) -> Result<bool, LogError> {
        if let Some(known) = self.blocks.get(&row.place) {
            return Ok(*known);
        }
        if !self.contents.contains_key(&row.bytes) && !self.is_spelled(row.bytes) {
            return Ok(false);
        }
        let found = match log.body(row) {
            Ok(body) => self.knows(&body),
            Err(LogError::Erased { .. } | LogError::Corrupt(_)) => false,
            Err(error) => return Err(error),
        };
        self.blocks.insert(row.place, found);
        Ok(found)
    }

    /// Whether records that are not beside an equal content may quote one.
    pub(super) fn has_long_texts(&self) -> bool {
        self.texts.iter().any(|text| text.len() >= FAR_BYTES_MIN)
    }

    /// Whether the literal bytes of a host's record hold one of the texts of at least `bytes_min`, as they are or escaped.
    pub(super) fn is_quoted_in(&self, template: &[u8], bytes_min: usize) -> bool {
        // A template that cannot be read may hold anything.
        let literals = pieces(template).map_or_else(
            |_| vec![template],
            |pieces| {
                let literal = |piece: &TemplatePiece<'_>| matches!(piece, TemplatePiece::Literal(_));
                let bytes = |piece| if let TemplatePiece::Literal(bytes) = piece { bytes } else { &[][..] };
                pieces.into_iter().filter(literal).map(bytes).collect()
            },
        );
        literals.into_iter().any(|literal| {
            in_any_spelling(literal, |text| {
                let mut texts = self.texts.iter().filter(|wanted| wanted.len() >= bytes_min);
                texts.any(|wanted| quotes(text, wanted))
            })
        })
    }
}

/// The fewest and the most bytes of JSON that means the same as JSON of this length: blanks, escapes and other spellings of numbers.
const fn spelled_lengths(bytes: u32) -> (u32, u32) {
    (bytes / 2, bytes.saturating_mul(2).saturating_add(64))
}

/// Whether bytes hold a stretch of text, as it is or escaped.
pub(super) fn holds_stretch(bytes: &[u8], stretch: &[u8]) -> bool {
    in_any_spelling(bytes, |text| memchr::memmem::find(text, stretch).is_some())
}

/// Asks of the bytes as they are, and without their escapes.
pub(super) fn in_any_spelling(bytes: &[u8], holds: impl Fn(&[u8]) -> bool) -> bool {
    holds(bytes) || Unescaped::layers(bytes, ESCAPE_LAYERS).iter().any(|plain| holds(&plain.bytes))
}

fn quotes(text: &[u8], wanted: &[u8]) -> bool {
    let finds = |needle: &[u8]| memchr::memmem::find(text, needle).is_some();
    match wanted.len() {
        0 => false,
        length if length >= BARE_BYTES_MIN => finds(wanted),
        _ => finds(&[b"\"", wanted, b"\""].concat()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::event::wire;

    fn wanted(texts: &[&str]) -> ErasureTargets {
        ErasureTargets {
            texts: texts.iter().map(|text| text.as_bytes().to_vec()).collect(),
            ..ErasureTargets::default()
        }
    }

    fn template(literal: &str) -> Vec<u8> {
        let mut template = Vec::new();
        wire::push(&mut template, &TemplatePiece::Literal(literal.as_bytes()));
        template
    }

    #[test]
    fn texts_are_found_in_records_however_they_are_escaped() {
        let text = "gr\u{fc}\u{df}e \"x\"\n\u{1f600}/end";
        for (record, found) in [
            (r#"{"t":"grüße \"x\"\n😀/end"}"#, true),
            (r#"{"t":"gr\u00fc\u00dfe \u0022x\u0022\u000a\ud83d\ude00\/end"}"#, true),
            (r#"{"a":"{\"t\":\"gr\u00fc\u00dfe \\\"x\\\"\\n😀/end\"}"}"#, true),
            (r#"{"t":"grüße x 😀/end"}"#, false),
            ("{\"t\":\"gr\\u00", false),
        ] {
            assert_eq!(wanted(&[text]).is_quoted_in(&template(record), 0), found, "{record}");
        }
        assert!(wanted(&["ok"]).is_quoted_in(&template(r#"{"out":"ok"}"#), 0));
        assert!(
            !wanted(&["ok"]).is_quoted_in(&template(r#"{"token":"looks okay"}"#), 0),
            "short and not by itself"
        );
        assert!(!wanted(&[""]).is_quoted_in(&template(r#"{"out":""}"#), 0));
    }

    #[test]
    fn a_stretch_is_found_in_a_row_however_short_and_escaped_it_is() {
        for (row, found) in [
            ("key=4711", true),
            (r#"{"t":"a \"b\"\n4711"}"#, true),
            (r#"{"t":"\u0034711"}"#, true),
            ("key=471", false),
        ] {
            assert_eq!(holds_stretch(row.as_bytes(), b"4711"), found, "{row}");
        }
        assert!(holds_stretch(br#"{"t":"a \"b\"\nc"}"#, b"\"b\"\nc"));
    }

    proptest! {
        #[test]
        fn what_serde_json_escapes_is_found(text in ".{12,40}", around in "[a-z]{0,5}") {
            let record = serde_json::json!({ "a": around, "text": text }).to_string();
            prop_assert!(wanted(&[&text]).is_quoted_in(&template(&record), 0));
        }
    }
}
