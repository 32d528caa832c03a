//! URLs below which stores are shipped: `file:///FOLDER`, on any mounted disk, and `s3://BUCKET/PREFIX`. Others are refused by name.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpdb_engine::ids::StoreId;
use acpdb_engine::storage::{Entropy, SystemEntropy};
#[cfg(feature = "s3")]
use acpdb_remote::RemoteError;
#[cfg(feature = "s3")]
use acpdb_remote::s3::{S3Place, S3Remote, S3Settings};
use acpdb_remote::{ChainError, FolderRemote, Remote, repair};

use super::{Code, EscapeLevel, Failure, escape, store_path};
#[cfg(feature = "s3")]
use crate::settings::variable;

/// The mark of a first shipping.
const MARK: &str = "acpdb-remote.json";
/// The names that a prefix has, beside those that begin with a dot.
const NAMES: &[&str] = &[MARK, "heads", "probe", "s"];

/// The hint where objects are damaged.
const ELSEWHERE: &str = "if you have the store or another copy of it, ship it to another URL";

/// A place to which stores are shipped.
pub(crate) struct RemoteUrl {
    /// As it was typed.
    typed: String,
    place: UrlPlace,
}

enum UrlPlace {
    Folder(PathBuf),
    #[cfg(feature = "s3")]
    Bucket(S3Place),
}

/// The remote of a URL.
pub(crate) struct OpenedUrl {
    pub(crate) remote: Arc<dyn Remote>,
    versions: Box<dyn Fn() -> bool>,
}

impl OpenedUrl {
    /// Whether old versions of objects stay there, as far as its answers have said.
    pub(crate) fn has_versions(&self) -> bool {
        (self.versions)()
    }
}

/// The name before `:`, if the argument is a URL and no folder.
pub(crate) fn scheme(argument: &Path) -> Option<&str> {
    let (scheme, rest) = argument.to_str()?.split_once(':')?;
    let is_name = !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_name && (rest.starts_with("//") || scheme == "file")).then_some(scheme)
}

impl RemoteUrl {
    /// Reads an argument. Touches nothing.
    pub(crate) fn read(argument: &Path) -> Result<Self, Failure> {
        let form =
            "name a folder on a mounted disk, as file:///mnt/disk/acpdb, or a bucket, as s3://BUCKET/PREFIX";
        let wrong = |what: String| Failure::usage(what).hint(form);
        match scheme(argument) {
            Some("file") => {}
            Some("s3") => return Self::bucket(&argument.to_string_lossy(), form),
            // Not the whole of it: there may be a password in it.
            Some(scheme) => return Err(wrong(format!("{scheme}:// URLs are not in this version"))),
            None => return Err(wrong(format!("{} is no URL", argument.display()))),
        }
        let typed = argument.to_string_lossy().into_owned();
        let rest = typed.strip_prefix("file://").unwrap_or_default();
        let path = rest.strip_prefix("localhost").unwrap_or(rest);
        if !path.starts_with('/') || path.contains(['?', '#']) {
            return Err(wrong(format!("{typed} has another form than file:///FOLDER")));
        }
        let bytes = decoded(path).filter(|bytes| !bytes.contains(&0));
        let bytes =
            bytes.ok_or_else(|| wrong(format!("{typed} has a % without two hex digits behind it")))?;
        Ok(Self { place: UrlPlace::Folder(PathBuf::from(OsString::from_vec(bytes))), typed })
    }

    #[cfg(not(feature = "s3"))]
    fn bucket(_: &str, _: &str) -> Result<Self, Failure> {
        let failure = Failure::usage("this acpdb was built without s3");
        Err(failure.hint("build it with --features s3, or name a folder, as file:///mnt/disk/acpdb"))
    }

    /// Reads `s3://BUCKET/PREFIX`. A wrong one is not told in full: there may be a password in it.
    #[cfg(feature = "s3")]
    fn bucket(typed: &str, form: &str) -> Result<Self, Failure> {
        let wrong = || Failure::usage("the URL has another form than s3://BUCKET/PREFIX").hint(form);
        let rest = typed.strip_prefix("s3://").unwrap_or_default();
        let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
        if path.contains(['?', '#']) {
            return Err(wrong());
        }
        // A path that is no text is refused as one of another form.
        let path = decoded(path).and_then(|bytes| String::from_utf8(bytes).ok()).ok_or_else(wrong)?;
        let place = S3Place::new(bucket, &path).map_err(|_| wrong())?;
        Ok(Self { place: UrlPlace::Bucket(place), typed: typed.to_owned() })
    }

    /// As it is said to a person.
    pub(crate) fn shown(&self) -> String {
        escape(&self.typed, EscapeLevel::Line).into_owned()
    }

    /// As it is said to a program.
    pub(crate) fn typed(&self) -> &str {
        &self.typed
    }

    /// As it can be typed into a shell.
    fn quoted(&self) -> String {
        store_path::typed(&self.typed)
    }

    /// The remote. Makes no request. `is_alone`: a bucket need not keep conditions.
    pub(crate) fn open(&self, is_alone: bool) -> Result<OpenedUrl, Failure> {
        match &self.place {
            UrlPlace::Folder(_) if is_alone => Err(Failure::usage(
                "--alone is for a bucket that keeps no conditions: a folder needs no such",
            )),
            UrlPlace::Folder(folder) => {
                Ok(OpenedUrl { remote: Arc::new(FolderRemote::new(folder)), versions: Box::new(|| false) })
            }
            #[cfg(feature = "s3")]
            UrlPlace::Bucket(place) => {
                let failed = |error: RemoteError| self.failed(error.into(), Code::Failure);
                // A user without a home has no profiles.
                let home = variable("HOME").map(PathBuf::from);
                let settings = S3Settings::read(&variable, home.as_deref()).map_err(failed)?;
                let remote = S3Remote::new(place.clone(), &settings.alone(is_alone)).map_err(failed)?;
                let bucket = Arc::new(remote);
                let remote = Arc::<S3Remote>::clone(&bucket);
                Ok(OpenedUrl { remote, versions: Box::new(move || bucket.has_versions()) })
            }
        }
    }

    /// Refuses a place that is another one's, or a part of the store, or on a disk that is not there.
    #[cfg_attr(not(feature = "s3"), expect(unused_variables, reason = "a folder is looked at itself"))]
    pub(crate) fn check_to_write(&self, remote: &dyn Remote, store: &Path) -> Result<(), Failure> {
        match &self.place {
            UrlPlace::Folder(folder) => Self::check_folder(folder, store),
            #[cfg(feature = "s3")]
            UrlPlace::Bucket(_) => self.check_prefix(remote),
        }
    }

    /// Refuses a prefix without the mark of a first shipping and with other things in it.
    #[cfg(feature = "s3")]
    fn check_prefix(&self, remote: &dyn Remote) -> Result<(), Failure> {
        let failed = |error: RemoteError| self.failed(error.into(), Code::Partial);
        if remote.get(MARK, Some(0..0)).map_err(failed)?.is_some() {
            return Ok(());
        }
        let listed = remote.list("", "").map_err(failed)?;
        let is_ours = |key: &str| NAMES.iter().any(|name| key.split('/').next() == Some(name));
        match listed.iter().find(|listed| !is_ours(&listed.key)) {
            None => Ok(()),
            Some(other) => {
                let name = escape(&other.key, EscapeLevel::Line);
                let what = format!("{} has other things in it, such as {name}", self.shown());
                Err(Failure::usage(what).hint("name a prefix that is for shipped stores alone"))
            }
        }
    }

    fn check_folder(folder: &Path, store: &Path) -> Result<(), Failure> {
        let above = folder.parent().unwrap_or(folder);
        let Ok(real) = above.canonicalize() else {
            let failure = Failure::not_found(format!("{} is not there", above.display()));
            return Err(failure.hint("is the disk mounted? If it is, make this folder"));
        };
        let real = folder.file_name().map_or_else(|| real.clone(), |name| real.join(name));
        let real = real.canonicalize().unwrap_or(real);
        if store.canonicalize().is_ok_and(|store| real.starts_with(store)) {
            let failure = Failure::usage(format!("{} is in the store itself", folder.display()));
            return Err(failure.hint("name a folder on another disk"));
        }
        let entries = match folder.read_dir() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(Failure::io("read", folder.display()))?,
        };
        for entry in entries {
            let name = entry.map_err(Failure::io("read", folder.display()))?.file_name();
            let name = name.to_string_lossy();
            if !name.starts_with('.') && !NAMES.contains(&&*name) {
                let name = escape(&name, EscapeLevel::Line);
                let what = format!("{} has other things in it, such as {name}", folder.display());
                return Err(Failure::usage(what).hint("name a folder that is for shipped stores alone"));
            }
        }
        Ok(())
    }

    /// The failure of a verb that finds nothing there.
    pub(crate) fn without_store(&self) -> Failure {
        let failure = Failure::not_found(format!("{} has no store", self.shown()));
        failure.hint("acpdb backup URL ships one there; is the disk mounted?")
    }

    /// The failure of a verb: with its exit code and the next step. `in_part` is the code if the remote itself failed.
    pub(crate) fn failed(&self, error: ChainError, in_part: Code) -> Failure {
        let url = self.quoted();
        let error = match error {
            ChainError::Store(error) => return Failure::taken(error, "store"),
            error => error,
        };
        let (code, hint) = match &error {
            #[cfg(feature = "s3")]
            ChainError::Remote(RemoteError::Unable { .. }) => (
                in_part,
                format!(
                    "acpdb backup {url} --alone ships there nevertheless: nothing stops a second writer then"
                ),
            ),
            ChainError::Remote(_) => (
                in_part,
                "whatever was there stays; run this again once it can be written and read".to_owned(),
            ),
            ChainError::Fenced { .. } => (
                Code::Conflict,
                "let one program alone ship a store; run this again to take it over".to_owned(),
            ),
            ChainError::Contended => {
                (Code::Busy, "another program ships this store; try again later".to_owned())
            }
            ChainError::Diverged { there, here } if there > here => {
                (Code::LostTail, format!("acpdb restore {url} NEW makes a store of what is there"))
            }
            ChainError::Diverged { .. } => (
                Code::Conflict,
                format!(
                    "acpdb restore {url} NEW, then acpdb import NEW takes in what it has; or ship to another URL"
                ),
            ),
            ChainError::HeadLost { .. } => {
                (Code::Damage, format!("acpdb backup {url}, from the store, makes the head anew"))
            }
            ChainError::Damaged(report) => (super::verify::code_of(report), ELSEWHERE.to_owned()),
            ChainError::NotNext { .. } | ChainError::Unsound { .. } | ChainError::Missing { .. } => {
                (Code::Damage, ELSEWHERE.to_owned())
            }
            ChainError::NoStore { .. } => (Code::NotFound, format!("acpdb backup {url} ships a store there")),
            _ => return Failure::new(Code::Failure, error.to_string()),
        };
        Failure::new(code, crate::failure::chained(&error)).hint(hint)
    }
}

/// Does what needs the head of a store; if that was lost, makes it anew in `remote`, and does it again.
pub(crate) fn with_head<T>(
    remote: &dyn Remote,
    store: StoreId,
    warn: impl FnOnce(),
    mut act: impl FnMut() -> Result<T, ChainError>,
) -> Result<T, ChainError> {
    match act() {
        Err(ChainError::HeadLost { .. }) => {}
        done => return done,
    }
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    if repair(remote, &entropy, store)? {
        warn();
    }
    act()
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
            ("file:/mnt", None),
            ("file://host/mnt", None),
            ("file://", None),
            ("file:///a%2", None),
            ("file:///a%00", None),
            ("file:///a?b", None),
            ("s3://bucket/prefix", None),
            ("folder", None),
        ] {
            let read = RemoteUrl::read(Path::new(typed)).ok().map(|url| url.place);
            #[cfg_attr(
                not(feature = "s3"),
                expect(irrefutable_let_patterns, reason = "there are only folders")
            )]
            let read =
                read.and_then(|place| if let UrlPlace::Folder(folder) = place { Some(folder) } else { None });
            assert_eq!(read.as_deref(), folder.map(Path::new), "{typed}");
        }
        for (argument, found) in [
            ("a", None),
            ("a:b", None),
            ("./s3://b", None),
            ("s3://b", Some("s3")),
            ("file:/b", Some("file")),
        ] {
            assert_eq!(scheme(Path::new(argument)), found, "{argument}");
        }
    }
}
