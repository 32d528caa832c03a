//! Requests over HTTP that two readers could read in two ways. Pure.
//!
//! A server judges a request by its `Host`, its `Origin` and its token, and a header that stands twice has two values: one for this judge and one
//! for the next reader. The same holds for a target that names another server than `Host` does. Such requests come from no client that has to be
//! served, so each is refused as malformed.

/// The status of HTTP for a request that is not understood.
pub const MALFORMED: u16 = 400;

/// Headers that tell who asks, of whom, and where the request ends.
const SINGLE: [&str; 6] =
    ["host", "origin", "authorization", "x-acpdb-token", "content-length", "transfer-encoding"];

/// Why a request has two meanings; `None`: it has one.
///
/// `count` tells how often a header stands in it. `target` is the server that its first line names, if it names one, and `host` the value of `Host`.
pub fn ambiguity(
    count: &dyn Fn(&str) -> usize,
    target: Option<&str>,
    host: Option<&str>,
) -> Option<&'static str> {
    if SINGLE.iter().any(|name| count(name) > 1) {
        return Some("a header stands twice in the request that may stand there once");
    }
    let is_other = |target: &str| !host.is_some_and(|host| host.eq_ignore_ascii_case(target));
    target
        .is_some_and(is_other)
        .then_some("the request names one server in its first line and another in Host")
}

/// As [`ambiguity`], of a request of hyper's.
#[cfg(any(feature = "mcp-http", feature = "proxy"))]
pub(crate) fn two_meanings<B>(request: &hyper::Request<B>) -> Option<&'static str> {
    let count = |name: &str| request.headers().get_all(name).iter().count();
    let host = request.headers().get(hyper::header::HOST).and_then(|host| host.to_str().ok());
    ambiguity(&count, request.uri().authority().map(hyper::http::uri::Authority::as_str), host)
}

/// Lets the connection end behind an answer: where a request has two meanings, the bytes behind it may be its body or another request.
#[cfg(any(feature = "mcp-http", feature = "proxy"))]
pub(crate) fn last<B>(mut answer: hyper::Response<B>) -> hyper::Response<B> {
    answer.headers_mut().insert(hyper::header::CONNECTION, hyper::header::HeaderValue::from_static("close"));
    answer
}

/// Whether the text is exactly the number of a port, as all programs write it.
pub fn is_port(text: &str, port: u16) -> bool {
    text == port.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_with_two_meanings_has_a_reason_to_be_refused() {
        let own = Some("127.0.0.1:4142");
        for (headers, target, host, is_refused) in [
            (&["host"][..], None, own, false),
            (&["host", "origin", "accept", "accept", "cookie"], None, own, false),
            (&["host", "host"], None, own, true),
            (&["origin", "host", "origin"], None, own, true),
            (&["x-acpdb-token", "x-acpdb-token"], None, own, true),
            (&["authorization", "authorization"], None, own, true),
            (&["content-length", "content-length"], None, own, true),
            (&["transfer-encoding", "transfer-encoding"], None, own, true),
            (&["host"], own, own, false),
            (&["host"], Some("LOCALHOST:1"), Some("localhost:1"), false),
            (&["host"], Some("site.example"), own, true),
            (&["host"], own, Some("site.example"), true),
            (&["host"], Some("user@127.0.0.1:4142"), own, true),
            (&[], own, None, true),
        ] {
            let count = |name: &str| headers.iter().filter(|header| **header == name).count();
            let said = ambiguity(&count, target, host);
            assert_eq!(said.is_some(), is_refused, "{headers:?} {target:?} {host:?}");
        }
    }

    #[test]
    fn a_port_has_one_spelling() {
        for (text, is_it) in
            [("80", true), ("080", false), ("+80", false), (" 80", false), ("", false), ("8080", false)]
        {
            assert_eq!(is_port(text, 80), is_it, "{text:?}");
        }
    }
}
