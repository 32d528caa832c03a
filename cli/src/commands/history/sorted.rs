//! `acpdb history --sort`: the largest items first, over all sessions of the question.

use acpdb_engine::{Store, store::StreamName};
use acpdb_query::{Filter, ItemRow, Scanned, Which};

use super::super::lines::{about, clip, joined, one_line, standing_painted};
use super::super::{ask, find};
use super::{SCHEMA, chosen, columns};
use crate::args::HistorySort;
use crate::commands::{Code, Failure, Global, Output, describe};

/// Columns of a session's id, which any command takes as a prefix of the whole id.
const SESSION_WIDTH: usize = 14;

/// A question with an order of its own.
pub(super) struct Sorted<'a> {
    pub(super) filter: &'a Filter,
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
    fn order(&self, rows: &mut Vec<(ItemRow, String)>) {
        rows.sort_by_key(|(row, _)| (std::cmp::Reverse(self.size(row)), row.seq));
        rows.truncate(self.limit);
    }

    pub(super) fn print(
        &self,
        store: &Store,
        global: &Global,
        streams: &[StreamName],
        output: &mut Output,
    ) -> Result<Code, Failure> {
        let mut scanned = Scanned::default();
        let mut found: Vec<(ItemRow, String)> = Vec::new();
        let mut count = 0;
        let many = streams.len() > 1;
        for stream in streams {
            let at = global.at.as_deref();
            let Some(view) = find::view_among(store, global, stream, at, !many)? else { continue };
            let wanted = chosen(&view, &stream.name, self.which);
            let mut rows = acpdb_query::item_rows(store, &view, stream, self.filter)?;
            // A fork repeats the items that it shares with its parent.
            let first = view.state().first();
            let mut own = Vec::new();
            for row in rows.by_ref() {
                let row = row?;
                let is_wanted = wanted.as_ref().is_none_or(|wanted| wanted.contains(&row.item));
                if is_wanted && (!many || row.seq >= first) {
                    own.push((row, String::new()));
                }
            }
            count += own.len();
            // Only the texts of shown items are read.
            self.order(&mut own);
            for (row, text) in &mut own {
                *text = about(&view, row)?;
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
            let rows: Vec<ItemRow> = found.into_iter().map(|(row, _)| row).collect();
            return output.json_items(SCHEMA, &rows);
        }
        if found.is_empty() {
            output.note("0 items matched");
            return Ok(Code::Ok);
        }
        let (rows, texts): (Vec<ItemRow>, Vec<String>) = found.into_iter().unzip();
        let room = if many { SESSION_WIDTH + 2 } else { 0 };
        let columns = columns(&rows, room, output);
        for (row, text) in rows.iter().zip(&texts) {
            let line = columns.line(row, text, output);
            let stands = standing_painted(row, output);
            let session = one_line(&row.session);
            let session = if output.tabs { session } else { clip(&session, SESSION_WIDTH) };
            let cells = [&*line, &stands, &session];
            output.line(joined(if many { &cells } else { &cells[..2] }, output))?;
        }
        Ok(Code::Ok)
    }
}
