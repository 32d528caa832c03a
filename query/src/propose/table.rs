//! The table of preferences: names in texts that say how the user wants things. It is data, so that a host can add rows.

use serde::{Deserialize, Serialize};

use super::scan::{Begins, Gap, TokenScan, same};

/// A value and its names in texts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PreferenceValue {
    /// The value as it is recorded. `N` stands for the number that the text has in its place.
    pub value: String,
    /// Names in texts, any case. A word `N` stands for a number of one or two digits.
    pub names: Vec<String>,
}

/// A preference: its category and key, and its values.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PreferenceRule {
    /// Category, such as `tooling`.
    pub category: String,
    /// Key, such as `package_manager`.
    pub key: String,
    /// Confidence of a proposal, in hundredths.
    pub confidence: u8,
    /// Values.
    pub values: Vec<PreferenceValue>,
}

/// Preferences, in the order in which texts are searched for them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PreferenceTable {
    /// The rules.
    pub rules: Vec<PreferenceRule>,
}

/// Rows: category, key, confidence, values. After `=` stand other names of the value before it.
const BUILT_IN: &[(&str, &str, u8, &[&str])] = &[
    ("tooling", "package_manager", 70, &["pnpm", "npm", "yarn", "bun"]),
    ("tooling", "formatter", 70, &["prettier", "eslint", "biome"]),
    ("tooling", "test_framework", 70, &["jest", "vitest", "mocha", "ava"]),
    ("tooling", "language", 70, &["typescript", "javascript"]),
    ("tooling", "editor", 70, &["VS Code=vscode", "Vim", "Neovim=nvim", "Emacs", "Helix", "Zed"]),
    ("style", "indentation", 80, &["tabs", "N spaces"]),
    ("style", "paradigm", 80, &["functional=functional style", "object-oriented=oop"]),
];

impl Default for PreferenceTable {
    fn default() -> Self {
        let value = |row: &&str| {
            let mut names = row.split('=').map(str::to_owned);
            let value = names.next().unwrap_or_default();
            PreferenceValue { names: std::iter::once(value.clone()).chain(names).collect(), value }
        };
        let rule = |(category, key, confidence, values): &(&str, &str, u8, &[&str])| PreferenceRule {
            category: (*category).to_owned(),
            key: (*key).to_owned(),
            confidence: *confidence,
            values: values.iter().map(value).collect(),
        };
        Self { rules: BUILT_IN.iter().map(rule).collect() }
    }
}

/// A name of the table in a text.
#[derive(Clone, Debug)]
pub(super) struct TableHit<'p> {
    /// Number of the rule, from 0.
    pub(super) number: usize,
    pub(super) rule: &'p PreferenceRule,
    /// The value, spelled as the table does.
    pub(super) value: String,
    /// First token.
    pub(super) start: usize,
    /// Token after the last.
    pub(super) end: usize,
}

impl PreferenceTable {
    /// The longest name that stands at `index`; left out is a name that is part of a longer word, joined by a hyphen, dot or slash
    /// (`typescript-eslint`, `jest.config.js`).
    pub(super) fn name_at(&self, scan: &TokenScan<'_>, index: usize) -> Option<TableHit<'_>> {
        scan.any_word(index)?;
        let mut best: Option<TableHit<'_>> = None;
        for (number, rule) in self.rules.iter().enumerate() {
            for value in &rule.values {
                for name in &value.names {
                    let Some((end, digits)) = name_ends(scan, index, name) else { continue };
                    if best.as_ref().is_none_or(|best| end > best.end) {
                        let value = match digits {
                            Some(digits) => value.value.replacen('N', digits, 1),
                            None => value.value.clone(),
                        };
                        best = Some(TableHit { number, rule, value, start: index, end });
                    }
                }
            }
        }
        best.filter(|hit| stands_alone(scan, hit.start, hit.end))
    }

    /// All names in a text, in its order, none inside another.
    pub(super) fn names_in(&self, scan: &TokenScan<'_>) -> Vec<TableHit<'_>> {
        let values = self.rules.iter().flat_map(|rule| &rule.values);
        let begins = Begins::of(values.flat_map(|value| &value.names).map(String::as_str));
        let mut hits = Vec::new();
        let mut index = 0;
        while index < scan.len() {
            if !scan.any_word(index).is_some_and(|word| begins.may_begin_with(word)) {
                index += 1;
                continue;
            }
            match self.name_at(scan, index) {
                Some(hit) => {
                    index = hit.end;
                    hits.push(hit);
                }
                None => index += 1,
            }
        }
        hits
    }
}

/// The token after `name`, if it stands at `index`, and the digits in place of its `N`.
fn name_ends<'t>(scan: &TokenScan<'t>, index: usize, name: &str) -> Option<(usize, Option<&'t str>)> {
    if !name.starts_with('N') && !scan.may_begin(index, name) {
        return None;
    }
    let mut next = index;
    let mut digits = None;
    for (word_index, word) in name.split(' ').enumerate() {
        if word_index > 0 && scan.gap(next) != Gap::Space {
            return None;
        }
        for (piece_index, piece) in word.split('-').enumerate() {
            if piece_index > 0 {
                if !scan.is_mark(next, '-') || scan.gap(next) != Gap::None || scan.gap(next + 1) != Gap::None
                {
                    return None;
                }
                next += 1;
            }
            let found = scan.any_word(next)?;
            if piece == "N" {
                if found.len() > 2 || !found.bytes().all(|byte| byte.is_ascii_digit()) {
                    return None;
                }
                digits = Some(found);
            } else if !same(found, piece) {
                return None;
            }
            next += 1;
        }
    }
    Some((next, digits))
}

fn stands_alone(scan: &TokenScan<'_>, start: usize, end: usize) -> bool {
    let is_joint = |index| ['-', '.', '/', '\\', '@'].iter().any(|mark| scan.is_mark(index, *mark));
    let joined_before = start.checked_sub(1).is_some_and(is_joint) && scan.gap(start) == Gap::None;
    let joined_after = is_joint(end)
        && scan.gap(end) == Gap::None
        && scan.gap(end + 1) == Gap::None
        && scan.any_word(end + 1).is_some();
    !joined_before && !joined_after
}
