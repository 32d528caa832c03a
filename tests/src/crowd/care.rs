//! Acts of a thread that record nothing of their own: seals, indexes, snapshots, checks, copies, other handles.

use std::path::{Path, PathBuf};

use acpdb_engine::locks::steady;
use acpdb_engine::store::{VerifyOptions, verify_store};
use acpdb_engine::verify::Verdict;
use acpdb_engine::{Error, Store};

use super::diary::Note;
use super::judge::faults;
use super::thread::Hand;
use super::weather::patiently;
use super::{session, told};
use crate::support::{events, texts_of};

impl Hand<'_> {
    pub(super) fn seals(&mut self) -> Result<(), String> {
        let active = self.dice.one_in(2);
        let Some(report) = self.does("seal", |store| store.seal(active))? else { return Ok(()) };
        if report.damage.is_empty() { Ok(()) } else { Err(format!("seal: {report:?}")) }
    }

    pub(super) fn indexes(&mut self) -> Result<(), String> {
        let store = self.store();
        self.member.begins(self.thread, "reindex");
        match store.reindex() {
            // Another handle has it, or this one uses none.
            Ok(_) | Err(Error::Busy { .. } | Error::ReadOnly { .. } | Error::NotFound { .. }) => Ok(()),
            Err(error) if self.is_stale(&error) => Ok(()),
            Err(error) => Err(format!("reindex: {} ({error:?})", told(&error))),
        }
    }

    pub(super) fn saves(&mut self) -> Result<(), String> {
        let name = self.session();
        if self.dice.one_in(4) {
            self.does("forget", |store| store.forget_snapshots(Some(session(&name).id())))?;
        } else {
            self.does("save", |store| store.save_snapshot(session(&name).id()))?;
        }
        let text = self.tag();
        self.does("put aside", |store| {
            // Other threads put theirs aside under the same name.
            let _ = store.put_aside("crowd", text.as_bytes());
            let _ = store.aside("crowd");
            Ok(())
        })?;
        Ok(())
    }

    pub(super) fn verifies(&mut self) -> Result<(), String> {
        let store = self.store();
        self.member.begins(self.thread, "verify");
        let options = VerifyOptions { deep: self.dice.one_in(2), ..VerifyOptions::default() };
        let report = match verify_store(store.root(), &options) {
            Ok(report) => report,
            Err(error) if self.is_stale(&error) => return Ok(()),
            Err(error) => return Err(format!("verify: {}", told(&error))),
        };
        // A file that could not be read under this sky is not proven, and not wrong.
        if report.verdict() == Verdict::Unreadable && self.was_bad() {
            return Ok(());
        }
        if report.verdict() != Verdict::Sound {
            return Err(format!("verify beside writers: {}", faults(&report)));
        }
        // An event that is not confirmed is given up if its sync fails.
        if report.unconfirmed_events > 0 {
            return Ok(());
        }
        self.diary.note(&Note::Knows(report.head_seq.get(), *report.head_link.as_bytes()))
    }

    fn folder_for(&mut self, what: &str) -> PathBuf {
        self.copies += 1;
        self.member.folder.join(format!("{what}-{}-{}-{}", self.member.number, self.thread, self.copies))
    }

    /// A copy of the store, checked; it is part of the later store.
    pub(super) fn copies(&mut self) -> Result<(), String> {
        let folder = self.folder_for("copy");
        let Some(copy) = self.does("backup", |store| store.backup(&folder, &mut |_| ()))? else {
            return Ok(());
        };
        if copy.report.verdict() != Verdict::Sound {
            return Err(format!("backup beside writers: {}", faults(&copy.report)));
        }
        if copy.report.head_seq != copy.head {
            return Err(format!("backup of {} has {}", copy.head, copy.report.head_seq));
        }
        self.diary.note(&Note::Knows(copy.head.get(), *copy.report.head_link.as_bytes()))?;
        if self.dice.one_in(2) {
            let read = match reads_copy(&folder) {
                Ok(read) => read,
                Err(error) if self.is_stale(&error) => return Ok(()),
                Err(error) => return Err(format!("copy: {} ({error:?})", told(&error))),
            };
            if read != copy.head.get() {
                return Err(format!("backup of {} has {read} events", copy.head));
            }
        }
        patiently(|| std::fs::remove_dir_all(&folder)).map_err(|error| error.to_string())
    }

    /// Opens a handle anew, in place of one that other threads may still use.
    pub(super) fn reopens(&mut self, place: usize) -> Result<(), String> {
        let handle = self.member.handle(place);
        self.member.begins(self.thread, "reopen");
        if self.dice.one_in(2) {
            let store = steady(handle).clone();
            match store.close() {
                Err(error) if !self.is_stale(&error) => return Err(format!("close: {}", told(&error))),
                _ => self.stale = false,
            }
        }
        let opened = self.member.setting.open(&self.member.folder, &mut self.dice, false);
        let store = opened.map_err(|error| format!("reopen: {error}"))?;
        if let Some(damage) = &store.recovery().damage {
            return Err(format!("reopen: {damage}"));
        }
        let before = std::mem::replace(&mut *steady(handle), store);
        drop(before);
        Ok(())
    }
}

/// Reads all of a copy, and tells how many events it has.
fn reads_copy(folder: &Path) -> Result<u64, Error> {
    let store = Store::builder(folder).any_file_system().open()?;
    let all = events(&store)?;
    for body in all.iter().flat_map(texts_of) {
        match store.body(body) {
            Ok(_) | Err(Error::Erased { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all.len() as u64)
}
