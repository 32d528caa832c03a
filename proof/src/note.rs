//! Signed notes (C2SP signed-note) with Ed25519: a text, an empty line, a line for each signature.
//!
//! ```text
//! text                                       verifier key   NAME+KEYID+base64(0x01 || public key)
//!                                            signer key     PRIVATE+KEY+NAME+KEYID+base64(0x01 || seed)
//! — NAME base64(key id || signature)         key id         first 4 bytes of SHA-256(NAME || 0x0a || 0x01 || public key)
//! ```
//!
//! Keys come in and go out as text; this module keeps none. Nothing here draws random numbers: a seed is given.

use base64ct::{Base64, Encoding as _};
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};
use sha2::{Digest as _, Sha256};

use crate::ProofError;

/// Most bytes of a note.
pub const NOTE_BYTES_MAX: usize = 1 << 20;
/// Most signatures of a note.
pub const SIGNATURE_COUNT_MAX: usize = 100;
/// The algorithm byte of Ed25519.
const ED25519: u8 = 1;
const SIGNER_PREFIX: &str = "PRIVATE+KEY+";
/// The beginning of a line with a signature.
const DASH: &str = "\u{2014} ";

/// Text of bytes.
pub(crate) fn base64(bytes: &[u8]) -> String {
    Base64::encode_string(bytes)
}

/// Bytes of a text. Only one form is accepted.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, ProofError> {
    Base64::decode_vec(text).map_err(|_| ProofError::malformed("what should be base64 is not"))
}

/// Whether a key may have this name.
pub fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('+') && !name.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// A public key and the name that it signs under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifierKey {
    name: String,
    public: [u8; 32],
}

impl VerifierKey {
    /// The name that it signs under.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The same key under another name.
    ///
    /// # Errors
    /// [`ProofError::Malformed`] if no key may have that name.
    pub fn named(&self, name: &str) -> Result<Self, ProofError> {
        if !is_name(name) {
            return Err(ProofError::malformed("the name of a key has blanks or a plus in it"));
        }
        Ok(Self { name: name.to_owned(), public: self.public })
    }

    /// The key without its name.
    pub fn public(&self) -> &[u8; 32] {
        &self.public
    }

    /// The id by which a signature names it.
    pub fn id(&self) -> [u8; 4] {
        let hash = Sha256::new().chain_update(&self.name).chain_update([b'\n', ED25519]);
        let hash: [u8; 32] = hash.chain_update(self.public).finalize().into();
        hash.first_chunk().copied().unwrap_or_default()
    }

    /// Reads `NAME+KEYID+KEY`.
    ///
    /// # Errors
    /// [`ProofError::Malformed`] if it is not the text of an Ed25519 key, its id included.
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let wrong = || ProofError::malformed("the key is not NAME+KEYID+KEY of an Ed25519 key");
        let mut parts = text.trim().splitn(3, '+');
        let (Some(name), Some(id), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong());
        };
        let key = from_base64(key).map_err(|_| wrong())?;
        let public = key.split_first().filter(|(algorithm, _)| **algorithm == ED25519);
        let public: [u8; 32] = public.and_then(|(_, key)| key.try_into().ok()).ok_or_else(wrong)?;
        VerifyingKey::from_bytes(&public).map_err(|_| wrong())?;
        let found = Self { name: name.to_owned(), public };
        if !is_name(name) || hex(&found.id()) != id { Err(wrong()) } else { Ok(found) }
    }
}

impl std::fmt::Display for VerifierKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let key: Vec<u8> = std::iter::once(ED25519).chain(self.public).collect();
        write!(f, "{}+{}+{}", self.name, hex(&self.id()), base64(&key))
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A private key. It signs under any name: the caller gives the name for each signature.
#[derive(Clone)]
pub struct SignerKey {
    key: SigningKey,
}

impl std::fmt::Debug for SignerKey {
    /// The key stays out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignerKey(..)")
    }
}

impl SignerKey {
    /// The key of a seed: 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self { key: SigningKey::from_bytes(seed) }
    }

    /// The public key, under a name.
    ///
    /// # Errors
    /// [`ProofError::Malformed`] if no key may have that name.
    pub fn verifier(&self, name: &str) -> Result<VerifierKey, ProofError> {
        if !is_name(name) {
            return Err(ProofError::malformed("the name of a key has blanks or a plus in it"));
        }
        Ok(VerifierKey { name: name.to_owned(), public: self.key.verifying_key().to_bytes() })
    }

    /// The key as the text that a file keeps.
    ///
    /// # Errors
    /// As [`SignerKey::verifier`].
    pub fn to_text(&self, name: &str) -> Result<String, ProofError> {
        let id = hex(&self.verifier(name)?.id());
        let seed: Vec<u8> = std::iter::once(ED25519).chain(self.key.to_bytes()).collect();
        Ok(format!("{SIGNER_PREFIX}{name}+{id}+{}", base64(&seed)))
    }

    /// Reads the text that a file keeps.
    ///
    /// # Errors
    /// [`ProofError::Malformed`]; the text is never quoted.
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let wrong = || ProofError::malformed("this is no private key for Ed25519");
        let mut parts = text.trim().strip_prefix(SIGNER_PREFIX).ok_or_else(wrong)?.splitn(3, '+');
        let (Some(name), Some(id), Some(seed)) = (parts.next(), parts.next(), parts.next()) else {
            return Err(wrong());
        };
        let seed = from_base64(seed).map_err(|_| wrong())?;
        let seed = seed.split_first().filter(|(algorithm, _)| **algorithm == ED25519);
        let seed: [u8; 32] = seed.and_then(|(_, seed)| seed.try_into().ok()).ok_or_else(wrong)?;
        let key = Self::from_seed(&seed);
        if hex(&key.verifier(name).map_err(|_| wrong())?.id()) == id { Ok(key) } else { Err(wrong()) }
    }

    /// Signs a text under a name, and gives the note.
    ///
    /// # Errors
    /// [`ProofError::Malformed`] if the text does not end with a line's end, or has an empty line.
    pub fn sign(&self, name: &str, text: &str) -> Result<String, ProofError> {
        let verifier = self.verifier(name)?;
        if !text.ends_with('\n') || text.contains("\n\n") {
            return Err(ProofError::malformed("the text of a note is lines, none of them empty"));
        }
        let signed: Vec<u8> =
            verifier.id().into_iter().chain(self.key.sign(text.as_bytes()).to_bytes()).collect();
        Ok(format!("{text}\n{DASH}{name} {}\n", base64(&signed)))
    }
}

/// A note that was read; its signatures are not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    text: String,
    signatures: Vec<Signed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Signed {
    name: String,
    id: [u8; 4],
    signature: Vec<u8>,
}

impl Note {
    /// Reads a note.
    ///
    /// # Errors
    /// [`ProofError::Malformed`] if it is no note, or over a limit.
    pub fn parse(note: &str) -> Result<Self, ProofError> {
        let wrong = |what: &'static str| Err(ProofError::malformed(what));
        if note.len() > NOTE_BYTES_MAX {
            return wrong("the signed note has more than 1 MiB");
        }
        let Some(at) = note.rfind("\n\n") else { return wrong("the signed note has no signatures") };
        let (text, lines) = (note.get(..at + 1).unwrap_or_default(), note.get(at + 2..).unwrap_or_default());
        let Some(lines) = lines.strip_suffix('\n') else { return wrong("the signed note is cut") };
        if text.trim().is_empty() || note.chars().any(|c| c.is_control() && c != '\n') {
            return wrong("the signed note has no text, or control characters in it");
        }
        let mut signatures = Vec::new();
        for line in lines.split('\n') {
            if signatures.len() == SIGNATURE_COUNT_MAX {
                return wrong("the signed note has more than 100 signatures");
            }
            let fields = line.strip_prefix(DASH).and_then(|line| line.split_once(' '));
            let Some((name, signed)) = fields.filter(|(name, _)| is_name(name)) else {
                return wrong("a line of the signed note is no signature");
            };
            let signed = from_base64(signed)?;
            let Some((id, signature)) = signed.split_first_chunk::<4>() else {
                return wrong("a signature is cut");
            };
            let signed = Signed { name: name.to_owned(), id: *id, signature: signature.to_vec() };
            // A note has one form: with a line repeated it would be another file that proves the same.
            if signatures
                .iter()
                .any(|earlier: &Signed| earlier.id == signed.id && earlier.name == signed.name)
            {
                return wrong("the signed note has two signatures of one key");
            }
            signatures.push(signed);
        }
        Ok(Self { text: text.to_owned(), signatures })
    }

    /// The text. No signature is checked here.
    pub fn text_unchecked(&self) -> &str {
        &self.text
    }

    /// The signatures that name a key, each without the key's id.
    pub(crate) fn named<'n>(&'n self, name: &'n str, id: [u8; 4]) -> impl Iterator<Item = &'n [u8]> {
        let named = self.signatures.iter().filter(move |signed| signed.id == id && signed.name == name);
        named.map(|signed| signed.signature.as_slice())
    }

    /// The note with the signatures of one key only.
    pub(crate) fn only(&self, name: &str, id: [u8; 4]) -> Self {
        let own = self.signatures.iter().filter(|signed| signed.id == id && signed.name == name);
        Self { text: self.text.clone(), signatures: own.cloned().collect() }
    }

    /// The note with the further signatures of another copy of it. If both have a signature of one key, the own one stays.
    ///
    /// # Errors
    /// [`ProofError::Malformed`] if the texts differ, or there are too many.
    pub fn merged(&self, other: &Self) -> Result<Self, ProofError> {
        if self.text != other.text {
            return Err(ProofError::malformed("two signed notes have different texts"));
        }
        let mut merged = self.clone();
        for signed in &other.signatures {
            let is_there = merged.signatures.iter().any(|own| own.id == signed.id && own.name == signed.name);
            if !is_there {
                merged.signatures.push(signed.clone());
            }
        }
        // Writing has the same limits as reading.
        Self::parse(&merged.to_text())
    }

    /// The note as a file has it.
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", self.text);
        for Signed { name, id, signature } in &self.signatures {
            let signed: Vec<u8> = id.iter().chain(signature).copied().collect();
            text.push_str(&format!("{DASH}{name} {}\n", base64(&signed)));
        }
        text
    }

    /// The first of `keys` that signed the text.
    ///
    /// # Errors
    /// [`ProofError::OtherKey`] if no signature names one of them, [`ProofError::Signature`] if a signature names a key that
    /// did not make it: then the whole note counts for nothing.
    pub fn signed_by<'k>(&self, keys: &'k [VerifierKey]) -> Result<&'k VerifierKey, ProofError> {
        let mut found = None;
        for key in keys {
            let id = key.id();
            let named = self.signatures.iter().find(|signed| signed.id == id && signed.name == key.name);
            let Some(signed) = named else { continue };
            let public = VerifyingKey::from_bytes(&key.public).map_err(|_| ProofError::Signature)?;
            let signature = Signature::from_slice(&signed.signature).map_err(|_| ProofError::Signature)?;
            public.verify_strict(self.text.as_bytes(), &signature).map_err(|_| ProofError::Signature)?;
            found = found.or(Some(key));
        }
        found.ok_or_else(|| {
            let names = self.signatures.iter().map(|signed| format!("{}+{}", signed.name, hex(&signed.id)));
            ProofError::OtherKey { found: names.take(4).collect::<Vec<_>>().join(", ") }
        })
    }
}
