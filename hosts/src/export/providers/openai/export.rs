//! `OpenAI`'s chat completions.
//!
//! ```text
//! system     text
//! user       text, or a list of texts and images
//! assistant  text or null, tool_calls [a, b]
//! tool       result of a
//! tool       result of b              directly behind their calls; texts said meanwhile come after
//! ```
//!
//! Only some hosts have reasoning in this format. Each message of a user stays a message of its own.

use acpdb_engine::Error;
use acpdb_engine::event::Role;

use super::super::by_message;
use crate::export::dialect::Dialect;
use crate::export::calls::{CallIds, Media, media_line};
use crate::export::report::LeftOut;
use crate::export::source::ExportSource;
use crate::export::turns::{ReplyPiece, PieceRules, MessagePiece, Turned};
use crate::export::write::JsonWriter;
use crate::export::{Export, Provider, prompt, turns};

/// Version of this renderer.
pub(super) const RENDERER: u32 = 4;

const RULES: PieceRules = PieceRules {
    provider: Provider::Openai,
    whole_units: false,
    whole_runs: false,
    reasoning: false,
    signs_text: false,
};

pub(super) fn export(mut source: ExportSource<'_>) -> Result<Export, Error> {
    let mut json = JsonWriter::with_capacity(source.bytes_about());
    json.open(b'{');
    prompt::head(&mut source, &mut json)?;
    prompt::tools(&mut source, &mut json)?;
    json.open_member("messages", b'[');
    let mut count = 0;
    for text in prompt::system(&mut source, false)? {
        count += 1;
        json.texts(&[("role", "system"), ("content", &prompt::system_text(&text))]);
    }
    let mut ids = CallIds::new(Provider::Openai, 40, 64);
    for number in 0..source.groups.len() {
        let turned = turns::read(&mut source, number, RULES, &mut ids)?;
        count += turn(&mut source, &turned, &mut json);
    }
    Ok(source.export(json, b"]}", RENDERER, count))
}

fn turn(source: &mut ExportSource<'_>, turned: &Turned, json: &mut JsonWriter) -> usize {
    let mut count = 0;
    let mut texts: Vec<std::borrow::Cow<'_, str>> = Vec::new();
    let mut thoughts: Vec<&str> = Vec::new();
    for piece in &turned.pieces {
        match piece {
            ReplyPiece::Text { text, .. } => texts.push(text.into()),
            ReplyPiece::Media { body, media_type } => {
                source.report.note(LeftOut::MediaNotPortable, None);
                texts.push(media_line(body, media_type.as_deref()).into());
            }
            ReplyPiece::Opaque { .. } => source.report.note(LeftOut::OpaqueNotPortable, None),
            ReplyPiece::Reasoning { text, .. } => thoughts.push(text),
            ReplyPiece::Call(_) | ReplyPiece::Gap(_) => {}
        }
    }
    let has_calls = turned.calls().next().is_some();
    if has_calls || !texts.is_empty() {
        count += 1;
        json.open(b'{');
        json.text("role", "assistant");
        match texts.as_slice() {
            [] => json.member("content", "null"),
            [text] => json.text("content", text),
            texts => {
                json.open_member("content", b'[');
                for text in texts {
                    text_part(text, json);
                }
                json.close(b']');
            }
        }
        if !thoughts.is_empty() {
            json.text("reasoning_content", &thoughts.concat());
        }
        if has_calls {
            json.open_member("tool_calls", b'[');
            for call in turned.calls() {
                json.open(b'{');
                json.text("id", &call.id);
                json.text("type", "function");
                json.open_member("function", b'{');
                json.text("name", &call.tool);
                json.text("arguments", &call.input);
                json.close(b'}');
                json.close(b'}');
            }
            json.close(b']');
        }
        json.close(b'}');
    }
    let mut calls: Vec<_> = turned.calls().collect();
    if source.dialect == Dialect::ResultsAsTheyCame {
        calls.sort_by_key(|call| call.finished);
    }
    for call in calls {
        count += 1;
        json.open(b'{');
        json.text("role", "tool");
        json.text("tool_call_id", &call.id);
        match call.result.as_slice() {
            [] => json.text("content", ""),
            [only] => json.text("content", &result_text(source, only)),
            parts => {
                json.open_member("content", b'[');
                for said in parts {
                    text_part(&result_text(source, said), json);
                }
                json.close(b']');
            }
        }
        json.close(b'}');
    }
    for said in by_message(&turned.said) {
        count += 1;
        spoken(source, said, json);
    }
    count
}

fn text_part(text: &str, json: &mut JsonWriter) {
    json.texts(&[("type", "text"), ("text", text)]);
}

/// Results are text only.
fn result_text<'a>(source: &mut ExportSource<'_>, said: &'a MessagePiece) -> std::borrow::Cow<'a, str> {
    match said {
        MessagePiece::Text { text, .. } => text.into(),
        MessagePiece::Opaque { json } => json.into(),
        MessagePiece::Media { body, media_type, .. } => {
            source.report.note(LeftOut::MediaNotPortable, None);
            media_line(body, media_type.as_deref()).into()
        }
    }
}

fn spoken(source: &mut ExportSource<'_>, said: &[MessagePiece], json: &mut JsonWriter) {
    let is_system = matches!(said.first(), Some(MessagePiece::Text { role: Role::System, .. }));
    json.open(b'{');
    json.text("role", if is_system { "system" } else { "user" });
    match said {
        [MessagePiece::Text { text, .. }] => json.text("content", text),
        said => {
            json.open_member("content", b'[');
            for said in said {
                match said {
                    MessagePiece::Text { text, .. } => text_part(text, json),
                    MessagePiece::Opaque { json: part } => json.raw(part),
                    MessagePiece::Media { body, media_type, .. } => {
                        if let Some(media) = Media::image(body, media_type.as_deref()) {
                            json.open(b'{');
                            json.text("type", "image_url");
                            json.open_member("image_url", b'{');
                            json.text("url", &media.address());
                            json.close(b'}');
                            json.close(b'}');
                        } else {
                            source.report.note(LeftOut::MediaNotPortable, None);
                            text_part(&media_line(body, media_type.as_deref()), json);
                        }
                    }
                }
            }
            json.close(b']');
        }
    }
    json.close(b'}');
}
