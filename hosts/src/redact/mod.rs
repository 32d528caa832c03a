//! Rules that find secrets in texts: well-known forms of keys and tokens, own patterns, and (if asked for) entropy.
//!
//! ```text
//! Rules::usual() + own patterns -> Rules -> Builder::redactor: taken out before anything is recorded
//!                                       '-> Rules::find: secrets that slipped through, in a store that is there
//! ```
//!
//! Parameters of calls and records of hosts are JSON, which writes the line break before a secret as `\n`: to a pattern that begins
//! with `\b`, this `n` is part of the word. The output of programs has codes of a terminal before a secret, or in it. So each text is also read
//! as it is without escapes, without codes and the zeros of UTF-16, with `%5F` decoded, with wrapped words and joined pieces put together, and so
//! are runs of base64 and hex that stand for a text. Finds are brought back to their places.
//!
//! A secret becomes `[redacted:RULE]`. Patterns are linear in time (no look-around, no back-references) and bounded in size. A
//! pattern that would match anything is refused, as it would leave nothing of a session. Nothing here prints or returns a
//! secret: finds are ranges of bytes.

mod encoded;
mod forms;
mod holds;
mod plain;

use std::collections::BTreeMap;
use std::ops::Range;

use acpdb_engine::store::Redactor;
use acpdb_engine::text::Unescaped;
use regex::bytes::{Regex, RegexBuilder};

use forms::FORMS;
use plain::Plain;

/// Longest own pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 1024;
/// Most rules.
pub const RULE_COUNT_MAX: usize = 256;
/// Most bytes that a compiled pattern may take.
const COMPILED_BYTES_MAX: usize = 1 << 20;
/// Shortest run of signs that the entropy rule looks at, in bytes.
const RUN_BYTES_MIN: usize = 24;
/// Least entropy of a run that is taken for a secret, in bits per sign.
const ENTROPY_BITS_MIN: f64 = 4.5;
/// Most escapes around a text that are taken off one after the other: JSON that stands as a text in JSON, once more.
const ESCAPE_LAYERS_MAX: usize = 4;

/// The group of a pattern that is the secret: what is around it stays.
const SECRET_GROUP: &str = "secret";

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
    rules: Vec<RedactionRule>,
    entropy: bool,
}

/// A rule.
#[derive(Clone, Debug)]
struct RedactionRule {
    name: String,
    regex: Regex,
    /// The group that is the secret; without one, all that the pattern matches.
    group: Option<usize>,
    /// A look at what was found.
    holds: fn(&[u8]) -> bool,
}

impl RedactionRule {
    /// Adds the secrets in a text.
    fn find(&self, text: &[u8], found: &mut Vec<SecretMatch>) {
        let mut add = |place: Range<usize>| {
            if text.get(place.clone()).is_some_and(self.holds) {
                found.push(SecretMatch { rule: self.name.clone(), place });
            }
        };
        match self.group {
            None => self.regex.find_iter(text).for_each(|it| add(it.range())),
            Some(group) => {
                let places = self.regex.captures_iter(text).filter_map(|all| Some(all.get(group)?.range()));
                places.for_each(add);
            }
        }
    }
}

/// A secret in a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SecretMatch {
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
        FORMS
            .iter()
            .try_fold(Self::default(), |rules, form| rules.with_rule(form.name, form.pattern, form.holds))
    }

    /// These rules and a pattern of the caller's own.
    ///
    /// # Errors
    /// If there are too many rules, the name is not allowed, or the pattern is none, too large, or would match anything.
    pub fn with(self, name: &str, pattern: &str) -> Result<Self, RuleError> {
        self.with_rule(name, pattern, holds::always)
    }

    fn with_rule(mut self, name: &str, pattern: &str, holds: fn(&[u8]) -> bool) -> Result<Self, RuleError> {
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
        let group = regex.capture_names().position(|name| name == Some(SECRET_GROUP));
        self.rules.push(RedactionRule { name: name.to_owned(), regex, group, holds });
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
    /// each rule, and again for the text without each layer of escapes that it has, without codes, and decoded.
    pub fn find(&self, text: &[u8]) -> Vec<SecretMatch> {
        let mut found = self.find_plain(text);
        let layers = Unescaped::layers(text, ESCAPE_LAYERS_MAX);
        for (depth, plain) in layers.iter().enumerate() {
            let around = layers.get(..=depth).unwrap_or_default();
            let outside =
                |place: usize| around.iter().rev().fold(place, |place, plain| plain.place_in_text(place));
            let inner = self.find_plain(&plain.bytes).into_iter();
            found.extend(
                inner.map(|it| SecretMatch { place: outside(it.place.start)..outside(it.place.end), ..it }),
            );
        }
        // The rules are in order, and the sort keeps it among equals.
        found.sort_by_key(|it| it.place.start);
        let mut apart: Vec<SecretMatch> = Vec::with_capacity(found.len());
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

    /// Finds secrets in a text as it stands, without codes, and decoded.
    fn find_plain(&self, text: &[u8]) -> Vec<SecretMatch> {
        let mut found = self.find_as_written(text);
        let bare = Plain::without_codes(text);
        if let Some(bare) = &bare {
            let inner = self.find_as_written(&bare.bytes).into_iter();
            found.extend(inner.map(|it| SecretMatch { place: bare.place_in_text(&it.place), ..it }));
        }
        let shown = bare.as_ref().map_or(text, |bare| &bare.bytes);
        if let Some(decoded) = Plain::decoded(shown) {
            let outside = |place: &Range<usize>| {
                let place = decoded.place_in_text(place);
                bare.as_ref().map_or(place.clone(), |bare| bare.place_in_text(&place))
            };
            let inner = self.find_as_written(&decoded.bytes).into_iter();
            found.extend(inner.map(|it| SecretMatch { place: outside(&it.place), ..it }));
        }
        found.extend(self.find_encoded(shown).into_iter().map(|it| SecretMatch {
            place: bare.as_ref().map_or(it.place.clone(), |bare| bare.place_in_text(&it.place)),
            ..it
        }));
        found
    }

    /// Finds secrets in another spelling. A find that begins where one stands as it is written is that one: what follows in the next line is no
    /// part of it.
    fn find_encoded(&self, text: &[u8]) -> Vec<SecretMatch> {
        let mut found = Vec::new();
        for decoded in encoded::all_in(text) {
            let inner = self.find_by_rules(&decoded.bytes).into_iter();
            found.extend(inner.map(|it| SecretMatch { place: decoded.place_in_text(&it.place), ..it }));
        }
        for whole in [encoded::unwrapped(text), encoded::joined(text)].into_iter().flatten() {
            let known = self.find_by_rules(text);
            let inner = self.find_by_rules(&whole.bytes).into_iter();
            let inner = inner.map(|it| SecretMatch { place: whole.place_in_text(&it.place), ..it });
            found.extend(inner.filter(|it| known.iter().all(|known| !known.place.contains(&it.place.start))));
        }
        found
    }

    /// Finds secrets in a text as it stands, in the order of the rules.
    fn find_as_written(&self, text: &[u8]) -> Vec<SecretMatch> {
        let mut found = self.find_by_rules(text);
        if self.entropy {
            let runs = runs(text).filter(|run| text.get(run.clone()).is_some_and(looks_random));
            found.extend(runs.map(|place| SecretMatch { rule: "entropy".to_owned(), place }));
        }
        found
    }
}

impl Rules {
    fn find_by_rules(&self, text: &[u8]) -> Vec<SecretMatch> {
        let mut found: Vec<SecretMatch> = Vec::new();
        self.rules.iter().for_each(|rule| rule.find(text, &mut found));
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
        for SecretMatch { rule, place } in found {
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
mod examples;

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
        assert_eq!(found, [SecretMatch { rule: "one".to_owned(), place: 2..16 }]);
    }

    /// 33 of 36 known forms passed, and every form behind the code of a colour.
    #[test]
    fn each_form_has_an_example_that_is_found_and_a_near_miss_that_is_not() {
        let rules = Rules::usual().unwrap();
        let mut known: Vec<&str> = FORMS.iter().map(|form| form.name).collect();
        known.dedup();
        assert!(known.len() >= 90, "{}", known.len());
        for name in &known {
            assert!(examples::EXAMPLES.iter().any(|(rule, ..)| rule == name), "{name} has no example");
        }
        for (rule, example, near) in examples::EXAMPLES {
            let (example, near) = (examples::filled(example), examples::filled(near));
            for (before, after) in [
                ("", ""),
                ("key: ", " end"),
                ("\u{1b}[32m", "\u{1b}[0m"),
                ("\u{1b}[01;31m\u{1b}[K", "\u{1b}[m\u{1b}[K"),
                ("\"", "\""),
                ("a\n", "\nb"),
            ] {
                let text = format!("{before}{example}{after}");
                let names: Vec<String> = rules.find(text.as_bytes()).into_iter().map(|it| it.rule).collect();
                assert_eq!(names, [*rule], "{text:?}");
                let json = serde_json::json!({ "k": text }).to_string();
                let names: Vec<String> = rules.find(json.as_bytes()).into_iter().map(|it| it.rule).collect();
                assert_eq!(names, [*rule], "{json}");
                let text = format!("{before}{near}{after}");
                assert_eq!(rules.find(text.as_bytes()), [], "{rule}: {text:?}");
            }
            assert_eq!(redacted(&rules, &redacted(&rules, &example)), redacted(&rules, &example));
        }
    }

    fn in_hex(text: &str) -> String {
        text.bytes().map(|byte| format!("{byte:02x}")).collect()
    }

    fn in_base64(text: &str) -> String {
        let signs = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut out = String::new();
        for group in text.as_bytes().chunks(3) {
            let byte = |place: usize| u32::from(group.get(place).copied().unwrap_or_default());
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for place in 0..4 {
                let sign = signs[(bits >> (18 - 6 * place) & 63) as usize];
                out.push(if place <= group.len() { char::from(sign) } else { '=' });
            }
        }
        out
    }

    #[test]
    fn a_secret_is_found_as_terminals_and_programs_write_it() {
        let rules = Rules::usual().unwrap();
        let token = format!("ghp_{}", "x1Y2".repeat(9));
        let colour = |c: char| format!("\u{1b}[7m{c}\u{1b}[m");
        let (first, rest) = token.split_at(20);
        for (text, expected) in [
            (format!("X{token}"), "X[redacted:github-token]".to_owned()),
            (format!("TOKEN_{token}"), "TOKEN_[redacted:github-token]".to_owned()),
            (format!("12{token}"), "12[redacted:github-token]".to_owned()),
            (format!("{first}\u{200b}{rest}."), "[redacted:github-token].".to_owned()),
            (format!("{first}\\\n{rest}."), "[redacted:github-token].".to_owned()),
            (format!("{first}\n{rest}."), "[redacted:github-token].".to_owned()),
            (format!("the value is {first}\r\n{rest}"), "the value is [redacted:github-token]".to_owned()),
            (format!("a={}&b", token.replace('_', "&#95;")), "a=[redacted:github-token]&b".to_owned()),
            (format!("a='{}'", token.replace('g', r"\x67")), "a='[redacted:github-token]'".to_owned()),
            (format!("a: {};", in_base64(&token)), "a: [redacted:github-token]==;".to_owned()),
            (format!("a: {};", in_hex(&token)), "a: [redacted:github-token];".to_owned()),
            (format!("{token}\nnext1 line"), "[redacted:github-token]\nnext1 line".to_owned()),
            (format!("{first}\"\"{rest}."), "[redacted:github-token].".to_owned()),
            (format!("t = \"gh\" + \"{}\";", &token[2..]), "t = \"[redacted:github-token]\";".to_owned()),
            (format!("t = ('{first}'\n     '{rest}')"), "t = ('[redacted:github-token]')".to_owned()),
            (token.chars().flat_map(|c| [c, '\0']).collect(), "[redacted:github-token]\0".to_owned()),
            (format!("a={}&b", token.replace('_', "%5F")), "a=[redacted:github-token]&b".to_owned()),
            (format!("\u{1b}[32m{token}\u{1b}[0m"), "\u{1b}[32m[redacted:github-token]\u{1b}[0m".to_owned()),
            (token.chars().map(colour).collect(), "\u{1b}[7m[redacted:github-token]\u{1b}[m".to_owned()),
        ] {
            assert_eq!(redacted(&rules, &text), expected, "{text:?}");
            let (mut text, mut expected) = (text, expected);
            for _ in 0..ESCAPE_LAYERS_MAX {
                (text, expected) = (
                    serde_json::json!({ "k": text }).to_string(),
                    serde_json::json!({ "k": expected }).to_string(),
                );
                assert_eq!(redacted(&rules, &text), expected);
            }
        }
        // A secret of AWS has no form of its own: its key's name or id stands beside it.
        let (id, secret) =
            (format!("AKIA{}", "Q4".repeat(8)), "wJ4lrXUtnFEMI/K7MDENGbP9RfiCY0ab1cD2eF3g".to_owned());
        let digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b";
        for (text, left) in [
            (format!("{id} {secret}"), "[redacted:aws-access-key] [redacted:aws-secret-key]".to_owned()),
            (
                format!("me,{id},{secret}\n"),
                "me,[redacted:aws-access-key],[redacted:aws-secret-key]\n".to_owned(),
            ),
            (
                format!("id = {id}\nkey = {secret}"),
                "id = [redacted:aws-access-key]\nkey = [redacted:aws-secret-key]".to_owned(),
            ),
            (
                format!("{{\"AccessKeyId\":\"{id}\",\"SecretAccessKey\":\"{secret}\"}}"),
                "{\"AccessKeyId\":\"[redacted:aws-access-key]\",\"[redacted:aws-secret-key]\"}".to_owned(),
            ),
            (format!("secretAccessKey: '{secret}'"), "[redacted:aws-secret-key]'".to_owned()),
            (secret.clone(), secret.clone()),
            (format!("{id} {digest}"), format!("[redacted:aws-access-key] {digest}")),
            (
                format!("{id} {}{secret}", ". ".repeat(60)),
                format!("[redacted:aws-access-key] {}{secret}", ". ".repeat(60)),
            ),
        ] {
            assert_eq!(redacted(&rules, &text), left, "{text:?}");
        }
        // A private key that a host cut off, up to what is no part of it.
        let key = format!(
            "-----BEGIN OPENSSH {} KEY-----\n{}\n{}",
            "PRIVATE",
            "b3Blbn".repeat(11),
            "AAAAB3NzaC1y".repeat(3)
        );
        for (text, expected) in [
            (format!("{key}\n[output cut]"), "[redacted:private-key]\n[output cut]"),
            (format!("{key}\n end"), "[redacted:private-key]\n end"),
            (
                format!("-----BEGIN PGP {} KEY BLOCK-----\n\n{}", "PRIVATE", "lQdGBGabc1".repeat(6)),
                "[redacted:private-key]",
            ),
        ] {
            assert_eq!(redacted(&rules, &text), expected);
        }
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
