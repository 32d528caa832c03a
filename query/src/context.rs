//! A context as data, in order: the *current* one, which acpdb would show, with the reason for each placeholder; or the
//! *recorded* one, which the host had. The *served* one, sent to a model through acpdb, is for [`crate::served`].

use std::collections::VecDeque;

use acpdb_engine::event::{Face, MemoryKind, Scope};
use acpdb_engine::fold::memory::kind_label;
use acpdb_engine::fold::{FaceState, FaceView, ItemKind, ItemView, Ix, State};
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::store::{MemoryScope, ShownFace, StreamName};
use acpdb_engine::{Error, Store, View};
use serde::Serialize;

use crate::items::{ItemRow, spell_by};
use crate::sound::or_lost;
use crate::titles::title_of;

/// Points of the series of a session: as many as a small picture has columns.
pub const SERIES_COUNT_MAX: usize = 24;

/// A face, with the text that is shown of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FaceText {
    /// How it is shown.
    pub state: FaceState,
    /// The text that is shown; `None` if its bytes are damaged or erased.
    pub text: Option<String>,
    /// The reason why there is no text.
    pub problem: Option<String>,
    /// Estimated tokens as recorded.
    pub tokens: u64,
    /// Estimated tokens as shown.
    pub tokens_shown: u64,
}

/// An item of the context.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ContextItem {
    /// The item and how it stands.
    #[serde(flatten)]
    pub row: ItemRow,
    /// Parameters of a call.
    pub input: Option<FaceText>,
    /// The item's content; for a call, the result. Absent while a call is unfinished.
    pub output: Option<FaceText>,
}

/// A memory item that holds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemoryRow {
    /// Its id within its stream.
    pub id: String,
    /// The event that recorded it.
    pub seq: Seq,
    /// Its kind.
    pub kind: MemoryKind,
    /// Its category.
    pub category: String,
    /// A preference's key.
    pub key: Option<String>,
    /// Its value; `None` if its bytes are damaged or erased.
    pub value: Option<String>,
    /// Its confidence, from 0 to 1.
    pub confidence: f64,
}

impl MemoryRow {
    /// `fact`, or `preference style/indent`.
    pub fn heading(&self) -> String {
        let kind = kind_label(self.kind);
        match &self.key {
            Some(key) => format!("{kind} {}/{key}", self.category),
            None if self.category.is_empty() => kind.to_owned(),
            None => format!("{kind} ({})", self.category),
        }
    }
}

/// The owner of a context.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextOwner {
    /// The context that acpdb would show.
    #[default]
    Current,
    /// The context that the host had.
    Recorded,
}

/// The items of a context that are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// Only the newest so many items.
    pub last: Option<usize>,
    /// As acpdb would show them, or as the host had them.
    pub layer: ContextOwner,
}

/// The current context of a session.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CurrentContext {
    /// The host's id of the session.
    pub session: String,
    /// The host program.
    pub host: String,
    /// A title for people.
    pub title: Option<String>,
    /// The project whose memory it shares.
    pub project: Option<String>,
    /// The context shows everything up to this seq.
    pub at: Seq,
    /// The turn.
    pub turn: u32,
    /// acpdb's context or the host's.
    pub layer: ContextOwner,
    /// Preset of the policy in force.
    pub policy: String,
    /// Estimated tokens of the context as shown.
    pub tokens_shown: u64,
    /// Estimated tokens of the same items as recorded.
    pub tokens_whole: u64,
    /// Tokens that hiding saves.
    pub tokens_freed: u64,
    /// Tokens of the context as shown, at the ends of turns spread evenly; the last is the newest turn.
    pub tokens_by_turn: Vec<u64>,
    /// Items of the context, whether shown here or not.
    pub item_count: usize,
    /// Items with a hidden face.
    pub hidden_count: usize,
    /// The items asked for, in conversation order.
    pub items: Vec<ContextItem>,
    /// Memory of the session and its project, in the order of recording.
    pub memory: Vec<MemoryRow>,
}

/// The current context of a view; `now` decides which memory items have faded.
///
/// Texts that are damaged or erased are named as such, the rest is shown. Cost: O(items), and the bodies of the items asked for.
///
/// # Errors
/// If the log cannot be read.
pub fn context(store: &Store, view: &View, window: Window, now: Micros) -> Result<CurrentContext, Error> {
    let (mut context, items) = items(store, view, window, now)?;
    context.items.reserve_exact(items.wanted.len());
    for item in items {
        context.items.push(item?);
    }
    Ok(context)
}

/// The title, the same as in lists: its host's title if that says something, else its first prompt.
fn title(store: &Store, view: &View, context: &CurrentContext) -> Result<Option<String>, Error> {
    let name = StreamName {
        id: view.stream(),
        scope: Scope::Session,
        host: context.host.clone(),
        name: context.session.clone(),
        title: context.title.clone(),
        parent: None,
        started_by: None,
        head: view.at(),
        began: None,
        folder: None,
    };
    title_of(store, &name, None)
}

/// As [`context`], with its items apart, so that each item can be told as soon as it is read: memory stays flat.
///
/// # Errors
/// If the log cannot be read; the error of an item comes with the item.
pub fn items(
    store: &Store,
    view: &View,
    window: Window,
    now: Micros,
) -> Result<(CurrentContext, ContextItems), Error> {
    let at = view.at();
    let moves = store.project_moves()?;
    let (mut context, wanted) = {
        let state = view.state();
        let info = state.info(at).cloned().unwrap_or_default();
        let current = state.current(at);
        let hidden = |ix: &&Ix| {
            [Face::Input, Face::Output].iter().any(|face| is_hidden(state.face_state(**ix, *face, at)))
        };
        let mut tokens = state.tokens(at);
        let mut hidden_count = current.iter().filter(hidden).count();
        if window.layer == ContextOwner::Recorded {
            let items = || current.iter().filter_map(|ix| state.recorded_item(*ix, at));
            tokens.shown =
                items().map(|it| it.input.tokens_shown.saturating_add(it.output.tokens_shown)).sum();
            hidden_count =
                items().filter(|item| is_hidden(item.input.state) || is_hidden(item.output.state)).count();
        }
        let context = CurrentContext {
            session: info.name.clone(),
            host: info.host.clone(),
            title: info.title.clone(),
            project: info.project.as_ref().map(|project| moves.project(project).into_owned()),
            at,
            turn: tokens.turn.get(),
            layer: window.layer,
            policy: state.policy(at).preset.clone(),
            tokens_shown: tokens.shown,
            tokens_whole: tokens.whole,
            // Summaries that are longer than the texts that they replace free nothing.
            tokens_freed: tokens.whole.saturating_sub(tokens.shown),
            tokens_by_turn: series(state, at),
            item_count: current.len(),
            hidden_count,
            items: Vec::new(),
            memory: Vec::new(),
        };
        // If the context has fewer items than were asked for, all are taken.
        let skip = window.last.map_or(0, |last| current.len().saturating_sub(last));
        let wanted: Vec<Ix> = current.into_iter().skip(skip).collect();
        (context, wanted.into_iter())
    };
    context.title = title(store, view, &context)?;
    context.memory = memory(store, view, now)?;
    let session = context.session.clone();
    let layer = window.layer;
    let (view, ready) = (view.clone(), VecDeque::new());
    Ok((context, ContextItems { view, session, layer, wanted, ready, has_words: true }))
}

/// Items of a context, in conversation order; made by [`items`].
#[derive(Debug)]
pub struct ContextItems {
    view: View,
    session: String,
    layer: ContextOwner,
    wanted: std::vec::IntoIter<Ix>,
    ready: VecDeque<Result<ContextItem, Error>>,
    /// Keys are spelled.
    has_words: bool,
}

/// Items whose texts are read together.
const TOGETHER_COUNT: usize = 512;

impl ContextItems {
    /// Keys stay the signs that the log keeps of them: for a list that does not show keys. The words of the signs cost a parse
    /// of each call's parameters.
    #[must_use]
    pub fn without_words(self) -> Self {
        Self { has_words: false, ..self }
    }

    /// The number of items that are yet to come.
    pub fn remaining(&self) -> usize {
        self.wanted.len().saturating_add(self.ready.len())
    }

    /// Reads the next items: their texts lie beside each other.
    fn fill(&mut self) {
        let at = self.view.at();
        let rows: Vec<(Ix, ItemRow, ItemView)> = {
            let state = self.view.state();
            let some = self.wanted.by_ref().take(TOGETHER_COUNT);
            let rows = some.filter_map(|ix| match self.layer {
                ContextOwner::Current => {
                    let item = state.item(ix, at)?;
                    Some((ix, ItemRow::of(state, &item, &self.session, at), item))
                }
                ContextOwner::Recorded => {
                    let item = state.recorded_item(ix, at)?;
                    let row = ItemRow::of(state, &item, &self.session, at);
                    Some((ix, ItemRow { rule: None, superseded_by: None, ..row }, item))
                }
            });
            rows.collect()
        };
        let has_input = |item: &ItemView| item.kind == ItemKind::Call;
        let has_output = |item: &ItemView| item.output.state != FaceState::Absent;
        let faces = rows.iter().flat_map(|(ix, _, item)| {
            let input = has_input(item).then_some((*ix, Face::Input, at));
            [input, has_output(item).then_some((*ix, Face::Output, at))].into_iter().flatten()
        });
        let faces: Vec<_> = faces.collect();
        let mut shown = match self.layer {
            ContextOwner::Current => self.view.shown_all(&faces),
            ContextOwner::Recorded => self.view.recorded_all(&faces),
        }
        .into_iter();
        let (mut rows, faces): (Vec<ItemRow>, Vec<_>) = rows
            .into_iter()
            .map(|(_, row, item)| {
                let mut next = |is_there: bool, known: &FaceView| {
                    let shown = if is_there { shown.next() } else { None };
                    shown.map(|shown| face(shown, known)).transpose()
                };
                (row, (next(has_input(&item), &item.input), next(has_output(&item), &item.output)))
            })
            .unzip();
        if self.has_words {
            // Without a placeholder, the model sees the parameters themselves.
            let params = |place: usize| {
                let (input, _) = faces.get(place)?;
                // The error comes out with the row below.
                let input = input.as_ref().ok()?.as_ref();
                input.filter(|input| input.state == FaceState::Whole)?.text.as_deref()
            };
            // The rows are spelled in place; only sentences and edges need the returned words.
            let _ = spell_by(&self.view, &mut rows.iter_mut().collect::<Vec<_>>(), &params);
        }
        for (row, (input, output)) in rows.into_iter().zip(faces) {
            self.ready.push_back(input.and_then(|input| Ok(ContextItem { row, input, output: output? })));
        }
    }
}

impl Iterator for ContextItems {
    type Item = Result<ContextItem, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.ready.is_empty() && !self.wanted.as_slice().is_empty() {
            self.fill();
        }
        self.ready.pop_front()
    }
}

const fn is_hidden(state: FaceState) -> bool {
    matches!(state, FaceState::Tombstone | FaceState::Summary | FaceState::Gone | FaceState::Shortened)
}

fn face(shown: Result<ShownFace, Error>, known: &FaceView) -> Result<FaceText, Error> {
    let (text, problem) = match or_lost(shown)? {
        Ok(shown) => (Some(shown.text), None),
        Err(lost) => (None, Some(lost.to_string())),
    };
    let (tokens, tokens_shown) = (known.tokens, known.tokens_shown);
    Ok(FaceText { state: known.state, text, problem, tokens, tokens_shown })
}

/// The memory items that hold for a view's session and its project, in the order of recording.
///
/// # Errors
/// If the log cannot be read.
pub fn memory(store: &Store, view: &View, now: Micros) -> Result<Vec<MemoryRow>, Error> {
    let memory = store.memory(&MemoryScope::session(view.stream()), view.at())?;
    if memory.is_empty() {
        return Ok(Vec::new());
    }
    let rows = memory.current(now).into_iter().map(|held| MemoryRow {
        id: held.id,
        seq: held.item.seq,
        kind: held.kind,
        category: held.category,
        key: held.key,
        value: held.value,
        confidence: held.confidence.as_f64(),
    });
    Ok(rows.collect())
}

/// The size of a context over its turns, in few points.
pub fn series(state: &State, at: Seq) -> Vec<u64> {
    let shown: Vec<u64> = state.tokens_by_turn(at).iter().map(|turn| turn.shown).collect();
    sampled(&shown, SERIES_COUNT_MAX)
}

/// At most `count` of the values, spread evenly, the last among them.
pub fn sampled(values: &[u64], count: usize) -> Vec<u64> {
    if values.len() <= count || count == 0 {
        return values.to_vec();
    }
    let last = values.len() - 1;
    let steps = (count - 1).max(1);
    (0..count).filter_map(|step| values.get(last * step / steps)).copied().collect()
}
