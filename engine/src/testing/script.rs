//! Scripts: the steps of a session, one a line.
//!
//! ```text
//! 1 read src/app.ts ok          turn, tool, key (`path` or `path:offset`, `-` for none), outcome: ok fail abort open
//! 2 finish c1 ok                a call that was left open ends; calls are c1, c2, .. in order
//! 2 say The plan is this.       also: think, user
//! 3 turn                        time passes                   4 prompt         the person moves
//! 3 discard c1                  also: distill, restore, pin, unpin, clear (by the host), erase; the first three also: c1..c4
//! 4 compact                     4 order c1 c2       the host's context is empty, or these
//! 4 changed src/app.ts      4 rewind c2      4 remind      4 reflect
//! 5 task T start                5 task T done             5 policy {"todo":false}
//! 4 serve                       a context is sent           4 flush          a rebase of everything, or of one: flush c1
//! 5 aside x                     an unrelated call, without a name               5 note     an unrelated event
//! ```
//!
//! A line that makes no sense (an unknown call, a step back in time) is played as far as it can be: scripts come from
//! generators too.

use std::collections::BTreeMap;

use super::Tape;
use crate::command::task::{TaskUpdate, accept};
use crate::command::{Command, ContextAction, Target};
use crate::entry::{Entry, ItemRef, PartEntry, fact};
use crate::event::{
    BodyAddress, ContextRebased, ContextServed, Erased, FileChanger, InjectedKind, Outcome, PolicySet,
    RebaseCause, ReplaceCause, Role, TurnKind,
};
use crate::fold::{Ix, Policy};
use crate::ids::{ItemId, Seq, StreamId};

/// One line of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    /// The turn it happens in.
    pub turn: u32,
    /// The step: its verb and the words behind it.
    pub what: String,
}

/// A script.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script {
    /// Its lines.
    pub steps: Vec<Step>,
}

impl Script {
    /// Reads a script; lines that do not begin with a turn are left out.
    pub fn parse(text: &str) -> Self {
        let step = |line: &str| {
            let (turn, what) = line.trim().split_once(' ')?;
            Some(Step { turn: turn.parse().ok()?, what: what.trim().to_owned() })
        };
        Self { steps: text.lines().filter_map(step).collect() }
    }

    /// A script from numbers, for generators: any numbers give a script, equal numbers the same one.
    pub fn from_numbers(numbers: &[u16]) -> Self {
        const FILES: [&str; 4] = ["a", "b", ".env", "c:7"];
        const OUTCOMES: [&str; 8] = ["ok", "ok", "ok", "ok", "ok", "fail", "abort", "open"];
        let mut turn = 1_u32;
        let mut calls = 0_u32;
        let mut steps = Vec::new();
        for number in numbers {
            let (kind, rest) = (number % 64, number / 64);
            let pick = |list: &[&str], from: u16| {
                list.get(usize::from(from) % list.len().max(1)).copied().unwrap_or_default().to_owned()
            };
            let call = 1 + u32::from(rest) % calls.max(1);
            let (file, outcome) = (pick(&FILES, rest), pick(&OUTCOMES, rest / 4));
            let what = match kind {
                0..=13 => format!("read {file} {outcome}"),
                14..=19 => format!("edit {file} {outcome}"),
                20..=23 => format!("write {file} {outcome}"),
                24 => format!("delete {file} {outcome}"),
                25..=27 => format!("todowrite {file} {outcome}"),
                28 => format!("todoread - {outcome}"),
                29 => format!("grep {file} {outcome}"),
                30 => format!("webfetch {file} {outcome}"),
                31 => format!("bash git {outcome}"),
                32 => format!("snapshot {file} {outcome}"),
                33 => format!("clock - {outcome}"),
                34..=36 => format!("finish c{call} {}", pick(&["ok", "fail"], rest)),
                37 | 38 => format!("say words {}", rest % 5),
                39 => format!("think about {}", rest % 5),
                40 => "user do automata".to_owned(),
                41 | 42 => format!("discard c{call}"),
                43 if rest % 2 == 0 => {
                    format!("distill c{call}..c{}", 1 + u32::from(rest / 3) % calls.max(1))
                }
                43 => format!("distill c{call}"),
                44..=46 => format!("restore c{call}"),
                47 => format!("pin c{call}"),
                48 => format!("unpin c{call}"),
                49 => format!("clear c{call}"),
                50 if rest % 2 == 0 => "compact".to_owned(),
                50 => format!("order c{call}"),
                51 => format!("changed {file}"),
                52 | 53 => format!("rewind c{call}"),
                54 => "remind".to_owned(),
                55 => "reflect".to_owned(),
                56 => format!("task T{} start", rest % 2),
                57 => format!("task T{} done", rest % 2),
                58 => format!(
                    "policy {}",
                    pick(
                        &[
                            r#""acp""#,
                            r#""balanced""#,
                            r#""acp-head""#,
                            r#""dcp""#,
                            r#"{"automatic":false}"#,
                            r#"{"turn_protection":true,"turn_protection.turns":2}"#,
                            r#"{"truncate":true,"truncate.max_tokens":1,"compress_reasoning":true,"purge_errors":true}"#,
                        ],
                        rest
                    )
                ),
                59 => format!("keep c{call}"),
                60 => format!("erase c{call}"),
                _ => {
                    turn = turn.saturating_add(1 + u32::from(rest) % 4);
                    "turn".to_owned()
                }
            };
            if kind <= 33 {
                calls += 1;
                turn = turn.saturating_add(u32::from(rest) % 3 / 2);
            }
            steps.push(Step { turn, what });
        }
        Self { steps }
    }

    /// Plays the script on a new tape under `policy`.
    pub fn play(&self, policy: &Policy) -> Played {
        let mut played = Played {
            tape: Tape::of_test_tools("script"),
            calls: Vec::new(),
            ends: BTreeMap::new(),
            turn: 0,
            messages: 0,
        };
        played.tape.payload(PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
        for step in &self.steps {
            played.step(step);
        }
        played
    }
}

/// A script that was played.
#[derive(Debug)]
pub struct Played {
    /// The tape.
    pub tape: Tape,
    /// The calls, in order: `c1` is the first.
    pub calls: Vec<ItemId>,
    /// The last event of each call, by its number from 0.
    ends: BTreeMap<usize, Seq>,
    turn: u32,
    messages: u32,
}

impl Played {
    /// The item of a call named `c1`, `c2`, ...
    pub fn call(&self, name: &str) -> Option<ItemId> {
        let number: usize = name.strip_prefix('c')?.parse().ok()?;
        self.calls.get(number.checked_sub(1)?).copied()
    }

    /// The name of a call.
    pub fn name(&self, item: ItemId) -> String {
        match self.calls.iter().position(|call| *call == item) {
            Some(place) => format!("c{}", place + 1),
            None => item.to_string(),
        }
    }

    /// The place of a call in the stream.
    pub fn ix(&self, name: &str) -> Option<Ix> {
        self.tape.state().find(self.call(name)?)
    }

    fn step(&mut self, step: &Step) {
        if step.turn > self.turn {
            self.turn = step.turn;
            let number = Some(step.turn);
            self.tape.entry(fact::TurnStarted { kind: TurnKind::Step, key: String::new(), number });
        }
        let (verb, rest) = step.what.split_once(' ').unwrap_or((&step.what, ""));
        match verb {
            "turn" => {}
            "prompt" => {
                self.tape.entry(fact::TurnStarted {
                    kind: TurnKind::Prompt,
                    key: String::new(),
                    number: None,
                });
            }
            "note" => {
                self.tape.entry(Entry::host_record("note", None));
            }
            "aside" => {
                let (call, params) = (format!("aside {rest}"), format!(r#"{{"of":"{rest}"}}"#));
                self.tape.entry(Entry::tool_started(call.as_str(), "ping", params));
                self.tape.entry(Entry::tool_completed(call, "pong"));
            }
            "say" | "think" | "user" => self.say(verb, rest),
            "finish" => {
                let (name, outcome) = rest.split_once(' ').unwrap_or((rest, "ok"));
                if self.call(name).is_some() {
                    self.finish(name, "read", outcome);
                }
            }
            "discard" | "distill" | "restore" | "keep" => self.context(verb, rest),
            "pin" | "unpin" => {
                if let Some(item) = self.call(rest) {
                    let targets = vec![Target::Item(item)];
                    let command =
                        if verb == "pin" { Command::Pin { targets } } else { Command::Unpin { targets } };
                    let _ = self.tape.command(&command);
                }
            }
            "clear" => {
                let items = self.call(rest).map(ItemRef::Id).into_iter().collect();
                let text = Some(b"[cleared]".as_slice().into());
                self.tape.entry(fact::HostCleared { items, calls: Vec::new(), text });
            }
            "compact" | "order" => {
                let cause = ReplaceCause::Compaction;
                let order = rest.split(' ').filter_map(|name| self.call(name)).map(ItemRef::Id).collect();
                self.tape.entry(fact::ContextReplaced { cause, order, tokens_before: None });
            }
            "changed" => {
                self.tape.entry(fact::FileChanged { path: rest.to_owned(), by: FileChanger::User });
            }
            "rewind" => {
                let place = rest.strip_prefix('c').and_then(|number| number.parse::<usize>().ok());
                let end = place.and_then(|place| self.ends.get(&place.checked_sub(1)?)).copied();
                if let Some(to) = end {
                    let _ = self.tape.command(&Command::Rewind { to });
                }
            }
            "remind" | "reflect" => {
                let what = if verb == "remind" { InjectedKind::Reminder } else { InjectedKind::Reflection };
                self.tape.entry(fact::Injected { what, text: verb.as_bytes().into() });
            }
            "serve" => {
                let step = self.messages.to_string();
                let digest = [0; 32];
                let epoch = self.tape.state().epoch(Seq::MAX);
                let format = "test".to_owned();
                let sent = ContextServed { step, epoch, renderer: 1, digest, tokens: 0, format };
                self.tape.payload(sent, Vec::new());
            }
            "flush" => {
                let epoch = self.tape.state().epoch(Seq::MAX).saturating_add(1);
                let items: Vec<ItemId> = self.call(rest).into_iter().collect();
                if rest.is_empty() || !items.is_empty() {
                    self.tape.payload(ContextRebased { epoch, why: RebaseCause::Asked, items }, Vec::new());
                }
            }
            "task" => self.task(rest),
            "policy" => {
                if let Ok(policy) = Policy::from_json(rest) {
                    self.tape.payload(PolicySet { policy: policy.to_json(), reason: None }, Vec::new());
                }
            }
            "erase" => {
                if let Some(item) = self.call(rest) {
                    let bodies = vec![BodyAddress { seq: item.seq, row: 0 }];
                    let erased = Erased { bodies, by: "test".to_owned(), ..Erased::default() };
                    self.tape.payload_in(StreamId::STORE, erased, Vec::new());
                }
            }
            tool => self.tool(tool, rest),
        }
    }

    fn say(&mut self, verb: &str, text: &str) {
        self.messages += 1;
        let key = format!("m{}", self.messages);
        let text = text.replace("\\n", "\n");
        let (role, part) = match verb {
            "user" => (Role::User, PartEntry::text(&text)),
            "think" => (Role::Assistant, PartEntry::reasoning(&text, None)),
            _ => (Role::Assistant, PartEntry::text(&text)),
        };
        self.tape.entry(Entry::message_parts(key, role, vec![part]));
    }

    fn tool(&mut self, tool: &str, rest: &str) {
        let (key, outcome) = rest.rsplit_once(' ').unwrap_or((rest, "ok"));
        let (path, offset) = key.split_once(':').unwrap_or((key, ""));
        let name = match tool {
            "webfetch" => "url",
            "grep" => "pattern",
            "bash" | "shell" => "command",
            _ => "filePath",
        };
        let value = match (tool, path) {
            ("bash", "git") => "git status",
            ("bash", "test") => "cargo test",
            _ => path,
        };
        let mut params = serde_json::Map::new();
        if path != "-" {
            params.insert(name.to_owned(), value.into());
        }
        if !offset.is_empty() {
            params.insert("offset".to_owned(), offset.into());
        }
        let call = format!("c{}", self.calls.len() + 1);
        let params = serde_json::Value::Object(params).to_string();
        let seq = self.tape.entry(Entry::tool_started(call.as_str(), tool, params));
        self.calls.push(ItemId::first(seq));
        self.ends.insert(self.calls.len() - 1, seq);
        if outcome != "open" {
            self.finish(&call, tool, outcome);
        }
    }

    fn finish(&mut self, name: &str, tool: &str, outcome: &str) {
        let outcome = match outcome {
            "fail" => Outcome::Failed,
            "abort" => Outcome::Aborted,
            _ => Outcome::Completed,
        };
        let output = match tool {
            "todowrite" => format!(r#"[{{"content":"step of {name}","status":"in_progress"}}]"#),
            _ => format!("output of {name}, long enough for any text that may stand in its place here\n")
                .repeat(24),
        };
        let seq = self.tape.entry(Entry::tool_finished(name, outcome, vec![PartEntry::text(output)]));
        if let Some(place) = name.strip_prefix('c').and_then(|number| number.parse::<usize>().ok()) {
            self.ends.insert(place.saturating_sub(1), seq);
        }
    }

    fn context(&mut self, verb: &str, rest: &str) {
        let target = match rest.split_once("..") {
            Some((first, last)) => self
                .call(first)
                .zip(self.call(last))
                .map(|(first, last)| Target::Auto(format!("{first}..{last}"))),
            None => self.call(rest).map(Target::Item),
        };
        let Some(target) = target else { return };
        let action = match verb {
            "discard" => ContextAction::Discard,
            "distill" => ContextAction::Distill,
            _ => ContextAction::Restore,
        };
        let summary = (verb == "distill").then(|| format!("summary of {rest}"));
        let command = Command::Context { action, targets: vec![(target, summary)], pin: verb == "keep" };
        let _ = self.tape.command(&command);
    }

    fn task(&mut self, rest: &str) {
        let (id, what) = rest.split_once(' ').unwrap_or((rest, "start"));
        let status = if what == "done" {
            r#""status":"completed","result_summary":"what was found out about it""#
        } else {
            r#""status":"in_progress""#
        };
        let json = format!(r#"{{"tasks":[{{"id":"{id}",{status}}}]}}"#);
        let Ok(update) = TaskUpdate::from_json(json.as_bytes()) else { return };
        let message = (self.messages > 0).then(|| format!("m{}", self.messages));
        let read = |body| self.tape.body(body);
        let drafts = accept(self.tape.state().tasks(), Seq::MAX, &update, message.as_deref(), &read);
        for draft in drafts.unwrap_or_default() {
            self.tape.drafted(draft);
        }
    }
}
