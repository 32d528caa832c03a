//! The help of the program itself: its verbs in groups, and topics that belong to no verb.
//!
//! The texts of the verbs are those of the table of arguments; here is only which stands where. A test compares, so that a new
//! verb cannot be forgotten.

use std::fmt::Write as _;

use clap::builder::styling::{Effects, Style};
use unicode_width::UnicodeWidthStr as _;

/// Widest line of the help, as of clap's own.
const WIDTH_MAX: usize = 100;
/// Where the texts begin.
const TEXT_COLUMN: usize = 15;

/// Verbs by what one wants to do.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start here", &["demo", "init", "import", "attach", "sessions", "search", "cost"]),
    (
        "Look",
        &["ui", "context", "lost", "history", "explain", "show", "log", "stats", "simulate", "todo", "task"],
    ),
    ("Time", &["diff", "blame", "rewind", "fork", "resume", "undo"]),
    ("Memory and rules", &["memory", "project", "policy"]),
    ("Beside an agent", &["run", "step", "mcp", "statusline", "proxy", "service", "append", "detach"]),
    ("Hand on", &["export", "backup", "restore"]),
    ("Secrets and proofs", &["scan", "erase", "key", "checkpoint"]),
    ("The store", &["info", "verify", "doctor"]),
    ("The program", &["config", "completions", "help"]),
];

/// Options of the program itself, not of a verb.
const TOPICS: &[(&str, &str)] = &[
    ("ids", "\
Ids

  #812, 812, @812    an event, or the item that it began; a shell wants quotes around #812, and none around the others
  #812.2             the second part of a message
  r_3d86c            an item by its short hash, as tombstones show it
  toolu_01AbC        a call by the id that its host gave it
  e38a074a           a session by the beginning of its id; `latest` is the newest

If a beginning fits several, the verb names them and changes nothing.
"),
    ("points", "\
Points in time, for --at, diff, rewind and fork

  812, @812, #812    the end of that event
  t12                the end of turn 12
  -3t                three turns back
  @compact-1         before the newest compaction; @rewind-1 before the newest rewind
  2026-01-31         the end of that day; \"2026-01-31 14:05\", 14:05, \"yesterday 14:05\", \"last Tuesday\"
  10m ago            ten minutes before now
  head               the newest event
"),
    ("filters", "\
Filters, for log, history, stats, sessions and search; cost takes those of sessions and times

  tool:grep          calls of a tool            file:src/*.ts    calls on a file
  kind:call          calls, texts, results      status:failed    how a call ended
  is:superseded      stale items                turn:10..20      a range; also seq:, tokens:
  session:e38a       one session                host:codex       sessions of a host
  title:, project:, model:, cost:>1, duration:>1h                of whole sessions

All conditions must hold. Put `or` between two, `not` before one, brackets around several. docs/QUESTIONS.md has all conditions.
"),
    ("codes", "\
Exit codes

  0  done            3  damage                            6  busy: another process writes
  1  failure         4  acknowledged events are missing   7  not found
  2  usage           5  conflict: read again              8  done in part
  9  locked: a key is missing, or is the wrong one                              130  interrupted
"),
    ("encryption", "\
Encryption

  acpdb init --encrypt                   a store that only its key opens
  acpdb init --encrypt --passphrase      the same, with a passphrase
  acpdb key rotate                       wraps the store's key by another key
  acpdb verify                           needs no key; verify --deep does

Each store has one key, which seals all that it records. What opens it is a file beside your settings (keys/*.store-key), the
file of --key-file or $ACPDB_KEY_FILE, or a passphrase: $ACPDB_PASSPHRASE, else asked for on the terminal (a new one:
$ACPDB_NEW_PASSPHRASE). With --keyring, in a program that was built with --features keyring, the system's keyring holds it, and
the file beside your settings says where. Keep a copy elsewhere: without it not even you can read the store.

A key file that is named for a store that is missing or not encrypted is refused. To destroy all that a store holds, delete its
file key and all copies of it. To destroy one session, tenant or person alone, give it a store of its own.

  acpdb backup URL --encrypt             what is shipped can be read with its key alone; the store here stays as it is

The key of what is shipped is wrapped in the same ways, and lies there as s/STORE/meta/object-key: without that object, what was
shipped is noise. Verbs that read a URL find the key as they find that of a store. A store stays there as it began.

An encrypted store keeps no index and no saved folds, and packs no segments: opening long sessions takes longer.
Not sealed: how many events there are, when, how long, and which of them are of one session. docs/SECURITY.md says more.
"),
    ("output", "\
Output

Answers go to standard output, remarks and errors to standard error. On a terminal a table leaves out columns that have no room.
If standard output is not a terminal and COLUMNS is not set, cells are whole, with a tab between them: acpdb sessions | cut -f1,3.
A title of more than 200 columns is cut even there; --json has it whole.
--json prints one value a line, with its `schema`: acpdb man --schemas prints all of these as JSON Schemas.
NO_COLOR and --color never take colours away.
"),
];

/// The names of the topics.
pub(super) fn topics() -> Vec<&'static str> {
    TOPICS.iter().map(|(topic, _)| *topic).collect()
}

/// The text of a topic.
pub(super) fn topic(name: &str) -> Option<&'static str> {
    TOPICS.iter().find(|(topic, _)| *topic == name).map(|(_, text)| *text)
}

/// The table of arguments whose help lists its verbs in groups.
pub(super) fn with(command: clap::Command) -> clap::Command {
    let width = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let width = width.or_else(|| Some(usize::from(terminal_size::terminal_size_of(std::io::stdout())?.0.0)));
    let template = template(&command, width.unwrap_or(WIDTH_MAX).clamp(40, WIDTH_MAX));
    command.help_template(template)
}

fn template(command: &clap::Command, width: usize) -> String {
    let heading = Style::new().effects(Effects::BOLD | Effects::UNDERLINE);
    let name = Style::new().bold();
    let mut text = "{before-help}{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (group, verbs) in GROUPS {
        let _ = writeln!(text, "\n{heading}{group}:{heading:#}");
        for verb in *verbs {
            // A verb that this program was built without.
            if command.find_subcommand(verb).is_some_and(clap::Command::is_hide_set) {
                continue;
            }
            let about = match command.find_subcommand(verb) {
                Some(found) => found.get_about().map(ToString::to_string).unwrap_or_default(),
                None => "The help of a verb, or of a topic".to_owned(),
            };
            // A terminal that is narrower than the names gets a word on a line.
            let lines = wrapped(&about, width.saturating_sub(TEXT_COLUMN));
            let mut lines = lines.iter();
            let first = lines.next().map_or("", String::as_str);
            // A name that reaches into the text's column has no blank behind it.
            let gap = " ".repeat(TEXT_COLUMN.saturating_sub(2 + verb.len()));
            let _ = writeln!(text, "  {name}{verb}{name:#}{gap}{first}");
            for line in lines {
                let _ = writeln!(text, "{}{line}", " ".repeat(TEXT_COLUMN));
            }
        }
    }
    let topics: Vec<&str> = TOPICS.iter().map(|(topic, _)| *topic).collect();
    let _ = writeln!(text, "\n{heading}Topics:{heading:#} {}  (acpdb help TOPIC)", topics.join(", "));
    let _ = write!(text, "\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    text
}

/// A text in lines of so many columns; a word that is longer stands alone.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_stands_in_one_group_and_no_topic_hides_one() {
        let command = super::super::command();
        let grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let count = grouped.iter().filter(|name| **name == verb.get_name()).count();
            assert_eq!(count, 1, "{} stands in {count} groups", verb.get_name());
        }
        for name in grouped.iter().filter(|name| **name != "help") {
            assert!(command.find_subcommand(name).is_some(), "{name} is no verb");
        }
        for (topic, text) in TOPICS {
            assert!(command.find_subcommand(topic).is_none(), "{topic} is a verb");
            assert!(text.ends_with('\n') && text.lines().all(|line| line.width() <= 132), "{topic}");
        }
    }

    #[test]
    fn help_is_as_wide_as_the_terminal() {
        for width in [40, 80, 100] {
            let text = template(&<super::super::Args as clap::CommandFactory>::command(), width);
            let plain = anstream::adapter::strip_str(&text).to_string();
            let verbs = plain.split("Topics:").next().unwrap_or_default();
            let wide: Vec<&str> =
                verbs.lines().filter(|line| line.width() > width && !line.contains('{')).collect();
            assert!(wide.is_empty(), "{width}: {wide:?}");
        }
    }
}
