//! The loop: fold, and before each request decide which texts are sent, and count their price.
//!
//! ```text
//! slots  = faces in the order in which they came into the context: tokens as recorded, as current, as sent
//! event  -> fold -> changes -> slots.current            step -> point | plan | apply | count -> slots.sent
//! ```

mod pointing;
mod priced;
mod slot;
mod words;

use std::collections::HashMap;
use std::sync::Arc;

use acpdb_engine::event::{Actor, Face, Payload, PolicySet, Recorded, Stamp, ToolClass, TurnKind};
use acpdb_engine::fold::policy::{FlushRule, Prices, ServeMode, ServeSettings};
use acpdb_engine::fold::{FaceState, ItemKind, Ix, Policy, State, World};
use acpdb_engine::ids::{ItemId, Micros, Origin, Seq, StreamId};
use acpdb_serve::plan::{Advice, Bound, Cache, PlanCandidate, is_cold, plan};
use acpdb_serve::point::{PointLimits, SeenTexts};

use priced::RequestTokens;
use slot::{ContextSlot, rule_of};

use super::parts::{KIND_COUNT, kind_of};
use super::recording::{SessionRecording, is_written_by_model};
use super::{Missed, Setup, SimulatedRequest, SimulationResult, Traced, TracedRequest};
use crate::cost::float;

struct Simulation<'r> {
    recording: &'r SessionRecording,
    settings: ServeSettings,
    /// `None`: outputs have no pointers.
    point_limits: Option<PointLimits>,
    prices: Prices,
    slots: Vec<ContextSlot>,
    /// Tokens of all slots as sent.
    sent_tokens: u64,
    /// The same by the kind of the items.
    sent_of_kind: [u64; KIND_COUNT],
    /// Tokens of all sent slots as they were recorded, and the tokens of the last request if nothing were hidden.
    whole_tokens: u64,
    last_whole: u64,
    /// Number of slots at each step of this context: a step adds tokens beside its texts.
    steps: Vec<usize>,
    places: HashMap<(ItemId, Face), usize>,
    /// Slots that are not sent yet.
    new: Vec<usize>,
    /// Slots whose current form differs from the one applied.
    pending: Vec<usize>,
    /// Whether a pending change may be one that cannot wait; if false, none is.
    may_be_forced: bool,
    seen: SeenTexts,
    /// For each text seen: its slot.
    seen_slots: Vec<usize>,
    /// For each text seen: slots that point to it, and the tokens that each pointer saves.
    pointers: HashMap<usize, Vec<(usize, u64)>>,
    cache: Cache,
    responded_at: Option<Micros>,
    model: Option<String>,
    visible: Vec<u32>,
    /// The same for the lines that edits replace.
    visible_lines: Vec<u32>,
    hidden_by: HashMap<u32, usize>,
    /// Tokens that were fetched again, each with the turn in which they leave the context: they are outputs like others.
    fetched: Vec<(u32, u64)>,
    /// Turns that a fetched output stays: for ever, unless the policy hides old outputs.
    fetch_turns: u32,
    outcome: SimulationResult,
    /// The trace, if it is asked for; its last context is the one under way.
    traced: Option<Vec<Traced>>,
}

/// Simulates a session. Cost: O(its events and texts); nothing is recorded.
pub fn run(recording: &SessionRecording, setup: &Setup) -> SimulationResult {
    run_all(recording, std::slice::from_ref(setup)).pop().unwrap_or_default()
}

/// Simulates a session under many setups, each as [`run`] does. Setups of one policy share its fold: modes and prices change
/// nothing in the fold.
pub fn run_all(recording: &SessionRecording, setups: &[Setup]) -> Vec<SimulationResult> {
    let is_same = |one: &Setup, other: &Setup| match (&one.policy, &other.policy) {
        (Some(one), Some(other)) => Arc::ptr_eq(one, other),
        (None, None) => true,
        _ => false,
    };
    let mut outcomes: Vec<Option<SimulationResult>> = setups.iter().map(|_| None).collect();
    for (place, setup) in setups.iter().enumerate() {
        if outcomes.get(place).is_some_and(Option::is_some) {
            continue;
        }
        let group: Vec<(usize, &Setup)> =
            setups.iter().enumerate().filter(|(_, other)| is_same(setup, other)).collect();
        let members: Vec<&Setup> = group.iter().map(|(_, setup)| *setup).collect();
        for ((place, _), (outcome, _)) in group.iter().zip(play(recording, &members, None)) {
            if let Some(known) = outcomes.get_mut(*place) {
                *known = Some(outcome);
            }
        }
    }
    outcomes.into_iter().flatten().collect()
}

/// The session with nothing hidden. From here on its cache gives as much as it did when the session was recorded.
pub fn nothing_as_recorded(recording: &mut SessionRecording, prices: Prices) -> SimulationResult {
    let setup = Setup::nothing(Some(prices));
    let always = run(recording, &setup);
    recording.answer_as_recorded(&always);
    run(recording, &setup)
}

/// Simulates a session, and returns its trace too.
pub fn trace(recording: &SessionRecording, setup: &Setup) -> (SimulationResult, Vec<Traced>) {
    let first = Traced { prefix_tokens: recording.prefix_tokens, ..Traced::default() };
    let (outcome, traced) = play(recording, &[setup], Some(vec![first])).pop().unwrap_or_default();
    (outcome, traced.unwrap_or_default())
}

/// Folds a session once, under the policy that all `setups` have; the first of them is traced.
fn play(
    recording: &SessionRecording,
    setups: &[&Setup],
    mut traced: Option<Vec<Traced>>,
) -> Vec<(SimulationResult, Option<Vec<Traced>>)> {
    let mut world = World::default();
    let policy = setups.first().and_then(|setup| setup.policy.clone());
    if let Some(policy) = &policy {
        world.apply(&policy_set(policy));
    }
    let mut simulations: Vec<(&Setup, Simulation<'_>)> =
        setups.iter().map(|setup| (*setup, Simulation::of(recording, traced.take()))).collect();
    for recorded in &recording.events {
        if policy.is_some() && matches!(recorded.event.payload, Payload::PolicySet(_)) {
            continue;
        }
        let changed = world.apply(recorded).to_vec();
        let own = world.stream(recorded.event.stream);
        let mut faces: Vec<(ItemId, Face)> =
            changed.iter().filter_map(|(ix, face)| Some((own?.item_id(*ix)?, *face))).collect();
        let Some(state) = world.stream(recording.stream) else { continue };
        faces.sort_unstable_by_key(|(item, face)| (*item, *face));
        for (setup, simulation) in &mut simulations {
            simulation.meet(state, setup, recorded, &faces);
        }
    }
    simulations.into_iter().map(|(_, simulation)| (simulation.outcome, simulation.traced)).collect()
}

/// The policy as the first event of all.
fn policy_set(policy: &Policy) -> Recorded {
    let payload = PolicySet { policy: policy.to_json(), reason: None }.into();
    let event = acpdb_engine::event::Event {
        stream: StreamId::STORE,
        origin: Origin::ZERO,
        host_time: None,
        stamp: Stamp::default(),
        payload,
    };
    Recorded { seq: Seq::ZERO, recorded_at: Micros(0), event }
}

fn signed(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

impl<'r> Simulation<'r> {
    fn of(recording: &'r SessionRecording, traced: Option<Vec<Traced>>) -> Self {
        Self {
            recording,
            settings: ServeSettings::default(),
            point_limits: None,
            prices: Prices::default(),
            slots: Vec::new(),
            sent_tokens: 0,
            sent_of_kind: [0; KIND_COUNT],
            whole_tokens: 0,
            last_whole: 0,
            steps: Vec::new(),
            places: HashMap::new(),
            new: Vec::new(),
            pending: Vec::new(),
            may_be_forced: false,
            seen: SeenTexts::default(),
            seen_slots: Vec::new(),
            pointers: HashMap::new(),
            cache: Cache { cold: true, prefix_tokens: recording.prefix_tokens, ..Cache::default() },
            responded_at: None,
            model: None,
            visible: vec![0; recording.word_count()],
            visible_lines: vec![0; recording.line_count],
            hidden_by: HashMap::new(),
            fetched: Vec::new(),
            fetch_turns: u32::MAX,
            outcome: SimulationResult::default(),
            traced,
        }
    }

    /// Takes an event that was folded, and the faces that look different by it.
    fn meet(&mut self, state: &State, setup: &Setup, recorded: &Recorded, faces: &[(ItemId, Face)]) {
        if matches!(recorded.event.payload, Payload::Erased(_)) {
            self.look_again(state, recorded.seq);
        }
        if recorded.event.stream != self.recording.stream {
            return;
        }
        match &recorded.event.payload {
            Payload::ContextReplaced(_) | Payload::Rewound(_) | Payload::Forked(_) => {
                self.begin_anew(state, recorded.seq);
            }
            _ => {
                for (item, face) in faces {
                    self.change(state, *item, *face, recorded.seq);
                }
            }
        }
        match &recorded.event.payload {
            Payload::TurnStarted(turn) if turn.kind == TurnKind::Prompt => {
                self.cache.is_after_prompt = true;
            }
            Payload::TurnStarted(turn) if turn.kind == TurnKind::Step => {
                let now = SessionRecording::time(recorded);
                let model = self.recording.models.get(&turn.key).cloned();
                self.settle(state, setup, recorded.seq);
                self.request(state.turn(recorded.seq).get(), now, model);
                self.responded_at = now.or(self.responded_at);
            }
            _ if recorded.event.stamp.actor == Actor::Assistant => {
                let time = SessionRecording::time(recorded);
                self.responded_at = self.responded_at.max(time);
            }
            _ => {}
        }
    }

    /// The trace of the context under way.
    fn traced(&mut self) -> Option<&mut Traced> {
        self.traced.as_mut()?.last_mut()
    }

    /// Mode and prices are the policy's, unless the setup has its own.
    fn settle(&mut self, state: &State, setup: &Setup, at: Seq) {
        self.settings = state.policy(at).serve;
        self.point_limits = PointLimits::of_policy(state.policy(at));
        self.settings.mode = setup.mode.unwrap_or(self.settings.mode);
        self.settings.price = setup.prices.unwrap_or(self.settings.price);
        self.prices = self.settings.price;
        self.fetch_turns = state.policy(at).other_turns().unwrap_or(u32::MAX);
    }

    /// Begins anew: the host put another context in place of this one.
    fn begin_anew(&mut self, state: &State, at: Seq) {
        self.slots.clear();
        self.sent_tokens = 0;
        self.sent_of_kind = [0; KIND_COUNT];
        self.whole_tokens = 0;
        self.last_whole = self.cache.prefix_tokens;
        self.steps.clear();
        self.may_be_forced = false;
        self.places.clear();
        self.new.clear();
        self.pending.clear();
        self.seen = SeenTexts::default();
        self.seen_slots.clear();
        self.pointers.clear();
        self.cache.bounds.clear();
        self.cache.last_tokens = self.cache.prefix_tokens;
        self.visible.fill(0);
        self.visible_lines.fill(0);
        self.hidden_by.clear();
        self.fetched.clear();
        let prefix_tokens = self.cache.prefix_tokens;
        if let Some(traced) = &mut self.traced {
            traced.push(Traced { prefix_tokens, ..Traced::default() });
        }
        for ix in state.current(at) {
            let Some(item) = state.item_id(ix) else { continue };
            for face in [Face::Input, Face::Output] {
                self.change(state, item, face, at);
            }
        }
    }

    /// Looks at all faces again: an event outside of the session touched it, an erasure.
    fn look_again(&mut self, state: &State, at: Seq) {
        let mut faces: Vec<(ItemId, Face)> = self.places.keys().copied().collect();
        faces.sort_unstable();
        for (item, face) in faces {
            self.change(state, item, face, at);
        }
    }

    /// Takes a face that looks different.
    fn change(&mut self, state: &State, item: ItemId, face: Face, at: Seq) {
        let Some(ix) = state.find(item) else { return };
        let view = state.face(ix, face, at);
        let in_context = state.is_in_context(ix, at);
        let whole = self.recording.as_model_counts(view.tokens);
        let current = if in_context { self.recording.as_model_counts(view.tokens_shown) } else { 0 };
        let left = if in_context { self.words_left(state, ix, face, at) } else { Vec::new() };
        let host = state.recorded_placeholder(ix, face, at).is_some();
        // Without any rule the model sees what its host shows.
        let unhidden = if host || !in_context { current } else { whole };
        if let Some(place) = self.places.get(&(item, face)).copied() {
            let Some(slot) = self.slots.get_mut(place) else { return };
            if host || !in_context || slot.whole != whole {
                slot.forced = true;
                slot.whole = whole;
            }
            if slot.is_sent {
                self.whole_tokens = (self.whole_tokens - slot.unhidden).saturating_add(unhidden);
            }
            slot.unhidden = unhidden;
            // The face is shown again on request. A placeholder that grows can wait.
            slot.forced |= current > slot.current && view.state == FaceState::Whole;
            self.may_be_forced |= slot.forced;
            if let Some(cause) = &view.cause {
                slot.rule.clear();
                slot.rule.push_str(rule_of(cause));
            }
            let is_told = slot.is_sent && slot.current != current;
            slot.current = current;
            slot.words_left = left;
            let differs = slot.current != slot.applied;
            if slot.is_sent && differs && !slot.is_pending {
                slot.is_pending = true;
                slot.waited = 0;
                self.pending.push(place);
            }
            if let Some(traced) = self.traced().filter(|_| is_told) {
                traced.conclude(place, current);
            }
            return;
        }
        if !in_context || view.state == FaceState::Absent {
            return;
        }
        let mut slot = Self::slot(
            state,
            ix,
            face,
            at,
            ContextSlot { whole, unhidden, current, ..ContextSlot::default() },
        );
        slot.name = Some((item, face));
        slot.words_left = left;
        slot.turn = state.turn(at).get();
        slot.rule = view.cause.as_ref().map_or_else(String::new, |cause| rule_of(cause).to_owned());
        let place = self.slots.len();
        self.slots.push(slot);
        self.places.insert((item, face), place);
        self.new.push(place);
    }

    fn slot(state: &State, ix: Ix, face: Face, at: Seq, mut slot: ContextSlot) -> ContextSlot {
        let Some(item) = state.item(ix, at) else { return slot };
        slot.run = (item.kind == ItemKind::Reasoning).then(|| state.prompt_count(item.item.seq).into());
        slot.written = is_written_by_model(item.role, item.kind, face);
        slot.kind = kind_of(&item, face);
        if face == Face::Input {
            slot.bodies = item.params.map(|params| (params, true)).into_iter().collect();
            slot.is_edit = item.class == Some(ToolClass::Edit);
        } else {
            slot.bodies = item.content.iter().map(|part| (part.body, false)).collect();
        }
        slot
    }

    /// Makes a request: decides which texts are sent, and counts their price.
    fn request(&mut self, turn: u32, now: Option<Micros>, model: Option<String>) {
        self.fetched.retain(|(until, _)| *until > turn);
        self.look_back(turn);
        let idle = self.responded_at.zip(now);
        let switched = self.model.is_some() && model.is_some() && self.model != model;
        self.cache.cold = self.outcome.requests.is_empty()
            || switched
            || idle.is_some_and(|(then, now)| is_cold(then, now, self.prices.ttl_seconds));
        self.model = model.or(self.model.take());
        if let (Some(last), Some(then)) = (self.cache.bounds.last_mut(), self.responded_at) {
            last.used_at = last.used_at.max(Some(then));
        }
        let (cut, forced) = self.cut(now);
        let before = self.sent_tokens;
        let applied = cut.is_some_and(|cut| self.apply(cut));
        // Texts that are shown again are more than before: then nothing was removed.
        let removed = before.saturating_sub(self.sent_tokens);
        let slots_before = self.slots.len() - self.new.len();
        self.send_new();
        for place in &self.pending {
            if let Some(slot) = self.slots.get_mut(*place) {
                slot.waited = slot.waited.saturating_add(1);
            }
        }
        let cut = cut.filter(|_| applied);
        let cold = self.cache.cold;
        if let Some(traced) = self.traced() {
            traced.requests.push(TracedRequest { at: now, cold, slots_before, forced, cut });
        }
        let besides = self.cache.prefix_tokens.saturating_add(self.step_tokens(self.steps.len()));
        let total = besides.saturating_add(self.sent_tokens);
        self.steps.push(self.slots.len());
        let readable = self.cache.kept_before(usize::MAX, now, self.prices.ttl_seconds).0;
        // Texts that left are not read, wherever they stood.
        let uncut = readable.saturating_sub(removed).min(total);
        let read = self.read(cut, now, total);
        let answer = self.recording.answers.get(self.outcome.requests.len()).copied().unwrap_or_default();
        let read = answer.read(read, total);
        let fetched = self.prices.read * float(self.fetched.iter().map(|(_, tokens)| tokens).sum());
        let cost = self.prices.of(total, read);
        let whole = besides.saturating_add(self.whole_tokens);
        let seen_before = if self.cache.cold { 0 } else { self.last_whole.min(whole) };
        self.cache.paid += cost;
        self.cache.paid_unhidden += self.prices.of(whole, answer.read(seen_before, whole));
        self.last_whole = whole;
        let uncut = if cut.is_some() { answer.read(uncut, total).max(read) } else { read };
        self.count_parts(RequestTokens { total, read, uncut });
        self.outcome.requests.push(SimulatedRequest {
            turn,
            tokens: total,
            read,
            rewritten: cut.is_some(),
            cold: self.cache.cold,
            price: cost,
            price_with_fetches: cost + fetched,
        });
        self.cache.bounds.push(Bound { position: self.slots.len(), tokens: total, used_at: now });
        self.cache.last_tokens = total;
        self.cache.is_after_prompt = false;
    }

    /// The tokens that so many steps add beside their texts.
    fn step_tokens(&self, steps: usize) -> u64 {
        u64::from(self.recording.sizes.step_tokens).saturating_mul(steps as u64)
    }

    /// Tokens read from the cache; bounds behind the cut are gone.
    fn read(&mut self, cut: Option<usize>, now: Option<Micros>, total: u64) -> u64 {
        if self.cache.cold {
            self.cache.bounds.clear();
            return 0;
        }
        let position = cut.unwrap_or(usize::MAX);
        let (mut read, bound) = self.cache.kept_before(position, now, self.prices.ttl_seconds);
        if let Some(bound) = bound.and_then(|bound| self.cache.bounds.get_mut(bound)) {
            bound.used_at = now;
        }
        if let Some(cut) = cut {
            if self.settings.mode == ServeMode::Eager {
                // The best case for it: a cache that is read to the very token where the change begins.
                let before = self.slots.get(..cut).unwrap_or_default();
                let before: u64 = before.iter().map(|slot| slot.sent).sum();
                let besides = self.step_tokens(self.steps.partition_point(|position| *position <= cut));
                read = read.max(self.cache.prefix_tokens.saturating_add(before).saturating_add(besides));
            }
            self.cache.bounds.retain(|bound| bound.position <= cut);
        }
        read.min(total)
    }

    /// The slot from which pending changes are applied, and the first slot whose change cannot wait.
    fn cut(&mut self, now: Option<Micros>) -> (Option<usize>, Option<usize>) {
        let cannot = match (self.settings.mode, self.settings.rule) {
            (ServeMode::AppendOnly, _) => true,
            (ServeMode::Batched, FlushRule::Cold) => !self.cache.cold,
            (ServeMode::Batched, FlushRule::Prompts) => !self.cache.cold && !self.cache.is_after_prompt,
            _ => false,
        };
        if cannot && !self.may_be_forced {
            return (None, None);
        }
        self.pending.sort_unstable();
        let runs = self.runs();
        let mut candidates: Vec<PlanCandidate> = Vec::new();
        let mut forced: Option<usize> = None;
        let all = self.settings.mode == ServeMode::Eager || self.cache.cold;
        for place in &self.pending {
            let Some(slot) = self.slots.get(*place) else { continue };
            if slot.forced {
                forced = forced.or(Some(*place));
            }
            // Below 0 if a summary is longer: the slot is a candidate only where it need not pay, as a step has it.
            let gain =
                signed(slot.sent).saturating_sub(signed(slot.current)).saturating_sub(self.taken_back(slot));
            if gain > 0 || all {
                let position = runs.get(&slot.run).copied().unwrap_or(*place);
                candidates.push(PlanCandidate { position, gain, waited: slot.waited });
            }
        }
        self.may_be_forced = forced.is_some();
        candidates.sort_by_key(|candidate| candidate.position);
        let planned = plan(&candidates, &self.cache, &self.settings, now);
        let planned = match planned.advice {
            Advice::Flush | Advice::FlushCold => planned.first_changed,
            Advice::Nothing | Advice::Wait => None,
        };
        let cut = match (planned, forced) {
            (Some(planned), Some(forced)) => Some(planned.min(forced)),
            (planned, forced) => planned.or(forced),
        };
        (cut, forced)
    }

    /// The first pending slot of each run of reasoning: the run goes whole.
    fn runs(&self) -> HashMap<Option<u64>, usize> {
        let mut runs = HashMap::new();
        for place in &self.pending {
            let run = self.slots.get(*place).and_then(|slot| slot.run);
            if run.is_some() {
                let first = runs.entry(run).or_insert(*place);
                *first = (*first).min(*place);
            }
        }
        runs
    }

    /// Applies pending changes from `cut` on; returns whether anything that was sent changed.
    fn apply(&mut self, cut: usize) -> bool {
        let mut changed = false;
        let mut left = Vec::new();
        let runs = self.runs();
        for place in std::mem::take(&mut self.pending) {
            let worth = self.slots.get(place).is_some_and(|slot| {
                let gain = signed(slot.sent) - signed(slot.current) - self.taken_back(slot);
                slot.forced || gain > 0 || slot.current > slot.sent
            });
            let first = self.slots.get(place).and_then(|slot| runs.get(&slot.run)).copied().unwrap_or(place);
            if first < cut || !worth {
                left.push(place);
                continue;
            }
            changed = true;
            let Some(slot) = self.slots.get_mut(place) else { continue };
            slot.is_pending = false;
            slot.forced = false;
            slot.applied = slot.current;
            let (current, hidden, seen) = (slot.current, slot.is_hidden(), slot.seen.clone());
            let runs = std::mem::take(&mut slot.runs);
            self.set_sent(place, current);
            for run in runs {
                if let Some(pointers) = self.pointers.get_mut(&run.source) {
                    pointers.retain(|(by, _)| *by != place);
                }
            }
            for number in seen {
                self.seen.set_shown(number, !hidden);
                if hidden {
                    // A pointer to this slot becomes text again.
                    for (by, saved) in self.pointers.remove(&number).unwrap_or_default() {
                        let Some(slot) = self.slots.get_mut(by) else { continue };
                        slot.runs.retain(|run| run.source != number);
                        let whole = slot.sent.saturating_add(saved);
                        self.set_sent(by, whole);
                    }
                }
            }
            self.show_words(place, !hidden);
        }
        self.pending = left;
        changed
    }

    /// Sends the new slots: hidden already, with pointers, or whole.
    fn send_new(&mut self) {
        for place in std::mem::take(&mut self.new) {
            let Some(slot) = self.slots.get_mut(place) else { continue };
            slot.is_sent = true;
            slot.is_pending = false;
            slot.forced = false;
            slot.applied = slot.current;
            let (current, hidden) = (slot.current, slot.is_hidden());
            self.whole_tokens = self.whole_tokens.saturating_add(slot.unhidden);
            self.set_sent(place, current);
            self.show_words(place, !hidden);
            if !hidden && let Some(limits) = self.point_limits {
                self.point(place, limits);
            }
            let sent = self.slots.get(place).map_or(0, |slot| slot.sent);
            if let Some(traced) = self.traced() {
                traced.bear(place, sent);
            }
        }
    }
}
