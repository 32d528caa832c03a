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
