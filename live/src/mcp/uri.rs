//! Names within URIs: a byte that is no letter, digit or one of `-._~` stands as `%` and two digits. Pure.

use std::fmt::Write as _;

/// A name as it stands in a URI.
pub(super) fn encoded(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The name that stands in a URI; a `%` without two digits stands for itself.
pub(super) fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let digits = behind.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok()); // they are ASCII
        let byte = digits.filter(|_| first == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()); // as above
        out.push(byte.unwrap_or(first));
        rest = byte.map_or(Some(behind), |_| behind.get(2..)).unwrap_or_default();
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resources of sessions whose names hold a blank, a `#` or a `?` had addresses that no client can take apart.
    #[test]
    fn every_name_comes_back_out_of_its_uri() {
        for (name, uri) in [
            ("ses_1.a-b~c", "ses_1.a-b~c"),
            ("a b/c#1?x=%41", "a%20b%2Fc%231%3Fx%3D%2541"),
            ("\u{e9}\u{1b}", "%C3%A9%1B"),
        ] {
            assert_eq!(encoded(name), uri);
            assert_eq!(decoded(uri), name);
        }
        assert_eq!(decoded("100% %4"), "100% %4");
        assert_eq!(decoded("#812"), "#812", "as clients wrote it that put names together themselves");
    }
}
