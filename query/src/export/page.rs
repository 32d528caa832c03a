//! A session as one HTML file: nothing is loaded, nothing leaves it, and it works from a disk.
//!
//! ```text
//! head: policy with the digests of style and script | body: an empty frame
//! texts: a JSON array, each text once, written as met | data: items and where they stood when | script
//! ```
//!
//! The script (`assets/*.js`) makes everything that is seen, by setting text, never markup. The content security policy
//! allows that one script and that one style, by their digests, and nothing else: no network, no frames, no forms. So
//! whatever was recorded, it can neither run nor call home. See [`super::JsonText`] for how data is kept data.
//!
//! What this does not do: choose a session, or write a file.

use std::collections::HashMap;
use std::io::Write;

use acpdb_engine::event::{Face, PartKind, Role};
use acpdb_engine::fold::{CauseView, FaceState, FaceView, ItemKind, ItemView, Ix, State, Status};
use acpdb_engine::ids::{ItemId, Micros, Seq};
use acpdb_engine::{Error, Store, View};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::page_data::{HiddenData, ItemData, PageData, PointData, SessionData, Words, place};
use super::texts::{TextNumber, Texts};
use super::{ExportError, JsonText, html_text, page_past};
use crate::items::cause_label;
use crate::titles::prompt_in;

const STYLE: &str = include_str!("assets/page.css");
const BODY: &str = include_str!("assets/page.html");
const SCRIPT: &str = concat!(
    "'use strict';\n",
    include_str!("assets/model.js"),
    include_str!("assets/draw.js"),
    include_str!("assets/list.js"),
    include_str!("assets/page.js"),
);

/// Longest title, in characters.
const TITLE_LENGTH_MAX: usize = 120;
/// Prompts that are looked at for a title.
const PROMPT_COUNT_MAX: usize = 6;

/// What a page holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PageReport {
    /// Items, whether current or not.
    pub items: usize,
    /// Supersessions.
    pub edges: usize,
    /// Turns.
    pub turns: usize,
    /// Bytes of the texts in it, each once.
    pub text_bytes: u64,
}

/// Writes a session as a page. `now` decides what memory has faded.
///
/// Texts longer than 1 MiB are cut, and say so. Cost: O(items and their texts); memory: O(items).
///
/// # Errors
/// If the log cannot be read, or `out` fails.
pub fn page(store: &Store, view: &View, now: Micros, out: &mut dyn Write) -> Result<PageReport, ExportError> {
    let mut making = Making::new(store, view)?;
    let title = making.title()?;
    head(&title, out)?;
    out.write_all(b"<script type=\"application/json\" id=\"texts\">")?;
    let mut texts = Texts::new(out)?;
    making.items(&mut texts)?;
    making.data.todos = page_past::todos(view, &mut texts, &mut making.words)?;
    making.data.memory = page_past::memory(store, view, now, &mut texts, &mut making.words)?;
    let (problems, text_bytes) = texts.end()?;
    making.rest(title, problems);
    out.write_all(b"</script>\n<script type=\"application/json\" id=\"data\">")?;
    let data = making.data;
    JsonText::write(&data, out)?;
    out.write_all(b"</script>\n<script>")?;
    out.write_all(SCRIPT.as_bytes())?;
    out.write_all(b"</script>\n</body>\n</html>\n")?;
    let (items, edges, turns) = (data.items.len(), data.edges.len(), data.turns.len());
    Ok(PageReport { items, edges, turns, text_bytes })
}

/// A source of a content security policy: the digest of what may run or style.
fn allowed(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digest = Sha256::digest(text.as_bytes());
    let mut base64 = String::new();
    for group in digest.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS.get(((bits >> (18 - 6 * place)) & 63) as usize).copied().unwrap_or(b'=');
            base64.push(if place > group.len() { '=' } else { char::from(digit) });
        }
    }
    format!("'sha256-{base64}'")
}

fn head(title: &str, out: &mut dyn Write) -> Result<(), ExportError> {
    let (style, script) = (allowed(STYLE), allowed(SCRIPT));
    let title = html_text(title);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {style}; \
         script-src {script}; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title} - acpdb</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{BODY}"
    )?;
    Ok(())
}

/// A page in the making.
struct Making<'v> {
    view: &'v View,
    data: PageData,
    words: Words,
    /// Items by id.
    places: HashMap<ItemId, u32>,
    all: Vec<Ix>,
    /// The host's time of each event, where it gave one.
    times: HashMap<Seq, Micros>,
}

impl<'v> Making<'v> {
    fn new(store: &Store, view: &'v View) -> Result<Self, ExportError> {
        let mut data = PageData { schema: "acpdb.page/1", ..PageData::default() };
        let mut words = Words::default();
        let mut times = HashMap::new();
        let mut orders = Vec::new();
        for recorded in store.stream_events(view.stream(), Seq(1), view.at())? {
            // What is damaged is left out; the rest shows.
            let recorded = match recorded {
                Err(Error::Corrupt { .. }) => continue,
                other => other?,
            };
            let seq = recorded.seq;
            if let Some(time) = recorded.event.host_time {
                times.insert(seq, time);
            }
            let payload = &recorded.event.payload;
            if matches!(payload.label(), "context_replaced" | "rewound") {
                orders.push(seq);
            }
            if let Some(text) = page_past::mark(payload) {
                let kind = words.number(&payload.label().replace('_', " "));
                let turn = view.read().state().turn(seq).get();
                data.marks.push((seq.get(), turn, kind, text));
            }
        }
        let (all, places) = {
            let reading = view.read();
            let state = reading.state();
            let all: Vec<Ix> = state.items(view.at()).collect();
            let ids = all.iter().map(|ix| state.item_id(*ix));
            let places: HashMap<ItemId, u32> =
                ids.zip(0..).filter_map(|(id, place)| Some((id?, place))).collect();
            data.turns = state
                .tokens_by_turn(view.at())
                .iter()
                .map(|turn| (turn.turn.get(), turn.seq.get(), turn.shown, turn.whole, turn.recorded))
                .collect();
            data.orders = orders.into_iter().map(|seq| order(state, seq, &places)).collect();
            (all, places)
        };
        Ok(Self { view, data, words, places, all, times })
    }

    fn item(&self, ix: Ix) -> Option<ItemView> {
        self.view.read().state().item(ix, self.view.at())
    }

    /// The session's title, else what the user asked first.
    fn title(&self) -> Result<String, ExportError> {
        let info = self.view.read().state().info(self.view.at()).cloned().unwrap_or_default();
        if let Some(title) = info.title {
            return Ok(short(&title));
        }
        let items = self.all.iter().filter_map(|ix| self.item(*ix));
        let prompts = items.filter(|item| item.role == Role::User && item.kind == ItemKind::Text);
        for item in prompts.take(PROMPT_COUNT_MAX) {
            let Some(part) = item.content.first() else { continue };
            match self.view.text(part.body) {
                Ok(text) => {
                    if let Some(prompt) = prompt_in(&text) {
                        return Ok(short(&prompt));
                    }
                }
                Err(Error::Corrupt { .. } | Error::Erased { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(short(&info.name))
    }

    fn items(&mut self, texts: &mut Texts<'_>) -> Result<(), ExportError> {
        let all = std::mem::take(&mut self.all);
        for ix in &all {
            let Some(item) = self.item(*ix) else { continue };
            let time = self.times.get(&item.item.seq).copied().unwrap_or(item.recorded_at);
            if self.data.items.is_empty() {
                self.data.session.began = time.get();
            }
            let seconds = time.get().saturating_sub(self.data.session.began).div_euclid(1_000_000);
            let (inputs, contents, points) = self.history(&item, texts)?;
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
                (item.input.tokens, item.output.tokens),
                inputs,
                contents,
                points,
            );
            self.data.items.push(data);
        }
        self.all = all;
        Ok(())
    }

    /// What an item was, at each of its turning points.
    #[expect(clippy::type_complexity, reason = "three lists that belong to the row they go into")]
    fn history(
        &mut self,
        item: &ItemView,
        texts: &mut Texts<'_>,
    ) -> Result<(Vec<(u64, TextNumber)>, Vec<(u64, Vec<TextNumber>)>, Vec<PointData>), ExportError> {
        let then: Vec<Then> = {
            let reading = self.view.read();
            let state = reading.state();
            let points = state.turning_points(item.ix, self.view.at());
            if points.len() == 1 {
                // Nothing ever happened to it.
                vec![Then { since: item.item.seq, item: item.clone() }]
            } else {
                let then = |since| Some(Then { since, item: state.item(item.ix, since)? });
                points.into_iter().filter_map(then).collect()
            }
        };
        let mut inputs: Vec<(u64, TextNumber)> = Vec::new();
        let mut contents: Vec<(u64, Vec<TextNumber>)> = Vec::new();
        let mut points: Vec<PointData> = Vec::new();
        for then in &then {
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
                    let media_type = part.media_type.as_deref().unwrap_or("of unknown type");
                    texts.number(&format!("[media {media_type}, {} B]", part.bytes))?
                } else {
                    texts.body(self.view, part.body)?
                });
            }
            if contents.last().map_or(!content.is_empty(), |(_, last)| *last != content) {
                contents.push((seq, content));
            }
            let point = self.point(then, texts)?;
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

    fn point(&mut self, then: &Then, texts: &mut Texts<'_>) -> Result<PointData, ExportError> {
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
        let hidden = if cause.is_none() && is_plain(&item.input) && is_plain(&item.output) {
            None
        } else {
            let by = match cause {
                Some(CauseView::Superseded { by, .. }) => by.and_then(|by| self.places.get(&by).copied()),
                _ => None,
            };
            let cause = cause.map(|cause| self.words.number(&cause_label(cause).replace('_', " ")));
            let shown = (item.input.tokens_shown, item.output.tokens_shown);
            let input = self.stand_in(then, Face::Input, texts)?;
            let output = self.stand_in(then, Face::Output, texts)?;
            Some(HiddenData(place(cause), place(by), shown, place(input), place(output)))
        };
        let (input, output) = (state_number(item.input.state), state_number(item.output.state));
        Ok(PointData { seq: then.since.get(), flags, input, output, hidden })
    }

    /// The text that stands in for a face.
    fn stand_in(
        &self,
        then: &Then,
        face: Face,
        texts: &mut Texts<'_>,
    ) -> Result<Option<TextNumber>, ExportError> {
        let state = if face == Face::Input { then.item.input.state } else { then.item.output.state };
        if !matches!(state, FaceState::Tombstone | FaceState::Summary | FaceState::Shortened) {
            return Ok(None);
        }
        match self.view.with_at(then.since).shown(then.item.ix, face) {
            Ok(shown) => texts.number(&shown.text).map(Some),
            Err(error @ (Error::Corrupt { .. } | Error::Erased { .. })) => texts.problem(&error).map(Some),
            Err(error) => Err(error.into()),
        }
    }

    fn rest(&mut self, title: String, problems: Vec<TextNumber>) {
        let at = self.view.at();
        let reading = self.view.read();
        let state = reading.state();
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
            id: info.name.clone(),
            host: info.host.clone(),
            title,
            project: info.project.clone(),
            policy: state.policy(at).preset.clone(),
            at: at.get(),
            began: self.data.session.began,
            program: concat!("acpdb ", env!("CARGO_PKG_VERSION")),
        };
        self.data.problems = problems;
        self.data.words = std::mem::take(&mut self.words).into_list();
    }
}

/// An item as it was since a seq.
struct Then {
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
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(TITLE_LENGTH_MAX) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line,
    }
}
