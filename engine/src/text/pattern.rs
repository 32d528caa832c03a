//! Patterns that name messages by how they begin and end: `start...end`.
//!
//! An agent quotes the first and last words of a text, rarely exactly. So text and pattern are compared *normalised*:
//! trimmed, each run of white space as one space, lower-cased character by character (final sigma counts as sigma).
//! The pattern is cut at `...`; the first two pieces count, spaces beside the dots belong to them. No regex; `…` is
//! not `...`.
//!
//! A text is normalised only as far as it agrees, from either end, so most texts cost a few characters.

use super::is_space;

/// A pattern, normalised.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Pattern {
    normalised: String,
    start: Box<str>,
    end: Box<str>,
}

impl Pattern {
    /// Reads `start...end`. `None` if one of the two pieces is empty or missing: such a pattern matches nothing.
    pub fn parse(text: &str) -> Option<Self> {
        let normalised: String = normal_characters(text.trim_matches(is_space).chars()).collect();
        let mut pieces = normalised.split("...");
        let start: Box<str> = pieces.next().filter(|piece| !piece.is_empty())?.into();
        let end: Box<str> = pieces.next().filter(|piece| !piece.is_empty())?.into();
        Some(Self { normalised, start, end })
    }

    /// The whole pattern normalised: two patterns ask for the same if these are equal.
    pub fn normalised(&self) -> &str {
        &self.normalised
    }

    /// Whether `text` begins with the first piece and ends with the second; the two may overlap.
    ///
    /// Cost: the length of the pieces, not of the text.
    pub fn is_match(&self, text: &str) -> bool {
        let text = text.trim_matches(is_space);
        begins_with(normal_characters(text.chars()), self.start.chars())
            && begins_with(normal_characters(text.chars().rev()), self.end.chars().rev())
    }
}

fn begins_with(mut text: impl Iterator<Item = char>, mut piece: impl Iterator<Item = char>) -> bool {
    piece.all(|character| text.next() == Some(character))
}

/// `characters` of a trimmed text, in either direction, with white space collapsed and case folded.
fn normal_characters(characters: impl Iterator<Item = char>) -> impl Iterator<Item = char> {
    let mut in_space = false;
    characters
        .filter_map(move |character| {
            let space = is_space(character);
            let repeated = space && in_space;
            in_space = space;
            (!repeated).then_some(if space { ' ' } else { character })
        })
        .map(folded)
}

/// The character in lower case, one for one so that both directions agree (`İ`, the only one with two, gives `i`).
fn folded(character: char) -> char {
    match character {
        'ς' => 'σ',
        _ => character.to_lowercase().next().unwrap_or(character),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn patterns_fit_begin_and_end() {
        for (pattern, text, fits) in [
            ("Let me explain...edge cases.", "Let me explain how we\nhandle all edge cases.", true),
            ("architecture   overview...api", "\tARCHITECTURE\n\n overview: the Api ", true),
            ("testing  SYMMETRIC...Capability", "Testing symmetric restore capability", true),
            ("start...end", "start end and more", false),
            ("start...end", "a start end", false),
            ("one...two...three", "one two three", false),
            ("one...three...zzz", "one two three", true),
            ("hello big ... world", "Hello  big bad\u{feff} world", true),
            ("hello big ... world", "hello bigger world", false),
            ("abc...bcd", "abcd", true),
            ("abc...abc", "abc", true),
            ("abc...abc", "ab", false),
            ("a...b", "", false),
            ("été...straße", "ÉTÉ à la STRAßE", true),
            ("ΟΔΟΣ...ΟΔΟΣ", "οδος", true),
            ("i...z", "İz", true),
            ("a.... b", "a . b", true),
            ("a.... b", "a  b", false),
            ("\u{3000}a...b\u{feff}", "ab", true),
        ] {
            assert_eq!(Pattern::parse(pattern).unwrap().is_match(text), fits, "{pattern:?} {text:?}");
        }
    }

    #[test]
    fn both_pieces_are_needed() {
        for text in ["", "plain text", "...", "a...", "...b", " ... b", "a… b", "a......b", "a..b"] {
            assert_eq!(Pattern::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn equal_requests_have_equal_normal_forms() {
        let normal = |text| Pattern::parse(text).unwrap().normalised().to_owned();
        assert_eq!(normal(" Testing\n SYMMETRIC...Capability "), "testing symmetric...capability");
        assert_ne!(normal("a...b"), normal("a ...b"));
        assert_ne!(normal("a...b"), normal("a...b...c"));
    }

    proptest! {
        #[test]
        fn pieces_of_a_text_find_it(text in "[a-dA-DÉσς \n\t]{2,30}", start in 1_usize..9, end in 1_usize..9) {
            let normal: Vec<char> = normal_characters(text.trim_matches(is_space).chars()).collect();
            prop_assume!(normal.len() >= 2);
            let first: String = normal.iter().take(start).collect();
            let last: String = normal.iter().skip(normal.len().saturating_sub(end)).collect();
            let pattern = Pattern::parse(&format!("{first}...{last}")).unwrap();
            prop_assert!(pattern.is_match(&text));
            let upper = format!(" {} ", text.to_uppercase());
            prop_assert!(pattern.is_match(&upper));
            let longer = format!("{text}z");
            prop_assert!(!pattern.is_match(&longer));
            prop_assert_eq!(Pattern::parse(&pattern.normalised().to_uppercase()), Some(pattern));
        }

        #[test]
        fn any_text_is_a_pattern_or_none(text in "\\PC*") {
            if let Some(pattern) = Pattern::parse(&text) {
                prop_assert!(text.contains("..."));
                pattern.is_match(&text);
            }
        }
    }
}
