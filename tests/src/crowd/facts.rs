//! Acts of a thread that record facts and commands.

use acpdb_engine::entry::{Entry, Fact, MemoryEntry, PointRef, fact};
use acpdb_engine::event::{Lifespan, Role};
use acpdb_engine::fold::Policy;
use acpdb_engine::ids::Seq;
use acpdb_engine::{Atomicity, Batch, ContextAction, Target};

use super::diary::{Line, Note, TOLD};
use super::thread::{Hand, Own, seqs};
use super::{SESSION_COUNT, USER, session, told};

/// How many facts threads tell at the same time, in two ways each.
const SHARED_COUNT: usize = 5;

impl Hand<'_> {
    pub(super) fn say(&mut self) -> Result<(), String> {
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
    pub(super) fn says_everywhere(&mut self) -> Result<(), String> {
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
    pub(super) fn revises_itself(&mut self) -> Result<(), String> {
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
    pub(super) fn tells_shared(&mut self) -> Result<(), String> {
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
    pub(super) fn submits(&mut self) -> Result<(), String> {
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
            match store.submit(&session(&name), entries) {
                Ok(ticket) => tickets.push((number, ticket)),
                Err(error) if self.may_fail("submit", &error) => {
                    self.refuses(number, &error)?;
                }
                Err(error) => return Err(format!("submit: {}", told(&error))),
            }
            self.number += 1;
        }
        if self.dice.one_in(3) {
            match store.sync() {
                Err(error) if !self.is_stale(&error) => return Err(format!("sync: {}", told(&error))),
                _ => {}
            }
        }
        for (number, ticket) in tickets {
            let receipt = match ticket.wait() {
                Ok(receipt) => receipt,
                Err(error) if self.is_stale(&error) => {
                    self.refuses(number, &error)?;
                    continue;
                }
                Err(error) => return Err(format!("ticket: {}", told(&error))),
            };
            let (first, last) = seqs(&receipt).unwrap_or_default();
            self.diary.note(&Note::Recorded(number, first, last))?;
        }
        Ok(())
    }

    /// A call that this thread or another one ends later.
    pub(super) fn calls(&mut self) -> Result<(), String> {
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
    pub(super) fn finishes(&mut self) -> Result<(), String> {
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

    pub(super) fn acts_on_context(&mut self) -> Result<(), String> {
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

    pub(super) fn rewinds(&mut self) -> Result<(), String> {
        let name = self.session();
        let stream = session(&name).id();
        let back = 1 + self.dice.below(6) as u64;
        self.records("rewind", vec![Line::new(&name, "rewound", "")], |store| {
            let head = store.view(stream)?.state().head();
            let reply = store.rewind(stream, Seq(head.get().saturating_sub(back)))?;
            Ok(reply.last_seq.map(|seq| (seq.get(), seq.get())))
        })?;
        Ok(())
    }

    /// A session of this thread's own, that goes on from a shared one.
    pub(super) fn forks(&mut self) -> Result<(), String> {
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

    pub(super) fn sets_policy(&mut self) -> Result<(), String> {
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

    /// Something for ever, in the stream that all sessions share.
    pub(super) fn remembers(&mut self) -> Result<(), String> {
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
}
