//! Items as rows: all of a session, those of a file, those of a tool.
//!
//! A row says how an item stands and why, without any body. States and causes are those of the content (for a call:
//! its output), because a reader misses the content; tokens are those of both faces.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use acpdb_engine::View;
use acpdb_engine::event::Role;
use acpdb_engine::fold::{CauseView, FaceState, ItemKind, ItemView, Ix, RuleKind, State, Status};
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::store::Params;
use acpdb_engine::text::paths::ends_in;
use acpdb_engine::text::signature::is_masked;
use serde::Serialize;

use crate::chain::ChainEdge;

/// An item in a line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ItemRow {
    /// Its id, such as `#812` or `#812.2`.
    pub item: String,
    /// The event that recorded it.
    pub seq: Seq,
    /// The host's id of its session.
    pub session: String,
    /// Its turn.
    pub turn: u32,
    /// Its kind.
    pub kind: ItemKind,
    /// The role of its speaker.
    pub role: Role,
    /// Name of the tool.
    pub tool: Option<String>,
    /// The host's id of the call.
    pub call: Option<String>,
    /// The hash by which an agent names the call.
    pub hash: Option<String>,
    /// The status of the call.
    pub status: Option<Status>,
    /// The subjects of the call: files, searches, addresses.
    pub keys: Vec<String>,
    /// How its content is shown.
    pub state: FaceState,
    /// The cause if it is not shown whole, in a word; see [`cause_label`].
    pub cause: Option<&'static str>,
    /// The rule that superseded the item, even if it is hidden for another cause; absent if the item was shown again on request.
    pub rule: Option<RuleKind>,
    /// The item that superseded it by that rule.
    pub superseded_by: Option<String>,
    /// Whether it is part of the current context; its faces may be hidden all the same.
    pub in_context: bool,
    /// Whether it is pinned.
    pub pinned: bool,
    /// Estimated tokens as recorded.
    pub tokens: u64,
    /// Estimated tokens as shown; 0 outside of the context.
    pub tokens_shown: u64,
    /// The files that the call names, as given and as resolved; `keys` have other subjects, too.
    #[serde(skip)]
    pub(crate) files: Vec<Arc<str>>,
}

impl ItemRow {
    pub(crate) fn of(state: &State, item: &ItemView, session: &str, at: Seq) -> Self {
        let text = |text: &Arc<str>| text.to_string();
        let cause = item.output.cause.as_ref().or(item.input.cause.as_ref());
        let (rule, by) = if let Some(CauseView::Superseded { rule, by, .. }) = &item.output.cause {
            (Some(*rule), *by)
        } else {
            let edges = state.superseded_by(item.ix, at);
            let first = edges.iter().find(|edge| !edge.released);
            (first.map(|edge| edge.rule), first.and_then(|edge| edge.new))
        };
        let shown = item.input.tokens_shown.saturating_add(item.output.tokens_shown);
        Self {
            item: item.item.to_string(),
            seq: item.item.seq,
            session: session.to_owned(),
            turn: item.turn.get(),
            kind: item.kind,
            role: item.role,
            tool: item.tool.as_ref().map(text),
            call: item.call.as_ref().map(text),
            hash: item.hash.clone(),
            status: item.status,
            keys: item.keys.iter().map(text).collect(),
            state: item.output.state,
            cause: cause.map(cause_label),
            rule,
            superseded_by: by.map(|by| by.to_string()),
            in_context: item.in_context,
            pinned: item.pinned,
            files: state.files(item.ix),
            tokens: item.input.tokens.saturating_add(item.output.tokens),
            tokens_shown: if item.in_context { shown } else { 0 },
        }
    }

    /// Whether one of these rules superseded or shortened it.
    pub(crate) fn has_rule(&self, rules: &[&'static str]) -> bool {
        let rule = self.rule.map(RuleKind::label);
        let shortened = self.cause.filter(|_| self.state == FaceState::Shortened);
        [rule, shortened].into_iter().flatten().any(|rule| rules.contains(&rule))
    }

    /// Whether its content can be read in the current context.
    pub fn is_visible(&self) -> bool {
        self.in_context && matches!(self.state, FaceState::Whole | FaceState::Shortened)
    }
}

/// A cause in a word: the rule's name if it superseded or shortened the item, else the act.
pub fn cause_label(cause: &CauseView) -> &'static str {
    match cause {
        CauseView::Erased { .. } => "erased",
        CauseView::Lost { .. } => "lost",
        CauseView::OffBranch { .. } => "off_branch",
        CauseView::Left { .. } => "left",
        CauseView::Abandoned { .. } => "abandoned",
        CauseView::ClearedByHost { .. } => "cleared_by_host",
        CauseView::Distilled { .. } => "distilled",
        CauseView::Evicted { rolling: true, .. } => "rolling_prune",
        CauseView::Evicted { .. } => "evicted",
        CauseView::Superseded { rule, .. } => rule.label(),
        CauseView::Discarded { .. } => "discarded",
        CauseView::Shortened { rule, .. } => rule.label(),
    }
}

/// The items that are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Which<'a> {
    /// All of the session.
    All,
    /// Calls that name this file, as given or as resolved, and those whose file ends in this path.
    File(&'a str),
    /// Calls of this tool; else of tools whose name differs in case only.
    Tool(&'a str),
}

/// All items of a view that are asked for, hidden ones too, in the order of recording.
///
/// `session` is the host's id, repeated in each row. Cost: O(items).
pub fn items(view: &View, session: &str, which: Which<'_>) -> Vec<ItemRow> {
    let at = view.at();
    let state = view.state();
    let found = match which {
        Which::All => state.items(at).collect(),
        Which::File(path) => of_file(state, path, at),
        Which::Tool(tool) => of_tool(state, tool, at),
    };
    let rows = found.into_iter().filter_map(|ix| Some(ItemRow::of(state, &state.item(ix, at)?, session, at)));
    let mut rows: Vec<ItemRow> = rows.collect();
    // The rows are spelled in place; only sentences and edges need the returned words.
    let _ = spell(view, &mut rows.iter_mut().collect::<Vec<_>>());
    rows
}

/// Replaces the signs that the log keeps of keys by the words of the keys. A sign stays if its words were erased.
///
/// Cost: reads the parameters of the calls with such keys.
pub(crate) fn spell(view: &View, rows: &mut [&mut ItemRow]) -> KeyWords {
    spell_by(view, rows, &|_| None)
}

/// As [`spell`], for a caller that has read the parameters of some rows: `params` has their text, by the place of the row.
pub(crate) fn spell_by<'t>(
    view: &View,
    rows: &mut [&mut ItemRow],
    params: &dyn Fn(usize) -> Option<&'t str>,
) -> KeyWords {
    let mut words = KeyWords::default();
    let has_signs = |row: &ItemRow| row.keys.iter().any(|key| is_masked(key));
    let (mut places, mut calls) = (Vec::new(), Vec::new());
    if !rows.iter().any(|row| has_signs(row)) {
        return words;
    }
    let state = view.state();
    for (place, row) in rows.iter().enumerate().filter(|(_, row)| has_signs(row)) {
        // A replacement character, in place of bytes that are no text, would be read as part of a key.
        let text = params(place).filter(|text| !text.contains(char::REPLACEMENT_CHARACTER));
        let params = text.map(Params::Text).or_else(|| {
            // A row names its item as `ItemId` writes it.
            let ix = state.find(row.item.parse::<ItemId>().ok()?)?;
            state.params(ix, view.at()).map(Params::Body)
        });
        let Some(params) = params else { continue };
        places.push(place);
        calls.push((params, row.tool.clone().unwrap_or_default()));
    }
    let calls: Vec<_> = calls.iter().map(|(params, tool)| (*params, tool.as_str())).collect();
    for (place, keys) in places.into_iter().zip(view.spell_keys(&calls)) {
        let Some((row, keys)) = rows.get_mut(place).zip(keys) else { continue };
        if row.keys.len() == keys.len() {
            for (sign, key) in row.keys.iter_mut().zip(keys).filter(|(sign, _)| is_masked(sign)) {
                let sign = std::mem::replace(sign, key.clone());
                words.0.insert(sign, key);
            }
        }
    }
    words
}

/// The words that the signs of keys stand for.
#[derive(Default)]
pub(crate) struct KeyWords(BTreeMap<String, String>);

impl KeyWords {
    /// Puts the words in the place of the signs of an edge's key.
    pub(crate) fn put_key(&self, edge: &mut ChainEdge) {
        if let Some(key) = &mut edge.key
            && let Some(words) = self.0.get(key)
        {
            key.clone_from(words);
        }
    }

    /// Puts the words in the place of signs in a sentence.
    pub(crate) fn put(&self, sentence: &mut String) {
        for (sign, words) in &self.0 {
            if sentence.contains(sign.as_str()) {
                *sentence = sentence.replace(sign.as_str(), words);
            }
        }
    }
}

fn of_file(state: &State, path: &str, at: Seq) -> Vec<Ix> {
    if path.is_empty() {
        return Vec::new();
    }
    // A shell call may name a file by a part of its path, a call that writes it by the whole path: a reader means both.
    let exact: BTreeSet<Ix> = state.calls_by_file(path, at).into_iter().collect();
    let ends = |ix: &Ix| state.files(*ix).iter().any(|file| ends_in(file, path));
    state.items(at).filter(|ix| exact.contains(ix) || ends(ix)).collect()
}

fn of_tool(state: &State, tool: &str, at: Seq) -> Vec<Ix> {
    let exact = state.calls_by_tool(tool, at);
    if !exact.is_empty() {
        return exact;
    }
    let same = |ix: &Ix| state.tool(*ix).is_some_and(|name| name.to_lowercase() == tool.to_lowercase());
    state.items(at).filter(same).collect()
}

/// The names that [`items`] can be asked for: of tools, or of files that calls of a view name; each once, in order.
pub fn names(view: &View, which: Which<'_>) -> Vec<String> {
    let at = view.at();
    let state = view.state();
    let mut names = std::collections::BTreeSet::new();
    for ix in state.items(at) {
        let Some(tool) = state.tool(ix) else { continue };
        match which {
            Which::All => {}
            Which::Tool(_) => {
                names.insert(tool.to_string());
            }
            Which::File(_) => {
                names.extend(state.files(ix).iter().map(ToString::to_string));
            }
        }
    }
    names.into_iter().collect()
}
