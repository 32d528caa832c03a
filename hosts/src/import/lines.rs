//! Shared by the importers of line-wise formats: the loop over records, and wires.
//!
//! ```text
//! value -> admit -> importer.record -> entries -> wire on the first that is no turn -> sink
//!             |            '-> Unknown, Unfit: kept as it is, counted
//!             '-> raw: kept as it is
//! ```
//!
//! The wire does not go to `TurnStarted`: a turn may be known already from another feed and be skipped, and the record
//! with it; besides, a wire refers to bodies, and they are in the other facts.

use std::sync::Arc;

use acpdb_engine::entry::{Entry, Fact, StreamInfo, WirePiece};
use acpdb_engine::event::Scope;

use super::marks::marks;
use super::report::Admitted;
use super::turns::Occurrences;
use super::values::ValueReader;
use super::{ImportContext, ImportError, ImportReport, Input, kept_record, wire};

/// The result of reading a record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum RecordOutcome {
    /// Understood.
    Known,
    /// Of a kind the importer does not know.
    Unknown(String),
    /// Not in the form of the format's records.
    Unfit(&'static str),
    /// The same record was there before.
    Again,
}

impl RecordOutcome {
    /// Reports the result of a record at this line and offset, and gives the record's bytes to its facts; a record without
    /// facts is kept as it is.
    pub(super) fn told(
        self,
        raw: &[u8],
        (line, offset): (u64, u64),
        entries: &mut Vec<Entry>,
        kept: &mut Occurrences,
        report: &mut ImportReport,
    ) {
        match self {
            Self::Known => {}
            Self::Unknown(kind) => report.unknown(&kind),
            Self::Again => {
                report.duplicates += 1;
                entries.clear();
            }
            Self::Unfit(reason) => {
                report.keep_raw(line, offset, format!("{reason}; kept as it is"));
                entries.clear();
            }
        }
        if entries.is_empty() {
            entries.push(keep(kept, raw));
        } else {
            attach(raw, entries);
        }
    }
}

/// Makes facts of the records of one session, in order.
pub(super) trait LineImporter {
    /// Adds the facts of one record, without wire.
    fn record(&mut self, line: &str, out: &mut Vec<Entry>) -> RecordOutcome;

    /// The session, if the records so far name it.
    fn stream(&self) -> Option<&StreamInfo>;

    /// Calls, and the sessions that they started, of which the record tells.
    fn started(&mut self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Reads all records of one session.
pub(super) fn read_lines(
    input: Input<'_>,
    context: &mut ImportContext<'_>,
    importer: &mut dyn LineImporter,
    unnamed: &StreamInfo,
) -> Result<(), ImportError> {
    let reader = ValueReader::records(input, &context.options.limits);
    let mut reader = reader.finding(marks(context.report.format));
    let mut stream: Option<Arc<StreamInfo>> = None;
    let mut kept = Occurrences::default();
    while let Some(value) = reader.read()? {
        let (line, at, raw) = (value.line, value.offset, value.raw);
        context.line = line;
        let mut entries = Vec::new();
        match context.admit(&value) {
            Admitted::Text(text) => {
                let found = importer.record(text, &mut entries);
                found.told(raw, (line, at), &mut entries, &mut kept, &mut context.report);
            }
            Admitted::Raw(bytes) => entries.push(keep(&mut kept, bytes)),
            Admitted::Nothing => continue,
        }
        context.report.records += 1;
        let stream = stream.get_or_insert_with(|| {
            let info = importer.stream().cloned().unwrap_or_else(|| unnamed.clone());
            opened(info, context)
        });
        context.emit(stream, entries, reader.offset())?;
        let stream = Arc::clone(stream);
        for (call, session) in importer.started() {
            context.starts(&stream, &call, &session)?;
        }
    }
    Ok(())
}

/// The stream as it is handed out, counted in the report.
pub(super) fn opened(mut info: StreamInfo, context: &mut ImportContext<'_>) -> Arc<StreamInfo> {
    if info.scope == Scope::Session && info.project.is_none() {
        info.project = context.options.project.clone().or_else(|| info.cwd.clone());
    }
    match info.parent {
        Some(_) => context.report.subagents += 1,
        None => context.report.sessions += 1,
    }
    Arc::new(info)
}

/// A record that is kept as it is, numbered among those of the same bytes.
pub(super) fn keep(kept: &mut Occurrences, raw: &[u8]) -> Entry {
    let n = kept.next(blake3::hash(raw).to_hex().as_str());
    kept_record("raw", raw, u64::from(n))
}

/// Gives the record's bytes to one of its facts: to the replacement of a context, whose messages may be known already,
/// else to the first that is no turn.
pub(super) fn attach(record: &[u8], entries: &mut [Entry]) {
    let bodies = wire::bodies(entries);
    let replaced = |entry: &Entry| matches!(entry.fact, Fact::ContextReplaced(_));
    let turn = |entry: &Entry| matches!(entry.fact, Fact::TurnStarted(_));
    let place = entries.iter().position(replaced).or_else(|| entries.iter().position(|entry| !turn(entry)));
    let place = place.unwrap_or(0);
    if let Some(entry) = entries.get_mut(place) {
        entry.wire = wire::build(record, &bodies);
    }
}

/// Pieces of a document: its text, with a reference in place of each record.
///
/// `records` are slices of `text` in order, with the origin of the fact that carries them. A record that does not lie in
/// `text`, or overlaps an earlier one, stays literal.
pub(super) fn document(text: &str, records: &[(&str, String)]) -> Vec<WirePiece> {
    let mut pieces = Vec::new();
    let mut done = 0;
    for (record, origin) in records {
        let Some(start) = span(text, record).filter(|start| *start >= done) else { continue };
        literal(text, done, start, &mut pieces);
        pieces.push(WirePiece::Record(origin.clone()));
        done = start + record.len();
    }
    literal(text, done, text.len(), &mut pieces);
    pieces
}

fn literal(text: &str, from: usize, to: usize, pieces: &mut Vec<WirePiece>) {
    if let Some(bytes) = text.as_bytes().get(from..to).filter(|bytes| !bytes.is_empty()) {
        pieces.push(WirePiece::Literal(bytes.to_vec()));
    }
}

/// The offset of `part`, a slice of `whole`, in it.
pub(super) fn span(whole: &str, part: &str) -> Option<usize> {
    super::json::range_in(whole, part).map(|range| range.start)
}
