//! Functions that several test binaries need: recordings beside the repository, an import into a store, a store in
//! plain words.
//!
//! Nothing here judges. Judges stand in the tests, and in `acpdb_engine::verify`.

use std::error::Error as StdError;
use std::fmt::Write as _;
use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::event::{Payload, Recorded};
use acpdb_engine::fold::World;
use acpdb_engine::ids::{BodyId, Seq, StreamId};
use acpdb_engine::keys::RawKeyRing;
use acpdb_engine::storage::{FixedClock, FixedEntropy};
use acpdb_engine::{Atomicity, Batch, Builder, Error, Store};
use acpdb_hosts::import::{self, ImportFormat, ImportOptions, ImportReport};

/// The error with which helpers of tests give up.
pub type Failure = Box<dyn StdError>;

/// The folder of recorded sessions, which are not part of the project: tests that read them are ignored unless asked for.
///
/// # Panics
/// If `ACPDB_RECORDINGS` names none.
#[expect(clippy::expect_used, reason = "tests: what they were asked to read is missing")]
pub fn recordings() -> PathBuf {
    let folder = std::env::var_os("ACPDB_RECORDINGS").map(PathBuf::from);
    folder.filter(|folder| folder.is_dir()).expect("ACPDB_RECORDINGS names a folder of recorded sessions")
}

pub use acpdb_engine::testing::cases;

/// The ring of the golden store that is encrypted.
#[must_use]
pub fn golden_ring() -> Arc<RawKeyRing> {
    Arc::new(RawKeyRing::new("the key of the golden store", &[0x2b; 32]))
}

/// Sets a clock that stands still and random bytes that follow from `seed`: equal acts give equal bytes.
#[must_use]
pub fn fixed(builder: Builder, seed: u64) -> Builder {
    let clock = FixedClock::new(acpdb_engine::ids::Micros(1_700_000_000_000_000), 0);
    builder.clock(Arc::new(clock)).entropy(Arc::new(FixedEntropy::new(seed)))
}

/// The outcome of an import.
#[derive(Debug)]
pub struct Imported {
    /// The importer's report on the input.
    pub report: ImportReport,
    /// Events recorded.
    pub event_count: u64,
    /// Facts that were known already.
    pub known_count: u64,
}

/// The decompressed bytes of a file.
///
/// # Errors
/// If it cannot be read.
pub fn bytes_of(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let file = BufReader::new(std::fs::File::open(path)?);
    import::decompressed(file, &import::Limits::default())?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Imports one input, a commit for each run of records of one stream.
///
/// # Errors
/// If the input is of another format, or the store refuses.
pub fn import_bytes(
    store: &Store,
    format: ImportFormat,
    name: &str,
    bytes: &[u8],
) -> Result<Imported, Failure> {
    let mut found: Vec<import::ImportBatch> = Vec::new();
    let report = import::read(format, name, bytes, &ImportOptions::default(), &mut found)?;
    let mut batches: Vec<Batch> = Vec::new();
    for batch in found {
        match batches.last_mut() {
            Some(last) if last.stream == *batch.stream => last.entries.extend(batch.entries),
            _ => batches.push(Batch { stream: (*batch.stream).clone(), entries: batch.entries }),
        }
    }
    let receipt = store.commit(&batches, Atomicity::Split)?;
    Ok(Imported { report, event_count: receipt.event_count, known_count: receipt.known_count })
}

/// Every event of a store.
///
/// # Errors
/// The first damage that is met.
pub fn events(store: &Store) -> Result<Vec<Recorded>, Error> {
    store.events(Seq(1), Seq::MAX)?.collect()
}

/// All events folded anew.
pub fn folded(events: &[Recorded]) -> World {
    let mut world = World::default();
    for recorded in events {
        world.apply(recorded);
    }
    world
}

/// The bodies that an event names and a person would want to read: texts, parameters, results.
#[must_use]
pub fn texts_of(recorded: &Recorded) -> Vec<BodyId> {
    let seq = recorded.seq;
    match &recorded.event.payload {
        Payload::MessageRecorded(it) => it.parts.iter().map(|part| part.body.id(seq)).collect(),
        Payload::MessageContinued(it) => it.parts.iter().map(|part| part.body.id(seq)).collect(),
        Payload::ItemRevised(it) => it.parts.iter().map(|part| part.body.id(seq)).collect(),
        Payload::ToolCallStarted(it) => vec![it.params.id(seq)],
        Payload::ToolCallFinished(it) => it.output.iter().map(|part| part.body.id(seq)).collect(),
        Payload::TodosReplaced(it) => vec![it.list.body.id(seq)],
        Payload::MemoryRecorded(it) => vec![it.value.id(seq)],
        Payload::Distilled(it) => {
            it.items.iter().filter_map(|it| it.summary).map(|body| body.id(seq)).collect()
        }
        Payload::Injected(it) => vec![it.text.id(seq)],
        _ => Vec::new(),
    }
}

/// One event in a line: kind, stream, payload, texts. Without seq, time and random keys, so that equal facts of two
/// stores read the same.
///
/// # Errors
/// If a body is damaged.
pub fn line_of(store: &Store, recorded: &Recorded) -> Result<String, Failure> {
    let payload = &recorded.event.payload;
    let mut line = format!("{} {} ", payload.label(), recorded.event.stream);
    match payload {
        // Its key is random, and so is every signature made with it.
        Payload::SessionOpened(opened) => write!(line, "{} {}", opened.host, opened.name)?,
        Payload::ToolCallStarted(started) => write!(line, "{} {}", started.call, started.tool)?,
        Payload::ToolCallFinished(finished) => write!(line, "{} {:?}", finished.call, finished.outcome)?,
        Payload::TurnStarted(started) => write!(line, "{:?}", started.number)?,
        Payload::PolicySet(set) => line.push_str(&set.policy),
        Payload::Discarded(act) => write!(line, "{} items", act.items.len())?,
        Payload::MemoryRecorded(memory) => write!(line, "{} {:?}", memory.id, memory.replaces)?,
        _ => {}
    }
    for body in texts_of(recorded) {
        write!(line, " {:?}", String::from_utf8_lossy(&store.body(body)?))?;
    }
    Ok(line)
}

/// The lines of all events.
///
/// # Errors
/// As [`line_of`].
pub fn lines(store: &Store) -> Result<Vec<String>, Failure> {
    events(store)?.iter().map(|recorded| line_of(store, recorded)).collect()
}

/// The context of a stream as the model sees it at `at`: a line for each item, in order.
///
/// # Errors
/// If a body is damaged.
pub fn shown(store: &Store, stream: StreamId, at: Seq) -> Result<Vec<String>, Failure> {
    use acpdb_engine::event::Face;
    let view = store.view_at(stream, &acpdb_engine::At::Seq(at))?;
    let current = view.state().current(at);
    let mut out = Vec::new();
    for ix in current {
        let id = view.state().item_id(ix).map(|id| id.to_string()).unwrap_or_default();
        let (input, output) = (view.shown(ix, Face::Input)?, view.shown(ix, Face::Output)?);
        out.push(format!("{id} {:?} {:?} | {:?} {:?}", input.state, input.text, output.state, output.text));
    }
    Ok(out)
}

/// Copies a folder with its contents.
///
/// # Errors
/// If anything cannot be read or written.
pub fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &to.join(entry.file_name()))?;
        } else {
            match std::fs::copy(entry.path(), to.join(entry.file_name())) {
                // A store that is open writes caches aside and gives them their names: one may be gone since it was listed.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                copied => _ = copied?,
            }
        }
    }
    Ok(())
}

/// A store in plain words: every event with its texts, then the context of each stream as the model sees it.
///
/// # Errors
/// If anything is damaged.
pub fn described(store: &Store) -> Result<String, Failure> {
    let mut out = String::new();
    for recorded in events(store)? {
        writeln!(out, "{} {} {}", recorded.seq, recorded.recorded_at.get(), line_of(store, &recorded)?)?;
    }
    for stream in store.stream_names()? {
        writeln!(out, "\n{} {} {:?}", stream.host, stream.name, stream.scope)?;
        for line in shown(store, stream.id, store.head()?)? {
            writeln!(out, "  {line}")?;
        }
        let view = store.view(stream.id)?;
        for edge in view.state().edges(Seq::MAX) {
            let new = edge.new.map(|item| item.to_string()).unwrap_or_default();
            writeln!(out, "  {} -> {new} {} at {} {}", edge.old, edge.rule.label(), edge.seq, edge.turn)?;
        }
    }
    Ok(out)
}

/// The digest of each stream's fold at each seq, one a line.
///
/// # Errors
/// If anything is damaged.
pub fn fold_digests(store: &Store) -> Result<String, Failure> {
    let mut out = String::new();
    let world = folded(&events(store)?);
    for stream in store.stream_names()? {
        let Some(state) = world.stream(stream.id) else { continue };
        for seq in state.first().get()..=store.head()?.get() {
            let digest = acpdb_engine::ids::Digest(state.digest(Seq(seq)));
            writeln!(out, "{} #{seq} {digest}", stream.name)?;
        }
    }
    Ok(out)
}

const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes in base64, padded.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |bits, at| bits << 8 | u32::from(*chunk.get(at).unwrap_or(&0)));
        for at in 0..4 {
            let letter = BASE64.get((bits >> (18 - 6 * at)) as usize & 63).copied().unwrap_or_default();
            text.push(if at > chunk.len() { '=' } else { letter.into() });
        }
    }
    text
}

/// The bytes of a text in base64. Other letters count for nothing.
#[must_use]
pub fn from_base64(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for value in text.bytes().filter_map(|letter| (0_u32..).zip(BASE64).find(|(_, known)| **known == letter))
    {
        bits = bits << 6 | value.0;
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}
