//! A server that speaks as much of the protocol of S3 as a store needs, on a port of this machine, and fails as a test says. It checks signatures,
//! conditions and checksums as strictly as the strictest server.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use acpdb_engine::locks::steady;
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use rusty_s3::Method;

use super::answer::checksum;
use crate::memory::MemoryRemote;
use crate::remote::{ObjectTag, Remote as _};

/// How a request fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum S3Fault {
    /// Nothing is executed; the answer has this status and code.
    Refuse(u16, &'static str),
    /// It is executed; the answer has this status and code.
    Deny(u16, &'static str),
    /// Nothing is executed, and no answer comes.
    Lose,
    /// It is executed, and no answer comes.
    Silence,
    /// If there is no object, the first half of it is kept; no answer comes.
    Tear,
}

/// The fate of conditions at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum S3Conditions {
    /// It keeps them.
    #[default]
    Kept,
    /// It knows none, and says so.
    Unknown,
    /// It executes what has one.
    Ignored,
}

/// Says which fault a request has, by its method and the key.
pub type S3Plan = Box<dyn FnMut(&str, &str) -> Option<S3Fault> + Send>;

struct ServerState {
    plan: S3Plan,
    conditions: S3Conditions,
    has_versions: bool,
    /// The key and the secret that are good now.
    key: (String, String),
    /// Seconds that its clock is ahead.
    ahead: i64,
    /// Requests, by method.
    counts: BTreeMap<String, u64>,
}

/// A running server; it ends with the process.
#[derive(Clone)]
pub struct S3Server {
    address: SocketAddr,
    objects: Arc<MemoryRemote>,
    state: Arc<Mutex<ServerState>>,
}

struct ServerRequest {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

struct ServerAnswer {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

fn failure(status: u16, code: &str) -> ServerAnswer {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code><Message>no</Message></Error>");
    ServerAnswer { status, headers: Vec::new(), body: body.into_bytes() }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|byte| char::from(byte).to_digit(16)).unwrap_or(0);
        let value = digit().saturating_mul(16).saturating_add(digit());
        // Two digits are a byte.
        bytes.push(u8::try_from(value).unwrap_or(b'?'));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl S3Server {
    /// The bucket that there is.
    pub const BUCKET: &'static str = "bucket";

    /// Starts a server with one bucket.
    ///
    /// # Errors
    /// If no port is free.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let state = ServerState {
            plan: Box::new(|_, _| None),
            conditions: S3Conditions::Kept,
            has_versions: false,
            key: ("key".to_owned(), "secret".to_owned()),
            ahead: 0,
            counts: BTreeMap::new(),
        };
        let server = Self {
            address: listener.local_addr()?,
            objects: Arc::default(),
            state: Arc::new(Mutex::new(state)),
        };
        let serving = server.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let serving = serving.clone();
                // A connection that breaks is its client's affair.
                thread::spawn(move || drop(serving.serve(&stream)));
            }
        });
        Ok(server)
    }

    /// The address, as `AWS_ENDPOINT_URL` has it.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The objects of the bucket, by their whole keys.
    pub fn objects(&self) -> Arc<MemoryRemote> {
        Arc::clone(&self.objects)
    }

    /// Sets which requests fail from now on.
    pub fn plan(&self, plan: impl FnMut(&str, &str) -> Option<S3Fault> + Send + 'static) {
        self.state().plan = Box::new(plan);
    }

    /// Sets the fate of conditions.
    pub fn set_conditions(&self, conditions: S3Conditions) {
        self.state().conditions = conditions;
    }

    /// Keeps old versions from now on, and says so.
    pub fn keep_versions(&self) {
        self.state().has_versions = true;
    }

    /// Sets the only credentials that are good.
    pub fn set_key(&self, key: &str, secret: &str) {
        self.state().key = (key.to_owned(), secret.to_owned());
    }

    /// Sets the clock ahead.
    pub fn set_ahead(&self, seconds: i64) {
        self.state().ahead = seconds;
    }

    /// Requests so far of a method; all, if none is named.
    pub fn count(&self, method: Option<&str>) -> u64 {
        let state = self.state();
        let counts = state.counts.iter().filter(|(name, _)| method.is_none_or(|method| method == *name));
        counts.map(|(_, count)| count).sum()
    }

    fn state(&self) -> MutexGuard<'_, ServerState> {
        steady(&self.state)
    }

    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut reader = BufReader::new(stream.try_clone()?);
        while let Some(request) = read_request(&mut reader)? {
            let Some(answer) = self.answer(&request) else { return Ok(()) };
            let ahead = self.state().ahead;
            let now = Timestamp::now().as_second().saturating_add(ahead);
            let date = Timestamp::from_second(now).map_err(io::Error::other)?;
            let length = answer.body.len();
            let mut head = format!("HTTP/1.1 {} X\r\n", answer.status);
            let date = date.strftime("%a, %d %b %Y %H:%M:%S GMT");
            // Writing to a text does not fail.
            let _ = write!(head, "date: {date}\r\n");
            for (name, value) in &answer.headers {
                let _ = write!(head, "{name}: {value}\r\n");
            }
            if request.method != "HEAD" {
                let _ = write!(head, "content-length: {length}\r\n");
            }
            // In one write: the client's system delays what confirms a first part.
            let mut whole = head.into_bytes();
            whole.extend_from_slice(b"\r\n");
            if request.method != "HEAD" {
                whole.extend_from_slice(&answer.body);
            }
            let mut out = stream;
            out.write_all(&whole)?;
        }
        Ok(())
    }

    /// `None`: no answer comes.
    fn answer(&self, request: &ServerRequest) -> Option<ServerAnswer> {
        let key = request.path.strip_prefix(&format!("/{}/", Self::BUCKET));
        let fault = {
            let mut state = self.state();
            let count = state.counts.entry(request.method.clone()).or_default();
            *count = count.saturating_add(1);
            (state.plan)(&request.method, key.unwrap_or_default())
        };
        match fault {
            Some(S3Fault::Refuse(status, code)) => return Some(failure(status, code)),
            Some(S3Fault::Lose) => return None,
            Some(S3Fault::Tear) => {
                let half = request.body.len().div_ceil(2);
                let torn = request.body.get(..half).unwrap_or_default().to_vec();
                if self.find(key?).is_none() {
                    self.objects.set(key?, Some(torn));
                }
                return None;
            }
            Some(S3Fault::Deny(..) | S3Fault::Silence) | None => {}
        }
        let answer = match (self.refusal(request), key) {
            (Some(refusal), _) => refusal,
            (None, None) => failure(404, "NoSuchBucket"),
            (None, Some(key)) => self.execute(request, key),
        };
        match fault {
            Some(S3Fault::Silence) => None,
            Some(S3Fault::Deny(status, code)) => Some(failure(status, code)),
            _ => Some(answer),
        }
    }

    /// Why a request is not allowed.
    fn refusal(&self, request: &ServerRequest) -> Option<ServerAnswer> {
        let (key, secret, ahead) = {
            let state = self.state();
            (state.key.0.clone(), state.key.1.clone(), state.ahead)
        };
        let query = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
        let mut scope = query("X-Amz-Credential").split('/');
        if scope.next() != Some(key.as_str()) {
            return Some(failure(403, "InvalidAccessKeyId"));
        }
        let region = scope.nth(1).unwrap_or_default();
        let names: Vec<&str> = query("X-Amz-SignedHeaders").split(';').collect();
        let is_bare = |name: &&String| name.starts_with("x-amz-") || name.starts_with("if-");
        if request.headers.keys().filter(is_bare).any(|name| !names.contains(&name.as_str())) {
            return Some(failure(403, "AccessDenied"));
        }
        let time = DateTime::strptime("%Y%m%dT%H%M%SZ", query("X-Amz-Date"));
        // Such a date comes from no client of ours.
        let time = time.ok()?.to_zoned(TimeZone::UTC).ok()?.timestamp();
        let now = Timestamp::now().as_second().saturating_add(ahead);
        if now.abs_diff(time.as_second()) > 900 {
            return Some(failure(403, "RequestTimeTooSkewed"));
        }
        let method = match request.method.as_str() {
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "HEAD" => Method::Head,
            _ => Method::Get,
        };
        let host = request.headers.get("host").map(String::as_str).unwrap_or_default();
        let url = format!("http://{host}{}", request.path.replace(' ', "%20")).parse().ok()?;
        let own = request.query.iter().filter(|(name, _)| !name.starts_with("X-Amz-"));
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = request.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = headers.filter(|(name, _)| *name != "host" && names.contains(name));
        let expires = query("X-Amz-Expires").parse().unwrap_or(0);
        let signed =
            rusty_s3::signing::sign(&time, method, url, &key, &secret, None, region, expires, own, headers);
        let is_same = signed.as_str().ends_with(&format!("X-Amz-Signature={}", query("X-Amz-Signature")));
        (!is_same).then(|| failure(403, "SignatureDoesNotMatch"))
    }

    fn execute(&self, request: &ServerRequest, key: &str) -> ServerAnswer {
        match request.method.as_str() {
            "PUT" => self.put(request, key),
            "DELETE" => {
                self.objects.set(key, None);
                ServerAnswer { status: 204, headers: Vec::new(), body: Vec::new() }
            }
            _ if key.is_empty() => self.list(request),
            _ => self.get(request, key),
        }
    }

    fn put(&self, request: &ServerRequest, key: &str) -> ServerAnswer {
        match request.headers.get("x-amz-checksum-crc32c") {
            None => return failure(400, "MissingChecksum"),
            Some(given) if *given != checksum(&request.body) => return failure(400, "BadDigest"),
            Some(_) => {}
        }
        // One at a time.
        let state = self.state();
        let (absent, same) = (request.headers.get("if-none-match"), request.headers.get("if-match"));
        if absent.is_some() || same.is_some() {
            let found = self.find(key);
            match state.conditions {
                S3Conditions::Unknown => return failure(501, "NotImplemented"),
                S3Conditions::Ignored => {}
                S3Conditions::Kept if absent.is_some() && found.is_some() => {
                    return failure(412, "PreconditionFailed");
                }
                S3Conditions::Kept => {
                    if let Some(tag) = same {
                        let Some((_, found)) = found else { return failure(404, "NoSuchKey") };
                        if found != *tag {
                            return failure(412, "PreconditionFailed");
                        }
                    }
                }
            }
        }
        self.objects.set(key, Some(request.body.clone()));
        let mut headers = vec![("etag", tag_of(&request.body))];
        if state.has_versions {
            headers.push(("x-amz-version-id", "v1".to_owned()));
        }
        ServerAnswer { status: 200, headers, body: Vec::new() }
    }

    fn find(&self, key: &str) -> Option<(Vec<u8>, String)> {
        self.objects.find(key).map(|bytes| {
            let tag = tag_of(&bytes);
            (bytes, tag)
        })
    }

    fn get(&self, request: &ServerRequest, key: &str) -> ServerAnswer {
        let Some((bytes, tag)) = self.find(key) else { return failure(404, "NoSuchKey") };
        let headers = vec![("etag", tag)];
        let range = request.headers.get("range").and_then(|range| range.strip_prefix("bytes="));
        let Some((from, to)) = range.and_then(|range| range.split_once('-')) else {
            return ServerAnswer { status: 200, headers, body: bytes };
        };
        let number = |text: &str| text.parse::<u64>().unwrap_or(u64::MAX);
        let within = crate::remote::within(&bytes, Some(&(number(from)..number(to).saturating_add(1))));
        if number(from) >= bytes.len() as u64 {
            return failure(416, "InvalidRange");
        }
        ServerAnswer { status: 206, headers, body: within }
    }

    fn list(&self, request: &ServerRequest) -> ServerAnswer {
        let query = |name: &str| request.query.get(name).map(String::as_str).unwrap_or_default();
        // Memory does not fail.
        let found = self.objects.list(query("prefix"), query("start-after")).unwrap_or_default();
        let mut xml =
            "<?xml version=\"1.0\"?><ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
                .to_owned();
        for listed in found {
            // Writing to a text does not fail.
            let _ =
                write!(xml, "<Contents><Key>{}</Key><Size>{}</Size></Contents>", listed.key, listed.bytes);
        }
        xml.push_str("<IsTruncated>false</IsTruncated></ListBucketResult>");
        ServerAnswer { status: 200, headers: Vec::new(), body: xml.into_bytes() }
    }
}

fn tag_of(bytes: &[u8]) -> String {
    format!("\"{}\"", ObjectTag::of(bytes).0)
}

/// The next request of a connection; `None`: there is none.
fn read_request(reader: &mut BufReader<TcpStream>) -> io::Result<Option<ServerRequest>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let query = pairs.map(|(name, value)| (decoded(name), decoded(value))).collect();
    let path = decoded(path);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(Some(ServerRequest { method, path, query, headers, body }))
}
