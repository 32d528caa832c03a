//! Events of another store become drafts of this one: values that the other store keyed with its secret are computed anew from texts.
//!
//! ```text
//! Parcel -> rows: checked, those that were erased here left out -> figures, signatures, labels, masks in keys -> EventDraft
//! ```
//!
//! The registry's answers about a call stay, for contexts rest on them; the rest follows from the bytes. Claims of a parcel
//! about its bodies are not believed. Pure.

use crate::command::draft::{Bodies, CHUNK_BYTES_MAX, LostRow, line_count};
use crate::entry::fact::ToolStarted;
use crate::entry::fact::revision_of;
use crate::entry::{Bytes, Fact, Rows, StreamInfo};
use crate::event::wire::{self, Piece};
use crate::event::{
    Body, Event, Key, KeyKind, Payload, Stamp, TodoChange, TodoList, TodoUpdate, ToolCallStarted,
};
use crate::text::tokens;
use crate::travel::{Parcel, Row};

use super::{EventDraft, Recorder};

impl Recorder<'_> {
    /// Drafts the event of a parcel in the stream of `info`. The events that it names have this store's seqs already.
    ///
    /// # Errors
    /// The fault of the parcel, as a text.
    pub fn adopt(&self, info: &StreamInfo, parcel: &Parcel) -> Result<EventDraft, String> {
        let rows = self.rows(parcel)?;
        let mut payload = parcel.event.clone();
        let mut wrong = None;
        payload.bodies_mut(&mut |body| {
            if let Err(error) = measure(body, &rows) {
                wrong.get_or_insert(error);
            }
        });
        let mut wire = parcel.wire;
        if let Some(wire) = &mut wire {
            wire.tokens = 0;
            wire.lines = 0;
            measure(wire, &rows)?;
        }
        if let Some(error) = wrong {
            return Err(error);
        }
        let told = if parcel.told { Fact::told(&payload, &rows) } else { None };
        self.resign(info, &mut payload, parcel, &rows);
        let mut bodies: Vec<Bytes> = Vec::with_capacity(rows.all.len());
        let mut lost = Vec::new();
        for row in &rows.all {
            match row {
                Ok(bytes) => bodies.push((*bytes).clone()),
                Err(length) => {
                    lost.push(LostRow {
                        row: u32::try_from(bodies.len()).unwrap_or(u32::MAX),
                        bytes: *length,
                        is_damaged: matches!(parcel.bodies.get(bodies.len()), Some(Row::Damaged(_))),
                    });
                    bodies.push(Bytes::default());
                }
            }
        }
        if let Some(template) = &wire {
            self.key_template(template, &mut bodies, &lost)?;
        }
        let stamp = Stamp {
            actor: parcel.actor,
            estimator: tokens::ESTIMATOR_VERSION,
            revision: told.map_or(0, |fact| revision_of(&fact.into(), self.secret())),
            wire,
        };
        let event = Event {
            stream: self.stream,
            origin: self.secret().keyed(parcel.id),
            host_time: parcel.time,
            stamp,
            payload,
        };
        Ok(EventDraft { event, bodies, lost })
    }

    fn rows<'p>(&self, parcel: &'p Parcel) -> Result<Rows<'p>, String> {
        let mut all = Vec::with_capacity(parcel.bodies.len());
        let mut withheld = false;
        for row in &parcel.bodies {
            all.push(match row {
                Row::Bytes(bytes) if bytes.is_empty() || bytes.len() > CHUNK_BYTES_MAX => {
                    return Err(format!("a body row of {} bytes", bytes.len()));
                }
                Row::Bytes(bytes) if self.withheld.holds(bytes) => {
                    withheld = true;
                    Err(length(bytes))
                }
                Row::Bytes(bytes) => Ok(bytes),
                Row::Erased(bytes) | Row::Damaged(bytes) => {
                    if *bytes == 0 || *bytes as usize > CHUNK_BYTES_MAX {
                        return Err(format!("a lost body row of {bytes} bytes"));
                    }
                    Err(*bytes)
                }
            });
        }
        // A record quotes its event. If a content of the event was erased, nothing of the record is kept.
        if withheld && let Some(template) = &parcel.wire {
            for row in all.get_mut(Rows::range(template)).into_iter().flatten() {
                // Rows with an `Err` are gone already.
                if let Ok(bytes) = row {
                    *row = Err(length(bytes));
                }
            }
        }
        Ok(Rows { all })
    }

    /// Gives the origins in a record's template this store's form.
    fn key_template(&self, template: &Body, bodies: &mut [Bytes], lost: &[LostRow]) -> Result<(), String> {
        let count = bodies.len();
        let Some(rows) = bodies.get_mut(Rows::range(template)) else { return Ok(()) };
        if lost.iter().any(|lost| Rows::range(template).contains(&(lost.row as usize))) {
            return Ok(());
        }
        let bytes: Vec<u8> = rows.iter().flat_map(|row| row.iter().copied()).collect();
        let pieces = wire::pieces(&bytes).map_err(|error| error.to_string())?;
        let mut keyed = Vec::with_capacity(bytes.len());
        for piece in pieces {
            match piece {
                Piece::Body { first, rows, .. } if (first as usize).saturating_add(rows as usize) > count => {
                    return Err(format!("its record names body row {first}, which it does not have"));
                }
                Piece::Record(origin) => {
                    let origin = self.secret().keyed(crate::ids::FactId(origin.0));
                    wire::push(&mut keyed, &Piece::Record(origin));
                }
                piece => wire::push(&mut keyed, &piece),
            }
        }
        let mut rest = keyed.as_slice();
        for row in rows {
            let (own, after) = rest.split_at_checked(row.len()).ok_or("its record cannot be read")?;
            (*row, rest) = (own.into(), after);
        }
        Ok(())
    }

    /// Computes anew the values that the other store keyed.
    fn resign(&self, info: &StreamInfo, payload: &mut Payload, parcel: &Parcel, rows: &Rows<'_>) {
        // A signature that cannot be computed stays comparable with signatures from the same stream of the same store.
        payload.signatures_mut(&mut |signature| {
            let pattern = parcel.patterns.iter().find(|(known, _)| known == signature);
            *signature = match pattern {
                Some((_, text)) => self.signer.text("pattern", text),
                None => self.signer.text("merged", &signature.to_hex()),
            };
        });
        match payload {
            Payload::ToolCallStarted(started) => self.restart(info, started, rows),
            Payload::ToolCallFinished(finished) => match &mut finished.todos {
                Some(TodoUpdate::List(list)) => self.relist(list, rows),
                Some(TodoUpdate::Change(change)) => self.rechange(change, rows),
                None => {}
            },
            Payload::TodosReplaced(replaced) => self.relist(&mut replaced.list, rows),
            Payload::TodoChanged(changed) => self.rechange(&mut changed.change, rows),
            Payload::MemoryRecorded(memory) => {
                if let Some(value) = rows.bytes(&memory.value) {
                    memory.value_signature = self.signer.folded("memory", &String::from_utf8_lossy(&value));
                }
            }
            _ => {}
        }
    }

    fn restart(&self, info: &StreamInfo, started: &mut ToolCallStarted, rows: &Rows<'_>) {
        let Some(params) = rows.bytes(&started.params) else {
            started.label = self.secret().seal_label(started.label & LABEL_BITS);
            return;
        };
        let mut bodies = Bodies::default();
        let call = ToolStarted {
            call: started.call.clone(),
            message: None,
            tool: started.tool.clone(),
            params,
            provider_signature: None,
        };
        let fresh = self.started(info, &call, &mut bodies);
        started.canonical_tokens = fresh.canonical_tokens;
        started.label = fresh.label;
        started.signature = fresh.signature;
        started.forms = fresh.forms;
        started.shown = fresh.shown;
        remark(&mut started.keys, fresh.keys);
        if let Some(list) = &mut started.todos {
            self.relist(list, rows);
        }
    }

    fn relist(&self, list: &mut TodoList, rows: &Rows<'_>) {
        if let Some(heads) = rows.bytes(&list.body).and_then(|bytes| self.todo_heads(&bytes)) {
            list.items = heads;
        }
    }

    fn rechange(&self, change: &mut TodoChange, rows: &Rows<'_>) {
        let entry = change.entry.as_ref().and_then(|body| rows.bytes(body));
        if let (Some(content), Some(entry)) = (&mut change.content, entry)
            && let Some(fresh) = self.entry_signature(&entry)
        {
            *content = fresh;
        }
    }
}

/// Bits of a call's label.
const LABEL_BITS: u32 = 0x00ff_ffff;

fn length(bytes: &Bytes) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// Puts this store's masks in keys. Keys of files stay as they were recorded.
fn remark(keys: &mut [Key], fresh: Vec<Key>) {
    let same =
        keys.len() == fresh.len() && keys.iter().zip(&fresh).all(|(key, fresh)| key.kind == fresh.kind);
    if same {
        for (key, fresh) in keys.iter_mut().zip(fresh).filter(|(key, _)| key.kind != KeyKind::File) {
            (key.given, key.fields) = (fresh.given, fresh.fields);
        }
    }
}

/// Checks where a body is, and counts its bytes, tokens and lines. A body with lost rows keeps its estimate.
fn measure(body: &mut Body, rows: &Rows<'_>) -> Result<(), String> {
    if body.chunks == 0 {
        *body = Body::default();
        return Ok(());
    }
    let own = rows
        .all
        .get(Rows::range(body))
        .ok_or_else(|| format!("it names body row {}, which it does not have", body.first))?;
    let bytes = own.iter().map(|row| row.as_ref().map_or_else(|lost| u64::from(*lost), |it| it.len() as u64));
    body.bytes = bytes.sum();
    let is_counted = body.tokens > 0 || body.lines > 0;
    match rows.bytes(body) {
        Some(bytes) if is_counted => {
            (body.tokens, body.lines) = (tokens::estimate(&bytes), line_count(&bytes));
        }
        Some(_) => {}
        None => {
            let most = u32::try_from(body.bytes).unwrap_or(u32::MAX);
            (body.tokens, body.lines) = (body.tokens.min(most), body.lines.min(most));
        }
    }
    Ok(())
}
