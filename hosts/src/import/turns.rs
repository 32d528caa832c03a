//! Names that come out the same from every feed: origins of records without ids, of calls, of turns.
//!
//! ```text
//! line:<digest>#n            n-th record of these bytes in the stream
//! call:<id>#n:start|finish   n-th call of this id; ids repeat, within a session and across sessions
//! turn:<key>  prompt:<key>   the step or prompt that begins with the fact of this origin
//! ```

use std::collections::HashMap;

use acpdb_engine::entry::Entry;

/// Counts how often something has occurred in a stream.
#[derive(Debug, Default)]
pub(super) struct Occurrences(HashMap<String, u32>);

impl Occurrences {
    /// The number of this occurrence, from 1.
    pub(super) fn next(&mut self, what: &str) -> u32 {
        let count = self.0.entry(what.to_string()).or_default();
        *count = count.saturating_add(1);
        *count
    }

    /// `kind:what#n`.
    pub(super) fn origin(&mut self, kind: &str, what: &str) -> String {
        let n = self.next(what);
        format!("{kind}:{what}#{n}")
    }
}

/// Pairs results with calls: with the nearest earlier unanswered call of the same id.
#[derive(Debug, Default)]
pub(super) struct Calls {
    started: Occurrences,
    lost: Occurrences,
    open: Vec<(String, u32)>,
}

impl Calls {
    /// A call begins: its origin.
    pub(super) fn start(&mut self, id: &str) -> String {
        let n = self.started.next(id);
        self.open.push((id.to_string(), n));
        format!("call:{id}#{n}:start")
    }

    /// A call ends: the origin of its end. A result without a call has one too (`#?n`).
    pub(super) fn finish(&mut self, id: &str) -> String {
        match self.open.iter().rposition(|(open, _)| open == id) {
            Some(at) => {
                let (_, n) = self.open.remove(at);
                format!("call:{id}#{n}:finish")
            }
            None => format!("call:{id}#?{}:finish", self.lost.next(id)),
        }
    }

    /// All open calls end: their ids, and the origins of their ends, in the order in which they began.
    pub(super) fn give_up(&mut self) -> Vec<(String, String)> {
        let open = std::mem::take(&mut self.open);
        open.into_iter()
            .map(|(id, n)| {
                let finish = format!("call:{id}#{n}:finish");
                (id, finish)
            })
            .collect()
    }
}

/// A model step that begins with the fact of this origin.
pub(super) fn step(origin: &str) -> Entry {
    Entry::step(origin).origin(format!("turn:{origin}"))
}

/// A prompt that begins with the fact of this origin.
pub(super) fn prompt(origin: &str) -> Entry {
    Entry::prompt(origin).origin(format!("prompt:{origin}"))
}

/// First half of the digest of a record's bytes.
pub(super) fn digest(record: &str) -> String {
    let mut hex = blake3::hash(record.as_bytes()).to_hex().to_string();
    hex.truncate(32);
    hex
}

/// The media type of a `data:` address.
pub(super) fn media_type(url: &str) -> Option<String> {
    let (media, _) = url.strip_prefix("data:")?.split_once([';', ','])?;
    (!media.is_empty()).then(|| media.to_string())
}
