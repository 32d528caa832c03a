//! Secrets taken out of the texts of commands.

use super::redact::Pass;
use super::{Store, StoreInner};
use crate::entry::Bytes;
use crate::entry::fact::Cleaner as _;

impl Store {
    /// A text without the secrets that the store's redactor takes out.
    #[doc(hidden)]
    pub fn cleaned(&self, text: &str) -> String {
        self.inner.cleaned(text)
    }

    /// The digest by which the store knows a context that was sent.
    #[doc(hidden)]
    pub fn served_digest(&self, bytes: &[u8]) -> [u8; 32] {
        self.inner.log.secret().served(bytes)
    }
}

impl StoreInner {
    /// Takes secrets out of a text of a command.
    pub(super) fn clean_text(&self, text: &mut String) {
        if let Some(redactor) = self.redactor.as_deref() {
            Pass::new(redactor).text(text);
        }
    }

    /// The text without secrets.
    pub(super) fn cleaned(&self, text: &str) -> String {
        let mut text = text.to_owned();
        self.clean_text(&mut text);
        text
    }

    /// The JSON of a command without secrets.
    pub(super) fn clean_json(&self, json: &[u8]) -> Bytes {
        let mut json = Bytes::from(json);
        if let Some(redactor) = self.redactor.as_deref() {
            Pass::new(redactor).json(&mut json);
        }
        json
    }
}
