//! Projects and their names.

use std::path::{Component, Path, PathBuf};

use acpdb_engine::text::project_of;
use clap::Subcommand;
use clap::builder::{StringValueParser, TypedValueParser};

#[derive(Debug, Subcommand)]
pub(crate) enum ProjectAct {
    /// Say that a project goes by another name, since its folder was moved; renaming it back takes this back
    #[command(
        after_help = "Sessions, memory and filters then go by the new name, also those of folders below. Nothing recorded \
                            changes. Sessions that are recorded under the old name later go by the new one, too.\n\n\
                            If the new name has sessions of its own, both are one project from then on. `acpdb project rename \
                            OLD OLD` separates them again."
    )]
    Rename(ProjectRename),
    /// The projects with their sessions, and the names that they had before
    List,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ProjectRename {
    /// The folder where the project was, or its name
    #[arg(value_name = "OLD", value_hint = clap::ValueHint::DirPath)]
    pub(crate) old: String,
    /// The folder where it is now, or its new name
    #[arg(value_name = "NEW", value_hint = clap::ValueHint::DirPath)]
    pub(crate) new: String,
}

/// A project of an option: `.`, `..` and paths that begin so are folders from the working folder on, all else is a name.
pub(super) fn project_name() -> impl TypedValueParser<Value = String> {
    StringValueParser::new().map(|typed| {
        let first = Path::new(&typed).components().next();
        let is_from_here = matches!(first, Some(Component::CurDir | Component::ParentDir));
        if is_from_here { project_at(&typed, &|_| false) } else { typed }
    })
}

/// The name of a project as it is typed: a known name, a whole path, or a path from the working folder.
pub(crate) fn project_at(typed: &str, is_known: &dyn Fn(&str) -> bool) -> String {
    let trimmed = typed.trim_end_matches(['/', '\\']);
    let trimmed = if trimmed.is_empty() { typed } else { trimmed };
    let name = project_of(trimmed).into_owned();
    let is_relative = Path::new(trimmed).is_relative() && name == trimmed;
    let is_path = trimmed.contains(std::path::MAIN_SEPARATOR) || matches!(trimmed, "." | "..");
    let looks_whole =
        trimmed.starts_with('/') || trimmed.get(1..2) == Some(":") || trimmed.starts_with("\\\\");
    if is_known(&name) || !is_relative || !is_path || looks_whole {
        return name;
    }
    // Without a working folder the name stays as it was typed.
    let Ok(here) = std::env::current_dir() else { return name };
    let mut whole = PathBuf::new();
    for part in here.join(trimmed).components() {
        match part {
            Component::ParentDir => {
                whole.pop();
            }
            Component::CurDir => {}
            part => whole.push(part),
        }
    }
    whole.to_str().map_or(name, |whole| project_of(whole).into_owned())
}
