//! Anthropic's messages.
//!
//! ```text
//! user       [text ..]
//! assistant  [thinking .. text .. tool_use a, tool_use b]
//! user       [tool_result a, tool_result b, text ..]          results first, all of them, in the order of the calls
//! ```
//!
//! Neighbours of one role are one message, always; content is always a list. A run of thinking goes whole or not at all,
//! and not at all where nothing follows it; placeholders in place of its parts are text. Reasoning that led to the calls at
//! hand stays until they are answered. Placeholders of results keep their block and its `is_error`.

use acpdb_engine::Error;
use acpdb_engine::event::Role;

use crate::export::calls::{CallIds, Media, media_line, object};
use crate::export::dialect::Dialect;
use crate::export::provider::Opaque;
use crate::export::report::LeftOut;
use crate::export::source::ExportSource;
use crate::export::turns::{CallPiece, ReplyPiece, PieceRules, MessagePiece, Turned};
use crate::export::write::JsonWriter;
use crate::export::{Export, Provider, prompt, turns};
use crate::import::{ATTACHED, SENT, UNCHANGED, untagged};

/// Version of this renderer.
pub(super) const RENDERER: u32 = 4;

const RULES: PieceRules = PieceRules {
    provider: Provider::Anthropic,
    whole_units: false,
    whole_runs: true,
    reasoning: true,
    signs_text: true,
};

/// The user's text where the conversation begins with the model.
const BEFORE: &str = "[the conversation began before this]";

pub(super) fn export(mut source: ExportSource<'_>) -> Result<Export, Error> {
    let mut json = JsonWriter::with_capacity(source.bytes_about());
    json.open(b'{');
    prompt::head(&mut source, &mut json)?;
    let defined = prompt::tools(&mut source, &mut json)?;
    // Claude Code sends the system's texts as messages.
    let leading = source.dialect == Dialect::Portable;
    let system = prompt::system(&mut source, leading)?;
    write_system(&system, &mut json);
    if source.options.server_side {
        let mut known = prompt::called_tools(&source);
        known.extend(defined);
        json.member("context_management", &source.clearing.json(&known, &mut source.report));
    }
    json.open_member("messages", b'[');
    let mut writer = AnthropicWriter { json, role: None, count: 0 };
    let mut ids = CallIds::new(Provider::Anthropic, 64, 128);
    for number in 0..source.groups.len() {
        let turned = turns::read(&mut source, number, RULES, &mut ids)?;
        writer.turn(&mut source, &turned);
    }
    let AnthropicWriter { json, role, count } = writer;
    let closers: &[u8] = if role.is_some() { b"]}]}" } else { b"]}" };
    Ok(source.export(json, closers, RENDERER, count))
}

fn write_system(texts: &[String], json: &mut JsonWriter) {
    match texts {
        [] => {}
        [text] if prompt::system_blocks(text).is_none() => json.text("system", text),
        texts => {
            json.open_member("system", b'[');
            for text in texts {
                match prompt::system_blocks(text) {
                    Some(blocks) => blocks.into_iter().for_each(|block| json.raw(block)),
                    None => text_block(text, json),
                }
            }
            json.close(b']');
        }
    }
}

fn text_block(text: &str, json: &mut JsonWriter) {
    json.texts(&[("type", "text"), ("text", text)]);
}

struct AnthropicWriter {
    json: JsonWriter,
    role: Option<&'static str>,
    count: usize,
}

impl AnthropicWriter {
    /// Goes on with the message of this role, or begins one.
    fn begin(&mut self, role: &'static str, source: &mut ExportSource<'_>) {
        if self.role == Some(role) {
            return;
        }
        if self.role.is_none() && role == "assistant" {
            source.report.note(LeftOut::UserPlaceholder, None);
            self.begin("user", source);
            text_block(BEFORE, &mut self.json);
        }
        self.json.begin_message(self.role.is_some(), role, "content");
        self.role = Some(role);
        self.count += 1;
    }

    fn turn(&mut self, source: &mut ExportSource<'_>, turned: &Turned) {
        let reasoning = |piece: &&ReplyPiece| turns::is_reasoning(piece);
        // No reply may end with reasoning.
        let trailing = turned.pieces.iter().rev().take_while(reasoning).count();
        let kept = turned.pieces.len() - trailing;
        for _ in 0..trailing {
            source.report.note(LeftOut::ReasoningRun, None);
        }
        for piece in turned.pieces.iter().take(kept) {
            self.begin("assistant", source);
            self.piece(source, piece);
        }
        if source.dialect == Dialect::ClaudeCode {
            return self.as_claude_code(source, turned);
        }
        for call in turned.calls() {
            self.begin("user", source);
            self.result(source, call);
        }
        for said in &turned.said {
            if let MessagePiece::Text { role: Role::System, .. } = said {
                source.report.note(LeftOut::SystemAsUser, None);
            }
            self.begin("user", source);
            said_block(source, said, &mut self.json);
        }
    }

    /// Writes results in the order in which they came; then the host's attachments for the user's side and the user's own
    /// texts, each with a line feed where another message's text follows; then the attachments for the system's side, as
    /// one message of that role.
    fn as_claude_code(&mut self, source: &mut ExportSource<'_>, turned: &Turned) {
        let mut calls: Vec<&CallPiece> = turned.calls().collect();
        calls.sort_by_key(|call| call.finished);
        for call in calls {
            self.begin("user", source);
            self.result(source, call);
        }
        let key = |said: &MessagePiece| match said {
            MessagePiece::Text { key, .. } | MessagePiece::Media { key, .. } => key.clone(),
            MessagePiece::Opaque { .. } => None,
        };
        let is_attached = |said: &&MessagePiece| key(said).is_some_and(|key| key.starts_with(ATTACHED));
        let is_system = |said: &&MessagePiece| matches!(said, MessagePiece::Text { role: Role::System, .. });
        let (system, said): (Vec<&MessagePiece>, Vec<&MessagePiece>) = turned.said.iter().partition(is_system);
        let (mut users, own): (Vec<&MessagePiece>, Vec<&MessagePiece>) = said.into_iter().partition(is_attached);
        // A key of another host's with this beginning has no number: it stands among the user's own.
        let place_of = |said: &&MessagePiece| key(said)?.strip_prefix(SENT)?.split(':').next()?.parse::<usize>().ok();
        let (sent, own): (Vec<&MessagePiece>, Vec<&MessagePiece>) = own.into_iter().partition(|said| place_of(said).is_some());
        let attached = users.len();
        users.extend(in_places(sent, place_of, own));
        for (place, said) in users.iter().enumerate() {
            self.begin("user", source);
            let next = users.get(place + 1).filter(|_| place + 1 >= attached && place_of(said).is_none());
            match (said, next) {
                (MessagePiece::Text { text, .. }, Some(next @ MessagePiece::Text { .. })) if key(said) != key(next) => {
                    text_block(&format!("{text}\n"), &mut self.json);
                }
                _ => said_block(source, said, &mut self.json),
            }
        }
        let (sent, system): (Vec<&MessagePiece>, Vec<&MessagePiece>) = system.into_iter().partition(|it| place_of(it).is_some());
        let told = in_places(sent, place_of, Vec::new());
        let told = told.into_iter().filter_map(text_of).chain(system.into_iter().filter_map(unwrapped));
        let told: Vec<&str> = told.collect();
        if !told.is_empty() {
            self.begin("system", source);
            text_block(&told.join("\n\n"), &mut self.json);
        }
    }

    fn piece(&mut self, source: &mut ExportSource<'_>, piece: &ReplyPiece) {
        let json = &mut self.json;
        match piece {
            ReplyPiece::Text { text, .. } => text_block(text, json),
            ReplyPiece::Reasoning { opaque: Opaque::Redacted(data), .. } => {
                json.texts(&[("type", "redacted_thinking"), ("data", data)]);
            }
            ReplyPiece::Reasoning { text, opaque: Opaque::Signature(signature) } => {
                json.texts(&[("type", "thinking"), ("thinking", text), ("signature", signature)]);
            }
            ReplyPiece::Opaque { json: block } => json.raw(block),
            ReplyPiece::Gap(_) => {}
            ReplyPiece::Media { body, media_type } => {
                // The model's own media cannot be sent back.
                source.report.note(LeftOut::MediaNotPortable, None);
                text_block(&media_line(body, media_type.as_deref()), json);
            }
            ReplyPiece::Call(call) => {
                let (input, wrapped) = object(&call.input);
                if wrapped {
                    source.report.note(LeftOut::ParametersWrapped, Some(call.item));
                }
                json.open(b'{');
                json.text("type", "tool_use");
                json.text("id", &call.id);
                json.text("name", &call.tool);
                json.member("input", &input);
                json.close(b'}');
            }
        }
    }

    fn result(&mut self, source: &mut ExportSource<'_>, call: &CallPiece) {
        self.json.open(b'{');
        self.json.text("type", "tool_result");
        self.json.text("tool_use_id", &call.id);
        match call.result.as_slice() {
            [] => {}
            [MessagePiece::Text { text, .. }] if text.is_empty() => {}
            [MessagePiece::Text { text, .. }] => self.json.text("content", text),
            parts => {
                let blank = |said: &MessagePiece| matches!(said, MessagePiece::Text { text, .. } if text.trim().is_empty());
                self.json.open_member("content", b'[');
                for said in parts.iter().filter(|said| !blank(said)) {
                    said_block(source, said, &mut self.json);
                }
                self.json.close(b']');
            }
        }
        if call.failed && !is_unchanged(call) {
            self.json.member("is_error", "true");
        }
        self.json.close(b'}');
    }
}

/// Texts whose places are known, each in its place or behind it, and the others in the places between them.
fn in_places<'s>(
    mut sent: Vec<&'s MessagePiece>,
    place_of: impl Fn(&&'s MessagePiece) -> Option<usize>,
    own: Vec<&'s MessagePiece>,
) -> Vec<&'s MessagePiece> {
    sent.sort_by_key(&place_of);
    let mut out = Vec::with_capacity(sent.len() + own.len());
    let mut own = own.into_iter();
    for said in sent {
        // All in `sent` have a place.
        let place = place_of(&said).unwrap_or_default();
        // Items before it may be out already.
        let before = place.saturating_sub(out.len());
        out.extend(own.by_ref().take(before));
        out.push(said);
    }
    out.extend(own);
    out
}

/// Whether a host answered a read with a note about an earlier read: it read nothing, and that is no error.
fn is_unchanged(call: &CallPiece) -> bool {
    matches!(call.result.as_slice(), [MessagePiece::Text { text, .. }] if text.starts_with(UNCHANGED))
}

/// A text of the host's without the tags that tell it from the user's texts.
fn unwrapped(said: &MessagePiece) -> Option<&str> {
    text_of(said).map(untagged)
}

fn text_of(said: &MessagePiece) -> Option<&str> {
    if let MessagePiece::Text { text, .. } = said { Some(text) } else { None }
}

fn said_block(source: &mut ExportSource<'_>, said: &MessagePiece, json: &mut JsonWriter) {
    match said {
        MessagePiece::Text { text, .. } => text_block(text, json),
        MessagePiece::Opaque { json: block } => json.raw(block),
        MessagePiece::Media { body, media_type, .. } => {
            let media = Media::of(body, media_type.as_deref());
            let kind = match &media {
                Some(Media::Data { media_type, .. }) if media_type.starts_with("image/") => "image",
                Some(Media::Address(_))
                    if media_type.as_deref().is_none_or(|kind| kind.starts_with("image/")) =>
                {
                    "image"
                }
                Some(
                    Media::Data { media_type: "application/pdf" | "text/plain", .. } | Media::Address(_),
                ) => "document",
                _ => "",
            };
            let Some(media) = media.filter(|_| !kind.is_empty()) else {
                source.report.note(LeftOut::MediaNotPortable, None);
                return text_block(&media_line(body, media_type.as_deref()), json);
            };
            json.open(b'{');
            json.text("type", kind);
            json.open_member("source", b'{');
            match media {
                Media::Data { media_type, data } => {
                    let form = if media_type.starts_with("text/") { "text" } else { "base64" };
                    json.text("type", form);
                    json.text("media_type", media_type);
                    json.text("data", data);
                }
                Media::Address(address) => {
                    json.text("type", "url");
                    json.text("url", address);
                }
            }
            json.close(b'}');
            json.close(b'}');
        }
    }
}
