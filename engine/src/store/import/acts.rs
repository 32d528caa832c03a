//! Acts of persons and models: their items are those of this store.

use crate::command::draft::{Bodies, EventDraft};
use crate::entry::Bytes;
use crate::error::Error;
use crate::event::{
    Body, Discarded, Distilled, Hidden, Payload, Pinned, Recorded, Restored, TaskChanged, TaskEvicted,
    TaskFields, Unpinned,
};
use crate::ids::{FactId, ItemId, Signature};
use crate::text::pattern::Pattern;

use super::super::write::CommandDrafts;
use super::StoreImporter;
use super::words::EventTexts;

/// Whether an event is an act that no host tells of.
pub(super) const fn is_act(payload: &Payload) -> bool {
    matches!(
        payload,
        Payload::Discarded(_)
            | Payload::Distilled(_)
            | Payload::Restored(_)
            | Payload::Pinned(_)
            | Payload::Unpinned(_)
            | Payload::TaskChanged(_)
            | Payload::TaskEvicted(_)
    )
}

impl StoreImporter<'_> {
    /// Records an act, if this store does not have it.
    pub(super) fn act(&mut self, recorded: &Recorded, fact: FactId) -> Result<(), Error> {
        self.flush()?;
        let stream = recorded.event.stream;
        let origin = self.store.inner.log.secret().keyed(fact);
        if self.own.contains_key(&fact) || self.here(stream, |here| here.seen(origin))?.is_some() {
            self.report.events_known += 1;
            return Ok(());
        }
        let Some(known) = self.streams.get(&stream) else { return Ok(()) };
        let opening = [known.info.clone()];
        let texts = EventTexts::new(self.source, recorded.seq);
        let patterns = self.patterns(recorded, &texts)?;
        let mut items = Vec::new();
        for item in items_of(&recorded.event.payload) {
            items.push((item, self.item(item)?));
        }
        if !items.is_empty() && items.iter().all(|(_, here)| here.is_none()) {
            self.report.acts_lost += 1;
            return Ok(());
        }
        let item = |item: ItemId| items.iter().find(|(there, _)| *there == item)?.1;
        let time = self.time(recorded);
        let decided = self.store.inner.decided(&opening, &[stream], &mut |signers| {
            let signer = signers.get(&stream);
            let pattern = |there: Signature| {
                let (_, text) = patterns.iter().find(|(known, _)| *known == there)?;
                Some(signer?.text("pattern", text))
            };
            let Some(mut draft) = drafted(&recorded.event.payload, &texts, &item, &pattern) else {
                return Ok((Vec::new(), ()));
            };
            (draft.event.origin, draft.event.host_time) = (origin, time);
            Ok((vec![CommandDrafts { stream, actor: recorded.event.stamp.actor, drafts: vec![draft] }], ()))
        });
        self.report.texts_erased += texts.erased();
        texts.error()?;
        match decided {
            Ok(((), written)) => self.report.events_new += u64::from(written.is_some()),
            Err(Error::Rejected(why)) => self.report.leave_out(format!("act {}: {why}", recorded.seq)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// The patterns behind the signatures of an act, as the other store signed them.
    fn patterns(
        &self,
        recorded: &Recorded,
        texts: &EventTexts<'_>,
    ) -> Result<Vec<(Signature, String)>, Error> {
        let targets = match &recorded.event.payload {
            Payload::Discarded(Discarded { targets, items })
            | Payload::Distilled(Distilled { targets, items })
                if items.iter().any(|hidden| hidden.pattern.is_some()) =>
            {
                *targets
            }
            _ => return Ok(Vec::new()),
        };
        let signer = self.source.inner.signer(recorded.event.stream)?;
        // Targets that are no list have no patterns to sign.
        let typed: Vec<Vec<String>> = serde_json::from_slice(&texts.bytes(&targets)).unwrap_or_default();
        let patterns = typed.iter().filter_map(|target| Pattern::parse(target.first()?));
        Ok(patterns.map(|it| (signer.text("pattern", it.normalised()), it.normalised().to_owned())).collect())
    }
}

/// The items that an act names.
fn items_of(payload: &Payload) -> Vec<ItemId> {
    match payload {
        Payload::Discarded(Discarded { items, .. }) | Payload::Distilled(Distilled { items, .. }) => {
            items.iter().map(|hidden| hidden.item).collect()
        }
        Payload::Restored(Restored { items, .. })
        | Payload::Pinned(Pinned { items })
        | Payload::Unpinned(Unpinned { items }) => items.clone(),
        _ => Vec::new(),
    }
}

/// The act as this store records it.
fn drafted(
    payload: &Payload,
    texts: &EventTexts<'_>,
    item: &dyn Fn(ItemId) -> Option<ItemId>,
    pattern: &dyn Fn(Signature) -> Option<Signature>,
) -> Option<EventDraft> {
    let mut bodies = Bodies::default();
    let mut copied = |body: &Body| bodies.add(&Bytes::from(texts.bytes(body)));
    let payload: Payload = match payload {
        Payload::Discarded(act) => {
            let targets = copied(&act.targets);
            Discarded { targets, items: hidden(&act.items, item, pattern, &mut copied) }.into()
        }
        Payload::Distilled(act) => {
            let targets = copied(&act.targets);
            Distilled { targets, items: hidden(&act.items, item, pattern, &mut copied) }.into()
        }
        Payload::Restored(act) => {
            let items = act.items.iter().filter_map(|it| item(*it)).collect();
            Restored { targets: copied(&act.targets), items }.into()
        }
        Payload::Pinned(act) => {
            Pinned { items: act.items.iter().filter_map(|it| item(*it)).collect() }.into()
        }
        Payload::Unpinned(act) => {
            Unpinned { items: act.items.iter().filter_map(|it| item(*it)).collect() }.into()
        }
        Payload::TaskChanged(act) => {
            let tasks = act.tasks.iter().map(|task| TaskFields {
                id: task.id.clone(),
                content: task.content.as_ref().map(&mut copied),
                status: task.status,
                extra: task.extra.as_ref().map(&mut copied),
                summary: task.summary.as_ref().map(&mut copied),
            });
            TaskChanged { tasks: tasks.collect(), message: act.message.clone() }.into()
        }
        Payload::TaskEvicted(act) => {
            TaskEvicted { summary: act.summary.as_ref().map(copied), ..act.clone() }.into()
        }
        _ => return None,
    };
    Some(EventDraft::of(payload, bodies))
}

fn hidden(
    items: &[Hidden],
    item: &dyn Fn(ItemId) -> Option<ItemId>,
    pattern: &dyn Fn(Signature) -> Option<Signature>,
    copied: &mut dyn FnMut(&Body) -> Body,
) -> Vec<Hidden> {
    let here = items.iter().filter_map(|hidden| {
        Some(Hidden {
            item: item(hidden.item)?,
            pattern: hidden.pattern.and_then(pattern),
            summary: hidden.summary.as_ref().map(&mut *copied),
        })
    });
    here.collect()
}
