//! Made-up coding sessions: the same number of calls gives the same session.
//!
//! The mix follows recorded sessions: of 100 calls about 35 read, 22 edit, 14 search, 22 run a command, 5 write todos
//! and 2 fetch a page; one in 12 fails. Each call is a model step of its own; every twelfth step says something. Files
//! are taken from a set that grows with the session, the newest ones more often.

use acpdb_engine::entry::{Entry, StreamInfo, fact};
use acpdb_engine::event::{Report, Role, Usage};
use acpdb_engine::ids::Micros;
use acpdb_engine::{Atomicity, Batch, Store};

use crate::Outcome;

/// A small generator of numbers (splitmix64).
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        let limit = u64::try_from(limit).unwrap_or(1).max(1);
        usize::try_from(self.next() % limit).unwrap_or(0)
    }
}

/// A session being made.
pub(crate) struct Session {
    pub(crate) info: StreamInfo,
    numbers: Numbers,
    calls: usize,
    files: usize,
    /// Factor on the usual length of outputs.
    length: usize,
    /// The time at which the session began, if it has times and the usage of requests.
    began: Option<Micros>,
}

const WORDS: [&str; 16] = [
    "parse", "the", "session", "file", "and", "return", "error", "when", "context", "value", "is", "not",
    "found", "in", "store", "log",
];

impl Session {
    pub(crate) fn new(name: &str) -> Self {
        let seed =
            name.bytes().fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte)));
        let info = StreamInfo {
            project: Some("/home/user/project".to_owned()),
            cwd: Some("/home/user/project".to_owned()),
            ..StreamInfo::session("claude-code", name)
        };
        Self { info, numbers: Numbers(seed), calls: 0, files: 12, length: 1, began: None }
    }

    /// A session with outputs as long as those of recorded sessions, whose texts are some 3 KB a call.
    pub(crate) fn wordy(name: &str) -> Self {
        Self::of_length(name, 6)
    }

    /// A session with outputs `length` times as long as usual.
    pub(crate) fn of_length(name: &str, length: usize) -> Self {
        Self { length, ..Self::new(name) }
    }

    /// A session with a minute between calls, a model, and the usage of each request.
    pub(crate) fn billed(name: &str, began: Micros) -> Self {
        Self { began: Some(began), ..Self::new(name) }
    }

    /// A text of about `bytes` bytes.
    pub(crate) fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        let mut line = 0;
        while text.len() < bytes {
            if line == 0 {
                text.push_str("    ");
            }
            text.push_str(WORDS.get(self.numbers.below(WORDS.len())).unwrap_or(&"word"));
            line = (line + 1) % 10;
            text.push(if line == 0 { '\n' } else { ' ' });
        }
        text
    }

    fn file(&mut self) -> String {
        let pick = self.numbers.below(self.files).max(self.numbers.below(self.files));
        format!("/home/user/project/src/part{}/module{pick}.rs", pick % 9)
    }

    /// The provider's report on a call's request.
    fn usage(number: usize) -> Entry {
        let sent = 4_000 + 400 * u64::try_from(number).unwrap_or(0);
        let usage = Usage {
            input: Some(8),
            cache_read: Some(sent),
            cache_write: Some(400),
            output: Some(300),
            ..Usage::default()
        };
        let report = Report { model: Some("claude-sonnet-4-5".to_owned()), usage, ..Report::default() };
        Entry::from(fact::MessageFinished { key: format!("m{number}"), report })
    }

    /// The entries of the next call: its step, start and finish, and now and then a message.
    pub(crate) fn call(&mut self, entries: &mut Vec<Entry>) {
        let number = self.calls;
        let first = entries.len();
        self.calls += 1;
        if number % 40 == 39 {
            self.files += 1;
        }
        let text_bytes = (150 + self.numbers.below(500)) * self.length;
        if number.is_multiple_of(120) {
            entries.push(Entry::prompt(format!("p{number}")));
            let text = self.text(300);
            entries.push(Entry::message(format!("u{number}"), Role::User, text));
        }
        entries.push(Entry::step(format!("s{number}")).origin(format!("turn:s{number}")));
        if number.is_multiple_of(12) {
            let text = self.text(400);
            let message = Entry::message(format!("m{number}"), Role::Assistant, text);
            entries.push(message.origin(format!("msg:m{number}")));
        }
        let call = format!("toolu_{number:08}");
        let (tool, params) = self.tool();
        entries.push(Entry::tool_started(&call, tool, params).origin(format!("call:{call}:start")));
        let text = self.text(text_bytes);
        let finish = if self.numbers.below(12) == 0 {
            Entry::tool_failed(&call, text)
        } else {
            Entry::tool_completed(&call, text)
        };
        entries.push(finish.origin(format!("call:{call}:finish")));
        if let Some(began) = self.began {
            entries.push(Self::usage(number));
            let minute = i64::try_from(number).unwrap_or(0) * 60_000_000;
            for entry in entries.iter_mut().skip(first) {
                entry.host_time = Some(Micros(began.get() + minute));
            }
        }
    }

    fn tool(&mut self) -> (&'static str, String) {
        let pick = self.numbers.below(100);
        match pick {
            0..35 => {
                let file = self.file();
                if pick < 8 {
                    let offset = 100 * self.numbers.below(6);
                    ("Read", format!(r#"{{"file_path":"{file}","offset":{offset},"limit":100}}"#))
                } else {
                    ("Read", format!(r#"{{"file_path":"{file}"}}"#))
                }
            }
            35..57 => {
                let (file, old, new) = (self.file(), self.numbers.next(), self.numbers.next());
                (
                    "Edit",
                    format!(
                        r#"{{"file_path":"{file}","old_string":"let a = {old};","new_string":"let a = {new};"}}"#
                    ),
                )
            }
            57..71 => {
                let pattern = self.numbers.below(60);
                ("Grep", format!(r#"{{"pattern":"fn name{pattern}","path":"/home/user/project/src"}}"#))
            }
            71..93 => {
                let command = match self.numbers.below(4) {
                    0 => "cargo test".to_owned(),
                    1 => "git status".to_owned(),
                    2 => "git diff".to_owned(),
                    _ => format!("cargo test name{}", self.numbers.below(500)),
                };
                ("Bash", format!(r#"{{"command":"{command}","description":"Run it"}}"#))
            }
            93..98 => {
                let done = self.numbers.below(6);
                let todos: Vec<String> = (0..6)
                    .map(|item| {
                        let status = if item < done { "completed" } else { "pending" };
                        format!(r#"{{"content":"Do part {item}","status":"{status}","activeForm":"Doing part {item}"}}"#)
                    })
                    .collect();
                ("TodoWrite", format!(r#"{{"todos":[{}]}}"#, todos.join(",")))
            }
            _ => (
                "WebFetch",
                format!(
                    r#"{{"url":"https://example.com/{}","prompt":"What is it?"}}"#,
                    self.numbers.below(30)
                ),
            ),
        }
    }

    /// Records `count` calls more, in commits of some thousand events.
    pub(crate) fn record(&mut self, store: &Store, count: usize) -> Outcome<()> {
        let mut left = count;
        while left > 0 {
            let now = left.min(2000);
            let mut entries = Vec::with_capacity(now * 4);
            for _ in 0..now {
                self.call(&mut entries);
            }
            let batch = Batch { stream: self.info.clone(), entries };
            let _ = store.commit(&[batch], Atomicity::Split)?;
            left -= now;
        }
        Ok(())
    }
}
