//! A host's hook as a whole process, alone and beside eight others, each of which ends ten batches a second.
//!
//! ```text
//! event        recording of the session      the work of the program
//! PostToolUse  any                           nothing: it starts, reads and answers
//! PostToolBatch, UserPromptSubmit  213 kB    the recording is read, nothing in it is new
//! ```
//!
//! The others end batches in stores of their own, as other sessions of a user would. Beside each figure stands a process that only
//! starts and ends, so that a busy machine is seen.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::report::{Report, Target};
use crate::{Options, Outcome};

/// The recorded session of the demonstration.
const RECORDING: &str = include_str!("../../cli/assets/demo-session.jsonl");
const SESSION: &str = "e38a074a-4e13-5065-90bf-50e0880d827b";
const OTHER_COUNT: usize = 8;
/// Pause between two events of one of the others: a busy host calls a few tools a second.
const OTHER_PAUSE: Duration = Duration::from_millis(100);
/// Longest time of a hook that a user does not notice.
const TARGET_MS: f64 = 15.0;

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let program = std::env::current_exe()?.with_file_name("acpdb");
    let rounds = if options.quick { 100 } else { 1_000 };
    let room = Room::new(options, &program)?;
    let _ = room.ask("Stop")?;
    for others in [0, OTHER_COUNT] {
        let (stop, mut threads) = (Arc::new(AtomicBool::new(false)), Vec::new());
        for _ in 0..others {
            let (other, stop) = (Room::new(options, &program)?, Arc::clone(&stop));
            threads.push(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let _ = other.ask("PostToolBatch");
                    std::thread::sleep(OTHER_PAUSE);
                }
            }));
        }
        let told = measure(&room, report, rounds, others);
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            let _ = thread.join();
        }
        told?;
    }
    Ok(())
}

fn measure(room: &Room, report: &mut Report, rounds: usize, others: usize) -> Outcome<()> {
    let beside = if others == 0 { "alone".to_owned() } else { format!("beside {others}") };
    for event in ["--version", "PostToolUse", "PostToolBatch", "UserPromptSubmit"] {
        let mut times = Vec::with_capacity(rounds);
        for _ in 0..rounds {
            times.push(room.ask(event)?);
        }
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times.get(rounds.saturating_mul(part) / 100).copied().unwrap_or_default();
        let target = if event == "--version" { Target::None } else { Target::AtMost(TARGET_MS) };
        report.row(format!("hook: {event} {beside}, median"), at(50), "ms", Target::None);
        report.row(format!("hook: {event} {beside}, 99th of 100"), at(99), "ms", target);
    }
    Ok(())
}

/// A home, a store and a recording.
struct Room {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Room {
    fn new(options: &Options, program: &Path) -> Outcome<Self> {
        let folder = tempfile::tempdir_in(&options.scratch)?;
        std::fs::write(folder.path().join(format!("{SESSION}.jsonl")), RECORDING)?;
        Ok(Self { folder, program: program.to_owned() })
    }

    /// Milliseconds from the start of the process to its end.
    fn ask(&self, event: &str) -> Outcome<f64> {
        let folder = self.folder.path();
        let mut command = Command::new(&self.program);
        command.env_clear().env("HOME", folder).env("ACPDB_PATH", folder.join("store")).current_dir(folder);
        let words: &[&str] =
            if event == "--version" { &["--version"] } else { &["hook", "claude-code", "--mode", "suggest"] };
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
        let said = json!({"session_id": SESSION, "hook_event_name": event, "cwd": folder, "prompt": "Go on.", "prompt_id": "p",
            "transcript_path": folder.join(format!("{SESSION}.jsonl")), "tool_name": "Read", "tool_input": {},
            "tool_response": "short", "tool_use_id": "toolu_1"});
        let began = Instant::now();
        let mut child = command.spawn()?;
        if let Some(mut stdin) = child.stdin.take() {
            // A program that reads nothing may have ended already.
            let _ = stdin.write_all(said.to_string().as_bytes());
        }
        let done = child.wait_with_output()?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned().into());
        }
        Ok(began.elapsed().as_secs_f64() * 1e3)
    }
}
