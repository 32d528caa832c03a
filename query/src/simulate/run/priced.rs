//! The parts of the price of a request, by the places of its texts.

use super::super::parts::{BillParts, OldItems, YOUNG_STEP_COUNT};
use super::{Simulation, float};

/// The tokens of a request that is priced.
#[derive(Clone, Copy)]
pub(super) struct RequestTokens {
    /// Sent.
    pub(super) total: u64,
    /// Read from the cache.
    pub(super) read: u64,
    /// Read from the cache if no sent text had changed.
    pub(super) uncut: u64,
}

impl Simulation<'_> {
    /// Sends so many tokens of a slot.
    pub(super) fn set_sent(&mut self, place: usize, tokens: u64) {
        let Some(slot) = self.slots.get_mut(place) else { return };
        let before = std::mem::replace(&mut slot.sent, tokens);
        self.sent_tokens = (self.sent_tokens - before).saturating_add(tokens);
        if let Some(sum) = self.sent_of_kind.get_mut(slot.kind) {
            *sum = (*sum - before).saturating_add(tokens);
        }
    }

    /// Counts a request, the newest step, to the parts of the price.
    pub(super) fn count_parts(&mut self, tokens: RequestTokens) {
        // While there are few steps all are young.
        let before = self.steps.len().checked_sub(YOUNG_STEP_COUNT.saturating_add(1));
        let first = before.and_then(|step| self.steps.get(step)).copied().unwrap_or(0);
        let young_slots = self.slots.get(first..).unwrap_or_default();
        let mut of_kind = self.sent_of_kind;
        let mut young = self.step_tokens(self.steps.len().min(YOUNG_STEP_COUNT));
        for slot in young_slots {
            young = young.saturating_add(slot.sent);
            if let Some(sum) = of_kind.get_mut(slot.kind) {
                // The sum has them all.
                *sum = sum.saturating_sub(slot.sent);
            }
        }
        let RequestTokens { total, read, uncut } = tokens;
        // A prefix that was set by hand may be larger than all that is sent.
        let prefix = self.cache.prefix_tokens.min(total);
        let young = young.min(total - prefix);
        let old = total - prefix - young;
        let mut readable = uncut.max(read).min(total);
        let mut price = |tokens: u64| {
            let read = tokens.min(readable);
            readable -= read;
            self.prices.of(tokens, read)
        };
        let (prefix, old_price, young) = (price(prefix), price(old), price(young));
        // A cache that was kept by another session gives more than this one wrote.
        let rewrites = (self.prices.write - self.prices.read) * float(uncut.saturating_sub(read));
        let each = if old > 0 { old_price / float(old) } else { 0.0 };
        let parts = BillParts {
            prefix,
            young,
            old: old_price,
            rewrites,
            old_items: OldItems::of(of_kind.map(|tokens| each * float(tokens))),
            ..BillParts::default()
        };
        self.outcome.parts.add(&parts);
        self.outcome.price_without_cache += self.prices.input * float(total);
    }
}
