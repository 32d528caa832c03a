//! A connection that becomes something other than requests, such as a websocket: its bytes go through in both directions.
//!
//! ```text
//! client --Upgrade: websocket--> proxy --the same--> provider      101 Switching Protocols <--
//!        <======================= any bytes ===================>  until both ends are done; the bytes are counted
//! ```
//!
//! The bytes are not understood: only the tunnel itself is recorded, with their number, and none of them is changed.

use hyper::body::Incoming;
use hyper::header::{CONNECTION, UPGRADE};
use hyper::upgrade::OnUpgrade;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::task::JoinHandle;

use super::record::Tunnel;

/// An upgrade that a client asks for.
pub(super) struct UpgradeRequest {
    client: OnUpgrade,
    protocol: String,
}

impl UpgradeRequest {
    /// Whether it asks for a websocket, among others perhaps.
    pub(super) fn is_websocket(&self) -> bool {
        self.protocol.split(',').any(|word| word.trim() == "websocket")
    }
}

/// The upgrade that a request asks for, if it does.
pub(super) fn asked(request: &mut Request<Incoming>) -> Option<UpgradeRequest> {
    // Values that are no text name no protocol that is known.
    let words = |name| request.headers().get_all(name).iter().filter_map(|value| value.to_str().ok());
    let told = |name| words(name).collect::<Vec<_>>().join(",").to_ascii_lowercase();
    let protocol = told(UPGRADE);
    let is_asked = told(CONNECTION).split(',').any(|word| word.trim() == "upgrade");
    (is_asked && !protocol.is_empty())
        .then(|| UpgradeRequest { client: hyper::upgrade::on(request), protocol })
}

/// Passes on the bytes of both ends, if the provider agreed. The task returns the counts, or an error, when both ends are done.
pub(super) fn begin(asked: UpgradeRequest, answer: &mut Response<Incoming>) -> Option<JoinHandle<Tunnel>> {
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return None;
    }
    let provider = hyper::upgrade::on(answer);
    Some(tokio::spawn(async move {
        let mut tunnel = Tunnel { protocol: asked.protocol, ..Tunnel::default() };
        let (client, provider) = (asked.client.await, provider.await);
        let (Ok(client), Ok(provider)) = (client, provider) else {
            tunnel.error = Some("one end was gone before it began".to_owned());
            return tunnel;
        };
        let (mut client, mut provider) = (TokioIo::new(client), TokioIo::new(provider));
        match tokio::io::copy_bidirectional(&mut client, &mut provider).await {
            Ok((up, down)) => (tunnel.bytes_up, tunnel.bytes_down) = (up, down),
            Err(error) => tunnel.error = Some(error.to_string()),
        }
        tunnel
    }))
}
