//! The programs that a server on this machine answers.
//!
//! An address of this machine can be reached by all of its users and by every page in a browser, and a store is for one user. So a client shows a
//! token, in a header or in the address that it is given: `/key/TOKEN` before the path. Programs that take nothing but an address can show it, too.

use std::net::SocketAddr;
use std::sync::Arc;

use super::peer;

/// The part of a path before a token.
const BEFORE: &str = "/key/";

/// The clients from whom a token is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Clients {
    /// Programs of this user, called by a name of this machine. Where the system says whose a connection is, it is looked up.
    OfThisUser,
    /// All that have the token.
    Any,
}

/// The token that clients have to show, and who may.
#[derive(Clone)]
pub struct ClientAccess {
    token: Arc<str>,
    /// Who may show it.
    pub clients: Clients,
}

impl std::fmt::Debug for ClientAccess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").field("clients", &self.clients).finish_non_exhaustive()
    }
}

impl ClientAccess {
    /// `None`: an empty token guards nothing.
    pub fn new(token: &str, clients: Clients) -> Option<Self> {
        (!token.is_empty()).then(|| Self { token: token.into(), clients })
    }

    /// Whether a token is the one that is asked for. It takes the same time whatever is given.
    pub fn knows(&self, given: &[u8]) -> bool {
        is_same(given, self.token.as_bytes())
    }

    /// Whether a connection is served at all.
    pub fn takes(&self, peer: SocketAddr, own: Option<SocketAddr>) -> bool {
        self.clients == Clients::Any
            || !peer::can_tell()
            || own.is_some_and(|own| peer::is_of_this_user(peer, own))
    }
}

/// A path without the token that stands before it, and that token.
pub fn keyed(path: &str) -> (&str, Option<&str>) {
    let Some(rest) = path.strip_prefix(BEFORE) else { return (path, None) };
    match rest.find('/') {
        Some(end) if end > 0 => (rest.get(end..).unwrap_or("/"), rest.get(..end)),
        _ => (path, None),
    }
}

/// The address that shows a token: the one to give to a program.
pub fn address(listening: SocketAddr, token: &str) -> String {
    format!("http://{listening}{BEFORE}{token}")
}

/// Compares all bytes, even after a difference: the time that this takes tells nothing of the token.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let differing = given.iter().zip(token).fold(0, |bits, (one, other)| bits | (one ^ other));
    given.len() == token.len() && differing == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_stands_before_the_path() {
        for (path, want) in [
            ("/key/abc/v1/messages?x=/y", ("/v1/messages?x=/y", Some("abc"))),
            ("/key/abc/acp/s1/v1/messages", ("/acp/s1/v1/messages", Some("abc"))),
            ("/key/abc/", ("/", Some("abc"))),
            ("/key/abc", ("/key/abc", None)),
            ("/key//v1", ("/key//v1", None)),
            ("/v1/key/abc/", ("/v1/key/abc/", None)),
        ] {
            assert_eq!(keyed(path), want, "{path}");
        }
        assert!(ClientAccess::new("", Clients::Any).is_none());
        let access = ClientAccess::new("secret", Clients::OfThisUser).unwrap();
        for (given, is_known) in [("secret", true), ("secre", false), ("secrets", false), ("", false)] {
            assert_eq!(access.knows(given.as_bytes()), is_known, "{given}");
        }
        assert!(!format!("{access:?}").contains("secret"));
    }
}
