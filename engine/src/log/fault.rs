//! Why a read at a position found no frame, inside the log.

use super::error::LogError;
use crate::codec::{FrameHeader, Invalid};

/// Why there is no frame at a position.
#[derive(Debug)]
pub(crate) enum Fault {
    /// Only zeros, or the end of the file.
    Nothing,
    /// Bytes that are no sound frame; the header, if that much is sound.
    Invalid(Invalid, Option<Box<FrameHeader>>),
    /// The storage failed.
    Error(LogError),
}
