//! Whether git would take a store, or has taken it: a commit would publish what sessions hold.
//!
//! git itself is not asked, since its settings in a stranger's folder can name programs that it runs.

use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Largest index of git that is looked at.
const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Largest list of ignored files that is looked at.
const LIST_BYTES_MAX: u64 = 1 << 20;

/// How git stands to a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GitStanding {
    /// It is no part of a work tree, or is ignored.
    Apart,
    /// `git add` would take it.
    WouldTake,
    /// It is in git's index.
    Taken,
}

/// Looks at the work tree around a store. A file that cannot be read counts as not there.
pub(super) fn standing(store: &Path) -> GitStanding {
    let Ok(store) = store.canonicalize() else { return GitStanding::Apart };
    let above = store.ancestors().skip(1).find(|above| above.join(".git").symlink_metadata().is_ok());
    // The folder lies below the work tree, here and below.
    let Some((tree, below)) = above.and_then(|tree| Some((tree, store.strip_prefix(tree).ok()?))) else {
        return GitStanding::Apart;
    };
    let git = git_folder(tree);
    let name = below.to_string_lossy().into_owned();
    let index = read(&git.join("index"), INDEX_BYTES_MAX);
    let entry = format!("{name}/").into_bytes();
    if index.windows(entry.len()).any(|bytes| bytes == entry) {
        return GitStanding::Taken;
    }
    let own = read(&store.join(".gitignore"), LIST_BYTES_MAX);
    if lines(&own).any(|line| matches!(line, "*" | "/*" | "**")) {
        return GitStanding::Apart;
    }
    let folders = store.ancestors().skip(1).take_while(|folder| folder.starts_with(tree));
    let lists = folders.map(|folder| (folder.to_owned(), folder.join(".gitignore")));
    let lists = lists.chain([(tree.to_owned(), git.join("info/exclude"))]);
    let mut ignored = lists.filter_map(|(folder, list)| {
        // As above.
        let below = store.strip_prefix(&folder).ok()?.to_string_lossy().into_owned();
        let list = read(&list, LIST_BYTES_MAX);
        lines(&list).any(|line| covers(line, &below)).then_some(())
    });
    if ignored.next().is_some() { GitStanding::Apart } else { GitStanding::WouldTake }
}

/// The folder with git's own files; of a second work tree it is named in a file.
fn git_folder(tree: &Path) -> PathBuf {
    let git = tree.join(".git");
    if git.is_dir() {
        return git;
    }
    let text = read(&git, LIST_BYTES_MAX);
    let text = String::from_utf8_lossy(&text);
    text.trim().strip_prefix("gitdir:").map_or(git.clone(), |named| tree.join(named.trim()))
}

fn read(path: &Path, bytes_max: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    if path.metadata().is_ok_and(|found| found.is_file())
        && let Ok(file) = std::fs::File::open(path)
    {
        // The rest of a file that breaks off is not looked at.
        let _ = file.take(bytes_max).read_to_end(&mut bytes);
    }
    bytes
}

fn lines(list: &[u8]) -> impl Iterator<Item = &str> {
    // A line that is no UTF-8 names no folder of ours.
    let lines = list.split(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    lines.map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Whether a line ignores the folder `below`, in the forms that people use for a folder.
fn covers(line: &str, below: &str) -> bool {
    let line = line.trim_end_matches("/**").trim_end_matches("/*").trim_end_matches('/');
    let anywhere = line.strip_prefix("**/").unwrap_or(line);
    let mut parts = below.split('/');
    let is_name = !anywhere.contains('/')
        && parts.any(|part| part == anywhere || (anywhere == ".*" && part.starts_with('.')));
    let rooted = line.trim_start_matches('/');
    let is_path = below == rooted || below.strip_prefix(rooted).is_some_and(|rest| rest.starts_with('/'));
    !rooted.is_empty() && (is_name || is_path)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `git add -A` took a project's log and its secret.
    #[test]
    fn a_store_that_git_would_take_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let store = root.join("app/.acpdb");
        std::fs::create_dir_all(&store).unwrap();
        assert_eq!(standing(&store), GitStanding::Apart);
        std::fs::create_dir_all(root.join(".git/info")).unwrap();
        assert_eq!(standing(&store), GitStanding::WouldTake);
        for (list, line, is_apart) in [
            ("app/.acpdb/.gitignore", "*\n", true),
            ("app/.acpdb/.gitignore", "# none\n*.tmp\n", false),
            (".gitignore", "target\n.acpdb/\n", true),
            (".gitignore", "/.acpdb\n", false),
            (".gitignore", "/app/.acpdb\n", true),
            (".gitignore", "app\n", true),
            (".gitignore", "ap\n", false),
            ("app/.gitignore", "/.acpdb/*\n", true),
            (".git/info/exclude", "**/.acpdb\n", true),
        ] {
            std::fs::write(root.join(list), line).unwrap();
            let expected = if is_apart { GitStanding::Apart } else { GitStanding::WouldTake };
            assert_eq!(standing(&store), expected, "{list}: {line:?}");
            std::fs::remove_file(root.join(list)).unwrap();
        }
        std::fs::write(root.join(".git/index"), b"DIRC\0\0\0\x02..app/.acpdb/acpdb.json\0").unwrap();
        std::fs::write(store.join(".gitignore"), "*\n").unwrap();
        assert_eq!(standing(&store), GitStanding::Taken);
    }
}
