//! acpdb beside the engines that a user could take instead: the same events, the same lookups, the same durability, in one run.
//!
//! ```text
//! same answers?  ->  single commits (disk, memory)  ->  many callers  ->  bulk loads and reads by size  ->  tables, targets, docs
//! ```
//!
//! Engines take turns in each round, and each round begins with another engine, so that a slow moment of the machine hits all. A
//! figure is the median of its rounds with the smallest and the largest beside it. An engine is timed only after its answers were
//! equal to those of the generator, byte for byte.

mod callers;
mod device;
mod engine;
mod own;
#[cfg(feature = "peers")]
mod peers;
mod picture;
mod raw;
mod scale;
mod stages;
mod table;
mod work;

use std::path::PathBuf;

use crate::{Options, Outcome};
use engine::Kind;
use table::Figures;
use work::Work;

/// The options of `compare`.
pub(crate) struct Compare {
    /// Sizes of the loads, in events.
    pub(crate) sizes: Vec<u64>,
    /// A folder on a real disk.
    pub(crate) folder: PathBuf,
    /// A folder in memory. Nothing is written outside these two, except the page of figures if the options ask for it.
    pub(crate) scratch: PathBuf,
    /// Only engines whose name contains one of these words.
    only: Option<Vec<String>>,
    pub(crate) quick: bool,
}

impl Compare {
    /// The size whose figures are shown first: the largest size that was filled one call at a time.
    fn pictured(&self) -> Option<u64> {
        self.sizes.iter().copied().filter(|size| *size <= stages::LIVE_EVENT_COUNT_MAX).max()
    }
}

pub(crate) fn run(
    options: &Options,
    events: Option<u64>,
    folder: Option<PathBuf>,
    chosen: [Option<String>; 2],
) -> Outcome<()> {
    let [only, parts] =
        chosen.map(|names| Some(names?.split(',').map(|name| name.trim().to_owned()).collect::<Vec<_>>()));
    let has_part = |part: &str| parts.as_ref().is_none_or(|parts| parts.iter().any(|name| name == part));
    let quick = options.quick;
    let sizes = match events {
        Some(count) => vec![count],
        None if quick => vec![10_000, 30_000],
        None => vec![10_000, 100_000, 1_000_000],
    };
    // The system's folder for temporary files may lie in memory; the current folder rarely does.
    let folder = folder.unwrap_or_else(|| PathBuf::from("."));
    let compare = Compare { sizes, folder, scratch: options.scratch.clone(), only, quick };
    let mut kinds: Vec<Kind> = engine::all();
    let is_chosen = |name: &str| {
        compare.only.as_ref().is_none_or(|only| only.iter().any(|word| name.contains(word.as_str())))
    };
    kinds.retain(|kind| is_chosen(kind.name));
    let work = Work::new();
    let mut figures = Figures::new(&kinds);
    kinds = stages::same_answers(&compare, kinds, &work, &mut figures)?;
    if has_part("commits") {
        stages::commits(&compare, &kinds, &work, &mut figures)?;
    }
    if has_part("callers") && is_chosen("acpdb log + index") {
        callers::run(&compare, &mut figures)?;
    }
    for size in compare.sizes.iter().filter(|_| has_part("loads")) {
        stages::load_and_read(&compare, &kinds, &work, *size, &mut figures)?;
    }
    let text = table::render(&figures, &compare);
    if let Some(size) = compare.pictured() {
        println!("{}", picture::table(&figures, size));
    }
    println!("{text}");
    if options.docs {
        table::write_docs(&text, &figures, &compare)?;
    }
    Ok(())
}

pub(crate) use callers::child as child_append;
pub(crate) use scale::{child as child_calls, run as scale};

/// Reads as a process of its own, and prints its memory and the time of opening: only a fresh process shows them.
pub(crate) fn child(name: &str, folder: &str, count: u64) -> Outcome<()> {
    let kind = engine::all().into_iter().find(|kind| kind.name == name).ok_or("no such engine")?;
    let (engine, spent) = crate::measure::spent(|| (kind.open)(std::path::Path::new(folder)));
    let mut engine = engine?;
    let work = Work::new();
    let mut sink = work::Sink::touching();
    let before = crate::measure::anonymous_mb();
    for (_, asks) in work.asks(count, 500, 99).iter().take(2) {
        for ask in asks {
            engine.ask(*ask, &mut sink)?;
        }
    }
    // The generator's own text is no part of the engine.
    let generator = 8.4;
    println!("{} {}", crate::measure::anonymous_mb().max(before) - generator, spent.wall * 1e3);
    Ok(())
}

/// Asks one kind of question again and again, for a profiler, of an engine that was filled one event a commit.
pub(crate) fn profile(ask: &str, rounds: usize, engine: &str, count: u64) -> Outcome<()> {
    let kind = engine::all().into_iter().find(|kind| kind.name.contains(engine)).ok_or("no such engine")?;
    let folder = tempfile::tempdir_in(crate::measure::scratch_folder())?;
    let mut engine = (kind.open)(folder.path())?;
    let work = Work::new();
    for number in 1..=count {
        engine.append(&[work.event(number)])?;
    }
    engine.settle()?;
    let mut sink = work::Sink::touching();
    for round in 0..rounds {
        let asks = work.asks(count, 400, round as u64 + 7);
        // Not the processor's clock: some profilers cannot emulate it.
        let (asked, seconds) = crate::measure::wall(|| -> Outcome<usize> {
            if ask == "scan" {
                engine.scan(&mut sink)?;
                return Ok(usize::try_from(count)?);
            }
            let chosen = asks.iter().filter(|(name, _)| name.starts_with(ask)).flat_map(|(_, asks)| asks);
            let mut asked = 0;
            for ask in chosen {
                engine.ask(*ask, &mut sink)?;
                asked += 1;
            }
            Ok(asked)
        });
        let count = crate::measure::float(asked?);
        println!("{ask}: {:.2} us", seconds / count * 1e6);
    }
    Ok(())
}
