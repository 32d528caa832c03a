//! The auditor knows the acknowledged commits, and compares them with the store. Shares no code with the engine.

use std::sync::{Arc, Mutex, PoisonError};

use acpdb_engine::event::{Payload, Recorded};
use acpdb_engine::{Error, Store};

use super::script::without;
use crate::support::{events, texts_of};

/// The lines of one commit.
pub type Lines = Arc<[String]>;

/// The auditor's knowledge at one moment. Cheap to copy.
#[derive(Debug, Clone, Default)]
pub struct Audit {
    /// Acknowledged commits: the seq of the first event, and the recorded lines.
    acked: Vec<(u64, Lines)>,
    /// Commits that were tried and have not been acknowledged (yet, or for good). Each may be there, whole, once.
    tried: Vec<Lines>,
    /// The highest seq that a process was shown.
    shown: u64,
}

/// The auditor, shared by the processes of a life.
#[derive(Debug, Clone, Default)]
pub struct Auditor(Arc<Mutex<Audit>>);

impl Auditor {
    /// The auditor's knowledge now.
    #[must_use]
    pub fn now(&self) -> Audit {
        self.lock().clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Audit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A commit is about to be tried.
    pub fn tries(&self, lines: &Lines) {
        self.lock().tried.push(lines.clone());
    }

    /// It was acknowledged.
    pub fn acknowledged(&self, first_seq: u64, lines: &Lines) {
        let mut audit = self.lock();
        audit.withdraw(lines);
        audit.acked.push((first_seq, lines.clone()));
    }

    /// It was refused in a way that promises that nothing was recorded.
    pub fn refused(&self, lines: &Lines) {
        self.lock().withdraw(lines);
    }

    /// A process was shown everything up to this seq.
    pub fn shown(&self, seq: u64) {
        let mut audit = self.lock();
        audit.shown = audit.shown.max(seq);
    }
}

impl Audit {
    fn withdraw(&mut self, lines: &Lines) {
        if let Some(place) = self.tried.iter().position(|tried| Arc::ptr_eq(tried, lines)) {
            self.tried.swap_remove(place);
        }
    }

    /// Whether anything was acknowledged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.acked.is_empty()
    }

    /// The last acknowledged seq.
    #[must_use]
    pub fn last_acked(&self) -> u64 {
        self.acked.iter().map(|(first, lines)| first + lines.len() as u64 - 1).max().unwrap_or(0)
    }

    /// Calls whose erasure is among these lines: their texts must be gone.
    #[must_use]
    pub fn erased(found: &[String]) -> Vec<&str> {
        found.iter().filter_map(|line| line.strip_prefix("erased ")).collect()
    }

    /// Compares with the lines of all events in order: every acknowledged commit in its place, whole, and between and
    /// after them nothing but whole commits that were tried, each at most once.
    ///
    /// # Errors
    /// The contradiction.
    pub fn judge(&self, found: &[String]) -> Result<(), String> {
        self.compare(found, false)
    }

    /// As [`Audit::judge`], but the end may be lost, as after a disk that lied.
    ///
    /// # Errors
    /// The contradiction.
    pub fn judge_prefix(&self, found: &[String]) -> Result<(), String> {
        self.compare(found, true)
    }

    fn compare(&self, found: &[String], may_end_early: bool) -> Result<(), String> {
        let erased = Self::erased(found);
        let mut acked: Vec<_> =
            self.acked.iter().map(|(first, lines)| (*first, after_erasing(lines, &erased))).collect();
        acked.sort_by_key(|(first, _)| *first);
        let mut tried: Vec<_> = self.tried.iter().map(|lines| after_erasing(lines, &erased)).collect();
        let mut acked = acked.into_iter().peekable();
        let mut at = 0;
        while at < found.len() {
            let rest = found.get(at..).unwrap_or(&[]);
            let seq = at as u64 + 1;
            if let Some((_, lines)) = acked.next_if(|(first, _)| *first == seq) {
                if !rest.starts_with(&lines) {
                    return Err(format!("seq {seq}: acknowledged {lines:.80?}, found {:.80?}", rest.first()));
                }
                at += lines.len();
                continue;
            }
            let is_here = |tried: &Lines| !tried.is_empty() && rest.starts_with(tried);
            let Some(place) = tried.iter().position(is_here) else {
                return Err(format!(
                    "seq {seq}: no process recorded {:.80?} (or not by itself, or twice)",
                    rest.first()
                ));
            };
            at += tried.swap_remove(place).len();
        }
        if may_end_early {
            return Ok(());
        }
        if let Some((first, lines)) = acked.next() {
            return Err(format!(
                "seq {first} is lost though acknowledged; the log ends at {}: {lines:.80?}",
                found.len()
            ));
        }
        if self.shown > found.len() as u64 {
            return Err(format!(
                "seq {} was shown to a process, the log ends at {}",
                self.shown,
                found.len()
            ));
        }
        Ok(())
    }
}

/// The lines of a commit once these calls are erased.
fn after_erasing(lines: &Lines, erased: &[&str]) -> Lines {
    let gone = |line: &String| erased.iter().find_map(|call| without(line, call)).map(str::to_owned);
    if lines.iter().any(|line| gone(line).is_some()) {
        return lines.iter().map(|line| gone(line).unwrap_or_else(|| line.clone())).collect();
    }
    lines.clone()
}

/// An event as the auditor knows it: its kind and its texts, `[erased]` in place of an erased one; of an erasure, its
/// reason.
///
/// # Errors
/// If a body is damaged.
pub fn line(store: &Store, recorded: &Recorded) -> Result<String, Error> {
    let mut line = recorded.event.payload.label().to_owned();
    if let Payload::Erased(erased) = &recorded.event.payload {
        line.push(' ');
        line.push_str(&erased.reason);
    }
    for body in texts_of(recorded) {
        line.push(' ');
        match store.body(body) {
            Ok(bytes) => line.push_str(&String::from_utf8_lossy(&bytes)),
            Err(Error::Erased { .. }) => line.push_str("[erased]"),
            Err(error) => return Err(error),
        }
    }
    Ok(line)
}

/// The lines of a whole store.
///
/// # Errors
/// The first damage.
pub fn read(store: &Store) -> Result<Vec<String>, Error> {
    events(store)?.iter().map(|recorded| line(store, recorded)).collect()
}
