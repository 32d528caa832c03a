//! How many stores a verb knows of, and the words by which it names a session, an item or a point.

use super::{
    CheckpointAct, CheckpointVerb, ContextAct, ContextArgs, ExportAct, MemoryAct, MemoryArgs, ServiceAct,
    SessionNamed, TaskAct, Verb,
};
use crate::global::Global;

/// The stores that a verb can answer from, where several are named.
#[derive(Debug)]
pub(crate) enum Reach<'a> {
    /// It needs none.
    Without,
    /// One that is named alone: the verb records, or it is about a store itself.
    Apart,
    /// Those that hold what is named.
    Naming(Naming<'a>),
}

/// The words by which a verb names a session, an item or a point.
#[derive(Debug, Default)]
pub(crate) struct Naming<'a> {
    /// Without a name it answers from all stores, else from the one with the newest session.
    pub(crate) lists: bool,
    /// A session that is named by an option: it has to be somewhere.
    pub(crate) session: Option<&'a str>,
    /// A word that names a session or an item, if there is one of that name.
    pub(crate) word: Option<&'a str>,
    /// Points in time.
    pub(crate) points: Vec<&'a str>,
}

impl<'a> Naming<'a> {
    fn of(session: Option<&'a str>, word: Option<&'a String>) -> Self {
        Self { session, word: word.map(String::as_str), ..Self::default() }
    }

    /// Of a verb that lists: the first word of a question may be a session.
    fn question(session: Option<&'a str>, words: &'a [String]) -> Self {
        Self { lists: true, ..Self::of(session, words.first().filter(|_| session.is_none())) }
    }

    /// Of a session by its place or by the option.
    fn named(named: &'a SessionNamed, global: &'a Global) -> Self {
        Self { session: named.name(global), ..Self::default() }
    }
}

impl Verb {
    /// How far this verb reaches.
    pub(crate) fn reach<'a>(&'a self, global: &'a Global) -> Reach<'a> {
        let session = global.session.as_deref();
        Reach::Naming(match self {
            Self::Home => Naming { lists: true, ..Naming::default() },
            Self::Sessions(args) => Naming::question(session, &args.ask.query),
            Self::Log(args) => Naming::question(session, &args.ask.query),
            Self::Cost(args) => Naming::question(session, &args.words),
            Self::Search(_)
            | Self::Memory(MemoryArgs {
                act: MemoryAct::List(_) | MemoryAct::History(_) | MemoryAct::Insights,
                ..
            }) => Naming::question(session, &[]),
            Self::History(args) if args.todo.is_some() => Naming::of(session, None),
            Self::History(args) if args.chain.is_some() => Naming::of(session, args.chain.as_ref()),
            Self::History(args) => {
                // Without any condition it is about one session.
                let is_bare = args.ask.query.is_empty() && args.file.is_none();
                let asked = Naming::question(session, &args.ask.query);
                Naming { lists: !is_bare || args.all, ..asked }
            }
            Self::Show(args) => Naming::of(session, Some(&args.id)),
            Self::Explain(args) => Naming::of(session, Some(&args.id)),
            Self::Blame(args) => Naming::of(session, Some(&args.what)),
            Self::Diff(args) => {
                let points = vec![args.from.as_str(), args.to.as_str()];
                Naming { points, ..Naming::of(session, None) }
            }
            Self::Stats(args) => Naming { lists: false, ..Naming::question(session, &args.words) },
            Self::Context(args) if args.act.is_none() => Naming::named(&args.session, global),
            Self::Resume(args) => Naming::named(&args.session, global),
            Self::Lost(args) => Naming::named(&args.session, global),
            Self::Simulate(args) if !args.all => Naming::named(&args.session, global),
            Self::Export(ExportAct::Html(args)) if !args.all => Naming::named(&args.session, global),
            Self::Export(ExportAct::Poster(args)) => Naming::named(&args.session, global),
            Self::Todo(_) | Self::Task(TaskAct::List | TaskAct::Scratchpad) => Naming::of(session, None),
            Self::Config(_)
            | Self::Completions(_)
            | Self::Man(_)
            | Self::Checkpoint(CheckpointVerb { act: CheckpointAct::Check(_) })
            | Self::Context(ContextArgs { act: Some(ContextAct::Lint(_)), .. })
            | Self::Demo(_)
            | Self::Detach(_)
            | Self::Service(super::Service { act: ServiceAct::Status | ServiceAct::Remove, .. }) => {
                return Reach::Without;
            }
            Self::Attach(args) if args.status => return Reach::Without,
            _ => return Reach::Apart,
        })
    }
}
