//! Facts about sessions as a whole: title, project, models, cost, duration.
//!
//! Conditions about these facts are answered before anything else is asked: a filter that holds some is [`settled`] into one
//! that names the sessions which match. So no other question has to know the facts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use acpdb_engine::event::Scope;
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::text::{Globs, project_of};
use acpdb_engine::{Error, Store, store::StreamName};

use crate::cost::{PriceTable, Pricing, Requests, requests};
use crate::filter::{Filter, Term};
use crate::lineage::lineage;
use crate::names::StreamsByName;
use crate::titles::title_at;

/// The facts about a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionFacts {
    /// The models that answered it, each once, in order of their names.
    pub models: Vec<String>,
    /// Dollars, its subagents included; `None` if no table prices any of its requests.
    pub cost: Option<f64>,
    /// Requests of other sessions stand in it, as in one that was resumed in a new file.
    pub has_copies: bool,
    /// Seconds from its first event to its newest, as far as times are known.
    pub duration_seconds: Option<u64>,
    /// The event that gave it its newest title after it began.
    pub titled: Option<Seq>,
}

/// The facts about all sessions, up to `to`.
///
/// Cost: as [`requests`].
///
/// # Errors
/// If the log cannot be read.
pub fn facts(store: &Store, to: Seq) -> Result<BTreeMap<StreamId, SessionFacts>, Error> {
    Ok(facts_of(&requests(store, to)?))
}

/// The facts about the sessions of some requests.
pub(crate) fn facts_of(requests: &Requests) -> BTreeMap<StreamId, SessionFacts> {
    // A table that cannot be used would be a fault of the program: costs are unknown then.
    let table = PriceTable::built_in().ok();
    of_requests(requests, table.as_ref())
}

fn of_requests(requests: &Requests, table: Option<&PriceTable>) -> BTreeMap<StreamId, SessionFacts> {
    let mut facts: BTreeMap<StreamId, SessionFacts> = BTreeMap::new();
    for stream in requests.streams.keys() {
        let known = facts.entry(*stream).or_default();
        known.titled = requests.titles.get(stream).copied();
        known.duration_seconds = requests.spans.get(stream).map(|(first, last)| {
            u64::try_from(last.get().saturating_sub(first.get()) / 1_000_000).unwrap_or_default()
        });
    }
    let mut pricing = table.map(Pricing::of);
    for request in &requests.all {
        let price = request.model.as_ref().and_then(|model| pricing.as_mut()?.price(model, request.at));
        let dollars = price.and_then(|price| price.dollars(&request.usage, request.tier.as_deref()));
        let mut added = BTreeSet::new();
        for stream in requests.line(request.stream).take_while(|stream| added.insert(*stream)) {
            let known = facts.entry(stream).or_default();
            if let Some(dollars) = &dollars {
                *known.cost.get_or_insert_default() += dollars.total();
            }
            if let Some(model) = request.model.as_deref().filter(|_| stream == request.stream)
                && let Err(place) = known.models.binary_search_by(|known| known.as_str().cmp(model))
            {
                known.models.insert(place, model.to_owned());
            }
        }
    }
    for copy in &requests.copies {
        facts.entry(copy.stream).or_default().has_copies = true;
    }
    for cost in facts.values_mut().filter_map(|known| known.cost.as_mut()) {
        *cost = (*cost * 1e6).round() / 1e6;
    }
    facts
}

/// The filter with its conditions about sessions answered: those about whole sessions name the sessions that match, and `session:` means
/// the session of exactly that name, or those whose names begin so. Cost: a look at the beginning of each session, so a caller that asks
/// many sessions settles the filter before.
///
/// # Errors
/// If the log cannot be read, or no session is called so.
pub fn settled(store: &Store, mut filter: Filter) -> Result<Filter, Error> {
    let needs = filter.needs();
    if !filter.is_settled && (needs.facts || needs.names) {
        // Only the change of the filter is needed.
        let _ = crate::names::StreamsByName::among(store, &mut filter, &store.stream_names()?)?;
    }
    filter.is_settled = true;
    Ok(filter)
}

/// As [`settled`], for a caller that has the names of all streams.
pub(crate) fn settled_among(store: &Store, mut filter: Filter, all: &[StreamName]) -> Result<Filter, Error> {
    let needs = filter.needs();
    let names = || all.iter().filter(|name| name.scope == Scope::Session);
    let requests = if needs.requests { requests(store, Seq::MAX)? } else { Requests::default() };
    let known = facts_of(&requests);
    for term in filter.terms_mut().into_iter().filter(|term| term.is_of_session()) {
        let mut matching = BTreeSet::new();
        for name in names() {
            let facts = known.get(&name.id);
            if holds(store, term, name, facts)? || shares(store, term, name, &requests)? {
                matching.insert(name.id);
            }
        }
        *term = Term::In(Arc::new(matching));
    }
    Ok(filter)
}

fn holds(store: &Store, term: &Term, name: &StreamName, facts: Option<&SessionFacts>) -> Result<bool, Error> {
    Ok(match term {
        Term::Title(needle) => {
            let changed = facts.and_then(|facts| facts.titled);
            title_at(store, name, changed, None)?.is_some_and(|title| needle.is_in(title.as_bytes()))
        }
        Term::Project(globs) => {
            let is_it = |folder: &str| globs.is_match(&folder.to_lowercase());
            name.folder.as_ref().is_some_and(|folder| is_it(folder) || is_it(&project_of(folder)))
        }
        Term::Model(globs) => {
            facts.is_some_and(|facts| facts.models.iter().any(|model| is_model(globs, model)))
        }
        Term::Cost(range) => facts.is_some_and(|facts| range.holds(millionths(facts.cost.unwrap_or(0.0)))),
        Term::Duration(range) => {
            facts.and_then(|facts| facts.duration_seconds).is_some_and(|seconds| range.holds(seconds))
        }
        _ => false,
    })
}

/// Whether a model that a term names answered in the history that a session shares as a fork.
fn shares(store: &Store, term: &Term, name: &StreamName, requests: &Requests) -> Result<bool, Error> {
    let Term::Model(globs) = term else { return Ok(false) };
    let parts = lineage(store, name.id, Seq::MAX)?;
    let mut shared = parts.iter().filter(|part| part.stream != name.id);
    Ok(shared.any(|part| {
        let told = requests.all.iter().filter(|told| told.stream == part.stream && told.seq <= part.to);
        told.filter_map(|told| told.model.as_deref()).any(|model| is_model(globs, model))
    }))
}

pub(crate) fn is_model(globs: &Globs, model: &str) -> bool {
    globs.is_match(&model.to_lowercase().replace('.', "-"))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cost is never negative, and below 2^63"
)]
fn millionths(dollars: f64) -> u64 {
    (dollars * 1e6).round() as u64
}

/// Whether a session can match a filter, by its names alone. The filter is [`settled`].
pub fn may_hold(filter: &Filter, name: &StreamName) -> bool {
    StreamsByName::may_hold(filter, name)
}

#[cfg(test)]
mod tests {
    use acpdb_engine::entry::{Entry, StreamInfo, fact};
    use acpdb_engine::event::{Report, Role, Usage};
    use acpdb_engine::ids::Micros;

    use super::*;
    use crate::testing::store;

    fn session(store: &Store, name: &str, cwd: &str, model: &str, thousands: u64, minutes: i64) {
        let info = StreamInfo { cwd: Some(cwd.to_owned()), ..StreamInfo::session("host", name) };
        let start = 1_770_000_000_000_000;
        let usage = Usage { input: Some(thousands * 1000), ..Usage::default() };
        let report = Report { model: Some(model.to_owned()), usage, ..Report::default() };
        let told = fact::MessageFinished { key: "m".to_owned(), report };
        let entries = vec![
            Entry::message("", Role::User, format!("mend the {name} parser")).at(Some(Micros(start))),
            Entry::from(told).at(Some(Micros(start + minutes * 60_000_000))),
        ];
        let _ = store.append(&info, entries).unwrap();
    }

    #[test]
    fn sessions_are_chosen_by_what_is_known_of_them_as_a_whole() {
        let store = store();
        session(&store, "one", "/home/me/shop-api", "claude-opus-5-5", 100, 5);
        session(&store, "two", "/home/me/site", "gpt-5.4", 1000, 90);
        session(&store, "three", "/home/me/site", "unheard-of", 1000, 1);
        for (filter, expected) in [
            ("title:parser", &["one", "two", "three"][..]),
            ("title:\"two parser\"", &["two"]),
            ("project:shop", &["one"]),
            ("project:/home/me/site", &["two", "three"]),
            ("project:*/site", &["two", "three"]),
            ("model:opus", &["one"]),
            ("model:gpt-5.4,opus", &["one", "two"]),
            ("cost:>0.4", &["two"]),
            ("cost:0.4", &["one"]),
            ("cost:<=0.40", &["one", "three"]),
            ("duration:>1h", &["two"]),
            ("duration:1m..5m", &["one", "three"]),
            ("duration:90", &[]),
            ("not model:opus", &["two", "three"]),
            ("project:site (model:gpt or cost:0)", &["two", "three"]),
            ("project:site kind:tool", &[]),
        ] {
            let asked = Filter::parse(filter, Micros(0)).unwrap();
            let rows = crate::sessions(&store, Seq::MAX, &asked).unwrap();
            let found: Vec<String> = rows.map(|row| row.unwrap().summary.name.name).collect();
            assert_eq!(found, expected, "{filter}");
        }
        let error = |filter: &str| Filter::parse(filter, Micros(0)).unwrap_err().message;
        for filter in ["cost:much", "cost:1..0.5", "duration:1x", "duration:", "cost:-1"] {
            assert!(!error(filter).is_empty(), "{filter}");
        }
    }

    /// The cost of a subagent of a subagent was counted for the session at the top and not for the subagent between.
    #[test]
    fn a_cost_includes_subagents_of_subagents() {
        let store = store();
        let mut parent = None;
        for name in ["top", "middle", "low"] {
            let info = StreamInfo { parent, ..StreamInfo::session("host", name) };
            let usage = Usage { input: Some(1_000_000), ..Usage::default() };
            let report = Report { model: Some("gpt-5.4".to_owned()), usage, ..Report::default() };
            let told = fact::MessageFinished { key: name.to_owned(), report };
            let _ = store.append(&info, vec![Entry::from(told)]).unwrap();
            parent = Some((info.id(), None));
        }
        let known = facts(&store, Seq::MAX).unwrap();
        let cost = |name: &str| known.get(&StreamInfo::session("host", name).id()).unwrap().cost.unwrap();
        let low = cost("low");
        assert!(low > 0.0);
        assert!((cost("middle") - 2.0 * low).abs() < 1e-9 && (cost("top") - 3.0 * low).abs() < 1e-9);
    }
}
