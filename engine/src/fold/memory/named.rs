//! Finding an item of memory by what a person or a model calls it.
//!
//! ```text
//! p1, #812          its id, its place in the log
//! style/indent      category and key of a preference that holds
//! indent            the key alone, if one category has it
//! use tabs          the value of one item that holds, in any case
//! tabs              words that stand in the text of one item that holds, and in no other
//! ```
//!
//! The first of these that names an item does. A form that fits several items names none of them.

use super::read::{MemoryItem, MemoryView};
use crate::event::MemoryKind;
use crate::ids::{ItemId, StreamId};

/// Words of a name, at most; a longer text is no name but a value.
const NAME_WORDS_MAX: usize = 32;

/// The items that a text names.
#[derive(Clone, Debug)]
pub enum MemoryNamed<'a> {
    /// This one.
    One(StreamId, MemoryItem<'a>),
    /// Several; the text says too little.
    Many(Vec<MemoryItem<'a>>),
    /// None.
    None,
}

/// Whether a text looks like a generated id: a mistyped one is not searched as words.
fn is_like_an_id(text: &str) -> bool {
    let digits = text.strip_prefix(|c: char| c.is_ascii_alphabetic() || c == '#').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

impl<'a> MemoryView<'a> {
    /// The item that a text names. Cost: lookups; if only its words can name it, the texts of all items that hold.
    pub fn named(&self, text: &str) -> MemoryNamed<'a> {
        let text = text.trim();
        // A text that is no place in the log may be another name.
        let by_item = text.strip_prefix('#').and_then(|_| text.parse::<ItemId>().ok());
        if let Some((stream, item)) = self.by_id(text).or_else(|| self.by_item(by_item?)) {
            return MemoryNamed::One(stream, item);
        }
        if text.is_empty() || is_like_an_id(text) {
            return MemoryNamed::None;
        }
        let by_place = text.split_once('/').and_then(|(category, key)| self.by_key(category, key));
        if let Some((stream, item)) = by_place {
            return MemoryNamed::One(stream, item);
        }
        let current = self.current();
        let key = |item: &MemoryItem<'a>| item.kind() == MemoryKind::Preference && item.key() == Some(text);
        let words: Vec<String> = text.split_whitespace().map(str::to_lowercase).collect();
        let holds = |item: &MemoryItem<'a>| {
            let said = self.text(item).unwrap_or_default().to_lowercase();
            let said: Vec<&str> =
                said.split(|c: char| c.is_whitespace()).map(|word| word.trim_matches(is_mark)).collect();
            words.iter().all(|word| said.contains(&word.trim_matches(is_mark)))
        };
        let by_value = self.with_value(text);
        let found: [&dyn Fn() -> Vec<(StreamId, MemoryItem<'a>)>; 3] = [
            &|| current.iter().filter(|(_, item)| key(item)).copied().collect(),
            &|| {
                current
                    .iter()
                    .filter(|(_, item)| by_value.iter().any(|(_, it)| it.item() == item.item()))
                    .copied()
                    .collect()
            },
            &|| {
                let is_name = words.len() <= NAME_WORDS_MAX;
                current.iter().filter(|(_, item)| is_name && holds(item)).copied().collect()
            },
        ];
        for found in found {
            match found().as_slice() {
                [] => {}
                [(stream, item)] => return MemoryNamed::One(*stream, *item),
                many => return MemoryNamed::Many(many.iter().map(|(_, item)| *item).collect()),
            }
        }
        MemoryNamed::None
    }
}

fn is_mark(character: char) -> bool {
    character.is_ascii_punctuation() && character != '_'
}
