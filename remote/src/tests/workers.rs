//! Workers that take a store over from each other: what was acknowledged is there, and who lost the store is told so.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use acpdb_engine::ids::StoreId;
use acpdb_engine::store::{VerifyOptions, verify_store};
use acpdb_engine::verify::Verdict;
use acpdb_engine::{Entry, Error, Role, StreamInfo};

use crate::names::meta_key;
use crate::run::LogRun;
use crate::sim::{SimRemote, SimRemoteFaults};
use crate::{
    ChainError, MemoryRemote, Remote, RemoteOptions, RemotePlace, RemoteStore, RestoreOptions, ShipOptions,
    Shipper, mirror, open, restore, status, store_of,
};

fn options(folder: &Path) -> RemoteOptions {
    RemoteOptions::new(folder).store(|store| store.any_file_system().segment_bytes_max(64 << 10))
}

fn session(of: &RemoteStore) -> acpdb_engine::Session {
    of.store().session(StreamInfo::session("test", "workers"))
}

fn say(of: &RemoteStore, name: &str) -> Result<(), Error> {
    let text = format!("text of {name} ").repeat(20);
    session(of).append([Entry::message(name, Role::User, text)]).map(drop)
}

/// Ids of the messages of a store, in order.
fn said(of: &RemoteStore) -> Vec<String> {
    let view = match session(of).view() {
        // Its writers were killed before the first one.
        Err(Error::NotFound { .. }) => return Vec::new(),
        view => view.unwrap(),
    };
    let messages = view.history().into_iter().filter_map(|item| item.message.clone());
    messages.map(|message| message.to_string()).collect()
}

#[test]
fn a_worker_that_was_fenced_says_so_and_loses_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
    let id = store_of("session");
    let open_in = |name: &str| open(Arc::clone(&remote), id, options(&at(name))).unwrap();
    let none = open(Arc::clone(&remote), id, options(&at("none")).create(false));
    assert!(matches!(none, Err(ChainError::NoStore { .. })));
    let first = open_in("first");
    assert_eq!((first.store().id(), first.epoch()), (id, 1));
    say(&first, "a").unwrap();
    assert_eq!(first.there(), first.store().head().unwrap());
    let busy = open(Arc::clone(&remote), id, options(&at("first")));
    assert!(matches!(busy, Err(ChainError::Store(Error::Busy { .. }))));

    let second = open_in("second");
    assert_eq!((said(&second), second.epoch()), (vec!["a".to_owned()], 2));
    assert!(matches!(say(&first, "late"), Err(Error::Fenced { epoch: 2 })));
    assert_eq!(first.fenced(), Some(2));
    let head = first.store().head().unwrap();
    assert!(matches!(say(&first, "later"), Err(Error::Fenced { epoch: 2 })));
    assert_eq!(first.store().head().unwrap(), head, "who is known to be fenced records nothing");
    say(&second, "b").unwrap();
    drop(first);

    // Events that the folder alone has are set aside, and those of others come in.
    let first = open_in("first");
    assert_eq!(said(&first), ["a", "b"]);
    assert!(first.aside().is_some_and(|aside| aside.ends_with("aside-3")));
    say(&first, "c").unwrap();
    assert!(matches!(second.ship(), Ok(_) | Err(ChainError::Fenced { .. })));
    drop(second);
    // A folder that is behind is brought up; nothing of it is kept aside.
    let second = open_in("second");
    assert_eq!((said(&second), second.aside()), (["a", "b", "c"].map(str::to_owned).to_vec(), None));
    drop((first, second));
    let made = restore(&*remote, id, &at("restored"), RestoreOptions::default()).unwrap();
    assert_eq!(made.report.verdict(), Verdict::Sound);
}

/// Two workers find nothing and make the store, each with a secret of its own: the last one to write it left the secret of one store with the log of another.
#[test]
fn workers_that_make_a_store_at_the_same_time_make_one() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..8 {
        let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
        let id = store_of(&format!("round {round}"));
        let opened: Vec<_> = std::thread::scope(|scope| {
            let start = |name: usize| {
                let (remote, at) = (Arc::clone(&remote), folder.path().join(format!("{round}-{name}")));
                scope.spawn(move || open(remote, id, options(&at)))
            };
            (0..3).map(start).collect::<Vec<_>>().into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (mut told, mut said_to_be_there) = (0, Vec::new());
        for (number, opened) in opened.iter().enumerate() {
            let name = format!("n{number}");
            match opened {
                Ok(opened) if say(opened, &name).is_ok() => said_to_be_there.push(name),
                Ok(_) | Err(ChainError::Fenced { .. } | ChainError::Contended) => told += 1,
                Err(error) => panic!("{error}"),
            }
        }
        assert!(told < 3, "one of them has it");
        drop(opened);
        let last =
            open(Arc::clone(&remote), id, options(&folder.path().join(format!("{round}-last")))).unwrap();
        assert_eq!(said(&last), said_to_be_there);
        say(&last, "on").unwrap();
        let there = remote.get(&meta_key(id, "secret"), None).unwrap().unwrap().0;
        assert_eq!(there, std::fs::read(last.store().root().join("secret")).unwrap());
    }
}

/// Answers are lost, objects torn, requests executed late. Each text that was acknowledged is there once, whichever worker had the store.
#[test]
fn what_was_acknowledged_is_there_though_the_remote_fails() {
    for seed in 0..6 {
        let folder = tempfile::tempdir().unwrap();
        let faults =
            SimRemoteFaults { lost: 120, late: 40, twice: 40, torn: 40, ..SimRemoteFaults::default() };
        let sim = SimRemote::new(seed, faults, Arc::new(|| ()));
        let remote: Arc<dyn Remote> = Arc::new(sim.clone());
        let id = StoreId([9; 16]);
        let (mut acked, mut unshipped, mut opened_count) = (BTreeSet::new(), 0, 0);
        for round in 0..12 {
            let at = folder.path().join(format!("worker-{}", round % 3));
            let Ok(opened) = open(Arc::clone(&remote), id, options(&at)) else { continue };
            opened_count += 1;
            for number in 0..6 {
                let name = format!("r{round}-{number}");
                match say(&opened, &name) {
                    Ok(()) => _ = acked.insert(name),
                    Err(Error::Unshipped { .. }) => unshipped += 1,
                    Err(error) => panic!("seed {seed}: {error}"),
                }
            }
        }
        sim.settle();
        let last = open(Arc::clone(&remote), id, options(&folder.path().join("last"))).unwrap();
        let found = said(&last);
        let once: BTreeSet<_> = found.iter().cloned().collect();
        assert_eq!(once.len(), found.len(), "seed {seed}: each once");
        assert!(acked.is_subset(&once), "seed {seed}: {:?} lost", acked.difference(&once));
        assert!(opened_count > 3 && acked.len() > 10, "seed {seed}: {opened_count}, {unshipped}");
    }
}

#[test]
fn a_store_without_its_secret_there_can_be_read_and_not_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let store = acpdb_engine::Store::builder(at("store")).any_file_system().open().unwrap();
    let stream = store.session(StreamInfo::session("test", "workers"));
    let _ = stream.append([Entry::message("a", Role::User, "text of a ")]).unwrap();
    let remote: Arc<dyn Remote> = Arc::new(MemoryRemote::new());
    for secret in [false, true] {
        let name = |name: &str| at(&format!("{name}-{secret}"));
        let ship = ShipOptions { secret, ..ShipOptions::default() };
        let _ = Shipper::open(&at("store"), Arc::clone(&remote), ship).unwrap().ship(&mut |_| true).unwrap();
        assert_eq!(status(&*remote, store.id(), None).unwrap().unwrap().lacks_secret, !secret);
        let made = restore(&*remote, store.id(), &name("restored"), RestoreOptions::default()).unwrap();
        assert_eq!((made.head, made.report.lacks_secret_alone()), (store.head().unwrap(), !secret));
        let read =
            acpdb_engine::Store::builder(name("restored")).any_file_system().read_only().open().unwrap();
        assert_eq!(read.view(stream.id()).unwrap().history().len(), 1);
        drop(read);
        assert!(mirror(&*remote, store.id(), &name("mirror")).unwrap().is_new);
        let opened = open(Arc::clone(&remote), store.id(), options(&name("worker")));
        assert_eq!(matches!(opened, Err(ChainError::SecretMissing { .. })), !secret);
        if !secret {
            // The file of the store makes it whole.
            std::fs::copy(at("store/secret"), name("restored").join("secret")).unwrap();
            let deep = VerifyOptions { deep: true, ..VerifyOptions::default() };
            assert_eq!(verify_store(&name("restored"), &deep).unwrap().verdict(), Verdict::Sound);
        }
    }
}

#[test]
fn a_text_that_a_worker_erases_leaves_the_remote() {
    let folder = tempfile::tempdir().unwrap();
    let memory = Arc::new(MemoryRemote::new());
    let remote: Arc<dyn Remote> = Arc::clone(&memory) as Arc<dyn Remote>;
    let opened = open(remote, store_of("erased"), options(folder.path())).unwrap();
    say(&opened, "a").unwrap();
    let leaked = session(&opened).append([Entry::message("leak", Role::User, "swordfish 7319")]).unwrap();
    for number in 0..150 {
        say(&opened, &format!("n{number}")).unwrap();
    }
    let _ = opened.store().erase(leaked.items[0].unwrap(), "ada", "it leaked").unwrap();
    let _ = opened.ship().unwrap();
    for (key, object) in memory.all() {
        let Ok(run) = LogRun::decode(opened.store().id(), &object) else { continue };
        assert!(!run.bytes.windows(9).any(|window| window == b"swordfish"), "{key}");
    }
}

/// The variable that makes a process of these tests a worker: its folder.
const WORKER: &str = "ACPDB_TEST_WORKER_OF_A_REMOTE";

/// The URL at which workers meet, if it is none of a folder beside theirs: `tests/scripts/remote_servers.py` has one.
const MEETING: &str = "ACPDB_WORKER_URL";

fn number_of(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

fn process_store(number: usize) -> StoreId {
    store_of(&format!("processes {number}"))
}

/// The remote of workers whose folders are in this one.
fn meeting(folder: &Path) -> Arc<dyn Remote> {
    let url = std::env::var(MEETING).unwrap_or_else(|_| format!("file://{}/remote", folder.display()));
    Arc::new(RemotePlace::of_url(&url).unwrap().open().unwrap())
}

/// Not a test of its own: a worker that [`processes_that_are_killed_and_stopped_lose_nothing_acknowledged`] starts.
#[test]
fn worker_process() {
    let Some(folder) = std::env::var_os(WORKER).map(PathBuf::from) else { return };
    let (remote, stores) = (meeting(folder.parent().unwrap()), number_of("ACPDB_WORKER_STORES", 1));
    let mut out = std::io::stdout();
    let mut tell = |line: String| {
        out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush()).unwrap();
    };
    // Ids of processes come again.
    let drawn = crate::chain::random(&acpdb_engine::storage::SystemEntropy).unwrap();
    for round in 0.. {
        let chosen = (std::process::id() as usize + round * 7) % stores;
        let opened = match open(Arc::clone(&remote), process_store(chosen), options(&folder)) {
            Ok(opened) => opened,
            Err(ChainError::Fenced { .. } | ChainError::Contended | ChainError::Missing { .. }) => continue,
            Err(ChainError::Remote(error)) if error.may_pass() => continue,
            Err(error) => panic!("WRONG {error}"),
        };
        for number in 0..20 {
            let name = format!("s{chosen}-p{drawn:016x}-{round}-{number}");
            match say(&opened, &name) {
                Ok(()) => tell(format!("ACKED {name}")),
                Err(Error::Fenced { .. }) => {
                    tell("FENCED".to_owned());
                    break;
                }
                // A server ended: it may be there, and was not acknowledged.
                Err(Error::Unshipped { .. }) => break,
                Err(error) => panic!("WRONG {error}"),
            }
        }
    }
}

fn start(folder: PathBuf, said: &Sender<String>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "tests::workers::worker_process", "--nocapture"]).env(WORKER, folder);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let (out, said) = (child.stdout.take().unwrap(), said.clone());
    std::thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            // The test may be over.
            let _ = said.send(line);
        }
    });
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

/// Takes note of what workers say until `count` texts were acknowledged, or no more comes.
fn gather(said: &Receiver<String>, acked: &mut Vec<String>, fenced: &mut usize, count: usize) {
    let until = acked.len() + count;
    // A worker that was stopped with the lock of the folder holds up all others: then it is woken without more from them.
    while acked.len() < until {
        let Ok(line) = said.recv_timeout(Duration::from_secs(2)) else { return };
        // The harness says its own lines around those of the worker.
        if let Some((_, name)) = line.split_once("ACKED ") {
            acked.push(name.to_owned());
        }
        *fenced += usize::from(line.contains("FENCED"));
        assert!(!line.contains("WRONG"), "{line}");
    }
}

#[test]
fn processes_that_are_killed_and_stopped_lose_nothing_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: String| folder.path().join(name);
    let (sender, receiver) = channel();
    let (count, stores) = (number_of("ACPDB_WORKER_COUNT", 3), number_of("ACPDB_WORKER_STORES", 1));
    let mut workers: Vec<_> =
        (0..count).map(|number| start(at(format!("worker-{number}")), &sender)).collect();
    let (mut acked, mut fenced, mut killed) = (Vec::new(), 0, 0);
    for round in 0..number_of("ACPDB_WORKER_ROUNDS", 12) {
        gather(&receiver, &mut acked, &mut fenced, 5);
        let number = round % workers.len();
        if round % 2 == 0 {
            // It wakes up as another one has the store.
            signal(&workers[number], "-STOP");
            gather(&receiver, &mut acked, &mut fenced, 5);
            signal(&workers[number], "-CONT");
        } else {
            workers[number].kill().unwrap();
            workers[number].wait().unwrap();
            killed += 1;
            workers[number] = start(at(format!("worker-{number}")), &sender);
        }
    }
    for worker in &mut workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    drop(sender);
    for line in receiver {
        if let Some((_, name)) = line.split_once("ACKED ") {
            acked.push(name.to_owned());
        }
    }
    let (remote, mut taken_over) = (meeting(folder.path()), 0);
    for number in 0..stores {
        let told: Vec<_> = acked.iter().filter(|name| name.starts_with(&format!("s{number}-"))).collect();
        let create = !told.is_empty();
        let judge = options(&at(format!("last-{number}"))).create(create);
        let last = match open(Arc::clone(&remote), process_store(number), judge) {
            Err(ChainError::NoStore { .. }) if !create => continue,
            last => last.unwrap(),
        };
        taken_over += last.epoch();
        let found = said(&last);
        let once: BTreeSet<_> = found.iter().collect();
        assert_eq!(once.len(), found.len(), "each once");
        let lost: Vec<_> = told.iter().filter(|name| !once.contains(**name)).collect();
        assert!(lost.is_empty(), "{} of {} lost: {lost:?}", lost.len(), told.len());
        let deep = VerifyOptions { deep: true, ..VerifyOptions::default() };
        assert_eq!(verify_store(last.store().root(), &deep).unwrap().verdict(), Verdict::Sound);
    }
    // Workers of many stores seldom meet.
    assert!(killed > 0 && (fenced > 0 || stores > 1), "{killed} killed, {fenced} fenced");
    eprintln!("{} acknowledged, {killed} killed, {fenced} fenced, {taken_over} take-overs", acked.len());
}
