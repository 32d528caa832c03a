//! Digests of short bodies: one after another, on two threads, and eight in one call of the hash.
//!
//! The last way is a design that acpdb does not use. Its calls are internal to blake3, and may change with any release of it.

use blake3::IncrementCounter;
use blake3::platform::Platform;

use crate::Outcome;
use crate::measure::{median, wall};
use crate::report::{Report, Target};

const BODY_COUNT: usize = 10_000;
/// A chunk, seven blocks, and the rest of one.
const BODY_BYTES: usize = 1_500;
const CHUNK_BYTES: usize = 1_024;
const BLOCKS_BYTES: usize = 448;
const BLOCK_BYTES: usize = 64;

type Words = [u32; 8];
type Digest = [u8; 32];

/// The initial state of BLAKE3: the square roots of the first eight primes, as in SHA-256.
const BEGIN: Words =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];
const CHUNK_START: u8 = 1;
const CHUNK_END: u8 = 2;
const PARENT: u8 = 4;
const ROOT: u8 = 8;

pub(crate) fn run(report: &mut Report) -> Outcome<()> {
    let body = |number: usize| -> Vec<u8> {
        (0..BODY_BYTES).map(|at| u8::try_from((at * 7 + number) % 251).unwrap_or(0)).collect()
    };
    let bodies: Vec<Vec<u8>> = (0..BODY_COUNT).map(body).collect();
    let platform = Platform::detect();
    if bodies.chunks(64).flat_map(|some| together(platform, some)).collect::<Vec<_>>() != each(&bodies) {
        return Err("digests that were made together differ".into());
    }
    let (first, second) = bodies.split_at(BODY_COUNT / 2);
    let two_threads = || {
        std::thread::scope(|scope| {
            let helper = scope.spawn(|| each(first).len());
            each(second).len() + helper.join().unwrap_or(0)
        })
    };
    let mut row = |name: &str, work: &mut dyn FnMut() -> usize| -> Outcome<()> {
        let time = median(21, || {
            let (count, time) = wall(&mut *work);
            if count == BODY_COUNT { Ok(time * 1e3) } else { Err("some have no digest".into()) }
        })?;
        report.row(format!("digests of {BODY_COUNT} bodies of 1.5 KB, {name}"), time, "ms", Target::None);
        Ok(())
    };
    row("one by one", &mut || each(&bodies).len())?;
    row("on two threads", &mut { two_threads })?;
    row("eight in one call", &mut || bodies.chunks(64).map(|some| together(platform, some).len()).sum())
}

fn each(bodies: &[Vec<u8>]) -> Vec<Digest> {
    bodies.iter().map(|body| *blake3::hash(body).as_bytes()).collect()
}

/// The digests of bodies that all have [`BODY_BYTES`] bytes.
fn together(platform: Platform, bodies: &[Vec<u8>]) -> Vec<Digest> {
    let first = inputs::<CHUNK_BYTES>(bodies, 0);
    let first = hashed(platform, &first, 0, [0, CHUNK_START, CHUNK_END]);
    let blocks = inputs::<BLOCKS_BYTES>(bodies, CHUNK_BYTES);
    let blocks = hashed(platform, &blocks, 1, [0, CHUNK_START, 0]);
    let parents: Vec<[u8; BLOCK_BYTES]> = (bodies.iter().zip(&first).zip(&blocks))
        .map(|((body, first), blocks)| {
            let rest = body.get(CHUNK_BYTES + BLOCKS_BYTES..).unwrap_or_default();
            let mut block = [0; BLOCK_BYTES];
            block.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            let mut words = Words::default();
            words.iter_mut().zip(blocks.as_chunks().0).for_each(|(to, from)| *to = u32::from_le_bytes(*from));
            platform.compress_in_place(
                &mut words,
                &block,
                u8::try_from(rest.len()).unwrap_or(0),
                1,
                CHUNK_END,
            );
            let second = words.iter().flat_map(|word| word.to_le_bytes());
            let mut parent = [0; BLOCK_BYTES];
            parent.iter_mut().zip(first.iter().copied().chain(second)).for_each(|(to, from)| *to = from);
            parent
        })
        .collect();
    hashed(platform, &parents.iter().collect::<Vec<_>>(), 0, [PARENT | ROOT, 0, 0])
}

fn inputs<const N: usize>(bodies: &[Vec<u8>], from: usize) -> Vec<&[u8; N]> {
    bodies.iter().filter_map(|body| body.get(from..)?.first_chunk()).collect()
}

/// Hashes inputs of one length, as many at a time as the processor has room for.
fn hashed<const N: usize>(
    platform: Platform,
    inputs: &[&[u8; N]],
    counter: u64,
    [flags, start, end]: [u8; 3],
) -> Vec<Digest> {
    let mut out = vec![Digest::default(); inputs.len()];
    let digests = out.as_flattened_mut();
    platform.hash_many(inputs, &BEGIN, counter, IncrementCounter::No, flags, start, end, digests);
    out
}
