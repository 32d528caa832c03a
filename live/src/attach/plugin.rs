//! The plug-in of acpdb as a file in a host's folder of plug-ins: the host finds it there by itself, and none of the user's
//! own settings is touched.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{AttachError, HostCommand, SettingsBackup, SettingsPlan, backup, plain, read};
use crate::host::Host;

/// The plug-in for opencode, as it is published.
const OPENCODE: &str = include_str!("../../assets/opencode.js");
/// The extension for Pi, as it is published.
const PI: &str = include_str!("../../assets/pi.ts");
/// The beginning of a file that acpdb writes.
const MARK: &str = "// acpdb wrote this file; `acpdb detach ";
/// The line in which the plug-in keeps its settings.
const SETTINGS: &str = "const ATTACHED = {}";

/// The file that attaching writes.
fn text(run: &HostCommand<'_>) -> Result<String, AttachError> {
    let settings = json!({
        "program": plain(run.program)?,
        "db": run.store.map(plain).transpose()?,
        "mode": run.mode.name(),
    });
    let host = run.host;
    let source = if host == Host::Pi { PI } else { OPENCODE };
    let plugin = source.replacen(SETTINGS, &format!("const ATTACHED = {settings}"), 1);
    Ok(format!("{MARK}{host}` removes it.\n{plugin}"))
}

/// The change that attaching makes. Nothing is written.
///
/// # Errors
/// If the file cannot be read, or is of another program, or a path cannot be written into it.
pub fn attach(path: &Path, run: &HostCommand<'_>) -> Result<SettingsPlan, AttachError> {
    let before = own(path)?;
    let after = Some(text(run)?);
    Ok(SettingsPlan {
        path: path.to_owned(),
        before,
        after,
        backup: backup(path),
        kept: SettingsBackup::Stays,
    })
}

/// The change that detaching makes. Nothing is written.
///
/// # Errors
/// As [`attach`].
pub fn detach(path: &Path) -> Result<SettingsPlan, AttachError> {
    let before = own(path)?;
    Ok(SettingsPlan {
        path: path.to_owned(),
        before,
        after: None,
        backup: backup(path),
        kept: SettingsBackup::Goes,
    })
}

/// The settings of the plug-in at `path`, as JSON; `None` if it is not there, or not ours.
///
/// # Errors
/// If the file cannot be read.
pub fn found(path: &Path) -> Result<Option<String>, AttachError> {
    let text = match own(path) {
        Err(AttachError::Taken { .. }) => None,
        text => text?,
    };
    let mut lines = text.iter().flat_map(|text| text.lines());
    Ok(lines.find_map(|line| line.strip_prefix("const ATTACHED = ")).map(str::to_owned))
}

/// The program in settings that [`found`] gave.
pub fn program_of(attached: &str) -> Option<PathBuf> {
    // A line that a person has changed names no program; the line itself is shown.
    let settings: serde_json::Value = serde_json::from_str(attached).ok()?;
    settings.get("program")?.as_str().map(PathBuf::from)
}

/// The file, if acpdb wrote it.
fn own(path: &Path) -> Result<Option<String>, AttachError> {
    let text = read(path)?;
    match &text {
        Some(text) if !text.starts_with(MARK) => Err(AttachError::Taken { path: PathBuf::from(path) }),
        _ => Ok(text),
    }
}

impl SettingsPlan {
    /// The change in a few lines, for a file that is ours alone: only the line of settings is shown.
    pub fn summary(&self) -> String {
        let line = |text: &Option<String>| {
            let text = text.as_deref()?;
            let settings = text.lines().find(|line| line.starts_with("const ATTACHED = "))?;
            Some(format!("{} ({} lines)", settings, text.lines().count()))
        };
        if self.is_nothing() {
            return String::new();
        }
        let path = self.path.display();
        let mut out = format!("--- {path}\n+++ {path}\n");
        for (sign, text) in [('-', line(&self.before)), ('+', line(&self.after))] {
            out.extend(text.map(|text| format!("{sign}{text}\n")));
        }
        out
    }
}
