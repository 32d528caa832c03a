//! To which provider a signature belongs: names of providers and models, and the forms in which hosts keep opaque fields.

use super::Provider;
use super::calls::{is_object, object_type};
use crate::import::json::{member, owned};

/// The type of Anthropic's compaction here, whose own name `OpenAI` uses as well.
pub(super) const COMPACTION: &str = "summarized compaction";

impl Provider {
    /// The provider that a model's or a provider's name tells; `None` if it tells none.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        if name.is_empty() || name.starts_with('<') {
            return None;
        }
        let last = name.rsplit(['/', ':']).next().unwrap_or_default();
        let is_named = |provider: &&Self| provider.maker().is_some_and(|maker| (maker.is_named)(&name, last));
        Some(Self::KNOWN.iter().find(is_named).copied().unwrap_or(Self::Other))
    }

    /// The provider of a host program that speaks to one provider only.
    pub(super) fn of_host(host: &str) -> Option<Self> {
        let is_its = |provider: &&Self| provider.maker().is_some_and(|maker| maker.hosts.contains(&host));
        Self::KNOWN.iter().find(is_its).copied()
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

/// A signature as the provider gave it, out of the form in which the host keeps it; `None` if it holds none for `target`.
///
/// opencode keeps an object by provider: `{"anthropic":{"signature":".."}}`.
pub(super) fn unwrapped(host: &str, kept: &str, target: Provider) -> Option<Opaque> {
    if host != "opencode" {
        return (!kept.is_empty()).then(|| Opaque::Signature(kept.to_owned()));
    }
    let field = |provider: &str, name: &str| owned(member(member(Some(kept), provider), name));
    let found = target.maker().and_then(|maker| (maker.kept)(&field));
    found.filter(|found| !found.is_empty())
}

/// Whether JSON may be a part of the provider's: its type is no other provider's; JSON without a type, if its parts have
/// none.
pub(super) fn fits(provider: Provider, json: &str) -> bool {
    let owns = |provider: &Provider| provider.maker().and_then(|maker| maker.owns);
    match kind_of(json) {
        Some(kind) => {
            let mut others = Provider::KNOWN.iter().filter(|other| **other != provider).filter_map(owns);
            owns(&provider).is_some() && !others.any(|owns| owns(&kind))
        }
        None => provider.maker().is_some_and(|maker| maker.owns.is_none()) && is_object(json),
    }
}

/// The type of an object. Two providers have one of the same name: Anthropic's compaction holds its summary, that of `OpenAI` is sealed.
fn kind_of(json: &str) -> Option<String> {
    let kind = object_type(json)?;
    let holds_summary = kind == "compaction" && member(Some(json), "content").is_some();
    Some(if holds_summary { COMPACTION.to_owned() } else { kind })
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
