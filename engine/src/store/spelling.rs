//! Keys of calls in words: the log keeps signs in place of patterns, addresses and command lines, and what they stand for
//! is in the parameters.

use crate::ids::BodyId;
use crate::text::json::canonical_or_text;

use super::View;
use crate::ids::Seq;

impl View {
    /// The keys of calls as their tools' parameters spell them, in the order of `calls`: the parameters and the name of the
    /// tool of each. `None`: the parameters cannot be read, for they were erased or are damaged.
    ///
    /// By the registry of this handle: other tools than those that the call was recorded with may give other keys, so count
    /// them before you put them in the place of others. Cost: one read of the parameters of all.
    pub fn spell_keys(&self, calls: &[(BodyId, &str)]) -> Vec<Option<Vec<String>>> {
        if calls.is_empty() {
            return Vec::new();
        }
        let host = {
            let reading = self.read();
            reading.state().info(Seq::MAX).map(|info| info.host.clone()).unwrap_or_default()
        };
        let inner = &self.inner;
        let ids: Vec<BodyId> = calls.iter().map(|(params, _)| *params).collect();
        let texts = inner.bodies(&ids);
        let spell = |(bytes, (_, tool)): (Result<Vec<u8>, _>, &(BodyId, &str))| {
            let (_, json) = canonical_or_text(&bytes.ok()?);
            let facts = inner.registry.tool(&host, tool, &json?);
            Some(facts.keys.into_iter().map(|key| key.given).collect())
        };
        texts.into_iter().zip(calls).map(spell).collect()
    }
}
