//! Bytes that go through the proxy as it is: untouched or served anew, for any state of the store and the provider.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use acpdb_engine::Store;
use acpdb_engine::event::Payload;

use super::super::access::{ClientAccess, Clients};
use super::super::prune::RecordingFolders;
use super::super::server::{ProxyOptions, Unrecorded, serve};

/// A provider that keeps the bytes that it gets, and answers with these pieces.
fn provider(pieces: Vec<Vec<u8>>) -> (SocketAddr, std::thread::JoinHandle<Vec<u8>>) {
    provider_of(b"the end of the body", pieces)
}

/// The same; a request ends with `end`.
fn provider_of(end: &'static [u8], pieces: Vec<Vec<u8>>) -> (SocketAddr, std::thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        let mut buffer = [0; 4096];
        while !got.ends_with(end) {
            let count = stream.read(&mut buffer).unwrap();
            got.extend_from_slice(buffer.get(..count).unwrap());
            if count == 0 {
                break;
            }
        }
        for piece in pieces {
            stream.write_all(&piece).unwrap();
            stream.flush().unwrap();
        }
        got
    });
    (address, thread)
}

fn proxy(folder: &std::path::Path, upstream: String) -> (Store, SocketAddr) {
    proxy_that(folder, upstream, None)
}

/// Why exchanges were not recorded, in all tests of this file.
static UNRECORDED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn note(why: &str) {
    UNRECORDED.lock().unwrap().push(why.to_owned());
}

fn proxy_that(
    folder: &std::path::Path,
    upstream: String,
    prune: Option<RecordingFolders>,
) -> (Store, SocketAddr) {
    let builder = Store::builder(folder.join("store")).registry(acpdb_hosts::registry());
    proxy_over(builder.any_file_system().open().unwrap(), upstream, prune)
}

fn proxy_over(store: Store, upstream: String, prune: Option<RecordingFolders>) -> (Store, SocketAddr) {
    let (tell, told) = std::sync::mpsc::channel();
    let options = ProxyOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        upstream,
        access: access(),
        session: None,
        prune,
        unrecorded: Unrecorded(std::sync::Arc::new(note)),
    };
    let own = store.clone();
    std::thread::spawn(move || {
        let _ = serve(own, &options, &mut |address| tell.send(address).unwrap());
    });
    (store, told.recv().unwrap())
}

fn access() -> ClientAccess {
    ClientAccess::new("own-token", Clients::OfThisUser).unwrap()
}

fn asked(address: SocketAddr, body: &[u8]) -> Vec<u8> {
    asked_at("/v1/messages?key=SECRET-IN-PATH", "X-Claude-Code-Session-Id: c1", address, body)
}

fn asked_at(path: &str, header: &str, address: SocketAddr, body: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nX-Api-Key: SECRET-KEY\r\n\
         X-Acpdb-Token: own-token\r\n{header}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

/// The record of the request; it comes behind the answer.
fn recorded(store: &Store) -> String {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        if let Ok(stream) = store.find_stream("c1") {
            let events =
                store.stream_events(stream.id, acpdb_engine::ids::Seq(1), acpdb_engine::ids::Seq::MAX);
            for event in events.unwrap().flatten() {
                if let Payload::HostRecorded(record) = event.event.payload {
                    return String::from_utf8(store.body(record.raw.unwrap().id(event.seq)).unwrap())
                        .unwrap();
                }
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    unreachable!("nothing was recorded");
}

/// Without the check, a page with a key of its own could have the proxy record any text, in a session that its path names.
#[test]
fn a_page_of_another_site_is_not_passed_on_and_nothing_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    // A provider that no request may reach.
    let provider = TcpListener::bind("127.0.0.1:0").unwrap();
    provider.set_nonblocking(true).unwrap();
    let (store, address) = proxy(folder.path(), format!("http://{}", provider.local_addr().unwrap()));
    let body = br#"{"model":"m","messages":[{"role":"user","content":"remember what I say"}]}"#;
    for header in ["Origin: https://site.example", "Origin: null\r\nContent-Type: text/plain"] {
        let answer = asked_at("/acp/shop-1/v1/messages?key=MINE", header, address, body);
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 403"), "{header}: {answer}");
    }
    for header in [
        "Host: site.example",
        "Origin: http://localhost:1\r\nOrigin: https://site.example",
        "X-Acpdb-Token: other",
        "Content-Length: 1",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "X-Long: a\r\n Origin: https://site.example",
    ] {
        let answer = asked_at("/acp/shop-1/v1/messages?key=MINE", header, address, body);
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{header}: {answer}");
    }
    // The bytes behind a refused request were read as a next one.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let twice = format!("GET / HTTP/1.1\r\nHost: {address}\r\nHost: {address}\r\n\r\n");
    stream.write_all(twice.repeat(2).as_bytes()).unwrap();
    let mut both = Vec::new();
    // A connection that is reset is closed, too.
    let _ = stream.read_to_end(&mut both);
    let both = String::from_utf8_lossy(&both).to_lowercase();
    assert!(both.contains("connection: close") && both.matches("http/1.1 400").count() == 1, "{both}");
    let elsewhere = asked_at("http://site.example/acp/shop-1/v1/messages", "X-Other: 1", address, body);
    assert!(elsewhere.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&elsewhere));
    assert!(provider.accept().is_err(), "nothing was sent on");
    assert!(store.find_stream("shop-1").is_err(), "nothing was recorded");
}

/// Every user of the machine could send requests through it, and words into sessions.
#[test]
fn a_request_without_the_token_is_not_passed_on_and_one_that_has_it_leaves_it_behind() {
    let folder = tempfile::tempdir().unwrap();
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_vec();
    let (upstream, provider) = provider(vec![answer]);
    let (store, address) = proxy(folder.path(), format!("http://{upstream}"));
    let asked = |path: &str, header: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\n{header}Content-Length: 19\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(b"the end of the body").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for (path, header) in [
        ("/v1/messages", ""),
        ("/v1/messages", "X-Acpdb-Token: own-toke\r\n"),
        ("/key/own-toke/v1/messages", ""),
        ("/acp/shop-1/v1/messages", ""),
    ] {
        let answer = asked(path, header);
        assert!(answer.starts_with("HTTP/1.1 401"), "{path} {header}: {answer}");
    }
    let answer = asked("/key/own-token/v1/messages?a=b", "X-Claude-Code-Session-Id: c1\r\n");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let got = String::from_utf8(provider.join().unwrap()).unwrap();
    assert!(got.starts_with("POST /v1/messages?a=b HTTP/1.1") && !got.contains("own-token"), "{got}");
    assert!(!recorded(&store).contains("own-token"));
}

#[test]
fn bytes_go_through_untouched_and_the_key_is_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let events: &[u8] = b"data: {\"usage\":{\"output_tokens\":5}}\n\n";
    let chunk = |bytes: &[u8]| [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat();
    let head =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
    let (upstream, provider) =
        provider(vec![head, chunk(events), chunk(b": \xff\x00 any bytes\n"), b"0\r\n\r\n".to_vec()]);
    let (store, address) = proxy(folder.path(), format!("http://{upstream}"));
    let body = b"{\"model\": \"m\",  \"messages\":[]} \x00\xff the end of the body";
    let answer = asked(address, body);
    let got = provider.join().unwrap();
    assert!(got.ends_with(body), "{}", String::from_utf8_lossy(&got));
    let got = String::from_utf8_lossy(&got).into_owned();
    assert!(
        got.contains("X-Api-Key: SECRET-KEY") && got.contains("POST /v1/messages?key=SECRET-IN-PATH"),
        "{got}"
    );
    assert!(got.contains(&format!("{upstream}")), "the provider is spoken to by its own name: {got}");
    assert!(answer.windows(events.len()).any(|piece| piece == events));
    assert!(answer.windows(4).any(|piece| piece == b": \xff\x00"));
    let kept = recorded(&store);
    assert!(kept.contains("\"status\":200") && kept.contains("\"output_tokens\":5"), "{kept}");
    store.close().unwrap();
    let mut todo = vec![folder.path().to_owned()];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
        } else {
            let bytes = std::fs::read(&path).unwrap();
            assert!(!bytes.windows(6).any(|piece| piece == b"SECRET"), "{}", path.display());
        }
    }
}

/// Codex 0.171.0 asks for packed answers, as Claude Code does: the records of such requests had no bill. A request without a
/// session is not recorded, and stays as it is.
#[test]
fn an_answer_that_is_recorded_is_asked_for_unpacked() {
    for (header, is_named) in [
        ("X-Claude-Code-Session-Id: c1", true),
        ("Session-Id: c1\r\nX-Codex-Window-Id: c1:0", true),
        ("X-Session-Id: c1\r\nX-Session-Affinity: c1", true),
        ("X-Any: c1", false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (upstream, provider) = provider(vec![b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}".to_vec()]);
        let (_store, address) = proxy(folder.path(), format!("http://{upstream}"));
        let header = format!("{header}\r\nAccept-Encoding: zstd,gzip");
        asked_at("/v1/responses", &header, address, b"the end of the body");
        let got = String::from_utf8(provider.join().unwrap()).unwrap();
        assert_eq!((got.contains("identity"), got.contains("zstd,gzip")), (is_named, !is_named), "{got}");
    }
}

/// A provider that answers an upgrade, and then sends each byte back, one higher.
fn upgrading(head: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut got = Vec::new();
        while !got.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            got.extend(byte);
        }
        let asked = String::from_utf8(got).unwrap();
        assert!(asked.contains("Sec-WebSocket-Key: a-key"), "{asked}");
        stream.write_all(head.as_bytes()).unwrap();
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            let said: Vec<u8> = buffer.iter().take(count).map(|byte| byte.wrapping_add(1)).collect();
            stream.write_all(&said).unwrap();
        }
    });
    address
}

#[test]
fn a_websocket_goes_through_and_is_counted() {
    const ASK: &str = "Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: a-key\r\nX-Claude-Code-Session-Id: c1";
    // One that would carry requests to be changed is refused.
    for (prune, path) in [(None, "/v1/responses"), (Some(RecordingFolders::default()), "/v1/realtime")] {
        let folder = tempfile::tempdir().unwrap();
        let upstream = upgrading(
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
        let (store, address) = proxy_that(folder.path(), format!("http://{upstream}"), prune);
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!(
            "GET {path}?key=SECRET HTTP/1.1\r\nHost: {address}\r\nX-Acpdb-Token: own-token\r\n{ASK}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            answer.starts_with("HTTP/1.1 101") && answer.to_lowercase().contains("upgrade: websocket"),
            "{answer}"
        );
        let long = vec![7; 100_000];
        for said in [&b"\x00\x81\xff"[..], &long] {
            let mut writer = stream.try_clone().unwrap();
            let sent = said.to_vec();
            let writing = std::thread::spawn(move || writer.write_all(&sent).unwrap());
            let mut got = vec![0; said.len()];
            stream.read_exact(&mut got).unwrap();
            writing.join().unwrap();
            assert!(got.iter().zip(said).all(|(got, said)| *got == said.wrapping_add(1)));
        }
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, b"");
        let kept: serde_json::Value = serde_json::from_str(&recorded(&store)).unwrap();
        assert_eq!(kept["status"], 101);
        let told = serde_json::json!({"protocol": "websocket", "bytes_up": 100_003, "bytes_down": 100_003, "error": null});
        assert_eq!((&kept["tunnel"], &kept["path"]), (&told, &serde_json::json!(path)));
    }
}

/// Each upgrade was refused, of whatever protocol, and sockets of requests that would not be changed; and the refusal did not say what is
/// required.
#[test]
fn only_a_websocket_that_would_carry_requests_to_be_changed_is_refused() {
    const NAMED: &str = "X-Claude-Code-Session-Id: c1";
    for (upgrade, path, header, is_refused) in [
        ("Upgrade: websocket", "/v1/responses", NAMED, true),
        ("Upgrade: other/1, WebSocket", "/acp/c1/v1/responses?a=b", "X-Any: 1", true),
        ("Upgrade: other/1\r\nUpgrade: websocket", "/v1/messages", NAMED, true),
        ("Upgrade: h2c", "/v1/responses", NAMED, false),
        ("Upgrade: websockets", "/v1/responses", NAMED, false),
        ("Upgrade: websocket", "/v1/responses", "X-Any: 1", false),
        ("Upgrade: websocket", "/v1/realtime", NAMED, false),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let upstream =
            upgrading("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: any\r\n\r\n");
        let prune = Some(RecordingFolders::default());
        let (_store, address) = proxy_that(folder.path(), format!("http://{upstream}"), prune);
        let mut stream = TcpStream::connect(address).unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nX-Acpdb-Token: own-token\r\n{header}\r\nSec-WebSocket-Key: a-key\r\n\
             Connection: keep-alive\r\nConnection: Upgrade\r\n{upgrade}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            answer.extend(byte);
        }
        let answer = String::from_utf8(answer).unwrap().to_lowercase();
        assert_eq!(answer.starts_with("http/1.1 426"), is_refused, "{head}{answer}");
        assert_eq!(answer.starts_with("http/1.1 101"), !is_refused, "{head}{answer}");
        let says_what =
            answer.contains("\r\nupgrade: http/1.1\r\n") && answer.contains("\r\nconnection: upgrade\r\n");
        assert_eq!(says_what, is_refused, "{answer}");
    }
}

#[test]
fn a_provider_that_takes_no_upgrade_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let upstream =
        upgrading("HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno");
    let (store, address) = proxy(folder.path(), format!("http://{upstream}"));
    let header = "Upgrade: websocket\r\nSec-WebSocket-Key: a-key\r\nConnection: upgrade\r\nX-Claude-Code-Session-Id: c1";
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(format!("GET /v1/responses HTTP/1.1\r\nHost: {address}\r\nX-Acpdb-Token: own-token\r\n{header}\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = vec![0; 400];
    let count = stream.read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(answer.get(..count).unwrap()).into_owned();
    assert!(answer.starts_with("HTTP/1.1 426"), "{answer}");
    drop(stream);
    let kept: serde_json::Value = serde_json::from_str(&recorded(&store)).unwrap();
    assert_eq!((&kept["status"], &kept["tunnel"]), (&serde_json::json!(426), &serde_json::Value::Null));
}

#[test]
fn a_provider_that_breaks_off_is_recorded_as_that() {
    let folder = tempfile::tempdir().unwrap();
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf".to_vec();
    let (upstream, provider) = provider(vec![head]);
    let (store, address) = proxy(folder.path(), format!("http://{upstream}"));
    let answer = asked(address, b"{} the end of the body");
    provider.join().unwrap();
    assert!(answer.ends_with(b"half"), "{}", String::from_utf8_lossy(&answer));
    let kept = recorded(&store);
    assert!(!kept.contains("\"error\":null"), "{kept}");
}

#[test]
fn a_session_that_only_its_path_names_is_recorded_and_pruned() {
    let long = "a line that is long enough to be worth hiding, and another one of them\n".repeat(8);
    let call = |id: &str| {
        serde_json::json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": id, "type": "function", "function": {"name": "Read", "arguments": "{\"file_path\":\"/p/a.rs\"}"}}]})
    };
    let result = |id: &str| serde_json::json!({"role": "tool", "tool_call_id": id, "content": long});
    let body = serde_json::json!({"model": "gpt-lab", "tools": [{"type": "function", "function": {"name": "Read"}}],
        "messages": [{"role": "user", "content": "Look"}, call("c1"), result("c1"), call("c2"), result("c2")]});
    let body = body.to_string();
    let said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Do\"}}]}\n\n\
                data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ne.\"},\"finish_reason\":\"stop\"}]}\n\n";
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    let all = Some(RecordingFolders::default());
    // A client that offers another protocol beside a whole request takes the answer in this one, too.
    let offer = "Accept-Encoding: gzip\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk";
    for (prune, shown, header) in
        [(None, 2, "Accept-Encoding: gzip"), (all.clone(), 1, "Accept-Encoding: gzip"), (all, 1, offer)]
    {
        let folder = tempfile::tempdir().unwrap();
        let (upstream, provider) =
            provider_of(b"}]}", vec![head.as_bytes().to_vec(), said.as_bytes().to_vec()]);
        let is_pruned = prune.is_some();
        let (store, address) = proxy_that(folder.path(), format!("http://{upstream}"), prune);
        let policy =
            acpdb_engine::fold::Policy::from_json(r#"{"preset": "acp", "serve.mode": "eager"}"#).unwrap();
        let _ = store.set_policy(None, &policy, None).unwrap();
        let path = "/acp/c1/v1/chat/completions";
        let answer = asked_at(path, header, address, body.as_bytes());
        assert!(String::from_utf8_lossy(&answer).contains(said), "{}", String::from_utf8_lossy(&answer));
        let got = String::from_utf8(provider.join().unwrap()).unwrap();
        assert!(got.starts_with("POST /v1/chat/completions HTTP/1.1"), "{got}");
        assert!(got.contains("identity") && !got.contains("gzip"), "an answer that is packed cannot be read");
        assert_eq!(got.matches("long enough").count(), shown * 8, "{got}");
        assert_eq!(got.ends_with(&body), !is_pruned);
        let kept = recorded(&store);
        assert!(kept.contains("\"conversation\":{\"events\":"), "{kept}");
        let view = store.view(store.find_stream("c1").unwrap().id).unwrap();
        let texts = view.current().into_iter().filter(|item| item.call.is_none());
        assert_eq!(texts.count(), 2, "the prompt and the answer");
    }
}

/// The fault of a store while requests go through.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    None,
    Damaged,
    Gone,
    Locked,
}

fn files(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

/// For any store and request, with and without pruning, the provider gets the bytes, and the program its answer.
#[test]
fn what_cannot_be_understood_or_recorded_goes_through_as_it_is() {
    const END: &[u8] = b"the end of the body";
    let chat = |begin: &[u8], count: usize| {
        let mut body = begin.to_vec();
        body.resize(count, b'x');
        body.extend_from_slice(END);
        body
    };
    let plain = chat(b"{\"messages\":[], ", 20);
    // A request that is understood, so that the store is asked.
    let whole = br#"{"tools":[{"type":"function","function":{"name":"Read"}}],"messages":[{"role":"user","content":"Look"}]}"#.to_vec();
    let packed = chat(b"\x1f\x8b\x08\x00", 300);
    let long = chat(b"{\"messages\":[], ", (64 << 20) + 1);
    let path = "/acp/c1/v1/chat/completions";
    for (fault, header, body, status, kept) in [
        (Fault::None, "X-Other: 1", &plain, "200 OK", Some("\"status\":200")),
        (Fault::None, "X-Other: 1", &plain, "529 Overloaded", Some("\"status\":529")),
        (Fault::None, "Content-Encoding: gzip", &packed, "200 OK", Some("\"request_bytes\":319")),
        (Fault::None, "X-Other: 1", &long, "200 OK", Some("\"request_blake3\":null")),
        (Fault::None, "Upgrade: websocket", &plain, "426 Upgrade Required", Some("\"status\":426")),
        (Fault::Damaged, "X-Other: 1", &whole, "200 OK", None),
        (Fault::Gone, "X-Other: 1", &whole, "200 OK", None),
        (Fault::Locked, "X-Other: 1", &whole, "200 OK", None),
    ] {
        for prune in [None, Some(RecordingFolders::default())] {
            let told = format!("{fault:?} {header} {status}, pruning: {}", prune.is_some());
            let folder = tempfile::tempdir().unwrap();
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 4\r\n\r\nsaid");
            let end = if fault == Fault::None { END } else { b"}]}" };
            let (upstream, provider) = provider_of(end, vec![answer.into_bytes()]);
            let (store, address) = proxy_that(folder.path(), format!("http://{upstream}"), prune);
            let root = folder.path().join("store");
            let mut held = Vec::new();
            match fault {
                Fault::None => {}
                Fault::Gone => std::fs::remove_dir_all(&root).unwrap(),
                Fault::Damaged => {
                    for path in files(&root) {
                        let mut bytes = std::fs::read(&path).unwrap();
                        bytes.iter_mut().step_by(7).for_each(|byte| *byte ^= 0x40);
                        std::fs::write(path, bytes).unwrap();
                    }
                }
                Fault::Locked => {
                    for path in files(&root) {
                        let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
                        let _ = file.try_lock();
                        held.push(file);
                    }
                }
            }
            let answer = asked_at(path, header, address, body);
            let answer = String::from_utf8_lossy(&answer).into_owned();
            let begin = format!("HTTP/1.1 {}", status.split(' ').next().unwrap());
            assert!(answer.starts_with(&begin) && answer.ends_with("said"), "{told}: {answer}");
            let got = provider.join().unwrap();
            assert!(got.ends_with(body), "{told}: the body is another one");
            if fault == Fault::Locked {
                assert!(store.find_stream("c1").is_err(), "{told}: something was recorded");
            }
            drop(held);
            if let Some(kept) = kept {
                let record = recorded(&store);
                assert!(record.contains(kept), "{told}: {record}");
            }
        }
    }
}

/// A proxy whose store took no more events went on for days without a word: the requests are recorded nowhere.
#[test]
fn an_exchange_that_is_not_recorded_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nsaid".to_vec();
    let (upstream, provider) = provider(vec![answer]);
    let builder = || Store::builder(folder.path().join("store")).any_file_system();
    builder().open().unwrap().close().unwrap();
    let (_, address) = proxy_over(builder().read_only().open().unwrap(), format!("http://{upstream}"), None);
    let got = asked_at("/acp/untold/v1/messages", "X-Other: 1", address, b"the end of the body");
    assert!(got.ends_with(b"said"));
    drop(provider.join().unwrap());
    // The exchange is recorded behind its answer.
    let told = || UNRECORDED.lock().unwrap().iter().any(|why| why.starts_with("session untold: "));
    let end = Instant::now() + Duration::from_secs(10);
    while !told() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(told());
}

#[test]
fn a_port_that_is_taken_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::builder(folder.path().join("store")).any_file_system().open().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = taken.local_addr().unwrap();
    let options = ProxyOptions {
        listen,
        upstream: "http://127.0.0.1:1".to_owned(),
        access: access(),
        session: None,
        prune: None,
        unrecorded: Unrecorded(std::sync::Arc::new(note)),
    };
    let error = serve(store, &options, &mut |_| ()).unwrap_err().to_string();
    assert!(error.contains(&listen.to_string()), "{error}");
}

#[test]
fn a_provider_that_is_not_there_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (store, address) = proxy(folder.path(), format!("http://{gone}"));
    let answer = String::from_utf8(asked(address, b"{}")).unwrap();
    assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("cannot be reached"), "{answer}");
    assert!(recorded(&store).contains("\"status\":0"));
}
