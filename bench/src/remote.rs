//! A store beyond its machine, as ratios to the calls of the remote itself in the same run, and as numbers of calls.
//!
//! ```text
//! worker    append -> commit here -> create there -> answered       beside: the create alone
//! shipper   a store that lives, followed                            beside: the same appends without it
//! reader    open, restore, look again                               beside: the gets alone; with 63 ms a call
//! ```
//!
//! The remote is a folder of the scratch disk. Latency is added by a pause before each call.

use std::io::Read;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use acpdb_engine::locks::steady;
use acpdb_engine::store::Durability;
use acpdb_engine::{Entry, Role, Store, StreamInfo};
use acpdb_remote::{
    Created, FolderRemote, ListedObject, ObjectTag, Remote, RemoteError, RemoteOptions, RemoteStore,
    RestoreOptions, ShipOptions, Shipper, Swapped, mirror, open, restore, store_of,
};

use crate::measure::{float, folder_bytes, middle, wall};
use crate::report::{Report, Target};
use crate::{Options, Outcome};

/// A recorded session: its lines are the texts.
const LINES: &str = include_str!("../../cli/assets/demo-session.jsonl");
/// The median of a GET of a bucket in its own region.
const FAR: Duration = Duration::from_millis(63);
/// Longest text of a message, so that a commit has the size of a step.
const TEXT_BYTES: usize = 4_000;
const STORE_COUNT: usize = 50;

/// A remote that counts its calls, pauses before each, and takes note of how long creates last.
struct CountedRemote {
    real: FolderRemote,
    pause: Duration,
    calls: AtomicUsize,
    /// Calls among them that write or list: a bucket's dear ones.
    writes: AtomicUsize,
    sent: AtomicUsize,
    creates: Mutex<Vec<f64>>,
    seconds: Mutex<f64>,
}

impl CountedRemote {
    fn new(folder: PathBuf, pause: Duration) -> Arc<Self> {
        let [calls, writes, sent] = std::array::from_fn(|_| AtomicUsize::new(0));
        Arc::new(Self {
            real: FolderRemote::new(folder),
            pause,
            calls,
            writes,
            sent,
            creates: Mutex::default(),
            seconds: Mutex::default(),
        })
    }

    fn call<T>(&self, work: impl FnOnce(&FolderRemote) -> T) -> (T, f64) {
        let begun = Instant::now();
        self.calls.fetch_add(1, SeqCst);
        std::thread::sleep(self.pause);
        let done = work(&self.real);
        let lasted = begun.elapsed();
        *steady(&self.seconds) += lasted.as_secs_f64();
        (done, lasted.as_secs_f64())
    }

    /// Calls that write or list since it was asked last.
    fn written(&self) -> f64 {
        float(self.writes.swap(0, SeqCst))
    }

    /// Calls since it was asked last, and the seconds in them.
    fn taken(&self) -> (f64, f64) {
        let seconds = std::mem::take(&mut *steady(&self.seconds));
        (float(self.calls.swap(0, SeqCst)), seconds)
    }
}

impl Remote for CountedRemote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        self.writes.fetch_add(1, SeqCst);
        self.sent.fetch_add(bytes.len(), SeqCst);
        let (done, seconds) = self.call(|real| real.create(key, bytes));
        steady(&self.creates).push(seconds);
        done
    }
    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        self.writes.fetch_add(1, SeqCst);
        self.sent.fetch_add(bytes.len(), SeqCst);
        self.call(|real| real.swap(key, bytes, was)).0
    }
    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        self.writes.fetch_add(1, SeqCst);
        self.sent.fetch_add(usize::try_from(length).unwrap_or(usize::MAX), SeqCst);
        self.call(|real| real.put(key, bytes, length)).0
    }
    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        self.call(|real| real.get(key, range)).0
    }
    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        self.writes.fetch_add(1, SeqCst);
        self.call(|real| real.list(under, after)).0
    }
    fn calls_at_once(&self) -> usize {
        if self.pause.is_zero() { 1 } else { 32 }
    }
    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.call(|real| real.delete(key)).0
    }
}

fn texts() -> impl Iterator<Item = &'static str> {
    let cut = |line: &'static str| line.get(..TEXT_BYTES).unwrap_or(line);
    LINES.lines().cycle().map(cut)
}

fn info() -> StreamInfo {
    StreamInfo::session("bench", "remote")
}

/// Appends messages one by one, and returns how long each took.
fn append(store: &Store, from: usize, count: usize) -> Outcome<Vec<f64>> {
    let mut times = Vec::with_capacity(count);
    for (number, text) in (from..).zip(texts()).take(count) {
        let entry = Entry::message(format!("m{number}"), Role::User, text);
        let (done, seconds) = wall(|| store.append(&info(), vec![entry]));
        let _receipt = done?;
        times.push(seconds);
    }
    Ok(times)
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let count = if options.quick { 200 } else { 2_000 };
    workers(options, report, count)?;
    shipping(options, report, count)?;
    reading(options, report, count)?;
    many(options, report)
}

fn opened(remote: &Arc<CountedRemote>, place: PathBuf, durability: Durability) -> Outcome<RemoteStore> {
    let options =
        RemoteOptions::new(place).store(move |builder| builder.any_file_system().durability(durability));
    let remote: Arc<dyn Remote> = Arc::<CountedRemote>::clone(remote);
    Ok(open(remote, store_of("bench"), options)?)
}

/// Appends that are acknowledged once they are at the remote.
fn workers(options: &Options, report: &mut Report, count: usize) -> Outcome<()> {
    for (named, durability, limit) in [("os", Durability::Os, 1.2), ("sync", Durability::Sync, 1.6)] {
        let folder = tempfile::tempdir_in(&options.scratch)?;
        let remote = CountedRemote::new(folder.path().join("remote"), Duration::ZERO);
        let worker = opened(&remote, folder.path().join("worker"), durability)?;
        steady(&remote.creates).clear();
        let _ = remote.written();
        let times = append(worker.store(), 0, count)?;
        let creates = std::mem::take(&mut *steady(&remote.creates));
        let writes = remote.written();
        let name = format!("acknowledged append, durability {named}, beside its own create, median");
        report.row(name, middle(times) / middle(creates), "x", Target::AtMost(limit));
        if named == "sync" {
            report.row("calls that write, a commit", writes / float(count), "", Target::AtMost(1.05));
        }
    }
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let remote = CountedRemote::new(folder.path().join("remote"), Duration::from_millis(100));
    let worker = opened(&remote, folder.path().join("worker"), Durability::Os)?;
    steady(&remote.creates).clear();
    let times = append(worker.store(), 0, 30)?;
    let creates = std::mem::take(&mut *steady(&remote.creates));
    report.row("the same with 100 ms a call", middle(times) / middle(creates), "x", Target::AtMost(1.03));
    Ok(())
}

/// Appends beside a shipper that follows, each second.
fn shipping(options: &Options, report: &mut Report, count: usize) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let store = Store::builder(folder.path().join("store")).any_file_system().open()?;
    let remote = CountedRemote::new(folder.path().join("remote"), Duration::ZERO);
    let (mut alone, mut beside) = (Vec::new(), Vec::new());
    let (mut from, mut seconds, mut writes) = (0, 0.0, 0.0);
    let _ = append(&store, from, 100)?;
    from += 100;
    for _ in 0..4 {
        alone.extend(append(&store, from, count)?);
        from += count;
        let there: Arc<dyn Remote> = Arc::<CountedRemote>::clone(&remote);
        let mut shipper = Shipper::open(store.root(), there, ShipOptions::default())?;
        let _ = shipper.ship(&mut |_| true)?;
        let _ = remote.written();
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let following = std::thread::spawn(move || {
            shipper.follow(Duration::from_secs(1), &mut |_| !over.load(SeqCst)).map(|()| shipper)
        });
        let (times, lasted) = wall(|| append(&store, from, count));
        beside.extend(times?);
        from += count;
        std::thread::sleep(Duration::from_millis(1500));
        (seconds, writes) = (seconds + lasted + 1.5, writes + remote.written());
        let _ = remote.taken();
        std::thread::sleep(Duration::from_secs(2));
        let (idle, _) = remote.taken();
        report.row("calls in 2 s without news", idle, "", Target::AtMost(0.0));
        is_over.store(true, SeqCst);
        let _shipper = following.join().map_err(|_| "the shipper panicked")??;
    }
    report.row(
        "append beside a shipper, alone = 1, median",
        middle(beside) / middle(alone),
        "x",
        Target::AtMost(1.05),
    );
    report.row(
        "calls that write a second, of a shipper that has news",
        writes / seconds,
        "",
        Target::AtMost(1.1),
    );
    let log = folder_bytes(&store.root().join("log"))?;
    let sent = float(remote.sent.load(SeqCst));
    let lies = folder_bytes(&folder.path().join("remote"))?;
    report.row("bytes that lie there, log = 1", lies / log, "x", Target::AtMost(0.35));
    report.row("bytes that were sent, lying = 1", sent / lies, "x", Target::AtMost(3.0));
    Ok(())
}

/// A store that is opened elsewhere, and restored.
fn reading(options: &Options, report: &mut Report, count: usize) -> Outcome<()> {
    for (named, packed) in [("packed", 64), ("with 63 chunks behind a pack", 63 + 64)] {
        let folder = tempfile::tempdir_in(&options.scratch)?;
        let place = folder.path().join("remote");
        let near = CountedRemote::new(place.clone(), Duration::ZERO);
        let worker = opened(&near, folder.path().join("worker"), Durability::Os)?;
        let _ = append(worker.store(), 0, packed)?;
        drop(worker);
        let far = CountedRemote::new(place, FAR);
        let (done, seconds) = wall(|| -> Outcome<f64> {
            let worker = opened(&far, folder.path().join("cold"), Durability::Os)?;
            Ok(float(worker.store().view(info().id())?.current().len()))
        });
        let _items = done?;
        report.row(format!("cold first context, {named}, 63 ms a call"), seconds, "s", Target::AtMost(0.3));
        report.row(format!("calls of that, {named}"), far.taken().0, "", Target::None);
    }
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let store =
        Store::builder(folder.path().join("store")).any_file_system().durability(Durability::Os).open()?;
    let _ = append(&store, 0, count * 4)?;
    store.close()?;
    let remote = CountedRemote::new(folder.path().join("remote"), Duration::ZERO);
    let there: Arc<dyn Remote> = Arc::<CountedRemote>::clone(&remote);
    let _ =
        Shipper::open(&folder.path().join("store"), there, ShipOptions::default())?.ship(&mut |_| true)?;
    let _ = remote.taken();
    let id = acpdb_engine::store::identity_of(&folder.path().join("store"))?.ok_or("no store")?.store;
    let (done, seconds) =
        wall(|| restore(&*remote, id, &folder.path().join("restored"), RestoreOptions::default()));
    let _ = done?;
    let (_, inside) = remote.taken();
    let bytes = folder_bytes(&folder.path().join("restored/log"))? / 1e6;
    report.row("restored and verified, its gets = 1", seconds / inside, "x", Target::None);
    report.row("restored and verified", bytes / seconds, "MB/s", Target::AtLeast(80.0));
    Ok(())
}

/// Fifty stores of which one has news.
fn many(options: &Options, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let remote = CountedRemote::new(folder.path().join("remote"), Duration::ZERO);
    let mut stores = Vec::new();
    for number in 0..STORE_COUNT {
        let at = folder.path().join(format!("store-{number}"));
        let store = Store::builder(at).any_file_system().durability(Durability::Os).open()?;
        let _ = append(&store, 0, 10)?;
        store.sync()?;
        stores.push(store);
    }
    let ship = |store: &Store| -> Outcome<()> {
        let there: Arc<dyn Remote> = Arc::<CountedRemote>::clone(&remote);
        let _ = Shipper::open(store.root(), there, ShipOptions::default())?.ship(&mut |_| true)?;
        Ok(())
    };
    let look = || -> Outcome<usize> {
        let mut new = 0;
        for store in acpdb_remote::stores(&*remote)? {
            new += usize::from(
                mirror(&*remote, store, &folder.path().join("mirrors").join(store.to_hex()))?.is_new,
            );
        }
        Ok(new)
    };
    stores.iter().try_for_each(ship)?;
    let (first, seconds) = wall(look);
    report.row(
        format!("{STORE_COUNT} stores looked at for the first time ({} new)", first?),
        seconds,
        "s",
        Target::None,
    );
    let last = stores.last().ok_or("no store")?;
    let _ = append(last, 10, 10)?;
    last.sync()?;
    ship(last)?;
    let _ = remote.taken();
    let (again, seconds) = wall(look);
    report.row(format!("the same with news in {}", again?), seconds, "s", Target::AtMost(2.0));
    report.row("calls of that, a store", remote.taken().0 / float(STORE_COUNT), "", Target::AtMost(3.5));
    Ok(())
}
