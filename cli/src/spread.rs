//! Work on many things, spread over the cores. Results come in the order of the things, in any order of finishing.

use std::sync::atomic::{AtomicUsize, Ordering};

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
    let bar = if !output.progress || things.len() < 2 {
        ProgressBar::hidden()
    } else {
        ProgressBar::new(things.len() as u64)
    };
    let template = format!("{{bar:30}} {{pos}}/{{len}} {noun}, {{eta}} left");
    // The template is a constant of this program; without it there is a bar of another kind.
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style);
    }
    let done = spread(things, work, &|| bar.inc(1));
    bar.finish_and_clear();
    done
}

/// As [`each`], without progress.
pub(crate) fn silently<T: Sync, R: Send>(
    things: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync,
) -> Result<Vec<R>, Failure> {
    spread(things, work, &|| {})
}

fn spread<T: Sync, R: Send>(
    things: &[T],
    work: impl Fn(&T) -> Result<R, Error> + Sync,
    one_is_done: &(dyn Fn() + Sync),
) -> Result<Vec<R>, Failure> {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
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
        let workers: Vec<_> = (0..cores.min(things.len().max(1))).map(|_| scope.spawn(work)).collect();
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
