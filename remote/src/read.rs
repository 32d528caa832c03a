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

use crate::ahead::AheadRemote;
use crate::error::ChainError;
use crate::head::RemoteHead;
use crate::names::{ObjectName, head_key};
use crate::objects::{get_settled, head_of, named_run};
use crate::run::LogRun;
use crate::tail::ChainTail;

/// How often a chain is read on because it was packed meanwhile.
const ROUND_COUNT: u32 = 64;

/// Takes bytes of the chain: the segment that they are of, the place that they continue, the bytes, the place behind them.
pub(crate) type VisitRun<'a> =
    &'a mut dyn FnMut(u32, &WrittenPlace, &[u8], &WrittenPlace) -> Result<(), ChainError>;

/// Takes a fault of an object: an error ends the reading, else it goes on behind the object.
pub(crate) type TakeFault<'a> = &'a mut dyn FnMut(ChainError) -> Result<(), ChainError>;

/// Where a chain ended when it was read.
pub(crate) struct ReadEnd {
    /// The head that named what was read.
    pub(crate) head: RemoteHead,
    /// The place behind all of it.
    pub(crate) place: WrittenPlace,
    /// The entries behind the head's boundary.
    pub(crate) tail: ChainTail,
}

/// Reads a chain and returns its end. The same bytes are visited once.
///
/// # Errors
/// Those of `visit`; [`ChainError::NoStore`], [`ChainError::Unsound`], [`ChainError::Missing`], [`ChainError::Newer`], [`ChainError::Remote`].
pub(crate) fn read_chain(remote: &AheadRemote<'_>, visit: VisitRun<'_>) -> Result<ReadEnd, ChainError> {
    read_past_faults(remote, visit, &mut Err)
}

/// [`read_chain`], which asks `fault` at each faulty object whether to go on. Each object is read once.
pub(crate) fn read_past_faults(
    remote: &AheadRemote<'_>,
    visit: VisitRun<'_>,
    fault: TakeFault<'_>,
) -> Result<ReadEnd, ChainError> {
    let store = remote.store();
    let head_now = || head_of(remote, store)?.ok_or_else(|| ChainError::NoStore { store: store.to_string() });
    let mut reading = Reading { place: WrittenPlace::default(), is_lost: false, visit, fault };
    let (mut head, _) = head_now()?;
    for _ in 0..ROUND_COUNT {
        let mut moved = None;
        remote.expect(head.names().map(|(name, _)| name));
        for (name, behind) in head.names() {
            if behind.is_some_and(|behind| behind.position <= reading.place.position) {
                continue;
            }
            let found = named_run(remote, store, name);
            if matches!(found, Ok(None)) {
                let (again, _) = head_now()?;
                if !again.names_the_same(&head) {
                    moved = Some(again);
                    break;
                }
            }
            reading.take_named(found, &name, store, behind)?;
        }
        if let Some(again) = moved {
            head = again;
            continue;
        }
        if reading.place.position < head.place.position {
            if !std::mem::take(&mut reading.is_lost) {
                let what = "what it names ends before the place that it names".to_owned();
                (reading.fault)(ChainError::Unsound { key: head_key(store), what })?;
            }
            reading.place = head.place;
        }
        let mut tail = ChainTail::of(&head);
        while let Some((object, _)) = get_settled(remote, &ObjectName::Entry(tail.next).key(store))? {
            let name = ObjectName::Entry(tail.next);
            if let Some(run) = tail.take(&object)? {
                reading.add_or_tell(&run, &name)?;
            }
        }
        let (again, _) = head_now()?;
        if again.names_the_same(&head) {
            if let Some(number) = tail.gap() {
                let what = "an entry before it, which it continues, is damaged or gone".to_owned();
                (reading.fault)(ChainError::Unsound { key: ObjectName::Entry(number).key(store), what })?;
            }
            return Ok(ReadEnd { head, place: reading.place, tail });
        }
        head = again;
    }
    Err(ChainError::Contended)
}

/// Reads a chain of which the reader is the writer: its head and its tail are known, and stay.
pub(crate) fn read_own(
    remote: &AheadRemote<'_>,
    head: &RemoteHead,
    tail: &ChainTail,
    visit: VisitRun<'_>,
) -> Result<WrittenPlace, ChainError> {
    let store = remote.store();
    let mut reading = Reading { place: WrittenPlace::default(), is_lost: false, visit, fault: &mut Err };
    let chunks = tail.accepted.iter().map(|chunk| (ObjectName::Entry(chunk.number), Some(chunk.behind)));
    let names: Vec<_> = head.names().chain(chunks).collect();
    remote.expect(names.iter().map(|(name, _)| *name));
    for (name, behind) in names {
        reading.take_named(named_run(remote, store, name), &name, store, behind)?;
    }
    Ok(reading.place)
}

/// A chain that is being read.
struct Reading<'a> {
    /// The place that was reached.
    place: WrittenPlace,
    /// An object whose end is not known was passed over: the next one begins where it says.
    is_lost: bool,
    visit: VisitRun<'a>,
    fault: TakeFault<'a>,
}

impl Reading<'_> {
    /// Takes an object that a head names, with the place behind it if the head says that.
    fn take_named(
        &mut self,
        found: Result<Option<LogRun>, ChainError>,
        name: &ObjectName,
        store: StoreId,
        behind: Option<WrittenPlace>,
    ) -> Result<(), ChainError> {
        let wrong = "it ends at another place than the head says";
        let found = match found {
            Ok(Some(run)) if behind.is_none_or(|behind| behind == run.behind) => Ok(run),
            Ok(Some(_)) => Err(ChainError::Unsound { key: name.key(store), what: wrong.to_owned() }),
            Ok(None) => Err(ChainError::Missing { key: name.key(store) }),
            Err(error) => Err(error),
        };
        let run = match found {
            Ok(run) => run,
            Err(error) => {
                (self.fault)(error)?;
                match behind {
                    Some(behind) => (self.place, self.is_lost) = (behind, false),
                    None => self.is_lost = true,
                }
                return Ok(());
            }
        };
        if std::mem::take(&mut self.is_lost) && run.before.position > self.place.position {
            self.place = run.before;
        }
        self.add_or_tell(&run, name)
    }

    fn add_or_tell(&mut self, run: &LogRun, name: &ObjectName) -> Result<(), ChainError> {
        let added = add(&self.place, run, name, &mut *self.visit);
        added.or_else(|error| (self.fault)(error))?;
        if run.behind.position > self.place.position {
            self.place = run.behind;
        }
        Ok(())
    }
}

/// Visits the part of a run that is behind the place.
fn add(place: &WrittenPlace, run: &LogRun, name: &ObjectName, visit: VisitRun<'_>) -> Result<(), ChainError> {
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
    visit(run.segment, place, bytes, &run.behind)
}
