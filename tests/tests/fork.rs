//! A handle that a child got by `fork`: refused by name, wherever it is used, and dropped without a trace.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests: a failed step is a failed test")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::verify::{Verdict, verify_folder};
use acpdb_engine::{Error, Store};

/// How long a child may take on a busy machine.
const CHILD_MAX: Duration = Duration::from_secs(20);

/// Runs `run` in a child made by `fork`; the line that it found fault with, if any. A child that does not end is a fault.
#[expect(unsafe_code, reason = "there is no other way to fork")]
fn in_a_child(run: impl FnOnce() -> Result<(), u8>) -> Result<(), String> {
    // SAFETY: the child has this one thread. It calls the store, allocates (which glibc allows after a fork), and leaves by
    // `_exit`, so that nothing of the test's own is run twice.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = match catch_unwind(AssertUnwindSafe(run)) {
            Ok(Ok(())) => 0,
            Ok(Err(line)) => i32::from(line),
            Err(_) => 101,
        };
        // SAFETY: ends this process, and that is all.
        unsafe { libc::_exit(code) };
    }
    assert!(child > 0, "no child was made");
    let start = Instant::now();
    let mut status = 0;
    loop {
        // SAFETY: the number is that of our child, which no other thread waits for; `status` is ours.
        let ended = unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) };
        if ended == child {
            break;
        }
        if start.elapsed() > CHILD_MAX {
            // SAFETY: it was not waited for yet, so that the number is still its own.
            unsafe { libc::kill(child, libc::SIGKILL) };
            return Err("the child hangs".to_owned());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    match libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)) {
        Some(0) => Ok(()),
        code => Err(format!("step {code:?} of the child was not as expected")),
    }
}

fn message(text: &str) -> Vec<Entry> {
    vec![Entry::message(text, Role::User, text)]
}

/// Locks belong to the open file, which parent and child share: a child that gave one back gave back its parent's, and one
/// that ended closed the parent's index by writing to it. A child is told to open the store itself, and does nothing else.
#[test]
fn a_child_is_refused_and_leaves_its_parents_store_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("store");
    let session = StreamInfo::session("opencode", "s1");
    let store = Store::builder(&root).any_file_system().open().unwrap();
    let _ = store.append(&session, message("before")).unwrap();
    // With its threads: the one that syncs behind tickets, and the one that keeps the index.
    let _ = store.submit(&session, message("ticket")).unwrap().wait().unwrap();
    let _ = store.reindex().unwrap();
    let _ = store.stream_names().unwrap();
    let parent = std::process::id();
    let view = store.view(session.id()).unwrap();
    let shared = store.clone();
    in_a_child(move || {
        let is_forked = |error: Error| matches!(error, Error::Forked { owner } if owner == parent);
        let refused = |line: u8, result: Option<Error>| {
            if result.is_some_and(is_forked) { Ok(()) } else { Err(line) }
        };
        refused(1, shared.append(&session, message("child")).err())?;
        refused(2, shared.submit(&session, message("child")).err())?;
        refused(3, shared.head().err())?;
        refused(4, shared.seal(true).err())?;
        refused(5, shared.forget_snapshots(None).err())?;
        refused(6, shared.save_snapshot(session.id()).err())?;
        let text = shared.append(&session, message("child")).err().map(|error| error.to_string());
        if !text.is_some_and(|text| text.contains("open the store again in this one")) {
            return Err(7);
        }
        drop(view);
        drop(shared);
        Ok(())
    })
    .unwrap();
    // A child that opens the store itself is as good as any process, while the parent has its own handle.
    let own = root.clone();
    in_a_child(move || {
        let store = Store::builder(&own).any_file_system().open().map_err(|_| 11)?;
        let _ = store.append(&StreamInfo::session("opencode", "s2"), message("own")).map_err(|_| 12)?;
        store.close().map_err(|_| 13)
    })
    .unwrap();
    let session = StreamInfo::session("opencode", "s1");
    let _ = store.append(&session, message("after")).unwrap();
    assert_eq!(store.stream_names().unwrap().len(), 2);
    // The last handle of a child is dropped, too: nothing is waited for, and nothing of the parent's is ended.
    let last = Store::builder(&root).any_file_system().open().unwrap();
    let _ = last.append(&session, message("last")).unwrap();
    let _ = last.submit(&session, message("last ticket")).unwrap().wait().unwrap();
    drop(store);
    in_a_child(move || {
        drop(last);
        Ok(())
    })
    .unwrap();
    assert_eq!(verify_folder(&root, true).unwrap().verdict(), Verdict::Sound);
}
