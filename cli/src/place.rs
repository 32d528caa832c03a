//! Which store a command means, and how it is opened.

use std::path::{Path, PathBuf};

use acpdb_engine::{Error, Store};

use crate::args::{Global, RedactOptions};
use crate::failure::Failure;
use crate::output::Output;

/// Name of a store's folder inside a project.
const FOLDER: &str = ".acpdb";

/// The store's folder: `--db` or `$ACPDB_PATH`, else the nearest `.acpdb/` upwards, else the setting `db`, else the user's
/// data directory.
pub(crate) fn folder(global: &Global) -> Result<PathBuf, Failure> {
    if let Some(path) = &global.db {
        if path.is_file() {
            let failure =
                Failure::not_found(format!("{} is a file, and a store is a folder", path.display()));
            return Err(failure.hint("name the folder with acpdb.json in it"));
        }
        return Ok(path.clone());
    }
    if let Ok(here) = std::env::current_dir() {
        let found = here.ancestors().map(|folder| folder.join(FOLDER)).find(|folder| folder.is_dir());
        if let Some(found) = found {
            return Ok(found);
        }
    }
    if let Some(path) = &global.settings.db {
        return Ok(path.clone());
    }
    let home = || std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let data = std::env::var_os("XDG_DATA_HOME").filter(|data| !data.is_empty()).map(PathBuf::from);
    let data = data.or_else(|| home().map(|home| home.join(".local/share")));
    data.map(|data| data.join("acpdb")).ok_or_else(|| {
        Failure::usage("there is no home folder to keep a store in").hint("name a store with --db PATH")
    })
}

/// Opens the store to append to it; makes it if need be.
pub(crate) fn open(global: &Global, output: &Output) -> Result<Store, Failure> {
    let folder = folder(global)?;
    open_at(&folder, global, output)
}

/// Opens the store to append to it, with secrets taken out as asked.
pub(crate) fn open_redacting(
    global: &Global,
    redact: &RedactOptions,
    output: &Output,
) -> Result<Store, Failure> {
    let mut builder = Store::builder(folder(global)?).registry(acpdb_hosts::registry());
    if let Some(rules) = crate::commands::scan::rules(redact, global.settings.redact == Some(true))? {
        builder = builder.redactor(std::sync::Arc::new(rules));
    }
    let store = builder.open()?;
    report(&store, output);
    Ok(store)
}

/// Takes secrets out of whatever a verb records, if the settings ask for it.
fn redacting(builder: acpdb_engine::Builder, global: &Global) -> Result<acpdb_engine::Builder, Failure> {
    let rules =
        crate::commands::scan::rules(&RedactOptions::default(), global.settings.redact == Some(true))?;
    Ok(match rules {
        Some(rules) => builder.redactor(std::sync::Arc::new(rules)),
        None => builder,
    })
}

/// Makes a store that is thrown away afterwards, so that it may lie on any file system.
pub(crate) fn open_scratch(folder: &Path, output: &Output) -> Result<Store, Failure> {
    let store = Store::builder(folder).registry(acpdb_hosts::registry()).any_file_system().open()?;
    report(&store, output);
    Ok(store)
}

/// Opens a store in a given folder to append to it.
pub(crate) fn open_at(folder: &Path, global: &Global, output: &Output) -> Result<Store, Failure> {
    let store = redacting(Store::builder(folder).registry(acpdb_hosts::registry()), global)?.open()?;
    report(&store, output);
    Ok(store)
}

/// Opens an existing store to read. Recovers it if it can be written, else reads what is confirmed.
pub(crate) fn read(global: &Global, output: &Output) -> Result<Store, Failure> {
    let folder = folder(global)?;
    let builder = Store::builder(&folder).registry(acpdb_hosts::registry()).create(false);
    let builder = redacting(builder, global)?;
    let store = match builder.open() {
        Err(Error::ReadOnly { .. } | Error::NoSpace { .. } | Error::UntrustedFileSystem { .. }) => {
            Store::builder(&folder).registry(acpdb_hosts::registry()).read_only().open()?
        }
        other => other?,
    };
    report(&store, output);
    Ok(store)
}

/// Says on stderr what opening found that a user should know.
fn report(store: &Store, output: &Output) {
    output.reads(store);
    let recovery = store.recovery();
    if recovery.torn_bytes > 0 {
        output.note(format!(
            "note: {} bytes of an unfinished write were set aside in {}",
            recovery.torn_bytes,
            store.root().join("quarantine").display()
        ));
    }
    if let Some(damage) = &recovery.damage {
        output.warn(format!("the store is damaged and cannot be appended to: {damage}; run acpdb verify"));
    }
}
