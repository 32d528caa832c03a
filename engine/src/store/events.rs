//! Events and bodies out of the log: decoded, checked, in order.

use crate::codec::payload::{self, Decoder};
use crate::codec::{BodyRow, EventRef, Frame};
use crate::error::Error;
use crate::event::{Body, DAMAGED_TEXT, ERASED_TEXT, Payload, Recorded, wire};
use crate::ids::{BodyId, Origin, Position, Seq};
use crate::log::{self, LogError};
use crate::text::lossy;

use super::StoreInner;
use super::fetch::unreadable;

fn no_row(seq: Seq, row: u32) -> Error {
    Error::damaged_event(seq, format!("event {seq} names body row {row}, which it does not have"))
}

/// Deepest nesting of wire forms: a document names records, and nothing names documents.
const WIRE_DEPTH_MAX: usize = 4;

impl StoreInner {
    /// Decodes one event of a frame, its free texts read from their bodies. A text that was erased or is damaged is replaced
    /// by a word that says so; the rest of its event is as it was. An event whose payload is malformed is one of an unknown kind, and is
    /// noted as damage.
    pub(super) fn decode(&self, frame: &Frame, event: &EventRef<'_>) -> Result<Recorded, Error> {
        let mut recorded = payload::recorded(frame, event).unwrap_or_else(|error| {
            self.note_damage(unreadable(event.seq, &error).to_string());
            payload::unread(frame, event)
        });
        self.complete(frame, event, &mut recorded)?;
        Ok(recorded)
    }

    /// As [`StoreInner::decode`], for a caller that reads many events and keeps none.
    pub(super) fn decode_with<'d>(
        &self,
        decoder: &'d mut Decoder,
        frame: &Frame,
        event: &EventRef<'_>,
    ) -> Result<&'d Recorded, Error> {
        let (recorded, read) = decoder.recorded(frame, event);
        if let Err(error) = read {
            self.note_damage(unreadable(event.seq, &error).to_string());
        }
        self.complete(frame, event, recorded)?;
        Ok(recorded)
    }

    /// Opens the label of a call, and reads the free texts of an event.
    fn complete(&self, frame: &Frame, event: &EventRef<'_>, recorded: &mut Recorded) -> Result<(), Error> {
        let payload = &mut recorded.event.payload;
        if let Payload::ToolCallStarted(started) = payload {
            started.label = self.log.secret().open_label(started.label);
        }
        let mut failed = None;
        if payload.may_have_texts() {
            payload.texts_mut(&mut |text| {
                if text.fill_plain() {
                    return;
                }
                match self.body_in(frame, text.body().id(event.seq)) {
                    Ok(bytes) => text.fill(lossy(bytes)),
                    Err(Error::Erased { lost, .. }) => {
                        text.fill(if lost { DAMAGED_TEXT } else { ERASED_TEXT }.to_owned());
                    }
                    Err(Error::Corrupt { detail, .. }) => {
                        self.note_damage(detail);
                        text.fill(DAMAGED_TEXT.to_owned());
                    }
                    Err(error) => failed = Some(error),
                }
            });
        }
        failed.map_or(Ok(()), Err)
    }

    /// The event at `seq`.
    pub(super) fn event(&self, seq: Seq) -> Result<Option<Recorded>, Error> {
        let Some(frame) = self.frame_of(seq)? else { return Ok(None) };
        frame.event(seq).map(|event| self.decode(&frame, &event)).transpose()
    }

    /// The bytes of a body, each row checked against its digest.
    pub(super) fn body(&self, id: BodyId) -> Result<Vec<u8>, Error> {
        if id.chunks == 0 {
            return Ok(Vec::new());
        }
        let frame = self.frame_of(id.seq).and_then(|frame| frame.ok_or_else(|| no_row(id.seq, id.first)));
        self.body_in(&self.noted(frame)?, id)
    }

    /// The bytes of a body of an event in `frame`, each row checked against its digest.
    pub(super) fn body_in(&self, frame: &Frame, id: BodyId) -> Result<Vec<u8>, Error> {
        self.noted(self.read_body(frame, id))
    }

    fn read_body(&self, frame: &Frame, id: BodyId) -> Result<Vec<u8>, Error> {
        let event = frame.event(id.seq).ok_or_else(|| no_row(id.seq, id.first))?;
        let mut bytes = Vec::new();
        for row in id.first..id.first.saturating_add(id.chunks) {
            let place = event.row(row as usize).ok_or_else(|| no_row(id.seq, row))?;
            let chunk = self.row_or_why((id.seq, row), &place, self.log.body_of(frame, &place))?;
            if bytes.is_empty() {
                bytes = chunk;
            } else {
                bytes.extend_from_slice(&chunk);
            }
        }
        Ok(bytes)
    }

    /// The bytes of a row that was read, or the reason why there are none.
    fn row_or_why(
        &self,
        (seq, row): (Seq, u32),
        place: &BodyRow,
        read: Result<Vec<u8>, LogError>,
    ) -> Result<Vec<u8>, Error> {
        let read = match read {
            Err(LogError::Corrupt(_)) => {
                // Half of it may be zeros, by an erasure that this handle does not know yet.
                self.withhold_pending()?;
                self.log.body(place)
            }
            read => read,
        };
        match read {
            Err(LogError::Erased { place }) => Err(self.erased(seq, row, place)),
            read => Ok(read?),
        }
    }

    /// The bytes of many bodies, in the order of `ids`, each as from [`StoreInner::body`]: read where they lie beside each other,
    /// and checked on two threads where there is much to check.
    pub(super) fn bodies(&self, ids: &[BodyId]) -> Vec<Result<Vec<u8>, Error>> {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        let seq = |at: usize| ids.get(at).map_or(Seq::ZERO, |id| id.seq);
        order.sort_unstable_by_key(|at| seq(*at));
        let (mut places, mut ranges) = (Vec::with_capacity(ids.len()), Vec::new());
        ranges.resize_with(ids.len(), || Ok(0..0));
        let mut frames = Holding::default();
        for at in &order {
            let Some(id) = ids.get(*at).filter(|id| id.chunks > 0) else { continue };
            let start = places.len();
            let found = frames.find(self, id.seq).and_then(|frame| {
                let event = frame.event(id.seq).ok_or_else(|| no_row(id.seq, id.first))?;
                for row in id.first..id.first.saturating_add(id.chunks) {
                    let place = event.row(row as usize).ok_or_else(|| no_row(id.seq, row))?;
                    places.push((Some(frame.clone()), place));
                }
                Ok(start..places.len())
            });
            if let Some(range) = ranges.get_mut(*at) {
                *range = found;
            }
        }
        let mut read: Vec<_> = self.log.bodies_of(&places).into_iter().map(Some).collect();
        let joined = ids.iter().zip(ranges).map(|(id, range)| {
            let mut bytes = Vec::new();
            let rows = id.first..id.first.saturating_add(id.chunks);
            for (row, at) in rows.zip(range?) {
                let chunk = read.get_mut(at).and_then(Option::take);
                let (chunk, (_, place)) = chunk.zip(places.get(at)).ok_or_else(|| no_row(id.seq, row))?;
                let chunk = self.row_or_why((id.seq, row), place, chunk)?;
                if bytes.is_empty() {
                    bytes = chunk;
                } else {
                    bytes.extend_from_slice(&chunk);
                }
            }
            Ok(bytes)
        });
        joined.map(|body| self.noted(body)).collect()
    }

    /// A host's own record, byte for byte, from its wire form. `newest` finds the wire form of an origin.
    pub(super) fn wire(
        &self,
        seq: Seq,
        template: Body,
        newest: &dyn Fn(Origin) -> Option<(Seq, Body)>,
    ) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        self.wire_into(seq, template, newest, WIRE_DEPTH_MAX, &mut out)?;
        Ok(out)
    }

    fn wire_into(
        &self,
        seq: Seq,
        template: Body,
        newest: &dyn Fn(Origin) -> Option<(Seq, Body)>,
        depth: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let damaged =
            |detail: String| Error::damaged_event(seq, format!("the wire form of event {seq} {detail}"));
        let depth = depth.checked_sub(1).ok_or_else(|| damaged("is nested too deeply".to_owned()))?;
        let bytes = self.body(template.id(seq))?;
        for piece in wire::pieces(&bytes).map_err(|error| damaged(format!("cannot be read: {error}")))? {
            match piece {
                wire::TemplatePiece::Literal(literal) => out.extend_from_slice(literal),
                wire::TemplatePiece::Body { first, rows, escaped } => {
                    let body = self.body(BodyId { seq, first, chunks: rows })?;
                    if escaped {
                        wire::escape_into(&body, out);
                    } else {
                        out.extend_from_slice(&body);
                    }
                }
                wire::TemplatePiece::Record(origin) => {
                    let (seq, template) = newest(origin)
                        .ok_or_else(|| damaged(format!("names a record {origin} that is not there")))?;
                    self.wire_into(seq, template, newest, depth, out)?;
                }
            }
        }
        Ok(())
    }
}

/// A frame up to so many events behind the last one is read on the way: cheaper than a search.
const NEAR_COUNT: u64 = 8;

/// The frame that was found last, for a caller that asks in order.
#[derive(Default)]
struct Holding<'a> {
    frame: Option<Frame>,
    /// Where that frame ends, its last seq, and the frames behind it.
    end: Option<(Position, Seq)>,
    behind: Option<log::Frames<'a>>,
}

impl<'a> Holding<'a> {
    /// The frame that holds `seq`, if it is one of those right behind the last one.
    fn near(&mut self, inner: &'a StoreInner, seq: Seq) -> Option<Frame> {
        let (end, last) = self.end?;
        if !(last.0..=last.0.saturating_add(NEAR_COUNT)).contains(&seq.0) {
            self.behind = None;
            return None;
        }
        let behind = self.behind.get_or_insert_with(|| inner.log.frames(end, inner.log.head()));
        // Stops at a damaged frame: the search for its seq reports it.
        let found = behind.map_while(Result::ok).find(|frame| frame.last_seq() >= seq);
        found.filter(|frame| frame.first_seq() <= seq)
    }

    /// The frame that holds `seq`.
    fn find(&mut self, inner: &'a StoreInner, seq: Seq) -> Result<&Frame, Error> {
        let holds = |frame: &Frame| (frame.first_seq()..=frame.last_seq()).contains(&seq);
        if !self.frame.as_ref().is_some_and(holds) {
            let held = inner.cache().holding(seq);
            if held.is_some() {
                self.behind = None;
            }
            let found = held.or_else(|| self.near(inner, seq));
            if found.is_some() {
                self.frame = found;
            } else {
                self.behind = None;
                self.frame = inner.frame_of(seq)?;
            }
            self.end = self.frame.as_ref().map(|frame| (frame.header().end(), frame.last_seq()));
        }
        self.frame.as_ref().ok_or_else(|| no_row(seq, 0))
    }
}
