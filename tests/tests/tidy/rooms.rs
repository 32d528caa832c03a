//! Who uses whom inside a folder of modules, drawn from the sources.
//!
//! A room is a folder whose files and folders are its members; its root file is the member `mod`. A member uses another one if
//! its code names a path into that member, or calls a function that is there alone ([`super::methods`]). A name that the root file
//! imports belongs to the member that it comes from. A circle is a set of members that all use each other, directly or through others.
//!
//! ```text
//! sources -> paths, calls -> arrows between members -> circles -> layers: a member stands above all members that it uses
//! ```

use std::collections::{BTreeMap, BTreeSet};

use super::methods::Methods;
use super::source::{File, code, is_word, without_tests};

/// The member that stands for a room's root file.
const ROOT: &str = "mod";

/// Of each arrow of a circle this many names are told.
const NAMED_COUNT_MAX: usize = 4;

/// A folder of modules, with what its members use of each other.
pub(super) struct Room {
    members: BTreeSet<String>,
    /// From one member to another, with the names by which it is used.
    arrows: BTreeMap<(String, String), BTreeSet<String>>,
    /// Members of which the root file imports all names: whose a name is cannot be told then.
    pub(super) globs: BTreeSet<String>,
}

/// A circle: its members, and the arrows between them.
pub(super) struct Circle {
    pub(super) members: Vec<String>,
    pub(super) arrows: Vec<String>,
}

/// A file of a room: its path of modules below the room, and its code.
struct Source {
    path: String,
    modules: Vec<String>,
    code: String,
}

impl Source {
    fn is_root(&self) -> bool {
        self.modules.is_empty()
    }

    fn member(&self) -> String {
        self.modules.first().cloned().unwrap_or_else(|| ROOT.to_owned())
    }
}

fn is_root_name(part: &str) -> bool {
    matches!(part, "mod" | "lib" | "main")
}

impl Room {
    /// The room `folder` of a crate whose root is `crate_folder`; both end in `/`. `methods`: those that its code may call.
    pub(super) fn read(files: &[File], folder: &str, crate_folder: &str, methods: &Methods) -> Self {
        let is_program = files.iter().any(|file| file.path.strip_prefix(folder) == Some("main.rs"));
        let sources = files.iter().filter_map(|file| {
            let below = file.path.strip_prefix(folder)?.strip_suffix(".rs")?;
            // Beside a program's root stands a library of names: it is no part of the program.
            if is_program && below == "lib" {
                return None;
            }
            let is_test = file.is_test() || below.ends_with("_tests");
            let modules = below.split('/').filter(|part| !is_root_name(part)).map(str::to_owned).collect();
            let code = without_tests(&code(file.text.as_ref()?));
            (!is_test).then(|| Source { path: file.path.clone(), modules, code })
        });
        let above = folder.strip_prefix(crate_folder).unwrap_or_default();
        let above: Vec<String> =
            above.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let sources: Vec<Source> = sources.collect();
        let mut room = Self::of(&sources, &above);
        room.follow(&sources, methods);
        room
    }

    fn of(sources: &[Source], above: &[String]) -> Self {
        let children: BTreeSet<String> =
            sources.iter().filter(|source| !source.is_root()).map(Source::member).collect();
        let root = sources.iter().find(|source| source.is_root()).map_or("", |source| source.code.as_str());
        let (imports, body) = imports(root, &children, above);
        let mut arrows: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for source in sources {
            let own: Vec<&str> = above.iter().chain(&source.modules).map(String::as_str).collect();
            for path in paths(&source.code) {
                let whole = absolute(&path, &own);
                let Some(inside) = whole.strip_prefix(above) else { continue };
                let Some(name) = inside.first() else { continue };
                let target = match imports.get(name) {
                    _ if children.contains(name) => name.clone(),
                    Some(Some(member)) => member.clone(),
                    Some(None) => continue, // the root file imports it from elsewhere
                    None => ROOT.to_owned(),
                };
                if target != source.member() && !source.is_root() {
                    arrows.entry((source.member(), target)).or_default().insert(inside.join("::"));
                }
            }
        }
        for child in &children {
            let is_named =
                find_words(&body, child).iter().any(|at| after(&body, *at, child).starts_with("::"));
            let mut of_child = imports.iter().filter(|(_, member)| member.as_ref() == Some(child));
            if is_named || of_child.any(|(name, _)| !find_words(&body, name).is_empty()) {
                arrows.entry((ROOT.to_owned(), child.clone())).or_default().insert(child.clone());
            }
        }
        let globs = globs(root, &children);
        let mut members = children;
        members.insert(ROOT.to_owned());
        Self { members, arrows, globs }
    }

    /// Draws the arrows of calls: from a member to the one that has the function, if there is one alone that may have it.
    fn follow(&mut self, sources: &[Source], methods: &Methods) {
        let members: BTreeMap<&str, String> =
            sources.iter().map(|source| (source.path.as_str(), source.member())).collect();
        for source in sources {
            for (name, files) in methods.calls(&source.path, &source.code) {
                let targets: BTreeSet<Option<&String>> =
                    files.into_iter().map(|path| members.get(path)).collect();
                if let (1, Some(Some(target))) = (targets.len(), targets.first())
                    && **target != source.member()
                {
                    let arrow = (source.member(), (*target).clone());
                    self.arrows.entry(arrow).or_default().insert(format!("{name}()"));
                }
            }
        }
    }

    fn used_by(&self, member: &str) -> impl Iterator<Item = &str> {
        let of_member = self.arrows.keys().filter(move |(from, _)| from == member);
        of_member.map(|(_, to)| to.as_str())
    }

    /// All members that can be reached from `member` along arrows.
    fn reach(&self, member: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&str> = self.used_by(member).collect();
        while let Some(next) = open.pop() {
            if found.insert(next) {
                open.extend(self.used_by(next));
            }
        }
        found
    }

    /// The members in sets: a circle is one set, every other member a set of its own.
    fn sets(&self) -> Vec<BTreeSet<String>> {
        let reach: BTreeMap<&str, BTreeSet<&str>> =
            self.members.iter().map(|member| (member.as_str(), self.reach(member))).collect();
        let mut sets: Vec<BTreeSet<String>> = Vec::new();
        for member in &self.members {
            let is_mutual = |other: &&String| {
                reach.get(member.as_str()).is_some_and(|found| found.contains(other.as_str()))
                    && reach.get(other.as_str()).is_some_and(|found| found.contains(member.as_str()))
            };
            if sets.iter().any(|set| set.contains(member)) {
                continue;
            }
            let mut set: BTreeSet<String> = self.members.iter().filter(is_mutual).cloned().collect();
            set.insert(member.clone());
            sets.push(set);
        }
        sets
    }

    /// The room without its root file: a root file declares its members and holds what they share, so it stands above and below
    /// them at once.
    pub(super) fn without_root(mut self) -> Self {
        self.members.remove(ROOT);
        self.arrows.retain(|(from, to), _| from != ROOT && to != ROOT);
        self
    }

    pub(super) fn circles(&self) -> Vec<Circle> {
        let circles = self.sets().into_iter().filter(|set| set.len() > 1);
        let with_arrows = circles.map(|members| {
            let inside =
                self.arrows.iter().filter(|((from, to), _)| members.contains(from) && members.contains(to));
            let arrows = inside.map(|((from, to), names)| {
                let names: Vec<&str> = names.iter().take(NAMED_COUNT_MAX).map(String::as_str).collect();
                format!("{from} -> {to} by {}", names.join(" "))
            });
            Circle { arrows: arrows.collect(), members: members.iter().cloned().collect() }
        });
        with_arrows.collect()
    }

    /// The room as text: a line for each layer, the lowest first. A layer uses layers below it only.
    pub(super) fn draw(&self) -> String {
        let mut left = self.sets();
        let mut below: BTreeSet<String> = BTreeSet::new();
        let mut lines = Vec::new();
        while !left.is_empty() {
            let is_free = |set: &BTreeSet<String>| {
                set.iter().all(|member| self.used_by(member).all(|to| below.contains(to) || set.contains(to)))
            };
            let (layer, rest): (Vec<_>, Vec<_>) = left.into_iter().partition(is_free);
            let names = layer.iter().map(|set| {
                let names: Vec<&str> = set.iter().map(String::as_str).collect();
                if set.len() > 1 { format!("({})", names.join(" ")) } else { names.join(" ") }
            });
            lines.push(format!("{:>4}  {}", lines.len() + 1, names.collect::<Vec<_>>().join(", ")));
            below.extend(layer.into_iter().flatten());
            left = rest;
        }
        lines.join("\n")
    }
}

/// `path`, which begins with `crate`, `self` or `super`, as the module `own` means it.
fn absolute(path: &[String], own: &[&str]) -> Vec<String> {
    let mut base: Vec<String> = own.iter().map(|part| (*part).to_owned()).collect();
    let mut rest = path;
    while let Some((first, tail)) = rest.split_first() {
        match first.as_str() {
            "crate" => base.clear(),
            "super" => drop(base.pop()),
            "self" => {}
            _ => break,
        }
        rest = tail;
    }
    base.extend(rest.iter().cloned());
    base
}

/// The imports of a root file: each name with the child it comes from, `None` for names from elsewhere. And the file's code
/// without its imports.
fn imports(
    code: &str,
    children: &BTreeSet<String>,
    above: &[String],
) -> (BTreeMap<String, Option<String>>, String) {
    let (mut found, mut body) = (BTreeMap::new(), String::new());
    for statement in code.split_inclusive(';') {
        let Some((before, tree)) = statement.split_once("use ").filter(|(before, _)| is_import(before))
        else {
            body.push_str(statement);
            continue;
        };
        body.push_str(before.rsplit_once('}').map_or("", |(code, _)| code));
        for mut path in expand(tree.trim_end_matches(';')) {
            let inside = match path.split_first() {
                Some((first, rest)) if first == "crate" => rest.strip_prefix(above).unwrap_or_default(),
                Some((first, rest)) if first == "self" => rest,
                _ => path.as_slice(),
            };
            let member = inside.first().filter(|first| children.contains(*first)).cloned();
            if let Some(name) = path.pop().filter(|name| !children.contains(name)) {
                found.insert(name, member);
            }
        }
    }
    (found, body)
}

/// Members of which a root file imports all names.
fn globs(code: &str, children: &BTreeSet<String>) -> BTreeSet<String> {
    let is_imported = |child: &&String| {
        let mut found = code.match_indices(child.as_str());
        found.any(|(at, _)| {
            let begins = code.get(..at).is_some_and(|before| !before.ends_with(is_word));
            begins && after(code, at, child).starts_with("::*")
        })
    };
    children.iter().filter(is_imported).cloned().collect()
}

/// Whether the text right before `use ` ends as the beginning of an import does.
fn is_import(before: &str) -> bool {
    let last = before.lines().next_back().unwrap_or_default().trim();
    last.is_empty() || last.starts_with("pub") && !last.contains(['{', '='])
}

/// All paths in `code` that begin with `crate`, `self` or `super`; a group gives one for each of its names.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for head in ["crate::", "self::", "super::"] {
        for (at, _) in code.match_indices(head) {
            let begins = code.get(..at).is_some_and(|before| !before.ends_with(|c| is_word(c) || c == ':'));
            if begins {
                found.extend(expand(code.get(at..).unwrap_or_default()));
            }
        }
    }
    found
}

/// The paths of a tree such as `a::{b, c::d as e}`; of a renamed one the last part is the new name.
fn expand(tree: &str) -> Vec<Vec<String>> {
    let tree = tree.trim_start();
    if let Some(group) = tree.strip_prefix('{') {
        return group_parts(group).iter().flat_map(|part| expand(part)).collect();
    }
    let name: String = tree.chars().take_while(|c| is_word(*c)).collect();
    if name.is_empty() {
        return Vec::new();
    }
    let rest = tree.get(name.len()..).unwrap_or_default().trim_start();
    if let Some(tail) = rest.strip_prefix("::") {
        let tails = expand(tail);
        if tails.is_empty() {
            return vec![vec![name]];
        }
        return tails.into_iter().map(|tail| std::iter::once(name.clone()).chain(tail).collect()).collect();
    }
    let renamed = rest
        .strip_prefix("as ")
        .map(|tail| -> String { tail.trim_start().chars().take_while(|c| is_word(*c)).collect() });
    // The old name stays in the path, so that a renamed name keeps its module.
    vec![std::iter::once(name).chain(renamed).collect()]
}

/// The parts of a group, up to its closing brace.
fn group_parts(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            ',' | '}' if depth == 0 => {
                parts.push(group.get(start..at).unwrap_or_default());
                start = at + 1;
                if c == '}' {
                    break;
                }
            }
            _ => {}
        }
    }
    parts
}

/// Where `word` stands in `code` as a whole word that is not part of a longer path.
fn find_words(code: &str, word: &str) -> Vec<usize> {
    let is_whole = |at: &usize| {
        let before = code.get(..*at).is_some_and(|before| !before.ends_with(|c| is_word(c) || c == ':'));
        before && !after(code, *at, word).starts_with(is_word)
    };
    code.match_indices(word).map(|(at, _)| at).filter(is_whole).collect()
}

fn after<'a>(code: &'a str, at: usize, word: &str) -> &'a str {
    code.get(at + word.len()..).unwrap_or_default()
}

#[cfg(test)]
fn room(files: &[(&str, &str)]) -> Room {
    let source = |(path, code): &(&str, &str)| Source {
        path: format!("engine/src/log/{path}.rs"),
        modules: path.split('/').filter(|part| !is_root_name(part)).map(str::to_owned).collect(),
        code: (*code).to_owned(),
    };
    let sources: Vec<Source> = files.iter().map(source).collect();
    let methods = Methods::of(sources.iter().map(|source| (source.path.as_str(), source.code.as_str())));
    let mut room = Room::of(&sources, &["log".to_owned()]);
    room.follow(&sources, &methods);
    room
}

#[test]
fn layers_stand_on_the_layers_below() {
    let room = room(&[
        ("mod", "mod a; mod b; mod c;\npub use b::Big;\nuse c::{C, D as E};\nstruct Own; fn f(e: E) {}"),
        ("a", "use super::Big;\nuse crate::index::Other;"),
        ("b", "fn f(x: crate::log::c::C) {}"),
        ("c/deep", "use super::super::Nothing as None; use crate::log::c::more;"),
    ]);
    // `c/deep` names something that the root file does not import: it is the root's own, and the root uses `c`.
    assert_eq!(room.draw(), "   1  (c mod)\n   2  b\n   3  a");
    let circles = room.circles();
    assert_eq!(circles.len(), 1);
    assert_eq!(circles[0].members, ["c", "mod"]);
    assert_eq!(circles[0].arrows, ["c -> mod by Nothing::None", "mod -> c by c"]);
}

#[test]
fn a_name_of_the_root_file_belongs_to_its_member() {
    let room = room(&[
        ("mod", "mod a; mod b;\npub use crate::codec::Written as Head;\nuse b::locked;"),
        ("a", "use super::{Head, locked};"),
        ("b", "use crate::codec::x;"),
    ]);
    assert_eq!(room.draw(), "   1  b, mod\n   2  a");
    assert!(room.circles().is_empty());
    assert!(room.globs.is_empty());
}

#[test]
fn a_root_file_that_imports_all_names_is_seen() {
    let files =
        [("mod", "mod a; mod b;\npub use a::*;\nuse b::{C, d::E};"), ("a", ""), ("b", "use super::Any;")];
    assert_eq!(room(&files).globs, BTreeSet::from(["a".to_owned()]));
}

#[test]
fn a_call_is_an_arrow_to_the_one_member_that_has_the_function() {
    let files = [
        ("mod", "mod a; mod b; mod c;\npub struct Log;"),
        ("a", "impl super::Log {\n    pub fn low(&self) {}\n    pub fn twice(&self) {}\n}"),
        ("b", "impl super::Log {\n    pub fn high(&self) { self.low() }\n}"),
        ("c", "impl Tail {\n    pub fn twice(&self) {}\n}\nfn f() { log.twice() }\nfn g() { log.high() }"),
    ];
    assert_eq!(room(&files).draw(), "   1  mod\n   2  a\n   3  b\n   4  c");
    let circle = ("d", "impl super::Log {\n    pub fn up(&self) { self.high(); self.low() }\n}");
    let back = ("a/more", "impl super::super::Log {\n    fn f(&self) { self.up() }\n}");
    let circles = room(&[&files[..], &[circle, back]].concat()).circles();
    let arrows: Vec<&str> =
        circles.iter().flat_map(|circle| circle.arrows.iter().map(String::as_str)).collect();
    assert_eq!(arrows, ["a -> d by up()", "b -> a by low()", "d -> a by low()", "d -> b by high()"]);
}
