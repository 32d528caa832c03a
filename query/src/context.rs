//! The current context as data: what the model sees, in order, with the reason for each stand-in.

use acpdb_engine::event::{Face, MemoryKind};
use acpdb_engine::fold::memory::kind_label;
use acpdb_engine::fold::{FaceState, ItemKind, Ix};
use acpdb_engine::ids::{Micros, Seq};
use acpdb_engine::store::MemoryScope;
use acpdb_engine::{Error, Store, View};
use serde::Serialize;

use crate::items::ItemRow;

/// A face, with what the model sees of it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FaceText {
    /// How it is shown.
    pub state: FaceState,
    /// The text that is shown; `None` if its bytes are damaged or erased.
    pub text: Option<String>,
    /// Why there is no text.
    pub problem: Option<String>,
    /// Estimated tokens as recorded.
    pub tokens: u64,
    /// Estimated tokens as shown.
    pub tokens_shown: u64,
}

/// An item of the context.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ContextItem {
    /// What it is and where it stands.
    #[serde(flatten)]
    pub row: ItemRow,
    /// Parameters of a call.
    pub input: Option<FaceText>,
    /// Its content; of a call, the result. Absent while a call is unfinished.
    pub output: Option<FaceText>,
}

/// A memory item that holds.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct MemoryRow {
    /// Its id within its stream.
    pub id: String,
    /// The event that recorded it.
    pub seq: Seq,
    /// What it is.
    pub kind: MemoryKind,
    /// Its category.
    pub category: String,
    /// A preference's key.
    pub key: Option<String>,
    /// Its value; `None` if its bytes are damaged or erased.
    pub value: Option<String>,
    /// How sure it is, from 0 to 1.
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

/// Which items of a context are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Window {
    /// Only the newest so many items.
    pub last: Option<usize>,
}

/// The current context of a session.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Context {
    /// The host's id of the session.
    pub session: String,
    /// The host program.
    pub host: String,
    /// A title for people.
    pub title: Option<String>,
    /// The project whose memory it shares.
    pub project: Option<String>,
    /// Everything up to this seq shows.
    pub at: Seq,
    /// The turn.
    pub turn: u32,
    /// Preset of the policy in force.
    pub policy: String,
    /// Estimated tokens of the context as shown.
    pub tokens_shown: u64,
    /// Estimated tokens of the same items as recorded.
    pub tokens_whole: u64,
    /// What hiding saves.
    pub tokens_freed: u64,
    /// Tokens of the context as shown, at the ends of turns spread evenly; the last is the newest turn.
    pub tokens_by_turn: Vec<u64>,
    /// Items of the context, whether shown here or not.
    pub item_count: usize,
    /// Items of which some face is hidden.
    pub hidden_count: usize,
    /// The items asked for, in conversation order.
    pub items: Vec<ContextItem>,
    /// What the session and its project remember, in the order of recording.
    pub memory: Vec<MemoryRow>,
}

/// The current context of a view; `now` decides what memory has faded.
///
/// Texts that are damaged or erased are named as such, the rest is shown. Cost: O(items), and the bodies of those asked
/// for.
///
/// # Errors
/// If the log cannot be read.
pub fn context(store: &Store, view: &View, window: Window, now: Micros) -> Result<Context, Error> {
    let at = view.at();
    let (mut context, wanted) = {
        let reading = view.read();
        let state = reading.state();
        let info = state.info(at).cloned().unwrap_or_default();
        let current = state.current(at);
        let hidden = |ix: &&Ix| {
            [Face::Input, Face::Output].iter().any(|face| is_hidden(state.face(**ix, *face, at).state))
        };
        let tokens = state.tokens(at);
        let context = Context {
            session: info.name.clone(),
            host: info.host.clone(),
            title: info.title.clone(),
            project: info.project.clone(),
            at,
            turn: tokens.turn.get(),
            policy: state.policy(at).preset.clone(),
            tokens_shown: tokens.shown,
            tokens_whole: tokens.whole,
            tokens_freed: tokens.whole.saturating_sub(tokens.shown),
            tokens_by_turn: crate::sessions::series(state, at),
            item_count: current.len(),
            hidden_count: current.iter().filter(hidden).count(),
            items: Vec::new(),
            memory: Vec::new(),
        };
        let skip = window.last.map_or(0, |last| current.len().saturating_sub(last));
        let rows = current.iter().skip(skip).filter_map(|ix| {
            let item = state.item(*ix, at)?;
            let row = ItemRow::of(state, &item, &info.name, at);
            Some((*ix, row, item))
        });
        (context, rows.collect::<Vec<_>>())
    };
    for (ix, row, item) in wanted {
        let input = match item.kind {
            ItemKind::Call => Some(face(view, ix, Face::Input, &item.input)?),
            _ => None,
        };
        let output = match item.output.state {
            FaceState::Absent => None,
            _ => Some(face(view, ix, Face::Output, &item.output)?),
        };
        context.items.push(ContextItem { row, input, output });
    }
    context.memory = memory(store, view, now)?;
    Ok(context)
}

const fn is_hidden(state: FaceState) -> bool {
    matches!(state, FaceState::Tombstone | FaceState::Summary | FaceState::Gone | FaceState::Shortened)
}

fn face(view: &View, ix: Ix, face: Face, known: &acpdb_engine::fold::FaceView) -> Result<FaceText, Error> {
    let (text, problem) = match view.shown(ix, face) {
        Ok(shown) => (Some(shown.text), None),
        Err(error @ (Error::Corrupt { .. } | Error::Erased { .. })) => (None, Some(error.to_string())),
        Err(error) => return Err(error),
    };
    let (tokens, tokens_shown) = (known.tokens, known.tokens_shown);
    Ok(FaceText { state: known.state, text, problem, tokens, tokens_shown })
}

/// What holds in the memory of a view's session and its project, in the order of recording.
///
/// # Errors
/// If the log cannot be read.
pub fn memory(store: &Store, view: &View, now: Micros) -> Result<Vec<MemoryRow>, Error> {
    let memory = store.memory(&MemoryScope::session(view.stream()), view.at())?;
    Ok(memory.read(now, |memory| {
        let rows = memory.current().into_iter().map(|(_, item)| MemoryRow {
            id: item.id().to_owned(),
            seq: item.item().seq,
            kind: item.kind(),
            category: item.category().to_owned(),
            key: item.key().map(str::to_owned),
            value: memory.text(&item),
            confidence: item.confidence(now).as_f64(),
        });
        rows.collect()
    }))
}
