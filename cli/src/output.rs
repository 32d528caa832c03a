//! Standard output and standard error: data goes to stdout, remarks and failures go to stderr.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io::{self, BufWriter, IsTerminal as _, Write};

use acpdb_engine::Store;
use acpdb_query::PageCursor;
use serde::Serialize;

use crate::failure::{Code, Failure};
use crate::global::{ColorChoice, Global};
use crate::pager::{self, Pager};

/// Buffer of output to a pager, in bytes: small, so that the first screen comes at once.
const PAGED_BYTES: usize = 4 << 10;

/// Prints to stderr, and goes on if that fails.
macro_rules! say {
    ($($argument:tt)*) => {{
        let _ = writeln!(anstream::stderr(), $($argument)*);
    }};
}

/// Prints data and messages as the global options ask.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub(crate) struct Output {
    out: BufWriter<Box<dyn Write>>,
    /// JSON for programs.
    pub(crate) json: bool,
    /// Colours in data.
    pub(crate) color: bool,
    /// No progress and no remarks.
    pub(crate) quiet: bool,
    /// Progress of long work, on stderr if that is a terminal.
    pub(crate) progress: bool,
    /// Data goes to a person.
    pub(crate) terminal: bool,
    /// Columns of the terminal, 100 if there is none.
    pub(crate) width: usize,
    /// Lists go to a program: whole cells, with a tab between them. True if stdout is no terminal and `COLUMNS` is not set.
    pub(crate) tabs: bool,
    /// The name of the store, if it was one of several: answers for programs say it.
    store_label: Option<String>,
    /// A store was opened to record in it.
    pub(crate) records: Cell<bool>,
    /// The store that is read.
    store: RefCell<Option<Store>>,
    /// Damage that was told already, as its printed text.
    told: RefCell<BTreeSet<String>>,
    /// Lines for stderr that wait until the pager has given the terminal back; `None` without a pager.
    held: RefCell<Option<Vec<String>>>,
}

/// Columns of the terminal that standard output is, if it is one.
fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}

impl Output {
    pub(crate) fn new(global: &Global) -> Self {
        let terminal = io::stdout().is_terminal();
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let color = match global.color() {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !no_color && std::env::var("TERM").as_deref() != Ok("dumb"),
        };
        let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
        let width = columns.or_else(terminal_width).unwrap_or(100);
        Self {
            out: BufWriter::with_capacity(64 << 10, Box::new(io::stdout())),
            json: global.json,
            color,
            quiet: global.quiet,
            progress: !global.quiet && !global.json && global.settings.progress != Some(false),
            terminal,
            width: width.max(20),
            tabs: !terminal && columns.is_none(),
            store_label: global.store_label.clone(),
            records: Cell::new(false),
            store: RefCell::default(),
            told: RefCell::default(),
            held: RefCell::default(),
        }
    }

    /// Remembers the store that answers come from.
    pub(crate) fn reads(&self, store: &Store) {
        self.store.replace(Some(store.clone()));
    }

    /// Says, once for each place, that an answer leaves out the damage there.
    pub(crate) fn left_out(&self, place: &str) {
        if self.told.borrow_mut().insert(place.to_owned()) {
            self.warn(format!("left out: {place}"));
        }
    }

    /// Says which damage the answers leave out. Returns true if there was any.
    pub(crate) fn tell_of_damage(&self) -> bool {
        let damage = self.store.take().map(|store| store.damage_met()).unwrap_or_default();
        for place in &damage {
            self.left_out(place);
        }
        let met = !self.told.borrow().is_empty();
        if met {
            self.note("what is shown is sound, and not all there was; run acpdb verify");
        }
        met
    }

    /// Columns that are left beside `used` columns; 0 where the terminal is narrower than `used`.
    pub(crate) fn room(&self, used: usize) -> usize {
        // 0 is the answer for a terminal that is too narrow.
        self.width.saturating_sub(used)
    }

    /// One line of data. On a terminal nothing in it can steer that terminal, whatever its caller let through.
    pub(crate) fn line(&mut self, line: impl AsRef<str>) -> Result<(), Failure> {
        self.piece(line.as_ref())?;
        self.bytes(b"\n")
    }

    /// A part of a line.
    fn piece(&mut self, text: &str) -> Result<(), Failure> {
        if self.terminal {
            return self.bytes(escape_but_styles(text, self.color).as_bytes());
        }
        self.bytes(text.as_bytes())
    }

    /// One line of data in a style, if there are colours.
    pub(crate) fn styled(&mut self, style: anstyle::Style, line: impl AsRef<str>) -> Result<(), Failure> {
        self.line(self.paint(style, line.as_ref()))
    }

    /// One line of data in pieces: the pieces of `lead` as they are, then `text` in a style, if there are colours.
    pub(crate) fn line_of(
        &mut self,
        lead: &[&str],
        style: anstyle::Style,
        text: &str,
    ) -> Result<(), Failure> {
        for piece in lead {
            self.piece(piece)?;
        }
        if self.color {
            return self.line(self.paint(style, text));
        }
        self.line(text)
    }

    /// Data as it is.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let written = self.out.write_all(bytes);
        self.written(written)
    }

    /// A verb that records goes on when the reader of its output has gone: only what it prints is lost.
    fn written(&mut self, written: io::Result<()>) -> Result<(), Failure> {
        match written {
            Err(unsaid) if unsaid.kind() == io::ErrorKind::BrokenPipe && self.records.get() => {
                self.out = BufWriter::new(Box::new(io::sink()));
                Ok(())
            }
            written => written.map_err(Failure::output),
        }
    }

    /// One JSON value on a line. With it most verbs end, and end well.
    pub(crate) fn json_line(&mut self, value: &impl Serialize) -> Result<Code, Failure> {
        let text = serde_json::to_string(value)
            .map_err(|error| Failure::new(Code::Failure, format!("cannot print JSON: {error}")))?;
        match (&self.store_label, text.strip_suffix('}')) {
            // Each line is an object with a schema.
            (Some(label), Some(fields)) => {
                self.json_text(&format!("{fields},\"store\":{}}}", serde_json::json!(label)))
            }
            _ => self.json_text(&text),
        }?;
        Ok(Code::Ok)
    }

    /// JSON that is text already, on a line. A terminal gets the same JSON with hostile characters escaped.
    pub(crate) fn json_text(&mut self, text: &str) -> Result<(), Failure> {
        if self.terminal { self.line(escape_json(text)) } else { self.line(text) }
    }

    /// A list for programs: `{"schema", "items", ..}`.
    pub(crate) fn json_items(&mut self, schema: &str, items: &impl Serialize) -> Result<Code, Failure> {
        #[derive(Serialize)]
        struct JsonList<'a, T: Serialize> {
            schema: &'a str,
            items: &'a T,
        }
        self.json_line(&JsonList { schema, items })
    }

    /// A single answer for programs: its fields behind `schema`.
    pub(crate) fn json_object(&mut self, schema: &str, value: &impl Serialize) -> Result<Code, Failure> {
        #[derive(Serialize)]
        struct Object<'a, T: Serialize> {
            schema: &'a str,
            #[serde(flatten)]
            value: &'a T,
        }
        self.json_line(&Object { schema, value })
    }

    /// A page of a list: `{"schema", "items", "next_cursor"}`, the last one without a cursor.
    pub(crate) fn json_page(
        &mut self,
        schema: &str,
        items: &[serde_json::Value],
        next_cursor: Option<PageCursor>,
    ) -> Result<Code, Failure> {
        #[derive(Serialize)]
        struct JsonPage<'a> {
            items: &'a [serde_json::Value],
            #[serde(skip_serializing_if = "Option::is_none")]
            next_cursor: Option<PageCursor>,
        }
        self.json_object(schema, &JsonPage { items, next_cursor })
    }

    /// Sends later output through a pager, if it goes to a terminal and the user wants a pager.
    pub(crate) fn page(&mut self, global: &Global) {
        if !self.terminal || global.no_pager {
            return;
        }
        if let Some(words) = pager::command(&global.settings) {
            self.out = BufWriter::with_capacity(PAGED_BYTES, Box::new(Pager::new(words)));
            self.held.replace(Some(Vec::new()));
        }
    }

    /// Writes all that is buffered, and waits for the pager. Data cannot be printed afterwards, only messages.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        let flushed = self.flush();
        self.out = BufWriter::new(Box::new(io::sink()));
        for line in self.held.take().unwrap_or_default() {
            say!("{line}");
        }
        flushed
    }

    /// Prints a line to stderr now, or once the pager has ended.
    fn tell(&self, line: String) {
        match self.held.borrow_mut().as_mut() {
            Some(held) => held.push(line),
            None => say!("{line}"),
        }
    }

    /// Writes all data that was printed so far.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        let written = self.out.flush();
        self.written(written)
    }

    /// A remark on stderr, unless `quiet` is set.
    pub(crate) fn note(&self, text: impl AsRef<str>) {
        if !self.quiet {
            self.tell(escape(text.as_ref(), EscapeLevel::Text).into_owned());
        }
    }

    /// Something the user must know, on stderr.
    pub(crate) fn warn(&self, text: impl AsRef<str>) {
        self.tell(format!("warning: {}", escape(text.as_ref(), EscapeLevel::Text)));
    }

    /// A failure, on stderr.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.tell(format!("error: {}", escape(&failure.message, EscapeLevel::Text)));
        if let Some(hint) = &failure.hint {
            self.tell(format!("  hint: {}", escape(hint, EscapeLevel::Text)));
        }
    }

    /// Text in a style, if there are colours.
    pub(crate) fn paint(&self, style: anstyle::Style, text: &str) -> String {
        if self.color { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// Recorded text on its way to a terminal (or a file): control characters become visible on a terminal.
    pub(crate) fn recorded<'t>(&self, text: &'t str, escaping: EscapeLevel) -> std::borrow::Cow<'t, str> {
        if self.terminal || escaping == EscapeLevel::Line { escape(text, escaping) } else { text.into() }
    }
}

/// How far recorded text is escaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EscapeLevel {
    /// Tabs and line feeds stay.
    Text,
    /// Everything on one line: tab, line feed and backslash become `\t`, `\n`, `\\`.
    Line,
}

/// Whether a text has only characters from blank to `~`, as nearly every text has: each is one byte and one column, and harmless.
pub(crate) fn is_plain(text: &str) -> bool {
    // Eight bytes at a time: every line that is printed passes here, and this program is compiled with little optimisation.
    const ONES: u64 = u64::MAX / 255;
    let is_word_plain = |word: u64| {
        // The highest bit of each term says: the byte is no ASCII; it is before the blank; it is behind `~`.
        let marks = word | word.wrapping_sub(ONES * 0x20) | word.wrapping_add(ONES);
        marks & (ONES * 0x80) == 0
    };
    let (words, rest) = text.as_bytes().as_chunks();
    words.iter().all(|word| is_word_plain(u64::from_le_bytes(*word)))
        && rest.iter().all(|byte| matches!(byte, b' '..=b'~'))
}

/// Makes control, bidi and invisible characters visible, so that recorded text cannot steer a terminal.
pub(crate) fn escape(text: &str, escaping: EscapeLevel) -> std::borrow::Cow<'_, str> {
    let line = escaping == EscapeLevel::Line;
    if is_plain(text) && (!line || memchr::memchr(b'\\', text.as_bytes()).is_none()) {
        return text.into();
    }
    let harmless = |c: char| {
        if line && (c == '\\' || c == '\n' || c == '\t') {
            return false;
        }
        c == '\n' || c == '\t' || !is_hostile(c)
    };
    if text.chars().all(harmless) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\\' if line => out.push_str("\\\\"),
            '\n' if line => out.push_str("\\n"),
            '\t' if line => out.push_str("\\t"),
            '\r' if line => out.push_str("\\r"),
            _ if harmless(c) => out.push(c),
            _ => {
                use std::fmt::Write as _;
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
        }
    }
    out.into()
}

/// The sequences of the styles of this program, of its tables and of the reader of arguments: they colour, and do nothing else.
const STYLES: [&str; 9] = ["0", "1", "2", "4", "22", "31", "32", "33", "36"];

/// As [`escape`], for a text that is put together already: with `styled`, the sequences of styles stay.
pub(crate) fn escape_but_styles(text: &str, styled: bool) -> std::borrow::Cow<'_, str> {
    if !styled || memchr::memchr(b'\x1b', text.as_bytes()).is_none() {
        return escape(text, EscapeLevel::Text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for (number, part) in text.split('\x1b').enumerate() {
        let style = part.strip_prefix('[').and_then(|rest| rest.split_once('m'));
        match style {
            _ if number == 0 => {}
            Some((style, _)) if STYLES.contains(&style) => out.push('\x1b'),
            _ => out.push_str(&escape("\x1b", EscapeLevel::Text)),
        }
        out.push_str(&escape(part, EscapeLevel::Text));
    }
    out.into()
}

/// Escapes JSON, which stays the same JSON: hostile characters stand only in its strings, where they may be escapes. A carriage
/// return is white space between values.
fn escape_json(text: &str) -> std::borrow::Cow<'_, str> {
    let harmless = |c: char| c == '\n' || c == '\t' || !is_hostile(c);
    if is_plain(text) || text.chars().all(harmless) {
        return text.into();
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\r' => out.push(' '),
            _ if harmless(c) => out.push(c),
            _ => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    use std::fmt::Write as _;
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
        }
    }
    out.into()
}

/// C0 but tab and line feed, DEL, C1, bidi controls, zero-width characters and tags.
fn is_hostile(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        || matches!(c, '\u{61c}' | '\u{180e}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_is_what_lies_between_blank_and_tilde() {
        for c in ('\0'..='\u{2ff}').chain(['\u{200b}', '\u{10ffff}']) {
            for length in 0..20 {
                for place in 0..=length {
                    let filling = ['~', ' ', 'a'][place % 3].to_string();
                    let text = format!("{}{c}{}", filling.repeat(place), filling.repeat(length - place));
                    assert_eq!(is_plain(&text), (' '..='~').contains(&c), "{text:?}");
                }
            }
        }
        assert!(is_plain(""));
    }

    #[test]
    fn recorded_text_cannot_steer_a_terminal() {
        for (text, shown) in [
            ("plain\ttext\n", "plain\ttext\n"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("a\u{202e}b", "a\\u{202e}b"),
            ("a\u{200b}b\u{7f}\u{9b}", "a\\u{200b}b\\u{7f}\\u{9b}"),
            ("a\u{ad}b", "a\\u{ad}b"),
            ("c:\\x", "c:\\x"),
        ] {
            assert_eq!(escape(text, EscapeLevel::Text), shown);
        }
        assert_eq!(escape("a\\\tb\nc\r", EscapeLevel::Line), "a\\\\\\tb\\nc\\r");
    }

    /// A line that is put together has styles in it, and a text of which no caller thought.
    #[test]
    fn styles_of_this_program_stay_and_nothing_else() {
        for (text, shown) in [
            ("\u{1b}[2mdim\u{1b}[0m", "\u{1b}[2mdim\u{1b}[0m"),
            ("\u{1b}[1m\u{1b}[31mred\u{1b}[0m\n", "\u{1b}[1m\u{1b}[31mred\u{1b}[0m\n"),
            ("\u{1b}[8mhidden", "\\u{1b}[8mhidden"),
            ("\u{1b}[2J\u{1b}]0;t\u{7}", "\\u{1b}[2J\\u{1b}]0;t\\u{7}"),
            ("a\u{1b}", "a\\u{1b}"),
            ("\u{1b}[2mx\u{9b}2J\u{202e}\u{1b}[0m", "\u{1b}[2mx\\u{9b}2J\\u{202e}\u{1b}[0m"),
        ] {
            assert_eq!(escape_but_styles(text, true), shown);
            assert!(!escape_but_styles(text, false).contains('\u{1b}'), "{text:?}");
        }
    }

    /// Strings of JSON had DEL and C1 in them, and a terminal takes U+009B for the beginning of a sequence.
    #[test]
    fn json_on_a_terminal_is_the_same_json_and_cannot_steer_it() {
        for (text, shown) in [
            (r#"{"a":"plain é"}"#, r#"{"a":"plain é"}"#),
            ("{\r\n\t\"a\":\"\u{9b}2J\u{85}\u{7f}\"}", "{ \n\t\"a\":\"\\u009b2J\\u0085\\u007f\"}"),
            ("\"\u{202e}\u{200b}\u{e0041}\"", "\"\\u202e\\u200b\\udb40\\udc41\""),
        ] {
            assert_eq!(escape_json(text), shown);
            let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
            assert_eq!(read(&escape_json(text)), read(text));
        }
    }
}
