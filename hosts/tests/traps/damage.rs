//! Files that are cut, glued, broken or hostile: no panic, and no sound record is lost.

use std::io::BufReader;
use std::path::Path;

use acpdb_engine::entry::{Entry, Fact};
use acpdb_hosts::import::{self, ImportBatch, ImportFormat, ImportOptions};
use expect_test::expect;
use proptest::prelude::*;

use super::{check, read, wires};

const USER: &str = r#"{"type":"user","uuid":"u1","sessionId":"s","cwd":"/w","message":{"content":"hello"}}"#;
const CALL: &str = r#"{"type":"assistant","uuid":"a1","parentUuid":"u1","message":{"id":"m","content":[{"type":"tool_use","id":"c","name":"Bash","input":{"command":"make the thing that is longer than sixty-four bytes in all"}}]}}"#;
const RESULT: &str = r#"{"type":"user","uuid":"r1","parentUuid":"a1","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"line\nline"}]},"toolUseResult":{"stdout":"line\nline"}}"#;
const SESSION: &str = r#"{"info":{"id":"ses_1","directory":"/w"},"messages":[{"info":{"id":"msg_1","role":"assistant"},"parts":[{"type":"step-start","id":"prt_0"},{"type":"tool","id":"prt_1","callID":"c","tool":"bash","state":{"status":"completed","input":{"command":"x"},"output":"y"}},{"type":"text","id":"prt_2","text":"z"}]}]}"#;

#[test]
fn an_empty_file_holds_nothing() {
    for format in [ImportFormat::ClaudeCode, ImportFormat::Opencode] {
        let (batches, report) = read(format, b"");
        assert_eq!((batches.len(), report.records, report.sessions), (0, 0, 0));
        assert!(report.is_complete());
    }
}

#[test]
fn values_may_be_glued_spread_marked_or_cut() {
    let spread = RESULT.replace(",\"message\"", ",\r\n  \"message\"");
    let input = format!("\u{feff}{USER}{CALL}\r\n\r\n{spread}\r\n{{\"type\":\"user\",\"uuid\":\"u2\",\"mess");
    check(
        ImportFormat::ClaudeCode,
        &input,
        expect![[r#"
        [s]
          prompt u1 <prompt:u1>
          User u1: Text "hello" <msg:u1#0> *
          step m <turn:m>
          call c of Some("m"): Bash {"command":"make the thing that is longer than sixty-four bytes in all"} <call:c#1:start> *
          Completed c: Text "line\nline" details {"stdout":"line\nline"} <call:c#1:finish> *
          end of m None None in None out None <msg:m:finish>
        ! 5:477 the last record is not complete yet; import again when it is
    "#]],
    );
    let (batches, _) = read(ImportFormat::ClaudeCode, input.as_bytes());
    assert_eq!(wires(&batches), [USER, CALL, &spread]);
}

#[test]
fn what_cannot_be_parsed_is_kept_as_it_is() {
    let deep = format!("{{\"type\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let lines: Vec<&[u8]> = vec![
        USER.as_bytes(),
        b"not json at all",
        b"{\"type\":\"user\",\"uuid\":}",
        b"{\"type\":\"user\",\"uuid\":\"\xff\"}",
        b"{\"type\":\"user",
        deep.as_bytes(),
        b"{\"type\":[1],\"uuid\":{}}",
        RESULT.as_bytes(),
    ];
    let input = lines.join(&b'\n');
    let (batches, report) = read(ImportFormat::ClaudeCode, &input);
    assert_eq!(report.records, 8);
    let kept: Vec<_> = report.kept_raw.iter().map(|note| format!("{}: {}", note.line, note.reason)).collect();
    expect![[r#"
        2: not a JSON object or array; kept as it is
        3: not an object with a type; kept as it is
        4: not UTF-8 at byte 148; kept as it is
        5: a line ends inside a string; kept as it is
        6: nested more than 128 levels deep; kept as it is
        7: not an object with a type; kept as it is"#]]
    .assert_eq(&kept.join("\n"));
    let lossy: Vec<_> = lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect();
    assert_eq!(wires(&batches), lossy);
}

#[test]
fn half_a_character_is_no_reason_to_lose_a_result() {
    let line = r#"{"type":"user","uuid":"r1","sessionId":"s","cwd":"/w","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":"cut \ud83d"}]}}"#;
    check(
        ImportFormat::ClaudeCode,
        line,
        expect![[r#"
        [s]
          Completed c: Text "cut �" <call:c#1:finish> *
    "#]],
    );
    let (batches, _) = read(ImportFormat::ClaudeCode, line.as_bytes());
    assert_eq!(wires(&batches), [line]);
}

#[test]
fn a_line_may_be_long() {
    let text = "word \\n".repeat(300_000);
    let line = format!(
        r#"{{"type":"user","uuid":"u","sessionId":"s","cwd":"/w","message":{{"content":"{text}"}}}}"#
    );
    let (batches, report) = read(ImportFormat::ClaudeCode, line.as_bytes());
    assert!(report.is_complete());
    assert_eq!(wires(&batches), [line]);
    let literal: usize = entries(&batches)
        .flat_map(|entry| &entry.wire)
        .map(|piece| match piece {
            acpdb_engine::entry::WirePiece::Literal(bytes) => bytes.len(),
            _ => 0,
        })
        .sum();
    assert!(literal < 200, "the text stands in the wire a second time");
}

#[test]
fn formats_are_told_by_content_then_by_folder() {
    // Programs below a folder of a host's name were read as its sessions, each piece of them a record for ever.
    let cases: [(&str, &str, Option<ImportFormat>); 11] = [
        ("x", USER, Some(ImportFormat::ClaudeCode)),
        ("x", SESSION, Some(ImportFormat::Opencode)),
        ("x", &SESSION[..60], Some(ImportFormat::Opencode)),
        ("/home/u/.claude/projects/p/s.jsonl", "", Some(ImportFormat::ClaudeCode)),
        ("/home/u/.claude/projects/p/s.jsonl", "{\"new\":1}", Some(ImportFormat::ClaudeCode)),
        ("/home/u/.gemini/tmp/p/.project_root", "/home/u/p", None),
        ("/home/u/.gemini/settings.json", "{\"theme\":1}", None),
        ("/opt/codex/bundle/main.js", "import{a}from'./b.js';", None),
        ("/opt/codex/lines.jsonl", "import{a}from'./b.js';", None),
        ("notes/readme.txt", "some text", None),
        ("x", "", None),
    ];
    for (path, head, expected) in cases {
        assert_eq!(import::detect(Path::new(path), head.as_bytes()), expected, "{path} {head}");
    }
}

#[test]
fn a_compressed_file_is_read_up_to_the_limit() {
    let packed = zstd::encode_all(USER.as_bytes(), 1).unwrap();
    let unpack = |limit: u64| {
        let mut text = String::new();
        let limits = import::Limits { bytes: limit, ..import::Limits::default() };
        let mut input = import::decompressed(packed.as_slice(), &limits).unwrap();
        std::io::Read::read_to_string(&mut input, &mut text).map(|_| text).map_err(|error| error.to_string())
    };
    assert_eq!(unpack(1000).unwrap(), USER);
    let told = unpack(10).unwrap_err();
    assert!(
        told.starts_with("it unpacks to ")
            && told.ends_with(" bytes and more, over 10; --limits bytes=N allows more"),
        "{told}"
    );
}

fn entries(batches: &[ImportBatch]) -> impl Iterator<Item = &Entry> {
    batches.iter().flat_map(|batch| &batch.entries)
}

/// Facts without those that only end a message, as a later part of the file may say more about it.
fn facts(batches: &[ImportBatch]) -> Vec<String> {
    entries(batches)
        .filter(|entry| !matches!(entry.fact, Fact::MessageFinished(_)))
        .map(|entry| format!("{entry:?}"))
        .collect()
}

/// A file of records that may be damaged: repeated, cut out, glued, with bytes changed.
fn damaged(records: &'static [&'static str]) -> impl Strategy<Value = Vec<u8>> {
    let record = (0..records.len(), any::<bool>());
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..6);
    (prop::collection::vec(record, 0..8), changes).prop_map(|(chosen, changes)| {
        let mut bytes = Vec::new();
        for (index, newline) in chosen {
            bytes.extend_from_slice(records[index].as_bytes());
            if newline {
                bytes.push(b'\n');
            }
        }
        for (at, byte, how) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at),
                _ => bytes.insert(at, byte),
            }
        }
        bytes
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in any::<Vec<u8>>()) {
        for format in ImportFormat::ALL {
            let mut batches = Vec::new();
            // A document of another format is refused; the test checks that nothing panics.
            drop(import::read(format, "x", bytes.as_slice(), &ImportOptions::default(), &mut batches));
        }
    }

    /// The message that is still open at the end of a file was ended with the offset 0: a caller that kept the last offset as the
    /// place to go on from would have begun anew.
    #[test]
    fn offsets_never_go_back(bytes in damaged(&[USER, CALL, RESULT, SESSION])) {
        for format in ImportFormat::ALL {
            let mut batches = Vec::new();
            drop(import::read(format, "x", bytes.as_slice(), &ImportOptions::default(), &mut batches));
            prop_assert!(batches.windows(2).all(|pair| pair[0].offset <= pair[1].offset), "{}", format.name());
        }
    }

    #[test]
    fn damaged_records_lose_nothing(bytes in damaged(&[USER, CALL, RESULT])) {
        let (batches, report) = read(ImportFormat::ClaudeCode, &bytes);
        // Nothing of it is a session.
        prop_assume!(!report.is_empty);
        let kept: usize = entries(&batches).filter(|entry| !entry.wire.is_empty()).count();
        prop_assert_eq!(kept as u64, report.records);
        let mut left = bytes.as_slice();
        for entry in entries(&batches).filter(|entry| !entry.wire.is_empty()) {
            let record = import::wire::resolve(&entry.wire).unwrap();
            let at = left.windows(record.len().max(1)).position(|window| window == record);
            prop_assert!(at.is_some(), "a record is not in the file");
            let (between, rest) = left.split_at(at.unwrap());
            prop_assert!(between.iter().all(|byte| byte.is_ascii_whitespace() || [0xef, 0xbb, 0xbf].contains(byte)));
            left = &rest[record.len()..];
        }
        let rest = left.trim_ascii_start();
        prop_assert!(rest.is_empty() || report.cut.is_some() || rest.iter().all(|byte| [0xef, 0xbb, 0xbf].contains(byte)));
    }

    #[test]
    fn damaged_documents_are_read_without_a_panic(bytes in damaged(&[SESSION])) {
        let mut batches = Vec::new();
        drop(import::read(ImportFormat::Opencode, "x", bytes.as_slice(), &ImportOptions::default(), &mut batches));
    }

    #[test]
    fn the_size_of_reads_does_not_matter(bytes in damaged(&[USER, CALL, RESULT, SESSION]), size in 1..50usize) {
        let mut small = Vec::new();
        let input = BufReader::with_capacity(size, bytes.as_slice());
        let report = import::read(ImportFormat::ClaudeCode, "file", input, &ImportOptions::default(), &mut small).unwrap();
        let (whole, whole_report) = read(ImportFormat::ClaudeCode, &bytes);
        prop_assert_eq!(small, whole);
        prop_assert_eq!(report, whole_report);
    }

    #[test]
    fn the_facts_of_a_beginning_are_the_beginning_of_the_facts(
        chosen in prop::collection::vec(0..3usize, 1..8),
        at in any::<prop::sample::Index>(),
    ) {
        let lines: Vec<String> = chosen
            .iter()
            .enumerate()
            .map(|(number, kind)| {
                let record = [USER, CALL, RESULT][*kind];
                record.replace("\"uuid\":\"", &format!("\"uuid\":\"{number}-")).replace("\"u1\"", "\"0-u1\"")
            })
            .collect();
        let lines: Vec<String> = std::iter::once(USER.to_owned()).chain(lines).collect();
        let cut = 1 + at.index(lines.len());
        let beginning = facts(&read(ImportFormat::ClaudeCode, lines[..cut].join("\n").as_bytes()).0);
        let whole = facts(&read(ImportFormat::ClaudeCode, lines.join("\n").as_bytes()).0);
        prop_assert_eq!(&whole[..beginning.len()], &beginning[..]);
    }
}
