//! Files of places that were lost, garbled, or left over from frames that were dropped: answers stay those of the frames.

use std::sync::Arc;

use acpdb_engine::codec::{EncodedEvent, Envelope};
use acpdb_engine::ids::{Micros, Origin, Position, Seq, StreamId};
use acpdb_engine::log::{Log, LogError, LogOptions};
use acpdb_engine::storage::{FixedClock, FixedEntropy, SimStorage, SimWorld, Storage};

use crate::support::Failure;

const FILE: &str = "log/000000000001.places";
const SEGMENT: &str = "log/000000000001.seg";
/// Where the tail page has the count of rows, and where it says that a process writes.
const COUNT: std::ops::Range<usize> = 656..672;
const BUSY: usize = 640;
const ROW_BYTES: usize = 32;

fn log_of(storage: &SimStorage, read_only: bool) -> Result<Log, LogError> {
    let clock = Arc::new(FixedClock::new(Micros(1_700_000_000_000_000), 1));
    let entropy = Arc::new(FixedEntropy::new(u64::from(storage.process())));
    let options = LogOptions { read_only, ..LogOptions::default() };
    Log::create_or_open(Arc::new(storage.clone()), clock, entropy, options).map(|(log, _)| log)
}

fn say(log: &Log, stream: u8) -> Result<(), LogError> {
    let stream = StreamId([stream; 16]);
    let envelope = Envelope { kind: 7, version: 1, stream, origin: Origin::ZERO, host_time: None };
    let event = EncodedEvent { envelope, payload: vec![5; 300], bodies: Vec::new() };
    log.append(log.prepare(&[event])?, &[]).map(drop)
}

/// A store with a commit of each of three streams.
fn begun() -> Result<SimWorld, Failure> {
    let world = SimWorld::new(1);
    let log = log_of(&world.process(1), false)?;
    (0..3).try_for_each(|stream| say(&log, stream))?;
    Ok(world)
}

fn file(world: &SimWorld, name: &str) -> Result<Vec<u8>, Failure> {
    world.file(name).ok_or_else(|| format!("no {name}").into())
}

/// The answers of a fresh handle about each stream, compared with the frames.
fn agree(world: &SimWorld, what: &str) -> Result<(), Failure> {
    let log = log_of(&world.process(9), true)?;
    let frames: Vec<_> = log.frames(Position::default(), log.head()).collect::<Result<_, _>>()?;
    for stream in (0..6).map(|stream| StreamId([stream; 16])) {
        let own = frames.iter().filter(|frame| frame.streams().any(|of| of == stream));
        let own: Vec<Position> = own.map(|frame| frame.header().position).collect();
        let (found, _) = log.frames_of(&[stream], Seq::ZERO)?;
        let found: Vec<Position> = found.iter().map(|place| place.position).collect();
        if found != own {
            return Err(format!("{what}: {stream} is at {found:?}, and at {own:?} by its frames").into());
        }
    }
    Ok(())
}

/// The file is gone, or a row of it.
fn lost() -> Result<(), Failure> {
    let world = begun()?;
    world.remove_file(FILE);
    agree(&world, "without the file")?;
    let world = begun()?;
    let mut bytes = file(&world, FILE)?;
    bytes.iter_mut().skip(ROW_BYTES).take(ROW_BYTES).for_each(|byte| *byte = 0);
    world.set_file(FILE, bytes);
    agree(&world, "a row of zeros")
}

/// Behind the counted rows stands something: the next row takes its place.
fn garbled() -> Result<(), Failure> {
    let world = begun()?;
    let log = log_of(&world.process(2), false)?;
    say(&log, 4)?;
    let mut bytes = file(&world, FILE)?;
    let known = bytes.len();
    bytes.extend([9; ROW_BYTES]);
    world.set_file(FILE, bytes.clone());
    say(&log, 5)?;
    agree(&world, "something behind the rows")?;
    let found = file(&world, FILE)?;
    let is_over = found.len() == bytes.len() && found.get(..known) == bytes.get(..known) && found != bytes;
    if is_over { Ok(()) } else { Err("a row is not in its place".into()) }
}

/// A row behind the count is of a frame that was dropped.
fn uncounted() -> Result<(), Failure> {
    let world = begun()?;
    let count = file(&world, "tail")?.get(COUNT).map(<[u8]>::to_vec).unwrap_or_default();
    let other = world.fork(2);
    say(&log_of(&other.process(2), false)?, 4)?;
    say(&log_of(&world.process(2), false)?, 5)?;
    // The row could not be written: the count is as it was, and the old row stands there.
    world.set_file(FILE, file(&other, FILE)?);
    let mut page = file(&world, "tail")?;
    page.iter_mut().skip(COUNT.start).zip(count).for_each(|(to, from)| *to = from);
    world.set_file("tail", page);
    agree(&world, "a row behind the count")
}

/// A frame is torn and its row is not: after the repair the row is on no disk.
fn repaired() -> Result<(), Failure> {
    let world = begun()?;
    let known = file(&world, FILE)?.len();
    let mut page = file(&world, "tail")?;
    let log = log_of(&world.process(2), false)?;
    let at = usize::try_from(log.head().position.offset())?;
    say(&log, 4)?;
    drop(log);
    let mut segment = file(&world, SEGMENT)?;
    segment.iter_mut().skip(at.saturating_add(200)).take(8).for_each(|byte| *byte ^= 0xff);
    world.set_file(SEGMENT, segment);
    page.iter_mut().skip(BUSY).take(1).for_each(|byte| *byte = 1);
    world.set_file("tail", page);
    world.remove_file("checkpoint");
    let log = log_of(&world.process(3), false)?;
    for seed in 0..40 {
        let image = world.fork(seed);
        image.cut_power();
        if image.file(FILE).is_some_and(|bytes| bytes.len() > known) {
            return Err("the row of a frame that was dropped is still there".into());
        }
    }
    say(&log, 5)?;
    agree(&world, "after the repair")
}

/// All of these.
///
/// # Errors
/// With the first answer that is wrong.
pub fn places_hold() -> Result<(), Failure> {
    lost()?;
    garbled()?;
    uncounted()?;
    repaired()
}
