//! Lines of JSON from another program, one after the other: limits on their bytes and their elements. Pure.
//!
//! ```text
//! input --next_line--> a text within both limits, or why it is refused; the next line is read all the same
//! ```
//!
//! A parser takes tens of times the bytes of a text whose values are small (`{},{},{}`), so a length alone bounds no memory.
//! Elements are counted by brackets and commas, before anything is parsed. The reader of a line checks that it is JSON.

use std::io::{self, BufRead};

use memchr::memchr2;

/// Longest line: no commit of the store is longer.
pub const LINE_BYTES_MAX: usize = 64 << 20;

/// Most elements and members of a line, nested ones included: the same as an importer's usual limit for a record.
pub const ELEMENT_COUNT_MAX: u64 = 1_000_000;

/// A line below this length that means nothing is noise: all messages of hosts are longer.
pub const NOISE_BYTES: usize = 64;

/// Most lines of noise that are answered, ten for each line that meant something apart. Each costs an answer of forty times its bytes.
pub const NOISE_COUNT_MAX: u64 = 20_000;

/// Lines that are paid for by one that meant something.
const NOISE_PAID: u64 = 10;

/// The noise in an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Noise {
    count: u64,
}

impl Noise {
    /// Why nothing further is read.
    pub const TOLD: &'static str =
        "more than 20000 lines were short and none of them meant anything; nothing further is read";

    /// A line meant something.
    pub const fn meant(&mut self) {
        // A line pays for no noise that is still to come.
        self.count = self.count.saturating_sub(NOISE_PAID);
    }

    /// A line of this length meant nothing. `true`: there is too much noise.
    #[must_use]
    pub const fn meant_nothing(&mut self, bytes: usize) -> bool {
        self.count = self.count.saturating_add((bytes < NOISE_BYTES) as u64);
        self.count > NOISE_COUNT_MAX
    }
}

/// Why a line is not taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is longer than [`LINE_BYTES_MAX`].
    #[error("it is longer than {LINE_BYTES_MAX} bytes; split it")]
    Length,
    /// It has more elements than [`ELEMENT_COUNT_MAX`].
    #[error("it has {0} elements and members, over {ELEMENT_COUNT_MAX}; split it")]
    Elements(u64),
    /// It is not UTF-8, from this byte on.
    #[error("not UTF-8 at byte {0}")]
    Encoding(usize),
}

/// The next line without the white space at its end, held in `line`; `None` at the end of the input.
///
/// A line that is too long is read over and not kept.
///
/// # Errors
/// Those of the input.
pub fn next_line<'l>(
    input: &mut impl BufRead,
    line: &'l mut Vec<u8>,
) -> io::Result<Option<Result<&'l str, LineError>>> {
    // The line feed does not count.
    let whole = LINE_BYTES_MAX as u64 + 1;
    line.clear();
    if io::Read::take(&mut *input, whole).read_until(b'\n', line)? == 0 {
        return Ok(None);
    }
    if line.len() > LINE_BYTES_MAX && !line.ends_with(b"\n") {
        while !line.ends_with(b"\n") {
            line.clear();
            if io::Read::take(&mut *input, whole).read_until(b'\n', line)? == 0 {
                break;
            }
        }
        *line = Vec::new();
        return Ok(Some(Err(LineError::Length)));
    }
    Ok(Some(text(line)))
}

/// Reads one JSON object to its end, and no further: who writes it may keep the pipe open. Input that is no object is read to its end.
///
/// # Errors
/// Those of the input.
pub fn read_value(input: &mut impl io::Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    let (mut depth, mut in_string, mut is_escaped) = (0_u32, false, false);
    let mut chunk = [0; 16 << 10];
    loop {
        let count = match input.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        for byte in chunk.get(..count).unwrap_or_default() {
            bytes.push(*byte);
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' if in_string => is_escaped = true,
                b'"' if depth > 0 => in_string = !in_string,
                b'{' | b'[' if !in_string => depth = depth.saturating_add(1),
                b'}' | b']' if !in_string && depth > 0 => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => {}
            }
        }
    }
}

/// A line as text without the white space at its end, if it is within both limits.
///
/// # Errors
/// [`LineError`].
pub fn text(line: &[u8]) -> Result<&str, LineError> {
    if line.trim_ascii_end().len() > LINE_BYTES_MAX {
        return Err(LineError::Length);
    }
    let text = std::str::from_utf8(line.trim_ascii_end());
    let text = text.map_err(|error| LineError::Encoding(error.valid_up_to()))?;
    // Each element takes a byte at least.
    let count = if text.len() as u64 > ELEMENT_COUNT_MAX { element_count(text.as_bytes()) } else { 0 };
    if count > ELEMENT_COUNT_MAX { Err(LineError::Elements(count)) } else { Ok(text) }
}

/// Counts opening brackets and commas outside of strings.
fn element_count(text: &[u8]) -> u64 {
    let (mut count, mut at) = (0, 0);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b',' | b'{' | b'[' => count += 1,
            b'"' => at = behind_string(text, at),
            _ => {}
        }
    }
    count
}

/// The offset behind the string that holds the byte at `at`.
fn behind_string(text: &[u8], mut at: usize) -> usize {
    while let Some(next) = text.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
        at += next;
        if text.get(at) == Some(&b'"') {
            return at + 1;
        }
        // An escaped byte does not end the string.
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8]) -> Vec<Result<String, LineError>> {
        let (mut input, mut line, mut found) =
            (io::BufReader::with_capacity(7, input), Vec::new(), Vec::new());
        while let Some(read) = next_line(&mut input, &mut line).unwrap() {
            found.push(read.map(str::to_owned));
        }
        found
    }

    /// A host that kept the pipe open was waited for until the deadline, and nothing of its event was recorded.
    #[test]
    fn a_value_ends_where_its_brackets_do() {
        struct Open<'b>(&'b [u8]);
        impl io::Read for Open<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                assert!(!self.0.is_empty(), "read behind the value");
                let count = self.0.len().min(3).min(buffer.len());
                let (head, rest) = self.0.split_at(count);
                buffer[..count].copy_from_slice(head);
                self.0 = rest;
                Ok(count)
            }
        }
        for value in [r#"{"a":"}\\\"{"}"#, " {\"a\":[{}]}", "[1]"] {
            let mut bytes = Vec::new();
            read_value(&mut Open(value.as_bytes()), &mut bytes).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes), value);
        }
        for whole in ["", "{\"a\":", "word \"{\" "] {
            let mut bytes = Vec::new();
            read_value(&mut whole.as_bytes(), &mut bytes).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes), whole);
        }
    }

    #[test]
    fn elements_are_counted_outside_of_strings() {
        for (text, count) in [
            ("", 0),
            ("{}", 1),
            ("[1,2,{\"a\":[]}]", 5),
            (r#"{"a,[{":"\",{[","b":"\\"}"#, 2),
            (r#"["a\"#, 1),
            (r#"["a,,"#, 1),
        ] {
            assert_eq!(element_count(text.as_bytes()), count, "{text}");
        }
    }

    #[test]
    fn lines_are_read_one_by_one_and_those_of_too_much_are_refused() {
        let read = all(b"{\"a\":1} \r\n\n\xff\nlast");
        assert_eq!(
            read,
            [
                Ok("{\"a\":1}".to_owned()),
                Ok(String::new()),
                Err(LineError::Encoding(0)),
                Ok("last".to_owned()),
            ]
        );
        // Two such lines took two gigabytes.
        let many = format!("[{}0]\n[0]\n", "0,".repeat(1_000_000));
        assert_eq!(all(many.as_bytes()), [Err(LineError::Elements(1_000_001)), Ok("[0]".to_owned())]);
        let many = format!("[{}0]", "0,".repeat(999_999));
        assert!(text(many.as_bytes()).is_ok());
        let commas = format!("\"{}\"", ",".repeat(2_000_000));
        assert!(text(commas.as_bytes()).is_ok());
    }

    #[test]
    fn a_line_that_is_too_long_is_read_over() {
        let fits = vec![b'x'; LINE_BYTES_MAX];
        let input = [&fits[..], b"\n", &fits[..], b"x\n", b"next\n", &fits[..], b"xx"].concat();
        let (mut input, mut line) = (&input[..], Vec::new());
        let mut next = || next_line(&mut input, &mut line).unwrap().map(|read| read.map(str::len));
        assert_eq!(next(), Some(Ok(LINE_BYTES_MAX)));
        assert_eq!(next(), Some(Err(LineError::Length)));
        assert_eq!(next(), Some(Ok(4)));
        assert_eq!(next(), Some(Err(LineError::Length)));
        assert_eq!(next(), None);
    }
}
