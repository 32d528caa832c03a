//! Text and JSON: the pure functions that every other part computes with.
//!
//! ```text
//! params bytes --json--> Json --canonical--> bytes --label-----> r_a1b2c, typed by an agent
//!                         |                        --signature-> compares calls
//!                         +--at(path)--> paths::resolve --> file keys
//! texts --tokens--> estimate     --pattern--> does `start...end` fit?     --shorten--> short forms
//! names, paths --globs--> is it on the list?   numbers, names --words--> a line for people
//! name, names --likeness--> the one that was perhaps meant
//! ```
//!
//! Everything here is a function of its arguments: same input, same output, on every machine and in every release,
//! for labels, signatures and estimates are stored. Nothing knows events, policies or hosts, and nothing panics on
//! any input. Keys, protection and shown texts are decided elsewhere.

pub mod escapes;
pub mod globs;
pub mod json;
pub mod likeness;
pub mod paths;
pub mod pattern;
mod project;
pub mod shorten;
pub mod signature;
pub mod tokens;
pub mod words;

pub use escapes::Unescaped;
pub use globs::{GlobError, Globs};
pub use json::{
    JSON_DEPTH_MAX, Json, JsonError, JsonStr, ParamPath, canonical_or_text, one_spelling, write_json_string,
};
pub use pattern::Pattern;
pub use project::{ProjectMoves, is_within, project_of};
pub use shorten::ShownParams;
pub use signature::{HashTarget, Label, Signer};
pub use tokens::{ESTIMATOR_VERSION, estimate};

/// The beginning of a text of at most `bytes_max` bytes, without a letter that this would cut.
pub fn first_bytes(text: &str, bytes_max: usize) -> &str {
    let mut end = text.len().min(bytes_max);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Bytes as text; those that are not UTF-8 are replaced. Costs nothing if all are.
pub fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Whether `character` is white space to the rules: Unicode's, and the byte order mark U+FEFF.
pub fn is_space(character: char) -> bool {
    character.is_whitespace() || character == '\u{feff}'
}

/// `text` without white space at its ends and with every run of white space inside as one space.
///
/// Todos are compared in this form. Case stays.
pub fn collapse_space(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !collapsed.is_empty() {
            collapsed.push(' ');
        }
        collapsed.push_str(word);
    }
    collapsed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_collapses() {
        for (text, collapsed) in [
            ("", ""),
            (" \n\t ", ""),
            ("one", "one"),
            ("  Fix\tthe \n\n bug ", "Fix the bug"),
            ("\u{feff}a\u{a0}b\u{3000}c", "a b c"),
        ] {
            assert_eq!(collapse_space(text), collapsed, "{text:?}");
        }
    }
}
