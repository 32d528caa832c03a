//! The judge of a round: the diaries of all threads against the store that is there at the end. Shares no code with the engine
//! beyond public reads.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use acpdb_engine::event::{Payload, Recorded};
use acpdb_engine::ids::{Link, Seq, StreamId};
use acpdb_engine::storage::{FileStorage, Storage};
use acpdb_engine::store::{VerifyOptions, salvage, verify_store};
use acpdb_engine::testing::everything::everything_in;
use acpdb_engine::verify::{Expected, Verdict, VerifyReport};
use acpdb_engine::{Error, Store};

use super::diary::{Line, Note, TOLD, read};
use super::pages::{PAGES, Pages};
use super::{FAIR, GONE_BYTES, Setting, Tally, USER, follower, session, signing, store_of, told};
use crate::soak::Dice;
use crate::support::{events, folded, texts_of};

/// An event as it is read at the end.
struct Found {
    seq: u64,
    stream: StreamId,
    label: String,
    /// `None`: erased.
    text: Option<String>,
    word: String,
}

/// A commit that was tried, with its answer.
struct Tried {
    who: String,
    lines: Vec<Line>,
    seqs: Option<(u64, u64)>,
}

/// A commit as a follower was told of it: its first seq, and a word for each event.
type ToldCommit = (u64, Vec<String>);

/// The sum of all diaries.
#[derive(Default)]
struct Diaries {
    acked: Vec<Tried>,
    /// Without an answer: there, whole, at most once.
    open: Vec<Tried>,
    /// Texts whose erasure was begun, and whether it ended well.
    erased: BTreeMap<String, bool>,
    /// Reasons of erasures.
    reasons: BTreeSet<String>,
    pages: Pages,
    /// Signed checkpoints, with their roots.
    signed: Vec<(u64, [u8; 32])>,
    knows: Vec<Expected>,
    /// The commits that each follower was told of.
    told: Vec<(String, Vec<ToldCommit>)>,
}

/// Judges a round whose members have ended.
///
/// # Errors
/// The first thing that must not be, in words.
pub fn judge(setting: Setting, folder: &Path, killed: &[usize], tally: &mut Tally) -> Result<(), String> {
    let diaries = Diaries::read(setting, folder, killed, tally)?;
    let path = store_of(folder);
    let mut dice = Dice::new(setting.seed);
    let mut options =
        VerifyOptions { deep: true, expected: diaries.knows.clone(), ..VerifyOptions::default() };
    sound("before it is opened", &path, &options)?;
    let mut seen = Vec::new();
    for (uses, name) in [(true, "with its index and snapshots"), (false, "without index and snapshots")] {
        let builder = setting.builder(folder, &mut dice).index(uses).snapshots(uses);
        let at = |error: Error| format!("{name}: {}", told(&error));
        let store = builder.open().map_err(at)?;
        if let Some(damage) = &store.recovery().damage {
            return Err(format!("{name}: {damage}"));
        }
        let all = events(&store).map_err(at)?;
        let found =
            all.iter().map(|event| found(&store, event)).collect::<Result<Vec<_>, Error>>().map_err(at)?;
        diaries.compare(&found).map_err(|wrong| format!("{name}: {wrong}"))?;
        folds(&store, &all).map_err(|wrong| format!("{name}: {wrong}"))?;
        diaries.pages.check(&store).map_err(|wrong| format!("{name}: {wrong}"))?;
        signing::judge(&store, &diaries.signed).map_err(|wrong| format!("{name}: {wrong}"))?;
        let words: Vec<String> = found.into_iter().map(|event| event.word).collect();
        if seen.is_empty() {
            seen = words;
        } else if seen != words {
            return Err(format!("{name}: other events than before"));
        }
        store.close().map_err(at)?;
    }
    options.expected.clear();
    sound("at the end", &path, &options)?;
    if dice.one_in(4) {
        salvaged(folder, &path, &options)?;
    }
    let storage: Arc<dyn Storage> = Arc::new(FileStorage::new(&path));
    let erased = diaries.erased.iter().filter(|(_, is_done)| **is_done);
    let erased = erased.map(|(text, _)| text.get(..GONE_BYTES).unwrap_or(text));
    let everything = everything_in(&storage).map_err(|error| error.to_string())?;
    let everything: Vec<_> =
        everything.iter().map(|(name, it)| (name, String::from_utf8_lossy(it))).collect();
    for text in erased.chain(diaries.pages.gone()) {
        if let Some((name, _)) = everything.iter().find(|(_, bytes)| bytes.contains(text)) {
            return Err(format!("{text:.40?} was told to be erased, and is in {name}"));
        }
    }
    Ok(())
}

/// Nothing is lost in a salvage of a store that is sound.
fn salvaged(folder: &Path, path: &Path, options: &VerifyOptions) -> Result<(), String> {
    let into = folder.join("salvaged");
    let done = salvage(path, &into, &mut |_| ());
    let done = done.map_err(|error| format!("salvage: {}", told(&error)))?;
    if !done.is_whole() {
        return Err(format!("salvage: {done:#?}"));
    }
    sound("salvaged", &into, options)
}

fn sound(when: &str, path: &Path, options: &VerifyOptions) -> Result<(), String> {
    let report = verify_store(path, options).map_err(|error| format!("{when}: verify: {}", told(&error)))?;
    if report.verdict() == Verdict::Sound { Ok(()) } else { Err(format!("{when}: {}", faults(&report))) }
}

/// The faults in a report, without its witnesses.
#[must_use]
pub fn faults(report: &VerifyReport) -> String {
    let VerifyReport { verdict, violations, missing, saved, contradictions, not_proven, .. } = report;
    format!(
        "{verdict:?}: {violations:?}, missing {missing:?}, saved {saved:?}, {contradictions:?}, not proven {not_proven:?}"
    )
}

fn found(store: &Store, recorded: &Recorded) -> Result<Found, Error> {
    let payload = &recorded.event.payload;
    let mut text = Some(String::new());
    match payload {
        Payload::PolicySet(set) => text = set.reason.as_ref().map(ToString::to_string),
        Payload::Erased(erased) => text = Some(erased.reason.to_string()),
        _ => {
            for body in texts_of(recorded) {
                text = match store.body(body) {
                    Ok(bytes) => text.map(|text| text + &String::from_utf8_lossy(&bytes)),
                    Err(Error::Erased { .. }) => None,
                    Err(error) => return Err(error),
                };
            }
        }
    }
    let word = follower::word(recorded);
    let (seq, stream) = (recorded.seq.get(), recorded.event.stream);
    Ok(Found { seq, stream, label: payload.label().to_owned(), text, word })
}

/// Each session's list and fold, as the handle has them, against all events.
fn folds(store: &Store, all: &[Recorded]) -> Result<(), String> {
    let head = Seq(all.len() as u64);
    let world = folded(all);
    let mut by_stream: BTreeMap<StreamId, Vec<Seq>> = BTreeMap::new();
    for event in all {
        by_stream.entry(event.event.stream).or_default().push(event.seq);
    }
    for (stream, seqs) in by_stream {
        let listed = store
            .stream_events(stream, Seq(1), Seq::MAX)
            .and_then(|events| events.map(|event| Ok(event?.seq)).collect::<Result<Vec<_>, Error>>());
        if listed.map_err(|error| told(&error))? != seqs {
            return Err(format!("stream {stream}: its list is not that of all events"));
        }
        let Some(anew) = world.stream(stream) else { continue };
        let view = store.view(stream).map_err(|error| told(&error))?;
        if view.state().digest(head) != anew.digest(head) {
            return Err(format!("stream {stream}: its fold is not that of its events folded anew"));
        }
    }
    Ok(())
}

impl Diaries {
    fn read(setting: Setting, folder: &Path, killed: &[usize], tally: &mut Tally) -> Result<Self, String> {
        let mut all = Self::default();
        for process in 0..setting.processes {
            for thread in 0..=setting.threads {
                let notes = read(folder, process, thread)?;
                let who = format!("process {process}, thread {thread}");
                all.add(&who, notes, killed.contains(&process), tally)?;
            }
        }
        Ok(all)
    }

    fn add(&mut self, who: &str, notes: Vec<Note>, is_killed: bool, tally: &mut Tally) -> Result<(), String> {
        let mut tried: BTreeMap<u32, Tried> = BTreeMap::new();
        let mut commits = Vec::new();
        let (mut reason_of, mut seqs_of) = (BTreeMap::new(), BTreeMap::new());
        for note in notes {
            match note {
                Note::Tries { act, number, lines } => {
                    tally.acts += 1;
                    let who = format!("{who}, {act} {number}");
                    tried.insert(number, Tried { who, lines, seqs: None });
                }
                Note::Recorded(number, first, end) => {
                    let mut done = tried.remove(&number).ok_or("an answer to nothing")?;
                    done.seqs = (first > 0).then_some((first, end));
                    seqs_of.extend(done.seqs.map(|seqs| (number, seqs)));
                    self.acked.push(done);
                }
                Note::Refused(number, _) => drop(tried.remove(&number)),
                Note::Unsure(number, _) => self.open.extend(tried.remove(&number)),
                Note::Erases(reason, texts) => {
                    tally.acts += 1;
                    for text in &texts {
                        self.erased.entry(text.clone()).or_default();
                    }
                    self.reasons.insert(reason.clone());
                    reason_of.insert(reason, texts);
                }
                Note::Erased(reason) => {
                    for text in reason_of.remove(&reason).unwrap_or_default() {
                        self.erased.insert(text, true);
                    }
                }
                Note::ErasesSpan(page, secret) => self.pages.begins(page, secret),
                Note::ErasedSpan(page, secret) => self.pages.ends(page, secret),
                Note::Signed(seq, root) => self.signed.push((seq, root)),
                Note::Knows(seq, link) => self.knows.push(Expected { seq: Seq(seq), link: Link(link) }),
                Note::Told(first, words) => commits.push((first, words)),
                Note::Did(_) => tally.acts += 1,
            }
        }
        if let Some(open) = tried.values().next().filter(|_| !is_killed) {
            return Err(format!("{} has no answer", open.who));
        }
        // An answer may come later than the next one, a place in the log may not.
        let mut last = 0;
        for (number, (first, end)) in seqs_of {
            if first <= last || end < first {
                return Err(format!("{who}, act {number} got seqs {first} to {end} after {last}"));
            }
            last = end;
            tally.acked += end - first + 1;
        }
        self.open.extend(tried.into_values());
        if !commits.is_empty() {
            self.told.push((who.to_owned(), commits));
        }
        Ok(())
    }

    fn compare(&self, found: &[Found]) -> Result<(), String> {
        if let Some((at, event)) = (1..).zip(found).find(|(at, event)| *at != event.seq) {
            return Err(format!("seq {} stands where {at} comes next", event.seq));
        }
        let mut owned: BTreeMap<u64, &str> = BTreeMap::new();
        for tried in &self.acked {
            self.is_there(tried, found, &mut owned)?;
        }
        self.others(found, &owned)?;
        self.once(found)?;
        Self::shared(found)?;
        self.is_gone(found)?;
        for (who, commits) in &self.told {
            Self::followed(who, commits, found)?;
        }
        self.in_one(found.len() as u64)
    }

    /// An acknowledged commit stands where it was told to be, and no other one does.
    fn is_there<'a>(
        &'a self,
        tried: &'a Tried,
        found: &[Found],
        owned: &mut BTreeMap<u64, &'a str>,
    ) -> Result<(), String> {
        let Some((first, end)) = tried.seqs else { return Ok(()) };
        for seq in first..=end {
            if let Some(other) = owned.insert(seq, &tried.who) {
                return Err(format!("seq {seq} was told to {} and to {other}", tried.who));
            }
        }
        let range =
            usize::try_from(first - 1).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
        let Some(here) = found.get(range) else {
            return Err(format!(
                "{}: seqs {first} to {end} are lost; the log ends at {}",
                tried.who,
                found.len()
            ));
        };
        let openings = here.len().checked_sub(tried.lines.len());
        if openings.is_some_and(|openings| self.begins_with(here, openings, &tried.lines)) {
            return Ok(());
        }
        let here: Vec<String> = here.iter().map(Found::shown).collect();
        let lines: Vec<String> = tried.lines.iter().map(Line::shown).collect();
        Err(format!("{} recorded {lines:?} at {first} to {end}, where {here:?} is", tried.who))
    }

    /// Whether events begin with so many openings of sessions and these lines.
    fn begins_with(&self, found: &[Found], openings: usize, lines: &[Line]) -> bool {
        let parts = found.split_at_checked(openings);
        let Some((before, rest)) = parts.and_then(|(before, rest)| Some((before, rest.get(..lines.len())?)))
        else {
            return false;
        };
        let mut streams: BTreeSet<StreamId> = lines.iter().map(|line| session(&line.session).id()).collect();
        // Facts that a session remembers for ever are in the user's stream, and open the session, too.
        let may_open_any = lines.iter().any(|line| line.session == USER);
        let mut opens = |event: &Found| {
            event.label == "session_opened" && (streams.remove(&event.stream) || may_open_any)
        };
        before.iter().all(&mut opens) && rest.iter().zip(lines).all(|(event, line)| self.is_line(event, line))
    }

    /// How many events are an opening of sessions, if need be, and these lines.
    fn starts_with(&self, found: &[Found], lines: &[Line]) -> Option<usize> {
        let openings = (0..=lines.len() + 1).find(|openings| self.begins_with(found, *openings, lines))?;
        Some(openings + lines.len())
    }

    fn is_line(&self, found: &Found, line: &Line) -> bool {
        let stream = if line.session.is_empty() { StreamId::STORE } else { session(&line.session).id() };
        if found.stream != stream {
            return false;
        }
        let told = line.label == TOLD && matches!(found.label.as_str(), "message_recorded" | "item_revised");
        let text = match &found.text {
            Some(text) => *text == line.text,
            None => self.erased.contains_key(&line.text) || self.pages.may_lack(&line.text),
        };
        (told || found.label == line.label) && text
    }

    /// Events that no acknowledged commit has: those of commits without an answer, of erasures, of the beginning.
    fn others(&self, found: &[Found], owned: &BTreeMap<u64, &str>) -> Result<(), String> {
        let mut open: Vec<&Tried> = self.open.iter().collect();
        let (pages, fair) = (session(PAGES).id(), session(FAIR).id());
        let mut at = 0;
        while let Some(event) = found.get(at) {
            let text = event.text.as_deref().unwrap_or_default();
            let is_known = owned.contains_key(&event.seq)
                || (event.label == "policy_set" && text == "store created" && event.seq == 1)
                || matches!(event.label.as_str(), "session_opened" | "turn_started")
                    && is_prepared(event, found)
                || event.label == "context_rebased"
                || (event.label == "erased" && self.reasons.contains(text))
                || (event.label == "item_revised" && event.stream == pages && self.is_page(event))
                || event.stream == fair;
            if is_known {
                at += 1;
                continue;
            }
            let rest = found.get(at..).unwrap_or(&[]);
            let place = open.iter().position(|tried| self.starts_with(rest, &tried.lines).is_some());
            let Some(place) = place else {
                return Err(format!("seq {}: no thread recorded {}", event.seq, event.shown()));
            };
            let tried = open.swap_remove(place);
            at += self.starts_with(rest, &tried.lines).unwrap_or(1);
        }
        Ok(())
    }

    /// Whether a revision is that of a page. Its text may be gone again.
    fn is_page(&self, event: &Found) -> bool {
        event.text.as_ref().is_none_or(|text| self.pages.is_revision(text))
    }

    /// A text is there once, but for those that threads share.
    fn once(&self, found: &[Found]) -> Result<(), String> {
        let mut seen: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for event in found {
            let Some(text) = event.text.as_deref() else { continue };
            if text.is_empty() || text.starts_with("shared ") || event.label == "erased" {
                continue;
            }
            if let Some(other) = seen.insert((&event.label, text), event.seq) {
                return Err(format!("seq {} says what {other} says: {}", event.seq, event.shown()));
            }
        }
        // An answer "known already" means that it is there.
        for tried in self.acked.iter().filter(|tried| tried.seqs.is_none()) {
            for line in tried.lines.iter().filter(|line| !line.text.is_empty() && line.label != "distilled") {
                if !found.iter().any(|event| self.is_line(event, line)) {
                    return Err(format!(
                        "{} was told that it is known, and it is not there: {}",
                        tried.who,
                        line.shown()
                    ));
                }
            }
        }
        Ok(())
    }

    /// A fact that is told in two ways is recorded once, and revised whenever it is told in the other way.
    fn shared(found: &[Found]) -> Result<(), String> {
        let mut newest: BTreeMap<&str, &str> = BTreeMap::new();
        for event in found {
            let Some((key, way)) =
                event.text.as_deref().and_then(|text| text.strip_prefix("shared ")?.split_once(" as "))
            else {
                continue;
            };
            let label = if newest.contains_key(key) { "item_revised" } else { "message_recorded" };
            if event.label != label || newest.insert(key, way) == Some(way) {
                return Err(format!("seq {}: shared {key} was told twice: {}", event.seq, event.shown()));
            }
        }
        Ok(())
    }

    fn is_gone(&self, found: &[Found]) -> Result<(), String> {
        for event in found {
            let is_erased = event.text.as_ref().and_then(|text| self.erased.get(text)).copied();
            if is_erased == Some(true) {
                return Err(format!("seq {} was told to be erased: {}", event.seq, event.shown()));
            }
        }
        Ok(())
    }

    /// A follower was told of each event once, in order, as it is.
    fn followed(who: &str, commits: &[ToldCommit], found: &[Found]) -> Result<(), String> {
        let words = commits.iter().flat_map(|(_, words)| words);
        for (event, word) in found.iter().zip(words) {
            if event.word != *word {
                return Err(format!("{who} was told of {word} where {} is", event.word));
            }
        }
        Ok(())
    }

    /// A commit that was acknowledged is one that followers were told of, or a part of one.
    fn in_one(&self, head: u64) -> Result<(), String> {
        let Some((who, commits)) = self.told.iter().max_by_key(|(_, commits)| commits.len()) else {
            return Ok(());
        };
        let begins: BTreeSet<u64> = commits.iter().map(|(first, _)| *first).collect();
        for tried in &self.acked {
            let Some((first, end)) = tried.seqs else { continue };
            if end <= head && begins.range((Bound::Excluded(first), Bound::Included(end))).next().is_some() {
                return Err(format!(
                    "{} got seqs {first} to {end}; {who} was told of a part of it",
                    tried.who
                ));
            }
        }
        Ok(())
    }
}

/// Whether an event was recorded before the members began.
fn is_prepared(event: &Found, found: &[Found]) -> bool {
    let before = found.iter().skip(1).take_while(|other| {
        other.seq <= event.seq && matches!(other.label.as_str(), "session_opened" | "turn_started")
    });
    before.count() as u64 + 1 == event.seq
}

impl Found {
    fn shown(&self) -> String {
        let text: Option<String> = self.text.as_ref().map(|text| text.chars().take(60).collect());
        format!("{} {} {text:?}", self.label, self.stream)
    }
}
