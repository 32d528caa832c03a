//! Settings of the variables `AWS_*` and of a user's profile: endpoint, region, style of addresses, certificates.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusty_s3::{Bucket, UrlStyle};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::credentials::{CredentialSource, credentials, refused};
use super::place::S3Place;
use super::profile::{AwsProfile, read_file};
use crate::remote::RemoteError;

/// Longest waits: for a connection, for a first byte of the answer, for a next one.
const CONNECT_MAX: Duration = Duration::from_secs(10);
const STEP_MAX: Duration = Duration::from_secs(60);

/// How a bucket is reached.
#[derive(Debug, Clone)]
pub struct S3Settings {
    /// Of another server than that of AWS.
    endpoint: Option<String>,
    region: String,
    /// `path` or `virtual`, if the profile says so.
    style: Option<String>,
    /// A file of certificates that are trusted in place of those of the system.
    roots: Option<PathBuf>,
    pub(super) source: CredentialSource,
    pub(super) is_alone: bool,
    pub(super) pause: Option<Duration>,
}

impl S3Settings {
    /// The settings of variables and of the files that they name; `home` is the user's folder. Makes no request.
    ///
    /// # Errors
    /// [`RemoteError::Broken`] if a file that is there cannot be read.
    pub fn read(variable: &dyn Fn(&str) -> Option<String>, home: Option<&Path>) -> Result<Self, RemoteError> {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let file = |name: &str, default: &str| {
            set(name).map(PathBuf::from).or_else(|| home.map(|home| home.join(".aws").join(default)))
        };
        let name = set("AWS_PROFILE").unwrap_or_else(|| "default".to_owned());
        let files: Vec<PathBuf> =
            [file("AWS_SHARED_CREDENTIALS_FILE", "credentials"), file("AWS_CONFIG_FILE", "config")]
                .into_iter()
                .flatten()
                .collect();
        let profiles: Vec<AwsProfile> =
            files.iter().map(|file| AwsProfile::read(file, &name)).collect::<Result<_, _>>()?;
        let kept = |key: &str| profiles.iter().find_map(|profile| profile.get(key)).map(str::to_owned);
        // A profile that is asked for counts before keys that happen to be set.
        let given = set("AWS_ACCESS_KEY_ID").zip(set("AWS_SECRET_ACCESS_KEY"));
        let source = match given {
            Some((key, secret)) => {
                let token = set("AWS_SESSION_TOKEN");
                CredentialSource::Given(credentials(&key, &secret, token.as_deref()))
            }
            None => CredentialSource::AwsProfile { name, files: files.clone() },
        };
        let region = set("AWS_REGION").or_else(|| set("AWS_DEFAULT_REGION")).or_else(|| kept("region"));
        Ok(Self {
            endpoint: set("AWS_ENDPOINT_URL_S3")
                .or_else(|| set("AWS_ENDPOINT_URL"))
                .or_else(|| kept("s3.endpoint_url"))
                .or_else(|| kept("endpoint_url")),
            region: region.unwrap_or_else(|| "us-east-1".to_owned()),
            style: kept("s3.addressing_style"),
            roots: set("AWS_CA_BUNDLE").or_else(|| kept("ca_bundle")).map(PathBuf::from),
            source,
            is_alone: false,
            pause: None,
        })
    }

    /// For a bucket without conditions: each is looked at, then it is written. Nothing stops a second writer.
    #[must_use]
    pub fn alone(self, is_alone: bool) -> Self {
        Self { is_alone, ..self }
    }

    /// The first pause before a request is made again. Default: 100 milliseconds.
    #[must_use]
    pub fn pause(self, pause: Duration) -> Self {
        Self { pause: Some(pause), ..self }
    }

    fn address(&self) -> String {
        self.endpoint.clone().unwrap_or_else(|| format!("https://s3.{}.amazonaws.com", self.region))
    }

    pub(super) fn bucket(&self, place: &S3Place) -> Result<Bucket, RemoteError> {
        let wrong = || refused("an endpoint of such a form: AWS_ENDPOINT_URL is https://HOST".to_owned());
        let address = self.address();
        let parsed: ureq::http::Uri = address.parse().map_err(|_| wrong())?;
        let host = parsed.host().ok_or_else(wrong)?.trim_matches(['[', ']']);
        // A name is no address.
        let ip = host.parse::<IpAddr>().ok();
        let is_here = host == "localhost" || ip.is_some_and(|address| address.is_loopback());
        match parsed.scheme_str() {
            Some("https") => {}
            Some("http") if is_here => {}
            Some("http") => {
                return Err(refused(
                    "http beyond this machine: sessions would be read on the way".to_owned(),
                ));
            }
            _ => return Err(wrong()),
        }
        let plain = !place.bucket().contains(['.', '_'])
            && !place.bucket().contains(|sign: char| sign.is_ascii_uppercase());
        let style = match self.style.as_deref() {
            Some("virtual") => UrlStyle::VirtualHost,
            Some("path") => UrlStyle::Path,
            // Few other servers have a name for each bucket, and certificates of AWS cover one label.
            _ if self.endpoint.is_none() && plain => UrlStyle::VirtualHost,
            _ => UrlStyle::Path,
        };
        let address = address.parse().map_err(|_| wrong())?;
        Bucket::new(address, style, place.bucket().to_owned(), self.region.clone()).map_err(|_| wrong())
    }

    pub(super) fn agent(&self) -> Result<ureq::Agent, RemoteError> {
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent("acpdb")
            .timeout_resolve(Some(CONNECT_MAX))
            .timeout_connect(Some(CONNECT_MAX))
            .timeout_recv_response(Some(STEP_MAX))
            .timeout_per_read(Some(STEP_MAX))
            .timeout_per_write(Some(STEP_MAX));
        if self.address().starts_with("https") {
            let roots = RootCerts::Specific(Arc::new(self.certificates()?));
            config = config.tls_config(TlsConfig::builder().root_certs(roots).build());
        }
        Ok(config.build().into())
    }

    /// The certificates that are trusted: those of a file that is named, or of the system.
    fn certificates(&self) -> Result<Vec<Certificate<'static>>, RemoteError> {
        let broken = |what: String| RemoteError::Broken { what };
        let found: Vec<_> = if let Some(file) = &self.roots {
            let text = read_file(file)?.ok_or_else(|| broken(format!("{} is not there", file.display())))?;
            let items = parse_pem(text.as_bytes());
            items
                .filter_map(|item| match item {
                    Ok(PemItem::Certificate(certificate)) => Some(certificate),
                    // Keys, and what is none of both, are no certificates.
                    _ => None,
                })
                .collect()
        } else {
            let loaded = rustls_native_certs::load_native_certs();
            loaded.certs.iter().map(|der| Certificate::from_der(der).to_owned()).collect()
        };
        if found.is_empty() {
            return Err(broken(
                "no certificates that are trusted were found; AWS_CA_BUNDLE names a file of them".to_owned(),
            ));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "[default]\nregion = eu-1\n\n[profile work]\n# a comment\nregion=eu-2\ns3 =\n  addressing_style = virtual\n\
        endpoint_url = https://store.example\n[profile other]\nregion = eu-3\n";

    #[test]
    fn variables_count_before_a_profile_and_a_profile_before_nothing() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".aws")).unwrap();
        std::fs::write(folder.path().join(".aws/config"), FILE).unwrap();
        let read = |pairs: &[(&str, &str)]| {
            let find =
                |name: &str| pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
            S3Settings::read(&find, Some(folder.path())).unwrap()
        };
        let place = S3Place::new("bucket", "p").unwrap();
        for (pairs, url) in [
            (&[][..], "https://bucket.s3.eu-1.amazonaws.com/"),
            (&[("AWS_REGION", "us-9")], "https://bucket.s3.us-9.amazonaws.com/"),
            (&[("AWS_PROFILE", "work")], "https://bucket.store.example/"),
            (&[("AWS_PROFILE", "none")], "https://bucket.s3.us-east-1.amazonaws.com/"),
            (&[("AWS_ENDPOINT_URL", "http://127.0.0.1:9")], "http://127.0.0.1:9/bucket/"),
            (
                &[("AWS_ENDPOINT_URL", "https://a"), ("AWS_ENDPOINT_URL_S3", "https://b/c")],
                "https://b/c/bucket/",
            ),
        ] {
            assert_eq!(read(pairs).bucket(&place).unwrap().base_url().as_str(), url, "{pairs:?}");
        }
        let dots = S3Place::new("my.bucket", "").unwrap();
        assert_eq!(
            read(&[]).bucket(&dots).unwrap().base_url().as_str(),
            "https://s3.eu-1.amazonaws.com/my.bucket/"
        );
        for endpoint in ["http://store.example", "ftp://a", "store", "http://127.0.0.1.example"] {
            assert!(read(&[("AWS_ENDPOINT_URL", endpoint)]).bucket(&place).is_err(), "{endpoint}");
        }
    }

    #[test]
    fn credentials_are_those_of_now() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        let find = |name: &str| (name == "AWS_SHARED_CREDENTIALS_FILE").then(|| file.display().to_string());
        let read = || S3Settings::read(&find, None).unwrap().source.read();
        assert!(matches!(read(), Err(RemoteError::Refused { .. })), "none");
        std::fs::write(&file, "[default]\naws_access_key_id=a\naws_secret_access_key = b=c\n").unwrap();
        let settings = S3Settings::read(&find, None).unwrap();
        let first = settings.source.read().unwrap();
        assert_eq!((first.key(), first.secret(), first.token()), ("a", "b=c", None));
        let program = r#"[default]
credential_process = sh -c 'echo "{\"Version\":1,\"AccessKeyId\":\"k\",\"SecretAccessKey\":\"s\",\"SessionToken\":\"t\"}"'
"#;
        std::fs::write(&file, program).unwrap();
        let then = settings.source.read().unwrap();
        assert_eq!((then.key(), then.secret(), then.token()), ("k", "s", Some("t")));
        for program in ["false", "/nowhere/at/all", "echo word-that-is-secret"] {
            std::fs::write(&file, format!("[default]\ncredential_process = {program}\n")).unwrap();
            let error = settings.source.read().unwrap_err().to_string();
            assert!(error.contains("credential_process") && !error.contains("secret"), "{error}");
        }
    }
}
