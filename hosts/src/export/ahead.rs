//! Bodies read ahead: an export asks for them nearly in order, and many that lie beside each other cost little more than one.
//!
//! ```text
//! order of items -> their bodies -> a batch at a time -> each caller takes its own
//! ```
//!
//! A body that is asked for out of order is read alone. The meaning of the bytes, and errors, are the caller's.

use acpdb_engine::fold::PartView;
use acpdb_engine::ids::BodyId;
use acpdb_engine::{Error, View};
use rustc_hash::FxHashMap;

use super::source::{ExportItem, ShownAs};

/// Most bodies of a batch.
const BATCH_COUNT: usize = 256;
/// Bytes of parts that make a batch full.
const BATCH_BYTES: u64 = 1 << 20;

/// Bodies that will be asked for, and those that were read.
#[derive(Default)]
pub(super) struct BodyPrefetch {
    /// In order, with their lengths; 0: not known.
    order: Vec<(BodyId, u64)>,
    next: usize,
    held: FxHashMap<BodyId, Result<Vec<u8>, Error>>,
}

impl BodyPrefetch {
    /// The bodies of these items, as they are shown.
    pub(super) fn of(items: &[ExportItem]) -> Self {
        let mut order = Vec::with_capacity(items.len().saturating_mul(2));
        for item in items {
            match (&item.input, item.brief.params) {
                (ShownAs::Placeholder(placeholder), _) => {
                    order.extend(placeholder.needs().into_iter().map(|id| (id, 0)));
                }
                (ShownAs::Whole, Some(params)) => order.push((params, 0)),
                _ => {}
            }
            match &item.output {
                ShownAs::Placeholder(placeholder) => {
                    order.extend(placeholder.needs().into_iter().map(|id| (id, 0)));
                }
                ShownAs::Whole => {
                    order.extend(item.content.iter().map(|part: &PartView| (part.body, part.bytes)));
                }
                ShownAs::Nothing | ShownAs::Text(_) => {}
            }
        }
        Self { order, ..Self::default() }
    }

    /// The bytes of a body.
    pub(super) fn body(&mut self, view: &View, id: BodyId) -> Result<Vec<u8>, Error> {
        if let Some(body) = self.held.remove(&id) {
            return body;
        }
        let near = self.order.iter().skip(self.next).take(BATCH_COUNT);
        let Some(skipped) = near.map(|(known, _)| *known).position(|known| known == id) else {
            return view.body(id);
        };
        let start = self.next.saturating_add(skipped);
        let mut bytes = 0_u64;
        let batch = self.order.iter().skip(start).take(BATCH_COUNT).take_while(|(_, length)| {
            let fits = bytes < BATCH_BYTES;
            bytes = bytes.saturating_add(*length);
            fits
        });
        let batch: Vec<BodyId> = batch.map(|(id, _)| *id).collect();
        self.next = start.saturating_add(batch.len());
        if self.held.len() > BATCH_COUNT {
            // These bodies are of earlier batches and were never asked for.
            self.held.clear();
        }
        self.held.extend(batch.iter().copied().zip(view.bodies(&batch)));
        self.held.remove(&id).unwrap_or_else(|| view.body(id))
    }
}
