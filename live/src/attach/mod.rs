//! acpdb put into a host's own settings, and taken out again.
//!
//! ```text
//! plan: read the file -> merge -> the change               nothing is written
//! apply: backup beside it with the same mode, new file under another name, rename
//! NAME.made-by-acpdb, beside it: how many folders attaching made, so that detaching removes these and no other
//! ```
//!
//! Detaching gives back the very bytes of before, if nothing else changed the file: then the backup, with our hooks put in once
//! more, equals the file. Else our hooks are taken out of the file as it is.

pub mod plugin;
pub mod settings;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use settings::{HostCommandLine, SettingsError};

use crate::files::{self, replace};
use crate::host::{AttachMode, Host};

/// Largest settings file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// Folders that attaching may make.
const FOLDERS: &str =
    ".claude .codex .gemini .cursor .copilot hooks .github .opencode plugin .pi agent extensions";

/// The owner of the settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingsOwner {
    /// This project's.
    Project,
    /// The user's, for all projects.
    User,
}

/// Why a host's settings were left alone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AttachError {
    /// The host has no place for hooks there.
    #[error("{host} takes hooks of {takes} only")]
    NoPlace {
        /// The host.
        host: Host,
        /// The settings that can hold its hooks.
        takes: &'static str,
    },
    /// There is no home folder.
    #[error("there is no home folder; set HOME, or attach with --project")]
    NoHome,
    /// The file cannot be read or written.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The action that was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A file of that name is there, and acpdb did not write it.
    #[error("{} is there already and is not the plug-in of acpdb; it is left alone", path.display())]
    Taken {
        /// The file.
        path: PathBuf,
    },
    /// A path that settings cannot name.
    #[error("{} cannot be written into a host's settings", path.display())]
    Unnamable {
        /// The path.
        path: PathBuf,
    },
    /// A file of a project is a link that leads out of the project. The author of the project would choose which file is changed.
    #[error("{} leads out of the project, to {}; it is left alone", path.display(), to.display())]
    Leaves {
        /// The link.
        path: PathBuf,
        /// The path that it leads to.
        to: PathBuf,
    },
    /// The content of the file is not understood, so nothing of it is changed.
    #[error("{} is left alone: {source}", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: SettingsError,
    },
}

/// A change to a host's settings, not yet made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingsPlan {
    /// The file.
    pub path: PathBuf,
    /// Its content; `None`: there is no file.
    pub before: Option<String>,
    /// Its new content; `None`: the file goes.
    pub after: Option<String>,
    /// The file that keeps its bytes of before.
    pub backup: PathBuf,
    kept: SettingsBackup,
}

/// The next step for the copy of the settings as they were without acpdb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SettingsBackup {
    Made,
    Stays,
    Goes,
}

/// The file in which a host keeps its hooks. `variable` reads the environment.
///
/// # Errors
/// If the host has no such place, or there is no home folder.
pub fn place(
    host: Host,
    reach: SettingsOwner,
    project: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<PathBuf, AttachError> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = || set("HOME").ok_or(AttachError::NoHome);
    let folder = |name: &str, usual: &str| set(name).map_or_else(|| Ok(home()?.join(usual)), Ok);
    Ok(match (host, reach) {
        // Hooks hold a path of this machine, so they do not go into the file that a team shares.
        (Host::ClaudeCode, SettingsOwner::Project) => project.join(".claude/settings.local.json"),
        (Host::ClaudeCode, SettingsOwner::User) => {
            folder("CLAUDE_CONFIG_DIR", ".claude")?.join("settings.json")
        }
        (Host::Codex, SettingsOwner::Project) => project.join(".codex/hooks.json"),
        (Host::Codex, SettingsOwner::User) => folder("CODEX_HOME", ".codex")?.join("hooks.json"),
        (Host::GeminiCli, SettingsOwner::Project) => project.join(".gemini/settings.json"),
        (Host::GeminiCli, SettingsOwner::User) => home()?.join(".gemini/settings.json"),
        (Host::CopilotCli, SettingsOwner::Project) => project.join(".github/hooks/acpdb-copilot.json"),
        // Copilot CLI runs a project's hooks only in folders that its user trusts, and these everywhere.
        (Host::CopilotCli, SettingsOwner::User) => {
            folder("COPILOT_HOME", ".copilot")?.join("hooks/acpdb.json")
        }
        (Host::Cursor, SettingsOwner::Project) => project.join(".cursor/hooks.json"),
        (Host::Cursor, SettingsOwner::User) => home()?.join(".cursor/hooks.json"),
        (Host::Opencode, SettingsOwner::Project) => project.join(".opencode/plugin/acpdb.js"),
        (Host::Opencode, SettingsOwner::User) => match set("OPENCODE_CONFIG_DIR") {
            Some(folder) => folder.join("plugin/acpdb.js"),
            None => folder("XDG_CONFIG_HOME", ".config")?.join("opencode/plugin/acpdb.js"),
        },
        (Host::Pi, SettingsOwner::Project) => project.join(".pi/extensions/acpdb.ts"),
        (Host::Pi, SettingsOwner::User) => {
            folder("PI_CODING_AGENT_DIR", ".pi/agent")?.join("extensions/acpdb.ts")
        }
        (Host::VsCode, SettingsOwner::Project) => project.join(".github/hooks/acpdb-vscode.json"),
        (Host::VsCode, SettingsOwner::User) => {
            return Err(AttachError::NoPlace { host, takes: "a project (--project)" });
        }
    })
}

/// Refuses settings of a project that are reached through a link out of the project: a cloned project can name any file that way.
///
/// # Errors
/// [`AttachError::Leaves`]; also for a link to nothing, since the file that it names would be made.
pub fn check_within(path: &Path, project: &Path) -> Result<(), AttachError> {
    // The backup is written beside the settings.
    let copy = backup(path);
    let parts = path.ancestors().take_while(|part| *part != project);
    for part in parts.chain([copy.as_path()]) {
        // A path that is not there is no link.
        let Ok(to) = std::fs::read_link(part) else { continue };
        let inside = part.canonicalize().and_then(|real| Ok(real.starts_with(project.canonicalize()?)));
        // A link that leads nowhere may lead out of the project.
        if !inside.unwrap_or(false) {
            return Err(AttachError::Leaves { path: part.to_owned(), to });
        }
    }
    Ok(())
}

/// How a host runs acpdb.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostCommand<'a> {
    /// The program.
    pub program: &'a Path,
    /// The store; without one it is looked for where the agent works.
    pub store: Option<&'a Path>,
    /// The host.
    pub host: Host,
    /// The mode of acpdb in the host.
    pub mode: AttachMode,
}

impl HostCommand<'_> {
    /// The words of the command that a host runs for an event, quoted for a shell.
    ///
    /// # Errors
    /// If a path cannot stand on a line of text.
    pub fn words(&self) -> Result<String, AttachError> {
        let (host, mode) = (self.host, self.mode);
        Ok(format!("{} hook {host} --mode {mode}", self.program_words()?))
    }

    /// The words of the command that Claude Code runs for its status line.
    ///
    /// # Errors
    /// As [`Self::words`].
    pub fn status_line(&self) -> Result<String, AttachError> {
        Ok(format!("{} statusline", self.program_words()?))
    }

    fn program_words(&self) -> Result<String, AttachError> {
        let quoted = |text: &str| {
            let unnamable = |_| AttachError::Unnamable { path: text.into() };
            shlex::try_quote(text).map(std::borrow::Cow::into_owned).map_err(unnamable)
        };
        let option = |name: &str, value: Option<&Path>| match value {
            Some(path) => Ok(format!(" {name} {}", quoted(plain(path)?)?)),
            None => Ok::<_, AttachError>(String::new()),
        };
        let store = option("--db", self.store)?;
        let program = quoted(plain(self.program)?)?;
        Ok(format!("{program}{store}"))
    }
}

/// A path as text that fits on a line. A path that is no UTF-8 would become another path, and the host would run nothing.
fn plain(path: &Path) -> Result<&str, AttachError> {
    let fits = |text: &&str| !text.chars().any(char::is_control);
    path.to_str().filter(fits).ok_or_else(|| AttachError::Unnamable { path: path.to_owned() })
}

/// The program of a command that [`settings::found`] gave.
pub fn program_of(command: &str) -> Option<PathBuf> {
    shlex::split(command)?.into_iter().next().map(PathBuf::from)
}

/// The change that attaching makes. Nothing is written.
///
/// # Errors
/// If the file cannot be read, or the host would not understand it.
pub fn attach(path: &Path, words: &str, host: Host) -> Result<SettingsPlan, AttachError> {
    let before = read(path)?;
    let command = HostCommandLine { words: words.to_owned(), host };
    let text = before.as_deref().unwrap_or_default();
    let failed = |source| AttachError::Settings { path: path.to_owned(), source };
    let has_ours = !settings::found(text, host).map_err(failed)?.is_empty();
    let after = settings::attached(text, &command).map_err(failed)?;
    let is_same = before.as_deref() == Some(&*after);
    let after = if is_same { before.clone() } else { Some(after) };
    // A backup holds the file as it was without us; a file with our hooks in it is no backup.
    let kept = if has_ours { SettingsBackup::Stays } else { SettingsBackup::Made };
    Ok(SettingsPlan { path: path.to_owned(), before, after, backup: backup(path), kept })
}

/// The change that detaching makes. Nothing is written.
///
/// # Errors
/// As [`attach`].
pub fn detach(path: &Path, host: Host) -> Result<SettingsPlan, AttachError> {
    let before = read(path)?;
    let backup = backup(path);
    let plan = |after| SettingsPlan {
        path: path.to_owned(),
        before: before.clone(),
        after,
        backup: backup.clone(),
        kept: SettingsBackup::Goes,
    };
    let Some(text) = before.as_deref() else { return Ok(plan(None)) };
    let failed = |source| AttachError::Settings { path: path.to_owned(), source };
    let text = match host {
        Host::ClaudeCode => settings::without_status_line(text).map_err(failed)?,
        _ => text.to_owned(),
    };
    let text = text.as_str();
    let ours = settings::found(text, host).map_err(failed)?;
    if ours.is_empty() {
        return Ok(plan(Some(text.to_owned())));
    }
    let kept = read(&backup)?;
    if let Some(kept) = &kept
        && is_only_ours(kept, text, &ours, host)
    {
        return Ok(plan(Some(kept.clone())));
    }
    let after = settings::detached(text, host).map_err(failed)?;
    // A file that was there before stays, if empty.
    let after = if after.is_empty() { kept.map(|_| "{}\n".to_owned()) } else { Some(after) };
    Ok(plan(after))
}

/// Whether the backup with our hooks put in equals the file.
fn is_only_ours(kept: &str, now: &str, ours: &[String], host: Host) -> bool {
    ours.iter().any(|line| {
        let words = line.strip_suffix(" 2>/dev/null || true").unwrap_or(line);
        let without_event = words.rsplit_once(" --event ").filter(|_| host == Host::CopilotCli);
        let words = without_event.map_or(words, |(words, _)| words).to_owned();
        settings::attached(kept, &HostCommandLine { words, host }).is_ok_and(|again| again == now)
    })
}

impl SettingsPlan {
    /// The same, with a status line that runs `command`; `false`: one of the user's is there, and stays.
    ///
    /// # Errors
    /// If the settings are not understood.
    pub fn with_status_line(mut self, command: &str) -> Result<(Self, bool), AttachError> {
        let text = self.after.as_deref().unwrap_or_default();
        let made = settings::with_status_line(text, command);
        let made = made.map_err(|source| AttachError::Settings { path: self.path.clone(), source })?;
        let is_made = made.is_some();
        self.after = made.or(self.after);
        Ok((self, is_made))
    }

    /// Whether there is anything to do.
    pub fn is_nothing(&self) -> bool {
        self.before == self.after
    }

    /// The change as lines with `-` and `+`; empty if there is none.
    pub fn diff(&self) -> String {
        if self.is_nothing() {
            return String::new();
        }
        let (old, new) =
            (self.before.as_deref().unwrap_or_default(), self.after.as_deref().unwrap_or_default());
        let diff = similar::TextDiff::from_lines(old, new);
        let name = self.path.display().to_string();
        let gone = "/dev/null".to_owned();
        let old_name = if self.before.is_some() { &name } else { &gone };
        let new_name = if self.after.is_some() { &name } else { &gone };
        diff.unified_diff().context_radius(2).header(old_name, new_name).to_string()
    }

    /// Makes the change. Whole or not at all: the new file takes the name once it is there.
    ///
    /// # Errors
    /// If a file cannot be written; then the settings are as they were.
    pub fn apply(&self) -> Result<(), AttachError> {
        if self.is_nothing() {
            return Ok(());
        }
        let failed = |action, path: &Path| {
            let path = path.to_owned();
            move |source| AttachError::File { action, path, source }
        };
        if let (SettingsBackup::Made, Some(before)) = (self.kept, &self.before) {
            // The backup holds the keys that the settings hold, so it gets their mode.
            let mode = files::FileMode::Of(&self.path);
            replace(&self.backup, before.as_bytes(), mode).map_err(failed("write", &self.backup))?;
        }
        if let Some(after) = &self.after {
            let missing = self.missing_folders();
            replace(&self.path, after.as_bytes(), files::FileMode::Kept)
                .map_err(failed("write", &self.path))?;
            if missing > 0 {
                let (path, text) = (made(&self.path), format!("{missing}\n"));
                replace(&path, text.as_bytes(), files::FileMode::Kept).map_err(failed("write", &path))?;
            }
        } else {
            // A link is the user's, and so is its folder; the file that it leads to held our hooks.
            let file = files::followed(&self.path).map_err(failed("remove", &self.path))?;
            std::fs::remove_file(&file).map_err(failed("remove", &file))?;
            if file == self.path {
                self.remove_made_folders();
            }
        }
        if self.kept == SettingsBackup::Goes && self.backup.exists() {
            std::fs::remove_file(&self.backup).map_err(failed("remove", &self.backup))?;
        }
        Ok(())
    }

    /// The folders that may hold the file, the innermost first.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        let is_known =
            |path: &&Path| path.file_name().is_some_and(|name| FOLDERS.split(' ').any(|known| name == known));
        self.path.ancestors().skip(1).take_while(is_known)
    }

    fn missing_folders(&self) -> usize {
        self.folders().take_while(|folder| folder.symlink_metadata().is_err()).count()
    }

    /// Removes the folders that attaching made for the file, as far as no other file is in them. One that was there before stays, if empty.
    fn remove_made_folders(&self) {
        let made = made(&self.path);
        // Without the note no folder was made.
        let count = read(&made).ok().flatten().and_then(|text| text.trim().parse().ok()).unwrap_or(0_usize);
        // A note that cannot be removed keeps its folder.
        let _ = std::fs::remove_file(&made);
        for folder in self.folders().take(count) {
            // A folder that holds something cannot be removed so, nor one above it.
            if std::fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }
}

/// The note of how many folders were made for a file.
fn made(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".made-by-acpdb");
    path.with_file_name(name)
}

fn backup(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".before-acpdb");
    path.with_file_name(name)
}

fn read(path: &Path) -> Result<Option<String>, AttachError> {
    let failed = |source| AttachError::File { action: "read", path: path.to_owned(), source };
    match std::fs::metadata(path) {
        // A device or a pipe may have no end, and a project that was cloned may name one.
        Ok(metadata) if !metadata.is_file() => Err(failed(std::io::Error::other("it is not a regular file"))),
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            Err(failed(std::io::Error::other(format!("it is longer than {FILE_BYTES_MAX} bytes"))))
        }
        Ok(_) => std::fs::read_to_string(path).map(Some).map_err(failed),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

/// Our commands in the settings of a host that has no plug-in; none if there is no such file.
///
/// # Errors
/// If the file cannot be read, or its text is not understood.
pub fn found(path: &Path, host: Host) -> Result<Vec<String>, AttachError> {
    let Some(text) = read(path)? else { return Ok(Vec::new()) };
    settings::found(&text, host).map_err(|source| AttachError::Settings { path: path.to_owned(), source })
}
