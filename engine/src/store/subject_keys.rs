//! Keys of sessions and of their subjects: made when a session begins, destroyed when it is shredded.

use std::path::Path;

use crate::codec::SUBJECT_BYTES_MAX;
use crate::entry::{Entry, Fact, StreamInfo, fact};
use crate::error::Error;
use crate::event::Scope;
use crate::fold::policy::nearest;
use crate::ids::{Seq, StreamId, SubjectId};
use crate::verify::{SHREDDED_ROW, SHREDDED_SUBJECT_ROW, recorded_shreds};

use super::{Inner, Store};

impl Store {
    /// Whether a stream was shredded: its events cannot be read, and nothing can be recorded in it. Cost: reads one or two small files, in an
    /// encrypted store.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn is_shredded(&self, stream: StreamId) -> Result<bool, Error> {
        Ok(self.inner.log.is_shredded(stream)?)
    }
}

/// Whether a text can be a subject's name. A caller that makes another thing first, such as a key, asks before it makes that.
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
    pub(super) fn check_encrypted(&self) -> Result<(), Error> {
        if self.log.is_encrypted() {
            return Ok(());
        }
        let detail = format!("{} is not encrypted: its streams have no keys", self.root.display());
        Err(Error::Locked { detail })
    }

    pub(super) fn check_key_at_hand(&self) -> Result<(), Error> {
        match self.log.keys() {
            Some(keys) if !keys.has_ring() => Err(self.log.why_locked(StreamId::STORE).into()),
            _ => Ok(()),
        }
    }

    /// The id of a subject that has a key.
    pub(super) fn known_subject(&self, name: &str) -> Result<SubjectId, Error> {
        self.check_encrypted()?;
        self.check_key_at_hand()?;
        let Some(keys) = self.log.keys() else { return Ok(SubjectId::ZERO) };
        let id = self.log.secret().subject(name);
        match keys.subject_state(id)? {
            Some(false) => Ok(id),
            Some(true) => Err(Error::Erased {
                detail: format!("the subject {name:?} was shredded before"),
                lost: false,
            }),
            None => {
                let names = keys.subject_names()?;
                let nearest = nearest(name, names.iter().map(|(_, name)| name.as_str()));
                Err(Error::NotFound { what: "subject", name: name.to_owned(), nearest })
            }
        }
    }

    /// Gives a new stream its key, if the stream is about a subject. The subject is the one that `info` names, else the subject of the session that
    /// the stream came from, else `default`. Durable when it returns.
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
        // A stream with events has lost its file of keys; that is reported where the stream is read.
        if self.has_no_events(stream)? {
            self.log.begin_about(stream, subject, Some(name))?;
        }
        Ok(())
    }

    fn has_no_events(&self, stream: StreamId) -> Result<bool, Error> {
        Ok(self.stream_place(stream)?.is_none())
    }

    /// Destroys the keys of all streams and subjects whose shredding is recorded after `after`.
    pub(super) fn destroy_keys(&self, after: Seq) -> Result<(), Error> {
        let Some(keys) = self.log.keys() else { return Ok(()) };
        // Subjects come first: after that no stream about them can begin.
        for stream in recorded_shreds(&self.log, after, SHREDDED_SUBJECT_ROW)? {
            if let Some(subject) = keys.subject_of(stream)? {
                self.destroy_subject(subject)?;
            }
        }
        for stream in recorded_shreds(&self.log, after, SHREDDED_ROW)? {
            self.log.shred_key(stream)?;
        }
        Ok(())
    }

    /// Destroys the key of a subject, and then the keys that it wraps.
    pub(super) fn destroy_subject(&self, subject: SubjectId) -> Result<(), Error> {
        let Some(keys) = self.log.keys() else { return Ok(()) };
        self.log.shred_subject_key(subject)?;
        for (stream, of) in keys.subjects_of_streams()? {
            if of == Some(subject) {
                self.log.shred_key(stream)?;
            }
        }
        Ok(())
    }
}
