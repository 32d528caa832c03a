//! Whole records behind broken bytes, on the same line; and records in whose strings raw control characters stand.
//!
//! ```text
//! {"type":"user","mess{"type":"user",..}\n      half a record, then a whole one: both are given
//! \0\0\0\0{"type":"user",..}\n                 bytes that a power cut left before it
//! {"type":"user",.."one\ntwo\n"}\n             a writer that did not escape: read as if it had (tabs and zeros as well)
//! ```
//!
//! A piece counts as a record only if it is JSON, has the marks of its host's records, and is no part of a larger value:
//! nothing follows that would go on with one. Bytes between records are given as broken. Looking takes time in
//! proportion to the line.

use std::io::{self, BufRead, Read};
use std::ops::Range;

use memchr::{memchr_iter, memmem};

use super::values::{Shape, TOO_DEEP, ValueReader, ValueScan, value_end};

/// Tells whether a text is a record of the host.
pub(super) type IsRecord = fn(&str) -> bool;

pub(super) const ENDS_IN_STRING: &str = "a line ends inside a string";
pub(super) const ENDS_EARLY: &str = "a value ends in the middle of a line";
const MENDED: &str = "raw control characters stand in a string; it is read as if they were escaped";

/// Most bytes of an input that are read ahead in vain, to see whether a record goes on behind a line feed.
pub(super) const AHEAD_BYTES_MAX: usize = 256 << 20;
/// Most bytes that are looked at for each byte of a broken line.
const LOOKS_PER_BYTE: usize = 16;
/// Looks that are free.
const FREE_LOOKS: usize = 1 << 20;

/// A value that was found in broken bytes, or lies between such values.
#[derive(Debug)]
pub(super) struct FoundValue {
    pub(super) bytes: Vec<u8>,
    /// The same as it stands in the input, if it was mended.
    pub(super) raw: Vec<u8>,
    pub(super) line: u64,
    pub(super) offset: u64,
    pub(super) shape: Shape,
}

/// An input to which bytes can be given back.
#[derive(Debug)]
pub(super) struct Unread<R> {
    back: Vec<u8>,
    at: usize,
    rest: R,
}

impl<R: BufRead> Unread<R> {
    pub(super) const fn new(rest: R) -> Self {
        Self { back: Vec::new(), at: 0, rest }
    }

    /// Gives back bytes: they are the next ones.
    fn give_back(&mut self, mut bytes: Vec<u8>) {
        bytes.extend_from_slice(self.back.get(self.at..).unwrap_or_default());
        (self.back, self.at) = (bytes, 0);
    }
}

impl<R: BufRead> Read for Unread<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(buffer)?;
        self.consume(count);
        Ok(count)
    }
}

impl<R: BufRead> BufRead for Unread<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.back.get(self.at..) {
            Some(back) if !back.is_empty() => Ok(back),
            _ => self.rest.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        if self.at < self.back.len() {
            self.at += count;
            if self.at >= self.back.len() {
                (self.back, self.at) = (Vec::new(), 0);
            }
        } else {
            self.rest.consume(count);
        }
    }
}

/// The places of whole records in broken bytes.
pub(super) fn records_in(bytes: &[u8], is_record: IsRecord) -> Vec<Range<usize>> {
    let mut looks = bytes.len().saturating_mul(LOOKS_PER_BYTE).saturating_add(FREE_LOOKS);
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(next) = bytes.get(at..).and_then(|rest| memmem::find(rest, b"{\"")) {
        let start = at + next;
        at = start + 1;
        let rest = bytes.get(start..).unwrap_or_default();
        let (looked, end) = value_end(rest);
        if let Some(end) = end.filter(|end| is_whole_record(rest, *end, is_record)) {
            at = start + end;
            found.push(start..at);
        }
        // At 0 the search ends.
        looks = looks.saturating_sub(looked);
        if looks == 0 {
            break;
        }
    }
    found
}

/// Whether the bytes up to `end` are a record, and no part of a larger value.
fn is_whole_record(bytes: &[u8], end: usize, is_record: IsRecord) -> bool {
    let (value, behind) = bytes.split_at_checked(end).unwrap_or_default();
    let goes_on = matches!(behind.trim_ascii_start().first(), Some(b',' | b'}' | b']' | b':'));
    !goes_on && std::str::from_utf8(value).is_ok_and(is_record)
}

impl<R: BufRead> ValueReader<R> {
    /// Looks for records in the value that was just read, from `place` (line and offset) on. True: the pieces are found.
    pub(super) fn look_for_records(
        &mut self,
        is_record: IsRecord,
        place: (u64, u64),
        shape: Shape,
    ) -> io::Result<bool> {
        let reason = match shape {
            TOO_DEEP | Shape::TooMuch(_) | Shape::Mended(_) => return Ok(false),
            Shape::Whole if serde_json::from_slice::<serde::de::IgnoredAny>(&self.buffer).is_ok() => {
                return Ok(false);
            }
            Shape::Whole if self.mend(is_record, place) => return Ok(true),
            Shape::Broken(reason) => reason,
            Shape::Cut | Shape::Whole => ENDS_EARLY,
        };
        // Brackets that match by accident end in the middle of a line.
        let mut rest = Vec::new();
        if shape == Shape::Whole {
            // A value is no longer than that.
            let max = self.bytes_max.saturating_sub(self.buffer.len()) as u64;
            self.input.by_ref().take(max).read_until(b'\n', &mut rest)?;
        }
        let length = self.buffer.len();
        self.buffer.extend_from_slice(&rest);
        let records = records_in(&self.buffer, is_record);
        let Some(last) = records.last().map(|last| last.end) else {
            self.buffer.truncate(length);
            self.input.give_back(rest);
            return if reason == ENDS_IN_STRING { self.join(is_record, place) } else { Ok(false) };
        };
        let bytes = std::mem::take(&mut self.buffer);
        let mut done = 0;
        for record in records {
            self.piece(&bytes, done..record.start, place, Shape::Broken(reason));
            done = record.end;
            self.piece(&bytes, record, place, Shape::Whole);
        }
        // Bytes behind the last one may go on behind the line.
        let behind = bytes.get(last..).unwrap_or_default();
        let end = place.1.saturating_add(last as u64);
        self.line = place.0.saturating_add(line_feeds(bytes.get(..last).unwrap_or_default()));
        self.offset = end;
        self.input.give_back(behind.to_vec());
        Ok(true)
    }

    fn piece(&mut self, bytes: &[u8], range: Range<usize>, (line, offset): (u64, u64), shape: Shape) {
        let piece = bytes.get(range.clone()).unwrap_or_default();
        if piece.trim_ascii().is_empty() {
            return;
        }
        let before = bytes.get(..range.start).unwrap_or_default();
        self.found.push_back(FoundValue {
            bytes: piece.to_vec(),
            raw: Vec::new(),
            line: line.saturating_add(line_feeds(before)),
            offset: offset.saturating_add(range.start as u64),
            shape,
        });
    }

    /// Escapes the control characters in the strings of the value that was just read, if it is a record then.
    fn mend(&mut self, is_record: IsRecord, (line, offset): (u64, u64)) -> bool {
        let Some(bytes) =
            escaped(&self.buffer).filter(|bytes| is_whole_record(bytes, bytes.len(), is_record))
        else {
            return false;
        };
        let raw = std::mem::take(&mut self.buffer);
        self.found.push_back(FoundValue { bytes, raw, line, offset, shape: Shape::Mended(MENDED) });
        true
    }

    /// Joins a line that ends inside a string with the lines behind it, if they make a record together.
    fn join(&mut self, is_record: IsRecord, (line, offset): (u64, u64)) -> io::Result<bool> {
        let mut joined = self.buffer.clone();
        let (mut scan, mut read) = (ValueScan::default(), Vec::new());
        scan.feed(&joined);
        let mut end = None;
        // The line feed of the line itself.
        self.input.by_ref().take(1).read_to_end(&mut read)?;
        while end.is_none() && joined.len() < self.bytes_max && read.len() < self.ahead_max {
            let start = read.len();
            // Above it the loop has ended.
            let max = self.bytes_max.saturating_sub(joined.len()) as u64;
            self.input.by_ref().take(max).read_until(b'\n', &mut read)?;
            let next = read.get(start..).unwrap_or_default();
            let next = next.strip_suffix(b"\n").unwrap_or(next);
            let own = next.trim_ascii();
            let begins_anew = own.starts_with(b"{\"") && !records_in(own, is_record).is_empty();
            if read.len() == start || begins_anew || !scan.in_string {
                break;
            }
            let at = joined.len();
            joined.extend_from_slice(if scan.escaped { b"n" } else { b"\\n" });
            joined.extend_from_slice(next);
            let fed = joined.get(at..).unwrap_or_default();
            let (used, shape) = scan.feed(fed);
            match shape {
                Some(Shape::Whole) => end = Some((at + used, start + next.len() - (fed.len() - used))),
                Some(_) => break,
                None => {}
            }
        }
        let whole = end.map(|(end, _)| joined.get(..end).unwrap_or_default());
        let whole = whole.map(|bytes| escaped(bytes).unwrap_or_else(|| bytes.to_vec()));
        let whole = whole.filter(|bytes| is_whole_record(bytes, bytes.len(), is_record));
        let (Some(bytes), Some((_, taken))) = (whole, end) else {
            // At 0 nothing is read ahead any more.
            self.ahead_max = self.ahead_max.saturating_sub(read.len());
            self.input.give_back(read);
            return Ok(false);
        };
        let behind = read.split_off(taken);
        self.line = self.line.saturating_add(line_feeds(&read));
        self.offset = self.offset.saturating_add(read.len() as u64);
        self.input.give_back(behind);
        let raw = [&*self.buffer, &*read].concat();
        self.found.push_back(FoundValue { bytes, raw, line, offset, shape: Shape::Mended(MENDED) });
        Ok(true)
    }
}

/// A text with the control characters in its strings escaped; none if there is none.
fn escaped(bytes: &[u8]) -> Option<Vec<u8>> {
    let (mut out, mut done) = (Vec::new(), 0);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, &byte) in bytes.iter().enumerate() {
        if in_string && byte < 0x20 {
            out.extend_from_slice(bytes.get(done..at).unwrap_or_default());
            if !is_escaped {
                out.push(b'\\');
            }
            match byte {
                b'\n' => out.push(b'n'),
                b'\r' => out.push(b'r'),
                b'\t' => out.push(b't'),
                _ => out.extend_from_slice(format!("u{byte:04x}").as_bytes()),
            }
            done = at + 1;
        }
        if in_string {
            in_string = is_escaped || byte != b'"';
            is_escaped = !is_escaped && byte == b'\\';
        } else {
            in_string = byte == b'"';
        }
    }
    out.extend_from_slice(bytes.get(done..).unwrap_or_default());
    (done > 0).then_some(out)
}

fn line_feeds(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;
    use crate::import::json::pick;

    fn is_record(text: &str) -> bool {
        pick(text, ["t", "n"]).is_some_and(|found| found.iter().all(Option::is_some))
    }

    fn read(input: &str) -> String {
        let read = |capacity| {
            let input = BufReader::with_capacity(capacity, input.as_bytes());
            let mut reader = ValueReader::new(input, 1000).finding(is_record);
            let mut out = String::new();
            while let Some(value) = reader.next_value().unwrap() {
                let shape = match value.shape {
                    Shape::Whole => "whole",
                    Shape::Mended(_) => "mended",
                    Shape::Broken(_) => "broken",
                    Shape::Cut => "cut",
                    Shape::TooMuch(_) => "long",
                };
                let text = String::from_utf8_lossy(value.bytes).replace('\0', "0");
                out.push_str(&format!("{}:{} {shape} {text:?}\n", value.line, value.offset));
            }
            out
        };
        let whole = read(1 << 10);
        assert_eq!(read(1), whole);
        assert_eq!(read(7), whole);
        whole
    }

    /// A whole record behind half of one was lost with it: its call had no result for ever.
    #[test]
    fn whole_records_behind_broken_bytes_are_found() {
        use expect_test::expect;
        let table = [
            // Torn inside a string, outside of one, in a list; twice; with whole ones around.
            "{\"t\":1,\"n\":\"ab{\"t\":1,\"n\":2}\n{\"t\":1,\"n\":3}\n",
            "{\"t\":1,\"n\":{\"a\":1},{\"t\":1,\"n\":[{\"b\":2}]}\n{\"t\":1,\"n\":3}",
            "{\"t\":1,\"n\":[{\"a\":1}{\"t\":1,\"n\":4}\n{\"t\":1,\"n\":5}\n{\"t\":1,\"n\":6}\n",
            "{\"t\":1,\"n\":[{\"a\":1},{\"t\":1,\"n\":4}\n{\"t\":1,\"n\":5}\n",
            "{\"t\":1,\"{\"t\":2,\"n{\"t\":1,\"n\":\"\\\"x\\\"\"}{\"t\":1,\"n\":7}{\"t\n{\"t\":1,\"n\":8}\n",
            "\0\0\0{\"t\":1,\"n\":9}\n",
            "noise {\"t\":1,\"n\":9} more\n",
            // Nothing to be found: no record, and a part of a larger value.
            "{\"t\":1,\"n\":{\"t\":1,\"n\":2},\"x\n{\"t\":1,\"n\":3}\n",
            "{\"x\":\"{\"a\":1}\n",
            // The last line.
            "{\"t\":1,\"n\":\"ab{\"t\":1,\"n\":2}",
            "{\"t\":1,\"n\":2}{\"t\":1,\"n\":",
        ];
        let told: Vec<String> = table.iter().map(|input| read(input)).collect();
        expect![[r#"
            1:0 broken "{\"t\":1,\"n\":\"ab"
            1:14 whole "{\"t\":1,\"n\":2}"
            2:28 whole "{\"t\":1,\"n\":3}"

            1:0 broken "{\"t\":1,\"n\":{\"a\":1},"
            1:19 whole "{\"t\":1,\"n\":[{\"b\":2}]}"
            2:41 whole "{\"t\":1,\"n\":3}"

            1:0 broken "{\"t\":1,\"n\":[{\"a\":1}"
            1:19 whole "{\"t\":1,\"n\":4}"
            2:33 whole "{\"t\":1,\"n\":5}"
            3:47 whole "{\"t\":1,\"n\":6}"

            1:0 broken "{\"t\":1,\"n\":[{\"a\":1},"
            1:20 whole "{\"t\":1,\"n\":4}"
            2:34 whole "{\"t\":1,\"n\":5}"

            1:0 broken "{\"t\":1,\"{\"t\":2,\"n"
            1:17 whole "{\"t\":1,\"n\":\"\\\"x\\\"\"}"
            1:36 whole "{\"t\":1,\"n\":7}"
            1:49 broken "{\"t"
            2:53 whole "{\"t\":1,\"n\":8}"

            1:0 broken "000"
            1:3 whole "{\"t\":1,\"n\":9}"

            1:0 broken "noise"
            1:6 whole "{\"t\":1,\"n\":9}"
            1:20 broken "more"

            1:0 broken "{\"t\":1,\"n\":{\"t\":1,\"n\":2},\"x"
            2:28 whole "{\"t\":1,\"n\":3}"

            1:0 broken "{\"x\":\"{\"a\":1}"

            1:0 broken "{\"t\":1,\"n\":\"ab"
            1:14 whole "{\"t\":1,\"n\":2}"

            1:0 whole "{\"t\":1,\"n\":2}"
            1:13 cut "{\"t\":1,\"n\":"
        "#]]
        .assert_eq(&told.join("\n"));
    }

    /// A program wrote line feeds into a string as they are: each of its records was three broken lines. With a tab the whole record was lost.
    #[test]
    fn a_record_with_raw_control_characters_is_read_as_if_they_were_escaped() {
        use expect_test::expect;
        let table = [
            "{\"t\":1,\"n\":\"a\nb\n{ c }\r\n\nd\"}{\"t\":2,\"n\":2}\n{\"t\":1,\"n\":3}\n",
            "{\"t\":1,\"n\":\"a\\\nb\"}\n",
            "{\"t\":1,\"n\":\"a\tb\0\\\"\u{b}\"}\n{\"t\":1,\"n\":\"\t\n\"}\n",
            // Torn for good: the next line is a record of its own, or the file ends.
            "{\"t\":1,\"n\":\"a\n{\"t\":1,\"n\":3}\n",
            "{\"t\":1,\"n\":\"a\nb\nc\n",
        ];
        let told: Vec<String> = table.iter().map(|input| read(input)).collect();
        expect![[r#"
            1:0 mended "{\"t\":1,\"n\":\"a\\nb\\n{ c }\\r\\n\\nd\"}"
            5:27 whole "{\"t\":2,\"n\":2}"
            6:41 whole "{\"t\":1,\"n\":3}"

            1:0 mended "{\"t\":1,\"n\":\"a\\nb\"}"

            1:0 mended "{\"t\":1,\"n\":\"a\\tb\\u0000\\\"\\u000b\"}"
            2:22 mended "{\"t\":1,\"n\":\"\\t\\n\"}"

            1:0 broken "{\"t\":1,\"n\":\"a"
            2:14 whole "{\"t\":1,\"n\":3}"

            1:0 broken "{\"t\":1,\"n\":\"a"
            2:14 broken "b"
            3:16 broken "c"
        "#]]
        .assert_eq(&told.join("\n"));
    }
}
