//! Finding items: by id, host's call id, hash, file, tool; turns and their tokens; edges and chains: the items that an item superseded, and
//! those that superseded it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::FaceState;
use crate::event::{Face, KeyKind};
use crate::fold::history::{Cause, CauseRow, EdgeRow, RuleKind, is_before};
use crate::fold::number::{Ix, NONE};
use crate::fold::rules::tool_lists;
use crate::fold::state::State;
use crate::ids::{ItemId, Micros, Seq, Signature, Turn};
use crate::text::paths::resolve;
use crate::text::{HashTarget, Label};

/// How a hash is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HashForm {
    /// As shown to agents: as long as it takes to be unique on the branch.
    #[default]
    Shown,
    /// The short form, which calls may share.
    Short,
}

/// Tokens of the context at the end of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct TurnTokens {
    /// The turn.
    pub turn: Turn,
    /// Its last seq; of the newest turn, that of the last event that changed the tokens.
    pub seq: Seq,
    /// The context as shown.
    pub shown: u64,
    /// The same faces as recorded.
    pub whole: u64,
    /// Everything recorded so far.
    pub recorded: u64,
}

impl State {
    /// Rewinds up to `at`: the event, and the last seq that stayed.
    pub fn rewinds(&self, at: Seq) -> &[(Seq, Seq)] {
        let count = self.rewinds.partition_point(|(seq, _)| *seq <= at);
        self.rewinds.get(..count).unwrap_or_default()
    }

    /// Whether an event is on a branch that a rewind up to `at` left.
    pub fn is_left(&self, seq: Seq, at: Seq) -> bool {
        self.rewinds(at).iter().any(|(rewind, kept)| *kept < seq && seq < *rewind)
    }

    /// The item with this id, if it is of this stream (or of the history that it shares as a fork).
    pub fn find(&self, id: ItemId) -> Option<Ix> {
        self.facts.find(id)
    }

    /// The items that an event recorded, in order of their parts.
    pub fn items_of_event(&self, seq: Seq) -> impl Iterator<Item = Ix> + use<> {
        let first = self.facts.items.partition_point(|item| item.id.seq < seq);
        let end = self.facts.items.partition_point(|item| item.id.seq <= seq);
        (crate::fold::number::index(first)..crate::fold::number::index(end)).map(Ix)
    }

    /// The id of an item.
    pub fn item_id(&self, ix: Ix) -> Option<ItemId> {
        self.facts.item(ix).map(|item| item.id)
    }

    /// Name of the tool of a call.
    pub fn tool(&self, ix: Ix) -> Option<Arc<str>> {
        self.facts.call(ix).map(|call| self.facts.names.shared(call.tool))
    }

    /// The host's id of a call.
    pub fn host_id(&self, ix: Ix) -> Option<Arc<str>> {
        self.facts.call(ix).map(|call| self.facts.names.shared(call.host_id))
    }

    /// The turn an item was recorded in.
    pub fn turn_of(&self, ix: Ix) -> Option<Turn> {
        self.facts.item(ix).map(|item| item.turn)
    }

    /// Calls with this host id, oldest first; host ids are not unique.
    pub fn calls_by_host_id(&self, call: &str, at: Seq) -> Vec<Ix> {
        let host_id = self.facts.names.find(call);
        host_id.map_or_else(Vec::new, |name| self.recorded(self.facts.calls_of_host(name), at))
    }

    /// Those of `calls` that were recorded up to `at`, oldest first; `calls` come newest first.
    fn recorded(&self, calls: impl Iterator<Item = Ix>, at: Seq) -> Vec<Ix> {
        let is_recorded = |ix: &Ix| self.facts.item(*ix).is_some_and(|item| item.id.seq <= at);
        let mut calls: Vec<Ix> = calls.filter(is_recorded).collect();
        calls.reverse();
        calls
    }

    /// The call that an event finished, at `at`. Cost: a step for each call of the same host id, back to that call.
    pub fn finished_by(&self, seq: Seq, at: Seq) -> Option<Ix> {
        let place = self.facts.finishes.partition_point(|finish| finish.seq < seq);
        let finish = self.facts.finishes.get(place).filter(|finish| finish.seq == seq)?;
        let is_older = |ix: &Ix| self.facts.item(*ix).is_some_and(|item| item.id.seq < seq);
        let mut calls = self.facts.calls_of_host(finish.host_id).filter(is_older);
        calls.find(|ix| self.history.answer(*ix, at) == Some(crate::fold::number::index(place)))
    }

    /// Calls that name a file, as given or as resolved, oldest first; `path` is resolved as the calls' paths were. Cost: O(calls).
    pub fn calls_by_file(&self, path: &str, at: Seq) -> Vec<Ix> {
        let cwd = self.info(at).and_then(|info| info.cwd.as_deref());
        let spelled = [path.to_owned(), resolve(path, None), resolve(path, cwd)];
        let known = spelled.iter().filter_map(|path| self.facts.find_key(KeyKind::File, path));
        let known: Vec<_> = known.collect();
        if known.is_empty() {
            return Vec::new();
        }
        self.items(at)
            .filter(|ix| {
                let Some(call) = self.facts.call(*ix) else { return false };
                let keys = self.facts.keys_of(call).iter();
                keys.flat_map(|key| [key.id_given, key.id_resolved]).any(|id| known.contains(&id))
            })
            .collect()
    }

    /// The files that a call names, each as given and, if that is another text, as resolved. Other items name none.
    pub fn files(&self, ix: Ix) -> Vec<Arc<str>> {
        let Some(call) = self.facts.call(ix) else { return Vec::new() };
        let keys = self.facts.keys_of(call).iter().filter(|key| key.kind == KeyKind::File);
        let names = keys.flat_map(|key| [Some(key.given), key.resolved.filter(|path| *path != key.given)]);
        names.flatten().map(|name| self.facts.names.shared(name)).collect()
    }

    /// Calls of a tool, oldest first. Cost: O(calls).
    pub fn calls_by_tool(&self, tool: &str, at: Seq) -> Vec<Ix> {
        let Some(name) = self.facts.names.find(tool) else { return Vec::new() };
        self.items(at).filter(|ix| self.facts.call(*ix).is_some_and(|call| call.tool == name)).collect()
    }

    /// The hash by which an agent names a call at `at`; `None` for protected tools and for an item that is no call.
    pub fn hash(&self, ix: Ix, at: Seq, form: HashForm) -> Option<String> {
        let call = self.facts.call(ix)?;
        let policy = self.policy(at);
        let tool = self.facts.names.text(call.tool);
        if tool_lists(policy, tool).protected {
            return None;
        }
        Some(self.hash_text(ix, at, form))
    }

    /// The hash of a call, protected or not.
    pub(crate) fn hash_text(&self, ix: Ix, at: Seq, form: HashForm) -> String {
        let Some(call) = self.facts.call(ix) else { return String::new() };
        let label = Label::from_bits(self.facts.names.text(call.tool), call.label);
        let bare = self.policy(at).bare_hashes();
        let place = if bare { (None, label.bits()) } else { (Some(label.letter()), label.bits() >> 4) };
        let digits = match form {
            HashForm::Short => 0,
            HashForm::Shown => self.digits_shown(place, call.compared[0], at),
        };
        let signature = self.facts.signature_of(call);
        if bare {
            let mut text = label.hex6();
            text.extend(signature.to_hex().chars().take(digits));
            return text;
        }
        if digits == 0 { label.short() } else { label.lengthened(&signature, digits) }
    }

    /// How many digits of a signature make it unique at `at` among those that came before it under a label: none for the first.
    /// The branch alone decides which came first; a call off the branch comes after all that are on it.
    fn digits_shown(&self, place: (Option<char>, u32), number: u32, at: Seq) -> usize {
        let under = self.facts.signatures_under(place.0, place.1);
        if under.len() < 2 {
            return 0;
        }
        let order = |number: u32| self.first_on_branch(&self.recorded(self.facts.calls_with(number), at), at);
        let (mine, own) = (order(number), self.facts.signature_numbered(number));
        let earlier = under.iter().filter(|other| **other != number && order(**other) < mine);
        earlier
            .map(|other| shared_digits(&self.facts.signature_numbered(*other), &own) + 1)
            .max()
            .unwrap_or(0)
    }

    /// The place of a signature in the order of the branch: that of its first call on it. Signatures without one come last, and
    /// those without any call after them.
    fn first_on_branch(&self, calls: &[Ix], at: Seq) -> (bool, bool, Option<Ix>) {
        let on_branch = calls.iter().find(|ix| !self.is_off_branch(**ix, at));
        let first = on_branch.or(calls.first());
        (first.is_none(), on_branch.is_none(), first.copied())
    }

    /// Calls that a hash names at `at`, grouped by signature, each group oldest first. Groups come in the order of their
    /// first call on the branch; those without any come last.
    pub fn calls_by_hash(&self, target: &HashTarget, at: Seq) -> Vec<Vec<Ix>> {
        let text = target.label_text();
        let (letter, digits) = match text.split_once('_') {
            Some((letter, digits)) => (letter.chars().next(), digits),
            None => (None, text.as_str()),
        };
        let Ok(bits) = u32::from_str_radix(digits, 16) else { return Vec::new() };
        let mut groups = Vec::new();
        for number in self.facts.signatures_under(letter, bits) {
            let calls = self.recorded(self.facts.calls_with(number), at);
            let named = calls.first().and_then(|ix| self.facts.call(*ix)).is_some_and(|call| {
                let label = Label::from_bits(self.facts.names.text(call.tool), call.label);
                target.names(label, &self.facts.signature_of(call))
            });
            if named {
                groups.push(calls);
            }
        }
        groups.sort_by_key(|calls| self.first_on_branch(calls, at));
        groups
    }

    /// The calls that are shown with a hash now, by signature; if there are none, all whose hash begins with it. Two signatures may
    /// read alike in their first digits: the one that was shown so is the one that is meant.
    pub(crate) fn calls_shown_as(&self, hash: &HashTarget, text: &str) -> Vec<Vec<Ix>> {
        let mut groups = self.calls_by_hash(hash, Seq::MAX);
        let text = text.trim().to_lowercase();
        let is_shown = |ix: &Ix| {
            !self.is_off_branch(*ix, Seq::MAX)
                && self.hash(*ix, Seq::MAX, HashForm::Shown).as_deref() == Some(text.as_str())
        };
        let is_it = |calls: &Vec<Ix>| calls.iter().any(is_shown);
        if groups.len() > 1 && groups.iter().any(is_it) {
            groups.retain(is_it);
        }
        groups
    }

    /// Whether a call's tool is protected by the policy in force now.
    pub fn is_protected_tool(&self, ix: Ix) -> bool {
        self.facts.call(ix).is_some() && tool_lists(self.policy(Seq::MAX), self.facts.tool(ix)).protected
    }

    /// Whether a call had a hash when it was recorded: its tool was not protected then.
    pub(crate) fn had_hash(&self, ix: Ix) -> bool {
        let Some(item) = self.facts.item(ix) else { return false };
        !tool_lists(self.policy(item.id.seq), self.facts.tool(ix)).protected
    }

    /// Whether an agent knows a call's hash now: it is not under turn protection.
    pub(crate) fn has_hash(&self, ix: Ix) -> bool {
        let Some(item) = self.facts.item(ix) else { return false };
        self.turn(Seq::MAX).since(item.turn) >= self.policy(Seq::MAX).turn_protection.age_min()
    }

    /// Items that acts with this pattern hid and still hide, in the order of the acts. Cost: O(acts).
    pub(crate) fn hidden_by_pattern(&self, pattern: Signature, at: Seq) -> Vec<Ix> {
        let mut found = Vec::new();
        for (number, act) in (0..).zip(&self.facts.rare.acts) {
            for (place, hidden) in (0..).zip(&act.items).filter(|(_, hidden)| hidden.pattern == Some(pattern))
            {
                let Some(ix) = self.facts.find(hidden.item) else { continue };
                let by_act = |row: &CauseRow| match row.cause {
                    Cause::Discarded { act, at } | Cause::Distilled { act, at } => {
                        act == number && at == place
                    }
                    _ => false,
                };
                if self.history.rows_of(ix).any(|row| by_act(&row) && row.holds(at)) {
                    found.push(ix);
                }
            }
        }
        found
    }

    /// Whether any call of the stream has the hash's label.
    pub fn knows_hash(&self, target: &HashTarget) -> bool {
        let text = target.label_text();
        let (letter, digits) = match text.split_once('_') {
            Some((letter, digits)) => (letter.chars().next(), digits),
            None => (None, text.as_str()),
        };
        u32::from_str_radix(digits, 16).is_ok_and(|bits| self.facts.knows_label(letter, bits))
    }

    /// The last seq of the stream that belongs to a turn; `None` if the turn has not begun.
    pub fn turn_end(&self, turn: Turn) -> Option<Seq> {
        let next = self.history.turns.iter().position(|(_, number)| *number > turn);
        if self.history.turns.iter().all(|(_, number)| *number < turn) && turn != Turn(0) {
            return None;
        }
        Some(match next.and_then(|next| self.history.turns.get(next)) {
            Some((seq, _)) => seq.before(),
            None => self.head,
        })
    }

    /// The newest seq recorded at or before a moment; `None` if the stream is younger.
    pub fn seq_at(&self, moment: Micros) -> Option<Seq> {
        let count = self.times.partition_point(|(_, time)| *time <= moment);
        match self.times.get(count) {
            Some((next, _)) => count.checked_sub(1).map(|_| next.before()),
            None => (count > 0).then_some(self.head),
        }
    }

    /// Tokens at `at`: the context as shown, as recorded, and everything recorded.
    pub fn tokens(&self, at: Seq) -> TurnTokens {
        let total = self.history.total(at);
        TurnTokens {
            turn: self.turn(at),
            seq: at,
            shown: total.shown,
            whole: total.whole,
            recorded: total.recorded,
        }
    }

    /// Tokens at the end of each turn that has begun at `at`, in order. Cost: O(turns), each a binary search.
    pub fn tokens_by_turn(&self, at: Seq) -> Vec<TurnTokens> {
        let count = self.history.turns.partition_point(|(seq, _)| *seq <= at);
        let turns = self.history.turns.get(..count).unwrap_or_default();
        let mut series = Vec::with_capacity(turns.len());
        for (place, (start, turn)) in turns.iter().enumerate() {
            let end = match turns.get(place.saturating_add(1)) {
                Some((next, number)) if number != turn => next.before(),
                Some(_) => continue,
                // The turn's last change so far, not the head, which later events move.
                None => self.history.total(at).seq.max(*start),
            };
            series.push(TurnTokens { turn: *turn, ..self.tokens(end) });
        }
        series
    }
}

/// Most members of a chain that are gathered.
pub const CHAIN_MEMBER_COUNT_MAX: usize = 10_000;

/// An edge at a watermark.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct EdgeView {
    /// The older item.
    pub old: ItemId,
    /// The newer one; absent where an event without an item superseded.
    pub new: Option<ItemId>,
    /// The rule.
    pub rule: RuleKind,
    /// The key by which they met, as the newer one gave it.
    pub key: Option<Arc<str>>,
    /// The event with which the edge came about.
    pub seq: Seq,
    /// The turn in which it came about.
    pub turn: Turn,
    /// Shown again on request: the edge hides nothing any more.
    pub released: bool,
    /// Tokens by which it makes the context shorter, at the watermark.
    pub tokens_freed: u64,
}

/// An item in a chain.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct ChainMember {
    /// The item.
    pub item: ItemId,
    /// Its place in the order of recording.
    #[serde(skip)]
    pub ix: Ix,
    /// Its turn.
    pub turn: Turn,
    /// Name of the tool.
    pub tool: Option<Arc<str>>,
    /// The host's id of the call.
    pub call: Option<Arc<str>>,
    /// Its hash.
    pub hash: Option<String>,
    /// How its content is shown.
    pub state: FaceState,
}

/// Everything that is connected with an item by supersession.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// let chain = session.view()?.chain(item).ok_or("it is there")?;
/// assert_eq!(chain.members.len(), 1); // nothing superseded it yet
/// assert!(chain.edges.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct Chain {
    /// The item that was asked for.
    pub item: ItemId,
    /// Its members, oldest first, the item among them.
    pub members: Vec<ChainMember>,
    /// The edges between them, in the order in which they came about.
    pub edges: Vec<EdgeView>,
    /// There are more members than 10,000; the rest is left out.
    pub is_cut: bool,
}

/// Items that are connected, oldest first, and the numbers of the edges between them.
struct Linked {
    items: BTreeSet<Ix>,
    edges: BTreeSet<u32>,
    is_cut: bool,
}

impl State {
    /// The chain of an item at `at`: the items that it superseded, directly or through others, and those that superseded it.
    ///
    /// Cost: O(members and edges).
    pub fn chain(&self, ix: Ix, at: Seq) -> Option<Chain> {
        let item = self.facts.item(ix).filter(|item| item.id.seq <= at)?.id;
        let Linked { items, edges, is_cut } = self.linked(ix, at);
        let members = items.into_iter().filter_map(|ix| self.member(ix, at)).collect();
        let mut edges: Vec<EdgeRow> =
            edges.into_iter().filter_map(|number| self.history.edges.get(number)).collect();
        edges.sort_by_key(|edge| edge.rank);
        let edges = edges.iter().map(|edge| self.edge_view(edge, at)).collect();
        Some(Chain { item, members, edges, is_cut })
    }

    /// The items of the chain of an item at `at`, oldest first: as [`State::chain`], without their details. Empty if the item
    /// is not there yet.
    pub fn chain_items(&self, ix: Ix, at: Seq) -> Vec<Ix> {
        let is_there = self.facts.item(ix).is_some_and(|item| item.id.seq <= at);
        let found = is_there.then(|| self.linked(ix, at));
        found.into_iter().flat_map(|found| found.items).collect()
    }

    /// The items and edges that are connected with an item at `at`.
    fn linked(&self, ix: Ix, at: Seq) -> Linked {
        let mut found = BTreeSet::from([ix]);
        let mut numbers = BTreeSet::new();
        let mut is_cut = false;
        for back in [true, false] {
            let mut open = vec![ix];
            while let Some(member) = open.pop() {
                let edges: Vec<EdgeRow> = if back {
                    self.history.edges_of_new(member).collect()
                } else {
                    self.history.edges_of_old(member).collect()
                };
                for edge in edges.into_iter().filter(|edge| edge.exists(at)) {
                    let next = if back { edge.old.0 } else { edge.new };
                    if next != NONE && found.len() >= CHAIN_MEMBER_COUNT_MAX && !found.contains(&Ix(next)) {
                        is_cut = true;
                        continue;
                    }
                    numbers.insert(edge.number);
                    if next != NONE && found.insert(Ix(next)) {
                        open.push(Ix(next));
                    }
                }
            }
        }
        Linked { items: found, edges: numbers, is_cut }
    }

    fn member(&self, ix: Ix, at: Seq) -> Option<ChainMember> {
        let item = self.facts.item(ix)?;
        let call = self.facts.call(ix);
        Some(ChainMember {
            item: item.id,
            ix,
            turn: item.turn,
            tool: call.map(|call| self.facts.names.shared(call.tool)),
            call: call.map(|call| self.facts.names.shared(call.host_id)),
            hash: self.hash(ix, at, HashForm::Shown),
            state: self.face(ix, Face::Output, at).state,
        })
    }

    pub(crate) fn edge_view(&self, edge: &EdgeRow, at: Seq) -> EdgeView {
        let id = |ix: Ix| self.facts.item(ix).map(|item| item.id);
        let key = self.facts.keys.get(edge.key as usize).map(|key| self.facts.names.shared(key.given));
        EdgeView {
            old: id(edge.old).unwrap_or(ItemId::first(edge.seq)),
            new: id(Ix(edge.new)),
            rule: edge.kind,
            key,
            seq: edge.seq,
            turn: edge.turn,
            released: !is_before(at, edge.released),
            tokens_freed: self.freed_by(edge, at),
        }
    }

    /// Tokens that an edge frees: over the faces whose shown cause it is.
    fn freed_by(&self, edge: &EdgeRow, at: Seq) -> u64 {
        if !is_before(at, edge.released) {
            return 0;
        }
        let mut freed = 0_u64;
        for face in [Face::Input, Face::Output] {
            let is_cause = self.history.cause(edge.old, face, at).is_some_and(|row| match row.cause {
                crate::fold::history::Cause::Superseded { edge: number } => number == edge.number,
                _ => false,
            });
            if is_cause {
                let tokens = self.face_tokens(edge.old, face, at);
                // A placeholder that is longer than the text freed nothing.
                freed = freed.saturating_add(tokens.whole.saturating_sub(tokens.shown));
            }
        }
        freed
    }

    /// Edges between items that exist at `at`, released or not, in the order in which they came about.
    ///
    /// Reminders and reflections that a newer one replaced are not among them.
    pub(crate) fn edge_rows(&self, at: Seq) -> Vec<EdgeRow> {
        let mut rows: Vec<EdgeRow> = self
            .history
            .edges
            .iter()
            .filter(|edge| edge.exists(at) && edge.kind != RuleKind::INJECTED)
            .collect();
        rows.sort_by_key(|edge| edge.rank);
        rows
    }

    /// All edges that exist at `at`, released or not, in the order in which they came about.
    pub fn edges(&self, at: Seq) -> Vec<EdgeView> {
        self.edge_rows(at).iter().map(|edge| self.edge_view(edge, at)).collect()
    }

    /// Edges in which an item is the older one, in the order in which they came about.
    pub fn superseded_by(&self, ix: Ix, at: Seq) -> Vec<EdgeView> {
        self.in_order(self.history.edges_of_old(ix), at)
    }

    /// Edges in which an item is the newer one, in the order in which they came about.
    pub fn supersedes(&self, ix: Ix, at: Seq) -> Vec<EdgeView> {
        self.in_order(self.history.edges_of_new(ix), at)
    }

    fn in_order(&self, edges: impl Iterator<Item = EdgeRow>, at: Seq) -> Vec<EdgeView> {
        let mut rows: Vec<EdgeRow> = edges.filter(|edge| edge.exists(at)).collect();
        rows.sort_by_key(|edge| edge.rank);
        rows.iter().map(|edge| self.edge_view(edge, at)).collect()
    }
}

/// Leading hex digits that two signatures share.
fn shared_digits(a: &Signature, b: &Signature) -> usize {
    let (a, b) = (a.to_hex(), b.to_hex());
    a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count()
}
