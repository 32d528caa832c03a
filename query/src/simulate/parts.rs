//! The parts of a price: which tokens of the input it was paid for.
//!
//! ```text
//! request   [prefix][ old items ...................][ young items ]
//!           read    read        | written again: a rewrite         written
//! fetched   hidden texts that the model used all the same, sent again
//! ```
//!
//! A rewrite is priced apart: the tokens that could have been read if no sent text had changed, at the difference of writing
//! and reading. All parts together are the price with the outputs that had to be fetched again.

use acpdb_engine::event::{Face, Role, ToolClass};
use acpdb_engine::fold::{ItemKind, ItemView};
use serde::Serialize;

/// Steps whose items are young: no rule of a preset hides the output of so new a call only for its age.
pub const YOUNG_STEP_COUNT: usize = 4;

/// Kinds of items that [`OldItems`] tells apart.
pub(super) const KIND_COUNT: usize = 8;

/// The price of old items, by their kind.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct OldItems {
    /// Texts of the person, or of the host in the person's place.
    pub prompts: f64,
    /// Texts of the model.
    pub answers: f64,
    /// Reasoning of the model.
    pub reasoning: f64,
    /// Outputs of reads.
    pub reads: f64,
    /// Outputs of searches.
    pub searches: f64,
    /// Outputs of all other calls, command lines among them.
    pub outputs: f64,
    /// Parameters of writes and edits.
    pub changes: f64,
    /// Parameters of all other calls.
    pub inputs: f64,
}

/// The parts of a price, each in the unit of the prices.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct BillParts {
    /// System prompt and tools.
    pub prefix: f64,
    /// Items of the newest steps, as many as [`YOUNG_STEP_COUNT`].
    pub young: f64,
    /// All other items.
    pub old: f64,
    /// Writing again of tokens that could have been read if no sent text had changed.
    pub rewrites: f64,
    /// Outputs that were hidden and then needed.
    pub fetched: f64,
    /// Old items by their kind.
    pub old_items: OldItems,
}

impl OldItems {
    pub(super) fn of(values: [f64; KIND_COUNT]) -> Self {
        let [prompts, answers, reasoning, reads, searches, outputs, changes, inputs] = values;
        Self { prompts, answers, reasoning, reads, searches, outputs, changes, inputs }
    }

    fn values(&self) -> [f64; KIND_COUNT] {
        let Self { prompts, answers, reasoning, reads, searches, outputs, changes, inputs } = *self;
        [prompts, answers, reasoning, reads, searches, outputs, changes, inputs]
    }

    fn map(&self, change: impl Fn(usize, f64) -> f64) -> Self {
        let mut values = self.values();
        values.iter_mut().enumerate().for_each(|(place, value)| *value = change(place, *value));
        Self::of(values)
    }
}

impl BillParts {
    /// All parts together.
    pub fn total(&self) -> f64 {
        self.prefix + self.young + self.old + self.rewrites + self.fetched
    }

    /// Adds the parts of another price.
    pub fn add(&mut self, other: &Self) {
        self.prefix += other.prefix;
        self.young += other.young;
        self.old += other.old;
        self.rewrites += other.rewrites;
        self.fetched += other.fetched;
        let values = other.old_items.values();
        self.old_items = self.old_items.map(|place, value| value + values.get(place).copied().unwrap_or(0.0));
    }

    /// The parts relative to a price; all 0 if that is 0.
    #[must_use]
    pub fn relative_to(&self, price: f64) -> Self {
        let ratio = |part: f64| if price > 0.0 { part / price } else { 0.0 };
        Self {
            prefix: ratio(self.prefix),
            young: ratio(self.young),
            old: ratio(self.old),
            rewrites: ratio(self.rewrites),
            fetched: ratio(self.fetched),
            old_items: self.old_items.map(|_, value| ratio(value)),
        }
    }
}

/// The kind of a face, as a place among those of [`OldItems`].
pub(super) fn kind_of(item: &ItemView, face: Face) -> usize {
    match (item.kind, face, item.class) {
        (ItemKind::Reasoning, ..) => 2,
        (ItemKind::Call, Face::Input, Some(ToolClass::Write | ToolClass::Edit)) => 6,
        (ItemKind::Call, Face::Input, _) => 7,
        (ItemKind::Call | ItemKind::Result, _, Some(ToolClass::Read)) => 3,
        (ItemKind::Call | ItemKind::Result, _, Some(ToolClass::Search)) => 4,
        (ItemKind::Call | ItemKind::Result, ..) => 5,
        _ if item.role == Role::Assistant => 1,
        _ => 0,
    }
}
