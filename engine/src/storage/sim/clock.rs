//! Virtual time.

use std::time::Duration;

use super::process::SimStorage;
use crate::ids::Micros;
use crate::storage::Clock;

/// The wall clock at the start of the machine.
const START_MICROS: i64 = 1_700_000_000_000_000;

/// A simulated process's clock: every operation of any process takes a microsecond, sleeping takes its time and
/// lets the other processes go on.
#[derive(Clone)]
pub struct SimClock {
    storage: SimStorage,
}

impl SimClock {
    pub(super) fn new(storage: SimStorage) -> Self {
        Self { storage }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Micros {
        let micros = self.storage.world.lock().micros;
        Micros(START_MICROS.saturating_add(i64::try_from(micros).unwrap_or(i64::MAX)))
    }

    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.storage.world.lock().micros)
    }

    fn sleep(&self, time: Duration) {
        let world = self.storage.take_turn();
        self.storage.pause(world, time);
    }
}
