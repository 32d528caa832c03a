//! A session that is read while its host writes ends as one that is read afterwards.
//!
//! opencode keeps every state of every part in a table of its own; so each moment of a recorded session can be put together
//! again: it is imported moment by moment into one store, and at once into another. Requests made of both are equal.

use std::collections::BTreeMap;

use acpdb_engine::event::Scope;
use acpdb_engine::{At, Store};
use acpdb_hosts::export::{ExportChoices, Format, Selection, export};
use acpdb_hosts::import;
use acpdb_hosts::sqlite::{Database, SqlValue};
use acpdb_tests::support::{bytes_of, import_bytes};
use serde_json::{Value as Json, json};

use super::scenes::folder;

/// A session as its events have told it so far.
#[derive(Default)]
struct Moment {
    info: Json,
    /// By time and id.
    messages: BTreeMap<(i64, String), Json>,
    /// By message and id.
    parts: BTreeMap<(String, String), Json>,
}

impl Moment {
    fn hear(&mut self, kind: &str, data: &Json) {
        let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
        if kind.starts_with("session.") {
            self.info = data["info"].clone();
        } else if kind.starts_with("message.updated") {
            let info = &data["info"];
            let key = (info["time"]["created"].as_i64().unwrap(), text(&info["id"]));
            self.messages.insert(key, info.clone());
        } else if kind.starts_with("message.part.updated") {
            let part = &data["part"];
            self.parts.insert((text(&part["messageID"]), text(&part["id"])), part.clone());
        } else {
            panic!("an event of kind {kind}");
        }
    }

    fn document(&self) -> Vec<u8> {
        let messages: Vec<Json> = self
            .messages
            .iter()
            .map(|((_, id), info)| {
                let parts = self.parts.iter().filter(|((of, _), _)| of == id).map(|(_, part)| part.clone());
                json!({"info": info, "parts": parts.collect::<Vec<_>>()})
            })
            .collect();
        serde_json::to_vec(&json!({"info": self.info, "messages": messages})).unwrap()
    }
}

/// The events of each session of a database, in their order.
fn events(bytes: &[u8]) -> BTreeMap<String, Vec<(String, Json)>> {
    let database = Database::open(&bytes, None).unwrap();
    let tables = database.tables().unwrap();
    let table = tables.iter().find(|table| table.name == "event").unwrap();
    let [session, seq, kind, data] =
        table.places(["aggregate_id", "seq", "type", "data"]).map(Option::unwrap);
    let mut found: BTreeMap<String, Vec<(i64, String, Json)>> = BTreeMap::new();
    database
        .rows(table, &mut |_, row| {
            let text = |place: usize| row[place].text().unwrap().to_owned();
            let SqlValue::Integer(seq) = row[seq] else { panic!("an event without a number") };
            let data = serde_json::from_str(&text(data)).unwrap();
            found.entry(text(session)).or_default().push((seq, text(kind), data));
            Ok(())
        })
        .unwrap();
    found
        .into_iter()
        .map(|(session, mut events)| {
            events.sort_by_key(|(seq, ..)| *seq);
            (session, events.into_iter().map(|(_, kind, data)| (kind, data)).collect())
        })
        .collect()
}

fn store() -> (tempfile::TempDir, Store) {
    let home = tempfile::tempdir().unwrap();
    let store = Store::builder(home.path().join("store")).registry(acpdb_hosts::registry()).open().unwrap();
    (home, store)
}

/// Requests that can be made of the sessions of a store.
fn requests(store: &Store) -> Vec<String> {
    let mut all = Vec::new();
    for name in store.stream_names().unwrap().into_iter().filter(|name| name.scope == Scope::Session) {
        let view = store.view_at(name.id, &At::Head).unwrap();
        for selection in [Selection::Current, Selection::Whole, Selection::Recorded, Selection::History] {
            let options = ExportChoices { selection, ..ExportChoices::default() };
            let body = export(&view, Format::Anthropic, &options).unwrap().bytes;
            all.push(format!("{} {selection:?}: {}", name.name, String::from_utf8(body).unwrap()));
        }
    }
    all
}

fn check(scene: &str) {
    let bytes = bytes_of(&folder().join(scene).join("recording/opencode.db")).unwrap();
    let ((_live_home, live), (_once_home, once)) = (store(), store());
    let mut moment_count = 0;
    for events in events(&bytes).into_values() {
        let mut moment = Moment::default();
        for (number, (kind, data)) in events.iter().enumerate() {
            moment.hear(kind, data);
            if number % 3 == 0 {
                moment_count += 1;
                let _ = import_bytes(&live, import::ImportFormat::Opencode, "s", &moment.document()).unwrap();
            }
        }
        for store in [&live, &once] {
            let _ = import_bytes(store, import::ImportFormat::Opencode, "s", &moment.document()).unwrap();
        }
    }
    assert!(moment_count > 10, "{scene}: {moment_count} moments");
    let (live, once) = (requests(&live), requests(&once));
    assert!(!once.is_empty());
    for (live, once) in live.iter().zip(&once) {
        assert_eq!(live, once, "{scene}");
    }
    assert_eq!(live.len(), once.len());
}

#[test]
fn opencode() {
    for scene in ["main", "more", "compact", "agent", "chat", "responses"] {
        check(&format!("opencode/{scene}"));
    }
}
