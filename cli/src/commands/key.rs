//! `acpdb key`: makes a key, shows its public part, trusts keys of others.

use acpdb_engine::keys::Rotated;
use acpdb_engine::store::rotate_key;
use acpdb_engine::text::paths::shown;
use acpdb_proof::origin;
use serde_json::json;

use super::{Code, Failure, Global, Output, store_path};
use crate::args::KeyAct;
use crate::keys::{self, KeyLocation};
use crate::passphrases;
use crate::rings::{self, NewKey};

pub(crate) fn run(global: &Global, act: &KeyAct, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "key")?;
    match act {
        KeyAct::New { name, passphrase, keyring } => {
            let kept = match (passphrase, keyring) {
                (true, _) => KeyLocation::UnderPassphrase,
                (_, true) => KeyLocation::InKeyring,
                _ => KeyLocation::InFile,
            };
            let path = keys::make(name, kept)?;
            if output.json {
                output.json_object("acpdb.key/1", &json!({ "name": name, "path": shown(&path) }))?;
            } else {
                output.line(format!("{} is a new key", path.display()))?;
                output.note(if kept == KeyLocation::InKeyring {
                    "it lies in the system's keyring, the file says where; acpdb key show prints what others need to check what it signs"
                } else {
                    "keep a copy elsewhere; acpdb key show prints what others need to check what it signs"
                });
            }
        }
        KeyAct::Rotate { to, to_passphrase, to_keyring } => {
            let place = match to {
                _ if *to_passphrase => NewKey::Passphrase(passphrases::NEW_PASSPHRASE),
                _ if *to_keyring => NewKey::InKeyring,
                Some(path) => NewKey::InFile(path),
                None => NewKey::Beside,
            };
            rotate(global, place, output)?;
        }
        KeyAct::Show { name } => {
            let store = store_path::read(global, output)?.id();
            let verifier = keys::public(name, &origin(store))?;
            let text = verifier.to_string();
            if output.json {
                let value = json!({ "name": name, "store": store, "key": text });
                output.json_object("acpdb.key/1", &value)?;
            } else {
                output.line(text)?;
            }
        }
        KeyAct::Trust { key, remove } => trust(key.as_deref(), *remove, output)?,
    }
    Ok(Code::Ok)
}

/// Wraps the key of the store by another key. If that was done before, as by a rotation that was killed at its end, nothing changes.
fn rotate(global: &Global, place: NewKey<'_>, output: &mut Output) -> Result<(), Failure> {
    let folder = store_path::folder(global, output)?;
    if acpdb_engine::keys::ring_id(&folder).is_none() {
        // The refusal that any verb gives: a store that is not there, is not encrypted, or lost its file.
        let store = store_path::builder(&folder, global)?.read_only().open()?;
        let message = format!("{} is not encrypted: it has no key", store.root().display());
        return Err(Failure::usage(message).hint("acpdb init --encrypt makes a store that is"));
    }
    let old = rings::of(&folder, global.key_file.as_deref())?;
    let (new, name) = rings::new(place)?;
    // Without the old key at hand, the new one may be that of a rotation that had ended.
    let old = old.unwrap_or_else(|| std::sync::Arc::clone(&new));
    let rotated = rotate_key(&folder, &*old, &*new)?;
    if output.json {
        output.json_object("acpdb.key_rotate/1", &json!({ "outcome": rotated, "key": name }))?;
        return Ok(());
    }
    output.line(match rotated {
        Rotated::Rotated => format!("the key of the store is wrapped anew, by {name}"),
        Rotated::Already => format!("{name} opens the store already; nothing was changed"),
    })?;
    output.note("keep a copy of it elsewhere; with the key of before, older backups can still be opened");
    Ok(())
}

fn trust(key: Option<&str>, remove: bool, output: &mut Output) -> Result<(), Failure> {
    let mut trusted = keys::trusted()?;
    if let Some(text) = key {
        let given = keys::verifiers(text)?;
        if let Some(key) = given.iter().find(|key| acpdb_proof::store_of(key.name()).is_none()) {
            return Err(Failure::usage(format!("the key {} is for no acpdb store", key.name())));
        }
        if remove {
            let before = trusted.len();
            trusted.retain(|known| !given.contains(known));
            if trusted.len() == before {
                return Err(
                    Failure::not_found("that key is not on the list").hint("acpdb key trust shows what is")
                );
            }
        } else {
            let new: Vec<_> = given.into_iter().filter(|key| !trusted.contains(key)).collect();
            trusted.extend(new);
        }
        let path = keys::write_trusted(&trusted)?;
        output.note(format!("the list of trusted keys is in {}", path.display()));
    }
    let lines: Vec<String> = trusted.iter().map(ToString::to_string).collect();
    if output.json {
        output.json_items("acpdb.key_trust/1", &lines)?;
    } else if key.is_none() {
        lines.iter().try_for_each(|line| output.line(line))?;
        if lines.is_empty() {
            output.note("no key of others is believed");
        }
    }
    Ok(())
}
