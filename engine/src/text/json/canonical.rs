//! The canonical form: one spelling for all params that mean the same.
//!
//! No white space; keys sorted by UTF-16 units at every level, the last of equal keys wins; numbers as ECMAScript
//! prints them; strings escape quote, backslash and control characters only, lone surrogates as `\udxxx`. Short
//! hashes and signatures are computed over these bytes, so nothing here may ever change.
//!
//! The strings at given [`ParamPath`]s can be replaced on the way, which is how file paths are resolved before two
//! calls are compared. Walking recurses; the parser has limited the depth.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::{Json, JsonStr, Repr};

/// Up to here doubles count whole numbers exactly: 2^53.
pub(super) const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// Where in the params a string stands: `filePath`, `paths[]`, `edits[].filePath`; empty: the params themselves.
///
/// Names are separated by `.`; `[]` behind a name means each item of the array there. Any text is a path; one that
/// fits nothing finds nothing. Names that contain `.` or end in `[]` cannot be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParamPath<'p>(&'p str);

/// One step of a path: into a field, or into each item.
enum PathStep<'p> {
    Field(&'p str),
    Each,
}

impl<'p> ParamPath<'p> {
    /// The path that `text` spells. Free: it is read as it is followed.
    pub const fn new(text: &'p str) -> Self {
        Self(text)
    }

    /// The path as spelled.
    pub const fn as_str(self) -> &'p str {
        self.0
    }

    /// The first step and the rest of the path; `None` at the end.
    fn step(self) -> Option<(PathStep<'p>, Self)> {
        if let Some(rest) = self.0.strip_prefix("[]") {
            return Some((PathStep::Each, Self(rest.strip_prefix('.').unwrap_or(rest))));
        }
        if self.0.is_empty() {
            return None;
        }
        let (name, rest) = self.0.split_once('.').unwrap_or((self.0, ""));
        // `name[]` is two steps: the field, then each item.
        let Some(bare) = name.find("[]").and_then(|end| self.0.split_at_checked(end)) else {
            return Some((PathStep::Field(name), Self(rest)));
        };
        Some((PathStep::Field(bare.0), Self(bare.1)))
    }
}

impl Json {
    /// The canonical form.
    pub fn canonical(&self) -> String {
        let mut writer = CanonicalWriter::new(None);
        writer.value(self);
        writer.out
    }

    /// The canonical form for comparing: numbers that are not exactly a double keep all their digits.
    pub fn canonical_exact(&self) -> String {
        let mut writer = CanonicalWriter::new(None);
        writer.exact = true;
        writer.value(self);
        writer.out
    }

    /// [`Json::canonical_exact`] without the fields of the outermost object that are null.
    pub fn canonical_without_nulls(&self) -> String {
        let mut writer = CanonicalWriter::new(None);
        writer.exact = true;
        writer.drop_nulls = true;
        writer.value_at(self, &[]);
        writer.out
    }

    /// [`Json::canonical_exact`] with each string at one of `paths` replaced by the result of `rewrite` for it.
    ///
    /// Strings with lone surrogates stay as they are.
    pub fn canonical_with(&self, paths: &[ParamPath<'_>], rewrite: &mut dyn FnMut(&str) -> String) -> String {
        let mut writer = CanonicalWriter::new(Some(rewrite));
        writer.exact = true;
        writer.value_at(self, paths);
        writer.out
    }

    /// [`Json::canonical_with`] without the fields of the outermost object that are null.
    pub fn canonical_without_nulls_with(
        &self,
        paths: &[ParamPath<'_>],
        rewrite: &mut dyn FnMut(&str) -> String,
    ) -> String {
        let mut writer = CanonicalWriter::new(Some(rewrite));
        writer.exact = true;
        writer.drop_nulls = true;
        writer.value_at(self, paths);
        writer.out
    }

    /// The strings at `path`, in the order they stand; empty ones too, but none with lone surrogates.
    pub fn at<'j>(&'j self, path: ParamPath<'_>) -> impl Iterator<Item = &'j str> {
        let mut found = Vec::new();
        collect(self, path, &mut found);
        found.into_iter()
    }

    /// The fields of an object as the canonical form has them: sorted, each key once. Empty for other values.
    pub fn sorted_fields(&self) -> Vec<(&JsonStr, &Json)> {
        let mut fields: Vec<_> =
            self.as_object().unwrap_or_default().iter().map(|(key, value)| (key, value)).collect();
        // A stable sort: equal keys keep their order, so the last of them is the one that wins.
        fields.sort_by(|a, b| a.0.cmp_units(b.0));
        fields.dedup_by(|later, kept| {
            let equal = later.0 == kept.0;
            if equal {
                *kept = *later;
            }
            equal
        });
        fields
    }
}

/// The canonical form of a call's params as the host gave them, and the value if they are JSON.
///
/// Empty `bytes` are `{}`. Bytes that are not JSON count as the JSON string of their text (invalid UTF-8 replaced by U+FFFD).
pub fn canonical_or_text(bytes: &[u8]) -> (String, Option<Json>) {
    if bytes.is_empty() {
        return ("{}".to_owned(), Some(Json::Obj(Vec::new())));
    }
    // Bytes that are not JSON are a text, below.
    if let Ok(json) = Json::parse(bytes) {
        return (json.canonical(), Some(json));
    }
    let mut out = String::with_capacity(bytes.len() + 2);
    write_json_string(&mut out, &String::from_utf8_lossy(bytes));
    (out, None)
}

/// Appends `text` as a JSON string, quotes and the canonical form's escapes included.
pub fn write_json_string(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    while let Some(stop) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        // The stop is an ASCII byte, so both cuts are between characters.
        out.push_str(rest.get(..stop).unwrap_or_default());
        if let Some(byte) = rest.as_bytes().get(stop) {
            write_escape(out, (*byte).into());
        }
        rest = rest.get(stop + 1..).unwrap_or_default();
    }
    out.push_str(rest);
    out.push('"');
}

fn write_escape(out: &mut String, unit: u16) {
    let short = match unit {
        0x22 => "\\\"",
        0x5c => "\\\\",
        0x08 => "\\b",
        0x09 => "\\t",
        0x0a => "\\n",
        0x0c => "\\f",
        0x0d => "\\r",
        _ => {
            // Writing to a `String` cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
            return;
        }
    };
    out.push_str(short);
}

impl JsonStr {
    /// Order by UTF-16 code units, as ECMAScript sorts keys.
    pub(super) fn cmp_units(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Text(a), Repr::Text(b)) => cmp_text_units(a, b),
            _ => self.units().cmp(other.units()),
        }
    }

    fn units(&self) -> impl Iterator<Item = u16> {
        let (text, units): (&str, &[u16]) = match &self.0 {
            Repr::Text(text) => (text, &[]),
            Repr::Units(units) => ("", units),
        };
        text.encode_utf16().chain(units.iter().copied())
    }

    fn write_canonical(&self, out: &mut String) {
        let units = match &self.0 {
            Repr::Text(text) => return write_json_string(out, text),
            Repr::Units(units) => units,
        };
        out.push('"');
        for decoded in char::decode_utf16(units.iter().copied()) {
            match decoded {
                Ok(plain) if plain < ' ' || plain == '"' || plain == '\\' => {
                    write_escape(out, u16::try_from(u32::from(plain)).unwrap_or_default());
                }
                Ok(plain) => out.push(plain),
                Err(lone) => write_escape(out, lone.unpaired_surrogate()),
            }
        }
        out.push('"');
    }
}

/// UTF-16 order of two UTF-8 texts.
///
/// It is byte order, except that characters above U+FFFF (lead bytes from F0) begin with a surrogate and so come
/// before U+E000..U+FFFF (lead bytes EE and EF).
fn cmp_text_units(a: &str, b: &str) -> Ordering {
    let rank = |byte: u8| match byte {
        0xee | 0xef => (2, byte),
        0xf0.. => (1, byte),
        _ => (0, byte),
    };
    match a.bytes().zip(b.bytes()).find(|(a, b)| a != b) {
        Some((a, b)) => rank(a).cmp(&rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

fn write_number(out: &mut String, number: f64) {
    if !number.is_finite() {
        out.push_str("null");
    } else if number.fract() == 0.0 && number.abs() <= WHOLE_MAX {
        #[expect(clippy::cast_possible_truncation, reason = "whole and within 2^53")]
        let whole = number as i64; // -0 becomes 0
        let _ = write!(out, "{whole}");
    } else {
        out.push_str(ryu_js::Buffer::new().format_finite(number));
    }
}

/// Whether a number in JSON's syntax has the value that its double prints.
pub(super) fn is_double(written: &str, number: f64) -> bool {
    // So many digits always come back from a double, except near the ends of the range.
    const SURE_DIGITS: usize = 15;
    let digits = written.bytes().take_while(|byte| !matches!(byte, b'e' | b'E'));
    let is_usual = number == 0.0 || (1e-300..1e300).contains(&number.abs());
    if digits.filter(u8::is_ascii_digit).count() <= SURE_DIGITS && is_usual && number != 0.0 {
        return true;
    }
    let mut printed = String::new();
    write_number(&mut printed, number);
    number.is_finite() && decimal(written) == decimal(&printed)
}

/// A number in JSON's syntax in one spelling: its digits without zeros at either end, and the power of ten behind them.
fn decimal(written: &str) -> String {
    let (sign, rest) = written.strip_prefix('-').map_or(("", written), |rest| ("-", rest));
    let (digits, power) = rest.split_once(['e', 'E']).unwrap_or((rest, "0"));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{fraction}");
    let all = all.trim_start_matches('0');
    let kept = all.trim_end_matches('0');
    let Ok(power) = power.parse::<i64>() else { return written.to_ascii_lowercase() };
    if kept.is_empty() {
        return "0".to_owned();
    }
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    // An exponent at the limit of 64 bits is no number that a program can hold: it stays at the limit.
    let power = power.saturating_sub(count(fraction.len())).saturating_add(count(all.len() - kept.len()));
    format!("{sign}{kept}e{power}")
}

fn collect<'j>(value: &'j Json, path: ParamPath<'_>, found: &mut Vec<&'j str>) {
    match path.step() {
        None => found.extend(value.as_str()),
        Some((PathStep::Field(name), rest)) => {
            if let Some(field) = value.get(name) {
                collect(field, rest, found);
            }
        }
        Some((PathStep::Each, rest)) => {
            for item in value.as_array().unwrap_or_default() {
                collect(item, rest, found);
            }
        }
    }
}

/// Writes the canonical form; `rewrite` gets the strings at the paths in hand.
struct CanonicalWriter<'r> {
    out: String,
    rewrite: Option<&'r mut dyn FnMut(&str) -> String>,
    /// Leave out the nulls of the next object, which is the outermost.
    drop_nulls: bool,
    /// Numbers that are not exactly a double keep their digits.
    exact: bool,
}

impl<'r> CanonicalWriter<'r> {
    fn new(rewrite: Option<&'r mut dyn FnMut(&str) -> String>) -> Self {
        Self { out: String::with_capacity(256), rewrite, drop_nulls: false, exact: false }
    }

    fn value(&mut self, value: &Json) {
        self.value_at(value, &[]);
    }

    /// Writes `value`; `paths` are the rests of the paths that lead here.
    fn value_at(&mut self, value: &Json, paths: &[ParamPath<'_>]) {
        match value {
            Json::Null => self.out.push_str("null"),
            Json::Bool(true) => self.out.push_str("true"),
            Json::Bool(false) => self.out.push_str("false"),
            Json::Written(_, digits) if self.exact => self.out.push_str(&decimal(digits)),
            Json::Num(number) | Json::Written(number, _) => write_number(&mut self.out, *number),
            Json::Str(text) => {
                let rewritten = match (text.as_str(), &mut self.rewrite) {
                    (Some(text), Some(rewrite)) if paths.iter().any(|path| path.step().is_none()) => {
                        Some(rewrite(text))
                    }
                    _ => None,
                };
                match rewritten {
                    Some(text) => write_json_string(&mut self.out, &text),
                    None => text.write_canonical(&mut self.out),
                }
            }
            Json::Arr(items) => {
                let inner = onward(paths, |step| matches!(step, PathStep::Each));
                self.drop_nulls = false;
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.out.push(',');
                    }
                    self.value_at(item, &inner);
                }
                self.out.push(']');
            }
            Json::Obj(fields) => self.object(value, fields, paths),
        }
    }

    fn object(&mut self, value: &Json, fields: &[(JsonStr, Json)], paths: &[ParamPath<'_>]) {
        let drop_nulls = std::mem::take(&mut self.drop_nulls);
        let mut separator = "{";
        let mut field = |writer: &mut Self, key: &JsonStr, value: &Json| {
            if drop_nulls && value.is_null() {
                return;
            }
            writer.out.push_str(separator);
            separator = ",";
            key.write_canonical(&mut writer.out);
            writer.out.push(':');
            let inner =
                onward(paths, |step| matches!(step, PathStep::Field(name) if key.as_str() == Some(name)));
            writer.value_at(value, &inner);
        };
        let sorted = fields.iter().zip(fields.iter().skip(1)).all(|(a, b)| a.0.cmp_units(&b.0).is_lt());
        if sorted {
            for (key, value) in fields {
                field(self, key, value);
            }
        } else {
            for (key, value) in value.sorted_fields() {
                field(self, key, value);
            }
        }
        if separator == "{" {
            self.out.push('{');
        }
        self.out.push('}');
    }
}

/// The rests of the paths whose next step is taken. Allocates only if there are any.
fn onward<'p>(paths: &[ParamPath<'p>], taken: impl Fn(&PathStep<'p>) -> bool) -> Vec<ParamPath<'p>> {
    paths
        .iter()
        .filter_map(|path| path.step())
        .filter(|(step, _)| taken(step))
        .map(|(_, rest)| rest)
        .collect()
}
