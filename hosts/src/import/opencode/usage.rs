//! The tokens of a message, as the provider counts them.

use acpdb_engine::event::Usage;

use super::super::json;

pub(in crate::import) fn usage_of(tokens: Option<&str>) -> Usage {
    let Some([input, output, reasoning, cache]) =
        tokens.and_then(|tokens| json::pick(tokens, ["input", "output", "reasoning", "cache"]))
    else {
        return Usage::default();
    };
    let [read, write] = cache.and_then(|cache| json::pick(cache, ["read", "write"])).unwrap_or_default();
    // The host subtracts reasoning from the output that it is part of.
    let thought = json::count(reasoning).unwrap_or(0);
    Usage {
        input: json::count(input),
        output: json::count(output).map(|output| output.saturating_add(thought)),
        cache_read: json::count(read),
        cache_write: json::count(write),
        cache_write_long: None,
        reasoning: json::count(reasoning),
        searches: None,
    }
}
