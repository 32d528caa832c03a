//! Finds the store that a command means, and opens it.

use std::path::{Path, PathBuf};

use acpdb_engine::Store;
use acpdb_engine::store::erasure_is_pending;

use crate::failure::{Code, Failure};
use crate::global::Global;
use crate::output::Output;
use crate::redaction::RedactOptions;
use crate::settings;
use crate::trust;

/// Name of a store's folder inside a project.
pub(crate) const FOLDER: &str = ".acpdb";

/// The state of an erasure that a crash or a full disk interrupted.
pub(crate) const ERASING: &str = "begun and not ended; the next verb that writes, such as seal, ends it";

/// The store's folder: `--db` or `$ACPDB_PATH`, else the nearest `.acpdb/` upwards, else the setting `db`, else the user's data
/// directory. Warns if a named folder is strange.
pub(crate) fn folder(global: &Global, output: &Output) -> Result<PathBuf, Failure> {
    let found = find(global)?;
    if let Some(objection) = found.objection {
        output.warn(format!("{} {objection}", found.folder.display()));
    }
    Ok(found.folder)
}

/// A variable of the environment. A value that is not UTF-8 counts as not set: a path with it can neither be shown nor be written
/// into a host's settings.
pub(crate) fn variable(name: &str) -> Option<String> {
    // Not set, or not UTF-8.
    std::env::var(name).ok()
}

/// A store's folder, and the objection to using it.
pub(crate) struct Found {
    pub(crate) folder: PathBuf,
    objection: Option<String>,
}

/// The store's folder; prints nothing.
///
/// A folder found upwards may be the choice of any user who could make a folder there. So it has to be the user's own, or trusted.
/// A named folder is the user's choice.
pub(crate) fn find(global: &Global) -> Result<Found, Failure> {
    let named = |folder: PathBuf| {
        let objection = trust::objection(&folder).filter(|_| !trust::is_trusted(&global.settings, &folder));
        Found { folder, objection }
    };
    if let Some(path) = &global.db {
        if path.is_file() {
            let failure =
                Failure::not_found(format!("{} is a file, and a store is a folder", path.display()));
            return Err(failure.hint("name the folder with acpdb.json in it"));
        }
        return Ok(named(path.clone()));
    }
    found_from(global, working_folder(global)?, named)
}

/// The store that commands in `here` use if none is named, where there is one. A new store in `here` would take its place.
pub(crate) fn used_in(global: &Global, here: &Path) -> Option<PathBuf> {
    let plain = |folder| Found { folder, objection: None };
    // A folder that commands refuse is not used.
    let found = found_from(global, Some(here.to_owned()), plain).ok()?;
    found.folder.join("acpdb.json").symlink_metadata().is_ok().then_some(found.folder)
}

/// As [`find`], from the folder `here`; `named` judges a folder from the settings or the default.
fn found_from(
    global: &Global,
    here: Option<PathBuf>,
    named: impl Fn(PathBuf) -> Found,
) -> Result<Found, Failure> {
    if let Some(here) = here {
        for folder in here.ancestors().map(|folder| folder.join(FOLDER)) {
            // Folders above may be closed to this user. Such a folder holds no store of this user.
            let Ok(found) = folder.symlink_metadata() else { continue };
            if found.is_symlink() {
                let failure = Failure::new(
                    Code::Failure,
                    format!(
                        "{} is a symbolic link, and is not followed where it is only found",
                        folder.display()
                    ),
                );
                return Err(failure.hint(format!("name the store with --db {}", quoted(&folder))));
            }
            if !found.is_dir() {
                continue;
            }
            let objection =
                trust::objection(&folder).filter(|_| !trust::is_trusted(&global.settings, &folder));
            let Some(objection) = objection else { return Ok(Found { folder, objection: None }) };
            let failure = Failure::new(Code::Failure, format!("{} {objection}", folder.display()));
            return Err(failure.hint(format!(
                "if you trust it: acpdb trust {0}; to use it once: --db {0}",
                quoted(&folder)
            )));
        }
    }
    if let Some(path) = &global.settings.db {
        return Ok(named(path.clone()));
    }
    let data = settings::path_in("XDG_DATA_HOME");
    let data = data.or_else(|| Some(settings::path_in("HOME")?.join(".local/share")));
    data.map(|data| named(data.join("acpdb"))).ok_or_else(|| {
        Failure::usage("there is no home folder to keep a store in").hint("name a store with --db PATH")
    })
}

/// The folder from which stores are looked for upwards. It may be gone, such as a removed work tree. Then the project is not known,
/// and the user's own store does not take the place of the project's store.
fn working_folder(global: &Global) -> Result<Option<PathBuf>, Failure> {
    match std::env::current_dir() {
        Ok(here) => Ok(Some(here)),
        // A store that the settings name is meant wherever a command runs.
        Err(_) if global.settings.db.is_some() => Ok(None),
        Err(error) => Err(Failure::io("find", "the working folder")(error)
            .hint("go to a folder that is there, or name the store with --db PATH")),
    }
}

/// A path as it can be typed in a shell.
pub(crate) fn quoted(path: &Path) -> String {
    typed(&path.display().to_string())
}

/// A text as it can be typed in a shell.
pub(crate) fn typed(text: &str) -> String {
    shlex::try_quote(text).map_or_else(|_| text.to_owned(), std::borrow::Cow::into_owned)
}

/// Opens the store to append to it; makes it if need be.
pub(crate) fn open(global: &Global, output: &Output) -> Result<Store, Failure> {
    open_at(&folder(global, output)?, global, output)
}

/// Opens, and tells of damage that opening found.
fn told(builder: acpdb_engine::Builder, output: &Output) -> Result<Store, Failure> {
    let store = builder.open()?;
    report(&store, output);
    Ok(store)
}

/// Longest wait for a lock in a program for which a host waits. A start, a call and the end may each wait for a lock: together they
/// take less than the ten seconds that a hook has.
const LIVE_LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(2);

/// As [`open`], for a program that serves a host call by call.
pub(crate) fn open_live(global: &Global, output: &Output) -> Result<Store, Failure> {
    let folder = folder(global, output)?;
    let builder = redacting(builder(&folder), global)?;
    told(builder.lock_wait(LIVE_LOCK_WAIT), output)
}

/// Memory for sessions while they are recorded one after the other: a session is hardly met twice.
const RECORDING_BYTES: u64 = 16 << 20;

/// Opens the store to append to it, with secrets taken out as asked.
pub(crate) fn open_redacting(
    global: &Global,
    redact: &RedactOptions,
    output: &Output,
) -> Result<Store, Failure> {
    let folder = folder(global, output)?;
    let mut builder = builder(&folder).memory_max(RECORDING_BYTES);
    if let Some(rules) = crate::redaction::rules(redact, global.settings.redact == Some(true))? {
        builder = builder.redactor(std::sync::Arc::new(rules));
    }
    told(builder, output)
}

/// A store that knows the tools of all hosts.
pub(crate) fn builder(folder: &Path) -> acpdb_engine::Builder {
    Store::builder(folder).registry(acpdb_hosts::registry())
}

/// Takes secrets out of all that a verb records, if the settings ask for it.
fn redacting(builder: acpdb_engine::Builder, global: &Global) -> Result<acpdb_engine::Builder, Failure> {
    let rules = crate::redaction::rules(&RedactOptions::default(), global.settings.redact == Some(true))?;
    Ok(match rules {
        Some(rules) => builder.redactor(std::sync::Arc::new(rules)),
        None => builder,
    })
}

/// Makes a store that is removed afterwards, so that it may lie on any file system.
pub(crate) fn open_scratch(folder: &Path, output: &Output) -> Result<Store, Failure> {
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).any_file_system().open()?;
    report(&store, output);
    Ok(store)
}

/// Opens a store in a given folder to append to it.
pub(crate) fn open_at(folder: &Path, global: &Global, output: &Output) -> Result<Store, Failure> {
    told(redacting(builder(folder), global)?, output)
}

/// Opens an existing store to read. Nothing in its folder changes, in any state of the store.
pub(crate) fn read(global: &Global, output: &Output) -> Result<Store, Failure> {
    read_by(global, output, |builder| builder)
}

/// Memory of a store that is shown for hours: people look at one session after the other.
#[cfg(feature = "ui")]
const SHOWING_BYTES: u64 = 8 << 20;

/// As [`read`], for a program that runs for long.
#[cfg(feature = "ui")]
pub(crate) fn read_to_show(global: &Global, output: &Output) -> Result<Store, Failure> {
    read_by(global, output, |builder| builder.memory_max(SHOWING_BYTES))
}

fn read_by(
    global: &Global,
    output: &Output,
    set: impl FnOnce(acpdb_engine::Builder) -> acpdb_engine::Builder,
) -> Result<Store, Failure> {
    let folder = folder(global, output)?;
    let store = set(builder(&folder).read_only()).open()?;
    report(&store, output);
    Ok(store)
}

/// Opens an existing store to write to it; recovers it if need be, and ends an erasure that was interrupted.
pub(crate) fn write(global: &Global, output: &Output) -> Result<Store, Failure> {
    let folder = folder(global, output)?;
    let store = redacting(builder(&folder).create(false), global)?.open()?;
    report(&store, output);
    Ok(store)
}

/// Says on stderr what a user should know about the opening.
fn report(store: &Store, output: &Output) {
    output.records.set(!store.recovery().read_only);
    output.reads(store);
    report_end(store, output);
    let recovery = store.recovery();
    if recovery.was_erasing && erasure_is_pending(store.root()) {
        output.note(format!("note: an erasure was {ERASING}"));
    }
    if let Some(damage) = &recovery.damage {
        output.warn(format!("the store is damaged and cannot be appended to: {damage}; run acpdb verify"));
    }
}

/// Tells of bytes at the end that are torn, and of events there that are not confirmed.
pub(crate) fn report_end(store: &Store, output: &Output) {
    let recovery = store.recovery();
    if recovery.torn_bytes > 0 && recovery.read_only {
        output.note(format!(
            "note: {} bytes of an unfinished write are at the end; the next verb that writes sets them aside",
            recovery.torn_bytes
        ));
    } else if recovery.torn_bytes > 0 {
        output.note(format!(
            "note: {} bytes of an unfinished write were set aside in {}",
            recovery.torn_bytes,
            store.root().join("quarantine").display()
        ));
    }
    if recovery.unconfirmed_event_count > 0 {
        let events = crate::describe::count(recovery.unconfirmed_event_count, "event");
        let (are, them) = if recovery.unconfirmed_event_count == 1 { ("is", "it") } else { ("are", "them") };
        output.note(format!(
            "note: {events} at the end {are} written and not confirmed; the next verb that writes confirms {them}"
        ));
    }
}
