//! Numbers of kinds of events, for looks at events that are not decoded. They are part of the format.

/// The kind that a session begins with.
pub(crate) const SESSION_OPENED: u16 = 1;
pub(crate) const SESSION_CHANGED: u16 = 2;
pub(crate) const CONTEXT_REPLACED: u16 = 6;
pub(crate) const REWOUND: u16 = 8;
/// The kind that a fork begins with, behind its opening.
pub(crate) const FORKED: u16 = 9;
/// Kinds from this number on record items.
pub(crate) const MESSAGE_RECORDED: u16 = 16;
pub(crate) const MESSAGE_FINISHED: u16 = 18;
pub(crate) const INJECTED: u16 = 85;
pub(crate) const ERASED: u16 = 112;

#[cfg(test)]
mod tests {
    use acpdb_engine::event::KIND_LABELS;

    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_kinds() {
        for kind in [
            (SESSION_OPENED, "session_opened"),
            (SESSION_CHANGED, "session_changed"),
            (CONTEXT_REPLACED, "context_replaced"),
            (REWOUND, "rewound"),
            (FORKED, "forked"),
            (MESSAGE_RECORDED, "message_recorded"),
            (MESSAGE_FINISHED, "message_finished"),
            (INJECTED, "injected"),
            (ERASED, "erased"),
        ] {
            assert!(KIND_LABELS.contains(&kind), "{kind:?}");
        }
    }
}
