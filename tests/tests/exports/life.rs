//! Lives of sessions, made from numbers: every kind of event, in the order in which a host could record them.
//!
//! A life is a list of acts; after each reply there is a *request*, the point at which a host would export. Texts,
//! reasoning and signatures are numbered, so that a judge can find each of them in an export.

use acpdb_engine::command::{ContextAction, Target};
use acpdb_engine::entry::{Entry, Fact, ItemRef, PartEntry, PointRef, StreamInfo, fact};
use acpdb_engine::event::{FileChanger, InjectedKind, Outcome, PartKind, ReplaceCause, Report, Role, Usage};
use acpdb_engine::fold::Policy;
use acpdb_engine::ids::{ItemId, Seq};
use acpdb_engine::{Error, Store};

/// A session under way.
pub(super) struct Life {
    pub(super) store: Store,
    pub(super) info: StreamInfo,
    pub(super) model: &'static str,
    counter: u64,
    open: Vec<(String, u16)>,
    items: Vec<ItemId>,
    points: Vec<Seq>,
    /// Heads at which a request would be made.
    pub(super) requests: Vec<Seq>,
}

/// Pairs of a reasoning text and its signature are made from one number.
pub(super) fn signature(number: u64) -> String {
    format!("sig=={number}=/+")
}

impl Life {
    pub(super) fn new(store: Store, model: &'static str) -> Self {
        let info = StreamInfo::session("my-agent", "life");
        Self {
            store,
            info,
            model,
            counter: 0,
            open: Vec::new(),
            items: Vec::new(),
            points: Vec::new(),
            requests: Vec::new(),
        }
    }

    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    fn append(&mut self, entries: Vec<Entry>) {
        let receipt = self.store.append(&self.info, entries).unwrap();
        self.items.extend(receipt.items.into_iter().flatten());
        self.points.push(receipt.last_seq);
    }

    /// A policy under which much is hidden at once, and a prompt.
    pub(super) fn begin(&mut self) {
        let set =
            Fact::PromptSet(
                fact::PromptSet {
                    system: Some(b"be good".as_slice().into()),
                    tools:
                        Some(
                            br#"[{"name":"read","description":"reads","input_schema":{"type":"object"}}]"#
                                .as_slice()
                                .into(),
                        ),
                    model: Some(self.model.to_owned()),
                    params: Some(br#"{"max_tokens": 1024}"#.as_slice().into()),
                },
            );
        self.append(vec![set.into()]);
        let mut policy = Policy::preset("acp").unwrap();
        policy.same_turn = true;
        policy.turn_protection.enabled = false;
        self.store.set_policy(Some(self.info.id()), &policy, None).unwrap();
        self.prompt();
    }

    fn prompt(&mut self) {
        let n = self.next();
        self.append(vec![
            Entry::prompt(format!("p{n}")),
            Entry::message(format!("u{n}"), Role::User, format!("ask {n}")).origin(format!("msg:{n}")),
        ]);
    }

    /// One reply with `calls` calls; some have results at once.
    fn reply(&mut self, shape: u16) {
        let n = self.next();
        let key = format!("a{n}");
        let mut parts = Vec::new();
        if shape & 1 == 1 {
            parts.push(PartEntry::reasoning(format!("think {n}"), Some(signature(n).as_bytes())));
        }
        if shape & 2 == 2 {
            let redacted = format!(r#"{{"type":"redacted_thinking","data":"red{n}"}}"#);
            parts.push(PartEntry::of(PartKind::Opaque, redacted));
        }
        let calls = (shape >> 2) % 4;
        if shape & 16 == 16 || calls == 0 {
            parts.push(PartEntry::text(format!("say {n}")));
        }
        let mut entries = vec![Entry::step(&key), Entry::message_parts(&key, Role::Assistant, parts)];
        for place in 0..calls {
            let which = shape.wrapping_mul(31).wrapping_add(place * 7);
            let id = if which.is_multiple_of(11) { "again".to_owned() } else { format!("call-{n}.{place}") };
            let (tool, params) = match which % 4 {
                0 => ("read", format!(r#"{{"file_path":"/f{}"}}"#, which % 3)),
                1 => (
                    "edit",
                    format!(r#"{{"file_path":"/f{}","old_string":"a","new_string":"b{n}"}}"#, which % 3),
                ),
                2 => ("bash", format!(r#"{{"command":"ls {}"}}"#, which % 2)),
                _ => ("patch", format!("\"*** text {n}\"")),
            };
            let mut started = Entry::tool_started(&id, tool, params).in_message(&key);
            if which.is_multiple_of(5)
                && let Fact::ToolStarted(fact::ToolStarted { provider_signature, .. }) = &mut started.fact
            {
                *provider_signature = Some(format!("call-sig-{n}-{place}").into_bytes().into());
            }
            entries.push(started);
            self.open.push((id, which));
        }
        self.append(entries);
        if shape & 32 == 32 {
            let report = fact::MessageFinished {
                key,
                report: Report {
                    model: Some(self.model.to_owned()),
                    stop_reason: Some("end_turn".to_owned()),
                    usage: Usage { input: Some(10), ..Usage::default() },
                    ..Report::default()
                },
            };
            self.append(vec![report.into()]);
        }
    }

    /// Ends the open calls, from the last on if `backwards`.
    pub(super) fn finish(&mut self, backwards: bool) {
        let mut open = std::mem::take(&mut self.open);
        if backwards {
            open.reverse();
        }
        for (id, which) in open {
            let n = self.next();
            let text = format!("result {n} {}", "of a call that went well\n".repeat(usize::from(which % 20)));
            let entry = match which % 7 {
                0 => Entry::tool_failed(&id, text),
                1 => Entry::tool_aborted(&id, text),
                2 => Entry::tool_finished(
                    &id,
                    Outcome::Completed,
                    vec![PartEntry::text(text), PartEntry::media("QUJD", Some("image/png".to_owned()))],
                ),
                3 => Entry::tool_finished(&id, Outcome::Completed, Vec::new()),
                _ => Entry::tool_completed(&id, text),
            };
            self.append(vec![entry.origin(format!("done:{n}"))]);
        }
    }

    fn request(&mut self) {
        let head = self.store.head().unwrap();
        if self.requests.last() != Some(&head) {
            self.requests.push(head);
        }
    }

    fn target(&self, number: u16) -> Option<Target> {
        let count = self.items.len().max(1);
        self.items.get(usize::from(number) % count).map(|item| Target::Item(*item))
    }

    /// One act.
    #[expect(clippy::too_many_lines, reason = "a table of acts")]
    pub(super) fn act(&mut self, number: u16) {
        let shape = number >> 5;
        let n = self.next();
        match number % 32 {
            0..=9 => {
                self.finish(shape & 1 == 1);
                self.request();
                self.reply(shape);
            }
            10 | 11 => {
                self.finish(false);
                self.prompt();
                self.request();
            }
            // Said while calls run.
            12 => self.append(vec![Entry::message(format!("q{n}"), Role::User, format!("by the way {n}"))]),
            13 => {
                let fact = fact::Injected {
                    what: [InjectedKind::Reminder, InjectedKind::Memory, InjectedKind::Other]
                        [usize::from(shape % 3)],
                    text: format!("inject {n}").into_bytes().into(),
                };
                self.append(vec![fact.into()]);
            }
            14 | 15 => {
                let Some(target) = self.target(shape) else { return };
                let summary = (number % 32 == 15).then(|| format!("sum {n}"));
                let action = if summary.is_some() { ContextAction::Distill } else { ContextAction::Discard };
                self.may(|life| {
                    life.store.context(life.info.id(), action, vec![(target, summary)]).map(drop)
                });
            }
            16 => {
                let Some(target) = self.target(shape) else { return };
                self.may(|life| {
                    life.store.context(life.info.id(), ContextAction::Restore, vec![(target, None)]).map(drop)
                });
            }
            17 if shape.is_multiple_of(4) => {
                let fact = fact::ContextReplaced {
                    cause: ReplaceCause::Compaction,
                    order: Vec::new(),
                    tokens_before: None,
                };
                self.append(vec![
                    fact.into(),
                    Entry::message(format!("s{n}"), Role::User, format!("summary {n}")),
                ]);
            }
            18 if shape.is_multiple_of(4) => {
                let order = self.items.iter().rev().take(6).map(|item| ItemRef::Id(*item)).collect();
                let fact = fact::ContextReplaced { cause: ReplaceCause::Host, order, tokens_before: None };
                self.append(vec![fact.into()]);
            }
            19 if shape.is_multiple_of(2) => {
                let place = usize::from(shape) % self.points.len().max(1);
                let to = PointRef::Seq(self.points[place]);
                self.open.clear();
                self.append(vec![fact::Rewound { to }.into()]);
            }
            20 => {
                let items = self.target(shape).into_iter().filter_map(|target| match target {
                    Target::Item(item) => Some(ItemRef::Id(item)),
                    _ => None,
                });
                let fact = fact::HostCleared {
                    items: items.collect(),
                    calls: Vec::new(),
                    text: (shape & 1 == 1).then(|| b"[cleared]".as_slice().into()),
                };
                self.append(vec![fact.into()]);
            }
            21 if shape.is_multiple_of(3) => {
                let set = fact::PromptSet {
                    system: Some(format!("be better {}", shape % 2).into_bytes().into()),
                    tools: None,
                    model: None,
                    params: None,
                };
                self.append(vec![set.into()]);
            }
            22 => self.append(vec![fact::MessageAbandoned { key: format!("a{}", u64::from(shape)) }.into()]),
            23 => {
                // The same origin with another content: a revision.
                let origin = format!("msg:{}", u64::from(shape) % n);
                self.append(vec![
                    Entry::message(format!("v{n}"), Role::User, format!("rewritten {n}")).origin(origin),
                ]);
            }
            24 => self.append(vec![Entry::message(format!("y{n}"), Role::System, format!("system {n}"))]),
            25 => self.append(vec![
                Entry::message_parts(
                    format!("w{n}"),
                    Role::User,
                    vec![
                        PartEntry::text(""),
                        PartEntry::media("data:image/png;base64,QUJD", None),
                        PartEntry::media("not base 64!", Some("audio/x".to_owned())),
                        PartEntry::text(" \n"),
                    ],
                ),
                fact::FileChanged { path: "/f1".to_owned(), by: FileChanger::User }.into(),
            ]),
            26 => self.append(vec![
                Entry::tool_completed(format!("stray{n}"), "a result of nothing"),
                Entry::host_record("noise", None),
                fact::TodosReplaced { list: br#"[{"content":"x","status":"pending"}]"#.as_slice().into() }
                    .into(),
            ]),
            27 => {
                let Some(target) = self.target(shape) else { return };
                self.may(|life| life.store.pin(life.info.id(), vec![target]).map(drop));
            }
            28 => {
                let mut policy =
                    Policy::preset(["acp", "careful", "balanced"][usize::from(shape % 3)]).unwrap();
                policy.compress_reasoning.on = shape & 4 == 4;
                policy.compress_reasoning.max_tokens = 1;
                self.store.set_policy(Some(self.info.id()), &policy, None).unwrap();
            }
            29 => self.append(vec![
                fact::SessionChanged { title: Some(format!("t{n}")), ..fact::SessionChanged::default() }
                    .into(),
                fact::SessionClosed { reason: None }.into(),
            ]),
            _ => self.request(),
        }
    }

    /// A command may be refused.
    fn may(&mut self, act: impl FnOnce(&Self) -> Result<(), Error>) {
        match act(self) {
            Ok(()) | Err(Error::Rejected(_) | Error::NotFound { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }

    /// The last request, with all calls ended.
    pub(super) fn end(&mut self) {
        self.finish(false);
        self.request();
        self.reply(3);
        self.request();
    }
}

/// Every rule by age, at ages that short sessions reach.
pub(crate) fn every_age() -> serde_json::Value {
    serde_json::json!({"idle.tokens_min": 5, "idle.cold_share": 0.5, "idle.subagents": 2, "idle.notes": 2,
            "idle.reads": 2, "idle.shell_reads": 2, "idle.searches": 2, "idle.changes": 2, "idle.others": 2,
            "idle.superseded": 2, "idle.edits": 3, "idle.writes": 3, "idle.inputs": 3, "idle.reasoning": 1,
            "command_family": true, "state_query": true})
}
