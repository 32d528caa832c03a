//! Where hosts keep their sessions, as patterns; nothing here looks at the disk.
//!
//! ```text
//! usual_paths(environment, home)  ->  [ SessionPath { format, folder, pattern } ]        pure
//! caller: walk each folder, keep the files that `SessionPath::holds`, open them with the importer of `format`
//! ```
//!
//! Environment values come in through a function, so that tests and programs with their own settings can give other values. A
//! variable that is set but empty counts as absent, as in the hosts themselves. Folders that do not exist are listed all the
//! same: only the caller can know.
//!
//! Not decided here: which of several files of one session counts (a resumed Gemini session leaves its old `.json` beside the
//! new `.jsonl`; both carry the same origins, so importing both adds nothing), and how a database is read.

use std::path::{Path, PathBuf};

use acpdb_engine::text::Globs;

use crate::import::ImportFormat;

/// A folder in which a host keeps sessions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionPath {
    /// The format of the files.
    pub format: ImportFormat,
    /// The folder to walk.
    pub folder: PathBuf,
    /// Pattern of the files below the folder that are sessions: `*` stays within a name, `**/` is any number of folders.
    pub pattern: String,
}

impl SessionPath {
    fn new(format: ImportFormat, folder: PathBuf, pattern: impl Into<String>) -> Self {
        Self { format, folder, pattern: pattern.into() }
    }

    /// Whether a file, named relative to [`SessionPath::folder`] with `/` or `\` between folders, belongs to this path.
    ///
    /// Cost: the product of both lengths at worst.
    pub fn holds(&self, relative: &str) -> bool {
        let names: Vec<&str> = relative.split(['/', '\\']).filter(|name| !name.is_empty()).collect();
        // Only a pattern that is longer than the names of files cannot be compiled: it holds none.
        Globs::paths([&self.pattern]).is_ok_and(|globs| globs.is_match(&names.join("/")))
    }
}

/// The folders in which hosts usually keep sessions, for the formats that have one.
///
/// `env` returns the value of an environment variable; `home` is the user's folder. Order: Claude Code, opencode, Codex, Gemini
/// CLI, Copilot CLI, Pi; for each host the newer form first. Plain message lists, SWE-agent runs and memory files have no usual
/// folder.
///
/// # Examples
/// ```
/// use std::path::Path;
///
/// let paths = acpdb_hosts::session_paths::usual_paths(&|_| None, Path::new("/home/ada"));
/// assert!(paths.iter().any(|path| path.folder == Path::new("/home/ada/.codex/sessions")));
/// ```
pub fn usual_paths(env: &dyn Fn(&str) -> Option<String>, home: &Path) -> Vec<SessionPath> {
    let folder = |variable: &str, otherwise: &[&str]| match env(variable).filter(|value| !value.is_empty()) {
        Some(value) => PathBuf::from(value),
        None => otherwise.iter().fold(home.to_path_buf(), |path, name| path.join(name)),
    };
    let claude = folder("CLAUDE_CONFIG_DIR", &[".claude"]);
    let codex = folder("CODEX_HOME", &[".codex"]);
    let copilot = folder("COPILOT_HOME", &[".copilot"]);
    let gemini = home.join(".gemini").join("tmp");
    let opencode = folder("XDG_DATA_HOME", &[".local", "share"]).join("opencode");

    // Subagents lie in `<slug>/<session>/subagents/` or beside their session: one pattern takes both.
    let mut paths = vec![SessionPath::new(ImportFormat::ClaudeCode, claude.join("projects"), "**/*.jsonl")];
    match env("OPENCODE_DB").filter(|value| !value.is_empty()).map(PathBuf::from) {
        Some(file) => paths.extend(file_path(&file)),
        None => paths.push(SessionPath::new(ImportFormat::Opencode, opencode.clone(), "opencode*.db")),
    }
    paths.push(SessionPath::new(ImportFormat::Opencode, opencode.join("storage"), "session/*/*.json"));
    for sessions in ["sessions", "archived_sessions"] {
        // Older sessions are packed.
        for pattern in ["**/rollout-*.jsonl", "**/rollout-*.jsonl.zst"] {
            paths.push(SessionPath::new(ImportFormat::Codex, codex.join(sessions), pattern));
        }
    }
    for pattern in ["*/chats/session-*.jsonl", "*/chats/session-*.json", "*/chats/*/*.jsonl"] {
        paths.push(SessionPath::new(ImportFormat::GeminiCli, gemini.clone(), pattern));
    }
    paths.push(SessionPath::new(ImportFormat::CopilotCli, copilot.join("session-state"), "*/events.jsonl"));
    // The folder that this variable names holds the sessions of all projects side by side.
    let sessions = env("PI_CODING_AGENT_SESSION_DIR").filter(|value| !value.is_empty()).map(PathBuf::from);
    let sessions =
        sessions.unwrap_or_else(|| folder("PI_CODING_AGENT_DIR", &[".pi", "agent"]).join("sessions"));
    paths.push(SessionPath::new(ImportFormat::Pi, sessions, "**/*.jsonl"));
    paths
}

/// The path that holds only this file.
fn file_path(file: &Path) -> Option<SessionPath> {
    let name = file.file_name()?.to_string_lossy().into_owned();
    let folder = file.parent().map(Path::to_path_buf).unwrap_or_default();
    Some(SessionPath::new(ImportFormat::Opencode, folder, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::{Expect, expect};

    fn check(variables: &[(&str, &str)], want: &Expect) {
        let env = |name: &str| {
            variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_string())
        };
        let lines: Vec<String> = usual_paths(&env, Path::new("/home/ada"))
            .iter()
            .map(|place| format!("{} {} {}", place.format, place.folder.display(), place.pattern))
            .collect();
        want.assert_eq(&(lines.join("\n") + "\n"));
    }

    #[test]
    fn without_settings_all_places_lie_below_home() {
        check(
            &[],
            &expect![[r"
                claude-code /home/ada/.claude/projects **/*.jsonl
                opencode /home/ada/.local/share/opencode opencode*.db
                opencode /home/ada/.local/share/opencode/storage session/*/*.json
                codex /home/ada/.codex/sessions **/rollout-*.jsonl
                codex /home/ada/.codex/sessions **/rollout-*.jsonl.zst
                codex /home/ada/.codex/archived_sessions **/rollout-*.jsonl
                codex /home/ada/.codex/archived_sessions **/rollout-*.jsonl.zst
                gemini-cli /home/ada/.gemini/tmp */chats/session-*.jsonl
                gemini-cli /home/ada/.gemini/tmp */chats/session-*.json
                gemini-cli /home/ada/.gemini/tmp */chats/*/*.jsonl
                copilot-cli /home/ada/.copilot/session-state */events.jsonl
                pi /home/ada/.pi/agent/sessions **/*.jsonl
            "]],
        );
    }

    #[test]
    fn settings_move_places_and_empty_ones_do_not() {
        check(
            &[
                ("CLAUDE_CONFIG_DIR", "/c"),
                ("CODEX_HOME", ""),
                ("COPILOT_HOME", "/p"),
                ("PI_CODING_AGENT_DIR", "/pi"),
                ("XDG_DATA_HOME", "/x"),
                ("OPENCODE_DB", "/db/mine.sqlite"),
            ],
            &expect![[r"
                claude-code /c/projects **/*.jsonl
                opencode /db mine.sqlite
                opencode /x/opencode/storage session/*/*.json
                codex /home/ada/.codex/sessions **/rollout-*.jsonl
                codex /home/ada/.codex/sessions **/rollout-*.jsonl.zst
                codex /home/ada/.codex/archived_sessions **/rollout-*.jsonl
                codex /home/ada/.codex/archived_sessions **/rollout-*.jsonl.zst
                gemini-cli /home/ada/.gemini/tmp */chats/session-*.jsonl
                gemini-cli /home/ada/.gemini/tmp */chats/session-*.json
                gemini-cli /home/ada/.gemini/tmp */chats/*/*.jsonl
                copilot-cli /p/session-state */events.jsonl
                pi /pi/sessions **/*.jsonl
            "]],
        );
    }

    #[test]
    fn patterns_take_the_right_files() {
        let check = |pattern: &str, path: &str, want: bool| {
            let place = SessionPath::new(ImportFormat::Codex, PathBuf::new(), pattern);
            assert_eq!(place.holds(path), want, "{pattern} {path}");
        };
        check("**/rollout-*.jsonl", "2026/04/07/rollout-1-a.jsonl", true);
        check("**/rollout-*.jsonl", "rollout-1-a.jsonl", true);
        check("**/rollout-*.jsonl", "2026\\04\\rollout-1-a.jsonl", true);
        check("**/rollout-*.jsonl", "2026/rollout-1-a.jsonl.bak", false);
        check("**/rollout-*.jsonl", "rollout-x/1.jsonl", false);
        check("*/events.jsonl", "s1/events.jsonl", true);
        check("*/events.jsonl", "events.jsonl", false);
        check("*/events.jsonl", "a/b/events.jsonl", false);
        check("opencode*.db", "opencode-2.db", true);
        check("opencode*.db", "opencode.d", false);
        check("a*b*c", "abbc", true);
        check("ab*ab", "ab", false);
    }
}
