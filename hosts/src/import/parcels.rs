//! Reads the output of `export jsonl`: the events of another store.
//!
//! ```text
//! lines -> values (limits as for every input) -> schema -> Heading, Parcel, Gap, End
//!                                                  '-> rows of items: read over, they follow from the events
//! ```
//!
//! A line that is none of these, or cannot be read, becomes a gap that names the line; the rest is read. A file that a
//! newer program wrote is refused by name, for this program does not know the meaning of its lines.

use std::io::BufRead;

use acpdb_engine::travel::{END, GAP, Gap, HEADING, PARCEL, Piece, Row};

use super::json;
use super::limits::{Exceeded, Limits, RATIO_FREE_BYTES};
use super::values::{Shape, ValueReader};
use super::{ImportError, Input};

/// The kind of a file that acpdb wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OwnExport {
    /// Events, with or without rows of items.
    Events,
    /// Rows of items alone: for reading; events cannot be made of them.
    Rows,
    /// A file of this schema, which a newer program writes.
    Newer(String),
}

/// The kind of a file that begins with `head` (already decompressed), if acpdb exported it.
pub fn own_export(head: &[u8]) -> Option<OwnExport> {
    let line = head.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    // The first line of a head may be cut; its first fields are not.
    let text = std::str::from_utf8(line).unwrap_or_else(|error| {
        std::str::from_utf8(line.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default()
    });
    if text.starts_with(r#"{"schema":"acpdb."#) {
        let schema = text.strip_prefix(r#"{"schema":""#)?.split('"').next()?;
        return match schema {
            HEADING | PARCEL | GAP | END => Some(OwnExport::Events),
            newer if is_own(newer) => Some(OwnExport::Newer(newer.to_owned())),
            _ => None,
        };
    }
    let fields = ["item", "tokens_shown", "in_context", "superseded_by"];
    let names = fields.iter().all(|name| text.contains(&format!("\"{name}\":")));
    (text.starts_with(r#"{"item":"#) && names).then_some(OwnExport::Rows)
}

/// Whether a schema is that of a line of such a file, in any version.
fn is_own(schema: &str) -> bool {
    let name = |text: &str| text.rsplit_once('/').map(|(name, _)| name.to_owned());
    [HEADING, PARCEL, GAP, END].iter().any(|own| name(own) == name(schema))
}

/// Reads the lines of an export, in order.
pub struct ParcelReader<'a> {
    reader: ValueReader<Input<'a>>,
    limits: Limits,
    /// Bytes of erased or damaged bodies, as rows claim them.
    lost_bytes: u64,
    parcel_count: u64,
    ended: bool,
    told: bool,
}

impl std::fmt::Debug for ParcelReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ParcelReader").field("parcel_count", &self.parcel_count).finish_non_exhaustive()
    }
}

impl<'a> ParcelReader<'a> {
    /// Reads `input`, decompressed.
    pub fn new(input: impl BufRead + 'a, limits: &Limits) -> Self {
        let input: Input<'a> = Box::new(input);
        Self {
            reader: ValueReader::records(input, limits),
            limits: *limits,
            lost_bytes: 0,
            parcel_count: 0,
            ended: false,
            told: false,
        }
    }

    /// The next piece; `None` at the end.
    ///
    /// # Errors
    /// The input cannot be read, is more than a limit allows, or was written by a newer program.
    pub fn next_piece(&mut self) -> Result<Option<Piece>, ImportError> {
        loop {
            let Some(value) = self.reader.read()? else {
                if self.ended || self.told {
                    return Ok(None);
                }
                self.told = true;
                let detail = "the file ends before all was told: it was cut".to_owned();
                return Ok(Some(Piece::Gap(Gap { detail })));
            };
            let (line, offset) = (value.line, value.offset);
            let gap = |why: &str| Ok(Some(Piece::Gap(Gap { detail: format!("line {line}: {why}") })));
            let text = match value.shape {
                Shape::Whole => std::str::from_utf8(value.bytes),
                Shape::Cut => return gap("it is cut"),
                Shape::Broken(why) => return gap(why),
                Shape::TooMuch(exceeded) => return gap(&exceeded.to_string()),
            };
            let Ok(text) = text else { return gap("it is no UTF-8") };
            let schema = json::pick(text, ["schema"]).and_then(|[schema]| json::string(schema));
            let piece = match schema.as_deref() {
                // A row of an item.
                None if text.starts_with('{') => continue,
                Some(HEADING) => serde_json::from_str(text).map(Piece::Heading),
                Some(PARCEL) => serde_json::from_str(text).map(|parcel| Piece::Parcel(Box::new(parcel))),
                Some(GAP) => serde_json::from_str(text).map(Piece::Gap),
                Some(END) => serde_json::from_str(text).map(Piece::End),
                Some(newer) if is_own(newer) => {
                    return Err(ImportError::Newer { schema: newer.to_owned(), line });
                }
                _ => return gap("it is no line of an export"),
            };
            let piece = match piece {
                Ok(piece) => piece,
                Err(error) => return gap(&error.to_string()),
            };
            let read = offset.saturating_add(text.len() as u64);
            self.count(&piece, read)?;
            return Ok(Some(piece));
        }
    }

    /// Counts a parcel and its lost bytes: a few bytes may claim megabytes that were lost.
    fn count(&mut self, piece: &Piece, read: u64) -> Result<(), ImportError> {
        self.ended = matches!(piece, Piece::End(_));
        let Piece::Parcel(parcel) = piece else { return Ok(()) };
        self.parcel_count += 1;
        let (max, found) = (self.limits.facts, self.parcel_count);
        if found > max {
            return Err(Exceeded { limit: "facts", max, found }.into());
        }
        for row in &parcel.bodies {
            if let Row::Erased(bytes) | Row::Damaged(bytes) = row {
                self.lost_bytes = self.lost_bytes.saturating_add(u64::from(*bytes));
            }
        }
        let found = self.lost_bytes / read.max(1);
        if self.lost_bytes > RATIO_FREE_BYTES && found > self.limits.ratio {
            return Err(Exceeded { limit: "ratio", max: self.limits.ratio, found }.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_exports_are_told_from_everything_else() {
        let row = r##"{"item":"#4","seq":4,"superseded_by":null,"in_context":true,"tokens_shown":3}"##;
        for (head, expected) in [
            (r#"{"schema":"acpdb.jsonl/2","store":"ab"}"#, Some(OwnExport::Events)),
            ("\n{\"schema\":\"acpdb.parcel/1\",\"stream\"", Some(OwnExport::Events)),
            (r#"{"schema":"acpdb.jsonl/3"}"#, Some(OwnExport::Newer("acpdb.jsonl/3".to_owned()))),
            (r#"{"schema":"acpdb.parcel/2"}"#, Some(OwnExport::Newer("acpdb.parcel/2".to_owned()))),
            (row, Some(OwnExport::Rows)),
            (r#"{"schema":"acpdb.history/1"}"#, None),
            (r#"{"role":"user","content":"{\"schema\":\"acpdb.jsonl/2\"}"}"#, None),
            ("", None),
        ] {
            assert_eq!(own_export(head.as_bytes()), expected, "{head}");
        }
    }

    fn pieces(text: &str, limits: &Limits) -> Vec<String> {
        let mut reader = ParcelReader::new(text.as_bytes(), limits);
        let mut found = Vec::new();
        loop {
            match reader.next_piece() {
                Ok(None) => return found,
                Ok(Some(Piece::Gap(gap))) => found.push(gap.detail),
                Ok(Some(piece)) => found.push(format!("{piece:?}").chars().take(8).collect()),
                Err(error) => {
                    found.push(format!("error: {error}"));
                    return found;
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_and_the_rest_is_read() {
        let file = concat!(
            r#"{"schema":"acpdb.jsonl/2","store":"00000000000000000000000000000001","head":3}"#,
            "\n",
            r##"{"item":"#4","seq":4}"##,
            "\n{\"schema\":\"acpdb.parcel/1\",\"stream\":\"x\"}\n[1,2]\n",
            r#"{"schema":"acpdb.gap/1","detail":"segment 3"}"#,
            "\n",
        );
        let found = pieces(file, &Limits::default());
        assert_eq!(found.len(), 5, "{found:#?}");
        assert_eq!(found[0], "Heading(");
        assert!(found[1].starts_with("line 3: "), "{found:#?}");
        assert_eq!(found[2], "line 4: it is no line of an export");
        assert_eq!(found[3], "segment 3");
        assert!(found[4].contains("it was cut"), "{found:#?}");
        let newer = pieces("{\"schema\":\"acpdb.parcel/7\"}", &Limits::default());
        assert!(newer[0].contains("acpdb.parcel/7") && newer[0].contains("newer"), "{newer:?}");
    }

    /// Twenty bytes may claim that 16 MiB were erased: a file of them would fill a disk with zeros.
    #[test]
    fn what_was_lost_counts_as_unpacked() {
        let zeros = "00000000000000000000000000000000";
        let line = format!(
            r#"{{"schema":"acpdb.parcel/1","stream":"{zeros}","id":"{zeros}","seq":1,"recorded_at":0,"actor":"user","event":{{"pinned":{{"items":[]}}}},"bodies":[{{"erased":16000000}}]}}"#
        );
        let file = format!("{line}\n{line}\n");
        let found = pieces(&file, &Limits::default());
        assert!(found[0].starts_with("error: it unpacks to"), "{found:?}");
    }
}
