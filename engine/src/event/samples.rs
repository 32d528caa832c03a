//! One event of every kind, for tests that must not miss any.

#[allow(
    clippy::wildcard_imports,
    reason = "one of everything there is; in test builds the lint is silent"
)]
use super::*;
use crate::ids::{ItemId, Seq, Signature};

pub(super) fn body(first: u32, bytes: u64) -> Body {
    Body { first, chunks: 1, bytes, tokens: 3, lines: 1 }
}

pub(super) fn part(first: u32) -> Part {
    Part {
        kind: PartKind::Text,
        body: body(first, 40),
        media_type: None,
        signature: Some(body(first + 1, 8)),
        task: Some("t1".to_owned()),
        automata: true,
    }
}

pub(super) fn item() -> ItemId {
    ItemId { seq: Seq(812), part: 2 }
}

pub(super) fn hidden(summary: Option<Body>) -> Hidden {
    Hidden { item: item(), pattern: Some(Signature([6; 16])), summary }
}

#[expect(clippy::unnecessary_wraps, reason = "fields are optional")]
pub(super) fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// A free text as it stands in a payload: its row.
#[expect(clippy::unnecessary_wraps, reason = "fields are optional")]
pub(super) fn prose(row: u32) -> Option<Text> {
    let mut text = Text::default();
    text.settle(body(row, 9));
    Some(text)
}

pub(super) fn list() -> TodoList {
    let head = TodoHead {
        id: text("1"),
        content: Signature([4; 16]),
        status: "in_progress".to_owned(),
        priority: text("high"),
    };
    TodoList { body: body(1, 70), items: vec![head] }
}

pub(super) fn change() -> TodoChange {
    TodoChange {
        id: "7".to_owned(),
        status: text("completed"),
        entry: Some(body(0, 20)),
        content: Some(Signature([5; 16])),
    }
}

pub(super) fn file_key() -> Key {
    Key {
        kind: KeyKind::File,
        class: ToolClass::Read,
        given: "src/app.ts".to_owned(),
        resolved: text("/w/src/app.ts"),
        fields: vec!["a".to_owned()],
    }
}

/// One payload of every kind, in order of their numbers, each with every field set. Texts are settled, as in the log.
pub fn payloads() -> Vec<Payload> {
    let mut all = super::kind::samples();
    for payload in &mut all {
        payload.texts_mut(&mut |text| {
            if !text.is_empty() && !text.settle_plain() {
                text.settle(body(0, 9));
            }
        });
    }
    all
}

/// A stamp with every field set.
pub fn stamp() -> Stamp {
    Stamp { actor: Actor::Assistant, estimator: 1, revision: 77, wire: Some(body(9, 300)) }
}

macro_rules! by_fields {
    ($( $number:literal $name:ident $label:literal ),+) => {
        /// The fields of a payload as JSON; null for one of an unknown kind.
        pub fn fields(payload: &Payload) -> serde_json::Value {
            match payload {
                $( Payload::$name(payload) => serde_json::to_value(payload).unwrap_or_default(), )+
                Payload::Unknown { .. } => serde_json::Value::Null,
            }
        }

        /// A payload of the same kind with these fields; `None` if its type takes no such values.
        pub fn with_fields(payload: &Payload, fields: serde_json::Value) -> Option<Payload> {
            match payload {
                $( Payload::$name(_) => {
                    // Only the type knows which values it takes.
                    serde_json::from_value::<super::$name>(fields).ok().map(Into::into)
                } )+
                Payload::Unknown { .. } => None,
            }
        }
    };
}
for_each_kind!(by_fields);
