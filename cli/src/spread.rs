//! Work on many things, spread over the cores. Results come in the order of the things, in any order of finishing.
//!
//! ```text
//! each, silently:  things -> any core takes the next one -> results in the order of the things
//! ahead:           one thread reads the next rows while this one prints
//! ```

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use acpdb_engine::Error;
use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::{Code, Failure};
use crate::output::Output;

/// Does `work` on each thing.
pub(crate) fn each<T: Sync, R: Send>(
    things: &[T],
    noun: &str,
    output: &Output,
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Failure> {
    each_of_one(Some(output.progress), things, noun, work)
}

/// As [`each`], on the things of one store, where `progress` says whether it is shown; `None`: the cores are at other stores already, so it is one thing after
/// the other.
pub(crate) fn each_of_one<T: Sync, R: Send>(
    progress: Option<bool>,
    things: &[T],
    noun: &str,
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Failure> {
    let Some(progress) = progress else { return Ok(things.iter().map(work).collect::<Result<_, _>>()?) };
    let bar = if !progress || things.len() < 2 {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(things.len() as u64)
    };
    let template = format!("{{bar:30}} {{pos}}/{{len}} {noun}, {{eta}} left");
    // The template is a constant of this program; without it there is a bar of another kind.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    let done = spread(cores(), things, work, &|| bar.inc(1));
    bar.finish_and_clear();
    done
}

/// Rows of a question that are taken without a thread: most answers are no longer, and the first row is shown at once.
const ALONE_COUNT: usize = 64;
/// Rows that the thread hands over together.
const PARCEL_COUNT: usize = 128;
/// Parcels that wait for this thread.
const WAITING_COUNT: usize = 3;

/// Calls `take` with each row, in order, while a thread reads a few hundred rows ahead. If `take` fails, no more rows are read than those.
pub(crate) fn ahead<T: Send>(
    rows: &mut (impl Iterator<Item = T> + Send),
    mut take: impl FnMut(T) -> Result<(), Failure>,
) -> Result<(), Failure> {
    for _ in 0..ALONE_COUNT {
        let Some(row) = rows.next() else { return Ok(()) };
        take(row)?;
    }
    std::thread::scope(|scope| {
        let (to, parcels) = mpsc::sync_channel(WAITING_COUNT);
        let read = || {
            let to = to;
            loop {
                let parcel: Vec<T> = rows.by_ref().take(PARCEL_COUNT).collect();
                // If this fails, no more rows are wanted.
                if parcel.is_empty() || to.send(parcel).is_err() {
                    return;
                }
            }
        };
        // Without a thread there is no parcel, and all rows are taken below.
        let _ = std::thread::Builder::new().name("acpdb ahead".to_owned()).spawn_scoped(scope, read);
        parcels.into_iter().flatten().try_for_each(&mut take)
    })?;
    rows.try_for_each(take)
}

/// As [`each`], without progress, on so many things at a time: more than there are cores for work that waits more than it computes.
pub(crate) fn silently<T: Sync, R: Send>(
    count: usize,
    things: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Failure> {
    spread(count, things, work, &|| {})
}

/// As many things at a time keep all cores busy.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

fn spread<T: Sync, R: Send>(
    count: usize,
    things: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync,
    one_is_done: &(dyn Fn() + Sync),
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let work = || -> Result<Vec<(usize, R)>, Error> {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(thing) = things.get(place) else { return Ok(done) };
            done.push((place, work(thing)?));
            one_is_done();
        }
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..count.min(things.len().max(1))).map(|_| scope.spawn(work)).collect();
        workers.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    let mut all = Vec::new();
    for result in results {
        let stopped = |_| Failure::new(Code::Failure, "a thread of the work stopped unexpectedly".to_owned());
        all.extend(result.map_err(stopped)??);
    }
    all.sort_by_key(|(place, _)| *place);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_order_and_once_however_many_there_are() {
        for count in [0, 1, ALONE_COUNT, ALONE_COUNT + 1, ALONE_COUNT + PARCEL_COUNT, 5000] {
            let mut taken = Vec::new();
            let mut rows = 0..count;
            let done = ahead(&mut rows, |row| {
                taken.push(row);
                Ok(())
            });
            assert!(done.is_ok() && taken.into_iter().eq(0..count) && rows.next().is_none(), "{count}");
        }
    }

    /// A reader that goes away, such as `head`, is an error of `take`: the rest of a long answer is not read.
    #[test]
    fn an_error_ends_the_reading_too() {
        for end in [0, ALONE_COUNT - 1, ALONE_COUNT, 1000] {
            let mut read = 0;
            let mut taken = 0;
            let mut rows = std::iter::repeat_with(|| read += 1);
            let done = ahead(&mut rows, |()| {
                taken += 1;
                if taken > end { Err(Failure::usage("enough")) } else { Ok(()) }
            });
            assert!(done.is_err_and(|failure| failure.message == "enough"), "{end}");
            // The parcel that is taken from, those that wait, the one that is being handed over, and the one that is being read.
            let most = end + 1 + (WAITING_COUNT + 3) * PARCEL_COUNT;
            assert!(taken == end + 1 && read <= most, "{end}: {read}");
        }
    }
}
