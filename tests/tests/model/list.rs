//! The model: a plain list of the recorded events, and its answers about any moment.

use acpdb_engine::entry::StreamInfo;
use proptest::prelude::*;
use proptest_state_machine::ReferenceStateMachine;

/// A fact to append: the stream, the origin (if it has one) and the text.
#[derive(Clone, Debug)]
pub(crate) struct Fact {
    pub(crate) stream: u8,
    pub(crate) origin: Option<u8>,
    pub(crate) text: u8,
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// One commit, by the first or the second handle.
    Append { facts: Vec<Fact>, second: bool, split: bool },
    /// Commits of several threads at once, each by the first or the second handle.
    Together { commits: Vec<(Vec<Fact>, bool)> },
    /// A call with its result: read file `file` in a new turn.
    Call { stream: u8, file: u8, second: bool },
    /// Discard or restore the n-th call of a stream.
    Act { stream: u8, call: u8, restore: bool, second: bool },
    /// Rules act by themselves, or do not, for all streams.
    Policy { off: bool, second: bool },
    /// Erase the n-th call of a stream, and with it all that read the same file.
    Erase { stream: u8, call: u8, second: bool },
    /// Seals the complete segments.
    Seal { second: bool },
    /// Everything stops where it is and is opened again.
    Crash { power: bool },
    /// Close both handles and open them again.
    Reopen { delete_index: bool },
    /// Make the index, so that it exists although the store is small.
    Reindex,
    /// Hold a view of a stream from now on.
    Hold { stream: u8 },
    /// Have the events from here on told to a handle.
    Subscribe { second: bool },
    /// Compare a point of the past.
    Travel { at: u8 },
}

/// The model's memory of one event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Known {
    /// Whether no rule acts by itself.
    Policy(bool),
    /// Calls that read this file.
    Erased(u8),
    Opened(u8),
    /// Origin, text.
    Message(u8, Option<u8>, u8),
    /// The message it revises (place in the list), and the new text.
    Revised(u8, usize, u8),
    Turn(u8),
    Started(u8, u8),
    Finished(u8),
    /// The call (place of its start) that is hidden or shown again.
    Discarded(u8, usize),
    Restored(u8, usize),
}

impl Known {
    pub(crate) fn stream(&self) -> Option<u8> {
        match *self {
            Self::Policy(_) | Self::Erased(_) => None,
            Self::Opened(stream)
            | Self::Message(stream, ..)
            | Self::Revised(stream, ..)
            | Self::Turn(stream)
            | Self::Started(stream, _)
            | Self::Finished(stream)
            | Self::Discarded(stream, _)
            | Self::Restored(stream, _) => Some(stream),
        }
    }

    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Policy(_) => "policy_set",
            Self::Erased(_) => "erased",
            Self::Opened(_) => "session_opened",
            Self::Message(..) => "message_recorded",
            Self::Revised(..) => "item_revised",
            Self::Turn(_) => "turn_started",
            Self::Started(..) => "tool_call_started",
            Self::Finished(_) => "tool_call_finished",
            Self::Discarded(..) => "discarded",
            Self::Restored(..) => "restored",
        }
    }
}

/// The answer to a commit; the first place is zero if nothing was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    pub(crate) known_count: u64,
    pub(crate) event_count: u64,
    pub(crate) first: u64,
}

/// The model: the events, nothing else.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) log: Vec<Known>,
}

impl Model {
    pub(crate) fn open(&mut self, stream: u8) {
        if !self.log.contains(&Known::Opened(stream)) {
            self.log.push(Known::Opened(stream));
        }
    }

    /// The newest text of the message with this origin, and where it was first recorded.
    pub(crate) fn newest(&self, stream: u8, origin: u8) -> Option<(usize, u8)> {
        let first = self.log.iter().position(
            |known| matches!(known, Known::Message(s, Some(o), _) if (*s, *o) == (stream, origin)),
        )?;
        let text = self.log.iter().rev().find_map(|known| match known {
            Known::Revised(_, place, text) if *place == first => Some(*text),
            _ => None,
        });
        match self.log[first] {
            Known::Message(_, _, text_first) => Some((first, text.unwrap_or(text_first))),
            _ => None,
        }
    }

    /// Appends a commit; returns how many facts were known.
    pub(crate) fn append(&mut self, facts: &[Fact]) -> u64 {
        let mut known_count = 0;
        // A commit opens all its streams first.
        for fact in facts {
            self.open(fact.stream);
        }
        for fact in facts {
            match fact.origin.and_then(|origin| self.newest(fact.stream, origin)) {
                Some((_, text)) if text == fact.text => known_count += 1,
                Some((place, _)) => self.log.push(Known::Revised(fact.stream, place, fact.text)),
                None => self.log.push(Known::Message(fact.stream, fact.origin, fact.text)),
            }
        }
        known_count
    }

    /// Takes commits in an order in which each would have got its answer, if there is one: how many facts were known, how
    /// many events were recorded, and the place of the first.
    pub(crate) fn in_some_order(&self, commits: &[(&[Fact], Outcome)]) -> Option<Self> {
        if commits.is_empty() {
            return Some(self.clone());
        }
        (0..commits.len()).find_map(|next| {
            let mut model = self.clone();
            let (facts, told) = commits[next];
            let known_count = model.append(facts);
            let event_count = (model.log.len() - self.log.len()) as u64;
            let first = if event_count > 0 { self.log.len() as u64 + 1 } else { 0 };
            if told != (Outcome { known_count, event_count, first }) {
                return None;
            }
            let rest: Vec<_> = [&commits[..next], &commits[next + 1..]].concat();
            model.in_some_order(&rest)
        })
    }

    pub(crate) fn call(&mut self, stream: u8, file: u8) {
        self.open(stream);
        self.log.extend([Known::Turn(stream), Known::Started(stream, file), Known::Finished(stream)]);
    }

    pub(crate) fn starts(&self, stream: u8, at: usize) -> Vec<(usize, u8)> {
        let log = self.log[..at].iter().enumerate();
        log.filter_map(|(place, known)| match known {
            Known::Started(s, file) if *s == stream => Some((place, *file)),
            _ => None,
        })
        .collect()
    }

    /// Whether a call's output is hidden after the first `at` events: superseded by a later read of its file, or
    /// discarded, and not shown again since.
    pub(crate) fn hidden(&self, call: usize, at: usize) -> (bool, bool) {
        let Known::Started(stream, file) = self.log[call] else { return (false, false) };
        let (mut superseded, mut discarded) = (false, false);
        let mut off = self.is_off(call);
        for place in call + 1..at {
            match self.log[place] {
                Known::Policy(now) => off = now,
                // Every call of the model finishes in its commit, so the finish is two events after the turn.
                Known::Finished(s) if s == stream && place > call + 1 && !off => {
                    superseded |= matches!(self.log[place - 1], Known::Started(_, f) if f == file);
                }
                Known::Discarded(_, target) if target == call => discarded = true,
                Known::Restored(_, target) if target == call => (superseded, discarded) = (false, false),
                _ => {}
            }
        }
        (superseded, discarded)
    }

    /// Whether the rules are off after the first `at` events.
    pub(crate) fn is_off(&self, at: usize) -> bool {
        let policy = |known: &Known| if let Known::Policy(off) = known { Some(*off) } else { None };
        self.log[..at].iter().rev().find_map(policy).unwrap_or_default()
    }

    pub(crate) fn policy(&mut self, off: bool) {
        self.log.push(Known::Policy(off));
    }

    /// Whether a call that began at `place` is erased after the first `at` events.
    pub(crate) fn is_erased(&self, place: usize, at: usize) -> bool {
        let Known::Started(_, file) = self.log[place] else { return false };
        self.log[..at].iter().skip(place).any(|known| *known == Known::Erased(file))
    }

    /// Erases the n-th call of a stream; its place.
    pub(crate) fn erase(&mut self, stream: u8, call: u8) -> Option<usize> {
        let starts = self.starts(stream, self.log.len());
        let (place, file) = *starts.get(usize::from(call) % starts.len().max(1))?;
        if !self.is_erased(place, self.log.len()) {
            self.log.push(Known::Erased(file));
        }
        Some(place)
    }

    pub(crate) fn act(&mut self, stream: u8, call: u8, restore: bool) -> Option<usize> {
        let starts = self.starts(stream, self.log.len());
        let (place, _) = *starts.get(usize::from(call) % starts.len().max(1))?;
        // The effect of an act on a call that is gone is of no interest here.
        if self.is_erased(place, self.log.len()) {
            return None;
        }
        let (superseded, discarded) = self.hidden(place, self.log.len());
        let changes = if restore { superseded || discarded } else { !superseded && !discarded };
        if changes {
            self.log.push(if restore {
                Known::Restored(stream, place)
            } else {
                Known::Discarded(stream, place)
            });
        }
        Some(place)
    }

    /// The outputs that the model expects in the context of a stream after `at` events.
    pub(crate) fn context(&self, stream: u8, at: usize) -> Vec<Shown> {
        let mut out = Vec::new();
        for (place, known) in self.log[..at].iter().enumerate() {
            match known {
                Known::Message(s, _, text_first) if *s == stream => {
                    let newest = self.log[..at].iter().rev().find_map(|known| match known {
                        Known::Revised(_, target, text) if *target == place => Some(*text),
                        _ => None,
                    });
                    out.push(Shown::Whole(text(newest.unwrap_or(*text_first))));
                }
                Known::Started(s, file) if *s == stream => {
                    let finished = place + 1 < at;
                    let (superseded, discarded) = self.hidden(place, at);
                    let output = if finished { output(*file) } else { String::new() };
                    out.push(if self.is_erased(place, at) {
                        Shown::Erased
                    } else if self.is_erased(place, self.log.len()) && finished {
                        Shown::Unreadable
                    } else if superseded || discarded {
                        Shown::Hidden
                    } else {
                        Shown::Whole(output)
                    });
                }
                _ => {}
            }
        }
        out
    }
}

/// An output as a context shows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Whole(String),
    Hidden,
    /// Known to be gone.
    Erased,
    /// It was there then, and its text is gone now.
    Unreadable,
}

pub(crate) fn text(text: u8) -> String {
    format!("text {text} ").repeat(usize::from(text) * 20 + 1)
}

pub(crate) fn output(file: u8) -> String {
    format!("line of file {file}, long enough to be worth hiding\n").repeat(12)
}

pub(crate) fn info(stream: u8) -> StreamInfo {
    StreamInfo::session("opencode", format!("s{stream}"))
}

impl ReferenceStateMachine for Model {
    type State = Self;
    type Transition = Step;

    fn init_state() -> BoxedStrategy<Self> {
        Just(Self { log: vec![Known::Policy(false)] }).boxed()
    }

    fn transitions(_: &Self) -> BoxedStrategy<Step> {
        let fact = (0..3_u8, prop::option::of(0..4_u8), 0..5_u8).prop_map(|(stream, origin, text)| Fact {
            stream,
            origin,
            text,
        });
        // A fact that names another of its own call begins a new commit, between which those of other threads may fall.
        let distinct = |mut facts: Vec<Fact>| {
            let mut named = std::collections::HashSet::new();
            facts.retain(|fact| fact.origin.is_none_or(|origin| named.insert((fact.stream, origin))));
            facts
        };
        let commit = (prop::collection::vec(fact.clone(), 1..4).prop_map(distinct), any::<bool>());
        prop_oneof![
            2 => prop::collection::vec(commit, 2..5).prop_map(|commits| Step::Together { commits }),
            6 => (prop::collection::vec(fact, 1..5), any::<bool>(), any::<bool>())
                .prop_map(|(facts, second, split)| Step::Append { facts, second, split }),
            6 => (0..3_u8, 0..3_u8, any::<bool>()).prop_map(|(stream, file, second)| Step::Call { stream, file, second }),
            4 => (0..3_u8, any::<u8>(), any::<bool>(), any::<bool>())
                .prop_map(|(stream, call, restore, second)| Step::Act { stream, call, restore, second }),
            1 => (any::<bool>(), any::<bool>()).prop_map(|(off, second)| Step::Policy { off, second }),
            2 => (0..3_u8, any::<u8>(), any::<bool>()).prop_map(|(stream, call, second)| Step::Erase { stream, call, second }),
            1 => any::<bool>().prop_map(|second| Step::Seal { second }),
            1 => any::<bool>().prop_map(|power| Step::Crash { power }),
            1 => any::<bool>().prop_map(|second| Step::Subscribe { second }),
            1 => any::<bool>().prop_map(|delete_index| Step::Reopen { delete_index }),
            1 => Just(Step::Reindex),
            2 => (0..3_u8).prop_map(|stream| Step::Hold { stream }),
            2 => any::<u8>().prop_map(|at| Step::Travel { at }),
        ]
        .boxed()
    }

    /// An erased text stays erased, from whatever door it comes again: that has tests of its own, and here every call of a file says the
    /// same.
    fn preconditions(state: &Self, step: &Step) -> bool {
        !matches!(step, Step::Call { file, .. } if state.log.contains(&Known::Erased(*file)))
    }

    fn apply(mut state: Self, step: &Step) -> Self {
        match step {
            Step::Append { facts, .. } => drop(state.append(facts)),
            // One of the orders it may come out in; which one it was, only the store knows.
            Step::Together { commits } => {
                for (facts, _) in commits {
                    state.append(facts);
                }
            }
            Step::Call { stream, file, .. } => state.call(*stream, *file),
            Step::Act { stream, call, restore, .. } => drop(state.act(*stream, *call, *restore)),
            Step::Policy { off, .. } => state.policy(*off),
            Step::Erase { stream, call, .. } => drop(state.erase(*stream, *call)),
            _ => {}
        }
        state
    }
}
