//! `acpdb info --hosts`: the hosts, the files read of each, and the records that were not understood.
//!
//! Sessions are counted in the store; files are those that lie in a host's usual places now. The results of reading, with their
//! times, are kept beside the store's snapshots: they may be gone, and come again with the next import.

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::Store;
use acpdb_engine::event::Scope;
use acpdb_engine::ids::Micros;
use acpdb_engine::text::paths::shown;
use acpdb_hosts::import::ImportFormat;
use acpdb_live::below::Links;

use super::table::{self, number, text};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, store_path};
use crate::follow::Root;
use crate::known::{HostFiles, KnownFiles};

/// Most kinds of records that are named for people; programs get all.
const KINDS_SHOWN: usize = 5;

/// A host.
#[derive(Debug, Default, serde::Serialize)]
struct HostEntry {
    host: String,
    versions: BTreeSet<String>,
    /// Folders in which the host keeps sessions, if they are there.
    places: Vec<String>,
    /// Files in the host's usual places.
    files: u64,
    /// Files that were read, from any place.
    files_read: u64,
    sessions: u64,
    subagents: u64,
    #[serde(serialize_with = "acpdb_query::when::serialize")]
    last_import: Option<Micros>,
    unknown_records: Vec<Unknown>,
    unknown_tables: BTreeSet<String>,
}

/// Records of an unknown kind: kept, and not understood.
#[derive(Debug, serde::Serialize)]
struct Unknown {
    kind: String,
    count: u64,
}

/// The hosts, with their usual places on this machine and the files in them.
fn here() -> Result<BTreeMap<String, HostEntry>, Failure> {
    let mut rows: BTreeMap<String, HostEntry> = BTreeMap::new();
    for place in super::import::places(&[])? {
        let row = rows.entry(place.format.name().to_owned()).or_default();
        let root = Root { path: place.folder.clone(), place: Some(place), links: Links::Within };
        let name = shown(&root.path);
        if root.path.exists() && !row.places.iter().any(|known| *known == name) {
            row.places.push(name.into_owned());
        }
        row.files = row.files.saturating_add(root.files().map_or(0, |found| found.files.len() as u64));
    }
    Ok(rows)
}

/// Files of sessions that hosts keep on this machine, by host; hosts without one are left out.
pub(super) fn files_here() -> Result<BTreeMap<String, u64>, Failure> {
    let rows = here()?.into_iter().map(|(host, row)| (host, row.files));
    Ok(rows.filter(|(_, count)| *count > 0).collect())
}

pub(crate) fn run(global: &Global, output: &mut Output) -> Result<Code, Failure> {
    let mut rows = here()?;
    if store_path::folder(global, output)?.join("acpdb.json").is_file() {
        let store = store_path::read(global, output)?;
        of_store(&store, &mut rows)?;
    }
    for (host, row) in &mut rows {
        row.host.clone_from(host);
    }
    let rows: Vec<HostEntry> = rows.into_values().collect();
    if output.json {
        return output.json_items("acpdb.hosts/1", &rows);
    }
    print(&rows, output)?;
    Ok(Code::Ok)
}

/// Adds the sessions in the store and the known files.
fn of_store(store: &Store, rows: &mut BTreeMap<String, HostEntry>) -> Result<(), Failure> {
    for name in store.stream_names()? {
        let is_host = ImportFormat::from_name(&name.host).is_some() || rows.contains_key(&name.host);
        if name.scope != Scope::Session || !is_host {
            continue;
        }
        let row = rows.entry(name.host).or_default();
        let count = if name.parent.is_some() { &mut row.subagents } else { &mut row.sessions };
        *count = count.saturating_add(1);
    }
    for (host, HostFiles { files, read, versions, unknown, tables }) in
        KnownFiles::of(store, String::new()).seen()
    {
        let row = rows.entry(host).or_default();
        row.files_read = files;
        row.last_import = (read > 0).then_some(Micros(read));
        row.versions = versions;
        row.unknown_tables = tables;
        row.unknown_records = unknown.into_iter().map(|(kind, count)| Unknown { kind, count }).collect();
        row.unknown_records.sort_by_key(|unknown| std::cmp::Reverse(unknown.count));
    }
    Ok(())
}

fn print(rows: &[HostEntry], output: &mut Output) -> Result<(), Failure> {
    let columns = vec![
        text("host", |row: &HostEntry| row.host.clone()),
        text("versions", |row: &HostEntry| versions(&row.versions)),
        number("files", |row: &HostEntry| row.files.to_string()),
        number("read", |row: &HostEntry| row.files_read.to_string()),
        number("sessions", |row: &HostEntry| table::with_subagents(row.sessions, row.subagents)),
        text("last import", |row: &HostEntry| {
            row.last_import.map_or_else(|| "never".to_owned(), describe::time)
        }),
        text("not understood", not_understood),
    ];
    table::print(output, columns, rows)?;
    if rows.iter().all(|row| row.files_read == 0) {
        output.note("nothing was imported yet, or what was read of files is forgotten: acpdb import");
    }
    Ok(())
}

/// The versions of a host: at most two are listed, else the oldest and the newest.
fn versions(versions: &BTreeSet<String>) -> String {
    // 2.1.50 comes before 2.1.219.
    let mut sorted: Vec<&String> = versions.iter().collect();
    sorted.sort_by_key(|version| {
        let numbers = version.split(|sign: char| !sign.is_ascii_digit());
        numbers.map(|part| part.parse::<u64>().unwrap_or(0)).collect::<Vec<_>>()
    });
    let shown = match (versions.len(), sorted.first(), sorted.last()) {
        (0..=2, ..) => sorted.iter().map(|version| (*version).clone()).collect::<Vec<_>>().join(", "),
        (count, Some(first), Some(last)) => format!("{first} .. {last} ({count})"),
        _ => String::new(),
    };
    escape(&shown, EscapeLevel::Line).into_owned()
}

fn not_understood(row: &HostEntry) -> String {
    let kinds = row.unknown_records.iter().take(KINDS_SHOWN);
    let mut said: Vec<String> = kinds.map(|unknown| format!("{} {}", unknown.count, unknown.kind)).collect();
    // If at most [`KINDS_SHOWN`] kinds were named above, none is left.
    let rest = row.unknown_records.len().saturating_sub(KINDS_SHOWN);
    if rest > 0 {
        said.push(format!("{rest} kinds more"));
    }
    if !row.unknown_tables.is_empty() {
        let tables: Vec<&str> = row.unknown_tables.iter().map(String::as_str).collect();
        said.push(format!("tables {}", tables.join(" ")));
    }
    escape(&said.join(", "), EscapeLevel::Line).into_owned()
}
