//! The stages of a comparison.

use std::path::Path;
use std::process::Command;

use super::Compare;
use super::device::Device;
use super::engine::{Engine, Kind};
use super::own;
use super::table::Figures;
use super::work::{Event, Sink, Work};
use crate::Outcome;
use crate::measure::{self, middle, own as own_time, spent, wall};

/// Events of a commit in a bulk load.
const BATCH_EVENT_COUNT: u64 = 1000;

/// Largest store that is filled one event at a time, in events.
pub(super) const LIVE_EVENT_COUNT_MAX: u64 = 200_000;

type Open = (Kind, Box<dyn Engine>, u64);

/// Drops engines whose answers differ from the generator's, and notes it.
pub(crate) fn same_answers(
    compare: &Compare,
    kinds: Vec<Kind>,
    work: &Work,
    figures: &mut Figures,
) -> Outcome<Vec<Kind>> {
    const COUNT: u64 = 2500;
    let mut right = Vec::new();
    let mut expected = Sink::hashing();
    (1..=COUNT).for_each(|number| expected.take(work.event(number).body.as_bytes()));
    for kind in kinds {
        let folder = tempfile::tempdir_in(&compare.scratch)?;
        match answers(kind, folder.path(), work, COUNT, &expected) {
            Ok(()) => right.push(kind),
            Err(error) if kind.name.starts_with("acpdb") => return Err(error),
            Err(error) => figures.note(format!("{} is left out: {error}", kind.name)),
        }
    }
    Ok(right)
}

fn answers(kind: Kind, folder: &Path, work: &Work, count: u64, expected: &Sink) -> Outcome<()> {
    let mut engine = (kind.open)(folder)?;
    let singles = count - 2000;
    for number in 1..=singles {
        engine.append(&[work.event(number)])?;
    }
    load(&mut *engine, work, singles, count)?;
    engine.settle()?;
    let mut all = Sink::hashing();
    if engine.scan(&mut all)? && all.unordered() != expected.unordered() {
        return Err(format!("{} does not give back what it was given", kind.name).into());
    }
    for (name, asks) in work.asks(count, 16, 1) {
        for ask in asks {
            let (mut found, mut right) = (Sink::hashing(), Sink::hashing());
            if engine.ask(ask, &mut found)? {
                work.answer(ask, count, &mut right);
                if found.digest() != right.digest() {
                    let (found, right) = (found.count, right.count);
                    return Err(
                        format!("{}: {name} is wrong: {found} events, expected {right}", kind.name).into()
                    );
                }
            }
        }
    }
    Ok(())
}

/// Appends events after `from` up to `to` in large commits; returns bytes of bodies.
pub(super) fn load(engine: &mut dyn Engine, work: &Work, from: u64, to: u64) -> Outcome<u64> {
    let (mut next, mut bytes) = (from + 1, 0);
    while next <= to {
        let last = to.min(next + BATCH_EVENT_COUNT - 1);
        let events: Vec<Event<'_>> = (next..=last).map(|number| work.event(number)).collect();
        bytes += events.iter().map(|event| event.body.len() as u64).sum::<u64>();
        engine.append(&events)?;
        next = last + 1;
    }
    Ok(bytes)
}

/// Opens each engine in a folder of its own.
fn open_all(kinds: &[Kind], folder: &Path) -> Outcome<Vec<Open>> {
    let mut engines = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        let own = folder.join(index.to_string());
        std::fs::create_dir(&own)?;
        engines.push((*kind, (kind.open)(&own)?, 0));
    }
    Ok(engines)
}

/// One durable commit at a time: on the disk for bytes, flushes and latency, in memory for the processor.
pub(crate) fn commits(compare: &Compare, kinds: &[Kind], work: &Work, figures: &mut Figures) -> Outcome<()> {
    let rounds = if compare.quick { 3 } else { 9 };
    for (place, folder, count) in [
        ("disk", compare.folder.clone(), if compare.quick { 100 } else { 400 }),
        ("memory", compare.scratch.clone(), if compare.quick { 1000 } else { 4000 }),
    ] {
        let device = Device::of(&folder);
        if device.is_real() != (place == "disk") {
            figures.note(format!("{} is not what rows of {place} ask for", folder.display()));
        }
        let folder = tempfile::tempdir_in(&folder)?;
        let mut engines = open_all(kinds, folder.path())?;
        for round in 0..rounds {
            eprintln!("single commits, {place}: round {} of {rounds}", round + 1);
            let shift = round % engines.len().max(1);
            engines.rotate_left(shift);
            for (kind, engine, number) in &mut engines {
                commit_round(kind.name, &mut **engine, number, (place, count), (&device, work), figures)?;
            }
        }
    }
    Ok(())
}

fn commit_round(
    name: &'static str,
    engine: &mut dyn Engine,
    number: &mut u64,
    (place, count): (&str, u64),
    (device, work): (&Device, &Work),
    figures: &mut Figures,
) -> Outcome<()> {
    // Commits after a pause are not measured.
    for _ in 0..20 {
        *number += 1;
        engine.append(&[work.event(*number)])?;
    }
    engine.settle()?;
    let events: Vec<Event<'_>> = (1..=count).map(|next| work.event(*number + next)).collect();
    *number += count;
    let mut times = Vec::with_capacity(events.len());
    let before = device.read();
    let (done, all) = spent(|| {
        own_time(|| -> Outcome<()> {
            for event in &events {
                let (done, time) = wall(|| engine.append(std::slice::from_ref(event)));
                done?;
                times.push(time * 1e6);
            }
            Ok(())
        })
    });
    let (done, own_cpu) = done;
    done?;
    let wall: f64 = times.iter().sum::<f64>() / 1e6;
    engine.settle()?;
    let cost = device.read().since(before, measure::float(events.len()));
    times.sort_by(f64::total_cmp);
    let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or(f64::NAN);
    let count = measure::float(events.len());
    figures.add(&format!("{place}: p50"), "us", name, at(50));
    figures.add(&format!("{place}: p99"), "us", name, at(99));
    if place == "disk" {
        figures.add("disk: flushes a commit", "", name, cost.flushes);
        figures.add("disk: writes a commit", "", name, cost.writes);
        figures.add("disk: device KB a commit", "KB", name, cost.bytes / 1e3);
        figures.add("disk: own KB a commit", "KB", name, cost.own_bytes / 1e3);
    } else {
        figures.add("memory: commits a second", "k/s", name, count / wall / 1e3);
        figures.add("memory: processor time of the caller", "us", name, own_cpu / count * 1e6);
        figures.add("memory: processor time of all threads", "us", name, all.cpu / count * 1e6);
    }
    Ok(())
}

/// Loads `size` events in large commits, then reads.
pub(crate) fn load_and_read(
    compare: &Compare,
    kinds: &[Kind],
    work: &Work,
    size: u64,
    figures: &mut Figures,
) -> Outcome<()> {
    let folder = tempfile::tempdir_in(&compare.folder)?;
    let mut engines: Vec<Open> = Vec::new();
    for (index, kind) in kinds.iter().enumerate() {
        if let Some((limit, why)) = kind.limit
            && size > limit
        {
            figures.note(format!("{} is not given {size} events: {why}", kind.name));
            continue;
        }
        let own = folder.path().join(index.to_string());
        std::fs::create_dir(&own)?;
        let mut engine = (kind.open)(&own)?;
        if !engine.has_batches() {
            figures.note(format!("{} has no commit of several events: no bulk load", kind.name));
            continue;
        }
        eprintln!("bulk load of {size}: {}", kind.name);
        let device = Device::of(&own);
        let before = device.read();
        let (loaded, took) = spent(|| load(&mut *engine, work, 0, size));
        let payload = number(loaded?);
        let (settled, rest) = spent(|| engine.settle());
        settled?;
        let cost = device.read().since(before, payload);
        let count = number(size);
        figures.add(&format!("{size}: bulk, events a second"), "k/s", kind.name, count / took.wall / 1e3);
        let all = took.wall + rest.wall;
        figures.add(&format!("{size}: bulk, index included"), "k/s", kind.name, count / all / 1e3);
        figures.add(&format!("{size}: own bytes to device / payload"), "x", kind.name, cost.own_bytes);
        let bytes = number(folder_bytes(&own)?);
        figures.add(&format!("{size}: disk / payload"), "x", kind.name, bytes / payload);
        figures.add(&format!("{size}: disk beyond payload"), "B/event", kind.name, (bytes - payload) / count);
        engines.push((*kind, engine, index as u64));
    }
    reads(compare, &mut engines, work, (size, "after bulk"), figures)?;
    live_reads(compare, kinds, work, size, figures)?;
    let opened: Vec<(Kind, u64)> = engines.iter().map(|(kind, _, index)| (*kind, *index)).collect();
    if let Some((_, index)) = opened.iter().find(|(kind, _)| kind.name == "acpdb store") {
        killed(&folder.path().join(index.to_string()), compare, size, figures)?;
    }
    drop(engines);
    for (kind, index) in opened {
        let own = folder.path().join(index.to_string());
        for _ in 0..3 {
            let mut command = Command::new(std::env::current_exe()?);
            let output =
                command.args(["child-compare", kind.name]).arg(&own).arg(size.to_string()).output()?;
            let text = String::from_utf8_lossy(&output.stdout);
            let mut words = text.split_whitespace().filter_map(|word| word.parse().ok());
            if let (Some(memory), Some(open)) = (words.next(), words.next()) {
                figures.add(&format!("{size}: open"), "ms", kind.name, open);
                figures.add(&format!("{size}: reader's own memory"), "MB", kind.name, memory);
            }
        }
        if kind.name == "acpdb log + index" {
            let (seconds, count) = own::rebuild(&own)?;
            let per_million = seconds / number(count) * 1e6;
            figures.add(&format!("{size}: index made anew, a million"), "s", kind.name, per_million);
            for (name, rate) in ["replay, decoded", "replay, verified"].into_iter().zip(own::replay(&own)?) {
                figures.add(&format!("{size}: {name}"), "M/s", kind.name, rate / 1e6);
            }
            if size <= LIVE_EVENT_COUNT_MAX {
                let bodies = format!("{size}: sealed, beyond 350 B an event / bodies");
                for (name, repeats) in [(bodies.clone(), false), (format!("{bodies}, 30% repeats"), true)] {
                    let folder = tempfile::tempdir_in(&compare.scratch)?;
                    figures.add(&name, "x", kind.name, own::sealed(folder.path(), work, size, repeats)?);
                }
            }
        }
    }
    Ok(())
}

/// Reads of stores that were filled as an agent fills them, one event a commit. In memory, since warm reads are there anyway and a
/// million syncs take hours.
fn live_reads(
    compare: &Compare,
    kinds: &[Kind],
    work: &Work,
    size: u64,
    figures: &mut Figures,
) -> Outcome<()> {
    if size > LIVE_EVENT_COUNT_MAX {
        figures.note(format!(
            "stores of {size} events are filled in bulk only: memory has no room for all of them"
        ));
        return Ok(());
    }
    let folder = tempfile::tempdir_in(&compare.scratch)?;
    let given = |kind: &Kind| kind.limit.is_none_or(|(limit, _)| size <= limit);
    let kinds: Vec<Kind> = kinds.iter().copied().filter(given).collect();
    let mut engines = open_all(&kinds, folder.path())?;
    for (kind, engine, _) in &mut engines {
        eprintln!("single commits up to {size}: {}", kind.name);
        for number in 1..=size {
            engine.append(&[work.event(number)])?;
        }
        engine.settle()?;
    }
    reads(compare, &mut engines, work, (size, "live"), figures)
}

#[expect(clippy::cast_precision_loss, reason = "for display")]
fn number(count: u64) -> f64 {
    count as f64
}

fn reads(
    compare: &Compare,
    engines: &mut [Open],
    work: &Work,
    (size, how): (u64, &str),
    figures: &mut Figures,
) -> Outcome<()> {
    let rounds = if compare.quick { 3 } else { 5 };
    for round in 0..rounds {
        eprintln!("reads at {size}, {how}: round {} of {rounds}", round + 1);
        let shift = round % engines.len().max(1);
        engines.rotate_left(shift);
        let asks = work.asks(size, 400, round as u64 + 7);
        for (kind, engine, _) in engines.iter_mut() {
            // In memory each look goes through all events, so fewer looks suffice.
            let each = if kind.name == "weavatrix-memory" { 8 } else { usize::MAX };
            for (name, asks) in &asks {
                let (mut times, mut sink) = (Vec::new(), Sink::touching());
                for ask in asks.iter().take(each) {
                    let (done, time) = wall(|| engine.ask(*ask, &mut sink));
                    if !done? {
                        break;
                    }
                    times.push(time * 1e6);
                }
                if !times.is_empty() {
                    figures.add(&format!("{size}, {how}: {name}"), "us", kind.name, middle(times));
                }
            }
            if round < 3 {
                let mut sink = Sink::touching();
                let (done, spent) = spent(|| engine.scan(&mut sink));
                if done? {
                    let rate = number(size) / spent.wall / 1e6;
                    figures.add(&format!("{size}, {how}: read all"), "M/s", kind.name, rate);
                }
            }
        }
    }
    Ok(())
}

/// A copy of a store in use is like the store that a killed process leaves.
fn killed(live: &Path, compare: &Compare, size: u64, figures: &mut Figures) -> Outcome<()> {
    let copy = tempfile::tempdir_in(&compare.folder)?;
    copy_all(live, copy.path())?;
    let (seconds, unindexed) = own::reopen_killed(copy.path())?;
    figures.add(&format!("{size}: open and list after a kill"), "ms", "acpdb store", seconds * 1e3);
    figures.add(&format!("{size}: events not indexed then"), "", "acpdb store", number(unindexed));
    Ok(())
}

fn copy_all(from: &Path, to: &Path) -> Outcome<()> {
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            std::fs::create_dir_all(&target)?;
            copy_all(&entry.path(), &target)?;
        } else {
            std::fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// Bytes that the files of a folder take on the disk.
pub(crate) fn folder_bytes(folder: &Path) -> Outcome<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        bytes += if entry.file_type()?.is_dir() {
            folder_bytes(&entry.path())?
        } else {
            entry.metadata()?.blocks() * 512
        };
    }
    Ok(bytes)
}
