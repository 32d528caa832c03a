//! `acpdb demo`: a tour of one session, the user's own if one is found.
//!
//! ```text
//! FILE, or the most telling of the newest sessions in the usual places, or the bundled one -> a temporary store (or --keep) -> one screen
//! ```
//!
//! This file finds the session and imports it; [`tour`](super::tour) looks at it and draws the screen.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use acpdb_engine::event::Scope;
use acpdb_engine::ids::StreamId;
use acpdb_engine::{Store, store::StreamName};
use acpdb_hosts::import::{ImportFormat, ImportOptions};
use acpdb_live::below::Links;

use super::tour::{self, NewestSessions, SessionSource};
use super::{Code, Failure, Global, Output, store_path};
use crate::args::Demo;
use crate::reader::{self, FileChoice, ImportFile, ReadError, Recognised};

/// The session that comes with the program.
const BUNDLED: &[u8] = include_bytes!("../../assets/demo-session.jsonl");
/// Most files that are looked at before the bundled session is taken.
const TRIED_COUNT_MAX: usize = 20;
/// Once so many bytes were read and there is a session worth a tour, no more files are looked at.
const TRIED_BYTES_MAX: u64 = 32 << 20;
/// Fewest calls in a session that is worth a tour.
const CALL_COUNT_MIN: u64 = 8;

pub(crate) fn run(global: &Global, args: &Demo, output: &mut Output) -> Result<Code, Failure> {
    let folder = tempfile::Builder::new().prefix("acpdb-demo-").tempdir();
    let folder = folder.map_err(Failure::io("make", "a temporary folder"))?;
    crate::interrupt::scratch(folder.path());
    let chosen = choose(global, args, folder.path(), output)?;
    let (store, path) = match &args.keep {
        None => (chosen.store.clone(), chosen.store.root().to_owned()),
        Some(path) => {
            let store = store_path::open_at(path, global, output)?;
            import(&store, &chosen.file, chosen.format)?;
            (store, path.clone())
        }
    };
    let names = store.stream_names()?;
    let session = names.into_iter().find(|name| name.id == chosen.session);
    let session = session.ok_or_else(|| Failure::not_found("the session was not recorded"))?;
    // All is on disk before the store is verified.
    store.close()?;
    let verified = acpdb_engine::verify::verify_folder(&path, false)?;
    let tour = tour::look(&store, &session, chosen.source, verified, args.keep.as_deref(), global)?;
    if output.json {
        output.json_line(&tour.json())?;
    } else {
        tour.draw(&store, &session, output)?;
    }
    Ok(if tour.is_sound() { Code::Ok } else { Code::Damage })
}

/// The session of the tour, imported into a temporary store.
struct DemoSession {
    store: Store,
    session: StreamId,
    file: PathBuf,
    format: ImportFormat,
    source: SessionSource,
}

fn choose(global: &Global, args: &Demo, folder: &Path, output: &Output) -> Result<DemoSession, Failure> {
    if let Some(path) = &args.file {
        let bytes = std::fs::metadata(path).map_err(Failure::io("read", path.display()))?;
        let candidate = ImportFile { path: path.clone(), bytes: bytes.len(), named: true };
        let format = match reader::recognise(&candidate, FileChoice::sessions(None)) {
            Recognised::Session(format) => format,
            Recognised::Skipped(_) | Recognised::Other => {
                let failure = Failure::usage(format!("{} is no session of a known format", path.display()));
                return Err(failure.hint("if you know its format: acpdb import --format FORMAT PATH"));
            }
        };
        let store = store_path::open_scratch(&folder.join("named"), output)?;
        import(&store, path, format)?;
        let (session, _) = richest(&store)?
            .ok_or_else(|| Failure::not_found(format!("{} holds no session", path.display())))?;
        return Ok(DemoSession {
            store,
            session,
            file: path.clone(),
            format,
            source: SessionSource::File { path: path.clone() },
        });
    }
    if !args.bundled
        && let Some(chosen) = most_telling(global, folder, output)?
    {
        return Ok(chosen);
    }
    let file = folder.join("demo-session.jsonl");
    std::fs::write(&file, BUNDLED).map_err(Failure::io("write", file.display()))?;
    let store = store_path::open_scratch(&folder.join("bundled"), output)?;
    let format = ImportFormat::ClaudeCode;
    import(&store, &file, format)?;
    let (session, _) = richest(&store)?.ok_or_else(|| Failure::not_found("the bundled session is empty"))?;
    Ok(DemoSession { store, session, file, format, source: SessionSource::Bundled { asked: args.bundled } })
}

/// The most telling of the newest sessions in the usual places: the one with the most tokens that went stale. Files that fail are left
/// out.
fn most_telling(global: &Global, folder: &Path, output: &Output) -> Result<Option<DemoSession>, Failure> {
    // `acpdb import` tells the places of sessions, this verb does not.
    let mut silent = Output::new(global);
    silent.quiet = true;
    let Ok(candidates) = super::import::usual(&[], Links::Within, &mut Vec::new(), &silent) else {
        return Ok(None);
    };
    let mut dated: Vec<(SystemTime, ImportFile)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            // A candidate that fails is left out.
            let metadata = std::fs::metadata(&candidate.path).ok()?;
            // A file without a time is left out.
            Some((metadata.modified().ok()?, candidate))
        })
        .collect();
    dated.sort_by(|left, right| right.0.cmp(&left.0).then_with(|| left.1.path.cmp(&right.1.path)));
    let mut best: Option<(u64, DemoSession)> = None;
    let mut sum = NewestSessions::default();
    let mut bytes = 0;
    for (number, (_, candidate)) in dated.into_iter().take(TRIED_COUNT_MAX).enumerate() {
        let Recognised::Session(format) = reader::recognise(&candidate, FileChoice::sessions(None)) else {
            continue;
        };
        if matches!(format, ImportFormat::MemoryDecisions | ImportFormat::MemoryPreferences) {
            continue;
        }
        let store = store_path::open_scratch(&folder.join(number.to_string()), output)?;
        if import(&store, &candidate.path, format).is_err() {
            continue;
        }
        bytes += candidate.bytes;
        let Some((session, call_count)) = richest(&store)? else { continue };
        if call_count >= CALL_COUNT_MIN {
            let view = store.view(session)?;
            let stats = acpdb_query::stats([("", &view)]).total;
            sum.sessions += 1;
            sum.tokens_whole += stats.tokens_whole;
            sum.tokens_shown += stats.tokens_shown;
            sum.tokens_freed += stats.tokens_freed;
            if best.as_ref().is_none_or(|(freed, _)| stats.tokens_freed > *freed) {
                let file = candidate.path;
                let source = SessionSource::Found { path: file.clone(), looked: NewestSessions::default() };
                best = Some((stats.tokens_freed, DemoSession { store, session, file, format, source }));
            }
        }
        if best.is_some() && bytes > TRIED_BYTES_MAX {
            break;
        }
    }
    Ok(best.map(|(_, mut chosen)| {
        if let SessionSource::Found { looked, .. } = &mut chosen.source {
            *looked = sum;
        }
        chosen
    }))
}

fn import(store: &Store, path: &Path, format: ImportFormat) -> Result<(), Failure> {
    match reader::read(store, path, format, &ImportOptions::default(), &mut |_| {}) {
        Ok(_) => Ok(()),
        Err(ReadError::Store(error)) => Err(error.into()),
        Err(ReadError::File(error)) => Err(Failure::io("read", path.display())(error)),
        Err(ReadError::Import { error, .. }) => {
            Err(Failure::new(Code::Failure, format!("{}: {error}", path.display())))
        }
    }
}

/// The session of a store with the most calls, main sessions first, and the number of its calls.
fn richest(store: &Store) -> Result<Option<(StreamId, u64)>, Failure> {
    let names: Vec<StreamName> = store.stream_names()?;
    let mut best = None;
    for name in names.into_iter().filter(|name| name.scope == Scope::Session) {
        let view = store.view(name.id)?;
        let calls = view.state().stats(view.at()).calls;
        let rank = (name.parent.is_none(), calls);
        if best.is_none_or(|(known, _)| rank > known) {
            best = Some((rank, name.id));
        }
    }
    Ok(best.map(|((_, calls), id)| (id, calls)))
}
