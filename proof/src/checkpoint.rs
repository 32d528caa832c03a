//! Checkpoints (C2SP tlog-checkpoint): the store, the number of its events, the root over them, and the time of the signature.
//!
//! ```text
//! acpdb/abababababababababababababababab     origin: the store, and the name of the key for it
//! 812                                        tree size: the last seq
//! CsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=
//! time 1700000000                            when it was signed, in seconds, as the signer says
//! ```

use acpdb_engine::ids::{Seq, StoreId};

use crate::ProofError;
use crate::note::{Note, SignerKey, VerifierKey, base64, from_base64};
use crate::tree::Hash;

/// The beginning of the name of a store's tree.
const ORIGIN: &str = "acpdb/";
const TIME: &str = "time ";

/// The name of a store's tree, and of the keys that sign it.
pub fn origin(store: StoreId) -> String {
    format!("{ORIGIN}{store}")
}

/// The store that a name of a tree or of a key is for.
pub fn store_of(origin: &str) -> Option<StoreId> {
    let store = origin.strip_prefix(ORIGIN).and_then(StoreId::from_hex)?;
    // One form only.
    (self::origin(store) == origin).then_some(store)
}

/// A claim about all events of a store up to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checkpoint {
    /// The store.
    pub store: StoreId,
    /// Its last event.
    pub seq: Seq,
    /// The root over all events up to it.
    pub root: Hash,
    /// When it was signed, in seconds since 1970, as the signer says.
    pub time: u64,
}

impl Checkpoint {
    /// The text that is signed.
    pub fn to_text(&self) -> String {
        let Self { store, seq, root, time } = self;
        format!("{}\n{}\n{}\n{TIME}{time}\n", origin(*store), seq.get(), base64(&root.0))
    }

    /// Reads the text of a note. Only one form is accepted.
    ///
    /// # Errors
    /// [`ProofError::Malformed`] if it is no checkpoint of a store.
    pub fn parse(text: &str) -> Result<Self, ProofError> {
        let wrong = || ProofError::malformed("the signed text is no checkpoint of an acpdb store");
        let mut lines = text.lines();
        let mut next = || lines.next().ok_or_else(wrong);
        let store = store_of(next()?).ok_or_else(wrong)?;
        let seq = Seq(next()?.parse().map_err(|_| wrong())?);
        let root =
            from_base64(next()?).ok().and_then(|root| root.try_into().ok()).map(Hash).ok_or_else(wrong)?;
        let time = next()?.strip_prefix(TIME).and_then(|time| time.parse().ok()).ok_or_else(wrong)?;
        let found = Self { store, seq, root, time };
        if found.to_text() == text { Ok(found) } else { Err(wrong()) }
    }

    /// Signs it, and gives the note.
    ///
    /// # Errors
    /// None for a checkpoint of a store; as [`SignerKey::sign`].
    pub fn sign(&self, key: &SignerKey) -> Result<String, ProofError> {
        key.sign(&origin(self.store), &self.to_text())
    }

    /// Reads a note that one of `keys` signed for the note's store.
    ///
    /// # Errors
    /// [`ProofError::Malformed`], [`ProofError::OtherStore`] if no key is for its store, [`ProofError::OtherKey`],
    /// [`ProofError::Signature`].
    pub fn open<'k>(note: &str, keys: &'k [VerifierKey]) -> Result<(Self, &'k VerifierKey), ProofError> {
        let note = Note::parse(note)?;
        let found = Self::parse(note.text_unchecked())?;
        let name = origin(found.store);
        if !keys.is_empty() && keys.iter().all(|key| key.name() != name) {
            return Err(ProofError::OtherStore { found: found.store });
        }
        let key = note.signed_by(keys)?;
        if key.name() == name { Ok((found, key)) } else { Err(ProofError::OtherStore { found: found.store }) }
    }

    /// Whether this claim and another can both be true of one history, as far as these two alone can tell.
    ///
    /// # Errors
    /// [`ProofError::OtherStore`], [`ProofError::Fork`] for two roots of one size, [`ProofError::Backdated`] if the larger tree was signed
    /// before the smaller one.
    pub fn agrees_with(&self, other: &Self) -> Result<(), ProofError> {
        let (old, new) = if self.seq <= other.seq { (self, other) } else { (other, self) };
        if old.store != new.store {
            return Err(ProofError::OtherStore { found: new.store });
        }
        if old.seq == new.seq {
            return if old.root == new.root { Ok(()) } else { Err(ProofError::Fork { seq: old.seq }) };
        }
        if new.time < old.time { Err(ProofError::Backdated { seq: new.seq }) } else { Ok(()) }
    }
}
