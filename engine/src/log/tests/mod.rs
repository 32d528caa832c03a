//! Tests of the log on simulated storage: crashes, faults, damage, several processes.

mod basics;
mod bodies;
mod crash;
mod damage;
mod faults;
mod handles;
mod moments;
mod newer;
mod places;
mod processes;
mod seal;
mod witness;

use std::sync::Arc;
use std::time::Duration;

use super::tail::TailState;
use super::*;
use crate::codec::{
    BodyRow, DamagedPart, EncodedBody, EncodedEvent, Envelope, Frame, FramePlace, SegmentHeader,
};
use crate::ids::{Micros, Origin, Position, Seq, StoreId, StreamId};
use crate::storage::{FixedClock, FixedEntropy, RawKeyRing, SimStorage, SimWorld, Storage as _};
use crate::vault::KeyUse;

/// Small segments, so that a short script rolls.
pub(super) const SMALL: u64 = 4096 + 2600;

/// With `ACPDB_TEST_SLOW` set, everything; otherwise a share that takes seconds.
pub(super) fn share(part: usize) -> usize {
    if std::env::var_os("ACPDB_TEST_SLOW").is_some() { 1 } else { part }
}

thread_local! {
    static ENCRYPTED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// From here on this test's stores are encrypted.
pub(super) fn encrypt() {
    ENCRYPTED.set(true);
}

pub(super) fn options() -> LogOptions {
    let ring = || Arc::new(RawKeyRing::new("the ring of a test", &[7; 32]));
    let keys = if ENCRYPTED.get() { KeyUse::Make(ring()) } else { KeyUse::None };
    LogOptions {
        segment_bytes_max: SMALL,
        lock_wait: Duration::from_millis(3),
        read_only: false,
        keys,
        identity: None,
    }
}

pub(super) fn open_with(storage: &SimStorage, options: LogOptions) -> Result<(Log, Recovery), LogError> {
    let seed = u64::from(storage.process());
    let clock = Arc::new(FixedClock::new(Micros(1_000_000), 10));
    Log::create_or_open(Arc::new(storage.clone()), clock, Arc::new(FixedEntropy::new(seed)), options)
}

pub(super) fn open(storage: &SimStorage) -> Result<(Log, Recovery), LogError> {
    open_with(storage, options())
}

pub(super) fn stream(number: u8) -> StreamId {
    StreamId([number; 16])
}

/// The body of event `event` of commit `commit`: long enough to span sectors for some.
pub(super) fn text(commit: u32, event: u32) -> Vec<u8> {
    let length = [40, 700, 9][(commit % 3) as usize] + event as usize;
    let mut bytes = format!("evt-{commit}-{event}-").into_bytes();
    bytes.resize(length.max(bytes.len()), b'a' + (commit % 26) as u8);
    bytes
}

pub(super) fn event(log: &Log, commit: u32, event: u32) -> EncodedEvent {
    let envelope = Envelope {
        kind: 7,
        version: 1,
        stream: stream((commit % 3) as u8),
        origin: Origin::ZERO,
        host_time: Some(Micros(i64::from(commit))),
    };
    let body = EncodedBody::New { bytes: text(commit, event).into(), salt: log.salt().unwrap_or([9; 16]) };
    EncodedEvent { envelope, payload: format!("p-{commit}-{event}").into_bytes(), bodies: vec![body] }
}

/// Appends commit `commit` of two events.
pub(super) fn append(log: &Log, commit: u32) -> Result<Appended, LogError> {
    let events = [event(log, commit, 0), event(log, commit, 1)];
    log.append(log.prepare(&events)?, &[])
}

/// The body rows of a commit.
pub(super) fn rows_of(log: &Log, appended: &Appended) -> Vec<BodyRow> {
    log.frame_at(appended.position).unwrap().rows().collect()
}

/// The events that a log shows: each one's body, or the error in its place.
pub(super) fn listing(log: &Log) -> Vec<Result<(Seq, String), LogError>> {
    let mut shown = Vec::new();
    for frame in log.frames(Position::default(), log.head()) {
        match frame {
            Err(error) => shown.push(Err(error)),
            Ok(frame) => {
                for event in frame.events() {
                    let body = log.body(&event.row(0).unwrap());
                    let payload = String::from_utf8(event.payload.to_vec()).unwrap();
                    shown.push(body.map(|body| {
                        let body = String::from_utf8(body).unwrap();
                        (event.seq, format!("{payload} {body}"))
                    }));
                }
            }
        }
    }
    shown
}

/// The listing of a log that must be sound.
pub(super) fn sound_listing(log: &Log) -> Vec<(Seq, String)> {
    listing(log).into_iter().map(|shown| shown.expect("a sound log lists without errors")).collect()
}

pub(super) fn shown(commit: u32, event: u32) -> String {
    format!("p-{commit}-{event} {}", String::from_utf8(text(commit, event)).unwrap())
}

/// A closed store of `commits` commits in small segments.
pub(super) fn closed_store(commits: u32) -> SimWorld {
    closed_store_with(commits, SMALL)
}

pub(super) fn closed_store_with(commits: u32, segment_bytes_max: u64) -> SimWorld {
    let world = SimWorld::new(1);
    let (log, _) = open_with(&world.process(1), LogOptions { segment_bytes_max, ..options() }).unwrap();
    for commit in 0..commits {
        let _ = append(&log, commit).unwrap();
    }
    log.close().unwrap();
    world
}
