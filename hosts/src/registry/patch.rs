//! File keys of a patch text: its headers say which files it adds, changes, removes and moves.

use acpdb_engine::event::ToolClass;

/// Files of a patch, in order, with the class of each change.
///
/// Headers count at line starts; a path runs to the end of its line, trimmed. A file that is updated and moved is
/// deleted at its old path and written at its new one. Duplicates are left in.
pub(super) fn files(patch: &str) -> Vec<(ToolClass, &str)> {
    let mut files: Vec<(ToolClass, &str)> = Vec::new();
    let mut updated = None;
    for line in patch.lines() {
        let Some(header) = line.strip_prefix("*** ") else { continue };
        let named = |name: &str| header.strip_prefix(name).map(str::trim).filter(|path| !path.is_empty());
        if let Some(path) = named("Add File:") {
            files.push((ToolClass::Write, path));
            updated = None;
        } else if let Some(path) = named("Update File:") {
            updated = Some(files.len());
            files.push((ToolClass::Edit, path));
        } else if let Some(path) = named("Delete File:") {
            files.push((ToolClass::Delete, path));
            updated = None;
        } else if let Some(path) = named("Move to:") {
            if let Some((class, _)) = updated.take().and_then(|at| files.get_mut(at)) {
                *class = ToolClass::Delete;
            }
            files.push((ToolClass::Write, path));
        }
    }
    files
}
