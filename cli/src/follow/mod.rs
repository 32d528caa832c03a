//! `acpdb import --follow`: the store is kept current while hosts write.
//!
//! ```text
//! words of the system ─┐            ┌ lines that a host adds to: a thread each, which reads on (tail)
//! a look at all files ─┼─> changed ─┤
//! signals ─────────────┘            └ documents, databases, packed files: read whole, the longer it takes the rarer
//! ```
//!
//! A file that is known and did not change costs one look at its folder entry. Threads wait for a notice. While nothing happens,
//! only the look at all files runs, less often where it takes long. Times are those of a clock that only goes forward: a change of
//! the date changes nothing, and after a sleep of the machine the next look is due at the latest.

mod schedule;
mod tail;
mod watch;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use acpdb_engine::Store;
use acpdb_engine::text::paths::shown;
use acpdb_hosts::import::{ImportFormat, ImportOptions, Limits, ReadSessions};

use self::schedule::Schedule;
pub(crate) use self::tail::End;
pub(crate) use self::watch::Root;
use self::watch::Watch;
use crate::describe;
use crate::failure::{Code, Failure};
use crate::kept;
use crate::known::{FileStamp, KnownFiles};
use crate::output::Output;
use crate::reader::{
    self, FileChoice, FileList, FileReport, ImportFile, ReadError, Recognised, Skipped, notes, refused,
};

/// A host may still write to a file that changed within this time before the start.
const RECENT: Duration = Duration::from_secs(60 * 60);
/// Most files that are kept open.
const OPEN_COUNT_MAX: usize = 32;
/// Warnings that are remembered, so that each is given once.
const SAID_MAX: usize = 10_000;

/// Messages to the follower.
pub(crate) enum FollowMessage {
    /// These paths may have changed.
    Changed(Vec<PathBuf>),
    /// Notices were lost.
    Look,
    /// A folder is not watched.
    Unwatched(String),
    /// A growing file brought this number of events.
    Recorded { path: PathBuf, format: ImportFormat, event_count: u64 },
    /// A growing file has a record that is too long, which is left out. Its report comes at its end, which may be days later.
    LeftOut(Skipped),
    /// The reading of a growing file has ended.
    Ended { path: PathBuf, end: End, position: u64, result: Box<Result<FileReport, ReadError>> },
    /// The user or the system wants the follower to end.
    Stop,
}

/// The files to follow, and how to follow them.
pub(crate) struct FollowPlan {
    pub(crate) roots: Vec<Root>,
    pub(crate) choice: FileChoice,
    pub(crate) options: ImportOptions,
    /// Pause between looks at all files.
    pub(crate) every: Duration,
    /// How often a checkpoint is signed.
    pub(crate) sign: Option<crate::settings::Every>,
}

/// A file that is open.
struct FollowedFile {
    wake: SyncSender<()>,
    /// The time of its last change, as far as notices came.
    changed: Instant,
    /// The file's stamp before it was opened.
    stamp: FileStamp,
    thread: JoinHandle<()>,
}

struct Follower<'o> {
    plan: FollowPlan,
    store: Store,
    known: KnownFiles,
    output: &'o mut Output,
    watch: Watch,
    news: Sender<FollowMessage>,
    open: HashMap<PathBuf, FollowedFile>,
    /// Stamps of files that are read whole, from their last reading in this run.
    stamps: HashMap<PathBuf, FileStamp>,
    schedule: Schedule,
    /// Sessions of each database, as they were when they were read.
    sessions: HashMap<PathBuf, ReadSessions>,
    said: BTreeSet<String>,
    /// Records of growing files that were told as left out: the file, and the line.
    left_out: BTreeSet<(PathBuf, Option<u64>)>,
    event_count: u64,
    /// The follower was told to stop; the message itself may come behind others.
    is_stopping: Arc<AtomicBool>,
}

/// Follows files until a signal ends it.
pub(crate) fn run(
    store: Store,
    known: KnownFiles,
    plan: FollowPlan,
    output: &mut Output,
) -> Result<(), Failure> {
    let (news, told) = channel();
    let stop = news.clone();
    let is_stopping = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&is_stopping);
    crate::interrupt::instead(move || {
        stopping.store(true, Ordering::SeqCst);
        // A follower that has ended receives nothing; `is_stopping` says the same.
        let _ = stop.send(FollowMessage::Stop);
    });
    let (watch, trouble) = Watch::new(news.clone());
    let schedule = Schedule::new(plan.every, Instant::now());
    let mut follower = Follower {
        plan,
        store,
        known,
        output,
        watch,
        news,
        open: HashMap::new(),
        stamps: HashMap::new(),
        schedule,
        sessions: HashMap::new(),
        said: BTreeSet::new(),
        left_out: BTreeSet::new(),
        event_count: 0,
        is_stopping,
    };
    if let Some(trouble) = trouble {
        follower.warn(format!("changes are found by looking only: {trouble}"));
    }
    let result = follower.follow(&told);
    let ended = follower.end(&told);
    result.and(ended)
}

impl Follower<'_> {
    fn follow(&mut self, told: &Receiver<FollowMessage>) -> Result<(), Failure> {
        self.look(true)?;
        let folders = self.plan.roots.iter().filter(|root| root.path.exists()).count() as u64;
        if !self.output.json && !self.output.quiet {
            self.output.line(format!("following {}", describe::count(folders, "place")))?;
        }
        loop {
            self.output.flush()?;
            let wait = self.schedule.wait(Instant::now());
            match told.recv_timeout(wait) {
                Ok(FollowMessage::Stop) | Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Ok(news) => {
                    if self.hear(news)? {
                        self.schedule.look_at_once(Instant::now());
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            for path in self.schedule.take_due(Instant::now()) {
                self.changed(&path)?;
            }
            if self.schedule.is_look_due(Instant::now()) {
                self.look(false)?;
            }
        }
    }

    /// Takes in a message. Returns true if all files are to be looked at.
    fn hear(&mut self, news: FollowMessage) -> Result<bool, Failure> {
        match news {
            FollowMessage::Changed(paths) => {
                for path in paths {
                    self.changed(&path)?;
                }
            }
            FollowMessage::Look => return Ok(true),
            FollowMessage::Unwatched(why) => {
                self.warn(format!("changes may be found by looking only: {why}"));
            }
            FollowMessage::Recorded { path, format, event_count } => {
                self.recorded(&path, format, event_count)?;
            }
            FollowMessage::LeftOut(skipped) => self.leave_out(skipped),
            FollowMessage::Ended { path, end, position, result } => {
                self.closed(&path, end, position, *result)?;
            }
            FollowMessage::Stop => {}
        }
        Ok(false)
    }

    /// Looks at all files.
    fn look(&mut self, is_first: bool) -> Result<(), Failure> {
        let start = Instant::now();
        for index in 0..self.plan.roots.len() {
            let Some(root) = self.plan.roots.get(index) else { break };
            // Watched first, so that a change while files are listed gives a notice.
            if let Err(trouble) = self.watch.add(root) {
                self.warn(trouble);
            }
            let Some(root) = self.plan.roots.get(index) else { break };
            let found = root
                .files()
                .map_err(|error| format!("{}: cannot be looked at: {error}", root.path.display()));
            let found = found.unwrap_or_else(|trouble| {
                self.warn(trouble);
                FileList::default()
            });
            for skipped in &found.unread {
                self.skip(skipped);
            }
            for candidate in found.files {
                if self.is_stopping.load(Ordering::SeqCst) {
                    return Ok(());
                }
                self.consider(&candidate, is_first)?;
            }
        }
        kept::leave_with(&mut self.known, &self.store);
        if let Some(every) = self.plan.sign {
            crate::signing::sign_if_due(&self.store, every, self.output);
        }
        self.schedule.has_looked(Instant::now(), start.elapsed(), is_first);
        Ok(())
    }

    /// Looks at a path that may have changed.
    fn changed(&mut self, path: &Path) -> Result<(), Failure> {
        let name = path.to_string_lossy();
        // New data of a database is in its log first.
        let path = name.strip_suffix("-wal").map_or_else(|| path.to_owned(), PathBuf::from);
        if self.wake(&path) {
            if let Some(open) = self.open.get_mut(&path) {
                open.changed = Instant::now();
            }
            return Ok(());
        }
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { return Ok(()) };
        if metadata.is_dir() {
            return self.folder(&path);
        }
        if metadata.is_file() && self.plan.roots.iter().any(|root| root.holds(&path)) {
            self.consider(&ImportFile { path, bytes: metadata.len(), named: false }, false)?;
        }
        Ok(())
    }

    /// Makes the thread of an open file read on; false if the file is not open.
    fn wake(&mut self, path: &Path) -> bool {
        let Some(open) = self.open.get(path) else { return false };
        let is_open = !matches!(open.wake.try_send(()), Err(TrySendError::Disconnected(())));
        if !is_open {
            self.open.remove(path);
        }
        is_open
    }

    /// Looks into a folder that is new, or moved here.
    fn folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let below = |root: &&Root| root.path != folder && folder.starts_with(&root.path);
        let roots = self.plan.roots.iter().filter(below);
        // A folder that cannot be listed now is looked at with all the others.
        let found: Vec<ImportFile> = roots
            .filter_map(|root| root.files_below(folder, true).ok())
            .flat_map(|found| found.files)
            .collect();
        for candidate in &found {
            if !self.open.contains_key(&candidate.path) {
                self.consider(candidate, false)?;
            }
        }
        self.schedule.has_looked_into(folder, Instant::now());
        Ok(())
    }

    /// Reads a file if it has changed.
    fn consider(&mut self, candidate: &ImportFile, is_first: bool) -> Result<(), Failure> {
        let path = &candidate.path;
        if self.wake(path) {
            return Ok(());
        }
        let Some(stamp) = FileStamp::at(path) else { return Ok(()) };
        let was_read = self.stamps.get(path) == Some(&stamp) && stamp.is_settled();
        if was_read || self.known.is_as_it_was(path, &stamp) {
            return Ok(());
        }
        let now = Instant::now();
        if !self.schedule.may_read(path, now) {
            return Ok(());
        }
        // The format of lines is not known before the first line is there.
        if candidate.bytes == 0 {
            return Ok(());
        }
        if is_lines(path) {
            match has_line(path, &self.plan.options.limits) {
                Ok(true) => {}
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    self.skip(&Skipped::unread(path.clone(), &error));
                    return Ok(());
                }
                // It waits for its first line, or is gone.
                Ok(false) | Err(_) => return Ok(()),
            }
        }
        let reading = KnownFiles::begin(path);
        self.stamps.insert(path.clone(), stamp.clone());
        match reader::recognise(candidate, self.plan.choice) {
            Recognised::Session(format)
                if can_grow(format, path) && (!is_first || stamp.is_within(RECENT)) =>
            {
                self.stamps.remove(path);
                self.begin(path, format, stamp);
            }
            Recognised::Session(format) => {
                let sessions = self.sessions.entry(path.clone()).or_default();
                let options = &self.plan.options;
                let result = reader::read_changed(&self.store, path, format, options, sessions, &mut |_| {});
                if result.is_err() {
                    // It is not known which part of the file was recorded.
                    self.sessions.remove(path);
                }
                match result {
                    Ok(report) if report.report.is_empty => self.known.keep(path, &reading, None),
                    Ok(report) => {
                        self.known.keep(path, &reading, Some(&report));
                        self.read(path, &report)?;
                    }
                    Err(error) => self.refuse(path, error)?,
                }
            }
            Recognised::Other => self.known.keep(path, &reading, None),
            Recognised::Skipped(skipped) => self.skip(&skipped),
        }
        self.schedule.has_read(path, Instant::now(), now.elapsed());
        Ok(())
    }

    /// Opens a file that may grow.
    fn begin(&mut self, path: &Path, format: ImportFormat, stamp: FileStamp) {
        if self.open.len() >= OPEN_COUNT_MAX
            && let Some(oldest) =
                self.open.iter().min_by_key(|(_, open)| open.changed).map(|(path, _)| path.clone())
        {
            // The thread of a file without notices ends, and says so.
            self.open.remove(&oldest);
        }
        let (wake, wakes) = sync_channel(1);
        let job = tail::TailJob {
            store: self.store.clone(),
            path: path.to_owned(),
            format,
            options: self.plan.options.clone(),
            wakes,
            news: self.news.clone(),
        };
        match std::thread::Builder::new().name("tail".to_owned()).spawn(move || tail::run(job)) {
            Ok(thread) => {
                self.open
                    .insert(path.to_owned(), FollowedFile { wake, changed: Instant::now(), stamp, thread });
            }
            Err(error) => self.warn(format!("{}: cannot be followed: {error}", path.display())),
        }
    }

    /// Takes note that the reading of a file that grows has ended.
    fn closed(
        &mut self,
        path: &Path,
        end: End,
        position: u64,
        result: Result<FileReport, ReadError>,
    ) -> Result<(), Failure> {
        let before = self.open.get(path).map(|open| open.stamp.clone());
        // A reading of the file that was begun since then goes on.
        self.wake(path);
        match result {
            Ok(report) => {
                if end == End::Still {
                    self.known.keep_grown(path, position, &report);
                }
                self.tell(&report);
            }
            Err(error) => {
                // A file over a limit stays so until it changes: without its stamp, some gigabytes would be read at each look.
                if let (Some(stamp), ReadError::Import { .. }) = (before, &error) {
                    self.stamps.insert(path.to_owned(), stamp);
                }
                self.refuse(path, error)?;
            }
        }
        if end == End::Replaced {
            self.changed(path)?;
        }
        Ok(())
    }

    /// Tells of a file that was read whole.
    fn read(&mut self, path: &Path, report: &FileReport) -> Result<(), Failure> {
        self.tell(report);
        if report.event_count == 0 {
            return Ok(());
        }
        self.recorded(path, report.report.format, report.event_count)
    }

    /// Warns of parts that were left out, but not of a record that is half written: it will be complete later.
    fn tell(&mut self, report: &FileReport) {
        let cut = report.report.cut.as_ref().map(|note| note.line);
        for skipped in notes(report).iter().filter(|skipped| cut.is_none() || skipped.line != cut) {
            if !self.left_out.contains(&(skipped.path.clone(), skipped.line)) {
                self.skip(skipped);
            }
        }
    }

    /// Warns of a record that is left out. The report of its file will name it again.
    fn leave_out(&mut self, skipped: Skipped) {
        self.skip(&skipped);
        if self.left_out.len() < SAID_MAX {
            self.left_out.insert((skipped.path, skipped.line));
        }
    }

    fn recorded(&mut self, path: &Path, format: ImportFormat, event_count: u64) -> Result<(), Failure> {
        self.event_count = self.event_count.saturating_add(event_count);
        if self.output.json {
            let line = serde_json::json!({
                "schema": "acpdb.follow/1", "path": shown(path), "format": format.name(), "events_new": event_count,
            });
            return self.output.json_line(&line).map(drop);
        }
        if self.output.quiet {
            return Ok(());
        }
        let path = path.display().to_string();
        let path = crate::output::escape(&path, crate::output::EscapeLevel::Line);
        self.output.line(format!("{path}: {}", describe::count(event_count, "event")))
    }

    fn refuse(&mut self, path: &Path, error: ReadError) -> Result<(), Failure> {
        let skipped = refused(path, error)?;
        self.skip(&skipped);
        Ok(())
    }

    fn skip(&mut self, skipped: &Skipped) {
        let line = skipped.line.map(|line| format!(":{line}")).unwrap_or_default();
        self.warn(format!("{}{line}: {}", skipped.path.display(), skipped.reason));
    }

    /// Warns of `text`, once.
    fn warn(&mut self, text: String) {
        if self.said.len() < SAID_MAX && !self.said.contains(&text) {
            self.output.warn(&text);
            self.said.insert(text);
        }
    }

    /// Ends all threads; each first records all that it has read.
    fn end(mut self, told: &Receiver<FollowMessage>) -> Result<(), Failure> {
        let threads: Vec<_> = self.open.drain().map(|(path, open)| (path, open.thread)).collect();
        let mut result = Ok(());
        for (path, thread) in threads {
            if thread.join().is_err() {
                let message = format!("a bug ended the reading of {}; import it again", path.display());
                result = result.and(Err(Failure::new(Code::Failure, message)));
            }
        }
        for news in told.try_iter().collect::<Vec<_>>() {
            let heard = match news {
                FollowMessage::Ended { path, position, result, end: End::Still } => {
                    self.closed(&path, End::Still, position, *result)
                }
                FollowMessage::Recorded { path, format, event_count } => {
                    self.recorded(&path, format, event_count)
                }
                FollowMessage::LeftOut(skipped) => {
                    self.leave_out(skipped);
                    Ok(())
                }
                FollowMessage::Ended { result, .. } => match *result {
                    Err(error @ ReadError::Store(_)) => self.refuse(Path::new(""), error),
                    _ => Ok(()),
                },
                _ => Ok(()),
            };
            result = result.and(heard);
        }
        kept::leave_with(&mut self.known, &self.store);
        let Self { store, output, event_count, watch, .. } = self;
        drop(watch);
        store.close()?;
        output.note(format!("stopped; {} recorded", describe::count(event_count, "event")));
        result
    }
}

/// Whether files of a format grow line by line, and are read so.
fn can_grow(format: ImportFormat, path: &Path) -> bool {
    let grows = matches!(
        format,
        ImportFormat::ClaudeCode
            | ImportFormat::Codex
            | ImportFormat::CopilotCli
            | ImportFormat::GeminiCli
            | ImportFormat::Pi
    );
    grows && is_lines(path)
}

fn is_lines(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("jsonl"))
}

/// Whether a file's first line is complete, or longer than a record may be: such a line is not waited for.
fn has_line(path: &Path, limits: &Limits) -> std::io::Result<bool> {
    use std::io::{BufRead as _, Read as _};
    let mut file = std::io::BufReader::new(std::fs::File::open(path)?).take(limits.record);
    loop {
        if file.limit() == 0 {
            return Ok(true);
        }
        match file.fill_buf()? {
            [] => return Ok(false),
            bytes if bytes.contains(&b'\n') => return Ok(true),
            bytes => {
                let count = bytes.len();
                file.consume(count);
            }
        }
    }
}
