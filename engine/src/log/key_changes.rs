//! Changes of keys: wrapped by another ring, followed by newer keys, made for a subject, destroyed, copied.
//!
//! Each file changes as a whole, under the lock of the folder; if a change of many files stops half way, the next call goes on with it. Not here:
//! telling other handles that keys changed (`rekey`), and recording it.

use std::sync::Arc;

use super::error::LogError;
use super::key_folder::{KEYS_DIR, key_name, subject_name};
use super::keys::{Around, Found, KeyChain};
use crate::codec::{DataKey, KeyFile, NONCE_BYTES, SubjectFile, WrappedKey};
use crate::ids::{StreamId, SubjectId};
use crate::storage::{KeyRing, Storage};

/// The reason why a subject's file cannot be made.
const TOO_LONG: &str = "the wrapped key or the name is too long";

impl KeyChain {
    /// Destroys the keys of a stream. Events sealed with them are gone, and nothing is added to the stream any more. A second call changes nothing.
    pub(crate) fn shred(&self, stream: StreamId) -> Result<(), LogError> {
        let _lock = self.folder.lock_and_mend()?;
        self.forget();
        // A damaged file is destroyed like a sound one; it names no subject any more.
        let file = self.folder.stream(stream)?.ok().flatten();
        if file.as_ref().is_some_and(KeyFile::is_shredded) {
            return Ok(());
        }
        let subject = file.and_then(|file| file.subject);
        let gone = KeyFile::shredded(self.folder.store, stream, subject);
        self.folder.destroy(&key_name(stream), &self.encoded(&gone)?)
    }

    /// Destroys the key of a subject, and with it the keys of all streams about it. Nothing is recorded about the subject any more. A second call
    /// changes nothing.
    pub(crate) fn shred_subject(&self, subject: SubjectId) -> Result<(), LogError> {
        let _lock = self.folder.lock_and_mend()?;
        self.forget();
        if matches!(self.folder.subject(subject)?, Ok(Some(file)) if file.is_shredded()) {
            return Ok(());
        }
        let gone = SubjectFile::shredded(self.folder.store, subject).encode();
        let gone = gone.ok_or_else(|| self.subject_lost(subject, TOO_LONG.to_owned()))?;
        self.folder.destroy(&subject_name(subject), &gone)
    }

    /// Gives each stream a new key, which seals every event added from now on. Older keys still open the events that they sealed. Streams without a
    /// file and those that were shredded are left out, and so is the store's own. Returns how many streams got a key.
    pub(crate) fn add_keys(&self, streams: &[StreamId]) -> Result<u64, LogError> {
        let Some(ring) = &self.ring else { return Err(self.why_locked(StreamId::STORE)) };
        let _lock = self.folder.lock_and_mend()?;
        let mut count = 0;
        for stream in streams.iter().copied().filter(|stream| *stream != StreamId::STORE) {
            let mut file = match self.file(stream)? {
                Ok(file) => file,
                Err(Found::None) => continue,
                Err(found) => return Err(self.refusal(stream, found)),
            };
            let Some(newest) = file.newest() else { continue };
            // A ring that does not open the newest key must not add another: no ring would open both.
            match self.open(&file, newest)? {
                Found::Key(_) => {}
                Found::Shredded => continue,
                found => return Err(self.refusal(stream, found)),
            }
            let outer = file.subject.map(|subject| self.outer(subject)).transpose()?;
            let around = match (file.subject, &outer) {
                (Some(subject), Some(key)) => Around::Subject(subject, key),
                _ => Around::Ring(&**ring),
            };
            let number = newest.saturating_add(1);
            let bytes = self.wrap(around, stream, number, &DataKey::new(self.random()?))?;
            file.keys.push(WrappedKey { number, bytes });
            self.folder.replace(&key_name(stream), &self.encoded(&file)?)?;
            count += 1;
        }
        self.forget();
        Ok(count)
    }

    /// Wraps every key anew with another ring, the store's own last. A call after a crash goes on: keys that the other ring opens already are left as
    /// they are, and so are keys that a subject's key wraps. Returns how many were wrapped.
    pub(crate) fn rewrap(&self, to: &Arc<dyn KeyRing>) -> Result<u64, LogError> {
        let _lock = self.folder.lock_and_mend()?;
        let other = self.with_ring(to);
        let mut count = 0;
        for subject in self.folder.subjects()? {
            let found = self.subject_key(subject)?;
            count += u64::from(self.rewrap_subject(subject, found, &other)?);
        }
        let mut streams = self.folder.streams()?;
        streams.sort_by_key(|stream| *stream == StreamId::STORE);
        for stream in streams {
            let file = match self.file(stream)? {
                Ok(file) if file.subject.is_some() => continue,
                Ok(file) => file,
                Err(Found::None) => continue,
                Err(found) => return Err(self.refusal(stream, found)),
            };
            let mut keys = Vec::with_capacity(file.keys.len());
            for key in &file.keys {
                match self.open(&file, key.number)? {
                    Found::Key(opened) => keys.push((key.number, opened)),
                    found => {
                        if !matches!(other.open(&file, key.number)?, Found::Key(_)) {
                            return Err(self.refusal(stream, found));
                        }
                    }
                }
            }
            if !keys.is_empty() {
                let file = self.wrapped(Around::Ring(&**to), stream, &keys)?;
                self.folder.replace(&key_name(stream), &self.encoded(&file)?)?;
                count += keys.len() as u64;
            }
        }
        self.forget();
        Ok(count)
    }

    fn rewrap_subject(&self, subject: SubjectId, found: Found, to: &Self) -> Result<bool, LogError> {
        match found {
            Found::Key(key) => {
                let name = self.name_under(subject, &key)?;
                let unreadable = || self.subject_lost(subject, "its name does not open".to_owned());
                let bytes = to.subject_file(subject, &key, &name.ok_or_else(unreadable)?)?;
                self.folder.replace(&subject_name(subject), &bytes)?;
                Ok(true)
            }
            Found::Shredded | Found::None => Ok(false),
            Found::Not(_) if matches!(to.subject_key(subject)?, Found::Key(_)) => Ok(false),
            Found::Not(why) | Found::Damaged(why) => Err(self.subject_lost(subject, why)),
        }
    }

    pub(super) fn subject_lost(&self, subject: SubjectId, why: String) -> LogError {
        LogError::Locked { path: self.folder.storage.path(&subject_name(subject)), why }
    }

    /// The key of a subject that wraps others.
    fn outer(&self, subject: SubjectId) -> Result<DataKey, LogError> {
        match self.subject_key(subject)? {
            Found::Key(key) => Ok(key),
            Found::Shredded => Err(LogError::SubjectShredded),
            Found::None => Err(self.subject_lost(subject, "there is no such file".to_owned())),
            Found::Not(why) | Found::Damaged(why) => Err(self.subject_lost(subject, why)),
        }
    }

    /// The bytes of a subject's file.
    pub(super) fn subject_file(
        &self,
        subject: SubjectId,
        key: &DataKey,
        name: &str,
    ) -> Result<Vec<u8>, LogError> {
        let Some(ring) = &self.ring else { return Err(self.why_locked(StreamId::STORE)) };
        let store = self.folder.store;
        let failed = |error: std::io::Error| {
            self.subject_lost(subject, format!("{} cannot be used: {error}", ring.name()))
        };
        let (nonce, name_nonce): ([u8; NONCE_BYTES], [u8; NONCE_BYTES]) = (self.random()?, self.random()?);
        let context = SubjectFile::key_context(store, subject);
        let wrapped = ring.wrap(store, key.as_bytes(), &context, &nonce).map_err(failed)?;
        let context = SubjectFile::name_context(store, subject);
        let too_long = || self.subject_lost(subject, TOO_LONG.to_owned());
        let name = key.seal(&name_nonce, &context, name.as_bytes()).ok_or_else(too_long)?;
        let file = SubjectFile { store, subject, ring: ring.id(store).map_err(failed)?, wrapped, name };
        file.encode().ok_or_else(too_long)
    }

    /// Makes the first key of a stream, wrapped by the key of its subject. If the subject is new and `name` is given, the subject's key is made.
    /// Durable when it returns. A stream that has a key is left as it is.
    pub(crate) fn begin_about(
        &self,
        stream: StreamId,
        subject: SubjectId,
        name: Option<&str>,
    ) -> Result<(), LogError> {
        let _lock = self.folder.lock()?;
        self.check_ring(stream)?;
        match self.file(stream)? {
            Ok(_) => return Ok(()),
            Err(Found::None) => {}
            Err(found) => return Err(self.refusal(stream, found)),
        }
        let is_new = matches!(self.folder.subject(subject)?, Ok(None));
        let key = match name.filter(|_| is_new) {
            Some(name) => {
                let key = DataKey::new(self.random()?);
                self.folder.put(&subject_name(subject), &self.subject_file(subject, &key, name)?)?;
                key
            }
            None => self.outer(subject)?,
        };
        self.make(Around::Subject(subject, &key), stream).map(drop)
    }

    /// The subject that a stream is about; `None` if its file names none, or there is no file yet.
    pub(crate) fn subject_of(&self, stream: StreamId) -> Result<Option<SubjectId>, LogError> {
        // A damaged file names no subject; it is reported where its key is needed.
        Ok(self.folder.stream(stream)?.ok().flatten().and_then(|file| file.subject))
    }

    /// As [`KeyChain::subject_of`], for a new stream that came from this one. A damaged file is an error, so that the new stream does not lose the
    /// subject.
    pub(crate) fn subject_to_follow(&self, stream: StreamId) -> Result<Option<SubjectId>, LogError> {
        match self.file(stream)? {
            Ok(file) => Ok(file.subject),
            Err(Found::None) => Ok(None),
            Err(found) => Err(self.refusal(stream, found)),
        }
    }

    /// Whether a stream has a file of keys, also a damaged one.
    pub(crate) fn has_file(&self, stream: StreamId) -> Result<bool, LogError> {
        Ok(!matches!(self.folder.stream(stream)?, Ok(None)))
    }

    /// All streams that have a file, with their subjects. Streams with damaged files are left out.
    pub(crate) fn subjects_of_streams(&self) -> Result<Vec<(StreamId, Option<SubjectId>)>, LogError> {
        let mut found = Vec::new();
        for stream in self.folder.streams()? {
            // A damaged file is left out, as the text above says.
            if let Ok(Some(file)) = self.folder.stream(stream)? {
                found.push((stream, file.subject));
            }
        }
        Ok(found)
    }

    /// Whether a subject's file says that the subject was shredded; `None`: there is no file. A damaged file does not say so.
    pub(crate) fn subject_state(&self, subject: SubjectId) -> Result<Option<bool>, LogError> {
        Ok(match self.folder.subject(subject)? {
            Ok(None) => None,
            Ok(Some(file)) => Some(file.is_shredded()),
            Err(_) => Some(false),
        })
    }

    /// The subjects whose keys and names open, with their names.
    pub(crate) fn subject_names(&self) -> Result<Vec<(SubjectId, String)>, LogError> {
        let mut found = Vec::new();
        for subject in self.folder.subjects()? {
            if let Found::Key(key) = self.subject_key(subject)? {
                found.extend(self.name_under(subject, &key)?.map(|name| (subject, name)));
            }
        }
        Ok(found)
    }

    pub(super) fn name_under(&self, subject: SubjectId, key: &DataKey) -> Result<Option<String>, LogError> {
        let Ok(Some(file)) = self.folder.subject(subject)? else { return Ok(None) };
        let context = SubjectFile::name_context(self.folder.store, subject);
        // A name that does not open, or is not text, is `None`: the caller decides if that is an error.
        Ok(key.open(&context, &file.name).and_then(|name| String::from_utf8(name).ok()))
    }

    /// Copies all wrapped keys to another storage.
    pub(crate) fn copy_to(&self, target: &dyn Storage) -> Result<u64, LogError> {
        let fail = |action, path| move |error| LogError::io(action, path, error);
        target.create_dir(KEYS_DIR).map_err(fail("create", target.path(KEYS_DIR)))?;
        let mut count = 0;
        let streams = self.folder.streams()?.into_iter().map(key_name);
        for name in streams.chain(self.folder.subjects()?.into_iter().map(subject_name)) {
            count += u64::from(self.folder.copy(&name, target)?);
        }
        target.sync_dir("").map_err(fail("sync", target.path("")))?;
        Ok(count)
    }
}
