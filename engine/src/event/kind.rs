//! What is asked of every kind of event. Each kind answers beside its struct, in one block.
//!
//! ```text
//! impl Kind for MessageAbandoned   in_words: one line for people   sample: one event of it, for tests
//!                                  bodies_mut, texts_mut, items_mut, signatures_mut, memory_ids_mut: what it names
//! ```
//!
//! A payload that travels to another store takes along what it names. So each kind says where that stands in it. A kind that
//! names nothing of a sort says nothing of it; a test compares the samples with what their kinds say.

use super::{Body, Part, Payload, Text, for_each_kind};
use crate::ids::{ItemId, Signature};
use crate::text::words::tokens;

/// What is asked of a kind.
pub(crate) trait Kind: Sized {
    /// Whether it has free texts.
    const HAS_TEXTS: bool = false;

    /// What it says, in a few words; no body is read. The name of the kind is not in it.
    fn in_words(&self) -> String;

    /// One of it with every field set, for tests that must not miss any.
    #[cfg(any(test, feature = "testing"))]
    fn sample() -> Self;

    /// Calls `each` with every free text, in the order of the fields.
    fn texts_mut(&mut self, _each: &mut dyn FnMut(&mut Text)) {}

    /// Calls `each` with every body, in no order that means anything. Free texts are not among them, nor is the key of a stream.
    fn bodies_mut(&mut self, _each: &mut dyn FnMut(&mut Body)) {}

    /// Calls `each` with every item that it names; one that `each` refuses is left out. `false`: it cannot do without.
    fn items_mut(&mut self, _each: &mut dyn FnMut(&mut ItemId) -> bool) -> bool {
        true
    }

    /// Calls `each` with every signature.
    fn signatures_mut(&mut self, _each: &mut dyn FnMut(&mut Signature)) {}

    /// Calls `each` with every id of a memory item.
    fn memory_ids_mut(&mut self, _each: &mut dyn FnMut(&mut String)) {}
}

macro_rules! ask_kinds {
    ($( $number:literal $name:ident $label:literal ),+) => {
        impl Payload {
            /// What it says, in a few words; no body is read.
            ///
            /// ```
            /// use acpdb_engine::event::{MessageAbandoned, Payload};
            ///
            /// assert_eq!(Payload::from(MessageAbandoned { key: "msg_1".into() }).in_words(), "msg_1");
            /// ```
            pub fn in_words(&self) -> String {
                match self {
                    $( Self::$name(payload) => payload.in_words(), )+
                    Self::Unknown { bytes, .. } if self.is_shredded() => {
                        format!("{} bytes, whose key was destroyed", bytes.len())
                    }
                    Self::Unknown { bytes, .. } => {
                        format!("{} bytes, written by a newer acpdb", bytes.len())
                    }
                }
            }

            /// As [`Kind::texts_mut`].
            pub(crate) fn texts_mut(&mut self, each: &mut dyn FnMut(&mut Text)) {
                match self {
                    $( Self::$name(payload) => payload.texts_mut(each), )+
                    Self::Unknown { .. } => {}
                }
            }

            /// Whether its kind has free texts at all.
            pub(crate) const fn may_have_texts(&self) -> bool {
                match self {
                    $( Self::$name(_) => <super::$name as Kind>::HAS_TEXTS, )+
                    Self::Unknown { .. } => false,
                }
            }

            /// As [`Kind::bodies_mut`].
            pub(crate) fn bodies_mut(&mut self, each: &mut dyn FnMut(&mut Body)) {
                match self {
                    $( Self::$name(payload) => payload.bodies_mut(each), )+
                    Self::Unknown { .. } => {}
                }
            }

            /// As [`Kind::items_mut`].
            pub(crate) fn items_mut(&mut self, each: &mut dyn FnMut(&mut ItemId) -> bool) -> bool {
                match self {
                    $( Self::$name(payload) => payload.items_mut(each), )+
                    Self::Unknown { .. } => true,
                }
            }

            /// As [`Kind::signatures_mut`].
            pub(crate) fn signatures_mut(&mut self, each: &mut dyn FnMut(&mut Signature)) {
                match self {
                    $( Self::$name(payload) => payload.signatures_mut(each), )+
                    Self::Unknown { .. } => {}
                }
            }

            /// As [`Kind::memory_ids_mut`].
            pub(crate) fn memory_ids_mut(&mut self, each: &mut dyn FnMut(&mut String)) {
                match self {
                    $( Self::$name(payload) => payload.memory_ids_mut(each), )+
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

    /// How often the debug form of a payload has a value of a type: what `Kind` should find in it.
    fn printed(payload: &super::Payload, begin: &str) -> usize {
        format!("{payload:?}").matches(begin).count()
    }

    #[test]
    fn each_kind_says_all_that_it_names() {
        for mut payload in samples::payloads() {
            let label = payload.label();
            let (mut bodies, mut items, mut signatures, mut texts) = (0, 0, 0, 0);
            let wanted = (
                // The key of a stream is a body that stays with its store.
                printed(&payload, "Body {") - usize::from(label == "session_opened"),
                printed(&payload, "ItemId {"),
                printed(&payload, "Signature("),
            );
            let may_have_texts = payload.may_have_texts();
            payload.bodies_mut(&mut |_| bodies += 1);
            payload.items_mut(&mut |_| {
                items += 1;
                true
            });
            payload.signatures_mut(&mut |_| signatures += 1);
            payload.texts_mut(&mut |_| texts += 1);
            assert_eq!((bodies, items, signatures), wanted, "{label}");
            assert_eq!(texts > 0, may_have_texts, "{label}");
            assert!(!payload.in_words().trim().is_empty() || texts > 0, "{label}");
        }
    }
}
