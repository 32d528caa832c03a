//! Numbers and names in words, as every answer for people has them.

/// A count of tokens for people: `812`, `8.5k`, `3.5M`.
pub fn tokens(count: u64) -> String {
    let (unit, letter) = match count {
        0..1000 => return count.to_string(),
        1000..999_950 => (1000, 'k'),
        _ => (1_000_000, 'M'),
    };
    let tenths = count.saturating_add(unit / 20) / (unit / 10);
    match (tenths / 10, tenths % 10) {
        (whole, 0) => format!("{whole}{letter}"),
        (whole, tenth) => format!("{whole}.{tenth}{letter}"),
    }
}

/// A count with its noun.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 {
        return format!("1 {noun}");
    }
    match noun.strip_suffix('y').filter(|stem| !stem.ends_with(['a', 'e', 'o', 'u'])) {
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {noun}s"),
    }
}

/// A variant's name in plain words: `FileChanged` is "file changed". Its contents follow in brackets.
pub fn word(variant: &dyn std::fmt::Debug) -> String {
    let text = format!("{variant:?}");
    let end = text.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let mut words = String::with_capacity(text.len() + 4);
    for (place, letter) in name.char_indices() {
        if letter.is_ascii_uppercase() && place > 0 {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words + rest
}

/// A text as one entry of a list for a model: its further lines are indented. Else one of them could look like an entry of its own, and like one
/// that another said.
pub fn entry(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // A carriage return stands before a line break, or for one.
            '\r' => {}
            '\n' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}' => out.push_str("\n    "),
            c => out.push(c),
        }
    }
    out
}

/// A text, quoted so that a shell takes it for one word.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | ':' | '@' | '+');
    if !text.is_empty() && !text.starts_with('-') && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_text_looks_like_an_entry_of_its_own() {
        assert_eq!(entry("port 8080"), "port 8080");
        for text in ["x\n- y", "x\r\n- y", "x\u{2028}- y", "x\u{85}- y"] {
            assert_eq!(entry(text), "x\n    - y", "{text:?}");
        }
    }

    #[test]
    fn counts_are_short_and_exact_where_they_are_small() {
        for (number, shown) in [
            (0, "0"),
            (999, "999"),
            (1000, "1k"),
            (8540, "8.5k"),
            (9960, "10k"),
            (123_456, "123.5k"),
            (999_949, "999.9k"),
            (999_950, "1M"),
            (3_516_700, "3.5M"),
        ] {
            assert_eq!(tokens(number), shown);
        }
        let counts =
            [count(1, "item"), count(2, "item"), count(0, "entry"), count(1, "entry"), count(3, "day")];
        assert_eq!(counts, ["1 item", "2 items", "0 entries", "1 entry", "3 days"]);
    }
}
