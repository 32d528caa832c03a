//! What a model needed again: words it wrote that only something hidden had shown it.

use super::{Simulation, Slot, float};

impl Simulation<'_> {
    /// Counts the words of a slot as visible, or as hidden by it.
    pub(super) fn show_words(&mut self, place: usize, shown: bool) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        if !shown && !slot.was_hidden {
            slot.was_hidden = true;
            self.outcome.hidden_count += 1;
        }
        let counted = slot.words_shown;
        slot.words_shown = shown;
        let bodies = slot.bodies.clone();
        for key in &bodies {
            let Some(text) = self.recording.texts.get(key) else { continue };
            for word in &text.words {
                let Some(count) = self.visible.get_mut(*word as usize) else { continue };
                match (counted, shown) {
                    (false, true) => *count = count.saturating_add(1),
                    (true, false) => *count = count.saturating_sub(1),
                    _ => {}
                }
                if !shown {
                    self.hidden_by.insert(*word, place);
                }
            }
        }
    }

    /// What the model wrote since the last request: did it need what was hidden from it?
    pub(super) fn look_back(&mut self, turn: u32) {
        let mut needed: Vec<usize> = Vec::new();
        let mut affected = false;
        for place in &self.new {
            let Some(slot) = self.slots.get(*place).filter(|slot| slot.written) else { continue };
            if slot.is_edit {
                self.outcome.edit_count += 1;
                let views = |view: &Slot| {
                    view.is_sent
                        && !view.is_hidden()
                        && view.files.iter().any(|file| slot.files.contains(file))
                };
                if !self.slots.iter().any(views) {
                    self.outcome.blind_count += 1;
                }
            }
            for (body, params) in &slot.bodies {
                let Some(text) = self.recording.texts.get(&(*body, *params)) else { continue };
                for word in &text.words {
                    if self.visible.get(*word as usize).is_some_and(|count| *count > 0) {
                        continue;
                    }
                    if let Some(by) = self.hidden_by.get(word) {
                        affected = true;
                        needed.push(*by);
                    }
                }
            }
        }
        self.outcome.affected_count += u64::from(affected);
        needed.sort_unstable();
        needed.dedup();
        for place in needed {
            let Some(slot) = self.slots.get_mut(place).filter(|slot| !slot.was_needed) else { continue };
            slot.was_needed = true;
            self.outcome.needed_count += 1;
            // It is fetched again: written once, then read with every request until it is shelved in its turn.
            self.fetched.push((turn.saturating_add(self.fetch_turns), slot.whole));
            let written = (self.prices.write - self.prices.read) * float(slot.whole);
            if let Some(last) = self.outcome.requests.last_mut() {
                last.price_with_fetches += written;
            }
        }
    }
}
