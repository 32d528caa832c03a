//! The floor: one append-only file with the same hashing; only offsets in memory find events.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::engine::Engine;
use super::work::{Ask, Event, Sink};
use crate::Outcome;

const HEADER_BYTES: usize = 108;

struct Raw {
    file: File,
    end: u64,
    length: u64,
    link: [u8; 32],
    buffer: Vec<u8>,
    /// The offset of each event.
    offsets: Vec<u64>,
}

pub(crate) fn open(folder: &Path) -> Outcome<Box<dyn Engine>> {
    let path = folder.join("raw.log");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
    let length = file.metadata()?.len();
    let mut raw = Raw { file, end: 0, length, link: [0; 32], buffer: Vec::new(), offsets: Vec::new() };
    let mut header = [0; HEADER_BYTES];
    while raw.end + HEADER_BYTES as u64 <= length {
        raw.file.read_exact_at(&mut header, raw.end)?;
        let bytes = header.first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        if bytes == 0 {
            break;
        }
        raw.offsets.push(raw.end);
        raw.link = header.last_chunk().copied().unwrap_or_default();
        raw.end += HEADER_BYTES as u64 + u64::from(bytes);
    }
    Ok(Box::new(raw))
}

impl Raw {
    fn read(&mut self, number: u64) -> Outcome<&[u8]> {
        let index = usize::try_from(number.saturating_sub(1))?;
        let start = *self.offsets.get(index).ok_or("no such event")?;
        let end = self.offsets.get(index + 1).copied().unwrap_or(self.end);
        let bytes = usize::try_from(end - start)? - HEADER_BYTES;
        self.buffer.resize(bytes, 0);
        self.file.read_exact_at(&mut self.buffer, start + HEADER_BYTES as u64)?;
        Ok(&self.buffer)
    }
}

impl Engine for Raw {
    fn append(&mut self, events: &[Event<'_>]) -> Outcome<()> {
        self.buffer.clear();
        for event in events {
            self.offsets.push(self.end + self.buffer.len() as u64);
            let digest = blake3::hash(event.body.as_bytes());
            let mut hasher = blake3::Hasher::new();
            hasher.update(&self.link).update(digest.as_bytes()).update(&event.hash);
            self.link = *hasher.finalize().as_bytes();
            self.buffer.extend_from_slice(&u32::try_from(event.body.len())?.to_le_bytes());
            self.buffer.extend_from_slice(&event.session.to_le_bytes());
            self.buffer.extend_from_slice(&event.chain.to_le_bytes());
            self.buffer.extend_from_slice(&event.hash);
            self.buffer.extend_from_slice(digest.as_bytes());
            self.buffer.extend_from_slice(&self.link);
            self.buffer.extend_from_slice(event.body.as_bytes());
        }
        let (start, bytes) = (self.end, self.buffer.len() as u64);
        self.end += bytes;
        if self.end > self.length {
            // Zeros ahead, as in acpdb: growing at each commit costs one more device write.
            let step = (self.length / 8).clamp(64 << 10, 1 << 20);
            self.buffer.resize(self.buffer.len() + usize::try_from(step)?, 0);
            self.length = self.end + step;
        }
        self.file.write_all_at(&self.buffer, start)?;
        self.file.sync_data()?;
        Ok(())
    }

    fn ask(&mut self, ask: Ask, sink: &mut Sink) -> Outcome<bool> {
        let Ask::Get(number) = ask else { return Ok(false) };
        sink.take(self.read(number)?);
        Ok(true)
    }

    fn scan(&mut self, sink: &mut Sink) -> Outcome<bool> {
        const WINDOW_BYTES: u64 = 1 << 20;
        let mut window = Vec::new();
        let mut next = 0;
        while let Some(first) = self.offsets.get(next).copied() {
            let fits = self.offsets.partition_point(|offset| *offset <= first + WINDOW_BYTES).max(next + 1);
            let end = self.offsets.get(fits).copied().unwrap_or(self.end);
            window.resize(usize::try_from(end - first)?, 0);
            self.file.read_exact_at(&mut window, first)?;
            for index in next..fits {
                let end = self.offsets.get(index + 1).copied().unwrap_or(self.end);
                let start = self.offsets.get(index).copied().unwrap_or(end);
                let body = usize::try_from(start - first)? + HEADER_BYTES..usize::try_from(end - first)?;
                sink.take(window.get(body).unwrap_or_default());
            }
            next = fits;
        }
        Ok(true)
    }
}
