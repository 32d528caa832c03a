//! `acpdb export parquet`: the items as one table in columns, texts packed with zstd.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use acpdb_engine::store::SessionSummary;
use acpdb_query::export::ExportError;
use acpdb_query::export::tables::{ItemRecord, Sink, TurnRecord};
use parquet::basic::{Compression, Type, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde_json::Value;

/// Items of a row group, at most.
const GROUP_COUNT_MAX: usize = 16 << 10;
/// Bytes of texts of a row group, at most, before it is written.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// Columns, by the names that the values of an item have in JSON.
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
        let items = held.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
        let schema = self.writer.schema_descr().columns().to_vec();
        let mut group = self.writer.next_row_group().map_err(failed)?;
        for column in schema {
            let (name, required) = (column.name(), column.max_def_level() == 0);
            let found = items.iter().map(|item| item.get(name).filter(|value| !value.is_null()));
            match column.physical_type() {
                Type::BOOLEAN => {
                    write::<BoolType>(&mut group, found.map(|value| value?.as_bool()), required)?;
                }
                // Parquet's numbers are signed.
                Type::INT64 => {
                    let number = |value: &Value| value.as_i64().unwrap_or(i64::MAX);
                    write::<Int64Type>(&mut group, found.map(|value| value.map(number)), required)?;
                }
                _ => {
                    let text =
                        |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let bytes = |value: &Value| ByteArray::from(text(value).into_bytes());
                    write::<ByteArrayType>(&mut group, found.map(|value| value.map(bytes)), required)?;
                }
            }
        }
        group.close().map(|_| ()).map_err(failed)
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

/// Writes the next column. An optional one says of each row whether it has a value.
fn write<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, File>,
    found: impl Iterator<Item = Option<T::T>>,
    required: bool,
) -> Result<(), ExportError> {
    let found: Vec<Option<T::T>> = found.collect();
    let levels: Vec<i16> = found.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<T::T> = found.into_iter().flatten().collect();
    let column = group.next_column().map_err(failed)?;
    let mut column = column.ok_or_else(|| ExportError::Form { detail: "a column too many".to_owned() })?;
    let levels = (!required).then_some(levels.as_slice());
    column.typed::<T>().write_batch(&values, levels, None).map_err(failed)?;
    column.close().map_err(failed)
}
