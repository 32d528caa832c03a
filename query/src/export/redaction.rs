//! Secrets taken out of pages.

use std::borrow::Cow;
use std::sync::Arc;

use acpdb_engine::Redactor;

/// Takes secrets out of a page, if that was asked for.
#[derive(Clone, Default)]
pub(super) struct Redaction(pub(super) Option<Arc<dyn Redactor>>);

impl Redaction {
    /// The text, without secrets.
    pub(super) fn of<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let redacted = self.0.as_ref().and_then(|redactor| redactor.redact(text.as_bytes()));
        redacted.map_or(Cow::Borrowed(text), |(bytes, _)| String::from_utf8_lossy(&bytes).into_owned().into())
    }
}

impl std::fmt::Debug for Redaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Redaction(on)" } else { "Redaction(off)" })
    }
}
