//! Finds the store that a command means, and opens it.
//!
//! ```text
//! --db, $ACPDB_PATH -> the nearest .acpdb/ upwards -> the setting db -> the user's data directory
//!                        a person asks:   used, and it is said if the user did not make it here
//!                        unasked:         used only if the user made it here or trusts it, else passed over
//! ```
//!
//! A folder without `acpdb.json` is no store, and is passed over.

use std::path::{Path, PathBuf};

use acpdb_engine::Store;
use acpdb_engine::store::{erasure_is_pending, is_store};

use crate::failure::{Code, Failure};
use crate::global::{Global, KeyOf};
use crate::output::Output;
use crate::own_stores::{self, FOLDER};
use crate::redaction::RedactOptions;
use crate::settings;
use crate::trust;

/// The state of an erasure that a crash or a full disk interrupted.
pub(crate) const ERASING: &str = "begun and not ended; the next verb that writes, such as seal, ends it";

/// The store's folder: `--db` or `$ACPDB_PATH`, else the nearest `.acpdb/` upwards, else the setting `db`, else the user's data
/// directory. Warns if it is strange, and says whose it is if it is not the user's own.
pub(crate) fn folder(global: &Global, output: &Output) -> Result<PathBuf, Failure> {
    Ok(told_of(global, output)?.folder)
}

fn told_of(global: &Global, output: &Output) -> Result<StoreFolder, Failure> {
    let found = find(global)?;
    if let Some(objection) = &found.objection {
        output.warn(format!("{} {objection}", found.folder.display()));
    }
    for passed in &found.passed {
        output.warn(passed.line());
    }
    if found.is_strange {
        let store = quoted(&found.folder);
        output.note(format!(
            "note: this reads {store}, which you did not make here: what it says is its maker's; hooks and other programs that \
             run unasked pass it over, until you say acpdb config trust {store}"
        ));
    }
    Ok(found)
}

/// As [`folder`], for a program that runs unasked; it says on stderr which stores were passed over.
pub(crate) fn folder_unasked(global: &Global, output: &Output) -> Result<PathBuf, Failure> {
    let found = find_unasked(global)?;
    if let Some(objection) = &found.objection {
        output.warn(format!("{} {objection}", found.folder.display()));
    }
    for passed in &found.passed {
        output.warn(passed.line());
    }
    Ok(found.folder)
}

/// A store's folder, and what is to be said of it.
pub(crate) struct StoreFolder {
    pub(crate) folder: PathBuf,
    objection: Option<String>,
    /// It was found upwards, and the user neither made it here nor trusts it.
    is_strange: bool,
    /// The folders that were found before it.
    pub(crate) passed: Vec<PassedStore>,
}

/// A folder that was found upwards and is not used.
#[derive(Debug, Clone)]
pub(crate) struct PassedStore {
    pub(crate) folder: PathBuf,
    /// The reason, as the rest of a sentence about the folder.
    reason: String,
    /// The command that makes it used, if there is one.
    pub(crate) next: Option<String>,
}

impl PassedStore {
    fn empty(folder: PathBuf) -> Self {
        let reason = "holds no acpdb.json, so it is no store".to_owned();
        Self { folder, reason, next: None }
    }

    /// In a line, without the next step.
    pub(crate) fn line_only(&self) -> String {
        format!("{} is passed over: it {}", self.folder.display(), self.reason)
    }

    /// In a line.
    pub(crate) fn line(&self) -> String {
        let next = self.next.as_ref().map(|next| format!("; if you trust it: {next}")).unwrap_or_default();
        format!("{}{next}", self.line_only())
    }
}

/// Who runs the command.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StoreUser {
    /// A person typed it.
    Person,
    /// A host or the machine runs it.
    Program,
}

/// The store's folder; prints nothing.
///
/// A folder found upwards may be the choice of any user who could make a folder there. So it has to be the user's own, or trusted.
/// A named folder is the user's choice.
pub(crate) fn find(global: &Global) -> Result<StoreFolder, Failure> {
    find_for(global, StoreUser::Person)
}

/// As [`find`], for a program that runs unasked: a store that the user neither made here nor trusts is passed over.
pub(crate) fn find_unasked(global: &Global) -> Result<StoreFolder, Failure> {
    find_for(global, StoreUser::Program)
}

fn find_for(global: &Global, asker: StoreUser) -> Result<StoreFolder, Failure> {
    let named = |folder: PathBuf| {
        let objection = trust::open_objection(&global.settings, &folder);
        StoreFolder { folder, objection, is_strange: false, passed: Vec::new() }
    };
    if let Some(path) = &global.db {
        if path.is_file() {
            let failure =
                Failure::not_found(format!("{} is a file, and a store is a folder", path.display()));
            return Err(failure.hint("name the folder with acpdb.json in it"));
        }
        return Ok(named(path.clone()));
    }
    found_from(global, working_folder(global)?, asker, named)
}

/// The store that commands in `here` use if none is named, where there is one. A new store in `here` would take its place.
pub(crate) fn used_in(global: &Global, here: &Path) -> Option<PathBuf> {
    let plain = |folder| StoreFolder { folder, objection: None, is_strange: false, passed: Vec::new() };
    // A folder that commands refuse is not used.
    let found = found_from(global, Some(here.to_owned()), StoreUser::Person, plain).ok()?;
    is_store(&found.folder).then_some(found.folder)
}

/// As [`find`], from the folder `here`; `named` judges a folder from the settings or the default.
fn found_from(
    global: &Global,
    here: Option<PathBuf>,
    asker: StoreUser,
    named: impl Fn(PathBuf) -> StoreFolder,
) -> Result<StoreFolder, Failure> {
    let mut passed = Vec::new();
    if let Some(here) = here {
        for folder in here.ancestors().map(|folder| folder.join(FOLDER)) {
            match judge(global, &folder, asker)? {
                Judgement::Nothing => {}
                Judgement::Passed(store) => passed.push(store),
                Judgement::Used { is_strange } => {
                    return Ok(StoreFolder { folder, objection: None, is_strange, passed });
                }
            }
        }
    }
    if let Some(path) = &global.settings.db {
        return Ok(StoreFolder { passed, ..named(path.clone()) });
    }
    let data = settings::path_in("XDG_DATA_HOME");
    let data = data.or_else(|| Some(settings::path_in("HOME")?.join(".local/share")));
    data.map(|data| StoreFolder { passed, ..named(data.join("acpdb")) }).ok_or_else(|| {
        Failure::usage("there is no home folder to keep a store in").hint("name a store with --db PATH")
    })
}

/// The use of a folder that was found.
enum Judgement {
    Nothing,
    Passed(PassedStore),
    Used { is_strange: bool },
}

fn judge(global: &Global, folder: &Path, asker: StoreUser) -> Result<Judgement, Failure> {
    // Folders above may be closed to this user. Such a folder holds no store of this user.
    let Ok(found) = folder.symlink_metadata() else { return Ok(Judgement::Nothing) };
    let pass =
        |reason: String, next| Judgement::Passed(PassedStore { folder: folder.to_owned(), reason, next });
    let store = quoted(folder);
    if found.is_symlink() {
        if asker == StoreUser::Program {
            return Ok(pass("is a symbolic link".to_owned(), None));
        }
        let message =
            format!("{} is a symbolic link, and is not followed where it is only found", folder.display());
        return Err(Failure::new(Code::Failure, message).hint(format!("name the store with --db {store}")));
    }
    if !found.is_dir() {
        return Ok(Judgement::Nothing);
    }
    let is_trusted = || trust::is_trusted(&global.settings, folder);
    if let Some(objection) = trust::objection(folder).filter(|_| !is_trusted()) {
        if asker == StoreUser::Program {
            return Ok(pass(objection, Some(format!("acpdb config trust {store}"))));
        }
        let failure = Failure::new(Code::Failure, format!("{} {objection}", folder.display()));
        return Err(failure
            .hint(format!("if you trust it: acpdb config trust {store}; to use it once: --db {store}")));
    }
    if !is_store(folder) {
        return Ok(Judgement::Passed(PassedStore::empty(folder.to_owned())));
    }
    let is_strange = !own_stores::is_own(folder) && !is_trusted();
    if is_strange && asker == StoreUser::Program {
        return Ok(pass("was not made here by you".to_owned(), Some(format!("acpdb config trust {store}"))));
    }
    Ok(Judgement::Used { is_strange })
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

/// Opens, enters a store that was made now into the list of own stores, and tells of damage that opening found.
fn told(folder: &Path, builder: acpdb_engine::Builder, output: &Output) -> Result<Store, Failure> {
    own_stores::check_encrypted(folder)?;
    let is_new = own_stores::is_found_upwards(folder) && !is_store(folder);
    let store = builder.open()?;
    if is_new {
        enter(folder, output);
    }
    report(&store, output);
    Ok(store)
}

/// Enters a store that was made now into the list of own stores.
pub(crate) fn enter(folder: &Path, output: &Output) {
    if let Err(why) = own_stores::enter(folder) {
        output.warn(format!(
            "the new store is not on the list of your own, so hooks pass it over until you say acpdb config trust {}: {why}",
            quoted(folder)
        ));
    }
}

/// Longest wait for a lock in a program for which a host waits. A start, a call and the end may each wait for a lock: together they
/// take less than the ten seconds that a hook has.
const LIVE_LOCK_WAIT: std::time::Duration = std::time::Duration::from_secs(2);

/// As [`open`], for a program that serves a host call by call, and was not asked for a store.
pub(crate) fn open_live(global: &Global, output: &Output) -> Result<Store, Failure> {
    let folder = folder_unasked(global, output)?;
    let builder = redacting(builder(&folder, global)?, global)?;
    told(&folder, builder.lock_wait(LIVE_LOCK_WAIT), output)
}

/// As [`open_at`], for a program for which a host waits at each event: opening and recording may each wait for a lock, together for `wait`.
pub(crate) fn open_briefly(
    folder: &Path,
    global: &Global,
    wait: std::time::Duration,
    output: &Output,
) -> Result<Store, Failure> {
    told(folder, redacting(builder(folder, global)?, global)?.lock_wait(wait / 2), output)
}

/// Memory for sessions while they are recorded one after the other: a session is hardly met twice.
const RECORDING_BYTES: u64 = 16 << 20;

/// Opens the store in `folder` to append to it, with secrets taken out as asked.
pub(crate) fn open_redacting(
    folder: &Path,
    global: &Global,
    redact: &RedactOptions,
    output: &Output,
) -> Result<Store, Failure> {
    let mut builder = builder(folder, global)?.memory_max(RECORDING_BYTES);
    if let Some(rules) = crate::redaction::rules(redact, global.settings.redact == Some(true))? {
        builder = builder.redactor(std::sync::Arc::new(rules));
    }
    told(folder, builder, output)
}

/// A store that knows the tools of all hosts, with its key if it is encrypted or one was named.
pub(crate) fn builder(folder: &Path, global: &Global) -> Result<acpdb_engine::Builder, Failure> {
    Ok(keyed(folder, ring_of(folder, global)?.as_ref()))
}

/// The ring of a store: none of a copy whose objects were opened by the key that is given.
fn ring_of(folder: &Path, global: &Global) -> Result<Option<crate::rings::Ring>, Failure> {
    if global.key_of == KeyOf::Objects && !crate::rings::is_encrypted(folder) {
        return Ok(None);
    }
    crate::rings::of_store(folder, global.key_file.as_deref())
}

fn keyed(folder: &Path, ring: Option<&crate::rings::Ring>) -> acpdb_engine::Builder {
    let builder = Store::builder(folder).registry(acpdb_hosts::registry());
    match ring {
        Some(ring) => builder.keys(std::sync::Arc::clone(ring)),
        None => builder,
    }
}

/// Refuses a key that is given where no sealed store is, for a program that is set up to run later: it runs without that key, and would make a plain
/// store there.
pub(crate) fn check_given_key(folder: &Path, global: &Global) -> Result<(), Failure> {
    let given = crate::rings::given_for_store(folder, global.key_file.as_deref())?;
    if given.is_none() || crate::rings::is_encrypted(folder) {
        return Ok(());
    }
    let held = if is_store(folder) { "a store that is not encrypted" } else { "no store" };
    let folder = quoted(folder);
    let refused = format!("{folder} holds {held}, and a key was given");
    Err(Failure::new(Code::Locked, refused).hint(format!(
        "acpdb --db FOLDER init --encrypt makes an encrypted store in a new folder; for {folder}, leave the key out"
    )))
}

/// One of several stores, with the key of its own or the one that is named.
pub(crate) fn keyed_by(folder: &Path, key_file: Option<&Path>) -> Result<acpdb_engine::Builder, Failure> {
    Ok(keyed(folder, crate::rings::of(folder, key_file)?.as_ref()))
}

/// Another store, to read it beside the one that the options name: `--key-file` is that one's, so the key of this one is found beside the settings.
pub(crate) fn other(folder: &Path) -> Result<acpdb_engine::Builder, Failure> {
    let builder = Store::builder(folder).registry(acpdb_hosts::registry());
    Ok(match crate::rings::of(folder, None)? {
        Some(ring) => builder.keys(ring),
        None => builder,
    })
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
    told(folder, redacting(builder(folder, global)?, global)?, output)
}

/// Opens an existing store to read. Nothing in its folder changes, but for commits that a killed writer left at its end: see [`settle`].
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
    set: impl Fn(acpdb_engine::Builder) -> acpdb_engine::Builder,
) -> Result<Store, Failure> {
    let found = told_of(global, output)?;
    let ring = ring_of(&found.folder, global)?;
    let open = || set(keyed(&found.folder, ring.as_ref()).read_only()).open();
    let mut store = open()?;
    // A store of another user is only read.
    if found.objection.is_none()
        && !found.is_strange
        && is_unsettled(&store)
        && settle(keyed(&found.folder, ring.as_ref()))
    {
        store = open()?;
    }
    report(&store, output);
    Ok(store)
}

/// Longest wait of a reader for the lock under which the end is settled.
const SETTLE_WAIT: std::time::Duration = std::time::Duration::from_secs(1);

/// Whether whole commits at the end are neither confirmed nor given up.
fn is_unsettled(store: &Store) -> bool {
    let recovery = store.recovery();
    recovery.unconfirmed_event_count > 0 && recovery.damage.is_none()
}

/// Opens the store to write and closes it, so that what a killed writer wrote and did not confirm is confirmed. Else a program that reads, does not
/// find what it sent, and sends it again would have it twice. `false`: it could not be written.
fn settle(builder: acpdb_engine::Builder) -> bool {
    let builder = builder.create(false).index(false).sealing(false).snapshots(false).lock_wait(SETTLE_WAIT);
    // The reader says what is left.
    builder.open().and_then(|store| store.close()).is_ok()
}

/// Opens an existing store to write to it; recovers it if need be, and ends an erasure that was interrupted.
pub(crate) fn write(global: &Global, output: &Output) -> Result<Store, Failure> {
    let folder = folder(global, output)?;
    own_stores::check_encrypted(&folder)?;
    let store = redacting(builder(&folder, global)?.create(false), global)?.open()?;
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
