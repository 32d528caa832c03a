//! The events of a frame that their keys open, for a copy: events whose key is not at hand, or does not open them, are left out.
//!
//! ```text
//! key at hand, or never sealed   kept, in plain
//! key destroyed                  kept: the envelope is known, and the payload is never read again
//! key missing, or another one    left out, as if the event were damaged
//! ```

use std::collections::BTreeSet;

use super::{EventRef, Frame};
use crate::codec::fields::align16;
use crate::codec::held::{Sight, Span, Spans};
use crate::codec::{BODY_ROW_BYTES, ENVELOPE_BYTES, Envelope, SEALING_BYTES};
use crate::ids::StreamId;

/// An event as it lies sealed in its frame.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SealedForm {
    /// The event's envelope as it was recorded.
    pub(crate) envelope: Envelope,
    /// The number of the key that seals it.
    pub(crate) key: u32,
    /// Length of the event's payload in plain.
    pub(crate) payload_bytes: usize,
}

impl EventRef<'_> {
    /// The form in which the event is sealed; `None` if it is not sealed, or sealed by a newer program.
    pub(crate) fn sealed_form(&self) -> Option<SealedForm> {
        let (envelope, form) = Envelope::decode(self.envelope_bytes());
        // A sealed payload is never shorter: it would not open.
        let payload_bytes = self.raw.len().saturating_sub(SEALING_BYTES);
        form.is_sealed().then_some(SealedForm { envelope, key: form.key, payload_bytes })
    }

    fn is_kept(&self, shredded: &BTreeSet<StreamId>) -> bool {
        !matches!(self.sight, Sight::NoKey | Sight::Unread | Sight::Forged)
            || shredded.contains(&self.envelope.stream)
    }
}

impl Frame {
    /// The runs of events that are kept, and the streams of those that are not. No bytes are copied. `shredded`: streams whose keys were destroyed,
    /// though their files may not say so.
    pub(crate) fn legible(self, shredded: &BTreeSet<StreamId>) -> (Vec<Self>, Vec<StreamId>) {
        let left_out = self.events().filter(|event| !event.is_kept(shredded));
        let mut left_out: Vec<StreamId> = left_out.map(|event| event.envelope.stream).collect();
        if left_out.is_empty() {
            return (vec![self], left_out);
        }
        left_out.sort_unstable();
        left_out.dedup();
        let mut runs: Vec<Vec<Span>> = vec![Vec::new()];
        for span in self.spans() {
            let mut payloads = span.payloads;
            // Events that follow each other are one span.
            let mut joins = false;
            for (index, event) in self.events_of(span).enumerate() {
                let here = Span {
                    first: event.ordinal(),
                    count: 1,
                    envelopes: span.envelopes.saturating_add(index.saturating_mul(ENVELOPE_BYTES)),
                    payloads,
                    rows: span.rows.saturating_add(event.mark.row.saturating_mul(BODY_ROW_BYTES)),
                    row_count: event.row_count,
                };
                payloads = payloads.saturating_add(align16(event.raw.len()));
                if !event.is_kept(shredded) {
                    runs.push(Vec::new());
                    joins = false;
                    continue;
                }
                match runs.last_mut() {
                    Some(run) => match run.last_mut().filter(|_| joins) {
                        Some(last) => {
                            last.count = last.count.saturating_add(1);
                            last.row_count = last.row_count.saturating_add(here.row_count);
                        }
                        None => run.push(here),
                    },
                    None => runs.push(vec![here]),
                }
                joins = true;
            }
        }
        let runs = runs.into_iter().filter(|run| !run.is_empty());
        let of = |run| Self::of(self.header, self.held.clone(), Spans::of(run)).opened_as(&self);
        (runs.map(of).collect(), left_out)
    }
}
