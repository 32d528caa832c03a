//! The action of a command on a context, and its targets.

use crate::ids::ItemId;

/// An action on targets.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// use acpdb_engine::{ContextAction, Target};
///
/// let hidden = store.context(session.id(), ContextAction::Discard, vec![(Target::Item(item), None)])?;
/// assert_eq!(hidden.hidden, [item]);
/// let shown = store.context(session.id(), ContextAction::Restore, vec![(Target::Item(item), None)])?;
/// assert_eq!(shown.shown, [item]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ContextAction {
    /// Hide.
    Discard,
    /// Hide behind a summary.
    Distill,
    /// Show again.
    Restore,
}

impl ContextAction {
    pub(super) const fn verb(self) -> &'static str {
        match self {
            Self::Discard => "discard",
            Self::Distill => "distill",
            Self::Restore => "restore",
        }
    }

    pub(super) const fn past(self) -> &'static str {
        match self {
            Self::Discard => "Discarded",
            Self::Distill => "Distilled",
            Self::Restore => "Restored",
        }
    }
}

/// The items that a command means.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let long = "fn main() {} // and so much more that hiding it is worth a line in its place\n".repeat(20);
/// # let read = session.append([
/// #     acpdb_engine::Entry::step("step-1"),
/// #     acpdb_engine::Entry::tool_started("call-1", "read", r#"{"filePath":"src/main.rs"}"#),
/// #     acpdb_engine::Entry::tool_completed("call-1", &long),
/// # ])?;
/// # let item = read.items[1].ok_or("it is new")?;
/// use acpdb_engine::{ContextAction, Target};
///
/// // By the id that the host gave the call; with a summary in its place.
/// let target = Target::Call("call-1".into());
/// let reply = store.context(session.id(), ContextAction::Distill, vec![(target, Some("an empty main".into()))])?;
/// assert_eq!(reply.hidden, [item]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// As an agent types it: a hash, a range `#12..#40` of the context, else a pattern `start...end`. A hash means the call that is shown with it; if none is, all calls
    /// whose hash begins so.
    Auto(String),
    /// As a person types it: the same, but a hash means the call that is shown with it, and is refused if it could mean
    /// several.
    Shown(String),
    /// An item by its id.
    Item(ItemId),
    /// The newest call with this host id.
    Call(String),
}

impl From<&str> for Target {
    fn from(text: &str) -> Self {
        Self::Auto(text.to_owned())
    }
}

impl From<ItemId> for Target {
    fn from(item: ItemId) -> Self {
        Self::Item(item)
    }
}

impl Target {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Auto(text) | Self::Shown(text) => text.clone(),
            Self::Item(item) => item.to_string(),
            Self::Call(call) => call.clone(),
        }
    }
}
