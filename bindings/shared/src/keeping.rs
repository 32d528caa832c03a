//! Keeping stores: copies, packing, erasing, forks, and several stores that are read as one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use acpdb_engine::answers::{EraseReport, SealReport};
use acpdb_engine::entry::StreamInfo;
use acpdb_engine::event::{BodyAddress, HostRecorded, Payload};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::store::{Backup, Stores, stores_in};
use acpdb_engine::{Error, Store};
use acpdb_query::{ErasureAnswer, fork_plan};
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::opening::Opening;
use crate::sessions;

/// Packs every complete segment; with `active`, also the one that is being written.
pub fn sealed(store: &Store, active: bool) -> Result<SealReport, Fault> {
    Ok(store.seal(active)?)
}

/// Copies the store to a folder, and verifies the copy.
pub fn backup(store: &Store, folder: &Path) -> Result<Backup, Fault> {
    check_folder(folder)?;
    Ok(store.backup(folder, &mut |_| {})?)
}

/// Makes a store in a folder from a backup, which `opening` opens.
pub fn restored(opening: Opening, folder: &Path) -> Result<Backup, Fault> {
    check_folder(&opening.path)?;
    let backup = opening.open()?;
    self::backup(&backup, folder)
}

/// Refuses an address: a folder of that name would be made.
fn check_folder(folder: &Path) -> Result<(), Fault> {
    if folder.to_string_lossy().contains("://") {
        let folder = folder.display();
        return Err(Fault::invalid(format!(
            "{folder} is an address, and a folder is meant; the program ships to an address: acpdb backup {folder}"
        )));
    }
    Ok(())
}

/// Erases what an item holds, with all equal content; with `dry_run` only says what would be hit.
pub fn erased(
    store: &Store,
    item: &str,
    by: &str,
    reason: &str,
    dry_run: bool,
) -> Result<ErasureAnswer, Fault> {
    let item = match acpdb_query::find(store, item, None) {
        Ok(found) => found.ix.and_then(|ix| found.view.state().item_id(ix)).unwrap_or(found.item),
        // Some events are of no session, and make no item.
        Err(miss) => match item.parse::<ItemId>() {
            Ok(item) if store.event(item.seq)?.is_some() => item,
            _ => return Err(miss.into()),
        },
    };
    let report = if dry_run { store.erase_preview(item)? } else { store.erase(item, by, reason)? };
    told(store, &report, dry_run)
}

/// Gives back the bytes of host's records, by the seqs of their events. Equal records stay that are not named, and may be recorded again.
pub fn records_erased(store: &Store, seqs: &[u64], by: &str, reason: &str) -> Result<ErasureAnswer, Fault> {
    let asked: BTreeSet<Seq> = seqs.iter().copied().map(Seq).collect();
    let mut bodies = Vec::new();
    for seq in &asked {
        let recorded = store.event(*seq)?;
        let Some(Payload::HostRecorded(HostRecorded { raw, .. })) = recorded.map(|it| it.event.payload)
        else {
            return Err(Fault::invalid(format!("{seq} is no host's record; erase takes any item")));
        };
        let rows = raw.map(|raw| raw.first..raw.first.saturating_add(raw.chunks));
        bodies.extend(rows.into_iter().flatten().map(|row| BodyAddress { seq: *seq, row }));
    }
    let report = store.release_bodies(&bodies, by, reason)?;
    told(store, &report, false)
}

fn told(store: &Store, report: &EraseReport, dry_run: bool) -> Result<ErasureAnswer, Fault> {
    Ok(ErasureAnswer::new(store, report, dry_run)?)
}

/// Begins a session that continues another one from a point in time; its name.
pub fn forked(
    store: &Store,
    of: &StreamInfo,
    at: Option<&str>,
    key: Option<String>,
    title: Option<String>,
) -> Result<StreamInfo, Fault> {
    if key.as_deref() == Some("") {
        return Err(Fault::invalid("the key of a session is not empty"));
    }
    let (view, parent) = sessions::view(store, of, at)?;
    let name = parent.name.clone();
    let plan = fork_plan(store, &view, parent, title)?;
    let is_named = key.is_some();
    for name in key.into_iter().chain(plan.numbered()) {
        let info = plan.named(name.clone());
        match store.session(info.clone()).append_expecting(Seq::ZERO, [plan.entry()]) {
            Ok(_) => return Ok(info),
            Err(Error::HeadMoved { .. }) if is_named => {
                let text = format!(
                    "there is a session {name:?} already, and a fork begins a new one; give another key"
                );
                return Err(Fault::new("rejected", text));
            }
            Err(Error::HeadMoved { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(Fault::new("rejected", format!("{name:?} has too many forks; give this one a key")))
}

/// Several stores that are read as one. `opening` says how each is opened; its path is not used.
pub fn several(folders: Vec<PathBuf>, opening: Opening) -> Result<Stores<Fault>, Fault> {
    let opened = move |folder: &Path| Opening { path: folder.to_owned(), ..opening.clone() }.open();
    Stores::new(folders, opened)
}

/// The stores in a folder.
pub fn stores_below(folder: &Path) -> Result<Vec<PathBuf>, Fault> {
    Ok(stores_in(folder)?)
}

/// The stores that are read as one, those that are left out since another one has all of them, and those that went on apart.
pub fn members(stores: &Stores<Fault>) -> Value {
    let row = |member: &acpdb_engine::store::StoreMember| {
        let id = member.id.map(|id| id.to_string());
        json!({"label": member.label, "path": member.root.display().to_string(), "id": id})
    };
    let forks = stores.forks().iter().map(|fork| json!({"labels": fork.labels, "shared": fork.shared}));
    json!({
        "members": stores.members().iter().map(row).collect::<Vec<_>>(),
        "copies": stores.copies().iter().map(row).collect::<Vec<_>>(),
        "forks": forks.collect::<Vec<_>>(),
    })
}

/// The store of a label.
pub fn member(stores: &Stores<Fault>, label: &str) -> Result<Store, Fault> {
    let place = stores.labelled(label).ok_or_else(|| {
        let all: Vec<&str> = stores.members().iter().map(|member| member.label.as_str()).collect();
        Fault::new("not_found", format!("there is no store {label:?}; there are {}", all.join(", ")))
    })?;
    stores.get(place)
}
