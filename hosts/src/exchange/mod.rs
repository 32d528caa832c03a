//! Requests of a program and answers of its provider, as facts: a request's messages, and the answer, whole or streamed.
//!
//! ```text
//! request -> Talk { head, messages }  -> entries()       every message and call, each with an origin
//! answer  -> pieces put together      -> the message as the next request will say it -> entries()
//! ```
//!
//! A request tells the whole conversation each time. A message is named by its content and by its number among equal ones,
//! so telling it again adds nothing, wherever it stands then; an answer is named as the message that the next request
//! makes of it (several, where the API has no message around its pieces). A call without an id is named by its message and its place in it.
//!
//! It reads Anthropic's messages, `OpenAI`'s responses and chat completions, and Gemini's contents. Members that it does
//! not understand are noted by name. Half an answer gives no facts, for the next request tells the parts that the program
//! kept.

mod answer;
mod talk;

#[cfg(test)]
mod tests;

use crate::export::Format;

pub use answer::{Answer, answer};
pub use talk::{Answered, ConversationState, Extent, Message, RequestHead, RequestedCall, Talk};

pub(crate) use answer::{BuiltAnswer, add, count, parts, text, texts, usage_of};
pub(crate) use talk::{MessageNames, UnnamedCall, canonical, note_unknown, params};

/// Reads a request; `None`: the body is no request of this format.
///
/// Cost: one pass.
pub fn request<'a>(format: Format, path: &str, body: &'a str) -> Option<Talk<'a>> {
    request_after(format, path, body, None)
}

/// As [`request`], behind an answer: a request that only adds to it names its messages as the whole conversation does.
pub fn request_after<'a>(
    format: Format,
    path: &str,
    body: &'a str,
    known: Option<&ConversationState>,
) -> Option<Talk<'a>> {
    let wire = &format.request()?.wire;
    (wire.request)(body, (wire.model)(path), known)
}
