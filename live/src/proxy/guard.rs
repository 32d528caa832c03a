//! Requests that a proxy refuses. Pure.
//!
//! A page of any site can send requests to this machine, also by a name of its own that it points here: it could put words into
//! sessions. Browsers name the page of such a request (`Origin`) and the name that it was sent to (`Host`); the programs that a
//! proxy serves run outside of browsers. All show a token; where only this user's programs are served, the names count as well.

use super::access::{ClientAccess, Clients};

/// The facts that a client sends about itself.
#[derive(Clone, Copy, Default, Debug)]
pub struct Caller<'a> {
    /// The name by which the proxy was called.
    pub host: Option<&'a str>,
    /// The page that calls.
    pub origin: Option<&'a str>,
    /// The token that came with it.
    pub token: Option<&'a [u8]>,
}

/// Why a request is not passed on, as a status of HTTP and in words; `None`: it is passed on.
pub fn refused(caller: Caller<'_>, access: &ClientAccess) -> Option<(u16, &'static str)> {
    if !caller.token.is_some_and(|given| access.knows(given)) {
        return Some((
            401,
            "the token is missing; send it in x-acpdb-token, or put /key/TOKEN before the path",
        ));
    }
    if access.clients == Clients::Any {
        return None;
    }
    if caller.host.is_some_and(|host| !is_here(host)) {
        return Some((421, "it is reached by a name of this machine alone"));
    }
    let is_foreign = |origin: &str| {
        let (scheme, authority) = origin.split_once("://").unwrap_or(("", ""));
        // An editor's own window is no page of a site, but a page that hides its origin may be a page of any site.
        origin == "null" || (matches!(scheme, "http" | "https") && !is_here(authority))
    };
    let is_foreign = caller.origin.is_some_and(is_foreign);
    is_foreign.then_some((403, "pages of other sites are not answered"))
}

/// Whether a name, with or without a port, can only mean this machine.
fn is_here(authority: &str) -> bool {
    let (name, port) = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some(parts) => parts,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return false;
    }
    let name = name.to_ascii_lowercase();
    let is_loopback = name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_pages_and_by_foreign_names_are_refused() {
        for (host, origin, status) in [
            (Some("127.0.0.1:4141"), None, 0),
            (Some("localhost:4141"), None, 0),
            (Some("LOCALHOST"), None, 0),
            (Some("shop.localhost:4141"), None, 0),
            (Some("[::1]:4141"), None, 0),
            (Some("127.8.9.1"), None, 0),
            (None, None, 0),
            (Some("rebound.example:4141"), None, 421),
            (Some("localhost.example:4141"), None, 421),
            (Some("127.0.0.1.example"), None, 421),
            (Some("192.168.1.2:4141"), None, 421),
            (Some(""), None, 421),
            (Some("localhost:80@site.example"), None, 421),
            (Some("localhost@site.example"), None, 421),
            (Some("[::1].site.example"), None, 421),
            (Some("127.0.0.1:4141"), Some("https://site.example"), 403),
            (Some("127.0.0.1:4141"), Some("http://127.0.0.1.site.example"), 403),
            (Some("127.0.0.1:4141"), Some("https://"), 403),
            (Some("127.0.0.1:4141"), Some("null"), 403),
            (Some("127.0.0.1:4141"), Some("http://localhost:3000"), 0),
            (Some("127.0.0.1:4141"), Some("vscode-file://vscode-app"), 0),
            (Some("rebound.example:4141"), Some("http://rebound.example:4141"), 421),
        ] {
            let caller = Caller { host, origin, token: Some(b"own") };
            let access = ClientAccess::new("own", Clients::OfThisUser).unwrap();
            let said = refused(caller, &access).map_or(0, |(status, _)| status);
            assert_eq!(said, status, "{host:?} {origin:?}");
        }
    }

    #[test]
    fn a_token_says_more_than_names_if_others_are_served() {
        let caller =
            |token| Caller { host: Some("proxy.example"), origin: Some("https://app.example"), token };
        for (given, is_refused) in [
            (Some(&b"secret"[..]), false),
            (Some(b"secre"), true),
            (Some(b"secret2"), true),
            (Some(b""), true),
            (None, true),
        ] {
            let said = refused(caller(given), &ClientAccess::new("secret", Clients::Any).unwrap());
            assert_eq!(said.map(|(status, _)| status), is_refused.then_some(401), "{given:?}");
        }
    }
}
