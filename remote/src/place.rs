//! URLs below which stores are shipped: `file:///FOLDER`, on any mounted disk, `s3://BUCKET/PREFIX`, `postgres://HOST/DATABASE/PREFIX`.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::encrypted::EncryptedRemote;
use crate::error::RemoteUrlError;
use crate::folder::FolderRemote;
#[cfg(feature = "postgres")]
use crate::postgres::{PostgresPlace, PostgresRemote, PostgresSettings};
#[cfg(any(feature = "postgres", feature = "s3"))]
use crate::remote::Remote;
use crate::remote::RemoteError;
#[cfg(feature = "s3")]
use crate::s3::{S3Place, S3Remote, S3Settings};

/// A place below which stores are shipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemotePlace {
    /// A folder.
    Folder(PathBuf),
    /// A prefix of a bucket.
    #[cfg(feature = "s3")]
    Bucket(S3Place),
    /// A prefix in a database.
    #[cfg(feature = "postgres")]
    Database(PostgresPlace),
}

/// The name before `:`, if a text is a URL and no folder.
pub fn url_scheme(typed: &str) -> Option<&str> {
    let (scheme, rest) = typed.split_once(':')?;
    let is_name = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_name && (rest.starts_with("//") || scheme == "file")).then_some(scheme)
}

impl RemotePlace {
    /// Reads a URL. Touches nothing.
    ///
    /// # Errors
    /// [`RemoteUrlError`].
    pub fn of_url(url: &str) -> Result<Self, RemoteUrlError> {
        let typed = || url.to_owned();
        match url_scheme(url) {
            Some("file" | "s3" | "postgres" | "postgresql") if has_user(url) => {
                return Err(RemoteUrlError::Credentials);
            }
            Some("file") => {}
            Some("s3") => return Self::bucket(url),
            Some("postgres" | "postgresql") => return Self::database(url),
            Some(scheme) => return Err(RemoteUrlError::Scheme { scheme: scheme.to_owned() }),
            None => return Err(RemoteUrlError::NoScheme { typed: typed() }),
        }
        let rest = url.strip_prefix("file://").unwrap_or_default();
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        if !path.starts_with('/') || path.contains(['?', '#']) {
            return Err(RemoteUrlError::FolderForm { typed: typed() });
        }
        let bytes = decoded(path).filter(|bytes| !bytes.contains(&0));
        let bytes = bytes.ok_or_else(|| RemoteUrlError::Percent { typed: typed() })?;
        Ok(Self::Folder(PathBuf::from(OsString::from_vec(bytes))))
    }

    /// The folder, if it is one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(folder) => Some(folder),
            #[cfg(any(feature = "postgres", feature = "s3"))]
            _ => None,
        }
    }

    /// Whether its owner pays for each request, as for those of a bucket.
    pub const fn costs_a_request(&self) -> bool {
        match self {
            #[cfg(feature = "s3")]
            Self::Bucket(_) => true,
            _ => false,
        }
    }

    /// The remote of the place; a bucket by the variables `AWS_*` and the profiles of the user. Encrypted stores there need a ring. Makes no request.
    ///
    /// # Errors
    /// [`RemoteError::Refused`] and [`RemoteError::Broken`] if the settings of a bucket cannot be used.
    pub fn open(&self) -> Result<EncryptedRemote, RemoteError> {
        match self {
            Self::Folder(folder) => Ok(EncryptedRemote::new(Arc::new(FolderRemote::new(folder)))),
            #[cfg(feature = "s3")]
            Self::Bucket(place) => open_bucket(place, false).map(EncryptedRemote::new),
            #[cfg(feature = "postgres")]
            Self::Database(place) => Ok(EncryptedRemote::new(open_database(place))),
        }
    }

    /// The same, of a bucket that need not keep conditions: nothing stops a second writer there. Folders and databases keep them in any case.
    ///
    /// # Errors
    /// As [`RemotePlace::open`].
    pub fn open_alone(&self) -> Result<EncryptedRemote, RemoteError> {
        match self {
            #[cfg(feature = "s3")]
            Self::Bucket(place) => open_bucket(place, true).map(EncryptedRemote::new),
            _ => self.open(),
        }
    }

    #[cfg(not(feature = "postgres"))]
    fn database(_: &str) -> Result<Self, RemoteUrlError> {
        Err(RemoteUrlError::WithoutPostgres)
    }

    #[cfg(feature = "postgres")]
    fn database(url: &str) -> Result<Self, RemoteUrlError> {
        let rest = url.split_once("://").map_or("", |(_, rest)| rest);
        PostgresPlace::read(rest).map(Self::Database).ok_or(RemoteUrlError::DatabaseForm)
    }

    #[cfg(not(feature = "s3"))]
    fn bucket(_: &str) -> Result<Self, RemoteUrlError> {
        Err(RemoteUrlError::WithoutS3)
    }

    #[cfg(feature = "s3")]
    fn bucket(url: &str) -> Result<Self, RemoteUrlError> {
        let wrong = || RemoteUrlError::BucketForm;
        let rest = url.strip_prefix("s3://").unwrap_or_default();
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.contains(['?', '#']) {
            return Err(wrong());
        }
        // A path that is no text is refused as one of another form.
        let path = decoded(path).and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(wrong)?;
        Ok(Self::Bucket(S3Place::new(bucket, &path).map_err(|_| wrong())?))
    }
}

#[cfg(feature = "postgres")]
fn open_database(place: &PostgresPlace) -> Arc<dyn Remote> {
    // Not set, or no text.
    let variable = |name: &str| std::env::var(name).ok();
    // A user without a home, or with an empty one, has no file of passwords.
    let home = variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    Arc::new(PostgresRemote::new(place.clone(), PostgresSettings::read(&variable, home.as_deref())))
}

#[cfg(feature = "s3")]
fn open_bucket(place: &S3Place, is_alone: bool) -> Result<Arc<dyn Remote>, RemoteError> {
    // Not set, or no text.
    let variable = |name: &str| std::env::var(name).ok();
    // A user without a home, or with an empty one, has no profiles.
    let home = variable("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let settings = S3Settings::read(&variable, home.as_deref())?;
    Ok(Arc::new(S3Remote::new(place.clone(), &settings.alone(is_alone))?))
}

/// Whether a user or a password stands before the host, or where the host would be.
fn has_user(url: &str) -> bool {
    let rest = url.split_once(':').map_or("", |(_, rest)| rest);
    let rest = rest.strip_prefix("//").unwrap_or(rest);
    rest.split('/').next().is_some_and(|host| host.contains('@'))
}

/// The bytes that a text with `%` and two digits in it stands for.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()?.checked_mul(16)?.checked_add(digit()?)?;
        bytes.push(u8::try_from(value).ok()?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_folder_or_is_refused_by_name() {
        for (typed, folder) in [
            ("file:///mnt/nas", Some("/mnt/nas")),
            ("file://localhost/mnt/nas", Some("/mnt/nas")),
            ("file:///a%20b/%c3%A4", Some("/a b/ä")),
            ("file:///@snapshots/disk", Some("/@snapshots/disk")),
            ("file:/mnt", None),
            ("file://host/mnt", None),
            ("file://", None),
            ("file:///a%2", None),
            ("file:///a%00", None),
            ("file:///a?b", None),
            ("s3://key:w0rd@bucket/prefix", None),
            ("postgres://user:w0rd@host/agents", None),
            ("file://key:w0rd@host/prefix", None),
            ("file:key:w0rd@host", None),
            ("folder", None),
        ] {
            let read = RemotePlace::of_url(typed);
            assert_eq!(
                read.as_ref().ok(),
                folder.map(|at| RemotePlace::Folder(at.into())).as_ref(),
                "{typed}"
            );
            assert!(!read.is_err_and(|error| error.to_string().contains("w0rd")), "{typed}");
        }
        for (argument, found) in [
            ("a", None),
            ("a:b", None),
            ("./s3://b", None),
            ("s3://b", Some("s3")),
            ("file:/b", Some("file")),
        ] {
            assert_eq!(url_scheme(argument), found, "{argument}");
        }
    }
}
