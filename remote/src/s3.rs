//! Objects in a bucket of S3, or of a server that speaks its protocol.
//!
//! ```text
//! create   PUT If-None-Match: *     412: taken       409: again       no answer: in doubt, the caller looks
//! swap     PUT If-Match: ETAG       412, 404: moved
//! 429, 503                          not executed: again after a pause, then [`RemoteError::Slow`]
//! ```
//!
//! Each request is signed for itself alone and for minutes; each PUT has a checksum, so that a server keeps no part of an object. A bucket whose
//! conditions do nothing is found by a probe before the first of them counts. No message holds an address that was signed, or a credential.

mod answer;
mod credentials;
mod place;
mod profile;
#[cfg(any(test, feature = "testing"))]
mod server;
mod settings;

use std::io::Read;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use acpdb_engine::locks::steady;
use acpdb_engine::storage::{Entropy as _, SystemEntropy};
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Bucket, Credentials, Map, Method, S3Action};
use ureq::http::Request;

use self::answer::{S3Answer, checksum};
use self::credentials::CredentialSource;
pub use self::place::S3Place;
#[cfg(any(test, feature = "testing"))]
pub use self::server::{S3Conditions, S3Fault, S3Plan, S3Server};
pub use self::settings::S3Settings;
use crate::remote::{Created, ListedObject, ObjectTag, Remote, RemoteError, Swapped, is_key, read_exactly};

/// How long a signed request is good for.
const SIGNED_FOR: Duration = Duration::from_secs(300);
/// How often a request is made that was not executed, and the first pause; each further pause is twice as long.
const CALL_COUNT: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// Requests that are made at a time.
const CALLS_AT_ONCE: usize = 32;
/// No object has a byte behind this place.
const OFFSET_MAX: u64 = i64::MAX as u64;

/// Objects below a prefix of a bucket.
pub struct S3Remote {
    place: S3Place,
    bucket: Bucket,
    agent: ureq::Agent,
    source: CredentialSource,
    credentials: Mutex<Option<Credentials>>,
    is_alone: bool,
    pause: Duration,
    /// Whether a probe has shown that conditions are kept.
    is_able: Mutex<bool>,
    has_versions: AtomicBool,
}

impl std::fmt::Debug for S3Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("S3Remote").field("place", &self.place).finish_non_exhaustive()
    }
}

/// A condition of a PUT.
enum PutCondition<'t> {
    Always,
    Absent,
    Is(&'t ObjectTag),
}

fn broken(what: impl Into<String>) -> RemoteError {
    RemoteError::Broken { what: what.into() }
}

impl S3Remote {
    /// Objects of a place, by the settings of the user. Makes no request.
    ///
    /// # Errors
    /// [`RemoteError::Refused`] for an endpoint that is none, or is plain HTTP beyond this machine; [`RemoteError::Broken`] if roots of certificates cannot be read.
    pub fn new(place: S3Place, settings: &S3Settings) -> Result<Self, RemoteError> {
        let bucket = settings.bucket(&place)?;
        Ok(Self {
            place,
            bucket,
            agent: settings.agent()?,
            source: settings.source.clone(),
            credentials: Mutex::new(None),
            is_alone: settings.is_alone,
            pause: settings.pause.unwrap_or(PAUSE),
            is_able: Mutex::new(false),
            has_versions: AtomicBool::new(false),
        })
    }

    /// The whole key of an object.
    fn whole(&self, key: &str) -> Result<String, RemoteError> {
        if is_key(key) {
            return Ok(format!("{}{key}", self.place.prefix()));
        }
        Err(RemoteError::Refused { what: format!("the key {key:?}") })
    }

    /// The credentials that were read last, or those that are there now.
    fn credentials(&self, is_anew: bool) -> Result<Credentials, RemoteError> {
        let mut known = steady(&self.credentials);
        if is_anew || known.is_none() {
            *known = Some(self.source.read()?);
        }
        known.clone().ok_or_else(|| RemoteError::Refused { what: "requests without credentials".to_owned() })
    }

    /// Makes a request, again if it was not executed; `what` names it in errors.
    fn call(
        &self,
        what: &str,
        method: Method,
        sign: &dyn Fn(&Credentials) -> String,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> Result<S3Answer, RemoteError> {
        let mut pause = self.pause;
        let mut credentials = self.credentials(false)?;
        let mut is_reread = false;
        for turn in 1.. {
            let answer = self.send(what, method, &sign(&credentials), headers, body)?;
            if answer.has_version {
                self.has_versions.store(true, Ordering::SeqCst);
            }
            if answer.is_refusal() && !is_reread {
                // They may have been renewed since they were read.
                is_reread = true;
                let again = self.credentials(true)?;
                if again != credentials {
                    credentials = again;
                    continue;
                }
            }
            if !answer.is_to_repeat() || turn >= CALL_COUNT {
                return Ok(answer);
            }
            sleep(pause);
            pause = pause.saturating_mul(2);
        }
        Err(broken(what))
    }

    fn send(
        &self,
        what: &str,
        method: Method,
        url: &str,
        headers: &[(&str, String)],
        body: &[u8],
    ) -> Result<S3Answer, RemoteError> {
        let mut request = Request::builder().method(method.to_str()).uri(url);
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        // The error of a request may hold its address, which is signed.
        let failed = |_| broken(format!("{what}: it cannot be made"));
        let answer = if matches!(method, Method::Put) {
            self.agent.run(request.body(body).map_err(failed)?)
        } else {
            self.agent.run(request.body(()).map_err(failed)?)
        };
        S3Answer::read(what, answer)
    }

    fn put_object(
        &self,
        what: &str,
        key: &str,
        bytes: &[u8],
        when: &PutCondition<'_>,
    ) -> Result<S3Answer, RemoteError> {
        let mut headers = vec![("x-amz-checksum-crc32c", checksum(bytes))];
        match when {
            PutCondition::Always => {}
            PutCondition::Absent => headers.push(("if-none-match", "*".to_owned())),
            PutCondition::Is(tag) => headers.push(("if-match", tag.0.clone())),
        }
        let sign = |credentials: &Credentials| {
            let mut action = self.bucket.put_object(Some(credentials), key);
            signed(&mut action, &headers)
        };
        self.call(what, Method::Put, &sign, &headers, bytes)
    }

    fn get_object(&self, what: &str, key: &str, range: Option<&Range<u64>>) -> Result<S3Answer, RemoteError> {
        let written = |range: &Range<u64>| match range.end {
            // Servers were seen that read no such number, and answer with nothing.
            end if end > OFFSET_MAX => format!("bytes={}-", range.start),
            // An end of 0 is one of nothing, and no range begins behind it.
            end => format!("bytes={}-{}", range.start, end.saturating_sub(1)),
        };
        let headers: Vec<_> = range.map(|range| ("range", written(range))).into_iter().collect();
        let sign =
            |credentials: &Credentials| signed(&mut self.bucket.get_object(Some(credentials), key), &headers);
        self.call(what, Method::Get, &sign, &headers, &[])
    }

    fn head_object(&self, what: &str, key: &str) -> Result<S3Answer, RemoteError> {
        let sign =
            |credentials: &Credentials| signed(&mut self.bucket.head_object(Some(credentials), key), &[]);
        self.call(what, Method::Head, &sign, &[], &[])
    }

    fn delete_object(&self, what: &str, key: &str) -> Result<(), RemoteError> {
        let sign =
            |credentials: &Credentials| signed(&mut self.bucket.delete_object(Some(credentials), key), &[]);
        let answer = self.call(what, Method::Delete, &sign, &[], &[])?;
        match answer.status {
            200 | 204 => Ok(()),
            404 if !answer.is_bucket_missing() => Ok(()),
            _ => Err(answer.error(what)),
        }
    }

    /// Finds out once whether the bucket keeps conditions, before one counts.
    fn probe(&self) -> Result<(), RemoteError> {
        // It is set once, by one step.
        let mut is_able = steady(&self.is_able);
        if *is_able {
            return Ok(());
        }
        let mut drawn = [0; 8];
        let filled = SystemEntropy.fill(&mut drawn);
        filled.map_err(|error| broken(format!("drawing random bytes: {error}")))?;
        let name = format!("probe/{:016x}", u64::from_le_bytes(drawn));
        let (what, key) = (format!("probing {name}"), self.whole(&name)?);
        let unable =
            |of: &str| Err(RemoteError::Unable { what: format!("keep the condition {of} of a PUT") });
        let made = self.put_object(&what, &key, b"1", &PutCondition::Absent)?;
        let tag = match made.status {
            _ if made.is_done() => made.tag(&what)?,
            // The object is a probe's own: after an answer that was lost, it is there.
            412 => self.get_object(&what, &key, None)?.tag(&what)?,
            _ => return Err(made.error(&what)),
        };
        let again = self.put_object(&what, &key, b"2", &PutCondition::Absent)?;
        let other = ObjectTag("\"00000000000000000000000000000000\"".to_owned());
        let stale = self.put_object(&what, &key, b"3", &PutCondition::Is(&other))?;
        let swapped = self.put_object(&what, &key, b"4", &PutCondition::Is(&tag))?;
        self.delete_object(&what, &key)?;
        match (again.status, stale.status) {
            _ if again.is_done() => return unable("If-None-Match"),
            (412, _) if stale.is_done() => return unable("If-Match"),
            (412, 412) if swapped.is_done() => {}
            (412, 412) => return Err(swapped.error(&what)),
            (412, _) => return Err(stale.error(&what)),
            _ => return Err(again.error(&what)),
        }
        *is_able = true;
        Ok(())
    }
}

/// The address of a request, signed with its headers.
fn signed<'a>(action: &mut impl S3Action<'a>, headers: &[(&'static str, String)]) -> String {
    let map: &mut Map<'a> = action.headers_mut();
    for (name, value) in headers {
        map.insert(*name, value.clone());
    }
    action.sign(SIGNED_FOR).to_string()
}

impl Remote for S3Remote {
    fn create(&self, key: &str, bytes: &[u8]) -> Result<Created, RemoteError> {
        let (what, whole) = (format!("creating {key}"), self.whole(key)?);
        if self.is_alone {
            return match self.get(key, Some(0..0))? {
                Some(_) => Ok(Created::Taken),
                None => self.put(key, &mut &*bytes, bytes.len() as u64).map(Created::Here),
            };
        }
        self.probe()?;
        let answer = self.put_object(&what, &whole, bytes, &PutCondition::Absent)?;
        match answer.status {
            _ if answer.is_done() => Ok(Created::Here(answer.tag(&what)?)),
            412 => Ok(Created::Taken),
            _ => Err(answer.error(&what)),
        }
    }

    fn swap(&self, key: &str, bytes: &[u8], was: &ObjectTag) -> Result<Swapped, RemoteError> {
        let (what, whole) = (format!("swapping {key}"), self.whole(key)?);
        if self.is_alone {
            return match self.get(key, Some(0..0))? {
                Some((_, found)) if found == *was => {
                    self.put(key, &mut &*bytes, bytes.len() as u64).map(Swapped::Here)
                }
                _ => Ok(Swapped::Moved),
            };
        }
        self.probe()?;
        let answer = self.put_object(&what, &whole, bytes, &PutCondition::Is(was))?;
        match answer.status {
            _ if answer.is_done() => Ok(Swapped::Here(answer.tag(&what)?)),
            412 => Ok(Swapped::Moved),
            404 if !answer.is_bucket_missing() => Ok(Swapped::Moved),
            _ => Err(answer.error(&what)),
        }
    }

    fn put(&self, key: &str, bytes: &mut dyn Read, length: u64) -> Result<ObjectTag, RemoteError> {
        let (what, whole) = (format!("putting {key}"), self.whole(key)?);
        let bytes = read_exactly(bytes, length)?;
        let answer = self.put_object(&what, &whole, &bytes, &PutCondition::Always)?;
        if answer.is_done() { answer.tag(&what) } else { Err(answer.error(&what)) }
    }

    fn get(&self, key: &str, range: Option<Range<u64>>) -> Result<Option<(Vec<u8>, ObjectTag)>, RemoteError> {
        let (what, whole) = (format!("reading {key}"), self.whole(key)?);
        let is_nothing = range.as_ref().is_some_and(|range| range.is_empty() || range.start > OFFSET_MAX);
        // Of nothing one byte is asked for: the error of a HEAD has no code.
        let asked = if is_nothing { Some(0..1) } else { range.clone() };
        let mut answer = self.get_object(&what, &whole, asked.as_ref())?;
        if answer.status == 416 {
            // The range begins behind the end of the object.
            answer = self.head_object(&what, &whole)?;
        }
        match answer.status {
            // A server that knows of no ranges answers with all of the object.
            200 => {
                let tag = answer.tag(&what)?;
                Ok(Some((crate::remote::within(&answer.body, range.as_ref()), tag)))
            }
            206 => {
                let tag = answer.tag(&what)?;
                Ok(Some((if is_nothing { Vec::new() } else { answer.body }, tag)))
            }
            404 if !answer.is_bucket_missing() => Ok(None),
            _ => Err(answer.error(&what)),
        }
    }

    fn list(&self, under: &str, after: &str) -> Result<Vec<ListedObject>, RemoteError> {
        let what = format!("listing {under}");
        let prefix = self.place.prefix();
        let sign = |credentials: &Credentials| {
            let mut action = self.bucket.list_objects_v2(Some(credentials));
            action.with_prefix(format!("{prefix}{under}"));
            if !after.is_empty() {
                action.with_start_after(format!("{prefix}{after}"));
            }
            signed(&mut action, &[])
        };
        let answer = self.call(&what, Method::Get, &sign, &[], &[])?;
        if answer.status != 200 {
            return Err(answer.error(&what));
        }
        let text =
            String::from_utf8(answer.body).map_err(|_| broken(format!("{what}: the list is no text")))?;
        let listed = ListObjectsV2::parse_response(&text);
        let listed = listed.map_err(|_| broken(format!("{what}: the answer is no list")))?;
        let found = listed.contents.into_iter().filter_map(|found| {
            let key = found.key.strip_prefix(prefix)?.to_owned();
            (key.starts_with(under) && key.as_str() > after)
                .then_some(ListedObject { key, bytes: found.size.unwrap_or(0) })
        });
        Ok(found.collect())
    }

    fn delete(&self, key: &str) -> Result<(), RemoteError> {
        self.delete_object(&format!("deleting {key}"), &self.whole(key)?)
    }

    fn has_versions(&self) -> bool {
        self.has_versions.load(Ordering::SeqCst)
    }

    fn calls_at_once(&self) -> usize {
        CALLS_AT_ONCE
    }
}
