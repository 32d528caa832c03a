//! Rules that a key turns on, and nothing else decides.

use crate::fold::rules::switches;

/// Which rules are on that have a switch and no settings, by their place among the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Switches(u32);

impl Switches {
    /// Those of a preset.
    pub(super) fn of(preset: &str) -> Self {
        let mut all = Self::default();
        for (number, switch) in switches() {
            all.set(number, switch.presets.contains(&preset));
        }
        all
    }

    pub(crate) const fn is_on(self, number: u8) -> bool {
        self.0 & (1 << number) != 0
    }

    pub(crate) const fn set(&mut self, number: u8, on: bool) {
        self.0 = if on { self.0 | 1 << number } else { self.0 & !(1 << number) };
    }
}
