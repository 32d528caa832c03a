//! Answers leave out damaged events, and give a text or the error that says that it is erased or damaged; the store notes the
//! damage.

use acpdb_engine::Error;
use acpdb_engine::event::Recorded;

/// Leaves out events that are damaged. An event that cannot be opened or read is an error.
pub(crate) fn sound(
    events: impl Iterator<Item = Result<Recorded, Error>>,
) -> impl Iterator<Item = Result<Recorded, Error>> {
    events.filter(|recorded| !matches!(recorded, Err(Error::Corrupt { .. })))
}

/// The value that was read, or the error that says that it is erased or damaged. Bytes that cannot be opened or read may say
/// anything: they are an error.
///
/// # Errors
/// Any other than [`Error::Erased`] and [`Error::Corrupt`].
pub fn or_lost<T>(read: Result<T, Error>) -> Result<Result<T, Error>, Error> {
    match read {
        Err(error @ (Error::Corrupt { .. } | Error::Erased { .. })) => Ok(Err(error)),
        read => read.map(Ok),
    }
}
