//! Texts that a policy cannot touch and a host could: tools that a session never called, prompts whose text stood there already.

use std::collections::{BTreeSet, HashMap};

use acpdb_engine::event::Role;
use acpdb_engine::fold::{ItemKind, State};
use acpdb_engine::ids::{BodyId, Seq};
use serde::Serialize;

use super::SimulationResult;
use crate::cost::float;

/// The share of a bill that a host could leave out where no policy can, relative to the price of doing nothing.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct HostCould {
    /// Sessions whose host recorded the tools that it offered.
    pub sessions_with_tools: usize,
    /// Tools that these sessions offered.
    pub tools: usize,
    /// Tools of these that were never called.
    pub tools_unused: usize,
    /// The price of the unused tools.
    pub unused: f64,
    /// Prompts whose text stood in the session already.
    pub prompts_repeated: usize,
    /// Their price.
    pub repeated: f64,
}

impl HostCould {
    /// Adds those of another session.
    pub fn add(&mut self, other: &Self) {
        self.sessions_with_tools += other.sessions_with_tools;
        self.tools += other.tools;
        self.tools_unused += other.tools_unused;
        self.unused += other.unused;
        self.prompts_repeated += other.prompts_repeated;
        self.repeated += other.repeated;
    }

    /// The prices relative to another; 0 if that is 0.
    #[must_use]
    pub fn relative_to(&self, price: f64) -> Self {
        let ratio = |part: f64| if price > 0.0 { part / price } else { 0.0 };
        Self { unused: ratio(self.unused), repeated: ratio(self.repeated), ..*self }
    }
}

/// A body by its id; one that is damaged or erased is none.
pub(super) type BodyOf<'a> = &'a dyn Fn(BodyId) -> Option<Vec<u8>>;

/// Tokens of a session that no policy can touch, counted once each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Untouched {
    tools: usize,
    tools_unused: usize,
    pub(super) unused_tokens: u64,
    prompts_repeated: usize,
    repeated_tokens: u64,
    prompt_tokens: u64,
}

impl Untouched {
    /// Of a session that was folded to its end.
    pub(super) fn of(state: &State, body: BodyOf<'_>) -> Self {
        let mut found = Self::default();
        let mut called: BTreeSet<String> = BTreeSet::new();
        let mut texts: HashMap<u64, Vec<BodyId>> = HashMap::new();
        for ix in state.items(Seq::MAX) {
            let Some(item) = state.item(ix, Seq::MAX) else { continue };
            called.extend(item.tool.as_deref().map(str::to_owned));
            if item.kind != ItemKind::Text || item.role == Role::Assistant {
                continue;
            }
            for part in &item.content {
                found.prompt_tokens = found.prompt_tokens.saturating_add(part.tokens.into());
                // Only texts of one length are read.
                let known = texts.entry(part.bytes).or_default();
                let text = if known.is_empty() { None } else { body(part.body) };
                if text.is_some() && known.iter().any(|known| body(*known) == text) {
                    found.prompts_repeated += 1;
                    found.repeated_tokens = found.repeated_tokens.saturating_add(part.tokens.into());
                } else {
                    known.push(part.body);
                }
            }
        }
        let offered =
            state.prompts(Seq::MAX).iter().rev().find_map(|(seq, prompt)| Some(prompt.tools?.id(*seq)));
        // Tools that cannot be read are none that a host could leave out.
        let offered = offered.and_then(body);
        // As above.
        let offered = offered.and_then(|bytes| serde_json::from_slice::<serde_json::Value>(&bytes).ok());
        for tool in offered.as_ref().and_then(serde_json::Value::as_array).into_iter().flatten() {
            let named = tool.get("name").or_else(|| tool.get("function")?.get("name"));
            let Some(name) = named.and_then(serde_json::Value::as_str) else { continue };
            found.tools += 1;
            if !called.contains(name) {
                found.tools_unused += 1;
                let tokens = acpdb_engine::text::estimate(tool.to_string().as_bytes());
                found.unused_tokens = found.unused_tokens.saturating_add(tokens.into());
            }
        }
        found
    }
}

impl Untouched {
    /// The price of these tokens, in the unit of the prices. `tools_share`: the share of the unused tools in the prefix.
    pub(super) fn priced(&self, nothing: &SimulationResult, tools_share: f64) -> HostCould {
        let Self { tools, tools_unused, prompts_repeated, repeated_tokens, prompt_tokens, .. } = *self;
        let repeated = if prompt_tokens > 0 { float(repeated_tokens) / float(prompt_tokens) } else { 0.0 };
        HostCould {
            sessions_with_tools: usize::from(tools > 0),
            tools,
            tools_unused,
            unused: nothing.parts.prefix * tools_share.min(1.0),
            prompts_repeated,
            repeated: nothing.parts.old_items.prompts * repeated,
        }
    }
}
