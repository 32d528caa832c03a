//! Secrets: the options that choose them, and the rules of these options.

use acpdb_hosts::redact::Rules;

use crate::failure::Failure;

/// Options that choose secrets.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RedactOptions {
    /// Take well-known forms of keys and tokens out before anything is recorded
    #[arg(long)]
    pub(crate) redact: bool,
    /// Also texts that this pattern matches; or `entropy`: long runs of characters that look random
    #[arg(long, value_name = "NAME=REGEX")]
    pub(crate) redact_rule: Vec<String>,
}

/// The rules of the options, with the usual rules; `None` if no option is given and `always` is false.
pub(crate) fn rules(options: &RedactOptions, always: bool) -> Result<Option<Rules>, Failure> {
    let asked = options.redact || !options.redact_rule.is_empty();
    if !asked && !always {
        return Ok(None);
    }
    let refused = |error: acpdb_hosts::redact::RuleError| Failure::usage(error.to_string());
    let mut rules = Rules::usual().map_err(refused)?;
    for rule in &options.redact_rule {
        if rule == "entropy" {
            rules = rules.with_entropy();
            continue;
        }
        let Some((name, pattern)) = rule.split_once('=') else {
            return Err(Failure::usage(format!("--redact-rule wants NAME=REGEX, not {rule:?}")));
        };
        rules = rules.with(name, pattern).map_err(refused)?;
    }
    Ok(Some(rules))
}
