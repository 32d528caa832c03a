//! Wire forms: a host's own record as literals and references.
//!
//! ```text
//! template = piece*        piece = tag u8, then
//!   0 literal   length u32, bytes
//!   1 raw       row u32, rows u32          the bytes of a body of the same event
//!   2 escaped   row u32, rows u32          the same, escaped as the inside of a JSON string
//!   3 record    origin 16 B                the newest wire form of that origin in the same stream
//! ```
//!
//! A long text thus stands once in the log, as a body, and the record can still be printed byte for byte. Numbers are
//! little-endian. The template itself is a body, so it goes when the texts go.

use crate::ids::Origin;

/// One piece of a decoded template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TemplatePiece<'a> {
    /// Bytes as they are.
    Literal(&'a [u8]),
    /// The bytes of body rows `first .. first + rows` of the same event.
    Body {
        /// First row.
        first: u32,
        /// Rows.
        rows: u32,
        /// Escape them as the inside of a JSON string.
        escaped: bool,
    },
    /// The newest wire form of this origin.
    Record(Origin),
}

/// Bytes that are not a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("wire template is malformed at byte {offset}")]
pub struct WireError {
    /// Byte offset of the malformed piece.
    pub offset: usize,
}

/// Appends one piece to a template.
pub fn push(template: &mut Vec<u8>, piece: &TemplatePiece<'_>) {
    match piece {
        TemplatePiece::Literal(bytes) => {
            // Longer literals than a length can say become several pieces.
            for chunk in bytes.chunks(u32::MAX as usize) {
                template.push(0);
                template.extend_from_slice(&u32::try_from(chunk.len()).unwrap_or(u32::MAX).to_le_bytes());
                template.extend_from_slice(chunk);
            }
        }
        TemplatePiece::Body { first, rows, escaped } => {
            template.push(if *escaped { 2 } else { 1 });
            template.extend_from_slice(&first.to_le_bytes());
            template.extend_from_slice(&rows.to_le_bytes());
        }
        TemplatePiece::Record(origin) => {
            template.push(3);
            template.extend_from_slice(origin.as_bytes());
        }
    }
}

/// Reads a template piece by piece.
///
/// # Errors
/// [`WireError`] at the first piece that is cut short or of no known kind.
pub fn pieces(template: &[u8]) -> Result<Vec<TemplatePiece<'_>>, WireError> {
    let mut out = Vec::new();
    let mut rest = template;
    while let Some((tag, after)) = rest.split_first() {
        let error = WireError { offset: template.len() - rest.len() };
        let (piece, next) = match tag {
            0 => {
                let (length, after) = u32_of(after).ok_or(error)?;
                let (literal, next) = after.split_at_checked(length as usize).ok_or(error)?;
                (TemplatePiece::Literal(literal), next)
            }
            1 | 2 => {
                let (first, after) = u32_of(after).ok_or(error)?;
                let (rows, next) = u32_of(after).ok_or(error)?;
                (TemplatePiece::Body { first, rows, escaped: *tag == 2 }, next)
            }
            3 => {
                let (origin, next) = after.split_first_chunk::<16>().ok_or(error)?;
                (TemplatePiece::Record(Origin(*origin)), next)
            }
            _ => return Err(error),
        };
        out.push(piece);
        rest = next;
    }
    Ok(out)
}

fn u32_of(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    Some((u32::from_le_bytes(*head), rest))
}

/// Appends `text` escaped as the inside of a JSON string: `"`, `\`, the short escapes of C0, else `\u00xx`.
///
/// Everything else, `/` and non-ASCII included, stays as it is.
pub fn escape_into(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.reserve(text.len());
    for &byte in text {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                for nibble in [byte >> 4, byte & 15] {
                    out.push(HEX.get(usize::from(nibble)).copied().unwrap_or(b'0'));
                }
            }
            _ => out.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_kind_of_piece_comes_back() {
        let all = [
            TemplatePiece::Literal(b"{\"text\":\""),
            TemplatePiece::Body { first: 2, rows: 1, escaped: true },
            TemplatePiece::Body { first: 0, rows: 3, escaped: false },
            TemplatePiece::Record(Origin([7; 16])),
        ];
        let mut template = Vec::new();
        for piece in &all {
            push(&mut template, piece);
        }
        assert_eq!(pieces(&template).unwrap(), all);
        assert_eq!(pieces(&[9]), Err(WireError { offset: 0 }));
        assert_eq!(pieces(&template[..template.len() - 1]), Err(WireError { offset: template.len() - 17 }));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_template_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(all) = pieces(&bytes) {
                let mut again = Vec::new();
                for piece in &all {
                    push(&mut again, piece);
                }
                // An empty literal leaves no piece behind when written again; all else is canonical.
                prop_assert!(again.len() <= bytes.len());
            }
        }

        #[test]
        fn escaped_text_is_what_serde_json_reads_back(text in ".*") {
            let mut escaped = b"\"".to_vec();
            escape_into(text.as_bytes(), &mut escaped);
            escaped.push(b'"');
            prop_assert_eq!(serde_json::from_slice::<String>(&escaped).unwrap(), text);
        }
    }
}
