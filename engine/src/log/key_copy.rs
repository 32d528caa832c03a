//! The keys of a store, for another store that takes over its events: wrapped anew, for the other store's id.
//!
//! ```text
//! own key          -> the other store's own key: origins, signatures and ids of subjects keep their meaning
//! data key, subject -> the same key under the same number, wrapped by the same ring, names sealed anew
//! shredded         -> a file that says so: no key is ever made for the stream or subject
//! damaged, locked  -> left out and reported
//! ```
//!
//! Wrapped keys and sealed names are bound to the id of their store: unchanged copies would not open.

use std::collections::{BTreeMap, BTreeSet};

use super::Log;
use super::error::LogError;
use super::key_folder::{key_name, subject_name};
use super::keys::{Around, Found, KeyChain};
use crate::codec::{DataKey, FIRST_KEY, KeyFile, SubjectFile};
use crate::ids::{StreamId, SubjectId};

/// A file of keys that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct LostKey {
    /// The file, as a path in the store's folder.
    pub file: String,
    /// The reason why it cannot be used.
    pub why: String,
}

/// The streams that are on record as shredded. Their files may still hold keys, if a crash came between the record and the destruction.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shreds {
    /// Streams that were shredded by their own keys.
    pub(crate) streams: BTreeSet<StreamId>,
    /// Streams that were shredded with all others about their subjects.
    pub(crate) with_subjects: BTreeSet<StreamId>,
}

/// The keys that were taken over, shredded or lost.
#[derive(Debug, Clone, Default)]
pub(crate) struct TakenKeys {
    /// The streams whose keys were destroyed.
    pub(crate) shredded: BTreeSet<StreamId>,
    /// Files that were left out. `told` has the streams that they would open.
    pub(crate) lost: Vec<LostKey>,
    pub(crate) told: BTreeSet<StreamId>,
}

/// Data keys of a stream by their numbers.
type Keys = Vec<(u32, DataKey)>;

/// Keys of a store in memory.
struct Opened {
    own: DataKey,
    /// `None`: the subject was shredded.
    subjects: BTreeMap<SubjectId, Option<(DataKey, String)>>,
    /// Streams with their subjects; no key: the stream was shredded.
    streams: BTreeMap<StreamId, (Option<SubjectId>, Keys)>,
    lost: Vec<LostKey>,
    told: BTreeSet<StreamId>,
}

impl Opened {
    fn lose(&mut self, stream: Option<StreamId>, file: String, found: Found) {
        self.told.extend(stream);
        self.lost.push(lost(file, found));
    }
}

impl Log {
    /// Takes over the keys of another store, in place of its own. For a store in which nothing was recorded. This handle keeps its old secret.
    ///
    /// # Errors
    /// [`LogError::Locked`] if a ring does not open the other store's own key, or does not wrap; [`LogError::Io`], [`LogError::NoSpace`].
    pub(crate) fn take_keys(&self, from: &Self, shreds: &Shreds) -> Result<TakenKeys, LogError> {
        let (Some(keys), Some(theirs)) = (self.segments.keys(), from.segments.keys()) else {
            return Ok(TakenKeys::default());
        };
        // All keys are opened before the first is wrapped: a ring of a passphrase derives its key for one store at a time, and that takes long.
        keys.put_all(theirs.open_all(shreds)?, self.generation())
    }

    /// The fault of a stream's file of keys, for a stream of which an event did not open.
    pub(crate) fn key_fault(&self, stream: StreamId) -> Result<LostKey, LogError> {
        let found = match self.segments.keys() {
            Some(keys) => keys.newest(stream)?,
            None => Found::None,
        };
        Ok(lost(key_name(stream), found))
    }
}

fn lost(file: String, found: Found) -> LostKey {
    let why = match found {
        Found::Not(why) | Found::Damaged(why) => why,
        Found::None => "there is no such file".to_owned(),
        Found::Shredded => "it was destroyed".to_owned(),
        Found::Key(_) => "it does not open what it should: it may be older than the log".to_owned(),
    };
    LostKey { file, why }
}

impl KeyChain {
    fn open_all(&self, shreds: &Shreds) -> Result<Opened, LogError> {
        let mut opened = Opened {
            own: self.own_key()?,
            subjects: BTreeMap::new(),
            streams: BTreeMap::new(),
            lost: Vec::new(),
            told: BTreeSet::new(),
        };
        for stream in &shreds.with_subjects {
            opened.subjects.extend(self.subject_of(*stream)?.map(|subject| (subject, None)));
        }
        let mut streams: BTreeSet<StreamId> = self.folder.streams()?.into_iter().collect();
        streams.extend(shreds.streams.iter().chain(&shreds.with_subjects));
        streams.remove(&StreamId::STORE);
        let mut subjects: BTreeSet<SubjectId> = self.folder.subjects()?.into_iter().collect();
        let mut files = Vec::with_capacity(streams.len());
        for stream in streams {
            let file = self.file(stream)?;
            // A subject that a stream's file names may have no file of its own.
            subjects.extend(file.as_ref().ok().and_then(|file| file.subject));
            files.push((stream, file));
        }
        let is_on_record =
            |stream: StreamId| shreds.streams.contains(&stream) || shreds.with_subjects.contains(&stream);
        // Subjects about which a session can still be read, as far as files tell.
        let open = files.iter().filter_map(|(stream, file)| {
            // A damaged file names no subject.
            let file = file.as_ref().ok().filter(|file| !file.is_shredded() && !is_on_record(*stream));
            file.and_then(|file| file.subject)
        });
        let open: BTreeSet<SubjectId> = open.collect();
        for subject in subjects {
            self.open_subject(subject, open.contains(&subject), &mut opened)?;
        }
        for (stream, file) in files {
            let is_told = is_on_record(stream);
            match file {
                Ok(file) => self.open_stream(&file, is_told, &mut opened)?,
                Err(_) if is_told => drop(opened.streams.insert(stream, (None, Vec::new()))),
                Err(found) => opened.lose(Some(stream), key_name(stream), found),
            }
        }
        Ok(opened)
    }

    /// `is_open`: the file of a session about it has a key.
    fn open_subject(&self, subject: SubjectId, is_open: bool, opened: &mut Opened) -> Result<(), LogError> {
        if opened.subjects.contains_key(&subject) {
            return Ok(());
        }
        let key = match self.subject_key(subject)? {
            Found::Key(key) => {
                let name = self.name_under(subject, &key)?;
                if name.is_none() {
                    let fault = Found::Not("its name does not open".to_owned());
                    opened.lose(None, subject_name(subject), fault);
                }
                // The id in place of the name: the id is derived from the name, so the subject is still found by its name.
                Some((key, name.unwrap_or_else(|| subject.to_hex())))
            }
            Found::Shredded => None,
            // All of its sessions were shredded, most likely with it. So no key is made for it, and none is missed.
            Found::None | Found::Damaged(_) if !is_open => None,
            found => {
                opened.lose(None, subject_name(subject), found);
                return Ok(());
            }
        };
        opened.subjects.insert(subject, key);
        Ok(())
    }

    fn open_stream(&self, file: &KeyFile, is_told: bool, opened: &mut Opened) -> Result<(), LogError> {
        let stream = file.stream;
        let subject = file.subject.map(|subject| opened.subjects.get(&subject));
        let mut keys = Vec::with_capacity(file.keys.len());
        if !is_told && !file.is_shredded() && !matches!(subject, Some(Some(None))) {
            if matches!(subject, Some(None)) {
                // The file of its subject is reported already.
                opened.told.insert(stream);
                return Ok(());
            }
            for key in &file.keys {
                match self.open(file, key.number)? {
                    Found::Key(key_opened) => {
                        self.keep(stream, key.number, &key_opened, None);
                        keys.push((key.number, key_opened));
                    }
                    found if opened.told.contains(&stream) => drop(found),
                    found => opened.lose(Some(stream), key_name(stream), found),
                }
            }
            if keys.is_empty() {
                return Ok(());
            }
        }
        opened.streams.insert(stream, (file.subject, keys));
        Ok(())
    }

    /// Puts keys of another store in the folder, which has only the store's own key. Durable when it returns.
    fn put_all(&self, opened: Opened, generation: u32) -> Result<TakenKeys, LogError> {
        let Some(ring) = &self.ring else { return Err(self.why_locked(StreamId::STORE)) };
        let Opened { own, subjects, streams, lost, told } = opened;
        let mut taken = TakenKeys { shredded: BTreeSet::new(), lost, told };
        let _lock = self.folder.lock()?;
        let file = self.wrapped(Around::Ring(&**ring), StreamId::STORE, &[(FIRST_KEY, own.clone())])?;
        self.folder.replace(&key_name(StreamId::STORE), &self.encoded(&file)?)?;
        self.forget();
        self.keep(StreamId::STORE, FIRST_KEY, &own, Some(generation));
        for (subject, key) in &subjects {
            let bytes = if let Some((key, name)) = key {
                self.subject_file(*subject, key, name)?
            } else {
                let gone = SubjectFile::shredded(self.folder.store, *subject).encode();
                let failed = || self.subject_lost(*subject, "its file cannot be made".to_owned());
                gone.ok_or_else(failed)?
            };
            self.folder.put(&subject_name(*subject), &bytes)?;
        }
        for (stream, (subject, keys)) in streams {
            let outer = subject.and_then(|subject| Some((subject, subjects.get(&subject)?.as_ref()?)));
            let file = if keys.is_empty() {
                taken.shredded.insert(stream);
                KeyFile::shredded(self.folder.store, stream, subject)
            } else {
                let around = match outer {
                    Some((subject, (key, _))) => Around::Subject(subject, key),
                    None => Around::Ring(&**ring),
                };
                self.wrapped(around, stream, &keys)?
            };
            self.folder.put(&key_name(stream), &self.encoded(&file)?)?;
            for (index, (number, key)) in (1..).zip(&keys) {
                self.keep(stream, *number, key, Some(generation).filter(|_| index == keys.len()));
            }
        }
        Ok(taken)
    }
}
