//! `acpdb scan --for FILE`: whether texts are anywhere in the store: in its events, as they are or escaped, and in the bytes of its files. Shows
//! none of them. Exit code 1 if there is one.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use acpdb_engine::Store;
use acpdb_engine::ids::Seq;
use acpdb_engine::text::Unescaped;
use serde::Serialize;

use super::{Code, EscapeLevel, Failure, Global, Output, describe, store_path};

/// Shorter texts stand in any file by chance.
const SOUGHT_BYTES_MIN: usize = 4;
/// Most bytes of all sought texts.
const SOUGHT_BYTES_MAX: u64 = 1 << 20;
/// Layers of escapes: parameters may be JSON inside of a JSON string.
const ESCAPE_LAYERS: usize = 2;
/// Most places that are told.
const PLACE_COUNT_MAX: usize = 1000;

/// A place of a sought text.
#[derive(Serialize)]
struct FoundPlace {
    /// The line of the text among those that are sought, from 1.
    line: usize,
    seq: Option<Seq>,
    /// The row among the event's bodies; absent for a string in the event itself.
    row: Option<u32>,
    /// The file below the store's folder.
    file: Option<String>,
    /// The first byte in a file.
    offset: Option<usize>,
}

/// The number of things that were looked at, and the places that were found.
#[derive(Default, Serialize)]
struct SoughtReport {
    sought: usize,
    events: u64,
    texts: u64,
    files: u64,
    /// Places, but for those past the first thousand.
    found: Vec<FoundPlace>,
    found_count: u64,
}

impl SoughtReport {
    fn add(&mut self, place: FoundPlace) {
        self.found_count += 1;
        if self.found.len() < PLACE_COUNT_MAX {
            self.found.push(place);
        }
    }
}

pub(crate) fn run(global: &Global, sought: &Path, output: &mut Output) -> Result<Code, Failure> {
    super::at::refuse_now(global, "scan")?;
    let sought = lines(sought)?;
    let store = store_path::read(global, output)?;
    let mut looked = SoughtReport { sought: sought.len(), ..SoughtReport::default() };
    in_events(&store, &sought, &mut looked)?;
    in_files(store.root(), &sought, &mut looked)?;
    let code = if looked.found_count == 0 { Code::Ok } else { Code::Failure };
    if output.json {
        output.json_object("acpdb.scan_for/1", &looked)?;
        return Ok(code);
    }
    for FoundPlace { line, seq, row, file, offset } in &looked.found {
        let place = match (seq, row, file) {
            (Some(seq), Some(row), _) => format!("{seq}: body {row}"),
            (Some(seq), None, _) => format!("{seq}: the event itself, which stays"),
            (None, _, file) => {
                let file = file.as_deref().unwrap_or_default();
                format!("{}: byte {}", super::escape(file, EscapeLevel::Line), offset.unwrap_or_default())
            }
        };
        output.line(format!("line {line}  {place}"))?;
    }
    let all = format!(
        "{}, {}, {}",
        describe::count(looked.events, "event"),
        describe::count(looked.texts, "text"),
        describe::count(looked.files, "file")
    );
    if looked.found_count == 0 {
        output.line(format!("not in {all}"))?;
    } else {
        output.note(format!("{} in {all}", describe::count(looked.found_count, "place")));
    }
    Ok(code)
}

/// The texts that are sought, by their lines.
fn lines(path: &Path) -> Result<Vec<(usize, Vec<u8>)>, Failure> {
    let mut bytes = Vec::new();
    let name = path.display();
    let read = if path.as_os_str() == "-" {
        std::io::stdin().take(SOUGHT_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(SOUGHT_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    read.map_err(Failure::io("read", &name))?;
    if bytes.len() as u64 > SOUGHT_BYTES_MAX {
        return Err(Failure::usage(format!("--for: {name} has more than {SOUGHT_BYTES_MAX} bytes")));
    }
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines: Vec<_> = (1..)
        .zip(lines)
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| (number, line.to_vec()))
        .collect();
    if let Some((number, _)) = lines.iter().find(|(_, line)| line.len() < SOUGHT_BYTES_MIN) {
        let short = format!(
            "--for: line {number} is shorter than {SOUGHT_BYTES_MIN} bytes, which stand anywhere by chance"
        );
        return Err(Failure::usage(short));
    }
    if lines.is_empty() {
        return Err(
            Failure::usage("--for: nothing is sought").hint("one text a line: acpdb scan --for - < FILE")
        );
    }
    Ok(lines)
}

/// The lines that stand in these bytes, as they are or escaped.
fn found_in<'s>(bytes: &[u8], sought: &'s [(usize, Vec<u8>)]) -> impl Iterator<Item = usize> + use<'s> {
    let layers = Unescaped::layers(bytes, ESCAPE_LAYERS);
    let all = std::iter::once(bytes).chain(layers.iter().map(|plain| plain.bytes.as_slice()));
    let all: Vec<&[u8]> = all.collect();
    let is_there = |text: &[u8]| all.iter().any(|bytes| memchr::memmem::find(bytes, text).is_some());
    let found: Vec<usize> =
        sought.iter().filter(|(_, text)| is_there(text)).map(|(number, _)| *number).collect();
    found.into_iter()
}

fn in_events(store: &Store, sought: &[(usize, Vec<u8>)], looked: &mut SoughtReport) -> Result<(), Failure> {
    for recorded in store.events(Seq(1), Seq::MAX)? {
        let recorded = recorded?;
        let seq = Some(recorded.seq);
        looked.events += 1;
        super::scan::each_text(store, &recorded, &mut |row, text| {
            looked.texts += u64::from(row.is_some());
            for line in found_in(text, sought) {
                looked.add(FoundPlace { line, seq, row, file: None, offset: None });
            }
        })?;
    }
    Ok(())
}

/// Looks at every file below a folder as it lies on the disk: also at what no event names, such as an index.
fn in_files(root: &Path, sought: &[(usize, Vec<u8>)], looked: &mut SoughtReport) -> Result<(), Failure> {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let fail = || Failure::io("read", folder.display());
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(fail())? {
            entries.push(entry.map_err(fail())?.path());
        }
        entries.sort();
        for path in entries {
            let kind = path.symlink_metadata().map_err(Failure::io("read", path.display()))?.file_type();
            if kind.is_dir() {
                folders.push(path);
                continue;
            }
            if !kind.is_file() {
                continue;
            }
            looked.files += 1;
            let bytes = std::fs::read(&path).map_err(Failure::io("read", path.display()))?;
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            for (line, text) in sought {
                if let Some(offset) = memchr::memmem::find(&bytes, text) {
                    looked.add(FoundPlace {
                        line: *line,
                        seq: None,
                        row: None,
                        file: Some(name.clone()),
                        offset: Some(offset),
                    });
                }
            }
        }
    }
    Ok(())
}
