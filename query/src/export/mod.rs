//! A session for other programs: a page for a browser, rows for analysis, spans for trace viewers.
//!
//! ```text
//! View --items, edges, turning points--> page    one self-contained HTML file
//!                                    |-> poster   the tokens of a session as a picture, without any text of it
//!                                    |-> rows     a line of JSON for each item, with its states and edges
//!                                    `-> otlp     spans as OTLP JSON
//! SessionRow --> index_page   one HTML file over many sessions
//! ```
//!
//! Everything is written to an `impl Write` as it is read; texts are not gathered. The output is a function of the log, the
//! watermark and the time given. Nothing here opens a file. A body that is erased or damaged is told as such, and the rest is
//! exported all the same.

mod escape;
pub mod index_page;
pub mod otlp;
pub mod page;
mod page_data;
mod page_past;
mod page_session;
pub mod poster;
mod redaction;
pub mod rows;
mod texts;

use acpdb_engine::Error;

pub use escape::{JsonText, html_text};

/// The reason why an export stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExportError {
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] Error),
    /// The output could not be written.
    #[error("cannot write the export")]
    Write(#[from] std::io::Error),
    /// A value could not be put into the form asked for.
    #[error("cannot put this into the form asked for: {detail}")]
    Form {
        /// The value, and the reason.
        detail: String,
    },
}

impl From<serde_json::Error> for ExportError {
    fn from(error: serde_json::Error) -> Self {
        if error.is_io() { Self::Write(error.into()) } else { Self::Form { detail: error.to_string() } }
    }
}
