//! Signs that stand for free texts in keys: `~` and 16 hex digits of a keyed signature. Equal texts of a stream have equal
//! signs; what they say is in the call's parameters.

use crate::ids::Signature;

/// Hex digits of a sign.
const DIGITS: usize = 16;

/// The sign of a text with this signature.
pub fn mask(signature: &Signature) -> String {
    let hex = signature.to_hex();
    format!("~{}", hex.get(..DIGITS).unwrap_or_default())
}

/// Whether a key holds such a sign.
pub fn is_masked(key: &str) -> bool {
    key.split('~').skip(1).any(|rest| {
        let digits = rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
        digits == DIGITS && !rest.as_bytes().get(DIGITS).is_some_and(u8::is_ascii_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_told_from_paths() {
        let sign = mask(&Signature([0xab; 16]));
        assert_eq!(sign, "~abababababababab");
        for (key, masked) in [
            (sign.as_str(), true),
            ("grep:/src:~abababababababab:", true),
            ("~/abababababababab", false),
            ("a~abababababababab0", false),
            ("~abab", false),
            ("", false),
        ] {
            assert_eq!(is_masked(key), masked, "{key}");
        }
    }
}
