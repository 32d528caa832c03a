//! Rules that find secrets in texts: well-known forms of keys and tokens, own patterns, and (if asked for) entropy.
//!
//! ```text
//! Rules::usual() + own patterns -> Rules -> Builder::redactor: taken out before anything is recorded
//!                                       '-> Rules::find: secrets that slipped through, in a store that is there
//! ```
//!
//! Parameters of calls and records of hosts are JSON, which writes the line break before a secret as `\n`: to a pattern that begins
//! with `\b`, this `n` is part of the word. So each text is also read as it is without escapes, and finds are brought back to
//! their places.
//!
//! A secret becomes `[redacted:RULE]`. Patterns are linear in time (no look-around, no back-references) and bounded in size. A
//! pattern that would match anything is refused, as it would leave nothing of a session. Nothing here prints or returns a
//! secret: finds are ranges of bytes.

use std::collections::BTreeMap;
use std::ops::Range;

use acpdb_engine::store::Redactor;
use acpdb_engine::text::Unescaped;
use regex::bytes::{Regex, RegexBuilder};

/// Longest own pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// Most rules.
pub const RULE_COUNT_MAX: usize = 64;
/// Most bytes that a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Shortest run of signs that the entropy rule looks at, in bytes.
const RUN_BYTES_MIN: usize = 24;
/// Least entropy of a run that is taken for a secret, in bits per sign.
const ENTROPY_BITS_MIN: f64 = 4.5;
/// Most escapes around a text that are taken off one after the other: JSON that stands as a text in JSON, once more.
const ESCAPE_LAYERS_MAX: usize = 3;

/// Secrets to which their issuers gave a form.
const USUAL: &[(&str, &str)] = &[
    (
        "private-key",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\s\\:,.-]+?-----END [A-Z ]*PRIVATE KEY-----",
    ),
    ("anthropic-key", r"\bsk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai-key", r"\bsk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{32,}"),
    ("github-token", r"\bgh[pousr]_[A-Za-z0-9]{36,}|\bgithub_pat_[A-Za-z0-9_]{60,}"),
    ("gitlab-token", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("aws-access-key", r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("aws-secret-key", r#"(?i)\baws_secret_access_key\b["']?[ \t]*[:=][ \t]*\\?["']?[A-Za-z0-9/+=]{40}"#),
    ("google-key", r"\bAIza[A-Za-z0-9_-]{35}"),
    ("slack-token", r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    ("stripe-key", r"\b[rs]k_live_[A-Za-z0-9]{20,}"),
    ("npm-token", r"\bnpm_[A-Za-z0-9]{36}\b"),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
    ("url-password", r#"\b[a-z][a-z0-9+.-]*://[^\s:@/"]+:[^\s:@/"]{3,}@"#),
];

/// A rule that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RuleError {
    /// It would match anything.
    #[error("rule `{name}` matches {example}: it would leave nothing")]
    MatchesAnything {
        /// The rule.
        name: String,
        /// The harmless text that it matches.
        example: &'static str,
    },
    /// It is no pattern, or too large.
    #[error("rule `{name}` is no pattern that can be used: {reason}")]
    Pattern {
        /// The rule.
        name: String,
        /// The reason.
        reason: String,
    },
    /// There are too many rules.
    #[error("more than {RULE_COUNT_MAX} rules")]
    TooMany,
}

/// Texts without a secret, as sessions hold them: a rule that matches one of them is refused.
const HARMLESS: &[(&str, &str)] = &[
    ("the empty text", ""),
    ("a space", " "),
    ("a word", "function"),
    ("a line of prose", "The quick brown fox jumps over the lazy dog."),
    ("a number", "0123456789"),
    ("a path", "/usr/share/src/main.rs"),
    ("JSON", r#"{"type":"text","text":"x"}"#),
];

/// Rules, in order; the first that matches names the secret.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<(String, Regex)>,
    entropy: bool,
}

/// A secret in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// The rule that found it.
    pub rule: String,
    /// The bytes of the text that hold the secret.
    pub place: Range<usize>,
}

impl Rules {
    /// The well-known forms.
    ///
    /// # Errors
    /// Never: tests compile these rules.
    pub fn usual() -> Result<Self, RuleError> {
        USUAL.iter().try_fold(Self::default(), |rules, (name, pattern)| rules.with(name, pattern))
    }

    /// These rules and a pattern of the caller's own.
    ///
    /// # Errors
    /// If there are too many rules, the name is not allowed, or the pattern is none, too large, or would match anything.
    pub fn with(mut self, name: &str, pattern: &str) -> Result<Self, RuleError> {
        let wrong = |reason: String| RuleError::Pattern { name: name.to_owned(), reason };
        if self.rules.len() >= RULE_COUNT_MAX {
            return Err(RuleError::TooMany);
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_plain) {
            return Err(wrong("its name is to be of letters, digits, - and _".to_owned()));
        }
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(wrong(format!("it has {} bytes, of at most {PATTERN_BYTES_MAX}", pattern.len())));
        }
        let regex = RegexBuilder::new(pattern)
            .size_limit(COMPILED_BYTES_MAX)
            .dfa_size_limit(COMPILED_BYTES_MAX)
            .build()
            .map_err(|error| wrong(error.to_string().replace('\n', " ")))?;
        if let Some((example, _)) = HARMLESS.iter().find(|(_, text)| regex.is_match(text.as_bytes())) {
            return Err(RuleError::MatchesAnything { name: name.to_owned(), example });
        }
        self.rules.push((name.to_owned(), regex));
        Ok(self)
    }

    /// Also takes long runs of signs that look random for secrets. This finds secrets of unknown form, and takes digests for
    /// secrets.
    #[must_use]
    pub fn with_entropy(mut self) -> Self {
        self.entropy = true;
        self
    }

    /// Finds secrets, in order and apart from each other; finds that overlap are one, which the first names. Cost: one pass for
    /// each rule, and again for the text without each layer of escapes that it has.
    pub fn find(&self, text: &[u8]) -> Vec<Found> {
        let mut found = self.find_as_written(text);
        let layers = Unescaped::layers(text, ESCAPE_LAYERS_MAX);
        for (depth, plain) in layers.iter().enumerate() {
            let around = layers.get(..=depth).unwrap_or_default();
            let outside =
                |place: usize| around.iter().rev().fold(place, |place, plain| plain.place_in_text(place));
            let inner = self.find_as_written(&plain.bytes).into_iter();
            found.extend(
                inner.map(|it| Found { place: outside(it.place.start)..outside(it.place.end), ..it }),
            );
        }
        // The rules are in order, and the sort keeps it among equals.
        found.sort_by_key(|it| it.place.start);
        let mut apart: Vec<Found> = Vec::with_capacity(found.len());
        for it in found.into_iter().filter(|it| !it.place.is_empty()) {
            match apart.last_mut() {
                Some(last) if it.place.start < last.place.end => {
                    last.place.end = last.place.end.max(it.place.end);
                }
                _ => apart.push(it),
            }
        }
        apart
    }

    /// Finds secrets in a text as it stands, in the order of the rules.
    fn find_as_written(&self, text: &[u8]) -> Vec<Found> {
        let mut found: Vec<Found> = Vec::new();
        for (rule, regex) in &self.rules {
            found.extend(regex.find_iter(text).map(|it| Found { rule: rule.clone(), place: it.range() }));
        }
        if self.entropy {
            let runs = runs(text).filter(|run| text.get(run.clone()).is_some_and(looks_random));
            found.extend(runs.map(|place| Found { rule: "entropy".to_owned(), place }));
        }
        found
    }
}

impl Redactor for Rules {
    fn redact(&self, text: &[u8]) -> Option<(Vec<u8>, BTreeMap<String, u64>)> {
        let found = self.find(text);
        if found.is_empty() {
            return None;
        }
        let (mut out, mut counts, mut done) = (Vec::with_capacity(text.len()), BTreeMap::new(), 0);
        for Found { rule, place } in found {
            out.extend_from_slice(text.get(done..place.start).unwrap_or_default());
            out.extend_from_slice(format!("[redacted:{rule}]").as_bytes());
            done = place.end;
            *counts.entry(rule).or_default() += 1;
        }
        out.extend_from_slice(text.get(done..).unwrap_or_default());
        Some((out, counts))
    }
}

/// Long runs of signs that keys are made of.
fn runs(text: &[u8]) -> impl Iterator<Item = Range<usize>> {
    let is_sign = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'_' | b'-' | b'=');
    let mut at = 0;
    let pieces = text.split(move |byte| !is_sign(byte)).map(move |run| {
        let place = at..at + run.len();
        at = place.end + 1;
        place
    });
    pieces.filter(|place| place.len() >= RUN_BYTES_MIN)
}

fn looks_random(run: &[u8]) -> bool {
    let mut counts = [0_u32; 256];
    for byte in run {
        if let Some(count) = counts.get_mut(usize::from(*byte)) {
            *count += 1;
        }
    }
    let whole = f64::from(u32::try_from(run.len()).unwrap_or(u32::MAX));
    let shares = counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / whole);
    shares.map(|share| -share * share.log2()).sum::<f64>() >= ENTROPY_BITS_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redacted(rules: &Rules, text: &str) -> String {
        let (bytes, _) = rules.redact(text.as_bytes()).unwrap_or((text.as_bytes().to_vec(), BTreeMap::new()));
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn known_forms_are_taken_out_and_nothing_else() {
        let rules = Rules::usual().unwrap();
        for (text, expected) in [
            (format!("key=sk-ant-{} end", "a1B2".repeat(10)), "key=[redacted:anthropic-key] end"),
            (format!("ghp_{}", "x".repeat(36)), "[redacted:github-token]"),
            (format!("{{\"k\":\"AKIA{}\"}}", "Q".repeat(16)), "{\"k\":\"[redacted:aws-access-key]\"}"),
            ("postgres://me:hunter22@host/db".to_owned(), "[redacted:url-password]host/db"),
            (
                "-----BEGIN RSA PRIVATE KEY-----\\nQUJD\\n-----END RSA PRIVATE KEY-----".to_owned(),
                "[redacted:private-key]",
            ),
            (
                "fn main() { https://example.com:8080/x }".to_owned(),
                "fn main() { https://example.com:8080/x }",
            ),
        ] {
            assert_eq!(redacted(&rules, &text), expected);
            // A second pass finds nothing: an import may be repeated.
            assert_eq!(redacted(&rules, expected), expected);
        }
    }

    /// A token at the beginning of a line was found in the output of a call and not in its parameters: these are JSON, where the
    /// line break before the token is `\\n`, and a rule that begins with `\\b` took the `n` for a part of the word.
    #[test]
    fn escapes_of_json_hide_no_secret() {
        let rules = Rules::usual().unwrap().with("pin", r"\bpin/[0-9]{4}\b").unwrap();
        let (token, secret) = (format!("ghp_{}", "x".repeat(36)), "a1B2/".repeat(8));
        let secret = format!("aws_secret_access_key = {secret}");
        for before in
            ["", "a ", "a\n", "a\t", "a\r\n", "\u{8}\u{c}\"", "\\", "\\\n", "é\n", "C:\\new\n", "\u{1}"]
        {
            for (text, rule) in
                [(token.as_str(), "github-token"), (&secret, "aws-secret-key"), ("pin/1234", "pin")]
            {
                let mut text = format!("{before}{text}\nb");
                let mut expected = format!("{before}[redacted:{rule}]\nb");
                for depth in 0..=ESCAPE_LAYERS_MAX {
                    assert_eq!(redacted(&rules, &text), expected, "{depth} layers");
                    text = serde_json::json!({ "k": text }).to_string();
                    expected = serde_json::json!({ "k": expected }).to_string();
                }
            }
        }
        for (text, expected) in [
            (r#"{"k":"\u000apin\/1234\u000a"}"#, r#"{"k":"\u000a[redacted:pin]\u000a"}"#),
            (r#"{"k":"\ud83d\ude00pin/1234"}"#, r#"{"k":"\ud83d\ude00[redacted:pin]"}"#),
            (r#"{"k":"\u0070\u0069n/1234"}"#, r#"{"k":"[redacted:pin]"}"#),
            (r"\pin/1234 \u12 \", r"\[redacted:pin] \u12 \"),
        ] {
            assert_eq!(redacted(&rules, text), expected);
        }
        // Secrets that overlap are taken out together.
        let rules = Rules::default().with("one", "[a-m]{8}").unwrap().with("two", "[g-z]{8}").unwrap();
        let found = rules.find(b"- abcdefghijklmnop -");
        assert_eq!(found, [Found { rule: "one".to_owned(), place: 2..16 }]);
    }

    #[test]
    fn a_rule_that_matches_anything_is_refused() {
        for pattern in [".*", "", "x*", "[a-z]+", r"\d+", r#"""#, "(?s).", "a|", "^"] {
            let refused = Rules::default().with("mine", pattern).unwrap_err();
            assert!(matches!(refused, RuleError::MatchesAnything { .. }), "{pattern}: {refused}");
        }
        let large = Rules::default().with("mine", r"(\w{1000}){1000}");
        assert!(matches!(large, Err(RuleError::Pattern { .. })), "{large:?}");
        assert!(Rules::default().with("mine", &"x".repeat(2000)).is_err());
        assert!(Rules::default().with("no name", "secret-[0-9]{4}").is_err());
        let rules = Rules::default().with("mine", "secret-[0-9]{4}").unwrap();
        assert_eq!(redacted(&rules, "a secret-1234 b"), "a [redacted:mine] b");
    }

    #[test]
    fn entropy_is_off_until_it_is_asked_for() {
        let text = "token 9fQ2xLr7Vb4TzK8mWc1PdYhS6uJaEo3N and wordwordwordwordwordword";
        assert_eq!(Rules::usual().unwrap().find(text.as_bytes()), []);
        let rules = Rules::default().with_entropy();
        assert_eq!(redacted(&rules, text), "token [redacted:entropy] and wordwordwordwordwordword");
    }
}
