//! The synchronisation primitives of the commit queue and of the wait for durability. A model checker replaces this module by its
//! own primitives.

pub(super) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub(super) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
pub(super) use std::thread::yield_now;
