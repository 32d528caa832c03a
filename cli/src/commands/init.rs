//! `acpdb init`: a store in this folder, encrypted if asked.

use std::path::{Path, PathBuf};

use acpdb_engine::Store;
use serde::Serialize;

use super::{Code, EscapeLevel, Failure, Global, Output, escape, store_path};
use crate::args::Init;
use crate::passphrases;
use crate::rings::{self, NewKey};

/// The result, for programs.
#[derive(Serialize)]
struct InitResult {
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    path: PathBuf,
    id: String,
    /// Whether the store was made now.
    created: bool,
    encrypted: bool,
    /// The place of its key, if the store is encrypted and was made now.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

pub(crate) fn run(global: &Global, args: &Init, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "init")?;
    let folder = folder(global, args)?;
    // A store that is named with `--db` takes no other store's place.
    let shadowed = match (&global.db, folder.parent()) {
        (None, Some(parent)) => shadowed(global, parent, &folder),
        _ => None,
    };
    let made = if acpdb_engine::store::is_store(&folder) {
        there(global, args, &folder, output)?
    } else {
        make(global, args, &folder, output)?
    };
    if let Some(other) = shadowed.filter(|_| made.created) {
        let other = store_path::quoted(&other);
        output.note(format!("note: commands here used {other} so far, and use the new store from now on; acpdb --db {} import {other} \
             takes over what that one holds",
            store_path::quoted(&made.path)));
    }
    if output.json {
        return output.json_object("acpdb.init/1", &made);
    }
    let shown = escape(&made.path.display().to_string(), EscapeLevel::Line).into_owned();
    match (&made.key, made.created) {
        (_, false) => output.line(format!("{shown} is a store already; nothing was changed"))?,
        (None, true) => output.line(format!("{shown} is a new store"))?,
        (Some(key), true) => {
            output.line(format!("{shown} is a new store, encrypted"))?;
            output.line(format!("its key is {key}"))?;
            output.note(
                "keep a copy of the key elsewhere: without it the store cannot be read, not by you either",
            );
        }
    }
    Ok(Code::Ok)
}

/// The store's folder: the named one, else `.acpdb` in the project's folder, as with other tools.
fn folder(global: &Global, args: &Init) -> Result<PathBuf, Failure> {
    match (&global.db, &args.folder) {
        (Some(store), Some(_)) => Err(Failure::usage(format!(
            "the store is named twice: by the folder it is for, and by --db or ACPDB_PATH ({})",
            store.display()
        ))
        .hint("leave one of them out")),
        (Some(store), None) => Ok(store.clone()),
        (None, Some(folder)) if is_store(folder) => Ok(folder.clone()),
        (None, Some(folder)) => Ok(folder.join(crate::own_stores::FOLDER)),
        (None, None) => Ok(PathBuf::from(crate::own_stores::FOLDER)),
    }
}

/// Whether a folder is a store, or named like one. Then it is no folder of a project.
fn is_store(folder: &Path) -> bool {
    folder.file_name().is_some_and(|name| name == crate::own_stores::FOLDER)
        || folder.join("acpdb.json").is_file()
}

/// The store that commands in a folder used so far, if it is not the new one.
fn shadowed(global: &Global, parent: &Path, new: &Path) -> Option<PathBuf> {
    let here = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    // A folder that does not exist yet had no store. A folder that cannot be looked at counts as one without a store.
    let here = here.canonicalize().ok().or_else(|| std::env::current_dir().ok().map(|it| it.join(here)))?;
    let used = store_path::used_in(global, &here)?;
    // A store that does not exist yet has no path, and differs from the other.
    let is_new = used.canonicalize().ok() == new.canonicalize().ok();
    (!is_new).then_some(used)
}

/// Leaves an existing store unchanged. Fails if the store is not as the options ask.
fn there(global: &Global, args: &Init, folder: &Path, output: &Output) -> Result<InitResult, Failure> {
    let store = store_path::builder(folder, global)?.read_only().open()?;
    if args.encrypt && !store.is_encrypted() {
        let message = format!("{} is a store already, and is not encrypted", folder.display());
        return Err(Failure::new(Code::Conflict, message)
            .hint("make another, and take this one into it: acpdb --db NEW init --encrypt, then acpdb --db NEW import STORE"));
    }
    // A store that the user names takes the place of an encrypted one that was made there.
    if global.db.is_some() && crate::own_stores::check_encrypted(folder).is_err() {
        store_path::enter(folder, output);
    }
    Ok(told(&store, folder, false, None))
}

fn make(global: &Global, args: &Init, folder: &Path, output: &Output) -> Result<InitResult, Failure> {
    let key_is_given = || Ok::<_, Failure>(global.key_file.is_some() || rings::passphrase_is_for_stores()?);
    if !args.encrypt && key_is_given()? {
        return Err(Failure::usage("a store that is not encrypted has no key").hint("add --encrypt"));
    }
    let builder = Store::builder(folder).registry(acpdb_hosts::registry());
    let (builder, key) = if args.encrypt {
        let place = match &global.key_file {
            _ if args.passphrase => NewKey::Passphrase(passphrases::PASSPHRASE),
            _ if args.keyring => NewKey::InKeyring,
            Some(path) => NewKey::InFile(path),
            None => NewKey::Beside,
        };
        let (ring, name) = rings::new(place)?;
        (builder.encrypt(ring), Some(name))
    } else {
        (builder, None)
    };
    let store = builder.open()?;
    let made = told(&store, folder, true, key);
    store.close()?;
    store_path::enter(folder, output);
    Ok(made)
}

fn told(store: &Store, folder: &Path, created: bool, key: Option<String>) -> InitResult {
    let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    InitResult { path, id: store.id().to_hex(), created, encrypted: store.is_encrypted(), key }
}
