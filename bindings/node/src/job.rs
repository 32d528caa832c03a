//! Work of a promise: runs on a thread of Node's pool; an error has a code and a text, and a panic becomes an error.

use std::panic::{AssertUnwindSafe, catch_unwind};

use acpdb_bindings::{Described, Fault};
use acpdb_engine::entry::{Bytes, Entry};
use napi::bindgen_prelude::{AsyncTask, Either, Latin1String, ToNapiValue, TypeName};
use napi::{Env, Error, Status, Task};

type Work<T> = Box<dyn FnOnce() -> Result<T, Fault> + Send>;

/// Work that becomes a promise.
pub struct Job<T>(Option<Work<T>>);

/// A promise for the result of `work`.
pub(crate) fn promise<T: Send + ToNapiValue + TypeName + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> AsyncTask<Job<T>> {
    AsyncTask::new(Job(Some(Box::new(work))))
}

impl<T: Send + ToNapiValue + TypeName + 'static> Task for Job<T> {
    type Output = T;
    type JsValue = T;

    fn compute(&mut self) -> napi::Result<T> {
        let work = self.0.take().ok_or_else(|| raise(Fault::new("error", "the work was done already")))?;
        caught(work).map_err(raise)
    }

    fn resolve(&mut self, _: Env, output: T) -> napi::Result<T> {
        Ok(output)
    }
}

/// The result of `work`. A panic becomes an error, and the values that it had changed are not used again.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        Err(Fault::new(
            "error",
            "acpdb has a fault and gave up this call; close the store, open it again, and report it",
        ))
    })
}

/// The error for JavaScript: the package makes an error of one of its classes from it.
pub(crate) fn raise(fault: Fault) -> Error {
    let told = serde_json::json!({"code": fault.code, "text": fault.text});
    Error::new(Status::GenericFailure, told.to_string())
}

/// Facts as the package describes them, with their texts.
pub(crate) fn described(facts: &str, given: &[Bytes]) -> Result<Vec<Entry>, Fault> {
    let described: Vec<Described> = serde_json::from_str(facts)
        .map_err(|error| Fault::invalid(format!("an argument cannot be used: {error}")))?;
    acpdb_bindings::entries(&described, given)
}

/// An answer as JSON. Most answers are ASCII only, which JavaScript takes as it is; other text has to be converted for it.
pub(crate) type Told = Either<Latin1String, String>;

/// An answer as JSON.
pub(crate) fn told(value: &(impl serde::Serialize + ?Sized)) -> Result<Told, Fault> {
    let json = acpdb_bindings::told(value)?;
    Ok(if json.is_ascii() { Either::A(json.into()) } else { Either::B(json) })
}
