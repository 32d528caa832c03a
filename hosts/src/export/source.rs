//! The input of an export: items in order, how each face is shown, the parts before the messages, and texts on demand.

use std::sync::Arc;

use acpdb_engine::event::{Face, Role};
use acpdb_engine::fold::{
    CauseView, FaceState, ItemHeader, ItemKind, Ix, PartView, Placeholder, ServedPlace, State, Status,
};
use acpdb_engine::ids::{BodyId, ItemId, Seq, Turn};
use acpdb_engine::{Error, View};
use acpdb_serve::Served;
use rustc_hash::FxHashMap;

use super::ahead::BodyPrefetch;
use super::dialect::{CutOff, Dialect};
use super::report::{ExportReport, LeftOut};
use super::thinking;
use super::turns::{self, ItemGroup};
use super::write::JsonWriter;
use super::{Export, ExportChoices, Format, Provider, Selection, Thinking};
use crate::import::{SUMMARY, SUMMARY_SENT};

/// The text in place of one that cannot be read.
const UNREADABLE: &str = "[content not readable]";

/// How a face is shown.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum ShownAs {
    /// There is no such face, or nothing is in its place.
    Nothing,
    /// The face as recorded.
    Whole,
    /// The placeholder.
    Placeholder(Placeholder),
    /// This text, which points to the same content elsewhere in the context.
    Text(String),
}

/// An item to be exported.
#[derive(Debug)]
pub(super) struct ExportItem {
    pub(super) ix: Ix,
    pub(super) brief: ItemHeader,
    pub(super) input: ShownAs,
    pub(super) output: ShownAs,
    /// Parts of the content or result, where it is shown whole.
    pub(super) content: Vec<PartView>,
}

impl ExportItem {
    pub(super) fn id(&self) -> ItemId {
        self.brief.item
    }

    /// Takes the item out: it is needed once.
    pub(super) fn take(&mut self) -> Self {
        Self {
            ix: self.ix,
            brief: self.brief.clone(),
            input: std::mem::replace(&mut self.input, ShownAs::Nothing),
            output: std::mem::replace(&mut self.output, ShownAs::Nothing),
            content: std::mem::take(&mut self.content),
        }
    }

    pub(super) fn is_call(&self) -> bool {
        self.brief.kind == ItemKind::Call
    }

    pub(super) fn is_finished(&self) -> bool {
        !matches!(self.brief.status, None | Some(Status::Pending))
    }

    /// Whether a summary stands in its place.
    fn is_summary(&self) -> bool {
        matches!(&self.output, ShownAs::Placeholder(placeholder) if placeholder.state == FaceState::Summary)
    }

    /// Whether it comes out at all: an item with nothing in it, or hidden without a trace, does not.
    pub(super) fn says_something(&self) -> bool {
        match &self.output {
            ShownAs::Nothing => false,
            ShownAs::Placeholder(placeholder) => placeholder.tokens > 0,
            ShownAs::Text(text) => !text.is_empty(),
            ShownAs::Whole => self.content.iter().any(|part| part.bytes > 0),
        }
    }

    pub(super) fn turn(&self) -> Turn {
        self.brief.turn
    }
}

/// The parts before the messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Prompt {
    pub(super) system: Option<BodyId>,
    pub(super) tools: Option<BodyId>,
    pub(super) params: Option<BodyId>,
    pub(super) model: Option<String>,
}

/// Everything an exporter works with.
pub(super) struct ExportSource<'v> {
    view: &'v View,
    pub(super) format: Format,
    pub(super) options: ExportChoices,
    pub(super) dialect: Dialect,
    pub(super) host: String,
    pub(super) title: Option<String>,
    pub(super) session: String,
    pub(super) items: Vec<ExportItem>,
    pub(super) groups: Vec<ItemGroup>,
    /// For each group, whether its reasoning must go.
    pub(super) unbound: Vec<bool>,
    pub(super) prompt: Prompt,
    /// The policy's figures for clearing on the provider's side.
    pub(super) clearing: super::prompt::Clearing,
    providers: FxHashMap<Arc<str>, Provider>,
    home: Option<Provider>,
    pub(super) report: ExportReport,
    ahead: BodyPrefetch,
}

impl<'v> ExportSource<'v> {
    /// The context that a view shows.
    pub(super) fn of(view: &'v View, format: Format, options: &ExportChoices) -> Self {
        Self::new(view, None, format, options)
    }

    /// A context as it is served: each face as of the moment that the engine says.
    pub(super) fn served(context: &'v Served, format: Format, options: &ExportChoices) -> Self {
        Self::new(context.view(), Some(context), format, options)
    }

    fn new(view: &'v View, served: Option<&Served>, format: Format, options: &ExportChoices) -> Self {
        let at = view.at();
        let mut options = options.clone();
        let mut report = ExportReport::default();
        if options.server_side {
            if format.request().is_some_and(|request| request.clears) {
                options.selection = Selection::Whole;
            } else {
                report.note(LeftOut::ServerSide, None);
            }
        }
        let state = view.state();
        let info = state.info(at).cloned().unwrap_or_default();
        let mut prompt = prompt_at(state, at);
        let home = Provider::of_host(&info.host);
        let home = home.or_else(|| prompt.model.as_deref().and_then(Provider::of_name));
        if let Some(model) = &options.model {
            prompt.model = Some(model.clone());
        }
        let mut briefs: Vec<(Ix, ItemHeader)> = match served {
            Some(served) => {
                let listed = served.items().iter().map(|item| item.place.ix);
                listed.filter_map(|ix| Some((ix, state.item_header(ix, at)?))).collect()
            }
            None => listed(state, options.selection, at),
        };
        // A result without its call has no place in a request, unless it bears a summary: the summary is said on its own.
        briefs.retain(|(ix, brief)| {
            let bears = || state.face(*ix, Face::Output, at).state == FaceState::Summary;
            let carried = brief.kind != ItemKind::Result || format.provider().is_none() || bears();
            if !carried {
                report.note(LeftOut::ResultWithoutCall, Some(brief.item));
            }
            carried
        });
        let groups = turns::group(&briefs);
        let model = prompt.model.clone().or_else(|| last_model(state, at)).unwrap_or_default();
        // The host sent its requests with their reasoning, even where it had cleared results before it.
        let preserved =
            options.selection != Selection::Recorded && is_preserved(format, options.thinking, &model);
        let same = |one: BodyId, other: BodyId| match (view.body(one), view.body(other)) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        };
        let mut moments = Moments::of(served);
        let changed = |ix: Ix, until: Seq| match moments.of.get(&ix) {
            Some((place, _)) if !place.is_new => {
                let moved = place.input_at.max(place.output_at);
                let ever = state.changed(ix, at) > Seq::ZERO;
                if ever && moved <= until { moved } else { Seq::ZERO }
            }
            _ => state.changed(ix, until),
        };
        let binding = thinking::Binding::of(state, at, &briefs, &groups, preserved, &same, &changed);
        let mut earlier = FxHashMap::default();
        if preserved {
            let (deferred, moved) = prompt_until(state, at, binding.until());
            prompt.system = deferred.system;
            prompt.tools = deferred.tools;
            if moved {
                report.note(LeftOut::ChangeDeferred, None);
            }
            if let Some(served) = served.filter(|_| binding.until() < at) {
                earlier
                    .extend(state.served_places(binding.until()).into_iter().map(|place| (place.ix, place)));
                moments = Moments::of(Some(&served.held(binding.until())));
            }
        }
        let open = turns::open_reasoning(&briefs, &groups);
        let faces = Faces {
            state,
            at,
            until: binding.until().min(at),
            preserved,
            kept: options.selection != Selection::Current,
            recorded: options.selection == Selection::Recorded,
        };
        let items = faces.items(briefs, &open, &moments, &earlier, format, &mut report);
        let providers = providers(state, at);
        let clearing = super::prompt::Clearing::of(state.policy(at));
        Self {
            view,
            ahead: BodyPrefetch::of(&items),
            unbound: binding.unbound(&groups),
            format,
            dialect: Dialect::of(&info.host, info.host_version.as_deref(), format, options.selection),
            options,
            home,
            host: info.host.clone(),
            title: info.title.clone(),
            session: info.name.clone(),
            items,
            groups,
            prompt,
            clearing,
            providers,
            report,
        }
    }

    /// The provider that made an item; `None` if nothing tells.
    pub(super) fn provider(&self, item: &ExportItem) -> Option<Provider> {
        let by_message = item.brief.message.as_ref().and_then(|key| self.providers.get(key)).copied();
        by_message.or(self.home)
    }

    /// The result of a call that was cut off, in the host's own words: it has none, and the user went on behind it.
    pub(super) fn cut_off(&self, item: &ExportItem) -> Option<CutOff> {
        let cut_off = CutOff::of(&self.host, self.options.selection).filter(|_| !item.is_finished())?;
        let later = |it: &&ExportItem| it.id().seq > item.id().seq && it.brief.role == Role::User;
        self.items.iter().rev().any(|it| later(&it)).then_some(cut_off)
    }

    /// The body that the host sent in place of an item's own: Copilot CLI puts words around a summary.
    pub(super) fn sent_instead(&self, item: &ExportItem) -> Option<BodyId> {
        let key = item.brief.message.as_deref().filter(|_| self.options.selection == Selection::Recorded)?;
        let summary = key.strip_suffix(SUMMARY).filter(|_| self.host == "copilot-cli")?;
        let sent = format!("{summary}{SUMMARY_SENT}");
        let (state, at) = (self.view.state(), self.view.at());
        let is_it = |ix: &Ix| {
            state.item_header(*ix, at).is_some_and(|header| header.message.as_deref() == Some(&*sent))
        };
        let ix = state.items(at).find(is_it)?;
        state.content(ix, at).first().map(|part| part.body)
    }

    /// The provider of the session's tools and parameters; `None` if nothing tells.
    pub(super) const fn home(&self) -> Option<Provider> {
        self.home
    }

    /// A body; `None`, and a note, if it is erased or damaged.
    fn bytes(&mut self, body: BodyId, item: Option<ItemId>) -> Result<Option<Vec<u8>>, Error> {
        match self.ahead.body(self.view, body) {
            Err(Error::Erased { .. } | Error::Corrupt { .. }) => {
                self.report.note(LeftOut::Unreadable, item);
                Ok(None)
            }
            bytes => bytes.map(Some),
        }
    }

    /// A body as text; where it cannot be read, a text that says so.
    pub(super) fn text(&mut self, body: BodyId, item: Option<ItemId>) -> Result<String, Error> {
        let Some(bytes) = self.bytes(body, item)? else { return Ok(UNREADABLE.to_owned()) };
        let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ok(String::from_utf8(bytes).unwrap_or_else(|error| lossy(error.as_bytes())))
    }

    /// A body that makes no sense in part: a signature, parameters. `None` if it cannot be read.
    pub(super) fn exact(&mut self, body: BodyId, item: Option<ItemId>) -> Result<Option<String>, Error> {
        let Some(bytes) = self.bytes(body, item)? else { return Ok(None) };
        // A provider takes no body that is not text.
        let text = String::from_utf8(bytes).ok();
        if text.is_none() {
            self.report.note(LeftOut::Unreadable, item);
        }
        Ok(text)
    }

    /// The text of a placeholder; `None` where the face is shown whole after all.
    pub(super) fn placeholder(
        &mut self,
        placeholder: &Placeholder,
        item: ItemId,
    ) -> Result<Option<String>, Error> {
        let (view, ahead) = (self.view, &mut self.ahead);
        match view.placeholder_text_of(placeholder, &mut |id| ahead.body(view, id)) {
            Err(Error::Erased { .. } | Error::Corrupt { .. }) => {
                self.report.note(LeftOut::Unreadable, Some(item));
                Ok(Some(UNREADABLE.to_owned()))
            }
            other => other,
        }
    }

    /// The parts of an item as recorded, however it is shown.
    pub(super) fn content(&self, item: &ExportItem) -> Vec<PartView> {
        if item.content.is_empty() {
            return self.view.state().content(item.ix, self.view.at());
        }
        item.content.clone()
    }

    /// The export of a body: `closers` are the brackets that close it.
    pub(super) fn export(
        self,
        mut json: JsonWriter,
        closers: &[u8],
        renderer: u32,
        message_count: usize,
    ) -> Export {
        let open = json.out.len();
        for bracket in closers {
            json.close(*bracket);
        }
        let closing = json.out.len() - open;
        Export { bytes: json.out, format: self.format, renderer, closing, message_count, report: self.report }
    }

    /// About the bytes that the texts will take: to reserve once.
    pub(super) fn bytes_about(&self) -> usize {
        let of = |item: &ExportItem| {
            let content: u64 = item.content.iter().map(|part| part.bytes).sum();
            // Escapes of usual texts, and the names around them.
            content.saturating_add(content / 16).saturating_add(220)
        };
        let bytes: u64 = self.items.iter().map(of).sum();
        usize::try_from(bytes.min(1 << 32)).unwrap_or(0)
    }
}

/// Items of a selection, in the order of the conversation.
fn listed(state: &State, selection: Selection, at: Seq) -> Vec<(Ix, ItemHeader)> {
    let list: Vec<Ix> = match selection {
        Selection::Current | Selection::Whole | Selection::Recorded => state.current(at),
        Selection::History => state.items(at).collect(),
    };
    let mut briefs: Vec<(Ix, ItemHeader)> =
        list.into_iter().filter_map(|ix| Some((ix, state.item_header(ix, at)?))).collect();
    if selection == Selection::History {
        // Rewound and abandoned items were taken back; items that a compaction took out were sent before it.
        briefs.retain(|(ix, _)| {
            let face = state.face(*ix, Face::Output, at);
            let input = state.face(*ix, Face::Input, at);
            let off = |cause: &Option<CauseView>| matches!(cause, Some(CauseView::OffBranch { .. }));
            let unseen = face.cause.is_none() && face.state == FaceState::Gone;
            !off(&face.cause) && !off(&input.cause) && !unseen
        });
    }
    briefs
}

/// The moments that a served context shows, and the texts that point elsewhere, by item.
#[derive(Default)]
struct Moments {
    of: FxHashMap<Ix, (ServedPlace, Option<String>)>,
}

impl Moments {
    fn of(served: Option<&Served>) -> Self {
        let items = served.map(Served::items).unwrap_or_default();
        let of = items.iter().map(|item| (item.place.ix, (item.place, item.pointed.clone())));
        Self { of: of.collect() }
    }
}

/// How faces are shown.
struct Faces<'s> {
    state: &'s State,
    at: Seq,
    /// Changes up to this seq show.
    until: Seq,
    /// Reasoning is bound to the items before it: they stay as they were shown to it.
    preserved: bool,
    /// Everything is shown as recorded.
    kept: bool,
    /// Faces that the host itself cleared show so, also with `kept`.
    recorded: bool,
}

impl Faces<'_> {
    /// The items as they are shown. `open`: reasoning that led to the calls at hand.
    fn items(
        &self,
        briefs: Vec<(Ix, ItemHeader)>,
        open: &[bool],
        moments: &Moments,
        earlier: &FxHashMap<Ix, ServedPlace>,
        format: Format,
        report: &mut ExportReport,
    ) -> Vec<ExportItem> {
        let mut items = Vec::with_capacity(briefs.len());
        for (place, (ix, brief)) in briefs.into_iter().enumerate() {
            let open = format.binds_reasoning() && open.get(place).copied().unwrap_or(false);
            let mut item = match moments.of.get(&ix) {
                Some((moment, pointed)) => {
                    self.served(ix, brief, moment, earlier.get(&ix), pointed.as_deref(), report)
                }
                None => self.current(ix, brief, open, report),
            };
            if item.brief.kind == ItemKind::Result && format.provider().is_some() && !item.is_summary() {
                report.note(LeftOut::ResultWithoutCall, Some(item.id()));
                (item.output, item.content) = (ShownAs::Nothing, Vec::new());
            }
            items.push(item);
        }
        items
    }

    /// An item of the current context. `open`: reasoning that led to the calls at hand, which stays with them.
    fn current(&self, ix: Ix, brief: ItemHeader, open: bool, report: &mut ExportReport) -> ExportItem {
        let (state, at) = (self.state, self.at);
        let face = |face: Face, report: &mut ExportReport| {
            let now = state.placeholder(ix, face, at);
            // A face without a placeholder is whole: nothing has hidden it.
            let cause = now.as_ref().and_then(|_| state.face(ix, face, at).cause);
            let is_erased = matches!(cause, Some(CauseView::Erased { .. } | CauseView::Lost { .. }));
            let is_hosts = is_erased || matches!(cause, Some(CauseView::ClearedByHost { .. }));
            let placeholder = if is_erased {
                now
            } else if self.kept {
                now.filter(|_| is_hosts && self.recorded)
            } else if self.preserved {
                let newborn =
                    brief.item.seq > self.until || brief.finished.is_some_and(|seq| seq > self.until);
                // A restored text waits, too.
                let then = if newborn { None } else { state.placeholder(ix, face, self.until) };
                if then.as_ref().map(|it| &it.render) != now.as_ref().map(|it| &it.render) {
                    report.note(LeftOut::ChangeDeferred, Some(brief.item));
                }
                then
            } else if open && !is_hosts {
                if now.is_some_and(|now| now.state != FaceState::Whole) {
                    report.note(LeftOut::ChangeDeferred, Some(brief.item));
                }
                None
            } else {
                now
            };
            shown(placeholder, is_erased)
        };
        let input = if brief.kind == ItemKind::Call { face(Face::Input, report) } else { ShownAs::Nothing };
        let output = face(Face::Output, report);
        let content = if output == ShownAs::Whole { state.content(ix, at) } else { Vec::new() };
        ExportItem { ix, brief, input, output, content }
    }

    /// An item of a served context, as of `moment`; as of `earlier` where a rebase has to wait.
    fn served(
        &self,
        ix: Ix,
        brief: ItemHeader,
        moment: &ServedPlace,
        earlier: Option<&ServedPlace>,
        pointed: Option<&str>,
        report: &mut ExportReport,
    ) -> ExportItem {
        let state = self.state;
        let mut face = |face: Face| {
            let mut at = moment.at(face);
            let is_erased = matches!(
                state.face(ix, face, self.at).cause,
                Some(CauseView::Erased { .. } | CauseView::Lost { .. })
            );
            if at > self.until
                && !is_erased
                && let Some(earlier) = earlier.filter(|earlier| !earlier.is_new && earlier.at(face) < at)
            {
                if state.placeholder(ix, face, earlier.at(face)) != state.placeholder(ix, face, at) {
                    report.note(LeftOut::ChangeDeferred, Some(brief.item));
                }
                at = earlier.at(face);
            }
            (shown(state.placeholder(ix, face, if is_erased { self.at } else { at }), is_erased), at)
        };
        let input = if brief.kind == ItemKind::Call { face(Face::Input).0 } else { ShownAs::Nothing };
        let (output, at) = match pointed {
            Some(text) => (ShownAs::Text(text.to_owned()), moment.output_at),
            None => face(Face::Output),
        };
        // A result that came after its call was sent shows at once.
        let content =
            if output == ShownAs::Whole { state.content(ix, at.max(moment.output_at)) } else { Vec::new() };
        ExportItem { ix, brief, input, output, content }
    }
}

fn shown(placeholder: Option<Placeholder>, is_erased: bool) -> ShownAs {
    match placeholder {
        None => ShownAs::Whole,
        Some(placeholder) if placeholder.state == FaceState::Whole => ShownAs::Whole,
        Some(placeholder) if placeholder.state == FaceState::Gone && !is_erased => ShownAs::Nothing,
        Some(placeholder) => ShownAs::Placeholder(placeholder),
    }
}

/// Whether reasoning is bound to the items before it.
fn is_preserved(format: Format, thinking: Thinking, model: &str) -> bool {
    format.binds_reasoning()
        && match thinking {
            Thinking::Auto => super::preserves_thinking(model),
            Thinking::Preserved => true,
            Thinking::Free | Thinking::Drop => false,
        }
}

/// The provider of each message, as far as it was reported.
fn providers(state: &State, at: Seq) -> FxHashMap<Arc<str>, Provider> {
    let mut providers = FxHashMap::default();
    for (_, finished) in state.message_reports(at) {
        let named = finished.report.provider.as_deref().and_then(Provider::of_name);
        let named = named.filter(|provider| *provider != Provider::Other);
        let by_model = || finished.report.model.as_deref().and_then(Provider::of_name);
        if let Some(provider) = named.or_else(by_model) {
            providers.insert(Arc::from(finished.key.as_str()), provider);
        }
    }
    providers
}

/// The parts before the messages at `at`.
fn prompt_at(state: &State, at: Seq) -> Prompt {
    let mut prompt = Prompt::default();
    for (seq, set) in state.prompts(at) {
        let newest = |body: Option<acpdb_engine::event::Body>, now| body.map(|it| it.id(*seq)).or(now);
        prompt.system = newest(set.system, prompt.system);
        prompt.tools = newest(set.tools, prompt.tools);
        prompt.params = newest(set.params, prompt.params);
        prompt.model = set.model.clone().or(prompt.model);
    }
    prompt
}

/// The parts before the messages at `until`, or at their first setting if that was later; and whether they differ from the
/// parts at `at`.
fn prompt_until(state: &State, at: Seq, until: Seq) -> (Prompt, bool) {
    let first = state.prompts(at).iter().find(|(_, set)| set.system.is_some() || set.tools.is_some());
    let until = first.map_or(until, |(seq, _)| until.max(*seq)).min(at);
    let (then, now) = (prompt_at(state, until), prompt_at(state, at));
    let moved = then.system != now.system || then.tools != now.tools;
    (then, moved)
}

/// The model of the newest message that names one.
fn last_model(state: &State, at: Seq) -> Option<String> {
    let named =
        state.message_reports(at).iter().rev().filter_map(|(_, finished)| finished.report.model.clone());
    named.into_iter().find(|model| !model.starts_with('<'))
}
