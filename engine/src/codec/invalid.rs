//! Errors of bytes, and of a commit that cannot be written.

/// Wrong bytes: where they are, and how they are wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part} is invalid at byte {offset}: expected {expected}, found {found}")]
pub struct Invalid {
    /// The damaged part.
    pub part: DamagedPart,
    /// The place, in bytes from the start of the decoded bytes.
    pub offset: u64,
    /// The expected value.
    pub expected: String,
    /// The found value.
    pub found: String,
}

impl Invalid {
    pub(crate) fn new(
        part: DamagedPart,
        offset: usize,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Self {
        let offset = u64::try_from(offset).unwrap_or(u64::MAX);
        Self { part, offset, expected: expected.into(), found: found.into() }
    }
}

/// The parts of a store that can be damaged. Their names are an interface (`verify --json`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DamagedPart {
    /// `acpdb.json`.
    StoreFile,
    /// `secret`, or the wrapped key of a stream.
    Secret,
    /// `checkpoint`.
    Checkpoint,
    /// The tail page.
    Tail,
    /// A segment file that should be there.
    SegmentMissing,
    /// The header of a segment.
    SegmentHeader,
    /// The header of a frame.
    FrameHeader,
    /// A sound frame that belongs to another place: copied, swapped or inserted.
    FrameMisplaced,
    /// A frame that does not continue the one before it.
    Link,
    /// Streams, body rows, envelopes or payloads of a frame.
    Spine,
    /// The bytes or the salt of a body.
    Body,
    /// A body of zeros without a record that it was erased.
    BodyZeroed,
    /// The packed bytes of a sealed segment.
    Packed,
    /// Rows of places that say something else than the frames.
    Places,
    /// Bytes after the end of a complete segment.
    Rubbish,
    /// Acknowledged events that are not there.
    Missing,
    /// A witness that names another link than the log has.
    Forked,
    /// Sound bytes with a value that this program does not know: a newer program wrote them.
    Newer,
}

impl std::fmt::Display for DamagedPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::StoreFile => "store file",
            Self::Secret => "secret",
            Self::Checkpoint => "checkpoint",
            Self::Tail => "tail page",
            Self::SegmentMissing => "segment file",
            Self::SegmentHeader => "segment header",
            Self::FrameHeader => "frame header",
            Self::FrameMisplaced => "place of a frame",
            Self::Link => "link",
            Self::Spine => "spine",
            Self::Body => "body",
            Self::BodyZeroed => "zeroed body",
            Self::Packed => "packed bytes",
            Self::Places => "places of frames",
            Self::Rubbish => "end of segment",
            Self::Missing => "end of the log",
            Self::Forked => "history",
            Self::Newer => "newer format",
        })
    }
}

/// A commit that cannot be written as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Something is over its limit; split the commit or chunk the body.
    #[error("{what} has {actual}, the limit is {limit}")]
    TooLarge {
        /// The part that is too large.
        what: &'static str,
        /// How large it is.
        actual: u64,
        /// How large it may be.
        limit: u64,
    },
    /// A commit must hold at least one event.
    #[error("a commit needs at least one event")]
    NoEvents,
    /// Empty bodies need no row.
    #[error("body {row} of event {event} is empty; an empty body has no row")]
    EmptyBody {
        /// Ordinal of the event in the commit.
        event: usize,
        /// Ordinal of the body in the event.
        row: usize,
    },
    /// A salt of zeros stands for an erased body.
    #[error("body {row} of event {event} has no salt")]
    NoSalt {
        /// Ordinal of the event in the commit.
        event: usize,
        /// Ordinal of the body in the event.
        row: usize,
    },
}
