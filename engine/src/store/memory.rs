//! Memory on an open store: a session's, its project's and the user's seen as one, and commands on it.
//!
//! ```text
//! MemoryScope {session?, project?} --> layers: session, project, user --> Memory::read(now) --> MemoryView
//!                                             |
//! MemoryCommand --decide-- lifespan chooses --+--> one commit in that layer's stream (opened if it is new)
//! ```
//!
//! Session items go to the session's stream, project items to the project's; where a scope has only one of the two, both
//! go there. Permanent items go to the stream of the store's user, which every session and project sees. Facts that a session
//! records go the same ways (see `routes`); facts that a caller gives to a project's own stream stay there.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use crate::command::Rejection;
use crate::command::memory::{self as command, MemoryCommand, MemoryRejection};
use crate::entry::StreamInfo;
use crate::entry::fact::Cleaner as _;
use crate::error::Error;
use crate::event::{Actor, Lifespan, MemoryKind, Payload, Scope};
use crate::fold::memory::{Confidence, MemoryLayer, MemoryState, MemoryView};
use crate::ids::{BodyId, ItemId, Micros, Seq, StreamId};
use crate::text::{Signer, likeness::nearest};

use super::fetch::bare;
use super::redact::Pass;
use super::view::At;
use super::write::{CommandDrafts, Signers, unsigned};
use super::{Store, StoreInner, View};

/// The scope of a memory: a session's together with its project's, or a project's alone.
///
/// ```
/// use acpdb_engine::{MemoryScope, StreamInfo};
///
/// let session = StreamInfo::session("my-agent", "run-1");
/// let its_own_and_its_projects = MemoryScope::session(session.id());
/// let one_projects = MemoryScope::project("shop");
/// assert_ne!(its_own_and_its_projects, one_projects);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct MemoryScope {
    /// The session.
    pub session: Option<StreamId>,
    /// Name of the project; `None`: the session's own, if it has one.
    pub project: Option<String>,
}

impl MemoryScope {
    /// A session's memory and its project's.
    pub fn session(session: StreamId) -> Self {
        Self { session: Some(session), project: None }
    }

    /// A project's memory.
    pub fn project(name: impl Into<String>) -> Self {
        Self { session: None, project: Some(name.into()) }
    }
}

/// The receipt for a command on memory. Durable when you hold it.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
#[must_use]
pub struct MemoryReceipt {
    /// Id of the item that was added, or that the command was about.
    pub id: String,
    /// The stream it lives in.
    pub stream: StreamId,
    /// The new item, if one was added; absent if an equal value was reinforced instead.
    pub item: Option<ItemId>,
    /// Last seq of the commit.
    pub last_seq: Seq,
}

/// An item of memory that holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remembered {
    /// Its id, such as `p3`, by which commands name it.
    pub id: String,
    /// The stream that it lives in: the session's, its project's or the user's.
    pub stream: StreamId,
    /// Its place in the log, by which it is restored or explained.
    pub item: ItemId,
    /// A fact, a preference, a decision or a note.
    pub kind: MemoryKind,
    /// How long it is to hold.
    pub lifespan: Lifespan,
    /// Its subject, in a word of the caller's.
    pub category: String,
    /// The name of a preference's setting: a later value of the same category and key takes its place.
    pub key: Option<String>,
    /// The text; `None` if it was erased, or is damaged.
    pub value: Option<String>,
    /// Who stands behind it: who said it, or a person who confirmed it. Words of a model are to be shown as such.
    pub said_by: Actor,
    /// How sure it is: as recorded, more with each confirmation, less with time.
    pub confidence: Confidence,
}

/// The memory of a scope as of one seq.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let store = acpdb_engine::Store::builder(folder.path().join("store")).open()?;
/// # let session = store.session(acpdb_engine::StreamInfo::session("my-agent", "run-1"));
/// # let _ = session.append([acpdb_engine::Entry::step("step-1")])?;
/// use acpdb_engine::{MemoryScope, Seq};
///
/// let memory = store.memory(&MemoryScope::session(session.id()), Seq::MAX)?;
/// for held in memory.current(store.now()) {
///     println!("{}: {}", held.id, held.value.as_deref().unwrap_or("(erased)"));
/// }
/// assert!(memory.current(store.now()).is_empty()); // nothing was remembered yet
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Memory {
    inner: Arc<StoreInner>,
    layers: Vec<ScopeLayer>,
    at: Seq,
}

#[derive(Clone, Debug)]
struct ScopeLayer {
    stream: StreamId,
    records: Lifespan,
    /// Absent for a project that has no events yet.
    view: Option<View>,
    signer: Signer,
}

impl Memory {
    /// The seq it is read at.
    pub fn at(&self) -> Seq {
        self.at
    }

    /// The newest event of the streams that it is read from, or the newest erasure, which takes texts of any stream: as long as that is the same,
    /// so is the memory.
    ///
    /// # Errors
    /// [`Error::Io`] if the log cannot be read.
    #[doc(hidden)]
    pub fn head(&self) -> Result<Seq, Error> {
        let heads =
            self.layers.iter().filter_map(|layer| layer.view.as_ref()).map(|view| view.state().head());
        Ok(heads.max().unwrap_or(Seq::ZERO).max(self.inner.newest_erasure()?))
    }

    /// Whether nothing was ever remembered, as far as that is known without a look at it.
    #[doc(hidden)]
    pub fn is_empty(&self) -> bool {
        let is_empty = |view: &View| !view.state().may_remember();
        self.layers.iter().all(|layer| layer.view.as_ref().is_none_or(is_empty))
    }

    /// The items that hold at the time `now`, in the order of recording. If several scopes have a preference, the innermost one
    /// counts: the session's before the project's before the user's. Later appends do not show.
    ///
    /// Cost: O(items that were ever remembered), and a read of each value.
    pub fn current(&self, now: Micros) -> Vec<Remembered> {
        self.read(now, |view| {
            let current = view.current().into_iter();
            let held = current.map(|(stream, item)| Remembered {
                id: item.id().to_owned(),
                stream,
                item: item.item(),
                kind: item.kind(),
                lifespan: item.lifespan(),
                category: item.category().to_owned(),
                key: item.key().map(str::to_owned),
                value: view.text(&item),
                said_by: item.said_by(),
                confidence: item.confidence(now),
            });
            held.collect()
        })
    }

    /// A text of it; `None` if it is erased or damaged: the item is shown without it.
    pub(super) fn text(&self, body: BodyId) -> Option<String> {
        // An item whose text is erased or damaged is shown without it.
        let bytes = self.inner.body(body).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Its streams, innermost first, each with its memory.
    pub(super) fn layers(&self) -> impl Iterator<Item = (StreamId, Lifespan, &MemoryState, &Signer)> {
        static EMPTY: LazyLock<MemoryState> = LazyLock::new(MemoryState::default);
        self.layers.iter().map(|layer| {
            let memory = layer.view.as_ref().map_or(&*EMPTY, |view| view.state().memory());
            (layer.stream, layer.records, memory, &layer.signer)
        })
    }

    /// Calls `read` with the memory as of the time `now`.
    #[doc(hidden)]
    pub fn read<T>(&self, now: Micros, read: impl FnOnce(&MemoryView<'_>) -> T) -> T {
        let layers = self.layers().map(|(stream, records, memory, signer)| MemoryLayer {
            stream,
            records,
            memory,
            signer: signer.clone(),
            until: Seq::MAX,
        });
        read(&MemoryView::new(layers.collect(), self.at, now, &|body| self.text(body)))
    }
}

impl Store {
    /// The memory of a scope after `at` ([`Seq::MAX`] for now).
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown session or project; [`Error::Rejected`] if the scope names neither.
    pub fn memory(&self, scope: &MemoryScope, at: Seq) -> Result<Memory, Error> {
        if let Some(name) = &scope.project {
            let mut is_known = false;
            for stream in self.projects_named(name)? {
                is_known |= self.known(stream)?.is_some();
            }
            if !is_known {
                return Err(self.no_project(name)?);
            }
        }
        let memory = self.memory_of(scope, &Signers::new())?;
        Ok(Memory { at: memory.at.min(at), ..memory })
    }

    /// The projects that have a memory, by the names that they go by, in order.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn project_names(&self) -> Result<Vec<String>, Error> {
        let moves = self.project_moves()?;
        let names = self.stream_names()?.into_iter().filter(|name| name.scope == Scope::Project);
        let names: BTreeSet<String> = names.map(|name| moves.project(&name.name).into_owned()).collect();
        Ok(names.into_iter().collect())
    }

    /// Records a command on memory in the stream of the item's lifespan, which is opened if it is a new project's.
    ///
    /// An equal value is a reinforcement, not a new item; a new value of a preference's key takes the old one's place.
    ///
    /// # Errors
    /// [`Error::Rejected`] with the change that is needed; [`Error::NotFound`] for an unknown session; the errors of an
    /// append. Nothing was recorded then.
    pub fn remember(&self, scope: &MemoryScope, command: &MemoryCommand) -> Result<MemoryReceipt, Error> {
        self.remember_as(scope, command, Actor::User)
    }

    /// As [`Store::remember`], for a command of `actor`'s: what a model remembers is shown as said by a model, until a person says the
    /// same.
    ///
    /// # Errors
    /// As [`Store::remember`].
    pub fn remember_as(
        &self,
        scope: &MemoryScope,
        command: &MemoryCommand,
        actor: Actor,
    ) -> Result<MemoryReceipt, Error> {
        let clean = self.inner.clean_memory(command);
        let command = clean.as_ref().unwrap_or(command);
        // The session may have been acknowledged before its sync.
        self.inner.sync()?;
        let project = self.project_of(scope)?.map(|name| self.inner.cleaned(&name));
        let mut opening: Vec<StreamInfo> = project.iter().map(StreamInfo::project).collect();
        opening.push(StreamInfo::user());
        let streams: Vec<StreamId> = scope.session.into_iter().collect();
        let ((id, stream, adds), written) = self.inner.decided(&opening, &streams, &mut |signers| {
            let memory = self.memory_of(scope, signers)?;
            let decision =
                memory.read(self.now(), |view| command::decide(view, command)).map_err(Rejection::from)?;
            let adds =
                decision.drafts.iter().any(|it| matches!(it.event.payload, Payload::MemoryRecorded(_)));
            let (id, stream, drafts) = (decision.id, decision.stream, decision.drafts);
            // A project that is named is opened, even if the item goes to the user's stream.
            let named = scope.project.as_deref().filter(|_| matches!(command, MemoryCommand::Add(_)));
            let moves = self.project_moves()?;
            let named =
                named.map(|name| project_id(&moves.project(name))).filter(|project| *project != stream);
            let named = named.map(|stream| CommandDrafts { stream, actor, drafts: Vec::new() });
            let own = CommandDrafts { stream, actor, drafts };
            Ok((named.into_iter().chain([own]).collect(), (id, stream, adds)))
        })?;
        // Nothing was recorded: no seq.
        let last_seq = written.map(|written| written.last_seq).unwrap_or_default();
        // The item is the only event of an addition, but for the opening of a new project before it.
        let item = adds.then(|| ItemId::first(last_seq));
        Ok(MemoryReceipt { id, stream, item, last_seq })
    }

    /// The project of a scope, if it has one.
    pub(super) fn project_of(&self, scope: &MemoryScope) -> Result<Option<String>, Error> {
        let project = match (&scope.project, scope.session) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(session)) => {
                let view = self.view(session)?;
                view.state().info(Seq::MAX).and_then(|info| info.project.clone())
            }
            (None, None) => None,
        };
        let moves = self.project_moves()?;
        Ok(project.map(|name| moves.project(&name).into_owned()))
    }

    /// The streams with memory of the project that goes by a name: its own, then those that bear names of before.
    fn projects_named(&self, name: &str) -> Result<Vec<StreamId>, Error> {
        let moves = self.project_moves()?;
        let name = moves.project(name);
        let mut streams = vec![project_id(&name)];
        if moves.iter().next().is_some() {
            let all = self.stream_names()?.into_iter();
            let of_before = all.filter(|stream| {
                stream.scope == Scope::Project && stream.name != *name && moves.project(&stream.name) == name
            });
            streams.extend(of_before.map(|stream| stream.id));
        }
        Ok(streams)
    }

    /// Memory at the head. Signers that are not given are read from the streams' first events.
    pub(super) fn memory_of(&self, scope: &MemoryScope, signers: &Signers) -> Result<Memory, Error> {
        let project = self.project_of(scope)?;
        if scope.session.is_none() && project.is_none() {
            return Err(Rejection::from(MemoryRejection::NoStream).into());
        }
        self.layers_of(scope, signers)
    }

    /// The same, of a scope that may have no session and no project yet.
    pub(super) fn layers_of(&self, scope: &MemoryScope, signers: &Signers) -> Result<Memory, Error> {
        let project = self.project_of(scope)?;
        let projects = project.as_deref().map(|name| self.projects_named(name)).transpose()?;
        let session = scope.session.into_iter().map(|stream| (stream, Lifespan::Session));
        let projects = projects.into_iter().flatten().map(|stream| (stream, Lifespan::Project));
        let user = (StreamInfo::user().id(), Lifespan::Permanent);
        let mut layers = Vec::new();
        let mut at = Seq::MAX;
        for (stream, records) in session.chain(projects).chain([user]) {
            let given = signers.get(&stream).cloned();
            let first = self.known(stream)?;
            if first.is_none() && given.is_none() {
                continue;
            }
            let view = first.is_some().then(|| View::new(self, stream, &At::Head)).transpose()?;
            at = view.as_ref().map_or(at, |view| at.min(view.at()));
            let signer = given.map_or_else(|| self.inner.signer(stream), Ok)?;
            layers.push(ScopeLayer { stream, records, view, signer });
        }
        Ok(Memory { inner: Arc::clone(&self.inner), layers, at })
    }

    /// The first seq of a stream, if it has any.
    fn known(&self, stream: StreamId) -> Result<Option<Seq>, Error> {
        Ok(self.inner.stream_place(stream)?.map(|place| place.first.first_seq))
    }

    fn no_project(&self, name: &str) -> Result<Error, Error> {
        let projects = self.stream_names()?.into_iter().filter(|stream| stream.scope == Scope::Project);
        let nearest = nearest(projects.map(|stream| stream.name), name, 0.7);
        Ok(Error::NotFound { what: "project", name: name.to_owned(), nearest })
    }
}

fn project_id(name: &str) -> StreamId {
    crate::event::stream_id(Scope::Project, "", &crate::text::project_of(name))
}

impl StoreInner {
    /// The command without secrets; `None`: there is no redactor.
    fn clean_memory(&self, command: &MemoryCommand) -> Option<MemoryCommand> {
        let mut pass = Pass::new(self.redactor.as_deref()?);
        let mut command = command.clone();
        match &mut command {
            MemoryCommand::Add(entry) => pass.memory(entry),
            MemoryCommand::Supersede { reason, .. } | MemoryCommand::Retract { reason, .. } => {
                if let Some(reason) = reason {
                    pass.text(reason);
                }
            }
            MemoryCommand::Reinforce { .. } | MemoryCommand::Restore { .. } => {}
        }
        Some(command)
    }

    /// The signer of an open stream, from its first event. A stream whose key was erased recognises nothing any more.
    pub(super) fn signer(&self, stream: StreamId) -> Result<Signer, Error> {
        let Some(place) = self.stream_place(stream)? else { return Ok(unsigned()) };
        let frame = self.frame_at(place.first.position)?;
        let Some(event) = frame.events().find(|event| event.envelope.stream == stream) else {
            return Ok(unsigned());
        };
        let Payload::SessionOpened(opened) = bare(&frame, &event)?.event.payload else {
            return Ok(unsigned());
        };
        match self.body_in(&frame, opened.key.id(event.seq)) {
            Ok(key) => Ok(key.try_into().map_or_else(|_| unsigned(), |key| self.signer_with(&key))),
            Err(Error::Erased { .. }) => Ok(unsigned()),
            Err(error) => Err(error),
        }
    }
}
