//! Values across the border: answers to Python, Python to JSON bytes, names of points in time.

use acpdb_bindings::Arguments;
use acpdb_engine::entry::Bytes;
use pyo3::exceptions::{PyException, PyOverflowError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString};
use pythonize::pythonize;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::fault::{OrRaise as _, invalid, json_options, raise, text_error};

/// The named arguments of a call as JSON.
pub(crate) fn named(given: Option<&Bound<'_, PyDict>>) -> PyResult<String> {
    let Some(given) = given else { return Ok("{}".to_owned()) };
    let json = dumped("an argument", given)?;
    Ok(String::from_utf8_lossy(&json).into_owned())
}

/// The named arguments of a call.
pub(crate) fn arguments(given: Option<&Bound<'_, PyDict>>) -> PyResult<Arguments> {
    Arguments::read(&named(given)?).or_raise()
}

/// A value of the engine as Python's dicts, lists, strings and numbers, with the names of the program's JSON.
pub(crate) fn shown<'py>(py: Python<'py>, value: &(impl Serialize + ?Sized)) -> PyResult<Bound<'py, PyAny>> {
    pythonize(py, value).map_err(|error| {
        let why = error.to_string();
        let error = PyErr::from(error);
        // A value without a form is a bare `Exception` there. An error that Python itself raises has a more telling class, and
        // stays.
        if error.get_type(py).is(py.get_type::<PyException>()) {
            return raise("Error", format!("the answer has no form in Python: {why}"));
        }
        error
    })
}

/// Facts that are JSON already.
pub(crate) fn read<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (json,))
}

/// The bytes of a text or of bytes: one copy, into the buffer for the log.
pub(crate) fn bytes_of(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(text) = value.cast::<PyString>() {
        let text = text.to_str().map_err(|error| text_error(value.py(), what, error))?;
        return Ok(Bytes::from(text.as_bytes()));
    }
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Bytes::from(bytes.as_bytes()));
    }
    Err(wrong_type(what, "str or bytes", value))
}

/// Bytes as they are, or any other value as compact JSON. A `str` is JSON already.
pub(crate) fn json_bytes(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>() {
        let bytes = bytes_of(what, value)?;
        serde_json::from_slice::<&serde_json::value::RawValue>(&bytes).map_err(|error| {
            invalid(format!("{what} is no JSON: {error}; give a dict to have it written as JSON"))
        })?;
        return Ok(bytes);
    }
    dumped(what, value)
}

/// Any value as compact JSON.
pub(crate) fn dumped(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let py = value.py();
    let text = py.import("json")?.call_method("dumps", (value,), Some(&json_options(py)?));
    let text = text.map_err(|error| {
        // NaN and cycles are ValueErrors, a value without a form in JSON is a TypeError, depth is a RecursionError.
        invalid(format!("{what} has no form in JSON: {}", error.value(py)))
    })?;
    bytes_of(what, &text)
}

/// A word of a closed set, such as a role.
pub(crate) fn word<T: DeserializeOwned>(what: &str, text: &str) -> PyResult<T> {
    acpdb_bindings::word(what, text).map_err(|fault| crate::fault::of(&fault))
}

/// A point in time in the form of the command line: a seq, `t3`, a time, ..
pub(crate) fn point(at: Option<&Bound<'_, PyAny>>) -> PyResult<Option<String>> {
    let Some(at) = at.filter(|at| !at.is_none()) else { return Ok(None) };
    if let Ok(text) = at.cast::<PyString>() {
        let text = text.to_str().map_err(|error| text_error(at.py(), "at", error))?;
        return Ok(Some(text.to_owned()));
    }
    if let Ok(yes) = at.extract::<bool>() {
        return Err(invalid(format!("at is a seq, a text such as 't3', or a datetime, not {yes}")));
    }
    if let Ok(seq) = at.extract::<u64>() {
        return Ok(Some(format!("#{seq}")));
    }
    if at.hasattr("isoformat")? {
        // A time without a zone is local time, as everywhere in Python.
        return Ok(Some(at.call_method0("isoformat")?.extract::<String>()?.replace(' ', "T")));
    }
    if at.is_instance_of::<pyo3::types::PyInt>() {
        return Err(invalid("at: a seq is from 1 to 18446744073709551615"));
    }
    Err(wrong_type("at", "a seq, a text such as 't3', or a datetime", at))
}

/// An argument whose number or text may not cross the border: the error says what to give.
pub(crate) struct Given<T>(pub(crate) T);

impl<'a, 'py, T> FromPyObject<'a, 'py> for Given<T>
where
    T: FromPyObject<'a, 'py>,
{
    type Error = PyErr;

    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let py = given.py();
        given.extract::<T>().map(Self).map_err(|error| {
            let error: PyErr = error.into();
            if error.is_instance_of::<PyOverflowError>(py) {
                return invalid(format!(
                    "a number is out of range: {}; give a whole number",
                    error.value(py)
                ));
            }
            text_error(py, "a text", error)
        })
    }
}

/// A `TypeError` that names the expected and the given type.
pub(crate) fn wrong_type(what: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let found = found.get_type().name().map_or_else(|_| "another type".to_owned(), |name| name.to_string());
    pyo3::exceptions::PyTypeError::new_err(format!("{what} is {expected}, not {found}"))
}
