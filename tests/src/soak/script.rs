//! The steps of the processes of a life: generated, and known before they happen.

use acpdb_engine::Batch;
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;

use super::Dice;

/// Sessions of a life.
pub const SESSION_COUNT: usize = 3;

/// One thing to do. Each but the last two is one commit.
#[derive(Debug, Clone)]
pub enum Step {
    /// Messages to one or several sessions, in one commit: session, text.
    Say(Vec<(usize, String)>),
    /// A call with its result.
    Call {
        /// In which session.
        session: usize,
        /// Its id.
        call: String,
        /// Its output.
        output: String,
    },
    /// Hides the call.
    Discard(usize, String),
    /// Hides the call behind a summary.
    Distill(usize, String, String),
    /// Shows it again.
    Restore(usize, String),
    /// Keeps the call from the rules.
    Pin(usize, String),
    /// Another policy, by name, with a reason.
    Policy(&'static str, String),
    /// Erases the call's texts.
    Erase(usize, String),
    /// Seals the complete segments. No commit.
    Seal,
    /// Close (or just drop) the store and open it again.
    Reopen {
        /// Say goodbye first.
        close: bool,
    },
}

/// A session by its number.
#[must_use]
pub fn session(number: usize) -> StreamInfo {
    StreamInfo { project: Some("shop".to_owned()), ..StreamInfo::session("soak", format!("s{number}")) }
}

impl Step {
    /// The recorded events: a line for each, as [`super::auditor::line`] reads them back.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        match self {
            Self::Say(messages) => {
                messages.iter().map(|(_, text)| format!("message_recorded {text}")).collect()
            }
            Self::Call { call, output, .. } => vec![
                format!("tool_call_started {}", parameters(call)),
                format!("tool_call_finished {output}"),
            ],
            Self::Discard(..) => vec!["discarded".to_owned()],
            Self::Distill(_, _, summary) => vec![format!("distilled {summary}")],
            Self::Restore(..) => vec!["restored".to_owned()],
            Self::Pin(..) => vec!["pinned".to_owned()],
            Self::Policy(..) => vec!["policy_set".to_owned()],
            Self::Erase(_, call) => vec![format!("erased {call}")],
            Self::Seal | Self::Reopen { .. } => Vec::new(),
        }
    }

    /// The sessions it appends facts to.
    #[must_use]
    pub fn sessions(&self) -> Vec<usize> {
        match self {
            Self::Say(messages) => messages.iter().map(|(session, _)| *session).collect(),
            Self::Call { session, .. } => vec![*session],
            _ => Vec::new(),
        }
    }

    /// The facts that the step appends; empty for steps that append none.
    #[must_use]
    pub fn batches(&self) -> Vec<Batch> {
        match self {
            Self::Say(messages) => messages
                .iter()
                .map(|(number, text)| Batch {
                    stream: session(*number),
                    entries: vec![Entry::message(
                        text.chars().take(12).collect::<String>(),
                        Role::User,
                        text.clone(),
                    )],
                })
                .collect(),
            Self::Call { session: number, call, output } => vec![Batch {
                stream: session(*number),
                entries: vec![
                    Entry::tool_started(call, "read", parameters(call)),
                    Entry::tool_completed(call, output.clone()),
                ],
            }],
            _ => Vec::new(),
        }
    }
}

fn parameters(call: &str) -> String {
    format!(r#"{{"filePath":"src/{call}.rs"}}"#)
}

/// A line as it reads once a call is erased.
#[must_use]
pub fn without(line: &str, call: &str) -> Option<&'static str> {
    if line.strip_prefix("tool_call_started ").is_some_and(|rest| rest == parameters(call)) {
        return Some("tool_call_started [erased]");
    }
    let output = line.strip_prefix("tool_call_finished ").and_then(|rest| rest.strip_prefix(call));
    output.is_some_and(|rest| rest.starts_with(' ')).then_some("tool_call_finished [erased]")
}

/// Texts that may be nowhere in a store in which a call is erased.
#[must_use]
pub fn traces(call: &str) -> [String; 2] {
    // Its id, and the path it names, stay.
    [parameters(call), format!("{call} {FILLER}")]
}

/// The words behind the mark of every text.
const FILLER: &str = "says ";

/// A text that no other step has, of one of a few lengths.
fn text(dice: &mut Dice, mark: &str) -> String {
    let length = dice.pick(&[12, 60, 300, 700, 1900], 12);
    let filler = char::from(b'a' + u8::try_from(dice.below(26)).unwrap_or(0));
    format!("{mark} {FILLER}{}", String::from(filler).repeat(length))
}

/// The steps of one process. `name` marks its texts.
#[must_use]
pub fn script(dice: &mut Dice, name: &str, step_count: usize) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut calls: Vec<(usize, String)> = Vec::new();
    let mut hidden: Vec<(usize, String)> = Vec::new();
    for number in 0..step_count {
        let mark = format!("{name}-{number}");
        let session = dice.below(SESSION_COUNT);
        let step = match dice.below(12) {
            4 => {
                let count = 2 + dice.below(3);
                let messages =
                    (0..count).map(|part| (part % SESSION_COUNT, text(dice, &format!("{mark}.{part}"))));
                // Batches of one commit are by stream.
                let mut messages: Vec<_> = messages.collect();
                messages.truncate(SESSION_COUNT);
                Step::Say(messages)
            }
            5 | 6 => {
                calls.push((session, mark.clone()));
                Step::Call { session, output: text(dice, &mark), call: mark }
            }
            7 if !calls.is_empty() => {
                let (session, call) = calls.swap_remove(dice.below(calls.len()));
                hidden.push((session, call.clone()));
                Step::Discard(session, call)
            }
            8 if !calls.is_empty() => {
                let (session, call) = calls.swap_remove(dice.below(calls.len()));
                hidden.push((session, call.clone()));
                Step::Distill(session, call, format!("{mark} in short"))
            }
            9 if !hidden.is_empty() => {
                let (session, call) = hidden.swap_remove(dice.below(hidden.len()));
                Step::Restore(session, call)
            }
            10 if !calls.is_empty() && dice.one_in(2) => {
                let (session, call) = calls.swap_remove(dice.below(calls.len()));
                Step::Erase(session, call)
            }
            10 if !calls.is_empty() && dice.one_in(2) => {
                let (session, call) = calls.swap_remove(dice.below(calls.len()));
                Step::Pin(session, call)
            }
            10 if dice.one_in(3) => Step::Policy(dice.pick(&["careful", "off"], "careful"), mark),
            11 if dice.one_in(2) => Step::Seal,
            11 => Step::Reopen { close: dice.one_in(2) },
            _ => Step::Say(vec![(session, text(dice, &mark))]),
        };
        steps.push(step);
    }
    steps
}
