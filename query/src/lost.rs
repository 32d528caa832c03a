//! The things that compactions took out of a context: files as they were last seen, open todos, decisions, failed attempts, prompts, the
//! largest results. The same rows are listed for people and named to the model.
//!
//! ```text
//! items of the context --compaction of the host--> a summary            rows: what left, and is not there again
//!                      --compaction of acpdb-----> placeholders         rows: what shows its placeholder since
//! ```
//!
//! Nothing is lost in the log: each row has the id by which its text comes back.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use acpdb_engine::event::{ContextReplaced, Payload, ReplaceCause, Role, ToolClass};
use acpdb_engine::fold::{FaceState, ItemKind, ItemView, Ix, Status};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::store::{MemoryScope, StreamName};
use acpdb_engine::text::tokens::estimate;
use acpdb_engine::{Error, Store, View};
use serde::Serialize;

use crate::items::{ItemRow, spell};
use crate::propose::{ProposalRule, propose};
use crate::sound::or_lost;
use crate::titles::{beginning, one_line, prompt_in};
use crate::todos;

/// The beginning of the keys of steps in which acpdb makes a context shorter in its host's place.
pub const COMPACTION_STEP: &str = "compaction-";

/// Most characters of a row's text.
const TEXT_CHARS_MAX: usize = 200;
/// Fewest tokens of a result that is listed for its size.
const OUTPUT_TOKENS_MIN: u64 = 200;
/// Results that are listed for their size.
const OUTPUT_COUNT_MAX: usize = 20;

/// The kinds of things that a compaction takes, in the order in which they are listed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LostKind {
    /// A file, as it was last seen or written.
    File,
    /// An open todo.
    Todo,
    /// A decision, a correction or a preference, as it was said.
    Decision,
    /// A call that failed.
    Failed,
    /// A prompt of the user's.
    Prompt,
    /// One of the largest results.
    Output,
}

impl LostKind {
    /// All kinds, in order.
    pub const ALL: [Self; 6] =
        [Self::File, Self::Todo, Self::Decision, Self::Failed, Self::Prompt, Self::Output];

    /// The heading of its rows.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::File => "files, as they were last seen",
            Self::Todo => "open todos",
            Self::Decision => "decisions",
            Self::Failed => "failed attempts",
            Self::Prompt => "prompts",
            Self::Output => "largest results",
        }
    }
}

/// One thing that left.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LostRow {
    /// Its kind.
    pub kind: LostKind,
    /// The host's id of the session.
    pub session: String,
    /// The compaction that took it.
    pub compaction: Seq,
    /// The item that holds its text; of an entry of a todo list, the event that made the list.
    pub item: String,
    /// The turn in which it was recorded.
    pub turn: u32,
    /// Name of the tool.
    pub tool: Option<String>,
    /// Estimated tokens as recorded.
    pub tokens: u64,
    /// `read`, `written`, `edited`, `deleted` for a file; a todo's status.
    pub state: Option<String>,
    /// The items that it stands for: views and changes of one file; prompts, decisions and failures in the same words.
    pub count: u64,
    /// The file, the todo, the sentence, the call, or the beginning of the text.
    pub text: String,
    /// Whether its item is in the context and only hidden: then `context restore` shows it again.
    pub is_hidden: bool,
}

/// One compaction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct LostAt {
    /// The event.
    pub seq: Seq,
    /// The turn.
    pub turn: u32,
    /// `host`, or `acpdb` for a compaction that acpdb made in the host's place.
    pub by: &'static str,
    /// Items that it took, and that are not there again.
    pub items: u64,
    /// Their tokens, as recorded.
    pub tokens: u64,
}

/// Compactions of a context, and the things that they took.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct LostItems {
    /// The compactions that took something, oldest first.
    pub compactions: Vec<LostAt>,
    /// The things that they took, by kind; of each kind the newest first, of results the largest.
    pub rows: Vec<LostRow>,
}

/// Items that a compaction took, with its event; and the compactions.
struct Taken {
    items: BTreeMap<Ix, Seq>,
    by: BTreeMap<Seq, &'static str>,
}

/// The things that compactions took out of a session's context and that did not come back, as of a view.
///
/// Cost: O(items), and the texts of prompts, decisions and failed calls among what left.
///
/// # Errors
/// If the log cannot be read. Texts that are damaged or erased are left out.
pub fn lost(store: &Store, view: &View, name: &StreamName) -> Result<LostItems, Error> {
    let departed = view.state().departed(view.at());
    let host = host_compactions(store, name, &departed).collect::<Result<Vec<_>, _>>()?;
    let taken = taken(view, departed, host);
    let compactions = compactions(view, &taken);
    let reader = LostReader { store, view, session: &name.name, taken: &taken };
    let (mut rows, listed) = reader.files();
    rows.extend(reader.todos()?);
    let mut said = reader.texts()?;
    said.extend(reader.failed()?);
    rows.extend(once(said));
    rows.extend(reader.outputs(&listed));
    // Within a kind the order of each stays.
    rows.sort_by_key(|row| row.kind);
    Ok(LostItems { compactions, rows })
}

/// Of rows of one kind with the same words the first, which is the newest: hosts say the same again at each compaction, and a call fails the same way
/// twice. The words are whole ones: a row has the beginning of them.
fn once(rows: Vec<(String, LostRow)>) -> Vec<LostRow> {
    let mut places = HashMap::new();
    let mut kept: Vec<LostRow> = Vec::new();
    for (said, row) in rows {
        let place = *places.entry((row.kind, said)).or_insert(kept.len());
        match kept.get_mut(place) {
            Some(first) => first.count += row.count,
            None => kept.push(row),
        }
    }
    kept
}

/// The newest compaction that took something, without what it took.
///
/// Cost: O(items that left), and a look at each event by which some left since.
///
/// # Errors
/// If the log cannot be read.
pub fn last_compaction(store: &Store, view: &View, name: &StreamName) -> Result<Option<LostAt>, Error> {
    let departed = view.state().departed(view.at());
    let newest = host_compactions(store, name, &departed).next().transpose()?;
    let mut taken = taken(view, departed, newest);
    let last = taken.by.last_key_value().map(|(seq, _)| *seq);
    taken.items.retain(|_, seq| Some(*seq) == last);
    Ok(compactions(view, &taken).pop())
}

/// The compactions of the host among the events by which items left, newest first.
fn host_compactions(
    store: &Store,
    name: &StreamName,
    departed: &[(Ix, Seq)],
) -> impl Iterator<Item = Result<Seq, Error>> {
    // A program whose requests are all that is known has no other way to tell of a compaction.
    let may_be_any = matches!(name.host.as_str(), "gemini-cli" | "proxy");
    let seqs: BTreeSet<Seq> = departed.iter().map(|(_, seq)| *seq).collect();
    let is_compaction = move |seq: Seq| -> Result<bool, Error> {
        // Damage costs the event; what it took is in the log as before.
        let Ok(event) = or_lost(store.event(seq))? else { return Ok(false) };
        let replaced = event.map(|recorded| recorded.event.payload);
        Ok(matches!(replaced, Some(Payload::ContextReplaced(ContextReplaced { cause, .. }))
            if cause == ReplaceCause::Compaction || may_be_any && cause == ReplaceCause::Host))
    };
    seqs.into_iter().rev().filter_map(move |seq| match is_compaction(seq) {
        Ok(true) => Some(Ok(seq)),
        Ok(false) => None,
        Err(error) => Some(Err(error)),
    })
}

/// The items that these compactions of the host took, and those that acpdb's own did.
fn taken(view: &View, departed: Vec<(Ix, Seq)>, host: impl IntoIterator<Item = Seq>) -> Taken {
    let (state, at) = (view.state(), view.at());
    let (mut items, mut by) = (BTreeMap::new(), BTreeMap::new());
    by.extend(host.into_iter().map(|seq| (seq, "host")));
    items.extend(departed.into_iter().filter(|(_, seq)| by.contains_key(seq)));
    let ours: BTreeSet<Seq> = state
        .served(at)
        .iter()
        .filter(|(_, served)| served.step.starts_with(COMPACTION_STEP))
        .map(|(seq, _)| *seq)
        .collect();
    if !ours.is_empty() {
        for ix in state.current(at) {
            let hidden = |face: FaceState| !matches!(face, FaceState::Whole | FaceState::Absent);
            let last = state.served_changes(ix, at).pop();
            if let Some(last) = last.filter(|last| hidden(last.state) && ours.contains(&last.seq)) {
                items.insert(ix, last.seq);
                by.insert(last.seq, "acpdb");
            }
        }
    }
    Taken { items, by }
}

fn compactions(view: &View, taken: &Taken) -> Vec<LostAt> {
    let (state, at) = (view.state(), view.at());
    let mut found: BTreeMap<Seq, LostAt> = BTreeMap::new();
    for (ix, seq) in &taken.items {
        let by = taken.by.get(seq).copied().unwrap_or("host");
        let turn = state.turn(*seq).get();
        let one = found.entry(*seq).or_insert(LostAt { seq: *seq, turn, by, items: 0, tokens: 0 });
        let item = state.item(*ix, at);
        one.items += 1;
        one.tokens = one.tokens.saturating_add(item.as_ref().map_or(0, tokens));
    }
    found.into_values().collect()
}

fn tokens(item: &ItemView) -> u64 {
    item.input.tokens.saturating_add(item.output.tokens)
}

/// Reads rows out of what was taken.
struct LostReader<'a> {
    store: &'a Store,
    view: &'a View,
    session: &'a str,
    taken: &'a Taken,
}

impl LostReader<'_> {
    /// The items that were taken, newest first.
    fn items(&self) -> impl Iterator<Item = (ItemView, Seq)> + '_ {
        let (state, at) = (self.view.state(), self.view.at());
        self.taken.items.iter().rev().filter_map(move |(ix, seq)| Some((state.item(*ix, at)?, *seq)))
    }

    fn row(&self, kind: LostKind, item: &ItemView, compaction: Seq, text: &str) -> LostRow {
        LostRow {
            kind,
            session: self.session.to_owned(),
            compaction,
            item: item.item.to_string(),
            turn: item.turn.get(),
            tool: item.tool.as_ref().map(ToString::to_string),
            tokens: tokens(item),
            state: None,
            count: 1,
            text: beginning(&one_line(text), TEXT_CHARS_MAX),
            is_hidden: item.in_context,
        }
    }

    /// The files that the context showed and does not show any more, and the items that they stand for.
    fn files(&self) -> (Vec<LostRow>, BTreeSet<Ix>) {
        let (state, at) = (self.view.state(), self.view.at());
        let name = |ix: Ix| state.files(ix).last().cloned();
        let is_whole =
            |ix: &Ix| state.face_state(*ix, acpdb_engine::event::Face::Output, at) == FaceState::Whole;
        let seen =
            state.current(at).into_iter().filter(|ix| is_whole(ix) && !self.taken.items.contains_key(ix));
        let seen: BTreeSet<_> = seen.filter_map(name).collect();
        let mut rows: BTreeMap<_, LostRow> = BTreeMap::new();
        let (mut order, mut listed) = (Vec::new(), BTreeSet::new());
        for (item, seq) in self.items() {
            let what = match item.class {
                Some(ToolClass::Read) => "read",
                Some(ToolClass::Write) => "written",
                Some(ToolClass::Edit) => "edited",
                Some(ToolClass::Delete) => "deleted",
                _ => continue,
            };
            let Some(file) = name(item.ix).filter(|file| !seen.contains(file)) else { continue };
            if item.status != Some(Status::Completed) {
                continue;
            }
            let given = item.keys.first().map_or(&*file, |key| &**key).to_owned();
            let row = rows.entry(file.clone()).or_insert_with(|| {
                order.push(file);
                let row = self.row(LostKind::File, &item, seq, &given);
                LostRow { state: Some(what.to_owned()), count: 0, ..row }
            });
            row.count += 1;
            listed.insert(item.ix);
        }
        (order.iter().filter_map(|file| rows.remove(file)).collect(), listed)
    }

    /// The open entries of the todo list, if the context does not show the list any more.
    fn todos(&self) -> Result<Vec<LostRow>, Error> {
        let (state, at) = (self.view.state(), self.view.at());
        let list = state.todos().list(at);
        let Some((mut list, last)) = list.zip(self.taken.by.last_key_value()) else { return Ok(Vec::new()) };
        if list.seq > *last.0 {
            return Ok(Vec::new());
        }
        list.items.retain(|item| item.is_open());
        let entries = todos::TodoTexts::of_what_is_left(self.view).entries(&list)?.into_iter();
        let rows = entries.filter(|entry| !entry.content.is_empty()).map(|entry| LostRow {
            kind: LostKind::Todo,
            session: self.session.to_owned(),
            compaction: *last.0,
            item: ItemId::first(list.seq).to_string(),
            turn: list.turn.get(),
            tool: None,
            tokens: u64::from(estimate(entry.content.as_bytes())),
            state: Some(entry.status),
            count: 1,
            text: beginning(&one_line(&entry.content), TEXT_CHARS_MAX),
            is_hidden: false,
        });
        Ok(rows.collect())
    }

    /// Prompts, and what was decided in texts, each with its whole words.
    fn texts(&self) -> Result<Vec<(String, LostRow)>, Error> {
        let mut rows = Vec::new();
        let scope = MemoryScope::session(self.view.stream());
        let memory = self.store.memory(&scope, Seq::MAX)?;
        for (item, seq) in self.items() {
            if item.kind != ItemKind::Text || item.hidden_from_model || item.injected.is_some() {
                continue;
            }
            let Some(text) = self.text(&item)? else { continue };
            if item.role == Role::User
                && let Some(prompt) = prompt_in(&text)
            {
                rows.push((text.clone(), self.row(LostKind::Prompt, &item, seq, &prompt)));
            }
            let proposals = memory.read(self.store.now(), |memory| propose(item.role, &text, memory));
            let decided = proposals.into_iter().filter(|it| it.rule != ProposalRule::Fact);
            // One sentence may be several things to remember.
            let sentences: BTreeSet<String> = decided.map(|it| it.sentence).collect();
            let row = |said: String| (said.clone(), self.row(LostKind::Decision, &item, seq, &said));
            rows.extend(sentences.into_iter().map(row));
        }
        Ok(rows)
    }

    /// Calls that failed, with the beginning of what they said; each with all of it.
    fn failed(&self) -> Result<Vec<(String, LostRow)>, Error> {
        let failed: Vec<_> = self.items().filter(|(item, _)| item.status == Some(Status::Failed)).collect();
        let mut rows = Vec::new();
        for ((item, seq), name) in failed.iter().zip(self.named(&failed)) {
            let said = self.text(item)?.unwrap_or_default();
            let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
            let row = self.row(LostKind::Failed, item, *seq, &format!("{name}: {line}"));
            rows.push((format!("{name}: {said}"), row));
        }
        Ok(rows)
    }

    /// Calls by their tools and subjects.
    fn named(&self, items: &[(ItemView, Seq)]) -> Vec<String> {
        let at = self.view.at();
        let row = |(item, _): &(ItemView, Seq)| ItemRow::of(self.view.state(), item, self.session, at);
        let mut rows: Vec<ItemRow> = items.iter().map(row).collect();
        // The rows are spelled in place; only sentences and edges need the returned words.
        let _ = spell(self.view, &mut rows.iter_mut().collect::<Vec<_>>());
        let named = rows.into_iter().map(|row| {
            let tool = row.tool.unwrap_or_else(|| "result".to_owned());
            row.keys.first().map_or_else(|| tool.clone(), |key| format!("{tool} {key}"))
        });
        named.collect()
    }

    /// The largest results that are not listed yet.
    fn outputs(&self, listed: &BTreeSet<Ix>) -> Vec<LostRow> {
        let is_large = |item: &ItemView| {
            matches!(item.kind, ItemKind::Call | ItemKind::Result) && item.output.tokens >= OUTPUT_TOKENS_MIN
        };
        let large = self.items().filter(|(item, _)| is_large(item) && item.status != Some(Status::Failed));
        let mut large: Vec<_> = large.filter(|(item, _)| !listed.contains(&item.ix)).collect();
        large.sort_by_key(|(item, _)| std::cmp::Reverse(tokens(item)));
        large.truncate(OUTPUT_COUNT_MAX);
        let rows = large.iter().zip(self.named(&large));
        rows.map(|((item, seq), name)| self.row(LostKind::Output, item, *seq, &name)).collect()
    }

    /// The text of an item; `None`: it is damaged, erased or empty.
    fn text(&self, item: &ItemView) -> Result<Option<String>, Error> {
        let mut whole = String::new();
        for part in &item.content {
            // A text that is damaged or erased cannot be listed by its words.
            if let Ok(text) = or_lost(self.view.text(part.body))? {
                whole.push_str(&text);
            }
        }
        Ok(Some(whole).filter(|text| !text.trim().is_empty()))
    }
}

impl LostItems {
    /// Tokens of all that left.
    pub fn tokens(&self) -> u64 {
        self.compactions.iter().map(|one| one.tokens).fold(0, u64::saturating_add)
    }

    /// Items that left.
    pub fn items(&self) -> u64 {
        self.compactions.iter().map(|one| one.items).sum()
    }

    /// An index for the model: of each kind as many rows as fit, in turns, so that none is crowded out. `None`: nothing left.
    pub fn index(&self, tokens_max: u32) -> Option<String> {
        let last = self.compactions.last()?;
        let mut chosen: BTreeMap<LostKind, usize> = BTreeMap::new();
        let mut text = self.index_of(last, &chosen);
        let most = LostKind::ALL.iter().map(|kind| self.of(*kind).count()).max().unwrap_or(0);
        'full: for rank in 1..=most {
            for kind in LostKind::ALL.into_iter().filter(|kind| self.of(*kind).count() >= rank) {
                let before = chosen.insert(kind, rank);
                let longer = self.index_of(last, &chosen);
                if estimate(longer.as_bytes()) > tokens_max {
                    match before {
                        Some(before) => chosen.insert(kind, before),
                        None => chosen.remove(&kind),
                    };
                    if rank > 1 {
                        break 'full;
                    }
                    continue;
                }
                text = longer;
            }
        }
        Some(text)
    }

    fn of(&self, kind: LostKind) -> impl Iterator<Item = &LostRow> {
        self.rows.iter().filter(move |row| row.kind == kind)
    }

    fn index_of(&self, last: &LostAt, chosen: &BTreeMap<LostKind, usize>) -> String {
        let mut text = format!(
            "[acpdb] The compaction at {} left out of this context what was here before. Nothing is gone: the tool recall with one of \
             these ids as its query returns the exact text.\n",
            last.seq
        );
        for (kind, count) in chosen {
            let all = self.of(*kind).count();
            let more = if all > *count { format!(", {count} of {all}") } else { String::new() };
            text.push_str(&format!("{}{more}:\n", kind.heading()));
            for row in self.of(*kind).take(*count) {
                text.push_str(&row.line());
                text.push('\n');
            }
        }
        text
    }
}

impl LostRow {
    /// The row for the model.
    fn line(&self) -> String {
        let state = self.state.as_ref().map(|state| format!("{state} ")).unwrap_or_default();
        let text = beginning(&self.text, 120);
        format!("- {} {state}{text}", self.item)
    }
}

#[cfg(test)]
#[path = "lost_tests.rs"]
mod tests;
