//! The project that a folder belongs to, by text alone.
//!
//! ```text
//! /home/ada/app/.claude/worktrees/quick-fix       /home/ada/app         working copies that hosts make belong to their project
//! /home/ada/app/.worktrees/x/lib                  /home/ada/app/lib
//! D:\LD\P   D:/LD/P   d:\ld\p                      d:\ld\p               Windows tells neither case nor slashes apart
//! ```

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Folders of working copies, within their project.
const WORKTREES: [&[&str]; 2] = [&[".claude", "worktrees"], &[".worktrees"]];

/// The project of a folder; another name is itself.
///
/// ```
/// use acpdb_engine::text::project_of;
///
/// assert_eq!(project_of("/home/ada/app/.claude/worktrees/quick-fix"), "/home/ada/app");
/// assert_eq!(project_of("/home/ada/app/"), "/home/ada/app");
/// assert_eq!(project_of("D:/LD/P"), project_of(r"d:\ld\p"));
/// assert_eq!(project_of("shop"), "shop");
/// ```
pub fn project_of(folder: &str) -> Cow<'_, str> {
    let folder = spelled(folder);
    let separator = if is_of_windows(&folder) { '\\' } else { '/' };
    if !folder.contains(separator) {
        return folder;
    }
    let mut names: Vec<&str> = folder.split(separator).collect();
    let count = names.len();
    // An agent in a working copy may make copies of its own.
    while let Some((at, behind)) = working_copy(&names) {
        names.drain(at..behind);
    }
    if names.len() == count { folder.clone() } else { Cow::Owned(names.join(&separator.to_string())) }
}

/// Where the names that lead from a project to a working copy of it stand.
fn working_copy(names: &[&str]) -> Option<(usize, usize)> {
    WORKTREES.iter().find_map(|worktrees| {
        let at = names.windows(worktrees.len()).position(|window| window == *worktrees)?;
        let behind = at + worktrees.len();
        // A project is above it, and the copy's name behind it.
        let is_one = at > 1 && names.get(behind).is_some_and(|name| !name.is_empty());
        is_one.then_some((at, behind + 1))
    })
}

/// The one spelling of a folder.
fn spelled(folder: &str) -> Cow<'_, str> {
    if !is_of_windows(folder) {
        let whole = folder.trim_end_matches('/');
        // The root keeps its slash; a name that is no folder is as it is.
        let is_folder = folder.starts_with('/') && !whole.is_empty();
        let Some(below) = whole.strip_prefix('/').filter(|below| is_folder && has_idle_names(below, '/'))
        else {
            return Cow::Borrowed(if is_folder { whole } else { folder });
        };
        return Cow::Owned(format!("/{}", without_idle_names(below, '/')));
    }
    let spelled = folder.to_lowercase().replace('/', "\\");
    // The form of long paths, in which some programs write all.
    let spelled = match spelled.strip_prefix(r"\\?\unc\") {
        Some(share) => format!(r"\\{share}"),
        None => spelled.strip_prefix(r"\\?\").unwrap_or(&spelled).to_owned(),
    };
    let (server, below) = spelled.strip_prefix(r"\\").map_or(("", &*spelled), |below| (r"\\", below));
    let whole = format!("{server}{}", without_idle_names(below, '\\'));
    // A drive keeps its slash.
    Cow::Owned(if whole.ends_with(':') { format!("{whole}\\") } else { whole })
}

/// Whether a path has names that lead nowhere: two separators in a row, a dot.
fn has_idle_names(path: &str, separator: char) -> bool {
    path.split(separator).any(|name| matches!(name, "" | "."))
}

fn without_idle_names(path: &str, separator: char) -> String {
    let names: Vec<&str> = path.split(separator).filter(|name| !matches!(*name, "" | ".")).collect();
    names.join(&separator.to_string())
}

/// The projects that go by another name, by what was told of them in the order of telling.
///
/// ```
/// use acpdb_engine::text::ProjectMoves;
///
/// let mut moves = ProjectMoves::default();
/// moves.tell("/home/ada/app", "/srv/app");
/// assert_eq!(moves.folder("/home/ada/app/lib"), "/srv/app/lib");
/// assert_eq!(moves.project("/home/ada/app/.worktrees/x"), "/srv/app");
/// moves.tell("/srv/app", "/home/ada/app");
/// assert_eq!(moves.project("/home/ada/app"), "/home/ada/app");
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProjectMoves(BTreeMap<String, String>);

impl ProjectMoves {
    /// From here on `from` goes by `to`, and `to` by its own name.
    pub fn tell(&mut self, from: &str, to: &str) {
        self.0.remove(to);
        if from == to {
            return;
        }
        self.0.insert(from.to_owned(), to.to_owned());
    }

    /// The moves that hold: each old name with the one that took its place.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(from, to)| (from.as_str(), to.as_str()))
    }

    /// The place where a folder is now; a folder that was not moved is itself.
    pub fn folder<'f>(&self, folder: &'f str) -> Cow<'f, str> {
        if self.0.is_empty() {
            return Cow::Borrowed(folder);
        }
        let mut now = spelled(folder);
        let mut told = BTreeSet::new();
        // Each move leads on once: folders that were moved into themselves come to an end, too.
        while let Some((from, to)) = self.nearest(&now, &told) {
            let rest = now.get(from.trim_end_matches(SEPARATORS).len()..).unwrap_or_default();
            let rest = if is_of_windows(to) { rest.replace('/', "\\") } else { rest.replace('\\', "/") };
            now = Cow::Owned(format!("{}{rest}", to.trim_end_matches(SEPARATORS)));
            told.insert(from);
        }
        if told.is_empty() { Cow::Borrowed(folder) } else { now }
    }

    /// The project of a folder, by the name that it goes by now.
    pub fn project<'f>(&self, folder: &'f str) -> Cow<'f, str> {
        match self.folder(folder) {
            Cow::Borrowed(folder) => project_of(folder),
            Cow::Owned(folder) => Cow::Owned(project_of(&folder).into_owned()),
        }
    }

    /// The move of the folder itself, or of the nearest one above it, that has not led on yet.
    fn nearest<'m>(&'m self, folder: &str, told: &BTreeSet<&'m str>) -> Option<(&'m str, &'m str)> {
        let leads = |(from, to): &(&'m str, &'m str)| {
            !told.contains(from) && is_within(folder, from) && !(is_within(to, from) && is_within(folder, to))
        };
        self.iter().filter(leads).max_by_key(|(from, _)| from.len())
    }
}

const SEPARATORS: [char; 2] = ['/', '\\'];

/// Whether `folder` is `above`, or a folder below it.
pub fn is_within(folder: &str, above: &str) -> bool {
    let rest = folder.strip_prefix(above);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(SEPARATORS) || above.ends_with(SEPARATORS))
}

/// Whether a path begins with a drive, or names a server.
fn is_of_windows(path: &str) -> bool {
    let bytes = path.as_bytes();
    let is_drive = matches!(bytes, [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic());
    is_drive || path.starts_with("\\\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn working_copies_belong_to_their_project_and_windows_has_one_spelling() {
        for (folder, project) in [
            ("/home/ada/app", "/home/ada/app"),
            ("/home/ada/app/.claude/worktrees/x", "/home/ada/app"),
            ("/home/ada/app/.claude/worktrees/x/packages/core", "/home/ada/app/packages/core"),
            ("/home/ada/app/.worktrees/x", "/home/ada/app"),
            ("/home/ada/app/.claude/worktrees/x/.claude/worktrees/y", "/home/ada/app"),
            ("/home/ada/app/.worktrees/x/.claude/worktrees/y/core", "/home/ada/app/core"),
            ("/home/ada/app/.claude/worktrees", "/home/ada/app/.claude/worktrees"),
            ("/.claude/worktrees/x", "/.claude/worktrees/x"),
            ("/home/ada/App", "/home/ada/App"),
            ("/home/ada/app/", "/home/ada/app"),
            ("/home/ada/app/.worktrees/x//", "/home/ada/app"),
            ("/", "/"),
            ("shop/", "shop/"),
            (r"D:\LD\P", r"d:\ld\p"),
            ("D:/LD/P/", r"d:\ld\p"),
            (r"D:\", r"d:\"),
            (r"C:\app\.claude\worktrees\x", r"c:\app"),
            (r"\\Server\Share\P", r"\\server\share\p"),
            (r"\\?\D:\LD\P", r"d:\ld\p"),
            (r"\\?\UNC\Server\Share\P", r"\\server\share\p"),
            (r"D:\\LD\.\P\.", r"d:\ld\p"),
            ("/home/ada//./app/.", "/home/ada/app"),
            ("shop", "shop"),
            ("", ""),
        ] {
            assert_eq!(project_of(folder), project, "{folder}");
        }
    }

    #[test]
    fn a_moved_folder_takes_what_is_below_it_along() {
        type Row<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)]);
        let table: &[Row<'_>] = &[
            (&[], &[("/a", "/a"), ("d:/x", r"d:\x")]),
            (
                &[("/a", "/b")],
                &[
                    ("/a", "/b"),
                    ("/a/lib", "/b/lib"),
                    ("/ab", "/ab"),
                    ("/b", "/b"),
                    ("/a/.claude/worktrees/x/lib", "/b/lib"),
                    ("shop", "shop"),
                ],
            ),
            // A project may move twice, and then back.
            (&[("/a", "/b"), ("/b", "/c")], &[("/a", "/c"), ("/b/x", "/c/x"), ("/c", "/c")]),
            (&[("/a", "/b"), ("/b", "/a")], &[("/a", "/a"), ("/b", "/a")]),
            (&[("/a", "/b"), ("/b", "/c"), ("/c", "/a")], &[("/a", "/a"), ("/b", "/a"), ("/c", "/a")]),
            // A project that is renamed to itself has its own name again.
            (&[("/a", "/b"), ("/a", "/a")], &[("/a", "/a"), ("/b", "/b")]),
            // The nearest folder above decides.
            (&[("/a", "/b"), ("/a/lib", "/lib")], &[("/a/lib/x", "/lib/x"), ("/a/x", "/b/x")]),
            (&[("/a", "/b"), ("/b/lib", "/lib")], &[("/a/lib/x", "/lib/x")]),
            // A folder may move into itself, and out of itself.
            (&[("/a", "/a/old")], &[("/a", "/a/old"), ("/a/x", "/a/old/x"), ("/a/old/x", "/a/old/x")]),
            (&[("/a/old", "/a")], &[("/a/old/x", "/a/x"), ("/a/x", "/a/x")]),
            (&[(r"d:\p", r"e:\q")], &[("D:/P", r"e:\q"), (r"D:\P\Lib", r"e:\q\lib"), (r"d:\pp", r"d:\pp")]),
            (&[(r"d:\p", "/mnt/p")], &[("D:/P/Lib", "/mnt/p/lib")]),
            (&[("d:\\", "e:\\")], &[("D:/P", r"e:\p")]),
            (&[("shop", "store")], &[("shop", "store"), ("shopper", "shopper")]),
        ];
        for (told, projects) in table {
            let mut moves = ProjectMoves::default();
            for (from, to) in *told {
                moves.tell(from, to);
            }
            for (folder, project) in *projects {
                assert_eq!(moves.project(folder), *project, "{folder} after {told:?}");
            }
        }
    }
}
