//! Lost heads where a writer that was fenced left objects that no head ever named: what was acknowledged comes back.

use std::sync::Arc;

use acpdb_engine::codec::WrittenPlace;
use acpdb_engine::storage::{Entropy, SystemEntropy};

use super::world::{STORE, piece_behind};
use crate::names::{ObjectName, PackName, head_key};
use crate::objects::put_whole;
use crate::run::{LogRun, LogRunKind};
use crate::{ChainError, MemoryRemote, Remote as _, RemoteChain, repair};

fn take_over(remote: &Arc<MemoryRemote>) -> RemoteChain {
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    RemoteChain::take_over(Arc::<MemoryRemote>::clone(remote), entropy, STORE, "one").unwrap()
}

fn append(chain: &mut RemoteChain, commits: &[u64]) {
    for commit in commits {
        chain.append(&piece_behind(chain.place(), *commit)).unwrap();
    }
}

/// The bytes of commits from a place on, and the place behind them.
fn apart(mut place: WrittenPlace, commits: &[u64]) -> (Vec<u8>, WrittenPlace) {
    let mut bytes = Vec::new();
    for commit in commits {
        let piece = piece_behind(place, *commit);
        bytes.extend_from_slice(&piece.bytes);
        place = piece.behind;
    }
    (bytes, place)
}

/// The head is lost; the chain that is repaired ends where it ended.
fn check(what: &str, remote: &Arc<MemoryRemote>, end: WrittenPlace) {
    remote.delete(&head_key(STORE)).unwrap();
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    assert!(repair(&**remote, &entropy, STORE).unwrap());
    assert_eq!(take_over(remote).place(), end, "{what}");
}

/// Segment 1 of a writer that went on apart was taken for the one of the chain: what its successor had acknowledged continued nothing.
#[test]
fn a_segment_of_a_fenced_writer_is_not_taken_for_the_one_of_the_chain() {
    for (what, later) in [
        ("only a fence", &[][..]),
        ("chunks in the same segment", &[3]),
        ("the same segment, full", &[3, 4]),
        ("chunks in the next segment", &[3, 4, 5, 6]),
        ("more segments", &[3, 4, 5, 6, 7, 8, 9, 10]),
    ] {
        for way in ["chunks", "packs", "segments"] {
            for generation in [0, 1] {
                let remote = Arc::new(MemoryRemote::default());
                let mut fenced = take_over(&remote);
                append(&mut fenced, &[1, 2]);
                let mut chain = take_over(&remote);
                append(&mut chain, later);
                if way == "packs" {
                    chain.pack().unwrap();
                }
                if way == "segments" && later.len() >= 2 {
                    let (bytes, behind) = apart(WrittenPlace::default(), &[1, 2, 3, 4]);
                    chain.complete(1, 0, bytes, behind).unwrap();
                }
                let end = chain.place();
                let (bytes, behind) = apart(WrittenPlace::default(), &[1, 2, 93, 94]);
                let completed = fenced.complete(1, generation, bytes, behind);
                assert!(matches!(completed, Err(ChainError::Fenced { .. })));
                check(&format!("{what}, as {way}, beside generation {generation}"), &remote, end);
            }
        }
    }
}

#[test]
fn a_pack_of_a_fenced_writer_is_not_taken_for_the_one_of_the_chain() {
    for is_packed in [false, true] {
        let remote = Arc::new(MemoryRemote::default());
        let mut chain = take_over(&remote);
        append(&mut chain, &[1]);
        let mut chain = take_over(&remote);
        append(&mut chain, &[2]);
        if is_packed {
            chain.pack().unwrap();
        }
        append(&mut chain, &[3]);
        let (bytes, behind) = apart(WrittenPlace::default(), &[1, 92]);
        let (first, next, epoch, nonce, segment) = (1, 6, 1, 77, 1);
        let (kind, generation, store, before) = (LogRunKind::Pack, 0, STORE, WrittenPlace::default());
        let run =
            LogRun { kind, generation, store, epoch, nonce, first, next, before, behind, segment, bytes };
        let name = ObjectName::Pack(PackName { first, next, epoch, nonce });
        put_whole(&*remote, &name.key(STORE), &run.encode()).unwrap();
        check(&format!("packed: {is_packed}"), &remote, chain.place());
    }
}
