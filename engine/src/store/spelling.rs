//! Keys of calls in words: the log keeps signs in place of patterns, addresses and command lines; the parameters hold the
//! words.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::fold::HashForm;
use crate::ids::{BodyId, Seq};
use crate::text::json::canonical_or_text;
use crate::text::signature::is_masked;

use super::{Store, View};

impl Store {
    /// The id that this store records in place of one that a host derived from a record's bytes; other ids stay as they are.
    #[doc(hidden)]
    pub fn recorded_id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        self.inner.log.secret().name(id).map_or(Cow::Borrowed(id), Cow::Owned)
    }
}

/// Parameters of a call whose keys are spelled.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Params<'a> {
    /// A body that has to be read.
    Body(BodyId),
    /// The caller has read them.
    Text(&'a str),
}

impl View {
    /// The keys of calls as their tools' parameters spell them, in the order of `calls`: the parameters and the name of the
    /// tool of each. `None`: the parameters cannot be read, for they were erased or are damaged.
    ///
    /// By the registry of this handle: other tools than those that the call was recorded with may give other keys, so count
    /// them before you put them in the place of others. Cost: one read of the parameters that the caller has not read.
    #[doc(hidden)]
    pub fn spell_keys(&self, calls: &[(Params<'_>, &str)]) -> Vec<Option<Vec<String>>> {
        if calls.is_empty() {
            return Vec::new();
        }
        let host = {
            // A session whose opening is missing has no host.
            self.state().info(Seq::MAX).map(|info| info.host.clone()).unwrap_or_default()
        };
        let inner = &self.inner;
        let ids = calls.iter().filter_map(|(params, _)| match params {
            Params::Body(id) => Some(*id),
            Params::Text(_) => None,
        });
        let mut read = inner.bodies(&ids.collect::<Vec<_>>()).into_iter();
        let mut spell = |(params, tool): &(Params<'_>, &str)| {
            let (_, json) = match params {
                // A text that is erased or damaged has no keys to spell.
                Params::Body(_) => canonical_or_text(&read.next()?.ok()?),
                Params::Text(text) => canonical_or_text(text.as_bytes()),
            };
            let facts = inner.registry.tool(&host, tool, &json?);
            Some(facts.keys.into_iter().map(|key| key.given).collect())
        };
        calls.iter().map(&mut spell).collect()
    }

    /// A line for each edge of this view, with keys in words; where those were erased, their signs.
    ///
    /// Cost: a pass over all items; the parameters of calls whose keys are signs are read.
    #[doc(hidden)]
    pub fn log_lines(&self, form: HashForm) -> Vec<String> {
        let (mut calls, mut signs) = (Vec::new(), Vec::new());
        {
            let state = self.state();
            for ix in state.items(self.at()) {
                let Some(item) =
                    state.item(ix, self.at()).filter(|item| item.keys.iter().any(|key| is_masked(key)))
                else {
                    continue;
                };
                let Some((params, tool)) = item.params.zip(state.tool(ix)) else { continue };
                calls.push((params, tool.clone()));
                signs.push(item.keys.iter().map(ToString::to_string).collect::<Vec<String>>());
            }
        }
        let asked: Vec<_> = calls.iter().map(|(params, tool)| (Params::Body(*params), &**tool)).collect();
        let mut words = BTreeMap::new();
        for (signs, keys) in signs.into_iter().zip(self.spell_keys(&asked)) {
            if let Some(keys) = keys.filter(|keys| keys.len() == signs.len()) {
                words.extend(signs.into_iter().zip(keys).filter(|(sign, _)| is_masked(sign)));
            }
        }
        self.state().log_lines_spelled(self.at(), form, &|sign| words.get(sign).cloned())
    }
}
