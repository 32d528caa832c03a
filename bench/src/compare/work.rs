//! The work of every engine: events of 100 interleaved sessions, the same in each run.
//!
//! Half of the bodies have less than 632 bytes, the mean is 2.3 KB, one in a hundred has 30 KB and more. Every event names
//! the digest of a call's parameters, of which three in ten were seen before, and a chain of 20 events of its session.

use acpdb_engine::storage::{Entropy as _, SystemEntropy};

use crate::session::Numbers;

/// Sessions that take turns.
pub(crate) const SESSION_COUNT: u64 = 100;
/// Events of a chain.
pub(crate) const CHAIN_EVENT_COUNT: u64 = 20;
/// Chains that take turns.
const OPEN_CHAIN_COUNT: u64 = 1000;
/// Events of a session that ends.
pub(super) const ENDING_CALL_COUNT: u64 = OPEN_CHAIN_COUNT * CHAIN_EVENT_COUNT / SESSION_COUNT;
const POOL_BYTES: usize = 8 << 20;

/// One event.
#[derive(Clone, Copy)]
pub(crate) struct Event<'w> {
    /// From 1.
    pub(crate) number: u64,
    pub(crate) session: u32,
    pub(crate) chain: u32,
    /// Digest of a call's parameters.
    pub(crate) hash: [u8; 32],
    pub(crate) body: &'w str,
}

/// Random salts, drawn a page at a time, as the store does.
#[derive(Default)]
pub(crate) struct Salts(Vec<[u8; 16]>);

impl Salts {
    pub(crate) fn next(&mut self) -> crate::Outcome<[u8; 16]> {
        if self.0.is_empty() {
            let mut bytes = [0; 4096];
            SystemEntropy.fill(&mut bytes)?;
            self.0.extend(bytes.as_chunks::<16>().0);
        }
        Ok(self.0.pop().unwrap_or([1; 16]))
    }
}

/// A lookup.
#[derive(Clone, Copy)]
pub(crate) enum Ask {
    /// The event of this number.
    Get(u64),
    /// The newest event with these parameters.
    Digest([u8; 32]),
    /// The last 200 events of this session, oldest first.
    Last(u32),
    /// All events of this chain, oldest first.
    Chain(u32),
}

/// Events of a session that [`Ask::Last`] reads.
pub(crate) const LAST_COUNT: usize = 200;

/// Makes events.
pub(crate) struct Work {
    pool: String,
    /// Sessions end, and new ones begin.
    sessions_end: bool,
}

impl Work {
    pub(crate) fn new() -> Self {
        let mut text = crate::session::Session::new("compare");
        let mut pool = text.text(POOL_BYTES);
        pool.truncate(POOL_BYTES);
        Self { pool, sessions_end: false }
    }

    /// The same work in sessions of [`ENDING_CALL_COUNT`] events each, for any number of events.
    pub(super) fn of_ending_sessions() -> Self {
        Self { sessions_end: true, ..Self::new() }
    }

    /// The event of a number.
    pub(crate) fn event(&self, number: u64) -> Event<'_> {
        let index = number.saturating_sub(1);
        let mut numbers = Numbers(number.wrapping_mul(0x9e37_79b9));
        let bytes = match numbers.below(100) {
            0..50 => 100 + numbers.below(532),
            50..90 => 632 + numbers.below(1868),
            90..99 => 2500 + numbers.below(17_500),
            _ => 30_000 + numbers.below(30_000),
        };
        let start = numbers.below(POOL_BYTES - 60_000);
        let again = numbers.below(10) < 3 && number > 10;
        let params = if again { number - 1 - numbers.next() % (number / 2) } else { number };
        let block = index / (OPEN_CHAIN_COUNT * CHAIN_EVENT_COUNT);
        let generation = if self.sessions_end { block } else { 0 };
        Event {
            number,
            session: u32::try_from(generation * SESSION_COUNT + index % SESSION_COUNT).unwrap_or(0),
            chain: u32::try_from(block * OPEN_CHAIN_COUNT + index % OPEN_CHAIN_COUNT).unwrap_or(0),
            hash: hash_of(params),
            body: self.pool.get(start..start + bytes).unwrap_or_default(),
        }
    }

    /// The right answer in a store of `count` events.
    pub(crate) fn answer(&self, ask: Ask, count: u64, sink: &mut Sink) {
        let numbers: Vec<u64> = match ask {
            Ask::Get(number) => vec![number],
            Ask::Digest(hash) => {
                (1..=count).rev().find(|n| self.event(*n).hash == hash).into_iter().collect()
            }
            Ask::Last(session) => {
                let own = (1..=count).rev().filter(|n| (n - 1) % SESSION_COUNT == u64::from(session));
                let mut last: Vec<u64> = own.take(LAST_COUNT).collect();
                last.reverse();
                last
            }
            Ask::Chain(chain) => {
                let chain = u64::from(chain);
                let first = chain / OPEN_CHAIN_COUNT * OPEN_CHAIN_COUNT * CHAIN_EVENT_COUNT
                    + chain % OPEN_CHAIN_COUNT;
                let own = (0..CHAIN_EVENT_COUNT).map(|turn| first + turn * OPEN_CHAIN_COUNT + 1);
                own.filter(|number| *number <= count).collect()
            }
        };
        for number in numbers {
            sink.take(self.event(number).body.as_bytes());
        }
    }

    /// Lookups of each kind, the same for every engine.
    pub(crate) fn asks(&self, count: u64, each: usize, round: u64) -> [(&'static str, Vec<Ask>); 4] {
        let mut numbers = Numbers(round + 1);
        let mut any = || 1 + numbers.next() % count;
        let mut make = |ask: &dyn Fn(Event<'_>) -> Ask, each: usize| -> Vec<Ask> {
            (0..each).map(|_| ask(self.event(any()))).collect()
        };
        [
            ("get", make(&|event| Ask::Get(event.number), each)),
            ("digest", make(&|event| Ask::Digest(event.hash), each)),
            ("last 200", make(&|event| Ask::Last(event.session), each.div_ceil(8))),
            ("chain", make(&|event| Ask::Chain(event.chain), each.div_ceil(2))),
        ]
    }
}

fn hash_of(params: u64) -> [u8; 32] {
    *blake3::hash(&params.to_le_bytes()).as_bytes()
}

/// Takes the bytes that an engine reads: every byte is touched, or hashed for a comparison.
pub(crate) struct Sink {
    hasher: Option<blake3::Hasher>,
    /// Sum of the digests of all bodies, in any order.
    total: u64,
    sum: u64,
    pub(crate) count: u64,
}

impl Sink {
    /// A sink that only touches.
    pub(crate) const fn touching() -> Self {
        Self { hasher: None, total: 0, sum: 0, count: 0 }
    }

    /// A sink that hashes.
    pub(crate) fn hashing() -> Self {
        Self { hasher: Some(blake3::Hasher::new()), total: 0, sum: 0, count: 0 }
    }

    #[inline(never)]
    pub(crate) fn take(&mut self, body: &[u8]) {
        self.count += 1;
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&(body.len() as u64).to_le_bytes());
            hasher.update(body);
            let digest = blake3::hash(body);
            let word = digest.as_bytes().first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
            self.total = self.total.wrapping_add(word);
            return;
        }
        let (words, rest) = body.as_chunks::<8>();
        let sum = words.iter().fold(0_u64, |sum, word| sum.wrapping_add(u64::from_le_bytes(*word)));
        let rest = rest.iter().fold(0_u64, |sum, byte| sum.wrapping_add(u64::from(*byte)));
        self.sum = std::hint::black_box(self.sum.wrapping_add(sum).wrapping_add(rest));
    }

    /// Count and digest of the bodies, in any order.
    pub(crate) const fn unordered(&self) -> (u64, u64) {
        (self.count, self.total)
    }

    /// Count and digest of the bodies in their order.
    pub(crate) fn digest(&self) -> (u64, String) {
        let digest = self.hasher.as_ref().map(|hasher| hasher.finalize().to_hex().to_string());
        (self.count, digest.unwrap_or_default())
    }
}
