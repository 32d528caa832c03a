//! Search in texts.

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Words that stand side by side must all be in the same text; a phrase stands in the shell's quotes. A word in \
    lower case is found in any case. Conditions narrow the search:\n  \
    session:e38a host:codex project:shop title:parser model:opus    where\n  \
    tool:bash file:src/** kind:reasoning state:superseded           kind, and state\n  \
    since:7d until:yesterday turn:10..20 actor:user                 when, and who\n\n\
    A hit says whether the model saw the text: seen, stale, gone. Erased texts are not found."
)]
pub(crate) struct SearchArgs {
    /// Words to look for, and conditions such as tool:bash (see below)
    #[arg(value_name = "WORDS", required = true, allow_hyphen_values = false)]
    pub(crate) words: Vec<String>,
    /// The words are regular expressions: '\\bid\\b' is a whole word, '(?-i)id' no ID
    #[arg(long, short = 'e')]
    pub(crate) regex: bool,
    /// Lines before and after each match
    #[arg(long, short = 'C', value_name = "N", default_value_t = 0)]
    pub(crate) context: usize,
    /// At most N items
    #[arg(long, value_name = "N", value_parser = super::limit)]
    pub(crate) limit: Option<usize>,
}
