//! Names that come out the same from every feed: origins of records without ids, of calls, of turns.
//!
//! ```text
//! line:<digest>#n            n-th record of these bytes in the stream
//! call:<id>#n:start|finish   n-th call of this id; ids repeat, within a session and across sessions
//! call:<id>#n:aborted        the same call, given up by the host without a result
//! turn:<key>  prompt:<key>   the step or prompt that begins with the fact of this origin
//! ```

use std::collections::HashMap;

use acpdb_engine::entry::{Entry, Fact, PartEntry, fact};
use acpdb_engine::event::Role;
use acpdb_engine::ids::Micros;
use acpdb_engine::secret::DERIVED;

/// Counts how often something has occurred in a stream.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Occurrences(HashMap<String, u32>);

impl Occurrences {
    /// The number of this occurrence, from 1.
    pub(crate) fn next(&mut self, what: &str) -> u32 {
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

/// Tells records that stand in a file again, where records have no ids.
///
/// Two records of one moment may be alike, and so may be those of a fork, whose host gives all copies one time. So an equal record is the
/// same one only if it directly follows itself, or if time had gone on behind the first.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    /// How often time had gone on when each record was read last.
    seen: HashMap<blake3::Hash, u64>,
    last: Option<blake3::Hash>,
    newest: Option<Micros>,
    rises: u64,
}

impl Repeated {
    /// Whether a record of this time was there before.
    pub(super) fn is_again(&mut self, line: &str, at: Option<Micros>) -> bool {
        let digest = blake3::hash(line.as_bytes());
        if at > self.newest && self.newest.is_some() {
            self.rises = self.rises.saturating_add(1);
        }
        self.newest = at.or(self.newest);
        let follows_itself = self.last.replace(digest) == Some(digest);
        let before = self.seen.insert(digest, self.rises);
        at.is_some() && before.is_some_and(|before| follows_itself || before < self.rises)
    }
}

/// Calls of a stream, numbered since hosts' ids of calls are not unique, with the open ones in the order in which they began.
///
/// A result belongs to the nearest earlier unanswered call of its id. A result without a call is numbered after those
/// that have one, so that a feed which saw only the result names it alike.
#[derive(Debug, Default)]
pub(super) struct Calls {
    by_id: HashMap<Box<str>, Numbers>,
    open: Vec<(String, u32)>,
}

#[derive(Debug, Default)]
struct Numbers {
    started: u32,
    finished: u32,
    unanswered: Vec<u32>,
}

impl Calls {
    /// Begins a call; gives its origin.
    pub(super) fn start(&mut self, id: &str) -> String {
        let numbers = self.by_id.entry(Box::from(id)).or_default();
        numbers.started = numbers.started.saturating_add(1);
        numbers.unanswered.push(numbers.started);
        self.open.push((id.to_string(), numbers.started));
        format!("call:{id}#{}:start", numbers.started)
    }

    /// Ends a call; gives the origin of its end.
    pub(super) fn finish(&mut self, id: &str) -> String {
        let numbers = self.by_id.entry(Box::from(id)).or_default();
        numbers.finished = numbers.finished.saturating_add(1);
        let number = numbers.unanswered.pop().unwrap_or(numbers.finished);
        self.open.retain(|(open, its)| open != id || *its != number);
        format!("call:{id}#{number}:finish")
    }

    /// Gives up all open calls; gives their ids, and the origins of their ends.
    ///
    /// These differ from the origin of a result: a host may still write one, and each fact has one content for ever, or
    /// importing a file twice would revise it twice.
    pub(super) fn give_up(&mut self) -> Vec<(String, String)> {
        std::mem::take(&mut self.open)
            .into_iter()
            .map(|(id, number)| {
                let aborted = format!("call:{id}#{number}:aborted");
                (id, aborted)
            })
            .collect()
    }
}

/// A model step that begins with the fact of this origin.
pub(crate) fn step(origin: &str) -> Entry {
    Entry::step(origin).origin(format!("turn:{origin}"))
}

/// A prompt that begins with the fact of this origin.
pub(crate) fn prompt(origin: &str) -> Entry {
    Entry::prompt(origin).origin(format!("prompt:{origin}"))
}

/// A message of this key, which is its origin too.
pub(crate) fn message(key: &str, role: Role, parts: Vec<PartEntry>, hidden_from_user: bool) -> Entry {
    let (key, origin) = (key.to_owned(), key);
    let default = fact::MessageRecorded::default();
    Entry::from(fact::MessageRecorded { key, role, parts, hidden_from_user, ..default }).origin(origin)
}

/// The same message, for people only.
pub(crate) fn not_for_the_model(mut message: Entry) -> Entry {
    if let Fact::MessageRecorded(fact::MessageRecorded { hidden_from_model, .. }) = &mut message.fact {
        *hidden_from_model = true;
    }
    message
}

/// Whether a result holds a pointer of ours in the place of a text: nothing was read, so the text that it points to has to stay.
pub(super) fn holds_pointer(parts: &[PartEntry]) -> bool {
    parts.iter().any(|part| acpdb_serve::point::is_pointer(&part.bytes))
}

/// An id from a record's bytes: half of their digest. The engine keys it with the store's secret.
pub(crate) fn digest(record: &str) -> String {
    let hex = blake3::hash(record.as_bytes()).to_hex();
    format!("{DERIVED}{}", hex.get(..32).unwrap_or_default())
}

/// A picture by its address. How closely the model is to look stands beside the media type, as a parameter of it.
pub(crate) fn picture(url: String, detail: Option<String>) -> PartEntry {
    let media = match (media_type(&url), detail) {
        (Some(media), Some(detail)) => Some(format!("{media};detail={detail}")),
        (media, _) => media,
    };
    PartEntry::media(url, media)
}

/// The media type of a `data:` address.
fn media_type(url: &str) -> Option<String> {
    let (media, _) = url.strip_prefix("data:")?.split_once([';', ','])?;
    (!media.is_empty()).then(|| media.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that was put together of copies told each record twice; a fork with one time for all told some but once.
    #[test]
    fn a_record_is_there_again_where_it_follows_itself_or_time_has_gone_on() {
        let check = |records: &str| {
            let mut repeated = Repeated::default();
            let told = records.split_whitespace().filter(|record| {
                let at = record.trim_matches(char::is_alphabetic).parse().ok().map(Micros);
                !repeated.is_again(record, at)
            });
            told.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(check("a1 b2 b2 c3 a1 b2 c3 d4"), "a1 b2 c3 d4");
        assert_eq!(check("a1 b1 a1 b1 c1"), "a1 b1 a1 b1 c1");
        assert_eq!(check("m9 a1 b1 a1 a1 c2 a1"), "m9 a1 b1 a1 c2");
        assert_eq!(check("a a b a"), "a a b a");
    }

    #[test]
    fn results_belong_to_the_nearest_unanswered_call() {
        let mut calls = Calls::default();
        let origins =
            [calls.start("a"), calls.start("a"), calls.start("b"), calls.finish("a"), calls.start("a")];
        assert_eq!(
            origins.join(" "),
            "call:a#1:start call:a#2:start call:b#1:start call:a#2:finish call:a#3:start"
        );
        assert_eq!([calls.finish("a"), calls.finish("a")].join(" "), "call:a#3:finish call:a#1:finish");
        assert_eq!(calls.finish("c"), "call:c#1:finish");
        assert_eq!(calls.give_up(), [("b".to_owned(), "call:b#1:aborted".to_owned())]);
    }
}
