//! Names of streams, and the verdicts of filters on them.

use std::collections::{HashMap, HashSet};

use acpdb_engine::ids::StreamId;
use acpdb_engine::text::{Globs, likeness::nearest};
use acpdb_engine::{Error, Store, store::StreamName};

use crate::filter::{Filter, Term};

/// The name of the store's own stream.
const STORE: &str = "store";

/// The streams of a store by their names.
#[derive(Debug, Default)]
pub(crate) struct StreamsByName {
    all: Vec<StreamName>,
    /// Name, and host in lower case, as filters compare it.
    by_id: HashMap<StreamId, (String, String)>,
    /// Streams without any known time.
    undated: HashSet<StreamId>,
}

impl StreamsByName {
    fn new(all: Vec<StreamName>) -> Self {
        let mut by_id: HashMap<StreamId, (String, String)> =
            all.iter().map(|name| (name.id, (name.name.clone(), name.host.to_lowercase()))).collect();
        by_id.insert(StreamId::STORE, (STORE.to_owned(), String::new()));
        let undated = all.iter().filter(|name| name.began.is_none()).map(|name| name.id).collect();
        Self { all, by_id, undated }
    }

    /// The names, if a filter asks for any (or for times); they cost a look at the first event of each stream.
    pub(crate) fn for_filter(store: &Store, filter: &mut Filter) -> Result<Self, Error> {
        let needs = filter.needs();
        if !needs.facts && !needs.names && !needs.time {
            return Ok(Self::default());
        }
        Self::among(store, filter, &store.stream_names()?)
    }

    /// As [`StreamsByName::for_filter`], for a caller that has the names of all streams.
    pub(crate) fn among(store: &Store, filter: &mut Filter, all: &[StreamName]) -> Result<Self, Error> {
        if filter.needs().facts {
            *filter = crate::facts::settled_among(store, std::mem::take(filter), all)?;
        }
        let needs = filter.needs();
        let mut names = Self::default();
        if needs.names || needs.time {
            names = Self::new(all.to_vec());
            names.settle(filter)?;
        }
        if !needs.names {
            names.by_id.clear();
        }
        filter.is_settled = true;
        Ok(names)
    }

    pub(crate) fn name(&self, stream: StreamId) -> &str {
        self.by_id.get(&stream).map_or("", |(name, _)| name)
    }

    /// Whether no time of a stream is known.
    pub(crate) fn is_undated(&self, stream: StreamId) -> bool {
        self.undated.contains(&stream)
    }

    pub(crate) fn host(&self, stream: StreamId) -> &str {
        self.by_id.get(&stream).map_or("", |(_, host)| host)
    }

    /// The only stream that can match a filter, if the filter's terms about sessions and hosts leave one.
    pub(crate) fn only(&self, filter: &Filter) -> Option<StreamId> {
        let mut possible = self.by_id.keys().filter(|stream| self.is_possible(filter, **stream));
        match (possible.next(), possible.next()) {
            (Some(stream), None) => Some(*stream),
            _ => None,
        }
    }

    /// Whether a stream can match a filter, by its names alone.
    pub(crate) fn is_possible(&self, filter: &Filter, stream: StreamId) -> bool {
        let verdict = filter.judge(&|term: &Term| match term {
            Term::Session(globs) => Some(globs.is_match(self.name(stream))),
            Term::Host(globs) => Some(globs.is_match(self.host(stream))),
            Term::In(streams) => Some(streams.contains(&stream)),
            _ => None,
        });
        verdict != Some(false)
    }

    /// As [`StreamsByName::is_possible`], for a stream whose name is at hand.
    pub(crate) fn may_hold(filter: &Filter, name: &StreamName) -> bool {
        filter.judge(&|term: &Term| of_stream(term, name)) != Some(false)
    }

    /// Makes `session:` mean the session of exactly that name if there is one, else the sessions whose names begin so.
    ///
    /// # Errors
    /// [`Error::NotFound`] with the nearest name, if no session is called so.
    pub(crate) fn settle(&self, filter: &mut Filter) -> Result<(), Error> {
        for term in filter.terms_mut() {
            if let Term::Session(globs) = term {
                *globs = self.settled(globs)?;
            }
        }
        Ok(())
    }

    fn settled(&self, globs: &Globs) -> Result<Globs, Error> {
        let is = |name: &str| name == STORE || self.all.iter().any(|stream| stream.name == name);
        let mut kept = Vec::new();
        for pattern in globs.patterns() {
            let plain = pattern.strip_suffix('*').unwrap_or(pattern);
            let is_beginning = plain != pattern && globs.patterns().iter().any(|whole| whole == plain);
            if is_beginning && is(plain) {
                continue;
            }
            if is_beginning && !self.all.iter().any(|stream| stream.name.starts_with(plain)) {
                return Err(self.missing(plain));
            }
            kept.push(pattern.clone());
        }
        Ok(Globs::names(&kept).unwrap_or_default())
    }

    fn missing(&self, name: &str) -> Error {
        let nearest = nearest(self.all.iter().map(|stream| &stream.name), name, 0.7).cloned();
        Error::NotFound { what: "session", name: name.to_owned(), nearest }
    }
}

/// The verdict of a term on the names of a stream.
pub(crate) fn of_stream(term: &Term, name: &StreamName) -> Option<bool> {
    match term {
        Term::Session(globs) => Some(globs.is_match(&name.name)),
        Term::Host(globs) => Some(globs.is_match(&name.host.to_lowercase())),
        Term::In(streams) => Some(streams.contains(&name.id)),
        _ => None,
    }
}
