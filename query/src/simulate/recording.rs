//! A session as the simulator reads it: its events, and its texts as lines and words, read once for all policies.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use acpdb_engine::event::{Face, Payload, Recorded, Role, ToolClass, TurnKind};
use acpdb_engine::fold::{ItemKind, Ix, State, World};
use acpdb_engine::ids::{BodyId, Micros, Seq, StreamId};
use acpdb_engine::text::first_bytes;
use acpdb_engine::{Error, Store};
use acpdb_serve::point::TextLines;

use super::edits::Replaced;
use super::untouched::{BodyOf, Untouched};
use super::{HostCould, SimulatedRequest, SimulationResult};
use crate::cost::{ModelPrice, PriceTable, RequestLengths, float};
use crate::lineage;
use crate::sound::{or_lost, sound};

/// Tokens of system prompt and tools if nothing is known about them.
const PREFIX_TOKENS: u64 = 8_000;
/// Most tokens of system prompt and tools that usage figures may give: beyond it the figures are about something else.
const PREFIX_TOKENS_MAX: u64 = 60_000;
/// Bytes of a text that are looked at for words.
const WORD_BYTES_MAX: usize = 1 << 20;

/// A text, ready to be compared.
#[derive(Debug, Default)]
pub(super) struct ComparedText {
    /// The texts in it, as lines: one for an output, one for each long string of parameters.
    pub(super) lines: Vec<TextLines>,
    /// Identifiers in it, each once, as numbers; sorted.
    pub(super) words: Vec<u32>,
    /// Lines in it that some edit of the session replaces, as numbers; sorted.
    pub(super) replaceable: Vec<u32>,
    /// Lines that it replaces itself, if it is the parameters of an edit.
    pub(super) replaces: Vec<u32>,
}

/// Words by their numbers, one after the other.
#[derive(Debug, Default)]
struct Spellings {
    text: String,
    ends: Vec<usize>,
}

impl Spellings {
    fn push(&mut self, word: &str) {
        self.text.push_str(word);
        self.ends.push(self.text.len());
    }

    fn get(&self, number: u32) -> Option<&str> {
        let number = number as usize;
        let from = number.checked_sub(1).map_or(Some(0), |before| self.ends.get(before).copied())?;
        self.text.get(from..*self.ends.get(number)?)
    }
}

/// Words of a session: their numbers by digest, and how they are spelled.
#[derive(Debug, Default)]
struct Vocabulary {
    numbers: HashMap<u64, u32>,
    spellings: Spellings,
}

/// The share of readable tokens that a cache gives.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheShare {
    /// The share, from 0 to 1.
    part: f64,
    /// Tokens of the prefix that it gives in any case.
    at_least: u64,
}

impl Default for CacheShare {
    fn default() -> Self {
        Self { part: 1.0, at_least: 0 }
    }
}

impl CacheShare {
    /// Tokens that are read if `read` of `total` could be read.
    pub(super) fn read(self, read: u64, total: u64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a part of a count of tokens"
        )]
        let part = (read as f64 * self.part).round() as u64;
        part.max(self.at_least).min(total)
    }
}

/// A session, read once and simulated many times.
#[derive(Debug)]
pub struct SessionRecording {
    /// The stream.
    pub stream: StreamId,
    /// The host's id of the session.
    pub session: String,
    /// The host program.
    pub host: String,
    pub(super) events: Vec<Recorded>,
    pub(super) texts: HashMap<(BodyId, bool), ComparedText>,
    spellings: Spellings,
    /// Lines that edits replace.
    pub(super) line_count: usize,
    /// Tokens before the first message: system prompt and tools.
    pub prefix_tokens: u64,
    /// Whether the prefix comes from usage figures, and is no assumption.
    pub prefix_is_known: bool,
    /// Model by key of its message.
    pub(super) models: HashMap<String, String>,
    /// The length of its model's requests, compared with the store's estimates.
    pub(super) sizes: RequestLengths,
    /// Tokens of the first request that its provider told of, estimated tokens of the texts that it showed, and the step.
    first_told: Option<(u64, u64, usize)>,
    /// The provider's report of each step, in the order of the steps: tokens sent, and of these read from its cache.
    told: Vec<Option<(u64, u64)>>,
    /// By step, the share of readable tokens that the cache gave; none: all.
    pub(super) answers: Vec<CacheShare>,
}

impl SessionRecording {
    /// Reads a session and the history that it shares with others. Bodies that are damaged or erased count as empty.
    ///
    /// Cost: O(bytes of the session).
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn read(store: &Store, stream: StreamId) -> Result<Self, Error> {
        let events = lineage::events(store, stream, Seq::MAX)?;
        let mut events = events.collect::<Result<Vec<_>, _>>()?;
        for recorded in sound(store.stream_events(StreamId::STORE, Seq(1), Seq::MAX)?) {
            events.push(recorded?);
        }
        events.sort_by_key(|recorded| recorded.seq);
        with_texts(store, |text| Self::of(stream, events, text))
    }

    /// Makes the same from events and bodies at hand.
    pub fn of(stream: StreamId, events: Vec<Recorded>, body: BodyOf<'_>) -> Self {
        let mut recording = Self {
            stream,
            session: String::new(),
            host: String::new(),
            events,
            texts: HashMap::new(),
            spellings: Spellings::default(),
            line_count: 0,
            prefix_tokens: PREFIX_TOKENS,
            prefix_is_known: false,
            models: HashMap::new(),
            sizes: RequestLengths::default(),
            first_told: None,
            told: Vec::new(),
            answers: Vec::new(),
        };
        recording.look(body);
        recording
    }

    /// Folds once, to know the items and their bodies, and the prefix that the usage figures give.
    fn look(&mut self, body: BodyOf<'_>) {
        let mut world = World::default();
        let mut words = Vocabulary::default();
        let mut tokens_at_step: HashMap<&str, u64> = HashMap::new();
        // Some hosts name a step otherwise than the message that it gives: then the message itself says when the step began.
        let mut tokens_at_message: HashMap<&str, u64> = HashMap::new();
        let mut steps: HashMap<&str, usize> = HashMap::new();
        let mut shown_before = 0;
        for recorded in &self.events {
            world.apply(recorded);
            if recorded.event.stream != self.stream {
                continue;
            }
            let Some(state) = world.stream(self.stream) else { continue };
            match &recorded.event.payload {
                Payload::TurnStarted(turn) if turn.kind == TurnKind::Step => {
                    tokens_at_step.insert(&turn.key, shown_before);
                    steps.insert(&turn.key, self.told.len());
                    self.told.push(None);
                }
                Payload::MessageRecorded(message) if message.role == Role::Assistant => {
                    tokens_at_message.entry(&message.key).or_insert(shown_before);
                }
                Payload::MessageFinished(finished) => {
                    if let Some(model) = &finished.report.model {
                        self.models.insert(finished.key.clone(), model.clone());
                    }
                    let usage = finished.report.usage;
                    let sent = [usage.input, usage.cache_read, usage.cache_write];
                    let sent: u64 = sent.iter().flatten().sum();
                    let key = finished.key.as_str();
                    // If the step has another name, it is the step under way.
                    let step = steps.get(key).copied().or_else(|| self.told.len().checked_sub(1));
                    if let Some(step) = step.and_then(|step| self.told.get_mut(step)).filter(|_| sent > 0) {
                        *step = Some((sent, usage.cache_read.unwrap_or(0)));
                    }
                    let shown = tokens_at_step.get(key).or_else(|| tokens_at_message.get(key));
                    if let Some(shown) = shown.filter(|_| sent > 0) {
                        // The first request says most: later requests carry the error of all estimates before them.
                        self.first_told.get_or_insert((sent, *shown, self.told.len()));
                    }
                }
                _ => {}
            }
            shown_before = state.tokens(recorded.seq).whole;
        }
        let Some(state) = world.stream(self.stream) else { return };
        if let Some(info) = state.info(Seq::MAX) {
            self.session.clone_from(&info.name);
            self.host.clone_from(&info.host);
        }
        self.learn_prefix();
        // The lines that edits replace must be known before they can be found in texts that were shown earlier.
        let mut replaced = Replaced::default();
        let mut edits: HashMap<BodyId, Vec<u32>> = HashMap::new();
        for ix in state.items(Seq::MAX) {
            let item = state.item(ix, Seq::MAX).filter(|item| item.class == Some(ToolClass::Edit));
            let Some(params) = item.and_then(|item| item.params) else { continue };
            if let Some(bytes) = body(params) {
                edits.entry(params).or_insert_with(|| replaced.learn(&String::from_utf8_lossy(&bytes)));
            }
        }
        for ix in state.items(Seq::MAX) {
            for (id, is_params, is_text) in bodies_of(state, ix) {
                if self.texts.contains_key(&(id, is_params)) || !is_text {
                    continue;
                }
                let Some(bytes) = body(id) else { continue };
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let found = words_of(&text, &mut words);
                let (lines, replaceable) = if is_params {
                    (strings_of(&text), replaced.find_in_params(&text))
                } else {
                    let lines = TextLines::of(text);
                    let replaceable = replaced.find(lines.compared());
                    (vec![lines], replaceable)
                };
                let replaces = is_params.then(|| edits.remove(&id)).flatten().unwrap_or_default();
                self.texts
                    .insert((id, is_params), ComparedText { lines, words: found, replaceable, replaces });
            }
        }
        self.spellings = words.spellings;
        self.line_count = replaced.count();
    }

    /// Counts tokens as the session's model does, by the model's sizes in the table.
    ///
    /// Without this call, or if the table does not know the model, tokens are counted as the store estimates them.
    pub fn count_as(&mut self, table: &PriceTable) {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for model in self.models.values() {
            *counts.entry(model).or_insert(0) += 1;
        }
        let usual = counts.into_iter().max_by_key(|(_, count)| *count);
        let price = usual.and_then(|(model, _)| table.price(model, None));
        self.sizes = price.map(ModelPrice::sizes).unwrap_or_default();
        self.learn_prefix();
    }

    /// Learns the tokens that the first request had beyond the shown ones: system prompt and tools.
    fn learn_prefix(&mut self) {
        let Some((sent, shown, steps)) = self.first_told else { return };
        // The first step has no step before it.
        let before = u64::from(self.sizes.step_tokens).saturating_mul(steps.saturating_sub(1) as u64);
        let shown = self.as_model_counts(shown).saturating_add(before);
        if sent > shown {
            self.prefix_tokens = (sent - shown).min(PREFIX_TOKENS_MAX);
            self.prefix_is_known = true;
        }
    }

    /// Tokens as the session's model counts them, if the store estimates so many.
    pub(super) fn as_model_counts(&self, tokens: u64) -> u64 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a count of tokens, times a number near 1"
        )]
        let counted = (tokens as f64 * self.sizes.tokens).round() as u64;
        counted
    }

    /// Makes the cache give as much as it did when the session was recorded. `nothing` is the session with nothing hidden, by a
    /// cache that always answers.
    ///
    /// A provider's cache may lapse early, or serve another machine: then each policy reads the same share less. It may hold the
    /// prefix since an earlier session: then the prefix is read. Steps without a report of the provider are answered in full.
    pub(super) fn answer_as_recorded(&mut self, nothing: &SimulationResult) {
        #[expect(clippy::cast_precision_loss, reason = "token counts stay far below 2^52")]
        let share = |(sent, read): (u64, u64)| if sent == 0 { 0.0 } else { read as f64 / sent as f64 };
        let answer = |(told, request): (&Option<(u64, u64)>, &SimulatedRequest)| {
            let Some(told) = *told else { return CacheShare::default() };
            let modelled = share((request.tokens, request.read));
            let part = if modelled > 0.0 { (share(told) / modelled).min(1.0) } else { 1.0 };
            CacheShare { part, at_least: told.1.min(self.prefix_tokens) }
        };
        self.answers = self.told.iter().zip(&nothing.requests).map(answer).collect();
    }

    /// The texts that the host of this session could leave out, in the unit of the prices. `nothing` is the session with nothing hidden.
    ///
    /// Cost: a fold of the session; prompts of equal length are read.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn host_could(&self, store: &Store, nothing: &SimulationResult) -> Result<HostCould, Error> {
        with_texts(store, |text| self.host_could_by(text, nothing))
    }

    /// The same, with bodies at hand.
    pub(super) fn host_could_by(&self, body: BodyOf<'_>, nothing: &SimulationResult) -> HostCould {
        let mut world = World::default();
        for recorded in &self.events {
            world.apply(recorded);
        }
        let Some(state) = world.stream(self.stream) else { return HostCould::default() };
        let untouched = Untouched::of(state, body);
        let whole = float(self.prefix_tokens);
        let unused = float(self.as_model_counts(untouched.unused_tokens));
        untouched.priced(nothing, if whole > 0.0 { unused / whole } else { 0.0 })
    }

    /// The price of the steps whose usage the provider told: to be compared with its bill. Without requests that keep the cache
    /// warm.
    pub fn told_price(&self, outcome: &SimulationResult) -> f64 {
        let told = self.told.iter().zip(&outcome.requests).filter(|(told, _)| told.is_some());
        told.map(|(_, request)| request.price).sum()
    }

    /// The number of words.
    pub(super) fn word_count(&self) -> usize {
        self.spellings.ends.len()
    }

    /// A word by its number.
    pub(super) fn word(&self, number: u32) -> Option<&str> {
        self.spellings.get(number)
    }

    /// The time of an event: its host's, if that is known.
    pub(super) fn time(recorded: &Recorded) -> Option<Micros> {
        recorded.event.host_time
    }
}

/// Looks at texts of a store.
fn with_texts<R>(store: &Store, look: impl FnOnce(BodyOf<'_>) -> R) -> Result<R, Error> {
    let failed = RefCell::new(None);
    let found = look(&|body| match or_lost(store.body(body)) {
        // A lost text has no words that an item could need again.
        Ok(read) => read.ok(),
        Err(error) => {
            failed.borrow_mut().get_or_insert(error);
            None
        }
    });
    failed.into_inner().map_or(Ok(found), Err)
}

/// Bodies of an item: id, whether it is parameters, whether it is text.
pub(super) fn bodies_of(state: &State, ix: Ix) -> Vec<(BodyId, bool, bool)> {
    let Some(item) = state.item(ix, Seq::MAX) else { return Vec::new() };
    let mut bodies: Vec<(BodyId, bool, bool)> = Vec::new();
    if item.kind == ItemKind::Call {
        bodies.extend(item.params.map(|params| (params, true, true)));
    }
    let is_text = |kind| !matches!(kind, acpdb_engine::event::PartKind::Media);
    bodies.extend(item.content.iter().map(|part| (part.body, false, is_text(part.kind))));
    bodies
}

/// Whether this face holds text that the model writes: its own words, and the parameters of its calls.
pub(super) fn is_written_by_model(role: Role, kind: ItemKind, face: Face) -> bool {
    match kind {
        ItemKind::Call => face == Face::Input,
        ItemKind::Text => role == Role::Assistant,
        _ => false,
    }
}

/// Long strings of parameters, each as lines. Depth is bounded by the parser.
fn strings_of(json: &str) -> Vec<TextLines> {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(json) else { return Vec::new() };
    let mut found = Vec::new();
    let mut open = vec![&value];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::String(text) if text.len() > 200 => found.push(TextLines::of(text.as_str())),
            serde_json::Value::Array(values) => open.extend(values.iter().rev()),
            serde_json::Value::Object(fields) => open.extend(fields.values().rev()),
            _ => {}
        }
    }
    found
}

/// Identifiers: five or more letters, digits and underscores that are no plain word.
fn words_of(text: &str, known: &mut Vocabulary) -> Vec<u32> {
    use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
    let hasher: BuildHasherDefault<DefaultHasher> = BuildHasherDefault::default();
    let text = first_bytes(text, WORD_BYTES_MAX);
    let mut found: Vec<u32> = Vec::new();
    for word in text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        let begins = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let inner = word.get(1..).unwrap_or_default();
        let telling = inner.contains(|c: char| c == '_' || c.is_ascii_digit() || c.is_ascii_uppercase());
        if word.len() < 5 || word.len() > 64 || !begins || !telling {
            continue;
        }
        let next = u32::try_from(known.numbers.len()).unwrap_or(u32::MAX);
        let spellings = &mut known.spellings;
        found.push(*known.numbers.entry(hasher.hash_one(word)).or_insert_with(|| {
            spellings.push(word);
            next
        }));
    }
    found.sort_unstable();
    found.dedup();
    found
}
