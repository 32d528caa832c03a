//! A request to a chat completion as a value.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::export::{Export, Format};

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

impl Export {
    /// The request as a value; `None` if it is one of another format.
    pub fn openai(&self) -> Option<OpenaiRequest> {
        self.value(Format::Openai)
    }
}
