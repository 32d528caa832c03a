//! Reading a chain from its beginning to its end, while its writer goes on.
//!
//! ```text
//! head -> segments, packs, entries up to the first missing number -> head again; if the boundary moved: once more
//! ```
//!
//! A writer that packs moves the boundary first and deletes chunks then. So an entry that is missing is the end of the chain only if the
//! boundary is where it was.

use acpdb_engine::codec::WrittenPlace;
use acpdb_engine::ids::StoreId;
use acpdb_engine::log::piece_offset;

use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::names::{ObjectName, head_key};
use crate::objects::{get_settled, head_of, named_run};
use crate::remote::Remote;
use crate::run::LogRun;
use crate::tail::ChainTail;

/// How often a chain is read on because it was packed meanwhile.
const ROUND_COUNT: u32 = 64;

/// Takes bytes of the chain: the segment that they are of, the place that they continue, the bytes, the place behind them.
pub(crate) type VisitRun<'a> =
    &'a mut dyn FnMut(u32, &WrittenPlace, &[u8], &WrittenPlace) -> Result<(), ChainError>;

/// Where a chain ended when it was read.
pub(crate) struct ReadEnd {
    /// The head that named what was read.
    pub(crate) head: RemoteHead,
    /// The place behind all of it.
    pub(crate) place: WrittenPlace,
    /// The first number that is missing.
    pub(crate) next: u64,
}

/// Reads a chain and returns its end. The same bytes are visited once.
///
/// # Errors
/// Those of `visit`; [`ChainError::NoStore`], [`ChainError::Unsound`], [`ChainError::Missing`], [`ChainError::Newer`], [`ChainError::Remote`].
pub(crate) fn read_chain(
    remote: &dyn Remote,
    store: StoreId,
    visit: VisitRun<'_>,
) -> Result<ReadEnd, ChainError> {
    let mut place = WrittenPlace::default();
    let mut known = None;
    for _ in 0..ROUND_COUNT {
        let found = match known.take() {
            Some(found) => found,
            None => {
                head_of(remote, store)?.ok_or_else(|| ChainError::NoStore { store: store.to_string() })?
            }
        };
        let (head, _) = found;
        let segments = head.segments.iter().map(|kept| (ObjectName::Segment(kept.name), Some(kept.behind)));
        let packs = head.packs.iter().map(|pack| (ObjectName::Pack(*pack), None));
        let (mut missing, mut gap, mut next) = (None, None, head.boundary);
        for (name, behind) in segments.chain(packs) {
            if behind.is_some_and(|behind| behind.position <= place.position) {
                continue;
            }
            let Some(run) = named_run(remote, store, name)? else {
                missing = Some(name);
                break;
            };
            if behind.is_some_and(|behind| behind != run.behind) {
                let what = "it ends at another place than the head says".to_owned();
                return Err(ChainError::Unsound { key: name.key(store), what });
            }
            add(&mut place, &run, name, visit)?;
        }
        if missing.is_none() {
            if place.position < head.place.position {
                let what = "what it names ends before the place that it names".to_owned();
                return Err(ChainError::Unsound { key: head_key(store), what });
            }
            let mut tail = ChainTail::of(&head);
            while let Some((object, _)) = get_settled(remote, &ObjectName::Entry(tail.next).key(store))? {
                let name = ObjectName::Entry(tail.next);
                if let Some(run) = tail.take(&object)? {
                    add(&mut place, &run, name, visit)?;
                }
            }
            (gap, next) = (tail.gap(), tail.next);
        }
        let again =
            head_of(remote, store)?.ok_or_else(|| ChainError::NoStore { store: store.to_string() })?;
        let is_same = (again.0.boundary, &again.0.packs, &again.0.segments)
            == (head.boundary, &head.packs, &head.segments);
        if is_same {
            return match (missing, gap) {
                (Some(name), _) => Err(ChainError::Missing { key: name.key(store) }),
                (None, Some(number)) => {
                    let what = "an entry before it, which it continues, is damaged or gone".to_owned();
                    Err(ChainError::Unsound { key: ObjectName::Entry(number).key(store), what })
                }
                (None, None) => Ok(ReadEnd { head, place, next }),
            };
        }
        known = Some(again);
    }
    Err(ChainError::Contended)
}

/// Visits the part of a run that is behind the place.
fn add(
    place: &mut WrittenPlace,
    run: &LogRun,
    name: ObjectName,
    visit: VisitRun<'_>,
) -> Result<(), ChainError> {
    if run.behind.position <= place.position {
        return Ok(());
    }
    let mut bytes = run.bytes.as_slice();
    if run.before != *place {
        // A part of it was visited before, as chunks or smaller packs.
        let from = piece_offset(&run.before, run.segment);
        let skipped = piece_offset(place, run.segment)
            .checked_sub(from)
            .and_then(|skipped| usize::try_from(skipped).ok());
        let is_inside = place.position.segment() == run.segment && run.before.position < place.position;
        let rest = skipped.filter(|_| is_inside).and_then(|skipped| bytes.get(skipped..));
        bytes = rest.ok_or_else(|| ChainError::Unsound {
            key: name.key(run.store),
            what: "it does not continue what is before it".to_owned(),
        })?;
    }
    visit(run.segment, place, bytes, &run.behind)?;
    *place = run.behind;
    Ok(())
}
