//! Messages in parts, continued and finished.

use rkyv::{Archive, Deserialize, Serialize};
use serde::{Deserialize as FromJson, Serialize as ToJson};

use super::cbor::{part, record};
use super::kind::{EventKind, NamedBody, bodies_of, named_parts, tokens_of};
use super::{Body, Face, Part, Role};
use crate::ids::ItemId;
use crate::text::words::{count, word};

/// A message, whole or its first parts.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MessageRecorded {
    /// The host's id of the message; parts may follow under the same key.
    pub key: String,
    /// The speaker.
    pub role: Role,
    /// Its parts so far.
    pub parts: Vec<Part>,
    /// Key of the message it answers or follows, where the host keeps a tree.
    pub parent: Option<String>,
    /// The model does not see it (a notice, a transcript line).
    pub hidden_from_model: bool,
    /// The user does not see it (an injected instruction).
    pub hidden_from_user: bool,
}

record!(MessageRecorded {
    4 key, 5 role, 6 parts, 7 parent, 8 hidden_from_model, 9 hidden_from_user,
});

impl EventKind for MessageRecorded {
    fn in_words(&self) -> String {
        let kinds: Vec<String> = self.parts.iter().map(|part| word(&part.kind)).collect();
        format!("{} {} {}", word(&self.role), kinds.join("+"), tokens_of(&self.parts))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{part, text};

        Self {
            key: "msg_1".to_owned(),
            role: Role::Assistant,
            parts: vec![part(0)],
            parent: text("msg_0"),
            hidden_from_model: true,
            hidden_from_user: true,
        }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        named_parts(&self.parts)
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        bodies_of(&mut self.parts, each);
    }
}

/// Further parts of a message.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MessageContinued {
    /// Key of the message.
    pub key: String,
    /// The parts that are new.
    pub parts: Vec<Part>,
}

record!(MessageContinued { 4 key, 5 parts });

impl EventKind for MessageContinued {
    fn in_words(&self) -> String {
        format!("{} {}", count(self.parts.len() as u64, "part"), tokens_of(&self.parts))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::part;

        Self { key: "msg_1".to_owned(), parts: vec![part(0), part(2)] }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        named_parts(&self.parts)
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        bodies_of(&mut self.parts, each);
    }
}

/// Token counts as a provider reported them.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_engine::event::Report;
/// use acpdb_engine::{PartEntry, Usage};
///
/// let mut message = session.message("m1");
/// let _ = message.push(PartEntry::text("It prints a line."))?;
/// let usage = Usage { input: Some(20), cache_read: Some(11_000), output: Some(9), ..Usage::default() };
/// let _ = message.finish(Report { usage, ..Report::default() }, [])?;
/// # Ok(())
/// # }
/// ```
#[derive(
    Archive, Serialize, Deserialize, ToJson, FromJson, Clone, Copy, PartialEq, Eq, Hash, Debug, Default,
)]
pub struct Usage {
    /// Input tokens, without cached ones.
    pub input: Option<u64>,
    /// Output tokens.
    pub output: Option<u64>,
    /// Input tokens read from the cache.
    pub cache_read: Option<u64>,
    /// Input tokens written to the cache, for any length of time.
    pub cache_write: Option<u64>,
    /// Tokens among them that the cache keeps for an hour; some providers price these apart. `None` if it is not told.
    pub cache_write_long: Option<u64>,
    /// Output tokens spent on reasoning, where told apart.
    pub reasoning: Option<u64>,
    /// Web searches that the provider ran; they are paid for one by one.
    pub searches: Option<u64>,
}

impl Usage {
    /// The rest of a sum without a part of it; where the parts are more than their sum, nothing is.
    ///
    /// ```
    /// use acpdb_engine::Usage;
    ///
    /// let sum = Usage { input: Some(20), output: Some(9), ..Usage::default() };
    /// let part = Usage { input: Some(15), output: Some(10), ..Usage::default() };
    /// assert_eq!(sum.without(&part), Usage { input: Some(5), output: Some(0), ..Usage::default() });
    /// ```
    #[must_use]
    pub fn without(self, part: &Self) -> Self {
        // A host that counts a part and not its sum, or more than its sum, leaves no rest.
        let rest = |sum: Option<u64>, part: Option<u64>| sum.map(|sum| sum.saturating_sub(part.unwrap_or(0)));
        Self {
            input: rest(self.input, part.input),
            output: rest(self.output, part.output),
            cache_read: rest(self.cache_read, part.cache_read),
            cache_write: rest(self.cache_write, part.cache_write),
            cache_write_long: rest(self.cache_write_long, part.cache_write_long),
            reasoning: rest(self.reasoning, part.reasoning),
            searches: rest(self.searches, part.searches),
        }
    }
}

part!(Usage {
    0 input, 1 output, 2 cache_read, 3 cache_write, 4 cache_write_long, 5 reasoning, 6 searches
});

/// The service tier of a report that sums up requests which no other report tells of, such as the host's sum of a session less
/// all that it told before. It is no request of its own.
pub const TOTAL_TIER: &str = "total";

/// The service tier of a report that sums up a session and its subagents from its beginning. Of several the last counts, and of it
/// what no other report tells.
pub const SUM_TIER: &str = "sum";

/// The end of the service tier of a report that is a part of a request which another report counts.
pub const PART_TIER: &str = "+part";

/// The report of a provider and a host about a message.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Report {
    /// Model that wrote it.
    pub model: Option<String>,
    /// Provider.
    pub provider: Option<String>,
    /// The provider's request id.
    pub request: Option<String>,
    /// Why the model stopped.
    pub stop_reason: Option<String>,
    /// How the provider served the request (`standard`, `priority`, `batch`); the price depends on it.
    pub service_tier: Option<String>,
    /// Cost of the request as the host tells it, in millionths of a dollar.
    pub cost: Option<u64>,
    /// Token counts.
    pub usage: Usage,
}

part!(Report { 0 model, 1 provider, 2 request, 3 stop_reason, 4 service_tier, 5 cost, 6 usage });

/// A message is complete.
#[derive(Archive, Serialize, Deserialize, ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MessageFinished {
    /// Key of the message.
    pub key: String,
    /// The report about it.
    pub report: Report,
}

record!(MessageFinished { 4 key, 5 report });

impl EventKind for MessageFinished {
    fn in_words(&self) -> String {
        let usage = self.report.usage;
        let numbers = [("in", usage.input), ("out", usage.output), ("cached", usage.cache_read)];
        let set = numbers.iter().filter_map(|(name, value)| value.map(|value| format!("{name} {value}")));
        let set = set.collect::<Vec<_>>().join(" ");
        format!("{} {set}", self.report.model.as_deref().unwrap_or_default())
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::text;

        Self {
            key: "msg_1".to_owned(),
            report: Report {
                model: text("m"),
                provider: text("p"),
                request: text("r"),
                stop_reason: text("end"),
                service_tier: text("s"),
                cost: Some(7),
                usage: Usage {
                    input: Some(1),
                    output: Some(2),
                    cache_read: Some(3),
                    cache_write: Some(4),
                    cache_write_long: Some(2),
                    reasoning: Some(5),
                    searches: Some(1),
                },
            },
        }
    }
}

/// A message was given up before it was complete (a retry, an interruption): its parts leave the context.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MessageAbandoned {
    /// Key of the message.
    pub key: String,
}

record!(MessageAbandoned { 4 key });

impl EventKind for MessageAbandoned {
    fn in_words(&self) -> String {
        self.key.clone()
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        Self { key: "msg_2".to_owned() }
    }
}

/// The host rewrote a recorded item. Changes the shown content; makes and undoes no edge.
#[derive(ToJson, FromJson, Clone, PartialEq, Eq, Hash, Debug)]
pub struct ItemRevised {
    /// The item.
    pub item: ItemId,
    /// The face.
    pub face: Face,
    /// Its new content, one part for a message part or params, any number for an output.
    pub parts: Vec<Part>,
}

record!(ItemRevised { 4 item, 5 face, 6 parts });

impl EventKind for ItemRevised {
    fn in_words(&self) -> String {
        format!("{} {}", self.item, word(&self.face))
    }

    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self {
        use crate::event::samples::{item, part};

        Self { item: item(), face: Face::Input, parts: vec![part(0)] }
    }

    fn bodies(&self) -> Vec<NamedBody> {
        named_parts(&self.parts)
    }

    fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
        bodies_of(&mut self.parts, each);
    }
}
