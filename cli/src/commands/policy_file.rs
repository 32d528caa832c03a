//! Files that a user names: read whole, as a policy or as text.

use acpdb_engine::fold::Policy as Rules;
use acpdb_engine::fold::PolicyError;
use acpdb_engine::fold::policy::PRESETS;
use acpdb_engine::ids::Seq;
use acpdb_engine::store::StreamName;
use serde_json::{Value, json};

use super::{Code, Failure};

/// Largest policy file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A policy for programs, with the event that set it, if this command did.
pub(super) fn answer(policy: &Rules, session: Option<&StreamName>, seq: Option<Seq>) -> Value {
    json!({
        "schema": "acpdb.policy/1",
        "seq": seq,
        "session": session.map(|session| &session.name),
        "preset": policy.preset,
        "changed": policy.compact(),
        "policy": policy.to_value(),
    })
}

#[expect(clippy::needless_pass_by_value, reason = "for map_err")]
pub(crate) fn refused(error: PolicyError) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        PolicyError::UnknownPreset { suggestion: None, .. } => {
            failure.hint(format!("presets: {}", PRESETS.join(", ")))
        }
        PolicyError::UnknownKey { suggestion: None, .. } => failure.hint("acpdb policy show lists the keys"),
        _ => failure,
    }
}

/// The failure for a file that the user names. A missing file has a code of its own.
pub(super) fn unread(name: &str) -> impl Fn(std::io::Error) -> Failure {
    let failed = Failure::io("read", name);
    move |error| {
        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
        let failure = failed(error);
        if is_missing { failure.coded(Code::NotFound) } else { failure }
    }
}

/// A file that the user names: at most [`FILE_BYTES_MAX`] of text. `what` describes it in a message.
pub(super) fn read(name: &str, what: &str) -> Result<String, Failure> {
    use std::io::Read as _;
    let failed = unread(name);
    let mut text = String::new();
    let file = std::fs::File::open(name).map_err(&failed)?;
    let read = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    if read as u64 > FILE_BYTES_MAX {
        return Err(Failure::usage(format!(
            "{name} is longer than {FILE_BYTES_MAX} bytes; that is no {what}"
        )));
    }
    Ok(text)
}

pub(crate) fn from_file(name: &str) -> Result<Rules, Failure> {
    let text = read(name, "policy")?;
    let is_json = std::path::Path::new(name).extension().is_some_and(|extension| extension == "json");
    let parsed = if is_json { Rules::from_json(&text) } else { Rules::from_toml(&text) };
    parsed.map_err(|error| refused(error).in_place(name))
}
