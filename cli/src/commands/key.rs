//! `acpdb key`: makes a key, shows its public part, trusts keys of others.

use acpdb_engine::Store;
use acpdb_engine::text::paths::shown;
use acpdb_proof::origin;
use serde_json::json;

use super::{Code, Failure, Global, Output, store_path};
use crate::args::KeyAct;
use crate::keys::{self, Kept};
use crate::passphrases;
use crate::rings::{self, New};

pub(crate) fn run(global: &Global, act: &KeyAct, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "key")?;
    match act {
        KeyAct::New { name, passphrase, keyring } => {
            let kept = match (passphrase, keyring) {
                (true, _) => Kept::UnderPassphrase,
                (_, true) => Kept::InKeyring,
                _ => Kept::InFile,
            };
            let path = keys::make(name, kept)?;
            if output.json {
                output.json_object("acpdb.key_new/1", &json!({ "name": name, "path": shown(&path) }))?;
            } else {
                output.line(format!("{} is a new key", path.display()))?;
                output.note(if kept == Kept::InKeyring {
                    "it lies in the system's keyring, the file says where; acpdb key show prints what others need to check what it signs"
                } else {
                    "keep a copy elsewhere; acpdb key show prints what others need to check what it signs"
                });
            }
        }
        KeyAct::Rotate { data: true, session, .. } => rotate_data(global, session.as_deref(), output)?,
        KeyAct::Rotate { to, to_passphrase, to_keyring, .. } => {
            let place = match to {
                _ if *to_passphrase => New::Passphrase(passphrases::NEW_PASSPHRASE),
                _ if *to_keyring => New::InKeyring,
                Some(path) => New::InFile(path),
                None => New::Beside,
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

/// The store. Fails if the store is not encrypted.
fn encrypted(global: &Global, output: &Output) -> Result<Store, Failure> {
    let store = store_path::write(global, output)?;
    if !store.is_encrypted() {
        let failure = Failure::usage(format!("{} is not encrypted: it has no keys", store.root().display()));
        return Err(failure.hint("acpdb init --encrypt makes a store that is"));
    }
    Ok(store)
}

/// Gives one session, else all sessions, another data key.
fn rotate_data(global: &Global, session: Option<&str>, output: &mut Output) -> Result<(), Failure> {
    let store = encrypted(global, output)?;
    let session = super::session::named(&store, session)?;
    let count = store.rotate_data_keys(session.map(|session| session.id))?;
    store.close()?;
    if output.json {
        output.json_object("acpdb.key_rotate_data/1", &json!({ "keys": count }))?;
        return Ok(());
    }
    let keys = crate::describe::count(count, "new key");
    output.line(format!("{keys}: what is recorded from now on is sealed under them"))?;
    output.note("what was recorded before stays as it is, under the keys of before");
    Ok(())
}

/// Wraps the keys of all streams by another key. An interrupted rotation goes on with the key that it had begun with.
fn rotate(global: &Global, place: New<'_>, output: &mut Output) -> Result<(), Failure> {
    let store = encrypted(global, output)?;
    let begun = if matches!(place, New::Beside) { rings::begun(store.root())? } else { None };
    let (ring, name) = match begun {
        Some(ring) => {
            let name = ring.name();
            (ring, name)
        }
        None => rings::new(place)?,
    };
    let count = store.rotate_keys(&ring)?;
    store.close()?;
    if output.json {
        output.json_object("acpdb.key_rotate/1", &json!({ "keys": count, "key": name }))?;
        return Ok(());
    }
    output.line(format!("{} wrapped anew; the key is {name}", crate::describe::count(count, "key")))?;
    output.note(
        "keep a copy of it elsewhere; the key of before still opens backups that were made with --keys",
    );
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
