//! Lines of a host's own recording, appended as the host writes them.
//!
//! The importer of the host turns each line into facts. One of them holds the line itself, so that `records` gives it back byte for
//! byte. The lines belong to the session to which they are appended, even if they name another one.

use std::collections::HashMap;

use acpdb_engine::entry::{Entry, Fact, ItemRef, PointRef, StreamInfo, WirePiece, fact};
use acpdb_engine::secret::DERIVED;
use acpdb_engine::{Atomicity, Batch, Error, Store};
use acpdb_hosts::import::{self, ImportFormat, ImportOptions, wire};
use serde::Deserialize;

/// Facts of one call, ready to be recorded.
pub struct Lines {
    batches: Vec<Batch>,
}

/// Reads `lines` with the importer of `format`. `salt` makes origins of this call differ from those of other calls where a line has
/// no id of its own; `prefix` makes all origins differ.
pub fn read(
    format: ImportFormat,
    lines: &[u8],
    home: &StreamInfo,
    prefix: &str,
    salt: &str,
) -> Result<Lines, String> {
    let mut read: Vec<import::ImportBatch> = Vec::new();
    let options = ImportOptions { is_hosts_own: true, ..ImportOptions::default() };
    let _ =
        import::read(format, &home.name, lines, &options, &mut read).map_err(|error| error.to_string())?;
    let mut batches: Vec<Batch> = Vec::new();
    let mut push = |stream: StreamInfo, entry: Entry| match batches.last_mut() {
        Some(last) if last.stream.name == stream.name => last.entries.push(entry),
        _ => batches.push(Batch { stream, entries: vec![entry] }),
    };
    let mut calls = Calls::default();
    for mut batch in read {
        calls.place(&mut batch.entries);
        // Lines of a subagent, in the file of the session that started it.
        let is_beside = batch.stream.parent.is_some() && home.parent.is_none();
        for mut entry in batch.entries {
            let origin = entry.origin.take();
            entry.origin = origin.map(|origin| with_prefix(&origin, prefix, salt));
            if !is_beside {
                push(
                    StreamInfo {
                        title: batch.stream.title.clone(),
                        cwd: batch.stream.cwd.clone(),
                        ..home.clone()
                    },
                    entry,
                );
                continue;
            }
            if let Some(line) = wire::resolve(&entry.wire).filter(|line| !line.is_empty()) {
                let record: Entry =
                    fact::HostRecorded { record: "subagent".to_owned(), about: None, raw: None }.into();
                let record = Entry {
                    origin: entry.origin.as_ref().map(|origin| format!("line:{origin}")),
                    wire: vec![WirePiece::Literal(line)],
                    ..record
                };
                push(home.clone(), record);
            }
            entry.wire.clear();
            let agent = batch.stream.name.rsplit('/').next().unwrap_or_default();
            let name = format!("{}/{agent}", home.name);
            let parent = Some((home.id(), None));
            push(StreamInfo { name, parent, title: None, ..home.clone() }, entry);
        }
    }
    Ok(Lines { batches })
}

/// Origins of calls. The importer numbers the calls of an id from the beginning of what it reads, and models use ids again: together
/// with the id of its line, an origin names one call for ever.
#[derive(Default)]
struct Calls(HashMap<String, String>);

#[derive(Deserialize)]
struct Line {
    uuid: Option<String>,
}

impl Calls {
    /// Changes the facts of one line.
    fn place(&mut self, entries: &mut [Entry]) {
        let raw =
            entries.iter().find(|entry| !entry.wire.is_empty()).and_then(|entry| wire::resolve(&entry.wire));
        let line = raw.and_then(|raw| serde_json::from_slice::<Line>(&raw).ok()).and_then(|line| line.uuid);
        for entry in entries {
            if let (Some(line), Some(origin)) = (&line, &mut entry.origin)
                && origin.starts_with("call:")
            {
                let placed = format!("{origin}@{line}");
                self.0.insert(std::mem::replace(origin, placed.clone()), placed);
            }
            match &mut entry.fact {
                Fact::Rewound(fact::Rewound { to: PointRef::After(origin) | PointRef::Before(origin) }) => {
                    self.rename(origin);
                }
                Fact::ContextReplaced(fact::ContextReplaced { order: items, .. })
                | Fact::HostCleared(fact::HostCleared { items, .. }) => {
                    for item in items {
                        if let ItemRef::Origin(origin, _) = item {
                            self.rename(origin);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    fn rename(&self, origin: &mut String) {
        if let Some(placed) = self.0.get(origin) {
            origin.clone_from(placed);
        }
    }
}

/// The origin of a line without its own id has its digest and number, which begin anew with each call.
fn with_prefix(origin: &str, prefix: &str, salt: &str) -> String {
    let is_derived = origin.split_once(':').is_some_and(|(_, rest)| rest.starts_with(DERIVED));
    if is_derived { format!("{prefix}{origin}@{salt}") } else { format!("{prefix}{origin}") }
}

/// Records the lines as one commit; returns the number of new events.
pub fn record(store: &Store, lines: &Lines) -> Result<u64, Error> {
    Ok(store.commit(&lines.batches, Atomicity::Split)?.event_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A title that its host appended alone was dropped, since nothing was said beside it.
    #[test]
    fn a_line_that_says_nothing_is_kept_though_it_comes_alone() -> Result<(), String> {
        let home = StreamInfo::session("claude-code", "s1");
        for line in [r#"{"type":"custom-title","customTitle":"Red"}"#, r#"{"type":"new","uuid":"a"}"#] {
            let read = read(ImportFormat::ClaudeCode, line.as_bytes(), &home, "", "salt")?;
            let entries = read.batches.iter().flat_map(|batch| &batch.entries);
            let lines = entries.filter_map(|entry| wire::resolve(&entry.wire));
            assert_eq!(lines.collect::<Vec<_>>(), [line.as_bytes()]);
        }
        Ok(())
    }
}
