//! Importing recorded sessions: rate, memory, and the second import that finds nothing new.
//!
//! Files are decompressed into memory before the clock starts, so that the figures are of plain JSON; the peak of memory is taken
//! in a child process that reads the files as the command line does.

use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use acpdb_engine::{Atomicity, Batch, Store};
use acpdb_hosts::import::{self, ImportFormat, ImportOptions, SinkStop};
use serde_json::value::RawValue;

use crate::measure::{self, float, middle, spent};
use crate::report::{Report, Target};
use crate::{Options, Outcome};

const GATHER_BYTES: usize = 4 << 20;

/// A recorded session file.
pub(crate) struct Input {
    name: String,
    path: PathBuf,
    format: ImportFormat,
    bytes: Vec<u8>,
}

impl Input {
    /// Bytes of plain JSON.
    pub(crate) const fn size(&self) -> usize {
        self.bytes.len()
    }
}

pub(crate) fn run(options: &Options, report: &mut Report) -> Outcome<()> {
    let inputs = inputs(&options.data)?;
    let bytes: usize = inputs.iter().map(|input| input.bytes.len()).sum();
    let mb = float(bytes) / 1e6;
    report.row(format!("import: plain JSON in {} files", inputs.len()), mb, "MB", Target::None);
    let rounds = if options.quick { 1 } else { 5 };
    let (mut walls, mut cpus, mut again) = (Vec::new(), Vec::new(), Vec::new());
    let (mut values, mut raws, mut reads) = (Vec::new(), Vec::new(), Vec::new());
    let mut events = 0;
    for _ in 0..rounds {
        let folder = tempfile::tempdir_in(&options.scratch)?;
        let store = crate::fold::open(folder.path())?;
        let (count, first) =
            spent(|| inputs.iter().map(|input| import_one(&store, input)).sum::<Outcome<u64>>());
        events = count?;
        walls.push(mb / first.wall);
        cpus.push(mb / first.cpu);
        let (new, second) =
            spent(|| inputs.iter().map(|input| import_one(&store, input)).sum::<Outcome<u64>>());
        if new? != 0 {
            return Err("the second import recorded something".into());
        }
        again.push(mb / second.cpu);
        raws.push(mb / spent(|| inputs.iter().map(parse_raw).sum::<usize>()).1.cpu);
        values.push(mb / spent(|| inputs.iter().map(parse_values).sum::<usize>()).1.cpu);
        let (stopped, alone) = spent(|| inputs.iter().map(read_only).sum::<Outcome<usize>>());
        let _ = stopped?;
        reads.push(mb / alone.cpu);
    }
    let cpu = middle(cpus);
    report.row(format!("import, processor time ({events} events)"), cpu, "MB/s", Target::AtLeast(60.0));
    report.row("import, on the clock", middle(walls), "MB/s", Target::None);
    report.row("import again, nothing new", middle(again), "MB/s", Target::None);
    let reads = middle(reads);
    report.row("of which importers alone: bytes to entries", reads, "MB/s", Target::None);
    let (values, raws) = (middle(values), middle(raws));
    report.row("serde_json to Value, same bytes", values, "MB/s", Target::None);
    report.row("serde_json to RawValue, same bytes", raws, "MB/s", Target::None);
    report.row("import time to serde_json Value time", values / cpu, "x", Target::None);

    let folder = tempfile::tempdir_in(&options.scratch)?;
    let output = Command::new(std::env::current_exe()?)
        .args(["child-import", &folder.path().to_string_lossy(), "--data", &options.data.to_string_lossy()])
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let peak =
        text.trim().parse::<f64>().map_err(|_| String::from_utf8_lossy(&output.stderr).into_owned())?;
    report.row("import, peak memory of a process", peak, "MB", Target::AtMost(200.0));
    Ok(())
}

/// Imports as the command line does, file by file, and prints the peak of memory.
pub(crate) fn child(options: &Options, folder: &str) -> Outcome<()> {
    let store = crate::fold::open(Path::new(folder))?;
    for (path, format) in files(&options.data)? {
        let file = BufReader::new(std::fs::File::open(&path)?);
        let name = stem(&path);
        let mut gather = Gather::new(&store);
        let plain = import::decompressed(file, &import::Limits::default())?;
        let _ = import::read(format, &name, plain, &ImportOptions::default(), &mut gather)?;
        let _ = gather.end()?;
    }
    println!("{}", measure::peak_mb());
    Ok(())
}

fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.split('.').next().unwrap_or_default().to_owned()
}

/// Session files below a folder that are of a known format, in order of their paths.
fn files(folder: &Path) -> Outcome<Vec<(PathBuf, ImportFormat)>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let file = BufReader::new(std::fs::File::open(&path)?);
            let Ok(plain) = import::decompressed(file, &import::Limits::default()) else { continue };
            let mut head = Vec::new();
            plain.take(import::HEAD_BYTES as u64).read_to_end(&mut head)?;
            if let Some(format) = import::detect(&path, &head) {
                found.push((path, format));
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The recorded sessions, or the bundled one several times under different names.
pub(crate) fn inputs(data: &Path) -> Outcome<Vec<Input>> {
    if data.is_dir() {
        return files(data)?
            .into_iter()
            .map(|(path, format)| {
                let file = BufReader::new(std::fs::File::open(&path)?);
                let mut bytes = Vec::new();
                import::decompressed(file, &import::Limits::default())?.read_to_end(&mut bytes)?;
                Ok(Input { name: stem(&path), path, format, bytes })
            })
            .collect();
    }
    eprintln!(
        "no recorded sessions: the bundled one, repeated; --data or ACPDB_RECORDINGS names a folder of others"
    );
    let bundled = include_str!("../../cli/assets/demo-session.jsonl");
    let head = bundled.as_bytes().get(..import::HEAD_BYTES.min(bundled.len())).unwrap_or_default();
    let path = PathBuf::from("demo-session.jsonl");
    let format = import::detect(&path, head).ok_or("the bundled session is of no known format")?;
    let first = bundled.find("\"sessionId\":\"").map(|at| at + 13).ok_or("the bundled session has no id")?;
    let id = bundled.get(first..).and_then(|rest| rest.split('"').next()).unwrap_or_default();
    let renamed = |number: usize| bundled.replace(id, &format!("{id}-{number}")).into_bytes();
    Ok((0..40)
        .map(|number| Input {
            name: format!("demo-{number}"),
            path: path.clone(),
            format,
            bytes: renamed(number),
        })
        .collect())
}

pub(crate) fn import_one(store: &Store, input: &Input) -> Outcome<u64> {
    let mut gather = Gather::new(store);
    let _ = import::read(
        input.format,
        &input.name,
        input.bytes.as_slice(),
        &ImportOptions::default(),
        &mut gather,
    )
    .map_err(|error| format!("{}: {error}", input.path.display()))?;
    gather.end()
}

/// The importer alone, without a store.
fn read_only(input: &Input) -> Outcome<usize> {
    struct Count(usize);
    impl import::Sink for Count {
        fn batch(&mut self, batch: import::ImportBatch) -> Result<(), SinkStop> {
            self.0 += batch.entries.len();
            Ok(())
        }
    }
    let mut count = Count(0);
    let _ = import::read(
        input.format,
        &input.name,
        input.bytes.as_slice(),
        &ImportOptions::default(),
        &mut count,
    )?;
    Ok(count.0)
}

fn parse_values(input: &Input) -> usize {
    serde_json::Deserializer::from_slice(&input.bytes).into_iter::<serde_json::Value>().flatten().count()
}

fn parse_raw(input: &Input) -> usize {
    serde_json::Deserializer::from_slice(&input.bytes).into_iter::<&RawValue>().flatten().count()
}

/// Gathers batches into commits of some MB, as the command line does.
struct Gather<'s> {
    store: &'s Store,
    batches: Vec<(std::sync::Arc<acpdb_engine::entry::StreamInfo>, Batch)>,
    bytes: usize,
    events: u64,
    error: Option<acpdb_engine::Error>,
}

impl<'s> Gather<'s> {
    fn new(store: &'s Store) -> Self {
        Self { store, batches: Vec::new(), bytes: 0, events: 0, error: None }
    }

    fn flush(&mut self) {
        let batches: Vec<Batch> = self.batches.drain(..).map(|(_, batch)| batch).collect();
        self.bytes = 0;
        if batches.is_empty() {
            return;
        }
        match self.store.commit(&batches, Atomicity::Split) {
            Ok(receipt) => self.events += receipt.event_count,
            Err(error) => self.error = Some(error),
        }
    }

    fn end(mut self) -> Outcome<u64> {
        self.flush();
        self.error.map_or(Ok(self.events), |error| Err(error.into()))
    }
}

impl import::Sink for Gather<'_> {
    fn batch(&mut self, batch: import::ImportBatch) -> Result<(), SinkStop> {
        use acpdb_engine::entry::WirePiece;
        // It would open a session of which nothing is recorded.
        if batch.entries.is_empty() {
            return Ok(());
        }
        let weight = |piece: &WirePiece| match piece {
            WirePiece::Literal(bytes) => bytes.len(),
            WirePiece::Raw(bytes) | WirePiece::Escaped(bytes) => bytes.len(),
            WirePiece::Record(origin) => origin.len(),
        };
        self.bytes += batch.entries.iter().flat_map(|entry| &entry.wire).map(weight).sum::<usize>();
        self.bytes += batch.entries.len() * 200;
        match self.batches.last_mut() {
            Some((stream, last)) if std::sync::Arc::ptr_eq(stream, &batch.stream) => {
                last.entries.extend(batch.entries);
            }
            _ => {
                let stream = (*batch.stream).clone();
                self.batches.push((batch.stream, Batch { stream, entries: batch.entries }));
            }
        }
        if self.bytes >= GATHER_BYTES {
            self.flush();
        }
        if self.error.is_some() { Err(SinkStop) } else { Ok(()) }
    }
}
