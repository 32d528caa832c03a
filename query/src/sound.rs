//! What is sound is answered, and the store notes the damage: events without those that are damaged, and texts or what became of
//! them.

use acpdb_engine::Error;
use acpdb_engine::event::Recorded;

/// Leaves out events that are damaged. What cannot be opened or read is an error.
pub(crate) fn sound(
    events: impl Iterator<Item = Result<Recorded, Error>>,
) -> impl Iterator<Item = Result<Recorded, Error>> {
    events.filter(|recorded| !matches!(recorded, Err(Error::Corrupt { .. })))
}

/// What was read, or the error that says that it is erased or damaged. What cannot be opened or read may say anything: that is an
/// error.
///
/// # Errors
/// Any other than [`Error::Erased`] and [`Error::Corrupt`].
pub fn or_lost<T>(read: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match read {
        Err(error @ (Error::Corrupt { .. } | Error::Erased { .. })) => Ok(Err(error)),
        read => read.map(Ok),
    }
}
