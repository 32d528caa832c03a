//! Pointers at birth: they replace lines that stand elsewhere in seen texts. If their target is hidden, the lines come back.

use acpdb_serve::point::PointLimits;

use super::slot::ContextSlot;
use super::{Simulation, signed};

impl Simulation<'_> {
    /// Tokens that pointers to a slot take back when the slot is hidden; pointers of pending or hidden slots do not count.
    pub(super) fn taken_back(&self, slot: &ContextSlot) -> i64 {
        let pointers = slot.seen.iter().filter_map(|seen| self.pointers.get(seen)).flatten();
        let live = pointers
            .filter(|(by, _)| self.slots.get(*by).is_some_and(|by| !by.is_pending && !by.is_hidden()));
        live.map(|(_, saved)| signed(*saved)).sum()
    }

    /// Points from a new slot to equal lines that are seen.
    pub(super) fn point(&mut self, place: usize, limits: PointLimits) {
        let Some(slot) = self.slots.get(place) else { return };
        let (mut runs_of_slot, mut numbers, mut saved) = (Vec::new(), Vec::new(), 0_u64);
        let is_output = slot.bodies.iter().any(|(_, params)| !params) && !slot.written;
        for (body, params) in &slot.bodies {
            let Some(text) = self.recording.texts.get(&(*body, *params)) else { continue };
            for lines in &text.lines {
                let runs = if is_output { self.seen.point(lines, limits) } else { Vec::new() };
                let number = self.seen.add(lines, &runs);
                self.seen_slots.push(place);
                numbers.push(number);
                for run in &runs {
                    let tokens = self.recording.as_model_counts(u64::from(run.saved));
                    saved = saved.saturating_add(tokens);
                    self.pointers.entry(run.source).or_default().push((place, tokens));
                    let source = self.seen_slots.get(run.source).copied();
                    if let Some((traced, source)) =
                        self.traced.as_mut().and_then(|it| it.last_mut()).zip(source)
                        && let Some(slot) = traced.slot(source)
                    {
                        slot.pointers.push((place, tokens));
                    }
                }
                runs_of_slot.extend(runs);
            }
        }
        if !runs_of_slot.is_empty() {
            self.outcome.pointed_count += 1;
        }
        if let Some(slot) = self.slots.get_mut(place) {
            // Each run saves by an estimate of its own; all runs together save no more than the slot has.
            let sent = slot.sent.saturating_sub(saved);
            slot.seen = numbers;
            slot.runs = runs_of_slot;
            self.set_sent(place, sent);
        }
    }
}
