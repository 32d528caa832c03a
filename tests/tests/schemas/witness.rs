//! A witness on this machine that signs the checkpoint of each request without any check.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use acpdb_proof::{SignerKey, WitnessKey};
use acpdb_tests::support::{base64, from_base64};

/// The public key of the witness, whose name is `w1`.
pub(crate) const KEY: &str = "w1+4d2b158a+BOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs";
const SEED: [u8; 32] = [7; 32];
/// The time of its signatures, in seconds since 1970.
const TIME: u64 = 1_774_440_000;

/// Starts one that answers one request. Returns its address.
pub(crate) fn once() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(&stream);
        let mut bytes = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            if let Some(length) = line.to_lowercase().strip_prefix("content-length:") {
                bytes = length.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; bytes];
        reader.read_exact(&mut body).unwrap();
        let signed = signed(std::str::from_utf8(&body).unwrap());
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", signed.len());
        (&stream).write_all((head + &signed).as_bytes()).unwrap();
    });
    url
}

/// The line of the signature, by tlog-cosignature, on the note behind the proof in a request.
fn signed(request: &str) -> String {
    let (_, note) = request.split_once("\n\n").unwrap();
    let (text, _) = note.rsplit_once("\n\n").unwrap();
    let message = format!("cosignature/v1\ntime {TIME}\n{text}\n");
    let note = SignerKey::from_seed(&SEED).sign("w1", &message).unwrap();
    let bytes = from_base64(note.trim_end().rsplit(' ').next().unwrap());
    // A note's own signature names its key by four bytes; a witness's names the witness, and then the time.
    let line = [&WitnessKey::parse(KEY).unwrap().id(), TIME.to_be_bytes().as_slice(), &bytes[4..]].concat();
    format!("\u{2014} w1 {}\n", base64(&line))
}
