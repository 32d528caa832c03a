//! Events of a store without those that are damaged: what is sound is answered, and the store notes the damage.

use acpdb_engine::Error;
use acpdb_engine::event::Recorded;

/// Leaves out events that are damaged. What cannot be opened or read is an error.
pub(crate) fn sound(
    events: impl Iterator<Item = Result<Recorded, Error>>,
) -> impl Iterator<Item = Result<Recorded, Error>> {
    events.filter(|recorded| !matches!(recorded, Err(Error::Corrupt { .. })))
}
