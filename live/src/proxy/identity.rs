//! The session and the host that a request belongs to. Pure.
//!
//! | host | by |
//! |---|---|
//! | any | the path before the API's own: `/acp/SESSION` |
//! | Claude Code | `x-claude-code-session-id`; subagents also `x-claude-code-agent-id` |
//! | Codex | `session-id` beside `x-codex-turn-metadata` or `x-codex-window-id` |
//! | opencode | `x-session-id` beside `x-session-affinity` |
//!
//! Gemini CLI names no session: it needs the path.

/// Longest name of a session that is taken.
const NAME_BYTES_MAX: usize = 200;

/// The session and the host of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RequestIdentity {
    /// The host, as the store names it.
    pub host: &'static str,
    /// The host's id of the session.
    pub session: String,
}

/// The path as the provider knows it, and the session that stood before it.
pub fn split(path: &str) -> (&str, Option<&str>) {
    let Some(rest) = path.strip_prefix("/acp/") else { return (path, None) };
    match rest.find('/') {
        Some(end) if end > 0 => (rest.get(end..).unwrap_or("/"), rest.get(..end)),
        _ => (path, None),
    }
}

/// As [`of`]; a request that names no session belongs to `session`, if there is such a name.
pub fn or_named(
    path: &str,
    header: &dyn Fn(&str) -> Option<String>,
    session: Option<&str>,
) -> Option<RequestIdentity> {
    of(path, header).or_else(|| of(&format!("/acp/{}{path}", session?), header))
}

/// The identity of a request, by its path and headers. `header` gives the value of a name in lower case.
pub fn of(path: &str, header: &dyn Fn(&str) -> Option<String>) -> Option<RequestIdentity> {
    let (path, before) = split(path);
    let named = |host, session: Option<String>| {
        let session = session.filter(|name| !name.is_empty() && name.len() <= NAME_BYTES_MAX)?;
        (!session.chars().any(char::is_control)).then_some(RequestIdentity { host, session })
    };
    let claude = header("x-claude-code-session-id").map(|session| match header("x-claude-code-agent-id") {
        Some(agent) => format!("{session}/{agent}"),
        None => session,
    });
    let is_codex = header("x-codex-turn-metadata").or(header("x-codex-window-id")).is_some();
    let is_opencode = header("x-session-affinity").is_some();
    let host = if claude.is_some() {
        "claude-code"
    } else if is_codex {
        "codex"
    } else if is_opencode {
        "opencode"
    } else if path.starts_with("/v1beta/") {
        "gemini-cli"
    } else {
        "proxy"
    };
    let own = match host {
        "claude-code" => claude,
        "codex" => header("session-id"),
        "opencode" => header("x-session-id"),
        _ => None,
    };
    named(host, before.map(str::to_owned).or(own))
}
