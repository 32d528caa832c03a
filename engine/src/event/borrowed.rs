//! The frequent kinds as the fold reads them: borrowed, from values or straight from validated archive bytes.
//!
//! ```text
//! payload bytes --validated once--> Borrowed::Archived --\
//!                                                     >-- Frequent --> fold
//! Payload of a new commit --------> Borrowed::Owned ----/
//! ```
//!
//! A call is two events, a step is a third: nearly all of a replay. The fold keeps numbers and interned names of these events,
//! so owned strings would be made only to be thrown away.

use rkyv::Archive;
use rkyv::rancor::{Failure, Infallible, ResultExt as _, Strategy};

use super::{
    ArchivedBody, Body, Key, KeyKind, MessageContinued, MessageRecorded, Outcome, Part, PartKind, Payload,
    Role, Shown, SignatureForm, TodoList, TodoRole, TodoUpdate, ToolCallFinished, ToolCallStarted, ToolClass,
    TurnKind, TurnStarted,
};
use crate::ids::Signature;

/// A value, or its archive.
pub(crate) enum Borrowed<'a, T: Archive> {
    Owned(&'a T),
    Archived(&'a T::Archived),
}

impl<T: Archive> Clone for Borrowed<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Archive> Copy for Borrowed<'_, T> {}

/// Several values, or their archives.
pub(crate) enum BorrowedList<'a, T: Archive> {
    Owned(&'a [T]),
    Archived(&'a [T::Archived]),
}

impl<T: Archive> Clone for BorrowedList<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T: Archive> Copy for BorrowedList<'_, T> {}

impl<'a, T: Archive> BorrowedList<'a, T> {
    pub(crate) fn iter(self) -> impl DoubleEndedIterator<Item = Borrowed<'a, T>> {
        let (owned, archived): (&'a [T], &'a [T::Archived]) = match self {
            Self::Owned(all) => (all, &[]),
            Self::Archived(all) => (&[], all),
        };
        owned.iter().map(Borrowed::Owned).chain(archived.iter().map(Borrowed::Archived))
    }

    pub(crate) fn len(self) -> usize {
        match self {
            Self::Owned(all) => all.len(),
            Self::Archived(all) => all.len(),
        }
    }
}

/// A small value out of its archive: numbers and plain enums, which cannot fail.
pub(crate) fn plain<T: Archive>(archived: &T::Archived) -> T
where
    T::Archived: rkyv::Deserialize<T, Strategy<(), Infallible>>,
{
    rkyv::Deserialize::deserialize(archived, Strategy::wrap(&mut ())).always_ok()
}

fn body(archived: &rkyv::option::ArchivedOption<ArchivedBody>) -> Option<Body> {
    archived.as_ref().map(plain::<Body>)
}

impl<'a> Borrowed<'a, Key> {
    pub(crate) fn kind(self) -> KeyKind {
        match self {
            Self::Owned(key) => key.kind,
            Self::Archived(key) => plain::<KeyKind>(&key.kind),
        }
    }

    pub(crate) fn class(self) -> ToolClass {
        match self {
            Self::Owned(key) => key.class,
            Self::Archived(key) => plain::<ToolClass>(&key.class),
        }
    }

    pub(crate) fn given(self) -> &'a str {
        match self {
            Self::Owned(key) => &key.given,
            Self::Archived(key) => &key.given,
        }
    }

    pub(crate) fn resolved(self) -> Option<&'a str> {
        match self {
            Self::Owned(key) => key.resolved.as_deref(),
            Self::Archived(key) => key.resolved.as_deref(),
        }
    }

    pub(crate) fn fields(self) -> impl Iterator<Item = &'a str> {
        let (owned, archived) = match self {
            Self::Owned(key) => (key.fields.as_slice(), &[][..]),
            Self::Archived(key) => (&[][..], key.fields.as_slice()),
        };
        owned.iter().map(String::as_str).chain(archived.iter().map(rkyv::string::ArchivedString::as_str))
    }
}

impl<'a> Borrowed<'a, Part> {
    pub(crate) fn kind(self) -> PartKind {
        match self {
            Self::Owned(part) => part.kind,
            Self::Archived(part) => plain::<PartKind>(&part.kind),
        }
    }

    pub(crate) fn body(self) -> Body {
        match self {
            Self::Owned(part) => part.body,
            Self::Archived(part) => plain::<Body>(&part.body),
        }
    }

    pub(crate) fn media_type(self) -> Option<&'a str> {
        match self {
            Self::Owned(part) => part.media_type.as_deref(),
            Self::Archived(part) => part.media_type.as_deref(),
        }
    }

    pub(crate) fn signature(self) -> Option<Body> {
        match self {
            Self::Owned(part) => part.signature,
            Self::Archived(part) => body(&part.signature),
        }
    }

    pub(crate) fn task(self) -> Option<&'a str> {
        match self {
            Self::Owned(part) => part.task.as_deref(),
            Self::Archived(part) => part.task.as_deref(),
        }
    }

    pub(crate) fn automata(self) -> bool {
        match self {
            Self::Owned(part) => part.automata,
            Self::Archived(part) => part.automata,
        }
    }
}

impl<T: Archive + Clone> Borrowed<'_, T>
where
    T::Archived: rkyv::Deserialize<T, rkyv::api::high::HighDeserializer<Failure>>,
{
    /// The value itself. `None` cannot happen with validated bytes.
    pub(crate) fn to_owned(self) -> Option<T> {
        match self {
            Self::Owned(value) => Some(value.clone()),
            // It was checked when it was borrowed.
            Self::Archived(archived) => rkyv::deserialize::<T, Failure>(archived).ok(),
        }
    }
}

/// The forms of a signature.
pub(crate) fn forms(
    forms: BorrowedList<'_, (SignatureForm, Signature)>,
) -> impl Iterator<Item = (SignatureForm, Signature)> {
    forms.iter().map(|form| match form {
        Borrowed::Owned(form) => *form,
        Borrowed::Archived(form) => (plain::<SignatureForm>(&form.0), Signature(form.1.0)),
    })
}

/// A call that started.
pub(crate) struct Started<'a> {
    pub(crate) call: &'a str,
    pub(crate) message: Option<&'a str>,
    pub(crate) tool: &'a str,
    pub(crate) params: Body,
    pub(crate) canonical_tokens: u32,
    pub(crate) label: u32,
    pub(crate) signature: Signature,
    pub(crate) forms: BorrowedList<'a, (SignatureForm, Signature)>,
    pub(crate) class: ToolClass,
    pub(crate) keys: BorrowedList<'a, Key>,
    pub(crate) volatile: bool,
    pub(crate) todo: TodoRole,
    pub(crate) todos: Option<Borrowed<'a, TodoList>>,
    pub(crate) shown: Shown,
    pub(crate) provider_signature: Option<Body>,
}

/// A call that ended.
pub(crate) struct Finished<'a> {
    pub(crate) call: &'a str,
    pub(crate) outcome: Outcome,
    pub(crate) output: BorrowedList<'a, Part>,
    pub(crate) details: Option<Body>,
    pub(crate) todos: Option<Borrowed<'a, TodoUpdate>>,
}

/// Parts of a message.
pub(crate) struct Said<'a> {
    pub(crate) key: &'a str,
    /// The speaker; `None`: the parts continue a known message.
    pub(crate) role: Option<Role>,
    pub(crate) hidden_from_model: bool,
    pub(crate) parts: BorrowedList<'a, Part>,
}

/// An event of a frequent kind.
pub(crate) enum Frequent<'a> {
    Started(Started<'a>),
    Finished(Finished<'a>),
    Said(Said<'a>),
    Turn { kind: TurnKind, key: &'a str, number: Option<u32> },
}

impl<'a> Frequent<'a> {
    /// The payload, if it is of a frequent kind.
    pub(crate) fn of(payload: &'a Payload) -> Option<Self> {
        Some(match payload {
            Payload::ToolCallStarted(started) => Self::Started(Started {
                call: &started.call,
                message: started.message.as_deref(),
                tool: &started.tool,
                params: started.params,
                canonical_tokens: started.canonical_tokens,
                label: started.label,
                signature: started.signature,
                forms: BorrowedList::Owned(&started.forms),
                class: started.class,
                keys: BorrowedList::Owned(&started.keys),
                volatile: started.volatile,
                todo: started.todo,
                todos: started.todos.as_ref().map(Borrowed::Owned),
                shown: started.shown,
                provider_signature: started.provider_signature,
            }),
            Payload::ToolCallFinished(finished) => Self::Finished(Finished {
                call: &finished.call,
                outcome: finished.outcome,
                output: BorrowedList::Owned(&finished.output),
                details: finished.details,
                todos: finished.todos.as_ref().map(Borrowed::Owned),
            }),
            Payload::MessageRecorded(message) => Self::Said(Said {
                key: &message.key,
                role: Some(message.role),
                hidden_from_model: message.hidden_from_model,
                parts: BorrowedList::Owned(&message.parts),
            }),
            Payload::MessageContinued(message) => Self::Said(Said {
                key: &message.key,
                role: None,
                hidden_from_model: false,
                parts: BorrowedList::Owned(&message.parts),
            }),
            Payload::TurnStarted(turn) => Self::Turn { kind: turn.kind, key: &turn.key, number: turn.number },
            _ => return None,
        })
    }
}

impl<'a> From<&'a <ToolCallStarted as Archive>::Archived> for Frequent<'a> {
    fn from(started: &'a <ToolCallStarted as Archive>::Archived) -> Self {
        Self::Started(Started {
            call: &started.call,
            message: started.message.as_deref(),
            tool: &started.tool,
            params: plain::<Body>(&started.params),
            canonical_tokens: started.canonical_tokens.to_native(),
            label: started.label.to_native(),
            signature: Signature(started.signature.0),
            forms: BorrowedList::Archived(&started.forms),
            class: plain::<ToolClass>(&started.class),
            keys: BorrowedList::Archived(&started.keys),
            volatile: started.volatile,
            todo: plain::<TodoRole>(&started.todo),
            todos: started.todos.as_ref().map(Borrowed::Archived),
            shown: plain::<Shown>(&started.shown),
            provider_signature: body(&started.provider_signature),
        })
    }
}

impl<'a> From<&'a <ToolCallFinished as Archive>::Archived> for Frequent<'a> {
    fn from(finished: &'a <ToolCallFinished as Archive>::Archived) -> Self {
        Self::Finished(Finished {
            call: &finished.call,
            outcome: plain::<Outcome>(&finished.outcome),
            output: BorrowedList::Archived(&finished.output),
            details: body(&finished.details),
            todos: finished.todos.as_ref().map(Borrowed::Archived),
        })
    }
}

impl<'a> From<&'a <MessageRecorded as Archive>::Archived> for Frequent<'a> {
    fn from(message: &'a <MessageRecorded as Archive>::Archived) -> Self {
        Self::Said(Said {
            key: &message.key,
            role: Some(plain::<Role>(&message.role)),
            hidden_from_model: message.hidden_from_model,
            parts: BorrowedList::Archived(&message.parts),
        })
    }
}

impl<'a> From<&'a <MessageContinued as Archive>::Archived> for Frequent<'a> {
    fn from(message: &'a <MessageContinued as Archive>::Archived) -> Self {
        Self::Said(Said {
            key: &message.key,
            role: None,
            hidden_from_model: false,
            parts: BorrowedList::Archived(&message.parts),
        })
    }
}

impl<'a> From<&'a <TurnStarted as Archive>::Archived> for Frequent<'a> {
    fn from(turn: &'a <TurnStarted as Archive>::Archived) -> Self {
        Self::Turn {
            kind: plain::<TurnKind>(&turn.kind),
            key: &turn.key,
            number: turn.number.as_ref().map(|number| number.to_native()),
        }
    }
}
