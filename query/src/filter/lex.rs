//! Text to tokens, each with its place.

use std::ops::Range;

use winnow::LocatingSlice;
use winnow::ascii::multispace0;
use winnow::combinator::{alt, delimited, dispatch, fail, not, opt, peek, preceded, repeat, terminated};
use winnow::prelude::*;
use winnow::token::{any, none_of, one_of, take_while};

/// A token and the bytes that it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SpannedToken {
    pub(super) kind: TokenKind,
    pub(super) span: Range<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TokenKind<W = FilterWord> {
    Open,
    Close,
    Or,
    And,
    Not,
    Word(W),
}

impl TokenKind {
    /// The same token, its word read by `read`.
    pub(super) fn read<T, E>(
        &self,
        read: impl FnOnce(&FilterWord) -> Result<T, E>,
    ) -> Result<TokenKind<T>, E> {
        Ok(match self {
            Self::Open => TokenKind::Open,
            Self::Close => TokenKind::Close,
            Self::Or => TokenKind::Or,
            Self::And => TokenKind::And,
            Self::Not => TokenKind::Not,
            Self::Word(word) => TokenKind::Word(read(word)?),
        })
    }
}

/// `field:value`, or a value alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FilterWord {
    pub(super) field: Option<(String, Range<usize>)>,
    pub(super) value: String,
    pub(super) value_span: Range<usize>,
}

type Input<'i> = LocatingSlice<&'i str>;

/// All tokens, or the byte at which no token begins: a quotation that does not end.
pub(super) fn tokens(text: &str) -> Result<Vec<SpannedToken>, usize> {
    let mut all = terminated(repeat(0.., preceded(multispace0, token)), multispace0);
    all.parse(LocatingSlice::new(text)).map_err(|error| error.offset())
}

fn token(input: &mut Input<'_>) -> winnow::Result<SpannedToken> {
    let ends =
        || peek(alt((one_of([' ', '\t', '\n', '\r', '(', ')']).void(), winnow::combinator::eof.void())));
    let keyword = |name: &'static str| terminated(winnow::ascii::Caseless(name), ends());
    let kind = alt((
        '('.value(TokenKind::Open),
        ')'.value(TokenKind::Close),
        alt((keyword("or").void(), '|'.void())).value(TokenKind::Or),
        alt((keyword("and").void(), '&'.void())).value(TokenKind::And),
        alt((keyword("not").void(), one_of(['-', '!']).void())).value(TokenKind::Not),
        word.map(TokenKind::Word),
    ));
    kind.with_span().map(|(kind, span)| SpannedToken { kind, span }).parse_next(input)
}

fn word(input: &mut Input<'_>) -> winnow::Result<FilterWord> {
    let name = take_while(1.., |c: char| c.is_alphanumeric() || c == '_').map(str::to_owned);
    let field = opt(terminated(name.with_span(), ':')).parse_next(input)?;
    // A field may stand without a value here; the parser asks for the value.
    let (value, value_span) = match &field {
        Some(_) => opt(value).map(Option::unwrap_or_default).with_span().parse_next(input)?,
        None => value.with_span().parse_next(input)?,
    };
    Ok(FilterWord { field, value, value_span })
}

/// A quotation, or characters up to a blank or parenthesis. In a list, each value may be quoted.
fn value(input: &mut Input<'_>) -> winnow::Result<String> {
    let bare = none_of([' ', '\t', '\n', '\r', '(', ')', '"']).map(String::from);
    repeat(1.., alt((quoted, bare)))
        .fold(String::new, |mut all, piece: String| {
            all.push_str(&piece);
            all
        })
        .parse_next(input)
}

fn quoted(input: &mut Input<'_>) -> winnow::Result<String> {
    let escaped = preceded(
        '\\',
        dispatch! {any; '"' => winnow::combinator::empty.value('"'), '\\' => winnow::combinator::empty.value('\\'), _ => fail},
    );
    // Any other backslash stands for itself.
    let character = alt((escaped, preceded(not('"'), any)));
    let inner = repeat(0.., character).fold(String::new, |mut all, c| {
        all.push(c);
        all
    });
    delimited('"', inner, '"').parse_next(input)
}
