//! Whose memory a command means, its items as of `--at`, and how items are named and told.

use acpdb_engine::event::Scope;
use acpdb_engine::fold::memory::{MemoryNamed, MemoryView};
use acpdb_engine::ids::{BodyId, Micros, Seq};
use acpdb_engine::{MemoryScope, Store, store::MemoryReceipt};
use acpdb_query::when::{self, Point};
use serde_json::json;

use super::lines::{clip, one_line, some_of};
use super::memory_rows::{RememberedItem, RowWords as _};
use super::{Code, Failure, Global, Output, describe};
use crate::several::{self, ReadStores};

/// The scope that the options name.
pub(crate) struct GivenScope<'a> {
    pub(crate) project: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
}

/// Memory of a scope as of `--at`, ready to be read.
pub(crate) struct ScopeMemory<'s> {
    pub(crate) store: &'s Store,
    memory: acpdb_engine::Memory,
    now: Micros,
}

impl<'s> ScopeMemory<'s> {
    pub(crate) fn new(
        store: &'s Store,
        global: &Global,
        scope: &GivenScope<'_>,
        output: &Output,
    ) -> Result<Self, Failure> {
        let scope = whose(store, scope, output)?;
        Self::of(store, global, &scope)
    }

    pub(crate) fn of(store: &'s Store, global: &Global, scope: &MemoryScope) -> Result<Self, Failure> {
        Self::at(store, scope, moment(store, global, scope)?)
    }

    /// As of a seq, read at a time.
    pub(crate) fn at(
        store: &'s Store,
        scope: &MemoryScope,
        (at, now): (Seq, Micros),
    ) -> Result<Self, Failure> {
        Ok(Self { store, memory: store.memory(scope, at)?, now })
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&MemoryView<'_>) -> T) -> T {
        self.memory.read(self.now, read)
    }

    pub(crate) fn text(&self, body: BodyId) -> Option<String> {
        acpdb_query::memory::text(self.store, body)
    }

    /// The items that a text names, of all `rows` ever recorded: by id or `#seq`, else by key, else the one that holds and has its words.
    pub(crate) fn named<'r>(&self, rows: &'r [RememberedItem], text: &str) -> Vec<&'r RememberedItem> {
        let found = named(rows, text);
        if !found.is_empty() {
            return found;
        }
        let by_words = self.read(|view| match view.named(text) {
            MemoryNamed::One(stream, item) => Some((stream, item.item())),
            MemoryNamed::Many(_) | MemoryNamed::None => None,
        });
        rows.iter().filter(|row| by_words == Some((row.stream, row.item))).collect()
    }

    /// All items ever recorded, in order.
    pub(crate) fn rows(&self) -> Vec<RememberedItem> {
        acpdb_query::memory::rows(self.store, &self.memory, self.now)
    }
}

/// The seq and the time that `--at` means: memory fades, so both matter.
fn moment(store: &Store, global: &Global, scope: &MemoryScope) -> Result<(Seq, Micros), Failure> {
    let now = super::at::now();
    let Some(text) = &global.at else { return Ok((Seq::MAX, now)) };
    let session = scope.session.map(|session| store.stream_name(session)).transpose()?.flatten();
    let seq = super::at::seq(store, global, text, session.as_ref())?;
    // A seq, a turn or a step is read by `at::seq` above.
    if let Ok(Point::Time(time)) = when::parse(text, now) {
        return Ok((seq, time.min(now)));
    }
    let event = store.event(seq)?;
    Ok((seq, event.map_or(now, |event| event.recorded_at)))
}

/// The scope: as given, else the only project, else the newest session.
pub(crate) fn whose(store: &Store, given: &GivenScope<'_>, output: &Output) -> Result<MemoryScope, Failure> {
    let session = super::session::named(store, given.session)?;
    if session.is_some() || given.project.is_some() {
        return Ok(MemoryScope {
            session: session.map(|session| session.id),
            project: given.project.map(str::to_owned),
        });
    }
    let projects = store.project_names()?;
    match projects.as_slice() {
        [only] => Ok(MemoryScope::project(only)),
        [] if store.stream_names()?.iter().any(|name| name.scope == Scope::Session) => {
            let session = super::session::default_session_noted(store, None, output)?;
            Ok(MemoryScope::session(session.id))
        }
        [] => {
            let failure = Failure::usage("there is no project yet whose memory this could be");
            Err(failure.hint("name one with --project NAME; adding to it makes it"))
        }
        many => {
            if let Some(project) = folder_project(many) {
                return Ok(MemoryScope::project(project));
            }
            let failure =
                Failure::usage(format!("there are {} projects; whose memory is meant?", many.len()));
            Err(failure.hint(format!("--project NAME or --session ID; projects: {}", some_of(many, 8))))
        }
    }
}

/// The project whose name is the working folder, or the nearest folder above it.
fn folder_project(projects: &[String]) -> Option<&str> {
    // A folder that is gone is no project's.
    let here = std::env::current_dir().ok()?;
    here.ancestors()
        .find_map(|folder| projects.iter().map(String::as_str).find(|name| folder.as_os_str() == *name))
}

/// The scope for a new item: as [`whose`]; in a store without any project, that of the working folder.
pub(crate) fn whose_new(
    store: &Store,
    given: &GivenScope<'_>,
    output: &Output,
) -> Result<MemoryScope, Failure> {
    let is_named = given.session.is_some() || given.project.is_some();
    if is_named || store.stream_names()?.iter().any(|name| name.scope != Scope::User) {
        return whose(store, given, output);
    }
    let here = std::env::current_dir().map_err(Failure::io("read", "the current folder"))?;
    let root = here.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(&here);
    Ok(MemoryScope::project(root.to_string_lossy()))
}

/// The scopes that a question is about: as [`whose`], and of several projects each, with its name.
pub(crate) fn all_of(
    store: &Store,
    given: &GivenScope<'_>,
    output: &Output,
) -> Result<Vec<(Option<String>, MemoryScope)>, Failure> {
    if given.session.is_none() && given.project.is_none() {
        let projects = store.project_names()?;
        if projects.len() > 1 && folder_project(&projects).is_none() {
            let scoped = |name: String| (Some(name.clone()), MemoryScope::project(name));
            return Ok(projects.into_iter().map(scoped).collect());
        }
    }
    Ok(vec![(None, whose(store, given, output)?)])
}

/// Opens the memory of a scope as of the point that a question is about.
pub(crate) type OpenScope<'a, 's> = &'a dyn Fn(&MemoryScope) -> Result<ScopeMemory<'s>, Failure>;

/// Asks the scopes that a question is about: of the only store those of [`all_of`], of each of several those of all projects, or of the one that is named.
pub(crate) fn each_store<R: Default + Send>(
    stores: &ReadStores,
    global: &Global,
    given: &GivenScope<'_>,
    output: &Output,
    ask: impl Fn(&Store, Vec<(Option<String>, MemoryScope)>, OpenScope<'_, '_>) -> Result<R, Failure> + Sync,
) -> Result<(Vec<(usize, R)>, Code), Failure> {
    if let Some(store) = stores.only() {
        let open = |scope: &MemoryScope| ScopeMemory::of(store, global, scope);
        return Ok((vec![(0, ask(store, all_of(store, given, output)?, &open)?)], Code::Ok));
    }
    let moment = several::moment(global)?;
    stores.each(output, |store| {
        let Some(end) = several::end(store, moment)? else { return Ok(R::default()) };
        let named = given.project.map(|one| vec![one.to_owned()]);
        let projects = named.map_or_else(|| store.project_names(), Ok)?;
        let scopes = projects.into_iter().map(|name| (Some(name.clone()), MemoryScope::project(name)));
        let at = (end, moment.unwrap_or_else(super::at::now));
        ask(store, scopes.collect(), &|scope| ScopeMemory::at(store, scope, at))
    })
}

/// Whether an item that was recorded took the place of another one.
pub(crate) fn by_edge(new: &RememberedItem, old: &RememberedItem) -> bool {
    new.supersedes.contains(&old.id)
}

/// Whether an item that holds again took the place of another one of its key. No edge says so: those that it has are from the
/// time when it was recorded.
pub(crate) fn by_key(new: &RememberedItem, old: &RememberedItem) -> bool {
    old.shadowed && new.key.is_some() && (&new.category, &new.key) == (&old.category, &old.key)
}

/// Prints the result of a command, with the item as it is now, and the items in whose place it is.
pub(crate) fn said(
    store: &Store,
    global: &Global,
    scope: &MemoryScope,
    receipt: &MemoryReceipt,
    (what, has_replaced): (&str, fn(&RememberedItem, &RememberedItem) -> bool),
    output: &mut Output,
) -> Result<Code, Failure> {
    let opened = ScopeMemory::of(store, global, scope)?;
    let rows = opened.rows();
    let row = rows.iter().rev().find(|row| row.id == receipt.id && row.stream == receipt.stream);
    if output.json {
        return output.json_line(&json!({
            "schema": "acpdb.memory_act/1", "last_seq": receipt.last_seq, "id": receipt.id,
            "stream": receipt.stream, "added": receipt.item.is_some(), "item": row,
        }));
    }
    let seq = output.paint(describe::SEQ, &receipt.last_seq.to_string());
    let Some(row) = row else { return output.line(format!("{seq} {what}")).map(|()| Code::Ok) };
    let head = format!("{} {} {}", row.label(), one_line(&row.id), row.place());
    let text = clip(&row.text(), output.room(head.len() + what.len() + 16).max(20));
    output.line(format!("{seq} {what}: {head} = {text}"))?;
    if !row.holds() {
        return Ok(Code::Ok);
    }
    for old in rows.iter().filter(|old| old.stream == row.stream && has_replaced(row, old)) {
        output.styled(
            describe::DIM,
            format!("  in the place of {}: {}", one_line(&old.id), clip(&old.text(), 60)),
        )?;
    }
    Ok(Code::Ok)
}

/// The items that an id or `#seq` names; if there are none, the items of `KEY` or `CATEGORY/KEY`.
fn named<'r>(rows: &'r [RememberedItem], text: &str) -> Vec<&'r RememberedItem> {
    let by_id = |row: &RememberedItem| row.id == text || row.item.to_string() == text;
    // A key may hold a slash: the words that name category and key go first.
    let by_place = |row: &RememberedItem| {
        row.key.as_deref().is_some_and(|key| format!("{}/{key}", row.category) == text)
    };
    let by_key = |row: &RememberedItem| row.key.as_deref() == Some(text);
    let all = |is: &dyn Fn(&RememberedItem) -> bool| rows.iter().filter(|row| is(row)).collect::<Vec<_>>();
    let forms: [&dyn Fn(&RememberedItem) -> bool; 3] = [&by_id, &by_place, &by_key];
    forms.into_iter().map(all).find(|found| !found.is_empty()).unwrap_or_default()
}

/// The failure for a name without an item: suggests a near one.
pub(crate) fn miss(rows: &[RememberedItem], text: &str) -> Failure {
    let names = rows.iter().flat_map(|row| {
        let keys = row.key.iter().flat_map(|key| [key.clone(), format!("{}/{key}", row.category)]);
        keys.chain([row.id.clone()]).collect::<Vec<_>>()
    });
    let failure = Failure::not_found(format!("no memory item has the key or id {text:?}"));
    failure
        .near(acpdb_engine::text::likeness::nearest(names, text, 0.75), "acpdb memory list --all shows them")
}

/// The scopes to search for `history --memory`: one session's, or those of all projects and sessions.
pub(crate) fn scopes(store: &Store, session: Option<&str>) -> Result<Vec<MemoryScope>, Failure> {
    if let Some(session) = session {
        return Ok(vec![MemoryScope::session(super::session::find(store, session)?.id)]);
    }
    let names = store.stream_names()?;
    let of = |name: &acpdb_engine::store::StreamName| match name.scope {
        Scope::Project => Some(MemoryScope::project(&name.name)),
        Scope::Session => Some(MemoryScope::session(name.id)),
        Scope::User => None,
    };
    // Projects first: most items are there.
    let mut scopes: Vec<MemoryScope> = names.iter().filter_map(of).collect();
    let projects = store.project_names()?;
    // Names of before lead to the project that has them.
    scopes.retain(|scope| scope.project.as_ref().is_none_or(|name| projects.contains(name)));
    scopes.sort_by_key(|scope| scope.session.is_some());
    Ok(scopes)
}
