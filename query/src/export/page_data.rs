//! The data of a page, in few bytes; the page's script, `assets/model.js`, reads them.
//!
//! Rows are arrays. Items are named by their place in `items`, texts by their place among the texts, short words (tools,
//! rules, kinds) by their place in `words`; -1 is "none".

use std::collections::HashMap;

use serde::Serialize;

use super::redaction::Redaction;
use super::texts::TextNumber;

/// Place of an item, a text or a word; -1 for none.
pub(super) type Place = i64;

/// A place, or -1.
pub(super) fn place(number: Option<u32>) -> Place {
    number.map_or(-1, i64::from)
}

/// All data but the texts.
#[derive(Debug, Default, Serialize)]
pub(super) struct PageData {
    pub(super) schema: &'static str,
    /// The index over all sessions, as a link from the page.
    pub(super) index: Option<String>,
    /// The session that the page is of, then the subagents that it started, and those that these started.
    pub(super) sessions: Vec<SessionPage>,
    /// Texts that only say why a text is missing.
    pub(super) problems: Vec<TextNumber>,
}

/// A session.
#[derive(Debug, Default, Serialize)]
pub(super) struct SessionPage {
    pub(super) session: SessionData,
    /// Turn, its last seq, tokens shown, tokens of the same items as recorded, tokens of everything recorded.
    pub(super) turns: Vec<(u32, u64, u64, u64, u64)>,
    pub(super) items: Vec<ItemData>,
    /// Older item, newer item, rule, key, seq, turn, 1 if released.
    pub(super) edges: Vec<(u32, Place, u32, Place, u64, u32, u8)>,
    /// Seq, turn, kind, text.
    pub(super) marks: Vec<(u64, u32, u32, String)>,
    /// Since this seq, items from `from` on stand behind those listed.
    pub(super) orders: Vec<(u64, usize, Vec<u32>)>,
    pub(super) todos: TodoData,
    pub(super) memory: Vec<MemoryData>,
    /// Turn, first and last second of it.
    pub(super) spans: Vec<(u32, i64, i64)>,
    pub(super) requests: Vec<RequestData>,
    pub(super) words: Vec<String>,
}

/// The session itself.
#[derive(Debug, Default, Serialize)]
pub(super) struct SessionData {
    /// Place of the session that started it, among those of the page; -1 for none.
    pub(super) parent: i64,
    /// The host's id of the call that started it.
    pub(super) call: Option<String>,
    pub(super) id: String,
    pub(super) host: String,
    pub(super) title: String,
    pub(super) project: Option<String>,
    pub(super) policy: String,
    /// Contexts of it were recorded as sent by acpdb. Of the others the page says what acpdb would send.
    pub(super) sent: bool,
    pub(super) at: u64,
    /// Microseconds since 1970 of the first item; those of items are seconds since then.
    pub(super) began: i64,
    pub(super) program: &'static str,
}

/// A request: seq, turn, model as a word, tokens of input, read from the cache, written to it, output; dollars, if the
/// table of prices knows the model.
#[derive(Debug, Serialize)]
pub(super) struct RequestData(
    pub(super) u64,
    pub(super) u32,
    pub(super) Place,
    pub(super) u64,
    pub(super) u64,
    pub(super) u64,
    pub(super) u64,
    pub(super) Option<f64>,
);

/// An item.
#[derive(Debug, Serialize)]
pub(super) struct ItemData(
    /// Seq.
    pub(super) u64,
    /// Part.
    pub(super) u32,
    /// Kind, as a word.
    pub(super) u32,
    /// Role, as a word.
    pub(super) u32,
    /// Turn.
    pub(super) u32,
    /// Seconds since the beginning.
    pub(super) i64,
    /// Tool, as a word.
    pub(super) Place,
    /// Its first key, as a word.
    pub(super) Place,
    /// Hash, or nothing.
    pub(super) String,
    /// The host's id of the call, or nothing.
    pub(super) String,
    /// Tokens of input and output as recorded.
    pub(super) (u64, u64),
    /// Parameters: since which seq which text.
    pub(super) Vec<(u64, TextNumber)>,
    /// Content: since which seq which texts.
    pub(super) Vec<(u64, Vec<TextNumber>)>,
    /// How it stands, since which seq.
    pub(super) Vec<PointData>,
);

/// How an item stands since a seq. If nothing is hidden, only the first four are written.
#[derive(Debug)]
pub(super) struct PointData {
    pub(super) seq: u64,
    /// 1 in the context, 2 pinned, 4 superseded by a rule; from 8 on the status of a call: 1 pending, 2 completed, 3
    /// failed, 4 aborted.
    pub(super) flags: u8,
    /// States of the faces: 0 whole, 1 tombstone, 2 summary, 3 shortened, 4 gone, 5 absent.
    pub(super) input: u8,
    pub(super) output: u8,
    pub(super) hidden: Option<HiddenData>,
}

/// Cause as a word, superseder, tokens shown of both faces, texts shown of both faces.
#[derive(Debug, Serialize, PartialEq, Eq)]
pub(super) struct HiddenData(
    pub(super) Place,
    pub(super) Place,
    pub(super) (u64, u64),
    pub(super) Place,
    pub(super) Place,
);

impl Serialize for PointData {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { seq, flags, input, output, hidden } = self;
        match hidden {
            None => (seq, flags, input, output).serialize(serializer),
            Some(hidden) => (seq, flags, input, output, hidden).serialize(serializer),
        }
    }
}

/// Seq, turn, entries with their statuses.
pub(super) type TodoVersion = (u64, u32, Vec<(usize, u32)>);

/// The todo list over time.
#[derive(Debug, Default, Serialize)]
pub(super) struct TodoData {
    /// The texts of the entries.
    pub(super) entries: Vec<TextNumber>,
    /// Seq, turn, and each entry of the list with its status as a word.
    pub(super) versions: Vec<TodoVersion>,
}

/// A memory item.
#[derive(Debug, Serialize)]
pub(super) struct MemoryData {
    pub(super) id: String,
    pub(super) seq: u64,
    pub(super) kind: u32,
    pub(super) place: String,
    pub(super) value: Place,
    pub(super) confidence: f64,
    pub(super) standing: u32,
    /// The seq at which another item took its place, and the id of that item.
    pub(super) ended: Option<u64>,
    pub(super) by: Option<String>,
}

/// Short texts that occur often.
#[derive(Debug, Default)]
pub(super) struct PageWords {
    list: Vec<String>,
    numbers: HashMap<String, u32>,
    redaction: Redaction,
}

impl PageWords {
    pub(super) fn new(redaction: Redaction) -> Self {
        Self { redaction, ..Self::default() }
    }

    pub(super) fn number(&mut self, word: &str) -> u32 {
        if let Some(number) = self.numbers.get(word) {
            return *number;
        }
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(self.redaction.of(word).into_owned());
        self.numbers.insert(word.to_owned(), number);
        number
    }

    pub(super) const fn redaction(&self) -> &Redaction {
        &self.redaction
    }

    pub(super) fn into_list(self) -> Vec<String> {
        self.list
    }
}
