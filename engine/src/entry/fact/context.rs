//! What a host or acpdb itself puts into a context.

use super::{Cleaner, Drafter, Fields, HostFact};
use crate::entry::{Bytes, Rows};
use crate::event::{self, InjectedKind};

/// A text was put into the context.
#[derive(Clone, PartialEq, Hash, Debug)]
pub struct Injected {
    pub what: InjectedKind,
    pub text: Bytes,
}

impl HostFact for Injected {
    type Kept = event::Injected;
    ids!();

    fn revision(&self, fields: &mut Fields) {
        fields.tag(b"injected").tag(&[self.what as u8]).bytes(&self.text);
    }

    fn clean(&mut self, cleaner: &mut dyn Cleaner) {
        cleaner.bytes(&mut self.text);
    }

    fn draft(&self, drafter: &mut dyn Drafter) -> event::Injected {
        event::Injected { what: self.what, text: drafter.body(&self.text) }
    }

    fn told(kept: &event::Injected, rows: &Rows<'_>) -> Option<Self> {
        Some(Self { what: kept.what, text: rows.bytes(&kept.text)? })
    }
}
