//! A stranger's repository with a hook of the user's running in it.
//!
//! ```text
//! bytes -> traps in project/.acpdb, files beside it, and what the host says -> acpdb hook HOST, in project/
//!          judged: it ends well, says nothing to the model, and nothing in the repository or beside it changes
//! ```
//!
//! The user has said nothing yet, so there is nothing to tell a model: whatever a hook says comes from the repository.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::binary::binary;
use crate::hostile::{Sandbox, traps};

/// Hosts whose hooks run, and events of theirs.
const HOSTS: [&str; 5] = ["claude-code", "codex", "gemini-cli", "copilot-cli", "cursor"];
const EVENTS: [&str; 8] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PreCompact",
    "Stop",
    "SessionEnd",
    "sessionStart",
];
/// Places in the repository that its maker fills, and that a host's event may name.
const FILES: [&str; 6] = [
    "s.jsonl",
    "s/tool-results/a.txt",
    "s/subagents/agent-1.jsonl",
    ".claude/settings.json",
    ".acpdb-not/acpdb.json",
    "src/.acpdb/acpdb.json",
];
/// Longest file that is compared by its bytes.
const READ_BYTES_MAX: u64 = 1 << 20;

/// The input of a hook, and its host.
#[derive(Debug)]
pub struct Told {
    host: &'static str,
    input: Vec<u8>,
}

/// A repository in a sandbox, and what the host says there.
///
/// # Errors
/// Those of the system.
pub fn prepare(bytes: &[u8]) -> io::Result<(Sandbox, Told)> {
    let sandbox = Sandbox::new()?;
    let (first, rest) = bytes.split_at(bytes.len() / 2);
    for trap in traps(first) {
        // One may leave no place for the next.
        let _ = sandbox.set(&trap);
    }
    let project = project(&sandbox);
    let mut draw = rest.iter().copied().chain(std::iter::repeat(0));
    let mut byte = || usize::from(draw.next().unwrap_or_default());
    let (host, event, kind, file) = (byte(), byte(), byte(), byte());
    let text = rest.get(4..).unwrap_or_default();
    for (number, name) in FILES.iter().enumerate() {
        if file >> number & 1 == 1 {
            let path = project.join(name);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, text)?;
        }
    }
    let words = String::from_utf8_lossy(text).into_owned();
    let place = project.join(FILES.get(byte() % FILES.len()).copied().unwrap_or("s.jsonl"));
    let mut said = json!({
        "hook_event_name": EVENTS.get(event % EVENTS.len()),
        "session_id": "n1",
        "cwd": project,
        "transcript_path": place,
        "prompt": "the words of the user",
        "tool_name": "Read",
        "tool_input": {"file_path": project.join("src/a.rs")},
    });
    // The maker of a repository chooses some of the words that a host says.
    let member =
        ["session_id", "cwd", "transcript_path", "tool_input", "tool_response", "source"].get(kind % 8);
    if let (Some(member), Some(said)) = (member, said.as_object_mut()) {
        let _before = said.insert((*member).to_owned(), Value::String(words));
    }
    let input = if kind % 8 == 7 { text.to_vec() } else { said.to_string().into_bytes() };
    let host = HOSTS.get(host % HOSTS.len()).copied().unwrap_or("claude-code");
    Ok((sandbox, Told { host, input }))
}

fn project(sandbox: &Sandbox) -> PathBuf {
    sandbox.root().join("project")
}

/// Runs the hook.
///
/// # Errors
/// Those of the system; the program is missing.
///
/// # Panics
/// With the reason, if the hook did what a repository must not make it do.
pub fn judge(sandbox: &Sandbox, told: &Told) -> io::Result<()> {
    let program = binary().map_err(io::Error::other)?;
    let before = (tree(&project(sandbox)), sandbox.bait()?);
    let home = sandbox.root().join("home");
    fs::create_dir_all(&home)?;
    let mut command = Command::new(program);
    command.args(["hook", told.host, "--mode", "suggest", "--event", "SessionStart"]);
    command.current_dir(project(sandbox)).env_clear().env("TZ", "UTC");
    command.env("HOME", &home).env("ACPDB_ANY_FILE_SYSTEM", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // A hook that has read enough closes its end.
    let _ = child.stdin.take().map(|mut input| input.write_all(&told.input));
    let done = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&done.stdout);
    assert_eq!(done.status.code(), Some(0), "{told:?}: {}", String::from_utf8_lossy(&done.stderr));
    assert!(!said.contains("additionalContext") && !said.contains("additional_context"), "{told:?}: {said}");
    assert!(before == (tree(&project(sandbox)), sandbox.bait()?), "{told:?} changed something");
    Ok(())
}

/// A file or folder as a write to it would have changed it.
type Seen = (u32, u64, u64, (i64, i64), Vec<u8>);

/// Everything below a folder. A file that cannot be looked at is left out, before and after.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let Ok(about) = path.symlink_metadata() else { continue };
            let mut bytes = Vec::new();
            if about.is_dir() {
                folders.push(path.clone());
            } else if about.is_file() && about.len() <= READ_BYTES_MAX {
                bytes = fs::read(&path).unwrap_or_default();
            }
            let changed = (about.mtime(), about.mtime_nsec());
            found.insert(path, (about.mode(), about.ino(), about.len(), changed, bytes));
        }
    }
    found
}
