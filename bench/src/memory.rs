//! A project that remembers much: adding, asking, folding, and looking for proposals.

use acpdb_engine::command::memory::MemoryCommand;
use acpdb_engine::entry::{Entry, Fact, MemoryEntry, StreamInfo};
use acpdb_engine::event::{Lifespan, MemoryKind, Recorded, Role};
use acpdb_engine::ids::Seq;
use acpdb_engine::{Atomicity, Batch, MemoryScope, Store};
use acpdb_query::propose::propose;

use crate::measure::{float, median, middle, own, spent};
use crate::report::{Report, Target};
use crate::session::Session;
use crate::{Options, Outcome};

const CATEGORY_ITEM_COUNT: usize = 100;
const PREFERENCE_CATEGORIES: [&str; 5] = ["style", "tooling", "workflow", "communication", "other"];

/// Every second item is a preference with a key, the others are facts in categories of a hundred.
fn item(number: usize, value: String) -> MemoryEntry {
    let entry =
        MemoryEntry { value, confidence: 80, lifespan: Some(Lifespan::Project), ..MemoryEntry::default() };
    if number.is_multiple_of(2) {
        let (category, key) = place(number);
        MemoryEntry { kind: MemoryKind::Preference, category, key: Some(key), ..entry }
    } else {
        let category = format!("category{}", number / 2 / CATEGORY_ITEM_COUNT);
        MemoryEntry { kind: MemoryKind::Fact, category, ..entry }
    }
}

fn place(number: usize) -> (String, String) {
    let category = PREFERENCE_CATEGORIES.get(number / 2 % PREFERENCE_CATEGORIES.len()).unwrap_or(&"other");
    ((*category).to_owned(), format!("key{number}"))
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let count = if options.quick { 10_000 } else { 100_000 };
    let folder = tempfile::tempdir_in(&options.scratch)?;
    let store = crate::fold::open(folder.path())?;
    let info = StreamInfo::project("bench");
    let entries = (0..count).map(|number| {
        let entry = MemoryEntry { id: format!("pref-{number}"), ..item(number, format!("value {number}")) };
        Entry::from(Fact::Memory(entry))
    });
    let batch = Batch { stream: info.clone(), entries: entries.collect() };
    let (receipt, first) = spent(|| store.commit(&[batch], Atomicity::Split));
    let _ = receipt?;
    report.row(
        format!("memory: {count} items recorded in bulk, each"),
        first.cpu / float(count) * 1e6,
        "us",
        Target::None,
    );

    let scope = MemoryScope::project("bench");
    add(&store, &scope, count, report)?;
    ask(&store, &scope, count, report)?;

    let events: Vec<Recorded> = store.events(Seq(1), Seq::MAX)?.collect::<Result<_, _>>()?;
    let applied = median(3, || Ok(spent(|| crate::fold::folded(&events)).1.cpu))?;
    let rate = float(events.len()) / applied / 1e6;
    report.row(
        format!("memory: cold apply of {} items", events.len()),
        rate,
        "M items/s",
        Target::AtLeast(1.0),
    );
    let cold = median(3, || {
        let (view, spent) = spent(|| crate::fold::open(folder.path())?.view(info.id()).map_err(crate::boxed));
        let _ = view?;
        Ok(spent.cpu)
    })?;
    let rate = float(events.len()) / cold / 1e6;
    report.row("memory: open and cold fold from the log", rate, "M items/s", Target::None);
    scan(&store, &scope, report)
}

/// New values of existing keys: each supersedes the one before.
fn add(store: &Store, scope: &MemoryScope, count: usize, report: &mut Report) -> Outcome<()> {
    let rounds = 300;
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let number = round * (count / rounds) / 2 * 2;
        let command = MemoryCommand::Add(item(number, format!("another value {round}")));
        let (receipt, time) = own(|| store.remember(scope, &command));
        let _ = receipt?;
        times.push(time);
    }
    report.row(
        format!("memory: add with supersession among {count}"),
        middle(times) * 1e6,
        "us",
        Target::AtMost(30.0),
    );
    Ok(())
}

fn ask(store: &Store, scope: &MemoryScope, count: usize, report: &mut Report) -> Outcome<()> {
    let memory = store.memory(scope, Seq::MAX)?;
    let keys: Vec<(String, String)> = (0..2000).map(|round| place(round * 38 % count)).collect();
    let time = memory.read(store.now(), |view| {
        let find = || keys.iter().filter(|(category, key)| view.by_key(category, key).is_some()).count();
        median(5, || {
            let (found, time) = own(find);
            if found == keys.len() { Ok(time / float(found)) } else { Err("a key was not found".into()) }
        })
    })?;
    report.row("memory: by key, warm", time * 1e6, "us", Target::AtMost(5.0));
    let time = memory.read(store.now(), |view| {
        median(50, || {
            let (found, time) = own(|| view.in_category(MemoryKind::Fact, "category7").len());
            if found == CATEGORY_ITEM_COUNT { Ok(time) } else { Err(format!("{found} items").into()) }
        })
    })?;
    report.row("memory: current list of a category of 100", time * 1e6, "us", Target::AtMost(100.0));
    Ok(())
}

fn scan(store: &Store, scope: &MemoryScope, report: &mut Report) -> Outcome<()> {
    let memory = store.memory(scope, Seq::MAX)?;
    let mut session = Session::new("scan");
    let mut texts: Vec<String> = (0..400).map(|_| session.text(5000)).collect();
    for text in texts.iter_mut().step_by(10) {
        text.push_str("\nI prefer tabs over spaces. We use PostgreSQL for the database.\n");
    }
    let bytes: usize = texts.iter().map(String::len).sum();
    let time = memory.read(store.now(), |view| {
        median(5, || {
            Ok(own(|| texts.iter().map(|text| propose(Role::User, text, view).len()).sum::<usize>()).1)
        })
    })?;
    report.row(
        "memory: scan of texts for proposals",
        float(bytes) / 1e6 / time,
        "MB/s",
        Target::AtLeast(50.0),
    );
    Ok(())
}
