//! Events and things in words: short forms shared by several commands.

use std::cell::RefCell;
use std::collections::BTreeMap;

use acpdb_engine::event::{Body, Payload, PolicySet, Recorded};
use acpdb_engine::ids::{Micros, StreamId};
use acpdb_engine::text::signature::is_masked;
use acpdb_engine::{Store, store::StreamName};
use serde_json::{Value, json};

use crate::output::{Escape, escape};

/// Style of seqs.
pub(crate) const SEQ: anstyle::Style =
    anstyle::Style::new().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Cyan)));
/// Style of what is secondary.
pub(crate) const DIM: anstyle::Style = anstyle::Style::new().dimmed();
/// Style of what matters.
pub(crate) const BOLD: anstyle::Style = anstyle::Style::new().bold();
/// Style of what is sound or current.
pub(crate) const GOOD: anstyle::Style =
    anstyle::Style::new().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Green)));
/// Style of what is superseded or failed.
pub(crate) const BAD: anstyle::Style =
    anstyle::Style::new().fg_color(Some(anstyle::Color::Ansi(anstyle::AnsiColor::Yellow)));

/// Stands for an unknown time.
pub(crate) const NO_TIME: &str = "no time";

/// Streams whose names are looked up one by one before all are.
const NAMED_COUNT_MAX: usize = 16;

/// Names of streams, to print instead of their ids. Looked up when they are first printed: the first rows do not wait for
/// the names of all.
#[derive(Debug)]
pub(crate) struct StreamNames {
    store: Store,
    names: RefCell<BTreeMap<StreamId, Option<StreamName>>>,
}

impl StreamNames {
    pub(crate) fn new(store: &Store) -> Self {
        Self { store: store.clone(), names: RefCell::default() }
    }

    /// The host's name of a stream, whole.
    pub(crate) fn full(&self, stream: StreamId) -> String {
        if stream == StreamId::STORE {
            return "store".to_owned();
        }
        self.of(stream).map_or_else(|| stream.to_hex(), |name| name.name)
    }

    /// When an event happened, as far as it is known.
    pub(crate) fn time(&self, recorded: &Recorded) -> Option<Micros> {
        let name = if recorded.event.host_time.is_some() { None } else { self.of(recorded.event.stream) };
        acpdb_query::time_of(recorded, name.as_ref())
    }

    fn of(&self, stream: StreamId) -> Option<StreamName> {
        let mut names = self.names.borrow_mut();
        if let Some(known) = names.get(&stream) {
            return known.clone();
        }
        // What cannot be read has no name, and its reader tells of it.
        if names.len() == NAMED_COUNT_MAX {
            let all = self.store.stream_names().unwrap_or_default();
            names.extend(all.into_iter().map(|name| (name.id, Some(name))));
        // As above.
        } else if let Ok(Some(name)) = self.store.stream_name(stream) {
            names.insert(stream, Some(name));
        }
        names.entry(stream).or_default().clone()
    }

    /// At most 12 characters of it.
    pub(crate) fn short(&self, stream: StreamId) -> String {
        // A host may name its sessions as it likes.
        escape(&self.full(stream), Escape::Line).chars().take(12).collect()
    }
}

/// A time as RFC 3339, seconds, UTC.
pub(crate) fn time(micros: Micros) -> String {
    jiff::Timestamp::from_microsecond(micros.get())
        .map_or_else(|_| "-".to_owned(), |time| format!("{time:.0}"))
}

/// A time as [`time`] has it, if there is one. As wide either way.
pub(crate) fn time_if_any(micros: Option<Micros>) -> String {
    micros.map_or_else(|| format!("{NO_TIME:<20}"), time)
}

/// A count of bytes for people.
pub(crate) fn bytes(count: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "shown with one decimal")]
    let mut value = count as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    if unit == "B" { format!("{count} B") } else { format!("{value:.1} {unit}") }
}

/// A count of tokens for people: `812`, `8.5k`, `3.5M`.
pub(crate) fn tokens(count: u64) -> String {
    let (unit, letter) = match count {
        0..1000 => return count.to_string(),
        1000..999_950 => (1000, 'k'),
        _ => (1_000_000, 'M'),
    };
    let tenths = count.saturating_add(unit / 20) / (unit / 10);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole}{letter}"),
        (whole, tenth) => format!("{whole}.{tenth}{letter}"),
    }
}

/// A count with its noun.
pub(crate) fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// What a payload says, in a few words; no body is read.
pub(crate) fn payload(payload: &Payload) -> String {
    let tok = |body: &Body| format!("~{} tokens", tokens(u64::from(body.tokens)));
    match payload {
        Payload::SessionOpened(opened) => {
            let title = opened.title.as_deref().unwrap_or_default();
            format!("{} {} {title}", opened.host, opened.name)
        }
        Payload::SessionChanged(changed) => {
            let title = changed.title.as_ref().map(ToString::to_string);
            let fields = [("title", &title), ("cwd", &changed.cwd), ("project", &changed.project)];
            let set: Vec<String> = fields
                .iter()
                .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name}={value}")))
                .collect();
            set.join(" ")
        }
        Payload::SessionClosed(closed) => closed.reason.clone().unwrap_or_default().into(),
        Payload::TurnStarted(turn) => {
            let number = turn.number.map(|number| format!(" {number}")).unwrap_or_default();
            format!("{}{number} {}", word(&turn.kind), turn.key)
        }
        Payload::PromptSet(prompt) => prompt.model.clone().unwrap_or_default(),
        Payload::ContextReplaced(replaced) => {
            format!("{}, {} kept", word(&replaced.cause), count(replaced.order.len() as u64, "item"))
        }
        Payload::HostCleared(cleared) => count((cleared.items.len() + cleared.calls.len()) as u64, "item"),
        Payload::Rewound(rewound) => format!("to {}", rewound.to),
        Payload::Forked(forked) => format!("from {} at {}", forked.from, forked.at),
        Payload::HostRecorded(record) => record.record.clone(),
        Payload::MessageRecorded(message) => {
            let total: u32 = message.parts.iter().map(acpdb_engine::event::Part::tokens).sum();
            let kinds: Vec<String> = message.parts.iter().map(|part| word(&part.kind)).collect();
            format!("{} {} ~{} tokens", word(&message.role), kinds.join("+"), tokens(u64::from(total)))
        }
        Payload::MessageContinued(message) => {
            let total: u32 = message.parts.iter().map(acpdb_engine::event::Part::tokens).sum();
            format!("{} ~{} tokens", count(message.parts.len() as u64, "part"), tokens(u64::from(total)))
        }
        Payload::MessageFinished(finished) => {
            let usage = finished.report.usage;
            let numbers = [("in", usage.input), ("out", usage.output), ("cached", usage.cache_read)];
            let set: Vec<String> = numbers
                .iter()
                .filter_map(|(name, value)| value.map(|value| format!("{name} {value}")))
                .collect();
            format!("{} {}", finished.report.model.as_deref().unwrap_or_default(), set.join(" "))
        }
        Payload::MessageAbandoned(message) => message.key.clone(),
        Payload::ItemRevised(revised) => format!("{} {}", revised.item, word(&revised.face)),
        Payload::ToolCallStarted(started) => {
            // Patterns and command lines are signs in the log; their words are in the parameters.
            let keys = started.keys.iter().map(|key| key.given.as_str()).filter(|key| !is_masked(key));
            let tool = std::iter::once(started.tool.as_str()).chain(keys).collect::<Vec<_>>().join(" ");
            format!("{tool} {}", tok(&started.params))
        }
        Payload::ToolCallFinished(finished) => {
            let total: u32 = finished.output.iter().map(acpdb_engine::event::Part::tokens).sum();
            format!(
                "{}, call {} ~{} tokens",
                word(&finished.outcome),
                finished.call,
                tokens(u64::from(total))
            )
        }
        Payload::FileChanged(changed) => format!("{} by {}", changed.key.given, word(&changed.by)),
        Payload::TodosReplaced(todos) => count(todos.list.items.len() as u64, "entry"),
        Payload::TodoChanged(changed) => {
            format!("{} {}", changed.change.id, changed.change.status.as_deref().unwrap_or_default())
        }
        Payload::TaskChanged(changed) => {
            let ids: Vec<&str> = changed.tasks.iter().map(|task| task.id.as_str()).collect();
            ids.join(" ")
        }
        Payload::TaskEvicted(evicted) => evicted.task.clone(),
        Payload::MemoryRecorded(memory) => {
            let key = memory.key.as_ref().map(|key| format!("/{key}")).unwrap_or_default();
            format!("{} {} {}{key}", memory.id, word(&memory.kind), memory.category)
        }
        Payload::MemorySuperseded(edge) => format!("{} by {}", edge.old, edge.new),
        Payload::MemoryReinforced(memory) => memory.id.clone(),
        Payload::MemoryRetracted(memory) => memory.id.clone(),
        Payload::Discarded(act) => count(act.items.len() as u64, "item"),
        Payload::Distilled(act) => count(act.items.len() as u64, "item"),
        Payload::Restored(act) => items(&act.items),
        Payload::Pinned(act) => items(&act.items),
        Payload::Unpinned(act) => items(&act.items),
        Payload::Injected(injected) => format!("{} {}", word(&injected.what), tok(&injected.text)),
        Payload::ContextRebased(rebased) => format!("epoch {} {}", rebased.epoch, word(&rebased.why)),
        Payload::ContextServed(served) => format!("{} ~{} tokens", served.format, tokens(served.tokens)),
        Payload::PolicySet(set) => policy(set),
        Payload::Erased(erased) => {
            format!("{} by {}: {}", count(erased.bodies.len() as u64, "text"), erased.by, erased.reason)
        }
        Payload::DamageNoted(noted) => noted.note.clone(),
        gone @ Payload::Unknown { bytes, .. } if gone.is_shredded() => {
            format!("{} bytes, whose key was destroyed", bytes.len())
        }
        Payload::Unknown { bytes, .. } => format!("{} bytes, written by a newer acpdb", bytes.len()),
    }
}

/// A variant's name in plain words: `FileChanged` is "file changed". What it holds follows in brackets.
fn word(variant: &dyn std::fmt::Debug) -> String {
    let text = format!("{variant:?}");
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let mut words = String::with_capacity(text.len() + 4);
    for (place, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && place > 0 {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words + rest
}

fn policy(set: &PolicySet) -> String {
    // A policy without a name, or one that this version cannot read, is the writer's own.
    let policy = serde_json::from_str::<Value>(&set.policy).ok();
    let preset = policy.as_ref().and_then(|policy| policy.get("preset")).and_then(Value::as_str);
    let why = set.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{}{why}", preset.unwrap_or("custom"))
}

fn items(items: &[acpdb_engine::ids::ItemId]) -> String {
    let shown: Vec<String> = items.iter().take(8).map(ToString::to_string).collect();
    let more = if items.len() > 8 { " .." } else { "" };
    format!("{}{more}", shown.join(" "))
}

/// An event for programs. Bodies are named, not shown.
pub(crate) fn event_json(recorded: &Recorded, names: &StreamNames) -> Value {
    let event = &recorded.event;
    json!({
        "schema": "acpdb.event/1",
        "seq": recorded.seq,
        "stream": event.stream,
        "session": names.full(event.stream),
        "kind": event.payload.label(),
        "recorded_at": time(recorded.recorded_at),
        "host_time": event.host_time.map(time),
        "actor": event.stamp.actor,
        "origin": (!event.origin.is_zero()).then_some(event.origin),
        "payload": event.payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_short_and_exact_where_they_are_small() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1000, "1k"),
            (8540, "8.5k"),
            (9960, "10k"),
            (123_456, "123.5k"),
            (999_949, "999.9k"),
            (999_950, "1M"),
            (3_516_700, "3.5M"),
        ] {
            assert_eq!(tokens(number), shown);
        }
        for (number, shown) in [(12, "12 B"), (2048, "2.0 KiB"), (5 << 30, "5.0 GiB")] {
            assert_eq!(bytes(number), shown);
        }
    }
}
