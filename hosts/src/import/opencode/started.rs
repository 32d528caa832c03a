//! Sessions that calls started: the state of such a call names the session.

use super::super::{ImportContext, ImportError, json};
use super::SessionReader;

/// The call that a part tells, and the session that it started: the tools that start one name it.
pub(super) fn started_by(id: &str, call: Option<&str>, state: &str) -> Option<(String, String)> {
    let session = json::owned(json::member(json::member(Some(state), "metadata"), "sessionId"))?;
    Some((json::owned(call).unwrap_or_else(|| id.to_owned()), session))
}

impl SessionReader {
    /// Tells which calls started which sessions.
    pub(super) fn tell_started(&mut self, context: &mut ImportContext<'_>) -> Result<(), ImportError> {
        let started = std::mem::take(&mut self.started);
        started.iter().try_for_each(|(call, session)| context.starts(&self.stream, call, session))
    }
}
