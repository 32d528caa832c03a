//! The notification of a task, which the host sends in more words than its row has. These words stand in the copy of the
//! message that the host keeps behind the row, so the row waits for the copy.
//!
//! ```text
//! user              "<task-notification>.."                                    waits
//! api-request-blob  "..[SYSTEM NOTIFICATION..<task-notification>.."            the row is told in these words
//! api-request, assistant                                                       there was no copy: it is told as it stands
//! ```

use memchr::memmem;

use super::super::json;
use super::Pending;

const BEGINNING: &str = "<task-notification>";
/// Most records that wait.
const WAITING_MAX: usize = 64;

/// Records that wait, from the row of a notification on.
#[derive(Default)]
pub(super) struct Waiting(Vec<Pending>);

impl Waiting {
    /// Whether a record is to wait: it begins a notification, or one waits already.
    pub(super) fn takes(&self, text: Option<&str>) -> bool {
        !self.0.is_empty() || text.is_some_and(|text| notice(text).is_some())
    }

    /// Lets a record wait. Gives all waiting records once the words of the notification are known, or will not come; and
    /// the words.
    pub(super) fn push(&mut self, record: Pending) -> Option<(Vec<Pending>, Vec<String>)> {
        let text = record.text().unwrap_or_default();
        let kind = json::string(json::member(Some(text), "type")).unwrap_or_default();
        let words = if kind == "api-request-blob" { copied(text) } else { Vec::new() };
        let ends = !words.is_empty() || matches!(&*kind, "api-request" | "assistant");
        self.0.push(record);
        (ends || self.0.len() >= WAITING_MAX).then(|| (self.take(), words))
    }

    /// Takes out all that wait.
    pub(super) fn take(&mut self) -> Vec<Pending> {
        std::mem::take(&mut self.0)
    }
}

/// The text of a row, if it is a notification of the session's own.
fn notice(text: &str) -> Option<String> {
    memmem::find(text.as_bytes(), BEGINNING.as_bytes())?;
    let [kind, message, is_side] = json::pick(text, ["type", "message", "isSidechain"])?;
    let is_own = json::string(kind).as_deref() == Some("user") && json::boolean(is_side) != Some(true);
    let said = json::owned(json::member(message.filter(|_| is_own), "content"))?;
    said.starts_with(BEGINNING).then_some(said)
}

/// The texts of a copied message that hold a notification.
fn copied(text: &str) -> Vec<String> {
    let content = json::member(json::member(Some(text), "message"), "content").and_then(json::elements);
    let texts = content.unwrap_or_default().into_iter();
    let texts = texts.filter_map(|block| json::owned(json::member(Some(block), "text")));
    texts.filter(|text| text.contains(BEGINNING)).collect()
}

/// The words in which a row was sent, if it is a notification and they are among `words`.
pub(super) fn sent(text: Option<&str>, words: &[String]) -> Option<String> {
    let said = text.filter(|_| !words.is_empty()).and_then(notice)?;
    words.iter().find(|words| words.contains(&said)).cloned()
}
