//! The words of filters: fields, and the values of those that have a fixed set.

use acpdb_engine::event::{Actor, KIND_LABELS, PartKind};
use acpdb_engine::fold::{FaceState, ItemKind, RuleKind, ShortenKind, Status};

use crate::items::ItemRow;

/// Fields, each with an example of its values.
pub const FIELDS: &[(&str, &str)] = &[
    ("kind", "tool"),
    ("tool", "read"),
    ("file", "src/**"),
    ("session", "ses_01"),
    ("host", "claude-code"),
    ("call", "toolu_01"),
    ("state", "superseded"),
    ("status", "failed"),
    ("rule", "file"),
    ("turn", "10..20"),
    ("seq", "800.."),
    ("tokens", ">1000"),
    ("since", "2d"),
    ("until", "yesterday"),
    ("text", "\"connection refused\""),
    ("actor", "assistant"),
    ("title", "parser"),
    ("project", "shop"),
    ("model", "opus"),
    ("cost", ">0.50"),
    ("duration", ">10m"),
];

/// A field by its name in lower case, with an example. As in other tools, `is:` means `state:`.
pub fn field(name: &str) -> Option<(&'static str, &'static str)> {
    let name = if name == "is" { "state" } else { name };
    FIELDS.iter().copied().find(|(known, _)| *known == name)
}

/// A kind of event or item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindWord {
    /// A kind of event, by its number.
    Event(u16),
    /// A group of kinds.
    Group(KindGroup),
    /// A kind of item.
    Item(ItemKind),
}

/// Kinds of events that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindGroup {
    /// Beginnings, turns, rewinds, acts of a host.
    Session,
    /// Messages.
    Message,
    /// Tool calls and changed files.
    Tool,
    /// Todos and tasks.
    Todo,
    /// Memory.
    Memory,
    /// Acts on the context, and served contexts.
    Context,
    /// Policies.
    Policy,
    /// The store itself.
    Store,
}

const GROUPS: &[(&str, KindGroup)] = &[
    ("session", KindGroup::Session),
    ("message", KindGroup::Message),
    ("tool", KindGroup::Tool),
    ("todo", KindGroup::Todo),
    ("memory", KindGroup::Memory),
    ("context", KindGroup::Context),
    ("policy", KindGroup::Policy),
    ("store", KindGroup::Store),
];

impl KindGroup {
    /// Whether a kind of event is of the group. The numbers of a group are a range of the format.
    const fn holds(self, number: u16) -> bool {
        match self {
            Self::Session => number < 16,
            Self::Message => 16 <= number && number < 32,
            Self::Tool => 32 <= number && number < 48,
            Self::Todo => 48 <= number && number < 64,
            Self::Memory => 64 <= number && number < 80,
            Self::Context => 80 <= number && number < 96,
            Self::Policy => 96 <= number && number < 112,
            Self::Store => 112 <= number && number < 128,
        }
    }
}

const ITEM_KINDS: &[(&str, ItemKind)] = &[
    ("call", ItemKind::Call),
    ("result", ItemKind::Result),
    ("text", ItemKind::Text),
    ("reasoning", ItemKind::Reasoning),
    ("media", ItemKind::Media),
    ("opaque", ItemKind::Opaque),
    ("injected", ItemKind::Injected),
];

impl KindWord {
    pub(super) fn parse(word: &str) -> Option<Self> {
        let of =
            |list: &[(&str, KindGroup)]| list.iter().find(|(name, _)| *name == word).map(|(_, group)| *group);
        if let Some(group) = of(GROUPS) {
            return Some(Self::Group(group));
        }
        if let Some((_, kind)) = ITEM_KINDS.iter().find(|(name, _)| *name == word) {
            return Some(Self::Item(*kind));
        }
        KIND_LABELS.iter().find(|(_, name)| *name == word).map(|(number, _)| Self::Event(*number))
    }

    /// Whether an event is of it. `parts` are the kinds of a message's parts; `None`: not known yet.
    pub(crate) fn is_event(self, number: u16, parts: Option<&[PartKind]>) -> Option<bool> {
        const MESSAGES: [u16; 2] = [16, 17];
        match self {
            Self::Event(event) => Some(event == number),
            Self::Group(group) => Some(group.holds(number)),
            Self::Item(ItemKind::Call) => Some(number == 32 || number == 33),
            Self::Item(ItemKind::Injected) => Some(number == 85),
            Self::Item(_) if !MESSAGES.contains(&number) => Some(false),
            Self::Item(kind) => parts.map(|parts| parts.iter().any(|part| is_part(kind, *part))),
        }
    }

    /// Whether an item is of it.
    pub(crate) fn is_item(self, kind: ItemKind) -> bool {
        let is_call = matches!(kind, ItemKind::Call | ItemKind::Result);
        match self {
            Self::Item(wanted) => wanted == kind,
            // An item stands for the event that recorded it.
            Self::Group(KindGroup::Tool) | Self::Event(32 | 33) => is_call,
            Self::Group(KindGroup::Message) | Self::Event(16 | 17) => !is_call && kind != ItemKind::Injected,
            Self::Group(KindGroup::Context) | Self::Event(85) => kind == ItemKind::Injected,
            Self::Group(_) | Self::Event(_) => false,
        }
    }
}

const fn is_part(kind: ItemKind, part: PartKind) -> bool {
    matches!(
        (kind, part),
        (ItemKind::Text, PartKind::Text)
            | (ItemKind::Reasoning, PartKind::Reasoning)
            | (ItemKind::Media, PartKind::Media)
            | (ItemKind::Opaque, PartKind::Opaque)
            | (ItemKind::Result, PartKind::Result)
    )
}

/// How an item stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateWord {
    /// The model sees its content.
    Current,
    /// It is in the context, but its content is not shown, or it left the context.
    Hidden,
    /// A newer item made it stale.
    Superseded,
    /// A request hid it.
    Discarded,
    /// A request put a summary in its place.
    Distilled,
    /// Its task ended.
    Evicted,
    /// A shorter form is shown.
    Shortened,
    /// The host put its own text in its place.
    Cleared,
    /// The context was replaced without it.
    Left,
    /// A rewind took it off the branch.
    OffBranch,
    /// A request removed its bytes.
    Erased,
    /// Damage took its bytes.
    Lost,
    /// It is kept in spite of the rules.
    Pinned,
}

pub(super) const STATES: &[(&str, StateWord)] = &[
    ("current", StateWord::Current),
    ("hidden", StateWord::Hidden),
    ("superseded", StateWord::Superseded),
    ("discarded", StateWord::Discarded),
    ("distilled", StateWord::Distilled),
    ("evicted", StateWord::Evicted),
    ("shortened", StateWord::Shortened),
    ("cleared", StateWord::Cleared),
    ("left", StateWord::Left),
    ("off_branch", StateWord::OffBranch),
    ("erased", StateWord::Erased),
    ("lost", StateWord::Lost),
    ("pinned", StateWord::Pinned),
];

impl StateWord {
    /// Whether an item stands so.
    pub fn is(self, row: &ItemRow) -> bool {
        let cause = row.cause.unwrap_or_default();
        match self {
            Self::Current => row.is_visible() || (row.in_context && row.state == FaceState::Absent),
            Self::Hidden => !Self::Current.is(row),
            Self::Superseded => row.rule.is_some(),
            Self::Discarded => cause == "discarded",
            Self::Distilled => cause == "distilled",
            Self::Evicted => cause == "evicted" || cause == "rolling_prune",
            Self::Shortened => row.state == FaceState::Shortened,
            Self::Cleared => cause == "cleared_by_host",
            Self::Left => cause == "left" || cause == "abandoned",
            Self::OffBranch => cause == "off_branch",
            Self::Erased => cause == "erased",
            Self::Lost => cause == "lost",
            Self::Pinned => row.pinned,
        }
    }
}

pub(super) const STATUSES: &[(&str, Status)] = &[
    ("pending", Status::Pending),
    ("completed", Status::Completed),
    ("failed", Status::Failed),
    ("aborted", Status::Aborted),
];

pub(super) const ACTORS: &[(&str, Actor)] = &[
    ("user", Actor::User),
    ("assistant", Actor::Assistant),
    ("tool", Actor::Tool),
    ("host", Actor::Host),
    ("policy", Actor::Policy),
];

/// Names of rules that supersede or shorten.
pub(super) fn rules() -> Vec<&'static str> {
    let mut names: Vec<&str> = RuleKind::all().map(RuleKind::label).collect();
    names.dedup();
    names.extend(ShortenKind::all().map(ShortenKind::label));
    names
}

/// Names of kinds: groups, items, events.
pub(super) fn kinds() -> Vec<&'static str> {
    let groups = GROUPS.iter().map(|(name, _)| *name);
    let items = ITEM_KINDS.iter().map(|(name, _)| *name);
    let is_item = |name: &&str| ITEM_KINDS.iter().any(|(known, _)| known == name);
    let events = KIND_LABELS.iter().map(|(_, name)| *name).filter(|name| !is_item(name));
    groups.chain(items).chain(events).collect()
}
