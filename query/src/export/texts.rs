//! Texts of a page, each written once, as it is first met.
//!
//! ```text
//! text --SHA-256--> known? its number : written to the page, the next number
//! ```
//!
//! Only digests are kept, so a page of a long session needs no more memory than its index does.

use std::collections::HashMap;
use std::io::Write;

use acpdb_engine::ids::BodyId;
use acpdb_engine::{Error, View};
use sha2::{Digest as _, Sha256};

use super::page_data::Redaction;
use super::{ExportError, JsonText};

/// Longest text that a page holds whole, in bytes; a browser gets slow with more.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 20;

/// Number of a text in a page.
pub(super) type TextNumber = u32;

/// Writes the array of texts.
pub(super) struct Texts<'w> {
    out: &'w mut dyn Write,
    known: HashMap<[u8; 32], TextNumber>,
    bodies: HashMap<BodyId, TextNumber>,
    /// Numbers of texts that only say why a body is not there.
    problems: Vec<TextNumber>,
    /// Bytes of the texts, each once.
    bytes: u64,
    redaction: Redaction,
}

impl<'w> Texts<'w> {
    pub(super) fn new(out: &'w mut dyn Write, redaction: Redaction) -> Result<Self, ExportError> {
        out.write_all(b"[")?;
        let (known, bodies) = (HashMap::new(), HashMap::new());
        Ok(Self { out, known, bodies, problems: Vec::new(), bytes: 0, redaction })
    }

    /// The number of a text.
    pub(super) fn number(&mut self, text: &str) -> Result<TextNumber, ExportError> {
        let text = &*self.redaction.of(text);
        let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
        if let Some(number) = self.known.get(&digest) {
            return Ok(*number);
        }
        let number = TextNumber::try_from(self.known.len())
            .map_err(|_| ExportError::Form { detail: "a page holds fewer texts".to_owned() })?;
        self.out.write_all(if number == 0 { b"\n" } else { b",\n" })?;
        JsonText::write(&text, self.out)?;
        self.known.insert(digest, number);
        self.bytes = self.bytes.saturating_add(text.len() as u64);
        Ok(number)
    }

    /// The number of a body's text; of what is erased or damaged, that of a text which says so.
    pub(super) fn body(&mut self, view: &View, body: BodyId) -> Result<TextNumber, ExportError> {
        if let Some(number) = self.bodies.get(&body) {
            return Ok(*number);
        }
        let number = match view.text(body) {
            Ok(text) => {
                // What is cut off could end within a secret.
                let text = self.redaction.of(&text).into_owned();
                self.number(&clipped(text, body))?
            }
            Err(error @ (Error::Corrupt { .. } | Error::Erased { .. })) => self.problem(&error)?,
            Err(error) => return Err(error.into()),
        };
        self.bodies.insert(body, number);
        Ok(number)
    }

    /// The number of a text that says why there is none.
    pub(super) fn problem(&mut self, error: &Error) -> Result<TextNumber, ExportError> {
        let number = self.number(&format!("[{error}]"))?;
        if !self.problems.contains(&number) {
            self.problems.push(number);
        }
        Ok(number)
    }

    /// Ends the array; gives the problems, and the bytes of all texts.
    pub(super) fn end(self) -> Result<(Vec<TextNumber>, u64), ExportError> {
        self.out.write_all(b"\n]")?;
        Ok((self.problems, self.bytes))
    }
}

/// A text that a browser can hold, with a word about what was cut off.
fn clipped(mut text: String, body: BodyId) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let whole = text.len();
    let mut end = TEXT_BYTES_MAX;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.truncate(end);
    text.push_str(&format!("\n[{} more bytes; acpdb show '{}' prints them]", whole - end, body.seq));
    text
}
