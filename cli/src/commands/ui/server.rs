//! The server: connections, headers, and the stream of events that tells pages of commits.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use acpdb_engine::Store;
use acpdb_engine::store::Redactor;
use acpdb_live::proxy::peer;
use acpdb_live::requests::ambiguity;
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST,
    HeaderName, HeaderValue, LOCATION, ORIGIN, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{Semaphore, watch};

use super::answers::Answers;
use super::body::ResponseBody;
use super::places::{BodyUnderWay, ConnectionPlaces, Doing};
use super::route::{Refusal, Route, RouteKey, route};

/// Most answers that are made at a time: each folds a session.
const WORK_COUNT_MAX: usize = 2;
/// Longest time in which a request may arrive.
const HEADER_WAIT: Duration = Duration::from_secs(10);
/// Longest silence on a stream of commits. Then a message is sent, which shows whether a listener is still there.
const QUIET_MAX: Duration = Duration::from_secs(15);
/// Shortest pause between two messages on it, in milliseconds.
const PAUSE: Duration = Duration::from_millis(200);
/// Longest wait of the thread that waits for commits, before it looks again.
const COMMIT_WAIT: Duration = Duration::from_secs(2);

const SAME_ORIGIN: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

struct UiServer {
    answers: Arc<Answers>,
    port: u16,
    token: String,
    work: Arc<Semaphore>,
    commits: watch::Receiver<u64>,
}

/// Serves until the process is told to end; calls `ready` with the address.
pub(super) fn serve(
    store: Store,
    redactor: Option<Arc<dyn Redactor>>,
    listen: SocketAddr,
    token: &str,
    ready: &mut dyn FnMut(SocketAddr),
) -> io::Result<()> {
    let (tell, commits) = watch::channel(0);
    let (stop, mut stopped) = watch::channel(false);
    crate::interrupt::instead(move || {
        // A server that has ended needs no message.
        let _ = stop.send(true);
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(listen).await?;
        let address = listener.local_addr()?;
        let answers = Arc::new(Answers::new(store.clone(), redactor));
        let follower = std::thread::Builder::new().name("commits".to_owned());
        let seen = Arc::clone(&answers);
        follower.spawn(move || follow(&store, &seen, &tell))?;
        let (port, work) = (address.port(), Arc::new(Semaphore::new(WORK_COUNT_MAX)));
        let server = Arc::new(UiServer { answers, port, token: token.to_owned(), work, commits });
        ready(address);
        let places = ConnectionPlaces::new();
        loop {
            // The signal to end is received even while there is no room.
            let accepted = async {
                let (stream, peer) = listener.accept().await?;
                // Other users of the machine get no place, however many of them there are: they have no token.
                if !stream.local_addr().is_ok_and(|own| !peer::can_tell() || peer::is_of_this_user(peer, own))
                {
                    return Ok::<_, io::Error>(None);
                }
                Ok(Some((places.place().await?, stream)))
            };
            let accepted = tokio::select! {
                accepted = accepted => accepted,
                _ = stopped.changed() => return Ok(()),
            };
            let (place, stream) = match accepted {
                Ok(Some(accepted)) => accepted,
                Ok(None) => continue,
                // A connection that broke before it began is ignored; the next one may be better.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            let (server, doing) = (Arc::clone(&server), Doing::nothing());
            let answering = Arc::clone(&doing);
            let connection = tokio::spawn(async move {
                let service = service_fn(|request| {
                    let (server, under_way) = (Arc::clone(&server), answering.begin());
                    async move {
                        let answer = server.answer(&request).await?;
                        Ok::<_, io::Error>(answer.map(|body| BodyUnderWay::new(body, under_way)))
                    }
                });
                let mut connection = hyper::server::conn::http1::Builder::new();
                connection.timer(TokioTimer::new()).header_read_timeout(HEADER_WAIT);
                // The browser sees that its connection broke.
                let _ = connection.serve_connection(TokioIo::new(stream), service).await;
                drop(place);
            });
            places.take(doing, connection.abort_handle());
        }
    })
}

/// Waits for commits and tells all pages of them, until the server has ended.
fn follow(store: &Store, answers: &Answers, tell: &watch::Sender<u64>) {
    let mut subscription = store.subscribe(answers.began().next());
    while !tell.is_closed() {
        match subscription.next_within(COMMIT_WAIT) {
            Ok(Some(commit)) => {
                answers.grew(commit.events.iter().map(|event| (event.event.stream, event.seq)));
                let _ = tell.send(commit.last_seq().get());
            }
            Ok(None) => {}
            // Damage is skipped; a read that fails now is tried again.
            Err(_) => std::thread::sleep(COMMIT_WAIT),
        }
    }
}

type Made = Result<Response<ResponseBody>, io::Error>;

impl UiServer {
    async fn answer(&self, request: &Request<Incoming>) -> Made {
        let count = |name: &str| request.headers().get_all(name).iter().count();
        let header = |name: HeaderName| request.headers().get(name).and_then(|value| value.to_str().ok());
        // A header that is not text does not count as missing.
        let origin = request.headers().get(ORIGIN).map(|value| value.to_str().unwrap_or("unreadable"));
        let asked = RouteKey {
            method: request.method().as_str(),
            path: request.uri().path(),
            query: request.uri().query().unwrap_or_default(),
            host: header(HOST),
            origin,
        };
        // Nothing here takes a body, and where one ends is what two readers disagree about.
        if count("transfer-encoding") > 0 || header(CONTENT_LENGTH).is_some_and(|length| length != "0") {
            return refused(Refusal::TwoMeanings("a request that only reads has no body"));
        }
        let target = request.uri().authority().map(Authority::as_str);
        if let Some(why) = ambiguity(&count, target, asked.host) {
            return refused(Refusal::TwoMeanings(why));
        }
        match route(asked, self.port, &self.token) {
            Route::Refused(refusal) => refused(refusal),
            Route::Redirect => {
                let mut answer =
                    said(StatusCode::PERMANENT_REDIRECT, "text/plain; charset=utf-8", ResponseBody::text(""));
                let place = HeaderValue::from_str(&format!("/{}/", self.token)).map_err(io::Error::other)?;
                answer.headers_mut().insert(LOCATION, place);
                Ok(answer)
            }
            Route::Changes => Ok(self.changes()),
            Route::PageData(stream, after) if !self.answers.has_grown(stream, after) => {
                Ok(said(StatusCode::NO_CONTENT, "application/json", ResponseBody::text("")))
            }
            found => self.made(found).await,
        }
    }

    /// An answer from the store, which a thread of its own makes.
    async fn made(&self, found: Route) -> Made {
        let permit = Arc::clone(&self.work).acquire_owned().await.map_err(io::Error::other)?;
        let (pieces, answer) = ResponseBody::pieces();
        let (known, is_known) = tokio::sync::oneshot::channel();
        let answers = Arc::clone(&self.answers);
        let kind = match found {
            Route::Index | Route::Page(_) => "text/html; charset=utf-8",
            _ => "application/json",
        };
        let worker = std::thread::Builder::new().name("answer".to_owned());
        worker.spawn(move || {
            answers.write(found, known, pieces);
            drop(permit);
        })?;
        match is_known.await {
            Ok(true) => Ok(said(StatusCode::OK, kind, answer)),
            _ => refused(Refusal::Place),
        }
    }

    /// A stream of events that sends the newest seq each time that the store has grown.
    fn changes(&self) -> Response<ResponseBody> {
        let mut commits = self.commits.clone();
        commits.mark_unchanged();
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            let mut word = Bytes::from_static(b": acpdb\n\n");
            while sender.send(Ok(word)).await.is_ok() {
                tokio::time::sleep(PAUSE).await;
                word = match tokio::time::timeout(QUIET_MAX, commits.changed()).await {
                    Ok(Ok(())) => format!("data: {}\n\n", *commits.borrow_and_update()).into(),
                    Ok(Err(_)) => return,
                    Err(_) => Bytes::from_static(b":\n\n"),
                };
            }
        });
        said(StatusCode::OK, "text/event-stream", ResponseBody::Pieces(receiver, Arc::new(true.into())))
    }
}

fn refused(refusal: Refusal) -> Made {
    let (status, text) = refusal.says();
    let status = StatusCode::from_u16(status).map_err(io::Error::other)?;
    let mut answer =
        said(status, "text/plain; charset=utf-8", ResponseBody::text(format!("acpdb ui: {text}\n")));
    if refusal == Refusal::Method {
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    if let Refusal::TwoMeanings(_) = refusal {
        // The bytes behind it may be its body or another request.
        answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    Ok(answer)
}

/// An answer with the common headers. The pages themselves say which scripts and styles may run: they hold digests of them.
fn said(status: StatusCode, kind: &'static str, body: ResponseBody) -> Response<ResponseBody> {
    let mut answer = Response::new(body);
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (CONTENT_SECURITY_POLICY, "frame-ancestors 'none'"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (SAME_ORIGIN, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}
