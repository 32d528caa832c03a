//! Deciding a filter from what is known: yes, no, or not yet.
//!
//! Kleene's logic of three values: `not known and false` is false, `not known or true` is true. So a filter is decided
//! as early as what is cheap to know allows, and bodies are only read when everything else leaves it open.

use super::{Expr, Filter, Term};

/// What is known of something that a filter is asked about: `None` is "not at this stage".
pub trait Known {
    /// Whether a term holds.
    fn holds(&self, term: &Term) -> Option<bool>;
}

impl<F: Fn(&Term) -> Option<bool>> Known for F {
    fn holds(&self, term: &Term) -> Option<bool> {
        self(term)
    }
}

impl Filter {
    /// Whether something passes, as far as it can be told.
    pub fn judge(&self, known: &dyn Known) -> Option<bool> {
        self.expr.as_ref().map_or(Some(true), |expr| judge(expr, known))
    }
}

/// Nesting is bounded by the parser, so this recursion is.
fn judge(expr: &Expr, known: &dyn Known) -> Option<bool> {
    match expr {
        Expr::Term(term) => known.holds(term),
        Expr::Not(inner) => judge(inner, known).map(|verdict| !verdict),
        Expr::All(all) => until(all, known, false),
        Expr::Any(any) => until(any, known, true),
    }
}

/// The first verdict that decides, else "not known" if anything was, else the other.
fn until(parts: &[Expr], known: &dyn Known, decides: bool) -> Option<bool> {
    let mut verdict = Some(!decides);
    for part in parts {
        match judge(part, known) {
            Some(found) if found == decides => return Some(decides),
            Some(_) => {}
            None => verdict = None,
        }
    }
    verdict
}
