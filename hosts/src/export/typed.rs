//! Requests as values, for hosts that build on them in Rust.
//!
//! Read from the very bytes of an export ([`Export::anthropic`](super::Export::anthropic) and its like), so both forms
//! say the same. Fields that acpdb does not write are kept in `rest`.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Export, Format};

/// A request to Anthropic.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AnthropicRequest {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// System prompt: a text or a list of blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<Value>,
    /// What the provider is to clear by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_management: Option<Value>,
    /// Messages.
    pub messages: Vec<AnthropicMessage>,
    /// Further parameters.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct AnthropicMessage {
    /// `user` or `assistant`.
    pub role: String,
    /// Its blocks.
    pub content: Vec<AnthropicBlock>,
}

/// A block of a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AnthropicBlock {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// Reasoning.
    Thinking {
        /// The text.
        thinking: String,
        /// The provider's signature.
        signature: String,
    },
    /// Reasoning that only the provider can read.
    RedactedThinking {
        /// The data.
        data: String,
    },
    /// A call.
    ToolUse {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
        /// Its parameters.
        input: Map<String, Value>,
    },
    /// A result.
    ToolResult {
        /// The id of its call.
        tool_use_id: String,
        /// A text or a list of blocks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
        /// Whether the call failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// Anything else.
    #[serde(untagged)]
    Other(Value),
}

/// A request to a chat completion.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenaiRequest {
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// Messages.
    pub messages: Vec<OpenaiMessage>,
    /// Further parameters.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct OpenaiMessage {
    /// `system`, `user`, `assistant` or `tool`.
    pub role: String,
    /// A text, a list of parts, or null beside calls.
    pub content: Value,
    /// Calls.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<OpenaiCall>,
    /// Of a result, the id of its call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

/// A call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenaiCall {
    /// Its id.
    pub id: String,
    /// `function`.
    #[serde(rename = "type")]
    pub kind: String,
    /// What is called.
    pub function: OpenaiFunction,
}

/// What is called.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct OpenaiFunction {
    /// The tool.
    pub name: String,
    /// Its parameters: JSON in a string.
    pub arguments: String,
}

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

/// A request to Gemini.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GeminiRequest {
    /// Tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Value>,
    /// System prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_instruction: Option<Value>,
    /// Contents.
    pub contents: Vec<GeminiContent>,
    /// Further parameters.
    #[serde(flatten)]
    pub rest: Map<String, Value>,
}

/// A content.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct GeminiContent {
    /// `user` or `model`.
    pub role: String,
    /// Its parts, as the API writes them: they have no type to tell them by.
    pub parts: Vec<Map<String, Value>>,
}

impl Export {
    /// The request as a value; `None` if it is one of another format.
    pub fn anthropic(&self) -> Option<AnthropicRequest> {
        self.value(Format::Anthropic)
    }

    /// Likewise.
    pub fn openai(&self) -> Option<OpenaiRequest> {
        self.value(Format::Openai)
    }

    /// Likewise.
    pub fn responses(&self) -> Option<ResponsesRequest> {
        self.value(Format::Responses)
    }

    /// Likewise.
    pub fn gemini(&self) -> Option<GeminiRequest> {
        self.value(Format::Gemini)
    }

    fn value<'a, T: Deserialize<'a>>(&'a self, format: Format) -> Option<T> {
        // The bytes were written here as this type has them: the format says which.
        (self.format == format).then(|| serde_json::from_slice(&self.bytes).ok())?
    }
}
