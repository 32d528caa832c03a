//! Keeping the cache warm: tiny requests while the session is idle, each just before the cache would be cold.
//!
//! ```text
//! answer ----- lifetime -----|w1|----- lifetime -----|w2|----- lifetime -----  cold
//!                  the next request comes somewhere here: it reads what it would have written
//! ```
//!
//! Each costs a reading of all tokens that were sent. It is not known then whether the session goes on: so they are sent, and paid
//! for, behind its last request as well. They are sent in sessions that went on before, not after one or two requests.

use acpdb_engine::ids::Micros;

use super::{Simulation, float};

/// Requests after which a session is taken to go on.
const REQUEST_COUNT_MIN: usize = 3;

impl Simulation<'_> {
    /// Sends the requests that keep the cache warm until `now`; without `now`, as many as are sent at most.
    pub(super) fn keep_warm(&mut self, now: Option<Micros>) {
        let lifetime = i64::from(self.prices.ttl_seconds).saturating_mul(1_000_000);
        let many = self.outcome.requests.len() >= REQUEST_COUNT_MIN;
        let Some(then) = self.responded_at.filter(|_| many && lifetime > 0 && self.warm_requests_max > 0)
        else {
            return;
        };
        let most = i64::from(self.warm_requests_max);
        // A clock that was set back tells of no time that passed.
        let due = now.map_or(most, |now| now.0.saturating_sub(then.0).max(0) / lifetime);
        let sent = due.min(most);
        self.outcome.warm_count += sent.unsigned_abs();
        let tokens = float(self.cache.last_tokens) * float(sent.unsigned_abs());
        self.outcome.warm_price += self.prices.read * tokens;
        // The tokens that were used last are warm for another lifetime.
        self.responded_at = Some(Micros(then.0.saturating_add(sent.saturating_mul(lifetime))));
    }
}
