//! A thread of a round: acts by a seed, on the handles that it shares with others.

use std::collections::BTreeSet;
use std::sync::Mutex;

use acpdb_engine::entry::{Entry, Fact, MemoryEntry, PointRef, fact};
use acpdb_engine::event::{Lifespan, Role};
use acpdb_engine::fold::Policy;
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::locks::steady;
use acpdb_engine::store::{MergeOptions, ServeOptions, VerifyOptions, verify_store};
use acpdb_engine::verify::Verdict;
use acpdb_engine::{Atomicity, Batch, ContextAction, Error, PlainText, Receipt, Store, Target, View};

use super::diary::{Diary, Line, Note, TOLD};
use super::judge::faults;
use super::member::Member;
use super::{OTHER_COUNT, SESSION_COUNT, USER, session, told};
use crate::soak::Dice;
use crate::support::events;

/// How many facts threads tell at the same time, in two ways each.
const SHARED_COUNT: usize = 5;

/// A message of this thread, that it may erase.
struct Own {
    item: ItemId,
    text: String,
}

/// A view, and what it showed when it was made.
struct Held {
    view: View,
    digest: [u8; 32],
}

/// A thread with its diary.
pub struct Hand<'a> {
    member: &'a Member,
    thread: usize,
    dice: Dice,
    diary: Diary,
    number: u32,
    own: Vec<Own>,
    held: Option<Held>,
    /// Sessions of its own, which it may shred.
    victims: Vec<String>,
    copies: usize,
}

/// An act's outcome: the first and the last seq, if anything was recorded.
type Done = Result<Option<(u64, u64)>, Error>;

impl<'a> Hand<'a> {
    /// A thread of a process.
    ///
    /// # Errors
    /// If it can have no diary.
    pub fn new(member: &'a Member, thread: usize, seed: u64) -> Result<Self, String> {
        let diary = Diary::new(&member.folder, member.number, thread)?;
        let (own, victims) = (Vec::new(), Vec::new());
        Ok(Self {
            member,
            thread,
            dice: Dice::new(seed),
            diary,
            number: 0,
            own,
            held: None,
            victims,
            copies: 0,
        })
    }

    /// Does all its acts.
    ///
    /// # Errors
    /// The first fault, in words.
    pub fn play(mut self) -> Result<(), String> {
        for _ in 0..self.member.setting.acts {
            self.act().map_err(|wrong| format!("thread {}, act {}: {wrong}", self.thread, self.number))?;
        }
        Ok(())
    }

    fn handle(&mut self) -> &'a Mutex<Store> {
        let place = self.dice.below(self.member.setting.handles);
        self.member.handle(place)
    }

    /// A handle, of those that the process shares.
    fn store(&mut self) -> Store {
        steady(self.handle()).clone()
    }

    /// The name of this act, part of all its texts.
    fn tag(&self) -> String {
        format!("p{}t{}n{}", self.member.number, self.thread, self.number)
    }

    fn text(&mut self, mark: &str) -> String {
        let length = if self.dice.one_in(24) { 9000 } else { self.dice.pick(&[12, 60, 300, 700, 1900], 12) };
        let filler = char::from(b'a' + u8::try_from(self.dice.below(26)).unwrap_or(0));
        format!("{mark} says {}", String::from(filler).repeat(length))
    }

    fn session(&mut self) -> String {
        format!("s{}", self.dice.below(SESSION_COUNT))
    }

    fn act(&mut self) -> Result<(), String> {
        self.number += 1;
        match self.dice.below(48) {
            0..8 => self.say(),
            8..12 => self.says_everywhere(),
            12..15 => self.revises_itself(),
            15..20 => self.tells_shared(),
            20..22 => self.submits(),
            22..25 => self.calls(),
            25..28 => self.finishes(),
            28..31 => self.acts_on_context(),
            31 => self.rewinds(),
            32 => self.forks(),
            33 => self.sets_policy(),
            34 | 35 => self.erases(),
            36 => self.shreds(),
            37 => self.remembers(),
            38 => self.seals(),
            39 => self.indexes(),
            40 => self.saves(),
            41 => self.verifies(),
            42 => self.copies(),
            43 => self.merges(),
            44 => self.reopens(),
            45 => self.keys(),
            _ => self.reads(),
        }
    }

    /// Tries one commit, and notes its outcome.
    fn records(
        &mut self,
        act: &str,
        lines: Vec<Line>,
        run: impl FnOnce(&Store) -> Done,
    ) -> Result<bool, String> {
        let store = self.store();
        self.member.begins(self.thread, act);
        let number = self.number;
        self.diary.note(&Note::Tries { act: act.to_owned(), number, lines })?;
        match run(&store) {
            Ok(seqs) => {
                let (first, last) = seqs.unwrap_or_default();
                self.diary.note(&Note::Recorded(number, first, last))?;
                Ok(true)
            }
            Err(error) if self.may_fail(act, &error) => {
                self.diary.note(&Note::Refused(number, told(&error)))?;
                Ok(false)
            }
            Err(error) => Err(format!("{act}: {} ({error:?})", told(&error))),
        }
    }

    /// The errors that are no fault.
    fn may_fail(&self, act: &str, error: &Error) -> bool {
        match error {
            // An act on something that is not there, or not any more.
            Error::Rejected(_) | Error::NotFound { .. } => {
                matches!(act, "context" | "rewind" | "policy" | "serve")
            }
            // Facts of others went first, as often as one tries. Commits of facts never end so.
            Error::HeadMoved { .. } => matches!(act, "context" | "rewind" | "policy" | "serve" | "merge"),
            // Keys were changed, as often as one tries.
            Error::Busy { detail } => self.member.setting.encrypted && detail.contains("key"),
            // Its session was shredded.
            Error::Erased { .. } => act == "shredded",
            _ => false,
        }
    }

    /// Does something that records nothing.
    fn does<T>(
        &mut self,
        act: &str,
        run: impl FnOnce(&Store) -> Result<T, Error>,
    ) -> Result<Option<T>, String> {
        let store = self.store();
        self.member.begins(self.thread, act);
        self.diary.note(&Note::Did(act.to_owned()))?;
        match run(&store) {
            Ok(done) => Ok(Some(done)),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(format!("{act}: {} ({error:?})", told(&error))),
        }
    }

    fn say(&mut self) -> Result<(), String> {
        let (name, tag) = (self.session(), self.tag());
        let text = self.text(&tag);
        let mut entries = vec![Entry::message(tag.clone(), Role::User, &text)];
        if self.dice.one_in(2) {
            entries = entries.into_iter().map(|entry| entry.origin(format!("msg:{tag}"))).collect();
        }
        let mut items = Vec::new();
        let lines = vec![Line::new(&name, "message_recorded", &text)];
        let is_done = self.records("say", lines, |store| {
            let receipt = store.append(&session(&name), entries)?;
            items.clone_from(&receipt.items);
            Ok(seqs(&receipt))
        })?;
        if is_done && let Some(item) = items.first().copied().flatten() {
            self.own.push(Own { item, text });
        }
        Ok(())
    }

    /// One commit over several sessions.
    fn says_everywhere(&mut self) -> Result<(), String> {
        let tag = self.tag();
        let (mut batches, mut lines) = (Vec::new(), Vec::new());
        for number in 0..2 + self.dice.below(SESSION_COUNT - 1) {
            let name = format!("s{number}");
            let text = self.text(&format!("{tag}.{number}"));
            lines.push(Line::new(&name, "message_recorded", &text));
            let entry = Entry::message("", Role::Assistant, &text);
            let entry = if self.dice.one_in(2) { entry.origin(format!("msg:{tag}.{number}")) } else { entry };
            batches.push(Batch { stream: session(&name), entries: vec![entry] });
        }
        self.records("say everywhere", lines, |store| {
            store.commit(&batches, Atomicity::One).map(|receipt| seqs(&receipt))
        })?;
        Ok(())
    }

    /// One commit whose second fact revises its first: it is drafted under the write lock.
    fn revises_itself(&mut self) -> Result<(), String> {
        let (name, tag) = (self.session(), self.tag());
        let (one, two) = (self.text(&format!("{tag}.1")), self.text(&format!("{tag}.2")));
        let entry = |text: &str| Entry::message("", Role::User, text).origin(format!("msg:{tag}"));
        let entries = vec![entry(&one), entry(&two)];
        let lines = vec![
            Line::new(&name, "message_recorded", one.clone()),
            Line::new(&name, "item_revised", two.clone()),
        ];
        self.records("revise", lines, |store| {
            let batch = Batch { stream: session(&name), entries };
            store.commit(&[batch], Atomicity::One).map(|receipt| seqs(&receipt))
        })?;
        Ok(())
    }

    /// A fact that other threads tell at the same time, in these words or others.
    fn tells_shared(&mut self) -> Result<(), String> {
        let (key, way) = (self.dice.below(SHARED_COUNT), self.dice.below(2));
        let name = format!("s{}", key % 2);
        let text = format!("shared {key} as {way}");
        let entry = Entry::message("", Role::User, &text).origin(format!("msg:shared {key}"));
        self.records("tell shared", vec![Line::new(&name, TOLD, text)], |store| {
            store.append(&session(&name), vec![entry]).map(|receipt| seqs(&receipt))
        })?;
        Ok(())
    }

    /// Several commits on their way at once.
    fn submits(&mut self) -> Result<(), String> {
        let store = self.store();
        let mut tickets = Vec::new();
        for _ in 0..=self.dice.below(5) {
            let (name, tag) = (self.session(), self.tag());
            let text = self.text(&tag);
            let entries = vec![Entry::message("", Role::User, &text)];
            self.member.begins(self.thread, "submit");
            let lines = vec![Line::new(&name, "message_recorded", text)];
            let number = self.number;
            self.diary.note(&Note::Tries { act: "submit".to_owned(), number, lines })?;
            let at_once = self.dice.below(3);
            let fail = |error| format!("submit: {}", told(&error));
            if at_once == 0
                && let Some(receipt) = store.append_at_once(&session(&name), entries.clone()).map_err(fail)?
            {
                let (first, last) = seqs(&receipt).unwrap_or_default();
                self.diary.note(&Note::Recorded(number, first, last))?;
                self.number += 1;
                continue;
            }
            let placed = if at_once == 1 {
                store.submit_at_once(&session(&name), entries.clone()).map_err(fail)?
            } else {
                None
            };
            let placed = match placed {
                Some(ticket) => Ok(ticket),
                None => store.submit(&session(&name), entries),
            };
            match placed {
                Ok(ticket) => tickets.push((number, ticket)),
                Err(error) if self.may_fail("submit", &error) => {
                    self.diary.note(&Note::Refused(number, told(&error)))?;
                }
                Err(error) => return Err(fail(error)),
            }
            self.number += 1;
        }
        if self.dice.one_in(3) {
            store.sync().map_err(|error| format!("sync: {}", told(&error)))?;
        }
        for (number, ticket) in tickets {
            let receipt = ticket.wait().map_err(|error| format!("ticket: {}", told(&error)))?;
            let (first, last) = seqs(&receipt).unwrap_or_default();
            self.diary.note(&Note::Recorded(number, first, last))?;
        }
        Ok(())
    }

    /// A call that this thread or another one ends later.
    fn calls(&mut self) -> Result<(), String> {
        let (name, tag) = (self.session(), self.tag());
        let file = self.dice.below(4);
        let parameters = format!(r#"{{"filePath":"src/{file}.rs","tag":"{tag}"}}"#);
        let entries = vec![Entry::tool_started(&tag, "read", &parameters).origin(format!("call:{tag}"))];
        self.records("call", vec![Line::new(&name, "tool_call_started", parameters)], |store| {
            store.append(&session(&name), entries).map(|receipt| seqs(&receipt))
        })?;
        Ok(())
    }

    /// The end of a call that any thread began. Others may end it as well, in the same words.
    fn finishes(&mut self) -> Result<(), String> {
        let name = self.session();
        let info = session(&name);
        let Some(open) = self.does("open calls", |store| store.session(info).open_calls())? else {
            return Ok(());
        };
        let Some(call) = open.get(self.dice.below(open.len())).map(|call| call.call.clone()) else {
            return Ok(());
        };
        let output = format!("{call} ended, {}", "line of a file\n".repeat(20));
        let entries = vec![Entry::tool_completed(&call, &output).origin(format!("call:{call}:finish"))];
        self.records("finish", vec![Line::new(&name, "tool_call_finished", output)], |store| {
            store.append(&session(&name), entries).map(|receipt| seqs(&receipt))
        })?;
        Ok(())
    }

    fn acts_on_context(&mut self) -> Result<(), String> {
        let name = self.session();
        let stream = session(&name).id();
        let Some(view) = self.does("view", |store| store.view(stream))? else { return Ok(()) };
        let calls: Vec<String> =
            view.history().into_iter().filter_map(|item| item.call.map(|call| call.to_string())).collect();
        let Some(call) = calls.get(self.dice.below(calls.len())).cloned() else { return Ok(()) };
        let target = Target::Call(call);
        let summary = format!("{} in short", self.tag());
        let kind = self.dice.below(5);
        let (label, text) = match kind {
            0 => ("discarded", ""),
            1 => ("distilled", summary.as_str()),
            2 => ("restored", ""),
            3 => ("pinned", ""),
            _ => ("unpinned", ""),
        };
        let lines = vec![Line::new(&name, label, text)];
        let summary = summary.clone();
        self.records("context", lines, |store| {
            let reply = match kind {
                0 => store.context(stream, ContextAction::Discard, vec![(target, None)]),
                1 => store.context(stream, ContextAction::Distill, vec![(target, Some(summary))]),
                2 => store.context(stream, ContextAction::Restore, vec![(target, None)]),
                3 => store.pin(stream, vec![target]),
                _ => store.unpin(stream, vec![target]),
            }?;
            Ok(reply.last_seq.map(|seq| (seq.get(), seq.get())))
        })?;
        Ok(())
    }

    fn rewinds(&mut self) -> Result<(), String> {
        let name = self.session();
        let stream = session(&name).id();
        let back = 1 + self.dice.below(6) as u64;
        self.records("rewind", vec![Line::new(&name, "rewound", "")], |store| {
            let head = store.view(stream)?.read().state().head();
            let reply = store.rewind(stream, Seq(head.get().saturating_sub(back)))?;
            Ok(reply.last_seq.map(|seq| (seq.get(), seq.get())))
        })?;
        Ok(())
    }

    /// A session of this thread's own, that goes on from a shared one.
    fn forks(&mut self) -> Result<(), String> {
        let (from, tag) = (session(&self.session()).id(), self.tag());
        let Some(at) = self.does("head", |store| store.view(from).map(|view| view.at()))? else {
            return Ok(());
        };
        let (name, text) = (format!("fork {tag}"), self.text(&tag));
        let forked = Entry::from(Fact::Forked(fact::Forked { from, at: PointRef::Seq(at) }));
        let entries = vec![forked.origin(format!("fork:{tag}")), Entry::message("", Role::User, &text)];
        let lines = vec![Line::new(&name, "forked", ""), Line::new(&name, "message_recorded", text)];
        self.records("fork", lines, |store| {
            store.append(&session(&name), entries).map(|receipt| seqs(&receipt))
        })?;
        Ok(())
    }

    fn sets_policy(&mut self) -> Result<(), String> {
        let name = if self.dice.one_in(2) { String::new() } else { self.session() };
        let stream = (!name.is_empty()).then(|| session(&name).id());
        let reason = self.tag();
        let preset = self.dice.pick(&["careful", "off", "acp", "dcp"], "acp");
        let lines = vec![Line::new(&name, "policy_set", reason.clone())];
        self.records("policy", lines, |store| {
            let policy = Policy::preset(preset).unwrap_or_default();
            let seq = store.change_policy(stream, Some(&reason), &|_| Ok(policy.clone()))?;
            Ok(Some((seq.get(), seq.get())))
        })?;
        Ok(())
    }

    /// Erases a message of its own.
    fn erases(&mut self) -> Result<(), String> {
        if self.own.is_empty() {
            return Ok(());
        }
        let own = self.own.swap_remove(self.dice.below(self.own.len()));
        let (store, reason) = (self.store(), self.tag());
        self.member.begins(self.thread, "erase");
        self.diary.note(&Note::Erases(reason.clone(), vec![own.text.clone()]))?;
        match store.erase(own.item, "crowd", &reason) {
            Ok(report) if report.recorded.is_none() => Err(format!("erase: nothing was hit: {report:?}")),
            Ok(_) => self.diary.note(&Note::Erased(reason)),
            // Others seal or erase; or it was acknowledged before a sync, and other handles do not see it yet.
            Err(Error::Busy { .. } | Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(format!("erase: {} ({error:?})", told(&error))),
        }
    }

    /// Begins a session of its own, or shreds one.
    fn shreds(&mut self) -> Result<(), String> {
        let tag = self.tag();
        if !self.member.setting.encrypted || self.victims.is_empty() || self.dice.one_in(2) {
            let (name, text) = (format!("own {tag}"), self.text(&tag));
            let entries = vec![Entry::message("", Role::User, &text)];
            let lines = vec![Line::new(&name, "message_recorded", text)];
            let info = session(&name);
            self.victims.push(name);
            self.records("own", lines, |store| store.append(&info, entries).map(|receipt| seqs(&receipt)))?;
            return Ok(());
        }
        let name = self.victims.swap_remove(self.dice.below(self.victims.len()));
        let store = self.store();
        self.member.begins(self.thread, "shred");
        self.diary.note(&Note::Erases(tag.clone(), Vec::new()))?;
        self.diary.note(&Note::Shreds(name.clone()))?;
        match store.shred(session(&name).id(), "crowd", &tag) {
            Ok(_) => self.diary.note(&Note::Shredded(name.clone()))?,
            // As for an erasure.
            Err(Error::Busy { .. } | Error::NotFound { .. }) => return Ok(()),
            Err(error) => return Err(format!("shred: {} ({error:?})", told(&error))),
        }
        let entries = vec![Entry::message("", Role::User, "too late")];
        let lines = vec![Line::new(&name, "message_recorded", "too late")];
        let is_done = self
            .records("shredded", lines, |store| store.append(&session(&name), entries).map(|it| seqs(&it)))?;
        if is_done { Err(format!("{name} took a message after it was shredded")) } else { Ok(()) }
    }

    /// Something for ever, in the stream that all sessions share.
    fn remembers(&mut self) -> Result<(), String> {
        let value = format!("{} is to be kept", self.tag());
        let lifespan = Some(Lifespan::Permanent);
        let memory = MemoryEntry { value: value.clone(), lifespan, confidence: 80, ..MemoryEntry::default() };
        let name = self.session();
        self.records("remember", vec![Line::new(USER, "memory_recorded", value)], |store| {
            // The session may be opened by the same commit.
            let receipt = store.append(&session(&name), vec![Entry::from(Fact::Memory(memory))])?;
            Ok(seqs(&receipt))
        })?;
        Ok(())
    }

    fn seals(&mut self) -> Result<(), String> {
        let active = self.dice.one_in(2);
        let Some(report) = self.does("seal", |store| store.seal(active))? else { return Ok(()) };
        if report.damage.is_empty() { Ok(()) } else { Err(format!("seal: {report:?}")) }
    }

    fn indexes(&mut self) -> Result<(), String> {
        // An encrypted store has no index.
        let store = self.store();
        self.member.begins(self.thread, "reindex");
        match store.reindex() {
            // Another handle has it, or this one uses none.
            Ok(_) | Err(Error::Busy { .. } | Error::ReadOnly { .. } | Error::NotFound { .. }) => Ok(()),
            Err(_) if self.member.setting.encrypted => Ok(()),
            Err(error) => Err(format!("reindex: {} ({error:?})", told(&error))),
        }
    }

    fn saves(&mut self) -> Result<(), String> {
        let name = self.session();
        if self.dice.one_in(4) {
            self.does("forget", |store| store.forget_snapshots(Some(session(&name).id())))?;
        } else {
            self.does("save", |store| store.save_snapshot(session(&name).id()))?;
        }
        let text = self.tag();
        self.does("keep", |store| {
            store.keep_checkpoint(store.head()?, &text)?;
            let _ = store.put_aside("crowd", text.as_bytes());
            let _ = store.aside("crowd");
            Ok(())
        })?;
        Ok(())
    }

    fn verifies(&mut self) -> Result<(), String> {
        let store = self.store();
        self.member.begins(self.thread, "verify");
        let options = VerifyOptions {
            deep: self.dice.one_in(2),
            keys: self.member.setting.ring(),
            ..VerifyOptions::default()
        };
        let report =
            verify_store(store.root(), &options).map_err(|error| format!("verify: {}", told(&error)))?;
        if report.verdict() != Verdict::Sound {
            return Err(format!("verify beside writers: {}", faults(&report)));
        }
        self.diary.note(&Note::Knows(report.head_seq.get(), *report.head_link.as_bytes()))
    }

    /// A copy of the store, checked; it is part of the later store.
    fn copies(&mut self) -> Result<(), String> {
        let name = format!("copy-{}-{}-{}", self.member.number, self.thread, self.copies);
        let folder = self.member.folder.join(name);
        self.copies += 1;
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
        if !self.member.setting.encrypted && self.dice.one_in(2) {
            let opened = Store::builder(&folder).any_file_system().open();
            let read =
                opened.and_then(|store| events(&store)).map_err(|error| format!("copy: {}", told(&error)))?;
            if read.len() as u64 != copy.head.get() {
                return Err(format!("backup of {} has {} events", copy.head, read.len()));
            }
        }
        std::fs::remove_dir_all(&folder).map_err(|error| error.to_string())
    }

    /// Adds another store, which other threads add as well.
    fn merges(&mut self) -> Result<(), String> {
        let other = self.dice.below(OTHER_COUNT);
        let folder = self.member.folder.join(format!("other-{other}"));
        let source = Store::builder(folder).any_file_system().read_only().open();
        let mut source = source.map_err(|error| format!("source: {}", told(&error)))?;
        let store = self.store();
        self.member.begins(self.thread, "merge");
        self.diary.note(&Note::Merges(other))?;
        match store.merge(&mut source, MergeOptions::default()) {
            Ok(report) if report.left_out_count > 0 || !report.branches.is_empty() => {
                Err(format!("merge: {report:#?}"))
            }
            Ok(_) => self.diary.note(&Note::Merged(other)),
            Err(error) if self.may_fail("merge", &error) => Ok(()),
            Err(error) => Err(format!("merge: {} ({error:?})", told(&error))),
        }
    }

    /// Opens a handle anew, in place of one that other threads may still use.
    fn reopens(&mut self) -> Result<(), String> {
        let handle = self.handle();
        self.member.begins(self.thread, "reopen");
        let fail = |error| format!("reopen: {}", told(&error));
        if self.dice.one_in(2) {
            let store = steady(handle).clone();
            store.close().map_err(fail)?;
        }
        let builder = self.member.setting.builder(&self.member.folder, &mut self.dice);
        let store = builder.open().map_err(fail)?;
        if let Some(damage) = &store.recovery().damage {
            return Err(format!("reopen: {damage}"));
        }
        let before = std::mem::replace(&mut *steady(handle), store);
        drop(before);
        Ok(())
    }

    /// Other keys from here on.
    fn keys(&mut self) -> Result<(), String> {
        if !self.member.setting.encrypted {
            return self.reads();
        }
        let stream = if self.dice.one_in(3) { None } else { Some(session(&self.session()).id()) };
        let store = self.store();
        self.member.begins(self.thread, "rotate keys");
        match store.rotate_data_keys(stream) {
            Ok(_) | Err(Error::NotFound { .. } | Error::Busy { .. }) => Ok(()),
            Err(error) => Err(format!("rotate keys: {} ({error:?})", told(&error))),
        }
    }

    /// A context to send; a rebase may be recorded before it.
    fn serves(&mut self, name: &str) -> Result<(), String> {
        let (info, key) = (session(name), self.tag());
        let tokens_max = self.dice.one_in(2).then_some(2000);
        self.records("serve", vec![Line::new(name, "context_served", "")], |store| {
            let step = store.session(info).step_begun(key);
            let context =
                step.context(&PlainText, &ServeOptions { tokens_max, ..ServeOptions::default() })?;
            Ok(Some((context.seq.get(), context.seq.get())))
        })?;
        Ok(())
    }

    fn reads(&mut self) -> Result<(), String> {
        let name = self.session();
        let stream = session(&name).id();
        if let Some(Held { view, digest }) = self.held.take()
            && view.read().state().digest(view.at()) != digest
        {
            return Err(format!("a view of {} at {} moved", view.stream(), view.at()));
        }
        match self.dice.below(5) {
            0 => drop(self.does("sessions", |store| store.sessions(store.head()?))?),
            1 => drop(self.does("space", Store::space)?),
            2 => drop(self.does("info", Store::info)?),
            3 => self.serves(&name)?,
            _ => {
                let read = self.does("stream events", |store| {
                    let head = store.head()?;
                    let by_stream = store.stream_events(stream, Seq(1), head)?;
                    let by_stream =
                        by_stream.map(|event| Ok(event?.seq)).collect::<Result<BTreeSet<_>, Error>>()?;
                    let all = store.events(Seq(1), head)?.collect::<Result<Vec<_>, Error>>()?;
                    Ok((head, by_stream, all))
                })?;
                let Some((head, by_stream, all)) = read else { return Ok(()) };
                if all.len() as u64 != head.get() {
                    return Err(format!("{} events up to {head}", all.len()));
                }
                let own = all.iter().filter(|event| event.event.stream == stream).map(|event| event.seq);
                if own.collect::<BTreeSet<_>>() != by_stream {
                    return Err(format!("{name} up to {head}: another list by stream: {by_stream:?}"));
                }
            }
        }
        let Some(view) = self.does("view", |store| store.view(stream))? else { return Ok(()) };
        view.check().map_err(|error| format!("view: {}", told(&error)))?;
        let digest = view.read().state().digest(view.at());
        self.held = Some(Held { view, digest });
        Ok(())
    }
}

/// The seqs of a commit, if it recorded anything.
fn seqs(receipt: &Receipt) -> Option<(u64, u64)> {
    (receipt.event_count > 0).then(|| (receipt.first_seq.get(), receipt.last_seq.get()))
}
