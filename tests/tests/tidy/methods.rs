//! Whose function a call runs, as far as the text tells: for [`super::rooms`], which draws arrows from it.
//!
//! ```text
//! self.name(..), Self::name, Type::name    the functions `name` of that type, wherever their `impl` blocks are
//! value.name(..)                           the methods `name` of all types, since the type is not known here
//! ```
//!
//! It does not see some calls: a method that a trait has, since it depends on the value whose it is; a name of [`OF_OTHERS`], which in most
//! calls is that of the standard library; what macros make. A private function is seen by the code that may call it, and by no other.
//! If what is found stands in several members of a room, the room draws no arrow: the call may mean any of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::source::is_word;

/// Names of methods that types of the standard library and of dependencies have as well. In calls on `self` they are told apart.
pub(super) const OF_OTHERS: &[&str] = &[
    "accept",
    "all",
    "and",
    "as_array",
    "as_bool",
    "as_bytes",
    "as_f64",
    "as_object",
    "as_slice",
    "as_str",
    "as_u64",
    "chain",
    "clear",
    "clear_poison",
    "commit",
    "count",
    "create",
    "end",
    "entry",
    "exists",
    "extend",
    "find",
    "finish",
    "first",
    "fold",
    "insert",
    "into_bytes",
    "is_finished",
    "is_null",
    "iter",
    "keys",
    "kind",
    "last",
    "lines",
    "lock",
    "or",
    "parse",
    "peek",
    "position",
    "push",
    "range",
    "replace",
    "resize",
    "set",
    "skip",
    "source",
    "start",
    "status",
    "store",
    "to_hex",
    "to_value",
    "to_vec",
    "trim",
    "value",
    "verify",
    "wait",
    "with",
];

/// The same of types: their names say nothing here.
const TYPES_OF_OTHERS: &[&str] = &["Builder"];

/// Where a function is: the path of its file, and whether code of other modules may not call it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    path: String,
    is_private: bool,
}

/// The functions of types in some files.
#[derive(Default)]
pub(super) struct Methods {
    by_name: BTreeMap<String, BTreeSet<Place>>,
    /// By type and name; with functions that take no `self`.
    by_type: BTreeMap<(String, String), BTreeSet<Place>>,
    /// Names of methods that some trait has.
    of_traits: BTreeSet<String>,
}

impl Methods {
    /// The functions of all types in `files`: paths and code.
    pub(super) fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let mut found = Self::default();
        for (path, code) in files {
            for block in blocks(code) {
                for function in functions(code.get(block.body.clone()).unwrap_or_default()) {
                    if block.is_of_trait {
                        found.of_traits.insert(function.name);
                        continue;
                    }
                    let place = Place { path: path.to_owned(), is_private: function.is_private };
                    if function.takes_self {
                        found.by_name.entry(function.name.clone()).or_default().insert(place.clone());
                    }
                    found.by_type.entry((block.of.clone(), function.name)).or_default().insert(place);
                }
            }
        }
        found
    }

    /// The calls in the code of file `path`: the name of each, and the files that may have the function.
    pub(super) fn calls<'a>(&'a self, path: &str, code: &str) -> Vec<(String, BTreeSet<&'a str>)> {
        let blocks = blocks(code);
        let type_at =
            |at: usize| blocks.iter().rfind(|block| block.body.contains(&at)).map(|b| b.of.as_str());
        let mut found = Vec::new();
        for (at, name) in words_behind(code, ".") {
            let before = code.get(..at).unwrap_or_default();
            if !is_called(code, at + 1 + name.len()) || before.ends_with('.') {
                continue;
            }
            let own_type = type_at(at).filter(|_| ends_with_word(before, "self"));
            let of_type = own_type.and_then(|of| self.by_type.get(&(of.to_owned(), name.to_owned())));
            let is_of_others = OF_OTHERS.contains(&name) || self.of_traits.contains(name);
            let of_any = self.by_name.get(name).filter(|_| !is_of_others);
            let Some(places) = of_type.or(of_any) else { continue };
            found.push((name.to_owned(), visible(places, path)));
        }
        for (at, name) in words_behind(code, "::") {
            let before = code.get(..at).unwrap_or_default();
            let start = before.rfind(|c| !is_word(c)).map_or(0, |last| last + 1);
            let of = match before.get(start..).unwrap_or_default() {
                "Self" => type_at(at).unwrap_or_default(),
                named => named,
            };
            if TYPES_OF_OTHERS.contains(&of) {
                continue;
            }
            let Some(places) = self.by_type.get(&(of.to_owned(), name.to_owned())) else { continue };
            found.push((format!("{of}::{name}"), visible(places, path)));
        }
        found
    }

    /// Whether a type of these files has a method `name`, and no trait has.
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name.contains_key(name) && !self.of_traits.contains(name)
    }
}

/// The files of those `places` that code in the file `path` may call.
fn visible<'a>(places: &'a BTreeSet<Place>, path: &str) -> BTreeSet<&'a str> {
    let own = module(path);
    let may_call = |place: &&Place| {
        let inside = own.strip_prefix(module(&place.path));
        !place.is_private || inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    places.iter().filter(may_call).map(|place| place.path.as_str()).collect()
}

/// The module that a file holds, as a path.
fn module(path: &str) -> &str {
    let path = path.trim_end_matches(".rs");
    let is_root = |name: &&str| path.strip_suffix(*name).is_some_and(|rest| rest.ends_with('/'));
    let root = ["mod", "lib", "main"].into_iter().find(is_root).unwrap_or_default();
    path.trim_end_matches(root).trim_end_matches('/')
}

/// A block of functions: of a type, or of a trait, by itself or for a type.
struct Block {
    /// The type.
    of: String,
    is_of_trait: bool,
    /// Between its braces.
    body: Range<usize>,
}

/// The blocks `impl` and `trait` of `code`; each begins a line, as the formatter has it.
fn blocks(code: &str) -> Vec<Block> {
    let (mut found, mut start) = (Vec::new(), 0);
    for line in code.split_inclusive('\n') {
        let at = start + (line.len() - line.trim_start().len());
        start += line.len();
        let words = line.trim_start();
        let words = ["pub(crate) ", "pub(super) ", "pub "]
            .into_iter()
            .fold(words, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
        let is_impl = words.starts_with("impl ") || words.starts_with("impl<");
        if !is_impl && !words.starts_with("trait ") {
            continue;
        }
        let rest = code.get(at..).unwrap_or_default();
        let Some(open) = rest.find('{') else { continue };
        let head = rest.get(..open).unwrap_or_default();
        let bounds = head.find(" where").or_else(|| head.find("\nwhere")).unwrap_or(head.len());
        let head = head.get(..bounds).unwrap_or_default();
        let target = head.rsplit_once(" for ").map_or_else(|| without_generics(head), |(_, of)| of);
        found.push(Block {
            of: type_name(target),
            is_of_trait: !is_impl || head.contains(" for "),
            body: at + open + 1..at + open + 1 + closing(rest.get(open + 1..).unwrap_or_default()),
        });
    }
    found
}

/// The text behind `impl<..>`.
fn without_generics(head: &str) -> &str {
    let rest = head.trim_start_matches("impl");
    rest.get(generics_bytes(rest)..).unwrap_or_default()
}

/// The last name of a type's path: `Log` of `&mut super::Log<'_>`.
fn type_name(text: &str) -> String {
    let text = text.trim().split(['<', '{']).next().unwrap_or_default().trim_end();
    text.rsplit(|c| !is_word(c)).next().unwrap_or_default().to_owned()
}

/// Bytes of the parameters `<..>` that `text` begins with; an arrow closes none.
fn generics_bytes(text: &str) -> usize {
    let (mut depth, mut last) = (0_usize, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '<' => depth += 1,
            '>' if last != '-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return if c == '>' { at + 1 } else { at };
        }
        last = c;
    }
    text.len()
}

/// Bytes up to the brace that closes the one before `code`.
fn closing(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return at,
            '}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

struct Function {
    name: String,
    takes_self: bool,
    is_private: bool,
}

/// The functions that stand right in a block's body, not those inside of them.
fn functions(body: &str) -> Vec<Function> {
    let (mut found, mut depth, mut item) = (Vec::new(), 0_usize, 0);
    for (at, c) in body.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(c, '}' | ';') {
            item = at + 1;
        }
        let before = body.get(item..at).unwrap_or_default();
        if c != 'f' || depth > 0 || !before.ends_with([' ', '\n']) {
            continue;
        }
        let Some(rest) = body.get(at..).and_then(|rest| rest.strip_prefix("fn ")) else { continue };
        let name: String = rest.chars().take_while(|c| is_word(*c)).collect();
        let rest = rest.get(name.len()..).unwrap_or_default();
        let inside = rest.get(generics_bytes(rest)..).unwrap_or_default().trim_start_matches('(');
        let first = inside.split([',', ')', ':']).next().unwrap_or_default();
        found.push(Function {
            takes_self: ends_with_word(first.trim_end(), "self"),
            is_private: !before.split(|c| !is_word(c)).any(|word| word == "pub"),
            name,
        });
    }
    found
}

/// Words that stand right behind `mark`, with where the mark is.
fn words_behind<'a>(code: &'a str, mark: &'a str) -> impl Iterator<Item = (usize, &'a str)> {
    code.match_indices(mark).filter_map(move |(at, _)| {
        let rest = code.get(at + mark.len()..)?;
        let word = rest.get(..rest.find(|c| !is_word(c)).unwrap_or(rest.len()))?;
        word.starts_with(|c: char| c.is_lowercase() || c == '_').then_some((at, word))
    })
}

/// Whether a call's arguments stand at `at`, or its parameters of types.
fn is_called(code: &str, at: usize) -> bool {
    let rest = code.get(at..).unwrap_or_default();
    rest.starts_with('(') || rest.starts_with("::<")
}

fn ends_with_word(text: &str, word: &str) -> bool {
    text.strip_suffix(word).is_some_and(|before| !before.ends_with(|c| is_word(c) || c == '.'))
}

#[cfg(test)]
const FILES: &[(&str, &str)] = &[
    (
        "src/log/low.rs",
        "impl<'a, F: Fn() -> u8> Log<'a, F>\nwhere\n    F: Copy,\n{\n    pub(super) fn place<T>(&'a mut self, t: T) {}\n    \
         pub fn open() -> Self { fn inner(&self) {} }\n    fn own(&self) {}\n    pub fn push(&self) {}\n    \
         pub fn twice(self: Arc<Self>) {}\n}\nimpl super::Steps for Log<'_> {\n    fn look(&self) {}\n}\n",
    ),
    (
        "src/log/low/deep.rs",
        "pub(crate) trait Steps {\n    fn look(&self);\n}\nimpl Tail {\n    pub fn twice(&self) {}\n    pub fn look(&self) {}\n}\n",
    ),
];

#[cfg(test)]
fn calls_of(path: &str, code: &str) -> Vec<String> {
    let methods = Methods::of(FILES.iter().copied());
    let calls = methods.calls(path, code);
    calls
        .iter()
        .map(|(name, files)| format!("{name} {}", files.iter().copied().collect::<Vec<_>>().join(" ")))
        .collect()
}

#[test]
fn a_call_is_followed_as_far_as_the_text_tells() {
    let (low, both) = ("src/log/low.rs", "src/log/low.rs src/log/low/deep.rs");
    for (code, expected) in [
        ("fn f() { log.place(1) }", vec![format!("place {low}")]),
        ("fn f() { log.place::<u8>(1).twice() }", vec![format!("place {low}"), format!("twice {both}")]),
        ("fn f() { Log::open(Log::twice) }", vec![format!("Log::open {low}"), format!("Log::twice {low}")]),
        // The type of `self` is known: its method is meant, even if another type has the name.
        (
            "impl Log<'_> {\n    fn f(&self) { self.twice(); self.push(1) }\n}",
            vec![format!("twice {low}"), format!("push {low}")],
        ),
        (
            "impl Steps for Tail {\n    fn f() { Self::twice() }\n}",
            vec!["Tail::twice src/log/low/deep.rs".to_owned()],
        ),
        // Of a trait, of the standard library, a field, a range, a function of no type.
        ("fn f() { log.look(); list.push(1); log.place; 0..place(); inner(); log.inner() }", vec![]),
    ] {
        assert_eq!(calls_of("src/log/high.rs", code), expected, "in {code:?}");
    }
}

#[test]
fn a_private_function_is_called_from_its_module_and_below() {
    for (path, expected) in [
        ("src/log/high.rs", "own "),
        ("src/log/low/deep.rs", "own src/log/low.rs"),
        ("src/log/lower.rs", "own "),
    ] {
        assert_eq!(calls_of(path, "fn f() { log.own() }"), [expected], "in {path}");
    }
    assert_eq!(module("src/log/mod.rs"), "src/log");
}
