//! Reads JSON values from a file of them, one by one, wherever its lines end.
//!
//! ```text
//! {"a":1}\n            one value a line, the usual case
//! {"a":1}{"b":2}\n     two values glued on one line
//! {\n  "a": 1\n}\n     one value over several lines
//! {"a":1,"b":"x        a last value cut short: "not there yet"
//! {"a":"x\n{"b":2}\n   a value cut short in the middle: kept as broken bytes, reading goes on with the next line
//! ```
//!
//! Where records are read, whole ones that stand behind such bytes, on their line, are found too (see `torn`).
//!
//! A value is found by brackets and quotes alone, in one flat scan without recursion; the reader of a value checks that it
//! is JSON. The scan also measures depth, so nothing deeper than [`DEPTH_MAX`] reaches a parser. Memory: the longest value,
//! at most [`ValueReader::bytes_max`]; a value that is too long is read over without being kept.

use std::collections::VecDeque;
use std::io::{self, BufRead};

use memchr::memchr2;

use super::ImportError;
use super::limits::{Exceeded, Limits, exceeded};
use super::torn::{self, FoundValue, IsRecord, Unread};

/// Deepest nesting that is interpreted.
pub const DEPTH_MAX: u32 = 128;

/// Longest record of a line-wise format; the longest commit that the store takes holds one such record.
pub const RECORD_BYTES_MAX: usize = 64 << 20;

/// Longest session in one JSON document.
pub const DOCUMENT_BYTES_MAX: usize = 512 << 20;

/// The form of a value, as the scan found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shape {
    /// Brackets and quotes match; depth is within bounds.
    Whole,
    /// The input ends inside the value.
    Cut,
    /// It stood in the input in a form that is no JSON, and is whole now; the reason says what was mended.
    Mended(&'static str),
    /// It cannot be JSON, or must not be parsed; the bytes are all there.
    Broken(&'static str),
    /// Longer, or of more elements, than allowed; the bytes are not kept.
    TooMuch(Exceeded),
}

/// One value and its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonSpan<'a> {
    /// The value without white space around it. Empty if it is too much.
    pub bytes: &'a [u8],
    /// The same as it stands in the input: other bytes only if it was mended.
    pub raw: &'a [u8],
    /// Line on which it begins, from 1.
    pub line: u64,
    /// Offset of its first byte.
    pub offset: u64,
    /// The form of the value.
    pub shape: Shape,
}

/// No record of a host is shorter: it says what it is, and something besides. Values that are shorter are counted before anything is kept of them.
pub(super) const TINY_BYTES: usize = 16;

/// Reads values in order.
#[derive(Debug)]
pub struct ValueReader<R> {
    pub(super) input: Unread<R>,
    pub(super) bytes_max: usize,
    /// The name of that limit.
    limit: &'static str,
    elements_max: u64,
    /// Values that are too short to be a record of any host, and most of them.
    tiny: u64,
    tiny_max: u64,
    pub(super) buffer: Vec<u8>,
    /// A mended value as it stands in the input.
    raw: Vec<u8>,
    pub(super) line: u64,
    pub(super) offset: u64,
    /// Tells a record of the host, where records are looked for in broken bytes.
    is_record: Option<IsRecord>,
    /// Values that were found in broken bytes, and are still to be given.
    pub(super) found: VecDeque<FoundValue>,
    /// Bytes that may still be read ahead in vain.
    pub(super) ahead_max: usize,
}

impl<R: BufRead> ValueReader<R> {
    /// Reads `input`, keeping values of up to `bytes_max` bytes.
    pub fn new(input: R, bytes_max: usize) -> Self {
        Self {
            input: Unread::new(input),
            bytes_max,
            limit: "record",
            elements_max: u64::MAX,
            tiny: 0,
            tiny_max: u64::MAX,
            buffer: Vec::new(),
            raw: Vec::new(),
            line: 1,
            offset: 0,
            is_record: None,
            found: VecDeque::new(),
            ahead_max: torn::AHEAD_BYTES_MAX,
        }
    }

    /// Also finds whole records, as `is_record` tells them, behind broken bytes.
    #[must_use]
    pub(super) fn finding(self, is_record: IsRecord) -> Self {
        Self { is_record: Some(is_record), ..self }
    }

    /// Reads `input`, a record a line.
    pub fn records(input: R, limits: &Limits) -> Self {
        let reader = Self::new(input, limits.record_bytes());
        Self { elements_max: limits.elements, tiny_max: limits.unread, ..reader }
    }

    /// Reads `input`, whose values are whole documents.
    pub fn documents(input: R, limits: &Limits) -> Self {
        let reader = Self::new(input, limits.document_bytes());
        Self { limit: "document", elements_max: limits.elements, tiny_max: limits.unread, ..reader }
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Longest value that is kept.
    pub fn bytes_max(&self) -> usize {
        self.bytes_max
    }

    /// As [`Self::next_value`], for importers.
    pub(super) fn read(&mut self) -> Result<Option<JsonSpan<'_>>, ImportError> {
        let offset = self.offset;
        self.next_value().map_err(|source| match exceeded(&source) {
            Some(exceeded) => exceeded.into(),
            None => ImportError::Io { offset, source },
        })
    }

    /// The next value; `None` at the end of the input.
    ///
    /// # Errors
    /// Those of the input.
    pub fn next_value(&mut self) -> io::Result<Option<JsonSpan<'_>>> {
        self.buffer.clear();
        if let Some(piece) = self.found.pop_front() {
            return Ok(Some(self.given(piece)));
        }
        if !self.skip_blank()? {
            return Ok(None);
        }
        let (line, offset) = (self.line, self.offset);
        let mut scan = ValueScan::default();
        let mut too_much = None;
        let mut length = 0_u64;
        let shape = loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                break scan.at_end();
            }
            let (used, found) = scan.feed(chunk);
            let taken = chunk.get(..used).unwrap_or_default();
            length = length.saturating_add(used as u64);
            if length > self.bytes_max as u64 {
                let max = self.bytes_max as u64;
                too_much = too_much.or(Some(Exceeded { limit: self.limit, max, found: length }));
            } else if scan.elements > self.elements_max {
                let (max, found) = (self.elements_max, scan.elements);
                too_much = too_much.or(Some(Exceeded { limit: "elements", max, found }));
            }
            if too_much.is_some() {
                self.buffer = Vec::new();
            } else {
                self.buffer.extend_from_slice(taken);
            }
            self.input.consume(used);
            self.offset = self.offset.saturating_add(used as u64);
            if let Some(shape) = found {
                break shape;
            }
        };
        self.line = self.line.saturating_add(scan.lines);
        self.tiny = self.tiny.saturating_add(u64::from(length < TINY_BYTES as u64));
        if self.tiny > self.tiny_max {
            return Err(Exceeded { limit: "unread", max: self.tiny_max, found: self.tiny }.into());
        }
        if let Some(exceeded) = too_much {
            let shape = Shape::TooMuch(exceeded);
            return Ok(Some(JsonSpan { bytes: &[], raw: &[], line, offset, shape }));
        }
        if let Some(is_record) = self.is_record
            && self.look_for_records(is_record, (line, offset), shape)?
            && let Some(piece) = self.found.pop_front()
        {
            return Ok(Some(self.given(piece)));
        }
        let bytes = self.buffer.trim_ascii_end();
        Ok(Some(JsonSpan { bytes, raw: bytes, line, offset, shape }))
    }

    fn given(&mut self, piece: FoundValue) -> JsonSpan<'_> {
        let FoundValue { bytes, raw, line, offset, shape } = piece;
        (self.buffer, self.raw) = (bytes, raw);
        let bytes = self.buffer.trim_ascii_end();
        let raw = if self.raw.is_empty() { bytes } else { &self.raw };
        JsonSpan { bytes, raw, line, offset, shape }
    }

    /// Skips white space and a byte order mark; false at the end.
    fn skip_blank(&mut self) -> io::Result<bool> {
        const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
        loop {
            let chunk = self.input.fill_buf()?;
            if chunk.is_empty() {
                return Ok(false);
            }
            let mut used = 0;
            let mut found = false;
            for &byte in chunk {
                let is_mark = usize::try_from(self.offset).ok().and_then(|at| MARK.get(at)) == Some(&byte);
                if !is_mark && !byte.is_ascii_whitespace() {
                    found = true;
                    break;
                }
                self.line = self.line.saturating_add(u64::from(byte == b'\n'));
                self.offset = self.offset.saturating_add(1);
                used += 1;
            }
            self.input.consume(used);
            if found {
                return Ok(true);
            }
        }
    }
}

/// How many bytes were looked at, and the end of a value that is whole.
pub(super) fn value_end(bytes: &[u8]) -> (usize, Option<usize>) {
    let (used, shape) = ValueScan::default().feed(bytes);
    (used, (shape == Some(Shape::Whole)).then_some(used))
}

/// State of the scan of one value, fed in chunks of any size.
#[derive(Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about the place in the text")]
pub(super) struct ValueScan {
    started: bool,
    /// The value is no object or array: it ends with its line.
    bare: bool,
    pub(super) in_string: bool,
    pub(super) escaped: bool,
    depth: u32,
    too_deep: bool,
    /// Bit n: container n is an object.
    objects: u128,
    last: u8,
    line_start: bool,
    lines: u64,
    /// Elements and members, counted by brackets and commas.
    elements: u64,
}

impl ValueScan {
    /// Takes bytes of `chunk`; says how many belong to the value, and its shape once it has ended.
    pub(super) fn feed(&mut self, chunk: &[u8]) -> (usize, Option<Shape>) {
        let mut at = 0;
        if !self.started {
            self.started = true;
            self.bare = !matches!(chunk.first(), Some(b'{' | b'['));
        }
        if self.bare {
            return match memchr::memchr(b'\n', chunk) {
                Some(end) => (end, Some(NOT_A_RECORD)),
                None => (chunk.len(), None),
            };
        }
        while let Some(&byte) = chunk.get(at) {
            if self.in_string {
                // A byte behind a backslash ends no string; a line feed ends the record all the same.
                let from = if self.escaped && byte != b'\n' { at + 1 } else { at };
                self.escaped = false;
                let rest = chunk.get(from..).unwrap_or_default();
                let Some(next) = memchr2(b'"', b'\n', rest) else {
                    self.escaped = ends_escaping(rest);
                    return (chunk.len(), None);
                };
                at = from + next;
                if rest.get(next) == Some(&b'\n') {
                    return (at, Some(Shape::Broken(torn::ENDS_IN_STRING)));
                }
                self.in_string = ends_escaping(rest.get(..next).unwrap_or_default());
                at += 1;
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b',' => self.elements = self.elements.saturating_add(1),
                b'{' | b'[' => {
                    self.elements = self.elements.saturating_add(1);
                    if self.line_start && self.depth > 0 && !self.may_open() {
                        return (at, Some(Shape::Broken(torn::ENDS_EARLY)));
                    }
                    self.open(byte == b'{');
                }
                b'}' | b']' => {
                    // A bracket that closes nothing stands at depth 0, where a value has ended.
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        let shape = if self.too_deep { TOO_DEEP } else { Shape::Whole };
                        return (at + 1, Some(shape));
                    }
                }
                b'\n' => {
                    self.lines = self.lines.saturating_add(1);
                    self.line_start = true;
                    at += 1;
                    continue;
                }
                _ => {}
            }
            self.line_start = false;
            if !byte.is_ascii_whitespace() {
                self.last = byte;
            }
            at += 1;
        }
        (at, None)
    }

    fn at_end(&self) -> Shape {
        if self.bare { NOT_A_RECORD } else { Shape::Cut }
    }

    /// Whether a value may begin here, within another.
    fn may_open(&self) -> bool {
        if self.depth > DEPTH_MAX {
            return true;
        }
        let is_object = self.objects >> (self.depth - 1) & 1 == 1;
        if is_object { self.last == b':' } else { matches!(self.last, b'[' | b',') }
    }

    fn open(&mut self, object: bool) {
        if self.depth < DEPTH_MAX {
            let bit = 1u128 << self.depth;
            self.objects = if object { self.objects | bit } else { self.objects & !bit };
        } else {
            self.too_deep = true;
        }
        self.depth = self.depth.saturating_add(1);
    }
}

/// Whether the next byte is escaped, behind a part of a string that begins with none that is: an odd number of backslashes ends it.
pub(super) fn ends_escaping(part: &[u8]) -> bool {
    part.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

const NOT_A_RECORD: Shape = Shape::Broken("not a JSON object or array");
pub(super) const TOO_DEEP: Shape = Shape::Broken("nested more than 128 levels deep");

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;
    use std::io::BufReader;

    fn scan(input: &[u8], chunk: usize) -> String {
        let mut reader = ValueReader::new(BufReader::with_capacity(chunk, input), 1000);
        let mut out = String::new();
        while let Some(value) = reader.next_value().unwrap() {
            let text = String::from_utf8_lossy(value.bytes);
            let short: String = text.chars().take(24).collect();
            writeln!(out, "{}:{} {short:?} {:?}", value.line, value.offset, value.shape).unwrap();
        }
        out
    }

    fn check(input: &[u8], expected: &expect_test::Expect) {
        let whole = scan(input, 1 << 16);
        for chunk in [1, 2, 3, 7] {
            assert_eq!(scan(input, chunk), whole, "in chunks of {chunk}");
        }
        expected.assert_eq(&whole);
    }

    #[test]
    fn values_are_found_whatever_the_lines_do() {
        use expect_test::expect;
        check(b"", &expect![""]);
        check(b" \r\n\n", &expect![""]);
        check(
            b"\xef\xbb\xbf{\"a\":1}\r\n{\"b\":2}\r\n",
            &expect![[r#"
                1:3 "{\"a\":1}" Whole
                2:12 "{\"b\":2}" Whole
            "#]],
        );
        check(
            b"{\"a\":\"}{\\\"\"}{\"b\":2}[3]\n{\n \"c\":\n{\n}\n}\n{\"d\"",
            &expect![[r#"
                1:0 "{\"a\":\"}{\\\"\"}" Whole
                1:12 "{\"b\":2}" Whole
                1:19 "[3]" Whole
                2:23 "{\n \"c\":\n{\n}\n}" Whole
                7:37 "{\"d\"" Cut
            "#]],
        );
        check(
            b"{\"a\":\"\\\\\"}{\"b\":\"\\\\\\\"}\"}\n{\"c\":\"\\\n\"}",
            &expect![[r#"
            1:0 "{\"a\":\"\\\\\"}" Whole
            1:10 "{\"b\":\"\\\\\\\"}\"}" Whole
            2:24 "{\"c\":\"\\" Broken("a line ends inside a string")
            3:32 "\"}" Broken("not a JSON object or array")
        "#]],
        );
        check(
            b"{\"a\":\"x\n{\"b\":2}\n{\"c\":1,\n{\"d\":4}\nhello {\n{\"e\":5}",
            &expect![[r#"
                1:0 "{\"a\":\"x" Broken("a line ends inside a string")
                2:8 "{\"b\":2}" Whole
                3:16 "{\"c\":1," Broken("a value ends in the middle of a line")
                4:24 "{\"d\":4}" Whole
                5:32 "hello {" Broken("not a JSON object or array")
                6:40 "{\"e\":5}" Whole
            "#]],
        );
    }

    #[test]
    fn long_and_deep_values_are_told_and_passed_over() {
        let mut input = vec![b'['; 1_000_000];
        input.extend(vec![b']'; 1_000_000]);
        input.extend(b"\n{\"a\":1}\n");
        let found = scan(&input, 4096);
        let told = "TooMuch(Exceeded { limit: \"record\", max: 1000, found: 4096 })";
        assert_eq!(found, format!("1:0 \"\" {told}\n2:2000001 \"{{\\\"a\\\":1}}\" Whole\n"));

        let limits = Limits { elements: 4, ..Limits::default() };
        let listed = b"[1,2,3]\n[1,2,3,\"4,5,6\"]\n[[],[],[],[]]\n{}" as &[u8];
        let mut reader = ValueReader::records(listed, &limits);
        let mut shapes = Vec::new();
        while let Some(value) = reader.next_value().unwrap() {
            shapes.push(value.shape);
        }
        let many = |found| Shape::TooMuch(Exceeded { limit: "elements", max: 4, found });
        assert_eq!(shapes, [Shape::Whole, Shape::Whole, many(8), Shape::Whole]);

        let mut reader = ValueReader::new(input.as_slice(), 4 << 20);
        assert_eq!(reader.next_value().unwrap().unwrap().shape, TOO_DEEP);
        assert_eq!(reader.next_value().unwrap().unwrap().shape, Shape::Whole);
    }
}
