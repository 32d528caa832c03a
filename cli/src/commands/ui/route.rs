//! The route of a request, by its words alone: no store, no socket.
//!
//! A page of another site can send requests to this machine, also by a name of that site which resolves to this machine. So the
//! name in `Host` has to be one of this machine's own, an `Origin` has to be this server's, and the address holds a token that no
//! other page knows. Nothing changes the store: only GET and HEAD have answers.

use acpdb_engine::ids::{Seq, StreamId};
use acpdb_live::requests::{MALFORMED, is_port};

/// The target of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Route {
    /// The index over sessions.
    Index,
    /// The data of the index, as JSON.
    IndexData,
    /// The address of the index without its last slash.
    Redirect,
    /// A message for each time that the store grew.
    Changes,
    /// The page of a session.
    Page(StreamId),
    /// The data of a page, as JSON, if it grew after a seq.
    PageData(StreamId, Seq),
    /// Texts that have these words, as JSON.
    Search(String),
    /// Refused, with the reason.
    Refused(Refusal),
}

/// Most words of a search: each text is searched for each of them.
const WORD_COUNT_MAX: usize = 64;

/// The reason why there is no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The request could be read in two ways; why.
    TwoMeanings(&'static str),
    /// The request is not for this server's own names.
    Host,
    /// The request comes from a page of another server.
    Origin,
    /// Only reading is possible.
    Method,
    /// The token is missing or wrong.
    Token,
    /// There is no such place.
    Place,
    /// A search of more words than [`WORD_COUNT_MAX`].
    Words,
}

impl Refusal {
    /// Status and text.
    pub(super) const fn says(self) -> (u16, &'static str) {
        match self {
            Self::TwoMeanings(why) => (MALFORMED, why),
            Self::Host => (421, "this server answers to 127.0.0.1, localhost and [::1] only"),
            Self::Origin => (403, "pages of other servers get no answer"),
            Self::Method => (405, "this server only shows; it takes GET and HEAD"),
            Self::Token => (403, "the token is missing or wrong; open the address that acpdb ui has printed"),
            Self::Words => (400, "a search takes 64 words at most"),
            Self::Place => (404, "there is nothing here; begin at the address that acpdb ui has printed"),
        }
    }
}

/// The parts of a request that choose its route.
#[derive(Debug, Clone, Copy)]
pub(super) struct RouteKey<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    pub(super) query: &'a str,
    pub(super) host: Option<&'a str>,
    pub(super) origin: Option<&'a str>,
}

/// The route of a request to a server on `port` with `token`.
pub(super) fn route(asked: RouteKey<'_>, port: u16, token: &str) -> Route {
    match admitted(asked, port, token) {
        Ok(rest) => place(rest, asked.query),
        Err(refusal) => Route::Refused(refusal),
    }
}

/// The path after the token, if the request may be answered.
fn admitted<'a>(asked: RouteKey<'a>, port: u16, token: &str) -> Result<&'a str, Refusal> {
    let own = |name: &str| {
        let (host, named) =
            name.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')).unwrap_or((name, "80"));
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|own| host.eq_ignore_ascii_case(own))
            && is_port(named, port)
    };
    if !asked.host.is_some_and(own) {
        return Err(Refusal::Host);
    }
    if asked.origin.is_some_and(|origin| !origin.strip_prefix("http://").is_some_and(own)) {
        return Err(Refusal::Origin);
    }
    if !matches!(asked.method, "GET" | "HEAD") {
        return Err(Refusal::Method);
    }
    let path = asked.path.strip_prefix('/').unwrap_or_default();
    let (given, rest) = path.split_at(path.find('/').unwrap_or(path.len()));
    // All bytes are compared, even after a difference: the time of the comparison tells nothing of the token.
    let differing = given.bytes().zip(token.bytes()).fold(0, |bits, (one, other)| bits | (one ^ other));
    let is_same = given.len() == token.len() && differing == 0 && !token.is_empty();
    if is_same { Ok(rest) } else { Err(Refusal::Token) }
}

fn place(rest: &str, query: &str) -> Route {
    let after = query.split('&').find_map(|part| part.strip_prefix("after=")).unwrap_or("0");
    let parts: Vec<&str> = rest.split('/').skip(1).collect();
    let found = match parts.as_slice() {
        [] => Some(Route::Redirect),
        [""] => Some(Route::Index),
        ["data"] => Some(Route::IndexData),
        ["changes"] => Some(Route::Changes),
        ["search"] => {
            let words = query.split('&').find_map(|part| part.strip_prefix("q=")).map(decoded);
            words.map(|words| match words.split_whitespace().count() {
                0..=WORD_COUNT_MAX => Route::Search(words),
                _ => Route::Refused(Refusal::Words),
            })
        }
        ["session", stream] => StreamId::from_hex(stream).map(Route::Page),
        ["session", stream, "data"] => StreamId::from_hex(stream)
            .zip(after.parse().ok())
            .map(|(stream, after)| Route::PageData(stream, Seq(after))),
        _ => None,
    };
    found.unwrap_or(Route::Refused(Refusal::Place))
}

/// A value of a query without the escapes of addresses. Signs that begin no escape stand for themselves.
fn decoded(value: &str) -> String {
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        // Signs behind `%` that are no digits are text.
        let digits = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        // As above: no number, no escape.
        let escaped = digits.filter(|_| *first == b'%').and_then(|two| u8::from_str_radix(two, 16).ok());
        bytes.push(escaped.unwrap_or(if *first == b'+' { b' ' } else { *first }));
        rest = if escaped.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn said(method: &str, address: &str, host: Option<&str>, origin: Option<&str>) -> String {
        let (path, query) = address.split_once('?').unwrap_or((address, ""));
        match route(RouteKey { method, path, query, host, origin }, 4142, TOKEN) {
            Route::Refused(refusal) => format!("{refusal:?} {}", refusal.says().0),
            Route::Page(stream) => format!("Page {}", stream.to_hex().trim_end_matches('0')),
            Route::PageData(stream, seq) => {
                format!("PageData {} {}", stream.to_hex().trim_end_matches('0'), seq.get())
            }
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn places_are_found_by_their_addresses() {
        let session = format!("/{TOKEN}/session/ab{}", "0".repeat(30));
        for (address, expected) in [
            (format!("/{TOKEN}/"), "Index"),
            (format!("/{TOKEN}"), "Redirect"),
            (format!("/{TOKEN}/data"), "IndexData"),
            (format!("/{TOKEN}/data?after=7"), "IndexData"),
            (format!("/{TOKEN}/changes"), "Changes"),
            (session.clone(), "Page ab"),
            (format!("{session}/data"), "PageData ab 0"),
            (format!("{session}/data?x=1&after=812"), "PageData ab 812"),
            (format!("{session}/data?after=-1"), "Place 404"),
            (format!("{session}/"), "Place 404"),
            (format!("/{TOKEN}/search?q=a%20b+%c3%bc%2"), "Search(\"a b ü%2\")"),
            (format!("/{TOKEN}/search?q={}", "a+".repeat(65)), "Words 400"),
            (format!("/{TOKEN}/search"), "Place 404"),
            (format!("/{TOKEN}/session/zz"), "Place 404"),
            (format!("/{TOKEN}/../etc/passwd"), "Place 404"),
            (format!("/{TOKEN}//"), "Place 404"),
            ("/".to_owned(), "Token 403"),
            (String::new(), "Token 403"),
            ("/favicon.ico".to_owned(), "Token 403"),
            (format!("/{}/", &TOKEN[..15]), "Token 403"),
            (format!("/{TOKEN}0/"), "Token 403"),
            (format!("/{}/", TOKEN.to_uppercase()), "Token 403"),
        ] {
            assert_eq!(said("GET", &address, Some("127.0.0.1:4142"), None), expected, "{address}");
        }
    }

    #[test]
    fn only_reading_requests_to_own_names_from_own_pages_are_answered() {
        let index = format!("/{TOKEN}/");
        for (method, host, origin, expected) in [
            ("HEAD", Some("localhost:4142"), None, "Index"),
            ("GET", Some("LOCALHOST:4142"), None, "Index"),
            ("GET", Some("127.0.0.1:+4142"), None, "Host 421"),
            ("GET", Some("127.0.0.1:04142"), None, "Host 421"),
            ("GET", Some("site@127.0.0.1:4142"), None, "Host 421"),
            ("GET", Some("[::1]:4142"), Some("http://[::1]:4142"), "Index"),
            ("GET", Some("127.0.0.1:4142"), Some("http://localhost:4142"), "Index"),
            ("POST", Some("127.0.0.1:4142"), None, "Method 405"),
            ("DELETE", Some("127.0.0.1:4142"), None, "Method 405"),
            ("GET", None, None, "Host 421"),
            ("GET", Some("evil.example:4142"), None, "Host 421"),
            ("GET", Some("127.0.0.1.evil.example:4142"), None, "Host 421"),
            ("GET", Some("127.0.0.1:4143"), None, "Host 421"),
            ("GET", Some("127.0.0.1"), None, "Host 421"),
            ("GET", Some("[::1]"), None, "Host 421"),
            ("GET", Some(""), None, "Host 421"),
            ("GET", Some("127.0.0.1:4142"), Some("http://evil.example"), "Origin 403"),
            ("GET", Some("127.0.0.1:4142"), Some("https://127.0.0.1:4142"), "Origin 403"),
            ("GET", Some("127.0.0.1:4142"), Some("null"), "Origin 403"),
            ("GET", Some("127.0.0.1:4142"), Some("http://localhost:8080"), "Origin 403"),
        ] {
            assert_eq!(said(method, &index, host, origin), expected, "{method} {host:?} {origin:?}");
        }
        assert_eq!(
            route(
                RouteKey { method: "GET", path: "//", query: "", host: Some("localhost:4142"), origin: None },
                4142,
                "",
            ),
            Route::Refused(Refusal::Token),
            "no token is no way in"
        );
    }
}
