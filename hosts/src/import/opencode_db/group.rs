//! The places of a table's rows, by owner: some 50 bytes a row beside its id.
//!
//! ```text
//! ids     "prt_1prt_2prt_3.."                     one text for all
//! rows    by owner, order, id                     where each lies, when it was changed
//! owners  "msg_1" -> its rows                     a run of the list
//! ```

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{Hash as _, Hasher};
use std::ops::Range;

use super::super::json;
use super::{integer, text};
use crate::sqlite::{Database, RowAddress, SqlValue, Table, Unreadable};

/// The names of the columns that a table's rows are found by.
pub(super) struct ColumnNames {
    pub(super) table: &'static str,
    pub(super) owner: &'static str,
    pub(super) order: &'static str,
    pub(super) changed: &'static str,
    /// Whether rows are asked for by their ids, which are kept then.
    pub(super) has_ids: bool,
    /// Beginnings of the column `type` in rows that count; none: all count.
    pub(super) kinds: &'static [&'static str],
}

/// A row: its order among those of its owner, its id, where it lies, when it was changed.
#[derive(Debug)]
pub(super) struct OwnedRow {
    order: i64,
    changed: i64,
    place: RowAddress,
    /// The number of its owner, in the order in which owners were met.
    owner: u32,
    /// Start and length of its id.
    id: (u32, u32),
}

impl OwnedRow {
    /// The place of the row.
    pub(super) const fn place(&self) -> RowAddress {
        self.place
    }
}

/// Rows of a table, by owner.
#[derive(Debug, Default)]
pub(super) struct OwnerRows {
    /// The table, and the index of its column `data`.
    table: Option<(Table, usize)>,
    ids: String,
    rows: Vec<OwnedRow>,
    owners: HashMap<Box<str>, Range<usize>>,
    /// Rows without an id, or of no owner.
    unnamed_count: u64,
}

/// The content of a row.
#[derive(Debug)]
pub(in crate::import) enum RowData {
    /// A JSON object.
    Object(String),
    /// Bytes that should be such an object, and are none.
    Other(Vec<u8>),
    /// The row has moved, or is gone.
    Gone,
}

impl OwnerRows {
    /// Finds the rows of a table; `None` if it lacks a column that they are found by.
    pub(super) fn read(
        database: &Database<'_>,
        table: &Table,
        names: &ColumnNames,
    ) -> Result<Option<Self>, Unreadable> {
        let [id, owner, order, changed, kind, data] =
            table.places(["id", names.owner, names.order, names.changed, "type", "data"]);
        let (Some(_), Some(_), Some(data)) = (id, owner, data) else { return Ok(None) };
        let kind = kind.filter(|_| !names.kinds.is_empty());
        let wanted = [id, owner, order, changed, kind].into_iter().flatten().max().map_or(0, |last| last + 1);
        let counts = |row: &[SqlValue]| {
            let kind = text(row, kind).unwrap_or_default();
            names.kinds.is_empty() || names.kinds.iter().any(|beginning| kind.starts_with(beginning))
        };
        let mut group = Self::default();
        let mut numbers: HashMap<Box<str>, u32> = HashMap::new();
        database.rows_to(table, wanted, &mut |place, row| {
            if !counts(&row) {
                return Ok(());
            }
            if let (Some(own), Some(of)) = (text(&row, id), text(&row, owner))
                && let Some(id) = group.keep_id(if names.has_ids { own } else { "" })
            {
                let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
                let owner = if let Some(number) = numbers.get(of) {
                    *number
                } else {
                    numbers.insert(of.into(), next);
                    next
                };
                let order = integer(&row, order).unwrap_or_default();
                let changed = integer(&row, changed).unwrap_or_default();
                group.rows.push(OwnedRow { order, changed, place, owner, id });
            } else {
                group.unnamed_count += 1;
            }
            Ok(())
        })?;
        group.sort(numbers);
        group.table = Some((table.clone(), data));
        Ok(Some(group))
    }

    /// Keeps an id; `None` if there is no room, which is 4 GiB of ids.
    fn keep_id(&mut self, id: &str) -> Option<(u32, u32)> {
        let kept = (u32::try_from(self.ids.len()).ok()?, u32::try_from(id.len()).ok()?);
        self.ids.push_str(id);
        Some(kept)
    }

    fn sort(&mut self, numbers: HashMap<Box<str>, u32>) {
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_unstable_by(|left, right| self.compare(left, right));
        rows.shrink_to_fit();
        self.ids.shrink_to_fit();
        let mut runs = vec![0..0; numbers.len()];
        for (at, row) in rows.iter().enumerate() {
            let Some(run) = runs.get_mut(row.owner as usize) else { continue };
            *run = if run.end == 0 { at..at + 1 } else { run.start..at + 1 };
        }
        let run_of = |number: u32| runs.get(number as usize).cloned().unwrap_or_default();
        self.owners = numbers.into_iter().map(|(owner, number)| (owner, run_of(number))).collect();
        self.rows = rows;
    }

    fn compare(&self, left: &OwnedRow, right: &OwnedRow) -> Ordering {
        (left.owner, left.order)
            .cmp(&(right.owner, right.order))
            .then_with(|| self.id(left).cmp(self.id(right)))
            .then_with(|| left.changed.cmp(&right.changed))
            .then_with(|| left.place.id.cmp(&right.place.id))
    }

    /// The table, and the index of its column `data`.
    pub(super) fn table(&self) -> Option<(&Table, usize)> {
        self.table.as_ref().map(|(table, data)| (table, *data))
    }

    /// The rows of an owner, in their order.
    pub(super) fn of(&self, owner: &str) -> &[OwnedRow] {
        self.owners.get(owner).and_then(|run| self.rows.get(run.clone())).unwrap_or_default()
    }

    /// The ids of all rows.
    pub(super) fn ids(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| self.id(row))
    }

    /// The id of a row; empty if the table's ids are not kept.
    pub(super) fn id(&self, row: &OwnedRow) -> &str {
        let (start, bytes) = (row.id.0 as usize, row.id.1 as usize);
        self.ids.get(start..start.saturating_add(bytes)).unwrap_or_default()
    }

    /// Hashes the rows of an owner: the hash differs if any row does.
    pub(super) fn hash_of(&self, owner: &str, hasher: &mut impl Hasher) {
        for row in self.of(owner) {
            (row.order, self.id(row), row.changed, row.place.bytes).hash(hasher);
        }
    }

    /// Reads the content of a row.
    pub(super) fn data(&self, database: &Database<'_>, row: &OwnedRow) -> Result<RowData, Unreadable> {
        let Some((table, data)) = self.table() else { return Ok(RowData::Gone) };
        let Some(mut found) = database.row_at(table, row.place)? else { return Ok(RowData::Gone) };
        let is_object = self.data_of(&found).is_some();
        Ok(match found.get_mut(data) {
            Some(SqlValue::Text(text)) if is_object => RowData::Object(std::mem::take(text)),
            other => RowData::Other(other.map(bytes_of).unwrap_or_default()),
        })
    }

    /// The content of a row that was read, of any kind.
    pub(super) fn bytes_of(&self, row: &mut [SqlValue]) -> Vec<u8> {
        self.table().and_then(|(_, data)| row.get_mut(data)).map(bytes_of).unwrap_or_default()
    }

    /// Rows without an id or an owner, and rows of owners that are not there.
    pub(super) fn stray_counts(&self, is_there: impl Fn(&str) -> bool) -> [u64; 2] {
        let stray = self.owners.iter().filter(|(owner, _)| !is_there(owner));
        [self.unnamed_count, stray.map(|(_, rows)| rows.len() as u64).sum()]
    }

    /// The content of a row that was read, if it is a JSON object.
    pub(super) fn data_of<'r>(&self, row: &'r [SqlValue]) -> Option<&'r str> {
        let (_, data) = self.table()?;
        let data = text(row, Some(data))?.trim();
        json::pick(data, ["id"]).map(|_| data)
    }
}

fn bytes_of(value: &mut SqlValue) -> Vec<u8> {
    match value {
        SqlValue::Text(text) => std::mem::take(text).into_bytes(),
        SqlValue::Blob(bytes) => std::mem::take(bytes),
        _ => Vec::new(),
    }
}
