//! Secrets taken out of facts before the facts are digested.
//!
//! ```text
//! Entry, command -> Redactor: every string in it -> the same without secrets -> draft -> hash -> log
//!                        '-> how many by which rule: a HostRecorded `redaction` in the same commit
//! ```
//!
//! A secret that is taken out never reaches a digest, a signature, a label, the log or the index. Only its count by rule
//! is recorded. Opaque fields of providers (signatures, encrypted reasoning) are left alone: providers would not accept
//! them with a byte changed. A secret that no rule knows stays: `scan` finds it later, and erasing removes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::entry::fact::{Cleaner, HostFact as _, HostRecorded};
use crate::entry::{Bytes, Entry, MemoryEntry, StreamInfo, WirePiece};
use crate::secret::Secret;

use super::batch::Batch;

/// Finds secrets in texts. Pure: equal texts come out equal, or repeated imports would record them again.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Arc;
///
/// use acpdb_engine::{Redactor, Store};
///
/// struct NoTokens;
///
/// impl Redactor for NoTokens {
///     fn redact(&self, text: &[u8]) -> Option<(Vec<u8>, BTreeMap<String, u64>)> {
///         let text = std::str::from_utf8(text).ok()?;
///         let count = text.matches("token-123").count();
///         (count > 0).then(|| {
///             let counts = BTreeMap::from([("my-token".to_owned(), count as u64)]);
///             (text.replace("token-123", "[a token]").into_bytes(), counts)
///         })
///     }
/// }
///
/// # let folder = tempfile::tempdir()?;
/// let store = Store::builder(folder.path().join("store")).redactor(Arc::new(NoTokens)).open()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Redactor: Send + Sync {
    /// The text without its secrets, and how many each rule took out; `None` if there are none.
    fn redact(&self, text: &[u8]) -> Option<(Vec<u8>, BTreeMap<String, u64>)>;
}

/// The batches as they are recorded: without secrets, and with names of the store's own for streams whose names a host
/// derived from a record's bytes. A last batch for each stream counts the secrets that were taken out. `None`: the batches
/// need no change.
pub(super) fn settled(
    redactor: Option<&dyn Redactor>,
    secret: &Secret,
    batches: &[Batch],
) -> Option<Vec<Batch>> {
    let Some(redactor) = redactor else {
        let all = batches.iter().map(|batch| Batch {
            stream: named(&batch.stream, secret).unwrap_or_else(|| batch.stream.clone()),
            entries: batch.entries.clone(),
        });
        return Some(all.collect());
    };
    let mut out = Vec::with_capacity(batches.len());
    let mut notes = Vec::new();
    let mut any = false;
    for batch in batches {
        let mut copy = batch.clone();
        copy.stream = stream(Some(redactor), secret, &batch.stream);
        any |= copy.stream != batch.stream;
        let mut told = Vec::new();
        for entry in &mut copy.entries {
            let mut pass = Pass::new(redactor);
            pass.entry(entry);
            if pass.counts.is_empty() {
                continue;
            }
            // Names and numbers always become JSON.
            let counts = serde_json::to_vec(&pass.counts).unwrap_or_default();
            let mut about = entry.origin.clone();
            if let Some(about) = &mut about {
                pass.text(about);
            }
            let fact = HostRecorded { record: "redaction".to_owned(), about, raw: Some(counts.into()) };
            let mut note = Entry::from(fact);
            note.origin = entry.origin.as_ref().map(|origin| format!("redaction:{origin}"));
            told.push(note);
        }
        if !told.is_empty() {
            notes.push(Batch { stream: copy.stream.clone(), entries: told });
        }
        out.push(copy);
    }
    any |= !notes.is_empty();
    out.append(&mut notes);
    any.then_some(out)
}

/// A stream as it is recorded.
pub(super) fn stream(redactor: Option<&dyn Redactor>, secret: &Secret, info: &StreamInfo) -> StreamInfo {
    let mut info = named(info, secret).unwrap_or_else(|| info.clone());
    if let Some(redactor) = redactor {
        texts_of(redactor, &mut info);
    }
    info
}

/// Takes secrets out of all texts about a stream.
fn texts_of(redactor: &dyn Redactor, info: &mut StreamInfo) {
    {
        let mut pass = Pass::new(redactor);
        for text in [&mut info.name, &mut info.host] {
            pass.text(text);
        }
        for text in
            [&mut info.project, &mut info.cwd, &mut info.title, &mut info.host_version].into_iter().flatten()
        {
            pass.text(text);
        }
        if let Some((_, Some(call))) = &mut info.parent {
            pass.text(call);
        }
    }
}

fn named(info: &StreamInfo, secret: &Secret) -> Option<StreamInfo> {
    Some(StreamInfo { name: secret.name(&info.name)?, ..info.clone() })
}

/// Takes secrets out of texts, and counts them by rule.
pub(super) struct Pass<'r> {
    redactor: &'r dyn Redactor,
    counts: BTreeMap<String, u64>,
}

impl<'r> Pass<'r> {
    pub(super) fn new(redactor: &'r dyn Redactor) -> Self {
        Self { redactor, counts: BTreeMap::new() }
    }
}

impl Pass<'_> {
    fn clean(&mut self, bytes: &[u8], counted: bool) -> Option<Vec<u8>> {
        let (clean, counts) = self.redactor.redact(bytes)?;
        if counted {
            for (rule, count) in counts {
                *self.counts.entry(rule).or_default() += count;
            }
        }
        Some(clean)
    }

    /// Takes secrets out of all texts of a memory item, ids included.
    pub(super) fn memory(&mut self, memory: &mut MemoryEntry) {
        memory.clean(self);
        memory.ids_mut(&mut |id| self.text(id));
    }

    pub(super) fn entry(&mut self, entry: &mut Entry) {
        entry.fact.clean(self);
        entry.fact.ids_mut(&mut |id| self.text(id));
        // The record repeats secrets that were counted; only secrets that stand nowhere else are counted here.
        let fact_had_some = !self.counts.is_empty();
        for piece in &mut entry.wire {
            match piece {
                WirePiece::Literal(bytes) => {
                    if let Some(clean) = self.clean(bytes, !fact_had_some) {
                        *bytes = clean;
                    }
                }
                WirePiece::Raw(bytes) | WirePiece::Escaped(bytes) => {
                    if let Some(clean) = self.clean(bytes, false) {
                        *bytes = Arc::from(clean);
                    }
                }
                WirePiece::Record(_) => {}
            }
        }
    }
}

impl Cleaner for Pass<'_> {
    fn bytes(&mut self, bytes: &mut Bytes) {
        if let Some(clean) = self.clean(bytes, true) {
            *bytes = clean.into();
        }
    }

    /// JSON stays JSON: if a rule cut into its signs, a mark takes the place of the whole.
    fn json(&mut self, bytes: &mut Bytes) {
        let Some(clean) = self.clean(bytes, true) else { return };
        let is_json = |bytes: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok();
        *bytes = if is_json(&clean) || !is_json(bytes) {
            clean.into()
        } else {
            br#"{"redacted":true}"#.as_slice().into()
        };
    }

    fn text(&mut self, text: &mut String) {
        if let Some(clean) = self.clean(text.as_bytes(), true) {
            *text = String::from_utf8_lossy(&clean).into_owned();
        }
    }
}
