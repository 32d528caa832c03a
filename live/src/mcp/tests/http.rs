//! The protocol over HTTP: the checks of `@modelcontextprotocol/conformance`, without that package, and requests that are refused.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use serde_json::{Value, json};

use super::super::http::{McpHttpOptions, serve_http};
use super::super::server::ServerError;
use super::super::tools::Tools;
use crate::proxy::access::{ClientAccess, Clients};

fn serve(folder: &std::path::Path) -> SocketAddr {
    let store = Store::builder(folder.join("store")).any_file_system().open().unwrap();
    let entries = vec![Entry::prompt("p1"), Entry::message("p1", Role::User, "Where is port 4142 opened?")];
    let _ = store.append(&StreamInfo::session("host", "s1"), entries).unwrap();
    let tools = Tools::new(store, None, None);
    let options = McpHttpOptions {
        listen: "127.0.0.1:0".parse().unwrap(),
        access: ClientAccess::new(TOKEN, Clients::OfThisUser).unwrap(),
    };
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let _ = serve_http(&tools, &options, &mut |address| tell.send(address).unwrap());
    });
    told.recv().unwrap()
}

const TOKEN: &str = "secret";

/// Status and body of an answer. A line of `headers` that names the host takes the place of the usual one; so does one with a token.
fn sent(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
    let host = if headers.contains("Host:") { String::new() } else { format!("Host: {address}\r\n") };
    let token = if headers.contains("Authorization:") || path.starts_with("/key/") {
        String::new()
    } else {
        format!("Authorization: Bearer {TOKEN}\r\n")
    };
    let head = format!(
        "{method} {path} HTTP/1.1\r\n{host}{token}{headers}Content-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

fn initialize(version: &str) -> String {
    let client = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}).to_string()
}

fn asked(address: SocketAddr, method: &str, params: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string();
    let (status, body) = sent(address, "POST", "/mcp", "MCP-Protocol-Version: 2025-11-25\r\n", &body);
    assert_eq!(status, 200, "{method}: {body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&answer["id"], &answer["jsonrpc"]), (&json!(7), &json!("2.0")), "{answer}");
    answer
}

#[test]
fn a_client_is_greeted_in_its_own_version() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(folder.path());
    for version in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let (status, body) = sent(address, "POST", "/mcp", "", &initialize(version));
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(status, 200, "{body}");
        assert_eq!(answer["result"]["protocolVersion"], version);
        assert_eq!(answer["result"]["serverInfo"]["name"], "acpdb");
        let offered: Vec<&String> = answer["result"]["capabilities"].as_object().unwrap().keys().collect();
        assert_eq!(offered, ["prompts", "resources", "tools"], "nothing is offered that is not there");
    }
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(sent(address, "POST", "/mcp", "", &note).0, 202);
}

#[test]
fn all_that_is_offered_has_the_members_that_clients_read() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(folder.path());
    assert_eq!(asked(address, "ping", &json!({}))["result"], json!({}));
    for (list, name, members) in [
        ("tools/list", "tools", &["name", "description", "inputSchema"][..]),
        ("resources/list", "resources", &["uri", "name", "description", "mimeType"]),
        (
            "resources/templates/list",
            "resourceTemplates",
            &["uriTemplate", "name", "description", "mimeType"],
        ),
        ("prompts/list", "prompts", &["name", "description"]),
    ] {
        let rows = asked(address, list, &json!({}));
        let rows = rows["result"][name].as_array().unwrap();
        assert!(!rows.is_empty(), "{list}");
        for row in rows {
            assert!(members.iter().all(|member| row[member] != Value::Null), "{list}: {row}");
        }
    }
    let called = asked(address, "tools/call", &json!({"name": "recall", "arguments": {"query": "4142"}}));
    assert_eq!(called["result"]["content"][0]["type"], "text", "{called}");
    let item = called["result"]["structuredContent"]["items"][0]["item"].as_str().unwrap();
    for uri in ["acpdb://session/s1".to_owned(), format!("acpdb://item/{}", item.trim_start_matches('#'))] {
        let read = asked(address, "resources/read", &json!({"uri": uri}));
        let content = &read["result"]["contents"][0];
        assert_eq!(content["uri"], uri);
        assert!(content["mimeType"].is_string(), "{read}");
        assert!(content["text"].as_str().unwrap().contains("4142"), "{read}");
    }
    let prompt = asked(address, "prompts/get", &json!({"name": "tidy"}));
    let message = &prompt["result"]["messages"][0];
    assert_eq!((&message["role"], &message["content"]["type"]), (&json!("user"), &json!("text")));
}

#[test]
fn what_cannot_be_done_is_said_where_it_belongs() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(folder.path());
    // The model can mend its own mistake, so that is a result.
    let wrong = asked(address, "tools/call", &json!({"name": "explain", "arguments": {}}));
    assert_eq!(wrong["result"]["isError"], true, "{wrong}");
    assert!(wrong["result"]["content"][0]["text"].is_string(), "{wrong}");
    for (method, params) in [
        ("tools/call", json!({"name": "no_such_tool"})),
        ("resources/read", json!({"uri": "test://none"})),
        ("prompts/get", json!({"name": "none"})),
        ("logging/setLevel", json!({"level": "info"})),
    ] {
        let answer = asked(address, method, &params);
        assert!(answer["error"]["code"].as_i64().unwrap() < 0, "{answer}");
    }
}

/// A query with half a character was answered with 415, although it is mended on standard input.
#[test]
fn half_a_character_costs_itself() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(folder.path());
    let body = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"recall","arguments":{"query":"4142 \ud83d"}}}"#;
    let (status, answer) = sent(address, "POST", "/mcp", "MCP-Protocol-Version: 2025-11-25\r\n", body);
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("\"id\":7"), "{answer}");
}

#[test]
fn pages_of_others_and_other_places_get_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(folder.path());
    let port = address.port();
    let begin = initialize("2025-11-25");
    for (method, path, headers, want) in [
        ("POST", "/mcp", String::new(), 200),
        ("POST", "/mcp/", String::new(), 200),
        ("POST", "/mcp", format!("Host: localhost:{port}\r\nOrigin: http://localhost:{port}\r\n"), 200),
        ("POST", "/mcp", format!("Origin: http://127.0.0.1:{port}\r\n"), 200),
        ("POST", "/mcp", format!("Host: evil.example.com:{port}\r\n"), 403),
        ("POST", "/mcp", "Origin: http://evil.example.com\r\n".to_owned(), 403),
        ("POST", "/mcp", "Origin: http://localhost:1\r\n".to_owned(), 403),
        ("POST", "/mcp", "Origin: null\r\n".to_owned(), 403),
        // Two values of a header that stands once in sound requests, and two servers that are named.
        ("POST", "/mcp", format!("Host: {address}\r\nHost: site.example\r\n"), 400),
        ("POST", "/mcp", format!("Origin: http://localhost:{port}\r\nOrigin: http://site.example\r\n"), 400),
        ("POST", "/mcp", "Authorization: Bearer secret\r\nAuthorization: Bearer other\r\n".to_owned(), 400),
        ("POST", "/mcp", "Content-Length: 1\r\n".to_owned(), 400),
        ("POST", "/mcp", "X-Long: a\r\n Origin: http://site.example\r\n".to_owned(), 400),
        ("POST", "http://site.example/mcp", String::new(), 400),
        ("POST", "/", String::new(), 404),
        ("GET", "/mcp", String::new(), 405),
        ("DELETE", "/mcp", String::new(), 405),
        ("PUT", "/mcp", String::new(), 405),
    ] {
        let (status, body) = sent(address, method, path, &headers, &begin);
        assert_eq!(status, want, "{method} {path} {headers}: {body}");
    }
    // The bytes behind a refused request were read as a next one.
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(std::time::Duration::from_secs(20))).unwrap();
    let twice = format!("GET /mcp HTTP/1.1\r\nHost: {address}\r\nHost: {address}\r\n\r\n");
    stream.write_all(twice.repeat(2).as_bytes()).unwrap();
    let mut both = Vec::new();
    // A connection that is reset is closed, too.
    let _ = stream.read_to_end(&mut both);
    let both = String::from_utf8_lossy(&both).to_lowercase();
    assert!(both.contains("connection: close") && both.matches("http/1.1 400").count() == 1, "{both}");
}

#[test]
fn a_token_is_asked_for_and_others_are_not_let_in_without() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(folder.path());
    let begin = initialize("2025-11-25");
    for (path, header, want) in [
        ("/mcp", "Authorization: \r\n", 401),
        ("/mcp", "Authorization: Bearer secre\r\n", 401),
        ("/mcp", "Authorization: Bearer secrets\r\n", 401),
        ("/mcp", "Authorization: secret\r\n", 401),
        ("/mcp", "Authorization: Bearer secret\r\n", 200),
        ("/key/secre/mcp", "", 401),
        ("/key/secret/mcp", "", 200),
        ("/key/secret/other", "", 404),
        ("/key/secret", "", 401),
    ] {
        assert_eq!(sent(address, "POST", path, header, &begin).0, want, "{path} {header}");
    }
    let other = tempfile::tempdir().unwrap();
    let store = Store::builder(other.path().join("store")).any_file_system().open().unwrap();
    let access = ClientAccess::new(TOKEN, Clients::OfThisUser).unwrap();
    let options = McpHttpOptions { listen: "0.0.0.0:0".parse().unwrap(), access };
    let refused = serve_http(&Tools::new(store, None, None), &options, &mut |_| unreachable!());
    assert!(matches!(refused, Err(ServerError::Exposed(_))), "{refused:?}");
}

/// A body without an end was kept in memory as it came.
#[test]
fn a_body_without_an_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let address = serve(folder.path());
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /key/{TOKEN}/mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let piece = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    // The server gives up long before all is sent.
    let sent = (0..1 << 12).take_while(|_| stream.write_all(&piece).is_ok()).count();
    assert!(sent < 1 << 10, "{sent} MiB were taken");
}
