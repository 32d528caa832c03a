//! Logs made from scripts, and a judge that answers every question by scanning the script: no rows, no redb.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;

use crate::codec::{EncodedEvent, Envelope, Frame, decode_frame, encode_frame, payload};
use crate::event::{
    FileChanged, FileChanger, Key, KeyKind, MemoryRecorded, Payload, SessionOpened, Stamp, ToolCallStarted,
    ToolClass, TurnStarted,
};
use crate::ids::{Link, Micros, Origin, Position, Seq, StoreId, StreamId};
use crate::index::layout::NameKey;
use crate::index::{
    Bypassed, FrameSource, Identity, Index, IndexOptions, IndexRows, MemoryIndex, NameEntry, NameKind,
    SourceFault, rows_of,
};
use crate::secret::Secret;
use crate::storage::{FileStorage, Storage};

pub(super) const IDENTITY: Identity = Identity { store: StoreId([7; 16]), format: 1 };

/// One event of a script.
#[derive(Clone, Debug)]
pub(super) enum Act {
    Open {
        name: String,
    },
    Call {
        id: String,
        tool: String,
        label: u32,
        files: Vec<(String, Option<String>)>,
    },
    File {
        path: String,
    },
    Memory {
        id: String,
        category: String,
        key: Option<String>,
    },
    Turn,
    /// A call whose payload is not an archive.
    Garbled,
    /// A kind that does not exist.
    Unknown,
}

/// Commits of (stream, event).
pub(super) type Script = Vec<Vec<(u8, Act)>>;

/// A path as it stands in the index: its own way of turning it round.
pub(super) fn backwards(path: &str) -> String {
    let mut letters: Vec<char> = path.chars().collect();
    while letters.iter().map(|letter| letter.len_utf8()).sum::<usize>() > 512 {
        let _ = letters.remove(0);
    }
    letters.into_iter().rev().collect()
}

pub(super) fn stream(number: u8) -> StreamId {
    // Not in the order of their numbers, so that order by id and order by first event differ.
    StreamId([255 - number; 16])
}

fn file_key(given: &str, resolved: Option<String>) -> Key {
    Key { kind: KeyKind::File, class: ToolClass::Read, given: given.to_owned(), resolved, fields: Vec::new() }
}

pub(super) fn encoded(stream_number: u8, act: &Act) -> EncodedEvent {
    let payload: Payload = match act.clone() {
        Act::Open { name } => SessionOpened { name, ..SessionOpened::default() }.into(),
        Act::Call { id, tool, label, files } => {
            let mut keys: Vec<Key> =
                files.into_iter().map(|(given, resolved)| file_key(&given, resolved)).collect();
            // A key of another kind, whose text must not become the name of a file.
            keys.push(Key { kind: KeyKind::Exec, ..file_key("not a file", None) });
            ToolCallStarted { call: id, tool, label, keys, ..ToolCallStarted::default() }.into()
        }
        Act::File { path } => FileChanged { key: file_key(&path, None), by: FileChanger::User }.into(),
        Act::Memory { id, category, key } => {
            let (category, key) = (category.into(), key.map(Into::into));
            MemoryRecorded { id, category, key, ..MemoryRecorded::default() }.into()
        }
        Act::Turn => TurnStarted::default().into(),
        Act::Garbled => Payload::Unknown { number: 32, version: 1, bytes: vec![0xa5; 21] },
        Act::Unknown => Payload::Unknown { number: 999, version: 3, bytes: vec![1, 2, 3] },
    };
    let (version, bytes) = payload::encode(&Stamp::default(), &payload).unwrap();
    let envelope = Envelope {
        kind: payload.number(),
        version,
        stream: stream(stream_number),
        origin: Origin::ZERO,
        host_time: None,
    };
    EncodedEvent { envelope, payload: bytes, bodies: Vec::new() }
}

/// The frames that a log holds after the commits of `script`.
pub(super) fn frames(script: &Script) -> Vec<Frame> {
    let mut position = Position::new(1, 4096).unwrap();
    let (mut seq, mut link) = (Seq(1), Link::ZERO);
    let mut all = Vec::new();
    for commit in script {
        let events: Vec<_> = commit.iter().map(|(stream, act)| encoded(*stream, act)).collect();
        let mut prepared = encode_frame(&events).unwrap();
        let (bytes, next) =
            prepared.seal(seq, (Micros(0), Micros(0)), position, position, IDENTITY.store, link);
        let frame = decode_frame(bytes, IDENTITY.store).unwrap();
        link = next;
        seq = frame.header().last_seq().next();
        position = frame.header().end();
        all.push(frame);
        // Every seventh frame ends its segment.
        if all.len().is_multiple_of(7) {
            position = Position::new(position.segment() + 1, 4096).unwrap();
        }
    }
    all
}

pub(super) fn rows(frames: &[Frame]) -> Vec<IndexRows> {
    frames.iter().map(|frame| rows_of(frame, &Secret::missing())).collect()
}

pub(super) fn head(frames: &[Frame]) -> (Seq, Position) {
    frames.last().map_or((Seq::ZERO, Position(0)), |frame| (frame.header().last_seq(), frame.header().end()))
}

/// The files of a folder.
pub(super) fn storage(folder: &std::path::Path) -> Arc<dyn Storage> {
    Arc::new(FileStorage::new(folder))
}

/// Opens the index in `folder` against a log of `frames`; panics if it is bypassed.
pub(super) fn open(folder: &tempfile::TempDir, frames: &[Frame], options: IndexOptions) -> Arc<Index> {
    let state = Index::open(&storage(folder.path()), IDENTITY, head(frames), options);
    match state {
        crate::index::IndexState::Owner(index) => index,
        crate::index::IndexState::Bypassed(bypassed) => panic!("bypassed: {bypassed}"),
    }
}

/// A log in memory.
pub(super) struct Log {
    pub(super) frames: Mutex<Vec<Frame>>,
    /// How many of the frames are durable; all others are readable, as in a real log.
    pub(super) durable_count: Mutex<usize>,
    /// Reading at or past this frame fails.
    pub(super) damaged_from: Option<usize>,
}

impl Log {
    pub(super) fn new(frames: Vec<Frame>) -> Self {
        let durable_count = Mutex::new(frames.len());
        Self { frames: Mutex::new(frames), durable_count, damaged_from: None }
    }
}

impl FrameSource for Log {
    fn secret(&self) -> Secret {
        Secret::missing()
    }

    fn durable_head(&self) -> (Seq, Position) {
        let count = *self.durable_count.lock().unwrap();
        head(&self.frames.lock().unwrap()[..count])
    }

    fn frames_after(&self, end: Option<Position>, bytes_max: usize) -> Result<Vec<Frame>, SourceFault> {
        let all = self.frames.lock().unwrap();
        let from = all.iter().position(|frame| end.is_none_or(|end| frame.position() >= end));
        let from = from.unwrap_or(all.len());
        let (mut read, mut bytes) = (Vec::new(), 0);
        for (index, frame) in all.iter().enumerate().skip(from) {
            if self.damaged_from.is_some_and(|damaged| index >= damaged) {
                if read.is_empty() {
                    return Err(SourceFault { reason: format!("frame {index} is damaged") });
                }
                break;
            }
            bytes += usize::try_from(frame.header().frame_bytes()).unwrap();
            if bytes > bytes_max && !read.is_empty() {
                break;
            }
            read.push(frame.clone());
        }
        Ok(read)
    }
}

/// Answers about names, by the file or in memory.
pub(super) trait Names {
    fn names(
        &self,
        kind: NameKind,
        text: &str,
        prefix: bool,
        limit: usize,
    ) -> Result<Vec<NameEntry>, Bypassed>;
}

impl Names for Index {
    fn names(
        &self,
        kind: NameKind,
        text: &str,
        prefix: bool,
        limit: usize,
    ) -> Result<Vec<NameEntry>, Bypassed> {
        self.names(kind, text, prefix, limit)
    }
}

impl Names for MemoryIndex {
    fn names(
        &self,
        kind: NameKind,
        text: &str,
        prefix: bool,
        limit: usize,
    ) -> Result<Vec<NameEntry>, Bypassed> {
        self.names(kind, text, prefix, limit)
    }
}

/// Seq, stream, names.
type JudgedEvent = (Seq, StreamId, Vec<(NameKind, String)>);

/// Answers from the script.
pub(super) struct Judge {
    events: Vec<JudgedEvent>,
}

impl Judge {
    pub(super) fn new(script: &Script, frames: &[Frame]) -> Self {
        let mut events = Vec::new();
        for (commit, frame) in script.iter().zip(frames) {
            let header = frame.header();
            for (seq, (stream_number, act)) in (header.first_seq.0..).zip(commit) {
                events.push((Seq(seq), stream(*stream_number), Self::names_of(act)));
            }
        }
        Self { events }
    }

    fn names_of(act: &Act) -> Vec<(NameKind, String)> {
        let mut names = match act.clone() {
            Act::Open { name } => vec![(NameKind::Session, name)],
            Act::Call { id, tool, label, files } => {
                let letter = tool.chars().next().unwrap_or('x').to_lowercase().next().unwrap();
                let mut names =
                    vec![(NameKind::Call, id), (NameKind::Label, format!("{letter}_{:05x}", label >> 4))];
                for (given, resolved) in files {
                    names.push((NameKind::File, backwards(&given)));
                    names.extend(resolved.map(|resolved| (NameKind::File, backwards(&resolved))));
                }
                names
            }
            Act::File { path } => vec![(NameKind::File, backwards(&path))],
            // Categories and keys are free text, which is in no index.
            Act::Memory { id, .. } => vec![(NameKind::Memory, id)],
            Act::Turn | Act::Garbled | Act::Unknown => Vec::new(),
        };
        for (_, name) in &mut names {
            // No more letters than fit.
            while name.len() > 512 {
                name.pop();
            }
        }
        names.retain(|(_, name)| !name.is_empty());
        names
    }

    pub(super) fn names(&self, kind: NameKind, text: &str, prefix: bool) -> Vec<NameEntry> {
        let mut newest = BTreeMap::new();
        for (seq, stream, names) in &self.events {
            for (_, name) in names.iter().filter(|(of, name)| {
                *of == kind && if prefix { name.starts_with(text) } else { name == text }
            }) {
                newest.insert(NameKey::new(kind, name, *stream), (*stream, *seq));
            }
        }
        newest.into_values().map(|(stream, seq)| NameEntry { stream, seq }).collect()
    }

    /// All names that were given, and some that were not.
    pub(super) fn texts(&self) -> Vec<(NameKind, String)> {
        let mut texts: Vec<_> = self.events.iter().flat_map(|event| event.2.clone()).collect();
        texts.sort();
        texts.dedup();
        texts.extend(NameKind::ALL.map(|kind| (kind, "unknown".to_owned())));
        texts
    }

    /// Compares every answer about names.
    pub(super) fn check_names(&self, index: &dyn Names) -> Result<(), String> {
        for (kind, text) in self.texts() {
            let found = index.names(kind, &text, false, usize::MAX).map_err(|bypassed| bypassed.reason)?;
            assert_eq!(found, self.names(kind, &text, false), "{kind:?} {text:?}");
            let start: String = text.chars().take(2).collect();
            let found = index.names(kind, &start, true, 3).map_err(|bypassed| bypassed.reason)?;
            let mut expected = self.names(kind, &start, true);
            expected.truncate(3);
            assert_eq!(found, expected, "{kind:?} {start:?}..");
        }
        Ok(())
    }

    /// Compares every answer.
    pub(super) fn check(&self, index: &dyn Names) {
        self.check_names(index).unwrap();
    }
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[ab]{1,3}",
        2 => "/src/[ab]\\.rs",
        1 => prop_oneof![Just("a\0b".to_owned()), Just("a\0".to_owned()), Just("é/文".to_owned())],
        1 => Just(String::new()),
        1 => (511_usize..514).prop_map(|length| "n".repeat(length)),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        name().prop_map(|name| Act::Open { name }),
        (name(), "[rgB]|", 0_u32..0x200, prop::collection::vec((name(), prop::option::of(name())), 0..3))
            .prop_map(|(id, tool, label, files)| Act::Call { id, tool, label, files }),
        name().prop_map(|path| Act::File { path }),
        (name(), "[xy]", prop::option::of(name())).prop_map(|(id, category, key)| Act::Memory {
            id,
            category,
            key
        }),
        Just(Act::Turn),
        Just(Act::Garbled),
        Just(Act::Unknown),
    ]
}

/// Scripts of up to `commits` commits.
pub(super) fn scripts(commits: usize) -> impl Strategy<Value = Script> {
    prop::collection::vec(prop::collection::vec((0_u8..5, act()), 1..6), 0..commits)
}

/// A plain script of `commit_count` commits of three events, without randomness.
pub(super) fn steady(commit_count: usize) -> Script {
    (0..commit_count)
        .map(|number| {
            let stream = u8::try_from(number % 5).unwrap();
            let first = if number < 5 { Act::Open { name: format!("ses_{number}") } } else { Act::Turn };
            let call = Act::Call {
                id: format!("call_{number}"),
                tool: "read".to_owned(),
                label: u32::try_from(number * 40).unwrap(),
                files: vec![(format!("src/{}.rs", number % 17), Some(format!("/p/src/{}.rs", number % 17)))],
            };
            let memory = Act::Memory { id: format!("m{number}"), category: "tooling".to_owned(), key: None };
            vec![(stream, first), (stream, call), ((stream + 1) % 5, memory)]
        })
        .collect()
}
