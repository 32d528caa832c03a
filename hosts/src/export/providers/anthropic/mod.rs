//! Anthropic: messages.

mod exchange;
mod export;
mod lint;

use super::{FormatSpec, Maker, Provider, RequestRules, ToolStyle, Wire, no_model};
use crate::export::provider::{COMPACTION, Opaque};
use crate::import::json::member;

pub(super) const FORM: FormatSpec = FormatSpec {
    name: "anthropic",
    renderer: export::RENDERER,
    export: export::export,
    request: Some(RequestRules {
        provider: Provider::Anthropic,
        marked: Some("anthropic-marked"),
        clears: true,
        binds_reasoning: true,
        names_model: true,
        tools: ToolStyle {
            is_own: |definition| {
                let has = |name: &str| member(Some(definition), name).is_some();
                has("input_schema") || (has("type") && has("name") && !has("parameters"))
            },
            write: |tool, json| tool.members("input_schema", json),
            inside: None,
        },
        check: lint::check,
        opaque: &[("signature", "Invalid `signature` in `thinking` block")],
        skips: None,
        wire: Wire {
            paths: &["/messages"],
            list: "messages",
            model: no_model,
            request: exchange::request,
            made: exchange::answer,
            messages: |text, names, _| Some(vec![exchange::message(text, names)?]),
            texts_params: false,
            result: None,
        },
    }),
};

pub(super) const MAKER: Maker = Maker {
    is_named: |name, _| name.contains("claude") || name.contains("anthropic"),
    hosts: &["claude-code"],
    kept: |field| {
        let sealed = field("anthropic", "redactedData").map(Opaque::Redacted);
        sealed.or_else(|| field("anthropic", "signature").map(Opaque::Signature))
    },
    owns: Some(|kind| {
        let known =
            ["thinking", "redacted_thinking", "tool_use", "tool_result", "tool_reference", "search_result", COMPACTION];
        known.contains(&kind) || kind.starts_with("server_tool") || kind.ends_with("_tool_result")
    }),
};
