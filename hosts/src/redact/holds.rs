//! Looks at what a pattern found: whether it is a secret, or a word that stands where one would.

/// Words that stand in the place of a secret in examples.
const PLACEHOLDERS: [&str; 21] = [
    "password",
    "passwd",
    "pass",
    "pwd",
    "secret",
    "token",
    "changeme",
    "example",
    "placeholder",
    "your",
    "xxx",
    "***",
    "...",
    "redacted",
    "user",
    "foo",
    "bar",
    "test",
    "dummy",
    "todo",
    "none",
];

/// Anything.
pub(super) fn always(_: &[u8]) -> bool {
    true
}

/// Whether a digit is in it: names in words have none.
pub(super) fn has_digit(found: &[u8]) -> bool {
    found.iter().any(u8::is_ascii_digit)
}

/// Whether it is no word of an example, and no variable.
pub(super) fn is_no_placeholder(found: &[u8]) -> bool {
    let text = String::from_utf8_lossy(found).to_lowercase();
    // Of an address with a password, the password decides.
    let secret = text.strip_suffix('@').and_then(|text| text.rsplit(':').next()).unwrap_or(&text);
    let secret = secret.rsplit_once(':').map_or(secret, |(_, secret)| secret);
    let is_variable =
        secret.starts_with(['$', '%', '{', '<', '[', '*']) || secret.contains("${") || secret.contains("{{");
    !is_variable
        && !PLACEHOLDERS
            .iter()
            .any(|word| secret == *word || secret.trim_matches(['x', '*', '.', '_', '-']).is_empty())
}

/// Whether it looks drawn: letters and digits mixed, or both cases and no words with dots or dashes between them.
pub(super) fn is_random(found: &[u8]) -> bool {
    if !is_no_placeholder(found) {
        return false;
    }
    let count = |is: fn(&u8) -> bool| found.iter().filter(|byte| is(byte)).count();
    let digits = count(u8::is_ascii_digit);
    let (upper, lower) = (count(u8::is_ascii_uppercase), count(u8::is_ascii_lowercase));
    let text = String::from_utf8_lossy(found).to_lowercase();
    let has_word = ["your", "example", "placeholder", "changeme", "xxxx", "redacted", "insert"]
        .iter()
        .any(|word| text.contains(word));
    !has_word
        && upper + lower > 0
        && (digits >= 2 || (digits >= 1 && upper > 0 && lower > 0))
        && !is_path(&text)
}

/// Whether it has digits and letters of both cases: a digest in hex has one case, a path few digits.
pub(super) fn is_aws_secret(found: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| found.iter().any(is);
    has(u8::is_ascii_digit) && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase)
}

/// Whether it is a path, a version or a place in a file.
fn is_path(text: &str) -> bool {
    let parts = text.split(['/', '.']).filter(|part| !part.is_empty()).count();
    text.starts_with(['/', '.', '~']) || (parts > 3 && text.contains('/'))
}

/// Whether it is base64 of a name and a password.
pub(super) fn is_basic(found: &[u8]) -> bool {
    let Some(bytes) = decoded(found) else { return false };
    let Ok(text) = std::str::from_utf8(&bytes) else { return false };
    !text.chars().any(char::is_control)
        && text.split_once(':').is_some_and(|(name, password)| !name.is_empty() && !password.is_empty())
}

/// The bytes of base64; `None` if it is none.
fn decoded(text: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0_u32);
    for byte in text.iter().take_while(|byte| **byte != b'=') {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count).ok()?);
            bits &= (1 << count) - 1;
        }
    }
    Some(out)
}
