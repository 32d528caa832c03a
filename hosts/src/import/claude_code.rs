//! Placeholder.
use super::{Context, ImportError, Input};
pub(super) fn read(_input: Input<'_>, _context: &mut Context<'_>) -> Result<(), ImportError> {
    Ok(())
}
