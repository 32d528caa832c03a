//! The proxy itself, on hyper and rustls.

use std::convert::Infallible;
use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use acpdb_engine::{Error, Store};
use acpdb_hosts::export::Format;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited, combinators::BoxBody};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{
    ACCEPT_ENCODING, AUTHORIZATION, CONNECTION, HOST, HeaderName, HeaderValue, ORIGIN, UPGRADE,
};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};

use super::access::{ClientAccess, keyed};
use super::flow::{Flow, Passing};
use super::guard::{self, Caller};
use super::hold::Hold;
use super::identity::{self, RequestIdentity};
use super::prune::{HostValues, OriginalRequest, Pruned, RecordingFolders, prune};
use super::record::{Exchange, KEPT_BYTES_MAX, Tunnel, record};
use super::sent::LastRequests;
use super::talk::Talks;
use super::tunnel::UpgradeRequest;
use super::{ProxyError, may_listen, peer, tunnel, without_name};
use crate::growing::GrowingRecordings;
use crate::plugin::chained;
use crate::requests::{last, two_meanings};

/// The header in which a client sends the token.
const TOKEN: HeaderName = HeaderName::from_static("x-acpdb-token");

type BodyError = Box<dyn std::error::Error + Send + Sync>;
pub(super) type Outgoing = Client<HttpsConnector<HttpConnector>, TeedBody<BoxBody<Bytes, BodyError>>>;
type Answer = Response<BoxBody<Bytes, BodyError>>;

/// Told why an exchange was not recorded, or why nothing more is. Exchanges go through all the same.
#[derive(Clone)]
pub struct Unrecorded(pub Arc<dyn Fn(&str) + Send + Sync>);

impl fmt::Debug for Unrecorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Unrecorded")
    }
}

/// How a proxy is run.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// The address to listen on; port 0 takes a free port.
    pub listen: SocketAddr,
    /// The provider, such as `https://api.anthropic.com`.
    pub upstream: String,
    /// The token that clients have to show.
    pub access: ClientAccess,
    /// The session of requests that name none; `None`: these are not recorded.
    pub session: Option<String>,
    /// The folders of hosts' recordings. With them, requests are sent as acpdb serves them.
    pub prune: Option<RecordingFolders>,
    /// Called with the reason why an exchange was not recorded.
    pub unrecorded: Unrecorded,
}

/// The wait before the next connection, after a connection that could not be taken.
const ACCEPT_WAIT: Duration = Duration::from_millis(20);
/// The longest wait of a request for its served form; after it the request goes on as it is.
const PRUNE_WAIT: Duration = Duration::from_secs(3);

/// Longest body of a request, whether its length is told or not. Providers take files of up to 512 MiB.
pub const BODY_BYTES_MAX: usize = 512 << 20;

/// How often the record of an exchange is tried again, if another process held the lock.
const RECORD_AGAIN_COUNT: usize = 3;

/// A proxy to one provider.
pub(super) struct ProxyState {
    /// `None`: bytes go through, and nothing is recorded.
    store: Option<Store>,
    scheme: String,
    authority: String,
    /// A path of the provider's own, before those of its API.
    base: String,
    access: ClientAccess,
    session: Option<String>,
    prune: Option<RecordingFolders>,
    unrecorded: Unrecorded,
    sent: Arc<LastRequests>,
    talks: Arc<Talks>,
    recordings: Arc<GrowingRecordings>,
    client: Outgoing,
    flow: Arc<Flow>,
}

/// The client by which providers are asked. A piece of a body is sent at once: else the system holds it back until the piece before it was
/// acknowledged, for 40 ms and more.
pub(super) fn client() -> Result<Outgoing, ProxyError> {
    let mut sockets = HttpConnector::new();
    sockets.set_nodelay(true);
    sockets.enforce_http(false);
    let connector = hyper_rustls::HttpsConnectorBuilder::new()
        .with_native_roots()
        .map_err(ProxyError::Start)?
        .https_or_http()
        .enable_http1()
        .wrap_connector(sockets);
    let mut client = Client::builder(TokioExecutor::new());
    Ok(client.http1_preserve_header_case(true).build(connector))
}

/// Serves until the process ends; `ready` gets the address.
///
/// # Errors
/// If it may not or cannot listen on the address, or the provider's address is no address.
pub fn serve(
    store: Store,
    options: &ProxyOptions,
    ready: &mut dyn FnMut(SocketAddr),
) -> Result<(), ProxyError> {
    may_listen(options.listen, options.access.clients)?;
    let proxy = Arc::new(ProxyState::new(Some(store), options, client()?, Arc::default())?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(ProxyError::Start)?.block_on(async {
        let failed = |source| ProxyError::Listen { address: options.listen, source };
        let listener = tokio::net::TcpListener::bind(options.listen).await.map_err(failed)?;
        ready(listener.local_addr().map_err(failed)?);
        accept(listener, proxy).await;
        Ok(())
    })
}

/// Takes connections, for ever.
pub(super) async fn accept(listener: tokio::net::TcpListener, proxy: Arc<ProxyState>) {
    // Held once by each connection that is served.
    let open = Arc::new(());
    loop {
        // A connection that broke before it began is skipped; the next one may be better. Without a free file handle,
        // asking again at once would only keep the processor busy.
        let Ok((stream, peer)) = listener.accept().await else {
            tokio::time::sleep(ACCEPT_WAIT).await;
            continue;
        };
        let place = Arc::clone(&open);
        // A connection whose own end is not known any more is over; past the limit no client is served.
        if Arc::strong_count(&place) > peer::CONNECTION_COUNT_MAX
            || !proxy.access.takes(peer, stream.local_addr().ok())
        {
            continue;
        }
        // As for the client. A connection on which this fails is over.
        let _ = stream.set_nodelay(true);
        let (proxy, watching) = (Arc::clone(&proxy), Arc::clone(&proxy));
        let served = tokio::spawn(async move {
            let service = service_fn(move |request| {
                let proxy = Arc::clone(&proxy);
                async move { Ok::<Answer, Infallible>(proxy.pass(request).await) }
            });
            let mut server = hyper::server::conn::http1::Builder::new();
            let server = server.preserve_header_case(true).max_buf_size(peer::HEAD_BYTES_MAX);
            let server = server.timer(TokioTimer::new()).header_read_timeout(peer::HEAD_WAIT);
            // Its client sees a connection that breaks; the exchange on it is recorded as not whole.
            let _ = server.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
            drop(place);
        });
        tokio::spawn(async move {
            // A client asks again when a connection breaks: it shall not meet the same bug.
            if served.await.is_err() && watching.flow.go_blind() {
                (watching.unrecorded.0)("a bug ended an exchange; from now on requests go straight through");
            }
        });
    }
}

fn said(status: StatusCode, text: &str) -> Answer {
    let body = Full::new(Bytes::from(format!("acpdb proxy: {text}\n")));
    let mut answer = Response::new(body.map_err(|never| match never {}).boxed());
    *answer.status_mut() = status;
    answer
}

/// The answer to a websocket over which requests could not be changed: Codex, refused one, asks without it. The header names what is
/// required (RFC 9110, section 15.5.22).
fn without_websocket() -> Answer {
    let mut answer = said(StatusCode::UPGRADE_REQUIRED, "a websocket cannot be pruned; ask without one");
    let headers = [(UPGRADE, "HTTP/1.1"), (CONNECTION, "Upgrade")];
    answer.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
    answer
}

impl ProxyState {
    pub(super) fn new(
        store: Option<Store>,
        options: &ProxyOptions,
        client: Outgoing,
        flow: Arc<Flow>,
    ) -> Result<Self, ProxyError> {
        // A name and a password before the host are no part of the host.
        let upstream = without_name(&options.upstream);
        let wrong = || ProxyError::Upstream(upstream.clone());
        let upstream: Uri = upstream.parse().map_err(|_| wrong())?;
        let scheme = upstream.scheme_str().filter(|scheme| matches!(*scheme, "http" | "https"));
        let authority = upstream.authority().ok_or_else(wrong)?.as_str();
        Ok(Self {
            store,
            scheme: scheme.ok_or_else(wrong)?.to_owned(),
            authority: authority.to_owned(),
            base: upstream.path().trim_end_matches('/').to_owned(),
            access: options.access.clone(),
            session: options.session.clone(),
            prune: options.prune.clone(),
            unrecorded: options.unrecorded.clone(),
            sent: Arc::default(),
            talks: Arc::default(),
            recordings: Arc::default(),
            client,
            flow,
        })
    }

    /// The session of a request, if the request is to be recorded, and the store to record it in.
    fn known(&self, path: &str, header: &dyn Fn(&str) -> Option<String>) -> Option<(RequestIdentity, Store)> {
        let store = self.store.as_ref().filter(|_| !self.flow.is_blind())?;
        let identity = identity::or_named(path, header, self.session.as_deref())?;
        self.flow.saw(&identity);
        Some((identity, store.clone()))
    }

    async fn pass(&self, mut request: Request<Incoming>) -> Answer {
        if let Some(why) = two_meanings(&request) {
            return last(said(StatusCode::BAD_REQUEST, why));
        }
        let sent = request.headers_mut().remove(TOKEN);
        let asked = request.uri().path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let (whole, before) = keyed(&asked);
        let told = |name| request.headers().get(name).map(|value| value.to_str().unwrap_or_default());
        let caller = Caller {
            host: told(HOST),
            origin: told(ORIGIN),
            token: sent.as_ref().map(HeaderValue::as_bytes).or(before.map(str::as_bytes)),
        };
        if let Some((status, why)) = guard::refused(caller, &self.access) {
            return said(StatusCode::from_u16(status).unwrap_or(StatusCode::FORBIDDEN), why);
        }
        let header = |name: &str| Some(request.headers().get(name)?.to_str().ok()?.to_owned());
        debug_assert!(
            AUTHORIZATION.as_str() == "authorization",
            "keys are in headers, which are not recorded"
        );
        let passing = self.flow.begin();
        let known = self.known(whole, &header);
        let (path, _) = identity::split(whole);
        let plain = path.split('?').next().unwrap_or_default().to_owned();
        let uri = format!("{}://{}{}{path}", self.scheme, self.authority, self.base).parse::<Uri>();
        let (Ok(uri), Ok(host)) = (uri, HeaderValue::from_str(&self.authority)) else {
            return said(StatusCode::BAD_REQUEST, "the path is none");
        };
        *request.uri_mut() = uri;
        request.headers_mut().insert(HOST, host);
        let began = Instant::now();
        let (sent, sent_told) = tokio::sync::oneshot::channel();
        let mut exchange = Exchange { number: self.talks.number(), path: plain, ..Exchange::default() };
        // The bytes behind an upgrade are no request: they go through as they are.
        let asked = tunnel::asked(&mut request);
        let places = self.prune.as_ref().filter(|_| Format::of_path(&exchange.path).is_some());
        let pruning = places.zip(known.as_ref());
        if pruning.is_some() && asked.as_ref().is_some_and(UpgradeRequest::is_websocket) {
            return without_websocket();
        }
        if known.is_some() {
            // The bill of a packed answer, and its texts, cannot be read here, and few clients need one.
            request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        }
        // A body of known length is refused before any of it is sent; one of unknown length is cut off where it becomes too long.
        if request.body().size_hint().lower() > BODY_BYTES_MAX as u64 {
            return said(StatusCode::PAYLOAD_TOO_LARGE, TOO_LONG);
        }
        let request = match pruning {
            Some((places, known)) if is_plain(&request) => {
                match self.pruned(request, known, places, &exchange).await {
                    Ok((request, pruned, made)) => {
                        (exchange.pruned, exchange.made) = (Some(pruned), made);
                        request
                    }
                    Err(error) => return said(StatusCode::BAD_REQUEST, &chained(&error)),
                }
            }
            _ => request.map(|body| bounded(body, BODY_BYTES_MAX)),
        };
        let is_kept = known.is_some();
        let request = request.map(|body| TeedBody::new(body, is_kept, sent));
        let answered = self.client.request(request).await;
        exchange.first_milliseconds = elapsed(began);
        let mut through = None;
        let (answer, got_told) = match answered {
            Ok(mut answer) => {
                exchange.status = answer.status().as_u16();
                through = asked.and_then(|asked| tunnel::begin(asked, &mut answer));
                let (got, got_told) = tokio::sync::oneshot::channel();
                (
                    answer.map(|body| TeedBody::new(body.map_err(BodyError::from), is_kept, got).boxed()),
                    Some(got_told),
                )
            }
            Err(error) => {
                let (status, text) = unanswered(&error);
                exchange.error = Some(text.clone());
                (said(status, &text), None)
            }
        };
        let waited = Waited { exchange, began, sent_told, got_told, through };
        tokio::spawn(waited.end(known, passing, Arc::clone(&self.talks), self.unrecorded.clone()));
        answer
    }
}

/// An exchange whose bodies are under way.
struct Waited {
    exchange: Exchange,
    began: Instant,
    sent_told: tokio::sync::oneshot::Receiver<BodyCopy>,
    got_told: Option<tokio::sync::oneshot::Receiver<BodyCopy>>,
    through: Option<tokio::task::JoinHandle<Tunnel>>,
}

impl Waited {
    /// Waits for the end of the exchange, and records it if its session is known.
    async fn end(
        self,
        known: Option<(RequestIdentity, Store)>,
        passing: Passing,
        talks: Arc<Talks>,
        unrecorded: Unrecorded,
    ) {
        let Self { mut exchange, began, sent_told, got_told, through } = self;
        // The body always sends its copy: when it is dropped at the latest.
        if let Ok(copy) = sent_told.await {
            (exchange.request, exchange.request_bytes) = (copy.bytes, copy.count);
        }
        if let Some(got_told) = got_told {
            match got_told.await {
                Ok(copy) => (exchange.answer, exchange.error) = (copy.bytes, copy.error),
                Err(_) => exchange.error = Some("the answer was not taken".to_owned()),
            }
        }
        if let Some(ended) = through {
            exchange.tunnel = Some(ended.await.unwrap_or_default());
        }
        exchange.milliseconds = elapsed(began);
        let Some((identity, store)) = known else { return };
        // Off this thread: the disk must not hold up the requests of others.
        let session = identity.session.clone();
        let kept = move || recorded_at_last(&store, &identity, &exchange, &talks);
        let kept = tokio::task::spawn_blocking(kept).await;
        // The agent goes on without the record.
        match kept {
            Ok(Ok(())) => {}
            Ok(Err(error)) => (unrecorded.0)(&format!("session {session}: {}", chained(&error))),
            Err(_) => (unrecorded.0)(&format!("session {session}: a bug ended what was being done")),
        }
        drop(passing);
    }
}

/// Records an exchange. No request waits for the record, so it may be tried again. The store's wait for a lock is short, as pruning needs it.
fn recorded_at_last(
    store: &Store,
    identity: &RequestIdentity,
    exchange: &Exchange,
    talks: &Talks,
) -> Result<(), Error> {
    let mut kept = record(store, identity, exchange, talks);
    for _ in 0..RECORD_AGAIN_COUNT {
        if matches!(kept, Err(Error::Busy { .. })) {
            kept = record(store, identity, exchange, talks);
        }
    }
    kept
}

/// Why a request had no answer: the status and the words for the client.
fn unanswered(error: &(dyn std::error::Error + 'static)) -> (StatusCode, String) {
    if is_too_long(error) {
        return (StatusCode::PAYLOAD_TOO_LARGE, TOO_LONG.to_owned());
    }
    (StatusCode::BAD_GATEWAY, format!("the provider cannot be reached: {}", chained(error)))
}

/// The answer to a longer body.
const TOO_LONG: &str = "the body is longer than 512 MiB; send it in parts, or to the provider itself";

/// A body that ends with an error where it becomes too long.
fn bounded<B>(body: B, bytes_max: usize) -> BoxBody<Bytes, BodyError>
where
    B: Body<Data = Bytes> + Send + Sync + 'static,
    B::Error: Into<BodyError>,
{
    Limited::new(body, bytes_max).boxed()
}

/// Whether a request failed because its body is too long.
fn is_too_long(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source())
        .any(<dyn std::error::Error>::is::<LengthLimitError>)
}

/// Whether a request has a body that can be read here: short enough, and not packed.
fn is_plain(request: &Request<Incoming>) -> bool {
    let fits = request.body().size_hint().upper().is_some_and(|bytes| bytes <= KEPT_BYTES_MAX as u64);
    let is_packed = request.headers().contains_key(hyper::header::CONTENT_ENCODING);
    request.method() == hyper::Method::POST && fits && !is_packed
}

impl ProxyState {
    /// The request as acpdb serves it, with its body of before. If that fails, takes too long, or the request is not
    /// understood, the request as it was.
    async fn pruned(
        &self,
        request: Request<Incoming>,
        (identity, store): &(RequestIdentity, Store),
        places: &RecordingFolders,
        exchange: &Exchange,
    ) -> Result<(Request<BoxBody<Bytes, BodyError>>, Pruned, Option<Vec<u8>>), hyper::Error> {
        let (mut head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let hold = Arc::new(Hold::default());
        let mut work = {
            let (store, identity, places) = (store.clone(), identity.clone(), places.clone());
            let (path, number, body) = (exchange.path.clone(), exchange.number, body.clone());
            let (sent, talks) = (Arc::clone(&self.sent), Arc::clone(&self.talks));
            let (hold, recordings) = (Arc::clone(&hold), Arc::clone(&self.recordings));
            tokio::task::spawn_blocking(move || {
                let (sent, talks, hold) = (&*sent, &*talks, &*hold);
                let known = HostValues { places: &places, sent, talks, hold, recordings: &recordings };
                prune(&store, &identity, OriginalRequest { number, path: &path, body: &body }, known)
            })
        };
        let late = |why: &str| {
            (None, Pruned { untouched: Some(why.to_owned()), bytes_before: body.len(), ..Pruned::default() })
        };
        let began = Instant::now();
        let mut done = tokio::time::timeout(self.flow.patience(PRUNE_WAIT, began), &mut work).await;
        if done.is_err() && !hold.give_up() {
            // The served form is being recorded as sent, so it has to be sent. But a disk that hangs must not hold the agent up.
            done = tokio::time::timeout(PRUNE_WAIT, work).await;
        }
        let (made, pruned) = match done {
            Ok(Ok(done)) => done,
            Ok(Err(_)) => late("a bug ended what was being done"),
            Err(_) => late("the store is slow"),
        };
        self.flow.waited(began.elapsed(), pruned.seq.is_some(), Instant::now());
        let was = made.is_some().then(|| body.to_vec());
        let body = made.map_or(body, Bytes::from);
        if head.headers.remove(hyper::header::TRANSFER_ENCODING).is_some()
            || head.headers.contains_key(hyper::header::CONTENT_LENGTH)
        {
            head.headers.insert(hyper::header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        Ok((Request::from_parts(head, Full::new(body).map_err(|never| match never {}).boxed()), pruned, was))
    }
}

fn elapsed(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// A copy of the bytes of a body.
#[derive(Debug, Default)]
struct BodyCopy {
    /// All bytes; `None` if they were too many.
    bytes: Option<Vec<u8>>,
    count: u64,
    /// Why it is not whole.
    error: Option<String>,
}

/// A body that is passed on piece by piece. At its end it sends its copy.
pub(super) struct TeedBody<B> {
    inner: B,
    copy: BodyCopy,
    is_whole: bool,
    tell: Option<tokio::sync::oneshot::Sender<BodyCopy>>,
}

impl<B: Body> TeedBody<B> {
    fn new(inner: B, is_kept: bool, tell: tokio::sync::oneshot::Sender<BodyCopy>) -> Self {
        let copy = BodyCopy { bytes: is_kept.then(Vec::new), ..BodyCopy::default() };
        let is_whole = inner.is_end_stream();
        Self { inner, copy, is_whole, tell: Some(tell) }
    }
}

impl<B> Drop for TeedBody<B> {
    fn drop(&mut self) {
        let mut copy = std::mem::take(&mut self.copy);
        if !self.is_whole && copy.error.is_none() {
            copy.error = Some("ended before it was whole".to_owned());
        }
        if let Some(tell) = self.tell.take() {
            // An exchange without an identity is not recorded: no task waits for its copy.
            let _ = tell.send(copy);
        }
    }
}

impl<B: Body<Data = Bytes, Error = BodyError> + Unpin> Body for TeedBody<B> {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let Some(data) = frame.data_ref() {
                    self.copy.count = self.copy.count.saturating_add(data.len() as u64);
                    let fits = self.copy.count <= KEPT_BYTES_MAX as u64;
                    match &mut self.copy.bytes {
                        Some(bytes) if fits => bytes.extend_from_slice(data),
                        kept => *kept = None,
                    }
                }
                self.is_whole |= self.inner.is_end_stream();
            }
            Poll::Ready(Some(Err(error))) => self.copy.error = Some(chained(error.as_ref())),
            Poll::Ready(None) => self.is_whole = true,
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A body that does not tell its length went through without an end.
    #[test]
    fn a_body_of_unknown_length_ends_where_it_becomes_too_long() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for (pieces, fits) in [(&[4_usize, 4][..], true), (&[4, 4, 1], false), (&[9], false), (&[], true)] {
            let mut frames: Vec<Bytes> = pieces.iter().map(|count| Bytes::from(vec![b'x'; *count])).collect();
            frames.reverse();
            let body = Pieces(frames);
            let (tell, told) = tokio::sync::oneshot::channel();
            let read = runtime.block_on(TeedBody::new(bounded(body, 8), true, tell).collect());
            let copy = runtime.block_on(told).unwrap();
            assert_eq!(read.is_ok(), fits, "{pieces:?}");
            assert_eq!(copy.error.is_none(), fits, "{pieces:?}: {:?}", copy.error);
            if let Err(error) = read {
                assert!(is_too_long(error.as_ref()), "{error}");
            }
        }
    }

    /// Frames, the last one first.
    struct Pieces(Vec<Bytes>);

    impl Body for Pieces {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            Poll::Ready(self.0.pop().map(|bytes| Ok(Frame::data(bytes))))
        }
    }
}
