//! Lists of patterns: which tools, which files?
//!
//! ```text
//! names   *  any characters    ?  one character                           todo*  mcp_?_read
//! paths   *  any but /         ?  one but /    **  any at all    **/  any number of folders, or none
//! ```
//!
//! A pattern is compared with the whole name or path, case counts, every other character stands for itself (also
//! `[`, `{` and `\`, which occur in names of files). Lists that guard files ignore case and take `\` for `/`: a file is
//! the same secret however its name is spelled. Patterns are compiled once; a pattern without a wildcard is looked up.
//! Matching neither recurses nor allocates: after a mismatch the last `*` takes one character more, and if it may
//! not, the last `**` does. No earlier one needs to: a later one reaches everything that an earlier one could reach.

/// The longest pattern, in bytes.
pub const GLOB_BYTES_MAX: usize = 1024;

/// A pattern that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pattern `{pattern}` is {problem}")]
pub struct GlobError {
    /// The pattern as given, at most its first 50 characters.
    pub pattern: String,
    /// The reason why it cannot be used.
    pub problem: &'static str,
}

/// A compiled list of patterns. Equal if the lists are equal.
#[derive(Clone, Default)]
pub struct Globs {
    patterns: Vec<String>,
    /// Patterns without wildcards, sorted.
    exact: Vec<Box<str>>,
    wild: Vec<Vec<GlobToken>>,
    /// Case is ignored, and `\` is `/`.
    folded: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum GlobToken {
    /// These characters.
    Text(Box<str>),
    /// One character but `/`.
    One,
    /// One character of any kind.
    Any,
    /// Any number of characters but `/`.
    Run,
    /// Any number of characters.
    Everything,
    /// Any number of folders, each with its `/`.
    Folders,
}

impl PartialEq for Globs {
    fn eq(&self, other: &Self) -> bool {
        self.patterns == other.patterns
    }
}

impl Eq for Globs {}

impl serde::Serialize for Globs {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.patterns.serialize(serializer)
    }
}

impl std::fmt::Debug for Globs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Globs").field(&self.patterns).finish()
    }
}

impl Globs {
    /// Compiles patterns of tool names.
    ///
    /// # Errors
    /// [`GlobError`] for a pattern that is empty or longer than [`GLOB_BYTES_MAX`].
    pub fn names<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, GlobError> {
        Self::compile(patterns, name_tokens, false)
    }

    /// Compiles patterns of file paths.
    ///
    /// # Errors
    /// [`GlobError`] for a pattern that is empty or longer than [`GLOB_BYTES_MAX`].
    pub fn paths<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, GlobError> {
        Self::compile(patterns, path_tokens, false)
    }

    /// Compiles patterns of file paths that fit in any case, with either separator.
    ///
    /// # Errors
    /// [`GlobError`] for a pattern that is empty or longer than [`GLOB_BYTES_MAX`].
    pub fn guarded_paths<S: AsRef<str>>(patterns: impl IntoIterator<Item = S>) -> Result<Self, GlobError> {
        Self::compile(patterns, path_tokens, true)
    }

    fn compile<S: AsRef<str>>(
        patterns: impl IntoIterator<Item = S>,
        tokens: fn(&str) -> Vec<GlobToken>,
        folded: bool,
    ) -> Result<Self, GlobError> {
        let mut globs = Self { folded, ..Self::default() };
        for pattern in patterns {
            let pattern = pattern.as_ref();
            let fail = |problem| GlobError { pattern: pattern.chars().take(50).collect(), problem };
            if pattern.is_empty() {
                return Err(fail("empty"));
            }
            if pattern.len() > GLOB_BYTES_MAX {
                return Err(fail("longer than 1024 bytes"));
            }
            globs.patterns.push(pattern.to_owned());
            let pattern = &if folded { fold(pattern) } else { pattern.to_owned() };
            if pattern.contains(['*', '?']) {
                globs.wild.push(tokens(pattern));
            } else {
                globs.exact.push(pattern.as_str().into());
            }
        }
        globs.exact.sort_unstable();
        Ok(globs)
    }

    /// The patterns, as given and in their order.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }

    /// Whether there are no patterns.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether any pattern fits the whole of `text`.
    ///
    /// Cost: a binary search, then each pattern that has wildcards.
    pub fn is_match(&self, text: &str) -> bool {
        let folded = self.folded.then(|| fold(text));
        let text = folded.as_deref().unwrap_or(text);
        self.exact.binary_search_by(|exact| exact.as_ref().cmp(text)).is_ok()
            || self.wild.iter().any(|tokens| fits(tokens, text))
    }

    /// Whether any pattern fits a tool's name, with or without the server in front of it.
    pub fn is_match_tool(&self, tool: &str) -> bool {
        let bare = without_server(tool);
        self.is_match(tool) || bare.len() != tool.len() && self.is_match(bare)
    }
}

/// A path as guarded lists compare it.
fn fold(path: &str) -> String {
    path.to_lowercase().replace('\\', "/")
}

/// The name of a tool without a leading `mcp__SERVER__`.
pub fn without_server(tool: &str) -> &str {
    let bare = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")).map(|(_, bare)| bare);
    bare.filter(|bare| !bare.is_empty()).unwrap_or(tool)
}

fn name_tokens(pattern: &str) -> Vec<GlobToken> {
    let mut tokens = Vec::new();
    for piece in pattern.split_inclusive(['*', '?']) {
        let text = piece.trim_end_matches(['*', '?']);
        push_text(&mut tokens, text);
        match piece.get(text.len()..) {
            Some("*") => tokens.push(GlobToken::Everything),
            Some("?") => tokens.push(GlobToken::Any),
            _ => {}
        }
    }
    tokens
}

fn path_tokens(pattern: &str) -> Vec<GlobToken> {
    let mut tokens = Vec::new();
    let mut rest = pattern;
    let mut folder_begins = true;
    while !rest.is_empty() {
        let (token, behind) = match rest.strip_prefix("**") {
            Some(behind) => match behind.strip_prefix('/') {
                Some(behind) if folder_begins => (GlobToken::Folders, behind),
                _ => (GlobToken::Everything, behind.trim_start_matches('*')),
            },
            None => match (rest.strip_prefix('*'), rest.strip_prefix('?')) {
                (Some(behind), _) => (GlobToken::Run, behind),
                (_, Some(behind)) => (GlobToken::One, behind),
                (None, None) => {
                    let text = rest.split(['*', '?']).next().unwrap_or_default();
                    push_text(&mut tokens, text);
                    folder_begins = text.ends_with('/');
                    rest = rest.get(text.len()..).unwrap_or_default();
                    continue;
                }
            },
        };
        folder_begins = token == GlobToken::Folders;
        tokens.push(token);
        rest = behind;
    }
    tokens
}

fn push_text(tokens: &mut Vec<GlobToken>, text: &str) {
    if !text.is_empty() {
        tokens.push(GlobToken::Text(text.into()));
    }
}

/// Where to go on after a mismatch: with the tokens behind a wildcard, at a later place in the text.
#[derive(Clone, Copy)]
struct GlobRetry<'t, 's> {
    tokens: &'t [GlobToken],
    rest: &'s str,
}

/// Whether `tokens` fit the whole of `text`.
fn fits(tokens: &[GlobToken], text: &str) -> bool {
    // Most patterns end in a name or an extension, by which most paths fail at once.
    if matches!(tokens.last(), Some(GlobToken::Text(end)) if !text.ends_with(end.as_ref())) {
        return false;
    }
    let mut tokens = tokens;
    let mut rest = text;
    let mut run: Option<GlobRetry<'_, '_>> = None;
    let mut wide: Option<(GlobRetry<'_, '_>, &GlobToken)> = None;
    loop {
        let stepped = match tokens.split_first() {
            None if rest.is_empty() => return true,
            None => None,
            Some((GlobToken::Run, behind)) => {
                run = Some(GlobRetry { tokens: behind, rest });
                Some((behind, rest))
            }
            Some((kind @ (GlobToken::Everything | GlobToken::Folders), behind)) => {
                wide = Some((GlobRetry { tokens: behind, rest }, kind));
                run = None;
                Some((behind, rest))
            }
            Some((GlobToken::Text(text), behind)) => {
                rest.strip_prefix(text.as_ref()).map(|rest| (behind, rest))
            }
            Some((GlobToken::One, behind)) => behind_one(rest, false).map(|rest| (behind, rest)),
            Some((GlobToken::Any, behind)) => behind_one(rest, true).map(|rest| (behind, rest)),
        };
        if let Some(next) = stepped {
            (tokens, rest) = next;
            continue;
        }
        if let Some(longer) =
            run.and_then(|retry| Some(GlobRetry { rest: behind_one(retry.rest, false)?, ..retry }))
        {
            (tokens, rest) = (longer.tokens, longer.rest);
            run = Some(longer);
            continue;
        }
        let longer = wide.and_then(|(retry, kind)| {
            let rest = match kind {
                GlobToken::Folders => retry.rest.split_once('/')?.1,
                _ => behind_one(retry.rest, true)?,
            };
            Some((GlobRetry { rest, ..retry }, kind))
        });
        let Some((retry, _)) = longer else { return false };
        (tokens, rest) = (retry.tokens, retry.rest);
        run = None;
        wide = longer;
    }
}

/// The text behind the first character; `None` if there is no character, or it is `/` and `slash` does not allow that.
fn behind_one(text: &str, slash: bool) -> Option<&str> {
    let mut characters = text.chars();
    let first = characters.next()?;
    (slash || first != '/').then_some(characters.as_str())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A key file went unprotected because its name was written in capitals, or behind backslashes.
    #[test]
    fn guarded_paths_fit_in_any_case_and_with_either_separator() {
        let globs = Globs::guarded_paths(["**/.env", "**/*.pem", "Secret/Ä.txt"]).unwrap();
        for path in ["/p/.Env", ".ENV", "C:\\p\\.env", "keys/SERVER.PEM", "a\\b.pem", "secret\\ä.TXT"] {
            assert!(globs.is_match(path), "{path}");
        }
        assert!(!globs.is_match("/p/env") && !globs.is_match("a.pem.txt"));
        assert!(!Globs::paths(["**/.env"]).unwrap().is_match("/p/.Env"));
    }

    #[test]
    fn names_match_whole_and_by_case() {
        for (pattern, name, fits) in [
            ("read", "read", true),
            ("read", "Read", false),
            ("read", "read_file", false),
            ("create_*", "create_issue", true),
            ("create_*", "create", false),
            ("submit*", "submit", true),
            ("?ead", "read", true),
            ("?ead", "éead", true),
            ("?", "", false),
            ("*", "", true),
            ("*a*b", "xaxbxb", true),
            ("*a*b", "xaxbx", false),
            ("*", "a/b", true),
            ("a[b]{c}", "a[b]{c}", true),
            ("[ab]", "a", false),
        ] {
            assert_eq!(Globs::names([pattern]).unwrap().is_match(name), fits, "{pattern} {name}");
        }
    }

    #[test]
    fn tools_match_with_and_without_their_server() {
        let globs = Globs::names(["create_*", "mcp__db__query", "read"]).unwrap();
        for (tool, bare, fits) in [
            ("mcp__github__create_issue", "create_issue", true),
            ("create_issue", "create_issue", true),
            ("mcp__db__query", "query", true),
            ("mcp__other__query", "query", false),
            ("mcp__fs__read", "read", true),
            ("mcp__fs__", "mcp__fs__", false),
            ("mcp__fs", "mcp__fs", false),
        ] {
            assert_eq!(without_server(tool), bare);
            assert_eq!(globs.is_match_tool(tool), fits, "{tool}");
        }
    }

    #[test]
    fn paths_match_by_folders() {
        for (pattern, path, fits) in [
            ("**/.env", ".env", true),
            ("**/.env", "/.env", true),
            ("**/.env", "/a/b/.env", true),
            ("**/.env", "a.env", false),
            ("**/.env.*", "/a/.env.local", true),
            ("**/.env.*", "/a/.env.d/x", false),
            ("**/*.pem", "k.pem", true),
            ("**/*.pem", "/a/b/k.pem", true),
            ("*.pem", "a/k.pem", false),
            ("*.pem", ".pem", true),
            ("src/*/m.c", "src/a/m.c", true),
            ("src/*/m.c", "src/a/b/m.c", false),
            ("src/**/m.c", "src/m.c", true),
            ("src/**/m.c", "src/a/b/m.c", true),
            ("src/**", "src/a/b", true),
            ("src/**", "src", false),
            ("**", "", true),
            ("**", "/a/b", true),
            ("a**b", "a/x/b", true),
            ("a?b", "a/b", false),
            ("a?b", "aéb", true),
            ("**/a/*/c/**/e", "x/a/b/c/d/d/e", true),
            ("**/a/*/c/**/e", "x/a/b/b/c/e", false),
            ("app/[id]/*.ts", "app/[id]/page.ts", true),
            ("app/[id]/*.ts", "app/i/page.ts", false),
            ("***", "a/b", true),
            ("/etc/passwd", "/etc/passwd", true),
            ("{a,b}", "a", false),
            ("\\*", "\\x", true),
        ] {
            assert_eq!(Globs::paths([pattern]).unwrap().is_match(path), fits, "{pattern} {path}");
        }
    }

    #[test]
    fn odd_patterns_are_named() {
        assert_eq!(Globs::paths(["a", ""]).unwrap_err().to_string(), "pattern `` is empty");
        let long = "a".repeat(GLOB_BYTES_MAX + 1);
        let error = Globs::names([long.as_str()]).unwrap_err();
        assert_eq!(error.to_string(), format!("pattern `{}` is longer than 1024 bytes", "a".repeat(50)));
        assert!(Globs::names([&long[1..]]).unwrap().is_match(&long[1..]));
    }

    #[test]
    fn lists_are_equal_if_their_patterns_are() {
        let list = |patterns: &[&str]| Globs::paths(patterns).unwrap();
        assert_eq!(list(&["a", "b*"]), list(&["a", "b*"]).clone());
        assert_ne!(list(&["a", "b*"]), list(&["b*", "a"]));
        assert_eq!(format!("{:?}", list(&["a", "b*"])), "Globs([\"a\", \"b*\"])");
        assert!(Globs::default().is_empty() && !Globs::default().is_match(""));
    }

    /// Tries everything: slow, and plainly right.
    fn fits_by_trying(tokens: &[GlobToken], text: &str) -> bool {
        let Some((token, behind)) = tokens.split_first() else { return text.is_empty() };
        let longer = |slash| behind_one(text, slash).is_some_and(|rest| fits_by_trying(tokens, rest));
        match token {
            GlobToken::Text(start) => {
                text.strip_prefix(start.as_ref()).is_some_and(|rest| fits_by_trying(behind, rest))
            }
            GlobToken::One => behind_one(text, false).is_some_and(|rest| fits_by_trying(behind, rest)),
            GlobToken::Any => behind_one(text, true).is_some_and(|rest| fits_by_trying(behind, rest)),
            GlobToken::Run => fits_by_trying(behind, text) || longer(false),
            GlobToken::Everything => fits_by_trying(behind, text) || longer(true),
            GlobToken::Folders => {
                fits_by_trying(behind, text)
                    || text.split_once('/').is_some_and(|(_, rest)| fits_by_trying(tokens, rest))
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn matching_finds_what_trying_finds(pattern in "(a|b|/|\\?|\\*|\\*\\*|\\*\\*/){1,7}", path in "[ab/]{0,9}") {
            let paths = path_tokens(&pattern);
            prop_assert_eq!(fits(&paths, &path), fits_by_trying(&paths, &path));
            let names = name_tokens(&pattern);
            prop_assert_eq!(fits(&names, &path), fits_by_trying(&names, &path));
        }

        #[test]
        fn any_pattern_compiles_and_matches_itself_if_plain(pattern in "\\PC{1,12}", text in "\\PC{0,12}") {
            let globs = Globs::paths([&pattern]).unwrap();
            globs.is_match(&text);
            prop_assert!(pattern.contains(['*', '?']) || globs.is_match(&pattern));
        }
    }
}
