//! Proposals: the items that a message suggests to remember. Pure: text and memory in, proposals out; recording is the host's
//! decision. For the messages of a session see [`of_session`].
//!
//! ```text
//! user's text      --scan--> facts, corrections, preferences --compare with MemoryView--> Proposal
//! assistant's text --scan--> decisions                       --------------------------->  "
//! ```
//!
//! A proposal has the item to remember, the items that it would supersede or reinforce, the rule that found it, and its place.
//! Patterns are matched on words, by hand, in one pass each: time and space are linear in the text, and any Unicode will do. Names
//! of tools and styles are data ([`PreferenceTable`]).
//!
//! Deliberately simple: it looks for a few phrases that people use when they mean it, and proposes nothing otherwise.

mod clause;
mod corrections;
mod decisions;
mod facts;
mod preferences;
mod rivals;
mod says;
mod scan;
mod session;
mod table;

#[cfg(test)]
mod judged;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::ops::Range;

use acpdb_engine::command::memory::decision_subject;
use acpdb_engine::entry::MemoryEntry;
use acpdb_engine::event::{Lifespan, MemoryKind, Role};
use acpdb_engine::fold::memory::{
    LIFESPANS_INNER_FIRST, MemoryItem, MemoryView, default_category, value_signature,
};
use acpdb_engine::ids::{ItemId, StreamId};
use acpdb_engine::text::first_bytes;

use self::scan::TokenScan;
use self::table::TableHit;

pub use corrections::{Correction, CorrectionCategory};
pub use session::{SessionProposal, acceptance, command, of_session};
pub use table::{PreferenceRule, PreferenceTable, PreferenceValue};

/// Bytes of a message that are looked at; the rest is not.
pub const TEXT_BYTES_MAX: usize = 1 << 20;
/// Proposals for one message, at most.
pub const PROPOSAL_COUNT_MAX: usize = 64;
/// Characters of [`Proposal::sentence`], at most.
const SENTENCE_CHARS_MAX: usize = 300;
/// Current decisions of a category that a new one is compared with, newest first, at most.
const DECISIONS_COMPARED_MAX: usize = 500;
/// Hundredths that a fact gains by contradicting an older one.
const CONFLICT_BONUS: u8 = 10;
/// Hundredths of a corrected preference.
const CORRECTION_CONFIDENCE: u8 = 90;
/// Hundredths of a decision.
const DECISION_CONFIDENCE: u8 = 80;

/// The rule that found a proposal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ProposalRule {
    /// A fact about the user or the calendar.
    Fact,
    /// A correction of a preference.
    Correction,
    /// A name of the table of preferences.
    Preference,
    /// A decision.
    Decision,
}

impl ProposalRule {
    /// Its name, as in JSON.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Correction => "correction",
            Self::Preference => "preference",
            Self::Decision => "decision",
        }
    }
}

/// A remembered item that a proposal refers to.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ReferencedItem {
    /// The stream it lives in.
    pub stream: StreamId,
    /// Its id there.
    pub id: String,
    /// Its place in the log.
    pub item: ItemId,
}

impl ReferencedItem {
    fn of((stream, item): (StreamId, MemoryItem<'_>)) -> Self {
        Self { stream, id: item.id().to_owned(), item: item.item() }
    }
}

/// An item that could be remembered.
#[derive(Clone, PartialEq, Debug)]
pub struct Proposal {
    /// The item to remember, without id and source.
    pub item: MemoryEntry,
    /// Current items whose place it would take.
    pub supersedes: Vec<ReferencedItem>,
    /// The current item that says the same already: it would be reinforced, and nothing added.
    pub reinforces: Option<ReferencedItem>,
    /// The rule that found it.
    pub rule: ProposalRule,
    /// First byte of the words that it rests on, in the text.
    pub start: usize,
    /// Byte after the last byte of these words.
    pub end: usize,
    /// The sentence of these words, shortened if long.
    pub sentence: String,
    /// The key or subject has changed so often that the host should ask the user first.
    pub ask: bool,
}

/// The corrections that a text makes, in its order.
///
/// Cost: linear in the text; only its first [`TEXT_BYTES_MAX`] bytes are looked at.
pub fn corrections(text: &str) -> Vec<Correction> {
    let scan = TokenScan::new(first_bytes(text, TEXT_BYTES_MAX));
    corrections::find(&scan).into_iter().map(|found| found.correction).collect()
}

/// The proposals of a message, by the built-in table of preferences. See [`propose_with`].
pub fn propose(role: Role, text: &str, view: &MemoryView<'_>) -> Vec<Proposal> {
    static BUILT_IN: std::sync::LazyLock<PreferenceTable> =
        std::sync::LazyLock::new(PreferenceTable::default);
    propose_with(&BUILT_IN, role, text, view)
}

/// The proposals of a message: facts, corrections and preferences from a user's, in this order; decisions from an assistant's;
/// nothing from others.
///
/// Cost: linear in the text (its first [`TEXT_BYTES_MAX`] bytes) times the names in the table, and a lookup a proposal;
/// at most [`PROPOSAL_COUNT_MAX`] proposals.
pub fn propose_with(table: &PreferenceTable, role: Role, text: &str, view: &MemoryView<'_>) -> Vec<Proposal> {
    let scan = TokenScan::new(first_bytes(text, TEXT_BYTES_MAX));
    let mut found = Finder { table, view, scan: &scan, proposals: Vec::new() };
    match role {
        Role::User => {
            found.facts();
            found.preferences();
            found.better();
        }
        Role::Assistant => {
            found.decisions();
            found.better();
        }
        Role::System | Role::Tool => {}
    }
    found.proposals.truncate(PROPOSAL_COUNT_MAX);
    found.proposals
}

/// A preference that a correction changes: category, key, new value, scope of the old one.
type Applied = (String, String, String, Option<Lifespan>);

/// The bytes of X in a text that begins or ends with it, as whole words in any case; marks may stand behind it, and words that lead
/// to it before it.
fn place_at_an_end(text: &str, from: &str) -> Option<Range<usize>> {
    const LEADS: [&str; 4] = ["", "use ", "using ", "go with "];
    let is_it =
        |place: &Range<usize>| text.get(place.clone()).is_some_and(|part| part.to_lowercase() == from);
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let starts = LEADS
        .iter()
        .filter(|lead| text.get(..lead.len()).is_some_and(|start| start.eq_ignore_ascii_case(lead)));
    let mut starts = starts.map(|lead| lead.len()..lead.len() + from.len());
    let at_start = starts
        .find(|place| is_it(place) && text.get(place.end..).is_some_and(|rest| !rest.starts_with(is_word)));
    at_start.or_else(|| {
        let end = text.trim_end_matches(['.', '!', '?', ' ']).len();
        let place = end.checked_sub(from.len())?..end;
        let before = text.get(..place.start)?;
        (is_it(&place) && !before.ends_with(is_word)).then_some(place)
    })
}

struct Finder<'f, 'v> {
    table: &'f PreferenceTable,
    view: &'f MemoryView<'v>,
    scan: &'f TokenScan<'f>,
    proposals: Vec<Proposal>,
}

impl Finder<'_, '_> {
    fn facts(&mut self) {
        for fact in facts::find(self.scan) {
            let mut item = MemoryEntry {
                kind: MemoryKind::Fact,
                category: fact.category.to_owned(),
                subject: Some(fact.subject.to_owned()),
                value: fact.text.clone(),
                confidence: fact.confidence,
                lifespan: Some(fact.lifespan),
                ..MemoryEntry::default()
            };
            let kind = MemoryKind::Fact;
            let (mut equal, mut others, mut ask) = (None, Vec::new(), false);
            // A person may have told it before, for another time than talk is kept.
            let lifespan = self.told_for(&fact);
            item.lifespan = Some(lifespan);
            for (layer, memory) in self.view.streams() {
                let signature = value_signature(&layer.signer, &item.value);
                ask |= memory.is_unstable_subject(kind, lifespan, fact.category, fact.subject);
                let on_subject =
                    memory.on_subject(kind, lifespan, fact.category, fact.subject, self.view.now());
                let in_form = (memory.current(self.view.now()))
                    .filter(|old| old.lifespan() == lifespan && self.is_in_form(old, fact.form));
                for old in on_subject.chain(in_form) {
                    let known = ReferencedItem::of((layer.stream, old));
                    if old.facts().record.value_signature == signature {
                        equal = Some(known);
                    } else {
                        others.push(known);
                    }
                }
            }
            if equal.is_none() && !others.is_empty() {
                item.confidence = item.confidence.saturating_add(CONFLICT_BONUS).min(100);
            }
            self.push(item, equal, others, ProposalRule::Fact, fact.range, ask);
        }
    }

    /// The scope in which a fact is remembered now, else the usual one for talk.
    fn told_for(&self, fact: &facts::ProposedFact) -> Lifespan {
        let (kind, now) = (MemoryKind::Fact, self.view.now());
        let holds = |lifespan: Lifespan| {
            self.view.by_subject(kind, lifespan, fact.category, fact.subject).is_some()
                || self.view.streams().any(|(_, memory)| {
                    let mut current = memory.current(now);
                    current.any(|old| old.lifespan() == lifespan && self.is_in_form(&old, fact.form))
                })
        };
        let others = LIFESPANS_INNER_FIRST.into_iter().filter(|lifespan| *lifespan != fact.lifespan);
        std::iter::once(fact.lifespan).chain(others).find(|it| holds(*it)).unwrap_or(fact.lifespan)
    }

    /// Whether a fact that was added by hand, without a subject, says a thing in the words in which such facts are recorded.
    fn is_in_form(&self, old: &MemoryItem<'_>, form: &str) -> bool {
        old.kind() == MemoryKind::Fact
            && old.subject().is_none()
            && self.view.text(old).is_some_and(|text| {
                text.get(..form.len()).is_some_and(|start| start.eq_ignore_ascii_case(form))
            })
    }

    /// Corrections applied, then preferences stated; one proposal a key.
    fn preferences(&mut self) {
        let found = corrections::find(self.scan);
        let mut corrected = BTreeSet::new();
        let mut taken = BTreeSet::new();
        for found in corrections::find_joined(self.scan) {
            let Some(from) = &found.correction.from else { continue };
            if self.proposals.len() < PROPOSAL_COUNT_MAX {
                if let Some((category, key, value, lifespan)) = self.held(&found, from) {
                    taken.insert((category.clone(), key.clone()));
                    let range = found.correction.start..found.correction.end;
                    let rule = ProposalRule::Correction;
                    self.preference(category, key, value, lifespan, CORRECTION_CONFIDENCE, rule, range);
                } else {
                    self.restated(&found, from);
                }
            }
        }
        for found in &found {
            let Some(from) = &found.correction.from else {
                self.meant(found.to.clone(), found.correction.start..found.correction.end, &mut taken);
                continue;
            };
            for (text, tokens) in [(from, &found.from), (&found.correction.to, &found.to)] {
                corrected.insert(text.clone());
                corrected.extend(self.name_in(tokens).map(|hit| hit.value.to_lowercase()));
            }
            if self.proposals.len() >= PROPOSAL_COUNT_MAX {
                continue;
            }
            let Some((category, key, value, lifespan)) = self.applied(found, from) else {
                self.restated(found, from);
                continue;
            };
            if taken.insert((category.clone(), key.clone())) {
                let range = found.correction.start..found.correction.end;
                let rule = ProposalRule::Correction;
                self.preference(category, key, value, lifespan, CORRECTION_CONFIDENCE, rule, range);
            }
        }
        for (words, name) in corrections::switches_to(self.scan) {
            let end = self.table.name_at(self.scan, name).map_or(name, |hit| hit.end);
            if !says::is_doubted(self.scan, words.start) {
                let range = self.scan.range(words.start, end);
                self.meant(name..end, range, &mut taken);
            }
        }
        let is_corrected = |hit: &TableHit<'_>| {
            corrected.contains(&hit.value.to_lowercase())
                || corrected.contains(&self.scan.between(hit.start, hit.end).to_lowercase())
        };
        for hit in preferences::find(self.scan, self.table, is_corrected) {
            let (category, key) = (hit.rule.category.clone(), hit.rule.key.clone());
            if !taken.insert((category.clone(), key.clone())) {
                continue;
            }
            let lifespan = self.view.by_key(&category, &key).map(|(_, item)| item.lifespan());
            let range = self.scan.range(hit.start, hit.end);
            let rule = ProposalRule::Preference;
            self.preference(category, key, hit.value, lifespan, hit.rule.confidence, rule, range);
        }
    }

    /// The first name of the table within these tokens.
    fn name_in(&self, tokens: &Range<usize>) -> Option<TableHit<'_>> {
        tokens.clone().find_map(|index| self.table.name_at(self.scan, index))
    }

    /// The name that X ends with; "tabs in the menu" is another thing than tabs.
    fn old_name(&self, from: &Range<usize>) -> Option<TableHit<'_>> {
        let ends = |hit: &TableHit<'_>| (hit.end..from.end).all(|index| self.scan.any_word(index).is_none());
        self.name_in(from).filter(ends)
    }

    /// The preference that a correction of X to Y changes, if any.
    fn applied(&self, found: &corrections::CorrectionMatch, from: &str) -> Option<Applied> {
        if let Some(held) = self.held(found, from) {
            return Some(held);
        }
        let (old_name, new_name) = (self.old_name(&found.from), self.name_in(&found.to));
        let value = Self::new_value(found, new_name.as_ref());
        let rule = old_name.or(new_name)?.rule;
        let lifespan = self.view.by_key(&rule.category, &rule.key).map(|(_, item)| item.lifespan());
        Some((rule.category.clone(), rule.key.clone(), value, lifespan))
    }

    /// Y, as the table spells it.
    fn new_value(found: &corrections::CorrectionMatch, name: Option<&TableHit<'_>>) -> String {
        match name.filter(|hit| hit.start == found.to.start) {
            Some(hit) => hit.value.clone(),
            None => found.correction.to.clone(),
        }
    }

    /// `I meant Z`, `switch to Z`: Z is a name of the table, and another value holds for its key.
    fn meant(&mut self, to: Range<usize>, range: Range<usize>, taken: &mut BTreeSet<(String, String)>) {
        let Some(hit) = self.table.name_at(self.scan, to.start) else { return };
        let is_all = (hit.end..to.end).all(|index| self.scan.any_word(index).is_none());
        let asks = (to.start..=to.end).any(|index| self.scan.is_mark(index, '?'));
        let (category, key) = (hit.rule.category.clone(), hit.rule.key.clone());
        let Some((_, holder)) = self.view.by_key(&category, &key) else { return };
        let is_same =
            self.view.text(&holder).is_some_and(|text| text.to_lowercase() == hit.value.to_lowercase());
        let has_room = self.proposals.len() < PROPOSAL_COUNT_MAX;
        if is_all && !asks && !is_same && has_room && taken.insert((category.clone(), key.clone())) {
            let (value, lifespan) = (hit.value.clone(), Some(holder.lifespan()));
            let rule = ProposalRule::Correction;
            self.preference(category, key, value, lifespan, CORRECTION_CONFIDENCE, rule, range);
        }
    }

    /// X is the beginning or the end of exactly one fact or decision that holds: it is told again with Y in its place.
    fn restated(&mut self, found: &corrections::CorrectionMatch, from: &str) {
        let kinds = [MemoryKind::Fact, MemoryKind::Decision];
        let current = self.view.current().into_iter().rev();
        let fitting = current.filter(|(_, item)| kinds.contains(&item.kind())).take(DECISIONS_COMPARED_MAX);
        let mut fitting = fitting.filter_map(|(stream, item)| {
            let text = self.view.text(&item)?;
            let place = place_at_an_end(&text, from)?;
            Some((stream, item, text, place))
        });
        let (Some((stream, old, mut text, place)), None) = (fitting.next(), fitting.next()) else { return };
        let new = match self.name_in(&found.to).filter(|hit| hit.start == found.to.start) {
            Some(hit) => hit.value,
            None => self.scan.between(found.to.start, found.to.end).trim().to_owned(),
        };
        text.replace_range(place, &new);
        let known = ReferencedItem::of((stream, old));
        let signature = self.view.stream(stream).map(|(layer, _)| value_signature(&layer.signer, &text));
        let equal = self.view.with_value(&text).into_iter().find(|(_, item)| {
            item.kind() == old.kind() && signature == Some(item.facts().record.value_signature)
        });
        let item = MemoryEntry {
            kind: old.kind(),
            category: old.category().to_owned(),
            subject: old.subject().map(str::to_owned),
            value: text,
            confidence: CORRECTION_CONFIDENCE,
            lifespan: Some(old.lifespan()),
            ..MemoryEntry::default()
        };
        let range = found.correction.start..found.correction.end;
        self.push(item, equal.map(ReferencedItem::of), vec![known], ProposalRule::Correction, range, false);
    }

    /// The preference that has the value X or the key X now: category, key, new value, its scope.
    fn held(&self, found: &corrections::CorrectionMatch, from: &str) -> Option<Applied> {
        let (old_name, new_name) = (self.old_name(&found.from), self.name_in(&found.to));
        let value = Self::new_value(found, new_name.as_ref());
        let old_values = [Some(from), old_name.as_ref().map(|hit| hit.value.as_str())];
        let has_value = old_values.into_iter().flatten().find_map(|old| {
            let holders = self.view.with_value(old).into_iter();
            holders
                .map(|(_, item)| item)
                .find(|item| item.kind() == MemoryKind::Preference && item.key().is_some())
        });
        let has_key = || {
            self.table
                .rules
                .iter()
                .map(|rule| rule.category.as_str())
                .chain(["workflow", "communication", "other", "tooling", "style"])
                .find_map(|category| self.view.by_key(category, from))
                .map(|(_, item)| item)
        };
        let item = has_value.or_else(has_key)?;
        let key = item.key()?.to_owned();
        Some((item.category().to_owned(), key, value, Some(item.lifespan())))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one proposal, put together in one place")]
    fn preference(
        &mut self,
        category: String,
        key: String,
        value: String,
        lifespan: Option<Lifespan>,
        confidence: u8,
        rule: ProposalRule,
        range: Range<usize>,
    ) {
        let lifespan = lifespan.unwrap_or(Lifespan::Project);
        let ask = (self.view.streams()).any(|(_, memory)| memory.is_unstable_key(lifespan, &category, &key));
        let holder = self.view.by_key_in(lifespan, &category, &key);
        let is_equal = holder.is_some_and(|(stream, item)| {
            let signer = self.view.stream(stream).map(|(layer, _)| &layer.signer);
            signer
                .is_some_and(|signer| value_signature(signer, &value) == item.facts().record.value_signature)
        });
        let known = holder.map(ReferencedItem::of);
        let (equal, others) = if is_equal { (known, None) } else { (None, known) };
        let item = MemoryEntry {
            kind: MemoryKind::Preference,
            category,
            key: Some(key),
            value,
            confidence,
            lifespan: Some(lifespan),
            ..MemoryEntry::default()
        };
        self.push(item, equal, others.into_iter().collect(), rule, range, ask);
    }

    fn decisions(&mut self) {
        let category = default_category(MemoryKind::Decision);
        let kind = MemoryKind::Decision;
        let mut decisions = decisions::find(self.scan, PROPOSAL_COUNT_MAX).into_iter().peekable();
        if decisions.peek().is_none() {
            return;
        }
        let current: Vec<_> = (self.view.in_category(kind, category).into_iter())
            .filter(|(_, item)| item.lifespan() == Lifespan::Project)
            .take(DECISIONS_COMPARED_MAX)
            .map(|(stream, item)| (stream, item, self.view.text(&item).unwrap_or_default()))
            .collect();
        for decision in decisions {
            let subject = decision_subject(&decision.text);
            let equal = (self.view.with_value(&decision.text).into_iter())
                .find(|(_, item)| item.kind() == kind && item.lifespan() == Lifespan::Project)
                .filter(|(_, item)| item.category() == category)
                .map(ReferencedItem::of);
            let old_subject = |item: &MemoryItem<'_>, text: &str| {
                let given = item.subject().map(|given| given.trim().to_lowercase());
                given.or_else(|| decision_subject(text))
            };
            // The decision on the same subject goes before a newer one that only names a rival.
            let on_subject = current.iter().find(|(_, item, text)| {
                (subject.is_some() && old_subject(item, text) == subject)
                    || decisions::holds_beginning(text, &decision.text)
            });
            let other = on_subject.or_else(|| {
                current.iter().find(|(_, item, text)| {
                    let old = old_subject(item, text);
                    rivals::contradict(text, &decision.text, (old.as_deref(), subject.as_deref()))
                })
            });
            let other = other
                .filter(|_| equal.is_none())
                .map(|(stream, item, _)| ReferencedItem::of((*stream, *item)));
            let ask = subject.as_deref().is_some_and(|subject| {
                self.view
                    .streams()
                    .any(|(_, memory)| memory.is_unstable_subject(kind, Lifespan::Project, category, subject))
            });
            let item = MemoryEntry {
                kind,
                category: category.to_owned(),
                subject,
                value: decision.text,
                confidence: DECISION_CONFIDENCE,
                lifespan: Some(Lifespan::Project),
                ..MemoryEntry::default()
            };
            let others = other.into_iter().collect();
            self.push(item, equal, others, ProposalRule::Decision, decision.range, ask);
        }
    }

    /// `Vue would be better`, if a decision for another thing of its kind holds: it would take that one's place. If no such
    /// decision holds, nothing was decided.
    fn better(&mut self) {
        let (category, kind) = (default_category(MemoryKind::Decision), MemoryKind::Decision);
        for (name, end) in rivals::better(self.scan) {
            let value = self.scan.between(name, name + 1).to_owned();
            let current = self.view.in_category(kind, category).into_iter();
            let old = current
                .filter(|(_, item)| item.lifespan() == Lifespan::Project)
                .take(DECISIONS_COMPARED_MAX)
                .find_map(|(stream, item)| {
                    let text = self.view.text(&item).unwrap_or_default();
                    let subject = item.subject().map(str::to_owned).or_else(|| decision_subject(&text));
                    rivals::contradict(&text, &value, (subject.as_deref(), None))
                        .then(|| (ReferencedItem::of((stream, item)), subject))
                });
            let Some((known, subject)) = old else { continue };
            let item = MemoryEntry {
                kind,
                category: category.to_owned(),
                subject,
                value,
                confidence: DECISION_CONFIDENCE,
                lifespan: Some(Lifespan::Project),
                ..MemoryEntry::default()
            };
            let range = self.scan.range(name, end);
            self.push(item, None, vec![known], ProposalRule::Decision, range, false);
        }
    }

    fn push(
        &mut self,
        item: MemoryEntry,
        reinforces: Option<ReferencedItem>,
        supersedes: Vec<ReferencedItem>,
        rule: ProposalRule,
        range: Range<usize>,
        ask: bool,
    ) {
        let is_writable = |known: &ReferencedItem| {
            self.view.stream(known.stream).is_some_and(|(layer, _)| layer.is_writable())
        };
        let reinforces = reinforces.filter(is_writable);
        let supersedes: Vec<ReferencedItem> = supersedes.into_iter().filter(is_writable).collect();
        self.proposals.push(Proposal {
            item,
            supersedes: if reinforces.is_some() { Vec::new() } else { supersedes },
            reinforces,
            rule,
            sentence: self.scan.sentence(range.start, SENTENCE_CHARS_MAX),
            start: range.start,
            end: range.end,
            ask,
        });
    }
}
