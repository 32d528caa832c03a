//! `acpdb ui`: answers to plain requests, refusals, and pages that follow the store.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test stops at what it did not expect")]

mod done;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, SystemTime};

use done::finish;
use serde_json::Value;
use tempfile::TempDir;

/// How long an answer may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// A store with the bundled session, and a server over it.
struct Ui {
    folder: TempDir,
    child: Child,
    port: String,
    token: String,
}

impl Drop for Ui {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

fn program(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
    command.current_dir(folder).env_clear().env("HOME", folder).env("ACPDB_PATH", folder.join("store"));
    command
}

fn import(folder: &Path, file: &Path) {
    let done = finish(program(folder).arg("import").arg(file), "");
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
}

impl Ui {
    fn new(more: &[&str]) -> Self {
        let folder = TempDir::new().unwrap();
        import(folder.path(), &Path::new(env!("CARGO_MANIFEST_DIR")).join("assets/demo-session.jsonl"));
        let mut command = program(folder.path());
        command
            .args(["ui", "--listen", "127.0.0.1:0"])
            .args(more)
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let rest = line.trim().strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("{line:?}"));
        let (port, token) = rest.split_once('/').unwrap();
        let token = token.trim_end_matches('/').to_owned();
        assert_eq!(token.len(), 32, "{line}");
        Self { port: port.to_owned(), token, folder, child }
    }

    fn send(&self, method: &str, path: &str, headers: &str) -> TcpStream {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nConnection: close\r\n{headers}\r\n").unwrap();
        stream
    }

    fn ask(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut bytes = Vec::new();
        self.send(method, path, headers).read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{text}"));
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head.to_lowercase().contains("transfer-encoding: chunked");
        let body = if is_chunked { unchunked(body) } else { body.to_owned() };
        Answer { status, head: head.to_lowercase(), body }
    }

    /// A place behind the token, by its own name.
    fn get(&self, place: &str) -> Answer {
        let host = format!("Host: 127.0.0.1:{}\r\n", self.port);
        self.ask("GET", &format!("/{}{place}", self.token), &host)
    }

    /// The rows of the index.
    fn rows(&self) -> Vec<Value> {
        let answer = self.get("/data");
        assert_eq!(answer.status, 200, "{answer:?}");
        let data: Value = serde_json::from_str(&answer.body).unwrap();
        data.get("rows").and_then(Value::as_array).unwrap().clone()
    }

    /// The place of the page of a session.
    fn page(&self, title: &str) -> String {
        let rows = self.rows();
        let is_it = |row: &&Value| row.to_string().contains(title);
        let row = rows.iter().find(is_it).unwrap_or_else(|| panic!("{title} is not in {rows:?}"));
        format!("/{}", row.get(15).and_then(Value::as_str).unwrap())
    }
}

/// The body of an answer that was sent in chunks, each behind its length.
fn unchunked(mut rest: &str) -> String {
    let mut body = String::new();
    while let Some((length, behind)) = rest.split_once("\r\n") {
        let length = usize::from_str_radix(length.trim(), 16).unwrap();
        if length == 0 {
            return body;
        }
        let (piece, next) = behind.split_at(length);
        body.push_str(piece);
        rest = next.strip_prefix("\r\n").unwrap();
    }
    panic!("the answer was broken off after {} bytes", body.len());
}

/// Every file below a folder, with its length and time.
fn files(folder: &Path) -> BTreeMap<PathBuf, (u64, SystemTime)> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                open.push(entry.path());
            } else {
                found.insert(entry.path(), (meta.len(), meta.modified().unwrap()));
            }
        }
    }
    found
}

#[test]
fn the_index_and_the_pages_of_all_sessions_are_served_and_the_store_stays_as_it_is() {
    let ui = Ui::new(&[]);
    let before = files(&ui.folder.path().join("store"));
    let index = ui.get("/");
    assert_eq!(index.status, 200, "{index:?}");
    assert!(index.body.starts_with("<!doctype html>") && index.body.ends_with("</html>\n"), "whole");
    let page = ui.page("claude-code");
    assert!(index.body.contains(page.trim_start_matches('/')), "the index links to {page}");
    let whole = ui.get(&page);
    assert_eq!(whole.status, 200, "{}", whole.head);
    assert!(whole.body.starts_with("<!doctype html>") && whole.body.ends_with("</html>\n"), "whole");
    for answer in [&index, &whole] {
        for header in [
            "content-type: text/html; charset=utf-8",
            "x-content-type-options: nosniff",
            "content-security-policy: frame-ancestors 'none'",
            "cache-control: no-store",
            "referrer-policy: no-referrer",
            "cross-origin-resource-policy: same-origin",
        ] {
            assert!(answer.head.contains(header), "{header} is not in {}", answer.head);
        }
        let policy = answer.body.split_once("Content-Security-Policy\" content=\"").unwrap().1;
        let policy = policy.split_once('"').unwrap().0;
        assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
        assert!(policy.contains("connect-src 'self'; ") && !policy.contains("unsafe"), "{policy}");
    }
    let head = ui.ask("HEAD", &format!("/{}/", ui.token), &format!("Host: localhost:{}\r\n", ui.port));
    assert_eq!((head.status, head.body.as_str()), (200, ""));
    let data: Value = serde_json::from_str(&ui.get(&format!("{page}/data")).body).unwrap();
    assert!(data.get("texts").and_then(Value::as_array).is_some_and(|texts| texts.len() > 20), "texts");
    assert_eq!(ui.get(&format!("/session/{}", "0".repeat(32))).status, 404, "a session that is not there");
    assert_eq!(files(&ui.folder.path().join("store")), before, "nothing was written");
}

#[test]
fn requests_of_others_are_refused() {
    let ui = Ui::new(&[]);
    let (port, index) = (&ui.port, format!("/{}/", ui.token));
    let own = format!("Host: 127.0.0.1:{port}\r\n");
    for (method, path, headers, status) in [
        ("GET", "/", own.clone(), 403),
        ("GET", "/0123456789abcdef0123456789abcdef/", own.clone(), 403),
        ("GET", &index, format!("Host: rebound.example:{port}\r\n"), 421),
        ("GET", &index, "Host: 127.0.0.1\r\n".to_owned(), 421),
        ("GET", &index, format!("{own}Origin: http://other.example\r\n"), 403),
        ("GET", &index, format!("{own}Origin: null\r\n"), 403),
        ("POST", &index, format!("{own}Content-Length: 0\r\n"), 405),
        ("PUT", &index, format!("{own}Content-Length: 0\r\n"), 405),
        ("GET", &index, format!("{own}Origin: http://127.0.0.1:{port}\r\n"), 200),
    ] {
        let answer = ui.ask(method, path, &headers);
        assert_eq!(answer.status, status, "{method} {path} {headers}: {}", answer.head);
        if status != 200 {
            assert!(answer.body.starts_with("acpdb ui: "), "{}", answer.body);
            assert!(!answer.body.contains(&ui.token) && !answer.head.contains(&ui.token), "{}", answer.head);
        }
    }
    // Two readers could read these in two ways, such as two values of a header that stands once in sound requests.
    for (path, headers) in [
        (index.clone(), format!("{own}Host: site.example\r\n")),
        (index.clone(), format!("Host: site.example\r\n{own}")),
        (index.clone(), format!("{own}{own}")),
        (index.clone(), format!("{own}Origin: http://127.0.0.1:{port}\r\nOrigin: http://site.example\r\n")),
        (index.clone(), format!("{own}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n")),
        (index.clone(), format!("{own}Content-Length: 0\r\nContent-Length: 1\r\n")),
        (index.clone(), format!("{own}Transfer-Encoding: chunked\r\nContent-Length: 4\r\n")),
        (index.clone(), format!("{own}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n")),
        (index.clone(), format!("{own}Content-Length: 4\r\n")),
        (index.clone(), format!("{own}Origin: http://site.example\r\n X: folded\r\n")),
        (format!("http://site.example{index}"), own.clone()),
        (format!("http://127.0.0.1:{port}{index}"), "Host: site.example\r\n".to_owned()),
    ] {
        let answer = ui.ask("GET", &path, &headers);
        assert_eq!(answer.status, 400, "{path} {headers}: {}", answer.head);
        // The bytes behind it were answered as a next request.
        let mut stream = TcpStream::connect(format!("127.0.0.1:{}", ui.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let next = format!("GET {index} HTTP/1.1\r\n{own}Connection: close\r\n\r\n");
        write!(stream, "GET {path} HTTP/1.1\r\n{headers}\r\n0\r\n\r\n{next}").unwrap();
        let mut all = Vec::new();
        // A connection that is reset is closed, too.
        let _ = stream.read_to_end(&mut all);
        let all = String::from_utf8_lossy(&all).to_lowercase();
        assert!(all.matches("http/1.1 ").count() <= 1 && !all.contains("http/1.1 200"), "{headers}: {all}");
    }
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let done = finish(program(ui.folder.path()).args(["ui", "--listen", listen]), "");
        assert_eq!(done.code, 2, "{done:?}");
    }
}

#[test]
fn a_page_hears_of_a_commit_by_another_process_and_gets_what_came() {
    let ui = Ui::new(&[]);
    let folder = ui.folder.path();
    let line = |n: usize, text: &str| {
        format!(
            r#"{{"type":"user","uuid":"u{n}","parentUuid":null,"sessionId":"late","cwd":"/w","timestamp":"2026-03-01T10:00:0{n}.000Z","message":{{"role":"user","content":"{text}"}}}}"#
        )
    };
    let file = folder.join("late.jsonl");
    std::fs::write(&file, format!("{}\n", line(1, "the first prompt"))).unwrap();
    let bundled = ui.page("claude-code");
    let host = format!("Host: 127.0.0.1:{}\r\n", ui.port);
    let mut changes = BufReader::new(ui.send("GET", &format!("/{}/changes", ui.token), &host));
    let mut next = |wanted: &str| loop {
        let mut line = String::new();
        assert!(changes.read_line(&mut line).unwrap() > 0, "the line ended before {wanted:?}");
        if let Some(rest) = line.strip_prefix(wanted) {
            return rest.trim().to_owned();
        }
    };
    next(": acpdb");
    import(folder, &file);
    let head: u64 = next("data: ").parse().unwrap();
    let page = ui.page("the first prompt");
    let unchanged = ui.get(&format!("{page}/data?after={head}"));
    assert_eq!((unchanged.status, unchanged.body.as_str()), (204, ""));
    assert_eq!(ui.get(&format!("{bundled}/data?after={}", head - 1)).status, 204, "another session grew");
    std::fs::write(&file, format!("{}\n{}\n", line(1, "the first prompt"), line(2, "and a second"))).unwrap();
    import(folder, &file);
    let newer: u64 = next("data: ").parse().unwrap();
    assert!(newer > head, "{newer} {head}");
    let grown = ui.get(&format!("{page}/data?after={head}"));
    assert_eq!(grown.status, 200);
    assert!(grown.body.contains("and a second"), "{}", grown.body);
}

/// 64 connections that said nothing, or half a request, kept all others waiting for ten seconds. Now the one that was idle for the longest time
/// makes room, and one with an answer under way never does.
#[test]
fn connections_that_ask_for_nothing_make_room() {
    let ui = Ui::new(&[]);
    let host = format!("Host: 127.0.0.1:{}\r\n", ui.port);
    let mut listening = ui.send("GET", &format!("/{}/changes", ui.token), &host);
    let mut byte = [0];
    listening.read_exact(&mut byte).unwrap();
    let mut idle: Vec<TcpStream> = (0..80)
        .map(|number| {
            let mut stream = TcpStream::connect(format!("127.0.0.1:{}", ui.port)).unwrap();
            if number % 2 == 1 {
                write!(stream, "GET /{}/data HTTP/1.1\r\n", ui.token).unwrap();
            }
            stream
        })
        .collect();
    assert_eq!(ui.get("/data").status, 200);
    let is_open = |stream: &mut TcpStream| {
        stream.set_nonblocking(true).unwrap();
        stream.read(&mut [0]).is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
    };
    let open: Vec<usize> =
        (0..).zip(&mut idle).filter_map(|(number, stream)| is_open(stream).then_some(number)).collect();
    assert!(open.contains(&79) && !open.contains(&0), "the oldest make room: {open:?}");
    assert!(
        is_open(&mut listening) || listening.read(&mut byte).is_ok_and(|count| count > 0),
        "an answer is under way"
    );
}

#[test]
fn secrets_are_left_out_if_that_is_asked_for() {
    let ui = Ui::new(&["--redact"]);
    let key = format!("sk-ant-api03-{}", "Ab3".repeat(31));
    let text = format!("use {key} please");
    let line = format!(
        r#"{{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"late","cwd":"/w","timestamp":"2026-03-01T10:00:00.000Z","message":{{"role":"user","content":"{text}"}}}}"#
    );
    let file = ui.folder.path().join("late.jsonl");
    std::fs::write(&file, format!("{line}\n")).unwrap();
    import(ui.folder.path(), &file);
    let page = ui.get(&ui.page("\"late\""));
    assert!(page.body.contains("please") && !page.body.contains(&key), "the key is out");
    assert!(!ui.get("/").body.contains(&key), "and out of the index");
}

/// A server that shows everything it has stays small. Pages of the program's file are not counted: a program that is built for
/// tests has several times as many.
#[cfg(target_os = "linux")]
#[test]
fn little_memory_is_taken_however_much_is_shown() {
    let ui = Ui::new(&[]);
    let page = ui.page("claude-code");
    for _ in 0..3 {
        assert_eq!(ui.get("/").status, 200);
        assert_eq!(ui.get(&page).status, 200);
    }
    let status = std::fs::read_to_string(format!("/proc/{}/status", ui.child.id())).unwrap();
    let own = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    let kib: u64 = own.trim().trim_end_matches(" kB").trim().parse().unwrap();
    assert!(kib > 100 && kib <= 20 * 1024, "{kib} KiB");
}

/// The index looked at titles alone: a word of a text, such as a function's name, was in "0 of 1 sessions".
#[test]
fn the_index_searches_all_texts() {
    let ui = Ui::new(&[]);
    let found = |words: &str| -> Value {
        let answer = ui.get(&format!("/search?q={words}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        serde_json::from_str(&answer.body).unwrap()
    };
    let all = found("clampLimit");
    let hits = all["sessions"][0]["hits"].as_array().unwrap();
    assert!(
        hits.len() > 3 && hits.iter().all(|hit| hit["line"].as_str().unwrap().contains("clampLimit")),
        "{all}"
    );
    let seen: Vec<&str> = hits.iter().map(|hit| hit["seen"].as_str().unwrap()).collect();
    assert!(seen.contains(&"gone"), "{seen:?}");
    let page = ui.get(&format!("/{}", all["sessions"][0]["file"].as_str().unwrap()));
    assert!(
        page.status == 200 && page.body.contains("\"index\":\"../\""),
        "each hit leads to its page, and that back"
    );
    assert_eq!(found("clampLimit%20no-such-word")["sessions"], Value::Array(Vec::new()));
    assert_eq!(found("")["sessions"], Value::Array(Vec::new()));
    // Words behind the sixteenth were left out, without a word.
    let many = "clampLimit+".repeat(63);
    assert!(!found(&format!("{many}clampLimit"))["sessions"].as_array().unwrap().is_empty());
    assert_eq!(found(&format!("{many}no-such-word"))["sessions"], Value::Array(Vec::new()));
    let refused = ui.get(&format!("/search?q={many}clampLimit+clampLimit"));
    assert!(refused.status == 400 && refused.body.contains("64 words"), "{refused:?}");
    let index = ui.get("/");
    assert!(index.body.contains("Search all texts"), "the index has a button for it");
}
