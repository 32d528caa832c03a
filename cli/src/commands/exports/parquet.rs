//! `acpdb export parquet`: the items as one table in columns, texts packed with zstd.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use acpdb_engine::store::SessionSummary;
use acpdb_query::export::ExportError;
use acpdb_query::export::tables::{ItemRecord, Sink, TurnRecord};
use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde::Serialize;

/// Items of a row group, at most.
const GROUP_COUNT_MAX: usize = 16 << 10;
/// Bytes of texts of a row group, at most, before it is written.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// Columns in the order in which [`Table::write`] writes them.
const SCHEMA: &str = "message acpdb_items {
  required binary session (utf8); required binary host (utf8); required binary item (utf8); required int64 seq;
  required int64 turn; required binary kind (utf8); required binary role (utf8); optional binary tool (utf8);
  optional binary call (utf8); optional binary hash (utf8); optional binary status (utf8); required binary keys (utf8);
  required int64 time (timestamp(micros,true)); optional int64 finished_time (timestamp(micros,true));
  required binary state (utf8); optional binary cause (utf8); optional binary rule (utf8);
  optional binary superseded_by (utf8); required boolean in_context; required boolean pinned; required int64 tokens;
  required int64 tokens_shown; required binary reason (utf8); optional binary input (utf8); optional binary output (utf8);
  optional binary problem (utf8); required binary states (utf8); required binary edges (utf8);
}";

/// A table in the making.
pub(super) struct Table {
    writer: SerializedFileWriter<File>,
    held: Vec<ItemRecord>,
    bytes: usize,
}

fn failed(error: ParquetError) -> ExportError {
    ExportError::Write(std::io::Error::other(error))
}

impl Table {
    /// Writes into a file.
    pub(super) fn create(path: &Path) -> Result<Self, ExportError> {
        let file = File::create(path)?;
        let schema = Arc::new(parse_message_type(SCHEMA).map_err(failed)?);
        let packed = Compression::ZSTD(ZstdLevel::default());
        let properties = Arc::new(WriterProperties::builder().set_compression(packed).build());
        let writer = SerializedFileWriter::new(file, schema, properties).map_err(failed)?;
        Ok(Self { writer, held: Vec::new(), bytes: 0 })
    }

    /// Writes what is held, and the footer.
    pub(super) fn finish(mut self) -> Result<(), ExportError> {
        self.group()?;
        self.writer.close().map(|_| ()).map_err(failed)
    }

    /// Writes the items that are held as a row group.
    fn group(&mut self) -> Result<(), ExportError> {
        self.bytes = 0;
        let held = std::mem::take(&mut self.held);
        if held.is_empty() {
            return Ok(());
        }
        let mut columns = Columns { group: self.writer.next_row_group().map_err(failed)?, items: &held };
        columns.texts(|item| Some(item.row.session.clone()), true)?;
        columns.texts(|item| Some(item.host.clone()), true)?;
        columns.texts(|item| Some(item.row.item.clone()), true)?;
        columns.numbers(|item| Some(number(item.row.seq.get())), true)?;
        columns.numbers(|item| Some(i64::from(item.row.turn)), true)?;
        columns.texts(|item| word(&item.row.kind), true)?;
        columns.texts(|item| word(&item.row.role), true)?;
        columns.texts(|item| item.row.tool.clone(), false)?;
        columns.texts(|item| item.row.call.clone(), false)?;
        columns.texts(|item| item.row.hash.clone(), false)?;
        columns.texts(|item| word(&item.row.status), false)?;
        columns.texts(|item| json(&item.row.keys), true)?;
        columns.numbers(|item| Some(item.time.get()), true)?;
        columns.numbers(|item| item.finished_time.map(acpdb_engine::ids::Micros::get), false)?;
        columns.texts(|item| word(&item.row.state), true)?;
        columns.texts(|item| item.row.cause.map(str::to_owned), false)?;
        columns.texts(|item| item.row.rule.map(|rule| rule.label().to_owned()), false)?;
        columns.texts(|item| item.row.superseded_by.clone(), false)?;
        columns.flags(|item| item.row.in_context)?;
        columns.flags(|item| item.row.pinned)?;
        columns.numbers(|item| Some(number(item.row.tokens)), true)?;
        columns.numbers(|item| Some(number(item.row.tokens_shown)), true)?;
        columns.texts(|item| Some(item.reason.clone()), true)?;
        columns.texts(|item| item.input.clone(), false)?;
        columns.texts(|item| item.output.clone(), false)?;
        columns.texts(|item| item.problem.clone(), false)?;
        columns.texts(|item| json(&item.states), true)?;
        columns.texts(|item| json(&item.edges), true)?;
        columns.group.close().map(|_| ()).map_err(failed)
    }
}

impl Sink for Table {
    fn session(&mut self, _: &SessionSummary, _: &[TurnRecord]) -> Result<(), ExportError> {
        Ok(())
    }

    fn item(&mut self, item: &ItemRecord) -> Result<(), ExportError> {
        let texts = [&item.input, &item.output].into_iter().flatten();
        self.bytes += texts.map(String::len).sum::<usize>();
        self.held.push(item.clone());
        if self.held.len() >= GROUP_COUNT_MAX || self.bytes >= GROUP_BYTES_MAX {
            self.group()?;
        }
        Ok(())
    }
}

/// A row group whose columns are written one after the other.
struct Columns<'g> {
    group: SerializedRowGroupWriter<'g, File>,
    items: &'g [ItemRecord],
}

impl Columns<'_> {
    /// Writes the next column. An optional one says of each row whether it has a value.
    fn next<T: parquet::data_type::DataType>(
        &mut self,
        of: impl Fn(&ItemRecord) -> Option<T::T>,
        required: bool,
    ) -> Result<(), ExportError> {
        let found: Vec<Option<T::T>> = self.items.iter().map(of).collect();
        let levels: Vec<i16> = found.iter().map(|value| i16::from(value.is_some())).collect();
        let values: Vec<T::T> = found.into_iter().flatten().collect();
        let column = self.group.next_column().map_err(failed)?;
        let mut column =
            column.ok_or_else(|| ExportError::Form { detail: "a column too many".to_owned() })?;
        let levels = (!required).then_some(levels.as_slice());
        column.typed::<T>().write_batch(&values, levels, None).map_err(failed)?;
        column.close().map_err(failed)
    }

    fn texts(
        &mut self,
        of: impl Fn(&ItemRecord) -> Option<String>,
        required: bool,
    ) -> Result<(), ExportError> {
        let filled = |item: &ItemRecord| match of(item) {
            None if required => Some(String::new()),
            other => other,
        };
        self.next::<ByteArrayType>(
            |item| filled(item).map(|text| ByteArray::from(text.into_bytes())),
            required,
        )
    }

    fn numbers(
        &mut self,
        of: impl Fn(&ItemRecord) -> Option<i64>,
        required: bool,
    ) -> Result<(), ExportError> {
        self.next::<Int64Type>(of, required)
    }

    fn flags(&mut self, of: impl Fn(&ItemRecord) -> bool) -> Result<(), ExportError> {
        self.next::<BoolType>(|item| Some(of(item)), true)
    }
}

/// The name that a plain variant has in JSON.
fn word(value: &impl Serialize) -> Option<String> {
    // Plain variants and lists of texts can always be written; so below.
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}

fn json(value: &impl Serialize) -> Option<String> {
    // As above.
    serde_json::to_string(value).ok()
}

/// Parquet's numbers are signed.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
