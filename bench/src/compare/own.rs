//! acpdb, twice: the log with its index, which stores its input, and the whole store, which also understands it.
//!
//! The store's rows do more than any other row: each event is a tool call. Its parameters are parsed and classified, its origin is
//! checked for repeats, and a step before it and its end after it are events of their own; a chain is one of superseding.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acpdb_engine::codec::{EncodedBody, EncodedEvent, Envelope, FORMAT_VERSION, Frame, payload};
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Body, Payload, Recorded, Stamp, ToolCallStarted};
use acpdb_engine::ids::{BodyId, ItemId, Origin, Position, Seq, StreamId};
use acpdb_engine::index::{
    FramePlace, Identity, Index, IndexOptions, Indexer, IndexerOptions, LiveComparison, NameKind,
};
use acpdb_engine::log::{Log, LogOptions};
use acpdb_engine::storage::{FileStorage, SystemClock, SystemEntropy};
use acpdb_engine::store::Events;
use acpdb_engine::{Atomicity, Batch, Builder, Store};

use super::engine::Engine;
use super::work::{Ask, Event, LAST_COUNT, Salts, Sink, Work};
use crate::Outcome;

struct LogEngine {
    // Dropped in this order: the thread ends before its index closes.
    indexer: Indexer,
    index: Arc<Index>,
    log: Arc<Log>,
    salts: Salts,
    /// Frames that were read, by their first seqs: as the store keeps them.
    frames: BTreeMap<Seq, Frame>,
    frame_bytes: usize,
}

/// Most bytes of frames that are kept, as in the store.
const FRAME_BYTES_MAX: usize = 16 << 20;
/// Smallest large frame, in bytes.
const LARGE_BYTES: usize = 32 << 10;
pub(crate) fn open_log(folder: &Path) -> Outcome<Box<dyn Engine>> {
    Ok(Box::new(LogEngine::open(folder)?))
}

fn stream(session: u32) -> StreamId {
    let mut id = [7; 16];
    if let Some(start) = id.first_chunk_mut() {
        *start = session.to_be_bytes();
    }
    StreamId(id)
}

fn hex(hash: [u8; 32]) -> String {
    blake3::Hash::from_bytes(hash).to_hex().to_string()
}

impl LogEngine {
    fn open(folder: &Path) -> Outcome<Self> {
        let storage = Arc::new(FileStorage::new(folder.join("log-and-index")));
        let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
        let (log, _) = Log::create_or_open(storage, clock, entropy, LogOptions::default())?;
        let log = Arc::new(log);
        let index = Index::open_for(&log, IndexOptions::default()).owner().ok_or("the index is not ours")?;
        let indexer = Indexer::start(index.clone(), log.clone(), IndexerOptions::default())?;
        Ok(Self { indexer, index, log, salts: Salts::default(), frames: BTreeMap::new(), frame_bytes: 0 })
    }

    fn encode(&mut self, event: &Event<'_>) -> Outcome<EncodedEvent> {
        let params = Body { first: 0, chunks: 1, bytes: event.body.len() as u64, ..Body::default() };
        let started = ToolCallStarted { call: hex(event.hash), params, ..ToolCallStarted::default() };
        let started: Payload = started.into();
        let (version, bytes) = payload::encode(&Stamp::default(), &started)?;
        let envelope = Envelope {
            kind: started.number(),
            version,
            stream: stream(event.session),
            origin: Origin::ZERO,
            host_time: None,
        };
        let body = EncodedBody::New { bytes: event.body.as_bytes().into(), salt: self.salts.next()? };
        Ok(EncodedEvent { envelope, payload: bytes, bodies: vec![body] })
    }

    /// The frame of a seq.
    fn frame(&mut self, seq: Seq) -> Outcome<Frame> {
        if let Some(held) = self.holding(seq) {
            return Ok(held);
        }
        let place = self.log.place_of(seq)?.ok_or("not placed")?;
        let frame = self.log.frame_at(place.position)?;
        self.keep(&frame);
        Ok(frame)
    }

    fn holding(&self, seq: Seq) -> Option<Frame> {
        let (_, frame) = self.frames.range(..=seq).next_back()?;
        (seq <= frame.last_seq()).then(|| frame.clone())
    }

    /// The frame at a place.
    fn frame_at(&mut self, place: FramePlace) -> Outcome<Frame> {
        if let Some(frame) = self.frames.get(&place.first_seq) {
            return Ok(frame.clone());
        }
        let frame = self.log.frame_at(place.position)?;
        self.keep(&frame);
        Ok(frame)
    }

    /// Keeps a frame; a large one replaces no others.
    fn keep(&mut self, frame: &Frame) {
        let bytes = usize::try_from(frame.header().content_bytes()).unwrap_or(usize::MAX);
        let is_large = bytes > LARGE_BYTES;
        let bytes = bytes + 512;
        if self.frame_bytes + bytes > FRAME_BYTES_MAX {
            if is_large {
                return;
            }
            self.frames.clear();
            self.frame_bytes = 0;
        }
        self.frame_bytes += bytes;
        self.frames.insert(frame.first_seq(), frame.clone());
    }

    /// The body of the event at `seq`, its digest checked.
    fn body(&self, frame: &Frame, seq: Seq, sink: &mut Sink) -> Outcome<()> {
        let row = frame.event(seq).and_then(|event| event.row(0)).ok_or("no body")?;
        sink.take(&self.log.body(&row)?);
        Ok(())
    }
}

impl Engine for LogEngine {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        let events: Vec<_> = events.iter().map(|event| self.encode(event)).collect::<Result<_, _>>()?;
        let _ = self.log.append(self.log.prepare(&events)?, &[])?;
        self.indexer.nudge();
        Ok(())
    }

    fn settle(&mut self) -> Outcome<()> {
        while self.index.watermark().seq < self.log.head().seq {
            self.indexer.nudge();
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        match ask {
            Ask::Get(number) => {
                let seq = Seq(number);
                let frame = self.frame(seq)?;
                self.body(&frame, seq, sink)?;
            }
            Ask::Digest(hash) => {
                let known = self.index.names(NameKind::Call, &hex(hash), false, usize::MAX)?;
                if let Some(seq) = known.iter().map(|entry| entry.seq).max() {
                    let frame = self.frame(seq)?;
                    self.body(&frame, seq, sink)?;
                }
            }
            Ask::Last(session) => {
                let id = stream(session);
                // A frame of many events holds more than one of the stream; the limit bounds the frames that are read.
                let places = self.log.last_frames_of(id, LAST_COUNT)?;
                let mut rows = Vec::new();
                for place in places.iter().rev() {
                    let frame = self.frame_at(*place)?;
                    let own = frame.events();
                    let own =
                        own.filter(|event| event.envelope.stream == id).filter_map(|event| event.row(0));
                    let own: Vec<_> = own.collect();
                    rows.extend(own.into_iter().rev().take(LAST_COUNT - rows.len()));
                    if rows.len() >= LAST_COUNT {
                        break;
                    }
                }
                rows.reverse();
                for body in self.log.bodies(&rows) {
                    sink.take(&body?);
                }
            }
            Ask::Chain(_) => return Ok(false),
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        for frame in self.log.frames(Position::default(), self.log.head()) {
            let rows: Vec<_> = frame?.rows().collect();
            for body in self.log.bodies(&rows) {
                sink.take(&body?);
            }
        }
        Ok(true)
    }
}

pub(super) struct StoreEngine {
    pub(super) store: Store,
    /// The seq of each call's end, by number.
    seqs: Vec<Seq>,
    /// Session and newest call of each chain.
    chains: HashMap<u32, (u32, ItemId)>,
}

pub(crate) fn open_store(folder: &Path) -> Outcome<Box<dyn Engine>> {
    Ok(Box::new(StoreEngine::open(folder)?))
}

impl StoreEngine {
    pub(super) fn open(folder: &Path) -> Outcome<Self> {
        Self::of(Store::builder(folder.join("store")))
    }

    /// As [`StoreEngine::open`], without sealing in the background.
    pub(super) fn open_unsealing(folder: &Path) -> Outcome<Self> {
        Self::of(Store::builder(folder.join("store")).sealing(false))
    }

    fn of(builder: Builder) -> Outcome<Self> {
        let store = builder.registry(acpdb_hosts::registry()).open()?;
        // A look that any user takes: opening alone does nearly nothing.
        let _ = store.head()?;
        Ok(Self { store, seqs: Vec::new(), chains: HashMap::new() })
    }
}

pub(super) fn info(session: u32) -> StreamInfo {
    StreamInfo::session("bench", format!("session-{session}"))
}

/// A step of the model, its call, and the result.
fn entries(event: &Event<'_>) -> [Entry; 3] {
    let step = Entry::step(format!("step-{}", event.number)).origin(format!("step-{}", event.number));
    let call = format!("call-{}", event.number);
    let params = format!(r#"{{"file_path":"/src/chain-{}.rs"}}"#, event.chain);
    let start = Entry::tool_started(&call, "Read", params).origin(format!("{call}:start"));
    let end = Entry::tool_completed(&call, event.body).origin(format!("{call}:end"));
    [step, start, end]
}

impl StoreEngine {
    fn output(recorded: &Recorded) -> Outcome<BodyId> {
        let Payload::ToolCallFinished(finished) = &recorded.event.payload else {
            return Err("no end".into());
        };
        let part = finished.output.first().ok_or("no output")?;
        Ok(part.body.id(recorded.seq))
    }

    fn take(&self, seq: Seq, sink: &mut Sink) -> Outcome<()> {
        let recorded = self.store.event(seq)?.ok_or("no such event")?;
        sink.take(&self.store.body(Self::output(&recorded)?)?);
        Ok(())
    }

    /// The outputs of all calls that end among some events.
    pub(super) fn outputs(events: Events, sink: &mut Sink) -> Outcome<()> {
        let mut ends = events.kinds(&["tool_call_finished"]);
        while let Some(end) = ends.next() {
            sink.take(&ends.body(Self::output(&end?)?)?);
        }
        Ok(())
    }

    fn give(&self, outputs: &mut Vec<BodyId>, sink: &mut Sink) -> Outcome<()> {
        for body in self.store.bodies(outputs) {
            sink.take(&body?);
        }
        outputs.clear();
        Ok(())
    }

    /// The seq of a call's end. A host keeps the seqs that it got; a process that only reads finds them once, by going through all
    /// events, and not as a part of opening.
    fn seq(&mut self, number: u64) -> Outcome<Seq> {
        if self.seqs.is_empty() {
            for recorded in self.store.events(Seq(1), Seq::MAX)? {
                let recorded = recorded?;
                if matches!(recorded.event.payload, Payload::ToolCallFinished(_)) {
                    self.seqs.push(recorded.seq);
                }
            }
        }
        Ok(*self.seqs.get(usize::try_from(number.saturating_sub(1))?).ok_or("no such event")?)
    }
}

impl Engine for StoreEngine {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        if let [event] = events {
            let receipt = self.store.append(&info(event.session), entries(event).into())?;
            self.seqs.push(receipt.last_seq);
            let item = receipt.items.get(1).copied().flatten().ok_or("a call was not recorded")?;
            self.chains.insert(event.chain, (event.session, item));
            return Ok(());
        }
        // Sessions take turns: the commit has one batch for each.
        let mut batches: Vec<Batch> = Vec::new();
        let mut places = Vec::new();
        for event in events {
            let stream = info(event.session);
            let known = batches.iter().position(|batch| batch.stream.name == stream.name);
            let batch = known.unwrap_or_else(|| {
                batches.push(Batch { stream, entries: Vec::new() });
                batches.len() - 1
            });
            let Some(batch_entries) = batches.get_mut(batch).map(|batch| &mut batch.entries) else {
                continue;
            };
            batch_entries.extend(entries(event));
            places.push((batch, batch_entries.len() - 1, event));
        }
        let receipt = self.store.commit(&batches, Atomicity::One)?;
        let starts: Vec<usize> = batches
            .iter()
            .scan(0, |next, batch| {
                *next += batch.entries.len();
                Some(*next - batch.entries.len())
            })
            .collect();
        for (batch, entry, event) in places {
            let place = starts.get(batch).copied().unwrap_or(0) + entry;
            let item = receipt.items.get(place).copied().flatten().ok_or("an end was not recorded")?;
            self.seqs.push(item.seq);
            let start = receipt.items.get(place - 1).copied().flatten().ok_or("a call was not recorded")?;
            self.chains.insert(event.chain, (event.session, start));
        }
        Ok(())
    }

    fn settle(&mut self) -> Outcome<()> {
        self.store.wait_for_index(Duration::from_secs(60));
        Ok(())
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        match ask {
            Ask::Get(number) => {
                let seq = self.seq(number)?;
                self.take(seq, sink)?;
            }
            Ask::Last(session) => {
                // A call is three events.
                let newest = self.store.newest_events(info(session).id(), 3 * LAST_COUNT)?;
                Self::outputs(newest, sink)?;
            }
            Ask::Chain(chain) => {
                let (session, item) = *self.chains.get(&chain).ok_or("no such chain")?;
                let view = self.store.view(info(session).id())?;
                let mut outputs: Vec<BodyId> = {
                    let (state, at) = (view.state(), view.at());
                    let ix = state.find(item).ok_or("no such item")?;
                    let items = state.chain_items(ix, at).into_iter();
                    let outputs = items.filter_map(|ix| Some(state.content(ix, at).pop()?.body));
                    outputs.collect()
                };
                self.give(&mut outputs, sink)?;
            }
            Ask::Digest(_) => return Ok(false),
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        Self::outputs(self.store.events(Seq(1), Seq::MAX)?, sink)?;
        Ok(true)
    }
}

/// Seconds to make the index of a store anew (proven, compared and in its place), and the number of its events.
pub(crate) fn rebuild(folder: &Path) -> Outcome<(f64, u64)> {
    let storage = Arc::new(FileStorage::new(folder.join("log-and-index")));
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let (log, _) = Log::create_or_open(storage, clock, entropy, LogOptions::default())?;
    let identity = Identity { store: log.store(), format: FORMAT_VERSION };
    let (rebuilt, spent) = crate::measure::spent(|| {
        acpdb_engine::index::reindex(&**log.storage(), identity, &log, IndexOptions::default())
    });
    let rebuilt = rebuilt?;
    if !matches!(rebuilt.live, LiveComparison::Equal) {
        return Err(format!("the index was not what the log says: {:?}", rebuilt.live).into());
    }
    Ok((spent.wall, rebuilt.event_count))
}

/// Events a second of reading the log from its beginning: with each payload validated and counted by stream; and with every digest,
/// link and body checked.
pub(crate) fn replay(folder: &Path) -> Outcome<[f64; 2]> {
    let storage = Arc::new(FileStorage::new(folder.join("log-and-index")));
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let (log, _) = Log::create_or_open(storage, clock, entropy, LogOptions::default())?;
    let count = crate::measure::float(usize::try_from(log.head().seq.get())?);
    let decoded = crate::measure::median(3, || {
        let mut streams: HashMap<StreamId, u64> = HashMap::new();
        let (done, spent) = crate::measure::spent(|| -> Outcome<()> {
            for frame in log.frames(Position::default(), log.head()) {
                for event in frame?.events() {
                    let envelope = event.envelope;
                    let (_, payload) = payload::decode(envelope.kind, envelope.version, event.payload)?;
                    if matches!(payload, Payload::ToolCallStarted(_)) {
                        *streams.entry(envelope.stream).or_default() += 1;
                    }
                }
            }
            Ok(())
        });
        done?;
        Ok(count / spent.wall)
    })?;
    let verified = crate::measure::median(3, || {
        let (report, spent) = crate::measure::spent(|| log.verify());
        if !report?.is_sound() {
            return Err("the log is damaged".into());
        }
        Ok(count / spent.wall)
    })?;
    Ok([decoded, verified])
}

/// Bytes of sealed events on disk beyond 350 bytes each, index included, in relation to their bodies. With `repeats`, three in ten
/// bodies were there before.
pub(crate) fn sealed(folder: &Path, work: &Work, count: u64, repeats: bool) -> Outcome<f64> {
    let mut engine = LogEngine::open(folder)?;
    let mut bodies = 0;
    for first in (1..=count).step_by(1000) {
        let event = |number: u64| {
            let mut event = work.event(number);
            if repeats && number > 10 && number % 10 < 3 {
                event.body = work.event(number / 2).body;
            }
            event
        };
        let events: Vec<Event<'_>> = (first..=count.min(first + 999)).map(event).collect();
        bodies += events.iter().map(|event| event.body.len() as u64).sum::<u64>();
        engine.append(&events)?;
    }
    engine.settle()?;
    engine.log.begin_segment()?;
    for number in engine.log.unsealed()? {
        let _ = engine.log.seal(number, &|| false)?;
    }
    drop(engine);
    let float = |count: u64| -> Outcome<f64> { Ok(crate::measure::float(usize::try_from(count)?)) };
    let beyond = super::stages::folder_bytes(folder)?.saturating_sub(350 * count);
    Ok(float(beyond)? / float(bodies)?)
}

/// Seconds to open a store that was never closed and to ask it for its newest event, and the number of events that its index did
/// not have.
pub(crate) fn reopen_killed(folder: &Path) -> Outcome<(f64, u64)> {
    let root = folder.join("store");
    let ((head, indexed), spent) = {
        let (result, spent) = crate::measure::spent(|| -> Outcome<_> {
            let store = Store::builder(&root).registry(acpdb_hosts::registry()).open()?;
            let _ = store.stream_names()?;
            Ok((store.head()?.get(), store.indexed_until().get()))
        });
        (result?, spent)
    };
    Ok((spent.wall, head.saturating_sub(indexed)))
}
