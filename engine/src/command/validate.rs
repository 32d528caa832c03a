//! Judging a task's summary by the task's own criteria and required evidence.
//!
//! ```text
//! acceptance criteria --each--> one check: does one of its longer words begin a word of the summary?
//! required evidence   -------> one check: structured evidence, else signs of it in the summary's text
//! score = met / checks, valid from 0.70          annotated summary = summary + verdict, kept in every tombstone
//! ```
//!
//! The verdict never blocks a completion. Everything here is a function of the texts; nothing is stored or read.
//!
//! [`Requirements`] reads a task's JSON leniently: a field that does not have the expected form counts as absent, for these are
//! facts that agents wrote.

use serde::Serialize;
use serde_json::Value;

use crate::event::Validation;

/// Score from which a summary is good enough, in tenths.
const VALID_TENTHS_MIN: usize = 7;
/// A word of a criterion counts if it has more characters than this.
const SHORT_WORD_CHARS_MAX: usize = 3;

const NO_CITATIONS: &str = "Required grounding evidence: No citations provided";
const LOW_CONFIDENCE: &str = "Warning: Grounding confidence is low (< 0.7)";
const NO_STRUCTURE: &str = "Required grounding evidence/citations missing (structured object not found)";

/// A task's requirements of its summary.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Requirements {
    /// Criteria, in order.
    pub criteria: Vec<String>,
    /// Whether evidence is required.
    pub evidence_required: bool,
    /// Overlays; one of them is to be consulted.
    pub overlay_hints: Vec<String>,
    /// The evidence.
    pub evidence: Evidence,
}

/// The evidence that a task shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Evidence {
    /// Nothing but the summary.
    #[default]
    None,
    /// A text beside the summary.
    Text(String),
    /// A structured record.
    Structured {
        /// How many citations it has.
        citation_count: usize,
        /// Overlays that were consulted.
        overlays: Vec<String>,
        /// Whether its confidence is `low`.
        low_confidence: bool,
    },
}

impl Requirements {
    /// Reads `acceptance_criteria`, `grounding` and `grounding_evidence` of a task.
    pub fn of(task: &Value) -> Self {
        let grounding = task.get("grounding");
        let field = |name| grounding.and_then(|grounding| grounding.get(name));
        let evidence = match task.get("grounding_evidence") {
            Some(Value::String(text)) => Evidence::Text(text.clone()),
            Some(record @ Value::Object(_)) => Evidence::Structured {
                citation_count: record.get("citations").and_then(Value::as_array).map_or(0, Vec::len),
                overlays: texts(record.get("overlays_consulted")),
                low_confidence: record
                    .get("grounding_confidence")
                    .and_then(Value::as_str)
                    .is_some_and(|level| level.eq_ignore_ascii_case("low")),
            },
            _ => Evidence::None,
        };
        Self {
            criteria: texts(task.get("acceptance_criteria")),
            evidence_required: field("evidence_required").and_then(Value::as_bool).unwrap_or(false),
            overlay_hints: texts(field("overlay_hints")),
            evidence,
        }
    }
}

/// A list of texts; a single text is a list of one, and a value that is no text counts as its JSON.
fn texts(value: Option<&Value>) -> Vec<String> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    match value {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(values)) => values.iter().map(text).collect(),
        Some(value) => vec![text(value)],
    }
}

/// The verdict on a summary.
#[derive(Serialize, Clone, PartialEq, Debug)]
pub struct Validated {
    /// Whether the summary is good enough.
    pub is_valid: bool,
    /// Checks met / checks, 1 if there was nothing to check.
    pub score: f64,
    /// Missing criteria, then missing evidence, then warnings (which miss nothing).
    pub missing_criteria: Vec<String>,
    /// Whether required evidence was found; `None` if nothing was checked.
    pub evidence_found: Option<bool>,
    /// Whether evidence was required, and so looked for.
    #[serde(skip)]
    pub evidence_searched: bool,
    /// The warnings among `missing_criteria`.
    pub warnings: Vec<String>,
    /// The summary with the verdict after it.
    pub annotated_summary: String,
}

impl Validated {
    /// The part of the verdict that is recorded.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a score is from 0 to 1")]
    pub fn to_event(&self) -> Validation {
        Validation {
            valid: self.is_valid,
            score: (self.score * 100.0).round() as u16,
            // The originals say `false` also if evidence was never looked for; the record says it only if evidence was looked for.
            evidence_found: self.evidence_found.filter(|_| self.evidence_searched),
        }
    }
}

/// Judges `summary` by `requirements`. Cost: O(criteria x summary).
pub fn validate(requirements: &Requirements, summary: &str) -> Validated {
    let lower = summary.to_lowercase();
    let mut missing: Vec<String> =
        requirements.criteria.iter().filter(|criterion| !is_met(criterion, &lower)).cloned().collect();
    let mut met = requirements.criteria.len() - missing.len();
    let mut checks = requirements.criteria.len();
    let mut warnings = Vec::new();
    let mut found = false;
    if requirements.evidence_required {
        let lacking = lacking_evidence(requirements, summary);
        found = lacking.is_empty();
        checks += 1;
        met += usize::from(found);
        missing.extend(lacking);
        if matches!(requirements.evidence, Evidence::Structured { low_confidence: true, .. }) {
            warnings.push(LOW_CONFIDENCE.to_owned());
            missing.push(LOW_CONFIDENCE.to_owned());
        }
    }
    let is_valid = met * 10 >= checks * VALID_TENTHS_MIN;
    let score = if checks == 0 { 1.0 } else { ratio(met, checks) };
    let verdict = if is_valid {
        format!("✅ [Sigma Validation] All criteria met (Score: {score:.2})")
    } else {
        format!("⚠️ [Sigma Validation] Missing criteria: {}", missing.join(", "))
    };
    Validated {
        is_valid,
        score,
        missing_criteria: missing,
        evidence_found: (checks > 0).then_some(found),
        evidence_searched: requirements.evidence_required,
        warnings,
        annotated_summary: format!("{summary}\n\n{verdict}"),
    }
}

#[expect(clippy::cast_precision_loss, reason = "no task has 2^52 criteria")]
fn ratio(met: usize, checks: usize) -> f64 {
    met as f64 / checks as f64
}

/// Whether the summary (lower-cased) speaks of a criterion.
fn is_met(criterion: &str, summary: &str) -> bool {
    let criterion = criterion.to_lowercase();
    let mut words =
        criterion.split_whitespace().filter(|word| word.chars().count() > SHORT_WORD_CHARS_MAX).peekable();
    if words.peek().is_none() {
        return begins_a_word(summary, criterion.trim());
    }
    words.any(|word| begins_a_word(summary, word))
}

/// Whether `word` stands in `text` and not after a letter or digit. Occurrences may overlap.
fn begins_a_word(text: &str, word: &str) -> bool {
    let Some(first) = word.chars().next() else { return true };
    let mut after_letter = false;
    let mut rest = text;
    while let Some((skipped, found)) = rest.find(word).and_then(|start| rest.split_at_checked(start)) {
        let before = skipped.chars().next_back();
        if !before.map_or(after_letter, char::is_alphanumeric) {
            return true;
        }
        after_letter = first.is_alphanumeric();
        rest = found.get(first.len_utf8()..).unwrap_or_default();
    }
    false
}

/// One text for each lack of the required evidence, in order; none if the evidence holds.
fn lacking_evidence(requirements: &Requirements, summary: &str) -> Vec<String> {
    let hints = &requirements.overlay_hints;
    let listed = hints.join(", ");
    let mut lacking = Vec::new();
    match &requirements.evidence {
        Evidence::Structured { citation_count, overlays, .. } => {
            if *citation_count == 0 {
                lacking.push(NO_CITATIONS.to_owned());
            }
            let consulted =
                |hint: &String| overlays.iter().any(|overlay| overlay.to_lowercase() == hint.to_lowercase());
            if !hints.is_empty() && !hints.iter().any(consulted) {
                lacking.push(format!(
                    "Required grounding evidence: None of the requested overlays ({listed}) were consulted"
                ));
            }
        }
        Evidence::None | Evidence::Text(_) => {
            let shown = match &requirements.evidence {
                Evidence::Text(text) => format!("{summary}\n{text}"),
                _ => summary.to_owned(),
            };
            let named = hints.is_empty() || hints.iter().any(|hint| shown.contains(hint.as_str()));
            if !named {
                lacking.push(format!(
                    "None of the requested overlays ({listed}) found in evidence (string check)"
                ));
            }
            let lower = shown.to_lowercase();
            let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
            let sourced = has(&["citations", "evidence", "source"])
                || has(&["[o1]", "[o2]", "[o3]", "[o4]", "[o5]", "[o6]", "[o7]"]);
            if !(named && sourced && has(&["confidence", "score", "similarity"])) {
                lacking.push(NO_STRUCTURE.to_owned());
            }
        }
    }
    lacking
}

#[cfg(test)]
mod tests;
