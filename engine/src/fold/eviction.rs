//! The texts in place of faces that a task's completion or a rolling prune hides. `fold/step/tasks.rs` decides which faces
//! these are.

use std::fmt::Write as _;

use super::policy::TaskArchive;
use crate::text::words::shell_word;

/// The text in place of an output; `summary` is given at the last place only, where the summary stands.
pub fn output_text(task: &str, session: &str, summary: Option<&str>, archive: TaskArchive) -> String {
    if let Some(summary) = summary {
        return format!("[Task {task} completed. Raw logs evicted to archive. \nSUMMARY: {summary}]");
    }
    let hint = archive_hint(task, session, archive);
    format!("[Task {task} completed: output evicted to archive. {hint}")
}

/// The text in place of an assistant's words; `summary` is given at the last place only, where the summary stands.
pub fn words_text(task: &str, summary: Option<&str>) -> String {
    let mut text = format!("[Assistant thinking/text for task {task} evicted to save tokens.");
    if let Some(summary) = summary {
        let _ = write!(text, " \nSUMMARY: {summary}");
    }
    text.push(']');
    text
}

/// The text in place of an output that a rolling prune hid.
pub fn rolling_text(task: &str, session: &str, archive: TaskArchive) -> String {
    format!(
        "[Tool output for task {task} evicted (Rolling Prune) to keep context small. {}",
        archive_hint(task, session, archive)
    )
}

fn archive_hint(task: &str, session: &str, archive: TaskArchive) -> String {
    match archive {
        TaskArchive::File => {
            format!("Use 'grep' on {} if previous logs are needed.]", archive_path(task, session))
        }
        TaskArchive::Command => {
            let (task, session) = (shell_word(task), shell_word(session));
            format!("Use `acpdb task archive {task} --session {session}` if previous logs are needed.]")
        }
    }
}

/// Path of the file into which a host writes a task's archive, relative to the host's folder.
pub fn archive_path(task: &str, session: &str) -> String {
    format!(".sigma/archives/{}/{}.log", path_part(session), path_part(task))
}

/// An id as part of a path: letters, digits, `.`, `_` and `-` stay, every other character becomes `_`.
fn path_part(id: &str) -> String {
    let keep = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-');
    id.chars().map(|c| if keep(c) { c } else { '_' }).collect()
}

#[cfg(test)]
mod tests;
