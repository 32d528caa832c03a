//! Recorded text inside HTML; it must stay text, whatever it holds.
//!
//! A page carries its data as JSON in a `<script type="application/json">`. There the only thing that matters to an HTML
//! parser is `<`: without one, no tag, no comment and no end of the script can begin. Only that is escaped: code is full of
//! `>` and `&`, which would make a page of it a twentieth larger. The block is data for a JSON parser, and is never script.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// A formatter for JSON that may stand in a script element that is not run.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonText;

impl Formatter for JsonText {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut pieces = fragment.split('<');
        writer.write_all(pieces.next().unwrap_or_default().as_bytes())?;
        pieces.try_for_each(|piece| {
            writer.write_all(b"\\u003c")?;
            writer.write_all(piece.as_bytes())
        })
    }
}

impl JsonText {
    /// Writes a value.
    ///
    /// # Errors
    /// If the writer fails.
    pub fn write(value: &impl Serialize, out: &mut dyn Write) -> Result<(), serde_json::Error> {
        value.serialize(&mut Serializer::with_formatter(out, Self))
    }
}

/// Text as it may stand in HTML, in elements and in quoted attributes. Control characters become blanks.
pub fn html_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(text: &str) -> String {
        let mut out = Vec::new();
        JsonText::write(&text, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn nothing_that_html_reads_is_left() {
        for (text, json) in [
            ("plain", r#""plain""#),
            ("</script><!--", r#""\u003c/script>\u003c!--""#),
            ("a & b -> <c>", r#""a & b -> \u003cc>""#),
            ("\u{2028}<\u{2029}<", "\"\u{2028}\\u003c\u{2029}\\u003c\""),
            ("\0\u{1b}[31m\r\n\"\\", r#""\u0000\u001b[31m\r\n\"\\""#),
        ] {
            assert_eq!(written(text), json);
        }
        assert_eq!(html_text("<b title=\"'\">&\u{1b}"), "&lt;b title=&quot;&#39;&quot;&gt;&amp; ");
    }

    proptest! {
        #[test]
        fn any_text_comes_back_and_holds_no_mark(text in "(?s)(.|[<>&\u{2028}\u{2029}\0-\u{1f}]){0,80}") {
            let json = written(&text);
            let marks = ['<', '\0', '\n', '\r'];
            prop_assert!(!json.contains(marks), "{}", json);
            prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
