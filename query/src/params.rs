//! Parameters of calls as people read them.
//!
//! Parameters are JSON, as their hosts wrote it: a line break is `\n`, and some hosts write `é` as `\u00e9`. A person who looks for a
//! text means the values. So where JSON may spell a text in another way, it is looked for in the values, too.

use serde_json::Value;

/// Deepest nesting of parameters that are shown as lines.
const DEPTH_MAX: usize = 32;

/// Parameters as people read them: a line for each value, with the line breaks of the value itself. `None` if they are no JSON
/// with values.
pub(crate) fn readable(params: &[u8]) -> Option<String> {
    // Parameters that are no JSON are read as they stand.
    let value: Value = serde_json::from_slice(params).ok()?;
    let mut text = String::with_capacity(params.len());
    match value {
        Value::Object(_) | Value::Array(_) => flatten("", &value, 0, &mut text),
        _ => return None,
    }
    Some(text)
}

fn flatten(path: &str, value: &Value, depth: usize, out: &mut String) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) if depth < DEPTH_MAX => {
            for (name, value) in fields {
                flatten(&below(name), value, depth + 1, out);
            }
        }
        Value::Array(values) if depth < DEPTH_MAX => {
            for (place, value) in values.iter().enumerate() {
                flatten(&below(&place.to_string()), value, depth + 1, out);
            }
        }
        value => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            out.push_str(path);
            out.push_str(": ");
            out.push_str(&text);
            out.push('\n');
        }
    }
}

/// Whether a match in some JSON begins or ends inside an escape, as `nline` does in `\nline`. Then it is no text that was written.
pub(crate) fn cuts_an_escape(json: &[u8], from: usize, to: usize) -> bool {
    is_inside_an_escape(json, from) || is_inside_an_escape(json, to)
}

/// Whether a place between two bytes lies inside an escape: behind its backslash, or among the four digits of `\u00e9`.
fn is_inside_an_escape(json: &[u8], place: usize) -> bool {
    let before = json.get(..place).unwrap_or_default();
    // Two backslashes in a row are one escape.
    let opens = |text: &[u8]| text.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1;
    let is_among_digits = || {
        let tail = before.get(before.len().saturating_sub(5)..).unwrap_or_default();
        let digits = tail.iter().rev().take_while(|byte| byte.is_ascii_hexdigit()).count();
        let opening = before.get(..before.len() - digits).unwrap_or_default();
        digits < 4 && opening.strip_suffix(b"u").is_some_and(opens)
    };
    opens(before) || is_among_digits()
}

/// Whether JSON may spell a text in another way than the text itself.
pub(crate) fn may_be_escaped(text: &str) -> bool {
    text.chars().any(|sign| sign.is_control() || matches!(sign, '"' | '\\'))
}

/// Whether some JSON spells signs in another way though it need not: as `\u00e9` or `\/`.
pub(crate) fn is_escaped_freely(json: &[u8]) -> bool {
    let mut escapes = memchr::memchr_iter(b'\\', json).filter_map(|place| json.get(place + 1));
    escapes.any(|sign| matches!(sign, b'u' | b'/'))
}
