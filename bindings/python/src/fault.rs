//! Errors as Python's exceptions: one class for each way in which a caller can react.
//!
//! The classes are in `acpdb._errors`, where people look for them; the code of an error selects the class. A second copy of the
//! package, under another name, has its own classes: when the engine is loaded, it is told the name of its package.

use std::sync::OnceLock;

use acpdb_bindings::Fault;
use pyo3::exceptions::{PyTypeError, PyUnicodeEncodeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

/// The module with the classes; each copy of the package loads its own engine.
static ERRORS: OnceLock<String> = OnceLock::new();

/// Sets the name under which the engine was loaded, such as `acpdb._acpdb`.
pub(crate) fn loaded_as(name: &str) {
    let package = name.rsplit_once('.').map_or("acpdb", |(package, _)| package);
    // A module that is loaded twice has the same name.
    let _ = ERRORS.set(format!("{package}._errors"));
}

/// An exception of one of the classes of `acpdb._errors`.
pub(crate) fn raise(class: &str, text: String) -> PyErr {
    Python::attach(|py| {
        let made = py
            .import(ERRORS.get().map_or("acpdb._errors", String::as_str))
            .and_then(|module| module.getattr(class))
            .and_then(|class| Ok(class.cast_into::<PyType>()?))
            .and_then(|class| class.call1((text,)));
        made.map_or_else(|error| error, PyErr::from_value)
    })
}

/// The error for a value that cannot be used; its text says what to give instead.
pub(crate) fn invalid(text: impl Into<String>) -> PyErr {
    raise("InvalidError", text.into())
}

/// An error of any operation as an exception of the class that its code belongs to: `not_found` is `NotFoundError`.
pub(crate) fn of(fault: &Fault) -> PyErr {
    if fault.code == Fault::TYPE {
        return PyTypeError::new_err(fault.text.clone());
    }
    let words = fault.code.split('_').map(|word| {
        let (first, rest) = word.split_at_checked(1).unwrap_or((word, ""));
        format!("{}{rest}", first.to_ascii_uppercase())
    });
    let class: String = words.collect();
    raise(
        if fault.code == "error" { "Error".to_owned() } else { format!("{class}Error") }.as_str(),
        fault.text.clone(),
    )
}

/// Results whose errors can become exceptions.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: Into<Fault>> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| of(&error.into()))
    }
}

/// Replaces Python's error for half of a surrogate pair in a text by one that says what to do.
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
