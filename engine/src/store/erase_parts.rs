//! Erasing less than an item: some bodies, or a stretch of a text.
//!
//! ```text
//! bodies   rows of events, as a scan found them     -> erased, with all equal ones
//! release  rows of events that are not needed more  -> erased, but for those whose stored bytes others share
//! span     text of an item -> ItemRevised: the text with a mark in the place of the stretch, and, in the same commit,
//!                             Erased: its old body, and each other row of the item that holds the stretch, but its parameters
//! ```
//!
//! A body is erased as a whole, for its digest is that of the whole: the rest of a text is stored anew.

use std::collections::BTreeSet;
use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::codec::BodyRow;
use crate::command::Rejection;
use crate::command::draft::{Bodies, EventDraft};
use crate::error::Error;
use crate::event::{Actor, BodyAddress, Face, ItemRevised, Part};
use crate::fold::PartView;
use crate::ids::{BodyId, ItemId, Seq, StreamId};
use crate::log::LogError;

use super::erase::RecordWith;
use super::wanted::ErasureTargets;
use super::write::CommandDrafts;
use super::{At, EraseReport, Store, StoreInner, View};

/// Stretches of an item's text.
#[derive(Debug, Clone)]
pub struct Stretches {
    /// The stream that the item is in.
    pub stream: StreamId,
    /// The item.
    pub item: ItemId,
    /// The stretches, in bytes.
    pub spans: Vec<Range<usize>>,
}

/// A text with marks in the place of stretches.
struct Marked {
    stream: StreamId,
    item: ItemId,
    /// The part that had the text.
    seen: PartView,
    rest: String,
    /// The stretches.
    gone: Vec<String>,
}

/// Takes a row by its event and its place there, with its content.
type TakeBodyRow<'a> = dyn FnMut((Seq, u32), &BodyRow, Option<Vec<u8>>) + 'a;

impl Store {
    /// Gives back the stored bytes of these bodies. Unlike [`Store::erase_spans`], this keeps no secret: a body whose stored bytes an event
    /// beside these shares stays whole, and equal content may be stored again.
    ///
    /// # Errors
    /// As [`Store::erase`].
    #[doc(hidden)]
    pub fn release_bodies(
        &self,
        bodies: &[BodyAddress],
        by: &str,
        reason: &str,
    ) -> Result<EraseReport, Error> {
        self.erase_wanted(first_of(bodies), (by, reason), &|inner| inner.wanted_alone(bodies), None)
    }

    /// Erases the bytes `span` of an item's text for good. The rest is stored anew, with a mark in place of the bytes, and views
    /// show that text from then on. The old text is erased, and so are earlier texts of the item, its details and the host's record of
    /// it where they have the same bytes, with all equal ones and the hosts' records that quote them. Parameters of a call stay: they
    /// are no copy of its result.
    ///
    /// # Errors
    /// [`Error::Rejected`] if the item has no text of one piece, or the span is not within it, cuts a character, or was erased before;
    /// [`Error::HeadMoved`] if the text was revised meanwhile, so that the span may be of other bytes; else as [`Store::erase`].
    #[doc(hidden)]
    pub fn erase_span(
        &self,
        stream: StreamId,
        item: ItemId,
        span: &Range<usize>,
        by: &str,
        reason: &str,
    ) -> Result<EraseReport, Error> {
        let stretches = Stretches { stream, item, spans: vec![span.clone()] };
        self.erase_spans(&[stretches], &[], by, reason)
    }

    /// Erases stretches of several texts as [`Store::erase_span`], and rows as [`Store::erase_bodies`], all at once: a text that equals another one
    /// of them keeps its rest, too. The spans of a text rise and do not overlap.
    ///
    /// # Errors
    /// As [`Store::erase_span`].
    #[doc(hidden)]
    pub fn erase_spans(
        &self,
        texts: &[Stretches],
        bodies: &[BodyAddress],
        by: &str,
        reason: &str,
    ) -> Result<EraseReport, Error> {
        let marked = self.marked(texts)?;
        let wanted = |_: &StoreInner| self.wanted_of_spans(&marked, bodies);
        let streams: BTreeSet<StreamId> = texts.iter().map(|text| text.stream).collect();
        let streams: Vec<StreamId> = streams.into_iter().collect();
        // The marks and the erasure are one commit: a mark alone, as a crash between two commits left it, says that bytes are gone which
        // are still there.
        let record = |erasure: &[EventDraft]| {
            let ((), written) = self.inner.decided(&[], &streams, &mut |_| {
                let mut recordings = Vec::with_capacity(marked.len().saturating_add(1));
                for Marked { stream, item, seen, rest, .. } in &marked {
                    let part = self.unrevised_part_of(*stream, *item, seen)?;
                    let mut bodies = Bodies::default();
                    let body = bodies.add_copied(rest);
                    let part = Part { kind: part.kind, body, media_type: part.media_type, ..Part::default() };
                    let revised = ItemRevised { item: *item, face: Face::Output, parts: vec![part] };
                    let drafts = vec![EventDraft::of(revised, bodies)];
                    recordings.push(CommandDrafts { stream: *stream, actor: Actor::User, drafts });
                }
                let drafts = erasure.to_vec();
                recordings.push(CommandDrafts { stream: StreamId::STORE, actor: Actor::User, drafts });
                Ok((recordings, ()))
            })?;
            Ok(written.map(|written| Seq(written.first_seq.get().saturating_add(marked.len() as u64))))
        };
        let record: Option<RecordWith<'_>> = if marked.is_empty() { None } else { Some(&record) };
        self.erase_wanted(first_item(&marked, bodies), (by, reason), &wanted, record)
    }

    /// The texts, with marks in place of their stretches.
    fn marked(&self, texts: &[Stretches]) -> Result<Vec<Marked>, Error> {
        let mut marked = Vec::with_capacity(texts.len());
        for Stretches { stream, item, spans } in texts {
            let (mut seen, mut rest, mut gone, mut end) = (None, String::new(), Vec::new(), 0);
            for span in spans {
                let (part, text) = self.text_of(*stream, *item, span)?;
                let before =
                    text.get(end..span.start).ok_or_else(|| refused(*item, "has spans that overlap"))?;
                rest.push_str(before);
                rest.push_str(&format!("[{} bytes erased]", span.len()));
                gone.push(text.get(span.clone()).unwrap_or_default().to_owned());
                end = span.end;
                seen = Some((part, text));
            }
            let Some((part, text)) = seen else { continue };
            rest.push_str(text.get(end..).unwrap_or_default());
            if rest == text {
                return Err(refused(*item, "has such a mark there already"));
            }
            marked.push(Marked { stream: *stream, item: *item, seen: part, rest, gone });
        }
        Ok(marked)
    }

    /// The content that [`Store::erase_spans`] would hit now. Changes nothing.
    ///
    /// # Errors
    /// As [`Store::erase_spans`] and [`Store::erase_preview`].
    #[doc(hidden)]
    pub fn erase_spans_preview(
        &self,
        texts: &[Stretches],
        bodies: &[BodyAddress],
    ) -> Result<EraseReport, Error> {
        let marked = self.marked(texts)?;
        self.preview_wanted(first_item(&marked, bodies), self.wanted_of_spans(&marked, bodies)?)
    }

    /// The content that [`Store::erase_span`] would hit now. Changes nothing.
    ///
    /// # Errors
    /// As [`Store::erase_span`] and [`Store::erase_preview`].
    #[doc(hidden)]
    pub fn erase_span_preview(
        &self,
        stream: StreamId,
        item: ItemId,
        span: &Range<usize>,
    ) -> Result<EraseReport, Error> {
        self.erase_spans_preview(&[Stretches { stream, item, spans: vec![span.clone()] }], &[])
    }

    /// The rows that go with stretches of texts, and other rows.
    fn wanted_of_spans(&self, marked: &[Marked], bodies: &[BodyAddress]) -> Result<ErasureTargets, Error> {
        // A row with several stretches is one.
        let mut rows: BTreeSet<BodyAddress> = bodies.iter().copied().collect();
        for Marked { stream, item, seen, gone, .. } in marked {
            self.unrevised_part_of(*stream, *item, seen)?;
            rows.extend(self.earlier_texts(*stream, *item, gone)?);
            rows.extend(self.inner.rows_with(*item, gone)?);
            rows.extend(addresses(seen.body));
        }
        let mut wanted = self.inner.wanted_rows(&rows.into_iter().collect::<Vec<_>>())?;
        for gone in marked.iter().flat_map(|text| &text.gone) {
            wanted.add_stretch(gone.as_bytes());
        }
        Ok(wanted)
    }

    /// The only part of an item's content, if it is still the one that was seen: else the span may be of other bytes.
    fn unrevised_part_of(&self, stream: StreamId, item: ItemId, seen: &PartView) -> Result<PartView, Error> {
        let part = self.part_of(stream, item)?;
        if part.body == seen.body {
            return Ok(part);
        }
        let (expected, actual) = (seen.body.seq, part.body.seq);
        Err(Error::HeadMoved { stream, expected, actual })
    }

    /// The texts with one of these stretches that an item had before it was revised.
    fn earlier_texts(
        &self,
        stream: StreamId,
        item: ItemId,
        gone: &[String],
    ) -> Result<Vec<BodyAddress>, Error> {
        let revisions = self.inner.revisions_of(stream, item)?;
        let view = View::new(self, stream, &At::Head)?;
        let bodies: Vec<BodyId> = {
            let state = view.state();
            // An item that is not there has no texts.
            let parts = state.find(item).into_iter().flat_map(|ix| {
                revisions.iter().flat_map(move |revision| state.content(ix, revision.before()))
            });
            parts.map(|part| part.body).collect()
        };
        let holds_one =
            |text: &[u8]| gone.iter().any(|it| memchr::memmem::find(text, it.as_bytes()).is_some());
        let mut rows = Vec::new();
        for body in bodies {
            match self.inner.body(body) {
                Ok(text) if holds_one(&text) => {
                    rows.extend(addresses(body));
                }
                Ok(_) | Err(Error::Erased { .. }) => {}
                // A text that cannot be read may have them.
                Err(Error::Corrupt { .. }) => rows.extend(addresses(body)),
                Err(error) => return Err(error),
            }
        }
        Ok(rows)
    }

    /// The only part of an item's content.
    fn part_of(&self, stream: StreamId, item: ItemId) -> Result<PartView, Error> {
        let view = View::new(self, stream, &At::Head)?;
        let mut parts = {
            let state = view.state();
            // An item that is not there has no parts; the error below says so.
            state.find(item).map(|ix| state.content(ix, view.at())).unwrap_or_default()
        };
        parts
            .pop()
            .filter(|_| parts.is_empty())
            .ok_or_else(|| refused(item, "has no text of one piece; erase it whole, or its parts one by one"))
    }

    /// The only part of an item's content, and its text.
    fn text_of(
        &self,
        stream: StreamId,
        item: ItemId,
        span: &Range<usize>,
    ) -> Result<(PartView, String), Error> {
        let part = self.part_of(stream, item)?;
        let text = String::from_utf8(self.inner.body(part.body)?).map_err(|_| refused(item, "is no text"))?;
        if span.is_empty() || text.get(span.clone()).is_none() {
            let why = format!(
                "has {} bytes; the span {}..{} is not within it, is empty, or cuts a character",
                text.len(),
                span.start,
                span.end
            );
            return Err(refused(item, &why));
        }
        Ok((part, text))
    }
}

fn refused(item: ItemId, why: &str) -> Error {
    Rejection::Malformed(format!("{item} {why}")).into()
}

impl StoreInner {
    /// These rows, with their contents.
    fn wanted_rows(&self, bodies: &[BodyAddress]) -> Result<ErasureTargets, Error> {
        let mut wanted = ErasureTargets::default();
        self.each_row_of(bodies, &mut |key, row, body| wanted.add(key, row, body))?;
        Ok(wanted)
    }

    /// Those of these rows whose stored bytes no other row shares; equal content elsewhere is not looked for. Only rows of one frame share bytes.
    fn wanted_alone(&self, bodies: &[BodyAddress]) -> Result<ErasureTargets, Error> {
        let asked: FxHashSet<(Seq, u32)> = bodies.iter().map(|body| (body.seq, body.row)).collect();
        let mut rows = Vec::new();
        self.each_row_of(bodies, &mut |key, row, _| rows.push((key, *row)))?;
        let mut wanted = ErasureTargets::default();
        for (key, row) in rows {
            let Some(frame) = self.frame_of(key.0)? else { continue };
            let is_shared = frame.events().any(|event| {
                let mut rows = (0_u32..).zip(event.rows());
                rows.any(|(index, other)| other.place == row.place && !asked.contains(&(event.seq, index)))
            });
            if !is_shared {
                wanted.add(key, &row, None);
            }
        }
        Ok(wanted)
    }

    /// Each of these rows that is there and not erased, with its content; a damaged one has none.
    fn each_row_of(&self, bodies: &[BodyAddress], take: &mut TakeBodyRow<'_>) -> Result<(), Error> {
        self.refresh()?;
        for address in bodies {
            let Some(frame) = self.frame_of(address.seq)? else { continue };
            let Some(row) = frame.event(address.seq).and_then(|event| event.row(address.row as usize)) else {
                continue;
            };
            let key = (address.seq, address.row);
            match self.log.body(&row) {
                Ok(body) => take(key, &row, Some(body)),
                Err(LogError::Erased { .. }) => {}
                Err(LogError::Corrupt(_)) => take(key, &row, None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The first item that an erasure of stretches and rows is of.
fn first_item(marked: &[Marked], bodies: &[BodyAddress]) -> ItemId {
    marked.first().map_or_else(|| first_of(bodies), |text| ItemId::first(text.seen.body.seq))
}

fn first_of(bodies: &[BodyAddress]) -> ItemId {
    ItemId::first(bodies.first().map_or(Seq(1), |body| body.seq))
}

fn addresses(body: BodyId) -> Vec<BodyAddress> {
    let rows = body.first..body.first.saturating_add(body.chunks);
    rows.map(|row| BodyAddress { seq: body.seq, row }).collect()
}
