//! An attacker with the whole folder, its secret, the writer of the engine, its clock and its randomness, and no key.
//!
//! Each try takes the store as it was after some commit, writes the rest of the history anew with random changes, and puts any notes
//! beside it. Digests, links, salts and witnesses are those that acpdb itself would have made: an event that is written again unchanged has the same
//! bytes as before, which the first of the tests shows. So the signature alone is between the attacker and success.

use std::sync::Arc;

use acpdb_engine::Store;
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::{Micros, Seq, StoreId};
use acpdb_engine::storage::{FixedClock, FixedEntropy, SimWorld};
use acpdb_engine::store::Leaf;
use acpdb_proof::claims::CheckpointStatus;
use acpdb_proof::{Checkpoint, Claims, Frontier, SignerKey, VerifierKey, event, origin};
use acpdb_tests::support::cases;

const BEGIN: i64 = 1_700_000_000_000_000;
const COUNT: usize = 12;

/// One commit.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Said {
    number: u64,
    session: u64,
    text: String,
    time: i64,
}

/// Opens the store of a simulated machine; its random bytes follow from `seed`, its clock says `time`.
fn open(world: &SimWorld, seed: u64, time: i64) -> Store {
    let builder = Store::builder("/sim").storage(Arc::new(world.process(1)));
    let builder = builder.clock(Arc::new(FixedClock::new(Micros(time), 0)));
    let builder = builder.entropy(Arc::new(FixedEntropy::new(seed)));
    builder.index(false).snapshots(false).sealing(false).open().unwrap()
}

/// Writes one commit. Opened for each with its own seed, so the same commit in the same place has the same salts.
fn write(world: &SimWorld, said: &Said) {
    let store = open(world, said.number, said.time);
    let session = StreamInfo::session("host", format!("s{}", said.session));
    let entry = Entry::message(format!("m{}", said.number), Role::User, said.text.as_str());
    assert!(store.append(&session, vec![entry]).unwrap().event_count > 0);
}

fn leaves_of(world: &SimWorld) -> (StoreId, Vec<Leaf>) {
    let store = open(world, 1, BEGIN);
    let leaves = store.leaves(Seq(1), store.head().unwrap()).unwrap().map(Result::unwrap).collect();
    (store.id(), leaves)
}

/// A small generator: the number of the try gives the try.
struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % count as u64).unwrap()
    }
}

/// The true history, the store after each of its commits, and its signed leaves and notes.
struct Truth {
    said: Vec<Said>,
    worlds: Vec<SimWorld>,
    leaves: Vec<Leaf>,
    id: StoreId,
    old: (Seq, String),
    new: (Seq, String),
    key: VerifierKey,
}

fn root_of(leaves: &[Leaf]) -> acpdb_proof::Hash {
    let mut frontier = Frontier::default();
    for leaf in leaves {
        frontier.push(event::hash(&leaf.salt, &leaf.bytes));
    }
    frontier.root()
}

fn note(id: StoreId, leaves: &[Leaf], time: u64, signer: &SignerKey) -> (Seq, String) {
    let seq = Seq(leaves.len() as u64);
    let checkpoint = Checkpoint { store: id, seq, root: root_of(leaves), time };
    (seq, checkpoint.sign(signer).unwrap())
}

impl Truth {
    fn new() -> Self {
        let world = SimWorld::new(7);
        drop(open(&world, 1, BEGIN));
        let said: Vec<Said> = (0..COUNT as u64)
            .map(|number| Said {
                number,
                session: number % 3,
                text: format!("what was said {number}"),
                time: BEGIN + i64::try_from(number).unwrap() * 1_000_000,
            })
            .collect();
        let mut worlds = vec![world.fork(1)];
        let mut middle = 0;
        for (count, one) in (1..).zip(&said) {
            write(&world, one);
            worlds.push(world.fork(1));
            if count == COUNT / 2 {
                middle = leaves_of(&world).1.len();
            }
        }
        let (id, leaves) = leaves_of(&world);
        let signer = SignerKey::from_seed(&[1; 32]);
        let time = BEGIN.unsigned_abs() / 1_000_000;
        let old = note(id, &leaves[..middle], time + 6, &signer);
        let new = note(id, &leaves, time + 12, &signer);
        let key = signer.verifier(&origin(id)).unwrap();
        Self { said, worlds, leaves, id, old, new, key }
    }

    /// Whether a user takes a store for the one that was signed. `pin`: this machine saw the newest note.
    fn accepts(&self, leaves: &[Leaf], kept: Vec<(Seq, String)>, pin: bool) -> bool {
        let kept = kept.into_iter().map(|(seq, note)| (seq, Ok(note))).collect();
        let pin = pin.then(|| self.new.1.clone());
        let claims =
            Claims { pin, kept, keys: vec![self.key.clone()], is_signer_known: true, is_backup: false };
        let judged = claims.judge(self.id, leaves.iter().cloned().map(Ok::<_, ()>)).unwrap();
        let agrees = |claim: &acpdb_proof::claims::Claim| claim.standing == CheckpointStatus::Agrees;
        let covers = judged.claims.iter().any(|claim| agrees(claim) && claim.seq() == Some(self.new.0));
        covers && judged.claims.iter().all(agrees)
    }
}

/// Rewrites the history after a commit.
fn changed(truth: &Truth, from: usize, random: &mut Random) -> Vec<Said> {
    let mut rest = truth.said[from..].to_vec();
    for _ in 0..=random.below(3) {
        let at = random.below(rest.len().max(1));
        let fresh = 1000 + random.below(1 << 30) as u64;
        match random.below(8) {
            0 if !rest.is_empty() => rest[at].text.push('!'),
            1 if !rest.is_empty() => drop(rest.remove(at)),
            2 => {
                let time = rest.get(at).map_or(BEGIN, |one| one.time);
                rest.insert(at, Said { number: fresh, session: 1, text: "new".to_owned(), time });
            }
            3 if !rest.is_empty() => {
                let other = random.below(rest.len());
                rest.swap(at, other);
            }
            4 if !rest.is_empty() => rest[at..].reverse(),
            5 if !rest.is_empty() => rest[at].time -= 1 + i64::try_from(random.below(10_000_000)).unwrap(),
            6 if !rest.is_empty() => rest[at].session = (rest[at].session + 1) % 3,
            _ => rest.truncate(at),
        }
    }
    rest
}

/// Tries attacks until `count` of them were other histories than the true one; none may be accepted.
fn attack(count: usize) {
    let truth = Truth::new();
    let thief = SignerKey::from_seed(&[2; 32]);
    let (mut tried, mut unchanged) = (0, 0);
    for number in 0.. {
        if tried == count {
            break;
        }
        let mut random = Random(number);
        let from = random.below(COUNT + 1);
        let world = truth.worlds[from].fork(number);
        for said in changed(&truth, from, &mut random) {
            write(&world, &said);
        }
        let (_, leaves) = leaves_of(&world);
        // Whether the attack changed signed events is told by the bytes, not by hashes.
        if leaves.len() >= truth.leaves.len() && leaves[..truth.leaves.len()] == truth.leaves[..] {
            unchanged += 1;
            continue;
        }
        let (old, new) = (truth.old.clone(), truth.new.clone());
        let time = BEGIN.unsigned_abs() / 1_000_000 + 12;
        let stolen = note(truth.id, &leaves, time, &thief);
        // The text of the forged history under the true signature.
        let line = new.1.lines().last().unwrap();
        let spliced = format!("{}\n\n{line}\n", stolen.1.split_once("\n\n").unwrap().0);
        let kept = match random.below(7) {
            0 => vec![old, new],
            1 => vec![old],
            2 => Vec::new(),
            3 => vec![old, stolen],
            4 => vec![old, (stolen.0, spliced)],
            5 => vec![(stolen.0, new.1)],
            _ => vec![(new.0, stolen.1), new],
        };
        let pin = random.below(2) == 0;
        assert!(!truth.accepts(&leaves, kept, pin), "try {number} was accepted");
        tried += 1;
    }
    assert!(unchanged < tried, "most tries are attacks: {unchanged} were none");
}

#[test]
fn a_history_that_is_written_again_as_it_was_has_the_same_bytes_and_is_accepted() {
    let truth = Truth::new();
    for from in 0..=COUNT {
        let world = truth.worlds[from].fork(5);
        for said in &truth.said[from..] {
            write(&world, said);
        }
        let (_, leaves) = leaves_of(&world);
        assert_eq!(leaves, truth.leaves, "from {from}");
        let kept = vec![truth.old.clone(), truth.new.clone()];
        assert!(truth.accepts(&leaves, kept.clone(), true) && truth.accepts(&leaves, kept, false));
        // It may grow.
        write(&world, &Said { number: 99, session: 0, text: "later".to_owned(), time: BEGIN + 60_000_000 });
        assert!(truth.accepts(&leaves_of(&world).1, vec![truth.new.clone()], true));
    }
}

/// `ACPDB_TEST_CASES=10000` tries ten thousand; they were a test of their own, which no machine ran.
#[test]
fn no_history_that_was_rewritten_is_accepted() {
    attack(cases(300) as usize);
}
