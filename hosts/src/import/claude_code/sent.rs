//! The words in which records were sent: the host keeps a copy of each message that its rows do not give, behind them.
//!
//! ```text
//! user, attachment, ..    wait
//! api-request-blob        a message as it was sent, by its digest
//! api-request             the digests of the messages that were sent
//! assistant               the answer: what waited is told in the words of that request
//! ```
//!
//! Hosts change the words on the way, in other ways for other models and versions: notifications get an introduction, reminders change
//! their role or move into a result, line feeds are added. So nothing here knows such a way: a text is found again among those that were
//! sent, a result by its call. Where the exporter makes the same message from the rows, they are told as they stand.

use acpdb_engine::entry::{Entry, PartEntry, fact};
use acpdb_engine::event::Role;

use super::super::json;
use super::attached::{Attachment, AttachmentPosition, SENT, told, untagged};
use super::blocks::MessageBlocks;
use super::record::{Record, RecordWords, SentPlace};

const NOTICE: &str = "<task-notification>";
/// The oldest version that may record its requests: 2.1.322 does, 2.1.197 does not.
const REQUESTS_SINCE: [u32; 3] = [2, 1, 198];
/// Most records that wait, and most of their bytes.
const WAITING_MAX: usize = 256;
const WAITING_BYTES_MAX: usize = 32 << 20;

/// The place of a record in the input.
#[derive(Clone, Copy)]
pub(super) struct RecordPosition {
    pub(super) line: u64,
    pub(super) offset: u64,
    pub(super) end: u64,
}

/// A record that waits until more is known.
pub(super) struct Pending {
    pub(super) raw: Vec<u8>,
    pub(super) place: RecordPosition,
    /// It is text that may be parsed.
    is_text: bool,
    /// That text, if the record was mended.
    mended: Option<String>,
}

impl Pending {
    pub(super) fn of(raw: &[u8], text: Option<&str>, place: RecordPosition) -> Self {
        let mended = text.filter(|text| text.as_bytes() != raw).map(str::to_owned);
        Self { raw: raw.to_vec(), place, is_text: text.is_some(), mended }
    }

    pub(super) fn text(&self) -> Option<&str> {
        // `is_text` says whether it was one when it came.
        let own = || std::str::from_utf8(&self.raw).ok().filter(|_| self.is_text);
        self.mended.as_deref().or_else(own)
    }
}

/// Records that wait, from the first one behind an answer on.
#[derive(Default)]
pub(super) struct Waiting {
    records: Vec<Pending>,
    bytes: usize,
    /// Copied messages with their digests, and the requests since.
    copies: Vec<(String, CopiedMessages)>,
    requests: Vec<SentRequest>,
    /// The file has recorded a request.
    has_requests: bool,
    /// The file grows while it is read: what came is told at once, and only notifications wait.
    grows: bool,
}

struct CopiedMessages {
    role: Option<Role>,
    /// The content as JSON.
    content: String,
}

/// A request: the first messages of another one, then these.
struct SentRequest {
    id: String,
    base: Option<String>,
    keep: u64,
    tail: Vec<String>,
}

/// Records that waited, each with the words in which it was sent, and texts that stand in no record.
#[derive(Default)]
pub(super) struct Flushed {
    pub(super) records: Vec<(Pending, Option<RecordWords>)>,
    pub(super) beside: Vec<Entry>,
}

impl Waiting {
    pub(super) fn new(grows: bool) -> Self {
        Self { grows, ..Self::default() }
    }

    /// Whether a record is to wait. An answer ends the wait; but a host tells an answer with several calls in several records, with
    /// results between them, and then no request is between them.
    pub(super) fn takes(&self, record: Option<&Record<'_>>) -> bool {
        let Some(record) = record else { return !self.records.is_empty() };
        let kind = &*record.kind;
        if kind == "assistant" {
            return !self.records.is_empty() && self.has_requests && self.requests.is_empty();
        }
        let is_said = matches!(kind, "user" | "attachment" | "system");
        let is_sent = matches!(kind, "api-request-blob" | "api-request");
        let tells = || !self.grows && (self.has_requests || tells_requests(record));
        !self.records.is_empty() || (is_sent && !self.grows) || (is_said && (tells() || is_notice(record)))
    }

    /// Lets a record wait; gives all, if they are too many.
    pub(super) fn push(&mut self, kind: &str, record: Pending) -> Option<Flushed> {
        let text = record.text().unwrap_or_default();
        match kind {
            "api-request-blob" => {
                let [hash, message] = json::pick(text, ["hash", "message"]).unwrap_or_default();
                let [role, content] =
                    message.and_then(|it| json::pick(it, ["role", "content"])).unwrap_or_default();
                if let Some(content) = content {
                    let digest = json::owned(hash).unwrap_or_else(|| format!("copy {}", self.copies.len()));
                    let role = match json::string(role).as_deref() {
                        Some("user") => Some(Role::User),
                        Some("system") => Some(Role::System),
                        _ => None,
                    };
                    self.copies.push((digest, CopiedMessages { role, content: content.to_owned() }));
                }
            }
            "api-request" => {
                self.has_requests = true;
                let [id, base, keep, tail] =
                    json::pick(text, ["id", "base", "keep", "tail"]).unwrap_or_default();
                let tail = tail.and_then(json::elements).unwrap_or_default();
                let mut tail: Vec<String> =
                    tail.into_iter().filter_map(|digest| json::owned(Some(digest))).collect();
                if tail.is_empty() {
                    // It does not say which: those that it has been told of.
                    tail.extend(self.copies.iter().map(|(digest, _)| digest.clone()));
                }
                self.requests.push(SentRequest {
                    id: json::owned(id).unwrap_or_default(),
                    base: json::owned(base),
                    keep: json::count(keep).unwrap_or_default(),
                    tail,
                });
            }
            _ => {}
        }
        self.bytes = self.bytes.saturating_add(record.raw.len());
        self.records.push(record);
        (self.records.len() >= WAITING_MAX || self.bytes >= WAITING_BYTES_MAX).then(|| self.take())
    }

    /// Takes out all that wait, with their words.
    pub(super) fn take(&mut self) -> Flushed {
        let messages = self.messages();
        let records = std::mem::take(&mut self.records);
        let copies = std::mem::take(&mut self.copies);
        self.requests.clear();
        self.bytes = 0;
        let copy_of = |digest: &String| copies.iter().find(|(of, _)| of == digest).map(|(_, copy)| copy);
        let mut copies: Vec<(&String, &CopiedMessages)> =
            messages.iter().filter_map(|digest| Some((digest, copy_of(digest)?))).collect();
        // Texts from before the model's last words were told before.
        let said = copies.iter().rposition(|(_, copy)| copy.role.is_none());
        copies.drain(..said.map_or(0, |at| at + 1));
        if copies.is_empty() {
            return Flushed {
                records: records.into_iter().map(|it| (it, None)).collect(),
                beside: Vec::new(),
            };
        }
        told_in(records, &copies)
    }

    /// Digests of the newest request's messages, as far as they came with the requests that waited.
    fn messages(&self) -> Vec<String> {
        let mut out: Vec<String> = Vec::new();
        let mut at = self.requests.last();
        let mut until = usize::MAX;
        while let Some(request) = at {
            let tail = request.tail.get(..until.min(request.tail.len())).unwrap_or_default();
            out.splice(0..0, tail.iter().cloned());
            let base =
                request.base.as_deref().and_then(|base| self.requests.iter().rfind(|it| it.id == base));
            // Behind the messages that the earlier request kept of its own base.
            at = base.filter(|base| base.keep <= request.keep && base.id != request.id);
            until = at.map_or(0, |base| usize::try_from(request.keep - base.keep).unwrap_or(usize::MAX));
        }
        out
    }
}

/// Whether a record is of a version that records its requests.
fn tells_requests(record: &Record<'_>) -> bool {
    json::string(record.version).is_some_and(|version| !is_before(&version, REQUESTS_SINCE))
}

/// Whether a record is a notification: it is never sent in its own words.
fn is_notice(record: &Record<'_>) -> bool {
    let content = json::member(record.message, "content");
    json::string(content).is_some_and(|it| it.starts_with(NOTICE))
}

/// Whether a version is older than another; what is no version is older than all.
fn is_before(version: &str, other: [u32; 3]) -> bool {
    let numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    numbers.chain([0; 3]).take(3).lt(other)
}

/// A text of a record that waited.
struct Own {
    record: usize,
    number: usize,
    place: AttachmentPosition,
    text: String,
}

/// The texts and results of the messages that were sent.
#[derive(Default)]
struct SentMessages<'a> {
    /// The texts of the user's side, with the digests of their messages.
    users: Vec<(&'a str, String)>,
    system: Vec<String>,
    /// Contents of results as JSON, by their calls.
    results: Vec<(String, &'a str)>,
}

impl<'a> SentMessages<'a> {
    fn of(copies: &[(&'a String, &'a CopiedMessages)]) -> Self {
        let mut sent = Self::default();
        for (digest, copy) in copies {
            for block in
                MessageBlocks::parse(Some(&copy.content)).map(|blocks| blocks.list).unwrap_or_default()
            {
                if let Some(call) = block.result_id() {
                    sent.results.extend(block.content().map(|content| (call.into_owned(), content)));
                } else if let Some(text) = json::owned(block.text).filter(|_| block.is("text")) {
                    match copy.role {
                        Some(Role::System) => sent.system.push(text),
                        _ => sent.users.push((digest, text)),
                    }
                }
            }
        }
        sent
    }
}

fn told_in(records: Vec<Pending>, copies: &[(&String, &CopiedMessages)]) -> Flushed {
    let mut own: Vec<Own> = records.iter().enumerate().flat_map(|(at, it)| texts_of(at, it.text())).collect();
    let mut words: Vec<RecordWords> = records.iter().map(|_| RecordWords::default()).collect();
    let sent = SentMessages::of(copies);
    for (record, words) in records.iter().zip(&mut words) {
        for call in calls_of(record.text()) {
            let content =
                sent.results.iter().find(|(of, _)| *of == call).map(|(_, content)| (*content).to_owned());
            words.results.extend(content.map(|content| (call, content)));
        }
    }
    let beside = users_side(&sent, &mut own, &mut words);
    let answers: Vec<String> = sent.results.iter().map(|(_, content)| text_in(content)).collect();
    own.retain(|own| {
        let is_in_result =
            own.place != AttachmentPosition::Own && answers.iter().any(|answer| answer.contains(&own.text));
        if let Some(words) = words.get_mut(own.record).filter(|_| is_in_result) {
            words.is_in_result = true;
        }
        !is_in_result
    });
    systems_side(&sent, &own, &mut words);
    let records = records.into_iter().zip(words);
    let records =
        records.map(|(record, words)| (record, Some(words).filter(|words| *words != RecordWords::default())));
    Flushed { records: records.collect(), beside }
}

/// Finds the texts of the user's side, and takes them out of `own`. Gives those that stand in no record.
fn users_side(sent: &SentMessages<'_>, own: &mut Vec<Own>, words: &mut [RecordWords]) -> Vec<Entry> {
    let mut found: Vec<Option<Own>> = Vec::new();
    for (_, text) in &sent.users {
        let at = own.iter().position(|own| is_same(own, text));
        found.push(at.map(|at| own.remove(at)));
    }
    let mut in_order: Vec<&Own> = found.iter().flatten().collect();
    in_order.sort_by_key(|own| (own.record, own.number));
    let texts: Vec<&str> = sent.users.iter().map(|(_, text)| text.as_str()).collect();
    let mut beside = Vec::new();
    if made(&in_order) == texts {
        return beside;
    }
    for (place, ((digest, text), own)) in sent.users.iter().zip(&found).enumerate() {
        let Some(own) = own else {
            beside.push(said_beside(place, digest, text));
            continue;
        };
        // The exporter puts a line feed between the user's own texts.
        let is_followed = own.place == AttachmentPosition::Own && place + 1 < sent.users.len();
        let feed = text.strip_suffix('\n').filter(|_| is_followed && !own.text.ends_with('\n'));
        let text = feed.unwrap_or(text).to_owned();
        if let Some(words) = words.get_mut(own.record) {
            words.put(own.number, SentPlace { role: Role::User, place, text });
        }
    }
    beside
}

/// Finds the texts in messages of role system, where the exporter would make others.
fn systems_side(sent: &SentMessages<'_>, own: &[Own], words: &mut [RecordWords]) {
    let whole = sent.system.join("\n\n");
    let own: Vec<&Own> = own.iter().filter(|own| own.place == AttachmentPosition::System).collect();
    let made: Vec<&str> = own.iter().map(|own| untagged(&own.text)).collect();
    if whole.is_empty() || made.join("\n\n") == whole {
        return;
    }
    for own in own {
        let forms = [own.text.as_str(), untagged(&own.text)];
        let found = forms.into_iter().find_map(|form| Some((whole.find(form)?, form)));
        if let (Some((place, text)), Some(words)) = (found, words.get_mut(own.record)) {
            words.put(own.number, SentPlace { role: Role::System, place, text: text.to_owned() });
        }
    }
}

/// The texts of a record that the model may read.
fn texts_of(record: usize, text: Option<&str>) -> Vec<Own> {
    let Some(parsed) = text.and_then(Record::parse) else { return Vec::new() };
    let own = |texts: Vec<String>, place| {
        let texts = texts.into_iter().enumerate();
        texts.map(|(number, text)| Own { record, number, place, text }).collect::<Vec<_>>()
    };
    match &*parsed.kind {
        "user" => {
            let blocks = MessageBlocks::parse(json::member(parsed.message, "content")).map(|it| it.list);
            let texts = blocks.unwrap_or_default().into_iter().filter(|block| block.is("text"));
            own(texts.filter_map(|block| json::owned(block.text)).collect(), AttachmentPosition::Own)
        }
        "attachment" => {
            let Some(Attachment { place, parts, .. }) = told(&parsed) else { return Vec::new() };
            let texts = parts.iter().map(|part| String::from_utf8_lossy(&part.bytes).into_owned());
            own(texts.collect(), place)
        }
        "system" if json::string(parsed.subtype).as_deref() == Some("local_command") => {
            own(json::owned(parsed.content).into_iter().collect(), AttachmentPosition::Own)
        }
        _ => Vec::new(),
    }
}

/// The texts of a result's content.
fn text_in(content: &str) -> String {
    let blocks = MessageBlocks::parse(Some(content)).map(|it| it.list).unwrap_or_default();
    blocks.iter().filter_map(|block| json::owned(block.text)).collect::<Vec<_>>().join("\n")
}

/// The calls whose results a record of the user's side brings.
fn calls_of(text: Option<&str>) -> Vec<String> {
    let content =
        json::member(json::member(text.filter(|text| text.contains("tool_result")), "message"), "content");
    let blocks = MessageBlocks::parse(content).map(|it| it.list).unwrap_or_default();
    blocks.iter().filter_map(|block| block.result_id().map(std::borrow::Cow::into_owned)).collect()
}

/// Whether a text that was sent is this one: but for white space at the end and for tags, or with an introduction.
fn is_same(own: &Own, sent: &str) -> bool {
    let bare = |text: &str| untagged(text.trim_end()).trim_end().to_owned();
    bare(&own.text) == bare(sent) || (own.text.starts_with(NOTICE) && sent.contains(&own.text))
}

/// The texts of the user's side as the exporter makes them, see `export::providers::anthropic`.
fn made(own: &[&Own]) -> Vec<String> {
    let (attached, users): (Vec<&Own>, Vec<&Own>) = own
        .iter()
        .copied()
        .filter(|it| it.place != AttachmentPosition::System)
        .partition(|it| it.place == AttachmentPosition::Attached);
    let count = attached.len();
    let all: Vec<&Own> = attached.into_iter().chain(users).collect();
    let texts = all.iter().enumerate().map(|(at, own)| match all.get(at + 1).filter(|_| at + 1 >= count) {
        Some(next) if next.record != own.record => format!("{}\n", own.text),
        _ => own.text.clone(),
    });
    texts.collect()
}

/// A text that was sent and stands in no record.
fn said_beside(place: usize, digest: &str, text: &str) -> Entry {
    let key = format!("{SENT}{place}:{digest}");
    let origin = format!("msg:{key}#0");
    let parts = vec![PartEntry::text(text)];
    let fact = fact::MessageRecorded {
        key,
        role: Role::User,
        parts,
        parent: None,
        hidden_from_model: false,
        hidden_from_user: true,
    };
    Entry::from(fact).origin(origin)
}
