//! Bills: the provider's usage for each request equals the usage in the store.

use acpdb_engine::event::{Payload, SUM_TIER, Scope, Usage};
use acpdb_engine::ids::Seq;
use acpdb_hosts::import::json;

use super::scenes::{Played, Request, imported, requests};

/// Tokens as the laboratory's provider said them, in the store's terms: tokens from the cache are no input.
fn said(request: &Request) -> Usage {
    let count = |name: &str| json::count(json::member(Some(&request.usage), name));
    let (read, write) = (count("read").unwrap(), count("write").unwrap());
    let writes = request.api == "anthropic";
    let thought = count("reasoning").unwrap_or(0);
    // One API tells output without the reasoning.
    let beside = if request.api == "gemini" { thought } else { 0 };
    let cached = read + if writes { write } else { 0 };
    Usage {
        input: Some(count("whole").unwrap().saturating_sub(cached).max(1)),
        output: count("out").map(|out| out + beside),
        cache_read: Some(read),
        cache_write: writes.then_some(write),
        cache_write_long: writes.then(|| count("long").unwrap_or(0)),
        reasoning: Some(thought),
        searches: None,
    }
}

/// Model and usage of each message or step that ended, in order.
fn told(played: &Played, session: &str) -> Vec<(Option<String>, Usage)> {
    let store = &played.store;
    let streams = store.stream_names().unwrap();
    let Some(stream) = streams.iter().find(|it| it.scope == Scope::Session && it.name == session) else {
        return Vec::new();
    };
    let events = store.stream_events(stream.id, Seq::ZERO, Seq::MAX).unwrap().map(Result::unwrap);
    events
        .filter_map(|it| match it.event.payload {
            // Sums of the host are no request.
            Payload::MessageFinished(finished)
                if finished.report.service_tier.as_deref() != Some(SUM_TIER) =>
            {
                Some((finished.report.model, finished.report.usage))
            }
            _ => None,
        })
        .collect()
}

/// Compares each request of a scene; `same` picks the counts that its host tells.
fn holds(scene: &str, same: fn(&Usage) -> [Option<u64>; 6]) {
    let played = imported(scene);
    let all = requests(scene);
    // A host that records no step for a summary tells nothing of that request.
    let counts = ["opencode/", "codex/"].iter().any(|host| scene.starts_with(host));
    let billed: Vec<&Request> =
        all.iter().filter(|it| it.kind == "main" || (it.kind == "summary" && counts)).collect();
    let mut sessions: Vec<String> = billed.iter().filter_map(|it| it.session.clone()).collect();
    sessions.sort();
    sessions.dedup();
    if sessions.is_empty() {
        let streams = played.store.stream_names().unwrap();
        sessions.extend(streams.into_iter().filter(|it| it.scope == Scope::Session).map(|it| it.name));
    }
    for session in sessions {
        let of = |it: &&&Request| it.session.as_ref().is_none_or(|own| *own == session);
        let expected: Vec<_> =
            billed.iter().filter(of).map(|it| (Some(it.model.clone()), same(&said(it)))).collect();
        let found: Vec<_> =
            told(&played, &session).into_iter().map(|(model, usage)| (model, same(&usage))).collect();
        assert_eq!(found, expected, "{scene} {session}");
    }
}

fn all(usage: &Usage) -> [Option<u64>; 6] {
    let Usage { input, output, cache_read, cache_write, cache_write_long, reasoning, .. } = *usage;
    [input, output, cache_read, cache_write, cache_write_long, reasoning]
}

/// Without the tokens written to the cache for an hour and those of reasoning, which the host does not record of that
/// API.
fn briefly(usage: &Usage) -> [Option<u64>; 6] {
    [usage.input, usage.output, usage.cache_read, usage.cache_write, None, None]
}

/// Without the tokens written to the cache, which its API does not tell.
fn unwritten(usage: &Usage) -> [Option<u64>; 6] {
    [usage.input, usage.output, usage.cache_read, None, None, usage.reasoning]
}

#[test]
fn claude_code_tells_every_request() {
    for scene in [
        "claude/main",
        "claude/thread",
        "claude/more",
        "claude/agent",
        "claude/hooks",
        "claude/meanwhile",
        "claude/rewind",
        "claude/compact",
        "claude/fold",
    ] {
        holds(scene, all);
    }
}

#[test]
fn codex_tells_every_request() {
    for scene in ["codex/main", "codex/more", "codex/hooks", "codex/find", "codex/agent", "codex/compact"] {
        holds(scene, unwritten);
    }
}

#[test]
fn gemini_cli_tells_every_request() {
    for scene in ["gemini/main", "gemini/more", "gemini/resume"] {
        holds(scene, unwritten);
    }
}

#[test]
fn pi_tells_every_request() {
    for scene in ["pi/main", "pi/more", "pi/compact", "pi/branch"] {
        holds(scene, all);
    }
}

#[test]
fn opencode_tells_every_request() {
    for scene in ["opencode/main", "opencode/more", "opencode/agent", "opencode/compact"] {
        holds(scene, briefly);
    }
    holds("opencode/responses", unwritten);
    holds("opencode/chat", |usage| [usage.input, usage.output, usage.cache_read, None, None, None]);
}

/// The part that a host sends before the first message stands in no recording; the first request's tokens give its
/// size.
#[test]
fn the_size_of_system_prompt_and_tools_is_learnt_from_the_first_request() {
    for scene in
        ["claude/main", "codex/main", "opencode/main", "opencode/chat", "opencode/responses", "gemini/main"]
    {
        let played = imported(scene);
        let streams = played.store.stream_names().unwrap();
        let session =
            streams.iter().find(|name| name.scope == Scope::Session && name.parent.is_none()).unwrap();
        let recording = acpdb_query::simulate::SessionRecording::read(&played.store, session.id).unwrap();
        assert!(recording.prefix_is_known, "{scene}");
        let sizes = requests(scene).into_iter();
        let sizes = sizes.map(|it| json::count(json::member(Some(&it.usage), "whole")).unwrap());
        let (learnt, largest) = (recording.prefix_tokens, sizes.max().unwrap());
        assert!(learnt > 1000 && learnt < largest, "{scene}: {learnt} tokens, and {largest} were sent");
    }
}
