//! What goes between a program and its provider, as facts: a request's messages, and the answer, whole or streamed.
//!
//! ```text
//! request -> Talk { head, messages }  -> entries()       every message and call, each with an origin
//! answer  -> pieces put together      -> the message as the next request will say it -> entries()
//! ```
//!
//! A request tells the whole conversation each time. A message is named by what it says and by its number among equal ones,
//! so telling it again adds nothing, wherever it stands then; an answer is named as the message that the next request
//! makes of it (several, where the API has no message around its pieces). A call without an id is named by its message and its place in it.
//!
//! It reads Anthropic's messages, `OpenAI`'s responses and chat completions, and Gemini's contents. What it does not understand
//! it counts by name; it says nothing of half an answer, for the next request tells what the program kept of it.

mod answer;
mod chat;
mod gemini;
mod messages;
mod responses;
mod talk;

#[cfg(test)]
mod tests;

pub use answer::{Answer, answer};
pub use talk::{Answered, Asked, Extent, Head, Message, Talk};

/// The API of a request.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Api {
    /// Anthropic's messages.
    Messages,
    /// `OpenAI`'s responses.
    Responses,
    /// `OpenAI`'s chat completions.
    Chat,
    /// Gemini's contents, streamed or not.
    Gemini,
}

impl Api {
    /// The API whose path this is, without what follows a `?`.
    pub fn of(path: &str) -> Option<Self> {
        let ends = [
            ("/messages", Self::Messages),
            ("/responses", Self::Responses),
            ("/chat/completions", Self::Chat),
            (":generateContent", Self::Gemini),
            (":streamGenerateContent", Self::Gemini),
        ];
        ends.into_iter().find_map(|(end, api)| path.ends_with(end).then_some(api))
    }

    /// The member of a request that holds its messages.
    pub const fn list(self) -> &'static str {
        match self {
            Self::Messages | Self::Chat => "messages",
            Self::Responses => "input",
            Self::Gemini => "contents",
        }
    }

    /// The model that a path names, where the API has it there.
    pub fn model_in(self, path: &str) -> Option<&str> {
        let (before, _) = path.rsplit_once(':').filter(|_| self == Self::Gemini)?;
        before.rsplit_once("/models/").map(|(_, model)| model).filter(|model| !model.is_empty())
    }
}

/// Reads a request; `None`: it is no such request.
///
/// Cost: one pass.
pub fn request<'a>(api: Api, path: &str, body: &'a str) -> Option<Talk<'a>> {
    match api {
        Api::Chat => chat::request(body),
        Api::Gemini => gemini::request(body, api.model_in(path)),
        Api::Messages => messages::request(body),
        Api::Responses => responses::request(body),
    }
}
