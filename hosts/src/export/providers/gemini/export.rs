//! Gemini's contents.
//!
//! ```text
//! user    [text ..]
//! model   [text .., functionCall a (with its signature), functionCall b]
//! user    [functionResponse a, functionResponse b]       nothing else in it
//! user    [text ..]                                      texts said meanwhile
//! ```
//!
//! A signature stays on its own part, and parts are never merged. From the third generation on each step of the current
//! turn needs the signature of its first call; where it is lost, a mark tells the provider to skip the check.

use acpdb_engine::Error;
use acpdb_engine::event::Role;

use super::super::by_message;
use crate::export::calls::{CallIds, Media, media_line, object};
use crate::export::provider::Opaque;
use crate::export::report::LeftOut;
use crate::export::source::ExportSource;
use crate::export::turns::{CallPiece, ReplyPiece, PieceRules, MessagePiece, Turned};
use crate::export::write::JsonWriter;
use crate::export::{Export, Provider, prompt, turns};

/// Version of this renderer.
pub(super) const RENDERER: u32 = 4;

const RULES: PieceRules = PieceRules {
    provider: Provider::Google,
    whole_units: true,
    whole_runs: false,
    reasoning: true,
    signs_text: false,
};

/// The user's text where the conversation begins with the model.
const BEFORE: &str = "[the conversation began before this]";
/// The mark in place of a signature that is lost.
pub(super) const SKIP: &str = "skip_thought_signature_validator";

pub(super) fn export(mut source: ExportSource<'_>) -> Result<Export, Error> {
    let mut json = JsonWriter::with_capacity(source.bytes_about());
    json.open(b'{');
    prompt::head(&mut source, &mut json)?;
    prompt::tools(&mut source, &mut json)?;
    let system = prompt::system(&mut source, true)?;
    if !system.is_empty() {
        json.open_member("systemInstruction", b'{');
        json.open_member("parts", b'[');
        for text in &system {
            text_part(&prompt::system_text(text), None, &mut json);
        }
        json.close(b']');
        json.close(b'}');
    }
    json.open_member("contents", b'[');
    let strict = source.prompt.model.as_deref().is_some_and(super::wants_signatures);
    // Any text of the user begins a turn, also one that was said while calls ran.
    let speaks =
        |place: &usize| source.items.get(*place).is_some_and(crate::export::source::ExportItem::says_something);
    let current = source.groups.iter().rposition(|group| group.said.iter().any(speaks));
    let mut writer = GeminiWriter { json, role: None, count: 0 };
    let mut ids = CallIds::new(Provider::Google, 128, 64);
    for number in 0..source.groups.len() {
        let turned = turns::read(&mut source, number, RULES, &mut ids)?;
        writer.turn(&mut source, &turned, strict && current.is_none_or(|current| number > current));
    }
    let GeminiWriter { json, role, count } = writer;
    let closers: &[u8] = if role.is_some() { b"]}]}" } else { b"]}" };
    Ok(source.export(json, closers, RENDERER, count))
}

fn text_part(text: &str, signature: Option<&str>, json: &mut JsonWriter) {
    json.open(b'{');
    json.text("text", text);
    if let Some(signature) = signature {
        json.text("thoughtSignature", signature);
    }
    json.close(b'}');
}

struct GeminiWriter {
    json: JsonWriter,
    role: Option<&'static str>,
    count: usize,
}

impl GeminiWriter {
    fn begin(&mut self, role: &'static str) {
        self.json.begin_message(self.role.is_some(), role, "parts");
        self.role = Some(role);
        self.count += 1;
    }

    fn turn(&mut self, source: &mut ExportSource<'_>, turned: &Turned, strict: bool) {
        let mut skip = strict;
        for piece in turned.pieces.iter().filter(|piece| !matches!(piece, ReplyPiece::Gap(_))) {
            if self.role.is_none() {
                source.report.note(LeftOut::UserPlaceholder, None);
                self.begin("user");
                text_part(BEFORE, None, &mut self.json);
            }
            if self.role != Some("model") {
                self.begin("model");
            }
            self.piece(source, piece, &mut skip);
        }
        if turned.calls().next().is_some() {
            self.begin("user");
            turned.calls().for_each(|call| self.response(source, call));
            // Media follow as parts of their own, as the provider's own program sends them.
            for said in turned.calls().flat_map(|call| &call.result).filter(|said| is_beside(said)) {
                said_part(source, said, &mut self.json);
            }
        }
        for said in by_message(&turned.said) {
            self.begin("user");
            for said in said {
                if let MessagePiece::Text { role: Role::System, .. } = said {
                    source.report.note(LeftOut::SystemAsUser, None);
                }
                said_part(source, said, &mut self.json);
            }
        }
    }

    fn piece(&mut self, source: &mut ExportSource<'_>, piece: &ReplyPiece, skip: &mut bool) {
        let json = &mut self.json;
        match piece {
            ReplyPiece::Text { text, signature, .. } => text_part(text, signature.as_deref(), json),
            ReplyPiece::Reasoning { text, opaque } => {
                let (Opaque::Signature(signature) | Opaque::Redacted(signature)) = opaque;
                json.open(b'{');
                json.text("text", text);
                json.member("thought", "true");
                json.text("thoughtSignature", signature);
                json.close(b'}');
            }
            ReplyPiece::Opaque { json: part } => json.raw(part),
            ReplyPiece::Gap(_) => {}
            ReplyPiece::Media { body, media_type } => media(source, body, media_type.as_deref(), json),
            ReplyPiece::Call(call) => {
                let (args, wrapped) = object(&call.input);
                if wrapped {
                    source.report.note(LeftOut::ParametersWrapped, Some(call.item));
                }
                json.open(b'{');
                json.open_member("functionCall", b'{');
                json.text("id", &call.id);
                json.text("name", &call.tool);
                json.member("args", &args);
                json.close(b'}');
                match &call.signature {
                    Some(signature) => json.text("thoughtSignature", signature),
                    None if *skip => {
                        source.report.note(LeftOut::SignatureSkipped, Some(call.item));
                        json.text("thoughtSignature", SKIP);
                    }
                    None => {}
                }
                json.close(b'}');
                // Of parallel calls only the first has a signature.
                *skip = false;
            }
        }
    }

    fn response(&mut self, source: &mut ExportSource<'_>, call: &CallPiece) {
        let json = &mut self.json;
        json.open(b'{');
        json.open_member("functionResponse", b'{');
        json.text("id", &call.id);
        json.text("name", &call.tool);
        json.open_member("response", b'{');
        let inside = call.result.iter().filter(|said| !is_beside(said));
        let text = |source: &mut ExportSource<'_>, said: &MessagePiece| match said {
            MessagePiece::Text { text, .. } => text.clone(),
            MessagePiece::Opaque { json } => json.clone(),
            MessagePiece::Media { body, media_type, .. } => {
                source.report.note(LeftOut::MediaNotPortable, None);
                media_line(body, media_type.as_deref())
            }
        };
        let texts: Vec<String> = inside.map(|said| text(source, said)).collect();
        let name = if call.failed { "error" } else { "output" };
        match texts.as_slice() {
            [only] => json.text(name, only),
            texts => json.text(name, &texts.join("\n")),
        }
        json.close(b'}');
        json.close(b'}');
        json.close(b'}');
    }
}

/// Whether a piece of a result stands beside it: media that can be sent.
fn is_beside(said: &MessagePiece) -> bool {
    let MessagePiece::Media { body, media_type, .. } = said else { return false };
    Media::of(body, media_type.as_deref()).is_some()
}

fn said_part(source: &mut ExportSource<'_>, said: &MessagePiece, json: &mut JsonWriter) {
    match said {
        MessagePiece::Text { text, .. } => text_part(text, None, json),
        MessagePiece::Opaque { json: part } => json.raw(part),
        MessagePiece::Media { body, media_type, .. } => media(source, body, media_type.as_deref(), json),
    }
}

fn media(source: &mut ExportSource<'_>, body: &str, media_type: Option<&str>, json: &mut JsonWriter) {
    let Some(media) = Media::of(body, media_type) else {
        source.report.note(LeftOut::MediaNotPortable, None);
        return text_part(&media_line(body, media_type), None, json);
    };
    json.open(b'{');
    match media {
        Media::Data { media_type, data } => {
            json.open_member("inlineData", b'{');
            json.text("mimeType", media_type);
            json.text("data", data);
        }
        Media::Address(address) => {
            json.open_member("fileData", b'{');
            json.text("fileUri", address);
        }
    }
    json.close(b'}');
    json.close(b'}');
}
