//! A request to the responses API as a value.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::export::{Export, Format};

/// A request to the responses API.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ResponsesRequest {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// System prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Items.
    pub input: Vec<ResponsesItem>,
    /// Further parameters.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// An item.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ResponsesItem {
    /// A message.
    Message {
        /// `user`, `developer` or `assistant`.
        role: String,
        /// Its parts.
        content: Vec<Value>,
    },
    /// Reasoning.
    Reasoning {
        /// What may be read of it.
        summary: Vec<Value>,
        /// The rest, for the provider.
        encrypted_content: String,
    },
    /// A call.
    FunctionCall {
        /// Its id.
        call_id: String,
        /// The tool.
        name: String,
        /// Its parameters: JSON in a string.
        arguments: String,
    },
    /// A result.
    FunctionCallOutput {
        /// The id of its call.
        call_id: String,
        /// A text or a list of parts.
        output: Value,
    },
    /// A call with a text for parameters.
    CustomToolCall {
        /// Its id.
        call_id: String,
        /// The tool.
        name: String,
        /// The text.
        input: String,
    },
    /// Its result.
    CustomToolCallOutput {
        /// The id of its call.
        call_id: String,
        /// A text or a list of parts.
        output: Value,
    },
    /// Anything else.
    #[serde(untagged)]
    Other(Value),
}

impl Export {
    /// The request as a value; `None` if it is one of another format.
    pub fn responses(&self) -> Option<ResponsesRequest> {
        self.value(Format::Responses)
    }
}
