//! Serving a host: a step, the context for it as bytes, and the record of both.
//!
//! ```text
//! Step::begin(key) -> context(options): injections due -> pending, cache, prices -> plan -> ContextRebased?
//!                                 -> budget: flush, shorten, or say what stands in the way
//!                                 -> render -> ContextServed { epoch, renderer, digest, tokens } -> bytes
//! ServedAgain::find(turn, renderers) -> the same bytes, their digest checked
//! ```
//!
//! The context to send is decided under the log's own condition: if another writer wrote to the session in between, it is
//! decided again. A digest that does not match is told and stops nothing.

use acpdb_engine::command::Rejection;
use acpdb_engine::command::draft::{Bodies, EventDraft};
use acpdb_engine::event::{Actor, ContextRebased, ContextServed, Face, RebaseCause};
use acpdb_engine::fold::policy::{Prices, ServeMode, ServeSettings};
use acpdb_engine::fold::{PendingItem, ServedPlace, State};
use acpdb_engine::ids::{BodyId, ItemId, Micros, Seq, StreamId, Turn};
use acpdb_engine::{At, Entry, Error, Session, Store, View};

use crate::breakpoints::breakpoints;
use crate::budget::{OverBudget, obstacles, shortening};
use crate::injections::inject;
use crate::plan::{Advice, Bound, Cache, FlushPlan, PlanCandidate, is_cold, plan};
use crate::served::{Renderer, Served};

/// How often a context is rendered anew because other processes erased texts meanwhile.
const RENDER_COUNT_MAX: u32 = 8;

/// Options for a context.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_serve::{PlainText, ServeOptions};
///
/// let options = ServeOptions { tokens_max: Some(20_000), ..ServeOptions::default() };
/// let context = acpdb_serve::Step::begin(&session, "step-2")?.context(&PlainText, &options)?;
/// assert!(context.over_budget.is_none());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ServeOptions {
    /// The mode; `None`: the policy's.
    pub mode: Option<ServeMode>,
    /// Most tokens of all items together; `None`: no limit.
    pub tokens_max: Option<u64>,
    /// The cache is cold for a reason that the log does not know: another model, another account.
    pub cold: bool,
    /// Tokens of system prompt and tools, which a rewrite of everything would still read.
    pub prefix_tokens: u64,
    /// Prices of tokens of the session's own model, relative to plain input, with the lifetime of its caches; `None`: the
    /// policy's.
    pub price: Option<Prices>,
    /// Record the due texts (reminder, reflection, memory) as injected, and send them.
    pub inject: bool,
}

/// A context that was recorded as sent.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_serve::{PlainText, ServeOptions};
///
/// let context = acpdb_serve::Step::begin(&session, "step-2")?.context(&PlainText, &ServeOptions::default())?;
/// println!("{} bytes, ~{} tokens, cached up to item {}", context.bytes.len(), context.tokens, context.first_changed);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Context {
    /// The bytes to send.
    pub bytes: Vec<u8>,
    /// Content that could not be carried, in words.
    pub notes: Vec<String>,
    /// The items behind the bytes.
    pub served: Served,
    /// The first item that differs from the context sent before: everything before it is in the provider's cache.
    pub first_changed: usize,
    /// Why earlier content was changed, if it was.
    pub rebased: Option<RebaseCause>,
    /// The planner's figures and advice.
    pub plan: FlushPlan,
    /// Estimated tokens of the items.
    pub tokens: u64,
    /// The budget, if it could not be kept.
    pub over_budget: Option<OverBudget>,
    /// The event that records it.
    pub seq: Seq,
}

/// A context of the past, made again.
#[derive(Debug)]
pub struct ServedAgain {
    /// The bytes, as they are made now.
    pub bytes: Vec<u8>,
    /// Its record in the log.
    pub record: ContextServed,
    /// The event.
    pub seq: Seq,
    /// Its turn.
    pub turn: Turn,
    /// Whether these are the very bytes that were recorded.
    pub is_same: bool,
}

/// A step of the model: a turn.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// use acpdb_serve::{PlainText, ServeOptions};
///
/// let step = acpdb_serve::Step::begin(&session, "step-2")?; // the same key again begins nothing new
/// let first = step.context(&PlainText, &ServeOptions::default())?;
/// let again = step.context(&PlainText, &ServeOptions::default())?;
/// assert_eq!(first.bytes, again.bytes);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Step {
    session: Session,
    key: String,
}

/// The changes, cost and savings of a flush of a session, under the policy in force. Records nothing. Cost: O(items).
///
/// # Errors
/// [`Error::NotFound`] if nothing was recorded yet.
pub fn plan_flush(session: &Session, options: &ServeOptions) -> Result<FlushPlan, Error> {
    Ok(situation(&session.view()?, options, session.store().now()).plan)
}

/// Applies all pending conclusions of a session from the next context on, at any cost. Durable when it returns. Returns the seq of
/// the rebase, or `None` if nothing is pending.
///
/// # Errors
/// As [`Store::append`].
pub fn flush(session: &Session) -> Result<Option<Seq>, Error> {
    let ((), seq) = session.decide(Actor::Host, &mut |view| {
        let is_pending = !view.pending().is_empty();
        let drafts = is_pending.then(|| rebase(view, RebaseCause::Asked, Vec::new()));
        Ok((drafts.into_iter().collect(), ()))
    })?;
    Ok(seq)
}

impl Context {
    /// Where a provider's cache is worth a mark: after so many items each, first to last; at most three, and the end of the
    /// prefix is a fourth one.
    ///
    /// The marks are the end of this context, the end of the context before it, and, if a sent text has changed, the last
    /// end of a turn before the change. A provider that looks back by a number of blocks finds each at its very place.
    pub fn breakpoints(&self) -> Vec<usize> {
        let turns = self.served.items().iter().map(|item| item.view.turn);
        breakpoints(&turns.collect::<Vec<_>>(), self.first_changed)
    }
}

impl Step {
    /// Begins a step of the model. Asking again with the same key begins nothing new. Durable when it returns.
    ///
    /// # Errors
    /// As [`Store::append`].
    pub fn begin(session: &Session, key: impl Into<String>) -> Result<Self, Error> {
        let key = key.into();
        let _ = session.append([Entry::step(key.as_str()).origin(format!("turn:{key}"))])?; // Named by its key.
        Ok(Self::begun(session, key))
    }

    /// A step whose beginning the host's own recording tells: nothing is recorded for it. `key` names it where the context is
    /// recorded as sent.
    pub fn begun(session: &Session, key: impl Into<String>) -> Self {
        Self { session: session.clone(), key: key.into() }
    }

    /// The session.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// The context for this step, as bytes, recorded as sent. Durable when it returns.
    ///
    /// Between two rebases each context begins with the one before it. Cost: O(items), and the bodies of those shown.
    ///
    /// # Errors
    /// As [`Store::append`]; and the errors of the renderer, with nothing recorded as sent.
    #[cfg_attr(
        feature = "tracing",
        tracing::instrument(name = "acpdb.context", level = "debug", skip_all, err(level = "debug"))
    )]
    pub fn context(&self, renderer: &dyn Renderer, options: &ServeOptions) -> Result<Context, Error> {
        let session = &self.session;
        let store = session.store();
        store.sync()?;
        if options.inject {
            inject(session)?;
        }
        let ((plan, mut rebased), _) = session.decide(Actor::Policy, &mut |view| {
            let now = situation(view, options, store.now());
            let (why, items) = now.rebase();
            let drafts: Vec<EventDraft> = why.map(|why| rebase(view, why, items)).into_iter().collect();
            Ok((drafts, (now.plan, why)))
        })?;
        let mut over_budget = None;
        if let Some(tokens_max) = options.tokens_max {
            let (shortened, over) = self.keep_to(tokens_max)?;
            rebased = rebased.or(shortened.then_some(RebaseCause::Budget));
            over_budget = over;
        }
        let (made, seq) = session.decide(Actor::Host, &mut |view| {
            let mut tries = 0;
            let mut view = view.clone();
            let (served, first_changed, rendered) = loop {
                let served = Served::to_send(&view);
                tries += 1;
                match renderer.render(&served) {
                    // Another process erased a text since the view was made: the next view has a placeholder there.
                    Err(Error::Erased { .. }) if tries < RENDER_COUNT_MAX => view = session.view()?,
                    rendered => break (served, first_changed(&view), rendered?),
                }
            };
            let tokens = served.tokens();
            let record = ContextServed {
                step: store.cleaned(&self.key),
                epoch: served.epoch(),
                renderer: renderer.version(),
                digest: store.served_digest(&rendered.bytes),
                tokens,
                format: renderer.format().to_owned(),
            };
            let drafts = vec![EventDraft::of(record, Bodies::default())];
            Ok((drafts, (served, rendered, first_changed, tokens)))
        })?;
        let (served, rendered, first_changed, tokens) = made;
        let seq = seq.unwrap_or_default(); // Nothing was recorded.
        Ok(Context {
            bytes: rendered.bytes,
            notes: rendered.notes,
            served,
            first_changed,
            rebased,
            plan,
            tokens,
            over_budget,
            seq,
        })
    }

    /// Brings the context within a budget: applies pending conclusions, then hides the oldest outputs that may be hidden.
    fn keep_to(&self, tokens_max: u64) -> Result<(bool, Option<OverBudget>), Error> {
        let ((), seq) = self.session.decide(Actor::Policy, &mut |view| {
            let mut drafts = Vec::new();
            if exceeds(view, tokens_max).is_some() {
                let current = Served::eager(view).tokens();
                if current > tokens_max {
                    drafts.extend(shortening(view, current - tokens_max));
                }
                if !drafts.is_empty() || !view.pending().is_empty() {
                    drafts.push(rebase(view, RebaseCause::Budget, Vec::new()));
                }
            }
            Ok((drafts, ()))
        })?;
        let over = exceeds(&self.session.view()?, tokens_max).map(|served| OverBudget {
            tokens: served.tokens(),
            tokens_max,
            obstacles: obstacles(&served),
        });
        Ok((seq.is_some(), over))
    }
}

impl ServedAgain {
    /// A context that was sent, made again: the last one in a turn, at or before a seq, or of all.
    ///
    /// # Errors
    /// [`Error::NotFound`] if none was sent then; [`Error::Rejected`] naming the renderer if none of `renderers` has the
    /// format and version that the log names.
    pub fn find(
        store: &Store,
        stream: StreamId,
        at: &At,
        renderers: &[&dyn Renderer],
    ) -> Result<Self, Error> {
        let view = store.view(stream)?;
        let found = {
            let state = view.state();
            let mut served = state.served(view.at()).iter().rev();
            let found = served.find(|(seq, _)| match at {
                At::Head => true,
                At::Seq(at) => seq <= at,
                At::Turn(turn) => state.turn(*seq) == *turn,
            });
            found.map(|(seq, record)| (*seq, state.turn(*seq), record.clone()))
        };
        let Some((seq, turn, record)) = found else {
            let name = match at {
                At::Head => "of this session".to_owned(),
                At::Seq(seq) => format!("up to {seq}"),
                At::Turn(turn) => format!("of turn {turn}"),
            };
            return Err(Error::NotFound { what: "served context", name, nearest: None });
        };
        let of_format = |renderer: &&&dyn Renderer| renderer.format() == record.format;
        let exact = renderers.iter().filter(of_format).find(|it| it.version() == record.renderer);
        // Another version may make the same bytes; the digest tells.
        let other = renderers.iter().find(of_format);
        let lacking = || {
            Error::from(Rejection::Malformed(format!(
                "the context {seq} was made by version {} of the format `{}`, which this program does not have",
                record.renderer, record.format
            )))
        };
        let renderer = exact.or(other).ok_or_else(lacking)?;
        let bytes = renderer.render(&Served::to_send(&view.with_at(seq.before())))?.bytes;
        let is_same = store.served_digest(&bytes) == record.digest;
        if !is_same && exact.is_none() {
            return Err(lacking());
        }
        Ok(Self { bytes, record, seq, turn, is_same })
    }
}

/// The context to send, if it has more tokens than these. Pointers only shorten it: most contexts need no look at their texts.
fn exceeds(view: &View, tokens_max: u64) -> Option<Served> {
    let is_over = |served: &Served| served.tokens() > tokens_max;
    Some(Served::of(view)).filter(is_over).map(|_| Served::to_send(view)).filter(is_over)
}

fn rebase(view: &View, why: RebaseCause, items: Vec<ItemId>) -> EventDraft {
    let epoch = view.state().epoch(view.at()).saturating_add(1);
    EventDraft::of(ContextRebased { epoch, why, items }, Bodies::default())
}

/// Findings from before a context is made.
struct Situation {
    plan: FlushPlan,
    pending: Vec<PendingItem>,
    /// The first place at which the sent context cannot stand any more, and the item there: a request or the host changed it, or more
    /// of it has come.
    broken_at: Option<(usize, ItemId)>,
}

impl Situation {
    /// The cause of a rebase, and its items; no items: everything.
    fn rebase(&self) -> (Option<RebaseCause>, Vec<ItemId>) {
        let (why, planned) = match self.plan.advice {
            Advice::FlushCold => (Some(RebaseCause::Cold), self.plan.first_changed),
            Advice::Flush => (Some(RebaseCause::Pays), self.plan.first_changed),
            Advice::Nothing | Advice::Wait => (None, None),
        };
        let (why, from) = match (why, planned, self.broken_at) {
            (why, Some(planned), broken) => (why, broken.map_or(planned, |(broken, _)| broken.min(planned))),
            // The rest is written anew anyway: conclusions pending there ride along.
            (_, None, Some((broken, _))) => (Some(RebaseCause::Asked), broken),
            (_, None, None) => return (None, Vec::new()),
        };
        let mut applied: Vec<ItemId> =
            self.pending.iter().filter(|item| item.cut_at >= from).map(|item| item.item).collect();
        // Items are named one by one unless all are meant: an empty list means all.
        if applied.len() == self.pending.len() {
            return (why, Vec::new());
        }
        if applied.is_empty() {
            // All pending conclusions lie before the break and wait on: the named item has nothing pending.
            applied.extend(self.broken_at.map(|(_, item)| item));
        }
        (why, applied)
    }
}

fn situation(view: &View, options: &ServeOptions, now: Micros) -> Situation {
    let state = view.state();
    let at = view.at();
    let mut settings: ServeSettings = state.policy(at).serve;
    settings.mode = options.mode.unwrap_or(settings.mode);
    settings.price = options.price.unwrap_or(settings.price);
    let pending = state.pending(at);
    let places = state.served_places(at);
    let cache = cache(state, &places, options, &settings, at, now);
    let last = state.served(at).last().map_or(Seq::ZERO, |(seq, _)| *seq);
    let turn = state.turn(at);
    // An item that saves nothing never pays; it goes along if it need not pay.
    let all = settings.mode == ServeMode::Eager || cache.cold;
    let mut candidates: Vec<PlanCandidate> = pending
        .iter()
        .filter(|item| all || item.gain() > 0)
        .map(|item| {
            let since = state.turn(item.since);
            let waited = if item.since > last { 0 } else { turn.since(since) };
            PlanCandidate { position: item.cut_at, gain: item.gain(), waited }
        })
        .collect();
    candidates.sort_by_key(|candidate| candidate.position);
    let plan = plan(&candidates, &cache, &settings, Some(now));
    let broken_at = broken_at(state, &places, at);
    Situation { plan, pending, broken_at }
}

/// The provider's cache, as far as the log tells.
pub(crate) fn cache(
    state: &State,
    places: &[ServedPlace],
    options: &ServeOptions,
    settings: &ServeSettings,
    at: Seq,
    now: Micros,
) -> Cache {
    let price = settings.price;
    let prefix_tokens = options.prefix_tokens;
    let mut sums = vec![prefix_tokens];
    let mut sum = prefix_tokens;
    for place in places {
        for face in [Face::Input, Face::Output] {
            sum = sum.saturating_add(state.face(place.ix, face, place.at(face)).tokens_shown);
        }
        sums.push(sum);
    }
    let ids: Vec<ItemId> = places.iter().filter_map(|place| state.item_id(place.ix)).collect();
    let mut cache = Cache { prefix_tokens, ..Cache::default() };
    let mut account = Account { price, before: None, left_out: state.left_out(at) };
    let mut rebases = state.rebases(at).iter().peekable();
    for (seq, record) in state.served(at) {
        let is_rebased = rebases.peek().is_some_and(|rebase| rebase.seq < *seq);
        while let Some(rebase) = rebases.next_if(|rebase| rebase.seq < *seq) {
            let first = rebase.items.iter().filter_map(|item| ids.iter().position(|id| id == item)).min();
            cache.bounds.retain(|bound| first.is_some_and(|first| bound.position <= first));
        }
        let position = ids.iter().take_while(|id| id.seq <= *seq).count();
        let tokens = sums.get(position).copied().unwrap_or(sum);
        let kept = is_rebased.then(|| cache.kept_before(usize::MAX, None, price.ttl_seconds).0);
        account.add(&mut cache, (*seq, record.tokens), kept, state);
        cache.bounds.push(Bound { position, tokens, used_at: state.time_of(*seq) });
    }
    let last = cache.bounds.last();
    let idle = last.and_then(|bound| bound.used_at);
    // Another model, other tools or another system prompt: no cached text begins so.
    let is_prompt_new =
        state.served(at).last().is_some_and(|(seq, _)| state.prompts(*seq).len() < state.prompts(at).len());
    cache.cold = options.cold
        || is_prompt_new
        || last.is_none()
        || idle.is_some_and(|then| is_cold(then, now, price.ttl_seconds));
    cache.last_tokens = last.map_or(prefix_tokens, |bound| bound.tokens);
    let before = state.served(at).last().map_or(Seq::ZERO, |(seq, _)| *seq);
    cache.is_after_prompt = state.prompt_count(at) > state.prompt_count(before);
    cache
}

/// Adds up the price of the contexts that were served, and of the same ones if acpdb had hidden nothing.
struct Account {
    price: Prices,
    /// Tokens of the context before, as it was served and with nothing hidden, and when it was served.
    before: Option<(u64, u64, Option<Micros>)>,
    /// Tokens that the host took out itself, from each seq on: it would not have sent them in any case.
    left_out: Vec<(Seq, i64)>,
}

impl Account {
    /// Adds a context. `kept`: tokens before the first text that differs from the context before it; `None`: none differs.
    fn add(&mut self, cache: &mut Cache, (seq, tokens): (Seq, u64), kept: Option<u64>, state: &State) {
        let count = self.left_out.partition_point(|(since, _)| *since <= seq);
        let left_out =
            self.left_out.get(..count).and_then(|known| known.last()).map_or(0, |(_, tokens)| *tokens);
        // The host leaves out no more than there is.
        let whole = state.tokens(seq).whole.saturating_add_signed(left_out.saturating_neg());
        let sent = tokens.saturating_add(cache.prefix_tokens);
        let whole = whole.saturating_add(cache.prefix_tokens);
        let at = state.time_of(seq);
        let warm = self.before.filter(|(.., then)| {
            !then.zip(at).is_some_and(|(then, at)| is_cold(then, at, self.price.ttl_seconds))
        });
        let (read, read_whole) = warm.map_or((0, 0), |(sent, whole, _)| (kept.unwrap_or(sent), whole));
        cache.paid += self.price.of(sent, read);
        cache.paid_unhidden += self.price.of(whole, read_whole);
        self.before = Some((sent, whole, at));
    }
}

/// The first place at which the context that was sent last is not the beginning of this one.
fn broken_at(state: &State, places: &[ServedPlace], at: Seq) -> Option<(usize, ItemId)> {
    let (last, _) = state.served(at).last()?;
    // A context that was rebased since is known to differ.
    if state.rebases(at).last().is_some_and(|rebase| rebase.seq > *last) {
        return None;
    }
    let before = state.served_places(*last);
    let same = before.iter().zip(places).take_while(|(one, other)| is_same(state, one, other)).count();
    Some((same, state.item_id(before.get(same)?.ix)?))
}

fn is_same(state: &State, one: &ServedPlace, other: &ServedPlace) -> bool {
    let looks = |place: &ServedPlace, face: Face| {
        let view = state.face(place.ix, face, place.at(face));
        (view.state, view.tokens_shown, view.bytes, view.cause)
    };
    // A revision may be as long as the text that it revises.
    let texts = |place: &ServedPlace| -> Vec<BodyId> {
        let params = state.params(place.ix, place.input_at);
        let content = state.content(place.ix, place.output_at);
        params.into_iter().chain(content.iter().map(|part| part.body)).collect()
    };
    if one == other {
        return true;
    }
    one.ix == other.ix
        && (one.at(Face::Input) == other.at(Face::Input)
            || looks(one, Face::Input) == looks(other, Face::Input))
        && (one.output_at == other.output_at || looks(one, Face::Output) == looks(other, Face::Output))
        && texts(one) == texts(other)
}

/// The first item that differs from the context sent before.
fn first_changed(view: &View) -> usize {
    let state = view.state();
    let at = view.at();
    let Some((last, _)) = state.served(at).last() else { return 0 };
    let (before, now) = (state.served_places(*last), state.served_places(at));
    before.iter().zip(&now).take_while(|(one, other)| is_same(state, one, other)).count()
}
