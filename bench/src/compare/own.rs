//! acpdb, twice: the log with its index, which stores what it is given, and the whole store, which also understands it.
//!
//! The store's rows do more than any other row: each event is a tool call, whose parameters are parsed and classified,
//! whose origin is checked for repeats, with a step before it and its end behind it as events of their own; a chain is what superseded what.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acpdb_engine::codec::{EncodedBody, EncodedEvent, Envelope, FORMAT_VERSION, Frame, payload};
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Body, Payload, Stamp, ToolCallStarted};
use acpdb_engine::ids::{ItemId, Origin, Position, Seq, StreamId};
use acpdb_engine::index::{
    Identity, Index, IndexOptions, Indexer, IndexerOptions, LiveComparison, Lookup as _, NameKind,
};
use acpdb_engine::log::{Log, LogOptions};
use acpdb_engine::storage::{Entropy as _, FileStorage, SystemClock, SystemEntropy};
use acpdb_engine::{Atomicity, Batch, Store};

use super::engine::Engine;
use super::work::{Ask, Event, LAST_COUNT, Sink};
use crate::Outcome;

struct LogEngine {
    // Dropped in this order: the thread ends before its index closes.
    indexer: Indexer,
    index: Arc<Index>,
    log: Arc<Log>,
    salts: Vec<[u8; 16]>,
    /// Frames that were read, as the store keeps them.
    frames: HashMap<Position, Frame>,
    frame_bytes: usize,
}

/// What the store keeps of frames.
const FRAME_BYTES_MAX: usize = 16 << 20;

pub(crate) fn open_log(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let storage = Arc::new(FileStorage::new(folder.join("log-and-index")));
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let (log, _) = Log::create_or_open(storage, clock, entropy, LogOptions::default())?;
    let log = Arc::new(log);
    let index = Index::open_for(&log, IndexOptions::default()).owner().ok_or("the index is not ours")?;
    let indexer = Indexer::start(index.clone(), log.clone(), IndexerOptions::default())?;
    Ok(Box::new(LogEngine { indexer, index, log, salts: Vec::new(), frames: HashMap::new(), frame_bytes: 0 }))
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
    /// Random salts, drawn a page at a time, as the store does.
    fn salt(&mut self) -> Outcome<[u8; 16]> {
        if self.salts.is_empty() {
            let mut bytes = [0; 4096];
            SystemEntropy.fill(&mut bytes)?;
            self.salts.extend(bytes.as_chunks::<16>().0);
        }
        Ok(self.salts.pop().unwrap_or([1; 16]))
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
        let body = EncodedBody::New { bytes: event.body.as_bytes().into(), salt: self.salt()? };
        Ok(EncodedEvent { envelope, payload: bytes, bodies: vec![body] })
    }

    /// The frame of a seq; of a large one that was read before only a part.
    fn frame(&mut self, seq: Seq) -> Outcome<Frame> {
        if let Some(part) = self.log.part_holding(seq)? {
            return Ok(part);
        }
        let place = self.index.place_of(seq)?.ok_or("not indexed")?;
        self.frame_at(place.position)
    }

    fn frame_at(&mut self, position: Position) -> Outcome<Frame> {
        if let Some(frame) = self.frames.get(&position) {
            return Ok(frame.clone());
        }
        let frame = self.log.frame_at(position)?;
        self.keep(&frame);
        Ok(frame)
    }

    /// Keeps a frame that is small; of large ones the log knows what is where.
    fn keep(&mut self, frame: &Frame) {
        let bytes = frame.header().spine_bytes as usize + 512;
        if bytes > FRAME_BYTES_MAX / 512 {
            return;
        }
        if self.frame_bytes + bytes > FRAME_BYTES_MAX {
            self.frames.clear();
            self.frame_bytes = 0;
        }
        self.frame_bytes += bytes;
        self.frames.insert(frame.position(), frame.clone());
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
                // Frames of many events hold more than one of the stream; too many frames are not read.
                let places = self.index.last_frames_of(id, LAST_COUNT)?;
                let mut bodies = Vec::new();
                for place in places.iter().rev() {
                    // Of a large frame that was read before only what is of this stream.
                    let parts = match self.frames.get(&place.position) {
                        Some(frame) => vec![frame.clone()],
                        None => self.log.parts_of(place.position, &[id], Seq::ZERO)?,
                    };
                    if let [whole] = parts.as_slice()
                        && whole.is_whole()
                    {
                        self.keep(whole);
                    }
                    let own = parts.iter().flat_map(Frame::events);
                    let own =
                        own.filter(|event| event.envelope.stream == id).filter_map(|event| event.row(0));
                    let own: Vec<_> = own.collect();
                    for row in own.into_iter().rev().take(LAST_COUNT - bodies.len()) {
                        bodies.push(self.log.body(&row)?);
                    }
                    if bodies.len() >= LAST_COUNT {
                        break;
                    }
                }
                bodies.iter().rev().for_each(|body| sink.take(body));
            }
            Ask::Chain(_) => return Ok(false),
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        for frame in self.log.frames(Position::default(), self.log.head()) {
            let frame = frame?;
            for row in frame.rows() {
                sink.take(&self.log.body(&row)?);
            }
        }
        Ok(true)
    }
}

struct StoreEngine {
    store: Store,
    /// The end of each call, by number.
    seqs: Vec<Seq>,
    /// Session and newest call of each chain.
    chains: HashMap<u32, (u32, ItemId)>,
}

pub(crate) fn open_store(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let store = Store::builder(folder.join("store")).registry(acpdb_hosts::registry()).open()?;
    let mut seqs = Vec::new();
    if store.head()? > Seq(1) {
        for recorded in store.events(Seq(1), Seq::MAX)? {
            let recorded = recorded?;
            if matches!(recorded.event.payload, Payload::ToolCallFinished(_)) {
                seqs.push(recorded.seq);
            }
        }
    }
    Ok(Box::new(StoreEngine { store, seqs, chains: HashMap::new() }))
}

fn info(session: u32) -> StreamInfo {
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
    fn take(&self, seq: Seq, sink: &mut Sink) -> Outcome<()> {
        let recorded = self.store.event(seq)?.ok_or("no such event")?;
        let Payload::ToolCallFinished(finished) = &recorded.event.payload else {
            return Err("no end".into());
        };
        let part = finished.output.first().ok_or("no output")?;
        sink.take(&self.store.body(part.body.id(seq))?);
        Ok(())
    }

    fn seq(&self, number: u64) -> Outcome<Seq> {
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
        // Sessions take turns: one batch for each, in one commit.
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
            Ask::Get(number) => self.take(self.seq(number)?, sink)?,
            Ask::Last(session) => {
                let view = self.store.view(info(session).id())?;
                let ends: Vec<Seq> = {
                    let reading = view.read();
                    let state = reading.state();
                    let items = state.items(view.at()).rev().filter_map(|ix| state.item(ix, view.at()));
                    items.filter_map(|item| item.finished).take(LAST_COUNT).collect()
                };
                for seq in ends.into_iter().rev() {
                    self.take(seq, sink)?;
                }
            }
            Ask::Chain(chain) => {
                let (session, item) = *self.chains.get(&chain).ok_or("no such chain")?;
                let view = self.store.view(info(session).id())?;
                let ends: Vec<Seq> = {
                    let (reading, at) = (view.read(), view.at());
                    let state = reading.state();
                    let ix = state.items_of_event(item.seq).next().ok_or("no such item")?;
                    let members = state.chain(ix, at).map(|chain| chain.members).unwrap_or_default();
                    let items =
                        members.iter().filter_map(|member| state.items_of_event(member.item.seq).next());
                    items.filter_map(|ix| state.item(ix, at)?.finished).collect()
                };
                for seq in ends {
                    self.take(seq, sink)?;
                }
            }
            Ask::Digest(_) => return Ok(false),
        }
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        for recorded in self.store.events(Seq(1), Seq::MAX)? {
            let recorded = recorded?;
            if let Payload::ToolCallFinished(finished) = &recorded.event.payload {
                let part = finished.output.first().ok_or("no output")?;
                sink.take(&self.store.body(part.body.id(recorded.seq))?);
            }
        }
        Ok(true)
    }
}

/// Seconds to make the index of a store anew, and its events: proven, compared and in its place.
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

/// Seconds to open a store that was never closed and to ask it where its newest event is, and how many events its index
/// did not have.
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
