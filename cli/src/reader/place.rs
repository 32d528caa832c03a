//! The host in whose own folder a file lies.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use acpdb_hosts::import::ImportFormat;
use acpdb_hosts::session_paths::usual_paths;

/// Names of hosts' folders.
const FOLDERS: [(&str, ImportFormat); 5] = [
    (".claude", ImportFormat::ClaudeCode),
    (".codex", ImportFormat::Codex),
    (".gemini", ImportFormat::GeminiCli),
    (".copilot", ImportFormat::CopilotCli),
    (".pi", ImportFormat::Pi),
];

/// The host in whose folder a file lies, by the usual places and by the names of folders.
pub(crate) fn host_of(path: &Path) -> Option<ImportFormat> {
    static PLACES: OnceLock<Vec<(PathBuf, ImportFormat)>> = OnceLock::new();
    let places = PLACES.get_or_init(|| {
        // Without a home there are no usual places.
        let home = crate::settings::path_in("HOME").unwrap_or_default();
        let places = usual_paths(&crate::settings::variable, &home).into_iter();
        // A place without folders of its own, such as a database that a variable names, may lie anywhere.
        places
            .filter(|place| place.pattern.contains("*/"))
            .map(|place| (place.folder, place.format))
            .collect()
    });
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let usual = places.iter().find(|(folder, _)| path.starts_with(folder)).map(|(_, format)| *format);
    usual.or_else(|| by_name(&path))
}

fn by_name(path: &Path) -> Option<ImportFormat> {
    let names: Vec<&str> = path.iter().filter_map(std::ffi::OsStr::to_str).collect();
    let (at, format) = names.iter().enumerate().rev().find_map(|(at, name)| {
        let (_, format) = FOLDERS.iter().find(|(folder, _)| folder == name)?;
        Some((at, *format))
    })?;
    // Working copies of a project lie there, too.
    (names.get(at + 1) != Some(&"worktrees")).then_some(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_folder_is_known_by_its_name() {
        for (path, host) in [
            ("/home/ada/.claude/plugins/x/fixtures/users.json", Some(ImportFormat::ClaudeCode)),
            ("/backup/.codex/sessions/a.jsonl", Some(ImportFormat::Codex)),
            ("/home/ada/app/.claude/worktrees/x/data/chat.json", None),
            ("/home/ada/app/chat.json", None),
        ] {
            assert_eq!(by_name(Path::new(path)), host, "{path}");
        }
    }
}
