//! Short signs of texts and calls: signatures, by which they are compared without looking at their bytes again; labels, by which an agent
//! names a call; masks, which stand for free texts in keys.
//!
//! A signature is 16 bytes of BLAKE3, keyed per stream: as long as the key is a body that can be erased, no reader can
//! find the parameters of an erased call by guessing. The signature of a call is taken over
//!
//! ```text
//! tool name, lower-cased | 00 | canonical params
//! ```
//!
//! and the signature of a text over `ff | domain | 00 | text`. No UTF-8 begins with `ff`, so the two never meet.
//!
//! A label, `r_a1b2c`, is the tool's first letter and the first bits of SHA-256 over the canonical params. It is short so that a
//! model can repeat it, and therefore not unique: supersession compares signatures. Where two signatures of a stream
//! share a label, the later one is shown with hex digits of its signature appended, and [`HashTarget`] reads these digits.
//!
//! A mask is `~` and 16 hex digits of a signature. Equal texts of a stream have equal masks; the text is in the call's parameters.

use sha2::{Digest as _, Sha256};

use crate::ids::Signature;

/// Makes the signatures of one stream. Cheap to make and to copy.
#[derive(Clone)]
pub struct Signer {
    key: [u8; 32],
}

impl std::fmt::Debug for Signer {
    /// The key stays out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer(..)")
    }
}

impl Signer {
    /// A signer with the stream's key.
    pub const fn new(key: [u8; 32]) -> Self {
        Self { key }
    }

    /// Signs a call: tools that differ only in case are one, `canonical` is compared byte by byte.
    pub fn call(&self, tool: &str, canonical: &[u8]) -> Signature {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        if tool.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase()) {
            hasher.update(tool.as_bytes());
        } else {
            hasher.update(tool.to_lowercase().as_bytes());
        }
        hasher.update(&[0]);
        hasher.update(canonical);
        shortened(&hasher)
    }

    /// Signs a text, case as given. Texts of different domains never compare equal.
    pub fn text(&self, domain: &str, text: &str) -> Signature {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[0xff]);
        hasher.update(domain.as_bytes());
        hasher.update(&[0]);
        hasher.update(text.as_bytes());
        shortened(&hasher)
    }

    /// Signs a text, lower-cased (Unicode): texts that differ only in case are one.
    pub fn folded(&self, domain: &str, text: &str) -> Signature {
        self.text(domain, &text.to_lowercase())
    }
}

/// The first 16 bytes of the digest.
fn shortened(hasher: &blake3::Hasher) -> Signature {
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    Signature(bytes)
}

/// How many hex digits of the params digest the short form shows.
const SHORT_DIGITS: usize = 5;
/// How many hex digits the bare form has.
const BARE_DIGITS: usize = 6;

/// Letter of the tool and the first 24 bits of SHA-256 of the canonical params.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Label {
    letter: char,
    bits: u32,
}

impl Label {
    /// The label of a call.
    pub fn of(tool: &str, canonical: &[u8]) -> Self {
        let digest = Sha256::digest(canonical);
        let bits = digest.iter().take(3).fold(0, |bits, byte| bits << 8 | u32::from(*byte));
        Self::from_bits(tool, bits)
    }

    /// The label of a call of `tool` whose bits have been kept. Bits above the lower 24 are dropped.
    pub fn from_bits(tool: &str, bits: u32) -> Self {
        let letter = tool.chars().next().and_then(|first| first.to_lowercase().next()).unwrap_or('x');
        Self { letter, bits: bits & 0x00ff_ffff }
    }

    /// First character of the tool's name, lower-cased; `x` if it has none.
    pub const fn letter(self) -> char {
        self.letter
    }

    /// The 24 bits.
    pub const fn bits(self) -> u32 {
        self.bits
    }

    /// The usual form: letter and 5 hex digits, `r_a1b2c`.
    pub fn short(self) -> String {
        format!("{}_{:05x}", self.letter, self.bits >> 4)
    }

    /// The bare form: 6 hex digits, `a1b2c3`, no letter.
    pub fn hex6(self) -> String {
        format!("{:06x}", self.bits)
    }

    /// The short form with the first `digits` hex digits of `signature` behind it, for when labels clash.
    pub fn lengthened(self, signature: &Signature, digits: usize) -> String {
        let mut text = self.short();
        text.extend(signature.to_hex().chars().take(digits));
        text
    }
}

/// A hash as a user typed it: which calls does it mean?
///
/// Any case; read by [`HashTarget::parse`] or [`HashTarget::parse_bare`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HashTarget {
    /// The character before `_`; none in the bare form.
    letter: Option<char>,
    /// Hex digits, lower-cased: at least 5 after a letter, at least 6 in the bare form.
    digits: String,
}

impl HashTarget {
    /// Reads one character, `_`, and 5 or more hex digits. `None`: it is something else, such as a pattern.
    pub fn parse(text: &str) -> Option<Self> {
        let mut characters = text.chars();
        let letter = characters.next()?;
        let digits = characters.as_str().strip_prefix('_')?;
        let letter = letter.to_lowercase().next().unwrap_or(letter);
        (digits.len() >= SHORT_DIGITS).then(|| Self::with(Some(letter), digits))?
    }

    /// Reads 6 or more hex digits: a bare hash is lengthened like any other where two would read alike.
    pub fn parse_bare(text: &str) -> Option<Self> {
        (text.len() >= BARE_DIGITS).then(|| Self::with(None, text))?
    }

    fn with(letter: Option<char>, digits: &str) -> Option<Self> {
        let hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        hex.then(|| Self { letter, digits: digits.to_ascii_lowercase() })
    }

    /// Whether the first character makes it doubtful that this is a hash: then it is one only if a call has it.
    pub fn is_doubtful(&self) -> bool {
        self.letter.is_some_and(|letter| !letter.is_alphabetic())
    }

    /// Whether this names a call with `label` and `signature`: digits beyond the label's are the signature's.
    pub fn names(&self, label: Label, signature: &Signature) -> bool {
        let (short, more) = self.split();
        let is_label = match self.letter {
            None => short == label.hex6(),
            Some(letter) => {
                letter == label.letter() && u32::from_str_radix(short, 16) == Ok(label.bits() >> 4)
            }
        };
        is_label && signature.to_hex().starts_with(more)
    }

    /// The label's part of the hash, as [`Label::short`] or [`Label::hex6`] prints it.
    pub fn label_text(&self) -> String {
        match self.letter {
            None => self.split().0.to_owned(),
            Some(letter) => format!("{letter}_{}", self.split().0),
        }
    }

    /// The same, for looking it up: the letter, and the bits of the digits.
    pub(crate) fn label_bits(&self) -> Option<(Option<char>, u32)> {
        // Six hexadecimal digits at most: they fit.
        Some((self.letter, u32::from_str_radix(self.split().0, 16).ok()?))
    }

    /// The label's digits, and the signature's.
    fn split(&self) -> (&str, &str) {
        let short = if self.letter.is_some() { SHORT_DIGITS } else { BARE_DIGITS };
        self.digits.split_at_checked(short).unwrap_or_default()
    }
}

/// Hex digits of a mask.
const DIGITS: usize = 16;

/// The mask of a text with this signature.
pub fn mask(signature: &Signature) -> String {
    let hex = signature.to_hex();
    format!("~{}", hex.get(..DIGITS).unwrap_or_default())
}

/// Whether a key holds such a mask.
pub fn is_masked(key: &str) -> bool {
    key.split('~').skip(1).any(|rest| {
        let digits = rest.bytes().take_while(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')).count();
        digits == DIGITS && !rest.as_bytes().get(DIGITS).is_some_and(u8::is_ascii_alphanumeric)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::canonical_or_text;

    const SIGNER: Signer = Signer::new([7; 32]);

    #[test]
    fn a_call_is_signed_over_tool_zero_params() {
        let digest = blake3::keyed_hash(&[7; 32], b"read\0{\"filePath\":\"/a\"}");
        let signed = SIGNER.call("Read", b"{\"filePath\":\"/a\"}");
        assert_eq!(signed.as_bytes(), &digest.as_bytes()[..16]);
    }

    #[test]
    fn what_differs_is_signed_differently() {
        let other_key = Signer::new([8; 32]);
        let signatures = [
            SIGNER.call("glob", b"{}"),
            SIGNER.call("grep", b"{}"),
            SIGNER.call("glob", b"{\"a\":1}"),
            SIGNER.text("glob", "{}"),
            SIGNER.text("todo", "{}"),
            SIGNER.text("todo", "Fix"),
            SIGNER.text("todo", "fix"),
            other_key.call("glob", b"{}"),
        ];
        for (index, one) in signatures.iter().enumerate() {
            assert!(signatures[..index].iter().all(|other| other != one), "number {index}");
        }
    }

    #[test]
    fn case_of_tools_and_folded_texts_does_not_count() {
        assert_eq!(SIGNER.call("ÉDIT", b"{}"), SIGNER.call("édit", b"{}"));
        assert_eq!(SIGNER.folded("fact", "User IS Émile"), SIGNER.folded("fact", "user is émile"));
        assert_eq!(SIGNER.folded("fact", "a"), SIGNER.text("fact", "a"));
    }

    #[test]
    fn a_signer_does_not_print_its_key() {
        assert_eq!(format!("{SIGNER:?}"), "Signer(..)");
    }

    /// Hashes that hosts of the same formula have shown for these calls.
    #[test]
    fn short_hashes_are_those_that_hosts_show() {
        let rows = [
            ("read", r#"{"filePath": "/a"}"#, "r_8e0d2"),
            ("Read", r#"{"filePath": "/a"}"#, "r_8e0d2"),
            ("read", r#"{"filePath": "/a", "limit": null}"#, "r_a5a1f"),
            ("read", r#"{"filePath": ""}"#, "r_924c0"),
            ("read", r#"{"filePath": "/src/app.ts"}"#, "r_fdd88"),
            ("read", r#"{"filePath": "/src/app.ts", "offset": 50}"#, "r_87246"),
            ("read", r#"{"filePath": "/src/app.ts", "offset": 50.0}"#, "r_87246"),
            ("glob", r#"{"pattern": "*.ts", "path": "/s"}"#, "g_7fc88"),
            ("grep", r#"{"pattern": "*.ts", "path": "/s"}"#, "g_7fc88"),
            ("grep", r#"{"pattern": "x", "path": "/s", "include": "*.ts"}"#, "g_24265"),
            ("grep", r#"{"include": "*.ts", "path": "/s", "pattern": "x"}"#, "g_24265"),
            ("list", r#"{"all": true}"#, "l_d0fdc"),
            ("list", r#"{"all": "true"}"#, "l_7663c"),
            ("list", "", "l_44136"),
            ("list", "{}", "l_44136"),
            ("calc", r#"{"a": 1e-07, "b": 123456789012345680000, "c": 100}"#, "c_f6d15"),
            ("calc", r#"{"c": 1E2, "b": 1.2345678901234568e20, "a": 0.0000001}"#, "c_f6d15"),
            ("read", r#"{"filePath": "/donn\u00e9es/\u00dcn\u00ef/\u6587\u4ef6.ts"}"#, "r_eb965"),
            ("read", r#"{"filePath": "/données/Ünï/文件.ts"}"#, "r_eb965"),
            ("bash", r#"{"command": "echo \"\ud83d\ude80\\n\"\t\u0007 \u2028 </x>"}"#, "b_b88f2"),
            ("bash", r#"{"command": "ls ", "description": "run"}"#, "b_4a933"),
            ("_probe", r#"{"a": 1}"#, "__015ab"),
            ("9probe", r#"{"a": 1}"#, "9_015ab"),
            ("", r#"{"a": 1}"#, "x_015ab"),
            (
                "multiedit",
                r#"{"filePath": "/a.ts", "edits": [{"oldString": "a", "newString": "b"}]}"#,
                "m_ede69",
            ),
        ];
        for (tool, params, short) in rows {
            let (canonical, _) = canonical_or_text(params.as_bytes());
            let label = Label::of(tool, canonical.as_bytes());
            assert_eq!(label.short(), short, "{tool} {params}");
            assert_eq!(label.hex6()[..5], short[2..], "{tool} {params}");
            assert_eq!(Label::from_bits(tool, label.bits()), label);
        }
    }

    #[test]
    fn a_hash_is_one_character_underscore_and_hex() {
        let shown = |target: HashTarget| match target.label_bits().unwrap() {
            (Some(letter), bits) => format!("{letter}_{bits:05x}"),
            (None, bits) => format!("{bits:06x}"),
        };
        for (text, read) in [
            ("r_a1b2c", Some("r_a1b2c")),
            ("R_A1B2C", Some("r_a1b2c")),
            ("r_a1b2c3d4", Some("r_a1b2c")),
            ("__015ab", Some("__015ab")),
            ("é_00000", Some("é_00000")),
            ("r_a1b2", None),
            ("r_a1b2g", None),
            ("r_a1b2c ", None),
            ("re_a1b2c", None),
            ("_a1b2c", None),
            ("a1b2c3", None),
            ("r_a1b2c...end", None),
            ("", None),
            ("r", None),
        ] {
            assert_eq!(HashTarget::parse(text).map(shown).as_deref(), read, "{text:?}");
        }
        for (text, read) in [
            ("a1b2c3", Some("a1b2c3")),
            ("A1B2C3d", Some("a1b2c3")),
            ("a1b2c", None),
            ("a1b2c3x", None),
            ("é1b2c", None),
        ] {
            assert_eq!(HashTarget::parse_bare(text).map(shown).as_deref(), read, "{text:?}");
        }
        assert!(HashTarget::parse("__015ab").unwrap().is_doubtful());
        assert!(!HashTarget::parse("r_015ab").unwrap().is_doubtful());
    }

    #[test]
    fn a_hash_names_what_it_was_printed_for() {
        let label = Label::of("read", b"{}");
        let signature = Signature([0xc3; 16]);
        let names = |text: &str| HashTarget::parse(text).unwrap().names(label, &signature);
        assert_eq!(label.short(), "r_44136");
        assert_eq!(label.lengthened(&signature, 3), "r_44136c3c");
        assert!(names("R_44136") && names("r_44136c") && names("r_44136C3C"));
        assert!(!names("l_44136") && !names("r_44137") && !names("r_441363"));
        let bare = |more: &str| {
            let text = format!("{}{more}", label.hex6());
            HashTarget::parse_bare(&text).unwrap().names(label, &signature)
        };
        assert!(bare("") && bare("c3") && !bare("3c"));
    }

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
