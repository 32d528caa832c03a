//! The program at work until it is stopped: writers that are acknowledged line by line, and others beside them.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::ledger::{Ledger, text};
use crate::soak::Dice;

/// So many lines at most wait in one writer's pipe.
const LINE_COUNT_MAX: u32 = 200_000;

/// The program and its store.
#[derive(Debug, Clone)]
pub struct Program {
    /// Where the program is.
    pub binary: PathBuf,
    /// Where its store is.
    pub store: PathBuf,
}

/// Counts of a crew's work.
#[derive(Debug, Default, Clone, Copy)]
pub struct Watch {
    /// Erasures that ended.
    pub erasures: u64,
    /// Other commands that ended well beside the writers.
    pub beside: u64,
}

/// A crew's task.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// From which texts follow.
    pub seed: u64,
    /// Which round of the life it is.
    pub round: u32,
    /// How many write.
    pub writer_count: u32,
    /// Whether others seal, erase, index and read meanwhile.
    pub beside: bool,
    /// Whether files are written back at moments of the system's choosing.
    pub write_back: bool,
}

impl Program {
    /// A run of it, with this store and nothing of the tester's own settings.
    #[must_use]
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.env_clear().env("ACPDB_ANY_FILE_SYSTEM", "1").env("TZ", "UTC");
        command.env("HOME", self.store.with_file_name("home")).arg("--db").arg(&self.store).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs it to its end.
    ///
    /// # Errors
    /// In words: it cannot be started, or it panicked or died.
    pub fn run(&self, arguments: &[&str]) -> Result<Output, String> {
        let done = self.command(arguments).output().map_err(|error| error.to_string())?;
        decent(arguments, done.status, &done.stderr)?;
        Ok(done)
    }

    /// Runs it, and expects exit code 0; returns its output.
    ///
    /// # Errors
    /// In words.
    pub fn succeed(&self, arguments: &[&str]) -> Result<String, String> {
        let done = self.run(arguments)?;
        let said = String::from_utf8_lossy(&done.stderr);
        if done.status.success() {
            return String::from_utf8(done.stdout).map_err(|error| error.to_string());
        }
        Err(format!("{arguments:?} ended with {}: {}", done.status, said.trim()))
    }
}

/// However it ended, it neither panicked nor was ended by a signal, unless by ours.
fn decent(arguments: &[&str], status: ExitStatus, said: &[u8]) -> Result<(), String> {
    let said = String::from_utf8_lossy(said);
    match (status.code(), status.signal()) {
        (None, Some(9)) => Ok(()),
        (Some(code), _) if code != 101 && !said.contains("panicked") => Ok(()),
        _ => Err(format!("{arguments:?} ended with {status}: {}", said.trim())),
    }
}

struct Wrote {
    sent: u32,
    acks: Vec<u64>,
}

/// Has a crew work until `stop` returns, and enters the acknowledgements that it got before `stop` set its flag.
///
/// A machine without power tells nothing, while one whose file system is shut down lives on: a sync that was under
/// way at that moment may end without an error and have saved nothing, since the journal it waited for was given up.
///
/// # Errors
/// The broken rule, in words.
pub fn work(
    program: &Program,
    task: Task,
    ledger: &mut Ledger,
    dice: &mut Dice,
    stop: impl FnOnce(&AtomicBool) -> Result<(), String>,
) -> Result<Watch, String> {
    let (ending, over) = (AtomicBool::new(false), AtomicBool::new(false));
    let mut watch = Watch::default();
    let mut children = Vec::new();
    for _ in 0..task.writer_count {
        let mut command = program.command(&["append", "--stdin", "--ack"]);
        children.push(command.stdin(Stdio::piped()).spawn().map_err(|error| error.to_string())?);
    }
    let others = Dice::new(dice.roll());
    let (outcome, wrote, others) = std::thread::scope(|scope| {
        let mut hands = Vec::new();
        for (process, child) in (0..).zip(&mut children) {
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { continue };
            let (over, ending) = (&over, &ending);
            let feed = scope.spawn(move || feed(input, task, process, over));
            hands.push((feed, scope.spawn(|| acks(output, ending))));
        }
        let others = task.beside.then(|| scope.spawn(|| beside(program, ledger, others, &ending, &over)));
        if task.write_back {
            let mut dice = Dice::new(dice.roll());
            let over = &over;
            scope.spawn(move || write_back(&program.store, &mut dice, over));
        }
        let outcome = stop(&ending);
        over.store(true, Ordering::SeqCst);
        for child in &mut children {
            // It may have ended by itself.
            let _ = child.kill();
        }
        let wrote: Vec<Wrote> = hands
            .into_iter()
            .map(|(feed, acks)| Wrote {
                sent: feed.join().unwrap_or(0),
                acks: acks.join().unwrap_or_default(),
            })
            .collect();
        let others =
            others.map(|others| others.join().unwrap_or_else(|_| Err("a thread panicked".to_owned())));
        (outcome, wrote, others)
    });
    for (process, wrote) in (0..).zip(wrote) {
        ledger.wrote((task.round, process), wrote.sent, &wrote.acks)?;
    }
    for mut child in children {
        let mut said = Vec::new();
        if let Some(mut error) = child.stderr.take() {
            error.read_to_end(&mut said).map_err(|error| error.to_string())?;
        }
        let status = child.wait().map_err(|error| error.to_string())?;
        decent(&["append"], status, &said)?;
    }
    if let Some(others) = others {
        let others = others?;
        watch.erasures += others.erasures;
        watch.beside += others.beside;
    }
    outcome.map(|()| watch)
}

/// Sends lines until the program takes no more; how many at most arrived.
fn feed(mut input: std::process::ChildStdin, task: Task, process: u32, over: &AtomicBool) -> u32 {
    for number in 0..LINE_COUNT_MAX {
        let said = text(task.seed, (task.round, process), number);
        let session = number % 3;
        let line =
            format!("{{\"session\":\"s{session}\",\"message\":{{\"role\":\"user\",\"text\":\"{said}\"}}}}\n");
        if over.load(Ordering::SeqCst) || input.write_all(line.as_bytes()).is_err() {
            return number + 1;
        }
    }
    LINE_COUNT_MAX
}

/// The seqs that were acknowledged. A line that was cut short is none. A line read after the end may have been told
/// after it, so it is left out.
fn acks(output: std::process::ChildStdout, ending: &AtomicBool) -> Vec<u64> {
    let mut output = BufReader::new(output);
    let (mut line, mut acks) = (String::new(), Vec::new());
    while output.read_line(&mut line).is_ok_and(|count| count > 0) {
        if ending.load(Ordering::SeqCst) {
            break;
        }
        acks.extend(line.strip_suffix('\n').and_then(|line| line.parse::<u64>().ok()));
        line.clear();
    }
    acks
}

/// Others, one after the other, until it is over.
fn beside(
    program: &Program,
    ledger: &mut Ledger,
    mut dice: Dice,
    ending: &AtomicBool,
    over: &AtomicBool,
) -> Result<Watch, String> {
    let mut watch = Watch::default();
    while !over.load(Ordering::SeqCst) {
        let picked = ledger.pick(&mut dice);
        let target = picked.map(|seq| format!("#{seq}")).unwrap_or_default();
        let arguments: &[&str] = match dice.below(8) {
            0..3 if picked.is_some() => &["erase", &target, "--by", "the test", "--reason", "to see it gone"],
            3 | 4 => &["doctor", "seal"],
            5 => &["doctor", "reindex"],
            6 => &["verify", "--json"],
            _ => &["log", "--last", "5", "--json"],
        };
        let erases = picked.filter(|_| arguments.first() == Some(&"erase"));
        // However the erasure ends, its event may be gone from here on.
        if let Some(seq) = erases {
            ledger.erases(seq, false);
        }
        let child = program.command(arguments).stdout(Stdio::null()).spawn();
        let (status, said) = ended(child.map_err(|error| error.to_string())?, over)?;
        decent(arguments, status, &said)?;
        match (erases, status.success() && !ending.load(Ordering::SeqCst)) {
            (Some(seq), true) => {
                ledger.erases(seq, true);
                watch.erasures += 1;
            }
            (None, true) => watch.beside += 1,
            (_, false) => {}
        }
    }
    Ok(watch)
}

/// Waits for a process; kills it if it is over before.
fn ended(mut child: Child, over: &AtomicBool) -> Result<(ExitStatus, Vec<u8>), String> {
    loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            let mut said = Vec::new();
            if let Some(mut error) = child.stderr.take() {
                error.read_to_end(&mut said).map_err(|error| error.to_string())?;
            }
            return Ok((status, said));
        }
        if over.load(Ordering::SeqCst) {
            // It may have ended by itself just now.
            let _ = child.kill();
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// Writes files back, one by one, as a kernel does when it likes: then one file on the disk may be newer than another.
fn write_back(store: &Path, dice: &mut Dice, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        let mut files: Vec<PathBuf> = ["", "log"]
            .iter()
            .filter_map(|folder| store.join(folder).read_dir().ok())
            .flat_map(|entries| entries.filter_map(|entry| Some(entry.ok()?.path())))
            .filter(|path| path.is_file())
            .collect();
        files.sort();
        if let Some(file) = files.get(dice.below(files.len())).and_then(|path| std::fs::File::open(path).ok())
        {
            // If it fails, nothing is lost.
            let _ = file.sync_data();
        }
        std::thread::sleep(Duration::from_micros(dice.roll() % 4000));
    }
}
