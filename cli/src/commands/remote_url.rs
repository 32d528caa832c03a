//! URLs below which stores are shipped: `file:///FOLDER`, on any mounted disk, `s3://BUCKET/PREFIX`, `postgres://HOST/DATABASE/PREFIX`. Others are refused by name.

use std::path::Path;
use std::sync::Arc;

use acpdb_engine::ids::StoreId;
use acpdb_remote::{
    ChainError, EncryptedRemote, RehearsedCount, Remote, RemoteError, RemotePlace, RemoteUrlError, stores,
    url_scheme,
};

use super::{Code, EscapeLevel, Failure, Global, describe, escape, store_path};
use serde_json::{Value, json};

use crate::rings;
use crate::storage_prices::{StoragePrices, shown};
use crate::verdict;

/// The consequence where a store's file `secret` is not at a URL.
pub(crate) const WITHOUT_SECRET: &str = "what is restored can be read, and nothing can be appended to it";

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
    place: RemotePlace,
}

/// The name before `:`, if the argument is a URL and no folder.
pub(crate) fn scheme(argument: &Path) -> Option<&str> {
    url_scheme(argument.to_str()?)
}

impl RemoteUrl {
    /// Reads an argument. Touches nothing.
    pub(crate) fn read(argument: &Path) -> Result<Self, Failure> {
        let form =
            "name a folder on a mounted disk, as file:///mnt/disk/acpdb, or a bucket, as s3://BUCKET/PREFIX";
        let typed = argument.to_string_lossy().into_owned();
        match RemotePlace::of_url(&typed) {
            Ok(place) => Ok(Self { typed, place }),
            Err(error @ RemoteUrlError::WithoutS3) => Err(Failure::usage(error.to_string())
                .hint("build it with --features s3, or name a folder, as file:///mnt/disk/acpdb")),
            Err(error @ RemoteUrlError::WithoutPostgres) => Err(Failure::usage(error.to_string())
                .hint("build it with --features postgres, or name a folder, as file:///mnt/disk/acpdb")),
            Err(error) => Err(Failure::usage(error.to_string()).hint(form)),
        }
    }

    /// As it is said to a person.
    pub(crate) fn shown(&self) -> String {
        escape(&self.typed, EscapeLevel::Line).into_owned()
    }

    /// As it is said to a program.
    pub(crate) fn typed(&self) -> &str {
        &self.typed
    }

    /// The line of a rehearsal: what is sent or read, and what it costs in a bucket.
    pub(crate) fn estimate(
        &self,
        global: &Global,
        count: &RehearsedCount,
        is_read: bool,
    ) -> Result<(String, Value), Failure> {
        let act = if is_read { "read" } else { "sent" };
        let objects = describe::count(count.objects, "object");
        let requests = describe::count(count.writes.saturating_add(count.reads), "request");
        let mut line = format!(
            "{}: {objects} with {} would be {act}, in {requests}",
            self.shown(),
            describe::bytes(count.bytes)
        );
        // A disk that is mounted, or a database, costs nothing a request.
        if !self.place.costs_a_request() && global.settings.storage_price.is_none() {
            return Ok((line, json!(count)));
        }
        let prices = StoragePrices::named(global.settings.storage_price.as_deref().unwrap_or("s3"))?;
        let dollars = shown(prices.dollars(count, is_read));
        line = if is_read {
            format!("{line}, for {dollars} beyond its cloud ({})", prices.name)
        } else {
            format!(
                "{line}, for {dollars} and {} a month ({})",
                shown(prices.dollars_month(count)),
                prices.name
            )
        };
        Ok((line, describe::with(json!(count), prices.value(count, is_read))))
    }

    /// As it can be typed into a shell.
    fn quoted(&self) -> String {
        store_path::typed(&self.typed)
    }

    /// The remote, and the stores that are there.
    ///
    /// # Errors
    /// [`Code::NotFound`] if there is none.
    pub(crate) fn stores(
        &self,
        key_file: Option<&Path>,
    ) -> Result<(Arc<EncryptedRemote>, Vec<StoreId>), Failure> {
        let remote = Arc::new(self.open(key_file)?);
        let found = stores(&*remote).map_err(|error| self.failed(error, Code::Failure))?;
        if found.is_empty() { Err(self.without_store()) } else { Ok((remote, found)) }
    }

    /// The remote, with the keys of the user. Makes no request.
    pub(crate) fn open(&self, key_file: Option<&Path>) -> Result<EncryptedRemote, Failure> {
        let opened = self.place.open().map_err(|error| self.failed(error.into(), Code::Failure))?;
        Ok(opened.find_rings(rings::finder(key_file)))
    }

    /// The same, of a bucket that need not keep conditions.
    pub(crate) fn open_alone(&self, key_file: Option<&Path>) -> Result<EncryptedRemote, Failure> {
        if !self.place.costs_a_request() {
            let what = "--alone is for a bucket that keeps no conditions: folders and databases need no such";
            return Err(Failure::usage(what));
        }
        let opened = self.place.open_alone().map_err(|error| self.failed(error.into(), Code::Failure))?;
        Ok(opened.find_rings(rings::finder(key_file)))
    }

    /// Refuses a place that is another one's, or a part of the store, or on a disk that is not there.
    pub(crate) fn check_to_write(&self, remote: &dyn Remote, store: &Path) -> Result<(), Failure> {
        match self.place.folder() {
            Some(folder) => Self::check_folder(folder, store),
            None => self.check_prefix(remote),
        }
    }

    /// Refuses a prefix without the mark of a first shipping and with other things in it.
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
            ChainError::Remote(RemoteError::Locked { .. }) => {
                (Code::Locked, "acpdb help encryption says how a key is given".to_owned())
            }
            ChainError::Remote(RemoteError::Unable { .. }) if self.place.costs_a_request() => (
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
            ChainError::Damaged(report) => (verdict::code_of(report), ELSEWHERE.to_owned()),
            ChainError::NotNext { .. } | ChainError::Unsound { .. } | ChainError::Missing { .. } => {
                (Code::Damage, ELSEWHERE.to_owned())
            }
            ChainError::NoStore { .. } => (Code::NotFound, format!("acpdb backup {url} ships a store there")),
            _ => return Failure::new(Code::Failure, error.to_string()),
        };
        Failure::new(code, crate::failure::chained(&error)).hint(hint)
    }
}
