//! The command line as types.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// An append-only log of what AI agents see and do: the current context, the full history, and the reason for the
/// difference. ("acp" is agent context pruning, not the Agent Client Protocol.)
#[derive(Debug, Parser)]
#[command(name = "acpdb", version, max_term_width = 100, propagate_version = true)]
#[command(after_help = "Examples:\n  acpdb demo                      a tour on your newest session\n  \
    acpdb import                    read the sessions of every host found\n  \
    acpdb context SESSION           what the model should see now\n  \
    acpdb history --chain '#812'    what superseded what, and why")]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Options of every command.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// The store's folder [default: the nearest .acpdb/ upwards, else the user's data directory]
    #[arg(long, global = true, value_name = "PATH", env = "ACPDB_PATH", hide_env_values = true)]
    pub(crate) db: Option<PathBuf>,
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Read as of this point: #812, t12, a time (2026-01-31T12:00:00Z) or "10m ago"
    #[arg(long, global = true, value_name = "WHEN")]
    pub(crate) at: Option<String>,
    /// Colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// No progress and no remarks
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// A tour on your newest session, or on the bundled one
    Demo(Demo),
    /// Read sessions of agent hosts into the store; reading them again adds nothing
    Import(Import),
    /// Append events given as JSON lines on standard input
    Append(Append),
    /// The sessions of the store
    Sessions(Sessions),
    /// The current context of a session; discard, distill and restore parts of it
    Context(Context),
    /// Everything that ever was in a session, or one chain of what superseded what
    History(History),
    /// Events as they were recorded
    Log(Log),
    /// One event, item or body, whole
    Show(Show),
    /// Bodies in order, one a line: seq, tab, text
    List(List),
    /// Why something is or is not in the current context
    Explain(Explain),
    /// What is saved, by rule
    Stats(Stats),
    /// The todo list as it is and as it was
    Todo(Todo),
    /// Facts, preferences and decisions
    Memory(Memory),
    /// Tasks and what was evicted with them
    Task(Task),
    /// What supersedes what
    Policy(Policy),
    /// Check every digest and link: 0 sound, 3 damage, 4 acknowledged events missing
    Verify(Verify),
    /// What the store holds and where
    Info,
    /// Make the index anew from the log
    Reindex,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Demo {
    /// Keep the imported session in this store instead of a temporary one
    #[arg(long, value_name = "PATH")]
    pub(crate) keep: Option<PathBuf>,
    /// Use the bundled session even if there are real ones
    #[arg(long)]
    pub(crate) bundled: bool,
    /// A session file to tour
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// Files or folders; none: the usual places of every host
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The format of the files, instead of looking
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// The session's id, where the format has none
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// The project whose memory the sessions share
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "One JSON object a line, one commit each:\n  \
    {\"session\":\"s1\",\"message\":{\"role\":\"user\",\"text\":\"hello\"}}\n  \
    {\"session\":\"s1\",\"turn\":true,\"tool\":{\"call\":\"c1\",\"tool\":\"read\",\"params\":{\"filePath\":\"/a\"},\"output\":\"..\"}}\n  \
    {\"session\":\"s1\",\"events\":[{..},{..}]}   several in one commit")]
pub(crate) struct Append {
    /// Read from standard input
    #[arg(long, required = true)]
    pub(crate) stdin: bool,
    /// Print the last seq of each commit once it is durable
    #[arg(long)]
    pub(crate) ack: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Sessions {
    /// Only sessions of this host
    #[arg(long)]
    pub(crate) host: Option<String>,
    /// Subagents too
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Context {
    /// The session: its id, a unique prefix, or `latest`
    pub(crate) session: Option<String>,
    /// Only the newest so many items
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Whole texts, not their beginnings
    #[arg(long)]
    pub(crate) full: bool,
    #[command(subcommand)]
    pub(crate) act: Option<ContextAct>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ContextAct {
    #[expect(clippy::doc_markdown, reason = "it is the text of --help")]
    /// Hide calls and messages: by hash (r_a1b2c), pattern ("start...end"), #seq or call id
    Discard(Targets),
    /// Hide them behind summaries: TARGET=SUMMARY
    Distill(Targets),
    /// Show them again
    Restore(RestoreTargets),
    /// Keep them whatever the rules say
    Pin(Targets),
    /// Subject them to the rules again
    Unpin(Targets),
}

#[derive(Debug, clap::Args)]
#[expect(clippy::struct_field_names, reason = "what one calls them")]
pub(crate) struct Targets {
    /// What to act on
    #[arg(value_name = "TARGET")]
    pub(crate) targets: Vec<String>,
    /// The session [default: the only or newest one]
    #[arg(long, short)]
    pub(crate) session: Option<String>,
    /// Read {"action":..,"targets":[[target, summary?]..]} from standard input
    #[arg(long, conflicts_with = "targets")]
    pub(crate) stdin: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreTargets {
    #[command(flatten)]
    pub(crate) targets: Targets,
    /// Pin them, so that no rule hides them again
    #[arg(long)]
    pub(crate) pin: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct History {
    /// The supersession chain of this item: #seq, short hash, call id or a unique prefix of one
    #[arg(long, value_name = "ID", conflicts_with_all = ["file", "tool"])]
    pub(crate) chain: Option<String>,
    /// Everything about this file
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<String>,
    /// Everything of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// The chain of a memory key or id
    #[arg(long, value_name = "KEY", conflicts_with_all = ["chain", "file", "tool"])]
    pub(crate) memory: Option<String>,
    /// The history of a todo entry
    #[arg(long, value_name = "ID", conflicts_with_all = ["chain", "file", "tool", "memory"])]
    pub(crate) todo: Option<String>,
    /// Only this session
    #[arg(long, short)]
    pub(crate) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Log {
    /// Only this session
    #[arg(long, short)]
    pub(crate) session: Option<String>,
    #[expect(clippy::doc_markdown, reason = "it is the text of --help")]
    /// Only this kind of event, such as tool_call_started
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// From this seq on
    #[arg(long, value_name = "SEQ")]
    pub(crate) from: Option<String>,
    /// At most so many events, the newest ones
    #[arg(long, short = 'n', value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Newest first
    #[arg(long)]
    pub(crate) reverse: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// #seq, short hash, call id or a unique prefix of one
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// The host's own record, byte for byte
    #[arg(long)]
    pub(crate) raw: bool,
    /// Only the body of this row (from 0), byte for byte
    #[arg(long, value_name = "ROW", conflicts_with = "raw")]
    pub(crate) body: Option<u32>,
    /// Only this session
    #[arg(long, short)]
    pub(crate) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// Only this session
    #[arg(long, short)]
    pub(crate) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// #seq, short hash, call id or a unique prefix of one
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Only this session
    #[arg(long, short)]
    pub(crate) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Stats {
    /// One session instead of all
    #[arg(value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// How to show it
    #[arg(long, default_value = "table")]
    pub(crate) style: StatsStyle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StatsStyle {
    /// A table
    Table,
    /// The block of the acp plug-in
    Acp,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Todo {
    #[command(subcommand)]
    pub(crate) act: TodoAct,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TodoAct {
    /// The list
    List(SessionOption),
    /// Entries in progress for too long
    Stuck(SessionOption),
    /// The list at each of its changes
    History(SessionOption),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SessionOption {
    /// The session [default: the only or newest one]
    #[arg(long, short)]
    pub(crate) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Memory {
    #[command(subcommand)]
    pub(crate) act: MemoryAct,
}

#[derive(Debug, Subcommand)]
pub(crate) enum MemoryAct {
    /// Record a fact, preference, decision or note
    Add(MemoryAdd),
    /// The current value of a preference: KEY or CATEGORY/KEY
    Get(MemoryKey),
    /// Current items
    List(MemoryList),
    /// Let one item take another's place
    Supersede(MemorySupersede),
    /// Say that an item no longer holds
    Retract(MemoryRetract),
    /// Let a superseded or retracted item hold again
    Restore(MemoryKey),
    /// What was superseded by what
    History(MemoryKey),
    /// What the messages of a session suggest to remember
    Propose(MemoryPropose),
    /// Unstable preferences, reversed decisions, contradicted facts
    Insights(MemoryScope),
    /// Read items from a JSONL file
    Import(MemoryImport),
    /// Write items as JSONL
    Export(MemoryList),
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryScope {
    /// The project [default: the only one]
    #[arg(long, short)]
    pub(crate) project: Option<String>,
    /// The session, for its own memory and its project's
    #[arg(long, short)]
    pub(crate) session: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryAdd {
    /// fact, preference, decision or note
    #[arg(value_name = "KIND")]
    pub(crate) kind: String,
    /// The fact, the decision, or for a preference KEY VALUE
    #[arg(value_name = "TEXT", required = true, num_args = 1..)]
    pub(crate) text: Vec<String>,
    /// Category
    #[arg(long)]
    pub(crate) category: Option<String>,
    /// What it is about
    #[arg(long)]
    pub(crate) subject: Option<String>,
    /// 0 to 1
    #[arg(long, default_value = "0.8")]
    pub(crate) confidence: String,
    /// session, project or permanent
    #[arg(long)]
    pub(crate) lifespan: Option<String>,
    /// Why, for a decision
    #[arg(long)]
    pub(crate) rationale: Option<String>,
    /// What else was considered; may be repeated
    #[arg(long = "alternative", value_name = "TEXT")]
    pub(crate) alternatives: Vec<String>,
    /// A file it concerns; may be repeated
    #[arg(long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// An item that it supersedes; may be repeated
    #[arg(long = "replaces", value_name = "ID")]
    pub(crate) replaces: Vec<String>,
    #[command(flatten)]
    pub(crate) scope: MemoryScope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryKey {
    /// KEY, CATEGORY/KEY or an item's id
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) scope: MemoryScope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryList {
    /// What is no longer current, too
    #[arg(long)]
    pub(crate) all: bool,
    /// Only this kind
    #[arg(long)]
    pub(crate) kind: Option<String>,
    /// Only this category
    #[arg(long)]
    pub(crate) category: Option<String>,
    #[command(flatten)]
    pub(crate) scope: MemoryScope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemorySupersede {
    /// The older item
    #[arg(value_name = "OLD")]
    pub(crate) old: String,
    /// The newer item
    #[arg(value_name = "NEW")]
    pub(crate) new: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) scope: MemoryScope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryRetract {
    /// The item
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
    #[command(flatten)]
    pub(crate) scope: MemoryScope,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryPropose {
    /// The session
    #[arg(value_name = "SESSION")]
    pub(crate) session: String,
    /// Record these proposals: their numbers, or `all`
    #[arg(long, value_name = "N", num_args = 1..)]
    pub(crate) accept: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct MemoryImport {
    /// The file
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The project [default: the file's name]
    #[arg(long, short)]
    pub(crate) project: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Task {
    #[command(subcommand)]
    pub(crate) act: TaskAct,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TaskAct {
    /// The tasks of a session
    List(SessionOption),
    /// Change tasks, as JSON on standard input: {"tasks":[{"id":..,"status":..}]}
    Update(SessionOption),
    /// What a completed task hid, as recorded
    Archive(TaskArchive),
    /// Summaries, facts and decisions of the session, as a note to work from
    Scratchpad(SessionOption),
}

#[derive(Debug, clap::Args)]
pub(crate) struct TaskArchive {
    /// The task
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) session: SessionOption,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    pub(crate) act: PolicyAct,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PolicyAct {
    /// The policy in force
    Show(SessionOption),
    /// Change the policy for what comes: a preset, a TOML file, or key=value pairs
    Set(PolicySet),
    /// The presets
    Presets,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PolicySet {
    /// PRESET, FILE.toml, or KEY=VALUE..
    #[arg(value_name = "WHAT", required = true, num_args = 1..)]
    pub(crate) what: Vec<String>,
    /// Only for this session
    #[arg(long, short)]
    pub(crate) session: Option<String>,
    /// Why
    #[arg(long)]
    pub(crate) reason: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Verify {
    /// Fold everything too, and check what was concluded
    #[arg(long)]
    pub(crate) deep: bool,
}
