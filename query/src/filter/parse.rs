//! The text form: tokens to expressions, words to terms, and errors that point at the spot.

use std::ops::Range as Bytes;

use acpdb_engine::ids::Micros;
use acpdb_engine::text::Globs;
use acpdb_engine::text::likeness::{kept_share, nearest};
use acpdb_engine::text::paths::plain;
use winnow::combinator::{delimited, opt, preceded, repeat, separated};
use winnow::error::ContextError;
use winnow::prelude::*;
use winnow::stream::TokenSlice;
use winnow::token::any;

use super::lex::{self, FilterWord, SpannedToken, TokenKind};
use super::words::{self, FIELDS, KindWord};
use super::{Expr, Filter, Needle, Range, Term};
use crate::when;

/// Longest filter, in bytes.
pub const FILTER_BYTES_MAX: usize = 8 << 10;
/// Deepest nesting of parentheses and negations.
pub const FILTER_DEPTH_MAX: usize = 64;
/// Least likeness of a word that is suggested.
const LIKENESS_MIN: f64 = 0.7;
/// How few letters may differ: two of three are too many.
const SLIP_MIN: f64 = 0.65;

/// The place of a fault in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The text, on one line.
    pub text: String,
    /// The first wrong character, from 0.
    pub column: usize,
    /// The number of wrong characters; at least 1.
    pub width: usize,
}

impl Spot {
    /// The spot of some bytes of a text.
    pub fn of(text: &str, bytes: Bytes<usize>) -> Self {
        let chars = |range: Bytes<usize>| text.get(range).map_or(0, |part| part.chars().count());
        let column = chars(0..bytes.start.min(text.len()));
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Self { column, width: chars(bytes).max(1), text }
    }

    /// The text with a line of carets below it. A long text is cut to the part around the spot.
    pub fn picture(&self) -> String {
        const BEFORE: usize = 40;
        const AFTER: usize = 40;
        // A spot near the beginning has less text before it.
        let skip = self.column.saturating_sub(BEFORE);
        let mark = if skip > 0 { "…" } else { "" };
        let shown: String = self.text.chars().skip(skip).take(BEFORE + AFTER).collect();
        let count = shown.chars().count();
        let rest = if self.text.chars().count() > skip + count { "…" } else { "" };
        let wide = |text: &str| unicode_width::UnicodeWidthStr::width(text);
        let head: String = shown.chars().take(self.column - skip).collect();
        let spot: String = shown.chars().skip(self.column - skip).take(self.width).collect();
        let blanks = " ".repeat(wide(mark) + wide(&head));
        let carets = "^".repeat(wide(&spot).max(1));
        format!("  {mark}{shown}{rest}\n  {blanks}{carets}")
    }
}

/// A fault of a filter, and its place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (column {})\n{}", spot.column + 1, spot.picture())]
pub struct ParseError {
    /// The fault, in a line.
    pub message: String,
    /// The place of the fault.
    pub spot: Spot,
    /// A hint on how to write it instead.
    pub hint: Option<String>,
}

/// A fault of one word, before it is known where in the text the word stands.
struct WordFault {
    span: Bytes<usize>,
    message: String,
    hint: Option<String>,
}

impl WordFault {
    fn new(span: &Bytes<usize>, message: impl Into<String>) -> Self {
        Self { span: span.clone(), message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    fn in_text(self, text: &str) -> ParseError {
        ParseError { message: self.message, spot: Spot::of(text, self.span), hint: self.hint }
    }
}

pub(super) fn parse(text: &str, now: Micros) -> Result<Filter, ParseError> {
    let fault = |fault: WordFault| fault.in_text(text);
    if text.len() > FILTER_BYTES_MAX {
        let message = format!("the filter is longer than {FILTER_BYTES_MAX} bytes");
        return Err(fault(WordFault::new(&(0..1), message)));
    }
    let mut tokens = lex::tokens(text).map_err(|place| {
        let place = text.get(place..).and_then(|rest| rest.find('"')).map_or(place, |quote| place + quote);
        fault(WordFault::new(&(place..place + 1), "the quotation does not end").hint("close it with \""))
    })?;
    if tokens.is_empty() {
        return Ok(Filter::default());
    }
    join_times(text, &mut tokens, now);
    check_shape(&tokens).map_err(fault)?;
    let pieces = tokens.iter().map(|token| token.kind.read(|word| term(word, token, now)));
    let pieces: Vec<Piece> = pieces.collect::<Result<_, WordFault>>().map_err(fault)?;
    let expr = any_of.parse(TokenSlice::new(&pieces)).map_err(|error| {
        // Shape and depth were checked: the fault is a dangling word between two others.
        let span = tokens.get(error.offset()).map_or(text.len()..text.len(), |token| token.span.clone());
        fault(WordFault::new(&span, "a condition is expected here"))
    })?;
    Ok(Filter { text: text.to_owned(), expr: Some(expr), is_settled: false })
}

/// Words that stand in one time after the first.
const TIME_WORDS_MAX: usize = 4;

/// Makes one value of the words of a time, as in `since:last week` and `until:2026-03-12 09:10`: as many as make up a time.
fn join_times(text: &str, tokens: &mut Vec<SpannedToken>, now: Micros) {
    for place in 0..tokens.len() {
        let Some(SpannedToken { kind: TokenKind::Word(word), .. }) = tokens.get(place) else { continue };
        let is_time = |(field, _): &(String, _)| matches!(field.to_lowercase().as_str(), "since" | "until");
        if !word.field.as_ref().is_some_and(is_time) {
            continue;
        }
        let start = word.value_span.start;
        let rest = tokens.get(place + 1..).unwrap_or_default();
        let words = rest.iter().take_while(|token| matches!(token.kind, TokenKind::Word(_)));
        let words: Vec<usize> = words.take(TIME_WORDS_MAX).map(|token| token.span.end).collect();
        let longer = words.iter().enumerate().rev().find_map(|(number, end)| {
            let value = text.get(start..*end).filter(|value| !value.contains('"'))?;
            // Words that make up no time are conditions of their own.
            when::moment(value, now).ok().map(|_| (number + 1, value.to_owned(), *end))
        });
        let Some((count, value, end)) = longer else { continue };
        tokens.drain(place + 1..=place + count);
        if let Some(SpannedToken { kind: TokenKind::Word(word), span }) = tokens.get_mut(place) {
            (word.value, word.value_span.end, span.end) = (value, end, end);
        }
    }
}

/// Parentheses pair up, and every word that combines has a condition to combine.
fn check_shape(tokens: &[SpannedToken]) -> Result<(), WordFault> {
    let mut open: Vec<&SpannedToken> = Vec::new();
    let mut nots = 0_usize;
    // Whether a condition must come next, and the token that wants it.
    let mut wants: Option<Option<&SpannedToken>> = Some(None);
    for token in tokens {
        match &token.kind {
            TokenKind::Word(_) => {
                wants = None;
                nots = 0;
            }
            TokenKind::Open => {
                open.push(token);
                wants = Some(Some(token));
            }
            TokenKind::Not => {
                nots += 1;
                wants = Some(Some(token));
            }
            TokenKind::Close => {
                match wants {
                    Some(Some(SpannedToken { kind: TokenKind::Open, span })) => {
                        return Err(WordFault::new(
                            &(span.start..token.span.end),
                            "the parentheses are empty",
                        ));
                    }
                    Some(_) => {
                        return Err(WordFault::new(&token.span, "a condition is expected before this"));
                    }
                    None => {}
                }
                if open.pop().is_none() {
                    return Err(WordFault::new(&token.span, "this parenthesis was not opened"));
                }
                nots = 0;
            }
            TokenKind::Or | TokenKind::And => {
                if wants.is_some() {
                    return Err(WordFault::new(&token.span, "a condition is expected before this"));
                }
                wants = Some(Some(token));
                nots = 0;
            }
        }
        if open.len() + nots > FILTER_DEPTH_MAX {
            let message = format!("the filter is nested more than {FILTER_DEPTH_MAX} deep");
            return Err(WordFault::new(&token.span, message));
        }
    }
    if let Some(Some(token)) = wants {
        return Err(WordFault::new(&token.span, "a condition is expected after this"));
    }
    match open.pop() {
        Some(token) => Err(WordFault::new(&token.span, "this parenthesis is not closed")),
        None => Ok(()),
    }
}

/// A token whose word is read.
type Piece = TokenKind<Term>;
type Pieces<'p> = TokenSlice<'p, Piece>;

fn is<'p>(kind: Piece) -> impl Parser<Pieces<'p>, (), ContextError> {
    any.verify(move |piece: &Piece| *piece == kind).void()
}

/// `a b or c d`: or binds least.
fn any_of(input: &mut Pieces<'_>) -> winnow::Result<Expr> {
    separated(1.., all_of, is(Piece::Or)).map(|parts: Vec<Expr>| one_or(parts, Expr::Any)).parse_next(input)
}

fn all_of(input: &mut Pieces<'_>) -> winnow::Result<Expr> {
    repeat(1.., preceded(opt(is(Piece::And)), negated))
        .map(|parts: Vec<Expr>| one_or(parts, Expr::All))
        .parse_next(input)
}

fn negated(input: &mut Pieces<'_>) -> winnow::Result<Expr> {
    let nots: usize = repeat(0.., is(Piece::Not)).map(|nots: Vec<()>| nots.len()).parse_next(input)?;
    let inner = single(input)?;
    Ok(if nots % 2 == 1 { Expr::Not(Box::new(inner)) } else { inner })
}

fn single(input: &mut Pieces<'_>) -> winnow::Result<Expr> {
    let group = delimited(is(Piece::Open), any_of, is(Piece::Close));
    let term = any.verify_map(|piece: &Piece| match piece {
        Piece::Word(term) => Some(Expr::Term(term.clone())),
        _ => None,
    });
    winnow::combinator::alt((group, term)).parse_next(input)
}

fn one_or(mut parts: Vec<Expr>, many: fn(Vec<Expr>) -> Expr) -> Expr {
    match parts.pop() {
        Some(only) if parts.is_empty() => only,
        Some(last) => {
            parts.push(last);
            many(parts)
        }
        None => many(parts),
    }
}

fn term(word: &FilterWord, token: &SpannedToken, now: Micros) -> Result<Term, WordFault> {
    let Some((field, field_span)) = &word.field else {
        // `tool=read` is meant to be a field; a search for this text would find nothing.
        if let Some((field, value)) = word.value.split_once('=')
            && FIELDS.iter().any(|(name, _)| *name == field)
        {
            let fault = WordFault::new(&token.span, "a field and its value are joined by a colon");
            return Err(fault.hint(format!("write {field}:{value}")));
        }
        return Ok(Term::Text(Needle::new(&word.value)));
    };
    let Some((name, example)) = words::field(&field.to_lowercase()) else {
        let known = FIELDS.iter().map(|(name, _)| *name);
        let fault = WordFault::new(field_span, format!("there is no field {field:?}"));
        let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
        return Err(fault.hint(match near(field, known) {
            // An id that was made for a session without one, as lists print it.
            _ if field == "derived" => {
                format!("a session is named by -s {field}:{0}, or session:{field}:{0}", word.value)
            }
            Some(near) => format!("did you mean {near}: ?"),
            None => format!("fields: {}; a text with a colon goes into quotes", names.join(" ")),
        }));
    };
    if word.value.is_empty() {
        let fault = WordFault::new(&token.span, format!("{name}: has no value"));
        return Err(fault.hint(format!("such as {name}:{example}")));
    }
    let value = FieldValue { word, name, example };
    match name {
        "kind" => value.words(&words::kinds(), KindWord::parse).map(Term::Kind),
        "state" => value.of(words::STATES).map(Term::State),
        "status" => value.of(words::STATUSES).map(Term::Status),
        "actor" => value.of(words::ACTORS).map(Term::Actor),
        "rule" => {
            let rules = words::rules();
            // The rule of repeats went by the names of its two modes.
            let now = |word: &str| {
                if matches!(word, "hash" | "dedup") { "repeat".to_owned() } else { word.to_owned() }
            };
            let named = |word: &str| rules.iter().find(|rule| **rule == now(word)).copied();
            value.words(&rules, named).map(Term::Rule)
        }
        // Names of tools are compared in lower case.
        "tool" => value.globs(&|tool| vec![tool.to_lowercase()], false).map(Term::Tool),
        "host" => value.globs(&|host| vec![host.to_lowercase()], false).map(Term::Host),
        "session" => value.globs(&begins, false).map(Term::Session),
        "call" => value.globs(&begins, false).map(Term::Call),
        "file" => value.globs(&file_patterns, true).map(Term::File),
        "turn" => value.range(&['t']).map(Term::Turn),
        "seq" => value.range(&['#']).map(Term::Seq),
        "tokens" => value.range(&[]).map(Term::Tokens),
        "title" => Ok(Term::Title(Needle::new(&word.value))),
        "project" => value.globs(&|name| within(&name.to_lowercase()), false).map(Term::Project),
        "model" => {
            value.globs(&|name| within(&name.to_lowercase().replace('.', "-")), false).map(Term::Model)
        }
        "cost" => value.range_of(&millionths).map(Term::Cost),
        "duration" => value.range_of(&seconds).map(Term::Duration),
        "since" => value.time(now, false).map(Term::Since),
        "until" => value.time(now, true).map(Term::Until),
        _ => Ok(Term::Text(Needle::new(&word.value))),
    }
}

/// A name without wildcards stands for its beginning, too.
fn begins(name: &str) -> Vec<String> {
    if name.contains(['*', '?']) { vec![name.to_owned()] } else { vec![name.to_owned(), format!("{name}*")] }
}

/// A name without wildcards stands for each text that holds it, too.
fn within(name: &str) -> Vec<String> {
    if name.contains(['*', '?']) { vec![name.to_owned()] } else { vec![format!("*{name}*")] }
}

/// Dollars as millionths of them.
fn millionths(text: &str) -> Option<u64> {
    let text = text.trim_start_matches('$');
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if (whole.is_empty() && part.is_empty()) || part.len() > 6 || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    whole.checked_mul(1_000_000)?.checked_add(part)
}

/// A length of time as seconds: `90`, `90s`, `10m`, `2h`, `1d`.
fn seconds(text: &str) -> Option<u64> {
    let (digits, unit) = match text.chars().last()? {
        's' => (text.strip_suffix('s')?, 1),
        'm' => (text.strip_suffix('m')?, 60),
        'h' => (text.strip_suffix('h')?, 3600),
        'd' => (text.strip_suffix('d')?, 86_400),
        _ => (text, 1),
    };
    let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
    // The caller reports a text that is no number, with its place.
    digits.parse::<u64>().ok().filter(|_| is_number)?.checked_mul(unit)
}

/// A path, the same path below any folder, and the files in it if it is a folder.
fn file_patterns(path: &str) -> Vec<String> {
    let path = &*plain(path);
    let path = path.strip_prefix("./").unwrap_or(path);
    let folder = path.strip_suffix('/').map(|folder| format!("{folder}/**"));
    let path = folder.as_deref().unwrap_or(path);
    if path.starts_with('/') || path.starts_with("**") {
        return vec![path.to_owned()];
    }
    vec![path.to_owned(), format!("**/{path}")]
}

/// The value of a field, to be read in the form that the field wants.
struct FieldValue<'w> {
    word: &'w FilterWord,
    name: &'w str,
    example: &'w str,
}

impl FieldValue<'_> {
    fn fault(&self, message: impl Into<String>) -> WordFault {
        WordFault::new(&self.word.value_span, message)
    }

    /// Words from a list, joined by commas.
    fn words<T>(&self, known: &[&str], read: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, WordFault> {
        let mut found = Vec::new();
        for word in self.word.value.split(',') {
            let plain = word.to_lowercase().replace('-', "_");
            let Some(value) = read(&plain) else {
                let fault = self.fault(format!("{}: does not know {word:?}", self.name));
                return Err(match near(&plain, known.iter().copied()) {
                    Some(near) => fault.hint(format!("did you mean {}:{near}?", self.name)),
                    None => fault.hint(format!("{} is one of: {}", self.name, known.join(" "))),
                });
            };
            found.push(value);
        }
        Ok(found)
    }

    fn of<T: Copy>(&self, list: &[(&str, T)]) -> Result<Vec<T>, WordFault> {
        let names: Vec<&str> = list.iter().map(|(name, _)| *name).collect();
        self.words(&names, |word| list.iter().find(|(name, _)| *name == word).map(|(_, value)| *value))
    }

    fn globs(&self, patterns: &dyn Fn(&str) -> Vec<String>, paths: bool) -> Result<Globs, WordFault> {
        let all: Vec<String> = self.word.value.split(',').flat_map(patterns).collect();
        let globs = if paths { Globs::paths(&all) } else { Globs::names(&all) };
        globs.map_err(|error| self.fault(error.to_string()))
    }

    /// As [`FieldValue::range_of`], for counts; numbers may end in k or M.
    fn range(&self, marks: &[char]) -> Result<Range, WordFault> {
        self.range_of(&|text: &str| {
            let text = text.trim_start_matches(marks);
            let (digits, unit) = match text.chars().last() {
                Some('k' | 'K') => (text.get(..text.len() - 1).unwrap_or_default(), 1000),
                Some('m' | 'M') => (text.get(..text.len() - 1).unwrap_or_default(), 1_000_000),
                _ => (text, 1),
            };
            let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
            let number: Option<u64> = if is_number { digits.parse().ok() } else { None };
            number.and_then(|number| number.checked_mul(unit))
        })
    }

    /// `10`, `10..20`, `10..`, `..20`, `>10`, `>=10`, `<10`, `<=10`.
    fn range_of(&self, read: &dyn Fn(&str) -> Option<u64>) -> Result<Range, WordFault> {
        let text = self.word.value.as_str();
        let wrong = || {
            let fault = self.fault(format!("{}: wants a number or a range, not {text:?}", self.name));
            let example = if self.example.contains("..") { "12" } else { self.example };
            fault.hint(format!("such as {}:{example} or {}:10..20", self.name, self.name))
        };
        let number = |text: &str| read(text).ok_or_else(wrong);
        let none = || self.fault(format!("{}:{text} holds no number", self.name));
        let (from, to) = if let Some(rest) = text.strip_prefix(">=") {
            (number(rest)?, u64::MAX)
        } else if let Some(rest) = text.strip_prefix('>') {
            (number(rest)?.checked_add(1).ok_or_else(none)?, u64::MAX)
        } else if let Some(rest) = text.strip_prefix("<=") {
            (0, number(rest)?)
        } else if let Some(rest) = text.strip_prefix('<') {
            (0, number(rest)?.checked_sub(1).ok_or_else(none)?)
        } else if let Some((from, to)) = text.split_once("..") {
            let from = if from.is_empty() { 0 } else { number(from)? };
            (from, if to.is_empty() { u64::MAX } else { number(to)? })
        } else {
            let only = number(text)?;
            (only, only)
        };
        if from > to {
            let fault = self.fault(format!("the range {text} is reversed"));
            return Err(fault.hint(format!("write {}:{to}..{from}", self.name)));
        }
        Ok(Range { from, to })
    }

    /// A time: of a day, its beginning or its end.
    fn time(&self, now: Micros, is_end: bool) -> Result<Micros, WordFault> {
        let text = self.word.value.as_str();
        let time = when::moment(text, now).map_err(|reason| {
            let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
            let fault = self.fault(format!("{}: {text:?} is no time{reason}", self.name));
            fault.hint(format!("such as 2d, {}", when::TIME_FORMS))
        })?;
        if time.from > now && !is_end {
            return Err(self.fault(format!("{}:{text} is yet to come; nothing is that new", self.name)));
        }
        Ok(if is_end { time.to } else { time.from })
    }
}

/// The word that is most like another one, if any is.
pub(crate) fn near<'w>(word: &str, known: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    let word = word.to_lowercase();
    // A word that shares only letters with a known one is no slip of the finger: the list of all helps more.
    let is_slip = |name: &&str| kept_share(name, &word) > SLIP_MIN;
    nearest(known.filter(is_slip), &word, LIKENESS_MIN)
}
