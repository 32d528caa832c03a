//! Answers of S3, and what a caller can do about each.

use std::io::Read as _;

use base64ct::{Base64, Encoding as _};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822};
use ureq::http::{HeaderMap, Response};

use crate::remote::{ObjectTag, RemoteError};

/// No object of the chain is longer, and no list.
const ANSWER_BYTES_MAX: u64 = (1 << 30) + (1 << 16);
/// Bytes of an error that are looked at.
const ERROR_BYTES_MAX: u64 = 64 << 10;
/// Signatures are good for a quarter of an hour around the server's clock.
const SKEW_MAX: SignedDuration = SignedDuration::from_mins(14);

/// An answer, whatever its status.
pub(super) struct S3Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
    pub(super) has_version: bool,
    tag: Option<String>,
    /// The code of an error, such as `NoSuchKey`; empty: there is none.
    code: String,
    region: Option<String>,
    date: Option<Timestamp>,
}

/// The value of `x-amz-checksum-crc32c`.
pub(super) fn checksum(bytes: &[u8]) -> String {
    Base64::encode_string(&crc32c::crc32c(bytes).to_be_bytes())
}

fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    // A value that is no text is none of these.
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// The code in the body of an error.
fn code_in(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let code = text.split_once("<Code>").and_then(|(_, rest)| rest.split_once("</Code>"));
    let code = code.map(|(code, _)| code).filter(|code| code.len() <= 64).unwrap_or_default();
    code.chars().filter(char::is_ascii_alphanumeric).collect()
}

impl S3Answer {
    /// Reads an answer to its end. No answer is a doubt, unless nothing was sent.
    pub(super) fn read(
        what: &str,
        answer: Result<Response<ureq::Body>, ureq::Error>,
    ) -> Result<Self, RemoteError> {
        let answer = answer.map_err(|error| unanswered(what, &error))?;
        let status = answer.status().as_u16();
        let (parts, body) = answer.into_parts();
        let headers = &parts.headers;
        let is_error = status >= 300;
        let limit = if is_error { ERROR_BYTES_MAX } else { ANSWER_BYTES_MAX };
        let mut bytes = Vec::new();
        let read = body.into_reader().take(limit.saturating_add(1)).read_to_end(&mut bytes);
        // The status of an error says enough.
        if !is_error {
            read.map_err(|_| RemoteError::Doubt { what: what.to_owned() })?;
            if bytes.len() as u64 > limit {
                return Err(RemoteError::Broken { what: format!("{what}: more than {limit} bytes") });
            }
        }
        // A date that is none tells nothing.
        let date = header(headers, "date").and_then(|text| rfc2822::parse(&text).ok());
        Ok(Self {
            status,
            has_version: header(headers, "x-amz-version-id").is_some_and(|version| version != "null"),
            tag: header(headers, "etag"),
            code: if is_error { code_in(&bytes) } else { String::new() },
            region: header(headers, "x-amz-bucket-region"),
            date: date.map(|date| date.timestamp()),
            body: if is_error { Vec::new() } else { bytes },
        })
    }

    /// The tag of the object.
    pub(super) fn tag(&self, what: &str) -> Result<ObjectTag, RemoteError> {
        let tag = self.tag.clone().filter(|_| self.status < 300);
        tag.map(ObjectTag).ok_or_else(|| RemoteError::Broken { what: format!("{what}: no ETag came") })
    }

    /// Whether a PUT was executed.
    pub(super) const fn is_done(&self) -> bool {
        matches!(self.status, 200 | 201 | 204)
    }

    pub(super) fn is_bucket_missing(&self) -> bool {
        self.code == "NoSuchBucket"
    }

    /// Whether other credentials may help.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self.status, 401 | 403) || self.code == "ExpiredToken"
    }

    /// Whether it was not executed, and may be after a pause. 409: another condition on this object was being looked at.
    pub(super) fn is_to_repeat(&self) -> bool {
        match self.status {
            409 | 429 | 503 => true,
            400 => {
                matches!(self.code.as_str(), "BadDigest" | "RequestTimeout" | "XAmzContentChecksumMismatch")
            }
            _ => false,
        }
    }

    /// The error of an answer that no caller expects.
    pub(super) fn error(&self, what: &str) -> RemoteError {
        let code = if self.code.is_empty() { format!("status {}", self.status) } else { self.code.clone() };
        let told = format!("{what}: {code}");
        match (self.status, self.code.as_str()) {
            (_, "NoSuchBucket") => RemoteError::Refused { what: format!("{what}: there is no such bucket") },
            (_, "QuotaExceeded" | "XMinioStorageFull") | (507, _) => RemoteError::Full { what: told },
            (429 | 503, _) => RemoteError::Slow { what: told },
            (501, _) | (_, "NotImplemented") => {
                RemoteError::Unable { what: "keep the conditions of a PUT".to_owned() }
            }
            (301 | 307 | 308, _)
            | (400, "AuthorizationHeaderMalformed" | "IllegalLocationConstraintException") => {
                let region = self.region.as_deref().unwrap_or("another region");
                RemoteError::Refused { what: format!("{what}: the bucket is in {region}; set AWS_REGION") }
            }
            (401 | 403, _) | (_, "ExpiredToken") => RemoteError::Refused { what: self.refusal(what, &code) },
            // It was begun, or a server in between lost its answer.
            (409 | 408 | 500 | 502 | 504, _) => RemoteError::Doubt { what: told },
            _ => RemoteError::Broken { what: told },
        }
    }

    /// A refusal, with the clock named if that is why.
    fn refusal(&self, what: &str, code: &str) -> String {
        let skew = self.date.map(|date| date.duration_since(Timestamp::now()));
        match skew.filter(|skew| skew.abs() > SKEW_MAX || code == "RequestTimeTooSkewed") {
            Some(skew) => {
                let (seconds, is) =
                    (skew.abs().as_secs(), if skew.is_negative() { "ahead of" } else { "behind" });
                format!("{what}: {code}; the clock of this machine is {seconds} s {is} that of the server")
            }
            None => format!("{what}: {code}"),
        }
    }
}

/// The error of a request without an answer.
fn unanswered(what: &str, error: &ureq::Error) -> RemoteError {
    use ureq::Timeout;
    let refused = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    match error {
        // Nothing was sent.
        ureq::Error::HostNotFound => RemoteError::Broken { what: format!("{what}: no such host") },
        ureq::Error::ConnectionFailed | ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
            RemoteError::Broken { what: format!("{what}: no connection") }
        }
        ureq::Error::Io(error) if refused(error) => {
            RemoteError::Broken { what: format!("{what}: connection refused") }
        }
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => {
            RemoteError::Refused { what: format!("{what}: the certificate of the server is not trusted") }
        }
        ureq::Error::Io(_) | ureq::Error::Timeout(_) | ureq::Error::Protocol(_) => {
            RemoteError::Doubt { what: what.to_owned() }
        }
        // Others may hold the address, which is signed.
        _ => RemoteError::Broken { what: format!("{what}: the request cannot be made") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that was ahead was said to be a negative number of seconds behind.
    #[test]
    fn a_refusal_names_a_clock_that_is_wrong_and_on_which_side() {
        for (code, minutes, words) in [
            ("RequestTimeTooSkewed", Some(60), Some(" s behind that of the server")),
            ("RequestTimeTooSkewed", Some(-60), Some(" s ahead of that of the server")),
            ("RequestTimeTooSkewed", Some(-5), Some(" s ahead of that of the server")),
            ("AccessDenied", Some(20), Some(" s behind that of the server")),
            ("AccessDenied", Some(-20), Some(" s ahead of that of the server")),
            ("AccessDenied", Some(-5), None),
            ("RequestTimeTooSkewed", None, None),
        ] {
            let date = minutes.map(|minutes| Timestamp::now() + SignedDuration::from_mins(minutes));
            let answer = S3Answer {
                status: 403,
                body: Vec::new(),
                has_version: false,
                tag: None,
                code: code.to_owned(),
                region: None,
                date,
            };
            let told = answer.error("putting x").to_string();
            assert!(told.contains(code) && !told.contains('-'), "{told}");
            assert_eq!(told.contains("clock"), words.is_some(), "{told}");
            assert!(words.is_none_or(|words| told.contains(words)), "{told}");
        }
    }
}
