//! Clocks, medians, and the system's figures about this process and machine.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

fn now(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Time on the clock and processor time of all threads, user and system.
#[derive(Clone, Copy)]
pub(crate) struct Spent {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

/// Runs `work` once; returns its result and time in seconds.
pub(crate) fn spent<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let (wall, cpu) = (now(ClockId::Monotonic), now(ClockId::ProcessCPUTime));
    let result = work();
    let wall = now(ClockId::Monotonic).saturating_sub(wall).as_secs_f64();
    let cpu = now(ClockId::ProcessCPUTime).saturating_sub(cpu).as_secs_f64();
    (result, Spent { wall, cpu })
}

/// Runs `work` once; returns its result and seconds on the clock, read without a system call.
pub(crate) fn wall<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = std::time::Instant::now();
    let result = work();
    (result, start.elapsed().as_secs_f64())
}

/// Runs `work` once; returns its result and seconds of processor time of this thread alone.
pub(crate) fn own<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = now(ClockId::ThreadCPUTime);
    let result = work();
    (result, now(ClockId::ThreadCPUTime).saturating_sub(start).as_secs_f64())
}

/// Starts processes that say with a byte that they are ready, and lets them begin together: each waits for its input to end.
/// Returns the seconds from the common begin to the end of the last process.
pub(crate) fn together(commands: impl IntoIterator<Item = Command>) -> crate::Outcome<f64> {
    let mut children = Vec::new();
    for mut command in commands {
        children.push(command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?);
    }
    for child in &mut children {
        child.stdout.as_mut().ok_or("no output")?.read_exact(&mut [0])?;
    }
    let (done, seconds) = wall(|| -> crate::Outcome<()> {
        for child in &mut children {
            drop(child.stdin.take());
        }
        for mut child in children {
            if !child.wait()?.success() {
                return Err("a process failed".into());
            }
        }
        Ok(())
    });
    done?;
    Ok(seconds)
}

/// Seconds from the start of a process to the end of the first row that it prints; then the process is ended.
pub(crate) fn first_row(command: &mut Command) -> crate::Outcome<f64> {
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let (child, spent) = spent(|| -> crate::Outcome<_> {
        let mut child = command.spawn()?;
        let mut line = String::new();
        let out = child.stdout.take().ok_or("no output")?;
        if BufReader::new(out).read_line(&mut line)? == 0 {
            return Err("no first row".into());
        }
        Ok(child)
    });
    let mut child = child?;
    let _ = child.kill();
    let _ = child.wait()?;
    Ok(spent.wall)
}

/// Median of the results of `work` in `rounds` rounds.
pub(crate) fn median(rounds: usize, mut work: impl FnMut() -> crate::Outcome<f64>) -> crate::Outcome<f64> {
    let mut all = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        all.push(work()?);
    }
    Ok(middle(all))
}

/// The median of values.
pub(crate) fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A count as a floating-point number.
#[expect(clippy::cast_precision_loss, reason = "for display")]
pub(crate) fn float(count: usize) -> f64 {
    count as f64
}

/// Peak resident memory of this process in MB.
pub(crate) fn peak_mb() -> f64 {
    peak_mb_of("self").unwrap_or(f64::NAN)
}

/// Peak resident memory of a process in MB; `None` once it has ended.
pub(crate) fn peak_mb_of(process: &str) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse::<f64>().ok().map(|kb| kb / 1000.0)
}

/// Resets the peak of memory, and returns the memory that is in use now; `None` where the system does not allow it.
pub(crate) fn reset_peak_mb() -> Option<f64> {
    std::fs::write("/proc/self/clear_refs", "5").ok()?;
    Some(peak_mb())
}

/// Resident memory of this process that is its own, without mapped files, in MB.
pub(crate) fn anonymous_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kb = line.and_then(|line| line.split_whitespace().next()).and_then(|word| word.parse::<f64>().ok());
    kb.map_or(f64::NAN, |kb| kb / 1000.0)
}

/// A folder in memory if there is one: figures are of processor time, and syncs cost nothing there.
pub(crate) fn scratch_folder() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Bytes of the files below a folder.
pub(crate) fn folder_bytes(folder: &Path) -> crate::Outcome<f64> {
    let mut sum = 0.0;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => sum += folder_bytes(&entry.path())?,
            Ok(metadata) => sum += float(usize::try_from(metadata.len())?),
            // A cache may be made anew meanwhile: its old file is gone.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(sum)
}

/// The file system of a folder, by the longest mount point that leads to it.
pub(crate) fn file_system(folder: &Path) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    let best = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            Some((words.next()?, words.next()?))
        })
        .filter(|(point, _)| folder.starts_with(point))
        .max_by_key(|(point, _)| point.len());
    best.map_or_else(|| "an unknown file system".to_owned(), |(_, kind)| kind.to_owned())
}

/// Processor, cores and load.
pub(crate) fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?").to_owned();
    format!("{model}, {cores} cores, load at the end {load}")
}
