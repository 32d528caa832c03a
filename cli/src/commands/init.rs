//! `acpdb init`: a store in this folder, encrypted if asked.

use std::path::{Path, PathBuf};

use acpdb_engine::Store;
use serde::Serialize;

use super::{Code, Failure, Global, Output, place};
use crate::args::Init;
use crate::passphrases;
use crate::rings::{self, New};

/// What came of it, for programs.
#[derive(Serialize)]
struct Made {
    #[serde(serialize_with = "acpdb_engine::text::paths::serialize_shown")]
    path: PathBuf,
    id: String,
    /// Whether it was made now.
    created: bool,
    encrypted: bool,
    /// Where its key is, if it is encrypted and was made now.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

pub(crate) fn run(global: &Global, args: &Init, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "init")?;
    let folder = global.db.clone().unwrap_or_else(|| PathBuf::from(place::FOLDER));
    let made = if folder.join("acpdb.json").symlink_metadata().is_ok() {
        there(global, args, &folder)?
    } else {
        make(global, args, &folder)?
    };
    if output.json {
        return output.json_object("acpdb.init/1", &made);
    }
    let shown = made.path.display();
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

/// A store that is there is left as it is, if it is as asked.
fn there(global: &Global, args: &Init, folder: &Path) -> Result<Made, Failure> {
    let store = place::builder(folder, global)?.read_only().open()?;
    if args.encrypt && !store.is_encrypted() {
        let shown = place::quoted(folder);
        let message = format!("{} is a store already, and is not encrypted", folder.display());
        return Err(Failure::new(Code::Conflict, message).hint(format!(
            "make another and take over what this one holds: acpdb --db NEW init --encrypt, then acpdb --db NEW merge {shown}"
        )));
    }
    Ok(told(&store, folder, false, None))
}

fn make(global: &Global, args: &Init, folder: &Path) -> Result<Made, Failure> {
    if !args.encrypt && global.key_file.is_some() {
        return Err(Failure::usage("a store that is not encrypted has no key").hint("add --encrypt"));
    }
    let builder = Store::builder(folder).registry(acpdb_hosts::registry());
    let (builder, key) = if args.encrypt {
        let place = match &global.key_file {
            _ if args.passphrase => New::Passphrase(passphrases::PASSPHRASE),
            _ if args.keyring => New::InKeyring,
            Some(path) => New::InFile(path),
            None => New::Beside,
        };
        let (ring, name) = rings::new(place)?;
        (builder.keys(ring), Some(name))
    } else {
        (builder, None)
    };
    let store = builder.open()?;
    let made = told(&store, folder, true, key);
    store.close()?;
    Ok(made)
}

fn told(store: &Store, folder: &Path, created: bool, key: Option<String>) -> Made {
    let path = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    Made { path, id: store.id().to_hex(), created, encrypted: store.is_encrypted(), key }
}
