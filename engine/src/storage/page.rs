//! One page of a file, shared as memory by all processes that map it, with a way to wait for a change.
//!
//! ```text
//! process 1   mmap(MAP_SHARED) --+                            +-- mmap(MAP_SHARED)   process 2
//!                                '--> 512 words of 64 bits <--'
//!                                     wait, wake: futex on the low half of a word
//! ```
//!
//! This is, with `memory`, the only place of the engine that is not safe Rust, and the reason is speed: a commit tells the others where
//! the log ends with a store to memory instead of a system call, and those who wait for a sync sleep until it is done
//! instead of asking again and again. Where there is no futex (other systems than Linux), or words are big-endian, nothing
//! is mapped, and the log goes by locks, reads and writes alone.
//!
//! Not here: what the words mean, which is the log's business, and syncing the file, which nobody needs to do.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are shared.
pub(super) const PAGE_BYTES: usize = 4096;
const WORD_COUNT: usize = PAGE_BYTES / size_of::<AtomicU64>();
/// The half of a word that waiters look at.
const LOW_HALF: u64 = 0xffff_ffff;

/// The words of a page. Each call is one step for all who share it; words past the end read as 0.
///
/// All is sequentially consistent: a commit makes a handful of these calls, each far below a system call.
#[derive(Clone, Copy)]
pub(super) struct Words<'a>(&'a [AtomicU64; WORD_COUNT]);

impl Words<'_> {
    pub(super) fn load(self, word: usize) -> u64 {
        self.0.get(word).map_or(0, |word| word.load(Ordering::SeqCst))
    }

    pub(super) fn store(self, word: usize, value: u64) {
        if let Some(word) = self.0.get(word) {
            word.store(value, Ordering::SeqCst);
        }
    }

    pub(super) fn fetch_max(self, word: usize, value: u64) -> u64 {
        self.0.get(word).map_or(0, |word| word.fetch_max(value, Ordering::SeqCst))
    }

    pub(super) fn compare_exchange(self, word: usize, current: u64, new: u64) -> Result<(), u64> {
        let Some(word) = self.0.get(word) else { return Err(0) };
        word.compare_exchange(current, new, Ordering::SeqCst, Ordering::SeqCst).map(drop)
    }

    /// Adds 1 to the low half, wrapping within it.
    pub(super) fn bump(self, word: usize) {
        let Some(word) = self.0.get(word) else { return };
        let bumped = |value: u64| (value & !LOW_HALF) | (value.wrapping_add(1) & LOW_HALF);
        let _ = word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |value| Some(bumped(value)));
    }
}

#[cfg(all(target_os = "linux", target_endian = "little", target_has_atomic = "64"))]
mod mapped {
    use std::fs::File;
    use std::io;
    use std::ptr::NonNull;
    use std::sync::atomic::{AtomicU32, AtomicU64};
    use std::time::Duration;

    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    use rustix::thread::futex;
    use rustix::time::Timespec;

    use super::super::SharedPage;
    use super::{PAGE_BYTES, WORD_COUNT, Words};

    /// The first page of a file, mapped.
    pub(crate) struct MappedPage {
        words: NonNull<[AtomicU64; WORD_COUNT]>,
    }

    // SAFETY: it is a pointer to memory that lives as long as this value and belongs to no thread; all access to it is
    // atomic, through `&[AtomicU64]`, which is `Send` and `Sync` itself.
    #[expect(unsafe_code, reason = "shared memory of processes has no safe form")]
    unsafe impl Send for MappedPage {}
    // SAFETY: as above.
    #[expect(unsafe_code, reason = "shared memory of processes has no safe form")]
    unsafe impl Sync for MappedPage {}

    impl MappedPage {
        /// Maps the page. The file must be open for reading and writing, and all its first 4 KiB must have been
        /// written once: touching a page behind the end of a file, or a hole that a full disk cannot fill, is a signal.
        pub(crate) fn new(file: &File) -> io::Result<Self> {
            if file.metadata()?.len() < PAGE_BYTES as u64 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the page is not whole"));
            }
            // SAFETY: a new mapping at an address of the kernel's choice, which nothing else uses. `PAGE_BYTES` is a
            // multiple of no larger page than the kernel's own: where pages are larger, the kernel rounds up, and
            // only these bytes are touched. What other processes do to the memory is atomic access to aligned words,
            // or bytes of the page cache copied by the kernel, which no more than changes the values read.
            #[expect(unsafe_code, reason = "shared memory of processes has no safe form")]
            let address = unsafe {
                mmap(
                    std::ptr::null_mut(),
                    PAGE_BYTES,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::SHARED,
                    file,
                    0,
                )
            }?;
            let words = NonNull::new(address.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
            Ok(Self { words })
        }

        fn words(&self) -> Words<'_> {
            // SAFETY: mapped for as long as `self` lives, aligned to a page, valid for any bits, and never accessed
            // by this process other than through these atomics.
            #[expect(unsafe_code, reason = "shared memory of processes has no safe form")]
            let words = unsafe { self.words.as_ref() };
            Words(words)
        }

        /// The low half of a word, for the kernel to look at. It is never loaded or stored through this.
        fn low_half(&self, word: usize) -> Option<&AtomicU32> {
            if word >= WORD_COUNT {
                return None;
            }
            // SAFETY: within the mapping, aligned to 8; on a little-endian machine the low half comes first. Only the
            // kernel reads through this reference, so words are never accessed in two sizes by this program.
            #[expect(unsafe_code, reason = "shared memory of processes has no safe form")]
            let half = unsafe { self.words.cast::<AtomicU64>().add(word).cast::<AtomicU32>().as_ref() };
            Some(half)
        }
    }

    impl Drop for MappedPage {
        fn drop(&mut self) {
            // SAFETY: this mapping, whole, which nobody borrows any more.
            #[expect(unsafe_code, reason = "shared memory of processes has no safe form")]
            let _ = unsafe { munmap(self.words.as_ptr().cast(), PAGE_BYTES) };
        }
    }

    impl SharedPage for MappedPage {
        fn load(&self, word: usize) -> u64 {
            self.words().load(word)
        }

        fn store(&self, word: usize, value: u64) {
            self.words().store(word, value);
        }

        fn fetch_max(&self, word: usize, value: u64) -> u64 {
            self.words().fetch_max(word, value)
        }

        fn compare_exchange(&self, word: usize, current: u64, new: u64) -> Result<(), u64> {
            self.words().compare_exchange(word, current, new)
        }

        fn bump_and_wake(&self, word: usize) {
            self.words().bump(word);
            if let Some(half) = self.low_half(word) {
                // Nobody waiting is no error; nor is one of any consequence, since all waits are bounded.
                let _ = futex::wake(half, futex::Flags::empty(), i32::MAX.unsigned_abs());
            }
        }

        fn wait(&self, word: usize, seen: u32, limit: Duration) {
            let seconds = i64::try_from(limit.as_secs()).unwrap_or(i64::MAX);
            let limit = Timespec { tv_sec: seconds, tv_nsec: limit.subsec_nanos().into() };
            if let Some(half) = self.low_half(word) {
                // Woken, too late, timed out, interrupted: the caller looks for itself.
                let _ = futex::wait(half, futex::Flags::empty(), seen, Some(&limit));
            }
        }
    }
}

#[cfg(all(target_os = "linux", target_endian = "little", target_has_atomic = "64"))]
pub(super) use mapped::MappedPage;

#[cfg(test)]
mod tests {
    use super::*;

    /// What needs no file, so that it runs under Miri, too.
    #[test]
    fn threads_that_share_words_lose_no_change() {
        let memory: [AtomicU64; WORD_COUNT] = std::array::from_fn(|_| AtomicU64::new(0));
        let words = Words(&memory);
        words.store(1, 7 << 32);
        std::thread::scope(|scope| {
            for thread in 0..3_u64 {
                scope.spawn(move || {
                    for round in 0..50 {
                        words.fetch_max(0, round * 3 + thread);
                        words.bump(1);
                        let mut known = words.load(2);
                        while let Err(newer) = words.compare_exchange(2, known, known + 1) {
                            known = newer;
                        }
                    }
                });
            }
        });
        assert_eq!((words.load(0), words.load(1), words.load(2)), (149, (7 << 32) + 150, 150));
        words.store(1, 7 << 32 | LOW_HALF);
        words.bump(1);
        assert_eq!(words.load(1), 7 << 32, "the count wraps within its half");
        words.store(WORD_COUNT, 1);
        words.bump(WORD_COUNT);
        assert_eq!((words.load(WORD_COUNT), words.fetch_max(WORD_COUNT, 1)), (0, 0));
        assert_eq!(words.compare_exchange(WORD_COUNT, 0, 1), Err(0));
    }

    #[cfg(not(miri))]
    #[cfg(all(target_os = "linux", target_endian = "little", target_has_atomic = "64"))]
    #[test]
    fn two_maps_of_a_file_are_one_memory_and_wake_each_other() {
        use super::super::{Access, FileStorage, Storage, write_all};
        use std::time::Duration;

        let folder = tempfile::tempdir().unwrap();
        let storage = FileStorage::new(folder.path());
        let file = storage.open("page", Access::Create).unwrap();
        assert!(storage.map_page("page").is_err(), "an empty file has no page to share");
        write_all(&*file, &[0; PAGE_BYTES], 0, &mut 0).unwrap();
        let map = || storage.map_page("page").unwrap().unwrap();
        let low = |word: u64| u32::try_from(word & LOW_HALF).unwrap();
        let (one, two) = (map(), map());
        one.store(3, 0x0102_0304_0506_0708);
        assert_eq!(two.load(3), 0x0102_0304_0506_0708);
        let mut bytes = [0; 8];
        file.read_at(&mut bytes, 24).unwrap();
        assert_eq!(bytes, [8, 7, 6, 5, 4, 3, 2, 1], "little-endian, and the file reads the same");
        write_all(&*file, &[9], 24, &mut 0).unwrap();
        assert_eq!(two.load(3), 0x0102_0304_0506_0709);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Waits as often as it takes: a wait may end for no reason.
                while two.load(0) == 0 {
                    let seen = low(two.load(20));
                    if two.load(0) == 0 {
                        two.wait(20, seen, Duration::from_secs(60));
                    }
                }
            });
            one.store(0, 1);
            one.bump_and_wake(20);
        });
        let start = std::time::Instant::now();
        two.wait(20, low(two.load(20)), Duration::from_millis(2));
        two.wait(20, 77, Duration::from_secs(60));
        assert!(start.elapsed() < Duration::from_secs(30), "another value ends the wait at once");
        assert!(FileStorage::new(folder.path()).without_shared_page().map_page("page").unwrap().is_none());
    }
}
