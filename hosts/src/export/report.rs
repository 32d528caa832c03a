//! Parts that an export could not carry.

use std::collections::BTreeMap;

use acpdb_engine::ids::ItemId;
use serde::Serialize;

/// Items that are named for one reason; more are counted.
const ITEMS_MAX: usize = 8;

/// Names that are given for one reason; more are counted.
const NAMES_MAX: usize = 32;

/// Why something is not in an export, or not as it was recorded.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LeftOut {
    /// Reasoning of another provider, or without the signature that its own provider wants.
    ReasoningNotPortable,
    /// Reasoning that was bound to items that have changed.
    ReasoningUnbound,
    /// Reasoning of a run of which a part is hidden or shortened, or that nothing follows.
    ReasoningRun,
    /// Reasoning, as the options say.
    ReasoningDropped,
    /// Shortened parameters that are sent whole, because the provider signed something in the same reply.
    UnitKeptWhole,
    /// A call without a result.
    CallUnfinished,
    /// A call without a result, given a result that says so.
    ResultSynthetic,
    /// A result whose call was never recorded.
    ResultWithoutCall,
    /// The id of a call that was not unique, or not in the provider's form.
    CallRenamed,
    /// The name of a tool that was not in the provider's form.
    ToolRenamed,
    /// Parameters that are no JSON object, put into one.
    ParametersWrapped,
    /// A part that only its own provider understands.
    OpaqueNotPortable,
    /// An image or a document that the format cannot hold there; a line of text says so.
    MediaNotPortable,
    /// An empty text.
    TextEmpty,
    /// A text of the system in the middle of the conversation, said by the user.
    SystemAsUser,
    /// A placeholder, because the conversation does not begin with the user.
    UserPlaceholder,
    /// A tool's definition in a form that is not known.
    ToolDefinition,
    /// Request parameters of another provider.
    Parameters,
    /// A signature that is lost, so that its check is skipped.
    SignatureSkipped,
    /// Clearing that the policy asks for, and the provider cannot do by itself.
    ServerSide,
    /// A pattern of protected tools with wildcards: the provider is told the tools that it fits so far.
    PatternExpanded,
    /// A pattern of protected files: the provider spares tools, not files.
    FilesUnprotected,
    /// A text whose bytes are erased or damaged.
    Unreadable,
    /// A change that waits: for the user's next message where reasoning is bound to the items before it; for the answer to
    /// the calls at hand where it changes the reasoning that led to them.
    ChangeDeferred,
}

impl LeftOut {
    /// The reason in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::ReasoningNotPortable => "reasoning of another provider or without signature left out",
            Self::ReasoningUnbound => "reasoning left out, as something before it has changed",
            Self::ReasoningRun => "run of reasoning left out whole",
            Self::ReasoningDropped => "reasoning left out on request",
            Self::UnitKeptWhole => "shortened parameters sent whole, as they are signed",
            Self::CallUnfinished => "call without result left out",
            Self::ResultSynthetic => "call without result given one that says so",
            Self::ResultWithoutCall => "result without call left out",
            Self::CallRenamed => "call given another id",
            Self::ToolRenamed => "tool given another name",
            Self::ParametersWrapped => "parameters that are no object put into one",
            Self::OpaqueNotPortable => "part that only its own provider understands left out",
            Self::MediaNotPortable => "image or document replaced by a line of text",
            Self::TextEmpty => "empty text left out",
            Self::SystemAsUser => "text of the system said by the user",
            Self::UserPlaceholder => "placeholder put before the first message",
            Self::ToolDefinition => "definition of a tool left out",
            Self::Parameters => "request parameters of another provider left out",
            Self::SignatureSkipped => "lost signature marked to be skipped",
            Self::ServerSide => "clearing by the provider is not possible in this format",
            Self::PatternExpanded => "pattern of tools told as the tools that it fits so far",
            Self::FilesUnprotected => "pattern of protected files that the provider does not know of",
            Self::Unreadable => "erased or damaged text named as such",
            Self::ChangeDeferred => "change deferred to the model's next answer or the user's next message",
        }
    }
}

/// The items that one reason concerns.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Reason {
    /// How often it happened.
    pub count: u64,
    /// The first of the items.
    pub items: Vec<ItemId>,
    /// The first names that are no items: patterns of the policy.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
}

/// Parts that could not be carried, or were put differently, by reason.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct ExportReport {
    /// The items of each reason.
    pub reasons: BTreeMap<LeftOut, Reason>,
}

impl ExportReport {
    pub(super) fn note(&mut self, why: LeftOut, item: Option<ItemId>) {
        let reason = self.reasons.entry(why).or_default();
        reason.count = reason.count.saturating_add(1);
        reason.items.extend(item.filter(|_| reason.items.len() < ITEMS_MAX));
    }

    pub(super) fn note_name(&mut self, why: LeftOut, name: &str) {
        let reason = self.reasons.entry(why).or_default();
        reason.count = reason.count.saturating_add(1);
        if reason.names.len() < NAMES_MAX {
            reason.names.push(name.to_owned());
        }
    }

    /// How often something happened.
    pub fn count(&self, why: LeftOut) -> u64 {
        self.reasons.get(&why).map_or(0, |reason| reason.count)
    }

    /// Whether everything went in as it was recorded.
    pub fn is_empty(&self) -> bool {
        self.reasons.is_empty()
    }

    /// In lines for people.
    pub fn lines(&self) -> Vec<String> {
        let line = |(why, reason): (&LeftOut, &Reason)| {
            let items = reason.items.iter().map(ToString::to_string);
            let named: Vec<String> = items.chain(reason.names.iter().cloned()).collect();
            let more = if reason.count > named.len() as u64 && !named.is_empty() { ", .." } else { "" };
            let named =
                if named.is_empty() { String::new() } else { format!(" ({}{more})", named.join(", ")) };
            format!("{}: {}{named}", why.words(), reason.count)
        };
        self.reasons.iter().map(line).collect()
    }
}
