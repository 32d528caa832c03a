//! The subjects of sessions of an encrypted store.
//!
//! ```text
//! subject's name -> keyed id -> keys/SUBJECT.subject: its key, wrapped by the ring; its name, sealed
//!                                     '- wraps the keys of all streams about it, whose files name its id
//! ```
//!
//! A stream is about a subject from its first key on, and for good. The name is in no event: it goes with the key.

use std::collections::BTreeSet;

use crate::error::Error;
use crate::ids::{StreamId, SubjectId};

use super::Store;

/// A subject that has a key, and the streams about it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SubjectInfo {
    /// Its name.
    pub name: String,
    /// The streams that name it, rising; also those that were shredded one by one.
    pub streams: Vec<StreamId>,
}

impl Store {
    /// The subjects of an encrypted store by their names; not those that were shredded. Cost: a small file for each stream is read.
    ///
    /// # Errors
    /// [`Error::Locked`] if the store's key is not at hand, [`Error::Io`].
    pub fn subjects(&self) -> Result<Vec<SubjectInfo>, Error> {
        let Some(keys) = self.inner.log.keys() else { return Ok(Vec::new()) };
        self.inner.check_key_at_hand()?;
        let streams = keys.subjects_of_streams()?;
        let about = |subject| streams.iter().filter(move |(_, of)| *of == Some(subject)).map(|(id, _)| *id);
        let mut found: Vec<SubjectInfo> = Vec::new();
        for (subject, name) in keys.subject_names()? {
            found.push(SubjectInfo { name, streams: about(subject).collect() });
        }
        found.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(found)
    }

    /// The subject that a session is about, by its name; `None` if it names none, the store is not encrypted, or the subject was shredded.
    ///
    /// # Errors
    /// [`Error::Locked`] if the store's key is not at hand, [`Error::Io`].
    pub fn subject_of(&self, stream: StreamId) -> Result<Option<String>, Error> {
        let Some(keys) = self.inner.log.keys() else { return Ok(None) };
        let Some(subject) = keys.subject_of(stream)? else { return Ok(None) };
        self.inner.check_key_at_hand()?;
        let names = keys.subject_names()?;
        Ok(names.into_iter().find(|(id, _)| *id == subject).map(|(_, name)| name))
    }

    /// The streams that an erasure of a subject would shred: those that name it, and those that came from them (sessions of subagents),
    /// rising. Streams that were shredded are left out.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such subject, [`Error::Erased`] if it was shredded, [`Error::Locked`], [`Error::Io`].
    pub fn streams_about(&self, subject: &str) -> Result<Vec<StreamId>, Error> {
        let inner = &self.inner;
        let id = inner.known_subject(subject)?;
        let mut streams = Vec::new();
        for stream in self.about(id)?.streams {
            if !self.is_shredded(stream)? {
                streams.push(stream);
            }
        }
        Ok(streams)
    }

    /// The streams about a subject, as of now.
    pub(super) fn about(&self, subject: SubjectId) -> Result<About, Error> {
        let inner = &self.inner;
        let Some(keys) = inner.log.keys() else { return Ok(About::default()) };
        let of = keys.subjects_of_streams()?.into_iter();
        let of: BTreeSet<StreamId> =
            of.filter_map(|(stream, of)| (of == Some(subject)).then_some(stream)).collect();
        let places = inner.stream_places()?;
        let streams = places.iter().map(|place| place.stream);
        let named: BTreeSet<StreamId> = streams.filter(|stream| of.contains(stream)).collect();
        let mut streams = named.clone();
        // A subagent may have been recorded before the session that started it, and so without its subject.
        let names = self.stream_names()?;
        loop {
            let children = names.iter().filter(|name| name.parent.is_some_and(|of| streams.contains(&of)));
            let new: Vec<StreamId> =
                children.map(|name| name.id).filter(|id| !streams.contains(id)).collect();
            if new.is_empty() {
                return Ok(About { streams, named });
            }
            streams.extend(new);
        }
    }
}

/// The streams about a subject, as far as they have events.
#[derive(Default)]
pub(super) struct About {
    /// Streams that name the subject, and streams that came from them.
    pub(super) streams: BTreeSet<StreamId>,
    /// Streams that name the subject.
    pub(super) named: BTreeSet<StreamId>,
}
