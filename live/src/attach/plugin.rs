//! The plug-in of acpdb as a file in a host's folder of plug-ins: the host finds it there by itself, and none of the user's
//! own settings is touched.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::{AttachError, Plan, backup, read};
use crate::host::{Host, Mode};

/// The plug-in for opencode, as it is published.
const OPENCODE: &str = include_str!("../../assets/opencode.js");
/// The extension for Pi, likewise.
const PI: &str = include_str!("../../assets/pi.ts");
/// How the file begins that acpdb writes.
const MARK: &str = "// acpdb wrote this file; `acpdb detach ";
/// The line in which the plug-in keeps how it was attached.
const SETTINGS: &str = "const ATTACHED = {}";

/// The file that attaching writes.
fn text(host: Host, program: &Path, store: Option<&Path>, mode: Mode) -> String {
    let settings = json!({
        "program": program.to_string_lossy(),
        "db": store.map(Path::to_string_lossy),
        "mode": mode.name(),
    });
    let source = if host == Host::Pi { PI } else { OPENCODE };
    let plugin = source.replacen(SETTINGS, &format!("const ATTACHED = {settings}"), 1);
    format!("{MARK}{host}` removes it.\n{plugin}")
}

/// What attaching changes. Nothing is written.
///
/// # Errors
/// If the file cannot be read, or is of another program.
pub fn attach(
    path: &Path,
    host: Host,
    program: &Path,
    store: Option<&Path>,
    mode: Mode,
) -> Result<Plan, AttachError> {
    let before = own(path)?;
    let after = Some(text(host, program, store, mode));
    Ok(Plan { path: path.to_owned(), before, after, backup: backup(path), is_attach: false })
}

/// What detaching changes. Nothing is written.
///
/// # Errors
/// As [`attach`].
pub fn detach(path: &Path) -> Result<Plan, AttachError> {
    let before = own(path)?;
    Ok(Plan { path: path.to_owned(), before, after: None, backup: backup(path), is_attach: false })
}

/// How the plug-in at `path` is attached, as JSON; `None` if it is not there, or not ours.
pub fn found(path: &Path) -> Option<String> {
    let text = own(path).ok()??;
    let line = text.lines().find_map(|line| line.strip_prefix("const ATTACHED = "))?;
    Some(line.to_owned())
}

/// The file, if acpdb wrote it.
fn own(path: &Path) -> Result<Option<String>, AttachError> {
    let text = read(path)?;
    match &text {
        Some(text) if !text.starts_with(MARK) => Err(AttachError::Taken { path: PathBuf::from(path) }),
        _ => Ok(text),
    }
}

impl Plan {
    /// The change in a few lines, where the file is ours alone: the plug-in itself is no news.
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
