//! The requests that a filter asks for.

use acpdb_engine::ids::StreamId;
use acpdb_engine::{Error, Store};

use super::{BilledRequest, Requests};
use crate::facts::{self, is_model};
use crate::filter::{Expr, Filter, Term};
use crate::names::of_stream;

/// Whether a filter asks only what a request or its session can answer; else it is about items.
pub fn is_of_requests(filter: &Filter) -> bool {
    let of_session = |term: &Term| matches!(term, Term::Session(_) | Term::Host(_) | Term::In(_));
    let of_request = |term: &Term| matches!(term, Term::Since(_) | Term::Until(_));
    filter.terms().into_iter().all(|term| term.is_of_session() || of_session(term) || of_request(term))
}

/// The filter with its conditions about sessions answered, for [`Requests::is_wanted`]. Cost: as [`crate::settled`].
///
/// # Errors
/// If the log cannot be read, or no session is called so.
pub fn settled(store: &Store, mut filter: Filter) -> Result<Filter, Error> {
    // A model is asked for by its requests, and not by the sessions in which it answered.
    let of_sessions = filter.terms_mut().into_iter().filter(|term| !matches!(term, Term::Model(_)));
    let mut of_sessions: Vec<&mut Term> = of_sessions.collect();
    // All at once: each settling reads the names and the requests of all sessions.
    let asked = of_sessions.iter().map(|term| Expr::Term((**term).clone())).collect();
    let asked = facts::settled(store, Filter { expr: Some(Expr::All(asked)), ..Filter::default() })?;
    for (term, found) in of_sessions.iter_mut().rev().zip(asked.terms()) {
        **term = found.clone();
    }
    filter.is_settled = true;
    Ok(filter)
}

impl Requests {
    /// Whether a filter asks for a request. The filter is [`settled`].
    pub fn is_wanted(&self, filter: &Filter, request: &BilledRequest) -> bool {
        self.judge(filter, request.stream, Some(request)) == Some(true)
    }

    /// Whether a filter may ask for requests of a session. The filter is [`settled`].
    pub fn may_be_wanted(&self, filter: &Filter, stream: StreamId) -> bool {
        self.judge(filter, stream, None) != Some(false)
    }

    /// A session is asked for with its subagents: their requests are its cost.
    fn judge(&self, filter: &Filter, stream: StreamId, request: Option<&BilledRequest>) -> Option<bool> {
        let of = |term: &Term, stream: StreamId| {
            self.streams.get(&stream).is_some_and(|name| of_stream(term, name) == Some(true))
        };
        let root = self.root(stream);
        filter.judge(&|term: &Term| match term {
            Term::Since(since) => request.map(|request| request.at.is_some_and(|at| at >= *since)),
            Term::Until(until) => request.map(|request| request.at.is_some_and(|at| at <= *until)),
            Term::Model(globs) => {
                request.map(|request| request.model.as_ref().is_some_and(|model| is_model(globs, model)))
            }
            Term::Session(_) => Some(of(term, stream) || of(term, root)),
            Term::Host(_) => Some(of(term, stream)),
            _ => Some(of(term, root)),
        })
    }
}
