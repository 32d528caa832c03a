//! Questions.

use clap::ValueEnum;

/// The language of filters, in the help of commands that take one.
const QUERY_HELP: &str = "A QUERY is made of conditions, all of which must hold:
  kind:tool tool:read file:src/**       comma for one of several: tool:grep,glob
  state:superseded rule:file            an item's state, and the rule that decided it
  turn:10..20 'tokens:>1000' seq:800..  ranges
  since:2d until:yesterday              times, as in --at: 'since:last week' until:14:05
  actor:assistant status:failed session:e38a host:codex call:toolu_01
  title:parser project:shop model:opus 'cost:>0.50' 'duration:>10m'   of whole sessions
  timeout text:\"connection refused\"    texts in bodies; lower case finds any case
  a or b, not a (or !a), (a b)          combinations";

/// Columns of `sessions`, in its help.
const SESSIONS_HELP: &str = "tokens      all that was recorded
shown       tokens of the context now, with its placeholders
superseded  items that a newer one made stale, also if they left the context or are still whole
context     the context over the turns, each curve by its own maximum";

/// Columns of `stats`, in its help.
const STATS_HELP: &str = "items         items that the rule found stale; each counts once, for the first rule
tokens freed  tokens that the rule takes out of the context
acp counts    tokens as the acp plug-in counts them: whole parameters and outputs; placeholders
              and restored items take nothing off";

/// Which rows are asked for, and which page of them.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Ask {
    /// A filter, such as kind:tool tool:read state:superseded (see below); a session may come first: latest, or the beginning of an id
    #[arg(value_name = "QUERY")]
    pub(crate) query: Vec<String>,
    /// At most N rows, then the cursor of the next page
    #[arg(long, value_name = "N", value_parser = super::limit)]
    pub(crate) limit: Option<usize>,
    /// The page that this cursor begins
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{SESSIONS_HELP}\n\n{QUERY_HELP}"))]
pub(crate) struct Sessions {
    #[command(flatten)]
    pub(crate) ask: Ask,
    /// Also subagents
    #[arg(long)]
    pub(crate) all: bool,
    /// Draw subagents, forks and rewinds as a tree
    #[arg(long)]
    pub(crate) graph: bool,
    /// The order: numbers and times from the largest, names by the alphabet
    #[arg(long, value_name = "WHAT", default_value = "time")]
    pub(crate) sort: SessionSort,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SessionSort {
    /// When it was last active
    Time,
    /// Its cost, with that of its subagents
    Cost,
    /// From its first event to its newest
    Duration,
    /// Everything recorded
    Tokens,
    /// Steps of the model
    Turns,
    /// Tool calls
    Calls,
    /// Its title
    Title,
    /// The folder it began in
    Project,
    /// The model that answered
    Model,
    /// The host program
    Host,
}

#[derive(Debug, clap::Args)]
#[command(after_help = QUERY_HELP)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) ask: Ask,
    /// The supersession chain of this item: #seq, short hash, call id or a unique prefix of one
    #[arg(long, value_name = "ID", conflicts_with = "file", add = crate::complete::items())]
    pub(crate) chain: Option<String>,
    /// Everything about this file
    #[arg(long, value_name = "PATH")]
    pub(crate) file: Option<String>,
    /// The history of a todo entry
    #[arg(long, value_name = "ID", conflicts_with_all = ["chain", "file"])]
    pub(crate) todo: Option<String>,
    /// All sessions
    #[arg(long, conflicts_with_all = ["session", "chain", "todo"])]
    pub(crate) all: bool,
}

#[derive(Debug, Clone, clap::Args)]
#[command(after_help = QUERY_HELP)]
#[expect(clippy::struct_excessive_bools, reason = "switches of one verb, each with a name")]
pub(crate) struct LogArgs {
    #[command(flatten)]
    pub(crate) ask: Ask,
    /// Their texts instead, one a line: seq, tab, text
    #[arg(long)]
    pub(crate) texts: bool,
    /// Whole texts also on a terminal, and not their beginnings
    #[arg(long, requires = "texts")]
    pub(crate) full: bool,
    /// At most N events, the newest ones
    #[arg(long, short = 'n', value_name = "N", conflicts_with_all = ["limit", "after"])]
    pub(crate) last: Option<usize>,
    /// The condition kind:K of the filter, as scripts wrote it before
    #[arg(long, value_name = "K", hide = true)]
    pub(crate) kind: Option<String>,
    /// Newest first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// Go on with events that any process records from now on, until interrupted
    #[arg(long, short, conflicts_with_all = ["reverse", "at"])]
    pub(crate) follow: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// #seq, short hash, call id or a unique prefix of one
    #[arg(value_name = "ID", add = crate::complete::items())]
    pub(crate) id: String,
    /// The host's own record, byte for byte
    #[arg(long)]
    pub(crate) raw: bool,
    /// Only the body of this row (from 0), byte for byte
    #[arg(long, value_name = "ROW", conflicts_with = "raw")]
    pub(crate) body: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Explain {
    /// #seq, short hash, call id or a unique prefix of one; or a file, for the newest view of it
    #[arg(value_name = "ID", add = crate::complete::items())]
    pub(crate) id: String,
}

#[derive(Debug, clap::Args)]
#[command(after_help = format!("{STATS_HELP}\n\n{QUERY_HELP}"))]
pub(crate) struct StatsArgs {
    /// A session [default: all of them], then a filter of items (see below); each may be left out
    #[arg(value_name = "[SESSION] QUERY", add = crate::complete::sessions())]
    pub(crate) words: Vec<String>,
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
#[command(after_help = "\
    dollars   of all input, as the provider reported it\n\
    price     of all input; doing nothing is 1\n\
    fetched   the same, and hidden results that were needed again are charged again\n\
    tokens    of a request, on average; peak: of the largest one\n\
    rewrites  requests that changed earlier parts of the context while the cache was warm\n\
    read      part of all tokens that was read from the cache\n\
    needed    part of the hidden results that were the only source of a name that the model wrote later\n\
    blind     part of all edits that replaced lines which the rules had hidden from the model\n\n\
    The sessions are as they were recorded. It is not known how the agent would have gone on with a smaller context.")]
pub(crate) struct Simulate {
    #[command(flatten)]
    pub(crate) session: SessionNamed,
    /// Every session of the store
    #[arg(long, conflicts_with_all = ["place", "session"])]
    pub(crate) all: bool,
    /// Only sessions of this host
    #[arg(long, requires = "all")]
    pub(crate) host: Option<String>,
    /// A preset, a policy as JSON or TOML in a file, or `recorded` for those in force [default: some presets]
    #[arg(long, short, value_name = "POLICY", add = crate::complete::presets())]
    pub(crate) policy: Vec<String>,
    /// When the conclusions of the rules are sent [default: each]
    #[arg(long, short, value_name = "MODE")]
    pub(crate) mode: Vec<SimulateMode>,
    /// Prices: model (each session's own, else its host's provider's), a model's or a provider's (anthropic, anthropic-1h, openai, ..), flat, or a TOML file [default: model]
    #[arg(long, value_name = "PRICES")]
    pub(crate) price: Option<String>,
    /// Tokens of the system prompt and the tools in each request [default: as the usage of a session tells, else 8000]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub(crate) prefix: Option<u64>,
    /// Rows for each host or each session, in place of those for all
    #[arg(long, value_name = "WHAT")]
    pub(crate) by: Option<SimulateBy>,
    /// Tell the parts of the price: prefix, young items, old items, rewrites, fetched again
    #[arg(long)]
    pub(crate) parts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimulateBy {
    /// A host program
    Host,
    /// A session
    Session,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SimulateMode {
    /// Texts that were sent are never changed
    #[value(alias = "append_only")]
    AppendOnly,
    /// When it pays
    Batched,
    /// At once
    Eager,
}

/// A session by its place on the command line, or by the option.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct SessionNamed {
    /// The session: its id, a unique prefix, or `latest` [default: the newest one of this folder, else of all]
    #[arg(id = "place", value_name = "SESSION", conflicts_with = "session", add = crate::complete::sessions())]
    place: Option<String>,
}

impl SessionNamed {
    /// The name it was given, if any.
    pub(crate) fn name<'a>(&'a self, global: &'a super::Global) -> Option<&'a str> {
        self.place.as_deref().or(global.session.as_deref())
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct LostArgs {
    #[command(flatten)]
    pub(crate) session: SessionNamed,
    /// The index that the model is given, in place of the list
    #[arg(long)]
    pub(crate) index: bool,
    /// Of each kind at most so many rows
    #[arg(long, short, value_name = "N", value_parser = super::limit)]
    pub(crate) limit: Option<usize>,
}
