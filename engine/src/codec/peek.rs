//! A look at an encoded event that copies nothing: for filters over many events, of which few are wanted.
//!
//! ```text
//! envelope (fixed)  ->  peek (archived bytes, validated, read in place)  ->  decode (owned)
//! ```
//!
//! The fields that filters ask for most: the actor, the tool and call, the files, the tokens. Everything else
//! is for [`super::payload::decode`]. Bytes are validated before anything is read, as there.

use rkyv::rancor::Failure;

use super::payload::{ArchivedRoot, Root};
use crate::event::{self, Actor, KeyKind, PartKind, Role, plain};

type Parts<'a> = &'a [<event::Part as rkyv::Archive>::Archived];
type Keys<'a> = &'a [<event::Key as rkyv::Archive>::Archived];

/// Fields of an encoded event, borrowed from its bytes.
#[derive(Clone, Copy)]
pub struct Peek<'a> {
    /// The actor.
    pub actor: Actor,
    /// Name of the tool, of a call that starts.
    pub tool: Option<&'a str>,
    /// The host's id of the call.
    pub call: Option<&'a str>,
    /// The sealed label of a call that starts.
    pub(crate) label: Option<u32>,
    /// The role of a message.
    pub role: Option<Role>,
    /// Estimated tokens of parameters, output or parts; `None` for kinds that have none of these.
    pub tokens: Option<u64>,
    parts: Parts<'a>,
    keys: Keys<'a>,
}

impl std::fmt::Debug for Peek<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Peek").field("actor", &self.actor).field("tool", &self.tool).finish_non_exhaustive()
    }
}

impl<'a> Peek<'a> {
    /// Files that a call names: as given, and as resolved where that differs.
    pub fn files(&self) -> impl Iterator<Item = &'a str> {
        let files = self.keys.iter().filter(|key| plain::<KeyKind>(&key.kind) == KeyKind::File);
        files.flat_map(|key| {
            let resolved = key.resolved.as_ref().map(rkyv::string::ArchivedString::as_str);
            std::iter::once(key.given.as_str()).chain(resolved)
        })
    }

    /// Kinds of the parts of a message or result.
    pub fn part_kinds(&self) -> impl Iterator<Item = PartKind> + use<'a> {
        self.parts.iter().map(|part| plain::<PartKind>(&part.kind))
    }
}

/// Looks at an event. `None`: it is of a kind or version that is not known, or its bytes are not valid; decode it.
pub fn peek(number: u16, version: u16, bytes: &[u8]) -> Option<Peek<'_>> {
    if version != super::payload::PAYLOAD_VERSION {
        return None;
    }
    macro_rules! actor_of {
        ($( $number:literal $name:ident $label:literal ),+) => {
            match number {
                $( $number => plain::<Actor>(&access::<event::$name>(bytes)?.stamp.actor), )+
                _ => return None,
            }
        };
    }
    let none = |actor| Peek {
        actor,
        tool: None,
        call: None,
        label: None,
        role: None,
        tokens: None,
        parts: &[],
        keys: &[],
    };
    match number {
        32 => {
            let root = access::<event::ToolCallStarted>(bytes)?;
            let started = &root.payload;
            Some(Peek {
                tool: Some(started.tool.as_str()),
                call: Some(started.call.as_str()),
                label: Some(started.label.to_native()),
                tokens: Some(u64::from(started.params.tokens.to_native())),
                keys: started.keys.as_slice(),
                ..none(plain::<Actor>(&root.stamp.actor))
            })
        }
        33 => {
            let root = access::<event::ToolCallFinished>(bytes)?;
            let parts = root.payload.output.as_slice();
            let call = Some(root.payload.call.as_str());
            Some(Peek { call, tokens: Some(tokens(parts)), parts, ..none(plain::<Actor>(&root.stamp.actor)) })
        }
        16 => {
            let root = access::<event::MessageRecorded>(bytes)?;
            let parts = root.payload.parts.as_slice();
            let role = Some(plain::<Role>(&root.payload.role));
            Some(Peek { role, tokens: Some(tokens(parts)), parts, ..none(plain::<Actor>(&root.stamp.actor)) })
        }
        17 => {
            let root = access::<event::MessageContinued>(bytes)?;
            let parts = root.payload.parts.as_slice();
            Some(Peek { tokens: Some(tokens(parts)), parts, ..none(plain::<Actor>(&root.stamp.actor)) })
        }
        _ => Some(none(event::for_each_kind!(actor_of))),
    }
}

fn tokens(parts: Parts<'_>) -> u64 {
    parts
        .iter()
        .map(|part| u64::from(plain::<PartKind>(&part.kind).tokens(part.body.tokens.to_native())))
        .sum()
}

fn access<P>(bytes: &[u8]) -> Option<&ArchivedRoot<P>>
where
    P: rkyv::Archive,
    ArchivedRoot<P>:
        rkyv::Portable + for<'a> rkyv::bytecheck::CheckBytes<rkyv::api::high::HighValidator<'a, Failure>>,
    Root<P>: rkyv::Archive<Archived = ArchivedRoot<P>>,
{
    // The caller decodes bytes that it cannot borrow.
    rkyv::access::<ArchivedRoot<P>, Failure>(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::payload::encode;
    use crate::event::{Payload, samples};

    /// For every kind, the fields seen in place equal the decoded ones.
    #[test]
    fn a_peek_agrees_with_the_decoded_event() {
        for payload in samples::payloads() {
            let (version, bytes) = encode(&samples::stamp(), &payload).unwrap();
            let mut aligned: rkyv::util::AlignedVec<16> = rkyv::util::AlignedVec::new();
            aligned.extend_from_slice(&bytes);
            let seen = peek(payload.number(), version, &aligned).unwrap();
            assert_eq!(seen.actor, samples::stamp().actor);
            let sum = |parts: &[event::Part]| parts.iter().map(|part| u64::from(part.tokens())).sum::<u64>();
            match &payload {
                Payload::ToolCallStarted(started) => {
                    assert_eq!((seen.tool, seen.call), (Some(&*started.tool), Some(&*started.call)));
                    assert_eq!(seen.tokens, Some(u64::from(started.params.tokens)));
                    assert_eq!(seen.label, Some(started.label));
                    let files = started.keys.iter().filter(|key| key.kind == KeyKind::File);
                    let files: Vec<&str> = files
                        .flat_map(|key| std::iter::once(&*key.given).chain(key.resolved.as_deref()))
                        .collect();
                    assert_eq!(seen.files().collect::<Vec<_>>(), files);
                }
                Payload::ToolCallFinished(finished) => {
                    assert_eq!(
                        (seen.call, seen.tokens),
                        (Some(&*finished.call), Some(sum(&finished.output)))
                    );
                }
                Payload::MessageRecorded(message) => {
                    assert_eq!((seen.role, seen.tokens), (Some(message.role), Some(sum(&message.parts))));
                    let kinds: Vec<PartKind> = message.parts.iter().map(|part| part.kind).collect();
                    assert_eq!(seen.part_kinds().collect::<Vec<_>>(), kinds);
                }
                _ => assert_eq!((seen.tool, seen.role), (None, None)),
            }
        }
    }

    #[test]
    fn bytes_that_are_no_archive_are_left_to_decoding() {
        for (number, version, bytes) in
            [(32, 1, &b"short"[..]), (32, 2, b""), (999, 1, b""), (16, 1, &[255; 64])]
        {
            assert!(peek(number, version, bytes).is_none(), "{number} {version}");
        }
    }
}
