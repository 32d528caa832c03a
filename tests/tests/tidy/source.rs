//! The input of the tidy checks: the files of the repository, and Rust text without its comments and strings.
//!
//! [`code`] keeps every line and column in place and writes blanks over what is not code, so that a rule about code
//! is not set off by a comment that explains it. It knows as much of Rust's lexical rules as that takes (nested
//! comments, raw strings, characters against lifetimes) and nothing of its grammar.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders that hold no source: build output, version control, what a fuzz run leaves behind.
const SKIPPED: &[&str] = &["target", ".git", ".acpdb", "artifacts", "coverage", "node_modules"];

/// The sources of the crates that a user runs or adds; those of tools and of bindings are apart.
pub(super) const CRATES: &[&str] = &[
    "engine/src/",
    "serve/src/",
    "query/src/",
    "hosts/src/",
    "live/src/",
    "proof/src/",
    "remote/src/",
    "cli/src/",
];

/// One file: its path from the repository's root with `/` between the parts, and its text if it is text.
pub(super) struct File {
    pub(super) path: String,
    pub(super) bytes: u64,
    pub(super) text: Option<String>,
}

impl File {
    pub(super) fn is(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }

    /// True for files that hold only tests: integration tests, and the `tests` modules beside what they test.
    pub(super) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }
}

pub(super) fn root() -> PathBuf {
    let mut path = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    path.pop();
    path
}

/// Every file of the repository, in order of their paths. Texts above 5 MiB are left unread.
pub(super) fn files() -> io::Result<Vec<File>> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let (kind, path) = (entry.file_type()?, entry.path());
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if kind.is_dir() {
                if !SKIPPED.contains(&name.as_ref()) {
                    folders.push(path);
                }
            } else if kind.is_file() && name != ".git" {
                let bytes = entry.metadata()?.len();
                let text = if bytes <= super::FILE_BYTES_MAX {
                    String::from_utf8(fs::read(&path)?).ok()
                } else {
                    None
                };
                let path = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                found.push(File { path, bytes, text });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// `text` with comments, strings and characters blanked, line by line as long as before.
pub(super) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut after_word = false;
    while let Some(next) = rest.chars().next() {
        let skipped = if after_word { 0 } else { literal_prefix(rest) }.max(plain_literal(rest));
        if skipped > 0 {
            let (gone, left) = rest.split_at(skipped);
            out.extend(gone.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
            rest = left;
            after_word = false;
        } else {
            out.push(next);
            rest = rest.strip_prefix(next).unwrap_or_default();
            after_word = is_word(next);
        }
    }
    out
}

/// Bytes of the comment, string or character that `rest` begins with; 0 if it begins with none.
fn plain_literal(rest: &str) -> usize {
    if rest.starts_with("//") {
        rest.find('\n').unwrap_or(rest.len())
    } else if rest.starts_with("/*") {
        block_comment(rest)
    } else if let Some(inside) = rest.strip_prefix('"') {
        1 + closing(inside, '"')
    } else if let Some(inside) = rest.strip_prefix('\'') {
        let mut chars = inside.chars();
        match (chars.next(), chars.next()) {
            (Some('\\'), _) => 1 + closing(inside, '\''),
            (Some(c), Some('\'')) => 2 + c.len_utf8(),
            _ => 0, // a lifetime
        }
    } else {
        0
    }
}

/// Bytes of a raw or byte string at the start of `rest`, prefix included; 0 if there is none.
fn literal_prefix(rest: &str) -> usize {
    let prefix = rest.chars().take_while(|c| matches!(c, 'b' | 'c' | 'r')).count();
    let (Some(letters), Some(body)) = (rest.get(..prefix), rest.get(prefix..)) else { return 0 };
    if prefix == 0 || prefix > 2 {
        return 0;
    }
    if letters.contains('r') {
        let hashes = body.chars().take_while(|c| *c == '#').count();
        let Some(inside) = body.get(hashes..).and_then(|quoted| quoted.strip_prefix('"')) else { return 0 };
        let end = format!("\"{}", "#".repeat(hashes));
        return inside.find(&end).map_or(rest.len(), |at| prefix + hashes + 1 + at + end.len());
    }
    if body.starts_with('"') { prefix + plain_literal(body) } else { 0 }
}

/// Bytes up to and with the first unescaped `quote` of `inside`.
fn closing(inside: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in inside.char_indices() {
        if !escaped && c == quote {
            return at + 1;
        }
        escaped = !escaped && c == '\\';
    }
    inside.len()
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(tail) = rest.get(at..) {
        if tail.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            match tail.chars().next() {
                Some(c) => at += c.len_utf8(),
                None => break,
            }
        }
    }
    rest.len()
}

pub(super) fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// `code` without the items behind `#[cfg(test)]` (whole braces, or up to the semicolon). Takes blanked text.
pub(super) fn without_tests(code: &str) -> String {
    let mut out = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(at) = rest.find("#[cfg(test)]") {
        let (before, marked) = rest.split_at(at);
        out.push_str(before);
        let end = item_end(marked);
        let (gone, left) = marked.split_at(end);
        out.extend(gone.chars().filter(|c| *c == '\n'));
        rest = left;
    }
    out.push_str(rest);
    out
}

fn item_end(item: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in item.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth <= 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

/// Where `needle` stands in `text` as a whole word (its own ends decide what a border is), as line numbers from 1.
pub(super) fn lines_with(text: &str, needle: &str) -> Vec<usize> {
    let starts_word = needle.starts_with(is_word);
    let ends_word = needle.ends_with(is_word);
    let mut found: Vec<usize> = text
        .match_indices(needle)
        .filter(|(at, _)| {
            let before = text.get(..*at).and_then(|t| t.chars().next_back());
            let after = text.get(at + needle.len()..).and_then(|t| t.chars().next());
            !(starts_word && before.is_some_and(is_word) || ends_word && after.is_some_and(is_word))
        })
        .map(|(at, _)| line_of(text, at))
        .collect();
    found.dedup();
    found
}

pub(super) fn line_of(text: &str, at: usize) -> usize {
    1 + text.get(..at).map_or(0, |before| before.matches('\n').count())
}

#[test]
fn code_blanks_comments_and_literals_only() {
    for (text, expected) in [
        ("a // crate::x\nb", "a            \nb"),
        ("a /* x /* y */ z */ b", "a                   b"),
        ("f(\"std::fs \\\" q\", b)", "f(              , b)"),
        ("r#\"a \" b\"# c", "           c"),
        ("br\"a\" c", "      c"),
        ("x = b'\\'' ; 'a' 'static", "x = b     ;     'static"),
        ("for_r\"a\"", "for_r   "),
    ] {
        assert_eq!(code(text), expected, "from {text:?}");
    }
}

#[test]
fn test_items_are_left_out_with_their_braces() {
    assert_eq!(without_tests("a\n#[cfg(test)]\nmod t { fn x() {} }\nb"), "a\n\n\nb");
    assert_eq!(without_tests("#[cfg(test)]\nmod tests;\nb"), "\n\nb");
}

#[test]
fn words_are_whole() {
    assert_eq!(lines_with("redb\nredbx\nmy_redb\nredb::x redb", "redb"), [1, 4]);
    assert_eq!(lines_with("std::fs\nstd::fsx", "std::fs"), [1]);
}
