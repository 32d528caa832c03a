//! A program that is run in the place of this one: it has the terminal, the signals that this one gets, and the last word.
//!
//! ```text
//! the terminal's signals (Ctrl-C, Ctrl-\, a closed window)   go to both by themselves: they are the child's affair
//! signals that a process sent                                are passed on
//! the child is stopped on a terminal (Ctrl-Z)                this process stops with it, so that the shell goes on
//! ```

use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acpdb_engine::locks::steady;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGSTOP, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;

/// Signals that end a program, or that it may have a meaning for.
const PASSED_ON: [i32; 6] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2];

/// Exit codes that shells give for a program that cannot be started.
const NOT_FOUND: u8 = 127;
const NOT_STARTED: u8 = 126;
/// Added to the number of the signal that ended a program.
const BY_SIGNAL: i32 = 128;

/// How long a child that was stopped may take to be continued, if all of its group is.
const CONTINUED_WAIT: Duration = Duration::from_millis(50);

/// The exit code of a program that could not be started.
pub(crate) fn unstarted(error: &std::io::Error) -> u8 {
    if error.kind() == std::io::ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED }
}

/// The exit code of a program that ended.
pub(crate) fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(BY_SIGNAL.saturating_add(status.signal()?)));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

/// Runs a program to its end; `started` gets its number. Signals are its own from before it starts until it has ended.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn run(command: &mut Command, started: &mut dyn FnMut(u32)) -> std::io::Result<ExitStatus> {
    let mut signals = SignalsInfo::<WithOrigin>::new(PASSED_ON)?;
    let handle = signals.handle();
    let mut child = command.spawn()?;
    started(child.id());
    let living = Arc::new(Mutex::new(pid(&child)));
    let told = Arc::clone(&living);
    let passing = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for origin in &mut signals {
            // Without a process the terminal sent it, to the child as well.
            let is_sent = origin.process.is_some();
            if let (Some(child), true) = (*steady(&told), is_sent) {
                pass_on(child, origin.signal);
            }
        }
    });
    if let Some(child) = pid(&child) {
        until_it_ends(child);
    }
    let ended = {
        // The number of a child that has been waited for may be another program's.
        let mut living = steady(&living);
        *living = None;
        child.wait()
    };
    handle.close();
    // Without the thread no signal was passed on; the child has ended all the same.
    let _ = passing.map(std::thread::JoinHandle::join);
    ended
}

fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(i32::try_from(child.id()).ok()?)
}

fn pass_on(child: Pid, signal: i32) {
    if let Some(signal) = Signal::from_named_raw(signal) {
        // A child that has just ended takes no signal.
        let _ = rustix::process::kill_process(child, signal);
    }
}

/// Waits until a child has ended, without taking its status.
fn until_it_ends(child: Pid) {
    let is_ours = is_in_foreground();
    let stops = if is_ours { WaitIdOptions::STOPPED } else { WaitIdOptions::empty() };
    loop {
        let asked = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | stops;
        match rustix::process::waitid(WaitId::Pid(child), asked) {
            Ok(Some(status)) if status.stopped() => stop_with(child),
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Stops this process, as the child is, so that the shell gets the terminal; and goes on with the child.
fn stop_with(child: Pid) {
    // The shell may have continued both, this one first.
    std::thread::sleep(CONTINUED_WAIT);
    // If the news of the stop is gone, or cannot be asked for, the child was continued.
    let stopped = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
    // As above.
    if let Ok(Some(_)) = rustix::process::waitid(WaitId::Pid(child), stopped) {
        // If it fails, the terminal waits until the child goes on.
        let _ = signal_hook::low_level::raise(SIGSTOP);
        // As in `pass_on`.
        let _ = rustix::process::kill_process(child, Signal::CONT);
    }
}

/// Whether this process has the terminal.
fn is_in_foreground() -> bool {
    // Standard input that is no terminal has no foreground.
    rustix::termios::tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}
