//! `OpenAI`, and the many providers that offer its chat completions.

mod exchange;
mod export;
mod lint;

use super::{FormatSpec, Maker, Provider, RequestRules, ToolStyle, Wire, no_model};
use crate::export::provider::Opaque;
use crate::import::json::member;

pub(super) const FORM: FormatSpec = FormatSpec {
    name: "openai",
    renderer: export::RENDERER,
    export: export::export,
    request: Some(RequestRules {
        provider: Provider::Openai,
        marked: None,
        clears: false,
        binds_reasoning: false,
        names_model: true,
        tools: ToolStyle {
            is_own: |definition| member(Some(definition), "function").is_some(),
            write: |tool, json| {
                json.text("type", "function");
                json.open_member("function", b'{');
                tool.members("parameters", json);
                json.close(b'}');
            },
            inside: None,
        },
        check: lint::check,
        opaque: &[],
        skips: None,
        wire: Wire {
            paths: &["/chat/completions"],
            list: "messages",
            model: no_model,
            request: exchange::request,
            made: exchange::answer,
            messages: |text, names, _| Some(vec![exchange::message(text, names)?]),
            texts_params: true,
            result: None,
        },
    }),
};

pub(super) const MAKER: Maker = Maker {
    is_named: |name, last| {
        let starts = ["gpt", "o1", "o3", "o4", "codex", "chatgpt"].iter().any(|word| last.starts_with(word));
        // These models are open, so other providers run them.
        !name.contains("gpt-oss") && (starts || name.contains("openai"))
    },
    hosts: &["codex", "openai-messages"],
    kept: |field| field("openai", "reasoningEncryptedContent").map(Opaque::Signature),
    owns: Some(|kind| {
        kind.ends_with("_call")
            || kind.ends_with("_call_output")
            || ["input_", "output_", "compaction"].iter().any(|start| kind.starts_with(start))
            || ["reasoning", "item_reference", "image_url"].contains(&kind)
    }),
};
