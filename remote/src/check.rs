//! Objects of a store, checked where they lie: no store is made of them.
//!
//! ```text
//! whole   head -> each object: length, digest, epoch, place, headers and links of frames -> head again
//! quick   head, the list of names -> whatever is named is there, and no entry is missing before a later one
//! ```

use std::collections::{BTreeMap, BTreeSet};

use acpdb_engine::codec::{STORE_FILE_BYTES_MAX, StoreFile};
use acpdb_engine::ids::{Link, Seq, StoreId};
use acpdb_engine::log::follow;

use crate::ahead::AheadRemote;
use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::names::{ObjectName, meta_key, store_keys};
use crate::objects::{get_settled, head_of, listed_objects};
use crate::read::{VisitRun, read_past_faults};
use crate::rehearsal::RehearsedCount;
use crate::remote::Remote;
use crate::run::RUN_HEADER_BYTES;
use crate::status::lacks_secret;

/// Requests of a restore beside its objects: the head three times, three small files, the first number that is missing.
const OTHER_READ_COUNT: u64 = 7;
/// How often names are listed anew because the chain was packed meanwhile.
const ROUND_COUNT: u32 = 16;

/// An object that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RemoteViolation {
    /// The object.
    pub key: String,
    /// The fault.
    pub detail: String,
}

/// The findings of a check of one store.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[must_use]
pub struct RemoteReport {
    /// The store.
    pub store: StoreId,
    /// Whether only the head and names were looked at.
    pub is_quick: bool,
    /// Whether nothing is wrong.
    pub is_sound: bool,
    /// The last seq that is there, behind damage, too; of a quick check, the last one that packs and segments have.
    pub head_seq: Seq,
    /// The link there.
    pub head_link: Link,
    /// How often the store was taken over.
    pub epoch: u64,
    /// Complete segments.
    pub segments: u64,
    /// Packs.
    pub packs: u64,
    /// Chunks that are sound; of a quick check, all entries behind the boundary.
    pub chunks: u64,
    /// Fences.
    pub fences: u64,
    /// Entries that were torn: they count for nothing, and stay.
    pub torn: u64,
    /// Objects that no head names any more and that are there still.
    pub left_over: u64,
    /// Bytes of all objects.
    pub bytes: u64,
    /// Its secret is not there: what is restored can be read, and nothing can be appended to it.
    pub lacks_secret: bool,
    /// Everything that is wrong.
    pub violations: Vec<RemoteViolation>,
}

impl RemoteReport {
    fn wrong(&mut self, key: String, detail: impl Into<String>) {
        if !self.violations.iter().any(|known| known.key == key) {
            self.violations.push(RemoteViolation { key, detail: detail.into() });
        }
    }

    /// Takes an error of one object as a finding; others are none.
    fn take(&mut self, error: ChainError) -> Result<(), ChainError> {
        match error {
            ChainError::Unsound { key, what } => self.wrong(key, what),
            ChainError::Missing { key } => self.wrong(key, "it is named and is not there"),
            error => return Err(error),
        }
        Ok(())
    }
}

/// Names of a store's objects with their lengths, and the head that was there before and after they were listed.
struct RemoteNames {
    head: RemoteHead,
    names: BTreeMap<ObjectName, u64>,
    bytes: u64,
}

fn names_of(remote: &dyn Remote, store: StoreId) -> Result<RemoteNames, ChainError> {
    let head = || head_of(remote, store)?.ok_or_else(|| ChainError::NoStore { store: store.to_string() });
    let (mut before, _) = head()?;
    for _ in 0..ROUND_COUNT {
        let all = listed_objects(remote, &store_keys(store), |listed| Some(listed.clone()))?;
        let (after, _) = head()?;
        if after.names_the_same(&before) {
            let bytes = all.iter().fold(0_u64, |sum, listed| sum.saturating_add(listed.bytes));
            let names =
                all.iter().filter_map(|listed| Some((ObjectName::parse(store, &listed.key)?, listed.bytes)));
            return Ok(RemoteNames { head: after, names: names.collect(), bytes });
        }
        before = after;
    }
    Err(ChainError::Contended)
}

/// Counts the objects that a restore would read, and the requests.
///
/// Cost: a listing of the store's objects.
///
/// # Errors
/// [`ChainError::NoStore`], [`ChainError::HeadLost`], [`ChainError::Newer`], [`ChainError::Remote`].
pub fn to_fetch(remote: &dyn Remote, store: StoreId) -> Result<RehearsedCount, ChainError> {
    let RemoteNames { head, names, .. } = names_of(remote, store)?;
    let named: BTreeSet<ObjectName> = head.names().map(|(name, _)| name).collect();
    let counts = |name: &&ObjectName| match name {
        ObjectName::Entry(number) => *number >= head.boundary,
        name => named.contains(name),
    };
    let mut count = RehearsedCount { reads: OTHER_READ_COUNT, writes: 1, ..RehearsedCount::default() };
    for name in names.keys().filter(counts) {
        count.objects = count.objects.saturating_add(1);
        count.reads = count.reads.saturating_add(1);
        count.bytes = count.bytes.saturating_add(names.get(name).copied().unwrap_or(0));
    }
    Ok(count)
}

/// Checks what a remote has of a store. Changes nothing, and writes nothing here.
///
/// Cost: a listing of the store's objects; unless `is_quick`, all of them are read, one at a time.
///
/// # Errors
/// [`ChainError::NoStore`], [`ChainError::HeadLost`], [`ChainError::Newer`], [`ChainError::Remote`]. Damage is no error.
pub fn check(remote: &dyn Remote, store: StoreId, is_quick: bool) -> Result<RemoteReport, ChainError> {
    let RemoteNames { head, names, bytes } = names_of(remote, store)?;
    let count = |length: usize| length as u64;
    let mut report = RemoteReport {
        store,
        is_quick,
        is_sound: false,
        head_seq: head.place.seq,
        head_link: head.place.link,
        epoch: head.epoch,
        segments: count(head.segments.len()),
        packs: count(head.packs.len()),
        chunks: 0,
        fences: 0,
        torn: 0,
        left_over: 0,
        bytes,
        lacks_secret: lacks_secret(remote, store)?,
        violations: Vec::new(),
    };
    check_names(&mut report, &head, &names);
    if !is_quick {
        check_store_file(&mut report, remote)?;
        check_objects(&mut report, remote, &names)?;
    }
    report.is_sound = report.violations.is_empty();
    Ok(report)
}

/// Whatever the head names is there, and behind the boundary no number is missing before a later one.
fn check_names(report: &mut RemoteReport, head: &RemoteHead, names: &BTreeMap<ObjectName, u64>) {
    let store = report.store;
    let named: BTreeSet<ObjectName> = head.names().map(|(name, _)| name).collect();
    for name in &named {
        match names.get(name) {
            None => report.wrong(name.key(store), "it is named and is not there"),
            Some(bytes) if *bytes < RUN_HEADER_BYTES as u64 => {
                report.wrong(name.key(store), "it is too short");
            }
            Some(_) => {}
        }
    }
    let is_left = |name: &&ObjectName| !matches!(name, ObjectName::Entry(_)) && !named.contains(name);
    report.left_over = names.keys().filter(is_left).count() as u64;
    let mut next = head.boundary;
    for (name, bytes) in names {
        let ObjectName::Entry(number) = name else { continue };
        if *number < head.boundary {
            continue;
        }
        if *number > next {
            report.wrong(ObjectName::Entry(next).key(store), "it is missing, and later ones are there");
        }
        next = number.saturating_add(1);
        if report.is_quick {
            let is_whole = *bytes >= RUN_HEADER_BYTES as u64;
            *(if is_whole { &mut report.chunks } else { &mut report.torn }) += 1;
        }
    }
}

fn check_store_file(report: &mut RemoteReport, remote: &dyn Remote) -> Result<(), ChainError> {
    let key = meta_key(report.store, "acpdb.json");
    match get_settled(remote, &key)? {
        None => report.wrong(key, "it is not there"),
        Some((bytes, _)) => {
            let is_own = bytes.len() <= STORE_FILE_BYTES_MAX
                && StoreFile::decode(&bytes).is_ok_and(|file| file.store == report.store);
            if !is_own {
                report.wrong(key, "it is no store file of this store");
            }
        }
    }
    Ok(())
}

/// Every object that counts, in the order of the log, with the headers and links of its frames; and entries by what they are, fences before the
/// boundary, too, since they stay.
fn check_objects(
    report: &mut RemoteReport,
    remote: &dyn Remote,
    names: &BTreeMap<ObjectName, u64>,
) -> Result<(), ChainError> {
    let store = report.store;
    let visit: VisitRun<'_> = &mut |segment, before, bytes, behind| {
        let unsound = |what| ChainError::Unsound { key: format!("segment {segment} of {store}"), what };
        let found = follow(store, before, segment, bytes).map_err(|invalid| {
            unsound(format!("{}: expected {}, found {}", invalid.part, invalid.expected, invalid.found))
        })?;
        if found == *behind {
            return Ok(());
        }
        Err(unsound("its frames end at another place than it says".to_owned()))
    };
    let end = read_past_faults(&AheadRemote::new(remote, store), visit, &mut |error| report.take(error))?;
    (report.head_seq, report.head_link) = (end.place.seq, end.place.link);
    let mut kinds = end.tail.kinds;
    for name in names.keys() {
        let ObjectName::Entry(number) = *name else { continue };
        if (end.tail.first..end.tail.next).contains(&number) {
            continue;
        }
        // It may have been packed meanwhile.
        let Some((object, _)) = get_settled(remote, &name.key(store))? else { continue };
        let _ = kinds.read(store, number, &object)?; // Only counted.
    }
    (report.chunks, report.fences, report.torn) = (kinds.chunks, kinds.fences, kinds.torn);
    Ok(())
}
