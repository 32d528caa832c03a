//! The protocol over HTTP, by rmcp's streamable transport: one address, `/mcp`.
//!
//! Each request stands for itself: no session is kept, and an answer is one JSON object. This server never speaks first, so
//! nothing is lost by that, and nothing has to be tidied up when a client goes.
//!
//! A page of another site can send requests to this machine, also by a name of its own that it points here. So `Host` has to be
//! a name of this machine, and an `Origin` has to be this server's. An address that others can reach needs a token; there
//! `Host` may be any name.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use acpdb_hosts::surrogates::Halves;
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::server::{Server, ServerError};
use super::tools::Tools;
use crate::proxy::guard::is_same;
use crate::proxy::peer;

/// The wait before the next connection, after a connection that could not be taken.
const ACCEPT_WAIT: Duration = Duration::from_millis(20);

/// The path of the protocol.
pub const PATH: &str = "/mcp";

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Service = StreamableHttpService<Server, NeverSessionManager>;

/// How a server is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The address to listen on; port 0 takes a free port.
    pub listen: SocketAddr,
    /// The token that clients have to send as `Authorization: Bearer TOKEN`.
    pub token: Option<String>,
}

/// Serves until the process ends; `ready` gets the address.
///
/// # Errors
/// If it may not or cannot listen on the address.
pub fn serve_http(
    tools: &Tools,
    options: &Options,
    ready: &mut dyn FnMut(SocketAddr),
) -> Result<(), ServerError> {
    crate::proxy::may_listen(options.listen, options.token.as_deref())
        .map_err(|_| ServerError::Exposed(options.listen))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(ServerError::Start)?.block_on(async {
        let failed = |source| ServerError::Listen { address: options.listen, source };
        let listener = tokio::net::TcpListener::bind(options.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let service = service(tools.clone(), address);
        let token = options.token.clone().filter(|token| !token.is_empty()).map(Arc::<str>::from);
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
            let is_own = || stream.local_addr().is_ok_and(|own| peer::is_of_this_user(peer, own));
            let place = Arc::clone(&open);
            // Without a token, other users of this machine are not served; past the limit no client is.
            if token.is_none() && !is_own() || Arc::strong_count(&place) > peer::CONNECTION_COUNT_MAX {
                continue;
            }
            let (service, token) = (service.clone(), token.clone());
            tokio::spawn(async move {
                let _place = place;
                let answers = service_fn(move |request| {
                    let (service, token) = (service.clone(), token.clone());
                    async move { Ok::<Answer, Infallible>(answer(&service, token.as_deref(), request).await) }
                });
                let mut server = hyper::server::conn::http1::Builder::new();
                let server = server.timer(TokioTimer::new()).header_read_timeout(peer::HEAD_WAIT);
                // Its client sees a connection that breaks; the call that it asked for is done or refused by then.
                let _ = server.serve_connection(TokioIo::new(stream), answers).await;
            });
        }
    })
}

fn service(tools: Tools, address: SocketAddr) -> Service {
    let port = address.port();
    let own = ["127.0.0.1", "localhost", "[::1]"].map(|name| format!("http://{name}:{port}"));
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_allowed_origins(own)
        .enforce_origin_validation();
    let config = if address.ip().is_loopback() { config } else { config.disable_allowed_hosts() };
    let sessions = Arc::new(NeverSessionManager::default());
    StreamableHttpService::new(move || Ok(Server::new(tools.clone())), sessions, config)
}

async fn answer(service: &Service, token: Option<&str>, request: Request<Incoming>) -> Answer {
    if let Some(token) = token {
        let given = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let given = given.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default();
        if !is_same(given.as_bytes(), token.as_bytes()) {
            let mut answer = said(StatusCode::UNAUTHORIZED, "send the token as Authorization: Bearer TOKEN");
            answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            return answer;
        }
    }
    if request.uri().path().trim_end_matches('/') != PATH {
        return said(StatusCode::NOT_FOUND, "the protocol is spoken at /mcp");
    }
    // As on standard input: half a character costs itself, and not the whole request.
    let mut halves = Halves::default();
    let mended = request.map(|body| {
        body.map_frame(move |frame| {
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
