//! Words that a model needed again: it wrote them, and only a hidden face had shown them.

use std::collections::HashSet;

use acpdb_engine::event::Face;
use acpdb_engine::fold::{Ix, Placeholder, State, render};
use acpdb_engine::ids::Seq;
use acpdb_engine::registry::NoTools;
use acpdb_serve::point::TextLines;

use super::slot::VisibleWords;
use super::{ContextSlot, Missed, Simulation, float};

impl Simulation<'_> {
    /// Counts the words of a slot as visible, or as hidden by it.
    pub(super) fn show_words(&mut self, place: usize, shown: bool) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        if !shown && !slot.was_hidden {
            slot.was_hidden = true;
            self.outcome.hidden_count += 1;
        }
        let now = match (shown, slot.words_left.is_empty()) {
            (true, _) => VisibleWords::All,
            (false, true) => VisibleWords::None,
            (false, false) => VisibleWords::Some(slot.words_left.clone()),
        };
        let before = std::mem::replace(&mut slot.words_shown, now.clone());
        let bodies = slot.bodies.clone();
        for key in &bodies {
            let Some(text) = self.recording.texts.get(key) else { continue };
            for line in &text.replaceable {
                let Some(count) = self.visible_lines.get_mut(*line as usize) else { continue };
                // It is not known whether an edit can build on a part.
                match (before == VisibleWords::All, shown) {
                    (false, true) => *count = count.saturating_add(1),
                    // The bodies of a slot may have changed since it was shown: no count goes below 0.
                    (true, false) => *count = count.saturating_sub(1),
                    _ => {}
                }
            }
            for word in &text.words {
                let Some(count) = self.visible.get_mut(*word as usize) else { continue };
                let is_shown = now.holds(*word);
                match (before.holds(*word), is_shown) {
                    (false, true) => *count = count.saturating_add(1),
                    // No count goes below 0, as above.
                    (true, false) => *count = count.saturating_sub(1),
                    _ => {}
                }
                if !is_shown {
                    self.hidden_by.insert(*word, place);
                }
            }
        }
    }

    /// Words of a part that is shown in place of a whole output, by number and in order.
    pub(super) fn words_left(&self, state: &State, ix: Ix, face: Face, at: Seq) -> Vec<u32> {
        // For parameters only long strings are at hand: their words count as hidden.
        if face == Face::Input {
            return Vec::new();
        }
        let placeholder = state.placeholder(ix, face, at);
        let Some(placeholder) = placeholder.filter(Placeholder::is_part) else { return Vec::new() };
        let text_of = |body| self.recording.texts.get(&(body, false));
        let bytes_of = |body| {
            let lines = &text_of(body)?.lines;
            Some(lines.iter().map(TextLines::text).collect::<String>().into_bytes())
        };
        let shown = render(&placeholder, &NoTools, &bytes_of);
        let spelled = shown.as_deref().map(|shown| {
            shown.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect::<HashSet<&str>>()
        });
        // If the placeholder has no text of its own, all words are shown.
        let is_shown = |word: &u32| {
            spelled.as_ref().is_none_or(|all| self.recording.word(*word).is_some_and(|it| all.contains(it)))
        };
        let texts = placeholder.needs().into_iter().filter_map(text_of);
        let mut words: Vec<u32> =
            texts.flat_map(|text| text.words.iter().copied()).filter(is_shown).collect();
        words.sort_unstable();
        words.dedup();
        words
    }

    /// Looks at the words that the model wrote since the last request: which of them did only hidden faces show?
    pub(super) fn look_back(&mut self, turn: u32) {
        let mut needed: Vec<(usize, usize, u32)> = Vec::new();
        for place in &self.new {
            let Some(slot) = self.slots.get(*place).filter(|slot| slot.written) else { continue };
            if slot.is_edit {
                self.outcome.edit_count += 1;
                self.outcome.blind_count += u64::from(self.is_blind(slot));
            }
            for (body, params) in &slot.bodies {
                let Some(text) = self.recording.texts.get(&(*body, *params)) else { continue };
                for word in &text.words {
                    if self.visible.get(*word as usize).is_some_and(|count| *count > 0) {
                        continue;
                    }
                    if let Some(by) = self.hidden_by.get(word) {
                        needed.push((*by, *place, *word));
                    }
                }
            }
        }
        self.outcome.affected_count += u64::from(!needed.is_empty());
        needed.sort_unstable();
        for case in needed.chunk_by(|one, other| (one.0, one.1) == (other.0, other.1)) {
            self.tell_missed(case, turn);
        }
        let mut needed: Vec<usize> = needed.into_iter().map(|(place, ..)| place).collect();
        needed.dedup();
        for place in needed {
            let Some(slot) = self.slots.get_mut(place).filter(|slot| !slot.was_needed) else { continue };
            slot.was_needed = true;
            self.outcome.needed_count += 1;
            // The output is fetched again: written once, then read with every request until it leaves the context in its turn.
            self.fetched.push((turn.saturating_add(self.fetch_turns), slot.whole));
            let written = (self.prices.write - self.prices.read) * float(slot.whole);
            if let Some(last) = self.outcome.requests.last_mut() {
                last.price_with_fetches += written;
            }
        }
    }
    /// Whether most lines that an edit replaces stand nowhere in the visible texts.
    fn is_blind(&self, edit: &ContextSlot) -> bool {
        let texts = edit.bodies.iter().filter_map(|body| self.recording.texts.get(body));
        let lines: Vec<u32> = texts.flat_map(|text| text.replaces.iter().copied()).collect();
        let seen =
            lines.iter().filter(|line| self.visible_lines.get(**line as usize).is_some_and(|it| *it > 0));
        seen.count() * 2 < lines.len()
    }

    /// Notes a case: one hidden face, and one item that used words of it.
    fn tell_missed(&mut self, case: &[(usize, usize, u32)], turn: u32) {
        let Some((by, place, _)) = case.first().copied() else { return };
        let Some((hidden, user)) = self.slots.get(by).zip(self.slots.get(place)) else { return };
        let Some(((item, face), (used_by, _))) = hidden.name.zip(user.name) else { return };
        let words = case.iter().filter_map(|(.., word)| self.recording.word(*word)).map(str::to_owned);
        self.outcome.missed.push(Missed {
            session: self.recording.session.clone(),
            turn,
            used_by,
            item,
            face,
            rule: hidden.rule.clone(),
            // A host may go back to an earlier turn: a face that was hidden later is of no age there.
            age: turn.saturating_sub(hidden.turn),
            tokens: hidden.whole,
            words: words.collect(),
        });
    }
}
