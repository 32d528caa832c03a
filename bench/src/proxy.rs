//! The wait for the first byte of an answer: from a provider on this machine, straight and through `acpdb proxy`.
//!
//! ```text
//! client --head, body--> provider          first byte back: straight
//! client --head, body--> acpdb proxy --> provider           through; what it adds is the difference of the medians
//! ```
//!
//! Each request has a connection of its own, as from a program that starts, and an answer in two pieces. The proxy records.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::report::{Report, Target};
use crate::{Options, Outcome};

/// Longest time that a proxy may add.
const TARGET_MS: f64 = 2.0;
const KILOBYTES: [usize; 3] = [1, 60, 400];

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let rounds = if options.quick { 40 } else { 400 };
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let provider = provider()?;
    let proxy = Proxy::new(folder.path(), provider)?;
    for kilobytes in KILOBYTES {
        let body = vec![b'x'; kilobytes << 10];
        // In turns, so that both see the same load.
        let (mut straight, mut through) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            straight.push(first_byte(provider, "", &body)?);
            through.push(first_byte(proxy.address, &proxy.key, &body)?);
        }
        let at = |times: &mut Vec<f64>, part: usize| {
            times.sort_by(f64::total_cmp);
            times.get(times.len().saturating_mul(part) / 100).copied().unwrap_or_default()
        };
        let name = |what: &str| format!("proxy: first byte, request of {kilobytes} kB, {what}");
        let (own, passed) = (at(&mut straight, 50), at(&mut through, 50));
        report.row(name("straight, median"), own, "ms", Target::None);
        report.row(name("through, median"), passed, "ms", Target::None);
        report.row(name("through, 99th of 100"), at(&mut through, 99), "ms", Target::None);
        report.row(name("added, median"), passed - own, "ms", Target::AtMost(TARGET_MS));
    }
    Ok(())
}

/// A provider that answers whole requests in two pieces.
fn provider() -> Outcome<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            // A connection that breaks is told by the client.
            let Ok(mut stream) = stream else { return };
            std::thread::spawn(move || answer(&mut stream));
        }
    });
    Ok(address)
}

fn answer(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut got, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    let whole = loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        got.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let head = got.windows(4).position(|four| four == b"\r\n\r\n");
        let Some(head) = head else { continue };
        let text = String::from_utf8_lossy(got.get(..head).unwrap_or_default()).to_ascii_lowercase();
        let length =
            text.split("content-length:").nth(1).and_then(|rest| rest.lines().next()?.trim().parse().ok());
        break head + 4 + length.unwrap_or(0);
    };
    while got.len() < whole {
        let count = stream.read(&mut buffer)?;
        got.extend_from_slice(buffer.get(..count).unwrap_or_default());
    }
    stream.write_all(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n4\r\nfour\r\n",
    )?;
    stream.write_all(b"4\r\nmore\r\n0\r\n\r\n")
}

/// Milliseconds to the first byte of an answer.
fn first_byte(to: SocketAddr, key: &str, body: &[u8]) -> Outcome<f64> {
    let mut stream = TcpStream::connect(to)?;
    stream.set_nodelay(true)?;
    let head = format!(
        "POST {key}/v1/messages HTTP/1.1\r\nHost: {to}\r\nX-Claude-Code-Session-Id: bench\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let began = Instant::now();
    stream.write_all(head.as_bytes())?;
    stream.write_all(body)?;
    let mut byte = [0];
    stream.read_exact(&mut byte)?;
    let taken = began.elapsed().as_secs_f64() * 1e3;
    let mut rest = Vec::new();
    // The whole answer is taken, as a client does.
    stream.read_to_end(&mut rest)?;
    Ok(taken)
}

/// A proxy that runs until this is dropped.
struct Proxy {
    child: Child,
    address: SocketAddr,
    key: String,
}

impl Proxy {
    fn new(folder: &std::path::Path, provider: SocketAddr) -> Outcome<Self> {
        let program = std::env::current_exe()?.with_file_name("acpdb");
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("HOME", folder)
            .env("ACPDB_PATH", folder.join("store"))
            .env("ACPDB_ANY_FILE_SYSTEM", "1");
        command.args(["proxy", &format!("http://{provider}"), "--listen", "127.0.0.1:0", "--quiet"]);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("the proxy has no standard output")?;
        BufReader::new(out).read_line(&mut line)?;
        let address = line.split_whitespace().next().and_then(|word| word.strip_prefix("http://"));
        let address = address.ok_or("the program tells no address: is the proxy built in?")?.parse()?;
        let token = std::fs::read_to_string(folder.join(".config/acpdb/keys/proxy.token"))?;
        Ok(Self { child, address, key: format!("/key/{}", token.trim()) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // It has nothing left to do.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
