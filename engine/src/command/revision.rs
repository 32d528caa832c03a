//! Digest of a fact's content, to tell a repeat from a change.
//!
//! What counts is what the feed says, never what acpdb derives from it: no signature, key, label or registry version. Wire
//! forms, times and actors do not count either, so a hook and a transcript that tell the same fact agree. The encoding
//! below is part of the format: a change to it would make every re-imported fact look revised. It is keyed with the store's
//! secret, or a short text could be found by guessing.

use crate::entry::{Bytes, Entry, Fact, ItemRef, PartEntry, PointRef, TodoChangeEntry, WirePiece};
use crate::event::{Report, Usage};
use crate::secret::{Revision, Secret};

/// Takes the fields of a fact, each with its length, in a fixed order.
struct Fields {
    revision: Revision,
}

impl Fields {
    fn tag(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes(bytes)
    }

    fn number(&mut self, number: i64) -> &mut Self {
        self.tag(&number.to_le_bytes())
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.revision.take(bytes);
        self
    }

    /// Absent and empty are told apart.
    fn option(&mut self, value: Option<&[u8]>) -> &mut Self {
        self.tag(&[u8::from(value.is_some())]);
        self.bytes(value.unwrap_or_default())
    }

    fn text_option(&mut self, value: Option<&String>) -> &mut Self {
        self.option(value.map(String::as_bytes))
    }

    fn bytes_option(&mut self, value: Option<&Bytes>) -> &mut Self {
        self.option(value.map(|bytes| &**bytes))
    }

    fn list(&mut self, texts: &[String]) -> &mut Self {
        self.number(i64::try_from(texts.len()).unwrap_or(i64::MAX));
        for text in texts {
            self.text(text);
        }
        self
    }

    fn parts(&mut self, parts: &[PartEntry]) -> &mut Self {
        self.number(i64::try_from(parts.len()).unwrap_or(i64::MAX));
        for part in parts {
            self.tag(&[part.kind as u8]).text_option(part.media_type.as_ref());
            self.bytes(&part.bytes).bytes_option(part.signature.as_ref());
        }
        self
    }

    fn items(&mut self, items: &[ItemRef]) -> &mut Self {
        for item in items {
            match item {
                ItemRef::Id(id) => {
                    self.tag(b"id").number(id.seq.get().cast_signed()).number(i64::from(id.part));
                }
                ItemRef::Origin(origin, part) => {
                    self.text(origin).number(i64::from(*part));
                }
            }
        }
        self
    }

    fn point(&mut self, point: &PointRef) -> &mut Self {
        match point {
            PointRef::Seq(seq) => self.tag(b"seq").number(seq.get().cast_signed()),
            PointRef::After(origin) => self.tag(b"after").text(origin),
            PointRef::Before(origin) => self.tag(b"before").text(origin),
        }
    }

    fn change(&mut self, change: &TodoChangeEntry) -> &mut Self {
        self.text(&change.id).text_option(change.status.as_ref()).bytes_option(change.entry.as_ref())
    }
}

/// The digest. Equal facts give equal digests; never 0.
pub(super) fn revision_of(entry: &Entry, secret: &Secret) -> u64 {
    let mut fields = Fields { revision: secret.begin_revision() };
    fill(&mut fields, &entry.fact);
    // A record that became no other fact has only its wire form to be told apart by.
    if matches!(entry.fact, Fact::HostRecorded { raw: None, .. }) {
        for piece in &entry.wire {
            match piece {
                WirePiece::Literal(bytes) => fields.tag(b"literal").bytes(bytes),
                WirePiece::Raw(bytes) => fields.tag(b"raw").bytes(bytes),
                WirePiece::Escaped(bytes) => fields.tag(b"escaped").bytes(bytes),
                WirePiece::Record(origin) => fields.tag(b"record").text(origin),
            };
        }
    }
    fields.revision.finish()
}

fn fill(fields: &mut Fields, fact: &Fact) {
    match fact {
        Fact::SessionChanged { title, cwd, project, host_version } => {
            fields.tag(b"session_changed").text_option(title.as_ref()).text_option(cwd.as_ref());
            fields.text_option(project.as_ref()).text_option(host_version.as_ref())
        }
        Fact::SessionClosed { reason } => fields.tag(b"session_closed").text_option(reason.as_ref()),
        Fact::TurnStarted { kind, key, number } => {
            fields.tag(b"turn_started").tag(&[*kind as u8]).text(key).number(number.map_or(-1, i64::from))
        }
        Fact::PromptSet { system, tools, model, params } => {
            fields.tag(b"prompt_set").bytes_option(system.as_ref()).bytes_option(tools.as_ref());
            fields.text_option(model.as_ref()).bytes_option(params.as_ref())
        }
        Fact::ContextReplaced { cause, order, tokens_before } => {
            fields.tag(b"context_replaced").tag(&[*cause as u8]).items(order);
            fields.number(tokens_before.map_or(-1, u64::cast_signed))
        }
        Fact::HostCleared { items, calls, text } => {
            fields.tag(b"host_cleared").items(items).list(calls).bytes_option(text.as_ref())
        }
        Fact::Rewound { to } => fields.tag(b"rewound").point(to),
        Fact::Forked { from, at } => fields.tag(b"forked").tag(from.as_bytes()).point(at),
        Fact::HostRecorded { record, about, raw } => {
            fields.tag(b"host_recorded").text(record).text_option(about.as_ref()).bytes_option(raw.as_ref())
        }
        Fact::MessageRecorded { key: _, role, parts, parent: _, hidden_from_model, hidden_from_user } => {
            let flags = [*role as u8, u8::from(*hidden_from_model), u8::from(*hidden_from_user)];
            fields.tag(b"message_recorded").tag(&flags).parts(parts)
        }
        Fact::MessageContinued { key: _, parts } => fields.tag(b"message_continued").parts(parts),
        Fact::MessageFinished { key, report } => {
            let Report { model, provider, request, stop_reason, service_tier, cost, usage } = report;
            fields.tag(b"message_finished").text(key);
            for text in [model, provider, request, stop_reason, service_tier] {
                fields.text_option(text.as_ref());
            }
            let Usage { input, output, cache_read, cache_write, cache_write_long, reasoning } = *usage;
            for count in [input, output, cache_read, cache_write, cache_write_long, reasoning, *cost] {
                fields.number(count.map_or(-1, u64::cast_signed));
            }
            fields
        }
        Fact::MessageAbandoned { key } => fields.tag(b"message_abandoned").text(key),
        Fact::ToolStarted { call: _, message: _, tool, params, provider_signature: _ } => {
            fields.tag(b"tool_started").text(tool).bytes(params)
        }
        Fact::ToolFinished { call: _, outcome, output, details: _, todo_change: _ } => {
            fields.tag(b"tool_finished").tag(&[*outcome as u8]).parts(output)
        }
        Fact::FileChanged { path, by } => fields.tag(b"file_changed").text(path).tag(&[*by as u8]),
        Fact::TodosReplaced { list } => fields.tag(b"todos_replaced").bytes(list),
        Fact::TodoChanged { change } => fields.tag(b"todo_changed").change(change),
        Fact::Memory(memory) => {
            fields.tag(b"memory").tag(&[memory.kind as u8]).text(&memory.category);
            fields.text_option(memory.key.as_ref()).text_option(memory.subject.as_ref()).text(&memory.value);
            fields
                .text_option(memory.rationale.as_ref())
                .list(&memory.alternatives)
                .list(&memory.related_files);
            fields.number(i64::from(memory.confidence)).list(&memory.replaces).list(&memory.superseded_by);
            fields.number(memory.lifespan.map_or(-1, |lifespan| i64::from(lifespan as u8)));
            fields.text_option(memory.status.as_ref()).bytes_option(memory.extra.as_ref())
        }
        Fact::MemorySuperseded { old, new, reason } => {
            fields.tag(b"memory_superseded").text(old).text(new).text_option(reason.as_ref())
        }
        Fact::MemoryReinforced { id, amount, at } => {
            let at = at.map_or(i64::MIN, crate::ids::Micros::get);
            fields.tag(b"memory_reinforced").text(id).number(i64::from(*amount)).number(at)
        }
        Fact::MemoryRetracted { id, reason, at } => {
            let at = at.map_or(i64::MIN, crate::ids::Micros::get);
            fields.tag(b"memory_retracted").text(id).text_option(reason.as_ref()).number(at)
        }
        Fact::Injected { what, text } => fields.tag(b"injected").tag(&[*what as u8]).bytes(text),
    };
}
