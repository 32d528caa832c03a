//! `acpdb hook HOST`: one event of a host, on standard input.
//!
//! ```text
//! main: waits for the answer until the deadline ---------------> one line of JSON, exit code 0
//! worker: reads, opens the store, records, decides an answer --'
//! ```
//!
//! A host takes other exit codes for a refusal, and waits for as long as a hook takes. So every fault, a panic and a slow store end
//! in the answer that says nothing. The journal of hooks tells the fault.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use acpdb_hosts::lines::{self, LINE_BYTES_MAX};
use acpdb_live::busy::BusyMark;
use acpdb_live::hook::{self, HookOutcome};
use acpdb_live::journal::{self, JournalLine};
use acpdb_live::told::HostEventKind;
use acpdb_live::{AttachMode, Host, dialect};

use super::{Global, Output, store_path};
use crate::args::HookArgs;
use crate::failure::chained;

/// Messages of the worker about the event.
enum WorkerMessage {
    /// The event and its session.
    Told { event: String, session: String },
    /// Stores that were found and passed over.
    Passed(String),
    /// The store is asked for now.
    Asking,
    /// All is done.
    Done { answer: String, event_count: u64, error: Option<String> },
}

/// The data of the worker.
struct Work {
    host: Host,
    mode: AttachMode,
    event: Option<String>,
    global: Global,
    /// How long the store is waited for.
    wait: Duration,
}

/// Answers the host, and always ends well.
pub(crate) fn run(global: &Global, args: &HookArgs) {
    let began = Instant::now();
    let journal = journal::path(&crate::settings::variable);
    let busy = BusyMark::beside(journal.as_deref());
    let wait = busy.wait();
    let (host, mode, named) = (args.host, args.mode, args.event.clone());
    let work = Work { host, mode, event: named, global: global.apart(), wait };
    let event = args.event.clone().unwrap_or_default();
    let mut line = JournalLine { event, ..line(work.host.name()) };
    let deadline = Duration::from_millis(args.deadline);
    let (tell, told) = mpsc::channel();
    // The thread ends with the process: the next event tells again all that it had not committed by then.
    let _worker = std::thread::Builder::new().name("hook".to_owned()).spawn(move || work.run(&tell));
    let mut is_asked = false;
    let answer = loop {
        // After the deadline nothing is waited for.
        let left = deadline.saturating_sub(began.elapsed());
        match told.recv_timeout(left) {
            Ok(WorkerMessage::Told { event, session }) => (line.event, line.session) = (event, session),
            Ok(WorkerMessage::Passed(stores)) => line.passed_over = Some(stores),
            Ok(WorkerMessage::Asking) => is_asked = true,
            Ok(WorkerMessage::Done { answer, event_count, error }) => {
                (line.event_count, line.error) = (event_count, error);
                line.has_answered = answer != NOTHING;
                break answer;
            }
            Err(mpsc::RecvTimeoutError::Timeout) => {
                line.error = Some(format!("given up after {} ms", args.deadline));
                break NOTHING.to_owned();
            }
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                line.error = Some("ended by a bug; see standard error of the hook".to_owned());
                break NOTHING.to_owned();
            }
        }
    };
    let mut out = std::io::stdout().lock();
    if let Err(error) = writeln!(out, "{answer}").and_then(|()| out.flush()) {
        line.has_answered = false;
        line.error.get_or_insert_with(|| format!("the host did not take the answer: {error}"));
    }
    line.milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    // An event that needs no store says nothing about it. One lock is waited for half as long as all.
    let had = !is_asked || began.elapsed() < wait / 2 || line.error.is_none();
    if is_asked {
        busy.note(had);
    }
    if let Some(error) = line.error.as_mut().filter(|_| !had) {
        error.push_str("; until a minute is over, hooks wait for the store for 100 ms");
    }
    note(&line);
}

/// A line of the journal that begins now, for the host of this name.
pub(crate) fn line(host: &str) -> JournalLine {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    JournalLine { at: super::at::now().0, host: host.to_owned(), version, ..JournalLine::default() }
}

/// Adds a line to the journal.
fn note(line: &JournalLine) {
    if let Some(path) = journal::path(&crate::settings::variable) {
        // The journal is for people and no record; a hook has no user to tell of a failed write.
        let _ = journal::add(&path, line);
    }
}

/// Notes in the journal that a host ran a hook that this program does not understand, such as one from a newer version.
pub(crate) fn refused(why: &str) {
    let words: Vec<String> = std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let named = words.iter().skip_while(|word| *word != "hook").nth(1).map(String::as_str);
    let why = why.trim().lines().next().unwrap_or_default().trim_start_matches("error: ");
    let why = format!("{why}; was it attached by another version? attach again with this one");
    // A host that this version does not know has the name from the command line.
    let named = named.unwrap_or_default();
    let host = Host::from_name(named).map_or(named, |host| host.name());
    let line = JournalLine { error: Some(why), ..line(host) };
    note(&line);
}

/// The stores that were found and passed over, in a line; `None` if there is none.
pub(crate) fn passed_over(found: &store_path::StoreFolder) -> Option<String> {
    let lines: Vec<String> = found.passed.iter().map(store_path::PassedStore::line).collect();
    (!lines.is_empty()).then(|| lines.join("; "))
}

/// The answer that says nothing.
pub(crate) const NOTHING: &str = "{}";

impl Work {
    fn run(&self, tell: &mpsc::Sender<WorkerMessage>) {
        let news = match self.answer(tell) {
            Ok((answer, event_count, left_out)) => {
                WorkerMessage::Done { answer, event_count, error: left_out }
            }
            Err(error) => {
                WorkerMessage::Done { answer: NOTHING.to_owned(), event_count: 0, error: Some(error) }
            }
        };
        // After its deadline the hook receives nothing.
        let _ = tell.send(news);
    }

    /// The answer, the number of new events, and the reason if a part was left out.
    fn answer(&self, tell: &mpsc::Sender<WorkerMessage>) -> Result<(String, u64, Option<String>), String> {
        let mut bytes = Vec::new();
        // One byte over the limit shows that the event is too long.
        let input =
            lines::read_value(&mut std::io::stdin().lock().take(LINE_BYTES_MAX as u64 + 1), &mut bytes);
        input.map_err(|error| format!("standard input cannot be read: {error}"))?;
        let text = lines::text(&bytes).map_err(|error| format!("the event is not read: {error}"))?;
        let told =
            dialect::parse(self.host, text, self.event.as_deref()).map_err(|error| error.to_string())?;
        let news = WorkerMessage::Told { event: told.name.clone(), session: told.session.clone() };
        // After its deadline the hook receives nothing.
        let _ = tell.send(news);
        let transcript = hook::transcript(self.host, &told, &crate::settings::variable);
        let hook = hook::HookEvent {
            host: self.host,
            mode: self.mode,
            told: &told,
            transcript: transcript.as_deref(),
        };
        if hook.is_idle() {
            return Ok((dialect::render(self.host, &told, &hook.idle_answer()).to_string(), 0, None));
        }
        if let Some(unread) = &self.global.settings.unread {
            return Err(unread.clone());
        }
        let global = entered(&self.global, told.cwd.as_deref())?;
        let output = Output::new(&global);
        let found = store_path::find_unasked(&global).map_err(|failure| failure.message)?;
        if let Some(passed) = passed_over(&found) {
            // As above.
            let _ = tell.send(WorkerMessage::Passed(passed));
        }
        // As above.
        let _ = tell.send(WorkerMessage::Asking);
        let store = store_path::open_briefly(&found.folder, &global, self.wait, &output);
        let store = store.map_err(|failure| failure.message)?;
        let done: HookOutcome = hook.run(&store).map_err(|error| chained(&error))?;
        // The host waits for nothing any more, and the session has its figures.
        if told.event == HostEventKind::SessionEnded {
            crate::kept::leave_if_much(&store);
        }
        let answer = dialect::render(self.host, &told, &done.answer).to_string();
        Ok((answer, done.event_count, done.left_out))
    }
}

/// The options to open a store with, in the agent's working folder. A path that was named is of the folder in which the host runs this
/// program; only the search upwards begins in the agent's folder.
pub(super) fn entered(global: &Global, folder: Option<&Path>) -> Result<Global, String> {
    let mut global = global.apart();
    for path in [&mut global.db, &mut global.key_file].into_iter().flatten() {
        let whole = std::path::absolute(&*path);
        *path = whole.map_err(|error| format!("{} cannot be found: {error}", path.display()))?;
    }
    folder.map_or(Ok(()), enter)?;
    Ok(global)
}

/// Enters the agent's working folder. An agent may remove its own working folder, such as a work tree that it no longer needs: the
/// nearest existing folder above it still belongs to the same project.
fn enter(folder: &Path) -> Result<(), String> {
    for above in folder.ancestors().filter(|above| !above.as_os_str().is_empty()) {
        match std::env::set_current_dir(above) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(format!("the working folder {} cannot be entered: {error}", above.display()));
            }
            Ok(()) => break,
        }
    }
    // If no part of a relative path is there, the hook stays in the folder in which the host runs it.
    Ok(())
}
