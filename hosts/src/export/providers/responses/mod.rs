//! `OpenAI`'s responses.

mod exchange;
mod export;
mod lint;

use super::{FormatSpec, Provider, RequestRules, ToolStyle, Wire, no_model};
use crate::import::json::{elements, member};

pub(super) const FORM: FormatSpec = FormatSpec {
    name: "responses",
    renderer: export::RENDERER,
    export: export::export,
    request: Some(RequestRules {
        provider: Provider::Openai,
        marked: None,
        clears: false,
        binds_reasoning: false,
        names_model: true,
        tools: ToolStyle {
            is_own: |definition| {
                let has = |name: &str| member(Some(definition), name).is_some();
                has("type") && !has("function") && !has("input_schema")
            },
            write: |tool, json| {
                json.text("type", "function");
                tool.members("parameters", json);
            },
            inside: None,
        },
        check: lint::check,
        opaque: &[("encrypted_content", "The encrypted content could not be verified.")],
        skips: None,
        wire: Wire {
            paths: &["/responses"],
            list: "input",
            model: no_model,
            request: exchange::request,
            made: exchange::answer,
            messages: |text, names, unknown| exchange::messages(&elements(text)?, names, unknown),
            texts_params: true,
            result: None,
        },
    }),
};
