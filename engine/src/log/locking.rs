//! Locks that a panic of another thread does not end.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// A thread that panicked while holding a lock left consistent data: all changes here are single assignments.
pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
