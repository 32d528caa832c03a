//! The cost of a run for the device: bytes that this process sent, and flushes, writes and bytes as the block device counts them.
//!
//! The device's own counters see every process of the machine, so the smallest of several rounds tells most.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Counters at a moment, or their difference.
#[derive(Clone, Copy, Default)]
pub(crate) struct Counters {
    /// Bytes that this process caused to be written, as the kernel accounts them.
    pub(crate) own_bytes: f64,
    /// Bytes that the device was given.
    pub(crate) bytes: f64,
    /// Writes that the device was given.
    pub(crate) writes: f64,
    /// Flushes of the device's cache.
    pub(crate) flushes: f64,
}

/// A file system's device.
pub(crate) struct Device(Option<PathBuf>);

impl Device {
    /// The device of a folder; none for file systems in memory.
    pub(crate) fn of(folder: &Path) -> Self {
        let number = folder.metadata().map_or(0, |metadata| metadata.dev());
        let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
        let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
        Self(path.exists().then_some(path))
    }

    pub(crate) fn is_real(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn read(&self) -> Counters {
        let own = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
        let own = own.lines().find_map(|line| line.strip_prefix("write_bytes: "));
        let own_bytes = own.and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
        let text = self.0.as_ref().and_then(|path| std::fs::read_to_string(path).ok()).unwrap_or_default();
        let fields: Vec<f64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let field = |index: usize| fields.get(index).copied().unwrap_or(f64::NAN);
        Counters { own_bytes, bytes: field(6) * 512.0, writes: field(4), flushes: field(15) }
    }
}

impl Counters {
    /// The difference to `before`, for each of `count` commits.
    pub(crate) fn since(self, before: Self, count: f64) -> Self {
        Self {
            own_bytes: (self.own_bytes - before.own_bytes) / count,
            bytes: (self.bytes - before.bytes) / count,
            writes: (self.writes - before.writes) / count,
            flushes: (self.flushes - before.flushes) / count,
        }
    }
}
