//! `acpdb run`: programs behind a proxy that lives as long as they do. Providers are scripted, on this machine.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::Receiver;

use tempfile::TempDir;

use crate::done::{Done, finish};

/// A home, a project, and a folder of programs.
struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Self {
        let place = Self { folder: TempDir::new().unwrap() };
        for name in ["home", "project", "bin"] {
            std::fs::create_dir_all(place.path(name)).unwrap();
        }
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acpdb"));
        command.args(args).current_dir(self.path("project")).env_clear();
        let path = format!("{}:/usr/bin:/bin", self.path("bin").display());
        command.env("HOME", self.path("home")).env("PATH", path).env("ACPDB_PATH", self.path("store"));
        command
    }

    fn run(&self, args: &[&str]) -> Done {
        finish(&mut self.command(args), "")
    }

    /// A program of this name that tells its variables and words.
    fn program(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The store's events of a session, as JSON lines.
    fn log(&self) -> String {
        self.run(&["log", "--json"]).out
    }

    /// All files below the folder but those of the store.
    fn files(&self) -> Vec<String> {
        let (mut files, mut todo) = (Vec::new(), vec![self.folder.path().to_owned()]);
        while let Some(path) = todo.pop() {
            if path == self.path("store") {
                continue;
            }
            files.push(path.display().to_string());
            if path.is_dir() {
                todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            }
        }
        files.sort();
        files
    }
}

/// A program that is run, told its address, and waits for the end of its standard input.
struct Running {
    child: Child,
    address: String,
}

impl Running {
    fn new(command: &mut Command) -> Self {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut address).unwrap();
        Self { child, address: address.trim().to_owned() }
    }

    /// An answer of the proxy to a request.
    fn ask(&self, path: &str, body: &str) -> Vec<u8> {
        self.ask_with("POST", path, "", "close", body)
    }

    /// The same, with another method, more headers and another wish for the connection.
    fn ask_with(&self, method: &str, path: &str, more: &str, connection: &str, body: &str) -> Vec<u8> {
        try_ask(&self.address, method, path, more, connection, body).unwrap()
    }

    fn end(mut self) -> Done {
        drop(self.child.stdin.take());
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        let code = self.child.wait().unwrap().code().unwrap();
        Done { out: self.address, err, code }
    }
}

/// An answer and the request that the provider got, asked for until both are there, as hosts do. A port that was let go may be another process's for a while.
fn ask_until(address: &str, path: &str, body: &str, got: &Receiver<String>) -> (Vec<u8>, String) {
    loop {
        let answer = try_ask(address, "POST", path, "", "close", body);
        if let (Ok(answer), Ok(request)) = (answer, got.try_recv()) {
            return (answer, request);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

fn try_ask(
    address: &str,
    method: &str,
    path: &str,
    more: &str,
    connection: &str,
    body: &str,
) -> std::io::Result<Vec<u8>> {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, key) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host)?;
    let head = format!(
        "{method} /{key}{path} HTTP/1.1\r\nHost: {host}\r\nX-Claude-Code-Session-Id: c1\r\nContent-Length: {}\r\n{more}Connection: {connection}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    let mut answer = Vec::new();
    // An end that asked for another protocol keeps the connection.
    if connection != "close" {
        let mut lines = BufReader::new(&stream);
        lines.read_until(b'\n', &mut answer)?;
        return Ok(answer);
    }
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}

/// Tells its address and waits.
const WAITING: [&str; 3] = ["sh", "-c", "echo \"$ANTHROPIC_BASE_URL\"; cat > /dev/null; exit 5"];

/// A provider that answers each request with these bytes, and its address. It keeps the requests that it got.
fn provider(answer: Vec<u8>) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut got, mut buffer) = (String::new(), [0; 4096]);
            while !got.contains("END") {
                let count = stream.read(&mut buffer).unwrap();
                got.push_str(&String::from_utf8_lossy(&buffer[..count]));
                if count == 0 {
                    break;
                }
            }
            // The test may have all that it wants.
            let _ = tell.send(got);
            let _ = stream.write_all(&answer);
        }
    });
    (address, told)
}

fn short() -> Vec<u8> {
    let body = "{\"usage\":{\"output_tokens\":5},\"x\":\"ABCDE\"}";
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
        .into_bytes()
}

const BODY: &str = "{\"model\": \"m\",  \"messages\":[]} END";

#[test]
fn it_ends_as_its_program_does() {
    let place = Place::new();
    std::fs::write(place.path("bin").join("text"), "no program").unwrap();
    for (words, code) in [
        (&["true"][..], 0),
        (&["sh", "-c", "exit 3"], 3),
        (&["sh", "-c", "exit 255"], 255),
        (&["sh", "-c", "kill -9 $$"], 137),
        (&["sh", "-c", "kill -15 $$"], 143),
        (&["is-not-there"], 127),
        (&["text"], 126),
        (&["/"], 126),
        // A child of the program's own outlives it, and is not waited for.
        (&["sh", "-c", "(exec sleep 2) > /dev/null 2>&1 & exit 4"], 4),
    ] {
        let done = place.run(&[&["run", "--"], words].concat());
        assert_eq!((done.code, &*done.out), (code, ""), "{words:?}: {done:?}");
        let is_told = code == 126 || code == 127;
        assert_eq!(done.err.contains("error: cannot start"), is_told, "{words:?}: {done:?}");
    }
    assert_eq!(place.run(&["run"]).code, 2);
}

#[test]
fn a_program_gets_its_own_variables_and_its_words_and_standard_input() {
    let place = Place::new();
    let tells = "env | grep -o '^[A-Z_]*_\\(BASE_URL\\|API_BASE\\|TOOL_SEARCH\\)=.*' | sort; for word; do echo \"<$word>\"; done; cat";
    for name in ["claude", "codex", "gemini", "opencode", "copilot", "other"] {
        place.program(name, tells);
    }
    let port = |text: &str| {
        let text = text.split("127.0.0.1:").map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()));
        let text = text.collect::<Vec<_>>().join("HERE");
        let mut parts = text.split("/key/");
        let first = parts.next().unwrap().to_owned();
        parts.fold(first, |told, part| told + "/key/TOKEN" + &part[32..])
    };
    for (name, want) in [
        ("claude", "ANTHROPIC_BASE_URL=http://HERE/key/TOKEN\nENABLE_TOOL_SEARCH=true\n<--db>\n<a b>\nsaid"),
        (
            "codex",
            "OPENAI_API_BASE=http://HERE/key/TOKEN/v1\nOPENAI_BASE_URL=http://HERE/key/TOKEN/v1\n<-c>\n<openai_base_url=\"http://HERE/key/TOKEN/v1\">\n<--db>\n<a b>\nsaid",
        ),
        ("gemini", "GOOGLE_GEMINI_BASE_URL=http://HERE/key/TOKEN\n<--db>\n<a b>\nsaid"),
        // Its packages take the version as a part of the address.
        (
            "opencode",
            "ANTHROPIC_BASE_URL=http://HERE/key/TOKEN/v1\nOPENAI_API_BASE=http://HERE/key/TOKEN/v1\nOPENAI_BASE_URL=http://HERE/key/TOKEN/v1\n<--db>\n<a b>\nsaid",
        ),
        // Its own service has no address that could be changed.
        ("copilot", "<--db>\n<a b>\nsaid"),
        (
            "other",
            "ANTHROPIC_BASE_URL=http://HERE/key/TOKEN\nGOOGLE_GEMINI_BASE_URL=http://HERE/key/TOKEN\nOPENAI_API_BASE=http://HERE/key/TOKEN/v1\nOPENAI_BASE_URL=http://HERE/key/TOKEN/v1\n<--db>\n<a b>\nsaid",
        ),
    ] {
        let done = finish(&mut place.command(&["run", "--", name, "--db", "a b"]), "said");
        assert_eq!((done.code, port(&done.out)), (0, want.to_owned()), "{name}: {done:?}");
    }
    let named = ["run", "--upstream", "http://127.0.0.1:1", "--variable", "MY_BASE_URL", "other"];
    let done = place.run(&named);
    assert_eq!(port(&done.out), "MY_BASE_URL=http://HERE/key/TOKEN\n", "{done:?}");
    let done = finish(
        place.command(&["run", "--", "copilot"]).env("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:1/v1"),
        "",
    );
    assert_eq!(port(&done.out), "COPILOT_PROVIDER_BASE_URL=http://HERE/key/TOKEN/v1\n", "{done:?}");
    let done = place.run(&["run", "--mode", "prune", "opencode"]);
    assert!(done.err.contains("its plug-in does: acpdb attach opencode --mode prune"), "{done:?}");
    // In mode suggest and prune Claude Code gets hooks by words of its own, unless it has settings by words already.
    let done = place.run(&["run", "--mode", "suggest", "claude"]);
    assert!(
        done.out.contains("<--settings>\n<{") && done.out.contains("hook claude-code --mode suggest"),
        "{done:?}"
    );
    let done = place.run(&["run", "--mode", "suggest", "claude", "--settings", "{}"]);
    assert!(!done.out.contains("hook claude-code") && done.err.contains("--settings of yours"), "{done:?}");
    assert_eq!(place.run(&["attach", "claude"]).code, 0);
    let done = place.run(&["run", "--mode", "prune", "claude"]);
    assert!(!done.out.contains("hook claude-code"), "attached hooks run by themselves: {done:?}");
}

#[test]
fn requests_go_through_byte_for_byte_and_are_recorded_and_nothing_is_left() {
    let place = Place::new();
    let (upstream, got) = provider(short());
    let before = place.files();
    let mut command = place.command(&[&["run", "--"], &WAITING[..]].concat());
    let running = Running::new(command.env("ANTHROPIC_BASE_URL", &upstream));
    let answer = running.ask("/v1/messages?beta=true", BODY);
    assert!(String::from_utf8(answer).unwrap().ends_with("\"ABCDE\"}"));
    let got = got.recv().unwrap();
    assert!(got.starts_with("POST /v1/messages?beta=true HTTP/1.1") && got.ends_with(BODY), "{got}");
    // Without the token no request is passed on.
    let stranger = Running { address: running.address.replace("/key/", "/key/0"), ..running };
    assert!(String::from_utf8(stranger.ask("/v1/messages", BODY)).unwrap().starts_with("HTTP/1.1 401"));
    let done = stranger.end();
    assert_eq!((done.code, &*done.err), (5, ""), "{done:?}");
    assert!(place.log().contains("proxy/request"), "{}", place.log());
    assert_eq!(place.files(), before);
}

/// Codex speaks over a websocket first, in which no request could be changed: nothing was pruned.
#[test]
fn a_websocket_is_refused_where_requests_are_to_be_changed() {
    for (mode, path, status) in [
        ("record", "/v1/responses", "HTTP/1.1 200"),
        ("prune", "/v1/responses", "HTTP/1.1 426"),
        ("prune", "/v1/realtime", "HTTP/1.1 200"),
    ] {
        let place = Place::new();
        let (upstream, _got) = provider(short());
        let mut command = place.command(&[&["run", "--mode", mode, "--"], &WAITING[..]].concat());
        let running = Running::new(command.env("ANTHROPIC_BASE_URL", &upstream));
        let answer = running.ask_with("GET", path, "Upgrade: websocket\r\n", "upgrade", "END");
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with(status), "{mode} {path}: {answer}");
        running.end();
    }
}

/// A program whose acpdb was killed had no provider any more, and its task failed.
#[test]
fn a_program_goes_on_if_acpdb_is_killed() {
    let place = Place::new();
    let (upstream, got) = provider(short());
    // The program leaves standard error to acpdb: it is at its end when the last process of that is.
    let words = "echo \"$ANTHROPIC_BASE_URL\"; exec 2> /dev/null; cat > /dev/null";
    let mut command = place.command(&["run", "--", "sh", "-c", words]);
    let mut running = Running::new(command.env("ANTHROPIC_BASE_URL", &upstream));
    // One request was answered: from then on there is another process that goes on.
    running.ask("/v1/messages", BODY);
    got.recv().unwrap();
    let held = running.child.stdin.take();
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let mut err = BufReader::new(running.child.stderr.take().unwrap());
    let mut told = String::new();
    err.read_line(&mut told).unwrap();
    assert!(told.contains("acpdb run was killed"), "{told}");
    let (answer, request) = ask_until(&running.address, "/v1/messages", BODY, &got);
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("\"ABCDE\"}"), "{answer}");
    assert!(request.ends_with(BODY));
    drop(held);
    err.read_to_string(&mut told).unwrap();
    assert_eq!(told.matches("acpdb run was killed").count(), 1, "{told}");
}

/// A run has a port for each provider. One that another process holds kept the successor from listening at any of them.
#[test]
fn a_port_that_is_taken_keeps_no_other_from_its_program() {
    let place = Place::new();
    let (upstream, got) = provider(short());
    // Both are free once they are let go; the second is held while the successor begins.
    let [free, held] = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let port = |listener: &TcpListener| listener.local_addr().unwrap().port();
    let ports = [port(&held), port(&free)];
    let mut command = place.command(&["run", "--successor", "--", "none"]);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut program = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let named = ports.map(|port| serde_json::json!({"port": port, "upstream": upstream}));
    let order = serde_json::json!({"token": "secret", "ports": named, "program": program.id()});
    let mut stdin = child.stdin.take().unwrap();
    writeln!(stdin, "{order}").unwrap();
    drop((free, stdin));
    let ask = |port: u16| {
        let address = format!("http://127.0.0.1:{port}/key/secret");
        let (answer, request) = ask_until(&address, "/v1/messages", BODY, &got);
        assert!(answer.starts_with(b"HTTP/1.1 200") && request.ends_with(BODY), "{answer:?}, {request}");
    };
    ask(ports[1]);
    drop(held);
    ask(ports[0]);
    drop(program.stdin.take());
    program.wait().unwrap();
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(child.wait().unwrap().success(), "{err}");
    let told = |words: &str| err.matches(words).count();
    assert_eq!((told("acpdb run was killed"), told("it is tried again")), (1, 1), "{err}");
}

/// The maker of a cloned project would choose who gets the keys and the words of its users.
#[test]
fn no_file_of_a_project_chooses_the_provider() {
    let place = Place::new();
    let (wanted, got) = provider(short());
    let (strange, strangers) = provider(short());
    let project = place.path("project");
    let line = format!("ANTHROPIC_BASE_URL={strange}\n");
    for (path, text) in [
        (".env", line.clone()),
        (".envrc", line),
        ("acpdb.toml", format!("upstream = \"{strange}\"\n")),
        (".acpdb/config.toml", format!("upstream = \"{strange}\"\n")),
        (".claude/settings.json", format!("{{\"env\":{{\"ANTHROPIC_BASE_URL\":\"{strange}\"}}}}")),
    ] {
        std::fs::create_dir_all(project.join(path).parent().unwrap()).unwrap();
        std::fs::write(project.join(path), text).unwrap();
    }
    let mut command = place.command(&[&["run", "--"], &WAITING[..]].concat());
    let running = Running::new(command.env("ANTHROPIC_BASE_URL", &wanted));
    running.ask("/v1/messages", BODY);
    assert_eq!(running.end().code, 5);
    assert!(got.try_recv().is_ok() && strangers.try_recv().is_err());
}

#[test]
fn requests_go_through_if_nothing_can_be_recorded() {
    for (name, spoil) in [
        (
            "a store that is a file",
            (|place: &Place| std::fs::write(place.path("store"), "no store").unwrap()) as fn(&Place),
        ),
        ("settings that are no TOML", |place: &Place| {
            let path = place.path("home/.config/acpdb/config.toml");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "db = [").unwrap();
        }),
        ("a store of a newer program", |place: &Place| {
            std::fs::create_dir_all(place.path("store")).unwrap();
            std::fs::write(place.path("store/acpdb.json"), "{\"format\": 99}").unwrap();
        }),
    ] {
        for mode in ["record", "prune"] {
            let place = Place::new();
            spoil(&place);
            let (upstream, got) = provider(short());
            let mut command = place.command(&[&["run", "--mode", mode, "--"], &WAITING[..]].concat());
            let running = Running::new(command.env("ANTHROPIC_BASE_URL", &upstream));
            let answer = running.ask("/v1/messages", BODY);
            assert!(String::from_utf8(answer).unwrap().starts_with("HTTP/1.1 200"), "{name}");
            assert!(got.recv().unwrap().ends_with(BODY), "{name}");
            let done = running.end();
            assert_eq!(done.code, 5, "{name}: {done:?}");
            assert_eq!(done.err.matches("nothing is recorded").count(), 1, "{name}: {done:?}");
        }
    }
}

#[test]
fn a_provider_that_is_away_is_told_to_the_program() {
    let place = Place::new();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = place.command(&[&["run", "--"], &WAITING[..]].concat());
    let running = Running::new(command.env("ANTHROPIC_BASE_URL", format!("http://{gone}")));
    let answer = String::from_utf8(running.ask("/v1/messages", BODY)).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 502") && answer.contains("the provider cannot be reached"),
        "{answer}"
    );
    assert_eq!(running.end().code, 5);
}

/// Requests have to go out by the other proxy, or not at all.
#[test]
fn behind_a_proxy_of_another_kind_a_program_keeps_its_own_way() {
    let place = Place::new();
    let words = ["run", "--", "sh", "-c", "echo \"<$ANTHROPIC_BASE_URL>\""];
    let done = finish(place.command(&words).env("HTTPS_PROXY", "http://proxy.example:3128"), "");
    assert_eq!((done.code, &*done.out), (0, "<>\n"), "{done:?}");
    assert!(done.err.contains("$HTTPS_PROXY names another proxy"), "{done:?}");
}

#[test]
fn a_very_long_answer_comes_whole() {
    let place = Place::new();
    let (count, piece) = (700, vec![b'x'; 128 << 10]);
    let mut answer = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n".to_vec();
    for _ in 0..count {
        answer.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
        answer.extend_from_slice(&piece);
        answer.extend_from_slice(b"\r\n");
    }
    answer.extend_from_slice(b"0\r\n\r\n");
    let (upstream, _got) = provider(answer);
    let mut command = place.command(&[&["run", "--"], &WAITING[..]].concat());
    let running = Running::new(command.env("ANTHROPIC_BASE_URL", &upstream));
    let got = running.ask("/v1/messages", BODY);
    let whole = got.split(|byte| *byte != b'x').map(<[u8]>::len).sum::<usize>();
    assert_eq!(whole, count * piece.len());
    assert_eq!(running.end().code, 5);
    assert!(place.log().contains("proxy/request"));
}

#[test]
fn signals_of_processes_are_passed_on() {
    for (signal, code) in [("INT", 9), ("TERM", 10), ("HUP", 11), ("USR1", 12)] {
        let place = Place::new();
        let script = format!(
            "trap 'exit {code}' {signal}; echo \"$ANTHROPIC_BASE_URL\"; while :; do sleep 0.02; done"
        );
        let running = Running::new(&mut place.command(&["run", "--", "sh", "-c", &script]));
        let killed =
            Command::new("kill").args([&format!("-{signal}"), &running.child.id().to_string()]).status();
        assert!(killed.unwrap().success());
        let done = running.end();
        assert_eq!(done.code, code, "{signal}: {done:?}");
    }
}

/// The recording of a session that came through is read once the program has ended: nothing else records it.
#[test]
fn the_sessions_that_came_through_are_in_the_store() {
    let place = Place::new();
    let (upstream, _got) = provider(short());
    let recordings = place.path("home/.claude/projects/p");
    std::fs::create_dir_all(&recordings).unwrap();
    let line = "{\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/p\",\"sessionId\":\"c1\",\"version\":\"2.1.0\",\"type\":\"user\",\
                \"message\":{\"role\":\"user\",\"content\":\"A rare prompt.\"},\"uuid\":\"u1\",\"timestamp\":\"2026-03-01T10:00:00.000Z\"}\n";
    std::fs::write(recordings.join("c1.jsonl"), line).unwrap();
    let mut command = place.command(&[&["run", "--"], &WAITING[..]].concat());
    let running = Running::new(command.env("ANTHROPIC_BASE_URL", &upstream));
    running.ask("/v1/messages", BODY);
    assert_eq!(running.end().code, 5);
    let found = finish(&mut place.command(&["search", "rare"]), "");
    assert!(found.out.contains("rare"), "{found:?}");
    assert!(Path::new(&place.path("store")).is_dir());
}
