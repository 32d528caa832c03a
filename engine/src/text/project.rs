//! The project that a folder belongs to, by text alone.
//!
//! ```text
//! /home/ada/app/.claude/worktrees/quick-fix       /home/ada/app         working copies that hosts make belong to their project
//! /home/ada/app/.worktrees/x/lib                  /home/ada/app/lib
//! D:\LD\P   D:/LD/P   d:\ld\p                      d:\ld\p               Windows tells neither case nor slashes apart
//! ```

use std::borrow::Cow;

/// Folders of working copies, within their project.
const WORKTREES: [&[&str]; 2] = [&[".claude", "worktrees"], &[".worktrees"]];

/// The project of a folder; another name is itself.
///
/// ```
/// use acpdb_engine::text::project_of;
///
/// assert_eq!(project_of("/home/ada/app/.claude/worktrees/quick-fix"), "/home/ada/app");
/// assert_eq!(project_of("D:/LD/P"), project_of(r"d:\ld\p"));
/// assert_eq!(project_of("shop"), "shop");
/// ```
pub fn project_of(folder: &str) -> Cow<'_, str> {
    let folder = if is_of_windows(folder) {
        let spelled = folder.to_lowercase().replace('/', "\\");
        let whole = spelled.trim_end_matches('\\');
        // A drive keeps its slash.
        Cow::Owned(if whole.ends_with(':') { format!("{whole}\\") } else { whole.to_owned() })
    } else {
        Cow::Borrowed(folder)
    };
    let separator = if is_of_windows(&folder) { '\\' } else { '/' };
    if !folder.contains(separator) {
        return folder;
    }
    let names: Vec<&str> = folder.split(separator).collect();
    let place = WORKTREES.iter().find_map(|worktrees| {
        let at = names.windows(worktrees.len()).position(|window| window == *worktrees)?;
        let behind = at + worktrees.len();
        // A project is above it, and the copy's name behind it.
        let is_one = at > 1 && names.get(behind).is_some_and(|name| !name.is_empty());
        is_one.then_some((at, behind + 1))
    });
    let Some((at, behind)) = place else { return folder };
    let rest = names.get(..at).into_iter().chain(names.get(behind..)).flatten().copied();
    Cow::Owned(rest.collect::<Vec<_>>().join(&separator.to_string()))
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
            ("/home/ada/app/.claude/worktrees", "/home/ada/app/.claude/worktrees"),
            ("/.claude/worktrees/x", "/.claude/worktrees/x"),
            ("/home/ada/App", "/home/ada/App"),
            (r"D:\LD\P", r"d:\ld\p"),
            ("D:/LD/P/", r"d:\ld\p"),
            (r"D:\", r"d:\"),
            (r"C:\app\.claude\worktrees\x", r"c:\app"),
            (r"\\Server\Share\P", r"\\server\share\p"),
            ("shop", "shop"),
            ("", ""),
        ] {
            assert_eq!(project_of(folder), project, "{folder}");
        }
    }
}
