//! `acpdb backup`: a verified copy beside the writers, or a copy below a URL that is shipped piece by piece.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acpdb_engine::locks::steady;
use acpdb_remote::{
    ChainError, MakeRing, RehearsedRemote, Remote, ShipOptions, ShipProgress, Shipper, with_head,
};
use serde_json::json;

use super::remote_url::{self, RemoteUrl, WITHOUT_SECRET};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, progress, store_path};
use crate::args::BackupArgs;
use crate::{keys, rings, verdict};

pub(crate) fn run(global: &Global, args: &BackupArgs, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "backup")?;
    let target = match (&args.target, &global.settings.backup) {
        (Some(target), _) => target.clone(),
        (None, Some(url)) => url.into(),
        (None, None) => {
            let failure = Failure::usage("no folder and no URL is named");
            return Err(failure.hint(
                "acpdb backup DIR copies the store; acpdb config set backup URL says where it is shipped from here on",
            ));
        }
    };
    if remote_url::scheme(&target).is_some() {
        return ship(global, args, &target, output);
    }
    if args.follow || args.status || args.dry_run || args.keys || args.alone || args.encrypt {
        let failure = Failure::usage(format!("{} is no URL", target.display()));
        return Err(failure
            .hint("--follow, --status, --dry-run, --keys, --encrypt and --alone need one, as file:///mnt/disk/acpdb"));
    }
    let store = store_path::read(global, output)?;
    let bar = progress::bytes(store.info()?.log_bytes, output);
    let done = store.backup(&target, &mut |bytes| bar.inc(bytes));
    bar.finish_and_clear();
    let done = done.map_err(|error| Failure::taken(error, "backup"))?;
    let report = &done.report;
    if let Err(failure) = keys::remember_backup(report.store, report.head_seq, report.head_link, &done.path) {
        output.warn(format!(
            "once more is signed here, verify will take the backup for a log that was set back: {}",
            failure.message
        ));
    }
    let code = verdict::code_of(&done.report);
    if output.json {
        output.json_line(&done)?;
        return Ok(code);
    }
    let folder = escape(&done.path.display().to_string(), EscapeLevel::Line).into_owned();
    let copied = if done.bytes == 0 { "there already".to_owned() } else { describe::bytes(done.bytes) };
    output.line(format!(
        "{folder}: {} up to {}, {copied}, verified",
        describe::count(done.report.events, "event"),
        done.head
    ))?;
    if code != Code::Ok {
        let copy = store_path::quoted(&done.path);
        output.line(format!(
            "The copy is as damaged as the store: acpdb --db {copy} verify says how. Keep older backups."
        ))?;
    }
    Ok(code)
}

/// Ships the store to a URL, or says how far it is there.
fn ship(global: &Global, args: &BackupArgs, target: &Path, output: &mut Output) -> Result<Code, Failure> {
    let url = RemoteUrl::read(target)?;
    let folder = store_path::folder(global, output)?;
    let open = |remote: Arc<dyn Remote>| {
        let options = ShipOptions { owner: owner(), key: args.keys, ..ShipOptions::default() };
        Shipper::open(&folder, remote, options).map_err(|error| url.failed(error, Code::Partial))
    };
    let key_file = global.key_file.as_deref();
    let mut real = if args.alone { url.open_alone(key_file)? } else { url.open(key_file)? };
    let made_key = Arc::new(Mutex::new(None));
    if args.encrypt || global.settings.backup_encrypt == Some(true) {
        if rings::is_encrypted(&folder) {
            let failure = Failure::usage("the store is encrypted: what is shipped of it is, too");
            return Err(failure.hint("leave out --encrypt, and the setting backup_encrypt"));
        }
        real = real.seal_new(maker(key_file, Arc::clone(&made_key)));
    }
    let real: Arc<dyn Remote> = Arc::new(real);
    if args.status {
        return tell_status(&url, &open(real)?, output);
    }
    url.check_to_write(&*real, &folder)?;
    let rehearsed = Arc::new(RehearsedRemote::new(Arc::clone(&real)));
    let remote: Arc<dyn Remote> = if args.dry_run { Arc::<RehearsedRemote>::clone(&rehearsed) } else { real };
    let mut shipper = open(Arc::clone(&remote))?;
    let store = shipper.store();
    let warnings = ShipWarnings::new(&*remote, made_key);
    let warn = || warnings.is_head_lost.set(true);
    let code = if shipper.lacks_secret().map_err(|error| url.failed(error, Code::Partial))? {
        output.warn(format!(
            "the store's file secret is neither here nor there: {WITHOUT_SECRET}; put the file back from a backup"
        ));
        Code::Partial
    } else {
        Code::Ok
    };
    if args.follow {
        let every = Duration::from_secs(args.every.into());
        let mut teller = FollowProgress::new(&url, &warnings, output);
        let done = with_head(&*remote, store, warn, || follow(&mut shipper, every, &mut teller));
        let code = if teller.is_erased_there_still { Code::Partial } else { code };
        if let Some(unsaid) = teller.unsaid {
            return Err(unsaid);
        }
        warnings.tell(output);
        return done.map(|()| code).map_err(|error| url.failed(error, Code::Partial));
    }
    let spinner = progress::spinner("shipping", output);
    let shipped = with_head(&*remote, store, warn, || shipper.ship(&mut |_| true));
    drop(spinner);
    warnings.tell_of_beginning(output);
    let shipped = shipped.map_err(|error| url.failed(error, Code::Partial))?;
    warnings.tell(output);
    let code = if warnings.tell_of_erased(shipped.erased, output) { Code::Partial } else { code };
    let shown = url.shown();
    if args.dry_run {
        let (line, count) = url.estimate(global, &rehearsed.count(), false)?;
        if output.json {
            let value = json!({"schema": "acpdb.estimate/1", "store": store, "url": url.typed(), "until": shipped.there});
            return output.json_line(&describe::with(value, count));
        }
        output.line(line)?;
        return Ok(Code::Ok);
    }
    if output.json {
        let value = json!({"schema": "acpdb.shipped/1", "store": store, "url": url.typed()});
        return output.json_line(&describe::with(value, json!(shipped))).map(|_| code);
    }
    let pieces = shipped.chunks.saturating_add(shipped.segments);
    let sent = if pieces == 0 {
        "nothing new".to_owned()
    } else {
        format!("{} shipped in {}", describe::bytes(shipped.bytes), describe::count(pieces, "piece"))
    };
    output.line(format!(
        "{shown}: all up to {} is there, {sent}{}",
        shipped.there,
        of_erased(shipped.erased)
    ))?;
    Ok(code)
}

/// Makes the key for what is shipped, where the options say, and keeps the place for the person.
fn maker(key_file: Option<&Path>, made_key: Arc<Mutex<Option<String>>>) -> Box<MakeRing> {
    let key_file = key_file.map(Path::to_owned);
    Box::new(move || {
        let new = rings::new_place(key_file.as_deref()).and_then(rings::new);
        let (ring, name) = new.map_err(|failure| io::Error::other(failure.message))?;
        *steady(&made_key) = Some(name);
        Ok(ring)
    })
}

/// How many segments were replaced since texts of them were erased, for the end of a line.
fn of_erased(segments: u64) -> String {
    match segments {
        0 => String::new(),
        count => format!(", {} replaced, since texts were erased", describe::count(count, "segment")),
    }
}

/// The name of this machine for people who look at what is there.
fn owner() -> String {
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let host: String = host.trim().chars().filter(|letter| !letter.is_control()).take(64).collect();
    if host.is_empty() { "acpdb".to_owned() } else { format!("acpdb on {host}") }
}

fn tell_status(url: &RemoteUrl, shipper: &Shipper, output: &mut Output) -> Result<Code, Failure> {
    let status = shipper.status().map_err(|error| url.failed(error, Code::Failure))?;
    let shown = url.shown();
    if output.json {
        let value = json!({"schema": "acpdb.remote/1", "store": shipper.store(), "url": url.typed(), "status": status});
        return output.json_line(&value);
    }
    let Some(status) = status else {
        output.line(format!("{shown}: nothing of store {} is there yet", shipper.store()))?;
        return Ok(Code::Ok);
    };
    let here = status.here.unwrap_or(status.there);
    output.line(format!("{shown}: store {}", status.store))?;
    let behind = describe::count(status.behind, "event");
    output.line(format!("  there {}, here {here}: {behind} behind", status.there))?;
    let owner = escape(&status.owner, EscapeLevel::Line).into_owned();
    output.line(format!("  shipped by {owner}, epoch {}", status.epoch))?;
    let kept = [(status.segments, "segment"), (status.packs, "pack"), (status.chunks, "chunk")]
        .map(|(count, what)| describe::count(count as u64, what));
    let encrypted = if status.encrypted_objects { ", encrypted" } else { "" };
    output.line(format!("  {}{encrypted}", kept.join(", ")))?;
    if status.trash > 0 {
        let trash = describe::count(status.trash as u64, "replaced object");
        output.line(format!("  {trash} still there; the next backup removes them"))?;
    }
    if status.lacks_secret {
        output.warn(format!("the store's file secret is not there: {WITHOUT_SECRET}"));
    }
    if status.there > here {
        output.warn("the store here has less than what is there: acpdb backup URL says more");
    }
    Ok(Code::Ok)
}

/// Warnings about the place to which a store is shipped, each told once.
struct ShipWarnings<'o> {
    remote: &'o dyn Remote,
    /// The head was lost, and that is not told yet.
    is_head_lost: Cell<bool>,
    /// The place of a key that was made, and is not told yet.
    made_key: Arc<Mutex<Option<String>>>,
    are_versions_told: Cell<bool>,
    are_erased_told: Cell<bool>,
}

impl<'o> ShipWarnings<'o> {
    const fn new(remote: &'o dyn Remote, made_key: Arc<Mutex<Option<String>>>) -> Self {
        Self {
            remote,
            is_head_lost: Cell::new(false),
            made_key,
            are_versions_told: Cell::new(false),
            are_erased_told: Cell::new(false),
        }
    }

    /// Says what the first calls have found and made.
    fn tell_of_beginning(&self, output: &Output) {
        if self.is_head_lost.take() {
            output.warn("the head of the store was lost there; it was made anew from the other objects");
        }
        if let Some(name) = steady(&self.made_key).take() {
            output.warn(format!(
                "the key of what is shipped is {name}: keep a copy elsewhere, since without it that cannot be read; acpdb config set backup_encrypt true asks for it at each backup"
            ));
        }
    }

    fn tell(&self, output: &Output) {
        self.tell_of_beginning(output);
        if !self.are_versions_told.get() && self.remote.has_versions() {
            self.are_versions_told.set(true);
            output.warn("the bucket keeps old versions of objects: what is erased or replaced stays there until a rule of the bucket removes it");
        }
    }
}

impl ShipWarnings<'_> {
    /// Says, once, that texts which were erased are there still. Returns whether they are.
    fn tell_of_erased(&self, segments: u64, output: &Output) -> bool {
        let are_there = segments > 0 && self.remote.has_versions();
        if are_there && !self.are_erased_told.replace(true) {
            output.warn(
                "what was erased is there still, in old versions of objects: a lifecycle rule of the bucket, or who holds its locks, has to remove them",
            );
        }
        are_there
    }
}

/// Says how far a follower is.
struct FollowProgress<'o> {
    url: &'o RemoteUrl,
    warnings: &'o ShipWarnings<'o>,
    output: &'o mut Output,
    /// The last seq that was said, and the segments of which texts were erased.
    said: Option<(u64, u64)>,
    is_erased_there_still: bool,
    is_failing: bool,
    /// The failure of a line that could not be printed.
    unsaid: Option<Failure>,
}

impl<'o> FollowProgress<'o> {
    const fn new(url: &'o RemoteUrl, warnings: &'o ShipWarnings<'o>, output: &'o mut Output) -> Self {
        Self {
            url,
            warnings,
            output,
            said: None,
            is_erased_there_still: false,
            is_failing: false,
            unsaid: None,
        }
    }

    fn tell(&mut self, progress: &ShipProgress) -> Result<(), Failure> {
        self.warnings.tell(self.output);
        let is_failing = progress.failed_count > 0;
        if is_failing && !self.is_failing {
            self.output.warn(format!("{} does not take it now; tried again until it does", self.url.shown()));
        }
        self.is_failing = is_failing;
        self.is_erased_there_still |= self.warnings.tell_of_erased(progress.erased, self.output);
        let (there, erased) = (progress.there, progress.erased);
        if is_failing || there != progress.until || self.said == Some((there.0, erased)) {
            return Ok(());
        }
        // A new count is told with the next line.
        let replaced = erased - self.said.map_or(0, |(_, erased)| erased).min(erased);
        self.said = Some((there.0, erased));
        if self.output.json {
            let value = json!({"schema": "acpdb.shipped/1", "url": self.url.typed(), "there": there, "erased": replaced});
            self.output.json_line(&value)?;
        } else {
            let of_erased = of_erased(replaced);
            self.output.line(format!("{}: all up to {there} is there{of_erased}", self.url.shown()))?;
        }
        self.output.flush()
    }
}

/// Ships until a signal ends it, or the reader of its lines goes away.
fn follow(shipper: &mut Shipper, every: Duration, teller: &mut FollowProgress<'_>) -> Result<(), ChainError> {
    let is_stopping = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&is_stopping);
    crate::interrupt::instead(move || stopping.store(true, Ordering::SeqCst));
    shipper.follow(every, &mut |progress| {
        teller.unsaid = teller.tell(progress).err();
        teller.unsaid.is_none() && !is_stopping.load(Ordering::SeqCst)
    })
}
