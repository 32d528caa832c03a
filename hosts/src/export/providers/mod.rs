//! The providers: how a request of each is written, read and checked. One folder a provider, and one row in [`Format`]'s list.
//!
//! ```text
//! providers/gemini/   mod       its Form, and its Maker: all that others ask about it
//!                     export    writes a request               asked by `export()`
//!                     exchange  reads a request and an answer  asked by `exchange`
//!                     lint      checks a request               asked by `lint`
//!                     types     a request as a value, for hosts in Rust
//! ```
//!
//! Commands that list formats (options, completion, `context --served`) read the list here. Code outside of a
//! provider's folder asks its [`FormatSpec`] and names no provider; `tests/tests/tidy.rs` counts those that do.

mod plain;

use std::collections::BTreeSet;

use acpdb_engine::Error;
use acpdb_engine::event::Role;
use serde_json::Value;

use super::Export;
use super::prompt::ToolDefinition;
use super::provider::Opaque;
use super::source::ExportSource;
use super::turns::MessagePiece;
use super::write::JsonWriter;
use crate::exchange::{BuiltAnswer, ConversationState, Message, MessageNames, Talk};
use crate::lint::Findings;

/// The formats of requests, each with its folder and its line in a list of formats.
macro_rules! formats {
    ($($name:ident $folder:ident $about:literal)+) => {
        $(mod $folder;)+

        const FOLDERS: &[&str] = &[$(stringify!($folder)),+];

        /// The format of an export.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Format {
            $(#[doc = $about] $name,)+
            /// A transcript for people
            Markdown,
            /// A transcript in plain text
            Text,
        }

        impl Format {
            /// The formats that a provider reads.
            pub const REQUESTS: [Self; FOLDERS.len()] = [$(Self::$name),+];

            /// All formats.
            pub const ALL: [Self; FOLDERS.len() + 2] = [$(Self::$name,)+ Self::Markdown, Self::Text];

            /// A line that describes it.
            pub const fn about(self) -> &'static str {
                match self {
                    $(Self::$name => $about,)+
                    Self::Markdown => "A transcript for people",
                    Self::Text => "A transcript in plain text",
                }
            }

            pub(super) const fn form(self) -> &'static FormatSpec {
                match self {
                    $(Self::$name => &$folder::FORM,)+
                    Self::Markdown => &plain::MARKDOWN,
                    Self::Text => &plain::TEXT,
                }
            }
        }
    };
}

formats! {
    Anthropic anthropic "Anthropic's messages"
    Openai openai "Chat completions"
    Responses responses "Responses"
    Gemini gemini "Gemini's contents"
}

/// The makers of models, each with the folder that tells their names, in the order in which they are asked.
macro_rules! makers {
    ($($name:ident $folder:ident $about:literal)+) => {
        /// The provider that made a message.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Provider {
            $(#[doc = $about] $name,)+
            /// Another provider.
            Other,
        }

        impl Provider {
            pub(super) const KNOWN: &[Self] = &[$(Self::$name),+];

            pub(super) const fn maker(self) -> Option<&'static Maker> {
                match self {
                    $(Self::$name => Some(&$folder::MAKER),)+
                    Self::Other => None,
                }
            }
        }
    };
}

makers! {
    Anthropic anthropic "Anthropic"
    Google gemini "Google"
    Openai openai "`OpenAI`"
}

/// A format: its name, the function that writes it, and its provider's rules for requests.
pub(crate) struct FormatSpec {
    /// The name, as commands spell it and as `ContextServed` records it.
    pub(crate) name: &'static str,
    /// Version of this function: it names the bytes.
    pub(crate) renderer: u32,
    pub(in crate::export) export: fn(ExportSource<'_>) -> Result<Export, Error>,
    /// For formats that a provider reads.
    pub(crate) request: Option<RequestRules>,
}

/// The rules of a provider for requests.
pub(crate) struct RequestRules {
    pub(crate) provider: Provider,
    /// The format's name with marks for the provider's cache, if it has any.
    pub(crate) marked: Option<&'static str>,
    /// The provider can clear old results by itself.
    pub(crate) clears: bool,
    /// Reasoning may be bound to everything before it, and must stay while its calls are open.
    pub(crate) binds_reasoning: bool,
    /// The request names its model; else its address does.
    pub(crate) names_model: bool,
    pub(crate) tools: ToolStyle,
    pub(crate) check: Check,
    /// Fields that only the provider can read, each with the provider's words for a wrong value.
    pub(crate) opaque: &'static [(&'static str, &'static str)],
    /// The value that may stand in such a field where the provider's own value is lost.
    pub(crate) skips: Option<&'static str>,
    pub(crate) wire: Wire,
}

/// Checks a body: with the body before it, and with its model.
pub(crate) type Check = fn(&Value, Option<&Value>, Option<&str>, &mut Findings);

/// How a provider defines tools.
pub(crate) struct ToolStyle {
    /// Whether a definition has this form already.
    pub(crate) is_own: fn(&str) -> bool,
    /// Writes a definition's members.
    pub(in crate::export) write: fn(&ToolDefinition<'_>, &mut JsonWriter),
    /// The member that holds all definitions of an element, where they do not stand in the list themselves.
    pub(crate) inside: Option<&'static str>,
}

/// How requests and answers are read.
pub(crate) struct Wire {
    /// Ends of the paths of requests.
    pub(crate) paths: &'static [&'static str],
    /// The member of a request that holds its messages.
    pub(crate) list: &'static str,
    /// The model that a path names.
    pub(crate) model: fn(&str) -> Option<&str>,
    /// Reads a request; with the model that its path names.
    pub(crate) request: for<'a> fn(&'a str, Option<&str>, Option<&ConversationState>) -> Option<Talk<'a>>,
    /// Puts an answer together of its pieces.
    pub(crate) made: fn(&[Value]) -> Option<BuiltAnswer>,
    /// The messages that the next request makes of an answer.
    pub(crate) messages:
        for<'a> fn(&'a str, &mut MessageNames, &mut BTreeSet<String>) -> Option<Vec<Message<'a>>>,
    /// Parameters of calls are a text in the request.
    pub(crate) texts_params: bool,
    /// The member of a result that holds its text, where the result is no text itself.
    pub(crate) result: Option<&'static str>,
}

/// A text that opencode keeps, by the provider's and the field's name.
pub(in crate::export) type Kept<'a> = dyn Fn(&str, &str) -> Option<String> + 'a;

/// A maker of models: its names, its hosts and its fields.
pub(crate) struct Maker {
    /// Whether a name of a model or a provider, in small letters, is this maker's; also with the part behind its last `/`
    /// or `:`.
    pub(crate) is_named: fn(&str, &str) -> bool,
    /// Host programs that speak to this provider only.
    pub(crate) hosts: &'static [&'static str],
    /// An opaque field in the form in which opencode keeps it.
    pub(in crate::export) kept: fn(&Kept<'_>) -> Option<Opaque>,
    /// Whether a type of part is this provider's alone; `None`: its parts have no type.
    pub(crate) owns: Option<fn(&str) -> bool>,
}

/// The path names no model.
pub(crate) const fn no_model(_path: &str) -> Option<&str> {
    None
}

/// Runs of pieces that were said in one message.
pub(super) fn by_message(said: &[MessagePiece]) -> impl Iterator<Item = &[MessagePiece]> {
    let key = |said: &MessagePiece| match said {
        MessagePiece::Text { key, role, .. } => (key.clone(), *role == Role::System),
        MessagePiece::Media { key, .. } => (key.clone(), false),
        MessagePiece::Opaque { .. } => (None, false),
    };
    said.chunk_by(move |one, other| {
        let (one, other) = (key(one), key(other));
        one.0.is_some() && one == other
    })
}
