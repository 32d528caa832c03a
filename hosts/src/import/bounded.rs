//! A fact that is more than an event can hold is kept as the host wrote it.
//!
//! ```text
//! message of 12,000 parts, with its record  ->  HostRecorded "too-large", with its record; a note in the report
//! ```
//!
//! An event lists its parts; their texts stand in bodies, which may be long. An event with too many parts, or with names as
//! long as books, is over [`EVENT_BYTES_MAX`] bytes, and the store takes nothing of its commit. So it is not handed out.

use acpdb_engine::entry::{Entry, Fact, PartEntry, WirePiece, fact};

use super::wire;

/// Bytes of an event that are left for its fields beside parts and names.
const EVENT_BYTES_FREE: usize = 32 << 10;
/// Most bytes of an event, the engine's limit (`docs/FORMAT.md`).
const EVENT_BYTES_MAX: usize = 1 << 20;
/// Bytes that an event has for each of its parts, measured: 96, and the media type where it has one.
const PART_BYTES: usize = 96;

/// Replaces the facts that no event can hold, and says why.
pub(super) fn keep_within_an_event(entries: &mut [Entry], mut told: impl FnMut(String)) {
    for entry in entries {
        let bytes = bytes(&entry.fact);
        if bytes <= EVENT_BYTES_MAX - EVENT_BYTES_FREE {
            continue;
        }
        let parts = parts(&entry.fact).len();
        told(format!("{parts} parts and names of {bytes} B, more than an event holds; kept as it is"));
        let kept = fact::HostRecorded { record: "too-large".to_owned(), about: None, raw: None };
        entry.fact = Fact::HostRecorded(kept);
        // Its texts are in no fact any more: the record has them itself.
        if let Some(raw) = wire::resolve(&entry.wire).filter(|raw| !raw.is_empty()) {
            entry.wire = vec![WirePiece::Literal(raw)];
        }
    }
}

fn parts(fact: &Fact) -> &[PartEntry] {
    match fact {
        Fact::MessageRecorded(fact::MessageRecorded { parts, .. })
        | Fact::MessageContinued(fact::MessageContinued { parts, .. })
        | Fact::ToolFinished(fact::ToolFinished { output: parts, .. }) => parts,
        _ => &[],
    }
}

/// About the bytes of an event that are parts and names.
fn bytes(fact: &Fact) -> usize {
    let media = |part: &PartEntry| part.media_type.as_ref().map_or(0, String::len);
    // A sum of lengths of texts in memory.
    let parts = parts(fact).iter().map(|part| PART_BYTES + media(part)).sum::<usize>();
    let names = match fact {
        Fact::MessageRecorded(fact::MessageRecorded { key, parent, .. }) => {
            key.len() + parent.as_ref().map_or(0, String::len)
        }
        Fact::MessageContinued(fact::MessageContinued { key, .. })
        | Fact::TurnStarted(fact::TurnStarted { key, .. })
        | Fact::MessageFinished(fact::MessageFinished { key, .. }) => key.len(),
        Fact::ToolStarted(fact::ToolStarted { call, message, tool, .. }) => {
            call.len() + tool.len() + message.as_ref().map_or(0, String::len)
        }
        Fact::ToolFinished(fact::ToolFinished { call, .. }) => call.len(),
        Fact::HostRecorded(fact::HostRecorded { record, about, .. }) => {
            record.len() + about.as_ref().map_or(0, String::len)
        }
        _ => 0,
    };
    parts + names
}

#[cfg(test)]
mod tests {
    use acpdb_engine::event::Role;

    use super::*;

    #[test]
    fn what_no_event_holds_is_kept_as_it_was_written() {
        let message = |count: usize| {
            let parts: Vec<PartEntry> = (0..count).map(|at| PartEntry::text(at.to_string())).collect();
            Entry::message_parts("m1", Role::User, parts)
                .origin("msg:1")
                .wire(vec![WirePiece::Escaped(super::super::bytes("raw"))])
        };
        let mut entries = vec![message(10_000), message(12_000), Entry::step("s".repeat(2 << 20))];
        let mut notes = Vec::new();
        keep_within_an_event(&mut entries, |note| notes.push(note));
        assert_eq!(entries[0], message(10_000));
        let kept = Entry::host_record("too-large", None)
            .origin("msg:1")
            .wire(vec![WirePiece::Literal(b"raw".to_vec())]);
        assert_eq!(entries[1], kept);
        assert!(matches!(&entries[2].fact, Fact::HostRecorded(kept) if kept.record == "too-large"));
        assert_eq!(notes.len(), 2);
    }
}
