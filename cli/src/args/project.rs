//! Projects and their names.

use clap::Subcommand;

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
