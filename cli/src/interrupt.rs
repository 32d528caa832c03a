//! Ctrl-C: nothing is left behind, and the exit code says so (130).
//!
//! A commit that was cut off is there whole or not at all, whatever ends the process; so there is nothing to finish
//! here, only temporary folders to take away. While a pager shows an answer, the key is the pager's.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a command that the user broke off.
const INTERRUPTED: i32 = 130;

static PAGED: AtomicBool = AtomicBool::new(false);
static SCRATCH: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Listens from now on. Where it cannot, the system's own way stays: the process ends at once.
pub(crate) fn listen() {
    let _ = ctrlc::set_handler(|| {
        if PAGED.load(Ordering::SeqCst) {
            return;
        }
        for folder in SCRATCH.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            let _ = std::fs::remove_dir_all(folder);
        }
        std::process::exit(INTERRUPTED);
    });
}

/// A temporary folder that goes when the command is broken off.
pub(crate) fn scratch(folder: &Path) {
    SCRATCH.lock().unwrap_or_else(PoisonError::into_inner).push(folder.to_owned());
}

/// Whether a pager has the terminal now.
pub(crate) fn paged(paged: bool) {
    PAGED.store(paged, Ordering::SeqCst);
}
