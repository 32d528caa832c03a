//! What goes for every item of a kind: names and defaults.

use crate::event::{Lifespan, MemoryKind};

/// The name of a lifespan, as in JSON.
pub const fn lifespan_label(lifespan: Lifespan) -> &'static str {
    match lifespan {
        Lifespan::Session => "session",
        Lifespan::Project => "project",
        Lifespan::Permanent => "permanent",
    }
}

/// The name of a kind, as in JSON.
pub const fn kind_label(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Fact => "fact",
        MemoryKind::Preference => "preference",
        MemoryKind::Decision => "decision",
        MemoryKind::Note => "note",
    }
}

/// How long an item of this kind lives, unless its event says.
pub const fn default_lifespan(kind: MemoryKind) -> Lifespan {
    match kind {
        MemoryKind::Fact => Lifespan::Session,
        MemoryKind::Preference | MemoryKind::Decision | MemoryKind::Note => Lifespan::Project,
    }
}

/// The category of an item of this kind, unless its event says.
pub const fn default_category(kind: MemoryKind) -> &'static str {
    match kind {
        MemoryKind::Decision => "implementation",
        MemoryKind::Fact | MemoryKind::Preference | MemoryKind::Note => "other",
    }
}
