//! Ids and names of calls in the form that a provider takes, parameters as objects, media as data or address.

use std::collections::HashSet;

use acpdb_engine::ids::ItemId;
use serde::de::IgnoredAny;

use super::Provider;
use crate::import::json::{member, owned, quoted};

/// Names of the calls of one export: unique, and in the provider's form.
#[derive(Debug)]
pub(super) struct CallIds {
    provider: Provider,
    id_bytes_max: usize,
    tool_bytes_max: usize,
    used: HashSet<String>,
}

impl CallIds {
    pub(super) fn new(provider: Provider, id_bytes_max: usize, tool_bytes_max: usize) -> Self {
        Self { provider, id_bytes_max, tool_bytes_max, used: HashSet::new() }
    }

    pub(super) const fn provider(&self) -> Provider {
        self.provider
    }

    /// The id of a call; and whether it differs from the host's.
    pub(super) fn name(&mut self, host: &str, item: ItemId) -> (String, bool) {
        let mut id = if host.is_empty() { format!("call_{}", item.seq.get()) } else { plain(host) };
        if id.len() > self.id_bytes_max {
            let hash = blake3::hash(host.as_bytes()).to_hex();
            id = format!("call_{}", hash.get(..24).unwrap_or_default());
        }
        if self.used.contains(&id) {
            // The seq tells calls of one id apart, independent of the rest of the context.
            let tail = format!("_{}", item.seq.get());
            // The shortest id that a provider takes has room for any seq.
            id.truncate(self.id_bytes_max.saturating_sub(tail.len()));
            id.push_str(&tail);
        }
        self.used.insert(id.clone());
        let renamed = id != host;
        (id, renamed)
    }

    /// The name of a tool; and whether it differs from the host's.
    pub(super) fn tool(&self, host: &str) -> (String, bool) {
        let mut name = if host.is_empty() { "unknown".to_owned() } else { plain(host) };
        name.truncate(self.tool_bytes_max);
        let renamed = name != host;
        (name, renamed)
    }
}

/// Letters, digits, `_` and `-`; anything else becomes `_`.
fn plain(text: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    text.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

/// Whether a text is one JSON object, of a depth that parsers take.
pub(super) fn is_object(json: &str) -> bool {
    json.trim_start().starts_with('{') && is_json(json)
}

/// Whether a text is one JSON value, of a depth that parsers take.
pub(super) fn is_json(json: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(json).is_ok()
}

/// The `type` of a JSON object.
pub(super) fn object_type(json: &str) -> Option<String> {
    json.trim_start().starts_with('{').then(|| owned(member(Some(json), "type")))?
}

/// Parameters as an object; and whether they had to be put into one.
pub(super) fn object(params: &str) -> (String, bool) {
    let params = params.trim();
    if is_object(params) {
        return (params.to_owned(), false);
    }
    if params.is_empty() {
        return ("{}".to_owned(), false);
    }
    let value = if is_json(params) { params.to_owned() } else { quoted(params) };
    (format!("{{\"input\":{value}}}"), true)
}

/// An image, an audio or a document.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Media<'a> {
    /// Its bytes in base 64.
    Data { media_type: &'a str, data: &'a str },
    /// Its address.
    Address(&'a str),
}

impl<'a> Media<'a> {
    /// The media of a body: an address with the data in it, another address, or the data itself.
    pub(super) fn of(body: &'a str, media_type: Option<&'a str>) -> Option<Self> {
        // Without its parameters, which only one provider understands.
        let media_type = media_type.and_then(|kind| kind.split(';').next());
        if let Some((head, data)) = body.strip_prefix("data:").and_then(|rest| rest.split_once(',')) {
            let named = head.strip_suffix(";base64")?;
            let named = named.split(';').next().filter(|named| !named.is_empty());
            return Some(Self::Data { media_type: named.or(media_type)?, data });
        }
        if body.starts_with("https://") || body.starts_with("http://") {
            return Some(Self::Address(body));
        }
        let is_data = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_".contains(&byte);
        let is_text = media_type.is_some_and(|kind| kind.starts_with("text/"));
        (is_text || (!body.is_empty() && body.bytes().all(is_data)))
            .then_some(Self::Data { media_type: media_type?, data: body })
    }

    /// The same, if it is a picture.
    pub(super) fn image(body: &'a str, media_type: Option<&'a str>) -> Option<Self> {
        let is_image = |kind: &str| kind.starts_with("image/");
        Self::of(body, media_type).filter(|media| match media {
            Self::Data { media_type, .. } => is_image(media_type),
            Self::Address(_) => media_type.is_none_or(is_image),
        })
    }

    /// As an address with the data in it.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Data { media_type, data } => format!("data:{media_type};base64,{data}"),
            Self::Address(address) => (*address).to_owned(),
        }
    }
}

/// How closely the model was to look at an image, kept as a parameter of its type.
pub(super) fn detail(media_type: Option<&str>) -> Option<&str> {
    media_type?.split_once(";detail=").map(|(_, detail)| detail)
}

/// A line of text in place of media.
pub(super) fn media_line(body: &str, media_type: Option<&str>) -> String {
    let media_type = media_type.and_then(|kind| kind.split(';').next());
    format!("[media {}, {} B]", media_type.unwrap_or("of unknown type"), body.len())
}

#[cfg(test)]
mod tests {
    use acpdb_engine::ids::Seq;

    use super::*;

    #[test]
    fn ids_are_unique_and_in_the_form_of_the_provider() {
        let mut ids = CallIds::new(Provider::Openai, 40, 64);
        let mut name = |host: &str, seq| ids.name(host, ItemId::first(Seq(seq)));
        assert_eq!(name("toolu_01", 3), ("toolu_01".to_owned(), false));
        assert_eq!(name("toolu_01", 9), ("toolu_01_9".to_owned(), true));
        assert_eq!(name("5.0", 11), ("5_0".to_owned(), true));
        assert_eq!(name("", 12), ("call_12".to_owned(), true));
        let (long, renamed) = name(&"x".repeat(60), 13);
        assert!(renamed && long.starts_with("call_") && long.len() <= 40);
        assert_eq!(ids.tool("mcp__a.b"), ("mcp__a_b".to_owned(), true));
    }

    #[test]
    fn parameters_are_an_object() {
        assert_eq!(object("{\"a\": 1.0}"), ("{\"a\": 1.0}".to_owned(), false));
        assert_eq!(object("\"*** patch\""), ("{\"input\":\"*** patch\"}".to_owned(), true));
        assert_eq!(object("{\"a\":"), ("{\"input\":\"{\\\"a\\\":\"}".to_owned(), true));
        assert_eq!(object(""), ("{}".to_owned(), false));
        assert!(!is_object(&"[".repeat(100_000)));
    }

    #[test]
    fn media_is_data_or_an_address() {
        let data = |media_type, data| Some(Media::Data { media_type, data });
        assert_eq!(Media::of("data:image/png;base64,QUJD", None), data("image/png", "QUJD"));
        assert_eq!(Media::of("QUJD", Some("image/png")), data("image/png", "QUJD"));
        assert_eq!(Media::of("QUJD", Some("image/png;detail=high")), data("image/png", "QUJD"));
        assert_eq!(detail(Some("image/png;detail=high")), Some("high"));
        assert_eq!(Media::of("https://x/y.png", None), Some(Media::Address("https://x/y.png")));
        assert_eq!(Media::of("file:///tmp/x.png", Some("image/png")), None);
    }
}
