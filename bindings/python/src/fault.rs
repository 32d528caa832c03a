//! Errors of the engine as Python's: one class each, by what a caller can do about it.
//!
//! The classes live in `acpdb._errors`, where people find them; here is which error becomes which.

use acpdb_engine::Error;
use acpdb_query::FindError;
use acpdb_query::export::ExportError;
use acpdb_query::when::WhenError;
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// An exception of one of the classes of `acpdb._errors`.
pub(crate) fn raise(class: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import("acpdb._errors")
            .and_then(|module| module.getattr(class))
            .and_then(|class| Ok(class.cast_into::<PyType>()?))
            .and_then(|class| class.call1((text,)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// A value that cannot be used, with what to give instead.
pub(crate) fn invalid(text: impl Into<String>) -> PyErr {
    raise("InvalidError", text.into())
}

/// The class of an error.
const fn class_of(error: &Error) -> &'static str {
    match error {
        Error::Busy { .. } => "BusyError",
        Error::HeadMoved { .. } => "HeadMovedError",
        Error::Rejected(_) => "RejectedError",
        Error::NotFound { .. } => "NotFoundError",
        Error::Ambiguous { .. } => "AmbiguousError",
        Error::TooLarge { .. } => "TooLargeError",
        Error::NoSpace { .. } => "NoSpaceError",
        Error::ReadOnly { .. } => "ReadOnlyError",
        Error::Poisoned => "PoisonedError",
        Error::Replaced { .. } => "ReplacedError",
        Error::Forked { .. } => "ForkedError",
        Error::UntrustedFileSystem { .. } => "UntrustedFileSystemError",
        Error::NotAStore { .. } => "NotAStoreError",
        Error::NewerFormat { .. } => "NewerFormatError",
        Error::Upgraded { .. } => "UpgradedError",
        Error::Corrupt { .. } => "CorruptError",
        Error::RolledBack { .. } => "RolledBackError",
        Error::Erased { .. } => "ErasedError",
        Error::Io { .. } => "StorageError",
        _ => "Error",
    }
}

/// An error of the engine, with its causes in one line.
pub(crate) fn of(error: &Error) -> PyErr {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(source) = cause {
        text.push_str(": ");
        text.push_str(&source.to_string());
        cause = source.source();
    }
    raise(class_of(error), text)
}

/// What can be turned into an exception.
pub(crate) trait Fault<T> {
    /// The value, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T> Fault<T> for Result<T, Error> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| of(&error))
    }
}

impl<T> Fault<T> for Result<T, FindError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| match error {
            FindError::Store(error) => of(&error),
            FindError::NotFound { nearest: Some(ref nearest), .. } => {
                raise("NotFoundError", format!("{error}; did you mean {nearest}?"))
            }
            FindError::Ambiguous { .. } => {
                raise("AmbiguousError", format!("{error}; give the #seq, or more of the id"))
            }
            other => raise("NotFoundError", other.to_string()),
        })
    }
}

impl<T> Fault<T> for Result<T, WhenError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| match error {
            WhenError::Store(error) => of(&error),
            WhenError::Unreadable { .. } => invalid(error.to_string()),
            other => raise("NotFoundError", other.to_string()),
        })
    }
}

impl<T> Fault<T> for Result<T, ExportError> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| match error {
            ExportError::Store(error) => of(&error),
            other => raise("StorageError", other.to_string()),
        })
    }
}

/// What Python says when a text holds half of a surrogate pair, put so that it says what to do.
pub(crate) fn text_error(py: Python<'_>, what: &str, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyUnicodeEncodeError>(py) {
        return invalid(format!(
            "{what} holds half of a surrogate pair, which is no character; \
             replace it with text.encode('utf-8', 'replace').decode(), or give bytes where bytes are taken"
        ));
    }
    error
}

/// Keyword arguments that an exception of `json.dumps` names.
pub(crate) fn json_options(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let options = PyDict::new(py);
    options.set_item("ensure_ascii", false)?;
    options.set_item("allow_nan", false)?;
    options.set_item("separators", (",", ":"))?;
    Ok(options)
}
