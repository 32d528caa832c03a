//! Entries of hosts: the events that a commit records of them, the entries that are known already, and commits that are split.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::command::draft::EventDraft;
use crate::command::ingest_state::IngestState;
use crate::command::record::{self, Draft, Recorder};
use crate::entry::{Entry, Fact, ItemRef, PointRef, fact};
use crate::error::Error;
use crate::event::{Payload, Recorded};
use crate::failpoints::failpoint;
use crate::ids::{ItemId, Seq, StreamId};
use crate::log::PlacedCommit;
use crate::text::Signer;

use super::super::batch::{Atomicity, Batch, Receipt};
use super::super::{StoreInner, redact};
use super::filter::ErasureFilter;
use super::{Drafted, Streams};

/// Bytes of new bodies after which a splitting commit is written.
const SPLIT_BYTES: usize = 8 << 20;
/// Events after which a splitting commit is written.
const SPLIT_EVENT_COUNT: usize = 256;
/// Events after which a splitting commit is written if a turn ends there.
const SPLIT_AT_TURN_COUNT: usize = 128;

/// A fork with the seq at which it begins, or a new order with the items that it keeps, which are events of other streams; every other entry
/// as it is. `None`: one of those events is only drafted.
fn placed<'e>(entry: &'e Entry, recorders: &BTreeMap<StreamId, Recorder<'_>>) -> Option<Cow<'e, Entry>> {
    let fact = match &entry.fact {
        Fact::Forked(fork) => {
            let Some(left) = recorders.get(&fork.from) else { return Some(Cow::Borrowed(entry)) };
            let at = PointRef::Seq(left.recorded_point(&fork.at)?);
            Fact::Forked(fact::Forked { from: fork.from, at })
        }
        Fact::ContextReplaced(replaced) if others(&entry.fact).next().is_some() => {
            let mut order = Vec::with_capacity(replaced.order.len());
            for item in &replaced.order {
                match item {
                    ItemRef::Shared(stream, origin, part) => {
                        if let Some(left) = recorders.get(stream) {
                            order.extend(left.recorded_item(origin, *part)?.map(ItemRef::Id));
                        }
                    }
                    own => order.push(own.clone()),
                }
            }
            Fact::ContextReplaced(fact::ContextReplaced { order, ..replaced.clone() })
        }
        _ => return Some(Cow::Borrowed(entry)),
    };
    Some(Cow::Owned(Entry { fact, ..entry.clone() }))
}

/// The other streams whose events a fact names.
fn others(fact: &Fact) -> impl Iterator<Item = StreamId> {
    let (left, order) = match fact {
        Fact::Forked(fork) => (Some(fork.from).filter(|_| !matches!(fork.at, PointRef::Seq(_))), &[][..]),
        Fact::ContextReplaced(replaced) => (None, &replaced.order[..]),
        _ => (None, &[][..]),
    };
    let shared = order.iter().filter_map(|item| match item {
        ItemRef::Shared(stream, ..) => Some(*stream),
        _ => None,
    });
    left.into_iter().chain(shared)
}

impl StoreInner {
    /// Records `batches`, without the secrets that are known to be some. All commits have their places, in order: settling the last
    /// settles all. If nothing was to be recorded, returns the commit by which everything was known, or `None` if that one
    /// is durable. `expected`: the last seq that the caller knows of a stream; [`Error::HeadMoved`] if a commit would stand behind a later
    /// one.
    #[cfg_attr(
        feature = "tracing",
        tracing::instrument(name = "acpdb.commit", level = "debug", skip_all, err(level = "debug"))
    )]
    pub(in crate::store) fn commit(
        &self,
        batches: &[Batch],
        atomicity: Atomicity,
        expected: Option<(StreamId, Seq)>,
    ) -> Result<(Receipt, Option<PlacedCommit>), Error> {
        let clean = self.without_secrets(batches);
        let (mut receipt, placed) =
            self.commit_clean(clean.as_deref().unwrap_or(batches), atomicity, expected)?;
        // Entries about secrets that were taken out are not the caller's.
        receipt.items.truncate(batches.iter().map(|batch| batch.entries.len()).sum());
        Ok((receipt, placed))
    }

    /// Batches as they are recorded; `None`: as they are.
    fn without_secrets(&self, batches: &[Batch]) -> Option<Vec<Batch>> {
        let secret = self.log.secret();
        if self.redactor.is_none() && batches.iter().all(|batch| secret.name(&batch.stream.name).is_none()) {
            return None;
        }
        redact::settled(self.redactor.as_deref(), secret, batches)
    }

    /// Records `batches`.
    fn commit_clean(
        &self,
        batches: &[Batch],
        atomicity: Atomicity,
        expected: Option<(StreamId, Seq)>,
    ) -> Result<(Receipt, Option<PlacedCommit>), Error> {
        self.check_writable()?;
        // An id is a hash: each is made once.
        let ids: Vec<StreamId> = batches.iter().map(|batch| batch.stream.id()).collect();
        let left = batches.iter().flat_map(|batch| &batch.entries).flat_map(|entry| others(&entry.fact));
        let writers = self.writers_of(ids.iter().copied().chain(left));
        let mut streams = Streams::lock(self, &writers)?;
        let mut receipt = Receipt::default();
        let mut todo = Todo { batches, ids: &ids, atomicity, batch: 0, entry: 0 };
        let mut last = None;
        loop {
            let mut one = |streams: &mut Streams<'_>, next: Option<Seq>| {
                let filter = self.erasure_filter()?;
                let plan = self.plan(streams, todo, &filter, next);
                if plan.rest.is_some() && atomicity == Atomicity::One {
                    return Ok(None);
                }
                let CommitPlan { mut drafts, entries, known_count, rest, .. } = plan;
                if !drafts.is_empty() {
                    streams.check_head(expected)?;
                }
                filter.replace_erased(&mut drafts);
                Ok(Some(Drafted { drafts, answer: (entries, known_count, rest), until: filter.until }))
            };
            let ((entries, known_count, rest), placed) = match self.place_one(&mut streams, &mut one) {
                Ok(done) => done,
                Err(error) => {
                    // The commits before it have their places, and no one else waits for them.
                    last.map_or(Ok(()), |placed| self.settle(&placed))?;
                    return Err(error);
                }
            };
            receipt.take(&entries, known_count, placed.as_ref());
            last = placed.or(last);
            let Some(rest) = rest else { break };
            todo = rest;
        }
        // If a known fact is in a commit that is on its way, that commit is waited for.
        let known = streams.placed().filter(|_| !failpoint!(KnownTooEarly));
        Ok((receipt, last.or(known)))
    }

    /// Drafts as much as fits into one commit. `next`: the seq that the commit will begin with, if that is certain.
    fn plan<'b>(
        &self,
        streams: &mut Streams<'_>,
        todo: Todo<'b>,
        filter: &ErasureFilter,
        next: Option<Seq>,
    ) -> CommitPlan<'b> {
        let mut plan = CommitPlan { rest: Some(todo), ..CommitPlan::default() };
        for (batch, id) in todo.batches.iter().zip(todo.ids).skip(todo.batch) {
            if let Some(draft) = streams.open(self, *id, &batch.stream) {
                plan.drafts.push(draft);
            }
        }
        // The streams as they will be, where facts of this commit name each other.
        let mut ahead: BTreeMap<StreamId, IngestState> = BTreeMap::new();
        let mut observed = 0;
        while let Some(todo) = plan.rest.take() {
            let is_full = self.plan_until(streams, &ahead, todo, filter, &mut plan);
            let Some(first_seq) = next.filter(|_| plan.rest.is_some() && !is_full) else { break };
            for (index, draft) in (0_u64..).zip(&plan.drafts).skip(observed) {
                let stream = draft.event.stream;
                let now = streams.get(stream).map(|writer| &writer.ingest_state);
                // A stream without a writer is new: its ingest state is empty.
                let state = ahead.entry(stream).or_insert_with(|| now.cloned().unwrap_or_default());
                let seq = Seq(first_seq.get().saturating_add(index));
                state.observe(&Recorded { seq, recorded_at: self.now(), event: draft.event.clone() });
            }
            observed = plan.drafts.len();
        }
        plan
    }

    /// Drafts until all is drafted, the commit is full (`true`), or an entry names others of this commit.
    fn plan_until<'b>(
        &self,
        streams: &Streams<'_>,
        ahead: &BTreeMap<StreamId, IngestState>,
        todo: Todo<'b>,
        filter: &ErasureFilter,
        plan: &mut CommitPlan<'b>,
    ) -> bool {
        let fallback = Signer::new([0; 32]);
        let mut recorders: BTreeMap<StreamId, Recorder<'_>> = BTreeMap::new();
        let mut folders: BTreeMap<StreamId, Option<&str>> = BTreeMap::new();
        for (batch, id) in todo.batches.iter().zip(todo.ids) {
            folders.entry(*id).or_insert(batch.stream.cwd.as_deref());
        }
        for (id, writer) in streams.iter() {
            let signer = writer.signer.as_ref().unwrap_or(&fallback);
            let cwd = folders.get(&id).copied().flatten();
            let state = ahead.get(&id).unwrap_or(&writer.ingest_state);
            recorders.insert(id, Recorder::new(id, state, &*self.registry, signer, self.log.secret(), cwd));
        }
        let mut body_bytes: usize = 0;
        let mut first_entry = todo.entry;
        for (batch_index, (batch, id)) in todo.batches.iter().zip(todo.ids).enumerate().skip(todo.batch) {
            let id = *id;
            // Batches of one stream may alternate with others; changes of the stream are told once a commit.
            if first_entry == 0
                && plan.told.insert(id)
                && let Some(writer) = streams.get(id)
                && writer.ingest_state.opened
                && let Some(change) = record::change(&filter.told_again(&batch.stream), &writer.ingest_state)
                && let Some(recorder) = recorders.get_mut(&id)
                && let Draft::Record(drafts) = recorder.draft(&batch.stream, &change.into())
            {
                plan.drafts.extend(drafts);
            }
            for (entry_index, entry) in batch.entries.iter().enumerate().skip(first_entry) {
                let rest = Todo { batch: batch_index, entry: entry_index, ..todo };
                let event_count_max = match &entry.fact {
                    Fact::TurnStarted(_) => SPLIT_AT_TURN_COUNT,
                    _ => SPLIT_EVENT_COUNT,
                };
                let is_full = body_bytes >= SPLIT_BYTES || plan.drafts.len() >= event_count_max;
                if is_full && todo.atomicity == Atomicity::Split {
                    plan.rest = Some(rest);
                    return true;
                }
                let Some(entry) = placed(entry, &recorders) else {
                    plan.rest = Some(rest);
                    return false;
                };
                let Some(recorder) = recorders.get_mut(&id) else { break };
                match recorder.draft(&batch.stream, &filter.without_record(&entry, recorder)) {
                    Draft::Known => {
                        plan.known_count += 1;
                        plan.entries.push(None);
                    }
                    Draft::RecordOthersFirst => {
                        plan.rest = Some(rest);
                        return false;
                    }
                    Draft::Record(drafts) => {
                        body_bytes +=
                            drafts.iter().flat_map(|it| &it.bodies).map(|it| it.len()).sum::<usize>();
                        plan.record(drafts);
                    }
                }
            }
            first_entry = 0;
        }
        false
    }
}

impl Receipt {
    /// Adds a commit.
    fn take(&mut self, entries: &[Option<EntryItem>], known_count: u64, placed: Option<&PlacedCommit>) {
        self.known_count += known_count;
        // Nothing was placed: no entry has a seq.
        let first_seq = placed.map(|placed| placed.appended().first_seq).unwrap_or_default();
        self.items.extend(entries.iter().map(|entry| {
            entry.map(|stands| match stands {
                EntryItem::Draft(index) => ItemId::first(Seq(first_seq.get().saturating_add(index))),
                EntryItem::Item(item) => item,
            })
        }));
        let Some(placed) = placed else { return };
        let appended = placed.appended();
        if self.first_seq == Seq::ZERO {
            self.first_seq = first_seq;
        }
        self.last_seq = appended.last_seq();
        self.event_count += self.last_seq.get() + 1 - first_seq.get();
        self.recorded_at = appended.time;
    }
}

/// The entries that are left to record.
#[derive(Clone, Copy, Debug)]
struct Todo<'b> {
    batches: &'b [Batch],
    /// The stream of each batch.
    ids: &'b [StreamId],
    atomicity: Atomicity,
    batch: usize,
    entry: usize,
}

/// The item that an entry made.
#[derive(Clone, Copy, Debug)]
enum EntryItem {
    /// The item of a draft, by the draft's number in the commit.
    Draft(u64),
    /// An item that the entry revised.
    Item(ItemId),
}

/// One commit's worth of drafts.
#[derive(Debug, Default)]
struct CommitPlan<'b> {
    drafts: Vec<EventDraft>,
    /// For each entry, the item that stands for it; none if the entry was known.
    entries: Vec<Option<EntryItem>>,
    known_count: u64,
    /// Streams whose changes were drafted: once a commit.
    told: BTreeSet<StreamId>,
    rest: Option<Todo<'b>>,
}

impl CommitPlan<'_> {
    /// Adds the drafts of one entry.
    fn record(&mut self, drafts: Vec<EventDraft>) {
        // The event that stands for the entry bears its origin.
        let own = drafts.iter().position(|draft| !draft.event.origin.is_zero()).unwrap_or(0);
        self.entries.push(drafts.get(own).map(|draft| match &draft.event.payload {
            Payload::ItemRevised(revised) => EntryItem::Item(revised.item),
            _ => EntryItem::Draft((self.drafts.len() + own) as u64),
        }));
        self.drafts.extend(drafts);
    }
}
