//! Requests to providers: their form, and whether they are valid.

use acpdb_hosts::export::Format;
use clap::ValueEnum;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A format of requests or transcripts, by its name; help and completion list those that there are.
pub(super) fn format() -> impl TypedValueParser<Value = Format> {
    let values = Format::ALL.iter().map(|format| PossibleValue::new(format.name()).help(format.about()));
    PossibleValuesParser::new(values)
        .try_map(|name| Format::from_name(&name).ok_or_else(|| format!("no format is called {name}")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportMode {
    /// Superseded texts show their placeholders at once
    Eager,
    /// Texts stay as they were sent until the next rebase
    #[value(alias = "append-only", alias = "served")]
    Batched,
    /// The items of the current context as they were recorded
    Whole,
    /// Every item of the active branch as it was recorded
    History,
}

/// The parts that come out, and in which form.
#[derive(Debug, clap::Args)]
pub(crate) struct ExportOptions {
    /// Print the body of a request in this form, or a transcript
    #[arg(long, value_name = "FORMAT", value_parser = format(), conflicts_with_all = ["last", "full"])]
    pub(crate) format: Option<Format>,
    /// The items to send, and whether hidden ones show placeholders [default: eager]
    #[arg(long, value_name = "MODE", requires = "format")]
    pub(crate) mode: Option<ExportMode>,
    /// The model that the request is for [default: the one recorded last]
    #[arg(long, value_name = "MODEL", requires = "format")]
    pub(crate) model: Option<String>,
    /// Send calls without a result with a result that says so, instead of leaving these calls out
    #[arg(long, requires = "format")]
    pub(crate) synthetic_results: bool,
    /// Set no marks for the cache in the body (anthropic; --recorded and --mode history never have any)
    #[arg(long, requires = "format")]
    pub(crate) no_breakpoints: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Lint {
    /// The body of a request; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: std::path::PathBuf,
    /// The provider's form
    #[arg(long, value_name = "FORMAT", value_parser = format())]
    pub(crate) format: Format,
    /// The model, where the body does not name it
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// The body of the request before this one, of the same conversation
    #[arg(long, value_name = "FILE")]
    pub(crate) previous: Option<std::path::PathBuf>,
}
