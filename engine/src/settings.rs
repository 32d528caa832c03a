//! The settings of a [`Policy`], by its parts. As JSON, each key is described by [`policy_keys`].

pub use crate::fold::policy::*;
pub use crate::fold::policy::{PriceError, Prices, ServeMode, ServeSettings};
pub use crate::fold::todo::{ReflectionSettings, ReminderSettings};
pub use crate::fold::{PolicyKey, policy_keys};
