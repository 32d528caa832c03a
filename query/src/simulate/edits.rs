//! The lines that an edit replaces, by text: the lines of the file that the model had to know.
//!
//! ```text
//! edit {"old_string": "let a = 1;\n"}      *** Begin Patch .. -let a = 1;      both replace the line  let a = 1;
//! ```
//!
//! Hosts read and change files by tools of many names, or by command lines. Texts tell the same for all of them: an edit is blind
//! when most lines that it replaces stand nowhere in the texts that the model sees.

use std::collections::HashMap;

use acpdb_serve::point::TextLines;
use serde_json::Value;

/// Names under which tools take the text that is replaced.
const OLD_TEXTS: &[&str] = &["old_string", "oldString", "old_str", "old_text", "oldText"];
/// The beginning of a patch.
const PATCH_BEGINS: &str = "*** Begin Patch";
/// Letters and digits in a line that tells something; a brace alone stands everywhere.
const LINE_LETTERS_MIN: usize = 4;

/// Lines that edits replace, by number.
#[derive(Debug, Default)]
pub(super) struct Replaced {
    numbers: HashMap<String, u32>,
}

impl Replaced {
    /// The number of lines.
    pub(super) fn count(&self) -> usize {
        self.numbers.len()
    }

    /// The numbers of the lines that an edit with these parameters replaces; new lines get one.
    pub(super) fn learn(&mut self, params: &str) -> Vec<u32> {
        let mut found = Vec::new();
        for line in old_lines(params) {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            found.push(*self.numbers.entry(line).or_insert(next));
        }
        sorted(found)
    }

    /// The numbers of these lines that edits replace.
    pub(super) fn find<'t>(&self, lines: impl Iterator<Item = &'t str>) -> Vec<u32> {
        if self.numbers.is_empty() {
            return Vec::new();
        }
        sorted(lines.filter_map(|line| self.numbers.get(line.trim()).copied()).collect())
    }

    /// The numbers of replaced lines that stand in parameters: in any text, and as lines that a patch leaves or brings.
    pub(super) fn find_in_params(&self, params: &str) -> Vec<u32> {
        if self.numbers.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        each_text(params, &mut |_, text| {
            found.extend(self.find(text.lines()));
            if text.contains(PATCH_BEGINS) {
                found.extend(self.find(text.lines().filter_map(|line| line.get(1..))));
            }
        });
        sorted(found)
    }
}

fn sorted(mut numbers: Vec<u32>) -> Vec<u32> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

/// Visits each text of parameters with the name it stands under. Parameters that are no JSON are one text.
fn each_text(params: &str, visit: &mut dyn FnMut(&str, &str)) {
    let Ok(value) = serde_json::from_str::<Value>(params) else {
        visit("", params);
        return;
    };
    let mut open = vec![("", &value)];
    while let Some((name, value)) = open.pop() {
        match value {
            Value::String(text) => visit(name, text),
            Value::Array(values) => open.extend(values.iter().map(|value| (name, value))),
            Value::Object(fields) => open.extend(fields.iter().map(|(name, value)| (name.as_str(), value))),
            _ => {}
        }
    }
}

/// Lines that an edit takes away, or puts its change between.
fn old_lines(params: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut keep = |line: &str| {
        let line = line.trim();
        if line.chars().filter(|letter| letter.is_alphanumeric()).count() >= LINE_LETTERS_MIN {
            found.push(line.to_owned());
        }
    };
    each_text(params, &mut |name, text| {
        if OLD_TEXTS.contains(&name) {
            TextLines::of(text).compared().for_each(&mut keep);
        } else if text.contains(PATCH_BEGINS) {
            let old = text.lines().filter_map(|line| line.strip_prefix(['-', ' ']));
            old.for_each(&mut keep);
        }
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_replaces_old_text_and_the_lines_of_a_patch() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n fn kept_line() {\n-    let gone = 1;\n+    let come = 2;\n }\n*** End Patch";
        let cases = [
            (
                serde_json::json!({"file_path": "a", "old_string": "  let one = 1;\n}", "new_string": "let two = 2;"}),
                vec!["let one = 1;"],
            ),
            (
                serde_json::json!({"edits": [{"oldText": "first line"}, {"oldText": "second line"}]}),
                vec!["first line", "second line"],
            ),
            (serde_json::json!({"input": patch}), vec!["fn kept_line() {", "let gone = 1;"]),
            (
                serde_json::json!({"command": ["apply_patch", patch]}),
                vec!["fn kept_line() {", "let gone = 1;"],
            ),
            (serde_json::json!({"content": "a whole file"}), vec![]),
        ];
        for (params, lines) in cases {
            let mut found = old_lines(&params.to_string());
            found.sort();
            assert_eq!(found, lines, "{params}");
        }
        assert_eq!(old_lines(patch), ["fn kept_line() {", "let gone = 1;"]);
    }

    #[test]
    fn lines_are_found_however_they_are_shown() {
        let mut replaced = Replaced::default();
        let old = replaced.learn(r#"{"old_string": "    let one = 1;\n    let two = 2;"}"#);
        assert_eq!(old, [0, 1]);
        let read = TextLines::of("  7\tfn main() {\n  8\t    let two = 2;\n");
        assert_eq!(replaced.find(read.compared()), [1]);
        let patch = r#"{"input": "*** Begin Patch\n+    let one = 1;\n*** End Patch"}"#;
        assert_eq!(replaced.find_in_params(patch), [0]);
        assert_eq!(replaced.find_in_params(r#"{"content": "let one = 1;\nlet two = 2;"}"#), [0, 1]);
        assert!(replaced.find_in_params(r#"{"content": "let three = 3;"}"#).is_empty());
    }
}
