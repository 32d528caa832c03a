//! JSON, written straight into one buffer.
//!
//! Members come in the order in which they are written; texts are escaped as `serde_json` does it. Bytes that are not UTF-8
//! are replaced before they come here. Halves of characters that stand alone in copied JSON are replaced here: hosts write
//! them, and no provider reads them.

use crate::import::json::quote;
use crate::surrogates::without_halves;

/// An output buffer with commas where they belong.
#[derive(Debug, Default)]
pub(super) struct JsonWriter {
    pub(super) out: Vec<u8>,
}

impl JsonWriter {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes) }
    }

    /// Opens an object or array, after a comma if one is due.
    pub(super) fn open(&mut self, bracket: u8) {
        self.comma();
        self.out.push(bracket);
    }

    pub(super) fn close(&mut self, bracket: u8) {
        self.out.push(bracket);
    }

    /// Ends the message that is open, if one is, and begins one of this role with its list of parts.
    pub(super) fn begin_message(&mut self, is_open: bool, role: &str, parts: &str) {
        if is_open {
            self.close(b']');
            self.close(b'}');
        }
        self.open(b'{');
        self.text("role", role);
        self.open_member(parts, b'[');
    }

    /// A member's name; its value follows.
    pub(super) fn name(&mut self, name: &str) {
        self.comma();
        quote(&mut self.out, name);
        self.out.push(b':');
    }

    /// JSON as it is, but for halves of characters.
    pub(super) fn raw(&mut self, json: &str) {
        self.comma();
        self.out.extend_from_slice(without_halves(json).as_bytes());
    }

    /// A member whose value is a string.
    pub(super) fn text(&mut self, name: &str, text: &str) {
        self.name(name);
        quote(&mut self.out, text);
    }

    /// An object whose members are texts.
    pub(super) fn texts(&mut self, members: &[(&str, &str)]) {
        self.open(b'{');
        for (name, text) in members {
            self.text(name, text);
        }
        self.close(b'}');
    }

    /// A member whose value is JSON as it is, but for halves of characters.
    pub(super) fn member(&mut self, name: &str, json: &str) {
        self.name(name);
        self.out.extend_from_slice(without_halves(json).as_bytes());
    }

    /// A member whose value is opened here.
    pub(super) fn open_member(&mut self, name: &str, bracket: u8) {
        self.name(name);
        self.out.push(bracket);
    }

    fn comma(&mut self) {
        if !matches!(self.out.last(), None | Some(b'{' | b'[' | b':' | b',')) {
            self.out.push(b',');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn commas_stand_between_and_nowhere_else() {
        let mut json = JsonWriter::default();
        json.open(b'{');
        json.text("a", "x\"\n");
        json.open_member("b", b'[');
        json.raw("\"y\"");
        json.raw("1");
        json.open(b'{');
        json.close(b'}');
        json.close(b']');
        json.member("c", "null");
        json.close(b'}');
        assert_eq!(String::from_utf8(json.out).unwrap(), r#"{"a":"x\"\n","b":["y",1,{}],"c":null}"#);
    }

    /// A host that cuts texts by UTF-16 units leaves halves of characters in the parameters of calls. They were copied into the
    /// body of a request, which then was no JSON to any provider, with all its other messages.
    #[test]
    fn halves_of_characters_do_not_reach_a_body() {
        for (from, to) in [
            (r#"{"a":"echo \ud83d"}"#, r#"{"a":"echo \ufffd"}"#),
            (r#"["\uDE00\uD83D","\ud83d\ud83d\ude00"]"#, r#"["\ufffd\ufffd","\ufffd\ud83d\ude00"]"#),
            (r#"["\\ud83d","\u0041\\","\ud83d\ude00 é"]"#, r#"["\\ud83d","\u0041\\","\ud83d\ude00 é"]"#),
            (r#""\ud8"#, r#""\ud8"#),
        ] {
            let mut json = JsonWriter::default();
            json.open(b'[');
            json.raw(from);
            assert_eq!(String::from_utf8(json.out).unwrap(), format!("[{to}"));
        }
    }

    proptest! {
        #[test]
        fn json_with_halves_of_characters_is_read(units in prop::collection::vec(
            prop_oneof![Just(r"\ud83d"), Just(r"\ude00"), Just(r"\\"), Just(r"\n"), Just("é"), Just("ud83d")], 0..9,
        )) {
            let text = format!("\"{}\"", units.concat());
            let mut json = JsonWriter::default();
            json.raw(&text);
            prop_assert!(serde_json::from_slice::<String>(&json.out).is_ok());
            if serde_json::from_str::<String>(&text).is_ok() {
                prop_assert_eq!(String::from_utf8(json.out).unwrap(), text);
            }
        }

        #[test]
        fn a_quoted_text_reads_back(text in prop_oneof![".*", "[a-z\"\\\\\n\u{1}\u{1f} ü]{0,80}"]) {
            let quoted = crate::import::json::quoted(&text);
            prop_assert_eq!(serde_json::from_str::<String>(&quoted).unwrap(), &text[..]);
            prop_assert_eq!(quoted, serde_json::to_string(&text).unwrap());
        }
    }
}
