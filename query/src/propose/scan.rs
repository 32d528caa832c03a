//! A text cut into words and marks, each with its place; all patterns are matched on these.
//!
//! ```text
//! "I'm Dana."   ->   I  '  m  _Dana  .        (_ : white space before)
//! ```
//!
//! A word is a run of letters, digits and `_`; any other character but white space is a mark of its own. Words are
//! compared whole, in any case, character by character, so nothing depends on how lower-casing changes lengths.
//! Places are byte offsets into the text as given and always lie on character boundaries.

use std::ops::Range;

use acpdb_engine::text::is_space;

/// Longest sentence in which something is said, in tokens. People say less at once; a longer sentence was pasted, and would be gone
/// through again for each name in it.
pub(super) const SENTENCE_MAX: usize = 256;

/// The space between a token and the one before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Gap {
    /// Nothing.
    None,
    /// White space within a line.
    Space,
    /// A line break, or the start of the text.
    Break,
}

/// A word, or a mark: one character, a quotation, or a block of code.
#[derive(Clone, Copy, Debug)]
pub(super) struct WordToken<'t> {
    pub(super) text: &'t str,
    pub(super) start: usize,
    pub(super) is_word: bool,
    pub(super) gap: Gap,
    /// The number of its sentence, from 0.
    pub(super) sentence: usize,
}

impl WordToken<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// The beginnings of some phrases: the first two letters of each, for a look that spares most comparisons.
#[derive(Debug)]
pub(super) struct Begins {
    /// One bit for each pair of ASCII letters or digits, lower case; 0 stands for no second letter.
    pairs: Vec<u64>,
    /// Some phrase begins otherwise: then every word may begin it.
    any: bool,
}

impl Begins {
    /// The beginnings of phrases of words, joined by spaces, hyphens or apostrophes. `N` stands for a number.
    pub(super) fn of<'p>(phrases: impl Iterator<Item = &'p str>) -> Self {
        let mut begins = Self { pairs: vec![0; 128 * 128 / 64], any: false };
        for phrase in phrases {
            let word = phrase.split([' ', '-', '\'']).next().unwrap_or_default();
            match word.as_bytes() {
                b"N" => {
                    let seconds = std::iter::once(0).chain(b'0'..=b'9');
                    let pairs = seconds.flat_map(|second| (b'0'..=b'9').map(move |first| (first, second)));
                    pairs.for_each(|(first, second)| begins.add(first, second));
                }
                [first, rest @ ..] if first.is_ascii() && rest.first().is_none_or(u8::is_ascii) => {
                    begins.add(*first, rest.first().copied().unwrap_or(0));
                }
                _ => begins.any = true,
            }
        }
        begins
    }

    fn place(first: u8, second: u8) -> (usize, u32) {
        let place = usize::from(first.to_ascii_lowercase()) * 128 + usize::from(second.to_ascii_lowercase());
        (place / 64, u32::from(second.to_ascii_lowercase()) % 64)
    }

    fn add(&mut self, first: u8, second: u8) {
        let (word, bit) = Self::place(first, second);
        if let Some(word) = self.pairs.get_mut(word) {
            *word |= 1 << bit;
        }
    }

    /// Whether a phrase can stand where `word` is the first word.
    pub(super) fn may_begin_with(&self, word: &str) -> bool {
        let mut bytes = word.bytes();
        let (first, second) = (bytes.next().unwrap_or(0), bytes.next().unwrap_or(0));
        if self.any || !first.is_ascii() || !second.is_ascii() {
            return true;
        }
        let (word, bit) = Self::place(first, second);
        self.pairs.get(word).is_some_and(|word| word >> bit & 1 == 1)
    }
}

/// A text and its tokens.
#[derive(Debug)]
pub(super) struct TokenScan<'t> {
    text: &'t str,
    tokens: Vec<WordToken<'t>>,
    /// The first token of each sentence.
    sentences: Vec<usize>,
    /// Full stops, and tokens that begin a line.
    stops: Vec<usize>,
}

/// Whether two texts are the same but for case.
#[inline]
pub(super) fn same(a: &str, b: &str) -> bool {
    // Nearly all pairs differ in their first letter. An ASCII letter is the same as no other ASCII letter; others may be.
    match (a.as_bytes().first(), b.as_bytes().first()) {
        (Some(a), Some(b)) if a.is_ascii() && b.is_ascii() && !a.eq_ignore_ascii_case(b) => false,
        _ => same_to_the_end(a, b),
    }
}

fn same_to_the_end(a: &str, b: &str) -> bool {
    if a.is_ascii() && b.is_ascii() {
        return a.eq_ignore_ascii_case(b);
    }
    a.chars().flat_map(char::to_lowercase).eq(b.chars().flat_map(char::to_lowercase))
}

fn is_word_char(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Bytes of the word that `text` begins with.
fn word_len(text: &str) -> usize {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let plain = text.bytes().take_while(|byte| is_plain(byte)).count();
    match text.as_bytes().get(plain) {
        Some(byte) if !byte.is_ascii() => {
            text.find(|character| !is_word_char(character)).unwrap_or(text.len())
        }
        _ => plain,
    }
}

/// Bytes of a quotation of several words, of a block of code, or of a line that was pasted, that `text` begins with. A name alone
/// may be quoted, too.
fn quoted_len(text: &str, gap: Gap) -> Option<usize> {
    if gap == Gap::Break {
        if let Some(code) = text.strip_prefix("```") {
            let fence = text.len() - code.len();
            return Some(code.find("\n```").map_or(text.len(), |end| fence + end + 4));
        }
        let line = text.get(..line_len(text)).unwrap_or_default();
        if is_pasted(line) {
            return Some(line.len());
        }
    }
    if gap != Gap::None {
        if text.starts_with("/*") {
            return Some(text.find("*/").map_or(text.len(), |end| end + 2));
        }
        if text.starts_with("//") {
            return Some(line_len(text));
        }
    }
    let (open, close) = [('"', '"'), ('“', '”')].into_iter().find(|(open, _)| text.starts_with(*open))?;
    let inner = text.get(open.len_utf8()..)?;
    let inner = inner.get(..inner.find(close)?)?;
    let is_phrase = inner.trim().contains(' ') && !inner.contains(is_break);
    is_phrase.then_some(open.len_utf8() + inner.len() + close.len_utf8())
}

fn line_len(text: &str) -> usize {
    text.find(is_break).unwrap_or(text.len())
}

/// Whether a line looks like a quotation, a comment, a change or a line of a log: no speaker begins one so.
fn is_pasted(line: &str) -> bool {
    const MARKS: &[char] = &['>', '#', '[', '|', '$', '+', ';', '<', '=', '{', '}', '%', '&', '\\'];
    let word_end = line.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(line.len());
    let (word, after) = line.split_at_checked(word_end).unwrap_or((line, ""));
    let is = |levels: &[&str]| levels.iter().any(|level| word.eq_ignore_ascii_case(level));
    let is_loud = word.bytes().all(|byte| byte.is_ascii_uppercase());
    let mut words = line.split_ascii_whitespace().take(2);
    let is_loud_log = words.any(|word| ["DEBUG", "ERR!", "ERROR", "INFO", "WARN", "WARNING"].contains(&word));
    let is_log = is_loud_log
        || is(&["warn", "warning"])
        || is(&["debug", "error", "fatal", "hint", "info", "trace"])
            && (is_loud || after.starts_with([':', '[']));
    let mut rest = after.bytes();
    let is_dated = !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_digit())
        && matches!(rest.next(), Some(b'-' | b':'))
        && rest.next().is_some_and(|byte| byte.is_ascii_digit());
    line.starts_with(MARKS) || line.starts_with("--") || line.starts_with("- [") || is_log || is_dated
}

fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

impl<'t> TokenScan<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        // Prose has a word each five or six bytes, and grown by doubling the list would be copied over and over.
        let tokens = Vec::with_capacity(text.len() / 5);
        let mut scan = Self { text, tokens, sentences: Vec::new(), stops: Vec::new() };
        let mut gap = Gap::Break;
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let start = text.len() - rest.len();
            if !is_space(first)
                && let Some(len) = quoted_len(rest, gap)
            {
                // Quoted or pasted words are of another speaker: one mark.
                let (quoted, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
                scan.push(WordToken { text: quoted, start, is_word: false, gap, sentence: 0 });
                gap = Gap::Space;
                rest = after;
                continue;
            }
            if is_space(first) {
                if is_break(first) {
                    gap = Gap::Break;
                } else if gap == Gap::None {
                    gap = Gap::Space;
                }
                rest = rest.get(first.len_utf8()..).unwrap_or_default();
                continue;
            }
            let is_word = is_word_char(first);
            let len = if is_word { word_len(rest) } else { first.len_utf8() };
            let (token, after) = rest.split_at_checked(len).unwrap_or((rest, ""));
            scan.push(WordToken { text: token, start, is_word, gap, sentence: 0 });
            gap = Gap::None;
            rest = after;
        }
        let is_stop = |index: &usize| scan.is_full_stop(*index) || scan.gap(*index) == Gap::Break;
        scan.stops = (0..scan.len()).filter(is_stop).collect();
        scan
    }

    fn push(&mut self, mut token: WordToken<'t>) {
        if let Some(last) = self.tokens.last() {
            let ends =
                token.gap == Gap::Break || token.gap != Gap::None && matches!(last.text, "." | "!" | "?");
            token.sentence = last.sentence + usize::from(ends);
        }
        if token.sentence == self.sentences.len() {
            self.sentences.push(self.tokens.len());
        }
        self.tokens.push(token);
    }

    pub(super) fn len(&self) -> usize {
        self.tokens.len()
    }

    pub(super) fn token(&self, index: usize) -> Option<&WordToken<'t>> {
        self.tokens.get(index)
    }

    /// The word at `index`, if it is one.
    pub(super) fn any_word(&self, index: usize) -> Option<&'t str> {
        self.token(index).filter(|token| token.is_word).map(|token| token.text)
    }

    /// The word at `index`, if white space stands before it.
    pub(super) fn next_word(&self, index: usize) -> Option<&'t str> {
        self.any_word(index).filter(|_| self.gap(index) != Gap::None)
    }

    /// Whether the word at `index` is `word`.
    pub(super) fn is(&self, index: usize, word: &str) -> bool {
        self.any_word(index).is_some_and(|found| same(found, word))
    }

    /// Whether the word at `index` is one of these.
    pub(super) fn is_one_of(&self, index: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(index, word))
    }

    /// Whether the mark at `index` is `mark`.
    pub(super) fn is_mark(&self, index: usize, mark: char) -> bool {
        let found = self.token(index).filter(|token| !token.is_word);
        found.is_some_and(|token| match mark {
            '\'' => token.text == "'" || token.text == "’",
            _ => token.text.starts_with(mark),
        })
    }

    pub(super) fn gap(&self, index: usize) -> Gap {
        self.token(index).map_or(Gap::Break, |token| token.gap)
    }

    /// Whether the word at `index` can be one that begins like `text`: a quick look that spares most comparisons.
    #[inline]
    pub(super) fn may_begin(&self, index: usize, text: &str) -> bool {
        let first = self.any_word(index).and_then(|word| word.bytes().next());
        match (first, text.bytes().next()) {
            (Some(a), Some(b)) if a.is_ascii() && b.is_ascii() => a.eq_ignore_ascii_case(&b),
            (first, _) => first.is_some(),
        }
    }

    /// The index after `phrase` (words separated by spaces, with apostrophes) if it stands at `index`.
    #[inline]
    pub(super) fn phrase(&self, index: usize, phrase: &str) -> Option<usize> {
        if self.may_begin(index, phrase) { self.phrase_to_the_end(index, phrase) } else { None }
    }

    fn phrase_to_the_end(&self, index: usize, phrase: &str) -> Option<usize> {
        let mut next = index;
        for (word_index, word) in phrase.split(' ').enumerate() {
            if word_index > 0 && self.gap(next) == Gap::None {
                return None;
            }
            for (piece_index, piece) in word.split('\'').enumerate() {
                if piece_index > 0 {
                    if !self.is_mark(next, '\'') || self.gap(next) != Gap::None {
                        return None;
                    }
                    next += 1;
                    if self.gap(next) != Gap::None {
                        return None;
                    }
                }
                if !self.is(next, piece) {
                    return None;
                }
                next += 1;
            }
        }
        Some(next)
    }

    /// Whether the token at `index` is a full stop: a `.` before white space or the end.
    pub(super) fn is_full_stop(&self, index: usize) -> bool {
        self.is_mark(index, '.') && self.gap(index + 1) != Gap::None
    }

    /// The tokens of the sentence of the token at `index`; behind the last token there is none.
    pub(super) fn sentence_of(&self, index: usize) -> Range<usize> {
        let Some(token) = self.token(index) else { return index..index };
        let start = self.sentences.get(token.sentence).copied().unwrap_or(index);
        let end = token.sentence.checked_add(1).and_then(|next| self.sentences.get(next));
        start..end.copied().unwrap_or(self.len())
    }

    /// The index of the full stop that ends the clause at `index`, or of the first token after it in another line, or of the end.
    pub(super) fn clause_end(&self, index: usize) -> usize {
        if self.is_full_stop(index) {
            return index;
        }
        let next = self.stops.partition_point(|stop| *stop <= index);
        self.stops.get(next).copied().unwrap_or(self.len()).max(index)
    }

    /// Byte range from the token at `from` to the end of the token before `to`.
    pub(super) fn range(&self, from: usize, to: usize) -> Range<usize> {
        let start = self.token(from).map_or(self.text.len(), |token| token.start);
        let end = to.checked_sub(1).and_then(|last| self.token(last)).map_or(start, WordToken::end);
        start..end.max(start)
    }

    /// The text of a byte range.
    pub(super) fn slice(&self, range: Range<usize>) -> &'t str {
        self.text.get(range).unwrap_or_default()
    }

    /// The text from the token at `from` to the token before `to`.
    pub(super) fn between(&self, from: usize, to: usize) -> &'t str {
        self.slice(self.range(from, to))
    }

    /// The sentence of the byte `at`, at most `chars_max` characters of it.
    pub(super) fn sentence(&self, at: usize, chars_max: usize) -> String {
        // A place before the first word belongs to the first word's sentence.
        let index = self.tokens.partition_point(|token| token.start <= at).saturating_sub(1);
        let Some(number) = self.token(index).map(|token| token.sentence) else { return String::new() };
        let from = self.tokens.partition_point(|token| token.sentence < number);
        let to = self.tokens.partition_point(|token| token.sentence <= number);
        self.between(from, to).chars().take(chars_max).collect()
    }
}
