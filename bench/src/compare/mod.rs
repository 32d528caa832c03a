//! acpdb beside what a user would take instead: the same events, the same lookups, the same durability, in one run.
//!
//! ```text
//! same answers?  ->  single commits (disk, memory)  ->  many callers  ->  bulk loads and reads by size  ->  tables, targets, docs
//! ```
//!
//! Engines take turns in each round, and each round begins with another one, so that a slow moment of the machine hits
//! all. A figure is the median of its rounds with the smallest and the largest beside it. Nothing is timed before the
//! engine's answers were found to be equal to those of the generator, byte for byte.

mod callers;
mod device;
mod engine;
mod own;
#[cfg(feature = "peers")]
mod peers;
mod raw;
mod stages;
mod table;
mod work;

use std::path::PathBuf;

use crate::{Options, Outcome};
use engine::Kind;
use table::Figures;
use work::Work;

/// What `compare` was asked for.
pub(crate) struct Compare {
    /// Sizes of the loads, in events.
    pub(crate) sizes: Vec<u64>,
    /// A folder on a real disk.
    pub(crate) folder: PathBuf,
    /// Only engines whose name contains this.
    pub(crate) only: Option<String>,
    pub(crate) quick: bool,
}

pub(crate) fn run(
    options: &Options,
    events: Option<u64>,
    folder: Option<PathBuf>,
    only: Option<String>,
) -> Outcome<()> {
    let quick = options.quick;
    let sizes = match events {
        Some(count) => vec![count],
        None if quick => vec![10_000, 30_000],
        None => vec![10_000, 100_000, 1_000_000],
    };
    // The system's folder for temporary files may lie in memory; the current folder rarely does.
    let folder = folder.unwrap_or_else(|| PathBuf::from("."));
    let compare = Compare { sizes, folder, only, quick };
    let mut kinds: Vec<Kind> = engine::all();
    if let Some(only) = &compare.only {
        kinds.retain(|kind| kind.name.contains(only.as_str()));
    }
    let work = Work::new();
    let mut figures = Figures::new(&kinds);
    kinds = stages::same_answers(kinds, &work, &mut figures)?;
    stages::commits(&compare, &kinds, &work, &mut figures)?;
    if compare.only.as_ref().is_none_or(|only| "acpdb log + index".contains(only.as_str())) {
        callers::run(&compare, &mut figures)?;
    }
    for size in &compare.sizes {
        stages::load_and_read(&compare, &kinds, &work, *size, &mut figures)?;
    }
    let text = table::render(&figures, &compare);
    println!("{text}");
    if compare.only.is_none() {
        table::write_docs(&text)?;
    }
    Ok(())
}

pub(crate) use callers::child as child_append;

/// Reads as a process of its own does, and prints its memory and how long opening took: only a fresh process shows them.
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
