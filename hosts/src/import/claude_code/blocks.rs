//! Blocks: the pieces of a message or a result.

use std::borrow::Cow;

use acpdb_engine::entry::PartEntry;

use super::super::json;
use super::record::named;

/// The blocks of a message or a result.
pub(super) struct MessageBlocks<'a> {
    pub(super) list: Vec<ContentBlock<'a>>,
}

/// One block.
#[derive(Default)]
pub(super) struct ContentBlock<'a> {
    raw: &'a str,
    pub(super) kind: Cow<'a, str>,
    pub(super) text: Option<&'a str>,
    thinking: Option<&'a str>,
    signature: Option<&'a str>,
    pub(super) id: Option<&'a str>,
    pub(super) name: Option<&'a str>,
    pub(super) input: Option<&'a str>,
    pub(super) call: Option<&'a str>,
    content: Option<&'a str>,
    pub(super) is_error: Option<&'a str>,
    source: Option<&'a str>,
}

impl<'a> MessageBlocks<'a> {
    /// A string is one text block.
    pub(super) fn parse(content: Option<&'a str>) -> Option<Self> {
        let content = content?;
        if content.starts_with('"') {
            let block = ContentBlock {
                raw: content,
                kind: Cow::Borrowed("text"),
                text: Some(content),
                ..ContentBlock::default()
            };
            return Some(Self { list: vec![block] });
        }
        let list = json::elements(content)?.into_iter().map(ContentBlock::parse).collect();
        Some(Self { list })
    }
}

/// The parts of a result with this content.
pub(super) fn parts_of(content: &str) -> Vec<PartEntry> {
    match MessageBlocks::parse(Some(content)) {
        Some(blocks) => blocks.list.iter().map(ContentBlock::part).collect(),
        None => vec![PartEntry::opaque(content)],
    }
}

impl<'a> ContentBlock<'a> {
    fn parse(raw: &'a str) -> Self {
        let names = [
            "type",
            "text",
            "thinking",
            "signature",
            "id",
            "name",
            "input",
            "tool_use_id",
            "content",
            "is_error",
            "source",
        ];
        let Some([kind, text, thinking, signature, id, name, input, call, content, is_error, source]) =
            json::pick(raw, names)
        else {
            return Self { raw, ..Self::default() };
        };
        let kind = json::string(kind).unwrap_or_default();
        Self { raw, kind, text, thinking, signature, id, name, input, call, content, is_error, source }
    }

    pub(super) fn is(&self, kind: &str) -> bool {
        self.kind == kind
    }

    /// The id of the call that it is.
    pub(super) fn call_id(&self) -> Option<Cow<'a, str>> {
        if self.is("tool_use") { named(self.id) } else { None }
    }

    /// The id of the call whose result it is.
    pub(super) fn result_id(&self) -> Option<Cow<'a, str>> {
        if self.is("tool_result") { named(self.call) } else { None }
    }

    /// The content of a result, as JSON.
    pub(super) const fn content(&self) -> Option<&'a str> {
        self.content
    }

    /// The parts of a result.
    pub(super) fn result_parts(&self) -> Vec<PartEntry> {
        self.content.map(parts_of).unwrap_or_default()
    }

    /// The block as a part; a block that is not text, thinking or media stays as it is.
    pub(super) fn part(&self) -> PartEntry {
        let known = match &*self.kind {
            "text" => json::string(self.text).map(|text| PartEntry::text(&*text)),
            "thinking" => json::string(self.thinking).map(|text| {
                let signature = json::string(self.signature);
                PartEntry::reasoning(&*text, signature.as_deref().map(str::as_bytes))
            }),
            "image" | "document" => self.source.and_then(|source| {
                let [data, media_type] = json::pick(source, ["data", "media_type"])?;
                Some(PartEntry::media(&*json::string(data)?, json::owned(media_type)))
            }),
            _ => None,
        };
        known.unwrap_or_else(|| PartEntry::opaque(self.raw))
    }
}
