//! A request to Anthropic as a value.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::export::{Export, Format};

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

impl Export {
    /// The request as a value; `None` if it is one of another format.
    pub fn anthropic(&self) -> Option<AnthropicRequest> {
        self.value(Format::Anthropic)
    }
}
