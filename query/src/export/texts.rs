//! Texts of a page, each written once, as it is first met.
//!
//! ```text
//! text --SHA-256--> known? its number : written to the page, the next number
//! ```
//!
//! Only digests are kept, so a page of a long session needs no more memory than its index does.

use std::collections::HashMap;
use std::io::Write;

use acpdb_engine::fold::PartView;
use acpdb_engine::ids::BodyId;
use acpdb_engine::text::first_bytes;
use acpdb_engine::{Error, View};
use sha2::{Digest as _, Sha256};

use super::redaction::Redaction;
use super::{ExportError, JsonText};
use crate::sound::or_lost;

/// Longest text that a page holds whole, in bytes; a browser gets slow with more.
pub(super) const TEXT_BYTES_MAX: usize = 1 << 20;

/// Number of a text in a page.
pub(super) type TextNumber = u32;

/// Writes the array of texts.
pub(super) struct TextWriter<'w> {
    out: &'w mut dyn Write,
    known: HashMap<[u8; 32], TextNumber>,
    bodies: HashMap<BodyId, TextNumber>,
    /// Numbers of texts that only say why a body is not there.
    problems: Vec<TextNumber>,
    /// Bytes of the texts, each once.
    bytes: u64,
    redaction: Redaction,
}

impl<'w> TextWriter<'w> {
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

    /// The number of a body's text; if the body is erased or damaged, that of a text which says so.
    pub(super) fn body(&mut self, view: &View, body: BodyId) -> Result<TextNumber, ExportError> {
        if let Some(number) = self.bodies.get(&body) {
            return Ok(*number);
        }
        let number = match or_lost(view.text(body))? {
            Ok(text) => {
                // The cut could go through a secret, so secrets are taken out first.
                let text = self.redaction.of(&text).into_owned();
                self.number(&clipped(text, body))?
            }
            Err(lost) => self.problem(&lost)?,
        };
        self.bodies.insert(body, number);
        Ok(number)
    }

    /// The number of a text that describes a medium; behind the description, on a line of its own, the picture as an address that
    /// holds it, if every browser shows its type. The content of a picture cannot be redacted, so a redacted page holds none.
    pub(super) fn media(&mut self, view: &View, part: &PartView) -> Result<TextNumber, ExportError> {
        let media_type = part.media_type.as_deref().unwrap_or("of unknown type");
        let says = format!("[media {media_type}, {} B]", part.bytes);
        let is_held = self.redaction.0.is_none() && part.bytes <= TEXT_BYTES_MAX as u64;
        let held = match or_lost(view.text(part.body)) {
            _ if !is_held => None,
            Ok(Ok(text)) => picture(media_type, &text),
            Ok(Err(lost)) => return self.problem(&lost),
            Err(error) => return Err(error.into()),
        };
        match held {
            Some(address) => self.number(&format!("{says}\n{address}")),
            None => self.number(&says),
        }
    }

    /// The number of a text that says why a body's text is missing.
    pub(super) fn problem(&mut self, error: &Error) -> Result<TextNumber, ExportError> {
        let number = self.number(&format!("[{error}]"))?;
        if !self.problems.contains(&number) {
            self.problems.push(number);
        }
        Ok(number)
    }

    /// Ends the array; returns the problems, and the bytes of all texts.
    pub(super) fn end(self) -> Result<(Vec<TextNumber>, u64), ExportError> {
        self.out.write_all(b"\n]")?;
        Ok((self.problems, self.bytes))
    }
}

/// Types of pictures that every browser shows, and that run nothing.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A picture as an address that holds it; hosts store it so, or in base64.
fn picture(media_type: &str, text: &str) -> Option<String> {
    let (media_type, data) = match text.strip_prefix("data:") {
        Some(rest) => rest.split_once(";base64,")?,
        None => (media_type, text.trim()),
    };
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let is_shown = PICTURES.contains(&media_type) && !data.is_empty() && data.bytes().all(is_base64);
    is_shown.then(|| format!("data:{media_type};base64,{data}"))
}

/// A text that a browser can hold, with a note on the part that was cut off.
fn clipped(mut text: String, body: BodyId) -> String {
    if text.len() <= TEXT_BYTES_MAX {
        return text;
    }
    let whole = text.len();
    let end = first_bytes(&text, TEXT_BYTES_MAX).len();
    text.truncate(end);
    text.push_str(&format!("\n[{} more bytes; acpdb show '{}' prints them]", whole - end, body.seq));
    text
}

#[cfg(test)]
mod tests {
    use super::picture;

    #[test]
    fn only_pictures_that_browsers_show_are_shown() {
        for (media_type, text, address) in [
            ("image/png", "iVBORw0KGgo=", Some("data:image/png;base64,iVBORw0KGgo=")),
            ("image/jpeg", "data:image/webp;base64,UklGR+/0", Some("data:image/webp;base64,UklGR+/0")),
            ("image/svg+xml", "PHN2Zz4=", None),
            ("image/png", "data:image/svg+xml;base64,PHN2Zz4=", None),
            ("image/png", "https://example.com/a.png", None),
            ("image/png", "data:image/png,raw", None),
            ("image/png", "", None),
            ("application/pdf", "JVBERi0=", None),
        ] {
            assert_eq!(picture(media_type, text).as_deref(), address, "{media_type} {text}");
        }
    }
}
