//! Importing as a user does: the program as a whole process, on the clock, with its peak of memory.
//!
//! Beside the recorded sessions, it reads a database as opencode keeps one, of 100,000 parts in 200 sessions, made here
//! (`--no-default-features` leaves it out, since it takes `SQLite`'s library).

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::measure::{self, float, middle};
use crate::report::{Report, Target};
use crate::{Options, Outcome};

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let program = std::env::current_exe()?.with_file_name("acpdb");
    if !program.exists() {
        let program = program.display();
        return Err(
            format!("{program} is not there; build it with cargo build --release -p acpdb-cli").into()
        );
    }
    let rounds = if options.quick { 1 } else { 7 };
    if options.data.is_dir() {
        let bytes: usize = crate::import::inputs(&options.data)?.iter().map(crate::import::Input::size).sum();
        let (seconds, peak) = imported(&program, &options.data, &options.scratch, rounds)?;
        let rate = float(bytes) / 1e6 / seconds;
        report.row("import by the program, on the clock", rate, "MB/s", Target::AtLeast(100.0));
        report.row("import by the program, peak memory", peak, "MB", Target::AtMost(60.0));
    }
    #[cfg(feature = "peers")]
    database(options, &program, rounds, report)?;
    Ok(())
}

#[cfg(feature = "peers")]
fn database(options: &Options, program: &Path, rounds: usize, report: &mut Report) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let path = folder.path().join("opencode.db");
    let parts = opencode::make(&path, if options.quick { 20 } else { 200 })?;
    let (seconds, peak) = imported(program, &path, &options.scratch, rounds)?;
    let rate = float(parts) / seconds;
    report.row(
        format!("import by the program, opencode's database of {parts} parts"),
        rate,
        "parts/s",
        Target::AtLeast(50_000.0),
    );
    report.row("import by the program, that database, peak memory", peak, "MB", Target::None);
    Ok(())
}

/// Median of seconds on the clock, and of the peak of memory in MB, of imports into new stores.
fn imported(program: &Path, what: &Path, scratch: &Path, rounds: usize) -> Outcome<(f64, f64)> {
    let (mut seconds, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let folder = tempfile::tempdir_in(scratch)?;
        let mut command = Command::new(program);
        command.arg("--db").arg(folder.path().join("store")).arg("import").arg(what);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let (ended, spent) = measure::spent(|| watched(&mut command));
        seconds.push(spent.wall);
        peaks.push(ended?);
    }
    Ok((middle(seconds), middle(peaks)))
}

/// Runs a program to its end; returns its peak of memory, as far as it was seen.
fn watched(command: &mut Command) -> Outcome<f64> {
    let mut child = command.spawn()?;
    let mut peak = f64::NAN;
    loop {
        if let Some(seen) = measure::peak_mb_of(&child.id().to_string()) {
            peak = seen;
        }
        match child.try_wait()? {
            // The program skips files of no known format, and its status says so.
            Some(_) => return Ok(peak),
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// A database in the form of opencode 1.x.
#[cfg(feature = "peers")]
mod opencode {
    use std::path::Path;

    use rusqlite::{Connection, Transaction, params};
    use serde_json::{Value, json};

    use crate::Outcome;

    /// Requests of a session; each is a message of four parts.
    const REQUEST_COUNT: usize = 125;
    /// Requests from one prompt to the next.
    const TURN_LENGTH: usize = 6;
    const BEGAN: i64 = 1_767_225_600_000;

    /// Makes a database of `sessions` sessions; returns the number of parts.
    pub(super) fn make(path: &Path, sessions: usize) -> Outcome<usize> {
        let mut database = Connection::open(path)?;
        database.execute_batch(
            "CREATE TABLE session(id TEXT PRIMARY KEY, directory TEXT, title TEXT, version TEXT, time_created INTEGER, time_updated INTEGER);
             CREATE TABLE message(id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);
             CREATE TABLE part(id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, time_created INTEGER, time_updated INTEGER, data TEXT);",
        )?;
        let transaction = database.transaction()?;
        let mut made = Made { transaction: &transaction, time: BEGAN, messages: 0, parts: 0 };
        for number in 0..sessions {
            made.session(number)?;
        }
        let parts = made.parts;
        transaction.commit()?;
        Ok(parts)
    }

    struct Made<'t> {
        transaction: &'t Transaction<'t>,
        time: i64,
        messages: usize,
        parts: usize,
    }

    impl Made<'_> {
        fn session(&mut self, number: usize) -> Outcome<()> {
            let (id, directory) = (format!("ses_{number:08}"), format!("/src/app{}", number % 9));
            let _ = self
                .transaction
                .prepare_cached("INSERT INTO session VALUES(?, ?, 'New session', '1.18.33', ?, ?)")?
                .execute(params![id, directory, self.time, self.time])?;
            for request in 0..REQUEST_COUNT {
                if request % TURN_LENGTH == 0 {
                    let prompt =
                        self.message(&id, &json!({"role": "user", "time": {"created": self.time}}))?;
                    self.part(&id, &prompt, &json!({"type": "text", "text": text(200, self.parts)}))?;
                }
                self.request(&id, request)?;
            }
            Ok(())
        }

        fn request(&mut self, session: &str, request: usize) -> Outcome<()> {
            let tokens =
                json!({"input": 100, "output": 50, "reasoning": 0, "cache": {"read": 1000, "write": 10}});
            let message = json!({
                "role": "assistant", "modelID": "m", "providerID": "p", "tokens": tokens, "cost": 0.1,
                "time": {"created": self.time, "completed": self.time + 900},
            });
            let message = self.message(session, &message)?;
            self.part(session, &message, &json!({"type": "step-start"}))?;
            self.part(session, &message, &json!({"type": "text", "text": text(150, self.parts)}))?;
            let file = format!("/src/app/src/{}.rs", (request * 7 + self.parts / 500) % 60);
            let (tool, input) = match request % 4 {
                0 => ("read", json!({"filePath": file})),
                1 => (
                    "edit",
                    json!({"filePath": file, "oldString": text(100, request), "newString": text(120, request + 1)}),
                ),
                2 => (
                    "bash",
                    json!({"command": format!("cargo test case_{}", request % 11), "description": "run the tests"}),
                ),
                _ => ("grep", json!({"pattern": format!("fn part_{}", request % 17)})),
            };
            let state = json!({
                "status": "completed", "input": input, "output": text(3200, self.parts), "title": file, "metadata": {},
                "time": {"start": self.time, "end": self.time + 100},
            });
            let call = format!("call_{}", self.parts);
            self.part(
                session,
                &message,
                &json!({"type": "tool", "callID": call, "tool": tool, "state": state}),
            )?;
            self.part(session, &message, &json!({"type": "step-finish", "tokens": tokens, "cost": 0.1}))
        }

        fn message(&mut self, session: &str, data: &Value) -> Outcome<String> {
            self.time += 1000;
            self.messages += 1;
            let id = format!("msg_{:012}", self.messages);
            let _ = self
                .transaction
                .prepare_cached("INSERT INTO message VALUES(?, ?, ?, ?, ?)")?
                .execute(params![id, session, self.time, self.time, data.to_string()])?;
            Ok(id)
        }

        fn part(&mut self, session: &str, message: &str, data: &Value) -> Outcome<()> {
            self.parts += 1;
            let id = format!("prt_{:012}", self.parts);
            let _ = self
                .transaction
                .prepare_cached("INSERT INTO part VALUES(?, ?, ?, ?, ?, ?)")?
                .execute(params![id, message, session, self.time, self.time, data.to_string()])?;
            Ok(())
        }
    }

    /// Words in lines, of about `bytes` bytes; another number gives another text.
    fn text(bytes: usize, number: usize) -> String {
        const WORDS: [&str; 12] = [
            "store", "fold", "session", "reads", "what", "is", "new", "from", "the", "log", "error", "frame",
        ];
        let mut made = format!("{number}:");
        let mut place = number;
        while made.len() < bytes {
            place = place.wrapping_mul(25_214_903_917).wrapping_add(11) & 0xffff_ffff_ffff;
            let word = place >> 20;
            made.push(if word % 11 == 0 { '\n' } else { ' ' });
            made.push_str(WORDS.get(word % WORDS.len()).copied().unwrap_or_default());
        }
        made
    }
}
