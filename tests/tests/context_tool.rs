//! The eighteen tests of the context tool and of automatic supersession, by their numbers, each on a real store.
//!
//! Every test asserts the exact reply or line of figures, and the context as the model sees it afterwards. A refused
//! call must leave the log as it was.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use acpdb_engine::command::Rejection;
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::{Face, Role};
use acpdb_engine::fold::{CauseView, FaceState, HashForm, Ix, Policy, RuleKind};
use acpdb_engine::ids::{Seq, StreamId};
use acpdb_engine::{ActReply, Error, Store, View};
use tempfile::TempDir;

/// A session of opencode in a store of its own.
struct Session {
    _folder: TempDir,
    store: Store,
    info: StreamInfo,
    calls: std::cell::Cell<u32>,
}

impl Session {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let store =
            Store::builder(folder.path().join("store")).registry(acpdb_hosts::registry()).open().unwrap();
        let session = Self {
            _folder: folder,
            store,
            info: StreamInfo::session("opencode", "ses_1"),
            calls: std::cell::Cell::new(0),
        };
        session.turn();
        session
    }

    fn id(&self) -> StreamId {
        self.info.id()
    }

    fn append(&self, entries: Vec<Entry>) -> Seq {
        self.store.append(&self.info, entries).unwrap().last_seq
    }

    fn turn(&self) {
        let _ = self.append(vec![Entry::step("")]);
    }

    /// A completed call; returns the short hash that the agent sees.
    fn call(&self, tool: &str, params: &str, output: &str) -> String {
        self.calls.set(self.calls.get() + 1);
        let call = format!("call_{}", self.calls.get());
        let _ =
            self.append(vec![Entry::tool_started(&call, tool, params), Entry::tool_completed(&call, output)]);
        let view = self.view();
        let ix = *view.state().calls_by_host_id(&call, Seq::MAX).last().unwrap();
        view.state().hash(ix, Seq::MAX, HashForm::Shown).unwrap_or_default()
    }

    /// Four files that were read: the hashes of the calls.
    fn four_reads(&self) -> Vec<String> {
        let files = ["a", "b", "c", "d"].iter();
        files.map(|file| self.call("read", &format!(r#"{{"filePath":"/src/{file}.rs"}}"#), &long())).collect()
    }

    fn say(&self, text: &str) {
        let _ = self.append(vec![Entry::message("", Role::Assistant, text)]);
    }

    fn view(&self) -> View {
        self.store.view(self.id()).unwrap()
    }

    fn try_tool(&self, json: &serde_json::Value) -> Result<ActReply, Error> {
        self.store.context_tool(self.id(), &json.to_string())
    }

    fn tool(&self, action: &str, targets: &serde_json::Value) -> ActReply {
        self.try_tool(&serde_json::json!({"action": action, "targets": targets})).unwrap()
    }

    /// The exact error text of a call that is refused; the log must not have grown.
    fn refused(&self, action: &str, targets: &serde_json::Value) -> String {
        let before = self.store.head().unwrap();
        let error = self.try_tool(&serde_json::json!({"action": action, "targets": targets})).unwrap_err();
        assert!(
            matches!(&error, Error::Rejected(rejection) if matches!(rejection.as_ref(), Rejection::Context(_)))
        );
        assert_eq!(self.store.head().unwrap(), before, "a refused call recorded something");
        error.to_string()
    }

    /// Each call's output and each text as the model sees them, in order.
    fn shown(&self) -> Vec<String> {
        let view = self.view();
        let current: Vec<Ix> = view.state().current(Seq::MAX);
        current.into_iter().map(|ix| view.shown(ix, Face::Output).unwrap().text).collect()
    }

    fn states(&self) -> Vec<FaceState> {
        let view = self.view();
        let state = view.state();
        state.current(Seq::MAX).into_iter().map(|ix| state.face(ix, Face::Output, Seq::MAX).state).collect()
    }

    fn line(&self, kind: RuleKind) -> String {
        self.view().state().stats(Seq::MAX).line(kind)
    }
}

use FaceState::{Tombstone, Whole};

const LONG: &str = "a line of the file that is long enough to be worth hiding from the model\n";

fn long() -> String {
    LONG.repeat(20)
}

#[test]
fn test_01_basic_discard_by_hash() {
    let session = Session::new();
    let hash = session.call("read", r#"{"filePath":"package.json"}"#, &long());
    let reply = session.tool("discard", &serde_json::json!([[hash]]));
    assert_eq!(reply.text, "「 🗑️ discard ✓ 1 manual 」\npruned: read");
    assert_eq!((reply.hidden.len(), reply.shown.len()), (1, 0));
    assert_eq!(
        session.shown(),
        ["[Output removed to save context - information superseded or no longer needed]\n\
          read({filePath: \"package.json\"}) → completed"]
    );
    // Another feed of the same order changes nothing: it is hidden already.
    let again = session.tool("discard", &serde_json::json!([[hash]]));
    assert_eq!((again.text.as_str(), again.last_seq), ("No valid tool hashes to discard", None));
}

#[test]
fn test_02_basic_discard_by_pattern() {
    let session = Session::new();
    session.say("Let me explain the testing strategy in detail. We need to validate all edge cases.");
    session.say("Something else that stays where it is.");
    let reply = session.tool("discard", &serde_json::json!([["Let me explain...edge cases."]]));
    assert_eq!(reply.text, "Discarded 1 message(s)");
    assert_eq!(
        session.shown(),
        ["[Assistant message part removed to save context]", "Something else that stays where it is."]
    );
}

#[test]
fn test_03_mixed_discard() {
    let session = Session::new();
    let hash = session.call("glob", r#"{"pattern":"README.md"}"#, &long());
    session
        .say("Here's a detailed analysis of the architecture of this whole program, with its architecture");
    let targets = serde_json::json!([[hash], ["Here's a detailed analysis...architecture"]]);
    let before = session.store.head().unwrap();
    let reply = session.tool("discard", &targets);
    assert_eq!(reply.text, "「 🗑️ discard ✓ 1 manual 」\npruned: glob\nDiscarded 1 message(s)");
    assert_eq!(session.states(), [Tombstone, Tombstone]);
    assert_eq!(session.store.head().unwrap().get(), before.get() + 1, "one event, one commit");
    // A text that goes on after the pattern's end does not match.
    session.say("Here's a detailed analysis of the architecture...");
    let reply = session.tool("discard", &serde_json::json!([["Here's a detailed analysis...architecture"]]));
    assert_eq!(reply.text, "Discarded 0 message(s)");
}

#[test]
fn test_04_distill_a_call() {
    let session = Session::new();
    let hash = session.call("glob", r#"{"pattern":"**/*.ts"}"#, &long());
    let reply = session.tool("distill", &serde_json::json!([[hash, "Found 73 TypeScript files"]]));
    assert_eq!(reply.text, "「 🗑️ discard ✓ 1 distillation 」\npruned: glob | distilled: Found...files");
    assert_eq!(session.shown(), ["[distilled] Found 73 TypeScript files"]);
}

#[test]
fn test_05_distill_a_message_whatever_its_case_and_white_space() {
    let session = Session::new();
    session.say("ARCHITECTURE OVERVIEW:\n\n1. State\n2. UI\n3. API");
    let targets = serde_json::json!([["architecture overview...api", "Summary: 3-layer architecture"]]);
    let reply = session.tool("distill", &targets);
    assert_eq!(reply.text, "Distilled 1 message(s)");
    assert_eq!(session.shown(), ["[distilled] Summary: 3-layer architecture"]);
}

#[test]
fn test_06_mixed_distill() {
    let session = Session::new();
    let hash = session.call("read", r#"{"filePath":"package.json"}"#, &long());
    session.say("Test results: 10 passed, 0 failed");
    let targets =
        serde_json::json!([[hash, "package.json contents"], ["Test results...failed", "Tests passed"]]);
    let reply = session.tool("distill", &targets);
    assert_eq!(
        reply.text,
        "「 🗑️ discard ✓ 1 distillation 」\npruned: read | distilled: packa...tents\nDistilled 1 message(s)"
    );
    assert_eq!(session.shown(), ["[distilled] package.json contents", "[distilled] Tests passed"]);
}

#[test]
fn test_07_symmetric_restore_by_hash() {
    let session = Session::new();
    let hash = session.call("read", r#"{"filePath":"package.json"}"#, &long());
    session.say("after it");
    let before = session.shown();
    let _ = session.tool("discard", &serde_json::json!([[hash]]));
    assert_ne!(session.shown(), before);
    let reply = session.tool("restore", &serde_json::json!([[hash]]));
    assert_eq!(reply.text, "Restored 1 tool(s)");
    assert_eq!((reply.hidden.len(), reply.shown.len()), (0, 1));
    assert_eq!(session.shown(), before);
}

#[test]
fn test_08_symmetric_restore_by_pattern() {
    let session = Session::new();
    session.say("Testing symmetric restore of hidden messages and its capability");
    session.say("Testing symmetric things, and then their restore capability");
    let before = session.shown();
    let reply = session.tool("discard", &serde_json::json!([["Testing symmetric...capability"]]));
    assert_eq!(reply.text, "Discarded 2 message(s)");
    assert_eq!(session.states(), [Tombstone, Tombstone]);
    let reply = session.tool("restore", &serde_json::json!([["  testing   SYMMETRIC...capability\n"]]));
    assert_eq!(reply.text, "Restored 2 message(s)");
    assert_eq!(session.shown(), before);
    // Another pattern that also matches undoes nothing: restore goes by the act.
    let _ = session.tool("discard", &serde_json::json!([["Testing symmetric...capability"]]));
    let reply = session.tool("restore", &serde_json::json!([["Testing...capability"]]));
    assert_eq!((reply.text.as_str(), reply.last_seq), ("Restored 0 message(s)", None));
}

#[test]
fn test_09_batch_of_mixed_targets_is_one_commit() {
    let session = Session::new();
    let hashes = session.four_reads();
    session.say("First I looked at all the files of the source.");
    session.say("Then I compared them with their tests and ran those.");
    let before = session.store.head().unwrap();
    let reply = session.tool(
        "discard",
        &serde_json::json!([
            [hashes[0]],
            ["First I...source."],
            [hashes[1]],
            [hashes[2]],
            ["Then I...those."],
            [hashes[3]]
        ]),
    );
    assert_eq!(
        reply.text,
        "「 🗑️ discard ✓ 4 manual 」\npruned: read, read, read...\nDiscarded 2 message(s)"
    );
    assert_eq!(session.states(), [Tombstone; 6]);
    assert_eq!(session.store.head().unwrap().get(), before.get() + 1);
}

#[test]
fn test_10_errors_are_exact_and_record_nothing() {
    let session = Session::new();
    let hash = session.call("read", r#"{"filePath":"package.json"}"#, &long());
    assert_eq!(
        session.refused("distill", &serde_json::json!([[hash]])),
        format!("Summary required for distill action on target: {hash}")
    );
    assert_eq!(
        session.refused("distill", &serde_json::json!([[hash, "fine"], ["Some...text", "  "]])),
        "Summary required for distill action on pattern: Some...text"
    );
    assert_eq!(
        session.refused("discard", &serde_json::json!([])),
        "No targets provided. Provide an array of [target] or [target, summary] tuples."
    );
    assert_eq!(session.states(), [Whole], "no target was acted on");
    let before = session.store.head().unwrap();
    let reply = session.tool("discard", &serde_json::json!([["Non-existent...pattern"]]));
    assert_eq!((reply.text.as_str(), reply.last_seq), ("No matching messages found", None));
    let reply = session.tool("discard", &serde_json::json!([["r_00000"]]));
    assert_eq!(reply.text, "No valid tool hashes to discard");
    assert_eq!(session.store.head().unwrap(), before);
    // A value that is no call of the tool at all is refused as well.
    for json in
        ["{}", "[]", r#"{"action":"forget","targets":[["x"]]}"#, r#"{"action":"discard","targets":[[1]]}"#]
    {
        assert!(session.store.context_tool(session.id(), json).is_err(), "{json}");
    }
    assert_eq!(session.store.head().unwrap(), before);
}

#[test]
fn test_10_tools_protected_since_are_refused() {
    let session = Session::new();
    let hash = session.call("bash", r#"{"command":"ls"}"#, &long());
    let policy = Policy::from_json(r#"{"protected_tools":["bash","task"]}"#).unwrap();
    let _ = session.store.set_policy(Some(session.id()), &policy, None).unwrap();
    assert_eq!(
        session.refused("discard", &serde_json::json!([[hash]])),
        "Cannot discard: 'bash' is a protected tool.\nProtected tools: bash, task"
    );
}

#[test]
fn test_11_a_repeat_supersedes() {
    let session = Session::new();
    let _ = session.call("read", r#"{"filePath":"package.json"}"#, &long());
    session.turn();
    let _ = session.call("read", r#"{"filePath":"package.json"}"#, &long());
    assert_eq!(session.line(RuleKind::HASH), "🔄 hash: 1 prune");
    assert_eq!(session.shown()[0], "[auto-superseded: hash duplicate]");
    assert_eq!(session.states(), [Tombstone, Whole]);
}

#[test]
fn test_12_a_write_supersedes_a_read() {
    let session = Session::new();
    let _ = session.call("read", r#"{"filePath":"test-file.txt"}"#, &long());
    session.turn();
    let _ = session.call("write", r#"{"filePath":"test-file.txt","content":"new content"}"#, "ok");
    assert_eq!(session.line(RuleKind::FILE), "📁 file: 1 prune");
    assert_eq!(session.shown()[0], "[auto-superseded: file superseded by write]");
}

#[test]
fn test_13_an_edit_supersedes_a_read() {
    let session = Session::new();
    let _ = session.call("read", r#"{"filePath":"package.json"}"#, &long());
    session.turn();
    let params = r#"{"filePath":"package.json","oldString":"a","newString":"b"}"#;
    let _ = session.call("edit", params, "ok");
    assert_eq!(session.line(RuleKind::FILE), "📁 file: 1 prune");
    assert_eq!(session.states(), [Tombstone, Whole]);
}

#[test]
fn test_14_a_newer_todo_list_supersedes() {
    let session = Session::new();
    let list = |status: &str| {
        format!(r#"{{"todos":[{{"id":"1","content":"Task A","status":"{status}","priority":"high"}}]}}"#)
    };
    let _ = session.call("todowrite", &list("pending"), &long());
    session.turn();
    let _ = session.call("todowrite", &list("completed"), &long());
    assert_eq!(session.line(RuleKind::TODO), "✅ todo: 1 prune");
    assert_eq!(session.shown()[0], "[auto-superseded: newer todowrite exists]");
}

#[test]
fn test_15_a_newer_look_at_the_todo_list_supersedes() {
    let session = Session::new();
    let _ = session.call("todoread", "{}", &long());
    session.turn();
    let _ = session.call("todoread", "{}", &long());
    assert_eq!(session.line(RuleKind::TODO), "✅ todo: 1 prune");
    assert_eq!(session.states(), [Tombstone, Whole]);
}

#[test]
fn test_16_other_files_do_not_supersede() {
    let session = Session::new();
    let _ = session.call("read", r#"{"filePath":"package.json"}"#, &long());
    session.turn();
    let _ = session.call("write", r#"{"filePath":"other-file.txt","content":".."}"#, "ok");
    assert_eq!(session.line(RuleKind::FILE), "📁 file: 0 prunes");
    assert_eq!(session.states(), [Whole, Whole]);
}

#[test]
fn test_17_protected_tools_are_not_superseded() {
    let session = Session::new();
    let before = session.call("task", r#"{"description":"look"}"#, &long());
    session.turn();
    let _ = session.call("task", r#"{"description":"look"}"#, &long());
    assert_eq!(session.line(RuleKind::HASH), "🔄 hash: 0 prunes");
    assert_eq!(session.states(), [Whole, Whole]);
    assert_eq!(before, "", "a protected call has no hash for the agent");
}

#[test]
fn test_18_the_block_of_figures() {
    let session = Session::new();
    let _ = session.call("read", r#"{"filePath":"/a"}"#, &long());
    session.turn();
    let _ = session.call("read", r#"{"filePath":"/a"}"#, &long());
    let _ = session.call("read", r#"{"filePath":"/b"}"#, &long());
    let _ = session.call("todowrite", r#"{"todos":[]}"#, &long());
    session.turn();
    let _ = session.call("write", r#"{"filePath":"/b","content":"x"}"#, "ok");
    let _ = session.call("todowrite", r#"{"todos":[{"content":"x","status":"pending"}]}"#, &long());
    let block = session.view().state().stats(Seq::MAX).acp_block();
    // The tokens are an estimate; only the layout and the counts are exact.
    let figure = |text: &str| {
        let digits = text.chars().map(|c| if c.is_ascii_digit() { '9' } else { c });
        digits.collect::<String>().replace("99", "9").replace("99", "9")
    };
    let counts: Vec<&str> = block.lines().map(|line| line.split('~').next().unwrap()).collect();
    assert_eq!(
        counts,
        [
            "Strategy Effectiveness:",
            "────────────────────────────────────────────────────────────",
            "  Auto-Supersede         3 prunes, ",
            "    🔄 hash              1 prunes, ",
            "    📁 file              1 prunes, ",
            "    ✅ todo              1 prunes, ",
        ]
    );
    let first = block.lines().nth(2).unwrap();
    assert!(figure(first).ends_with("k saved ⭐") || figure(first).ends_with("9 saved ⭐"), "{first}");
}

#[test]
fn two_handles_that_act_at_once_do_not_act_twice() {
    let session = Session::new();
    let hash = session.call("read", r#"{"filePath":"/a"}"#, &long());
    let root = session.store.root().to_path_buf();
    let json = serde_json::json!({"action": "discard", "targets": [[hash]]}).to_string();
    let replies: Vec<ActReply> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                let (root, json, id) = (root.clone(), json.clone(), session.id());
                scope.spawn(move || {
                    let store = Store::builder(root).registry(acpdb_hosts::registry()).open().unwrap();
                    store.context_tool(id, &json).unwrap()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let acted = replies.iter().filter(|reply| reply.last_seq.is_some()).count();
    assert_eq!(acted, 1, "{replies:?}");
}

#[test]
fn a_pattern_finds_its_messages_among_thousands() {
    let count = std::env::var("ACPDB_SLOW").map_or(2_000, |_| 50_000);
    let session = Session::new();
    for chunk in 0..count / 100 {
        let entries = (0..100).map(|number| {
            Entry::message("", Role::Assistant, format!("Message {chunk} number {number} ends here."))
        });
        let _ = session.append(entries.collect());
    }
    let reply = session.tool("discard", &serde_json::json!([["message 7 number 1...ends here."]]));
    assert_eq!(reply.text, "Discarded 11 message(s)");
}

/// The hash of one call began the hash of another: acting on the first took the second along. The agent's tool takes all
/// calls that a short hash can mean, as documented; a person means the call that is shown so.
#[test]
fn a_hash_that_is_shown_for_one_call_means_that_call() {
    use acpdb_engine::command::{ContextAction, Target};
    let session = Session::new();
    let first = session.call("glob", r#"{"pattern":"x"}"#, &long());
    let second = session.call("grep", r#"{"pattern":"x"}"#, &long());
    assert!(second.starts_with(&first) && second.len() > first.len(), "{first} {second}");
    let act = |action, hash: &str| {
        let targets = vec![(Target::Shown(hash.to_uppercase()), None)];
        session.store.context(session.id(), action, targets).unwrap().text
    };
    assert_eq!(act(ContextAction::Discard, &first), "「 🗑️ discard ✓ 1 manual 」\npruned: glob");
    assert_eq!(session.states(), [Tombstone, Whole]);
    assert_eq!(act(ContextAction::Restore, &first), "Restored 1 tool(s)");
    assert_eq!(act(ContextAction::Discard, &second), "「 🗑️ discard ✓ 1 manual 」\npruned: grep");
    let _ = session.store.pin(session.id(), vec![Target::Shown(first.clone())]).unwrap();
    let pinned: Vec<bool> = session.view().current().iter().map(|item| item.pinned).collect();
    assert_eq!(pinned, [true, false]);
    let reply = session.tool("discard", &serde_json::json!([[first]]));
    assert_eq!(reply.text, "「 🗑️ discard ✓ 1 manual 」\npruned: glob");
}

/// The item of each text that is shown whole, and the placeholders of the others.
fn told(session: &Session) -> Vec<String> {
    session
        .shown()
        .iter()
        .map(|text| if text.contains(LONG) { "whole".to_owned() } else { text.clone() })
        .collect()
}

#[test]
fn a_range_goes_behind_one_summary_and_comes_back() {
    let session = Session::new();
    let first = session.call("read", r#"{"filePath":"a.rs"}"#, &long());
    session.say("a short remark");
    let _ = session.append(vec![Entry::message("p", Role::User, "a prompt in the middle")]);
    let _ = session.call("bash", r#"{"command":"make"}"#, &long());
    let last = session.call("grep", r#"{"pattern":"x"}"#, &long());
    session.say("after it");
    let before = session.shown();

    let target = format!("{first}..{last}");
    let reply = session.tool("distill", &serde_json::json!([[target, "make fails in a.rs"]]));
    let items: Vec<String> = reply.hidden.iter().map(ToString::to_string).collect();
    let (from, to) = (&items[0], &items[2]);
    assert_eq!(reply.text, format!("Distilled 4 item(s) of {target}; the summary stands at {from}"));
    assert_eq!(
        session.shown(),
        [
            &*format!("[distilled: 4 items, {from} to {to}] make fails in a.rs"),
            "[removed]",
            "a prompt in the middle",
            "[Output removed to save context - information superseded or no longer needed]\nbash({command: \"make\"}) → completed",
            "[Output removed to save context - information superseded or no longer needed]\ngrep({pattern: \"x\"}) → completed",
            "after it",
        ]
    );
    let view = session.view();
    let why = view.state().face(view.state().find(reply.hidden[1]).unwrap(), Face::Output, Seq::MAX).cause;
    let behind = Some(reply.hidden[0]);
    assert!(matches!(why, Some(CauseView::Discarded { behind: head, .. }) if head == behind), "{why:?}");
    // The same range again hides nothing more than the summary that it would replace.
    assert!(
        session.refused("distill", &serde_json::json!([[target, long()]])).starts_with("the summary has ")
    );

    let reply = session.tool("restore", &serde_json::json!([[format!("{from} .. {to}")]]));
    assert_eq!(reply.text, format!("Restored 4 item(s) of {from} .. {to}"));
    assert_eq!(session.shown(), before);
    // Whichever end comes first.
    let reply = session.tool("discard", &serde_json::json!([[format!("{to}..{from}")]]));
    assert_eq!(reply.text, format!("Discarded 4 item(s) of {to}..{from}"));
    assert_eq!(session.states(), [Tombstone, Tombstone, Whole, Tombstone, Tombstone, Whole]);
}

#[test]
fn a_range_may_hold_another_and_leaves_alone_what_is_protected() {
    let session = Session::new();
    let hashes = session.four_reads();
    let _ = session.call("todowrite", r#"{"todos":[]}"#, &long());
    let _ = session.tool("distill", &serde_json::json!([[format!("{}..{}", hashes[1], hashes[2]), "inner"]]));
    let inner = told(&session);
    assert!(inner[1].ends_with("] inner") && inner[1].starts_with("[distilled: 2 items"), "{inner:?}");
    let outer = serde_json::json!([[format!("{}..{}", hashes[0], session.view().at()), "outer"]]);
    assert!(session.refused("distill", &outer).starts_with("nothing in this stream is called"));

    let outer = serde_json::json!([[format!("{}..{}", hashes[0], hashes[3]), "outer"]]);
    let reply = session.tool("distill", &outer);
    assert_eq!(reply.hidden.len(), 3, "one of the inner range has its tombstone already");
    let shown = told(&session);
    assert!(shown[0].ends_with("] outer"), "{shown:?}");
    assert!(!shown.iter().any(|text| text.contains("inner")), "{shown:?}");
    assert_eq!(shown[4], "whole", "a tool that is protected");

    let reply = session.tool("restore", &serde_json::json!([[format!("{}..{}", hashes[0], hashes[3])]]));
    assert_eq!(reply.shown.len(), 4);
    assert_eq!(told(&session), ["whole"; 5]);
    // A text with dots is a pattern, and a range needs a summary as all others do.
    assert_eq!(
        session.refused("distill", &serde_json::json!([[format!("{}..{}", hashes[0], hashes[3])]])),
        format!("Summary required for distill action on target: {}..{}", hashes[0], hashes[3])
    );
    let reply = session.tool("discard", &serde_json::json!([["this..that"]]));
    assert_eq!(reply.text, "No matching messages found");
}
