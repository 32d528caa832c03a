//! Stores as a stranger might hand them over, and bait beside them that no program may touch.
//!
//! ```text
//! sandbox/  project/.acpdb   a sound store, and traps set in it: links, pipes, holes, counts that lie, names
//!           bait/            files of all names that a store has, compared before and after
//! ```
//!
//! A trap is drawn from bytes, so that a fuzzer, a property and a table of named ones set the same. Nothing here judges the
//! store itself: any answer is right, as long as it comes before long and the bait is as it was.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use acpdb_engine::codec::{
    DurablePoint, FeatureBits, PageCounts, SegmentHeader, StoreFile, TailPage, WrittenPlace,
};
use acpdb_engine::entry::{Entry, StreamInfo};
use acpdb_engine::event::Role;
use acpdb_engine::ids::{ItemId, Link, Micros, Position, Seq};
use acpdb_engine::verify::verify_folder;
use acpdb_engine::{At, Builder, Error, Store};
use rustix::fs::{FileType, Mode};

/// Names that a store has, or might have: each is a place for a trap.
pub const PLACES: [&str; 20] = [
    "snap",
    "quarantine",
    "log",
    "tail",
    "checkpoint",
    "acpdb.json",
    "erasing",
    "SEAL",
    "SYNC",
    "INDEX",
    "index.redb",
    "index.redb.new",
    "erasing.tmp",
    "checkpoint.tmp",
    "log/000000000001.seg",
    "log/000000000002.seg",
    "log/000000000001.places",
    "log/000000000001.seg.tmp",
    "snap/00112233445566778899aabbccddeeff",
    "quarantine/000000000001-000000004096-0.torn",
];
/// Files beside the store, by names that it might take for its own.
const BAIT: [&str; 5] = [
    "notes.txt",
    "deep/inner.txt",
    "00112233445566778899aabbccddeeff",
    "000000000001-000000004096-0.torn",
    "000000000001.seg.tmp",
];
/// Longest bait that is read whole; of a longer one its length and time are compared.
const READ_BYTES_MAX: u64 = 1 << 20;
/// Longest file of holes: longer than any segment, as long as no disk is.
const HOLE_BYTES_MAX: u64 = 70 << 30;
/// Most traps of one store.
const TRAP_COUNT_MAX: usize = 6;
/// Events that are read of a store that says it has very many.
const EVENT_COUNT_MAX: usize = 2_000;

/// One thing that is wrong with a store on purpose. Numbers are taken modulo how many there are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "numbers into tables; the variants say what they do")]
pub enum Trap {
    /// A link in the place of a file or folder, to bait (even) or to the bait's folder (odd).
    Link { place: u8, to: u8 },
    /// A link to nothing, to itself, to the store, to the folder above, to a device.
    Strange { place: u8, to: u8 },
    /// A second name of a bait file.
    Twin { place: u8, to: u8 },
    /// A pipe without a writer, or a device; devices only if the test may make any.
    Pipe { place: u8, device: bool },
    /// A file that became very long, with nothing in it but a byte at its end.
    Hole { place: u8, gibibytes: u8, byte: bool },
    /// A note that an erasure is under way; the store has one on record.
    Erasing { text: Vec<u8> },
    /// Entries of names that a store has not: links to bait, files.
    Name { folder: u8, name: Vec<u8>, to: u8 },
    /// Any bytes in the place of a file.
    Bytes { place: u8, bytes: Vec<u8> },
    /// A witness whose checksum is right and whose claim is not.
    Claim { tail: bool, position: u64, seq: u64, last_frame: u32 },
    /// A segment header whose checksum is right.
    Segment { number: u32, first_seq: u64, previous_end: u64, abandoned: bool },
    /// A sealed segment whose head has a right checksum and lies, and whose seek table lies: entries that the table says it has and
    /// that it has, lengths of a chunk packed and unpacked; lengths of the segment and of the file before the table.
    Sealed { counts: [u32; 4], sizes: [u64; 2], gibibytes: u8 },
    /// A folder where a file was.
    Folder { place: u8 },
    /// A mode that lets no user, or every user, in.
    Mode { place: u8, mode: u16 },
}

/// Reads traps off bytes.
struct Draw<'a>(&'a [u8]);

impl Draw<'_> {
    fn byte(&mut self) -> u8 {
        self.number::<1>()[0]
    }

    fn number<const N: usize>(&mut self) -> [u8; N] {
        let mut found = [0; N];
        let count = N.min(self.0.len());
        let (taken, rest) = self.0.split_at(count);
        found.iter_mut().zip(taken).for_each(|(to, from)| *to = *from);
        self.0 = rest;
        found
    }

    fn bytes(&mut self) -> Vec<u8> {
        let count = usize::from(self.byte()).min(self.0.len());
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        taken.to_vec()
    }

    fn trap(&mut self) -> Trap {
        match self.byte() % 13 {
            0 => Trap::Link { place: self.byte(), to: self.byte() },
            1 => Trap::Strange { place: self.byte(), to: self.byte() },
            2 => Trap::Twin { place: self.byte(), to: self.byte() },
            3 => Trap::Pipe { place: self.byte(), device: self.byte().is_multiple_of(4) },
            4 => {
                Trap::Hole { place: self.byte(), gibibytes: self.byte(), byte: self.byte().is_multiple_of(2) }
            }
            5 => Trap::Erasing { text: self.bytes() },
            6 => Trap::Name { folder: self.byte(), name: self.bytes(), to: self.byte() },
            7 => Trap::Bytes { place: self.byte(), bytes: self.bytes() },
            8 => Trap::Claim {
                tail: self.byte().is_multiple_of(2),
                position: u64::from_le_bytes(self.number()),
                seq: u64::from_le_bytes(self.number()),
                last_frame: u32::from_le_bytes(self.number()),
            },
            9 => Trap::Segment {
                number: u32::from_le_bytes(self.number()),
                first_seq: u64::from_le_bytes(self.number()),
                previous_end: u64::from_le_bytes(self.number()),
                abandoned: self.byte().is_multiple_of(2),
            },
            10 => Trap::Sealed {
                counts: std::array::from_fn(|_| u32::from_le_bytes(self.number())),
                sizes: std::array::from_fn(|_| u64::from_le_bytes(self.number())),
                gibibytes: self.byte(),
            },
            11 => Trap::Folder { place: self.byte() },
            _ => Trap::Mode { place: self.byte(), mode: u16::from_le_bytes(self.number()) },
        }
    }
}

/// The traps that bytes stand for.
#[must_use]
pub fn traps(bytes: &[u8]) -> Vec<Trap> {
    let mut draw = Draw(bytes);
    let mut found = Vec::new();
    while !draw.0.is_empty() && found.len() < TRAP_COUNT_MAX {
        found.push(draw.trap());
    }
    found
}

/// The state of a file or folder, as far as touching it would have changed that.
type Seen = (u32, u64, i64, i64, Vec<u8>);

/// A store of a stranger's with bait beside it.
#[derive(Debug)]
pub struct Sandbox {
    folder: tempfile::TempDir,
}

/// How all stores here are opened.
fn builder(store: &Path) -> Builder {
    Store::builder(store).registry(acpdb_hosts::registry()).any_file_system().segment_bytes_max(64 << 10)
}

/// A small store of two segments with an erasure on record, made once: its files.
fn template() -> Result<&'static BTreeMap<PathBuf, Vec<u8>>, String> {
    static TEMPLATE: OnceLock<Result<BTreeMap<PathBuf, Vec<u8>>, String>> = OnceLock::new();
    TEMPLATE.get_or_init(|| make().map_err(|error| error.to_string())).as_ref().map_err(Clone::clone)
}

fn make() -> Result<BTreeMap<PathBuf, Vec<u8>>, Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("store");
    let store = builder(&root).open()?;
    let session = StreamInfo::session("opencode", "s1");
    for round in 0..4 {
        let call = format!("c{round}");
        let _ = store.append(
            &session,
            vec![
                Entry::message(format!("m{round}"), Role::User, format!("please read it, round {round}")),
                Entry::tool_started(call.clone(), "read", r#"{"filePath":"src/a.rs"}"#),
                Entry::tool_completed(call, format!("line {round}\n").repeat(30)),
            ],
        )?;
    }
    let item = store.view(session.id())?.history().first().map(|item| item.item).ok_or("an item")?;
    let _ = store.erase(item, "ada", "a test")?;
    let _ = store.append(&session, vec![Entry::message("after", Role::User, "and on")])?;
    store.close()?;
    let mut files = BTreeMap::new();
    for name in ["", "log"] {
        for entry in fs::read_dir(root.join(name))? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                files.insert(Path::new(name).join(entry.file_name()), fs::read(entry.path())?);
            }
        }
    }
    Ok(files)
}

/// Makes a file this long with a hole at its end; says its length. A longer one stays as it is: an earlier trap may have put a
/// byte behind the longest hole.
fn grown(file: &fs::File, gibibytes: u8) -> io::Result<u64> {
    let wanted = (u64::from(gibibytes) << 30).min(HOLE_BYTES_MAX);
    let length = file.metadata()?.len();
    if length < wanted {
        file.set_len(wanted)?;
    }
    Ok(length.max(wanted))
}

fn pick<T>(from: &[T], number: u8) -> Option<&T> {
    from.get(usize::from(number) % from.len().max(1))
}

impl Sandbox {
    /// A sound store, and the bait.
    ///
    /// # Errors
    /// If the temporary folder cannot be written.
    pub fn new() -> io::Result<Self> {
        let sandbox = Self { folder: tempfile::Builder::new().prefix("acpdb-hostile-").tempdir()? };
        for folder in ["snap", "quarantine", "log"] {
            fs::create_dir_all(sandbox.store().join(folder))?;
        }
        for (name, bytes) in template().map_err(io::Error::other)? {
            fs::write(sandbox.store().join(name), bytes)?;
        }
        // The mode that the store gives its folder, and that a folder must have that is found by its place.
        fs::set_permissions(sandbox.store(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        for name in BAIT {
            let path = sandbox.bait_folder().join(name);
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(path, format!("the contents of {name}\n").repeat(50))?;
        }
        Ok(sandbox)
    }

    /// The store.
    #[must_use]
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("project/.acpdb")
    }

    /// The folder of everything, for other needs of a test.
    #[must_use]
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    fn bait_folder(&self) -> PathBuf {
        self.folder.path().join("bait")
    }

    /// All of the bait, as it is.
    ///
    /// # Errors
    /// If it cannot be read any more.
    pub fn bait(&self) -> io::Result<BTreeMap<PathBuf, Seen>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.bait_folder()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let about = path.symlink_metadata()?;
                let mut bytes = Vec::new();
                if about.is_dir() {
                    folders.push(path.clone());
                } else if about.is_file() && about.len() <= READ_BYTES_MAX {
                    bytes = fs::read(&path)?;
                } else if about.is_file() {
                    // One trap gave the bait a second name in the store, and another one made a hole of gigabytes of it.
                    bytes = about.len().to_le_bytes().to_vec();
                }
                let seen = (about.mode(), about.nlink(), about.mtime(), about.mtime_nsec(), bytes);
                found.insert(path, seen);
            }
        }
        Ok(found)
    }

    /// Frees a place for something else.
    fn cleared(&self, place: u8) -> io::Result<PathBuf> {
        self.freed(pick(&PLACES, place).copied().unwrap_or("tail"))
    }

    fn freed(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.store().join(name);
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => fs::remove_dir_all(&path)?,
            Ok(_) => fs::remove_file(&path)?,
            Err(_) => {}
        }
        Ok(path)
    }

    fn bait_at(&self, number: u8) -> PathBuf {
        self.bait_folder().join(pick(&BAIT, number).copied().unwrap_or("notes.txt"))
    }

    /// Sets a trap. One that another trap left no place for is not set.
    ///
    /// # Errors
    /// Those of the system.
    pub fn set(&self, trap: &Trap) -> io::Result<()> {
        match trap {
            Trap::Link { place, to } if to.is_multiple_of(2) => {
                symlink(self.bait_at(to / 2), self.cleared(*place)?)
            }
            Trap::Link { place, .. } => symlink(self.bait_folder(), self.cleared(*place)?),
            Trap::Strange { place, to } => {
                let path = self.cleared(*place)?;
                let itself = path.clone();
                let targets: [&Path; 7] = [
                    Path::new("/nonexistent"),
                    &itself,
                    Path::new("."),
                    Path::new(".."),
                    Path::new("/dev/tty"),
                    Path::new("/dev/zero"),
                    Path::new("../../bait/../bait/notes.txt"),
                ];
                symlink(pick(&targets, *to).copied().unwrap_or(Path::new(".")), path)
            }
            Trap::Twin { place, to } => fs::hard_link(self.bait_at(*to), self.cleared(*place)?),
            Trap::Pipe { place, device } => {
                let (kind, number) = if *device {
                    (FileType::CharacterDevice, rustix::fs::makedev(1, 5))
                } else {
                    (FileType::Fifo, 0)
                };
                let mode = Mode::RUSR | Mode::WUSR;
                Ok(rustix::fs::mknodat(rustix::fs::CWD, self.cleared(*place)?, kind, mode, number)?)
            }
            Trap::Hole { place, gibibytes, byte } => {
                let path = self.store().join(pick(&PLACES, *place).copied().unwrap_or("tail"));
                // To open a pipe would wait for a reader that never comes.
                if path.symlink_metadata().is_ok_and(|found| !found.is_file()) {
                    return Ok(());
                }
                let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
                let length = grown(&file, *gibibytes)?;
                if *byte { file.write_all_at(b"x", length) } else { Ok(()) }
            }
            Trap::Erasing { text } => fs::write(self.freed("erasing")?, text),
            Trap::Name { folder, name, to } => {
                let folders = ["", "log", "snap", "quarantine"];
                let mut name: Vec<u8> =
                    name.iter().copied().filter(|byte| !matches!(byte, 0 | b'/')).collect();
                name.truncate(200);
                if matches!(name.as_slice(), b"" | b"." | b"..") {
                    name = b"..\n..".to_vec();
                }
                let folder = self.store().join(pick(&folders, *folder).copied().unwrap_or(""));
                symlink(self.bait_at(*to), folder.join(std::ffi::OsStr::from_bytes(&name)))
            }
            Trap::Bytes { place, bytes } => fs::write(self.cleared(*place)?, bytes),
            Trap::Claim { tail, position, seq, last_frame } => {
                let written = WrittenPlace {
                    position: Position(*position),
                    seq: Seq(*seq),
                    time: Micros(i64::MAX),
                    link: Link::ZERO,
                    last_frame: *last_frame,
                };
                let store = Self::id()?;
                if *tail {
                    fs::write(self.freed("tail")?, TailPage::encode(store, &written, PageCounts::default()))
                } else {
                    fs::write(self.freed("checkpoint")?, DurablePoint { store, written }.encode())
                }
            }
            Trap::Segment { number, first_seq, previous_end, abandoned } => {
                let header = SegmentHeader {
                    store: Self::id()?,
                    number: *number,
                    first_seq: Seq(*first_seq),
                    previous_end: Position(*previous_end),
                    previous_time: Micros(i64::MIN),
                    previous: Link::ZERO,
                    abandoned: *abandoned,
                    features: FeatureBits::default(),
                    generation: 0,
                    generation_torn: false,
                };
                fs::write(self.freed(&format!("log/{number:012}.seg"))?, header.encode())
            }
            Trap::Sealed { counts, sizes, gibibytes } => self.sealed(*counts, *sizes, *gibibytes),
            Trap::Folder { place } => fs::create_dir_all(self.cleared(*place)?),
            Trap::Mode { place, mode } => {
                let path = self.store().join(pick(&PLACES, *place).copied().unwrap_or("tail"));
                if path.is_symlink() {
                    return Ok(());
                }
                let mode = u32::from(*mode) & 0o777;
                fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
            }
        }
    }

    fn id() -> io::Result<acpdb_engine::ids::StoreId> {
        let files = template().map_err(io::Error::other)?;
        let file = StoreFile::decode(files.get(Path::new("acpdb.json")).map_or(&[], Vec::as_slice));
        Ok(file.map_err(|_| io::Error::other("the template has a store file"))?.store)
    }

    /// The first segment as a sealed one, as docs/FORMAT.md draws it.
    fn sealed(&self, counts: [u32; 4], sizes: [u64; 2], gibibytes: u8) -> io::Result<()> {
        const ENTRIES_MAX: u32 = 1000;
        let [claimed, entries, packed, unpacked] = counts;
        let path = self.freed("log/000000000001.seg")?;
        let mut head = Vec::new();
        for field in [0x184d_2a5a_u32, 120] {
            head.extend_from_slice(&field.to_le_bytes());
        }
        head.extend_from_slice(b"acpdbsl2");
        head.extend_from_slice(Self::id()?.as_bytes());
        head.extend_from_slice(&1_u32.to_le_bytes());
        head.extend_from_slice(&0_u32.to_le_bytes());
        head.extend_from_slice(&sizes[0].to_le_bytes());
        head.extend_from_slice(&[0; 76]);
        head.extend_from_slice(&crc32c::crc32c(&head).to_le_bytes());
        let mut table = Vec::new();
        let entries = entries % ENTRIES_MAX;
        for field in [0x184d_2a5e, entries * 12 + 9, 128, 0, 0x51d8_e999] {
            table.extend_from_slice(&u32::to_le_bytes(field));
        }
        for _ in 1..entries {
            for field in [packed, unpacked, 0] {
                table.extend_from_slice(&field.to_le_bytes());
            }
        }
        table.extend_from_slice(&claimed.to_le_bytes());
        table.push(1 << 7);
        table.extend_from_slice(&0x8f92_eab1_u32.to_le_bytes());
        let file = fs::OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        file.write_all_at(&head, 0)?;
        let end = grown(&file, gibibytes)?.max(128).saturating_add(sizes[1] % (1 << 20));
        file.write_all_at(&table, end)
    }

    /// Does with the store all that hosts and the command line do, and ignores the outcome.
    pub fn exercise(&self) {
        let store = self.store();
        let _ = verify_folder(&store, true);
        if let Ok(reader) = builder(&store).read_only().open() {
            look(&reader);
            let _ = reader.backup(&self.root().join("copy"), &mut |_| {});
        }
        if let Ok(writer) = builder(&store).create(false).open() {
            look(&writer);
            let session = StreamInfo::session("opencode", "s1");
            let _ = writer.append(&session, vec![Entry::message("mine", Role::User, "mine")]);
            let _ = writer.erase(ItemId::first(Seq(4)), "ada", "a test");
            let _ = writer.seal(true);
            let _ = writer.reindex();
            let _ = writer.save_snapshot(session.id());
            let _ = writer.forget_snapshots(None);
            let _ = writer.close();
        }
        let _ = acpdb_engine::store::salvage(&store, &self.root().join("salvaged"), &mut |_| {});
    }
}

/// Reads all that a store says it has.
fn look(store: &Store) {
    let _ = store.info();
    let _ = store.space();
    if let Ok(events) = store.events(Seq(1), Seq::MAX) {
        let _ = events.take(EVENT_COUNT_MAX).flatten().count();
    }
    let names: Result<Vec<_>, Error> = store.stream_names();
    for stream in names.unwrap_or_default().into_iter().take(20) {
        if let Ok(view) = store.view_once(stream.id, &At::Head) {
            let _ = view.history().len();
        }
    }
}
