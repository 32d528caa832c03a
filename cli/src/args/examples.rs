//! Examples for the help of every verb, each of which is parsed by a test.
//!
//! They stand in one file, as the help prints them, so that a reader sees the whole language at once, and no verb is
//! added without one: the words of a verb, its examples below, and an empty line. Verbs that are not there bring theirs along.

use clap::Command;

const EXAMPLES: &str = include_str!("examples.txt");

/// The words of each verb, and the lines of its examples.
fn blocks() -> impl Iterator<Item = (&'static str, &'static str)> {
    EXAMPLES.trim_end().split("\n\n").filter_map(|block| block.split_once('\n'))
}

/// Adds the examples to the help of each verb, before what the help ends with anyway.
pub(super) fn with(root: Command) -> Command {
    blocks().fold(root, |root, (path, lines)| {
        let words: Vec<&str> = path.split(' ').collect();
        at(root, &words, &|verb| {
            let heading = if lines.contains('\n') { "Examples" } else { "Example" };
            let more = verb.get_after_help().map(|more| format!("\n\n{more}")).unwrap_or_default();
            verb.after_help(format!("{heading}:\n{lines}{more}"))
        })
    })
}

/// Changes the verb at a path.
fn at(command: Command, path: &[&str], change: &dyn Fn(Command) -> Command) -> Command {
    match path {
        [] => change(command),
        // A verb that is not there is what the test below is for, not a reason to stop.
        [name, ..] if command.find_subcommand(name).is_none() => command,
        [name, rest @ ..] => command.mut_subcommand(name, |verb| at(verb, rest, change)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use proptest::prelude::*;

    use super::blocks;
    use crate::args::{Args, command};

    /// All verbs that do something, by their words.
    fn leaves() -> Vec<(String, Command)> {
        let mut found = Vec::new();
        let mut open = vec![(String::new(), command())];
        while let Some((path, command)) = open.pop() {
            let below: Vec<&Command> = command
                .get_subcommands()
                .filter(|below| below.get_name() != "help" && !below.is_hide_set())
                .collect();
            if below.is_empty() || command.is_args_conflicts_with_subcommands_set() {
                found.push((path.trim().to_owned(), command.clone()));
            }
            open.extend(
                below.into_iter().map(|below| (format!("{path} {}", below.get_name()), below.clone())),
            );
        }
        found
    }

    /// The commands among the lines of a help.
    fn examples(help: &str) -> Vec<String> {
        let typed = help.lines().filter_map(|line| line.strip_prefix("  acpdb"));
        typed.map(|line| format!("acpdb{}", line.split("   ").next().unwrap_or(line))).collect()
    }

    /// Fails unless a line, as it is typed into a shell, is a command of this program.
    fn assert_reads(line: &str) {
        let typed = line.split(' ').take_while(|word| !["<", ">", ">>", "|"].contains(word));
        let typed = typed.collect::<Vec<_>>().join(" ");
        let words = shlex::split(&typed).unwrap_or_else(|| panic!("{line}"));
        if let Err(error) = Args::read(&words) {
            panic!("{line}: {error}");
        }
    }

    #[test]
    fn every_verb_has_examples_and_every_example_is_a_command_of_that_verb() {
        let leaves = leaves();
        assert!(leaves.len() > 40, "the table is walked: {}", leaves.len());
        for (path, verb) in &leaves {
            let mut help = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            // Verbs of a group may have them together.
            if let Some((group, _)) = path.split_once(' ') {
                let group = command()
                    .find_subcommand(group)
                    .and_then(Command::get_after_help)
                    .map(ToString::to_string);
                help.push('\n');
                help.push_str(&group.unwrap_or_default());
            }
            let examples = examples(&help);
            assert!(!examples.is_empty(), "acpdb {path} --help has no example");
            for example in examples {
                assert_reads(&example);
            }
        }
        for (path, _) in blocks() {
            assert!(leaves.iter().any(|(known, _)| known == path), "examples of {path}, which is no verb");
        }
    }

    /// Commands in `sh` blocks of README and book: those that a reader runs at home, not those that a test can play.
    #[test]
    fn every_command_of_the_documents_is_one_of_this_program() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let book = root.join("docs").read_dir().unwrap().map(|entry| entry.unwrap().path());
        let mut count = 0;
        for page in book
            .chain([root.join("README.md")])
            .filter(|path| path.extension().is_some_and(|kind| kind == "md"))
        {
            let text = std::fs::read_to_string(&page).unwrap();
            let mut in_shell = false;
            for line in text.lines() {
                if line.starts_with("```") {
                    in_shell = line == "```sh";
                }
                let line = line.replace("cargo run --release -- ", "acpdb ");
                if !in_shell || !line.starts_with("acpdb ") {
                    continue;
                }
                let typed = line.split("   ").next().unwrap_or_default();
                assert_reads(typed);
                count += 1;
            }
        }
        assert!(count > 10, "commands that were read: {count}");
    }

    #[test]
    fn the_table_of_arguments_is_consistent() {
        command().debug_assert();
    }

    /// Words that the table knows, and some it does not.
    fn word() -> impl Strategy<Value = String> {
        let mut known: Vec<String> = Vec::new();
        for (path, verb) in leaves() {
            known.extend(path.split(' ').map(str::to_owned));
            known.extend(
                verb.get_arguments()
                    .filter_map(|argument| argument.get_long())
                    .map(|long| format!("--{long}")),
            );
        }
        known.sort();
        known.dedup();
        prop_oneof![
            4 => proptest::sample::select(known),
            1 => "[-]{0,3}[a-z=#@.]{0,6}",
            1 => proptest::sample::select(vec!["-", "--", "-n", "-s", "-h", "--at=", "", "=", "#1", "t1", "-3t", "99999999999999999999"])
                .prop_map(str::to_owned),
            1 => any::<String>(),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]
        /// Whatever is typed is understood or refused.
        #[test]
        fn no_words_make_the_parser_panic(words in proptest::collection::vec(word(), 0..8)) {
            let words = std::iter::once("acpdb".to_owned()).chain(words);
            if let Err(error) = Args::read(words) {
                let _ = error.render().to_string();
            }
        }
    }
}
