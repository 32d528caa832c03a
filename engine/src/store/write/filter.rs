//! The filter of erased contents: what was erased from the store is not stored again.
//!
//! ```text
//! entries  -> draft -> another text in the place of an erased one, nothing of the host's record that quotes it -> place
//! commands -> decide -> refused if they say what was erased                                                   -> place
//! ```
//!
//! A commit says up to which erasure it was filtered, and the log refuses it if there is a later one: then it is drafted and filtered
//! again. Drafts are filtered, and not entries, since all that is derived from a content (signatures, keys, digests by which a fact is
//! known again) is derived from the content as it was told.

use std::borrow::Cow;

use serde_json::Value;

use crate::command::Rejection;
use crate::command::draft::{Bodies, EventDraft};
use crate::command::record::Recorder;
use crate::entry::{Bytes, Entry, StreamInfo, WirePiece};
use crate::error::Error;
use crate::event::{Body, ERASED_TEXT, wire};
use crate::ids::Seq;
use crate::secret::Withheld;
use crate::text::{Json, Unescaped, one_spelling};

use super::super::StoreInner;
use super::super::wanted::{BARE_BYTES_MIN, ESCAPE_LAYERS, in_any_spelling};

const SAYS_ERASED: &str =
    "it says what was erased from this store, which is not recorded again; say it in other words";

/// Longest list of todos.
const TODOS_BYTES_MAX: usize = 1 << 20;
/// Fields of a todo that are no texts.
const TODO_LABELS: [&str; 3] = ["id", "priority", "status"];

/// The contents that were erased up to a seq.
pub(super) struct ErasureFilter {
    erased: Withheld,
    /// Every erasure up to here is known: a condition of the commit.
    pub(super) until: Seq,
}

impl StoreInner {
    /// The filter of a commit that is about to be drafted.
    pub(super) fn erasure_filter(&self) -> Result<ErasureFilter, Error> {
        let (erased, until) = self.withheld()?;
        Ok(ErasureFilter { erased, until })
    }
}

impl ErasureFilter {
    /// Whether a content was erased, in any spelling if it is JSON.
    fn holds(&self, content: &[u8]) -> bool {
        if !self.erased.has_contents() {
            return false;
        }
        self.erased.holds(content)
            || one_spelling(content).is_some_and(|spelling| self.erased.holds(spelling.as_bytes()))
    }

    /// The text that is stored in place of a content, if that was erased.
    fn substitute(&self, content: &[u8]) -> Option<&'static [u8]> {
        self.holds(content).then(|| Withheld::placeholder(content))
    }

    /// The facts about an open stream, told again. An erased title is left out: the text stored in its place would differ from it each time.
    pub(super) fn told_again<'i>(&self, info: &'i StreamInfo) -> Cow<'i, StreamInfo> {
        match &info.title {
            Some(title) if self.holds(title.as_bytes()) => {
                Cow::Owned(StreamInfo { title: None, ..info.clone() })
            }
            _ => Cow::Borrowed(info),
        }
    }

    /// The entry, without its host's record if something of the same fact was erased, or if the record quotes what was: a record may come later than
    /// its fact, in whose place another text stands.
    pub(super) fn without_record<'e>(&self, entry: &'e Entry, recorder: &Recorder<'_>) -> Cow<'e, Entry> {
        let is_erased = || {
            let seen = recorder.seen(entry);
            seen.is_some_and(|seen| self.erased.erased_in(&[seen.seq, seen.item]))
                || self.is_said_in(&entry.wire)
        };
        if entry.wire.is_empty() || self.erased.is_empty() || !is_erased() {
            return Cow::Borrowed(entry);
        }
        Cow::Owned(Entry { wire: Vec::new(), ..entry.clone() })
    }

    /// Puts another text in the place of each erased one. Of an event with one, nothing of the host's record is kept.
    pub(super) fn replace_erased(&self, drafts: &mut [EventDraft]) {
        if self.erased.is_empty() {
            return;
        }
        for EventDraft { event, bodies: rows } in drafts {
            let mut any = false;
            event.payload.texts_mut(&mut |text| {
                if self.holds(text.as_bytes()) {
                    text.replace(ERASED_TEXT.to_owned());
                    any = true;
                }
            });
            event.payload.bodies_mut(&mut |body| any = any || self.says_erased(&content(body, rows)));
            any = any || event.stamp.wire.is_some_and(|wire| self.is_quoted(&wire, rows));
            if !any {
                continue;
            }
            event.stamp.wire = None;
            let mut kept = Bodies::default();
            event.payload.bodies_mut(&mut |body| {
                let bytes = content(body, rows);
                *body = if let Some(substitute) = self.substitute(&bytes) {
                    kept.add_uncounted(&substitute.into())
                } else if let Some(todos) = self.without_erased_todos(&bytes) {
                    kept.add_copied(todos)
                } else {
                    Body { tokens: body.tokens, lines: body.lines, ..kept.add_uncounted(&bytes) }
                };
            });
            *rows = kept.into_rows();
        }
    }

    /// Whether a content was erased, or is a list of todos with a text that was.
    fn says_erased(&self, content: &[u8]) -> bool {
        self.holds(content) || self.without_erased_todos(content).is_some()
    }

    /// Todos with another text in the place of each that was erased; `None`: none of them was. Todos are shown again with each new list.
    fn without_erased_todos(&self, content: &[u8]) -> Option<String> {
        let may_be_todos = content.len() <= TODOS_BYTES_MAX
            && matches!(content.trim_ascii_start().first(), Some(b'{' | b'['))
            && memchr::memmem::find(content, b"\"status\"").is_some();
        if !self.erased.has_contents() || !may_be_todos {
            return None;
        }
        // A text that is no JSON holds no todos.
        let mut todos = serde_json::from_slice(content).ok()?;
        self.replace_in_todos(&mut todos).then(|| todos.to_string())
    }

    /// Whether a text of a todo was replaced. A todo is an object with a status.
    fn replace_in_todos(&self, value: &mut Value) -> bool {
        let mut any = false;
        match value {
            Value::Array(all) => {
                for one in all {
                    any |= self.replace_in_todos(one);
                }
            }
            Value::Object(fields) => {
                let is_todo = fields.get("status").is_some_and(Value::is_string);
                for (name, field) in fields.iter_mut() {
                    let is_text = is_todo && !TODO_LABELS.contains(&name.as_str());
                    let text = field.as_str().filter(|_| is_text);
                    if let Some(substitute) = text.and_then(|text| self.substitute(text.as_bytes())) {
                        *field = String::from_utf8_lossy(substitute).into();
                        any = true;
                    } else {
                        any |= self.replace_in_todos(field);
                    }
                }
            }
            _ => {}
        }
        any
    }

    /// Whether a host's record has an erased content among its texts.
    fn is_said_in(&self, record: &[WirePiece]) -> bool {
        if !self.erased.has_contents() {
            return false;
        }
        let mut literal = Vec::new();
        for piece in record {
            match piece {
                WirePiece::Literal(bytes) => literal.extend_from_slice(bytes),
                WirePiece::Raw(bytes) | WirePiece::Escaped(bytes) if self.holds(bytes) => return true,
                WirePiece::Raw(_) | WirePiece::Escaped(_) | WirePiece::Record(_) => {}
            }
        }
        // With bodies taken out of it, it is no JSON.
        if let Ok(record) = Json::parse(&literal) {
            return self.is_in_json(&record, ESCAPE_LAYERS);
        }
        // The quotation marks of inner layers are bare only once the outer escapes are off.
        in_any_spelling(&literal, |bytes| {
            strings(bytes).any(|text| text.len() >= BARE_BYTES_MIN && self.holds(&text))
        })
    }

    /// Whether a value of a record, or one inside of it, was erased. JSON may stand as a text in JSON, in so many layers.
    fn is_in_json(&self, value: &Json, layers: usize) -> bool {
        match value {
            Json::Str(text) => {
                let text = text.to_lossy();
                let is_long = text.len() >= BARE_BYTES_MIN;
                is_long && self.holds(text.as_bytes())
                    || layers > 0
                        && text.starts_with(['{', '['])
                        && Json::parse(text.as_bytes()).is_ok_and(|inner| self.is_in_json(&inner, layers - 1))
            }
            Json::Arr(all) => {
                self.is_erased_json(value) || all.iter().any(|one| self.is_in_json(one, layers))
            }
            Json::Obj(fields) => {
                self.is_erased_json(value) || fields.iter().any(|(_, field)| self.is_in_json(field, layers))
            }
            Json::Null | Json::Bool(_) | Json::Num(_) | Json::Written(..) => false,
        }
    }

    fn is_erased_json(&self, value: &Json) -> bool {
        let spelling = value.canonical();
        spelling.len() >= BARE_BYTES_MIN && self.erased.holds(spelling.as_bytes())
    }

    /// Whether a record holds an erased content, or is one.
    fn is_quoted(&self, template: &Body, rows: &[Bytes]) -> bool {
        let template = content(template, rows);
        let Ok(pieces) = wire::pieces(&template) else { return false };
        let is_erased = |piece: wire::TemplatePiece<'_>| match piece {
            wire::TemplatePiece::Body { first, rows: chunks, .. } => {
                self.holds(&content(&Body { first, chunks, ..Body::default() }, rows))
            }
            wire::TemplatePiece::Literal(_) | wire::TemplatePiece::Record(_) => false,
        };
        self.holds(&template) || pieces.into_iter().any(is_erased)
    }

    /// Refuses a command's decision that says what was erased.
    ///
    /// # Errors
    /// [`Error::Rejected`].
    pub(super) fn refuse_erased(&self, drafts: &[EventDraft]) -> Result<(), Error> {
        if self.erased.is_empty() || !drafts.iter().any(|draft| self.is_in(draft)) {
            return Ok(());
        }
        Err(Rejection::Malformed(SAYS_ERASED.to_owned()).into())
    }

    fn is_in(&self, draft: &EventDraft) -> bool {
        let mut says = draft.bodies.iter().any(|body| self.says_erased(body));
        if !says && draft.event.payload.may_have_texts() {
            draft.event.payload.clone().texts_mut(&mut |text| says |= self.holds(text.as_bytes()));
        }
        says
    }
}

/// The texts between quotation marks, without one layer of escapes.
fn strings(json: &[u8]) -> impl Iterator<Item = Cow<'_, [u8]>> {
    let mut rest = json;
    std::iter::from_fn(move || {
        let begin = memchr::memchr(b'"', rest)?.saturating_add(1);
        let mut end = begin;
        loop {
            end = end.saturating_add(memchr::memchr2(b'"', b'\\', rest.get(end..)?)?);
            if rest.get(end) == Some(&b'"') {
                break;
            }
            end = end.saturating_add(2);
        }
        let text = rest.get(begin..end)?;
        rest = rest.get(end.saturating_add(1)..).unwrap_or_default();
        Some(Unescaped::of(text).map_or(Cow::Borrowed(text), |plain| Cow::Owned(plain.bytes)))
    })
}

/// The bytes of a body, of the rows of its event.
fn content(body: &Body, rows: &[Bytes]) -> Bytes {
    let end = body.first.saturating_add(body.chunks) as usize;
    match rows.get(body.first as usize..end).unwrap_or_default() {
        [row] => row.clone(),
        rows => rows.iter().flat_map(|row| row.iter().copied()).collect::<Vec<u8>>().into(),
    }
}
