//! A session of a page: its items and how they stood when, the tokens and times of its turns, and the reports of its provider.
//!
//! ```text
//! events -> times, marks, requests | fold -> items, turning points, edges | both -> one `SessionPage`
//! ```
//!
//! It writes nothing but texts, which are shared by all sessions of a page.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use acpdb_engine::event::{Face, MessageFinished, PartKind, Payload, Recorded, Role, SUM_TIER, Usage};
use acpdb_engine::fold::{CauseView, FaceState, FaceView, ItemKind, ItemView, Ix, State, Status};
use acpdb_engine::ids::{ItemId, Micros, Seq, StreamId};
use acpdb_engine::text::ProjectMoves;
use acpdb_engine::{Store, View};

use super::page_data::{
    HiddenData, ItemData, PageWords, PointData, RequestData, SessionData, SessionPage, place,
};
use super::redaction::Redaction;
use super::texts::{TextNumber, TextWriter};
use super::{ExportError, page_past};
use crate::cost::{BilledRequest, PriceTable};
use crate::items::cause_label;
use crate::sound::or_lost;
use crate::titles::{beginning, one_line, prompt_in};

/// Longest title, in characters.
const TITLE_LENGTH_MAX: usize = 120;
/// Prompts that are looked at for a title.
const PROMPT_COUNT_MAX: usize = 6;

/// A session of a page in the making.
pub(super) struct Making<'v> {
    view: &'v View,
    data: SessionPage,
    words: PageWords,
    /// Items by id.
    places: HashMap<ItemId, u32>,
    redaction: Redaction,
    moves: Arc<ProjectMoves>,
    all: Vec<Ix>,
    /// The host's time of each event, if the host gave one.
    times: HashMap<Seq, Micros>,
}

impl<'v> Making<'v> {
    pub(super) fn new(store: &Store, view: &'v View, redaction: &Redaction) -> Result<Self, ExportError> {
        let mut words = PageWords::new(redaction.clone());
        let mut data = SessionPage::default();
        let mut events = SessionEvents::default();
        for recorded in crate::lineage::events(store, view.stream(), view.at())? {
            let recorded = recorded?;
            if let Some(text) = page_past::mark(&recorded.event.payload) {
                let kind = words.number(&recorded.event.payload.label().replace('_', " "));
                let turn = view.state().turn(recorded.seq).get();
                data.marks.push((recorded.seq.get(), turn, kind, redaction.of(&text).into_owned()));
            }
            events.take(recorded, view.stream());
        }
        // One session has one price, here and in every list.
        let billed = crate::cost::requests(store, view.at())?.all;
        let billed: Vec<BilledRequest> =
            billed.into_iter().filter(|request| request.stream == view.stream()).collect();
        let (all, places) = {
            let state = view.state();
            let all: Vec<Ix> = state.items(view.at()).collect();
            let ids = all.iter().map(|ix| state.item_id(*ix));
            let places: HashMap<ItemId, u32> =
                ids.zip(0..).filter_map(|(id, place)| Some((id?, place))).collect();
            data.turns = state
                .tokens_by_turn(view.at())
                .iter()
                .map(|turn| (turn.turn.get(), turn.seq.get(), turn.shown, turn.whole, turn.recorded))
                .collect();
            data.orders = events.orders.iter().map(|seq| order(state, *seq, &places)).collect();
            data.requests = events.requests(&billed, state, &mut words);
            let first = all.first().and_then(|ix| state.item(*ix, view.at()));
            data.session.began = first.map_or(0, |item| {
                events.times.get(&item.item.seq).copied().unwrap_or(item.recorded_at).get()
            });
            data.spans = events.spans(state, data.session.began);
            (all, places)
        };
        let (redaction, moves, times) = (redaction.clone(), store.project_moves()?, events.times);
        Ok(Self { view, data, words, places, redaction, moves, all, times })
    }

    /// The session with all its data, and its title.
    pub(super) fn whole(
        mut self,
        store: &Store,
        now: Micros,
        texts: &mut TextWriter<'_>,
    ) -> Result<SessionPage, ExportError> {
        let title = self.title()?;
        self.items(texts)?;
        self.data.todos = page_past::todo_data(self.view, texts, &mut self.words)?;
        self.data.memory = page_past::memory(store, self.view, now, texts, &mut self.words)?;
        self.rest(title);
        Ok(self.data)
    }

    fn item(&self, ix: Ix) -> Option<ItemView> {
        self.view.state().item(ix, self.view.at())
    }

    /// The session's title, else the user's first prompt.
    pub(super) fn title(&self) -> Result<String, ExportError> {
        let short = |title: &str| short(&self.redaction.of(title));
        let info = self.view.state().info(self.view.at()).cloned().unwrap_or_default();
        if let Some(title) = info.title {
            return Ok(short(&title));
        }
        let items = self.all.iter().filter_map(|ix| self.item(*ix));
        let prompts = items.filter(|item| item.role == Role::User && item.kind == ItemKind::Text);
        for item in prompts.take(PROMPT_COUNT_MAX) {
            let Some(part) = item.content.first() else { continue };
            // A lost text gives no title.
            let text = or_lost(self.view.text(part.body))?.ok();
            if let Some(prompt) = text.and_then(|text| prompt_in(&text)) {
                return Ok(short(&prompt));
            }
        }
        Ok(short(&info.name))
    }

    fn items(&mut self, texts: &mut TextWriter<'_>) -> Result<(), ExportError> {
        let all = std::mem::take(&mut self.all);
        for ix in &all {
            let Some(item) = self.item(*ix) else { continue };
            let time = self.times.get(&item.item.seq).copied().unwrap_or(item.recorded_at);
            let seconds = time.get().saturating_sub(self.data.session.began).div_euclid(1_000_000);
            let then = self.turning_points(&item);
            let tokens = (item.input.tokens, item.output.tokens);
            let (inputs, contents, points) = self.history(&then, tokens, texts)?;
            let data = ItemData(
                item.item.seq.get(),
                item.item.part,
                self.words.number(&page_past::word(&item.kind)),
                self.words.number(&page_past::word(&item.role)),
                item.turn.get(),
                seconds,
                place(item.tool.as_ref().map(|tool| self.words.number(tool))),
                place(item.keys.first().map(|key| self.words.number(&page_past::clip(key)))),
                item.hash.clone().unwrap_or_default(),
                item.call.as_ref().map(ToString::to_string).unwrap_or_default(),
                tokens,
                inputs,
                contents,
                points,
            );
            self.data.items.push(data);
        }
        self.all = all;
        Ok(())
    }

    /// An item as it stood, at each of its turning points.
    fn turning_points(&self, item: &ItemView) -> Vec<ItemSince> {
        let state = self.view.state();
        let points = state.turning_points(item.ix, self.view.at());
        if points.len() == 1 {
            // The item never changed.
            return vec![ItemSince { since: item.item.seq, item: item.clone() }];
        }
        let then = |since| Some(ItemSince { since, item: state.item(item.ix, since)? });
        points.into_iter().filter_map(then).collect()
    }

    /// The texts of an item and how it stood, at each of its turning points; `tokens` as recorded at the end.
    #[expect(clippy::type_complexity, reason = "three lists that belong to the row they go into")]
    fn history(
        &mut self,
        then: &[ItemSince],
        tokens: (u64, u64),
        texts: &mut TextWriter<'_>,
    ) -> Result<(Vec<(u64, TextNumber)>, Vec<(u64, Vec<TextNumber>)>, Vec<PointData>), ExportError> {
        let mut inputs: Vec<(u64, TextNumber)> = Vec::new();
        let mut contents: Vec<(u64, Vec<TextNumber>)> = Vec::new();
        let mut points: Vec<PointData> = Vec::new();
        for then in then {
            let seq = then.since.get();
            if let Some(params) = then.item.params {
                let text = texts.body(self.view, params)?;
                if inputs.last().is_none_or(|(_, last)| *last != text) {
                    inputs.push((seq, text));
                }
            }
            let mut content = Vec::new();
            for part in &then.item.content {
                content.push(if part.kind == PartKind::Media {
                    texts.media(self.view, part)?
                } else {
                    texts.body(self.view, part.body)?
                });
            }
            if contents.last().map_or(!content.is_empty(), |(_, last)| *last != content) {
                contents.push((seq, content));
            }
            let point = self.point(then, tokens, texts)?;
            let same = |last: &PointData| {
                (last.flags, last.input, last.output, &last.hidden)
                    == (point.flags, point.input, point.output, &point.hidden)
            };
            if !points.last().is_some_and(same) {
                points.push(point);
            }
        }
        Ok((inputs, contents, points))
    }

    /// How an item stood. Its tokens are told if they are not `tokens`: a rewind may have taken the result that it had.
    fn point(
        &mut self,
        then: &ItemSince,
        tokens: (u64, u64),
        texts: &mut TextWriter<'_>,
    ) -> Result<PointData, ExportError> {
        let item = &then.item;
        let cause = item.output.cause.as_ref().or(item.input.cause.as_ref());
        let is_superseded = matches!(cause, Some(CauseView::Superseded { .. }));
        let status = match item.status {
            None => 0,
            Some(Status::Pending) => 1,
            Some(Status::Completed) => 2,
            Some(Status::Failed) => 3,
            Some(Status::Aborted) => 4,
        };
        let flags = u8::from(item.in_context)
            | u8::from(item.pinned) << 1
            | u8::from(is_superseded) << 2
            | status << 3;
        let is_plain = |face: &FaceView| matches!(face.state, FaceState::Whole | FaceState::Absent);
        let is_as_recorded =
            |face: &FaceView, tokens| face.state == FaceState::Absent || face.tokens == tokens;
        let is_as_recorded = is_as_recorded(&item.input, tokens.0) && is_as_recorded(&item.output, tokens.1);
        let is_plain = is_plain(&item.input) && is_plain(&item.output);
        let hidden = if cause.is_none() && is_plain && is_as_recorded {
            None
        } else {
            let by = match cause {
                Some(CauseView::Superseded { by, .. }) => by.and_then(|by| self.places.get(&by).copied()),
                _ => None,
            };
            let cause = cause.map(|cause| self.words.number(&cause_label(cause).replace('_', " ")));
            let shown = (item.input.tokens_shown, item.output.tokens_shown);
            let input = self.placeholder(then, Face::Input, texts)?;
            let output = self.placeholder(then, Face::Output, texts)?;
            Some(HiddenData(place(cause), place(by), shown, place(input), place(output)))
        };
        let (input, output) = (state_number(item.input.state), state_number(item.output.state));
        Ok(PointData { seq: then.since.get(), flags, input, output, hidden })
    }

    /// The placeholder of a face.
    fn placeholder(
        &self,
        then: &ItemSince,
        face: Face,
        texts: &mut TextWriter<'_>,
    ) -> Result<Option<TextNumber>, ExportError> {
        let state = if face == Face::Input { then.item.input.state } else { then.item.output.state };
        if !matches!(state, FaceState::Tombstone | FaceState::Summary | FaceState::Shortened) {
            return Ok(None);
        }
        match or_lost(self.view.with_at(then.since).shown(then.item.ix, face))? {
            Ok(shown) => texts.number(&shown.text).map(Some),
            Err(lost) => texts.problem(&lost).map(Some),
        }
    }

    fn rest(&mut self, title: String) {
        let at = self.view.at();
        let state = self.view.state();
        let info = state.info(at).cloned().unwrap_or_default();
        for edge in state.edges(at) {
            let Some(old) = self.places.get(&edge.old).copied() else { continue };
            let new = edge.new.and_then(|new| self.places.get(&new).copied());
            let rule = self.words.number(&edge.rule.label().replace('_', " "));
            let key = edge.key.as_ref().map(|key| self.words.number(&page_past::clip(key)));
            let (seq, turn, released) = (edge.seq.get(), edge.turn.get(), u8::from(edge.released));
            self.data.edges.push((old, place(new), rule, place(key), seq, turn, released));
        }
        self.data.session = SessionData {
            parent: -1,
            call: info.parent.as_ref().and_then(|parent| parent.call.clone()),
            id: info.name.clone(),
            host: info.host.clone(),
            title,
            project: info
                .project
                .as_ref()
                .map(|project| self.redaction.of(&self.moves.project(project)).into_owned()),
            policy: state.policy(at).preset.clone(),
            sent: !state.served(at).is_empty(),
            at: at.get(),
            began: self.data.session.began,
            program: concat!("acpdb ", env!("CARGO_PKG_VERSION")),
        };
        self.data.words = std::mem::take(&mut self.words).into_list();
    }
}

/// The facts that the events of a session tell beside its items.
#[derive(Default)]
struct SessionEvents {
    /// The host's time of each event, if the host gave one.
    times: HashMap<Seq, Micros>,
    /// The seqs at which the order of the context was told anew.
    orders: Vec<Seq>,
    /// A provider's reports of messages; a later report of a message replaces an earlier one.
    finished: Vec<(Seq, MessageFinished)>,
    /// Events of the model and its tools, of those with a time.
    working: HashSet<Seq>,
    by_message: HashMap<String, usize>,
}

/// Whether an event is of the model or a tool, and not of the person or the host.
fn is_work(payload: &Payload) -> bool {
    match payload {
        Payload::TurnStarted(_)
        | Payload::MessageFinished(_)
        | Payload::ToolCallStarted(_)
        | Payload::ToolCallFinished(_) => true,
        Payload::MessageRecorded(message) => message.role == Role::Assistant,
        _ => false,
    }
}

impl SessionEvents {
    fn take(&mut self, recorded: Recorded, own: StreamId) {
        let seq = recorded.seq;
        let is_own = recorded.event.stream == own;
        if let Some(time) = recorded.event.host_time {
            self.times.insert(seq, time);
            if is_work(&recorded.event.payload) {
                self.working.insert(seq);
            }
        }
        match recorded.event.payload {
            Payload::ContextReplaced(_) | Payload::Rewound(_) => self.orders.push(seq),
            // A request counts once, in the session that made it.
            Payload::MessageFinished(finished) if is_own && finished.report.usage != Usage::default() => {
                let finished = MessageFinished::clone(&finished);
                let known =
                    self.by_message.get(&finished.key).and_then(|place| self.finished.get_mut(*place));
                if let Some(known) = known {
                    *known = (seq, finished);
                } else {
                    self.by_message.insert(finished.key.clone(), self.finished.len());
                    self.finished.push((seq, finished));
                }
            }
            _ => {}
        }
    }

    /// First and last second of the work in each turn, as far as the host told times. The pause before the next prompt is none.
    fn spans(&self, state: &State, began: i64) -> Vec<(u32, i64, i64)> {
        let mut spans: BTreeMap<u32, (i64, i64)> = BTreeMap::new();
        let mut add = |is_work: bool| {
            let with_work: HashSet<u32> = spans.keys().copied().collect();
            for (seq, time) in self.times.iter().filter(|(seq, _)| self.working.contains(*seq) == is_work) {
                let turn = state.turn(*seq).get();
                if with_work.contains(&turn) {
                    continue;
                }
                let second = time.get().saturating_sub(began).div_euclid(1_000_000);
                let span = spans.entry(turn).or_insert((second, second));
                *span = (span.0.min(second), span.1.max(second));
            }
        };
        // A turn without any work, such as that of the first prompt, lasts as long as its records.
        add(true);
        add(false);
        spans.into_iter().map(|(turn, (first, last))| (turn, first, last)).collect()
    }

    /// Requests with their counts, and their cost by the table of prices: those that the session is billed for, and copies of
    /// others, which cost nothing again.
    fn requests(&self, billed: &[BilledRequest], state: &State, words: &mut PageWords) -> Vec<RequestData> {
        // A table that cannot be used would be a fault of the program: costs are unknown then.
        let table = PriceTable::built_in().ok();
        let mut row = |seq: Seq, model: Option<String>, usage: &Usage, dollars: Option<f64>| {
            let model = place(model.as_ref().map(|model| words.number(model)));
            let count = |tokens: Option<u64>| tokens.unwrap_or_default();
            RequestData(
                seq.get(),
                state.turn(seq).get(),
                model,
                count(usage.input),
                count(usage.cache_read),
                count(usage.cache_write),
                count(usage.output),
                dollars.map(|dollars| (dollars * 1e6).round() / 1e6),
            )
        };
        let own: HashSet<Seq> = billed.iter().map(|request| request.seq).collect();
        let mut rows: Vec<RequestData> = Vec::new();
        for request in billed {
            let price = request.model.as_deref().and_then(|model| table.as_ref()?.price(model, request.at));
            let dollars = price.and_then(|price| price.dollars(&request.usage, request.tier.as_deref()));
            let model = request.model.as_deref().map(str::to_owned);
            rows.push(row(request.seq, model, &request.usage, dollars.map(|dollars| dollars.total())));
        }
        let copies = self.finished.iter().filter(|(seq, _)| !own.contains(seq));
        for (seq, finished) in copies {
            let report = &finished.report;
            if report.service_tier.as_deref() != Some(SUM_TIER) {
                let model = report.model.as_ref().map(|model| format!("{model} (copied)"));
                rows.push(row(*seq, model, &report.usage, Some(0.0)));
            }
        }
        rows.sort_by_key(|row| row.0);
        rows
    }
}

/// An item as it was since a seq.
struct ItemSince {
    since: Seq,
    item: ItemView,
}

const fn state_number(state: FaceState) -> u8 {
    match state {
        FaceState::Whole => 0,
        FaceState::Tombstone => 1,
        FaceState::Summary => 2,
        FaceState::Shortened => 3,
        FaceState::Gone => 4,
        FaceState::Absent => 5,
    }
}

/// The order of the context since a seq: the items that stand first, unless they stand as they were recorded.
fn order(state: &State, seq: Seq, places: &HashMap<ItemId, u32>) -> (u64, usize, Vec<u32>) {
    let current = state.current(seq).into_iter();
    let listed: Vec<u32> = current.filter_map(|ix| places.get(&state.item_id(ix)?).copied()).collect();
    if listed.is_sorted() {
        return (seq.get(), 0, Vec::new());
    }
    (seq.get(), state.items(seq).count(), listed)
}

/// The first line of a text, as a title.
fn short(text: &str) -> String {
    beginning(&one_line(text), TITLE_LENGTH_MAX)
}
