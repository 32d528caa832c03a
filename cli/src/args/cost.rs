//! Arguments of the verbs that tell the cost of sessions.

use clap::ValueEnum;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Prices come from a table in the program: by model, with their dates and sources. A model that the \
    table does not name is listed and adds nothing; give its prices in a file of the same form (--prices, or the \
    setting `prices`).\n\n\
    read      input read from the cache\n\
    write     input written to the cache, to be kept for minutes; 1h: for an hour\n\
    host says the cost that the host reports, if it reports one\n\
    stale     input sent again although a newer item had superseded it\n\n\
    session:, host:, project:, title:, model:, cost:, duration:, since: and until: narrow the requests down, also with \
    not, or and brackets: project:shop not model:haiku.\n\n\
    Requests count once, however often a host copied them into resumed and forked sessions. Costs of subagents are \
    those of the session that started them. Days and hours are those of the local time (TZ), in rows as in conditions. What no \
    host recorded is in no sum: a request whose stream broke was billed, and is not known."
)]
pub(crate) struct Cost {
    /// A session with its subagents [default: all of them], then conditions about requests and their sessions; each may be left out
    #[arg(value_name = "[SESSION] QUERY", add = crate::complete::sessions())]
    pub(crate) words: Vec<String>,
    /// The unit of a row, or two: month,model
    #[arg(long, value_name = "WHAT", default_value = "day", value_delimiter = ',')]
    pub(crate) by: Vec<CostBy>,
    /// Only requests from this time on, such as 7d, yesterday, 2026-03-12
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only requests up to this time
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// The order [default: times by time, all else by cost]
    #[arg(long, value_name = "WHAT")]
    pub(crate) sort: Option<CostSort>,
    /// At most N rows
    #[arg(long, value_name = "N", value_parser = super::limit)]
    pub(crate) limit: Option<usize>,
    /// Also the cost of stale items, and the cost of the same work served in other ways
    #[arg(long)]
    pub(crate) waste: bool,
    /// Print the program's table of prices, as a file to change and give with --prices
    #[arg(long)]
    pub(crate) show_prices: bool,
    /// A TOML file of prices by model, which override the program's
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<std::path::PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostSort {
    /// Dollars, the dearest first
    Cost,
    /// Requests, the most first
    Requests,
    /// The row's name, by the alphabet
    Name,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CostBy {
    /// An hour
    Hour,
    /// Five hours, from the hour of the first request on
    Block,
    /// A day
    Day,
    /// A week, from Monday on
    Week,
    /// A month
    Month,
    /// A session, with its subagents
    Session,
    /// The folder that sessions began in
    Project,
    /// A host program
    Host,
    /// A model
    Model,
}
