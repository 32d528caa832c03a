//! `acpdb import [PATH..]`: reads sessions of every host into the store; a second import adds nothing.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::Duration;

use acpdb_engine::Store;
use acpdb_engine::entry::StreamInfo;
use acpdb_hosts::import::{ImportFormat, ImportOptions, Limits};
use acpdb_hosts::session_paths::{SessionPath, usual_paths};
use acpdb_live::below::Links;
use indicatif::ProgressBar;
use serde_json::json;

use super::import_store::{self, ImportedStore, TakenParts};
use super::table::{self, number, text};
use super::{Code, Failure, Global, Output, describe, store_path};
use crate::args::ImportArgs;
use crate::follow::{self, FollowPlan, Root};
use crate::known::{self, FileRecord, KnownFiles};
use crate::reader::{
    self, AHEAD_COUNT, FileChoice, FileInProgress, FileReport, ImportFile, ReadError, ReaderThread,
    Recognised, Skipped, TemporaryFile, notes, refused,
};

pub(crate) fn run(global: &Global, args: &ImportArgs, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse(global)?;
    check_places(args)?;
    let format = args.format.as_deref().map(format_of).transpose()?;
    let options = options(global, args)?;
    let (piped, args) = piped(args)?;
    let args = args.as_ref();
    let (stores, files) = import_store::split(args)?;
    if args.follow {
        if piped.is_some() {
            return Err(Failure::usage("standard input cannot be followed").hint("name a file or a folder"));
        }
        return follow(global, args, (choice(args, format), options), output);
    }
    let hosts = hosts(args)?;
    let choice = choice(args, format);
    let mut skipped = Vec::new();
    let candidates = if args.paths.is_empty() {
        usual(&hosts, choice.links, &mut skipped, output)?
    } else {
        named(&files, choice.links, &mut skipped)
    };
    if candidates.is_empty() && skipped.is_empty() && stores.is_empty() {
        return Err(nothing_found(&hosts, output)?);
    }
    if candidates.is_empty() && stores.is_empty() && !output.json {
        super::import_store::some_there(&args.paths)?;
    }
    // An existing store knows which files it has read.
    let folder = store_path::folder(global, output)?;
    let is_there = folder.join("acpdb.json").is_file();
    let mut opened = if is_there {
        Some(store_path::open_redacting(&folder, global, &args.redact, output)?)
    } else {
        None
    };
    let how = how(global, args, (format, &options));
    let mut known =
        opened.as_ref().map_or_else(KnownFiles::default, |store| KnownFiles::of(store, how.clone()));
    let bar = super::progress::bytes(candidates.iter().map(|candidate| candidate.bytes).sum(), output);
    let mut upcoming = Upcoming::start(&candidates, choice, &options, &bar)?;
    let mut reports = Vec::new();
    let mut other_count = 0_u64;
    // Events of files that could not be read to their end.
    let mut partly_count = 0_u64;
    while let Some((candidate, turn)) = upcoming.next(&known) {
        let name = candidate.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        bar.set_message(crate::output::escape(&name, crate::output::EscapeLevel::Line).into_owned());
        let (reading, begun) = match turn {
            ImportStep::Known(report) => {
                bar.inc(candidate.bytes);
                reports.push(*report);
                continue;
            }
            ImportStep::Other => {
                other_count += 1;
                continue;
            }
            ImportStep::Read(reading, begun) => (reading, begun),
        };
        match begun.recognised(&candidate.path) {
            Recognised::Session(_) => {
                let store = opened_for(&mut opened, &mut known, (&how, &folder), (global, args, output))?;
                match begun.record(store, &candidate.path) {
                    Ok(report) if report.report.is_empty => {
                        let told = nothing_in(candidate, &report, (&mut known, &reading));
                        other_count += u64::from(told.is_none());
                        skipped.extend(told);
                    }
                    Ok(report) => {
                        known.keep(&candidate.path, &reading, Some(&report));
                        skipped.extend(notes(&report));
                        reports.push(report);
                    }
                    Err(error) => {
                        if let ReadError::Import { event_count, .. } = &error {
                            partly_count += event_count;
                        }
                        skipped.push(refused(&candidate.path, error)?);
                    }
                }
            }
            Recognised::Other => {
                known.keep(&candidate.path, &reading, None);
                other_count += 1;
            }
            Recognised::Skipped(file) => skipped.push(file),
        }
    }
    bar.finish_and_clear();
    let mut imported = Vec::new();
    for path in &stores {
        let source = import_store::open(path, output)?;
        let store = opened_for(&mut opened, &mut known, (&how, &folder), (global, args, output))?;
        let taken = TakenParts { memory: args.memory, policy: args.policy };
        imported.push(ImportedStore::of(path, &source, store, taken, output)?);
    }
    close(opened, &mut known, (&reports, &skipped), output)?;
    let is_nothing = reports.is_empty() && imported.is_empty() && partly_count == 0;
    render(&reports, &imported, &skipped, (other_count, is_nothing), output)?;
    tell_where(global, args, (&folder, &reports, &imported), output);
    Ok(code_of(is_nothing, &imported, &skipped))
}

/// Says which store it is, and whether the store of one folder took the sessions of the whole machine.
fn tell_where(
    global: &Global,
    args: &ImportArgs,
    (folder, reports, imported): (&Path, &[FileReport], &[ImportedStore]),
    output: &Output,
) {
    let is_new = reports.iter().any(|report| report.event_count > 0) || !imported.is_empty();
    if output.json || !is_new {
        return;
    }
    let is_typed = global.db.is_some() && global.db != crate::settings::path_in("ACPDB_PATH");
    let db = if is_typed { format!(" --db {}", store_path::quoted(folder)) } else { String::new() };
    output.note(format!("all of it is in {}; next: acpdb{db} sessions, ui or cost", folder.display()));
    let is_found = global.db.is_none() && global.settings.db.as_deref() != Some(folder);
    if args.paths.is_empty() && is_found && folder.file_name() == Some(crate::own_stores::FOLDER.as_ref()) {
        output.note(format!(
            "note: this store belongs to {}, and holds sessions of other projects now; --db PATH names another store",
            folder.parent().unwrap_or(folder).display()
        ));
    }
}

/// Keeps what is known of the files, closes the store, and warns of the files that were skipped.
fn close(
    opened: Option<Store>,
    known: &mut KnownFiles,
    (reports, skipped): (&[FileReport], &[Skipped]),
    output: &mut Output,
) -> Result<(), Failure> {
    if let Some(store) = opened {
        reader::tell_started(&store, reports)?;
        crate::kept::leave_with(known, &store);
        store.close()?;
    }
    for file in skipped {
        warn_of(file, output);
    }
    Ok(())
}

/// The line for a file of which nothing was understood; none, where its host leaves such files, which is known from then on. A refused file is
/// told of at each import.
fn nothing_in(
    candidate: &ImportFile,
    report: &FileReport,
    (known, reading): (&mut KnownFiles, &known::PendingFile),
) -> Option<Skipped> {
    let found = &report.report;
    if found.skipped.is_empty() && found.cut.is_none() && reader::may_be_empty(candidate) {
        known.keep(&candidate.path, reading, None);
        return None;
    }
    let places = notes(report);
    let reason = match places.as_slice() {
        [] => reader::NOTHING.to_owned(),
        [first, others @ ..] => {
            let line = first.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            let more = if others.is_empty() { String::new() } else { format!(", and {} more", others.len()) };
            format!("{} ({line}{}{more})", reader::NOTHING, first.reason)
        }
    };
    Some(Skipped { path: candidate.path.clone(), line: None, reason })
}

fn warn_of(file: &Skipped, output: &mut Output) {
    let line = file.line.map(|line| format!(":{line}")).unwrap_or_default();
    output.warn(format!("{}{line}: {}", file.path.display(), file.reason));
}

/// The next step for a file.
enum ImportStep {
    /// It has not changed since it was read.
    Known(Box<FileReport>),
    /// It has not changed, and it is of no known format.
    Other,
    /// It is being read.
    Read(known::PendingFile, FileInProgress),
}

/// Files in order; the next ones are being read already.
struct Upcoming<'c> {
    ahead: ReaderThread,
    rest: std::iter::Peekable<std::slice::Iter<'c, ImportFile>>,
    queue: VecDeque<(&'c ImportFile, ImportStep)>,
}

impl<'c> Upcoming<'c> {
    fn start(
        all: &'c [ImportFile],
        choice: FileChoice,
        options: &ImportOptions,
        bar: &ProgressBar,
    ) -> Result<Self, Failure> {
        let ahead = ReaderThread::start(choice, options.clone(), bar.clone());
        let ahead = ahead.map_err(Failure::io("begin", "a thread that reads"))?;
        Ok(Self { ahead, rest: all.iter().peekable(), queue: VecDeque::new() })
    }

    fn next(&mut self, known: &KnownFiles) -> Option<(&'c ImportFile, ImportStep)> {
        while self.queue.len() < AHEAD_COUNT
            && let Some(&candidate) = self.rest.peek()
        {
            // A file that is named twice waits for the result of its first reading.
            if self.queue.iter().any(|(before, _)| before.path == candidate.path) {
                break;
            }
            // The file was peeked at above.
            let _ = self.rest.next();
            self.queue.push_back((candidate, self.begin(candidate, known)));
        }
        self.queue.pop_front()
    }

    fn begin(&self, candidate: &ImportFile, known: &KnownFiles) -> ImportStep {
        match known.look(&candidate.path) {
            Some(FileRecord::Session(report)) => return ImportStep::Known(report),
            Some(FileRecord::Other) if !candidate.named => return ImportStep::Other,
            _ => {}
        }
        // Before the reading, so that a later write counts as a change.
        let reading = KnownFiles::begin(&candidate.path);
        ImportStep::Read(reading, self.ahead.begin(candidate.clone()))
    }
}

fn options(global: &Global, args: &ImportArgs) -> Result<ImportOptions, Failure> {
    let mut limits = Limits::default();
    for text in &args.limits {
        limits.set(text).map_err(|wrong| Failure::usage(format!("--limits: {wrong}")))?;
    }
    Ok(ImportOptions {
        session: global.session.clone(),
        project: args.project.clone(),
        memory: args.project.as_ref().map(StreamInfo::project),
        grows: false,
        is_hosts_own: false,
        limits,
        beside: None,
    })
}

/// The files that are read.
fn choice(args: &ImportArgs, format: Option<ImportFormat>) -> FileChoice {
    let links = if args.links { Links::Followed } else { Links::Within };
    FileChoice { format, with_memory: args.memory, links }
}

/// Refuses a host and a path together.
fn check_places(args: &ImportArgs) -> Result<(), Failure> {
    let (Some(path), Some(host)) = (args.paths.first(), args.hosts.first()) else { return Ok(()) };
    let path = store_path::quoted(path);
    let refused =
        Failure::usage("--host is for the usual places of a host, and a path is a place of its own");
    Err(refused.hint(format!(
        "acpdb import {path} finds out whose it is; acpdb import --format {host} {path} says so"
    )))
}

/// Tells in which places sessions were looked for, so that the user knows what to set or to name.
fn nothing_found(hosts: &[ImportFormat], output: &Output) -> Result<Failure, Failure> {
    let mut places = places(hosts)?;
    // Places repeat a folder for each way in which its host names files.
    places.dedup_by(|one, other| one.folder == other.folder);
    for place in places {
        let state = if place.folder.is_dir() { "holds no session" } else { "is not there" };
        output.note(format!("looked in {}: {state} ({})", place.folder.display(), place.format));
    }
    let failure = Failure::not_found("no sessions were found");
    Ok(failure.hint("give a file or folder: acpdb import PATH; or try acpdb demo"))
}

/// Standard input (`-`) as a file, since a format is recognised by looking at a file more than once; and the arguments that name
/// it.
fn piped(args: &ImportArgs) -> Result<(Option<TemporaryFile>, std::borrow::Cow<'_, ImportArgs>), Failure> {
    let is_piped = |path: &PathBuf| path.as_os_str() == "-";
    if !args.paths.iter().any(is_piped) {
        return Ok((None, std::borrow::Cow::Borrowed(args)));
    }
    let kept = reader::kept(&mut std::io::stdin().lock());
    let kept = kept.map_err(Failure::io("keep", "what came on standard input"))?;
    if kept.bytes() == 0 {
        return Err(Failure::usage("nothing came on standard input").hint("acpdb import - < session.jsonl"));
    }
    let mut args = args.clone();
    for given in args.paths.iter_mut().filter(|given| is_piped(given)) {
        kept.path().clone_into(given);
    }
    Ok((Some(kept), std::borrow::Cow::Owned(args)))
}

/// The exit code of an import.
fn code_of(is_nothing: bool, imported: &[ImportedStore], skipped: &[Skipped]) -> Code {
    match (is_nothing, skipped) {
        (_, []) => ImportedStore::code(imported),
        (true, skipped) if skipped.iter().all(|file| !file.path.exists()) => Code::NotFound,
        (true, _) => Code::Failure,
        (false, _) => Code::Partial,
    }
}

/// The store, opened once there is a file for it: a mistyped name makes no store.
fn opened_for<'o>(
    opened: &'o mut Option<Store>,
    known: &mut KnownFiles,
    (how, folder): (&str, &Path),
    (global, args, output): (&Global, &ImportArgs, &Output),
) -> Result<&'o Store, Failure> {
    if opened.is_none() {
        let store = opened.insert(store_path::open_redacting(folder, global, &args.redact, output)?);
        *known = KnownFiles::of(store, how.to_owned());
    }
    opened.as_ref().ok_or_else(|| Failure::new(Code::Failure, "the store is not open"))
}

/// Files that the user named, and the files in named folders.
fn named(paths: &[PathBuf], links: Links, skipped: &mut Vec<Skipped>) -> Vec<ImportFile> {
    let mut all = Vec::new();
    for path in paths {
        match reader::files(path, links) {
            Ok(found) if found.files.is_empty() && found.unread.is_empty() => {
                let reason = "the folder holds no files".to_owned();
                skipped.push(Skipped { path: path.clone(), line: None, reason });
            }
            Ok(found) => {
                all.extend(found.files);
                skipped.extend(found.unread);
            }
            Err(error) => skipped.push(Skipped::unread(path.clone(), &error)),
        }
    }
    all
}

/// The options of reading. A file that was read with other options is read again.
fn how(
    global: &Global,
    args: &ImportArgs,
    (format, options): (Option<ImportFormat>, &ImportOptions),
) -> String {
    let readers = acpdb_hosts::import::READERS;
    format!("{readers} {format:?} {options:?} {:?} {:?}", args.redact, global.settings.redact)
}

/// Keeps the store current until a signal ends it.
fn follow(
    global: &Global,
    args: &ImportArgs,
    (choice, options): (FileChoice, ImportOptions),
    output: &mut Output,
) -> Result<Code, Failure> {
    let links = choice.links;
    let roots = if args.paths.is_empty() {
        let places = places(&hosts(args)?)?.into_iter();
        places.map(|place| Root { path: place.folder.clone(), place: Some(place), links }).collect()
    } else {
        let root = |path: &PathBuf| match std::fs::canonicalize(path) {
            Ok(path) => Ok(Root { path, place: None, links }),
            Err(error) => Err(Failure::io("follow", path.display())(error)
                .hint("make the folder first, or leave it out to follow the usual places")),
        };
        args.paths.iter().map(root).collect::<Result<_, _>>()?
    };
    let folder = store_path::folder_unasked(global, output)?;
    let store = store_path::open_redacting(&folder, global, &args.redact, output)?;
    let known = KnownFiles::of(&store, how(global, args, (choice.format, &options)));
    let every = Duration::from_secs(u64::from(args.every));
    follow::run(
        store,
        known,
        FollowPlan { roots, choice, options, every, sign: global.settings.sign },
        output,
    )?;
    Ok(Code::Ok)
}

/// The hosts whose places are searched; none: all.
fn hosts(args: &ImportArgs) -> Result<Vec<ImportFormat>, Failure> {
    args.hosts.iter().map(|name| host_of(name)).collect()
}

/// A host whose sessions have a usual place.
pub(crate) fn host_of(name: &str) -> Result<ImportFormat, Failure> {
    let named = ImportFormat::from_name(name);
    let home = crate::settings::path_in("HOME").unwrap_or_default();
    let mut known: Vec<&str> =
        usual_paths(&crate::settings::variable, &home).iter().map(|place| place.format.name()).collect();
    known.dedup();
    let hint = format!("hosts: {}", known.join(", "));
    match named {
        Some(format) if known.contains(&format.name()) => Ok(format),
        Some(format) => {
            let failure = Failure::usage(format!("{format} has no usual place"));
            Err(failure.hint(format!("give a file or folder: acpdb import PATH; {hint}")))
        }
        None => {
            let near = acpdb_engine::text::likeness::nearest(known.iter().copied(), name, 0.7);
            let near = near.map_or_else(String::new, |near| format!("did you mean {near}? "));
            Err(Failure::usage(format!("there is no host {name:?}")).hint(format!("{near}{hint}")))
        }
    }
}

/// The usual places of some hosts, or of all.
pub(crate) fn places(hosts: &[ImportFormat]) -> Result<Vec<SessionPath>, Failure> {
    let home = crate::settings::path_in("HOME")
        .ok_or_else(|| Failure::usage("there is no home folder to look in").hint("give a file or folder"))?;
    let mut places = usual_paths(&crate::settings::variable, &home);
    if let Some(host) = hosts.iter().find(|host| !places.iter().any(|place| place.format == **host)) {
        return Err(Failure::usage(format!("{host} has no usual place")).hint("give a file or folder"));
    }
    places.retain(|place| hosts.is_empty() || hosts.contains(&place.format));
    Ok(places)
}

/// Files in the usual places of some hosts, or of all. A part that cannot be read does not stop the others.
pub(crate) fn usual(
    hosts: &[ImportFormat],
    links: Links,
    skipped: &mut Vec<Skipped>,
    output: &Output,
) -> Result<Vec<ImportFile>, Failure> {
    let mut all = Vec::new();
    for place in places(hosts)? {
        let root = Root { path: place.folder.clone(), place: Some(place), links };
        let before = all.len();
        let unread = match root.files() {
            Ok(found) => {
                all.extend(found.files);
                found.unread
            }
            Err(error) => vec![Skipped::unread(root.path.clone(), &error)],
        };
        for new in unread {
            // Places repeat a folder for each way in which its host names files.
            if !skipped.iter().any(|known| known.path == new.path) {
                skipped.push(new);
            }
        }
        if let Some(place) = root.place.as_ref().filter(|_| all.len() > before) {
            output.note(format!(
                "{}: {} in {}",
                place.format,
                describe::count((all.len() - before) as u64, "file"),
                place.folder.display()
            ));
        }
    }
    Ok(all)
}

pub(crate) fn format_of(name: &str) -> Result<ImportFormat, Failure> {
    ImportFormat::from_name(name).ok_or_else(|| {
        let names: Vec<&str> = ImportFormat::ALL.iter().map(|format| format.name()).collect();
        Failure::usage(format!("there is no format {name:?}")).hint(format!("formats: {}", names.join(", ")))
    })
}

/// Sums of the reports of one format.
#[derive(Debug, Default, serde::Serialize)]
struct FormatSum {
    format: String,
    files: u64,
    sessions: u64,
    subagents: u64,
    records: u64,
    calls: u64,
    calls_subagent: u64,
    failed: u64,
    without_result: u64,
    todo_snapshots: u64,
    todo_changes: u64,
    events_new: u64,
    facts_known: u64,
    unchanged: u64,
    bytes: u64,
}

fn render(
    reports: &[FileReport],
    imported: &[ImportedStore],
    skipped: &[Skipped],
    (other, is_nothing): (u64, bool),
    output: &mut Output,
) -> Result<(), Failure> {
    let mut sums: BTreeMap<ImportFormat, FormatSum> = BTreeMap::new();
    for file in reports {
        let report = &file.report;
        let sum = sums.entry(report.format).or_default();
        report.format.name().clone_into(&mut sum.format);
        for (total, count) in [
            (&mut sum.files, 1),
            (&mut sum.sessions, report.sessions),
            (&mut sum.subagents, report.subagents),
            (&mut sum.records, report.records),
            (&mut sum.calls, report.calls_main),
            (&mut sum.calls_subagent, report.calls_subagent),
            (&mut sum.failed, report.failed),
            (&mut sum.without_result, report.without_result),
            (&mut sum.todo_snapshots, report.todo_snapshots),
            (&mut sum.todo_changes, report.todo_deltas),
            (&mut sum.events_new, file.event_count),
            (&mut sum.facts_known, file.known_count),
            (&mut sum.unchanged, u64::from(file.is_unchanged)),
            (&mut sum.bytes, file.bytes),
        ] {
            *total += count;
        }
    }
    if output.json {
        let items: Vec<&FormatSum> = sums.values().collect();
        let value = json!({"items": items, "stores": imported, "skipped": skipped});
        return output.json_object("acpdb.import/1", &value).map(drop);
    }
    for store in imported {
        store.say(output)?;
    }
    if !reports.is_empty() {
        let columns = vec![
            text("format", |sum: &FormatSum| sum.format.clone()),
            number("sessions", |sum: &FormatSum| sum.sessions.to_string()),
            number("records", |sum: &FormatSum| sum.records.to_string()),
            number("calls", |sum: &FormatSum| table::with_subagents(sum.calls, sum.calls_subagent)),
            number("failed", |sum: &FormatSum| sum.failed.to_string()),
            number("no result", |sum: &FormatSum| sum.without_result.to_string()),
            number("new events", |sum: &FormatSum| sum.events_new.to_string()),
        ];
        table::print(output, columns, sums.values())?;
    }
    let new: u64 = sums.values().map(|sum| sum.events_new).sum();
    let said = if new == 0 {
        "nothing new".to_owned()
    } else {
        format!("{} recorded", describe::count(new, "event"))
    };
    let others = if other > 0 {
        format!(", {} of other kinds left alone", describe::count(other, "file"))
    } else {
        String::new()
    };
    if !reports.is_empty() || imported.is_empty() {
        output.line(format!("{}: {said}{others}", describe::count(reports.len() as u64, "file")))?;
    }
    if !skipped.is_empty() {
        // A file that is among those that were read is not refused, though a place in it has no line, as in a database.
        let read: HashSet<&Path> = reports.iter().map(|report| report.path.as_path()).collect();
        let is_refused = |file: &&Skipped| file.line.is_none() && !read.contains(file.path.as_path());
        let refused = skipped.iter().filter(is_refused).count();
        let said = |count: usize, one: &str, many: &str| match count {
            0 => None,
            1 => Some(format!("1 {one}")),
            count => Some(format!("{count} {many}")),
        };
        let places = said(skipped.len() - refused, "place needs a look", "places need a look");
        let refused = said(refused, "file is refused", "files are refused");
        let told: Vec<String> = refused.into_iter().chain(places).collect();
        let rest = if is_nothing { "nothing was recorded" } else { "the rest is recorded" };
        output.note(format!("{} (see the warnings above); {rest}", told.join(", ")));
    }
    Ok(())
}
