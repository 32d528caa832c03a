//! The ways back to a session: the command by which its host opens it, and the one by which acpdb writes it as of a point.

use std::path::Path;

use acpdb_engine::store::StreamName;
use acpdb_hosts::resume::{ResumeHost, opens};

use super::lines::one_line;
use super::store_path;

/// The command by which a session's host opens it again, in its folder.
pub(super) fn opening(name: &StreamName) -> Option<String> {
    let command = opens(&name.host, &name.name)?;
    Some(match &name.folder {
        Some(folder) => format!("cd {} && {command}", store_path::quoted(Path::new(folder))),
        None => command,
    })
}

/// The command by which acpdb writes a session as it was at a point; for sessions of hosts that take no file, for another host.
pub(super) fn resuming(name: &StreamName, at: u64) -> String {
    let other = if ResumeHost::from_name(&name.host).is_none() { " --in claude-code" } else { "" };
    format!("acpdb resume {} --at {at}{other}", store_path::typed(&one_line(&name.name)))
}
