//! JSON with comments, as people write settings. Pure.
//!
//! ```text
//! text   { // mine           plain  {                    both have the same bytes at the same places
//!          "a": 1 }                   "a": 1 }           but for blanks where a comment stands
//! ```

use std::borrow::Cow;
use std::ops::Range;

/// The comments of a text in their order: `//` up to the end of its line, and `/* */`. One without an end is left, and is no JSON.
pub fn comments(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(start) = next(text, at, |sign| matches!(sign, '"' | '/')) {
        let rest = text.get(start..).unwrap_or_default();
        let block = rest.strip_prefix("/*").and_then(|rest| rest.find("*/"));
        let comment = if rest.starts_with("//") {
            Some(rest.find(['\n', '\r']).unwrap_or(rest.len()))
        } else {
            block.map(|end| end + 4)
        };
        at = start + comment.unwrap_or_else(|| token_bytes(rest));
        found.extend(comment.map(|_| start..at));
    }
    found
}

/// The text with a blank in place of each byte of these ranges, line ends apart.
pub fn blanked<'a>(text: &'a str, ranges: &[Range<usize>]) -> Cow<'a, str> {
    if ranges.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut done = 0;
    for range in ranges {
        plain.push_str(text.get(done..range.start).unwrap_or_default());
        let gone = text.get(range.clone()).unwrap_or_default().bytes();
        plain.extend(gone.map(|byte| if matches!(byte, b'\n' | b'\r') { char::from(byte) } else { ' ' }));
        done = range.end;
    }
    plain.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(plain)
}

/// The text with blanks for comments, and for commas before a closing bracket.
pub fn strict(text: &str) -> String {
    let plain = blanked(text, &comments(text));
    let (mut commas, mut last, mut at) = (Vec::new(), None, 0);
    while let Some(start) = next(&plain, at, |sign| !sign.is_whitespace()) {
        let rest = plain.get(start..).unwrap_or_default();
        if rest.starts_with([']', '}']) {
            commas.extend(last);
        }
        at = start + token_bytes(rest);
        last = rest.starts_with(',').then_some(start..at);
    }
    blanked(&plain, &commas).into_owned()
}

/// The place of the next such sign from `at` on.
fn next(text: &str, at: usize, is_it: impl Fn(char) -> bool) -> Option<usize> {
    text.get(at..)?.find(is_it).map(|place| at + place)
}

/// Bytes of the string at the start of a text; else of its first sign.
fn token_bytes(text: &str) -> usize {
    let mut is_escaped = false;
    for (place, sign) in text.char_indices() {
        match sign {
            _ if is_escaped => is_escaped = false,
            _ if place == 0 && sign != '"' => return sign.len_utf8(),
            '\\' => is_escaped = true,
            '"' if place > 0 => return place + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_blanks_and_strings_stay() {
        for (text, plain) in [
            ("{}", "{}"),
            ("{ // é\r\n}", "{      \r\n}"),
            ("{\"a\": \"// no\" /* é \" */}", "{\"a\": \"// no\"           }"),
            (r#"{"a\"//": 1}//"#, r#"{"a\"//": 1}  "#),
            ("/**/1/*/*/2/ /", "    1     2/ /"),
            ("1 /* no end", "1 /* no end"),
            ("\"no end // ", "\"no end // "),
        ] {
            assert_eq!(blanked(text, &comments(text)), plain, "{text}");
        }
    }

    #[test]
    fn a_comma_before_a_closing_bracket_is_a_blank() {
        for (text, plain) in [
            (r#"{"a":[1,2 , ],"b":"x,]",}"#, r#"{"a":[1,2   ],"b":"x,]" }"#),
            ("[1, // one\n]", "[1        \n]"),
            (r#"["\",]", "é",/* , */ ]"#, r#"["\",]", "é"         ]"#),
            ("[1,,]", "[1, ]"),
            ("[1, x]", "[1, x]"),
        ] {
            assert_eq!(strict(text), plain, "{text}");
        }
    }
}
