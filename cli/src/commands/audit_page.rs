//! The report of `acpdb export audit` as a page: no scripts, nothing from elsewhere, made to be printed.

use std::io::{self, Write};

use acpdb_query::export::html_text;
use serde_json::Value;

use super::{EscapeLevel, escape};

const STYLE: &str = "body{font:14px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#111;background:#fff}\
table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}th,td{border:1px solid #bbb;padding:.25rem .4rem;text-align:left;vertical-align:top;\
overflow-wrap:anywhere;unicode-bidi:isolate}th{background:#eee}pre{margin:0;white-space:pre-wrap;font-size:12px}h1{font-size:1.4rem}h2{font-size:1.1rem}\
.none{color:#555}@media print{body{margin:0;max-width:none;font-size:9pt}thead{display:table-header-group}tr{break-inside:avoid}\
h2{break-after:avoid}pre{font-size:7.5pt}@page{margin:15mm}}";

/// A section: its field, its heading, its description, and the fields of its columns, with a heading where that is another word.
type Section = (&'static str, &'static str, &'static str, &'static str);

const SECTIONS: &[Section] = &[
    ("gaps", "Gaps", "What is not there, or not proven.", "what, seq: event, detail"),
    (
        "checkpoints",
        "Checkpoints",
        "Signed checkpoints, and whether the log still agrees with them.",
        "seq: ends at, covers, time: signed, standing, says: in words",
    ),
    (
        "who",
        "Who",
        "Sessions, the programs that ran them, and the models that answered.",
        "session, host, models: models and providers, began, folder, parent: started by, title",
    ),
    ("asked", "What the user said", "Messages under the user's name.", "seq: event, session, time, text"),
    (
        "calls",
        "What was done",
        "Each call of a tool, with its parameters, its result, how long it took and how it ended.",
        "seq: event, session, time, tool, params: parameters, result, duration_ms: ms, outcome",
    ),
    (
        "approvals",
        "Approvals and denials",
        "As far as hosts recorded them; calls that were cancelled, refused or interrupted.",
        "seq: event, session, time, record, about, text",
    ),
    (
        "files",
        "Files changed",
        "By calls that write, edit or delete, and as hosts noticed.",
        "seq: event, session, time, path, act, by, tool",
    ),
    (
        "hidden",
        "Hidden from the model",
        "Nothing of it is gone: acpdb history shows it.",
        "seq: event, session, act, rule, actor: by, detail: what",
    ),
    (
        "erased",
        "Erased",
        "Texts that are gone; their digests and this record stay.",
        "seq: event, time, by, reason, texts, events: of events",
    ),
];

fn safe(text: &str) -> String {
    html_text(&escape(text, EscapeLevel::Line))
}

/// A cell: recorded texts keep their lines, all else is one line.
fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => safe(text),
        Value::Array(values) => values.iter().map(cell).collect::<Vec<_>>().join(" "),
        Value::Object(fields) => match (fields.get("state").and_then(Value::as_str), fields.get("text")) {
            (Some("whole"), Some(Value::String(text))) => {
                let lines = escape(text, EscapeLevel::Text);
                let lines = lines.lines().map(html_text).collect::<Vec<_>>().join("\n");
                format!("<pre>{lines}</pre>")
            }
            (Some(state), _) => format!("<em>{}</em>", safe(state)),
            _ => fields.values().map(cell).filter(|cell| !cell.is_empty()).collect::<Vec<_>>().join(", "),
        },
        other => safe(&other.to_string()),
    }
}

fn list(value: &Value, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "<ul>")?;
    for line in value.as_array().into_iter().flatten() {
        writeln!(out, "<li>{}</li>", cell(line))?;
    }
    writeln!(out, "</ul>")
}

/// Writes the page.
pub(crate) fn write(report: &Value, out: &mut dyn Write) -> io::Result<()> {
    let head = |name: &str| cell(report.get(name).unwrap_or(&Value::Null));
    writeln!(
        out,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'\">\n<title>Audit of store {}</title>\n<style>{STYLE}</style></head><body>",
        head("store")
    )?;
    writeln!(out, "<h1>Audit of store {}</h1>", head("store"))?;
    let asked = report.get("asked_for").map(cell).filter(|asked| !asked.is_empty());
    let asked = asked.map(|asked| format!(", asked for: {asked}")).unwrap_or_default();
    writeln!(
        out,
        "<p>Made {}, of events #{} to #{}{asked}.</p>",
        head("made_at"),
        head("first"),
        head("head")
    )?;
    writeln!(out, "<h2>What this shows</h2>")?;
    list(report.get("proves").unwrap_or(&Value::Null), out)?;
    writeln!(out, "<h2>What it does not show</h2>")?;
    list(report.get("proves_not").unwrap_or(&Value::Null), out)?;
    for (field, title, what, columns) in SECTIONS {
        let rows = report.get(*field).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        writeln!(out, "<h2>{title} ({})</h2>\n<p>{what}</p>", rows.len())?;
        if rows.is_empty() {
            writeln!(out, "<p class=\"none\">None.</p>")?;
            continue;
        }
        let columns = columns.split(", ").map(|column| column.split_once(": ").unwrap_or((column, column)));
        let headings: String = columns.clone().map(|(_, heading)| format!("<th>{heading}</th>")).collect();
        writeln!(out, "<table><thead><tr>{headings}</tr></thead><tbody>")?;
        for row in rows {
            let cells = columns.clone().map(|(name, _)| cell(row.get(name).unwrap_or(&Value::Null)));
            let cells: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
            writeln!(out, "<tr>{cells}</tr>")?;
        }
        writeln!(out, "</tbody></table>")?;
    }
    writeln!(out, "</body></html>")
}
