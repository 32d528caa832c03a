//! The secret of a store, and everything that is keyed with it.
//!
//! ```text
//! 32 random bytes in the file `secret`, never in the log
//!   |- origins     canonical id of a fact -> digest -> keyed permutation -> 16 bytes
//!   |- revisions   content of a fact -> 8 bytes
//!   |- signers     key of a stream (a body, which can be erased) -> key of its signatures
//!   |- labels      24 bits of a call's short hash -> keyed permutation -> 24 bits in the payload
//!   |- names       ids that a host derived from a record's bytes -> another id of that form
//!   |- erased      content -> 16 bytes, so that it is recognised and refused when it comes again
//!   '- served      bytes of a context that was sent -> 32 bytes
//! ```
//!
//! Without the file a copy of the log gives nothing to test a guess against. A holder of log and secret can test guesses,
//! but cannot turn a digest back. Origins and labels are permutations of unkeyed digests: so a store can give the
//! unkeyed form, and another store can apply its own secret to that form.
//!
//! Pure: other modules draw the bytes and keep them.

use std::sync::{Arc, OnceLock};

use crate::ids::{FactId, Origin, Seq, StoreId};

/// The beginning of an id that a host derived from the bytes of a record: `digest:` and hex digits.
pub const DERIVED: &str = "digest:";
/// The beginning of such an id once a store has recorded it: the digits are the store's own. When it is named again, it is recorded
/// as it is, so an id that a store shows can be given back to the store.
pub const RECORDED: &str = "derived:";

/// The beginning of the canonical id of a fact that came from another store: its digest in hex digits follows.
pub const ELSEWHERE: &str = "fact:";
/// As [`ELSEWHERE`], if its words cannot be compared with those of a host, as where a text was erased.
pub const BY_ID_ALONE: &str = "event:";

/// The digest of a canonical id, the same in all stores.
pub fn fact_id(fact: &str) -> FactId {
    let elsewhere =
        [ELSEWHERE, BY_ID_ALONE].iter().find_map(|begin| FactId::from_hex(fact.strip_prefix(begin)?));
    elsewhere.unwrap_or_else(|| FactId(first_16(&PLAIN_ORIGIN, fact.as_bytes())))
}

/// Whether a host derived an id from a record's bytes, in the host's form or as a store recorded it.
pub fn is_derived(id: &str) -> bool {
    id.contains(DERIVED) || id.contains(RECORDED)
}

/// The secret of one store. Cheap to clone.
#[derive(Clone)]
pub struct Secret {
    keys: Arc<SecretKeys>,
}

struct SecretKeys {
    bytes: [u8; 32],
    is_known: bool,
    origin: [u8; 32],
    revision: [u8; 32],
    signer: [u8; 32],
    name: [u8; 32],
    erased: [u8; 32],
    served: [u8; 32],
    leaf: [u8; 32],
    labels: OnceLock<Labels>,
}

impl std::fmt::Debug for Secret {
    /// Its bytes stay out of logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_known() { "Secret(..)" } else { "Secret(missing)" })
    }
}

impl Default for Secret {
    /// The secret of 32 zeros: for folds and recorders outside of a store. Its keys are derived once: values that hold a secret are
    /// made empty for each event of a commit.
    fn default() -> Self {
        static ZEROS: OnceLock<Secret> = OnceLock::new();
        ZEROS.get_or_init(|| Self::new([0; 32])).clone()
    }
}

impl Secret {
    /// The secret with these random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        Self::with(bytes, true)
    }

    /// Stands for a secret that is lost: its digests fit nothing that was recorded.
    pub fn missing() -> Self {
        Self::with([0; 32], false)
    }

    fn with(bytes: [u8; 32], is_known: bool) -> Self {
        let key = |purpose: &str| blake3::derive_key(purpose, &bytes);
        let keys = SecretKeys {
            is_known,
            origin: key("acpdb 2026 secret origin v1"),
            revision: key("acpdb 2026 secret revision v1"),
            signer: key("acpdb 2026 secret signer v1"),
            name: key("acpdb 2026 secret name v1"),
            erased: key("acpdb 2026 secret erased v1"),
            served: key("acpdb 2026 secret served v1"),
            leaf: key("acpdb 2026 secret leaf v1"),
            labels: OnceLock::new(),
            bytes,
        };
        Self { keys: Arc::new(keys) }
    }

    /// Whether it is the store's own. Nothing must be recorded with a [missing](Secret::missing) one.
    pub fn is_known(&self) -> bool {
        self.keys.is_known
    }

    /// The random bytes: for the file that keeps them.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.keys.bytes
    }

    /// The origin of a fact, from its canonical id such as `call:toolu_01#1:finish`.
    ///
    /// Unique within its stream; the same id gives the same origin in every feed of the store.
    pub fn origin(&self, fact: &str) -> Origin {
        self.keyed(fact_id(fact))
    }

    /// The origin that an event from another store has in this one.
    pub fn keyed(&self, id: FactId) -> Origin {
        let origin = Origin(permuted(&self.keys.origin, id.0));
        // Zeros say that there is none; one digest in 2^128 has to give way.
        if origin.is_zero() { Origin([1; 16]) } else { origin }
    }

    /// The id that an origin stands for, the same in every store: undoes [`Secret::keyed`].
    pub fn plain(&self, origin: Origin) -> FactId {
        FactId(restored(&self.keys.origin, origin.0))
    }

    /// Begins a digest of a fact's content, to tell a repeat (same revision) from a change.
    pub(crate) fn begin_revision(&self) -> ContentDigest {
        let hasher = blake3::Hasher::new_keyed(&self.keys.revision);
        ContentDigest { hasher, few: [0; FEW_BYTES], length: 0 }
    }

    /// Key of the signatures of a stream, from the stream's own key.
    pub fn signer_key(&self, stream_key: &[u8; 32]) -> [u8; 32] {
        *blake3::keyed_hash(&self.keys.signer, stream_key).as_bytes()
    }

    /// The id in place of one that a host derived from a record's bytes, wholly or in part: the digits behind
    /// [`DERIVED`] become other digits, behind [`RECORDED`]. `None` for other ids, and for ids made here: they stay.
    pub fn name(&self, id: &str) -> Option<String> {
        let (before, rest) = id.split_once(DERIVED)?;
        let end = rest.find(|digit: char| !digit.is_ascii_hexdigit()).unwrap_or(rest.len());
        let (digest, after) = rest.split_at(end);
        let keyed = blake3::keyed_hash(&self.keys.name, digest.as_bytes()).to_hex();
        Some(format!("{before}{RECORDED}{}{after}", keyed.get(..32).unwrap_or_default()))
    }

    /// By what a store is told from one that only bears its id: 32 hex digits.
    pub fn mark(&self, store: StoreId) -> String {
        let key = blake3::derive_key("acpdb 2026 secret mark v1", &self.keys.bytes);
        let mut mark = blake3::keyed_hash(&key, store.as_bytes()).to_hex().to_string();
        mark.truncate(32);
        mark
    }

    /// The digest by which an erased content is recognised.
    pub fn erased(&self, content: &[u8]) -> [u8; 16] {
        first_16(&self.keys.erased, content)
    }

    /// Digest of a context that was sent.
    pub fn served(&self, bytes: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.keys.served, bytes).as_bytes()
    }

    /// The salt of an event in a tree of proofs. It covers the whole event, so that the salt that one proof shows opens nothing else.
    pub fn leaf(&self, event: &[u8]) -> [u8; 32] {
        *blake3::keyed_hash(&self.keys.leaf, event).as_bytes()
    }

    /// The 24 bits that stand in a payload for the bits of a short hash.
    pub fn seal_label(&self, bits: u32) -> u32 {
        if self.is_known() { self.labels().forward(bits) } else { bits }
    }

    /// The 24 bits of a short hash, from the bits in a payload. A missing secret leaves them as they are.
    pub fn open_label(&self, sealed: u32) -> u32 {
        if self.is_known() { self.labels().backward(sealed) } else { sealed }
    }

    fn labels(&self) -> &Labels {
        self.keys.labels.get_or_init(|| Labels::new(&self.keys.bytes))
    }
}

/// Bytes of small parts that are hashed together.
const FEW_BYTES: usize = 256;

/// A digest of a fact's content that is being made. Most parts have a few bytes: they are gathered, since each call of the hash
/// costs more than hashing them.
pub(crate) struct ContentDigest {
    hasher: blake3::Hasher,
    few: [u8; FEW_BYTES],
    length: usize,
}

impl ContentDigest {
    /// Adds a part.
    pub(crate) fn take(&mut self, part: &[u8]) {
        self.put(&(part.len() as u64).to_le_bytes());
        self.put(part);
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.length.saturating_add(bytes.len());
        if let Some(room) = self.few.get_mut(self.length..end) {
            room.copy_from_slice(bytes);
            self.length = end;
            return;
        }
        self.flush();
        if let Some(room) = self.few.get_mut(..bytes.len()) {
            room.copy_from_slice(bytes);
            self.length = bytes.len();
        } else {
            self.hasher.update(bytes);
        }
    }

    fn flush(&mut self) {
        self.hasher.update(self.few.get(..self.length).unwrap_or_default());
        self.length = 0;
    }

    /// The digest. Never 0.
    pub(crate) fn finish(mut self) -> u64 {
        self.flush();
        let digest = self.hasher.finalize();
        digest.as_bytes().first_chunk().copied().map_or(1, u64::from_le_bytes).max(1)
    }
}

/// The text in place of one that was erased before and came again.
const STAND_IN: &[u8] = b"[erased before; not stored again]";
/// The same, where there was an object or a list.
const STAND_IN_OBJECT: &[u8] = br#"{"erased":true}"#;
const STAND_IN_LIST: &[u8] = b"[]";

/// Contents that were erased and must not be stored again, as digests keyed with the secret.
#[derive(Clone, Debug, Default)]
pub struct Withheld {
    secret: Secret,
    contents: Arc<rustc_hash::FxHashSet<[u8; 16]>>,
    /// Events of which something was erased.
    events: Arc<rustc_hash::FxHashSet<Seq>>,
}

impl Withheld {
    /// Holds nothing yet.
    pub fn new(secret: Secret) -> Self {
        Self { secret, contents: Arc::default(), events: Arc::default() }
    }

    /// Whether nothing was erased.
    pub fn is_empty(&self) -> bool {
        self.contents.is_empty() && self.events.is_empty()
    }

    /// Whether a content was erased, so that there is one to look for. An erasure may name events alone.
    pub fn has_contents(&self) -> bool {
        !self.contents.is_empty()
    }

    /// Adds contents, as [`Secret::erased`] gives them, and the events that held them.
    pub fn extend(&mut self, contents: &[[u8; 16]], events: impl Iterator<Item = Seq>) {
        Arc::make_mut(&mut self.contents).extend(contents);
        Arc::make_mut(&mut self.events).extend(events);
    }

    /// Whether a content of one of these events was erased.
    pub fn erased_in(&self, events: &[Seq]) -> bool {
        !self.events.is_empty() && events.iter().any(|seq| self.events.contains(seq))
    }

    /// Whether the content was erased. Costs nothing while no content was erased.
    pub fn holds(&self, content: &[u8]) -> bool {
        self.has_contents() && !content.is_empty() && self.contents.contains(&self.secret.erased(content))
    }

    /// The text that is stored in place of an erased content: JSON stays JSON.
    pub fn placeholder(content: &[u8]) -> &'static [u8] {
        match content.trim_ascii_start().first() {
            Some(b'{') => STAND_IN_OBJECT,
            Some(b'[') => STAND_IN_LIST,
            _ => STAND_IN,
        }
    }
}

/// Key of the digest that the permutation of origins is applied to; the same in all stores.
const PLAIN_ORIGIN: [u8; 32] = *b"acpdb 2026 origin of a fact, v1.";

/// First bytes of the digest of a list of parts, each taken after its length as 8 bytes.
pub(crate) fn first_16_of(mut hasher: blake3::Hasher, parts: &[&[u8]]) -> [u8; 16] {
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let mut bytes = [0; 16];
    hasher.finalize_xof().fill(&mut bytes);
    bytes
}

fn first_16(key: &[u8; 32], content: &[u8]) -> [u8; 16] {
    let digest = blake3::keyed_hash(key, content);
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest.as_bytes()).for_each(|(to, from)| *to = *from);
    bytes
}

/// Rounds of a Feistel network that make a strong pseudo-random permutation (Luby and Rackoff, 1988).
const ORIGIN_ROUNDS: u8 = 4;

/// One block of 16 bytes, permuted: four Feistel rounds with keyed BLAKE3.
fn permuted(key: &[u8; 32], block: [u8; 16]) -> [u8; 16] {
    let block = u128::from_le_bytes(block);
    let (mut left, mut right) = (low_64(block), low_64(block >> 64));
    for round in 0..ORIGIN_ROUNDS {
        (left, right) = (right, left ^ round_of(key, round, right));
    }
    (u128::from(left) | u128::from(right) << 64).to_le_bytes()
}

/// Undoes [`permuted`].
fn restored(key: &[u8; 32], block: [u8; 16]) -> [u8; 16] {
    let block = u128::from_le_bytes(block);
    let (mut left, mut right) = (low_64(block), low_64(block >> 64));
    for round in (0..ORIGIN_ROUNDS).rev() {
        (left, right) = (right ^ round_of(key, round, left), left);
    }
    (u128::from(left) | u128::from(right) << 64).to_le_bytes()
}

fn round_of(key: &[u8; 32], round: u8, half: u64) -> u64 {
    let mut input = [round; 9];
    input.iter_mut().zip(half.to_le_bytes()).for_each(|(to, from)| *to = from);
    let digest = blake3::keyed_hash(key, &input);
    digest.as_bytes().first_chunk().copied().map_or(0, u64::from_le_bytes)
}

#[expect(clippy::cast_possible_truncation, reason = "the low half is what is asked for")]
const fn low_64(block: u128) -> u64 {
    block as u64
}

/// Rounds over halves of 12 bits. Small domains want more than four.
const LABEL_ROUNDS: usize = 8;
/// Values of a half.
const HALVES: usize = 1 << 12;
/// Numbers that are made together: one block of the hash.
const BLOCK_NUMBERS: usize = 32;

/// The permutation of the 24 bits of a short hash: a Feistel network whose rounds are tables of random numbers. A block of them is made when it
/// is first looked at: a process that sees few calls needs few.
struct Labels {
    numbers: blake3::OutputReader,
    blocks: Vec<OnceLock<[u16; BLOCK_NUMBERS]>>,
}

impl Labels {
    fn new(secret: &[u8; 32]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("acpdb 2026 secret label v1");
        hasher.update(secret);
        let count = LABEL_ROUNDS * HALVES / BLOCK_NUMBERS;
        Self { numbers: hasher.finalize_xof(), blocks: (0..count).map(|_| OnceLock::new()).collect() }
    }

    fn block(&self, number: usize) -> [u16; BLOCK_NUMBERS] {
        let mut numbers = self.numbers.clone();
        numbers.set_position((number * BLOCK_NUMBERS * 2) as u64);
        let mut bytes = [0; BLOCK_NUMBERS * 2];
        numbers.fill(&mut bytes);
        let (pairs, _) = bytes.as_chunks::<2>();
        std::array::from_fn(|at| pairs.get(at).map_or(0, |pair| u16::from_le_bytes(*pair) & 0x0fff))
    }

    fn round(&self, round: usize, half: u32) -> u32 {
        let at = round * HALVES + half as usize;
        let number = at / BLOCK_NUMBERS;
        let block = self.blocks.get(number).map(|block| block.get_or_init(|| self.block(number)));
        block.and_then(|block| block.get(at % BLOCK_NUMBERS)).copied().map_or(0, u32::from)
    }

    fn forward(&self, bits: u32) -> u32 {
        let (mut left, mut right) = (bits >> 12 & 0xfff, bits & 0xfff);
        for round in 0..LABEL_ROUNDS {
            (left, right) = (right, left ^ self.round(round, right));
        }
        left << 12 | right
    }

    fn backward(&self, sealed: u32) -> u32 {
        let (mut left, mut right) = (sealed >> 12 & 0xfff, sealed & 0xfff);
        for round in (0..LABEL_ROUNDS).rev() {
            (left, right) = (right ^ self.round(round, left), left);
        }
        left << 12 | right
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn revision(secret: &Secret, parts: &[&[u8]]) -> u64 {
        let mut revision = secret.begin_revision();
        for part in parts {
            revision.take(part);
        }
        revision.finish()
    }

    #[test]
    fn two_secrets_agree_on_nothing() {
        let [one, other] = [Secret::new([1; 32]), Secret::new([2; 32])];
        assert_ne!(one.origin("call:1"), other.origin("call:1"));
        assert_ne!(revision(&one, &[b"a"]), revision(&other, &[b"a"]));
        assert_ne!(one.signer_key(&[3; 32]), other.signer_key(&[3; 32]));
        assert_ne!(one.erased(b"a"), other.erased(b"a"));
        assert_ne!(one.served(b"a"), other.served(b"a"));
        assert_ne!(one.name("digest:ab"), other.name("digest:ab"));
        assert_eq!(one.name("msg_1"), None);
        let name = one.name("digest:ab").unwrap_or_default();
        assert_eq!(one.name(&name), None, "{name} means itself");
        let differ = |bits: &u32| one.seal_label(*bits) != other.seal_label(*bits);
        assert!((0..1000).filter(differ).count() > 990);
    }

    /// Labels stand in logs: the same secret gives the same ones for ever.
    #[test]
    fn the_permutation_of_labels_stays() {
        let secret = Secret::new([7; 32]);
        let sealed = [0, 1, 0xfff, 0x1000, 0x12_3456, 0xff_ffff].map(|bits| secret.seal_label(bits));
        expect_test::expect!["[be1cba, 2c8a14, e92d87, 9b7346, 2ace4e, 95f19f]"]
            .assert_eq(&format!("{sealed:x?}"));
    }

    #[test]
    fn parts_of_a_revision_are_told_apart() {
        let secret = Secret::default();
        assert_ne!(revision(&secret, &[b"ab", b"c"]), revision(&secret, &[b"a", b"bc"]));
    }

    #[test]
    fn a_secret_does_not_print_its_bytes() {
        assert_eq!(format!("{:?} {:?}", Secret::default(), Secret::missing()), "Secret(..) Secret(missing)");
    }

    proptest! {
        /// The digest equals the digest of all lengths and parts, one after the other: gathering them changes nothing.
        #[test]
        fn a_revision_is_one_hash(parts in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..600), 0..8)) {
            let secret = Secret::new([5; 32]);
            let mut hasher = blake3::Hasher::new_keyed(&secret.keys.revision);
            for part in &parts {
                hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
            }
            let expected = hasher.finalize().as_bytes().first_chunk().copied().map_or(1, u64::from_le_bytes);
            let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(revision(&secret, &parts), expected.max(1));
        }

        #[test]
        fn labels_come_back(bits in 0_u32..1 << 24, key: [u8; 32]) {
            let secret = Secret::new(key);
            let sealed = secret.seal_label(bits);
            prop_assert!(sealed < 1 << 24);
            prop_assert_eq!(secret.open_label(sealed), bits);
        }

        #[test]
        fn origins_are_a_permutation(block: [u8; 16], key: [u8; 32]) {
            prop_assert_eq!(restored(&key, permuted(&key, block)), block);
        }
    }
}
