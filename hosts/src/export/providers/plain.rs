//! Transcripts for people: Markdown, or plain text.
//!
//! The current context in order, with placeholders where the model sees them. A heading or a fence inside a fenced text
//! stays inside its fence: fences are longer than any run of their own sign in the text. Markdown has texts of messages
//! unfenced.

use acpdb_engine::Error;
use acpdb_engine::event::{PartKind, Role};
use acpdb_engine::fold::{ItemKind, Status};

use super::FormatSpec;
use crate::export::calls::media_line;
use crate::export::source::{ExportItem, ExportSource, ShownAs};
use crate::export::{Export, Format};

/// Version of this renderer.
const RENDERER: u32 = 1;

pub(super) const MARKDOWN: FormatSpec =
    FormatSpec { name: "markdown", renderer: RENDERER, export, request: None };
pub(super) const TEXT: FormatSpec = FormatSpec { name: "text", ..MARKDOWN };

fn export(mut source: ExportSource<'_>) -> Result<Export, Error> {
    let markdown = source.format == Format::Markdown;
    let mut out = String::with_capacity(source.bytes_about());
    let title = source.title.clone().unwrap_or_else(|| source.session.clone());
    let title = title.lines().next().unwrap_or_default().to_owned();
    heading(&mut out, markdown, 1, &title);
    if let Some(body) = source.prompt.system {
        let text = source.text(body, None)?;
        heading(&mut out, markdown, 2, "system");
        block(&mut out, markdown, "", &crate::export::prompt::system_text(&text));
    }
    let items = std::mem::take(&mut source.items);
    for item in &items {
        let name = match item.brief.kind {
            ItemKind::Call => format!("call {}", item.brief.tool.as_deref().unwrap_or("of no name")),
            ItemKind::Result => "result without call".to_owned(),
            ItemKind::Reasoning => "reasoning".to_owned(),
            ItemKind::Injected => "injected".to_owned(),
            _ => role(item.brief.role).to_owned(),
        };
        heading(&mut out, markdown, 2, &format!("{name} ({}, turn {})", item.id(), item.turn().get()));
        if item.is_call() {
            let input = match (&item.input, item.brief.params) {
                (ShownAs::Placeholder(placeholder), _) => {
                    source.placeholder(placeholder, item.id())?.unwrap_or_default()
                }
                (_, Some(params)) => source.text(params, Some(item.id()))?,
                _ => String::new(),
            };
            block(&mut out, markdown, "json", &input);
            let status = match item.brief.status {
                Some(Status::Completed) => "result",
                Some(Status::Failed) => "failed",
                Some(Status::Aborted) => "aborted",
                Some(Status::Pending) | None => "not finished",
            };
            out.push_str(status);
            out.push_str(":\n\n");
        }
        let text = content(&mut source, item)?;
        let said = matches!(item.brief.kind, ItemKind::Text) && markdown;
        if said {
            out.push_str(text.trim_end());
            out.push_str("\n\n");
        } else if !text.is_empty() {
            block(&mut out, markdown, "", &text);
        }
    }
    let message_count = items.len();
    Ok(Export {
        bytes: out.into_bytes(),
        format: source.format,
        renderer: RENDERER,
        closing: 0,
        message_count,
        report: source.report,
    })
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

fn heading(out: &mut String, markdown: bool, level: usize, text: &str) {
    if markdown {
        out.push_str(&"#".repeat(level));
        out.push(' ');
    } else if level > 1 {
        out.push_str("-- ");
    }
    out.push_str(text);
    out.push_str("\n\n");
}

fn block(out: &mut String, markdown: bool, language: &str, text: &str) {
    let text = text.trim_end_matches('\n');
    if markdown {
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        out.push_str(&format!("{fence}{language}\n{text}\n{fence}\n\n"));
    } else {
        for line in text.lines() {
            out.push_str("   ");
            out.push_str(line);
            out.push('\n');
        }
        out.push('\n');
    }
}

fn content(source: &mut ExportSource<'_>, item: &ExportItem) -> Result<String, Error> {
    match &item.output {
        ShownAs::Nothing => Ok(String::new()),
        ShownAs::Text(text) => Ok(text.clone()),
        ShownAs::Placeholder(placeholder) => {
            Ok(source.placeholder(placeholder, item.id())?.unwrap_or_default())
        }
        ShownAs::Whole => {
            let mut texts = Vec::new();
            for part in &item.content {
                let text = source.text(part.body, Some(item.id()))?;
                texts.push(match part.kind {
                    PartKind::Media => media_line(&text, part.media_type.as_deref()),
                    _ => text,
                });
            }
            Ok(texts.join("\n"))
        }
    }
}
