//! A record: its fields that are read.

use std::borrow::Cow;
use std::collections::HashMap;

use acpdb_engine::event::Role;

use super::super::json;

/// The fields of a record that are read, borrowed from it.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "the record's own flags")]
pub(super) struct Record<'a> {
    pub(super) kind: Cow<'a, str>,
    pub(super) uuid: Option<Cow<'a, str>>,
    pub(super) parent: Option<Cow<'a, str>>,
    /// The record before it, of one without a parent: the context begins anew there.
    pub(super) logical_parent: Option<Cow<'a, str>>,
    /// It says that it has no parent.
    pub(super) is_root: bool,
    pub(super) timestamp: Option<&'a str>,
    pub(super) message: Option<&'a str>,
    pub(super) result: Option<&'a str>,
    pub(super) request: Option<&'a str>,
    pub(super) is_meta: bool,
    pub(super) is_summary: bool,
    pub(super) cwd: Option<Cow<'a, str>>,
    pub(super) session: Option<Cow<'a, str>>,
    pub(super) version: Option<&'a str>,
    pub(super) is_side: bool,
    pub(super) agent: Option<&'a str>,
    pub(super) subtype: Option<&'a str>,
    pub(super) data: Option<&'a str>,
    pub(super) parent_call: Option<&'a str>,
    pub(super) metadata: Option<&'a str>,
    pub(super) title: Option<&'a str>,
    pub(super) about: Option<&'a str>,
    /// The host's attachment, and the texts that the model read of it.
    pub(super) attachment: Option<&'a str>,
    pub(super) rendered: Option<&'a str>,
    pub(super) rendered_role: Option<&'a str>,
    /// The text of a record of the host's own.
    pub(super) content: Option<&'a str>,
    /// Parameters of calls as the model made them and as they are sent, by the calls' ids, where the host ran others.
    pub(super) wire_inputs: Option<&'a str>,
    /// The words in which it was sent, where they are not its own.
    pub(super) sent: Option<RecordWords>,
}

impl<'a> Record<'a> {
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let names = [
            "type",
            "uuid",
            "parentUuid",
            "logicalParentUuid",
            "timestamp",
            "message",
            "toolUseResult",
            "requestId",
            "isMeta",
            "isCompactSummary",
            "cwd",
            "sessionId",
            "version",
            "isSidechain",
            "agentId",
            "subtype",
            "data",
            "parentToolUseID",
            "compactMetadata",
            "microcompactMetadata",
            "customTitle",
            "aiTitle",
            "messageId",
            "leafUuid",
            "attachment",
            "rendered",
            "renderedRole",
            "wireToolInputs",
            "content",
        ];
        let [
            kind,
            uuid,
            parent,
            logical_parent,
            timestamp,
            message,
            result,
            request,
            is_meta,
            is_summary,
            cwd,
            session,
            version,
            is_side,
            agent,
            subtype,
            data,
            parent_call,
            compact,
            microcompact,
            title,
            ai_title,
            about,
            leaf,
            attachment,
            rendered,
            rendered_role,
            wire_inputs,
            content,
        ] = json::pick_with_nulls(text, names)?;
        let is_root = parent == Some("null");
        let given = |value: Option<&'a str>| value.filter(|text| *text != "null");
        Some(Self {
            is_root,
            kind: json::string(kind)?,
            uuid: named(uuid),
            parent: named(parent),
            logical_parent: named(logical_parent),
            timestamp: given(timestamp),
            message: given(message),
            result: given(result),
            request: given(request),
            is_meta: json::boolean(is_meta) == Some(true),
            is_summary: json::boolean(is_summary) == Some(true),
            cwd: named(cwd),
            session: named(session),
            version: given(version),
            is_side: json::boolean(is_side) == Some(true),
            agent: given(agent),
            subtype: given(subtype),
            data: given(data),
            parent_call: given(parent_call),
            metadata: given(compact).or(given(microcompact)),
            title: given(title).or(given(ai_title)),
            about: given(about).or(given(leaf)),
            attachment: given(attachment),
            rendered: given(rendered),
            rendered_role: given(rendered_role),
            content: given(content),
            wire_inputs: given(wire_inputs),
            sent: None,
        })
    }

    /// A digest of what it says, without what a copy of it may change: its session, its folder, its parent.
    pub(super) fn content(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        let said = [
            Some(&*self.kind),
            self.timestamp,
            self.message,
            self.result,
            self.subtype,
            self.data,
            self.metadata,
            self.title,
            self.attachment,
            self.rendered,
            self.content,
        ];
        for part in said {
            let part = part.unwrap_or_default();
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let mut digest = [0; 16];
        hasher.finalize_xof().fill(&mut digest);
        digest
    }

    /// Whether it is a part of the conversation, not only a link of it.
    pub(super) fn is_said(&self) -> bool {
        let subtype = json::string(self.subtype);
        matches!(&*self.kind, "user" | "assistant" | "attachment")
            || subtype.is_some_and(|it| matches!(&*it, "compact_boundary" | "local_command"))
    }

    /// The record of a subagent that a progress record holds.
    pub(super) fn nested(text: &'a str) -> Option<Self> {
        let record = Self::parse(text)?;
        record.uuid.is_some().then_some(record)
    }
}

/// A string that is not empty.
pub(super) fn named(value: Option<&str>) -> Option<Cow<'_, str>> {
    json::string(value).filter(|text| !text.is_empty())
}

/// The words in which a record was sent.
#[derive(Default, Clone, PartialEq, Debug)]
pub(super) struct RecordWords {
    /// Texts by their numbers in the record.
    texts: Vec<Option<SentPlace>>,
    /// Contents of results as JSON, by their calls.
    pub(super) results: HashMap<String, String>,
    /// The text of the record stands in a result.
    pub(super) is_in_result: bool,
}

/// A text as it was sent.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SentPlace {
    pub(super) role: Role,
    /// Its place among the texts of that role.
    pub(super) place: usize,
    pub(super) text: String,
}

impl RecordWords {
    /// The words of a text.
    pub(super) fn text(&self, number: usize) -> Option<&str> {
        self.texts.get(number)?.as_ref().map(|it| it.text.as_str())
    }

    /// The role and the place of the first text.
    pub(super) fn place(&self) -> Option<(Role, usize)> {
        self.texts.first()?.as_ref().map(|it| (it.role, it.place))
    }

    /// The content of the result of a call.
    pub(super) fn result(&self, call: &str) -> Option<&str> {
        self.results.get(call).map(String::as_str)
    }

    pub(super) const fn is_in_result(&self) -> bool {
        self.is_in_result
    }

    pub(super) fn put(&mut self, number: usize, placed: SentPlace) {
        if self.texts.len() <= number {
            self.texts.resize(number + 1, None);
        }
        if let Some(slot) = self.texts.get_mut(number) {
            *slot = Some(placed);
        }
    }
}
