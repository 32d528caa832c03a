//! Signatures: what calls, texts and values are compared by without looking at their bytes again.
//!
//! A signature is 16 bytes of BLAKE3, keyed per stream: as long as the key is a body that can be erased, no reader can
//! find out by guessing what an erased call said. A call's is taken over
//!
//! ```text
//! tool name, lower-cased | 00 | canonical params
//! ```
//!
//! and a text's over `ff | domain | 00 | text`; as no UTF-8 begins with `ff`, the two never meet.

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
