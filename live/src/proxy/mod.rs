//! A reverse proxy between a host and its provider: it sees the requests that were really sent, and the tokens that were billed.
//!
//! ```text
//! host --request--> acpdb proxy --the same bytes--> provider
//!      <--answer---             <--the same bytes---          each piece as it comes
//!                      '--> behind the answer: a record of the request in the session's stream
//! ```
//!
//! In mode `record` no body is changed on the way. Records are made of copies, behind the answer: a store that fails costs the
//! record. Headers are never recorded, nor the part of a path behind its `?`: keys are in them. For sessions without a
//! recording of their own the conversation is recorded, too (`talk`).

pub mod access;
pub mod flow;
pub mod guard;
pub mod hold;
pub mod identity;
#[cfg(feature = "proxy")]
pub mod inside;
pub mod peer;
pub mod prune;
pub mod record;
pub mod sent;
#[cfg(feature = "proxy")]
pub mod server;
pub mod talk;
#[cfg(feature = "proxy")]
mod tunnel;

#[cfg(test)]
mod tests;

use std::net::SocketAddr;

/// Why a proxy was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// Others could send requests through it, with the keys of its user.
    #[error("{0} can be reached by others; give a token that clients have to send, or listen on 127.0.0.1")]
    Exposed(SocketAddr),
    /// The given address is no address of a provider.
    #[error("{0} is no address of a provider; give one such as https://api.anthropic.com")]
    Upstream(String),
    /// The address cannot be had.
    #[error("cannot listen on {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The cause.
        source: std::io::Error,
    },
    /// The runtime, or a part of the system that it needs, did not start.
    #[error("cannot start")]
    Start(#[source] std::io::Error),
}

/// A URL without the name and the password before its host.
///
/// ```
/// # use acpdb_live::proxy::without_name;
/// assert_eq!(without_name("https://ada:secret@gateway:8443/v1/@x"), "https://gateway:8443/v1/@x");
/// assert_eq!(without_name("https://api.anthropic.com?to=@x"), "https://api.anthropic.com?to=@x");
/// ```
pub fn without_name(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let host = host.rsplit('@').next().unwrap_or(host);
    if scheme.is_empty() { format!("{host}{path}") } else { format!("{scheme}://{host}{path}") }
}

/// Checks whether a proxy may listen on an address.
///
/// # Errors
/// If other machines can reach it, and it is for this user only.
pub const fn may_listen(address: SocketAddr, clients: access::Clients) -> Result<(), ProxyError> {
    if matches!(clients, access::Clients::Any) || address.ip().is_loopback() {
        Ok(())
    } else {
        Err(ProxyError::Exposed(address))
    }
}
