//! Rows that were to hold a JSON object and hold something else, as after damage: each is kept as it is, and noted.

use std::sync::Arc;

use acpdb_engine::entry::{Entry, StreamInfo, WirePiece, fact};

use super::super::values::ValueReader;
use super::super::{ImportContext, ImportError, Limits};
use super::group::RowData;
use super::is_one;

/// Rows of one message that are kept as they are.
#[derive(Debug, Default)]
pub(in crate::import) struct Broken {
    /// Whether a row that begins like an object is read to its end.
    is_strict: bool,
    rows: Vec<(&'static str, String, Vec<u8>)>,
}

impl Broken {
    /// Begins with a message.
    pub(in crate::import) fn begin(&mut self, is_strict: bool) {
        self.is_strict = is_strict;
        self.rows.clear();
    }

    /// The object that a row holds; other content is kept.
    pub(in crate::import) fn object(
        &mut self,
        table: &'static str,
        id: &str,
        data: RowData,
    ) -> Option<String> {
        match data {
            RowData::Object(text) if !self.is_strict || is_object(&text) => Some(text),
            other => {
                self.keep(table, id, other);
                None
            }
        }
    }

    /// Keeps the content of a row.
    pub(in crate::import) fn keep(&mut self, table: &'static str, id: &str, data: RowData) {
        let bytes = match data {
            RowData::Object(text) => text.into_bytes(),
            RowData::Other(bytes) => bytes,
            RowData::Gone => return,
        };
        self.rows.push((table, id.to_owned(), bytes));
    }

    /// Hands out the rows that were kept.
    pub(in crate::import) fn hand_out(
        &mut self,
        stream: &Arc<StreamInfo>,
        end: u64,
        context: &mut ImportContext<'_>,
    ) -> Result<(), ImportError> {
        for (table, id, bytes) in self.rows.drain(..) {
            context.report.records += 1;
            // Something stood there.
            context.is_understood();
            context.report.keep_raw(0, 0, format!("row {id} of table {table} cannot be read; kept as it is"));
            let origin = format!("broken:{table}/{id}");
            let fact = fact::HostRecorded { record: table.to_owned(), about: Some(id), raw: None };
            let entry = Entry::from(fact).origin(origin).wire(vec![WirePiece::Literal(bytes)]);
            context.emit(stream, vec![entry], end)?;
        }
        Ok(())
    }
}

/// Whether a text is one JSON object to its end.
fn is_object(text: &str) -> bool {
    let text = text.trim();
    let mut values = ValueReader::documents(text.as_bytes(), &Limits::default());
    let value = values.read();
    text.starts_with('{') && matches!(value, Ok(Some(value)) if is_one(&value, text.as_bytes()))
}
