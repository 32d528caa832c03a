//! `acpdb history --sort`: the largest items first, over all sessions of the question.

use acpdb_query::{ItemRow, Scanned, Which};

use super::super::lines::{about, clip, joined, one_line, standing_painted};
use super::super::{ask, find};
use super::{SCHEMA, SessionQuery, chosen, columns};
use crate::args::HistorySort;
use crate::commands::{Code, Failure, Global, Output, describe};
use crate::several::{self, ReadStores};

/// Columns of a session's id, which any command takes as a prefix of the whole id.
const SESSION_WIDTH: usize = 14;

/// A row, the store that it is from, and the beginning of its text.
struct SizedRow {
    store: usize,
    row: ItemRow,
    text: String,
}

/// A question with an order of its own.
pub(super) struct Sorted<'a> {
    pub(super) which: Which<'a>,
    pub(super) by: HistorySort,
    pub(super) limit: usize,
}

impl Sorted<'_> {
    /// The size of an item, in tokens.
    fn size(&self, row: &ItemRow) -> u64 {
        match self.by {
            HistorySort::Tokens => row.tokens,
            HistorySort::Shown if row.in_context => row.tokens_shown,
            HistorySort::Shown | HistorySort::Time => 0,
        }
    }

    /// The largest first; among equal ones the older first.
    fn order(&self, rows: &mut Vec<SizedRow>) {
        rows.sort_by_key(|found| (std::cmp::Reverse(self.size(&found.row)), found.store, found.row.seq));
        rows.truncate(self.limit);
    }

    pub(super) fn print(
        &self,
        stores: &ReadStores,
        global: &Global,
        streams: &[SessionQuery],
        output: &mut Output,
    ) -> Result<Code, Failure> {
        let mut scanned = Scanned::default();
        let mut found: Vec<SizedRow> = Vec::new();
        let mut count = 0;
        let many = streams.len() > 1;
        for SessionQuery { store: place, stream, filter } in streams {
            let store = &stores.store(*place)?;
            let at = global.at.as_deref();
            let Some(view) = find::view_among(store, global, stream, at, !many)? else { continue };
            let wanted = chosen(&view, &stream.name, self.which);
            let mut rows = acpdb_query::item_rows(store, &view, stream, filter)?;
            // A fork repeats the items that it shares with its parent.
            let first = view.state().first();
            let mut own = Vec::new();
            for row in rows.by_ref() {
                let row = row?;
                let is_wanted = wanted.as_ref().is_none_or(|wanted| wanted.contains(&row.item));
                if is_wanted && (!many || row.seq >= first) {
                    own.push(SizedRow { store: *place, row, text: String::new() });
                }
            }
            count += own.len();
            // Only the texts of shown items are read.
            self.order(&mut own);
            for found in &mut own {
                found.text = about(&view, &found.row)?;
            }
            found.append(&mut own);
            self.order(&mut found);
            scanned += rows.scanned();
        }
        ask::searched(scanned, output);
        if count > found.len() {
            let shown = describe::count(found.len() as u64, "item");
            output.note(format!("the first {shown} of {count}; --limit shows more"));
        }
        if output.json {
            let row = |found: &SizedRow| {
                Ok(several::with_store(describe::timed(&found.row, &[])?, stores.label(found.store)))
            };
            let rows: Vec<serde_json::Value> = found.iter().map(row).collect::<Result<_, Failure>>()?;
            return output.json_items(SCHEMA, &rows);
        }
        if found.is_empty() {
            output.note("0 items matched");
            return Ok(Code::Ok);
        }
        let places: Vec<usize> = found.iter().map(|found| found.store).collect();
        let (rows, texts): (Vec<ItemRow>, Vec<String>) =
            found.into_iter().map(|found| (found.row, found.text)).unzip();
        let room = if many { SESSION_WIDTH + 2 } else { 0 };
        let columns = columns(&rows, room, output);
        for ((row, text), place) in rows.iter().zip(&texts).zip(places) {
            let line = columns.line(row, text, output);
            let stands = standing_painted(row, output);
            let session = stores.qualified(place, &one_line(&row.session));
            let session = if output.tabs { session } else { clip(&session, SESSION_WIDTH) };
            let cells = [&*line, &stands, &session];
            output.line(joined(if many { &cells } else { &cells[..2] }, output))?;
        }
        Ok(Code::Ok)
    }
}
