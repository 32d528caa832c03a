//! Examples for the help of every verb, each of which is parsed by a test.
//!
//! They stand in one table, so that a reader sees the whole language at once, and no verb is added without one.

use clap::Command;

/// An example: what is typed, and what it is for.
type Example = (&'static str, &'static str);

/// Examples by the verb that they belong to. Verbs that are not here bring theirs along.
const EXAMPLES: &[(&str, &[Example])] = &[
    (
        "demo",
        &[
            ("acpdb demo", "your newest session, or the bundled one"),
            ("acpdb demo --bundled --keep tour", "keep the store, to go on with"),
        ],
    ),
    (
        "import",
        &[
            ("acpdb import", "every session in the usual places"),
            ("acpdb import ~/.claude/projects", "all below a folder"),
            ("acpdb import --redact session.jsonl", "without keys and tokens"),
            ("acpdb import laptop.jsonl", "a file that export jsonl wrote, of any store; again adds nothing"),
            (
                "acpdb import --follow",
                "and go on, until interrupted: new lines of hosts are there within a second",
            ),
        ],
    ),
    (
        "resume",
        &[
            ("acpdb resume e38a --at t12", "the session as it was after turn 12, for its own host"),
            ("acpdb resume e38a --in codex", "go on in another host"),
            ("acpdb resume --pruned --dry-run", "with the context that acpdb would send; only say where"),
        ],
    ),
    (
        "tui",
        &[("acpdb tui", "enter opens, / searches, [ and ] go through turns, q ends; needs a build with tui")],
    ),
    (
        "ui",
        &[
            ("acpdb ui", "prints an address to open in a browser; serves until interrupted"),
            ("acpdb ui --redact", "without keys and tokens, until interrupted"),
        ],
    ),
    ("hosts", &[("acpdb hosts", "versions, files, sessions, and records that were not understood")]),
    (
        "service install",
        &[
            ("acpdb service install --dry-run", "the file that would be written"),
            ("acpdb service install --no-start", "write it; from the next login on the store is current"),
        ],
    ),
    ("service status", &[("acpdb service status", "whether it runs")]),
    ("service remove", &[("acpdb service remove", "")]),
    (
        "merge",
        &[
            (
                "acpdb merge ~/laptop/.acpdb",
                "new events of it; sessions that both went on with become branches",
            ),
            ("acpdb merge ~/laptop/.acpdb --erase", "and erase the texts that were erased there"),
        ],
    ),
    (
        "append",
        &[
            ("acpdb append --stdin < events.jsonl", "one commit a line"),
            ("acpdb append --stdin --ack", "print each commit's last seq once it is durable"),
        ],
    ),
    (
        "attach",
        &[
            ("acpdb attach claude", "record every session of Claude Code, and remind"),
            ("acpdb attach codex --mode prune --dry-run", "the changes to its settings, not made"),
            ("acpdb attach gemini --project", "in this project only"),
            ("acpdb attach --status", "whether it works"),
        ],
    ),
    ("detach", &[("acpdb detach claude", "its settings are as they were")]),
    ("hook", &[("acpdb hook claude-code --mode suggest", "as the host runs it; its JSON on standard input")]),
    (
        "plugin",
        &[("acpdb plugin opencode --mode prune", "as opencode's plug-in starts it; a line in, a line out")],
    ),
    (
        "mcp",
        &[
            ("acpdb mcp", "as a host runs it, as a server of tools"),
            ("acpdb mcp --session latest", "for the newest session, if a call names none"),
        ],
    ),
    (
        "proxy",
        &[(
            "acpdb proxy https://api.anthropic.com",
            "needs a build with proxy; then: ANTHROPIC_BASE_URL=http://127.0.0.1:4141 claude",
        )],
    ),
    (
        "step",
        &[
            ("acpdb step latest --format anthropic --inject", "the body of the next request"),
            (
                "acpdb step latest --format openai --tokens-max 50000 --json",
                "with reminders that are due, and obstacles",
            ),
        ],
    ),
    (
        "trust",
        &[
            ("acpdb trust ~/team/.acpdb", "from now on it is used where it is found"),
            ("acpdb trust --list", ""),
            ("acpdb trust --remove ~/team/.acpdb", ""),
        ],
    ),
    (
        "sessions",
        &[
            ("acpdb sessions", "the newest first"),
            ("acpdb sessions tool:edit 'file:src/**' since:2d", "those that edited there"),
            ("acpdb sessions --graph", "with subagents, forks and rewinds"),
        ],
    ),
    (
        "context",
        &[
            ("acpdb context", "of the newest session"),
            ("acpdb context e38a074a --at t12", "current at the end of turn 12"),
            ("acpdb context e38a074a --recorded", "the context as its host had it"),
            ("acpdb context e38a074a --format anthropic", "as the body of a request"),
        ],
    ),
    (
        "context discard",
        &[
            ("acpdb context discard r_3d86c", "one call, by its hash"),
            ("acpdb context discard 'Let me...to it.'", "a message, by how it begins and ends"),
        ],
    ),
    ("context distill", &[("acpdb context distill 'r_3d86c=73 files, none of them tests'", "")]),
    (
        "context restore",
        &[
            ("acpdb context restore r_3d86c", ""),
            ("acpdb context restore --pin '#297'", "and let no rule hide it again"),
        ],
    ),
    ("context pin", &[("acpdb context pin '#297' r_3d86c", "")]),
    ("context unpin", &[("acpdb context unpin '#297'", "")]),
    (
        "history",
        &[
            ("acpdb history --chain r_3d86c", "an item and those that superseded it, oldest first"),
            ("acpdb history state:superseded rule:file turn:10..20", ""),
            ("acpdb history --file src/orders/routes.ts --json", ""),
            ("acpdb history --sort shown --limit 10", "the items that fill the context"),
        ],
    ),
    (
        "log",
        &[
            ("acpdb log --last 20", "the newest events"),
            ("acpdb log --follow", "and new events, until interrupted"),
            ("acpdb log 'tool:grep or tool:glob' not status:failed", ""),
        ],
    ),
    (
        "show",
        &[
            ("acpdb show '#297'", "an event with its texts"),
            ("acpdb show toolu_01Demo0003 --raw", "the host's record, byte for byte"),
        ],
    ),
    (
        "list",
        &[
            ("acpdb list 'text:connection refused' 'tokens:>1000'", "search in texts"),
            ("acpdb list kind:message --short -s e38a | head", "how each message begins"),
        ],
    ),
    ("explain", &[("acpdb explain r_3d86c", ""), ("acpdb explain '#297' --at t60", "how it stood then")]),
    (
        "at",
        &[
            ("acpdb at t12 e38a074a", "the end of turn 12"),
            ("acpdb at '2026-03-12 09:10'", "in local time; also 14:05, 'last Tuesday', '2 days ago'"),
            ("acpdb at @compact-1", "just before the newest compaction"),
        ],
    ),
    (
        "diff",
        &[
            ("acpdb diff @compact-1 head", "items that the newest compaction took away"),
            ("acpdb diff t10 t20 --session e38a074a", ""),
        ],
    ),
    (
        "blame",
        &[
            ("acpdb blame src/orders/routes.ts", "the calls that changed the file"),
            ("acpdb blame '#297'", "the events that put an item where it stands"),
        ],
    ),
    (
        "rewind",
        &[
            ("acpdb rewind t12", "turn 12 is the last that stays"),
            ("acpdb rewind -1t --session e38a074a", "take the newest turn off"),
        ],
    ),
    (
        "fork",
        &[("acpdb fork e38a074a", ""), ("acpdb fork e38a074a --at t12 --id shop-2", "from a point of it")],
    ),
    ("undo", &[("acpdb undo --dry-run", "the act that would be taken back"), ("acpdb undo '#435'", "")]),
    (
        "redo",
        &[("acpdb redo --dry-run", "the act to hold again"), ("acpdb redo", "the newest that is undone")],
    ),
    (
        "export html",
        &[
            ("acpdb export html -o session.html", "a page to look at and to hand on"),
            ("acpdb export html latest --at t12 > then.html", "as it was after turn 12"),
            ("acpdb export html --redact -o share.html", "without texts that look like secrets"),
            (
                "acpdb export html --all --pages sessions -o index.html",
                "all sessions, with links to their pages",
            ),
        ],
    ),
    ("export poster", &[("acpdb export poster -o tokens.svg", "figures only, and no text of the session")]),
    (
        "export jsonl",
        &[
            (
                "acpdb export jsonl -o all.jsonl",
                "duckdb: select tool, sum(tokens) from 'all.jsonl' group by 1",
            ),
            ("acpdb export jsonl e38a074a latest -o two.jsonl --force", ""),
            ("acpdb export jsonl --only events -o away.jsonl", "for another store: acpdb import away.jsonl"),
        ],
    ),
    (
        "export sqlite",
        &[(
            "acpdb export sqlite -o all.sqlite",
            "needs a build with sqlite; select rule, count(*) from edges group by 1",
        )],
    ),
    (
        "export parquet",
        &[("acpdb export parquet -o all.parquet", "needs a build with parquet; for DuckDB, pandas, Polars")],
    ),
    (
        "export otlp-json",
        &[("acpdb export otlp-json e38a074a -o spans.jsonl --texts", "with parameters and results")],
    ),
    (
        "scan",
        &[
            ("acpdb scan", "well-known forms of keys and tokens"),
            ("acpdb scan --redact-rule 'ticket=TCK-[0-9]{6}'", ""),
        ],
    ),
    (
        "lint",
        &[
            ("acpdb lint --format anthropic request.json", ""),
            ("acpdb lint --format openai next.json --previous first.json", "is it a prefix?"),
        ],
    ),
    (
        "cost",
        &[
            ("acpdb cost", "every day"),
            ("acpdb cost --by session --since 7d", "the dearest sessions of a week, subagents included"),
            ("acpdb cost --by model --waste", "and the share of stale items"),
            ("acpdb cost --show-prices", "the table of prices, to change and give with --prices"),
        ],
    ),
    (
        "search",
        &[
            ("acpdb search 'silent clamp'", "in every session, the newest first"),
            ("acpdb search clampLimit cursor tool:edit", "both words, in edits"),
            (
                "acpdb search -e 'function \\w+Limit' -C 2 --session latest",
                "a regular expression, with lines around",
            ),
            ("acpdb search error --sort shown --limit 5", "sorted by how much the model still sees"),
        ],
    ),
    (
        "stats",
        &[
            ("acpdb stats", "all sessions"),
            ("acpdb stats latest --style acp", "as the plug-in prints it"),
            ("acpdb stats tool:read", "reads only"),
        ],
    ),
    ("todo list", &[("acpdb todo list", ""), ("acpdb todo list --at t12", "the list of then")]),
    ("todo stuck", &[("acpdb todo stuck", "")]),
    ("todo history", &[("acpdb todo history --session e38a074a", "")]),
    (
        "memory add",
        &[
            ("acpdb memory add preference style/indent tabs", "KEY VALUE; the older value is superseded"),
            ("acpdb memory add decision 'SQLite for the cache' --rationale 'no server'", "gets the id d1"),
            ("acpdb memory add decision 'files for the cache'", "and this one d2"),
        ],
    ),
    ("memory get", &[("acpdb memory get style/indent", "")]),
    ("memory list", &[("acpdb memory list", ""), ("acpdb memory list --all --kind decision", "")]),
    ("memory supersede", &[("acpdb memory supersede d1 d2 --reason 'measured again'", "")]),
    ("memory retract", &[("acpdb memory retract d1 --reason 'never built'", "")]),
    ("memory restore", &[("acpdb memory restore d1", "")]),
    ("memory history", &[("acpdb memory history style/indent", "")]),
    (
        "memory propose",
        &[
            ("acpdb memory propose latest", ""),
            ("acpdb memory propose latest --accept 1", "record the first of them"),
        ],
    ),
    ("memory insights", &[("acpdb memory insights", "")]),
    ("memory import", &[("acpdb memory import decisions.jsonl --project shop", "")]),
    ("memory export", &[("acpdb memory export --all --project shop > memory.jsonl", "")]),
    ("task list", &[("acpdb task list", "")]),
    ("task update", &[("acpdb task update < tasks.json", "")]),
    ("task archive", &[("acpdb task archive 3 --session e38a074a", "")]),
    ("task scratchpad", &[("acpdb task scratchpad", "")]),
    ("policy show", &[("acpdb policy show", ""), ("acpdb policy show --session e38a074a", "")]),
    (
        "policy set",
        &[
            ("acpdb policy set balanced", "a preset, for later events"),
            ("acpdb policy set repeat=off", "one rule less"),
            ("acpdb policy set retry=on --session e38a074a --reason trial", ""),
        ],
    ),
    (
        "policy import",
        &[("acpdb policy import agent-context-pruning.jsonc --dry-run", "a plug-in's settings as a policy")],
    ),
    ("policy presets", &[("acpdb policy presets", "")]),
    (
        "verify",
        &[
            ("acpdb verify", "every digest and link"),
            ("acpdb verify --deep --json", "the conclusions, too"),
            ("acpdb verify --expect-file ~/links", "against the link that acpdb head printed then"),
            ("acpdb verify --host", "against the digests of requests that hosts recorded"),
        ],
    ),
    (
        "init",
        &[
            ("acpdb --db ~/notes/.acpdb init", "a store in that folder"),
            ("acpdb --db ~/sealed init --encrypt", "one that only its key opens"),
        ],
    ),
    (
        "key rotate",
        &[
            ("acpdb --db ~/vault key rotate", "a new key beside your settings"),
            ("acpdb --db ~/vault key rotate --data", "other keys for later events"),
            ("acpdb --db ~/vault key rotate --to ~/vault.key", "or in this file"),
        ],
    ),
    ("key new", &[("acpdb key new work", "for acpdb checkpoint sign --key work")]),
    ("key show", &[("acpdb key show > auditor.key", "for people who check")]),
    (
        "key trust",
        &[
            ("acpdb key trust auditor.key", "a file, or the key itself"),
            ("acpdb key trust", "which are"),
            ("acpdb key trust auditor.key --remove", ""),
        ],
    ),
    ("doctor", &[("acpdb doctor", "")]),
    ("info", &[("acpdb info", ""), ("acpdb info --space", "by kind, by state, by segment")]),
    ("seal", &[("acpdb seal", ""), ("acpdb seal --all", "the segment that is being written, too")]),
    (
        "reindex",
        &[
            ("acpdb reindex", ""),
            ("acpdb reindex --discard-evidence", "after an older copy was put back on purpose"),
        ],
    ),
    ("config list", &[("acpdb config list", "")]),
    ("config get", &[("acpdb config get pager", "")]),
    (
        "config set",
        &[
            ("acpdb config set pager 'less -S'", ""),
            ("acpdb config set redact true", "import never records texts that look like keys"),
        ],
    ),
    ("config unset", &[("acpdb config unset pager", "")]),
    ("config path", &[("acpdb config path", "")]),
    (
        "completions",
        &[
            ("acpdb completions bash > ~/.local/share/bash-completion/completions/acpdb", ""),
            ("acpdb completions zsh > ~/.zfunc/_acpdb", ""),
            ("acpdb completions fish > ~/.config/fish/completions/acpdb.fish", ""),
        ],
    ),
    ("man", &[("acpdb man ~/.local/share/man/man1", "then: man acpdb")]),
];

/// Adds the examples to the help of each verb, before what the help ends with anyway.
pub(super) fn with(root: Command) -> Command {
    EXAMPLES.iter().fold(root, |root, (path, examples)| {
        let words: Vec<&str> = path.split(' ').collect();
        at(root, &words, &|verb| {
            let mut text = text(examples);
            if let Some(more) = verb.get_after_help() {
                text.push_str("\n\n");
                text.push_str(&more.to_string());
            }
            verb.after_help(text)
        })
    })
}

/// Changes the verb at a path of at most two words.
fn at(root: Command, path: &[&str], change: &dyn Fn(Command) -> Command) -> Command {
    match path {
        [] => change(root),
        // A verb that is not there is what the test below is for, not a reason to stop.
        [name, ..] if root.find_subcommand(name).is_none() => root,
        [name, rest @ ..] => root.mut_subcommand(name, |verb| match rest {
            [] => change(verb),
            [name, ..] if verb.find_subcommand(name).is_some() => verb.mut_subcommand(name, change),
            _ => verb,
        }),
    }
}

fn text(examples: &[Example]) -> String {
    let width = examples.iter().map(|(typed, _)| typed.len()).max().unwrap_or_default();
    let mut text = if examples.len() == 1 { "Example:".to_owned() } else { "Examples:".to_owned() };
    for (typed, about) in examples {
        text.push_str("\n  ");
        if about.is_empty() {
            text.push_str(typed);
        } else {
            text.push_str(&format!("{typed:width$}   {about}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Command;
    use proptest::prelude::*;

    use super::EXAMPLES;
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
        for (path, _) in EXAMPLES {
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
