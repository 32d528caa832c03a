//! The user's settings: one TOML file of a few keys. An option or a variable overrules each key.
//!
//! ```text
//! $ACPDB_CONFIG, else $XDG_CONFIG_HOME/acpdb/config.toml, else ~/.config/acpdb/config.toml
//! option  >  environment  >  settings  >  default
//! ```
//!
//! Settings are only about the behaviour of the command line. Rules of superseding are a policy, and stand in the log.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use acpdb_live::files;
use acpdb_remote::{RemotePlace, RemoteUrlError};
use toml_edit::{DocumentMut, Item, Value};

use crate::failure::{Code, Failure};
use crate::storage_prices::StoragePrices;

/// The list of trusted stores. It is not one value, so it is not among the keys.
const TRUSTED: &str = "trusted";
/// Largest file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The values that a key takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ValueKind {
    /// Any text.
    Text,
    /// `true` or `false`.
    Switch,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A number of events or of minutes.
    Every,
    /// A place to which stores are shipped.
    Url,
    /// Prices of object storage.
    Prices,
}

/// How often an automatic act is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Every {
    Events(u64),
    Minutes(u64),
}

impl FromStr for Every {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (number, unit) = text.split_once(' ').ok_or(())?;
        let number = number.parse().ok().filter(|number| *number > 0).ok_or(())?;
        match unit.trim_start() {
            "event" | "events" => Ok(Self::Events(number)),
            "minute" | "minutes" => Ok(Self::Minutes(number)),
            _ => Err(()),
        }
    }
}

/// A key of the settings.
#[derive(Debug)]
pub(crate) struct SettingKey {
    pub(crate) name: &'static str,
    pub(crate) kind: ValueKind,
    /// The value where the key is not set, in words.
    pub(crate) default: &'static str,
    pub(crate) about: &'static str,
}

/// All keys, in the order in which they are listed.
pub(crate) const KEYS: &[SettingKey] = &[
    SettingKey {
        name: "db",
        kind: ValueKind::Text,
        default: "the user's data directory",
        about: "the store where there is no .acpdb/ upwards; --db and $ACPDB_PATH override it",
    },
    SettingKey {
        name: "color",
        kind: ValueKind::Word(&["auto", "always", "never"]),
        default: "auto",
        about: "colours; --color overrides it",
    },
    SettingKey {
        name: "pager",
        kind: ValueKind::Text,
        default: "$PAGER, else less",
        about: "the program that shows long answers on a terminal, or never; $ACPDB_PAGER overrides it",
    },
    SettingKey {
        name: "progress",
        kind: ValueKind::Switch,
        default: "true",
        about: "progress of long work on a terminal",
    },
    SettingKey {
        name: "redact",
        kind: ValueKind::Switch,
        default: "false",
        about: "import and append take well-known forms of secrets out, as with --redact",
    },
    SettingKey {
        name: "price",
        kind: ValueKind::Text,
        default: "model",
        about: "prices that simulate uses; --price overrides it",
    },
    SettingKey {
        name: "prices",
        kind: ValueKind::Text,
        default: "the program's table",
        about: "a file of prices by model, which cost uses before its own; --prices overrides it",
    },
    SettingKey {
        name: "statusline",
        kind: ValueKind::Text,
        default: "all parts",
        about: "parts of the status line, of {context} · {session} · {today} · {stale} · {lost}",
    },
    SettingKey {
        name: "backup",
        kind: ValueKind::Url,
        default: "none: backup is told where to",
        about: "where backup ships to if none is named, as file:///FOLDER or s3://BUCKET/PREFIX, and the service of --backup",
    },
    SettingKey {
        name: "backup_encrypt",
        kind: ValueKind::Switch,
        default: "false",
        about: "backup URL encrypts what it sends, as with --encrypt",
    },
    SettingKey {
        name: "storage_price",
        kind: ValueKind::Prices,
        default: "s3",
        about: "prices by which --dry-run of backup and restore estimates: s3, r2, or dollars per million writes, million reads, GB and month, GB out",
    },
    SettingKey {
        name: "sign",
        kind: ValueKind::Every,
        default: "by hand: acpdb checkpoint sign",
        about: "sign a checkpoint, with the key named default, after so many new events or minutes: '1000 events', '60 minutes'",
    },
];

/// The settings of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) db: Option<PathBuf>,
    pub(crate) color: Option<String>,
    pub(crate) pager: Option<String>,
    pub(crate) progress: Option<bool>,
    pub(crate) redact: Option<bool>,
    pub(crate) price: Option<String>,
    pub(crate) prices: Option<PathBuf>,
    pub(crate) sign: Option<Every>,
    pub(crate) backup: Option<String>,
    pub(crate) backup_encrypt: Option<bool>,
    pub(crate) storage_price: Option<String>,
    pub(crate) statusline: Option<String>,
    /// Stores of others, or writable by others, that the user trusts.
    pub(crate) trusted: Vec<PathBuf>,
    /// The reason why the file could not be read, for a verb that runs all the same.
    pub(crate) unread: Option<String>,
    /// Mistakes in the file that can be ignored.
    pub(crate) remarks: Vec<String>,
}

/// The path that a variable of the environment holds, if it is set and not empty.
pub(crate) fn path_in(variable: &str) -> Option<PathBuf> {
    std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// A variable of the environment. A value that is not UTF-8 counts as not set: a path with it can neither be shown nor be written
/// into a host's settings.
pub(crate) fn variable(name: &str) -> Option<String> {
    // Not set, or not UTF-8.
    std::env::var(name).ok()
}

/// The path of the settings' file, which may be missing. `None` without a home.
pub(crate) fn path() -> Option<PathBuf> {
    path_in("ACPDB_CONFIG").or_else(|| {
        let folder = path_in("XDG_CONFIG_HOME").or_else(|| path_in("HOME").map(|home| home.join(".config")));
        folder.map(|folder| folder.join("acpdb/config.toml"))
    })
}

/// A key by its name.
pub(crate) fn key(name: &str) -> Result<&'static SettingKey, Failure> {
    KEYS.iter().find(|key| key.name == name).ok_or_else(|| {
        let names: Vec<&str> = KEYS.iter().map(|key| key.name).collect();
        let otherwise = format!("settings: {}", names.join(", "));
        Failure::usage(format!("there is no setting {name:?}")).near(near(name), otherwise)
    })
}

fn near(name: &str) -> Option<&'static str> {
    acpdb_engine::text::likeness::nearest(KEYS.iter().map(|key| key.name), name, 0.7)
}

/// The file's content; empty if there is no file.
pub(crate) fn document(path: &Path) -> Result<DocumentMut, Failure> {
    use std::io::Read as _;
    use std::os::unix::fs::FileTypeExt as _;
    let shown = path.display().to_string();
    // Opening a pipe waits for its other end: a hook would keep its host waiting for ever.
    if std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_fifo()) {
        return Err(Failure::usage(format!("{shown} is a pipe, not a file of settings")));
    }
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound) => return Ok(DocumentMut::new()),
        Err(error) => return Err(Failure::io("read", &shown)(error)),
    };
    let mut text = String::new();
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text);
    let read = read.map_err(Failure::io("read", &shown))?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(Failure::usage(format!("{shown} is larger than a file of settings can be")));
    }
    DocumentMut::from_str(&text).map_err(|error| {
        let line =
            error.span().map(|span| text.bytes().take(span.start).filter(|byte| *byte == b'\n').count());
        let line = line.map(|line| format!(":{}", line + 1)).unwrap_or_default();
        Failure::usage(format!("{shown}{line}: {}", error.message().trim().replace('\n', ", ")))
            .hint("mend the file, or set $ACPDB_CONFIG to another one")
    })
}

/// Reads the settings in force.
///
/// A key that is not known is a remark: an older program may read the file of a newer one. A wrong value is an error, since its
/// meaning cannot be guessed.
pub(crate) fn read() -> Result<Settings, Failure> {
    let Some(path) = path() else { return Ok(Settings::default()) };
    let document = document(&path)?;
    let mut settings = Settings::default();
    for (name, item) in document.iter() {
        if name == TRUSTED {
            settings.trusted = trusted(&document).map_err(|failure| failure.in_place(path.display()))?;
            continue;
        }
        let Some(known) = KEYS.iter().find(|key| key.name == name) else {
            // Texts that were to be taken out, or encrypted, would not be.
            if let Some(meant @ ("redact" | "backup_encrypt")) = near(name) {
                let message =
                    format!("{}: there is no setting {name:?}; did you mean {meant}?", path.display());
                return Err(Failure::usage(message));
            }
            let hint = near(name).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            settings.remarks.push(format!("{}: there is no setting {name:?}{hint}", path.display()));
            continue;
        };
        let text = text(item).and_then(|text| check(known, &text).map(|()| text));
        let text = text.map_err(|failure| failure.in_place(path.display()))?;
        match name {
            "db" => settings.db = Some(at_home(&text)),
            "color" => settings.color = Some(text),
            "pager" => settings.pager = Some(text),
            "progress" => settings.progress = Some(text == "true"),
            "redact" => settings.redact = Some(text == "true"),
            "price" => settings.price = Some(text),
            "statusline" => settings.statusline = Some(text),
            "sign" => settings.sign = text.parse().ok(),
            "backup" => settings.backup = Some(text),
            "backup_encrypt" => settings.backup_encrypt = Some(text == "true"),
            "storage_price" => settings.storage_price = Some(text),
            "prices" => settings.prices = Some(at_home(&text)),
            _ => {}
        }
    }
    Ok(settings)
}

/// `~/x` is below the user's home.
fn at_home(text: &str) -> PathBuf {
    match (text.strip_prefix("~/"), path_in("HOME")) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

/// A value of the file, as a user types it.
fn text(item: &Item) -> Result<String, Failure> {
    match item.as_value() {
        Some(Value::String(text)) => Ok(text.value().clone()),
        Some(Value::Boolean(value)) => Ok(value.value().to_string()),
        _ => Err(Failure::usage("a setting is a text, true or false")),
    }
}

/// Whether a key may have this value.
pub(crate) fn check(key: &SettingKey, text: &str) -> Result<(), Failure> {
    let words: &[&str] = match key.kind {
        ValueKind::Text if text.is_empty() => {
            return Err(Failure::usage(format!("{} cannot be empty", key.name)));
        }
        ValueKind::Text => return Ok(()),
        ValueKind::Url => {
            // A program with other features may use the same file.
            return match RemotePlace::of_url(text) {
                Ok(_) | Err(RemoteUrlError::WithoutS3 | RemoteUrlError::WithoutPostgres) => Ok(()),
                Err(error) => Err(Failure::usage(format!("{} cannot be that: {error}", key.name))),
            };
        }
        ValueKind::Prices => return StoragePrices::named(text).map(drop),
        ValueKind::Every if text.parse::<Every>().is_ok() => return Ok(()),
        ValueKind::Every => {
            let message =
                format!("{} cannot be {text:?}; it is as in '1000 events' or '60 minutes'", key.name);
            return Err(Failure::usage(message));
        }
        ValueKind::Switch => &["true", "false"],
        ValueKind::Word(words) => words,
    };
    if words.contains(&text) {
        return Ok(());
    }
    Err(Failure::usage(format!("{} cannot be {text:?}; it is one of {}", key.name, words.join(", "))))
}

/// The value of a key in the file.
pub(crate) fn given(document: &DocumentMut, key: &SettingKey) -> Result<Option<String>, Failure> {
    document.get(key.name).map(text).transpose()
}

/// Writes a key, or removes it; comments and order of the file stay. The file is replaced as a whole.
pub(crate) fn write(path: &Path, key: &SettingKey, value: Option<&str>) -> Result<(), Failure> {
    let mut document = document(path)?;
    match value {
        Some(text) => {
            check(key, text)?;
            let value =
                if key.kind == ValueKind::Switch { Value::from(text == "true") } else { Value::from(text) };
            document.insert(key.name, Item::Value(value));
        }
        None => {
            document.remove(key.name);
        }
    }
    replace(path, &document.to_string())
}

/// The stores that the file lists as trusted.
pub(crate) fn trusted(document: &DocumentMut) -> Result<Vec<PathBuf>, Failure> {
    let wrong = || Failure::usage(format!("{TRUSTED} is a list of paths; acpdb config trust writes it"));
    let Some(item) = document.get(TRUSTED) else { return Ok(Vec::new()) };
    let list = item.as_array().ok_or_else(wrong)?;
    list.iter().map(|path| path.as_str().map(PathBuf::from).ok_or_else(wrong)).collect()
}

/// Writes the list of trusted stores; comments and order of the file stay.
pub(crate) fn write_trusted(path: &Path, stores: &[PathBuf]) -> Result<(), Failure> {
    let mut document = document(path)?;
    let mut list = toml_edit::Array::new();
    for store in stores {
        let text = store.to_str().ok_or_else(|| {
            Failure::usage(format!("{} cannot stand in the settings: it is not UTF-8", store.display()))
        })?;
        list.push(text);
    }
    if list.is_empty() {
        document.remove(TRUSTED);
    } else {
        document.insert(TRUSTED, Item::Value(Value::Array(list)));
    }
    replace(path, &document.to_string())
}

/// Replaces a file of the user in one step; a new file can be read by its owner alone.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    files::replace(path, text.as_bytes(), files::FileMode::Private)
        .map_err(Failure::io("write", path.display()))
}

/// The file of settings. Fails without a home.
pub(crate) fn path_or_failure() -> Result<PathBuf, Failure> {
    path().ok_or_else(|| {
        Failure::new(Code::Failure, "there is no home folder to keep settings in")
            .hint("name a file with $ACPDB_CONFIG")
    })
}
