//! The protocol over HTTP, by rmcp's streamable transport: one address, `/mcp`.
//!
//! Each request stands for itself: no session is kept, and an answer is one JSON object. This server never speaks first, so
//! nothing is lost by that, and nothing has to be tidied up when a client goes.
//!
//! A page of another site can send requests to this machine, also by a name of its own that it points here. So `Host` has to be
//! a name of this machine, and an `Origin` has to be this server's. A client shows a token: other users of the machine reach the
//! address, too. Where other machines are let in, `Host` may be any name.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use acpdb_hosts::surrogates::Halves;
use http_body_util::{BodyExt as _, Full, Limited, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::async_rw::DEFAULT_MAX_LINE_LENGTH;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::server::{McpServer, ServerError};
use super::tools::Tools;
use crate::proxy::access::{ClientAccess, Clients, keyed};
use crate::proxy::peer;
use crate::requests::{last, two_meanings};

/// The wait before the next connection, after a connection that could not be taken.
const ACCEPT_WAIT: Duration = Duration::from_millis(20);

/// Longest body of a request, and longest wait for it and for its answer.
const BODY_BYTES_MAX: usize = DEFAULT_MAX_LINE_LENGTH;
const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// The path of the protocol.
pub const PATH: &str = "/mcp";

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Service = StreamableHttpService<McpServer, NeverSessionManager>;

/// How a server is run.
#[derive(Clone, Debug)]
pub struct McpHttpOptions {
    /// The address to listen on; port 0 takes a free port.
    pub listen: SocketAddr,
    /// The token that clients have to show, as `Authorization: Bearer TOKEN` or before the path.
    pub access: ClientAccess,
}

/// Serves until the process ends; `ready` gets the address.
///
/// # Errors
/// If it may not or cannot listen on the address.
pub fn serve_http(
    tools: &Tools,
    options: &McpHttpOptions,
    ready: &mut dyn FnMut(SocketAddr),
) -> Result<(), ServerError> {
    crate::proxy::may_listen(options.listen, options.access.clients)
        .map_err(|_| ServerError::Exposed(options.listen))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(ServerError::Start)?.block_on(async {
        let failed = |source| ServerError::Listen { address: options.listen, source };
        let listener = tokio::net::TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let service = service(tools.clone(), address, options.access.clients == Clients::OfThisUser);
        ready(address);
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
                || !options.access.takes(peer, stream.local_addr().ok())
            {
                continue;
            }
            let (service, access) = (service.clone(), options.access.clone());
            tokio::spawn(async move {
                let answers = service_fn(move |request| {
                    let (service, access) = (service.clone(), access.clone());
                    async move {
                        let answered =
                            tokio::time::timeout(ANSWER_WAIT, answer(&service, &access, request)).await;
                        let late = |_| said(StatusCode::REQUEST_TIMEOUT, "the request took too long");
                        Ok::<Answer, Infallible>(answered.unwrap_or_else(late))
                    }
                });
                let mut server = hyper::server::conn::http1::Builder::new();
                let server = server.max_buf_size(peer::HEAD_BYTES_MAX);
                let server = server.timer(TokioTimer::new()).header_read_timeout(peer::HEAD_WAIT);
                // Its client sees a connection that breaks; the call that it asked for is done or refused by then.
                let _ = server.serve_connection(TokioIo::new(stream), answers).await;
                drop(place);
            });
        }
    })
}

fn service(tools: Tools, address: SocketAddr, is_own: bool) -> Service {
    let port = address.port();
    let own = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("http://{name}:{port}"));
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_origins(own)
        .enforce_origin_validation();
    let config = if is_own || address.ip().is_loopback() { config } else { config.disable_allowed_hosts() };
    let sessions = Arc::new(NeverSessionManager::default());
    StreamableHttpService::new(move || Ok(McpServer::new(tools.clone())), sessions, config)
}

async fn answer(service: &Service, access: &ClientAccess, request: Request<Incoming>) -> Answer {
    if let Some(why) = two_meanings(&request) {
        return last(said(StatusCode::BAD_REQUEST, why));
    }
    let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (path, before) = keyed(request.uri().path());
    let given = given.and_then(|value| value.strip_prefix("Bearer ")).or(before).unwrap_or_default();
    if !access.knows(given.as_bytes()) {
        let why = "send the token as Authorization: Bearer TOKEN, or put /key/TOKEN before the path";
        let mut answer = said(StatusCode::UNAUTHORIZED, why);
        answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        return answer;
    }
    if path.trim_end_matches('/') != PATH {
        return said(StatusCode::NOT_FOUND, "the protocol is spoken at /mcp");
    }
    // As on standard input: half a character costs itself, and not the whole request.
    let mut halves = Halves::default();
    let mended = request.map(|body| {
        Limited::new(body, BODY_BYTES_MAX).map_frame(move |frame| {
            frame.map_data(|piece| {
                let mut out = Vec::with_capacity(piece.len());
                halves.pass(&piece, &mut out);
                Bytes::from(out)
            })
        })
    });
    service.handle(mended).await
}

fn said(status: StatusCode, text: &str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(format!("acpdb mcp: {text}\n"))).boxed());
    *answer.status_mut() = status;
    answer
}
