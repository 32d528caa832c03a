//! Whose signatures are whose: providers, models, and the forms in which hosts keep opaque fields.

use super::calls::is_object;
use crate::import::json::{member, owned};

/// Who made a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Provider {
    /// Anthropic.
    Anthropic,
    /// `OpenAI`.
    Openai,
    /// Google.
    Google,
    /// Another one.
    Other,
}

impl Provider {
    /// By a model's or a provider's name; `None` if it says nothing.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let starts = |words: &[&str]| {
            let last = name.rsplit(['/', ':']).next().unwrap_or_default();
            words.iter().any(|word| last.starts_with(word))
        };
        match () {
            () if name.is_empty() || name.starts_with('<') => None,
            () if has(&["claude", "anthropic"]) => Some(Self::Anthropic),
            () if has(&["gemini", "google", "vertex"]) => Some(Self::Google),
            () if has(&["gpt-oss"]) => Some(Self::Other),
            () if starts(&["gpt", "o1", "o3", "o4", "codex", "chatgpt"]) || has(&["openai"]) => {
                Some(Self::Openai)
            }
            () => Some(Self::Other),
        }
    }

    /// By the host program, where it speaks to one provider only.
    pub(super) fn of_host(host: &str) -> Option<Self> {
        match host {
            "claude-code" => Some(Self::Anthropic),
            "codex" | "openai-messages" => Some(Self::Openai),
            "gemini-cli" => Some(Self::Google),
            _ => None,
        }
    }
}

/// Whether a model binds each block of reasoning to everything before it, so that a change makes it invalid.
///
/// These are Fable and Mythos 5.1 and 5.2, and Opus, Sonnet and Haiku 5.5.
pub fn preserves_thinking(model: &str) -> bool {
    let model = model.to_ascii_lowercase().replace(['.', '_'], "-");
    let words: Vec<&str> = model.split(['-', '/', ':', '@']).collect();
    let pair = |name: &str, versions: &[[&str; 2]]| {
        words.windows(3).any(|found| match found {
            [family, major, minor] => *family == name && versions.contains(&[major, minor]),
            _ => false,
        }) || words.windows(3).any(|found| match found {
            // As older names are built: `claude-5-5-opus`.
            [major, minor, family] => *family == name && versions.contains(&[major, minor]),
            _ => false,
        })
    };
    ["fable", "mythos"].iter().any(|name| pair(name, &[["5", "1"], ["5", "2"]]))
        || ["opus", "sonnet", "haiku"].iter().any(|name| pair(name, &[["5", "5"]]))
}

/// Whether a Gemini model wants the signature of every step of the current turn: from the third generation on.
pub(crate) fn wants_signatures(model: &str) -> bool {
    let model = model.to_ascii_lowercase();
    let Some((_, rest)) = model.split_once("gemini-") else { return false };
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse::<u32>().is_ok_and(|generation| generation >= 3)
}

/// A signature as the provider gave it, out of the form in which the host keeps it; `None` if it holds none for `target`.
///
/// opencode keeps an object by provider: `{"anthropic":{"signature":".."}}`.
pub(super) fn unwrapped(host: &str, kept: &str, target: Provider) -> Option<Opaque> {
    if host != "opencode" {
        return (!kept.is_empty()).then(|| Opaque::Signature(kept.to_owned()));
    }
    let field = |provider: &str, name: &str| owned(member(member(Some(kept), provider), name));
    let found = match target {
        Provider::Anthropic => {
            let sealed = field("anthropic", "redactedData").map(Opaque::Redacted);
            sealed.or_else(|| field("anthropic", "signature").map(Opaque::Signature))
        }
        Provider::Openai => field("openai", "reasoningEncryptedContent").map(Opaque::Signature),
        Provider::Google => ["google", "vertex"]
            .iter()
            .find_map(|name| field(name, "thoughtSignature"))
            .map(Opaque::Signature),
        Provider::Other => None,
    };
    found.filter(|found| !found.is_empty())
}

/// Whether a type of part may be the provider's.
pub(super) fn fits(provider: Provider, kind: &str) -> bool {
    let anthropic =
        ["thinking", "redacted_thinking", "tool_use", "tool_result", "tool_reference", "search_result"];
    let is_anthropic =
        anthropic.contains(&kind) || kind.starts_with("server_tool") || kind.ends_with("_tool_result");
    let is_openai = kind.ends_with("_call")
        || kind.ends_with("_call_output")
        || ["input_", "output_", "compaction"].iter().any(|start| kind.starts_with(start))
        || ["reasoning", "item_reference", "image_url"].contains(&kind);
    match provider {
        Provider::Anthropic => !is_openai,
        Provider::Openai => !is_anthropic,
        // Google's parts have no type.
        Provider::Google | Provider::Other => false,
    }
}

/// Google's parts have no type.
pub(super) fn is_google(provider: Provider, json: &str) -> bool {
    provider == Provider::Google && is_object(json)
}

/// An opaque field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Opaque {
    /// A signature on the part's own content, or the content encrypted.
    Signature(String),
    /// Data that stands for the content: there is no text.
    Redacted(String),
}

impl Opaque {
    fn is_empty(&self) -> bool {
        match self {
            Self::Signature(text) | Self::Redacted(text) => text.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_that_bind_reasoning_are_known_by_name() {
        for model in [
            "claude-opus-5-5",
            "claude-sonnet-5.5-20261001",
            "anthropic/claude-haiku-5.5",
            "claude-fable-5-1",
            "claude-mythos-5.2",
            "claude-5-5-opus",
        ] {
            assert!(preserves_thinking(model), "{model}");
        }
        for model in
            ["claude-opus-4-5", "claude-fable-5", "claude-opus-5-1", "gpt-5.5", "", "claude-mythos-5-5"]
        {
            assert!(!preserves_thinking(model), "{model}");
        }
        assert!(wants_signatures("gemini-3-pro-preview") && wants_signatures("models/gemini-12"));
        assert!(!wants_signatures("gemini-2.5-pro") && !wants_signatures("claude"));
    }

    #[test]
    fn providers_are_known_by_their_models() {
        for (name, expected) in [
            ("claude-opus-4-5", Some(Provider::Anthropic)),
            ("gpt-5.1-codex", Some(Provider::Openai)),
            ("openai/gpt-4o", Some(Provider::Openai)),
            ("o3-mini", Some(Provider::Openai)),
            ("gemini-3-pro", Some(Provider::Google)),
            ("kimi-k2", Some(Provider::Other)),
            ("<synthetic>", None),
            ("", None),
        ] {
            assert_eq!(Provider::of_name(name), expected, "{name}");
        }
    }

    #[test]
    fn a_signature_is_taken_out_of_the_form_of_its_host() {
        let kept = r#"{"anthropic":{"signature":"sig=="},"openai":{"itemId":"rs_1"}}"#;
        let signature = |text: &str| Some(Opaque::Signature(text.to_owned()));
        assert_eq!(unwrapped("opencode", kept, Provider::Anthropic), signature("sig=="));
        assert_eq!(unwrapped("opencode", kept, Provider::Openai), None);
        assert_eq!(unwrapped("claude-code", "sig==", Provider::Anthropic), signature("sig=="));
        assert_eq!(unwrapped("claude-code", "", Provider::Anthropic), None);
    }
}
