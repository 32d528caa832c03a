//! Pointers in a served context: outputs whose lines the model saw elsewhere when they were first sent.
//!
//! ```text
//! contexts sent:   1      2       3 (rebase between)          pointers of an output are decided where it is first sent,
//! outputs:         a      b->a    c->b  b: text again         from what was shown whole then; nothing is stored
//! ```
//!
//! Nothing is recorded: the contexts sent are in the log, and the same texts give the same pointers. A pointer whose
//! target is not shown whole any more is text again; that only happens where a rebase rewrites the rest anyway.

use std::collections::HashMap;

use crate::point::{LineRun, PointLimits, SeenTexts, TextLines, pointed};
use acpdb_engine::event::{Face, PartKind, ToolClass};
use acpdb_engine::fold::{FaceState, ItemKind, Ix, ServedPlace, State};
use acpdb_engine::ids::{BodyId, Seq};

use crate::label::label;
use crate::served::{Served, ServedItem};
use acpdb_engine::View;

/// Bytes of a string in parameters from which on it is worth pointing at.
const STRING_BYTES_MIN: usize = 200;

/// A text that is sent: which face of which item.
struct SentText {
    /// The place of its item in the context.
    place: usize,
    ix: Ix,
    face: Face,
}

impl Served {
    /// The context of a view to send: as [`Served::of`], with pointers in place of lines that the model sees elsewhere. The policy that was
    /// in force when an output was first sent says whether it has pointers: a later one takes none back.
    ///
    /// Cost: O(items), and with pointers all texts that were ever sent in this context. Texts that are damaged or erased are
    /// nothing to point at.
    pub fn to_send(view: &View) -> Self {
        let served = Self::of(view);
        let state = view.state();
        let moments = state.served(view.at()).iter().map(|(seq, _)| *seq).chain([view.at()]);
        if !moments.into_iter().any(|moment| PointLimits::of_policy(state.policy(moment)).is_some()) {
            return served;
        }
        served.pointed(view.at())
    }

    /// The same context for a model that is shown no conclusion behind `until` yet: its pointers point at what it sees.
    ///
    /// Cost: O(items), and as [`Served::to_send`] if something was hidden or shown since.
    #[must_use]
    pub fn held(&self, until: Seq) -> Self {
        let held = held_at(self.view(), until);
        let is_moved =
            |item: &ServedItem| held.get(&item.view.ix).is_some_and(|it| *it != faces_at(item.place).1);
        if self.has_pointers() && self.items().iter().any(is_moved) {
            self.clone().pointed(until)
        } else {
            self.clone()
        }
    }

    fn pointed(self, until: Seq) -> Self {
        let mut items = self.items().to_vec();
        for item in &mut items {
            item.pointed = None;
        }
        let held = if until < self.view().at() { held_at(self.view(), until) } else { HashMap::new() };
        Pointing { view: self.view(), until, held }.point(&mut items);
        self.with_pointers(items)
    }
}

/// Pointers over the contexts that a view knows of.
struct Pointing<'a> {
    view: &'a View,
    /// The model sees no conclusion behind this seq.
    until: Seq,
    /// The moments of all that was sent up to there, if the view is behind it.
    held: HashMap<Ix, (Seq, Seq)>,
}

/// The moments that the faces of an item show.
fn faces_at(place: ServedPlace) -> (Ix, (Seq, Seq)) {
    (place.ix, (place.input_at, place.output_at))
}

/// The same of all that was sent up to `until`.
fn held_at(view: &View, until: Seq) -> HashMap<Ix, (Seq, Seq)> {
    let sent = view.state().served_places(until).into_iter().filter(|place| !place.is_new);
    sent.map(faces_at).collect()
}

impl Pointing<'_> {
    fn point(&self, items: &mut [ServedItem]) {
        let at = self.view.at();
        let moments = self.first_sent(items, at);
        let mut order: Vec<usize> = (0..items.len()).collect();
        // If two items were first sent together, the order of the context decides.
        order.sort_by_key(|place| moments.get(*place).copied());
        let mut seen = SeenTexts::default();
        let mut known: Vec<SentText> = Vec::new();
        let mut found: Vec<(usize, TextLines, Vec<LineRun>)> = Vec::new();
        let mut rebases = usize::MAX;
        for place in order {
            let (Some(item), Some(moment)) = (items.get(place), moments.get(place)) else { continue };
            let count = self.view.state().rebases(*moment).len();
            if count != rebases {
                rebases = count;
                self.look(&mut seen, &known, *moment);
            }
            let mut add = |face: Face, lines: &TextLines, runs: &[LineRun]| {
                // The number that `add` returns is not needed.
                let _ = seen.add(lines, runs);
                known.push(SentText { place, ix: item.view.ix, face });
            };
            if self.shows(item, Face::Input)
                && matches!(item.view.class, Some(ToolClass::Write | ToolClass::Edit))
                // A text that cannot be read is not pointed to, here and below.
                && let Some(params) = item.view.params.and_then(|params| self.view.text(params).ok())
            {
                for lines in strings_of(&params) {
                    add(Face::Input, &lines, &[]);
                }
            }
            let is_output = matches!(item.view.kind, ItemKind::Call | ItemKind::Result);
            let is_text = item.view.content.iter().all(|part| part.kind == PartKind::Text);
            if !is_output || !is_text || !self.shows(item, Face::Output) {
                continue;
            }
            let bodies: Vec<BodyId> = item.view.content.iter().map(|part| part.body).collect();
            let Some(text) = self.joined(&bodies) else { continue };
            let lines = TextLines::of(text);
            let limits = PointLimits::of_policy(self.view.state().policy(*moment));
            let runs = limits.map(|limits| seen.point(&lines, limits)).unwrap_or_default();
            // As above: the number is not needed.
            let _ = seen.add(&lines, &runs);
            known.push(SentText { place, ix: item.view.ix, face: Face::Output });
            if !runs.is_empty() {
                found.push((place, lines, runs));
            }
        }
        let shown = self.shown_now(&known, at);
        for (place, lines, mut runs) in found {
            runs.retain(|run| shown.get(run.source).copied().unwrap_or_default());
            if runs.is_empty() {
                continue;
            }
            let item = |source: usize| items.get(known.get(source)?.place);
            let named =
                |source: usize| item(source).map_or_else(String::new, |it| label(self.view, &it.view));
            let text = pointed(&lines, &runs, &named);
            if let Some(item) = items.get_mut(place) {
                item.pointed = Some(text);
            }
        }
    }

    /// For each item the first context that was sent with it, or `at`.
    fn first_sent(&self, items: &[ServedItem], at: Seq) -> Vec<Seq> {
        let served = self.view.state().served(at);
        let first = |item: &ServedItem| {
            let born = item.view.finished.unwrap_or(item.view.item.seq).max(item.view.item.seq);
            let place = served.partition_point(|(seq, _)| *seq < born);
            served.get(place).map_or(at, |(seq, _)| *seq)
        };
        items.iter().map(first).collect()
    }

    /// Tells `seen` which texts were shown whole at a moment.
    fn look(&self, seen: &mut SeenTexts, known: &[SentText], moment: Seq) {
        for (source, shown) in self.shown_now(known, moment).into_iter().enumerate() {
            seen.set_shown(source, shown);
        }
    }

    /// Whether a face is shown whole.
    fn shows(&self, item: &ServedItem, face: Face) -> bool {
        let now = if face == Face::Input { item.view.input.state } else { item.view.output.state };
        let then = self.held.get(&item.view.ix).map(|(input, output)| {
            let at = if face == Face::Input { *input } else { *output };
            self.view.state().face(item.view.ix, face, at).state
        });
        then.unwrap_or(now) == FaceState::Whole
    }

    /// Which texts are shown whole in the context served at a moment.
    fn shown_now(&self, known: &[SentText], moment: Seq) -> Vec<bool> {
        if known.is_empty() {
            return Vec::new();
        }
        let state: &State = self.view.state();
        let mut places: HashMap<Ix, (Seq, Seq)> =
            state.served_places(moment).into_iter().map(faces_at).collect();
        for (ix, held) in self.held.iter().filter(|_| self.until < moment) {
            // One that left meanwhile is not there any more.
            places.entry(*ix).and_modify(|now| *now = *held);
        }
        let shown = |text: &SentText| {
            let Some((input, output)) = places.get(&text.ix) else { return false };
            let at = if text.face == Face::Input { *input } else { *output };
            state.face(text.ix, text.face, at).state == FaceState::Whole
        };
        known.iter().map(shown).collect()
    }

    fn joined(&self, bodies: &[BodyId]) -> Option<String> {
        // As above.
        let texts: Option<Vec<String>> = bodies.iter().map(|body| self.view.text(*body).ok()).collect();
        texts.map(|texts| texts.join("\n")).filter(|text| !text.is_empty())
    }
}

/// Long strings of parameters. The parser bounds the depth.
fn strings_of(json: &str) -> Vec<TextLines> {
    let Ok(value) = serde_json::from_str::<serde_json::Value>(json) else { return Vec::new() };
    let mut found = Vec::new();
    let mut open = vec![&value];
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::String(text) if text.len() > STRING_BYTES_MIN => {
                found.push(TextLines::of(text.as_str()));
            }
            serde_json::Value::Array(values) => open.extend(values.iter().rev()),
            serde_json::Value::Object(fields) => open.extend(fields.values().rev()),
            _ => {}
        }
    }
    found
}
