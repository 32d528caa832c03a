//! Google: Gemini's contents.

mod exchange;
mod export;
mod lint;

use super::{FormatSpec, Maker, Provider, RequestRules, ToolStyle, Wire};
use crate::export::provider::Opaque;
use crate::import::json::member;

pub(super) const FORM: FormatSpec = FormatSpec {
    name: "gemini",
    renderer: export::RENDERER,
    export: export::export,
    request: Some(RequestRules {
        provider: Provider::Google,
        marked: None,
        clears: false,
        binds_reasoning: false,
        names_model: false,
        tools: ToolStyle {
            is_own: |definition| {
                let own = ["functionDeclarations", "googleSearch", "codeExecution", "urlContext"];
                own.iter().any(|name| member(Some(definition), name).is_some())
            },
            write: |tool, json| tool.members("parametersJsonSchema", json),
            inside: Some("functionDeclarations"),
        },
        check: lint::check,
        opaque: &[("thoughtSignature", "Thought signature is not valid")],
        skips: Some(export::SKIP),
        wire: Wire {
            paths: &[":generateContent", ":streamGenerateContent"],
            list: "contents",
            model: |path| {
                let (before, _) = path.rsplit_once(':')?;
                before.rsplit_once("/models/").map(|(_, model)| model).filter(|model| !model.is_empty())
            },
            request: exchange::request,
            made: exchange::answer,
            messages: |text, names, unknown| Some(vec![exchange::message(text, names, unknown)?]),
            texts_params: false,
            result: Some("output"),
        },
    }),
};

pub(super) const MAKER: Maker = Maker {
    is_named: |name, _| ["gemini", "google", "vertex"].iter().any(|word| name.contains(word)),
    hosts: &["gemini-cli"],
    kept: |field| {
        let kept = ["google", "vertex"].iter().find_map(|name| field(name, "thoughtSignature"));
        kept.map(Opaque::Signature)
    },
    owns: None,
};

/// Whether a model wants the signature of every step of the current turn: from the third generation on.
fn wants_signatures(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    let Some((_, rest)) = model.split_once("gemini-") else { return false };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u32>().is_ok_and(|generation| generation >= 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_from_the_third_generation_on_want_signatures() {
        assert!(wants_signatures("gemini-3-pro-preview") && wants_signatures("models/gemini-12"));
        assert!(!wants_signatures("gemini-2.5-pro") && !wants_signatures("claude"));
    }
}
