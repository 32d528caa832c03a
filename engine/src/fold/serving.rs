//! How a context is served: mode, rule, weights and prices, as part of the policy.
//!
//! ```text
//! mode        append_only   batched (default)   eager
//! rule        hybrid (default)   ski_rental   cold   prompts    when a batch is worth its rewrite
//! price       read, write, input, ttl                        of one token, relative to whatever unit all share
//! ```
//!
//! Data only; what they decide stands in [`serve`](crate::serve).

use serde::{Deserialize, Serialize};

/// When what was concluded reaches the model.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ServeMode {
    /// What was sent is never changed, unless a request asks or the budget needs it.
    AppendOnly,
    /// In batches, when a rewrite pays.
    #[default]
    Batched,
    /// At once.
    Eager,
}

impl ServeMode {
    /// All modes, in order.
    pub const ALL: &'static [Self] = &[Self::AppendOnly, Self::Batched, Self::Eager];

    /// Its name in policies and JSON.
    pub const fn label(self) -> &'static str {
        match self {
            Self::AppendOnly => "append_only",
            Self::Batched => "batched",
            Self::Eager => "eager",
        }
    }
}

/// When a batch is worth its rewrite.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FlushRule {
    /// What it will save over the horizon, and half of what waiting has cost, outweigh the rewrite.
    #[default]
    Hybrid,
    /// What waiting has cost outweighs the rewrite: never worse than twice the best, and seldom the first to move.
    SkiRental,
    /// Only when the cache is cold and the rewrite costs nothing.
    Cold,
    /// As `hybrid`, but only with the first request after a prompt: while the model works, nothing changes under it.
    Prompts,
}

/// What a token of input costs, in a unit that all share: providers' price lists are relative to the plain input price.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// A token that is neither read from the cache nor written to it.
    pub input: f64,
    /// A token that is read from the cache.
    pub read: f64,
    /// A token that is written to the cache.
    pub write: f64,
    /// Seconds after its last use at which the cache is cold; 0: it never is.
    pub ttl_seconds: u32,
}

/// A price that cannot be reckoned with.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("the price `{name}` is {value}; a price is a number, 0 or more, and reading costs more than nothing")]
pub struct PriceError {
    /// Which one.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

impl Default for Prices {
    /// A provider's cache of five minutes: reading costs a tenth, writing a quarter more.
    fn default() -> Self {
        Self { input: 1.0, read: 0.1, write: 1.25, ttl_seconds: 300 }
    }
}

impl Prices {
    /// No cache: every token costs the same every time.
    pub const FLAT: Self = Self { input: 1.0, read: 1.0, write: 1.0, ttl_seconds: 0 };

    /// Checks that they can be reckoned with.
    ///
    /// # Errors
    /// [`PriceError`], naming the first that is negative, no number, or a reading price of nothing.
    pub fn checked(self) -> Result<Self, PriceError> {
        for (name, value) in [("input", self.input), ("read", self.read), ("write", self.write)] {
            if !value.is_finite() || value < 0.0 || name == "read" && value == 0.0 {
                return Err(PriceError { name, value });
            }
        }
        Ok(self)
    }

    /// What rewriting a token costs beyond reading it, in readings of it.
    pub fn kappa(&self) -> f64 {
        if self.read > 0.0 { ((self.write - self.read) / self.read).max(0.0) } else { 0.0 }
    }
}

/// How a context is served.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ServeSettings {
    /// When what was concluded reaches the model.
    pub mode: ServeMode,
    /// When a batch is worth its rewrite.
    pub rule: FlushRule,
    /// Requests for which a saving counts in advance.
    pub horizon: f64,
    /// Weight of what waiting has cost.
    pub waiting: f64,
    /// Runs of lines that the model sees elsewhere become pointers before they are first sent.
    pub pointing: bool,
    /// Estimated tokens that a pointer must save.
    pub pointing_tokens_min: u32,
    /// Most pointers in one output.
    pub pointers_max: u32,
    /// What a token costs.
    pub price: Prices,
}

impl Default for ServeSettings {
    fn default() -> Self {
        Self {
            mode: ServeMode::Batched,
            rule: FlushRule::Hybrid,
            horizon: 8.0,
            waiting: 0.5,
            pointing: false,
            pointing_tokens_min: 100,
            pointers_max: 6,
            price: Prices::default(),
        }
    }
}
