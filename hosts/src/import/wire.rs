//! Keeps a host's record byte for byte without storing its long strings twice.
//!
//! ```text
//! record   {"type":"text","text":"a long text ...","n":1.0}
//! pieces   Literal({"type":"text","text":")  Escaped(body)  Literal(","n":1.0})
//! ```
//!
//! The pieces, put together, are the record. A string becomes a reference only if escaping the body again gives exactly the
//! bytes that stood there; a string that a host escaped in its own way stays literal.

use std::borrow::Cow;
use std::collections::HashMap;

use acpdb_engine::entry::{Bytes, Entry, Fact, PartEntry, WirePiece, fact};
use memchr::memchr;

use super::json::{escape, escape_of, plain_count};
use super::values::ends_escaping;

/// Shortest string or value that is worth a reference.
pub const REFERENCE_BYTES_MIN: usize = 64;

/// Splits `raw`, one JSON value, into literal bytes and references to `bodies`.
///
/// A string token of [`REFERENCE_BYTES_MIN`] bytes or more that is a body escaped becomes [`WirePiece::Escaped`]; an
/// object or array that is a body as it stands becomes [`WirePiece::Raw`]. One pass over `raw`.
pub fn build(raw: &[u8], bodies: &[Bytes]) -> Vec<WirePiece> {
    let strings = Strings::of(bodies);
    let mut containers: Vec<&Bytes> = bodies
        .iter()
        .filter(|body| body.len() >= REFERENCE_BYTES_MIN && matches!(body.first(), Some(b'{' | b'[')))
        .collect();
    // In the order of their bytes, of equal ones the first: a body with which a text begins stands just before it, or
    // before longer ones.
    containers.sort();
    containers.dedup();
    let mut pieces = WirePieces { raw, done: 0, out: Vec::new() };
    if bodies.iter().all(|body| body.is_empty()) {
        pieces.finish();
        return pieces.out;
    }
    let mut at = 0;
    while let Some(&byte) = raw.get(at) {
        match byte {
            b'"' => {
                let end = string_end(raw, at + 1);
                let inner = raw.get(at + 1..end).unwrap_or_default();
                if inner.len() + 2 >= REFERENCE_BYTES_MIN
                    && let Some(body) = strings.find(inner)
                {
                    pieces.reference(at + 1, end, WirePiece::Escaped(Bytes::clone(body)));
                }
                at = end + 1;
            }
            b'{' | b'[' => {
                let rest = raw.get(at..).unwrap_or_default();
                let before = containers.partition_point(|body| &***body <= rest);
                let mut near = containers.get(..before).unwrap_or_default().iter().rev().take(NEAR_MAX);
                match near.find(|body| rest.starts_with(body)) {
                    Some(body) => {
                        pieces.reference(at, at + body.len(), WirePiece::Raw(Bytes::clone(body)));
                        at += body.len();
                    }
                    None => at += 1,
                }
            }
            _ => at += 1,
        }
    }
    pieces.finish();
    pieces.out
}

/// Bodies, found by their form in a string.
enum Strings<'b> {
    Few(Vec<&'b Bytes>),
    /// Bodies by their escaped form, of equal ones the first.
    Many(HashMap<Cow<'b, [u8]>, &'b Bytes>),
}

/// Most bodies that are compared where one of them may stand.
const NEAR_MAX: usize = 4;
/// Most bodies that are compared one by one.
const FEW_MAX: usize = 8;

impl<'b> Strings<'b> {
    fn of(bodies: &'b [Bytes]) -> Self {
        let filled = bodies.iter().filter(|body| !body.is_empty());
        if bodies.len() <= FEW_MAX {
            return Self::Few(filled.collect());
        }
        let mut many = HashMap::new();
        for body in filled {
            many.entry(escaped(body)).or_insert(body);
        }
        Self::Many(many)
    }

    fn find(&self, inner: &[u8]) -> Option<&'b Bytes> {
        match self {
            Self::Few(bodies) => bodies.iter().find(|body| is_escaped(inner, body)).copied(),
            Self::Many(bodies) => bodies.get(inner).copied(),
        }
    }
}

/// A body escaped the one way that [`WirePiece::Escaped`] means.
fn escaped(body: &[u8]) -> Cow<'_, [u8]> {
    if body.iter().all(|&byte| escape_of(byte).is_none()) {
        return Cow::Borrowed(body);
    }
    let mut out = Vec::with_capacity(body.len());
    escape(&mut out, body);
    Cow::Owned(out)
}

/// The bodies of these entries, to which their record's wire may refer.
pub fn bodies(entries: &[Entry]) -> Vec<Bytes> {
    let mut found = Vec::new();
    for entry in entries {
        match &entry.fact {
            Fact::MessageRecorded(fact::MessageRecorded { parts, .. })
            | Fact::MessageContinued(fact::MessageContinued { parts, .. }) => {
                add_parts(&mut found, parts);
            }
            Fact::ToolStarted(fact::ToolStarted { params, provider_signature, .. }) => {
                found.push(Bytes::clone(params));
                found.extend(provider_signature.clone());
            }
            Fact::ToolFinished(fact::ToolFinished { output, details, .. }) => {
                add_parts(&mut found, output);
                found.extend(details.clone());
            }
            Fact::HostRecorded(fact::HostRecorded { raw, .. }) => found.extend(raw.clone()),
            Fact::PromptSet(fact::PromptSet { system, tools, params, .. }) => {
                found.extend([system, tools, params].into_iter().filter_map(Clone::clone));
            }
            Fact::TodosReplaced(fact::TodosReplaced { list }) => found.push(Bytes::clone(list)),
            Fact::Injected(fact::Injected { text, .. }) => found.push(Bytes::clone(text)),
            _ => {}
        }
    }
    found
}

fn add_parts(found: &mut Vec<Bytes>, parts: &[PartEntry]) {
    for part in parts {
        found.push(Bytes::clone(&part.bytes));
        found.extend(part.signature.clone());
    }
}

/// The record that pieces without references to other records stand for.
pub fn resolve(pieces: &[WirePiece]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for piece in pieces {
        match piece {
            WirePiece::Literal(bytes) => out.extend_from_slice(bytes),
            WirePiece::Raw(body) => out.extend_from_slice(body),
            WirePiece::Escaped(body) => escape(&mut out, body),
            WirePiece::Record(_) => return None,
        }
    }
    Some(out)
}

/// Whether `inner` is `body` escaped the one way that [`WirePiece::Escaped`] means.
pub fn is_escaped(inner: &[u8], body: &[u8]) -> bool {
    if inner.len() < body.len() {
        return false;
    }
    let mut at = 0;
    let mut from = 0;
    while from < body.len() {
        let rest = body.get(from..).unwrap_or_default();
        let plain = plain_count(rest);
        if inner.get(at..at + plain) != rest.get(..plain) {
            return false;
        }
        at += plain;
        from += plain;
        if let Some(escape) = body.get(from).and_then(|&byte| escape_of(byte)) {
            let escape = escape.as_slice();
            if inner.get(at..at + escape.len()) != Some(escape) {
                return false;
            }
            at += escape.len();
            from += 1;
        }
    }
    at == inner.len()
}

/// The end of the string that begins at `at` (after its quote): the offset of its closing quote, or the end of `raw`.
fn string_end(raw: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        let rest = raw.get(at..).unwrap_or_default();
        let Some(next) = memchr(b'"', rest) else { return raw.len() };
        // Between two quotes no backslash is looked at twice.
        if !ends_escaping(rest.get(..next).unwrap_or_default()) {
            return at + next;
        }
        at = at + next + 1;
    }
}

struct WirePieces<'a> {
    raw: &'a [u8],
    done: usize,
    out: Vec<WirePiece>,
}

impl WirePieces<'_> {
    fn reference(&mut self, from: usize, to: usize, piece: WirePiece) {
        self.literal(from);
        self.out.push(piece);
        self.done = to;
    }

    fn literal(&mut self, to: usize) {
        let bytes = self.raw.get(self.done..to).unwrap_or_default();
        if !bytes.is_empty() {
            self.out.push(WirePiece::Literal(bytes.to_vec()));
        }
        self.done = to;
    }

    fn finish(&mut self) {
        self.literal(self.raw.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(pieces: &[WirePiece]) -> String {
        let shown = pieces.iter().map(|piece| match piece {
            WirePiece::Literal(bytes) => format!("literal {}", String::from_utf8_lossy(bytes)),
            WirePiece::Raw(body) => format!("raw of {}", body.len()),
            WirePiece::Escaped(body) => format!("escaped of {}", body.len()),
            WirePiece::Record(origin) => format!("record {origin}"),
        });
        shown.collect::<Vec<_>>().join("\n")
    }

    fn body(text: &str) -> Bytes {
        Bytes::from(text.as_bytes())
    }

    #[test]
    fn long_strings_and_values_become_references() {
        let text = format!("a \"quoted\" line\n{}", "x".repeat(64));
        let params = format!("{{\"p\": 1.0,\"q\":\"{}\"}}", "y".repeat(64));
        let escaped = text.replace('"', "\\\"").replace('\n', "\\n");
        let raw = format!("{{\"t\":\"{escaped}\",\"i\":{params},\"u\":\"short\"}}");
        let pieces = build(raw.as_bytes(), &[body(&text), body(&params), body("short")]);
        expect_test::expect![[r#"
            literal {"t":"
            escaped of 80
            literal ","i":
            raw of 81
            literal ,"u":"short"}"#]]
        .assert_eq(&shape(&pieces));
        assert_eq!(resolve(&pieces).unwrap(), raw.as_bytes());
    }

    #[test]
    fn other_spellings_of_a_string_stay_literal() {
        let text = format!("/é{}", "x".repeat(64));
        for raw in [text.replace('/', "\\/"), text.replace('é', "\\u00e9")] {
            let raw = format!("[\"{raw}\"]");
            assert_eq!(build(raw.as_bytes(), &[body(&text)]), [WirePiece::Literal(raw.into_bytes())]);
        }
    }

    /// Each string was compared with each body: a record of many texts took time by the square of their number.
    #[test]
    fn many_bodies_are_found_like_few() {
        let texts: Vec<Bytes> = (0..20_000).map(|at| body(&format!("{}\n{at:06}", "x".repeat(64)))).collect();
        let value = |at: usize| format!("{{\"p\":\"{}\",\"n\":{at:06}}}", "y".repeat(64));
        let values: Vec<Bytes> = (0..20_000).map(|at| body(&value(at))).collect();
        let mut raw = b"[".to_vec();
        for text in &texts {
            super::super::json::quote(&mut raw, std::str::from_utf8(text).unwrap());
            raw.push(b',');
        }
        values.iter().rev().for_each(|value| raw.extend_from_slice(value));
        let bodies: Vec<Bytes> = texts.iter().chain(&values).cloned().collect();
        let pieces = build(&raw, &bodies);
        assert_eq!(resolve(&pieces).unwrap(), raw);
        let count = |is: fn(&WirePiece) -> bool| pieces.iter().filter(|piece| is(piece)).count();
        assert_eq!(count(|piece| matches!(piece, WirePiece::Escaped(_))), 20_000);
        assert_eq!(count(|piece| matches!(piece, WirePiece::Raw(_))), 20_000);
    }

    proptest! {
        #[test]
        fn pieces_put_together_are_the_record(
            raw in prop_oneof![any::<Vec<u8>>(), "[\\[\\]{}\":,\\\\ux\n]{0,300}".prop_map(String::into_bytes)],
            bodies in prop::collection::vec("[x\"\\\\]{0,80}", 0..12),
            text in "[xy\"\\\\\n]{50,200}",
        ) {
            let mut raw = raw;
            super::super::json::quote(&mut raw, &text);
            let mut bodies: Vec<Bytes> = bodies.iter().map(|text| body(text)).collect();
            bodies.push(body(&text));
            let pieces = build(&raw, &bodies);
            prop_assert_eq!(resolve(&pieces).unwrap(), raw);
        }
    }
}
