//! Many callers at once: threads of one process, and processes. Only acpdb, since its group commit is made for them.
//!
//! The flush is a sleep of a stated length on top of a file system in memory. So the number of commits that share a flush, and
//! their time, depend on the program and not on a disk.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acpdb_engine::codec::{EncodedBody, EncodedEvent, Envelope};
use acpdb_engine::ids::{Origin, StreamId};
use acpdb_engine::log::{Log, LogOptions};
use acpdb_engine::storage::{Access, FileStorage, Storage, StoredFile, SystemClock, SystemEntropy};

use super::Compare;
use super::table::Figures;
use crate::Outcome;
use crate::measure::{float, spent, together, wall};

const LOG: &str = "acpdb log + index";
const BODY_BYTES: usize = 700;

/// Files in memory whose syncs take a set time, and are counted.
struct Slow {
    files: FileStorage,
    flush: Duration,
    count: Arc<AtomicU64>,
}

struct SlowFile {
    file: Box<dyn StoredFile>,
    flush: Duration,
    count: Arc<AtomicU64>,
}

/// Sleeps no longer than asked: without this, Linux adds up to 50 us, half a flush.
fn sleep(time: Duration) {
    thread_local! {
        static IS_SHARP: bool =
            rustix::thread::set_current_timer_slack(std::num::NonZero::new(1)).is_ok();
    }
    IS_SHARP.with(|_| ());
    std::thread::sleep(time);
}

impl Storage for Slow {
    fn path(&self, name: &str) -> PathBuf {
        self.files.path(name)
    }
    fn open(&self, name: &str, access: Access) -> io::Result<Box<dyn StoredFile>> {
        let file = self.files.open(name, access)?;
        Ok(Box::new(SlowFile { file, flush: self.flush, count: Arc::clone(&self.count) }))
    }
    fn create_dir(&self, directory: &str) -> io::Result<()> {
        self.files.create_dir(directory)
    }
    fn list(&self, directory: &str) -> io::Result<Vec<String>> {
        self.files.list(directory)
    }
    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.files.rename(from, to)
    }
    fn exchange(&self, left: &str, right: &str) -> io::Result<()> {
        self.files.exchange(left, right)
    }
    fn remove(&self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }
    fn sync_dir(&self, directory: &str) -> io::Result<()> {
        self.files.sync_dir(directory)
    }
    fn process(&self) -> u32 {
        self.files.process()
    }
}

impl StoredFile for SlowFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(bytes, offset)
    }
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.count.fetch_add(1, Ordering::Relaxed);
        sleep(self.flush);
        self.file.sync_data()
    }
    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }
    fn unlock(&self) -> io::Result<()> {
        self.file.unlock()
    }
    fn is_current(&self) -> io::Result<bool> {
        self.file.is_current()
    }
    fn is_linked(&self) -> io::Result<bool> {
        self.file.is_linked()
    }
}

fn open(folder: &Path, flush: Duration) -> Outcome<(Log, Arc<AtomicU64>)> {
    let count = Arc::new(AtomicU64::new(0));
    let storage = Slow { files: FileStorage::new(folder.join("log")), flush, count: Arc::clone(&count) };
    let (clock, entropy) = (Arc::new(SystemClock::new()), Arc::new(SystemEntropy));
    let (log, _) = Log::create_or_open(Arc::new(storage), clock, entropy, LogOptions::default())?;
    Ok((log, count))
}

/// Appends `count` commits of one event; returns the time of each, in microseconds.
fn append(log: &Log, caller: u8, count: usize) -> Outcome<Vec<f64>> {
    let body: Arc<[u8]> = vec![b'a' + caller % 26; BODY_BYTES].into();
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let (done, time) = wall(|| -> Outcome<()> {
            let envelope = Envelope {
                kind: 7,
                version: 1,
                stream: StreamId([caller; 16]),
                origin: Origin::ZERO,
                host_time: None,
            };
            let bodies = vec![EncodedBody::New { bytes: body.as_ref().into(), salt: [7; 16] }];
            let event = EncodedEvent { envelope, payload: vec![0; 64], bodies };
            let _ = log.append(log.prepare(&[event])?, &[])?;
            Ok(())
        });
        done?;
        times.push(time * 1e6);
    }
    Ok(times)
}

/// `callers` threads that append `count` commits each: commits a second, commits a flush, latencies in order.
fn threads(folder: &Path, flush: Duration, callers: u8, count: usize) -> Outcome<(f64, f64, Vec<f64>)> {
    let (log, flushes) = open(folder, flush)?;
    let _ = append(&log, 0, 20)?;
    let before = flushes.load(Ordering::Relaxed);
    let (times, took) = spent(|| {
        std::thread::scope(|scope| {
            let callers: Vec<_> = (0..callers)
                .map(|caller| {
                    let log = &log;
                    scope.spawn(move || append(log, caller, count).map_err(|error| error.to_string()))
                })
                .collect();
            let mut all = Vec::new();
            for caller in callers {
                all.extend(caller.join().map_err(|_| "a caller panicked".to_owned())??);
            }
            Ok::<_, String>(all)
        })
    });
    let mut times = times?;
    times.sort_by(f64::total_cmp);
    let flush_count = flushes.load(Ordering::Relaxed).saturating_sub(before).max(1);
    let all = float(times.len());
    Ok((all / took.wall, all / float(usize::try_from(flush_count)?), times))
}

/// `callers` processes that append `count` commits each: commits a second, from the common begin to the end of the last process.
fn processes(folder: &Path, flush: Duration, callers: u8, count: usize) -> Outcome<f64> {
    drop(open(folder, flush)?);
    let program = std::env::current_exe()?;
    let seconds = together((0..callers).map(|caller| {
        let mut command = Command::new(&program);
        command.args(["child-append", &folder.to_string_lossy(), &flush.as_micros().to_string()]);
        command.args([caller.to_string(), count.to_string()]);
        command
    }))?;
    let (log, _) = open(folder, flush)?;
    let expected = u64::from(callers) * count as u64;
    if log.head().seq.get() != expected {
        return Err(format!("{} events of {expected}", log.head().seq).into());
    }
    Ok(float(usize::from(callers) * count) / seconds)
}

/// One process of [`processes`].
pub(crate) fn child(folder: &str, flush: u64, caller: u8, count: usize) -> Outcome<()> {
    let (log, _) = open(Path::new(folder), Duration::from_micros(flush))?;
    io::Write::write_all(&mut io::stdout(), b".")?;
    io::Write::flush(&mut io::stdout())?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    let _ = append(&log, caller, count)?;
    Ok(())
}

pub(crate) fn run(compare: &Compare, figures: &mut Figures) -> Outcome<()> {
    let (rounds, share) = if compare.quick { (3, 4) } else { (5, 1) };
    let own = || tempfile::tempdir_in(&compare.scratch);
    for round in 0..rounds {
        eprintln!("callers: round {} of {rounds}", round + 1);
        for (name, flush, count) in [("100 us", 100, 2000 / share), ("4 ms", 4000, 200 / share)] {
            let folder = own()?;
            let (rate, shared, times) = threads(folder.path(), Duration::from_micros(flush), 8, count)?;
            let p99 = times.get(times.len() * 99 / 100).copied().unwrap_or(f64::NAN);
            figures.add(&format!("8 threads, flush {name}: commits a flush"), "", LOG, shared);
            figures.add(&format!("8 threads, flush {name}: commits a second"), "k/s", LOG, rate / 1e3);
            figures.add(&format!("8 threads, flush {name}: p99"), "us", LOG, p99);
        }
        let (folder, flush, count) = (own()?, Duration::from_micros(100), 1000 / share);
        let (rate, _, _) = threads(folder.path(), flush, 16, count)?;
        figures.add("16 threads, flush 100 us: commits a second", "k/s", LOG, rate / 1e3);
        let folder = own()?;
        let many = processes(folder.path(), flush, 16, count)?;
        figures.add("16 processes, flush 100 us: commits a second", "k/s", LOG, many / 1e3);
        figures.add("16 processes / 16 threads", "x", LOG, many / rate);
    }
    Ok(())
}
