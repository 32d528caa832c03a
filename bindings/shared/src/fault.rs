//! Errors by the caller's possible reactions: a code that stays the same, and a text that says what to do.

use acpdb_engine::Error;
use acpdb_query::FindError;
use acpdb_query::export::ExportError;
use acpdb_query::when::{TIME_FORMS, WhenError};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// An error of any operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A word of the list of errors in `surface.toml`.
    pub code: &'static str,
    /// A sentence that says what happened and what to do.
    pub text: String,
}

impl Fault {
    /// The code of an argument of a wrong type, for which each language has an error of its own.
    pub const TYPE: &'static str = "type";

    /// An error of this code.
    pub fn new(code: &'static str, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// The error for a value that cannot be used; its text says what to give instead.
    pub fn invalid(text: impl Into<String>) -> Self {
        Self::new("invalid", text)
    }

    /// The handle was closed.
    pub fn closed() -> Self {
        Self::new("closed", "the store was closed; open it again")
    }
}

/// The code of an error of the engine.
const fn code(error: &Error) -> &'static str {
    match error {
        Error::Busy { .. } => "busy",
        Error::HeadMoved { .. } => "head_moved",
        Error::Rejected(_) => "rejected",
        Error::NotFound { .. } => "not_found",
        Error::Ambiguous { .. } => "ambiguous",
        Error::TooLarge { .. } => "too_large",
        Error::NoSpace { .. } => "no_space",
        Error::ReadOnly { .. } => "read_only",
        Error::Poisoned => "poisoned",
        Error::Replaced { .. } => "replaced",
        Error::Forked { .. } => "forked",
        Error::UntrustedFileSystem { .. } => "untrusted_file_system",
        Error::NotAStore { .. } => "not_a_store",
        Error::NewerFormat { .. } => "newer_format",
        Error::Upgraded { .. } => "upgraded",
        Error::Corrupt { .. } => "corrupt",
        Error::Erased { .. } => "erased",
        Error::Locked { .. } => "locked",
        Error::Fenced { .. } => "fenced",
        Error::Unshipped { .. } => "unshipped",
        Error::Io { .. } => "storage",
        _ => "error",
    }
}

impl From<&Error> for Fault {
    /// The error with its causes in one line.
    fn from(error: &Error) -> Self {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(source) = cause {
            text.push_str(": ");
            text.push_str(&source.to_string());
            cause = source.source();
        }
        let code = code(error);
        Self { code, text }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<FindError> for Fault {
    fn from(error: FindError) -> Self {
        match error {
            FindError::Store(error) => error.into(),
            FindError::NotFound { nearest: Some(ref nearest), .. } => {
                Self::new("not_found", format!("{error}; did you mean {nearest}?"))
            }
            FindError::Ambiguous { .. } => {
                Self::new("ambiguous", format!("{error}; give the #seq, or more of the id"))
            }
            other => Self::new("not_found", other.to_string()),
        }
    }
}

impl From<WhenError> for Fault {
    fn from(error: WhenError) -> Self {
        match error {
            WhenError::Store(error) => error.into(),
            WhenError::Unreadable { .. } => {
                let forms = "812 (an event), t12, -3t, @compact-1, @rewind-1";
                Self::invalid(format!("{error}; give {forms}, {TIME_FORMS}"))
            }
            other => Self::new("not_found", other.to_string()),
        }
    }
}

impl From<ExportError> for Fault {
    fn from(error: ExportError) -> Self {
        match error {
            ExportError::Store(error) => error.into(),
            other => Self::new("storage", other.to_string()),
        }
    }
}

/// A word of a closed set, such as a role.
pub fn word<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Fault> {
    serde_json::from_value(Value::String(text.to_owned()))
        .map_err(|error| Fault::invalid(format!("{what}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both came out as plain errors: a caller could not tell a store that another worker has from a remote that is away.
    #[test]
    fn errors_of_a_store_that_is_acknowledged_elsewhere_have_codes_of_the_list() {
        let listed = include_str!("../../surface.toml");
        let away = Error::Unshipped { detail: "the bucket is away".to_owned() };
        for (error, expected) in [(Error::Fenced { epoch: 2 }, "fenced"), (away, "unshipped")] {
            assert_eq!(Fault::from(&error).code, expected);
            assert!(listed.contains(&format!("Error = \"{expected}\"\n")), "{expected} is in no list");
        }
    }
}
