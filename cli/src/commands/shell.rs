//! `acpdb completions`, `acpdb man`, and the reference of all commands: the table of arguments, for other programs.

use std::fmt::Write as _;
use std::path::Path;

use clap::Command;
use clap_complete::env::Shells;

use super::{Code, Failure, Output};
use crate::args::{self, Completions, Man};

pub(crate) fn completions(args: &Completions, output: &mut Output) -> Result<Code, Failure> {
    let shell = args::typed(&args.shell);
    let shells = Shells::builtins();
    let completer = shells.completer(&shell).ok_or_else(|| {
        Failure::new(Code::Failure, format!("this build of acpdb has no completion for {shell}"))
    })?;
    let mut script = Vec::new();
    completer
        .write_registration(crate::complete::VARIABLE, "acpdb", "acpdb", &program(), &mut script)
        .map_err(Failure::io("write", "the script"))?;
    output.bytes(&script)?;
    Ok(Code::Ok)
}

/// The command that starts this program: its bare name if it was called so, else its path.
fn program() -> String {
    let called = std::env::args_os().next().unwrap_or_default();
    let named = Path::new(&called).components().count() == 1;
    match std::env::current_exe() {
        Ok(place) if !named => place.display().to_string(),
        _ => "acpdb".to_owned(),
    }
}

pub(crate) fn man(args: &Man, output: &mut Output) -> Result<Code, Failure> {
    if args.schemas {
        for schema in crate::shapes::schemas() {
            output.json_line(&schema)?;
        }
        return Ok(Code::Ok);
    }
    let Some(folder) = &args.folder else {
        output.bytes(reference().as_bytes())?;
        return Ok(Code::Ok);
    };
    let failed = Failure::io("write", folder.display());
    acpdb_live::files::make_folder(folder).map_err(&failed)?;
    // Pages do not depend on the width of a terminal.
    let command = args::command().disable_help_subcommand(true);
    clap_mangen::generate_to(command, folder).map_err(&failed)?;
    output.note(format!(
        "the pages are in {}; man {}/acpdb.1 shows the first",
        folder.display(),
        folder.display()
    ));
    Ok(Code::Ok)
}

/// Every command with its options, as a page of the book.
pub(crate) fn reference() -> String {
    let mut root = args::command().disable_help_subcommand(true).term_width(100);
    root.build();
    let mut text = "# Command line\n\nEvery command and its options, as `acpdb man --reference` prints them. A test compares them with \
                    the program.\n\nExit codes: 0 done, 1 failure, 2 usage, 3 damage, 4 acknowledged events are missing, \
                    5 conflict, 6 busy, 7 not found, 8 done in part, 9 cannot be read, \
                    130 interrupted.\n"
        .to_owned();
    let mut open = vec![(root, 1)];
    while let Some((mut command, depth)) = open.pop() {
        page(&mut command, depth, &mut text);
        let below = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut below: Vec<_> = below.map(|command| (command.clone(), depth + 1)).collect();
        below.sort_by_key(|(command, _)| std::cmp::Reverse(command.get_display_order()));
        open.append(&mut below);
    }
    text
}

fn page(command: &mut Command, depth: usize, text: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned();
    let top = depth == 1;
    // Options that all commands share are shown once.
    let shared = |id: &str| {
        !top && ["db", "session", "json", "at", "color", "no_pager", "quiet", "help", "version"].contains(&id)
    };
    let ids: Vec<String> = command.get_arguments().map(|argument| argument.get_id().to_string()).collect();
    let mut shown = command.clone();
    for id in ids.iter().filter(|id| shared(id)) {
        shown = shown.mut_arg(id, |argument| argument.hide(true));
    }
    let mut help = String::new();
    for line in shown.render_help().to_string().lines() {
        let line = line.trim_end();
        if !(line.is_empty() && help.is_empty()) {
            help.push_str(line);
            help.push('\n');
        }
    }
    let level = "#".repeat(depth.clamp(2, 4));
    let _ = write!(text, "\n{level} {name}\n\n```text\n{}\n```\n", help.trim_end());
}

#[cfg(test)]
mod tests {
    use super::reference;

    /// `SNAPSHOTS=overwrite cargo test -p acpdb-cli` writes it anew.
    #[test]
    fn the_reference_is_that_of_this_program() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/tests/cli/reference.md");
        let assert = snapbox::Assert::new().action_env(snapbox::assert::DEFAULT_ACTION_ENV);
        assert.eq(snapbox::Data::text(reference()).raw(), snapbox::Data::read_from(&path, None).raw());
    }
}
