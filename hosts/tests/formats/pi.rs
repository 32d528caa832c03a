//! Session files that form a tree.

use std::sync::Arc;

use acpdb_engine::Store;
use acpdb_engine::event::Scope;
use acpdb_engine::storage::SimWorld;
use acpdb_hosts::export::{self, ExportChoices, Selection, export};
use acpdb_hosts::import::{ImportFormat, detect};
use expect_test::expect;

use super::support::check;

pub(crate) const SESSION: &str = r##"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}
{"type":"model_change","id":"a1","parentId":null,"timestamp":"2026-01-02T03:04:05.000Z","provider":"p","modelId":"m"}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-01-02T03:04:06.000Z","message":{"role":"user","content":[{"type":"text","text":"fix"},{"type":"image","data":"aW1n","mimeType":"image/png"}],"timestamp":1}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-01-02T03:04:07.000Z","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"c2ln"},{"type":"text","text":"I read."},{"type":"toolCall","id":"t1","name":"read","arguments":{"path": "a"}},{"type":"toolCall","id":"t2|fc_1","name":"bash","arguments":{"command":"false"}},{"type":"text","text":"Both."}],"api":"anthropic-messages","provider":"p","model":"m","usage":{"input":3,"output":4,"cacheRead":5,"cacheWrite":6,"totalTokens":18,"cost":{"total":0.0125}},"stopReason":"toolUse","timestamp":2,"responseId":"r1"}}
{"type":"message","id":"a4","parentId":"a3","timestamp":"2026-01-02T03:04:08.000Z","message":{"role":"toolResult","toolCallId":"t2|fc_1","toolName":"bash","content":[{"type":"text","text":"no"}],"details":{"n":1},"isError":true,"timestamp":3}}
{"type":"message","id":"a5","parentId":"a4","timestamp":"2026-01-02T03:04:08.000Z","message":{"role":"toolResult","toolCallId":"t1","toolName":"read","content":[{"type":"text","text":"text"}],"isError":false,"timestamp":4}}
{"type":"message","id":"a6","parentId":"a5","timestamp":"2026-01-02T03:04:09.000Z","message":{"role":"assistant","content":[{"type":"text","text":"cut"},{"type":"toolCall","id":"t3","name":"bash","arguments":{}}],"api":"x","provider":"p","model":"m","usage":{"input":1,"output":1,"cost":{"total":0}},"stopReason":"aborted","timestamp":5}}
{"type":"message","id":"a7","parentId":"a6","timestamp":"2026-01-02T03:04:10.000Z","message":{"role":"bashExecution","command":"ls","output":"a","exitCode":0,"cancelled":false,"truncated":false,"excludeFromContext":true,"timestamp":6}}
{"type":"thinking_level_change","id":"a8","parentId":"a7","timestamp":"2026-01-02T03:04:10.000Z","thinkingLevel":"high"}
{"type":"custom_message","id":"a9","parentId":"a8","timestamp":"2026-01-02T03:04:10.000Z","customType":"x","content":"told","display":false}
{"type":"compaction","id":"b1","parentId":"a9","timestamp":"2026-01-02T03:04:11.000Z","summary":"Short.","firstKeptEntryId":"a5","tokensBefore":900}
{"type":"message","id":"b2","parentId":"a2","timestamp":"2026-01-02T03:04:12.000Z","message":{"role":"assistant","content":[{"type":"text","text":"Another way."}],"model":"m","stopReason":"stop","timestamp":7}}
{"type":"branch_summary","id":"b3","parentId":"b1","timestamp":"2026-01-02T03:04:13.000Z","fromId":"b2","summary":"Tried."}
{"type":"session_info","id":"b4","parentId":"b3","timestamp":"2026-01-02T03:04:13.000Z","name":"A title"}
{"type":"message","id":"b5","parentId":null,"timestamp":"2026-01-02T03:04:14.000Z","message":{"role":"user","content":"anew","timestamp":8}}
{"type":"message","id":"b6","parentId":"absent","timestamp":"2026-01-02T03:04:14.000Z","message":{"role":"custom","content":"x","display":true,"timestamp":9}}
{"type":"later_kind","id":"b7","parentId":"b6"}
{"id":"b8"}
"##;

#[test]
fn the_system_prompt_is_what_its_branch_says() {
    let message = |id: &str, parent: &str, said: &str| {
        format!(
            r#"{{"type":"message","id":"{id}","parentId":{parent},"timestamp":"2026-01-02T03:04:06.000Z","message":{said}}}"#
        ) + "\n"
    };
    let first = r#"{"role":"system","content":"","sections":{"a":"A","b":"B"},"toolsAdded":[{"name":"read"}],"timestamp":1}"#;
    let later = r#"{"role":"system","content":"","sections":{"a":null},"toolsRemoved":[{"name":"read"}],"timestamp":2}"#;
    let other = r#"{"role":"system","content":"Other.","timestamp":3}"#;
    let text = [
        r#"{"type":"session","version":3,"id":"s1","timestamp":"2026-01-02T03:04:05.000Z","cwd":"/w"}"#.to_owned() + "\n",
        message("a1", "null", first),
        message("a2", "\"a1\"", r#"{"role":"user","content":"hi","timestamp":2}"#),
        message("a3", "\"a2\"", later),
        message("a4", "\"a2\"", other),
        r#"{"type":"compaction","id":"a5","parentId":"a4","timestamp":"2026-01-02T03:04:11.000Z","summary":"Short.","systemMessage":{"role":"system","content":"Whole.","toolsAdded":[]}}"#
            .to_owned()
            + "\n",
    ];
    check(
        ImportFormat::Pi,
        &text.concat(),
        expect![[r#"
        = pi s1 cwd=/w
        kept session
        prompt set system=true model=None
        -- Prompt
        user [text hi]
        prompt set system=true model=None
        rewound After("message:digest:c6c616ef3dc282398c0cb8af0b76a9c4#1")
        prompt set system=true model=None
        prompt set system=true model=None
        context replaced Compaction []
        prompt set system=true model=None
        user (not for the user) [text The conversation history before this point was co..]
        sessions 1 records 6 calls 0 failed 0 open 0 todos 0 unknown {} raw 0 skipped 0 cut false
    "#]],
    );
    let mut batches: Vec<acpdb_hosts::import::ImportBatch> = Vec::new();
    let options = acpdb_hosts::import::ImportOptions::default();
    let input = text.concat();
    let _ =
        acpdb_hosts::import::read(ImportFormat::Pi, "s1", input.as_bytes(), &options, &mut batches).unwrap();
    let prompts: Vec<(String, String)> = batches
        .iter()
        .flat_map(|batch| &batch.entries)
        .filter_map(|entry| match &entry.fact {
            acpdb_engine::entry::Fact::PromptSet(acpdb_engine::entry::fact::PromptSet {
                system: Some(system),
                tools: Some(tools),
                ..
            }) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                Some((text(system.as_ref()), text(tools.as_ref())))
            }
            _ => None,
        })
        .collect();
    let expected = [
        ("A\n\nB", r#"[{"name":"read"}]"#),
        ("B", "[]"),
        ("A\n\nB", r#"[{"name":"read"}]"#),
        ("Other.\n\nA\n\nB", r#"[{"name":"read"}]"#),
        ("Whole.", "[]"),
    ];
    assert_eq!(prompts, expected.map(|(system, tools)| (system.to_owned(), tools.to_owned())));
}

#[test]
fn a_tree_becomes_messages_calls_and_rewinds() {
    check(
        ImportFormat::Pi,
        SESSION,
        expect![[r#"
            = pi s1 cwd=/w
            kept session
            prompt set system=false model=Some("m")
            -- Prompt
            user [text fix] [media aW1n]
            -- Step
            assistant [reasoning sealed hm] [text I read.]
            call t1 read {"path": "a"}
            call t2 bash {"command":"false"}
               .. [text Both.]
            finished m Some(3)/Some(4)
            end t2 Failed [text no] +details
            end t1 Completed [text text]
            -- Step
            assistant (not for the model) [text cut]
            finished m Some(1)/Some(1)
            user (not for the model) [text Ran `ls`\n```\na\n```]
            kept thinking_level_change
            user (not for the user) [text told]
            context replaced Compaction []
            user (not for the user) [text The conversation history before this point was co..]
            context replaced Host [compaction:b1#1/summary.1 custom_message:a9#1.1]
            rewound After("message:digest:f1a4d622ab5732297771c0e6e564a81a#1")
            -- Step
            assistant [text Another way.]
            finished m None/None
            rewound After("message:digest:f1a4d622ab5732297771c0e6e564a81a#1")
            -- Step
            assistant [reasoning sealed hm] [text I read.]
            call t1 read {"path": "a"}
            call t2 bash {"command":"false"}
               .. [text Both.]
            finished m Some(3)/Some(4)
            end t2 Failed [text no] +details
            end t1 Completed [text text]
            -- Step
            assistant (not for the model) [text cut]
            finished m Some(1)/Some(1)
            user (not for the model) [text Ran `ls`\n```\na\n```]
            kept thinking_level_change
            user (not for the user) [text told]
            context replaced Compaction []
            user (not for the user) [text The conversation history before this point was co..]
            context replaced Host [compaction:b1#1/summary@2.1 custom_message:a9#1@2.1]
            user (not for the user) [text The following is a summary of a branch that this ..]
            session changed title=Some("A title") cwd=None
            rewound to before 
            -- Prompt
            user [text anew]
            user [text x]
            kept later_kind
            kept raw
            sessions 1 records 18 calls 4 failed 2 open 2 todos 0 unknown {"later_kind": 1} raw 1 skipped 0 cut false
        "#]],
    );
}

/// The host gives ids to the lines of an old file when it opens it; they are the same facts.
#[test]
fn a_file_that_is_given_ids_tells_the_same_messages() {
    let old = r#"{"type":"session","id":"s1","timestamp":"2025-01-02T03:04:05.000Z","cwd":"/w"}
{"type":"message","timestamp":"2025-01-02T03:04:06.000Z","message":{"role":"user","content":"fix","timestamp":1}}
{"type":"message","timestamp":"2025-01-02T03:04:07.000Z","message":{"role":"assistant","content":[{"type":"toolCall","id":"t1","name":"ls","arguments":{}}],"timestamp":2}}
"#;
    let new = old
        .replace(r#""s1","#, r#""s1","version":3,"#)
        .replace(
            r#""message","timestamp":"2025-01-02T03:04:06"#,
            r#""message","id":"a","parentId":null,"timestamp":"2025-01-02T03:04:06"#,
        )
        .replace(
            r#""message","timestamp":"2025-01-02T03:04:07"#,
            r#""message","id":"b","parentId":"a","timestamp":"2025-01-02T03:04:07"#,
        );
    let origins = |input: &str| {
        let (batches, _) = super::support::import(ImportFormat::Pi, "file", input.as_bytes());
        super::support::origins(&batches)
    };
    assert_ne!(old, new);
    assert_eq!(origins(old), origins(&new));
}

#[test]
fn a_header_tells_the_format() {
    let first = SESSION.lines().next().unwrap();
    assert_eq!(detect(std::path::Path::new("x.jsonl"), first.as_bytes()), Some(ImportFormat::Pi));
}

/// The messages that the host would send next, from a store's fold of these lines.
fn sent(lines: &[String]) -> String {
    let storage = Arc::new(SimWorld::new(1).process(1));
    let store = Store::builder("/sim").storage(storage).registry(acpdb_hosts::registry()).open().unwrap();
    for batch in super::support::import(ImportFormat::Pi, "file", lines.concat().as_bytes()).0 {
        let _ = store.append(&batch.stream, batch.entries).unwrap();
    }
    let stream = store.stream_names().unwrap().into_iter().find(|it| it.scope == Scope::Session).unwrap();
    let view = store.view(stream.id).unwrap();
    let options = ExportChoices { selection: Selection::Recorded, ..ExportChoices::default() };
    let body = export(&view, export::Format::Anthropic, &options).unwrap().bytes;
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let texts = body["messages"].as_array().unwrap().iter().flat_map(|message| {
        let blocks = message["content"].as_array().unwrap();
        blocks.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    });
    texts.collect::<Vec<_>>().join(" | ")
}

/// A line with one text: `id<parent role text`.
fn line(script: &str) -> String {
    let (id, rest) = script.split_once('<').unwrap();
    let (parent, rest) = rest.split_once(' ').unwrap();
    let (role, text) = rest.split_once(' ').unwrap();
    let parent = if parent.is_empty() { "null".to_owned() } else { format!("\"{parent}\"") };
    let said = match role {
        "compaction" => {
            format!(r#""type":"compaction","summary":"S","tokensBefore":9,"firstKeptEntryId":"{text}""#)
        }
        _ => format!(
            r#""type":"message","message":{{"role":"{role}","content":[{{"type":"text","text":"{text}"}}],"stopReason":"stop"}}"#
        ),
    };
    format!("{{\"id\":\"{id}\",\"parentId\":{parent},{said}}}\n")
}

/// A session goes back to a branch that was left. A compaction keeps the messages that it names behind its summary, and a rewind undoes it.
#[test]
fn the_context_is_the_path_to_the_line_written_last() {
    let header = r#"{"type":"session","version":3,"id":"s","cwd":"/w"}"#.to_owned() + "\n";
    let mut lines = vec![header];
    let mut check = |scripts: &[&str], expected: &str| {
        lines.extend(scripts.iter().map(|script| line(script)));
        assert_eq!(sent(&lines), expected, "after {scripts:?}");
    };
    check(
        &["a< user one", "b<a assistant two", "c<b user three", "d<c assistant four"],
        "one | two | three | four",
    );
    check(&["e<b user other", "f<e assistant way"], "one | two | other | way");
    check(&["g<d user back"], "one | two | three | four | back");
    let summary = "The conversation history before this point was compacted into the following summary:\n\n<summary>\nS\n</summary>";
    check(&["h<g assistant ok", "i<h compaction c"], &format!("{summary} | three | four | back | ok"));
    check(&["j<i user on"], &format!("{summary} | three | four | back | ok | on"));
    check(&["k<h user undone"], "one | two | three | four | back | ok | undone");
    check(&["l< user anew"], "anew");
    check(&["m<j assistant again"], &format!("{summary} | three | four | back | ok | on | again"));
}
