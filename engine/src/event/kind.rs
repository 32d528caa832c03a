//! The questions to every kind of event. Each kind answers beside its struct, in one block.
//!
//! ```text
//! impl EventKind for MessageAbandoned   in_words: one line for people   bodies: its texts by their names   sample: one, for tests
//!                                  bodies_mut, texts_mut: what a filter of contents sees
//! ```
//!
//! A kind without bodies or free texts has no method for them; a test compares the samples with the answers of their kinds.

use std::borrow::Cow;

use super::{Body, Part, Payload, Text, for_each_kind};
use crate::text::words::{tokens, word};

/// A body of an event, with the name that people read above it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NamedBody {
    /// Its name in the event.
    pub name: Cow<'static, str>,
    /// Where it is, with the tokens that it counts.
    pub body: Body,
    /// Whether it tells the subject of the event: such bodies are searched, others stand beside them.
    pub is_telling: bool,
}

impl NamedBody {
    pub(super) fn telling(name: impl Into<Cow<'static, str>>, body: Body) -> Self {
        Self { name: name.into(), body, is_telling: true }
    }

    pub(super) fn beside(name: impl Into<Cow<'static, str>>, body: Body) -> Self {
        Self { name: name.into(), body, is_telling: false }
    }
}

/// The questions to a kind.
pub(crate) trait EventKind: Sized {
    /// Whether it has free texts.
    const HAS_TEXTS: bool = false;

    /// Its content in a few words; no body is read. The name of the kind is not in it.
    fn in_words(&self) -> String;

    /// Its bodies with names for people. Bodies that tell its subject come first. Signatures of providers are not among them.
    fn bodies(&self) -> Vec<NamedBody> {
        Vec::new()
    }

    /// A sample with every field set, for tests that must not miss any.
    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self;

    /// Calls `each` with every free text, in the order of the fields.
    fn texts_mut(&mut self, _each: &mut dyn FnMut(&mut Text)) {}

    /// Calls `each` with every body, in no order that means anything. Free texts are not among them, nor is the key of a stream.
    fn bodies_mut(&mut self, _each: &mut dyn FnMut(&mut Body)) {}
}

macro_rules! ask_kinds {
    ($( $number:literal $name:ident $label:literal ),+) => {
        impl Payload {
            /// Its content in a few words; no body is read.
            ///
            /// ```
            /// use acpdb_engine::event::{MessageAbandoned, Payload};
            ///
            /// assert_eq!(Payload::from(MessageAbandoned { key: "msg_1".into() }).in_words(), "msg_1");
            /// ```
            pub fn in_words(&self) -> String {
                match self {
                    $( Self::$name(payload) => payload.in_words(), )+
                    Self::Unknown { bytes, .. } => {
                        format!("{} bytes that this acpdb does not understand", bytes.len())
                    }
                }
            }

            /// Its bodies with names for people. Bodies that tell its subject come first. Empty bodies are among them.
            pub fn bodies(&self) -> Vec<NamedBody> {
                match self {
                    $( Self::$name(payload) => payload.bodies(), )+
                    Self::Unknown { .. } => Vec::new(),
                }
            }

            /// As [`EventKind::texts_mut`].
            pub(crate) fn texts_mut(&mut self, each: &mut dyn FnMut(&mut Text)) {
                match self {
                    $( Self::$name(payload) => payload.texts_mut(each), )+
                    Self::Unknown { .. } => {}
                }
            }

            /// Whether its kind has free texts at all.
            pub(crate) const fn may_have_texts(&self) -> bool {
                match self {
                    $( Self::$name(_) => <super::$name as EventKind>::HAS_TEXTS, )+
                    Self::Unknown { .. } => false,
                }
            }

            /// As [`EventKind::bodies_mut`].
            pub(crate) fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
                match self {
                    $( Self::$name(payload) => payload.bodies_mut(each), )+
                    Self::Unknown { .. } => {}
                }
            }
        }

        /// One payload of every kind, in order of their numbers.
        #[cfg(any(test, feature = "testing"))]
        pub(super) fn samples() -> Vec<Payload> {
            vec![ $( super::$name::sample().into(), )+ ]
        }
    };
}
for_each_kind!(ask_kinds);

/// The tokens of parts, in words.
pub(super) fn tokens_of(parts: &[Part]) -> String {
    let total: u32 = parts.iter().map(Part::tokens).sum();
    format!("~{} tokens", tokens(u64::from(total)))
}

/// Parts as named bodies.
pub(super) fn named_parts(parts: &[Part]) -> Vec<NamedBody> {
    let name = |number: usize, part: &Part| {
        let kind = word(&part.kind);
        if parts.len() > 1 { format!("{kind} {number}") } else { kind }
    };
    (1..).zip(parts).map(|(number, part)| NamedBody::telling(name(number, part), part.counted())).collect()
}

/// Calls `each` with every body of parts.
pub(super) fn bodies_of(parts: &mut [Part], each: &mut dyn FnMut(&mut Body)) {
    for part in parts {
        each(&mut part.body);
        part.signature.iter_mut().for_each(&mut *each);
    }
}

#[cfg(test)]
mod tests {
    use crate::event::samples;

    /// How often the debug form of a payload has a value of a type. `Kind` should find as many.
    fn printed(payload: &super::Payload, begin: &str) -> usize {
        format!("{payload:?}").matches(begin).count()
    }

    #[test]
    fn each_kind_says_all_that_it_names() {
        for mut payload in samples::payloads() {
            let label = payload.label();
            let (mut texts, mut bodies) = (0, 0);
            // The key of a stream is a body without a name, and is no content.
            let wanted = printed(&payload, "Body {") - usize::from(label == "session_opened");
            let may_have_texts = payload.may_have_texts();
            payload.texts_mut(&mut |_| texts += 1);
            payload.bodies_mut(&mut |_| bodies += 1);
            assert_eq!(bodies, wanted, "{label}");
            let named = payload.bodies().len();
            assert!(named > 0 || bodies == 0, "{label} has bodies, and names none of them");
            assert_eq!(texts > 0, may_have_texts, "{label}");
            assert!(!payload.in_words().trim().is_empty() || texts > 0, "{label}");
        }
    }
}
