//! The law: `context --recorded` just before a step of the model equals the host's request for that step.

use acpdb_engine::At;
use acpdb_engine::event::{Payload, Scope, TurnKind};
use acpdb_engine::ids::Seq;
use acpdb_hosts::export::{ExportChoices, Format, Selection, export};
use acpdb_hosts::import::json;

use super::lines;
use super::scenes::{Played, Request, imported, requests};

/// Differences that no recording tells: host, part of a line, why. Lines that have it are left out on both sides.
pub(super) const LEFT: &[(&str, &str, &str)] = &[
    (
        "copilot",
        "assistant reasoning",
        "a resumed session sends its old reasoning no more, which no record says",
    ),
    ("copilot", " text \"Path ", "the model is told more of a failure than is recorded"),
    ("copilot", "system text", "the system prompt, which is no part of the fixtures"),
    (
        "gemini/again",
        "<session_context>",
        "each resume tells it anew under the same id: the last state counts",
    ),
];

/// Scenes with a fork, and how many steps it copied: their requests are those of the session before.
const COPIED: &[(&str, usize)] = &[("opencode/fork", 13)];

/// Requests of a session that were reverted, and whose messages the host deleted before the import.
const REVERTED: &[(&str, std::ops::Range<usize>)] = &[("opencode/undo", 2..4)];

/// Seqs of the steps of a session.
pub(super) fn steps(played: &Played, session: &str) -> Vec<Seq> {
    let store = &played.store;
    let streams = store.stream_names().unwrap();
    let named = streams.iter().find(|it| it.scope == Scope::Session && it.name == session);
    let Some(stream) = named else { panic!("no session {session} among {streams:?}") };
    let events = store.stream_events(stream.id, Seq::ZERO, Seq::MAX).unwrap().map(Result::unwrap);
    events
        .filter(|it| matches!(&it.event.payload, Payload::TurnStarted(turn) if turn.kind == TurnKind::Step))
        .map(|it| it.seq)
        .collect()
}

/// The lines of a request as it was sent.
fn sent(request: &Request) -> Vec<String> {
    let mut out = Vec::new();
    let each: fn(&str, &mut Vec<String>) = match request.api.as_str() {
        "anthropic" => lines::anthropic,
        "responses" => lines::responses,
        "chat" => lines::chat,
        _ => lines::gemini,
    };
    request.messages.iter().for_each(|message| each(message, &mut out));
    out
}

fn format_of(api: &str) -> Format {
    match api {
        "anthropic" => Format::Anthropic,
        "responses" => Format::Responses,
        "chat" => Format::Openai,
        _ => Format::Gemini,
    }
}

/// The store's context at `at`, as lines of a request.
fn stored(played: &Played, session: &str, at: Seq, request: &Request) -> Vec<String> {
    let store = &played.store;
    let stream = store.stream_names().unwrap().into_iter().find(|it| it.name == session).unwrap();
    let view = store.view_at(stream.id, &At::Seq(at)).unwrap();
    let options = ExportChoices { selection: Selection::Recorded, ..ExportChoices::default() };
    let body = String::from_utf8(export(&view, format_of(&request.api), &options).unwrap().bytes).unwrap();
    let name = match request.api.as_str() {
        "responses" => "input",
        "gemini" => "contents",
        _ => "messages",
    };
    let messages = json::member(Some(&body), name).and_then(json::elements).unwrap();
    let messages = messages.into_iter().map(str::to_owned).collect();
    sent(&Request { messages, ..request.clone() })
}

/// The session of a request. Where the host names none, it is the one whose first prompt stands in the request, or the scene's first.
fn session_of(played: &Played, request: &Request) -> String {
    request.session.clone().unwrap_or_else(|| {
        let streams = played.store.stream_names().unwrap();
        let sessions: Vec<_> = streams.into_iter().filter(|it| it.scope == Scope::Session).collect();
        let all = sent(request);
        let first = all.iter().find(|line| line.starts_with("user text"));
        let begins = |name: &&String| {
            let Some(last) = steps(played, name).last().copied() else { return false };
            stored(played, name, last, request).iter().find(|line| line.starts_with("user text")) == first
        };
        let named: Vec<&String> = sessions.iter().map(|it| &it.name).collect();
        (*named.iter().find(|name| begins(name)).unwrap_or(&named[0])).clone()
    })
}

/// The lines that one side has and the other has not, by the longest common subsequence of lines.
fn differences(one: &[String], two: &[String]) -> Vec<String> {
    let mut table = vec![vec![0_usize; two.len() + 1]; one.len() + 1];
    for (i, a) in one.iter().enumerate().rev() {
        for (j, b) in two.iter().enumerate().rev() {
            table[i][j] = if a == b { table[i + 1][j + 1] + 1 } else { table[i + 1][j].max(table[i][j + 1]) };
        }
    }
    let (mut i, mut j, mut out) = (0, 0, Vec::new());
    while i < one.len() || j < two.len() {
        if i < one.len() && j < two.len() && one[i] == two[j] {
            (i, j) = (i + 1, j + 1);
        } else if j == two.len() || (i < one.len() && table[i + 1][j] >= table[i][j + 1]) {
            out.push(format!("-{}", one[i]));
            i += 1;
        } else {
            out.push(format!("+{}", two[j]));
            j += 1;
        }
    }
    out
}

/// Compares every request of a scene that a step of a session followed.
fn holds(scene: &str) {
    let played = imported(scene);
    let all = requests(scene);
    let mut wrong = Vec::new();
    let mut sessions: Vec<String> = Vec::new();
    // A summary is a step of the model's for two hosts, and none for the others.
    let is_step = |it: &&Request| {
        let counts = ["opencode/", "codex/"].iter().any(|host| scene.starts_with(host));
        it.kind == "main" || (it.kind == "summary" && counts)
    };
    let main: Vec<(String, &Request)> =
        all.iter().filter(is_step).map(|it| (session_of(&played, it), it)).collect();
    for (session, _) in &main {
        if !sessions.contains(session) {
            sessions.push(session.clone());
        }
    }
    for session in &sessions {
        let steps = steps(&played, session);
        let mut own: Vec<_> =
            main.iter().filter(|(of, _)| of == session).map(|(_, request)| *request).collect();
        let mut steps = steps;
        if let Some((_, copied)) = COPIED.iter().find(|(of, _)| *of == scene) {
            steps.drain(..(*copied).min(steps.len().saturating_sub(own.len())));
        }
        if let Some((_, reverted)) = REVERTED.iter().find(|(of, _)| *of == scene) {
            own.drain(reverted.clone());
        }
        if steps.len() != own.len() {
            wrong.push(format!("{session}: {} steps for {} requests", steps.len(), own.len()));
        }
        for (number, (request, step)) in own.iter().zip(steps).enumerate() {
            // The conversation is text inside the request for a summary.
            if request.kind == "summary" {
                continue;
            }
            let (sent, stored) =
                (sent(request), stored(&played, session, Seq(step.get().saturating_sub(1)), request));
            let host = scene.split('/').next().unwrap();
            let known = |line: &String| {
                !LEFT.iter().any(|(of, part, _)| (*of == host || *of == scene) && line.contains(part))
            };
            let only = |mut lines: Vec<String>| {
                lines.retain(known);
                // A resumed session of this host sends each old result twice; it is recorded once.
                if host == "gemini" {
                    let mut told = std::collections::BTreeSet::new();
                    lines.retain(|line| !line.starts_with("user result") || told.insert(line.clone()));
                }
                // This host records the parsed input, not the model's bytes.
                if host == "copilot" {
                    for line in lines.iter_mut().filter(|line| line.starts_with("assistant call")) {
                        let (head, input) = line.split_once('{').unwrap();
                        let input: serde_json::Value = serde_json::from_str(&format!("{{{input}")).unwrap();
                        *line = format!("{head}{input}");
                    }
                }
                lines
            };
            let differ = differences(&only(sent), &only(stored));
            if !differ.is_empty() && wrong.len() < 40 {
                wrong.push(format!("{session} request {number} ({}):", request.model));
                let cut = |line: String| line.chars().take(420).collect::<String>();
                wrong.extend(differ.into_iter().map(cut));
            }
        }
    }
    assert!(wrong.is_empty(), "{scene}: - was sent, + is stored\n{}", wrong.join("\n"));
}

macro_rules! scenes {
    ($($name:ident: $scene:literal)*) => {$(
        #[test]
        fn $name() {
            holds($scene);
        }
    )*};
}

scenes! {
    claude_code_sends_what_is_recorded: "claude/main"
    claude_code_over_a_thread: "claude/thread"
    claude_code_with_pictures_and_long_results: "claude/more"
    claude_code_with_an_agent: "claude/agent"
    claude_code_with_hooks: "claude/hooks"
    claude_code_with_a_prompt_meanwhile: "claude/meanwhile"
    claude_code_after_its_compaction: "claude/compact"
    claude_code_after_a_rewind: "claude/rewind"
    claude_code_after_a_fold: "claude/fold"
    claude_code_on_an_older_model: "claude/opus"
    claude_code_on_a_smaller_model: "claude/haiku"
    claude_code_on_a_model_between: "claude/sonnet"
    claude_code_with_files_by_name: "claude/mention"
    claude_code_with_its_own_commands: "claude/slash"
    claude_code_with_two_agents_at_once: "claude/agents"
    claude_code_after_two_compactions: "claude/twice"
    claude_code_after_a_kill: "claude/killed"
    codex_after_a_kill: "codex/killed"
    opencode_after_a_kill: "opencode/killed"
    opencode_after_a_fork: "opencode/fork"
    opencode_after_a_revert: "opencode/undo"
    gemini_cli_resumed_with_reasoning_and_calls_at_once: "gemini/again"
    copilot_cli_with_an_agent: "copilot/agent"
    copilot_cli_after_its_compaction: "copilot/compact"
    codex_sends_what_is_recorded: "codex/main"
    codex_with_pictures_and_long_results: "codex/more"
    codex_with_hooks: "codex/hooks"
    codex_finds_a_tool: "codex/find"
    codex_after_its_compaction: "codex/compact"
    gemini_cli_sends_what_is_recorded: "gemini/main"
    gemini_cli_with_pictures_and_long_results: "gemini/more"
    gemini_cli_resumed: "gemini/resume"
    codex_with_an_agent: "codex/agent"
    opencode_sends_what_is_recorded: "opencode/main"
    opencode_with_pictures_and_long_results: "opencode/more"
    opencode_with_an_agent: "opencode/agent"
    opencode_after_its_compaction: "opencode/compact"
    opencode_over_chat: "opencode/chat"
    opencode_over_responses: "opencode/responses"
    copilot_cli_sends_what_is_recorded: "copilot/main"
    pi_sends_what_is_recorded: "pi/main"
    pi_with_pictures_and_long_results: "pi/more"
    pi_after_its_compaction: "pi/compact"
    pi_after_a_branch: "pi/branch"
}
