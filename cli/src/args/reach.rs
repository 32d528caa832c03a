//! How many stores a verb knows of, and the words by which it names a session or an item.

use super::{Ask, ExportAct, MemoryAct, TaskAct, TodoAct, Verb};

/// The stores that a verb can answer from, where several are named.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reach<'a> {
    /// All.
    All,
    /// All, unless one of these names is found in one of them.
    AllOr(Vec<&'a str>),
    /// The one that holds what these names mean; without a name, the one with the newest session.
    One(Vec<&'a str>),
    /// One that is named alone: the verb records, or it is about a store itself.
    Apart,
}

/// A session that is named, and the words of a question, of which the first may be one.
fn asked<'a>(session: Option<&'a String>, words: &'a [String]) -> Vec<&'a str> {
    let first = words.first().filter(|_| session.is_none());
    session.or(first).map(String::as_str).into_iter().collect()
}

fn one<'a>(names: &[Option<&'a String>]) -> Reach<'a> {
    Reach::One(names.iter().flatten().map(|name| name.as_str()).collect())
}

fn question<'a>(session: Option<&'a String>, ask: &'a Ask) -> Reach<'a> {
    Reach::AllOr(asked(session, &ask.query))
}

impl Verb {
    /// How far this verb reaches.
    pub(crate) fn reach(&self) -> Reach<'_> {
        match self {
            Self::Home => Reach::All,
            Self::Sessions(args) => question(args.session.as_ref(), &args.ask),
            Self::Log(args) => question(args.session.as_ref(), &args.ask),
            Self::List(args) => question(args.session.as_ref(), &args.ask),
            Self::Search(args) => Reach::AllOr(asked(args.session.as_ref(), &[])),
            Self::Cost(args) => Reach::AllOr(asked(args.session.as_ref(), &args.words)),
            Self::History(args) if args.memory.is_some() || args.todo.is_some() => {
                one(&[args.session.as_ref()])
            }
            Self::History(args) if args.chain.is_some() => one(&[args.chain.as_ref(), args.session.as_ref()]),
            Self::History(args) => question(args.session.as_ref(), &args.ask),
            Self::Memory(MemoryAct::List(args)) => Reach::AllOr(asked(args.scope.session.as_ref(), &[])),
            Self::Show(args) => one(&[Some(&args.id), args.session.as_ref()]),
            Self::Explain(args) => one(&[Some(&args.id), args.session.as_ref()]),
            Self::Blame(args) => one(&[Some(&args.what), args.session.as_ref()]),
            Self::Diff(args) => one(&[args.session.as_ref()]),
            Self::Stats(args) => Reach::One(asked(args.session.as_ref(), &args.words)),
            Self::Context(args) if args.act.is_none() => {
                Reach::One(args.session.name().into_iter().collect())
            }
            Self::At(args) => Reach::One(args.session.name().into_iter().collect()),
            Self::Resume(args) => Reach::One(args.session.name().into_iter().collect()),
            Self::Simulate(args) if !args.all => Reach::One(args.session.name().into_iter().collect()),
            Self::Export(ExportAct::Html(args)) if !args.all => {
                Reach::One(args.session.name().into_iter().collect())
            }
            Self::Export(ExportAct::Poster(args)) => Reach::One(args.session.name().into_iter().collect()),
            Self::Todo(TodoAct::List(args) | TodoAct::Stuck(args) | TodoAct::History(args))
            | Self::Task(TaskAct::List(args) | TaskAct::Scratchpad(args)) => one(&[args.session.as_ref()]),
            _ => Reach::Apart,
        }
    }
}
