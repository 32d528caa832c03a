//! quipu-core: an audit log with a Merkle tree, synced after each append. It has no commit of several events, and finds by
//! time and attribute, not by number.

use std::collections::BTreeMap;
use std::path::Path;

use quipu_core::{AuditStore, Content, LogQuery, Order, StoreConfig, SyncPolicy, Uid};

use crate::Outcome;
use crate::compare::engine::Engine;
use crate::compare::work::{Ask, Event, Sink};

struct Quipu {
    store: AuditStore,
    actor: Uid,
}

pub(super) fn open(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let config = StoreConfig::new(folder.join("quipu")).sync_policy(SyncPolicy::Always);
    Ok(Box::new(Quipu { store: AuditStore::open(config)?, actor: Uid::generate() }))
}

impl Engine for Quipu {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        for event in events {
            let session = format!("/session-{}/chain-{}", event.session, event.chain);
            let content = Content::Text(event.body.to_owned());
            let none = BTreeMap::new();
            self.store.append_resolved_at(
                event.number,
                "user",
                self.actor,
                "CALL",
                &session,
                content,
                &[],
                none,
            )?;
        }
        Ok(())
    }

    fn has_batches(&self) -> bool {
        false
    }

    fn ask(&mut self, _: Ask, _: &mut Sink) -> Outcome<bool> {
        Ok(false)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        let query = LogQuery { order: Order::Asc, ..LogQuery::default() };
        for log in self.store.query(&query)? {
            match &log.content {
                Content::Text(text) => sink.take(text.as_bytes()),
                Content::Json(_) => return Err("not a text".into()),
            }
        }
        Ok(true)
    }
}
