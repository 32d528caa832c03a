//! Random bytes in quantity, from one seed of the operating system.

use std::sync::atomic::{AtomicU64, Ordering};

/// A keyed stream of random bytes; each call gives new ones. Cheap, and the same for the same seed.
#[derive(Debug)]
pub(super) struct Salts {
    seed: [u8; 32],
    count: AtomicU64,
}

impl Salts {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self { seed, count: AtomicU64::new(0) }
    }

    /// The next `N` bytes.
    pub(super) fn array<const N: usize>(&self) -> [u8; N] {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        let mut bytes = [0; N];
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(&count.to_le_bytes());
        hasher.finalize_xof().fill(&mut bytes);
        bytes
    }

    /// The next salt of a body; never all zeros, which stands for an erased one.
    pub(super) fn salt(&self) -> [u8; 16] {
        loop {
            let salt = self.array::<16>();
            if salt != [0; 16] {
                return salt;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_gives_other_bytes_and_a_seed_repeats_them() {
        let (one, two) = (Salts::new([1; 32]), Salts::new([1; 32]));
        let first = one.salt();
        assert_ne!(first, one.salt());
        assert_eq!(first, two.salt());
    }
}
