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

use crate::command::Rejection;
use crate::command::draft::{Bodies, EventDraft};
use crate::command::record::Recorder;
use crate::entry::{Bytes, Entry, StreamInfo};
use crate::error::Error;
use crate::event::{Body, ERASED_TEXT, wire};
use crate::ids::Seq;
use crate::secret::Withheld;

use super::super::StoreInner;

const SAYS_ERASED: &str =
    "it says what was erased from this store, which is not recorded again; say it in other words";

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
    /// The facts about an open stream, told again. An erased title is left out: the text stored in its place would differ from it each time.
    pub(super) fn told_again<'i>(&self, info: &'i StreamInfo) -> Cow<'i, StreamInfo> {
        match &info.title {
            Some(title) if self.erased.holds(title.as_bytes()) => {
                Cow::Owned(StreamInfo { title: None, ..info.clone() })
            }
            _ => Cow::Borrowed(info),
        }
    }

    /// The entry, without its host's record if something of the same fact was erased: a record quotes its fact.
    pub(super) fn without_record<'e>(&self, entry: &'e Entry, recorder: &Recorder<'_>) -> Cow<'e, Entry> {
        let is_erased = || {
            let seen = recorder.seen(entry);
            seen.is_some_and(|seen| self.erased.erased_in(&[seen.seq, seen.item]))
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
                if self.erased.holds(text.as_bytes()) {
                    text.replace(ERASED_TEXT.to_owned());
                    any = true;
                }
            });
            event.payload.bodies_mut(&mut |body| any |= self.erased.holds(&content(body, rows)));
            any |= event.stamp.wire.is_some_and(|wire| self.is_quoted(&wire, rows));
            if !any {
                continue;
            }
            event.stamp.wire = None;
            let mut kept = Bodies::default();
            event.payload.bodies_mut(&mut |body| {
                let bytes = content(body, rows);
                *body = match self.erased.substitute(&bytes) {
                    Some(substitute) => kept.add_uncounted(&substitute.into()),
                    None => Body { tokens: body.tokens, lines: body.lines, ..kept.add_uncounted(&bytes) },
                };
            });
            *rows = kept.into_rows();
        }
    }

    /// Whether a record holds an erased content, or is one.
    fn is_quoted(&self, template: &Body, rows: &[Bytes]) -> bool {
        let template = content(template, rows);
        let Ok(pieces) = wire::pieces(&template) else { return false };
        let is_erased = |piece: wire::TemplatePiece<'_>| match piece {
            wire::TemplatePiece::Body { first, rows: chunks, .. } => {
                self.erased.holds(&content(&Body { first, chunks, ..Body::default() }, rows))
            }
            wire::TemplatePiece::Literal(_) | wire::TemplatePiece::Record(_) => false,
        };
        self.erased.holds(&template) || pieces.into_iter().any(is_erased)
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
        let mut says = draft.bodies.iter().any(|body| self.erased.holds(body));
        if !says && draft.event.payload.may_have_texts() {
            draft.event.payload.clone().texts_mut(&mut |text| says |= self.erased.holds(text.as_bytes()));
        }
        says
    }
}

/// The bytes of a body, of the rows of its event.
fn content(body: &Body, rows: &[Bytes]) -> Bytes {
    let end = body.first.saturating_add(body.chunks) as usize;
    match rows.get(body.first as usize..end).unwrap_or_default() {
        [row] => row.clone(),
        rows => rows.iter().flat_map(|row| row.iter().copied()).collect::<Vec<u8>>().into(),
    }
}
