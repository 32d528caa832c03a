//! The command line as types: the verbs and the options of all here, those of a verb in the file of its topic.

mod context;
mod cost;
mod examples;
mod export;
mod groups;
mod live;
mod look;
mod memory;
mod moved;
mod policy;
mod project;
mod proof;
mod reach;
mod read;
mod request;
mod search;
mod service;
mod shell;
mod store;
mod task;
mod time;
mod write;

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::global::Global;

pub(crate) use context::*;
pub(crate) use cost::*;
pub(crate) use export::*;
pub(crate) use groups::wrapped;
pub(crate) use live::*;
pub(crate) use look::*;
pub(crate) use memory::*;
pub(crate) use moved::{gone, moved, verb};
pub(crate) use policy::*;
pub(crate) use project::*;
pub(crate) use proof::*;
pub(crate) use reach::*;
pub(crate) use read::*;
pub(crate) use request::*;
pub(crate) use search::*;
pub(crate) use service::*;
pub(crate) use shell::*;
pub(crate) use store::*;
pub(crate) use task::*;
pub(crate) use time::*;
pub(crate) use write::*;

/// An append-only log of what AI agents see and do: the current context, the full history, and the reason for the
/// difference. ("acp" is agent context pruning, not the Agent Client Protocol.)
#[derive(Debug, Parser)]
#[command(name = "acpdb", version, max_term_width = 100, propagate_version = true)]
#[command(
    after_help = "Examples:\n  acpdb demo                      a tour of one of your newest sessions\n  \
    acpdb import                    read the sessions of every host found\n  \
    acpdb context latest            the context that the model should see now\n  \
    acpdb history --chain '#297'    an item and those that superseded it, and why\n\n\
    Ids in examples are those of the demo: acpdb demo --bundled --keep .acpdb"
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// The store at a glance, and what to do next: what acpdb prints without a verb
    #[command(hide = true)]
    Home,
    /// A tour of the most telling of your newest sessions, or of the bundled one
    Demo(Demo),
    /// Make a store here, encrypted if you want
    Init(Init),
    /// Read sessions of agent hosts into the store; reading them again adds nothing
    Import(ImportArgs),
    /// Keep the store current from login on: a service that runs import --follow
    Service(Service),
    /// Append events given as JSON lines on standard input
    Append(Append),
    /// Put acpdb into a host's own settings, so that it records, reminds and prunes there
    Attach(Attach),
    /// Take acpdb out of a host's settings
    Detach(Detach),
    /// Record one event of a host, given on standard input; acpdb attach sets hosts up to run it
    #[command(hide = true)]
    Hook(HookArgs),
    /// A status line for Claude Code: context, dollars, stale tokens, the last compaction; its JSON on standard input
    Statusline,
    /// Answer the plug-in of a host: JSON lines on standard input; acpdb attach sets plug-ins up to run it
    #[command(hide = true)]
    Plugin(Plugin),
    /// Tools for a model, by the Model Context Protocol on standard input and output
    Mcp(Mcp),
    /// A proxy to a provider that records requests and bills, and can send the context that acpdb serves
    Proxy(ProxyArgs),
    /// Run an agent behind a proxy that lasts as long as it does, and changes no settings
    Run(Run),
    /// Begin a step of the model: prints the body to send, recorded as sent
    Step(StepArgs),
    /// The sessions of the store
    Sessions(Sessions),
    /// Words, phrases and regular expressions in all recorded texts; exit code 1 if none is found
    Search(SearchArgs),
    /// The current context of a session; discard, distill and restore parts of it
    Context(ContextArgs),
    /// Everything that ever was in a session, or one chain of items that superseded each other
    History(HistoryArgs),
    /// Files, todos, decisions, failed attempts, prompts and results that compactions took, with ids to bring them back
    Lost(LostArgs),
    /// Events as they were recorded, or their texts
    Log(LogArgs),
    /// One event, item or body, whole
    Show(ShowArgs),
    /// Why something is or is not in the current context
    Explain(Explain),
    /// Items that came, went, were superseded or shown again between two points
    Diff(Diff),
    /// The calls that changed a file, or the events that decided an item's state
    Blame(Blame),
    /// Take everything after a point off a session's branch; it stays in history
    Rewind(RewindArgs),
    /// Go on from a session, or from a point of it (--at), as a new one; nothing is copied
    Fork(Fork),
    /// Write a session as a file with which its host, or another one, goes on (--at: from a point of it)
    Resume(ResumeArgs),
    /// Take back the newest discard, distill, restore, pin or unpin; the next undo takes back the one before
    Undo(UndoArgs),
    /// Sessions as files for browsers, databases and trace viewers; with all recorded texts, secrets included
    #[command(subcommand)]
    Export(ExportAct),
    /// All sessions in a browser, as they grow; on this machine only, and to read only
    Ui(Ui),
    /// Secrets that were recorded: where, and how to erase them
    Scan(ScanArgs),
    /// Tokens that each rule saves
    Stats(StatsArgs),
    /// The cost of sessions in dollars, by day, week, session, project, host or model
    Cost(Cost),
    /// The cost that sessions would have had under other policies and modes
    Simulate(Simulate),
    /// The todo list as it is and as it was
    #[command(subcommand)]
    Todo(TodoAct),
    /// Facts, preferences and decisions
    Memory(MemoryArgs),
    /// Tasks, and the items that were evicted with them
    #[command(subcommand)]
    Task(TaskAct),
    /// The rules by which newer items supersede older ones
    #[command(subcommand)]
    Policy(PolicyAct),
    /// Projects: which there are, and a new name for one whose folder was moved
    #[command(subcommand)]
    Project(ProjectAct),
    /// Check every digest and link; exit code 3: damage, 4: acknowledged events are missing
    Verify(Verify),
    /// Your keys that sign checkpoints, and the keys of others that you trust
    #[command(subcommand)]
    Key(KeyAct),
    /// Sign the history; show and export checkpoints; prove events to people who have no store
    Checkpoint(CheckpointVerb),
    /// Problems of the store, each with its next step; and the repairs
    Doctor(Doctor),
    /// A verified copy of the store, or one below a URL that follows it; writers go on meanwhile
    Backup(BackupArgs),
    /// Make a store anew from the pieces that backup shipped to a URL, verified
    Restore(RestoreArgs),
    /// The contents of the store, its place, and the hosts it was read from
    Info(Info),
    /// Remove an item's content for good, with everything equal to it; the removal stays on record
    Erase(Erase),
    /// Your settings, and the stores of others that you trust
    #[command(subcommand)]
    Config(ConfigAct),
    /// A script that lets your shell complete verbs, options, sessions and ids
    Completions(Completions),
    /// Write the pages of the manual
    #[command(hide = true)]
    Man(Man),
}

/// Reads `--limit`: an answer of no rows would say that there are none.
fn limit(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("an answer has at least one row; leave it out for all".to_owned()),
        Ok(limit) => Ok(limit),
        Err(error) => Err(error.to_string()),
    }
}

/// A value as it is typed.
pub(crate) fn typed(value: &impl clap::ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

/// The table of arguments, with the examples of each verb.
pub(crate) fn command() -> clap::Command {
    let of_session = |arg: clap::Arg| arg.add(crate::complete::sessions());
    groups::with(examples::with(bare().mut_arg("session", of_session)))
}

/// The table of arguments alone. A variable that is set to nothing counts as one that is not set, as everywhere else: it gives no
/// option a value.
fn bare() -> clap::Command {
    let is_empty = |(name, value): (OsString, OsString)| {
        value.is_empty() && name.as_encoded_bytes().starts_with(b"ACPDB_")
    };
    let command = Args::command();
    // Few set one so, and to look through all options takes time that each hook would wait.
    if std::env::vars_os().any(is_empty) { without_empty(command) } else { command }
}

fn without_empty(command: clap::Command) -> clap::Command {
    let unset = |arg: clap::Arg| {
        let is_empty = arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
        if is_empty { arg.env(clap::builder::Resettable::Reset) } else { arg }
    };
    command.mut_args(unset).mut_subcommands(without_empty)
}

/// The text of `acpdb help TOPIC`, if there is such a topic.
pub(crate) fn topic(words: impl IntoIterator<Item = OsString>) -> Option<&'static str> {
    let words: Vec<_> = words.into_iter().skip(1).collect();
    match words.as_slice() {
        [help, topic] if help == "help" => groups::topic(topic.to_str()?),
        _ => None,
    }
}

/// The names of the topics of `acpdb help TOPIC`.
pub(crate) fn topics() -> Vec<&'static str> {
    groups::topics()
}

/// The help of the verb that these words lead to, as far as they do.
pub(crate) fn help(words: impl IntoIterator<Item = OsString>) -> clap::builder::StyledStr {
    let mut command = command();
    command.build();
    for word in words.into_iter().skip(1) {
        if let Some(below) = command.find_subcommand(&word) {
            command = below.clone();
        }
    }
    command.render_help()
}

/// Groups of verbs, and the verb of each that shows the group's things if none is named.
const SHOWN: &[(&str, &str)] = &[
    ("checkpoint", "show"),
    ("config", "list"),
    ("key", "show"),
    ("memory", "list"),
    ("policy", "show"),
    ("project", "list"),
    ("task", "list"),
    ("todo", "list"),
];

fn is_without_verb(error: &clap::Error) -> bool {
    matches!(error.kind(), ErrorKind::MissingSubcommand | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand)
}

/// The verb that shows what there is, for words that name no verb, or a group alone; and its place among the words.
fn shown(words: &[OsString]) -> Option<(usize, &'static str)> {
    let Some(place) = verb(words) else { return Some((words.len(), "home")) };
    let (_, shows) = SHOWN.iter().find(|(group, _)| words.get(place).is_some_and(|word| word == group))?;
    // A verb of the group that stands there lacks something else.
    let is_alone = words.get(place + 1).is_none_or(|next| next.to_string_lossy().starts_with('-'));
    is_alone.then_some((place + 1, shows))
}

/// Verbs, and acts of groups, that are about a session.
const OF_SESSION: &[&str] = &[
    "blame",
    "checkpoint prove",
    "context",
    "cost",
    "diff",
    "erase",
    "explain",
    "export html",
    "export poster",
    "history",
    "import",
    "log",
    "lost",
    "mcp",
    "memory",
    "policy set",
    "policy show",
    "resume",
    "rewind",
    "run",
    "scan",
    "search",
    "sessions",
    "show",
    "simulate",
    "stats",
    "task",
    "todo",
    "undo",
];

/// Whether the verb among these words is about a session.
pub(crate) fn is_of_session(words: &[OsString]) -> bool {
    let Some(place) = verb(words) else { return false };
    let mut named = words.iter().skip(place).map(|word| word.to_string_lossy());
    let verb = named.next().unwrap_or_default();
    let act = format!("{verb} {}", named.find(|word| !word.starts_with('-')).unwrap_or_default());
    OF_SESSION.iter().any(|of| *of == verb || *of == act)
}

impl Args {
    /// Reads the words of a command line, the program's name first.
    pub(crate) fn read<I, T>(words: I) -> Result<Self, clap::Error>
    where
        I: IntoIterator<Item = T>,
        T: Into<OsString> + Clone,
    {
        let words = moved::renamed(words.into_iter().map(Into::into).collect());
        // Examples and groups are seen by those who ask for help, or are told of a mistake: making them takes most of a hook's time.
        match bare().try_get_matches_from_mut(&words) {
            Ok(matches) => {
                // A mistake is told below, with the help.
                if let Ok(args) = Self::from_arg_matches(&matches) {
                    if args.global.session.is_some() && !is_of_session(&words) {
                        let told = "this verb is about no session: it takes no --session\n";
                        return Err(clap::Error::raw(ErrorKind::ArgumentConflict, told));
                    }
                    return Ok(args);
                }
            }
            Err(error) if error.kind() == ErrorKind::DisplayVersion => return Err(error),
            Err(error) => {
                // An option of the verb that is left out is unknown to its group.
                let is_unknown = error.kind() == ErrorKind::UnknownArgument;
                let meant = shown(&words)
                    .filter(|(place, _)| is_without_verb(&error) || is_unknown && *place < words.len());
                if let Some((place, verb)) = meant {
                    let mut words = words;
                    words.insert(place, OsString::from(verb));
                    return Self::read(words);
                }
            }
        }
        let mut command = command();
        let matches = command.try_get_matches_from_mut(&words)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

impl Verb {
    /// Whether a checkpoint may be signed once it has recorded something: not while a host waits, nor by the verbs that sign.
    pub(crate) const fn is_signed_after(&self) -> bool {
        !matches!(
            self,
            Self::Hook(_) | Self::Run(_) | Self::Demo(_) | Self::Checkpoint(_) | Self::Init(_) | Self::Key(_)
        )
    }

    /// Whether its answer is for reading, and may be long.
    pub(crate) const fn is_paged(&self) -> bool {
        match self {
            Self::Log(args) => !args.follow,
            Self::Context(args) => args.act.is_none(),
            Self::Sessions(_)
            | Self::Search(_)
            | Self::History(_)
            | Self::Show(_)
            | Self::Lost(_)
            | Self::Explain(_)
            | Self::Diff(_)
            | Self::Blame(_)
            | Self::Scan(_)
            | Self::Cost(_)
            | Self::Stats(_)
            | Self::Todo(_) => true,
            Self::Memory(memory) => {
                matches!(memory.act, MemoryAct::List(_) | MemoryAct::History(_) | MemoryAct::Insights)
            }
            Self::Task(act) => !matches!(act, TaskAct::Update),
            Self::Project(act) => matches!(act, ProjectAct::List),
            Self::Policy(act) => !matches!(act, PolicyAct::Set(_) | PolicyAct::Import(_)),
            _ => false,
        }
    }
}
