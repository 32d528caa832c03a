//! Finding items: by id, host's call id, hash, file, tool; turns and their tokens.

use std::sync::Arc;

use crate::event::KeyKind;
use crate::fold::history::{Cause, CauseRow};
use crate::fold::number::{Ix, index};
use crate::fold::rules::tool_lists;
use crate::fold::stamped::until;
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
        until(&self.rewinds, at, |(seq, _)| *seq)
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
        (index(first)..index(end)).map(Ix)
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
        calls.find(|ix| self.history.answer(*ix, at) == Some(index(place)))
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
        let Some((letter, bits)) = target.label_bits() else { return Vec::new() };
        let mut groups = Vec::new();
        for number in self.facts.signatures_under(letter, bits) {
            let calls = self.recorded(self.facts.calls_with(*number), at);
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
        for (number, act) in (0..).zip(&self.facts.acts) {
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
        target
            .label_bits()
            .is_some_and(|(letter, bits)| !self.facts.signatures_under(letter, bits).is_empty())
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
        let turns = until(&self.history.turns, at, |(seq, _)| *seq);
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

/// Leading hex digits that two signatures share.
fn shared_digits(a: &Signature, b: &Signature) -> usize {
    let (a, b) = (a.to_hex(), b.to_hex());
    a.chars().zip(b.chars()).take_while(|(x, y)| x == y).count()
}
