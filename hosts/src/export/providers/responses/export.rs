//! `OpenAI`'s responses: a flat list of items.
//!
//! ```text
//! message user | message developer
//! reasoning      with its encrypted content, followed by the item that it led to
//! message assistant, function_call a, function_call b
//! function_call_output a, function_call_output b          then texts said meanwhile
//! ```
//!
//! Items bear no ids of the provider's, so nothing is looked up on its side: reasoning goes with its encrypted content or
//! not at all. Where there is reasoning, parameters of calls are sent whole; outputs and reasoning itself may be replaced.

use acpdb_engine::Error;
use acpdb_engine::event::Role;
use acpdb_engine::ids::Seq;

use super::super::by_message;
use crate::export::calls::{CallIds, Media, detail, media_line, object_type};
use crate::export::dialect::Dialect;
use crate::export::provider::Opaque;
use crate::export::report::LeftOut;
use crate::export::source::ExportSource;
use crate::export::turns::{CallPiece, ReplyPiece, PieceRules, MessagePiece, Turned};
use crate::export::write::JsonWriter;
use crate::export::{Export, Provider, prompt, turns};
use crate::import::json::owned;

/// Version of this renderer.
pub(super) const RENDERER: u32 = 4;

const RULES: PieceRules = PieceRules {
    provider: Provider::Openai,
    whole_units: true,
    whole_runs: false,
    reasoning: true,
    signs_text: false,
};

pub(super) fn export(mut source: ExportSource<'_>) -> Result<Export, Error> {
    let mut json = JsonWriter::with_capacity(source.bytes_about());
    json.open(b'{');
    prompt::head(&mut source, &mut json)?;
    prompt::tools(&mut source, &mut json)?;
    let system = prompt::system(&mut source, false)?;
    let texts: Vec<String> = system.iter().map(|text| prompt::system_text(text)).collect();
    let instructions = texts.join("\n\n");
    let is_said = source.dialect == Dialect::Codex;
    if !instructions.is_empty() && !is_said {
        json.text("instructions", &instructions);
    }
    json.open_member("input", b'[');
    let mut writer = ResponsesWriter { json, count: 0 };
    if !instructions.is_empty() && is_said {
        let said = MessagePiece::Text { text: instructions, role: Role::System, key: None };
        writer.spoken(&mut source, &[said]);
    }
    let mut ids = CallIds::new(Provider::Openai, 64, 64);
    for number in 0..source.groups.len() {
        let turned = turns::read(&mut source, number, RULES, &mut ids)?;
        writer.turn(&mut source, &turned);
    }
    let ResponsesWriter { json, count } = writer;
    Ok(source.export(json, b"]}", RENDERER, count))
}

/// Free-form parameters: a JSON string rather than an object.
fn free_form(call: &CallPiece) -> Option<String> {
    owned(Some(call.input.trim())).filter(|_| crate::export::calls::is_json(&call.input))
}

/// A call of a kind of its own, such as `tool_search`, and its result: the item that answers it says so.
fn own_kind(call: &CallPiece) -> Option<(String, &str)> {
    let [MessagePiece::Opaque { json }] = call.result.as_slice() else { return None };
    let kind = object_type(json)?;
    let kind = kind.strip_suffix("_output").filter(|kind| *kind == call.tool)?;
    Some((kind.to_owned(), json))
}

/// A tool of a server, or of another name space, as the space and its own name.
fn spaced(tool: &str) -> Option<(&str, &str)> {
    let start = if tool.starts_with("mcp__") { "mcp__".len() } else { 0 };
    let at = start + tool.get(start..)?.find("__")?;
    Some((tool.get(..at)?, tool.get(at + 2..)?))
}

struct ResponsesWriter {
    json: JsonWriter,
    count: usize,
}

impl ResponsesWriter {
    fn item(&mut self, kind: &str) {
        self.count += 1;
        self.json.open(b'{');
        self.json.text("type", kind);
    }

    fn turn(&mut self, source: &mut ExportSource<'_>, turned: &Turned) {
        let trailing = turned.pieces.iter().rev().take_while(|piece| turns::is_reasoning(piece)).count();
        for _ in 0..trailing {
            source.report.note(LeftOut::ReasoningRun, None);
        }
        let pieces = turned.pieces.get(..turned.pieces.len().saturating_sub(trailing)).unwrap_or_default();
        let key = |piece: &ReplyPiece| match piece {
            ReplyPiece::Text { key, .. } => key.clone(),
            _ => None,
        };
        for run in pieces.chunk_by(|one, other| key(one).is_some() && key(one) == key(other)) {
            self.pieces(source, run);
        }
        let mut calls: Vec<&CallPiece> = turned.calls().collect();
        let in_order = source.dialect == Dialect::Codex;
        if in_order {
            calls.sort_by_key(|call| call.finished);
        }
        let mut calls = calls.into_iter().peekable();
        let mut at = turned.said_at.iter();
        for said in by_message(&turned.said) {
            let said_at = at.nth(said.len().saturating_sub(1)).copied().unwrap_or(Seq::MAX);
            while let Some(call) = calls.next_if(|call| !in_order || call.finished < said_at) {
                self.output(source, call);
            }
            self.spoken(source, said);
        }
        for call in calls {
            self.output(source, call);
        }
    }

    fn pieces(&mut self, source: &mut ExportSource<'_>, run: &[ReplyPiece]) {
        match run {
            [ReplyPiece::Reasoning { text, opaque }] => {
                let (Opaque::Signature(sealed) | Opaque::Redacted(sealed)) = opaque;
                self.item("reasoning");
                self.json.open_member("summary", b'[');
                if !text.is_empty() {
                    self.part("summary_text", text);
                }
                self.json.close(b']');
                self.json.text("encrypted_content", sealed);
                self.json.close(b'}');
            }
            [ReplyPiece::Opaque { json }] => {
                self.count += 1;
                self.json.raw(json);
            }
            [ReplyPiece::Call(call)] => self.call(call, source.dialect),
            texts => {
                self.item("message");
                self.json.text("role", "assistant");
                self.json.open_member("content", b'[');
                for piece in texts {
                    match piece {
                        ReplyPiece::Text { text, .. } => self.part("output_text", text),
                        ReplyPiece::Media { body, media_type } => {
                            source.report.note(LeftOut::MediaNotPortable, None);
                            self.part("output_text", &media_line(body, media_type.as_deref()));
                        }
                        _ => {}
                    }
                }
                self.json.close(b']');
                self.json.close(b'}');
            }
        }
    }

    fn part(&mut self, kind: &str, text: &str) {
        self.json.texts(&[("type", kind), ("text", text)]);
    }

    fn call(&mut self, call: &CallPiece, dialect: Dialect) {
        let free = free_form(call);
        if let Some((kind, _)) = own_kind(call).filter(|_| dialect == Dialect::Codex) {
            self.item(&format!("{kind}_call"));
            self.json.text("call_id", &call.id);
            self.json.text("status", "completed");
            self.json.text("execution", "client");
            self.json.member("arguments", &call.input);
            return self.json.close(b'}');
        }
        self.item(if free.is_some() { "custom_tool_call" } else { "function_call" });
        self.json.text("call_id", &call.id);
        match spaced(&call.tool).filter(|_| dialect == Dialect::Codex) {
            Some((space, name)) => {
                self.json.text("name", name);
                self.json.text("namespace", space);
            }
            None => self.json.text("name", &call.tool),
        }
        match free {
            Some(input) => self.json.text("input", &input),
            None => self.json.text("arguments", &call.input),
        }
        self.json.close(b'}');
    }

    fn output(&mut self, source: &mut ExportSource<'_>, call: &CallPiece) {
        if let Some((_, item)) = own_kind(call).filter(|_| source.dialect == Dialect::Codex) {
            self.count += 1;
            return self.json.raw(item);
        }
        let kind = if free_form(call).is_some() { "custom_tool_call_output" } else { "function_call_output" };
        self.item(kind);
        self.json.text("call_id", &call.id);
        match call.result.as_slice() {
            [] => self.json.text("output", ""),
            [MessagePiece::Text { text, .. }] => self.json.text("output", text),
            parts => {
                self.json.open_member("output", b'[');
                for said in parts {
                    self.said(source, said);
                }
                self.json.close(b']');
            }
        }
        self.json.close(b'}');
    }

    fn said(&mut self, source: &mut ExportSource<'_>, said: &MessagePiece) {
        match said {
            MessagePiece::Text { text, .. } => self.part("input_text", text),
            MessagePiece::Opaque { json } => self.json.raw(json),
            MessagePiece::Media { body, media_type, .. } => {
                if let Some(media) = Media::image(body, media_type.as_deref()) {
                    self.json.open(b'{');
                    self.json.text("type", "input_image");
                    self.json.text("image_url", &media.address());
                    if let Some(detail) = detail(media_type.as_deref()) {
                        self.json.text("detail", detail);
                    }
                    self.json.close(b'}');
                } else {
                    source.report.note(LeftOut::MediaNotPortable, None);
                    self.part("input_text", &media_line(body, media_type.as_deref()));
                }
            }
        }
    }

    fn spoken(&mut self, source: &mut ExportSource<'_>, said: &[MessagePiece]) {
        let is_system = matches!(said.first(), Some(MessagePiece::Text { role: Role::System, .. }));
        self.item("message");
        self.json.text("role", if is_system { "developer" } else { "user" });
        self.json.open_member("content", b'[');
        for said in said {
            self.said(source, said);
        }
        self.json.close(b']');
        self.json.close(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_of_a_name_space_is_cut_behind_the_space() {
        for (tool, expected) in [
            ("mcp__notes__add", Some(("mcp__notes", "add"))),
            ("mcp__notes__add__two", Some(("mcp__notes", "add__two"))),
            ("multi_agent_v1__spawn_agent", Some(("multi_agent_v1", "spawn_agent"))),
            ("exec_command", None),
            ("mcp__notes", None),
        ] {
            assert_eq!(spaced(tool), expected, "{tool}");
        }
    }
}
