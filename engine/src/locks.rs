//! Taking locks, and the use of a value after a thread panicked while it had the value locked.
//!
//! The standard library marks such a lock as poisoned. The meaning of that depends on the value, so each lock is taken by the function
//! that says it; `tests/tests/tidy.rs` finds a lock that is taken in another way.
//!
//! | the value | after a panic | taken by |
//! |---|---|---|
//! | each change is one step (an assignment, an insertion): it is whole between any two | goes on | [`steady`] |
//! | a cache: it can be made anew | is emptied first | [`renewed`] |
//! | a state that may be half changed, and more depends on it | is refused, with an error | its owner: the log's writer, a fold, the index |

use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Locks a value that is whole between any two steps.
pub fn steady<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks a value that can be made anew: `renew` does so after a panic.
pub fn renewed<T>(mutex: &Mutex<T>, renew: impl FnOnce(&mut T)) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| {
        let mut guard = poisoned.into_inner();
        renew(&mut guard);
        mutex.clear_poison();
        guard
    })
}

/// As [`steady`], to read.
pub fn steady_read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

/// As [`steady`], to write.
pub fn steady_write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

/// As [`steady`], of a lock that no other thread knows.
pub fn steady_mut<T>(lock: &mut RwLock<T>) -> &mut T {
    lock.get_mut().unwrap_or_else(PoisonError::into_inner)
}

/// As [`steady`], of a lock that is not needed any more.
pub fn steady_into<T>(mutex: Mutex<T>) -> T {
    mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// As [`renewed`], to read.
pub fn renewed_read<T>(lock: &RwLock<T>, renew: impl FnOnce(&mut T)) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(|poisoned| {
        drop(poisoned);
        drop(renewed_write(lock, renew));
        steady_read(lock)
    })
}

/// As [`renewed`], to write.
pub fn renewed_write<T>(lock: &RwLock<T>, renew: impl FnOnce(&mut T)) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(|poisoned| {
        let mut guard = poisoned.into_inner();
        renew(&mut guard);
        lock.clear_poison();
        guard
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_emptied_once_after_a_panic() {
        let cache = Mutex::new(vec![1]);
        std::thread::scope(|scope| {
            let spoiled = scope.spawn(|| {
                let mut held = cache.lock().unwrap();
                held.push(2);
                panic!("in the middle of a change");
            });
            assert!(spoiled.join().is_err());
        });
        renewed(&cache, Vec::clear).push(3);
        assert_eq!(*renewed(&cache, Vec::clear), [3]);
        assert!(!cache.is_poisoned());
    }

    #[test]
    fn readers_and_writers_empty_it_alike() {
        let cache = RwLock::new(vec![1]);
        let spoil = || {
            std::thread::scope(|scope| {
                let spoiled = scope.spawn(|| {
                    cache.write().unwrap().push(2);
                    let _held = cache.write().unwrap();
                    panic!("in the middle of a change");
                });
                assert!(spoiled.join().is_err());
            });
        };
        spoil();
        assert_eq!(*renewed_read(&cache, Vec::clear), [0; 0]);
        renewed_write(&cache, Vec::clear).push(3);
        spoil();
        assert_eq!(*steady_read(&cache), [3, 2]);
        renewed_write(&cache, Vec::clear).push(4);
        assert_eq!(*renewed_read(&cache, Vec::clear), [4]);
    }
}
