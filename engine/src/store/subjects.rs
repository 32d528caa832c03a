//! The subjects of sessions of an encrypted store.
//!
//! ```text
//! subject's name -> keyed id -> keys/SUBJECT.subject: its key, wrapped by the ring; its name, sealed
//!                                     '- wraps the keys of all streams about it, whose files name its id
//! ```
//!
//! A stream is about a subject from its first key on, and for good. The name is in no event: it goes with the key.

use std::collections::BTreeSet;
use std::path::Path;

use crate::codec::SUBJECT_BYTES_MAX;
use crate::entry::{Entry, Fact, StreamInfo, fact};
use crate::error::Error;
use crate::event::Scope;
use crate::fold::policy::nearest;
use crate::ids::{Seq, StreamId, SubjectId};

use super::{Inner, Store};

/// A subject that has a key, and what is about it.
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

    /// The subject that a session is about, by its name; `None` if it names none, the store is not encrypted, or it was shredded.
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

    /// What an erasure of a subject would shred: the streams that name it, and what came from them (sessions of subagents), rising. Those that
    /// were shredded are left out.
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

    /// What is about a subject, as of now.
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

/// What is about a subject, of the streams that have events.
#[derive(Default)]
pub(super) struct About {
    /// Those that name the subject, and those that came from them.
    pub(super) streams: BTreeSet<StreamId>,
    /// Those that name it.
    pub(super) named: BTreeSet<StreamId>,
}

/// Whether a text can be a subject's name. A caller that makes something else first, such as a key, asks before it does.
///
/// # Errors
/// [`Error::Subject`], [`Error::TooLarge`].
pub fn check_subject(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.trim() != name || name.chars().any(char::is_control) {
        let detail =
            format!("{name:?} is no name of a subject: blanks around it, control characters, or nothing");
        return Err(Error::Subject { detail });
    }
    if name.len() > SUBJECT_BYTES_MAX {
        let (actual, limit) = (name.len() as u64, SUBJECT_BYTES_MAX as u64);
        return Err(Error::TooLarge { what: "name of a subject", actual, limit });
    }
    Ok(())
}

pub(super) fn not_encrypted(root: &Path) -> Error {
    let root = root.display();
    let detail =
        format!("{root} is not encrypted: its sessions have no keys, so none can be about a subject");
    Error::Subject { detail }
}

impl Inner {
    pub(super) fn check_key_at_hand(&self) -> Result<(), Error> {
        match self.log.keys() {
            Some(keys) if !keys.has_ring() => Err(self.log.why_locked(StreamId::STORE).into()),
            _ => Ok(()),
        }
    }

    /// A subject that has a key.
    pub(super) fn known_subject(&self, name: &str) -> Result<SubjectId, Error> {
        self.check_encrypted()?;
        self.check_key_at_hand()?;
        let Some(keys) = self.log.keys() else { return Ok(SubjectId::ZERO) };
        let id = self.log.secret().subject(name);
        match keys.subject_state(id)? {
            Some(false) => Ok(id),
            Some(true) => Err(Error::Erased { detail: format!("the subject {name:?} was shredded before") }),
            None => {
                let names = keys.subject_names()?;
                let nearest = nearest(name, names.iter().map(|(_, name)| name.as_str()));
                Err(Error::NotFound { what: "subject", name: name.to_owned(), nearest })
            }
        }
    }

    /// Gives a stream that is new its key, if it is about a subject: the one that it names, else that of the session that it came from,
    /// else `default`. Durable when it returns.
    pub(super) fn begin_about(
        &self,
        stream: StreamId,
        info: &StreamInfo,
        entries: &[Entry],
        default: Option<&str>,
    ) -> Result<(), Error> {
        let refused = |detail: String| Err(Error::Subject { detail });
        let Some(keys) = self.log.keys() else {
            return match &info.subject {
                None => Ok(()),
                Some(_) => Err(not_encrypted(&self.root)),
            };
        };
        let Some(name) = &info.subject else {
            let forked = entries.iter().find_map(|entry| match &entry.fact {
                Fact::Forked(fact::Forked { from, .. }) => Some(*from),
                _ => None,
            });
            let from =
                info.parent.as_ref().map(|(parent, _)| *parent).or(forked).filter(|from| *from != stream);
            let default = default.filter(|_| info.scope == Scope::Session);
            if (from.is_none() && default.is_none()) || keys.has_file(stream)? {
                return Ok(());
            }
            let followed = from.map_or(Ok(None), |from| keys.subject_to_follow(from))?;
            let named = default.map(|name| (self.log.secret().subject(name), Some(name)));
            let Some((subject, name)) = followed.map(|subject| (subject, None)).or(named) else {
                return Ok(());
            };
            if self.has_no_events(stream)? {
                self.check_key_at_hand()?;
                self.log.begin_about(stream, subject, name)?;
            }
            return Ok(());
        };
        self.check_key_at_hand()?;
        if info.scope != Scope::Session {
            return refused("only a session is about a subject".to_owned());
        }
        check_subject(name)?;
        let subject = self.log.secret().subject(name);
        if keys.has_file(stream)? {
            return match keys.subject_of(stream)? {
                Some(of) if of == subject => Ok(()),
                Some(_) => refused(format!("session {:?} is about another subject", info.name)),
                None => refused(format!(
                    "session {:?} was begun without a subject, which is named when a session begins",
                    info.name
                )),
            };
        }
        // One whose key is lost is told of where it is read.
        if self.has_no_events(stream)? {
            self.log.begin_about(stream, subject, Some(name))?;
        }
        Ok(())
    }

    fn has_no_events(&self, stream: StreamId) -> Result<bool, Error> {
        Ok(self.frames_of(&[stream], Seq::ZERO)?.0.is_empty())
    }
}
