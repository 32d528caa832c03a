//! Files that are more than they seem. Their import ends soon, in little memory, with an error that says what to do.

#![expect(clippy::unwrap_used, reason = "a test stops at what it did not expect")]

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use acpdb_hosts::import::ImportFormat;

/// The most memory that an import may take at its peak; a sound one of these sizes takes a tenth of it.
const PEAK_KIB_MAX: u64 = 200 << 10;

/// Runs the program. Returns its exit code, its output, and the most memory it was seen to hold, in KiB.
fn run(store: &Path, args: &[&str]) -> (Option<i32>, String, u64) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command.args(args).arg("--db").arg(store).env_remove("ACPDB_PATH");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    // The high-water mark only rises, so the last look before the end is the one that counts.
    while child.try_wait().unwrap().is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let mark = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let mark = mark.and_then(|mark| mark.trim().trim_end_matches(" kB").parse().ok());
        peak = peak.max(mark.unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let done = child.wait_with_output().unwrap();
    (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned(), peak)
}

/// A packed file of `piece`, over and over.
fn packed(path: &Path, begin: &[u8], piece: &[u8], count: usize) {
    let mut file = zstd::Encoder::new(std::fs::File::create(path).unwrap(), 1).unwrap();
    file.write_all(begin).unwrap();
    for _ in 0..count {
        file.write_all(piece).unwrap();
    }
    file.finish().unwrap();
}

/// The hostile files, each with its given format and the limit that ends its import.
fn hostile(folder: &Path) -> Vec<(PathBuf, &'static str, &'static str)> {
    let path = |name: &str| folder.join(name);
    let mib = 1 << 20;
    packed(&path("zeros.jsonl.zst"), b"{\"type\":\"", &vec![0; mib], 256);
    packed(&path("brackets.json.zst"), b"", &vec![b'['; mib], 64);
    packed(&path("tiny.json.zst"), b"[", &b"{\"role\":\"user\",\"content\":\"\"},".repeat(1 << 12), 800);
    packed(&path("lines.jsonl.zst"), b"", &b"{\"role\":\"user\",\"content\":\"a\"}\n".repeat(1 << 12), 800);
    let mut elements = b"{\"role\":\"user\",\"content\":[".to_vec();
    elements.extend(b"1,".repeat(10_000_000));
    elements.extend(b"1]}");
    std::fs::write(path("elements.json"), elements).unwrap();
    std::fs::write(path("line.jsonl"), [b"{\"type\":\"".to_vec(), vec![b'a'; 70 << 20]].concat()).unwrap();
    // A mebibyte of lines that say nothing took half a gigabyte and twenty seconds.
    std::fs::write(path("short.jsonl"), b"{}\n".repeat(mib / 3)).unwrap();
    std::fs::write(path("named.jsonl"), b"{\"type\":\"a\"}\n".repeat(mib / 13)).unwrap();
    let mut string = b"{\"role\":\"user\",\"content\":\"".to_vec();
    string.extend(vec![b'a'; 80 << 20]);
    string.extend(b"\"}");
    std::fs::write(path("document.json"), string).unwrap();
    vec![
        (path("zeros.jsonl.zst"), "claude-code", "ratio"),
        (path("brackets.json.zst"), "openai-messages", "ratio"),
        (path("tiny.json.zst"), "openai-messages", "ratio"),
        (path("lines.jsonl.zst"), "openai-messages", "ratio"),
        (path("elements.json"), "openai-messages", "elements"),
        (path("elements.json"), "opencode", "elements"),
        (path("elements.json"), "claude-code", "elements"),
        (path("elements.json"), "codex", "elements"),
        (path("elements.json"), "copilot-cli", "elements"),
        (path("elements.json"), "gemini-cli", "elements"),
        (path("elements.json"), "swe-agent", "elements"),
        (path("line.jsonl"), "claude-code", "record"),
        (path("line.jsonl"), "codex", "record"),
        (path("line.jsonl"), "copilot-cli", "record"),
        (path("document.json"), "openai-messages", "document"),
        (path("short.jsonl"), "claude-code", "unread"),
        (path("short.jsonl"), "codex", "unread"),
        (path("short.jsonl"), "copilot-cli", "unread"),
        (path("short.jsonl"), "gemini-cli", "unread"),
        (path("short.jsonl"), "pi", "unread"),
        (path("named.jsonl"), "codex", "unread"),
    ]
}

/// A file of ten kilobytes became seven million events, a gigabyte of disk and two of memory, and the import had not ended.
#[test]
fn a_hostile_file_ends_soon_and_names_the_limit() {
    let folder = tempfile::TempDir::new().unwrap();
    for (at, (path, format, limit)) in hostile(folder.path()).into_iter().enumerate() {
        let store = folder.path().join(format!("store-{at}"));
        let (code, err, peak) = run(&store, &["import", "--format", format, &path.to_string_lossy()]);
        let shown = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(matches!(code, Some(1 | 8)), "{shown} as {format}: {code:?} {err}");
        let switch = format!("--limits {limit}=N allows more");
        assert!(err.contains(&shown) && err.contains(&switch), "{shown} as {format}: {err}");
        assert!(peak < PEAK_KIB_MAX, "{shown} as {format}: {peak} KiB");
    }
}

/// The records before a limit are recorded whole; importing again with more allowed adds the rest, and nothing twice.
#[test]
fn what_came_before_a_limit_stands_and_the_rest_can_be_added() {
    let folder = tempfile::TempDir::new().unwrap();
    let (store, path) = (folder.path().join("store"), folder.path().join("many.jsonl"));
    let lines: String =
        (0..60).map(|number| format!("{{\"role\":\"user\",\"content\":\"number {number}\"}}\n")).collect();
    std::fs::write(&path, lines).unwrap();
    let file = path.to_string_lossy().into_owned();
    let listed = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        let done =
            command.args(["log", "--texts", "--db"]).arg(&store).env_remove("ACPDB_PATH").output().unwrap();
        String::from_utf8_lossy(&done.stdout).matches("number ").count()
    };
    let (code, err, _) = run(&store, &["import", "--limits", "facts=20", &file]);
    assert_eq!(code, Some(8), "{err}");
    assert!(err.contains("facts and more, over 20; --limits facts=N allows more"), "{err}");
    let before = listed();
    assert!(before > 0 && before < 60, "{before}");
    let (code, err, _) = run(&store, &["import", &file]);
    assert_eq!((code, listed()), (Some(0), 60), "{err}");
    for wrong in ["facts", "depth=3", "record=1G", "bytes=many"] {
        assert_eq!(run(&store, &["import", "--limits", wrong, &file]).0, Some(2), "{wrong}");
    }
}

/// Repeated names, halves of surrogate pairs and deep nesting make no import fail.
#[test]
fn odd_records_are_kept_and_the_rest_is_read() {
    let folder = tempfile::TempDir::new().unwrap();
    let (store, path) = (folder.path().join("store"), folder.path().join("odd.jsonl"));
    let deep = format!("{{\"role\":\"user\",\"content\":{}{}}}", "[".repeat(5000), "]".repeat(5000));
    let odd = format!(
        "{{\"role\":\"user\",\"content\":\"first\"}}\n{deep}\n{{\"role\":\"user\",\"role\":\"user\",\"content\":\"a\",\
         \"content\":\"b\"}}\n{{\"role\":\"user\",\"content\":\"half \\ud83d\"}}\n{{\"role\":\"user\",\"content\":\"last\"}}\n"
    );
    std::fs::write(&path, odd).unwrap();
    let (code, err, _) = run(&store, &["import", "--format", "openai-messages", &path.to_string_lossy()]);
    assert!(matches!(code, Some(0 | 8)), "{err}");
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    let done =
        command.args(["log", "--texts", "--db"]).arg(&store).env_remove("ACPDB_PATH").output().unwrap();
    let list = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(list.contains("first") && list.contains("last"), "{list}");
}

/// Runs the program with a file as its input, on a store of its own. It is ended by a signal past two seconds of processor time and past 100 MB of
/// memory of its own; a sound file of a mebibyte takes a tenth of both, without optimisation.
fn bounded(folder: &Path, door: &[&str], input: &Path) -> std::process::Output {
    let mut command = Command::new("sh");
    // Two seconds of processor time of the published program; one that is not optimised takes three to five times that.
    let seconds = if cfg!(debug_assertions) { 8 } else { 2 };
    let limits = &format!("ulimit -t {seconds}; ulimit -d 100000; exec \"$@\"");
    command.args(["-c", limits, "sh", env!("CARGO_BIN_EXE_acpdb"), "--db"]).arg(folder.join("store"));
    command.args(door).env_remove("ACPDB_PATH").env("HOME", folder);
    command.stdin(std::fs::File::open(input).unwrap()).output().unwrap()
}

/// The first lines of a session of each format that is told in lines, or the beginning of a document and its end.
const BEGUN: [(&str, &str, &str); 9] = [
    (
        "claude-code",
        r#"{"type":"user","uuid":"u1","sessionId":"s1","cwd":"/w","timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hello"}}"#,
        "",
    ),
    (
        "codex",
        "{\"timestamp\":\"2026-01-01T00:00:00Z\",\"type\":\"session_meta\",\"payload\":{\"id\":\"s1\",\"cwd\":\"/w\"}}\n{\"timestamp\":\"2026-01-01T00:00:01Z\",\"type\":\"response_item\",\"payload\":{\"type\":\"message\",\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"hello\"}]}}",
        "",
    ),
    (
        "pi",
        "{\"type\":\"session\",\"version\":3,\"id\":\"s1\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"cwd\":\"/w\"}\n{\"type\":\"message\",\"id\":\"m1\",\"parentId\":null,\"timestamp\":\"2026-01-01T00:00:00Z\",\"message\":{\"role\":\"user\",\"content\":\"hello\",\"timestamp\":1}}",
        "",
    ),
    (
        "gemini-cli",
        r#"{"sessionId":"s1","startTime":"2026-01-01T00:00:00Z"}
{"id":"m1","timestamp":"2026-01-01T00:00:00Z","type":"user","content":"hello"}"#,
        "",
    ),
    ("openai-messages", r#"{"role":"user","content":"hello"}"#, ""),
    ("openai-messages", r#"[{"role":"user","content":"hello"}"#, "]"),
    ("gemini-cli", r#"{"sessionId":"s1","messages":[{"id":"m1","type":"user","content":"hello"}"#, "]}"),
    (
        "opencode",
        r#"{"info":{"id":"ses_1","directory":"/w"},"messages":[{"info":{"id":"m1","role":"user"},"parts":[{"id":"p1","type":"text","text":"hello"}]}"#,
        "]}",
    ),
    (
        "swe-agent",
        r#"{"history":[{"role":"user","content":"hello"}],"trajectory":[{"action":"ls","observation":"a","response":"b"}"#,
        "]}",
    ),
];

/// A message with hundreds of thousands of values behind it that say nothing: each cost an event, and each line an answer and a line of the journal.
#[test]
fn a_mebibyte_of_values_that_say_nothing_ends_soon_by_every_door() {
    const BYTES: usize = 1 << 20;
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("noise.jsonl");
    for piece in ["{}", "0", "{\"type\":\"a\"}"] {
        for (format, begin, end) in BEGUN {
            let between = if end.is_empty() { "\n" } else { "," };
            let text =
                format!("{begin}{}{end}\n", format!("{between}{piece}").repeat(BYTES / (piece.len() + 1)));
            std::fs::write(&file, text).unwrap();
            let path = file.to_string_lossy().into_owned();
            let _ = std::fs::remove_dir_all(folder.path().join("store"));
            let door = ["import", "--format", format, &path];
            let done = bounded(folder.path(), &door, &file);
            let said = String::from_utf8_lossy(&done.stderr).into_owned();
            let said = said.get(..said.len().min(2000)).unwrap_or_default();
            assert!(
                matches!(done.status.code(), Some(0 | 1 | 8)),
                "{piece} in {format}: {:?} {said}",
                done.status
            );
        }
        std::fs::write(&file, format!("{piece}\n").repeat(BYTES / (piece.len() + 1))).unwrap();
        for door in [
            &["append", "--stdin"][..],
            &["append", "--stdin", "--ack"],
            &["plugin", "pi"],
            &["plugin", "opencode"],
            &["hook", "claude-code"],
            #[cfg(feature = "mcp")]
            &["mcp"],
        ] {
            let done = bounded(folder.path(), door, &file);
            let said =
                format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            let told = said.get(said.len().saturating_sub(300)..).unwrap_or_default();
            assert!(
                matches!(done.status.code(), Some(0 | 8)),
                "{piece} by {door:?}: {:?} {told}",
                done.status
            );
            let is_told = door[0] == "hook" || said.contains("nothing further is read");
            assert!(is_told || piece.len() > 13, "{piece} by {door:?}: {told}");
        }
    }
}

/// Messages that all begin the session anew: each takes the one before off the branch. The policies of each two were compared for each of them.
#[test]
fn a_mebibyte_of_beginnings_ends_soon() {
    const BYTES: usize = 1 << 20;
    let folder = tempfile::TempDir::new().unwrap();
    let file = folder.path().join("beginnings.jsonl");
    let mut text = String::new();
    for number in 0.. {
        let line = format!(
            "{{\"type\":\"user\",\"uuid\":\"u{number}\",\"parentUuid\":null,\"sessionId\":\"s1\",\"cwd\":\"/w\",\"timestamp\":\"2026-01-01T00:00:00Z\",\"message\":{{\"role\":\"user\",\"content\":\"x\"}}}}\n"
        );
        if text.len() + line.len() > BYTES {
            break;
        }
        text.push_str(&line);
    }
    std::fs::write(&file, text).unwrap();
    for door in [&["import", &file.to_string_lossy()][..], &["context"]] {
        let done = bounded(folder.path(), door, &file);
        assert_eq!(
            done.status.code(),
            Some(0),
            "{door:?}: {:?} {}",
            done.status,
            String::from_utf8_lossy(&done.stderr)
        );
    }
}

/// One mebibyte of JSON that is deep, wide, long or broken, by each way in: it ends with its error, within two seconds and 100 MB.
#[test]
fn a_mebibyte_of_hostile_json_ends_with_its_error_by_every_door() {
    const BYTES: usize = 1 << 20;
    let folder = tempfile::TempDir::new().unwrap();
    let filled = |piece: &str| piece.repeat(BYTES / piece.len());
    let mut layers = "x".to_owned();
    while layers.len() < BYTES {
        layers = serde_json::json!({ "a": layers }).to_string();
    }
    // An input; what `append`, a plug-in and the journal of hooks say.
    let hostile = [
        ("deep lists", format!("{{\"a\":{}", filled("[")), "elements and members, over 1000000"),
        ("deep objects", filled("{\"a\":"), ""),
        ("elements", format!("{{\"a\":[{}1]}}", filled("1,")), ""),
        ("one name", format!("{{{}\"a\":1}}", filled("\"a\":1,")), ""),
        ("escapes", format!("{{\"a\":\"{}\"}}", filled("\\u0000")), ""),
        ("layers", layers, ""),
        ("digits", format!("{{\"a\":{}}}", filled("9")), ""),
        ("an exponent", format!("{{\"a\":1e{}}}", filled("9")), ""),
        ("no end", format!("{{\"a\":\"{}", filled("x")), ""),
        ("blanks", format!("{{\"a\":{}1}}", filled(" ")), ""),
    ];
    for (name, text, word) in hostile {
        let file = folder.path().join("hostile.jsonl");
        std::fs::write(&file, text + "\n").unwrap();
        let path = file.to_string_lossy().into_owned();
        let import = |format: ImportFormat| vec!["import", "--format", format.name(), path.as_str()];
        let doors = ImportFormat::ALL.into_iter().map(import);
        let doors =
            doors.chain([vec!["append", "--stdin"], vec!["hook", "claude-code"], vec!["plugin", "pi"]]);
        for door in doors {
            let done = bounded(folder.path(), &door, &file);
            let said =
                format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
            let told = format!("{name} by {door:?}: {said}");
            match door[0] {
                "hook" => assert_eq!((done.status.code(), said.trim()), (Some(0), "{}"), "{told}"),
                "plugin" => assert!(done.status.success() && said.contains("this is no request"), "{told}"),
                "append" => {
                    assert_eq!(done.status.code(), Some(8), "{told}");
                    assert!(said.contains("line 1 was not recorded") && said.contains(word), "{told}");
                }
                _ => {
                    assert_eq!(done.status.code(), Some(1), "{told}");
                    assert!(said.contains("nothing was recorded") || said.contains("nothing new"), "{told}");
                }
            }
        }
    }
}
