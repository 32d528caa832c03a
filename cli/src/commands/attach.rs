//! `acpdb attach HOST`, `acpdb detach HOST`: change the host's own settings; `acpdb attach --status`: whether it works.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use acpdb_engine::entry::StreamInfo;
use acpdb_engine::ids::Micros;
use acpdb_engine::text::tokens::estimate;
use acpdb_live::attach::{self, AttachError, HostCommand, SettingsOwner, SettingsPlan, plugin};
use acpdb_live::journal::{self, JournalLine};
use acpdb_live::proxy::identity::RequestIdentity;
use acpdb_live::proxy::prune::RecordingFolders;
use acpdb_live::{AttachMode, Host, due};
use serde::Serialize;

use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape};
use crate::args::{Attach, AttachReach, Detach};
use crate::settings::variable;
use crate::store_path;

fn here() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(Failure::io("find", "the working folder"))
}

/// The place of the hooks: as the options say, else the user's settings, else the project's.
fn place(host: Host, reach: &AttachReach) -> Result<PathBuf, Failure> {
    let project = here()?;
    let at = |reach| {
        let path = attach::place(host, reach, &project, &variable)?;
        if reach == SettingsOwner::Project {
            attach::check_within(&path, &project)?;
        }
        Ok(path)
    };
    let found = if reach.project {
        at(SettingsOwner::Project)
    } else {
        at(SettingsOwner::User).or_else(|error| match error {
            AttachError::NoPlace { .. } if !reach.user => at(SettingsOwner::Project),
            error => Err(error),
        })
    };
    found.map_err(|error| failure(&error))
}

fn failure(error: &AttachError) -> Failure {
    let message = crate::failure::chained(error);
    match error {
        AttachError::Settings { .. } => Failure::new(Code::Failure, message)
            .hint("mend the file, or add the hook by hand; see docs/LIVE.md"),
        AttachError::Taken { .. } => Failure::new(Code::Failure, message).hint("move that file away first"),
        AttachError::Leaves { .. } => {
            Failure::new(Code::Failure, message).hint("remove the link, or attach with --user")
        }
        AttachError::NoPlace { .. } | AttachError::NoHome => Failure::usage(message),
        AttachError::Unnamable { .. } => {
            Failure::usage(message).hint("give it a name of printable characters in UTF-8")
        }
        _ => Failure::new(Code::Failure, message),
    }
}

/// The result, for programs.
#[derive(Serialize)]
struct AttachResult<'a> {
    host: &'a str,
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    path: &'a PathBuf,
    changed: bool,
    made: bool,
    diff: String,
}

fn carry_out(
    plan: &SettingsPlan,
    host: Host,
    is_dry: bool,
    done: &str,
    output: &mut Output,
) -> Result<Code, Failure> {
    let diff = if host.takes_plugin() { plan.summary() } else { plan.diff() };
    if !is_dry {
        plan.apply().map_err(|error| failure(&error))?;
    }
    if output.json {
        let made = !is_dry && !plan.is_nothing();
        let answer =
            AttachResult { host: host.name(), path: &plan.path, changed: !plan.is_nothing(), made, diff };
        return output.json_object("acpdb.attach/1", &answer);
    }
    if !diff.is_empty() {
        output.line(escape(diff.trim_end(), EscapeLevel::Text))?;
    }
    let path = plan.path.display();
    if plan.is_nothing() {
        output.note(format!("{path}: nothing to change"));
    } else if is_dry {
        output.note(format!("{path}: nothing was changed (--dry-run)"));
    } else {
        output.note(format!("{path}: {done}"));
    }
    Ok(Code::Ok)
}

pub(crate) fn attach(global: &Global, args: &Attach, output: &mut Output) -> Result<Code, Failure> {
    if args.status {
        return status(global, args.host, output);
    }
    let Some(host) = args.host else { return Err(Failure::usage("name a host")) };
    let mode = args.mode;
    let path = place(host, &args.reach)?;
    let program = std::env::current_exe().map_err(Failure::io("find", "this program"))?;
    let absolute = |path: &Option<PathBuf>, what: &'static str| {
        path.as_ref().map(|path| std::path::absolute(path).map_err(Failure::io("name", what)))
    };
    let store = absolute(&global.db, "the store").transpose()?;
    let folder = match &store {
        Some(folder) => folder.clone(),
        None => store_path::find_unasked(global)?.folder,
    };
    store_path::check_given_key(&folder, global)?;
    let run = HostCommand { program: &program, store: store.as_deref(), host, mode };
    let plan = if host.takes_plugin() {
        plugin::attach(&path, &run)
    } else {
        run.words().and_then(|words| attach::attach(&path, &words, host))
    };
    let mut plan = plan.map_err(|error| failure(&error))?;
    if args.statusline {
        plan = status_line(plan, &run, output)?;
    }
    show_due(global, mode, output);
    let done = format!("attached, mode {mode}: {}", told(mode, store.as_deref()));
    let code = carry_out(&plan, host, args.dry_run, &done, output)?;
    for remark in remarks(host, mode) {
        output.note(remark);
    }
    if host == Host::ClaudeCode && !args.statusline {
        output.note("--statusline also sets a status line: the context, dollars, stale tokens, what the last compaction took");
    }
    if global.key_file.is_some() {
        output.note(
            "the host's settings name no key: it is found if it lies beside your settings, or if $ACPDB_KEY_FILE is set where the host runs",
        );
    }
    Ok(code)
}

/// Shows the text that a session in this folder would be told at its start, before it is.
fn show_due(global: &Global, mode: AttachMode, output: &Output) {
    if mode == AttachMode::Record {
        return output.note("--mode suggest --dry-run shows what a model would be told here");
    }
    match due_here(global) {
        Ok(Some(text)) => {
            let tokens = describe::tokens(estimate(text.as_bytes()).into());
            let text = escape(text.trim_end(), EscapeLevel::Text).into_owned();
            output.note(format!("a session here is told at its start, now ~{tokens} tokens:\n{text}"));
        }
        Ok(None) => {
            output.note("a session here is told nothing yet: no todo is open, and nothing is remembered");
        }
        Err(failure) => {
            output.note(format!("what a session here is told cannot be shown: {}", failure.message));
        }
    }
}

fn due_here(global: &Global) -> Result<Option<String>, Failure> {
    let found = store_path::find_unasked(global)?;
    if !acpdb_engine::store::is_store(&found.folder) {
        return Ok(None);
    }
    let store = store_path::builder(&found.folder, global)?.read_only().open()?;
    // No session of this name is there.
    let none = StreamInfo::session("", "").id();
    Ok(due::text(&store, &here()?.to_string_lossy(), none)?)
}

/// The plan with acpdb's status line, if the user has none.
fn status_line(plan: SettingsPlan, run: &HostCommand<'_>, output: &Output) -> Result<SettingsPlan, Failure> {
    if run.host != Host::ClaudeCode {
        return Err(Failure::usage("only Claude Code has a status line that runs a program"));
    }
    let made = run.status_line().and_then(|command| plan.with_status_line(&command));
    let (plan, is_made) = made.map_err(|error| failure(&error))?;
    if !is_made {
        output.note("your own status line stays; it may run `acpdb statusline` itself");
    }
    Ok(plan)
}

/// The deeds of a mode, and the store that they go to.
fn told(mode: AttachMode, store: Option<&Path>) -> String {
    let store = store.map_or_else(
        || "the store of the folder it runs in, else your own".to_owned(),
        |store| store.display().to_string(),
    );
    let more = match mode {
        AttachMode::Record => ", and says nothing to the model",
        AttachMode::Suggest => ", and also tells the model open todos and what is remembered",
        AttachMode::Prune => {
            ", also tells the model open todos and what is remembered, and sends a pointer for a result that the model still sees"
        }
    };
    format!("sessions go into {store}{more}")
}

/// Remarks about a host that a user needs.
fn remarks(host: Host, mode: AttachMode) -> Vec<&'static str> {
    let mut all = Vec::new();
    if host == Host::Codex {
        all.push("Codex runs hooks only once you trust them: start it and accept, or /hooks in it; the one at the end of a session has 3 s");
    }
    if mode == AttachMode::Prune && matches!(host, Host::ClaudeCode | Host::Codex) {
        all.push("hooks change new results alone; what becomes stale later goes with acpdb run --mode prune -- claude (or codex)");
    }
    if mode == AttachMode::Prune && host == Host::GeminiCli {
        all.push("what is stale goes with acpdb run --mode prune -- gemini");
    }
    if host == Host::CopilotCli {
        all.push("in a project (--project) Copilot CLI runs hooks only if its folder is trusted there");
    }
    if mode == AttachMode::Prune && host == Host::CopilotCli {
        all.push("hooks change new results alone; what becomes stale later goes, with a provider of yours, with acpdb run --mode prune -- copilot");
    }
    if mode == AttachMode::Prune && !host.can_replace() {
        all.push("this host cannot replace a result: nothing is pruned there, all else works");
    }
    if matches!(host, Host::Cursor | Host::VsCode) {
        all.push("this host's own recordings are not read: the store holds what its hooks say");
    }
    all
}

pub(crate) fn detach(args: &Detach, output: &mut Output) -> Result<Code, Failure> {
    let host = args.host;
    let path = place(host, &args.reach)?;
    let plan = if host.takes_plugin() { plugin::detach(&path) } else { attach::detach(&path, host) };
    let plan = plan.map_err(|error| failure(&error))?;
    carry_out(&plan, host, args.dry_run, "detached", output)
}

/// The state of one host.
#[derive(Serialize)]
struct HostState {
    host: &'static str,
    attached: Vec<SettingsPath>,
    /// Settings that could not be read, with the reason: acpdb may be in them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unreadable: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<JournalLine>,
    hooks: usize,
    events: u64,
    errors: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<JournalLine>,
    milliseconds_p99: u64,
    versions: Vec<String>,
}

#[derive(Serialize)]
struct SettingsPath {
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    path: PathBuf,
    command: String,
    /// The host finds no program at its path, and goes on without it.
    program_is_missing: bool,
}

/// The entry of acpdb in one file of a host; `None` if there is none.
fn attached_at(host: Host, path: &Path) -> Result<Option<SettingsPath>, AttachError> {
    let path = path.to_owned();
    let (command, program) = if host.takes_plugin() {
        let Some(command) = plugin::found(&path)? else { return Ok(None) };
        let program = plugin::program_of(&command);
        (command, program)
    } else {
        let Some(command) = attach::found(&path, host)?.into_iter().next() else { return Ok(None) };
        let program = attach::program_of(&command);
        (command, program)
    };
    Ok(Some(SettingsPath { path, command, program_is_missing: is_missing(program) }))
}

/// Whether a program that is named by its path is not there. The host finds a program that is named without a path.
fn is_missing(program: Option<PathBuf>) -> bool {
    program.is_some_and(|program| program.is_absolute() && !program.is_file())
}

/// A minute in microseconds.
const MINUTE_MICROS: i64 = 60_000_000;

/// The state of one host, for `doctor`.
pub(super) struct HostStatus {
    pub(super) host: &'static str,
    pub(super) detail: String,
    /// The next step, if something is wrong.
    pub(super) next: Option<String>,
}

/// The states of the hosts to which acpdb is attached, or may be.
pub(super) fn standings() -> Result<Vec<HostStatus>, Failure> {
    let rows = rows(None)?.into_iter().filter(|row| !row.attached.is_empty() || !row.unreadable.is_empty());
    Ok(rows.map(|row| standing(&row)).collect())
}

fn standing(row: &HostState) -> HostStatus {
    let status = format!("acpdb attach --status {}", row.host);
    if !row.unreadable.is_empty() {
        let detail = format!("it is not known whether it is attached: {}", row.unreadable.join("; "));
        return HostStatus { host: row.host, detail, next: Some(format!("mend the file, then {status}")) };
    }
    if row.attached.iter().any(|place| place.program_is_missing) {
        let detail = "attached, and the program that it runs is not there".to_owned();
        return HostStatus { host: row.host, detail, next: Some(format!("acpdb attach {}", row.host)) };
    }
    let Some(last) = &row.last else {
        return HostStatus {
            host: row.host,
            detail: "attached, no event was seen yet".to_owned(),
            next: None,
        };
    };
    let mut detail = format!("attached, last event at {}", describe::time(Micros(last.at)));
    let lag = lag(row.host, last);
    if let Some(minutes) = lag {
        let _ = write!(detail, "; its recording is {} newer", describe::count(minutes, "minute"));
    }
    if row.errors > 0 {
        let _ = write!(detail, "; {}", describe::count(row.errors as u64, "error"));
    }
    let next = (last.error.is_some() || lag.is_some()).then_some(status);
    HostStatus { host: row.host, detail, next }
}

/// Minutes by which the host's recording is newer than the last event of its session, if it is newer.
fn lag(host: &'static str, last: &JournalLine) -> Option<u64> {
    let identity = RequestIdentity { host, session: last.session.clone() };
    let (_, path) = RecordingFolders::usual(&variable).recording(&identity)?;
    // A file that is gone meanwhile, or is dated before 1970, is not newer than an event; the next call reads a file that is there.
    let written = std::fs::metadata(path).ok()?.modified().ok()?;
    // A date before 1970 is not newer.
    let written = written.duration_since(std::time::UNIX_EPOCH).ok()?.as_micros();
    // Below 0 where the event is newer than the recording.
    let lag = i64::try_from(written).ok()?.saturating_sub(last.at);
    u64::try_from(lag / MINUTE_MICROS).ok().filter(|minutes| *minutes > 0)
}

/// Says which store hooks use in this folder, and which ones they pass over.
fn say_store(global: &Global, output: &mut Output) -> Result<(), Failure> {
    let found = match store_path::find_unasked(global) {
        Ok(found) => found,
        Err(failure) => return output.line(format!("  no store is used here: {}", failure.message)),
    };
    output.styled(describe::BOLD, "store")?;
    output.line(format!(
        "  {} is used in this folder",
        escape(&found.folder.display().to_string(), EscapeLevel::Line)
    ))?;
    for passed in &found.passed {
        output.line(format!("  {}", escape(&passed.line(), EscapeLevel::Line)))?;
    }
    Ok(())
}

fn status(global: &Global, asked: Option<Host>, output: &mut Output) -> Result<Code, Failure> {
    let rows = rows(asked)?;
    let code = if rows.iter().any(|row| !row.unreadable.is_empty()) { Code::Partial } else { Code::Ok };
    if output.json {
        output.json_items("acpdb.attached/1", &rows)?;
        return Ok(code);
    }
    if rows.is_empty() {
        output.line("attached to no host; acpdb attach HOST does so")?;
    }
    for row in &rows {
        say(row, output)?;
    }
    say_store(global, output)?;
    Ok(code)
}

/// The states of the hosts about which acpdb knows something.
fn rows(asked: Option<Host>) -> Result<Vec<HostState>, Failure> {
    let lines = match journal::path(&variable) {
        Some(path) => journal::read(&path).map_err(Failure::io("read", path.display()))?,
        None => Vec::new(),
    };
    let project = here()?;
    let mut rows = Vec::new();
    for host in Host::ALL.into_iter().filter(|host| asked.is_none_or(|asked| asked == *host)) {
        let (mut attached, mut unreadable) = (Vec::new(), Vec::new());
        let mut seen = Vec::new();
        for reach in [SettingsOwner::Project, SettingsOwner::User] {
            let Ok(path) = attach::place(host, reach, &project, &variable) else { continue };
            // In the user's own folder the project's file is the user's: one file with one name or two. A missing file has no other
            // name.
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            if seen.contains(&real) {
                continue;
            }
            seen.push(real);
            match attached_at(host, &path) {
                Ok(place) => attached.extend(place),
                Err(error) => unreadable.push(failure(&error).message),
            }
        }
        let own: Vec<&JournalLine> = lines.iter().filter(|line| line.host == host.name()).collect();
        if attached.is_empty() && unreadable.is_empty() && own.is_empty() && asked.is_none() {
            continue;
        }
        rows.push(row(host, attached, unreadable, &own));
    }
    Ok(rows)
}

fn row(host: Host, attached: Vec<SettingsPath>, unreadable: Vec<String>, own: &[&JournalLine]) -> HostState {
    let mut times: Vec<u64> = own.iter().map(|line| line.milliseconds).collect();
    times.sort_unstable();
    // Without any times, the index is 0, where there is no time either.
    let place = times.len().saturating_mul(99).div_ceil(100).saturating_sub(1);
    let mut versions: Vec<String> = own.iter().map(|line| line.version.clone()).collect();
    versions.sort();
    versions.dedup();
    HostState {
        host: host.name(),
        attached,
        unreadable,
        last: own.last().map(|line| (*line).clone()),
        hooks: own.len(),
        events: own.iter().map(|line| line.event_count).sum(),
        errors: own.iter().filter(|line| line.error.is_some()).count(),
        last_error: own.iter().rev().find(|line| line.error.is_some()).map(|line| (*line).clone()),
        milliseconds_p99: times.get(place).copied().unwrap_or_default(),
        versions,
    }
}

fn say(row: &HostState, output: &mut Output) -> Result<(), Failure> {
    output.styled(describe::BOLD, row.host)?;
    for why in &row.unreadable {
        output.warn(format!("{}: it is not known whether it is attached: {why}", row.host));
    }
    if row.attached.is_empty() && row.unreadable.is_empty() {
        output.line("  not attached here")?;
    }
    for place in &row.attached {
        output.line(format!("  attached in {}", place.path.display()))?;
        output.line(format!("    {}", escape(&place.command, EscapeLevel::Line)))?;
        if place.program_is_missing {
            output.line(format!(
                "    that program is not there, and nothing is recorded: acpdb attach {} again, or detach it",
                row.host
            ))?;
        }
    }
    if row.attached.len() > 1 {
        output.line("  each event is told twice, and so is the model; detach one of them")?;
    }
    let Some(last) = &row.last else {
        return output.line("  no event was seen yet");
    };
    if let Some(passed) = &last.passed_over {
        output.line(format!("  at the last event {}", escape(passed, EscapeLevel::Line)))?;
    }
    let when = describe::time(Micros(last.at));
    output.line(match (&*last.event, &*last.session) {
        ("", _) => format!("  last event at {when}, which could not be read"),
        (event, "") => format!("  last event {} at {when}", escape(event, EscapeLevel::Line)),
        (event, session) => format!(
            "  last event {} at {when}, session {}",
            escape(event, EscapeLevel::Line),
            escape(session, EscapeLevel::Line)
        ),
    })?;
    output.line(format!(
        "  {}, {} recorded, {} ms at the 99th percentile, acpdb {}",
        describe::count(row.hooks as u64, "hook"),
        describe::count(row.events, "event"),
        row.milliseconds_p99,
        row.versions.join(", ")
    ))?;
    if let Some(error) = &row.last_error {
        let said = error.error.as_deref().unwrap_or_default();
        output.line(format!(
            "  {}, the last at {}: {}",
            describe::count(row.errors as u64, "error"),
            describe::time(Micros(error.at)),
            escape(said, EscapeLevel::Line)
        ))?;
    }
    Ok(())
}
