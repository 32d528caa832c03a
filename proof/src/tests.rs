//! Trees against their definition, notes against a published one, and files against attackers that change them.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation, reason = "tests")]

use acpdb_engine::codec::{LEAF_DOMAIN, body_digest};
use acpdb_engine::ids::{Seq, StoreId};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::event::ShownBody;
use crate::tree::*;
use crate::*;

const STORE: StoreId = StoreId([0xab; 16]);
const BODY: &[u8] = b"a body that is shown";
const BODY_SALT: [u8; 16] = [9; 16];

/// The root of section 2.1 of RFC 6962, word by word.
fn slow_root(leaves: &[Hash]) -> Hash {
    match leaves {
        [] => empty_root(),
        [one] => *one,
        _ => {
            let (left, right) = leaves.split_at(slow_split(leaves.len()));
            node_hash(&slow_root(left), &slow_root(right))
        }
    }
}

fn slow_split(count: usize) -> usize {
    let mut power = 1;
    while power * 2 < count {
        power *= 2;
    }
    power
}

/// PATH of section 2.1.1.
fn slow_path(index: usize, leaves: &[Hash]) -> Vec<Hash> {
    if leaves.len() == 1 {
        return Vec::new();
    }
    let (left, right) = leaves.split_at(slow_split(leaves.len()));
    if index < left.len() {
        [slow_path(index, left), vec![slow_root(right)]].concat()
    } else {
        [slow_path(index - left.len(), right), vec![slow_root(left)]].concat()
    }
}

/// SUBPROOF of section 2.1.2.
fn slow_subproof(old: usize, leaves: &[Hash], is_known: bool) -> Vec<Hash> {
    if old == leaves.len() {
        return if is_known { Vec::new() } else { vec![slow_root(leaves)] };
    }
    let (left, right) = leaves.split_at(slow_split(leaves.len()));
    if old <= left.len() {
        [slow_subproof(old, left, is_known), vec![slow_root(right)]].concat()
    } else {
        [slow_subproof(old - left.len(), right, false), vec![slow_root(left)]].concat()
    }
}

fn gathered(leaves: &[Hash], ranges: Vec<std::ops::Range<u64>>) -> Vec<Hash> {
    let mut gather = RootBuilder::new(ranges);
    for leaf in leaves {
        gather.push(*leaf);
    }
    gather.roots().unwrap()
}

fn numbered(count: usize) -> Vec<Hash> {
    (0..count as u64).map(|number| leaf_hash(&number.to_le_bytes())).collect()
}

fn hex(hash: Hash) -> String {
    hash.0.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Roots that every implementation of certificate transparency has in its tests.
#[test]
fn roots_are_those_of_the_standard() {
    let leaves: [&[u8]; 8] = [
        b"",
        &[0x00],
        &[0x10],
        &[0x20, 0x21],
        &[0x30, 0x31],
        &[0x40, 0x41, 0x42, 0x43],
        &[0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57],
        &[0x60, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d, 0x6e, 0x6f],
    ];
    let mut frontier = Frontier::default();
    assert_eq!(hex(frontier.root()), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    frontier.push(leaf_hash(leaves[0]));
    assert_eq!(hex(frontier.root()), "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d");
    for leaf in &leaves[1..] {
        frontier.push(leaf_hash(leaf));
    }
    assert_eq!(hex(frontier.root()), "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328");
}

#[test]
fn roots_and_proofs_are_those_of_the_definition_for_every_small_tree() {
    for count in 1..=40_usize {
        let leaves = numbered(count);
        let mut frontier = Frontier::default();
        for leaf in &leaves {
            frontier.push(*leaf);
        }
        let (root, size) = (slow_root(&leaves), count as u64);
        assert_eq!((frontier.root(), frontier.size()), (root, size));
        for index in 0..count {
            let proof = gathered(&leaves, inclusion_ranges(index as u64, size).unwrap());
            assert_eq!(proof, slow_path(index, &leaves));
            for other in 0..count + 2 {
                let is_in = verify_inclusion(other as u64, size, leaves[index], &proof, root);
                assert_eq!(is_in, other == index, "{index} of {count} as {other}");
            }
            let old = slow_root(&leaves[..=index]);
            let ranges = consistency_ranges(index as u64 + 1, size).unwrap();
            let proof = gathered(&leaves, ranges);
            assert_eq!(proof, slow_subproof(index + 1, &leaves, true));
            for claimed in 0..count + 2 {
                let is_so = verify_consistency(claimed as u64, size, old, root, &proof);
                assert_eq!(is_so, claimed == index + 1, "{index} of {count} as {claimed}");
            }
        }
        assert_eq!(inclusion_ranges(size, size), None);
        assert_eq!(consistency_ranges(0, size), None);
        assert_eq!(consistency_ranges(size + 1, size), None);
    }
}

#[test]
fn a_proof_of_the_largest_tree_is_short_and_the_end_of_leaves_is_told() {
    assert!(inclusion_ranges(u64::MAX - 1, u64::MAX).unwrap().len() < PROOF_HASH_COUNT_MAX);
    assert!(consistency_ranges(1, u64::MAX).unwrap().len() < PROOF_HASH_COUNT_MAX);
    let mut gather = RootBuilder::new(std::iter::once(0..2));
    gather.push(leaf_hash(b""));
    assert_eq!(gather.roots(), None);
}

#[test]
fn many_leaves_are_proven_at_once_and_nothing_else_is() {
    for count in 1..=9_usize {
        let leaves = numbered(count);
        let (root, size) = (slow_root(&leaves), count as u64);
        for bits in 1..1_u32 << count {
            let shown: Vec<u64> = (0..size).filter(|index| bits >> index & 1 == 1).collect();
            let mut cover = Cover::new(&shown, size).unwrap();
            for leaf in &leaves {
                cover.push(*leaf);
            }
            let hashes = cover.hashes().unwrap();
            let leaf = |index: &u64| (*index, leaves[usize::try_from(*index).unwrap()]);
            let told: Vec<(u64, Hash)> = shown.iter().map(leaf).collect();
            assert!(verify_cover(&told, size, &hashes, root), "{shown:?} of {count}");
            // A single leaf has the hashes that its own proof has.
            if let [index] = shown.as_slice() {
                assert_eq!(hashes.len(), inclusion_ranges(*index, size).unwrap().len());
            }
            // The note gives the size. Another place, order or number of leaves is refused.
            let mut moved = told.clone();
            moved[0].0 = (moved[0].0 + 1) % size;
            assert_eq!(verify_cover(&moved, size, &hashes, root), size == 1, "{shown:?} of {count}");
            let twice = [told.clone(), vec![told[0]]].concat();
            assert!(!verify_cover(&twice, size, &hashes, root));
            assert!(!verify_cover(&told, size, &[hashes.clone(), vec![root]].concat(), root));
            assert!(!verify_cover(&told[1..], size, &hashes, root));
            if !hashes.is_empty() {
                assert!(!verify_cover(&told, size, &hashes[1..], root));
            }
        }
        assert!(Cover::new(&[], size).is_none() && Cover::new(&[size], size).is_none());
        assert!(Cover::new(&[0, 0], size).is_none() && !verify_cover(&[], size, &[root], root));
    }
}

proptest! {
    #[test]
    fn every_change_of_a_proof_is_refused(
        count in 2..300_usize, at in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), bit in 0..8_u8, how in 0..4_u8,
    ) {
        let leaves = numbered(count);
        let (root, index, size) = (slow_root(&leaves), at.index(count), count as u64);
        let proof = gathered(&leaves, inclusion_ranges(index as u64, size).unwrap());
        prop_assert!(verify_inclusion(index as u64, size, leaves[index], &proof, root));
        let mut changed = proof.clone();
        let hash = place.index(changed.len());
        match how {
            0 => changed[hash].0[at.index(32)] ^= 1 << bit,
            1 => { changed.remove(hash); }
            2 => changed.insert(hash, leaves[index]),
            _ => changed.reverse(),
        }
        if changed != proof {
            prop_assert!(!verify_inclusion(index as u64, size, leaves[index], &changed, root));
        }
        let old = index as u64 + 1;
        let proof = gathered(&leaves, consistency_ranges(old, size).unwrap());
        let old_root = slow_root(&leaves[..=index]);
        prop_assert!(verify_consistency(old, size, old_root, root, &proof));
        let mut changed = proof.clone();
        changed.push(root);
        prop_assert!(!verify_consistency(old, size, old_root, root, &changed));
        if !proof.is_empty() {
            let hash = place.index(proof.len());
            changed.clone_from(&proof);
            changed[hash].0[at.index(32)] ^= 1 << bit;
            prop_assert!(!verify_consistency(old, size, old_root, root, &changed));
            changed.clone_from(&proof);
            changed.remove(hash);
            prop_assert!(!verify_consistency(old, size, old_root, root, &changed));
        }
    }
}

/// The example of Go's package `note`. Other implementations check themselves against it, too.
#[test]
fn a_note_of_another_implementation_is_read_and_made() {
    let text = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
    let note = format!(
        "{text}\n\u{2014} PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
    );
    let verifier =
        VerifierKey::parse("PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW").unwrap();
    let read = Note::parse(&note).unwrap();
    assert_eq!(read.signed_by(std::slice::from_ref(&verifier)), Ok(&verifier));
    assert_eq!(read.text_unchecked(), text);
    let signer =
        SignerKey::parse("PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz")
            .unwrap();
    assert_eq!(signer.sign("PeterNeumann", text).unwrap(), note);
    assert_eq!(signer.verifier("PeterNeumann").unwrap(), verifier);
}

#[test]
fn notes_and_keys_that_are_none_are_refused() {
    let signer = SignerKey::from_seed(&[7; 32]);
    let note = signer.sign("a", "text\n").unwrap();
    let line = note.lines().last().unwrap();
    let many = format!("text\n\n{}", format!("{line}\n").repeat(5000));
    for wrong in [
        "",
        "text\n",
        "text\n\n",
        "text\n\n\u{2014} a !!!!\n",
        "text\n\n\u{2014} a AAAA\n\n",
        "text\n\n-- a AAAAAAAA\n",
        note.trim_end(),
        &note.replace("text", "te\u{1}xt"),
        &format!("{note}more\n"),
        &many,
        &"x\n".repeat(NOTE_LINES_TOO_MANY),
    ] {
        assert!(matches!(Note::parse(wrong), Err(ProofError::Malformed { .. })), "{wrong:.60}");
    }
    let (key, text) = (signer.verifier("a").unwrap().to_string(), signer.to_text("a").unwrap());
    assert_eq!(VerifierKey::parse(&key).unwrap().to_string(), key);
    assert_eq!(SignerKey::parse(&text).unwrap().to_text("a").unwrap(), text);
    for wrong in ["", "a", "a+b+c", &key[1..], &key[..key.len() - 1], &key.replace("a+", "b+"), &text] {
        assert!(VerifierKey::parse(wrong).is_err(), "{wrong}");
    }
    for wrong in ["", &key, &text[1..], &text[..text.len() - 4], &text.replace("+a+", "+b+")] {
        assert!(SignerKey::parse(wrong).is_err());
    }
    assert!(
        signer.verifier("a b").is_err() && signer.verifier("a+b").is_err() && signer.verifier("").is_err()
    );
    assert!(signer.sign("a", "text").is_err() && signer.sign("a", "a\n\nb\n").is_err());
    assert!(!format!("{signer:?}").contains('7'));
}

const NOTE_LINES_TOO_MANY: usize = 1 << 20;

// --- files -----------------------------------------------------------------------------------------------------------

/// An event's bytes, put together from the table in docs/PROOFS.md.
fn event(store: StoreId, seq: u64, time: i64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = LEAF_DOMAIN.to_vec();
    bytes.extend(store.as_bytes());
    bytes.extend(seq.to_le_bytes());
    bytes.extend(time.to_le_bytes());
    bytes.extend([3; 16]);
    bytes.extend(0x102_u16.to_le_bytes());
    bytes.extend([0; 2]);
    bytes.extend(&(payload.len() as u32).to_le_bytes()[..3]);
    bytes.push(1);
    bytes.extend([4; 16]);
    bytes.extend([0; 8]);
    bytes.extend(1_u32.to_le_bytes());
    bytes.extend(body_digest(&BODY_SALT, BODY).0);
    bytes.extend([(BODY.len() as u32).to_le_bytes(), (BODY.len() as u32).to_le_bytes()].concat());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

/// A change that an attacker makes to a history.
type Change = fn(&mut History);

/// A history: each event's salt and bytes.
type History = Vec<([u8; 32], Vec<u8>)>;

fn history(store: StoreId, count: u64) -> History {
    let salted =
        |seq: u64| ([seq as u8; 32], event(store, seq, 1000 + seq.cast_signed(), &seq.to_le_bytes()));
    (1..=count).map(salted).collect()
}

fn hashes(history: &History) -> Vec<Hash> {
    history.iter().map(|(salt, bytes)| event::hash(salt, bytes)).collect()
}

fn signed(store: StoreId, history: &History, time: u64, key: &SignerKey) -> String {
    let root = slow_root(&hashes(history));
    Checkpoint { store, seq: Seq(history.len() as u64), root, time }.sign(key).unwrap()
}

fn proof(history: &History, seq: u64, note: &str) -> EventProof {
    let (salt, bytes) = history[seq as usize - 1].clone();
    let bodies = vec![ShownBody { row: 0, salt: BODY_SALT, bytes: BODY.to_vec() }];
    let hashes = gathered(&hashes(history), inclusion_ranges(seq - 1, history.len() as u64).unwrap());
    EventProof {
        opening: EventOpening { salt, event: bytes, bodies },
        index: seq - 1,
        hashes,
        note: note.to_owned(),
    }
}

fn consistency(history: &History, old: &str, old_size: u64, new: &str) -> ConsistencyProof {
    let ranges = consistency_ranges(old_size, history.len() as u64).unwrap();
    ConsistencyProof { old: old.to_owned(), new: new.to_owned(), hashes: gathered(&hashes(history), ranges) }
}

fn signer() -> (SignerKey, Vec<VerifierKey>) {
    let key = SignerKey::from_seed(&[1; 32]);
    let verifier = key.verifier(&origin(STORE)).unwrap();
    (key, vec![verifier])
}

#[test]
fn true_proofs_are_accepted_and_say_what_was_recorded() {
    let (key, keys) = signer();
    let whole = history(STORE, 13);
    let (old, new) = (signed(STORE, &whole[..6].to_vec(), 50, &key), signed(STORE, &whole, 60, &key));
    for seq in 1..=13 {
        let read = EventProof::parse(&proof(&whole, seq, &new).to_text().unwrap()).unwrap();
        let checked = read.check(&keys).unwrap();
        assert_eq!((checked.checkpoint.seq, checked.checkpoint.time), (Seq(13), 60));
        let event = read.opening.read().unwrap();
        assert_eq!(
            (event.seq, event.time.get(), event.envelope.kind),
            (Seq(seq), 1000 + seq.cast_signed(), 0x102)
        );
    }
    let read = ConsistencyProof::parse(&consistency(&whole, &old, 6, &new).to_text().unwrap()).unwrap();
    let (from, checked) = read.check(&keys).unwrap();
    assert_eq!((from, checked.checkpoint.seq), (Seq(6), Seq(13)));
}

#[test]
fn each_attack_on_a_history_is_refused_with_its_name() {
    let (key, keys) = signer();
    let whole = history(STORE, 13);
    let old = signed(STORE, &whole[..8].to_vec(), 50, &key);
    let changes: [(&str, Change); 7] = [
        ("edit", |events| *events[4].1.last_mut().unwrap() ^= 1),
        ("drop", |events| drop(events.remove(4))),
        ("insert", |events| events.insert(4, ([0; 32], event(STORE, 5, 1005, b"new")))),
        ("swap", |events| events.swap(3, 4)),
        ("reorder", |events| events[2..7].reverse()),
        ("backdate", |events| events[4].1 = event(STORE, 5, 5, &5_u64.to_le_bytes())),
        ("another salt", |events| events[4].0[0] ^= 1),
    ];
    for (name, change) in changes {
        let mut forged = whole.clone();
        change(&mut forged);
        // An attacker without the key can only show the existing note.
        let shown = proof(&forged, 5, &old);
        assert_eq!(
            shown.check(&keys).unwrap_err(),
            ProofError::NotIncluded { seq: Seq::from_leaf(&forged, 4) },
            "{name}"
        );
        // An owner of the key signs a history that does not go on from the signed history.
        let new = signed(STORE, &forged, 60, &key);
        let claimed = consistency(&forged, &old, 8, &new);
        let new_seq = Seq(forged.len() as u64);
        assert_eq!(
            claimed.check(&keys).unwrap_err(),
            ProofError::NotConsistent { old: Seq(8), new: new_seq },
            "{name}"
        );
    }
    // Cut: a tree of fewer events does not follow.
    let cut = signed(STORE, &whole[..7].to_vec(), 60, &key);
    let backwards = ConsistencyProof { old: old.clone(), new: cut, hashes: Vec::new() };
    assert!(backwards.check(&keys).is_err());
    // Fork: two faces of the same length.
    let mut other = whole[..8].to_vec();
    other[7].1 = event(STORE, 8, 1008, b"another end");
    let fork = signed(STORE, &other, 50, &key);
    let faces = ConsistencyProof { old: old.clone(), new: fork, hashes: Vec::new() };
    assert_eq!(faces.check(&keys).unwrap_err(), ProofError::Fork { seq: Seq(8) });
    // Two stores exchanged: the key is for one of them.
    let stranger = StoreId([0xcd; 16]);
    let there = history(stranger, 13);
    let note = signed(stranger, &there, 60, &key);
    let found = ProofError::OtherStore { found: stranger };
    assert_eq!(proof(&there, 5, &note).check(&keys).unwrap_err(), found);
    let here = signed(STORE, &there, 60, &key);
    assert_eq!(proof(&there, 5, &here).check(&keys).unwrap_err(), found);
    // Another key, under the same name.
    let thief = SignerKey::from_seed(&[2; 32]);
    let stolen = signed(STORE, &whole, 60, &thief);
    assert!(matches!(proof(&whole, 5, &stolen).check(&keys), Err(ProofError::OtherKey { .. })));
    // The thief's signature under the id of the key.
    let swapped = format!(
        "{}\n{}\n",
        stolen.rsplit_once("\n\n").unwrap().0.to_owned() + "\n",
        old.lines().last().unwrap()
    );
    assert_eq!(proof(&whole, 5, &swapped).check(&keys).unwrap_err(), ProofError::Signature);
    // A checkpoint of more events that claims to be older.
    let early = signed(STORE, &whole, 40, &key);
    let claimed = consistency(&whole, &old, 8, &early);
    assert_eq!(claimed.check(&keys).unwrap_err(), ProofError::Backdated { seq: Seq(13) });
    // A body that was never there.
    let mut body = proof(&whole, 5, &signed(STORE, &whole, 60, &key));
    body.opening.bodies[0].bytes[0] ^= 1;
    assert_eq!(body.check(&keys).unwrap_err(), ProofError::Body { seq: Seq(5), row: 0 });
}

trait FromLeaf {
    fn from_leaf(history: &History, at: usize) -> Self;
}

impl FromLeaf for Seq {
    /// The seq that the event at `at` claims.
    fn from_leaf(history: &History, at: usize) -> Self {
        acpdb_engine::codec::LeafEvent::decode(&history[at].1).unwrap().seq
    }
}

/// Ten thousand files, changed in one to three places by attackers without the key: none is accepted.
#[test]
fn no_file_that_was_changed_is_accepted() {
    let (key, keys) = signer();
    let whole = history(STORE, 9);
    let (old, new) = (signed(STORE, &whole[..4].to_vec(), 50, &key), signed(STORE, &whole, 60, &key));
    let event = proof(&whole, 5, &new).to_text().unwrap();
    let pair = consistency(&whole, &old, 4, &new).to_text().unwrap();
    let mut random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let (mut refused, mut unread) = (0, 0);
    while refused < 10_000 {
        let is_event = random.next_u32() & 1 == 1;
        let mut bytes = if is_event { event.clone() } else { pair.clone() }.into_bytes();
        let original = bytes.clone();
        for _ in 0..=random.next_u32() % 3 {
            let at = random.next_u32() as usize % bytes.len();
            match random.next_u32() % 5 {
                0 => bytes[at] = b"ABCDEabcde01234567+/=\n "[random.next_u32() as usize % 23],
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, bytes[random.next_u32() as usize % bytes.len()]),
                3 => bytes.truncate(at.max(1)),
                _ => {
                    let other = random.next_u32() as usize % bytes.len();
                    bytes.swap(at, other);
                }
            }
        }
        let Ok(text) = String::from_utf8(bytes) else {
            unread += 1;
            continue;
        };
        if text.as_bytes() == original {
            continue;
        }
        let is_accepted = if is_event {
            EventProof::parse(&text).and_then(|proof| proof.check(&keys).map(drop)).is_ok()
        } else {
            ConsistencyProof::parse(&text).and_then(|proof| proof.check(&keys).map(drop)).is_ok()
        };
        assert!(!is_accepted, "{text}");
        refused += 1;
    }
    assert!(unread < refused, "most changes are of texts");
}
