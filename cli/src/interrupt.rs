//! Ctrl-C: nothing is left behind, and the exit code tells of it (130). A verb that runs until a signal ends in its own way.
//!
//! An interrupted commit is there whole or not at all, at every end of the process. So there is nothing to finish here; only
//! temporary folders and files are removed. While a pager shows an answer, the pager gets the key.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use acpdb_engine::locks::steady;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};

/// Exit code of a command that the user interrupted.
const INTERRUPTED: i32 = 130;

/// A verb's own act in place of ending at once.
type Stop = Box<dyn FnOnce() + Send>;

static PAGED: AtomicBool = AtomicBool::new(false);
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static STOP: Mutex<Option<Stop>> = Mutex::new(None);
static SIGNALS: OnceLock<Handle> = OnceLock::new();

/// Makes a write fail, as on a full disk, if its file would become longer than the process may write. Without a handler, the system
/// ends the process, and a host would wait for a hook's answer.
pub(crate) fn outlive_full_files() {
    // If no handler can be set, the system's own act stays.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Listens for Ctrl-C from now on. If that fails, the system's own act stays: the process ends at once.
pub(crate) fn listen() {
    let Ok(mut signals) = Signals::new([SIGINT]) else { return };
    let handle = signals.handle();
    let listener = std::thread::Builder::new().name("signals".to_owned());
    let listening = listener.spawn(move || {
        for _ in signals.forever() {
            told();
        }
    });
    if listening.is_ok() {
        // This is called once; a second listener would get the same signals.
        let _ = SIGNALS.set(handle);
    }
}

/// Ends the process, or calls the verb's own act.
fn told() {
    if PAGED.load(Ordering::SeqCst) {
        return;
    }
    let stop = steady(&STOP).take();
    if let Some(stop) = stop {
        // A second signal finds no act here, and ends the process at once.
        stop();
        return;
    }
    for path in steady(&SCRATCH).drain(..) {
        // The process ends; a file that cannot be removed stays. A file that already has its final name is not at this path.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    std::process::exit(INTERRUPTED);
}

/// Calls `stop` at the first Ctrl-C or SIGTERM, in place of ending at once.
pub(crate) fn instead(stop: impl FnOnce() + Send + 'static) {
    *steady(&STOP) = Some(Box::new(stop));
    // Only here: other verbs end by SIGTERM as every program does.
    if let Some(signals) = SIGNALS.get() {
        // If this fails, SIGTERM ends the process at once, as for any program.
        let _ = signals.add_signal(SIGTERM);
    }
}

/// Names a temporary folder or file that is removed when the command is interrupted.
pub(crate) fn scratch(path: &Path) {
    steady(&SCRATCH).push(path.to_owned());
}

/// Tells whether a pager has the terminal now.
pub(crate) fn paged(paged: bool) {
    PAGED.store(paged, Ordering::SeqCst);
}
