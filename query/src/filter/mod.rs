//! Filters: which events, items or sessions are asked for.
//!
//! ```text
//! kind:tool tool:read file:src/** state:superseded     all of these
//! (tool:grep or tool:glob) -status:failed              one of the two, and not failed
//! turn:10..20 tokens:>1000 since:2d                    ranges and times
//! text:"connection refused"  timeout                   what the bodies say
//! ```
//!
//! One filter serves events (`log`, `list`), items (`history`, `stats`) and sessions (those that hold an item that matches).
//! [`parse`] reads the text form, [`judge`] decides. A term that known facts do not decide says so, and the caller looks further:
//! envelope, payload in place, fold, bodies, in the order of their cost.

pub mod judge;
mod lex;
pub mod parse;
#[cfg(test)]
mod tests;
pub mod words;

use std::collections::BTreeSet;
use std::sync::Arc;

use acpdb_engine::event::Actor;
use acpdb_engine::fold::Status;
use acpdb_engine::ids::{Micros, Seq, StreamId};
use acpdb_engine::text::Globs;

use crate::params;

pub use parse::{ParseError, Spot};
pub use words::{KindWord, StateWord};

/// A filter, ready to be asked. [`Filter::default`] lets everything pass.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    pub(crate) text: String,
    pub(crate) expr: Option<Expr>,
    /// Whether the terms about sessions mean sessions of the store by now; see [`crate::settled`].
    pub(crate) is_settled: bool,
}

/// The ways to combine terms.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// One condition.
    Term(Term),
    /// Not this.
    Not(Box<Expr>),
    /// All of these.
    All(Vec<Expr>),
    /// At least one of these.
    Any(Vec<Expr>),
}

/// A condition. Lists mean: one of them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Term {
    /// Kind of event or item.
    Kind(Vec<KindWord>),
    /// Name of the tool, in any case.
    Tool(Globs),
    /// A file that the call names, or the end of its path.
    File(Globs),
    /// The host's id of the session: whole, its beginning, or a pattern.
    Session(Globs),
    /// The host program.
    Host(Globs),
    /// The host's id of the call, or its beginning.
    Call(Globs),
    /// How the item stands.
    State(Vec<StateWord>),
    /// The status of the call.
    Status(Vec<Status>),
    /// The rule that superseded or shortened the item.
    Rule(Vec<&'static str>),
    /// Turn.
    Turn(Range),
    /// Seq.
    Seq(Range),
    /// Estimated tokens as recorded.
    Tokens(Range),
    /// Not before this time.
    Since(Micros),
    /// Not after this time.
    Until(Micros),
    /// A text that a body holds.
    Text(Needle),
    /// The actor of the event.
    Actor(Vec<Actor>),
    /// A text in the session's title.
    Title(Needle),
    /// The folder that the session began in.
    Project(Globs),
    /// A model that answered in the session.
    Model(Globs),
    /// The session's cost, in millionths of a dollar.
    Cost(Range),
    /// The session's duration, in seconds.
    Duration(Range),
    /// One of these streams: the five terms before are settled into this one.
    In(Arc<BTreeSet<StreamId>>),
}

impl Term {
    /// Whether it is about a session as a whole; see [`crate::facts`].
    pub(crate) const fn is_of_session(&self) -> bool {
        matches!(self, Self::Title(_) | Self::Project(_) | Self::Model(_) | Self::Cost(_) | Self::Duration(_))
    }
}

/// Numbers from one to another, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The lowest.
    pub from: u64,
    /// The highest.
    pub to: u64,
}

impl Range {
    /// Whether a number lies in it.
    pub const fn holds(self, number: u64) -> bool {
        self.from <= number && number <= self.to
    }
}

/// A text to look for. In lower case it is found in any case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needle {
    text: String,
    any_case: bool,
}

impl Needle {
    /// A needle; capitals in it make case count.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let any_case = !text.chars().any(char::is_uppercase);
        Self { text, any_case }
    }

    /// The text to look for.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether `body` holds it. Bytes that are no UTF-8 match nothing but themselves.
    pub fn is_in(&self, body: &[u8]) -> bool {
        self.is_in_where(body, |_, _| true)
    }

    /// Whether `body` holds it at a place that counts. `counts` gets the text as it is compared, and the place in it.
    fn is_in_where(&self, body: &[u8], mut counts: impl FnMut(&[u8], usize) -> bool) -> bool {
        let mut is_at =
            |text: &[u8]| memchr::memmem::find_iter(text, &self.text).any(|place| counts(text, place));
        if !self.any_case || !self.text.chars().any(char::is_alphabetic) {
            return is_at(body);
        }
        if self.text.is_ascii() && body.is_ascii() {
            return is_at(&body.to_ascii_lowercase());
        }
        is_at(String::from_utf8_lossy(body).to_lowercase().as_bytes())
    }

    /// Whether the parameters of a call hold it, as JSON or in one of their values.
    pub(crate) fn is_in_params(&self, json: &[u8]) -> bool {
        let mut may_differ = params::may_be_escaped(&self.text) || params::is_escaped_freely(json);
        let is_in_json = self.is_in_where(json, |json, place| {
            let is_cut = params::cuts_an_escape(json, place, place + self.text.len());
            may_differ |= is_cut;
            !is_cut
        });
        // Parameters that are no JSON are read as they stand.
        let is_in_values =
            || params::readable(json).map_or_else(|| self.is_in(json), |text| self.is_in(text.as_bytes()));
        is_in_json || may_differ && is_in_values()
    }
}

impl Filter {
    /// Reads the text form. `since:2d` counts back from `now`.
    ///
    /// # Errors
    /// [`ParseError`] with the spot in the text.
    pub fn parse(text: &str, now: Micros) -> Result<Self, ParseError> {
        parse::parse(text, now)
    }

    /// A filter of one term.
    pub fn term(term: Term) -> Self {
        Self { expr: Some(Expr::Term(term)), ..Self::default() }
    }

    /// A filter that lets a thing pass if both filters do.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let text = match (self.text.is_empty(), other.text.is_empty()) {
            (_, true) => self.text,
            (true, false) => other.text,
            (false, false) => format!("({}) ({})", self.text, other.text),
        };
        let expr = match (self.expr, other.expr) {
            (None, expr) | (expr, None) => expr,
            (Some(left), Some(right)) => Some(Expr::All(vec![left, right])),
        };
        Self { text, expr, is_settled: self.is_settled && other.is_settled }
    }

    /// A filter that lets a thing pass if one of the filters does. If one lets everything pass, so does the result.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let (Some(left), Some(right)) = (self.expr, other.expr) else { return Self::default() };
        Self {
            text: format!("({}) or ({})", self.text, other.text),
            expr: Some(Expr::Any(vec![left, right])),
            is_settled: self.is_settled && other.is_settled,
        }
    }

    /// Whether it lets everything pass.
    pub fn is_empty(&self) -> bool {
        self.expr.is_none()
    }

    /// Whether its terms are only about sessions as a whole, so that it chose the sessions before any item was looked at.
    pub(crate) fn is_of_sessions(&self) -> bool {
        self.terms().iter().all(|term| matches!(term, Term::In(_)))
    }

    /// Its terms, from the last one to the first.
    pub(crate) fn terms(&self) -> Vec<&Term> {
        let mut terms = Vec::new();
        let mut todo: Vec<&Expr> = self.expr.iter().collect();
        while let Some(expr) = todo.pop() {
            match expr {
                Expr::Term(term) => terms.push(term),
                Expr::Not(inner) => todo.push(inner),
                Expr::All(all) | Expr::Any(all) => todo.extend(all),
            }
        }
        terms
    }

    /// As [`Filter::terms`], to put others in their places.
    pub(crate) fn terms_mut(&mut self) -> Vec<&mut Term> {
        let mut terms = Vec::new();
        let mut todo: Vec<&mut Expr> = self.expr.iter_mut().collect();
        while let Some(expr) = todo.pop() {
            match expr {
                Expr::Term(term) => terms.push(term),
                Expr::Not(inner) => todo.push(inner),
                Expr::All(all) | Expr::Any(all) => todo.extend(all),
            }
        }
        terms
    }

    /// The text it was read from.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The facts that the filter asks for, so that callers only look up these.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        self.terms().into_iter().for_each(|term| needs.add(term));
        needs
    }

    /// The seqs outside of which nothing matches.
    pub fn bounds(&self) -> (Seq, Seq) {
        fn of(expr: &Expr) -> (u64, u64) {
            match expr {
                Expr::Term(Term::Seq(range)) => (range.from, range.to),
                Expr::All(all) => all
                    .iter()
                    .map(of)
                    .fold((0, u64::MAX), |left, right| (left.0.max(right.0), left.1.min(right.1))),
                Expr::Any(any) => any
                    .iter()
                    .map(of)
                    .fold((u64::MAX, 0), |left, right| (left.0.min(right.0), left.1.max(right.1))),
                _ => (0, u64::MAX),
            }
        }
        let (from, to) = self.expr.as_ref().map_or((0, u64::MAX), of);
        (Seq(from.max(1)), Seq(to))
    }
}

/// The facts that must be known to decide a filter.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The fold of the stream: state, status, rule, turn.
    pub fold: bool,
    /// Bodies.
    pub text: bool,
    /// Times.
    pub time: bool,
    /// Actors.
    pub actor: bool,
    /// Names of sessions and hosts.
    pub names: bool,
    /// Facts about sessions as a whole.
    pub facts: bool,
    /// Those of these facts that only the requests of all sessions tell.
    pub requests: bool,
}

impl Needs {
    fn add(&mut self, term: &Term) {
        match term {
            Term::State(_) | Term::Status(_) | Term::Rule(_) | Term::Turn(_) => self.fold = true,
            Term::Text(_) => self.text = true,
            Term::Since(_) | Term::Until(_) => self.time = true,
            Term::Actor(_) => self.actor = true,
            Term::Session(_) | Term::Host(_) => self.names = true,
            Term::Project(_) => self.facts = true,
            Term::Title(_) | Term::Model(_) | Term::Cost(_) | Term::Duration(_) => {
                self.facts = true;
                self.requests = true;
            }
            _ => {}
        }
    }
}
