//! Ctrl-C: nothing is left behind, and the exit code says so (130). A verb that runs until it is told ends in its own way.
//!
//! A commit that was cut off is there whole or not at all, whatever ends the process; so there is nothing to finish
//! here, only temporary folders and files to take away. While a pager shows an answer, the key is the pager's.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use acpdb_engine::locks::steady;
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals};

/// Exit code of a command that the user broke off.
const INTERRUPTED: i32 = 130;

/// What a verb wants to be done in place of ending at once.
type Stop = Box<dyn FnOnce() + Send>;

static PAGED: AtomicBool = AtomicBool::new(false);
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
static STOP: Mutex<Option<Stop>> = Mutex::new(None);
static SIGNALS: OnceLock<Handle> = OnceLock::new();

/// Has a write that would make a file longer than the process may fail as on a full disk. Unless a handler is there, the system ends the
/// process, and a host would wait for a hook's answer.
pub(crate) fn outlive_full_files() {
    // Where it cannot, the system's own way stays.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Listens from now on. Where it cannot, the system's own way stays: the process ends at once.
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
        // It is called once; a second listener would be told the same.
        let _ = SIGNALS.set(handle);
    }
}

/// Ends the process, or has the verb end it.
fn told() {
    if PAGED.load(Ordering::SeqCst) {
        return;
    }
    let stop = steady(&STOP).take();
    if let Some(stop) = stop {
        // A second signal finds nothing here, and ends the process at once.
        stop();
        return;
    }
    for path in steady(&SCRATCH).drain(..) {
        // The process ends; what cannot be removed stays. A file that has its name by now is not there under this one.
        let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    }
    std::process::exit(INTERRUPTED);
}

/// Calls `stop` at the first Ctrl-C or SIGTERM, in place of ending at once.
pub(crate) fn instead(stop: impl FnOnce() + Send + 'static) {
    *steady(&STOP) = Some(Box::new(stop));
    // Only here: other verbs end by SIGTERM as every program does.
    if let Some(signals) = SIGNALS.get() {
        // Without it SIGTERM ends the process at once, as it ends any.
        let _ = signals.add_signal(SIGTERM);
    }
}

/// A temporary folder or file that goes when the command is broken off.
pub(crate) fn scratch(path: &Path) {
    steady(&SCRATCH).push(path.to_owned());
}

/// Whether a pager has the terminal now.
pub(crate) fn paged(paged: bool) {
    PAGED.store(paged, Ordering::SeqCst);
}
