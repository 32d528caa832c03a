//! Bytes as hex digits, and back.

/// Bytes as hex digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of hex digits.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    // A number may have a sign; digits of a key may not.
    text.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
    // All are hex digits, so each pair is a text and a number.
    let pairs = text.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).ok());
    // Each pair is a number.
    pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect()
}
