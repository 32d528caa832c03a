//! A store is made anew from a remote, in a folder that gets its name once all is proven.

use std::path::Path;

use acpdb_engine::Error;
use acpdb_engine::ids::{Micros, Seq, StoreId};
use acpdb_engine::log::{CopyParts, Head};
use acpdb_engine::store::{Backup, copy_from_pieces};
use acpdb_engine::verify::Verdict;

use crate::ahead::AheadRemote;
use crate::error::ChainError;
use crate::names::HEADS;
use crate::objects::{head_of, listed};
use crate::read::{ReadEnd, VisitRun, read_chain};
use crate::remote::Remote;
use crate::small::SmallThere;
use crate::status::is_of_encrypted;

/// How a store is restored.
#[derive(Debug, Clone, Copy, Default)]
pub struct RestoreOptions {
    /// Keep what was read even if the verification finds damage, such as bodies that were damaged before they were shipped.
    pub damaged: bool,
    /// Refuse a store that is not encrypted.
    pub encrypted: bool,
    /// Keep the commits up to here alone. Such a store goes on from there by itself: where it came from refuses what it ships. A point before an erasure is
    /// refused as damage: the text is gone there, without the event that says so.
    pub until: Option<RestoreUntil>,
}

/// The last commit that is restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoreUntil {
    /// The last one that ends with this event, or before it.
    Seq(Seq),
    /// The last one that was recorded at this time, or before it.
    Time(Micros),
}

impl RestoreUntil {
    const fn holds(self, behind: &Head) -> bool {
        match self {
            Self::Seq(seq) => behind.seq.0 <= seq.0,
            Self::Time(time) => behind.time.0 <= time.0,
        }
    }

    /// Whether a chain with this end has it.
    const fn is_in(self, end: &Head) -> bool {
        match self {
            Self::Seq(seq) => seq.0 <= end.seq.0,
            Self::Time(_) => true,
        }
    }
}

/// The stores that a remote has, in order. Names that are no store's are passed over.
///
/// # Errors
/// [`ChainError::Remote`]; [`ChainError::TooLarge`] for more than a million.
pub fn stores(remote: &dyn Remote) -> Result<Vec<StoreId>, ChainError> {
    let mut found = listed(remote, HEADS, |key| {
        let name = key.strip_prefix(HEADS)?;
        // Capitals are another name.
        StoreId::from_hex(name).filter(|store| store.to_hex() == name)
    })?;
    found.sort_unstable();
    Ok(found)
}

/// Makes a store in a folder that is empty or does not exist, from all that the remote has of it, and verifies it. Nothing outside of the folder, and of its
/// name with `.partial` behind it, is written; whatever fails, there is no store. Without the store's secret the report names that one fault: what was made can be
/// read, and nothing can be appended to it until the file `secret` of the store is put there.
///
/// # Errors
/// [`ChainError::NoStore`], [`ChainError::HeadLost`], [`ChainError::Missing`], [`ChainError::Unsound`], [`ChainError::Newer`], [`ChainError::Damaged`],
/// [`ChainError::Remote`]; [`ChainError::Store`] for bytes of the log that do not continue each other, for the folder, and for a plain store where an
/// encrypted one is asked for.
pub fn restore(
    remote: &dyn Remote,
    store: StoreId,
    folder: &Path,
    options: RestoreOptions,
) -> Result<Backup, ChainError> {
    restored(remote, store, folder, options).map(|(done, _)| done)
}

/// [`restore`], with the end of the chain.
pub(crate) fn restored(
    remote: &dyn Remote,
    store: StoreId,
    folder: &Path,
    options: RestoreOptions,
) -> Result<(Backup, ReadEnd), ChainError> {
    let ahead = AheadRemote::new(remote, store);
    if head_of(&ahead, store)?.is_none() {
        return Err(ChainError::NoStore { store: store.to_string() });
    }
    let parts = SmallThere::read(&ahead)?.parts(store)?;
    made_from(parts, folder, options, |visit| read_chain(&ahead, visit))
}

/// Makes a store in a folder of its small files, and of what `read` visits; and verifies it.
pub(crate) fn made_from<T>(
    parts: CopyParts,
    folder: &Path,
    options: RestoreOptions,
    read: impl FnOnce(VisitRun<'_>) -> Result<T, ChainError>,
) -> Result<(Backup, T), ChainError> {
    let store = parts.store;
    if options.encrypted && !is_of_encrypted(&parts.store_file) {
        let detail = format!(
            "store {store} is not encrypted, and a key was given; leave it out to restore a plain store"
        );
        return Err(ChainError::Store(Error::Locked { detail }));
    }
    let has_secret = parts.secret.is_some();
    let mut end = None;
    let done = copy_from_pieces(
        folder,
        store,
        |target| {
            let (mut is_cut, mut last) = (false, Head::default());
            let keeps = |behind: &Head| options.until.is_none_or(|until| until.holds(behind));
            let visit: VisitRun<'_> = &mut |segment, _, bytes, behind| {
                last = *behind;
                if is_cut {
                    return Ok(());
                }
                let (end, is_all) = target.add_while(segment, bytes, &keeps)?;
                is_cut = !is_all;
                if is_cut || end == *behind {
                    return Ok(());
                }
                let what = format!("segment {segment} ends at another place than the objects say");
                Err(ChainError::Unsound { key: store.to_string(), what })
            };
            end = Some(read(visit)?);
            if let Some(until) = options.until
                && (target.place() == Head::default() || !until.is_in(&last))
            {
                return Err(ChainError::NoCommit);
            }
            Ok(parts)
        },
        |report| match report.verdict() {
            Verdict::Sound => Ok(()),
            Verdict::Damaged if options.damaged => Ok(()),
            // It was not shipped: all can be read.
            Verdict::Damaged if !has_secret && report.lacks_secret_alone() => Ok(()),
            _ => Err(ChainError::Damaged(Box::new(report.clone()))),
        },
    )?;
    let end = end.ok_or_else(|| ChainError::NoStore { store: store.to_string() })?;
    Ok((done, end))
}
