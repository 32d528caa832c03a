//! The reasons why an item is, or is not, in the current context: in sentences, and as data.

use acpdb_engine::View;
use acpdb_engine::fold::{
    CauseView, Explanation, FaceState, ItemKind, ItemView, Ix, Protection, State, Status,
};
use acpdb_engine::ids::Seq;
use serde::Serialize;

use crate::chain::ChainEdge;
use crate::items::{ItemRow, spell};
use crate::served::{ServedRow, host_sentence, served_rows, served_sentence};
use crate::titles::{beginning, one_line};

/// An explanation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Explained {
    /// The item and how it stands.
    #[serde(flatten)]
    pub row: ItemRow,
    /// Everything up to this seq is taken into account.
    pub at: Seq,
    /// Whether its content is current, whole.
    pub visible: bool,
    /// The reasons, in sentences.
    pub sentences: Vec<String>,
    /// The edge that hides it, if one does.
    pub edge: Option<ChainEdge>,
    /// All edges in which the item is the older one.
    pub edges_to_newer: Vec<ChainEdge>,
    /// All edges in which the item is the newer one.
    pub edges_to_older: Vec<ChainEdge>,
    /// The protection that keeps the rules from it now.
    pub protection: Option<Protection>,
    /// The event that tells of a change of the file it shows, made by no call.
    pub stale: Option<Seq>,
    /// Preset of the policy that was in force when the item was hidden, else of the one in force now.
    pub policy: String,
    /// How its content was sent to the model: one row for each change. Absent if no context was recorded as sent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub served: Vec<ServedRow>,
}

/// Longest name of a call in a headline, in characters: a command may be long.
const WHAT_LENGTH_MAX: usize = 100;
/// Longest title of a session there: the first prompt may stand for it.
const TITLE_LENGTH_MAX: usize = 60;

impl Explained {
    /// The item with its file or other key, its turn, and its session with its title, in a line.
    pub fn headline(&self, host: &str, title: Option<&str>) -> String {
        let row = &self.row;
        let what = match (&row.tool, row.keys.first()) {
            (Some(tool), Some(key)) => format!("{tool} {key}"),
            (Some(tool), None) => tool.clone(),
            (None, _) => kind_noun(row.kind).to_owned(),
        };
        let session =
            match title.map(|title| short(title, TITLE_LENGTH_MAX)).filter(|title| !title.is_empty()) {
                Some(title) => format!("\"{title}\" ({host} {})", row.session),
                None => format!("{host} {}", row.session),
            };
        format!("{}, turn {} of {session}", short(&what, WHAT_LENGTH_MAX), row.turn)
    }

    /// Whether a restore shows the item again.
    pub fn is_restorable(&self) -> bool {
        let row = &self.row;
        let by_acpdb = |cause| !matches!(cause, "erased" | "lost" | "cleared_by_host");
        row.in_context && !self.visible && row.cause.is_some_and(by_acpdb)
    }
}

/// A text in one line, and its beginning if it is long.
fn short(text: &str, most: usize) -> String {
    beginning(&one_line(text), most)
}

/// Explains an item; `None` if it was not recorded at the view's seq.
pub fn explain(view: &View, session: &str, ix: Ix) -> Option<Explained> {
    let at = view.at();
    let state = view.state();
    let explanation = state.explain(ix, at)?;
    let item = state.item(ix, at)?;
    let visible = state.visible(ix, at).is_some_and(|visibility| visibility.visible);
    let served = served_rows(state, ix, at);
    let is_sent = !state.served(at).is_empty();
    let mut sentences = sentences(state, &item, &explanation, (at, is_sent));
    let causes = [&explanation.output.cause, &explanation.input.cause];
    let erased = causes.into_iter().flatten().find_map(|cause| match cause {
        CauseView::Erased { seq } | CauseView::Lost { seq } => Some(*seq),
        _ => None,
    });
    // The record of the erasure has its author and reason; without the record the other sentences are as true.
    if let Some(erasure) = erased.and_then(|seq| view.erasure(seq).ok().flatten()) {
        let (by, reason) = (erasure.by, erasure.reason);
        sentences.push(if erasure.is_loss {
            format!("Lost: {reason}. A backup may have it, or its host's own file.")
        } else {
            format!("Erased by {by}: {reason}")
        });
    }
    // A context that was sent before an erasure says nothing of those to come.
    let is_since = |row: &ServedRow| erased.is_none_or(|seq| seq < row.seq);
    sentences.extend(served_sentence(&served).filter(|_| served.last().is_some_and(is_since)));
    let mut explained = Explained {
        row: ItemRow::of(state, &item, session, at),
        at,
        visible,
        sentences,
        edge: explanation.edge.as_ref().map(ChainEdge::from),
        edges_to_newer: explanation.superseded_by.iter().map(ChainEdge::from).collect(),
        edges_to_older: explanation.supersedes.iter().map(ChainEdge::from).collect(),
        protection: explanation.protection,
        stale: explanation.stale,
        policy: explanation.policy,
        served,
    };
    let words = spell(view, &mut [&mut explained.row]);
    explained.sentences.iter_mut().for_each(|sentence| words.put(sentence));
    let edges = explained.edge.iter_mut().chain(&mut explained.edges_to_newer);
    edges.chain(&mut explained.edges_to_older).for_each(|edge| words.put_key(edge));
    Some(explained)
}

/// `is_sent`: contexts of the session were recorded as sent, so that what is current is what the model is shown.
fn sentences(state: &State, item: &ItemView, why: &Explanation, (at, is_sent): (Seq, bool)) -> Vec<String> {
    let mut said = vec![standing(item, why, is_sent)];
    if let Some(cause) = &why.output.cause {
        said.push(match cause {
            // A summary that is longer than the text that it sums up is not shown, and one that was not sent stands nowhere.
            CauseView::Distilled { seq, .. } if !is_sent || why.output.state == FaceState::Whole => {
                format!("It was distilled in {seq}.")
            }
            cause => cause_sentence(state, cause, why, at),
        });
        if why.output.state == FaceState::Whole {
            said.push("It is shown whole all the same: what would stand in its place is longer.".to_owned());
        }
    }
    if let Some(cause) = why.input.cause.as_ref().filter(|_| why.input.cause != why.output.cause) {
        said.push(format!("Of its parameters: {}", lower_first(&cause_sentence(state, cause, why, at))));
    }
    let further = why.superseded_by.iter().filter(|edge| !edge.released && why.edge.as_ref() != Some(*edge));
    for edge in further {
        let by = edge.new.map_or_else(|| format!("the event {}", edge.seq), |new| describe(state, new, at));
        said.push(format!("Besides, {by} supersedes it (rule {}).", edge.rule.label()));
    }
    for edge in why.superseded_by.iter().filter(|edge| edge.released) {
        let by = edge.new.map_or_else(|| format!("the event {}", edge.seq), |new| describe(state, new, at));
        said.push(format!(
            "It was superseded by {by} (rule {}) and shown again on request.",
            edge.rule.label()
        ));
    }
    if !why.supersedes.is_empty() {
        let freed: u64 = why.supersedes.iter().map(|edge| edge.tokens_freed).sum();
        let older: Vec<String> = why
            .supersedes
            .iter()
            .take(6)
            .map(|edge| format!("{} ({})", edge.old, edge.rule.label()))
            .collect();
        // At most six are named above.
        let more = why.supersedes.len().saturating_sub(6);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let freed = if freed > 0 { format!(", which frees about {freed} tokens") } else { String::new() };
        said.push(format!("It supersedes {}{more}{freed}.", older.join(", ")));
    }
    said.extend(why.protection.and_then(|protection| protected(state, item, protection, why, at)));
    if let Some(seq) = why.stale {
        said.push(format!(
            "The file it shows was changed outside of any call in {seq}: what it says may be stale."
        ));
    }
    if !is_sent {
        said.extend(host_sentence(state, why, at));
    }
    said
}

/// Whether acpdb alone would show an item otherwise than its host: by a rule or a request, and not because the host did it.
const fn is_by_acpdb(cause: Option<&CauseView>) -> bool {
    matches!(
        cause,
        Some(
            CauseView::Superseded { .. }
                | CauseView::Shortened { .. }
                | CauseView::Discarded { .. }
                | CauseView::Distilled { .. }
                | CauseView::Evicted { .. }
        )
    )
}

/// The first sentence: how the item stands.
fn standing(item: &ItemView, why: &Explanation, is_sent: bool) -> String {
    let name = match &item.tool {
        Some(tool) => format!("{} ({tool}, turn {})", item.item, item.turn.get()),
        None => format!("{} ({}, turn {})", item.item, kind_noun(item.kind), item.turn.get()),
    };
    if !why.in_context {
        return format!("{name} is not part of the current context.");
    }
    // For most calls the result is hidden, and the parameters stay.
    let are_parameters_shown = matches!(why.input.state, FaceState::Whole | FaceState::Shortened);
    let name = match why.output.state {
        FaceState::Tombstone | FaceState::Summary | FaceState::Gone if are_parameters_shown => {
            format!("The result of {name}")
        }
        _ => name,
    };
    let hidden = match why.output.state {
        FaceState::Whole => "is in the current context, whole",
        // An item that acpdb has not sent yet is told in the conditional.
        FaceState::Shortened if !is_sent => "would be shortened",
        FaceState::Summary if !is_sent => "would be hidden behind a summary",
        FaceState::Tombstone if !is_sent && is_by_acpdb(why.output.cause.as_ref()) => {
            "would be hidden; a tombstone would stand in its place"
        }
        FaceState::Shortened => "is in the current context, shortened",
        FaceState::Summary => "is hidden behind a summary",
        FaceState::Tombstone => "is hidden; a tombstone stands in its place",
        FaceState::Gone => "is hidden; nothing stands in its place",
        FaceState::Absent => "is in the current context; it has no result yet",
    };
    let status = match why.status {
        Some(Status::Pending) => ". The call has not finished, so no rule touches it",
        Some(Status::Failed) => ". The call failed, so it supersedes nothing",
        Some(Status::Aborted) => ". The call was aborted, so it supersedes nothing",
        Some(Status::Completed) | None => "",
    };
    format!("{name} {hidden}{status}.")
}

const fn kind_noun(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Call => "call",
        ItemKind::Result => "result without a call",
        ItemKind::Text => "text",
        ItemKind::Reasoning => "reasoning",
        ItemKind::Media => "media",
        ItemKind::Opaque => "opaque part",
        ItemKind::Injected => "injected text",
    }
}

fn describe(state: &State, item: acpdb_engine::ids::ItemId, at: Seq) -> String {
    let found = state.find(item).and_then(|ix| state.item(ix, at));
    match found {
        Some(found) => match &found.tool {
            Some(tool) => format!("{item} ({tool}, turn {})", found.turn.get()),
            None => format!("{item} ({}, turn {})", kind_noun(found.kind), found.turn.get()),
        },
        None => item.to_string(),
    }
}

fn cause_sentence(state: &State, cause: &CauseView, why: &Explanation, at: Seq) -> String {
    match cause {
        CauseView::Erased { seq } | CauseView::Lost { seq } => format!("Its bytes are gone, as {seq} says."),
        CauseView::OffBranch { seq } => format!("A rewind in {seq} took it off the active branch."),
        CauseView::Left { seq } => {
            format!("It left the context in {seq}: the host replaced the context without it.")
        }
        CauseView::Abandoned { seq } => {
            format!("It left the context in {seq}: the host gave its message up.")
        }
        CauseView::ClearedByHost { seq, .. } => {
            format!("The host cleared it in {seq} and put a text of its own there.")
        }
        CauseView::Distilled { seq, .. } => {
            format!("It was distilled in {seq}: its summary stands in its place.")
        }
        CauseView::Evicted { seq, task, rolling: true } => {
            format!("It is an older output of the active task {task}, evicted in {seq}.")
        }
        CauseView::Evicted { seq, task, .. } => {
            format!("It was evicted in {seq} with its completed task {task}.")
        }
        CauseView::Discarded { seq, behind: Some(head) } => {
            format!(
                "It is in a range that was distilled in {seq}: the summary stands in the place of {head}."
            )
        }
        CauseView::Discarded { seq, behind: None } => format!("It was discarded on request in {seq}."),
        CauseView::Superseded { seq, turn, by, rule } => {
            let by = by.map_or_else(|| format!("the event {seq}"), |by| describe(state, by, at));
            let key = why.edge.as_ref().and_then(|edge| edge.key.as_ref());
            let key = key.map(|key| format!(" {key}")).unwrap_or_default();
            format!(
                "It was superseded by {by} in turn {}: {} (rule {}, policy {}).",
                turn.get(),
                rule.reason(&key),
                rule.label(),
                why.policy
            )
        }
        CauseView::Shortened { turn, rule, .. } => {
            let (label, what) = (rule.label(), rule.reason());
            let rested = why.rested.filter(|_| rule.is_idle()).map(|rested| {
                format!(", {} turns after the last touch in turn {}", rested.turns, rested.last_touch.get())
            });
            format!(
                "It was shortened in turn {}{}: {what} (rule {label}, policy {}).",
                turn.get(),
                rested.unwrap_or_default(),
                why.policy
            )
        }
    }
}

fn protected(
    state: &State,
    item: &ItemView,
    protection: Protection,
    why: &Explanation,
    at: Seq,
) -> Option<String> {
    let policy = state.policy(at);
    Some(match protection {
        Protection::Pinned if why.output.state == FaceState::Whole => {
            "It is pinned: no rule hides it.".to_owned()
        }
        Protection::Pinned => "It is pinned: no later rule changes it; a restore shows it.".to_owned(),
        Protection::File => "It names a protected file: no rule hides it.".to_owned(),
        Protection::Tool => {
            format!(
                "Its tool {} is protected by the policy: no rule hides it.",
                item.tool.as_deref().unwrap_or_default()
            )
        }
        // An edge that was made under protection says so by being there.
        Protection::Turn if why.edge.is_some() => return None,
        Protection::Turn => format!(
            "It is of one of the newest turns (now {}, policy {}): rules leave it alone for now.",
            state.turn(at).get(),
            policy.preset
        ),
    })
}

fn lower_first(text: &str) -> String {
    let mut characters = text.chars();
    let first = characters.next().map(char::to_lowercase);
    first.into_iter().flatten().chain(characters).collect()
}
