//! `acpdb restore`: a store made anew from what was shipped.

use std::sync::Arc;

use acpdb_engine::ids::StoreId;
use acpdb_engine::store::identity_of;
use acpdb_query::when::{self, Point};
use acpdb_remote::{
    ChainError, EncryptedRemote, RehearsedRemote, RemoteError, RestoreOptions, RestoreUntil, restore, stores,
    to_fetch, with_head,
};
use serde_json::json;

use super::lines::some_of;
use super::remote_url::{RemoteUrl, WITHOUT_SECRET};
use super::{Code, EscapeLevel, Failure, Global, Output, describe, escape, store_path};
use crate::args::RestoreArgs;

/// Most stores that an error names.
const NAMED_COUNT_MAX: usize = 50;

pub(crate) fn run(global: &Global, args: &RestoreArgs, output: &mut Output) -> Result<Code, Failure> {
    let until = global.at.as_deref().map(until).transpose()?.flatten();
    let url = RemoteUrl::read(&args.url)?;
    let remote: Arc<EncryptedRemote> = Arc::new(url.open(global.key_file.as_deref())?);
    let sealed = Arc::clone(&remote);
    let found = stores(&*remote).map_err(|error| url.failed(error, Code::Failure))?;
    let store = chosen(&url, &found, args.store.as_deref())?;
    let remote = RehearsedRemote::new(remote);
    if args.dry_run {
        let count = with_found_head(&remote, store, output, || to_fetch(&remote, store));
        let count = count.map_err(|error| url.failed(error, Code::Failure))?;
        let (line, count) = url.estimate(global, &count, true)?;
        if output.json {
            let value = json!({"schema": "acpdb.estimate/1", "store": store, "url": url.typed()});
            return output.json_line(&describe::with(value, count));
        }
        output.line(line)?;
        return Ok(Code::Ok);
    }
    let spinner = super::progress::spinner("restoring", output);
    // A key that is given means an encrypted store.
    let is_key_given = global.key_file.is_some() || crate::rings::passphrase_is_for_stores()?;
    let is_sealed = |error: RemoteError| url.failed(error.into(), Code::Failure);
    let encrypted = is_key_given && !sealed.is_sealed(store).map_err(is_sealed)?;
    let options = RestoreOptions { encrypted, until, ..RestoreOptions::default() };
    let made = || restore(&remote, store, &args.folder, options);
    let done = with_found_head(&remote, store, output, made);
    drop(spinner);
    let done = done.map_err(|error| match (&error, &global.at) {
        (ChainError::NoCommit, Some(at)) => {
            Failure::not_found(format!("the store there has nothing at {at}"))
                .hint("acpdb --db URL log shows what it has")
        }
        _ => url.failed(error, Code::Failure),
    })?;
    let key = done.path.join("key");
    let is_encrypted = identity_of(&done.path)?.is_some_and(|store| store.is_encrypted);
    if is_encrypted && !key.exists() {
        let key = store_path::quoted(&key);
        output.warn(format!(
            "the store is encrypted, and its key was not shipped: put the file key of the store, or of a backup, at {key}"
        ));
    }
    let code = if done.report.lacks_secret_alone() {
        let secret = store_path::quoted(&done.path.join("secret"));
        output.warn(format!(
            "the store was shipped without its file secret: {WITHOUT_SECRET}; put the file of the store, or of a backup, at {secret}"
        ));
        Code::Partial
    } else {
        Code::Ok
    };
    if output.json {
        return output.json_line(&done).map(|_| code);
    }
    let folder = escape(&done.path.display().to_string(), EscapeLevel::Line).into_owned();
    let events = describe::count(done.report.events, "event");
    output.line(format!("{folder}: store {store}, {events} up to {}, verified", done.head))?;
    if let Some(RestoreUntil::Seq(seq)) = until
        && done.head < seq
    {
        output
            .note(format!("note: {seq} is of a commit that goes on behind it, and none is restored in part"));
    }
    output.note(format!("to read it: acpdb --db {} home", store_path::quoted(&done.path)));
    Ok(code)
}

/// The last commit that is meant; `None`: the newest.
fn until(text: &str) -> Result<Option<RestoreUntil>, Failure> {
    match when::parse(text, super::at::now()).map_err(super::find::point_failure)? {
        Point::Head => Ok(None),
        Point::Seq(seq) => Ok(Some(RestoreUntil::Seq(seq))),
        Point::Time(time) => Ok(Some(RestoreUntil::Time(time))),
        Point::Turn(_) | Point::TurnsBack(_) | Point::Mark(..) => {
            let failure = Failure::usage(format!("{text} is a point in a session; restore takes a store"));
            Err(failure.hint("say an event or a time of recording: --at '#812', --at yesterday"))
        }
    }
}

/// Reads a store there; if its head was lost, with one that is made anew in memory.
fn with_found_head<T>(
    remote: &RehearsedRemote,
    store: StoreId,
    output: &Output,
    mut read: impl FnMut() -> Result<T, ChainError>,
) -> Result<T, ChainError> {
    let warn = || output.warn("the head of the store is lost; it was found from the other objects");
    with_head(remote, store, warn, || match read() {
        // There may be objects without a head.
        Err(ChainError::NoStore { store }) => Err(ChainError::HeadLost { store }),
        done => done,
    })
}

/// The store that is meant.
fn chosen(url: &RemoteUrl, found: &[StoreId], named: Option<&str>) -> Result<StoreId, Failure> {
    let begins = |store: &&StoreId| named.is_none_or(|named| store.to_hex().starts_with(named));
    let fitting: Vec<StoreId> = found.iter().filter(begins).copied().collect();
    match (fitting.as_slice(), named) {
        ([store], _) => Ok(*store),
        // A store whose head was lost is in no list.
        ([], Some(named)) => StoreId::from_hex(named).ok_or_else(|| {
            let failure = Failure::not_found(format!("{} has no store {named}", url.shown()));
            if found.is_empty() { failure } else { failure.hint(listed(found)) }
        }),
        ([], None) => Err(url.without_store()),
        (several, _) => {
            let count = describe::count(several.len() as u64, "store");
            let failure = Failure::usage(format!("{} has {count}: {}", url.shown(), listed(several)));
            Err(failure.hint("name one with --store ID; the beginning of an id will do"))
        }
    }
}

fn listed(stores: &[StoreId]) -> String {
    some_of(&stores.iter().map(StoreId::to_hex).collect::<Vec<_>>(), NAMED_COUNT_MAX)
}
