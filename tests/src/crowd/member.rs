//! A process of a round: its handles, its threads, and a watch over them.

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use acpdb_engine::Store;
use acpdb_engine::locks::steady;

use super::board::Board;
use super::diary::Diary;
use super::thread::Hand;
use super::{HANG, Setting, follower, told};
use crate::soak::Dice;

/// A handle, and the number of the ring with which it was opened.
pub type Handle = (Store, u32);

/// The things that the threads of a process share.
pub struct Member {
    /// The round.
    pub setting: Setting,
    /// Its folder.
    pub folder: PathBuf,
    /// The process.
    pub number: usize,
    /// Its first handle, and the others.
    handles: (Mutex<Handle>, Vec<Mutex<Handle>>),
    /// The board that all processes read.
    pub board: Board,
    /// Acts that were begun.
    pub begun: AtomicUsize,
    /// All threads have done their acts.
    pub is_over: AtomicBool,
    /// The act that each thread is at, and since when.
    at: Vec<Mutex<(String, Instant)>>,
    ended: (Mutex<bool>, Condvar),
}

impl Member {
    /// One of its handles.
    pub fn handle(&self, place: usize) -> &Mutex<Handle> {
        let (first, others) = &self.handles;
        others.get(place.wrapping_sub(1)).unwrap_or(first)
    }

    /// A thread is at something from now on.
    pub fn is_at(&self, thread: usize, act: &str) {
        if let Some(at) = self.at.get(thread) {
            *steady(at) = (act.to_owned(), Instant::now());
        }
    }

    /// A thread begins an act. The killer is called when its moment has come.
    pub fn begins(&self, thread: usize, act: &str) {
        self.is_at(thread, act);
        let begun = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
        if self.setting.kill == Some((self.number, begun)) {
            say("kill");
        }
    }

    /// Ends the process if its threads do not end.
    fn watch(&self) {
        let (ended, changed) = &self.ended;
        let (ended, late) = changed
            .wait_timeout_while(steady(ended), HANG, |ended| !*ended)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let is_late = late.timed_out() && !*ended;
        drop(ended);
        if is_late {
            for (thread, at) in self.at.iter().enumerate() {
                let (act, since) = &*steady(at);
                eprintln!("hangs: thread {thread} is at {act:?} since {} ms", since.elapsed().as_millis());
            }
            std::process::exit(3);
        }
    }
}

fn say(word: &str) {
    let mut out = std::io::stdout().lock();
    // The reader is the process that kills; without one there is nothing to say.
    let _ = writeln!(out, "{word}").and_then(|()| out.flush());
}

/// Plays one process of a round.
///
/// # Errors
/// The fault, in words.
pub fn play(setting: Setting, folder: PathBuf, number: usize) -> Result<(), String> {
    let mut dice = Dice::new(setting.seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9));
    let mut open = || {
        let handle = setting.open(&folder, &mut dice, false);
        handle.map(Mutex::new).map_err(|error| format!("open: {error}"))
    };
    let handles = (open()?, (1..setting.handles).map(|_| open()).collect::<Result<_, _>>()?);
    let member = Member {
        at: (0..=setting.threads).map(|_| Mutex::new((String::new(), Instant::now()))).collect(),
        begun: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        ended: (Mutex::new(false), Condvar::new()),
        board: Board::new(&folder),
        setting,
        folder,
        number,
        handles,
    };
    say("ready");
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(|error| error.to_string())?;
    std::thread::scope(|scope| {
        scope.spawn(|| member.watch());
        let follower = scope.spawn(|| {
            let diary = Diary::new(&member.folder, member.number, setting.threads)?;
            follower::follow(&member, diary, setting.threads)
        });
        let hands: Vec<_> = (0..setting.threads)
            .map(|thread| {
                let seed = dice.roll();
                let member = &member;
                scope.spawn(move || Hand::new(member, thread, seed)?.play())
            })
            .collect();
        let mut outcomes: Vec<_> = hands.into_iter().map(joined).collect();
        member.is_over.store(true, Ordering::SeqCst);
        outcomes.push(joined(follower));
        // Without a close there is only the drop of the handle, behind this.
        let closed = (0..setting.handles).map(|place| {
            let (store, _) = steady(member.handle(place)).clone();
            if dice.one_in(2) {
                store.close().map_err(|error| format!("close: {}", told(&error)))
            } else {
                Ok(())
            }
        });
        outcomes.extend(closed);
        *steady(&member.ended.0) = true;
        member.ended.1.notify_all();
        outcomes.into_iter().collect::<Result<(), String>>()
    })
}

fn joined(thread: std::thread::ScopedJoinHandle<'_, Result<(), String>>) -> Result<(), String> {
    thread.join().unwrap_or_else(|_| Err("a thread panicked".to_owned()))
}
