//! Compactions that keep messages, and those that were answered with the session's own messages: the host writes them again behind the
//! boundary.
//!
//! ```text
//! compact_boundary
//! assistant  model <synthetic>, texts and calls of before, new ids of records    the same items, in a new order
//! user       results of those calls, perhaps shortened                           at the end HostCleared with the shorter text
//! user, attachment  texts of before                                              the same items
//! anything else                                                                  ContextReplaced with that order; the fold is over
//! ```
//!
//! Taken for new they would be calls that the model never made: ten of them became seventy in one session. A call is known
//! by its id, a text by its words and its role. Reasoning is not written again.

use std::borrow::Cow;

use acpdb_engine::entry::{Bytes, Entry, ItemRef, PartEntry, fact};
use acpdb_engine::event::{ReplaceCause, Role};

use super::super::turns::message;
use super::super::{json, time};
use super::blocks::{ContentBlock, MessageBlocks};
use super::line::LineState;
use super::record::{Record, named};

/// Messages that have been written again so far.
#[derive(Default)]
pub(super) struct Fold {
    boundary: String,
    order: Vec<ItemRef>,
    /// Results that are shorter now: told once their calls are in the context again.
    shorter: Vec<Entry>,
}

impl Fold {
    pub(super) fn new(boundary: &str) -> Self {
        Self { boundary: boundary.to_owned(), ..Self::default() }
    }
}

/// The key of a text that is said again: its role and its words.
pub(super) fn said_key(role: Role, parts: &[PartEntry]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[role as u8]);
    for part in parts {
        hasher.update(blake3::hash(&part.bytes).as_bytes());
    }
    let mut key = [0; 16];
    hasher.finalize_xof().fill(&mut key);
    key
}

/// The items that a compaction kept.
pub(super) struct CompactionItems {
    anchor: String,
    items: Vec<ItemRef>,
    /// Records that it kept: later ones may hang on them.
    records: Vec<String>,
}

impl LineState {
    /// Remembers a compaction: later records hang on it, or on a record that it kept. Gives the items that it kept.
    ///
    /// It may be undone by a rewind to another record before it.
    pub(super) fn compacted(&mut self, uuid: Option<&str>, metadata: Option<&str>) -> Vec<ItemRef> {
        self.close_group();
        let group = self.push_group(uuid.unwrap_or_default());
        if let Some(uuid) = uuid {
            self.seen.insert(Box::from(uuid), Some(group));
        }
        self.fold = Some(Fold::new(uuid.unwrap_or_default()));
        let preserved = json::member(metadata, "preservedMessages");
        let segment = json::member(metadata, "preservedSegment");
        let named_by = |holder, name| named(json::member(holder, name));
        let kept: Vec<String> = json::member(preserved, "allUuids")
            .or(json::member(preserved, "uuids"))
            .and_then(json::elements)
            .map(|list| list.into_iter().filter_map(|uuid| json::owned(Some(uuid))).collect())
            .unwrap_or_default();
        let tail = named_by(segment, "tailUuid").map(Cow::into_owned);
        for uuid in kept.iter().chain(&tail) {
            self.seen.insert(Box::from(uuid.as_str()), Some(group));
        }
        let items: Vec<ItemRef> =
            kept.iter().filter_map(|uuid| self.items.get(uuid.as_str())).flatten().cloned().collect();
        let anchor = named_by(preserved, "anchorUuid").or_else(|| named_by(segment, "anchorUuid"));
        let records = kept.into_iter().chain(tail).collect();
        self.kept = anchor.map(|anchor| CompactionItems {
            anchor: anchor.into_owned(),
            items: items.clone(),
            records,
        });
        items
    }

    /// Puts the items that a compaction kept behind the record `uuid`, if that is their place.
    pub(super) fn place_kept(&mut self, uuid: &str, entries: &mut Vec<Entry>) {
        let Some(kept) = self.kept.take_if(|kept| kept.anchor == uuid) else { return };
        let group = self.seen.get(uuid).copied().flatten();
        for record in kept.records {
            self.seen.insert(Box::from(record), group);
        }
        if kept.items.is_empty() {
            return;
        }
        let mut order = self.items.get(uuid).cloned().unwrap_or_default();
        order.extend(kept.items);
        let fact = fact::ContextReplaced { cause: ReplaceCause::Host, order, tokens_before: None };
        entries.push(Entry::from(fact).origin(format!("preserved:{uuid}")));
    }

    /// Facts of a record that repeats messages from before a compaction; `None` if it does not, and the fold is over.
    pub(super) fn said_again(
        &mut self,
        record: &Record<'_>,
        uuid: &str,
        blocks: &MessageBlocks<'_>,
        model: Option<&str>,
        entries: &mut Vec<Entry>,
    ) -> Option<usize> {
        self.fold.as_ref()?;
        let is_again = match &*record.kind {
            "assistant" => json::string(model).as_deref() == Some("<synthetic>"),
            _ => !record.is_summary && blocks.list.iter().all(|block| self.is_known(block)),
        };
        if !is_again {
            self.end_fold(record, entries);
            return None;
        }
        self.finish_message(entries);
        self.hang_on_newest(uuid);
        let at = time(record.timestamp);
        let wire = entries.len();
        let kept = fact::HostRecorded { record: "rebuilt".to_owned(), about: None, raw: None };
        entries.push(Entry::from(kept).origin(format!("record:{uuid}")).at(at));
        for (index, block) in blocks.list.iter().enumerate() {
            if let Some(call) = block.call_id().and_then(|id| self.call_items.get(&*id)).cloned() {
                self.fold_in(vec![call]);
            } else if block.is("tool_result") {
                let shorter = self.shortened(uuid, block).map(|entry| entry.at(at));
                self.fold.iter_mut().for_each(|fold| fold.shorter.extend(shorter.clone()));
            } else {
                let role = if record.kind == "assistant" { Role::Assistant } else { Role::User };
                let entry = self.again(&format!("{uuid}#{index}"), role, vec![block.part()]);
                entries.extend(entry.map(|entry| entry.at(at)));
            }
        }
        Some(wire)
    }

    /// A message in a fold: the one of before, or a new one.
    pub(super) fn again(&mut self, key: &str, role: Role, parts: Vec<PartEntry>) -> Option<Entry> {
        if let Some(items) = self.said.get(&said_key(role, &parts)).cloned() {
            self.fold_in(items);
            return None;
        }
        let origin = format!("msg:{key}#0");
        let count = u32::try_from(parts.len()).unwrap_or(u32::MAX);
        self.fold_in((1..=count).map(|part| ItemRef::Origin(origin.clone(), part)).collect());
        Some(message(key, role, parts, true).origin(origin))
    }

    fn is_known(&self, block: &ContentBlock<'_>) -> bool {
        match block.result_id() {
            Some(call) => self.outputs.contains_key(&*call),
            None => self.said.contains_key(&said_key(Role::User, &[block.part()])),
        }
    }

    fn fold_in(&mut self, items: Vec<ItemRef>) {
        if let Some(fold) = &mut self.fold {
            fold.order.extend(items);
        }
    }

    /// A result that is shorter now than it was.
    fn shortened(&self, uuid: &str, block: &ContentBlock<'_>) -> Option<Entry> {
        let call = block.result_id()?.into_owned();
        let parts = block.result_parts();
        if self.outputs.get(&*call) == Some(&said_key(Role::Tool, &parts)) {
            return None;
        }
        let text: Vec<u8> = parts.iter().flat_map(|part| part.bytes.iter().copied()).collect();
        let origin = format!("shortened:{uuid}/{call}");
        let fact = fact::HostCleared { items: Vec::new(), calls: vec![call], text: Some(Bytes::from(text)) };
        Some(Entry::from(fact).origin(origin))
    }

    /// Ends a fold, if one is under way: the messages that were written again are the context now.
    fn end_fold(&mut self, record: &Record<'_>, entries: &mut Vec<Entry>) {
        let Some(fold) = self.fold.take().filter(|fold| !fold.order.is_empty()) else { return };
        let fact =
            fact::ContextReplaced { cause: ReplaceCause::Host, order: fold.order, tokens_before: None };
        let entry = Entry::from(fact).origin(format!("folded:{}", fold.boundary));
        entries.push(entry.at(time(record.timestamp)));
        entries.extend(fold.shorter);
    }
}
