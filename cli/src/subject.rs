//! The subject of new sessions of a store, where the session names none.
//!
//! ```text
//! the session's own subject  >  --subject of the verb  >  $ACPDB_SUBJECT  >  the settings, for each store  >  none
//! ```
//!
//! The subject stands in the user's settings and not in the store: in the store a name lies sealed, and goes with its key.

use std::path::Path;

use acpdb_engine::{Builder, Error, Store};

use crate::failure::Failure;
use crate::global::Global;
use crate::settings;

/// The variable that names a subject for all that a program records.
const VARIABLE: &str = "ACPDB_SUBJECT";

/// A subject, and the place that named it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub(crate) name: String,
    pub(crate) by: By,
}

/// The place that named a subject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    Option,
    Variable,
    Settings,
}

impl By {
    /// The place in words, for `doctor`.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Option => "--subject",
            Self::Variable => "$ACPDB_SUBJECT",
            Self::Settings => "your settings",
        }
    }

    /// The hint how to take the subject back.
    pub(crate) const fn hint(self) -> &'static str {
        match self {
            Self::Option => "leave --subject out, or make an encrypted store with acpdb init --encrypt",
            Self::Variable => "unset ACPDB_SUBJECT, or make an encrypted store with acpdb init --encrypt",
            Self::Settings => {
                "acpdb config unset subject, or make an encrypted store with acpdb init --encrypt"
            }
        }
    }
}

/// The subject of new sessions of the store in `folder`. `named`: by an option.
pub(crate) fn of(folder: &Path, named: Option<&str>, global: &Global) -> Result<Option<Said>, Failure> {
    if let Some(name) = named {
        return Ok(Some(Said { name: name.to_owned(), by: By::Option }));
    }
    if let Some(name) = std::env::var_os(VARIABLE).filter(|name| !name.is_empty()) {
        let name = name.into_string().map_err(|_| Failure::usage(format!("${VARIABLE} is no UTF-8")))?;
        return Ok(Some(Said { name, by: By::Variable }));
    }
    let key = settings::store_key(folder);
    let set = global.settings.subjects.iter().find(|(store, _)| *store == key);
    Ok(set.map(|(_, name)| Said { name: name.clone(), by: By::Settings }))
}

/// Opens a store with the subject, if there is one.
pub(crate) fn open(builder: Builder, folder: &Path, said: Option<Said>) -> Result<Store, Failure> {
    let Some(Said { name, by }) = said else { return Ok(builder.open()?) };
    builder.subject(name).open().map_err(|error| refused(error, folder, by))
}

pub(crate) fn refused(error: Error, folder: &Path, by: By) -> Failure {
    match error {
        // A subject alone makes no store: a new encrypted store needs a key.
        Error::NotAStore { .. } if !folder.join("acpdb.json").exists() => {
            let folder = folder.display();
            let said = by.words();
            Failure::usage(format!(
                "there is no store in {folder}, and {said} names a subject: only sessions of an encrypted store can be about one"
            ))
            .hint(by.hint())
        }
        error @ Error::Subject { .. } => Failure::from(error).hint(by.hint()),
        error => error.into(),
    }
}
