//! Facts laid out for a snapshot and read again, and what helps to find them: made when it is first asked.
//!
//! What can be made of the rest is not saved. Of a session that is only looked at it is never made.

use std::sync::OnceLock;

use super::super::names::Names;
use super::super::number::Name;
use super::super::rows::{In, Later, Out};
use super::super::table::{Lazy, Table, hash_of};
use super::{Facts, Message, swap};
use crate::event::KeyKind;

impl Facts {
    pub(super) fn message_of(&self) -> &Vec<u32> {
        self.message_of.get_or_init(|| {
            let mut known = Vec::new();
            let named = |message: &&Message| !self.names.text(message.key).is_empty();
            for (number, message) in (0..).zip(&self.messages).filter(|(_, message)| named(message)) {
                swap(&mut known, message.key.at(), number);
            }
            known
        })
    }

    pub(super) fn newest_of_host(&self) -> &Vec<u32> {
        self.newest_of_host.get_or_init(|| {
            let mut newest = Vec::new();
            for (ix, item) in (0..).zip(&self.items) {
                if let Some(call) = self.calls.get(item.call as usize) {
                    swap(&mut newest, call.host_id.at(), ix);
                }
            }
            newest
        })
    }

    pub(super) fn identities(&self) -> &Table {
        let hash =
            |(kind, by_fields, name): &(KeyKind, bool, Name)| hash_of(&(*kind as u8, *by_fields, name.0));
        self.identity_table.get(self.identities.iter().map(hash))
    }

    pub(super) fn numbers(&self) -> &Table {
        self.signature_table.get(self.signatures.iter().map(|signature| hash_of(&signature.0)))
    }

    pub(super) fn labels(&self) -> &Table {
        self.label_table.get(self.labelled.iter().map(|labelled| hash_of(&labelled.place)))
    }

    /// Lays all out for a snapshot; `None` if it is too large for one.
    pub(in crate::fold) fn save(&self, out: &mut Out) -> Option<()> {
        // By name, so that a field to come is not forgotten.
        let Self {
            names,
            items,
            calls,
            keys,
            identities,
            identity_table: _,
            finishes,
            parts,
            rare,
            todo_lists,
            revisions,
            messages,
            message_of: _,
            signatures,
            signature_table: _,
            labelled,
            label_table: _,
            newest_of_signature,
            newest_of_host: _,
            scratch: _,
        } = self;
        names.save(out)?;
        out.rows(items);
        out.rows(calls);
        out.rows(keys);
        out.rows(identities);
        out.rows(finishes);
        out.rows(parts);
        out.archive(rare)?;
        todo_lists.save(out)?;
        out.rows(revisions);
        out.rows(messages);
        out.rows(signatures);
        out.rows(labelled);
        out.rows(newest_of_signature);
        Some(())
    }

    pub(in crate::fold) fn read(saved: &mut In<'_>) -> Option<Self> {
        // In the order of `save`.
        Some(Self {
            names: Names::read(saved)?,
            items: saved.rows()?,
            calls: saved.rows()?,
            keys: saved.rows()?,
            identities: saved.rows()?,
            identity_table: Lazy::empty(),
            finishes: saved.rows()?,
            parts: saved.rows()?,
            rare: saved.archive()?,
            todo_lists: Later::read(saved)?,
            revisions: saved.rows()?,
            messages: saved.rows()?,
            message_of: OnceLock::new(),
            signatures: saved.rows()?,
            signature_table: Lazy::empty(),
            labelled: saved.rows()?,
            label_table: Lazy::empty(),
            newest_of_signature: saved.rows()?,
            newest_of_host: OnceLock::new(),
            scratch: String::new(),
        })
    }
}
