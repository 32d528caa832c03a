//! Secrets taken out of the texts of commands.

use super::Inner;
use super::redact::Pass;
use crate::entry::Bytes;
use crate::entry::fact::Cleaner as _;

impl Inner {
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
