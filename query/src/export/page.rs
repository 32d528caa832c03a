//! A session as one HTML file: nothing is loaded, nothing leaves it, and it works from a disk.
//!
//! ```text
//! head: policy with the digests of style and script | body: an empty frame
//! texts: a JSON array, each text once, written as met | data: sessions, items and where they stood when | script
//! ```
//!
//! The script (`assets/*.js`) makes all that a reader sees, by setting text, never markup. The content security policy allows that
//! one script and that one style, by their digests, and nothing else: no network, no frames, no forms. So recorded text can neither
//! run nor call home. See [`super::JsonText`] for how data is kept data.
//!
//! It does not choose a session, or write a file.

use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;

use acpdb_engine::ids::{Micros, StreamId};
use acpdb_engine::store::Redactor;
use acpdb_engine::{At, Store, View};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::page_data::PageData;
use super::page_session::Making;
use super::redaction::Redaction;
use super::texts::TextWriter;
use super::{ExportError, JsonText, html_text};

const STYLE: &str = concat!(include_str!("assets/base.css"), include_str!("assets/page.css"));
const BODY: &str = include_str!("assets/page.html");
/// The scripts of every page, and behind them the scripts of one kind of page.
macro_rules! scripts {
    ($($more:literal),*) => {
        concat!(
            "'use strict';\n",
            include_str!("assets/common.js"),
            include_str!("assets/model.js"),
            include_str!("assets/draw.js"),
            include_str!("assets/text.js"),
            include_str!("assets/list.js"),
            include_str!("assets/talk.js"),
            include_str!("assets/detail.js"),
            include_str!("assets/page.js"),
            $(include_str!($more)),*
        )
    };
}

const SCRIPT: &str = scripts!();
/// The script of a page that follows the store which serves it.
const SCRIPT_LIVE: &str = scripts!("assets/live.js");

/// Most subagents that a page holds; further ones are left out, and counted.
pub const SUBAGENT_COUNT_MAX: usize = 200;

/// The amounts that a page holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct PageReport {
    /// Items, whether current or not.
    pub items: usize,
    /// Supersessions.
    pub edges: usize,
    /// Turns.
    pub turns: usize,
    /// Bytes of the texts in it, each once.
    pub text_bytes: u64,
    /// Subagents that are in it.
    pub subagents: usize,
    /// Subagents that are not, since there are too many.
    pub subagents_left_out: usize,
}

/// The options of a page.
#[derive(Clone, Default)]
pub struct PageOptions {
    /// Takes secrets out of all texts of the page.
    pub redactor: Option<Arc<dyn Redactor>>,
    /// The page is served, and follows its server: it may ask this server, and no other.
    pub live: bool,
    /// The index over all sessions, as a link from the page; `None` for no link.
    pub index: Option<String>,
}

impl PageOptions {
    /// A text of the page, without secrets if they are to be taken out.
    #[must_use]
    pub fn redacted(&self, text: &str) -> String {
        Redaction(self.redactor.clone()).of(text).into_owned()
    }
}

/// Writes a session as a page. `now` decides which memory items have faded.
///
/// Texts longer than 1 MiB are cut, and say so. Cost: O(items and their texts); memory: O(items).
///
/// # Errors
/// If the log cannot be read, or `out` fails.
pub fn page(
    store: &Store,
    view: &View,
    now: Micros,
    options: &PageOptions,
    out: &mut dyn Write,
) -> Result<PageReport, ExportError> {
    let redaction = Redaction(options.redactor.clone());
    let making = Making::new(store, view, &redaction)?;
    let script = if options.live { SCRIPT_LIVE } else { SCRIPT };
    frame(&making.title()?, (STYLE, script, options.live), BODY, out)?;
    out.write_all(b"<script type=\"application/json\" id=\"texts\">")?;
    let between: &[u8] = b"</script>\n<script type=\"application/json\" id=\"data\">";
    let report = contents(making, (store, view), now, options, between, out)?;
    out.write_all(b"</script>\n<script>")?;
    out.write_all(script.as_bytes())?;
    out.write_all(b"</script>\n</body>\n</html>\n")?;
    Ok(report)
}

/// Writes the content of a page as JSON, `{"texts": [..], "data": {..}}`: a page that follows its server asks for it.
///
/// # Errors
/// As [`page`].
pub fn page_data(
    store: &Store,
    view: &View,
    now: Micros,
    options: &PageOptions,
    out: &mut dyn Write,
) -> Result<PageReport, ExportError> {
    let redaction = Redaction(options.redactor.clone());
    let making = Making::new(store, view, &redaction)?;
    out.write_all(b"{\"texts\":")?;
    let report = contents(making, (store, view), now, options, b",\"data\":", out)?;
    out.write_all(b"}\n")?;
    Ok(report)
}

/// Writes the texts of a session and of its subagents, and then their other data.
fn contents(
    making: Making<'_>,
    (store, view): (&Store, &View),
    now: Micros,
    options: &PageOptions,
    between: &[u8],
    out: &mut dyn Write,
) -> Result<PageReport, ExportError> {
    let redaction = Redaction(options.redactor.clone());
    let mut texts = TextWriter::new(out, redaction.clone())?;
    let mut data = PageData { schema: "acpdb.html/2", index: options.index.clone(), ..PageData::default() };
    data.sessions.push(making.whole(store, now, &mut texts)?);
    let (below, subagents_left_out) = subagents(store, view)?;
    for (view, parent) in &below {
        let mut session = Making::new(store, view, &redaction)?.whole(store, now, &mut texts)?;
        session.session.parent = i64::from(*parent);
        data.sessions.push(session);
    }
    let (problems, text_bytes) = texts.end()?;
    data.problems = problems;
    out.write_all(between)?;
    JsonText::write(&data, out)?;
    let whole = data.sessions.first();
    let count = |of: fn(&super::page_data::SessionPage) -> usize| whole.map_or(0, of);
    Ok(PageReport {
        items: count(|session| session.items.len()),
        edges: count(|session| session.edges.len()),
        turns: count(|session| session.turns.len()),
        text_bytes,
        subagents: below.len(),
        subagents_left_out,
    })
}

/// The subagents of a session and theirs, each with the place of the session that started it; and the number of subagents left out.
fn subagents(store: &Store, view: &View) -> Result<(Vec<(View, u32)>, usize), ExportError> {
    let mut below: HashMap<StreamId, Vec<StreamId>> = HashMap::new();
    for name in store.stream_names()? {
        if let Some(parent) = name.parent.filter(|parent| *parent != name.id) {
            below.entry(parent).or_default().push(name.id);
        }
    }
    let (mut found, mut left_out) = (Vec::new(), 0);
    let mut open = vec![(view.stream(), 0)];
    while let Some((stream, place)) = open.pop() {
        // A session is taken once, so circles end.
        for child in below.remove(&stream).unwrap_or_default() {
            if found.len() >= SUBAGENT_COUNT_MAX {
                left_out += 1;
                continue;
            }
            let child = store.view_once(child, &At::Seq(view.at()))?;
            if child.state().first() > child.at() {
                continue;
            }
            let own = u32::try_from(found.len()).unwrap_or(u32::MAX).saturating_add(1);
            open.push((child.stream(), own));
            found.push((child, place));
        }
    }
    Ok((found, left_out))
}

/// A source of a content security policy: the digest of a script or style that is allowed.
fn allowed(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digest = Sha256::digest(text.as_bytes());
    let mut base64 = String::new();
    for group in digest.chunks(3) {
        let bits =
            group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = DIGITS.get(((bits >> (18 - 6 * place)) & 63) as usize).copied().unwrap_or(b'=');
            base64.push(if place > group.len() { '=' } else { char::from(digit) });
        }
    }
    format!("'sha256-{base64}'")
}

/// Writes a document up to its data: its policy, its style, and the elements that the script fills.
///
/// A `live` document may ask the server that it came from, and load nothing else either.
pub(super) fn frame(
    title: &str,
    (style_text, script_text, live): (&str, &str, bool),
    body: &str,
    out: &mut dyn Write,
) -> Result<(), ExportError> {
    let connect = if live { "connect-src 'self'; " } else { "" };
    let (style, script) = (allowed(style_text), allowed(script_text));
    let title = html_text(title);
    write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {style}; \
         script-src {script}; img-src data:; {connect}base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{title} - acpdb</title>\n<style>{style_text}</style>\n</head>\n<body>\n{body}"
    )?;
    Ok(())
}
