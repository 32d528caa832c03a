//! Deciding a filter from known facts: yes, no, or not yet.
//!
//! Kleene's logic of three values: `not known and false` is false, `not known or true` is true. So a filter is decided as early as
//! cheap facts allow, and bodies are only read if all other facts leave it open.

use std::cell::RefCell;

use acpdb_engine::Error;

use super::{Expr, Filter, Needle, Term};

/// Whether a term holds for the thing that the filter judges: `None` is "not known at this stage".
pub type Known<'k> = dyn Fn(&Term) -> Option<bool> + 'k;

impl Filter {
    /// Whether something passes, as far as it can be told.
    pub fn judge(&self, known: &Known<'_>) -> Option<bool> {
        self.expr.as_ref().map_or(Some(true), |expr| judge(expr, known))
    }

    /// Whether something passes; its texts are only read if the known facts leave it open.
    pub(crate) fn judge_texts(
        &self,
        known: &Known<'_>,
        mut holds: impl FnMut(&Needle) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        if let Some(verdict) = self.judge(known) {
            return Ok(verdict);
        }
        let holds = RefCell::new(|needle: &Needle| holds(needle));
        let failed = RefCell::new(None);
        let verdict = self.judge(&|term: &Term| {
            known(term).or_else(|| {
                let Term::Text(needle) = term else { return Some(false) };
                let found = (holds.borrow_mut())(needle);
                Some(found.unwrap_or_else(|error| {
                    failed.replace(Some(error));
                    false
                }))
            })
        });
        failed.into_inner().map_or(Ok(verdict == Some(true)), Err)
    }
}

/// Nesting is bounded by the parser, so this recursion is bounded, too.
fn judge(expr: &Expr, known: &Known<'_>) -> Option<bool> {
    match expr {
        Expr::Term(term) => known(term),
        Expr::Not(inner) => judge(inner, known).map(|verdict| !verdict),
        Expr::All(all) => until(all, known, false),
        Expr::Any(any) => until(any, known, true),
    }
}

/// The first verdict that decides, else "not known" if any verdict was, else the other verdict.
fn until(parts: &[Expr], known: &Known<'_>, decides: bool) -> Option<bool> {
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
