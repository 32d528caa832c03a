//! A process of a round: its handles, its threads, and a watch over them.

use std::io::{BufRead as _, Write as _};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Instant;

use acpdb_engine::entry::Entry;
use acpdb_engine::event::Role;
use acpdb_engine::ids::Seq;
use acpdb_engine::locks::steady;
use acpdb_engine::{Error, Store};

use super::board::Board;
use super::diary::Diary;
use super::thread::Hand;
use super::weather::SKY;
use super::{FAIR, HANG, SESSION_COUNT, Setting, Sky, follower, session, told};
use crate::soak::Dice;
use crate::support::{folded, texts_of};

/// The things that the threads of a process share.
pub struct Member {
    /// The round.
    pub setting: Setting,
    /// Its folder.
    pub folder: PathBuf,
    /// The process.
    pub number: usize,
    /// Its first handle, and the others.
    handles: (Mutex<Store>, Vec<Mutex<Store>>),
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
    pub fn handle(&self, place: usize) -> &Mutex<Store> {
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

    /// Whether a handle reads all again once the sky is fair, shows what a new handle shows, and records, unless it is poisoned.
    fn has_recovered(&self, place: usize) -> Result<(), String> {
        let store = steady(self.handle(place)).clone();
        let read = reads_as_new(&store).and_then(|wrong| match wrong {
            None => {
                let text = format!("the sky is fair over {place} of {}", self.number);
                let entry = Entry::message("", Role::User, &text);
                store.append(&session(FAIR), vec![entry]).map(|_| None)
            }
            wrong => Ok(wrong),
        });
        match read {
            Ok(wrong) => wrong.map_or(Ok(()), |wrong| Err(format!("after bad weather: {wrong}"))),
            Err(Error::Poisoned) => Ok(()),
            Err(error) => Err(format!("after bad weather: {} ({error:?})", told(&error))),
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
    if setting.sky != Sky::Fair {
        SKY.begins(setting.seed ^ number as u64);
    }
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
        let is_bad = setting.sky != Sky::Fair;
        let weather = is_bad.then(|| {
            let seed = dice.roll();
            scope.spawn(move || {
                SKY.blows(seed, setting.sky);
                Ok(())
            })
        });
        let hands: Vec<_> = (0..setting.threads)
            .map(|thread| {
                let seed = dice.roll();
                let member = &member;
                scope.spawn(move || Hand::new(member, thread, seed)?.play())
            })
            .collect();
        let mut outcomes: Vec<_> = hands.into_iter().map(joined).collect();
        SKY.ends();
        outcomes.extend(weather.map(joined));
        if is_bad {
            outcomes.extend((0..setting.handles).map(|place| member.has_recovered(place)));
        }
        member.is_over.store(true, Ordering::SeqCst);
        outcomes.push(joined(follower));
        // Without a close there is only the drop of the handle, behind this.
        let closed = (0..setting.handles).map(|place| {
            let store = steady(member.handle(place)).clone();
            if dice.one_in(2) {
                match store.close() {
                    Err(Error::Poisoned) if is_bad => Ok(()),
                    closed => closed.map_err(|error| format!("close: {}", told(&error))),
                }
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

fn reads_as_new(store: &Store) -> Result<Option<String>, Error> {
    let head = store.head()?;
    let all = store.events(Seq(1), head)?.collect::<Result<Vec<_>, Error>>()?;
    if all.len() as u64 != head.get() {
        return Ok(Some(format!("{} events up to {head}", all.len())));
    }
    for (event, seq) in all.iter().zip(1..) {
        if store.event(Seq(seq))?.map(|it| it.seq) != Some(Seq(seq)) {
            return Ok(Some(format!("event {seq} is not there")));
        }
        for body in texts_of(event) {
            match store.body(body) {
                Ok(_) | Err(Error::Erased { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }
    for name in (0..SESSION_COUNT).map(|number| format!("s{number}")) {
        let stream = session(&name).id();
        let listed = store.stream_events(stream, Seq(1), head)?;
        let listed = listed.map(|event| Ok(event?.seq)).collect::<Result<Vec<_>, Error>>()?;
        let own: Vec<_> =
            all.iter().filter(|event| event.event.stream == stream).map(|event| event.seq).collect();
        if listed != own {
            return Ok(Some(format!("{name}: {listed:?} listed of {own:?}")));
        }
        if own.is_empty() {
            continue;
        }
        let view = store.view(stream)?;
        let anew = folded(&store.events(Seq(1), view.at())?.collect::<Result<Vec<_>, Error>>()?);
        let anew = anew.stream(stream).map(|state| state.digest(view.at()));
        if anew != Some(view.state().digest(view.at())) {
            return Ok(Some(format!("{name}: its fold at {} is not that of its events", view.at())));
        }
    }
    Ok(None)
}
