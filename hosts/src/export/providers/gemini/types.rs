//! A request to Gemini as a value.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::export::{Export, Format};

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
    pub fn gemini(&self) -> Option<GeminiRequest> {
        self.value(Format::Gemini)
    }
}
